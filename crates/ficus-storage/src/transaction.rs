//! One unit of work: a snapshot plus buffered writes.
//!
//! A write goes two ways: into the list of mutations that a commit sends to the log, and into a private version of
//! the graph's root, which shares all untouched pages with the committed one. Every read goes to that private root, so a
//! transaction sees its own writes without any merging. The commit thread applies the mutations again, to the newest root.
//!
//! New elements with a made id of no declared type depend on nothing that was written before, so they reach the private root when it is
//! read next. A transaction that adds them and reads no more never copies a page.
//!
//! What is read on the way is recorded ([`crate::read_set`]); the commit is refused if any of it has changed meanwhile.

use std::cell::{OnceCell, RefCell};
use std::ops::Deref;
use std::sync::Arc;

use ficus_model::{Cardinality, Direction, EdgeId, KeyId, LabelId, Value, VertexId};

use crate::beginning::Beginning;
use crate::index::ElementKind;
use crate::mutation::{Body, GraphWrite, Mutation, RecordWords, WordRef};
use crate::property_row::PROPERTY_ID_BITS;
use crate::read_set::{Element, ReadSet, Recorder, Standing};
use crate::root::GraphRoot;
use crate::schema::check_write;
use crate::tablet::Tablet;
use crate::value_key::{check_id, check_property_value};
use crate::words::Words;
use crate::{CommitTs, EdgeRecord, Graph, Protect, Snapshot, StoreError};

/// Told the outcome of an asynchronous commit, on the store's commit thread: must be quick and must not block.
pub type CommitCallback = Box<dyn FnOnce(Result<CommitTs, StoreError>) + Send>;

/// One unit of work: a snapshot plus buffered writes; all reads (through [`Snapshot`]) see its own writes.
///
/// Transactions that write are strictly serialisable: each commits as if it had run alone at the moment of its commit, or
/// with a conflict not at all. Dropping it is a rollback.
#[derive(Debug)]
pub struct Transaction {
    graph: Arc<Graph>,
    /// What it reads: its snapshot with all its writes. Empty while there is a `behind`.
    view: OnceCell<Snapshot>,
    /// The view without the newest additions.
    behind: RefCell<Option<Behind>>,
    /// What it began with, if the schema has to be held against it.
    base: Option<Arc<GraphRoot>>,
    writes: Option<Box<Writes>>,
    /// Since when it is under way. `None` if it may only read; then nothing is recorded.
    begun: Option<Arc<Beginning>>,
}

/// A state of a transaction that it can go back to. Holds the pages of that state, so that what is written next copies them once more.
#[derive(Debug)]
pub struct Savepoint {
    root: Arc<GraphRoot>,
    /// Mutations that are in the root, if it lacks additions.
    included: Option<usize>,
    mutations: usize,
    gone_edges: usize,
    words: usize,
    next_user_id: u64,
}

/// What a transaction went back from. Of many changes, dropping it takes its time, which can be cut into pieces.
#[derive(Debug)]
pub struct Undone {
    mutations: Vec<Mutation>,
    /// Of its own state, if nobody else has that.
    tablets: Vec<Arc<Tablet>>,
    /// Changes in a tablet, about.
    tablet_changes: usize,
    root: Arc<GraphRoot>,
}

impl Undone {
    fn new(mut root: Arc<GraphRoot>, mutations: Vec<Mutation>) -> Undone {
        let (tablets, changes) = Arc::get_mut(&mut root).map(GraphRoot::take_tablets).unwrap_or_default();
        let tablet_changes = changes / tablets.len().max(1) + 1;
        Undone { mutations, tablets, tablet_changes, root }
    }

    /// About how many changes there are.
    pub fn changes(&self) -> usize {
        self.mutations.len() + self.tablets.len() * self.tablet_changes
    }

    /// Takes about half of them off, for somebody else to free; `None` if they cannot be divided.
    pub fn split(&mut self) -> Option<Undone> {
        let tablets = self.tablets.split_off(self.tablets.len() / 2);
        let root = self.root.clone();
        (!tablets.is_empty()).then(|| Undone {
            mutations: Vec::new(),
            tablets,
            tablet_changes: self.tablet_changes,
            root,
        })
    }

    /// How many of them cannot but go at once.
    pub fn changes_at_once(&self) -> usize {
        if self.tablets.is_empty() { 0 } else { self.tablet_changes }
    }

    /// Frees about so many, or all if there are less. Says how many of `changes` are left: 0 if some of its own may be.
    pub fn free_some(&mut self, changes: usize) -> usize {
        if self.mutations.len() > changes {
            self.mutations.truncate(self.mutations.len() - changes);
            return 0;
        }
        let mut left = changes - std::mem::take(&mut self.mutations).len();
        while left > 0 && self.tablets.pop().is_some() {
            left = left.saturating_sub(self.tablet_changes);
        }
        left
    }
}

/// A view that lacks additions.
#[derive(Debug)]
struct Behind {
    view: Snapshot,
    /// Mutations that are in the view; all behind them are additions.
    included: usize,
}

/// What a transaction hands over to be committed.
struct Outgoing {
    graph: Arc<Graph>,
    body: Body,
    /// To be held until it is decided.
    begun: Option<Arc<Beginning>>,
}

#[derive(Debug)]
struct Writes {
    snapshot_ts: CommitTs,
    words: RecordWords,
    mutations: Vec<Mutation>,
    /// Edges that went with a vertex that was removed; the mutations do not name them.
    gone_edges: Vec<EdgeId>,
    next_user_id: u64,
}

impl Transaction {
    /// A transaction that may write, and therefore records what it reads.
    pub(crate) fn writing(graph: Arc<Graph>, begun: Arc<Beginning>, mut view: Snapshot) -> Transaction {
        let base = view.root.has_rules().then(|| view.root.clone());
        view.reads = Recorder::recording(graph.number);
        let (view, behind) = (OnceCell::from(view), RefCell::default());
        Transaction { graph, view, behind, base, writes: None, begun: Some(begun) }
    }

    /// A transaction that only reads.
    pub(crate) fn reading(graph: Arc<Graph>, view: Snapshot) -> Transaction {
        let (view, behind) = (OnceCell::from(view), RefCell::default());
        Transaction { graph, view, behind, base: None, writes: None, begun: None }
    }

    /// Another that reads the same state, for a thread beside this one. None if this one may write: what it writes and reads is in one place.
    pub fn reader(&self) -> Option<Transaction> {
        (!self.may_write()).then(|| Transaction::reading(self.graph.clone(), self.view().clone()))
    }

    /// The graph it works on.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// Refuses if damage was found in the files of the graph: what was read is not to be believed, though nothing else may have told.
    pub fn check_sound(&self) -> Result<(), StoreError> {
        self.graph.published.damage.check()
    }

    /// As [`Snapshot::examine`]; what is found is known to all from then on.
    pub fn examine(&self) -> Result<(), StoreError> {
        self.check_sound()?;
        self.view().examine().inspect_err(|error| self.graph.published.note_damage(error))
    }

    /// Adds a vertex; without an id it gets the next free `Long`.
    pub fn add_vertex(&mut self, label: &str, id: Option<Value>) -> Result<VertexId, StoreError> {
        if let Some(id) = &id {
            check_id(id, "vertex")?;
            if self.view().root.vertex_with_id(id).is_some() {
                // Who asked knows now that it is there; that it is free is checked by the resolver.
                self.view().reads.record(|reads| reads.vertex_with_id(id));
                return Err(StoreError::DuplicateVertex { id: id.clone() });
            }
        }
        Words::check_word(&self.late_view().root.words.labels, "vertex label", label)?;
        self.check_room()?;
        let declared = self.late_view().root.type_named(ElementKind::Vertex, label);
        declared.as_ref().map_or(Ok(()), |declared| declared.check_alive())?;
        let vertex = self.graph.published.reservations.vertex()?;
        let id = match (id, &declared) {
            (Some(id), _) => id,
            (None, Some(_)) => self.make_user_id()?,
            (None, None) => {
                let (id, label) = (self.make_user_id()?, self.writes().words.position(label).0);
                self.push_late(Mutation::AddVertex { vertex, label, id, properties: Vec::new() });
                return Ok(vertex);
            }
        };
        let (word, label) = self.label(label);
        self.root_mut().insert_vertex(vertex, label, id.clone(), Vec::new());
        self.push(Mutation::AddVertex { vertex, label: word, id, properties: Vec::new() });
        for (key, default) in declared.iter().flat_map(|declared| declared.defaults()) {
            self.set_vertex_property(vertex, key, default.clone(), Cardinality::Single, None)?;
        }
        Ok(vertex)
    }

    /// Whether new vertices of a label get values that nobody gives them.
    pub fn gives_defaults(&mut self, label: &str) -> bool {
        let declared = self.late_view().root.type_named(ElementKind::Vertex, label);
        declared.is_some_and(|declared| declared.defaults().next().is_some())
    }

    /// Adds an edge; without an id it gets the next free `Long`.
    pub fn add_edge(
        &mut self,
        label: &str,
        out: VertexId,
        in_: VertexId,
        id: Option<Value>,
    ) -> Result<EdgeId, StoreError> {
        self.check_vertex(out)?;
        self.check_vertex(in_)?;
        if let Some(id) = &id {
            check_id(id, "edge")?;
            if self.view().root.edge_with_id(id).is_some() {
                self.view().reads.record(|reads| reads.edge_with_id(id));
                return Err(StoreError::DuplicateEdge { id: id.clone() });
            }
        }
        Words::check_word(&self.late_view().root.words.labels, "edge label", label)?;
        self.check_room()?;
        let declared = self.late_view().root.type_named(ElementKind::Edge, label);
        if let Some(declared) = &declared {
            declared.check_alive()?;
            let record = EdgeRecord { label: declared.label, out, in_ };
            let view = self.view();
            view.root.check_multiplicity(declared, record, 0).inspect_err(|_| {
                // Who asked knows now that there is one; that there is none is checked by the resolver.
                view.reads.record(|reads| {
                    reads.half_edges(out, Direction::Out);
                    reads.half_edges(in_, Direction::In);
                });
            })?;
        }
        let layout = self.late_view().root.layout;
        let edge = self.graph.published.reservations.edge(layout, out)?;
        let id = match (id, &declared) {
            (Some(id), _) => id,
            (None, Some(_)) => self.make_user_id()?,
            (None, None) => {
                let (id, label) = (self.make_user_id()?, self.writes().words.position(label).0);
                self.push_late(Mutation::AddEdge { edge, label, out, in_, id, properties: Vec::new() });
                return Ok(edge);
            }
        };
        let (word, label) = self.label(label);
        self.root_mut().insert_edge(edge, EdgeRecord { label, out, in_ }, id.clone(), None);
        self.push(Mutation::AddEdge { edge, label: word, out, in_, id, properties: Vec::new() });
        for (key, default) in declared.iter().flat_map(|declared| declared.defaults()) {
            self.set_edge_property(edge, key, default.clone())?;
        }
        Ok(edge)
    }

    /// Sets or adds a vertex property and returns its id. `Single` replaces what is under the key; `Set` returns the id
    /// of the property that has this value already, if one has. An `id` of the caller's must be unused in the graph.
    pub fn set_vertex_property(
        &mut self,
        vertex: VertexId,
        key: &str,
        value: Value,
        cardinality: Cardinality,
        id: Option<u64>,
    ) -> Result<u64, StoreError> {
        self.check_vertex(vertex)?;
        check_property_value(key, &value)?;
        Words::check_word(&self.view().root.words.keys, "property key", key)?;
        self.check_room()?;
        let cardinality = self.view().root.take_cardinality(vertex, key, cardinality);
        let taken = self.view().root.take_value(ElementKind::Vertex, vertex.0, key, value, cardinality);
        let value = taken.inspect_err(|_| self.view().reads.record(|reads| reads.key(key)))?;
        let property = match id {
            Some(id) if id >> PROPERTY_ID_BITS == 0 => id,
            Some(_) => {
                return Err(StoreError::LimitReached {
                    what: "vertex property ids".to_string(),
                    limit: 1 << PROPERTY_ID_BITS,
                });
            }
            None => self.graph.published.reservations.property()?,
        };
        let (word, key) = self.key(key);
        let set = self.root_mut().set_vertex_property(vertex, key, value.clone(), cardinality, property);
        self.push(Mutation::SetVertexProperty { vertex, property, key: word, value, cardinality });
        Ok(set)
    }

    /// Sets a meta-property of a vertex property.
    pub fn set_meta_property(
        &mut self,
        vertex: VertexId,
        property: u64,
        key: &str,
        value: Value,
    ) -> Result<(), StoreError> {
        self.check_vertex(vertex)?;
        if !self.vertex_property_exists(vertex, property) {
            return Err(StoreError::NoSuchVertexProperty { vertex, property });
        }
        check_property_value(key, &value)?;
        Words::check_word(&self.view().root.words.keys, "property key", key)?;
        self.check_room()?;
        let (word, key) = self.key(key);
        self.root_mut().set_meta_property(vertex, property, key, value.clone());
        self.push(Mutation::SetMetaProperty { vertex, property, key: word, value });
        Ok(())
    }

    /// Sets a property of an edge.
    pub fn set_edge_property(&mut self, edge: EdgeId, key: &str, value: Value) -> Result<(), StoreError> {
        if !self.edge_exists(edge) {
            return Err(StoreError::NoSuchEdge { edge });
        }
        check_property_value(key, &value)?;
        Words::check_word(&self.view().root.words.keys, "property key", key)?;
        self.check_room()?;
        let taken = self.view().root.take_value(ElementKind::Edge, edge.0, key, value, Cardinality::Single);
        let value = taken.inspect_err(|_| self.view().reads.record(|reads| reads.any_edge()))?;
        let (word, key) = self.key(key);
        self.root_mut().set_edge_property(edge, key, value.clone());
        self.push(Mutation::SetEdgeProperty { edge, key: word, value });
        Ok(())
    }

    /// Removes a vertex with its properties and edges; does nothing if it is gone already.
    pub fn remove_vertex(&mut self, vertex: VertexId) -> Result<(), StoreError> {
        if !self.vertex_exists(vertex) {
            return Ok(());
        }
        self.check_room()?;
        let root = self.root_mut();
        let edges = root.edges_of(vertex);
        for edge in &edges {
            root.remove_edge(*edge);
        }
        root.remove_vertex(vertex);
        self.push(Mutation::RemoveVertex { vertex });
        self.writes().gone_edges.extend(edges);
        Ok(())
    }

    /// Removes an edge; does nothing if it is gone already.
    pub fn remove_edge(&mut self, edge: EdgeId) -> Result<(), StoreError> {
        if !self.edge_exists(edge) {
            return Ok(());
        }
        self.check_room()?;
        self.root_mut().remove_edge(edge);
        self.push(Mutation::RemoveEdge { edge });
        Ok(())
    }

    /// Removes one property of a vertex; does nothing if it is gone already.
    pub fn remove_vertex_property(&mut self, vertex: VertexId, property: u64) -> Result<(), StoreError> {
        if !self.vertex_property_exists(vertex, property) {
            return Ok(());
        }
        self.check_room()?;
        self.root_mut().remove_vertex_properties(vertex, |entry| entry.id() == property);
        self.push(Mutation::RemoveVertexProperty { vertex, property });
        Ok(())
    }

    /// Removes a meta-property; does nothing if it is gone already.
    pub fn remove_meta_property(&mut self, vertex: VertexId, property: u64, key: KeyId) -> Result<(), StoreError> {
        if !self.vertex_property_exists(vertex, property) {
            return Ok(());
        }
        self.check_room()?;
        let name = self.key_name(key);
        self.root_mut().remove_meta_property(vertex, property, key);
        let key = self.writes().words.position(&name).0;
        self.push(Mutation::RemoveMetaProperty { vertex, property, key });
        Ok(())
    }

    /// Removes a property of an edge; does nothing if it is gone already.
    pub fn remove_edge_property(&mut self, edge: EdgeId, key: KeyId) -> Result<(), StoreError> {
        if !self.edge_exists(edge) {
            return Ok(());
        }
        self.check_room()?;
        let name = self.key_name(key);
        self.root_mut().remove_edge_property(edge, key);
        let key = self.writes().words.position(&name).0;
        self.push(Mutation::RemoveEdgeProperty { edge, key });
        Ok(())
    }

    /// Records a read that the commit must find unchanged, as if it had been made. For searches that know better than the
    /// single reads they are made of on what their outcome depends; see [`Transaction::pause_recording`].
    pub fn protect(&mut self, what: Protect<'_>) {
        let view = self.view();
        let root = &view.root;
        view.reads.protect(|reads| match what {
            Protect::VertexWithId(id) => reads.vertex_with_id(id),
            Protect::EdgeWithId(id) => reads.edge_with_id(id),
            Protect::VerticesWithProperty { key, value } => {
                let number = root.words.keys.number(key);
                match number.is_some_and(|number| root.is_indexed(KeyId(number))) {
                    true => reads.key_value(key, value),
                    false => reads.key(key),
                }
            }
            Protect::VerticesWithLabel(label) => reads.vertices_with_label(label),
            Protect::AllVertices => reads.all_vertices(),
            Protect::AllEdges => reads.all_edges(),
            Protect::Vertex(vertex) => reads.vertex(vertex),
            Protect::Edge(edge) => reads.edge(edge),
            Protect::Adjacency(vertex, direction) => reads.half_edges(vertex, direction),
            Protect::EdgesBetween(out, in_) => reads.edges_between(out, in_),
        });
    }

    /// Records nothing but what is [protected](Transaction::protect) until [`Transaction::resume_recording`]. What is read
    /// meanwhile and matters to what is written has to be protected, else the guarantee of this transaction is gone.
    pub fn pause_recording(&mut self) {
        self.late_view_mut().reads.pause();
    }

    /// Goes on recording, if this transaction records.
    pub fn resume_recording(&mut self) {
        self.late_view_mut().reads.resume();
    }

    /// How many changes wait for the commit.
    pub fn change_count(&self) -> usize {
        self.writes.as_ref().map_or(0, |writes| writes.mutations.len())
    }

    /// True if it may write.
    pub fn may_write(&self) -> bool {
        self.begun.is_some()
    }

    /// True if nothing was written.
    pub fn is_read_only(&self) -> bool {
        self.writes.as_ref().is_none_or(|writes| writes.mutations.is_empty())
    }

    /// Commits and waits until the writes are durable and visible. Nothing is committed if this fails, except that after
    /// an error of the disk it is unknown until the next start.
    pub fn commit(self) -> Result<CommitTs, StoreError> {
        match self.into_body()? {
            Ok(Outgoing { graph, body, begun }) => graph.queue.commit_begun(body, begun),
            Err(snapshot_ts) => Ok(snapshot_ts),
        }
    }

    /// Commits without waiting; `callback` is told when the writes are durable and visible, or refused.
    pub fn commit_with(self, callback: CommitCallback) {
        match self.into_body() {
            Ok(Ok(Outgoing { graph, body, begun })) => graph.queue.commit_with(body, begun, callback),
            Ok(Err(snapshot_ts)) => callback(Ok(snapshot_ts)),
            Err(error) => callback(Err(error)),
        }
    }

    /// The state as it is, to go back to.
    pub fn savepoint(&mut self) -> Savepoint {
        let included = self.behind.get_mut().as_ref().map(|behind| behind.included);
        let root = self.late_view().root.clone();
        let (mutations, gone_edges, words, next_user_id) = self.writes.as_ref().map_or((0, 0, 0, 0), |writes| {
            (writes.mutations.len(), writes.gone_edges.len(), writes.words.count(), writes.next_user_id)
        });
        Savepoint { root, included, mutations, gone_edges, words, next_user_id }
    }

    /// Forgets what was written since. What was read since is remembered: somebody may know it.
    pub fn roll_back_to(&mut self, savepoint: Savepoint) -> Undone {
        let Savepoint { root, included, mutations, gone_edges, words, next_user_id } = savepoint;
        let behind = self.behind.get_mut().take().map(|behind| behind.view);
        let mut view = self.view.take().or(behind).expect("a view is there or behind");
        let undone_root = std::mem::replace(&mut view.root, root);
        match included {
            Some(included) => *self.behind.get_mut() = Some(Behind { view, included }),
            None => self.view = OnceCell::from(view),
        }
        let mut undone = Vec::new();
        if let Some(writes) = &mut self.writes {
            undone = writes.mutations.split_off(mutations);
            writes.gone_edges.truncate(gone_edges);
            writes.words.truncate(words);
            writes.next_user_id = next_user_id;
        }
        Undone::new(undone_root, undone)
    }

    /// Forgets the writes.
    pub fn rollback(self) {}

    /// As [`Transaction::rollback`]; what was written may be freed later. Others see at once that it is over.
    pub fn forget(mut self) -> Undone {
        let behind = self.behind.get_mut().take().map(|behind| behind.view);
        let view = self.view.take().or(behind).expect("a view is there or behind");
        Undone::new(view.root, self.writes.take().map(|writes| writes.mutations).unwrap_or_default())
    }

    /// What to commit, or the snapshot's timestamp if nothing was written: a read-only transaction is serialised at its
    /// snapshot and has nothing to validate. An error if the writes do not obey the schema they began with.
    fn into_body(mut self) -> Result<Result<Outgoing, CommitTs>, StoreError> {
        let snapshot_ts = self.late_view().root.commit_ts;
        match self.writes.take() {
            Some(writes) if !writes.mutations.is_empty() => {
                self.check_sound()?;
                let Writes { snapshot_ts, words, mutations, gone_edges, next_user_id } = *writes;
                let view = self.late_view_mut();
                let reads = view.reads.take();
                let reads =
                    reads.map_or_else(Vec::new, |reads| fingerprints(reads, &mutations, gone_edges, &view.root));
                let write = GraphWrite {
                    graph: self.graph.number,
                    snapshot_ts: Some(snapshot_ts),
                    has_old_fingerprints: false,
                    reads,
                    next_user_id,
                    words: words.into_list(),
                    mutations,
                };
                if let Some(base) = &self.base {
                    check_write(&write, base)?;
                }
                Ok(Ok(Outgoing { graph: self.graph, body: Body::Write(write), begun: self.begun }))
            }
            _ => Ok(Err(snapshot_ts)),
        }
    }

    fn writes(&mut self) -> &mut Writes {
        // Nothing in the snapshot is as new as its beginning if nobody wrote to the graph lately.
        let begun = self.begun.as_ref().map_or(CommitTs(0), |begun| begun.ts());
        let snapshot_ts = self.late_view().root.commit_ts.max(begun);
        self.writes.get_or_insert_with(|| {
            Box::new(Writes {
                snapshot_ts,
                words: RecordWords::default(),
                mutations: Vec::new(),
                gone_edges: Vec::new(),
                next_user_id: 0,
            })
        })
    }

    fn push(&mut self, mutation: Mutation) {
        self.writes().mutations.push(mutation);
    }

    /// Pushes an addition that the view gets when it is read.
    fn push_late(&mut self, addition: Mutation) {
        if let Some(view) = self.view.take() {
            let included = self.writes.as_ref().map_or(0, |writes| writes.mutations.len());
            *self.behind.get_mut() = Some(Behind { view, included });
        }
        self.push(addition);
    }

    /// What this transaction reads.
    fn view(&self) -> &Snapshot {
        self.view.get_or_init(|| {
            let behind = self.behind.take();
            let Behind { mut view, included } = behind.expect("a view is there or behind");
            let writes = self.writes.as_ref().expect("what is behind lacks writes");
            let root = Arc::make_mut(&mut view.root);
            writes.mutations[included..].iter().for_each(|addition| add(addition, &writes.words, root));
            view
        })
    }

    /// The view, as it is: it may lack additions with made ids of no declared type.
    fn late_view(&mut self) -> &Snapshot {
        self.late_view_mut()
    }

    fn late_view_mut(&mut self) -> &mut Snapshot {
        match self.view.get_mut() {
            Some(view) => view,
            None => &mut self.behind.get_mut().as_mut().expect("a view is there or behind").view,
        }
    }

    /// The private root; the first call makes it.
    fn root_mut(&mut self) -> &mut GraphRoot {
        self.view();
        Arc::make_mut(&mut self.late_view_mut().root)
    }

    fn label(&mut self, label: &str) -> (WordRef, LabelId) {
        let (word, text) = self.writes().words.position(label);
        (word, self.root_mut().words.intern_label(&text))
    }

    fn key(&mut self, key: &str) -> (WordRef, KeyId) {
        let (word, text) = self.writes().words.position(key);
        (word, self.root_mut().words.intern_key(&text))
    }

    /// That a vertex exists is checked again by the resolver, so it need not be recorded; and who is gone stays gone.
    fn check_vertex(&mut self, vertex: VertexId) -> Result<(), StoreError> {
        let exists = self.late_view().root.vertex(vertex).is_some() || self.view().root.vertex(vertex).is_some();
        if exists { Ok(()) } else { Err(StoreError::NoSuchVertex { vertex }) }
    }

    /// Whether one more change is allowed.
    fn check_room(&self) -> Result<(), StoreError> {
        if !self.may_write() {
            return Err(StoreError::ReadOnly);
        }
        match &self.writes {
            Some(writes) if writes.mutations.len() >= self.graph.changes_limit => {
                Err(StoreError::TransactionTooLarge { limit: self.graph.changes_limit as u64 })
            }
            _ => Ok(()),
        }
    }

    /// The next number that neither a vertex nor an edge has as its user id.
    fn make_user_id(&mut self) -> Result<Value, StoreError> {
        loop {
            let number = self.graph.published.reservations.user_id()?;
            let id = Value::Long(number as i64);
            let root = &self.late_view().root;
            if root.vertex_with_id(&id).is_none() && root.edge_with_id(&id).is_none() {
                let writes = self.writes();
                writes.next_user_id = writes.next_user_id.max(number + 1);
                return Ok(id);
            }
        }
    }
}

/// Puts an addition into a private root, as the commit thread will.
fn add(addition: &Mutation, words: &RecordWords, root: &mut GraphRoot) {
    match addition {
        Mutation::AddVertex { vertex, label, id, .. } => {
            let label = root.words.intern_label(words.text(*label));
            root.insert_vertex(*vertex, label, id.clone(), Vec::new());
        }
        Mutation::AddEdge { edge, label, out, in_, id, .. } => {
            let label = root.words.intern_label(words.text(*label));
            root.insert_edge(*edge, EdgeRecord { label, out: *out, in_: *in_ }, id.clone(), None);
        }
        _ => unreachable!("only additions are left for later"),
    }
}

/// What a record carries of a read set. `root` has the mutations in it, but for additions; `gone_edges` went with removed vertices.
fn fingerprints(reads: ReadSet, mutations: &[Mutation], gone_edges: Vec<EdgeId>, root: &GraphRoot) -> Vec<u64> {
    let mut added = (Vec::new(), Vec::new());
    let mut removed = (Vec::new(), gone_edges);
    for mutation in mutations {
        match mutation {
            Mutation::AddVertex { vertex, .. } => added.0.push(*vertex),
            Mutation::AddEdge { edge, .. } => added.1.push(*edge),
            Mutation::RemoveVertex { vertex } => removed.0.push(*vertex),
            Mutation::RemoveEdge { edge } => removed.1.push(*edge),
            _ => {}
        }
    }
    for (vertices, edges) in [&mut added, &mut removed] {
        vertices.sort_unstable();
        edges.sort_unstable();
    }
    reads.into_fingerprints(|element| {
        let (is_added, is_there) = match element {
            Element::Vertex(vertex) => (
                added.0.binary_search(&vertex).is_ok(),
                root.vertex(vertex).is_some() || removed.0.binary_search(&vertex).is_ok(),
            ),
            Element::Edge(edge) => (
                added.1.binary_search(&edge).is_ok(),
                root.edge(edge).is_some() || removed.1.binary_search(&edge).is_ok(),
            ),
        };
        match (is_added, is_there) {
            (true, _) => Standing::Added,
            (false, true) => Standing::There,
            (false, false) => Standing::Absent,
        }
    })
}

impl Deref for Transaction {
    type Target = Snapshot;

    fn deref(&self) -> &Snapshot {
        self.view()
    }
}
