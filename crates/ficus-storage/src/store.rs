//! One data directory with its graphs and its commit log.

use std::path::PathBuf;
use std::sync::Arc;

use crate::{Graph, StoreError};

/// When a commit is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncPolicy {
    /// After the log was flushed to the disk.
    #[default]
    Always,
    /// After the log was handed to the operating system; a power cut may lose the newest commits, never half of one.
    Never,
}

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The data directory; `None` keeps everything in memory.
    pub directory: Option<PathBuf>,
    /// Base-2 logarithm of the number of tablets of graphs created from now on; 0 to 10.
    pub tablet_bits: u8,
    /// When a commit is acknowledged.
    pub sync: SyncPolicy,
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        StoreOptions { directory: None, tablet_bits: 4, sync: SyncPolicy::Always }
    }
}

/// One data directory with its graphs and its commit log.
pub struct Store {}

impl Store {
    /// A store without a disk: commits are transactional but die with the process.
    pub fn in_memory() -> Arc<Store> {
        Arc::new(Store {})
    }
    /// Opens a data directory, recovering what was committed.
    pub fn open(_options: StoreOptions) -> Result<Arc<Store>, StoreError> {
        Ok(Arc::new(Store {}))
    }
    /// The graph of this name.
    pub fn graph(&self, _name: &str) -> Option<Arc<Graph>> {
        None
    }
    /// Creates an empty graph.
    pub fn create_graph(&self, name: &str) -> Result<Arc<Graph>, StoreError> {
        Err(StoreError::NoSuchGraph { name: name.to_string() })
    }
    /// Removes a graph with all it holds.
    pub fn drop_graph(&self, name: &str) -> Result<(), StoreError> {
        Err(StoreError::NoSuchGraph { name: name.to_string() })
    }
    /// Names of all graphs in alphabetic order.
    pub fn graph_names(&self) -> Vec<String> {
        Vec::new()
    }
    /// Writes the whole state to a checkpoint file and trims the log behind it.
    pub fn checkpoint(&self) -> Result<(), StoreError> {
        Ok(())
    }
    /// Commits what is queued, writes a checkpoint and releases the data directory; later writes give `Closed`.
    pub fn close(&self) -> Result<(), StoreError> {
        Ok(())
    }
    /// `Ok` if writes are accepted, else why they are refused.
    pub fn writable(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
