//! The immutable base of a tablet: columns over mapped bytes, and the tables that find elements by user id.
//!
//! ```text
//! SegmentBuilder ──finish──▶ SegmentImage ──write──▶ file ──map──▶ SegmentBytes ──open──▶ Segment
//!                                  └────────into_bytes────────────────▲
//! ```
//! A segment knows nothing of versions, pages or commits: it answers by slot (vertices) and by sequence or position (edges).
//! *Positions* count the out half-edges of the tablet in the order (slot, label, sequence), and are what columns of edges
//! are indexed by. The format is told to the byte in `docs/storage.md`.
#![allow(dead_code, reason = "a segment answers more than its tablet asks so far")]

mod builder;
mod damage;
mod edges;
mod end_labels;
mod file;
mod half_edges;
mod id_table;
mod ids;
mod index_run;
mod key_columns;
mod members;
#[cfg(test)]
mod model_tests;
mod numbers;
mod numbers_builder;
mod rows;
mod runs;
mod short_half_edges;
mod sorted_runs;
mod values;
mod vertex_properties;

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use ficus_model::{KeyId, LabelId, Value};

use self::edges::Edges;
use self::end_labels::EndLabels;
use self::file::{FileKind, Owner, SegmentFile, part};
use self::half_edges::HalfEdgeColumns;
use self::ids::Ids;
use self::members::Members;
use self::rows::Rows;
use self::sorted_runs::SortedRuns;
use self::vertex_properties::VertexProperties;
use crate::index::INDEX_KEYS_LIMIT;
use crate::mapping::SegmentBytes;
use crate::property_row::{VisitMetas, VisitProperty, Wanted};
use crate::sort_order::SortOrder;
use crate::tablet::IdLayout;
use crate::words::WORD_LIMIT;
use crate::{EdgeRecord, StoreError};

pub(crate) use builder::SegmentBuilder;
pub(crate) use file::{SEGMENT_FILE_HEADER_BYTES, SegmentImage, renumbered_header, verify_file};
pub(crate) use half_edges::{HalfEdges, Neighbours};
pub(crate) use id_table::{IdTable, IdTableBuilder, stable_id_hash};
pub(crate) use index_run::{IndexRun, IndexRunBuilder, KeyForm, RunPlace};
pub(crate) use numbers::{Numbers, Place};
pub(crate) use short_half_edges::ShortHalfEdges;
pub(crate) use sorted_runs::SHORT_RUN;
pub(crate) use values::StoredText;

/// Tablets of one graph, as a power of two, that any release makes.
const TABLET_BITS_LIMIT: u32 = 16;

/// A list of half-edges of a vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Those whose source it is.
    Out,
    /// Those whose target it is.
    In,
}

/// The place of an edge among the out half-edges of its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EdgePosition(pub(crate) u64);

/// Whose segment a file is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SegmentOrigin {
    /// The store's number.
    pub(crate) store: u64,
    /// The graph's number.
    pub(crate) graph: u32,
}

/// The immutable base of one tablet. On cache lines of its own: every copy of its tablet changes its counter, and readers would wait for
/// the line.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Segment {
    file: SegmentFile,
    layout: IdLayout,
    tablet: usize,
    slots: u64,
    vertices: Members,
    rows: Rows,
    /// By row; of no meaning where there is no vertex.
    labels: Numbers,
    slots_of_label: Vec<(LabelId, Members)>,
    /// By label, where it is in `slots_of_label`; behind the end for those that no vertex has.
    places_of_labels: Vec<u32>,
    vertices_of_label: Vec<(LabelId, u64)>,
    edges_of_label: Vec<(LabelId, u64)>,
    ids: Ids,
    properties: VertexProperties,
    out: HalfEdgeColumns,
    in_: HalfEdgeColumns,
    edges: Edges,
    sort_orders: Vec<SortOrder>,
    sorted_out: SortedRuns,
    sorted_in: SortedRuns,
    end_labels: EndLabels,
}

/// The half-edges of a vertex with one label, and their order by sort keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SortedRun<'a> {
    /// The half-edges in the order of sequences.
    pub(crate) half_edges: HalfEdges<'a>,
    /// Where the order begins; `None` if they are in order, or are at most [`SHORT_RUN`].
    order: Option<(&'a SortedRuns, u64)>,
}

impl SortedRun<'_> {
    /// The place, among the half-edges, of the one that is at `index` in the order of keys.
    pub(crate) fn place(&self, index: usize) -> usize {
        match self.order {
            Some((runs, start)) => runs.place(start + index as u64).min(self.half_edges.len().saturating_sub(1)),
            None => index,
        }
    }
}

impl Segment {
    /// Reads header and directory. What they say is checked against each other and the length of the file; the content of
    /// sections is only checked by [`Segment::verify`], so opening touches few pages.
    pub(crate) fn open(bytes: Arc<SegmentBytes>, name: &str) -> Result<Segment, StoreError> {
        let file = SegmentFile::open(bytes, name, FileKind::Segment)?;
        let header = file.header;
        if header.tablet_bits > TABLET_BITS_LIMIT || header.tablet >> header.tablet_bits != 0 {
            return Err(StoreError::corrupt(name, 0, "there is no such tablet"));
        }
        let slots = header.slots;
        let vertices = Members::open(&file, Owner::Vertices, 0, slots)?;
        let labels = Numbers::open(&file, Owner::VertexLabels.part(part::NUMBERS))?;
        let row_count = labels.len();
        let rows = Rows::of(row_count, slots, &vertices)
            .ok_or_else(|| StoreError::corrupt(name, 0, "there are not as many labels as slots or vertices"))?;
        let mut labelled: Vec<u32> = file.keys_of(Owner::SlotsOfLabel, part::BITMAP).collect();
        labelled.extend(file.keys_of(Owner::SlotsOfLabel, part::RANGE_STARTS));
        labelled.sort_unstable();
        labelled.dedup();
        let mut slots_of_label = Vec::with_capacity(labelled.len());
        for label in labelled {
            slots_of_label.push((LabelId(label), Members::open(&file, Owner::SlotsOfLabel, label, slots)?));
        }
        let mut places_of_labels = Vec::new();
        for (place, (label, _)) in slots_of_label.iter().enumerate() {
            let index = label.0 as usize;
            if index >= WORD_LIMIT {
                return Err(StoreError::corrupt(name, 0, "the number of a label is too large"));
            }
            places_of_labels.resize(index + 1, u32::MAX);
            places_of_labels[index] = place as u32;
        }
        let vertices_of_label: Vec<(LabelId, u64)> =
            slots_of_label.iter().map(|(label, slots)| (*label, slots.count())).collect();
        let mut edges_of_label = Vec::new();
        for label in file.keys_of(Owner::EdgesOfLabel, part::NUMBERS) {
            let count = Numbers::open_counted(&file, Owner::EdgesOfLabel.key_part(label, part::NUMBERS), 1)?.get(0);
            edges_of_label.push((LabelId(label), count));
        }
        let mut sort_orders = Vec::new();
        for label in file.keys_of(Owner::SortKeys, part::LABELS) {
            let entry = file.entry(Owner::SortKeys.key_part(label, part::LABELS))?;
            let numbers = Numbers::of(&file, entry)?;
            let few = (numbers.len() <= INDEX_KEYS_LIMIT as u64).then_some(numbers);
            let order = few.and_then(|own| SortOrder::of_numbers(LabelId(label), (0..own.len()).map(|at| own.get(at))));
            sort_orders.push(order.ok_or_else(|| file.corrupt(entry, "a sort key is too large"))?);
        }
        let out = HalfEdgeColumns::open(&file, Owner::Out, row_count)?;
        let known: Vec<LabelId> = slots_of_label.iter().map(|(label, _)| *label).collect();
        Ok(Segment {
            layout: IdLayout { tablet_bits: header.tablet_bits as u8 },
            tablet: header.tablet as usize,
            slots,
            ids: Ids::open(&file, Owner::VertexIds, vertices.count())?,
            properties: VertexProperties::open(&file, &known)?,
            in_: HalfEdgeColumns::open(&file, Owner::In, row_count)?,
            edges: Edges::open(&file, out.len())?,
            sorted_out: SortedRuns::open(&file, Owner::SortedOut)?,
            sorted_in: SortedRuns::open(&file, Owner::SortedIn)?,
            sort_orders,
            out,
            vertices,
            rows,
            labels,
            slots_of_label,
            places_of_labels,
            vertices_of_label,
            edges_of_label,
            file,
            end_labels: EndLabels::default(),
        })
    }

    /// Reads everything and checks checksums, order and ranges.
    pub(crate) fn verify(&self) -> Result<(), StoreError> {
        self.file.verify()?;
        self.verify_columns().map_err(|what| StoreError::corrupt(self.name(), 0, what))
    }

    fn verify_columns(&self) -> Result<(), &'static str> {
        self.vertices.verify()?;
        let mut labelled = 0;
        for (label, slots) in &self.slots_of_label {
            slots.verify()?;
            labelled += slots.count();
            let agrees = slots.visit_from(0, &mut |slot| match self.has_vertex(slot) && self.label(slot) == *label {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            });
            if agrees.is_break() {
                return Err("the slots of a label and the labels of slots disagree");
            }
        }
        if labelled != self.vertex_count() {
            return Err("there are vertices that are under no label");
        }
        self.ids.verify()?;
        self.properties.verify(&self.vertices)?;
        self.out.verify()?;
        self.in_.verify()?;
        let empty = |slot| self.half_edges(slot, Side::Out).is_empty() && self.half_edges(slot, Side::In).is_empty();
        if self.rows == Rows::Slots && !(0..self.slots).all(|slot| self.has_vertex(slot) || empty(slot)) {
            return Err("a slot without a vertex has half-edges");
        }
        self.sorted_out.verify(|start| self.out.run_length(start))?;
        self.sorted_in.verify(|start| self.in_.run_length(start))?;
        self.edges.verify(&self.out)?;
        let mut counts = BTreeMap::new();
        (0..self.out.len()).for_each(|position| *counts.entry(self.out.label(position)).or_insert(0) += 1);
        if !counts.into_iter().eq(self.edges_of_label.iter().copied()) {
            return Err("the number of edges of a label is wrong");
        }
        Ok(())
    }

    /// Whose it is.
    pub(crate) fn origin(&self) -> SegmentOrigin {
        self.file.header.origin
    }

    /// How ids of the graph are cut.
    pub(crate) fn layout(&self) -> IdLayout {
        self.layout
    }

    /// The tablet it is the base of.
    pub(crate) fn tablet(&self) -> usize {
        self.tablet
    }

    /// The checksum in the header, which stands for the whole file.
    pub(crate) fn checksum(&self) -> u32 {
        self.file.checksum
    }

    /// Slots `0..slots` are covered.
    #[inline]
    pub(crate) fn slots(&self) -> u64 {
        self.slots
    }

    /// True if there is a vertex in a slot.
    #[inline]
    pub(crate) fn has_vertex(&self, slot: u64) -> bool {
        self.vertices.contains(slot)
    }

    /// Number of vertices.
    pub(crate) fn vertex_count(&self) -> u64 {
        self.vertices.count()
    }

    /// Number of edges whose source is here.
    pub(crate) fn edge_count(&self) -> u64 {
        self.out.len()
    }

    /// Number of vertices of each label that has any, ascending.
    pub(crate) fn vertex_counts_by_label(&self) -> &[(LabelId, u64)] {
        &self.vertices_of_label
    }

    /// Number of edges of each label that has any, ascending.
    pub(crate) fn edge_counts_by_label(&self) -> &[(LabelId, u64)] {
        &self.edges_of_label
    }

    /// The label of a vertex that is there.
    #[inline]
    pub(crate) fn label(&self, slot: u64) -> LabelId {
        let row = self.rows.row(slot, &self.vertices).expect("labels are asked of vertices that are there");
        LabelId(self.labels.get(row) as u32)
    }

    /// The user id of a vertex that is there.
    pub(crate) fn vertex_id(&self, slot: u64) -> Value {
        let rank = self.vertices.rank(slot).expect("ids are asked of vertices that are there");
        self.ids.get(slot, rank)
    }

    /// True if the vertex is there and this is its user id.
    pub(crate) fn vertex_has_id(&self, slot: u64, id: &Value) -> bool {
        self.vertices.rank(slot).is_some_and(|rank| self.ids.is_id(slot, rank, id))
    }

    /// Whether the user id of a vertex that is there is this text; `None` if that takes decoding it.
    #[inline]
    pub(crate) fn vertex_id_is_text(&self, slot: u64, text: &str) -> Option<bool> {
        self.ids.is_text(self.vertices.rank(slot)?, text)
    }

    /// The slot of the vertex with this user id, where ids rise with slots; see [`Segment::needs_id_table_for_vertices`].
    pub(crate) fn find_vertex_by_affine_id(&self, id: &Value) -> Option<u64> {
        self.ids.place_of(id).filter(|slot| self.vertex_has_id(*slot, id))
    }

    /// True if vertices are not found by [`Segment::find_vertex_by_affine_id`].
    pub(crate) fn needs_id_table_for_vertices(&self) -> bool {
        self.vertex_count() > 0 && self.ids.needs_table()
    }

    /// Half-edges of a slot; none where there is no vertex.
    #[inline(always)]
    pub(crate) fn half_edges(&self, slot: u64, side: Side) -> HalfEdges<'_> {
        let columns = match side {
            Side::Out => &self.out,
            Side::In => &self.in_,
        };
        match self.rows.row(slot, &self.vertices) {
            Some(row) => columns.of_row(row),
            None => HalfEdges::none(),
        }
    }

    /// Begins to load where the half-edges of a slot are, or (`content`) these themselves.
    #[inline]
    pub(crate) fn prefetch_half_edges(&self, slot: u64, side: Side, content: bool) {
        let columns = match side {
            Side::Out => &self.out,
            Side::In => &self.in_,
        };
        if let Some(row) = self.rows.row(slot, &self.vertices) {
            if content { columns.prefetch_half_edges(row) } else { columns.prefetch_row(row) }
        }
    }

    /// By which sort keys half-edges are sorted, by label.
    pub(crate) fn sort_orders(&self) -> &[SortOrder] {
        &self.sort_orders
    }

    /// The half-edges of a slot with a label, in the order of the label's sort keys if it is among
    /// [`Segment::sort_orders`].
    pub(crate) fn sorted_run(&self, slot: u64, side: Side, label: LabelId) -> SortedRun<'_> {
        let runs = match side {
            Side::Out => &self.sorted_out,
            Side::In => &self.sorted_in,
        };
        let half_edges = self.half_edges(slot, side).with_label(label);
        let is_long = half_edges.len() > SHORT_RUN;
        let order = if is_long { runs.find(half_edges.first_position()).map(|start| (runs, start)) } else { None };
        SortedRun { half_edges, order }
    }

    /// Offsets by slot and neighbours as plain slices, of one label or all; `None` where they are of another width, or other
    /// labels lie between.
    pub(crate) fn plain_half_edges(&self, side: Side, label: Option<LabelId>) -> Option<(&[u32], &[u32])> {
        match side {
            Side::Out => self.out.plain(label),
            Side::In => self.in_.plain(label),
        }
    }

    /// The half-edges of one direction, to be kept beside those of other tablets; `None` if they are of another form.
    pub(crate) fn short_half_edges(&self, side: Side) -> Option<ShortHalfEdges> {
        let columns = match side {
            Side::Out => &self.out,
            Side::In => &self.in_,
        };
        columns.short().filter(|_| self.rows == Rows::Slots)
    }

    /// The first value under a key.
    #[inline]
    pub(crate) fn first_property(&self, slot: u64, key: KeyId) -> Option<Value> {
        self.properties.first(slot, key)
    }

    /// Where the number of the only value of a vertex under a key is, if it is a moment or, else, an integer.
    #[inline]
    pub(crate) fn number_place(&self, slot: u64, key: KeyId, of_moments: bool) -> Place<'_> {
        self.properties.number_place(slot, key, of_moments)
    }

    /// The numbers under a key, if the slots that have one are a range, and no vertex has several.
    pub(crate) fn plain_numbers(&self, key: KeyId, of_moments: bool) -> Option<(Range<u64>, &Numbers)> {
        self.properties.plain_numbers(key, of_moments)
    }

    /// Whether integers under a key are `Long`; the inner `None` if they are not all `Int` or all `Long`, the outer if there is no value.
    pub(crate) fn are_long(&self, key: KeyId) -> Option<Option<bool>> {
        self.properties.are_long(key)
    }

    /// The only value of a vertex under a key, if it is a text; `None` if there is no value, the inner one if it is another or not the only
    /// one.
    #[inline]
    pub(crate) fn text(&self, slot: u64, key: KeyId) -> Option<Option<StoredText<'_>>> {
        self.properties.text(slot, key)
    }

    /// Where the code of the only value of a vertex under a key is, if it is a text of a dictionary.
    #[inline]
    pub(crate) fn code_place(&self, slot: u64, key: KeyId) -> Place<'_> {
        self.properties.code_place(slot, key)
    }

    /// The text of such a code.
    pub(crate) fn text_of_code(&self, key: KeyId, code: u64) -> Option<&Arc<str>> {
        self.properties.text_of_code(key, code)
    }

    /// Whether a vertex has a value under a key.
    #[inline]
    pub(crate) fn has_value(&self, slot: u64, key: KeyId) -> bool {
        self.properties.has(slot, key)
    }

    /// How many vertices have a value under a key.
    pub(crate) fn count_with_key(&self, key: KeyId) -> u64 {
        self.properties.count(key)
    }

    /// Hands out the slots that have this text under a key, and those whose values would have to be read to know.
    pub(crate) fn visit_slots_with_text(&self, key: KeyId, text: &str, visit: &mut dyn FnMut(u64)) {
        self.properties.visit_slots_with_text(key, text, visit);
    }

    /// Where the label of a vertex that is there is, or which of these it has, if that is quicker told.
    #[inline]
    pub(crate) fn label_place(&self, slot: u64, labels: &[LabelId]) -> Place<'_> {
        for label in labels {
            let place = self.places_of_labels.get(label.0 as usize);
            let Some((_, slots)) = place.and_then(|place| self.slots_of_label.get(*place as usize)) else { continue };
            if !slots.is_quick() {
                let row = self.rows.row(slot, &self.vertices);
                return row.map_or(Place::Unknown, |row| Place::At(&self.labels, row));
            }
            let found = if slots.contains(slot) { u64::from(label.0) } else { u64::MAX };
            // Of one label, as mostly, nothing is to be guessed by the processor.
            if labels.len() == 1 || found != u64::MAX {
                return Place::Known(found);
            }
        }
        Place::Known(u64::MAX)
    }

    /// Where the label of a slot is, if there is a vertex.
    #[inline]
    pub(crate) fn own_label_place(&self, slot: u64) -> Place<'_> {
        match self.has_vertex(slot).then(|| self.rows.row(slot, &self.vertices)).flatten() {
            Some(row) => Place::At(&self.labels, row),
            None => Place::Unknown,
        }
    }

    /// Whether the value of a vertex under a key is this text; `None` if it has none or several, or one that is no text.
    #[inline]
    pub(crate) fn value_is_text(&self, slot: u64, key: KeyId, text: &str) -> Option<bool> {
        self.properties.is_text(slot, key, text)
    }

    /// Hands out the values of a vertex under a key in insertion order until `visit` breaks.
    #[inline]
    pub(crate) fn visit_values(&self, slot: u64, key: KeyId, visit: impl FnMut(Value) -> ControlFlow<()>) {
        self.properties.visit_values(slot, key, visit);
    }

    /// Hands out the keys of the properties of a vertex, in the order of their ids if they are to come so.
    pub(crate) fn visit_keys(&self, slot: u64, in_order: bool, visit: &mut dyn FnMut(KeyId)) {
        if self.has_vertex(slot) {
            self.properties.visit_keys(slot, self.label(slot), in_order, visit);
        }
    }

    /// Hands out the properties of a vertex that are wanted, each with its meta-properties, in insertion order until `visit` breaks.
    pub(crate) fn visit_properties(&self, slot: u64, wanted: Wanted, visit: VisitProperty<'_>) {
        if self.has_vertex(slot) {
            self.properties.visit(slot, self.label(slot), wanted, visit);
        }
    }

    /// True if a vertex has any property.
    pub(crate) fn has_properties(&self, slot: u64) -> bool {
        self.has_vertex(slot) && self.properties.has_any(slot, self.label(slot))
    }

    /// The meta-properties of a property of a vertex, in insertion order.
    pub(crate) fn metas(&self, slot: u64, property: u64) -> Vec<(KeyId, Value)> {
        self.properties.metas(slot, property)
    }

    /// Hands out the meta-properties of all properties of a vertex that have any, with the ids of these.
    pub(crate) fn visit_metas(&self, slot: u64, visit: VisitMetas<'_>) {
        self.properties.visit_metas(slot, visit);
    }

    /// Hands out the slots at or after `from_slot` whose vertex has a label, ascending, until `visit` breaks.
    pub(crate) fn visit_label(&self, label: LabelId, from_slot: u64, visit: &mut dyn FnMut(u64) -> ControlFlow<()>) {
        if let Ok(index) = self.slots_of_label.binary_search_by_key(&label, |(label, _)| *label) {
            let _ = self.slots_of_label[index].1.visit_from(from_slot, visit);
        }
    }

    /// Hands out, for each label, ranges of slots outside of which no vertex has it; inside, a slot has one with this label or none, unless
    /// ranges of several labels have it.
    pub(crate) fn visit_label_spans(&self, visit: &mut dyn FnMut(LabelId, Range<u64>)) {
        for (label, slots) in &self.slots_of_label {
            slots.visit_spans(&mut |span| visit(*label, span));
        }
    }

    /// Which of the 64 slots from `first` on have a vertex with the label, as bits.
    pub(crate) fn label_word(&self, label: LabelId, first: u64) -> u64 {
        match self.slots_of_label.binary_search_by_key(&label, |(label, _)| *label) {
            Ok(index) => self.slots_of_label[index].1.word(first),
            Err(_) => 0,
        }
    }

    /// Hands out the slots at or after `from_slot` that have a vertex, ascending, until `visit` breaks.
    pub(crate) fn visit_vertices(&self, from_slot: u64, visit: &mut dyn FnMut(u64) -> ControlFlow<()>) {
        let _ = self.vertices.visit_from(from_slot, visit);
    }

    /// The first slot at or after `from_slot` that has a vertex.
    pub(crate) fn next_vertex(&self, from_slot: u64) -> Option<u64> {
        let mut next = None;
        self.visit_vertices(from_slot, &mut |slot| {
            next = Some(slot);
            ControlFlow::Break(())
        });
        next
    }

    /// The edge with a sequence. A step or two where sequences are dense, else logarithmic.
    #[inline]
    pub(crate) fn find_edge(&self, sequence: u64) -> Option<EdgePosition> {
        self.edges.position(sequence).map(EdgePosition)
    }

    /// Hands out the sequences at or after `from` of all edges whose source is here, ascending, until `visit` breaks.
    pub(crate) fn visit_sequences(&self, from: u64, visit: &mut dyn FnMut(u64) -> ControlFlow<()>) {
        let _ = self.edges.sequences().visit_from(from, visit);
    }

    /// Label and ends of an edge. The source is found by halving the offsets.
    pub(crate) fn edge(&self, position: EdgePosition) -> EdgeRecord {
        let slot = self.rows.slot(self.out.row_of(position.0), &self.vertices);
        EdgeRecord {
            label: self.out.label(position.0),
            out: self.layout.vertex_id(slot, self.tablet),
            in_: self.out.neighbour(position.0),
        }
    }

    /// The sequence of an edge.
    pub(crate) fn edge_sequence(&self, position: EdgePosition) -> u64 {
        self.out.sequence(position.0)
    }

    /// The user id of an edge.
    pub(crate) fn edge_user_id(&self, position: EdgePosition) -> Value {
        self.edges.ids().get(self.edge_sequence(position), position.0)
    }

    /// True if this is the user id of an edge.
    pub(crate) fn edge_has_user_id(&self, position: EdgePosition, id: &Value) -> bool {
        self.edges.ids().is_id(self.edge_sequence(position), position.0, id)
    }

    /// The edge with this user id, where ids rise with sequences; see [`Segment::needs_id_table_for_edges`].
    pub(crate) fn find_edge_by_affine_id(&self, id: &Value) -> Option<EdgePosition> {
        let position = self.find_edge(self.edges.ids().place_of(id)?)?;
        self.edge_has_user_id(position, id).then_some(position)
    }

    /// True if edges are not found by [`Segment::find_edge_by_affine_id`].
    pub(crate) fn needs_id_table_for_edges(&self) -> bool {
        self.edge_count() > 0 && self.edges.ids().needs_table()
    }

    /// The value of a property of an edge.
    #[inline]
    pub(crate) fn edge_value(&self, position: EdgePosition, key: KeyId) -> Option<Value> {
        self.edges.value(position.0, key)
    }

    /// Where the number of an edge under a key is, if the column is one of moments or, else, of integers.
    #[inline]
    pub(crate) fn edge_number_place(&self, position: EdgePosition, key: KeyId, of_moments: bool) -> Place<'_> {
        self.edges.number_place(position.0, key, of_moments)
    }

    /// The properties of an edge, in insertion order.
    pub(crate) fn edge_properties(&self, position: EdgePosition) -> Vec<(KeyId, Value)> {
        self.edges.properties(position.0)
    }

    /// True if an edge has any property.
    pub(crate) fn edge_has_properties(&self, position: EdgePosition) -> bool {
        self.edges.has_properties(position.0)
    }

    /// Bytes on the heap; mapped bytes are not among them.
    pub(crate) fn heap_bytes(&self) -> usize {
        let labels = self.places_of_labels.capacity() * size_of::<u32>()
            + self.slots_of_label.capacity() * size_of::<(LabelId, Members)>()
            + (self.vertices_of_label.capacity() + self.edges_of_label.capacity()) * size_of::<(LabelId, u64)>();
        let columns = self.ids.heap_bytes() + self.properties.heap_bytes() + self.edges.heap_bytes();
        self.file.heap_bytes() + labels + columns
    }

    /// Length of the file.
    pub(crate) fn file_bytes(&self) -> usize {
        self.file.bytes.bytes().len()
    }

    /// The file's name.
    pub(crate) fn name(&self) -> &str {
        &self.file.name
    }
}
