//! Moves what the overlay of a graph holds into a new base, while readers and writers go on.
//!
//! The next base is built from a snapshot. Meanwhile the writes that commit to the graph are kept and applied once more to the new base. That is what a
//! restart does with a checkpoint and the log, and nothing in it depends on how pages were shared. Whatever else happens to the graph meanwhile
//! (it is cleared, a new index or type brings new words) cancels the consolidation; the next trigger begins another.
//!
//! ```text
//! build ─▶ rounds, here: apply what was kept ─▶ catch up, between groups of commits ─▶ take over
//!          while each is much shorter             twice what the group had
//! ```
//! An index that was built since the base was made has all its entries in pages, and a start would have to make them anew. That is reason enough to go
//! the same way with the base as it is, and to build the files of such indexes only.
//!
//! Whoever commits is not held up: behind a group of commits at most so much is applied as to catch up before long, and when nothing is left the new
//! root takes the place of the old one.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::apply::apply_write;
use crate::base::build_base;
use crate::commit_queue::CommitQueue;
use crate::committer::{CommittedGraph, Committer, State, retire_lost};
use crate::damage_mark::or_damage;
use crate::index::build_index_files;
use crate::mutation::GraphWrite;
use crate::root::GraphRoot;
use crate::string_pool::StringPool;
use crate::{CommitTs, StoreError};

/// Mutations of a round after which catching up begins.
const LAST_ROUND: u64 = 256;

/// Mutations that are applied between two groups of commits, besides twice those of the group.
const CATCH_UP_STEP: u64 = 64;

/// How long to leave the commits alone between two steps.
const CATCH_UP_PAUSE: Duration = Duration::from_millis(1);

/// Changes an overlay may hold before it is consolidated, whatever the size of the base.
const OVERLAY_CHANGES_MINIMUM: u64 = 1 << 16;

/// A write that was committed while a consolidation was under way.
pub(crate) type KeptWrite = (GraphWrite, CommitTs);

/// The writes that a consolidation has still to apply.
#[derive(Debug, Default)]
pub(crate) struct KeptWrites {
    writes: VecDeque<KeptWrite>,
    /// The graph on its new files, without these writes, once they are applied between groups of commits.
    next: Option<Rebased>,
    /// Mutations kept since the last step of catching up.
    behind: u64,
}

/// A state of a graph on new files.
#[derive(Debug)]
struct Rebased {
    root: GraphRoot,
    /// The files that were made for it.
    files: Vec<Arc<str>>,
}

impl KeptWrites {
    /// Keeps a write that is about to be applied.
    pub(crate) fn keep(&mut self, write: &GraphWrite, ts: CommitTs) {
        self.behind += weight(write);
        self.writes.push_back((write.clone(), ts));
    }

    /// Ends the consolidation, if one is under way: its files are of no use to anybody.
    pub(crate) fn cancel(kept: &mut Option<KeptWrites>, retired_files: &mut Vec<Arc<str>>) {
        if let Some(next) = kept.take().and_then(|kept| kept.next) {
            retired_files.extend(next.files);
        }
    }
}

/// What applying a write costs, in mutations.
fn weight(write: &GraphWrite) -> u64 {
    write.mutations.len().max(1) as u64
}

/// True if it is time to consolidate: a new base is wanted, or files of indexes are.
pub(crate) fn is_due(root: &GraphRoot) -> bool {
    wants_base(root, false) || root.has_unstored_index()
}

/// True if the overlay has an eighth of what the base has, or anything where `all` is to go into the base, or if half-edges are to be sorted.
fn wants_base(root: &GraphRoot, all: bool) -> bool {
    let base = root.base().map_or(0, |base| base.elements());
    let limit = if all { 1 } else { base.div_ceil(8).saturating_add(OVERLAY_CHANGES_MINIMUM) };
    root.overlay_changes() >= limit || root.has_unsorted_base()
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
            let due = |root: &GraphRoot| wants_base(root, all) || root.has_unstored_index();
            let graphs = committer.state.graphs.iter().filter(|(_, graph)| graph.is_sound() && due(&graph.root));
            graphs.map(|(number, _)| *number).collect::<Vec<u32>>()
        })?;
        wanted.into_iter().try_for_each(|graph| self.run_graph(graph, all))
    }

    fn run_graph(&self, number: u32, all: bool) -> Result<(), StoreError> {
        match self.build(number, all)? {
            Some(next) => self.take_over(number, next),
            None => Ok(()),
        }
    }

    /// Puts all that a graph has now into a new base, or only indexes into files; writes are kept from now on. `None` if there is no such graph.
    fn build(&self, number: u32, all: bool) -> Result<Option<Rebased>, StoreError> {
        let begun = self.queue.inspect(move |committer| begin(committer, number))?;
        let Some(root) = begun else { return Ok(None) };
        // Not the commit that it holds: a consolidation that was cancelled has left files of the same one.
        let generation = self.queue.unique_number();
        let builder = self.queue.gentle_base_builder(number, root.layout, generation);
        let build = || match wants_base(&root, all) {
            true => build_base(&root, builder),
            false => build_index_files(&root, &builder),
        };
        let built = or_damage(catch_unwind(AssertUnwindSafe(build)), &root);
        let next = match built {
            Ok(next) => next,
            Err(error) => {
                let found = error.clone();
                self.queue.inspect(move |committer| end(committer, number, &found))?;
                return Err(error);
            }
        };
        let before = root.files();
        let mut files = next.files();
        files.retain(|name| !before.contains(name));
        Ok(Some(Rebased { root: next, files }))
    }

    /// Applies what was kept to a root on its new base, which then takes the place of the graph's.
    fn take_over(&self, number: u32, mut next: Rebased) -> Result<(), StoreError> {
        let mut before = u64::MAX;
        loop {
            let Some(kept) = self.queue.inspect(move |committer| take_kept(committer, number))? else { break };
            let length = kept.iter().map(|(write, _)| weight(write)).sum();
            apply_kept(&mut next.root, kept);
            // Writers may be as fast as these rounds.
            if length <= LAST_ROUND || length > before / 2 {
                break;
            }
            before = length;
        }
        self.queue.inspect(move |committer| hand_over(committer, number, next))?;
        while self.queue.inspect(move |committer| committer.catch_up(number))? {
            std::thread::sleep(CATCH_UP_PAUSE);
        }
        Ok(())
    }
}

fn begin(committer: &mut Committer, number: u32) -> Option<Arc<GraphRoot>> {
    let graph = committer.state.graphs.get_mut(&number)?;
    graph.kept = Some(KeptWrites::default());
    Some(graph.root.clone())
}

/// Ends a consolidation that failed.
fn end(committer: &mut Committer, number: u32, error: &StoreError) {
    if let Some(graph) = committer.state.graphs.get_mut(&number) {
        graph.kept = None;
        graph.published.note_damage(error);
    }
}

fn take_kept(committer: &mut Committer, number: u32) -> Option<VecDeque<KeptWrite>> {
    let kept = committer.state.graphs.get_mut(&number)?.kept.as_mut()?;
    kept.behind = 0;
    Some(std::mem::take(&mut kept.writes))
}

fn apply_kept(root: &mut GraphRoot, kept: VecDeque<KeptWrite>) {
    let mut strings = StringPool::default();
    for (write, ts) in kept {
        apply_write(write, root, &mut strings);
        root.commit_ts = ts;
    }
}

fn hand_over(committer: &mut Committer, number: u32, next: Rebased) {
    let graph = committer.state.graphs.get_mut(&number);
    match graph.and_then(|graph| graph.kept.as_mut()) {
        Some(kept) => kept.next = Some(next),
        None => committer.state.retired_files.extend(next.files),
    }
}

impl Committer {
    /// Does a step of catching up for every graph that has a new base.
    pub(crate) fn catch_up_all(&mut self) {
        let is_ready = |graph: &CommittedGraph| graph.kept.as_ref().is_some_and(|kept| kept.next.is_some());
        let ready: Vec<u32> =
            self.state.graphs.iter().filter(|(_, graph)| is_ready(graph)).map(|(number, _)| *number).collect();
        for number in ready {
            self.catch_up(number);
        }
    }

    /// Applies some of the kept writes to the new base of a graph, which takes over when none is left. True if some are.
    fn catch_up(&mut self, number: u32) -> bool {
        let State { graphs, strings, retired_files, has_new_indexes, .. } = &mut self.state;
        let Some(graph) = graphs.get_mut(&number) else { return false };
        let Some(KeptWrites { writes, next: Some(next), behind }) = &mut graph.kept else { return false };
        let budget = std::mem::take(behind) * 2 + CATCH_UP_STEP;
        let mut applied = 0;
        while applied < budget
            && let Some((write, ts)) = writes.pop_front()
        {
            applied += weight(&write);
            apply_write(write, &mut next.root, strings);
            next.root.commit_ts = ts;
        }
        if !writes.is_empty() {
            return true;
        }
        let Some(Rebased { root: mut next, .. }) = graph.kept.take().and_then(|kept| kept.next) else { return false };
        assert_eq!(next.commit_ts, graph.root.commit_ts, "all writes since the snapshot were kept");
        retire_lost(&graph.root.files(), &next, retired_files);
        *has_new_indexes |= graph.root.has_unstored_index();
        next.schema = graph.root.schema.clone();
        next.refresh_sorted();
        let old = std::mem::replace(&mut graph.root, Arc::new(next));
        if !Arc::ptr_eq(&old, &graph.published.versions.newest()) {
            // Nobody was shown it, so publishing the next one does not see it off.
            self.farewell.add(vec![old], &graph.root);
        }
        graph.unpublished += 1;
        self.publish(true);
        false
    }
}

#[cfg(test)]
mod tests {
    use ficus_model::{Cardinality, Value};

    use super::*;
    use crate::environment::Disk;
    use crate::simulated_disk::SimulatedDisk;
    use crate::{Store, StoreOptions};

    #[test]
    fn a_cancelled_consolidation_leaves_no_files_and_can_be_done_again() {
        for is_handed_over in [false, true] {
            let disk = SimulatedDisk::new();
            let store = Store::open(StoreOptions::default(), disk.environment()).unwrap();
            let graph = store.create_graph("a").unwrap();
            let mut transaction = graph.begin();
            transaction.add_vertex("person", Some(Value::Long(1))).unwrap();
            transaction.commit().unwrap();
            let consolidation = Consolidation { queue: &graph.queue };
            let next = consolidation.build(graph.number, true).unwrap().unwrap();
            let number = graph.number;
            if is_handed_over {
                graph.queue.inspect(move |committer| hand_over(committer, number, next)).unwrap();
                store.create_graph("b").unwrap();
            } else {
                store.create_graph("b").unwrap();
                consolidation.take_over(number, next).unwrap();
            }
            assert!(graph.snapshot().root.base().is_none(), "another graph cancels it");
            store.consolidate().unwrap();
            let files = graph.snapshot().root.base().unwrap().files.names.len();
            let mut names = disk.list().unwrap();
            names.retain(|name| crate::base::is_base_file(name));
            assert_eq!(names.len(), files, "{names:?}");
        }
    }

    #[test]
    fn files_of_indexes_are_built_beside_writes() {
        for is_cancelled in [false, true] {
            let disk = SimulatedDisk::new();
            let store = Store::open(StoreOptions::default(), disk.environment()).unwrap();
            let graph = store.create_graph("a").unwrap();
            let write = |first: i64| {
                let mut transaction = graph.begin();
                for number in first..first + 5 {
                    let vertex = transaction.add_vertex("v", Some(Value::Long(number))).unwrap();
                    transaction
                        .set_vertex_property(vertex, "k", Value::Long(number % 3), Cardinality::Single, None)
                        .unwrap();
                }
                if let Some(vertex) = transaction.find_vertex(&Value::Long(1)).filter(|_| first > 0) {
                    transaction.set_vertex_property(vertex, "k", Value::Long(9), Cardinality::Single, None).unwrap();
                }
                transaction.commit().unwrap();
            };
            write(0);
            store.consolidate().unwrap();
            let base = graph.snapshot().root.base().cloned().unwrap();
            graph.create_index(None, "k").unwrap();
            write(10);
            let consolidation = Consolidation { queue: &graph.queue };
            let next = consolidation.build(graph.number, false).unwrap().unwrap();
            assert_eq!(next.files.len(), 1, "of the index, and none of a base");
            write(20);
            if is_cancelled {
                store.create_graph("b").unwrap();
            }
            consolidation.take_over(graph.number, next).unwrap();
            assert_eq!(graph.snapshot().root.has_unstored_index(), is_cancelled);
            graph.snapshot().check_invariants().unwrap();
            write(30);
            store.checkpoint().unwrap();
            let root = graph.snapshot().root.clone();
            assert!(!root.has_unstored_index() && Arc::ptr_eq(root.base().unwrap(), &base));
            graph.snapshot().check_invariants().unwrap();
            let names = disk.list().unwrap();
            assert_eq!(names.iter().filter(|name| name.starts_with("index-")).count(), 1, "{names:?}");
        }
    }
}
