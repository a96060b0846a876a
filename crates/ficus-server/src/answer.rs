//! Answers: from the outcome of a request to a response and its bytes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use ficus_model::{Shared, Value, ValueMap};
use ficus_query::QueryErrorKind;
use ficus_query::budget::Held;
use ficus_wire::{Data, EncodeError, Format, RequestId, Response, encode_response_within};

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

/// Writes a response of so many bytes at most. One that cannot be written becomes a failure that says why, which comes along.
///
/// What was written is freed here: a large response keeps this thread for a while, so others take its other work over.
pub(crate) fn encode(
    format: Format,
    response: Response,
    bytes_max: usize,
    metrics: &Metrics,
) -> (Vec<u8>, Option<Failure>) {
    let is_large = response.data.rows() > LARGE_ROWS || response.data.holds_more_than(LARGE_VALUES);
    aside_if(is_large, move || written(format, response, bytes_max, metrics))
}

/// Has the bytes of an answer on the account on which its rows were, instead of these.
///
/// Errors: there is no room for so many; the count stands as long as they are kept.
pub(crate) fn count_bytes(held: &mut Held, bytes: &[u8]) -> Result<(), Failure> {
    held.replace(bytes.len()).map_err(|error| {
        let entry = match error.kind {
            QueryErrorKind::Budget => &catalogue::BUDGET,
            _ => &catalogue::SERVER_MEMORY,
        };
        let mut failure =
            Failure::new(entry, format!("the answer is written, and there is no room for it: {}", error.message));
        // What the query did is done: to do it again may do it twice.
        failure.retryable = false;
        failure
    })
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

fn written(format: Format, response: Response, bytes_max: usize, metrics: &Metrics) -> (Vec<u8>, Option<Failure>) {
    // Most answers are small; a large one doubles its way up.
    let mut bytes = Vec::with_capacity(512);
    let encoded = guard(metrics, || Ok(encode_response_within(format, &response, bytes_max, &mut bytes)));
    let fault = match encoded {
        Ok(Ok(())) => return (bytes, None),
        Ok(Err(error @ EncodeError::TooLarge { .. })) => {
            let message = format!("the result is too large for one response: {error}");
            Failure::new(&catalogue::RESULT_TOO_LARGE, message)
        }
        Ok(Err(error)) => Failure::new(&catalogue::NOT_ENCODABLE, format!("Error during serialization: {error}")),
        Err(fault) => fault,
    };
    bytes = Vec::new();
    let answer = failure(response.request_id.clone(), &fault);
    if encode_response_within(format, &answer, usize::MAX, &mut bytes).is_err() {
        tracing::error!(?format, %fault, "the failure of a response could not be written either");
        bytes.clear();
    }
    (bytes, Some(fault))
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
        assert!(count_bytes(&mut held, &[0; 2 << 20]).is_ok());
        let refused = count_bytes(&mut held, &[0; 5 << 20]).expect_err("more than one query may hold");
        assert_eq!((refused.code, refused.retryable), ("FICUS-2009", false));
        drop(held);
        assert_eq!(own.used_bytes(), 0);
        assert!(count_bytes(&mut others, &[0; 5 << 20]).is_ok());
        let mut held = rows(&own);
        let refused = count_bytes(&mut held, &[0; 3 << 20]).expect_err("more than is left");
        assert_eq!((refused.code, refused.retryable), ("FICUS-1204", false));
    }
}
