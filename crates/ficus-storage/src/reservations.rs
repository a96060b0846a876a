//! The internal numbers of elements that do not exist yet.
//!
//! A transaction takes numbers when it adds an element, so that they are final before it commits. Those of transactions
//! that abort are lost, which leaves gaps and harms nothing.

use std::sync::atomic::{AtomicU64, Ordering};

use ficus_model::{EdgeId, VertexId};

use crate::StoreError;
use crate::adjacency::ID_BITS;
use crate::property_row::PROPERTY_ID_BITS;
use crate::root::GraphRoot;
use crate::tablet::IdLayout;

/// Counters of one graph.
#[derive(Debug, Default)]
pub(crate) struct Reservations {
    vertex: AtomicU64,
    edge_sequence: AtomicU64,
    property: AtomicU64,
    user_id: AtomicU64,
}

impl Reservations {
    /// Nothing below what `root` used is handed out again.
    pub(crate) fn pass(&self, root: &GraphRoot) {
        self.vertex.fetch_max(root.next_ids.vertex, Ordering::Relaxed);
        self.edge_sequence.fetch_max(root.next_ids.edge_sequence, Ordering::Relaxed);
        self.property.fetch_max(root.next_ids.property, Ordering::Relaxed);
        self.user_id.fetch_max(root.next_ids.user_id, Ordering::Relaxed);
    }

    /// A new vertex.
    pub(crate) fn vertex(&self) -> Result<VertexId, StoreError> {
        let number = self.vertex.fetch_add(1, Ordering::Relaxed);
        within(number, ID_BITS, "vertices").map(VertexId)
    }

    /// A new edge whose source is `out`.
    pub(crate) fn edge(&self, layout: IdLayout, out: VertexId) -> Result<EdgeId, StoreError> {
        let number = self.edge_sequence.fetch_add(1, Ordering::Relaxed);
        let sequence = within(number, ID_BITS - u32::from(layout.tablet_bits), "edges")?;
        Ok(layout.edge_id(sequence, out))
    }

    /// A new vertex property.
    pub(crate) fn property(&self) -> Result<u64, StoreError> {
        within(self.property.fetch_add(1, Ordering::Relaxed), PROPERTY_ID_BITS, "vertex properties")
    }

    /// A new user id, which may be taken.
    pub(crate) fn user_id(&self) -> Result<u64, StoreError> {
        within(self.user_id.fetch_add(1, Ordering::Relaxed), i64::BITS - 1, "generated ids")
    }
}

fn within(number: u64, bits: u32, what: &str) -> Result<u64, StoreError> {
    if number >> bits == 0 {
        return Ok(number);
    }
    Err(StoreError::LimitReached { what: format!("{what} in the life of one graph"), limit: 1 << bits })
}
