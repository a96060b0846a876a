//! Keeps turns short in time, whatever a row costs.
//!
//! Quotas count rows, and a row may cost a nanosecond or milliseconds. A thread looks every [`TURN_TIME_MAX`] whether an executor is still
//! in the turn it was in; then the turn is over at its next row. It rests once no query has run for some looks: an idle process does not wake up,
//! and queries one after the other do not each pay for waking it. Small queries of guests that are alone do not wake it at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::tenant::{Tenant, Weight};

/// A turn that lasts longer ends at its next row; up to twice as long if it began between two looks.
const TURN_TIME_MAX: Duration = Duration::from_millis(2);

/// Looks at which no query runs before it rests.
const IDLE_LOOKS: u32 = 5;

/// What others see of an executor: what its pace is kept by, and whether it can help.
#[derive(Debug, Default)]
pub(crate) struct Paced {
    /// Grows at the begin and the end of a turn: odd while one is under way.
    pub turn: AtomicU64,
    /// The turn under way is to end at its next row.
    pub urgent: AtomicBool,
    /// Tasks of the executor.
    pub load: AtomicUsize,
    /// Since when it waits for something to do, in nanoseconds of its peers' clock; 0 if it does not. Who sets it to 0 may give it a task.
    pub idle_since_ns: AtomicU64,
    /// Tasks that were ready beside the one that has its turn, when that began.
    pub others_ready: AtomicUsize,
    /// Whose task has its turn, or had the last: number and weight. Written and read by the executor's own thread.
    tenant: (AtomicU64, AtomicU32),
}

impl Paced {
    /// Says whose turn begins.
    pub fn set_tenant(&self, tenant: Tenant) {
        self.tenant.0.store(tenant.number, Ordering::Relaxed);
        self.tenant.1.store(tenant.weight.get(), Ordering::Relaxed);
    }

    /// Whose turn it is, or was last. Called on the executor.
    pub fn tenant(&self) -> Tenant {
        let weight = Weight::new(self.tenant.1.load(Ordering::Relaxed)).unwrap_or_default();
        Tenant { number: self.tenant.0.load(Ordering::Relaxed), weight }
    }
}

/// The thread.
pub(crate) struct Pace {
    thread: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    rests: AtomicBool,
    stop: AtomicBool,
}

impl Pace {
    /// Starts the thread.
    ///
    /// Errors: those of the operating system when it refuses a thread.
    pub fn start(executors: Vec<Arc<Paced>>) -> std::io::Result<Pace> {
        let shared = Arc::new(Shared::default());
        let own = shared.clone();
        let thread = std::thread::Builder::new().name("pace".into()).spawn(move || keep(&executors, &own))?;
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

fn keep(executors: &[Arc<Paced>], shared: &Shared) {
    let mut seen = vec![0; executors.len()];
    let mut idle_looks = IDLE_LOOKS;
    while !shared.stop.load(Ordering::SeqCst) {
        shared.rests.store(idle_looks >= IDLE_LOOKS, Ordering::SeqCst);
        // A task that comes after this look finds the flag set, and wakes; or it is seen at the next look.
        if executors.iter().all(|executor| executor.load.load(Ordering::SeqCst) == 0) {
            if idle_looks >= IDLE_LOOKS {
                std::thread::park();
            } else {
                idle_looks += 1;
                std::thread::park_timeout(TURN_TIME_MAX);
            }
            continue;
        }
        idle_looks = 0;
        shared.rests.store(false, Ordering::SeqCst);
        for (executor, seen) in executors.iter().zip(&mut seen) {
            let turn = executor.turn.load(Ordering::Relaxed);
            if turn == *seen && turn % 2 == 1 {
                executor.urgent.store(true, Ordering::Relaxed);
            }
            *seen = turn;
        }
        std::thread::park_timeout(TURN_TIME_MAX);
    }
}
