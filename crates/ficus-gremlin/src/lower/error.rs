//! Why a traversal has no plan. All of these are mistakes of the caller; the texts that TinkerPop's users know are kept.

use std::fmt;
use std::sync::Arc;

/// The kinds of mistakes, each with a stable code for clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LowerErrorKind {
    /// There is no step, source method or strategy of this name.
    UnknownStep,
    /// The step exists but does not take these arguments.
    WrongArguments,
    /// An option of `with()` that there is not, or that takes something else.
    WrongOption,
    /// The step may not stand here, or a strategy forbids it.
    IllegalUse,
    /// A step of graph analytics, which is not there yet.
    UnsupportedAnalytics,
    /// Deeper or longer than a traversal may be.
    TooLarge,
    /// The query had to stop before it had a plan.
    Stopped,
}

impl LowerErrorKind {
    /// The stable code, e.g. `illegal-use`.
    pub const fn code(self) -> &'static str {
        match self {
            LowerErrorKind::UnknownStep => "unknown-step",
            LowerErrorKind::WrongArguments => "wrong-arguments",
            LowerErrorKind::WrongOption => "wrong-option",
            LowerErrorKind::IllegalUse => "illegal-use",
            LowerErrorKind::UnsupportedAnalytics => "unsupported-analytics",
            LowerErrorKind::TooLarge => "too-large",
            LowerErrorKind::Stopped => "stopped",
        }
    }
}

/// Why a traversal has no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LowerError {
    /// What kind of mistake it is.
    pub kind: LowerErrorKind,
    /// The step, as it was written.
    pub step: Arc<str>,
    /// Where the step begins in the text, in bytes; none for bytecode and for mistakes of the whole traversal.
    pub offset: Option<u32>,
    /// What is wrong and what to do.
    pub message: String,
}

impl LowerError {
    pub(super) fn new(kind: LowerErrorKind, step: &str, offset: Option<u32>, message: impl Into<String>) -> LowerError {
        LowerError { kind, step: step.into(), offset, message: message.into() }
    }

    /// A rule of a strategy or of the language that the traversal as a whole breaks.
    pub(super) fn illegal(step: &str, message: impl Into<String>) -> LowerError {
        LowerError::new(LowerErrorKind::IllegalUse, step, None, message)
    }
}

impl fmt::Display for LowerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (step {}()", self.message, self.step)?;
        if let Some(offset) = self.offset {
            write!(f, " at offset {offset}")?;
        }
        f.write_str(")")
    }
}

impl std::error::Error for LowerError {}

/// The result of lowering something.
pub(super) type Lowered<R = ()> = Result<R, LowerError>;
