//! Counts of a load and the report file of rejected records.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde_json::json;

/// How many records there were and what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

/// Where rejected records are written: one JSON object per line, with place, reason and row.
pub struct RejectFile {
    path: PathBuf,
    writer: Option<BufWriter<File>>,
    bytes: u64,
}

impl RejectFile {
    /// A report at `path`; the file is made with the first rejection.
    pub fn new(path: &Path) -> RejectFile {
        RejectFile { path: path.to_owned(), writer: None, bytes: 0 }
    }

    /// A report that goes on behind the first `bytes` of the file at `path`.
    ///
    /// Errors: `InvalidInput` if the file is shorter.
    pub fn going_on(path: &Path, bytes: u64) -> io::Result<RejectFile> {
        if bytes == 0 {
            return Ok(RejectFile::new(path));
        }
        let mut file = File::options().write(true).open(path)?;
        if file.metadata()?.len() < bytes {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is shorter than {bytes} bytes")));
        }
        file.set_len(bytes)?;
        file.seek(SeekFrom::Start(bytes))?;
        Ok(RejectFile { path: path.to_owned(), writer: Some(BufWriter::new(file)), bytes })
    }

    /// Hands what was added to the system; gives the length of the file.
    pub fn flush(&mut self) -> io::Result<u64> {
        if let Some(writer) = &mut self.writer {
            writer.flush()?;
        }
        Ok(self.bytes)
    }

    /// Adds a rejected record.
    pub fn add(&mut self, file: &str, line: u64, column: u32, reason: &str, row: &str) -> io::Result<()> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(BufWriter::new(File::create(&self.path)?)),
        };
        let mut entry = json!({"file": file, "line": line, "column": column, "reason": reason, "row": row}).to_string();
        entry.push('\n');
        self.bytes += entry.len() as u64;
        writer.write_all(entry.as_bytes())
    }

    /// Writes everything out; gives the path if there is a report.
    pub fn finish(&mut self) -> io::Result<Option<&Path>> {
        match &mut self.writer {
            Some(writer) => {
                writer.flush()?;
                Ok(Some(&self.path))
            }
            None => Ok(None),
        }
    }
}
