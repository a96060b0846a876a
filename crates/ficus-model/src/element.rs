//! Elements that have left their graph: what a response carries and what a client sends back.

use std::sync::Arc;

use crate::Value;

/// A detached element. Equality and hash go by kind and id, as in TinkerPop (a property: by key and value).
#[derive(Clone, Debug)]
pub enum Element {
    /// A vertex.
    Vertex(DetachedVertex),
    /// An edge.
    Edge(DetachedEdge),
    /// A property of a vertex.
    VertexProperty(DetachedVertexProperty),
    /// A property of an edge, or of a vertex property.
    Property(DetachedProperty),
}

/// A vertex outside its graph.
#[derive(Clone, Debug)]
pub struct DetachedVertex {
    /// The user's id.
    pub id: Value,
    /// The label.
    pub label: Arc<str>,
    /// Properties in the order of the store; empty for a reference.
    pub properties: Vec<DetachedVertexProperty>,
}

/// An edge outside its graph.
#[derive(Clone, Debug)]
pub struct DetachedEdge {
    /// The user's id.
    pub id: Value,
    /// The label.
    pub label: Arc<str>,
    /// Id of the source.
    pub out_id: Value,
    /// Label of the source.
    pub out_label: Arc<str>,
    /// Id of the target.
    pub in_id: Value,
    /// Label of the target.
    pub in_label: Arc<str>,
    /// Properties in the order of the store; empty for a reference.
    pub properties: Vec<DetachedProperty>,
}

/// A vertex property outside its graph.
#[derive(Clone, Debug)]
pub struct DetachedVertexProperty {
    /// Its own id.
    pub id: Value,
    /// The key.
    pub key: Arc<str>,
    /// The value.
    pub value: Value,
    /// Meta-properties.
    pub properties: Vec<DetachedProperty>,
    /// Id and label of the vertex it belongs to, where known (not repeated inside a detached vertex).
    pub owner: Option<(Value, Arc<str>)>,
}

/// A key and a value.
#[derive(Clone, Debug)]
pub struct DetachedProperty {
    /// The key.
    pub key: Arc<str>,
    /// The value.
    pub value: Value,
    /// The element it belongs to, where known (not repeated inside a detached element).
    pub owner: Option<Arc<Element>>,
}
