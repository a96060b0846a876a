//! `with('ficus.partial', true)`: at the deadline, what was found until then is the answer, marked as incomplete.
//!
//! What was found are the rows that have left the last step; a count or a group that is not finished has found nothing yet. The last response
//! carries the status attribute `incomplete`.

use ficus_model::Value;
use ficus_query::engine::Prepared;
use ficus_query::options::PARTIAL;

use crate::backend::Failure;
use crate::catalogue;

use super::program::Ready;

fn given(prepared: &Prepared) -> Option<&Value> {
    prepared.original.source.options.iter().rev().find(|(key, _)| &**key == PARTIAL).map(|(_, value)| value)
}

/// Whether a statement asks for it.
pub(super) fn is_wanted(prepared: &Prepared) -> bool {
    given(prepared) == Some(&Value::Bool(true))
}

/// Refuses what it makes no sense for: a part of a write would be committed, and nobody could say which.
pub(super) fn check(statements: &[Ready]) -> Result<(), Failure> {
    for statement in statements {
        let Ready::Query { prepared, .. } = statement else { continue };
        if !is_wanted(prepared) || !prepared.writes() {
            continue;
        }
        let reason = "a traversal that writes is carried out as a whole or not at all; leave the option out";
        return Err(Failure::new(&catalogue::INVALID_TRAVERSAL, format!("with('{PARTIAL}'): {reason}")));
    }
    Ok(())
}
