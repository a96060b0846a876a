//! What can stop a query from outside: cancellation and its deadline.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::NodeId;

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

/// A switch that stops one query, and a window through which others see what it does. Clones share both.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<Switch>);

#[derive(Debug, Default)]
struct Switch {
    /// 0, or who asked first: the number of an [`Interrupt`], see [`Interrupt::number`].
    asked: AtomicU8,
    /// The node that had its turn last, plus one; 0 before the first turn.
    node: AtomicU32,
    /// Work units that the query used on executors other than its own.
    units_elsewhere: AtomicU64,
    /// How often another executor was given a part of it.
    times_helped: AtomicU32,
    /// Told now and then by work that lasts; held for a copy.
    progress: Mutex<Option<Progress>>,
}

/// How far work that lasts has come, for people who look on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// What is being done.
    pub stage: &'static str,
    /// Rounds of it that are done, if it goes in rounds.
    pub round: Option<u32>,
    /// How much of the stage is done, from 0 to 1. Work in rounds may end sooner.
    pub share: f64,
}

impl CancelToken {
    /// Asks the query to stop; it does so at its next check.
    pub fn cancel(&self) {
        self.stop(Interrupt::Cancelled);
    }

    /// Asks the query to stop for this reason. The first reason counts.
    pub fn stop(&self, why: Interrupt) {
        let _ = self.0.asked.compare_exchange(0, why.number(), Ordering::Release, Ordering::Relaxed);
    }

    /// Whether somebody asked.
    pub fn is_cancelled(&self) -> bool {
        self.0.asked.load(Ordering::Acquire) != 0
    }

    /// Why it is to stop, if somebody asked.
    pub fn interrupt(&self) -> Option<Interrupt> {
        Interrupt::of_number(self.0.asked.load(Ordering::Acquire))
    }

    /// The node of its plan that had a turn last; none before the first. For people who look on.
    pub fn node_at_work(&self) -> Option<NodeId> {
        self.0.node.load(Ordering::Relaxed).checked_sub(1).map(NodeId)
    }

    /// Books work of the query on another executor.
    pub(crate) fn add_units_elsewhere(&self, units: u64) {
        self.0.units_elsewhere.fetch_add(units, Ordering::Relaxed);
    }

    pub(crate) fn units_elsewhere(&self) -> u64 {
        self.0.units_elsewhere.load(Ordering::Relaxed)
    }

    /// How often another executor was given a part of the query; 0: all was done on one.
    pub fn times_helped(&self) -> u32 {
        self.0.times_helped.load(Ordering::Relaxed)
    }

    /// Counts an executor that helps.
    pub(crate) fn count_help(&self) {
        self.0.times_helped.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether an executor has helped.
    pub(crate) fn was_helped(&self) -> bool {
        self.0.times_helped.load(Ordering::Relaxed) > 0
    }

    /// How far work that lasts has come, if any was begun.
    pub fn progress(&self) -> Option<Progress> {
        *self.0.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says how far it has come. Not for each row.
    pub fn set_progress(&self, progress: Progress) {
        *self.0.progress.lock().unwrap_or_else(PoisonError::into_inner) = Some(progress);
    }

    /// Says which node has its turn.
    #[inline]
    pub(crate) fn set_node_at_work(&self, node: NodeId) {
        self.0.node.store(node.0.saturating_add(1), Ordering::Relaxed);
    }
}

/// Why a query was stopped from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// The client does not want it any more, or is gone.
    Cancelled,
    /// Its deadline passed.
    DeadlineExceeded,
    /// Its user or an administrator ended it.
    Killed,
    /// The executors stop.
    ShutDown,
}

impl Interrupt {
    const fn number(self) -> u8 {
        match self {
            Interrupt::Cancelled => 1,
            Interrupt::DeadlineExceeded => 2,
            Interrupt::Killed => 3,
            Interrupt::ShutDown => 4,
        }
    }

    fn of_number(number: u8) -> Option<Interrupt> {
        let all = [Interrupt::Cancelled, Interrupt::DeadlineExceeded, Interrupt::Killed, Interrupt::ShutDown];
        all.into_iter().find(|interrupt| interrupt.number() == number)
    }
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
        if let Some(interrupt) = self.cancel.interrupt() {
            return Err(interrupt);
        }
        match self.deadline_ns {
            Some(deadline) if self.clock.now_ns() >= deadline => Err(Interrupt::DeadlineExceeded),
            _ => Ok(()),
        }
    }
}
