//! Relief of executors whose turn does not end.
//!
//! Operators work in pieces and look between two of them whether their turn is over. A step that cannot be left, over one value of a million members or
//! in code of others, may last for a hundred milliseconds all the same, and everybody on the executor would wait. So an executor lies on a *desk* while a
//! task has its turn, and the thread that looks after turns may give it to a thread of its own, with all its tasks but that one:
//!
//! ```text
//!   thread A   ── turn ───────────────────── long step ──────────────┐ finds the desk empty:
//!                 │ executor on the desk                             │ hands the task over, ends
//!   pace          └──── 4 ms ──▶ takes it                            ▼
//!   thread B                     └─▶ is the executor: other tasks ── inbox: the task ──▶
//! ```
//!
//! The task comes back as one of a guest does: ready, whatever it had been told meanwhile, so no wake is missed. Cost, beside a thread for each relief:
//! two uncontended locks a turn.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::Domain;
use crate::executor::{Executor, ThreadHooks};
use crate::inbox::Shared;
use crate::pace::Paced;

/// Threads beyond one for each executor: as many turns may go on that nobody waits for. With more, they would take each other's cores, and the next
/// one is waited for.
const RELIEVED_MAX: usize = 32;

/// The threads of executors.
pub(crate) struct Reliefs<D: Domain> {
    hooks: ThreadHooks,
    /// Of executors, and of turns that still go on. Ranks behind the desks of executors.
    threads: Mutex<Vec<JoinHandle<()>>>,
    times: AtomicU64,
    domain: std::marker::PhantomData<fn(D)>,
}

impl<D: Domain> Reliefs<D> {
    /// None yet.
    pub fn new(hooks: ThreadHooks) -> Reliefs<D> {
        Reliefs { hooks, threads: Mutex::default(), times: AtomicU64::new(0), domain: std::marker::PhantomData }
    }

    /// How many there were.
    pub fn times(&self) -> u64 {
        self.times.load(Ordering::Relaxed)
    }

    /// All threads, to be waited for.
    pub fn take_threads(&self) -> Vec<JoinHandle<()>> {
        std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Starts a thread that is `executor`.
    ///
    /// Errors: those of the operating system when it refuses a thread, with the executor.
    pub fn start(&self, executor: Box<Executor<D>>) -> Result<(), (io::Error, Box<Executor<D>>)> {
        let number = executor.shared.number;
        let begins = self.hooks.begins;
        let handed = Arc::new(Mutex::new(Some(executor)));
        let take = |handed: &Mutex<Option<_>>| handed.lock().unwrap_or_else(PoisonError::into_inner).take();
        let own = handed.clone();
        let thread = std::thread::Builder::new()
            .name(format!("executor-{number}"))
            // Scopes nest on the stack, a few frames each; plans bound their depth.
            .stack_size(16 << 20)
            .spawn(move || {
                if let Some(executor) = take(&own) {
                    executor.run(begins(number));
                }
            });
        match thread {
            Ok(thread) => {
                let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
                threads.retain(|thread| !thread.is_finished());
                threads.push(thread);
                Ok(())
            }
            Err(error) => Err((error, take(&handed).expect("no thread has taken it"))),
        }
    }

    /// Gives the executor to a thread of its own if `paced` is still in that turn, and there are not too many such turns.
    pub fn relieve(&self, shared: &Shared<D>, paced: &Arc<Paced>, turn: u64) {
        let mut desk = shared.desk();
        let is_same = |executor: &mut Box<Executor<D>>| Arc::ptr_eq(executor.paced(), paced);
        if paced.turn.load(Ordering::Relaxed) != turn || self.is_crowded(shared.peers.count()) {
            return;
        }
        let Some(mut executor) = desk.take_if(is_same) else { return };
        executor.leave_turn();
        match self.start(executor) {
            Ok(()) => {
                self.times.fetch_add(1, Ordering::Relaxed);
                // It is there: it does not get past the desk.
                (self.hooks.is_relieved)(paced.thread.load(Ordering::Relaxed));
            }
            // Then the others have to wait for the turn after all.
            Err((_, mut executor)) => {
                executor.set_paced(paced.clone());
                *desk = Some(executor);
            }
        }
    }

    fn is_crowded(&self, executors: usize) -> bool {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.retain(|thread| !thread.is_finished());
        threads.len() >= executors + RELIEVED_MAX
    }
}
