//! The ends that a hop has led to from one labelled vertex: behind it `dedup(labels…)` or `select(labels…).dedup()` would drop them the second time.
//!
//! Rows that come of one vertex come together, so the ends of the current one are known, by its number at the place of their ids: going on to the
//! next forgets them at no cost. What is not known any more is handed on again, and dropped behind.

use ficus_model::{Value, VertexId};
use ficus_storage::AtVertex;

use crate::budget::{Held, MemoryAccount};
use crate::context::Result;
use crate::logical::Name;
use crate::traverser::Traverser;

/// Ids of a page.
const PAGE: usize = 1024;

/// Numbers by id.
type Page = Box<[u32; PAGE]>;

/// Pages at most, 16 MiB; ends with other ids are always handed on.
const PAGES_MAX: usize = 4096;

/// Ids below this have pages.
const IDS_MAX: u64 = 1 << 27;

/// Ends by the vertex under a label.
pub struct EndsByLabel {
    label: Name,
    /// The vertex that rows have under the label now.
    vertex: Option<VertexId>,
    /// Its number; 0: that of none.
    number: u32,
    pages: Vec<Option<Page>>,
    used: usize,
    held: Held,
}

impl EndsByLabel {
    /// None yet.
    pub fn new(label: Name) -> EndsByLabel {
        EndsByLabel { label, vertex: None, number: 0, pages: Vec::new(), used: 0, held: Held::default() }
    }

    /// Makes ready for what comes of a row.
    pub fn start(&mut self, row: &Traverser) {
        let vertex = match row.labelled(&self.label) {
            Some(Value::Vertex(vertex)) => Some(*vertex),
            _ => None,
        };
        if vertex == self.vertex {
            return;
        }
        self.vertex = vertex;
        match self.number.checked_add(1) {
            Some(number) => self.number = number,
            None => {
                self.pages.iter_mut().flatten().for_each(|page| page.fill(0));
                self.number = 1;
            }
        }
    }

    #[inline]
    fn is_known(&self, end: VertexId) -> bool {
        let page = self.pages.get((end.0 / PAGE as u64) as usize).and_then(Option::as_ref);
        page.is_some_and(|page| page[end.0 as usize % PAGE] == self.number)
    }

    /// Drops those that were handed on before.
    pub fn drop_from<V: AtVertex>(&self, ends: &mut Vec<V>) {
        if self.vertex.is_some() {
            ends.retain(|end| !self.is_known(end.vertex()));
        }
    }

    /// Remembers one; whether it was not handed on before, as far as is known.
    ///
    /// Errors: `Budget` or `ServerMemory`.
    #[inline]
    pub fn add(&mut self, end: VertexId, account: &MemoryAccount) -> Result<bool> {
        if self.vertex.is_none() || end.0 >= IDS_MAX {
            return Ok(true);
        }
        let (page, place) = ((end.0 / PAGE as u64) as usize, end.0 as usize % PAGE);
        if let Some(Some(page)) = self.pages.get_mut(page) {
            let is_new = page[place] != self.number;
            page[place] = self.number;
            return Ok(is_new);
        }
        self.add_page(page, place, account)?;
        Ok(true)
    }

    #[cold]
    fn add_page(&mut self, page: usize, place: usize, account: &MemoryAccount) -> Result<()> {
        if self.used == PAGES_MAX {
            return Ok(());
        }
        if self.pages.len() <= page {
            let more = (page + 1).next_power_of_two() - self.pages.len();
            self.held.add(account, more * size_of::<Option<Page>>())?;
            self.pages.resize_with(self.pages.len() + more, || None);
        }
        self.held.add(account, size_of::<[u32; PAGE]>())?;
        let mut numbers = Box::new([0; PAGE]);
        numbers[place] = self.number;
        self.pages[page] = Some(numbers);
        self.used += 1;
        Ok(())
    }

    /// Forgets all and hands back what it took.
    pub fn clear(&mut self) {
        *self = EndsByLabel::new(self.label.clone());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::random::Random;
    use crate::traverser::Labels;

    fn row(value: Value) -> Traverser {
        let mut row = Traverser::new(value);
        row.extend_path(&Labels::from([Name::from("x")]));
        row
    }

    #[test]
    fn what_is_dropped_was_handed_on_from_the_same_vertex() {
        let (mut random, account) = (Random::seeded(7), MemoryAccount::new(1 << 30));
        let mut ends = EndsByLabel::new("x".into());
        ends.number = u32::MAX - 5;
        let mut known: HashSet<(u64, u64)> = HashSet::new();
        let mut dropped = 0;
        for _ in 0..20 {
            let from = random.below(4) as u64;
            ends.start(&row(Value::Vertex(VertexId(from))));
            for _ in 0..2_000 {
                let end = random.below(3_000) as u64 * if random.below(9) == 0 { 1 << 20 } else { 1 };
                let is_known = known.contains(&(from, end));
                let mut list = vec![VertexId(end)];
                ends.drop_from(&mut list);
                let is_new = ends.add(VertexId(end), &account).expect("room");
                assert_eq!(is_new, !list.is_empty());
                assert!(is_new || is_known, "{from} {end}");
                dropped += usize::from(!is_new);
                known.insert((from, end));
            }
        }
        assert!(dropped > 5_000, "{dropped}");
        // What is no vertex has no ends of its own.
        for value in [Value::Null, Value::Int(1)] {
            ends.start(&row(value));
            assert!(ends.add(VertexId(1), &account).expect("room") && ends.add(VertexId(1), &account).expect("room"));
        }
        ends.clear();
        assert_eq!(account.used_bytes(), 0);
    }
}
