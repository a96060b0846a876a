//! A piece of the input as a load into an empty graph takes it: chunks, rejections, and where every record came from.

use std::sync::Arc;

use ficus_model::Value;
use ficus_storage::{EdgeChunk, IdPrefixes, LoadId, LoadProperty, LoadValue, StoreError, VertexChunk, VertexDirectory};

use super::placement::{missing_end, property_id};
use super::record::{Batch, EdgeRecord, Record, VertexRecord, shown_row};
use super::references::References;
use super::rows::{Dialect, Rows};

/// A record that was left out.
pub struct Rejected {
    /// Line in the piece, from 1.
    pub line: u64,
    /// Column in bytes, from 1; 0 where the whole row is meant.
    pub column: u32,
    /// Why.
    pub reason: String,
    /// The row, shortened if it is very long.
    pub row: String,
}

/// Where records came from, for those that are rejected after they were read.
pub enum Origin {
    /// Bytes of a table; a place is where a row begins.
    Rows {
        /// The bytes.
        raw: Vec<u8>,
        /// How rows are written.
        dialect: Dialect,
        /// Lines at the end that the bytes lack.
        lines_left_out: u64,
    },
    /// Records of a reader; a place is the number of an item. Lines are counted from the start of the file.
    Batch(Batch),
}

impl Origin {
    /// Line and row of a place.
    pub fn at(&self, place: u32) -> (u64, String) {
        match self {
            Origin::Rows { raw, dialect, .. } => {
                let (before, rest) = raw.split_at(place as usize);
                let mut rows = Rows::new(rest, *dialect);
                // Memory can be read, and whether the row is broken does not matter for showing it.
                let _ = rows.next_row();
                (memchr::memchr_iter(b'\n', before).count() as u64 + rows.line(), shown_row(rows.raw()))
            }
            Origin::Batch(batch) => {
                let item = &batch.items[place as usize];
                (item.line, batch.row(item))
            }
        }
    }

    /// Lines of the piece, if lines are counted from its start.
    pub fn lines(&self) -> u64 {
        match self {
            Origin::Rows { raw, lines_left_out, .. } => memchr::memchr_iter(b'\n', raw).count() as u64 + lines_left_out,
            Origin::Batch(_) => 0,
        }
    }
}

/// What was read from a piece of the input.
pub struct Piece {
    /// Vertices.
    pub vertices: VertexChunk,
    /// The place of each.
    pub vertex_places: Vec<u32>,
    /// Vertices that are created unless they exist.
    pub implied: VertexChunk,
    /// Edges.
    pub edges: EdgeChunk,
    /// The place of each.
    pub edge_places: Vec<u32>,
    /// What was left out.
    pub rejected: Vec<Rejected>,
    /// Foreign keys of all vertices, if they are kept.
    pub references: Option<References>,
    /// Where all came from.
    pub origin: Origin,
}

/// A piece being read.
pub struct PieceBuilder<'a> {
    pub vertices: VertexChunk,
    pub vertex_places: Vec<u32>,
    pub implied: VertexChunk,
    pub edges: EdgeChunk,
    pub edge_places: Vec<u32>,
    pub rejected: Vec<Rejected>,
    pub references: Option<References>,
    /// Finds the ends of edges; absent while vertices are read.
    pub directory: Option<&'a VertexDirectory>,
}

impl<'a> PieceBuilder<'a> {
    /// An empty piece.
    pub fn new(directory: Option<&'a VertexDirectory>, prefixes: &Arc<IdPrefixes>) -> PieceBuilder<'a> {
        PieceBuilder {
            vertices: VertexChunk::with_prefixes(prefixes.clone()),
            vertex_places: Vec::new(),
            implied: VertexChunk::with_prefixes(prefixes.clone()),
            edges: EdgeChunk::new(),
            edge_places: Vec::new(),
            rejected: Vec::new(),
            references: None,
            directory,
        }
    }

    /// The finished piece.
    pub fn finish(self, origin: Origin) -> Piece {
        let PieceBuilder { vertices, vertex_places, implied, edges, edge_places, rejected, references, .. } = self;
        Piece { vertices, vertex_places, implied, edges, edge_places, rejected, references, origin }
    }

    /// The piece of a batch of records.
    pub fn of_batch(mut self, batch: Batch) -> Piece {
        for number in 0..batch.items.len() {
            self.item(&batch, number, number as u32);
        }
        self.finish(Origin::Batch(batch))
    }

    /// Adds an item of a batch, which comes from a place.
    pub fn item(&mut self, batch: &Batch, number: usize, place: u32) {
        let item = &batch.items[number];
        let added = match &item.content {
            Ok(Record::Vertex(vertex)) => self.vertex(vertex, place),
            Ok(Record::Edge(edge)) => self.edge(edge, place),
            Err(reason) => Err(reason.clone()),
        };
        if let Err(reason) = added {
            self.rejected.push(Rejected { line: item.line, column: item.column, reason, row: batch.row(item) });
        }
    }

    fn vertex(&mut self, record: &VertexRecord, place: u32) -> Result<(), String> {
        if record.implied {
            let label = self.implied.label(&record.label).map_err(text)?;
            self.implied.begin(label, LoadId::Value(&record.id)).map_err(text)?;
            self.implied.end();
            return Ok(());
        }
        let chunk = &mut self.vertices;
        let label = chunk.label(&record.label).map_err(text)?;
        chunk.begin(label, LoadId::Value(&record.id)).map_err(text)?;
        for property in &record.properties {
            let mut add = || -> Result<(), StoreError> {
                let mut meta = Vec::with_capacity(property.meta.len());
                for (key, value) in &property.meta {
                    meta.push((chunk.key(key)?, value.clone()));
                }
                let key = chunk.key(&property.key)?;
                let id = property.id.as_ref().and_then(property_id);
                let value = LoadValue::Value(&property.value);
                chunk.property(key, LoadProperty { value, cardinality: property.cardinality, id, meta: &meta })
            };
            if let Err(error) = add() {
                chunk.abandon();
                return Err(format!("property '{}': {error}", property.key));
            }
        }
        chunk.end();
        self.vertex_places.push(place);
        Ok(())
    }

    fn edge(&mut self, record: &EdgeRecord, place: u32) -> Result<(), String> {
        let find = |id: &Value, end: &str| {
            let directory = self.directory.ok_or("an edge came before the last vertex")?;
            directory.find(LoadId::Value(id)).ok_or_else(|| missing_end(end, id))
        };
        let (out, in_) = (find(&record.out_id, "source")?, find(&record.in_id, "target")?);
        let chunk = &mut self.edges;
        let label = chunk.label(&record.label).map_err(text)?;
        let id = record.id.as_ref().map_or(LoadId::Made, LoadId::Value);
        chunk.begin(label, out, in_, id).map_err(text)?;
        for (key, value) in &record.properties {
            let added = chunk.key(key).and_then(|word| chunk.property(word, LoadValue::Value(value)));
            if let Err(error) = added {
                chunk.abandon();
                return Err(format!("property '{key}': {error}"));
            }
        }
        chunk.end();
        self.edge_places.push(place);
        Ok(())
    }
}

fn text(error: StoreError) -> String {
    error.to_string()
}

/// Takes whole batches out of a sink.
#[derive(Default)]
pub struct Collected(pub Vec<Batch>);

impl super::record::Consumer for Collected {
    fn take(&mut self, batch: Batch) -> Result<(), super::record::Stopped> {
        self.0.push(batch);
        Ok(())
    }
}
