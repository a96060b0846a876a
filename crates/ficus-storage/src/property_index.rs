//! Vertices by label, and by the values under a key: ordered sets of (hash, vertex).
//!
//! Vertices of one hash come in ascending id, which is insertion order. Different values may share a hash, so who looks
//! up confirms each candidate by the vertex's own values; how to do so is the root's business.

use ficus_model::{KeyId, LabelId, Value, VertexId};

use crate::ordered_pages::OrderedPages;
use crate::value_key::index_hash;

/// A hash and an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IndexEntry {
    /// Hash of the key; a label's number in the label index.
    pub(crate) hash: u64,
    /// The element's internal id.
    pub(crate) element: u64,
}

/// The vertices of one label, or all, by the values under one key.
#[derive(Clone, Debug)]
pub(crate) struct PropertyIndex {
    /// Only vertices of this label; `None` covers all.
    pub(crate) label: Option<LabelId>,
    /// The key.
    pub(crate) key: KeyId,
    /// (hash of a value, vertex).
    pub(crate) entries: OrderedPages<IndexEntry>,
}

impl PropertyIndex {
    /// An index without entries.
    pub(crate) fn new(label: Option<LabelId>, key: KeyId) -> PropertyIndex {
        PropertyIndex { label, key, entries: OrderedPages::default() }
    }

    /// True if values under `key` of vertices with `label` belong in here.
    pub(crate) fn covers(&self, label: LabelId, key: KeyId) -> bool {
        self.key == key && self.label.is_none_or(|own| own == label)
    }

    /// Adds a value of a vertex.
    pub(crate) fn insert(&mut self, value: &Value, vertex: VertexId) {
        if let Some(hash) = index_hash(value) {
            self.entries.insert(IndexEntry { hash, element: vertex.0 });
        }
    }

    /// Removes a value of a vertex that has no other value with the same hash.
    pub(crate) fn remove(&mut self, value: &Value, vertex: VertexId) {
        if let Some(hash) = index_hash(value) {
            self.entries.remove(&IndexEntry { hash, element: vertex.0 });
        }
    }

    /// Vertices that may have the value, ascending.
    pub(crate) fn visit_candidates(&self, value: &Value, visit: &mut impl FnMut(VertexId)) {
        let Some(hash) = index_hash(value) else { return };
        self.entries.visit_from(&IndexEntry { hash, element: 0 }, |entries| {
            let same = entries.partition_point(|entry| entry.hash == hash);
            entries[..same].iter().for_each(|entry| visit(VertexId(entry.element)));
            same == entries.len()
        });
    }
}
