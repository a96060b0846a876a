//! What can be wrong with values: arithmetic that does not fit, text that does not parse, types that do not meet.
//!
//! These are errors of the caller in the sense of the whole system: nothing here means that FicusDB is broken. The texts
//! that clients of Gremlin are used to (`long overflow`, `Can't convert number of type …`) are kept.

use std::fmt;
use std::sync::Arc;

use crate::{GType, TextComparison};

/// Why an operation on values failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelError {
    /// The result does not fit the widest type it may take.
    Overflow {
        /// The type that was too narrow, e.g. `long`.
        type_name: &'static str,
    },
    /// An integer or decimal was divided by zero.
    DivisionByZero,
    /// An unbounded number met NaN or an infinity, which it cannot hold.
    NotFinite,
    /// An unbounded number would grow past [`crate::decimal::DIGITS_MAX`].
    TooManyDigits,
    /// A collection with counts would be spelled out into too many members.
    TooManyMembers,
    /// A number does not fit the type asked for.
    Conversion {
        /// The type it has.
        from: &'static str,
        /// The type asked for.
        to: &'static str,
        /// Whether it lies below the range instead of above it.
        underflow: bool,
    },
    /// NaN or an infinity was to become a whole number.
    ConversionOfNonFinite {
        /// `NaN` or `floating point infinity`.
        what: &'static str,
        /// The type asked for.
        to: &'static str,
    },
    /// The type asked for is no single number type.
    NotANumberType(GType),
    /// A text is no number.
    NotANumber(Arc<str>),
    /// An operation got a value of a type it does not work on.
    WrongType {
        /// The operation.
        operation: &'static str,
        /// What it works on.
        expected: &'static str,
        /// The type of what it got.
        found: &'static str,
    },
    /// A text predicate was tested on something other than a string.
    TextOnOther {
        /// The predicate.
        comparison: TextComparison,
        /// The type of the tested value.
        found: &'static str,
    },
    /// A regular expression that cannot be compiled.
    Regex {
        /// The expression.
        pattern: Arc<str>,
        /// What is wrong with it.
        reason: Arc<str>,
    },
    /// Text that is no date or duration.
    Temporal {
        /// The text.
        text: Arc<str>,
        /// What it was read as.
        expected: &'static str,
    },
    /// A point in time outside the years ±999,999,999, or a duration outside ±2⁶³ seconds.
    TemporalRange,
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModelError::Overflow { type_name } => write!(f, "{type_name} overflow"),
            ModelError::DivisionByZero => f.write_str("/ by zero"),
            ModelError::NotFinite => {
                f.write_str("NaN and infinities cannot be combined with a BigInteger or BigDecimal, which are finite")
            }
            ModelError::TooManyDigits => {
                write!(f, "a BigInteger or BigDecimal would need more than {} digits", crate::decimal::DIGITS_MAX)
            }
            ModelError::TooManyMembers => {
                write!(f, "a list of more than {} repeated members is not built", crate::operator::MEMBERS_MAX)
            }
            ModelError::Conversion { from, to, underflow } => {
                let how = if *underflow { "underflow" } else { "overflow" };
                write!(f, "Can't convert number of type {from} to {to} due to {how}.")
            }
            ModelError::ConversionOfNonFinite { what, to } => write!(f, "Can't convert {what} to {to}."),
            ModelError::NotANumberType(token) => {
                write!(
                    f,
                    "Unsupported numeric type: {token}; use one of BYTE, SHORT, INT, LONG, BIGINT, FLOAT, DOUBLE, BIGDECIMAL"
                )
            }
            ModelError::NotANumber(text) => write!(f, "Can't parse string '{text}' as number."),
            ModelError::WrongType { operation, expected, found } => {
                write!(f, "{operation} works on {expected}, but got {found}")
            }
            ModelError::TextOnOther { comparison, found } => {
                write!(f, "{} works on strings, but got {found}: it cannot be cast to String", comparison.name())
            }
            ModelError::Regex { pattern, reason } => {
                write!(f, "the regular expression '{pattern}' is not usable: {reason}")
            }
            ModelError::Temporal { text, expected } => write!(f, "Text '{text}' could not be parsed as {expected}"),
            ModelError::TemporalRange => f.write_str("the date or duration is out of range"),
        }
    }
}

impl std::error::Error for ModelError {}
