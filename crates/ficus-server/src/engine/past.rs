//! `with('ficus.asOf', …)`: reading a state of the past.

use ficus_model::Value;
use ficus_query::options::AS_OF;
use ficus_storage::{AsOf, CommitTs, StoreError};

use crate::backend::Failure;
use crate::catalogue;

use super::program::Ready;

/// Which state of the past a program reads; none: the present.
pub(super) fn as_of(statements: &[Ready], in_session: bool) -> Result<Option<AsOf>, Failure> {
    let queries = statements.iter().filter_map(|statement| match statement {
        Ready::Query { prepared, .. } => Some(prepared),
        _ => None,
    });
    let mut states = Vec::new();
    let mut writes = false;
    for prepared in queries {
        writes |= prepared.writes();
        let given = prepared.original.source.options.iter().rev().find(|(key, _)| &**key == AS_OF);
        states.push(given.map(|(_, value)| parse(value)).transpose()?);
    }
    let Some(state) = states.iter().flatten().next().copied() else { return Ok(None) };
    let refuse = |reason: &str| Err(Failure::new(&catalogue::INVALID_TRAVERSAL, format!("with('{AS_OF}'): {reason}")));
    if writes {
        return refuse("the past cannot be changed; leave the option out, or the writing steps");
    }
    if in_session {
        return refuse("a session reads the state its transaction began with; send a request of its own");
    }
    if states.iter().any(|other| *other != Some(state)) {
        return refuse("all traversals of one request read one state; give each the same, or send them one by one");
    }
    Ok(Some(state))
}

fn parse(value: &Value) -> Result<AsOf, Failure> {
    let parsed = match value {
        Value::DateTime(moment) => moment
            .epoch_seconds
            .checked_mul(1000)
            .and_then(|millis| millis.checked_add(i64::from(moment.nanos / 1_000_000)))
            .and_then(|millis| u64::try_from(millis).ok())
            .map(AsOf::Time),
        Value::Long(ts) => u64::try_from(*ts).ok().map(|ts| AsOf::Commit(CommitTs(ts))),
        Value::Int(ts) => u64::try_from(*ts).ok().map(|ts| AsOf::Commit(CommitTs(ts))),
        Value::Short(ts) => u64::try_from(*ts).ok().map(|ts| AsOf::Commit(CommitTs(ts))),
        Value::Byte(ts) => u64::try_from(*ts).ok().map(|ts| AsOf::Commit(CommitTs(ts))),
        _ => None,
    };
    parsed.ok_or_else(|| {
        let message = format!("with('{AS_OF}'): there is no state from before 1970");
        Failure::new(&catalogue::WRONG_OPTION, message)
    })
}

/// A state that cannot be read.
pub(super) fn failure(error: &StoreError) -> Failure {
    Failure::new(&catalogue::OUTSIDE_RETENTION, error.to_string())
}
