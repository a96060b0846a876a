//! Checkpoints: the whole state at one log position in one file, from which a restart needs only the log's tail.
//!
//! ```text
//! header   "FICUSCKP" | version u32 | crc u32 | store u64 | position u64                   32 bytes
//! block    length u32 | crc u32 | kind u8 | content                                        8 + length bytes
//! ```
//! A file is made under a name that no reader looks for, flushed, read back and verified, and only then renamed to
//! `checkpoint-<position>.ficus`. The last block says how many blocks, vertices and edges there are, so a file that was cut
//! between two blocks is known to be incomplete.

mod block;
mod reader;
mod writer;

use std::sync::Arc;

use crate::StoreError;
use crate::committer::Committer;
use crate::environment::Disk;
use crate::log::LogPosition;
use crate::mutation::Fact;
use crate::resolver::ResolverState;
use crate::root::GraphRoot;

pub(crate) use block::checkpoint_header;
pub(crate) use reader::{CheckpointReport, check_checkpoint, checkpoint_files, load_checkpoint, load_what_is_sound};
pub(crate) use writer::write_checkpoint;

/// All that a checkpoint holds, at one log position.
pub(crate) struct CheckpointView {
    /// The newest applied record.
    pub(crate) position: LogPosition,
    pub(crate) store: u64,
    pub(crate) next_graph: u32,
    pub(crate) epoch: u64,
    /// Writers with the last sequence applied of each.
    pub(crate) writers: Vec<(u64, u64)>,
    pub(crate) resolver: ResolverState,
    pub(crate) graphs: Vec<(u32, Arc<str>, Arc<GraphRoot>)>,
    /// Facts of each graph, in the order of graphs.
    pub(crate) facts: Vec<Vec<Fact>>,
    /// Files that nothing names any more once this checkpoint stands.
    pub(crate) retired_files: Vec<Arc<str>>,
    /// There are files of indexes that the last checkpoint does not name, though nothing else may have changed since.
    pub(crate) has_new_indexes: bool,
}

impl CheckpointView {
    /// Takes the view between two groups of commits. Flushes the log first: a checkpoint must not know more than it.
    pub(crate) fn take(committer: &mut Committer, store: u64) -> Result<CheckpointView, StoreError> {
        if let Some(log) = &mut committer.log {
            log.barrier()?;
        }
        let retired_files = std::mem::take(&mut committer.state.retired_files);
        let has_new_indexes = std::mem::take(&mut committer.state.has_new_indexes);
        let resolver = committer.state.resolver.state();
        let state = &committer.state;
        let graphs = state.graphs.iter().map(|(number, graph)| (*number, graph.name.clone(), graph.root.clone()));
        let facts = state
            .graphs
            .values()
            .map(|graph| graph.facts.iter().map(|(name, content)| (name.clone(), content.clone())).collect());
        let facts = facts.collect();
        Ok(CheckpointView {
            position: LogPosition(state.last_ts.0),
            store,
            next_graph: state.next_graph,
            epoch: state.epoch,
            writers: state.writers.iter().map(|(writer, sequence)| (*writer, *sequence)).collect(),
            resolver,
            graphs: graphs.collect(),
            facts,
            retired_files,
            has_new_indexes,
        })
    }
}

/// The file of the checkpoint at a position.
pub(crate) fn file_name(position: LogPosition) -> String {
    format!("checkpoint-{:016x}.ficus", position.0)
}

/// Marks a checkpoint that is being written; such files are removed at start.
pub(crate) const UNFINISHED_SUFFIX: &str = ".unfinished";

fn position_of(name: &str) -> Option<LogPosition> {
    let digits = name.strip_prefix("checkpoint-")?.strip_suffix(".ficus")?;
    if digits.len() == 16 { u64::from_str_radix(digits, 16).ok().map(LogPosition) } else { None }
}

/// Positions of all finished checkpoints, newest first.
pub(crate) fn list_checkpoints(disk: &dyn Disk) -> Result<Vec<LogPosition>, StoreError> {
    let names = disk.list().map_err(|error| StoreError::io(format!("listing {}", disk.location()), error))?;
    let mut positions: Vec<LogPosition> = names.iter().filter_map(|name| position_of(name)).collect();
    positions.sort_unstable_by(|a, b| b.cmp(a));
    Ok(positions)
}
