//! The half-edges of one vertex in one direction, as slices of columns.

use std::marker::PhantomData;

use ficus_model::{LabelId, VertexId};

use super::EdgePosition;

/// Half-edges of one vertex in the order (label, edge sequence).
#[derive(Clone, Copy, Debug)]
pub(crate) struct HalfEdges<'a> {
    columns: PhantomData<&'a [u8]>,
}

/// Neighbours as they are stored.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Neighbours<'a> {
    /// All vertex ids of the tablet's half-edges are below 2^32.
    U32(&'a [u32]),
    /// Any vertex ids.
    U64(&'a [u64]),
}

impl<'a> HalfEdges<'a> {
    /// No half-edges.
    pub(crate) fn none() -> HalfEdges<'a> {
        HalfEdges { columns: PhantomData }
    }

    /// Number of half-edges.
    pub(crate) fn len(self) -> usize {
        0
    }

    /// True if there are none.
    pub(crate) fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Those with a label. Free if the tablet has one edge label in this direction, else logarithmic.
    pub(crate) fn with_label(self, _label: LabelId) -> HalfEdges<'a> {
        self
    }

    /// The half-edges `start..end` of these.
    pub(crate) fn range(self, _start: usize, _end: usize) -> HalfEdges<'a> {
        self
    }

    /// The label of one.
    pub(crate) fn label(self, _index: usize) -> LabelId {
        LabelId(0)
    }

    /// The edge sequence of one.
    pub(crate) fn sequence(self, _index: usize) -> u64 {
        0
    }

    /// The vertex at the other end of one.
    pub(crate) fn neighbour(self, _index: usize) -> VertexId {
        VertexId(0)
    }

    /// The vertices at the other ends of all.
    pub(crate) fn neighbours(self) -> Neighbours<'a> {
        Neighbours::U32(&[])
    }

    /// Where the half-edge of an edge is. Logarithmic.
    pub(crate) fn position_of(self, _label: LabelId, _sequence: u64) -> Option<usize> {
        None
    }

    /// The index of the first half-edge at or after (label, sequence). Logarithmic.
    pub(crate) fn lower_bound(self, _label: LabelId, _sequence: u64) -> usize {
        0
    }

    /// The edge of an out half-edge. For in half-edges this means nothing.
    pub(crate) fn edge_position(self, index: usize) -> EdgePosition {
        EdgePosition(index as u64)
    }
}
