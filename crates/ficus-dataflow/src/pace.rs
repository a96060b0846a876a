//! Keeps turns short in time, whatever a row costs.
//!
//! Quotas count rows, and a row may cost a nanosecond or milliseconds. A thread looks every [`TURN_TIME_MAX`] whether an executor is still
//! in the turn it was in; then the turn is over at its next row. If that does not come while others wait, the executor is *relieved*: its other
//! tasks go on at another thread (`relief.rs`). It rests once no query has run for some looks: an idle process does not wake up,
//! and queries one after the other do not each pay for waking it. Small queries of guests that are alone do not wake it at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::Domain;
use crate::inbox::Shared;
use crate::relief::Reliefs;
use crate::tenant::{Tenant, Weight};

/// A turn that lasts longer ends at its next row; up to twice as long if it began between two looks.
const TURN_TIME_MAX: Duration = Duration::from_millis(2);

/// Looks at which a turn that was to end is still under way before its executor is relieved: after 4 to 6 ms.
const LOOKS_BEFORE_RELIEF: u32 = 2;

/// Looks at which no query runs before it rests.
const IDLE_LOOKS: u32 = 5;

/// What others see of the turn of a thread: of the one that is an executor, or of the guest of one.
#[derive(Debug, Default)]
pub(crate) struct Paced {
    /// Grows at the begin and the end of a turn: odd while one is under way.
    pub turn: AtomicU64,
    /// The turn under way is to end at its next row.
    pub urgent: AtomicBool,
    /// Tasks that were ready beside the one that has its turn, when that began.
    pub others_ready: AtomicUsize,
    /// Whose task has its turn, or had the last: number and weight. Written by the thread itself.
    tenant: (AtomicU64, AtomicU32),
    /// What the operating system knows the thread by, see [`crate::ThreadHooks`].
    pub thread: AtomicU64,
}

impl Paced {
    /// Says whose turn begins.
    pub fn set_tenant(&self, tenant: Tenant) {
        self.tenant.0.store(tenant.number, Ordering::Relaxed);
        self.tenant.1.store(tenant.weight.get(), Ordering::Relaxed);
    }

    /// Whose turn it is, or was last.
    pub fn tenant(&self) -> Tenant {
        let weight = Weight::new(self.tenant.1.load(Ordering::Relaxed)).unwrap_or_default();
        Tenant { number: self.tenant.0.load(Ordering::Relaxed), weight }
    }
}

/// The thread.
pub(crate) struct Pace {
    thread: Option<JoinHandle<()>>,
    shared: Arc<State>,
}

#[derive(Default)]
struct State {
    rests: AtomicBool,
    stop: AtomicBool,
}

impl Pace {
    /// Starts the thread.
    ///
    /// Errors: those of the operating system when it refuses a thread.
    pub fn start<D: Domain>(executors: Vec<Arc<Shared<D>>>, reliefs: Arc<Reliefs<D>>) -> std::io::Result<Pace> {
        let shared = Arc::new(State::default());
        let own = shared.clone();
        let thread = std::thread::Builder::new().name("pace".into()).spawn(move || keep(&executors, &reliefs, &own))?;
        Ok(Pace { thread: Some(thread), shared })
    }

    /// Says that there is something to do.
    pub fn wake(&self) {
        if self.shared.rests.load(Ordering::SeqCst)
            && let Some(thread) = &self.thread
        {
            thread.thread().unpark();
        }
    }
}

impl Drop for Pace {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// The turn that was under way at a look.
struct Seen {
    paced: Arc<Paced>,
    turn: u64,
    /// Looks since, at which it was still the same.
    again: u32,
}

impl Seen {
    fn new(paced: Arc<Paced>) -> Seen {
        Seen { turn: paced.turn.load(Ordering::Relaxed), paced, again: 0 }
    }

    /// Looks at the turn of `paced` now; has it end if it is still the one that was seen, and says for how many looks it has been.
    fn look(&mut self, paced: &Arc<Paced>) -> u32 {
        let turn = paced.turn.load(Ordering::Relaxed);
        if turn != self.turn || turn.is_multiple_of(2) || !Arc::ptr_eq(paced, &self.paced) {
            *self = Seen { paced: paced.clone(), turn, again: 0 };
            return 0;
        }
        self.again += 1;
        paced.urgent.store(true, Ordering::Relaxed);
        self.again
    }
}

fn keep<D: Domain>(executors: &[Arc<Shared<D>>], reliefs: &Arc<Reliefs<D>>, state: &State) {
    let mut guests: Vec<Seen> = executors.iter().map(|shared| Seen::new(shared.guest.clone())).collect();
    let mut own: Vec<Seen> = executors.iter().map(|shared| Seen::new(shared.lock().paced.clone())).collect();
    let mut idle_looks = IDLE_LOOKS;
    while !state.stop.load(Ordering::SeqCst) {
        state.rests.store(idle_looks >= IDLE_LOOKS, Ordering::SeqCst);
        // A task that comes after this look finds the flag set, and wakes; or it is seen at the next look.
        if executors.iter().all(|shared| shared.load.load(Ordering::SeqCst) == 0) {
            if idle_looks >= IDLE_LOOKS {
                std::thread::park();
            } else {
                idle_looks += 1;
                std::thread::park_timeout(TURN_TIME_MAX);
            }
            continue;
        }
        idle_looks = 0;
        state.rests.store(false, Ordering::SeqCst);
        for ((shared, own), guest) in executors.iter().zip(&mut own).zip(&mut guests) {
            guest.look(&shared.guest);
            let paced = shared.lock().paced.clone();
            let is_long = own.look(&paced) >= LOOKS_BEFORE_RELIEF;
            // Nobody waits where there is no other task.
            if is_long && shared.load.load(Ordering::Relaxed) > 1 {
                reliefs.relieve(shared, &paced, own.turn);
            }
        }
        std::thread::park_timeout(TURN_TIME_MAX);
    }
}
