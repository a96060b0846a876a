//! A few half-edges in two arrays: neighbours apart from the rest, so that reading neighbours reads nothing else.
//!
//! A block holds the half-edges of one vertex, or those of neighbouring slots one after the other; who owns it knows the ranges. Inside
//! a range they are ordered by label and edge.

use std::ops::{ControlFlow, Range};

use ficus_model::{EdgeId, LabelId, VertexId};

use crate::HalfEdge;

/// A few half-edges in two arrays. On cache lines of its own: readers would wait for the line with the counter.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct HalfEdgeBlock {
    /// The low 32 bits of neighbours.
    neighbours: Vec<u32>,
    rest: Vec<HalfEdgeRest>,
    /// The label of all, if they have one in common.
    only_label: Option<LabelId>,
    /// True if a neighbour has more than 32 bits.
    is_wide: bool,
}

/// A half-edge without the low bits of its neighbour.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HalfEdgeRest {
    edge_low: u32,
    edge_high: u16,
    neighbour_high: u16,
    label: LabelId,
}

impl HalfEdgeRest {
    fn edge(self) -> EdgeId {
        EdgeId(u64::from(self.edge_high) << 32 | u64::from(self.edge_low))
    }

    fn key(&self) -> (LabelId, EdgeId) {
        (self.label, self.edge())
    }

    fn neighbour(self, low: u32) -> VertexId {
        VertexId(u64::from(self.neighbour_high) << 32 | u64::from(low))
    }
}

impl Clone for HalfEdgeBlock {
    /// A copy is made to be changed: it has room for some half-edges more.
    fn clone(&self) -> HalfEdgeBlock {
        HalfEdgeBlock { neighbours: with_room(&self.neighbours), rest: with_room(&self.rest), ..*self }
    }
}

fn with_room<T: Copy>(entries: &[T]) -> Vec<T> {
    let mut copy = Vec::with_capacity(entries.len() + 4 + entries.len() / 16);
    copy.extend_from_slice(entries);
    copy
}

impl HalfEdgeBlock {
    /// Number of half-edges.
    pub(crate) fn len(&self) -> usize {
        self.rest.len()
    }

    /// Adds a half-edge to a range, which then is one longer.
    pub(crate) fn insert(&mut self, range: Range<usize>, label: LabelId, edge: EdgeId, neighbour: VertexId) {
        let rest = HalfEdgeRest {
            edge_low: edge.0 as u32,
            edge_high: (edge.0 >> 32) as u16,
            neighbour_high: (neighbour.0 >> 32) as u16,
            label,
        };
        let own = &self.rest[range.clone()];
        // Most come in order.
        let before = match own.last() {
            Some(last) if last.key() > rest.key() => own.partition_point(|own| own.key() < rest.key()),
            _ => own.len(),
        };
        self.neighbours.insert(range.start + before, neighbour.0 as u32);
        self.rest.insert(range.start + before, rest);
        self.only_label =
            if self.rest.len() == 1 { Some(label) } else { self.only_label.filter(|only| *only == label) };
        self.is_wide |= rest.neighbour_high != 0;
    }

    /// Removes a half-edge from a range; false if it is not there.
    pub(crate) fn remove(&mut self, range: Range<usize>, label: LabelId, edge: EdgeId) -> bool {
        let Ok(found) = self.rest[range.clone()].binary_search_by_key(&(label, edge), HalfEdgeRest::key) else {
            return false;
        };
        self.neighbours.remove(range.start + found);
        self.rest.remove(range.start + found);
        true
    }

    /// Takes out a range as a block of its own.
    pub(crate) fn take(&mut self, range: Range<usize>) -> HalfEdgeBlock {
        let neighbours = self.neighbours.drain(range.clone()).collect();
        HalfEdgeBlock {
            neighbours,
            rest: self.rest.drain(range).collect(),
            only_label: self.only_label,
            is_wide: self.is_wide,
        }
    }

    /// A range, to be read.
    #[inline]
    pub(crate) fn range(&self, range: Range<usize>) -> BlockView<'_> {
        BlockView {
            neighbours: &self.neighbours[range.clone()],
            rest: &self.rest[range],
            only_label: self.only_label,
            is_wide: self.is_wide,
        }
    }

    /// All of it, to be read.
    #[inline]
    pub(crate) fn all(&self) -> BlockView<'_> {
        let HalfEdgeBlock { neighbours, rest, only_label, is_wide } = self;
        BlockView { neighbours, rest, only_label: *only_label, is_wide: *is_wide }
    }

    /// Something of each of `step` neighbours: brings the array into the cache.
    #[inline]
    pub(super) fn touch(&self, step: usize) -> u32 {
        self.neighbours.iter().step_by(step).fold(0, |all, line| all ^ line)
    }
}

/// Half-edges of one vertex in a block, ordered by label and edge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockView<'a> {
    neighbours: &'a [u32],
    rest: &'a [HalfEdgeRest],
    /// The label of all of them, if known.
    only_label: Option<LabelId>,
    /// False if no neighbour of the block has more than 32 bits.
    is_wide: bool,
}

impl<'a> BlockView<'a> {
    /// No half-edges.
    pub(crate) const NONE: BlockView<'static> =
        BlockView { neighbours: &[], rest: &[], only_label: None, is_wide: false };

    /// Number of half-edges, of all labels.
    #[inline]
    pub(crate) fn len(self) -> usize {
        self.rest.len()
    }

    /// Number of half-edges with this label.
    pub(crate) fn len_with_label(self, label: LabelId) -> usize {
        match self.only_label {
            Some(only) => {
                if only == label {
                    self.rest.len()
                } else {
                    0
                }
            }
            None => self.rest.iter().filter(|own| own.label == label).count(),
        }
    }

    /// Hands out all: label, edge, neighbour.
    pub(crate) fn iter(self) -> impl Iterator<Item = (LabelId, HalfEdge)> + 'a {
        self.neighbours
            .iter()
            .zip(self.rest)
            .map(|(low, rest)| (rest.label, HalfEdge { edge: rest.edge(), neighbour: rest.neighbour(*low) }))
    }

    /// Hands out the half-edges at or after (`label`, `edge`) in order until `visit` breaks. With `only_label`, ends after
    /// that label.
    pub(crate) fn visit_from(
        self,
        label: LabelId,
        edge: EdgeId,
        only_label: bool,
        visit: &mut impl FnMut(LabelId, HalfEdge) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let start = match (label, edge) {
            (LabelId(0), EdgeId(0)) => 0,
            from => self.rest.partition_point(|own| own.key() < from),
        };
        let left = BlockView { neighbours: &self.neighbours[start..], rest: &self.rest[start..], ..self };
        left.iter()
            .take_while(|(own, _)| !only_label || *own == label)
            .try_for_each(|(label, half_edge)| visit(label, half_edge))
    }

    /// The neighbours as a slice, of one label or all, if they lie in one.
    #[inline]
    pub(crate) fn slice(self, label: Option<LabelId>) -> Option<&'a [u32]> {
        match (label, self.only_label) {
            _ if self.rest.is_empty() => Some(&[]),
            (Some(label), Some(only)) if label != only => Some(&[]),
            (Some(_), None) => None,
            _ if self.is_wide => None,
            _ => Some(self.neighbours),
        }
    }

    /// Hands out the neighbours, of one label or all.
    #[inline]
    pub(crate) fn visit_neighbours(self, label: Option<LabelId>, visit: &mut impl FnMut(VertexId)) {
        match self.slice(label) {
            Some(neighbours) => neighbours.iter().for_each(|neighbour| visit(VertexId(u64::from(*neighbour)))),
            None => {
                let own = self.neighbours.iter().zip(self.rest);
                own.filter(|(_, rest)| label.is_none_or(|label| label == rest.label))
                    .for_each(|(low, rest)| visit(rest.neighbour(*low)));
            }
        }
    }

    /// Checks the order and what is said of all; for tests and `check_invariants`.
    pub(crate) fn check_invariants(self) -> Result<(), String> {
        let ordered = self.rest.is_sorted_by(|a, b| a.key() < b.key());
        let labelled = self.rest.iter().all(|own| self.only_label.is_none_or(|only| only == own.label));
        let narrow = self.is_wide || self.rest.iter().all(|own| own.neighbour_high == 0);
        match ordered && labelled && narrow && self.rest.len() == self.neighbours.len() {
            true => Ok(()),
            false => Err("half-edges of a block out of order".to_string()),
        }
    }
}
