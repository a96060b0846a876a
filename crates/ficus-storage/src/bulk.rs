//! Loading much data at once: batches that go through the log like any commit, but are not waited for.
//!
//! While one batch is applied, the next is being made and encoded. Readers see the load in large steps; it is durable when
//! [`BulkLoader::finish`] returns. A batch conflicts with nothing it did not touch, so a live server keeps answering and
//! writing. After a crash in the middle a prefix of the batches is there.
//!
//! A caller that notes how far it has come ends batches itself ([`BulkLoader::send_noting`]), and asks for the outcome of one
//! before it sends the next: what is noted is then never true of a batch behind one that was refused.

use std::collections::{HashMap, HashSet};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};

use ficus_model::{Cardinality, EdgeId, Value, VertexId};

use crate::index::ElementKind;
use crate::mutation::{Body, Fact, GraphWrite, Mutation, NewProperty, RecordWords, WordRef};
use crate::transaction::CommitCallback;
use crate::value_key::{check_id, check_property_value, id_integer, spelled_integer};
use crate::words::Words;
use crate::{Graph, Snapshot, StoreError};

/// Changes in one batch: enough that the cost of a record is nothing, few enough that memory stays small.
const BATCH_MUTATIONS: usize = 4096;

/// Elements after which the loader waits for what it sent and reads ids from the graph instead of its own memory.
const REFRESH_ELEMENTS: u64 = 1 << 20;

/// A property of a vertex that is loaded.
#[derive(Clone, Debug)]
pub struct BulkProperty<'a> {
    /// The key.
    pub key: &'a str,
    /// The value.
    pub value: Value,
    /// What happens if the key is there already.
    pub cardinality: Cardinality,
    /// Meta-properties.
    pub meta: Vec<(&'a str, Value)>,
}

impl<'a> BulkProperty<'a> {
    /// A property that is alone under its key.
    pub fn single(key: &'a str, value: Value) -> BulkProperty<'a> {
        BulkProperty { key, value, cardinality: Cardinality::Single, meta: Vec::new() }
    }

    /// One of several properties under a key.
    pub fn list(key: &'a str, value: Value) -> BulkProperty<'a> {
        BulkProperty { key, value, cardinality: Cardinality::List, meta: Vec::new() }
    }
}

/// What a bulk load did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BulkReport {
    /// Vertices added.
    pub vertices: u64,
    /// Edges added.
    pub edges: u64,
}

/// A user id as a key of a hash map: integers of every width are one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum IdKey {
    Integer(i64),
    Other(Value),
}

impl IdKey {
    fn of(id: &Value) -> IdKey {
        id_integer(id).map_or_else(|| IdKey::Other(id.clone()), IdKey::Integer)
    }
}

/// Loads vertices and edges into one graph.
///
/// Errors of the caller (a taken id, a value that cannot be stored) refuse one element and change nothing; any other error
/// ends the load, and every later call gives it again.
pub struct BulkLoader {
    graph: Arc<Graph>,
    /// What the graph holds, except for the elements below.
    seen: Snapshot,
    recent_vertices: HashMap<IdKey, VertexId>,
    recent_edges: HashSet<IdKey>,
    recent_elements: u64,
    words: RecordWords,
    mutations: Vec<Mutation>,
    next_user_id: u64,
    /// The first error of a batch. Rank: nothing is locked inside.
    failure: Arc<Mutex<Option<StoreError>>>,
    report: BulkReport,
    /// True if batches end where their caller notes something.
    ends_with_notes: bool,
    /// Tells what became of the last batch that was sent with a note.
    outcome: Option<Receiver<Result<crate::CommitTs, StoreError>>>,
}

impl BulkLoader {
    pub(crate) fn new(graph: Arc<Graph>) -> BulkLoader {
        BulkLoader {
            seen: graph.snapshot(),
            graph,
            recent_vertices: HashMap::new(),
            recent_edges: HashSet::new(),
            recent_elements: 0,
            words: RecordWords::default(),
            mutations: Vec::with_capacity(BATCH_MUTATIONS),
            next_user_id: 0,
            failure: Arc::default(),
            report: BulkReport::default(),
            ends_with_notes: false,
            outcome: None,
        }
    }

    /// From now on a batch ends only where [`BulkLoader::send_noting`] is called, so that what is noted is true of what is there.
    pub fn end_batches_with_notes(&mut self) {
        self.ends_with_notes = true;
    }

    /// Whether what was added since the last batch is enough for one.
    pub fn is_full(&self) -> bool {
        self.mutations.len() >= BATCH_MUTATIONS
    }

    /// Whether it is time for a [`BulkLoader::flush`], so that memory stays small.
    pub fn remembers_much(&self) -> bool {
        self.recent_elements >= REFRESH_ELEMENTS
    }

    /// Sends what was added as a batch, with a note about all until now: it becomes durable with it, or not at all, and is
    /// found by [`Graph::noted`]. A later note of the same name replaces it. [`BulkLoader::outcome`] of the batch before
    /// comes first.
    pub fn send_noting(&mut self, name: &str, content: &[u8]) {
        let (sender, receiver) = channel();
        self.outcome = Some(receiver);
        let facts = vec![(name.into(), content.into())];
        // Nobody listens if the load was given up.
        self.send_with(facts, Box::new(move |outcome| drop(sender.send(outcome))));
    }

    /// Waits until the batch that was sent with the last note has met the graph, not until it is durable. A batch that was
    /// refused has changed nothing, and neither has its note.
    pub fn outcome(&mut self) -> Result<(), StoreError> {
        match self.outcome.take().map(|outcome| outcome.recv()) {
            None | Some(Ok(Ok(_))) => Ok(()),
            Some(Ok(Err(error))) => Err(error),
            Some(Err(_)) => Err(StoreError::Closed),
        }
    }

    /// Drops what was added since the last batch and looks at the graph as it is when all batches have met it. To be called
    /// when a batch was refused, before its elements are added again.
    pub fn start_over(&mut self) -> Result<(), StoreError> {
        self.mutations.clear();
        self.words = RecordWords::default();
        self.outcome = None;
        self.flush()
    }

    /// Finds a vertex by its user id, as [`Snapshot::find_vertex`] does; those that were just added are found too.
    pub fn find_vertex(&self, id: &Value) -> Option<VertexId> {
        let exactly = |id: &Value| {
            let recent = self.recent_vertices.get(&IdKey::of(id)).copied();
            recent.or_else(|| self.seen.root.vertex_with_id(id))
        };
        exactly(id).or_else(|| exactly(&spelled_integer(id)?))
    }

    /// Adds a vertex; without an id it gets the next free `Long`.
    pub fn add_vertex(
        &mut self,
        label: &str,
        id: Option<Value>,
        properties: Vec<BulkProperty<'_>>,
    ) -> Result<VertexId, StoreError> {
        check_word("vertex label", label)?;
        for property in &properties {
            check_word("property key", property.key)?;
            check_property_value(property.key, &property.value)?;
            for (key, value) in &property.meta {
                check_word("property key", key)?;
                check_property_value(key, value)?;
            }
        }
        let declared = self.seen.root.type_named(ElementKind::Vertex, label);
        declared.as_ref().map_or(Ok(()), |declared| declared.check_alive())?;
        if let Some(id) = &id {
            check_id(id, "vertex")?;
            if self.recent_vertices.contains_key(&IdKey::of(id)) || self.seen.root.vertex_with_id(id).is_some() {
                return Err(StoreError::DuplicateVertex { id: id.clone() });
            }
        }
        let reservations = &self.graph.published.reservations;
        let vertex = reservations.vertex()?;
        let mut made: Vec<NewProperty> = Vec::with_capacity(properties.len());
        for property in properties {
            let key = self.words.position(property.key).0;
            match property.cardinality {
                Cardinality::Single => made.retain(|other| other.key != key),
                Cardinality::Set if made.iter().any(|other| other.key == key && other.value == property.value) => {
                    continue;
                }
                Cardinality::Set | Cardinality::List => {}
            }
            let meta = property.meta.into_iter().map(|(key, value)| (self.words.position(key).0, value)).collect();
            let value = match &declared {
                Some(declared) => declared.take_value(property.key, property.value)?,
                None => property.value,
            };
            made.push(NewProperty { id: reservations.property()?, key, value, meta });
        }
        // Equal values in unique indexes are found where the batch meets the graph.
        if let Some(declared) = &declared {
            for (key, default) in declared.defaults() {
                let key = self.words.position(key).0;
                if made.iter().all(|property| property.key != key) {
                    let (id, value) = (reservations.property()?, default.clone());
                    made.push(NewProperty { id, key, value, meta: Vec::new() });
                }
            }
            declared
                .check_counts(&|key| made.iter().filter(|property| **self.words.text(property.key) == *key).count())?;
        }
        let id = match id {
            Some(id) => id,
            None => self.make_user_id()?,
        };
        self.recent_vertices.insert(IdKey::of(&id), vertex);
        let label = self.words.position(label).0;
        self.push(Mutation::AddVertex { vertex, label, id, properties: made })?;
        self.report.vertices += 1;
        Ok(vertex)
    }

    /// Adds an edge between two vertices that exist; without an id it gets the next free `Long`.
    pub fn add_edge(
        &mut self,
        label: &str,
        out: VertexId,
        in_: VertexId,
        id: Option<Value>,
        properties: Vec<(&str, Value)>,
    ) -> Result<EdgeId, StoreError> {
        check_word("edge label", label)?;
        for (key, value) in &properties {
            check_word("property key", key)?;
            check_property_value(key, value)?;
        }
        let declared = self.seen.root.type_named(ElementKind::Edge, label);
        declared.as_ref().map_or(Ok(()), |declared| declared.check_alive())?;
        let id = match id {
            Some(id) => {
                check_id(&id, "edge")?;
                let taken = self.seen.root.edge_with_id(&id).is_some();
                if taken || !self.recent_edges.insert(IdKey::of(&id)) {
                    return Err(StoreError::DuplicateEdge { id });
                }
                id
            }
            None => {
                let id = self.make_user_id()?;
                // An edge with this id of its own may follow.
                self.recent_edges.insert(IdKey::of(&id));
                id
            }
        };
        let edge = self.graph.published.reservations.edge(self.seen.root.layout, out)?;
        let label = self.words.position(label).0;
        let mut made: Vec<(WordRef, Value)> = Vec::with_capacity(properties.len());
        for (text, value) in properties {
            let key = self.words.position(text).0;
            made.retain(|(other, _)| *other != key);
            let value = match &declared {
                Some(declared) => declared.take_value(text, value)?,
                None => value,
            };
            made.push((key, value));
        }
        if let Some(declared) = &declared {
            for (key, default) in declared.defaults() {
                let key = self.words.position(key).0;
                if made.iter().all(|(other, _)| *other != key) {
                    made.push((key, default.clone()));
                }
            }
            declared.check_counts(&|key| made.iter().filter(|(own, _)| **self.words.text(*own) == *key).count())?;
        }
        self.push(Mutation::AddEdge { edge, label, out, in_, id, properties: made })?;
        self.report.edges += 1;
        Ok(edge)
    }

    /// Sets or adds a property of a vertex that exists.
    pub fn set_vertex_property(
        &mut self,
        vertex: VertexId,
        key: &str,
        value: Value,
        cardinality: Cardinality,
    ) -> Result<(), StoreError> {
        check_word("property key", key)?;
        check_property_value(key, &value)?;
        let value = self.seen.root.take_value(ElementKind::Vertex, vertex.0, key, value, cardinality)?;
        let property = self.graph.published.reservations.property()?;
        let key = self.words.position(key).0;
        self.push(Mutation::SetVertexProperty { vertex, property, key, value, cardinality })
    }

    /// Waits until all that was added is durable and visible.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        self.send();
        let flushed = self.graph.queue.barrier().map(|_| ());
        self.check_failure()?;
        flushed?;
        self.seen = self.graph.snapshot();
        self.recent_vertices.clear();
        self.recent_edges.clear();
        self.recent_elements = 0;
        Ok(())
    }

    /// Ends the load: all that was added is durable and visible, or the error says why not.
    pub fn finish(mut self) -> Result<BulkReport, StoreError> {
        self.flush()?;
        Ok(self.report)
    }

    /// Ends the load early: waits until all that was sent is visible, and drops what was added since. Another load that begins
    /// behind this finds what the notes say.
    pub fn abandon(mut self) -> Result<(), StoreError> {
        self.mutations.clear();
        self.graph.queue.barrier().map(|_| ())
    }

    fn push(&mut self, mutation: Mutation) -> Result<(), StoreError> {
        self.mutations.push(mutation);
        self.recent_elements += 1;
        if self.ends_with_notes { Ok(()) } else { self.send_if_large() }
    }

    fn send_if_large(&mut self) -> Result<(), StoreError> {
        if self.is_full() {
            self.send();
            self.check_failure()?;
        }
        if self.remembers_much() {
            self.flush()?;
        }
        Ok(())
    }

    fn send(&mut self) {
        if self.mutations.is_empty() {
            return;
        }
        let failure = self.failure.clone();
        let remember = move |outcome: Result<crate::CommitTs, StoreError>| {
            if let Err(error) = outcome {
                failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
        };
        self.send_with(Vec::new(), Box::new(remember));
    }

    fn send_with(&mut self, facts: Vec<Fact>, callback: CommitCallback) {
        let write = GraphWrite {
            graph: self.graph.number,
            snapshot_ts: None,
            has_old_fingerprints: false,
            reads: Vec::new(),
            next_user_id: self.next_user_id,
            words: std::mem::take(&mut self.words).into_list(),
            mutations: std::mem::replace(&mut self.mutations, Vec::with_capacity(BATCH_MUTATIONS)),
        };
        self.graph.queue.commit_later(Body::Write(write), facts, callback);
    }

    fn check_failure(&self) -> Result<(), StoreError> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
        failure.map_or(Ok(()), Err)
    }

    /// The next number that neither a vertex nor an edge has as its user id.
    fn make_user_id(&mut self) -> Result<Value, StoreError> {
        loop {
            let number = self.graph.published.reservations.user_id()?;
            let id = Value::Long(number as i64);
            let key = IdKey::Integer(number as i64);
            let recent = self.recent_vertices.contains_key(&key) || self.recent_edges.contains(&key);
            let root = &self.seen.root;
            if !recent && root.vertex_with_id(&id).is_none() && root.edge_with_id(&id).is_none() {
                self.next_user_id = self.next_user_id.max(number + 1);
                return Ok(id);
            }
        }
    }
}

impl std::fmt::Debug for BulkLoader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BulkLoader").field("graph", &self.graph).field("report", &self.report).finish_non_exhaustive()
    }
}

/// The number of words is bounded by the resolver, where a batch meets the graph.
fn check_word(what: &'static str, word: &str) -> Result<(), StoreError> {
    Words::check_length(what, word)
}
