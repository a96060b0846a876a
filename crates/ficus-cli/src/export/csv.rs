//! Writes CSV with the headers of Neptune or of neo4j-admin: a folder with one file per label.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use ficus_model::Value;

use super::TargetForm;
use super::elements::Elements;
use super::survey::{Column, Columns, LIST_SEPARATOR, Survey, file_name};
use crate::column_type::{ColumnType, text_form};

struct Table {
    out: BufWriter<File>,
    columns: Columns,
}

/// Writes the folder; it may exist, files in it are replaced.
pub fn write(elements: &Elements, survey: &Survey, form: TargetForm, folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let id_kind = survey.vertex_id_kind.unwrap_or(ColumnType::String);
    let mut vertices = open(folder, "vertices", &survey.vertices, |columns| header(columns, form, id_kind, false))?;
    elements.each_vertex(|vertex| {
        let vertex = elements.vertex(vertex)?;
        let Some(table) = vertices.get_mut(&vertex.label) else { return Ok(()) };
        let mut row = vec![plain(&vertex.id), vertex.label.to_string()];
        for (key, column) in &table.columns {
            let mut values =
                vertex.properties.iter().filter(|property| property.key == *key).map(|property| &property.value);
            row.push(if column.several && form == TargetForm::Neptune {
                let texts: Vec<String> = values.map(plain).collect();
                texts.join(&LIST_SEPARATOR.to_string())
            } else {
                values.next().map(|value| field(value, column)).unwrap_or_default()
            });
        }
        let present = |key: &Arc<str>| vertex.properties.iter().any(|property| property.key == *key);
        write_row(&mut table.out, &row, &table.columns, 2, present)
    })?;
    let mut edges = open(folder, "edges", &survey.edges, |columns| header(columns, form, id_kind, true))?;
    elements.each_edge(|edge| {
        let edge = elements.edge(edge)?;
        let Some(table) = edges.get_mut(&edge.label) else { return Ok(()) };
        let (out_id, in_id) = (plain(&edge.out_id), plain(&edge.in_id));
        let mut row = match form {
            TargetForm::Neptune => vec![plain(&edge.id), out_id, in_id, edge.label.to_string()],
            _ => vec![out_id, in_id, edge.label.to_string()],
        };
        let lead = row.len();
        for (key, column) in &table.columns {
            let value = edge.properties.iter().find(|(known, _)| known == key);
            row.push(value.map(|(_, value)| field(value, column)).unwrap_or_default());
        }
        let present = |key: &Arc<str>| edge.properties.iter().any(|(known, _)| known == key);
        write_row(&mut table.out, &row, &table.columns, lead, present)
    })?;
    for mut table in vertices.into_values().chain(edges.into_values()) {
        table.out.flush()?;
    }
    Ok(())
}

/// Opens a file per label and writes its header.
fn open(
    folder: &Path,
    kind: &str,
    tables: &BTreeMap<Arc<str>, Columns>,
    header: impl Fn(&Columns) -> Vec<String>,
) -> io::Result<BTreeMap<Arc<str>, Table>> {
    let mut names = HashSet::new();
    let mut opened = BTreeMap::new();
    for (label, columns) in tables {
        let name = file_name(kind, label, &mut names);
        let mut out = BufWriter::new(File::create(folder.join(format!("{name}.csv")))?);
        writeln!(out, "{}", header(columns).iter().map(|text| quoted(text, false)).collect::<Vec<_>>().join(","))?;
        opened.insert(label.clone(), Table { out, columns: columns.clone() });
    }
    Ok(opened)
}

fn header(columns: &Columns, form: TargetForm, id_kind: ColumnType, of_edges: bool) -> Vec<String> {
    let lead: Vec<String> = match (form, of_edges) {
        (TargetForm::Neptune, false) => ["~id", "~label"].map(str::to_owned).into(),
        (TargetForm::Neptune, true) => ["~id", "~from", "~to", "~label"].map(str::to_owned).into(),
        (_, of_edges) => {
            let option = match id_kind {
                ColumnType::String => String::new(),
                kind => format!("{{id-type:{}}}", kind.name()),
            };
            if of_edges {
                vec![format!(":START_ID{option}"), format!(":END_ID{option}"), ":TYPE".into()]
            } else {
                vec![format!(":ID{option}"), ":LABEL".into()]
            }
        }
    };
    let typed = columns.iter().map(|(key, column)| match form {
        TargetForm::Neptune => {
            let kind = match column.kind {
                ColumnType::Boolean => "Bool",
                ColumnType::Byte => "Byte",
                ColumnType::Short => "Short",
                ColumnType::Int => "Int",
                ColumnType::Long => "Long",
                ColumnType::Float => "Float",
                ColumnType::Double => "Double",
                ColumnType::DateTime => "Date",
                _ => "String",
            };
            let cardinality = match (of_edges, column.several) {
                (true, _) => "",
                (false, true) => "[]",
                (false, false) => "(single)",
            };
            format!("{}:{kind}{cardinality}", key.replace(':', "\\:"))
        }
        _ => format!("{key}:{}{}", column.kind.name(), if column.several { "[]" } else { "" }),
    });
    lead.into_iter().chain(typed).collect()
}

/// The text of one value, or of a list in a column of lists.
fn field(value: &Value, column: &Column) -> String {
    match value {
        Value::List(values) if column.several => {
            values.iter().map(plain).collect::<Vec<_>>().join(&LIST_SEPARATOR.to_string())
        }
        other => plain(other),
    }
}

fn plain(value: &Value) -> String {
    text_form(value).map_or_else(|| crate::render::literal(value), |(_, text)| text)
}

/// Writes a row; an absent property is an empty field, an empty text stands in quotes.
fn write_row(
    out: &mut dyn Write,
    row: &[String],
    columns: &Columns,
    lead: usize,
    present: impl Fn(&Arc<str>) -> bool,
) -> io::Result<()> {
    for (index, text) in row.iter().enumerate() {
        let is_empty_text =
            text.is_empty() && index >= lead && columns.get_index(index - lead).is_some_and(|(key, _)| present(key));
        let separator = if index > 0 { "," } else { "" };
        write!(out, "{separator}{}", quoted(text, is_empty_text))?;
    }
    out.write_all(b"\n")
}

fn quoted(text: &str, always: bool) -> String {
    if always || text.contains([',', '"', '\n', '\r']) || text.starts_with([' ', '#']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
