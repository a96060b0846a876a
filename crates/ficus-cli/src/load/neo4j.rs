//! CSV with the headers of `neo4j-admin import`: `:ID(space)`, `:LABEL`, `:START_ID`, `:END_ID`, `:TYPE`, `name:type[]`.
//!
//! Ids of an id space become `space:id`, so that equal ids of two spaces stay apart. Ids outside a space are strings
//! unless the header says `:ID{id-type:long}` or the command line gives another type; in a space the header's type says that
//! `007` and `7` are one id. Several labels in one field are
//! joined with `::`, since a vertex has one label.

use std::collections::HashMap;
use std::sync::Arc;

use super::table::{EdgePlan, IdForm, IdPlan, LabelPlan, PropertyPlan, Shape, TableKind, TablePlan, VertexPlan};
use crate::column_type::ColumnType;

/// The label of vertices that have none.
pub const DEFAULT_LABEL: &str = "vertex";

/// What the command line adds to a header.
#[derive(Clone, Debug)]
pub struct Neo4jOptions {
    /// Label or type of every row, where the header has no column for it.
    pub label: Option<Arc<str>>,
    /// Type of ids outside an id space.
    pub id_kind: ColumnType,
    /// Between the values of an array.
    pub list_separator: char,
}

/// Whether a header is of this kind.
pub fn recognises(header: &[String]) -> bool {
    header.iter().any(|column| {
        let role = column.split_once(':').map_or("", |(_, role)| role);
        ["ID", "START_ID", "END_ID"]
            .iter()
            .any(|known| role.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with(['(', '{'])))
    })
}

/// One header field taken apart: `name:TYPE(space){option:value}[]`.
struct Column<'a> {
    name: &'a str,
    kind: &'a str,
    space: Option<&'a str>,
    options: HashMap<&'a str, &'a str>,
    array: bool,
}

fn column(text: &str) -> Result<Column<'_>, String> {
    let (name, mut rest) = text.split_once(':').unwrap_or((text, ""));
    let mut options = HashMap::new();
    let mut space = None;
    let array = match rest.strip_suffix("[]") {
        Some(shorter) => {
            rest = shorter;
            true
        }
        None => false,
    };
    if let Some(open) = rest.find('{') {
        let inner = rest[open + 1..]
            .strip_suffix('}')
            .ok_or_else(|| format!("header '{text}' opens a brace that does not close at its end"))?;
        for option in inner.split(',') {
            let (key, value) = option
                .split_once([':', '='])
                .ok_or_else(|| format!("header '{text}': '{option}' is not of the form name:value"))?;
            options.insert(key.trim(), value.trim());
        }
        rest = &rest[..open];
    }
    if let Some(open) = rest.find('(') {
        let inner = rest[open + 1..]
            .strip_suffix(')')
            .ok_or_else(|| format!("header '{text}' opens a parenthesis that does not close"))?;
        space = Some(inner).filter(|space| !space.is_empty());
        rest = &rest[..open];
    }
    Ok(Column { name, kind: rest, space, options, array })
}

/// Reads a header into a plan.
pub fn plan(header: Vec<String>, options: &Neo4jOptions) -> Result<TablePlan, String> {
    let mut id = None;
    let mut out = None;
    let mut r#in = None;
    let mut label = None;
    let mut properties = Vec::new();
    for (index, text) in header.iter().enumerate() {
        let column = column(text)?;
        let role = column.kind;
        let id_plan = || -> Result<IdPlan, String> {
            for option in column.options.keys() {
                if !["id-type", "label"].contains(option) {
                    return Err(format!("header '{text}': unknown option '{option}'; id-type is known"));
                }
            }
            let kind = match (column.options.get("id-type"), column.space) {
                (Some(name), _) => {
                    ColumnType::from_name(name).map_err(|reason| format!("header '{text}': {reason}"))?
                }
                (None, None) => options.id_kind,
                (None, Some(_)) => ColumnType::String,
            };
            Ok(IdPlan { column: index, form: IdForm { space: column.space.map(Arc::from), kind } })
        };
        let once = |slot: &mut Option<IdPlan>| -> Result<(), String> {
            match slot.replace(id_plan()?) {
                None => Ok(()),
                Some(_) => Err(format!("the header has two :{role} columns; ids of several columns are not supported")),
            }
        };
        match role {
            "ID" => {
                once(&mut id)?;
                if !column.name.is_empty() {
                    let kind = match column.options.contains_key("id-type") {
                        true => id.as_ref().map_or(options.id_kind, |id| id.form.kind),
                        false => options.id_kind,
                    };
                    properties.push(PropertyPlan { column: index, key: column.name.into(), kind, shape: Shape::One });
                }
            }
            "START_ID" => once(&mut out)?,
            "END_ID" => once(&mut r#in)?,
            "LABEL" | "TYPE" => {
                let separator = (role == "LABEL").then_some(options.list_separator);
                label = Some(LabelPlan::Column {
                    column: index,
                    renamed: HashMap::new(),
                    fallback: options.label.clone().or_else(|| (role == "LABEL").then(|| DEFAULT_LABEL.into())),
                    separator,
                });
            }
            "IGNORE" => {}
            kind => {
                if column.name.is_empty() {
                    return Err(format!("header column {} ('{text}') has no name", index + 1));
                }
                if let Some(option) = column.options.keys().next() {
                    return Err(format!(
                        "header '{text}': the option '{option}' is not supported; write the type alone"
                    ));
                }
                let kind = if kind.is_empty() { "string" } else { kind };
                properties.push(PropertyPlan {
                    column: index,
                    key: column.name.into(),
                    kind: ColumnType::from_name(kind).map_err(|reason| format!("header '{text}': {reason}"))?,
                    shape: if column.array { Shape::Array } else { Shape::One },
                });
            }
        }
    }
    let kind = match (id, out, r#in) {
        (Some(id), None, None) => {
            let fallback = options.label.clone().unwrap_or_else(|| DEFAULT_LABEL.into());
            TableKind::Vertices(VertexPlan {
                id,
                label: label.unwrap_or(LabelPlan::Fixed(fallback)),
                properties,
                foreign_keys: Vec::new(),
            })
        }
        (id, Some(out), Some(r#in)) => TableKind::Edges(EdgePlan {
            id,
            label: label
                .or_else(|| options.label.clone().map(LabelPlan::Fixed))
                .ok_or("the header has no :TYPE column; add one or give the type with --edges TYPE=FILE")?,
            out,
            r#in,
            properties,
            symmetric: false,
            implied_label: None,
        }),
        _ => {
            return Err("the header needs an :ID column (vertices), or both :START_ID and :END_ID (edges)".into());
        }
    };
    Ok(TablePlan { columns: header, list_separator: options.list_separator, kind })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::rows::Dialect;
    use crate::load::table::testing::{header, records};

    fn read(text: &str) -> Result<Vec<String>, String> {
        let options = Neo4jOptions { label: None, id_kind: ColumnType::String, list_separator: ';' };
        let dialect = Dialect::default();
        let header = header(text, dialect);
        assert!(recognises(&header), "{header:?}");
        Ok(records(&plan(header, &options)?, text, dialect))
    }

    #[test]
    fn reads_vertices() {
        let text = "personId:ID(Person),name,age:int,:LABEL,langs:string[],skip:IGNORE\n\
                    1,\"Ann, B\",30,Person;Actor,en;de,x\n2,,,,,\n3,\"\",old,P,,\n,x,1,P,,\n4,a\n";
        assert_eq!(
            read(text),
            Ok([
                "2:0 vertex String(\"Person:1\") Person::Actor personId=String(\"1\") name=String(\"Ann, B\") age=Int(30) \
                 langs=List([String(\"en\"), String(\"de\")])",
                "3:0 vertex String(\"Person:2\") vertex personId=String(\"2\")",
                "4:6 reject column 'age:int': 'old' is not an int",
                "5:1 reject column 'personId:ID(Person)' is empty, but it holds an id",
                "6:0 reject 2 columns, but the header has 6",
            ]
            .map(str::to_owned)
            .to_vec())
        );
    }

    #[test]
    fn rejects_labels_without_letters() {
        let found = read(":ID,:LABEL\n1,;\n2,A;;B\n").expect("the header is understood");
        assert_eq!(found, ["2:0 reject its label is empty", "3:0 vertex String(\"2\") A::B"]);
    }

    #[test]
    fn reads_empty_items_of_lists() {
        let found =
            read(":ID,s:string[],n:int[]\n1,x;;y,1;2\n2,;,\n3,\"\",\n4,,1;;2\n").expect("the header is understood");
        assert_eq!(
            found,
            [
                "2:0 vertex String(\"1\") vertex s=List([String(\"x\"), String(\"\"), String(\"y\")]) n=List([Int(1), Int(2)])",
                "3:0 vertex String(\"2\") vertex s=List([String(\"\"), String(\"\")])",
                "4:0 vertex String(\"3\") vertex s=List([])",
                "5:4 reject column 'n:int[]': item 2 of the list is empty, which only texts may be",
            ]
        );
    }

    #[test]
    fn reads_edges() {
        let text =
            ":START_ID(Person),:END_ID{id-type:long},:TYPE,since:date\n1,20,KNOWS,1970-01-02\n1,x,KNOWS,\n1,2,,\n";
        assert_eq!(
            read(text),
            Ok([
                "2:0 edge - KNOWS String(\"Person:1\")->Long(20) \
                 since=DateTime(OffsetDateTime { epoch_seconds: 86400, nanos: 0, offset_seconds: 0 })",
                "3:3 reject column ':END_ID{id-type:long}': 'x' is not a long",
                "4:5 reject column ':TYPE' is empty, but it gives the label",
            ]
            .map(str::to_owned)
            .to_vec())
        );
    }

    #[test]
    fn numbers_in_spaces_are_one_however_they_are_written() {
        let found = read("n:ID(P){id-type:long},:LABEL\n007,A\n 8,A\nx,A\n").expect("the header is understood");
        assert_eq!(
            found,
            [
                "2:0 vertex String(\"P:7\") A n=Long(7)",
                "3:0 vertex String(\"P:8\") A n=Long(8)",
                "4:1 reject column 'n:ID(P){id-type:long}': 'x' is not a long",
            ]
        );
        let found = read(":START_ID(P){id-type:long},:END_ID(P){id-type:long},:TYPE\n7,+08,t\n").expect("as above");
        assert_eq!(found, ["2:0 edge - t String(\"P:7\")->String(\"P:8\")"]);
    }

    #[test]
    fn refuses_headers_it_cannot_honour() {
        let cases = [
            (":ID,a:point", "unknown column type 'point'"),
            (":ID,:ID", "two :ID columns"),
            (":START_ID,:TYPE", "needs an :ID column"),
            (":START_ID,:END_ID", "no :TYPE column"),
            (":ID{colour:red}", "unknown option 'colour'"),
            (":ID(a", "does not close"),
            (":ID,:int", "has no name"),
        ];
        for (text, part) in cases {
            let error = read(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
