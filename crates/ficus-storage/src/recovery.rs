//! From what is on the disk to the state that was acknowledged: the newest valid checkpoint, then the log behind it.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::archive::refuse_marked;
use crate::base::is_base_file;
use crate::checkpoint::{
    CheckpointReport, UNFINISHED_SUFFIX, file_name, list_checkpoints, load_checkpoint, load_what_is_sound,
};
use crate::committer::State;
use crate::environment::Disk;
use crate::log::{FileLog, FoundLog, LogPosition, SPARE_NAME, decode_record, record_time_ms};
use crate::shortage::ROOM_NAME;
use crate::{ErrorKind, StoreError};

/// What a start began with.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Recovery {
    /// The file of the checkpoint; `None` if the log was read from its beginning.
    pub checkpoint: Option<String>,
    /// What is wrong with newer checkpoints, newest first. Nothing is lost by that, since the log reaches from the one that was used, but they are to be
    /// replaced by the next one, and a disk that has damaged one file may damage others.
    pub passed_over: Vec<StoreError>,
}

/// What was found on a disk.
pub(crate) struct Recovered {
    pub(crate) state: State,
    pub(crate) log: FileLog,
    pub(crate) recovery: Recovery,
    /// Length of the checkpoint that was used.
    pub(crate) checkpoint_bytes: u64,
    /// Its position; 0 if there is none.
    pub(crate) checkpoint: LogPosition,
    /// The time of the newest record that was read; 0 if none was.
    pub(crate) time_ms: u64,
}

/// Restores the state on `disk`, which must be locked. `new_store` numbers a store that begins here.
///
/// Files are changed when all was read and found good, and not before: who is refused must find everything as it was, at the next start too.
pub(crate) fn recover(
    disk: &Arc<dyn Disk>,
    new_store: u64,
    segment_bytes: u64,
    weaken_resolver: bool,
    is_archived: bool,
) -> Result<Recovered, StoreError> {
    let restored = restore(disk, weaken_resolver)?;
    let Restored { mut state, log, recovery, checkpoint_bytes, checkpoint, time_ms } = restored;
    remove_unfinished(disk.as_ref())?;
    let log = FileLog::open(disk.clone(), log, new_store, segment_bytes)?;
    remove_unreferenced(disk.as_ref(), &mut state, is_archived)?;
    Ok(Recovered { state, log, recovery, checkpoint_bytes, checkpoint, time_ms })
}

/// The state on `disk`, which must be locked or read-only, without changing anything there.
pub(crate) fn restore_to_read(disk: &Arc<dyn Disk>) -> Result<State, StoreError> {
    Ok(restore(disk, false)?.state)
}

/// As [`Recovered`], before anything was changed.
struct Restored {
    state: State,
    log: FoundLog,
    recovery: Recovery,
    checkpoint_bytes: u64,
    checkpoint: LogPosition,
    time_ms: u64,
}

fn restore(disk: &Arc<dyn Disk>, weaken_resolver: bool) -> Result<Restored, StoreError> {
    refuse_marked(disk.as_ref())?;
    let found = FoundCheckpoint::newest(disk.as_ref())?;
    let log = FoundLog::look(disk.as_ref(), found.store())?;
    let (mut state, checkpoint, checkpoint_bytes, recovery) = found.begin(disk, &log)?;
    if weaken_resolver {
        state.resolver.ignore_reads();
    }
    let mut time_ms = 0;
    log.read_from(disk.as_ref(), LogPosition(checkpoint.0 + 1), &mut |position, bytes| {
        time_ms = record_time_ms(bytes).unwrap_or(0).max(time_ms);
        replay(&mut state, position, bytes)
    })?;
    Ok(Restored { state, log, recovery, checkpoint_bytes, checkpoint, time_ms })
}

/// The newest checkpoint that is whole, if there is one.
struct FoundCheckpoint {
    loaded: Option<(State, CheckpointReport)>,
    /// The newest of all.
    newest: Option<LogPosition>,
    /// Those that are newer than the one that is whole, newest first, and why they are not.
    damaged: Vec<(LogPosition, StoreError)>,
}

impl FoundCheckpoint {
    fn newest(disk: &dyn Disk) -> Result<FoundCheckpoint, StoreError> {
        let positions = list_checkpoints(disk)?;
        let mut found = FoundCheckpoint { loaded: None, newest: positions.first().copied(), damaged: Vec::new() };
        for position in positions {
            match load_checkpoint(disk, position) {
                Ok(loaded) => {
                    found.loaded = Some(loaded);
                    break;
                }
                // An older checkpoint or the log itself may still have everything.
                Err(error @ StoreError::Corrupt { .. }) => found.damaged.push((position, error)),
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// The number of the store, if there is a checkpoint to tell it.
    fn store(&self) -> Option<u64> {
        self.loaded.as_ref().map(|(_, report)| report.store)
    }

    /// The state in front of the log, with the position and length of its checkpoint.
    fn begin(self, disk: &Arc<dyn Disk>, log: &FoundLog) -> Result<(State, LogPosition, u64, Recovery), StoreError> {
        let FoundCheckpoint { mut loaded, newest, mut damaged } = self;
        let reaches = |position: LogPosition| check_reach(log.report.start, log.report.tail, position);
        let begins = loaded.as_ref().map_or(LogPosition(0), |(_, report)| LogPosition(report.position));
        if let (Err(gap), Some(newest)) = (reaches(begins), newest) {
            // Nothing has all. If it is files of graphs that are damaged, the other graphs are whole.
            let sound = load_what_is_sound(disk.as_ref(), newest).ok();
            let sound = sound.filter(|(_, found)| Some(found.store) == log.store && reaches(newest).is_ok());
            loaded = Some(sound.ok_or_else(|| damaged.first().map_or(gap, |(_, damage)| damage.clone()))?);
        }
        let (mut state, checkpoint, checkpoint_bytes) = match loaded {
            Some((state, report)) => (state, LogPosition(report.position), report.bytes),
            None => (State::default(), LogPosition(0), 0),
        };
        state.disk = Some(disk.clone());
        reaches(checkpoint)?;
        // The log was flushed up to a checkpoint before it was written, which its name still tells.
        let tail = log.report.tail;
        if let Some(newest) = newest.filter(|newest| *newest >= tail) {
            let what = format!(
                "it ends at position {}, but there was a checkpoint of {}, which is damaged; a log file is missing",
                tail.0, newest.0
            );
            return Err(StoreError::corrupt("the commit log", 0, what));
        }
        damaged.retain(|(position, _)| *position > checkpoint);
        let recovery = Recovery {
            checkpoint: Some(checkpoint).filter(|position| *position > LogPosition(0)).map(file_name),
            passed_over: damaged.into_iter().map(|(_, damage)| damage).collect(),
        };
        Ok((state, checkpoint, checkpoint_bytes, recovery))
    }
}

/// The log has to reach from the checkpoint, or from the beginning, without a gap.
pub(crate) fn check_reach(start: LogPosition, tail: LogPosition, checkpoint: LogPosition) -> Result<(), StoreError> {
    if start <= checkpoint && (tail > checkpoint || checkpoint == LogPosition(0)) {
        return Ok(());
    }
    let what = format!(
        "it holds positions {} to {}, but must go on from {}; a log file or a checkpoint is missing",
        start.0, tail.0, checkpoint.0
    );
    Err(StoreError::corrupt("the commit log", 0, what))
}

/// Applies a record that was read back. A record that aborted aborts again, for the same reason.
pub(crate) fn replay(state: &mut State, position: LogPosition, bytes: &[u8]) -> Result<(), StoreError> {
    let record = decode_record(bytes).map_err(|what| {
        StoreError::corrupt("the commit log", position.0, format!("the record at this log position: {what}"))
    })?;
    match state.apply(record, position) {
        // A file that the record names, or that it changes something of, is damaged: its graph is lost, and the others go on.
        Err(StoreError::Corrupt { .. }) if state.lost().is_some() => Ok(()),
        Err(error) if matches!(error.kind(), ErrorKind::World | ErrorKind::Corrupt) => Err(error),
        _ => Ok(()),
    }
}

/// Removes files of bases that were built and never taken over, or that were superseded before the newest checkpoint. An archive may still want
/// the latter: then the next checkpoint removes them, when it has them.
fn remove_unreferenced(disk: &dyn Disk, state: &mut State, is_archived: bool) -> Result<(), StoreError> {
    if state.lost().is_some() {
        // Files of a graph that was not restored may be all there is of it.
        return Ok(());
    }
    let mut referenced: BTreeSet<Arc<str>> = state.graphs.values().flat_map(|graph| graph.root.files()).collect();
    // The checkpoint still names these.
    referenced.extend(state.retired_files.iter().cloned());
    let names = disk.list().map_err(|error| StoreError::io(format!("listing {}", disk.location()), error))?;
    let is_left = |name: &&String| is_base_file(name) && !referenced.contains(name.as_str());
    let left: Vec<Arc<str>> = names.iter().filter(is_left).map(|name| Arc::from(name.as_str())).collect();
    if is_archived {
        state.retired_files.extend(left);
        return Ok(());
    }
    left.iter()
        .try_for_each(|name| disk.remove(name).map_err(|error| StoreError::io(format!("removing {name}"), error)))
}

fn remove_unfinished(disk: &dyn Disk) -> Result<(), StoreError> {
    let names = disk.list().map_err(|error| StoreError::io(format!("listing {}", disk.location()), error))?;
    let is_unfinished = |name: &str| name.starts_with("checkpoint-") && name.ends_with(UNFINISHED_SUFFIX);
    for name in names.iter().filter(|name| is_unfinished(name) || [SPARE_NAME, ROOM_NAME].contains(&name.as_str())) {
        disk.remove(name).map_err(|error| StoreError::io(format!("removing {name}"), error))?;
    }
    Ok(())
}
