//! Finds elements of a graph by the hash of their user id, in a file of its own.
//!
//! A hash table with linear probing, filled to three quarters: a byte of the hash for each place, 0 where nothing is, and
//! the element in 32 bits, or 64 if any needs them. The byte spares most looks at elements that have another id.

use std::sync::Arc;

use ficus_model::Value;
use xxhash_rust::xxh3::xxh3_64;

use super::SegmentOrigin;
use super::file::{Encoding, FileBuilder, FileKind, Header, Owner, SegmentFile, SegmentImage, part};
use super::numbers::PlainNumbers;
use super::numbers_builder::NumbersBuilder;
use crate::StoreError;
use crate::mapping::{Section, SegmentBytes};
use crate::value_codec::put_value;
use crate::value_key::id_integer;

/// The hash by which id tables are filed. Equal for equal ids; part of the file format, so fixed for ever.
pub(crate) fn stable_id_hash(id: &Value) -> u64 {
    if let Some(integer) = id_integer(id) {
        return xxh3_64(&integer.to_le_bytes());
    }
    // All that are not a number are one id.
    let id = match id {
        Value::Float(number) if number.is_nan() => &Value::Float(f32::NAN),
        Value::Double(number) if number.is_nan() => &Value::Double(f64::NAN),
        id => id,
    };
    let mut content = Vec::with_capacity(32);
    put_value(id, &mut content);
    xxh3_64(&content)
}

/// Where the search for a hash begins, and its byte.
#[inline]
fn place_and_tag(hash: u64, places: usize) -> (usize, u8) {
    let place = (u128::from(hash) * places as u128) >> 64;
    // The place comes from the high bits, the byte from the low ones.
    (place as usize, (hash as u8).max(1))
}

/// A table being built.
#[derive(Debug, Default)]
pub(crate) struct IdTableBuilder {
    entries: Vec<(u64, u64)>,
}

impl IdTableBuilder {
    /// A table without entries.
    pub(crate) fn new() -> IdTableBuilder {
        IdTableBuilder::default()
    }

    /// Adds an element, which is given back by [`IdTable::find`].
    pub(crate) fn add(&mut self, hash: u64, element: u64) {
        self.entries.push((hash, element));
    }

    /// Encodes the table.
    pub(crate) fn finish(self, origin: SegmentOrigin) -> SegmentImage {
        let count = self.entries.len();
        let places = if count == 0 { 0 } else { count + count / 3 + 1 };
        let mut tags = vec![0u8; places];
        let largest = self.entries.iter().map(|(_, element)| *element).max().unwrap_or(0);
        let mut elements = NumbersBuilder::zeros(places, largest);
        for (hash, element) in self.entries {
            let (mut place, tag) = place_and_tag(hash, places);
            while tags[place] != 0 {
                place = if place + 1 == places { 0 } else { place + 1 };
            }
            tags[place] = tag;
            elements.set(place, element);
        }
        let mut file = FileBuilder::new();
        let encoding = Encoding { width: 8, count: places as u64, ..Encoding::default() };
        let name = Owner::IdEntries.part(part::TAGS);
        file.put(name, encoding, places, |out: &mut [u8]| out.copy_from_slice(&tags));
        elements.put_plain(&mut file, Owner::IdEntries.part(part::NUMBERS));
        file.finish(FileKind::IdTable, Header { origin, tablet: 0, tablet_bits: 0, slots: count as u64 })
    }
}

/// Elements by the hash of their user id.
#[derive(Clone, Debug)]
pub(crate) struct IdTable {
    file: SegmentFile,
    tags: Section<u8>,
    elements: PlainNumbers,
}

impl IdTable {
    /// Reads the header; the content is only checked by [`IdTable::verify`].
    pub(crate) fn open(bytes: Arc<SegmentBytes>, name: &str) -> Result<IdTable, StoreError> {
        let file = SegmentFile::open(bytes, name, FileKind::IdTable)?;
        let entry = file.entry(Owner::IdEntries.part(part::TAGS))?;
        let places = entry.encoding.count;
        let tags: Section<u8> = file.section(entry, places)?;
        if file.header.slots > 0 && file.header.slots >= places {
            return Err(file.corrupt(entry, "a table of ids has no room for its elements"));
        }
        let elements = PlainNumbers::open(&file, Owner::IdEntries.part(part::NUMBERS), places)?;
        Ok(IdTable { file, tags, elements })
    }

    /// Reads everything and checks checksums and counts.
    pub(crate) fn verify(&self) -> Result<(), StoreError> {
        self.file.verify()?;
        if self.tags.iter().filter(|tag| **tag != 0).count() as u64 != self.len() {
            let what = "a table of ids has not as many elements as it says";
            return Err(StoreError::corrupt(&*self.file.name, 0, what));
        }
        Ok(())
    }

    /// The first element under a hash that `confirm` accepts.
    #[inline]
    pub(crate) fn find(&self, hash: u64, confirm: impl Fn(u64) -> bool) -> Option<u64> {
        let tags: &[u8] = &self.tags;
        if tags.is_empty() {
            return None;
        }
        let (start, tag) = place_and_tag(hash, tags.len());
        for place in (start..tags.len()).chain(0..start) {
            if tags[place] == tag {
                let element = self.elements.get(place);
                if confirm(element) {
                    return Some(element);
                }
            } else if tags[place] == 0 {
                return None;
            }
        }
        None
    }

    /// Number of elements.
    pub(crate) fn len(&self) -> u64 {
        self.file.header.slots
    }

    /// Whose it is.
    pub(crate) fn origin(&self) -> SegmentOrigin {
        self.file.header.origin
    }

    /// The checksum in the header, which stands for the whole file.
    pub(crate) fn checksum(&self) -> u32 {
        self.file.checksum
    }

    /// Bytes on the heap; mapped bytes are not among them.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.file.bytes.heap_bytes()
    }

    /// Length of the file.
    pub(crate) fn file_bytes(&self) -> usize {
        self.file.bytes.bytes().len()
    }

    /// The file's name.
    pub(crate) fn name(&self) -> &str {
        &self.file.name
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::value_codec::tests::any_value;
    use crate::value_key::ids_equal;

    #[test]
    fn equal_ids_have_one_hash_for_ever() {
        assert_eq!(stable_id_hash(&Value::Int(7)), stable_id_hash(&Value::Long(7)));
        let other_nan = Value::Double(f64::from_bits(f64::NAN.to_bits() | 1));
        assert!(ids_equal(&other_nan, &Value::Double(f64::NAN)));
        assert_eq!(stable_id_hash(&other_nan), stable_id_hash(&Value::Double(f64::NAN)));
        let hashes = [Value::Long(1), Value::String("a".into())].map(|id| stable_id_hash(&id));
        assert_eq!(hashes, [3_439_722_301_264_460_078, 4_110_432_925_660_345_815]);
    }

    fn table(entries: &[(u64, u64)]) -> IdTable {
        let mut builder = IdTableBuilder::new();
        entries.iter().for_each(|(hash, element)| builder.add(*hash, *element));
        let origin = SegmentOrigin { store: 5, graph: 6 };
        let table = IdTable::open(builder.finish(origin).into_bytes(), "ids").unwrap();
        table.verify().unwrap();
        assert_eq!((table.len(), table.origin()), (entries.len() as u64, origin));
        table
    }

    proptest! {
        #[test]
        fn every_element_is_found_and_no_other(
            hashes in prop::collection::vec(prop_oneof![any::<u64>(), (u64::MAX - 5)..=u64::MAX, 0u64..5], 0..200),
            first in prop_oneof![Just(0u64), Just(u64::from(u32::MAX) - 50)],
            strangers in prop::collection::vec(any::<u64>(), 20),
        ) {
            let entries: Vec<(u64, u64)> = hashes.iter().zip(first..).map(|(hash, element)| (*hash, element)).collect();
            let table = table(&entries);
            for (hash, element) in &entries {
                prop_assert_eq!(table.find(*hash, |found| found == *element), Some(*element));
                prop_assert_eq!(table.find(*hash, |_| false), None);
            }
            for stranger in strangers.iter().filter(|stranger| !hashes.contains(stranger)) {
                let mine = |element: u64| hashes[(element - first) as usize] == *stranger;
                prop_assert_eq!(table.find(*stranger, mine), None);
            }
        }

        #[test]
        fn equal_ids_have_equal_hashes(a in any_value(), b in any_value()) {
            if ids_equal(&a, &b) {
                prop_assert_eq!(stable_id_hash(&a), stable_id_hash(&b));
            }
        }
    }
}
