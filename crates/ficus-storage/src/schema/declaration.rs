//! Declared types: what a user says about the vertices or edges of one label.

use std::fmt;
use std::sync::Arc;

use bigdecimal::BigDecimal;
use ficus_model::{Cardinality, Value, decimal};
use num_traits::ToPrimitive;

use crate::index::{ElementKind, INDEX_KEYS_LIMIT};
use crate::value_key::{check_property_value, is_expandable};
use crate::words::WORD_BYTES_LIMIT;
use crate::{IndexDefinition, IndexKind, StoreError};

/// Attributes one type may declare.
pub const ATTRIBUTES_LIMIT: usize = 1024;

/// Whether a type takes properties it does not declare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TypeMode {
    /// Any property with any value; what is declared holds.
    #[default]
    Open,
    /// Declared attributes only.
    Strict,
}

impl TypeMode {
    /// `open` or `strict`.
    pub const fn name(self) -> &'static str {
        match self {
            TypeMode::Open => "open",
            TypeMode::Strict => "strict",
        }
    }
}

macro_rules! value_types {
    ($($(#[$meta:meta])* $name:ident = $text:literal, $pattern:pat,)+) => {
        /// The type of an attribute's values.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ValueType {
            $($(#[$meta])* $name,)+
        }

        impl ValueType {
            /// All types. The position of a type is its number in stored bytes, so new ones come last.
            pub const ALL: &[ValueType] = &[$(ValueType::$name),+];

            /// The name in declarations and messages.
            pub const fn name(self) -> &'static str {
                match self { $(ValueType::$name => $text),+ }
            }

            /// True if the value has exactly this type.
            pub fn holds(self, value: &Value) -> bool {
                match self { $(ValueType::$name => matches!(value, $pattern)),+ }
            }
        }
    };
}

value_types! {
    /// Any value.
    Any = "any", _,
    /// True or false.
    Boolean = "boolean", Value::Bool(_),
    /// Signed 8 bit.
    Byte = "byte", Value::Byte(_),
    /// Signed 16 bit.
    Short = "short", Value::Short(_),
    /// Signed 32 bit.
    Int = "int", Value::Int(_),
    /// Signed 64 bit.
    Long = "long", Value::Long(_),
    /// Unbounded integer.
    BigInteger = "biginteger", Value::BigInteger(_),
    /// Single precision.
    Float = "float", Value::Float(_),
    /// Double precision.
    Double = "double", Value::Double(_),
    /// Unbounded decimal.
    BigDecimal = "bigdecimal", Value::BigDecimal(_),
    /// One character.
    Char = "char", Value::Char(_),
    /// Text.
    String = "string", Value::String(_),
    /// UUID.
    Uuid = "uuid", Value::Uuid(_),
    /// A point in time.
    DateTime = "datetime", Value::DateTime(_),
    /// A length of time.
    Duration = "duration", Value::Duration(_),
    /// Bytes.
    Binary = "binary", Value::Binary(_),
    /// An ordered collection.
    List = "list", Value::List(_),
    /// A collection of different values.
    Set = "set", Value::Set(_),
    /// Keys and values.
    Map = "map", Value::Map(_),
}

impl ValueType {
    /// The type of this name, in any case.
    pub fn from_name(name: &str) -> Option<ValueType> {
        ValueType::ALL.iter().copied().find(|own| own.name().eq_ignore_ascii_case(name))
    }

    /// The value in this type: itself, or a number of another type that is exactly one of this (`7` or `7.0` as a `long`, `0.5` as a `float`). `None` if
    /// it does not fit.
    pub fn take(self, value: Value) -> Option<Value> {
        if self.holds(&value) {
            return Some(value);
        }
        let integer = match &value {
            Value::Byte(value) => Some(i64::from(*value)),
            Value::Short(value) => Some(i64::from(*value)),
            Value::Int(value) => Some(i64::from(*value)),
            Value::Long(value) => Some(*value),
            Value::BigInteger(value) => value.to_i64(),
            Value::Float(value) => whole(f64::from(*value)),
            Value::Double(value) => whole(*value),
            Value::BigDecimal(value) if is_expandable(value) && value.is_integer() => value.to_i64(),
            _ => None,
        };
        // Up to here every integer is a float, or a double.
        let fits = |bits: u32| integer.filter(|value| value.unsigned_abs() <= 1 << bits);
        match (self, &value, integer) {
            (ValueType::Byte, _, Some(integer)) => i8::try_from(integer).ok().map(Value::Byte),
            (ValueType::Short, _, Some(integer)) => i16::try_from(integer).ok().map(Value::Short),
            (ValueType::Int, _, Some(integer)) => i32::try_from(integer).ok().map(Value::Int),
            (ValueType::Long, _, Some(integer)) => Some(Value::Long(integer)),
            (ValueType::BigInteger, _, Some(integer)) => Some(Value::BigInteger(Arc::new(integer.into()))),
            (ValueType::BigDecimal, _, Some(integer)) => Some(Value::BigDecimal(Arc::new(BigDecimal::from(integer)))),
            (ValueType::Float, _, Some(_)) => fits(24).map(|integer| Value::Float(integer as f32)),
            (ValueType::Double, _, Some(_)) => fits(53).map(|integer| Value::Double(integer as f64)),
            (ValueType::Double, Value::Float(value), _) => Some(Value::Double(f64::from(*value))),
            (ValueType::Float, Value::Double(value), _) => {
                let float = *value as f32;
                (f64::from(float) == *value || value.is_nan()).then_some(Value::Float(float))
            }
            (ValueType::Double, Value::BigDecimal(value), _) if is_expandable(value) => {
                let double = decimal::to_double(value);
                decimal::from_double(double).is_some_and(|own| own == **value).then_some(Value::Double(double))
            }
            (ValueType::Float, Value::BigDecimal(value), _) if is_expandable(value) => {
                let float = decimal::to_float(value);
                decimal::from_float(float).is_some_and(|own| own == **value).then_some(Value::Float(float))
            }
            _ => None,
        }
    }
}

/// The integer that a number is exactly, if it is one that a `long` holds. The zero below zero is none.
fn whole(number: f64) -> Option<i64> {
    let end = 2f64.powi(63);
    let is_whole =
        number.fract() == 0.0 && (-end..end).contains(&number) && !(number == 0.0 && number.is_sign_negative());
    is_whole.then_some(number as i64)
}

/// What a type says about the values under one key.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// The key.
    pub key: Arc<str>,
    /// The type of the values.
    pub value_type: ValueType,
    /// True if an element may be without it.
    pub nullable: bool,
    /// What a new element gets that is made without it.
    pub default: Option<Value>,
    /// How many values a vertex may have under the key; edges have one.
    pub cardinality: Cardinality,
}

impl Attribute {
    /// A nullable attribute with one value and without default.
    pub fn new(key: &str, value_type: ValueType) -> Attribute {
        let cardinality = Cardinality::Single;
        Attribute { key: Arc::from(key), value_type, nullable: true, default: None, cardinality }
    }
}

/// How many edges of a type there may be, at one vertex or between two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Multiplicity {
    /// Any number.
    #[default]
    Multi,
    /// At most one from one vertex to another.
    Simple,
    /// At most one into a vertex.
    OneToMany,
    /// At most one out of a vertex.
    ManyToOne,
    /// At most one into and at most one out of a vertex.
    OneToOne,
}

impl Multiplicity {
    /// All of them, by their number in stored bytes.
    pub const ALL: [Multiplicity; 5] = [
        Multiplicity::Multi,
        Multiplicity::Simple,
        Multiplicity::OneToMany,
        Multiplicity::ManyToOne,
        Multiplicity::OneToOne,
    ];

    /// The name in declarations and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Multiplicity::Multi => "multi",
            Multiplicity::Simple => "simple",
            Multiplicity::OneToMany => "one-to-many",
            Multiplicity::ManyToOne => "many-to-one",
            Multiplicity::OneToOne => "one-to-one",
        }
    }

    /// The multiplicity of this name, in any case.
    pub fn from_name(name: &str) -> Option<Multiplicity> {
        Multiplicity::ALL.into_iter().find(|own| own.name().eq_ignore_ascii_case(name))
    }

    /// True if a vertex has at most one such edge going out.
    pub(crate) fn limits_out(self) -> bool {
        matches!(self, Multiplicity::ManyToOne | Multiplicity::OneToOne)
    }

    /// True if a vertex has at most one such edge coming in.
    pub(crate) fn limits_in(self) -> bool {
        matches!(self, Multiplicity::OneToMany | Multiplicity::OneToOne)
    }
}

/// A key by whose values the half-edges of a type are ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortKey {
    /// The key.
    pub key: Arc<str>,
    /// Largest first.
    pub descending: bool,
}

/// What is declared about the vertices or edges of one label.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeDefinition {
    /// A vertex type or an edge type.
    pub elements: ElementKind,
    /// The label.
    pub label: Arc<str>,
    /// Whether undeclared properties are taken.
    pub mode: TypeMode,
    /// What is declared about properties.
    pub attributes: Vec<Attribute>,
    /// Keys whose values together are unique and never missing; of vertex types only.
    pub primary_key: Vec<Arc<str>>,
    /// How many edges there may be; of edge types only.
    pub multiplicity: Multiplicity,
    /// How half-edges are ordered, most significant first; of edge types only.
    pub sort_keys: Vec<SortKey>,
}

impl TypeDefinition {
    /// True if there can be elements that the type refuses.
    pub(crate) fn restricts(&self) -> bool {
        let has_demands = !self.attributes.is_empty() || !self.primary_key.is_empty();
        self.mode == TypeMode::Strict || has_demands || self.multiplicity != Multiplicity::Multi
    }

    /// An open type about which nothing else is declared.
    pub fn new(elements: ElementKind, label: &str) -> TypeDefinition {
        TypeDefinition {
            elements,
            label: Arc::from(label),
            mode: TypeMode::Open,
            attributes: Vec::new(),
            primary_key: Vec::new(),
            multiplicity: Multiplicity::Multi,
            sort_keys: Vec::new(),
        }
    }

    /// The declaration of the attribute under a key.
    pub fn attribute(&self, key: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|attribute| &*attribute.key == key)
    }

    /// The index behind the primary key.
    pub(crate) fn primary_index(&self) -> Option<IndexDefinition> {
        let keys: Vec<&str> = self.primary_key.iter().map(|key| &**key).collect();
        (!keys.is_empty()).then(|| {
            let index = IndexDefinition::new(self.elements, Some(&self.label), &keys, IndexKind::Ordered);
            index.unique().named(&format!("primary.{}", self.label))
        })
    }

    /// Refuses what can be no type.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let refuse = |reason: String| Err(StoreError::InvalidSchema { what: self.to_string(), reason });
        let bad_word = |word: &str| word.is_empty() || word.len() > WORD_BYTES_LIMIT;
        if bad_word(&self.label) {
            return refuse(format!("a label has 1 to {WORD_BYTES_LIMIT} bytes"));
        }
        if self.attributes.len() > ATTRIBUTES_LIMIT {
            return refuse(format!("a type has at most {ATTRIBUTES_LIMIT} attributes, not {}", self.attributes.len()));
        }
        for (position, attribute) in self.attributes.iter().enumerate() {
            let Attribute { key, value_type, default, cardinality, .. } = attribute;
            if bad_word(key) {
                return refuse(format!("a key has 1 to {WORD_BYTES_LIMIT} bytes"));
            }
            if self.attributes[..position].iter().any(|other| other.key == *key) {
                return refuse(format!("the attribute '{key}' is declared twice"));
            }
            if self.elements == ElementKind::Edge && *cardinality != Cardinality::Single {
                return refuse(format!("the attribute '{key}' of an edge has one value, not a {}", cardinality.name()));
            }
            if let Some(default) = default {
                check_property_value(key, default)?;
                if !value_type.holds(default) {
                    let (expected, given) = (value_type.name(), default.type_name());
                    return refuse(format!("the default of '{key}' is a {given}, but its type is {expected}"));
                }
            }
        }
        let is_vertex = self.elements == ElementKind::Vertex;
        if !is_vertex && !self.primary_key.is_empty() {
            return refuse("edges have no primary key; make a unique index instead".to_string());
        }
        if is_vertex && (self.multiplicity != Multiplicity::Multi || !self.sort_keys.is_empty()) {
            return refuse("multiplicity and sort keys are for edge types".to_string());
        }
        let named = self.primary_key.iter().chain(self.sort_keys.iter().map(|sort| &sort.key));
        for key in named {
            if bad_word(key) {
                return refuse(format!("a key has 1 to {WORD_BYTES_LIMIT} bytes"));
            }
            let declared = self.attribute(key);
            if declared.is_none() && self.mode == TypeMode::Strict {
                return refuse(format!("'{key}' is a key of the type but no attribute of it"));
            }
            if declared.is_some_and(|attribute| attribute.cardinality != Cardinality::Single) {
                return refuse(format!("'{key}' is a key of the type and so has one value"));
            }
        }
        if self.primary_key.len() > INDEX_KEYS_LIMIT || self.sort_keys.len() > INDEX_KEYS_LIMIT {
            return refuse(format!("a type has at most {INDEX_KEYS_LIMIT} keys of one kind"));
        }
        let repeated = |keys: &[&str]| keys.iter().enumerate().any(|(at, key)| keys[..at].contains(key));
        let primary: Vec<&str> = self.primary_key.iter().map(|key| &**key).collect();
        let sorting: Vec<&str> = self.sort_keys.iter().map(|sort| &*sort.key).collect();
        if repeated(&primary) || repeated(&sorting) {
            return refuse("a key of the type is there twice".to_string());
        }
        Ok(())
    }
}

impl fmt::Display for TypeDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} type '{}'", self.elements.name(), self.label)
    }
}

/// Whether a declared type holds for all elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeState {
    /// Writes obey it; elements that were there before are being looked at.
    Verifying,
    /// All elements obey it.
    Active,
    /// Its elements are being removed, and no new ones are taken.
    Dropping,
}

impl TypeState {
    /// `verifying`, `active` or `dropping`.
    pub const fn name(self) -> &'static str {
        match self {
            TypeState::Verifying => "verifying",
            TypeState::Active => "active",
            TypeState::Dropping => "dropping",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_change_their_type_only_without_loss() {
        let decimal = |text: &str| Value::BigDecimal(Arc::new(text.parse().unwrap()));
        let cases = [
            (ValueType::Long, Value::Int(7), Some(Value::Long(7))),
            (ValueType::Int, Value::Long(7), Some(Value::Int(7))),
            (ValueType::Int, Value::Long(1 << 40), None),
            (ValueType::Double, Value::Int(7), Some(Value::Double(7.0))),
            (ValueType::Double, Value::Long((1 << 53) + 1), None),
            (ValueType::Double, Value::Float(0.5), Some(Value::Double(0.5))),
            (ValueType::Float, Value::Double(0.5), Some(Value::Float(0.5))),
            (ValueType::Float, Value::Double(0.1), None),
            (ValueType::Long, Value::Double(7.0), Some(Value::Long(7))),
            (ValueType::Byte, Value::Float(-128.0), Some(Value::Byte(-128))),
            (ValueType::Byte, Value::Float(128.0), None),
            (ValueType::Long, Value::Double(7.5), None),
            (ValueType::Long, Value::Double(-0.0), None),
            (ValueType::Long, Value::Double(2f64.powi(63)), None),
            (ValueType::Long, Value::Double(f64::NAN), None),
            (ValueType::Int, decimal("7.00"), Some(Value::Int(7))),
            (ValueType::Int, decimal("7.01"), None),
            (ValueType::Double, decimal("0.5"), Some(Value::Double(0.5))),
            (ValueType::Double, decimal("0.12345678901234567890123"), None),
            (ValueType::Long, decimal("1e1000000"), None),
            (ValueType::Double, decimal("1e1000000"), None),
            (ValueType::String, Value::Int(7), None),
            (ValueType::Any, Value::Int(7), Some(Value::Int(7))),
        ];
        for (value_type, value, expected) in cases {
            assert_eq!(value_type.take(value.clone()), expected, "{} {value:?}", value_type.name());
        }
        for value_type in ValueType::ALL {
            assert_eq!(ValueType::from_name(&value_type.name().to_uppercase()), Some(*value_type));
        }
    }

    #[test]
    fn declarations_that_make_no_sense_are_refused() {
        let check = |change: &dyn Fn(&mut TypeDefinition), elements, expected: &str| {
            let mut definition = TypeDefinition::new(elements, "t");
            change(&mut definition);
            let error = definition.check().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        let (vertex, edge) = (ElementKind::Vertex, ElementKind::Edge);
        check(&|own| own.label = "".into(), vertex, "a label has 1 to");
        check(&|own| own.attributes = vec![Attribute::new("a", ValueType::Int); 2], vertex, "declared twice");
        check(&|own| own.primary_key = vec!["a".into()], edge, "edges have no primary key");
        check(&|own| own.multiplicity = Multiplicity::Simple, vertex, "are for edge types");
        check(&|own| (own.mode, own.primary_key) = (TypeMode::Strict, vec!["a".into()]), vertex, "no attribute of it");
        let wrong = Attribute { default: Some(Value::Int(1)), ..Attribute::new("a", ValueType::String) };
        check(&|own| own.attributes = vec![wrong.clone()], vertex, "the default of 'a' is a");
        let several = Attribute { cardinality: Cardinality::List, ..Attribute::new("a", ValueType::Int) };
        check(&|own| own.attributes = vec![several.clone()], edge, "has one value");
        assert!(TypeDefinition::new(edge, "t").check().is_ok());
    }
}
