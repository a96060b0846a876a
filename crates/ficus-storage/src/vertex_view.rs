//! A vertex as a reader sees it: a row of the overlay, a row of the base, or one upon the other.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

use ficus_model::{EdgeId, KeyId, LabelId, Value, VertexId};

use crate::adjacency::Adjacency;
use crate::ordered_pages::OrderedPages;
use crate::property_row::{PropertyEntry, PropertyRow};
use crate::segment::{HalfEdges, Neighbours, Segment, Side};
use crate::tablet::IdLayout;
use crate::value_key::ids_equal;
use crate::{HalfEdge, VertexSlice};

/// Neighbours outside the base that are handed out at once.
const SLICE_BUFFER: usize = 64;

/// What of the base still counts for a row of the overlay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RowBase {
    /// Nothing: the vertex is newer than the base.
    #[default]
    Nothing,
    /// Its half-edges, but those that are gone; the row has the properties.
    Adjacency,
    /// Its half-edges, but those that are gone, and its properties.
    AdjacencyAndProperties,
}

/// A vertex in the overlay, with all that belongs to it or only with what changed since the base.
#[derive(Clone, Debug)]
pub(crate) struct VertexRow {
    /// The user id.
    pub(crate) id: Value,
    /// The label.
    pub(crate) label: LabelId,
    /// What of the base counts.
    pub(crate) base: RowBase,
    /// The properties, unless those of the base count.
    pub(crate) properties: PropertyRow,
    /// Half-edges at the source, besides those of the base.
    pub(crate) out: Adjacency,
    /// Half-edges at the target, besides those of the base.
    pub(crate) in_: Adjacency,
    /// Half-edges of the base that are gone; `None` for none.
    gone: Option<Arc<Gone>>,
}

/// Half-edges of the base that are gone.
#[derive(Clone, Debug, Default)]
struct Gone {
    out: OrderedPages<GoneHalfEdge>,
    in_: OrderedPages<GoneHalfEdge>,
}

/// Ordered as half-edges are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct GoneHalfEdge {
    label: LabelId,
    edge: EdgeId,
}

impl Gone {
    fn side(&self, side: Side) -> &OrderedPages<GoneHalfEdge> {
        match side {
            Side::Out => &self.out,
            Side::In => &self.in_,
        }
    }
}

impl VertexRow {
    /// A vertex without edges that the base does not have.
    pub(crate) fn new(id: Value, label: LabelId, properties: PropertyRow) -> VertexRow {
        let (out, in_) = (Adjacency::Empty, Adjacency::Empty);
        VertexRow { id, label, base: RowBase::Nothing, properties, out, in_, gone: None }
    }

    /// A row that says what the base says.
    pub(crate) fn on_base(base: &BaseVertex<'_>) -> VertexRow {
        let row =
            VertexRow::new(base.segment.vertex_id(base.slot), base.segment.label(base.slot), PropertyRow::default());
        VertexRow { base: RowBase::AdjacencyAndProperties, ..row }
    }

    /// Removes a half-edge that is there: from the row if it has it, else from what counts of the base.
    pub(crate) fn remove_half_edge(&mut self, side: Side, label: LabelId, edge: EdgeId) -> bool {
        let added = match side {
            Side::Out => &mut self.out,
            Side::In => &mut self.in_,
        };
        if added.remove(label, edge) {
            return true;
        }
        if self.base == RowBase::Nothing {
            return false;
        }
        let gone = Arc::make_mut(self.gone.get_or_insert_default());
        let gone = match side {
            Side::Out => &mut gone.out,
            Side::In => &mut gone.in_,
        };
        gone.insert(GoneHalfEdge { label, edge })
    }
}

/// A vertex of a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BaseVertex<'a> {
    /// The segment.
    pub(crate) segment: &'a Segment,
    /// The slot, which has a vertex.
    pub(crate) slot: u64,
}

impl BaseVertex<'_> {
    /// Its properties as a row.
    pub(crate) fn properties(&self) -> PropertyRow {
        let mut entries = Vec::new();
        self.segment.visit_properties(self.slot, &mut |entry| {
            entries.push(entry);
            ControlFlow::Continue(())
        });
        let metas: Vec<_> =
            entries.iter().map(|entry| (entry.id(), self.segment.metas(self.slot, entry.id()))).collect();
        let mut row = PropertyRow::from_entries(entries);
        for (property, metas) in metas {
            metas.into_iter().for_each(|(key, value)| row.set_meta(property, key, value));
        }
        row
    }
}

/// A vertex as a reader sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum VertexView<'a> {
    /// Unchanged since the base.
    Base(BaseVertex<'a>),
    /// In the overlay.
    Row {
        /// The row.
        row: &'a VertexRow,
        /// The vertex of the base that it refers to.
        base: Option<BaseVertex<'a>>,
    },
}

impl<'a> VertexView<'a> {
    /// The user id.
    pub(crate) fn id(&self) -> Value {
        match self {
            VertexView::Base(base) => base.segment.vertex_id(base.slot),
            VertexView::Row { row, .. } => row.id.clone(),
        }
    }

    /// True if this is the user id.
    pub(crate) fn has_id(&self, id: &Value) -> bool {
        match self {
            VertexView::Base(base) => base.segment.vertex_has_id(base.slot, id),
            VertexView::Row { row, .. } => ids_equal(&row.id, id),
        }
    }

    /// The label.
    pub(crate) fn label(&self) -> LabelId {
        match self {
            VertexView::Base(base) => base.segment.label(base.slot),
            VertexView::Row { row, .. } => row.label,
        }
    }

    /// True if the base has the vertex.
    pub(crate) fn in_base(&self) -> bool {
        matches!(self, VertexView::Base(_) | VertexView::Row { base: Some(_), .. })
    }

    /// Where the properties are: a row, or the base.
    fn properties(&self) -> Result<&'a PropertyRow, BaseVertex<'a>> {
        match *self {
            VertexView::Base(base) => Err(base),
            VertexView::Row { row, base: Some(base) } if row.base == RowBase::AdjacencyAndProperties => Err(base),
            VertexView::Row { row, .. } => Ok(&row.properties),
        }
    }

    /// All properties in insertion order.
    pub(crate) fn entries(&self) -> Cow<'a, [PropertyEntry]> {
        match self.properties() {
            Ok(row) => Cow::Borrowed(row.entries()),
            Err(base) => {
                let mut entries = Vec::new();
                base.segment.visit_properties(base.slot, &mut |entry| {
                    entries.push(entry);
                    ControlFlow::Continue(())
                });
                Cow::Owned(entries)
            }
        }
    }

    /// The first value under a key.
    pub(crate) fn first(&self, key: KeyId) -> Option<Value> {
        match self.properties() {
            Ok(row) => row.first(key).cloned(),
            Err(base) => base.segment.first_property(base.slot, key),
        }
    }

    /// True if there is a property with this id.
    pub(crate) fn has_property(&self, id: u64) -> bool {
        match self.properties() {
            Ok(row) => row.by_id(id).is_some(),
            Err(_) => self.entries().iter().any(|entry| entry.id() == id),
        }
    }

    /// The meta-properties of a property, in insertion order.
    pub(crate) fn metas(&self, property: u64) -> Cow<'a, [(KeyId, Value)]> {
        match self.properties() {
            Ok(row) => Cow::Borrowed(row.metas(property)),
            Err(base) => Cow::Owned(base.segment.metas(base.slot, property)),
        }
    }

    /// The half-edges of one side.
    #[inline]
    pub(crate) fn side(&self, side: Side, layout: IdLayout, vertex: VertexId) -> SideView<'a> {
        match *self {
            VertexView::Base(base) => SideView {
                base: Some(base.segment.half_edges(base.slot, side)),
                added: &Adjacency::Empty,
                gone: None,
                side,
                layout,
                vertex,
            },
            VertexView::Row { row, base } => SideView {
                base: base.map(|base| base.segment.half_edges(base.slot, side)),
                added: match side {
                    Side::Out => &row.out,
                    Side::In => &row.in_,
                },
                gone: row.gone.as_ref().map(|gone| gone.side(side)).filter(|gone| gone.len() > 0),
                side,
                layout,
                vertex,
            },
        }
    }
}

/// The half-edges of one vertex in one direction: those of the base without those that are gone, and the added ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SideView<'a> {
    base: Option<HalfEdges<'a>>,
    added: &'a Adjacency,
    gone: Option<&'a OrderedPages<GoneHalfEdge>>,
    side: Side,
    layout: IdLayout,
    vertex: VertexId,
}

impl<'a> SideView<'a> {
    /// The edge of a half-edge of the base.
    #[inline]
    pub(crate) fn edge(&self, sequence: u64, neighbour: VertexId) -> EdgeId {
        let source = match self.side {
            Side::Out => self.vertex,
            Side::In => neighbour,
        };
        self.layout.edge_id(sequence, source)
    }

    /// Number of half-edges, of all labels.
    pub(crate) fn degree(&self) -> u64 {
        let base = self.base.map_or(0, |base| base.len() as u64);
        base + self.added.degree() - self.gone.map_or(0, OrderedPages::len)
    }

    /// Number of half-edges with this label.
    pub(crate) fn degree_with_label(&self, label: LabelId) -> u64 {
        let base = self.base.map_or(0, |base| base.with_label(label).len() as u64);
        base + self.added.degree_with_label(label) - self.gone_with_label(label)
    }

    fn gone_with_label(&self, label: LabelId) -> u64 {
        let mut count = 0;
        if let Some(gone) = self.gone {
            gone.visit_from(&GoneHalfEdge { label, edge: EdgeId(0) }, |entries| {
                let same = entries.partition_point(|entry| entry.label == label);
                count += same as u64;
                same == entries.len()
            });
        }
        count
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
        let Some(base) = self.base else { return self.added.visit_from(label, edge, only_label, visit) };
        let base = if only_label { base.with_label(label) } else { base };
        let mut position = base.lower_bound(label, self.layout.edge_sequence(edge));
        let end = base.len();
        let read = |position: usize| {
            let neighbour = base.neighbour(position);
            (base.label(position), HalfEdge { edge: self.edge(base.sequence(position), neighbour), neighbour })
        };
        if matches!(self.added, Adjacency::Empty) && self.gone.is_none() {
            for position in position..end {
                let (label, half_edge) = read(position);
                visit(label, half_edge)?;
            }
            return ControlFlow::Continue(());
        }
        if self.gone.is_none() && self.added_come_last(base, label, only_label) {
            for position in position..end {
                let (label, half_edge) = read(position);
                visit(label, half_edge)?;
            }
            return self.added.visit_from(label, edge, only_label, visit);
        }
        let mut visit_base_before =
            |bound: Option<(LabelId, EdgeId)>, visit: &mut dyn FnMut(LabelId, HalfEdge) -> ControlFlow<()>| {
                while position < end {
                    let (label, half_edge) = read(position);
                    if bound.is_some_and(|bound| (label, half_edge.edge) >= bound) {
                        break;
                    }
                    position += 1;
                    let entry = GoneHalfEdge { label, edge: half_edge.edge };
                    if !self.gone.is_some_and(|gone| gone.contains(&entry)) {
                        visit(label, half_edge)?;
                    }
                }
                ControlFlow::Continue(())
            };
        self.added.visit_from(label, edge, only_label, &mut |label, half_edge| {
            visit_base_before(Some((label, half_edge.edge)), visit)?;
            visit(label, half_edge)
        })?;
        visit_base_before(None, visit)
    }

    /// Hands out the neighbours of all half-edges, of one label or all: those of the base first.
    #[inline]
    pub(crate) fn visit_neighbours(&self, label: Option<LabelId>, visit: &mut impl FnMut(VertexId)) {
        if self.gone.is_some() {
            let first = label.unwrap_or(LabelId(0));
            let _ = self.visit_from(first, EdgeId(0), label.is_some(), &mut |_, half_edge| {
                visit(half_edge.neighbour);
                ControlFlow::Continue(())
            });
            return;
        }
        if let Some(base) = self.base {
            label.map_or(base, |label| base.with_label(label)).neighbours().visit(visit);
        }
        self.added.visit_neighbours(label, visit);
    }

    /// Hands out the neighbours of all half-edges, of one label or all, in slices: those of the base first.
    #[inline]
    pub(crate) fn visit_slices(&self, label: Option<LabelId>, visit: &mut impl FnMut(VertexSlice<'_>)) {
        let mut buffer = [0; SLICE_BUFFER];
        let mut count = 0;
        let mut rest = |neighbour: VertexId, visit: &mut dyn FnMut(VertexSlice<'_>)| {
            buffer[count] = neighbour.0;
            count += 1;
            if count == SLICE_BUFFER {
                visit(VertexSlice::Long(&buffer));
                count = 0;
            }
        };
        match (self.base, self.gone) {
            (Some(base), None) => {
                match label.map_or(base, |label| base.with_label(label)).neighbours() {
                    Neighbours::U32(neighbours) => visit(VertexSlice::Short(neighbours)),
                    Neighbours::U64(neighbours) => visit(VertexSlice::Long(neighbours)),
                }
                self.added.visit_neighbours(label, &mut |neighbour| rest(neighbour, visit));
            }
            _ => self.visit_neighbours(label, &mut |neighbour| rest(neighbour, visit)),
        }
        if count > 0 {
            visit(VertexSlice::Long(&buffer[..count]));
        }
    }

    /// True if no added half-edge comes before one of `base`, as is usual: newer edges have higher sequences.
    fn added_come_last(&self, base: HalfEdges<'_>, label: LabelId, only_label: bool) -> bool {
        let Some(last) = base.len().checked_sub(1) else { return true };
        let last = (base.label(last), base.sequence(last));
        let mut come_last = true;
        let _ = self.added.visit_from(label, EdgeId(0), only_label, &mut |label, half_edge| {
            come_last = last < (label, self.layout.edge_sequence(half_edge.edge));
            ControlFlow::Break(())
        });
        come_last
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
        self.added.check_invariants()?;
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
