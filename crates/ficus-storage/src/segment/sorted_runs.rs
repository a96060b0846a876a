//! In which order the half-edges of a vertex with one label come by the sort keys of that label.
//!
//! Half-edges stay where they are, in the order (label, sequence), by which they are found. Beside them lie, for every *run* (of one
//! vertex and label) that needs it, their places in the run in the order of the keys. A run that is in that order already needs
//! nothing, and a short one is sorted when it is read.

use ficus_model::LabelId;

use super::file::{FileBuilder, Owner, SegmentFile, part};
use super::numbers::Numbers;
use super::numbers_builder::NumbersBuilder;
use crate::StoreError;
use crate::index::KeyBytes;

/// Half-edges of a run up to which sorting them is cheaper than keeping their order.
pub(crate) const SHORT_RUN: usize = if cfg!(test) { 3 } else { 32 };

/// Orders being collected, half-edge by half-edge.
#[derive(Debug, Default)]
pub(super) struct SortedRunsBuilder {
    starts: NumbersBuilder,
    ends: NumbersBuilder,
    places: NumbersBuilder,
    /// The run that goes on: its label, its first position and the keys of its half-edges.
    label: Option<LabelId>,
    start: u64,
    keys: Vec<(KeyBytes, u32)>,
}

impl SortedRunsBuilder {
    /// The next half-edge of a label with sort keys is at `position` and has this key. Must be preceded by
    /// [`SortedRunsBuilder::end_run`] at every new vertex.
    pub(super) fn push(&mut self, label: LabelId, position: u64, key: KeyBytes) {
        if self.label != Some(label) {
            self.end_run();
            self.label = Some(label);
            self.start = position;
        }
        self.keys.push((key, self.keys.len() as u32));
    }

    /// The vertex has no more half-edges of the label.
    pub(super) fn end_run(&mut self) {
        self.label = None;
        if self.keys.len() > SHORT_RUN && !self.keys.is_sorted() {
            self.keys.sort_unstable();
            self.starts.push(self.start);
            self.keys.iter().for_each(|(_, place)| self.places.push(u64::from(*place)));
            self.ends.push(self.places.len() as u64);
        }
        self.keys.clear();
    }

    pub(super) fn put(mut self, file: &mut FileBuilder, owner: Owner) {
        self.end_run();
        self.starts.put(file, owner.part(part::RUN_STARTS), 0);
        self.ends.put(file, owner.part(part::OFFSETS), 0);
        self.places.put(file, owner.part(part::POSITIONS), 0);
    }
}

/// Orders of runs, to be read.
#[derive(Clone, Debug)]
pub(super) struct SortedRuns {
    /// First positions of the runs, ascending.
    starts: Numbers,
    /// Where the places of each end.
    ends: Numbers,
    places: Numbers,
}

impl SortedRuns {
    /// Opens the orders; a file without them has none.
    pub(super) fn open(file: &SegmentFile, owner: Owner) -> Result<SortedRuns, StoreError> {
        let name = owner.part(part::RUN_STARTS);
        if file.find(name).is_none() {
            return Ok(SortedRuns { starts: Numbers::EMPTY, ends: Numbers::EMPTY, places: Numbers::EMPTY });
        }
        let starts = Numbers::open(file, name)?;
        let ends = Numbers::open_counted(file, owner.part(part::OFFSETS), starts.len())?;
        let places = Numbers::open(file, owner.part(part::POSITIONS))?;
        Ok(SortedRuns { starts, ends, places })
    }

    /// Where the order of the run with this first position begins, if it has one. Logarithmic.
    pub(super) fn find(&self, start: u64) -> Option<u64> {
        let count = self.starts.len();
        let index = self.starts.lower_bound(0..count as usize, start) as u64;
        (index < count && self.starts.get(index) == start)
            .then(|| if index == 0 { 0 } else { self.ends.get(index - 1) })
    }

    /// An entry of an order: a place in its run. A damaged file may give any.
    #[inline]
    pub(super) fn place(&self, index: u64) -> usize {
        if index < self.places.len() { self.places.get(index) as usize } else { 0 }
    }

    /// Checks that every order names each place of its run once; `run_length` tells the length of the run at a position.
    pub(super) fn verify(&self, run_length: impl Fn(u64) -> usize) -> Result<(), &'static str> {
        let mut from = 0;
        let mut last = None;
        for index in 0..self.starts.len() {
            let (start, end) = (self.starts.get(index), self.ends.get(index));
            if last.is_some_and(|last| last >= start) || end < from || end > self.places.len() {
                return Err("the sorted runs of half-edges are out of order");
            }
            let mut places: Vec<u64> = (from..end).map(|index| self.places.get(index)).collect();
            places.sort_unstable();
            if places.len() != run_length(start) || !places.into_iter().eq(0..end - from) {
                return Err("the order of a run of half-edges does not name each of them once");
            }
            (from, last) = (end, Some(start));
        }
        if from == self.places.len() { Ok(()) } else { Err("there are places of half-edges that belong to no run") }
    }
}
