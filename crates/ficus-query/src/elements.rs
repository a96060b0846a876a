//! Reading elements through the query's transaction: the leaf functions operators share.

use std::ops::ControlFlow;
use std::sync::Arc;

use ficus_model::value::PropertyOwner;
use ficus_model::{Element, KeyId, LabelId, StoredProperty, StoredVertexProperty, T, Value, VertexId};
use ficus_storage::VertexPropertyRecord;

use crate::context::{QueryContext, Result};
use crate::error::QueryError;
use crate::logical::Name;

/// Half-edges of a vertex that are fetched from the store at once.
pub const FETCH_MAX: usize = 256;

/// Vertices whose half-edges are on their way from memory at once.
pub const PREFETCHED: usize = 16;

/// A property key of the query, resolved to the graph's id when first seen there.
#[derive(Clone, Debug)]
pub struct KeyRef {
    /// The name.
    pub name: Name,
    id: Option<KeyId>,
    /// Whether the graph was asked, and what it said holds.
    resolved: bool,
}

impl KeyRef {
    /// An unresolved key.
    pub fn new(name: Name) -> KeyRef {
        KeyRef { name, id: None, resolved: false }
    }

    /// The graph's id, or `None` while no element has such a key.
    #[inline]
    pub fn id(&mut self, context: &QueryContext) -> Option<KeyId> {
        if !self.resolved {
            self.id = context.transaction.key_id(&self.name);
            // A key that is missing now may be created by this very query, if it may write.
            self.resolved = self.id.is_some() || !context.transaction.may_write();
        }
        self.id
    }
}

/// A set of edge labels of the query, resolved to the graph's ids.
#[derive(Clone, Debug)]
pub struct LabelSet {
    names: Arc<[Name]>,
    ids: Vec<LabelId>,
    resolved: bool,
}

impl LabelSet {
    /// An unresolved set; empty means all labels.
    pub fn new(names: Arc<[Name]>) -> LabelSet {
        LabelSet { names, ids: Vec::new(), resolved: false }
    }

    /// Whether it means all labels.
    pub fn is_all(&self) -> bool {
        self.names.is_empty()
    }

    /// The graph's ids; `None` if labels were given and none of them exists, so that nothing can match.
    #[inline]
    pub fn ids(&mut self, context: &QueryContext) -> Option<&[LabelId]> {
        if !self.resolved {
            self.ids = self.names.iter().filter_map(|name| context.transaction.label_id(name)).collect();
            // A label that is missing now may be created by this very query, if it may write.
            self.resolved = self.ids.len() == self.names.len() || !context.transaction.may_write();
        }
        (self.names.is_empty() || !self.ids.is_empty()).then_some(&self.ids)
    }
}

impl QueryContext {
    /// The value under `key` of a vertex (first of several), edge, vertex property or detached element.
    #[inline]
    pub fn property_value(&self, element: &Value, key: &mut KeyRef) -> Option<Value> {
        match element {
            Value::Vertex(vertex) if !self.computed.is_empty() && self.computed.has(&key.name) => {
                self.computed_value(*vertex, &key.name)
            }
            Value::Vertex(vertex) => self.transaction.vertex_value(*vertex, key.id(self)?),
            Value::Edge(edge) => self.transaction.edge_value(*edge, key.id(self)?),
            Value::VertexProperty(property) => {
                let key = key.id(self)?;
                let mut meta = Vec::new();
                self.transaction.meta_properties(property.vertex, property.id, &mut meta);
                meta.into_iter().find(|(own, _)| *own == key).map(|(_, value)| value)
            }
            Value::Element(element) => detached_value(element, &key.name),
            _ => None,
        }
    }

    /// Whether there is a value under a key of an element.
    pub fn has_value(&self, element: &Value, key: &mut KeyRef) -> bool {
        match element {
            Value::Vertex(vertex) if self.computed.is_empty() || !self.computed.has(&key.name) => {
                key.id(self).is_some_and(|key| self.transaction.vertex_has_value(*vertex, key))
            }
            _ => self.property_value(element, key).is_some(),
        }
    }

    /// As [`QueryContext::property_value`], where there is to be one value at most: what `by(key)` means.
    ///
    /// Errors: `Invalid` if a vertex has several.
    #[inline]
    pub fn only_value(&self, element: &Value, key: &mut KeyRef) -> Result<Option<Value>> {
        let (mut only, mut are_several) = (None, false);
        match element {
            Value::Vertex(vertex) if self.computed.is_empty() || !self.computed.has(&key.name) => {
                let Some(id) = key.id(self) else { return Ok(None) };
                self.transaction.visit_vertex_values(*vertex, id, |value| {
                    are_several = only.replace(value).is_some();
                    if are_several { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                });
            }
            Value::Element(element) => {
                only = detached_value(element, &key.name);
                if let Element::Vertex(vertex) = &**element {
                    let own = vertex.properties.iter().filter(|property| *property.key == *key.name);
                    are_several = own.take(2).count() > 1;
                }
            }
            _ => return Ok(self.property_value(element, key)),
        }
        if are_several {
            return Err(several_values(&key.name));
        }
        Ok(only)
    }

    /// The properties of an element under `keys` (empty: all), as property values, in the store's order.
    pub fn properties(&self, element: &Value, keys: &mut [KeyRef], out: &mut Vec<Value>) {
        match element {
            Value::Vertex(vertex) => {
                if !self.computed.is_empty() {
                    let push = |property| out.push(Value::VertexProperty(Arc::new(property)));
                    self.add_computed(*vertex, keys, push);
                }
                let mut records: Vec<VertexPropertyRecord> = Vec::new();
                self.stored_properties(*vertex, keys, &mut records);
                out.extend(records.into_iter().map(|record| {
                    Value::VertexProperty(Arc::new(StoredVertexProperty {
                        vertex: *vertex,
                        key: record.key,
                        key_name: self.transaction.key_name(record.key),
                        id: record.id,
                        value: record.value,
                    }))
                }));
            }
            Value::Edge(edge) => {
                let mut entries = Vec::new();
                self.transaction.edge_properties(*edge, &mut entries);
                self.plain_properties(entries, &PropertyOwner::Edge(*edge), keys, out);
            }
            Value::VertexProperty(property) => {
                let mut entries = Vec::new();
                self.transaction.meta_properties(property.vertex, property.id, &mut entries);
                self.plain_properties(entries, &PropertyOwner::VertexProperty(property.clone()), keys, out);
            }
            _ => {}
        }
    }

    /// The stored properties of a vertex under `keys` (empty: all) that no computed one hides, in the store's order.
    pub fn stored_properties(&self, vertex: VertexId, keys: &mut [KeyRef], out: &mut Vec<VertexPropertyRecord>) {
        if keys.is_empty() {
            self.transaction.vertex_properties(vertex, None, out);
        } else {
            for key in keys {
                if let Some(id) = key.id(self) {
                    self.transaction.vertex_properties(vertex, Some(id), out);
                }
            }
        }
        if !self.computed.is_empty() {
            out.retain(|record| !self.computed.has(&self.transaction.key_name(record.key)));
        }
    }

    /// The computed properties of a vertex under `keys` (empty: all).
    pub fn add_computed(&self, vertex: VertexId, keys: &[KeyRef], mut visit: impl FnMut(StoredVertexProperty)) {
        if keys.is_empty() {
            self.computed_properties(vertex, None, &mut visit);
        }
        for key in keys {
            self.computed_properties(vertex, Some(&key.name), &mut visit);
        }
    }

    fn plain_properties(
        &self,
        entries: Vec<(KeyId, Value)>,
        owner: &PropertyOwner,
        keys: &mut [KeyRef],
        out: &mut Vec<Value>,
    ) {
        let ids: Vec<Option<KeyId>> = keys.iter_mut().map(|key| key.id(self)).collect();
        for (key, value) in entries {
            if ids.is_empty() || ids.contains(&Some(key)) {
                out.push(Value::Property(Arc::new(StoredProperty {
                    owner: owner.clone(),
                    key_name: self.transaction.key_name(key),
                    value,
                })));
            }
        }
    }

    /// The user's id of an element; `None` for other values.
    pub fn element_id(&self, element: &Value) -> Option<Value> {
        match element {
            Value::Vertex(vertex) => self.transaction.vertex_id(*vertex),
            Value::Edge(edge) => self.transaction.edge_id(*edge),
            Value::VertexProperty(property) => Some(Value::Long(property.id as i64)),
            Value::Element(element) => match &**element {
                Element::Vertex(vertex) => Some(vertex.id.clone()),
                Element::Edge(edge) => Some(edge.id.clone()),
                Element::VertexProperty(property) => Some(property.id.clone()),
                Element::Property(_) => None,
            },
            _ => None,
        }
    }

    /// The label of an element; `None` for other values.
    pub fn element_label(&self, element: &Value) -> Option<Arc<str>> {
        match element {
            Value::Vertex(vertex) => {
                self.transaction.vertex_label(*vertex).map(|label| self.transaction.label_name(label))
            }
            Value::Edge(edge) => self.transaction.edge(*edge).map(|record| self.transaction.label_name(record.label)),
            Value::VertexProperty(property) => Some(property.key_name.clone()),
            Value::Element(element) => match &**element {
                Element::Vertex(vertex) => Some(vertex.label.clone()),
                Element::Edge(edge) => Some(edge.label.clone()),
                Element::VertexProperty(property) => Some(property.key.clone()),
                Element::Property(_) => None,
            },
            _ => None,
        }
    }

    /// A structural token of an element, property or map entry; `None` if it has none such.
    pub fn token(&self, value: &Value, token: T) -> Option<Value> {
        match (token, value) {
            (T::Id, _) => self.element_id(value),
            (T::Label, _) => self.element_label(value).map(Value::String),
            (T::Key, Value::VertexProperty(property)) => Some(Value::String(property.key_name.clone())),
            (T::Key, Value::Property(property)) => Some(Value::String(property.key_name.clone())),
            (T::Value, Value::VertexProperty(property)) => Some(property.value.clone()),
            (T::Value, Value::Property(property)) => Some(property.value.clone()),
            (T::Key, Value::Element(element)) => match &**element {
                Element::VertexProperty(property) => Some(Value::String(property.key.clone())),
                Element::Property(property) => Some(Value::String(property.key.clone())),
                _ => None,
            },
            (T::Value, Value::Element(element)) => match &**element {
                Element::VertexProperty(property) => Some(property.value.clone()),
                Element::Property(property) => Some(property.value.clone()),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether `value` is an element (not a plain property).
    pub fn is_element(value: &Value) -> bool {
        match value {
            Value::Vertex(_) | Value::Edge(_) | Value::VertexProperty(_) => true,
            Value::Element(element) => !matches!(&**element, Element::Property(_)),
            _ => false,
        }
    }
}

#[cold]
fn several_values(key: &str) -> QueryError {
    QueryError::invalid(format!(
        "Multiple properties exist for the provided key, use Vertex.properties({key}): by('{key}') takes one value; \
         by(values('{key}').fold()) takes all"
    ))
}

fn detached_value(element: &Element, key: &str) -> Option<Value> {
    match element {
        Element::Vertex(vertex) => {
            vertex.properties.iter().find(|property| &*property.key == key).map(|property| property.value.clone())
        }
        Element::Edge(edge) => {
            edge.properties.iter().find(|property| &*property.key == key).map(|property| property.value.clone())
        }
        Element::VertexProperty(owner) => {
            owner.properties.iter().find(|property| &*property.key == key).map(|property| property.value.clone())
        }
        Element::Property(_) => None,
    }
}
