//! Several values as one key of a few machine words, and counts by such keys.
//!
//! A map of what a row has under two labels takes a microsecond and more to build, to hash and to drop, and most rows have one that was there before.
//! Here each value is a word: ids of elements and small numbers are written into it, anything else becomes the number under which an equal value
//! was seen first. Two rows have equal words exactly if they have equal values as members of a map ([`ficus_model::value`]), so maps are made only of
//! the keys that leave.

use std::hash::BuildHasher;

use ficus_dataflow::{Chunks, Remains};
use ficus_model::{EdgeId, Value, VertexId};
use hashbrown::DefaultHashBuilder;

use crate::budget::{Held, MemoryAccount};
use crate::context::Result;
use crate::growing::{Keyed, Positions, Table, surrender};

/// A value, or that there is none: kind in the low bits, the rest above.
pub type Word = u64;

/// No value.
pub const ABSENT: Word = KIND_MASK;

/// Bits that say of what kind a word is.
const KIND_BITS: u32 = 3;
const KIND_MASK: u64 = (1 << KIND_BITS) - 1;

/// Kinds of words.
const VERTEX: u64 = 0;
const EDGE: u64 = 1;
const INT: u64 = 2;
const LONG: u64 = 3;
/// The number of a value that was seen.
const SEEN: u64 = 4;

/// Values that are too large for a word, by number.
#[derive(Debug, Default)]
pub struct Words {
    seen: Keyed<()>,
}

impl Words {
    /// The word of a value: that of an equal one, and of no other.
    ///
    /// Errors: `Budget` or `ServerMemory` if there is no room to remember it.
    #[inline]
    pub fn of(&mut self, value: &Value, account: &MemoryAccount) -> Result<Word> {
        let fits = |number: u64| number >> (u64::BITS - KIND_BITS) == 0;
        Ok(match value {
            Value::Vertex(vertex) if fits(vertex.0) => vertex.0 << KIND_BITS | VERTEX,
            Value::Edge(edge) if fits(edge.0) => edge.0 << KIND_BITS | EDGE,
            Value::Int(number) => u64::from(*number as u32) << KIND_BITS | INT,
            Value::Long(number) if number << KIND_BITS >> KIND_BITS == *number => (*number as u64) << KIND_BITS | LONG,
            value => (self.seen.number(value, account)? as u64) << KIND_BITS | SEEN,
        })
    }

    /// The value of a word; `None` if there is none.
    pub fn value(&self, word: Word) -> Option<Value> {
        let rest = word >> KIND_BITS;
        Some(match word & KIND_MASK {
            VERTEX => Value::Vertex(VertexId(rest)),
            EDGE => Value::Edge(EdgeId(rest)),
            INT => Value::Int(rest as u32 as i32),
            LONG => Value::Long(word as i64 >> KIND_BITS),
            SEEN => self.seen.key(rest as usize)?.clone(),
            _ => return None,
        })
    }

    /// Forgets all and hands back what it took.
    pub fn clear(&mut self) {
        self.seen.clear();
    }

    /// Hands all over to be freed in pieces.
    pub fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        self.seen.surrender(remains);
    }
}

/// How often keys of `N` words were seen, in the order in which they came first.
#[derive(Debug)]
pub struct Counts<const N: usize> {
    entries: Chunks<([Word; N], u64)>,
    index: Positions,
    hashes: DefaultHashBuilder,
    held: Held,
}

impl<const N: usize> Default for Counts<N> {
    fn default() -> Self {
        let hashes = DefaultHashBuilder::default();
        Counts { entries: Chunks::new(), index: Positions::default(), hashes, held: Held::default() }
    }
}

impl<const N: usize> Counts<N> {
    /// Adds to the count of a key.
    ///
    /// Errors: `Budget` or `ServerMemory` if it is new and there is no room; it is not added then.
    #[inline]
    pub fn add(&mut self, key: [Word; N], count: u64, account: &MemoryAccount) -> Result<()> {
        let hash = self.hashes.hash_one(key);
        let entries = &self.entries;
        match self.index.find(hash, |position| entries.get(position).is_some_and(|own| own.0 == key)) {
            Some(position) => {
                if let Some(own) = self.entries.part_mut(position, |(_, own)| own) {
                    *own = own.saturating_add(count);
                }
            }
            None => {
                self.held.add(account, size_of::<([Word; N], u64)>())?;
                self.index.insert(hash, self.entries.len(), &mut self.held, account)?;
                self.entries.push_back((key, count));
            }
        }
        Ok(())
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How often the key at a place was seen; 0 behind the last.
    pub fn count_at(&self, place: usize) -> u64 {
        self.entries.get(place).map_or(0, |(_, count)| *count)
    }

    /// Takes the first; memory goes as they do. Nothing may be added any more after this.
    pub fn pop_front(&mut self) -> Option<([Word; N], u64)> {
        self.index.clear();
        self.entries.pop_front()
    }

    /// What its entries hold.
    pub fn held(&mut self) -> &mut Held {
        &mut self.held
    }

    /// Forgets all and hands back what it took.
    pub fn clear(&mut self) {
        *self = Counts::default();
    }

    /// Hands all over to be freed in pieces.
    pub fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        self.index.clear();
        surrender(std::mem::take(&mut self.entries), &mut self.held, remains);
    }
}

/// Keys of `N` words that were seen.
///
/// Where many keys differ in one word only, those words are mostly ids that lie close together: 64 of them share an entry, with a bit for each.
#[derive(Debug)]
pub struct Distinct<const N: usize> {
    table: Table<([Word; N], u64)>,
    hashes: DefaultHashBuilder,
    held: Held,
}

impl<const N: usize> Default for Distinct<N> {
    fn default() -> Self {
        Distinct { table: Table::default(), hashes: DefaultHashBuilder::default(), held: Held::default() }
    }
}

impl<const N: usize> Distinct<N> {
    /// Adds a key; whether it is new. `last` is the word in which keys differ most, always the same.
    ///
    /// Errors: `Budget` or `ServerMemory`; it is not added then.
    #[inline]
    pub fn insert(&mut self, mut key: [Word; N], last: usize, account: &MemoryAccount) -> Result<bool> {
        /// The numbers that share an entry.
        const SHARING: u64 = 63;
        let bit = 1 << (key[last] >> KIND_BITS & SHARING);
        key[last] &= !(SHARING << KIND_BITS);
        let hash = self.hashes.hash_one(key);
        if let Some(bits) = self.table.find_part_mut(hash, |own| own.0 == key, |(_, bits)| bits) {
            let is_new = *bits & bit == 0;
            *bits |= bit;
            return Ok(is_new);
        }
        let rehash = |own: &([Word; N], u64)| self.hashes.hash_one(own.0);
        self.table.insert(hash, (key, bit), rehash, &mut self.held, account)?;
        Ok(true)
    }

    /// Forgets all and hands back what it took.
    pub fn clear(&mut self) {
        self.table.clear();
        self.held.give_back();
    }

    /// Hands all over to be freed in pieces.
    pub fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        surrender(std::mem::take(&mut self.table), &mut self.held, remains);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;

    use super::*;
    use crate::random::Random;

    fn account() -> MemoryAccount {
        MemoryAccount::new(1 << 30)
    }

    #[test]
    fn words_are_equal_exactly_if_values_are() {
        let list = |values: &[Value]| Value::List(ficus_model::Shared::new(values.to_vec()));
        let values = [
            Value::Null,
            Value::Bool(true),
            Value::Byte(1),
            Value::Short(1),
            Value::Int(1),
            Value::Int(-1),
            Value::Int(i32::MIN),
            Value::Long(1),
            Value::Long(-1),
            Value::Long(i64::MAX),
            Value::Long(i64::MIN),
            Value::Long(i64::MAX >> KIND_BITS),
            Value::Long((i64::MAX >> KIND_BITS) + 1),
            Value::Long(i64::MIN >> KIND_BITS),
            Value::Long((i64::MIN >> KIND_BITS) - 1),
            Value::Float(1.0),
            Value::Double(1.0),
            Value::Double(0.0),
            Value::Double(-0.0),
            Value::Double(f64::NAN),
            Value::Vertex(VertexId(0)),
            Value::Vertex(VertexId(1)),
            Value::Vertex(VertexId(u64::MAX)),
            Value::Edge(EdgeId(0)),
            Value::Edge(EdgeId(1)),
            Value::Edge(EdgeId(u64::MAX >> KIND_BITS)),
            Value::Edge(EdgeId(1 + (u64::MAX >> KIND_BITS))),
            Value::String(Arc::from("")),
            Value::String(Arc::from("1")),
            list(&[]),
            list(&[Value::Int(1)]),
            list(&[Value::Long(1)]),
        ];
        let (mut words, account) = (Words::default(), account());
        let first: Vec<Word> = values.iter().map(|value| words.of(value, &account).expect("room")).collect();
        for (a, word) in values.iter().zip(&first) {
            assert_eq!(words.value(*word).as_ref(), Some(a));
            assert_ne!(*word, ABSENT);
            for (b, other) in values.iter().zip(&first) {
                assert_eq!(a == b, word == other, "{a:?} {b:?}");
            }
            assert_eq!(words.of(&a.clone(), &account).expect("room"), *word, "{a:?} again");
        }
        assert_eq!(words.value(ABSENT), None);
        words.clear();
        assert_eq!(account.used_bytes(), 0);
    }

    #[test]
    fn keys_come_in_the_order_in_which_they_came_first() {
        let (mut counts, account) = (Counts::<2>::default(), account());
        for round in 0..3 {
            for key in (0..20_000u64).rev() {
                counts.add([key, key % 7], round + 1, &account).expect("room");
            }
        }
        assert_eq!(counts.len(), 20_000);
        assert!(account.used_bytes() >= 20_000 * size_of::<([Word; 2], u64)>());
        for key in (0..20_000u64).rev() {
            assert_eq!(counts.pop_front(), Some(([key, key % 7], 6)));
        }
        assert!(counts.is_empty());
        counts.clear();
        assert_eq!(account.used_bytes(), 0);
    }

    #[test]
    fn keys_are_new_once() {
        let (mut random, account) = (Random::seeded(3), account());
        let (mut seen, mut model, mut words) = (Distinct::<2>::default(), HashSet::new(), Words::default());
        for _ in 0..200_000 {
            let number = random.below(300) as u64;
            let value = match random.below(4) {
                0 => Value::Int(number as i32 - 150),
                1 => Value::Long(number as i64 - 150),
                2 => Value::from(number.to_string().as_str()),
                _ => Value::Vertex(VertexId(number)),
            };
            let key = [random.below(200) as Word, words.of(&value, &account).expect("room")];
            assert_eq!(seen.insert(key, 1, &account).expect("room"), model.insert(key), "{key:?} {value:?}");
        }
        assert!(seen.insert([1, ABSENT], 1, &account).expect("room"));
        assert!(!seen.insert([1, ABSENT], 1, &account).expect("room"));
        seen.clear();
        words.clear();
        assert_eq!(account.used_bytes(), 0);
        // Keys that lie close together take a few bits each.
        for key in 0..1_000_000u64 {
            assert!(seen.insert([key / 10_000, (key % 10_000) << KIND_BITS], 1, &account).expect("room"));
        }
        assert!(account.used_bytes() < 2 << 20, "{}", account.used_bytes());
    }

    #[test]
    fn growing_ends_at_the_limit() {
        let (mut counts, account) = (Counts::<4>::default(), MemoryAccount::new(1 << 20));
        let added = (0..1_000_000u64).take_while(|key| counts.add([*key; 4], 1, &account).is_ok()).count();
        assert!((1 << 13..1 << 15).contains(&added), "{added}");
    }
}
