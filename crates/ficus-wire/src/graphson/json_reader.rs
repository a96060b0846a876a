//! Pulls JSON tokens from bytes, without a tree in between.
//!
//! A caller asks for the token it expects: a bracket, a key, a string, a number. Strings without escapes are borrowed
//! from the input.

use std::borrow::Cow;

use crate::{DecodeError, DecodeErrorKind, Limits};

pub(crate) type Result<T> = std::result::Result<T, Box<DecodeError>>;

/// A cursor over JSON text, with the counters that [`Limits`] bound.
pub(crate) struct JsonReader<'a> {
    bytes: &'a [u8],
    offset: usize,
    pub(super) limits: &'a Limits,
    items: usize,
    depth: usize,
}

impl<'a> JsonReader<'a> {
    pub(crate) fn new(bytes: &'a [u8], limits: &'a Limits) -> JsonReader<'a> {
        JsonReader { bytes, offset: 0, limits, items: 0, depth: 0 }
    }

    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    /// Bytes of the whole text.
    pub(super) fn length(&self) -> usize {
        self.bytes.len()
    }

    /// Goes back, or forward to a place once read.
    pub(super) fn seek(&mut self, offset: usize) {
        self.offset = offset;
    }

    pub(super) fn fail<T>(
        &self,
        kind: DecodeErrorKind,
        expected: impl Into<Cow<'static, str>>,
        found: impl Into<Cow<'static, str>>,
    ) -> Result<T> {
        Err(DecodeError::new(kind, self.offset, expected, found))
    }

    /// An error that shows the text at the cursor.
    pub(super) fn unexpected<T>(&self, expected: impl Into<Cow<'static, str>>) -> Result<T> {
        let rest = &self.bytes[self.offset.min(self.bytes.len())..];
        let found = match rest {
            [] => "the end".to_owned(),
            _ => format!("{:?}", String::from_utf8_lossy(&rest[..rest.len().min(20)])),
        };
        self.fail(DecodeErrorKind::Malformed, expected, found)
    }

    /// Goes one level deeper; [`JsonReader::leave`] comes back. An error on the way ends the reading anyway.
    pub(super) fn enter(&mut self) -> Result<()> {
        if self.depth == self.limits.nesting {
            let limit = format!("{} levels of nesting", self.limits.nesting);
            return self.fail(DecodeErrorKind::Limit, limit, "values nested deeper");
        }
        self.depth += 1;
        Ok(())
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    pub(super) fn count_item(&mut self) -> Result<()> {
        self.items += 1;
        if self.items > self.limits.items {
            let limit = format!("{} values", self.limits.items);
            return self.fail(DecodeErrorKind::Limit, limit, "more values");
        }
        Ok(())
    }

    /// The next byte that is not space, without consuming it.
    pub(super) fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.bytes.get(self.offset) {
            self.offset += 1;
        }
        self.bytes.get(self.offset).copied()
    }

    pub(super) fn expect(&mut self, byte: u8, what: &'static str) -> Result<()> {
        if self.peek() != Some(byte) {
            return self.unexpected(what);
        }
        self.offset += 1;
        Ok(())
    }

    /// Consumes `byte` if it is next.
    pub(super) fn accept(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.offset += usize::from(found);
        found
    }

    /// Refuses anything but space after the end of a value or message.
    pub(crate) fn finish(&mut self) -> Result<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => self.unexpected("the end"),
        }
    }

    pub(super) fn literal(&mut self, word: &'static str) -> Result<()> {
        if self.bytes[self.offset..].starts_with(word.as_bytes()) {
            self.offset += word.len();
            return Ok(());
        }
        self.unexpected("a JSON value")
    }

    /// The next key of an object, or `None` at its end; its value has to be consumed before the next call. `first` says
    /// that nothing was read since the opening bracket.
    pub(super) fn next_key(&mut self, first: &mut bool) -> Result<Option<Cow<'a, str>>> {
        if self.accept(b'}') {
            return Ok(None);
        }
        if !std::mem::replace(first, false) {
            self.expect(b',', "a comma or the end of an object")?;
        }
        self.key().map(Some)
    }

    /// Whether an array has a next element; it has to be consumed before the next call.
    pub(super) fn next_element(&mut self, first: &mut bool) -> Result<bool> {
        if self.accept(b']') {
            return Ok(false);
        }
        if !std::mem::replace(first, false) {
            self.expect(b',', "a comma or the end of an array")?;
        }
        Ok(true)
    }

    /// A member's key and colon.
    pub(super) fn key(&mut self) -> Result<Cow<'a, str>> {
        let key = self.string("a member's name")?;
        self.expect(b':', "a colon")?;
        Ok(key)
    }

    pub(super) fn string(&mut self, what: &'static str) -> Result<Cow<'a, str>> {
        if self.peek() != Some(b'"') {
            return self.unexpected(what);
        }
        let start = self.offset + 1;
        let mut end = start;
        loop {
            match self.bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => return self.escaped_string(start, end),
                Some(0..0x20) | None => {
                    self.offset = end;
                    return self.unexpected("the end of a string");
                }
                Some(_) => end += 1,
            }
        }
        let text = self.utf8(start, end)?;
        self.offset = end + 1;
        Ok(Cow::Borrowed(text))
    }

    fn utf8(&self, start: usize, end: usize) -> Result<&'a str> {
        std::str::from_utf8(&self.bytes[start..end]).map_err(|error| {
            let at = start + error.valid_up_to();
            DecodeError::new(DecodeErrorKind::Malformed, at, "UTF-8 text", "bytes that are not")
        })
    }

    /// A string from its first escape on.
    fn escaped_string(&mut self, start: usize, first_escape: usize) -> Result<Cow<'a, str>> {
        let mut text = self.utf8(start, first_escape)?.to_owned();
        self.offset = first_escape;
        loop {
            let run_start = self.offset;
            let run = self.bytes[run_start..].iter().position(|&byte| byte == b'"' || byte == b'\\' || byte < 0x20);
            let Some(run) = run else {
                self.offset = self.bytes.len();
                return self.unexpected("the end of a string");
            };
            text.push_str(self.utf8(run_start, run_start + run)?);
            self.offset = run_start + run;
            match self.bytes[self.offset] {
                b'"' => {
                    self.offset += 1;
                    return Ok(Cow::Owned(text));
                }
                b'\\' => text.push(self.escape()?),
                _ => return self.unexpected("the end of a string"),
            }
        }
    }

    /// One escape sequence, the cursor being at its backslash.
    fn escape(&mut self) -> Result<char> {
        let character = match self.bytes.get(self.offset + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => return self.unexpected("an escape sequence"),
        };
        self.offset += 2;
        Ok(character)
    }

    fn unicode_escape(&mut self) -> Result<char> {
        let start = self.offset;
        let high = self.code_unit(start)?;
        let code_point = match high {
            0xd800..0xdc00 => match self.code_unit(start + 6) {
                Ok(low @ 0xdc00..0xe000) => 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00),
                _ => return self.unexpected("a pair of surrogates"),
            },
            other => other,
        };
        match char::from_u32(code_point) {
            Some(character) => {
                self.offset = start + if code_point > 0xffff { 12 } else { 6 };
                Ok(character)
            }
            None => self.unexpected("a pair of surrogates"),
        }
    }

    /// The four hexadecimal digits of `\uXXXX` at `at`.
    fn code_unit(&self, at: usize) -> Result<u32> {
        let digits = match self.bytes.get(at..at + 6) {
            Some([b'\\', b'u', digits @ ..]) if digits.iter().all(u8::is_ascii_hexdigit) => digits,
            _ => return self.unexpected("\\u and four hexadecimal digits"),
        };
        let digits = std::str::from_utf8(digits).expect("hexadecimal digits are ASCII");
        Ok(u32::from_str_radix(digits, 16).expect("four hexadecimal digits fit 32 bits"))
    }

    /// The text of a number, checked against JSON's grammar.
    pub(super) fn number(&mut self) -> Result<&'a str> {
        self.peek();
        let start = self.offset;
        let mut at = start + usize::from(self.bytes.get(start) == Some(&b'-'));
        let whole = self.digits_at(at);
        let leading_zero = whole > 1 && self.bytes[at] == b'0';
        at += whole;
        let mut well_formed = whole > 0 && !leading_zero;
        if self.bytes.get(at) == Some(&b'.') {
            let fraction = self.digits_at(at + 1);
            well_formed &= fraction > 0;
            at += 1 + fraction;
        }
        if let Some(b'e' | b'E') = self.bytes.get(at) {
            at += 1;
            at += usize::from(matches!(self.bytes.get(at), Some(b'+' | b'-')));
            let exponent = self.digits_at(at);
            well_formed &= exponent > 0;
            at += exponent;
        }
        if !well_formed {
            return self.unexpected("a number");
        }
        if at - start > self.limits.digits {
            let limit = format!("{} digits", self.limits.digits);
            return self.fail(DecodeErrorKind::Limit, limit, format!("a number of {} digits", at - start));
        }
        self.offset = at;
        self.utf8(start, at)
    }

    fn digits_at(&self, at: usize) -> usize {
        self.bytes.get(at..).map_or(0, |rest| rest.iter().take_while(|byte| byte.is_ascii_digit()).count())
    }

    /// Passes over one value of any kind, checking its syntax.
    pub(super) fn skip_value(&mut self) -> Result<()> {
        match self.peek() {
            Some(b'{') => self.skip_object(),
            Some(b'[') => self.skip_array(),
            Some(b'"') => self.string("a string").map(drop),
            Some(b't') => self.literal("true"),
            Some(b'f') => self.literal("false"),
            Some(b'n') => self.literal("null"),
            _ => self.number().map(drop),
        }
    }

    fn skip_object(&mut self) -> Result<()> {
        self.enter()?;
        self.expect(b'{', "an object")?;
        let mut first = true;
        while self.next_key(&mut first)?.is_some() {
            self.skip_value()?;
        }
        self.leave();
        Ok(())
    }

    fn skip_array(&mut self) -> Result<()> {
        self.enter()?;
        self.expect(b'[', "an array")?;
        let mut first = true;
        while self.next_element(&mut first)? {
            self.skip_value()?;
        }
        self.leave();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(json: &str) -> Option<String> {
        let limits = Limits::default();
        let mut reader = JsonReader::new(json.as_bytes(), &limits);
        reader.string("a string").and_then(|text| reader.finish().map(|()| text.into_owned())).ok()
    }

    #[test]
    fn strings_are_unescaped() {
        let check = |json: &str, expected: Option<&str>| assert_eq!(string(json).as_deref(), expected, "{json}");
        check(r#" "abc" "#, Some("abc"));
        check(r#""a\"b\\c\/\b\f\n\r\t""#, Some("a\"b\\c/\u{8}\u{c}\n\r\t"));
        check(r#""é\u00e9\u20AC\ud83d\ude00!""#, Some("éé€😀!"));
        for wrong in [r#"""#, r#""\x""#, r#""\u12""#, r#""\ud83d""#, r#""\ud83dx""#, r#""\ude00""#, "\"a\nb\"", r#""\"#]
        {
            check(wrong, None);
        }
    }

    #[test]
    fn numbers_follow_the_grammar() {
        let check = |json: &str, expected: bool| {
            let limits = Limits { digits: 12, ..Limits::default() };
            let mut reader = JsonReader::new(json.as_bytes(), &limits);
            let accepted = reader.number().and_then(|_| reader.finish()).is_ok();
            assert_eq!(accepted, expected, "{json}");
        };
        for right in ["0", "-1", "10", "1.5", "-0.0", "1e5", "1.5E-10", "123456789012"] {
            check(right, true);
        }
        for wrong in ["", "-", "01", "1.", ".5", "1e", "1e+", "+1", "0x1", "NaN", "1234567890123"] {
            check(wrong, false);
        }
    }

    #[test]
    fn skipping_checks_syntax_and_depth() {
        let check = |json: &str, expected: bool| {
            let limits = Limits { nesting: 3, ..Limits::default() };
            let mut reader = JsonReader::new(json.as_bytes(), &limits);
            assert_eq!(reader.skip_value().and_then(|()| reader.finish()).is_ok(), expected, "{json}");
        };
        check(r#"{"a":[1,{"b":null}],"c":true}"#, true);
        check("[[[]]]", true);
        check("[[[[]]]]", false);
        for wrong in ["", "[1 2]", "[1,]", "{\"a\"}", "{\"a\":1,}", "{a:1}", "tru", "[1", "nul"] {
            check(wrong, false);
        }
    }
}
