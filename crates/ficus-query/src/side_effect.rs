//! Side effects: values under keys that steps of one query add to and `cap()` reads.

use std::cell::{Ref, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use ficus_dataflow::Remains;
use ficus_model::{BulkSet, EdgeId, Operator, Shared, Value, VertexId};
use hashbrown::HashSet;
use indexmap::IndexMap;

use crate::budget::{Held, MemoryAccount};
use crate::context::{QueryContext, Result};
use crate::error::QueryError;
use crate::growing;
use crate::logical::{Name, Node, Traversal, visit};
use crate::memberships::KnownMembers;
use crate::operators::group::Groups;
use crate::operators::paths::TreeRemains;
use crate::vertex_set::VertexSet;

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
    /// What is known of a bulk set.
    stored: RefCell<Stored>,
}

/// The stored elements, and other members, at the front of a bulk set.
#[derive(Debug, Default)]
struct Stored {
    /// Where that set is.
    place: usize,
    /// How many of its values were seen to be stored elements.
    known: usize,
    /// The vertices among them. Executors that help share it, once nothing changes any more.
    vertices: Arc<VertexSet>,
    /// Where its members are, once a value was looked up that the vertices do not tell of.
    members: Option<Box<KnownMembers>>,
}

impl Stored {
    /// What executors that help may know of it.
    fn shared(&self) -> Stored {
        Stored { place: self.place, known: self.known, vertices: self.vertices.clone(), members: None }
    }
}

impl SideEffect {
    fn new(value: Value, reducer: Option<Operator>) -> SideEffect {
        SideEffect { value, reducer, groups: None, stored: RefCell::default() }
    }

    /// The vertices in the set, if all its values are stored elements, of which each has one form. Looks at those that are new since the
    /// last time only: sets under `aggregate` grow and never shrink.
    ///
    /// Errors: `Budget` or `ServerMemory`.
    fn stored_only(&self, set: &Shared<BulkSet>, memory: &MemoryAccount) -> Result<Option<Ref<'_, VertexSet>>> {
        let mut stored = self.stored.borrow_mut();
        let place = Shared::place(set);
        if stored.place != place || stored.known > set.counts.len() {
            *stored = Stored { place, ..Stored::default() };
        }
        if stored.known < set.counts.len() {
            if Arc::get_mut(&mut stored.vertices).is_none() {
                *stored = Stored { place, ..Stored::default() };
            }
            let Stored { known, vertices, .. } = &mut *stored;
            let vertices = Arc::get_mut(vertices).expect("nobody else has it");
            for value in set.counts.keys().skip(*known) {
                match value {
                    Value::Vertex(vertex) => {
                        vertices.insert(*vertex, memory)?;
                    }
                    Value::Edge(_) => {}
                    _ => return Ok(None),
                }
                *known += 1;
            }
        }
        drop(stored);
        Ok(Some(Ref::map(self.stored.borrow(), |stored| &*stored.vertices)))
    }
}

impl SideEffects {
    /// What another executor of the same query reads: the values as they are. Whoever builds the plan sees to it that no step changes them any
    /// more; the query's own holds their memory.
    pub fn settled(&self) -> SideEffects {
        let copy = |entry: &SideEffect| SideEffect {
            value: entry.value.clone(),
            reducer: entry.reducer,
            groups: None,
            stored: RefCell::new(entry.stored.borrow().shared()),
        };
        let entries = self.entries.iter().map(|(key, entry)| (key.clone(), copy(entry))).collect();
        SideEffects { entries, version: self.version, ..SideEffects::default() }
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
                self.register(key, || Value::BulkSet(Shared::default()), Some(Operator::AddAll))
            }
            Node::Group { side_effect: Some(key), .. } | Node::GroupCount { side_effect: Some(key), .. } => {
                self.register(key, || Value::Map(Shared::default()), None);
            }
            Node::Tree { side_effect: Some(key), .. } => self.register(key, || Value::Tree(Shared::default()), None),
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

    /// Whether a value is in the bulk set under a key, in about constant time; `None` if there is none.
    ///
    /// Errors: `Budget` or `ServerMemory` if there is no room for what is known of its members; that of the query if it has to stop.
    pub fn holds(&self, key: &str, element: &Value, context: &QueryContext) -> Result<Option<bool>> {
        let Some(entry) = self.entries.get(key).filter(|entry| entry.groups.is_none()) else { return Ok(None) };
        let Value::BulkSet(set) = &entry.value else { return Ok(None) };
        let told = match element {
            Value::Vertex(vertex) => {
                entry.stored_only(set, &context.memory)?.map(|vertices| vertices.contains(*vertex))
            }
            Value::Edge(_) => entry.stored_only(set, &context.memory)?.map(|_| set.counts.contains_key(element)),
            _ => None,
        };
        if told.is_some() {
            return Ok(told);
        }
        let mut stored = entry.stored.borrow_mut();
        if stored.place != Shared::place(set) {
            *stored = Stored { place: Shared::place(set), ..Stored::default() };
        }
        stored.members.get_or_insert_default().contains(&entry.value, element, context).map(Some)
    }

    /// The vertices of the set under a key, if it has stored elements only and there is room for them.
    pub fn vertex_set(&self, key: &str, memory: &MemoryAccount) -> Option<Ref<'_, VertexSet>> {
        let entry = self.entries.get(key).filter(|entry| entry.groups.is_none())?;
        match &entry.value {
            // Who asks of each one by one is told the error.
            Value::BulkSet(set) => entry.stored_only(set, memory).ok()?,
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

    /// As [`ficus_dataflow::Operator::surrender`]: groups under construction and trees; the rest is freed by who drops it, who keeps what is returned
    /// until then, since all hold it together.
    pub fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) -> Arc<Held> {
        let held = Arc::new(std::mem::take(&mut self.held));
        let mut parts: Vec<Box<dyn Remains>> = Vec::new();
        for entry in self.entries.values_mut() {
            entry.groups.iter_mut().for_each(|groups| groups.surrender(&mut parts));
            entry.value = match std::mem::replace(&mut entry.value, Value::Null) {
                Value::Tree(tree) => match Shared::try_unwrap(tree) {
                    Ok(tree) => {
                        parts.push(Box::new(TreeRemains::of(tree, held.bytes())));
                        Value::Null
                    }
                    Err(tree) => Value::Tree(tree),
                },
                value => value,
            };
        }
        remains.extend(parts.into_iter().map(|part| growing::kept(part, held.clone())));
        held
    }

    /// Sets the value.
    pub fn put(&mut self, key: &Name, value: Value) {
        self.register(key, || Value::Null, None);
        self.version += 1;
        if let Some(entry) = self.entries.get_mut(key) {
            entry.value = value;
            // `aggregate` puts back what it took and added to; other changes may drop values.
            if entry.reducer != Some(Operator::AddAll) {
                *entry.stored.get_mut() = Stored::default();
            }
        }
    }

    /// Combines `value` with what is there.
    pub fn add(&mut self, key: &Name, value: Value) -> Result<()> {
        let reducer = self.reducer(key).unwrap_or(Operator::AddAll);
        let combined = match self.take(key) {
            None => value,
            // Nothing has to be copied.
            Some(Value::BulkSet(none))
                if reducer == Operator::AddAll && none.counts.is_empty() && matches!(value, Value::BulkSet(_)) =>
            {
                value
            }
            Some(so_far) => reducer.apply(so_far, &value)?,
        };
        self.put(key, combined);
        Ok(())
    }

    /// Adds objects, each as often as it came, to the set under a key in place; false, and nothing is added, if there is something else or they
    /// are combined in another way.
    ///
    /// Errors: `Budget` or `ServerMemory` if there is no room for them.
    pub fn add_counts<'v>(
        &mut self,
        key: &str,
        counts: impl Iterator<Item = (&'v Value, u64)>,
        memory: &MemoryAccount,
    ) -> Result<bool> {
        /// An entry of the set: object and number, hash, and place in the index.
        const ENTRY_BYTES: usize = size_of::<(Value, u64)>() + 32;
        let Some(entry) = self.entries.get_mut(key) else { return Ok(false) };
        let is_added = entry.groups.is_none() && entry.reducer.is_none_or(|reducer| reducer == Operator::AddAll);
        let (Value::BulkSet(set), true) = (&mut entry.value, is_added) else { return Ok(false) };
        self.version += 1;
        let set = Shared::make_mut(set);
        for (value, count) in counts {
            match set.counts.get_mut(value) {
                Some(known) => *known = known.saturating_add(count),
                None => {
                    memory.fits(value)?;
                    self.held.add(memory, ENTRY_BYTES + value.size_hint_bytes() - size_of::<Value>())?;
                    set.counts.insert(value.clone(), count);
                }
            }
        }
        Ok(true)
    }

    /// Whether groups are under construction.
    pub fn has_groups(&self, key: &str) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.groups.is_some())
    }

    /// Takes the groups under construction out; put them back with [`SideEffects::put_groups`].
    ///
    /// Errors: `Invalid` if there is something else.
    pub fn take_groups(&mut self, key: &str) -> Result<Groups> {
        self.version += 1;
        let Some(entry) = self.entries.get_mut(key) else { return Ok(Groups::default()) };
        match (entry.groups.take(), &entry.value) {
            (Some(groups), _) => Ok(groups),
            // Another step has ended its part of the same side effect.
            (None, Value::Map(map)) => Ok(Groups::of(map)),
            (None, _) => Err(QueryError::invalid(format!("the side effect {key} is not a map"))),
        }
    }

    /// Puts groups under construction back.
    pub fn put_groups(&mut self, key: &Name, groups: Groups) {
        self.register(key, || Value::Map(Shared::default()), None);
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
