//! What ended queries held, and who frees it: millions of rows are freed one by one.
//!
//! Freeing is fastest where the rows were made, by a factor of two to three: an allocator takes back what a thread has made without a word to others.
//! So an executor that has nothing else to do frees the rows itself, a slice at a time, and looks between two slices whether something has come. If it
//! has, or comes, rows are left to a thread of its own, as is at once what cannot be cut: the operators with what they remember, and values.
//!
//! The account of the query goes last, when everything else is freed, wherever that is: until then its bytes are not given to others.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use crate::region::RegionInstance;
use crate::{Domain, Queue};

/// Rows that are freed between two looks at whether somebody needs the executor: some hundred microseconds.
const SLICE_ROWS: usize = 4096;

/// What takes long to free of the context of a query that has ended, see [`Domain::take_heavy`].
pub struct Heavy {
    /// Freed by a thread of its own.
    pub values: Box<dyn Send>,
    /// Dropped when nothing is left of the query.
    pub last: Arc<dyn Send + Sync>,
}

/// What is left of a query: its rows.
pub(crate) struct Rows<D: Domain> {
    queues: Vec<Queue<D::Message>>,
    /// After the rows, as fields are dropped in this order.
    _last: Arc<dyn Send + Sync>,
}

impl<D: Domain> Rows<D> {
    /// Frees some; `false` if that were the last.
    fn free_slice(&mut self) -> bool {
        let mut left = SLICE_ROWS;
        while let Some(queue) = self.queues.last_mut() {
            if queue.len() > left {
                queue.truncate(queue.len() - left);
                return true;
            }
            left -= queue.len();
            self.queues.pop();
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

    /// Frees some time later what a query was made of, but for its rows, which are returned.
    pub fn bury_operators<D: Domain>(
        &self,
        mut root: RegionInstance<D>,
        out: Queue<D::Message>,
        heavy: Heavy,
    ) -> Rows<D> {
        let mut queues = vec![out];
        root.surrender(&mut queues);
        let Heavy { values, last } = heavy;
        self.bury((root, values, last.clone()));
        Rows { queues, _last: last }
    }
}

/// The rows of ended queries that an executor frees when it has nothing else to do.
pub(crate) struct Remains<D: Domain>(VecDeque<Rows<D>>);

impl<D: Domain> Remains<D> {
    pub fn new() -> Remains<D> {
        Remains(VecDeque::new())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many rows there are.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.0.iter().flat_map(|rows| &rows.queues).map(Queue::len).sum()
    }

    pub fn add(&mut self, rows: Option<Rows<D>>) {
        self.0.extend(rows);
    }

    /// Frees some of the oldest.
    pub fn free_slice(&mut self) {
        if let Some(rows) = self.0.front_mut() {
            // A row whose drop panics is our bug; the hook has reported it. The rest of its queue is leaked at worst.
            let more = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| rows.free_slice()));
            if !more.unwrap_or(false) {
                self.0.pop_front();
            }
        }
    }

    /// Leaves all to the thread.
    pub fn leave_to(&mut self, undertaker: &Undertaker) {
        for rows in self.0.drain(..) {
            undertaker.bury(rows);
        }
    }
}
