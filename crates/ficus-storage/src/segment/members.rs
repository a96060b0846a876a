//! Which numbers of a range belong to a set, and how many members are before each.
//!
//! A set is kept as ranges (start, and the number of members before it) or as a bitmap with a count for every 512 bits,
//! whichever is smaller. One range, as most sets of a freshly loaded graph are, is two fields.

use std::ops::{ControlFlow, Range};
use std::sync::OnceLock;

use super::damage::damaged;
use super::file::{Encoding, FileBuilder, Owner, SegmentFile, part};
use super::numbers::Numbers;
use super::numbers_builder::NumbersBuilder;
use crate::StoreError;
use crate::mapping::Section;

/// Words of a bitmap for which one count is kept.
const BLOCK_WORDS: u64 = 8;

/// Which of the 64 numbers from `first` on are in `start..end`, as bits.
fn bits_of_range(start: u64, end: u64, first: u64) -> u64 {
    let below = |end: u64| match end.saturating_sub(first) {
        bits @ 0..64 => (1 << bits) - 1,
        _ => u64::MAX,
    };
    below(end) & !below(start)
}

/// A set being collected, in ascending order.
#[derive(Clone, Debug, Default)]
pub(super) struct MembersBuilder {
    starts: NumbersBuilder,
    /// As many as `starts` as long as no range is open, which is always the case between calls.
    ranks: NumbersBuilder,
    count: u64,
    /// One behind the last member.
    end: u64,
}

impl MembersBuilder {
    /// Adds a member larger than all before.
    #[inline]
    pub(super) fn push(&mut self, member: u64) {
        if member != self.end || self.count == 0 {
            assert!(member >= self.end, "members come in ascending order");
            self.starts.push(member);
            self.ranks.push(self.count);
        }
        self.count += 1;
        self.end = member + 1;
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// True if this was the last member pushed.
    pub(super) fn ends_with(&self, member: u64) -> bool {
        self.count > 0 && self.end == member + 1
    }

    fn ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        (0..self.starts.len()).map(|index| {
            let rank = self.ranks.get(index);
            let next = if index + 1 < self.ranks.len() { self.ranks.get(index + 1) } else { self.count };
            (self.starts.get(index), next - rank)
        })
    }

    /// All members, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        self.ranges().flat_map(|(start, length)| start..start + length)
    }

    pub(super) fn put(mut self, file: &mut FileBuilder, owner: Owner, key: u32) {
        let first = if self.count == 0 { 0 } else { self.starts.get(0) };
        let span = self.end - first;
        // Start and rank take 4 bytes each in all but huge tablets; a bitmap is faster, so ranges have to be clearly smaller.
        if self.starts.len() as u64 * 8 <= span / 16 || self.starts.len() <= 1 {
            self.ranks.push(self.count);
            self.starts.put(file, owner.key_part(key, part::RANGE_STARTS), 0);
            self.ranks.put(file, owner.key_part(key, part::RANGE_RANKS), 0);
            return;
        }
        let mut words = vec![0u64; span.div_ceil(64) as usize];
        for (start, length) in self.ranges() {
            set_bits(&mut words, start - first, length);
        }
        put_bitmap(&words, first, file, owner, key);
    }
}

fn set_bits(words: &mut [u64], start: u64, length: u64) {
    let mut at = start;
    let end = start + length;
    while at < end {
        let inside = at % 64;
        let taken = (64 - inside).min(end - at);
        words[(at / 64) as usize] |= (u64::MAX >> (64 - taken)) << inside;
        at += taken;
    }
}

/// Members before every block of a bitmap, and in all.
pub(super) fn block_ranks(words: &[u64]) -> Vec<u64> {
    let mut ranks = Vec::with_capacity(words.len() / BLOCK_WORDS as usize + 2);
    let mut rank = 0;
    for block in words.chunks(BLOCK_WORDS as usize) {
        ranks.push(rank);
        rank += block.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
    }
    ranks.push(rank);
    ranks
}

/// Members before a bit.
#[inline]
pub(super) fn bit_rank(words: &[u64], ranks: &[u64], bit: u64) -> u64 {
    let word = (bit / 64) as usize;
    let block = word / BLOCK_WORDS as usize;
    let before: u32 = words[block * BLOCK_WORDS as usize..word].iter().map(|word| word.count_ones()).sum();
    let below = words[word] & ((1u64 << (bit % 64)) - 1);
    ranks[block] + u64::from(before + below.count_ones())
}

/// Writes a set as a bitmap whose first bit is the member `first`.
pub(super) fn put_bitmap(words: &[u64], first: u64, file: &mut FileBuilder, owner: Owner, key: u32) {
    let ranks = block_ranks(words);
    let encoding = Encoding { width: 64, count: words.len() as u64, first, ..Encoding::default() };
    file.put(owner.key_part(key, part::BITMAP), encoding, words.len(), |out: &mut [u64]| out.copy_from_slice(words));
    let encoding = Encoding { width: 64, count: ranks.len() as u64, ..Encoding::default() };
    let name = owner.key_part(key, part::BITMAP_RANKS);
    file.put(name, encoding, ranks.len(), |out: &mut [u64]| out.copy_from_slice(&ranks));
}

/// So many ranges are kept in memory once more, to be found without a search.
const FEW_RANGES: u64 = 512;

/// A range of members.
#[derive(Clone, Copy, Debug)]
struct Run {
    start: u64,
    length: u64,
    /// Members before it.
    before: u64,
}

/// A few ranges, found by a table: the numbers from the first member on are divided into parts of one size, two for each range or more, and the
/// table says with which range to begin for each part. A search through twenty ranges takes three guesses at which way it turns, and as long as a
/// look at the memory for each that is wrong.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    runs: Box<[Run]>,
    /// By part, the last range that begins before it or with it.
    parts: Box<[u16]>,
    /// The logarithm of a part's size.
    shift: u32,
}

impl Runs {
    /// All ranges, at least one and no more than [`FEW_RANGES`]; they have been read but not verified.
    fn new(runs: Box<[Run]>) -> Runs {
        let (first, last) = (runs[0].start, runs[runs.len() - 1]);
        let span = last.start.saturating_add(last.length).saturating_sub(first);
        let shift = (span / (2 * runs.len() as u64)).max(1).ilog2();
        let mut at = 0;
        let parts = (0..=span >> shift).take(8 * FEW_RANGES as usize).map(|part| {
            let start = first.saturating_add(part << shift);
            while runs.get(at + 1).is_some_and(|next| next.start <= start) {
                at += 1;
            }
            at as u16
        });
        Runs { parts: parts.collect(), runs, shift }
    }

    fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The number of members before this one, if it is a member.
    #[inline]
    fn rank(&self, member: u64) -> Option<u64> {
        let part = (member.checked_sub(self.runs.first()?.start)? >> self.shift) as usize;
        let first = usize::from(*self.parts.get(part)?);
        let last = self.parts.get(part + 1).map_or(self.runs.len() - 1, |last| usize::from(*last));
        // One or two, unless most lie together in a part of what the set spans.
        let later = self.runs.get(first + 1..=last).unwrap_or_default();
        let at = first + later.partition_point(|run| run.start <= member);
        let Run { start, length, before } = self.runs[at];
        let offset = member.wrapping_sub(start);
        (offset < length).then(|| before.wrapping_add(offset))
    }
}

/// Of more than so many ranges no table is made: that would take longer than a query may be held up.
const MANY_RANGES: u64 = 1 << 17;

/// Where to look among many ranges, by a table as that of [`Runs`]. The ranges themselves stay where they are.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    first: u64,
    shift: u32,
    /// By part, the last range that begins before it or with it.
    parts: Box<[u32]>,
}

impl Parts {
    /// Of ranges that start so, at least one and at most [`MANY_RANGES`].
    fn new(starts: &Numbers) -> Parts {
        let (first, last) = (starts.get(0), starts.get(starts.len() - 1));
        let span = last.saturating_sub(first);
        let shift = (span / (2 * starts.len())).max(1).ilog2();
        let mut at = 0;
        let parts = (0..=span >> shift).take(8 * starts.len() as usize).map(|part| {
            let start = first.saturating_add(part << shift);
            while at + 1 < starts.len() && starts.get(at + 1) <= start {
                at += 1;
            }
            at as u32
        });
        Parts { parts: parts.collect(), first, shift }
    }

    /// The last range that starts at a member or before it.
    #[inline]
    fn last_not_above(&self, starts: &Numbers, member: u64) -> Option<u64> {
        let part = (member.checked_sub(self.first)? >> self.shift) as usize;
        let first = *self.parts.get(part).or(self.parts.last())? as usize;
        let last = self.parts.get(part + 1).map_or(starts.len() as usize - 1, |last| *last as usize);
        Some(starts.lower_bound(first + 1..last + 1, member.saturating_add(1)) as u64 - 1)
    }
}

/// A set, to be read.
#[derive(Clone, Debug)]
pub(super) enum Members {
    /// All from `start` to before `start + count`.
    Range { start: u64, count: u64 },
    /// Several ranges; `ranks` has one entry more. If there are few, `few` has them once more; of more of them there is a table once somebody asks.
    Ranges { starts: Numbers, ranks: Numbers, count: u64, few: Runs, many: OnceLock<Parts> },
    /// Bits from `first` on.
    Bitmap { first: u64, words: Section<u64>, ranks: Section<u64>, count: u64 },
}

impl Members {
    /// The set without members.
    pub(super) const EMPTY: Members = Members::Range { start: 0, count: 0 };

    /// Reads a set whose members are below `end`.
    pub(super) fn open(file: &SegmentFile, owner: Owner, key: u32, end: u64) -> Result<Members, StoreError> {
        if let Some(entry) = file.find(owner.key_part(key, part::BITMAP)) {
            let words: Section<u64> = file.section(entry, entry.encoding.count)?;
            let ranks_entry = file.entry(owner.key_part(key, part::BITMAP_RANKS))?;
            let blocks = (words.len() as u64).div_ceil(BLOCK_WORDS);
            let ranks: Section<u64> = file.section(ranks_entry, blocks + 1)?;
            let first = entry.encoding.first;
            let last = words.last().map_or(0, |word| u64::from(word.leading_zeros()));
            if (words.len() as u64 * 64 - last).checked_add(first).is_none_or(|behind| behind > end) {
                return Err(file.corrupt(entry, "a set has members behind its end"));
            }
            let count = ranks[ranks.len() - 1];
            return Ok(Members::Bitmap { first, words, ranks, count });
        }
        let name = owner.key_part(key, part::RANGE_STARTS);
        let starts = Numbers::open(file, name)?;
        let ranks = Numbers::open(file, owner.key_part(key, part::RANGE_RANKS))?;
        let corrupt = |what: &str| Err(file.corrupt(file.entry(name)?, what));
        if starts.len().checked_add(1) != Some(ranks.len()) {
            return corrupt("a set has not as many starts as ranks");
        }
        let count = ranks.get(starts.len());
        let Some(last) = starts.len().checked_sub(1) else {
            return if count == 0 { Ok(Members::EMPTY) } else { corrupt("a set without ranges has members") };
        };
        let (start, length) = (starts.get(last), count.checked_sub(ranks.get(last)));
        if length.and_then(|length| start.checked_add(length)).is_none_or(|behind| behind > end) {
            return corrupt("a set has members behind its end");
        }
        match last {
            0 if ranks.get(0) == 0 => Ok(Members::Range { start, count }),
            0 => corrupt("a set does not begin with rank 0"),
            _ => {
                let run = |index| {
                    let before = ranks.get(index);
                    Run { start: starts.get(index), length: ranks.get(index + 1).saturating_sub(before), before }
                };
                let few = if last < FEW_RANGES { Runs::new((0..=last).map(run).collect()) } else { Runs::default() };
                Ok(Members::Ranges { starts, ranks, count, few, many: OnceLock::new() })
            }
        }
    }

    #[inline]
    pub(super) fn count(&self) -> u64 {
        match self {
            Members::Range { count, .. } | Members::Ranges { count, .. } | Members::Bitmap { count, .. } => *count,
        }
    }

    /// The number of members before this one, if it is a member.
    #[inline]
    pub(super) fn rank(&self, member: u64) -> Option<u64> {
        match self {
            Members::Range { start, count } => {
                let rank = member.wrapping_sub(*start);
                (rank < *count).then_some(rank)
            }
            Members::Bitmap { first, words, ranks, .. } => {
                let bit = member.wrapping_sub(*first);
                let word = words.get((bit / 64) as usize)?;
                (word >> (bit % 64) & 1 == 1).then(|| bit_rank(words, ranks, bit))
            }
            Members::Ranges { few, .. } if !few.is_empty() => few.rank(member),
            Members::Ranges { starts, ranks, many, .. } => {
                let range = match starts.len() {
                    ..=MANY_RANGES => many.get_or_init(|| Parts::new(starts)).last_not_above(starts, member)?,
                    _ => starts.last_not_above(member)?,
                };
                let rank = ranks.get(range).saturating_add(member - starts.get(range));
                (rank < ranks.get(range + 1)).then_some(rank)
            }
        }
    }

    /// Whether asking for a member takes one look at the memory, or a few at the same place.
    #[inline]
    pub(super) fn is_quick(&self) -> bool {
        match self {
            Members::Range { .. } | Members::Bitmap { .. } => true,
            Members::Ranges { few, .. } => !few.is_empty(),
        }
    }

    /// True if it is a member.
    #[inline]
    pub(super) fn contains(&self, member: u64) -> bool {
        match self {
            Members::Bitmap { first, words, .. } => {
                let bit = member.wrapping_sub(*first);
                words.get((bit / 64) as usize).is_some_and(|word| word >> (bit % 64) & 1 == 1)
            }
            _ => self.rank(member).is_some(),
        }
    }

    /// The members, if they are a range.
    pub(super) fn range(&self) -> Option<Range<u64>> {
        match self {
            Members::Range { start, count } => Some(*start..start + count),
            _ => None,
        }
    }

    /// Hands out ranges that all members are in: theirs if they are few, or one.
    pub(super) fn visit_spans(&self, visit: &mut dyn FnMut(Range<u64>)) {
        match self {
            Members::Range { start, count } => visit(*start..start + count),
            Members::Ranges { few, .. } if !few.is_empty() => {
                few.runs.iter().for_each(|run| visit(run.start..run.start.saturating_add(run.length)));
            }
            Members::Ranges { starts, ranks, count, .. } => {
                let last = starts.len() - 1;
                visit(starts.get(0)..starts.get(last).saturating_add(count.saturating_sub(ranks.get(last))));
            }
            Members::Bitmap { first, words, .. } => visit(*first..first.saturating_add(words.len() as u64 * 64)),
        }
    }

    /// Which of the 64 numbers from `first` on are members, as bits.
    pub(super) fn word(&self, first: u64) -> u64 {
        match self {
            Members::Range { start, count } => bits_of_range(*start, start + count, first),
            Members::Ranges { starts, ranks, .. } => {
                let mut word = 0;
                for range in starts.last_not_above(first).unwrap_or(0)..starts.len() {
                    let start = starts.get(range);
                    if start >= first.saturating_add(64) {
                        break;
                    }
                    word |= bits_of_range(start, start + (ranks.get(range + 1) - ranks.get(range)), first);
                }
                word
            }
            Members::Bitmap { first: own, words, .. } => {
                let word = |index: u64| words.get(index as usize).copied().unwrap_or(0);
                match first.checked_sub(*own) {
                    Some(bit) if bit % 64 == 0 => word(bit / 64),
                    Some(bit) => word(bit / 64) >> (bit % 64) | word(bit / 64 + 1) << (64 - bit % 64),
                    None => word(0).checked_shl((own - first).min(64) as u32).unwrap_or(0),
                }
            }
        }
    }

    /// The member with so many before it, which must be fewer than there are. Logarithmic.
    pub(super) fn member(&self, rank: u64) -> u64 {
        match self {
            Members::Range { start, .. } => start + rank,
            Members::Ranges { starts, ranks, .. } => {
                let range = ranks.last_not_above(rank).unwrap_or_else(|| damaged());
                starts.get(range) + (rank - ranks.get(range))
            }
            Members::Bitmap { first, words, ranks, .. } => {
                let block = ranks.partition_point(|before| *before <= rank) - 1;
                let mut left = rank - ranks[block];
                let start = block * BLOCK_WORDS as usize;
                for (index, word) in words.iter().enumerate().skip(start) {
                    let ones = u64::from(word.count_ones());
                    if left < ones {
                        let bit = (0..left).fold(*word, |word, _| word & (word - 1)).trailing_zeros();
                        return first + index as u64 * 64 + u64::from(bit);
                    }
                    left -= ones;
                }
                damaged()
            }
        }
    }

    /// Hands out the members at or after `from`, ascending, until `visit` breaks.
    pub(super) fn visit_from(&self, from: u64, visit: &mut dyn FnMut(u64) -> ControlFlow<()>) -> ControlFlow<()> {
        match self {
            Members::Range { start, count } => (from.max(*start)..start + count).try_for_each(visit),
            Members::Ranges { starts, ranks, .. } => {
                for range in starts.last_not_above(from).unwrap_or(0)..starts.len() {
                    let start = starts.get(range);
                    let end = start + (ranks.get(range + 1) - ranks.get(range));
                    (from.max(start)..end).try_for_each(&mut *visit)?;
                }
                ControlFlow::Continue(())
            }
            Members::Bitmap { first, words, .. } => {
                let from = from.saturating_sub(*first);
                let start = (from / 64).min(words.len() as u64) as usize;
                let mut mask = u64::MAX << (from % 64);
                for (index, word) in words.iter().enumerate().skip(start) {
                    let mut left = word & mask;
                    mask = u64::MAX;
                    while left != 0 {
                        visit(first + index as u64 * 64 + u64::from(left.trailing_zeros()))?;
                        left &= left - 1;
                    }
                }
                ControlFlow::Continue(())
            }
        }
    }

    /// Checks order and counts; for `verify`.
    pub(super) fn verify(&self) -> Result<(), &'static str> {
        match self {
            Members::Range { .. } => Ok(()),
            Members::Ranges { starts, ranks, .. } => {
                let apart = |range: u64| {
                    let length = ranks.get(range).checked_sub(ranks.get(range - 1));
                    length
                        .and_then(|length| starts.get(range - 1).checked_add(length))
                        .is_some_and(|end| end < starts.get(range))
                };
                match ranks.get(0) == 0 && ranks.is_ascending() && (1..starts.len()).all(apart) {
                    true => Ok(()),
                    false => Err("the ranges of a set overlap or are out of order"),
                }
            }
            Members::Bitmap { words, ranks, .. } => {
                if block_ranks(words) == **ranks {
                    Ok(())
                } else {
                    Err("the counts of a bitmap are wrong")
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::segment::SegmentOrigin;
    use crate::segment::file::{FileKind, Header};

    fn stored(members: &BTreeSet<u64>, end: u64) -> Members {
        let mut builder = MembersBuilder::default();
        members.iter().for_each(|member| builder.push(*member));
        assert!(builder.iter().eq(members.iter().copied()));
        let mut file = FileBuilder::new();
        builder.put(&mut file, Owner::Vertices, 3);
        let header = Header { origin: SegmentOrigin::default(), tablet: 0, tablet_bits: 0, slots: 0 };
        let image = file.finish(FileKind::Segment, header);
        let file = SegmentFile::open(image.into_bytes(), "members", FileKind::Segment).unwrap();
        let set = Members::open(&file, Owner::Vertices, 3, end).unwrap();
        if let Some(last) = members.last() {
            assert!(Members::open(&file, Owner::Vertices, 3, *last).is_err(), "the last one is behind the end");
        }
        set.verify().unwrap();
        set
    }

    /// Ranges that a table finds, and those that are too many for it; all far apart, or all but the first close together.
    #[test]
    fn ranges_are_found_however_many_there_are() {
        for count in [2, FEW_RANGES - 1, FEW_RANGES, FEW_RANGES + 1, FEW_RANGES + 200] {
            for far in [0, 1 << 33] {
                let start = |run: u64| if run == 0 { 7 } else { far + run * 300 };
                let members: BTreeSet<u64> = (0..count).flat_map(|run| start(run)..start(run) + 3 + run % 5).collect();
                let set = stored(&members, members.last().map_or(0, |last| last + 1));
                let Members::Ranges { few, .. } = &set else { panic!("{count} ranges are kept as such") };
                assert_eq!(few.is_empty(), count > FEW_RANGES);
                let mut rank = 0;
                let borders = (0..count).flat_map(|run| start(run) - 2..start(run) + 9);
                for member in borders {
                    let is_member = members.contains(&member);
                    assert_eq!(set.rank(member), is_member.then_some(rank), "{member} of {count} ranges");
                    rank += u64::from(is_member);
                }
                assert_eq!((set.rank(0), set.rank(u64::MAX)), (None, None));
                if let Members::Ranges { starts, few, many, .. } = &set {
                    assert_eq!(many.get().is_some(), few.is_empty(), "a table is made when it is asked");
                    let table = Parts::new(starts);
                    for asked in members.iter().flat_map(|member| [member - 2, *member, member + 9]) {
                        assert_eq!(table.last_not_above(starts, asked), starts.last_not_above(asked), "{asked}");
                    }
                }
            }
        }
    }

    proptest! {
        /// Sets of all densities agree with a `BTreeSet`.
        #[test]
        fn agrees_with_a_set(
            first in prop_oneof![Just(0u64), 0u64..(1 << 40)],
            runs in prop::collection::vec((0u64..300, 1u64..100), 0..30),
            single in any::<bool>(),
            asked in prop::collection::vec(0u64..3000, 20),
        ) {
            let mut members = BTreeSet::new();
            let mut at = first;
            for (gap, length) in runs {
                let gap = if single { gap % 5 } else { gap };
                let length = if single { 1 } else { length };
                members.extend(at + gap..at + gap + length);
                at += gap + length;
            }
            let set = stored(&members, at);
            prop_assert_eq!(set.count(), members.len() as u64);
            for member in asked.iter().map(|offset| first + offset).chain(members.iter().copied()).chain([0, u64::MAX]) {
                let rank = members.contains(&member).then(|| members.range(..member).count() as u64);
                prop_assert_eq!(set.rank(member), rank);
                prop_assert_eq!(set.contains(member), rank.is_some());
            }
            for (rank, member) in members.iter().enumerate() {
                prop_assert_eq!(set.member(rank as u64), *member);
            }
            for from in asked.iter().map(|offset| first + offset).chain([0]) {
                let mut found = Vec::new();
                let _ = set.visit_from(from, &mut |member| {
                    found.push(member);
                    if found.len() == 50 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                });
                let expected: Vec<u64> = members.range(from..).take(50).copied().collect();
                prop_assert_eq!(found, expected);
                let word = (0..64).filter(|bit| members.contains(&(from + bit))).fold(0u64, |word, bit| word | 1 << bit);
                prop_assert_eq!(set.word(from), word);
            }
        }
    }
}
