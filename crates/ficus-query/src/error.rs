//! What can go wrong in a query, in the families of the error catalogue.

use std::fmt::{self, Write};
use std::sync::Arc;

use ficus_dataflow::Interrupt;
use ficus_storage::StoreError;

/// The family of a [`QueryError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryErrorKind {
    /// The traversal cannot be carried out as written, or met data it cannot work on.
    Invalid,
    /// An option of `with()` asks for what there is not.
    Option,
    /// `fail()` was reached.
    Failed,
    /// The write would break a declared type, a unique index or a multiplicity.
    Constraint,
    /// Another transaction was faster; trying again can help.
    Conflict,
    /// Who asks may not do it.
    NotAllowed,
    /// Cancelled from outside.
    Cancelled,
    /// Its user or an administrator ended it.
    Killed,
    /// The server shuts down.
    ShutDown,
    /// Past its deadline.
    Timeout,
    /// Past its memory or result budget.
    Budget,
    /// All queries together hold as much memory as they may; trying again later can help.
    ServerMemory,
    /// More changes in one transaction than allowed.
    TransactionTooLarge,
    /// The store cannot do it: disk, read-only, poisoned.
    Store,
    /// A file of the graph is damaged.
    Damaged,
    /// Our bug.
    Internal,
}

/// A query error: a kind for programs and a message for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryError {
    /// The family.
    pub kind: QueryErrorKind,
    /// What happened, to what, and what can be done.
    pub message: Arc<str>,
    /// The step in which it arose, if it is one that a traversal is to be corrected for.
    pub step: Option<Arc<str>>,
}

impl QueryError {
    /// An error of the caller's.
    pub fn invalid(message: impl Into<String>) -> QueryError {
        QueryError::new(QueryErrorKind::Invalid, message)
    }

    /// An error of any family.
    pub fn new(kind: QueryErrorKind, message: impl Into<String>) -> QueryError {
        QueryError { kind, message: Arc::from(message.into()), step: None }
    }

    /// The error with the step in which it arose, if it is one that a traversal is to be corrected for and the first to say so.
    pub fn in_step(mut self, step: &(impl fmt::Display + ?Sized)) -> QueryError {
        /// Characters of a step that are shown: it may have a million arguments.
        const SHOWN_MAX: usize = 160;
        if self.kind == QueryErrorKind::Invalid && self.step.is_none() {
            let mut front = Front { text: String::new(), room: SHOWN_MAX };
            if write!(front, "{step}").is_err() {
                front.text.push('…');
            }
            self.step = Some(Arc::from(front.text));
        }
        self
    }
}

/// Takes so many characters, and fails with the next, so that no more is written.
struct Front {
    text: String,
    room: usize,
}

impl Write for Front {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let end = part.char_indices().nth(self.room).map(|(end, _)| end);
        let taken = &part[..end.unwrap_or(part.len())];
        self.room -= taken.chars().count();
        self.text.push_str(taken);
        if end.is_some() { Err(fmt::Error) } else { Ok(()) }
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.step {
            Some(step) => write!(f, " (in {step})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for QueryError {}

impl From<Interrupt> for QueryError {
    fn from(interrupt: Interrupt) -> Self {
        match interrupt {
            Interrupt::Cancelled => QueryError::new(QueryErrorKind::Cancelled, "the query was cancelled"),
            Interrupt::Killed => QueryError::new(
                QueryErrorKind::Killed,
                "its user or an administrator ended the query; nothing of it was committed",
            ),
            Interrupt::ShutDown => QueryError::new(
                QueryErrorKind::ShutDown,
                "the server is shutting down; nothing of the query was committed",
            ),
            Interrupt::DeadlineExceeded => QueryError::new(
                QueryErrorKind::Timeout,
                "evaluation exceeded the configured 'evaluationTimeout' threshold; its work was stopped",
            ),
        }
    }
}

impl From<StoreError> for QueryError {
    fn from(error: StoreError) -> Self {
        let breaks = matches!(error, StoreError::SchemaViolation { .. } | StoreError::UniqueViolation { .. });
        let kind = match error.kind() {
            _ if matches!(error, StoreError::TransactionTooLarge { .. }) => QueryErrorKind::TransactionTooLarge,
            _ if breaks => QueryErrorKind::Constraint,
            ficus_storage::ErrorKind::Caller => QueryErrorKind::Invalid,
            ficus_storage::ErrorKind::Conflict => QueryErrorKind::Conflict,
            ficus_storage::ErrorKind::Corrupt => QueryErrorKind::Damaged,
            _ => QueryErrorKind::Store,
        };
        QueryError::new(kind, error.to_string())
    }
}

impl From<ficus_model::error::ModelError> for QueryError {
    fn from(error: ficus_model::error::ModelError) -> Self {
        QueryError::invalid(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_innermost_step_and_no_more_of_it_than_can_be_read() {
        let error = QueryError::invalid("no").in_step("SumGlobalStep").in_step("LocalStep");
        assert_eq!(error.to_string(), "no (in SumGlobalStep)");
        let long = QueryError::invalid("no").in_step(&"ä".repeat(1000));
        assert_eq!(long.to_string().chars().count(), "no (in …)".chars().count() + 160);
        let just_fits = QueryError::invalid("no").in_step(&"ä".repeat(160));
        assert!(just_fits.to_string().ends_with("ä)"));
        // Nothing is written that is not shown.
        let endless = fmt::from_fn(|f| {
            loop {
                f.write_str("and on ")?;
            }
        });
        assert!(QueryError::invalid("no").in_step(&endless).to_string().ends_with("…)"));
        let other = QueryError::new(QueryErrorKind::Timeout, "late").in_step("LocalStep");
        assert_eq!(other.to_string(), "late");
    }
}
