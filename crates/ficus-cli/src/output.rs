//! Results go to stdout, talk goes to stderr; nothing else in the binary prints.

use std::io::{self, Write};

/// Form of results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum OutputFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON value per result.
    Json,
    /// Rows and columns where results are maps, text elsewhere.
    Table,
}

/// Writes a line of results. A closed pipe is an error of the kind `BrokenPipe`.
pub fn result(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(line.as_bytes())?;
    stdout.write_all(b"\n")?;
    stdout.flush()
}

/// Says something to the user. If stderr is gone there is nobody to tell, so errors are of no consequence.
pub fn talk(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
