//! `valueMap`, `propertyMap`, `elementMap`: an element as a map.

use std::sync::Arc;

use ficus_dataflow::Queue;
use ficus_model::{Direction, Element, Shared, T, Value, ValueMap, VertexId};
use ficus_storage::VertexPropertyRecord;

use crate::context::{Cx, QueryContext, Result};
use crate::elements::KeyRef;
use crate::error::QueryError;
use crate::logical::{Node, PropertyForm, TokenFlags};
use crate::modulate::{ModulatedLogic, Request, Subject};
use crate::operators::per_row::PerRow;
use crate::physical::{Builder, Chain, Modulators};
use crate::traverser::{StepInfo, Traverser};

/// The properties of an element as key and property; vertices may repeat keys.
fn entries(context: &QueryContext, element: &Value, keys: &mut [KeyRef]) -> Result<Vec<(Value, Value)>> {
    let mut properties = Vec::new();
    match element {
        Value::Element(detached) => {
            let wanted = |key: &str| keys.is_empty() || keys.iter().any(|own| &*own.name == key);
            match &**detached {
                Element::Vertex(vertex) => properties.extend(
                    vertex
                        .properties
                        .iter()
                        .filter(|property| wanted(&property.key))
                        .map(|property| Value::Element(Arc::new(Element::VertexProperty(property.clone())))),
                ),
                Element::Edge(edge) => properties.extend(
                    edge.properties
                        .iter()
                        .filter(|property| wanted(&property.key))
                        .map(|property| Value::Element(Arc::new(Element::Property(property.clone())))),
                ),
                _ => {}
            }
        }
        _ if QueryContext::is_element(element) => context.properties(element, keys, &mut properties),
        other => {
            return Err(QueryError::invalid(format!(
                "valueMap(), propertyMap() and elementMap() need an element, but the traverser holds a {}",
                other.type_name()
            )));
        }
    }
    Ok(properties.into_iter().filter_map(|property| Some((context.token(&property, T::Key)?, property))).collect())
}

/// Which map is made.
#[derive(Clone, Copy)]
enum Form {
    /// `valueMap`, `propertyMap`.
    Properties(PropertyForm, TokenFlags),
    /// `elementMap`.
    Element,
}

struct PropertyMapLogic {
    keys: Vec<KeyRef>,
    form: Form,
    /// Whether modulator 0 decides which properties are visible.
    has_filter: bool,
    step: StepInfo,
}

impl ModulatedLogic for PropertyMapLogic {
    fn requests(&mut self, traverser: &Traverser, cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        if self.has_filter {
            let entries = entries(cx.context, &traverser.value, &mut self.keys)?;
            list.extend(
                entries.into_iter().map(|(_, property)| Request { modulator: 0, subject: Subject::Value(property) }),
            );
        }
        Ok(())
    }

    fn complete(
        &mut self,
        traverser: Traverser,
        results: &mut Vec<Option<Value>>,
        out: &mut Queue<Traverser>,
        cx: &mut Cx<'_>,
    ) -> Result<()> {
        if let Value::Vertex(vertex) = traverser.value
            && !self.has_filter
            && let Some(map) = vertex_map(cx.context, vertex, &mut self.keys, self.form)
        {
            out.push_back(traverser.move_to(Value::Map(Shared::new(map)), &self.step));
            return Ok(());
        }
        let mut entries = entries(cx.context, &traverser.value, &mut self.keys)?;
        if self.has_filter {
            let mut visible = results.drain(..).map(|result| result.is_some());
            entries.retain(|_| visible.next().unwrap_or(false));
        }
        let map = match self.form {
            Form::Element => {
                let mut map = element_map(cx.context, &traverser.value, entries.len());
                for (key, property) in entries {
                    map.insert(key, cx.context.token(&property, T::Value).unwrap_or(Value::Null));
                }
                map
            }
            Form::Properties(form, tokens) => property_map(cx.context, &traverser.value, entries, form, tokens),
        };
        out.push_back(traverser.move_to(Value::Map(Shared::new(map)), &self.step));
        Ok(())
    }
}

/// The map of a vertex, of values as they are read: no property is made of them. `None` if it is to hold properties, or the vertex has computed ones.
fn vertex_map(context: &QueryContext, vertex: VertexId, keys: &mut [KeyRef], form: Form) -> Option<ValueMap> {
    let in_lists = match form {
        Form::Element => false,
        Form::Properties(PropertyForm::Value, _) => true,
        Form::Properties(PropertyForm::Property, _) => return None,
    };
    if !context.computed.is_empty() {
        return None;
    }
    let mut records = Vec::new();
    context.stored_properties(vertex, keys, &mut records);
    let element = Value::Vertex(vertex);
    let mut map = match form {
        Form::Element => element_map(context, &element, records.len()),
        Form::Properties(_, tokens) => token_map(context, &element, tokens, records.len()),
    };
    for VertexPropertyRecord { key, value, .. } in records {
        let key = Value::String(context.transaction.key_name(key));
        if in_lists {
            add_to_list(&mut map, key, value);
        } else {
            map.insert(key, value);
        }
    }
    Some(map)
}

/// Adds a value to the list under a key, which nearly always has one only.
fn add_to_list(map: &mut ValueMap, key: Value, value: Value) {
    match map.get_mut(&key) {
        Some(Value::List(list)) => Shared::make_mut(list).push(value),
        Some(_) => {}
        None => _ = map.insert(key, Value::List(Shared::new(vec![value]))),
    }
}

/// The tokens that `valueMap()` or `propertyMap()` of an element begins with, with room for so many entries behind them.
fn token_map(context: &QueryContext, element: &Value, tokens: TokenFlags, entries: usize) -> ValueMap {
    let tokens = [
        (tokens.ids, T::Id),
        (tokens.labels && !matches!(element, Value::VertexProperty(_)), T::Label),
        (tokens.keys, T::Key),
        (tokens.values, T::Value),
    ];
    let tokens = tokens.map(|(is_wanted, token)| {
        let value = is_wanted.then(|| context.token(element, token)).flatten()?;
        Some((Value::T(token), value))
    });
    let mut map = ValueMap::with_capacity(tokens.iter().flatten().count() + entries);
    map.extend(tokens.into_iter().flatten());
    map
}

/// `valueMap()` or `propertyMap()` of one element.
fn property_map(
    context: &QueryContext,
    element: &Value,
    entries: Vec<(Value, Value)>,
    form: PropertyForm,
    tokens: TokenFlags,
) -> ValueMap {
    let mut map = token_map(context, element, tokens, entries.len());
    let is_vertex = matches!(element, Value::Vertex(_))
        || matches!(element, Value::Element(element) if matches!(**element, Element::Vertex(_)));
    for (key, property) in entries {
        let value = match form {
            PropertyForm::Property => property,
            PropertyForm::Value => context.token(&property, T::Value).unwrap_or(Value::Null),
        };
        if is_vertex {
            add_to_list(&mut map, key, value);
        } else {
            map.insert(key, value);
        }
    }
    map
}

/// Applies a `by()` to the values of a map, except those under tokens; values for which it yields nothing go.
struct ValuesByLogic;

impl ModulatedLogic for ValuesByLogic {
    fn requests(&mut self, traverser: &Traverser, _cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        if let Value::Map(map) = &traverser.value {
            list.extend(
                map.iter()
                    .filter(|(key, _)| !matches!(key, Value::T(_)))
                    .map(|(_, value)| Request { modulator: 0, subject: Subject::Value(value.clone()) }),
            );
        }
        Ok(())
    }

    fn complete(
        &mut self,
        mut traverser: Traverser,
        results: &mut Vec<Option<Value>>,
        out: &mut Queue<Traverser>,
        _cx: &mut Cx<'_>,
    ) -> Result<()> {
        if let Value::Map(map) = &mut traverser.value {
            let mut results = results.drain(..);
            Shared::make_mut(map).retain(|key, value| {
                if matches!(key, Value::T(_)) {
                    return true;
                }
                match results.next().flatten() {
                    Some(result) => {
                        *value = result;
                        true
                    }
                    None => false,
                }
            });
        }
        out.push_back(traverser);
        Ok(())
    }
}

/// What `elementMap()` of an element begins with, with room for so many properties behind it.
fn element_map(context: &QueryContext, element: &Value, entries: usize) -> ValueMap {
    let is_property = context.token(element, T::Key).is_some();
    let parts: &[T] = if is_property { &[T::Key, T::Value] } else { &[T::Label] };
    let ends = if matches!(element, Value::Edge(_)) { 2 } else { 0 };
    let mut map = ValueMap::with_capacity(1 + parts.len() + ends + entries);
    map.insert(Value::T(T::Id), context.element_id(element).unwrap_or(Value::Null));
    for token in parts {
        map.insert(Value::T(*token), context.token(element, *token).unwrap_or(Value::Null));
    }
    if let Value::Edge(edge) = element
        && let Some(record) = context.transaction.edge(*edge)
    {
        for (direction, vertex) in [(Direction::In, record.in_), (Direction::Out, record.out)] {
            let vertex = Value::Vertex(vertex);
            let mut end = ValueMap::with_capacity(2);
            end.insert(Value::T(T::Id), context.element_id(&vertex).unwrap_or(Value::Null));
            end.insert(Value::T(T::Label), context.token(&vertex, T::Label).unwrap_or(Value::Null));
            map.insert(Value::Direction(direction), Value::Map(Shared::new(end)));
        }
    }
    map
}

/// Adds the operator of a map-making node.
pub fn build(builder: &mut Builder, node: &Node, step: &StepInfo, chain: &mut Chain) -> Result<()> {
    let (keys, form, by, filter) = match node {
        Node::PropertyMap { keys, form, tokens, by, filter } => {
            (keys, Form::Properties(*form, *tokens), by.as_ref(), filter)
        }
        Node::ElementMap { keys, filter } => (keys, Form::Element, None, filter),
        _ => return Err(QueryError::invalid(format!("{node} does not make a map of an element"))),
    };
    let keys: Vec<KeyRef> = keys.iter().cloned().map(KeyRef::new).collect();
    let mut modulators = Modulators::new();
    if let Some(filter) = filter {
        modulators.traversal(filter);
    }
    // The path gets the map as the by() leaves it.
    let inner = if by.is_some() { StepInfo { labels: step.labels.clone(), tracking: false } } else { step.clone() };
    let has_filter = filter.is_some();
    builder.modulated(chain, &node.to_string(), false, modulators, move || PropertyMapLogic {
        keys: keys.clone(),
        form,
        has_filter,
        step: inner.clone(),
    })?;
    if let Some(by) = by {
        let mut modulators = Modulators::new();
        modulators.by(by);
        let id = builder.next_id();
        builder.modulated(chain, "by", false, modulators, || ValuesByLogic)?;
        builder.auxiliary(id);
        if step.tracking {
            let step = step.clone();
            let id = builder.operator(chain, "by", false, move || {
                let step = step.clone();
                PerRow {
                    function: move |traverser: Traverser, _: &mut Cx<'_>| {
                        let value = traverser.value.clone();
                        Ok(Some(traverser.move_to(value, &step)))
                    },
                }
            });
            builder.auxiliary(id);
        }
    }
    Ok(())
}
