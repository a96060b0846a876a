//! Rows in the order of their keys, without a long turn: runs are sorted as they fill, and merged as rows are taken.
//!
//! Rows of equal keys keep the order in which they came. Sorting n rows costs O(n log n) comparisons as a whole, of which no step does more
//! than one run; a row that is taken costs O(log(n / run)).
//!
//! Where only the first k rows are wanted and k is more than a run, rows that cannot be among them go as others come: from twice as many on, a few rows
//! of each run say which keys are not behind at least k rows, and what is behind these keys is cut off the runs, a few runs at a time. So O(k) rows are
//! kept, and who brings rows learns the keys beyond which none is wanted.

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

/// Rows of a run that stand for the others when wanted rows are told from others.
const SAMPLES_PER_RUN: usize = 16;

/// Rows of all runs that do, as long as there are fewer runs: sorting them takes less than two milliseconds.
const SAMPLES_MAX: usize = 4096;

/// Runs that are looked at for what is not wanted each time one comes to them.
const RUNS_CUT: usize = 4;

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

/// Of rows of which only the first are wanted, what is known of these.
struct Wanted<T> {
    /// How many.
    first: usize,
    /// At least so many are there whose keys are not behind these; none as long as nothing was cut.
    last: Option<Keys>,
    /// Rows in runs from which on it is worth looking for better keys.
    looks_at: usize,
    /// Runs in front that were cut behind `last`.
    cut: usize,
    /// What a row takes beside its keys.
    bytes_of: fn(&T) -> usize,
}

impl<T> Wanted<T> {
    fn new(first: usize, bytes_of: fn(&T) -> usize) -> Wanted<T> {
        Wanted { first, last: None, looks_at: first.saturating_mul(2), cut: 0, bytes_of }
    }
}

/// Rows that are being ranked.
pub struct SortedRuns<T: Piece> {
    filling: Chunks<Keyed<T>>,
    held: Held,
    runs: Vec<Run<T>>,
    /// Rows in them, before any are taken.
    in_runs: usize,
    wanted: Option<Wanted<T>>,
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
            in_runs: 0,
            wanted: None,
            heap: Vec::new(),
            is_merging: false,
            unshuffled: None,
        }
    }
}

/// What a row takes that has so much beside its keys.
fn held_bytes<T>((keys, _): &Keyed<T>, bytes: usize) -> usize {
    let own = |key: &Value| key.size_hint_bytes() - size_of::<Value>();
    let apart = if keys.spilled() { allocated_bytes(keys.capacity() * size_of::<Value>()) } else { 0 };
    size_of::<Keyed<T>>() + apart + keys.iter().map(own).sum::<usize>() + bytes
}

impl<T: Piece> SortedRuns<T> {
    /// Rows of which only the first so many will be taken, not at random; `bytes_of` says of a row what [`SortedRuns::push`] is told.
    pub fn of_first(first: usize, bytes_of: fn(&T) -> usize) -> SortedRuns<T> {
        SortedRuns { wanted: Some(Wanted::new(first, bytes_of)), ..SortedRuns::default() }
    }

    /// Drops all rows: others can be added.
    pub fn clear(&mut self) {
        let wanted = self.wanted.take().map(|own| Wanted::new(own.first, own.bytes_of));
        *self = SortedRuns { wanted, ..SortedRuns::default() };
    }

    /// Keys that as many rows as are wanted are not behind: what comes later with these or with keys behind them is not wanted.
    pub fn last_wanted(&self) -> Option<&Keys> {
        self.wanted.as_ref()?.last.as_ref()
    }

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
        self.held.add(account, held_bytes(&row, bytes))?;
        self.filling.push_back(row);
        if self.filling.len() < RUN_ROWS || orders.last() == Some(&Order::Shuffle) {
            return Ok(false);
        }
        self.end_run(orders, resolver);
        self.drop_unwanted(orders, resolver);
        Ok(true)
    }

    fn end_run(&mut self, orders: &[Order], resolver: &dyn ElementResolver) {
        let mut rows = std::mem::take(&mut self.filling).into_vec();
        sort_by_keys(&mut rows, orders, resolver);
        self.in_runs += rows.len();
        self.runs.push(Run { rows: rows.into_iter().collect(), held: std::mem::take(&mut self.held) });
    }

    /// Does a part of what it takes to be rid of rows that are not wanted.
    fn drop_unwanted(&mut self, orders: &[Order], resolver: &dyn ElementResolver) {
        let Some(wanted) = &mut self.wanted else { return };
        let behind = |a: &[Value], b: &[Value]| compare_keys(a, b, orders, resolver) == Ordering::Greater;
        if self.in_runs >= wanted.looks_at {
            self.runs.retain(|run| !run.rows.is_empty());
            let last = last_of_first(&self.runs, wanted.first, orders, resolver);
            let is_better = |last: &Keys| wanted.last.as_ref().is_none_or(|own| behind(own, last));
            if let Some(last) = last.filter(is_better) {
                (wanted.last, wanted.cut) = (Some(last), 0);
            }
            // Not before all runs are cut.
            wanted.looks_at = usize::MAX;
        }
        let Some(last) = &wanted.last else { return };
        for run in self.runs.iter_mut().skip(wanted.cut).take(RUNS_CUT) {
            wanted.cut += 1;
            let worst = run.rows.len().checked_sub(1).and_then(|place| run.rows.get(place));
            if !worst.is_some_and(|(keys, _)| behind(keys, last)) {
                continue;
            }
            let mut rows = std::mem::take(&mut run.rows).into_vec();
            let kept = rows.partition_point(|(keys, _)| !behind(keys, last));
            let dropped = rows.drain(kept..);
            self.in_runs -= dropped.len();
            let bytes: usize = dropped.map(|row| held_bytes(&row, (wanted.bytes_of)(&row.1))).sum();
            run.held.subtract(bytes);
            // In a place of their own size.
            run.rows = rows.into_iter().collect();
        }
        if wanted.looks_at == usize::MAX && wanted.cut == self.runs.len() {
            wanted.looks_at = self.in_runs.saturating_add(wanted.first).max(wanted.first.saturating_mul(2));
        }
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
            self.clear();
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

/// Keys of a row that at least `first` rows of the runs are not behind, and hardly more; `None` if there are not so many.
fn last_of_first<T: Piece>(
    runs: &[Run<T>],
    first: usize,
    orders: &[Order],
    resolver: &dyn ElementResolver,
) -> Option<Keys> {
    let per_run = (SAMPLES_MAX / runs.len().max(1)).clamp(1, SAMPLES_PER_RUN);
    // Each with how many rows it is the last of.
    let mut samples: Vec<(&[Value], usize)> = Vec::with_capacity(runs.len() * per_run);
    for run in runs {
        let (rows, mut passed) = (run.rows.len(), 0);
        for sample in 1..=per_run {
            let end = rows * sample / per_run;
            if let Some((keys, _)) = end.checked_sub(1).filter(|_| end > passed).and_then(|last| run.rows.get(last)) {
                samples.push((keys, end - passed));
                passed = end;
            }
        }
    }
    sort_by_keys(&mut samples, orders, resolver);
    let mut rows = 0;
    let last = samples.into_iter().find(|(_, own)| {
        rows += own;
        rows >= first
    });
    last.map(|(keys, _)| keys.iter().cloned().collect())
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
    fn of_rows_that_are_not_wanted_few_are_kept() {
        let (seed, orders) = (20_261_127, [Order::Desc]);
        let mut random = Random::seeded(seed);
        // Better ones come first, come last, come anyhow, are few, and are all the same.
        let draws: [fn(usize, &mut Random) -> usize; 5] = [
            |row, _| (1 << 20) - row,
            |row, _| row,
            |_, random| random.below(1 << 20),
            |_, random| random.below(3),
            |_, _| 7,
        ];
        for (draw, key_of) in draws.into_iter().enumerate() {
            for first in [RUN_ROWS + 1, 10_000, 40_000, 1 << 40] {
                let account = MemoryAccount::new(1 << 30);
                let mut runs = SortedRuns::of_first(first, |_| 8);
                // Twice: what has ended begins anew.
                for _ in 0..2 {
                    let rows: Vec<Keyed<u64>> = (0..150_000)
                        .map(|row| (Keys::from([Value::Int(key_of(row, &mut random) as i32)]), row as u64))
                        .collect();
                    let mut kept_bytes_max = 0;
                    for row in &rows {
                        // As who brings them does once he knows.
                        let last = runs.last_wanted();
                        if last.is_some_and(|last| compare_keys(&row.0, last, &orders, &InternalIds) != Ordering::Less)
                        {
                            continue;
                        }
                        runs.push(row.clone(), 8, &account, &orders, &InternalIds).expect("the account is large");
                        kept_bytes_max = kept_bytes_max.max(account.used_bytes());
                    }
                    let mut expected = rows;
                    expected.sort_by(|(a, _), (b, _)| compare_keys(a, b, &orders, &InternalIds));
                    let expected: Vec<u64> = expected.into_iter().take(first).map(|(_, row)| row).collect();
                    let mut all = all(&mut runs, &orders, &mut random);
                    let rows_max = all.len();
                    all.truncate(first);
                    assert_eq!(all, expected, "seed {seed}, draw {draw}, first {first}");
                    assert_eq!(account.used_bytes(), 0);
                    if first <= 40_000 {
                        let row_bytes = size_of::<Keyed<u64>>() + 8;
                        assert!(
                            kept_bytes_max <= (3 * first + 16 * RUN_ROWS) * row_bytes,
                            "seed {seed}, draw {draw}, first {first}: {kept_bytes_max} in rows of {row_bytes}"
                        );
                        assert!(
                            rows_max < 3 * first + 16 * RUN_ROWS,
                            "seed {seed}, draw {draw}, first {first}: {rows_max}"
                        );
                    }
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
