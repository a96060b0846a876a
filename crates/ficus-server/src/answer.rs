//! Answers: from the outcome of a request to a response and its bytes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use ficus_model::{Shared, Value, ValueMap};
use ficus_query::budget::Held;
use ficus_query::{QueryError, QueryErrorKind};
use ficus_wire::{Data, EncodeError, Format, RequestId, Response, Room, encode_response, encode_response_within};

use crate::backend::Failure;
use crate::catalogue;
use crate::metrics::Metrics;

fn text(text: &str) -> Value {
    Value::String(text.into())
}

/// The response to a request that failed.
///
/// `exceptions` and `stackTrace` are where drivers look; `code` and `retryable` are for programs.
pub(crate) fn failure(request_id: Option<RequestId>, failure: &Failure) -> Response {
    let mut response = Response::new(request_id, failure.status, Data::None);
    response.message.clone_from(&failure.message);
    let exceptions = Value::List(Shared::new(vec![text(failure.code)]));
    response.attributes.insert(text("exceptions"), exceptions);
    response.attributes.insert(text("stackTrace"), text(&format!("{}: {}", failure.code, failure.message)));
    response.attributes.insert(text("code"), text(failure.code));
    response.attributes.insert(text("retryable"), Value::Bool(failure.retryable));
    response.attributes.extend(failure.attributes.clone());
    response
}

/// The last response to a request that succeeded: 204 without rows, else 200.
pub(crate) fn success(
    request_id: Option<RequestId>,
    data: Data,
    host: &str,
    attributes: ValueMap,
    warnings: &[String],
) -> Response {
    let status = if matches!(data, Data::None) { 204 } else { 200 };
    let mut response = Response::new(request_id, status, data);
    response.attributes = attributes;
    response.attributes.insert(text("host"), text(host));
    if !warnings.is_empty() {
        let warnings = warnings.iter().map(|warning| text(warning)).collect();
        response.attributes.insert(text("warnings"), Value::List(Shared::new(warnings)));
    }
    response
}

/// Writes a response where there is room for it. One that cannot be written becomes a failure that says why, which comes along.
///
/// What was written is freed here: a large response keeps this thread for a while, so others take its other work over.
pub(crate) fn encode(
    format: Format,
    response: Response,
    room: AnswerRoom<'_>,
    metrics: &Metrics,
) -> (Written, Option<Failure>) {
    let is_large = response.data.rows() > LARGE_ROWS || response.data.holds_more_than(LARGE_VALUES);
    aside_if(is_large, move || written(format, response, room, metrics))
}

/// What an answer may take while it is written: so many bytes at most, and only what is left to the query whose rows it is made of, which are there until it is
/// written.
pub(crate) struct AnswerRoom<'a> {
    held: &'a mut Held,
    rows_bytes: usize,
    bytes_max: usize,
    /// What was written, but the last piece.
    pieces: Vec<Vec<u8>>,
    bytes: usize,
    refused: Option<Failure>,
}

/// Bytes of a piece of an answer: much is not moved as it grows, and gone piece by piece as it is sent.
const PIECE_BYTES: usize = 1 << 20;

/// With some more, for what the last of its values takes.
const PIECE_ROOM: usize = PIECE_BYTES + (64 << 10);

/// Answers are taken to be shorter until they are as long as this.
const SMALL_BYTES: usize = 64 << 10;

impl<'a> AnswerRoom<'a> {
    /// `held` is what the rows take.
    pub(crate) fn new(held: &'a mut Held, bytes_max: usize) -> AnswerRoom<'a> {
        let rows_bytes = held.bytes();
        AnswerRoom { held, rows_bytes, bytes_max, pieces: Vec::new(), bytes: 0, refused: None }
    }

    /// The whole answer, which ends with these bytes.
    pub(crate) fn whole(mut self, last: Vec<u8>) -> Written {
        self.pieces.push(last);
        Written { pieces: self.pieces }
    }

    /// Why there was no more.
    pub(crate) fn failure(&mut self) -> Failure {
        self.refused.take().unwrap_or_else(|| too_large(self.bytes_max))
    }
}

impl Room for AnswerRoom<'_> {
    fn grow(&mut self, bytes: &mut Vec<u8>) -> usize {
        let all = self.bytes + bytes.len();
        if all > self.bytes_max {
            return 0;
        }
        if bytes.len() >= PIECE_BYTES {
            // What is less than a piece is counted once all is written: few are written at a time.
            if let Err(error) = self.held.replace(self.rows_bytes + all) {
                self.refused = Some(no_room(&error));
                return 0;
            }
            self.bytes = all;
            self.pieces.push(std::mem::take(bytes));
        }
        let wanted = match self.pieces.is_empty() && bytes.len() < SMALL_BYTES {
            true => SMALL_BYTES,
            false => {
                bytes.reserve_exact(PIECE_ROOM.saturating_sub(bytes.len()));
                PIECE_BYTES
            }
        };
        wanted.min(self.bytes_max - self.bytes)
    }
}

/// An answer as it goes to the client.
pub(crate) struct Written {
    pieces: Vec<Vec<u8>>,
}

impl Written {
    pub(crate) fn pieces(self) -> Vec<Vec<u8>> {
        self.pieces
    }

    pub(crate) fn len(&self) -> usize {
        self.pieces.iter().map(Vec::len).sum()
    }

    /// Has what it takes on the account on which its rows were, instead of these.
    ///
    /// Errors: there is no room for so many; the count stands as long as they are kept.
    pub(crate) fn count(&self, held: &mut Held) -> Result<(), Failure> {
        count(held, self.pieces.iter().map(Vec::capacity).sum())
    }

    /// All of it in one piece, and counted so: while it is put together it is there twice.
    pub(crate) fn joined(self, held: &mut Held) -> Vec<u8> {
        let mut pieces = self.pieces;
        let whole = match pieces.len() {
            0 | 1 => pieces.pop().unwrap_or_default(),
            _ => {
                let length = pieces.iter().map(Vec::len).sum();
                // It is sent at once, and what finds no room is what the query, or another one, wants next.
                let _ = count(held, 2 * length);
                let mut whole = Vec::with_capacity(length);
                pieces.into_iter().for_each(|piece| whole.extend_from_slice(&piece));
                whole
            }
        };
        let _ = count(held, whole.capacity());
        whole
    }
}

pub(crate) fn too_large(bytes_max: usize) -> Failure {
    let message = format!("the result has more than the {bytes_max} bytes that one response may have");
    Failure::new(&catalogue::RESULT_TOO_LARGE, message)
}

fn count(held: &mut Held, bytes: usize) -> Result<(), Failure> {
    held.replace(bytes).map_err(|error| no_room(&error))
}

fn no_room(error: &QueryError) -> Failure {
    let entry = match error.kind {
        QueryErrorKind::Budget => &catalogue::BUDGET,
        _ => &catalogue::SERVER_MEMORY,
    };
    let mut failure =
        Failure::new(entry, format!("the answer is being written, and there is no room for it: {}", error.message));
    // What the query did is done: to do it again may do it twice.
    failure.retryable = false;
    failure
}

/// Rows of a response that is written while other threads do other work of this one.
const LARGE_ROWS: usize = 10_000;

/// Values of such a response, those that hold others among them.
const LARGE_VALUES: u64 = 50_000;

/// Does work that takes a while; where the runtime has several threads, another one takes over what waits for this one.
fn aside_if<T>(is_large: bool, work: impl FnOnce() -> T) -> T {
    use tokio::runtime::{Handle, RuntimeFlavor};
    match Handle::try_current() {
        Ok(runtime) if is_large && runtime.runtime_flavor() == RuntimeFlavor::MultiThread => {
            tokio::task::block_in_place(work)
        }
        _ => work(),
    }
}

fn written(
    format: Format,
    response: Response,
    mut room: AnswerRoom<'_>,
    metrics: &Metrics,
) -> (Written, Option<Failure>) {
    // Most answers are small.
    let mut bytes = Vec::with_capacity(512);
    let encoded = guard(metrics, || Ok(encode_response_within(format, &response, &mut room, &mut bytes)));
    let fault = match encoded {
        Ok(Ok(())) => return (room.whole(bytes), None),
        Ok(Err(EncodeError::TooLarge { .. })) => room.failure(),
        Ok(Err(error)) => Failure::new(&catalogue::NOT_ENCODABLE, format!("Error during serialization: {error}")),
        Err(fault) => fault,
    };
    drop(room);
    bytes = Vec::new();
    let answer = failure(response.request_id.clone(), &fault);
    if encode_response(format, &answer, &mut bytes).is_err() {
        tracing::error!(?format, %fault, "the failure of a response could not be written either");
        bytes.clear();
    }
    (Written { pieces: vec![bytes] }, Some(fault))
}

/// Runs `work` and turns a panic into a failure, so that it ends one request and nothing else.
pub(crate) fn guard<T>(metrics: &Metrics, work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        metrics.panics.fetch_add(1, Ordering::Relaxed);
        let reason = panic.downcast_ref::<&str>().copied().map(str::to_owned);
        let reason = reason.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        tracing::error!(%reason, "panic in the handling of a request");
        Err(Failure::new(&catalogue::INTERNAL, "the server failed to handle the request; its log tells more"))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ficus_query::budget::{MemoryAccount, ServerMemory};

    use super::*;

    fn write(held: &mut Held, bytes: usize) -> (Written, Option<Failure>) {
        let rows = (0..bytes >> 10).map(|_| text(&"x".repeat(1 << 10))).collect();
        let response = Response::new(None, 200, Data::Values(rows));
        encode(Format::GraphBinary1, response, AnswerRoom::new(held, 64 << 20), &Metrics::default())
    }

    #[test]
    fn an_answer_is_counted_while_it_is_written() {
        let server = Arc::new(ServerMemory::new(8 << 20));
        let account = MemoryAccount::of_server(6 << 20, &server, Default::default());
        let mut held = Held::default();
        held.add(&account, 1 << 20).unwrap();
        assert!(write(&mut held, 1 << 19).1.is_none());
        assert_eq!(account.used_bytes(), 1 << 20, "it is a small one");
        let (large, refused) = write(&mut held, 2 << 20);
        assert!(refused.is_none());
        assert!(account.used_bytes() >= 2 << 20, "the rows, and what was written, but for the last piece");
        large.count(&mut held).unwrap();
        assert!((2 << 20..7 << 19).contains(&account.used_bytes()), "what was written, and room behind it");
        let expected: Vec<u8> = large.pieces.concat();
        assert!(large.pieces.len() > 1);
        assert_eq!(large.joined(&mut held), expected);
        let refused = write(&mut held, 5 << 20).1.expect("there is no room beside the rows");
        assert_eq!((refused.code, refused.retryable), ("FICUS-2009", false));
        drop(held);
        assert_eq!(account.used_bytes(), 0);
        let too_large = write(&mut Held::default(), 65 << 20).1.expect("more than an answer may have");
        assert_eq!(too_large.code, "FICUS-1502");
    }

    #[test]
    fn an_answer_that_has_no_room_is_refused_and_not_to_be_asked_for_again() {
        let server = Arc::new(ServerMemory::new(8 << 20));
        let account = |limit| MemoryAccount::of_server(limit, &server, Default::default());
        let rows = |account: &MemoryAccount| {
            let mut held = Held::default();
            held.add(account, 1 << 20).expect("there is room for the rows");
            held
        };
        let (other, own) = (account(8 << 20), account(4 << 20));
        let (mut others, mut held) = (rows(&other), rows(&own));
        assert!(count(&mut held, 2 << 20).is_ok());
        let refused = count(&mut held, 5 << 20).expect_err("more than one query may hold");
        assert_eq!((refused.code, refused.retryable), ("FICUS-2009", false));
        drop(held);
        assert_eq!(own.used_bytes(), 0);
        assert!(count(&mut others, 5 << 20).is_ok());
        let mut held = rows(&own);
        let refused = count(&mut held, 3 << 20).expect_err("more than is left");
        assert_eq!((refused.code, refused.retryable), ("FICUS-1204", false));
    }
}
