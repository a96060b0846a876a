//! The roots that readers can see: the newest one, and those of the recent past for reads of how it was.
//!
//! Each published root is a *version*. A snapshot keeps its version's pin, so the store can tell how old the oldest state is
//! that somebody still reads: every page that changed since is in memory twice. Replaced versions are kept for the retention
//! the store was opened with, at most so many of them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use arc_swap::ArcSwap;

use crate::number_range::moment_of;
use crate::root::GraphRoot;
use crate::{CommitTs, Snapshot, StoreError};

/// Which past state to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsOf {
    /// What could be read at a moment: milliseconds since 1970-01-01 UTC.
    Time(u64),
    /// The first state with all commits up to a timestamp. Commits that became visible at the same moment count as one.
    Commit(CommitTs),
}

/// How much of the past is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Retention {
    /// For how long after it was replaced.
    pub(crate) millis: u64,
    /// At most so many versions of one graph.
    pub(crate) versions: usize,
}

/// Lives as long as somebody reads a version.
#[derive(Debug)]
pub(crate) struct Pin {
    /// When the version was replaced, in milliseconds since 1970; 0 while it is the newest.
    replaced_ms: AtomicU64,
}

#[derive(Debug)]
struct Version {
    root: Arc<GraphRoot>,
    pin: Arc<Pin>,
    /// When it was published; 0 if that is not known.
    published_ms: u64,
}

/// A version that is not the newest any more.
#[derive(Debug)]
struct Replaced {
    root: Arc<GraphRoot>,
    published_ms: u64,
    replaced_ms: u64,
}

#[derive(Debug, Default)]
struct Past {
    /// Oldest first.
    retained: VecDeque<Replaced>,
    /// Pins of versions that are or were read, swept when there are twice as many as after the last sweep.
    pins: Vec<Weak<Pin>>,
    sweep_at: usize,
}

/// The versions of one graph.
#[derive(Debug)]
pub(crate) struct Versions {
    /// Swapping it is the moment a commit becomes visible.
    newest: ArcSwap<Version>,
    /// Rank: nothing is locked inside.
    past: Mutex<Past>,
}

/// Pins below which no sweep is worth while.
const SWEEP_PINS: usize = 64;

impl Past {
    fn add_pin(&mut self, pin: &Arc<Pin>) {
        if self.pins.len() >= self.sweep_at.max(SWEEP_PINS) {
            self.pins.retain(|pin| pin.strong_count() > 0);
            self.sweep_at = self.pins.len() * 2;
        }
        self.pins.push(Arc::downgrade(pin));
    }
}

impl Versions {
    /// Begins with a root of which it is not known since when it is so.
    pub(crate) fn new(root: Arc<GraphRoot>) -> Versions {
        let pin = Arc::new(Pin { replaced_ms: AtomicU64::new(0) });
        Versions { newest: ArcSwap::from_pointee(Version { root, pin, published_ms: 0 }), past: Mutex::default() }
    }

    fn past(&self) -> MutexGuard<'_, Past> {
        self.past.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows readers the next root; returns those that are not kept any more, which somebody may still read.
    pub(crate) fn publish(&self, root: Arc<GraphRoot>, now_ms: u64, retention: Retention) -> Vec<Arc<GraphRoot>> {
        let pin = Arc::new(Pin { replaced_ms: AtomicU64::new(0) });
        let next = Arc::new(Version { root, pin, published_ms: now_ms });
        // Swapped under the lock, so that who looks into the past misses no version.
        let mut past = self.past();
        let old = self.newest.swap(next);
        old.pin.replaced_ms.store(now_ms.max(1), Ordering::Release);
        past.add_pin(&old.pin);
        let is_kept = retention.millis > 0 && retention.versions > 0;
        let Version { root, published_ms, .. } = &*old;
        let mut gone = Vec::new();
        if is_kept && *published_ms > 0 {
            past.retained.push_back(Replaced {
                root: root.clone(),
                published_ms: *published_ms,
                replaced_ms: now_ms.max(*published_ms),
            });
        } else {
            gone.push(root.clone());
        }
        let end = now_ms.saturating_sub(retention.millis);
        let is_over = |past: &Past| {
            past.retained.len() > retention.versions
                || past.retained.front().is_some_and(|oldest| oldest.replaced_ms < end)
        };
        while is_over(&past) {
            gone.extend(past.retained.pop_front().map(|oldest| oldest.root));
        }
        gone
    }

    /// The newest root, for a look.
    pub(crate) fn newest(&self) -> Arc<GraphRoot> {
        self.newest.load().root.clone()
    }

    /// The newest state.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let newest = self.newest.load();
        Snapshot::pinned(newest.root.clone(), newest.pin.clone())
    }

    /// A state of the past. `now_ms` is the present.
    pub(crate) fn snapshot_as_of(&self, as_of: AsOf, now_ms: u64) -> Result<Snapshot, StoreError> {
        let mut past = self.past();
        // Nothing is published while the lock is held and the version was loaded inside.
        let newest = self.newest.load_full();
        let oldest = past.retained.front().map_or(newest.published_ms, |oldest| oldest.published_ms);
        let outside = |reason: String| StoreError::OutsideRetention { reason };
        let too_old = |oldest: String| {
            outside(format!(
                "the oldest state kept is {oldest}; ask for a later one, or keep more with the store's retention"
            ))
        };
        let found = match as_of {
            AsOf::Time(millis) if millis > now_ms => {
                return Err(outside("the moment lies in the future; ask for an earlier one".into()));
            }
            AsOf::Time(millis) if millis >= newest.published_ms => None,
            AsOf::Time(millis) => {
                let after = past.retained.partition_point(|version| version.published_ms <= millis);
                let Some(found) = after.checked_sub(1).map(|position| &past.retained[position]) else {
                    return Err(too_old(format!("of {}", moment_of(oldest))));
                };
                Some(found)
            }
            AsOf::Commit(ts) if ts > newest.root.commit_ts => {
                let newest = newest.root.commit_ts.0;
                return Err(outside(format!(
                    "the newest commit of this graph is {newest}; ask for that or an earlier one"
                )));
            }
            AsOf::Commit(ts) => {
                let position = past.retained.partition_point(|version| version.root.commit_ts < ts);
                let oldest = past.retained.front().map_or(newest.root.commit_ts, |oldest| oldest.root.commit_ts);
                if position == 0 && ts < oldest {
                    return Err(too_old(format!("of commit {}", oldest.0)));
                }
                past.retained.get(position)
            }
        };
        let Some(found) = found else { return Ok(Snapshot::pinned(newest.root.clone(), newest.pin.clone())) };
        let pin = Arc::new(Pin { replaced_ms: AtomicU64::new(found.replaced_ms.max(1)) });
        let snapshot = Snapshot::pinned(found.root.clone(), pin.clone());
        past.add_pin(&pin);
        Ok(snapshot)
    }

    /// How many milliseconds ago the oldest state that somebody still reads was replaced; 0 if all read the newest.
    pub(crate) fn oldest_reader_ms(&self, now_ms: u64) -> u64 {
        let past = self.past();
        let read = past.pins.iter().filter_map(Weak::upgrade);
        let oldest = read.map(|pin| pin.replaced_ms.load(Ordering::Acquire)).filter(|replaced| *replaced > 0).min();
        oldest.map_or(0, |replaced| now_ms.saturating_sub(replaced))
    }
}
