//! Conditions on the vertices and edges of a walk of several hops: what can be told of an element by itself.
//!
//! They are tested in two places with one meaning: by a query that searches by itself, on what it reaches, and for a pass that
//! many queries share, on all elements of a state at once. A text predicate fails on what is no text; in a pass that would be an error for
//! queries that never come there, so such a condition is then left to each query ([`ficus_analytics::Filter`]).

use std::ops::ControlFlow;
use std::sync::Arc;

use ficus_analytics::{EdgeFilter, Filter, VertexFilter};
use ficus_model::matching::CompiledPredicate;
use ficus_model::resolver::EdgeEnds;
use ficus_model::{EdgeId, ElementResolver, KeyId, LabelId, ModelError, P, Value, VertexId};
use ficus_storage::Snapshot;

use crate::logical::{HasContainer, HasKey, LabelledNode, Name, Node, PropertyForm, Traversal};
use crate::operators::has::compares_text;

/// A condition on one element, ready for any state.
#[derive(Clone, Debug)]
pub struct WalkFilter {
    condition: Arc<Condition>,
    /// The nodes it was made of, whole: two conditions with one text are one.
    text: Arc<str>,
}

#[derive(Debug)]
enum Condition {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
    Label(CompiledPredicate),
    /// Ids are compared as texts if the flag says so.
    Id(CompiledPredicate, bool),
    /// One of the values under a key.
    Value(Name, CompiledPredicate),
    /// Whether there is a value under a key.
    HasKey(Name),
}

impl WalkFilter {
    /// The condition that all of these nodes are; `None` if one looks at more than an element by itself, or is not well formed.
    pub fn of(nodes: &Traversal) -> Option<WalkFilter> {
        let condition = Arc::new(all(&nodes.nodes)?);
        Some(WalkFilter { condition, text: format!("{:?}", nodes.nodes).into() })
    }

    /// The test on elements of a state.
    pub fn on(&self, snapshot: &Snapshot) -> StateFilter {
        StateFilter(resolve(&self.condition, snapshot))
    }

    /// For passes, on vertices.
    pub fn of_vertices(&self) -> VertexFilter {
        self.shared()
    }

    /// For projections, on edges.
    pub fn of_edges(&self) -> EdgeFilter {
        self.shared()
    }

    fn shared<E: Element + 'static>(&self) -> Filter<E> {
        let own = self.clone();
        Filter::new(self.text.clone(), move |snapshot| {
            let mut filter = own.on(&snapshot);
            Box::new(move |element| filter.test(&snapshot, element).ok())
        })
    }
}

/// Whether a node is a condition that [`WalkFilter`] knows.
pub fn is_condition(own: &LabelledNode) -> bool {
    of_node(own).is_some()
}

fn all(nodes: &[LabelledNode]) -> Option<Condition> {
    nodes.iter().map(of_node).collect::<Option<Vec<_>>>().map(Condition::All)
}

fn of_node(own: &LabelledNode) -> Option<Condition> {
    if !own.labels.is_empty() {
        return None;
    }
    let each = |traversals: &[Arc<Traversal>]| -> Option<Vec<Condition>> {
        traversals.iter().map(|child| of_question(child)).collect()
    };
    match &own.node {
        Node::Has { containers } => containers.iter().map(of_container).collect::<Option<_>>().map(Condition::All),
        Node::HasProperty { key, negated } => {
            let has = Condition::HasKey(key.clone());
            Some(if *negated { Condition::Not(Box::new(has)) } else { has })
        }
        Node::Filter { traversal } => of_question(traversal),
        Node::Not { traversal } => Some(Condition::Not(Box::new(of_question(traversal)?))),
        Node::And { traversals } => Some(Condition::All(each(traversals)?)),
        Node::Or { traversals } => Some(Condition::Any(each(traversals)?)),
        Node::Identity => Some(Condition::All(Vec::new())),
        _ => None,
    }
}

/// Whether a sub-query yields anything: conditions, or values and a predicate on them.
fn of_question(traversal: &Traversal) -> Option<Condition> {
    let values = |own: &LabelledNode| match &own.node {
        Node::Properties { keys, form: PropertyForm::Value } if own.labels.is_empty() && !keys.is_empty() => {
            Some(keys.clone())
        }
        _ => None,
    };
    match traversal.nodes.as_slice() {
        [first] if values(first).is_some() => {
            Some(Condition::Any(values(first)?.into_iter().map(Condition::HasKey).collect()))
        }
        [first, LabelledNode { node: Node::Is { predicate }, labels }] if labels.is_empty() => {
            let keys = values(first)?.into_iter();
            let value = |key| Some(Condition::Value(key, predicate.compile().ok()?));
            keys.map(value).collect::<Option<_>>().map(Condition::Any)
        }
        nodes => all(nodes),
    }
}

fn of_container(container: &HasContainer) -> Option<Condition> {
    let predicate: &P = &container.predicate;
    let compiled = predicate.compile().ok()?;
    match &container.key {
        HasKey::Label => Some(Condition::Label(compiled)),
        // A string finds the id that is written so.
        HasKey::Id => Some(Condition::Id(compiled, compares_text(predicate))),
        HasKey::Key(key) => Some(Condition::Value(key.clone(), compiled)),
        HasKey::PropertyKey | HasKey::PropertyValue => None,
    }
}

/// A condition on the elements of one state.
pub struct StateFilter(Resolved);

enum Resolved {
    All(Vec<Resolved>),
    Any(Vec<Resolved>),
    Not(Box<Resolved>),
    /// What was found of labels is remembered by their number.
    Label(CompiledPredicate, Vec<Option<bool>>),
    Id(CompiledPredicate, bool),
    /// `None`: no element of the state has such a key.
    Value(Option<KeyId>, CompiledPredicate),
    HasKey(Option<KeyId>),
}

fn resolve(condition: &Condition, snapshot: &Snapshot) -> Resolved {
    let each = |parts: &[Condition]| parts.iter().map(|part| resolve(part, snapshot)).collect();
    match condition {
        Condition::All(parts) => Resolved::All(each(parts)),
        Condition::Any(parts) => Resolved::Any(each(parts)),
        Condition::Not(part) => Resolved::Not(Box::new(resolve(part, snapshot))),
        Condition::Label(predicate) => Resolved::Label(predicate.clone(), Vec::new()),
        Condition::Id(predicate, by_text) => Resolved::Id(predicate.clone(), *by_text),
        Condition::Value(key, predicate) => Resolved::Value(snapshot.key_id(key), predicate.clone()),
        Condition::HasKey(key) => Resolved::HasKey(snapshot.key_id(key)),
    }
}

impl StateFilter {
    /// Whether an element of the state fulfils the condition.
    ///
    /// Errors: those of text predicates on what is no text.
    #[inline]
    pub fn test<E: Element>(&mut self, snapshot: &Snapshot, element: E) -> Result<bool, ModelError> {
        test(&mut self.0, snapshot, element)
    }
}

fn test<E: Element>(condition: &mut Resolved, snapshot: &Snapshot, element: E) -> Result<bool, ModelError> {
    let resolver = &Names(snapshot);
    match condition {
        Resolved::All(parts) => {
            for part in parts {
                if !test(part, snapshot, element)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        Resolved::Any(parts) => {
            for part in parts {
                if test(part, snapshot, element)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Resolved::Not(part) => Ok(!test(part, snapshot, element)?),
        Resolved::Label(predicate, known) => {
            let Some(label) = element.label(snapshot) else { return Ok(false) };
            let number = label.0 as usize;
            if let Some(Some(found)) = known.get(number) {
                return Ok(*found);
            }
            let found = predicate.test(&Value::String(snapshot.label_name(label)), resolver)?;
            known.resize(known.len().max(number + 1), None);
            known[number] = Some(found);
            Ok(found)
        }
        Resolved::Id(predicate, by_text) => match element.id(snapshot) {
            Some(id) if *by_text => {
                predicate.test(&Value::String(Arc::from(ficus_model::text::text(&id, resolver))), resolver)
            }
            Some(id) => predicate.test(&id, resolver),
            None => Ok(false),
        },
        Resolved::Value(None, _) | Resolved::HasKey(None) => Ok(false),
        Resolved::Value(Some(key), predicate) => {
            // Of several values one that holds is enough.
            let mut found = Ok(false);
            element.visit_values(snapshot, *key, |value| {
                found = predicate.test(&value, resolver);
                if matches!(found, Ok(false)) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            found
        }
        Resolved::HasKey(Some(key)) => {
            let mut found = false;
            element.visit_values(snapshot, *key, |_| {
                found = true;
                ControlFlow::Break(())
            });
            Ok(found)
        }
    }
}

/// What conditions look at.
pub trait Element: Copy {
    /// Its label, if it is there.
    fn label(self, snapshot: &Snapshot) -> Option<LabelId>;
    /// Its user id, if it is there.
    fn id(self, snapshot: &Snapshot) -> Option<Value>;
    /// Its values under a key, until told to stop.
    fn visit_values(self, snapshot: &Snapshot, key: KeyId, visit: impl FnMut(Value) -> ControlFlow<()>);
}

impl Element for VertexId {
    fn label(self, snapshot: &Snapshot) -> Option<LabelId> {
        snapshot.vertex_label(self)
    }

    fn id(self, snapshot: &Snapshot) -> Option<Value> {
        snapshot.vertex_id(self)
    }

    fn visit_values(self, snapshot: &Snapshot, key: KeyId, visit: impl FnMut(Value) -> ControlFlow<()>) {
        snapshot.visit_vertex_values(self, key, visit);
    }
}

impl Element for EdgeId {
    fn label(self, snapshot: &Snapshot) -> Option<LabelId> {
        snapshot.edge(self).map(|record| record.label)
    }

    fn id(self, snapshot: &Snapshot) -> Option<Value> {
        snapshot.edge_id(self)
    }

    fn visit_values(self, snapshot: &Snapshot, key: KeyId, mut visit: impl FnMut(Value) -> ControlFlow<()>) {
        if let Some(value) = snapshot.edge_value(self, key) {
            let _ = visit(value);
        }
    }
}

/// The names that elements have in a state.
struct Names<'a>(&'a Snapshot);

impl ElementResolver for Names<'_> {
    fn vertex_id(&self, vertex: VertexId) -> Value {
        self.0.vertex_id(vertex).unwrap_or(Value::Null)
    }

    fn edge_id(&self, edge: EdgeId) -> Value {
        self.0.edge_id(edge).unwrap_or(Value::Null)
    }

    fn edge_ends(&self, edge: EdgeId) -> Option<EdgeEnds> {
        let record = self.0.edge(edge)?;
        Some(EdgeEnds {
            label: self.0.label_name(record.label),
            out_id: self.vertex_id(record.out),
            in_id: self.vertex_id(record.in_),
        })
    }

    fn vertex_label(&self, vertex: VertexId) -> Option<Arc<str>> {
        self.0.vertex_label(vertex).map(|label| self.0.label_name(label))
    }
}
