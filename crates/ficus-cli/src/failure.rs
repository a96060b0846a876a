//! Failures of a verb, with the exit codes that scripts can rely on.

use std::fmt;
use std::process::ExitCode;

/// Why a verb did not succeed.
#[derive(Debug)]
pub enum Failure {
    /// The command line or a settings file is wrong; nothing was done. Exit code 2.
    Usage(String),
    /// The work failed. Exit code 1.
    Failed(String),
    /// A load went through, but some records were rejected. Exit code 3.
    Rejected(String),
    /// The reader of our output is gone; nothing is left to say. Exit code 0.
    PipeClosed,
}

impl Failure {
    /// A failure of the work itself.
    pub fn failed(reason: impl fmt::Display) -> Failure {
        Failure::Failed(reason.to_string())
    }

    /// A mistake on the command line.
    pub fn usage(reason: impl fmt::Display) -> Failure {
        Failure::Usage(reason.to_string())
    }

    /// The text for the user.
    pub fn message(&self) -> Option<&str> {
        match self {
            Failure::Usage(text) | Failure::Failed(text) | Failure::Rejected(text) => Some(text),
            Failure::PipeClosed => None,
        }
    }

    /// The code the process ends with.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Usage(_) => ExitCode::from(2),
            Failure::Failed(_) => ExitCode::from(1),
            Failure::Rejected(_) => ExitCode::from(3),
            Failure::PipeClosed => ExitCode::SUCCESS,
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::PipeClosed,
            _ => Failure::Failed(error.to_string()),
        }
    }
}

impl From<ficus_storage::StoreError> for Failure {
    fn from(error: ficus_storage::StoreError) -> Failure {
        Failure::Failed(error.to_string())
    }
}
