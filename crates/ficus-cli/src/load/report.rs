//! Counts of a load and the report of rejected records.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::json;

/// How many records there were and what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Vertices put into the graph.
    pub vertices: u64,
    /// Edges put into the graph.
    pub edges: u64,
    /// Vertices that only edges mention, created as the mapping asks; not among the records read.
    pub implied_vertices: u64,
    /// Records that were read, good or bad.
    pub read: u64,
    /// Records that did not enter the graph.
    pub rejected: u64,
}

impl Counts {
    /// Whether every record that was read was either loaded or rejected.
    pub fn balanced(&self) -> bool {
        self.read == self.vertices + self.edges + self.rejected
    }
}

/// A line of the report about a rejected record.
pub fn entry(file: &str, line: u64, column: u32, reason: &str, row: &str) -> String {
    json!({"file": file, "line": line, "column": column, "reason": reason, "row": row}).to_string()
}

/// Where rejected records are reported: one JSON object per line, with place, reason and row.
pub struct Rejects {
    target: Target,
    bytes: u64,
}

enum Target {
    /// A file, made with the first rejection.
    File { path: PathBuf, writer: Option<BufWriter<File>> },
    /// Somebody who takes lines.
    Lines(Box<dyn Write + Send>),
}

impl Rejects {
    /// A report in the file at `path` that goes on behind its first `bytes`; with 0 it is a new one.
    ///
    /// Errors: `InvalidInput` if the file is shorter.
    pub fn in_file(path: &Path, bytes: u64) -> io::Result<Rejects> {
        let writer = match bytes {
            0 => None,
            _ => {
                let mut file = File::options().write(true).open(path)?;
                if file.metadata()?.len() < bytes {
                    let reason = format!("it is shorter than {bytes} bytes");
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
                }
                file.set_len(bytes)?;
                file.seek(SeekFrom::Start(bytes))?;
                Some(BufWriter::new(file))
            }
        };
        Ok(Rejects { target: Target::File { path: path.to_owned(), writer }, bytes })
    }

    /// A report that `lines` keeps, who has its first `bytes`.
    pub fn to_lines(lines: Box<dyn Write + Send>, bytes: u64) -> Rejects {
        Rejects { target: Target::Lines(lines), bytes }
    }

    /// Hands on what was added; gives the length of the report.
    pub fn flush(&mut self) -> io::Result<u64> {
        match &mut self.target {
            Target::File { writer: Some(writer), .. } => writer.flush()?,
            Target::File { writer: None, .. } => {}
            Target::Lines(lines) => lines.flush()?,
        }
        Ok(self.bytes)
    }

    /// Adds a rejected record.
    pub fn add(&mut self, file: &str, line: u64, column: u32, reason: &str, row: &str) -> io::Result<()> {
        self.add_line(&entry(file, line, column, reason, row))
    }

    /// Adds what somebody else reported.
    pub fn add_line(&mut self, entry: &str) -> io::Result<()> {
        let writer: &mut dyn Write = match &mut self.target {
            Target::Lines(lines) => lines,
            Target::File { path, writer } => match writer {
                Some(writer) => writer,
                none => none.insert(BufWriter::new(File::create(path)?)),
            },
        };
        self.bytes += entry.len() as u64 + 1;
        writer.write_all(entry.as_bytes())?;
        writer.write_all(b"\n")
    }

    /// Hands on what was added; gives the file of the report if there is one.
    pub fn finish(&mut self) -> io::Result<Option<&Path>> {
        self.flush()?;
        Ok(match &self.target {
            Target::File { path, writer: Some(_) } => Some(path),
            _ => None,
        })
    }
}
