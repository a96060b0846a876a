//! What the runs of a plan leave for those after them.
//!
//! Where it pays to do something another way, such as to test from its end, a run finds out by what it has spent, and pays for that. A plan is that of a text,
//! which asks the same of a graph that has hardly changed; so the next run of it begins with what this one came to. Now and then one finds out anew.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Of so many runs the first finds out by itself.
const RUNS: u32 = 32;

/// A number that one run has found, and others begin with; 0 says nothing.
#[derive(Debug, Default)]
pub struct Experience {
    runs: AtomicU32,
    found: AtomicUsize,
}

impl Experience {
    /// What the next run begins with.
    pub fn of_next_run(&self) -> usize {
        let finds_out = self.runs.fetch_add(1, Ordering::Relaxed).is_multiple_of(RUNS);
        if finds_out { 0 } else { self.found.load(Ordering::Relaxed) }
    }

    /// What a run has found that began with nothing.
    pub fn learn(&self, found: usize) {
        self.found.store(found, Ordering::Relaxed);
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
}
