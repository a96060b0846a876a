//! A column of values.
//!
//! Values of one kind of number, character, truth value or moment in UTC are [`Numbers`]. Texts are a dictionary where few differ, else one
//! heap with offsets. Everything else, and every mixture of kinds, is encoded value by value as in log records.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use ficus_model::Value;

use super::damage::damaged;
use super::file::{FileBuilder, Owner, SegmentFile, part};
use super::numbers::{self, Numbers};
use super::numbers_builder::NumbersBuilder;
use crate::StoreError;
use crate::mapping::Section;
use crate::number_range::{milliseconds, moment};
use crate::value_codec::{ByteReader, put_value};
use crate::value_key::{id_integer, ids_equal};

/// A dictionary may have this many texts, and more if each is used [`USES_PER_TEXT`] times.
const DICTIONARY_FREE: usize = 64;
const DICTIONARY_LIMIT: usize = 1 << 16;
const USES_PER_TEXT: usize = 8;

/// The kind of values of a column. Numbers are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Kind {
    Bool = 1,
    Byte = 2,
    Short = 3,
    Int = 4,
    Long = 5,
    Float = 6,
    Double = 7,
    Char = 8,
    /// Numbers are codes of a dictionary.
    Dictionary = 9,
    /// Numbers are offsets of texts.
    Texts = 10,
    /// Numbers are offsets of encoded values.
    Encoded = 11,
    /// A date and time in UTC without a fraction of milliseconds, as milliseconds since 1970.
    Moment = 12,
}

impl Kind {
    pub(super) fn from_number(number: u32) -> Option<Kind> {
        use Kind::*;
        let kinds = [Bool, Byte, Short, Int, Long, Float, Double, Char, Dictionary, Texts, Encoded, Moment];
        kinds.into_iter().find(|kind| *kind as u32 == number)
    }

    /// The value a number of this kind is.
    #[inline]
    pub(super) fn value(self, number: u64) -> Value {
        match self {
            Kind::Long => Value::Long(number as i64),
            Kind::Int => Value::Int(number as i32),
            Kind::Double => Value::Double(f64::from_bits(number)),
            Kind::Bool => Value::Bool(number & 1 == 1),
            Kind::Byte => Value::Byte(number as i8),
            Kind::Short => Value::Short(number as i16),
            Kind::Float => Value::Float(f32::from_bits(number as u32)),
            Kind::Char => Value::Char(char::from_u32(number as u32).unwrap_or_else(|| damaged())),
            Kind::Moment => Value::DateTime(moment(number as i64)),
            Kind::Dictionary | Kind::Texts | Kind::Encoded => unreachable!("their numbers are no values"),
        }
    }

    /// True if numbers of this kind are integers that may be user ids.
    pub(super) fn is_integer(self) -> bool {
        matches!(self, Kind::Byte | Kind::Short | Kind::Int | Kind::Long)
    }
}

/// A value as a number, where it is one.
#[inline]
fn number_of(value: &Value) -> Option<(Kind, u64)> {
    Some(match value {
        Value::Long(number) => (Kind::Long, *number as u64),
        Value::Int(number) => (Kind::Int, i64::from(*number) as u64),
        Value::Double(number) => (Kind::Double, number.to_bits()),
        Value::Bool(truth) => (Kind::Bool, u64::from(*truth)),
        Value::Byte(number) => (Kind::Byte, i64::from(*number) as u64),
        Value::Short(number) => (Kind::Short, i64::from(*number) as u64),
        Value::Float(number) => (Kind::Float, u64::from(number.to_bits())),
        Value::Char(character) => (Kind::Char, u64::from(u32::from(*character))),
        Value::DateTime(moment) => (Kind::Moment, milliseconds(moment)? as u64),
        _ => return None,
    })
}

/// Values being collected.
#[derive(Debug, Default)]
pub(super) enum ValuesBuilder {
    #[default]
    Empty,
    Numbers {
        kind: Kind,
        numbers: NumbersBuilder,
    },
    Dictionary {
        codes: NumbersBuilder,
        texts: Vec<Arc<str>>,
        known: HashMap<Arc<str>, u32>,
    },
    Texts(HeapBuilder),
    Encoded(HeapBuilder),
}

/// Byte strings one behind the other.
#[derive(Debug)]
pub(super) struct HeapBuilder {
    /// Starts, and the end of the last one.
    offsets: NumbersBuilder,
    bytes: Vec<u8>,
}

impl Default for HeapBuilder {
    fn default() -> HeapBuilder {
        let mut offsets = NumbersBuilder::default();
        offsets.push(0);
        HeapBuilder { offsets, bytes: Vec::new() }
    }
}

impl HeapBuilder {
    /// Appends what `write` appends.
    pub(super) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.offsets.push(self.bytes.len() as u64);
    }

    fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    fn get(&self, index: usize) -> &[u8] {
        &self.bytes[self.offsets.get(index) as usize..self.offsets.get(index + 1) as usize]
    }

    pub(super) fn put(self, file: &mut FileBuilder, owner: Owner, key: u32, offsets: u8, tag: u32) {
        self.offsets.put(file, owner.key_part(key, offsets), tag);
        file.put_bytes(owner.key_part(key, part::BYTES), &self.bytes);
    }
}

impl ValuesBuilder {
    #[inline]
    pub(super) fn push(&mut self, value: &Value) {
        if let (ValuesBuilder::Numbers { kind, numbers }, Some((found, number))) = (&mut *self, number_of(value))
            && *kind == found
        {
            numbers.push(number);
            return;
        }
        self.push_other(value);
    }

    fn push_other(&mut self, value: &Value) {
        if let ValuesBuilder::Empty = self {
            *self = match (number_of(value), value) {
                (Some((kind, _)), _) => ValuesBuilder::Numbers { kind, numbers: NumbersBuilder::default() },
                (None, Value::String(_)) => ValuesBuilder::Dictionary {
                    codes: NumbersBuilder::default(),
                    texts: Vec::new(),
                    known: HashMap::new(),
                },
                _ => ValuesBuilder::Encoded(HeapBuilder::default()),
            };
        }
        match (&mut *self, value) {
            (ValuesBuilder::Dictionary { codes, texts, known }, Value::String(text)) => {
                if let Some(code) = known.get(text) {
                    codes.push(u64::from(*code));
                    return;
                }
                let limit = (codes.len() / USES_PER_TEXT).clamp(DICTIONARY_FREE, DICTIONARY_LIMIT);
                if texts.len() < limit {
                    known.insert(text.clone(), texts.len() as u32);
                    codes.push(texts.len() as u64);
                    texts.push(text.clone());
                    return;
                }
                let mut heap = HeapBuilder::default();
                for index in 0..codes.len() {
                    heap.push(|out| out.extend_from_slice(texts[codes.get(index) as usize].as_bytes()));
                }
                heap.push(|out| out.extend_from_slice(text.as_bytes()));
                *self = ValuesBuilder::Texts(heap);
            }
            (ValuesBuilder::Texts(heap), Value::String(text)) => {
                heap.push(|out| out.extend_from_slice(text.as_bytes()))
            }
            (ValuesBuilder::Numbers { kind, numbers }, value) => match number_of(value) {
                Some((found, number)) if *kind == found => numbers.push(number),
                _ => self.push_encoded(value),
            },
            _ => self.push_encoded(value),
        }
    }

    /// Encodes what is there, if it is not, and appends.
    fn push_encoded(&mut self, value: &Value) {
        if !matches!(self, ValuesBuilder::Encoded(_)) {
            let mut heap = HeapBuilder::default();
            for index in 0..self.len() {
                heap.push(|out| put_value(&self.get(index), out));
            }
            *self = ValuesBuilder::Encoded(heap);
        }
        if let ValuesBuilder::Encoded(heap) = self {
            heap.push(|out| put_value(value, out));
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            ValuesBuilder::Empty => 0,
            ValuesBuilder::Numbers { numbers, .. } => numbers.len(),
            ValuesBuilder::Dictionary { codes, .. } => codes.len(),
            ValuesBuilder::Texts(heap) | ValuesBuilder::Encoded(heap) => heap.len(),
        }
    }

    fn get(&self, index: usize) -> Value {
        match self {
            ValuesBuilder::Empty => unreachable!("there are no values"),
            ValuesBuilder::Numbers { kind, numbers } => kind.value(numbers.get(index)),
            ValuesBuilder::Dictionary { codes, texts, .. } => Value::String(texts[codes.get(index) as usize].clone()),
            ValuesBuilder::Texts(heap) => {
                Value::String(std::str::from_utf8(heap.get(index)).expect("it was a text").into())
            }
            ValuesBuilder::Encoded(heap) => ByteReader::new(heap.get(index)).value().expect("it was just encoded"),
        }
    }

    /// The kind and the numbers, if all are integers of one width.
    pub(super) fn integers(&self) -> Option<(Kind, &NumbersBuilder)> {
        match self {
            ValuesBuilder::Numbers { kind, numbers } if kind.is_integer() => Some((*kind, numbers)),
            _ => None,
        }
    }

    pub(super) fn put(self, file: &mut FileBuilder, owner: Owner, key: u32) {
        let name = owner.key_part(key, part::NUMBERS);
        match self {
            ValuesBuilder::Empty => NumbersBuilder::default().put(file, name, Kind::Long as u32),
            ValuesBuilder::Numbers { kind, numbers } => numbers.put(file, name, kind as u32),
            ValuesBuilder::Dictionary { codes, texts, .. } => {
                codes.put(file, name, Kind::Dictionary as u32);
                let mut heap = HeapBuilder::default();
                texts.iter().for_each(|text| heap.push(|out| out.extend_from_slice(text.as_bytes())));
                heap.put(file, owner, key, part::DICTIONARY, 0);
            }
            ValuesBuilder::Texts(heap) => heap.put(file, owner, key, part::NUMBERS, Kind::Texts as u32),
            ValuesBuilder::Encoded(heap) => heap.put(file, owner, key, part::NUMBERS, Kind::Encoded as u32),
        }
    }
}

/// Byte strings one behind the other, to be read.
#[derive(Clone, Debug)]
pub(super) struct Heap {
    offsets: Numbers,
    bytes: Section<u8>,
}

impl Heap {
    /// A heap of nothing.
    pub(super) const EMPTY: Heap =
        Heap { offsets: Numbers::Affine { first: 0, stride: 0, count: 1 }, bytes: Section::EMPTY };

    pub(super) fn open(file: &SegmentFile, owner: Owner, key: u32, offsets: u8) -> Result<Heap, StoreError> {
        let entry = file.entry(owner.key_part(key, offsets))?;
        let offsets = Numbers::of(file, entry)?;
        let bytes_entry = file.entry(owner.key_part(key, part::BYTES))?;
        let bytes: Section<u8> = file.section(bytes_entry, bytes_entry.encoding.count)?;
        match offsets.len().checked_sub(1) {
            Some(last) if offsets.get(last) == bytes.len() as u64 => Ok(Heap { offsets, bytes }),
            _ => Err(file.corrupt(entry, "offsets do not end where their bytes do")),
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.offsets.len() - 1
    }

    #[inline]
    pub(super) fn get(&self, index: u64) -> &[u8] {
        numbers::slice(&self.bytes, self.offsets.get(index) as usize..self.offsets.get(index + 1) as usize)
    }

    /// Checks the offsets; for `verify`.
    pub(super) fn verify(&self) -> Result<(), &'static str> {
        if self.offsets.get(0) != 0 || !self.offsets.is_monotone() {
            return Err("offsets are out of order");
        }
        Ok(())
    }

    fn verify_texts(&self) -> Result<(), &'static str> {
        self.verify()?;
        match (0..self.len()).all(|index| std::str::from_utf8(self.get(index)).is_ok()) {
            true => Ok(()),
            false => Err("a text is not UTF-8"),
        }
    }

    fn text(&self, index: u64) -> &str {
        StoredText(self.get(index)).as_str()
    }
}

/// A text as it lies in a file. To see that it is one costs more than to compare it.
#[derive(Clone, Copy)]
pub(crate) struct StoredText<'a>(&'a [u8]);

impl<'a> StoredText<'a> {
    /// Whether it is this one.
    #[inline]
    pub(crate) fn is(self, text: &str) -> bool {
        self.0 == text.as_bytes()
    }

    /// Ends the query if the file is damaged.
    pub(crate) fn as_str(self) -> &'a str {
        std::str::from_utf8(self.0).unwrap_or_else(|_| damaged())
    }
}

/// A column of values, to be read.
#[derive(Clone, Debug)]
pub(super) enum Values {
    Numbers { kind: Kind, numbers: Numbers },
    Dictionary { codes: Numbers, texts: Heap, shared: OnceLock<Box<[Arc<str>]>> },
    Texts(Heap),
    Encoded(Heap),
}

impl Values {
    /// Opens a column that has to have `count` entries.
    pub(super) fn open(file: &SegmentFile, owner: Owner, key: u32, count: u64) -> Result<Values, StoreError> {
        let entry = file.entry(owner.key_part(key, part::NUMBERS))?;
        let kind = Kind::from_number(entry.encoding.tag);
        let kind = kind.ok_or_else(|| file.corrupt(entry, "a column has an unknown kind of values"))?;
        let values = match kind {
            Kind::Dictionary => Values::Dictionary {
                codes: Numbers::of(file, entry)?,
                texts: Heap::open(file, owner, key, part::DICTIONARY)?,
                shared: OnceLock::new(),
            },
            Kind::Texts => Values::Texts(Heap::open(file, owner, key, part::NUMBERS)?),
            Kind::Encoded => Values::Encoded(Heap::open(file, owner, key, part::NUMBERS)?),
            kind => Values::Numbers { kind, numbers: Numbers::of(file, entry)? },
        };
        if values.len() != count {
            return Err(file.corrupt(entry, format!("a column has {} values where {count} belong", values.len())));
        }
        Ok(values)
    }

    fn len(&self) -> u64 {
        match self {
            Values::Numbers { numbers, .. } => numbers.len(),
            Values::Dictionary { codes, .. } => codes.len(),
            Values::Texts(heap) | Values::Encoded(heap) => heap.len(),
        }
    }

    /// The value at an index.
    #[inline]
    pub(super) fn get(&self, index: u64) -> Value {
        match self {
            Values::Numbers { kind, numbers } => kind.value(numbers.get(index)),
            Values::Dictionary { codes, .. } => match self.text_of_code(codes.get(index)) {
                Some(text) => Value::String(text.clone()),
                None => damaged(),
            },
            Values::Texts(heap) => Value::String(heap.text(index).into()),
            Values::Encoded(heap) => ByteReader::new(heap.get(index)).value().unwrap_or_else(|_| damaged()),
        }
    }

    /// True if the value at an index and this one are the same user id.
    pub(super) fn is_id(&self, index: u64, id: &Value) -> bool {
        match (self, id) {
            (Values::Numbers { kind, numbers }, _) if kind.is_integer() => {
                id_integer(id) == Some(numbers.get(index) as i64)
            }
            (Values::Dictionary { codes, texts, .. }, Value::String(id)) => {
                texts.get(codes.get(index)) == id.as_bytes()
            }
            (Values::Texts(heap), Value::String(id)) => heap.get(index) == id.as_bytes(),
            (Values::Dictionary { .. } | Values::Texts(_), _) => false,
            _ => ids_equal(&self.get(index), id),
        }
    }

    /// The column as numbers, if it is one of moments or, else, of integers.
    #[inline]
    pub(super) fn numbers(&self, of_moments: bool) -> Option<&Numbers> {
        match self {
            Values::Numbers { kind: Kind::Moment, numbers } if of_moments => Some(numbers),
            Values::Numbers { kind, numbers } if !of_moments && kind.is_integer() => Some(numbers),
            _ => None,
        }
    }

    /// Whether integers of a column are `Long`; `None` if it is no column of `Int` or of `Long`.
    pub(super) fn are_long(&self) -> Option<bool> {
        match self {
            Values::Numbers { kind: Kind::Int, .. } => Some(false),
            Values::Numbers { kind: Kind::Long, .. } => Some(true),
            _ => None,
        }
    }

    /// The column as codes of a dictionary, if it is one.
    #[inline]
    pub(super) fn codes(&self) -> Option<&Numbers> {
        match self {
            Values::Dictionary { codes, .. } => Some(codes),
            _ => None,
        }
    }

    /// The text of a code, if this is a column with a dictionary. Readers get one shared text, as they would from a page.
    pub(super) fn text_of_code(&self, code: u64) -> Option<&Arc<str>> {
        let Values::Dictionary { texts, shared, .. } = self else { return None };
        let shared = shared.get_or_init(|| (0..texts.len()).map(|code| texts.text(code).into()).collect());
        Some(shared.get(code as usize).unwrap_or_else(|| damaged()))
    }

    /// The text at an index, if it is one.
    #[inline]
    pub(super) fn text(&self, index: u64) -> Option<StoredText<'_>> {
        match self {
            Values::Dictionary { codes, texts, .. } => Some(StoredText(texts.get(codes.get(index)))),
            Values::Texts(heap) => Some(StoredText(heap.get(index))),
            Values::Numbers { .. } | Values::Encoded(_) => None,
        }
    }

    /// Whether the value at an index is this text; `None` if it is no text.
    #[inline]
    pub(super) fn is_text(&self, index: u64, text: &str) -> Option<bool> {
        match self {
            Values::Dictionary { codes, texts, .. } => Some(texts.get(codes.get(index)) == text.as_bytes()),
            Values::Texts(heap) => Some(heap.get(index) == text.as_bytes()),
            Values::Numbers { .. } | Values::Encoded(_) => None,
        }
    }

    /// Hands out the indices of values that are this text, and of all that may be it without being kept as text.
    pub(super) fn visit_text(&self, text: &str, visit: &mut dyn FnMut(u64)) {
        let text = text.as_bytes();
        match self {
            Values::Numbers { .. } => {}
            Values::Dictionary { codes, texts, .. } => {
                if let Some(code) = (0..texts.len()).find(|code| texts.get(*code) == text) {
                    (0..codes.len()).filter(|index| codes.get(*index) == code).for_each(visit);
                }
            }
            Values::Texts(heap) => (0..heap.len()).filter(|index| heap.get(*index) == text).for_each(visit),
            Values::Encoded(heap) => (0..heap.len()).for_each(visit),
        }
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Values::Dictionary { texts, shared, .. } => {
                // Two counters, and rounding, for each text.
                shared.get().map_or(0, |shared| shared.len() * (size_of::<Arc<str>>() + 24) + texts.bytes.len())
            }
            _ => 0,
        }
    }

    /// Checks codes, offsets and content; for `verify`.
    pub(super) fn verify(&self) -> Result<(), &'static str> {
        match self {
            Values::Numbers { kind: Kind::Char, numbers } => {
                let wrong = |number: u64| u32::try_from(number).ok().and_then(char::from_u32).is_none();
                numbers.find(wrong).map_or(Ok(()), |_| Err("a character is no Unicode scalar value"))
            }
            Values::Numbers { .. } => Ok(()),
            Values::Dictionary { codes, texts, .. } => {
                texts.verify_texts()?;
                codes.find(|code| code >= texts.len()).map_or(Ok(()), |_| Err("a code is outside its dictionary"))
            }
            Values::Texts(heap) => heap.verify_texts(),
            Values::Encoded(heap) => {
                heap.verify()?;
                (0..heap.len()).try_for_each(|index| {
                    let mut reader = ByteReader::new(heap.get(index));
                    reader.value()?;
                    reader.finish()
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::segment::SegmentOrigin;
    use crate::segment::file::{FileKind, Header};
    use crate::value_codec::tests::any_value;

    fn stored(values: &[Value]) -> Values {
        let mut builder = ValuesBuilder::default();
        values.iter().for_each(|value| builder.push(value));
        let mut file = FileBuilder::new();
        builder.put(&mut file, Owner::VertexProperty, 2);
        let header = Header { origin: SegmentOrigin::default(), tablet: 0, tablet_bits: 0, slots: 0 };
        let image = file.finish(FileKind::Segment, header);
        let file = SegmentFile::open(image.into_bytes(), "values", FileKind::Segment).unwrap();
        let column = Values::open(&file, Owner::VertexProperty, 2, values.len() as u64).unwrap();
        assert!(Values::open(&file, Owner::VertexProperty, 2, values.len() as u64 + 1).is_err());
        column.verify().unwrap();
        column
    }

    fn check(values: &[Value]) {
        let column = stored(values);
        for (index, value) in values.iter().enumerate() {
            assert_eq!(column.get(index as u64), *value);
            for other in values {
                assert_eq!(column.is_id(index as u64, other), ids_equal(value, other), "{value:?} {other:?}");
            }
        }
    }

    #[test]
    fn texts_are_a_dictionary_while_few_differ() {
        let texts = |different: usize| -> Vec<Value> {
            (0..2000).map(|number| Value::String(format!("t{}", number * 7 % different).into())).collect()
        };
        assert!(matches!(stored(&texts(60)), Values::Dictionary { .. }));
        assert!(matches!(stored(&texts(1000)), Values::Texts(_)));
        for different in [1, 60, 1000] {
            let texts = texts(different);
            let column = stored(&texts);
            assert!(texts.iter().enumerate().all(|(index, text)| column.get(index as u64) == *text));
        }
    }

    proptest! {
        #[test]
        fn mixed_values_come_back(values in prop::collection::vec(any_value(), 0..30)) {
            check(&values);
        }

        #[test]
        fn values_of_one_kind_come_back(
            kind in 0u32..10,
            numbers in prop::collection::vec(any::<i64>(), 0..40),
            stranger in prop::option::weighted(0.2, (0usize..40, any_value())),
        ) {
            let mut values: Vec<Value> = numbers
                .iter()
                .map(|number| match kind {
                    0 => Value::Bool(*number > 0),
                    1 => Value::Byte(*number as i8),
                    2 => Value::Short(*number as i16),
                    3 => Value::Int(*number as i32),
                    4 => Value::Long(*number),
                    5 => Value::Float(*number as f32),
                    6 => Value::Double(*number as f64 / 3.0),
                    7 => Value::Char(char::from(*number as u8)),
                    8 => Value::Int((*number % 4) as i32),
                    _ => Value::String(number.to_string().into()),
                })
                .collect();
            if let Some((place, stranger)) = stranger {
                values.insert(place.min(values.len()), stranger);
            }
            check(&values);
        }
    }
}
