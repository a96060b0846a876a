//! Predicates: `P` and `TextP`, kept as data so that they can be pushed into scans and sent over the wire.

use std::sync::Arc;

use crate::{GType, Shared, Value};

/// How one value is held against another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// Equal.
    Eq,
    /// Not equal.
    Neq,
    /// Less.
    Lt,
    /// Less or equal.
    Lte,
    /// Greater.
    Gt,
    /// Greater or equal.
    Gte,
}

/// How a string is held against a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextComparison {
    /// Begins with.
    StartingWith,
    /// Does not begin with.
    NotStartingWith,
    /// Ends with.
    EndingWith,
    /// Does not end with.
    NotEndingWith,
    /// Contains.
    Containing,
    /// Does not contain.
    NotContaining,
    /// Matches the regular expression somewhere.
    Regex,
    /// Matches the regular expression nowhere.
    NotRegex,
}

/// A predicate over one value. `between`, `inside` and `outside` arrive as the `and`/`or` they stand for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum P {
    /// Holds the value against a literal.
    Compare(Comparison, Value),
    /// Holds a string against a pattern; anything else is an error.
    Text(TextComparison, Arc<str>),
    /// Is one of these.
    Within(Shared<Vec<Value>>),
    /// Is none of these.
    Without(Shared<Vec<Value>>),
    /// Has this type.
    TypeOf(GType),
    /// All hold.
    And(Vec<P>),
    /// At least one holds.
    Or(Vec<P>),
    /// Does not hold.
    Not(Box<P>),
}

impl P {
    /// Equality with `value`, the predicate a bare literal stands for.
    pub fn eq(value: Value) -> P {
        P::Compare(Comparison::Eq, value)
    }
}
