//! Labels that are counted: of the half-edges of a vertex, and of many vertices at once.
//!
//! Half-edges are sorted by label, so how many of a vertex have one is told by where those of the label begin and end, whatever there are of them;
//! and what label a vertex has stands in a column. Whoever wants nothing but labels need look at no edge and no vertex.

use std::ops::ControlFlow;

use ficus_model::{Direction, EdgeId, LabelId, VertexId};

use crate::Snapshot;
use crate::segment::{HalfEdges, Place};
use crate::side_view::SideView;
use crate::snapshot::different;

/// Half-edges of one label that are looked at one by one before the end of the label is searched for.
const ONE_BY_ONE: usize = 8;

impl Snapshot {
    /// Appends the labels of the half-edges of a vertex, in the order of [`Snapshot::half_edges`], each with how many have it; for `Both` those
    /// of out half-edges and then those of in half-edges. No `labels` means all, one given twice counts once. Cost: that of a search for each label.
    pub fn labels_of_half_edges(
        &self,
        vertex: VertexId,
        direction: Direction,
        labels: &[LabelId],
        out: &mut Vec<(LabelId, u64)>,
    ) {
        self.reads.record(|reads| reads.half_edges(vertex, direction));
        let (tablet, slot) =
            (self.root.tablet(self.root.layout.vertex_tablet(vertex)), self.root.layout.vertex_slot(vertex));
        for (side, half_edges) in self.sides(vertex, direction) {
            match labels {
                [] => match tablet.unchanged_half_edges(slot, side, None) {
                    Some(base) => labels_of_base(base, out),
                    None => labels_of_side(&half_edges, out),
                },
                labels => {
                    let counted = different(labels).map(|(_, label)| (label, half_edges.degree_with_label(label)));
                    out.extend(counted.filter(|(_, count)| *count > 0));
                }
            }
        }
    }

    /// Appends the labels of vertices, in their order; `None` for those that are gone. Cost: some nanoseconds a vertex, as the memory of many is
    /// waited for at once.
    pub fn labels_of_vertices(&self, vertices: &[VertexId], out: &mut Vec<Option<LabelId>>) {
        const AT_ONCE: usize = 64;
        if self.reads.is_recording() {
            out.extend(vertices.iter().map(|vertex| self.vertex_label(*vertex)));
            return;
        }
        let (layout, tablets) = (self.root.layout, self.root.tablets());
        let mut places = [Place::Unknown; AT_ONCE];
        for part in vertices.chunks(AT_ONCE) {
            for (vertex, own) in part.iter().zip(&mut places) {
                *own = tablets[layout.vertex_tablet(*vertex)].own_label_place(layout.vertex_slot(*vertex));
                if let Place::At(labels, place) = own {
                    labels.prefetch(*place);
                }
            }
            out.extend(part.iter().zip(&places).map(|(vertex, own)| match own {
                Place::At(labels, place) => Some(LabelId(labels.get(*place) as u32)),
                _ => self.root.vertex(*vertex).map(|row| row.label()),
            }));
        }
    }
}

/// Of half-edges that all lie in columns.
fn labels_of_base(base: HalfEdges<'_>, out: &mut Vec<(LabelId, u64)>) {
    let mut start = 0;
    while start < base.len() {
        let label = base.label(start);
        let near = base.len().min(start + ONE_BY_ONE);
        let end = match (start + 1..near).find(|place| base.label(*place) != label) {
            Some(end) => end,
            None if near == base.len() => near,
            None => base.range_of_label(label).end,
        };
        out.push((label, (end - start) as u64));
        start = end;
    }
}

/// Of half-edges of which some were added or are gone.
fn labels_of_side(half_edges: &SideView<'_>, out: &mut Vec<(LabelId, u64)>) {
    let mut from = Some(0);
    while let Some(least) = from {
        let mut next = None;
        let _ = half_edges.visit_from(LabelId(least), EdgeId(0), false, &mut |label, _| {
            next = Some(label);
            ControlFlow::Break(())
        });
        let Some(label) = next else { return };
        out.push((label, half_edges.degree_with_label(label)));
        from = label.0.checked_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated_disk::SimulatedDisk;
    use crate::test_store::open;
    use crate::{HalfEdgeCursor, Transaction};

    /// What one gets by looking at all half-edges.
    fn one_by_one(state: &Snapshot, vertex: VertexId, direction: Direction, labels: &[LabelId]) -> Vec<(LabelId, u64)> {
        let mut counted: Vec<(LabelId, u64)> = Vec::new();
        let sides = match direction {
            Direction::Both => vec![Direction::Out, Direction::In],
            one => vec![one],
        };
        for side in sides {
            let mut found = Vec::new();
            state.half_edges(vertex, side, labels, &mut HalfEdgeCursor::default(), usize::MAX, &mut found);
            let first = counted.len();
            for half_edge in found {
                let label = state.edge(half_edge.edge).expect("it is there").label;
                match counted[first..].last_mut() {
                    Some((own, count)) if *own == label => *count += 1,
                    _ => counted.push((label, 1)),
                }
            }
        }
        counted
    }

    fn check(state: &Snapshot, vertices: &[VertexId], labels: &[LabelId]) {
        let choices: [&[LabelId]; 5] = [&[], &labels[..1], &[labels[2], labels[0], labels[2]], &labels[1..], labels];
        for vertex in vertices {
            for direction in [Direction::Out, Direction::In, Direction::Both] {
                for labels in choices {
                    let mut counted = Vec::new();
                    state.labels_of_half_edges(*vertex, direction, labels, &mut counted);
                    assert_eq!(
                        counted,
                        one_by_one(state, *vertex, direction, labels),
                        "{vertex:?} {direction:?} {labels:?}"
                    );
                }
            }
        }
        let mut told = Vec::new();
        state.labels_of_vertices(vertices, &mut told);
        let wanted: Vec<_> = vertices.iter().map(|vertex| state.vertex_label(*vertex)).collect();
        assert_eq!(told, wanted);
    }

    #[test]
    fn labels_are_those_of_all_half_edges_one_by_one() {
        const NAMES: [&str; 4] = ["a", "b", "c", "d"];
        let (store, graph) = open(&SimulatedDisk::new());
        let mut writing = graph.begin();
        let vertices: Vec<_> =
            (0..40).map(|number| writing.add_vertex(NAMES[number % 3], None).expect("room")).collect();
        let mut next = 1u64;
        let mut add = |writing: &mut Transaction, count: usize, targets: usize| {
            for _ in 0..count {
                next = next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let (from, to) = ((next >> 33) as usize % 7, (next >> 40) as usize % targets);
                let label = NAMES[(next >> 50) as usize % NAMES.len()];
                writing.add_edge(label, vertices[from], vertices[to], None).expect("both are there");
            }
        };
        add(&mut writing, 600, vertices.len());
        writing.commit().expect("nobody else writes");
        for round in 0..3 {
            let state = graph.begin_reading();
            let labels: Vec<_> = NAMES.iter().map(|name| state.label_id(name).expect("it is in use")).collect();
            check(&state, &vertices, &labels);
            store.consolidate().expect("the disk works");
            check(&graph.begin_reading(), &vertices, &labels);
            let mut writing = graph.begin();
            add(&mut writing, 60, 30);
            let mut found = Vec::new();
            let from = vertices[round];
            writing.half_edges(from, Direction::Both, &[], &mut HalfEdgeCursor::default(), 50, &mut found);
            for half_edge in found.iter().step_by(3) {
                // A loop is found twice.
                if writing.edge_exists(half_edge.edge) {
                    writing.remove_edge(half_edge.edge).expect("it is there");
                }
            }
            writing.remove_vertex(vertices[30 + round]).expect("it is there");
            check(&writing, &vertices, &labels);
            writing.commit().expect("nobody else writes");
        }
    }
}
