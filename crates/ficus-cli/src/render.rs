//! Values as text: gremlin-lang literals for people, plain JSON for programs, tables for maps.

use std::fmt::Write as _;

use ficus_model::{Element, Shared, Value};
use ficus_wire::Format;

/// Nesting shown before `…`.
const DEPTH_MAX: u32 = 32;

/// A value as text for people; simple values look as they would in a query.
pub fn literal(value: &Value) -> String {
    let mut out = String::new();
    push(&mut out, value, 0);
    out
}

/// A value at the top of a result: as [`literal`], but a string stands without quotes.
pub fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string(),
        other => literal(other),
    }
}

/// A value as JSON without types; what JSON cannot express becomes text.
pub fn json(value: &Value) -> String {
    let mut bytes = Vec::new();
    match ficus_wire::encode_value(Format::GraphSon3Untyped, value, &mut bytes) {
        Ok(()) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => serde_json::Value::String(literal(value)).to_string(),
    }
}

fn push(out: &mut String, value: &Value, depth: u32) {
    if depth > DEPTH_MAX {
        out.push('…');
        return;
    }
    // Writing into a String cannot fail.
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
        Value::Char(value) => write!(out, "'{value}'"),
        Value::String(value) => write!(out, "'{}'", value.replace('\\', "\\\\").replace('\'', "\\'")),
        Value::Uuid(value) => write!(out, "{value}"),
        Value::Binary(value) => write!(out, "{} bytes", value.len()),
        Value::List(values) => {
            list(out, "[", values.iter(), "]", depth);
            Ok(())
        }
        Value::Set(values) => {
            list(out, "{", values.iter(), "}", depth);
            Ok(())
        }
        Value::Map(map) => {
            pairs(out, map.iter(), depth);
            Ok(())
        }
        Value::Entry(entry) => {
            push(out, &entry.0, depth + 1);
            out.push('=');
            push(out, &entry.1, depth + 1);
            Ok(())
        }
        Value::BulkSet(bulk) => {
            let members = bulk.counts.iter().flat_map(|(value, count)| (0..*count).map(move |_| value));
            list(out, "[", members, "]", depth);
            Ok(())
        }
        Value::Path(path) => {
            list(out, "path[", path.objects.iter(), "]", depth);
            Ok(())
        }
        Value::Tree(tree) => {
            out.push('{');
            for (index, (value, below)) in tree.children.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                push(out, value, depth + 1);
                out.push('=');
                push(out, &Value::Tree(Shared::new(below.clone())), depth + 1);
            }
            out.push('}');
            Ok(())
        }
        Value::Graph(graph) => write!(out, "graph[{} vertices, {} edges]", graph.vertices.len(), graph.edges.len()),
        Value::Element(element) => {
            push_element(out, element, depth);
            Ok(())
        }
        Value::T(token) => write!(out, "{token}"),
        Value::Direction(token) => write!(out, "{token}"),
        Value::Order(token) => write!(out, "{token}"),
        Value::Scope(token) => write!(out, "{token}"),
        Value::Pop(token) => write!(out, "{token}"),
        Value::Column(token) => write!(out, "{token}"),
        Value::Cardinality(token) => write!(out, "{token}"),
        Value::Merge(token) => write!(out, "{token}"),
        Value::Pick(token) => write!(out, "{token}"),
        Value::Operator(token) => write!(out, "{token}"),
        Value::DateUnit(token) => write!(out, "{token}"),
        Value::GType(token) => write!(out, "{token}"),
        Value::DateTime(at) => write!(out, "{}", datetime(at)),
        Value::Duration(time) => write!(out, "{}", duration(time)),
        Value::Explanation(plan) => write!(out, "{}\n{}", plan.original, plan.final_plan),
        Value::Metrics(metrics) => {
            push_metrics(out, metrics);
            Ok(())
        }
        other => write!(out, "{other:?}"),
    };
}

fn list<'a>(out: &mut String, open: &str, members: impl Iterator<Item = &'a Value>, close: &str, depth: u32) {
    out.push_str(open);
    for (index, member) in members.enumerate() {
        out.push_str(if index > 0 { ", " } else { "" });
        push(out, member, depth + 1);
    }
    out.push_str(close);
}

fn pairs<'a>(out: &mut String, members: impl Iterator<Item = (&'a Value, &'a Value)>, depth: u32) {
    out.push('{');
    for (index, (key, value)) in members.enumerate() {
        out.push_str(if index > 0 { ", " } else { "" });
        match key {
            Value::String(key) => out.push_str(key),
            other => push(out, other, depth + 1),
        }
        out.push_str(": ");
        push(out, value, depth + 1);
    }
    out.push('}');
}

fn push_element(out: &mut String, element: &Element, depth: u32) {
    match element {
        Element::Vertex(vertex) => {
            out.push_str("v[");
            out.push_str(&text(&vertex.id));
            out.push(']');
        }
        Element::Edge(edge) => {
            let (id, out_id, in_id) = (text(&edge.id), text(&edge.out_id), text(&edge.in_id));
            out.push_str(&format!("e[{id}][{out_id}-{}->{in_id}]", edge.label));
        }
        Element::VertexProperty(property) => {
            out.push_str(&format!("vp[{}: ", property.key));
            push(out, &property.value, depth + 1);
            out.push(']');
        }
        Element::Property(property) => {
            out.push_str(&format!("p[{}: ", property.key));
            push(out, &property.value, depth + 1);
            out.push(']');
        }
    }
}

fn push_metrics(out: &mut String, metrics: &ficus_model::TraversalMetrics) {
    fn rows(out: &mut String, metrics: &[ficus_model::Metrics], indent: usize) {
        for metric in metrics {
            let counts: Vec<String> = metric.counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
            let millis = metric.duration_ns as f64 / 1e6;
            let name = format!("{:indent$}{}", "", metric.name);
            out.push_str(&format!("\n{name:60} {millis:>10.3} ms  {}", counts.join(", ")));
            rows(out, &metric.nested, indent + 2);
        }
    }
    out.push_str(&format!("{:.3} ms", metrics.duration_ns as f64 / 1e6));
    rows(out, &metrics.metrics, 0);
}

/// ISO 8601, as queries write it.
pub fn datetime(at: &ficus_model::OffsetDateTime) -> String {
    let offset = chrono::FixedOffset::east_opt(at.offset_seconds);
    let instant = chrono::DateTime::from_timestamp(at.epoch_seconds, at.nanos);
    match (offset, instant) {
        (Some(offset), Some(instant)) => {
            instant.with_timezone(&offset).to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true)
        }
        _ => format!("{} s since 1970", at.epoch_seconds),
    }
}

/// ISO 8601 in seconds: `PT93603.5S`.
pub fn duration(time: &ficus_model::Duration) -> String {
    if time.nanos == 0 {
        return format!("PT{}S", time.seconds);
    }
    // Below zero the seconds are rounded down, so the fraction is counted from the next whole second.
    let (sign, seconds, nanos) = if time.seconds < 0 {
        ("-", -(time.seconds + 1), 1_000_000_000 - time.nanos)
    } else {
        ("", time.seconds, time.nanos)
    };
    let fraction = format!("{nanos:09}");
    format!("PT{sign}{seconds}.{}S", fraction.trim_end_matches('0'))
}

/// Rows of maps as a table with one column per key; `None` if the rows are not maps.
pub fn table(rows: &[Value]) -> Option<String> {
    let mut columns: Vec<String> = Vec::new();
    let mut cells: Vec<Vec<(usize, String)>> = Vec::new();
    for row in rows {
        let Value::Map(map) = row else { return None };
        let mut line = Vec::new();
        for (key, value) in map.iter() {
            let key = text(key);
            let column = columns.iter().position(|known| *known == key).unwrap_or_else(|| {
                columns.push(key);
                columns.len() - 1
            });
            line.push((column, text(value)));
        }
        cells.push(line);
    }
    if columns.is_empty() {
        return None;
    }
    let mut widths: Vec<usize> = columns.iter().map(|name| name.chars().count()).collect();
    for (column, cell) in cells.iter().flatten() {
        widths[*column] = widths[*column].max(cell.chars().count());
    }
    let mut out = String::new();
    let mut push_row = |cells: &[&str]| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        out.push_str(padded.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    };
    push_row(&columns.iter().map(String::as_str).collect::<Vec<_>>());
    let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    push_row(&rules.iter().map(String::as_str).collect::<Vec<_>>());
    for line in &cells {
        let mut row = vec![""; columns.len()];
        for (column, cell) in line {
            row[*column] = cell;
        }
        push_row(&row);
    }
    out.pop();
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_values() {
        let list = Value::List(Shared::new(vec![Value::Int(1), Value::String("it's".into())]));
        let map: ficus_model::ValueMap = [(Value::String("a".into()), list.clone())].into_iter().collect();
        let cases = [
            (Value::Null, "null"),
            (Value::Double(1.0), "1.0"),
            (list, "[1, 'it\\'s']"),
            (Value::Map(Shared::new(map)), "{a: [1, 'it\\'s']}"),
            (Value::Duration(ficus_model::Duration { seconds: -1, nanos: 500_000_000 }), "PT-0.5S"),
            (Value::Duration(ficus_model::Duration { seconds: 3, nanos: 250_000_000 }), "PT3.25S"),
        ];
        for (value, expected) in cases {
            assert_eq!(literal(&value), expected);
        }
        assert_eq!(text(&Value::String("plain".into())), "plain");
    }

    #[test]
    fn shows_tables() {
        let row = |pairs: &[(&str, i32)]| {
            let map: ficus_model::ValueMap =
                pairs.iter().map(|(key, value)| (Value::String((*key).into()), Value::Int(*value))).collect();
            Value::Map(Shared::new(map))
        };
        let shown = table(&[row(&[("a", 1), ("name", 20000)]), row(&[("name", 3), ("z", 4)])]);
        assert_eq!(shown.as_deref(), Some("a  name   z\n-  -----  -\n1  20000\n   3      4"));
        assert_eq!(table(&[Value::Int(1)]), None);
    }
}
