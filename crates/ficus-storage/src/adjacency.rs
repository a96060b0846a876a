//! The half-edges that the overlay has of one vertex with many of them in one direction, grouped by label, in insertion order inside a label.
//!
//! Insertion order is the order of edge ids, so a half-edge is found by its edge in logarithmic time. A vertex with few
//! half-edges keeps them in one block; one with many keeps an [`OrderedPages`] per label, so that appending to a vertex
//! with millions copies one leaf and its path, and the degree by label is a field.

use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::sync::Arc;

use ficus_model::{EdgeId, LabelId, VertexId};

use crate::HalfEdge;
use crate::delta::HalfEdgeBlock;
use crate::ordered_pages::OrderedPages;

/// Half-edges up to which they are one block: 128 × 16 bytes are copied in less time than a reader needs for the way through a tree.
const SMALL_LIMIT: usize = 128;

/// Ids are packed into 48 bits.
pub(crate) const ID_BITS: u32 = 48;

/// A half-edge in 12 bytes; ordered by edge, which is unique in a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackedHalfEdge {
    edge_low: u32,
    neighbour_low: u32,
    edge_high: u16,
    neighbour_high: u16,
}

const _: () = assert!(size_of::<PackedHalfEdge>() == 12);

impl PackedHalfEdge {
    pub(crate) fn new(edge: EdgeId, neighbour: VertexId) -> PackedHalfEdge {
        debug_assert!(edge.0 >> ID_BITS == 0 && neighbour.0 >> ID_BITS == 0);
        PackedHalfEdge {
            edge_low: edge.0 as u32,
            neighbour_low: neighbour.0 as u32,
            edge_high: (edge.0 >> 32) as u16,
            neighbour_high: (neighbour.0 >> 32) as u16,
        }
    }

    fn edge(self) -> EdgeId {
        EdgeId(u64::from(self.edge_high) << 32 | u64::from(self.edge_low))
    }

    fn neighbour(self) -> VertexId {
        VertexId(u64::from(self.neighbour_high) << 32 | u64::from(self.neighbour_low))
    }

    fn unpack(self) -> HalfEdge {
        HalfEdge { edge: self.edge(), neighbour: self.neighbour() }
    }
}

impl Ord for PackedHalfEdge {
    fn cmp(&self, other: &PackedHalfEdge) -> Ordering {
        self.edge().cmp(&other.edge())
    }
}

impl PartialEq for PackedHalfEdge {
    fn eq(&self, other: &PackedHalfEdge) -> bool {
        self.edge() == other.edge()
    }
}

impl Eq for PackedHalfEdge {}

impl PartialOrd for PackedHalfEdge {
    fn partial_cmp(&self, other: &PackedHalfEdge) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct LabelRun {
    label: LabelId,
    half_edges: OrderedPages<PackedHalfEdge>,
}

/// The half-edges of one vertex in one direction.
#[derive(Clone, Debug, Default)]
pub(crate) enum Adjacency {
    #[default]
    Empty,
    /// Ordered by label, then edge.
    Small(Arc<HalfEdgeBlock>),
    /// Ordered by label.
    Large(Arc<Vec<LabelRun>>),
}

impl Adjacency {
    /// The half-edges of one vertex that were in a block with others.
    pub(crate) fn of_block(block: HalfEdgeBlock) -> Adjacency {
        if block.len() == 0 { Adjacency::Empty } else { Adjacency::Small(Arc::new(block)) }
    }

    /// Adds a half-edge whose edge is not there yet.
    pub(crate) fn insert(&mut self, label: LabelId, edge: EdgeId, neighbour: VertexId) {
        let insert_into = |block: &mut HalfEdgeBlock| block.insert(0..block.len(), label, edge, neighbour);
        match self {
            Adjacency::Empty => {
                let mut block = HalfEdgeBlock::default();
                insert_into(&mut block);
                *self = Adjacency::Small(Arc::new(block));
            }
            Adjacency::Small(block) if block.len() < SMALL_LIMIT => insert_into(Arc::make_mut(block)),
            Adjacency::Small(block) => {
                let mut runs = runs_of(block);
                insert_into_runs(&mut runs, label, PackedHalfEdge::new(edge, neighbour));
                *self = Adjacency::Large(Arc::new(runs));
            }
            Adjacency::Large(runs) => {
                insert_into_runs(Arc::make_mut(runs), label, PackedHalfEdge::new(edge, neighbour));
            }
        }
    }

    /// Removes the half-edge of an edge; false if it is not there.
    pub(crate) fn remove(&mut self, label: LabelId, edge: EdgeId) -> bool {
        match self {
            Adjacency::Empty => false,
            Adjacency::Small(block) => {
                let block = Arc::make_mut(block);
                let removed = block.remove(0..block.len(), label, edge);
                if block.len() == 0 {
                    *self = Adjacency::Empty;
                }
                removed
            }
            Adjacency::Large(runs) => {
                let Ok(position) = runs.binary_search_by_key(&label, |run| run.label) else { return false };
                let runs = Arc::make_mut(runs);
                let removed = runs[position].half_edges.remove(&PackedHalfEdge::new(edge, VertexId(0)));
                if runs[position].half_edges.len() == 0 {
                    runs.remove(position);
                }
                if runs.is_empty() {
                    *self = Adjacency::Empty;
                }
                removed
            }
        }
    }

    /// Number of half-edges, of all labels.
    pub(crate) fn degree(&self) -> u64 {
        match self {
            Adjacency::Empty => 0,
            Adjacency::Small(block) => block.len() as u64,
            Adjacency::Large(runs) => runs.iter().map(|run| run.half_edges.len()).sum(),
        }
    }

    /// Number of half-edges with this label.
    pub(crate) fn degree_with_label(&self, label: LabelId) -> u64 {
        match self {
            Adjacency::Empty => 0,
            Adjacency::Small(block) => block.all().len_with_label(label) as u64,
            Adjacency::Large(runs) => match runs.binary_search_by_key(&label, |run| run.label) {
                Ok(position) => runs[position].half_edges.len(),
                Err(_) => 0,
            },
        }
    }

    /// Hands out the half-edges at or after (`label`, `edge`) in order until `visit` breaks. With `only_label`, ends after
    /// that label.
    pub(crate) fn visit_from(
        &self,
        label: LabelId,
        edge: EdgeId,
        only_label: bool,
        visit: &mut impl FnMut(LabelId, HalfEdge) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self {
            Adjacency::Empty => ControlFlow::Continue(()),
            Adjacency::Small(block) => block.all().visit_from(label, edge, only_label, visit),
            Adjacency::Large(runs) => {
                let start = runs.partition_point(|run| run.label < label);
                for run in runs[start..].iter().take_while(|run| !only_label || run.label == label) {
                    let from = if run.label == label { edge } else { EdgeId(0) };
                    let mut flow = ControlFlow::Continue(());
                    run.half_edges.visit_from(&PackedHalfEdge::new(from, VertexId(0)), |half_edges| {
                        flow = half_edges.iter().try_for_each(|half_edge| visit(run.label, half_edge.unpack()));
                        flow.is_continue()
                    });
                    flow?;
                }
                ControlFlow::Continue(())
            }
        }
    }

    /// Hands out the neighbours of all half-edges, of one label or all.
    #[inline]
    pub(crate) fn visit_neighbours(&self, label: Option<LabelId>, visit: &mut impl FnMut(VertexId)) {
        match self {
            Adjacency::Empty => {}
            Adjacency::Small(block) => block.all().visit_neighbours(label, visit),
            Adjacency::Large(runs) => {
                for run in runs.iter().filter(|run| label.is_none_or(|label| label == run.label)) {
                    run.half_edges.visit_all(|half_edges| {
                        half_edges.iter().for_each(|half_edge| visit(half_edge.neighbour()));
                        true
                    });
                }
            }
        }
    }

    /// Checks order and counts; for tests and `check_invariants`.
    pub(crate) fn check_invariants(&self) -> Result<(), String> {
        let mut previous: Option<(LabelId, EdgeId)> = None;
        let mut count = 0;
        let ordered = self.visit_from(LabelId(0), EdgeId(0), false, &mut |label, half_edge| {
            let key = (label, half_edge.edge);
            if previous.is_some_and(|before| before >= key) {
                return ControlFlow::Break(());
            }
            previous = Some(key);
            count += 1;
            ControlFlow::Continue(())
        });
        if ordered.is_break() {
            return Err("half-edges out of order".to_string());
        }
        if count != self.degree() {
            return Err(format!("degree says {} but there are {count} half-edges", self.degree()));
        }
        Ok(())
    }
}

fn runs_of(block: &HalfEdgeBlock) -> Vec<LabelRun> {
    let half_edges: Vec<(LabelId, HalfEdge)> = block.all().iter().collect();
    let runs = half_edges.chunk_by(|(a, _), (b, _)| a == b);
    runs.map(|run| {
        let packed = run.iter().map(|(_, half_edge)| PackedHalfEdge::new(half_edge.edge, half_edge.neighbour));
        LabelRun { label: run[0].0, half_edges: OrderedPages::from_ascending(&packed.collect::<Vec<_>>()) }
    })
    .collect()
}

fn insert_into_runs(runs: &mut Vec<LabelRun>, label: LabelId, half_edge: PackedHalfEdge) {
    let position = match runs.binary_search_by_key(&label, |run| run.label) {
        Ok(position) => position,
        Err(position) => {
            runs.insert(position, LabelRun { label, half_edges: OrderedPages::default() });
            position
        }
    };
    runs[position].half_edges.insert(half_edge);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn all(adjacency: &Adjacency, label: u32, edge: u64, only_label: bool) -> Vec<(u32, u64, u64)> {
        let mut found = Vec::new();
        let _ = adjacency.visit_from(LabelId(label), EdgeId(edge), only_label, &mut |label, half_edge| {
            found.push((label.0, half_edge.edge.0, half_edge.neighbour.0));
            ControlFlow::Continue(())
        });
        found
    }

    proptest! {
        /// Random changes agree with a `BTreeMap`, across the border between the small and the large form.
        #[test]
        fn agrees_with_a_btree_map(
            operations in prop::collection::vec((0u32..10, 0u32..4, 0u64..400, 0u64..(1 << ID_BITS)), 0..400),
            from in (0u32..4, 0u64..400),
        ) {
            let mut adjacency = Adjacency::default();
            let mut model = BTreeMap::new();
            for (kind, label, edge, neighbour) in operations {
                if kind < 8 {
                    model.entry((label, edge)).or_insert_with(|| {
                        adjacency.insert(LabelId(label), EdgeId(edge), VertexId(neighbour));
                        neighbour
                    });
                } else {
                    let removed = adjacency.remove(LabelId(label), EdgeId(edge));
                    prop_assert_eq!(removed, model.remove(&(label, edge)).is_some());
                }
            }
            prop_assert_eq!(adjacency.check_invariants(), Ok(()));
            let listed = |range: std::ops::Range<(u32, u64)>| -> Vec<_> {
                model.range(range).map(|((label, edge), neighbour)| (*label, *edge, *neighbour)).collect()
            };
            let everything = listed((0, 0)..(9, 0));
            prop_assert_eq!(&all(&adjacency, 0, 0, false), &everything);
            prop_assert_eq!(all(&adjacency, from.0, from.1, false), listed(from..(9, 0)));
            prop_assert_eq!(all(&adjacency, from.0, from.1, true), listed(from..(from.0 + 1, 0)));
            prop_assert_eq!(adjacency.degree_with_label(LabelId(2)), listed((2, 0)..(3, 0)).len() as u64);
        }
    }
}
