//! From user ids to elements.
//!
//! Small integers, which is what the id counter gives, are looked up in a table; all other ids by hash in an ordered set
//! of (hash, element), where the caller confirms a candidate by the id in the element's row. So an id is stored once.

use ficus_model::Value;

use crate::ordered_pages::OrderedPages;
use crate::page_map::PageMap;
use crate::property_index::IndexEntry;
use crate::value_key::{id_hash, id_integer};

const TABLE_PAGE: usize = 64;
const EMPTY: u64 = u64::MAX;

/// Elements by user id.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdIndex {
    table: PageMap<[u64; TABLE_PAGE]>,
    hashed: OrderedPages<IndexEntry>,
    /// Ids in the table.
    tabled: u64,
}

impl IdIndex {
    /// The element with this id; `has_id` confirms a candidate.
    pub(crate) fn find(&self, id: &Value, has_id: impl Fn(u64) -> bool) -> Option<u64> {
        if let Some((page, position)) = table_place(id) {
            match self.table.page(page).map(|page| page[position]) {
                None | Some(EMPTY) => {}
                Some(element) => return Some(element),
            }
        }
        let hash = id_hash(id);
        let mut found = None;
        self.hashed.visit_from(&IndexEntry { hash, element: 0 }, |entries| {
            for entry in entries {
                if entry.hash != hash {
                    return false;
                }
                if has_id(entry.element) {
                    found = Some(entry.element);
                    return false;
                }
            }
            true
        });
        found
    }

    /// Adds an id that is not there.
    pub(crate) fn insert(&mut self, id: &Value, element: u64) {
        match table_place(id) {
            Some((page, position)) if self.fits_table(page) => {
                self.table.page_mut_or(page, || [EMPTY; TABLE_PAGE])[position] = element;
                self.tabled += 1;
            }
            _ => {
                self.hashed.insert(IndexEntry { hash: id_hash(id), element });
            }
        }
    }

    /// Removes an id with its element.
    pub(crate) fn remove(&mut self, id: &Value, element: u64) {
        let place = table_place(id)
            .filter(|(page, position)| self.table.page(*page).is_some_and(|page| page[*position] == element));
        if let Some((page, position)) = place {
            self.table.page_mut_or(page, || [EMPTY; TABLE_PAGE])[position] = EMPTY;
            self.tabled -= 1;
            return;
        }
        self.hashed.remove(&IndexEntry { hash: id_hash(id), element });
    }

    /// Number of ids.
    pub(crate) fn len(&self) -> u64 {
        self.tabled + self.hashed.len()
    }

    /// The table stays at most a quarter empty by size, so that one huge id cannot make it sparse: a page is 512 bytes.
    fn fits_table(&self, page: u64) -> bool {
        page < 64 || page * (TABLE_PAGE as u64) < self.tabled.saturating_mul(4) || self.table.page(page).is_some()
    }
}

fn table_place(id: &Value) -> Option<(u64, usize)> {
    let integer = u64::try_from(id_integer(id)?).ok()?;
    Some((integer / TABLE_PAGE as u64, integer as usize % TABLE_PAGE))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn ids_of_all_kinds_are_found_and_forgotten() {
        let mut ids: Vec<Value> = (-40..5000).map(Value::Long).collect();
        ids.extend([i64::MAX, i64::MIN, 1 << 40, 100_000].map(Value::Long));
        ids.extend((0..100).map(|n| Value::String(n.to_string().into())));
        let mut index = IdIndex::default();
        let rows: BTreeMap<u64, Value> = ids.iter().cloned().enumerate().map(|(n, id)| (n as u64, id)).collect();
        let find = |index: &IdIndex, id: &Value| index.find(id, |element| rows[&element] == *id);
        for (element, id) in &rows {
            assert_eq!(find(&index, id), None);
            index.insert(id, *element);
            assert_eq!(find(&index, id), Some(*element));
        }
        assert_eq!(index.len(), rows.len() as u64);
        for (element, id) in &rows {
            assert_eq!(find(&index, id), Some(*element));
            index.remove(id, *element);
            assert_eq!(find(&index, id), None);
        }
        assert_eq!(index.len(), 0);
    }
}
