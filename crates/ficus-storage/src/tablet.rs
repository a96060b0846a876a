//! One partition of a graph: a base segment under pages of vertex rows and pages of edge rows.
//!
//! The [segment](crate::segment) holds what was there at the last consolidation; pages hold what changed since: new rows, rows that
//! stand before one of the base, and marks for rows of the base that are gone. A vertex lives in the tablet that the low bits of its id name, in the slot that the high bits name. An edge lives in the
//! tablet of its out vertex: the low bits of its id name the tablet, the high bits are its *sequence*, unique in the graph,
//! so that ascending edge ids are insertion order. A page covers a range of sequences; of those, a bitmap tells which
//! belong to this tablet, and the rank of a bit is the position of its row.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

use ficus_model::{EdgeId, KeyId, LabelId, Value, VertexId};

use crate::EdgeRecord;
use crate::adjacency::ID_BITS;
use crate::changed_slots::ChangedSlots;
use crate::delta::{DeltaView, Deltas, Gone};
use crate::page_map::PageMap;
use crate::property_row::{EdgeProperties, PropertyRow};
use crate::segment::{EdgePosition, HalfEdges, Numbers, Place, Segment, Side, StoredText};
use crate::side_view::SideView;
use crate::value_key::id_integer;
use crate::vertex_view::{BaseVertex, VertexRow, VertexView};

/// Vertices per page: a commit copies this many rows (some 50 bytes and two counters each) for every vertex that it makes or whose
/// properties it changes.
const VERTEX_PAGE_BITS: u32 = 4;

/// The largest number of sequences an edge page covers, as a power of two.
const EDGE_PAGE_BITS_LIMIT: u32 = 10;
const EDGE_PAGE_WORDS: usize = (1 << EDGE_PAGE_BITS_LIMIT) / 64;

/// Vertices per page.
const VERTEX_PAGE_SLOTS: u64 = 1 << VERTEX_PAGE_BITS;

/// What a page says of a slot.
#[derive(Clone, Debug, Default)]
enum VertexSlot {
    /// Nothing: the base decides.
    #[default]
    Unchanged,
    /// The row to read.
    Row(VertexRow),
    /// The base has this vertex, and it is gone.
    Removed,
}

/// Rows of vertices with neighbouring slots.
type VertexPage = [VertexSlot; VERTEX_PAGE_SLOTS as usize];

fn empty_vertex_page() -> VertexPage {
    std::array::from_fn(|_| VertexSlot::Unchanged)
}

/// An edge without its id and properties, in 16 bytes.
#[derive(Clone, Copy, Debug)]
struct PackedEdge {
    out_low: u32,
    in_low: u32,
    label: LabelId,
    out_high: u16,
    in_high: u16,
}

const _: () = assert!(size_of::<PackedEdge>() == 16);

impl PackedEdge {
    fn new(record: EdgeRecord) -> PackedEdge {
        debug_assert!(record.out.0 >> ID_BITS == 0 && record.in_.0 >> ID_BITS == 0);
        PackedEdge {
            out_low: record.out.0 as u32,
            in_low: record.in_.0 as u32,
            label: record.label,
            out_high: (record.out.0 >> 32) as u16,
            in_high: (record.in_.0 >> 32) as u16,
        }
    }

    fn unpack(self) -> EdgeRecord {
        EdgeRecord {
            label: self.label,
            out: VertexId(u64::from(self.out_high) << 32 | u64::from(self.out_low)),
            in_: VertexId(u64::from(self.in_high) << 32 | u64::from(self.in_low)),
        }
    }
}

/// User ids of the edges of a page.
#[derive(Clone, Debug)]
enum IdColumn {
    /// All are `Long`, as the counter gives them.
    Longs(Vec<i64>),
    /// Anything.
    Values(Vec<Value>),
}

impl IdColumn {
    fn get(&self, position: usize) -> Value {
        match self {
            IdColumn::Longs(ids) => Value::Long(ids[position]),
            IdColumn::Values(ids) => ids[position].clone(),
        }
    }

    fn insert(&mut self, position: usize, id: Value) {
        if let (IdColumn::Longs(ids), Value::Long(id)) = (&mut *self, &id) {
            ids.insert(position, *id);
            return;
        }
        if let IdColumn::Longs(ids) = self {
            *self = IdColumn::Values(ids.iter().copied().map(Value::Long).collect());
        }
        if let IdColumn::Values(ids) = self {
            ids.insert(position, id);
        }
    }

    fn remove(&mut self, position: usize) {
        match self {
            IdColumn::Longs(ids) => {
                ids.remove(position);
            }
            IdColumn::Values(ids) => {
                ids.remove(position);
            }
        }
    }
}

/// Rows of edges with neighbouring sequences whose out vertex is in this tablet.
#[derive(Clone, Debug)]
pub(crate) struct EdgePage {
    present: [u64; EDGE_PAGE_WORDS],
    edges: Vec<PackedEdge>,
    ids: IdColumn,
    /// Empty as long as no edge of the page has a property; else one entry per edge.
    properties: Vec<EdgeProperties>,
    /// Edges of the base that are gone; `None` for none.
    gone: Option<Box<[u64; EDGE_PAGE_WORDS]>>,
}

impl EdgePage {
    fn new() -> EdgePage {
        EdgePage {
            present: [0; EDGE_PAGE_WORDS],
            edges: Vec::new(),
            ids: IdColumn::Longs(Vec::new()),
            properties: Vec::new(),
            gone: None,
        }
    }

    fn is_gone(&self, offset: usize) -> bool {
        self.gone.as_ref().is_some_and(|gone| gone[offset / 64] >> (offset % 64) & 1 == 1)
    }

    fn contains(&self, offset: usize) -> bool {
        self.present[offset / 64] >> (offset % 64) & 1 == 1
    }

    /// Number of rows before this offset.
    fn rank(&self, offset: usize) -> usize {
        let whole: u32 = self.present[..offset / 64].iter().map(|word| word.count_ones()).sum();
        let below = self.present[offset / 64] & ((1u64 << (offset % 64)) - 1);
        (whole + below.count_ones()) as usize
    }
}

/// How ids of one graph are cut into tablet, page and position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdLayout {
    /// Base-2 logarithm of the number of tablets.
    pub(crate) tablet_bits: u8,
}

impl IdLayout {
    /// Number of tablets.
    #[inline]
    pub(crate) fn tablets(self) -> usize {
        1 << self.tablet_bits
    }

    /// The tablet of a vertex.
    #[inline]
    pub(crate) fn vertex_tablet(self, vertex: VertexId) -> usize {
        vertex.0 as usize & (self.tablets() - 1)
    }

    /// The vertex in a slot of a tablet.
    #[inline]
    pub(crate) fn vertex_id(self, slot: u64, tablet: usize) -> VertexId {
        VertexId(slot << self.tablet_bits | tablet as u64)
    }

    /// The tablet of an edge.
    #[inline]
    pub(crate) fn edge_tablet(self, edge: EdgeId) -> usize {
        edge.0 as usize & (self.tablets() - 1)
    }

    /// The id of the edge with this sequence whose source is `out`.
    #[inline]
    pub(crate) fn edge_id(self, sequence: u64, out: VertexId) -> EdgeId {
        EdgeId(sequence << self.tablet_bits | self.vertex_tablet(out) as u64)
    }

    /// The id of the edge with this sequence whose source is in this tablet.
    #[inline]
    pub(crate) fn edge_in_tablet(self, sequence: u64, tablet: usize) -> EdgeId {
        EdgeId(sequence << self.tablet_bits | tablet as u64)
    }

    /// The sequence in an edge id.
    #[inline]
    pub(crate) fn edge_sequence(self, edge: EdgeId) -> u64 {
        edge.0 >> self.tablet_bits
    }

    /// The slot of a vertex in its tablet.
    #[inline]
    pub(crate) fn vertex_slot(self, vertex: VertexId) -> u64 {
        vertex.0 >> self.tablet_bits
    }

    /// A page has about 64 rows when sources are spread evenly over the tablets.
    pub(crate) fn edge_page_bits(self) -> u32 {
        (6 + u32::from(self.tablet_bits)).min(EDGE_PAGE_BITS_LIMIT)
    }

    fn edge_place(self, edge: EdgeId) -> (u64, usize) {
        let sequence = self.edge_sequence(edge);
        (sequence >> self.edge_page_bits(), sequence as usize & ((1 << self.edge_page_bits()) - 1))
    }
}

/// One partition of a graph. On cache lines of its own: whoever makes the next root changes the counters of all tablets, and readers
/// would wait for the lines.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
pub(crate) struct Tablet {
    base: Option<Arc<Segment>>,
    vertices: PageMap<VertexPage>,
    edges: PageMap<EdgePage>,
    /// Slots that the pages of vertices speak of, where there is a base.
    changed: ChangedSlots,
    /// What changed in the out half-edges, and in the in half-edges.
    out: Deltas,
    in_: Deltas,
}

/// The numbers of the vertices of a base under a key, one for each slot of a range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainNumbers<'a> {
    first: u64,
    count: u64,
    numbers: &'a Numbers,
    /// Slots that pages speak of; `None` for none.
    changed: Option<&'a ChangedSlots>,
}

impl<'a> PlainNumbers<'a> {
    /// As [`Tablet::number_place`].
    #[inline(always)]
    pub(crate) fn place(&self, slot: u64) -> Place<'a> {
        let rank = slot.wrapping_sub(self.first);
        match self.changed {
            Some(changed) if changed.contains(slot) => Place::Unknown,
            _ if rank < self.count => Place::At(self.numbers, rank),
            _ => Place::Nowhere,
        }
    }
}

/// Where the row of an edge is.
enum EdgePlace<'a> {
    Page(&'a EdgePage, usize),
    Base(&'a Segment, EdgePosition),
}

impl Tablet {
    /// A tablet with all it has in a segment.
    pub(crate) fn on(base: Arc<Segment>) -> Tablet {
        Tablet { base: Some(base), ..Tablet::default() }
    }

    /// The pages alone: to be compared with those of a later version on the same base.
    pub(crate) fn pages(&self) -> Tablet {
        Tablet { base: None, ..self.clone() }
    }

    /// Hands out the slots whose vertices may have come, gone, or got other properties since an earlier version on the same base.
    pub(crate) fn visit_changed_vertices(&self, earlier: &Tablet, visit: &mut impl FnMut(u64)) {
        let is_told = |page: Option<&VertexPage>, position: usize| {
            page.is_some_and(|page| !matches!(page[position], VertexSlot::Unchanged))
        };
        self.vertices.visit_changed(&earlier.vertices, &mut |number, then, now| {
            for position in 0..VERTEX_PAGE_SLOTS as usize {
                if is_told(then, position) || is_told(now, position) {
                    visit(number << VERTEX_PAGE_BITS | position as u64);
                }
            }
        });
    }

    /// Hands out the ends of edges that may have come or got other properties since an earlier version on the same base.
    pub(crate) fn visit_changed_edges(&self, earlier: &Tablet, visit: &mut impl FnMut(EdgeRecord)) {
        self.edges.visit_changed(&earlier.edges, &mut |_, then, now| {
            for page in then.into_iter().chain(now) {
                page.edges.iter().for_each(|edge| visit(edge.unpack()));
            }
        });
    }

    /// The segment under the pages.
    #[inline]
    pub(crate) fn base(&self) -> Option<&Arc<Segment>> {
        self.base.as_ref()
    }

    /// What changed in the half-edges of one side since the base.
    #[inline]
    pub(crate) fn deltas(&self, side: Side) -> &Deltas {
        match side {
            Side::Out => &self.out,
            Side::In => &self.in_,
        }
    }

    pub(crate) fn deltas_mut(&mut self, side: Side) -> &mut Deltas {
        match side {
            Side::Out => &mut self.out,
            Side::In => &mut self.in_,
        }
    }

    /// The slot of the base, if the base has a vertex there.
    fn base_vertex(&self, slot: u64) -> Option<BaseVertex<'_>> {
        let segment = self.base.as_deref()?;
        segment.has_vertex(slot).then_some(BaseVertex { segment, slot })
    }

    /// A vertex, read through all layers.
    #[inline]
    pub(crate) fn vertex(&self, layout: IdLayout, vertex: VertexId) -> Option<VertexView<'_>> {
        let slot = layout.vertex_slot(vertex);
        if self.base.is_some() && !self.changed.contains(slot) {
            return self.base_vertex(slot).map(VertexView::Base);
        }
        let (page, position) = page_of(slot);
        match self.vertices.page(page).map(|page| &page[position]) {
            None | Some(VertexSlot::Unchanged) => self.base_vertex(slot).map(VertexView::Base),
            Some(VertexSlot::Row(row)) => Some(VertexView::Row(row)),
            Some(VertexSlot::Removed) => None,
        }
    }

    /// Where the number of the only value of a vertex under a key is, if the vertex is in the base alone and the column is one of
    /// moments or, else, of integers.
    #[inline]
    pub(crate) fn number_place(&self, slot: u64, key: KeyId, of_moments: bool) -> Place<'_> {
        match &self.base {
            Some(base) if !self.changed.contains(slot) => base.number_place(slot, key, of_moments),
            _ => Place::Unknown,
        }
    }

    /// Where the numbers of the vertices of the base under a key are, if a subtraction tells it for each.
    pub(crate) fn plain_numbers(&self, key: KeyId, of_moments: bool) -> Option<PlainNumbers<'_>> {
        let (slots, numbers) = self.base.as_ref()?.plain_numbers(key, of_moments)?;
        let changed = Some(&self.changed).filter(|changed| !changed.is_empty());
        Some(PlainNumbers { first: slots.start, count: slots.end - slots.start, numbers, changed })
    }

    /// Where the code of the only value of a vertex under a key is, if the vertex is in the base alone and the value a text of a dictionary;
    /// its text says [`Tablet::text_of_code`].
    #[inline]
    pub(crate) fn code_place(&self, slot: u64, key: KeyId) -> Place<'_> {
        match &self.base {
            Some(base) if !self.changed.contains(slot) => base.code_place(slot, key),
            _ => Place::Unknown,
        }
    }

    /// The text of a code that the base has under a key.
    pub(crate) fn text_of_code(&self, key: KeyId, code: u64) -> Option<&Arc<str>> {
        self.base.as_ref()?.text_of_code(key, code)
    }

    /// Whether a vertex has a value under a key, as 1 or 0, if it is in the base alone.
    #[inline]
    pub(crate) fn presence(&self, slot: u64, key: KeyId) -> Place<'_> {
        match &self.base {
            Some(base) if !self.changed.contains(slot) => Place::Known(u64::from(base.has_value(slot, key))),
            _ => Place::Unknown,
        }
    }

    /// The only value of a vertex under a key, if it is a text and the vertex is in the base alone; `None` if there is no value, the inner
    /// one if that is not so.
    #[inline]
    pub(crate) fn text(&self, slot: u64, key: KeyId) -> Option<Option<StoredText<'_>>> {
        match &self.base {
            Some(base) if !self.changed.contains(slot) => base.text(slot, key),
            _ => Some(None),
        }
    }

    /// As [`Tablet::number_place`], of an edge.
    #[inline]
    pub(crate) fn edge_number_place(&self, layout: IdLayout, edge: EdgeId, key: KeyId, of_moments: bool) -> Place<'_> {
        match self.edge_place(layout, edge) {
            Some(EdgePlace::Base(base, position)) => base.edge_number_place(position, key, of_moments),
            Some(EdgePlace::Page(..)) => Place::Unknown,
            None => Place::Nowhere,
        }
    }

    /// Hands out the slots of vertices that have this text under a key, and of those that would have to be read to know. False, and
    /// nothing handed out, if that takes looking at more than `left` values, from which it is subtracted; or if there is no base.
    pub(crate) fn visit_slots_with_text(
        &self,
        key: KeyId,
        text: &str,
        left: &mut u64,
        visit: &mut dyn FnMut(u64),
    ) -> bool {
        let Some(base) = &self.base else { return false };
        let most = usize::try_from(*left).unwrap_or(usize::MAX).saturating_add(1);
        let changed = self.changed.iter().take(most).count() as u64;
        let Some(rest) = left.checked_sub(changed + base.count_with_key(key)) else { return false };
        *left = rest;
        base.visit_slots_with_text(key, text, &mut |slot| {
            if !self.changed.contains(slot) {
                visit(slot);
            }
        });
        self.changed.iter().for_each(visit);
        true
    }

    /// Where the label of a vertex is, or which of these it has (some other number if none), if it is in the base alone.
    #[inline]
    pub(crate) fn label_place(&self, slot: u64, labels: &[LabelId]) -> Place<'_> {
        match &self.base {
            Some(base) if !self.changed.contains(slot) => base.label_place(slot, labels),
            _ => Place::Unknown,
        }
    }

    /// Where the label of a vertex is, if the vertex is in the base alone.
    #[inline]
    pub(crate) fn own_label_place(&self, slot: u64) -> Place<'_> {
        match &self.base {
            Some(base) if !self.changed.contains(slot) => base.own_label_place(slot),
            _ => Place::Unknown,
        }
    }

    /// Which of the 64 slots from `first` on, a multiple of 64, have a vertex of the base with the label, as bits.
    pub(crate) fn label_word(&self, layout: IdLayout, number: usize, label: LabelId, first: u64) -> u64 {
        let mut word = self.base.as_ref().map_or(0, |base| base.label_word(label, first));
        let mut changed = word & self.changed.word(first);
        while changed != 0 {
            let slot = first + u64::from(changed.trailing_zeros());
            if self.vertex(layout, layout.vertex_id(slot, number)).is_none() {
                word &= !(1 << (slot - first));
            }
            changed &= changed - 1;
        }
        word
    }

    /// Begins to load where the half-edges of a slot are in the base, or (`content`) these themselves.
    #[inline]
    pub(crate) fn prefetch_half_edges(&self, slot: u64, side: Side, content: bool) {
        if let Some(base) = &self.base {
            base.prefetch_half_edges(slot, side, content);
        }
    }

    /// Labels of the vertices of the base that have half-edges with a label there, see [`Segment::end_labels`]; `None` also without a base.
    pub(crate) fn base_end_labels(&self, side: Side, label: LabelId, budget: &mut u64) -> Option<Arc<[LabelId]>> {
        self.base.as_deref()?.end_labels(side, label, budget)
    }

    /// Slots whose half-edges with a label may differ from those of the base.
    pub(crate) fn changed_with(&self, side: Side, label: LabelId) -> impl Iterator<Item = u64> {
        self.deltas(side).touched_with(Some(label)).iter()
    }

    /// The half-edges of a vertex, of one label or all, if all there is to know of them is in the base.
    #[inline]
    pub(crate) fn unchanged_half_edges(&self, slot: u64, side: Side, label: Option<LabelId>) -> Option<HalfEdges<'_>> {
        let base = self.base.as_deref()?;
        if self.deltas(side).touched_with(label).contains(slot) {
            return None;
        }
        let half_edges = base.half_edges(slot, side);
        Some(label.map_or(half_edges, |label| half_edges.with_label(label)))
    }

    /// The half-edges of a slot, read through all layers; of a vertex that is gone, none.
    #[inline]
    pub(crate) fn side(&self, layout: IdLayout, number: usize, slot: u64, side: Side) -> SideView<'_> {
        let deltas = self.deltas(side);
        let base = self.base.as_deref().map_or(HalfEdges::none(), |base| base.half_edges(slot, side));
        let is_touched = self.base.is_none() || deltas.touched().contains(slot);
        let delta = if is_touched { deltas.of_slot(slot) } else { DeltaView::NONE };
        SideView::new(base, delta, side, layout, layout.vertex_id(slot, number))
    }

    /// Hands out the neighbours of a slot, of one label or all: those of the base first.
    #[inline]
    pub(crate) fn visit_neighbours(
        &self,
        slot: u64,
        side: Side,
        label: Option<LabelId>,
        visit: &mut impl FnMut(VertexId),
    ) {
        let deltas = self.deltas(side);
        let (base, is_touched) = match self.base.as_deref() {
            Some(base) => (base.half_edges(slot, side), deltas.touched_with(label).contains(slot)),
            None => (HalfEdges::none(), true),
        };
        let delta = if is_touched { deltas.of_slot(slot) } else { DeltaView::NONE };
        match delta.gone {
            Gone::Few([]) => label.map_or(base, |label| base.with_label(label)).neighbours().visit(visit),
            gone => visit_left(base, gone, label, visit),
        }
        if is_touched {
            delta.added.visit_neighbours(label, visit);
        }
    }

    /// Adds a half-edge that is not there.
    pub(crate) fn insert_half_edge(
        &mut self,
        side: Side,
        slot: u64,
        label: LabelId,
        edge: EdgeId,
        neighbour: VertexId,
    ) {
        let has_base = self.base.is_some();
        self.deltas_mut(side).insert(slot, has_base, label, edge, neighbour);
    }

    /// Removes a half-edge; false if it is not there.
    pub(crate) fn remove_half_edge(
        &mut self,
        layout: IdLayout,
        side: Side,
        slot: u64,
        label: LabelId,
        edge: EdgeId,
    ) -> bool {
        let base = self.base.clone();
        let base = base.as_deref().map_or(HalfEdges::none(), |base| base.half_edges(slot, side));
        let deltas = self.deltas_mut(side);
        match base.position_of(label, layout.edge_sequence(edge)) {
            Some(place) => deltas.remove_of_base(slot, label, place as u64, |place| base.label(place as usize)),
            None => deltas.remove_added(slot, label, edge),
        }
    }

    /// Notes that the pages speak of a slot.
    fn mark(&mut self, slot: u64) {
        if self.base.is_some() {
            self.changed.insert(slot);
        }
    }

    /// The properties of a vertex, to be changed. What only the base has gets a row.
    pub(crate) fn vertex_properties_mut(&mut self, layout: IdLayout, vertex: VertexId) -> Option<&mut PropertyRow> {
        let slot = layout.vertex_slot(vertex);
        let (page, position) = page_of(slot);
        let copy = match self.vertices.page(page).map(|page| &page[position]) {
            None | Some(VertexSlot::Unchanged) => Some(VertexRow::of_base(&self.base_vertex(slot)?)),
            Some(VertexSlot::Row(_)) => None,
            Some(VertexSlot::Removed) => return None,
        };
        self.mark(slot);
        let place = &mut self.vertices.page_mut_or(page, empty_vertex_page)[position];
        if let Some(row) = copy {
            *place = VertexSlot::Row(row);
        }
        match place {
            VertexSlot::Row(row) => Some(&mut row.properties),
            VertexSlot::Unchanged | VertexSlot::Removed => None,
        }
    }

    /// Puts a row in the slot of a vertex.
    pub(crate) fn insert_vertex(&mut self, layout: IdLayout, vertex: VertexId, row: VertexRow) {
        let slot = layout.vertex_slot(vertex);
        self.mark(slot);
        let (page, position) = page_of(slot);
        self.vertices.page_mut_or(page, empty_vertex_page)[position] = VertexSlot::Row(row);
    }

    /// Empties the slot of a vertex that exists.
    pub(crate) fn remove_vertex(&mut self, layout: IdLayout, vertex: VertexId) {
        let slot = layout.vertex_slot(vertex);
        let (page, position) = page_of(slot);
        self.mark(slot);
        let left = if self.base_vertex(slot).is_some() { VertexSlot::Removed } else { VertexSlot::Unchanged };
        self.vertices.page_mut_or(page, empty_vertex_page)[position] = left;
    }

    /// Label and ends of an edge.
    pub(crate) fn edge(&self, layout: IdLayout, edge: EdgeId) -> Option<EdgeRecord> {
        Some(match self.edge_place(layout, edge)? {
            EdgePlace::Page(page, position) => page.edges[position].unpack(),
            EdgePlace::Base(base, position) => base.edge(position),
        })
    }

    /// The user id of an edge.
    pub(crate) fn edge_user_id(&self, layout: IdLayout, edge: EdgeId) -> Option<Value> {
        Some(match self.edge_place(layout, edge)? {
            EdgePlace::Page(page, position) => page.ids.get(position),
            EdgePlace::Base(base, position) => base.edge_user_id(position),
        })
    }

    /// True if the edge exists and has this user id.
    pub(crate) fn edge_has_id(&self, layout: IdLayout, edge: EdgeId, wanted: &Value) -> bool {
        match self.edge_place(layout, edge) {
            None => false,
            Some(EdgePlace::Base(base, position)) => base.edge_has_user_id(position, wanted),
            Some(EdgePlace::Page(page, position)) => match &page.ids {
                IdColumn::Longs(ids) => id_integer(wanted) == Some(ids[position]),
                IdColumn::Values(ids) => crate::value_key::ids_equal(&ids[position], wanted),
            },
        }
    }

    /// The properties of an edge.
    pub(crate) fn edge_properties(&self, layout: IdLayout, edge: EdgeId) -> Cow<'_, [(KeyId, Value)]> {
        match self.edge_place(layout, edge) {
            None => Cow::Borrowed(&[]),
            Some(EdgePlace::Page(page, position)) => {
                Cow::Borrowed(page.properties.get(position).and_then(|properties| properties.as_deref()).unwrap_or(&[]))
            }
            Some(EdgePlace::Base(base, position)) => Cow::Owned(base.edge_properties(position)),
        }
    }

    /// The value of an edge under a key.
    pub(crate) fn edge_value(&self, layout: IdLayout, edge: EdgeId, key: KeyId) -> Option<Value> {
        match self.edge_place(layout, edge)? {
            EdgePlace::Page(page, position) => {
                let properties = page.properties.get(position)?.as_deref()?;
                properties.iter().find(|(existing, _)| *existing == key).map(|(_, value)| value.clone())
            }
            EdgePlace::Base(base, position) => base.edge_value(position, key),
        }
    }

    /// Adds a row for an edge that has none.
    pub(crate) fn insert_edge(
        &mut self,
        layout: IdLayout,
        edge: EdgeId,
        record: EdgeRecord,
        id: Value,
        properties: EdgeProperties,
    ) {
        let (number, offset) = layout.edge_place(edge);
        let page = self.edges.page_mut_or(number, EdgePage::new);
        assert!(!page.contains(offset), "an edge id is used once");
        let position = page.rank(offset);
        page.present[offset / 64] |= 1 << (offset % 64);
        page.edges.insert(position, PackedEdge::new(record));
        page.ids.insert(position, id);
        if !page.properties.is_empty() || properties.is_some() {
            page.properties.resize(page.edges.len() - 1, None);
            page.properties.insert(position, properties);
        }
    }

    /// Replaces the properties of an edge that exists. An edge of the base gets a row that stands before it.
    pub(crate) fn set_edge_properties(&mut self, layout: IdLayout, edge: EdgeId, properties: EdgeProperties) {
        let (number, offset) = layout.edge_place(edge);
        if !self.edges.page(number).is_some_and(|page| page.contains(offset)) {
            let (Some(record), Some(id)) = (self.edge(layout, edge), self.edge_user_id(layout, edge)) else { return };
            return self.insert_edge(layout, edge, record, id, properties);
        }
        let Some(page) = self.edges.page_mut(number) else { return };
        let position = page.rank(offset);
        if page.properties.is_empty() {
            page.properties.resize(page.edges.len(), None);
        }
        page.properties[position] = properties;
    }

    /// Removes the row of an edge that exists.
    pub(crate) fn remove_edge(&mut self, layout: IdLayout, edge: EdgeId) {
        let (number, offset) = layout.edge_place(edge);
        let in_base = self.base.as_ref().is_some_and(|base| base.find_edge(layout.edge_sequence(edge)).is_some());
        let page = match in_base {
            true => self.edges.page_mut_or(number, EdgePage::new),
            false => match self.edges.page_mut(number) {
                Some(page) => page,
                None => return,
            },
        };
        if page.contains(offset) {
            let position = page.rank(offset);
            page.present[offset / 64] &= !(1 << (offset % 64));
            page.edges.remove(position);
            page.ids.remove(position);
            if !page.properties.is_empty() {
                page.properties.remove(position);
            }
        }
        if in_base {
            page.gone.get_or_insert_default()[offset / 64] |= 1 << (offset % 64);
        }
    }

    fn edge_place(&self, layout: IdLayout, edge: EdgeId) -> Option<EdgePlace<'_>> {
        let (number, offset) = layout.edge_place(edge);
        if let Some(page) = self.edges.page(number) {
            if page.contains(offset) {
                return Some(EdgePlace::Page(page, page.rank(offset)));
            }
            if page.is_gone(offset) {
                return None;
            }
        }
        let base = self.base.as_deref()?;
        base.find_edge(layout.edge_sequence(edge)).map(|position| EdgePlace::Base(base, position))
    }

    /// The first slot of the first group of [`Tablet::GROUP`] slots at or after the group of `slot` that may have vertices.
    pub(crate) fn next_vertex_group(&self, slot: u64) -> Option<u64> {
        let first = slot >> VERTEX_PAGE_BITS << VERTEX_PAGE_BITS;
        let base = self.base.as_ref().and_then(|base| base.next_vertex(first));
        let page = self.vertices.next_page(slot >> VERTEX_PAGE_BITS).map(|(number, _)| number << VERTEX_PAGE_BITS);
        // The slots that no vertex will ever have again may be many; they are passed over.
        base.into_iter().chain(page).map(|slot| slot >> VERTEX_PAGE_BITS << VERTEX_PAGE_BITS).min()
    }

    /// Slots of a group.
    pub(crate) const GROUP: u64 = VERTEX_PAGE_SLOTS;

    /// Which slots of the group that begins with `first` have a vertex, as bits.
    pub(crate) fn vertex_group(&self, first: u64) -> u32 {
        let page = self.vertices.page(first >> VERTEX_PAGE_BITS);
        let mut found = 0;
        for position in 0..VERTEX_PAGE_SLOTS {
            let there = match page.map_or(&VertexSlot::Unchanged, |page| &page[position as usize]) {
                VertexSlot::Row(_) => true,
                VertexSlot::Removed => false,
                VertexSlot::Unchanged => self.base.as_ref().is_some_and(|base| base.has_vertex(first + position)),
            };
            found |= u32::from(there) << position;
        }
        found
    }

    /// What the pages say, slot by slot: the overlay that a checkpoint has to keep.
    pub(crate) fn visit_overlay(&self, visit: &mut dyn FnMut(u64, Option<&VertexRow>)) {
        let mut number = 0;
        while let Some((found, page)) = self.vertices.next_page(number) {
            for (position, slot) in page.iter().enumerate() {
                let place = (found << VERTEX_PAGE_BITS) + position as u64;
                match slot {
                    VertexSlot::Unchanged => {}
                    VertexSlot::Row(row) => visit(place, Some(row)),
                    VertexSlot::Removed => visit(place, None),
                }
            }
            number = found + 1;
        }
    }

    /// The sequences that the edge pages speak of: `true` for a row, `false` for an edge of the base that is gone.
    pub(crate) fn visit_edge_overlay(&self, layout: IdLayout, visit: &mut dyn FnMut(u64, bool)) {
        let mut number = 0;
        while let Some((found, page)) = self.edges.next_page(number) {
            let first = found << layout.edge_page_bits();
            for word in 0..EDGE_PAGE_WORDS {
                let gone = page.gone.as_ref().map_or(0, |gone| gone[word]);
                for (mut bits, is_row) in [(page.present[word], true), (gone, false)] {
                    while bits != 0 {
                        visit(first + word as u64 * 64 + u64::from(bits.trailing_zeros()), is_row);
                        bits &= bits - 1;
                    }
                }
            }
            number = found + 1;
        }
    }

    /// True if the base has an edge of this sequence, gone or not.
    pub(crate) fn base_has_edge(&self, sequence: u64) -> bool {
        self.base.as_ref().is_some_and(|base| base.find_edge(sequence).is_some())
    }

    /// The number of the first page of edges with at least this number that may have edges.
    pub(crate) fn next_edge_page(&self, layout: IdLayout, number: u64) -> Option<u64> {
        let overlay = self.edges.next_page(number).map(|(number, _)| number);
        let mut base = None;
        if let Some(segment) = &self.base {
            segment.visit_sequences(number << layout.edge_page_bits(), &mut |sequence| {
                base = Some(sequence >> layout.edge_page_bits());
                ControlFlow::Break(())
            });
        }
        overlay.into_iter().chain(base).min()
    }

    /// Which 64 sequences of an edge page, counted from `word * 64`, have a row here.
    pub(crate) fn edge_word(&self, layout: IdLayout, number: u64, word: usize) -> u64 {
        let page = self.edges.page(number);
        let mut found = 0u64;
        if let Some(segment) = &self.base {
            let first = (number << layout.edge_page_bits()) + word as u64 * 64;
            segment.visit_sequences(first, &mut |sequence| {
                if sequence - first >= 64 {
                    return ControlFlow::Break(());
                }
                found |= 1 << (sequence - first);
                ControlFlow::Continue(())
            });
        }
        if let Some(page) = page {
            found &= !page.gone.as_ref().map_or(0, |gone| gone[word]);
            found |= page.present[word];
        }
        found
    }
}

/// Hands out the neighbours that a list of the base still has, of one label or all.
fn visit_left(base: HalfEdges<'_>, gone: Gone<'_>, label: Option<LabelId>, visit: &mut impl FnMut(VertexId)) {
    let places = label.map_or(0..base.len(), |label| base.range_of_label(label));
    let _ = gone.visit_left(places, &mut |left| {
        base.range(left.start, left.end).neighbours().visit(visit);
        ControlFlow::Continue(())
    });
}

fn page_of(slot: u64) -> (u64, usize) {
    (slot >> VERTEX_PAGE_BITS, (slot & (VERTEX_PAGE_SLOTS - 1)) as usize)
}

/// Tablets of a graph without elements.
pub(crate) fn empty_tablets(layout: IdLayout) -> Vec<Arc<Tablet>> {
    (0..layout.tablets()).map(|_| Arc::new(Tablet::default())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edge_rows_are_found_whatever_the_order_they_came_in() {
        for tablet_bits in [0u8, 1, 4, 7] {
            let layout = IdLayout { tablet_bits };
            let mut tablet = Tablet::default();
            let out = VertexId(1 << tablet_bits);
            let record =
                |sequence: u64| EdgeRecord { label: LabelId(sequence as u32 % 3), out, in_: VertexId(sequence * 7) };
            let sequences: Vec<u64> = (0..5000).map(|n| n * 1237 % 5000).filter(|n| n % 3 != 0).collect();
            for &sequence in &sequences {
                let id = if sequence == 4001 { Value::String("x".into()) } else { Value::Long(sequence as i64) };
                let properties = (sequence % 1000 == 1).then(|| [(ficus_model::KeyId(1), Value::Int(1))].into());
                tablet.insert_edge(layout, layout.edge_id(sequence, out), record(sequence), id, properties);
            }
            for &sequence in sequences.iter().filter(|sequence| *sequence % 5 == 0) {
                tablet.remove_edge(layout, layout.edge_id(sequence, out));
            }
            for sequence in 0..5000 {
                let edge = layout.edge_id(sequence, out);
                let there = sequence % 3 != 0 && sequence % 5 != 0;
                assert_eq!(tablet.edge(layout, edge), there.then(|| record(sequence)));
                assert_eq!(tablet.edge_has_id(layout, edge, &Value::Int(sequence as i32)), there && sequence != 4001);
                let properties = !tablet.edge_properties(layout, edge).is_empty();
                assert_eq!(properties, there && sequence % 1000 == 1);
            }
        }
    }
}
