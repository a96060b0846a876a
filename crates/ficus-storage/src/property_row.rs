//! The properties of one vertex, and of one edge.
//!
//! Almost every vertex has a few single-valued properties without meta-properties: those are one array in insertion order,
//! 32 bytes an entry, searched from the front. Meta-properties are rare and live beside it, as do the keys of rows that are long, so that
//! the absence of one is known without a search.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use ficus_model::{KeyId, Value};

/// Bits of a property id; the rest of the word holds the key.
pub(crate) const PROPERTY_ID_BITS: u32 = 44;

/// Properties of one vertex, in insertion order.
#[derive(Clone, Debug, Default)]
pub(crate) struct PropertyRow(Option<Arc<PropertyList>>);

/// Rows with more properties know their keys, and grow by more than one entry at a time.
const ENTRIES_OF_LONG_ROW: usize = 64;

#[derive(Clone, Debug, Default)]
struct PropertyList {
    entries: Vec<PropertyEntry>,
    /// What few rows have.
    rare: Option<Box<Rare>>,
}

#[derive(Clone, Debug, Default)]
struct Rare {
    /// Only properties that have meta-properties.
    metas: Vec<MetaProperties>,
    /// The keys of a long row.
    keys: Option<HashSet<KeyId>>,
}

#[derive(Clone, Debug)]
struct MetaProperties {
    property: u64,
    properties: Vec<(KeyId, Value)>,
}

/// One property of a vertex.
#[derive(Clone, Debug)]
pub(crate) struct PropertyEntry {
    /// Key in the high 20 bits, id in the low 44.
    key_and_id: u64,
    /// The value.
    pub(crate) value: Value,
}

const _: () = assert!(size_of::<PropertyEntry>() == 32);
const _: () = assert!(size_of::<PropertyList>() == 32);

/// Meta-properties of one property.
pub(crate) type Metas = [(KeyId, Value)];

/// Is handed a property with its meta-properties; may end that.
pub(crate) type VisitProperty<'a> = &'a mut dyn FnMut(PropertyEntry, &Metas) -> ControlFlow<()>;

/// Is handed the meta-properties of a property, with its id.
pub(crate) type VisitMetas<'a> = &'a mut dyn FnMut(u64, &Metas);

/// What is read of the properties of a vertex.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Properties of this key; without, of all.
    pub(crate) key: Option<KeyId>,
    /// Their meta-properties as well.
    pub(crate) metas: bool,
}

impl Wanted {
    /// All properties with all that belongs to them.
    pub(crate) const EVERYTHING: Wanted = Wanted { key: None, metas: true };
}

impl PropertyList {
    fn of(mut entries: Vec<PropertyEntry>) -> PropertyList {
        entries.shrink_to_fit();
        let mut list = PropertyList { entries, rare: None };
        list.note_keys();
        list
    }

    /// Takes note of the keys if the row is long.
    fn note_keys(&mut self) {
        let is_long = self.entries.len() > ENTRIES_OF_LONG_ROW;
        let keys = is_long.then(|| self.entries.iter().map(PropertyEntry::key).collect());
        if keys.is_some() || self.rare.is_some() {
            self.rare.get_or_insert_default().keys = keys;
        }
    }

    fn metas(&self) -> &[MetaProperties] {
        self.rare.as_ref().map_or(&[], |rare| &rare.metas)
    }
}

impl PropertyEntry {
    /// A property; the id must be below 2^44 and the key below 2^20.
    pub(crate) fn new(id: u64, key: KeyId, value: Value) -> PropertyEntry {
        assert!(id >> PROPERTY_ID_BITS == 0 && key.0 >> (u64::BITS - PROPERTY_ID_BITS) == 0, "id or key out of range");
        PropertyEntry { key_and_id: u64::from(key.0) << PROPERTY_ID_BITS | id, value }
    }

    /// The property's own id.
    pub(crate) fn id(&self) -> u64 {
        self.key_and_id & ((1 << PROPERTY_ID_BITS) - 1)
    }

    /// The key.
    pub(crate) fn key(&self) -> KeyId {
        KeyId((self.key_and_id >> PROPERTY_ID_BITS) as u32)
    }
}

impl PropertyRow {
    /// A row of these entries.
    pub(crate) fn from_entries(entries: Vec<PropertyEntry>) -> PropertyRow {
        if entries.is_empty() {
            return PropertyRow(None);
        }
        PropertyRow(Some(Arc::new(PropertyList::of(entries))))
    }

    /// All properties in insertion order.
    pub(crate) fn entries(&self) -> &[PropertyEntry] {
        self.0.as_ref().map_or(&[], |list| &list.entries)
    }

    /// The first value under a key.
    pub(crate) fn first(&self, key: KeyId) -> Option<&Value> {
        self.entries().iter().find(|entry| entry.key() == key).map(|entry| &entry.value)
    }

    /// True if there is a value under a key. Cost: of a few entries, however long the row is.
    pub(crate) fn has_key(&self, key: KeyId) -> bool {
        let Some(list) = &self.0 else { return false };
        match list.rare.as_ref().and_then(|rare| rare.keys.as_ref()) {
            Some(keys) => keys.contains(&key),
            None => list.entries.iter().any(|entry| entry.key() == key),
        }
    }

    /// The property with this id.
    pub(crate) fn by_id(&self, id: u64) -> Option<&PropertyEntry> {
        self.entries().iter().find(|entry| entry.id() == id)
    }

    /// Appends a property. Cost: of a few entries, however long the row is, if nobody else has it.
    pub(crate) fn push(&mut self, entry: PropertyEntry) {
        let list = Arc::make_mut(self.0.get_or_insert_default());
        let key = entry.key();
        if list.entries.len() < ENTRIES_OF_LONG_ROW {
            list.entries.reserve_exact(1);
        }
        list.entries.push(entry);
        match list.rare.as_mut().and_then(|rare| rare.keys.as_mut()) {
            Some(keys) => {
                keys.insert(key);
            }
            None => list.note_keys(),
        }
    }

    /// Removes the properties that `doomed` picks, with their meta-properties, and hands them out.
    pub(crate) fn remove_where(&mut self, doomed: impl Fn(&PropertyEntry) -> bool) -> Vec<PropertyEntry> {
        if !self.entries().iter().any(&doomed) {
            return Vec::new();
        }
        let Some(shared) = &mut self.0 else { return Vec::new() };
        let list = Arc::make_mut(shared);
        let removed: Vec<PropertyEntry> = list.entries.extract_if(.., |entry| doomed(entry)).collect();
        if list.entries.is_empty() {
            self.0 = None;
            return removed;
        }
        if list.entries.len() <= ENTRIES_OF_LONG_ROW {
            list.entries.shrink_to_fit();
        }
        if let Some(rare) = &mut list.rare {
            rare.metas.retain(|meta| removed.iter().all(|entry| entry.id() != meta.property));
            list.note_keys();
        }
        removed
    }

    /// The meta-properties of a property, in insertion order.
    pub(crate) fn metas(&self, property: u64) -> &[(KeyId, Value)] {
        let mut metas = self.0.iter().flat_map(|list| list.metas());
        metas.find(|meta| meta.property == property).map_or(&[], |meta| &meta.properties)
    }

    /// Hands out the meta-properties of all properties that have any, with the ids of these.
    pub(crate) fn visit_metas(&self, visit: VisitMetas<'_>) {
        let all = self.0.iter().flat_map(|list| list.metas());
        all.for_each(|metas| visit(metas.property, &metas.properties));
    }

    /// Sets a meta-property of a property that is there.
    pub(crate) fn set_meta(&mut self, property: u64, key: KeyId, value: Value) {
        let list = Arc::make_mut(self.0.get_or_insert_default());
        let metas = &mut list.rare.get_or_insert_default().metas;
        match metas.iter_mut().find(|meta| meta.property == property) {
            Some(meta) => set(&mut meta.properties, key, value),
            None => metas.push(MetaProperties { property, properties: vec![(key, value)] }),
        }
    }

    /// Removes a meta-property, if it is there.
    pub(crate) fn remove_meta(&mut self, property: u64, key: KeyId) {
        if self.metas(property).iter().all(|(existing, _)| *existing != key) {
            return;
        }
        let Some(shared) = &mut self.0 else { return };
        let Some(rare) = &mut Arc::make_mut(shared).rare else { return };
        let metas = &mut rare.metas;
        for meta in metas.iter_mut().filter(|meta| meta.property == property) {
            meta.properties.retain(|(existing, _)| *existing != key);
        }
        metas.retain(|meta| !meta.properties.is_empty());
    }
}

/// Properties of one edge, in insertion order; `None` for none.
pub(crate) type EdgeProperties = Option<Arc<[(KeyId, Value)]>>;

/// Sets a property in a list in insertion order.
pub(crate) fn set(properties: &mut Vec<(KeyId, Value)>, key: KeyId, value: Value) {
    match properties.iter_mut().find(|(existing, _)| *existing == key) {
        Some((_, existing)) => *existing = value,
        None => properties.push((key, value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: u64, key: u32) -> PropertyEntry {
        PropertyEntry::new(id, KeyId(key), Value::Long(id as i64))
    }

    #[test]
    fn rows_know_their_keys_however_long_they_are() {
        let long = ENTRIES_OF_LONG_ROW as u32 + 3;
        let mut row = PropertyRow::default();
        for key in 0..long {
            assert!(!row.has_key(KeyId(key)));
            row.push(entry(u64::from(key), key));
            assert!((0..=key).all(|key| row.has_key(KeyId(key))));
        }
        row.set_meta(1, KeyId(9), Value::Int(9));
        // A second value under a key keeps it when the first is gone.
        row.push(entry(1000, 5));
        for gone in [5, 1000, 7, 0, 2] {
            row.remove_where(|entry| entry.id() == gone);
            let keys: Vec<u32> = row.entries().iter().map(|entry| entry.key().0).collect();
            assert!((0..long).all(|key| row.has_key(KeyId(key)) == keys.contains(&key)), "without {gone}: {keys:?}");
        }
        assert_eq!(row.metas(1), [(KeyId(9), Value::Int(9))]);
        let row = PropertyRow::from_entries(row.entries().to_vec());
        assert!(row.has_key(KeyId(1)) && !row.has_key(KeyId(7)));
    }

    #[test]
    fn new_keys_of_a_long_row_cost_what_those_of_a_short_one_do() {
        // With a look at all entries for each key this takes minutes.
        let mut row = PropertyRow::default();
        for key in 0..600_000 {
            assert!(!row.has_key(KeyId(key)));
            row.push(entry(u64::from(key), key));
        }
        assert_eq!(row.entries().len(), 600_000);
    }
}
