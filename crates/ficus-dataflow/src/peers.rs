//! What executors know of each other: who is idle, so that a query that grows can be helped.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use crate::inbox::Shared;
use crate::{Domain, SpreadOptions};

/// The executors of one set, as each of them sees them.
pub(crate) struct Peers<D: Domain> {
    /// Weak, since executors refer to their peers.
    all: OnceLock<Vec<Weak<Shared<D>>>>,
    next_task: AtomicU64,
    options: SpreadOptions,
    times_spread: AtomicU64,
    start: Instant,
}

impl<D: Domain> Peers<D> {
    /// Nobody yet.
    pub fn new(options: SpreadOptions) -> Peers<D> {
        Peers {
            all: OnceLock::new(),
            next_task: AtomicU64::new(0),
            options,
            times_spread: AtomicU64::new(0),
            start: Instant::now(),
        }
    }

    /// Says who there is. Until then, and if said again, nothing changes.
    pub fn introduce(&self, all: &[Arc<Shared<D>>]) {
        self.all.get_or_init(|| all.iter().map(Arc::downgrade).collect());
    }

    /// The number of a new task.
    pub fn next_task(&self) -> u64 {
        self.next_task.fetch_add(1, Ordering::Relaxed)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.all.get().map_or(0, Vec::len)
    }

    /// How queries spread; none if they do not, or have nowhere to.
    pub fn options(&self) -> Option<&SpreadOptions> {
        let others = self.count().saturating_sub(1);
        (self.options.is_on && others > 0).then_some(&self.options)
    }

    /// Nanoseconds since a fixed moment; never 0.
    pub fn now_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX).max(1)
    }

    /// An executor other than `own` that has had nothing to do for long enough, or but to help this task, and since when.
    fn idle(&self, own: &Arc<Shared<D>>, task: u64) -> Option<(Arc<Shared<D>>, u64)> {
        let mut others = self.others(own).map(|peer| {
            let since_ns = peer.idle_since_ns.load(Ordering::Relaxed);
            (peer, since_ns)
        });
        others.find(|(peer, since_ns)| {
            // The helper itself may still be leaving.
            let has_helped = peer.helped.load(Ordering::Relaxed) == task + 1 && peer.load.load(Ordering::Relaxed) <= 1;
            has_helped || *since_ns != 0 && self.now_ns().saturating_sub(*since_ns) >= self.options.idle_ns
        })
    }

    /// Whether there is such an executor.
    pub fn has_idle(&self, own: &Arc<Shared<D>>, task: u64) -> bool {
        self.idle(own, task).is_some()
    }

    /// Such an executor, for the caller alone.
    pub fn claim_idle(&self, own: &Arc<Shared<D>>, task: u64) -> Option<Arc<Shared<D>>> {
        let (peer, since_ns) = self.idle(own, task)?;
        let claims =
            |from: &AtomicU64, value| from.compare_exchange(value, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if !claims(&peer.helped, task + 1) && (since_ns == 0 || !claims(&peer.idle_since_ns, since_ns)) {
            return None;
        }
        self.times_spread.fetch_add(1, Ordering::Relaxed);
        Some(peer)
    }

    /// Whether an executor other than `own` waits for something to do.
    pub fn has_waiting(&self, own: &Arc<Shared<D>>) -> bool {
        self.others(own).any(|peer| peer.idle_since_ns.load(Ordering::Relaxed) != 0)
    }

    /// Such an executor, for the caller alone, who has to wake it.
    pub fn claim_waiting(&self, own: &Arc<Shared<D>>) -> Option<Arc<Shared<D>>> {
        self.others(own).find(|peer| peer.idle_since_ns.swap(0, Ordering::Relaxed) != 0)
    }

    fn others(&self, own: &Arc<Shared<D>>) -> impl Iterator<Item = Arc<Shared<D>>> {
        let all = self.all.get().into_iter().flatten();
        all.filter(|peer| peer.as_ptr() != Arc::as_ptr(own)).filter_map(Weak::upgrade)
    }

    /// Claims so far.
    pub fn times_spread(&self) -> u64 {
        self.times_spread.load(Ordering::Relaxed)
    }
}
