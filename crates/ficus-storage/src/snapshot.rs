//! All that was committed up to a timestamp, and how it is read.

use std::sync::Arc;

use ficus_model::{Direction, EdgeId, KeyId, LabelId, Value, VertexId};

use crate::{CommitTs, EdgeRecord, HalfEdge, HalfEdgeCursor, ScanCursor, VertexPropertyRecord};

/// All that was committed up to a timestamp. Reads never wait; a clone is a counter.
///
/// A [`crate::Transaction`] derefs to a snapshot that also holds its own writes.
#[derive(Clone)]
pub struct Snapshot {}

#[allow(unused_variables)]
impl Snapshot {
    /// The newest commit in it.
    pub fn commit_ts(&self) -> CommitTs {
        CommitTs(0)
    }
    // words
    /// The number of a vertex or edge label, if any element ever had it.
    pub fn label_id(&self, label: &str) -> Option<LabelId> {
        None
    }
    /// The text of a label.
    pub fn label_name(&self, label: LabelId) -> Arc<str> {
        Arc::from("")
    }
    /// The number of a property key, if any element ever had it.
    pub fn key_id(&self, key: &str) -> Option<KeyId> {
        None
    }
    /// The text of a key.
    pub fn key_name(&self, key: KeyId) -> Arc<str> {
        Arc::from("")
    }
    // vertices
    /// Finds a vertex by its user id. Integers of any width are one id; a text that no vertex has as its id finds the
    /// integer it spells.
    pub fn find_vertex(&self, id: &Value) -> Option<VertexId> {
        None
    }
    /// True if the vertex is there.
    pub fn vertex_exists(&self, vertex: VertexId) -> bool {
        false
    }
    /// The user id.
    pub fn vertex_id(&self, vertex: VertexId) -> Option<Value> {
        None
    }
    /// The label.
    pub fn vertex_label(&self, vertex: VertexId) -> Option<LabelId> {
        None
    }
    /// Appends up to `max` vertices in insertion order; true if there may be more.
    pub fn scan_vertices(&self, cursor: &mut ScanCursor, max: usize, out: &mut Vec<VertexId>) -> bool {
        false
    }
    /// Appends up to `max` vertices with this label in insertion order; true if there may be more.
    pub fn scan_vertices_with_label(
        &self,
        label: LabelId,
        cursor: &mut ScanCursor,
        max: usize,
        out: &mut Vec<VertexId>,
    ) -> bool {
        false
    }
    /// Appends the vertices that have `value` under `key` (and the label, if given) in insertion order; false, and
    /// nothing appended, if no index covers the question.
    pub fn vertices_by_index(
        &self,
        label: Option<LabelId>,
        key: KeyId,
        value: &Value,
        out: &mut Vec<VertexId>,
    ) -> bool {
        false
    }
    /// Number of vertices.
    pub fn vertex_count(&self) -> u64 {
        0
    }
    /// Number of vertices with this label.
    pub fn vertex_count_with_label(&self, label: LabelId) -> u64 {
        0
    }
    /// Number of edges.
    pub fn edge_count(&self) -> u64 {
        0
    }
    /// Number of edges with this label.
    pub fn edge_count_with_label(&self, label: LabelId) -> u64 {
        0
    }
    // adjacency
    /// Appends up to `max` half-edges of a vertex, grouped by label, in insertion order inside a label; no `labels` means
    /// all; `Both` gives out half-edges, then in. True if there may be more.
    pub fn half_edges(
        &self,
        vertex: VertexId,
        direction: Direction,
        labels: &[LabelId],
        cursor: &mut HalfEdgeCursor,
        max: usize,
        out: &mut Vec<HalfEdge>,
    ) -> bool {
        false
    }
    /// Number of half-edges; a loop counts twice for `Both`.
    pub fn degree(&self, vertex: VertexId, direction: Direction, labels: &[LabelId]) -> u64 {
        0
    }
    /// The first edge from `out` to `in_`, of this label if given.
    pub fn edge_between(&self, out: VertexId, in_: VertexId, label: Option<LabelId>) -> Option<EdgeId> {
        None
    }
    // edges
    /// Finds an edge by its user id, as [`Snapshot::find_vertex`] does.
    pub fn find_edge(&self, id: &Value) -> Option<EdgeId> {
        None
    }
    /// Label and ends.
    pub fn edge(&self, edge: EdgeId) -> Option<EdgeRecord> {
        None
    }
    /// True if the edge is there.
    pub fn edge_exists(&self, edge: EdgeId) -> bool {
        false
    }
    /// The user id.
    pub fn edge_id(&self, edge: EdgeId) -> Option<Value> {
        None
    }
    /// Appends up to `max` edges in insertion order; true if there may be more.
    pub fn scan_edges(&self, cursor: &mut ScanCursor, max: usize, out: &mut Vec<EdgeId>) -> bool {
        false
    }
    // properties
    /// The first value under the key.
    pub fn vertex_value(&self, vertex: VertexId, key: KeyId) -> Option<Value> {
        None
    }
    /// Appends the properties of a vertex, of one key or all, in insertion order.
    pub fn vertex_properties(&self, vertex: VertexId, key: Option<KeyId>, out: &mut Vec<VertexPropertyRecord>) {}
    /// True if the vertex has the property with this id.
    pub fn vertex_property_exists(&self, vertex: VertexId, property: u64) -> bool {
        false
    }
    /// Appends the meta-properties of a vertex property in insertion order.
    pub fn meta_properties(&self, vertex: VertexId, property: u64, out: &mut Vec<(KeyId, Value)>) {}
    /// The value under the key.
    pub fn edge_value(&self, edge: EdgeId, key: KeyId) -> Option<Value> {
        None
    }
    /// Appends the properties of an edge in insertion order.
    pub fn edge_properties(&self, edge: EdgeId, out: &mut Vec<(KeyId, Value)>) {}
}
