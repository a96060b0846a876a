//! Reads GraphBinary values: bounds first, then bytes.
//!
//! Every length is checked against the bytes that remain before anything is allocated for it, every value counts
//! towards [`Limits::items`], and recursion stops at [`Limits::nesting`].

use std::borrow::Cow;
use std::sync::Arc;

use bigdecimal::BigDecimal;
use ficus_model::{
    BulkSet, Cardinality, Column, DateUnit, Direction, GType, Merge, Operator, Order, Pick, Pop, Scope, Shared, T,
    Value, ValueMap, ValueSet,
};
use num_bigint::BigInt;
use uuid::Uuid;

use super::{code, flag};
use crate::argument::barrier;
use crate::{DecodeError, DecodeErrorKind, Limits, predicate};

pub(crate) type Result<T> = std::result::Result<T, Box<DecodeError>>;

/// Members to reserve room for before they are read; a longer collection grows as its members prove to be there.
const CAPACITY_MAX: usize = 4096;

/// A cursor over the bytes of one message.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
    limits: &'a Limits,
    items: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8], limits: &'a Limits) -> Reader<'a> {
        Reader { bytes, offset: 0, limits, items: 0, depth: 0 }
    }

    /// An error at the current offset.
    pub(super) fn fail<T>(
        &self,
        kind: DecodeErrorKind,
        expected: impl Into<Cow<'static, str>>,
        found: impl Into<Cow<'static, str>>,
    ) -> Result<T> {
        Err(DecodeError::new(kind, self.offset, expected, found))
    }

    pub(super) fn malformed<T>(
        &self,
        expected: impl Into<Cow<'static, str>>,
        found: impl Into<Cow<'static, str>>,
    ) -> Result<T> {
        self.fail(DecodeErrorKind::Malformed, expected, found)
    }

    fn remaining(&self) -> usize {
        self.bytes.len() - self.offset
    }

    /// Refuses bytes after the end of a value or message.
    pub(crate) fn finish(&self) -> Result<()> {
        match self.remaining() {
            0 => Ok(()),
            more => self.malformed("the end", format!("{more} more bytes")),
        }
    }

    fn take(&mut self, length: usize, what: &'static str) -> Result<&'a [u8]> {
        match self.bytes[self.offset..].split_at_checked(length) {
            Some((taken, _)) => {
                self.offset += length;
                Ok(taken)
            }
            None => self.malformed(what, format!("the end after {} of {length} bytes", self.remaining())),
        }
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N]> {
        Ok(self.take(N, what)?.try_into().expect("take gave exactly N bytes"))
    }

    pub(super) fn byte(&mut self, what: &'static str) -> Result<u8> {
        Ok(self.array::<1>(what)?[0])
    }

    pub(super) fn i16(&mut self, what: &'static str) -> Result<i16> {
        self.array(what).map(i16::from_be_bytes)
    }

    pub(super) fn i32(&mut self, what: &'static str) -> Result<i32> {
        self.array(what).map(i32::from_be_bytes)
    }

    pub(super) fn i64(&mut self, what: &'static str) -> Result<i64> {
        self.array(what).map(i64::from_be_bytes)
    }

    /// A length or count whose members take at least `bytes_each` bytes.
    pub(super) fn count(&mut self, bytes_each: usize, what: &'static str) -> Result<usize> {
        let start = self.offset;
        let count = self.i32(what)?;
        match usize::try_from(count) {
            Ok(count) if count.saturating_mul(bytes_each) <= self.remaining() => Ok(count),
            _ => {
                let found = format!("{count} with {} bytes left", self.remaining());
                Err(DecodeError::new(DecodeErrorKind::Malformed, start, format!("{what} within the message"), found))
            }
        }
    }

    /// A string without type code and flag.
    pub(super) fn text(&mut self, what: &'static str) -> Result<&'a str> {
        let length = self.count(1, what)?;
        let start = self.offset;
        let bytes = self.take(length, what)?;
        std::str::from_utf8(bytes).map_err(|error| {
            let at = start + error.valid_up_to();
            DecodeError::new(DecodeErrorKind::Malformed, at, "UTF-8 text", "bytes that are not")
        })
    }

    pub(super) fn shared_text(&mut self, what: &'static str) -> Result<Arc<str>> {
        self.text(what).map(Arc::from)
    }

    pub(super) fn uuid(&mut self) -> Result<Uuid> {
        self.array("a UUID").map(Uuid::from_bytes)
    }

    /// Counts one value and, while `inside` runs, one level of nesting.
    pub(super) fn nested<T>(&mut self, inside: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.count_items(1)?;
        if self.depth == self.limits.nesting {
            let limit = format!("{} levels of nesting", self.limits.nesting);
            return self.fail(DecodeErrorKind::Limit, limit, "values nested deeper");
        }
        self.depth += 1;
        let result = inside(self);
        self.depth -= 1;
        result
    }

    fn count_items(&mut self, more: usize) -> Result<()> {
        self.items = self.items.saturating_add(more);
        if self.items > self.limits.items {
            let limit = format!("{} values", self.limits.items);
            return self.fail(DecodeErrorKind::Limit, limit, "more values");
        }
        Ok(())
    }

    /// A fully qualified value.
    pub(crate) fn value(&mut self) -> Result<Value> {
        self.nested(|reader| {
            let start = reader.offset;
            let type_code = reader.byte("a type code")?;
            if type_code == code::CUSTOM {
                let advice = "only the types of GraphBinary 1.0 are";
                return Err(DecodeError::new(DecodeErrorKind::Unsupported, start, advice, "a custom type"));
            }
            match reader.byte("a value flag")? {
                flag::NULL => Ok(Value::Null),
                flag::NONE => reader.body(type_code, start),
                flag::BULKED if type_code == code::LIST => reader.bulked_list(),
                other => {
                    let found = format!("flag 0x{other:02x} on type 0x{type_code:02x}");
                    Err(DecodeError::new(DecodeErrorKind::Malformed, start + 1, "value flag 0x00 or 0x01", found))
                }
            }
        })
    }

    /// The value after code and flag.
    fn body(&mut self, type_code: u8, start: usize) -> Result<Value> {
        Ok(match type_code {
            code::INT => Value::Int(self.i32("an int")?),
            code::LONG => Value::Long(self.i64("a long")?),
            code::STRING => Value::String(self.shared_text("a string")?),
            code::DOUBLE => Value::Double(f64::from_be_bytes(self.array("a double")?)),
            code::FLOAT => Value::Float(f32::from_be_bytes(self.array("a float")?)),
            code::BYTE => Value::Byte(self.byte("a byte")?.cast_signed()),
            code::SHORT => Value::Short(self.i16("a short")?),
            code::BOOLEAN => self.boolean()?,
            code::UUID => Value::Uuid(self.uuid()?),
            code::CHAR => self.character()?,
            code::BIG_INTEGER => Value::BigInteger(Arc::new(self.big_integer()?)),
            code::BIG_DECIMAL => self.big_decimal()?,
            code::BYTE_BUFFER => self.binary()?,
            code::LIST => Value::List(Shared::new(self.values("a list's length")?)),
            code::SET => self.set()?,
            code::MAP => Value::Map(Shared::new(self.map()?)),
            code::BULK_SET => self.bulk_set()?,
            code::CLASS => Value::String(self.shared_text("a class name")?),
            code::DATE
            | code::TIMESTAMP
            | code::DURATION
            | code::INSTANT
            | code::LOCAL_DATE
            | code::LOCAL_DATE_TIME
            | code::OFFSET_DATE_TIME
            | code::ZONED_DATE_TIME => self.temporal(type_code)?,
            code::VERTEX
            | code::EDGE
            | code::VERTEX_PROPERTY
            | code::PROPERTY
            | code::PATH
            | code::TREE
            | code::GRAPH
            | code::TRAVERSER
            | code::METRICS
            | code::TRAVERSAL_METRICS
            | code::BYTECODE
            | code::BINDING
            | code::TRAVERSAL_STRATEGY => self.structure(type_code)?,
            code::P | code::TEXT_P => self.predicate()?,
            code::LAMBDA => {
                let advice = "write an anonymous traversal such as __.out() instead";
                return Err(DecodeError::new(DecodeErrorKind::Unsupported, start, advice, "a lambda"));
            }
            code::T => self.token(T::from_name, Value::T, "T")?,
            code::DIRECTION => self.token(Direction::from_name, Value::Direction, "Direction")?,
            code::ORDER => self.token(Order::from_name, Value::Order, "Order")?,
            code::SCOPE => self.token(Scope::from_name, Value::Scope, "Scope")?,
            code::POP => self.token(Pop::from_name, Value::Pop, "Pop")?,
            code::COLUMN => self.token(Column::from_name, Value::Column, "Column")?,
            code::CARDINALITY => self.token(Cardinality::from_name, Value::Cardinality, "Cardinality")?,
            code::MERGE => self.token(Merge::from_name, Value::Merge, "Merge")?,
            code::PICK => self.token(Pick::from_name, Value::Pick, "Pick")?,
            code::OPERATOR => self.token(Operator::from_name, Value::Operator, "Operator")?,
            code::DATE_UNIT => self.token(DateUnit::from_name, Value::DateUnit, "DT")?,
            code::GTYPE => self.token(GType::from_name, Value::GType, "GType")?,
            code::BARRIER => self.token(barrier, |value| value, "Barrier")?,
            unknown => return self.unknown_type(unknown, start),
        })
    }

    fn unknown_type(&self, type_code: u8, start: usize) -> Result<Value> {
        let name = match type_code {
            0x82 => "InetAddress",
            0x86 => "LocalTime",
            0x87 => "MonthDay",
            0x89 => "OffsetTime",
            0x8a => "Period",
            0x8b => "Year",
            0x8c => "YearMonth",
            0x8e => "ZoneOffset",
            code::UNSPECIFIED_NULL => {
                let found = "an unspecified null that is not flagged as null";
                return Err(DecodeError::new(DecodeErrorKind::Malformed, start + 1, "value flag 0x01", found));
            }
            _ => {
                let found = format!("0x{type_code:02x}");
                return Err(DecodeError::new(DecodeErrorKind::UnknownType, start, "a type code", found));
            }
        };
        let advice = "send it as a string or a number";
        Err(DecodeError::new(DecodeErrorKind::Unsupported, start, advice, format!("a value of type {name}")))
    }

    fn boolean(&mut self) -> Result<Value> {
        match self.byte("a boolean")? {
            0 => Ok(Value::Bool(false)),
            1 => Ok(Value::Bool(true)),
            other => self.malformed("boolean 0 or 1", other.to_string()),
        }
    }

    fn character(&mut self) -> Result<Value> {
        let length = match self.bytes.get(self.offset) {
            Some(0xf0..) => 4,
            Some(0xe0..) => 3,
            Some(0xc0..) => 2,
            _ => 1,
        };
        let bytes = self.take(length, "a character")?;
        match std::str::from_utf8(bytes).ok().and_then(|text| text.chars().next()) {
            Some(character) => Ok(Value::Char(character)),
            None => self.malformed("a character in UTF-8", "bytes that are not"),
        }
    }

    fn big_integer(&mut self) -> Result<BigInt> {
        let length = self.count(1, "a big integer's length")?;
        // A byte is 2.41 decimal digits.
        if length.saturating_mul(241) / 100 > self.limits.digits {
            let limit = format!("{} digits", self.limits.digits);
            return self.fail(DecodeErrorKind::Limit, limit, format!("a big integer of {length} bytes"));
        }
        if length == 0 {
            return self.malformed("a big integer", "no bytes");
        }
        Ok(BigInt::from_signed_bytes_be(self.take(length, "a big integer")?))
    }

    fn big_decimal(&mut self) -> Result<Value> {
        let scale = self.i32("a decimal's scale")?;
        let unscaled = self.big_integer()?;
        Ok(Value::BigDecimal(Arc::new(BigDecimal::new(unscaled, i64::from(scale)))))
    }

    fn binary(&mut self) -> Result<Value> {
        let length = self.count(1, "a byte buffer's length")?;
        Ok(Value::Binary(self.take(length, "a byte buffer")?.into()))
    }

    /// A count and that many fully qualified values.
    pub(super) fn values(&mut self, what: &'static str) -> Result<Vec<Value>> {
        let count = self.count(2, what)?;
        let mut values = Vec::with_capacity(count.min(CAPACITY_MAX));
        for _ in 0..count {
            values.push(self.value()?);
        }
        Ok(values)
    }

    /// A bulk, which is positive.
    pub(super) fn bulk(&mut self) -> Result<u64> {
        let bulk = self.i64("a bulk")?;
        match u64::try_from(bulk) {
            Ok(bulk) if bulk > 0 => Ok(bulk),
            _ => self.malformed("a positive bulk", bulk.to_string()),
        }
    }

    /// A list whose members carry bulks, as the plain list it stands for.
    fn bulked_list(&mut self) -> Result<Value> {
        let count = self.count(10, "a list's length")?;
        let mut values = Vec::with_capacity(count.min(CAPACITY_MAX));
        for _ in 0..count {
            let value = self.value()?;
            let bulk = self.bulk()?;
            let bulk = usize::try_from(bulk).unwrap_or(usize::MAX);
            self.count_items(bulk - 1)?;
            values.extend(std::iter::repeat_n(value, bulk));
        }
        Ok(Value::List(Shared::new(values)))
    }

    fn set(&mut self) -> Result<Value> {
        let count = self.count(2, "a set's length")?;
        let mut members = ValueSet::with_capacity_and_hasher(count.min(CAPACITY_MAX), Default::default());
        for _ in 0..count {
            members.insert(self.value()?);
        }
        Ok(Value::Set(Shared::new(members)))
    }

    /// A map without code and flag.
    pub(super) fn map(&mut self) -> Result<ValueMap> {
        let count = self.count(4, "a map's length")?;
        let mut entries = ValueMap::with_capacity(count.min(CAPACITY_MAX));
        for _ in 0..count {
            let key = self.value()?;
            let value = self.value()?;
            entries.insert(key, value);
        }
        Ok(entries)
    }

    fn bulk_set(&mut self) -> Result<Value> {
        let count = self.count(10, "a bulk set's length")?;
        let mut counts = BulkSet::default().counts;
        for _ in 0..count {
            let value = self.value()?;
            let bulk = self.bulk()?;
            let total = counts.entry(value).or_insert(0_u64);
            *total = total.saturating_add(bulk);
        }
        Ok(Value::BulkSet(Shared::new(BulkSet { counts })))
    }

    fn predicate(&mut self) -> Result<Value> {
        let start = self.offset;
        let name = self.text("a predicate's name")?;
        let operands = self.values("a predicate's number of operands")?;
        match predicate::from_operands(name, operands) {
            Ok(predicate) => Ok(Value::P(Arc::new(predicate))),
            Err(expected) => {
                Err(DecodeError::new(DecodeErrorKind::Malformed, start, expected, format!("predicate {name:?}")))
            }
        }
    }

    /// An enumeration: its name as a fully qualified string.
    fn token<Token>(
        &mut self,
        from_name: impl Fn(&str) -> Option<Token>,
        to_value: impl Fn(Token) -> Value,
        what: &'static str,
    ) -> Result<Value> {
        let name_code = self.byte("a type code")?;
        let name_flag = self.byte("a value flag")?;
        if (name_code, name_flag) != (code::STRING, flag::NONE) {
            let found = format!("type 0x{name_code:02x}");
            return self.malformed(format!("the name of a {what} as a string"), found);
        }
        let start = self.offset;
        let name = self.text("a name")?;
        match from_name(name) {
            Some(token) => Ok(to_value(token)),
            None => {
                let (expected, found) = (format!("a name of {what}"), format!("{name:?}"));
                Err(DecodeError::new(DecodeErrorKind::Malformed, start, expected, found))
            }
        }
    }
}
