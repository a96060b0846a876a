//! What can go wrong.

use std::fmt;

/// Why a pass or a program did not end with an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnalyticsError {
    /// Its [`Control`](crate::Control) said so: a deadline or a cancellation.
    Stopped,
    /// A bug stopped the pass it was in.
    Failed,
    /// It would need more memory than it may have.
    Memory {
        /// What the memory is for.
        what: &'static str,
        /// Bytes it would take.
        needed_bytes: u64,
        /// Bytes that are allowed.
        limit_bytes: u64,
    },
    /// A graph with more vertices than a projection can number.
    TooManyVertices {
        /// How many there are.
        vertices: u64,
    },
    /// A condition fails with an error on some element of the graph, so that it has to be tested where it is met.
    Untestable,
    /// A parameter outside of what it may be.
    Invalid {
        /// The parameter.
        parameter: &'static str,
        /// What is wrong and what would be right.
        reason: String,
    },
}

impl fmt::Display for AnalyticsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnalyticsError::Stopped => write!(f, "stopped before it ended"),
            AnalyticsError::Failed => {
                write!(f, "the pass failed unexpectedly; this is a bug in FicusDB, please report the query")
            }
            AnalyticsError::Memory { what, needed_bytes, limit_bytes } => write!(
                f,
                "{what} needs {} MiB, more than the {} MiB allowed; ask for fewer sources at once or raise the limit",
                needed_bytes >> 20,
                limit_bytes >> 20
            ),
            AnalyticsError::TooManyVertices { vertices } => {
                write!(f, "{vertices} vertices; a projection numbers at most {}", u32::MAX)
            }
            AnalyticsError::Untestable => write!(f, "a condition fails on some elements of the graph"),
            AnalyticsError::Invalid { parameter, reason } => write!(f, "parameter {parameter}: {reason}"),
        }
    }
}

impl std::error::Error for AnalyticsError {}
