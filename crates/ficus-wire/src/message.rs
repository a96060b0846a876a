//! Requests and responses, the same for every format and transport.

use std::fmt;
use std::sync::Arc;

use ficus_model::{Shared, Value, ValueMap};
use indexmap::IndexMap;
use uuid::Uuid;

use crate::EncodeError;

/// The id a client gave its request; the answer carries it as it came.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RequestId {
    /// A UUID, as all official drivers send.
    Uuid(Uuid),
    /// Any other text, which JSON clients may send.
    Text(Arc<str>),
}

impl RequestId {
    /// A UUID when `text` is one in the form that UUIDs are printed in, else the text itself.
    pub fn from_text(text: &str) -> RequestId {
        match Uuid::try_parse(text) {
            Ok(uuid) if uuid.hyphenated().encode_lower(&mut Uuid::encode_buffer()) == text => RequestId::Uuid(uuid),
            _ => RequestId::Text(text.into()),
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestId::Uuid(uuid) => uuid.fmt(f),
            RequestId::Text(text) => f.write_str(text),
        }
    }
}

/// What a client asks: an operation of a processor with named arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Chosen by the client.
    pub id: RequestId,
    /// `eval`, `bytecode`, `close`, `authentication`, …
    pub op: Arc<str>,
    /// `""`, `session`, `traversal`.
    pub processor: Arc<str>,
    /// Arguments by name. `gremlin` is a [`Value::String`] or a [`Value::Bytecode`]; `aliases` and `bindings` are
    /// [`Value::Map`]s.
    pub args: IndexMap<Arc<str>, Value>,
}

impl Request {
    /// The argument `name`, if given and not null.
    pub fn arg(&self, name: &str) -> Option<&Value> {
        self.args.get(name).filter(|value| !matches!(value, Value::Null))
    }
}

/// What a server answers: one of possibly several parts of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// The request's id; `None` when the request was unreadable.
    pub request_id: Option<RequestId>,
    /// Status code: 200 done, 206 more follows, 204 nothing, 4xx and 5xx refusals.
    pub status: u16,
    /// Text for the user, empty when all is well.
    pub message: String,
    /// Attributes of the status.
    pub attributes: ValueMap,
    /// The result.
    pub data: Data,
    /// Attributes of the result.
    pub meta: ValueMap,
}

impl Response {
    /// A response with this id, status and data, an empty message and no attributes.
    pub fn new(request_id: Option<RequestId>, status: u16, data: Data) -> Response {
        let (attributes, meta) = (ValueMap::default(), ValueMap::default());
        Response { request_id, status, message: String::new(), attributes, data, meta }
    }
}

/// The results a response carries.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Data {
    /// No result at all (`null`), as in 204 and errors.
    #[default]
    None,
    /// Plain values, as for `eval`.
    Values(Vec<Value>),
    /// Traversers, each a value with its bulk, as for `bytecode`.
    Traversers(Vec<(Value, u64)>),
    /// Plain values with multiplicities. Written out one by one: GraphBinary knows a bulked list (value flag 2, which we
    /// read), but no official driver of 3.8 does.
    Bulked(Vec<(Value, u64)>),
}

impl Data {
    /// Values, or values with their bulks.
    pub fn rows(&self) -> usize {
        match self {
            Data::None => 0,
            Data::Values(values) => values.len(),
            Data::Traversers(rows) | Data::Bulked(rows) => rows.len(),
        }
    }

    /// Whether its values and those that they hold are more than so many.
    pub fn holds_more_than(&self, count: u64) -> bool {
        fn is_more<'v>(mut values: impl Iterator<Item = &'v Value>, count: u64) -> bool {
            values.try_fold(count, |left, value| left.checked_sub(value.extent().count)).is_none()
        }
        match self {
            Data::None => false,
            Data::Values(values) => is_more(values.iter(), count),
            Data::Traversers(rows) | Data::Bulked(rows) => is_more(rows.iter().map(|(value, _)| value), count),
        }
    }
}

/// The data that a decoded result stands for: a list is its members, traversers when all members are.
pub(crate) fn data_of_value(value: Value) -> Data {
    let values = match value {
        Value::Null => return Data::None,
        Value::List(values) => Shared::unwrap_or_clone(values),
        single => return Data::Values(vec![single]),
    };
    let is_traverser = |value: &Value| matches!(value, Value::Entry(entry) if matches!(entry.1, Value::Long(_)));
    if values.is_empty() || !values.iter().all(is_traverser) {
        return Data::Values(values);
    }
    let traverser = |value| match value {
        Value::Entry(entry) => match Shared::unwrap_or_clone(entry) {
            (value, Value::Long(bulk)) => (value, bulk.unsigned_abs()),
            (value, _) => (value, 1),
        },
        value => (value, 1),
    };
    Data::Traversers(values.into_iter().map(traverser).collect())
}

/// Members of a bulked list when written out.
pub(crate) fn expanded_length(values: &[(Value, u64)]) -> Result<usize, EncodeError> {
    let total = values.iter().fold(0_u64, |sum, (_, bulk)| sum.saturating_add(*bulk));
    let length = usize::try_from(total).unwrap_or(usize::MAX);
    if i32::try_from(length).is_err() { Err(EncodeError::TooLong { length }) } else { Ok(length) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_shown_as_they_came() {
        for text in ["41d2e28a-20a4-4ab0-b379-d810dede3786", "41D2E28A-20A4-4AB0-B379-D810DEDE3786", "1", "", "{x}"] {
            assert_eq!(RequestId::from_text(text).to_string(), text);
        }
        assert!(matches!(RequestId::from_text("41d2e28a-20a4-4ab0-b379-d810dede3786"), RequestId::Uuid(_)));
    }
}
