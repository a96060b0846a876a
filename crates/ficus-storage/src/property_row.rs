//! The properties of one vertex, and of one edge.
//!
//! Almost every vertex has a few single-valued properties without meta-properties: those are one array in insertion order,
//! 32 bytes an entry, searched from the front. Meta-properties are rare and live beside it.

use std::sync::Arc;

use ficus_model::{KeyId, Value};

/// Bits of a property id; the rest of the word holds the key.
pub(crate) const PROPERTY_ID_BITS: u32 = 44;

/// Properties of one vertex, in insertion order.
#[derive(Clone, Debug, Default)]
pub(crate) struct PropertyRow(Option<Arc<PropertyList>>);

#[derive(Clone, Debug, Default)]
struct PropertyList {
    entries: Box<[PropertyEntry]>,
    /// Only properties that have meta-properties.
    metas: Vec<MetaProperties>,
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
        PropertyRow(Some(Arc::new(PropertyList { entries: entries.into_boxed_slice(), metas: Vec::new() })))
    }

    /// All properties in insertion order.
    pub(crate) fn entries(&self) -> &[PropertyEntry] {
        self.0.as_ref().map_or(&[], |list| &list.entries)
    }

    /// The first value under a key.
    pub(crate) fn first(&self, key: KeyId) -> Option<&Value> {
        self.entries().iter().find(|entry| entry.key() == key).map(|entry| &entry.value)
    }

    /// The property with this id.
    pub(crate) fn by_id(&self, id: u64) -> Option<&PropertyEntry> {
        self.entries().iter().find(|entry| entry.id() == id)
    }

    /// Appends a property.
    pub(crate) fn push(&mut self, entry: PropertyEntry) {
        let list = Arc::make_mut(self.0.get_or_insert_default());
        let mut entries = std::mem::take(&mut list.entries).into_vec();
        entries.reserve_exact(1);
        entries.push(entry);
        list.entries = entries.into_boxed_slice();
    }

    /// Removes the properties that `doomed` picks, with their meta-properties, and hands them out.
    pub(crate) fn remove_where(&mut self, doomed: impl Fn(&PropertyEntry) -> bool) -> Vec<PropertyEntry> {
        if !self.entries().iter().any(&doomed) {
            return Vec::new();
        }
        let Some(shared) = &mut self.0 else { return Vec::new() };
        let list = Arc::make_mut(shared);
        let (removed, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut list.entries).into_vec().into_iter().partition(|entry| doomed(entry));
        list.metas.retain(|meta| removed.iter().all(|entry| entry.id() != meta.property));
        if kept.is_empty() {
            self.0 = None;
        } else {
            list.entries = kept.into_boxed_slice();
        }
        removed
    }

    /// The meta-properties of a property, in insertion order.
    pub(crate) fn metas(&self, property: u64) -> &[(KeyId, Value)] {
        let mut metas = self.0.iter().flat_map(|list| &list.metas);
        metas.find(|meta| meta.property == property).map_or(&[], |meta| &meta.properties)
    }

    /// Sets a meta-property of a property that is there.
    pub(crate) fn set_meta(&mut self, property: u64, key: KeyId, value: Value) {
        let list = Arc::make_mut(self.0.get_or_insert_default());
        let metas = &mut list.metas;
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
        let metas = &mut Arc::make_mut(shared).metas;
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
