//! Rows of a delimited text file: RFC 4180 quoting, any one-byte delimiter, comments, lines ended by LF or CRLF.
//!
//! A row is found with `memchr` and its fields are ranges of the raw bytes; text is copied only in rows that hold a
//! quote. Line and column of every field are known. A row may not exceed [`ROW_BYTES_MAX`]; a longer one is passed over up to
//! its end, also where that is behind a closing quote.

use std::io::{self, BufRead};

use super::row_end::RowEnd;

/// The longest row accepted. A quote that never closes would otherwise swallow the rest of the file into memory.
pub const ROW_BYTES_MAX: usize = 16 << 20;

/// How a file separates and quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// Between fields.
    pub delimiter: u8,
    /// Around fields that hold delimiters, quotes or line ends; `None` if the file has no quoting.
    pub quote: Option<u8>,
    /// Lines that begin with it are skipped.
    pub comment: Option<u8>,
}

impl Default for Dialect {
    fn default() -> Dialect {
        Dialect { delimiter: b',', quote: Some(b'"'), comment: None }
    }
}

#[derive(Clone, Copy, Debug)]
struct Span {
    start: u32,
    end: u32,
    column: u32,
    quoted: bool,
}

/// One field of the current row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// Its bytes without quotes.
    pub bytes: &'a [u8],
    /// Column of its first byte in the row, from 1.
    pub column: u32,
    /// Whether it stood in quotes.
    pub quoted: bool,
}

impl<'a> Field<'a> {
    /// The field as text.
    pub fn text(&self) -> Result<&'a str, String> {
        std::str::from_utf8(self.bytes)
            .map_err(|error| format!("not UTF-8 from byte {} of the field on", error.valid_up_to() + 1))
    }
}

/// What [`Rows::next_row`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowStatus {
    /// A row; its fields can be read.
    Row,
    /// A row that cannot be split: the column and why.
    Broken(u32, String),
    /// Nothing is left.
    End,
}

/// A reader of rows.
pub struct Rows<R> {
    input: R,
    dialect: Dialect,
    line: u64,
    lines_taken: u64,
    /// Bytes of the last line, with its end.
    taken: usize,
    /// Whether that end was CRLF: within quotes it is a part of the field.
    ended_with_return: bool,
    skipped: usize,
    raw: Vec<u8>,
    unquoted: Vec<u8>,
    spans: Vec<Span>,
    /// Whether the spans point into `unquoted` instead of `raw`.
    copied: bool,
}

impl<R: BufRead> Rows<R> {
    /// Reads rows from `input`.
    pub fn new(input: R, dialect: Dialect) -> Rows<R> {
        Rows {
            input,
            dialect,
            line: 0,
            lines_taken: 0,
            taken: 0,
            ended_with_return: false,
            skipped: 0,
            raw: Vec::new(),
            unquoted: Vec::new(),
            spans: Vec::new(),
            copied: false,
        }
    }

    /// Goes on with another input, whose lines are counted from 1.
    pub fn restart(&mut self, input: R) {
        (self.input, self.lines_taken, self.skipped) = (input, 0, 0);
    }

    /// What is left to be read, and the number of lines taken so far.
    pub fn into_input(self) -> (R, u64) {
        (self.input, self.lines_taken)
    }

    /// Bytes of empty lines and comments passed over so far.
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// What is left to be read.
    pub fn input(&self) -> &R {
        &self.input
    }

    /// Line on which the current row begins, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The current row as it stands in the file, without its line end.
    pub fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// Number of fields of the current row.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// A field of the current row.
    pub fn field(&self, index: usize) -> Option<Field<'_>> {
        let span = self.spans.get(index)?;
        let text = if self.copied { &self.unquoted } else { &self.raw };
        Some(Field { bytes: &text[span.start as usize..span.end as usize], column: span.column, quoted: span.quoted })
    }

    /// Goes to the next row; empty lines and comments are passed over.
    pub fn next_row(&mut self) -> io::Result<RowStatus> {
        loop {
            self.raw.clear();
            self.line = self.lines_taken + 1;
            match self.take_line()? {
                Line::End => return Ok(RowStatus::End),
                Line::TooLong => return Ok(too_long()),
                Line::Taken => {}
            }
            if self.raw.is_empty()
                || (self.dialect.comment.is_some() && self.raw.first() == self.dialect.comment.as_ref())
            {
                self.skipped += self.taken;
                continue;
            }
            return self.split();
        }
    }

    /// Appends one line to `raw`, without its end.
    fn take_line(&mut self) -> io::Result<Line> {
        self.taken = 0;
        let mut any = false;
        loop {
            let buffer = match self.input.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if buffer.is_empty() {
                if !any {
                    return Ok(Line::End);
                }
                break;
            }
            any = true;
            let (part, used, ended) = match memchr::memchr(b'\n', buffer) {
                Some(at) => (&buffer[..at], at + 1, true),
                None => (buffer, buffer.len(), false),
            };
            if self.raw.len() + part.len() > ROW_BYTES_MAX {
                self.pass_over_row()?;
                return Ok(Line::TooLong);
            }
            self.raw.extend_from_slice(part);
            self.taken += used;
            self.input.consume(used);
            if ended {
                break;
            }
        }
        self.lines_taken += 1;
        self.ended_with_return = self.raw.last() == Some(&b'\r');
        if self.ended_with_return {
            self.raw.pop();
        }
        Ok(Line::Taken)
    }

    /// Goes to the end of a row that is too long; `raw` holds what was read of it, and is cut short.
    fn pass_over_row(&mut self) -> io::Result<()> {
        let mut row = RowEnd::new(self.dialect);
        row.find(&self.raw);
        self.raw.truncate(256);
        loop {
            let buffer = match self.input.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if buffer.is_empty() {
                self.lines_taken += 1;
                return if row.is_quoted() { Err(never_closes(&self.raw)) } else { Ok(()) };
            }
            let end = row.find(buffer);
            let used = end.unwrap_or(buffer.len());
            self.lines_taken += memchr::memchr_iter(b'\n', &buffer[..used]).count() as u64;
            self.taken += used;
            self.input.consume(used);
            if end.is_some() {
                return Ok(());
            }
        }
    }

    fn split(&mut self) -> io::Result<RowStatus> {
        self.spans.clear();
        self.copied = false;
        let quote = match self.dialect.quote {
            Some(quote) if memchr::memchr(quote, &self.raw).is_some() => quote,
            _ => {
                let mut start = 0;
                for at in memchr::memchr_iter(self.dialect.delimiter, &self.raw) {
                    self.spans.push(span(start, at));
                    start = at + 1;
                }
                self.spans.push(span(start, self.raw.len()));
                return Ok(RowStatus::Row);
            }
        };
        self.copied = true;
        self.unquoted.clear();
        self.split_quoted(quote)
    }

    fn split_quoted(&mut self, quote: u8) -> io::Result<RowStatus> {
        let delimiter = self.dialect.delimiter;
        let mut at = 0;
        loop {
            let column = at as u32 + 1;
            let start = self.unquoted.len() as u32;
            let quoted = self.raw.get(at) == Some(&quote);
            if quoted {
                at += 1;
                loop {
                    match memchr::memchr(quote, &self.raw[at..]) {
                        Some(length) if self.raw.get(at + length + 1) == Some(&quote) => {
                            self.unquoted.extend_from_slice(&self.raw[at..=at + length]);
                            at += length + 2;
                        }
                        Some(length) => {
                            self.unquoted.extend_from_slice(&self.raw[at..at + length]);
                            at += length + 1;
                            break;
                        }
                        None => {
                            // The field goes on in the next line.
                            self.raw.extend_from_slice(if self.ended_with_return { b"\r\n" } else { b"\n" });
                            self.unquoted.extend_from_slice(&self.raw[at..]);
                            at = self.raw.len();
                            match self.take_line()? {
                                Line::Taken => {}
                                Line::TooLong => return Ok(too_long()),
                                Line::End => {
                                    return Ok(RowStatus::Broken(
                                        column,
                                        "the quote that opens here never closes".into(),
                                    ));
                                }
                            }
                        }
                    }
                }
                if at < self.raw.len() && self.raw[at] != delimiter {
                    let found = self.raw[at] as char;
                    return Ok(RowStatus::Broken(
                        at as u32 + 1,
                        format!(
                            "'{}' after a closing quote; a quote inside a field is written twice",
                            found.escape_default()
                        ),
                    ));
                }
            } else {
                let length = memchr::memchr(delimiter, &self.raw[at..]).unwrap_or(self.raw.len() - at);
                self.unquoted.extend_from_slice(&self.raw[at..at + length]);
                at += length;
            }
            self.spans.push(Span { start, end: self.unquoted.len() as u32, column, quoted });
            if at >= self.raw.len() {
                return Ok(RowStatus::Row);
            }
            at += 1;
            if at == self.raw.len() {
                let end = self.unquoted.len() as u32;
                self.spans.push(Span { start: end, end, column: at as u32 + 1, quoted: false });
                return Ok(RowStatus::Row);
            }
        }
    }
}

enum Line {
    Taken,
    TooLong,
    End,
}

fn span(start: usize, end: usize) -> Span {
    Span { start: start as u32, end: end as u32, column: start as u32 + 1, quoted: false }
}

/// Why a file ends in a row that is too long, of which `row` is the beginning.
pub fn never_closes(row: &[u8]) -> io::Error {
    let beginning: String = String::from_utf8_lossy(row).chars().take(60).collect();
    let reason = format!(
        "a quote never closes in the row that begins with {beginning:?}, which is longer than {} MiB; nothing behind it can be read",
        ROW_BYTES_MAX >> 20
    );
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

fn too_long() -> RowStatus {
    RowStatus::Broken(0, format!("the row is longer than {} MiB; does a quote not close?", ROW_BYTES_MAX >> 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, dialect: Dialect) -> Vec<String> {
        // The smallest buffer puts every line end on a buffer's edge once.
        let mut rows = Rows::new(io::BufReader::with_capacity(1, text.as_bytes()), dialect);
        let mut found = Vec::new();
        loop {
            match rows.next_row().expect("memory cannot fail") {
                RowStatus::End => return found,
                RowStatus::Broken(column, reason) => found.push(format!("{}:{column} {reason}", rows.line())),
                RowStatus::Row => {
                    let fields: Vec<String> = (0..rows.len())
                        .map(|index| {
                            let field = rows.field(index).expect("in range");
                            format!("{}@{}", field.text().expect("UTF-8"), field.column)
                        })
                        .collect();
                    found.push(format!("{}: {}", rows.line(), fields.join("/")));
                }
            }
        }
    }

    #[test]
    fn splits_rows() {
        let cases: &[(&str, &[&str])] = &[
            ("", &[]),
            ("a,b", &["1: a@1/b@3"]),
            ("a,b\n\nc,\r\n", &["1: a@1/b@3", "3: c@1/@3"]),
            (",\n", &["1: @1/@2"]),
            ("\"a,b\",c", &["1: a,b@1/c@7"]),
            ("\"a\"\"b\",\"\"\n", &["1: a\"b@1/@8"]),
            ("\"a\nb\",c\nd,e", &["1: a\nb@1/c@7", "3: d@1/e@3"]),
            ("\"a\r\n\r\nb\r\",c\r\nd", &["1: a\r\n\r\nb\r@1/c@11", "4: d@1"]),
            ("x,\"a\",\ny", &["1: x@1/a@3/@7", "2: y@1"]),
            ("x,\"a\nb", &["1:3 the quote that opens here never closes"]),
            ("\"a\"b,c\nd", &["1:4 'b' after a closing quote; a quote inside a field is written twice", "2: d@1"]),
            ("it\"s,b", &["1: it\"s@1/b@6"]),
        ];
        for (text, expected) in cases {
            assert_eq!(&rows(text, Dialect::default()), expected, "{text:?}");
        }
    }

    #[test]
    fn honours_the_dialect() {
        let pipes = Dialect { delimiter: b'|', quote: None, comment: Some(b'#') };
        assert_eq!(rows("# no\na|\"b|c\n", pipes), ["2: a@1/\"b@3/c@6"]);
    }

    #[test]
    fn refuses_endless_rows_and_goes_on() {
        let text = format!("{}\nb\n", "a".repeat(ROW_BYTES_MAX + 1));
        let mut rows = Rows::new(text.as_bytes(), Dialect::default());
        assert!(matches!(rows.next_row(), Ok(RowStatus::Broken(0, _))));
        assert_eq!(rows.next_row().expect("memory cannot fail"), RowStatus::Row);
        assert_eq!(rows.line(), 2);
    }

    #[test]
    fn a_long_quoted_field_is_one_row() {
        let lines = "a,b\n".repeat(ROW_BYTES_MAX / 4);
        for (beginning, end) in [("\"", "\",x\nb,c\n"), ("x,\"a\nb", "\"\"\n\"\nb,c\n"), ("\"\n", "\"x\nb,c\n")] {
            let text = format!("{beginning}{lines}{lines}{end}");
            let mut rows = Rows::new(text.as_bytes(), Dialect::default());
            let status = rows.next_row().expect("memory cannot fail");
            assert!(matches!(&status, RowStatus::Broken(0, reason) if reason.contains("longer than")), "{status:?}");
            assert_eq!((rows.next_row().expect("memory cannot fail"), rows.len()), (RowStatus::Row, 2));
            assert_eq!(rows.line(), text.lines().count() as u64);
            assert_eq!(rows.next_row().expect("memory cannot fail"), RowStatus::End);
        }
        let text = format!("x,\"{lines}{lines}");
        let error = Rows::new(text.as_bytes(), Dialect::default()).next_row().expect_err("it never ends");
        assert!(error.to_string().contains("never closes"), "{error}");
    }
}
