//! Sets of vertices that are asked often.

use ficus_model::VertexId;
use ficus_storage::AtVertex;
use hashbrown::HashSet;

use crate::budget::{Held, MemoryAccount};

/// An entry of a table with its share of what is free.
const ENTRY_BYTES: usize = 2 * size_of::<VertexId>();

/// A bitmap may have this many words, 1 MiB.
const WORDS_FREE: usize = 1 << 17;

/// One that grows, this many, 64 KiB.
const WORDS_FREE_GROWING: usize = 1 << 13;

/// Or this many for each vertex of the set: not more than a table takes.
const WORDS_PER_ENTRY: usize = ENTRY_BYTES / size_of::<u64>();

/// Vertices that pass a test. Ids lie close together, so a bitmap from the least to the greatest is small unless the graph is large
/// and the set is not; then it is a table.
#[derive(Debug, Default)]
pub struct VertexSet {
    kept: Kept,
    count: usize,
    /// What it takes.
    _held: Held,
}

#[derive(Clone, Debug)]
enum Kept {
    /// Bit `id - first`.
    Bitmap {
        first: u64,
        words: Vec<u64>,
    },
    Table(HashSet<VertexId>),
}

impl Default for Kept {
    fn default() -> Kept {
        Kept::Bitmap { first: 0, words: Vec::new() }
    }
}

/// The memory of a clone is that of whoever makes it.
impl Clone for VertexSet {
    fn clone(&self) -> VertexSet {
        VertexSet { kept: self.kept.clone(), count: self.count, _held: Held::default() }
    }
}

impl VertexSet {
    /// A set of vertices, on the account; `None` if that has no room.
    pub(super) fn of(vertices: Vec<VertexId>, memory: &MemoryAccount) -> Option<VertexSet> {
        let mut held = Held::default();
        let first = vertices.iter().map(|vertex| vertex.0).min().unwrap_or(0);
        let last = vertices.iter().map(|vertex| vertex.0).max().unwrap_or(0);
        let words = usize::try_from((last - first) / 64).unwrap_or(usize::MAX).saturating_add(1);
        if words > WORDS_FREE.max(vertices.len().saturating_mul(WORDS_PER_ENTRY)) {
            held.add(memory, vertices.len() * ENTRY_BYTES).ok()?;
            let table: HashSet<VertexId> = vertices.into_iter().collect();
            return Some(VertexSet { count: table.len(), kept: Kept::Table(table), _held: held });
        }
        held.add(memory, words * size_of::<u64>()).ok()?;
        let mut bits = vec![0u64; words];
        for vertex in vertices {
            let bit = vertex.0 - first;
            bits[(bit / 64) as usize] |= 1 << (bit % 64);
        }
        let count = bits.iter().map(|word| word.count_ones() as usize).sum();
        Some(VertexSet { kept: Kept::Bitmap { first, words: bits }, count, _held: held })
    }

    /// Adds a vertex. Whoever does so counts [`ENTRY_BYTES`] for each and [`WORDS_FREE_GROWING`] words. Cost: constant on average.
    pub fn insert(&mut self, vertex: VertexId) {
        if let Kept::Bitmap { first, words } = &mut self.kept
            && !make_room(first, words, vertex.0, self.count)
        {
            self.kept = Kept::Table(self.iter().collect());
        }
        let is_new = match &mut self.kept {
            Kept::Bitmap { first, words } => {
                let bit = vertex.0 - *first;
                let word = &mut words[(bit / 64) as usize];
                let before = *word;
                *word |= 1 << (bit % 64);
                *word != before
            }
            Kept::Table(table) => table.insert(vertex),
        };
        self.count += usize::from(is_new);
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
        bits.chain(table.into_iter().flatten().copied())
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

/// Makes a bitmap of `count` members that begins at `first`, a multiple of 64, reach to a number; false if that is too far.
fn make_room(first: &mut u64, words: &mut Vec<u64>, number: u64, count: usize) -> bool {
    if words.is_empty() {
        *first = number & !63;
    }
    let length = words.len() as u64;
    let (before, behind) = match number.checked_sub(*first) {
        Some(bit) => (0, (bit / 64 + 1).saturating_sub(length)),
        None => ((*first - number).div_ceil(64), 0),
    };
    if before + behind == 0 {
        return true;
    }
    let most = WORDS_FREE_GROWING.max(count.saturating_mul(WORDS_PER_ENTRY)) as u64;
    if length.saturating_add(before).saturating_add(behind) > most {
        return false;
    }
    // Twice as far as needed, so that growing seldom copies, if there is so much to the left and below the limit.
    let spare = length.min(most - length - before - behind);
    let before = if before > 0 { before + spare.min(*first / 64 - before) } else { 0 };
    let behind = if behind > 0 { behind + spare } else { 0 };
    words.splice(0..0, std::iter::repeat_n(0, before as usize));
    words.resize((length + before + behind) as usize, 0);
    *first -= before * 64;
    true
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
        for span in [1u64 << 4, 1 << 12, 1 << 24, 1 << 50] {
            let (mut set, mut model) = (VertexSet::default(), std::collections::BTreeSet::new());
            let start = random() % (1 << 40);
            for _ in 0..3_000 {
                let vertex = VertexId(start + random() % span);
                set.insert(vertex);
                model.insert(vertex);
                let asked = VertexId(start + random() % span);
                assert_eq!(set.contains(asked), model.contains(&asked));
            }
            assert_eq!(matches!(set.kept, Kept::Table(_)), span > 1 << 19);
            let mut listed: Vec<VertexId> = set.iter().collect();
            listed.sort_unstable();
            assert_eq!((listed, set.len()), (model.iter().copied().collect(), model.len()));
        }
        let mut near_zero = VertexSet::default();
        [70, 65, 3, 0].map(VertexId).into_iter().for_each(|vertex| near_zero.insert(vertex));
        assert_eq!(near_zero.iter().collect::<Vec<_>>(), [0, 3, 65, 70].map(VertexId));
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
        assert!(VertexSet::of(vec![VertexId(0), VertexId(1 << 20)], &MemoryAccount::new(1_000)).is_none());
    }
}
