//! What every reader yields: vertices and edges with the place they came from, in batches.
//!
//! A [`Batch`] owns the text of its rows once, so that a rejected record can be reported together with its row without
//! an allocation per record.

use std::ops::Range;
use std::sync::Arc;

use ficus_model::{Cardinality, Value};

/// Records handed over at a time: large enough that the channel costs nothing, small enough to bound memory.
const BATCH_RECORDS: usize = 1024;
/// A batch is also full when its rows hold this many bytes.
const BATCH_ROW_BYTES: usize = 1 << 20;
/// Bytes of a reason kept for the report of rejected rows.
const REASON_BYTES_KEPT: usize = 1024;
/// Bytes of a row kept for the report of rejected rows.
const ROW_BYTES_KEPT: usize = 4096;

/// One thing to put into the graph.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// A vertex.
    Vertex(VertexRecord),
    /// An edge.
    Edge(EdgeRecord),
}

impl Record {
    /// The first name that must not be empty but is.
    fn empty_name(&self) -> Option<&'static str> {
        let (label, has_empty_key) = match self {
            Record::Vertex(vertex) => {
                let is_empty = |property: &PropertyRecord| {
                    property.key.is_empty() || property.meta.iter().any(|(key, _)| key.is_empty())
                };
                (&vertex.label, vertex.properties.iter().any(is_empty))
            }
            Record::Edge(edge) => (&edge.label, edge.properties.iter().any(|(key, _)| key.is_empty())),
        };
        match (label.is_empty(), has_empty_key) {
            (true, _) => Some("its label"),
            (false, true) => Some("the key of a property"),
            (false, false) => None,
        }
    }
}

/// A vertex as a file describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct VertexRecord {
    /// The user's id.
    pub id: Value,
    /// The label.
    pub label: Arc<str>,
    /// Properties in the order of the file.
    pub properties: Vec<PropertyRecord>,
    /// True if only an edge mentions it; it is then created unless it exists.
    pub implied: bool,
}

/// A vertex property as a file describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct PropertyRecord {
    /// The key.
    pub key: Arc<str>,
    /// The value.
    pub value: Value,
    /// How it joins other values of the key.
    pub cardinality: Cardinality,
    /// Its own id, where the file has one.
    pub id: Option<Value>,
    /// Meta-properties.
    pub meta: Vec<(Arc<str>, Value)>,
}

impl PropertyRecord {
    /// A property with one value and nothing else.
    pub fn single(key: Arc<str>, value: Value) -> PropertyRecord {
        PropertyRecord { key, value, cardinality: Cardinality::Single, id: None, meta: Vec::new() }
    }
}

/// An edge as a file describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct EdgeRecord {
    /// The user's id; the store makes one if absent.
    pub id: Option<Value>,
    /// The label.
    pub label: Arc<str>,
    /// Id of the source vertex.
    pub out_id: Value,
    /// Id of the target vertex.
    pub in_id: Value,
    /// Properties in the order of the file.
    pub properties: Vec<(Arc<str>, Value)>,
}

/// A record, or why there is none, with its place in the batch's file.
#[derive(Clone, Debug)]
pub struct Item {
    /// The record or the reason against it.
    pub content: Result<Record, String>,
    /// Line in the file, from 1.
    pub line: u64,
    /// Column in bytes, from 1; 0 where the whole row is meant.
    pub column: u32,
    row: Range<u32>,
}

/// A run of records of one file.
#[derive(Debug)]
pub struct Batch {
    /// The file as it was named.
    pub file: Arc<str>,
    /// Records in the order of the file.
    pub items: Vec<Item>,
    rows: Vec<u8>,
}

impl Batch {
    fn new(file: Arc<str>) -> Batch {
        Batch { file, items: Vec::new(), rows: Vec::new() }
    }

    /// The row an item came from, shortened if it was very long.
    pub fn row(&self, item: &Item) -> String {
        String::from_utf8_lossy(self.row_bytes(item)).into_owned()
    }

    /// As [`Batch::row`], as it stands in the file.
    pub fn row_bytes(&self, item: &Item) -> &[u8] {
        &self.rows[item.row.start as usize..item.row.end as usize]
    }
}

/// A row as the report of rejections shows it: shortened if it is very long.
pub fn shown_row(row: &[u8]) -> String {
    let kept = &row[..row.len().min(ROW_BYTES_KEPT)];
    let mut text = String::from_utf8_lossy(kept).into_owned();
    if kept.len() < row.len() {
        text.push('…');
    }
    text
}

/// Somebody who takes batches; refuses when the load has been stopped.
pub trait Consumer {
    /// Takes one batch.
    fn take(&mut self, batch: Batch) -> Result<(), Stopped>;
}

/// The load was stopped; readers return as soon as they see it.
#[derive(Debug)]
pub struct Stopped;

/// Collects what a reader finds into batches.
pub struct Sink<'a> {
    batch: Batch,
    consumer: &'a mut dyn Consumer,
    /// The row that the next items belong to, if it is already in the batch.
    current_row: Option<Range<u32>>,
}

impl<'a> Sink<'a> {
    /// A sink for the records of `file`.
    pub fn new(file: Arc<str>, consumer: &'a mut dyn Consumer) -> Sink<'a> {
        Sink { batch: Batch::new(file), consumer, current_row: None }
    }

    /// Says which row the items that follow belong to.
    pub fn begin_row(&mut self, row: &[u8]) -> Result<(), Stopped> {
        if self.batch.items.len() >= BATCH_RECORDS || self.batch.rows.len() >= BATCH_ROW_BYTES {
            self.flush()?;
        }
        let kept = &row[..row.len().min(ROW_BYTES_KEPT)];
        let start = self.batch.rows.len() as u32;
        self.batch.rows.extend_from_slice(kept);
        if kept.len() < row.len() {
            self.batch.rows.extend_from_slice("…".as_bytes());
        }
        self.current_row = Some(start..self.batch.rows.len() as u32);
        Ok(())
    }

    /// Adds a record of the current row; without a label, or with a key that is empty, it is rejected.
    pub fn record(&mut self, record: Record, line: u64, column: u32) {
        let content = match record.empty_name() {
            None => Ok(record),
            Some(what) => Err(format!("{what} is empty")),
        };
        self.push(content, line, column);
    }

    /// Adds a rejection of the current row. A very long reason is cut short: it may quote what the file says.
    pub fn reject(&mut self, mut reason: String, line: u64, column: u32) {
        if reason.len() > REASON_BYTES_KEPT {
            reason.truncate(reason.floor_char_boundary(REASON_BYTES_KEPT));
            reason.push('…');
        }
        self.push(Err(reason), line, column);
    }

    fn push(&mut self, content: Result<Record, String>, line: u64, column: u32) {
        let row = self.current_row.clone().unwrap_or(0..0);
        self.batch.items.push(Item { content, line, column, row });
    }

    /// Hands over what has been collected.
    pub fn flush(&mut self) -> Result<(), Stopped> {
        self.current_row = None;
        if self.batch.items.is_empty() {
            self.batch.rows.clear();
            return Ok(());
        }
        let empty = Batch::new(self.batch.file.clone());
        self.consumer.take(std::mem::replace(&mut self.batch, empty))
    }
}

/// Which records a pass over a file is for: all vertices of all files come before the first edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Vertices; unreadable rows are reported in this pass.
    Vertices,
    /// Edges.
    Edges,
}

/// Why a file could not be read to its end. Rows that are merely wrong are rejected, not reported this way.
#[derive(Debug)]
pub enum ReadError {
    /// The load was stopped from outside.
    Stopped,
    /// The file as a whole is unusable: cannot be read, broken compression, wrong header.
    File {
        /// Line, 0 if it concerns the whole file.
        line: u64,
        /// What is wrong and what to do.
        reason: String,
    },
}

impl ReadError {
    /// A complaint about the file at `line`.
    pub fn file(line: u64, reason: impl Into<String>) -> ReadError {
        ReadError::File { line, reason: reason.into() }
    }
}

impl From<Stopped> for ReadError {
    fn from(_: Stopped) -> ReadError {
        ReadError::Stopped
    }
}

impl From<std::io::Error> for ReadError {
    fn from(error: std::io::Error) -> ReadError {
        ReadError::File { line: 0, reason: format!("cannot be read: {error}") }
    }
}

#[cfg(test)]
pub mod testing {
    //! Records as short texts, for the tests of the readers.

    use super::*;

    struct Collector(Vec<String>);

    impl Consumer for Collector {
        fn take(&mut self, batch: Batch) -> Result<(), Stopped> {
            for item in &batch.items {
                self.0.push(format!("{}:{} {}", item.line, item.column, show(&item.content)));
            }
            Ok(())
        }
    }

    /// Runs a reader and shows what it yields.
    pub fn collect(read: impl FnOnce(&mut Sink<'_>) -> Result<(), ReadError>) -> Vec<String> {
        let mut collector = Collector(Vec::new());
        let mut sink = Sink::new(Arc::from("test"), &mut collector);
        let outcome = read(&mut sink);
        sink.flush().expect("the collector takes everything");
        match outcome {
            Err(ReadError::File { line, reason }) => collector.0.push(format!("{line} failed {reason}")),
            Err(ReadError::Stopped) => collector.0.push("stopped".into()),
            Ok(()) => {}
        }
        collector.0
    }

    fn show(content: &Result<Record, String>) -> String {
        let pairs = |pairs: &[(Arc<str>, Value)]| {
            pairs.iter().map(|(key, value)| format!("{key}={value:?}")).collect::<Vec<_>>().join(" ")
        };
        match content {
            Err(reason) => format!("reject {reason}"),
            Ok(Record::Edge(edge)) => {
                let id = edge.id.as_ref().map_or("-".into(), |id| format!("{id:?}"));
                let EdgeRecord { label, out_id, in_id, properties, .. } = edge;
                format!("edge {id} {label} {out_id:?}->{in_id:?} {}", pairs(properties)).trim_end().to_owned()
            }
            Ok(Record::Vertex(vertex)) => {
                let kind = if vertex.implied { "implied" } else { "vertex" };
                let mut text = format!("{kind} {:?} {}", vertex.id, vertex.label);
                for property in &vertex.properties {
                    text.push_str(&format!(" {}={:?}", property.key, property.value));
                    if property.cardinality != Cardinality::Single {
                        text.push_str(&format!("*{}", property.cardinality));
                    }
                    if let Some(id) = &property.id {
                        text.push_str(&format!("#{id:?}"));
                    }
                    if !property.meta.is_empty() {
                        text.push_str(&format!("{{{}}}", pairs(&property.meta)));
                    }
                }
                text
            }
        }
    }
}
