//! The value notation of TinkerPop's feature files: `d[1].i`, `v[marko].id`, `e[marko-created->lop]`, `m[{"a":"l[b,c]"}]` …
//!
//! [`Term::parse`] reads it. A term becomes a [`Value`] to compare or to bind ([`Term::value`]) or the text of a gremlin-lang
//! literal ([`Term::literal`]); both ask a [`Lookup`] for the elements of the graph that a term names.

use std::sync::Arc;

use ficus_model::{Direction, Merge, Path, Shared, T, Value, ValueMap, ValueSet};

use crate::date_text;

/// A value as a feature file writes it.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// Text that has no notation, and `str[…]`.
    Text(String),
    /// `d[1].i`: the digits and the letter of the type.
    Number(String, char),
    /// `d[NaN]`, `d[Infinity]`, `d[-Infinity]`
    Special(f64),
    /// A number of a JSON text inside `m[…]`.
    JsonNumber(String),
    /// `dt[…]`
    Date(String),
    /// `uuid[…]`
    Uuid(String),
    /// `v[name]`
    Vertex(String),
    /// `e[out-label->in]`
    Edge(Triplet),
    /// `vp[vertex-key->value]`
    VertexProperty(Triplet),
    /// `….id`: the id of an element; `….sid`: the same as text.
    Id(Box<Term>, IdForm),
    /// `p[…]`
    Path(Vec<Term>),
    /// `l[…]`, and a JSON array inside `m[…]`
    List(Vec<Term>),
    /// `s[…]`
    Set(Vec<Term>),
    /// `m[{…}]`, and a JSON object inside it
    Map(Vec<(Term, Term)>),
    /// `t[…]`
    Token(T),
    /// `D[…]`
    Direction(Direction),
    /// `M[…]`
    Merge(Merge),
}

/// Whether an id is wanted as it is or as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdForm {
    /// As the graph has it.
    Plain,
    /// As text.
    Text,
}

/// `a-b->c`: an edge by names, or a vertex property by the name of its vertex, its key and its value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Triplet(pub String, pub String, pub String);

impl Triplet {
    fn parse(text: &str) -> Result<Triplet, String> {
        let parts = text.rsplit_once("->").and_then(|(rest, last)| Some((rest.rsplit_once('-')?, last)));
        let ((first, middle), last) = parts.ok_or_else(|| format!("expected a-b->c, found {text:?}"))?;
        Ok(Triplet(first.into(), middle.into(), last.into()))
    }
}

/// Finds the elements that a term names, in the graph of the scenario.
pub trait Lookup {
    /// The vertex whose property `name` is `name`; `None` when there is none.
    fn vertex(&mut self, name: &str) -> Result<Option<Value>, String>;
    /// The first edge between the named vertices.
    fn edge(&mut self, edge: &Triplet) -> Result<Value, String>;
    /// The vertex property of that key whose value is the gremlin-lang literal `value`.
    fn vertex_property(&mut self, vertex: &str, key: &str, value: &str) -> Result<Value, String>;
}

impl Term {
    /// Reads the notation; text that has none stands for itself.
    pub fn parse(text: &str) -> Result<Term, String> {
        match text {
            "null" => return Ok(Term::Null),
            "true" => return Ok(Term::Bool(true)),
            "false" => return Ok(Term::Bool(false)),
            _ => {}
        }
        if let Some(open) = text.find('[') {
            let kind = &text[..open];
            let rest = &text[open + 1..];
            if let Some(close) = rest.rfind(']') {
                let (inner, suffix) = (&rest[..close], &rest[close + 1..]);
                if let Some(term) = Term::parse_bracketed(kind, inner, suffix) {
                    return term.map_err(|error| format!("{text}: {error}"));
                }
            }
        }
        Ok(Term::Text(text.to_owned()))
    }

    /// `None` when this is no notation but plain text with brackets in it.
    fn parse_bracketed(kind: &str, inner: &str, suffix: &str) -> Option<Result<Term, String>> {
        let all = |inner: &str| split_elements(inner).into_iter().map(Term::parse).collect::<Result<Vec<_>, _>>();
        let with_id = |element: Term| match suffix {
            "" => Some(Ok(element)),
            ".id" => Some(Ok(Term::Id(Box::new(element), IdForm::Plain))),
            ".sid" => Some(Ok(Term::Id(Box::new(element), IdForm::Text))),
            _ => None,
        };
        let term = match (kind, suffix) {
            ("d", "") => match inner {
                "NaN" => Ok(Term::Special(f64::NAN)),
                "Infinity" => Ok(Term::Special(f64::INFINITY)),
                "-Infinity" => Ok(Term::Special(f64::NEG_INFINITY)),
                _ => Err("a number without its type".into()),
            },
            ("d", suffix) => match suffix.strip_prefix('.').map(str::as_bytes) {
                Some([letter @ (b'b' | b's' | b'i' | b'l' | b'f' | b'd' | b'm' | b'n')]) => {
                    Ok(Term::Number(inner.to_owned(), char::from(*letter)))
                }
                _ => Err("an unknown type of number".into()),
            },
            ("v", _) => return with_id(Term::Vertex(inner.to_owned())),
            ("e", _) => match Triplet::parse(inner) {
                Ok(triplet) => return with_id(Term::Edge(triplet)),
                Err(error) => Err(error),
            },
            ("vp", "") => Triplet::parse(inner).map(Term::VertexProperty),
            ("m", "") => crate::loose_json::parse(inner),
            ("l", "") => all(inner).map(Term::List),
            ("s", "") => all(inner).map(Term::Set),
            ("p", "") => all(inner).map(Term::Path),
            ("str", "") => Ok(Term::Text(inner.to_owned())),
            ("dt", "") => Ok(Term::Date(inner.to_owned())),
            ("uuid", "") => Ok(Term::Uuid(inner.to_owned())),
            ("t", "") => T::from_name(inner).map(Term::Token).ok_or_else(|| "an unknown token".into()),
            ("D", "") => Direction::from_name(inner).map(Term::Direction).ok_or_else(|| "an unknown direction".into()),
            ("M", "") => Merge::from_name(inner).map(Term::Merge).ok_or_else(|| "an unknown merge option".into()),
            _ => return None,
        };
        Some(term)
    }

    /// The value the term stands for.
    pub fn value(&self, lookup: &mut dyn Lookup) -> Result<Value, String> {
        let mut all = |terms: &[Term]| terms.iter().map(|term| term.value(lookup)).collect::<Result<Vec<_>, _>>();
        Ok(match self {
            Term::Null => Value::Null,
            Term::Bool(value) => Value::Bool(*value),
            Term::Text(text) => Value::String(text.as_str().into()),
            Term::Number(digits, letter) => number(digits, *letter)?,
            Term::Special(value) => Value::Double(*value),
            Term::JsonNumber(digits) => json_number(digits)?,
            Term::Date(text) => Value::DateTime(date_text::parse(text)?),
            Term::Uuid(text) => Value::Uuid(text.parse().map_err(|error| format!("{text}: {error}"))?),
            Term::Vertex(name) => lookup.vertex(name)?.ok_or_else(|| format!("no vertex is named {name:?}"))?,
            Term::Edge(triplet) => lookup.edge(triplet)?,
            Term::VertexProperty(Triplet(vertex, key, value)) => {
                let value = Term::parse(value)?.literal(lookup)?;
                lookup.vertex_property(vertex, key, &value)?
            }
            Term::Id(element, form) => {
                let id = id_of(&element.value(lookup)?)?;
                match form {
                    IdForm::Plain => id,
                    IdForm::Text => Value::String(id_text(&id)?.into()),
                }
            }
            Term::Path(terms) => Value::Path(Shared::new(Path::unlabelled(all(terms)?))),
            Term::List(terms) => Value::List(Shared::new(all(terms)?)),
            Term::Set(terms) => Value::Set(Shared::new(all(terms)?.into_iter().collect::<ValueSet>())),
            Term::Map(entries) => {
                let mut map = ValueMap::default();
                for (key, value) in entries {
                    map.insert(key.value(lookup)?, value.value(lookup)?);
                }
                Value::Map(Shared::new(map))
            }
            Term::Token(token) => Value::T(*token),
            Term::Direction(direction) => Value::Direction(*direction),
            Term::Merge(merge) => Value::Merge(*merge),
        })
    }

    /// The gremlin-lang text of the term. Errors: `Err` also for the terms that gremlin-lang has no literal for.
    pub fn literal(&self, lookup: &mut dyn Lookup) -> Result<String, String> {
        let mut all = |terms: &[Term]| {
            terms.iter().map(|term| term.literal(lookup)).collect::<Result<Vec<_>, _>>().map(|texts| texts.join(","))
        };
        Ok(match self {
            Term::Null => "null".into(),
            Term::Bool(value) => value.to_string(),
            Term::Text(text) => quote(text),
            Term::Number(digits, letter) => format!("{digits}{letter}"),
            Term::Special(value) if value.is_nan() => "NaN".into(),
            Term::Special(value) => if *value > 0.0 { "Infinity" } else { "-Infinity" }.into(),
            Term::JsonNumber(digits) => digits.clone(),
            Term::Date(text) => format!("datetime({})", quote(text)),
            Term::Uuid(text) => format!("UUID({})", quote(text)),
            Term::Vertex(name) => match lookup.vertex(name)? {
                Some(vertex) => format!("new Vertex({},\"vertex\")", id_literal(&id_of(&vertex)?)?),
                None => format!("new Vertex({},\"vertex\")", quote(name)),
            },
            Term::Id(element, form) => {
                let id = id_of(&element.value(lookup)?)?;
                match form {
                    IdForm::Plain => id_literal(&id)?,
                    IdForm::Text => quote(&id_text(&id)?),
                }
            }
            Term::List(terms) => format!("[{}]", all(terms)?),
            Term::Set(terms) => format!("{{{}}}", all(terms)?),
            Term::Map(entries) if entries.is_empty() => "[:]".into(),
            Term::Map(entries) => {
                let mut texts = Vec::new();
                for (key, value) in entries {
                    texts.push(format!("({}):{}", key.literal(lookup)?, value.literal(lookup)?));
                }
                format!("[{}]", texts.join(","))
            }
            Term::Token(token) => format!("T.{token}"),
            Term::Direction(direction) => format!("Direction.{direction}"),
            Term::Merge(merge) => format!("Merge.{merge}"),
            Term::Edge(_) => return Err("gremlin-lang has no literal for an edge".into()),
            Term::VertexProperty(_) => return Err("gremlin-lang has no literal for a vertex property".into()),
            Term::Path(_) => return Err("gremlin-lang has no literal for a path".into()),
        })
    }
}

/// Splits at the commas that are outside of brackets; elements are trimmed, and lose quotes around them.
fn split_elements(text: &str) -> Vec<&str> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    let (mut depth, mut start, mut elements) = (0usize, 0, Vec::new());
    for (index, character) in text.char_indices() {
        match character {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                elements.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    elements.push(&text[start..]);
    elements
        .into_iter()
        .map(str::trim)
        .map(|element| element.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(element))
        .collect()
}

fn number(digits: &str, letter: char) -> Result<Value, String> {
    let bad = |error: &dyn std::fmt::Display| format!("d[{digits}].{letter}: {error}");
    Ok(match letter {
        'b' => Value::Byte(digits.parse().map_err(|error| bad(&error))?),
        's' => Value::Short(digits.parse().map_err(|error| bad(&error))?),
        'i' => Value::Int(digits.parse().map_err(|error| bad(&error))?),
        'l' => Value::Long(digits.parse().map_err(|error| bad(&error))?),
        'f' => Value::Float(digits.parse().map_err(|error| bad(&error))?),
        'd' => Value::Double(digits.parse().map_err(|error| bad(&error))?),
        'n' => Value::BigInteger(Arc::new(digits.parse().map_err(|error| bad(&error))?)),
        'm' => Value::BigDecimal(Arc::new(digits.parse().map_err(|error| bad(&error))?)),
        _ => return Err(bad(&"an unknown type of number")),
    })
}

/// The smallest of int, long and big integer that holds the digits; a double when there is a point or an exponent.
fn json_number(digits: &str) -> Result<Value, String> {
    let letter = if digits.contains(['.', 'e', 'E']) {
        'd'
    } else if digits.parse::<i32>().is_ok() {
        'i'
    } else if digits.parse::<i64>().is_ok() {
        'l'
    } else {
        'n'
    };
    number(digits, letter)
}

/// The id of a detached element.
pub fn id_of(value: &Value) -> Result<Value, String> {
    use ficus_model::Element;
    match value {
        Value::Element(element) => match &**element {
            Element::Vertex(vertex) => Ok(vertex.id.clone()),
            Element::Edge(edge) => Ok(edge.id.clone()),
            Element::VertexProperty(property) => Ok(property.id.clone()),
            Element::Property(_) => Err("a property has no id".into()),
        },
        other => Err(format!("expected an element, found {other:?}")),
    }
}

fn id_text(id: &Value) -> Result<String, String> {
    Ok(match id {
        Value::Int(id) => id.to_string(),
        Value::Long(id) => id.to_string(),
        Value::String(id) => id.to_string(),
        Value::Uuid(id) => id.to_string(),
        other => return Err(format!("an id of a kind this runner does not write: {other:?}")),
    })
}

fn id_literal(id: &Value) -> Result<String, String> {
    Ok(match id {
        Value::Long(id) => format!("{id}l"),
        Value::String(id) => quote(id),
        Value::Uuid(id) => format!("UUID(\"{id}\")"),
        other => id_text(other)?,
    })
}

/// A double-quoted gremlin-lang string.
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use ficus_model::{DetachedVertex, Element};

    /// A graph in which every vertex has the length of its name as its id, and nobody is called `nobody`.
    struct Names;

    impl Lookup for Names {
        fn vertex(&mut self, name: &str) -> Result<Option<Value>, String> {
            let id = Value::Int(i32::try_from(name.len()).unwrap());
            let vertex = Element::Vertex(DetachedVertex { id, label: "person".into(), properties: Vec::new() });
            Ok((name != "nobody").then(|| Value::Element(Arc::new(vertex))))
        }
        fn edge(&mut self, _: &Triplet) -> Result<Value, String> {
            Err("no edges".into())
        }
        fn vertex_property(&mut self, _: &str, _: &str, value: &str) -> Result<Value, String> {
            Ok(Value::String(value.into()))
        }
    }

    #[test]
    fn values_are_read_with_their_types() {
        let check = |text: &str, expected: Value| {
            assert_eq!(Term::parse(text).unwrap().value(&mut Names), Ok(expected), "{text}");
        };
        let text = |text: &str| Value::String(text.into());
        let list = |values: Vec<Value>| Value::List(Shared::new(values));
        check("marko", text("marko"));
        check("null", Value::Null);
        check("true", Value::Bool(true));
        check("d[1].i", Value::Int(1));
        check("d[1].l", Value::Long(1));
        check("d[-1].b", Value::Byte(-1));
        check("d[1].s", Value::Short(1));
        check("d[0.5].f", Value::Float(0.5));
        check("d[0.5].d", Value::Double(0.5));
        check("d[NaN]", Value::Double(f64::NAN));
        check("d[-Infinity]", Value::Double(f64::NEG_INFINITY));
        check("d[12].n", Value::BigInteger(Arc::new(12.into())));
        check("v[marko].id", Value::Int(5));
        check("v[marko].sid", text("5"));
        check("str[ v[4]]", text(" v[4]"));
        check("[1]", text("[1]"));
        check("l[]", list(vec![]));
        check("l[a, l[b,d[1].i],]", list(vec![text("a"), list(vec![text("b"), Value::Int(1)]), text("")]));
        check("s[a,b]", Value::Set(Shared::new([text("b"), text("a")].into_iter().collect())));
        check("t[label]", Value::T(T::Label));
        check("D[from]", Value::Direction(Direction::Out));
        check("M[onCreate]", Value::Merge(Merge::OnCreate));
        check("vp[marko-age->d[29].i]", text("29i"));
        let entries =
            [(Value::T(T::Label), text("person")), (text("n"), list(vec![Value::Int(1), Value::Long(1 << 40)]))];
        check(
            "m[{\"t[label]\": \"person\", \"n\":[1, 1099511627776]}]",
            Value::Map(Shared::new(entries.into_iter().collect())),
        );
    }

    #[test]
    fn literals_are_gremlin_lang() {
        let check = |text: &str, expected: &str| {
            assert_eq!(Term::parse(text).unwrap().literal(&mut Names).as_deref(), Ok(expected), "{text}");
        };
        check("it's \"x\"", r#""it's \"x\"""#);
        check("d[1].l", "1l");
        check("v[marko].id", "5");
        check("v[marko].sid", "\"5\"");
        check("v[nobody]", "new Vertex(\"nobody\",\"vertex\")");
        check("l[v[josh].id,null]", "[4,null]");
        check("s[]", "{}");
        check("m[{\"t[label]\":\"knows\",\"D[OUT]\":\"v[marko].id\"}]", "[(T.label):\"knows\",(Direction.OUT):5]");
        check("m[{\"marko\":\"l[\"666\"]\"}]", "[(\"marko\"):[\"666\"]]");
        check("dt[2023-08-08T00:00Z]", "datetime(\"2023-08-08T00:00Z\")");
        assert!(Term::parse("e[a-b->c]").unwrap().literal(&mut Names).is_err());
    }

    #[test]
    fn what_looks_like_notation_but_is_not_is_refused() {
        let check = |text: &str| assert!(Term::parse(text).is_err(), "{text}");
        check("d[1]");
        check("d[1].x");
        check("t[nonsense]");
        check("e[marko]");
        check("m[{\"a\":]");
    }
}
