//! Secondary indexes: elements by the values under one or several keys.
//!
//! An index is a part of the root it indexes: versioned with it, and kept up to date by the root's own writes. A *hash*
//! index is an ordered set of (hash, element); an *ordered* one of (key, element) with the keys of [`key`]. Those of the base lie in a file, the
//! others in pages above it ([`entries`], [`stored`]). Both give
//! candidates, which are tested against the row: different values may share a hash or a key. Elements of one key come in
//! ascending id, which is insertion order.
//!
//! A single-key index has one entry per different value of an element. A composite index has one per element that has the
//! first key; an element with several values under one of the keys cannot be placed and has the key that every look-up
//! visits.

mod definition;
mod entries;
mod key;
mod lookup;
mod maintain;
mod stored;
mod unique;

use std::sync::Arc;

use ficus_model::{KeyId, Value};

pub(crate) use definition::IndexShape;
pub use definition::{ElementKind, INDEX_KEYS_LIMIT, IndexDefinition, IndexKind, IndexState};
pub(crate) use entries::{Entry, EntrySet};
pub(crate) use key::{KeyBytes, KeySpan, any_key, is_point, put_component, put_missing, put_remainder};
pub use lookup::{IndexCursor, IndexInfo, IndexQuery, IndexTest};
pub(crate) use stored::build_index_files;
pub(crate) use unique::collisions;

use crate::property_index::IndexEntry;
use crate::value_key::index_hash;

/// A key and an element.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeyEntry {
    pub(crate) key: KeyBytes,
    /// The element's internal id.
    pub(crate) element: u64,
}

/// The entries of an index.
#[derive(Clone, Debug)]
pub(crate) enum Entries {
    /// (hash of the value, element).
    Hashed(EntrySet<IndexEntry>),
    /// (key, element).
    Ordered(EntrySet<KeyEntry>),
}

/// One secondary index.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    pub(crate) shape: Arc<IndexShape>,
    pub(crate) state: IndexState,
    pub(crate) entries: Entries,
}

impl Index {
    /// An index without entries.
    pub(crate) fn new(shape: IndexShape, state: IndexState) -> Index {
        let entries = match shape.kind {
            IndexKind::Hash => Entries::Hashed(EntrySet::default()),
            IndexKind::Ordered => Entries::Ordered(EntrySet::default()),
        };
        Index { shape: Arc::new(shape), state, entries }
    }

    /// The same index without entries.
    pub(crate) fn cleared(&self) -> Index {
        Index::new(IndexShape::clone(&self.shape), self.state)
    }

    /// True if queries may use it.
    pub(crate) fn is_ready(&self) -> bool {
        self.state == IndexState::Ready
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> u64 {
        match &self.entries {
            Entries::Hashed(entries) => entries.len(),
            Entries::Ordered(entries) => entries.len(),
        }
    }

    /// Adds a value of an element to a single-key index.
    pub(crate) fn insert_value(&mut self, value: &Value, element: u64) {
        match &mut self.entries {
            Entries::Hashed(entries) => {
                if let Some(hash) = index_hash(value) {
                    entries.insert(IndexEntry { hash, element });
                }
            }
            Entries::Ordered(entries) => {
                entries.insert(KeyEntry { key: value_key(value), element });
            }
        }
    }

    /// Removes a value of an element from a single-key index, unless one of the values it still has shares its entry.
    pub(crate) fn remove_value(
        &mut self,
        value: &Value,
        element: u64,
        mut shares: impl FnMut(&dyn Fn(&Value) -> bool) -> bool,
    ) {
        match &mut self.entries {
            Entries::Hashed(entries) => {
                let hash = index_hash(value);
                if let Some(hash) = hash.filter(|hash| !shares(&|other| index_hash(other) == Some(*hash))) {
                    entries.remove(&IndexEntry { hash, element });
                }
            }
            Entries::Ordered(entries) => {
                let key = value_key(value);
                if !shares(&|other| value_key(other) == key) {
                    entries.remove(&KeyEntry { key, element });
                }
            }
        }
    }

    /// Adds an element to a composite index.
    pub(crate) fn insert_key(&mut self, key: KeyBytes, element: u64) {
        if let Entries::Ordered(entries) = &mut self.entries {
            entries.insert(KeyEntry { key, element });
        }
    }

    /// Removes an element from a composite index.
    pub(crate) fn remove_key(&mut self, key: KeyBytes, element: u64) {
        if let Entries::Ordered(entries) = &mut self.entries {
            entries.remove(&KeyEntry { key, element });
        }
    }

    /// Hands the elements whose key is in the span to `visit`, in the order of the keys; ordered indexes only.
    pub(crate) fn visit_span(&self, span: &KeySpan, visit: &mut dyn FnMut(u64)) {
        let Entries::Ordered(entries) = &self.entries else { return };
        entries.visit_from(&KeyEntry { key: KeyBytes::new(&span.from), element: 0 }, |entry| {
            let is_inside = span.to.as_ref().is_none_or(|to| entry.key.as_slice() < to.as_slice());
            if is_inside {
                visit(entry.element);
            }
            is_inside
        });
    }
}

/// Hands the values of an element under a key to a visitor.
pub(crate) type ValuesOf<'a> = dyn FnMut(KeyId, &mut dyn FnMut(&Value)) + 'a;

/// The key of a value in an ordered index of one key.
pub(crate) fn value_key(value: &Value) -> KeyBytes {
    let mut bytes = Vec::with_capacity(32);
    put_component(value, &mut bytes);
    KeyBytes::new(&bytes)
}

/// The key of an element in a composite index, by what `values` hands out under a key; `None` if it lacks the first key.
pub(crate) fn composite_key(keys: &[KeyId], values: &mut ValuesOf<'_>) -> Option<KeyBytes> {
    let mut bytes = Vec::with_capacity(64);
    for (position, key) in keys.iter().enumerate() {
        let mut count = 0;
        values(*key, &mut |value| {
            count += 1;
            if count == 1 {
                put_component(value, &mut bytes);
            }
        });
        match count {
            0 if position == 0 => return None,
            0 => put_missing(&mut bytes),
            1 => {}
            _ => return Some(any_key()),
        }
    }
    Some(KeyBytes::new(&bytes))
}
