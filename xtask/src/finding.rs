//! Something to mend: where, what, and how.

use std::fmt;

/// One thing that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file, from the root.
    pub file: String,
    /// The line, 0 if the whole file is meant.
    pub line: usize,
    /// What is wrong.
    pub what: String,
    /// How it is mended.
    pub remedy: String,
}

impl Finding {
    /// A finding.
    pub fn new(file: &str, line: usize, what: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { file: file.into(), line, what: what.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}; {}", self.file, self.what, self.remedy),
            line => write!(f, "{}:{line}: {}; {}", self.file, self.what, self.remedy),
        }
    }
}
