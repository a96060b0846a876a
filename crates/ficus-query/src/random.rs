//! Random numbers of a query: small, fast, seedable, not for secrets.

use crate::context::QueryContext;

/// A linear congruential generator of 48 bits.
///
/// The multiplier, increment and the way doubles and bounded integers are made of its bits are those of
/// `java.util.Random`, so that a seed given by `SeedStrategy` chooses the same rows here as in TinkerPop.
/// Source: Knuth, "The Art of Computer Programming", vol. 2, §3.2.1.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const INCREMENT: u64 = 0xB;
const MASK: u64 = (1 << 48) - 1;

impl Random {
    /// A generator whose sequence depends on `seed` alone.
    pub fn seeded(seed: u64) -> Random {
        Random { state: (seed ^ MULTIPLIER) & MASK }
    }

    /// The next `count` bits, at most 32, as a signed number.
    fn next(&mut self, count: u32) -> i32 {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT) & MASK;
        (self.state >> (48 - count)) as u32 as i32
    }

    /// Uniform in `0.0..1.0`, with 53 bits.
    pub fn next_f64(&mut self) -> f64 {
        let high = (self.next(26) as u64) << 27;
        let low = self.next(27) as u64;
        (high + low) as f64 / (1u64 << 53) as f64
    }

    /// How long to wait for what comes once in a unit of time on average.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.next_f64()).ln()
    }

    /// Uniform in `0..bound`; 0 if `bound` is 0. Bounds beyond 2³¹ are taken as 2³¹ − 1.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = i32::try_from(bound).unwrap_or(i32::MAX);
        if bound <= 1 {
            // The generator moves all the same.
            self.next(31);
            return 0;
        }
        if bound & (bound - 1) == 0 {
            return ((i64::from(bound) * i64::from(self.next(31))) >> 31) as usize;
        }
        loop {
            let bits = self.next(31);
            let value = bits % bound;
            // Rejects the uneven rest at the top.
            if bits.wrapping_sub(value).wrapping_add(bound - 1) >= 0 {
                return value as usize;
            }
        }
    }
}

/// The random numbers of one step: a sequence of its own if the query has a seed, the query's otherwise. All operators that the step is have the same
/// sequence, those of each instance of a sub-query as well: `where(coin(0.5))` decides anew for each row.
#[derive(Clone, Copy, Debug)]
pub struct StepRandom {
    number: usize,
}

impl StepRandom {
    /// Those of the step of this number, among the steps of its plan that draw some.
    pub fn of_step(number: usize) -> StepRandom {
        StepRandom { number }
    }

    /// The generator to draw from.
    pub fn get(self, context: &mut QueryContext) -> &mut Random {
        let Some(seed) = context.seed else { return &mut context.random };
        let sequences = &mut context.step_randoms;
        if sequences.len() <= self.number {
            sequences.resize_with(self.number + 1, || Random::seeded(seed));
        }
        &mut sequences[self.number]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_the_reference_for_a_seed() {
        // The first values of java.util.Random(42).
        let mut random = Random::seeded(42);
        assert!((random.next_f64() - 0.727_563_680_032_868_1).abs() < 1e-15);
        assert!((random.next_f64() - 0.683_223_471_759_845_3).abs() < 1e-15);
        let mut random = Random::seeded(42);
        assert_eq!([random.below(10), random.below(10), random.below(10)], [0, 3, 8]);
    }
}
