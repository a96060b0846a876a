//! How large a query is likely to be, by what equal ones were before it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A run that has had more than this many times what was expected is as large as what it has had.
const TOLERANCE: u64 = 2;

/// One part in this many of what a run had beyond what was expected is expected from then on.
const GROWTH: u64 = 8;

/// What a run of a query is expected to have of its executor, in work units: shared by the runs of one query, or of all of a kind.
///
/// It is the size of the smallest lately: a smaller run is believed at once, larger ones little by little. So a query is taken for a large one,
/// and waits behind others, only where all of its kind have been for a while; one of which nothing is known counts as a small one that has
/// just come.
#[derive(Debug, Default)]
pub struct Estimate {
    /// None: nothing is known.
    units: AtomicU64,
    /// Of queries of the same kind, which say what is expected as long as nothing is known, and learn as well.
    kind: Option<Arc<Estimate>>,
}

impl Estimate {
    /// Of a query of which nothing is known but what others of its kind were.
    pub fn of_kind(kind: Arc<Estimate>) -> Estimate {
        Estimate { units: AtomicU64::new(0), kind: Some(kind) }
    }

    fn expected(&self) -> u64 {
        match (self.units.load(Ordering::Relaxed), &self.kind) {
            (0, Some(kind)) => kind.expected(),
            (units, _) => units,
        }
    }

    /// Of a run that has had `served` units, how large it is.
    pub(crate) fn size(&self, served: u64) -> u64 {
        let expected = self.expected();
        if served <= expected.saturating_mul(TOLERANCE) { expected } else { served }
    }

    /// A run has ended by itself and had so many units.
    pub(crate) fn learn(&self, units: u64) {
        self.kind.iter().for_each(|kind| kind.learn(units));
        self.change(|expected| match expected {
            0 => units,
            _ if units < expected => units.max(1),
            _ => grown(expected, units),
        });
    }

    /// A run was stopped when it had had so many units.
    pub(crate) fn learn_at_least(&self, units: u64) {
        self.kind.iter().for_each(|kind| kind.learn_at_least(units));
        self.change(|expected| grown(expected, units.max(expected)));
    }

    /// Runs that end at once do not have to see each other: one of them is forgotten.
    fn change(&self, change: impl FnOnce(u64) -> u64) {
        self.units.store(change(self.units.load(Ordering::Relaxed)), Ordering::Relaxed);
    }
}

fn grown(expected: u64, units: u64) -> u64 {
    expected + (units - expected) / GROWTH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_runs_are_believed_at_once_and_large_ones_little_by_little() {
        let estimate = Estimate::default();
        assert_eq!(estimate.size(70), 70);
        estimate.learn(1_000);
        assert_eq!([0, 999, 2_000, 2_001].map(|served| estimate.size(served)), [1_000, 1_000, 1_000, 2_001]);
        estimate.learn(9_000);
        assert_eq!(estimate.size(0), 2_000);
        estimate.learn(3);
        assert_eq!(estimate.size(0), 3);
        (0..100).for_each(|_| estimate.learn(9_000));
        assert!((8_900..9_000).contains(&estimate.size(0)));
    }

    #[test]
    fn what_was_stopped_says_nothing_of_small_runs() {
        let estimate = Estimate::default();
        estimate.learn_at_least(8_000);
        assert_eq!(estimate.size(0), 1_000);
        estimate.learn_at_least(10);
        assert_eq!(estimate.size(0), 1_000);
    }

    #[test]
    fn a_kind_speaks_for_queries_of_which_nothing_is_known() {
        let kind = Arc::new(Estimate::default());
        let [large, small, new] = [(); 3].map(|()| Estimate::of_kind(kind.clone()));
        assert_eq!(new.size(5), 5);
        large.learn(1_000);
        assert_eq!([&large, &small, &new].map(|own| own.size(0)), [1_000, 1_000, 1_000]);
        small.learn(10);
        assert_eq!([&large, &small, &new].map(|own| own.size(0)), [1_000, 10, 10]);
    }
}
