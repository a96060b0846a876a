//! GraphSON and GraphBinary, requests and responses: values to bytes and back.
//!
//! ```text
//! frame ──► decode_frame ──► (Format, Request)          Response ──► encode_response ──► bytes
//! body  ──► decode_request(format)                       Value    ──► encode_value(format)
//! bytes ──► decode_value(format), decode_response(format)  (client side: encode_request, decode_response)
//! ```
//!
//! Decoding is bounded by [`Limits`]; nothing a client sends makes it panic, recurse or allocate past them.
//!
//! *Architecture Invariant:* knows bytes and values only. It opens no socket, runs no traversal and never looks up a
//! stored element: whoever answers detaches elements first.
#![forbid(unsafe_code)]

mod error;
mod format;
mod limits;
mod message;

pub use error::{DecodeError, DecodeErrorKind, EncodeError};
pub use format::Format;
pub use limits::Limits;
pub use message::{Data, Request, RequestId, Response};

use ficus_model::Value;

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
    let _ = (format, body, limits);
    Err(DecodeError::new(DecodeErrorKind::Unsupported, 0, "", ""))
}

/// Reads a response written in `format` (client side).
pub fn decode_response(format: Format, body: &[u8], limits: &Limits) -> Result<Response, Box<DecodeError>> {
    let _ = (format, body, limits);
    Err(DecodeError::new(DecodeErrorKind::Unsupported, 0, "", ""))
}

/// Reads one value written in `format`: a JSON text, or a fully qualified GraphBinary value.
pub fn decode_value(format: Format, body: &[u8], limits: &Limits) -> Result<Value, Box<DecodeError>> {
    let _ = (format, body, limits);
    Err(DecodeError::new(DecodeErrorKind::Unsupported, 0, "", ""))
}

/// Appends `response` to `out`; on error `out` is as it was before.
pub fn encode_response(format: Format, response: &Response, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let _ = (format, response, out);
    Ok(())
}

/// Appends `request` to `out`, without the mime prefix of a frame (client side); on error `out` is as it was before.
pub fn encode_request(format: Format, request: &Request, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let _ = (format, request, out);
    Ok(())
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
    let _ = (format, value, out);
    Ok(())
}
