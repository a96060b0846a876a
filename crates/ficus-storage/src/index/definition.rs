//! What an index is, in words and in numbers.

use std::fmt;
use std::sync::Arc;

use ficus_model::{KeyId, LabelId};

use crate::StoreError;
use crate::words::{WORD_BYTES_LIMIT, Words};

/// Keys one index may have; more are never of use to one query.
pub const INDEX_KEYS_LIMIT: usize = 8;

/// Which elements an index or a type is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ElementKind {
    /// Vertices.
    Vertex,
    /// Edges.
    Edge,
}

impl ElementKind {
    /// `vertex` or `edge`.
    pub const fn name(self) -> &'static str {
        match self {
            ElementKind::Vertex => "vertex",
            ElementKind::Edge => "edge",
        }
    }
}

/// What an index can answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IndexKind {
    /// Equality under one key. Takes 16 bytes an entry.
    Hash,
    /// Equality, ranges, beginnings of texts and order, under one key or several. Takes 32 bytes an entry, and more for
    /// keys above 22 bytes.
    Ordered,
}

impl IndexKind {
    /// `hash` or `ordered`.
    pub const fn name(self) -> &'static str {
        match self {
            IndexKind::Hash => "hash",
            IndexKind::Ordered => "ordered",
        }
    }
}

/// An index: elements of one label, or all, by the values under some keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexDefinition {
    /// Its name, unique in the graph.
    pub name: Arc<str>,
    /// Vertices or edges.
    pub elements: ElementKind,
    /// Only elements of this label; `None` covers all.
    pub label: Option<Arc<str>>,
    /// The keys, most significant first.
    pub keys: Vec<Arc<str>>,
    /// What it can answer.
    pub kind: IndexKind,
    /// True if no two elements may have the same values under all keys. Elements that lack one may.
    pub unique: bool,
}

impl IndexDefinition {
    /// An index that is not unique and is named after what it covers, as in `vertex.person.name.hash`.
    pub fn new(elements: ElementKind, label: Option<&str>, keys: &[&str], kind: IndexKind) -> IndexDefinition {
        let label: Option<Arc<str>> = label.map(Arc::from);
        let keys: Vec<Arc<str>> = keys.iter().copied().map(Arc::from).collect();
        let parts = [elements.name(), label.as_deref().unwrap_or("*"), &keys.join("."), kind.name()];
        IndexDefinition { name: Arc::from(parts.join(".")), elements, label, keys, kind, unique: false }
    }

    /// The same index, refusing elements with equal values.
    pub fn unique(mut self) -> IndexDefinition {
        self.unique = true;
        self
    }

    /// The same index under another name.
    pub fn named(mut self, name: &str) -> IndexDefinition {
        self.name = Arc::from(name);
        self
    }

    /// Refuses what can be no index.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let refuse = |reason: String| Err(StoreError::InvalidSchema { what: format!("index '{}'", self.name), reason });
        if self.name.is_empty() || self.name.len() > WORD_BYTES_LIMIT {
            return refuse(format!("a name has 1 to {WORD_BYTES_LIMIT} bytes"));
        }
        if self.keys.is_empty() || self.keys.len() > INDEX_KEYS_LIMIT {
            return refuse(format!("an index has 1 to {INDEX_KEYS_LIMIT} keys, not {}", self.keys.len()));
        }
        if self.kind == IndexKind::Hash && self.keys.len() > 1 {
            return refuse("a hash index has one key; make it ordered to have several".to_string());
        }
        for (position, key) in self.keys.iter().enumerate() {
            if key.is_empty() || key.len() > WORD_BYTES_LIMIT {
                return refuse(format!("a key has 1 to {WORD_BYTES_LIMIT} bytes"));
            }
            if self.keys[..position].contains(key) {
                return refuse(format!("the key '{key}' is there twice"));
            }
        }
        match &self.label {
            Some(label) if label.is_empty() || label.len() > WORD_BYTES_LIMIT => {
                refuse(format!("a label has 1 to {WORD_BYTES_LIMIT} bytes"))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for IndexDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unique = if self.unique { "unique " } else { "" };
        let (kind, elements, label) = (self.kind.name(), self.elements.name(), self.label.as_deref().unwrap_or("*"));
        write!(f, "{unique}{kind} index on {elements} {label} ({})", self.keys.join(", "))
    }
}

/// Whether an index can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IndexState {
    /// Being built: writes keep it up to date, no query uses it yet.
    Building,
    /// A unique index with all entries, which refuses further equal values while it looks for those there are.
    Verifying,
    /// Complete.
    Ready,
}

impl IndexState {
    /// `building`, `verifying` or `ready`.
    pub const fn name(self) -> &'static str {
        match self {
            IndexState::Building => "building",
            IndexState::Verifying => "verifying",
            IndexState::Ready => "ready",
        }
    }
}

/// A definition in the numbers of its graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexShape {
    /// Never given twice in a graph.
    pub(crate) number: u32,
    pub(crate) name: Arc<str>,
    pub(crate) elements: ElementKind,
    pub(crate) label: Option<LabelId>,
    pub(crate) keys: Box<[KeyId]>,
    pub(crate) kind: IndexKind,
    pub(crate) unique: bool,
}

impl IndexShape {
    /// True if a value under `key` of an element of `label` belongs in here.
    pub(crate) fn covers(&self, elements: ElementKind, label: LabelId, key: KeyId) -> bool {
        self.elements == elements && self.keys.contains(&key) && self.label.is_none_or(|own| own == label)
    }

    /// True for an index of several keys.
    pub(crate) fn is_composite(&self) -> bool {
        self.keys.len() > 1
    }

    /// True if it is as a definition wants it, whatever the names.
    pub(crate) fn covers_the_same(&self, wanted: &IndexDefinition, words: &Words) -> bool {
        let is_label = |label: LabelId| words.labels.name(label.0) == wanted.label.as_ref();
        let is_key = |(own, key): (&KeyId, &Arc<str>)| words.keys.name(own.0) == Some(key);
        (self.elements, self.kind, self.unique) == (wanted.elements, wanted.kind, wanted.unique)
            && self.label.is_some() == wanted.label.is_some()
            && self.label.is_none_or(is_label)
            && self.keys.len() == wanted.keys.len()
            && self.keys.iter().zip(&wanted.keys).all(is_key)
    }

    /// The definition in words.
    pub(crate) fn definition(&self, words: &Words) -> IndexDefinition {
        let word = |name: Option<&Arc<str>>| name.cloned().unwrap_or_else(|| Arc::from(""));
        IndexDefinition {
            name: self.name.clone(),
            elements: self.elements,
            label: self.label.map(|label| word(words.labels.name(label.0))),
            keys: self.keys.iter().map(|key| word(words.keys.name(key.0))).collect(),
            kind: self.kind,
            unique: self.unique,
        }
    }
}
