//! Reads GraphSON values of any version: plain JSON, `@type` with `@value`, and the Java class names of 1.0.

use std::borrow::Cow;
use std::str::FromStr;
use std::sync::Arc;

use ficus_model::{Shared, Value, ValueMap};
use num_bigint::BigInt;

use super::json_reader::{JsonReader, Result};
use super::{Style, Version};
use crate::number_text::parse_double;
use crate::strategy::simple_name;
use crate::{DecodeErrorKind, Limits};

/// Reads values from JSON text.
pub(crate) struct Reader<'a> {
    pub(super) json: JsonReader<'a>,
    /// Whether to look for the Java class names of GraphSON 1.0.
    java_classes: bool,
    /// Bytes read twice because `@value` came before `@type`.
    passed_over: usize,
}

/// How often, on average, a byte of a message may be passed over in search of the type that follows it.
const PASSES_MAX: usize = 16;

impl<'a> Reader<'a> {
    pub(crate) fn new(style: Style, bytes: &'a [u8], limits: &'a Limits) -> Reader<'a> {
        let java_classes = style == Style { version: Version::V1, typed: true };
        Reader { json: JsonReader::new(bytes, limits), java_classes, passed_over: 0 }
    }

    /// Refuses anything but space after the end of a value.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.json.finish()
    }

    /// One value.
    pub(crate) fn value(&mut self) -> Result<Value> {
        self.json.count_item()?;
        match self.json.peek() {
            Some(b'"') => self.json.string("a string").map(string),
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'-' | b'0'..=b'9') => self.json.number().map(plain_number),
            Some(b't') => self.json.literal("true").map(|()| Value::Bool(true)),
            Some(b'f') => self.json.literal("false").map(|()| Value::Bool(false)),
            Some(b'n') => self.json.literal("null").map(|()| Value::Null),
            _ => self.json.unexpected("a JSON value"),
        }
    }

    /// One level deeper while `inside` runs.
    pub(super) fn nested<T>(&mut self, inside: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.json.enter()?;
        let result = inside(self);
        self.json.leave();
        result
    }

    /// Calls `member` for each key of an object; it must consume the value.
    pub(super) fn members(&mut self, mut member: impl FnMut(&mut Self, Cow<'a, str>) -> Result<()>) -> Result<()> {
        self.json.expect(b'{', "an object")?;
        let mut first = true;
        while let Some(key) = self.json.next_key(&mut first)? {
            member(self, key)?;
        }
        Ok(())
    }

    /// Calls `element` for each element of an array; it must consume the value.
    pub(super) fn elements(&mut self, mut element: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        self.json.expect(b'[', "an array")?;
        let mut first = true;
        while self.json.next_element(&mut first)? {
            element(self)?;
        }
        Ok(())
    }

    /// The elements of a list, which in GraphSON 1.0 may have its class before it.
    pub(super) fn list_elements(&mut self, element: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        let start = self.json.offset();
        if self.java_classes {
            self.json.expect(b'[', "an array")?;
            if self.json.peek() == Some(b'"') {
                self.json.string("a class name")?;
                self.json.expect(b',', "a list after its class")?;
                self.elements(element)?;
                return self.json.expect(b']', "the end of a pair of class and list");
            }
            self.json.seek(start);
        }
        self.elements(element)
    }

    /// An object: a typed value if its first member says so, else a map.
    fn object(&mut self) -> Result<Value> {
        let start = self.json.offset();
        self.json.expect(b'{', "an object")?;
        if self.json.accept(b'}') {
            return Ok(Value::Map(Shared::default()));
        }
        let key = self.json.key()?;
        match &*key {
            "@type" | "@value" => {
                let typed = if key == "@type" { self.typed_object()? } else { self.type_behind_value()? };
                match typed {
                    Some(value) => Ok(value),
                    None => {
                        self.json.seek(start);
                        self.map().map(|entries| Value::Map(Shared::new(entries)))
                    }
                }
            }
            "@class" if self.java_classes => self.java_object(),
            _ => {
                let mut entries = ValueMap::default();
                let value = self.value()?;
                entries.insert(string(key), value);
                self.rest_of_map(entries).map(|entries| Value::Map(Shared::new(entries)))
            }
        }
    }

    /// What follows `{"@type":`; `None` if this is no typed value but a map that happens to have such a key.
    fn typed_object(&mut self) -> Result<Option<Value>> {
        if self.json.peek() != Some(b'"') {
            return Ok(None);
        }
        let type_name = self.json.string("the name of a type")?;
        if !self.json.accept(b',') || self.json.key()? != "@value" {
            return Ok(None);
        }
        let value = self.typed_value(&type_name)?;
        self.json.expect(b'}', "the end of a typed value")?;
        Ok(Some(value))
    }

    /// What follows `{"@value":` when the type comes last; `None` if this is no typed value after all.
    ///
    /// The value is passed over first, so values in this order cost their depth times their size; hence the bound.
    fn type_behind_value(&mut self) -> Result<Option<Value>> {
        let value_start = self.json.offset();
        self.json.skip_value()?;
        self.passed_over += self.json.offset() - value_start;
        if self.passed_over > self.json.length().saturating_mul(PASSES_MAX) {
            let limit = format!("{PASSES_MAX} levels on average");
            return self.json.fail(
                DecodeErrorKind::Limit,
                limit,
                "typed values with @value before @type nested deeper",
            );
        }
        if !self.json.accept(b',') || self.json.key()? != "@type" || self.json.peek() != Some(b'"') {
            return Ok(None);
        }
        let type_name = self.json.string("the name of a type")?;
        if !self.json.accept(b'}') {
            return Ok(None);
        }
        let end = self.json.offset();
        self.json.seek(value_start);
        let value = self.typed_value(&type_name)?;
        self.json.seek(end);
        Ok(Some(value))
    }

    /// A plain object as a map with string keys.
    pub(super) fn map(&mut self) -> Result<ValueMap> {
        let mut entries = ValueMap::default();
        self.members(|reader, key| {
            let value = reader.value()?;
            entries.insert(string(key), value);
            Ok(())
        })?;
        Ok(entries)
    }

    /// What follows a map's first member.
    fn rest_of_map(&mut self, mut entries: ValueMap) -> Result<ValueMap> {
        while let Some(key) = self.json.next_key(&mut false)? {
            let value = self.value()?;
            entries.insert(string(key), value);
        }
        Ok(entries)
    }

    /// An array: a list, or with Java classes a pair of class and value.
    fn array(&mut self) -> Result<Value> {
        if self.java_classes
            && let Some(value) = self.java_pair()?
        {
            return Ok(value);
        }
        self.values().map(|values| Value::List(Shared::new(values)))
    }

    /// An array as values.
    pub(super) fn values(&mut self) -> Result<Vec<Value>> {
        let mut values = Vec::new();
        self.elements(|reader| {
            values.push(reader.value()?);
            Ok(())
        })?;
        Ok(values)
    }

    /// `["java.lang.Long",1]`; `None`, with nothing consumed, if the array does not begin with a Java class.
    fn java_pair(&mut self) -> Result<Option<Value>> {
        let start = self.json.offset();
        self.json.expect(b'[', "an array")?;
        if self.json.peek() == Some(b'"') {
            let class = self.json.string("a class name")?;
            let is_class = class.starts_with("java.") || class.starts_with("org.apache.tinkerpop.");
            if is_class && self.json.accept(b',') {
                let value = self.java_value(&class)?;
                self.json.expect(b']', "the end of a pair of class and value")?;
                return Ok(Some(value));
            }
        }
        self.json.seek(start);
        Ok(None)
    }

    /// The second half of a pair, read by the GraphSON 2.0 type that is closest to the class.
    fn java_value(&mut self, class: &str) -> Result<Value> {
        let type_name = match class {
            "java.lang.Long" => "g:Int64",
            "java.lang.Short" => "gx:Int16",
            "java.lang.Byte" => "gx:Byte",
            "java.lang.Float" => "g:Float",
            "java.lang.Double" => "g:Double",
            "java.lang.Character" => "gx:Char",
            "java.math.BigInteger" => "gx:BigInteger",
            "java.math.BigDecimal" => "gx:BigDecimal",
            "java.util.UUID" => "g:UUID",
            "java.util.Date" => "g:Date",
            "java.sql.Timestamp" => "g:Timestamp",
            "java.nio.HeapByteBuffer" | "java.nio.ByteBuffer" => "gx:ByteBuffer",
            _ if class.starts_with("java.util.") && class.ends_with("Set") => "g:Set",
            _ if class.starts_with("java.util.") => "g:List",
            _ if class.ends_with(".BulkSet") => "g:List",
            _ if class.starts_with("org.apache.tinkerpop.") => match simple_name(class) {
                "T" => "g:T",
                "Direction" => "g:Direction",
                "Order" => "g:Order",
                "Scope" => "g:Scope",
                "Pop" => "g:Pop",
                "Column" => "g:Column",
                "Cardinality" => "g:Cardinality",
                "Merge" => "g:Merge",
                "Pick" => "g:Pick",
                "Operator" => "g:Operator",
                "DT" => "g:DT",
                "GType" => "g:GType",
                "Barrier" => "g:Barrier",
                _ => return self.unknown_class(class),
            },
            _ => return self.unknown_class(class),
        };
        self.typed_value(type_name)
    }

    /// What follows `{"@class":`.
    fn java_object(&mut self) -> Result<Value> {
        let class = self.json.string("a class name")?;
        let entries = self.rest_of_map(ValueMap::default())?;
        if let Some(time_class) = class.strip_prefix("java.time.") {
            let text = match entries.get(&Value::String("value".into())) {
                Some(Value::String(text)) => text.clone(),
                _ => return self.json.fail(DecodeErrorKind::MissingField, "the value of a java.time object", ""),
            };
            return self.time_of_text(time_class, &text);
        }
        if class.starts_with("java.util.") || class.ends_with(".TinkerGraph") {
            return Ok(Value::Map(Shared::new(entries)));
        }
        self.unknown_class(&class)
    }

    fn unknown_class(&self, class: &str) -> Result<Value> {
        let found = format!("Java class {class:?}");
        self.json.fail(DecodeErrorKind::UnknownType, "a class of GraphSON 1.0", found)
    }
}

pub(super) fn string(text: Cow<'_, str>) -> Value {
    Value::String(Arc::from(text))
}

/// A number without a type, as Jackson would read it: the smallest of int, long and big integer, or a double.
fn plain_number(text: &str) -> Value {
    if text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
        return Value::Double(parse_double(text).unwrap_or(f64::NAN));
    }
    match text.parse::<i64>() {
        Ok(long) => i32::try_from(long).map_or(Value::Long(long), Value::Int),
        Err(_) => Value::BigInteger(Arc::new(BigInt::from_str(text).unwrap_or_default())),
    }
}
