//! Transactional multi-version graph store with a commit log.
#![forbid(unsafe_code)]

mod adjacency;
mod apply;
mod bulk;
mod check;
mod checkpoint;
mod checkpointer;
mod commit_queue;
mod committer;
mod directory_disk;
mod elements;
mod environment;
mod error;
mod fingerprint;
mod graph;
mod id_index;
mod invariants;
mod log;
mod mutation;
mod ordered_pages;
mod page_map;
mod property_index;
mod property_row;
mod protect;
mod recovery;
mod reservations;
mod resolver;
mod root;
pub mod simulated_disk;
mod snapshot;
mod store;
mod string_pool;
mod tablet;
mod transaction;
mod value_codec;
mod value_key;
mod words;

pub use bulk::{BulkLoader, BulkProperty, BulkReport};
pub use check::{FileReport, Finding, StoreReport};
pub use directory_disk::DirectoryDisk;
pub use elements::{CommitTs, EdgeRecord, HalfEdge, HalfEdgeCursor, ScanCursor, VertexPropertyRecord};
pub use environment::{
    Clock, DirectoryLock, Disk, DiskFile, Environment, Random, Spawn, SystemClock, SystemRandom, SystemThreads,
};
pub use error::{ErrorKind, StoreError};
pub use graph::{Graph, IndexDefinition};
pub use protect::Protect;
pub use snapshot::Snapshot;
pub use store::{Store, StoreOptions, SyncPolicy};
pub use transaction::{CommitCallback, Transaction};
