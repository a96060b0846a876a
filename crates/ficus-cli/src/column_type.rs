//! Types of columns and the text forms of their values.

use std::str::FromStr;
use std::sync::Arc;

use bigdecimal::BigDecimal;
use chrono::{DateTime, NaiveDate, NaiveDateTime};
use ficus_model::{Duration, OffsetDateTime, Value};
use num_bigint::BigInt;

/// What the text of a column becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// Text as it is.
    String,
    /// `true` or `false`, in any case.
    Boolean,
    /// Signed 8 bit.
    Byte,
    /// Signed 16 bit.
    Short,
    /// Signed 32 bit.
    Int,
    /// Signed 64 bit.
    Long,
    /// Single precision.
    Float,
    /// Double precision.
    Double,
    /// Unbounded integer.
    BigInteger,
    /// Unbounded decimal.
    BigDecimal,
    /// One character.
    Char,
    /// A UUID.
    Uuid,
    /// `2024-02-29`, with or without time and offset; UTC where none is written.
    DateTime,
    /// Milliseconds since 1970-01-01 UTC.
    EpochMillis,
    /// Seconds since 1970-01-01 UTC, with or without a fraction.
    EpochSeconds,
    /// ISO 8601 duration of days and smaller units, such as `P1DT2H3.5S`.
    Duration,
}

/// Every type with the names it goes by in mapping files and headers, the documented one first.
const NAMES: &[(ColumnType, &[&str])] = &[
    (ColumnType::String, &["string"]),
    (ColumnType::Boolean, &["boolean", "bool"]),
    (ColumnType::Byte, &["byte"]),
    (ColumnType::Short, &["short"]),
    (ColumnType::Int, &["int", "integer"]),
    (ColumnType::Long, &["long"]),
    (ColumnType::Float, &["float"]),
    (ColumnType::Double, &["double"]),
    (ColumnType::BigInteger, &["biginteger"]),
    (ColumnType::BigDecimal, &["bigdecimal"]),
    (ColumnType::Char, &["char"]),
    (ColumnType::Uuid, &["uuid"]),
    (ColumnType::DateTime, &["datetime", "date", "localdatetime"]),
    (ColumnType::EpochMillis, &["epoch-millis"]),
    (ColumnType::EpochSeconds, &["epoch-seconds"]),
    (ColumnType::Duration, &["duration"]),
];

impl ColumnType {
    /// Finds a type by one of its names; case does not matter.
    pub fn from_name(name: &str) -> Result<ColumnType, String> {
        let lower = name.to_ascii_lowercase();
        for (kind, names) in NAMES {
            if names.contains(&lower.as_str()) {
                return Ok(*kind);
            }
        }
        let known: Vec<&str> = NAMES.iter().map(|(_, names)| names[0]).collect();
        Err(format!("unknown column type '{name}'; known are {}", known.join(", ")))
    }

    /// The documented name.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(kind, _)| *kind == self).map_or("string", |(_, names)| names[0])
    }

    /// Reads a value of this type.
    pub fn parse(self, text: &str) -> Result<Value, String> {
        let trimmed = text.trim();
        let value = match self {
            ColumnType::String => Some(Value::String(Arc::from(text))),
            ColumnType::Boolean => match trimmed.to_ascii_lowercase().as_str() {
                "true" => Some(Value::Bool(true)),
                "false" => Some(Value::Bool(false)),
                _ => None,
            },
            ColumnType::Byte => trimmed.parse().ok().map(Value::Byte),
            ColumnType::Short => trimmed.parse().ok().map(Value::Short),
            ColumnType::Int => trimmed.parse().ok().map(Value::Int),
            ColumnType::Long => trimmed.parse().ok().map(Value::Long),
            ColumnType::Float => parse_float(trimmed).map(Value::Float),
            ColumnType::Double => parse_float(trimmed).map(Value::Double),
            ColumnType::BigInteger => BigInt::from_str(trimmed).ok().map(|value| Value::BigInteger(Arc::new(value))),
            ColumnType::BigDecimal => {
                BigDecimal::from_str(trimmed).ok().map(|value| Value::BigDecimal(Arc::new(value)))
            }
            ColumnType::Char => single_char(text).map(Value::Char),
            ColumnType::Uuid => trimmed.parse().ok().map(Value::Uuid),
            ColumnType::DateTime => parse_datetime(trimmed).map(Value::DateTime),
            ColumnType::EpochMillis => trimmed.parse().ok().map(|millis: i64| {
                let nanos = millis.rem_euclid(1000) as u32 * 1_000_000;
                Value::DateTime(utc(millis.div_euclid(1000), nanos))
            }),
            ColumnType::EpochSeconds => parse_epoch_seconds(trimmed).map(Value::DateTime),
            ColumnType::Duration => parse_duration(trimmed).map(Value::Duration),
        };
        value.ok_or_else(|| {
            let name = self.name();
            let article = if name.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
            format!("'{}' is not {article} {name}", shorten(text))
        })
    }
}

/// The type and the text form of a value, such that the type reads the text back; `None` for collections and for what
/// only lives in queries.
pub fn text_form(value: &Value) -> Option<(ColumnType, String)> {
    Some(match value {
        Value::Bool(value) => (ColumnType::Boolean, value.to_string()),
        Value::Byte(value) => (ColumnType::Byte, value.to_string()),
        Value::Short(value) => (ColumnType::Short, value.to_string()),
        Value::Int(value) => (ColumnType::Int, value.to_string()),
        Value::Long(value) => (ColumnType::Long, value.to_string()),
        Value::BigInteger(value) => (ColumnType::BigInteger, value.to_string()),
        Value::Float(value) => (ColumnType::Float, float_text(f64::from(*value), format!("{value:?}"))),
        Value::Double(value) => (ColumnType::Double, float_text(*value, format!("{value:?}"))),
        Value::BigDecimal(value) => (ColumnType::BigDecimal, value.to_string()),
        Value::Char(value) => (ColumnType::Char, value.to_string()),
        Value::String(value) => (ColumnType::String, value.to_string()),
        Value::Uuid(value) => (ColumnType::Uuid, value.to_string()),
        Value::DateTime(value) => (ColumnType::DateTime, crate::render::datetime(value)),
        Value::Duration(value) => (ColumnType::Duration, crate::render::duration(value)),
        _ => return None,
    })
}

/// Java's spelling of the values that are not finite.
fn float_text(value: f64, finite: String) -> String {
    match value {
        value if value.is_nan() => "NaN".into(),
        f64::INFINITY => "Infinity".into(),
        f64::NEG_INFINITY => "-Infinity".into(),
        _ => finite,
    }
}

/// The first characters of a text, for messages.
pub fn shorten(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn utc(epoch_seconds: i64, nanos: u32) -> OffsetDateTime {
    OffsetDateTime { epoch_seconds, nanos, offset_seconds: 0 }
}

fn single_char(text: &str) -> Option<char> {
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

/// Accepts the spellings of Java and of Rust for the values that are not finite.
fn parse_float<T: FromStr>(text: &str) -> Option<T> {
    match text {
        "Infinity" | "+Infinity" => "inf".parse().ok(),
        "-Infinity" => "-inf".parse().ok(),
        _ => text.parse().ok(),
    }
}

fn parse_datetime(text: &str) -> Option<OffsetDateTime> {
    if let Ok(found) = DateTime::parse_from_rfc3339(text) {
        return Some(OffsetDateTime {
            epoch_seconds: found.timestamp(),
            nanos: found.timestamp_subsec_nanos(),
            offset_seconds: found.offset().local_minus_utc(),
        });
    }
    for format in ["%Y-%m-%dT%H:%M:%S%.f%:z", "%Y-%m-%dT%H:%M%:z", "%Y-%m-%dT%H:%M:%S%.f%z"] {
        if let Ok(found) = DateTime::parse_from_str(text, format) {
            return Some(OffsetDateTime {
                epoch_seconds: found.timestamp(),
                nanos: found.timestamp_subsec_nanos(),
                offset_seconds: found.offset().local_minus_utc(),
            });
        }
    }
    let naive = text.strip_suffix('Z').unwrap_or(text);
    for format in ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M"] {
        if let Ok(found) = NaiveDateTime::parse_from_str(naive, format) {
            let found = found.and_utc();
            return Some(utc(found.timestamp(), found.timestamp_subsec_nanos()));
        }
    }
    let date = NaiveDate::parse_from_str(naive, "%Y-%m-%d").ok()?;
    Some(utc(date.and_hms_opt(0, 0, 0)?.and_utc().timestamp(), 0))
}

fn parse_epoch_seconds(text: &str) -> Option<OffsetDateTime> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let nanos = parse_nanos(fraction)?;
    let seconds: i64 = whole.parse().ok()?;
    if whole.starts_with('-') && nanos > 0 {
        return Some(utc(seconds - 1, 1_000_000_000 - nanos));
    }
    Some(utc(seconds, nanos))
}

/// Up to nine digits after a decimal point.
fn parse_nanos(digits: &str) -> Option<u32> {
    if digits.len() > 9 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    format!("{digits:0<9}").parse().ok()
}

fn parse_duration(text: &str) -> Option<Duration> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let rest = rest.strip_prefix(['P', 'p'])?;
    let mut seconds: i64 = 0;
    let mut nanos: i64 = 0;
    let mut in_time = false;
    let mut number = String::new();
    let mut parts = 0;
    for letter in rest.chars() {
        match letter.to_ascii_uppercase() {
            'T' if !in_time && number.is_empty() => in_time = true,
            '0'..='9' | '-' | '.' => number.push(letter),
            unit => {
                let scale = match (in_time, unit) {
                    (false, 'D') => 86_400,
                    (true, 'H') => 3_600,
                    (true, 'M') => 60,
                    (true, 'S') => 1,
                    _ => return None,
                };
                let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
                if !fraction.is_empty() && unit != 'S' {
                    return None;
                }
                let part: i64 = if whole == "-" { 0 } else { whole.parse().ok()? };
                seconds = seconds.checked_add(part.checked_mul(scale)?)?;
                let part_nanos = i64::from(parse_nanos(fraction)?);
                nanos += if whole.starts_with('-') { -part_nanos } else { part_nanos };
                number.clear();
                parts += 1;
            }
        }
    }
    if parts == 0 || !number.is_empty() {
        return None;
    }
    if negative {
        seconds = seconds.checked_neg()?;
        nanos = -nanos;
    }
    seconds = seconds.checked_add(nanos.div_euclid(1_000_000_000))?;
    Some(Duration { seconds, nanos: nanos.rem_euclid(1_000_000_000) as u32 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_forms_read_back() {
        let values = [
            Value::Bool(true),
            Value::Byte(-1),
            Value::Float(0.1),
            Value::Double(f64::NEG_INFINITY),
            Value::Double(1e21),
            Value::Char('x'),
            Value::DateTime(OffsetDateTime { epoch_seconds: 1, nanos: 5_000_000, offset_seconds: 3600 }),
            Value::Duration(Duration { seconds: -2, nanos: 250_000_000 }),
            Value::BigInteger(Arc::new(BigInt::from(10).pow(30))),
        ];
        for value in values {
            let (kind, text) = text_form(&value).expect("a simple value");
            assert_eq!(kind.parse(&text), Ok(value), "{text}");
        }
        assert_eq!(text_form(&Value::Null), None);
    }

    #[test]
    fn reads_values() {
        let date = |seconds, nanos, offset| {
            Value::DateTime(OffsetDateTime { epoch_seconds: seconds, nanos, offset_seconds: offset })
        };
        let cases: &[(&str, &str, Option<Value>)] = &[
            ("string", " a ", Some(Value::String(" a ".into()))),
            ("BOOL", "True", Some(Value::Bool(true))),
            ("bool", "yes", None),
            ("byte", "-128", Some(Value::Byte(-128))),
            ("byte", "128", None),
            ("short", "7", Some(Value::Short(7))),
            ("int", " 12 ", Some(Value::Int(12))),
            ("int", "1.5", None),
            ("long", "9000000000", Some(Value::Long(9_000_000_000))),
            ("float", "0.5", Some(Value::Float(0.5))),
            ("double", "-Infinity", Some(Value::Double(f64::NEG_INFINITY))),
            ("double", "1e3", Some(Value::Double(1000.0))),
            ("double", "", None),
            ("char", "é", Some(Value::Char('é'))),
            ("char", "ab", None),
            ("date", "1970-01-02", Some(date(86_400, 0, 0))),
            ("datetime", "1970-01-01T01:00:00.5+01:00", Some(date(0, 500_000_000, 3600))),
            ("datetime", "1970-01-01 00:00:01", Some(date(1, 0, 0))),
            ("datetime", "1970-01-01T00:01Z", Some(date(60, 0, 0))),
            ("datetime", "1970-13-01", None),
            ("epoch-millis", "-1", Some(date(-1, 999_000_000, 0))),
            ("epoch-seconds", "1307526243.273450", Some(date(1_307_526_243, 273_450_000, 0))),
            ("epoch-seconds", "-0.5", Some(date(-1, 500_000_000, 0))),
            ("duration", "P1DT2H3.5S", Some(Value::Duration(Duration { seconds: 93_603, nanos: 500_000_000 }))),
            ("duration", "PT-0.5S", Some(Value::Duration(Duration { seconds: -1, nanos: 500_000_000 }))),
            ("duration", "P", None),
            ("duration", "P1Y", None),
        ];
        for (kind, text, expected) in cases {
            let kind = ColumnType::from_name(kind).expect("a known type");
            assert_eq!(kind.parse(text).ok(), *expected, "{kind:?} {text:?}");
        }
        assert!(ColumnType::from_name("point").is_err());
    }
}
