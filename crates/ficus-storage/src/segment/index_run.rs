//! The entries of a value index over the elements of a base, in a file of its own.
//!
//! Keys that differ, ascending, end to end, and for each the elements that have it, ascending: so a key is stored once, however many elements
//! have it. Keys of one length need no offsets, and keys of one element each no starts: such columns are affine. An entry is found by halving
//! the keys, then the elements of one. Hashes are spread evenly, so a table by their first bits leaves only some of them to be halved.
//!
//! What the bytes of a key mean is up to the index. Whoever changes it changes the [`KeyForm`]; files of another form are made anew.

use std::ops::Range;
use std::sync::Arc;

use super::file::{Encoding, FileBuilder, FileKind, Header, Owner, SegmentFile, SegmentImage, part};
use super::numbers::{Numbers, slice};
use super::numbers_builder::NumbersBuilder;
use super::{SegmentOrigin, damage::damaged};
use crate::StoreError;
use crate::mapping::{Section, SegmentBytes};

/// What the keys of a file are. Numbers are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum KeyForm {
    /// Hashes of values, most significant byte first.
    Hashes = 1,
    /// Values as bytes that sort as they do.
    Ordered = 2,
}

/// Hashes for each place of the table by their first bits, about.
const HASHES_PER_PLACE: u64 = 8;

/// A file being built from entries in ascending order.
#[derive(Debug, Default)]
pub(crate) struct IndexRunBuilder {
    bytes: Vec<u8>,
    /// Where each key begins.
    offsets: NumbersBuilder,
    /// Where the elements of each key begin.
    starts: NumbersBuilder,
    elements: NumbersBuilder,
    /// The newest key.
    last: Range<usize>,
}

impl IndexRunBuilder {
    /// Adds an entry behind all that are there.
    pub(crate) fn add(&mut self, key: &[u8], element: u64) {
        if self.elements.len() == 0 || self.bytes[self.last.clone()] != *key {
            self.last = self.bytes.len()..self.bytes.len() + key.len();
            self.offsets.push(self.last.start as u64);
            self.starts.push(self.elements.len() as u64);
            self.bytes.extend_from_slice(key);
        }
        self.elements.push(element);
    }

    /// Encodes the file of the index with this number.
    pub(crate) fn finish(mut self, origin: SegmentOrigin, number: u32, form: KeyForm) -> SegmentImage {
        let entries = self.elements.len() as u64;
        self.offsets.push(self.bytes.len() as u64);
        self.starts.push(entries);
        let mut file = FileBuilder::new();
        let elements_end = self.elements.bounds().map_or(0, |(_, largest)| largest + 1);
        let encoding =
            Encoding { width: 8, count: self.bytes.len() as u64, first: elements_end, ..Encoding::default() };
        let bytes = |section: &mut [u8]| section.copy_from_slice(&self.bytes);
        file.put(Owner::IndexEntries.part(part::BYTES), encoding, self.bytes.len(), bytes);
        if form == KeyForm::Hashes {
            first_hashes(&self.bytes).put(&mut file, Owner::IndexEntries.part(part::POSITIONS), 0);
        }
        self.bytes = Vec::new();
        self.offsets.put(&mut file, Owner::IndexEntries.part(part::OFFSETS), 0);
        self.starts.put(&mut file, Owner::IndexEntries.part(part::RUN_STARTS), 0);
        self.elements.put(&mut file, Owner::IndexEntries.part(part::NUMBERS), form as u32);
        file.finish(FileKind::Index, Header { origin, tablet: number, tablet_bits: 0, slots: entries })
    }
}

/// For every possible beginning of a hash, the first hash that is not before it; and one more for the end.
fn first_hashes(bytes: &[u8]) -> NumbersBuilder {
    let count = (bytes.len() / 8) as u64;
    let bits = (count / HASHES_PER_PLACE).max(1).ilog2();
    let mut firsts = NumbersBuilder::default();
    for (hash, position) in bytes.chunks_exact(8).zip(0..) {
        let beginning = beginning(u64::from_be_bytes(hash.try_into().expect("eight bytes")), bits);
        while firsts.len() as u64 <= beginning {
            firsts.push(position);
        }
    }
    while firsts.len() as u64 <= 1 << bits {
        firsts.push(count);
    }
    firsts
}

/// The first bits of a hash.
fn beginning(hash: u64, bits: u32) -> u64 {
    hash.checked_shr(64 - bits).unwrap_or(0)
}

/// Where hashes with the same first bits are.
#[derive(Debug)]
struct FirstHashes {
    bits: u32,
    positions: Numbers,
}

/// The place of an entry: its key, and its rank among all entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunPlace {
    pub(crate) key: u64,
    pub(crate) rank: u64,
}

/// The entries of a value index over the elements of a base.
#[derive(Debug)]
pub(crate) struct IndexRun {
    file: SegmentFile,
    /// True if it has a name on the disk.
    is_stored: bool,
    bytes: Section<u8>,
    offsets: Numbers,
    starts: Numbers,
    elements: Numbers,
    keys: u64,
    /// Of hashes only.
    firsts: Option<FirstHashes>,
    /// All elements are below it: most writes are about newer ones, and need no search to know that these are not here.
    elements_end: u64,
}

impl FirstHashes {
    fn open(file: &SegmentFile) -> Result<FirstHashes, StoreError> {
        let entry = file.entry(Owner::IndexEntries.part(part::POSITIONS))?;
        let places = entry.encoding.count.checked_sub(1).filter(|places| places.is_power_of_two());
        let bits = places.ok_or_else(|| file.corrupt(entry, "a table of hashes has an impossible length"))?.ilog2();
        Ok(FirstHashes { bits, positions: Numbers::of(file, entry)? })
    }

    /// Positions of the hashes that begin as this one does.
    fn range(&self, hash: u64) -> Range<u64> {
        let beginning = beginning(hash, self.bits);
        self.positions.get(beginning)..self.positions.get(beginning + 1)
    }
}

impl IndexRun {
    /// Reads header and directory; the content is only checked by [`IndexRun::verify`]. `None` if its keys are of another form than `form`: then it
    /// is sound, and of no use.
    pub(crate) fn open(
        bytes: Arc<SegmentBytes>,
        name: &str,
        is_stored: bool,
        form: KeyForm,
    ) -> Result<Option<IndexRun>, StoreError> {
        let file = SegmentFile::open(bytes, name, FileKind::Index)?;
        let entries = file.header.slots;
        let elements_entry = file.entry(Owner::IndexEntries.part(part::NUMBERS))?;
        if elements_entry.encoding.tag != form as u32 {
            return Ok(None);
        }
        let elements = Numbers::open_counted(&file, Owner::IndexEntries.part(part::NUMBERS), entries)?;
        let offsets_entry = file.entry(Owner::IndexEntries.part(part::OFFSETS))?;
        let Encoding { count, .. } = offsets_entry.encoding;
        let keys = count.checked_sub(1).filter(|keys| *keys <= entries);
        let keys = keys.ok_or_else(|| file.corrupt(offsets_entry, "an index has more keys than entries"))?;
        let offsets = Numbers::open_counted(&file, Owner::IndexEntries.part(part::OFFSETS), count)?;
        let starts = Numbers::open_counted(&file, Owner::IndexEntries.part(part::RUN_STARTS), count)?;
        let bytes_entry = file.entry(Owner::IndexEntries.part(part::BYTES))?;
        let bytes = file.section(bytes_entry, bytes_entry.encoding.count)?;
        let firsts = match form {
            KeyForm::Hashes => Some(FirstHashes::open(&file)?),
            KeyForm::Ordered => None,
        };
        let elements_end = bytes_entry.encoding.first;
        Ok(Some(IndexRun { is_stored, bytes, offsets, starts, elements, keys, firsts, elements_end, file }))
    }

    /// Reads everything and checks checksums, order and counts.
    pub(crate) fn verify(&self) -> Result<(), StoreError> {
        self.file.verify()?;
        let wrong = |what: &str| Err(StoreError::corrupt(&*self.file.name, 0, what));
        let bounds = |numbers: &Numbers| (numbers.get(0), numbers.get(self.keys));
        if bounds(&self.offsets) != (0, self.bytes.len() as u64) || bounds(&self.starts) != (0, self.len()) {
            return wrong("the keys of an index have not all its entries");
        }
        if self.elements.find(|element| element >= self.elements_end).is_some() {
            return wrong("an index has an element beyond those it says it has");
        }
        if !self.offsets.is_monotone() || !self.starts.is_ascending() {
            return wrong("the keys of an index are out of order");
        }
        for key in 0..self.keys {
            if key > 0 && self.key(key - 1) >= self.key(key) {
                return wrong("the keys of an index are out of order");
            }
            if self.firsts.is_some() && (self.key(key).len() != 8 || self.first_key(self.key(key)) != key) {
                return wrong("the table of an index does not lead to its hashes");
            }
            let elements = self.elements_of(key);
            if !(elements.start + 1..elements.end).all(|rank| self.element(rank - 1) < self.element(rank)) {
                return wrong("the elements of a key of an index are out of order");
            }
        }
        Ok(())
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> u64 {
        self.file.header.slots
    }

    /// The bytes of a key.
    pub(crate) fn key(&self, key: u64) -> &[u8] {
        slice(&self.bytes, self.offsets.get(key) as usize..self.offsets.get(key + 1) as usize)
    }

    /// The element of an entry.
    pub(crate) fn element(&self, rank: u64) -> u64 {
        self.elements.get(rank)
    }

    fn elements_of(&self, key: u64) -> Range<u64> {
        self.starts.get(key)..self.starts.get(key + 1)
    }

    /// The first entry at or after this one.
    pub(crate) fn lower_bound(&self, key: &[u8], element: u64) -> RunPlace {
        let low = self.first_key(key);
        if low == self.keys {
            return RunPlace { key: low, rank: self.len() };
        }
        let elements = self.elements_of(low);
        if element == 0 || self.key(low) != key {
            return RunPlace { key: low, rank: elements.start };
        }
        if elements.start > elements.end || elements.end > self.len() {
            damaged();
        }
        let rank = self.elements.lower_bound(elements.start as usize..elements.end as usize, element) as u64;
        RunPlace { key: low + u64::from(rank == elements.end), rank }
    }

    /// The first key that is not before this one.
    fn first_key(&self, key: &[u8]) -> u64 {
        if let Some(firsts) = &self.firsts {
            let hash = u64::from_be_bytes(key.try_into().expect("a hash has eight bytes"));
            let range = firsts.range(hash);
            let [start, end] = [range.start, range.end].map(|place| (place as usize).saturating_mul(8));
            let hashes = slice(&self.bytes, start..end);
            let hashes: &[[u8; 8]] = bytemuck::cast_slice(hashes);
            return range.start + hashes.partition_point(|found| u64::from_be_bytes(*found) < hash) as u64;
        }
        let (mut low, mut high) = (0, self.keys);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.key(middle) < key { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// True if a key has more than one element.
    pub(crate) fn has_several(&self, key: u64) -> bool {
        let elements = self.elements_of(key);
        elements.end > elements.start + 1
    }

    /// The entry behind another one.
    pub(crate) fn next(&self, place: RunPlace) -> RunPlace {
        let rank = place.rank + 1;
        RunPlace { key: place.key + u64::from(rank >= self.starts.get(place.key + 1)), rank }
    }

    /// The entry before another one, or before the end; `None` before the first.
    pub(crate) fn previous(&self, place: RunPlace) -> Option<RunPlace> {
        let rank = place.rank.checked_sub(1)?;
        let is_of_key = place.key < self.keys && rank >= self.starts.get(place.key);
        let key = if is_of_key { place.key } else { place.key.checked_sub(1)? };
        Some(RunPlace { key, rank })
    }

    /// The place behind all entries.
    pub(crate) fn end(&self) -> RunPlace {
        RunPlace { key: self.keys, rank: self.len() }
    }

    /// The rank of exactly this entry.
    pub(crate) fn rank_of(&self, key: &[u8], element: u64) -> Option<u64> {
        if element >= self.elements_end {
            return None;
        }
        let place = self.lower_bound(key, element);
        let is_there = place.rank < self.len() && self.element(place.rank) == element && self.key(place.key) == key;
        is_there.then_some(place.rank)
    }

    /// The number of its index.
    pub(crate) fn number(&self) -> u32 {
        self.file.header.tablet
    }

    /// Whose it is.
    pub(crate) fn origin(&self) -> SegmentOrigin {
        self.file.header.origin
    }

    /// Its name on the disk, if it has one.
    pub(crate) fn stored_name(&self) -> Option<&Arc<str>> {
        self.is_stored.then_some(&self.file.name)
    }

    /// Length of the file.
    pub(crate) fn file_bytes(&self) -> usize {
        self.file.bytes.bytes().len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const ORIGIN: SegmentOrigin = SegmentOrigin { store: 5, graph: 6 };

    fn image(entries: &BTreeSet<(Vec<u8>, u64)>) -> SegmentImage {
        let mut builder = IndexRunBuilder::default();
        entries.iter().for_each(|(key, element)| builder.add(key, *element));
        builder.finish(ORIGIN, 7, KeyForm::Ordered)
    }

    fn open(bytes: Arc<SegmentBytes>) -> Result<IndexRun, StoreError> {
        Ok(IndexRun::open(bytes, "run", true, KeyForm::Ordered)?.expect("keys of this form"))
    }

    fn entry(run: &IndexRun, place: RunPlace) -> (Vec<u8>, u64) {
        (run.key(place.key).to_vec(), run.element(place.rank))
    }

    fn some_key() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(0u8..3, 0..4)
    }

    proptest! {
        #[test]
        fn entries_are_found_in_both_directions(
            entries in prop::collection::btree_set((some_key(), prop_oneof![0u64..9, Just(1 << 48)]), 0..60),
            asked in prop::collection::vec((some_key(), 0u64..10), 20),
        ) {
            let run = open(image(&entries).into_bytes()).unwrap();
            run.verify().unwrap();
            prop_assert_eq!((run.len(), run.number(), run.origin()), (entries.len() as u64, 7, ORIGIN));
            for (key, element) in asked {
                let asked = (key, element);
                let place = run.lower_bound(&asked.0, asked.1);
                let rank = run.rank_of(&asked.0, asked.1);
                prop_assert_eq!(rank, entries.contains(&asked).then_some(place.rank));
                let (mut at, mut behind) = (place, Vec::new());
                while at.rank < run.len() {
                    behind.push(entry(&run, at));
                    at = run.next(at);
                }
                prop_assert_eq!(at, run.end());
                prop_assert_eq!(behind, entries.range(asked.clone()..).cloned().collect::<Vec<_>>());
                let (mut at, mut before) = (place, Vec::new());
                while let Some(previous) = run.previous(at) {
                    at = previous;
                    before.push(entry(&run, at));
                }
                prop_assert_eq!(before, entries.range(..asked).rev().cloned().collect::<Vec<_>>());
            }
        }

        /// Whatever bit is wrong, opening or verifying tells.
        #[test]
        fn damage_is_found(
            entries in prop::collection::btree_set((some_key(), 0u64..1000), 1..40),
            at in any::<prop::sample::Index>(),
            bit in 0u32..8,
        ) {
            let mut bytes = image(&entries).into_bytes().bytes().to_vec();
            let place = at.index(bytes.len());
            bytes[place] ^= 1 << bit;
            let opened = IndexRun::open(Arc::new(SegmentBytes::copy(&bytes)), "run", true, KeyForm::Ordered);
            let is_found = match opened {
                Err(StoreError::Corrupt { file, .. }) => file == "run",
                Ok(Some(run)) => run.verify().is_err(),
                _ => false,
            };
            prop_assert!(is_found, "byte {}", place);
        }
    }

    #[test]
    fn hashes_are_found_through_their_table() {
        for count in [0u64, 1, 2, 15, 16, 100, 1000] {
            for spread in [1, 0x9E37_79B9_7F4A_7C15, u64::MAX / 3] {
                let hashes: BTreeSet<u64> = (0..count).map(|number| number.wrapping_mul(spread)).collect();
                let mut builder = IndexRunBuilder::default();
                hashes.iter().for_each(|hash| builder.add(&hash.to_be_bytes(), *hash % 50));
                let bytes = builder.finish(ORIGIN, 7, KeyForm::Hashes).into_bytes();
                let run = IndexRun::open(bytes, "run", true, KeyForm::Hashes).unwrap().unwrap();
                run.verify().unwrap();
                let asked = hashes.iter().flat_map(|hash| [hash.wrapping_sub(1), *hash, hash.wrapping_add(1)]);
                for hash in asked.chain([0, u64::MAX]) {
                    let before = hashes.range(..hash).count() as u64;
                    assert_eq!(run.lower_bound(&hash.to_be_bytes(), 0).key, before, "{hash} of {count}");
                }
            }
        }
    }

    #[test]
    fn keys_of_another_form_are_of_no_use() {
        let bytes = image(&BTreeSet::from([(vec![1], 2)])).into_bytes();
        assert!(IndexRun::open(bytes, "run", true, KeyForm::Hashes).unwrap().is_none());
    }

    #[test]
    fn keys_of_one_length_and_one_element_take_no_offsets() {
        let entries = (0..1000u64).map(|number| ((number * 7919).to_be_bytes().to_vec(), number % 250));
        let length = image(&entries.collect()).length();
        assert!(length < 1000 * 9 + 600, "{length}");
    }
}
