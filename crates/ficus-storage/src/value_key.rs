//! When two values are the same id, or the same key of an index, and the hashes that go with it.
//!
//! *Ids:* integers of every width are one id (`1` finds `1L`); everything else is equal as a collection member is.
//! *Index keys:* all numbers compare by value (`1` = `1L` = `1.0`), as `has(key, value)` does.
//! Hashes have fixed keys. That of ids never leaves the process, so it may change between releases; that of index keys is in files.

use std::hash::{DefaultHasher, Hash, Hasher};

use bigdecimal::BigDecimal;
use ficus_model::Value;
use num_bigint::BigInt;
use num_traits::ToPrimitive;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::StoreError;

/// Collections inside collections in one stored value; deeper ones are refused, so that reading back cannot run out of
/// stack.
pub(crate) const NESTING_LIMIT: usize = 64;

/// Decimal digits before or after the point beyond which a `BigDecimal` is not expanded to compare it.
const DECIMAL_EXPONENT_LIMIT: i64 = 400;

/// The integer an id is, if it is one that fits 64 bits.
pub(crate) fn id_integer(id: &Value) -> Option<i64> {
    match id {
        Value::Byte(id) => Some(i64::from(*id)),
        Value::Short(id) => Some(i64::from(*id)),
        Value::Int(id) => Some(i64::from(*id)),
        Value::Long(id) => Some(*id),
        Value::BigInteger(id) => id.to_i64(),
        _ => None,
    }
}

/// True if both are the same user id.
pub(crate) fn ids_equal(a: &Value, b: &Value) -> bool {
    match (id_integer(a), id_integer(b)) {
        (Some(a), Some(b)) => a == b,
        (None, None) => a == b,
        _ => false,
    }
}

/// Equal for equal ids.
pub(crate) fn id_hash(id: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    match id_integer(id) {
        Some(integer) => integer.hash(&mut hasher),
        None => id.hash(&mut hasher),
    }
    hasher.finish()
}

/// The integer a text spells, for the lookup of integer ids that a client sent as text.
pub(crate) fn spelled_integer(id: &Value) -> Option<Value> {
    match id {
        Value::String(text) => text.parse().ok().map(Value::Long),
        _ => None,
    }
}

/// A number in the form in which numbers of all types are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
enum NumberKey {
    /// Any number that is exactly this integer.
    Integer(i64),
    /// Any other number, as the nearest double; what lies between two doubles is told apart by [`index_equal`].
    Real(f64),
}

fn number_key(value: &Value) -> Option<NumberKey> {
    let real = |value: f64| {
        // 2^63 itself does not fit.
        let end = 2f64.powi(63);
        if value.fract() == 0.0 && (-end..end).contains(&value) {
            NumberKey::Integer(value as i64)
        } else {
            NumberKey::Real(value)
        }
    };
    Some(match value {
        Value::Byte(value) => NumberKey::Integer(i64::from(*value)),
        Value::Short(value) => NumberKey::Integer(i64::from(*value)),
        Value::Int(value) => NumberKey::Integer(i64::from(*value)),
        Value::Long(value) => NumberKey::Integer(*value),
        Value::BigInteger(value) => match value.to_i64() {
            Some(value) => NumberKey::Integer(value),
            None => NumberKey::Real(value.to_f64().unwrap_or(f64::NAN)),
        },
        Value::Float(value) => real(f64::from(*value)),
        Value::Double(value) => real(*value),
        Value::BigDecimal(value) => decimal_key(value),
        _ => return None,
    })
}

fn decimal_key(value: &BigDecimal) -> NumberKey {
    if !is_expandable(value) {
        // Too far out for any other number type; all of these share one bucket.
        return NumberKey::Real(f64::INFINITY);
    }
    if let Some(integer) = value.to_i64().filter(|_| value.is_integer()) {
        return NumberKey::Integer(integer);
    }
    NumberKey::Real(value.to_string().parse().unwrap_or(f64::INFINITY))
}

/// True if the decimal can be written out in a bounded number of digits.
pub(crate) fn is_expandable(value: &BigDecimal) -> bool {
    let (digits, scale) = value.as_bigint_and_exponent();
    scale.abs() <= DECIMAL_EXPONENT_LIMIT && digits.bits() <= DECIMAL_EXPONENT_LIMIT as u64 * 4
}

/// Equal for values that an index treats as equal; `None` for values that equal nothing (NaN).
/// Part of the format of files of hash indexes: who changes it adds a form of keys.
pub(crate) fn index_hash(value: &Value) -> Option<u64> {
    Some(match number_key(value) {
        Some(NumberKey::Integer(integer)) => xxh3_64(&integer.to_le_bytes()),
        Some(NumberKey::Real(real)) if real.is_nan() => return None,
        Some(NumberKey::Real(real)) => xxh3_64_with_seed(&real.to_bits().to_le_bytes(), 1),
        None => content_hash(value),
    })
}

/// Equal for values that are equal as members of a collection.
fn content_hash(value: &Value) -> u64 {
    let pair = |first: u64, second: u64| {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&first.to_le_bytes());
        bytes[8..].copy_from_slice(&second.to_le_bytes());
        xxh3_64_with_seed(&bytes, 2)
    };
    match value {
        Value::String(text) => xxh3_64_with_seed(text.as_bytes(), 3),
        Value::List(list) => list.iter().fold(pair(4, 0), |hash, value| pair(hash, content_hash(value))),
        // Of these the order does not count.
        Value::Set(set) => pair(5, set.iter().fold(0, |sum, value| content_hash(value).wrapping_add(sum))),
        Value::Map(map) => {
            let hashes = map.iter().map(|(key, value)| pair(content_hash(key), content_hash(value)));
            pair(6, hashes.fold(0, u64::wrapping_add))
        }
        // All that are not a number are one value.
        Value::Float(number) if number.is_nan() => pair(7, 0),
        Value::Double(number) if number.is_nan() => pair(8, 0),
        value => {
            let mut content = Vec::with_capacity(32);
            crate::value_codec::put_value(value, &mut content);
            xxh3_64_with_seed(&content, 9)
        }
    }
}

/// Appends a form of a value that is the same for all values an index treats as equal (and, rarely, for others).
pub(crate) fn canonical_index_key(value: &Value, out: &mut Vec<u8>) {
    match number_key(value) {
        Some(NumberKey::Integer(integer)) => {
            out.push(0);
            out.extend_from_slice(&integer.to_le_bytes());
        }
        Some(NumberKey::Real(real)) => {
            out.push(1);
            out.extend_from_slice(&real.to_bits().to_le_bytes());
        }
        None => {
            out.push(2);
            crate::value_codec::put_value(value, out);
        }
    }
}

/// True if `has(key, a)` is to find a vertex whose value is `b`.
pub(crate) fn index_equal(a: &Value, b: &Value) -> bool {
    match (number_key(a), number_key(b)) {
        (Some(key_a), Some(key_b)) => key_a == key_b && numbers_equal(a, b),
        (None, None) => a == b,
        _ => false,
    }
}

/// Decides between numbers that are the same double.
fn numbers_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::BigInteger(a), Value::BigInteger(b)) => a == b,
        (Value::BigDecimal(a), Value::BigDecimal(b)) => a == b,
        (Value::BigInteger(a), Value::BigDecimal(b)) | (Value::BigDecimal(b), Value::BigInteger(a)) => {
            is_expandable(b) && *b.as_ref() == BigDecimal::from(BigInt::clone(a))
        }
        _ => true,
    }
}

/// Refuses what cannot be a user id.
pub(crate) fn check_id(id: &Value, what: &str) -> Result<(), StoreError> {
    match id {
        Value::Bool(_)
        | Value::Byte(_)
        | Value::Short(_)
        | Value::Int(_)
        | Value::Long(_)
        | Value::BigInteger(_)
        | Value::Float(_)
        | Value::Double(_)
        | Value::BigDecimal(_)
        | Value::Char(_)
        | Value::String(_)
        | Value::Uuid(_)
        | Value::DateTime(_)
        | Value::Duration(_)
        | Value::Binary(_) => Ok(()),
        other => Err(StoreError::UnsupportedValue {
            place: format!("{what} id"),
            reason: format!("an id is a number, text, UUID, date or bytes, not {}", kind_name(other)),
        }),
    }
}

/// Refuses what cannot be a property value.
pub(crate) fn check_property_value(key: &str, value: &Value) -> Result<(), StoreError> {
    storable(value, 0).map_err(|reason| StoreError::UnsupportedValue { place: format!("property '{key}'"), reason })
}

fn storable(value: &Value, depth: usize) -> Result<(), String> {
    if depth > NESTING_LIMIT {
        return Err(format!("collections are nested more than {NESTING_LIMIT} deep"));
    }
    match value {
        Value::Null if depth == 0 => Err("a property has no null value; remove the property instead".to_string()),
        Value::List(list) => list.iter().try_for_each(|member| storable(member, depth + 1)),
        Value::Set(set) => set.iter().try_for_each(|member| storable(member, depth + 1)),
        Value::Map(map) => {
            map.iter().try_for_each(|(key, value)| storable(key, depth + 1).and_then(|()| storable(value, depth + 1)))
        }
        Value::Null
        | Value::Bool(_)
        | Value::Byte(_)
        | Value::Short(_)
        | Value::Int(_)
        | Value::Long(_)
        | Value::BigInteger(_)
        | Value::Float(_)
        | Value::Double(_)
        | Value::BigDecimal(_)
        | Value::Char(_)
        | Value::String(_)
        | Value::Uuid(_)
        | Value::DateTime(_)
        | Value::Duration(_)
        | Value::Binary(_) => Ok(()),
        other => Err(format!("{} cannot be stored", kind_name(other))),
    }
}

/// What a value is, for messages.
fn kind_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::List(_) => "a list",
        Value::Set(_) => "a set",
        Value::Map(_) => "a map",
        Value::Entry(_) => "a map entry",
        Value::BulkSet(_) => "a bulk set",
        Value::Path(_) => "a path",
        Value::Tree(_) => "a tree",
        Value::Graph(_) => "a graph",
        Value::Vertex(_) => "a vertex",
        Value::Edge(_) => "an edge",
        Value::VertexProperty(_) => "a vertex property",
        Value::Property(_) => "a property",
        Value::Element(_) => "an element",
        Value::P(_) => "a predicate",
        Value::Bytecode(_) => "a traversal",
        Value::Metrics(_) | Value::Explanation(_) => "a report",
        _ => "a token",
    }
}

#[cfg(test)]
mod tests {
    use ficus_model::Shared;

    use std::str::FromStr;
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::value_codec::tests::any_value;

    fn decimal(text: &str) -> Value {
        Value::BigDecimal(Arc::new(BigDecimal::from_str(text).unwrap()))
    }

    fn big(text: &str) -> Value {
        Value::BigInteger(Arc::new(BigInt::from_str(text).unwrap()))
    }

    #[test]
    fn numbers_are_one_index_key_by_value() {
        let equal = [
            (Value::Int(1), Value::Long(1)),
            (Value::Int(1), Value::Double(1.0)),
            (Value::Byte(-1), Value::Float(-1.0)),
            (Value::Int(1), decimal("1.00")),
            (Value::Double(0.1), decimal("0.10")),
            (Value::Double(0.0), Value::Double(-0.0)),
            (big("10000000000000000000000"), Value::Double(1e22)),
            (big("10000000000000000000000"), decimal("1e22")),
            (decimal("1e999999"), decimal("1e999999")),
            (Value::String("a".into()), Value::String("a".into())),
        ];
        for (a, b) in equal {
            assert_eq!(index_hash(&a), index_hash(&b), "{a:?} {b:?}");
            assert!(index_equal(&a, &b) && index_equal(&b, &a), "{a:?} {b:?}");
        }
        let different = [
            (Value::Int(1), Value::String("1".into())),
            (Value::Int(1), Value::Bool(true)),
            (big("10000000000000000000001"), big("10000000000000000000000")),
            (Value::Char('a'), Value::String("a".into())),
        ];
        for (a, b) in different {
            assert!(!index_equal(&a, &b) && !index_equal(&b, &a), "{a:?} {b:?}");
        }
        assert_eq!(index_hash(&Value::Double(f64::NAN)), None);
    }

    #[test]
    fn hashes_of_index_keys_are_those_in_files() {
        let list = Value::List(Shared::new(vec![Value::Int(1), Value::Null]));
        let values = [Value::Long(1), Value::Double(0.5), Value::String("a".into()), Value::Bool(true), list];
        let hashes = values.map(|value| index_hash(&value).unwrap());
        let expected = [
            3_439_722_301_264_460_078,
            1_580_932_699_965_366_285,
            11_932_322_294_427_884_444,
            10_892_621_470_914_636_186,
            868_702_208_778_554_509,
        ];
        assert_eq!(hashes, expected);
    }

    proptest! {
        #[test]
        fn equal_index_keys_have_equal_hashes(a in any_value(), b in any_value()) {
            if index_equal(&a, &b) {
                prop_assert_eq!(index_hash(&a), index_hash(&b));
            }
            let list = |value: &Value| Value::List(Shared::new(vec![value.clone()]));
            if index_equal(&list(&a), &list(&b)) {
                prop_assert_eq!(index_hash(&list(&a)), index_hash(&list(&b)));
            }
            let both = |first: &Value, second: &Value| {
                Value::Set(Shared::new([first.clone(), second.clone()].into_iter().collect()))
            };
            prop_assert_eq!(index_hash(&both(&a, &b)), index_hash(&both(&b, &a)));
        }
    }

    #[test]
    fn integers_of_every_width_are_one_id() {
        for id in [Value::Byte(7), Value::Short(7), Value::Int(7), Value::Long(7), big("7")] {
            assert!(ids_equal(&id, &Value::Long(7)));
            assert_eq!(id_hash(&id), id_hash(&Value::Long(7)));
        }
        assert!(!ids_equal(&Value::Double(7.0), &Value::Long(7)));
        assert!(!ids_equal(&Value::String("7".into()), &Value::Long(7)));
    }

    #[test]
    fn what_is_not_a_value_of_a_property_is_refused() {
        let mut deep = Value::Int(1);
        for _ in 0..=NESTING_LIMIT {
            deep = Value::List(Shared::new(vec![deep]));
        }
        for value in [Value::Null, Value::T(ficus_model::T::Id), Value::Vertex(ficus_model::VertexId(1)), deep] {
            assert!(check_property_value("k", &value).is_err());
        }
        assert!(check_property_value("k", &Value::List(Shared::new(vec![Value::Null]))).is_ok());
        assert!(check_id(&Value::Null, "vertex").is_err());
    }
}
