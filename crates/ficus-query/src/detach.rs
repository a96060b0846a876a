//! Taking values out of the graph: what a response carries no longer needs the transaction.

use std::collections::HashMap;
use std::sync::Arc;

use ficus_dataflow::Control;
use ficus_model::value::PropertyOwner;
use ficus_model::{
    BulkSet, DetachedEdge, DetachedProperty, DetachedVertex, DetachedVertexProperty, EdgeId, Element, KeyId, Shared,
    StoredProperty, StoredVertexProperty, Tree, Value, VertexId,
};

use crate::budget::Held;
use crate::context::{QueryContext, Result};

/// How much of an element goes into a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Materialize {
    /// Id, label and all properties.
    #[default]
    All,
    /// Id and label.
    Tokens,
}

/// Members of values between two looks at whether the query has to stop, and at its account.
const MEMBERS_BETWEEN_LOOKS: usize = 256;

/// Bytes that the account need not know yet.
const BYTES_BETWEEN_LOOKS: usize = 64 << 10;

/// A vertex whose properties are taken out, and what all of them need of it.
struct Owner {
    vertex: VertexId,
    id: Value,
    label: Arc<str>,
    /// By id of the property; only of those that have any.
    metas: HashMap<u64, Vec<DetachedProperty>>,
}

/// Takes values out of the graph, within the budgets of their query. An element that values hold several times is taken out once.
pub(crate) struct Detacher {
    materialize: Materialize,
    control: Control,
    /// Elements that are held by values, by what they are in the graph.
    vertices: HashMap<VertexId, Value>,
    edges: HashMap<EdgeId, Value>,
    /// Whose properties were taken out last; those of a vertex mostly come together.
    owner: Option<Owner>,
    /// What was made since [`Detacher::forget`], on the query's account.
    held: Held,
    /// Of that, bytes that the account does not know yet.
    bytes: usize,
    /// Members until the next look.
    until_look: usize,
}

impl Detacher {
    /// For the rows of a query.
    pub(crate) fn new(materialize: Materialize, control: Control) -> Detacher {
        let (vertices, edges, held) = (HashMap::new(), HashMap::new(), Held::default());
        let until_look = MEMBERS_BETWEEN_LOOKS;
        Detacher { materialize, control, vertices, edges, owner: None, held, bytes: 0, until_look }
    }

    /// The value with every element in it replaced by its detached form. Values without elements are shared, not copied.
    ///
    /// Errors: the query has to stop, or the detached values are more than its account has room for.
    pub(crate) fn detach(&mut self, value: Value, context: &QueryContext) -> Result<Value> {
        if !value.holds_others() {
            return Ok(self.leaf(value, context));
        }
        let detached = self.members(value, context)?;
        if self.bytes >= BYTES_BETWEEN_LOOKS {
            self.look(context)?;
        }
        Ok(detached)
    }

    /// What was made belongs to somebody else now.
    pub(crate) fn forget(&mut self) {
        self.vertices.clear();
        self.edges.clear();
        self.owner = None;
        self.held.give_back();
        self.bytes = 0;
    }

    fn leaf(&mut self, value: Value, context: &QueryContext) -> Value {
        let element = match value {
            Value::Vertex(vertex) => Element::Vertex(context.detached_vertex(vertex, self.materialize)),
            Value::Edge(edge) => Element::Edge(context.detached_edge(edge, self.materialize)),
            Value::VertexProperty(property) => Element::VertexProperty(self.vertex_property(&property, context)),
            Value::Property(property) => Element::Property(context.detached_property(&property, self.materialize)),
            other => return other,
        };
        Value::Element(Arc::new(element))
    }

    fn vertex_property(&mut self, property: &StoredVertexProperty, context: &QueryContext) -> DetachedVertexProperty {
        let known = self.owner.take().filter(|owner| owner.vertex == property.vertex);
        let owner = known.unwrap_or_else(|| Owner::of(property.vertex, self.materialize, context));
        let detached = DetachedVertexProperty {
            id: Value::Long(property.id as i64),
            key: property.key_name.clone(),
            value: property.value.clone(),
            properties: owner.metas.get(&property.id).cloned().unwrap_or_default(),
            owner: Some((owner.id.clone(), owner.label.clone())),
        };
        self.owner = Some(owner);
        detached
    }

    /// A member of a value that holds others.
    fn member(&mut self, value: &Value, context: &QueryContext) -> Result<Value> {
        self.bytes += size_of::<Value>();
        self.until_look -= 1;
        if self.until_look == 0 {
            self.look(context)?;
        }
        let known = match value {
            Value::Vertex(vertex) => self.vertices.get(vertex),
            Value::Edge(edge) => self.edges.get(edge),
            value if value.holds_others() => return self.members(value.clone(), context),
            _ => None,
        };
        if let Some(known) = known {
            return Ok(known.clone());
        }
        let detached = self.leaf(value.clone(), context);
        match value {
            Value::Vertex(vertex) => drop(self.vertices.insert(*vertex, detached.clone())),
            Value::Edge(edge) => drop(self.edges.insert(*edge, detached.clone())),
            Value::VertexProperty(_) | Value::Property(_) => {}
            _ => return Ok(detached),
        }
        self.bytes += detached.size_hint_bytes();
        Ok(detached)
    }

    /// A value that holds others.
    fn members(&mut self, value: Value, context: &QueryContext) -> Result<Value> {
        Ok(match value {
            Value::List(list) if list.iter().any(holds_element) => {
                let members = list.iter().map(|item| self.member(item, context));
                Value::List(Shared::new(members.collect::<Result<_>>()?))
            }
            Value::Set(set) if set.iter().any(holds_element) => {
                let members = set.iter().map(|item| self.member(item, context));
                Value::Set(Shared::new(members.collect::<Result<_>>()?))
            }
            Value::Map(map) if map.iter().any(|(key, value)| holds_element(key) || holds_element(value)) => {
                let entries =
                    map.iter().map(|(key, value)| Ok((self.member(key, context)?, self.member(value, context)?)));
                Value::Map(Shared::new(entries.collect::<Result<_>>()?))
            }
            Value::Entry(entry) => {
                Value::Entry(Shared::new((self.member(&entry.0, context)?, self.member(&entry.1, context)?)))
            }
            Value::BulkSet(bag) => {
                let counts = bag.counts.iter().map(|(item, count)| Ok((self.member(item, context)?, *count)));
                Value::BulkSet(Shared::new(BulkSet { counts: counts.collect::<Result<_>>()? }))
            }
            Value::Path(path) => {
                let objects = path.objects.iter().map(|object| self.member(object, context));
                Value::Path(Shared::new(path.with_objects(objects.collect::<Result<_>>()?)))
            }
            Value::Tree(tree) => Value::Tree(Shared::new(self.tree(&tree, context)?)),
            other => other,
        })
    }

    fn tree(&mut self, tree: &Tree, context: &QueryContext) -> Result<Tree> {
        let children =
            tree.children.iter().map(|(key, child)| Ok((self.member(key, context)?, self.tree(child, context)?)));
        Ok(Tree { children: children.collect::<Result<_>>()? })
    }

    /// Whether the query may go on, and has room for what was made.
    fn look(&mut self, context: &QueryContext) -> Result<()> {
        self.until_look = MEMBERS_BETWEEN_LOOKS;
        self.control.check()?;
        self.held.add(&context.memory, std::mem::take(&mut self.bytes))
    }
}

impl Owner {
    fn of(vertex: VertexId, materialize: Materialize, context: &QueryContext) -> Owner {
        let DetachedVertex { id, label, .. } = context.detached_vertex(vertex, Materialize::Tokens);
        let mut metas = HashMap::new();
        if materialize == Materialize::All {
            let visit = |property, entries: &[(KeyId, Value)]| _ = metas.insert(property, context.named(entries));
            context.transaction.visit_meta_properties(vertex, visit);
        }
        Owner { vertex, id, label, metas }
    }
}

impl QueryContext {
    /// A vertex as a response carries it.
    pub fn detached_vertex(&self, vertex: VertexId, materialize: Materialize) -> DetachedVertex {
        let mut properties = Vec::new();
        if materialize == Materialize::All {
            self.computed_properties(vertex, None, |property| {
                properties.push(self.detached_vertex_property(&property, materialize, false));
            });
            self.transaction.visit_vertex_properties(vertex, None, |record, metas| {
                let key = self.transaction.key_name(record.key);
                if self.computed.is_empty() || !self.computed.has(&key) {
                    properties.push(DetachedVertexProperty {
                        id: Value::Long(record.id as i64),
                        key,
                        value: record.value,
                        properties: self.named(metas),
                        owner: None,
                    });
                }
            });
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
            properties = self.named(&entries);
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

    fn named(&self, entries: &[(KeyId, Value)]) -> Vec<DetachedProperty> {
        let named = |(key, value): &(KeyId, Value)| DetachedProperty {
            key: self.transaction.key_name(*key),
            value: value.clone(),
            owner: None,
        };
        entries.iter().map(named).collect()
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
            properties: self.named(&meta),
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
