//! Transactional multi-version graph store with a commit log.
//!
//! ```text
//! Store ─ Graph ─ Transaction ──mutations──▶ commit queue ─▶ log ─▶ resolver ─▶ apply ─▶ next root
//!            └─── Snapshot ◀──────────────────── published root ◀────────────────────────┘
//! ```
//! * **Reading.** A [`Snapshot`] is an immutable root of shared pages ([`root`], [`page_map`], [`ordered_pages`]): reads take
//!   no lock and see one state. A [`Transaction`] derefs to a snapshot that has its own writes in it.
//! * **Writing.** Mutations are logged ([`commit_queue`]), then applied in log order ([`committer`]); whether a record commits is
//!   decided there, from the log and the state alone ([`resolver`]).
//! * **Lasting.** A start loads the newest checkpoint and applies the log behind it ([`recovery`], [`checkpoint`], [`log`]).
//!
//! ```
//! use ficus_model::{Cardinality, Direction, Value};
//! use ficus_storage::{HalfEdgeCursor, Store};
//!
//! let store = Store::in_memory();
//! let graph = store.create_graph("people")?;
//! let mut writing = graph.begin();
//! let ann = writing.add_vertex("person", Some(Value::Int(1)))?;
//! let ben = writing.add_vertex("person", None)?;
//! writing.add_edge("knows", ann, ben, None)?;
//! writing.set_vertex_property(ann, "name", Value::String("Ann".into()), Cardinality::Single, None)?;
//! writing.commit()?;
//!
//! let snapshot = graph.snapshot();
//! let mut half_edges = Vec::new();
//! snapshot.half_edges(ann, Direction::Out, &[], &mut HalfEdgeCursor::default(), 100, &mut half_edges);
//! assert_eq!(half_edges[0].neighbour, ben);
//! # Ok::<(), ficus_storage::StoreError>(())
//! ```
//!
//! The formats on the disk and the road of a commit are told in `docs/storage.md`.
//!
//! *Architecture Invariant:* knows values, ids and labels, but no query, no language and no dataflow. Time, randomness, disk and threads
//! come in through [`Environment`]; applying a record uses none of them.
#![deny(unsafe_code)]

mod adjacency;
mod answers;
mod apply;
mod archive;
mod base;
mod beginning;
mod between;
mod bulk;
mod changed_slots;
mod check;
mod checkpoint;
mod checkpointer;
mod column_filter;
mod commit_queue;
mod committer;
mod consolidation;
mod damage_mark;
mod delta;
mod directory_disk;
mod edge_scan;
mod elements;
mod end_labels;
mod environment;
mod error;
mod farewell;
mod fingerprint;
mod gentle_disk;
mod graph;
mod hop_tables;
mod id_index;
mod index;
mod invariants;
mod label_blocks;
mod label_counts;
mod log;
mod machine;
mod mapping;
#[cfg(feature = "measure")]
pub mod measure;
mod mutation;
mod neighbours;
mod number_range;
mod ordered_pages;
mod pace;
mod page_map;
mod property_index;
mod property_row;
mod protect;
mod read_set;
mod recovery;
mod reservations;
mod resolver;
mod root;
mod schema;
mod segment;
mod segment_load;
mod shortage;
mod side_view;
pub mod simulated_disk;
mod snapshot;
mod sort_order;
mod sorted_read;
mod state_mark;
mod store;
mod stored_graphs;
mod string_pool;
mod sync;
mod tablet;
#[cfg(test)]
mod test_store;
mod text_codes;
mod transaction;
mod value_codec;
mod value_key;
mod versions;
mod vertex_view;
mod words;
mod written;

pub use archive::{ArchiveStatus, BackupReport, RestorePoint, RestoreReport};
pub use between::BetweenCursor;
pub use bulk::{BulkLoader, BulkProperty, BulkReport};
pub use check::{FileReport, Finding, GraphReport, StoreReport};
pub use directory_disk::DirectoryDisk;
pub use edge_scan::EdgeScanCursor;
pub use elements::{CommitTs, EdgeRecord, HalfEdge, HalfEdgeCursor, ScanCursor, VertexPropertyRecord};
pub use environment::{
    Clock, DirectoryLock, Disk, DiskFile, Environment, Random, Spawn, SystemClock, SystemRandom, SystemThreads,
};
pub use error::{ErrorKind, FullDisk, StoreError};
pub use graph::Graph;
pub use index::{
    ElementKind, INDEX_KEYS_LIMIT, IndexCursor, IndexDefinition, IndexInfo, IndexKind, IndexQuery, IndexState,
    IndexTest,
};
pub use machine::machine_memory_bytes;
pub use mapping::SegmentBytes;
pub use neighbours::{Neighbours, VertexSlice};
pub use number_range::{NumberRange, range_number};
pub use protect::Protect;
pub use recovery::Recovery;
pub use schema::{
    ATTRIBUTES_LIMIT, Attribute, Multiplicity, SortKey, Task, TaskState, TaskWork, TypeDefinition, TypeMode, TypeState,
    ValueType,
};
pub use segment_load::{
    ChunkWord, EdgeChunk, EdgeLoad, IdPrefix, IdPrefixes, LoadId, LoadProperty, LoadValue, RefusedRow, VertexChunk,
    VertexDirectory, VertexLoad,
};
pub use snapshot::{AtEdge, AtVertex, Snapshot};
pub use sorted_read::{SortedCursor, SortedQuery};
pub use state_mark::{Changes, StateKey, StateMark};
pub use store::{Store, StoreOptions, SyncPolicy};
pub use stored_graphs::StoredGraphs;
pub use text_codes::TextCode;
pub use transaction::{CommitCallback, Savepoint, Transaction, Undone};
pub use versions::AsOf;
