//! Memory for requests, over all connections: for messages that are still arriving, and for those that wait or run.
//!
//! Everybody who can reach the port can begin a message of the largest size and never end it. So there is a total for all
//! of them. It is never asked about a little ([`FREE_BYTES`] for a connection): small requests are answered whatever others do.
//! When a large one finds no room, the message that has been arriving for the longest time is broken off; a client that sends
//! what it has takes milliseconds for it, and one that holds it back loses its place. When nothing arrives that could be broken
//! off, because all that there is waits or runs, the one that asks is refused, and may try again.
//!
//! Connections whose client has not said who it is, where it has to, share one part in [`STRANGERS_PART`] of the total.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use crate::metrics::{family, line};

/// What a connection may hold without being counted.
pub(crate) const FREE_BYTES: usize = 64 << 10;

/// What a request takes in memory, in times of what it takes on the wire: an integer of six bytes becomes a value of 24.
pub(crate) const DECODED_SIZE: usize = 4;

/// What is taken of the total at a time.
const GRANT_BYTES: usize = 64 << 10;

/// One part in so many of the total is for clients that have not said who they are.
const STRANGERS_PART: usize = 4;

/// The total, and what arrives.
#[derive(Debug)]
pub(crate) struct Inflow {
    limit_bytes: usize,
    /// Of it, what is for strangers.
    strangers_limit_bytes: usize,
    /// What is granted: to those who have said who they are or need not, and to strangers.
    known_bytes: AtomicUsize,
    strange_bytes: AtomicUsize,
    /// Large messages that are arriving, the oldest first. Nothing else is locked under it but the waker of one of them.
    arriving: Mutex<BTreeMap<u64, Arc<Arriving>>>,
    next: AtomicU64,
    /// Messages that were refused or broken off.
    refused: AtomicU64,
}

/// A large message that is arriving.
#[derive(Debug)]
struct Arriving {
    is_strange: bool,
    granted_bytes: AtomicUsize,
    is_broken_off: AtomicBool,
    /// Wakes who receives it.
    receiver: Mutex<Waker>,
}

/// There is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRoom {
    limit_bytes: usize,
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "requests that arrive, wait or run hold the {} MiB that all may hold together; try again later, or raise \
             server.limits.requests_bytes",
            self.limit_bytes >> 20
        )
    }
}

impl std::error::Error for NoRoom {}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No section below can panic half way.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inflow {
    /// A total of so many bytes, on a server whose clients have to say who they are or need not.
    pub fn new(limit_bytes: usize, has_users: bool) -> Arc<Inflow> {
        Arc::new(Inflow {
            limit_bytes,
            strangers_limit_bytes: if has_users { limit_bytes / STRANGERS_PART } else { 0 },
            known_bytes: AtomicUsize::new(0),
            strange_bytes: AtomicUsize::new(0),
            arriving: Mutex::default(),
            next: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        })
    }

    /// The total and what is taken of it, in the Prometheus text format.
    pub fn write(&self, out: &mut String) {
        let used = self.known_bytes.load(Ordering::Relaxed) + self.strange_bytes.load(Ordering::Relaxed);
        family(out, "ficus_requests_memory_bytes", "gauge", "Memory that requests hold which arrive, wait or run.");
        line(out, "ficus_requests_memory_bytes", "", used);
        family(out, "ficus_requests_memory_limit_bytes", "gauge", "Memory that requests may hold together.");
        line(out, "ficus_requests_memory_limit_bytes", "", self.limit_bytes);
        let name = "ficus_requests_memory_refused_total";
        family(out, name, "counter", "Requests refused, or broken off while they arrived, for want of memory.");
        line(out, name, "", self.refused.load(Ordering::Relaxed));
    }

    fn take(&self, is_strange: bool, bytes: usize) -> Result<(), NoRoom> {
        let (own, limit_bytes) = match is_strange {
            true => (&self.strange_bytes, self.strangers_limit_bytes),
            false => (&self.known_bytes, self.limit_bytes - self.strangers_limit_bytes),
        };
        if own.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) <= limit_bytes {
            return Ok(());
        }
        own.fetch_sub(bytes, Ordering::Relaxed);
        Err(NoRoom { limit_bytes })
    }

    fn give_back(&self, is_strange: bool, bytes: usize) {
        let own = if is_strange { &self.strange_bytes } else { &self.known_bytes };
        own.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Takes bytes, if need be from messages that have been arriving for longer than the one of this number.
    fn take_from_others(&self, is_strange: bool, bytes: usize, number: Option<u64>) -> Result<(), NoRoom> {
        loop {
            let no_room = match self.take(is_strange, bytes) {
                Ok(()) => return Ok(()),
                Err(no_room) => no_room,
            };
            self.refused.fetch_add(1, Ordering::Relaxed);
            match self.break_off_oldest(is_strange, number) {
                // Its bytes are free as soon as its connection has had a turn.
                Some(receiver) => receiver.wake(),
                None => return Err(no_room),
            }
        }
    }

    /// Breaks off the message that has been arriving for the longest time, unless it is the one of this number. Who receives it has to be woken.
    fn break_off_oldest(&self, is_strange: bool, number: Option<u64>) -> Option<Waker> {
        let mut arriving = lock(&self.arriving);
        let oldest =
            arriving.iter().find(|(_, message)| message.is_strange == is_strange).map(|(number, _)| *number)?;
        let victim = if number == Some(oldest) { None } else { arriving.remove(&oldest) }?;
        victim.is_broken_off.store(true, Ordering::Relaxed);
        self.give_back(victim.is_strange, victim.granted_bytes.swap(0, Ordering::Relaxed));
        let receiver = lock(&victim.receiver).clone();
        Some(receiver)
    }
}

/// What a connection has for requests that have arrived; handed back when it is dropped.
#[derive(Debug)]
pub(crate) struct Waiting {
    inflow: Arc<Inflow>,
    is_strange: bool,
    granted_bytes: usize,
}

impl Waiting {
    /// Nothing yet. `is_strange`: the client has yet to say who it is.
    pub fn new(inflow: &Arc<Inflow>, is_strange: bool) -> Waiting {
        Waiting { inflow: inflow.clone(), is_strange, granted_bytes: 0 }
    }

    /// Has room for so many bytes, more or less than before. What was granted stays if there is no room for more.
    pub fn set(&mut self, bytes: usize) -> Result<(), NoRoom> {
        let wanted = bytes.saturating_sub(FREE_BYTES).div_ceil(GRANT_BYTES) * GRANT_BYTES;
        if wanted > self.granted_bytes {
            self.inflow.take_from_others(self.is_strange, wanted - self.granted_bytes, None)?;
        } else if wanted < self.granted_bytes {
            self.inflow.give_back(self.is_strange, self.granted_bytes - wanted);
        }
        self.granted_bytes = wanted;
        Ok(())
    }

    /// The client has said who it is.
    pub fn is_known(&mut self) {
        if std::mem::take(&mut self.is_strange) {
            // Moved, not asked for: it is there already.
            self.inflow.known_bytes.fetch_add(self.granted_bytes, Ordering::Relaxed);
            self.inflow.strange_bytes.fetch_sub(self.granted_bytes, Ordering::Relaxed);
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.inflow.give_back(self.is_strange, self.granted_bytes);
    }
}

/// What a connection has for the message that is arriving on it; handed back when the message is whole, or is dropped.
#[derive(Debug)]
pub(crate) struct Reception {
    inflow: Arc<Inflow>,
    is_strange: bool,
    bytes: usize,
    /// Its entry, once it is large.
    large: Option<(u64, Arc<Arriving>)>,
}

impl Reception {
    /// Nothing yet. `is_strange`: the client has yet to say who it is.
    pub fn new(inflow: &Arc<Inflow>, is_strange: bool) -> Reception {
        Reception { inflow: inflow.clone(), is_strange, bytes: 0, large: None }
    }

    /// The client has said who it is: counts from the next message on.
    pub fn is_known(&mut self) {
        if self.large.is_none() {
            self.is_strange = false;
        }
    }

    /// More of the message has come. Whoever receives it is woken through `receiver` if it is broken off.
    pub fn more(&mut self, bytes: usize, receiver: &Waker) -> Result<(), NoRoom> {
        self.bytes += bytes;
        if self.bytes <= FREE_BYTES {
            return Ok(());
        }
        let (number, large) = match &self.large {
            Some((number, large)) => (*number, large.clone()),
            None => self.enter(receiver),
        };
        let wanted = (self.bytes - FREE_BYTES).div_ceil(GRANT_BYTES) * GRANT_BYTES;
        let missing = wanted.saturating_sub(large.granted_bytes.load(Ordering::Relaxed));
        if missing > 0 {
            self.inflow.take_from_others(self.is_strange, missing, Some(number))?;
            let arriving = lock(&self.inflow.arriving);
            if large.is_broken_off.load(Ordering::Relaxed) {
                self.inflow.give_back(self.is_strange, missing);
            } else {
                large.granted_bytes.fetch_add(missing, Ordering::Relaxed);
            }
            drop(arriving);
        }
        self.check(receiver)
    }

    fn enter(&mut self, receiver: &Waker) -> (u64, Arc<Arriving>) {
        let number = self.inflow.next.fetch_add(1, Ordering::Relaxed);
        let large = Arc::new(Arriving {
            is_strange: self.is_strange,
            granted_bytes: AtomicUsize::new(0),
            is_broken_off: AtomicBool::new(false),
            receiver: Mutex::new(receiver.clone()),
        });
        lock(&self.inflow.arriving).insert(number, large.clone());
        self.large = Some((number, large.clone()));
        (number, large)
    }

    /// Fails if the message was broken off; else its receiver is woken when it is.
    pub fn check(&self, receiver: &Waker) -> Result<(), NoRoom> {
        let Some((_, large)) = &self.large else { return Ok(()) };
        lock(&large.receiver).clone_from(receiver);
        match large.is_broken_off.load(Ordering::Relaxed) {
            true => Err(NoRoom { limit_bytes: self.inflow.limit_bytes }),
            false => Ok(()),
        }
    }

    /// The message is whole, or nobody wants it any more.
    pub fn end(&mut self) {
        self.bytes = 0;
        let Some((number, large)) = self.large.take() else { return };
        // Whoever breaks it off takes it out first, so that it is handed back once.
        if lock(&self.inflow.arriving).remove(&number).is_some() {
            self.inflow.give_back(self.is_strange, large.granted_bytes.load(Ordering::Relaxed));
        }
    }
}

impl Drop for Reception {
    fn drop(&mut self) {
        self.end();
    }
}
