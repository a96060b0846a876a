//! Numbers that follow their place in a few straight lines: generated ids, over slots or over sequences.
//!
//! A run is (start, value, stride): from place `start` to the start of the next run, the number is
//! `value + (place - start) × stride`. Where numbers only rise, the place of a number is found the other way round as well,
//! so that no table of ids is needed.

use super::file::{FileBuilder, Owner, SegmentFile, part};
use super::numbers::Numbers;
use super::numbers_builder::NumbersBuilder;
use crate::StoreError;

/// Numbers for which runs are worth it: at least this many per run, on average.
const NUMBERS_PER_RUN: u64 = 16;

/// Set in the tag of the run starts if numbers only rise from place to place.
const RISING: u32 = 1;

/// Runs of numbers, if there are few.
#[derive(Clone, Debug, Default)]
pub(super) struct RunsBuilder {
    starts: NumbersBuilder,
    values: NumbersBuilder,
    strides: NumbersBuilder,
    /// Start, value and stride of the run that is open; the stride is known from its second number on.
    open: Option<(u64, u64, Option<u64>)>,
    last: Option<(u64, u64)>,
    falling: bool,
}

impl RunsBuilder {
    /// The runs of numbers at ascending places, if there are few.
    pub(super) fn of(numbers: impl IntoIterator<Item = (u64, u64)>, count: u64) -> Option<RunsBuilder> {
        let mut runs = RunsBuilder::default();
        for (place, number) in numbers {
            runs.push(place, number);
            if runs.starts.len() as u64 > count / NUMBERS_PER_RUN {
                return None;
            }
        }
        runs.close();
        Some(runs)
    }

    fn push(&mut self, place: u64, number: u64) {
        // Ids are signed.
        self.falling |= self.last.is_some_and(|(_, last)| last as i64 >= number as i64);
        let last = self.last.replace((place, number));
        let Some((start, value, stride)) = &mut self.open else {
            self.open = Some((place, number, None));
            return;
        };
        let way = place - *start;
        match stride {
            Some(stride) if value.wrapping_add(way.wrapping_mul(*stride)) == number => return,
            Some(_) => {}
            None => {
                let rise = number.wrapping_sub(*value);
                if rise.is_multiple_of(way) {
                    *stride = Some(rise / way);
                    return;
                }
            }
        }
        debug_assert!(last.is_some());
        self.close();
        self.open = Some((place, number, None));
    }

    fn close(&mut self) {
        if let Some((start, value, stride)) = self.open.take() {
            self.starts.push(start);
            self.values.push(value);
            self.strides.push(stride.unwrap_or(0));
        }
    }

    /// Writes the runs; `kind` is kept for the reader of the values.
    pub(super) fn put(self, file: &mut FileBuilder, owner: Owner, key: u32, kind: u32) {
        let tag = if self.falling { 0 } else { RISING };
        self.starts.put(file, owner.key_part(key, part::RUN_STARTS), tag);
        self.values.put(file, owner.key_part(key, part::RUN_VALUES), kind);
        self.strides.put(file, owner.key_part(key, part::RUN_STRIDES), 0);
    }
}

/// Runs of numbers, to be read.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    starts: Numbers,
    values: Numbers,
    strides: Numbers,
    rising: bool,
}

impl Runs {
    /// The runs of an owner, if its numbers are kept so.
    pub(super) fn open(file: &SegmentFile, owner: Owner, key: u32) -> Result<Option<Runs>, StoreError> {
        let Some(entry) = file.find(owner.key_part(key, part::RUN_STARTS)) else { return Ok(None) };
        let rising = entry.encoding.tag & RISING != 0;
        let starts = Numbers::of(file, entry)?;
        let values = Numbers::open_counted(file, owner.key_part(key, part::RUN_VALUES), starts.len())?;
        let strides = Numbers::open_counted(file, owner.key_part(key, part::RUN_STRIDES), starts.len())?;
        Ok(Some(Runs { starts, values, strides, rising }))
    }

    /// The number at a place that has one.
    #[inline]
    pub(super) fn get(&self, place: u64) -> u64 {
        let run = if self.starts.len() == 1 { 0 } else { self.starts.last_not_above(place).unwrap_or(0) };
        let way = place.wrapping_sub(self.starts.get(run));
        self.values.get(run).wrapping_add(way.wrapping_mul(self.strides.get(run)))
    }

    /// True if [`Runs::place_of`] finds every number.
    pub(super) fn is_rising(&self) -> bool {
        self.rising
    }

    /// The only place that can have a number, where numbers rise.
    pub(super) fn place_of(&self, number: i64) -> Option<u64> {
        // Values rise as signed numbers, so they are halved as such.
        let (mut low, mut high) = (0, self.starts.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if (self.values.get(middle) as i64) <= number { low = middle + 1 } else { high = middle }
        }
        let run = low.checked_sub(1)?;
        let (start, stride) = (self.starts.get(run), self.strides.get(run));
        let rise = (number as u64).wrapping_sub(self.values.get(run));
        if rise == 0 {
            return Some(start);
        }
        if stride == 0 || !rise.is_multiple_of(stride) {
            return None;
        }
        let place = start.checked_add(rise / stride)?;
        // What is behind the end of the run belongs to the next one.
        let next = run + 1;
        (next == self.starts.len() || place < self.starts.get(next)).then_some(place)
    }

    /// Checks order; for `verify`.
    pub(super) fn verify(&self) -> Result<(), &'static str> {
        let rises = |run: u64| (self.values.get(run - 1) as i64) < self.values.get(run) as i64;
        if !self.starts.is_ascending() {
            return Err("the runs of a column are out of order");
        }
        if self.rising && !(1..self.starts.len()).all(rises) {
            return Err("the runs of rising ids fall");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::segment::SegmentOrigin;
    use crate::segment::file::{FileKind, Header};

    fn stored(numbers: &[(u64, u64)]) -> Option<Runs> {
        let builder = RunsBuilder::of(numbers.iter().copied(), numbers.len() as u64)?;
        let mut file = FileBuilder::new();
        builder.put(&mut file, Owner::VertexIds, 0, 0);
        let header = Header { origin: SegmentOrigin::default(), tablet: 0, tablet_bits: 0, slots: 0 };
        let image = file.finish(FileKind::Segment, header);
        let file = SegmentFile::open(image.into_bytes(), "runs", FileKind::Segment).unwrap();
        let runs = Runs::open(&file, Owner::VertexIds, 0).unwrap()?;
        runs.verify().unwrap();
        Some(runs)
    }

    #[test]
    fn numbers_in_no_line_are_not_kept_as_runs() {
        let numbers: Vec<(u64, u64)> = (0..1000).map(|place| (place, place * place)).collect();
        assert!(stored(&numbers).is_none());
    }

    proptest! {
        #[test]
        fn places_and_numbers_are_found(
            lines in prop::collection::vec((1u64..5, -3i64..20, -50i64..50), 1..8),
            holes in prop::collection::vec(any::<bool>(), 64),
        ) {
            let (mut place, mut number) = (5u64, -40i64);
            let mut numbers = Vec::new();
            for (gap, stride, jump) in lines {
                for _ in 0..100 {
                    place += 1;
                    number += stride;
                    if !holes[place as usize % 64] {
                        numbers.push((place, number as u64));
                    }
                }
                place += gap;
                number += jump;
            }
            prop_assume!(!numbers.is_empty());
            let Some(runs) = stored(&numbers) else { return Ok(()) };
            let rising = numbers.windows(2).all(|two| (two[0].1 as i64) < two[1].1 as i64);
            prop_assert_eq!(runs.is_rising(), rising);
            for (place, number) in &numbers {
                prop_assert_eq!(runs.get(*place), *number);
                if rising {
                    prop_assert_eq!(runs.place_of(*number as i64), Some(*place));
                }
            }
            for number in (-300i64..300).filter(|_| rising) {
                let known = numbers.iter().find(|(_, known)| *known as i64 == number);
                let found = runs.place_of(number).filter(|place| numbers.iter().any(|(known, _)| known == place));
                prop_assert_eq!(found, known.map(|(place, _)| *place));
            }
        }
    }
}
