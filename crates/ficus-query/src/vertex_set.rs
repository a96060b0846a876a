//! Sets of vertices that are asked often.

use ficus_dataflow::Remains;
use ficus_model::{EdgeId, VertexId};
use ficus_storage::AtVertex;

use crate::budget::{Held, MemoryAccount};
use crate::context::Result;
use crate::growing::{self, Seen};

/// An entry of a table with its share of what is free.
const ENTRY_BYTES: usize = 2 * size_of::<VertexId>();

/// A bitmap may have this many words, 1 MiB.
const WORDS_FREE: usize = 1 << 17;

/// One that grows, this many, 64 KiB.
const WORDS_FREE_GROWING: usize = 1 << 13;

/// And never more than these, 8 MiB: copying them as it grows takes a millisecond.
const WORDS_MAX_GROWING: usize = 1 << 20;

/// Or this many for each vertex of the set: not more than a table takes.
const WORDS_PER_ENTRY: usize = ENTRY_BYTES / size_of::<u64>();

/// Vertices of a table from which on it is looked at, each time it has twice as many, whether they have come to lie close enough together for a bitmap.
const DENSE_MIN: usize = 1 << 10;

/// Words whose memory stays when a set is cleared, for the next scope instance.
const WORDS_KEPT: usize = 64;

/// Vertices that pass a test, or that were met. Ids lie close together, so a bitmap from the least to the greatest is small unless the graph is
/// large and the set is not; then it is a table, as long as the set is small.
#[derive(Debug, Default)]
pub struct VertexSet {
    kept: Kept,
    count: usize,
    /// What the bitmap takes.
    held: Held,
}

#[derive(Debug)]
enum Kept {
    /// Bit `id - first`.
    Bitmap {
        first: u64,
        words: Vec<u64>,
    },
    Table(Seen<VertexId>),
}

impl Default for Kept {
    fn default() -> Kept {
        Kept::Bitmap { first: 0, words: Vec::new() }
    }
}

impl VertexSet {
    /// A set of vertices, on the account.
    ///
    /// Errors: `Budget` or `ServerMemory` if that has no room.
    pub fn of(vertices: Vec<VertexId>, memory: &MemoryAccount) -> Result<VertexSet> {
        let mut held = Held::default();
        let first = vertices.iter().map(|vertex| vertex.0).min().unwrap_or(0);
        let last = vertices.iter().map(|vertex| vertex.0).max().unwrap_or(0);
        let words = usize::try_from((last - first) / 64).unwrap_or(usize::MAX).saturating_add(1);
        if words > WORDS_FREE.max(vertices.len().saturating_mul(WORDS_PER_ENTRY)) {
            let (mut table, mut count) = (Seen::default(), 0);
            for vertex in vertices {
                count += usize::from(table.insert(vertex, |_| 0, memory)?);
            }
            return Ok(VertexSet { kept: Kept::Table(table), count, held });
        }
        held.add(memory, words * size_of::<u64>())?;
        let mut bits = vec![0u64; words];
        for vertex in vertices {
            let bit = vertex.0 - first;
            bits[(bit / 64) as usize] |= 1 << (bit % 64);
        }
        let count = bits.iter().map(|word| word.count_ones() as usize).sum();
        Ok(VertexSet { kept: Kept::Bitmap { first, words: bits }, count, held })
    }

    /// Adds a vertex; whether it is new. Cost: constant on average.
    ///
    /// Errors: `Budget` or `ServerMemory`; it is not added then.
    #[inline]
    pub fn insert(&mut self, vertex: VertexId, memory: &MemoryAccount) -> Result<bool> {
        let is_new = loop {
            match &mut self.kept {
                Kept::Bitmap { first, words } => {
                    // What is below the first wraps round and is behind the end.
                    let bit = vertex.0.wrapping_sub(*first);
                    if let Some(word) = words.get_mut((bit / 64) as usize) {
                        let before = *word;
                        *word |= 1 << (bit % 64);
                        break *word != before;
                    }
                    self.make_room(vertex, memory)?;
                }
                Kept::Table(table) => break table.insert(vertex, |_| 0, memory)?,
            }
        };
        self.count += usize::from(is_new);
        if is_new && self.count >= DENSE_MIN && self.count.is_power_of_two() {
            self.leave_table(memory)?;
        }
        Ok(is_new)
    }

    /// As [`VertexSet::insert`], of a set that holds edges and nothing else: it knows numbers, and does not ask what they are of.
    ///
    /// Errors: as there.
    #[inline]
    pub fn insert_edge(&mut self, edge: EdgeId, memory: &MemoryAccount) -> Result<bool> {
        self.insert(VertexId(edge.0), memory)
    }

    /// Makes a bitmap of a table whose vertices have become as many as one may have words for. Cost: a look at all of them, each time that there are
    /// twice as many.
    ///
    /// Errors: `Budget` or `ServerMemory`; nothing is changed then.
    #[cold]
    fn leave_table(&mut self, memory: &MemoryAccount) -> Result<()> {
        let Kept::Table(table) = &mut self.kept else { return Ok(()) };
        let (mut least, mut greatest) = (u64::MAX, 0);
        table.iter().for_each(|vertex| (least, greatest) = (least.min(vertex.0), greatest.max(vertex.0)));
        let (mut first, mut words) = (least & !63, Vec::new());
        // The bitmap begins at its first word, and grows up to its last one.
        for number in [least, greatest] {
            if !grow(&mut first, &mut words, number, self.count, &mut self.held, memory)? {
                self.held.give_back();
                return Ok(());
            }
        }
        for vertex in table.iter() {
            let bit = vertex.0 - first;
            words[(bit / 64) as usize] |= 1 << (bit % 64);
        }
        table.clear();
        self.kept = Kept::Bitmap { first, words };
        Ok(())
    }

    /// Makes the bitmap reach to a vertex, or a table of it if that is too far.
    #[cold]
    fn make_room(&mut self, vertex: VertexId, memory: &MemoryAccount) -> Result<()> {
        let Kept::Bitmap { first, words } = &mut self.kept else { return Ok(()) };
        if !grow(first, words, vertex.0, self.count, &mut self.held, memory)? {
            let mut table = Seen::default();
            for vertex in self.iter() {
                table.insert(vertex, |_| 0, memory)?;
            }
            self.kept = Kept::Table(table);
            self.held.give_back();
        }
        Ok(())
    }

    /// Forgets all, hands back what it took, and gives the memory back unless it is little.
    pub fn clear(&mut self) {
        match &mut self.kept {
            Kept::Bitmap { words, .. } if words.capacity() <= WORDS_KEPT => words.clear(),
            kept => *kept = Kept::default(),
        }
        self.count = 0;
        self.held.give_back();
    }

    /// Hands all over to be freed in pieces.
    pub fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        self.count = 0;
        match std::mem::take(&mut self.kept) {
            Kept::Bitmap { words, .. } => growing::surrender(Bits(words), &mut self.held, remains),
            Kept::Table(mut table) => table.surrender(remains),
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many vertices it has.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Its vertices, in no order that means anything. Cost: a look at the whole bitmap or table.
    pub fn iter(&self) -> impl Iterator<Item = VertexId> {
        let (words, first, table) = match &self.kept {
            Kept::Bitmap { first, words } => (&words[..], *first, None),
            Kept::Table(table) => (&[][..], 0, Some(table)),
        };
        let bits = words.iter().enumerate().flat_map(move |(place, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| u64::from(left.trailing_zeros()))?;
                left &= left - 1;
                Some(VertexId(first + place as u64 * 64 + bit))
            })
        });
        bits.chain(table.into_iter().flat_map(Seen::iter).copied())
    }

    /// Whether a vertex is in it. Cost: one look at the memory.
    #[inline]
    pub fn contains(&self, vertex: VertexId) -> bool {
        match &self.kept {
            Kept::Bitmap { first, words } => has_bit(*first, words, vertex),
            Kept::Table(table) => table.contains(&vertex),
        }
    }

    /// Drops vertices that are not in it, or those that are if `negated`.
    pub fn drop_from<V: AtVertex>(&self, vertices: &mut Vec<V>, negated: bool) {
        match &self.kept {
            Kept::Bitmap { first, words } => {
                // Without a branch to guess, so that many looks are under way at once.
                let mut kept = 0;
                for index in 0..vertices.len() {
                    let vertex = vertices[index];
                    vertices[kept] = vertex;
                    kept += usize::from(has_bit(*first, words, vertex.vertex()) != negated);
                }
                vertices.truncate(kept);
            }
            Kept::Table(table) => vertices.retain(|vertex| table.contains(&vertex.vertex()) != negated),
        }
    }
}

/// The words of a bitmap, which go at once.
struct Bits(Vec<u64>);

impl Remains for Bits {
    fn free_some(&mut self, pieces: usize) -> usize {
        /// Words that take as long as a row: their pages are given back.
        const WORDS_OF_PIECE: usize = 4096;
        let words = std::mem::take(&mut self.0).len();
        pieces.saturating_sub(words / WORDS_OF_PIECE)
    }

    fn pieces(&self) -> usize {
        1
    }
}

/// Makes a bitmap of `count` members that begins at `first`, a multiple of 64, reach to a number; false if that is too far.
///
/// Errors: `Budget` or `ServerMemory`; nothing is changed then.
fn grow(
    first: &mut u64,
    words: &mut Vec<u64>,
    number: u64,
    count: usize,
    held: &mut Held,
    memory: &MemoryAccount,
) -> Result<bool> {
    /// Words that it grows by at least, as long as that is allowed.
    const WORDS_AT_LEAST: u64 = 8;
    let length = words.len() as u64;
    if length == 0 {
        *first = number & !63;
    }
    let (before, behind) = match number.checked_sub(*first) {
        Some(bit) => (0, (bit / 64 + 1).saturating_sub(length)),
        None => ((*first - number).div_ceil(64), 0),
    };
    let most = WORDS_FREE_GROWING.max(count.saturating_mul(WORDS_PER_ENTRY)).min(WORDS_MAX_GROWING) as u64;
    if length.saturating_add(before).saturating_add(behind) > most {
        return Ok(false);
    }
    // Twice as far as needed, so that growing seldom copies, if there is so much to the left and below the limit.
    let spare = length.max(WORDS_AT_LEAST).min(most - length - before - behind);
    let before = if before > 0 { before + spare.min(*first / 64 - before) } else { 0 };
    let behind = if behind > 0 { behind + spare } else { 0 };
    let grown = (length + before + behind) as usize;
    memory.check_room(grown * size_of::<u64>())?;
    held.add(memory, (grown - words.len()) * size_of::<u64>())?;
    if before == 0 && words.capacity() >= grown {
        words.resize(grown, 0);
        return Ok(true);
    }
    let mut new = vec![0; grown];
    new[before as usize..][..words.len()].copy_from_slice(words);
    (*words, *first) = (new, *first - before * 64);
    Ok(true)
}

#[inline]
fn has_bit(first: u64, words: &[u64], vertex: VertexId) -> bool {
    // What is below the first wraps round and is behind the end.
    let bit = vertex.0.wrapping_sub(first);
    words.get((bit / 64) as usize).is_some_and(|word| word >> (bit % 64) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_that_grows_has_what_was_added() {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        let memory = MemoryAccount::new(usize::MAX);
        for span in [1u64 << 4, 1 << 12, 1 << 24, 1 << 50] {
            let (mut set, mut model) = (VertexSet::default(), std::collections::BTreeSet::new());
            let start = random() % (1 << 40);
            for _ in 0..3_000 {
                let vertex = VertexId(start + random() % span);
                assert_eq!(set.insert(vertex, &memory).unwrap(), model.insert(vertex));
                let asked = VertexId(start + random() % span);
                assert_eq!(set.contains(asked), model.contains(&asked));
            }
            assert_eq!(matches!(set.kept, Kept::Table(_)), span > 1 << 19);
            let mut listed: Vec<VertexId> = set.iter().collect();
            listed.sort_unstable();
            assert_eq!((listed, set.len()), (model.iter().copied().collect(), model.len()));
            // What is cleared or surrendered takes nothing, and is used again.
            let mut remains = Vec::new();
            for surrenders in [false, true] {
                assert!(memory.used_bytes() > 0);
                if surrenders {
                    set.surrender(&mut remains)
                } else {
                    set.clear()
                };
                remains.clear();
                assert_eq!((set.len(), set.iter().count(), memory.used_bytes()), (0, 0, 0));
                assert!(set.insert(VertexId(start + 70), &memory).unwrap());
                assert!(!set.insert(VertexId(start + 70), &memory).unwrap());
            }
        }
        // What began far apart is a bitmap once it lies close together.
        let (mut filling, mut order) = (VertexSet::default(), Vec::new());
        for round in 0..64_u64 {
            order.extend((0..1 << 10).map(|place| VertexId(64 * ((place * 769) % (1 << 10) * 64 + round) + round)));
        }
        for (added, vertex) in order.iter().enumerate() {
            assert!(filling.insert(*vertex, &memory).unwrap() && !filling.insert(*vertex, &memory).unwrap());
            if added == 20_000 {
                assert!(matches!(filling.kept, Kept::Table(_)));
            }
        }
        assert!(matches!(filling.kept, Kept::Bitmap { .. }));
        let (mut listed, bytes) = (filling.iter().collect::<Vec<_>>(), memory.used_bytes());
        listed.sort_unstable();
        order.sort_unstable();
        assert_eq!((listed, filling.len()), (order.clone(), order.len()));
        assert!((1 << 19..1 << 20).contains(&bytes), "{bytes}");
        filling.clear();
        assert_eq!(memory.used_bytes(), 0);
        let mut near_zero = VertexSet::default();
        for vertex in [70, 65, 3, 0].map(VertexId) {
            assert!(near_zero.insert(vertex, &memory).unwrap());
        }
        assert_eq!(near_zero.iter().collect::<Vec<_>>(), [0, 3, 65, 70].map(VertexId));
        let small = MemoryAccount::new(2_000);
        let (mut refused, mut added) = (VertexSet::default(), 0);
        while refused.insert(VertexId(added * 64), &small).is_ok() {
            added += 1;
        }
        assert!((50..300).contains(&added), "{added}");
    }

    #[test]
    fn both_forms_know_their_members() {
        let memory = MemoryAccount::new(usize::MAX);
        let dense: Vec<VertexId> = (1_000..3_000).step_by(7).map(VertexId).collect();
        let far: Vec<VertexId> = (0..50).map(|place| VertexId(5 + (place << 40))).collect();
        for (members, is_table) in [(dense, false), (far, true), (Vec::new(), false)] {
            let set = VertexSet::of(members.clone(), &memory).unwrap();
            assert_eq!(matches!(set.kept, Kept::Table(_)), is_table);
            let mut listed: Vec<VertexId> = set.iter().collect();
            listed.sort_unstable();
            assert_eq!((listed, set.len()), (members.clone(), members.len()));
            let asked: Vec<VertexId> = members
                .iter()
                .flat_map(|own| [own.0.saturating_sub(1), own.0, own.0 + 1])
                .chain([0, u64::MAX])
                .map(VertexId)
                .collect();
            for negated in [false, true] {
                let expected: Vec<VertexId> =
                    asked.iter().copied().filter(|vertex| members.contains(vertex) != negated).collect();
                let mut left = asked.clone();
                set.drop_from(&mut left, negated);
                assert_eq!(left, expected);
                assert!(asked.iter().all(|vertex| set.contains(*vertex) == members.contains(vertex)));
            }
        }
        assert!(VertexSet::of(vec![VertexId(0), VertexId(1 << 20)], &MemoryAccount::new(1_000)).is_err());
    }
}
