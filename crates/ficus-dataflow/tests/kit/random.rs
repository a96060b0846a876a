//! Random plans from a seed, small enough to evaluate naively.

use super::steps::{Branch, Emit, Loop, Policy, Step};

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to `bound` - 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// Makes plans. An ordered one has one right sequence of rows, whatever the batches and quotas; another only one right
/// multiset, but more kinds of scopes.
pub struct PlanMaker {
    pub random: Random,
    pub ordered: bool,
    next_loop: u32,
}

impl PlanMaker {
    pub fn new(seed: u64, ordered: bool) -> PlanMaker {
        PlanMaker { random: Random(seed), ordered, next_loop: 0 }
    }

    pub fn plan(&mut self) -> Vec<Step> {
        let mut steps = vec![Step::Expand(1 + self.random.below(5) as i64)];
        steps.extend(self.steps(4));
        steps
    }

    /// A plan with a spread somewhere, and one inside it at times.
    pub fn spread_plan(&mut self) -> Vec<Step> {
        let mut steps = vec![Step::Expand(1 + self.random.below(40) as i64)];
        if self.random.chance(30) {
            steps.push(Step::Dedup { by_value: true });
        }
        let mut held = self.rows_alone();
        if self.random.chance(40) {
            let inner = self.rows_alone();
            held.push(Step::Spread(inner));
        }
        steps.push(Step::Spread(held));
        if self.random.chance(60) {
            steps.extend(self.steps(2));
        }
        steps
    }

    /// Steps for which rows are independent of each other.
    fn rows_alone(&mut self) -> Vec<Step> {
        (0..=self.random.below(3)).map(|_| self.row_alone()).collect()
    }

    fn row_alone(&mut self) -> Step {
        match self.random.below(8) {
            0 | 1 => Step::Expand(self.random.below(5) as i64),
            2 => Step::Add(self.random.below(5) as i64 - 2),
            3 => {
                let modulus = 2 + self.random.below(3) as i64;
                Step::Keep { modulus, rest: self.random.below(modulus as u64) as i64 }
            }
            4 => {
                Step::Fork { arms: (0..=self.random.below(2)).map(|_| self.rows_alone()).collect(), inputs_at_once: 1 }
            }
            _ => loop {
                let branch = self.branch(2);
                if !super::steps::has_barrier(std::slice::from_ref(&branch)) {
                    return branch;
                }
            },
        }
    }

    fn steps(&mut self, depth: u32) -> Vec<Step> {
        let count = self.random.below(4);
        (0..count).map(|_| self.step(depth)).collect()
    }

    fn step(&mut self, depth: u32) -> Step {
        let structures = if depth > 0 { 45 } else { 0 };
        if self.random.chance(structures) {
            return match self.random.below(10) {
                0..5 => self.branch(depth - 1),
                5..7 => Step::Fork {
                    arms: self.arms(depth - 1, 3),
                    inputs_at_once: if self.ordered { 1 } else { 1 + self.random.below(4) as usize },
                },
                _ => self.loop_step(depth - 1),
            };
        }
        match self.random.below(9) {
            0 | 1 => Step::Expand(self.random.below(4) as i64),
            2 | 3 => Step::Add(self.random.below(5) as i64 - 2),
            4 => {
                let modulus = 2 + self.random.below(3) as i64;
                Step::Keep { modulus, rest: self.random.below(modulus as u64) as i64 }
            }
            5 => Step::Dedup { by_value: self.ordered },
            6 if self.ordered => Step::Limit(self.random.below(6) as usize),
            7 => Step::Sum,
            8 => Step::Sort,
            _ => Step::Add(1),
        }
    }

    fn arms(&mut self, depth: u32, most: u64) -> Vec<Vec<Step>> {
        let count = 1 + self.random.below(most);
        (0..count).map(|_| self.steps(depth)).collect()
    }

    fn branch(&mut self, depth: u32) -> Step {
        let kinds: &[Branch] = if self.ordered {
            &[
                Branch::Where,
                Branch::Not,
                Branch::Coalesce,
                Branch::FlatMap,
                Branch::Optional,
                Branch::GatherSum,
                Branch::First,
                Branch::Relay,
            ]
        } else {
            &[Branch::Where, Branch::Not, Branch::Coalesce, Branch::FlatMap, Branch::Optional, Branch::GatherSum]
        };
        let kind = kinds[self.random.below(kinds.len() as u64) as usize];
        let policies = [Policy::Fifo, Policy::Bfs, Policy::Dfs, Policy::EvenFirst];
        let policy = if self.ordered { Policy::Fifo } else { policies[self.random.below(4) as usize] };
        Step::Branch {
            kind,
            arms: self.arms(depth, 3),
            policy,
            max_instances: [1, 2, 5][self.random.below(3) as usize],
            arm_rows_limit: [1, 2, 1024][self.random.below(3) as usize],
        }
    }

    fn loop_step(&mut self, depth: u32) -> Step {
        let id = self.next_loop;
        self.next_loop += 1;
        let body = self.steps(depth);
        let barrier = super::steps::has_barrier(&body);
        let tests_first = (barrier || !self.ordered) && self.random.chance(50);
        let test =
            |random: &mut Random| random.chance(50).then(|| (2 + random.below(4) as i64, random.below(2) as i64));
        Step::Loop(Loop {
            id,
            body,
            times: self.random.below(4) as u32,
            until: test(&mut self.random),
            tests_first,
            emit: [Emit::Never, Emit::First, Emit::After][self.random.below(3) as usize],
            dfs: !self.ordered && self.random.chance(50),
            inputs_at_once: if self.ordered || self.random.chance(50) { 1 } else { usize::MAX },
            frontier_max: if self.ordered || self.random.chance(50) {
                usize::MAX
            } else {
                self.random.below(20) as usize
            },
        })
    }
}
