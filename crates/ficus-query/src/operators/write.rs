//! `addV`, `addE`, `property`, `drop`: writing to the query's transaction.

use std::collections::HashSet;
use std::sync::Arc;

use ficus_dataflow::{NodeName, Queue};
use ficus_model::value::PropertyOwner;
use ficus_model::{Cardinality, KeyId, T, Value, VertexId};

use crate::context::{Cx, QueryContext, Result};
use crate::error::QueryError;
use crate::logical::{Endpoint, Node, PropertyWrite};
use crate::modulate::{ModulatedLogic, Request, part_of};
use crate::operators::per_row::PerRow;
use crate::operators::source::resolve_vertex;
use crate::physical::{Builder, Chain, Modulators};
use crate::traverser::{StepInfo, Traverser};

/// A property to write, by the modulators that compute its parts.
#[derive(Clone)]
struct CompiledWrite {
    cardinality: Option<Cardinality>,
    key: usize,
    value: usize,
    meta: Vec<(usize, usize)>,
}

impl CompiledWrite {
    fn compile<'a>(write: &'a PropertyWrite, modulators: &mut Modulators<'a>) -> CompiledWrite {
        CompiledWrite {
            cardinality: write.cardinality,
            key: modulators.value(&write.key),
            value: modulators.value(&write.value),
            meta: write.meta.iter().map(|(key, value)| (modulators.value(key), modulators.value(value))).collect(),
        }
    }

    fn resolve(&self, results: &[Option<Value>]) -> Result<Resolved> {
        let part = |index: usize, what: &str| {
            results[index].clone().ok_or_else(|| {
                QueryError::invalid(format!(
                    "The provided traverser does not map to a value: the traversal of a property's {what} yielded nothing"
                ))
            })
        };
        let meta = self
            .meta
            .iter()
            .map(|(key, value)| Ok((part(*key, "key")?, part(*value, "value")?)))
            .collect::<Result<Vec<_>>>()?;
        Ok(Resolved {
            cardinality: self.cardinality,
            key: part(self.key, "key")?,
            value: part(self.value, "value")?,
            meta,
        })
    }
}

/// A property to write.
struct Resolved {
    cardinality: Option<Cardinality>,
    key: Value,
    value: Value,
    meta: Vec<(Value, Value)>,
}

/// The text of a property key.
pub fn key_text(key: &Value) -> Result<&Arc<str>> {
    match key {
        Value::String(key) if key.is_empty() => Err(QueryError::invalid("Property key can not be the empty string")),
        Value::String(key) if key.starts_with('~') => {
            Err(QueryError::invalid(format!("Property key can not be a hidden key: {key}")))
        }
        Value::String(key) => Ok(key),
        Value::Null => Err(QueryError::invalid("Property key can not be null")),
        other => Err(QueryError::invalid(format!("A property key is a string, not a {}", other.type_name()))),
    }
}

/// Properties written for one row between two looks at whether the query has to stop.
const WRITES_BETWEEN_LOOKS: usize = 64;

/// Elements that are added for a row with a bulk in one go.
const ADDED_AT_ONCE: u64 = 256;

/// To be called after each of the writes of one row, of which there may be many; `written` of them so far.
///
/// Errors: the query must stop, or there is no room for what it has written.
pub fn pause_between_writes(context: &mut QueryContext, written: usize) -> Result<()> {
    if !written.is_multiple_of(WRITES_BETWEEN_LOOKS) {
        return Ok(());
    }
    context.count_changes()?;
    context.check()
}

/// Writes a property of a vertex; a null removes what is there.
pub fn write_vertex_property(
    context: &mut QueryContext,
    vertex: VertexId,
    cardinality: Option<Cardinality>,
    key: &str,
    value: Value,
    meta: &[(Value, Value)],
) -> Result<()> {
    let cardinality = cardinality.unwrap_or(Cardinality::Single);
    if matches!(value, Value::Null) {
        if cardinality == Cardinality::Single
            && let Some(id) = context.transaction.key_id(key)
        {
            let mut records = Vec::new();
            context.transaction.vertex_properties(vertex, Some(id), &mut records);
            for record in records {
                context.transaction.remove_vertex_property(vertex, record.id)?;
            }
        }
        return Ok(());
    }
    let user_id = match meta.iter().find(|(key, _)| matches!(key, Value::T(T::Id))) {
        None => None,
        Some((_, Value::Int(id))) => u64::try_from(*id).ok(),
        Some((_, Value::Long(id))) => u64::try_from(*id).ok(),
        Some((_, other)) => {
            return Err(QueryError::invalid(format!(
                "the id of a vertex property is a number that is not negative, not a {}",
                other.type_name()
            )));
        }
    };
    let property = context.transaction.set_vertex_property(vertex, key, value, cardinality, user_id)?;
    for (key, value) in meta {
        match (key, value) {
            (Value::T(T::Id), _) => {}
            (Value::T(token), _) => {
                return Err(QueryError::invalid(format!("T.{} is not a key of a meta-property", token.name())));
            }
            (_, Value::Null) => {
                if let Some(id) = context.transaction.key_id(key_text(key)?) {
                    context.transaction.remove_meta_property(vertex, property, id)?;
                }
            }
            (key, value) => context.transaction.set_meta_property(vertex, property, key_text(key)?, value.clone())?,
        }
    }
    Ok(())
}

/// Writes a property of an existing element; a null removes what is there.
pub fn write_property(
    context: &mut QueryContext,
    element: &Value,
    cardinality: Option<Cardinality>,
    key: &str,
    value: Value,
    meta: &[(Value, Value)],
) -> Result<()> {
    if cardinality.is_some() && !matches!(element, Value::Vertex(_)) {
        return Err(QueryError::invalid(format!(
            "Property cardinality can only be set for a Vertex but the traversal encountered {} for key: {key}",
            element.type_name()
        )));
    }
    let removed: Option<KeyId> = match value {
        Value::Null => context.transaction.key_id(key),
        _ => None,
    };
    match element {
        Value::Vertex(vertex) => write_vertex_property(context, *vertex, cardinality, key, value, meta)?,
        Value::Edge(edge) => match (&value, removed) {
            (Value::Null, None) => {}
            (Value::Null, Some(id)) => context.transaction.remove_edge_property(*edge, id)?,
            _ => context.transaction.set_edge_property(*edge, key, value)?,
        },
        Value::VertexProperty(property) => match (&value, removed) {
            (Value::Null, None) => {}
            (Value::Null, Some(id)) => context.transaction.remove_meta_property(property.vertex, property.id, id)?,
            _ => context.transaction.set_meta_property(property.vertex, property.id, key, value)?,
        },
        other => {
            return Err(QueryError::invalid(format!(
                "property() needs an element of the graph, but the traverser holds a {}",
                other.type_name()
            )));
        }
    }
    Ok(())
}

/// All modulators on the current object, in order.
fn all_current(count: usize, list: &mut Vec<Request>) {
    list.extend((0..count).map(Request::current));
}

struct AddPropertyLogic {
    modulators: usize,
    write: CompiledWrite,
}

impl ModulatedLogic for AddPropertyLogic {
    fn requests(&mut self, _traverser: &Traverser, _cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        all_current(self.modulators, list);
        Ok(())
    }

    fn complete(
        &mut self,
        traverser: Traverser,
        results: &mut Vec<Option<Value>>,
        out: &mut Queue<Traverser>,
        cx: &mut Cx<'_>,
    ) -> Result<()> {
        let Resolved { cardinality, key, value, meta } = self.write.resolve(results)?;
        let element = cx.context.attached(&traverser.value);
        let writes: Vec<(Arc<str>, Option<Cardinality>, Value)> = match (&key, &value) {
            (Value::T(token), _) => {
                return Err(QueryError::invalid(format!("T.{} is immutable on existing elements", token.name())));
            }
            // property(map): an entry per property; values may bring a cardinality.
            (Value::Null, Value::Map(map)) => map
                .iter()
                .map(|(key, value)| {
                    let (own, value) = cardinality_value(value);
                    if let Value::T(token) = key {
                        return Err(QueryError::invalid(format!(
                            "T.{} is immutable on existing elements",
                            token.name()
                        )));
                    }
                    Ok((key_text(key)?.clone(), own.or(cardinality), value))
                })
                .collect::<Result<Vec<_>>>()?,
            _ => vec![(key_text(&key)?.clone(), cardinality, value.clone())],
        };
        for (number, (key, cardinality, value)) in writes.into_iter().enumerate() {
            write_property(cx.context, &element, cardinality, &key, value, &meta)?;
            pause_between_writes(cx.context, number + 1)?;
        }
        out.push_back(traverser);
        Ok(())
    }
}

/// A value that may bring its cardinality, as `Cardinality.set("x")` does.
pub fn cardinality_value(value: &Value) -> (Option<Cardinality>, Value) {
    if let Value::Entry(entry) = value
        && let Value::Cardinality(cardinality) = &entry.0
    {
        return (Some(*cardinality), entry.1.clone());
    }
    if let Value::Bytecode(bytecode) = value
        && let [instruction] = bytecode.source.as_slice()
        && &*instruction.name == "CardinalityValueTraversal"
        && let [ficus_model::Argument::Value(cardinality), ficus_model::Argument::Value(inner)] =
            instruction.args.as_slice()
    {
        let cardinality = match cardinality {
            Value::Cardinality(cardinality) => Some(*cardinality),
            Value::String(name) => Cardinality::from_name(name),
            _ => None,
        };
        if cardinality.is_some() {
            return (cardinality, inner.clone());
        }
    }
    (None, value.clone())
}

struct AddVertexLogic {
    modulators: usize,
    label: Option<usize>,
    properties: Vec<CompiledWrite>,
    step: StepInfo,
    rest: Option<Traverser>,
}

/// The text of a label.
pub fn label_text(label: &Value) -> Result<Arc<str>> {
    match label {
        Value::String(label) if label.is_empty() => Err(QueryError::invalid("Label can not be empty")),
        Value::String(label) if label.starts_with('~') => {
            Err(QueryError::invalid(format!("Label can not be a hidden key: {label}")))
        }
        Value::String(label) => Ok(label.clone()),
        Value::Null => Err(QueryError::invalid("Label can not be null")),
        other => Err(QueryError::invalid(format!("A label is a string, not a {}", other.type_name()))),
    }
}

/// Takes `T.id` and `T.label` out of properties to write.
fn split_tokens(resolved: Vec<Resolved>, label: &mut Option<Arc<str>>) -> Result<(Option<Value>, Vec<Resolved>)> {
    let mut id = None;
    let mut rest = Vec::with_capacity(resolved.len());
    for write in resolved {
        match write.key {
            Value::T(T::Id) => id = Some(write.value),
            Value::T(T::Label) => *label = Some(label_text(&write.value)?),
            Value::T(token) => {
                return Err(QueryError::invalid(format!("T.{} cannot be set on a new element", token.name())));
            }
            _ => rest.push(write),
        }
    }
    Ok((id, rest))
}

/// Which of these are the first under their keys.
fn first_of_their_keys(writes: &[Resolved]) -> Result<Vec<bool>> {
    let mut seen = HashSet::with_capacity(writes.len());
    writes.iter().map(|write| Ok(seen.insert(key_text(&write.key)?))).collect()
}

impl ModulatedLogic for AddVertexLogic {
    fn requests(&mut self, _traverser: &Traverser, _cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        all_current(self.modulators, list);
        Ok(())
    }

    fn members_at_once(&self) -> u64 {
        ADDED_AT_ONCE
    }

    fn left_over(&mut self) -> Option<Traverser> {
        self.rest.take()
    }

    fn complete(
        &mut self,
        traverser: Traverser,
        results: &mut Vec<Option<Value>>,
        out: &mut Queue<Traverser>,
        cx: &mut Cx<'_>,
    ) -> Result<()> {
        let (traverser, rest) = part_of(traverser, self.members_at_once());
        self.rest = rest;
        let resolved = self.properties.iter().map(|write| write.resolve(results)).collect::<Result<Vec<_>>>()?;
        let mut label = match self.label {
            None => None,
            Some(index) => Some(label_text(results[index].as_ref().unwrap_or(&Value::Null))?),
        };
        let (id, writes) = split_tokens(resolved, &mut label)?;
        let label = label.as_deref().unwrap_or("vertex");
        // The first value under a key comes instead of the default.
        let replaces = match cx.context.transaction.gives_defaults(label) {
            true => first_of_their_keys(&writes)?,
            false => Vec::new(),
        };
        // One vertex per traverser, also of a bulk.
        for copy in 1..=traverser.bulk {
            let vertex = cx.context.transaction.add_vertex(label, id.clone())?;
            for (number, write) in writes.iter().enumerate() {
                let (own, value) = cardinality_value(&write.value);
                // Several values under one key of a new vertex are kept, unless a cardinality says otherwise; a null takes all before it.
                let plain = if matches!(value, Value::Null) { Cardinality::Single } else { Cardinality::List };
                let cardinality = match replaces.get(number) {
                    Some(true) => Some(Cardinality::Single),
                    _ => own.or(write.cardinality).or(Some(plain)),
                };
                write_vertex_property(cx.context, vertex, cardinality, key_text(&write.key)?, value, &write.meta)?;
                pause_between_writes(cx.context, number + 1)?;
            }
            let mut next = traverser.advance(Value::Vertex(vertex), &self.step);
            next.bulk = 1;
            out.push_back(next);
            pause_between_writes(cx.context, copy as usize)?;
        }
        Ok(())
    }
}

#[derive(Clone)]
enum CompiledEndpoint {
    Current,
    Label(crate::logical::Name),
    Modulator(usize),
}

struct AddEdgeLogic {
    modulators: usize,
    label: usize,
    from: CompiledEndpoint,
    to: CompiledEndpoint,
    properties: Vec<CompiledWrite>,
    step: StepInfo,
    rest: Option<Traverser>,
}

impl AddEdgeLogic {
    fn vertex(
        endpoint: &CompiledEndpoint,
        side: &str,
        label: &str,
        traverser: &Traverser,
        results: &[Option<Value>],
        cx: &Cx<'_>,
    ) -> Result<VertexId> {
        let found = match endpoint {
            CompiledEndpoint::Current => Some(traverser.value.clone()),
            CompiledEndpoint::Label(name) => Some(cx.context.scope_value(traverser, name).ok_or_else(|| {
                QueryError::invalid(format!(
                    "The value given to addE({label}).{side}() must resolve to a Vertex or the ID of a Vertex present in \
                     the graph, but there is no step labelled {name}"
                ))
            })?),
            CompiledEndpoint::Modulator(index) => results[*index].clone(),
        };
        let Some(value) = found else {
            return Err(QueryError::invalid(format!(
                "The value given to addE({label}).{side}() must resolve to a Vertex or the ID of a Vertex present in the \
                 graph. The provided value does not match any vertices in the graph"
            )));
        };
        let vertex = if matches!(value, Value::Null) { None } else { resolve_vertex(cx.context, &value) };
        vertex.ok_or_else(|| {
            QueryError::invalid(format!(
                "The value given to addE({label}).{side}() must resolve to a Vertex or the ID of a Vertex present in the \
                 graph. The provided value does not match any vertices in the graph: a {}",
                value.type_name()
            ))
        })
    }
}

impl ModulatedLogic for AddEdgeLogic {
    fn requests(&mut self, _traverser: &Traverser, _cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        all_current(self.modulators, list);
        Ok(())
    }

    fn members_at_once(&self) -> u64 {
        ADDED_AT_ONCE
    }

    fn left_over(&mut self) -> Option<Traverser> {
        self.rest.take()
    }

    fn complete(
        &mut self,
        traverser: Traverser,
        results: &mut Vec<Option<Value>>,
        out: &mut Queue<Traverser>,
        cx: &mut Cx<'_>,
    ) -> Result<()> {
        let (traverser, rest) = part_of(traverser, self.members_at_once());
        self.rest = rest;
        let resolved = self.properties.iter().map(|write| write.resolve(results)).collect::<Result<Vec<_>>>()?;
        let mut label = Some(label_text(results[self.label].as_ref().unwrap_or(&Value::Null))?);
        let (id, writes) = split_tokens(resolved, &mut label)?;
        let label = label.unwrap_or_else(|| Arc::from("edge"));
        let out_vertex = Self::vertex(&self.from, "from", &label, &traverser, results, cx)?;
        let in_vertex = Self::vertex(&self.to, "to", &label, &traverser, results, cx)?;
        for copy in 1..=traverser.bulk {
            let edge = cx.context.transaction.add_edge(&label, out_vertex, in_vertex, id.clone())?;
            for (number, write) in writes.iter().enumerate() {
                let (own, value) = cardinality_value(&write.value);
                let cardinality = own.or(write.cardinality).filter(|cardinality| *cardinality != Cardinality::Single);
                let key = key_text(&write.key)?;
                write_property(cx.context, &Value::Edge(edge), cardinality, key, value, &write.meta)?;
                pause_between_writes(cx.context, number + 1)?;
            }
            let mut next = traverser.advance(Value::Edge(edge), &self.step);
            next.bulk = 1;
            out.push_back(next);
            pause_between_writes(cx.context, copy as usize)?;
        }
        Ok(())
    }
}

/// Removes an element or property.
fn remove(context: &mut QueryContext, value: &Value) -> Result<()> {
    match context.attached(value) {
        Value::Vertex(vertex) => {
            if context.transaction.vertex_exists(vertex) {
                context.transaction.remove_vertex(vertex)?;
            }
        }
        Value::Edge(edge) => {
            if context.transaction.edge_exists(edge) {
                context.transaction.remove_edge(edge)?;
            }
        }
        Value::VertexProperty(property) => {
            if context.transaction.vertex_property_exists(property.vertex, property.id) {
                context.transaction.remove_vertex_property(property.vertex, property.id)?;
            }
        }
        Value::Property(property) => {
            if let Some(key) = context.transaction.key_id(&property.key_name) {
                match &property.owner {
                    PropertyOwner::Edge(edge) => context.transaction.remove_edge_property(*edge, key)?,
                    PropertyOwner::VertexProperty(owner) => {
                        context.transaction.remove_meta_property(owner.vertex, owner.id, key)?;
                    }
                }
            }
        }
        other => {
            return Err(QueryError::invalid(format!(
                "drop() needs an element or property, but the traverser holds a {}",
                other.type_name()
            )));
        }
    }
    Ok(())
}

impl QueryContext {
    /// The element of the graph that a detached one stands for; other values as they are.
    pub fn attached(&self, value: &Value) -> Value {
        if let Value::Element(element) = value {
            match &**element {
                ficus_model::Element::Vertex(vertex) => {
                    if let Some(vertex) = self.transaction.find_vertex(&vertex.id) {
                        return Value::Vertex(vertex);
                    }
                }
                ficus_model::Element::Edge(edge) => {
                    if let Some(edge) = self.transaction.find_edge(&edge.id) {
                        return Value::Edge(edge);
                    }
                }
                _ => {}
            }
        }
        value.clone()
    }
}

/// Adds the operator of a writing node.
pub fn build(builder: &mut Builder, node: &Node, step: &StepInfo, chain: &mut Chain) -> Result<()> {
    let (name, step) = (NodeName::from(node), step.clone());
    let mut modulators = Modulators::new();
    match node {
        Node::AddProperty { property } => {
            let write = CompiledWrite::compile(property, &mut modulators);
            let count = modulators.len();
            builder.modulated(chain, &name, false, modulators, move || AddPropertyLogic {
                modulators: count,
                write: write.clone(),
            })
        }
        Node::AddVertex { label, properties, .. } => {
            let label = label.as_ref().map(|label| modulators.value(label));
            let properties: Vec<CompiledWrite> =
                properties.iter().map(|write| CompiledWrite::compile(write, &mut modulators)).collect();
            let count = modulators.len();
            builder.modulated(chain, &name, false, modulators, move || AddVertexLogic {
                modulators: count,
                label,
                properties: properties.clone(),
                step: step.clone(),
                rest: None,
            })
        }
        Node::AddEdge { label, from, to, properties, .. } => {
            let label = modulators.value(label);
            let from = endpoint(from.as_ref(), &mut modulators);
            let to = endpoint(to.as_ref(), &mut modulators);
            let properties: Vec<CompiledWrite> =
                properties.iter().map(|write| CompiledWrite::compile(write, &mut modulators)).collect();
            let count = modulators.len();
            builder.modulated(chain, &name, false, modulators, move || AddEdgeLogic {
                modulators: count,
                label,
                from: from.clone(),
                to: to.clone(),
                properties: properties.clone(),
                step: step.clone(),
                rest: None,
            })
        }
        Node::Drop => {
            builder.operator(chain, &name, false, move || PerRow {
                function: move |traverser: Traverser, cx: &mut Cx<'_>| {
                    remove(cx.context, &traverser.value)?;
                    Ok(None)
                },
            });
            Ok(())
        }
        _ => Err(QueryError::invalid(format!("{node} does not write"))),
    }
}

fn endpoint<'a>(endpoint: Option<&'a Endpoint>, modulators: &mut Modulators<'a>) -> CompiledEndpoint {
    match endpoint {
        None => CompiledEndpoint::Current,
        Some(Endpoint::Label(label)) => CompiledEndpoint::Label(label.clone()),
        Some(Endpoint::Value(value)) => {
            CompiledEndpoint::Modulator(modulators.push(crate::modulate::Modulator::Constant(value.clone())))
        }
        Some(Endpoint::Traversal(traversal)) => CompiledEndpoint::Modulator(modulators.traversal(traversal)),
    }
}
