//! Reads that a commit must find unchanged.

use ficus_model::{Value, VertexId};

/// A read on which a transaction's writes depend. If another transaction changes it first, the commit conflicts.
///
/// Upserts protect what they looked for before they decide to create: then of two concurrent ones, one conflicts.
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
    /// Label and properties of one vertex, and that it exists.
    Vertex(VertexId),
    /// The half-edges of one vertex, both directions.
    Adjacency(VertexId),
}
