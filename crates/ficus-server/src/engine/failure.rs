//! What goes wrong in the engine, in the words of the catalogue.

use ficus_gremlin::lower::{LowerError, LowerErrorKind};
use ficus_gremlin::text::SyntaxError;
use ficus_model::Value;
use ficus_query::{QueryError, QueryErrorKind};

use crate::backend::{Failure, Program};
use crate::catalogue;

/// Whether a query came as text: the status of its failures depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// gremlin-lang text.
    Text,
    /// Bytecode.
    Bytecode,
}

impl Form {
    /// The form of a program.
    pub fn of(program: &Program) -> Form {
        match program {
            Program::Text { .. } => Form::Text,
            Program::Bytecode(_) => Form::Bytecode,
        }
    }
}

/// A text that cannot be read.
pub fn syntax(error: &SyntaxError) -> Failure {
    Failure::new(&catalogue::SYNTAX, error.to_string())
}

/// A traversal that has no plan.
pub fn lowering(error: &LowerError, form: Form) -> Failure {
    let entry = match error.kind {
        LowerErrorKind::UnknownStep => &catalogue::UNKNOWN_STEP,
        LowerErrorKind::WrongOption => &catalogue::WRONG_OPTION,
        LowerErrorKind::UnsupportedAnalytics => &catalogue::NO_ANALYTICS,
        _ => &catalogue::INVALID_TRAVERSAL,
    };
    let mut failure = Failure::new(entry, error.to_string());
    if form == Form::Text {
        failure.status = 597;
    }
    failure
}

/// A query that failed.
pub fn query(error: &QueryError, form: Form) -> Failure {
    let message = error.to_string();
    match error.kind {
        QueryErrorKind::Failed => {
            let text = Value::String(error.message.clone());
            Failure::new(&catalogue::FAIL_STEP, message).with_attribute("failStepMessage", text)
        }
        QueryErrorKind::Constraint => Failure::new(&catalogue::CONSTRAINT, message),
        QueryErrorKind::Conflict => Failure::new(&catalogue::CONFLICT, message),
        QueryErrorKind::Cancelled => Failure::new(&catalogue::CANCELLED, message),
        QueryErrorKind::NotAllowed => Failure::new(&catalogue::NOT_ALLOWED, message),
        QueryErrorKind::Killed => Failure::new(&catalogue::KILLED, message),
        QueryErrorKind::ShutDown => Failure::new(&catalogue::SHUTTING_DOWN, message),
        QueryErrorKind::ServerMemory => Failure::new(&catalogue::SERVER_MEMORY, message),
        QueryErrorKind::Timeout => Failure::new(&catalogue::TIMEOUT, message),
        QueryErrorKind::Budget => Failure::new(&catalogue::BUDGET, message),
        QueryErrorKind::TransactionTooLarge => Failure::new(&catalogue::TRANSACTION_TOO_LARGE, message),
        QueryErrorKind::Store => Failure::new(&catalogue::STORE, message),
        QueryErrorKind::Damaged => Failure::new(&catalogue::DAMAGED, message),
        QueryErrorKind::Internal => Failure::new(&catalogue::INTERNAL, message),
        QueryErrorKind::Invalid | QueryErrorKind::Option => {
            let is_option = error.kind == QueryErrorKind::Option;
            let mut failure =
                Failure::new(if is_option { &catalogue::WRONG_OPTION } else { &catalogue::EVALUATION }, message);
            if form == Form::Text {
                failure.status = 597;
            }
            failure
        }
    }
}
