//! Transactional multi-version graph store with a commit log.
#![forbid(unsafe_code)]

mod elements;
mod error;
mod graph;
mod protect;
mod snapshot;
mod store;
mod transaction;

pub use elements::{CommitTs, EdgeRecord, HalfEdge, HalfEdgeCursor, ScanCursor, VertexPropertyRecord};
pub use error::{ErrorKind, StoreError};
pub use graph::{Graph, IndexDefinition};
pub use protect::Protect;
pub use snapshot::Snapshot;
pub use store::{Store, StoreOptions, SyncPolicy};
pub use transaction::{CommitCallback, Transaction};
