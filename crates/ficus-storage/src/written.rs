//! What a committing record changes, as the fingerprints that readers of it have recorded.
//!
//! The counterpart of [`crate::read_set`]: for every kind of read there, each write that can change its answer shows up
//! here, both for the thing itself and for what may stand for it when a read set has become coarse.

use std::sync::Arc;

use ficus_model::{Cardinality, EdgeId, KeyId, Value, VertexId};

use crate::EdgeRecord;
use crate::fingerprint::Fingerprints;
use crate::mutation::{GraphWrite, Mutation, WordRef};
use crate::property_row::PropertyEntry;
use crate::root::GraphRoot;
use crate::words::{WordList, Words};

/// Tells `visit` the fingerprints of all that `write` changes. `root` is the state before it is applied.
pub(crate) fn visit_written(write: &GraphWrite, root: &GraphRoot, visit: &mut impl FnMut(u64)) {
    let of = Fingerprints { graph: write.graph };
    let words = WordFingerprints::new(of, write, root);
    let mut written = Written { of, write, root, words, whole: Whole::default(), visit };
    for mutation in &write.mutations {
        written.mutation(mutation);
    }
    let Written { whole, visit, .. } = written;
    let whole = [
        (whole.all_vertices, of.all_vertices()),
        (whole.all_edges, of.all_edges()),
        (whole.any_vertex, of.any_vertex()),
        (whole.any_edge, of.any_edge()),
        (whole.any_vertex_existence, of.any_vertex_existence()),
        (whole.any_edge_existence, of.any_edge_existence()),
        (whole.all_words, of.all_words()),
        (whole.loaded_edge_ids, of.loaded_edge_ids()),
    ];
    whole.into_iter().filter(|(is_written, _)| *is_written).for_each(|(_, fingerprint)| visit(fingerprint));
}

/// Tells `visit` the fingerprints of the words that are known `now` and were not `before`.
pub(crate) fn visit_new_words(of: Fingerprints, before: &Words, now: &Words, visit: &mut impl FnMut(u64)) {
    let new = |before: &WordList, now: &WordList| now.names()[before.names().len()..].to_vec();
    let (labels, keys) = (new(&before.labels, &now.labels), new(&before.keys, &now.keys));
    labels.iter().for_each(|label| visit(of.absent_label(label)));
    keys.iter().for_each(|key| visit(of.absent_key(key)));
    if !labels.is_empty() || !keys.is_empty() {
        visit(of.all_words());
    }
}

/// What concerns the graph as a whole; told once, at the end.
#[derive(Default)]
struct Whole {
    all_vertices: bool,
    all_edges: bool,
    any_vertex: bool,
    any_edge: bool,
    any_vertex_existence: bool,
    any_edge_existence: bool,
    all_words: bool,
    loaded_edge_ids: bool,
}

struct Written<'a, Visit> {
    of: Fingerprints,
    write: &'a GraphWrite,
    root: &'a GraphRoot,
    words: WordFingerprints<'a>,
    whole: Whole,
    visit: &'a mut Visit,
}

impl<Visit: FnMut(u64)> Written<'_, Visit> {
    fn mutation(&mut self, mutation: &Mutation) {
        let of = self.of;
        match mutation {
            Mutation::AddVertex { label, id, properties, .. } => {
                (self.visit)(of.vertex_id(id));
                self.whole.all_vertices = true;
                if let Some(fingerprint) = self.words.vertex_label(*label) {
                    (self.visit)(fingerprint);
                }
                self.label(*label);
                for property in properties {
                    self.value(property.key, &property.value);
                    property.meta.iter().for_each(|(key, _)| self.key(*key));
                }
            }
            Mutation::AddEdge { label, out, in_, id, properties, .. } => {
                self.ends(*out, *in_);
                self.whole.all_edges = true;
                if let Some(fingerprint) = self.words.edge_label(*label) {
                    (self.visit)(fingerprint);
                }
                self.label(*label);
                properties.iter().for_each(|(key, _)| self.key(*key));
                // A bulk load adds too many to remember each.
                match self.write.snapshot_ts {
                    Some(_) => (self.visit)(of.edge_id(id)),
                    None => self.whole.loaded_edge_ids = true,
                }
            }
            Mutation::SetVertexProperty { vertex, key, value, cardinality, .. } => {
                self.vertex(*vertex);
                self.value(*key, value);
                if *cardinality == Cardinality::Single {
                    let key = self.root.words.keys.number(&self.write.words[*key as usize]);
                    self.removed_values(*vertex, |entry| Some(entry.key().0) == key);
                }
            }
            Mutation::SetMetaProperty { vertex, key, .. } => {
                self.vertex(*vertex);
                self.key(*key);
            }
            Mutation::RemoveMetaProperty { vertex, .. } => self.vertex(*vertex),
            Mutation::RemoveVertexProperty { vertex, property } => {
                self.vertex(*vertex);
                self.removed_values(*vertex, |entry| entry.id() == *property);
            }
            Mutation::SetEdgeProperty { edge, key, .. } => {
                self.edge(*edge);
                self.key(*key);
            }
            Mutation::RemoveEdgeProperty { edge, .. } => self.edge(*edge),
            Mutation::RemoveEdge { edge } => self.removed_edge(*edge),
            Mutation::RemoveVertex { vertex } => self.removed_vertex(*vertex),
        }
    }

    /// Properties of a vertex.
    fn vertex(&mut self, vertex: VertexId) {
        self.whole.any_vertex = true;
        (self.visit)(self.of.vertex(vertex));
    }

    /// Properties of an edge.
    fn edge(&mut self, edge: EdgeId) {
        self.whole.any_edge = true;
        (self.visit)(self.of.edge(edge));
        if let Some(EdgeRecord { out, in_, .. }) = self.root.edge(edge) {
            (self.visit)(self.of.edge_properties_at(out));
            (self.visit)(self.of.edge_properties_at(in_));
        }
        if self.write.has_old_fingerprints
            && let Some(EdgeRecord { out, in_, .. }) = self.root.edge(edge)
        {
            (self.visit)(self.of.adjacency(out));
            (self.visit)(self.of.adjacency(in_));
        }
    }

    /// An edge that comes or goes.
    fn ends(&mut self, out: VertexId, in_: VertexId) {
        (self.visit)(self.of.out_half_edges(out));
        (self.visit)(self.of.in_half_edges(in_));
        (self.visit)(self.of.edges_between(out, in_));
        if self.write.has_old_fingerprints {
            (self.visit)(self.of.adjacency(out));
            (self.visit)(self.of.adjacency(in_));
        }
    }

    /// A value that comes under a key of a vertex.
    fn value(&mut self, word: WordRef, value: &Value) {
        self.key(word);
        let (fingerprint, is_indexed) = self.words.vertex_key(word);
        if let Some(fingerprint) = fingerprint {
            (self.visit)(fingerprint);
        }
        if is_indexed {
            (self.visit)(self.of.key_value(&self.write.words[word as usize], value));
        }
    }

    /// A word that is used as a label.
    fn label(&mut self, word: WordRef) {
        if let Some(fingerprint) = self.words.new_label(word) {
            self.whole.all_words = true;
            (self.visit)(fingerprint);
        }
    }

    /// A word that is used as a key, of whatever element.
    fn key(&mut self, word: WordRef) {
        if let Some(fingerprint) = self.words.new_key(word) {
            self.whole.all_words = true;
            (self.visit)(fingerprint);
        }
    }

    /// Values that go from under the keys of a vertex.
    fn removed_values(&mut self, vertex: VertexId, removed: impl Fn(&PropertyEntry) -> bool) {
        let root = self.root;
        let Some(row) = root.vertex(vertex) else { return };
        for entry in row.entries().iter().filter(|entry| removed(entry)) {
            let Some(key) = root.words.keys.name(entry.key().0) else { continue };
            (self.visit)(self.of.key(key));
            if root.is_indexed(entry.key()) {
                (self.visit)(self.of.key_value(key, &entry.value));
            }
        }
    }

    fn removed_vertex(&mut self, vertex: VertexId) {
        let (of, root) = (self.of, self.root);
        let Some(row) = root.vertex(vertex) else { return };
        self.vertex(vertex);
        self.whole.all_vertices = true;
        self.whole.any_vertex_existence = true;
        (self.visit)(of.vertex_existence(vertex));
        (self.visit)(of.vertex_id(&row.id()));
        (self.visit)(of.out_half_edges(vertex));
        (self.visit)(of.in_half_edges(vertex));
        if self.write.has_old_fingerprints {
            (self.visit)(of.adjacency(vertex));
        }
        if let Some(label) = root.words.labels.name(row.label().0) {
            (self.visit)(of.label(label));
        }
        self.removed_values(vertex, |_| true);
        root.edges_of(vertex).into_iter().for_each(|edge| self.removed_edge(edge));
    }

    fn removed_edge(&mut self, edge: EdgeId) {
        let (of, root) = (self.of, self.root);
        self.edge(edge);
        self.whole.all_edges = true;
        self.whole.any_edge_existence = true;
        (self.visit)(of.edge_existence(edge));
        if let (Some(record), Some(id)) = (root.edge(edge), root.edge_user_id(edge)) {
            self.ends(record.out, record.in_);
            (self.visit)(of.edge_id(&id));
            if let Some(label) = root.words.labels.name(record.label.0) {
                (self.visit)(of.edge_label(label));
            }
        }
    }
}

/// What is known of one word of a record.
#[derive(Clone, Copy, Default)]
struct Word {
    told_as_vertex_label: bool,
    told_as_edge_label: bool,
    told_as_label: bool,
    told_as_key: bool,
    /// Once told as a vertex's key: whether an index covers it.
    indexed: Option<bool>,
}

/// Fingerprints of the labels and keys of one record, each told once.
struct WordFingerprints<'a> {
    of: Fingerprints,
    words: &'a [Arc<str>],
    root: &'a GraphRoot,
    known: Vec<Word>,
}

impl<'a> WordFingerprints<'a> {
    fn new(of: Fingerprints, write: &'a GraphWrite, root: &'a GraphRoot) -> WordFingerprints<'a> {
        WordFingerprints { of, words: &write.words, root, known: vec![Word::default(); write.words.len()] }
    }

    fn vertex_label(&mut self, word: WordRef) -> Option<u64> {
        let told = std::mem::replace(&mut self.known[word as usize].told_as_vertex_label, true);
        (!told).then(|| self.of.label(&self.words[word as usize]))
    }

    fn edge_label(&mut self, word: WordRef) -> Option<u64> {
        let told = std::mem::replace(&mut self.known[word as usize].told_as_edge_label, true);
        (!told).then(|| self.of.edge_label(&self.words[word as usize]))
    }

    /// The key of a vertex's property, and whether an index covers it.
    fn vertex_key(&mut self, word: WordRef) -> (Option<u64>, bool) {
        let text = &self.words[word as usize];
        match self.known[word as usize].indexed {
            Some(is_indexed) => (None, is_indexed),
            None => {
                let number = self.root.words.keys.number(text);
                let is_indexed = number.is_some_and(|number| self.root.is_indexed(KeyId(number)));
                self.known[word as usize].indexed = Some(is_indexed);
                (Some(self.of.key(text)), is_indexed)
            }
        }
    }

    fn new_label(&mut self, word: WordRef) -> Option<u64> {
        let told = std::mem::replace(&mut self.known[word as usize].told_as_label, true);
        let text = &self.words[word as usize];
        let is_new = !told && self.root.words.labels.number(text).is_none();
        is_new.then(|| self.of.absent_label(text))
    }

    fn new_key(&mut self, word: WordRef) -> Option<u64> {
        let told = std::mem::replace(&mut self.known[word as usize].told_as_key, true);
        let text = &self.words[word as usize];
        let is_new = !told && self.root.words.keys.number(text).is_none();
        is_new.then(|| self.of.absent_key(text))
    }
}
