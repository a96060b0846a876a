//! Hops from many vertices at once, as the last consolidation left them.
//!
//! A hop from one vertex waits three times for memory: for where its half-edges are, for their labels, for the neighbours. Of some vertices
//! together these waits overlap, each after the one before, if the way to the columns of each takes a few instructions. So the columns of
//! all tablets lie side by side in one table.

use std::ops::{ControlFlow, Range};

use ficus_model::{Direction, LabelId, VertexId};

use crate::segment::{Segment, ShortHalfEdges, Side};
use crate::snapshot::sides_of;
use crate::{Snapshot, VertexSlice};

/// Vertices whose memory is waited for at once.
const AT_ONCE: usize = 16;

/// The half-edges of a base by tablet. None where they do not have the usual form.
#[derive(Debug)]
pub(crate) struct HopTables {
    out: Box<[Option<ShortHalfEdges>]>,
    in_: Box<[Option<ShortHalfEdges>]>,
}

impl HopTables {
    /// The tables of a base.
    pub(crate) fn of(segments: &[impl AsRef<Segment>]) -> HopTables {
        let of_side = |side| segments.iter().map(|segment| segment.as_ref().short_half_edges(side)).collect();
        HopTables { out: of_side(Side::Out), in_: of_side(Side::In) }
    }

    fn side(&self, side: Side) -> &[Option<ShortHalfEdges>] {
        match side {
            Side::Out => &self.out,
            Side::In => &self.in_,
        }
    }
}

impl Snapshot {
    /// Hands out the neighbours of one vertex after the other, over edges of one label or all (no `labels`), with the place of the vertex:
    /// the other ends of its out half-edges and those of its in half-edges, as far as `direction` asks for them, in the order of
    /// [`Snapshot::copy_neighbours`]. `None` for a vertex that is to be asked with that, as its half-edges have changed since the last
    /// consolidation; where reads are recorded, or there are several labels, that is every one. Ends when `visit` breaks; gives the number
    /// of vertices before that one.
    ///
    /// Cost: some 20 nanoseconds a vertex, and the memory, which is waited for together.
    #[inline]
    pub fn visit_hops(
        &self,
        vertices: &[VertexId],
        direction: Direction,
        labels: &[LabelId],
        mut visit: impl FnMut(usize, Option<[VertexSlice<'_>; 2]>) -> ControlFlow<()>,
    ) -> usize {
        let Some(base) = self.root.base().filter(|_| !self.reads.is_recording()) else {
            return (0..vertices.len()).find(|at| visit(*at, None).is_break()).unwrap_or(vertices.len());
        };
        let (tables, layout) = (base.hop_tables(), self.root.layout);
        let sides = || sides_of(direction).map(|side| (side as usize, tables.side(side)));
        let label = labels.first().copied();
        let has_changed = self.root.overlay_changes() > 0;
        for (part, first) in vertices.chunks(AT_ONCE).zip((0..).step_by(AT_ONCE)) {
            let place = |vertex: VertexId| (layout.vertex_tablet(vertex), layout.vertex_slot(vertex));
            for (vertex, (_, table)) in part.iter().flat_map(|vertex| sides().map(move |side| (*vertex, side))) {
                let (tablet, slot) = place(vertex);
                table[tablet].iter().for_each(|columns| columns.prefetch_slot(slot));
            }
            let mut found: [[Range<usize>; 2]; AT_ONCE] = Default::default();
            for (vertex, own) in part.iter().zip(&mut found) {
                let (tablet, slot) = place(*vertex);
                for ((_, table), places) in sides().zip(own) {
                    if let Some(columns) = &table[tablet] {
                        *places = columns.of_slot(slot);
                        columns.prefetch(places);
                    }
                }
            }
            if let Some(label) = label {
                for (vertex, own) in part.iter().zip(&mut found) {
                    for ((_, table), places) in sides().zip(own) {
                        if let Some(columns) = &table[layout.vertex_tablet(*vertex)] {
                            *places = columns.with_label(places.clone(), label);
                        }
                    }
                }
            }
            for ((vertex, own), at) in part.iter().zip(found).zip(first..) {
                let (tablet, slot) = place(*vertex);
                let is_touched = |side| self.root.tablet(tablet).deltas(side).touched_with(label).contains(slot);
                let is_whole = labels.len() < 2 && !(has_changed && sides_of(direction).any(is_touched));
                let mut slices: Option<[VertexSlice<'_>; 2]> = is_whole.then(Default::default);
                for ((side, table), places) in sides().zip(own) {
                    slices = match (slices, &table[tablet]) {
                        (Some(mut slices), Some(columns)) => {
                            slices[side] = VertexSlice::Short(columns.neighbours(places));
                            Some(slices)
                        }
                        _ => None,
                    };
                }
                if visit(at, slices).is_break() {
                    return at;
                }
            }
        }
        vertices.len()
    }
}
