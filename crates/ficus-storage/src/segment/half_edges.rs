//! Half-edges of all vertices of a tablet in one direction, as columns, and those of one vertex as slices of them.
//!
//! The half-edges of row `r` are the entries `offsets[r]..offsets[r + 1]` of every column, in the order (label, edge
//! sequence). Rows are slots, or ranks of vertices where few slots have one. Neighbours are kept at full width, so that
//! they are handed out as a slice.

use std::ops::Range;

use ficus_model::{LabelId, VertexId};

use super::EdgePosition;
use super::damage::damaged;
use super::file::{FileBuilder, Owner, SegmentFile, part};
use super::numbers::{Numbers, PlainNumbers, slice};
use super::numbers_builder::NumbersBuilder;
use super::rows::RowsBuilder;
use super::short_half_edges::ShortHalfEdges;
use crate::StoreError;

/// Half-edges being collected.
#[derive(Debug, Default)]
pub(super) struct HalfEdgeColumnsBuilder {
    /// Where those of each vertex begin.
    starts: NumbersBuilder,
    neighbours: NumbersBuilder,
    pub(super) sequences: NumbersBuilder,
    labels: NumbersBuilder,
    last: Option<(LabelId, u64)>,
}

impl HalfEdgeColumnsBuilder {
    /// Goes on with the next vertex.
    pub(super) fn begin_vertex(&mut self) {
        self.starts.push(self.neighbours.len() as u64);
        self.last = None;
    }

    #[inline]
    pub(super) fn push(&mut self, label: LabelId, sequence: u64, neighbour: VertexId) {
        assert!(self.last < Some((label, sequence)), "half-edges come ordered by label and edge");
        self.last = Some((label, sequence));
        self.neighbours.push(neighbour.0);
        self.sequences.push(sequence);
        self.labels.push(u64::from(label.0));
    }

    pub(super) fn len(&self) -> usize {
        self.neighbours.len()
    }

    pub(super) fn put(self, rows: &RowsBuilder, file: &mut FileBuilder, owner: Owner) {
        let end = self.neighbours.len() as u64;
        let mut offsets = rows.spread(self.starts, end);
        offsets.push(end);
        offsets.put_plain(file, owner.part(part::OFFSETS));
        self.neighbours.put_plain(file, owner.part(part::NEIGHBOURS));
        self.sequences.put(file, owner.part(part::SEQUENCES), 0);
        self.labels.put(file, owner.part(part::LABELS), 0);
    }
}

/// Half-edges of a tablet in one direction, to be read.
#[derive(Clone, Debug)]
pub(super) struct HalfEdgeColumns {
    offsets: PlainNumbers,
    neighbours: PlainNumbers,
    sequences: Numbers,
    labels: Numbers,
}

/// For vertices without half-edges.
static NONE: HalfEdgeColumns = HalfEdgeColumns {
    offsets: PlainNumbers::EMPTY,
    neighbours: PlainNumbers::EMPTY,
    sequences: Numbers::EMPTY,
    labels: Numbers::EMPTY,
};

impl HalfEdgeColumns {
    /// Opens the columns of so many rows.
    pub(super) fn open(file: &SegmentFile, owner: Owner, rows: u64) -> Result<HalfEdgeColumns, StoreError> {
        let name = owner.part(part::OFFSETS);
        let Some(entries) = rows.checked_add(1) else {
            return Err(file.corrupt(file.entry(name)?, "there are too many slots"));
        };
        let offsets = PlainNumbers::open(file, name, entries)?;
        let count = offsets.get(rows as usize);
        Ok(HalfEdgeColumns {
            offsets,
            neighbours: PlainNumbers::open(file, owner.part(part::NEIGHBOURS), count)?,
            sequences: Numbers::open_counted(file, owner.part(part::SEQUENCES), count)?,
            labels: Numbers::open_counted(file, owner.part(part::LABELS), count)?,
        })
    }

    /// The half-edges of a row.
    #[inline(always)]
    pub(super) fn of_row(&self, row: u64) -> HalfEdges<'_> {
        let (start, end) = self.offsets.pair(usize::try_from(row).unwrap_or(usize::MAX));
        if start > end || end > self.neighbours.len() {
            damaged();
        }
        HalfEdges { columns: self, start, end }
    }

    /// Begins to load where the half-edges of a row are.
    #[inline(always)]
    pub(super) fn prefetch_row(&self, row: u64) {
        self.offsets.prefetch(row as usize);
    }

    /// Begins to load the first half-edges of a row.
    #[inline(always)]
    pub(super) fn prefetch_half_edges(&self, row: u64) {
        let (start, end) = self.offsets.pair(row as usize);
        if start < end {
            self.neighbours.prefetch(start);
            // Where those of one label are is searched for: at both ends, then in the middle.
            self.labels.prefetch(start as u64);
            self.labels.prefetch((start + (end - start) / 2) as u64);
            self.labels.prefetch(end as u64 - 1);
        }
    }

    /// Offsets and neighbours as slices, if these are all half-edges with the label.
    pub(super) fn plain(&self, label: Option<LabelId>) -> Option<(&[u32], &[u32])> {
        let only = label.is_none_or(|label| self.labels.constant() == Some(u64::from(label.0)));
        match (&self.offsets, &self.neighbours) {
            (PlainNumbers::U32(offsets), PlainNumbers::U32(neighbours)) if only => Some((offsets, neighbours)),
            _ => None,
        }
    }

    /// The columns by themselves, if they have 32 bits an entry.
    pub(super) fn short(&self) -> Option<ShortHalfEdges> {
        match (&self.offsets, &self.neighbours) {
            (PlainNumbers::U32(offsets), PlainNumbers::U32(neighbours)) => Some(ShortHalfEdges {
                offsets: offsets.clone(),
                neighbours: neighbours.clone(),
                labels: self.labels.clone(),
            }),
            _ => None,
        }
    }

    /// Number of half-edges.
    pub(super) fn len(&self) -> u64 {
        self.neighbours.len() as u64
    }

    /// The row that a half-edge belongs to. Logarithmic.
    pub(super) fn row_of(&self, position: u64) -> u64 {
        self.offsets.upper_bound(position) as u64 - 1
    }

    /// Number of half-edges from a position on with one label and row; 0 unless they begin there.
    pub(super) fn run_length(&self, position: u64) -> usize {
        if position >= self.len() {
            return 0;
        }
        let run = self.of_row(self.row_of(position)).with_label(self.label(position));
        if run.start as u64 == position { run.len() } else { 0 }
    }

    #[inline(always)]
    pub(super) fn sequence(&self, position: u64) -> u64 {
        self.sequences.get(position)
    }

    #[inline(always)]
    pub(super) fn label(&self, position: u64) -> LabelId {
        LabelId(self.labels.get(position) as u32)
    }

    #[inline(always)]
    pub(super) fn neighbour(&self, position: u64) -> VertexId {
        VertexId(self.neighbours.get(position as usize))
    }

    /// Checks offsets and order; for `verify`.
    pub(super) fn verify(&self) -> Result<(), &'static str> {
        if !self.offsets.are_offsets(self.len()) {
            return Err("the offsets of half-edges are out of order");
        }
        if self.labels.find(|label| label > u64::from(u32::MAX)).is_some() {
            return Err("a label of a half-edge is too large");
        }
        for row in 0..self.offsets.len() as u64 - 1 {
            let half_edges = self.of_row(row);
            let key = |index| (half_edges.label(index), half_edges.sequence(index));
            if !(1..half_edges.len()).all(|index| key(index - 1) < key(index)) {
                return Err("the half-edges of a vertex are out of order");
            }
        }
        Ok(())
    }
}

/// Half-edges of one vertex in the order (label, edge sequence).
#[derive(Clone, Copy, Debug)]
pub(crate) struct HalfEdges<'a> {
    columns: &'a HalfEdgeColumns,
    start: usize,
    end: usize,
}

/// Neighbours as they are stored.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Neighbours<'a> {
    /// All vertex ids of the tablet's half-edges are below 2^32.
    U32(&'a [u32]),
    /// Any vertex ids.
    U64(&'a [u64]),
}

impl Neighbours<'_> {
    /// Hands out all of them.
    #[inline(always)]
    pub(crate) fn visit(self, visit: &mut impl FnMut(VertexId)) {
        match self {
            Neighbours::U32(neighbours) => neighbours.iter().for_each(|vertex| visit(VertexId(u64::from(*vertex)))),
            Neighbours::U64(neighbours) => neighbours.iter().for_each(|vertex| visit(VertexId(*vertex))),
        }
    }
}

impl<'a> HalfEdges<'a> {
    /// No half-edges.
    pub(crate) fn none() -> HalfEdges<'a> {
        HalfEdges { columns: &NONE, start: 0, end: 0 }
    }

    /// Number of half-edges.
    #[inline]
    pub(crate) fn len(self) -> usize {
        self.end - self.start
    }

    /// True if there are none.
    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Where those with a label are among these; as cheap as [`HalfEdges::with_label`].
    #[inline]
    pub(crate) fn range_of_label(self, label: LabelId) -> Range<usize> {
        let labelled = self.with_label(label);
        labelled.start - self.start..labelled.end - self.start
    }

    /// Those with a label. Free if the tablet has one edge label in this direction, else a few cycles for a short list and logarithmic for a
    /// long one.
    #[inline]
    pub(crate) fn with_label(self, label: LabelId) -> HalfEdges<'a> {
        let wanted = u64::from(label.0);
        let found = match self.columns.labels.constant() {
            Some(only) if only == wanted => self.start..self.end,
            Some(_) => self.start..self.start,
            None => self.columns.labels.equal_range(self.start..self.end, wanted),
        };
        HalfEdges { columns: self.columns, start: found.start, end: found.end }
    }

    /// The half-edges `start..end` of these.
    #[inline]
    pub(crate) fn range(self, start: usize, end: usize) -> HalfEdges<'a> {
        assert!(start <= end && end <= self.len(), "a range inside the list");
        HalfEdges { columns: self.columns, start: self.start + start, end: self.start + end }
    }

    #[inline(always)]
    fn at(self, index: usize) -> u64 {
        debug_assert!(index < self.len());
        (self.start + index) as u64
    }

    /// The label of one.
    #[inline(always)]
    pub(crate) fn label(self, index: usize) -> LabelId {
        self.columns.label(self.at(index))
    }

    /// The edge sequence of one.
    #[inline(always)]
    pub(crate) fn sequence(self, index: usize) -> u64 {
        self.columns.sequence(self.at(index))
    }

    /// The vertex at the other end of one.
    #[inline(always)]
    pub(crate) fn neighbour(self, index: usize) -> VertexId {
        self.columns.neighbour(self.at(index))
    }

    /// The vertices at the other ends of all.
    #[inline(always)]
    pub(crate) fn neighbours(self) -> Neighbours<'a> {
        match &self.columns.neighbours {
            PlainNumbers::U32(neighbours) => Neighbours::U32(slice(neighbours, self.start..self.end)),
            PlainNumbers::U64(neighbours) => Neighbours::U64(slice(neighbours, self.start..self.end)),
        }
    }

    /// Where the half-edge of an edge is. Logarithmic.
    pub(crate) fn position_of(self, label: LabelId, sequence: u64) -> Option<usize> {
        let index = self.lower_bound(label, sequence);
        (index < self.len() && (self.label(index), self.sequence(index)) == (label, sequence)).then_some(index)
    }

    /// The index of the first half-edge at or after (label, sequence). Logarithmic.
    pub(crate) fn lower_bound(self, label: LabelId, sequence: u64) -> usize {
        let labelled = self.with_label(label);
        if labelled.is_empty() {
            let after = self.columns.labels.lower_bound(self.start..self.end, u64::from(label.0));
            return after - self.start;
        }
        self.columns.sequences.lower_bound(labelled.start..labelled.end, sequence) - self.start
    }

    /// The position of the first in its columns.
    #[inline]
    pub(super) fn first_position(self) -> u64 {
        self.start as u64
    }

    /// The edge of an out half-edge. For in half-edges this means nothing.
    #[inline]
    pub(crate) fn edge_position(self, index: usize) -> EdgePosition {
        EdgePosition(self.at(index))
    }
}
