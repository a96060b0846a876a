//! `valueMap`, `propertyMap`, `elementMap`: an element as a map.

use std::sync::Arc;

use ficus_dataflow::Queue;
use ficus_model::{Direction, Element, MapMaker, Shared, T, Value, ValueMap, VertexId};
use ficus_storage::VertexPropertyRecord;

use crate::context::{Cx, QueryContext, Result};
use crate::elements::KeyRef;
use crate::error::QueryError;
use crate::functions::members;
use crate::logical::{By, Name, Node, PropertyForm, TokenFlags};
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

/// Makes maps of elements.
#[derive(Clone)]
pub struct ElementMaps {
    keys: Vec<KeyRef>,
    form: Form,
    /// Whether a `by(unfold())` follows: of what a key has the first.
    takes_first: bool,
    maker: MapMaker,
    /// Of the ends of edges.
    ends: MapMaker,
    /// Empty between rows.
    records: Vec<VertexPropertyRecord>,
}

impl ElementMaps {
    /// What a node makes of an element by itself; `None` if a sub-query has a part in it.
    pub fn of(node: &Node) -> Option<ElementMaps> {
        match node {
            Node::PropertyMap { keys, form, tokens, by, filter: None } => {
                let takes_first = by.as_ref().is_some_and(takes_first);
                (by.is_none() || takes_first)
                    .then(|| ElementMaps::new(keys, Form::Properties(*form, *tokens), takes_first))
            }
            Node::ElementMap { keys, filter: None } => Some(ElementMaps::new(keys, Form::Element, false)),
            _ => None,
        }
    }

    fn new(keys: &[Name], form: Form, takes_first: bool) -> ElementMaps {
        let keys = keys.iter().cloned().map(KeyRef::new).collect();
        let (maker, ends, records) = (MapMaker::default(), MapMaker::default(), Vec::new());
        ElementMaps { keys, form, takes_first, maker, ends, records }
    }

    /// The map of an element.
    ///
    /// Errors: `Invalid` if it is none.
    pub fn make(&mut self, element: &Value, context: &QueryContext) -> Result<ValueMap> {
        if let Value::Vertex(vertex) = element
            && let Some(map) = self.vertex_map(context, *vertex)
        {
            return Ok(map);
        }
        let entries = entries(context, element, &mut self.keys)?;
        Ok(self.map_of(context, element, entries))
    }

    /// The map of an element that has these properties.
    fn map_of(&mut self, context: &QueryContext, element: &Value, entries: Vec<(Value, Value)>) -> ValueMap {
        self.maker.begin();
        match self.form {
            Form::Element => {
                begin_element_map(&mut self.maker, context, element);
                put_ends(&mut self.maker, &mut self.ends, context, element);
                for (key, property) in entries {
                    self.maker.put(&key, context.token(&property, T::Value).unwrap_or(Value::Null));
                }
            }
            Form::Properties(form, tokens) => {
                begin_with_tokens(&mut self.maker, context, element, tokens);
                self.put_properties(context, element, entries, form);
            }
        }
        self.maker.finish()
    }

    /// The map of a vertex, of values as they are read: no property is made of them. `None` if it is to hold properties, or the vertex has computed ones.
    fn vertex_map(&mut self, context: &QueryContext, vertex: VertexId) -> Option<ValueMap> {
        let in_lists = match self.form {
            Form::Element => false,
            Form::Properties(PropertyForm::Value, _) => true,
            Form::Properties(PropertyForm::Property, _) => return None,
        };
        if !context.computed.is_empty() {
            return None;
        }
        let mut records = std::mem::take(&mut self.records);
        context.stored_properties(vertex, &mut self.keys, &mut records);
        let element = Value::Vertex(vertex);
        self.maker.begin();
        match self.form {
            Form::Element => begin_element_map(&mut self.maker, context, &element),
            Form::Properties(_, tokens) => begin_with_tokens(&mut self.maker, context, &element, tokens),
        }
        for VertexPropertyRecord { key, value, .. } in records.drain(..) {
            let key = Value::String(context.transaction.key_name(key));
            if in_lists {
                self.put_one_of_several(&key, value);
            } else {
                self.maker.put(&key, value);
            }
        }
        self.records = records;
        Some(self.maker.finish())
    }

    /// What makes `valueMap()` or `propertyMap()` of one element, behind its tokens.
    fn put_properties(
        &mut self,
        context: &QueryContext,
        element: &Value,
        entries: Vec<(Value, Value)>,
        form: PropertyForm,
    ) {
        let is_vertex = matches!(element, Value::Vertex(_))
            || matches!(element, Value::Element(element) if matches!(**element, Element::Vertex(_)));
        for (key, property) in entries {
            let value = match form {
                PropertyForm::Property => property,
                PropertyForm::Value => context.token(&property, T::Value).unwrap_or(Value::Null),
            };
            if is_vertex {
                self.put_one_of_several(&key, value);
            } else if !self.takes_first {
                self.maker.put(&key, value);
            } else if let Some((first, _)) = members::iterate(&value).next() {
                self.maker.put(&key, first);
            }
        }
    }

    /// Adds a value to the list under a key, which nearly always has one only; or puts the first there.
    fn put_one_of_several(&mut self, key: &Value, value: Value) {
        if self.takes_first {
            self.maker.put_new(key, value);
            return;
        }
        if let Some(Value::List(one)) = self.maker.put_new(key, Value::List(Shared::new(vec![value])))
            && let Value::List(list) = self.maker.value_under(key)
        {
            Shared::change(list, |list| list.extend(Shared::unwrap_or_clone(one)));
        }
    }
}

/// The tokens that `valueMap()` or `propertyMap()` of an element begins with.
fn begin_with_tokens(maker: &mut MapMaker, context: &QueryContext, element: &Value, tokens: TokenFlags) {
    let tokens = [
        (tokens.ids, T::Id),
        (tokens.labels && !matches!(element, Value::VertexProperty(_)), T::Label),
        (tokens.keys, T::Key),
        (tokens.values, T::Value),
    ];
    for (is_wanted, token) in tokens {
        if is_wanted && let Some(value) = context.token(element, token) {
            maker.put(&Value::T(token), value);
        }
    }
}

struct PropertyMapLogic {
    maps: ElementMaps,
    /// Whether modulator 0 decides which properties are visible.
    has_filter: bool,
    step: StepInfo,
}

impl ModulatedLogic for PropertyMapLogic {
    fn requests(&mut self, traverser: &Traverser, cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        if self.has_filter {
            let entries = entries(cx.context, &traverser.value, &mut self.maps.keys)?;
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
        let map = if self.has_filter {
            let mut entries = entries(cx.context, &traverser.value, &mut self.maps.keys)?;
            let mut visible = results.drain(..).map(|result| result.is_some());
            entries.retain(|_| visible.next().unwrap_or(false));
            self.maps.map_of(cx.context, &traverser.value, entries)
        } else {
            self.maps.make(&traverser.value, cx.context)?
        };
        out.push_back(traverser.move_to(Value::Map(Shared::new(map)), &self.step));
        Ok(())
    }
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
            let mut keeps = |key: &Value, value: &mut Value| {
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
            };
            Shared::change(map, |map| map.retain(&mut keeps));
        }
        out.push_back(traverser);
        Ok(())
    }
}

/// What `elementMap()` of an element begins with.
fn begin_element_map(maker: &mut MapMaker, context: &QueryContext, element: &Value) {
    let is_property = context.token(element, T::Key).is_some();
    let parts: &[T] = if is_property { &[T::Key, T::Value] } else { &[T::Label] };
    maker.put(&Value::T(T::Id), context.element_id(element).unwrap_or(Value::Null));
    for token in parts {
        maker.put(&Value::T(*token), context.token(element, *token).unwrap_or(Value::Null));
    }
}

/// What `elementMap()` of an edge has next.
fn put_ends(maker: &mut MapMaker, ends: &mut MapMaker, context: &QueryContext, element: &Value) {
    if let Value::Edge(edge) = element
        && let Some(record) = context.transaction.edge(*edge)
    {
        for (direction, vertex) in [(Direction::In, record.in_), (Direction::Out, record.out)] {
            let vertex = Value::Vertex(vertex);
            let tokens = [T::Id, T::Label].map(Value::T);
            let of_vertex = |token| context.token(&vertex, token).unwrap_or(Value::Null);
            let end = ends.make(tokens.iter().zip([T::Id, T::Label].map(of_vertex)));
            maker.put(&Value::Direction(direction), Value::Map(Shared::new(end)));
        }
    }
}

/// Whether it is `by(unfold())`, as it stands behind most `valueMap()`.
fn takes_first(by: &By) -> bool {
    let By::Traversal(walk) = by else { return false };
    matches!(&walk.nodes[..], [unfold] if unfold.node == Node::Unfold && unfold.labels.is_empty())
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
    let mut modulators = Modulators::new();
    if let Some(filter) = filter {
        modulators.traversal(filter);
    }
    let (by, takes_first) = match by {
        Some(by) if takes_first(by) => (None, true),
        by => (by, false),
    };
    // The path gets the map as the by() leaves it.
    let inner = if by.is_some() { StepInfo { labels: step.labels.clone(), tracking: false } } else { step.clone() };
    let has_filter = filter.is_some();
    let maps = ElementMaps::new(keys, form, takes_first);
    builder.modulated(chain, node, false, modulators, move || PropertyMapLogic {
        maps: maps.clone(),
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
