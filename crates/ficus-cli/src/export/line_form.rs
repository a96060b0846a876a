//! Writes the compact form that [`crate::compact`] describes.

use std::io::{self, Write};
use std::sync::Arc;

use ficus_model::Value;

use super::elements::Elements;
use crate::compact::{FIRST_LINE, push_text, push_value};

/// Writes all vertices, then all edges.
pub fn write(elements: &Elements, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{FIRST_LINE}")?;
    let mut line = String::new();
    elements.each_vertex(|vertex| {
        let vertex = elements.vertex(vertex)?;
        line.clear();
        line.push_str("v\t");
        push(&mut line, &vertex.id)?;
        line.push('\t');
        push_text(&mut line, &vertex.label);
        line.push('\n');
        for property in &vertex.properties {
            line.push_str(&format!("p\t{}\t", property.id));
            push_text(&mut line, &property.key);
            line.push('\t');
            push(&mut line, &property.value)?;
            push_pairs(&mut line, &property.meta)?;
            line.push('\n');
        }
        out.write_all(line.as_bytes())
    })?;
    elements.each_edge(|edge| {
        let edge = elements.edge(edge)?;
        line.clear();
        line.push_str("e\t");
        push(&mut line, &edge.id)?;
        line.push('\t');
        push_text(&mut line, &edge.label);
        for end in [&edge.out_id, &edge.in_id] {
            line.push('\t');
            push(&mut line, end)?;
        }
        push_pairs(&mut line, &edge.properties)?;
        line.push('\n');
        out.write_all(line.as_bytes())
    })
}

fn push(line: &mut String, value: &Value) -> io::Result<()> {
    push_value(line, value).map_err(io::Error::other)
}

fn push_pairs(line: &mut String, pairs: &[(Arc<str>, Value)]) -> io::Result<()> {
    for (key, value) in pairs {
        line.push('\t');
        push_text(line, key);
        line.push('\t');
        push(line, value)?;
    }
    Ok(())
}
