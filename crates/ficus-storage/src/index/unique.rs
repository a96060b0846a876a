//! Which elements have equal values: what unique indexes go by.
//!
//! Equal means equal as an index key (numbers by value). An element that lacks one of the keys equals none; nor does one
//! that a composite index cannot place, since it has several values under one key.

use ficus_model::{KeyId, Value};

use super::{Entries, Index, IndexShape, KeySpan, ValuesOf, put_component};
use crate::property_index::IndexEntry;
use crate::root::GraphRoot;
use crate::value_key::{index_equal, index_hash};

impl Index {
    /// Hands the elements that may have exactly these values, one for each key, to `visit`.
    pub(crate) fn visit_exact(&self, values: &[Value], visit: &mut dyn FnMut(u64)) {
        match &self.entries {
            Entries::Hashed(entries) => {
                let Some(hash) = values.first().and_then(index_hash) else { return };
                entries.visit_from(&IndexEntry { hash, element: 0 }, |entry| {
                    if entry.hash == hash {
                        visit(entry.element);
                    }
                    entry.hash == hash
                });
            }
            Entries::Ordered(_) => {
                let mut key = Vec::new();
                values.iter().for_each(|value| put_component(value, &mut key));
                self.visit_span(&KeySpan::of_prefix(key), visit);
            }
        }
    }
}

/// The combinations of values, one under each key, by which an element may collide with another; empty if it cannot.
pub(crate) fn collisions(keys: &[KeyId], values: &mut ValuesOf<'_>) -> Vec<Vec<Value>> {
    let mut found: Vec<Vec<Value>> = Vec::with_capacity(keys.len());
    for key in keys {
        let mut own = Vec::new();
        values(*key, &mut |value| own.push(value.clone()));
        found.push(own);
    }
    match found.as_mut_slice() {
        [values] => std::mem::take(values).into_iter().map(|value| vec![value]).collect(),
        several if several.iter().all(|values| values.len() == 1) => {
            vec![several.iter_mut().filter_map(Vec::pop).collect()]
        }
        _ => Vec::new(),
    }
}

impl GraphRoot {
    /// True if the element has all these values, one under each key of the index.
    pub(crate) fn has_values(&self, shape: &IndexShape, element: u64, values: &[Value]) -> bool {
        shape.keys.iter().zip(values).all(|(key, value)| {
            let mut has = false;
            self.visit_values(shape.elements, element, *key, &mut |own| has |= index_equal(own, value));
            has
        })
    }

    /// The first element but those that `except` picks with exactly these values.
    pub(crate) fn element_with(&self, index: &Index, values: &[Value], except: &dyn Fn(u64) -> bool) -> Option<u64> {
        let mut found = None;
        index.visit_exact(values, &mut |element| {
            if found.is_none() && !except(element) && self.has_values(&index.shape, element, values) {
                found = Some(element);
            }
        });
        found
    }

    /// Values of an element that another one has too, with that one.
    pub(crate) fn collision_of(&self, index: &Index, element: u64) -> Option<(Vec<Value>, u64)> {
        let shape = &index.shape;
        let mine = collisions(&shape.keys, &mut |key, visit| self.visit_values(shape.elements, element, key, visit));
        mine.into_iter().find_map(|values| {
            let other = self.element_with(index, &values, &|other| other == element)?;
            Some((values, other))
        })
    }
}
