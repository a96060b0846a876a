//! Mapping files: which delimited files hold vertices and edges, and what their columns mean.
//!
//! The file is TOML; `docs/loading.md` explains every key. A mapping names files by pattern, so one mapping serves every
//! folder with the same layout. Reading it needs no data; [`Table::plan`] later joins it with a file's header.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ficus_model::Cardinality;
use serde::Deserialize;

use super::rows::Dialect;
use super::table::{
    EdgePlan, ForeignKey, IdForm, IdPlan, LabelPlan, PropertyPlan, Shape, TableKind, TablePlan, VertexPlan,
};
use crate::column_type::ColumnType;
use crate::nearest::nearest;

/// A whole mapping file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mapping {
    /// Form of all files, unless a table says otherwise.
    #[serde(default)]
    csv: CsvForm,
    /// Tables of vertices.
    #[serde(default)]
    vertices: Vec<VertexTable>,
    /// Tables of edges.
    #[serde(default)]
    edges: Vec<EdgeTable>,
}

/// How files are written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CsvForm {
    delimiter: Option<String>,
    quote: Option<String>,
    comment: Option<String>,
    list_separator: Option<String>,
    /// Names of the columns, for files without a header line.
    header: Option<Vec<String>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct VertexTable {
    files: Vec<String>,
    #[serde(default)]
    optional: bool,
    csv: Option<CsvForm>,
    label: Option<String>,
    label_column: Option<ColumnRef>,
    #[serde(default)]
    labels: HashMap<String, String>,
    id: ColumnRef,
    id_space: Option<String>,
    id_type: Option<String>,
    #[serde(default)]
    properties: BTreeMap<String, PropertyForm>,
    #[serde(default)]
    unlisted: Unlisted,
    #[serde(default)]
    edges: Vec<ForeignEdge>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ForeignEdge {
    column: ColumnRef,
    label: String,
    other_space: Option<String>,
    other_type: Option<String>,
    #[serde(default)]
    direction: EdgeDirection,
    #[serde(default)]
    several: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum EdgeDirection {
    #[default]
    Out,
    In,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EdgeTable {
    files: Vec<String>,
    #[serde(default)]
    optional: bool,
    csv: Option<CsvForm>,
    label: Option<String>,
    label_column: Option<ColumnRef>,
    #[serde(default)]
    labels: HashMap<String, String>,
    id: Option<ColumnRef>,
    id_space: Option<String>,
    id_type: Option<String>,
    from: ColumnRef,
    from_space: Option<String>,
    from_type: Option<String>,
    to: ColumnRef,
    to_space: Option<String>,
    to_type: Option<String>,
    #[serde(default)]
    symmetric: bool,
    create_vertices: Option<String>,
    #[serde(default)]
    properties: BTreeMap<String, PropertyForm>,
    #[serde(default)]
    unlisted: Unlisted,
}

/// A column by name, or by position from 1 where names repeat.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum ColumnRef {
    Name(String),
    Position(usize),
}

/// A type, or a type with another key.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum PropertyForm {
    Type(String),
    Renamed(RenamedProperty),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RenamedProperty {
    r#type: String,
    key: String,
}

/// What becomes of columns that the mapping does not mention.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Unlisted {
    #[default]
    String,
    Ignore,
    Refuse,
}

/// One table of a mapping.
#[derive(Clone, Copy, Debug)]
pub enum Table<'a> {
    /// Of vertices.
    Vertices(&'a Mapping, usize),
    /// Of edges.
    Edges(&'a Mapping, usize),
}

impl Mapping {
    /// Reads a mapping from TOML text.
    pub fn parse(text: &str) -> Result<Mapping, String> {
        let mapping: Mapping = toml::from_str(text).map_err(|error| error.to_string())?;
        if mapping.vertices.is_empty() && mapping.edges.is_empty() {
            return Err("it describes no table; add [[vertices]] or [[edges]]".into());
        }
        for table in mapping.tables() {
            table.check()?;
        }
        Ok(mapping)
    }

    /// All tables, those of vertices first.
    pub fn tables(&self) -> Vec<Table<'_>> {
        let vertices = (0..self.vertices.len()).map(|index| Table::Vertices(self, index));
        vertices.chain((0..self.edges.len()).map(|index| Table::Edges(self, index))).collect()
    }
}

impl Table<'_> {
    fn vertices(&self) -> Option<&VertexTable> {
        match self {
            Table::Vertices(mapping, index) => mapping.vertices.get(*index),
            Table::Edges(..) => None,
        }
    }

    /// Patterns of the names of its files.
    pub fn files(&self) -> &[String] {
        match self {
            Table::Vertices(mapping, index) => &mapping.vertices[*index].files,
            Table::Edges(mapping, index) => &mapping.edges[*index].files,
        }
    }

    /// Whether it may be without files.
    pub fn optional(&self) -> bool {
        match self {
            Table::Vertices(mapping, index) => mapping.vertices[*index].optional,
            Table::Edges(mapping, index) => mapping.edges[*index].optional,
        }
    }

    fn form(&self) -> CsvForm {
        let (base, own) = match self {
            Table::Vertices(mapping, index) => (&mapping.csv, mapping.vertices[*index].csv.clone()),
            Table::Edges(mapping, index) => (&mapping.csv, mapping.edges[*index].csv.clone()),
        };
        let own = own.unwrap_or_default();
        CsvForm {
            delimiter: own.delimiter.or_else(|| base.delimiter.clone()),
            quote: own.quote.or_else(|| base.quote.clone()),
            comment: own.comment.or_else(|| base.comment.clone()),
            list_separator: own.list_separator.or_else(|| base.list_separator.clone()),
            header: own.header.or_else(|| base.header.clone()),
        }
    }

    /// How its files are written.
    pub fn dialect(&self) -> Result<Dialect, String> {
        let form = self.form();
        let default = Dialect::default();
        let byte = |name: &str, text: Option<String>| -> Result<Option<u8>, String> {
            match text.as_deref() {
                None => Ok(None),
                Some(text) if text.len() == 1 => Ok(text.bytes().next()),
                Some(text) => Err(format!("csv.{name} must be one ASCII character, not '{text}'")),
            }
        };
        Ok(Dialect {
            delimiter: byte("delimiter", form.delimiter)?.unwrap_or(default.delimiter),
            quote: match form.quote.as_deref() {
                None => default.quote,
                Some("") => None,
                Some(_) => byte("quote", form.quote)?,
            },
            comment: byte("comment", form.comment)?,
        })
    }

    /// The columns, if its files have no header line.
    pub fn header(&self) -> Option<Vec<String>> {
        self.form().header
    }

    /// Joins the table with the header of a file.
    pub fn plan(&self, header: Vec<String>) -> Result<TablePlan, String> {
        let separator = self.form().list_separator.unwrap_or_else(|| ";".into());
        let mut letters = separator.chars();
        let (Some(list_separator), None) = (letters.next(), letters.next()) else {
            return Err(format!("csv.list_separator must be one character, not '{separator}'"));
        };
        let columns = Columns { header: &header };
        let kind = match self {
            Table::Vertices(mapping, index) => TableKind::Vertices(vertex_plan(&mapping.vertices[*index], &columns)?),
            Table::Edges(mapping, index) => TableKind::Edges(edge_plan(&mapping.edges[*index], &columns)?),
        };
        Ok(TablePlan { columns: header, list_separator, kind })
    }

    /// Finds contradictions that need no header.
    fn check(&self) -> Result<(), String> {
        let name = self.files().join(", ");
        let complain = |reason: String| format!("table of {name}: {reason}");
        if self.files().is_empty() {
            return Err("a table names no files".into());
        }
        self.dialect().map_err(complain)?;
        let mut labels: Vec<&String> = Vec::new();
        let (label, label_column) = match self {
            Table::Vertices(mapping, index) => {
                let table = &mapping.vertices[*index];
                labels.extend(table.labels.values().chain(table.edges.iter().map(|edge| &edge.label)));
                (&table.label, &table.label_column)
            }
            Table::Edges(mapping, index) => {
                let table = &mapping.edges[*index];
                labels.extend(table.labels.values().chain(&table.create_vertices));
                (&table.label, &table.label_column)
            }
        };
        if label.is_none() && label_column.is_none() {
            return Err(complain("give `label` or `label_column`".into()));
        }
        if labels.into_iter().chain(label).any(String::is_empty) {
            return Err(complain("a label is empty".into()));
        }
        if let Some(table) = self.vertices() {
            id_form(&table.id_space, &table.id_type).map_err(complain)?;
        }
        Ok(())
    }
}

struct Columns<'a> {
    header: &'a [String],
}

impl Columns<'_> {
    fn find(&self, wanted: &ColumnRef) -> Result<usize, String> {
        match wanted {
            ColumnRef::Position(position) if (1..=self.header.len()).contains(position) => Ok(position - 1),
            ColumnRef::Position(position) => {
                Err(format!("there is no column {position}; the file has {} columns", self.header.len()))
            }
            ColumnRef::Name(name) => {
                let mut found = self.header.iter().enumerate().filter(|(_, column)| *column == name);
                match (found.next(), found.next()) {
                    (Some((index, _)), None) => Ok(index),
                    (Some(_), Some(_)) => {
                        Err(format!("the header has several columns '{name}'; name the column by its position, from 1"))
                    }
                    _ => {
                        let hint = nearest(name, self.header.iter().map(String::as_str))
                            .map(|near| format!("; did you mean '{near}'?"))
                            .unwrap_or_else(|| ".".to_owned());
                        Err(format!("there is no column '{name}'{hint} The header is {}", self.header.join(", ")))
                    }
                }
            }
        }
    }
}

fn id_form(space: &Option<String>, kind: &Option<String>) -> Result<IdForm, String> {
    if let (Some(space), Some(_)) = (space, kind) {
        return Err(format!("ids of the space '{space}' are strings; leave out the id type"));
    }
    Ok(IdForm {
        space: space.as_deref().map(Arc::from),
        kind: kind.as_deref().map_or(Ok(ColumnType::String), ColumnType::from_name)?,
    })
}

fn label_plan(
    label: &Option<String>,
    column: &Option<ColumnRef>,
    labels: &HashMap<String, String>,
    columns: &Columns<'_>,
) -> Result<LabelPlan, String> {
    let fixed: Option<Arc<str>> = label.as_deref().map(Arc::from);
    match (column, fixed) {
        (Some(column), fallback) => Ok(LabelPlan::Column {
            column: columns.find(column)?,
            renamed: labels.iter().map(|(text, label)| (text.clone(), Arc::from(label.as_str()))).collect(),
            fallback,
            separator: None,
        }),
        (None, Some(label)) => Ok(LabelPlan::Fixed(label)),
        (None, None) => Err("give `label` or `label_column`".into()),
    }
}

fn vertex_plan(table: &VertexTable, columns: &Columns<'_>) -> Result<VertexPlan, String> {
    let id = IdPlan { column: columns.find(&table.id)?, form: id_form(&table.id_space, &table.id_type)? };
    let mut used = vec![id.column];
    let label = label_plan(&table.label, &table.label_column, &table.labels, columns)?;
    if let LabelPlan::Column { column, .. } = &label {
        used.push(*column);
    }
    let mut foreign_keys = Vec::new();
    for edge in &table.edges {
        let column = columns.find(&edge.column)?;
        used.push(column);
        foreign_keys.push(ForeignKey {
            column,
            label: Arc::from(edge.label.as_str()),
            other: id_form(&edge.other_space, &edge.other_type)?,
            outgoing: edge.direction == EdgeDirection::Out,
            several: edge.several,
        });
    }
    let properties = property_plans(&table.properties, table.unlisted, &used, columns, false)?;
    Ok(VertexPlan { id, label, properties, foreign_keys })
}

fn edge_plan(table: &EdgeTable, columns: &Columns<'_>) -> Result<EdgePlan, String> {
    let out = IdPlan { column: columns.find(&table.from)?, form: id_form(&table.from_space, &table.from_type)? };
    let r#in = IdPlan { column: columns.find(&table.to)?, form: id_form(&table.to_space, &table.to_type)? };
    let id = match &table.id {
        Some(column) => Some(IdPlan { column: columns.find(column)?, form: id_form(&table.id_space, &table.id_type)? }),
        None => None,
    };
    let label = label_plan(&table.label, &table.label_column, &table.labels, columns)?;
    let mut used = vec![out.column, r#in.column];
    used.extend(id.iter().map(|id| id.column));
    if let LabelPlan::Column { column, .. } = &label {
        used.push(*column);
    }
    Ok(EdgePlan {
        id,
        label,
        out,
        r#in,
        properties: property_plans(&table.properties, table.unlisted, &used, columns, true)?,
        symmetric: table.symmetric,
        implied_label: table.create_vertices.as_deref().map(Arc::from),
    })
}

fn property_plans(
    listed: &BTreeMap<String, PropertyForm>,
    unlisted: Unlisted,
    used: &[usize],
    columns: &Columns<'_>,
    of_edges: bool,
) -> Result<Vec<PropertyPlan>, String> {
    let mut by_column: HashMap<usize, &PropertyForm> = HashMap::new();
    for (name, form) in listed {
        by_column.insert(columns.find(&ColumnRef::Name(name.clone()))?, form);
    }
    let mut plans = Vec::new();
    for (column, name) in columns.header.iter().enumerate() {
        let (key, kind) = match by_column.get(&column) {
            Some(PropertyForm::Type(kind)) => (name, kind.as_str()),
            Some(PropertyForm::Renamed(renamed)) => (&renamed.key, renamed.r#type.as_str()),
            None if used.contains(&column) => continue,
            None => match unlisted {
                Unlisted::String => (name, "string"),
                Unlisted::Ignore => continue,
                Unlisted::Refuse => {
                    return Err(format!("column '{name}' is not listed; give its type, or \"ignore\""));
                }
            },
        };
        if kind == "ignore" {
            continue;
        }
        let (shape, kind) = shape_of(kind).map_err(|reason| format!("column '{name}': {reason}"))?;
        if of_edges && matches!(shape, Shape::Multi(_)) {
            return Err(format!("column '{name}': a property of an edge has one value; use array<type>"));
        }
        let kind = ColumnType::from_name(kind).map_err(|reason| format!("column '{name}': {reason}"))?;
        plans.push(PropertyPlan { column, key: Arc::from(key.as_str()), kind, shape });
    }
    Ok(plans)
}

/// Splits `set<string>` into the shape and the type of each value.
fn shape_of(kind: &str) -> Result<(Shape, &str), String> {
    let Some((outer, inner)) = kind.split_once('<') else { return Ok((Shape::One, kind)) };
    let inner = inner.strip_suffix('>').ok_or_else(|| format!("'{kind}' does not close its '<'"))?;
    let shape = match outer {
        "array" => Shape::Array,
        "list" => Shape::Multi(Cardinality::List),
        "set" => Shape::Multi(Cardinality::Set),
        _ => return Err(format!("unknown form '{outer}<…>'; known are array, list and set")),
    };
    Ok((shape, inner))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::table::testing::{header, records};

    fn read(mapping: &str, text: &str) -> Result<Vec<String>, String> {
        let mapping = Mapping::parse(mapping)?;
        let mut found = Vec::new();
        for table in mapping.tables() {
            let dialect = table.dialect()?;
            let columns = table.header().unwrap_or_else(|| header(text, dialect));
            // Without a header line every line is a row; the walk skips one line.
            let text = if table.header().is_some() { format!("-\n{text}") } else { text.to_owned() };
            found.extend(records(&table.plan(columns)?, &text, dialect));
        }
        Ok(found)
    }

    #[test]
    fn maps_vertices_with_foreign_keys() {
        let mapping = r#"
            csv = { delimiter = "|", quote = "" }
            [[vertices]]
            files = ["post.csv*"]
            label_column = "kind"
            labels = { p = "post" }
            id = "id"
            id_space = "message"
            [vertices.properties]
            created = "epoch-millis"
            langs = "set<string>"
            note = "ignore"
            "len" = { type = "int", key = "length" }
            [[vertices.edges]]
            column = "creator"
            label = "hasCreator"
            other_space = "person"
            [[vertices.edges]]
            column = "forum"
            label = "containerOf"
            other_type = "long"
            direction = "in"
            several = true
        "#;
        let text = "id|kind|created|langs|note|len|creator|forum|free\n1|p|1000|en;de|x|3|7|8;9|\"q\n2|other||||||x|\n|p||||||1|\n";
        let date = "DateTime(OffsetDateTime { epoch_seconds: 1, nanos: 0, offset_seconds: 0 })";
        assert_eq!(
            read(mapping, text),
            Ok([
                format!(
                    "2:0 vertex String(\"message:1\") post created={date} langs=String(\"en\")*set \
                     langs=String(\"de\")*set length=Int(3) free=String(\"\\\"q\")"
                ),
                "3:0 vertex String(\"message:2\") other".into(),
                "4:1 reject column 'id' is empty, but it holds an id".into(),
                "2:0 edge - hasCreator String(\"message:1\")->String(\"person:7\")".into(),
                "2:0 edge - containerOf Long(8)->String(\"message:1\")".into(),
                "2:0 edge - containerOf Long(9)->String(\"message:1\")".into(),
                "3:14 reject column 'forum': 'x' is not a long".into(),
            ]
            .to_vec())
        );
    }

    #[test]
    fn maps_edges_by_position_without_header() {
        let mapping = r##"
            [[edges]]
            files = ["*.txt"]
            csv = { delimiter = "\t", comment = "#", header = ["a", "a", "w"] }
            label = "to"
            from = 1
            from_type = "int"
            to = 2
            to_type = "int"
            symmetric = true
            create_vertices = "node"
            properties = { w = "double" }
        "##;
        assert_eq!(
            read(mapping, "# head\n1\t2\t0.5\n"),
            Ok([
                "3:0 implied Int(1) node",
                "3:0 implied Int(2) node",
                "3:0 edge - to Int(1)->Int(2) w=Double(0.5)",
                "3:0 edge - to Int(2)->Int(1) w=Double(0.5)",
            ]
            .map(str::to_owned)
            .to_vec())
        );
    }

    #[test]
    fn documented_mappings_are_understood() {
        let chapter = include_str!("../../../../docs/loading.md");
        let block =
            chapter.split("```toml").nth(1).and_then(|rest| rest.split("```").next()).expect("one block of TOML");
        let examples = [
            block,
            include_str!("../../../../docs/examples/mappings/snb.toml"),
            include_str!("../../../../docs/examples/mappings/films.toml"),
            include_str!("../../../../docs/examples/mappings/edge-list.toml"),
        ];
        for (example, tables) in examples.into_iter().zip([2, 18, 5, 5]) {
            let mapping = Mapping::parse(example).expect("it is understood");
            assert_eq!(mapping.tables().len(), tables);
        }
    }

    #[test]
    fn refuses_mappings_that_make_no_sense() {
        let edges = "[[edges]]\nfiles = [\"a\"]\n";
        let cases = [
            (String::new(), "describes no table"),
            ("[[vertices]]\nfiles = []\nlabel = \"a\"\nid = \"b\"".into(), "names no files"),
            ("[[vertices]]\nfiles = [\"a\"]\nid = \"b\"".into(), "`label` or `label_column`"),
            ("[[vertices]]\nfiles = [\"a\"]\nlabel = \"a\"\nid = \"b\"\ncolour = 1".into(), "colour"),
            (format!("{edges}label = \"a\"\nfrom = \"src\"\nto = \"target\""), "there is no column 'target'"),
            (format!("{edges}label = \"a\"\nfrom = \"src\"\nto = 9"), "there is no column 9"),
            (format!("{edges}label = \"a\"\nfrom = \"src\"\nto = \"dst\"\nto_type = \"pint\""), "unknown column type"),
            (
                format!("{edges}label = \"a\"\nfrom = \"src\"\nto = \"dst\"\nproperties = {{ w = \"set<int>\" }}"),
                "has one value",
            ),
            (format!("{edges}label = \"a\"\nfrom = \"src\"\nto = \"dst\"\nunlisted = \"refuse\""), "'w' is not listed"),
        ];
        for (mapping, part) in cases {
            let error = read(&mapping, "src,dst,w\n1,2,3\n").expect_err(&mapping);
            assert!(error.contains(part), "{mapping}: {error}");
        }
    }
}
