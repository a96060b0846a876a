//! How often vertices were met, in the order in which they came first.
//!
//! Ids lie close together, so where a vertex stands in that order is kept in pages of an array, one look at the memory away. Where that would be mostly
//! empty pages, it is kept in a hash table.

use std::hash::BuildHasher;

use ficus_dataflow::{Chunks, Remains};
use ficus_model::VertexId;
use hashbrown::DefaultHashBuilder;

use crate::budget::{Held, MemoryAccount};
use crate::context::Result;
use crate::growing::{Positions, surrender};

/// Ids of a page.
const PAGE: usize = 1024;

/// What a page takes.
const PAGE_BYTES: usize = PAGE * size_of::<u32>();

/// Ids below this may be in pages: the list of pages is one mebibyte at most.
const IDS_IN_PAGES: u64 = 1 << 27;

/// Pages may have so few vertices each, on average: then they take as much as a table.
const VERTICES_PER_PAGE: usize = PAGE_BYTES / 32;

/// Pages for which that does not matter, 256 KiB.
const PAGES_FREE: usize = 64;

/// Counts by vertex.
#[derive(Debug, Default)]
pub struct VertexCounts {
    /// In the order in which they came first.
    entries: Chunks<(VertexId, u64)>,
    places: Places,
    hashes: DefaultHashBuilder,
    held: Held,
}

/// Where the entries of vertices are.
#[derive(Debug)]
enum Places {
    /// By id: one more than the place, or 0.
    Pages {
        pages: Vec<Option<Box<[u32; PAGE]>>>,
        used: usize,
    },
    Table(Positions),
}

impl Default for Places {
    fn default() -> Places {
        Places::Pages { pages: Vec::new(), used: 0 }
    }
}

impl VertexCounts {
    /// Adds to the count of a vertex. Cost: constant on average.
    ///
    /// Errors: `Budget` or `ServerMemory` if it is new and there is no room; it is not added then.
    #[inline]
    pub fn add(&mut self, vertex: VertexId, count: u64, account: &MemoryAccount) -> Result<()> {
        match self.place(vertex) {
            Some(place) => {
                if let Some(own) = self.entries.part_mut(place, |(_, own)| own) {
                    *own = own.saturating_add(count);
                }
                Ok(())
            }
            None => self.push(vertex, count, account),
        }
    }

    #[inline]
    fn place(&self, vertex: VertexId) -> Option<usize> {
        match &self.places {
            Places::Pages { pages, .. } => {
                let page = pages.get((vertex.0 / PAGE as u64) as usize)?.as_ref()?;
                (page[vertex.0 as usize % PAGE] as usize).checked_sub(1)
            }
            Places::Table(table) => {
                let is_it = |place| self.entries.get(place).is_some_and(|own| own.0 == vertex);
                table.find(self.hashes.hash_one(vertex), is_it)
            }
        }
    }

    #[cold]
    fn push(&mut self, vertex: VertexId, count: u64, account: &MemoryAccount) -> Result<()> {
        self.held.add(account, size_of::<(VertexId, u64)>())?;
        let place = self.entries.len();
        if !self.put_in_page(vertex, place, account)? {
            self.leave_pages(account)?;
            if let Places::Table(table) = &mut self.places {
                table.insert(self.hashes.hash_one(vertex), place, &mut self.held, account)?;
            }
        }
        self.entries.push_back((vertex, count));
        Ok(())
    }

    /// Notes a place in the page of its vertex; false if there is to be no such page.
    fn put_in_page(&mut self, vertex: VertexId, place: usize, account: &MemoryAccount) -> Result<bool> {
        let Places::Pages { pages, used } = &mut self.places else { return Ok(false) };
        let (number, last) = ((vertex.0 / PAGE as u64) as usize, u32::try_from(place + 1));
        let (Ok(last), true) = (last, vertex.0 < IDS_IN_PAGES) else { return Ok(false) };
        if pages.get(number).is_none_or(Option::is_none) {
            if *used >= PAGES_FREE.max(place / VERTICES_PER_PAGE) {
                return Ok(false);
            }
            if pages.len() <= number {
                let more = (number + 1).next_power_of_two() - pages.len();
                self.held.add(account, more * size_of::<Option<Box<[u32; PAGE]>>>())?;
                pages.resize_with(pages.len() + more, || None);
            }
            self.held.add(account, PAGE_BYTES)?;
            pages[number] = Some(Box::new([0; PAGE]));
            *used += 1;
        }
        if let Some(page) = &mut pages[number] {
            page[vertex.0 as usize % PAGE] = last;
        }
        Ok(true)
    }

    /// Goes over to a table, if there is none yet.
    fn leave_pages(&mut self, account: &MemoryAccount) -> Result<()> {
        let Places::Pages { pages, used } = &self.places else { return Ok(()) };
        let bytes = used * PAGE_BYTES + pages.len() * size_of::<Option<Box<[u32; PAGE]>>>();
        let mut table = Positions::default();
        for (place, (vertex, _)) in self.entries.iter().enumerate() {
            table.insert(self.hashes.hash_one(vertex), place, &mut self.held, account)?;
        }
        self.places = Places::Table(table);
        self.held.subtract(bytes);
        Ok(())
    }

    /// Takes the count of the vertex at a place in the order, which stays there.
    pub fn take_count(&mut self, place: usize) -> Option<(VertexId, u64)> {
        let vertex = self.entries.get(place)?.0;
        self.entries.part_mut(place, |(_, count)| count).map(|count| (vertex, std::mem::take(count)))
    }

    /// How many vertices there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Takes the first; memory goes as they do. Nothing may be added any more until all are taken.
    pub fn pop_front(&mut self) -> Option<(VertexId, u64)> {
        let first = self.entries.pop_front();
        if self.entries.is_empty() {
            self.places = Places::default();
        }
        first
    }

    /// What its entries hold.
    pub fn held(&mut self) -> &mut Held {
        &mut self.held
    }

    /// Forgets all and hands back what it took.
    pub fn clear(&mut self) {
        *self = VertexCounts::default();
    }

    /// Hands all over to be freed in pieces.
    pub fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        self.places = Places::default();
        surrender(std::mem::take(&mut self.entries), &mut self.held, remains);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::random::Random;

    #[test]
    fn counts_are_those_of_a_map_and_come_in_order() {
        for (seed, span) in [1u64 << 3, 1 << 12, 1 << 22, 1 << 45, u64::MAX].into_iter().enumerate() {
            let mut random = Random::seeded(seed as u64);
            let (mut counts, account) = (VertexCounts::default(), MemoryAccount::new(1 << 30));
            let (mut order, mut model) = (Vec::new(), HashMap::<u64, u64>::new());
            let scale = (span / (1 << 14)).max(1);
            for _ in 0..50_000 {
                let id = random.below(1 << 14) as u64 % span * scale;
                let bulk = 1 + random.below(3) as u64;
                counts.add(VertexId(id), bulk, &account).expect("room");
                if !model.contains_key(&id) {
                    order.push(id);
                }
                *model.entry(id).or_default() += bulk;
            }
            assert_eq!(matches!(counts.places, Places::Table(_)), span >= 1 << 22, "seed {seed}, {span}");
            assert_eq!(counts.len(), order.len());
            assert!(account.used_bytes() >= order.len() * size_of::<(VertexId, u64)>());
            for id in order {
                assert_eq!(counts.pop_front(), Some((VertexId(id), model[&id])), "seed {seed}, {span}");
            }
            assert!(counts.is_empty() && counts.pop_front().is_none());
            counts.clear();
            assert_eq!(account.used_bytes(), 0);
        }
    }

    #[test]
    fn growing_ends_at_the_limit() {
        for step in [1, 1 << 40] {
            let (mut counts, account) = (VertexCounts::default(), MemoryAccount::new(1 << 20));
            let added = (0..1_000_000).take_while(|id| counts.add(VertexId(id * step), 1, &account).is_ok()).count();
            assert!((1 << 14..1 << 16).contains(&added), "{added}");
        }
    }
}
