//! Columns found by property key, without searching.

use ficus_model::KeyId;

/// Keys are numbered from 0 in every graph and have 20 bits, so a table by key is small.
const KEY_BITS: u32 = 20;

const NONE: u32 = u32::MAX;

/// Columns with the key of each, in the order in which they were added.
#[derive(Clone, Debug)]
pub(super) struct KeyColumns<C> {
    columns: Vec<(KeyId, C)>,
    /// Index of the column by key.
    places: Vec<u32>,
}

impl<C> Default for KeyColumns<C> {
    fn default() -> KeyColumns<C> {
        KeyColumns { columns: Vec::new(), places: Vec::new() }
    }
}

impl<C> KeyColumns<C> {
    /// Adds a column under a key that has none; `None` if the key is too large.
    pub(super) fn add(&mut self, key: KeyId, column: C) -> Option<usize> {
        if key.0 >> KEY_BITS != 0 {
            return None;
        }
        let place = key.0 as usize;
        if self.places.len() <= place {
            self.places.resize(place + 1, NONE);
        }
        self.places[place] = self.columns.len() as u32;
        self.columns.push((key, column));
        Some(self.columns.len() - 1)
    }

    /// The index of the column under a key.
    #[inline]
    pub(super) fn index(&self, key: KeyId) -> Option<usize> {
        self.places.get(key.0 as usize).filter(|place| **place != NONE).map(|place| *place as usize)
    }

    /// The index of the column under a key, which is added if there is none.
    pub(super) fn index_or(&mut self, key: KeyId, column: impl FnOnce() -> C) -> usize {
        match self.index(key) {
            Some(index) => index,
            None => self.add(key, column()).expect("keys have 20 bits"),
        }
    }

    /// The column under a key.
    #[inline]
    pub(super) fn get(&self, key: KeyId) -> Option<&C> {
        self.index(key).map(|index| &self.columns[index].1)
    }

    #[inline]
    pub(super) fn at(&self, index: usize) -> (KeyId, &C) {
        let (key, column) = &self.columns[index];
        (*key, column)
    }

    pub(super) fn at_mut(&mut self, index: usize) -> &mut C {
        &mut self.columns[index].1
    }

    pub(super) fn len(&self) -> usize {
        self.columns.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (KeyId, &C)> {
        self.columns.iter().map(|(key, column)| (*key, column))
    }

    pub(super) fn into_iter(self) -> impl Iterator<Item = (KeyId, C)> {
        self.columns.into_iter()
    }

    /// Bytes of the tables on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.columns.capacity() * size_of::<(KeyId, C)>() + self.places.capacity() * size_of::<u32>()
    }
}
