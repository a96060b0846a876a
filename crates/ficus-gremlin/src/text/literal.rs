//! What numbers, strings and ranges mean.
//!
//! An integer is as small as its suffix says; without one it is an int if it fits, else a long, else a BigInteger. Hex
//! digits go before suffixes: `0x1B` is 27. A decimal is a double unless it ends in `F` or `M`.

use std::str::FromStr;
use std::sync::Arc;

use bigdecimal::BigDecimal;
use ficus_model::Value;
use num_bigint::BigInt;

use super::error::{Parsed, SyntaxError, SyntaxErrorKind};
use super::lexer::{Kind, Sign, clip};

/// Longest number in characters: reading an unbounded one takes more than linear time.
const NUMBER_CHARACTERS_MAX: usize = 10_000;
/// Largest power of ten of a BigDecimal: arithmetic on larger ones would take memory without end.
const DECIMAL_EXPONENT_MAX: i64 = 100_000;
/// Most steps between the ends of a range, as in the reference.
const RANGE_STEPS_MAX: u64 = 1_000_000;

/// The value of the integer `sign`.
pub(crate) fn integer(text: &str, sign: Sign) -> Parsed<Value> {
    let written = &text[sign.start..sign.end];
    // The common case first: a few plain digits.
    if written.len() <= 9
        && (written.as_bytes()[0] != b'0' || written.len() == 1)
        && written.bytes().all(|byte| byte.is_ascii_digit())
    {
        return Ok(Value::Int(written.bytes().fold(0, |value, digit| value * 10 + i32::from(digit - b'0'))));
    }
    let error =
        |message: String| SyntaxError::at(text, (sign.start, sign.end), SyntaxErrorKind::InvalidNumber, message);
    if written.len() > NUMBER_CHARACTERS_MAX {
        return Err(error(format!("this number is longer than {NUMBER_CHARACTERS_MAX} characters")));
    }
    let (negative, unsigned) = match written.as_bytes()[0] {
        b'-' => (true, &written[1..]),
        b'+' => (false, &written[1..]),
        _ => (false, written),
    };
    let hexadecimal = unsigned.starts_with("0x") || unsigned.starts_with("0X");
    let last = unsigned.as_bytes()[unsigned.len() - 1].to_ascii_lowercase();
    let suffix = match last {
        b's' | b'i' | b'l' | b'n' => Some(last),
        b'b' if !hexadecimal => Some(last),
        _ => None,
    };
    let unsuffixed = if suffix.is_some() { &unsigned[..unsigned.len() - 1] } else { unsigned };
    let (radix, digits) = if hexadecimal {
        (16, &unsuffixed[2..])
    } else if unsuffixed.len() > 1 && unsuffixed.starts_with('0') {
        (8, &unsuffixed[1..])
    } else {
        (10, unsuffixed)
    };
    let valid_edges = !digits.is_empty() && !digits.ends_with('_') && (radix == 8 || !digits.starts_with('_'));
    let digits: String = digits.chars().filter(|digit| *digit != '_').collect();
    if !valid_edges || !digits.chars().all(|digit| digit.is_digit(radix)) {
        let advice = match radix {
            8 => "a number that begins with 0 is octal: use digits 0 to 7, or leave out the 0",
            16 => "a hexadecimal number is 0x and digits 0 to 9, A to F",
            _ => "an underscore may only stand between digits",
        };
        return Err(error(format!("{} is not a number", clip(written))).advising(advice));
    }
    let signed = if negative { format!("-{digits}") } else { digits };
    let out_of_range = |kind: &str, least: String, largest: String| {
        error(format!("{} does not fit a {kind}", clip(written)))
            .advising(format!("a {kind} is {least} to {largest}; a larger suffix or none at all holds more"))
    };
    macro_rules! sized {
        ($int:ty, $variant:ident, $name:literal) => {
            <$int>::from_str_radix(&signed, radix)
                .map(Value::$variant)
                .map_err(|_| out_of_range($name, <$int>::MIN.to_string(), <$int>::MAX.to_string()))
        };
    }
    let big = || {
        BigInt::parse_bytes(signed.as_bytes(), radix)
            .map(|value| Value::BigInteger(Arc::new(value)))
            .ok_or_else(|| error(format!("{} is not a number", clip(written))))
    };
    match suffix {
        Some(b'b') => sized!(i8, Byte, "byte"),
        Some(b's') => sized!(i16, Short, "short"),
        Some(b'i') => sized!(i32, Int, "int"),
        Some(b'l') => sized!(i64, Long, "long"),
        Some(_) => big(),
        None => match i64::from_str_radix(&signed, radix) {
            Ok(value) => Ok(i32::try_from(value).map_or(Value::Long(value), Value::Int)),
            Err(_) => big(),
        },
    }
}

/// The value of the decimal `sign`.
pub(crate) fn decimal(text: &str, sign: Sign) -> Parsed<Value> {
    let written = &text[sign.start..sign.end];
    let error =
        |message: String| SyntaxError::at(text, (sign.start, sign.end), SyntaxErrorKind::InvalidNumber, message);
    if written.len() > NUMBER_CHARACTERS_MAX {
        return Err(error(format!("this number is longer than {NUMBER_CHARACTERS_MAX} characters")));
    }
    match written {
        "+Infinity" => return Ok(Value::Double(f64::INFINITY)),
        "-Infinity" => return Ok(Value::Double(f64::NEG_INFINITY)),
        _ => {}
    }
    let misplaced = |underscore: usize| {
        let digit_at = |position: Option<usize>| {
            position
                .and_then(|position| written.as_bytes().get(position))
                .is_some_and(|byte| byte.is_ascii_digit() || *byte == b'_')
        };
        !digit_at(underscore.checked_sub(1)) || !digit_at(Some(underscore + 1))
    };
    if written.match_indices('_').any(|(underscore, _)| misplaced(underscore)) {
        return Err(
            error(format!("{} is not a number", clip(written))).advising("an underscore may only stand between digits")
        );
    }
    let plain: String = written.chars().filter(|character| *character != '_').collect();
    let (number, suffix) = match plain.as_bytes()[plain.len() - 1].to_ascii_lowercase() {
        suffix @ (b'f' | b'd' | b'm') => (&plain[..plain.len() - 1], suffix),
        _ => (plain.as_str(), b'd'),
    };
    let not_a_number = || error(format!("{} is not a number", clip(written)));
    match suffix {
        b'f' => number.parse().map(Value::Float).map_err(|_| not_a_number()),
        b'd' => number.parse().map(Value::Double).map_err(|_| not_a_number()),
        _ => {
            let exponent = number.find(['e', 'E']).map_or("0", |position| &number[position + 1..]);
            let exponent: i64 = exponent.parse().map_err(|_| not_a_number())?;
            if exponent.abs() > DECIMAL_EXPONENT_MAX {
                return Err(error(format!(
                    "the exponent of a BigDecimal is at most {DECIMAL_EXPONENT_MAX} either way, not {exponent}"
                )));
            }
            BigDecimal::from_str(number).map(|value| Value::BigDecimal(Arc::new(value))).map_err(|_| not_a_number())
        }
    }
}

/// The characters of the string `sign`, escapes resolved.
#[inline]
pub(crate) fn string(text: &str, sign: Sign) -> Parsed<Arc<str>> {
    let body = &text[sign.start + 1..sign.end - 1];
    if sign.kind == Kind::EscapedText { unescape(text, sign.start + 1, body).map(Arc::from) } else { Ok(body.into()) }
}

fn unescape(text: &str, base: usize, body: &str) -> Parsed<String> {
    let bytes = body.as_bytes();
    let mut resolved = String::with_capacity(body.len());
    let mut position = 0;
    let error = |start: usize, end: usize, message: &str| {
        SyntaxError::at(text, (base + start, base + end), SyntaxErrorKind::InvalidEscape, message).advising(
            "escapes are \\b \\t \\n \\f \\r \\' \\\" \\\\, \\0 to \\377 (octal) and \\uXXXX; a backslash itself is \\\\",
        )
    };
    while position < bytes.len() {
        let start = position;
        let Some(length) = body[position..].find('\\') else {
            resolved.push_str(&body[position..]);
            break;
        };
        resolved.push_str(&body[position..position + length]);
        position += length + 1;
        let escape_start = start + length;
        match bytes.get(position) {
            Some(b'b') => resolved.push('\u{8}'),
            Some(b't') => resolved.push('\t'),
            Some(b'n') => resolved.push('\n'),
            Some(b'f') => resolved.push('\u{c}'),
            Some(b'r') => resolved.push('\r'),
            Some(quoted @ (b'\'' | b'"' | b'\\' | b'\n')) => resolved.push(*quoted as char),
            Some(b'\r') if bytes.get(position + 1) == Some(&b'\n') => resolved.push('\r'),
            Some(first @ b'0'..=b'7') => {
                let length_max = if *first <= b'3' { 3 } else { 2 };
                let length =
                    bytes[position..].iter().take(length_max).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
                let code = bytes[position..position + length]
                    .iter()
                    .fold(0u32, |code, digit| code * 8 + u32::from(digit - b'0'));
                // At most \377, so always one character of Latin-1.
                resolved.push(char::from_u32(code).unwrap_or('\u{FFFD}'));
                position += length;
                continue;
            }
            Some(b'u') => {
                let (unit, end) = code_unit(bytes, position)
                    .ok_or_else(|| error(escape_start, position + 1, "\\u takes four hexadecimal digits"))?;
                position = end;
                let character = match unit {
                    0xD800..=0xDBFF => {
                        let low = (bytes.get(end) == Some(&b'\\') && bytes.get(end + 1) == Some(&b'u'))
                            .then(|| code_unit(bytes, end + 1))
                            .flatten()
                            .filter(|(low, _)| (0xDC00..=0xDFFF).contains(low));
                        low.and_then(|(low, end)| {
                            position = end;
                            char::from_u32(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00))
                        })
                    }
                    _ => char::from_u32(unit),
                };
                let character = character
                    .ok_or_else(|| error(escape_start, end, "this is half of a surrogate pair, and no character"))?;
                resolved.push(character);
                continue;
            }
            _ => return Err(error(escape_start, (position + 1).min(body.len()), "this is not an escape")),
        }
        position += 1;
    }
    Ok(resolved)
}

/// The four hexadecimal digits after the `u`s at `position`, and where they end.
fn code_unit(bytes: &[u8], mut position: usize) -> Option<(u32, usize)> {
    while bytes.get(position) == Some(&b'u') {
        position += 1;
    }
    let digits = std::str::from_utf8(bytes.get(position..position + 4)?).ok()?;
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    u32::from_str_radix(digits, 16).ok().map(|unit| (unit, position + 4))
}

/// The values of the range from `first` to `last`, upwards or downwards; `remaining` bounds how many.
///
/// `place` is where the range stands, for the error.
pub(crate) fn range(
    text: &str,
    place: (usize, usize),
    first: &Value,
    last: &Value,
    remaining: &mut usize,
) -> Parsed<Vec<Value>> {
    let error = |message: String| SyntaxError::at(text, place, SyntaxErrorKind::InvalidRange, message);
    let mut take = |count: u64| {
        let fits = count <= RANGE_STEPS_MAX + 1 && count <= *remaining as u64;
        if !fits {
            return Err(error(format!("this range has {count} values")).advising(format!(
                "a range spans at most {RANGE_STEPS_MAX}, and the ranges of one script together at most {} values",
                RANGE_STEPS_MAX + 1
            )));
        }
        *remaining -= count as usize;
        Ok(())
    };
    match (first, last) {
        (Value::Int(first), Value::Int(last)) => {
            take(u64::from(first.abs_diff(*last)) + 1)?;
            Ok(if first <= last {
                (*first..=*last).map(Value::Int).collect()
            } else {
                (*last..=*first).rev().map(Value::Int).collect()
            })
        }
        (Value::String(first), Value::String(last)) => {
            if first.is_empty() && last.is_empty() {
                return Ok(Vec::new());
            }
            let split = |text: &str| {
                let mut characters = text.chars();
                characters.next_back().map(|end| (characters.as_str().to_string(), end))
            };
            let (Some((prefix, from)), Some((last_prefix, to))) = (split(first), split(last)) else {
                return Err(error("the ends of this range do not have the same number of characters".into()));
            };
            if prefix != last_prefix {
                return Err(error("the ends of this range differ before their last character".into()));
            }
            take(u64::from((from as u32).abs_diff(to as u32)) + 1)?;
            let value = |end: char| Value::String(format!("{prefix}{end}").into());
            Ok(if from <= to { (from..=to).map(value).collect() } else { (to..=from).rev().map(value).collect() })
        }
        _ => Err(error("a range goes from an int to an int, or from a string to a string".into())),
    }
}
