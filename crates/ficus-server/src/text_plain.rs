//! Results as lines of text, `==>` before each, for people with `curl`.

use std::fmt::{self, Write};

use ficus_model::{Element, Value};
use ficus_wire::{Bound, Room};

/// Levels of collections that are shown; below, `…` stands for the rest.
const DEPTH_MAX: usize = 32;

/// A text for which there has to be room; what is too long for it fails, so that whoever writes it ends.
struct Text<'a> {
    out: Vec<u8>,
    bound: Bound<'a>,
}

impl Write for Text<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.bound.check(&mut self.out).map_err(|_| fmt::Error)?;
        self.out.extend_from_slice(part.as_bytes());
        Ok(())
    }
}

/// Writes one line per value, and returns what the room has not taken; `None` if there is none for that.
pub(crate) fn lines<'v>(values: impl Iterator<Item = &'v Value>, room: &mut dyn Room) -> Option<Vec<u8>> {
    let mut text = Text { out: Vec::new(), bound: Bound::of(room) };
    let write = || {
        for (index, value) in values.enumerate() {
            text.write_str(if index == 0 { "==>" } else { "\n==>" })?;
            write_value(&mut text, value, 0)?;
        }
        fmt::Result::Ok(())
    };
    write().ok()?;
    Some(text.out)
}

fn write_value(out: &mut Text<'_>, value: &Value, depth: usize) -> fmt::Result {
    if depth > DEPTH_MAX {
        return out.write_char('…');
    }
    let depth = depth + 1;
    match value {
        Value::Null => write!(out, "null"),
        Value::Bool(value) => write!(out, "{value}"),
        Value::Byte(value) => write!(out, "{value}"),
        Value::Short(value) => write!(out, "{value}"),
        Value::Int(value) => write!(out, "{value}"),
        Value::Long(value) => write!(out, "{value}"),
        Value::BigInteger(value) => write!(out, "{value}"),
        Value::Float(value) => write!(out, "{value:?}"),
        Value::Double(value) => write!(out, "{value:?}"),
        Value::BigDecimal(value) => write!(out, "{value}"),
        Value::Char(value) => write!(out, "{value}"),
        Value::String(value) => write!(out, "{value}"),
        Value::Uuid(value) => write!(out, "{value}"),
        Value::T(token) => write!(out, "{token}"),
        Value::Direction(token) => write!(out, "{token}"),
        Value::List(values) => write_all(out, ('[', ']'), values.iter(), depth),
        Value::Set(values) => write_all(out, ('[', ']'), values.iter(), depth),
        Value::Path(path) => {
            out.write_str("path")?;
            write_all(out, ('[', ']'), path.objects.iter(), depth)
        }
        Value::BulkSet(set) => {
            let bulked = set.counts.iter().flat_map(|(value, count)| std::iter::repeat_n(value, *count as usize));
            write_all(out, ('[', ']'), bulked, depth)
        }
        Value::Map(map) => {
            out.write_char('{')?;
            for (index, (key, value)) in map.iter().enumerate() {
                out.write_str(if index == 0 { "" } else { ", " })?;
                write_entry(out, key, value, depth)?;
            }
            out.write_char('}')
        }
        Value::Entry(entry) => write_entry(out, &entry.0, &entry.1, depth),
        Value::Element(element) => write_element(out, element, depth),
        Value::Explanation(explanation) => write!(out, "{}", explanation.final_plan),
        other => write!(out, "{other:?}"),
    }
}

fn write_all<'a>(
    out: &mut Text<'_>,
    (open, close): (char, char),
    values: impl Iterator<Item = &'a Value>,
    depth: usize,
) -> fmt::Result {
    out.write_char(open)?;
    for (index, value) in values.enumerate() {
        out.write_str(if index == 0 { "" } else { ", " })?;
        write_value(out, value, depth)?;
    }
    out.write_char(close)
}

fn write_entry(out: &mut Text<'_>, key: &Value, value: &Value, depth: usize) -> fmt::Result {
    write_value(out, key, depth)?;
    out.write_char('=')?;
    write_value(out, value, depth)
}

fn write_element(out: &mut Text<'_>, element: &Element, depth: usize) -> fmt::Result {
    match element {
        Element::Vertex(vertex) => {
            out.write_str("v[")?;
            write_value(out, &vertex.id, depth)?;
        }
        Element::Edge(edge) => {
            out.write_str("e[")?;
            write_value(out, &edge.id, depth)?;
            out.write_str("][")?;
            write_value(out, &edge.out_id, depth)?;
            write!(out, "-{}->", edge.label)?;
            write_value(out, &edge.in_id, depth)?;
        }
        Element::VertexProperty(property) => {
            write!(out, "vp[{}->", property.key)?;
            write_value(out, &property.value, depth)?;
        }
        Element::Property(property) => {
            write!(out, "p[{}->", property.key)?;
            write_value(out, &property.value, depth)?;
        }
    }
    out.write_char(']')
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ficus_model::{DetachedVertex, Shared};

    use super::*;

    #[test]
    fn values_read_as_gremlin_shows_them() {
        let vertex = DetachedVertex { id: Value::Long(1), label: "person".into(), properties: Vec::new() };
        let vertex = Value::Element(Arc::new(Element::Vertex(vertex)));
        let map = [(Value::String("a".into()), Value::Int(1))].into_iter().collect();
        let list = Value::List(Shared::new(vec![Value::Double(1.0), Value::Null]));
        let values = [vertex, Value::Map(Shared::new(map)), list, Value::String("x".into())];
        let written = lines(values.iter(), &mut 100);
        assert_eq!(written.as_deref(), Some(&b"==>v[1]\n==>{a=1}\n==>[1.0, null]\n==>x"[..]));
        assert_eq!(lines([].iter(), &mut 0).as_deref(), Some(&b""[..]));
    }

    #[test]
    fn deep_nesting_ends() {
        let mut value = Value::Int(1);
        for _ in 0..1000 {
            value = Value::List(Shared::new(vec![value]));
        }
        assert!(lines([value].iter(), &mut 1000).is_some_and(|text| String::from_utf8(text).unwrap().contains('…')));
    }

    #[test]
    fn what_is_too_long_ends() {
        let counts = [(Value::Int(1), u64::MAX / 2)].into_iter().collect();
        let bulk = Value::BulkSet(Shared::new(ficus_model::BulkSet { counts }));
        assert_eq!(lines([bulk].iter(), &mut 1000), None);
    }
}
