//! Values, numbers and texts as bytes: the part that log records and checkpoints share.
//!
//! Lengths and ids are LEB128 varints, signed numbers zigzag varints. A value is a tag byte and its content; tags are
//! never reused. The reader checks every length against what is left and bounds nesting, so damaged or hostile bytes give
//! an error and nothing else.

use std::sync::Arc;

use bigdecimal::BigDecimal;
use ficus_model::{Duration, OffsetDateTime, Shared, Value, ValueMap, ValueSet};
use num_bigint::BigInt;
use uuid::Uuid;

use crate::value_key::NESTING_LIMIT;

/// Appends an unsigned number.
pub(crate) fn put_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a signed number.
pub(crate) fn put_signed(number: i64, out: &mut Vec<u8>) {
    put_number((number << 1 ^ number >> 63) as u64, out);
}

/// Appends a length and bytes.
pub(crate) fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_number(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

mod tag {
    pub(super) const NULL: u8 = 0;
    pub(super) const FALSE: u8 = 1;
    pub(super) const TRUE: u8 = 2;
    pub(super) const BYTE: u8 = 3;
    pub(super) const SHORT: u8 = 4;
    pub(super) const INT: u8 = 5;
    pub(super) const LONG: u8 = 6;
    pub(super) const BIG_INTEGER: u8 = 7;
    pub(super) const FLOAT: u8 = 8;
    pub(super) const DOUBLE: u8 = 9;
    pub(super) const BIG_DECIMAL: u8 = 10;
    pub(super) const CHAR: u8 = 11;
    pub(super) const STRING: u8 = 12;
    pub(super) const UUID: u8 = 13;
    pub(super) const DATE_TIME: u8 = 14;
    pub(super) const DURATION: u8 = 15;
    pub(super) const BINARY: u8 = 16;
    pub(super) const LIST: u8 = 17;
    pub(super) const SET: u8 = 18;
    pub(super) const MAP: u8 = 19;
}

/// Appends a text as a value.
pub(crate) fn put_text_value(text: &str, out: &mut Vec<u8>) {
    out.push(tag::STRING);
    put_bytes(text.as_bytes(), out);
}

/// Appends a value. Only values that passed the checks of [`crate::value_key`] come here; anything else is a bug.
pub(crate) fn put_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(tag::NULL),
        Value::Bool(false) => out.push(tag::FALSE),
        Value::Bool(true) => out.push(tag::TRUE),
        Value::Byte(number) => {
            out.push(tag::BYTE);
            put_signed(i64::from(*number), out);
        }
        Value::Short(number) => {
            out.push(tag::SHORT);
            put_signed(i64::from(*number), out);
        }
        Value::Int(number) => {
            out.push(tag::INT);
            put_signed(i64::from(*number), out);
        }
        Value::Long(number) => {
            out.push(tag::LONG);
            put_signed(*number, out);
        }
        Value::BigInteger(number) => {
            out.push(tag::BIG_INTEGER);
            put_bytes(&number.to_signed_bytes_le(), out);
        }
        Value::Float(number) => {
            out.push(tag::FLOAT);
            out.extend_from_slice(&number.to_bits().to_le_bytes());
        }
        Value::Double(number) => {
            out.push(tag::DOUBLE);
            out.extend_from_slice(&number.to_bits().to_le_bytes());
        }
        Value::BigDecimal(number) => {
            out.push(tag::BIG_DECIMAL);
            let (digits, scale) = number.as_bigint_and_exponent();
            put_signed(scale, out);
            put_bytes(&digits.to_signed_bytes_le(), out);
        }
        Value::Char(character) => {
            out.push(tag::CHAR);
            put_number(u64::from(u32::from(*character)), out);
        }
        Value::String(text) => {
            out.push(tag::STRING);
            put_bytes(text.as_bytes(), out);
        }
        Value::Uuid(uuid) => {
            out.push(tag::UUID);
            out.extend_from_slice(uuid.as_bytes());
        }
        Value::DateTime(date) => {
            out.push(tag::DATE_TIME);
            put_signed(date.epoch_seconds, out);
            put_number(u64::from(date.nanos), out);
            put_signed(i64::from(date.offset_seconds), out);
        }
        Value::Duration(duration) => {
            out.push(tag::DURATION);
            put_signed(duration.seconds, out);
            put_number(u64::from(duration.nanos), out);
        }
        Value::Binary(bytes) => {
            out.push(tag::BINARY);
            put_bytes(bytes, out);
        }
        Value::List(list) => {
            out.push(tag::LIST);
            put_number(list.len() as u64, out);
            list.iter().for_each(|member| put_value(member, out));
        }
        Value::Set(set) => {
            out.push(tag::SET);
            put_number(set.len() as u64, out);
            set.iter().for_each(|member| put_value(member, out));
        }
        Value::Map(map) => {
            out.push(tag::MAP);
            put_number(map.len() as u64, out);
            for (key, value) in map.iter() {
                put_value(key, out);
                put_value(value, out);
            }
        }
        other => unreachable!("{other:?} is refused before it is stored"),
    }
}

/// What a reader found instead of what it expected.
pub(crate) type DecodeResult<T> = Result<T, &'static str>;

/// Reads what the `put_…` functions wrote.
#[derive(Debug)]
pub(crate) struct ByteReader<'a> {
    rest: &'a [u8],
}

impl<'a> ByteReader<'a> {
    /// Reads from the start of `bytes`.
    pub(crate) fn new(bytes: &'a [u8]) -> ByteReader<'a> {
        ByteReader { rest: bytes }
    }

    /// True if nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Fails if something is left.
    pub(crate) fn finish(&self) -> DecodeResult<()> {
        if self.is_empty() { Ok(()) } else { Err("bytes left over after the last field") }
    }

    /// The next `length` bytes.
    pub(crate) fn take(&mut self, length: usize) -> DecodeResult<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or("a field ends behind the end of its record")?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> DecodeResult<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| "a field of a fixed length has another one")
    }

    /// One byte.
    pub(crate) fn byte(&mut self) -> DecodeResult<u8> {
        Ok(self.array::<1>()?[0])
    }

    /// Eight bytes.
    pub(crate) fn fixed(&mut self) -> DecodeResult<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// An unsigned number.
    pub(crate) fn number(&mut self) -> DecodeResult<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err("a number has more than 64 bits")
    }

    /// A signed number.
    pub(crate) fn signed(&mut self) -> DecodeResult<i64> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// An unsigned number that fits a narrower type.
    pub(crate) fn narrow<T: TryFrom<u64>>(&mut self) -> DecodeResult<T> {
        T::try_from(self.number()?).map_err(|_| "a number is too large for its field")
    }

    fn narrow_signed<T: TryFrom<i64>>(&mut self) -> DecodeResult<T> {
        T::try_from(self.signed()?).map_err(|_| "a number is too large for its field")
    }

    /// A count of things that take at least one byte each, so that it cannot make the reader allocate more than it has.
    pub(crate) fn count(&mut self) -> DecodeResult<usize> {
        let count = self.number()?;
        if count > self.rest.len() as u64 {
            return Err("a list has more entries than bytes are left");
        }
        Ok(count as usize)
    }

    /// A length and bytes.
    pub(crate) fn bytes(&mut self) -> DecodeResult<&'a [u8]> {
        let length = self.count()?;
        self.take(length)
    }

    /// A text.
    pub(crate) fn text(&mut self) -> DecodeResult<&'a str> {
        std::str::from_utf8(self.bytes()?).map_err(|_| "a text is not UTF-8")
    }

    /// A value.
    pub(crate) fn value(&mut self) -> DecodeResult<Value> {
        self.nested_value(0)
    }

    /// Depth is bounded by `NESTING_LIMIT`.
    fn nested_value(&mut self, depth: usize) -> DecodeResult<Value> {
        if depth > NESTING_LIMIT {
            return Err("a value is nested too deep");
        }
        Ok(match self.byte()? {
            tag::NULL => Value::Null,
            tag::FALSE => Value::Bool(false),
            tag::TRUE => Value::Bool(true),
            tag::BYTE => Value::Byte(self.narrow_signed()?),
            tag::SHORT => Value::Short(self.narrow_signed()?),
            tag::INT => Value::Int(self.narrow_signed()?),
            tag::LONG => Value::Long(self.signed()?),
            tag::BIG_INTEGER => Value::BigInteger(Arc::new(BigInt::from_signed_bytes_le(self.bytes()?))),
            tag::FLOAT => Value::Float(f32::from_bits(u32::from_le_bytes(self.array()?))),
            tag::DOUBLE => Value::Double(f64::from_bits(u64::from_le_bytes(self.array()?))),
            tag::BIG_DECIMAL => {
                let scale = self.signed()?;
                Value::BigDecimal(Arc::new(BigDecimal::new(BigInt::from_signed_bytes_le(self.bytes()?), scale)))
            }
            tag::CHAR => Value::Char(char::from_u32(self.narrow()?).ok_or("a character is no Unicode scalar value")?),
            tag::STRING => Value::String(self.text()?.into()),
            tag::UUID => Value::Uuid(Uuid::from_bytes(self.array()?)),
            tag::DATE_TIME => Value::DateTime(OffsetDateTime {
                epoch_seconds: self.signed()?,
                nanos: self.narrow()?,
                offset_seconds: self.narrow_signed()?,
            }),
            tag::DURATION => Value::Duration(Duration { seconds: self.signed()?, nanos: self.narrow()? }),
            tag::BINARY => Value::Binary(self.bytes()?.into()),
            tag::LIST => {
                let count = self.count()?;
                let members: DecodeResult<Vec<Value>> = (0..count).map(|_| self.nested_value(depth + 1)).collect();
                Value::List(Shared::new(members?))
            }
            tag::SET => {
                let count = self.count()?;
                let members: DecodeResult<ValueSet> = (0..count).map(|_| self.nested_value(depth + 1)).collect();
                Value::Set(Shared::new(members?))
            }
            tag::MAP => {
                let count = self.count()?;
                let mut map = ValueMap::default();
                for _ in 0..count {
                    let key = self.nested_value(depth + 1)?;
                    map.insert(key, self.nested_value(depth + 1)?);
                }
                Value::Map(Shared::new(map))
            }
            _ => return Err("a value has an unknown tag"),
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Values of every storable kind.
    pub(crate) fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::Bool),
            any::<i8>().prop_map(Value::Byte),
            any::<i16>().prop_map(Value::Short),
            any::<i32>().prop_map(Value::Int),
            any::<i64>().prop_map(Value::Long),
            any::<i128>().prop_map(|number| Value::BigInteger(Arc::new(number.into()))),
            any::<f32>().prop_map(Value::Float),
            any::<f64>().prop_map(Value::Double),
            (any::<i64>(), -50i64..50)
                .prop_map(|(digits, scale)| Value::BigDecimal(Arc::new(BigDecimal::new(digits.into(), scale)))),
            any::<char>().prop_map(Value::Char),
            ".{0,12}".prop_map(|text| Value::String(text.into())),
            any::<u128>().prop_map(|number| Value::Uuid(Uuid::from_u128(number))),
            (any::<i64>(), 0u32..1_000_000_000, -64800i32..=64800).prop_map(
                |(epoch_seconds, nanos, offset_seconds)| {
                    Value::DateTime(OffsetDateTime { epoch_seconds, nanos, offset_seconds })
                }
            ),
            (any::<i64>(), 0u32..1_000_000_000)
                .prop_map(|(seconds, nanos)| Value::Duration(Duration { seconds, nanos })),
            prop::collection::vec(any::<u8>(), 0..12).prop_map(|bytes| Value::Binary(bytes.into())),
        ];
        leaf.prop_recursive(3, 12, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(|list| Value::List(Shared::new(list))),
                prop::collection::vec(inner.clone(), 0..4)
                    .prop_map(|list| Value::Set(Shared::new(list.into_iter().collect()))),
                prop::collection::vec((inner.clone(), inner), 0..4)
                    .prop_map(|list| Value::Map(Shared::new(list.into_iter().collect()))),
            ]
        })
    }

    proptest! {
        #[test]
        fn values_come_back_as_they_were(value in any_value(), number in any::<u64>(), signed in any::<i64>()) {
            let mut bytes = Vec::new();
            put_value(&value, &mut bytes);
            put_number(number, &mut bytes);
            put_signed(signed, &mut bytes);
            let mut reader = ByteReader::new(&bytes);
            prop_assert_eq!(reader.value(), Ok(value));
            prop_assert_eq!(reader.number(), Ok(number));
            prop_assert_eq!(reader.signed(), Ok(signed));
            prop_assert_eq!(reader.finish(), Ok(()));
        }

        /// Any bytes give a value or an error.
        #[test]
        fn damaged_bytes_are_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = ByteReader::new(&bytes);
            while reader.value().is_ok() && !reader.is_empty() {}
        }
    }
}
