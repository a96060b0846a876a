//! Reads that a commit must find unchanged.

use ficus_model::{Direction, EdgeId, Value, VertexId};

/// A read on which a transaction's writes depend. If another transaction changes it first, the commit conflicts.
///
/// Whatever a writing transaction reads is recorded without being asked for. A search that looks at much to find little
/// says here what its outcome depends on, and does not record the single reads.
#[derive(Clone, Copy, Debug)]
pub enum Protect<'a> {
    /// The vertex with this user id, present or absent.
    VertexWithId(&'a Value),
    /// The edge with this user id, present or absent.
    EdgeWithId(&'a Value),
    /// The set of vertices that have this value under this key. Precise where an index covers the key; without one, any
    /// write to that key conflicts.
    VerticesWithProperty {
        /// The key.
        key: &'a str,
        /// The value.
        value: &'a Value,
    },
    /// The set of vertices with this label.
    VerticesWithLabel(&'a str),
    /// The set of all vertices.
    AllVertices,
    /// The set of all edges.
    AllEdges,
    /// Properties of one vertex, and that it exists.
    Vertex(VertexId),
    /// Properties of one edge, and that it exists.
    Edge(EdgeId),
    /// The half-edges of one vertex.
    Adjacency(VertexId, Direction),
    /// The edges from one vertex to another.
    EdgesBetween(VertexId, VertexId),
}
