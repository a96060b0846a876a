//! Merging equal traversers into one with the sum of their bulks.

use std::hash::{BuildHasher, Hash, Hasher};

use ficus_dataflow::Remains;
use hashbrown::DefaultHashBuilder;

use crate::budget::Held;
use crate::context::{Cx, QueryContext, Result, Traversers};
use crate::flat::Chunks;
use crate::growing::{self, Positions};
use crate::traverser::Traverser;

/// A set of traversers in order of arrival; equal ones are merged.
///
/// Two traversers are equal if they are at the same object with the same path and loops, and their sacks can be merged.
/// Cost: O(1) per traverser; an entry is a traverser and about 12 bytes. It grows without copying what it holds.
#[derive(Default)]
pub struct MergingSet {
    all: Chunks<Traverser>,
    index: Positions,
    /// Whether some are on their way out.
    is_leaving: bool,
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

    /// All, in order of arrival; none is on its way out.
    pub fn iter(&self) -> impl Iterator<Item = &Traverser> {
        self.all.iter()
    }

    /// One by its place in the order of arrival.
    pub fn get(&self, place: usize) -> Option<&Traverser> {
        self.all.get(place)
    }

    /// Adds a traverser, or its bulk and sack to the one it equals.
    pub fn add(&mut self, traverser: Traverser, context: &mut QueryContext) -> Result<()> {
        let merge = context.sack.as_ref().and_then(|sack| sack.merge);
        let unmergeable = traverser.sack().is_some() && merge.is_none();
        let hash = hash(&self.hashes, &traverser);
        if !unmergeable {
            let all = &self.all;
            let is_equal = |other: &Traverser| other.value == traverser.value && same_place(other, &traverser);
            let found = self.index.find(hash, |position| all.get(position).is_some_and(is_equal));
            if let Some(mut other) = found.and_then(|position| self.all.get_mut(position)) {
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
        self.held.add(&context.memory, traverser.kept_bytes())?;
        if !unmergeable {
            self.index.insert(hash, self.all.len(), &mut self.held, &context.memory)?;
        }
        self.all.push_back(traverser);
        Ok(())
    }

    /// Moves traversers out, in order of arrival, until the turn is over; true when all are out. `begin` is called before the first leaves.
    /// Nothing is added in between.
    pub fn leave(
        &mut self,
        out: &mut Traversers,
        cx: &mut Cx<'_>,
        begin: impl FnOnce(&mut Chunks<Traverser>) -> Result<()>,
    ) -> Result<bool> {
        if !self.is_leaving {
            begin(&mut self.all)?;
            self.index.clear();
            self.is_leaving = true;
        }
        while !self.all.is_empty() {
            if cx.should_pause(out) {
                return Ok(false);
            }
            out.extend(self.all.pop_front());
        }
        self.is_leaving = false;
        self.held.give_back();
        Ok(true)
    }

    /// Whether some are out and some are not.
    pub fn is_leaving(&self) -> bool {
        self.is_leaving
    }

    /// Forgets all and hands back what they took.
    pub fn clear(&mut self) {
        *self = MergingSet::default();
    }

    /// Hands all over to be freed in pieces.
    pub fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        self.index.clear();
        growing::surrender(std::mem::take(&mut self.all), &mut self.held, remains);
    }
}

fn hash(hashes: &DefaultHashBuilder, traverser: &Traverser) -> u64 {
    let mut hasher = hashes.build_hasher();
    traverser.value.hash(&mut hasher);
    // The last objects of the path tell most different paths apart.
    for passed in traverser.way().take(4) {
        passed.value.hash(&mut hasher);
    }
    hasher.finish()
}

fn same_place(a: &Traverser, b: &Traverser) -> bool {
    let same_loops = || match (&a.extra, &b.extra) {
        (None, None) => true,
        (Some(a), Some(b)) => a.around == b.around,
        _ => false,
    };
    a.innermost == b.innermost && same_loops() && a.came_as(b)
}
