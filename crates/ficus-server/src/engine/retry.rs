//! Running a request again whose own transaction met a conflict.
//!
//! Only what the client cannot tell from a slower answer is run again: a request that commits by itself, of which nothing was
//! sent yet and no part is committed, as long as its time is not up. The pauses grow and are of random length, so that
//! requests which met once do not meet again.

use std::fmt::Write;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::backend::Failure;
use crate::catalogue;

/// Tries after the first one. With 64 clients upserting one key, each round lets one of them through.
const RETRIES_MAX: u32 = 20;

/// The longest pause before the first retry; it doubles with each.
const PAUSE_FIRST: Duration = Duration::from_micros(500);

/// The longest pause of all.
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// Rows that are held back until the commit, so that a retry stays possible. More are sent as they come.
pub(super) const HELD_ROWS_MAX: usize = 4096;

/// What is counted of conflicts and retries.
#[derive(Debug, Default)]
pub(crate) struct RetryCounters {
    conflicts: AtomicU64,
    retries: AtomicU64,
}

impl RetryCounters {
    /// A commit was refused.
    pub(super) fn conflict(&self) {
        self.conflicts.fetch_add(1, Ordering::Relaxed);
    }

    /// A transaction could not be ended, by a conflict or otherwise.
    pub(super) fn conflict_if(&self, failure: &Failure) {
        if failure.code == catalogue::CONFLICT.code {
            self.conflict();
        }
    }

    /// Writes the metrics.
    pub(super) fn write(&self, out: &mut String) {
        let counters = [
            (
                "ficus_transaction_conflicts_total",
                "Commits refused by a conflict, retried ones included.",
                &self.conflicts,
            ),
            ("ficus_transaction_retries_total", "Requests run again by the server after a conflict.", &self.retries),
        ];
        for (name, help, counter) in counters {
            let _ = writeln!(out, "# HELP {name} {help}");
            let _ = writeln!(out, "# TYPE {name} counter");
            let _ = writeln!(out, "{name} {}", counter.load(Ordering::Relaxed));
        }
    }
}

/// The tries of one request.
#[derive(Clone, Debug)]
pub(super) struct Tries {
    began: Instant,
    retries: u32,
    /// The time the running statement was given.
    limit: Option<Duration>,
    runtime: Option<tokio::runtime::Handle>,
}

impl Tries {
    /// Before the first try.
    pub(super) fn new() -> Tries {
        let runtime = tokio::runtime::Handle::try_current().ok();
        Tries { began: Instant::now(), retries: 0, limit: None, runtime }
    }

    /// What is left of the time that a statement may take; the first try has all of it.
    pub(super) fn remaining(&mut self, limit: Option<Duration>) -> Option<Duration> {
        self.limit = limit;
        match self.retries {
            0 => limit,
            _ => limit.map(|limit| limit.saturating_sub(self.began.elapsed())),
        }
    }

    /// The pause before the next try, if there is to be one.
    pub(super) fn next_pause(&mut self, counters: &RetryCounters) -> Option<Duration> {
        if self.retries >= RETRIES_MAX {
            return None;
        }
        let longest = PAUSE_FIRST.saturating_mul(1 << self.retries.min(16)).min(PAUSE_MAX);
        // A new hasher has a random key.
        let part = RandomState::new().hash_one(self.retries) % 1000;
        let pause = longest.mul_f64(part as f64 / 1000.0);
        if self.limit.is_some_and(|limit| self.began.elapsed() + pause >= limit) {
            return None;
        }
        self.retries += 1;
        counters.retries.fetch_add(1, Ordering::Relaxed);
        Some(pause)
    }

    /// Does `task` after a pause, without holding up the caller.
    pub(super) fn after(&self, pause: Duration, task: impl FnOnce() + Send + 'static) {
        match &self.runtime {
            Some(runtime) => {
                runtime.spawn(async move {
                    tokio::time::sleep(pause).await;
                    task();
                });
            }
            // Without a runtime there is nobody to wait.
            None => task(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_end_by_number_and_by_time() {
        let counters = RetryCounters::default();
        let mut tries = Tries::new();
        assert_eq!(tries.remaining(None), None);
        assert_eq!(std::iter::from_fn(|| tries.next_pause(&counters)).count(), RETRIES_MAX as usize);
        let mut tries = Tries::new();
        assert_eq!(tries.remaining(Some(Duration::ZERO)), Some(Duration::ZERO));
        assert_eq!(tries.next_pause(&counters), None);
        let mut text = String::new();
        counters.write(&mut text);
        assert!(text.contains(&format!("\nficus_transaction_retries_total {RETRIES_MAX}\n")), "{text}");
    }
}
