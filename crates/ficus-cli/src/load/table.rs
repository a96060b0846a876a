//! Tables: what each column of a file of rows means, and the walk over its rows.
//!
//! The readers for Neo4j and Neptune headers and for mapping files all end in one [`TablePlan`]; this module alone turns
//! rows into records, whether their cells are texts (CSV) or values that have a type already (Parquet). A row of a vertex table may also yield edges (foreign keys), which is why edges are read in a pass
//! of their own.

use std::collections::HashMap;
use std::io::BufRead;
use std::sync::Arc;

use ficus_model::{Cardinality, Shared, Value};
use ficus_storage::{IdPrefix, IdPrefixes};

use super::record::{EdgeRecord, Pass, PropertyRecord, ReadError, Record, Sink, VertexRecord};
use super::row::{Cell, Row};
use super::rows::{RowStatus, Rows};
use crate::column_type::{ColumnType, text_form};

/// How the text of an id column becomes an id.
#[derive(Clone, Debug, PartialEq)]
pub struct IdForm {
    /// The id space: ids become `space:text`, so that equal numbers in two spaces stay apart.
    pub space: Option<Arc<str>>,
    /// The type of ids. In a space it says how their text is written: equal numbers are one text.
    pub kind: ColumnType,
}

impl IdForm {
    /// The prefix that ids of a space have.
    pub fn prefix(&self, prefixes: &IdPrefixes) -> Option<IdPrefix> {
        prefixes.find(&format!("{}:", self.space.as_ref()?))
    }

    /// Makes an id from a cell, which is not empty.
    fn id_of(&self, cell: Cell<'_>) -> Result<Value, String> {
        match &self.space {
            Some(_) => self.id(&cell.text()?),
            None => cell.value(self.kind),
        }
    }

    /// Makes an id from the text of a column.
    pub fn id(&self, text: &str) -> Result<Value, String> {
        match &self.space {
            Some(space) => {
                let written = match self.kind {
                    ColumnType::String => None,
                    kind => text_form(&kind.parse(text)?).map(|(_, text)| text),
                };
                let text = written.as_deref().unwrap_or(text);
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

    /// A property of which one column would overwrite what another one gave it.
    pub fn key_overwritten(&self) -> Option<&str> {
        let (properties, has_one_value) = match &self.kind {
            TableKind::Vertices(plan) => (&plan.properties, false),
            TableKind::Edges(plan) => (&plan.properties, true),
        };
        let is_single = |plan: &PropertyPlan| has_one_value || matches!(plan.shape, Shape::One | Shape::Array);
        let mut seen: HashMap<&str, bool> = HashMap::with_capacity(properties.len());
        properties.iter().find_map(|plan| {
            let before = seen.insert(&plan.key, is_single(plan));
            before.is_some_and(|single| single || is_single(plan)).then_some(&*plan.key)
        })
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
        self.records(rows, pass, sink);
        Ok(true)
    }

    /// Hands the records of a row to the sink.
    pub fn records(&self, row: &impl Row, pass: Pass, sink: &mut Sink<'_>) {
        match (&self.kind, pass) {
            (TableKind::Vertices(plan), Pass::Vertices) => {
                report(sink, row.line(), self.vertex(plan, row).map(Record::Vertex));
            }
            (TableKind::Vertices(plan), Pass::Edges) => self.foreign_edges(plan, row, sink),
            (TableKind::Edges(plan), Pass::Vertices) => self.implied_vertices(plan, row, sink),
            (TableKind::Edges(plan), Pass::Edges) => self.edges(plan, row, sink),
        }
    }

    /// The columns that are read.
    pub fn used_columns(&self) -> Vec<usize> {
        let label_column = |label: &LabelPlan| match label {
            LabelPlan::Fixed(_) => None,
            LabelPlan::Column { column, .. } => Some(*column),
        };
        let mut used: Vec<usize> = match &self.kind {
            TableKind::Vertices(VertexPlan { id, label, properties, foreign_keys }) => {
                let properties = properties.iter().map(|property| property.column);
                let keys = foreign_keys.iter().map(|key| key.column);
                std::iter::once(id.column).chain(label_column(label)).chain(properties).chain(keys).collect()
            }
            TableKind::Edges(EdgePlan { id, label, out, r#in, properties, .. }) => {
                let ids = id.iter().chain([out, r#in]).map(|id| id.column);
                ids.chain(label_column(label)).chain(properties.iter().map(|property| property.column)).collect()
            }
        };
        used.sort_unstable();
        used.dedup();
        used
    }

    fn vertex(&self, plan: &VertexPlan, row: &impl Row) -> Result<VertexRecord, Flaw> {
        let id = self.required_id(&plan.id, row)?;
        let label = self.label(&plan.label, row)?;
        let mut properties = Vec::with_capacity(plan.properties.len());
        for property in &plan.properties {
            let Some(cell) = row.cell(property.column) else { continue };
            let mut add = |cardinality, value| {
                let key = property.key.clone();
                properties.push(PropertyRecord { cardinality, ..PropertyRecord::single(key, value) });
            };
            match property.shape {
                Shape::Multi(cardinality) => {
                    for part in self.parts(row, cell, property.column)? {
                        let value = part.value(property.kind);
                        add(cardinality, value.map_err(|reason| self.flaw(row, property.column, reason))?);
                    }
                }
                Shape::Member(cardinality) => add(cardinality, self.value(row, property, cell)?),
                Shape::One | Shape::Array => add(Cardinality::Single, self.value(row, property, cell)?),
            }
        }
        Ok(VertexRecord { id, label, properties, implied: false })
    }

    fn foreign_edges(&self, plan: &VertexPlan, row: &impl Row, sink: &mut Sink<'_>) {
        // A row without a usable id was rejected as a vertex already.
        let Ok(own) = self.required_id(&plan.id, row) else { return };
        for key in &plan.foreign_keys {
            let Some(cell) = row.cell(key.column) else { continue };
            let others = if key.several { self.parts(row, cell, key.column) } else { Ok(vec![cell]) };
            let others = match others {
                Ok(others) => others,
                Err(flaw) => {
                    sink.reject(flaw.reason, row.line(), flaw.column);
                    continue;
                }
            };
            for other in others {
                let other = key.other.id_of(other).map_err(|reason| self.flaw(row, key.column, reason));
                let edge = other.map(|other| {
                    let (out_id, in_id) = if key.outgoing { (own.clone(), other) } else { (other, own.clone()) };
                    let label = key.label.clone();
                    Record::Edge(EdgeRecord { id: None, label, out_id, in_id, properties: Vec::new() })
                });
                report(sink, row.line(), edge);
            }
        }
    }

    fn implied_vertices(&self, plan: &EdgePlan, row: &impl Row, sink: &mut Sink<'_>) {
        let Some(label) = &plan.implied_label else { return };
        for end in [&plan.out, &plan.r#in] {
            // A flaw is reported when the row is read as an edge.
            if let Ok(id) = self.required_id(end, row) {
                let vertex = VertexRecord { id, label: label.clone(), properties: Vec::new(), implied: true };
                sink.record(Record::Vertex(vertex), row.line(), 0);
            }
        }
    }

    fn edges(&self, plan: &EdgePlan, row: &impl Row, sink: &mut Sink<'_>) {
        let edge = match self.edge(plan, row) {
            Ok(edge) => edge,
            Err(flaw) => return sink.reject(flaw.reason, row.line(), flaw.column),
        };
        if plan.symmetric {
            let reverse = EdgeRecord {
                id: None,
                label: edge.label.clone(),
                out_id: edge.in_id.clone(),
                in_id: edge.out_id.clone(),
                properties: edge.properties.clone(),
            };
            sink.record(Record::Edge(edge), row.line(), 0);
            sink.record(Record::Edge(reverse), row.line(), 0);
        } else {
            sink.record(Record::Edge(edge), row.line(), 0);
        }
    }

    fn edge(&self, plan: &EdgePlan, row: &impl Row) -> Result<EdgeRecord, Flaw> {
        let id = match &plan.id {
            Some(id) => Some(self.required_id(id, row)?),
            None => None,
        };
        let out_id = self.required_id(&plan.out, row)?;
        let in_id = self.required_id(&plan.r#in, row)?;
        let label = self.label(&plan.label, row)?;
        let mut properties = Vec::with_capacity(plan.properties.len());
        for property in &plan.properties {
            if let Some(cell) = row.cell(property.column) {
                properties.push((property.key.clone(), self.value(row, property, cell)?));
            }
        }
        Ok(EdgeRecord { id, label, out_id, in_id, properties })
    }

    fn value(&self, row: &impl Row, plan: &PropertyPlan, cell: Cell<'_>) -> Result<Value, Flaw> {
        match plan.shape {
            Shape::One | Shape::Member(_) => {
                cell.value(plan.kind).map_err(|reason| self.flaw(row, plan.column, reason))
            }
            Shape::Array | Shape::Multi(_) => {
                let items = cell.items(self.list_separator).map_err(|reason| self.flaw(row, plan.column, reason))?;
                let value = |(number, item): (usize, Cell<'_>)| match item.is_empty() && plan.kind != ColumnType::String
                {
                    true => Err(format!("item {} of the list is empty, which only texts may be", number + 1)),
                    false => item.value(plan.kind),
                };
                let values = items.into_iter().enumerate().map(value).collect::<Result<Vec<Value>, String>>();
                let values = values.map_err(|reason| self.flaw(row, plan.column, reason))?;
                Ok(Value::List(Shared::new(values)))
            }
        }
    }

    fn label(&self, plan: &LabelPlan, row: &impl Row) -> Result<Arc<str>, Flaw> {
        match plan {
            LabelPlan::Fixed(label) => Ok(label.clone()),
            LabelPlan::Column { column, fallback, .. } => {
                let Some(cell) = row.cell(*column).filter(|cell| !cell.is_empty()) else {
                    return fallback.clone().ok_or_else(|| Flaw {
                        column: row.place(*column),
                        reason: format!("column '{}' is empty, but it gives the label", self.columns[*column]),
                    });
                };
                let text = cell.text().map_err(|reason| self.flaw(row, *column, reason))?;
                Ok(plan.label(&text))
            }
        }
    }

    fn required_id(&self, plan: &IdPlan, row: &impl Row) -> Result<Value, Flaw> {
        match row.cell(plan.column) {
            Some(cell) if !cell.is_empty() => {
                plan.form.id_of(cell).map_err(|reason| self.flaw(row, plan.column, reason))
            }
            _ => Err(Flaw {
                column: row.place(plan.column),
                reason: format!("column '{}' is empty, but it holds an id", self.columns[plan.column]),
            }),
        }
    }

    fn parts<'a>(&self, row: &impl Row, cell: Cell<'a>, column: usize) -> Result<Vec<Cell<'a>>, Flaw> {
        cell.parts(self.list_separator).map_err(|reason| self.flaw(row, column, reason))
    }

    fn flaw(&self, row: &impl Row, column: usize, reason: String) -> Flaw {
        Flaw { column: row.place(column), reason: format!("column '{}': {reason}", self.columns[column]) }
    }
}

/// Why a row yields no record.
struct Flaw {
    column: u32,
    reason: String,
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
