//! Ranges of numbers that values are held against before they are read.

use ficus_model::{Comparison, OffsetDateTime, P, Value};

/// A range of integers of any width, or of moments in UTC as milliseconds since 1970; both ends are in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberRange {
    /// The least.
    pub low: i64,
    /// The greatest.
    pub high: i64,
    /// Whether the numbers are moments.
    pub of_moments: bool,
}

const NANOS_PER_MILLI: u32 = 1_000_000;

/// A moment in UTC as milliseconds since 1970; `None` for one with an offset, a finer fraction, or too far away.
pub(crate) fn milliseconds(moment: &OffsetDateTime) -> Option<i64> {
    if moment.offset_seconds != 0 || !moment.nanos.is_multiple_of(NANOS_PER_MILLI) {
        return None;
    }
    moment.epoch_seconds.checked_mul(1000)?.checked_add(i64::from(moment.nanos / NANOS_PER_MILLI))
}

/// The moment so many milliseconds after 1970.
#[inline]
pub(crate) fn moment(milliseconds: i64) -> OffsetDateTime {
    let nanos = milliseconds.rem_euclid(1000) as u32 * NANOS_PER_MILLI;
    OffsetDateTime { epoch_seconds: milliseconds.div_euclid(1000), nanos, offset_seconds: 0 }
}

/// As [`moment`], of what a clock tells.
pub(crate) fn moment_of(milliseconds: u64) -> OffsetDateTime {
    moment(i64::try_from(milliseconds).unwrap_or(i64::MAX))
}

/// The number a value is in ranges, and whether it stands for a moment; `None` if it is neither an integer nor such a moment.
pub fn range_number(value: &Value) -> Option<(i64, bool)> {
    match value {
        Value::Byte(number) => Some((i64::from(*number), false)),
        Value::Short(number) => Some((i64::from(*number), false)),
        Value::Int(number) => Some((i64::from(*number), false)),
        Value::Long(number) => Some((*number, false)),
        Value::DateTime(moment) => Some((milliseconds(moment)?, true)),
        _ => None,
    }
}

impl NumberRange {
    /// Whether a number as columns keep it is in the range.
    #[inline]
    pub(crate) fn contains(&self, number: u64) -> bool {
        self.low <= number as i64 && number as i64 <= self.high
    }

    /// What is in both; `None` if one is of moments and the other is not.
    pub fn and(self, other: NumberRange) -> Option<NumberRange> {
        let (low, high) = (self.low.max(other.low), self.high.min(other.high));
        (self.of_moments == other.of_moments).then_some(NumberRange { low, high, ..self })
    }

    /// The range in which a value has to be for the predicate to hold, if it is an integer, or a moment where the range is of
    /// moments; `None` if the predicate is no range of one of these.
    pub fn of(predicate: &P) -> Option<NumberRange> {
        match predicate {
            P::Compare(comparison, literal) => {
                let (number, of_moments) = range_number(literal)?;
                let (low, high) = match comparison {
                    Comparison::Eq => (number, number),
                    Comparison::Lt => (i64::MIN, number.checked_sub(1)?),
                    Comparison::Lte => (i64::MIN, number),
                    Comparison::Gt => (number.checked_add(1)?, i64::MAX),
                    Comparison::Gte => (number, i64::MAX),
                    Comparison::Neq => return None,
                };
                Some(NumberRange { low, high, of_moments })
            }
            P::And(parts) => {
                let (first, rest) = parts.split_first()?;
                rest.iter().try_fold(NumberRange::of(first)?, |range, part| range.and(NumberRange::of(part)?))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_say_what_predicates_say() {
        let literals: Vec<Value> = [i64::MIN, -5, -1, 0, 1, 4, 5, i64::MAX]
            .into_iter()
            .flat_map(|number| [Value::Long(number), Value::DateTime(moment(number / 1_000))])
            .chain([Value::Int(3), Value::Short(-2), Value::Byte(4), Value::Double(2.0), Value::from("x")])
            .collect();
        let comparisons =
            [Comparison::Eq, Comparison::Neq, Comparison::Lt, Comparison::Lte, Comparison::Gt, Comparison::Gte];
        let mut predicates: Vec<P> = Vec::new();
        for literal in &literals {
            predicates.extend(comparisons.map(|comparison| P::Compare(comparison, literal.clone())));
        }
        let pairs: Vec<P> =
            predicates.iter().flat_map(|a| predicates.iter().map(|b| P::And(vec![a.clone(), b.clone()]))).collect();
        let mut known = 0;
        for predicate in predicates.iter().chain(&pairs) {
            let Some(range) = NumberRange::of(predicate) else { continue };
            known += 1;
            for value in &literals {
                let number = match value {
                    Value::Long(number) if !range.of_moments => *number,
                    Value::DateTime(moment) if range.of_moments => milliseconds(moment).unwrap(),
                    _ => continue,
                };
                let inside = range.low <= number && number <= range.high;
                assert_eq!(predicate.test(value).unwrap(), inside, "{predicate:?} of {value:?}");
            }
        }
        assert!(known > 1_000, "{known}");
    }
}
