//! The pure functions behind Gremlin's scalar steps: values in, a value or a message out.
//!
//! Nothing here knows traversers, plans or the store. Where a function needs the user's id of a stored element, to print
//! it, it takes an [`ElementResolver`](ficus_model::ElementResolver). The messages are those Gremlin users know from
//! TinkerPop, since clients look for them.

use std::fmt;

use ficus_model::{ModelError, Value};

pub mod casts;
pub mod collections;
pub mod format;
pub mod local;
pub mod math;
pub mod members;
pub mod strings;

pub use math::Expression;

/// Bytes a function's text may have: beyond what any message may carry, so that no `replace()` exhausts the memory.
pub const TEXT_BYTES_MAX: usize = 16 << 20;

/// Why a function gave no value; always the caller's doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionError {
    message: String,
}

impl FunctionError {
    /// An error with a message for the user.
    pub fn new(message: impl Into<String>) -> FunctionError {
        FunctionError { message: message.into() }
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for FunctionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for FunctionError {}

impl From<ModelError> for FunctionError {
    fn from(error: ModelError) -> Self {
        FunctionError::new(error.to_string())
    }
}

impl From<FunctionError> for crate::QueryError {
    fn from(error: FunctionError) -> Self {
        crate::QueryError::invalid(error.message)
    }
}

/// What a function gives.
pub type FunctionResult<T = Value> = Result<T, FunctionError>;

/// Refuses text that would be too long to handle, before it is built.
fn check_text_length(bytes: usize) -> FunctionResult<()> {
    if bytes > TEXT_BYTES_MAX {
        return Err(FunctionError::new(format!("the resulting text would exceed {} MiB", TEXT_BYTES_MAX >> 20)));
    }
    Ok(())
}

#[cfg(test)]
mod stopping_tests;

/// Values for tests, in few letters.
#[cfg(test)]
mod test_values {
    use ficus_model::{Shared, Value};

    pub fn int(value: i32) -> Value {
        Value::Int(value)
    }

    pub fn text(value: &str) -> Value {
        Value::from(value)
    }

    pub fn list<T: Into<Value> + Clone>(members: &[T]) -> Value {
        members.iter().cloned().map(Into::into).collect()
    }

    pub fn set<T: Into<Value> + Clone>(members: &[T]) -> Value {
        Value::Set(Shared::new(members.iter().cloned().map(Into::into).collect()))
    }

    pub fn map<K: Into<Value> + Clone, V: Into<Value> + Clone>(entries: &[(K, V)]) -> Value {
        Value::Map(Shared::new(entries.iter().cloned().map(|(key, value)| (key.into(), value.into())).collect()))
    }

    pub fn bulk_set(counts: &[(i32, u64)]) -> Value {
        let counts = counts.iter().map(|(member, count)| (int(*member), *count)).collect();
        Value::BulkSet(Shared::new(ficus_model::BulkSet { counts }))
    }
}
