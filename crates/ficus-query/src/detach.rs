//! Taking values out of the graph: what a response carries no longer needs the transaction.

use std::sync::Arc;

use ficus_model::value::PropertyOwner;
use ficus_model::{
    BulkSet, DetachedEdge, DetachedProperty, DetachedVertex, DetachedVertexProperty, EdgeId, Element, Path, Shared,
    StoredProperty, StoredVertexProperty, Tree, Value, VertexId,
};

use crate::context::QueryContext;

/// How much of an element goes into a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Materialize {
    /// Id, label and all properties.
    #[default]
    All,
    /// Id and label.
    Tokens,
}

impl QueryContext {
    /// The value with every element in it replaced by its detached form. Values without elements are shared, not copied.
    pub fn detach(&self, value: Value, materialize: Materialize) -> Value {
        match value {
            Value::Vertex(vertex) => {
                Value::Element(Arc::new(Element::Vertex(self.detached_vertex(vertex, materialize))))
            }
            Value::Edge(edge) => Value::Element(Arc::new(Element::Edge(self.detached_edge(edge, materialize)))),
            Value::VertexProperty(property) => Value::Element(Arc::new(Element::VertexProperty(
                self.detached_vertex_property(&property, materialize, true),
            ))),
            Value::Property(property) => {
                Value::Element(Arc::new(Element::Property(self.detached_property(&property, materialize))))
            }
            Value::List(ref list) if list.iter().any(holds_element) => {
                Value::List(Shared::new(list.iter().map(|item| self.detach(item.clone(), materialize)).collect()))
            }
            Value::Set(ref set) if set.iter().any(holds_element) => {
                Value::Set(Shared::new(set.iter().map(|item| self.detach(item.clone(), materialize)).collect()))
            }
            Value::Map(ref map) if map.iter().any(|(key, value)| holds_element(key) || holds_element(value)) => {
                Value::Map(Shared::new(
                    map.iter()
                        .map(|(key, value)| {
                            (self.detach(key.clone(), materialize), self.detach(value.clone(), materialize))
                        })
                        .collect(),
                ))
            }
            Value::Entry(entry) => Value::Entry(Shared::new((
                self.detach(entry.0.clone(), materialize),
                self.detach(entry.1.clone(), materialize),
            ))),
            Value::BulkSet(bag) => Value::BulkSet(Shared::new(BulkSet {
                counts: bag
                    .counts
                    .iter()
                    .map(|(item, count)| (self.detach(item.clone(), materialize), *count))
                    .collect(),
            })),
            Value::Path(path) => Value::Path(Shared::new(Path {
                labels: path.labels.clone(),
                objects: path.objects.iter().map(|object| self.detach(object.clone(), materialize)).collect(),
            })),
            Value::Tree(tree) => Value::Tree(Shared::new(self.detached_tree(&tree, materialize))),
            other => other,
        }
    }

    fn detached_tree(&self, tree: &Tree, materialize: Materialize) -> Tree {
        Tree {
            children: tree
                .children
                .iter()
                .map(|(key, child)| (self.detach(key.clone(), materialize), self.detached_tree(child, materialize)))
                .collect(),
        }
    }

    /// A vertex as a response carries it.
    pub fn detached_vertex(&self, vertex: VertexId, materialize: Materialize) -> DetachedVertex {
        let mut properties = Vec::new();
        if materialize == Materialize::All {
            self.computed_properties(vertex, None, |property| {
                properties.push(self.detached_vertex_property(&property, materialize, false));
            });
            let mut records = Vec::new();
            self.stored_properties(vertex, &mut [], &mut records);
            for record in records {
                let mut meta = Vec::new();
                self.transaction.meta_properties(vertex, record.id, &mut meta);
                properties.push(DetachedVertexProperty {
                    id: Value::Long(record.id as i64),
                    key: self.transaction.key_name(record.key),
                    value: record.value,
                    properties: self.named(meta),
                    owner: None,
                });
            }
        }
        DetachedVertex {
            id: self.transaction.vertex_id(vertex).unwrap_or(Value::Null),
            label: self.element_label(&Value::Vertex(vertex)).unwrap_or_else(|| Arc::from("vertex")),
            properties,
        }
    }

    /// An edge as a response carries it.
    pub fn detached_edge(&self, edge: EdgeId, materialize: Materialize) -> DetachedEdge {
        let mut properties = Vec::new();
        if materialize == Materialize::All {
            let mut entries = Vec::new();
            self.transaction.edge_properties(edge, &mut entries);
            properties = self.named(entries);
        }
        let record = self.transaction.edge(edge);
        let end = |vertex: Option<VertexId>| {
            let value = vertex.map(Value::Vertex).unwrap_or(Value::Null);
            (
                self.element_id(&value).unwrap_or(Value::Null),
                self.element_label(&value).unwrap_or_else(|| Arc::from("vertex")),
            )
        };
        let (out_id, out_label) = end(record.as_ref().map(|record| record.out));
        let (in_id, in_label) = end(record.as_ref().map(|record| record.in_));
        DetachedEdge {
            id: self.transaction.edge_id(edge).unwrap_or(Value::Null),
            label: self.element_label(&Value::Edge(edge)).unwrap_or_else(|| Arc::from("edge")),
            out_id,
            out_label,
            in_id,
            in_label,
            properties,
        }
    }

    fn named(&self, entries: Vec<(ficus_model::KeyId, Value)>) -> Vec<DetachedProperty> {
        entries
            .into_iter()
            .map(|(key, value)| DetachedProperty { key: self.transaction.key_name(key), value, owner: None })
            .collect()
    }

    fn detached_vertex_property(
        &self,
        property: &StoredVertexProperty,
        materialize: Materialize,
        with_owner: bool,
    ) -> DetachedVertexProperty {
        let mut meta = Vec::new();
        if materialize == Materialize::All {
            self.transaction.meta_properties(property.vertex, property.id, &mut meta);
        }
        let owner = with_owner.then(|| {
            let vertex = self.detached_vertex(property.vertex, Materialize::Tokens);
            (vertex.id, vertex.label)
        });
        DetachedVertexProperty {
            id: Value::Long(property.id as i64),
            key: property.key_name.clone(),
            value: property.value.clone(),
            properties: self.named(meta),
            owner,
        }
    }

    fn detached_property(&self, property: &StoredProperty, materialize: Materialize) -> DetachedProperty {
        let owner = match &property.owner {
            PropertyOwner::Edge(edge) => Element::Edge(self.detached_edge(*edge, Materialize::Tokens)),
            PropertyOwner::VertexProperty(owner) => {
                Element::VertexProperty(self.detached_vertex_property(owner, materialize, true))
            }
        };
        DetachedProperty { key: property.key_name.clone(), value: property.value.clone(), owner: Some(Arc::new(owner)) }
    }
}

/// Whether a value is, or may hold, an element of the graph.
fn holds_element(value: &Value) -> bool {
    match value {
        Value::Vertex(_) | Value::Edge(_) | Value::VertexProperty(_) | Value::Property(_) => true,
        Value::Entry(_) | Value::BulkSet(_) | Value::Path(_) | Value::Tree(_) => true,
        Value::List(list) => list.iter().any(holds_element),
        Value::Set(set) => set.iter().any(holds_element),
        Value::Map(map) => map.iter().any(|(key, value)| holds_element(key) || holds_element(value)),
        _ => false,
    }
}
