//! CSV with the headers of Neptune's Gremlin bulk loader: `~id`, `~label`, `~from`, `~to`, `name:Type(cardinality)`.
//!
//! As there, a vertex property has cardinality `set` unless the header says `single`; `Type[]` holds several values
//! separated by `;`. Ids are strings unless the command line gives another type.

use std::collections::HashMap;
use std::sync::Arc;

use ficus_model::Cardinality;

use super::table::{EdgePlan, IdForm, IdPlan, LabelPlan, PropertyPlan, Shape, TableKind, TablePlan, VertexPlan};
use crate::column_type::ColumnType;

/// Whether a header is of this kind.
pub fn recognises(header: &[String]) -> bool {
    header.iter().any(|column| column.trim() == "~id") && header.iter().any(|column| column.trim() == "~label")
        || header.iter().any(|column| column.trim() == "~from")
}

/// Reads a header into a plan; `id_kind` is the type of vertex and edge ids.
pub fn plan(header: Vec<String>, id_kind: ColumnType) -> Result<TablePlan, String> {
    let form = IdForm { space: None, kind: id_kind };
    let id_plan = |column| IdPlan { column, form: form.clone() };
    let (mut id, mut label, mut from, mut to) = (None, None, None, None);
    let is_edge_table = header.iter().any(|column| column.trim() == "~from");
    let mut properties = Vec::new();
    for (index, text) in header.iter().enumerate() {
        match text.trim() {
            "~id" => id = Some(id_plan(index)),
            "~label" => label = Some(index),
            "~from" => from = Some(id_plan(index)),
            "~to" => to = Some(id_plan(index)),
            name if name.starts_with('~') => {
                return Err(format!("unknown column '{name}'; known are ~id, ~label, ~from and ~to"));
            }
            name => properties.push(property(index, name, is_edge_table)?),
        }
    }
    let fallback = |label: &str| -> Option<Arc<str>> { Some(label.into()) };
    let label_plan = |fallback| {
        label.map(|column| LabelPlan::Column { column, renamed: HashMap::new(), fallback, separator: Some(';') })
    };
    let kind = match (id, from, to) {
        (Some(id), None, None) => TableKind::Vertices(VertexPlan {
            id,
            label: label_plan(fallback(super::neo4j::DEFAULT_LABEL)).ok_or("the header has no ~label column")?,
            properties,
            foreign_keys: Vec::new(),
        }),
        (id, Some(out), Some(r#in)) => TableKind::Edges(EdgePlan {
            id,
            label: label_plan(fallback("edge")).ok_or("the header has no ~label column")?,
            out,
            r#in,
            properties,
            symmetric: false,
            implied_label: None,
        }),
        _ => return Err("the header needs ~id and ~label (vertices), or ~from and ~to as well (edges)".into()),
    };
    Ok(TablePlan { columns: header, list_separator: ';', kind })
}

fn property(index: usize, text: &str, is_edge_table: bool) -> Result<PropertyPlan, String> {
    let complain = |reason: String| format!("header '{text}': {reason}");
    // A backslash lets a name hold a colon.
    let colon = text.char_indices().rfind(|(at, letter)| *letter == ':' && !text[..*at].ends_with('\\'));
    let (name, mut kind) = match colon {
        Some((at, _)) => (&text[..at], &text[at + 1..]),
        None => (text, ""),
    };
    let name = name.replace("\\:", ":");
    if name.is_empty() {
        return Err(complain("the property has no name".into()));
    }
    let mut array = false;
    let mut cardinality = None;
    if let Some(shorter) = kind.strip_suffix("[]") {
        (kind, array) = (shorter, true);
    }
    if let Some((before, inner)) = kind.strip_suffix(')').and_then(|open| open.split_once('(')) {
        kind = before;
        cardinality = Some(match inner.to_ascii_lowercase().as_str() {
            "single" => Cardinality::Single,
            "set" => Cardinality::Set,
            _ => return Err(complain(format!("unknown cardinality '{inner}'; single and set are known"))),
        });
    }
    if let Some(shorter) = kind.strip_suffix("[]") {
        (kind, array) = (shorter, true);
    }
    if is_edge_table && (array || cardinality.is_some()) {
        return Err(complain("a property of an edge has one value; leave out cardinality and []".into()));
    }
    if array && cardinality == Some(Cardinality::Single) {
        return Err(complain("single and [] exclude each other".into()));
    }
    let kind = if kind.is_empty() { "string" } else { kind };
    let shape = match (is_edge_table, array, cardinality) {
        (true, ..) | (_, false, Some(Cardinality::Single)) => Shape::One,
        (_, true, _) => Shape::Multi(Cardinality::Set),
        _ => Shape::Member(Cardinality::Set),
    };
    Ok(PropertyPlan { column: index, key: name.into(), kind: ColumnType::from_name(kind).map_err(complain)?, shape })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::rows::Dialect;
    use crate::load::table::testing::{header, records};

    fn read(text: &str) -> Result<Vec<String>, String> {
        let dialect = Dialect::default();
        let header = header(text, dialect);
        assert!(recognises(&header), "{header:?}");
        Ok(records(&plan(header, ColumnType::String)?, text, dialect))
    }

    #[test]
    fn reads_vertices_and_edges() {
        let text = "~id,~label,name:String(single),age:Int,tags:String[],a\\:b:Date\nv1,person,a;b,29,x;y,1970-01-01\nv2,,,,,\n";
        assert_eq!(
            read(text),
            Ok([
                "2:0 vertex String(\"v1\") person name=String(\"a;b\") age=Int(29)*set tags=String(\"x\")*set \
                 tags=String(\"y\")*set a:b=DateTime(OffsetDateTime { epoch_seconds: 0, nanos: 0, offset_seconds: 0 })*set",
                "3:0 vertex String(\"v2\") vertex",
            ]
            .map(str::to_owned)
            .to_vec())
        );
        let text = "~id,~from,~to,~label,weight:Double\ne1,v1,v2,knows,0.5\ne2,v1,,knows,\n";
        assert_eq!(
            read(text),
            Ok([
                "2:0 edge String(\"e1\") knows String(\"v1\")->String(\"v2\") weight=Double(0.5)",
                "3:7 reject column '~to' is empty, but it holds an id",
            ]
            .map(str::to_owned)
            .to_vec())
        );
    }

    #[test]
    fn refuses_headers_it_cannot_honour() {
        let cases = [
            ("~id,~label,a:Point", "unknown column type"),
            ("~id,~label,~frm", "unknown column '~frm'"),
            ("~id,~label,a:Int(many)", "unknown cardinality"),
            ("~id,~from,~to,~label,a:Int[]", "one value"),
            ("~id,~label,a:Int(single)[]", "exclude"),
        ];
        for (text, part) in cases {
            let error = read(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
