//! Cuts a delimited file into pieces that end where a row ends, so that several threads can parse it.
//!
//! Only rows with quotes need a look at each byte: a line end inside quotes does not end a row. A row that is longer than
//! [`ROW_BYTES_MAX`] is cut short but for its end, which [`super::rows`] then reports.

use std::io::{self, Read};

use memchr::{memchr, memchr_iter, memchr2, memrchr};

use super::row_end::RowEnd;
use super::rows::{Dialect, ROW_BYTES_MAX, never_closes};

/// Bytes of a piece: enough that handing it over costs nothing, few enough that pieces of many threads fit in caches.
pub const CHUNK_BYTES: usize = 1 << 20;

/// Whole rows of a file.
#[derive(Debug, Default)]
pub struct Chunk {
    /// The rows.
    pub bytes: Vec<u8>,
    /// Lines that were left out of a row that is too long.
    pub lines_left_out: u64,
}

/// The pieces of one file.
pub struct RowChunks {
    input: Box<dyn Read + Send>,
    dialect: Dialect,
    chunk_bytes: usize,
    /// The beginning of the row that the last piece cut.
    carried: Vec<u8>,
    ended: bool,
}

impl RowChunks {
    /// Cuts what `input` holds.
    pub fn new(input: Box<dyn Read + Send>, dialect: Dialect, chunk_bytes: usize) -> RowChunks {
        RowChunks { input, dialect, chunk_bytes, carried: Vec::new(), ended: false }
    }

    /// The next rows; `None` at the end.
    pub fn next_chunk(&mut self) -> io::Result<Option<Chunk>> {
        let mut buffer = Vec::with_capacity(self.chunk_bytes + self.carried.len());
        buffer.append(&mut self.carried);
        loop {
            if !self.ended {
                let wanted = self.chunk_bytes as u64;
                self.ended = self.input.by_ref().take(wanted).read_to_end(&mut buffer)? < wanted as usize;
            }
            if self.ended {
                return Ok((!buffer.is_empty()).then_some(Chunk { bytes: buffer, lines_left_out: 0 }));
            }
            if let Some(end) = rows_end(&buffer, self.dialect) {
                self.carried.extend_from_slice(&buffer[end..]);
                buffer.truncate(end);
                return Ok(Some(Chunk { bytes: buffer, lines_left_out: 0 }));
            }
            if buffer.len() > ROW_BYTES_MAX {
                return self.cut(buffer).map(Some);
            }
        }
    }

    /// Keeps as much of the row in the buffer, which is too long, as shows that it is, and closes its quote; what comes behind
    /// the row is carried.
    fn cut(&mut self, mut buffer: Vec<u8>) -> io::Result<Chunk> {
        let mut row = RowEnd::new(self.dialect);
        // The buffer has more than that, and no end of a row.
        let (kept, rest) = buffer.split_at(ROW_BYTES_MAX + 1);
        row.find(kept);
        let kept_row = row;
        let mut lines_left_out = memchr_iter(b'\n', rest).count() as u64;
        row.find(rest);
        buffer.truncate(ROW_BYTES_MAX + 1);
        loop {
            self.carried.clear();
            let wanted = self.chunk_bytes as u64;
            self.ended = self.input.by_ref().take(wanted).read_to_end(&mut self.carried)? < wanted as usize;
            let end = row.find(&self.carried);
            let own = end.unwrap_or(self.carried.len());
            lines_left_out += memchr_iter(b'\n', &self.carried[..own]).count() as u64;
            self.carried.drain(..own);
            if end.is_none() && !self.ended {
                continue;
            }
            if end.is_none() && row.is_quoted() {
                return Err(never_closes(&buffer));
            }
            if kept_row.is_quoted() {
                buffer.extend(self.dialect.quote);
            }
            buffer.push(b'\n');
            // The end of the row was counted above, and stands in what is kept.
            return Ok(Chunk { bytes: buffer, lines_left_out: lines_left_out.saturating_sub(1) });
        }
    }
}

/// Where the last whole row ends.
fn rows_end(buffer: &[u8], dialect: Dialect) -> Option<usize> {
    let mut start = 0;
    while let Some(at) = dialect.quote.and_then(|quote| memchr(quote, &buffer[start..])) {
        if let Some(line_end) = memrchr(b'\n', &buffer[start..start + at]) {
            start += line_end + 1;
        }
        match row_end(buffer, start, dialect) {
            Some(end) => start = end,
            None => return (start > 0).then_some(start),
        }
    }
    match memrchr(b'\n', &buffer[start..]) {
        Some(at) => Some(start + at + 1),
        None => (start > 0).then_some(start),
    }
}

/// Where the row that begins at `start` ends, if it ends in the buffer.
fn row_end(buffer: &[u8], start: usize, dialect: Dialect) -> Option<usize> {
    let line_end = |from: usize| memchr(b'\n', &buffer[from..]).map(|at| from + at + 1);
    let is_comment = dialect.comment.is_some() && buffer.get(start) == dialect.comment.as_ref();
    let (Some(quote), false) = (dialect.quote, is_comment) else { return line_end(start) };
    let mut at = start;
    loop {
        if buffer.get(at) == Some(&quote) {
            at += 1;
            loop {
                at += memchr(quote, &buffer[at..])? + 1;
                if buffer.get(at)? != &quote {
                    break;
                }
                at += 1;
            }
            if buffer[at] != dialect.delimiter {
                // The end of the row, or a broken one, which goes to the end of its line.
                return line_end(at);
            }
            at += 1;
        } else {
            at += memchr2(dialect.delimiter, b'\n', &buffer[at..])?;
            if buffer[at] == b'\n' {
                return Some(at + 1);
            }
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::{RowStatus, Rows};
    use super::*;

    fn rows(text: &[u8]) -> Vec<String> {
        let mut rows = Rows::new(text, Dialect::default());
        let mut found = Vec::new();
        loop {
            match rows.next_row().expect("memory cannot fail") {
                RowStatus::End => return found,
                RowStatus::Broken(column, reason) => found.push(format!("{column} {reason}")),
                RowStatus::Row => {
                    let fields = (0..rows.len()).filter_map(|index| rows.field(index));
                    found.push(format!("{:?}", fields.map(|field| field.text()).collect::<Vec<_>>()));
                }
            }
        }
    }

    #[test]
    fn pieces_hold_the_rows_of_the_whole() {
        let texts = [
            "",
            "a,b",
            "a,b\nc,d\n\ne,f",
            "\"a\nb\",c\nd,\"e\n\n\"\"\nf\"\ng,h\n",
            "it\"s,b\n\"x\"y,\"\nz,\"open\nand\nnever",
            "a,\"b\"\r\nc,\"d\r\ne\"\r\n",
        ];
        for text in texts {
            let whole = rows(text.as_bytes());
            for size in 1..text.len() + 2 {
                let input = Box::new(io::Cursor::new(text.as_bytes().to_vec()));
                let mut chunks = RowChunks::new(input, Dialect::default(), size);
                let (mut found, mut bytes) = (Vec::new(), Vec::new());
                while let Some(chunk) = chunks.next_chunk().expect("memory cannot fail") {
                    found.extend(rows(&chunk.bytes));
                    bytes.extend(chunk.bytes);
                }
                assert_eq!(found, whole, "{text:?} in pieces of {size}");
                assert_eq!(bytes, text.as_bytes());
            }
        }
    }

    #[test]
    fn a_row_that_is_too_long_is_cut_and_the_next_is_read() {
        let lines = "a,b\n".repeat(ROW_BYTES_MAX / 4);
        let texts = [
            format!("{}\nb\n", "a".repeat(3 * ROW_BYTES_MAX)),
            format!("{}\nb\n", "a".repeat(ROW_BYTES_MAX + 1)),
            format!("\"{lines}{lines}\"\nb\n"),
            format!("x,\"a\"\"{lines}\"\"\",y\nb\n"),
            format!("\"{lines}\"wrong\"\nb\n"),
            format!("{}\"\"\n\"\nb\n", format!("\"{lines}").trim_end()),
        ];
        for text in texts {
            let lines = text.lines().count() as u64;
            let shown = &text[..10];
            let input = Box::new(io::Cursor::new(text.clone().into_bytes()));
            let mut chunks = RowChunks::new(input, Dialect::default(), 1 << 20);
            let (mut found, mut lines_found) = (Vec::new(), 0);
            while let Some(Chunk { bytes, lines_left_out }) = chunks.next_chunk().expect("memory cannot fail") {
                assert!(bytes.len() < ROW_BYTES_MAX + (2 << 20));
                found.extend(rows(&bytes));
                lines_found += lines_left_out + memchr_iter(b'\n', &bytes).count() as u64;
            }
            assert_eq!(found.len(), 2, "{shown}: {}", found[0]);
            assert!(found[0].contains("longer than"), "{shown}");
            assert_eq!(lines_found, lines, "{shown}");
        }
    }

    #[test]
    fn a_long_row_whose_quote_never_closes_is_an_error() {
        let text = format!("a,\"{}\nb\n", "a".repeat(2 * ROW_BYTES_MAX));
        let mut chunks = RowChunks::new(Box::new(io::Cursor::new(text.into_bytes())), Dialect::default(), 1 << 20);
        let error = chunks.next_chunk().map(drop).expect_err("it never ends").to_string();
        assert!(error.contains("never closes") && error.contains("a,\\\"aaa"), "{error}");
    }
}
