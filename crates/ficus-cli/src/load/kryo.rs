//! Reads the objects of Kryo that stand for values, see [`crate::gryo`].
//!
//! Bytes of others: every length is read with what it promises, piece by piece, so that memory stays within what the input has;
//! nesting is bounded, and so is what references make of a vertex; nothing panics.

use std::io::{BufRead, ErrorKind};
use std::sync::Arc;

use bigdecimal::BigDecimal;
use ficus_model::{Civil, Duration, OffsetDateTime, Shared, Value, ValueMap, ValueSet};
use num_bigint::BigInt;
use uuid::Uuid;

use super::record::ReadError;
use crate::gryo::{class, mark};

/// Values nested deeper than this are refused.
const DEPTH_MAX: u32 = 64;

/// The longest vertex accepted, with all its edges, and with every object counted again where it is referred to.
const VERTEX_BYTES_MAX: u64 = 256 << 20;

/// A run of documents.
pub struct KryoInput<'a> {
    input: &'a mut dyn BufRead,
    /// Bytes read so far.
    offset: u64,
    /// The document, from 1, which stands for the line in messages.
    pub document: u64,
    /// Bytes read of earlier documents.
    before: u64,
    /// Bytes that the objects referred to in this document have.
    repeated: u64,
    /// Objects of this document that may be referred to, and their bytes; `None` for those that have not come to their end.
    objects: Vec<Option<(Value, u64)>>,
}

type Read<T> = Result<T, ReadError>;

impl<'a> KryoInput<'a> {
    pub fn new(input: &'a mut dyn BufRead) -> KryoInput<'a> {
        KryoInput { input, offset: 0, document: 0, before: 0, repeated: 0, objects: Vec::new() }
    }

    /// Begins the next document; false at the end of the input.
    pub fn next_document(&mut self) -> Read<bool> {
        self.objects.clear();
        (self.before, self.repeated) = (self.offset, 0);
        self.document += 1;
        Ok(!self.input.fill_buf()?.is_empty())
    }

    /// A complaint about what was just read.
    pub fn wrong<T>(&self, reason: impl std::fmt::Display) -> Read<T> {
        Err(ReadError::file(self.document, format!("vertex {}, byte {}: {reason}", self.document, self.offset)))
    }

    /// Bytes of this document so far, with those of references.
    fn length(&self) -> u64 {
        (self.offset - self.before).saturating_add(self.repeated)
    }

    // bytes

    fn fill(&mut self, bytes: &mut [u8]) -> Read<()> {
        match self.input.read_exact(bytes) {
            Ok(()) => {
                self.offset += bytes.len() as u64;
                if self.length() > VERTEX_BYTES_MAX {
                    return self.wrong(format_args!("a vertex longer than {} MiB", VERTEX_BYTES_MAX >> 20));
                }
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => self.wrong("the file ends within a vertex"),
            Err(error) => Err(error.into()),
        }
    }

    fn fixed<const N: usize>(&mut self) -> Read<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    pub fn byte(&mut self) -> Read<u8> {
        self.fixed().map(|[byte]| byte)
    }

    /// Reads what must be there.
    pub fn expect<const N: usize>(&mut self, expected: [u8; N], what: &str) -> Read<()> {
        let found: [u8; N] = self.fixed()?;
        if found == expected { Ok(()) } else { self.wrong(format_args!("{what} is expected here")) }
    }

    /// So many bytes; the memory follows what is there.
    fn bytes(&mut self, count: u64) -> Read<Vec<u8>> {
        const PIECE: u64 = 1 << 16;
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < count {
            let start = bytes.len();
            bytes.resize(start + PIECE.min(count - start as u64) as usize, 0);
            self.fill(&mut bytes[start..])?;
        }
        Ok(bytes)
    }

    // numbers

    /// An unsigned varint of 32 bits.
    pub fn varint(&mut self) -> Read<u32> {
        let mut number = 0u32;
        for shift in (0..35).step_by(7) {
            let byte = self.byte()?;
            number |= (u32::from(byte & 0x7f)) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        self.wrong("a number with more than five bytes")
    }

    /// An unsigned varint of 64 bits, of which the ninth byte is whole.
    fn varlong(&mut self) -> Read<u64> {
        let mut number = 0u64;
        for shift in (0..56).step_by(7) {
            let byte = self.byte()?;
            number |= (u64::from(byte & 0x7f)) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Ok(number | u64::from(self.byte()?) << 56)
    }

    /// A signed number, as `int` has it.
    pub fn int(&mut self) -> Read<i32> {
        self.varint().map(|number| (number >> 1) as i32 ^ -((number & 1) as i32))
    }

    fn long(&mut self) -> Read<i64> {
        self.varlong().map(|number| (number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn fixed_int(&mut self) -> Read<i32> {
        self.fixed().map(i32::from_be_bytes)
    }

    fn fixed_long(&mut self) -> Read<i64> {
        self.fixed().map(i64::from_be_bytes)
    }

    pub fn boolean(&mut self) -> Read<bool> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => self.wrong("a boolean that is neither true nor false"),
        }
    }

    /// How many of something follow.
    pub fn count(&mut self) -> Read<u32> {
        match u32::try_from(self.int()?) {
            Ok(count) => Ok(count),
            Err(_) => self.wrong("a negative number of things"),
        }
    }

    // texts

    fn characters(&mut self) -> Read<Arc<str>> {
        let first = self.byte()?;
        if first & 0x80 == 0 {
            let mut text = String::new();
            let mut byte = first;
            loop {
                text.push(char::from(byte & 0x7f));
                if byte & 0x80 != 0 {
                    return Ok(text.into());
                }
                byte = self.byte()?;
            }
        }
        let mut length = u32::from(first & 0x3f);
        if first & 0x40 != 0 {
            for shift in (6..34).step_by(7) {
                let byte = self.byte()?;
                length |= (u32::from(byte & 0x7f)) << shift;
                if byte & 0x80 == 0 {
                    break;
                }
            }
        }
        let Some(length) = length.checked_sub(1) else { return self.wrong("null instead of a text") };
        let mut units = Vec::new();
        for _ in 0..length {
            let first = self.byte()?;
            units.push(match first >> 4 {
                0..=7 => u16::from(first),
                12 | 13 => u16::from(first & 0x1f) << 6 | u16::from(self.byte()? & 0x3f),
                14 => {
                    let [second, third] = self.fixed()?;
                    u16::from(first & 0x0f) << 12 | u16::from(second & 0x3f) << 6 | u16::from(third & 0x3f)
                }
                _ => return self.wrong("a byte that begins no character"),
            });
        }
        match String::from_utf16(&units) {
            Ok(text) => Ok(text.into()),
            Err(_) => self.wrong("a text with half a character"),
        }
    }

    /// An object that must be a text.
    pub fn text(&mut self) -> Read<Arc<str>> {
        match self.object(class::STRING, 0)? {
            Value::String(text) => Ok(text),
            other => self.wrong(format_args!("a {} instead of a text", other.type_name())),
        }
    }

    // objects

    /// An object with its class: any value.
    pub fn value(&mut self) -> Read<Value> {
        self.nested(0)
    }

    fn nested(&mut self, depth: u32) -> Read<Value> {
        match self.varint()? {
            mark::NULL => Ok(Value::Null),
            1 => self.wrong("an object of a class that Gryo does not know by number"),
            class => match class - mark::OFFSET {
                class::LOCAL_DATE_TIME => self.no_value(class::LOCAL_DATE_TIME),
                class => self.object(class, depth),
            },
        }
    }

    fn no_value<T>(&self, class: u32) -> Read<T> {
        self.wrong(format_args!("an object of class {class}, which is no value that a property or an id can have"))
    }

    /// An object of a class that is known, or null.
    pub fn object(&mut self, class: u32, depth: u32) -> Read<Value> {
        if depth > DEPTH_MAX {
            return self.wrong(format_args!("values nested deeper than {DEPTH_MAX} levels"));
        }
        if class::is_plain(class) {
            return self.content(class, depth);
        }
        match self.varint()? {
            mark::NULL => Ok(Value::Null),
            mark::NEW => {
                let (number, start) = (self.objects.len(), self.length());
                self.objects.push(None);
                let value = self.content(class, depth)?;
                self.objects[number] = Some((value.clone(), self.length() - start));
                Ok(value)
            }
            reference => match self.objects.get((reference - mark::OFFSET) as usize) {
                Some(Some((value, bytes))) => {
                    self.repeated = self.repeated.saturating_add(*bytes);
                    Ok(value.clone())
                }
                Some(None) => self.wrong("an object that contains itself"),
                None => self.wrong("a reference to an object that has not come yet"),
            },
        }
    }

    /// Notes an object that is no value, so that those behind it have their numbers.
    pub fn begin_object(&mut self) -> Read<()> {
        match self.varint()? {
            mark::NEW => {
                self.objects.push(None);
                Ok(())
            }
            _ => self.wrong("no object where one is expected"),
        }
    }

    fn content(&mut self, class: u32, depth: u32) -> Read<Value> {
        Ok(match class {
            class::INTEGER => Value::Int(self.int()?),
            class::STRING => Value::String(self.characters()?),
            class::FLOAT => Value::Float(f32::from_be_bytes(self.fixed()?)),
            class::BOOLEAN => Value::Bool(self.boolean()?),
            class::BYTE => Value::Byte(self.byte()? as i8),
            class::CHARACTER => {
                let unit = u16::from_be_bytes(self.fixed()?);
                match char::from_u32(u32::from(unit)) {
                    Some(character) => Value::Char(character),
                    None => return self.wrong("half a character"),
                }
            }
            class::SHORT => Value::Short(i16::from_be_bytes(self.fixed()?)),
            class::LONG => Value::Long(self.long()?),
            class::DOUBLE => Value::Double(f64::from_be_bytes(self.fixed()?)),
            class::ARRAY_LIST | class::LINKED_LIST => Value::List(Shared::new(self.members(depth)?)),
            class::HASH_SET | class::LINKED_HASH_SET => {
                Value::Set(Shared::new(self.members(depth)?.into_iter().collect::<ValueSet>()))
            }
            class::HASH_MAP | class::LINKED_HASH_MAP => {
                let count = self.varint()?;
                Value::Map(Shared::new(self.entries(count, depth)?))
            }
            class::EMPTY_LIST => Value::List(Shared::default()),
            class::EMPTY_SET => Value::Set(Shared::default()),
            class::EMPTY_MAP => Value::Map(Shared::default()),
            class::SINGLETON_LIST => Value::List(Shared::new(vec![self.nested(depth + 1)?])),
            class::SINGLETON_SET => Value::Set(Shared::new([self.nested(depth + 1)?].into_iter().collect())),
            class::SINGLETON_MAP => Value::Map(Shared::new(self.entries(1, depth)?)),
            class::ARRAY_AS_LIST => self.object(class::ARRAY_LIST, depth + 1)?,
            class::UUID => Value::Uuid(Uuid::from_u64_pair(self.fixed_long()? as u64, self.fixed_long()? as u64)),
            class::BIG_INTEGER => Value::BigInteger(Arc::new(self.big_integer()?)),
            class::BIG_DECIMAL => {
                let unscaled = self.big_integer()?;
                Value::BigDecimal(Arc::new(BigDecimal::new(unscaled, i64::from(self.int()?))))
            }
            class::DATE | class::TIMESTAMP => {
                Value::DateTime(OffsetDateTime::from_epoch_millis(self.varlong()? as i64))
            }
            class::INSTANT => {
                let (epoch_seconds, nanos) = (self.fixed_long()?, self.fixed_int()?);
                match u32::try_from(nanos) {
                    Ok(nanos) if nanos < 1_000_000_000 => {
                        Value::DateTime(OffsetDateTime { epoch_seconds, nanos, offset_seconds: 0 })
                    }
                    _ => return self.wrong("a moment with more than a second of nanoseconds"),
                }
            }
            class::OFFSET_DATE_TIME => Value::DateTime(self.date_time()?),
            class::DURATION => match Duration::from_nanos(i128::from(self.fixed_long()?)) {
                Ok(duration) => Value::Duration(duration),
                Err(error) => return self.wrong(error),
            },
            class::BYTES => {
                let count = u64::from(self.varint()?);
                let Some(count) = count.checked_sub(1) else { return Ok(Value::Null) };
                Value::Binary(self.bytes(count)?.into())
            }
            class::BYTE_BUFFER => match u64::try_from(self.fixed_int()?) {
                Ok(count) => Value::Binary(self.bytes(count)?.into()),
                Err(_) => return self.wrong("a negative number of bytes"),
            },
            class::LOCAL_DATE_TIME => Value::DateTime(self.local_date_time()?),
            other => return self.no_value(other),
        })
    }

    fn members(&mut self, depth: u32) -> Read<Vec<Value>> {
        let count = self.varint()?;
        let mut members = Vec::new();
        for _ in 0..count {
            members.push(self.nested(depth + 1)?);
        }
        Ok(members)
    }

    fn entries(&mut self, count: u32, depth: u32) -> Read<ValueMap> {
        let mut entries = ValueMap::default();
        for _ in 0..count {
            let key = self.nested(depth + 1)?;
            entries.insert(key, self.nested(depth + 1)?);
        }
        Ok(entries)
    }

    fn big_integer(&mut self) -> Read<BigInt> {
        match u64::from(self.varint()?).checked_sub(1) {
            Some(count) => Ok(BigInt::from_signed_bytes_be(&self.bytes(count)?)),
            None => self.wrong("null instead of a number"),
        }
    }

    /// A local time and an offset, each an object, which others may share.
    fn date_time(&mut self) -> Read<OffsetDateTime> {
        let local = self.object(class::LOCAL_DATE_TIME, 0)?;
        let zone = self.text()?;
        // An offset is read as a part of a date is.
        let offset = OffsetDateTime::parse(&format!("2000-01-01T00:00:00{zone}")).map(|date| date.offset_seconds);
        match (local, offset) {
            (Value::DateTime(local), Ok(offset)) => match OffsetDateTime::from_civil(local.civil(), offset) {
                Ok(moment) => Ok(moment),
                Err(error) => self.wrong(error),
            },
            _ => self.wrong("a date and time without its parts"),
        }
    }

    /// The fields of a calendar, as if at UTC.
    fn local_date_time(&mut self) -> Read<OffsetDateTime> {
        let mut fields = [0; 7];
        for field in &mut fields {
            *field = self.fixed_int()?;
        }
        let [year, month, day, hour, minute, second, nanos] = fields;
        let field = |field: i32, end: u32| u32::try_from(field).ok().filter(|field| *field < end);
        let moment = || {
            let second_of_day = field(hour, 24)? * 3600 + field(minute, 60)? * 60 + field(second, 60)?;
            let (month, day, nanos) = (field(month, 13)?, field(day, 32)?, field(nanos, 1_000_000_000)?);
            OffsetDateTime::from_civil(Civil { year: year.into(), month, day, second_of_day, nanos }, 0).ok()
        };
        match moment() {
            Some(moment) => Ok(moment),
            None => self.wrong("a date and time that no calendar has"),
        }
    }
}
