//! One data directory with its graphs and its commit log.

use std::fmt;
use std::sync::{Arc, PoisonError};

use crate::commit_queue::CommitQueue;
use crate::committer::{Committer, Directory, State};
use crate::environment::Environment;
use crate::log::LogPosition;
use crate::mutation::Body;
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

/// Bytes a graph's name may have.
const NAME_BYTES_LIMIT: usize = 128;

/// The largest `tablet_bits`.
const TABLET_BITS_LIMIT: u8 = 10;

/// How a store is opened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoreOptions {
    /// Base-2 logarithm of the number of tablets of graphs created from now on; 0 to 10.
    pub tablet_bits: u8,
    /// When a commit is acknowledged.
    pub sync: SyncPolicy,
    /// A checkpoint is taken when the log has grown by this many bytes, or by the size of the last checkpoint if that is
    /// more.
    pub checkpoint_log_bytes: u64,
    /// Bytes after which the log goes on in a new file.
    pub log_segment_bytes: u64,
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        StoreOptions {
            tablet_bits: 4,
            sync: SyncPolicy::Always,
            checkpoint_log_bytes: 256 << 20,
            log_segment_bytes: 64 << 20,
        }
    }
}

impl StoreOptions {
    fn check(&self) -> Result<(), StoreError> {
        if self.tablet_bits > TABLET_BITS_LIMIT {
            let reason = format!("{} is not between 0 and {TABLET_BITS_LIMIT}", self.tablet_bits);
            return Err(StoreError::InvalidOption { option: "tablet_bits", reason });
        }
        Ok(())
    }
}

/// One data directory with its graphs and its commit log.
pub struct Store {
    options: StoreOptions,
    directory: Arc<Directory>,
    queue: Arc<CommitQueue>,
}

impl Store {
    /// A store without a disk and without threads: commits are transactional but end with the process.
    pub fn in_memory() -> Arc<Store> {
        Store::open(StoreOptions::default(), Environment::in_memory()).expect("without a disk nothing can fail")
    }

    /// Opens a store, recovering what was committed.
    pub fn open(options: StoreOptions, environment: Environment) -> Result<Arc<Store>, StoreError> {
        options.check()?;
        let directory = Arc::new(Directory::default());
        let mut committer = Committer {
            state: State::default(),
            log: None,
            checkpointed: LogPosition(0),
            writer: environment.random.number(),
            sync: options.sync,
            directory: directory.clone(),
        };
        committer.begin_epoch()?;
        committer.publish(true);
        let queue = Arc::new(CommitQueue::new(committer));
        Ok(Arc::new(Store { options, directory, queue }))
    }

    /// The graph of this name.
    pub fn graph(&self, name: &str) -> Option<Arc<Graph>> {
        let entry = self.directory.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()?;
        let queue = self.queue.clone();
        Some(Arc::new(Graph { number: entry.number, name: entry.name, published: entry.published, queue }))
    }

    /// Creates an empty graph.
    pub fn create_graph(&self, name: &str) -> Result<Arc<Graph>, StoreError> {
        check_name(name)?;
        self.queue.commit(Body::CreateGraph { name: Arc::from(name), tablet_bits: self.options.tablet_bits })?;
        // Another thread may have dropped it at once.
        self.graph(name).ok_or_else(|| StoreError::NoSuchGraph { name: name.to_string() })
    }

    /// Removes a graph with all it holds. Snapshots of it can still be read; writes to it are refused.
    pub fn drop_graph(&self, name: &str) -> Result<(), StoreError> {
        let graph = self.graph(name).ok_or_else(|| StoreError::NoSuchGraph { name: name.to_string() })?;
        self.queue.commit(Body::DropGraph { graph: graph.number }).map(|_| ())
    }

    /// Names of all graphs in alphabetic order.
    pub fn graph_names(&self) -> Vec<String> {
        let directory = self.directory.read().unwrap_or_else(PoisonError::into_inner);
        directory.keys().map(|name| name.to_string()).collect()
    }

    /// Writes the whole state to a checkpoint file and trims the log behind it. Commits go on meanwhile.
    pub fn checkpoint(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Commits what is queued, writes a checkpoint and releases the data directory; later writes give `Closed`.
    pub fn close(&self) -> Result<(), StoreError> {
        self.queue.close();
        drop(self.queue.take_committer());
        Ok(())
    }

    /// `Ok` if writes are accepted, else why they are refused.
    pub fn writable(&self) -> Result<(), StoreError> {
        self.queue.writable()
    }
}

fn check_name(name: &str) -> Result<(), StoreError> {
    let mut characters = name.chars();
    let begins = characters.next().is_some_and(|first| first.is_ascii_alphanumeric());
    let goes_on = characters.all(|next| next.is_ascii_alphanumeric() || "_-.".contains(next));
    if begins && goes_on && name.len() <= NAME_BYTES_LIMIT {
        return Ok(());
    }
    Err(StoreError::InvalidGraphName { name: name.chars().take(NAME_BYTES_LIMIT).collect() })
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("options", &self.options).field("queue", &self.queue).finish_non_exhaustive()
    }
}
