//! `has`, `hasNot`, `is`, `all`, `any`, `none`: filters that need no sub-query.

use std::ops::ControlFlow;
use std::sync::Arc;

use ficus_dataflow::NodeName;
use ficus_model::matching::CompiledPredicate;
use ficus_model::{Comparison, Element, LabelId, P, Value, VertexId};

use ficus_storage::{AtEdge, AtVertex, NumberRange};

use crate::bound::{BoundRef, Passing, PassingRef};
use crate::context::{Cx, QueryContext, Result, Traversers};
use crate::elements::{KeyRef, LabelSet};
use crate::error::QueryError;
use crate::logical::{HasContainer, HasKey, Name, Node, Quantifier};
use crate::operators::junction::{Junction, is_junction};
use crate::operators::per_row::{KeepRows, RowTest};
use crate::physical::{Builder, Chain};
use crate::probe::Rule;
use crate::traverser::Traverser;

/// One condition, ready to run.
#[derive(Clone)]
struct Condition {
    key: ConditionKey,
    /// Whether ids are compared as text.
    by_text: bool,
    predicate: CompiledPredicate,
    /// What the predicate says of ids or labels, where it only names some.
    names: Option<Names>,
    /// Where a number or moment has to be, if the predicate asks for a range.
    range: Option<NumberRange>,
    /// For columns, the conditions one of which has to hold, if the predicate says so.
    alternatives: Option<Box<Junction>>,
}

/// Texts one of which something has to be, or must not be.
#[derive(Clone)]
struct Names {
    texts: Arc<[Name]>,
    negated: bool,
    /// The texts as labels of the graph.
    labels: LabelSet,
    /// The vertices that have the texts as ids.
    vertices: Vertices,
}

#[derive(Clone)]
enum Vertices {
    /// Nobody has looked.
    Unknown,
    /// Others may be written so as well.
    Open,
    Known(Vec<VertexId>),
}

/// Whether an id that is written so is a text, and no number, moment, duration, UUID, character or truth value.
pub fn is_written_as_text_only(id: &str) -> bool {
    const UUID_LENGTH: usize = 36;
    let is_other = id.starts_with(|first: char| first.is_ascii_digit() || first == '+' || first == '-')
        || id.starts_with("PT")
        || matches!(id, "true" | "false" | "NaN" | "Infinity")
        || id.len() == UUID_LENGTH && id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    id.chars().nth(1).is_some() && !is_other
}

impl Names {
    fn of(predicate: &P) -> Option<Names> {
        let text = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            _ => None,
        };
        let (texts, negated): (Option<Vec<Name>>, bool) = match predicate {
            P::Compare(Comparison::Eq, value) => (text(value).map(|text| vec![text]), false),
            P::Compare(Comparison::Neq, value) => (text(value).map(|text| vec![text]), true),
            P::Within(values) => (values.iter().map(text).collect(), false),
            P::Without(values) => (values.iter().map(text).collect(), true),
            _ => return None,
        };
        let texts: Arc<[Name]> = texts.filter(|texts| !texts.is_empty() && texts.len() <= NAMES_LIMIT)?.into();
        Some(Names { labels: LabelSet::new(texts.clone()), texts, negated, vertices: Vertices::Unknown })
    }

    /// Whether the vertex's id fits; `None` if it has to be read to know.
    fn fits_id(&mut self, vertex: VertexId, context: &QueryContext) -> Option<bool> {
        if let Some(those) = self.vertices_with_ids(context) {
            return Some(those.contains(&vertex) != self.negated);
        }
        for text in &*self.texts {
            if context.transaction.vertex_id_is_text(vertex, text)? {
                return Some(!self.negated);
            }
        }
        Some(self.negated)
    }

    /// All vertices whose ids are written like one of the texts, looked up once; `None` if that takes reading ids.
    fn vertices_with_ids(&mut self, context: &QueryContext) -> Option<&[VertexId]> {
        // What a query writes it may find, and what it reads then has to be recorded each time.
        if matches!(self.vertices, Vertices::Unknown) {
            let is_sure =
                !context.transaction.may_write() && self.texts.iter().all(|text| is_written_as_text_only(text));
            let find = |text: &Name| context.transaction.find_vertex(&Value::String(text.clone()));
            self.vertices = match is_sure {
                true => Vertices::Known(self.texts.iter().filter_map(find).collect()),
                false => Vertices::Open,
            };
        }
        match &self.vertices {
            Vertices::Known(vertices) => Some(vertices),
            _ => None,
        }
    }

    /// Whether the only value under a key fits; `None` if it has to be read to know.
    fn fits_value(&self, vertex: VertexId, key: &mut KeyRef, context: &QueryContext) -> Option<bool> {
        if !context.computed.is_empty() {
            return None;
        }
        let key = key.id(context)?;
        for text in &*self.texts {
            if context.transaction.vertex_value_is_text(vertex, key, text)? {
                return Some(!self.negated);
            }
        }
        Some(self.negated)
    }

    /// Whether the label fits.
    fn fits_label(&mut self, label: LabelId, context: &QueryContext) -> bool {
        self.labels.ids(context).is_some_and(|ids| ids.contains(&label)) != self.negated
    }
}

/// From so many texts on, looking a value up in them is cheaper than holding it against each.
const NAMES_LIMIT: usize = 8;

/// Whether a predicate's right-hand sides are strings (or null).
pub fn compares_text(predicate: &P) -> bool {
    match predicate {
        P::Compare(_, value) => matches!(value, Value::String(_)),
        P::Within(values) | P::Without(values) => {
            values.iter().any(|value| matches!(value, Value::String(_)))
                && values.iter().all(|value| matches!(value, Value::String(_) | Value::Null))
        }
        P::And(parts) | P::Or(parts) => parts.iter().all(compares_text),
        P::Not(part) => compares_text(part),
        P::Text(..) | P::TypeOf(_) => false,
    }
}

#[derive(Clone)]
enum ConditionKey {
    Property(KeyRef),
    Id,
    Label,
    PropertyKey,
    PropertyValue,
}

/// The conditions one of which has to hold for a condition on a property to hold, if they are few.
fn alternatives(container: &HasContainer) -> Result<Option<Box<Junction>>> {
    let mut parts = Vec::new();
    if !matches!(container.predicate, P::Or(_) | P::Within(_))
        || !collect_alternatives(&container.predicate, &mut parts)
    {
        return Ok(None);
    }
    let of_part = |predicate| Conditions::compile(&[HasContainer { key: container.key.clone(), predicate }]);
    let parts = parts.into_iter().map(of_part).collect::<Result<_>>()?;
    Ok(Some(Box::new(Junction::new(Rule::Any, parts))))
}

/// The predicates one of which has to hold; false if they are too many.
fn collect_alternatives(predicate: &P, parts: &mut Vec<P>) -> bool {
    match predicate {
        P::Or(inner) => return inner.iter().all(|part| collect_alternatives(part, parts)),
        P::Within(values) if values.len() > NAMES_LIMIT => return false,
        P::Within(values) => parts.extend(values.iter().cloned().map(P::eq)),
        part => parts.push(part.clone()),
    }
    parts.len() <= NAMES_LIMIT
}

impl Condition {
    fn compile(container: &HasContainer) -> Result<Condition> {
        let key = match &container.key {
            HasKey::Key(name) => ConditionKey::Property(KeyRef::new(name.clone())),
            HasKey::Id => ConditionKey::Id,
            HasKey::Label => ConditionKey::Label,
            HasKey::PropertyKey => ConditionKey::PropertyKey,
            HasKey::PropertyValue => ConditionKey::PropertyValue,
        };
        // A string finds the id that is written so.
        let by_text = matches!(key, ConditionKey::Id) && compares_text(&container.predicate);
        let names = match key {
            ConditionKey::Id | ConditionKey::Label | ConditionKey::Property(_) => Names::of(&container.predicate),
            _ => None,
        };
        let alternatives = match key {
            ConditionKey::Property(_) if names.is_none() => alternatives(container)?,
            _ => None,
        };
        Ok(Condition {
            alternatives,
            key,
            by_text,
            predicate: container.predicate.compile()?,
            names,
            range: NumberRange::of(&container.predicate),
        })
    }

    fn test(&mut self, value: &Value, context: &QueryContext) -> Result<bool> {
        if let (Some(names), Value::Vertex(vertex)) = (&mut self.names, value) {
            match &mut self.key {
                ConditionKey::Id => {
                    if let Some(fits) = names.fits_id(*vertex, context) {
                        return Ok(fits);
                    }
                }
                ConditionKey::Property(key) => {
                    if let Some(fits) = names.fits_value(*vertex, key, context) {
                        return Ok(fits);
                    }
                }
                _ => {
                    if let Some(label) = context.transaction.vertex_label(*vertex) {
                        return Ok(names.fits_label(label, context));
                    }
                }
            }
        }
        match &mut self.key {
            ConditionKey::Id => match context.element_id(value) {
                Some(id) if self.by_text => {
                    let text = Value::String(Arc::from(ficus_model::text::text(&id, context)));
                    Ok(self.predicate.test(&text, context)?)
                }
                Some(id) => Ok(self.predicate.test(&id, context)?),
                None => not_an_element(value),
            },
            ConditionKey::Label => match context.element_label(value) {
                Some(label) => Ok(self.predicate.test(&Value::String(label), context)?),
                None => not_an_element(value),
            },
            ConditionKey::PropertyKey => match property_parts(value) {
                Some((key, _)) => Ok(self.predicate.test(&Value::String(key), context)?),
                None => not_an_element(value),
            },
            ConditionKey::PropertyValue => match property_parts(value) {
                Some((_, value)) => Ok(self.predicate.test(&value, context)?),
                None => not_an_element(value),
            },
            ConditionKey::Property(key) => {
                if let Value::Vertex(vertex) = value
                    && (context.computed.is_empty() || !context.computed.has(&key.name))
                {
                    let Some(id) = key.id(context) else { return Ok(false) };
                    // Of several values one that holds is enough.
                    let mut found = Ok(false);
                    context.transaction.visit_vertex_values(*vertex, id, |value| {
                        found = self.predicate.test(&value, context);
                        if matches!(found, Ok(false)) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                    });
                    return Ok(found?);
                }
                match context.property_value(value, key) {
                    Some(found) => Ok(self.predicate.test(&found, context)?),
                    None if QueryContext::is_element(value) || matches!(value, Value::Property(_)) => Ok(false),
                    None => not_an_element(value),
                }
            }
        }
    }
}

/// Whether an element has a property under a key; `None` for a property, which passes neither `has` nor `hasNot`.
///
/// Errors: `Invalid` for what is neither.
pub fn has_property(value: &Value, key: &mut KeyRef, context: &QueryContext) -> Result<Option<bool>> {
    if !QueryContext::is_element(value) {
        return not_an_element(value).map(|_| None);
    }
    Ok(Some(context.has_value(value, key)))
}

fn property_parts(value: &Value) -> Option<(Arc<str>, Value)> {
    match value {
        Value::VertexProperty(property) => Some((property.key_name.clone(), property.value.clone())),
        Value::Property(property) => Some((property.key_name.clone(), property.value.clone())),
        Value::Element(element) => match &**element {
            Element::VertexProperty(property) => Some((property.key.clone(), property.value.clone())),
            Element::Property(property) => Some((property.key.clone(), property.value.clone())),
            _ => None,
        },
        _ => None,
    }
}

fn not_an_element(value: &Value) -> Result<bool> {
    match value {
        // An element that is gone, or a kind of element without this part.
        Value::Vertex(_) | Value::Edge(_) | Value::VertexProperty(_) | Value::Property(_) | Value::Element(_) => {
            Ok(false)
        }
        _ => Err(QueryError::invalid(format!(
            "has() needs an element or property, but the traverser holds a {}",
            value.type_name()
        ))),
    }
}

/// The conditions of `has` nodes and of filters that are made of them, to be tested on values, or on columns before there are any.
#[derive(Clone)]
pub struct Conditions {
    list: Vec<Condition>,
    /// Keys under which there has to be a value, or must be none (`true`).
    presence: Vec<(KeyRef, bool)>,
    /// What is made of several.
    junctions: Vec<Junction>,
    /// What an order behind them wants.
    bound: Option<BoundRef>,
    /// Filters behind them that may come to know all that passes.
    passing: Vec<PassingRef>,
}

/// From so many neighbours on, looking at columns first pays.
const PREFILTER_FROM: usize = 8;

/// Fewer edges than this are tested one by one, which takes looking up each.
const PREFILTER_EDGES_FROM: usize = 2;

/// Up to so many conditions count as one.
const FEW_CONDITIONS: usize = 16;

impl Conditions {
    /// Drops vertices that fail a condition that columns can tell, do not pass a filter behind that knows all that do, or are not
    /// wanted by the order behind. True if those that stay fulfil all conditions; else they are to be tested.
    #[must_use]
    pub fn prefilter<V: AtVertex>(&mut self, context: &QueryContext, vertices: &mut Vec<V>) -> bool {
        if vertices.len() < PREFILTER_FROM || !context.computed.is_empty() {
            return false;
        }
        for own in &self.passing {
            if let Some(set) = context.passing[own.number].get() {
                set.drop_from(vertices, own.negated);
            }
        }
        self.sift(context, vertices)
    }

    /// As [`Conditions::prefilter`], of any number of vertices, whatever filters behind know.
    #[must_use]
    pub fn sift<V: AtVertex>(&mut self, context: &QueryContext, vertices: &mut Vec<V>) -> bool {
        let mut all_told = true;
        let mut wanted = self.bound.as_mut().and_then(|bound| {
            let range = bound.range(&context.bounds)?;
            Some((bound.key.id(context)?, range))
        });
        for condition in &mut self.list {
            if let Some(alternatives) = &mut condition.alternatives {
                all_told &= alternatives.sift(context, vertices);
                continue;
            }
            let told = match (&mut condition.key, &mut condition.names, condition.range) {
                (ConditionKey::Label, Some(names), _) => match names.labels.ids(context) {
                    Some(labels) => context.transaction.drop_by_label(labels, names.negated, vertices),
                    None => false,
                },
                (ConditionKey::Id, Some(names), _) => {
                    let negated = names.negated;
                    match names.vertices_with_ids(context) {
                        Some(those) => {
                            vertices.retain(|vertex| those.contains(&vertex.vertex()) != negated);
                            true
                        }
                        None => false,
                    }
                }
                (ConditionKey::Property(key), _, Some(range)) => match key.id(context) {
                    Some(key) => {
                        // Both in one look at the column.
                        let both = wanted.filter(|(own, _)| *own == key).and_then(|(_, wanted)| range.and(wanted));
                        if both.is_some() {
                            wanted = None;
                        }
                        context.transaction.drop_outside(key, &both.unwrap_or(range), vertices)
                    }
                    None => false,
                },
                // What may be a text is looked at below, when fewer are left.
                (ConditionKey::Property(_), ..) => true,
                _ => false,
            };
            all_told &= told;
        }
        for condition in &mut self.list {
            let ConditionKey::Property(key) = &mut condition.key else { continue };
            if condition.alternatives.is_some() {
                continue;
            }
            let (names, of_texts) = (&condition.names, condition.predicate.of_texts());
            all_told &= match (key.id(context), names, of_texts) {
                (None, ..) => false,
                (Some(key), Some(names), _) => {
                    context.transaction.drop_by_texts(key, &names.texts, names.negated, vertices)
                }
                (Some(key), None, Some(passes)) => context.transaction.drop_by_text(key, passes, vertices),
                (Some(_), None, None) => condition.range.is_some(),
            };
        }
        for (key, negated) in &mut self.presence {
            all_told &= match key.id(context) {
                Some(key) => context.transaction.drop_without(key, *negated, vertices),
                None => false,
            };
        }
        for junction in &mut self.junctions {
            all_told &= junction.sift(context, vertices);
        }
        if let Some((key, range)) = wanted {
            context.transaction.drop_outside(key, &range, vertices);
        }
        all_told
    }

    /// As [`Conditions::prefilter`], of edges.
    #[must_use]
    pub fn prefilter_edges<E: AtEdge>(&mut self, context: &QueryContext, edges: &mut Vec<E>) -> bool {
        if edges.len() < PREFILTER_EDGES_FROM || !context.computed.is_empty() {
            return false;
        }
        let mut all_told = self.presence.is_empty() && self.junctions.is_empty();
        for condition in &mut self.list {
            let told = match (&mut condition.key, condition.range) {
                (ConditionKey::Property(key), Some(range)) => match key.id(context) {
                    Some(key) => context.transaction.drop_edges_outside(key, &range, edges),
                    None => false,
                },
                _ => false,
            };
            all_told &= told;
        }
        if let Some(bound) = &mut self.bound
            && let Some(range) = bound.range(&context.bounds)
            && let Some(key) = bound.key.id(context)
        {
            context.transaction.drop_edges_outside(key, &range, edges);
        }
        all_told
    }

    /// A filter behind, of which all vertices that pass are known.
    pub fn passing<'c>(&self, context: &'c QueryContext) -> Option<&'c Passing> {
        let mut those = self.passing.iter().filter(|own| !own.negated).map(|own| &context.passing[own.number]);
        those.find(|passing| passing.get().is_some()).filter(|_| context.computed.is_empty())
    }

    /// The same conditions for what goes to these filters and to an order.
    pub fn within(self, bound: Option<BoundRef>, passing: Vec<PassingRef>) -> Conditions {
        Conditions { bound, passing, ..self }
    }

    /// Whether a condition reads a text under a key.
    pub fn compares_texts(&self) -> bool {
        let reads_text = |own: &Condition| matches!(own.key, ConditionKey::Property(_)) && own.range.is_none();
        self.list.iter().any(reads_text) || self.inner().any(Conditions::compares_texts)
    }

    /// The conditions of which junctions are made.
    fn inner(&self) -> impl Iterator<Item = &Conditions> {
        self.junctions.iter().flat_map(Junction::parts)
    }

    /// A key and a text that all that passes has under it, if a condition says so.
    pub fn text_of_all(&self) -> Option<(&KeyRef, &Name)> {
        self.list.iter().find_map(|own| match (&own.key, &own.names) {
            (ConditionKey::Property(key), Some(Names { texts, negated: false, .. })) => match &**texts {
                [text] => Some((key, text)),
                _ => None,
            },
            _ => None,
        })
    }

    /// Whether columns may tell something.
    pub fn can_prefilter(&self) -> bool {
        let is_of_range = |condition: &Condition| condition.range.is_some();
        self.bound.is_some() || !self.passing.is_empty() || self.list.iter().any(is_of_range)
    }

    /// Whether all elements fulfil them.
    pub fn hold_always(&self) -> bool {
        self.list.is_empty() && self.presence.is_empty() && self.junctions.is_empty()
    }

    /// Compiles the conditions.
    pub fn compile(containers: &[HasContainer]) -> Result<Conditions> {
        let list = containers.iter().map(Condition::compile).collect::<Result<_>>()?;
        Ok(Conditions { list, presence: Vec::new(), junctions: Vec::new(), bound: None, passing: Vec::new() })
    }

    /// The conditions of nodes that are, or are made of, conditions ([`is_junction`]): all have to hold.
    pub fn of_tests<'n>(nodes: impl IntoIterator<Item = &'n Node>) -> Result<Conditions> {
        let mut conditions = Conditions::compile(&[])?;
        for node in nodes {
            match node {
                Node::Has { containers } => {
                    for container in containers {
                        conditions.list.push(Condition::compile(container)?);
                    }
                }
                Node::HasProperty { key, negated } => {
                    conditions.presence.push((KeyRef::new(key.clone()), *negated));
                }
                node => conditions.junctions.extend(Junction::of(node)?),
            }
        }
        Ok(conditions)
    }

    /// Of so many elements, as many as are to be held against the conditions at once, so that this takes no longer where there are thousands of these.
    pub fn rows_at_once(&self, rows: usize) -> usize {
        let conditions = self.count();
        (rows.saturating_mul(FEW_CONDITIONS) / conditions.max(FEW_CONDITIONS)).max(1)
    }

    fn count(&self) -> usize {
        let of_one = |own: &Condition| own.alternatives.as_ref().map_or(1, |alternatives| alternatives.parts().len());
        let of_list: usize = self.list.iter().map(of_one).sum();
        of_list + self.presence.len() + self.inner().map(Conditions::count).sum::<usize>()
    }

    /// Whether all hold.
    pub fn test(&mut self, value: &Value, context: &QueryContext) -> Result<bool> {
        for condition in &mut self.list {
            if !condition.test(value, context)? {
                return Ok(false);
            }
        }
        for (key, negated) in &mut self.presence {
            if has_property(value, key, context)? != Some(!*negated) {
                return Ok(false);
            }
        }
        for junction in &mut self.junctions {
            if !junction.test(value, context)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The different members of a collection, as `all`, `any` and `none` see them; `None`: not a collection.
pub fn members(value: &Value) -> Option<Box<dyn Iterator<Item = &Value> + '_>> {
    match value {
        Value::List(list) => Some(Box::new(list.iter())),
        Value::Set(set) => Some(Box::new(set.iter())),
        Value::BulkSet(bag) => Some(Box::new(bag.counts.keys())),
        Value::Path(path) => Some(Box::new(path.objects.iter())),
        _ => None,
    }
}

fn holds(quantifier: Quantifier, predicate: &CompiledPredicate, value: &Value, context: &QueryContext) -> Result<bool> {
    // A null or single value is not a collection and does not pass.
    let Some(members) = members(value) else { return Ok(false) };
    for member in members {
        let test = predicate.test(member, context)?;
        match quantifier {
            Quantifier::All if !test => return Ok(false),
            Quantifier::Any if test => return Ok(true),
            Quantifier::None if test => return Ok(false),
            _ => {}
        }
    }
    Ok(quantifier != Quantifier::Any)
}

/// Holds rows against conditions: those of many vertices together, so that columns are read for all of them at once.
struct HasTest {
    conditions: Conditions,
    /// The vertices of the rows, each with the place of its row.
    vertices: Vec<(VertexId, u32)>,
}

impl RowTest for HasTest {
    fn test(&mut self, rows: &Traversers, count: usize, verdicts: &mut Vec<bool>, cx: &mut Cx<'_>) -> Result<()> {
        let HasTest { conditions, vertices } = self;
        let count = conditions.rows_at_once(count);
        vertices.clear();
        let rows_of_vertices = rows.iter().take(count).zip(0u32..).map_while(|(row, place)| match row.value {
            Value::Vertex(vertex) => Some((vertex, place)),
            _ => None,
        });
        vertices.extend(rows_of_vertices);
        if vertices.len() < PREFILTER_FROM {
            return (|row: &Traverser, cx: &mut Cx<'_>| conditions.test(&row.value, cx.context))
                .test(rows, count, verdicts, cx);
        }
        let start = verdicts.len();
        verdicts.resize(start + vertices.len(), false);
        let is_told = conditions.prefilter(cx.context, vertices);
        for (vertex, place) in vertices {
            let place = start + *place as usize;
            verdicts[place] = is_told || conditions.test(&Value::Vertex(*vertex), cx.context)?;
            if !is_told && cx.exhausted() {
                verdicts.truncate(place + 1);
                break;
            }
        }
        Ok(())
    }
}

/// Whether a node is a condition on what rows are at, or made of nothing else.
fn is_condition(node: &Node) -> bool {
    matches!(node, Node::Has { .. } | Node::HasProperty { .. }) || is_junction(node)
}

/// Adds the operator of a filter node.
pub fn build(builder: &mut Builder, node: &Node, chain: &mut Chain) -> Result<()> {
    let name = NodeName::from(node);
    match node {
        node if is_condition(node) => {
            let conditions = Conditions::of_tests([node])?;
            builder.operator(chain, &name, false, move || {
                KeepRows::new(HasTest { conditions: conditions.clone(), vertices: Vec::new() })
            });
        }
        Node::Is { predicate } => test(builder, &name, predicate, chain)?,
        Node::Collection { quantifier, predicate } => {
            let (quantifier, predicate) = (*quantifier, predicate.compile()?);
            builder.operator(chain, &name, false, move || {
                let predicate = predicate.clone();
                KeepRows::new(move |row: &Traverser, cx: &mut Cx<'_>| {
                    holds(quantifier, &predicate, &row.value, cx.context)
                })
            });
        }
        _ => return Err(QueryError::invalid(format!("{node} is not a filter"))),
    }
    Ok(())
}

fn test(builder: &mut Builder, name: &NodeName, predicate: &P, chain: &mut Chain) -> Result<()> {
    let predicate = predicate.compile()?;
    builder.operator(chain, name, false, move || {
        let predicate = predicate.clone();
        KeepRows::new(move |row: &Traverser, cx: &mut Cx<'_>| Ok(predicate.test(&row.value, &*cx.context)?))
    });
    Ok(())
}
