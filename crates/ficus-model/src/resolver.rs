//! The one thing values cannot know of themselves: what the user calls a stored element.
//!
//! A [`crate::Value::Vertex`] is an internal id. Comparing, ordering and printing it needs the user's id, which the store
//! has; this trait is how it is asked for. The defaults let values be handled without a store, by internal id.

use std::sync::Arc;

use crate::{EdgeId, Value, VertexId};

/// Label and ends of a stored edge, as its text shows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeEnds {
    /// The label.
    pub label: Arc<str>,
    /// The user's id of the source.
    pub out_id: Value,
    /// The user's id of the target.
    pub in_id: Value,
}

/// Looks up what a user knows of stored elements.
///
/// It also knows on whose behalf that is: who goes through very many members asks now and then whether it still has to.
pub trait ElementResolver {
    /// Whether nobody wants the answer any more; once so, it stays so. What is found out after that may be wrong, and whoever says so here has to see
    /// to it that it is not used.
    fn is_stopped(&self) -> bool {
        false
    }
    /// The user's id of a vertex; the internal id as a long by default.
    fn vertex_id(&self, vertex: VertexId) -> Value {
        internal(vertex.0)
    }
    /// The user's id of an edge; the internal id as a long by default.
    fn edge_id(&self, edge: EdgeId) -> Value {
        internal(edge.0)
    }
    /// Label and ends of an edge; `None` by default and when it is gone.
    fn edge_ends(&self, edge: EdgeId) -> Option<EdgeEnds> {
        let _ = edge;
        None
    }
    /// Label of a vertex; `None` by default and when it is gone.
    fn vertex_label(&self, vertex: VertexId) -> Option<Arc<str>> {
        let _ = vertex;
        None
    }
}

/// Internal ids stand for the user's.
#[derive(Clone, Copy, Debug, Default)]
pub struct InternalIds;

impl ElementResolver for InternalIds {}

impl<R: ElementResolver + ?Sized> ElementResolver for &R {
    fn is_stopped(&self) -> bool {
        (**self).is_stopped()
    }
    fn vertex_id(&self, vertex: VertexId) -> Value {
        (**self).vertex_id(vertex)
    }
    fn edge_id(&self, edge: EdgeId) -> Value {
        (**self).edge_id(edge)
    }
    fn edge_ends(&self, edge: EdgeId) -> Option<EdgeEnds> {
        (**self).edge_ends(edge)
    }
    fn vertex_label(&self, vertex: VertexId) -> Option<Arc<str>> {
        (**self).vertex_label(vertex)
    }
}

/// An internal id as a value. Ids are below 2⁶³ in practice; the cast keeps even others different from each other.
pub(crate) fn internal(id: u64) -> Value {
    Value::Long(id as i64)
}
