//! Tables: what each column of a delimited file means, and the walk over its rows.
//!
//! The readers for Neo4j and Neptune headers and for mapping files all end in one [`TablePlan`]; this module alone turns
//! rows into records. A row of a vertex table may also yield edges (foreign keys), which is why edges are read in a pass
//! of their own.

use std::collections::HashMap;
use std::io::BufRead;
use std::sync::Arc;

use ficus_model::{Cardinality, Value};
use ficus_storage::{IdPrefix, IdPrefixes};

use super::record::{EdgeRecord, Pass, PropertyRecord, ReadError, Record, Sink, VertexRecord};
use super::rows::{Field, RowStatus, Rows};
use crate::column_type::ColumnType;

/// How the text of an id column becomes an id.
#[derive(Clone, Debug, PartialEq)]
pub struct IdForm {
    /// The id space: ids become `space:text`, so that equal numbers in two spaces stay apart.
    pub space: Option<Arc<str>>,
    /// The type of ids outside a space.
    pub kind: ColumnType,
}

impl IdForm {
    /// The prefix that ids of a space have.
    pub fn prefix(&self, prefixes: &IdPrefixes) -> Option<IdPrefix> {
        prefixes.find(&format!("{}:", self.space.as_ref()?))
    }

    /// Makes an id from the text of a column.
    pub fn id(&self, text: &str) -> Result<Value, String> {
        match &self.space {
            Some(space) => {
                let mut id = String::with_capacity(space.len() + 1 + text.len());
                id.push_str(space);
                id.push(':');
                id.push_str(text);
                Ok(Value::String(Arc::from(id)))
            }
            None => self.kind.parse(text),
        }
    }
}

/// A column that holds an id.
#[derive(Clone, Debug, PartialEq)]
pub struct IdPlan {
    /// Index of the column.
    pub column: usize,
    /// What its text becomes.
    pub form: IdForm,
}

/// Where a label comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum LabelPlan {
    /// Every row has the same.
    Fixed(Arc<str>),
    /// A column says it.
    Column {
        /// Index of the column.
        column: usize,
        /// Labels for certain texts; other texts are labels themselves.
        renamed: HashMap<String, Arc<str>>,
        /// Used where the column is empty; `None` rejects such rows.
        fallback: Option<Arc<str>>,
        /// Separates several labels, which are joined with `::`.
        separator: Option<char>,
    },
}

impl LabelPlan {
    /// The label that a text in the column stands for; the text is not empty.
    pub fn label(&self, text: &str) -> Arc<str> {
        match self {
            LabelPlan::Fixed(label) => label.clone(),
            LabelPlan::Column { renamed, separator, .. } => match (renamed.get(text), separator) {
                (Some(label), _) => label.clone(),
                (None, Some(separator)) if text.contains(*separator) => {
                    let parts: Vec<&str> = text.split(*separator).filter(|part| !part.is_empty()).collect();
                    Arc::from(parts.join("::"))
                }
                _ => Arc::from(text),
            },
        }
    }
}

/// How the values of one column are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One value.
    One,
    /// One value among those that other rows or columns add under the key.
    Member(Cardinality),
    /// Separated values kept as one list value.
    Array,
    /// Separated values, each a property of the vertex.
    Multi(Cardinality),
}

/// A column that becomes a property.
#[derive(Clone, Debug, PartialEq)]
pub struct PropertyPlan {
    /// Index of the column.
    pub column: usize,
    /// The key.
    pub key: Arc<str>,
    /// The type of each value.
    pub kind: ColumnType,
    /// One value or several.
    pub shape: Shape,
}

/// A column of a vertex table that names other vertices.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignKey {
    /// Index of the column.
    pub column: usize,
    /// Label of the edge.
    pub label: Arc<str>,
    /// How the other vertex's id is made.
    pub other: IdForm,
    /// True if the edge leads from this row's vertex to the other.
    pub outgoing: bool,
    /// True if the column holds several ids.
    pub several: bool,
}

/// A table of vertices.
#[derive(Clone, Debug, PartialEq)]
pub struct VertexPlan {
    /// The id.
    pub id: IdPlan,
    /// The label.
    pub label: LabelPlan,
    /// The properties.
    pub properties: Vec<PropertyPlan>,
    /// Columns that become edges.
    pub foreign_keys: Vec<ForeignKey>,
}

/// A table of edges.
#[derive(Clone, Debug, PartialEq)]
pub struct EdgePlan {
    /// The id, where there is one.
    pub id: Option<IdPlan>,
    /// The label.
    pub label: LabelPlan,
    /// The source vertex.
    pub out: IdPlan,
    /// The target vertex.
    pub r#in: IdPlan,
    /// The properties.
    pub properties: Vec<PropertyPlan>,
    /// True if each row also makes an edge the other way.
    pub symmetric: bool,
    /// If given, vertices that do not exist are created with this label.
    pub implied_label: Option<Arc<str>>,
}

/// What the rows of a table are.
#[derive(Clone, Debug, PartialEq)]
pub enum TableKind {
    /// Vertices.
    Vertices(VertexPlan),
    /// Edges.
    Edges(EdgePlan),
}

/// The meaning of all columns of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct TablePlan {
    /// Names of the columns, for messages.
    pub columns: Vec<String>,
    /// Between the values of one field.
    pub list_separator: char,
    /// What a row is.
    pub kind: TableKind,
}

impl TablePlan {
    /// Walks over all rows that are left and hands their records of `pass` to the sink.
    pub fn read<R: BufRead>(&self, rows: &mut Rows<R>, pass: Pass, sink: &mut Sink<'_>) -> Result<(), ReadError> {
        if !self.speaks_in(pass) {
            return Ok(());
        }
        while self.read_row(rows, pass, sink)? {}
        Ok(())
    }

    /// Whether rows yield anything in a pass.
    pub fn speaks_in(&self, pass: Pass) -> bool {
        match (&self.kind, pass) {
            (TableKind::Vertices(_), Pass::Vertices) | (TableKind::Edges(_), Pass::Edges) => true,
            (TableKind::Vertices(plan), Pass::Edges) => !plan.foreign_keys.is_empty(),
            (TableKind::Edges(plan), Pass::Vertices) => plan.implied_label.is_some(),
        }
    }

    /// The id spaces that its columns name.
    pub fn id_spaces(&self) -> Vec<&Arc<str>> {
        let forms: Vec<&IdForm> = match &self.kind {
            TableKind::Vertices(plan) => {
                let others = plan.foreign_keys.iter().map(|key| &key.other);
                std::iter::once(&plan.id.form).chain(others).collect()
            }
            TableKind::Edges(plan) => vec![&plan.out.form, &plan.r#in.form],
        };
        forms.into_iter().filter_map(|form| form.space.as_ref()).collect()
    }

    /// Columns of a table of vertices that name other vertices.
    pub fn foreign_keys(&self) -> &[ForeignKey] {
        match &self.kind {
            TableKind::Vertices(plan) => &plan.foreign_keys,
            TableKind::Edges(_) => &[],
        }
    }

    /// Hands the records of the next row to the sink; false if there is none.
    pub fn read_row<R: BufRead>(&self, rows: &mut Rows<R>, pass: Pass, sink: &mut Sink<'_>) -> Result<bool, ReadError> {
        // A row that cannot be split is reported once: for an edge table that is the pass in which its rows count.
        let reporting_pass = match &self.kind {
            TableKind::Vertices(_) => Pass::Vertices,
            TableKind::Edges(_) => Pass::Edges,
        };
        let broken = match rows.next_row()? {
            RowStatus::End => return Ok(false),
            RowStatus::Row if rows.len() == self.columns.len() => None,
            RowStatus::Row => Some((0, format!("{} columns, but the header has {}", rows.len(), self.columns.len()))),
            RowStatus::Broken(column, reason) => Some((column, reason)),
        };
        if let Some((column, reason)) = broken {
            if pass == reporting_pass {
                sink.begin_row(rows.raw())?;
                sink.reject(reason, rows.line(), column);
            }
            return Ok(true);
        }
        sink.begin_row(rows.raw())?;
        match (&self.kind, pass) {
            (TableKind::Vertices(plan), Pass::Vertices) => {
                report(sink, rows.line(), self.vertex(plan, rows).map(Record::Vertex));
            }
            (TableKind::Vertices(plan), Pass::Edges) => self.foreign_edges(plan, rows, sink),
            (TableKind::Edges(plan), Pass::Vertices) => self.implied_vertices(plan, rows, sink),
            (TableKind::Edges(plan), Pass::Edges) => self.edges(plan, rows, sink),
        }
        Ok(true)
    }

    fn vertex<R: BufRead>(&self, plan: &VertexPlan, rows: &Rows<R>) -> Result<VertexRecord, Flaw> {
        let id = self.required_id(&plan.id, rows)?;
        let label = self.label(&plan.label, rows)?;
        let mut properties = Vec::with_capacity(plan.properties.len());
        for property in &plan.properties {
            let Some(field) = present(rows, property.column) else { continue };
            match property.shape {
                Shape::Multi(cardinality) => {
                    let text = self.text(field, property.column)?;
                    for part in self.parts(text) {
                        let value =
                            property.kind.parse(part).map_err(|reason| self.flaw(field, property.column, reason))?;
                        let key = property.key.clone();
                        properties.push(PropertyRecord { cardinality, ..PropertyRecord::single(key, value) });
                    }
                }
                shape => {
                    let cardinality = if let Shape::Member(given) = shape { given } else { Cardinality::Single };
                    let value = self.value(property, field)?;
                    properties
                        .push(PropertyRecord { cardinality, ..PropertyRecord::single(property.key.clone(), value) });
                }
            }
        }
        Ok(VertexRecord { id, label, properties, implied: false })
    }

    fn foreign_edges<R: BufRead>(&self, plan: &VertexPlan, rows: &Rows<R>, sink: &mut Sink<'_>) {
        // A row without a usable id was rejected as a vertex already.
        let Ok(own) = self.required_id(&plan.id, rows) else { return };
        for key in &plan.foreign_keys {
            let Some(field) = present(rows, key.column) else { continue };
            let text = match self.text(field, key.column) {
                Ok(text) => text,
                Err(flaw) => {
                    sink.reject(flaw.reason, rows.line(), flaw.column);
                    continue;
                }
            };
            let edge_to = |part: &str| {
                let other = key.other.id(part).map_err(|reason| self.flaw(field, key.column, reason))?;
                let (out_id, in_id) = if key.outgoing { (own.clone(), other) } else { (other, own.clone()) };
                Ok(Record::Edge(EdgeRecord {
                    id: None,
                    label: key.label.clone(),
                    out_id,
                    in_id,
                    properties: Vec::new(),
                }))
            };
            if key.several {
                for part in self.parts(text) {
                    report(sink, rows.line(), edge_to(part));
                }
            } else {
                report(sink, rows.line(), edge_to(text));
            }
        }
    }

    fn implied_vertices<R: BufRead>(&self, plan: &EdgePlan, rows: &Rows<R>, sink: &mut Sink<'_>) {
        let Some(label) = &plan.implied_label else { return };
        for end in [&plan.out, &plan.r#in] {
            // A flaw is reported when the row is read as an edge.
            if let Ok(id) = self.required_id(end, rows) {
                let vertex = VertexRecord { id, label: label.clone(), properties: Vec::new(), implied: true };
                sink.record(Record::Vertex(vertex), rows.line(), 0);
            }
        }
    }

    fn edges<R: BufRead>(&self, plan: &EdgePlan, rows: &Rows<R>, sink: &mut Sink<'_>) {
        let edge = match self.edge(plan, rows) {
            Ok(edge) => edge,
            Err(flaw) => return sink.reject(flaw.reason, rows.line(), flaw.column),
        };
        if plan.symmetric {
            let reverse = EdgeRecord {
                id: None,
                label: edge.label.clone(),
                out_id: edge.in_id.clone(),
                in_id: edge.out_id.clone(),
                properties: edge.properties.clone(),
            };
            sink.record(Record::Edge(edge), rows.line(), 0);
            sink.record(Record::Edge(reverse), rows.line(), 0);
        } else {
            sink.record(Record::Edge(edge), rows.line(), 0);
        }
    }

    fn edge<R: BufRead>(&self, plan: &EdgePlan, rows: &Rows<R>) -> Result<EdgeRecord, Flaw> {
        let id = match &plan.id {
            Some(id) => Some(self.required_id(id, rows)?),
            None => None,
        };
        let out_id = self.required_id(&plan.out, rows)?;
        let in_id = self.required_id(&plan.r#in, rows)?;
        let label = self.label(&plan.label, rows)?;
        let mut properties = Vec::with_capacity(plan.properties.len());
        for property in &plan.properties {
            if let Some(field) = present(rows, property.column) {
                properties.push((property.key.clone(), self.value(property, field)?));
            }
        }
        Ok(EdgeRecord { id, label, out_id, in_id, properties })
    }

    fn value(&self, plan: &PropertyPlan, field: Field<'_>) -> Result<Value, Flaw> {
        let text = self.text(field, plan.column)?;
        let parsed = match plan.shape {
            Shape::One | Shape::Member(_) => plan.kind.parse(text),
            Shape::Array | Shape::Multi(_) => self
                .parts(text)
                .map(|part| plan.kind.parse(part))
                .collect::<Result<Vec<Value>, String>>()
                .map(|values| Value::List(Arc::new(values))),
        };
        parsed.map_err(|reason| self.flaw(field, plan.column, reason))
    }

    fn label<R: BufRead>(&self, plan: &LabelPlan, rows: &Rows<R>) -> Result<Arc<str>, Flaw> {
        match plan {
            LabelPlan::Fixed(label) => Ok(label.clone()),
            LabelPlan::Column { column, fallback, .. } => {
                let field = present(rows, *column).filter(|field| !field.bytes.is_empty());
                let Some(field) = field else {
                    return fallback.clone().ok_or_else(|| Flaw {
                        column: rows.field(*column).map_or(0, |field| field.column),
                        reason: format!("column '{}' is empty, but it gives the label", self.columns[*column]),
                    });
                };
                Ok(plan.label(self.text(field, *column)?))
            }
        }
    }

    fn required_id<R: BufRead>(&self, plan: &IdPlan, rows: &Rows<R>) -> Result<Value, Flaw> {
        let field = match rows.field(plan.column) {
            Some(field) if !field.bytes.is_empty() => field,
            field => {
                return Err(Flaw {
                    column: field.map_or(0, |field| field.column),
                    reason: format!("column '{}' is empty, but it holds an id", self.columns[plan.column]),
                });
            }
        };
        let text = self.text(field, plan.column)?;
        plan.form.id(text).map_err(|reason| self.flaw(field, plan.column, reason))
    }

    fn text<'a>(&self, field: Field<'a>, column: usize) -> Result<&'a str, Flaw> {
        field.text().map_err(|reason| self.flaw(field, column, reason))
    }

    fn parts<'a>(&self, text: &'a str) -> impl Iterator<Item = &'a str> + use<'a> {
        text.split(self.list_separator).filter(|part| !part.is_empty())
    }

    fn flaw(&self, field: Field<'_>, column: usize, reason: String) -> Flaw {
        Flaw { column: field.column, reason: format!("column '{}': {reason}", self.columns[column]) }
    }
}

/// Why a row yields no record.
struct Flaw {
    column: u32,
    reason: String,
}

/// A field that is not null; an empty one is null unless it stood in quotes.
fn present<R: BufRead>(rows: &Rows<R>, column: usize) -> Option<Field<'_>> {
    rows.field(column).filter(|field| field.quoted || !field.bytes.is_empty())
}

fn report(sink: &mut Sink<'_>, line: u64, found: Result<Record, Flaw>) {
    match found {
        Ok(record) => sink.record(record, line, 0),
        Err(flaw) => sink.reject(flaw.reason, line, flaw.column),
    }
}

#[cfg(test)]
pub mod testing {
    //! Runs a plan over text, for the tests of the header readers.

    use super::*;
    use crate::load::record::testing::collect;
    use crate::load::rows::Dialect;

    /// The header fields of a text.
    pub fn header(text: &str, dialect: Dialect) -> Vec<String> {
        let mut rows = Rows::new(text.as_bytes(), dialect);
        rows.next_row().expect("memory cannot fail");
        (0..rows.len())
            .filter_map(|index| rows.field(index))
            .map(|field| field.text().expect("UTF-8").to_owned())
            .collect()
    }

    /// All records of both passes over the rows after the header.
    pub fn records(plan: &TablePlan, text: &str, dialect: Dialect) -> Vec<String> {
        let mut found = Vec::new();
        for pass in [Pass::Vertices, Pass::Edges] {
            found.extend(collect(|sink| {
                let mut rows = Rows::new(text.as_bytes(), dialect);
                rows.next_row()?;
                plan.read(&mut rows, pass, sink)
            }));
        }
        found
    }
}
