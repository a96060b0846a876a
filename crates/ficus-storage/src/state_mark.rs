//! What changed between two states: for readers that keep something made of one and want it of the other.
//!
//! Versions of a graph share all pages that no commit between them touched. A [`StateMark`] keeps the pages of one version; comparing them
//! with those of another passes over what is shared, so that it costs what changed. Neither commits nor the log know of it.

use std::sync::{Arc, Weak};

use ficus_model::VertexId;

use crate::base::Base;
use crate::segment::Side;
use crate::tablet::Tablet;
use crate::{CommitTs, Snapshot};

/// Tells a graph from all others of all stores in this process, those that are gone included.
#[derive(Clone, Debug, Default)]
pub(crate) struct GraphIdentity(Arc<()>);

impl PartialEq for GraphIdentity {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Names a committed state: of which graph, and the newest commit in it. What a transaction wrote itself is no part of it. Keeps nothing of
/// the state in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct StateKey {
    graph: GraphIdentity,
    commit_ts: CommitTs,
}

impl StateKey {
    /// The newest commit in the state.
    pub fn commit_ts(&self) -> CommitTs {
        self.commit_ts
    }
}

/// Remembers a state without reading it: it holds the pages over the last consolidation, not the files below them, and does not count
/// as a reader. What it keeps in memory beyond the newest state is what changed since, at most an eighth of the graph.
#[derive(Clone, Debug)]
pub struct StateMark {
    key: StateKey,
    /// Which consolidation it stands on. Never upgraded: it tells two bases apart even when one is gone.
    base: Option<Weak<Base>>,
    tablets: Vec<Tablet>,
}

/// Vertices with changes of some kind, ascending, each once. There may be more than really changed, never fewer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Those with other out half-edges.
    pub out: Vec<VertexId>,
    /// Those with other in half-edges.
    pub into: Vec<VertexId>,
    /// Those that came, went, or have other properties.
    pub rows: Vec<VertexId>,
    /// The sources of edges that are in both states and have other properties, and of some more; empty unless asked for.
    pub edge_sources: Vec<VertexId>,
    /// The targets of those edges.
    pub edge_targets: Vec<VertexId>,
}

impl Snapshot {
    /// Names this state.
    pub fn key(&self) -> StateKey {
        StateKey { graph: self.root.identity.clone(), commit_ts: self.root.commit_ts }
    }

    /// Whether this is the state of that name. Costs two comparisons.
    pub fn is_state(&self, key: &StateKey) -> bool {
        key.commit_ts == self.root.commit_ts && key.graph == self.root.identity
    }

    /// Remembers this state.
    pub fn mark(&self) -> StateMark {
        StateMark {
            key: self.key(),
            base: self.root.base().map(Arc::downgrade),
            tablets: self.root.tablets().iter().map(|tablet| tablet.pages()).collect(),
        }
    }

    /// Whether [`Snapshot::changes_since`] can tell what changed: both are states of one graph, and no consolidation lies between them.
    pub fn is_comparable_with(&self, mark: &StateMark) -> bool {
        let is_same_base = match (self.root.base(), &mark.base) {
            (None, None) => true,
            (Some(own), Some(marked)) => std::ptr::eq(Arc::as_ptr(own), marked.as_ptr()),
            _ => false,
        };
        self.root.identity == mark.key.graph && is_same_base && self.root.tablets().len() == mark.tablets.len()
    }

    /// What may differ between a marked state and this one, whichever is older; `None` if that cannot be told.
    ///
    /// Cost: the pages that differ, some dozens of vertices each.
    pub fn changes_since(&self, mark: &StateMark, wants_edges: bool) -> Option<Changes> {
        if !self.is_comparable_with(mark) {
            return None;
        }
        let layout = self.root.layout;
        let mut changes = Changes::default();
        for (number, (now, then)) in self.root.tablets().iter().zip(&mark.tablets).enumerate() {
            let Changes { out, into, rows, edge_sources, edge_targets } = &mut changes;
            now.deltas(Side::Out).visit_changed(then.deltas(Side::Out), &mut |slot| {
                out.push(layout.vertex_id(slot, number));
            });
            now.deltas(Side::In).visit_changed(then.deltas(Side::In), &mut |slot| {
                into.push(layout.vertex_id(slot, number));
            });
            now.visit_changed_vertices(then, &mut |slot| rows.push(layout.vertex_id(slot, number)));
            if wants_edges {
                now.visit_changed_edges(then, &mut |edge| {
                    edge_sources.push(edge.out);
                    edge_targets.push(edge.in_);
                });
            }
        }
        let Changes { out, into, rows, edge_sources, edge_targets } = &mut changes;
        for vertices in [out, into, rows, edge_sources, edge_targets] {
            vertices.sort_unstable();
            vertices.dedup();
        }
        Some(changes)
    }
}

#[cfg(test)]
mod tests {
    use ficus_model::{Cardinality, Direction, EdgeId, Value};
    use proptest::prelude::*;

    use super::*;
    use crate::{Environment, HalfEdgeCursor, Store, StoreOptions};

    /// Neighbours with edges one way.
    fn half_edges(snapshot: &Snapshot, vertex: VertexId, direction: Direction) -> Vec<(VertexId, EdgeId)> {
        let mut found = Vec::new();
        let mut cursor = HalfEdgeCursor::default();
        while snapshot.half_edges(vertex, direction, &[], &mut cursor, 64, &mut found) {}
        found.into_iter().map(|half_edge| (half_edge.neighbour, half_edge.edge)).collect()
    }

    proptest! {
        /// What differs between any two versions of a graph is told, before and after a consolidation.
        #[test]
        fn what_differs_is_told(
            steps in prop::collection::vec((0u8..8, 0usize..60, 0usize..60), 1..80),
            consolidate_at in prop::option::of(0usize..80),
        ) {
            let store = Store::open(StoreOptions::default(), Environment::in_memory()).unwrap();
            let graph = store.create_graph("g").unwrap();
            let mut vertices = Vec::new();
            let mut edges: Vec<EdgeId> = Vec::new();
            let mut versions = vec![graph.snapshot()];
            for (number, (kind, first, second)) in steps.into_iter().enumerate() {
                let mut writing = graph.begin();
                let pick = |vertices: &[VertexId], position: usize| {
                    (!vertices.is_empty()).then(|| vertices[position % vertices.len()])
                };
                match (kind, pick(&vertices, first), pick(&vertices, second)) {
                    (0..=1, ..) | (_, None, _) => vertices.push(writing.add_vertex("v", None).unwrap()),
                    (2..=4, Some(out), Some(into)) => edges.push(writing.add_edge("e", out, into, None).unwrap()),
                    (5, Some(vertex), _) => {
                        let value = Value::Long(number as i64);
                        writing.set_vertex_property(vertex, "n", value, Cardinality::Single, None).unwrap();
                    }
                    (6, ..) if !edges.is_empty() => {
                        let edge = edges[first % edges.len()];
                        if writing.edge_exists(edge) {
                            writing.set_edge_property(edge, "n", Value::Long(number as i64)).unwrap();
                        }
                    }
                    (_, Some(vertex), _) if second % 3 == 0 => {
                        writing.remove_vertex(vertex).unwrap();
                        vertices.retain(|own| *own != vertex);
                    }
                    _ => {
                        if !edges.is_empty() {
                            let edge = edges.swap_remove(first % edges.len());
                            if writing.edge_exists(edge) {
                                writing.remove_edge(edge).unwrap();
                            }
                        }
                    }
                }
                writing.commit().unwrap();
                if consolidate_at == Some(number) {
                    store.consolidate().unwrap();
                }
                versions.push(graph.snapshot());
            }
            let key = versions[versions.len() - 1].key_id("n");
            for (then, now) in versions.iter().step_by(7).flat_map(|then| versions.iter().step_by(5).map(move |now| (then, now))) {
                let Some(changes) = now.changes_since(&then.mark(), true) else {
                    prop_assert!(consolidate_at.is_some());
                    continue;
                };
                for vertex in (0..200).map(VertexId) {
                    let is_in = |list: &[VertexId]| list.binary_search(&vertex).is_ok();
                    let row = |snapshot: &Snapshot| {
                        (snapshot.vertex_exists(vertex), key.and_then(|key| snapshot.vertex_value(vertex, key)))
                    };
                    prop_assert!(row(then) == row(now) || is_in(&changes.rows));
                    let ways = [(Direction::Out, &changes.out, &changes.edge_sources), (Direction::In, &changes.into, &changes.edge_targets)];
                    for (way, told, told_edges) in ways {
                        let (was, is) = (half_edges(then, vertex, way), half_edges(now, vertex, way));
                        prop_assert!(was == is || is_in(told));
                        let values = |snapshot: &Snapshot| -> Vec<Option<Value>> {
                            is.iter().map(|(_, edge)| key.and_then(|key| snapshot.edge_value(*edge, key))).collect()
                        };
                        prop_assert!(was != is || values(then) == values(now) || is_in(told_edges));
                    }
                }
                let same = now.changes_since(&now.mark(), true).unwrap();
                prop_assert_eq!(same, Changes::default());
            }
        }
    }
}
