//! One named graph of a store.

use std::sync::Arc;

use crate::{Snapshot, StoreError, Transaction};

/// A property index: all vertices, or those of one label, by the values under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexDefinition {
    /// Only vertices of this label; `None` covers all.
    pub label: Option<Arc<str>>,
    /// The key.
    pub key: Arc<str>,
}

/// One named graph of a store.
pub struct Graph {}

impl Graph {
    /// The name.
    pub fn name(&self) -> &str {
        ""
    }
    /// Starts a unit of work on what is committed now. Costs less than a microsecond.
    pub fn begin(self: &Arc<Graph>) -> Transaction {
        Transaction {}
    }
    /// All that is committed now.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {}
    }
    /// Indexes the values under `key`; does nothing if that index exists.
    pub fn create_index(&self, _label: Option<&str>, _key: &str) -> Result<(), StoreError> {
        Ok(())
    }
    /// The property indexes.
    pub fn indexes(&self) -> Vec<IndexDefinition> {
        Vec::new()
    }
    /// Number of vertices.
    pub fn vertex_count(&self) -> u64 {
        0
    }
    /// Number of edges.
    pub fn edge_count(&self) -> u64 {
        0
    }
    /// Removes all vertices and edges; keeps indexes.
    pub fn clear(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
