//! GraphSON and GraphBinary, requests and responses: values to bytes and back.
//!
//! ```text
//! frame ──► decode_frame ──► (Format, Request)          Response ──► encode_response ──► bytes
//! body  ──► decode_request(format)                       Value    ──► encode_value(format)
//! bytes ──► decode_value(format), decode_response(format)  (client side: encode_request, decode_response)
//! ```
//!
//! ```
//! use ficus_model::Value;
//! use ficus_wire::{Format, Limits, decode_value, encode_value};
//!
//! let read = decode_value(Format::GraphSon3, br#"{"@type":"g:Int64","@value":7}"#, &Limits::default()).unwrap();
//! assert_eq!(read, Value::Long(7));
//! let mut out = Vec::new();
//! encode_value(Format::GraphBinary1, &read, &mut out).unwrap();
//! assert_eq!(out, [0x02, 0x00, 0, 0, 0, 0, 0, 0, 0, 7]);
//! ```
//!
//! Decoding is bounded by [`Limits`]; nothing a client sends makes it panic, recurse or allocate past them.
//!
//! *Architecture Invariant:* knows bytes and values only. It opens no socket, runs no traversal and never looks up a
//! stored element: whoever answers detaches elements first.
#![forbid(unsafe_code)]

mod argument;
mod error;
mod explanation;
mod format;
pub mod graph_io;
mod graphbinary;
mod graphson;
mod limits;
mod message;
mod number_text;
mod predicate;
mod room;
mod strategy;
mod temporal;

pub use error::{DecodeError, DecodeErrorKind, EncodeError};
pub use format::Format;
pub use limits::Limits;
pub use message::{Data, Request, RequestId, Response};
pub use room::{Bound, Room};

use ficus_model::Value;
use graphson::Style;

/// Reads a binary WebSocket frame: one byte with the length of the mime type, the mime type, the request.
///
/// Errors carry the format to answer in and the request's id as far as they were readable.
pub fn decode_frame(bytes: &[u8], limits: &Limits) -> Result<(Format, Request), Box<DecodeError>> {
    let (format, body) = split_frame(bytes)?;
    Ok((format, decode_request(format, body, limits)?))
}

/// Splits a binary WebSocket frame into the format its mime type names and the message body.
pub fn split_frame(bytes: &[u8]) -> Result<(Format, &[u8]), Box<DecodeError>> {
    let fail = |kind, expected: &'static str, found: String| Err(DecodeError::new(kind, 0, expected, found));
    let Some((&length, rest)) = bytes.split_first() else {
        return fail(DecodeErrorKind::Malformed, "a mime type", "an empty frame".into());
    };
    let Some((mime, body)) = rest.split_at_checked(usize::from(length)) else {
        let found = format!("a mime type of {length} bytes in a frame of {}", bytes.len());
        return fail(DecodeErrorKind::Malformed, "a mime type within the frame", found);
    };
    let mime = String::from_utf8_lossy(mime);
    match Format::from_mime(&mime) {
        Some(format) => Ok((format, body)),
        None => fail(DecodeErrorKind::UnknownMime, "GraphSON 1.0 to 3.0 or GraphBinary 1.0", format!("{mime:?}")),
    }
}

/// Reads a request written in `format`.
pub fn decode_request(format: Format, body: &[u8], limits: &Limits) -> Result<Request, Box<DecodeError>> {
    check_size(body, limits)
        .and_then(|()| match format {
            Format::GraphBinary1 | Format::GraphBinary1Stringd => graphbinary::decode_request(body, limits),
            json => graphson::decode_request(Style::of(json), body, limits),
        })
        .map_err(|error| with_format(error, format))
}

/// Reads a response written in `format` (client side).
pub fn decode_response(format: Format, body: &[u8], limits: &Limits) -> Result<Response, Box<DecodeError>> {
    check_size(body, limits)
        .and_then(|()| match format {
            Format::GraphBinary1 | Format::GraphBinary1Stringd => graphbinary::decode_response(body, limits),
            json => graphson::decode_response(Style::of(json), body, limits),
        })
        .map_err(|error| with_format(error, format))
}

/// Reads one value written in `format`: a JSON text, or a fully qualified GraphBinary value.
///
/// Some wire types have no value of their own: a class becomes its name, a binding the value bound, dates without an
/// offset are taken as UTC, a traverser becomes an entry of value and bulk, a lone `Metrics` a list of one.
pub fn decode_value(format: Format, body: &[u8], limits: &Limits) -> Result<Value, Box<DecodeError>> {
    check_size(body, limits)
        .and_then(|()| match format {
            Format::GraphBinary1 | Format::GraphBinary1Stringd => {
                let mut reader = graphbinary::Reader::new(body, limits);
                reader.value().and_then(|value| reader.finish().map(|()| value))
            }
            json => {
                let mut reader = graphson::Reader::new(Style::of(json), body, limits);
                reader.value().and_then(|value| reader.finish().map(|()| value))
            }
        })
        .map_err(|error| with_format(error, format))
}

fn check_size(body: &[u8], limits: &Limits) -> Result<(), Box<DecodeError>> {
    if body.len() <= limits.bytes {
        return Ok(());
    }
    let (limit, found) = (format!("{} bytes", limits.bytes), format!("a message of {} bytes", body.len()));
    Err(DecodeError::new(DecodeErrorKind::Limit, 0, limit, found))
}

fn with_format(mut error: Box<DecodeError>, format: Format) -> Box<DecodeError> {
    error.format = Some(format);
    error
}

/// Appends `response` to `out`; on error `out` is as it was before.
pub fn encode_response(format: Format, response: &Response, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    encode_response_within(format, response, &mut { usize::MAX }, out)
}

/// As [`encode_response`], as far as there is room; where that takes bytes out of the buffer, what is left there is the end. A response may be much longer than
/// what it takes in memory, since what is there several times is written as often.
pub fn encode_response_within(
    format: Format,
    response: &Response,
    room: &mut dyn Room,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let start = out.len();
    let result = match format {
        Format::GraphBinary1 => graphbinary::encode_response(response, room, out),
        Format::GraphBinary1Stringd => graphbinary::encode_stringd_response(response, room, out),
        json => graphson::encode_response(Style::of(json), response, room, out),
    };
    result.inspect_err(|_| out.truncate(start))
}

/// Appends `request` to `out`, without the mime prefix of a frame (client side); on error `out` is as it was before.
pub fn encode_request(format: Format, request: &Request, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let start = out.len();
    let result = match format {
        Format::GraphBinary1 | Format::GraphBinary1Stringd => graphbinary::encode_request(request, out),
        json => graphson::encode_request(Style::of(json), request, out),
    };
    result.inspect_err(|_| out.truncate(start))
}

/// Appends a whole binary WebSocket frame, mime prefix and request, to `out` (client side).
pub fn encode_frame(format: Format, request: &Request, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let start = out.len();
    let mime = format.mime();
    out.push(u8::try_from(mime.len()).expect("mime types are short constants"));
    out.extend_from_slice(mime.as_bytes());
    encode_request(format, request, out).inspect_err(|_| out.truncate(start))
}

/// Appends one value to `out`; on error `out` is as it was before.
pub fn encode_value(format: Format, value: &Value, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let start = out.len();
    let result = match format {
        Format::GraphBinary1 | Format::GraphBinary1Stringd => graphbinary::Writer::new(out).value(value),
        json => graphson::Writer::new(Style::of(json), out).value(value),
    };
    result.inspect_err(|_| out.truncate(start))
}
