//! Random numbers of one entity: each has a sequence of its own, so that nothing depends on the order in which entities are made.

use std::cell::Cell;

/// SplitMix64.
pub struct Random(Cell<u64>);

impl Random {
    /// The sequence of entity `number` of a kind, in the network of `seed`.
    pub fn of(seed: u64, kind: u64, number: u64) -> Random {
        let random = Random(Cell::new(seed));
        for word in [kind, number] {
            random.0.set(random.next() ^ word);
        }
        random
    }

    pub fn next(&self) -> u64 {
        let state = self.0.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        self.0.set(state);
        let mixed = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// From 0 to `bound` - 1; 0 if `bound` is.
    pub fn below(&self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    /// From `from` up to `to`, which is left out unless they are equal.
    pub fn between(&self, from: u64, to: u64) -> u64 {
        from + self.below(to.saturating_sub(from) as usize) as u64
    }

    /// From 0 to 1, which is left out.
    pub fn unit(&self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn chance(&self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// A number from 0 on with an exponential distribution of this mean.
    pub fn exponential(&self, mean: f64) -> f64 {
        -(1.0 - self.unit()).ln() * mean
    }

    /// A whole number that is `mean` on average.
    pub fn rounded(&self, mean: f64) -> usize {
        (mean + self.unit()) as usize
    }

    /// A rank from 0 to `count` - 1, the low ones more often: rank r about as 1 / (r + 1).
    pub fn rank(&self, count: usize) -> usize {
        let top = (count as f64 + 1.0).ln();
        (((self.unit() * top).exp() - 1.0) as usize).min(count.saturating_sub(1))
    }

    pub fn pick<T: Copy>(&self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}
