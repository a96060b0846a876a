//! What the runs of a plan leave for those after them.
//!
//! Where it pays to do something another way, such as to test from its end, a run finds out by what it has spent, and pays for that. A plan is that of a text,
//! which asks the same of a graph that has hardly changed; so the next run of it begins with what this one came to. Now and then one finds out anew.
//!
//! The plans of a kind differ in their values. So a plan that has not run yet begins with the least that each of the last few runs of its kind came to, and
//! more of these find out anew.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Of so many runs of a plan the first finds out by itself.
const RUNS: u32 = 32;

/// The same of the plans of a kind.
const RUNS_OF_KIND: u32 = 8;

/// So many runs of a kind say what the next begins with.
const LAST_OF_KIND: usize = 3;

/// Nobody has found out yet.
const UNKNOWN: usize = usize::MAX;

/// A number that one run has found, and others begin with; 0 says nothing.
#[derive(Debug)]
pub struct Experience {
    runs: AtomicU32,
    found: AtomicUsize,
    /// That of the kind of the plan, once it is known.
    kind: OnceLock<Arc<OfKind>>,
}

impl Default for Experience {
    fn default() -> Experience {
        Experience { runs: AtomicU32::new(0), found: AtomicUsize::new(UNKNOWN), kind: OnceLock::new() }
    }
}

impl Experience {
    /// What the next run begins with.
    pub fn of_next_run(&self) -> usize {
        let finds_out = self.runs.fetch_add(1, Ordering::Relaxed).is_multiple_of(RUNS);
        match (self.found.load(Ordering::Relaxed), self.kind.get()) {
            (UNKNOWN, Some(kind)) => kind.of_next_run(),
            (UNKNOWN, None) => 0,
            _ if finds_out => 0,
            (found, _) => found,
        }
    }

    /// What a run has found that began with nothing, or that what it began with was of no use.
    pub fn learn(&self, found: usize) {
        self.found.store(found, Ordering::Relaxed);
        self.kind.get().inspect(|kind| kind.learn(found));
    }
}

/// What the runs of the plans of a kind found, at one of their places.
#[derive(Debug, Default)]
struct OfKind {
    runs: AtomicU32,
    /// The least of the last ones.
    least: AtomicUsize,
    /// Protects what that is made of; held while one is added.
    last: Mutex<VecDeque<usize>>,
}

impl OfKind {
    fn of_next_run(&self) -> usize {
        let finds_out = self.runs.fetch_add(1, Ordering::Relaxed).is_multiple_of(RUNS_OF_KIND);
        if finds_out { 0 } else { self.least.load(Ordering::Relaxed) }
    }

    fn learn(&self, found: usize) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.truncate(LAST_OF_KIND - 1);
        last.push_front(found);
        let least = if last.len() == LAST_OF_KIND { last.iter().min() } else { None };
        self.least.store(least.copied().unwrap_or(0), Ordering::Relaxed);
    }
}

/// What the runs of the plans of a kind found, by place.
#[derive(Debug, Default)]
pub struct ExperiencesOfKind {
    /// Protects the list; held for one plan.
    places: Mutex<Vec<Arc<OfKind>>>,
}

impl ExperiencesOfKind {
    /// Says to those of a plan, in order, that it is of this kind.
    pub fn tell(&self, plan: &[Arc<Experience>]) {
        if plan.is_empty() {
            return;
        }
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() < plan.len() {
            places.resize_with(plan.len(), Arc::default);
        }
        for (own, place) in plan.iter().zip(&*places) {
            own.kind.get_or_init(|| place.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_runs_one_finds_out_anew() {
        let experience = Experience::default();
        assert_eq!(experience.of_next_run(), 0);
        experience.learn(7);
        let runs: Vec<usize> = (0..2 * RUNS).map(|_| experience.of_next_run()).collect();
        assert_eq!(runs.iter().filter(|found| **found == 0).count(), 2, "{runs:?}");
        assert!(runs.iter().all(|found| [0, 7].contains(found)), "{runs:?}");
    }

    #[test]
    fn plans_of_a_kind_begin_with_the_least_of_the_last_runs() {
        let kind = ExperiencesOfKind::default();
        let plan = || {
            let plan = [Arc::new(Experience::default()), Arc::new(Experience::default())];
            kind.tell(&plan);
            plan
        };
        for found in [9, 5, 7] {
            let [_, experience] = plan();
            assert_eq!(experience.of_next_run(), 0);
            experience.learn(found);
        }
        let runs: Vec<usize> = (0..RUNS_OF_KIND).map(|_| plan()[1].of_next_run()).collect();
        assert_eq!(runs.iter().filter(|found| **found == 5).count() as u32, RUNS_OF_KIND - 1, "{runs:?}");
        assert_eq!(plan()[0].of_next_run(), 0, "another place");
        // A plan's own goes before, and once nothing came of it others find out again.
        let [_, experience] = plan();
        experience.of_next_run();
        experience.learn(0);
        assert_eq!([experience.of_next_run(), plan()[1].of_next_run(), plan()[1].of_next_run()], [0; 3]);
    }
}
