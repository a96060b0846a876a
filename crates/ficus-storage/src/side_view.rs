//! The half-edges of one vertex in one direction: those of the base without those that are gone, and the added ones.

use std::ops::{ControlFlow, Range};

use ficus_model::{EdgeId, LabelId, VertexId};

use crate::delta::{Added, DeltaView};
use crate::segment::{HalfEdges, Neighbours, Side};
use crate::tablet::IdLayout;
use crate::{HalfEdge, VertexSlice};

/// Neighbours that lie in no slice and are handed out at once.
const SLICE_BUFFER: usize = 64;

/// The half-edges of one vertex in one direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SideView<'a> {
    base: HalfEdges<'a>,
    delta: DeltaView<'a>,
    side: Side,
    layout: IdLayout,
    vertex: VertexId,
}

impl<'a> SideView<'a> {
    /// What `base` has, as `delta` changes it.
    #[inline]
    pub(crate) fn new(
        base: HalfEdges<'a>,
        delta: DeltaView<'a>,
        side: Side,
        layout: IdLayout,
        vertex: VertexId,
    ) -> SideView<'a> {
        SideView { base, delta, side, layout, vertex }
    }

    /// The edge of a half-edge of the base.
    #[inline]
    fn edge(&self, sequence: u64, neighbour: VertexId) -> EdgeId {
        let source = match self.side {
            Side::Out => self.vertex,
            Side::In => neighbour,
        };
        self.layout.edge_id(sequence, source)
    }

    /// Number of half-edges, of all labels.
    pub(crate) fn degree(&self) -> u64 {
        self.base.len() as u64 + self.delta.added.degree() - self.delta.gone.len()
    }

    /// Number of half-edges with this label.
    pub(crate) fn degree_with_label(&self, label: LabelId) -> u64 {
        let own = self.base.range_of_label(label);
        let gone = self.delta.gone.len_with_label(label, own.clone());
        own.len() as u64 + self.delta.added.degree_with_label(label) - gone
    }

    /// What is not in the base.
    pub(crate) fn added(&self) -> Added<'a> {
        self.delta.added
    }

    /// Where in the base's list the half-edges at or after (`label`, `edge`) begin.
    pub(crate) fn base_place(&self, label: LabelId, edge: EdgeId) -> usize {
        match (label, edge) {
            (LabelId(0), EdgeId(0)) => 0,
            _ => self.base.lower_bound(label, self.layout.edge_sequence(edge)),
        }
    }

    /// What is at a place of the base's list, gone or not.
    pub(crate) fn base_entry(&self, place: usize) -> (LabelId, HalfEdge) {
        let neighbour = self.base.neighbour(place);
        (self.base.label(place), HalfEdge { edge: self.edge(self.base.sequence(place), neighbour), neighbour })
    }

    /// Hands out the neighbours at these places of the base's list that are not gone, in slices, each with the place where it begins.
    pub(crate) fn visit_base_left(&self, places: Range<usize>, visit: &mut impl FnMut(usize, Neighbours<'a>)) {
        let _ = self.delta.gone.visit_left(places, &mut |left| {
            visit(left.start, self.base.range(left.start, left.end).neighbours());
            ControlFlow::Continue(())
        });
    }

    /// The places of one label, or of all, in the base's list.
    pub(crate) fn places(&self, label: Option<LabelId>) -> Range<usize> {
        label.map_or(0..self.base.len(), |label| self.base.range_of_label(label))
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
        let (base, gone) = (self.base, self.delta.gone);
        if base.is_empty() {
            return self.delta.added.visit_from(label, edge, only_label, visit);
        }
        let end = self.places(only_label.then_some(label)).end;
        let mut next = base.lower_bound(label, self.layout.edge_sequence(edge));
        let read = |places: Range<usize>, visit: &mut dyn FnMut(LabelId, HalfEdge) -> ControlFlow<()>| {
            gone.visit_left(places, &mut |mut left| {
                left.try_for_each(|place| {
                    let (label, half_edge) = self.base_entry(place);
                    visit(label, half_edge)
                })
            })
        };
        self.delta.added.visit_from(label, edge, only_label, &mut |label, half_edge| {
            if next < end {
                let before = base.lower_bound(label, self.layout.edge_sequence(half_edge.edge)).min(end);
                if next < before {
                    read(next..before, visit)?;
                    next = before;
                }
            }
            visit(label, half_edge)
        })?;
        if next < end { read(next..end, visit) } else { ControlFlow::Continue(()) }
    }

    /// Hands out the neighbours of all half-edges, of one label or all, in slices: those of the base first.
    #[inline]
    pub(crate) fn visit_slices(&self, label: Option<LabelId>, visit: &mut impl FnMut(VertexSlice<'_>)) {
        self.visit_base_slices(label, visit);
        self.visit_added_slices(label, visit);
    }

    /// The part of [`SideView::visit_slices`] that is in the base.
    #[inline]
    pub(crate) fn visit_base_slices(&self, label: Option<LabelId>, visit: &mut impl FnMut(VertexSlice<'_>)) {
        let places = self.places(label);
        if places.is_empty() {
            return;
        }
        let _ = self.delta.gone.visit_left(places, &mut |left| {
            match self.base.range(left.start, left.end).neighbours() {
                Neighbours::U32(neighbours) => visit(VertexSlice::Short(neighbours)),
                Neighbours::U64(neighbours) => visit(VertexSlice::Long(neighbours)),
            }
            ControlFlow::Continue(())
        });
    }

    /// The part of [`SideView::visit_slices`] that is not in the base.
    #[inline]
    pub(crate) fn visit_added_slices(&self, label: Option<LabelId>, visit: &mut impl FnMut(VertexSlice<'_>)) {
        match self.delta.added.slice(label) {
            Some([]) => {}
            Some(slice) => visit(VertexSlice::Short(slice)),
            None => self.visit_buffered(label, visit),
        }
    }

    fn visit_buffered(&self, label: Option<LabelId>, visit: &mut impl FnMut(VertexSlice<'_>)) {
        let mut buffer = [0; SLICE_BUFFER];
        let mut count = 0;
        self.delta.added.visit_neighbours(label, &mut |neighbour| {
            buffer[count] = neighbour.0;
            count += 1;
            if count == SLICE_BUFFER {
                visit(VertexSlice::Long(&buffer));
                count = 0;
            }
        });
        if count > 0 {
            visit(VertexSlice::Long(&buffer[..count]));
        }
    }

    /// True if the half-edge is there.
    pub(crate) fn contains(&self, label: LabelId, edge: EdgeId, neighbour: VertexId) -> bool {
        let mut found = false;
        let _ = self.visit_from(label, edge, true, &mut |_, half_edge| {
            found = half_edge == HalfEdge { edge, neighbour };
            ControlFlow::Break(())
        });
        found
    }

    /// Checks order and counts; for tests and `check_invariants`.
    pub(crate) fn check_invariants(&self) -> Result<(), String> {
        self.delta.added.check_invariants()?;
        let mut previous: Option<(LabelId, EdgeId)> = None;
        let mut count = 0;
        let ordered = self.visit_from(LabelId(0), EdgeId(0), false, &mut |label, half_edge| {
            if previous.is_some_and(|before| before >= (label, half_edge.edge)) {
                return ControlFlow::Break(());
            }
            previous = Some((label, half_edge.edge));
            count += 1;
            ControlFlow::Continue(())
        });
        match ordered {
            ControlFlow::Break(()) => Err("half-edges out of order".to_string()),
            ControlFlow::Continue(()) if count != self.degree() => {
                Err(format!("degree says {} but there are {count} half-edges", self.degree()))
            }
            ControlFlow::Continue(()) => Ok(()),
        }
    }
}
