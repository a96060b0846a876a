//! Merging equal traversers into one with the sum of their bulks.

use std::hash::{BuildHasher, Hash, Hasher};

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::budget::Held;
use crate::context::{Cx, QueryContext, Result, Traversers};
use crate::traverser::Traverser;

/// A set of traversers in order of arrival; equal ones are merged.
///
/// Two traversers are equal if they are at the same object with the same path and loops, and their sacks can be merged.
/// Cost: O(1) per traverser; an entry is a traverser and 12 bytes.
#[derive(Default)]
pub struct MergingSet {
    all: Vec<Traverser>,
    index: HashTable<u32>,
    /// What is on its way out.
    leaving: Option<std::vec::IntoIter<Traverser>>,
    held: Held,
    hashes: DefaultHashBuilder,
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
        let hash = hash(&self.hashes, &traverser);
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
        self.held.make_room(&context.memory, self.all.len(), self.all.capacity(), size_of::<Traverser>() + 12)?;
        self.held.add(&context.memory, traverser.kept_bytes() - size_of::<Traverser>())?;
        let position = u32::try_from(self.all.len()).expect("the memory budget is smaller");
        self.all.push(traverser);
        if !unmergeable {
            let (all, hashes) = (&self.all, &self.hashes);
            self.index.insert_unique(hash, position, |&position| self::hash(hashes, &all[position as usize]));
        }
        Ok(())
    }

    /// Moves traversers out, in order of arrival, until the turn is over; true when all are out. `begin` is called before the first leaves.
    /// Nothing is added in between.
    pub fn leave(
        &mut self,
        out: &mut Traversers,
        cx: &mut Cx<'_>,
        begin: impl FnOnce(&mut [Traverser]) -> Result<()>,
    ) -> Result<bool> {
        if self.leaving.is_none() {
            begin(&mut self.all)?;
            self.index = HashTable::new();
            self.leaving = Some(std::mem::take(&mut self.all).into_iter());
        }
        let leaving = self.leaving.as_mut().expect("set above");
        while leaving.len() > 0 {
            if cx.should_pause(out) {
                return Ok(false);
            }
            out.extend(leaving.next());
        }
        self.leaving = None;
        self.held.give_back();
        Ok(true)
    }

    /// Whether some are out and some are not.
    pub fn is_leaving(&self) -> bool {
        self.leaving.is_some()
    }

    /// Forgets all and hands back what they took.
    pub fn clear(&mut self) {
        *self = MergingSet::default();
    }
}

fn hash(hashes: &DefaultHashBuilder, traverser: &Traverser) -> u64 {
    let mut hasher = hashes.build_hasher();
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
