//! What spreads took in earlier runs.
//!
//! A spread that is known to take long is given help before its first row is worked on; else the first rows, which may take as long as all others, would be
//! worked on alone until it is seen that they take long. The runs of one plan ask the same, so the last one tells. Those of the plans of a kind differ in
//! their values: they tell what the least of the last few took, so that a small query is not given help because a large one came before it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A spread that took this many times as long as one has to have taken before others help is given help at once.
const KNOWN_LARGE: u64 = 4;

/// So many runs of a kind say what the next may be expected to be.
const RUNS_OF_KIND: usize = 3;

/// What a spread took: shared by all that are made for one place of a plan, or of the plans of a kind.
#[derive(Debug, Default)]
pub struct SpreadHistory {
    row_ns: AtomicU64,
    /// Of all rows. 0: nothing is known.
    total_ns: AtomicU64,
}

impl SpreadHistory {
    fn store(&self, row_ns: u64, total_ns: u64) {
        // Runs that end at once do not have to see each other.
        self.row_ns.store(row_ns, Ordering::Relaxed);
        self.total_ns.store(total_ns, Ordering::Relaxed);
    }

    fn took(&self) -> (u64, u64) {
        (self.row_ns.load(Ordering::Relaxed), self.total_ns.load(Ordering::Relaxed))
    }
}

/// What the spreads of plans of one kind took, by their place in these.
#[derive(Debug, Default)]
pub struct SpreadsOfKind {
    /// Protects the list; held for a look-up.
    places: Mutex<Vec<Arc<OfKind>>>,
}

/// What a place took in the last runs of a kind.
#[derive(Debug, Default)]
struct OfKind {
    least: SpreadHistory,
    /// Protects what that is made of; held while a run is added.
    runs: Mutex<VecDeque<(u64, u64)>>,
}

impl SpreadsOfKind {
    fn at(&self, place: usize) -> Arc<OfKind> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() <= place {
            places.resize_with(place + 1, Arc::default);
        }
        places[place].clone()
    }
}

impl OfKind {
    fn learn(&self, row_ns: u64, total_ns: u64) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.truncate(RUNS_OF_KIND - 1);
        runs.push_front((row_ns, total_ns));
        if runs.len() == RUNS_OF_KIND {
            let least = |of: fn(&(u64, u64)) -> u64| runs.iter().map(of).min().unwrap_or(0);
            self.least.store(least(|run| run.0), least(|run| run.1));
        }
    }
}

/// What one spread knows of those before it.
#[derive(Debug)]
pub struct Earlier {
    own: Arc<SpreadHistory>,
    kind: Option<Arc<OfKind>>,
}

impl Earlier {
    /// Of the same plan, and of the plans of a kind, in which it has this place.
    pub fn new(own: Arc<SpreadHistory>, kind: Option<(&SpreadsOfKind, usize)>) -> Earlier {
        Earlier { own, kind: kind.map(|(kind, place)| kind.at(place)) }
    }

    pub(super) fn learn(&self, rows: usize, total_ns: u64) {
        if rows > 0 {
            let row_ns = total_ns / rows as u64;
            self.own.store(row_ns, total_ns);
            self.kind.iter().for_each(|kind| kind.learn(row_ns, total_ns));
        }
    }

    /// How long a row, and all of them, are likely to take; 0 if nothing is known.
    fn took(&self) -> (u64, u64) {
        match (self.own.took(), &self.kind) {
            ((_, 0), Some(kind)) => kind.least.took(),
            (own, _) => own,
        }
    }

    /// How long a row is likely to take; 0 if nothing is known.
    pub(super) fn row_ns(&self) -> u64 {
        self.took().0
    }

    /// Whether so many rows are known to be worth the help of others.
    pub(super) fn is_large(&self, rows: usize, after_ns: u64) -> bool {
        let (row_ns, total_ns) = self.took();
        rows > 1 && row_ns.saturating_mul(rows as u64).min(total_ns) >= after_ns.saturating_mul(KNOWN_LARGE)
    }
}

/// What the spreads of a plan took in plans of its kind, once somebody says which kind that is.
pub type KindOfPlan = Arc<OnceLock<Arc<SpreadsOfKind>>>;

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: (usize, u64) = (10, 10_000);

    fn of_plan(kind: &SpreadsOfKind, place: usize) -> Earlier {
        Earlier::new(Arc::default(), Some((kind, place)))
    }

    #[test]
    fn the_last_run_of_a_plan_tells() {
        let earlier = Earlier::new(Arc::default(), None);
        assert!(!earlier.is_large(10, 1) && earlier.row_ns() == 0);
        earlier.learn(10, 10_000);
        assert!(earlier.is_large(10, 2_500) && !earlier.is_large(10, 2_501) && !earlier.is_large(1, 1));
        assert_eq!(earlier.row_ns(), 1_000);
        earlier.learn(0, 7);
        assert_eq!(earlier.row_ns(), 1_000);
        earlier.learn(10, 100);
        assert!(!earlier.is_large(10, 2_500));
    }

    #[test]
    fn the_least_of_the_last_runs_of_a_kind_tells_those_who_know_nothing() {
        let kind = SpreadsOfKind::default();
        let (rows, total_ns) = LARGE;
        for run in 0..RUNS_OF_KIND {
            assert!(!of_plan(&kind, 1).is_large(rows, 2_500), "{run} runs say nothing");
            of_plan(&kind, 1).learn(rows, total_ns);
        }
        assert!(of_plan(&kind, 1).is_large(rows, 2_500));
        assert!(!of_plan(&kind, 0).is_large(rows, 1) && !of_plan(&kind, 2).is_large(rows, 1), "other places");
        // What a plan knows of itself goes before.
        let small = of_plan(&kind, 1);
        small.learn(rows, 100);
        assert!(!small.is_large(rows, 2_500));
        for _ in 0..RUNS_OF_KIND {
            assert!(!of_plan(&kind, 1).is_large(rows, 2_500), "there was a small one");
            of_plan(&kind, 1).learn(rows, total_ns);
        }
        assert!(of_plan(&kind, 1).is_large(rows, 2_500));
    }
}
