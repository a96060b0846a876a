//! Writes GraphSON 3: one vertex per line with its properties and with the edges of both directions.

use std::io::{self, Write};
use std::sync::Arc;

use ficus_model::{Direction, Value, VertexId};
use ficus_wire::Format;

use super::elements::{EdgeView, Elements, VertexView};

/// Writes all vertices.
pub fn write(elements: &Elements, out: &mut dyn Write) -> io::Result<()> {
    elements.each_vertex(|id| {
        let vertex = elements.vertex(id)?;
        out.write_all(b"{\"id\":")?;
        value(out, &vertex.id)?;
        out.write_all(b",\"label\":")?;
        text(out, &vertex.label)?;
        edges(elements, id, Direction::In, "inE", out)?;
        edges(elements, id, Direction::Out, "outE", out)?;
        properties(&vertex, out)?;
        out.write_all(b"}\n")
    })
}

fn edges(
    elements: &Elements,
    vertex: VertexId,
    direction: Direction,
    name: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut label: Option<Arc<str>> = None;
    elements.each_edge_of(vertex, direction, |edge| {
        let edge = elements.edge(edge)?;
        // The store hands half-edges out label by label, so a new label ends the list before it.
        match &label {
            Some(open) if *open == edge.label => out.write_all(b",")?,
            open => {
                if open.is_some() {
                    out.write_all(b"],")?;
                } else {
                    write!(out, ",\"{name}\":{{")?;
                }
                text(out, &edge.label)?;
                out.write_all(b":[")?;
                label = Some(edge.label.clone());
            }
        }
        half_edge(&edge, direction, out)
    })?;
    if label.is_some() { out.write_all(b"]}") } else { Ok(()) }
}

fn half_edge(edge: &EdgeView, direction: Direction, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"{\"id\":")?;
    value(out, &edge.id)?;
    let (name, other) = if direction == Direction::Out { ("inV", &edge.in_id) } else { ("outV", &edge.out_id) };
    write!(out, ",\"{name}\":")?;
    value(out, other)?;
    pairs(&edge.properties, out)?;
    out.write_all(b"}")
}

fn properties(vertex: &VertexView, out: &mut dyn Write) -> io::Result<()> {
    if vertex.properties.is_empty() {
        return Ok(());
    }
    // Values of one key stand together, keys in the order of their first value.
    let mut keys: Vec<&Arc<str>> = Vec::new();
    for property in &vertex.properties {
        if !keys.contains(&&property.key) {
            keys.push(&property.key);
        }
    }
    out.write_all(b",\"properties\":{")?;
    for (index, key) in keys.into_iter().enumerate() {
        separate(index, out)?;
        text(out, key)?;
        out.write_all(b":[")?;
        for (index, property) in vertex.properties.iter().filter(|property| property.key == *key).enumerate() {
            separate(index, out)?;
            out.write_all(b"{\"id\":")?;
            value(out, &Value::Long(i64::try_from(property.id).unwrap_or(i64::MAX)))?;
            out.write_all(b",\"value\":")?;
            value(out, &property.value)?;
            pairs(&property.meta, out)?;
            out.write_all(b"}")?;
        }
        out.write_all(b"]")?;
    }
    out.write_all(b"}")
}

fn pairs(pairs: &[(Arc<str>, Value)], out: &mut dyn Write) -> io::Result<()> {
    if pairs.is_empty() {
        return Ok(());
    }
    out.write_all(b",\"properties\":{")?;
    for (index, (key, member)) in pairs.iter().enumerate() {
        separate(index, out)?;
        text(out, key)?;
        out.write_all(b":")?;
        value(out, member)?;
    }
    out.write_all(b"}")
}

fn separate(index: usize, out: &mut dyn Write) -> io::Result<()> {
    if index > 0 { out.write_all(b",") } else { Ok(()) }
}

fn text(out: &mut dyn Write, text: &str) -> io::Result<()> {
    Ok(serde_json::to_writer(out, text)?)
}

fn value(out: &mut dyn Write, value: &Value) -> io::Result<()> {
    let mut bytes = Vec::new();
    ficus_wire::encode_value(Format::GraphSon3, value, &mut bytes)
        .map_err(|error| io::Error::other(error.to_string()))?;
    out.write_all(&bytes)
}
