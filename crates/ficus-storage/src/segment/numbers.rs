//! A column of 64-bit numbers in the cheapest form that holds them.
//!
//! *Affine* is `first + index × stride` and takes no bytes; a constant is affine with stride 0. Everything else is packed:
//! `first + packed[index]` with 1, 2, 4, 8, 16, 32 or 64 bits an entry. All sums wrap, so signed numbers and the bits of
//! floats work as well.

use std::ops::Range;

use super::damage::damaged;
use super::file::{Encoding, Entry, SectionName, SegmentFile};
use crate::StoreError;
use crate::mapping::Section;

/// A column of numbers, to be read.
#[derive(Clone, Debug)]
pub(crate) enum Numbers {
    Affine { first: u64, stride: u64, count: u64 },
    Bits { words: Section<u64>, width: u32, first: u64, count: u64 },
    U8 { numbers: Section<u8>, first: u64 },
    U16 { numbers: Section<u16>, first: u64 },
    U32 { numbers: Section<u32>, first: u64 },
    U64 { numbers: Section<u64> },
}

/// Where something of a vertex is kept as a number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'a> {
    /// It has none.
    Nowhere,
    /// At this index.
    At(&'a Numbers, u64),
    /// It is this one.
    Known(u64),
    /// Columns do not say.
    Unknown,
}

impl Numbers {
    /// A column without entries.
    pub(super) const EMPTY: Numbers = Numbers::Affine { first: 0, stride: 0, count: 0 };

    pub(super) fn open(file: &SegmentFile, name: SectionName) -> Result<Numbers, StoreError> {
        Numbers::of(file, file.entry(name)?)
    }

    pub(super) fn of(file: &SegmentFile, entry: &Entry) -> Result<Numbers, StoreError> {
        let Encoding { width, count, first, stride, .. } = entry.encoding;
        Ok(match width {
            0 => {
                file.section::<u8>(entry, 0)?;
                Numbers::Affine { first, stride, count }
            }
            1 | 2 | 4 => {
                let words = u64::try_from((u128::from(count) * u128::from(width)).div_ceil(64));
                let words = words.map_err(|_| file.corrupt(entry, "a column has too many entries"))?;
                Numbers::Bits { words: file.section(entry, words)?, width: u32::from(width), first, count }
            }
            8 => Numbers::U8 { numbers: file.section(entry, count)?, first },
            16 => Numbers::U16 { numbers: file.section(entry, count)?, first },
            32 => Numbers::U32 { numbers: file.section(entry, count)?, first },
            64 if first == 0 => Numbers::U64 { numbers: file.section(entry, count)? },
            _ => return Err(file.corrupt(entry, "a column has an unknown width")),
        })
    }

    /// Opens a column that has to have `count` entries.
    pub(super) fn open_counted(file: &SegmentFile, name: SectionName, count: u64) -> Result<Numbers, StoreError> {
        let numbers = Numbers::open(file, name)?;
        if numbers.len() != count {
            let what = format!("a column has {} entries where {count} belong", numbers.len());
            return Err(file.corrupt(file.entry(name)?, what));
        }
        Ok(numbers)
    }

    #[inline]
    pub(super) fn len(&self) -> u64 {
        match self {
            Numbers::Affine { count, .. } | Numbers::Bits { count, .. } => *count,
            Numbers::U8 { numbers, .. } => numbers.len() as u64,
            Numbers::U16 { numbers, .. } => numbers.len() as u64,
            Numbers::U32 { numbers, .. } => numbers.len() as u64,
            Numbers::U64 { numbers } => numbers.len() as u64,
        }
    }

    /// The number at an index below `len`. An affine column answers for every index.
    // Listing half-edges calls this for each; left to itself, the compiler may make it a call.
    #[inline(always)]
    pub(crate) fn get(&self, index: u64) -> u64 {
        match self {
            Numbers::Affine { first, stride, .. } => first.wrapping_add(stride.wrapping_mul(index)),
            Numbers::U32 { numbers, first } => first.wrapping_add(u64::from(at(numbers, index))),
            Numbers::U64 { numbers } => at(numbers, index),
            Numbers::U8 { numbers, first } => first.wrapping_add(u64::from(at(numbers, index))),
            Numbers::U16 { numbers, first } => first.wrapping_add(u64::from(at(numbers, index))),
            Numbers::Bits { words, width, first, .. } => {
                let bit = index.wrapping_mul(u64::from(*width));
                first.wrapping_add(at(words, bit / 64) >> (bit % 64) & ((1 << width) - 1))
            }
        }
    }

    /// Begins to load the number at an index, see [`Section::prefetch`].
    #[inline(always)]
    pub(crate) fn prefetch(&self, index: u64) {
        let index = index as usize;
        match self {
            Numbers::Affine { .. } => {}
            Numbers::U32 { numbers, .. } => numbers.prefetch(index),
            Numbers::U64 { numbers } => numbers.prefetch(index),
            Numbers::U8 { numbers, .. } => numbers.prefetch(index),
            Numbers::U16 { numbers, .. } => numbers.prefetch(index),
            Numbers::Bits { words, width, .. } => words.prefetch(index.wrapping_mul(*width as usize) / 64),
        }
    }

    /// The number all entries are.
    #[inline]
    pub(super) fn constant(&self) -> Option<u64> {
        match self {
            Numbers::Affine { first, stride: 0, .. } => Some(*first),
            _ => None,
        }
    }

    /// In an ascending part of the column, the first index whose number is not below `wanted`.
    #[inline]
    pub(super) fn lower_bound(&self, range: Range<usize>, wanted: u64) -> usize {
        // Halved on what is stored, to compare without a branch on the form.
        match self {
            Numbers::U8 { numbers, first } => {
                let part = slice(numbers, range.clone());
                range.start + part.partition_point(|number| first.wrapping_add(u64::from(*number)) < wanted)
            }
            Numbers::Bits { words, width, first, .. } => {
                let (words, shift, mask) = (&words[..], width.trailing_zeros(), (1 << width) - 1);
                halve(range, |index| {
                    let bit = index << shift;
                    first.wrapping_add(at(words, (bit / 64) as u64) >> (bit % 64) & mask) < wanted
                })
            }
            Numbers::U32 { numbers, first } => {
                let part = slice(numbers, range.clone());
                range.start + part.partition_point(|number| first.wrapping_add(u64::from(*number)) < wanted)
            }
            Numbers::U64 { numbers } => range.start + slice(numbers, range).partition_point(|number| *number < wanted),
            Numbers::Affine { .. } | Numbers::U16 { .. } => halve(range, |index| self.get(index as u64) < wanted),
        }
    }

    /// In an ascending part of the column, where the entries are that are `wanted`; an empty range somewhere in the part if there are none.
    ///
    /// Packed entries are counted a word at a time, without a guess on which way a search turns: a few cycles for up to 16 labels of 4
    /// bits. Long parts are searched in logarithmic time, packed ones word by word.
    #[inline]
    pub(super) fn equal_range(&self, range: Range<usize>, wanted: u64) -> Range<usize> {
        match self {
            Numbers::Bits { words, width, first, .. } => {
                let stored = wanted.wrapping_sub(*first);
                match width {
                    _ if stored >> width != 0 => range.start..range.start,
                    1 => Lanes::<1>::equal_range(words, range, stored),
                    2 => Lanes::<2>::equal_range(words, range, stored),
                    _ => Lanes::<4>::equal_range(words, range, stored),
                }
            }
            Numbers::U8 { numbers, first } if range.len() * 8 <= COUNTED_BITS => {
                let Ok(stored) = u8::try_from(wanted.wrapping_sub(*first)) else { return range.start..range.start };
                let part = slice(numbers, range.clone());
                let count = |is_counted: fn(u8, u8) -> bool| {
                    part.iter().map(|number| usize::from(is_counted(*number, stored))).sum::<usize>()
                };
                // What is stored ascends only if the numbers do without wrapping, as labels do.
                let start = range.start + count(|number, stored| number < stored);
                start..start + count(|number, stored| number == stored)
            }
            _ => {
                // The first and the last entry often are the wanted ones; searching costs more than looking.
                if range.is_empty() {
                    return range;
                }
                let (last, above) = (range.end - 1, wanted.saturating_add(1));
                let start = match self.get(range.start as u64) >= wanted {
                    true => range.start,
                    false => self.lower_bound(range.start + 1..range.end, wanted),
                };
                match self.get(last as u64) <= wanted {
                    true => start..range.end,
                    false => start..self.lower_bound(start..last, above),
                }
            }
        }
    }

    /// The last index whose number is not above `wanted`, in an ascending column.
    #[inline]
    pub(super) fn last_not_above(&self, wanted: u64) -> Option<u64> {
        let end = match wanted.checked_add(1) {
            Some(above) => self.lower_bound(0..self.len() as usize, above),
            None => self.len() as usize,
        };
        end.checked_sub(1).map(|index| index as u64)
    }

    /// Where the first entry that `wrong` picks is; for `verify`.
    pub(super) fn find(&self, mut wrong: impl FnMut(u64) -> bool) -> Option<u64> {
        (0..self.len()).find(|index| wrong(self.get(*index)))
    }

    /// True if every number is larger than the one before it.
    pub(super) fn is_ascending(&self) -> bool {
        match self {
            Numbers::Affine { first, stride, count } => {
                let way = count.saturating_sub(1);
                *count < 2 || *stride > 0 && stride.checked_mul(way).is_some_and(|way| first.checked_add(way).is_some())
            }
            _ => (1..self.len()).all(|index| self.get(index - 1) < self.get(index)),
        }
    }

    /// True if no number is smaller than the one before it.
    pub(super) fn is_monotone(&self) -> bool {
        match self {
            Numbers::Affine { stride: 0, .. } => true,
            Numbers::Affine { .. } => self.is_ascending(),
            _ => (1..self.len()).all(|index| self.get(index - 1) <= self.get(index)),
        }
    }
}

/// Bits of a part of which all words are looked at: eight words.
const COUNTED_BITS: usize = 512;

/// Packed entries of `W` bits (1, 2 or 4), all those of a word looked at together.
struct Lanes<const W: u32>;

impl<const W: u32> Lanes<W> {
    /// The lowest bit of each lane.
    const LOW: u64 = u64::MAX / ((1 << W) - 1);

    /// Entries of a word.
    const IN_WORD: usize = (64 / W) as usize;

    /// Where the entries of an ascending part are that are stored as `stored`, which fits into a lane.
    #[inline]
    fn equal_range(words: &[u64], range: Range<usize>, stored: u64) -> Range<usize> {
        match range.len() <= COUNTED_BITS / W as usize {
            true => Self::equal(words, range, stored),
            false => Self::equal_in_long(words, range, stored),
        }
    }

    /// The same of a part of several words.
    fn equal_in_long(words: &[u64], range: Range<usize>, stored: u64) -> Range<usize> {
        // All words but the last have their last entry in the part: where that is smaller, all of them are.
        let (first, last) = (range.start / Self::IN_WORD, (range.end - 1) / Self::IN_WORD);
        let word = halve(first..last, |word| at(words, word as u64) >> (64 - W) < stored);
        let from = range.start.max(word * Self::IN_WORD);
        let near = from..range.end.min(from + COUNTED_BITS / W as usize);
        let found = Self::equal(words, near.clone(), stored);
        if found.end < near.end || near.end == range.end {
            return found;
        }
        let entry = |index: usize| {
            let bit = index * W as usize;
            at(words, (bit / 64) as u64) >> (bit % 64) & ((1 << W) - 1)
        };
        found.start..halve(near.end..range.end, |index| entry(index) <= stored)
    }

    /// Where the entries of an ascending part are that are stored as `stored`, which fits into a lane.
    #[inline(always)]
    fn equal(words: &[u64], range: Range<usize>, stored: u64) -> Range<usize> {
        let (mut index, mut start, mut count) = (range.start, None, 0);
        while index < range.end {
            let bit = index * W as usize;
            let (word, shift) = (at(words, (bit / 64) as u64), (bit % 64) as u32);
            let lanes = ((64 - shift) / W).min((range.end - index) as u32);
            let found = Self::zeros((word >> shift) ^ (Self::LOW * stored)) & (u64::MAX >> (64 - lanes * W));
            if found != 0 && start.is_none() {
                start = Some(index + (found.trailing_zeros() / W) as usize);
            }
            count += found.count_ones() as usize;
            index += lanes as usize;
        }
        let start = start.unwrap_or(range.start);
        start..start + count
    }

    /// The lowest bits of the lanes that are zero.
    #[inline(always)]
    fn zeros(word: u64) -> u64 {
        let mut any = word;
        if W > 1 {
            any |= any >> 1;
        }
        if W > 2 {
            any |= any >> 2;
        }
        !any & Self::LOW
    }
}

/// The number at an index that a sound column has.
#[inline(always)]
fn at<T: Copy>(numbers: &[T], index: u64) -> T {
    match numbers.get(index as usize) {
        Some(number) => *number,
        None => damaged(),
    }
}

/// The numbers of a range that a sound column has.
#[inline(always)]
pub(super) fn slice<T>(numbers: &[T], range: Range<usize>) -> &[T] {
    match numbers.get(range) {
        Some(numbers) => numbers,
        None => damaged(),
    }
}

/// The first index of a range of which `is_before` is false, where it is true of a first part of it only.
#[inline(always)]
fn halve(range: Range<usize>, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut left) = (range.start, range.len());
    if left == 0 {
        return low;
    }
    // Always as many steps, so that the processor has nothing to guess.
    while left > 1 {
        let half = left / 2;
        low = if is_before(low + half - 1) { low + half } else { low };
        left -= half;
    }
    low + usize::from(is_before(low))
}

/// A column that is read as a slice.
#[derive(Clone, Debug)]
pub(super) enum PlainNumbers {
    U32(Section<u32>),
    U64(Section<u64>),
}

impl PlainNumbers {
    /// A column without entries.
    pub(super) const EMPTY: PlainNumbers = PlainNumbers::U32(Section::EMPTY);

    /// Opens a column that has to have `count` entries.
    pub(super) fn open(file: &SegmentFile, name: SectionName, count: u64) -> Result<PlainNumbers, StoreError> {
        let entry = file.entry(name)?;
        match entry.encoding.width {
            32 => Ok(PlainNumbers::U32(file.section(entry, count)?)),
            64 => Ok(PlainNumbers::U64(file.section(entry, count)?)),
            _ => Err(file.corrupt(entry, "a plain column has an unknown width")),
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        match self {
            PlainNumbers::U32(numbers) => numbers.len(),
            PlainNumbers::U64(numbers) => numbers.len(),
        }
    }

    #[inline(always)]
    pub(super) fn get(&self, index: usize) -> u64 {
        match self {
            PlainNumbers::U32(numbers) => u64::from(at(numbers, index as u64)),
            PlainNumbers::U64(numbers) => at(numbers, index as u64),
        }
    }

    /// Begins to load the number at an index, see [`Section::prefetch`].
    #[inline(always)]
    pub(super) fn prefetch(&self, index: usize) {
        match self {
            PlainNumbers::U32(numbers) => numbers.prefetch(index),
            PlainNumbers::U64(numbers) => numbers.prefetch(index),
        }
    }

    /// Two numbers that follow each other.
    #[inline]
    pub(super) fn pair(&self, index: usize) -> (usize, usize) {
        match self {
            PlainNumbers::U32(numbers) => match numbers.get(index..) {
                Some([a, b, ..]) => (*a as usize, *b as usize),
                _ => (0, 0),
            },
            PlainNumbers::U64(numbers) => match numbers.get(index..) {
                Some([a, b, ..]) => (*a as usize, *b as usize),
                _ => (0, 0),
            },
        }
    }

    /// In an ascending column, the first index whose number is above `wanted`.
    pub(super) fn upper_bound(&self, wanted: u64) -> usize {
        match self {
            PlainNumbers::U32(numbers) => numbers.partition_point(|number| u64::from(*number) <= wanted),
            PlainNumbers::U64(numbers) => numbers.partition_point(|number| *number <= wanted),
        }
    }

    /// True if the numbers go from 0 to `last` without a step back; for `verify`.
    pub(super) fn are_offsets(&self, last: u64) -> bool {
        let ordered = match self {
            PlainNumbers::U32(numbers) => numbers.is_sorted(),
            PlainNumbers::U64(numbers) => numbers.is_sorted(),
        };
        ordered && self.len() > 0 && self.get(0) == 0 && self.get(self.len() - 1) == last
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::segment::SegmentOrigin;
    use crate::segment::file::{FileBuilder, FileKind, Header, Owner, part};
    use crate::segment::numbers_builder::NumbersBuilder;

    fn stored(numbers: &[u64]) -> (Numbers, usize) {
        let mut builder = NumbersBuilder::default();
        numbers.iter().for_each(|number| builder.push(*number));
        assert_eq!(builder.is_ascending(), numbers.is_sorted_by(|a, b| a < b));
        assert_eq!(builder.bounds(), numbers.iter().min().map(|low| (*low, *numbers.iter().max().unwrap())));
        let mut file = FileBuilder::new();
        let name = Owner::Vertices.part(part::NUMBERS);
        builder.put(&mut file, name, 0);
        let header = Header { origin: SegmentOrigin::default(), tablet: 0, tablet_bits: 0, slots: 0 };
        let image = file.finish(FileKind::Segment, header);
        let length = image.length();
        let file = SegmentFile::open(image.into_bytes(), "numbers", FileKind::Segment).unwrap();
        file.verify().unwrap();
        assert_eq!(Arc::strong_count(&file.bytes), 1);
        (Numbers::open(&file, name).unwrap(), length)
    }

    #[test]
    fn the_cheapest_form_is_taken() {
        let minus_one = u64::MAX;
        let cases: [(&[u64], usize); 9] = [
            (&[], 0),
            (&[7], 0),
            (&[7, 7, 7, 7], 0),
            (&[minus_one, 4, 9], 0),
            (&[8, 6, 4, 2], 0),
            (&[1, 0, 0, 1], 1),
            (&[minus_one, 0, 1, 1], 1),
            (&[1 << 40, (1 << 40) + 100, 1 << 40, 1 << 40], 1),
            (&[0, u64::from(u32::MAX), 0], 2),
        ];
        for (numbers, words) in cases {
            // Sections and the directory are padded to 64 bytes.
            assert_eq!(stored(numbers).1, 128 + words.min(1) * 64, "{numbers:?}");
        }
    }

    proptest! {
        #[test]
        fn numbers_come_back(
            first in any::<u64>(),
            width in 0u32..=64,
            affine in 0usize..4,
            raw in prop::collection::vec(any::<u64>(), 0..200),
            times in 1usize..6,
        ) {
            let mask = if width == 0 { 0 } else { u64::MAX >> (64 - width) };
            let mut numbers: Vec<u64> = (0..affine as u64).map(|index| first.wrapping_add(index * 3)).collect();
            numbers.extend(raw.iter().map(|number| first.wrapping_add(number & mask)));
            let (column, _) = stored(&numbers);
            let read: Vec<u64> = (0..column.len()).map(|index| column.get(index)).collect();
            prop_assert_eq!(&read, &numbers);
            // Ascending as stored, with entries that are equal.
            let mut ascending: Vec<u64> = raw.iter().map(|number| (first >> 1) + (number & mask >> 1)).collect();
            ascending.sort_unstable();
            let ascending: Vec<u64> =
                ascending.into_iter().flat_map(|number| std::iter::repeat_n(number, times)).collect();
            let (column, _) = stored(&ascending);
            let asked = ascending.iter().enumerate().step_by(times * times);
            for (start, wanted) in asked.flat_map(|(at, own)| [(at / 3, *own), (at / 2, own + 1)]) {
                for end in [start, (start + 5).min(ascending.len()), ascending.len()] {
                    let part = &ascending[start..end];
                    let below = start + part.partition_point(|number| *number < wanted);
                    let found = column.equal_range(start..end, wanted);
                    prop_assert!(start <= found.start && found.end <= end);
                    prop_assert_eq!(found.len(), part.iter().filter(|number| **number == wanted).count());
                    prop_assert!(found.is_empty() || found.start == below);
                }
            }
            numbers.sort_unstable();
            numbers.dedup();
            let (column, _) = stored(&numbers);
            prop_assert!(column.is_ascending());
            for wanted in raw.iter().chain(&numbers) {
                let expected = numbers.partition_point(|number| number < wanted);
                prop_assert_eq!(column.lower_bound(0..numbers.len(), *wanted), expected);
                let expected = numbers.partition_point(|number| number <= wanted).checked_sub(1);
                prop_assert_eq!(column.last_not_above(*wanted), expected.map(|index| index as u64));
            }
        }
    }
}
