//! One unit of work: a snapshot plus buffered writes.

use std::ops::Deref;

use ficus_model::{Cardinality, EdgeId, KeyId, Value, VertexId};

use crate::{CommitTs, Protect, Snapshot, StoreError};

/// Told the outcome of an asynchronous commit, on the store's commit thread: must be quick and must not block.
pub type CommitCallback = Box<dyn FnOnce(Result<CommitTs, StoreError>) + Send>;

/// One unit of work: a snapshot plus buffered writes; all reads (through [`Snapshot`]) see its own writes.
pub struct Transaction {}

#[allow(unused_variables)]
impl Transaction {
    /// Adds a vertex; without an id it gets the next free `Long`.
    pub fn add_vertex(&mut self, label: &str, id: Option<Value>) -> Result<VertexId, StoreError> {
        Err(StoreError::Closed)
    }
    /// Adds an edge; without an id it gets the next free `Long`.
    pub fn add_edge(
        &mut self,
        label: &str,
        out: VertexId,
        in_: VertexId,
        id: Option<Value>,
    ) -> Result<EdgeId, StoreError> {
        Err(StoreError::Closed)
    }
    /// Sets or adds a vertex property and returns its id. `Single` replaces what is under the key; `Set` returns the id
    /// of the property that has this value already, if one has.
    pub fn set_vertex_property(
        &mut self,
        vertex: VertexId,
        key: &str,
        value: Value,
        cardinality: Cardinality,
        id: Option<u64>,
    ) -> Result<u64, StoreError> {
        Err(StoreError::Closed)
    }
    /// Sets a meta-property of a vertex property.
    pub fn set_meta_property(
        &mut self,
        vertex: VertexId,
        property: u64,
        key: &str,
        value: Value,
    ) -> Result<(), StoreError> {
        Err(StoreError::Closed)
    }
    /// Sets a property of an edge.
    pub fn set_edge_property(&mut self, edge: EdgeId, key: &str, value: Value) -> Result<(), StoreError> {
        Err(StoreError::Closed)
    }
    /// Removes a vertex with its properties and edges; does nothing if it is gone already.
    pub fn remove_vertex(&mut self, vertex: VertexId) -> Result<(), StoreError> {
        Err(StoreError::Closed)
    }
    /// Removes an edge; does nothing if it is gone already.
    pub fn remove_edge(&mut self, edge: EdgeId) -> Result<(), StoreError> {
        Err(StoreError::Closed)
    }
    /// Removes one property of a vertex; does nothing if it is gone already.
    pub fn remove_vertex_property(&mut self, vertex: VertexId, property: u64) -> Result<(), StoreError> {
        Err(StoreError::Closed)
    }
    /// Removes a meta-property; does nothing if it is gone already.
    pub fn remove_meta_property(&mut self, vertex: VertexId, property: u64, key: KeyId) -> Result<(), StoreError> {
        Err(StoreError::Closed)
    }
    /// Removes a property of an edge; does nothing if it is gone already.
    pub fn remove_edge_property(&mut self, edge: EdgeId, key: KeyId) -> Result<(), StoreError> {
        Err(StoreError::Closed)
    }
    /// Records a read that the commit must find unchanged.
    pub fn protect(&mut self, what: Protect<'_>) {}
    /// True if nothing was written.
    pub fn is_read_only(&self) -> bool {
        true
    }
    /// Commits and waits until the writes are durable and visible.
    pub fn commit(self) -> Result<CommitTs, StoreError> {
        Err(StoreError::Closed)
    }
    /// Commits without waiting; `callback` is told when the writes are durable and visible, or refused.
    pub fn commit_with(self, callback: CommitCallback) {
        callback(Err(StoreError::Closed));
    }
    /// Forgets the writes.
    pub fn rollback(self) {}
}

impl Deref for Transaction {
    type Target = Snapshot;
    fn deref(&self) -> &Snapshot {
        const EMPTY: &Snapshot = &Snapshot {};
        EMPTY
    }
}
