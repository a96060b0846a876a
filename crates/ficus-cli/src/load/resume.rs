//! How far a load has come, so that another can go on.
//!
//! A load into a graph that has elements notes its position together with each batch: both are there after a crash, or
//! neither. Going on, everything is read again from the start, which costs a tenth of loading it, and what was taken already is
//! passed over; a hash of the rows tells whether they are the same. A load of a whole graph is there or not, and notes that it
//! is complete.

use std::sync::Arc;

use ficus_storage::{Graph, StoreError};
use serde_json::{Value as Json, json};
use xxhash_rust::xxh3::Xxh3;

use super::record::{Batch, Item};
use super::report::Counts;
use super::sources::Source;

/// The name under which a graph keeps the position of its last load.
pub const NOTE: &str = "load";

/// How far a load has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Fingerprint of the names and lengths of the files, and of the options that say how they are read.
    pub inputs: String,
    /// Records and rejections taken, in the order in which they are read.
    pub items: u64,
    /// Fingerprint of the rows they came from.
    pub rows: String,
    /// What became of them.
    pub counts: Counts,
    /// Length of the report of rejected records.
    pub reject_bytes: u64,
    /// What comes behind that: lines which the report gets when this position is committed.
    pub rejections: Vec<String>,
    /// True if everything was loaded.
    pub done: bool,
}

impl Position {
    /// What a graph has noted of its last load.
    ///
    /// Errors: those of the store, and `None` in place of a note that this release cannot read.
    pub fn of(graph: &Arc<Graph>) -> Result<Option<Position>, StoreError> {
        Ok(graph.noted(NOTE)?.and_then(|note| Position::read(&note)))
    }

    /// As bytes.
    pub fn write(&self) -> Vec<u8> {
        let Counts { vertices, edges, implied_vertices, read, rejected } = self.counts;
        json!({
            "inputs": self.inputs, "items": self.items, "rows": self.rows, "vertices": vertices, "edges": edges,
            "implied_vertices": implied_vertices, "read": read, "rejected": rejected, "reject_bytes": self.reject_bytes,
            "rejections": self.rejections, "done": self.done,
        })
        .to_string()
        .into_bytes()
    }

    fn read(note: &[u8]) -> Option<Position> {
        let note: Json = serde_json::from_slice(note).ok()?;
        let number = |name: &str| note.get(name)?.as_u64();
        let lines = |name: &str| match note.get(name) {
            // Earlier releases have none.
            None => Some(Vec::new()),
            Some(lines) => lines.as_array()?.iter().map(|line| Some(line.as_str()?.to_owned())).collect(),
        };
        let text = |name: &str| Some(note.get(name)?.as_str()?.to_owned());
        Some(Position {
            inputs: text("inputs")?,
            items: number("items")?,
            rows: text("rows")?,
            counts: Counts {
                vertices: number("vertices")?,
                edges: number("edges")?,
                implied_vertices: number("implied_vertices")?,
                read: number("read")?,
                rejected: number("rejected")?,
            },
            reject_bytes: number("reject_bytes")?,
            rejections: lines("rejections")?,
            done: note.get("done")?.as_bool()?,
        })
    }
}

/// A fingerprint of the names and lengths of files and of a text that says how they are read.
pub fn inputs(sources: &[Source], options: &str) -> String {
    let mut hash = Xxh3::new();
    hash.update(options.as_bytes());
    for source in sources {
        hash.update(&[0]);
        hash.update(source.name.as_bytes());
        hash.update(&source.bytes.to_le_bytes());
    }
    format!("{:016x}", hash.digest())
}

/// A fingerprint of rows in their order.
#[derive(Clone, Default)]
pub struct RowHash(Xxh3);

impl RowHash {
    /// Adds the row of an item.
    pub fn add(&mut self, batch: &Batch, item: &Item) {
        self.0.update(&item.line.to_le_bytes());
        self.0.update(batch.row_bytes(item));
    }

    /// The fingerprint of what was added.
    pub fn text(&self) -> String {
        format!("{:016x}", self.0.digest())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_was_written() {
        let counts = Counts { vertices: 1, edges: 2, implied_vertices: 3, read: 4, rejected: 5 };
        let (inputs, rows) = ("a".into(), "b".into());
        let rejections = vec!["{}".into(), "\"".into()];
        let position = Position { inputs, items: 9, rows, counts, reject_bytes: 7, rejections, done: true };
        assert_eq!(Position::read(&position.write()), Some(position));
        assert_eq!(Position::read(b"{}"), None);
        assert_eq!(Position::read(b"\xff"), None);
    }
}
