//! Conversions into values, so that building them reads well.

use std::sync::Arc;

use bigdecimal::BigDecimal;
use num_bigint::BigInt;
use uuid::Uuid;

use crate::{Duration, EdgeId, Element, OffsetDateTime, P, Shared, Value, ValueMap, ValueSet, VertexId};

macro_rules! from {
    ($($type:ty => |$value:ident| $built:expr),+ $(,)?) => {
        $(impl From<$type> for Value {
            fn from($value: $type) -> Value { $built }
        })+
    };
}

from!(
    bool => |value| Value::Bool(value),
    i8 => |value| Value::Byte(value),
    i16 => |value| Value::Short(value),
    i32 => |value| Value::Int(value),
    i64 => |value| Value::Long(value),
    f32 => |value| Value::Float(value),
    f64 => |value| Value::Double(value),
    char => |value| Value::Char(value),
    BigInt => |value| Value::BigInteger(Arc::new(value)),
    BigDecimal => |value| Value::BigDecimal(Arc::new(value)),
    &str => |value| Value::String(value.into()),
    String => |value| Value::String(value.into()),
    Arc<str> => |value| Value::String(value),
    Uuid => |value| Value::Uuid(value),
    OffsetDateTime => |value| Value::DateTime(value),
    Duration => |value| Value::Duration(value),
    Vec<Value> => |value| Value::List(Shared::new(value)),
    ValueSet => |value| Value::Set(Shared::new(value)),
    ValueMap => |value| Value::Map(Shared::new(value)),
    VertexId => |value| Value::Vertex(value),
    EdgeId => |value| Value::Edge(value),
    Element => |value| Value::Element(Arc::new(value)),
    P => |value| Value::P(Arc::new(value)),
);

impl<T: Into<Value>> From<Option<T>> for Value {
    /// `None` is null.
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

impl FromIterator<Value> for Value {
    /// Collects into a list.
    fn from_iter<I: IntoIterator<Item = Value>>(values: I) -> Value {
        Value::List(Shared::new(values.into_iter().collect()))
    }
}
