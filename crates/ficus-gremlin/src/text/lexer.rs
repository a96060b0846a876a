//! Text to signs: words, numbers, strings and punctuation, one at a time and without copying.
//!
//! The lexer has no state but the text. Blanks and `//` comments are skipped between signs. A string knows whether it
//! has escapes; what they mean is read later, by [`super::literal`]. Mistakes are signs too, explained when met.

use super::error::{SyntaxError, SyntaxErrorKind};

/// What a sign is. One byte without a payload, so that a sign is copied in whole registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An identifier or keyword.
    Word,
    /// An integer with its sign and suffix.
    Integer,
    /// A number with a point, an exponent or a decimal suffix; also a signed `Infinity`.
    Decimal,
    /// A quoted string without a backslash.
    Text,
    /// A quoted string with one.
    EscapedText,
    Open,
    Close,
    OpenBrace,
    CloseBrace,
    OpenBracket,
    CloseBracket,
    Semicolon,
    Comma,
    Range,
    Dot,
    Colon,
    /// A character that begins nothing.
    Stray,
    /// A string without an end, or a number that runs into a word; [`broken`] says more.
    Broken,
    /// The end of the text.
    End,
}

/// A sign and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sign {
    /// What it is.
    pub(crate) kind: Kind,
    /// Where it begins.
    pub(crate) start: usize,
    /// Where it ends.
    pub(crate) end: usize,
}

/// The first place at or after `position` that is neither blank nor in a comment.
#[inline]
pub(crate) fn skip_blanks(text: &str, mut position: usize) -> usize {
    let bytes = text.as_bytes();
    while let Some(byte) = bytes.get(position) {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' | 0x0C => position += 1,
            b'/' if bytes.get(position + 1) == Some(&b'/') => {
                match bytes[position..].iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
                    Some(length) => position += length,
                    None => return bytes.len(),
                }
            }
            _ => break,
        }
    }
    position
}

/// Whether `character` may begin an identifier.
fn begins_word(character: char) -> bool {
    character.is_ascii_alphabetic()
        || matches!(character, '_' | '$')
        || (!character.is_ascii()
            && (character.is_alphabetic()
                || matches!(character, '\u{A2}'..='\u{A5}' | '\u{20A0}'..='\u{20C0}' | '\u{203F}' | '\u{2040}')))
}

/// Whether `character` may continue an identifier.
fn continues_word(character: char) -> bool {
    begins_word(character)
        || character.is_ascii_digit()
        || (!character.is_ascii()
            && (character.is_numeric() || matches!(character, '\u{300}'..='\u{36F}' | '\u{200B}'..='\u{200F}')))
}

/// The end of the word that begins at `start`.
#[inline]
fn word_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let mut end = start;
    while let Some(byte) = bytes.get(end) {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') {
            end += 1;
        } else if byte.is_ascii() {
            break;
        } else {
            match text[end..].chars().next() {
                Some(character) if continues_word(character) => end += character.len_utf8(),
                _ => break,
            }
        }
    }
    end
}

/// The sign at `position`, which must not be blank (see [`skip_blanks`]).
// Inlined into its one hot caller, so that the sign goes straight to where it is kept.
#[inline(always)]
pub(crate) fn sign_at(text: &str, position: usize) -> Sign {
    let bytes = text.as_bytes();
    let Some(&byte) = bytes.get(position) else {
        return Sign { kind: Kind::End, start: text.len(), end: text.len() };
    };
    let single = |kind| Sign { kind, start: position, end: position + 1 };
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' => {
            Sign { kind: Kind::Word, start: position, end: word_end(text, position) }
        }
        b'(' => single(Kind::Open),
        b')' => single(Kind::Close),
        b'{' => single(Kind::OpenBrace),
        b'}' => single(Kind::CloseBrace),
        b'[' => single(Kind::OpenBracket),
        b']' => single(Kind::CloseBracket),
        b';' => single(Kind::Semicolon),
        b',' => single(Kind::Comma),
        b':' => single(Kind::Colon),
        b'.' => match bytes.get(position + 1) {
            Some(b'.') => Sign { kind: Kind::Range, start: position, end: position + 2 },
            Some(b'0'..=b'9') => number(text, position),
            _ => single(Kind::Dot),
        },
        b'"' | b'\'' => string(text, position, byte),
        b'0'..=b'9' => number(text, position),
        b'+' | b'-' => match bytes.get(position + 1) {
            Some(b'0'..=b'9') => number(text, position),
            Some(b'.') if bytes.get(position + 2).is_some_and(u8::is_ascii_digit) => number(text, position),
            Some(b'I') if &text[position + 1..word_end(text, position + 1)] == "Infinity" => {
                Sign { kind: Kind::Decimal, start: position, end: position + 1 + "Infinity".len() }
            }
            _ => single(Kind::Stray),
        },
        _ => {
            let character = text[position..].chars().next().unwrap_or('\u{FFFD}');
            let end = position + character.len_utf8();
            if begins_word(character) {
                Sign { kind: Kind::Word, start: position, end: word_end(text, end) }
            } else {
                Sign { kind: Kind::Stray, start: position, end }
            }
        }
    }
}

fn string(text: &str, start: usize, quote: u8) -> Sign {
    let bytes = text.as_bytes();
    let mut kind = Kind::Text;
    let mut position = start + 1;
    while let Some(&byte) = bytes.get(position) {
        if byte == quote {
            return Sign { kind, start, end: position + 1 };
        }
        if byte == b'\\' {
            kind = Kind::EscapedText;
            position += 1;
        }
        position += 1;
    }
    Sign { kind: Kind::Broken, start, end: start + 1 }
}

/// What is wrong with a broken sign.
#[cold]
pub(crate) fn broken(text: &str, sign: Sign) -> Box<SyntaxError> {
    let written = &text[sign.start..sign.end];
    if written.starts_with(['"', '\'']) {
        let message = format!("this string has no closing {written}");
        return SyntaxError::at(text, (sign.start, sign.end), SyntaxErrorKind::UnterminatedString, message)
            .advising(format!("close it with {written}, and write a {written} inside it as \\{written}"));
    }
    let message = format!("{} is neither a number nor a name", clip(written));
    SyntaxError::at(text, (sign.start, sign.end), SyntaxErrorKind::InvalidNumber, message).advising(
        "a number may end in B, S, I, L or N (byte, short, int, long, BigInteger) or F, D or M (float, double, BigDecimal)",
    )
}

fn number(text: &str, start: usize) -> Sign {
    let bytes = text.as_bytes();
    let byte_at = |position: usize| bytes.get(position).copied().unwrap_or(0);
    let digits = |mut position: usize| {
        while byte_at(position).is_ascii_digit() || byte_at(position) == b'_' {
            position += 1;
        }
        position
    };
    let mut position = start;
    if matches!(byte_at(position), b'+' | b'-') {
        position += 1;
    }
    let mut kind = Kind::Integer;
    if byte_at(position) == b'0' && matches!(byte_at(position + 1), b'x' | b'X') {
        position += 2;
        while byte_at(position).is_ascii_hexdigit() || byte_at(position) == b'_' {
            position += 1;
        }
        if matches!(byte_at(position), b's' | b'S' | b'n' | b'N' | b'i' | b'I' | b'l' | b'L') {
            position += 1;
        }
    } else {
        position = digits(position);
        if byte_at(position) == b'.' && byte_at(position + 1).is_ascii_digit() {
            kind = Kind::Decimal;
            position = digits(position + 1);
        }
        if matches!(byte_at(position), b'e' | b'E') {
            let exponent = position + 1 + usize::from(matches!(byte_at(position + 1), b'+' | b'-'));
            if byte_at(exponent).is_ascii_digit() {
                kind = Kind::Decimal;
                position = digits(exponent);
            }
        }
        match byte_at(position) {
            b'f' | b'F' | b'd' | b'D' | b'm' | b'M' => {
                kind = Kind::Decimal;
                position += 1;
            }
            b'b' | b'B' | b's' | b'S' | b'n' | b'N' | b'i' | b'I' | b'l' | b'L' if kind == Kind::Integer => {
                position += 1;
            }
            _ => {}
        }
    }
    let end = word_end(text, position);
    if end > position { Sign { kind: Kind::Broken, start, end } } else { Sign { kind, start, end: position } }
}

/// `text`, shortened where a message would become unreadable.
pub(crate) fn clip(text: &str) -> String {
    const SHOWN: usize = 40;
    if text.chars().count() <= SHOWN { text.to_string() } else { text.chars().take(SHOWN).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(Kind, &str)> {
        let mut signs = Vec::new();
        let mut position = skip_blanks(text, 0);
        loop {
            let sign = sign_at(text, position);
            if sign.kind == Kind::End {
                return signs;
            }
            signs.push((sign.kind, &text[sign.start..sign.end]));
            position = skip_blanks(text, sign.end);
        }
    }

    #[test]
    fn signs_are_cut_where_the_grammar_cuts_them() {
        use Kind::*;
        let cases: &[(&str, &[(Kind, &str)])] = &[
            ("", &[]),
            (" \t\r\n\u{c} ", &[]),
            ("// only a comment", &[]),
            ("a//b\nc", &[(Word, "a"), (Word, "c")]),
            ("a//b\rc", &[(Word, "a"), (Word, "c")]),
            ("1..5", &[(Integer, "1"), (Range, ".."), (Integer, "5")]),
            ("-1..-5", &[(Integer, "-1"), (Range, ".."), (Integer, "-5")]),
            (".5 +.5e-3", &[(Decimal, ".5"), (Decimal, "+.5e-3")]),
            ("1e2 1E+2f 1m", &[(Decimal, "1e2"), (Decimal, "1E+2f"), (Decimal, "1m")]),
            ("0xFFb 0xABCl", &[(Integer, "0xFFb"), (Integer, "0xABCl")]),
            ("1_000L 07n", &[(Integer, "1_000L"), (Integer, "07n")]),
            ("-Infinity Infinity", &[(Decimal, "-Infinity"), (Word, "Infinity")]),
            ("'a\\'b'", &[(EscapedText, "'a\\'b'")]),
            ("\"//no comment\"", &[(Text, "\"//no comment\"")]),
            ("größe $x _1", &[(Word, "größe"), (Word, "$x"), (Word, "_1")]),
            ("-x", &[(Stray, "-"), (Word, "x")]),
            ("g.V()", &[(Word, "g"), (Dot, "."), (Word, "V"), (Open, "("), (Close, ")")]),
        ];
        for (text, expected) in cases {
            assert_eq!(kinds(text), *expected, "{text}");
        }
    }

    #[test]
    fn broken_strings_and_numbers_are_refused() {
        let cases = [
            ("'abc", SyntaxErrorKind::UnterminatedString),
            ("\"abc\\\"", SyntaxErrorKind::UnterminatedString),
            ("'abc\\", SyntaxErrorKind::UnterminatedString),
            ("12ab", SyntaxErrorKind::InvalidNumber),
            ("1é", SyntaxErrorKind::InvalidNumber),
        ];
        for (text, expected) in cases {
            let sign = sign_at(text, 0);
            assert_eq!((sign.kind, broken(text, sign).kind), (Kind::Broken, expected), "{text}");
        }
    }
}
