//! The text steps. Positions and lengths count UTF-16 units, as Gremlin clients on the Java platform count them.
//!
//! Each works on a string or `null` (which it passes on); with [`Scope::Local`] also on every member of a collection.

use std::borrow::Cow;

use ficus_model::{ElementResolver, Scope, Value, shared_text, text::shown};
use hashbrown::HashMap;

use super::members::{is_stopped, list_of, refs, spell_out, until_stopped};
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
            let Some(members) = refs(other) else {
                return Err(FunctionError::new(format!(
                    "The {step}(local) step can only take string or list of strings, encountered {}",
                    other.type_name()
                )));
            };
            let mapped = spell_out(members)?.into_iter().map(|member| match member {
                Value::Null => Ok(Value::Null),
                Value::String(text) => function(text),
                other => Err(FunctionError::new(format!(
                    "The {step}(local) step can only take string or list of strings, encountered {} in list",
                    other.type_name()
                ))),
            });
            all_of(mapped)
        }
    }
}

/// The list of these, of which it is known how many there are.
fn all_of(members: impl ExactSizeIterator<Item = FunctionResult>) -> FunctionResult {
    let mut list = Vec::with_capacity(members.len());
    for member in until_stopped(members) {
        list.push(member?);
    }
    Ok(list.into())
}

/// The value of a text that was made. Sharing it copies it once more, which a stopped query does not wait for.
pub fn made_text(text: String) -> Value {
    shared_text(&text, || !is_stopped()).map_or(Value::Null, Value::String)
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
    Ok(result.map_or(Value::Null, made_text))
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
        Ok(if end <= start { "".into() } else { utf16_slice(text, start, end).as_ref().into() })
    })
}

/// A position as given, within the text.
fn position(index: i64, length: usize) -> usize {
    let length = length as i64;
    let index = if index < 0 { length.saturating_add(index) } else { index };
    index.clamp(0, length) as usize
}

/// Units of a text: one for each character, two for those beyond the first plane, which are four bytes.
fn utf16_length(text: &str) -> usize {
    let units = |byte: u8| usize::from(byte & 0xC0 != 0x80) + usize::from(byte >= 0xF0);
    text.bytes().map(units).sum()
}

/// Where a unit is: the place of its character, and whether it is the second half of that.
fn utf16_place(text: &str, unit: usize) -> (usize, bool) {
    /// Bytes that are counted at once.
    const COUNTED: usize = 4096;
    let (mut at, mut left) = (0, unit);
    while let Some((block, _)) = text[at..].split_at_checked(text[at..].floor_char_boundary(COUNTED)) {
        let units = utf16_length(block);
        if units > left || block.is_empty() {
            break;
        }
        (at, left) = (at + block.len(), left - units);
    }
    for character in text[at..].chars() {
        if left == 0 {
            break;
        }
        if left < character.len_utf16() {
            return (at, true);
        }
        (at, left) = (at + character.len_utf8(), left - character.len_utf16());
    }
    (at, false)
}

/// Cuts by UTF-16 units; half a pair becomes the replacement character.
fn utf16_slice(text: &str, start: usize, end: usize) -> Cow<'_, str> {
    let ((from, begins_with_half), (to, ends_with_half)) = (utf16_place(text, start), utf16_place(text, end));
    if !begins_with_half && !ends_with_half {
        return Cow::Borrowed(&text[from..to]);
    }
    let after = |at: usize| at + text[at..].chars().next().map_or(0, char::len_utf8);
    let mut cut = String::new();
    if begins_with_half {
        cut.push(char::REPLACEMENT_CHARACTER);
    }
    let from = if begins_with_half { after(from) } else { from };
    cut.push_str(&text[from..to.max(from)]);
    if ends_with_half {
        cut.push(char::REPLACEMENT_CHARACTER);
    }
    Cow::Owned(cut)
}

/// Where a part begins in a text, from a place on.
fn find_from(text: &str, part: &str, mut from: usize) -> Option<usize> {
    while text.len() - from > BLOCK_BYTES + part.len() {
        // What begins in the block may end behind it.
        let end = text.floor_char_boundary(from + BLOCK_BYTES + part.len() + 3);
        if let Some(at) = text[from..end].find(part) {
            return Some(from + at);
        }
        if is_stopped() {
            return None;
        }
        from = text.floor_char_boundary(from + BLOCK_BYTES);
    }
    text[from..].find(part).map(|at| from + at)
}

/// The places of a part that is not empty, none inside another.
fn places_of<'t>(text: &'t str, part: &'t str) -> impl Iterator<Item = usize> + 't {
    let mut from = 0;
    until_stopped(std::iter::from_fn(move || {
        let at = find_from(text, part, from)?;
        from = at + part.len();
        Some(at)
    }))
}

/// The text that `change` makes, a block at a time; of one whose letters depend on those around them in one go.
fn in_blocks(text: &str, change: impl Fn(&str) -> String) -> Value {
    /// Small at the end of words in another form than elsewhere.
    const SIGMA: char = 'Σ';
    if text.len() <= BLOCK_BYTES || text.contains(SIGMA) {
        return change(text).into();
    }
    let mut all = String::with_capacity(text.len());
    for block in blocks(text).take_while(|_| !is_stopped()) {
        all.push_str(&change(block));
    }
    made_text(all)
}

/// `split()`: the parts between separators, empty ones left out; at white space without a separator, into characters
/// at an empty one.
pub fn split(value: &Value, separator: Option<&str>, scope: Scope) -> FunctionResult {
    map_text(value, scope, "split", |text| {
        Ok(match separator {
            None => words(text).map(Value::from).collect(),
            Some("") if text.is_empty() => Value::from(vec![Value::from("")]),
            Some("") => {
                // A text is long and its alphabet short: equal characters share their memory, which is made once and freed once.
                let mut known: HashMap<char, Value> = HashMap::new();
                let characters = text.chars().map(|c| known.entry(c).or_insert_with(|| c.to_string().into()).clone());
                list_of(characters, text.bytes().filter(|byte| byte & 0xC0 != 0x80).count())
            }
            Some(_) if text.is_empty() => Value::from(Vec::new()),
            Some(separator) => {
                let mut parts = Vec::new();
                let mut end = 0;
                for at in places_of(text, separator) {
                    if end < at {
                        parts.push(Value::from(&text[end..at]));
                    }
                    end = at + separator.len();
                }
                // What is behind the last separator is a part even if nothing is there.
                parts.push(Value::from(&text[end..]));
                parts.into()
            }
        })
    })
}

/// What is between white space.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    until_stopped(std::iter::from_fn(move || {
        let begin = rest.find(|c| !is_java_whitespace(c))?;
        let mut end = begin;
        // A long word, block by block.
        while end < rest.len() && (end == begin || !is_stopped()) {
            let block_end = rest.floor_char_boundary(end + BLOCK_BYTES / 16);
            match rest[end..block_end].find(is_java_whitespace) {
                Some(at) => {
                    end += at;
                    break;
                }
                None => end = block_end,
            }
        }
        let word = &rest[begin..end];
        rest = &rest[end..];
        Some(word)
    }))
}

/// `replace()`: every `old` becomes `new`; nothing changes if either is `null` or `old` is empty.
pub fn replace(value: &Value, old: Option<&str>, new: Option<&str>, scope: Scope) -> FunctionResult {
    map_text(value, scope, "replace", |text| match (old, new) {
        (Some(old), Some(new)) if !old.is_empty() => {
            if new.len() > old.len() {
                let growth = places_of(text, old).count().saturating_mul(new.len() - old.len());
                check_text_length(text.len().saturating_add(growth))?;
            }
            let (mut replaced, mut end) = (String::with_capacity(text.len()), 0);
            for at in places_of(text, old) {
                replaced.push_str(&text[end..at]);
                replaced.push_str(new);
                end = at + old.len();
            }
            if !is_stopped() {
                replaced.push_str(&text[end..]);
            }
            Ok(made_text(replaced))
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
    map_text(value, scope, "toUpper", |text| Ok(in_blocks(text, str::to_uppercase)))
}

/// `toLower()`.
pub fn to_lower(value: &Value, scope: Scope) -> FunctionResult {
    map_text(value, scope, "toLower", |text| Ok(in_blocks(text, str::to_lowercase)))
}

/// `length()`, an int.
pub fn length(value: &Value, scope: Scope) -> FunctionResult {
    map_text(value, scope, "length", |text| Ok(Value::Int(i32::try_from(utf16_length(text)).unwrap_or(i32::MAX))))
}

/// `reverse()`: of a string its characters, of a collection or path its members as a list; all else unchanged.
pub fn reverse(value: &Value) -> FunctionResult {
    if let Value::String(text) = value {
        let mut turned = String::with_capacity(text.len());
        turned.extend(until_stopped(text.chars().rev()));
        return Ok(made_text(turned));
    }
    match refs(value) {
        Some(members) => {
            let members = spell_out(members)?;
            let room = members.len();
            Ok(list_of(members.into_iter().rev().cloned(), room))
        }
        None => Ok(value.clone()),
    }
}

/// `asString()`: the text of a value; with [`Scope::Local`] of every member of a collection.
pub fn as_string(value: &Value, scope: Scope, resolver: &dyn ElementResolver) -> FunctionResult {
    let to_text = |value: &Value| match value {
        Value::Null => Err(FunctionError::new("Can't parse null as String.")),
        Value::String(_) => Ok(value.clone()),
        other => Ok(made_text(shown(other, resolver).to_string())),
    };
    match (scope, refs(value)) {
        (Scope::Local, Some(members)) => all_of(spell_out(members)?.into_iter().map(to_text)),
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
    fn positions_count_utf16_units_also_behind_many() {
        let long = "aé𝄞b".repeat(3000);
        let units: Vec<u16> = long.encode_utf16().collect();
        assert_eq!(utf16_length(&long), units.len());
        for (start, end) in [(0, 1), (1, 3), (2, 3), (3, 4), (2, 4), (5, 14_999), (7_002, 7_003), (14_993, 14_998)] {
            let expected = String::from_utf16_lossy(&units[start..end]);
            assert_eq!(utf16_slice(&long, start, end), expected, "{start} to {end}");
        }
    }

    #[test]
    fn long_texts_are_changed_as_short_ones() {
        let part = "aé𝄞 İß\u{85}x yΣ, ";
        for part in [part, &part.replace('Σ', "ς")] {
            let long = part.repeat(3 * BLOCK_BYTES / part.len());
            assert_eq!(to_lower(&text(&long), GLOBAL).unwrap(), text(&long.to_lowercase()));
            assert_eq!(to_upper(&text(&long), GLOBAL).unwrap(), text(&long.to_uppercase()));
            // Parts that lie across the borders of blocks.
            for old in ["é𝄞", "yΣ, a", "x y", "zz"] {
                assert_eq!(replace(&text(&long), Some(old), Some("-"), GLOBAL).unwrap(), text(&long.replace(old, "-")));
                let parts = long.split(old).collect::<Vec<_>>();
                let last = parts.len() - 1;
                let kept = parts.iter().enumerate().filter(|(at, part)| *at == last || !part.is_empty());
                let expected: Value = kept.map(|(_, part)| text(part)).collect();
                assert_eq!(split(&text(&long), Some(old), GLOBAL).unwrap(), expected);
            }
            let words: Value = long.split(is_java_whitespace).filter(|part| !part.is_empty()).map(text).collect();
            assert_eq!(split(&text(&long), None, GLOBAL).unwrap(), words);
        }
        let one = "w".repeat(BLOCK_BYTES);
        assert_eq!(split(&text(&format!(" {one} b")), None, GLOBAL).unwrap(), list(&[one.as_str(), "b"]));
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
