//! Merging equal traversers into one with the sum of their bulks.

use std::hash::{DefaultHasher, Hash, Hasher};

use hashbrown::HashTable;

use crate::context::{QueryContext, Result};
use crate::traverser::Traverser;

/// A set of traversers in order of arrival; equal ones are merged.
///
/// Two traversers are equal if they are at the same object with the same path and loops, and their sacks can be merged.
/// Cost: O(1) per traverser; an entry is a traverser and 12 bytes.
#[derive(Default)]
pub struct MergingSet {
    all: Vec<Traverser>,
    index: HashTable<u32>,
}

impl MergingSet {
    /// How many different traversers there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Adds a traverser, or its bulk and sack to the one it equals.
    pub fn add(&mut self, traverser: Traverser, context: &mut QueryContext) -> Result<()> {
        let merge = context.sack.as_ref().and_then(|sack| sack.merge);
        let unmergeable = traverser.sack().is_some() && merge.is_none();
        let hash = hash(&traverser);
        if !unmergeable {
            let found = self.index.find(hash, |&position| {
                let other = &self.all[position as usize];
                other.value == traverser.value && same_place(other, &traverser)
            });
            if let Some(&position) = found {
                let other = &mut self.all[position as usize];
                if context.adds_bulk {
                    other.bulk = other.bulk.saturating_add(traverser.bulk);
                }
                if let (Some(operator), Some(a), Some(b)) = (merge, other.sack().cloned(), traverser.sack()) {
                    let merged = operator.apply(a, b)?;
                    other.set_sack(merged);
                }
                return Ok(());
            }
        }
        context.memory.adjust(Self::ENTRY_BYTES)?;
        let position = u32::try_from(self.all.len()).expect("the memory budget is smaller");
        self.all.push(traverser);
        if !unmergeable {
            let all = &self.all;
            self.index.insert_unique(hash, position, |&position| self::hash(&all[position as usize]));
        }
        Ok(())
    }

    const ENTRY_BYTES: isize = (size_of::<Traverser>() + 12) as isize;

    /// Takes all, in order of arrival.
    pub fn drain(&mut self, context: &mut QueryContext) -> Result<Vec<Traverser>> {
        self.index.clear();
        context.memory.adjust(-(self.all.len() as isize * Self::ENTRY_BYTES))?;
        Ok(std::mem::take(&mut self.all))
    }

    /// Forgets all and hands back what they took.
    pub fn release(&mut self, context: &mut QueryContext) {
        // Handing back cannot pass a limit.
        let _ = context.memory.adjust(-(self.all.len() as isize * Self::ENTRY_BYTES));
        self.clear();
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.index.clear();
        self.all.clear();
    }
}

fn hash(traverser: &Traverser) -> u64 {
    let mut hasher = DefaultHasher::new();
    traverser.value.hash(&mut hasher);
    // The last objects of the path tell most different paths apart.
    for link in traverser.path_links().take(4) {
        link.value.hash(&mut hasher);
    }
    hasher.finish()
}

fn same_place(a: &Traverser, b: &Traverser) -> bool {
    match (&a.extra, &b.extra) {
        (None, None) => true,
        (Some(a), Some(b)) => a.loops == b.loops && a.path == b.path,
        _ => false,
    }
}
