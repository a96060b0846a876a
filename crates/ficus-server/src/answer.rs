//! Answers: from the outcome of a request to a response and its bytes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use ficus_model::{Shared, Value, ValueMap};
use ficus_wire::{Data, Format, RequestId, Response, encode_response};

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

/// Writes a response. One that cannot be written becomes a 599 that says why; the failure comes along.
pub(crate) fn encode(format: Format, response: &Response, metrics: &Metrics) -> (Vec<u8>, Option<Failure>) {
    // Most answers are small; a large one doubles its way up.
    let mut bytes = Vec::with_capacity(512);
    let encoded = guard(metrics, || Ok(encode_response(format, response, &mut bytes)));
    let fault = match encoded {
        Ok(Ok(())) => return (bytes, None),
        Ok(Err(error)) => Failure::new(&catalogue::NOT_ENCODABLE, format!("Error during serialization: {error}")),
        Err(fault) => fault,
    };
    bytes.clear();
    let answer = failure(response.request_id.clone(), &fault);
    if encode_response(format, &answer, &mut bytes).is_err() {
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
