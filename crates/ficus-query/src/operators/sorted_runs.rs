//! Rows in the order of their keys, without a long turn: runs are sorted as they fill, and merged as rows are taken.
//!
//! Rows of equal keys keep the order in which they came. Sorting n rows costs O(n log n) comparisons as a whole, of which no step does more
//! than one run; a row that is taken costs O(log(n / run)).

use std::cmp::Ordering;

use ficus_dataflow::Remains;
use ficus_model::{ElementResolver, Order, Value, allocated_bytes};
use smallvec::SmallVec;

use crate::budget::{Held, MemoryAccount};
use crate::context::Result;
use crate::flat::{Chunks, Piece};
use crate::functions::local::{compare_keys, sort_by_keys};
use crate::growing;
use crate::random::Random;

/// Rows of a run: sorting as many takes less than a millisecond.
pub const RUN_ROWS: usize = 2048;

/// What a row is ranked by: mostly one key, which lies beside the row.
pub type Keys = SmallVec<[Value; 1]>;

/// A row with what it is ranked by.
pub type Keyed<T> = (Keys, T);

struct Run<T: Piece> {
    rows: Chunks<Keyed<T>>,
    held: Held,
}

impl<T: Piece> Run<T> {
    fn head(&self) -> Option<&[Value]> {
        self.rows.front().map(|(keys, _)| &**keys)
    }
}

/// Rows that are being ranked.
pub struct SortedRuns<T: Piece> {
    filling: Chunks<Keyed<T>>,
    held: Held,
    runs: Vec<Run<T>>,
    /// Runs that have rows left, as a heap: the one whose head comes first on top. Empty until rows are taken.
    heap: Vec<usize>,
    is_merging: bool,
    /// How many rows at the front are still to be shuffled; none before that begins.
    unshuffled: Option<usize>,
}

impl<T: Piece> Default for SortedRuns<T> {
    fn default() -> Self {
        SortedRuns {
            filling: Chunks::new(),
            held: Held::default(),
            runs: Vec::new(),
            heap: Vec::new(),
            is_merging: false,
            unshuffled: None,
        }
    }
}

impl<T: Piece> SortedRuns<T> {
    /// Adds a row, of which `bytes` are kept beside its keys; true if that completed a run, which was then sorted. Not to be called once rows were
    /// taken.
    ///
    /// Errors: `Budget` or `ServerMemory`.
    pub fn push(
        &mut self,
        row: Keyed<T>,
        bytes: usize,
        account: &MemoryAccount,
        orders: &[Order],
        resolver: &dyn ElementResolver,
    ) -> Result<bool> {
        let own = |key: &Value| key.size_hint_bytes() - size_of::<Value>();
        let apart = if row.0.spilled() { allocated_bytes(row.0.capacity() * size_of::<Value>()) } else { 0 };
        let keys = apart + row.0.iter().map(own).sum::<usize>();
        self.held.add(account, size_of::<Keyed<T>>() + keys + bytes)?;
        self.filling.push_back(row);
        if self.filling.len() < RUN_ROWS || orders.last() == Some(&Order::Shuffle) {
            return Ok(false);
        }
        self.end_run(orders, resolver);
        Ok(true)
    }

    fn end_run(&mut self, orders: &[Order], resolver: &dyn ElementResolver) {
        let mut rows = std::mem::take(&mut self.filling).into_vec();
        sort_by_keys(&mut rows, orders, resolver);
        self.runs.push(Run { rows: rows.into_iter().collect(), held: std::mem::take(&mut self.held) });
    }

    /// Readies the rows for [`SortedRuns::next`]; false if there is more to do, after about as much work as a run takes.
    pub fn prepare(&mut self, orders: &[Order], resolver: &dyn ElementResolver, random: &mut Random) -> bool {
        if self.is_merging {
            return true;
        }
        if orders.last() == Some(&Order::Shuffle) && !self.shuffle(random) {
            return false;
        }
        self.is_merging = true;
        // What is shuffled is taken from where it is.
        if orders.last() != Some(&Order::Shuffle) {
            self.end_run(orders, resolver);
        }
        self.heap = (0..self.runs.len()).filter(|run| self.runs[*run].head().is_some()).collect();
        for position in (0..self.heap.len() / 2).rev() {
            self.sift_down(position, orders, resolver);
        }
        true
    }

    /// A part of a shuffle by Fisher and Yates, from the end; true when it is done.
    fn shuffle(&mut self, random: &mut Random) -> bool {
        let left = self.unshuffled.get_or_insert(self.filling.len());
        for _ in 0..RUN_ROWS {
            if *left <= 1 {
                return true;
            }
            *left -= 1;
            self.filling.swap(*left, random.below(*left + 1));
        }
        false
    }

    /// Takes the next row of those that are prepared; none when all are taken, after which rows can be added again.
    pub fn next(&mut self, orders: &[Order], resolver: &dyn ElementResolver) -> Option<T> {
        if let Some((_, row)) = self.filling.pop_front() {
            return Some(row);
        }
        let Some(&first) = self.heap.first() else {
            *self = SortedRuns::default();
            return None;
        };
        let run = &mut self.runs[first];
        let row = run.rows.pop_front().map(|(_, row)| row);
        if run.head().is_none() {
            run.rows = Chunks::new();
            run.held.give_back();
            self.heap.swap_remove(0);
        }
        self.sift_down(0, orders, resolver);
        row
    }

    /// Hands all over to be freed in pieces.
    pub fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>)
    where
        T: Send + 'static,
    {
        for run in &mut self.runs {
            growing::surrender(std::mem::take(&mut run.rows), &mut run.held, remains);
        }
        growing::surrender(std::mem::take(&mut self.filling), &mut self.held, remains);
    }

    fn comes_before(&self, a: usize, b: usize, orders: &[Order], resolver: &dyn ElementResolver) -> bool {
        let (Some(first), Some(second)) = (self.runs[a].head(), self.runs[b].head()) else { return false };
        // Of equal rows those of the earlier run came first.
        compare_keys(first, second, orders, resolver).then(a.cmp(&b)) == Ordering::Less
    }

    fn sift_down(&mut self, mut position: usize, orders: &[Order], resolver: &dyn ElementResolver) {
        loop {
            let mut first = position;
            for child in [2 * position + 1, 2 * position + 2] {
                if child < self.heap.len() && self.comes_before(self.heap[child], self.heap[first], orders, resolver) {
                    first = child;
                }
            }
            if first == position {
                return;
            }
            self.heap.swap(position, first);
            position = first;
        }
    }
}

#[cfg(test)]
mod tests {
    use ficus_model::InternalIds;

    use super::*;

    fn all(runs: &mut SortedRuns<u64>, orders: &[Order], random: &mut Random) -> Vec<u64> {
        while !runs.prepare(orders, &InternalIds, random) {}
        std::iter::from_fn(|| runs.next(orders, &InternalIds)).collect()
    }

    #[test]
    fn runs_give_the_same_as_one_sort() {
        let account = MemoryAccount::new(1 << 30);
        for (seed, count) in [0, 1, 2, RUN_ROWS - 1, RUN_ROWS, RUN_ROWS + 1, 5 * RUN_ROWS + 77].into_iter().enumerate()
        {
            let mut random = Random::seeded(seed as u64);
            let mut keys = || Keys::from_iter([random.below(50), random.below(50)].map(|key| Value::Int(key as i32)));
            let rows: Vec<Keyed<u64>> = (0..count as u64).map(|row| (keys(), row)).collect();
            for orders in [[Order::Asc, Order::Desc], [Order::Desc, Order::Asc]] {
                let mut runs = SortedRuns::default();
                // Twice: what has ended begins anew.
                for _ in 0..2 {
                    for row in rows.clone() {
                        runs.push(row, 8, &account, &orders, &InternalIds).expect("the account is large");
                    }
                    let mut expected = rows.clone();
                    expected.sort_by(|(a, _), (b, _)| compare_keys(a, b, &orders, &InternalIds));
                    let expected: Vec<u64> = expected.into_iter().map(|(_, row)| row).collect();
                    assert_eq!(all(&mut runs, &orders, &mut random), expected, "{count} rows, seed {seed}");
                    assert_eq!(account.used_bytes(), 0);
                }
            }
        }
    }

    #[test]
    fn a_shuffle_equals_that_of_one_go_and_half_taken_runs_hand_back_what_they_hold() {
        let account = MemoryAccount::new(1 << 30);
        let mut random = Random::seeded(3);
        let mut runs = SortedRuns::default();
        for row in 0..5000 {
            runs.push((Keys::new(), row), 8, &account, &[Order::Shuffle], &InternalIds).expect("the account is large");
        }
        let mut expected: Vec<Keyed<u64>> = (0..5000).map(|row| (Keys::new(), row)).collect();
        crate::functions::local::sort_keyed(&mut expected, &[Order::Shuffle], &InternalIds, &mut random.clone());
        let expected: Vec<u64> = expected.into_iter().map(|(_, row)| row).collect();
        assert_eq!(all(&mut runs, &[Order::Shuffle], &mut random), expected);
        for row in 0..5000 {
            runs.push((Keys::from([Value::Int(row as i32)]), row), 8, &account, &[Order::Asc], &InternalIds)
                .expect("room");
        }
        assert!(runs.prepare(&[Order::Asc], &InternalIds, &mut random));
        for expected in 0..100 {
            assert_eq!(runs.next(&[Order::Asc], &InternalIds), Some(expected));
        }
        assert!(account.used_bytes() > 0);
        drop(runs);
        assert_eq!(account.used_bytes(), 0);
    }
}
