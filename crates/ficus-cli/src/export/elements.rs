//! The elements of a snapshot with their texts looked up, in runs of bounded size.

use std::io;
use std::sync::Arc;

use ficus_model::{Direction, EdgeId, Value, VertexId};
use ficus_storage::{HalfEdgeCursor, ScanCursor, Snapshot};

/// Elements taken from the store at a time.
const RUN: usize = 1024;

/// A vertex with its properties.
pub struct VertexView {
    /// The user's id.
    pub id: Value,
    /// The label.
    pub label: Arc<str>,
    /// The properties in the order of the store.
    pub properties: Vec<PropertyView>,
}

/// A vertex property.
pub struct PropertyView {
    /// Its own id.
    pub id: u64,
    /// The key.
    pub key: Arc<str>,
    /// The value.
    pub value: Value,
    /// Meta-properties.
    pub meta: Vec<(Arc<str>, Value)>,
}

/// An edge with its properties.
pub struct EdgeView {
    /// The user's id.
    pub id: Value,
    /// The label.
    pub label: Arc<str>,
    /// Id of the source.
    pub out_id: Value,
    /// Id of the target.
    pub in_id: Value,
    /// The properties in the order of the store.
    pub properties: Vec<(Arc<str>, Value)>,
}

/// Reads elements of one snapshot.
pub struct Elements {
    /// The snapshot.
    pub snapshot: Snapshot,
}

impl Elements {
    /// Reads from `snapshot`.
    pub fn new(snapshot: Snapshot) -> Elements {
        Elements { snapshot }
    }

    /// Calls `visit` for every vertex.
    pub fn each_vertex(&self, mut visit: impl FnMut(VertexId) -> io::Result<()>) -> io::Result<()> {
        let mut cursor = ScanCursor::default();
        let mut run = Vec::with_capacity(RUN);
        loop {
            run.clear();
            let more = self.snapshot.scan_vertices(&mut cursor, RUN, &mut run);
            run.iter().try_for_each(|vertex| visit(*vertex))?;
            if !more {
                return Ok(());
            }
        }
    }

    /// Calls `visit` for every edge.
    pub fn each_edge(&self, mut visit: impl FnMut(EdgeId) -> io::Result<()>) -> io::Result<()> {
        let mut cursor = ScanCursor::default();
        let mut run = Vec::with_capacity(RUN);
        loop {
            run.clear();
            let more = self.snapshot.scan_edges(&mut cursor, RUN, &mut run);
            run.iter().try_for_each(|edge| visit(*edge))?;
            if !more {
                return Ok(());
            }
        }
    }

    /// Calls `visit` for the edges of a vertex, those of one label after another.
    pub fn each_edge_of(
        &self,
        vertex: VertexId,
        direction: Direction,
        mut visit: impl FnMut(EdgeId) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut cursor = HalfEdgeCursor::default();
        let mut run = Vec::new();
        loop {
            run.clear();
            let more = self.snapshot.half_edges(vertex, direction, &[], &mut cursor, RUN, &mut run);
            run.iter().try_for_each(|half| visit(half.edge))?;
            if !more {
                return Ok(());
            }
        }
    }

    /// The user's id of a vertex.
    pub fn vertex_id(&self, vertex: VertexId) -> io::Result<Value> {
        self.snapshot.vertex_id(vertex).ok_or_else(gone)
    }

    /// The label of a vertex.
    pub fn vertex_label(&self, vertex: VertexId) -> io::Result<Arc<str>> {
        Ok(self.snapshot.label_name(self.snapshot.vertex_label(vertex).ok_or_else(gone)?))
    }

    /// A vertex with all it has but edges.
    pub fn vertex(&self, vertex: VertexId) -> io::Result<VertexView> {
        let mut properties = Vec::new();
        self.snapshot.visit_vertex_properties(vertex, None, |property, metas| {
            properties.push(PropertyView {
                id: property.id,
                key: self.snapshot.key_name(property.key),
                value: property.value,
                meta: metas.iter().map(|(key, value)| (self.snapshot.key_name(*key), value.clone())).collect(),
            });
        });
        Ok(VertexView { id: self.vertex_id(vertex)?, label: self.vertex_label(vertex)?, properties })
    }

    /// An edge with all it has.
    pub fn edge(&self, edge: EdgeId) -> io::Result<EdgeView> {
        let record = self.snapshot.edge(edge).ok_or_else(gone)?;
        let mut stored = Vec::new();
        self.snapshot.edge_properties(edge, &mut stored);
        Ok(EdgeView {
            id: self.snapshot.edge_id(edge).ok_or_else(gone)?,
            label: self.snapshot.label_name(record.label),
            out_id: self.vertex_id(record.out)?,
            in_id: self.vertex_id(record.in_)?,
            properties: stored.into_iter().map(|(key, value)| (self.snapshot.key_name(key), value)).collect(),
        })
    }
}

/// A snapshot does not change, so what a scan of it yields is there.
fn gone() -> io::Error {
    io::Error::other("an element that a scan yielded is not in the snapshot: this is a bug, please report it")
}
