//! Numbers on their way into a column: collected in as little memory as they need, then written in the cheapest form.

use super::file::{Encoding, FileBuilder, SectionName};

/// Room for the first numbers that are listed.
const CAPACITY: usize = 1024;

/// Numbers being collected.
#[derive(Clone, Debug)]
pub(super) enum NumbersBuilder {
    /// `first + index × stride`; nothing is stored.
    Affine { first: u64, stride: u64, count: u64, next: u64 },
    /// All below 2^32.
    Small(Vec<u32>),
    /// Any.
    Large(Vec<u64>),
}

impl Default for NumbersBuilder {
    fn default() -> NumbersBuilder {
        NumbersBuilder::Affine { first: 0, stride: 0, count: 0, next: 0 }
    }
}

impl NumbersBuilder {
    /// Numbers that are all zero until they are set, each to one not above `limit`.
    pub(super) fn zeros(count: usize, limit: u64) -> NumbersBuilder {
        match u32::try_from(limit) {
            Ok(_) => NumbersBuilder::Small(vec![0; count]),
            Err(_) => NumbersBuilder::Large(vec![0; count]),
        }
    }

    /// Changes a number of [`NumbersBuilder::zeros`].
    #[inline]
    pub(super) fn set(&mut self, index: usize, number: u64) {
        match self {
            NumbersBuilder::Small(numbers) => numbers[index] = number as u32,
            NumbersBuilder::Large(numbers) => numbers[index] = number,
            NumbersBuilder::Affine { .. } => unreachable!("these numbers are not stored"),
        }
    }

    #[inline]
    pub(super) fn push(&mut self, number: u64) {
        match self {
            NumbersBuilder::Small(numbers) if number <= u64::from(u32::MAX) => numbers.push(number as u32),
            NumbersBuilder::Large(numbers) => numbers.push(number),
            NumbersBuilder::Affine { stride, count, next, .. } if *count >= 2 && *next == number => {
                *count += 1;
                *next = number.wrapping_add(*stride);
            }
            _ => self.push_other(number),
        }
    }

    /// The first two numbers, and one that ends a form.
    #[cold]
    fn push_other(&mut self, number: u64) {
        match self {
            NumbersBuilder::Affine { first, count: count @ 0, .. } => (*first, *count) = (number, 1),
            NumbersBuilder::Affine { first, stride, count: count @ 1, next } => {
                *stride = number.wrapping_sub(*first);
                *next = number.wrapping_add(*stride);
                *count = 2;
            }
            NumbersBuilder::Affine { .. } => {
                let mut listed = NumbersBuilder::Small(Vec::with_capacity(CAPACITY.max(self.len() * 2)));
                (0..self.len()).for_each(|index| listed.push(self.get(index)));
                listed.push(number);
                *self = listed;
            }
            NumbersBuilder::Small(small) => {
                let mut numbers = Vec::with_capacity(small.capacity());
                numbers.extend(small.iter().map(|number| u64::from(*number)));
                numbers.push(number);
                *self = NumbersBuilder::Large(numbers);
            }
            NumbersBuilder::Large(_) => unreachable!("it takes every number"),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            NumbersBuilder::Affine { count, .. } => *count as usize,
            NumbersBuilder::Small(numbers) => numbers.len(),
            NumbersBuilder::Large(numbers) => numbers.len(),
        }
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> u64 {
        match self {
            NumbersBuilder::Affine { first, stride, .. } => first.wrapping_add(stride.wrapping_mul(index as u64)),
            NumbersBuilder::Small(numbers) => u64::from(numbers[index]),
            NumbersBuilder::Large(numbers) => numbers[index],
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        (0..self.len()).map(|index| self.get(index))
    }

    pub(super) fn last(&self) -> Option<u64> {
        self.len().checked_sub(1).map(|last| self.get(last))
    }

    /// True if every number is larger than the one before it.
    pub(super) fn is_ascending(&self) -> bool {
        match self {
            NumbersBuilder::Affine { first, count, stride, .. } => {
                *count < 2
                    || *stride > 0 && stride.checked_mul(count - 1).is_some_and(|way| first.checked_add(way).is_some())
            }
            NumbersBuilder::Small(numbers) => numbers.is_sorted_by(|a, b| a < b),
            NumbersBuilder::Large(numbers) => numbers.is_sorted_by(|a, b| a < b),
        }
    }

    /// Smallest and largest, as unsigned numbers.
    pub(super) fn bounds(&self) -> Option<(u64, u64)> {
        match self {
            NumbersBuilder::Small(numbers) => {
                Some((u64::from(*numbers.iter().min()?), u64::from(*numbers.iter().max()?)))
            }
            NumbersBuilder::Large(numbers) => Some((*numbers.iter().min()?, *numbers.iter().max()?)),
            NumbersBuilder::Affine { .. } if self.is_ascending() => Some((self.get(0), self.last()?)),
            NumbersBuilder::Affine { .. } => Some((self.iter().min()?, self.iter().max()?)),
        }
    }

    /// Writes the column; `tag` is kept for the reader.
    pub(super) fn put(self, file: &mut FileBuilder, name: SectionName, tag: u32) {
        match self {
            NumbersBuilder::Affine { first, stride, count, .. } => {
                let encoding = Encoding { width: 0, tag, count, first, stride: if count < 2 { 0 } else { stride } };
                file.put(name, encoding, 0, |_: &mut [u8]| {});
            }
            NumbersBuilder::Small(ref numbers) => {
                let (low, high) = self.bounds().expect("lists are not empty");
                put_packed(numbers, low, high - low, file, name, tag);
            }
            NumbersBuilder::Large(ref numbers) => {
                // Signed and unsigned order may give different spans; the smaller one counts.
                let (low, high) = self.bounds().expect("lists are not empty");
                let signed = || numbers.iter().map(|number| *number as i64);
                let (signed_low, signed_high) = (signed().min().unwrap_or(0), signed().max().unwrap_or(0));
                let signed_span = signed_high.wrapping_sub(signed_low) as u64;
                match signed_span < high - low {
                    true => put_packed(numbers, signed_low as u64, signed_span, file, name, tag),
                    false => put_packed(numbers, low, high - low, file, name, tag),
                }
            }
        }
    }

    /// Writes the column with 32 or 64 bits an entry as they are, to be read as a slice.
    pub(super) fn put_plain(self, file: &mut FileBuilder, name: SectionName) {
        let small = matches!(self, NumbersBuilder::Small(_));
        let wide = !small && self.bounds().is_some_and(|(_, high)| high > u64::from(u32::MAX));
        let count = self.len();
        let encoding = Encoding { width: if wide { 64 } else { 32 }, count: count as u64, ..Encoding::default() };
        match self {
            NumbersBuilder::Small(numbers) => {
                file.put(name, encoding, count, |out: &mut [u32]| out.copy_from_slice(&numbers));
            }
            NumbersBuilder::Large(numbers) if wide => {
                file.put(name, encoding, count, |out: &mut [u64]| out.copy_from_slice(&numbers));
            }
            _ if wide => file.put(name, encoding, count, |out: &mut [u64]| {
                out.iter_mut().zip(self.iter()).for_each(|(out, number)| *out = number);
            }),
            _ => file.put(name, encoding, count, |out: &mut [u32]| {
                out.iter_mut().zip(self.iter()).for_each(|(out, number)| *out = number as u32);
            }),
        }
    }
}

impl FromIterator<u64> for NumbersBuilder {
    fn from_iter<I: IntoIterator<Item = u64>>(numbers: I) -> NumbersBuilder {
        let mut builder = NumbersBuilder::default();
        numbers.into_iter().for_each(|number| builder.push(number));
        builder
    }
}

/// Writes numbers of which none is before `first` or more than `span` behind it.
fn put_packed<T: Copy + Into<u64>>(
    numbers: &[T],
    first: u64,
    span: u64,
    file: &mut FileBuilder,
    name: SectionName,
    tag: u32,
) {
    let width = match 64 - span.leading_zeros() {
        0..=1 => 1,
        2 => 2,
        3..=4 => 4,
        5..=8 => 8,
        9..=16 => 16,
        17..=32 => 32,
        _ => 64,
    };
    let first = if width == 64 { 0 } else { first };
    let encoding = Encoding { width, tag, count: numbers.len() as u64, first, stride: 0 };
    let packed = numbers.iter().map(|number| (*number).into().wrapping_sub(first));
    match width {
        8 => file.put(name, encoding, numbers.len(), |out: &mut [u8]| {
            out.iter_mut().zip(packed).for_each(|(out, number)| *out = number as u8);
        }),
        16 => file.put(name, encoding, numbers.len(), |out: &mut [u16]| {
            out.iter_mut().zip(packed).for_each(|(out, number)| *out = number as u16);
        }),
        32 => file.put(name, encoding, numbers.len(), |out: &mut [u32]| {
            out.iter_mut().zip(packed).for_each(|(out, number)| *out = number as u32);
        }),
        64 => file.put(name, encoding, numbers.len(), |out: &mut [u64]| {
            out.iter_mut().zip(packed).for_each(|(out, number)| *out = number);
        }),
        _ => {
            let width = usize::from(width);
            file.put(name, encoding, (numbers.len() * width).div_ceil(64), |out: &mut [u64]| {
                for (index, number) in packed.enumerate() {
                    out[index * width / 64] |= number << (index * width % 64);
                }
            });
        }
    }
}
