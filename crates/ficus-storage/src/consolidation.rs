//! Moves what the overlay of a graph holds into a new base, while readers and writers go on.
//!
//! The next base is built from a snapshot. Meanwhile the commit thread keeps the writes it commits to the graph; they are applied
//! once more to the new base, in rounds that get shorter, the last of them on the commit thread itself. That is what a restart does with a checkpoint and
//! the log, and nothing in it depends on how pages were shared. Whatever else happens to the graph meanwhile (it is cleared, a new
//! index or type brings new words) cancels the consolidation; the next trigger begins another.

use std::sync::Arc;

use crate::apply::apply_write;
use crate::base::build_base;
use crate::commit_queue::CommitQueue;
use crate::committer::Committer;
use crate::mutation::GraphWrite;
use crate::root::GraphRoot;
use crate::string_pool::StringPool;
use crate::{CommitTs, StoreError};

/// Writes that may be left for the commit thread to apply at the takeover.
const LAST_ROUND_WRITES: usize = 64;

/// Rounds after which the takeover happens whatever is left: writers that are faster than a round would go on for ever.
const ROUNDS_LIMIT: usize = 16;

/// Changes an overlay may hold before it is consolidated, whatever the size of the base.
const OVERLAY_CHANGES_MINIMUM: u64 = 1 << 16;

/// A write that was committed while a consolidation was under way.
pub(crate) type KeptWrite = (GraphWrite, CommitTs);

/// The writes that a consolidation has still to apply.
#[derive(Debug, Default)]
pub(crate) struct KeptWrites {
    writes: Vec<KeptWrite>,
}

impl KeptWrites {
    /// Keeps a write that is about to be applied.
    pub(crate) fn keep(&mut self, write: &GraphWrite, ts: CommitTs) {
        self.writes.push((write.clone(), ts));
    }
}

/// True if it is time to consolidate: the overlay has an eighth of what the base has.
pub(crate) fn is_due(root: &GraphRoot) -> bool {
    let base = root.base().map_or(0, |base| base.elements());
    root.overlay_changes() >= base.div_ceil(8).saturating_add(OVERLAY_CHANGES_MINIMUM)
}

/// Where consolidation does its work.
pub(crate) struct Consolidation<'a> {
    /// The queue of the store.
    pub(crate) queue: &'a CommitQueue,
}

impl Consolidation<'_> {
    /// Consolidates the graphs whose overlay is large enough, or all that have one.
    pub(crate) fn run(&self, all: bool) -> Result<(), StoreError> {
        let wanted = self.queue.inspect(move |committer| {
            let due = |root: &GraphRoot| if all { root.overlay_changes() > 0 } else { is_due(root) };
            let graphs = committer.state.graphs.iter().filter(|(_, graph)| due(&graph.root));
            graphs.map(|(number, _)| *number).collect::<Vec<u32>>()
        })?;
        wanted.into_iter().try_for_each(|graph| self.run_graph(graph))
    }

    fn run_graph(&self, number: u32) -> Result<(), StoreError> {
        let begun = self.queue.inspect(move |committer| begin(committer, number))?;
        let Some(root) = begun else { return Ok(()) };
        let base = match build_base(&root, self.queue.base_builder(number, root.layout, root.commit_ts.0)) {
            Ok(base) => Arc::new(base),
            Err(error) => {
                self.queue.inspect(move |committer| end(committer, number))?;
                return Err(error);
            }
        };
        let mut next = root.on_base(base);
        // They are the same on any base: the newest ones are taken over.
        next.indexes = Arc::default();
        drop(root);
        for _ in 0..ROUNDS_LIMIT {
            let kept = self.queue.inspect(move |committer| take_kept(committer, number))?;
            let Some(kept) = kept else { return Ok(()) };
            let is_last = kept.len() <= LAST_ROUND_WRITES;
            apply_kept(&mut next, kept);
            if is_last {
                break;
            }
        }
        self.queue.inspect(move |committer| take_over(committer, number, next))
    }
}

fn begin(committer: &mut Committer, number: u32) -> Option<Arc<GraphRoot>> {
    let graph = committer.state.graphs.get_mut(&number)?;
    graph.kept = Some(KeptWrites::default());
    Some(graph.root.clone())
}

fn end(committer: &mut Committer, number: u32) {
    if let Some(graph) = committer.state.graphs.get_mut(&number) {
        graph.kept = None;
    }
}

fn take_kept(committer: &mut Committer, number: u32) -> Option<Vec<KeptWrite>> {
    let kept = committer.state.graphs.get_mut(&number)?.kept.as_mut()?;
    Some(std::mem::take(&mut kept.writes))
}

fn apply_kept(root: &mut GraphRoot, kept: Vec<KeptWrite>) {
    let mut strings = StringPool::default();
    for (write, ts) in kept {
        apply_write(write, root, &mut strings);
        root.commit_ts = ts;
    }
}

/// Makes the new root the current one.
fn take_over(committer: &mut Committer, number: u32, mut next: GraphRoot) {
    let state = &mut committer.state;
    let Some(graph) = state.graphs.get_mut(&number) else { return };
    let Some(kept) = graph.kept.take() else { return };
    apply_kept(&mut next, kept.writes);
    assert_eq!(next.commit_ts, graph.root.commit_ts, "all writes since the snapshot were kept");
    if let Some(old) = graph.root.base() {
        state.retired_files.extend(old.files.names.iter().cloned());
    }
    next.indexes = graph.root.indexes.clone();
    next.schema = graph.root.schema.clone();
    let old = std::mem::replace(&mut graph.root, Arc::new(next));
    if !Arc::ptr_eq(&old, &graph.published.versions.newest()) {
        // Nobody was shown it, so publishing the next one does not see it off.
        committer.farewell.add(vec![old], &graph.root);
    }
    graph.unpublished += 1;
    committer.publish(true);
}
