//! The compact form: FicusDB's own text form of a graph, one element or property per line, tabs between fields.
//!
//! ```text
//! v  i1  person                               vertex: id, label; its properties follow
//! p  0   name  smarko                         property: id, key, value, then meta-properties as key, value
//! e  i7  knows  i1  i2  weight  d0.5          edge: id, label, source, target, properties as key, value
//! ```
//!
//! A value begins with a letter for its type: `s` string, `i` Integer, `l` Long, `d` Double, `f` Float, `t` Boolean
//! (`t1`, `t0`); `j` is followed by GraphSON 3 and covers all other types. Tab, line end and backslash inside a field are
//! written `\t`, `\n`, `\r`, `\\`. All vertices stand before the first edge. Nothing is lost on the way: it is what the
//! demo graphs are packed in, and `export --to compact` makes an exact copy of a graph.

use std::fmt::Write as _;
use std::sync::Arc;

use ficus_model::Value;
use ficus_wire::{Format, Limits};

/// The first line of every file, with the version of the form.
pub const FIRST_LINE: &str = "#ficus-graph 1";

/// Appends a value.
pub fn push_value(out: &mut String, value: &Value) -> Result<(), String> {
    let written = match value {
        Value::String(text) => {
            out.push('s');
            push_text(out, text);
            Ok(())
        }
        Value::Int(number) => write!(out, "i{number}"),
        Value::Long(number) => write!(out, "l{number}"),
        Value::Double(number) if number.is_finite() => write!(out, "d{number:?}"),
        Value::Float(number) if number.is_finite() => write!(out, "f{number:?}"),
        Value::Bool(value) => write!(out, "t{}", u8::from(*value)),
        other => {
            let mut bytes = Vec::new();
            ficus_wire::encode_value(Format::GraphSon3, other, &mut bytes).map_err(|error| error.to_string())?;
            out.push('j');
            push_text(out, &String::from_utf8_lossy(&bytes));
            Ok(())
        }
    };
    written.map_err(|error| error.to_string())
}

/// Appends a text with its escapes.
pub fn push_text(out: &mut String, text: &str) {
    for letter in text.chars() {
        match letter {
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\\' => out.push_str("\\\\"),
            other => out.push(other),
        }
    }
}

/// Reads a value.
pub fn value(field: &str) -> Result<Value, String> {
    let mut letters = field.chars();
    let kind = letters.next().ok_or("an empty field where a value should be")?;
    let text = letters.as_str();
    let found = match kind {
        's' => return Ok(Value::String(Arc::from(self::text(text)?))),
        'i' => text.parse().ok().map(Value::Int),
        'l' => text.parse().ok().map(Value::Long),
        'd' => text.parse().ok().map(Value::Double),
        'f' => text.parse().ok().map(Value::Float),
        't' => match text {
            "1" => Some(Value::Bool(true)),
            "0" => Some(Value::Bool(false)),
            _ => None,
        },
        'j' => {
            let text = self::text(text)?;
            return ficus_wire::decode_value(Format::GraphSon3, text.as_bytes(), &Limits::default())
                .map_err(|error| error.to_string());
        }
        other => return Err(format!("unknown type letter '{other}'; known are s, i, l, d, f, t and j")),
    };
    found.ok_or_else(|| format!("'{text}' is not a value of the type '{kind}'"))
}

/// Takes the escapes out of a text.
pub fn text(field: &str) -> Result<String, String> {
    let mut out = String::with_capacity(field.len());
    let mut letters = field.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        out.push(match letters.next() {
            Some('t') => '\t',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('\\') => '\\',
            _ => return Err("a backslash that begins no escape; known are \\t, \\n, \\r and \\\\".into()),
        });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive() {
        let values = [
            Value::String("a\tb\\n\n\r é".into()),
            Value::String("".into()),
            Value::Int(-1),
            Value::Long(i64::MIN),
            Value::Double(0.1),
            Value::Double(1e300),
            Value::Float(0.1),
            Value::Bool(true),
            Value::Bool(false),
        ];
        for value in values {
            let mut field = String::new();
            push_value(&mut field, &value).expect("it can be written");
            assert!(!field.contains(['\t', '\n']), "{field:?}");
            assert_eq!(self::value(&field), Ok(value));
        }
    }

    #[test]
    fn refuses_what_is_no_value() {
        for field in ["", "x1", "i1.5", "t2", "sa\\", "sa\\q"] {
            assert!(value(field).is_err(), "{field:?}");
        }
    }
}
