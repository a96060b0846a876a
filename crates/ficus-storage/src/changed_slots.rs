//! Which slots of a tablet the overlay speaks of: one bit test decides that a read is one of plain columns.

use std::sync::Arc;

/// Slots of a chunk, as a power of two: a change copies 512 bytes of bits and one counter for every chunk there is.
const CHUNK_BITS: u32 = 12;
const CHUNK_WORDS: usize = (1 << CHUNK_BITS) / 64;

/// Bits of neighbouring slots. On cache lines of its own, as `Chunks`: copies change the counters, and readers would wait for the lines.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Chunk([u64; CHUNK_WORDS]);

#[derive(Clone, Debug, Default)]
#[repr(align(64))]
struct Chunks(Vec<Option<Arc<Chunk>>>);

/// A set of slots that only grows. A clone is one counter.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChangedSlots {
    chunks: Arc<Chunks>,
}

impl ChangedSlots {
    /// True if no slot is in the set.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.0.is_empty()
    }

    /// True if the slot is in the set.
    #[inline]
    pub(crate) fn contains(&self, slot: u64) -> bool {
        match self.chunks.0.get((slot >> CHUNK_BITS) as usize) {
            Some(Some(chunk)) => chunk.0[slot as usize / 64 % CHUNK_WORDS] >> (slot % 64) & 1 == 1,
            _ => false,
        }
    }

    /// Which of the 64 slots from `first` on, a multiple of 64, are in the set, as bits.
    #[inline]
    pub(crate) fn word(&self, first: u64) -> u64 {
        match self.chunks.0.get((first >> CHUNK_BITS) as usize) {
            Some(Some(chunk)) => chunk.0[first as usize / 64 % CHUNK_WORDS],
            _ => 0,
        }
    }

    /// All slots of the set, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> {
        let chunks = self.chunks.0.iter().zip(0u64..).filter_map(|(chunk, number)| Some((chunk.as_deref()?, number)));
        let words = chunks.flat_map(|(chunk, number)| {
            chunk.0.iter().zip(0u64..).map(move |(word, place)| (*word, (number << CHUNK_BITS) + place * 64))
        });
        words.flat_map(|(word, first)| {
            let bits =
                std::iter::successors(Some(word), |left| Some(left & left.wrapping_sub(1)).filter(|left| *left != 0));
            bits.filter(|left| *left != 0).map(move |left| first + u64::from(left.trailing_zeros()))
        })
    }

    /// Adds a slot.
    pub(crate) fn insert(&mut self, slot: u64) {
        if self.contains(slot) {
            return;
        }
        let Chunks(chunks) = Arc::make_mut(&mut self.chunks);
        let position = (slot >> CHUNK_BITS) as usize;
        if chunks.len() <= position {
            chunks.resize(position + 1, None);
        }
        let chunk = chunks[position].get_or_insert_with(|| Arc::new(Chunk([0; CHUNK_WORDS])));
        Arc::make_mut(chunk).0[slot as usize / 64 % CHUNK_WORDS] |= 1 << (slot % 64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_keep_their_slots() {
        let slots = [0u64, 63, 64, 4095, 4096, 70_000, 1 << 24];
        let mut changed = ChangedSlots::default();
        let mut versions = Vec::new();
        for slot in slots {
            assert!(!changed.contains(slot));
            versions.push(changed.clone());
            changed.insert(slot);
            changed.insert(slot);
        }
        for (position, version) in versions.iter().enumerate() {
            let found: Vec<u64> = slots.into_iter().filter(|slot| version.contains(*slot)).collect();
            assert_eq!(found, slots[..position]);
            assert_eq!(version.iter().collect::<Vec<u64>>(), slots[..position]);
        }
    }
}
