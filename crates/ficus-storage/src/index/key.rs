//! Values as bytes that sort as the values do: the keys of ordered and composite indexes.
//!
//! ```text
//! bool 10 00|01 · number 20 double · date 30 seconds nanos offset · text 40 escaped · UUID 50 · set 60 · list 68
//! map 70 · char 80 · binary 88 escaped · duration 90 seconds nanos · missing 01 · any FF
//! ```
//! Families come in the order of `order()`. A number is its nearest double, whatever its type, so different numbers may
//! share a key; collections share one key each; text and bytes are cut at [`CUT_BYTES`]. A key therefore tells what *may* be
//! equal or in range, and whoever looks up tests the value itself. What is smaller never has a larger key.
//!
//! Components of a composite key end by themselves, so keys that share leading values share a prefix. Keys are in the files of indexes:
//! who changes their form adds a [`crate::segment::KeyForm`].

use std::sync::Arc;

use ficus_model::compare::order;
use ficus_model::{InternalIds, Value, decimal};
use num_traits::ToPrimitive;

/// Bytes of a text or binary that become part of a key. Longer ones with the same beginning are told apart by the row.
const CUT_BYTES: usize = 1024;

/// Bytes a key may have without an allocation of its own.
const INLINE_BYTES: usize = 22;

mod tag {
    pub(super) const MISSING: u8 = 0x01;
    pub(super) const BOOLEAN: u8 = 0x10;
    pub(super) const NUMBER: u8 = 0x20;
    pub(super) const DATE: u8 = 0x30;
    pub(super) const TEXT: u8 = 0x40;
    pub(super) const UUID: u8 = 0x50;
    pub(super) const SET: u8 = 0x60;
    pub(super) const LIST: u8 = 0x68;
    pub(super) const MAP: u8 = 0x70;
    pub(super) const CHAR: u8 = 0x80;
    pub(super) const BINARY: u8 = 0x88;
    pub(super) const DURATION: u8 = 0x90;
    pub(super) const ANY: u8 = 0xFF;
}

/// An immutable key: short ones inside, long ones shared.
#[derive(Clone, Debug)]
pub(crate) enum KeyBytes {
    /// The first bytes of the array.
    Inline(u8, [u8; INLINE_BYTES]),
    /// On the heap.
    Shared(Arc<[u8]>),
}

const _: () = assert!(size_of::<KeyBytes>() == 24);

impl KeyBytes {
    /// The bytes.
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            KeyBytes::Inline(length, bytes) => &bytes[..*length as usize],
            KeyBytes::Shared(bytes) => bytes,
        }
    }

    /// A key of these bytes.
    pub(crate) fn new(bytes: &[u8]) -> KeyBytes {
        if bytes.len() > INLINE_BYTES {
            return KeyBytes::Shared(Arc::from(bytes));
        }
        let mut inline = [0; INLINE_BYTES];
        inline[..bytes.len()].copy_from_slice(bytes);
        KeyBytes::Inline(bytes.len() as u8, inline)
    }
}

impl PartialEq for KeyBytes {
    fn eq(&self, other: &KeyBytes) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for KeyBytes {}

impl PartialOrd for KeyBytes {
    fn partial_cmp(&self, other: &KeyBytes) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for KeyBytes {
    fn cmp(&self, other: &KeyBytes) -> std::cmp::Ordering {
        self.as_slice().cmp(other.as_slice())
    }
}

/// The key of an element that a composite index cannot place, because it has several values under one of the keys. It is
/// behind all others and part of every look-up.
pub(crate) fn any_key() -> KeyBytes {
    KeyBytes::new(&[tag::ANY])
}

/// Appends the component of a value.
pub(crate) fn put_component(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Bool(value) => out.extend_from_slice(&[tag::BOOLEAN, u8::from(*value)]),
        Value::DateTime(date) => {
            out.push(tag::DATE);
            out.extend_from_slice(&ascending(date.epoch_seconds));
            out.extend_from_slice(&date.nanos.to_be_bytes());
            out.extend_from_slice(&ascending(i64::from(date.offset_seconds)));
        }
        Value::String(text) => put_text(tag::TEXT, text.as_bytes(), out),
        Value::Uuid(uuid) => {
            out.push(tag::UUID);
            out.extend_from_slice(uuid.as_bytes());
        }
        Value::Set(_) => out.push(tag::SET),
        Value::List(_) => out.push(tag::LIST),
        Value::Map(_) => out.push(tag::MAP),
        Value::Char(character) => {
            out.push(tag::CHAR);
            out.extend_from_slice(&u32::from(*character).to_be_bytes());
        }
        Value::Binary(bytes) => put_text(tag::BINARY, bytes, out),
        Value::Duration(duration) => {
            out.push(tag::DURATION);
            out.extend_from_slice(&ascending(duration.seconds));
            out.extend_from_slice(&duration.nanos.to_be_bytes());
        }
        value => match nearest_double(value) {
            Some(number) => put_number_key(number, out),
            // Nothing else is ever stored.
            None => put_missing(out),
        },
    }
}

/// Appends, behind the component of a number, whether it is below, equal to or above the double there. True if all values with
/// these bytes are equal in `order()`, so that the order of further components is theirs.
pub(crate) fn put_remainder(value: &Value, out: &mut Vec<u8>) -> bool {
    match value {
        Value::String(text) => text.len() <= CUT_BYTES,
        Value::Binary(bytes) => bytes.len() <= CUT_BYTES,
        Value::Set(_) | Value::List(_) | Value::Map(_) => false,
        value => match nearest_double(value) {
            None => true,
            Some(nearest) => {
                let beside = order(value, &Value::Double(nearest), &InternalIds);
                out.push((beside as i8 + 1) as u8);
                beside.is_eq()
            }
        },
    }
}

/// Appends the component of a value that is not there; it sorts first.
pub(crate) fn put_missing(out: &mut Vec<u8>) {
    out.push(tag::MISSING);
}

fn put_number_key(number: f64, out: &mut Vec<u8>) {
    out.push(tag::NUMBER);
    out.extend_from_slice(&double_key(number).to_be_bytes());
}

/// Sorts as the doubles do, NaN last.
fn double_key(number: f64) -> u64 {
    if number.is_nan() {
        return u64::MAX;
    }
    // Negative zero is zero.
    let bits = (number + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// Sorts as the integers do.
fn ascending(number: i64) -> [u8; 8] {
    (number as u64 ^ 1 << 63).to_be_bytes()
}

/// Text or bytes with an end that sorts before every continuation: 00 becomes 00 FF, the end is 00 00, or 00 01 if cut.
fn put_text(tag: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(tag);
    put_escaped(bytes, out);
    out.extend_from_slice(&[0, u8::from(bytes.len() > CUT_BYTES)]);
}

fn put_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in &bytes[..bytes.len().min(CUT_BYTES)] {
        out.push(*byte);
        if *byte == 0 {
            out.push(0xFF);
        }
    }
}

/// The double nearest to a number; rounding keeps the order of exact values.
fn nearest_double(value: &Value) -> Option<f64> {
    Some(match value {
        Value::Byte(value) => f64::from(*value),
        Value::Short(value) => f64::from(*value),
        Value::Int(value) => f64::from(*value),
        Value::Long(value) => *value as f64,
        Value::Float(value) => f64::from(*value),
        Value::Double(value) => *value,
        Value::BigInteger(value) => value.to_f64().unwrap_or(f64::NAN),
        Value::BigDecimal(value) => decimal::to_double(value),
        _ => return None,
    })
}

/// The smallest and the largest double whose numbers may be equal to `value` in a predicate, where two numbers meet in
/// the wider of their types: `16777217` equals the float `16777216f`, and the float `0.1f` the decimal `0.1`.
fn number_span(value: &Value) -> Option<(f64, f64)> {
    let nearest = nearest_double(value)?;
    Some(match value {
        Value::Int(_) => {
            let single = f64::from(nearest as f32);
            (nearest.min(single), nearest.max(single))
        }
        Value::Float(_) | Value::BigInteger(_) | Value::BigDecimal(_) => {
            let single = nearest as f32;
            (nearest.min(f64::from(single.next_down())), nearest.max(f64::from(single.next_up())))
        }
        _ => (nearest, nearest),
    })
}

/// True if the keys of all values that may be equal to `value` are one key: then more components may follow it.
pub(crate) fn is_point(value: &Value) -> bool {
    number_span(value).is_none_or(|(low, high)| low == high)
}

/// A run of keys: those at or above `from`, and below `to` if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeySpan {
    /// The first possible key.
    pub(crate) from: Vec<u8>,
    /// The first key behind the run.
    pub(crate) to: Option<Vec<u8>>,
}

impl KeySpan {
    /// All keys that begin so.
    pub(crate) fn of_prefix(prefix: Vec<u8>) -> KeySpan {
        KeySpan { to: successor(&prefix), from: prefix }
    }

    /// A run without keys.
    fn nothing(prefix: &[u8]) -> KeySpan {
        KeySpan { from: prefix.to_vec(), to: Some(prefix.to_vec()) }
    }

    /// True if no key can be in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.to.as_ref().is_some_and(|to| *to <= self.from)
    }

    /// Keys that may be equal to `value`, behind `prefix`.
    pub(crate) fn equal(prefix: &[u8], value: &Value) -> KeySpan {
        KeySpan::between(prefix, Some(value), Some(value))
    }

    /// Keys of texts that begin with `text`, behind `prefix`.
    pub(crate) fn starting_with(prefix: &[u8], text: &str) -> KeySpan {
        let mut from = prefix.to_vec();
        from.push(tag::TEXT);
        put_escaped(text.as_bytes(), &mut from);
        KeySpan::of_prefix(from)
    }

    /// Keys that may be from `low` to `high`, both included, behind `prefix`. Only values of one family compare, so
    /// the other end of an open range is the end of the family, and bounds of two families leave nothing.
    pub(crate) fn between(prefix: &[u8], low: Option<&Value>, high: Option<&Value>) -> KeySpan {
        let bound = |value: &Value, upper: bool| {
            let mut key = prefix.to_vec();
            match number_span(value) {
                Some((low, _)) if !upper => put_number_key(low, &mut key),
                Some((_, high)) => put_number_key(high, &mut key),
                None => put_component(value, &mut key),
            }
            key
        };
        let is_nothing = |value: &Value| number_span(value).is_some_and(|(low, _)| low.is_nan());
        if low.is_some_and(is_nothing) || high.is_some_and(is_nothing) {
            return KeySpan::nothing(prefix);
        }
        let place = prefix.len();
        let (from, last) = match (low, high) {
            (None, None) => return KeySpan::of_prefix(prefix.to_vec()),
            (Some(low), None) => (bound(low, false), bound(low, false)[..=place].to_vec()),
            (None, Some(high)) => (bound(high, true)[..=place].to_vec(), bound(high, true)),
            (Some(low), Some(high)) => (bound(low, false), bound(high, true)),
        };
        if from[place] != last[place] {
            return KeySpan::nothing(prefix);
        }
        KeySpan { from, to: successor(&last) }
    }
}

/// The smallest key above all that begin with `prefix`; `None` if there is none.
fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xFF)?;
    let mut next = prefix[..=last].to_vec();
    next[last] += 1;
    Some(next)
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use ficus_model::compare::{compare, equals, order};
    use ficus_model::{Comparison, InternalIds};
    use proptest::prelude::*;

    use super::*;
    use crate::value_codec::tests::any_value;

    fn key(value: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        put_component(value, &mut out);
        out
    }

    /// Numbers where the types meet badly: near the limits of exact floats and doubles, and decimals nobody can write in
    /// binary.
    fn awkward_number() -> impl Strategy<Value = Value> {
        let near = prop::sample::select(vec![0i64, 1, -1, 1 << 24, -(1 << 24), 1 << 31, 1 << 53, -(1 << 53), i64::MAX]);
        let tenths = -20i64..20;
        prop_oneof![
            (near.clone(), -3i64..4).prop_map(|(near, step)| Value::Long(near.saturating_add(step))),
            (near.clone(), -3i64..4).prop_map(|(near, step)| Value::Int(near.saturating_add(step) as i32)),
            (near.clone(), -3i64..4).prop_map(|(near, step)| Value::Float(near.saturating_add(step) as f32)),
            (near.clone(), -3i64..4).prop_map(|(near, step)| Value::Double(near.saturating_add(step) as f64)),
            (near, -3i64..4)
                .prop_map(|(near, step)| Value::BigInteger(Arc::new(num_bigint::BigInt::from(near) + step))),
            tenths.clone().prop_map(|tenths| Value::Float(tenths as f32 / 10.0)),
            tenths.clone().prop_map(|tenths| Value::Double(tenths as f64 / 10.0)),
            tenths.prop_map(|tenths| Value::BigDecimal(Arc::new(bigdecimal::BigDecimal::new(tenths.into(), 1)))),
            prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0]).prop_map(Value::Double),
        ]
    }

    fn any_key_value() -> impl Strategy<Value = Value> {
        prop_oneof![
            3 => awkward_number(),
            2 => any_value(),
            1 => "[a\u{0}\u{1}é]{0,4}".prop_map(|text| Value::String(text.into())),
            1 => any::<bool>().prop_map(Value::Bool),
        ]
    }

    fn contains(span: &KeySpan, key: &[u8]) -> bool {
        span.from.as_slice() <= key && span.to.as_ref().is_none_or(|to| key < to.as_slice())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        /// What is less in `order()` never has a larger key, also as the first of two components.
        #[test]
        fn keys_sort_as_values(a in any_key_value(), b in any_key_value(), behind in any_key_value()) {
            prop_assume!(!matches!(a, Value::Null) && !matches!(b, Value::Null));
            let (key_a, key_b) = (key(&a), key(&b));
            match order(&a, &b, &InternalIds) {
                Ordering::Less => prop_assert!(key_a <= key_b, "{a:?} {b:?}"),
                Ordering::Greater => prop_assert!(key_a >= key_b, "{a:?} {b:?}"),
                Ordering::Equal => {}
            }
            if key_a < key_b {
                prop_assert!([key_a, key(&behind)].concat() < key_b);
            }
        }

        /// Every value that satisfies a comparison has its key in the span of the comparison.
        #[test]
        fn spans_leave_nothing_out(value in any_key_value(), bound in any_key_value(), prefix in any_key_value()) {
            prop_assume!(!matches!(value, Value::Null) && !matches!(bound, Value::Null));
            let prefix = key(&prefix);
            let placed = [prefix.clone(), key(&value)].concat();
            let holds = |comparison: Comparison| comparison.test(&value, &bound, &InternalIds);
            let cases = [
                (Comparison::Eq, KeySpan::equal(&prefix, &bound)),
                (Comparison::Gte, KeySpan::between(&prefix, Some(&bound), None)),
                (Comparison::Gt, KeySpan::between(&prefix, Some(&bound), None)),
                (Comparison::Lte, KeySpan::between(&prefix, None, Some(&bound))),
                (Comparison::Lt, KeySpan::between(&prefix, None, Some(&bound))),
            ];
            for (comparison, span) in cases {
                if holds(comparison) {
                    prop_assert!(contains(&span, &placed), "{value:?} {comparison:?} {bound:?} {span:?}");
                }
            }
            if equals(&value, &bound, &InternalIds) && is_point(&bound) {
                prop_assert_eq!(key(&value), key(&bound), "{:?} {:?}", value, bound);
            }
            let _ = compare(&value, &bound, &InternalIds);
        }

        #[test]
        fn texts_with_a_beginning_are_in_its_span(text in "[ab\u{0}]{0,5}", beginning in "[ab\u{0}]{0,3}") {
            let span = KeySpan::starting_with(&[7], &beginning);
            let placed = [vec![7], key(&Value::String(text.as_str().into()))].concat();
            prop_assert_eq!(contains(&span, &placed), text.starts_with(&beginning));
        }
    }

    #[test]
    fn long_texts_are_cut_and_stay_in_order() {
        let text = |length: usize, end: &str| Value::String(("x".repeat(length) + end).into());
        let cut = text(CUT_BYTES, "b");
        assert_eq!(key(&cut), key(&text(CUT_BYTES, "a")));
        assert!(key(&text(CUT_BYTES, "")) < key(&cut) && key(&text(CUT_BYTES - 1, "")) < key(&cut));
        assert!(key(&cut) < key(&text(CUT_BYTES - 1, "y")));
        assert!(contains(&KeySpan::starting_with(&[], &"x".repeat(CUT_BYTES + 9)), &key(&cut)));
        assert_eq!(KeyBytes::new(&key(&cut)).as_slice(), key(&cut));
        assert!(any_key() > KeyBytes::new(&key(&Value::Binary([0xFF; 4].as_slice().into()))));
    }
}
