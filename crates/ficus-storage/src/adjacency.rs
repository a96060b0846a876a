//! The half-edges that the overlay has of one vertex with many of them in one direction, grouped by label, in insertion order inside a label.
//!
//! Insertion order is the order of edge ids, so a half-edge is found by its edge in logarithmic time. A vertex with few
//! half-edges keeps them in one array; one with many keeps an [`OrderedPages`] per label, so that appending to a vertex
//! with millions copies one leaf and its path, and the degree by label is a field.

use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::sync::Arc;

use ficus_model::{EdgeId, LabelId, VertexId};

use crate::HalfEdge;
use crate::ordered_pages::OrderedPages;

/// Half-edges up to which the one-array form is used: 24 × 16 bytes are copied in less time than a page is looked up.
const SMALL_LIMIT: usize = 24;

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
const _: () = assert!(size_of::<SmallHalfEdge>() == 16);

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

#[derive(Clone, Copy, Debug)]
pub(crate) struct SmallHalfEdge {
    label: LabelId,
    half_edge: PackedHalfEdge,
}

impl SmallHalfEdge {
    pub(crate) fn new(label: LabelId, half_edge: PackedHalfEdge) -> SmallHalfEdge {
        SmallHalfEdge { label, half_edge }
    }

    fn key(&self) -> (LabelId, EdgeId) {
        (self.label, self.half_edge.edge())
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
    Small(Arc<[SmallHalfEdge]>),
    /// Ordered by label.
    Large(Arc<Vec<LabelRun>>),
}

impl Adjacency {
    /// Half-edges that come ordered by label and edge, at most [`SMALL_LIMIT`].
    pub(crate) fn from_ascending(half_edges: impl Iterator<Item = SmallHalfEdge>) -> Adjacency {
        let list: Arc<[SmallHalfEdge]> = half_edges.collect();
        debug_assert!(list.len() <= SMALL_LIMIT && list.is_sorted_by(|a, b| a.key() < b.key()));
        if list.is_empty() { Adjacency::Empty } else { Adjacency::Small(list) }
    }

    /// Adds a half-edge whose edge is not there yet.
    pub(crate) fn insert(&mut self, label: LabelId, edge: EdgeId, neighbour: VertexId) {
        let added = SmallHalfEdge { label, half_edge: PackedHalfEdge::new(edge, neighbour) };
        match self {
            Adjacency::Empty => *self = Adjacency::Small(Arc::new([added])),
            Adjacency::Small(list) if list.len() < SMALL_LIMIT => {
                let position = list.partition_point(|half_edge| half_edge.key() < added.key());
                let (before, after) = list.split_at(position);
                // Of known length, so this is one allocation.
                *list = before.iter().chain([&added]).chain(after).copied().collect();
            }
            Adjacency::Small(list) => {
                let mut runs = runs_of(list);
                insert_into_runs(&mut runs, added);
                *self = Adjacency::Large(Arc::new(runs));
            }
            Adjacency::Large(runs) => insert_into_runs(Arc::make_mut(runs), added),
        }
    }

    /// Removes the half-edge of an edge; false if it is not there.
    pub(crate) fn remove(&mut self, label: LabelId, edge: EdgeId) -> bool {
        match self {
            Adjacency::Empty => false,
            Adjacency::Small(list) => {
                let Ok(position) = list.binary_search_by_key(&(label, edge), SmallHalfEdge::key) else { return false };
                if list.len() == 1 {
                    *self = Adjacency::Empty;
                } else {
                    *list = list[..position].iter().chain(&list[position + 1..]).copied().collect();
                }
                true
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
            Adjacency::Small(list) => list.len() as u64,
            Adjacency::Large(runs) => runs.iter().map(|run| run.half_edges.len()).sum(),
        }
    }

    /// Number of half-edges with this label.
    pub(crate) fn degree_with_label(&self, label: LabelId) -> u64 {
        match self {
            Adjacency::Empty => 0,
            Adjacency::Small(list) => list.iter().filter(|half_edge| half_edge.label == label).count() as u64,
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
            Adjacency::Small(list) => {
                let start = match (label, edge) {
                    (LabelId(0), EdgeId(0)) => 0,
                    from => list.partition_point(|half_edge| half_edge.key() < from),
                };
                list[start..]
                    .iter()
                    .take_while(|half_edge| !only_label || half_edge.label == label)
                    .try_for_each(|half_edge| visit(half_edge.label, half_edge.half_edge.unpack()))
            }
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
            Adjacency::Small(list) => {
                for small in list.iter().filter(|small| label.is_none_or(|label| label == small.label)) {
                    visit(small.half_edge.neighbour());
                }
            }
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

fn runs_of(list: &[SmallHalfEdge]) -> Vec<LabelRun> {
    list.chunk_by(|a, b| a.label == b.label)
        .map(|run| {
            let half_edges: Vec<PackedHalfEdge> = run.iter().map(|small| small.half_edge).collect();
            LabelRun { label: run[0].label, half_edges: OrderedPages::from_ascending(&half_edges) }
        })
        .collect()
}

fn insert_into_runs(runs: &mut Vec<LabelRun>, added: SmallHalfEdge) {
    let position = match runs.binary_search_by_key(&added.label, |run| run.label) {
        Ok(position) => position,
        Err(position) => {
            runs.insert(position, LabelRun { label: added.label, half_edges: OrderedPages::default() });
            position
        }
    };
    runs[position].half_edges.insert(added.half_edge);
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
