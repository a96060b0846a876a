//! Writes Parquet: a folder with one file of typed columns per label, named as `ficus load` reads them.
//!
//! Rows are collected by label, column by column, and written as groups of rows when there are many, so that memory is bounded whatever the
//! graph. A column is optional; several values under a key, and values that are lists, are lists of the file.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use ficus_model::Value;
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Stored};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};

use super::elements::Elements;
use super::survey::{Column, Columns, Survey, file_name};
use crate::column_type::{ColumnType, text_form};

/// Rows that wait in memory, of all labels together, before they are written.
const WAITING_ROWS: usize = 1 << 18;

/// Writes the folder; it may exist, files in it are replaced.
pub fn write(elements: &Elements, survey: &Survey, folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let vertex_id = survey.vertex_id_kind.unwrap_or(ColumnType::String);
    let edge_id = survey.edge_id_kind.unwrap_or(ColumnType::String);
    let lead = [("~id", vertex_id), ("~label", ColumnType::String)];
    let mut vertices = Tables::open(folder, "vertices", &survey.vertices, &lead)?;
    elements.each_vertex(|vertex| {
        let vertex = elements.vertex(vertex)?;
        let properties: Vec<_> = vertex.properties.iter().map(|own| (&*own.key, &own.value)).collect();
        vertices.row(&vertex.label, &[&vertex.id, &Value::String(vertex.label.clone())], &properties)
    })?;
    vertices.close()?;
    let lead = [("~id", edge_id), ("~from", vertex_id), ("~to", vertex_id), ("~label", ColumnType::String)];
    let mut edges = Tables::open(folder, "edges", &survey.edges, &lead)?;
    elements.each_edge(|edge| {
        let edge = elements.edge(edge)?;
        let label = Value::String(edge.label.clone());
        let properties: Vec<_> = edge.properties.iter().map(|(key, value)| (&**key, value)).collect();
        edges.row(&edge.label, &[&edge.id, &edge.out_id, &edge.in_id, &label], &properties)
    })?;
    edges.close()
}

fn failed(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => io::Error::other(error),
        other => io::Error::other(other),
    }
}

/// The files of vertices, or of edges, by label.
struct Tables {
    by_label: BTreeMap<Arc<str>, Table>,
    waiting: usize,
}

/// A file that is being written.
struct Table {
    writer: SerializedFileWriter<File>,
    columns: Vec<Cells>,
    /// Keys of the columns behind the leading ones.
    keys: Vec<Arc<str>>,
    rows: usize,
}

impl Tables {
    fn open(
        folder: &Path,
        kind: &str,
        tables: &BTreeMap<Arc<str>, Columns>,
        lead: &[(&str, ColumnType)],
    ) -> io::Result<Tables> {
        let properties: WriterPropertiesPtr =
            Arc::new(WriterProperties::builder().set_compression(Compression::SNAPPY).build());
        let mut names = HashSet::new();
        let mut by_label = BTreeMap::new();
        for (label, columns) in tables {
            let file = File::create(folder.join(format!("{}.parquet", file_name(kind, label, &mut names))))?;
            let lead = lead.iter().map(|(name, kind)| Cells::new(*kind, false).named(name, Repetition::REQUIRED));
            let own = columns.iter().map(|(key, column)| {
                let Column { kind, several, is_list } = *column;
                Cells::new(kind, several || is_list).named(&header(key, several), Repetition::OPTIONAL)
            });
            let (fields, columns_of_file): (Vec<_>, Vec<_>) =
                lead.chain(own).collect::<Result<Vec<_>, ParquetError>>().map_err(failed)?.into_iter().unzip();
            let schema = Type::group_type_builder("elements").with_fields(fields).build().map_err(failed)?;
            let writer = SerializedFileWriter::new(file, Arc::new(schema), properties.clone()).map_err(failed)?;
            let keys = columns.keys().cloned().collect();
            by_label.insert(label.clone(), Table { writer, columns: columns_of_file, keys, rows: 0 });
        }
        Ok(Tables { by_label, waiting: 0 })
    }

    /// Adds a row: the leading values, and what there is under the key of each column.
    fn row(&mut self, label: &str, lead: &[&Value], properties: &[(&str, &Value)]) -> io::Result<()> {
        let Some(table) = self.by_label.get_mut(label) else { return Ok(()) };
        let (leading, own) = table.columns.split_at_mut(lead.len());
        leading.iter_mut().zip(lead).for_each(|(cells, value)| cells.push(value));
        for (cells, key) in own.iter_mut().zip(&table.keys) {
            cells.push_all(properties.iter().filter(|(own, _)| *own == &**key).map(|(_, value)| *value));
        }
        table.rows += 1;
        self.waiting += 1;
        if self.waiting >= WAITING_ROWS {
            self.waiting = 0;
            self.by_label.values_mut().try_for_each(Table::flush)?;
        }
        Ok(())
    }

    fn close(mut self) -> io::Result<()> {
        self.by_label.values_mut().try_for_each(Table::flush)?;
        self.by_label.into_values().try_for_each(|table| table.writer.close().map(|_| ()).map_err(failed))
    }
}

impl Table {
    /// Writes what waits as a group of rows.
    fn flush(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.rows) == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group().map_err(failed)?;
        for cells in &mut self.columns {
            let column = group.next_column().map_err(failed)?;
            let mut column = column.ok_or_else(|| io::Error::other("the schema has fewer columns than the table"))?;
            cells.write(column.untyped()).map_err(failed)?;
            column.close().map_err(failed)?;
        }
        group.close().map(|_| ()).map_err(failed)
    }
}

/// The name of the column of a key, as headers spell it.
fn header(key: &str, several: bool) -> String {
    format!("{}{}", key.replace(':', "\\:"), if several { ":[]" } else { "" })
}

/// The cells of one column that wait: values one behind the other, and where they belong.
struct Cells {
    kind: ColumnType,
    values: Waiting,
    /// What a cell is: 0 nothing, 1 a value (of a list: an empty one), 2 the value of a list. Empty in a column without gaps.
    definitions: Vec<i16>,
    /// 1 for all values of a list but the first.
    repetitions: Vec<i16>,
    is_list: bool,
    is_required: bool,
}

enum Waiting {
    Bools(Vec<bool>),
    Ints(Vec<i32>),
    Longs(Vec<i64>),
    Floats(Vec<f32>),
    Doubles(Vec<f64>),
    Bytes(Vec<ByteArray>),
    Uuids(Vec<FixedLenByteArray>),
}

impl Cells {
    fn new(kind: ColumnType, is_list: bool) -> Cells {
        let values = match kind {
            ColumnType::Boolean => Waiting::Bools(Vec::new()),
            ColumnType::Byte | ColumnType::Short | ColumnType::Int => Waiting::Ints(Vec::new()),
            ColumnType::Long | ColumnType::DateTime => Waiting::Longs(Vec::new()),
            ColumnType::Float => Waiting::Floats(Vec::new()),
            ColumnType::Double => Waiting::Doubles(Vec::new()),
            ColumnType::Uuid => Waiting::Uuids(Vec::new()),
            _ => Waiting::Bytes(Vec::new()),
        };
        Cells { kind, values, definitions: Vec::new(), repetitions: Vec::new(), is_list, is_required: false }
    }

    /// The field of the schema for these cells.
    fn named(mut self, name: &str, repetition: Repetition) -> Result<(TypePtr, Cells), ParquetError> {
        self.is_required = repetition == Repetition::REQUIRED;
        let integer = |bit_width| Some(LogicalType::Integer { bit_width, is_signed: true });
        let (stored, meaning, length) = match self.kind {
            ColumnType::Boolean => (Stored::BOOLEAN, None, 0),
            ColumnType::Byte => (Stored::INT32, integer(8), 0),
            ColumnType::Short => (Stored::INT32, integer(16), 0),
            ColumnType::Int => (Stored::INT32, None, 0),
            ColumnType::Long => (Stored::INT64, None, 0),
            ColumnType::DateTime => {
                let meaning = LogicalType::Timestamp { is_adjusted_to_u_t_c: true, unit: TimeUnit::MICROS };
                (Stored::INT64, Some(meaning), 0)
            }
            ColumnType::Float => (Stored::FLOAT, None, 0),
            ColumnType::Double => (Stored::DOUBLE, None, 0),
            ColumnType::Uuid => (Stored::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Uuid), 16),
            _ => (Stored::BYTE_ARRAY, Some(LogicalType::String), 0),
        };
        let value = |name: &str, repetition| {
            let value = Type::primitive_type_builder(name, stored).with_repetition(repetition);
            value.with_logical_type(meaning.clone()).with_length(length).build().map(Arc::new)
        };
        if !self.is_list {
            return Ok((value(name, repetition)?, self));
        }
        let element = value("element", Repetition::REQUIRED)?;
        let members = Type::group_type_builder("list").with_repetition(Repetition::REPEATED);
        let members = members.with_fields(vec![element]).build()?;
        let list = Type::group_type_builder(name).with_repetition(repetition);
        let list = list.with_logical_type(Some(LogicalType::List)).with_fields(vec![Arc::new(members)]).build()?;
        Ok((Arc::new(list), self))
    }

    /// Adds a cell with the values under a key: none, one, or, in a column of lists, several.
    fn push_all<'a>(&mut self, mut values: impl Iterator<Item = &'a Value>) {
        if !self.is_list {
            match values.find(|value| self.holds(value)) {
                Some(value) => self.push(value),
                None => self.definitions.push(0),
            }
            return;
        }
        let before = self.repetitions.len();
        for value in values {
            let members = match value {
                Value::List(members) => members.as_slice(),
                single => std::slice::from_ref(single),
            };
            for member in members {
                if !self.holds(member) {
                    continue;
                }
                self.repetitions.push(i16::from(self.repetitions.len() > before));
                self.definitions.push(2);
                self.push_value(member);
            }
        }
        if self.repetitions.len() == before {
            self.repetitions.push(0);
            self.definitions.push(0);
        }
    }

    /// False for what the survey named as lost and has no place here.
    fn holds(&self, value: &Value) -> bool {
        matches!(self.values, Waiting::Bytes(_)) || text_form(value).is_some_and(|(kind, _)| kind == self.kind)
    }

    /// Adds a cell with a value.
    fn push(&mut self, value: &Value) {
        if !self.is_required {
            self.definitions.push(1);
        }
        self.push_value(value);
    }

    fn push_value(&mut self, value: &Value) {
        match (&mut self.values, value) {
            (Waiting::Bools(values), Value::Bool(value)) => values.push(*value),
            (Waiting::Ints(values), Value::Byte(value)) => values.push(i32::from(*value)),
            (Waiting::Ints(values), Value::Short(value)) => values.push(i32::from(*value)),
            (Waiting::Ints(values), Value::Int(value)) => values.push(*value),
            (Waiting::Longs(values), Value::Long(value)) => values.push(*value),
            (Waiting::Longs(values), Value::DateTime(moment)) => {
                // The survey has named moments that do not fit.
                let micros = moment.epoch_seconds.saturating_mul(1_000_000);
                values.push(micros.saturating_add(i64::from(moment.nanos / 1000)));
            }
            (Waiting::Floats(values), Value::Float(value)) => values.push(*value),
            (Waiting::Doubles(values), Value::Double(value)) => values.push(*value),
            (Waiting::Uuids(values), Value::Uuid(value)) => values.push(value.as_bytes().to_vec().into()),
            (Waiting::Bytes(values), Value::String(text)) => values.push(text.as_bytes().to_vec().into()),
            (Waiting::Bytes(values), other) => {
                let text = text_form(other).map_or_else(|| crate::render::literal(other), |(_, text)| text);
                values.push(text.into_bytes().into());
            }
            _ => unreachable!("the survey made a column of texts of values of several types"),
        }
    }

    fn write(&mut self, writer: &mut ColumnWriter<'_>) -> Result<(), ParquetError> {
        let definitions = (!self.is_required).then_some(self.definitions.as_slice());
        let repetitions = self.is_list.then_some(self.repetitions.as_slice());
        match (writer, &self.values) {
            (ColumnWriter::BoolColumnWriter(to), Waiting::Bools(from)) => {
                to.write_batch(from, definitions, repetitions)
            }
            (ColumnWriter::Int32ColumnWriter(to), Waiting::Ints(from)) => {
                to.write_batch(from, definitions, repetitions)
            }
            (ColumnWriter::Int64ColumnWriter(to), Waiting::Longs(from)) => {
                to.write_batch(from, definitions, repetitions)
            }
            (ColumnWriter::FloatColumnWriter(to), Waiting::Floats(from)) => {
                to.write_batch(from, definitions, repetitions)
            }
            (ColumnWriter::DoubleColumnWriter(to), Waiting::Doubles(from)) => {
                to.write_batch(from, definitions, repetitions)
            }
            (ColumnWriter::ByteArrayColumnWriter(to), Waiting::Bytes(from)) => {
                to.write_batch(from, definitions, repetitions)
            }
            (ColumnWriter::FixedLenByteArrayColumnWriter(to), Waiting::Uuids(from)) => {
                to.write_batch(from, definitions, repetitions)
            }
            _ => return Err(ParquetError::General("a column is of another type than its schema".into())),
        }?;
        *self = Cells { is_required: self.is_required, ..Cells::new(self.kind, self.is_list) };
        Ok(())
    }
}
