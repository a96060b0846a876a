//! What reads of a snapshot hand out, and the cursors by which long reads are resumed.

use ficus_model::{EdgeId, KeyId, LabelId, Value, VertexId};

/// The place of a transaction in the order of all transactions of a store. Ordered, not dense.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitTs(pub u64);

/// One end of an edge in a vertex's adjacency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HalfEdge {
    /// The edge.
    pub edge: EdgeId,
    /// The vertex at the other end.
    pub neighbour: VertexId,
}

/// What an edge is, without its properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EdgeRecord {
    /// The label.
    pub label: LabelId,
    /// The source.
    pub out: VertexId,
    /// The target.
    pub in_: VertexId,
}

/// One property of a vertex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VertexPropertyRecord {
    /// Its own id, unique in the graph.
    pub id: u64,
    /// The key.
    pub key: KeyId,
    /// The value.
    pub value: Value,
}

/// Where a scan of vertices or edges goes on; start with `ScanCursor::default()` and pass it back unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanCursor {
    /// The smallest id not yet considered.
    pub(crate) next: u64,
}

impl ScanCursor {
    /// Where a scan of vertices comes to this one, or to the next behind it.
    pub fn at(vertex: VertexId) -> ScanCursor {
        ScanCursor { next: vertex.0 }
    }
}

/// Where a read of half-edges goes on; start with `HalfEdgeCursor::default()` and pass it back unchanged, together with
/// the same vertex, direction and labels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HalfEdgeCursor {
    /// 0: out half-edges, 1: in half-edges, 2: done.
    pub(crate) stage: u8,
    /// Position in the caller's list of labels, or the label itself when all are read.
    pub(crate) label: u32,
    /// The smallest edge id not yet considered in that label.
    pub(crate) edge: u64,
}
