//! Pieces of the input on their way into a graph: vertices, or edges whose ends are known, in the order of the input.
//!
//! A chunk is filled by one thread and knows nothing of others: labels and keys have numbers of its own. A plain edge takes
//! 8 bytes, a vertex 13 bytes; properties are encoded values in one run of bytes.

use std::collections::HashMap;
use std::sync::Arc;

use ficus_model::{Cardinality, OffsetDateTime, Value, VertexId};

use super::ids::{IdColumn, LoadId};
use super::prefixes::IdPrefixes;
use crate::StoreError;
use crate::property_row::PROPERTY_ID_BITS;
use crate::value_codec::{put_number, put_value};
use crate::value_key::{check_id, check_property_value};
use crate::words::Words;

/// Source of an edge that was refused.
pub(super) const NO_VERTEX: u32 = u32::MAX;

/// Bytes of encoded properties a chunk may hold; ends of rows are 32 bits.
const CHUNK_BYTES_LIMIT: usize = u32::MAX as usize;

/// Stands behind the properties of an edge, where the number of a key, counted from 1, would.
pub(super) const EDGE_ROW_END: u8 = 0;

/// The number of a label or key inside one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkWord(pub(super) u32);

/// A property value as it was read, without an allocation for the frequent kinds.
#[derive(Clone, Copy, Debug)]
pub enum LoadValue<'a> {
    /// Text.
    Text(&'a str),
    /// True or false.
    Bool(bool),
    /// Signed 32 bit.
    Int(i32),
    /// Signed 64 bit.
    Long(i64),
    /// Double precision.
    Double(f64),
    /// A point in time.
    DateTime(OffsetDateTime),
    /// Anything.
    Value(&'a Value),
}

impl LoadValue<'_> {
    fn put(self, key: &str, out: &mut Vec<u8>) -> Result<(), StoreError> {
        match self {
            LoadValue::Text(text) => crate::value_codec::put_text_value(text, out),
            LoadValue::Bool(value) => put_value(&Value::Bool(value), out),
            LoadValue::Int(value) => put_value(&Value::Int(value), out),
            LoadValue::Long(value) => put_value(&Value::Long(value), out),
            LoadValue::Double(value) => put_value(&Value::Double(value), out),
            LoadValue::DateTime(value) => put_value(&Value::DateTime(value), out),
            LoadValue::Value(value) => {
                check_property_value(key, value)?;
                put_value(value, out);
            }
        }
        Ok(())
    }
}

/// A property with what is rare: its own id, and meta-properties.
#[derive(Clone, Copy, Debug)]
pub struct LoadProperty<'a> {
    /// The value.
    pub value: LoadValue<'a>,
    /// How it joins other values of the key.
    pub cardinality: Cardinality,
    /// Its own id, unused in the graph; the store makes one if absent.
    pub id: Option<u64>,
    /// Meta-properties.
    pub meta: &'a [(ChunkWord, Value)],
}

/// Flags in front of an encoded property.
pub(super) mod flag {
    pub(crate) const LIST: u8 = 1;
    pub(crate) const SET: u8 = 2;
    pub(crate) const ID: u8 = 4;
    pub(crate) const META: u8 = 8;
}

/// Labels or keys of one chunk in the order of their first use.
#[derive(Clone, Debug, Default)]
pub(super) struct ChunkWords {
    pub(super) names: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
}

impl ChunkWords {
    fn number(&mut self, what: &'static str, word: &str) -> Result<ChunkWord, StoreError> {
        if let Some(number) = self.numbers.get(word) {
            return Ok(ChunkWord(*number));
        }
        Words::check_length(what, word)?;
        let (number, word) = (self.names.len() as u32, Arc::<str>::from(word));
        self.numbers.insert(word.clone(), number);
        self.names.push(word);
        Ok(ChunkWord(number))
    }

    fn name(&self, word: ChunkWord) -> &str {
        self.name_of(word.0)
    }

    /// The word with a number; empty if there is none.
    pub(super) fn name_of(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or("", |name| name)
    }
}

/// A number per row that is the same for most chunks.
#[derive(Clone, Debug, Default)]
pub(super) struct LabelColumn {
    first: u32,
    /// Empty as long as all rows have the first.
    each: Vec<u32>,
    len: usize,
}

impl LabelColumn {
    /// Adds a row.
    pub(super) fn push(&mut self, label: u32) {
        if self.len == 0 {
            self.first = label;
        }
        if label != self.first && self.each.is_empty() {
            self.each.resize(self.len, self.first);
        }
        if !self.each.is_empty() || label != self.first {
            self.each.push(label);
        }
        self.len += 1;
    }

    fn pop(&mut self) {
        self.each.pop();
        self.len -= 1;
    }

    /// The label of a row.
    pub(super) fn get(&self, row: usize) -> u32 {
        self.each.get(row).copied().unwrap_or(self.first)
    }

    /// The label all rows have, if they have the same.
    pub(super) fn all(&self) -> Option<u32> {
        (self.each.is_empty() && self.len > 0).then_some(self.first)
    }

    fn bytes(&self) -> usize {
        self.each.len() * 4
    }
}

/// Encoded properties of the rows of a chunk.
#[derive(Clone, Debug, Default)]
pub(super) struct RowBytes {
    /// Where each row ends; rows behind the last entry have nothing.
    ends: Vec<u32>,
    bytes: Vec<u8>,
}

impl RowBytes {
    /// The bytes of a row.
    pub(super) fn row(&self, row: usize) -> &[u8] {
        let Some(end) = self.ends.get(row) else { return &[] };
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start as usize..*end as usize]
    }

    /// True if no row has properties.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Where a row begins among the bytes, if it has any.
    pub(super) fn start(&self, row: usize) -> Option<u32> {
        let end = *self.ends.get(row)?;
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        (start < end).then_some(start)
    }

    /// The bytes of all rows.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Ends row number `row`, which began at `start` of the bytes.
    fn end(&mut self, row: usize, start: usize) {
        if self.bytes.len() > start {
            self.ends.resize(row, start as u32);
            self.ends.push(self.bytes.len() as u32);
        }
    }

    /// Keeps the first `rows` rows.
    fn truncate(&mut self, rows: usize) {
        self.ends.truncate(rows);
        self.bytes.truncate(self.ends.last().map_or(0, |end| *end as usize));
    }

    fn check_limit(&self) -> Result<(), StoreError> {
        if self.bytes.len() > CHUNK_BYTES_LIMIT {
            let what = "bytes in the properties of neighbouring records".to_string();
            return Err(StoreError::LimitReached { what, limit: CHUNK_BYTES_LIMIT as u64 });
        }
        Ok(())
    }

    fn size(&self) -> usize {
        self.ends.len() * 4 + self.bytes.len()
    }

    fn shrink(&mut self) {
        self.ends.shrink_to_fit();
        self.bytes.shrink_to_fit();
    }
}

/// Vertices of one piece of the input.
#[derive(Clone, Debug, Default)]
pub struct VertexChunk {
    pub(super) label_words: ChunkWords,
    pub(super) key_words: ChunkWords,
    pub(super) labels: LabelColumn,
    pub(super) ids: IdColumn,
    pub(super) hashes: Vec<u32>,
    pub(super) rows: RowBytes,
    /// Properties of each vertex, at most.
    pub(super) property_counts: Vec<u32>,
    pub(super) largest_property_id: u64,
    row_start: usize,
    row_properties: u32,
}

impl VertexChunk {
    /// A chunk without vertices.
    pub fn new() -> VertexChunk {
        VertexChunk::default()
    }

    /// A chunk without vertices, in which ids with the prefixes of its load take little room.
    pub fn with_prefixes(prefixes: Arc<IdPrefixes>) -> VertexChunk {
        VertexChunk { ids: IdColumn::with_prefixes(prefixes), ..VertexChunk::default() }
    }

    /// Number of vertices.
    pub fn len(&self) -> usize {
        self.property_counts.len()
    }

    /// True if there is no vertex.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of a label.
    pub fn label(&mut self, label: &str) -> Result<ChunkWord, StoreError> {
        self.label_words.number("vertex label", label)
    }

    /// The number of a key.
    pub fn key(&mut self, key: &str) -> Result<ChunkWord, StoreError> {
        self.key_words.number("property key", key)
    }

    /// Begins a vertex, which counts once [`VertexChunk::end`] is called.
    pub fn begin(&mut self, label: ChunkWord, id: LoadId<'_>) -> Result<(), StoreError> {
        if let LoadId::Value(value) = id {
            check_id(value, "vertex")?;
        }
        self.ids.push(id);
        self.hashes.push(self.ids.hash(self.ids.len() - 1));
        self.labels.push(label.0);
        self.row_start = self.rows.bytes.len();
        self.row_properties = 0;
        Ok(())
    }

    /// Adds a property to the vertex that was begun, alone under its key.
    pub fn single(&mut self, key: ChunkWord, value: LoadValue<'_>) -> Result<(), StoreError> {
        self.property(key, LoadProperty { value, cardinality: Cardinality::Single, id: None, meta: &[] })
    }

    /// Adds a property to the vertex that was begun.
    pub fn property(&mut self, key: ChunkWord, property: LoadProperty<'_>) -> Result<(), StoreError> {
        let mut flags = match property.cardinality {
            Cardinality::Single => 0,
            Cardinality::List => flag::LIST,
            Cardinality::Set => flag::SET,
        };
        if property.id.is_some() {
            flags |= flag::ID;
        }
        if !property.meta.is_empty() {
            flags |= flag::META;
        }
        let bytes = &mut self.rows.bytes;
        put_number(u64::from(key.0), bytes);
        bytes.push(flags);
        property.value.put(self.key_words.name(key), bytes)?;
        if let Some(id) = property.id {
            if id >> PROPERTY_ID_BITS != 0 {
                let what = "vertex property ids".to_string();
                return Err(StoreError::LimitReached { what, limit: 1 << PROPERTY_ID_BITS });
            }
            self.largest_property_id = self.largest_property_id.max(id);
            put_number(id, bytes);
        }
        if !property.meta.is_empty() {
            put_number(property.meta.len() as u64, bytes);
            for (key, value) in property.meta {
                put_number(u64::from(key.0), bytes);
                LoadValue::Value(value).put(self.key_words.name(*key), bytes)?;
            }
        }
        self.row_properties += 1;
        self.rows.check_limit()
    }

    /// Ends the vertex that was begun.
    pub fn end(&mut self) {
        self.rows.end(self.property_counts.len(), self.row_start);
        self.property_counts.push(self.row_properties);
    }

    /// Gives up the vertex that was begun.
    pub fn abandon(&mut self) {
        self.ids.pop();
        self.hashes.pop();
        self.labels.pop();
        self.rows.truncate(self.property_counts.len());
    }

    /// The id of a vertex, for messages.
    pub fn id(&self, row: usize) -> Option<Value> {
        self.ids.get(row)
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.ids.bytes() + self.hashes.len() * 8 + self.labels.bytes() + self.rows.size()
    }

    /// Gives back memory that is not needed.
    pub fn shrink(&mut self) {
        self.labels.each.shrink_to_fit();
    }
}

/// Edges of one piece of the input.
#[derive(Clone, Debug, Default)]
pub struct EdgeChunk {
    pub(super) label_words: ChunkWords,
    pub(super) key_words: ChunkWords,
    pub(super) labels: LabelColumn,
    pub(super) sources: Vec<u32>,
    pub(super) targets: Vec<u32>,
    /// Empty as long as no edge has an id.
    pub(super) ids: IdColumn,
    pub(super) rows: RowBytes,
    row_start: usize,
}

impl EdgeChunk {
    /// A chunk without edges.
    pub fn new() -> EdgeChunk {
        EdgeChunk::default()
    }

    /// Number of edges.
    pub fn len(&self) -> usize {
        self.sources.len()
    }

    /// True if there is no edge.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// The number of a label.
    pub fn label(&mut self, label: &str) -> Result<ChunkWord, StoreError> {
        self.label_words.number("edge label", label)
    }

    /// The number of a key.
    pub fn key(&mut self, key: &str) -> Result<ChunkWord, StoreError> {
        self.key_words.number("property key", key)
    }

    /// Adds an edge between two vertices that [`VertexDirectory::find`](super::VertexDirectory::find) found.
    pub fn begin(&mut self, label: ChunkWord, out: VertexId, in_: VertexId, id: LoadId<'_>) -> Result<(), StoreError> {
        if let LoadId::Value(value) = id {
            check_id(value, "edge")?;
        }
        if !matches!(id, LoadId::Made) || self.ids.len() > 0 {
            while self.ids.len() < self.sources.len() {
                self.ids.push(LoadId::Made);
            }
            self.ids.push(id);
        }
        self.labels.push(label.0);
        self.sources.push(out.0 as u32);
        self.targets.push(in_.0 as u32);
        self.row_start = self.rows.bytes.len();
        Ok(())
    }

    /// Adds a property to the newest edge; a later value of the same key replaces an earlier one.
    pub fn property(&mut self, key: ChunkWord, value: LoadValue<'_>) -> Result<(), StoreError> {
        put_number(u64::from(key.0) + 1, &mut self.rows.bytes);
        value.put(self.key_words.name(key), &mut self.rows.bytes)?;
        self.rows.check_limit()
    }

    /// Ends the newest edge: its properties are complete.
    pub fn end(&mut self) {
        if self.rows.bytes.len() > self.row_start {
            self.rows.bytes.push(EDGE_ROW_END);
        }
        self.rows.end(self.sources.len() - 1, self.row_start);
    }

    /// Takes back the newest edge.
    pub fn abandon(&mut self) {
        if self.ids.len() == self.sources.len() {
            self.ids.pop();
        }
        self.labels.pop();
        self.sources.pop();
        self.targets.pop();
        self.rows.truncate(self.sources.len());
    }

    /// The id of an edge, for messages.
    pub fn id(&self, row: usize) -> Option<Value> {
        if self.ids.len() == 0 { None } else { self.ids.get(row) }
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.sources.len() * 8 + self.ids.bytes() + self.labels.bytes() + self.rows.size()
    }

    /// Gives back memory that is not needed.
    pub fn shrink(&mut self) {
        self.rows.shrink();
        self.sources.shrink_to_fit();
        self.targets.shrink_to_fit();
        self.labels.each.shrink_to_fit();
    }
}
