//! Writes GraphML as TinkerPop reads it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use super::elements::Elements;
use super::survey::{Columns, Survey};
use crate::column_type::{ColumnType, text_form};
use ficus_model::Value;

/// Declared keys of nodes or of edges: id and type by name.
type Keys = BTreeMap<Arc<str>, (String, ColumnType)>;

/// Writes the whole document.
pub fn write(elements: &Elements, survey: &Survey, out: &mut dyn Write) -> io::Result<()> {
    let node_keys = keys(survey.vertices.values(), &["labelV", "labelE"]);
    let mut taken: Vec<&str> = vec!["labelV", "labelE"];
    taken.extend(node_keys.values().map(|(id, _)| id.as_str()));
    let edge_keys = keys(survey.edges.values(), &taken);
    out.write_all(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")?;
    out.write_all(b"<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n")?;
    declare(out, "labelV", "node", "labelV", ColumnType::String)?;
    for (name, (id, kind)) in &node_keys {
        declare(out, id, "node", name, *kind)?;
    }
    declare(out, "labelE", "edge", "labelE", ColumnType::String)?;
    for (name, (id, kind)) in &edge_keys {
        declare(out, id, "edge", name, *kind)?;
    }
    out.write_all(b"<graph id=\"G\" edgedefault=\"directed\">\n")?;
    elements.each_vertex(|vertex| {
        let vertex = elements.vertex(vertex)?;
        write!(out, "<node id=\"{}\">", escape(&plain(&vertex.id)))?;
        data(out, "labelV", &vertex.label)?;
        for (index, property) in vertex.properties.iter().enumerate() {
            // Only the first value of a key is kept; the survey has said so.
            let is_first = vertex.properties[..index].iter().all(|earlier| earlier.key != property.key);
            if let (true, Some((id, _))) = (is_first, node_keys.get(&property.key)) {
                data(out, id, &plain(&property.value))?;
            }
        }
        out.write_all(b"</node>\n")
    })?;
    elements.each_edge(|edge| {
        let edge = elements.edge(edge)?;
        let (id, source, target) = (plain(&edge.id), plain(&edge.out_id), plain(&edge.in_id));
        write!(out, "<edge id=\"{}\" source=\"{}\" target=\"{}\">", escape(&id), escape(&source), escape(&target))?;
        data(out, "labelE", &edge.label)?;
        for (key, value) in &edge.properties {
            if let Some((id, _)) = edge_keys.get(key) {
                data(out, id, &plain(value))?;
            }
        }
        out.write_all(b"</edge>\n")
    })?;
    out.write_all(b"</graph>\n</graphml>\n")
}

/// Joins the columns of all labels. A key is its own id unless that id is taken.
fn keys<'a>(tables: impl Iterator<Item = &'a Columns>, taken: &[&str]) -> Keys {
    let mut keys = Keys::new();
    for (name, column) in tables.flatten() {
        let mut id = name.to_string();
        while taken.contains(&id.as_str()) {
            id.push('_');
        }
        let (_, kind) = keys.entry(name.clone()).or_insert((id, column.kind));
        if *kind != column.kind {
            *kind = ColumnType::String;
        }
    }
    keys
}

/// Whether XML 1.0 can hold a character, be it written as a number.
pub fn is_allowed(letter: char) -> bool {
    matches!(letter, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// The text as it stands in content and attributes. What a reader of one or the other would change, line ends and tabs, is
/// written as a number. What XML cannot hold is replaced; the survey has said so.
fn escape(text: &str) -> Cow<'_, str> {
    let is_plain =
        |letter: char| letter >= ' ' && is_allowed(letter) && !matches!(letter, '<' | '>' | '&' | '\'' | '"');
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match letter {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '\'' => escaped.push_str("&apos;"),
            '"' => escaped.push_str("&quot;"),
            '\t' => escaped.push_str("&#9;"),
            '\n' => escaped.push_str("&#10;"),
            '\r' => escaped.push_str("&#13;"),
            letter if is_allowed(letter) => escaped.push(letter),
            _ => escaped.push(char::REPLACEMENT_CHARACTER),
        }
    }
    Cow::Owned(escaped)
}

fn declare(out: &mut dyn Write, id: &str, domain: &str, name: &str, kind: ColumnType) -> io::Result<()> {
    let (id, name, kind) = (escape(id), escape(name), kind.name());
    writeln!(out, "<key id=\"{id}\" for=\"{domain}\" attr.name=\"{name}\" attr.type=\"{kind}\"/>")
}

fn data(out: &mut dyn Write, id: &str, text: &str) -> io::Result<()> {
    write!(out, "<data key=\"{}\">{}</data>", escape(id), escape(text))
}

fn plain(value: &Value) -> String {
    text_form(value).map_or_else(|| crate::render::literal(value), |(_, text)| text)
}
