//! What is wrong with a text, where, and what to write instead.

use std::fmt;

/// The kinds of mistakes, each with a stable code for clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SyntaxErrorKind {
    /// Nothing to run: blanks, comments and semicolons only.
    EmptyScript,
    /// A character, word or sign where the grammar has no place for it.
    Unexpected,
    /// A string without its closing quote.
    UnterminatedString,
    /// A backslash followed by something that is no escape.
    InvalidEscape,
    /// A number that is misspelt, or too large for its type.
    InvalidNumber,
    /// A date that is no date.
    InvalidDate,
    /// A UUID that is no UUID.
    InvalidUuid,
    /// A range that is too wide, or whose ends do not fit.
    InvalidRange,
    /// A method call on a traversal that is no step.
    UnknownStep,
    /// A token, type or constant that does not exist.
    UnknownToken,
    /// A step called with arguments it does not take.
    WrongArguments,
    /// A parameter that has no binding.
    UnboundParameter,
    /// A parameter whose value does not suit its place.
    ParameterType,
    /// Groovy that gremlin-lang does not have.
    Unsupported,
    /// Nested deeper than the limit.
    TooDeep,
    /// Longer than the limit.
    TooLarge,
    /// The query had to stop before its text was read.
    Stopped,
}

impl SyntaxErrorKind {
    /// The stable code, e.g. `unknown-step`.
    pub const fn code(self) -> &'static str {
        match self {
            SyntaxErrorKind::EmptyScript => "empty-script",
            SyntaxErrorKind::Unexpected => "unexpected",
            SyntaxErrorKind::UnterminatedString => "unterminated-string",
            SyntaxErrorKind::InvalidEscape => "invalid-escape",
            SyntaxErrorKind::InvalidNumber => "invalid-number",
            SyntaxErrorKind::InvalidDate => "invalid-date",
            SyntaxErrorKind::InvalidUuid => "invalid-uuid",
            SyntaxErrorKind::InvalidRange => "invalid-range",
            SyntaxErrorKind::UnknownStep => "unknown-step",
            SyntaxErrorKind::UnknownToken => "unknown-token",
            SyntaxErrorKind::WrongArguments => "wrong-arguments",
            SyntaxErrorKind::UnboundParameter => "unbound-parameter",
            SyntaxErrorKind::ParameterType => "parameter-type",
            SyntaxErrorKind::Unsupported => "unsupported",
            SyntaxErrorKind::TooDeep => "too-deep",
            SyntaxErrorKind::TooLarge => "too-large",
            SyntaxErrorKind::Stopped => "stopped",
        }
    }
}

/// A text that is not gremlin-lang. Its `Display` is several lines long and meant to be read by whoever wrote the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// The kind of mistake.
    pub kind: SyntaxErrorKind,
    /// Line of the mistake, from 1.
    pub line: u32,
    /// Column of the mistake in characters, from 1.
    pub column: u32,
    /// Byte offset of the mistake.
    pub offset: u32,
    /// What is wrong, in one sentence.
    pub message: Box<str>,
    /// What could stand there instead: signatures, words or signs.
    pub expected: Vec<String>,
    /// The closest existing word, when a word does not exist.
    pub nearest: Option<Box<str>>,
    /// What to do, where more than a signature is needed.
    pub advice: Option<Box<str>>,
    /// The line of the text around the mistake, with a line of carets below it.
    pub excerpt: Box<str>,
}

/// The result of reading a part of a text; boxed, since errors are rare and large.
pub(crate) type Parsed<T> = Result<T, Box<SyntaxError>>;

/// Most characters of a line that an excerpt shows on either side of the mistake.
const EXCERPT_REACH: usize = 60;
/// Most carets under a mistake.
const CARETS: usize = 40;

impl SyntaxError {
    /// An error about `text[start..end]`.
    pub(crate) fn at(
        text: &str,
        (start, end): (usize, usize),
        kind: SyntaxErrorKind,
        message: impl Into<String>,
    ) -> Box<SyntaxError> {
        let start = floor_char_boundary(text, start);
        let end = floor_char_boundary(text, end).max(start);
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
        let line = 1 + text[..start].bytes().filter(|byte| *byte == b'\n').count() as u32;
        let column = 1 + text[line_start..start].chars().count() as u32;
        let excerpt = excerpt(&text[line_start..line_end], start - line_start, end.min(line_end) - line_start);
        Box::new(SyntaxError {
            kind,
            line,
            column,
            offset: start as u32,
            message: message.into().into(),
            expected: Vec::new(),
            nearest: None,
            advice: None,
            excerpt: excerpt.into(),
        })
    }

    pub(crate) fn expecting(mut self: Box<Self>, expected: Vec<String>) -> Box<SyntaxError> {
        self.expected = expected;
        self
    }

    pub(crate) fn near(mut self: Box<Self>, nearest: Option<String>) -> Box<SyntaxError> {
        self.nearest = nearest.map(Into::into);
        self
    }

    pub(crate) fn advising(mut self: Box<Self>, advice: impl Into<String>) -> Box<SyntaxError> {
        self.advice = Some(advice.into().into());
        self
    }
}

fn floor_char_boundary(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

/// `line` around `start..end`, clipped, with carets below; control characters become spaces so that columns hold.
fn excerpt(line: &str, start: usize, end: usize) -> String {
    let before: Vec<char> = line[..start].chars().rev().take(EXCERPT_REACH + 1).collect();
    let clipped_before = before.len() > EXCERPT_REACH;
    let after: Vec<char> = line[start..].chars().take(EXCERPT_REACH + 1).collect();
    let clipped_after = after.len() > EXCERPT_REACH;
    let carets = line[start..end].chars().count().clamp(1, CARETS);
    let mut shown = String::new();
    let mut indent = 0;
    if clipped_before {
        shown.push('…');
        indent += 1;
    }
    for character in before.iter().take(EXCERPT_REACH).rev().chain(after.iter().take(EXCERPT_REACH)) {
        shown.push(if character.is_control() { ' ' } else { *character });
    }
    if clipped_after {
        shown.push('…');
    }
    indent += before.len().min(EXCERPT_REACH);
    format!("{shown}\n{}{}", " ".repeat(indent), "^".repeat(carets))
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "syntax error at line {}, column {}: {}", self.line, self.column, self.message)?;
        for line in self.excerpt.lines() {
            write!(f, "\n  {line}")?;
        }
        if let Some(nearest) = &self.nearest {
            write!(f, "\ndid you mean {nearest}?")?;
        }
        match self.expected.as_slice() {
            [] => {}
            [only] => write!(f, "\nexpected {only}")?,
            several => write!(f, "\nexpected one of: {}", several.join(", "))?,
        }
        if let Some(advice) = &self.advice {
            write!(f, "\n{advice}")?;
        }
        Ok(())
    }
}

impl std::error::Error for SyntaxError {}
