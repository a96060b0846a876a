//! What a transaction asks for, in the form in which it is logged and applied.
//!
//! Mutations are logical: they name elements, labels and values, never pages. Labels and keys are texts, because a number
//! that one transaction gave a new word is not the number it gets when it commits; each record has its own small list of
//! texts, and mutations name a position in it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use ficus_model::{Cardinality, EdgeId, Value, VertexId};

use crate::CommitTs;
use crate::base::Base;
use crate::root::NextIds;
use crate::schema::SchemaChange;

/// The position of a label or key in the list of a record.
pub(crate) type WordRef = u32;

/// One change to one graph.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Mutation {
    AddVertex {
        vertex: VertexId,
        label: WordRef,
        id: Value,
        properties: Vec<NewProperty>,
    },
    AddEdge {
        edge: EdgeId,
        label: WordRef,
        out: VertexId,
        in_: VertexId,
        id: Value,
        properties: Vec<(WordRef, Value)>,
    },
    SetVertexProperty {
        vertex: VertexId,
        property: u64,
        key: WordRef,
        value: Value,
        cardinality: Cardinality,
    },
    SetMetaProperty {
        vertex: VertexId,
        property: u64,
        key: WordRef,
        value: Value,
    },
    SetEdgeProperty {
        edge: EdgeId,
        key: WordRef,
        value: Value,
    },
    /// With its edges.
    RemoveVertex {
        vertex: VertexId,
    },
    RemoveEdge {
        edge: EdgeId,
    },
    RemoveVertexProperty {
        vertex: VertexId,
        property: u64,
    },
    RemoveMetaProperty {
        vertex: VertexId,
        property: u64,
        key: WordRef,
    },
    RemoveEdgeProperty {
        edge: EdgeId,
        key: WordRef,
    },
}

/// A property of a vertex that is added together with it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NewProperty {
    pub(crate) id: u64,
    pub(crate) key: WordRef,
    pub(crate) value: Value,
    pub(crate) meta: Vec<(WordRef, Value)>,
}

/// The changes of one transaction to one graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct GraphWrite {
    /// The graph's number.
    pub(crate) graph: u32,
    /// The snapshot it read; `None` for a bulk batch, which read nothing and only has to fit.
    pub(crate) snapshot_ts: Option<CommitTs>,
    /// True for a record of format 1, whose reads know a vertex's adjacency as a whole only.
    pub(crate) has_old_fingerprints: bool,
    /// Fingerprints of the reads that must have stayed unchanged.
    pub(crate) reads: Vec<u64>,
    /// User ids below this may have been made up.
    pub(crate) next_user_id: u64,
    /// Labels and keys that the mutations name.
    pub(crate) words: Vec<Arc<str>>,
    /// The changes, in order.
    pub(crate) mutations: Vec<Mutation>,
}

/// What a log record asks for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Body {
    /// Changes to elements.
    Write(GraphWrite),
    /// A new graph; it gets the next number.
    CreateGraph { name: Arc<str>, tablet_bits: u8 },
    /// The end of a graph.
    DropGraph { graph: u32 },
    /// The end of all elements of a graph.
    ClearGraph { graph: u32 },
    /// A hash index of vertices, complete at once. Written by earlier releases only.
    CreateIndex { graph: u32, label: Option<Arc<str>>, key: Arc<str> },
    /// All elements of a graph that has none, in files that were made before.
    AttachBase(AttachBase),
    /// A change of types, indexes or tasks. Since format 5 the resolver is told of the words that are new with it.
    Schema { graph: u32, change: SchemaChange, tells_words: bool },
    /// From here on only the record's own writer may write: records of earlier writers that arrive late are dropped. Since format 4 the
    /// resolver forgets what was written before.
    Epoch { epoch: u64, forgets: bool },
}

/// A bulk load into an empty graph.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AttachBase {
    /// The graph's number.
    pub(crate) graph: u32,
    /// The files of its base; they are durable before the record is.
    pub(crate) files: Vec<Arc<str>>,
    /// All labels by number; those that the graph has come first.
    pub(crate) labels: Vec<Arc<str>>,
    /// All keys by number; those that the graph has come first.
    pub(crate) keys: Vec<Arc<str>>,
    /// Numbers below these are used.
    pub(crate) next_ids: NextIds,
    /// The base, where it is open already; not part of the record.
    pub(crate) opened: OpenedBase,
}

/// A base on its way beside a record.
#[derive(Clone, Default)]
pub(crate) struct OpenedBase(pub(crate) Option<Arc<Base>>);

impl PartialEq for OpenedBase {
    fn eq(&self, _: &OpenedBase) -> bool {
        // What counts are the files.
        true
    }
}

impl fmt::Debug for OpenedBase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenedBase({})", self.0.is_some())
    }
}

/// A name and what it stands for, see [`Record::facts`].
pub(crate) type Fact = (Arc<str>, Arc<[u8]>);

/// One record of the commit log.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    /// Who wrote it; a new number for every opening of the store.
    pub(crate) writer: u64,
    /// Counts the writer's records; a repeated one is a duplicate.
    pub(crate) sequence: u64,
    /// Facts that commit together with the body, such as how far a load has come. Each belongs to the graph of the body and
    /// replaces an earlier one of its name; an empty one removes it.
    pub(crate) facts: Vec<Fact>,
    /// What it asks for.
    pub(crate) body: Body,
}

/// The list of labels and keys of a record that is being made.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordWords {
    list: Vec<Arc<str>>,
    positions: HashMap<Arc<str>, WordRef>,
}

impl RecordWords {
    /// The position of a word, which is added if it is new; and its shared text.
    pub(crate) fn position(&mut self, word: &str) -> (WordRef, Arc<str>) {
        if let Some((text, position)) = self.positions.get_key_value(word) {
            return (*position, text.clone());
        }
        let text: Arc<str> = Arc::from(word);
        let position = self.list.len() as WordRef;
        self.positions.insert(text.clone(), position);
        self.list.push(text.clone());
        (position, text)
    }

    /// The text of a word.
    pub(crate) fn text(&self, word: WordRef) -> &Arc<str> {
        &self.list[word as usize]
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.list.len()
    }

    /// Forgets all behind the first `count`.
    pub(crate) fn truncate(&mut self, count: usize) {
        for word in self.list.drain(count..) {
            self.positions.remove(&word);
        }
    }

    /// All words in order.
    pub(crate) fn into_list(self) -> Vec<Arc<str>> {
        self.list
    }
}
