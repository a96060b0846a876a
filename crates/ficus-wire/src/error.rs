//! What can go wrong between bytes and values.

use std::borrow::Cow;
use std::fmt;

use crate::{Format, RequestId};

/// Levels of nesting that an encoder follows; bounds its stack. Twice what a decoder accepts by default.
pub(crate) const NESTING_MAX: usize = ficus_model::NESTING_MAX;

/// Why bytes could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The mime type names no format we speak.
    UnknownMime,
    /// The bytes are not what the format prescribes.
    Malformed,
    /// A field the message needs is absent.
    MissingField,
    /// A type code or type name that the format does not define.
    UnknownType,
    /// Defined by the format, but not accepted here: lambdas, custom types.
    Unsupported,
    /// Larger or deeper than [`crate::Limits`] allow.
    Limit,
}

/// Bytes that could not be read: where, what was expected there, what was found instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// The family of the error.
    pub kind: DecodeErrorKind,
    /// Byte offset into the message body (without the mime prefix of a frame).
    pub offset: usize,
    /// What the format prescribes at this place.
    pub expected: Cow<'static, str>,
    /// What was there.
    pub found: Cow<'static, str>,
    /// The request's id, when it could be read; an answer should carry it.
    pub request_id: Option<RequestId>,
    /// The format to answer in, when it is known.
    pub format: Option<Format>,
}

impl DecodeError {
    pub(crate) fn new(
        kind: DecodeErrorKind,
        offset: usize,
        expected: impl Into<Cow<'static, str>>,
        found: impl Into<Cow<'static, str>>,
    ) -> Box<DecodeError> {
        let (expected, found) = (expected.into(), found.into());
        Box::new(DecodeError { kind, offset, expected, found, request_id: None, format: None })
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DecodeError { kind, offset, expected, found, .. } = self;
        match kind {
            DecodeErrorKind::UnknownMime => write!(f, "unknown mime type {found}: expected {expected}"),
            DecodeErrorKind::MissingField => write!(f, "incomplete message at byte {offset}: {expected} is missing"),
            DecodeErrorKind::Unsupported => write!(f, "unsupported at byte {offset}: {found}; {expected}"),
            DecodeErrorKind::Limit => write!(f, "message too large at byte {offset}: {found}, at most {expected}"),
            DecodeErrorKind::Malformed | DecodeErrorKind::UnknownType => {
                write!(f, "malformed message at byte {offset}: expected {expected}, found {found}")
            }
        }
    }
}

impl std::error::Error for DecodeError {}

/// A value that the format cannot express.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// A vertex, edge or property of the graph that was not detached before encoding. Our bug, never the client's.
    NotDetached {
        /// Which kind of element.
        kind: &'static str,
    },
    /// The format has no form for this value, for instance a `Tree` key in GraphSON 1.0.
    NotExpressible {
        /// What it was.
        what: Cow<'static, str>,
        /// The format asked for.
        format: Format,
    },
    /// A collection or text with more members than the format's 32-bit length can say.
    TooLong {
        /// Number of members or bytes.
        length: usize,
    },
    /// More bytes than the message may have.
    TooLarge {
        /// The bound.
        limit: usize,
    },
    /// Values nested deeper than an encoder follows.
    TooDeep {
        /// The bound on nesting.
        limit: usize,
    },
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EncodeError::NotDetached { kind } => {
                write!(f, "a stored {kind} reached the encoder without being detached")
            }
            EncodeError::NotExpressible { what, format } => write!(f, "{what} cannot be written as {}", format.mime()),
            EncodeError::TooLong { length } => write!(f, "{length} members are more than a 32-bit length can say"),
            EncodeError::TooLarge { limit } => write!(f, "it has more than the {limit} bytes that a message may have"),
            EncodeError::TooDeep { limit } => write!(f, "values nested deeper than {limit} levels cannot be written"),
        }
    }
}

impl std::error::Error for EncodeError {}
