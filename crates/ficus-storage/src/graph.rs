//! One named graph of a store.

use std::fmt;
use std::sync::Arc;

use crate::base::{Base, BaseBuilder};
use crate::commit_queue::CommitQueue;
use crate::damage_mark::DamageMark;
use crate::mutation::{AttachBase, Body, Fact, OpenedBase};
use crate::reservations::Reservations;
use crate::root::{GraphRoot, NextIds};
use crate::versions::{AsOf, Retention, Versions};
use crate::{BulkLoader, Clock, CommitTs, Snapshot, StoreError, Transaction, VertexLoad};

/// What readers and writers of one graph share.
#[derive(Debug)]
pub(crate) struct Published {
    /// The roots that readers may see.
    pub(crate) versions: Versions,
    /// Numbers of elements to come.
    pub(crate) reservations: Reservations,
    /// What is known of damage to its files.
    pub(crate) damage: DamageMark,
}

impl Published {
    /// Shows a root to readers.
    pub(crate) fn new(root: Arc<GraphRoot>) -> Published {
        let reservations = Reservations::default();
        reservations.pass(&root);
        Published { versions: Versions::new(root), reservations, damage: DamageMark::default() }
    }

    /// Shows the next root to readers; returns the roots that are not kept any more.
    pub(crate) fn publish(&self, root: Arc<GraphRoot>, now_ms: u64, retention: Retention) -> Vec<Arc<GraphRoot>> {
        self.reservations.pass(&root);
        self.versions.publish(root, now_ms, retention)
    }

    /// Notes an error that somebody met who read the graph, if it says that a file is damaged on which the newest state lies.
    pub(crate) fn note_damage(&self, error: &StoreError) {
        if let StoreError::Corrupt { file, .. } = error
            && self.versions.newest().files().iter().any(|name| **name == **file)
        {
            self.damage.note(error);
        }
    }
}

/// One named graph of a store.
pub struct Graph {
    pub(crate) number: u32,
    pub(crate) name: Arc<str>,
    pub(crate) published: Arc<Published>,
    pub(crate) queue: Arc<CommitQueue>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Changes one transaction may hold.
    pub(crate) changes_limit: usize,
}

impl Graph {
    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Starts a unit of work on what is committed now. Costs less than a microsecond. What it reads is recorded, so that
    /// its commit is refused if any of it has changed; who will not write begins with [`Graph::begin_reading`].
    pub fn begin(self: &Arc<Graph>) -> Transaction {
        // In this order: the snapshot is at least as new.
        let begun = self.queue.beginning();
        Transaction::writing(self.clone(), begun, self.snapshot())
    }

    /// As [`Graph::begin`], but writes are refused and reads are not recorded.
    pub fn begin_reading(self: &Arc<Graph>) -> Transaction {
        Transaction::reading(self.clone(), self.snapshot())
    }

    /// The damage that was found in the graph's files, if any was: nothing that is read from it is to be believed then, and commits to it are
    /// refused. Costs a load or two. A graph that is cleared is sound again.
    pub fn damage(&self) -> Option<StoreError> {
        self.published.damage.get()
    }

    /// All that is committed now.
    pub fn snapshot(&self) -> Snapshot {
        self.published.versions.snapshot()
    }

    /// Starts a unit of work that reads a state of the past.
    ///
    /// Errors: `OutsideRetention` if that state is not kept, see [`crate::StoreOptions::retention_ms`].
    pub fn begin_reading_as_of(self: &Arc<Graph>, as_of: AsOf) -> Result<Transaction, StoreError> {
        let snapshot = self.published.versions.snapshot_as_of(as_of, self.clock.epoch_millis())?;
        Ok(Transaction::reading(self.clone(), snapshot))
    }

    /// Starts a bulk load, which runs beside transactions.
    pub fn bulk(self: &Arc<Graph>) -> BulkLoader {
        BulkLoader::new(self.clone())
    }

    /// Starts a load that builds the whole graph and shows it at once; `None` if the graph has ever had an element, or has
    /// unique indexes or declared types that could refuse some; then [`Graph::bulk`] adds to it.
    pub fn load(self: &Arc<Graph>) -> Option<VertexLoad> {
        VertexLoad::new(self.clone())
    }

    /// Begins a base for this graph.
    pub(crate) fn base_builder(&self) -> BaseBuilder {
        let layout = self.published.versions.newest().layout;
        self.queue.base_builder(self.number, layout, self.queue.unique_number())
    }

    /// Fills the graph, which has no elements, with a base that was made for it. Its labels and keys begin with those that the
    /// graph has; its numbers are not below the graph's next ones.
    ///
    /// Errors: `GraphNotEmpty`; `Conflict` if a label or key came in meanwhile.
    pub(crate) fn attach(
        &self,
        base: Base,
        labels: Vec<Arc<str>>,
        keys: Vec<Arc<str>>,
        next_ids: NextIds,
        fact: Option<Fact>,
    ) -> Result<CommitTs, StoreError> {
        let files = base.files.names.clone();
        let opened = OpenedBase(Some(Arc::new(base)));
        let attach = AttachBase { graph: self.number, files, labels, keys, next_ids, opened };
        self.queue.commit_with_facts(Body::AttachBase(attach), fact.into_iter().collect())
    }

    /// What a bulk load noted under a name together with its last batch that was applied, see [`BulkLoader::send_noting`].
    pub fn noted(&self, name: &str) -> Result<Option<Arc<[u8]>>, StoreError> {
        let (number, name) = (self.number, Arc::<str>::from(name));
        self.queue.inspect(move |committer| committer.state.graphs.get(&number)?.facts.get(&name).cloned())
    }

    /// Number of vertices.
    pub fn vertex_count(&self) -> u64 {
        self.published.versions.newest().vertex_count
    }

    /// Number of edges.
    pub fn edge_count(&self) -> u64 {
        self.published.versions.newest().edge_count
    }

    /// Removes all vertices and edges at once; keeps indexes, labels and keys.
    pub fn clear(&self) -> Result<(), StoreError> {
        // Its memory is given back here and not on the commit thread.
        let _before = self.snapshot();
        self.queue.commit(Body::ClearGraph { graph: self.number }).map(|_| ())
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph").field("name", &self.name).finish_non_exhaustive()
    }
}
