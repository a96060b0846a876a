//! Reads neighbours of many vertices: what all reads have in common is looked up once.

use std::ops::ControlFlow;

use ficus_model::{Direction, LabelId, VertexId};

use crate::Snapshot;
use crate::changed_slots::ChangedSlots;
use crate::delta::DeltaView;
use crate::root::GraphRoot;
use crate::segment::{HalfEdges, Neighbours as Stored, Side};
use crate::side_view::SideView;
use crate::tablet::IdLayout;

/// Reads the neighbours of vertices in one direction, over one edge label or all.
///
/// A vertex that did not change since the last consolidation costs a bit test, two offsets and a slice.
#[derive(Debug)]
pub struct Neighbours<'a> {
    snapshot: &'a Snapshot,
    direction: Direction,
    label: Option<LabelId>,
    layout: IdLayout,
    sides: Vec<(Side, Vec<PlainColumns<'a>>)>,
}

/// The columns of one tablet, where they can be read as plain slices, and what changed.
#[derive(Clone, Copy, Debug)]
struct PlainColumns<'a> {
    /// Of slot `s`, the neighbours from `offsets[s]` to `offsets[s + 1]`. Empty where slices do not do: another width, or
    /// several labels of which one is wanted.
    offsets: &'a [u32],
    neighbours: &'a [u32],
    /// Slots of which the overlay speaks; `None` for none.
    touched: Option<&'a ChangedSlots>,
    /// Slots with half-edges of the base that are gone; `None` for none.
    shortened: Option<&'a ChangedSlots>,
}

impl<'a> Neighbours<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, direction: Direction, label: Option<LabelId>) -> Neighbours<'a> {
        let root = &*snapshot.root;
        let sides = [(Side::Out, Direction::Out), (Side::In, Direction::In)];
        let wanted = sides.into_iter().filter(|(_, only)| direction == *only || direction == Direction::Both);
        let sides = wanted.map(|(side, _)| (side, columns(root, side, label)));
        Neighbours { snapshot, direction, label, layout: root.layout, sides: sides.collect() }
    }

    /// Hands out the vertices at the other ends of all half-edges of a vertex, slice by slice, older ones first; those of out
    /// half-edges before those of in half-edges.
    #[inline(always)]
    pub fn visit(&self, vertex: VertexId, visit: &mut impl FnMut(VertexSlice<'_>)) {
        self.snapshot.reads.record(|reads| reads.half_edges(vertex, self.direction));
        let slot = self.layout.vertex_slot(vertex);
        for (side, tablets) in &self.sides {
            let columns = &tablets[self.layout.vertex_tablet(vertex)];
            let is_plain = columns.touched.is_none_or(|touched| !touched.contains(slot));
            match columns.offsets.get(slot as usize..) {
                Some([start, end, ..]) if is_plain => {
                    visit(VertexSlice::Short(&columns.neighbours[*start as usize..*end as usize]));
                }
                _ => self.visit_otherwise(vertex, *side, visit),
            }
        }
    }

    /// Hands out the neighbours of every vertex that has any, tablet by tablet: those of one vertex in as many slices as
    /// [`Neighbours::visit`] gives them, so a vertex may come more than once.
    #[inline(always)]
    pub fn visit_all(&self, visit: &mut impl FnMut(VertexId, VertexSlice<'_>)) {
        self.snapshot.reads.record(|reads| reads.all_edges());
        for (side, tablets) in &self.sides {
            for (number, columns) in tablets.iter().enumerate() {
                for (slot, ends) in columns.offsets.windows(2).enumerate() {
                    let (start, end) = (ends[0] as usize, ends[1] as usize);
                    let is_whole = columns.shortened.is_none_or(|shortened| !shortened.contains(slot as u64));
                    if start < end && is_whole {
                        let vertex = self.layout.vertex_id(slot as u64, number);
                        visit(vertex, VertexSlice::Short(&columns.neighbours[start..end]));
                    }
                }
                if columns.offsets.is_empty() {
                    self.visit_base(number, *side, visit);
                }
                self.visit_deltas(number, *side, visit);
            }
        }
    }

    /// The part of [`Neighbours::visit_all`] that is in the base, of a tablet without plain slices.
    #[inline(never)]
    fn visit_base(&self, number: usize, side: Side, visit: &mut impl FnMut(VertexId, VertexSlice<'_>)) {
        let tablet = self.snapshot.root.tablet(number);
        let Some(base) = tablet.base() else { return };
        let shortened = tablet.deltas(side).shortened();
        base.visit_vertices(0, &mut |slot| {
            if !shortened.contains(slot) {
                let vertex = self.layout.vertex_id(slot, number);
                let half_edges = SideView::new(base.half_edges(slot, side), DeltaView::NONE, side, self.layout, vertex);
                half_edges.visit_slices(self.label, &mut |slice| visit(vertex, slice));
            }
            ControlFlow::Continue(())
        });
    }

    /// The part of [`Neighbours::visit_all`] that is in the overlay of a tablet, and what is left of the base where half-edges are
    /// gone.
    #[inline]
    fn visit_deltas(&self, number: usize, side: Side, visit: &mut impl FnMut(VertexId, VertexSlice<'_>)) {
        let tablet = self.snapshot.root.tablet(number);
        tablet.deltas(side).visit(&mut |slot, delta| {
            let vertex = self.layout.vertex_id(slot, number);
            let mut half_edges = SideView::new(HalfEdges::none(), delta, side, self.layout, vertex);
            if delta.gone.len() > 0 {
                let base = tablet.base().map_or(HalfEdges::none(), |base| base.half_edges(slot, side));
                half_edges = SideView::new(base, delta, side, self.layout, vertex);
                half_edges.visit_base_slices(self.label, &mut |slice| visit(vertex, slice));
            }
            half_edges.visit_added_slices(self.label, &mut |slice| visit(vertex, slice));
        });
    }

    #[inline(never)]
    fn visit_otherwise(&self, vertex: VertexId, side: Side, visit: &mut impl FnMut(VertexSlice<'_>)) {
        let root = &*self.snapshot.root;
        let tablet = root.tablet(self.layout.vertex_tablet(vertex));
        match tablet.unchanged_half_edges(self.layout.vertex_slot(vertex), side, self.label) {
            Some(base) => match base.neighbours() {
                Stored::U32(neighbours) => visit(VertexSlice::Short(neighbours)),
                Stored::U64(neighbours) => visit(VertexSlice::Long(neighbours)),
            },
            None => root.side(vertex, side).visit_slices(self.label, visit),
        }
    }
}

/// Vertices, as they are stored.
#[derive(Clone, Copy, Debug)]
pub enum VertexSlice<'a> {
    /// Ids below 2^32.
    Short(&'a [u32]),
    /// Any ids.
    Long(&'a [u64]),
}

impl Default for VertexSlice<'_> {
    fn default() -> Self {
        VertexSlice::Short(&[])
    }
}

impl VertexSlice<'_> {
    /// Number of vertices.
    pub fn len(self) -> usize {
        match self {
            VertexSlice::Short(vertices) => vertices.len(),
            VertexSlice::Long(vertices) => vertices.len(),
        }
    }

    /// True if there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Hands out one after the other.
    #[inline(always)]
    pub fn for_each(self, mut visit: impl FnMut(VertexId)) {
        match self {
            VertexSlice::Short(vertices) => vertices.iter().for_each(|vertex| visit(VertexId(u64::from(*vertex)))),
            VertexSlice::Long(vertices) => vertices.iter().for_each(|vertex| visit(VertexId(*vertex))),
        }
    }
}

fn columns(root: &GraphRoot, side: Side, label: Option<LabelId>) -> Vec<PlainColumns<'_>> {
    let tablets = root.tablets().iter().map(|tablet| {
        let plain = tablet.base().and_then(|base| base.plain_half_edges(side, label));
        let deltas = tablet.deltas(side);
        let touched = Some(deltas.touched_with(label)).filter(|slots| !slots.is_empty());
        let shortened = Some(deltas.shortened()).filter(|slots| !slots.is_empty());
        let (offsets, neighbours) = plain.unwrap_or_default();
        PlainColumns { offsets, neighbours, touched, shortened }
    });
    tablets.collect()
}
