//! Results as lines of text, `==>` before each, for people with `curl`.

use std::fmt::Write;

use ficus_model::{Element, Value};

/// Levels of collections that are shown; below, `…` stands for the rest.
const DEPTH_MAX: usize = 32;

/// Writes one line per value.
pub(crate) fn lines(values: &[Value]) -> String {
    let mut out = String::new();
    for (index, value) in values.iter().enumerate() {
        out.push_str(if index == 0 { "==>" } else { "\n==>" });
        write_value(&mut out, value, 0);
    }
    out
}

fn write_value(out: &mut String, value: &Value, depth: usize) {
    if depth > DEPTH_MAX {
        out.push('…');
        return;
    }
    let depth = depth + 1;
    let _ = match value {
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
            out.push_str("path");
            write_all(out, ('[', ']'), path.objects.iter(), depth)
        }
        Value::BulkSet(set) => {
            let bulked = set.counts.iter().flat_map(|(value, count)| std::iter::repeat_n(value, *count as usize));
            write_all(out, ('[', ']'), bulked.take(10_000), depth)
        }
        Value::Map(map) => {
            out.push('{');
            for (index, (key, value)) in map.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                write_entry(out, key, value, depth);
            }
            out.push('}');
            Ok(())
        }
        Value::Entry(entry) => {
            write_entry(out, &entry.0, &entry.1, depth);
            Ok(())
        }
        Value::Element(element) => {
            write_element(out, element, depth);
            Ok(())
        }
        Value::Explanation(explanation) => write!(out, "{}", explanation.final_plan),
        other => write!(out, "{other:?}"),
    };
}

fn write_all<'a>(
    out: &mut String,
    (open, close): (char, char),
    values: impl Iterator<Item = &'a Value>,
    depth: usize,
) -> std::fmt::Result {
    out.push(open);
    for (index, value) in values.enumerate() {
        out.push_str(if index == 0 { "" } else { ", " });
        write_value(out, value, depth);
    }
    out.push(close);
    Ok(())
}

fn write_entry(out: &mut String, key: &Value, value: &Value, depth: usize) {
    write_value(out, key, depth);
    out.push('=');
    write_value(out, value, depth);
}

fn write_element(out: &mut String, element: &Element, depth: usize) {
    let id = |text: &mut String, value: &Value| write_value(text, value, depth);
    match element {
        Element::Vertex(vertex) => {
            out.push_str("v[");
            id(out, &vertex.id);
            out.push(']');
        }
        Element::Edge(edge) => {
            out.push_str("e[");
            id(out, &edge.id);
            out.push_str("][");
            id(out, &edge.out_id);
            let _ = write!(out, "-{}->", edge.label);
            id(out, &edge.in_id);
            out.push(']');
        }
        Element::VertexProperty(property) => {
            let _ = write!(out, "vp[{}->", property.key);
            id(out, &property.value);
            out.push(']');
        }
        Element::Property(property) => {
            let _ = write!(out, "p[{}->", property.key);
            id(out, &property.value);
            out.push(']');
        }
    }
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
        assert_eq!(lines(&values), "==>v[1]\n==>{a=1}\n==>[1.0, null]\n==>x");
        assert_eq!(lines(&[]), "");
    }

    #[test]
    fn deep_nesting_ends() {
        let mut value = Value::Int(1);
        for _ in 0..1000 {
            value = Value::List(Shared::new(vec![value]));
        }
        assert!(lines(&[value]).contains('…'));
    }
}
