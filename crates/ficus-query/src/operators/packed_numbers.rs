//! Rows on their way to `sum()`, `mean()`, `min()`, `max()` or `count()`, packed where they are made.
//!
//! A reduction is one operator on one executor, and three million rows that come to it from several are three million rows that are moved and
//! dropped there. So what stands before it, which other executors work on as well (physical/spread.rs), ends with an operator that packs: numbers of
//! one kind, one behind the other, become one row of their bytes ([`marks::PACKED`]), and rows that are counted become one of their number. The
//! reduction takes the same numbers in the same order, so its result, its kind and its errors are those of single rows.

use std::sync::Arc;

use ficus_dataflow::{Flow, Operator};
use ficus_model::Value;

use crate::context::{Cx, Graphs, Result, Traversers};
use crate::logical::Reduction;
use crate::operators::reduce::Reducer;
use crate::physical::{Builder, Chain};
use crate::traverser::{Traverser, marks};

/// Numbers in one row at most.
const NUMBERS: usize = 2048;

/// Numbers that are unpacked at a time.
const UNPACKED: usize = 256;

/// What numbers are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Int,
    Long,
    Double,
}

impl Kind {
    /// As rows say it.
    fn mark(self) -> u64 {
        marks::PACKED | (self as u64) << marks::OPTION_SHIFT
    }
}

/// A number as it is packed: the bits of one that has a kind.
fn bits_of(value: &Value) -> Option<(Kind, i64)> {
    match value {
        Value::Int(number) => Some((Kind::Int, i64::from(*number))),
        Value::Long(number) => Some((Kind::Long, *number)),
        Value::Double(number) => Some((Kind::Double, number.to_bits() as i64)),
        _ => None,
    }
}

struct Pack {
    /// Only how many rows there are matters.
    counts: bool,
    counted: u64,
    kind: Kind,
    bytes: Vec<u8>,
}

impl Pack {
    /// Yields what is packed so far.
    fn flush(&mut self, out: &mut Traversers) {
        if self.counted > 0 {
            out.push_back(Traverser::new(Value::Null).with_bulk(std::mem::take(&mut self.counted)));
        }
        if !self.bytes.is_empty() {
            let value = Value::Binary(Arc::from(self.bytes.as_slice()));
            out.push_back(Traverser::new(value).marked(self.kind.mark()));
            self.bytes.clear();
        }
    }
}

impl Operator<Graphs> for Pack {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        if self.counts {
            let rows = input.drain(..).fold(0, |sum: u64, row| sum.saturating_add(row.bulk));
            self.counted = self.counted.saturating_add(rows);
            return Ok(Flow::Ready);
        }
        if self.bytes.is_empty() && input.front().is_some_and(|row| bits_of(&row.value).is_none()) {
            // Where there are no numbers, or seldom.
            out.append(input);
            return Ok(Flow::Ready);
        }
        while let Some(row) = input.pop_front() {
            match bits_of(&row.value).filter(|_| row.bulk == 1) {
                Some((kind, bits)) => {
                    if kind != self.kind || self.bytes.len() >= NUMBERS * size_of::<i64>() {
                        self.flush(out);
                        self.kind = kind;
                    }
                    self.bytes.extend_from_slice(&bits.to_le_bytes());
                }
                // What is added before it comes before it.
                None => {
                    self.flush(out);
                    out.push_back(row);
                }
            }
            if cx.should_pause(out) {
                return Ok(if input.is_empty() { Flow::Ready } else { Flow::More });
            }
        }
        Ok(Flow::Ready)
    }

    fn finish(&mut self, out: &mut Traversers, _cx: &mut Cx<'_>) -> Result<Flow> {
        self.flush(out);
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {
        self.counted = 0;
        self.bytes.clear();
    }
}

/// How many numbers a row has packed; `None` if it is one like others.
pub fn numbers_in(row: &Traverser) -> Option<usize> {
    match &row.value {
        Value::Binary(bytes) if row.marks & marks::PACKED != 0 => Some(bytes.len() / size_of::<i64>()),
        _ => None,
    }
}

/// Gives the numbers of a row, or its value, to a reduction.
///
/// Errors: those of the reduction.
pub fn reduce(row: &Traverser, reducer: &mut Reducer) -> Result<()> {
    let (Some(_), Value::Binary(bytes)) = (numbers_in(row), &row.value) else {
        return reducer.add(&row.value, row.bulk);
    };
    let mut numbers = [0; UNPACKED];
    for part in bytes.chunks(UNPACKED * size_of::<i64>()) {
        let (words, _) = part.as_chunks();
        words.iter().zip(&mut numbers).for_each(|(word, number)| *number = i64::from_le_bytes(*word));
        let numbers = &numbers[..words.len()];
        if row.marks == Kind::Double.mark() {
            numbers.iter().try_for_each(|bits| reducer.add(&Value::Double(f64::from_bits(*bits as u64)), 1))?;
        } else {
            reducer.add_integers(numbers, row.marks == Kind::Long.mark(), 1)?;
        }
    }
    Ok(())
}

/// Adds the operator that packs what a reduction takes.
pub fn build(builder: &mut Builder, reduction: Reduction, chain: &mut Chain) {
    let counts = reduction == Reduction::Count;
    let id =
        builder.operator(chain, "Pack", false, move || Pack { counts, counted: 0, kind: Kind::Int, bytes: Vec::new() });
    builder.part_of_next(id);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_numbers_are_the_same_numbers() {
        let values = [
            Value::Int(-7),
            Value::Long(i64::MIN),
            Value::Long(3),
            Value::Double(-0.0),
            Value::Double(f64::NAN),
            Value::Int(i32::MAX),
        ];
        for value in values {
            let (kind, bits) = bits_of(&value).unwrap();
            let bytes = Value::Binary(Arc::from(bits.to_le_bytes().as_slice()));
            let row = Traverser::new(bytes).marked(kind.mark());
            assert_eq!(numbers_in(&row), Some(1));
            let mut reducer = Reducer::new(Reduction::Sum);
            reduce(&row, &mut reducer).unwrap();
            assert_eq!(format!("{:?}", reducer.finish().unwrap()), format!("{:?}", Some(value)));
        }
        assert_eq!(bits_of(&Value::from("7")), None);
    }
}
