//! What ended queries held, and who frees it: millions of rows are freed one by one.
//!
//! Freeing is fastest where the rows were made, by a factor of two to three: an allocator takes back what a thread has made without a word to others.
//! So an executor that has nothing else to do frees what operators hand over ([`crate::Operator::surrender`]) itself, a slice at a time, and looks between
//! two slices whether something has come. If it has, or comes, it is left to a thread of its own, as is at once what cannot be cut: the operators with
//! what they did not hand over, and values. An executor that waits for something to do gets half of what takes long, and half of the rest when it is
//! done, if several free it faster than one ([`crate::Flat::IS_SHARED`]).
//!
//! The account of the query goes last, when everything else is freed, wherever that is: until then its bytes are not given to others.

use std::collections::VecDeque;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::chunks::hand_over;
use crate::region::RegionInstance;
use crate::{Domain, Queue, Remains};

/// Pieces, such as rows, that are freed between two looks at whether somebody needs the executor: some hundred microseconds.
const SLICE_PIECES: usize = 4096;

/// Pieces from which on an idle executor gets a part: a millisecond's.
const SHARED_PIECES: usize = 1 << 15;

/// What takes long to free of the context of a query that has ended, see [`Domain::take_heavy`].
pub struct Heavy {
    /// Freed in pieces, as what operators hand over.
    pub parts: Vec<Box<dyn Remains>>,
    /// Freed by a thread of its own.
    pub values: Box<dyn Send>,
    /// Dropped when nothing is left of the query.
    pub last: Arc<dyn Send + Sync>,
}

/// What is left of a query, in parts that can be freed in pieces.
pub(crate) struct Estate {
    parts: Vec<Box<dyn Remains>>,
    /// After the parts, as fields are dropped in this order.
    last: Arc<dyn Send + Sync>,
}

impl Estate {
    fn pieces(&self) -> usize {
        self.parts.iter().map(|part| part.pieces()).sum()
    }

    /// Takes about half of it off; `None` if it cannot be divided.
    fn split(&mut self) -> Option<Estate> {
        let parts: Vec<_> = self.parts.iter_mut().filter_map(|part| part.split()).collect();
        (!parts.is_empty()).then(|| Estate { parts, last: self.last.clone() })
    }

    /// Adds what can be freed before the account goes.
    pub fn add(&mut self, parts: Vec<Box<dyn Remains>>) {
        self.parts.extend(parts);
    }

    /// Frees some; `false` if that was the last.
    fn free_slice(&mut self) -> bool {
        let mut left = SLICE_PIECES;
        while let Some(part) = self.parts.last_mut() {
            left = part.free_some(left);
            if left == 0 {
                return true;
            }
            self.parts.pop();
        }
        false
    }
}

/// Takes what is to be freed. Clones feed the same thread, which ends when the last of them is gone.
#[derive(Clone)]
pub(crate) struct Undertaker(Sender<Box<dyn Send>>);

impl Undertaker {
    /// Starts the thread.
    ///
    /// Errors: those of the operating system when it refuses a thread.
    pub fn start() -> std::io::Result<(Undertaker, JoinHandle<()>)> {
        let (sender, receiver) = channel::<Box<dyn Send>>();
        let thread = std::thread::Builder::new().name("undertaker".into()).spawn(move || {
            for remains in receiver {
                // A value whose drop panics is our bug; the hook has reported it, and others still have to be freed.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(remains)));
            }
        })?;
        Ok((Undertaker(sender), thread))
    }

    /// Frees `remains` some time later.
    pub fn bury(&self, remains: impl Send + 'static) {
        // Without the thread they are freed here.
        let _ = self.0.send(Box::new(remains));
    }

    /// Frees some time later what a query was made of, but for what can be freed in pieces, which is returned.
    pub fn bury_operators<D: Domain>(
        &self,
        mut root: RegionInstance<D>,
        mut out: Queue<D::Message>,
        heavy: Heavy,
    ) -> Estate {
        let Heavy { mut parts, values, last } = heavy;
        hand_over(&mut out, &mut parts);
        root.surrender(&mut parts);
        self.bury((root, values, last.clone()));
        Estate { parts, last }
    }
}

/// Frees what a sink is given back and nobody wants, see [`crate::Outcome`].
#[derive(Clone, Default)]
pub struct Frees(Option<Arc<Later>>);

/// Of a query that held much.
struct Later {
    undertaker: Undertaker,
    /// What its executor is to free, until its end is told.
    here: Mutex<Option<Vec<Box<dyn Remains>>>>,
}

impl Frees {
    /// Of what may be much.
    pub(crate) fn by(undertaker: Undertaker) -> Frees {
        Frees(Some(Arc::new(Later { undertaker, here: Mutex::new(Some(Vec::new())) })))
    }

    /// Frees it: at once if the query held little, else some time later and elsewhere.
    pub fn free(&self, unwanted: impl Send + 'static) {
        if let Some(later) = &self.0 {
            later.undertaker.bury(unwanted);
        }
    }

    /// As [`Frees::free`], of what can be cut: by the executor of the query if the sink is still being told of its end.
    pub fn free_in_pieces(&self, unwanted: Box<dyn Remains>) {
        let Some(later) = &self.0 else { return };
        match &mut *later.here.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(here) => here.push(unwanted),
            None => later.undertaker.bury(unwanted),
        }
    }

    /// What the executor is to free; it takes nothing more.
    pub(crate) fn end_here(&self) -> Vec<Box<dyn Remains>> {
        let here = self.0.as_ref().and_then(|later| later.here.lock().unwrap_or_else(PoisonError::into_inner).take());
        here.unwrap_or_default()
    }
}

/// What an executor frees of ended queries when it has nothing else to do.
#[derive(Default)]
pub(crate) struct Estates(VecDeque<Estate>);

impl Estates {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many pieces there are.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.0.iter().map(Estate::pieces).sum()
    }

    /// Whether the oldest is so much that it is worth dividing.
    pub fn has_much(&self) -> bool {
        self.0.front().is_some_and(|oldest| oldest.pieces() >= SHARED_PIECES)
    }

    /// Takes half of the oldest off; `None` if it cannot be divided.
    pub fn split(&mut self) -> Option<Estate> {
        self.0.front_mut()?.split()
    }

    pub fn add(&mut self, estate: Option<Estate>) {
        self.0.extend(estate);
    }

    /// Frees some of the oldest.
    pub fn free_slice(&mut self) {
        if let Some(estate) = self.0.front_mut() {
            // A row whose drop panics is our bug; the hook has reported it. The rest of its part is leaked at worst.
            let more = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| estate.free_slice()));
            if !more.unwrap_or(false) {
                self.0.pop_front();
            }
        }
    }

    /// Leaves all to the thread.
    pub fn leave_to(&mut self, undertaker: &Undertaker) {
        for estate in self.0.drain(..) {
            undertaker.bury(estate);
        }
    }
}
