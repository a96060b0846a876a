//! Puts records into a transaction: one by one for the loader, and a whole file at once for `io()`.

use std::sync::Arc;

use ficus_model::Value;
use ficus_storage::{StoreError, Transaction};

use super::loader::LoadError;
use super::record::{Batch, Consumer, EdgeRecord, Pass, ReadError, Record, Sink, Stopped, VertexRecord};
use super::sources::Source;

/// A record that did not fit, or a store that does not work.
pub enum Refusal {
    /// The record does not fit, for this reason.
    Rejected(String),
    /// The store does not work.
    Store(StoreError),
}

impl Refusal {
    /// What ends a load that has to take every record; `line` is the record's place in its file.
    pub fn into_error(self, file: &str, line: u64) -> LoadError {
        match self {
            Refusal::Store(error) => LoadError::Store(error),
            Refusal::Rejected(reason) => LoadError::File { name: file.to_string(), line, reason },
        }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Refusal {
        match error.kind() {
            ficus_storage::ErrorKind::Caller => Refusal::Rejected(error.to_string()),
            _ => Refusal::Store(error),
        }
    }
}

/// Adds a vertex with its properties, or nothing of it.
pub fn add_vertex(transaction: &mut Transaction, record: &VertexRecord) -> Result<(), Refusal> {
    let vertex = transaction.add_vertex(&record.label, Some(record.id.clone()))?;
    for property in &record.properties {
        let mut write = || -> Result<(), StoreError> {
            let id = property.id.as_ref().and_then(property_id);
            let value = property.value.clone();
            let id = transaction.set_vertex_property(vertex, &property.key, value, property.cardinality, id)?;
            for (key, value) in &property.meta {
                transaction.set_meta_property(vertex, id, key, value.clone())?;
            }
            Ok(())
        };
        if let Err(error) = write() {
            transaction.remove_vertex(vertex)?;
            return Err(match Refusal::from(error) {
                Refusal::Rejected(reason) => Refusal::Rejected(format!("property '{}': {reason}", property.key)),
                store => store,
            });
        }
    }
    Ok(())
}

/// Adds an edge with its properties, or nothing of it; both its vertices must be there.
pub fn add_edge(transaction: &mut Transaction, record: &EdgeRecord) -> Result<(), Refusal> {
    let find =
        |id: &Value, end: &str| transaction.find_vertex(id).ok_or_else(|| Refusal::Rejected(missing_end(end, id)));
    let (out, in_) = (find(&record.out_id, "source")?, find(&record.in_id, "target")?);
    let edge = transaction.add_edge(&record.label, out, in_, record.id.clone())?;
    for (key, value) in &record.properties {
        if let Err(error) = transaction.set_edge_property(edge, key, value.clone()) {
            transaction.remove_edge(edge)?;
            return Err(match Refusal::from(error) {
                Refusal::Rejected(reason) => Refusal::Rejected(format!("property '{key}': {reason}")),
                store => store,
            });
        }
    }
    Ok(())
}

/// Why an edge is rejected whose source or target is not there.
pub fn missing_end(end: &str, id: &Value) -> String {
    format!("its {end} vertex {} does not exist", crate::render::literal(id))
}

/// A property id the store can keep; others are replaced by new ones.
pub fn property_id(id: &Value) -> Option<u64> {
    match id {
        Value::Int(number) => u64::try_from(*number).ok(),
        Value::Long(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

/// Adds all that a file holds to `transaction`. Vertices and edges keep their ids; vertex properties get new ones, since
/// those of the file may be taken in a graph that is not empty.
///
/// Errors: the first record that does not fit, with its line. What was added until then stays in the transaction.
pub fn read_into(source: &Source, transaction: &mut Transaction) -> Result<(), LoadError> {
    let mut placing = Placing { transaction, failure: None };
    for pass in [Pass::Vertices, Pass::Edges] {
        let mut sink = Sink::new(source.name.clone(), &mut placing);
        let outcome = source.read(pass, &mut sink, Arc::default());
        match (outcome, placing.failure.take()) {
            (_, Some(failure)) => return Err(failure),
            (Err(ReadError::File { line, reason }), None) => {
                return Err(LoadError::File { name: source.name.to_string(), line, reason });
            }
            (Ok(()) | Err(ReadError::Stopped), None) => {}
        }
        if let Some(reason) = source.warning() {
            return Err(LoadError::File { name: source.name.to_string(), line: 0, reason });
        }
    }
    Ok(())
}

struct Placing<'a> {
    transaction: &'a mut Transaction,
    failure: Option<LoadError>,
}

impl Consumer for Placing<'_> {
    fn take(&mut self, batch: Batch) -> Result<(), Stopped> {
        for item in batch.items {
            let outcome = match item.content {
                Ok(Record::Vertex(mut vertex)) => {
                    vertex.properties.iter_mut().for_each(|property| property.id = None);
                    add_vertex(self.transaction, &vertex)
                }
                Ok(Record::Edge(edge)) => add_edge(self.transaction, &edge),
                Err(reason) => Err(Refusal::Rejected(reason)),
            };
            if let Err(refusal) = outcome {
                self.failure = Some(refusal.into_error(&batch.file, item.line));
                return Err(Stopped);
            }
        }
        Ok(())
    }
}
