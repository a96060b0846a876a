//! The text steps. Positions and lengths count UTF-16 units, as Gremlin clients on the Java platform count them.
//!
//! Each works on a string or `null` (which it passes on); with [`Scope::Local`] also on every member of a collection.

use ficus_model::{ElementResolver, Scope, Value, text::shown};
use hashbrown::HashMap;

use super::members::{is_stopped, iterable, spell_out, until_stopped};
use super::{FunctionError, FunctionResult, check_text_length};

/// Applies a text function in its global or local form.
fn map_text(value: &Value, scope: Scope, step: &str, function: impl Fn(&str) -> FunctionResult) -> FunctionResult {
    match (value, scope) {
        (Value::Null, _) => Ok(Value::Null),
        (Value::String(text), _) => function(text),
        (other, Scope::Global) => Err(FunctionError::new(format!(
            "The {step}() step can only take string as argument, encountered {}",
            other.type_name()
        ))),
        (other, Scope::Local) => {
            let Some(members) = iterable(other) else {
                return Err(FunctionError::new(format!(
                    "The {step}(local) step can only take string or list of strings, encountered {}",
                    other.type_name()
                )));
            };
            let mapped = spell_out(members)?.into_iter().map(|member| match &member {
                Value::Null => Ok(Value::Null),
                Value::String(text) => function(text),
                other => Err(FunctionError::new(format!(
                    "The {step}(local) step can only take string or list of strings, encountered {} in list",
                    other.type_name()
                ))),
            });
            mapped.collect()
        }
    }
}

/// `concat()`: the string and all arguments in a row; `null`s are left out, and all of them `null` is `null`.
pub fn concat(value: &Value, arguments: &[Value]) -> FunctionResult {
    let mut result: Option<String> = None;
    let length = |part: &Value| if let Value::String(text) = part { text.len() } else { 0 };
    let length = std::iter::once(value).chain(arguments).map(length).fold(0, usize::saturating_add);
    check_text_length(length)?;
    for part in std::iter::once(value).chain(arguments) {
        match part {
            Value::Null => {}
            Value::String(text) => {
                let result = result.get_or_insert_with(|| String::with_capacity(length));
                blocks(text)
                    .take_while(|block| block.len() < BLOCK_BYTES / 2 || !is_stopped())
                    .for_each(|block| result.push_str(block));
            }
            other => {
                return Err(FunctionError::new(format!(
                    "String concat() can only take string as argument, encountered {}",
                    other.type_name()
                )));
            }
        }
    }
    if length > BLOCK_BYTES && is_stopped() {
        // Giving it to the caller copies it once more.
        return Ok(Value::Null);
    }
    Ok(result.into())
}

/// Bytes that are copied between two looks at whether the query must stop: where memory is new, a millisecond.
const BLOCK_BYTES: usize = 1 << 20;

/// A text in pieces of [`BLOCK_BYTES`] or a little less.
fn blocks(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (block, rest) = text.split_at(text.floor_char_boundary(BLOCK_BYTES));
        text = rest;
        (!block.is_empty()).then_some(block)
    })
}

/// `substring()`: from `start` up to and without `end`; negative positions count from the end.
pub fn substring(value: &Value, start: i64, end: Option<i64>, scope: Scope) -> FunctionResult {
    map_text(value, scope, "substring", |text| {
        let length = utf16_length(text);
        let start = position(start, length);
        let end = end.map_or(length, |end| position(end, length));
        Ok(if end <= start { "".into() } else { utf16_slice(text, start, end).into() })
    })
}

/// A position as given, within the text.
fn position(index: i64, length: usize) -> usize {
    let length = length as i64;
    let index = if index < 0 { length.saturating_add(index) } else { index };
    index.clamp(0, length) as usize
}

fn utf16_length(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.encode_utf16().count() }
}

/// Cuts by UTF-16 units; half a pair becomes the replacement character.
fn utf16_slice(text: &str, start: usize, end: usize) -> String {
    if text.is_ascii() {
        return text[start..end].to_string();
    }
    let units: Vec<u16> = text.encode_utf16().skip(start).take(end - start).collect();
    String::from_utf16_lossy(&units)
}

/// `split()`: the parts between separators, empty ones left out; at white space without a separator, into characters
/// at an empty one.
pub fn split(value: &Value, separator: Option<&str>, scope: Scope) -> FunctionResult {
    map_text(value, scope, "split", |text| {
        Ok(match separator {
            None => {
                until_stopped(text.split(is_java_whitespace).filter(|part| !part.is_empty()).map(Value::from)).collect()
            }
            Some("") if text.is_empty() => Value::from(vec![Value::from("")]),
            Some("") => {
                // A text is long and its alphabet short: equal characters share their memory, which is made once and freed once.
                let mut known: HashMap<char, Value> = HashMap::new();
                let characters = text.chars().map(|c| known.entry(c).or_insert_with(|| c.to_string().into()).clone());
                until_stopped(characters).collect::<Value>()
            }
            Some(_) if text.is_empty() => Value::from(Vec::new()),
            Some(separator) => {
                // What is behind the last separator is a part even if nothing is there.
                let mut parts = text.split(separator).peekable();
                let next = || loop {
                    let part = parts.next()?;
                    if !part.is_empty() || parts.peek().is_none() {
                        return Some(Value::from(part));
                    }
                };
                until_stopped(std::iter::from_fn(next)).collect()
            }
        })
    })
}

/// `replace()`: every `old` becomes `new`; nothing changes if either is `null` or `old` is empty.
pub fn replace(value: &Value, old: Option<&str>, new: Option<&str>, scope: Scope) -> FunctionResult {
    map_text(value, scope, "replace", |text| match (old, new) {
        (Some(old), Some(new)) if !old.is_empty() => {
            if new.len() > old.len() {
                let growth = until_stopped(text.matches(old)).count().saturating_mul(new.len() - old.len());
                check_text_length(text.len().saturating_add(growth))?;
            }
            let (mut replaced, mut end) = (String::new(), 0);
            for (at, found) in until_stopped(text.match_indices(old)) {
                replaced.push_str(&text[end..at]);
                replaced.push_str(new);
                end = at + found.len();
            }
            replaced.push_str(&text[end..]);
            Ok(replaced.into())
        }
        _ => Ok(text.into()),
    })
}

/// `trim()`: without white space at both ends.
pub fn trim(value: &Value, scope: Scope) -> FunctionResult {
    map_text(value, scope, "trim", |text| Ok(text.trim_matches(is_java_whitespace).into()))
}

/// `lTrim()`: without white space in front.
pub fn trim_left(value: &Value, scope: Scope) -> FunctionResult {
    map_text(value, scope, "lTrim", |text| Ok(text.trim_start_matches(is_java_whitespace).into()))
}

/// `rTrim()`: without white space behind.
pub fn trim_right(value: &Value, scope: Scope) -> FunctionResult {
    map_text(value, scope, "rTrim", |text| Ok(text.trim_end_matches(is_java_whitespace).into()))
}

/// Java's notion of white space: no non-breaking spaces, but the ASCII separators.
fn is_java_whitespace(c: char) -> bool {
    match c {
        '\u{A0}' | '\u{2007}' | '\u{202F}' | '\u{85}' => false,
        '\u{1C}'..='\u{1F}' => true,
        c => c.is_whitespace(),
    }
}

/// `toUpper()`.
pub fn to_upper(value: &Value, scope: Scope) -> FunctionResult {
    map_text(value, scope, "toUpper", |text| Ok(text.to_uppercase().into()))
}

/// `toLower()`.
pub fn to_lower(value: &Value, scope: Scope) -> FunctionResult {
    map_text(value, scope, "toLower", |text| Ok(text.to_lowercase().into()))
}

/// `length()`, an int.
pub fn length(value: &Value, scope: Scope) -> FunctionResult {
    map_text(value, scope, "length", |text| Ok(Value::Int(i32::try_from(utf16_length(text)).unwrap_or(i32::MAX))))
}

/// `reverse()`: of a string its characters, of a collection or path its members as a list; all else unchanged.
pub fn reverse(value: &Value) -> FunctionResult {
    if let Value::String(text) = value {
        return Ok(text.chars().rev().collect::<String>().into());
    }
    match iterable(value) {
        Some(members) => {
            let mut members = spell_out(members)?;
            members.reverse();
            Ok(members.into())
        }
        None => Ok(value.clone()),
    }
}

/// `asString()`: the text of a value; with [`Scope::Local`] of every member of a collection.
pub fn as_string(value: &Value, scope: Scope, resolver: &dyn ElementResolver) -> FunctionResult {
    let to_text = |value: &Value| match value {
        Value::Null => Err(FunctionError::new("Can't parse null as String.")),
        Value::String(_) => Ok(value.clone()),
        other => Ok(Value::from(shown(other, resolver).to_string())),
    };
    match (scope, iterable(value)) {
        (Scope::Local, Some(members)) => spell_out(members)?.iter().map(to_text).collect(),
        _ => to_text(value),
    }
}

#[cfg(test)]
mod tests {
    use ficus_model::InternalIds;

    use super::super::test_values::*;
    use super::*;

    const GLOBAL: Scope = Scope::Global;
    const LOCAL: Scope = Scope::Local;

    fn message(result: FunctionResult) -> String {
        result.unwrap_err().message().to_string()
    }

    #[test]
    fn concat_leaves_nulls_out() {
        for (value, arguments, expected) in [
            (text("a"), vec![], text("a")),
            (text("a"), vec![text("c"), text("d")], text("acd")),
            (Value::Null, vec![Value::Null, text("b")], text("b")),
            (text("a"), vec![Value::Null, text("b")], text("ab")),
            (Value::Null, vec![], Value::Null),
            (Value::Null, vec![Value::Null], Value::Null),
            (Value::Null, vec![text("")], text("")),
        ] {
            assert_eq!(concat(&value, &arguments).unwrap(), expected);
        }
        let expected = "String concat() can only take string as argument, encountered ArrayList";
        assert_eq!(message(concat(&list(&["a"]), &[])), expected);
        assert!(concat(&text("a"), &[int(1)]).is_err());
    }

    #[test]
    fn substring_counts_from_both_ends() {
        for (input, start, end, expected) in [
            ("test", 1, Some(8), "est"),
            ("hello world", 1, Some(8), "ello wo"),
            ("lop", 2, None, "p"),
            ("ripple", 1, Some(4), "ipp"),
            ("lop", 1, Some(0), ""),
            ("marko", -3, None, "rko"),
            ("ripple", 1, Some(-1), "ippl"),
            ("lop", -4, Some(2), "lo"),
            ("ripple", -4, Some(2), ""),
            ("ripple", -3, Some(-1), "pl"),
            ("", -1, None, ""),
            ("abc", 9, None, ""),
            ("aé😀b", 1, Some(4), "é😀"),
            ("a😀", 0, Some(2), "a\u{FFFD}"),
            ("abc", i64::MIN, Some(i64::MAX), "abc"),
        ] {
            assert_eq!(substring(&text(input), start, end, GLOBAL).unwrap(), text(expected), "{input} {start} {end:?}");
        }
        assert_eq!(substring(&list(&["lop", "ripple"]), 1, Some(4), LOCAL).unwrap(), list(&["op", "ipp"]));
        assert!(
            message(substring(&list(&["aa"]), 1, Some(2), GLOBAL))
                .contains("The substring() step can only take string as argument")
        );
    }

    #[test]
    fn split_drops_empty_parts_but_the_last() {
        for (input, separator, expected) in [
            ("that", Some("h"), list(&["t", "at"])),
            ("test", Some("h"), list(&["test"])),
            ("hello world", None, list(&["hello", "world"])),
            ("that", Some(""), list(&["t", "h", "a", "t"])),
            ("", Some(""), list(&[""])),
            ("", Some("-"), list::<&str>(&[])),
            ("-a--b-", Some("-"), list(&["a", "b", ""])),
            ("--", Some("-"), list(&[""])),
            ("aaaa", Some("aa"), list(&[""])),
            (" a  b ", None, list(&["a", "b"])),
            ("axxbxc", Some("xx"), list(&["a", "bxc"])),
        ] {
            assert_eq!(split(&text(input), separator, GLOBAL).unwrap(), expected, "{input} {separator:?}");
        }
        let expected = list(&[list(&["josh"]), list(&["m", "rko"])]);
        assert_eq!(split(&list(&["josh", "marko"]), Some("a"), LOCAL).unwrap(), expected);
        assert_eq!(split(&Value::Null, Some("a"), GLOBAL).unwrap(), Value::Null);
    }

    #[test]
    fn text_functions_work_globally_and_locally() {
        type Function = fn(&Value, Scope) -> FunctionResult;
        let cases: [(&str, Function, &str, Value); 8] = [
            ("trim", trim, " a\u{1F}b \t", text("a\u{1F}b")),
            ("lTrim", trim_left, " ab ", text("ab ")),
            ("rTrim", trim_right, " ab ", text(" ab")),
            ("trim", trim, "\u{A0}a", text("\u{A0}a")),
            ("toUpper", to_upper, "straße", text("STRASSE")),
            ("toLower", to_lower, "MARKO", text("marko")),
            ("length", length, "aé😀", int(4)),
            ("length", length, "", int(0)),
        ];
        for (name, function, input, expected) in cases {
            assert_eq!(function(&text(input), GLOBAL).unwrap(), expected, "{name} {input}");
            let members = Value::from(vec![text(input), Value::Null]);
            assert_eq!(function(&members, LOCAL).unwrap(), Value::from(vec![expected, Value::Null]), "{name} {input}");
            assert_eq!(function(&Value::Null, LOCAL).unwrap(), Value::Null);
            assert_eq!(
                message(function(&int(1), GLOBAL)),
                format!("The {name}() step can only take string as argument, encountered Integer")
            );
            assert_eq!(
                message(function(&int(1), LOCAL)),
                format!("The {name}(local) step can only take string or list of strings, encountered Integer")
            );
            assert!(message(function(&list(&[1]), LOCAL)).ends_with("in list"));
        }
    }

    #[test]
    fn replace_is_bounded() {
        for (input, old, new, expected) in [
            ("that", Some("t"), Some("x"), "xhax"),
            ("that", Some(""), Some("x"), "that"),
            ("that", None, Some("x"), "that"),
            ("that", Some("t"), None, "that"),
            ("that", Some("t"), Some(""), "ha"),
        ] {
            assert_eq!(replace(&text(input), old, new, GLOBAL).unwrap(), text(expected), "{input} {old:?} {new:?}");
        }
        let (many, long) = (text(&"a".repeat(100_000)), "b".repeat(100_000));
        assert!(message(replace(&many, Some("a"), Some(&long), GLOBAL)).contains("16 MiB"));
    }

    #[test]
    fn reverse_turns_strings_and_collections() {
        assert_eq!(reverse(&text("test one")).unwrap(), text("eno tset"));
        assert_eq!(
            reverse(&Value::from(vec![int(3), text("three")])).unwrap(),
            Value::from(vec![text("three"), int(3)])
        );
        assert_eq!(reverse(&int(29)).unwrap(), int(29));
        assert_eq!(reverse(&Value::Null).unwrap(), Value::Null);
        assert_eq!(reverse(&map(&[("a", 1)])).unwrap(), map(&[("a", 1)]));
    }

    #[test]
    fn as_string_prints_values() {
        assert_eq!(as_string(&int(1), GLOBAL, &InternalIds).unwrap(), text("1"));
        assert_eq!(as_string(&list(&[1, 2]), GLOBAL, &InternalIds).unwrap(), text("[1, 2]"));
        assert_eq!(as_string(&list(&[1, 2]), LOCAL, &InternalIds).unwrap(), list(&["1", "2"]));
        assert_eq!(
            as_string(&map(&[("name", list(&["marko"]))]), LOCAL, &InternalIds).unwrap(),
            text("{name=[marko]}")
        );
        assert!(message(as_string(&Value::Null, GLOBAL, &InternalIds)).contains("Can't parse"));
        assert!(
            message(as_string(&Value::from(vec![int(1), Value::Null]), LOCAL, &InternalIds)).contains("Can't parse")
        );
    }
}
