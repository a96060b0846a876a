//! Side effects: values under keys that steps of one query add to and `cap()` reads.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ficus_model::{BulkSet, EdgeId, Operator, Value, VertexId};
use indexmap::IndexMap;

use crate::budget::Held;
use crate::context::Result;
use crate::logical::{Name, Node, Traversal, visit};
use crate::operators::group::Groups;

/// The side effects of a query, in the order they were first registered.
#[derive(Debug, Default)]
pub struct SideEffects {
    entries: IndexMap<Name, SideEffect>,
    /// What they hold, as long as the query lasts.
    pub held: Held,
    /// What subgraphs hold already, by key.
    contained: HashMap<Name, Contained>,
    /// How often they may have changed.
    version: u64,
}

/// The elements of a subgraph.
#[derive(Debug, Default)]
pub struct Contained {
    /// Its vertices.
    pub vertices: HashSet<VertexId>,
    /// Its edges.
    pub edges: HashSet<EdgeId>,
}

/// One side effect.
#[derive(Debug)]
struct SideEffect {
    /// What it holds now. Collections are changed in place while nothing else refers to them.
    value: Value,
    /// From `withSideEffect(key, value, reducer)`.
    reducer: Option<Operator>,
    /// Groups under construction, until `cap()` ends them.
    groups: Option<Groups>,
    /// How many values at the front of a bulk set were seen to be stored elements, and where that set is.
    stored: Cell<(usize, usize)>,
}

impl SideEffect {
    fn new(value: Value, reducer: Option<Operator>) -> SideEffect {
        SideEffect { value, reducer, groups: None, stored: Cell::default() }
    }

    /// Whether all values of the set are stored elements, of which each has one form. Looks at those that are new since the
    /// last time only: sets under `aggregate` grow and never shrink.
    fn holds_stored_only(&self, set: &Arc<BulkSet>) -> bool {
        let place = Arc::as_ptr(set) as usize;
        let (known_place, known) = self.stored.get();
        let from = if known_place == place && known <= set.counts.len() { known } else { 0 };
        let is_stored = |value: &Value| matches!(value, Value::Vertex(_) | Value::Edge(_));
        let all = set.counts.keys().skip(from).all(is_stored);
        if all {
            self.stored.set((place, set.counts.len()));
        }
        all
    }
}

impl SideEffects {
    /// Whether there are none, as in most queries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Registers a side effect with its first value, unless it is there.
    pub fn register(&mut self, key: &Name, value: impl FnOnce() -> Value, reducer: Option<Operator>) {
        if !self.entries.contains_key(key) {
            self.version += 1;
            self.entries.insert(key.clone(), SideEffect::new(value(), reducer));
        }
    }

    /// Registers the side effects of all steps of a traversal, so that reading one that nothing reached finds it empty.
    pub fn register_steps(&mut self, traversal: &Traversal) {
        visit::walk(traversal, &mut |node| match node {
            Node::Aggregate { key, .. } => {
                self.register(key, || Value::BulkSet(Arc::default()), Some(Operator::AddAll))
            }
            Node::Group { side_effect: Some(key), .. } | Node::GroupCount { side_effect: Some(key), .. } => {
                self.register(key, || Value::Map(Arc::default()), None);
            }
            Node::Tree { side_effect: Some(key), .. } => self.register(key, || Value::Tree(Arc::default()), None),
            Node::Subgraph { key } => self.register(key, || Value::Graph(Arc::default()), None),
            _ => {}
        });
    }

    /// A number that is another one whenever what a key holds may have changed.
    #[inline]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Whether there is a side effect under a key.
    #[inline]
    pub fn contains(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// The value under a key; of groups under construction, what can be told.
    pub fn get(&self, key: &str) -> Option<Value> {
        let entry = self.entries.get(key)?;
        Some(entry.groups.as_ref().map_or_else(|| entry.value.clone(), Groups::view))
    }

    /// Whether a stored element is in the set under a key, in constant time; `None` if that takes comparing it with the
    /// members one by one, or if there is no such key.
    pub fn holds(&self, key: &str, element: &Value) -> Option<bool> {
        let entry = self.entries.get(key)?;
        match (&entry.value, element) {
            (Value::BulkSet(set), Value::Vertex(_) | Value::Edge(_)) if entry.groups.is_none() => {
                entry.holds_stored_only(set).then(|| set.counts.contains_key(element))
            }
            _ => None,
        }
    }

    /// The members of the set under a key, if all of them are stored vertices and they are not more than `limit`.
    pub fn vertices(&self, key: &str, limit: usize) -> Option<Vec<VertexId>> {
        let vertex = |value: &Value| match value {
            Value::Vertex(vertex) => Some(*vertex),
            _ => None,
        };
        let entry = self.entries.get(key).filter(|entry| entry.groups.is_none())?;
        match &entry.value {
            Value::BulkSet(set) if set.counts.len() <= limit => set.counts.keys().map(vertex).collect(),
            Value::List(list) if list.len() <= limit => list.iter().map(vertex).collect(),
            _ => None,
        }
    }

    /// The operator that combines what is there with what is added.
    pub fn reducer(&self, key: &str) -> Option<Operator> {
        self.entries.get(key).and_then(|entry| entry.reducer)
    }

    /// Takes the value out, to change it in place; put it back with [`SideEffects::put`].
    pub fn take(&mut self, key: &str) -> Option<Value> {
        self.version += 1;
        self.entries.get_mut(key).map(|entry| std::mem::replace(&mut entry.value, Value::Null))
    }

    /// Sets the value.
    pub fn put(&mut self, key: &Name, value: Value) {
        self.register(key, || Value::Null, None);
        self.version += 1;
        if let Some(entry) = self.entries.get_mut(key) {
            entry.value = value;
            // `aggregate` puts back what it took and added to; other changes may drop values.
            if entry.reducer != Some(Operator::AddAll) {
                entry.stored.set((0, 0));
            }
        }
    }

    /// Combines `value` with what is there.
    pub fn add(&mut self, key: &Name, value: Value) -> Result<()> {
        let reducer = self.reducer(key).unwrap_or(Operator::AddAll);
        let combined = match self.take(key) {
            None => value,
            Some(so_far) => reducer.apply(so_far, &value)?,
        };
        self.put(key, combined);
        Ok(())
    }

    /// Whether groups are under construction.
    pub fn has_groups(&self, key: &str) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.groups.is_some())
    }

    /// Takes the groups under construction out; put them back with [`SideEffects::put_groups`].
    pub fn take_groups(&mut self, key: &str) -> Groups {
        self.version += 1;
        let Some(entry) = self.entries.get_mut(key) else { return Groups::default() };
        match (entry.groups.take(), &entry.value) {
            (Some(groups), _) => groups,
            // Another step has ended its part of the same side effect.
            (None, Value::Map(map)) => Groups::of(map),
            (None, _) => Groups::default(),
        }
    }

    /// Puts groups under construction back.
    pub fn put_groups(&mut self, key: &Name, groups: Groups) {
        self.register(key, || Value::Map(Arc::default()), None);
        self.version += 1;
        if let Some(entry) = self.entries.get_mut(key) {
            entry.groups = Some(groups);
        }
    }

    /// What the subgraph under a key holds already.
    pub fn contained(&mut self, key: &Name) -> &mut Contained {
        if !self.contained.contains_key(key) {
            self.contained.insert(key.clone(), Contained::default());
        }
        self.contained.get_mut(key).expect("inserted above")
    }

    /// All keys.
    pub fn keys(&self) -> impl Iterator<Item = &Name> {
        self.entries.keys()
    }
}
