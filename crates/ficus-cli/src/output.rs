//! Results go to stdout, talk goes to stderr; nothing else in the binary prints.

use std::io::{self, IsTerminal, Write};

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

/// Whether who listens to our talk sees it on a terminal.
pub fn is_talk_on_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Says something in place of what was said so before, on a terminal; an empty text takes it away.
pub fn talk_over(text: &str) {
    let mut stderr = io::stderr().lock();
    // Back to the beginning of the line, which is emptied.
    let _ = write!(stderr, "\r\x1b[K{text}").and_then(|()| stderr.flush());
}
