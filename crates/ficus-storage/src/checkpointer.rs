//! Takes checkpoints while readers and writers go on, and forgets the log behind them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::StoreError;
use crate::archive::Archiver;
use crate::checkpoint::{CheckpointView, file_name, list_checkpoints, write_checkpoint};
use crate::commit_queue::CommitQueue;
use crate::committer::Committer;
use crate::consolidation::Consolidation;
use crate::environment::Disk;
use crate::log::{LogPosition, Spare};

/// Takes the checkpoints of one store, one at a time.
pub(crate) struct Checkpointer {
    disk: Arc<dyn Disk>,
    store: u64,
    /// Position of the newest checkpoint. Held while one is taken; rank: before all locks of the commit queue.
    newest: Mutex<LogPosition>,
    /// Why the last checkpoint failed.
    failure: Mutex<Option<StoreError>>,
    /// What has to have the log and the files before they are removed here.
    archiver: Option<Arc<Archiver>>,
    /// Files that no checkpoint names any more, and that are still there. Held while they are removed; rank: after `newest`.
    retired: Mutex<Vec<Arc<str>>>,
    /// Files of the log that nobody needs any more, oldest first. As `retired`.
    trimmed: Mutex<VecDeque<String>>,
    /// What may use such a file again.
    spare: Arc<Spare>,
}

impl Checkpointer {
    /// For a store whose newest checkpoint stands at `newest`. `disk` is one for work that nobody waits for.
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        store: u64,
        newest: LogPosition,
        archiver: Option<Arc<Archiver>>,
        spare: Arc<Spare>,
    ) -> Checkpointer {
        let (failure, retired, trimmed) = Default::default();
        Checkpointer { disk, store, newest: Mutex::new(newest), failure, archiver, retired, trimmed, spare }
    }

    /// What makes files of the log ahead.
    pub(crate) fn spare(&self) -> &Arc<Spare> {
        &self.spare
    }

    /// What keeps the archive, if there is one.
    pub(crate) fn archiver(&self) -> Option<&Arc<Archiver>> {
        self.archiver.as_ref()
    }

    /// Takes a checkpoint of what is committed now, unless nothing was since the last one.
    pub(crate) fn run(&self, queue: &CommitQueue) -> Result<(), StoreError> {
        self.run_if(queue, |_, _| true)
    }

    /// Consolidates what is due, and takes a checkpoint if the log has become long enough.
    pub(crate) fn run_due(&self, queue: &CommitQueue) -> Result<(), StoreError> {
        self.run_if(queue, |committer, newest| {
            committer.checkpoints.is_worth_it(newest, LogPosition(committer.state.last_ts.0))
        })
    }

    fn run_if(
        &self,
        queue: &CommitQueue,
        is_wanted: impl FnOnce(&Committer, LogPosition) -> bool + Send + 'static,
    ) -> Result<(), StoreError> {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let store = self.store;
        let consolidation = Consolidation { queue };
        // A checkpoint is possible without; then it is only longer.
        let consolidated = consolidation.run(false);
        queue
            .inspect(|committer| committer.state.lost().cloned())?
            .map_or(Ok(()), Err)
            .inspect_err(|error| self.note(error))?;
        let last = *newest;
        let view = queue.inspect(move |committer| {
            let is_wanted = committer.state.has_new_indexes || is_wanted(committer, last);
            is_wanted.then(|| CheckpointView::take(committer, store)).transpose()
        });
        let view = view?.inspect_err(|error| queue.poison(error.to_string()))?;
        let outcome = match view {
            Some(view) => self.replace(queue, view, &mut newest),
            None => Ok(()),
        };
        let outcome = outcome.and(consolidated).map_err(StoreError::of_checkpoint);
        // After a failure the next try comes when the log has grown, not with the next commit.
        let outcome = outcome.and_then(|()| queue.inspect(|committer| committer.checkpoints.asked = false));
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = outcome.clone().err();
        outcome
    }

    fn note(&self, failure: &StoreError) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure.clone());
    }

    /// Writes a checkpoint and forgets what it replaces.
    fn replace(&self, queue: &CommitQueue, view: CheckpointView, newest: &mut LogPosition) -> Result<(), StoreError> {
        let written = match self.write(&view, newest) {
            // It gives room itself: the log behind it goes.
            Err(StoreError::DiskFull { .. }) if self.spare.give_up() => self.write(&view, newest)?,
            outcome => outcome?,
        };
        let position = view.position;
        // Pages that only the view holds go before the log is trimmed.
        drop(view);
        let Some(bytes) = written else { return Ok(()) };
        let trimmed = queue.inspect(move |committer| trim(committer, position, bytes))?;
        self.remove_trimmed(trimmed)
    }

    /// Takes a checkpoint of a store that is closing.
    pub(crate) fn run_last(&self, committer: &mut Committer) -> Result<(), StoreError> {
        if committer.state.lost().is_some() {
            // The log and the files have what the state has not.
            return Ok(());
        }
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let view = CheckpointView::take(committer, self.store)?;
        match self.write(&view, &mut newest).map_err(StoreError::of_checkpoint)? {
            Some(bytes) => self.remove_trimmed(trim(committer, view.position, bytes)),
            None => Ok(()),
        }
    }

    /// Moves all that graphs have in their overlays into their bases, and takes a checkpoint.
    pub(crate) fn consolidate(&self, queue: &CommitQueue) -> Result<(), StoreError> {
        {
            let _one_at_a_time = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
            Consolidation { queue }.run(true).map_err(StoreError::of_checkpoint)?;
        }
        self.run(queue)
    }

    /// Why the last checkpoint failed, if it did.
    pub(crate) fn failure(&self) -> Option<StoreError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes a checkpoint unless there is nothing new, and removes what it makes superfluous once the archive has it. The
    /// length of what was written; `None` if nothing was, or if the log has to stay.
    fn write(&self, view: &CheckpointView, newest: &mut LogPosition) -> Result<Option<u64>, StoreError> {
        let mut bytes = None;
        if view.position > *newest || !view.retired_files.is_empty() || view.has_new_indexes {
            bytes = Some(write_checkpoint(view, &self.disk)?);
            *newest = view.position;
            hold(&self.retired).extend(view.retired_files.iter().cloned());
        } else if hold(&self.retired).is_empty() {
            return Ok(None);
        }
        if self.archiver.as_ref().is_some_and(|archiver| archiver.catch_up().is_err()) {
            // The status of the archive tells; the next checkpoint tries again.
            return Ok(None);
        }
        let mut retired = hold(&self.retired);
        while let Some(name) = retired.last() {
            self.disk.remove(name).map_err(|error| StoreError::io(format!("removing {name}"), error))?;
            retired.pop();
        }
        for old in list_checkpoints(self.disk.as_ref())?.into_iter().filter(|old| *old < view.position) {
            let name = file_name(old);
            self.disk.remove(&name).map_err(|error| StoreError::io(format!("removing {name}"), error))?;
        }
        Ok(bytes)
    }

    /// Removes files of the log, oldest first, so that what is left is a log without a gap whenever this ends. Here, and not where they are
    /// trimmed, since a file system may take milliseconds for each.
    fn remove_trimmed(&self, names: Vec<String>) -> Result<(), StoreError> {
        let mut trimmed = hold(&self.trimmed);
        trimmed.extend(names);
        while let Some(name) = trimmed.front() {
            let io = |error| StoreError::io(format!("removing {name}"), error);
            if !self.spare.recycle(name).map_err(io)? {
                self.disk.remove(name).map_err(io)?;
            }
            trimmed.pop_front();
        }
        Ok(())
    }
}

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the log forget what is before a checkpoint of so many bytes; returns the files that had it.
fn trim(committer: &mut Committer, position: LogPosition, bytes: u64) -> Vec<String> {
    committer.checkpoints.last_bytes = bytes;
    committer.checkpoints.since = committer.checkpoints.since.max(position);
    committer.log.as_mut().map_or_else(Vec::new, |log| log.trim(LogPosition(position.0 + 1)))
}
