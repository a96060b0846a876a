//! Reads the `@value` of a typed GraphSON value: scalars, collections, tokens and predicates.

use std::borrow::Cow;
use std::str::FromStr;
use std::sync::Arc;

use data_encoding::BASE64;
use ficus_model::{
    BulkSet, Cardinality, Column, DateUnit, Direction, GType, Merge, Operator, Order, Pick, Pop, Scope, Shared, T,
    Value, ValueMap, ValueSet, decimal,
};
use num_bigint::BigInt;
use uuid::Uuid;

use super::json_reader::Result;
use super::reader::{Reader, string};
use crate::argument::barrier;
use crate::number_text::parse_double;
use crate::temporal::{datetime_of_instant, value_of_text};
use crate::{DecodeErrorKind, predicate};

impl Reader<'_> {
    /// The value of type `type_name` at the cursor.
    pub(super) fn typed_value(&mut self, type_name: &str) -> Result<Value> {
        if self.json.peek() == Some(b'n') {
            return self.json.literal("null").map(|()| Value::Null);
        }
        match type_name {
            "g:Int32" => self.number("a 32-bit integer", |text| text.parse().ok().map(Value::Int)),
            "g:Int64" => self.number("a 64-bit integer", |text| text.parse().ok().map(Value::Long)),
            "gx:Int16" => self.number("a 16-bit integer", |text| text.parse().ok().map(Value::Short)),
            "gx:Byte" => self.number("an 8-bit integer", |text| text.parse().ok().map(Value::Byte)),
            "g:Double" => self.number("a double", |text| parse_double(text).map(Value::Double)),
            "g:Float" => self.number("a float", parse_float),
            "gx:BigInteger" => self.number("an integer", |text| {
                BigInt::from_str(text).ok().map(|value| Value::BigInteger(Arc::new(value)))
            }),
            "gx:BigDecimal" => self.number("a decimal with a scale of 32 bits", |text| {
                decimal::parse(text).map(|value| Value::BigDecimal(Arc::new(value)))
            }),
            "g:Date" | "g:Timestamp" => self.number("milliseconds since 1970", |text| {
                let millis = text.parse::<i64>().ok()?;
                let nanos = millis.rem_euclid(1000) as u32 * 1_000_000;
                datetime_of_instant(millis.div_euclid(1000), nanos).map(Value::DateTime)
            }),
            "g:UUID" => self.text("a UUID", |text| Uuid::try_parse(text).ok().map(Value::Uuid)),
            "gx:Char" => self.text("one character", |text| {
                let mut characters = text.chars();
                characters.next().filter(|_| characters.next().is_none()).map(Value::Char)
            }),
            "gx:ByteBuffer" => self.text("bytes in Base64", |text| {
                BASE64.decode(text.as_bytes()).ok().map(|bytes| Value::Binary(bytes.into()))
            }),
            "g:Class" => self.json.string("the name of a class").map(string),
            "gx:Duration" | "gx:OffsetDateTime" | "gx:ZonedDateTime" | "gx:Instant" | "gx:LocalDate"
            | "gx:LocalDateTime" => {
                let text = self.json.string("a date or duration in ISO-8601")?;
                self.time_of_text(&type_name["gx:".len()..], &text)
            }
            "g:List" => self.values().map(|values| Value::List(Shared::new(values))),
            "g:Set" => self.set(),
            "g:Map" => self.typed_map(),
            "g:BulkSet" => self.bulk_set(),
            "g:P" | "g:TextP" => self.predicate(),
            "g:T" => self.token("a name of T", T::from_name, Value::T),
            "g:Direction" => self.token("a name of Direction", Direction::from_name, Value::Direction),
            "g:Order" => self.token("a name of Order", Order::from_name, Value::Order),
            "g:Scope" => self.token("a name of Scope", Scope::from_name, Value::Scope),
            "g:Pop" => self.token("a name of Pop", Pop::from_name, Value::Pop),
            "g:Column" => self.token("a name of Column", Column::from_name, Value::Column),
            "g:Cardinality" => self.token("a name of Cardinality", Cardinality::from_name, Value::Cardinality),
            "g:Merge" => self.token("a name of Merge", Merge::from_name, Value::Merge),
            "g:Pick" => self.token("a name of Pick", Pick::from_name, Value::Pick),
            "g:Operator" => self.token("a name of Operator", Operator::from_name, Value::Operator),
            "g:DT" => self.token("a name of DT", DateUnit::from_name, Value::DateUnit),
            "g:GType" => self.token("a name of GType", GType::from_name, Value::GType),
            "g:Barrier" => self.token("a name of Barrier", barrier, |value| value),
            "g:Lambda" => {
                let advice = "write an anonymous traversal such as __.out() instead";
                self.json.fail(DecodeErrorKind::Unsupported, advice, "a lambda")
            }
            structure => self.structure(structure),
        }
    }

    /// A number, or its text in quotes, as several drivers write those that JavaScript cannot hold.
    fn number(&mut self, expected: &'static str, parse: impl Fn(&str) -> Option<Value>) -> Result<Value> {
        let start = self.json.offset();
        let text = match self.json.peek() {
            Some(b'"') => self.json.string("a number")?,
            _ => Cow::Borrowed(self.json.number()?),
        };
        if text.len() > self.json.limits.digits {
            let limit = format!("{} digits", self.json.limits.digits);
            return self.json.fail(DecodeErrorKind::Limit, limit, format!("a number of {} digits", text.len()));
        }
        self.parsed(parse(&text), start, expected)
    }

    fn text(&mut self, expected: &'static str, parse: impl Fn(&str) -> Option<Value>) -> Result<Value> {
        self.json.peek();
        let start = self.json.offset();
        let text = self.json.string(expected)?;
        self.parsed(parse(&text), start, expected)
    }

    fn token<Token>(
        &mut self,
        expected: &'static str,
        from_name: impl Fn(&str) -> Option<Token>,
        to_value: impl Fn(Token) -> Value,
    ) -> Result<Value> {
        self.text(expected, |name| from_name(name).map(&to_value))
    }

    /// Fails at `start` when there is no value.
    fn parsed(&mut self, value: Option<Value>, start: usize, expected: &'static str) -> Result<Value> {
        match value {
            Some(value) => Ok(value),
            None => {
                self.json.seek(start);
                self.json.unexpected(expected)
            }
        }
    }

    /// A date or duration by the name of its Java class.
    pub(super) fn time_of_text(&mut self, class: &str, text: &str) -> Result<Value> {
        let Ok(value) = value_of_text(class, text) else {
            let advice = "send it as a string or a number";
            return self.json.fail(DecodeErrorKind::Unsupported, advice, format!("a value of type {class}"));
        };
        match value {
            Some(value) => Ok(value),
            None => {
                let found = format!("{text:?}");
                self.json.fail(DecodeErrorKind::Malformed, format!("{class} in ISO-8601 within its range"), found)
            }
        }
    }

    fn set(&mut self) -> Result<Value> {
        let mut members = ValueSet::default();
        self.elements(|reader| {
            members.insert(reader.value()?);
            Ok(())
        })?;
        Ok(Value::Set(Shared::new(members)))
    }

    /// Keys and values in turn; an object with string keys is accepted too.
    fn typed_map(&mut self) -> Result<Value> {
        if self.json.peek() == Some(b'{') {
            return self.map().map(|entries| Value::Map(Shared::new(entries)));
        }
        let mut entries = ValueMap::default();
        self.elements(|reader| {
            let key = reader.value()?;
            reader.json.expect(b',', "a value after each key of a map")?;
            let value = reader.value()?;
            entries.insert(key, value);
            Ok(())
        })?;
        Ok(Value::Map(Shared::new(entries)))
    }

    /// Members and bulks in turn.
    fn bulk_set(&mut self) -> Result<Value> {
        let mut counts = BulkSet::default().counts;
        self.elements(|reader| {
            let value = reader.value()?;
            reader.json.expect(b',', "a bulk after each member of a bulk set")?;
            let bulk = reader.bulk()?;
            let total = counts.entry(value).or_insert(0_u64);
            *total = total.saturating_add(bulk.unsigned_abs());
            Ok(())
        })?;
        Ok(Value::BulkSet(Shared::new(BulkSet { counts })))
    }

    /// A positive integer.
    pub(super) fn bulk(&mut self) -> Result<i64> {
        match self.value()? {
            Value::Long(bulk) if bulk > 0 => Ok(bulk),
            Value::Int(bulk) if bulk > 0 => Ok(i64::from(bulk)),
            _ => self.json.fail(DecodeErrorKind::Malformed, "a positive bulk", "another value"),
        }
    }

    fn predicate(&mut self) -> Result<Value> {
        let start = self.json.offset();
        let mut name = None;
        let mut operand = Value::Null;
        self.members(|reader, key| {
            match &*key {
                "predicate" => name = Some(reader.json.string("a predicate's name")?),
                "value" => operand = reader.value()?,
                _ => reader.json.skip_value()?,
            }
            Ok(())
        })?;
        let Some(name) = name else {
            return self.json.fail(DecodeErrorKind::MissingField, "the predicate's name", "");
        };
        match predicate::from_value(&name, operand) {
            Ok(predicate) => Ok(Value::P(Arc::new(predicate))),
            Err(expected) => {
                self.json.seek(start);
                self.json.fail(DecodeErrorKind::Malformed, expected, format!("predicate {name:?}"))
            }
        }
    }
}

fn parse_float(text: &str) -> Option<Value> {
    // Straight to single precision: by way of a double it would be rounded twice.
    match parse_double(text) {
        Some(double) if double.is_finite() => text.parse().ok().map(Value::Float),
        other => other.map(|double| Value::Float(double as f32)),
    }
}
