//! What can stop a query from outside: cancellation and its deadline.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Where time comes from. Tests and the simulator bring their own.
pub trait Clock: Send + Sync {
    /// Nanoseconds since a fixed but arbitrary moment; never goes back.
    fn now_ns(&self) -> u64;
}

/// The machine's monotonic clock.
#[derive(Debug)]
pub struct MonotonicClock {
    start: Instant,
}

impl Default for MonotonicClock {
    fn default() -> Self {
        MonotonicClock { start: Instant::now() }
    }
}

impl Clock for MonotonicClock {
    fn now_ns(&self) -> u64 {
        // 584 years fit.
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// A switch that stops one query. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// Asks the query to stop; it does so at its next check.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether somebody asked.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Why a query was stopped from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// Somebody cancelled it: the client, its disconnect, an administrator, a shutdown.
    Cancelled,
    /// Its deadline passed.
    DeadlineExceeded,
}

/// The outside limits of one query.
#[derive(Clone)]
pub struct Control {
    /// The switch.
    pub cancel: CancelToken,
    /// Absolute time on `clock` after which the query fails.
    pub deadline_ns: Option<u64>,
    /// The clock the deadline is on.
    pub clock: Arc<dyn Clock>,
}

impl Control {
    /// No deadline, not cancelled, real time.
    pub fn unlimited() -> Control {
        Control { cancel: CancelToken::default(), deadline_ns: None, clock: Arc::new(MonotonicClock::default()) }
    }

    /// Fails if the query must stop. Reads the clock: once per quota, not per row.
    pub fn check(&self) -> Result<(), Interrupt> {
        if self.cancel.is_cancelled() {
            return Err(Interrupt::Cancelled);
        }
        match self.deadline_ns {
            Some(deadline) if self.clock.now_ns() >= deadline => Err(Interrupt::DeadlineExceeded),
            _ => Ok(()),
        }
    }
}
