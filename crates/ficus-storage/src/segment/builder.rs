//! Makes a segment from vertices in the order of their slots.

use std::collections::BTreeMap;

use ficus_model::{EdgeId, KeyId, LabelId, Value, VertexId};

use super::SegmentOrigin;
use super::Side;
use super::edges::EdgesBuilder;
use super::file::{FileBuilder, FileKind, Header, Owner, SegmentImage, part};
use super::half_edges::HalfEdgeColumnsBuilder;
use super::ids::put_ids;
use super::members::MembersBuilder;
use super::numbers_builder::NumbersBuilder;
use super::rows::RowsBuilder;
use super::sorted_runs::SortedRunsBuilder;
use super::values::ValuesBuilder;
use super::vertex_properties::VertexPropertiesBuilder;
use crate::index::KeyBytes;
use crate::property_row::PropertyEntry;
use crate::sort_order::SortOrder;
use crate::tablet::IdLayout;

/// A segment being built: vertices in ascending slots, after each its properties and half-edges.
#[derive(Debug)]
pub(crate) struct SegmentBuilder {
    origin: SegmentOrigin,
    layout: IdLayout,
    tablet: usize,
    slots: u64,
    /// Slot and label of the vertex begun last.
    open: Option<(u64, LabelId)>,
    vertices: MembersBuilder,
    /// By rank.
    labels: NumbersBuilder,
    slots_of_label: BTreeMap<LabelId, MembersBuilder>,
    ids: ValuesBuilder,
    properties: VertexPropertiesBuilder,
    out: HalfEdgeColumnsBuilder,
    in_: HalfEdgeColumnsBuilder,
    edges: EdgesBuilder,
    edges_of_label: BTreeMap<LabelId, u64>,
    sort_orders: Vec<SortOrder>,
    sorted_out: SortedRunsBuilder,
    sorted_in: SortedRunsBuilder,
    /// The label of the last edge and how many had it since the label changed.
    label_run: (LabelId, u64),
}

impl SegmentBuilder {
    /// A segment without elements.
    pub(crate) fn new(origin: SegmentOrigin, layout: IdLayout, tablet: usize) -> SegmentBuilder {
        SegmentBuilder {
            origin,
            layout,
            tablet,
            slots: 0,
            open: None,
            vertices: MembersBuilder::default(),
            labels: NumbersBuilder::default(),
            slots_of_label: BTreeMap::new(),
            ids: ValuesBuilder::default(),
            properties: VertexPropertiesBuilder::default(),
            out: HalfEdgeColumnsBuilder::default(),
            in_: HalfEdgeColumnsBuilder::default(),
            edges: EdgesBuilder::default(),
            edges_of_label: BTreeMap::new(),
            sort_orders: Vec::new(),
            sorted_out: SortedRunsBuilder::default(),
            sorted_in: SortedRunsBuilder::default(),
            label_run: (LabelId(0), 0),
        }
    }

    /// Half-edges of these labels are sorted: every one is followed by [`SegmentBuilder::sort_key`].
    pub(crate) fn sort_by(&mut self, orders: Vec<SortOrder>) {
        self.sort_orders = orders;
    }

    /// The key of the half-edge that came last, whose label is sorted.
    pub(crate) fn sort_key(&mut self, side: Side, label: LabelId, key: KeyBytes) {
        match side {
            Side::Out => self.sorted_out.push(label, self.out.len() as u64 - 1, key),
            Side::In => self.sorted_in.push(label, self.in_.len() as u64 - 1, key),
        }
    }

    /// The next vertex. Slots that are left out have no vertex.
    pub(crate) fn begin_vertex(&mut self, slot: u64, label: LabelId, id: &Value) {
        self.end_vertex();
        self.open = Some((slot, label));
        self.vertices.push(slot);
        self.labels.push(u64::from(label.0));
        self.slots_of_label.entry(label).or_default().push(slot);
        self.ids.push(id);
        self.out.begin_vertex();
        self.in_.begin_vertex();
        self.sorted_out.end_run();
        self.sorted_in.end_run();
        self.slots = self.slots.max(slot + 1);
    }

    fn end_vertex(&mut self) {
        if let Some((slot, _)) = self.open.take() {
            self.properties.end_vertex(slot);
        }
    }

    /// The next property of this vertex, in insertion order, and its meta-properties.
    pub(crate) fn property(&mut self, property: &PropertyEntry, metas: &[(KeyId, Value)]) {
        let (slot, label) = self.open.expect("a vertex was begun");
        self.properties.push(slot, label, property, metas);
    }

    /// The next out half-edge of this vertex, in the order (label, edge), with what belongs to the edge.
    #[inline]
    pub(crate) fn out_half_edge(
        &mut self,
        label: LabelId,
        edge: EdgeId,
        target: VertexId,
        id: &Value,
        properties: &[(KeyId, Value)],
    ) {
        debug_assert_eq!(self.layout.edge_tablet(edge), self.tablet, "an edge lives with its source");
        self.edges.push(self.out.len() as u64, id, properties);
        self.out.push(label, self.layout.edge_sequence(edge), target);
        if self.label_run.0 != label {
            self.end_label_run();
            self.label_run = (label, 0);
        }
        self.label_run.1 += 1;
    }

    fn end_label_run(&mut self) {
        let (label, count) = self.label_run;
        if count > 0 {
            *self.edges_of_label.entry(label).or_default() += count;
        }
    }

    /// The next in half-edge of this vertex, in the order (label, edge).
    #[inline]
    pub(crate) fn in_half_edge(&mut self, label: LabelId, edge: EdgeId, source: VertexId) {
        self.in_.push(label, self.layout.edge_sequence(edge), source);
    }

    /// Covers slots up to `slots` even if the last of them have no vertex.
    pub(crate) fn cover_slots(&mut self, slots: u64) {
        self.slots = self.slots.max(slots);
    }

    /// Encodes the columns.
    pub(crate) fn finish(mut self) -> SegmentImage {
        self.end_vertex();
        self.end_label_run();
        let rows = RowsBuilder::new(&self.vertices, self.slots);
        let mut file = FileBuilder::new();
        let slots = self.vertices.iter().enumerate().map(|(rank, slot)| (slot, rank as u64));
        put_ids(self.ids, slots, &mut file, Owner::VertexIds);
        let filler = self.labels.last().unwrap_or(0);
        let labels = rows.spread(self.labels, filler);
        labels.put(&mut file, Owner::VertexLabels.part(part::NUMBERS), 0);
        for (label, slots) in self.slots_of_label {
            slots.put(&mut file, Owner::SlotsOfLabel, label.0);
        }
        self.properties.put(&mut file);
        self.edges.put(&self.out.sequences, &mut file);
        for (label, count) in self.edges_of_label {
            let mut number = NumbersBuilder::default();
            number.push(count);
            number.put(&mut file, Owner::EdgesOfLabel.key_part(label.0, part::NUMBERS), 0);
        }
        for order in &self.sort_orders {
            let numbers: NumbersBuilder = order.numbers().collect();
            numbers.put(&mut file, Owner::SortKeys.key_part(order.label.0, part::LABELS), 0);
        }
        if !self.sort_orders.is_empty() {
            self.sorted_out.put(&mut file, Owner::SortedOut);
            self.sorted_in.put(&mut file, Owner::SortedIn);
        }
        self.out.put(&rows, &mut file, Owner::Out);
        self.in_.put(&rows, &mut file, Owner::In);
        self.vertices.put(&mut file, Owner::Vertices, 0);
        let header = Header {
            origin: self.origin,
            tablet: self.tablet as u32,
            tablet_bits: u32::from(self.layout.tablet_bits),
            slots: self.slots,
        };
        file.finish(FileKind::Segment, header)
    }
}
