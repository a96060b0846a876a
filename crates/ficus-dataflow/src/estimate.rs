//! How large a query is likely to be, by what equal ones were before it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A run that has had more than this many times what was expected is as large as what it has had.
const TOLERANCE: u64 = 2;

/// Runs of one query, and of all queries of a kind, of which the smallest counts, and up to twice as many.
const RUNS_OF_QUERY: u32 = 8;
const RUNS_OF_KIND: u32 = 64;

/// What a run of a query is expected to have of its executor, in work units: shared by the runs of one query, or of all of a kind.
///
/// It is the size of the smallest of the last runs. So a query is taken for a large one, and waits behind others, only where all of them have been
/// large for a while; one of which nothing is known counts as a small one that has just come.
#[derive(Debug)]
pub struct Estimate {
    /// 0: nothing is known.
    units: AtomicU64,
    /// Protects what that is made of; held while a run is added.
    runs: Mutex<Runs>,
    /// Of queries of the same kind, which say what is expected as long as nothing is known, and learn as well.
    kind: Option<Arc<Estimate>>,
}

#[derive(Debug)]
struct Runs {
    /// So many are a period.
    in_period: u32,
    /// Those of this one.
    count: u32,
    least: u64,
    /// Of the period before, if there was one.
    least_before: Option<u64>,
}

impl Estimate {
    fn new(in_period: u32, kind: Option<Arc<Estimate>>) -> Estimate {
        let runs = Runs { in_period, count: 0, least: u64::MAX, least_before: None };
        Estimate { units: AtomicU64::new(0), runs: Mutex::new(runs), kind }
    }

    /// Of a kind of queries of which nothing is known. It says nothing before it has seen [many runs](RUNS_OF_KIND), since they may differ.
    pub fn of_kind() -> Estimate {
        Estimate::new(RUNS_OF_KIND, None)
    }

    /// Of a query of which nothing is known but what others of its kind were.
    pub fn of_query(kind: Arc<Estimate>) -> Estimate {
        Estimate::new(RUNS_OF_QUERY, Some(kind))
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
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.add(units);
        let is_known = self.kind.is_some() || runs.least_before.is_some();
        self.units.store(if is_known { runs.least() } else { 0 }, Ordering::Relaxed);
        drop(runs);
        self.kind.iter().for_each(|kind| kind.learn(units));
    }

    /// A run was stopped when it had had so many units. That one was stopped early does not say that it was small.
    pub(crate) fn learn_at_least(&self, units: u64) {
        if units >= self.expected() {
            self.learn(units);
        }
    }
}

impl Runs {
    fn add(&mut self, units: u64) {
        self.count += 1;
        self.least = self.least.min(units);
        if self.count == self.in_period {
            self.least_before = Some(self.least);
            (self.count, self.least) = (0, u64::MAX);
        }
    }

    /// Of this period and the one before.
    fn least(&self) -> u64 {
        self.least.min(self.least_before.unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_query() -> Estimate {
        Estimate::of_query(Arc::new(Estimate::of_kind()))
    }

    #[test]
    fn a_query_is_as_large_as_the_smallest_of_its_last_runs() {
        let estimate = of_query();
        assert_eq!(estimate.size(70), 70);
        estimate.learn(1_000);
        assert_eq!([0, 999, 2_000, 2_001].map(|served| estimate.size(served)), [1_000, 1_000, 1_000, 2_001]);
        estimate.learn(9_000);
        assert_eq!(estimate.size(0), 1_000);
        estimate.learn(3);
        assert_eq!(estimate.size(0), 3);
        // The small one is forgotten a period behind its own.
        let later: Vec<u64> = (0..2 * RUNS_OF_QUERY)
            .map(|_| {
                estimate.learn(9_000);
                estimate.size(0)
            })
            .collect();
        let small = later.iter().take_while(|size| **size == 3).count();
        assert!((RUNS_OF_QUERY as usize..2 * RUNS_OF_QUERY as usize).contains(&small), "{later:?}");
        assert!(later[small..].iter().all(|size| *size == 9_000), "{later:?}");
    }

    #[test]
    fn what_was_stopped_early_says_nothing() {
        let estimate = of_query();
        estimate.learn_at_least(8_000);
        estimate.learn_at_least(10);
        assert_eq!(estimate.size(0), 8_000);
    }

    #[test]
    fn a_kind_speaks_for_queries_of_which_nothing_is_known() {
        let kind = Arc::new(Estimate::of_kind());
        let [large, new] = [(); 2].map(|()| Estimate::of_query(kind.clone()));
        for _ in 1..RUNS_OF_KIND {
            large.learn(1_000);
        }
        // One more could be a small one.
        assert_eq!([&large, &new].map(|own| own.size(5)), [1_000, 5]);
        large.learn(1_000);
        assert_eq!([&large, &new].map(|own| own.size(5)), [1_000, 1_000]);
        // A small one of the kind speaks for those that are not known, and not against those that are.
        Estimate::of_query(kind.clone()).learn(10);
        assert_eq!([&large, &new].map(|own| own.size(0)), [1_000, 10]);
    }
}
