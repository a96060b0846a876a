//! Parquet: a file of typed columns, read in groups of rows.
//!
//! A column of the file is a field of its schema: one value, or a list of values. What its rows mean is said as for CSV, by the names of the
//! columns or by a mapping. Values keep the types that the file gives them; see `docs/loading.md`. Groups of rows are read independently of
//! each other, each in batches of rows, column by column.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use ficus_model::{Shared, Value};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray};
use parquet::errors::ParquetError;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::schema::types::ColumnDescriptor;

use super::parquet_value::Meaning;
use super::record::{Pass, ReadError, Sink};
use super::row::{Cell, Row};
use super::table::TablePlan;

/// Rows that are decoded together: bounds memory, and amortises what a batch costs.
const BATCH_ROWS: usize = 1024;

/// The columns of a file.
#[derive(Clone, Debug)]
pub struct Schema {
    columns: Vec<Column>,
    /// Rows in front of each group, and in all.
    first_rows: Vec<u64>,
}

/// A column of a file: how its values are found and what they are, or why they cannot be read.
#[derive(Clone, Debug)]
struct Column {
    name: String,
    values: Result<Values, String>,
}

/// Where the values of a column are.
#[derive(Clone, Copy, Debug)]
struct Values {
    /// The number of the column among those that are stored.
    leaf: usize,
    meaning: Meaning,
    /// The definition level of a value that is there.
    there: i16,
    /// Of lists: the definition level of a member, null or not.
    member: Option<i16>,
}

/// True for the names of such files.
pub fn recognises(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("parquet"))
}

/// Runs something that reads a file. The library reports damage as an error, and has places where it panics instead.
fn guarded<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, String> {
    let outcome = catch_unwind(AssertUnwindSafe(read));
    let outcome = outcome.unwrap_or_else(|_| Err(ParquetError::General("its content contradicts itself".into())));
    outcome.map_err(|error| match error {
        ParquetError::General(reason) | ParquetError::EOF(reason) | ParquetError::NYI(reason) => {
            format!("cannot be read as Parquet: {reason}")
        }
        other => format!("cannot be read as Parquet: {other}"),
    })
}

fn open(path: &Path) -> Result<SerializedFileReader<File>, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    guarded(|| SerializedFileReader::new(file))
}

impl Schema {
    /// Reads the schema of a file.
    pub fn of(path: &Path) -> Result<Schema, String> {
        let reader = open(path)?;
        let metadata = reader.metadata();
        let mut first_rows = vec![0u64];
        for group in metadata.row_groups() {
            let rows = u64::try_from(group.num_rows()).ok();
            let next = rows.and_then(|rows| first_rows[first_rows.len() - 1].checked_add(rows));
            first_rows.push(next.ok_or("cannot be read as Parquet: its numbers of rows make no sense")?);
        }
        let schema = metadata.file_metadata().schema_descr();
        let fields = schema.root_schema().get_fields();
        let mut leaves: Vec<Vec<usize>> = vec![Vec::new(); fields.len()];
        for leaf in 0..schema.num_columns() {
            leaves[schema.get_column_root_idx(leaf)].push(leaf);
        }
        let columns = fields.iter().zip(leaves).map(|(field, leaves)| {
            let values = match leaves.as_slice() {
                [leaf] => Values::of(*leaf, &schema.column(*leaf)),
                _ => Err("it is made of several columns (a struct or a map)".to_owned()),
            };
            Column { name: field.name().to_owned(), values }
        });
        Ok(Schema { columns: columns.collect(), first_rows })
    }

    /// Names of the columns.
    pub fn names(&self) -> Vec<String> {
        self.columns.iter().map(|column| column.name.clone()).collect()
    }

    /// Number of groups of rows.
    pub fn groups(&self) -> usize {
        self.first_rows.len() - 1
    }

    /// Refuses a plan that wants columns which cannot be read.
    pub fn check(&self, plan: &TablePlan) -> Result<(), String> {
        plan.used_columns().into_iter().try_for_each(|column| match &self.columns[column] {
            Column { values: Ok(_), .. } => Ok(()),
            Column { name, values: Err(reason) } => Err(format!(
                "column '{name}' cannot be loaded: {reason}; write it as plain columns, or leave it out with a --mapping"
            )),
        })
    }

    /// Hands the records of a group of rows to the sink.
    pub fn read_group(
        &self,
        path: &Path,
        group: usize,
        plan: &TablePlan,
        pass: Pass,
        sink: &mut Sink<'_>,
    ) -> Result<(), ReadError> {
        let rows = self.first_rows[group + 1] - self.first_rows[group];
        let failed = |row: u64, reason: String| {
            ReadError::file(
                row,
                format!("{reason} (group {} of rows, which begins at row {})", group + 1, self.first_rows[group] + 1),
            )
        };
        let reader = open(path).map_err(|reason| failed(0, reason))?;
        let group_reader = guarded(|| reader.get_row_group(group)).map_err(|reason| failed(0, reason))?;
        let mut used: Vec<UsedColumn> = Vec::new();
        for column in plan.used_columns() {
            let Column { name, values: Ok(values) } = &self.columns[column] else { continue };
            let opened = guarded(|| group_reader.get_column_reader(values.leaf));
            let reader = opened.map_err(|reason| failed(0, format!("column '{name}' {reason}")))?;
            used.push(UsedColumn { column, name, values: *values, reader, batch: Vec::new() });
        }
        let mut done = 0;
        while done < rows {
            let wanted = usize::try_from(rows - done).unwrap_or(BATCH_ROWS).min(BATCH_ROWS);
            for column in &mut used {
                let first = self.first_rows[group] + done + 1;
                column.read(wanted).map_err(|reason| failed(first, format!("column '{}' {reason}", column.name)))?;
            }
            for position in 0..wanted {
                let number = self.first_rows[group] + done + position as u64 + 1;
                let row = TypedRow { columns: &used, position, number };
                sink.begin_row(row.shown().as_bytes())?;
                plan.records(&row, pass, sink);
            }
            done += wanted as u64;
        }
        Ok(())
    }
}

impl Values {
    fn of(leaf: usize, column: &ColumnDescriptor) -> Result<Values, String> {
        let meaning = Meaning::of(column)?;
        let there = column.max_def_level();
        let member = match column.max_rep_level() {
            0 if column.path().parts().len() > 1 => return Err("it is a struct".to_owned()),
            0 => None,
            // A list has one field, and that field at most one that is not repeated: `list.element`, `bag.array`, or none at all.
            1 if column.path().parts().len() > 3 => return Err("it holds lists of structs".to_owned()),
            1 => Some(column.repeated_ancestor_def_level()),
            _ => return Err("it holds lists of lists".to_owned()),
        };
        Ok(Values { leaf, meaning, there, member })
    }
}

/// What a row has in a column.
type Held = Result<Option<Value>, String>;

/// A column of a group that is being read.
struct UsedColumn<'a> {
    column: usize,
    name: &'a str,
    values: Values,
    reader: ColumnReader,
    /// What the rows of the batch have.
    batch: Vec<Held>,
}

impl UsedColumn<'_> {
    /// Reads the values of so many rows.
    fn read(&mut self, rows: usize) -> Result<(), String> {
        let Values { meaning, .. } = self.values;
        self.batch.clear();
        let shape = &self.values;
        let held = match &mut self.reader {
            ColumnReader::BoolColumnReader(reader) => batch(reader, rows, shape, |value| Ok(Value::Bool(*value))),
            ColumnReader::Int32ColumnReader(reader) => {
                batch(reader, rows, shape, |value| meaning.integer(i64::from(*value)))
            }
            ColumnReader::Int64ColumnReader(reader) => batch(reader, rows, shape, |value| meaning.integer(*value)),
            ColumnReader::Int96ColumnReader(reader) => {
                batch(reader, rows, shape, |value| Ok(Meaning::day_and_nanos(value.data())))
            }
            ColumnReader::FloatColumnReader(reader) => batch(reader, rows, shape, |value| Ok(Value::Float(*value))),
            ColumnReader::DoubleColumnReader(reader) => batch(reader, rows, shape, |value| Ok(Value::Double(*value))),
            ColumnReader::ByteArrayColumnReader(reader) => {
                batch(reader, rows, shape, |value: &ByteArray| meaning.bytes(value.data()))
            }
            ColumnReader::FixedLenByteArrayColumnReader(reader) => {
                batch(reader, rows, shape, |value: &FixedLenByteArray| meaning.bytes(value.data()))
            }
        };
        self.batch = held?;
        Ok(())
    }
}

/// Reads the values of so many rows of a column.
fn batch<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    shape: &Values,
    value: impl Fn(&T::T) -> Result<Value, String>,
) -> Result<Vec<Held>, String> {
    let (mut stored, mut definitions, mut repetitions) = (Vec::new(), Vec::new(), Vec::new());
    let mut read = 0;
    while read < rows {
        let wanted = rows - read;
        let more =
            guarded(|| reader.read_records(wanted, Some(&mut definitions), Some(&mut repetitions), &mut stored))?;
        if more.0 == 0 {
            return Err(format!("cannot be read as Parquet: it ends {wanted} rows before the others"));
        }
        read += more.0;
    }
    let mut stored = stored.iter();
    let mut next = || match stored.next() {
        Some(stored) => value(stored),
        None => Err("the value is missing".to_owned()),
    };
    let Some(member) = shape.member else {
        if shape.there == 0 {
            return Ok((0..rows).map(|_| next().map(Some)).collect());
        }
        let held: Vec<Held> =
            definitions.iter().map(|level| if *level == shape.there { next().map(Some) } else { Ok(None) }).collect();
        return if held.len() == rows { Ok(held) } else { Err(contradiction()) };
    };
    let mut lists: Vec<Result<Option<Vec<Value>>, String>> = Vec::with_capacity(rows);
    for (level, repetition) in definitions.iter().zip(&repetitions) {
        if *repetition == 0 {
            // Below the level of a member by one: an empty list; by more: none.
            lists.push(Ok((*level + 1 >= member).then(Vec::new)));
        }
        if *level < member {
            continue;
        }
        let found = if *level == shape.there { next() } else { Ok(Value::Null) };
        let Some(last) = lists.last_mut() else { return Err(contradiction()) };
        match (last, found) {
            (Ok(Some(list)), Ok(value)) => list.push(value),
            (last @ Ok(_), Err(reason)) => *last = Err(reason),
            _ => {}
        }
    }
    if lists.len() != rows {
        return Err(contradiction());
    }
    Ok(lists.into_iter().map(|list| list.map(|list| list.map(|values| Value::List(Shared::new(values))))).collect())
}

fn contradiction() -> String {
    "cannot be read as Parquet: its content contradicts itself".to_owned()
}

/// A row of a batch.
struct TypedRow<'a> {
    columns: &'a [UsedColumn<'a>],
    position: usize,
    /// From 1.
    number: u64,
}

impl TypedRow<'_> {
    /// The row as the report of rejections shows it.
    fn shown(&self) -> String {
        let cells = self.columns.iter().filter_map(|column| match &column.batch[self.position] {
            Ok(None) => None,
            Ok(Some(value)) => Some(format!("{}: {}", column.name, crate::render::literal(value))),
            Err(_) => Some(format!("{}: ?", column.name)),
        });
        cells.collect::<Vec<_>>().join(", ")
    }
}

impl Row for TypedRow<'_> {
    fn cell(&self, column: usize) -> Option<Cell<'_>> {
        // Columns ascend.
        let found = self.columns.binary_search_by_key(&column, |own| own.column).ok()?;
        match &self.columns[found].batch[self.position] {
            Ok(value) => value.as_ref().map(Cell::Typed),
            Err(reason) => Some(Cell::Broken(reason)),
        }
    }

    fn line(&self) -> u64 {
        self.number
    }

    fn place(&self, column: usize) -> u32 {
        column as u32 + 1
    }
}
