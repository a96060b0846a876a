//! User ids while a graph is loaded: kept once, in columns, and found through one hash table.
//!
//! An id is a kind byte and a word: integers are the word, a text that is a known prefix and a number is the word as well
//! ([`IdPrefixes`]), another text lies in one run of bytes, anything else in a list. The table holds 32 bits of the hash and the
//! position, so that almost every comparison with another id is settled there. Integers that lie close together are found in
//! an array instead, once all of them are known.

use std::collections::HashMap;
use std::sync::Arc;

use ficus_model::Value;
use hashbrown::HashTable;
use num_bigint::BigInt;
use xxhash_rust::xxh3::xxh3_64;

use super::prefixes::{IdPrefix, IdPrefixes};
use crate::value_codec::{ByteReader, put_bytes};
use crate::value_key::id_integer;

/// Positions in the array per integer id, above which the array is not worth its memory.
const DENSE_SPREAD: u64 = 8;

/// What stands in the array where no vertex is.
const ABSENT: u32 = u32::MAX;

mod kind {
    pub(super) const ABSENT: u8 = 0;
    pub(super) const BYTE: u8 = 1;
    pub(super) const SHORT: u8 = 2;
    pub(super) const INT: u8 = 3;
    pub(super) const LONG: u8 = 4;
    pub(super) const BIG_INTEGER: u8 = 5;
    pub(super) const TEXT: u8 = 6;
    pub(super) const OTHER: u8 = 7;
    pub(super) const NUMBERED: u8 = 8;
}

/// A user id as it was read, without an allocation for the frequent kinds.
#[derive(Clone, Copy, Debug)]
pub enum LoadId<'a> {
    /// None; the store makes one.
    Made,
    /// Signed 32 bit.
    Int(i32),
    /// Signed 64 bit.
    Long(i64),
    /// Text.
    Text(&'a str),
    /// A text: a prefix and a number, see [`IdPrefixes::numbered`].
    Numbered(IdPrefix, u64),
    /// Anything.
    Value(&'a Value),
}

/// An id with its kind: what both a column and a look-up work with.
#[derive(Clone, Copy)]
enum Plain<'a> {
    Absent,
    Integer(u8, i64),
    /// A prefix and a number, packed.
    Numbered(u64),
    Text(&'a str),
    Other(&'a Value),
}

fn plain<'a>(id: LoadId<'a>, prefixes: &IdPrefixes) -> Plain<'a> {
    let of_text = |text: &'a str| match prefixes.split(text) {
        Some((prefix, number)) => Plain::Numbered(prefix.pack(number)),
        None => Plain::Text(text),
    };
    match id {
        LoadId::Made => Plain::Absent,
        LoadId::Int(id) => Plain::Integer(kind::INT, i64::from(id)),
        LoadId::Long(id) => Plain::Integer(kind::LONG, id),
        LoadId::Text(id) => of_text(id),
        LoadId::Numbered(prefix, number) => Plain::Numbered(prefix.pack(number)),
        LoadId::Value(id) => match (id, id_integer(id)) {
            (Value::Byte(_), Some(number)) => Plain::Integer(kind::BYTE, number),
            (Value::Short(_), Some(number)) => Plain::Integer(kind::SHORT, number),
            (Value::Int(_), Some(number)) => Plain::Integer(kind::INT, number),
            (Value::Long(_), Some(number)) => Plain::Integer(kind::LONG, number),
            (_, Some(number)) => Plain::Integer(kind::BIG_INTEGER, number),
            (Value::String(text), None) => of_text(text),
            (other, None) => Plain::Other(other),
        },
    }
}

/// Ids in the order of their elements.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdColumn {
    kinds: Vec<u8>,
    words: Vec<u64>,
    text: Vec<u8>,
    others: Vec<Value>,
    prefixes: Arc<IdPrefixes>,
}

impl IdColumn {
    /// A column in which texts with these prefixes take no room.
    pub(crate) fn with_prefixes(prefixes: Arc<IdPrefixes>) -> IdColumn {
        IdColumn { prefixes, ..IdColumn::default() }
    }

    /// The prefixes that texts are taken apart by.
    pub(crate) fn prefixes(&self) -> &Arc<IdPrefixes> {
        &self.prefixes
    }

    /// Number of ids, those that are to be made among them.
    pub(crate) fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.kinds.len() + self.words.len() * 8 + self.text.len() + self.others.len() * 64
    }

    /// Adds an id.
    pub(crate) fn push(&mut self, id: LoadId<'_>) {
        let id = plain(id, &self.prefixes);
        self.push_plain(id);
    }

    /// Adds an id of another column.
    pub(crate) fn push_of(&mut self, other: &IdColumn, position: usize) {
        if Arc::ptr_eq(&self.prefixes, &other.prefixes) {
            self.push_plain(other.plain_at(position));
        } else {
            let id = other.get(position);
            self.push(id.as_ref().map_or(LoadId::Made, LoadId::Value));
        }
    }

    fn push_plain(&mut self, id: Plain<'_>) {
        let (kind, word) = match id {
            Plain::Absent => (kind::ABSENT, 0),
            Plain::Integer(kind, number) => (kind, number as u64),
            Plain::Numbered(word) => (kind::NUMBERED, word),
            Plain::Text(text) => {
                let at = self.text.len() as u64;
                put_bytes(text.as_bytes(), &mut self.text);
                (kind::TEXT, at)
            }
            Plain::Other(value) => {
                self.others.push(value.clone());
                (kind::OTHER, self.others.len() as u64 - 1)
            }
        };
        self.kinds.push(kind);
        self.words.push(word);
    }

    /// Takes back the last id.
    pub(crate) fn pop(&mut self) {
        match (self.kinds.pop(), self.words.pop()) {
            (Some(kind::TEXT), Some(at)) => self.text.truncate(at as usize),
            (Some(kind::OTHER), _) => {
                self.others.pop();
            }
            _ => {}
        }
    }

    /// Appends all ids of another column.
    pub(crate) fn append(&mut self, other: IdColumn) {
        if !Arc::ptr_eq(&self.prefixes, &other.prefixes) {
            (0..other.len()).for_each(|position| self.push_of(&other, position));
            return;
        }
        let (text, others) = (self.text.len() as u64, self.others.len() as u64);
        self.words.extend(other.kinds.iter().zip(&other.words).map(|(kind, word)| match *kind {
            kind::TEXT => word + text,
            kind::OTHER => word + others,
            _ => *word,
        }));
        self.kinds.extend_from_slice(&other.kinds);
        self.text.extend_from_slice(&other.text);
        self.others.extend(other.others);
    }

    /// The id at a position; `None` if it is to be made.
    pub(crate) fn get(&self, position: usize) -> Option<Value> {
        let word = self.words[position];
        let number = word as i64;
        Some(match self.kinds[position] {
            kind::ABSENT => return None,
            kind::BYTE => Value::Byte(number as i8),
            kind::SHORT => Value::Short(number as i16),
            kind::INT => Value::Int(number as i32),
            kind::LONG => Value::Long(number),
            kind::BIG_INTEGER => Value::BigInteger(BigInt::from(number).into()),
            kind::TEXT => Value::String(self.text_at(word).into()),
            kind::NUMBERED => Value::String(self.prefixes.text(word).into()),
            _ => self.others[word as usize].clone(),
        })
    }

    /// The integer at a position, if there is one.
    pub(crate) fn integer(&self, position: usize) -> Option<i64> {
        matches!(self.kinds[position], kind::BYTE..=kind::BIG_INTEGER).then(|| self.words[position] as i64)
    }

    /// True if an id is to be made.
    pub(crate) fn has_made(&self) -> bool {
        self.kinds.contains(&kind::ABSENT)
    }

    /// The largest integer among the ids.
    pub(crate) fn largest_integer(&self) -> Option<i64> {
        (0..self.len()).filter_map(|position| self.integer(position)).max()
    }

    /// Appends all integers among the ids.
    pub(crate) fn collect_integers(&self, integers: &mut Vec<i64>) {
        integers.extend((0..self.len()).filter_map(|position| self.integer(position)));
    }

    /// The id at a position, to be looked up; a narrow integer comes as a `Long`.
    pub(crate) fn load_id(&self, position: usize) -> LoadId<'_> {
        match self.plain_at(position) {
            Plain::Absent => LoadId::Made,
            Plain::Integer(kind::INT, number) => LoadId::Int(number as i32),
            Plain::Integer(_, number) => LoadId::Long(number),
            Plain::Numbered(word) => {
                let (prefix, number) = IdPrefix::unpack(word);
                LoadId::Numbered(prefix, number)
            }
            Plain::Text(text) => LoadId::Text(text),
            Plain::Other(value) => LoadId::Value(value),
        }
    }

    fn text_at(&self, word: u64) -> &str {
        let text = ByteReader::new(&self.text[word as usize..]).text();
        text.expect("a text is read where one was written")
    }

    fn plain_at(&self, position: usize) -> Plain<'_> {
        let word = self.words[position];
        match self.kinds[position] {
            kind::ABSENT => Plain::Absent,
            kind::TEXT => Plain::Text(self.text_at(word)),
            kind::NUMBERED => Plain::Numbered(word),
            kind::OTHER => Plain::Other(&self.others[word as usize]),
            kind => Plain::Integer(kind, word as i64),
        }
    }

    fn is(&self, position: usize, id: Plain<'_>) -> bool {
        let word = self.words[position];
        match (self.kinds[position], id) {
            (kind::BYTE..=kind::BIG_INTEGER, Plain::Integer(_, number)) => word as i64 == number,
            (kind::NUMBERED, Plain::Numbered(other)) => word == other,
            (kind::TEXT, Plain::Text(text)) => {
                let bytes = ByteReader::new(&self.text[word as usize..]).bytes();
                bytes.expect("a text is read where one was written") == text.as_bytes()
            }
            _ => false,
        }
    }

    /// The hash of the id at a position, for [`IdIndex::insert`].
    pub(crate) fn hash(&self, position: usize) -> u32 {
        hash(self.plain_at(position))
    }
}

fn hash(id: Plain<'_>) -> u32 {
    match id {
        Plain::Integer(_, number) => (mixed(number as u64) >> 32) as u32,
        Plain::Numbered(word) => (mixed(!word) >> 32) as u32,
        Plain::Text(text) => xxh3_64(text.as_bytes()) as u32,
        Plain::Absent | Plain::Other(_) => 0,
    }
}

/// Spreads the bits of a number over all of it.
fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (number ^ number >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// Finds the position of an id in a column.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdIndex {
    table: HashTable<(u32, u32)>,
    others: HashMap<Value, u32>,
    /// Integers from `dense_first` on, if they lie close together; the table then has only texts.
    dense: Vec<u32>,
    dense_first: i64,
}

impl IdIndex {
    /// Adds the id at `position` of `column`, whose hash is `hash`; false if the id is there already.
    pub(crate) fn insert(&mut self, column: &IdColumn, position: u32, hash: u32) -> bool {
        match column.plain_at(position as usize) {
            Plain::Absent => true,
            Plain::Other(value) => {
                if self.others.contains_key(value) {
                    return false;
                }
                self.others.insert(value.clone(), position);
                true
            }
            id => {
                let same = |(other_hash, other): &(u32, u32)| *other_hash == hash && column.is(*other as usize, id);
                let entry = self.table.entry(mixed(u64::from(hash)), same, |(hash, _)| mixed(u64::from(*hash)));
                match entry {
                    hashbrown::hash_table::Entry::Occupied(_) => false,
                    hashbrown::hash_table::Entry::Vacant(entry) => {
                        entry.insert((hash, position));
                        true
                    }
                }
            }
        }
    }

    /// Prefers an array for integers, now that all ids are known.
    pub(crate) fn settle(&mut self, column: &IdColumn) {
        let (mut first, mut last, mut count) = (i64::MAX, i64::MIN, 0u64);
        for position in 0..column.len() {
            if let Some(number) = column.integer(position) {
                (first, last, count) = (first.min(number), last.max(number), count + 1);
            }
        }
        let Some(span) = last.checked_sub(first).and_then(|span| u64::try_from(span).ok()) else { return };
        if count == 0 || span / DENSE_SPREAD >= count {
            return;
        }
        self.dense = vec![ABSENT; span as usize + 1];
        self.dense_first = first;
        let mut texts = HashTable::with_capacity(self.table.len() - (count as usize).min(self.table.len()));
        for (hash, position) in std::mem::take(&mut self.table) {
            match column.integer(position as usize) {
                Some(number) => self.dense[(number - first) as usize] = position,
                None => {
                    texts.insert_unique(mixed(u64::from(hash)), (hash, position), |(hash, _)| mixed(u64::from(*hash)));
                }
            }
        }
        self.table = texts;
    }

    /// The position of an id; a text that is nobody's id finds the integer it spells.
    pub(crate) fn find(&self, column: &IdColumn, id: LoadId<'_>) -> Option<u32> {
        let id = plain(id, &column.prefixes);
        let found = self.find_exactly(column, id);
        match (found, id) {
            (None, Plain::Text(text)) => self.find_exactly(column, Plain::Integer(kind::LONG, text.parse().ok()?)),
            _ => found,
        }
    }

    fn find_exactly(&self, column: &IdColumn, id: Plain<'_>) -> Option<u32> {
        match id {
            Plain::Absent => None,
            Plain::Other(value) => self.others.get(value).copied(),
            Plain::Integer(_, number) if !self.dense.is_empty() => {
                let place = usize::try_from(number.checked_sub(self.dense_first)?).ok()?;
                self.dense.get(place).copied().filter(|position| *position != ABSENT)
            }
            id => {
                let hash = hash(id);
                let same = |(other_hash, other): &(u32, u32)| *other_hash == hash && column.is(*other as usize, id);
                self.table.find(mixed(u64::from(hash)), same).map(|(_, position)| *position)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_and_doubles_are_noticed() {
        let uuid = Value::Uuid(uuid::Uuid::from_u128(7));
        let big = Value::BigInteger(BigInt::from(9).into());
        let values = [
            (LoadId::Long(5), true),
            (LoadId::Text("a"), true),
            (LoadId::Int(5), false),
            (LoadId::Value(&Value::Byte(6)), true),
            (LoadId::Text("a"), false),
            (LoadId::Text("6"), true),
            (LoadId::Value(&uuid), true),
            (LoadId::Value(&uuid), false),
            (LoadId::Value(&big), true),
            (LoadId::Made, true),
            (LoadId::Made, true),
            (LoadId::Long(9), false),
        ];
        let (mut column, mut index) = (IdColumn::default(), IdIndex::default());
        for (position, (id, is_new)) in values.into_iter().enumerate() {
            column.push(id);
            let hash = column.hash(position);
            assert_eq!(index.insert(&column, position as u32, hash), is_new, "{id:?}");
        }
        for settled in [false, true] {
            let find = |id| index.find(&column, id);
            assert_eq!(find(LoadId::Int(5)), Some(0), "{settled}");
            assert_eq!(find(LoadId::Text("a")), Some(1));
            assert_eq!(find(LoadId::Text("6")), Some(5), "a text comes before the integer it spells");
            assert_eq!(find(LoadId::Long(6)), Some(3));
            assert_eq!(find(LoadId::Text("9")), Some(8));
            assert_eq!(find(LoadId::Value(&uuid)), Some(6));
            for missing in [LoadId::Long(7), LoadId::Long(i64::MAX), LoadId::Long(i64::MIN), LoadId::Text("b")] {
                assert_eq!(find(missing), None, "{missing:?}");
            }
            index.settle(&column);
        }
        assert!(!index.dense.is_empty());
        assert_eq!(column.get(3), Some(Value::Byte(6)));
        assert_eq!(column.get(8), Some(big));
        assert_eq!(column.get(9), None);
    }

    #[test]
    fn numbered_texts_are_found_however_they_are_written() {
        let prefixes = Arc::new(IdPrefixes::new(["a:", "b:"]));
        let (mut column, mut index) = (IdColumn::with_prefixes(prefixes.clone()), IdIndex::default());
        // From a column without prefixes, as a text, and taken apart by the caller.
        let mut foreign = IdColumn::default();
        foreign.push(LoadId::Text("a:1"));
        foreign.push(LoadId::Text("a:01"));
        column.append(foreign);
        column.push(LoadId::Text("b:1"));
        column.push(prefixes.numbered(prefixes.find("b:").unwrap(), "20").unwrap());
        for position in 0..column.len() {
            assert!(index.insert(&column, position as u32, column.hash(position)));
        }
        column.push(LoadId::Text("b:20"));
        assert!(!index.insert(&column, 4, column.hash(4)));
        let texts = ["a:1", "a:01", "b:1", "b:20"];
        for (position, text) in texts.into_iter().enumerate() {
            assert_eq!(index.find(&column, LoadId::Text(text)), Some(position as u32), "{text}");
            assert_eq!(column.get(position), Some(Value::String(text.into())));
        }
        assert_eq!(column.text.len(), "a:01".len() + 1, "only this one is kept as a text");
        assert_eq!(index.find(&column, LoadId::Text("a:20")), None);
    }

    #[test]
    fn distant_integers_stay_in_the_table() {
        let (mut column, mut index) = (IdColumn::default(), IdIndex::default());
        for (position, id) in [i64::MIN, i64::MAX, 0].into_iter().enumerate() {
            column.push(LoadId::Long(id));
            assert!(index.insert(&column, position as u32, column.hash(position)));
        }
        index.settle(&column);
        assert!(index.dense.is_empty());
        assert_eq!(index.find(&column, LoadId::Long(i64::MIN)), Some(0));
    }
}
