//! Takes checkpoints while readers and writers go on, and forgets the log behind them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::StoreError;
use crate::archive::Archiver;
use crate::checkpoint::{CheckpointView, file_name, list_checkpoints, write_checkpoint};
use crate::commit_queue::CommitQueue;
use crate::committer::Committer;
use crate::consolidation::Consolidation;
use crate::environment::Disk;
use crate::gentle_disk::GentleDisk;
use crate::log::LogPosition;

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
    /// Files that no checkpoint names any more, and that are still there. Rank: taken for a moment.
    retired: Mutex<Vec<Arc<str>>>,
}

impl Checkpointer {
    /// For a store whose newest checkpoint stands at `newest`.
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        store: u64,
        newest: LogPosition,
        archiver: Option<Arc<Archiver>>,
    ) -> Checkpointer {
        let (failure, retired) = Default::default();
        let disk = Arc::new(GentleDisk { disk });
        Checkpointer { disk, store, newest: Mutex::new(newest), failure, archiver, retired }
    }

    /// What keeps the archive, if there is one.
    pub(crate) fn archiver(&self) -> Option<&Arc<Archiver>> {
        self.archiver.as_ref()
    }

    /// Takes a checkpoint of what is committed now, unless nothing was since the last one.
    pub(crate) fn run(&self, queue: &CommitQueue) -> Result<(), StoreError> {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let store = self.store;
        let consolidation = Consolidation { queue };
        // A checkpoint is possible without; then it is only longer.
        let consolidated = consolidation.run(false);
        let view = queue.inspect(move |committer| CheckpointView::take(committer, store));
        let view = view?.inspect_err(|error| queue.poison(error.to_string()))?;
        let outcome = self.write(&view, &mut newest);
        let position = view.position;
        // Pages that only the view holds go before the log is trimmed.
        drop(view);
        let outcome = outcome.and_then(|bytes| match bytes {
            None => Ok(()),
            Some(bytes) => queue.inspect(move |committer| trim(committer, position, bytes))?,
        });
        let outcome = outcome.and(consolidated);
        // After a failure the next try comes when the log has grown, not with the next commit.
        let outcome = outcome.and_then(|()| queue.inspect(|committer| committer.checkpoints.asked = false));
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = outcome.clone().err();
        outcome
    }

    /// Takes a checkpoint of a store that is closing.
    pub(crate) fn run_last(&self, committer: &mut Committer) -> Result<(), StoreError> {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let view = CheckpointView::take(committer, self.store)?;
        match self.write(&view, &mut newest)? {
            Some(bytes) => trim(committer, view.position, bytes),
            None => Ok(()),
        }
    }

    /// Moves all that graphs have in their overlays into their bases, and takes a checkpoint.
    pub(crate) fn consolidate(&self, queue: &CommitQueue) -> Result<(), StoreError> {
        {
            let _one_at_a_time = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
            Consolidation { queue }.run(true)?;
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
        if view.position > *newest || !view.retired_files.is_empty() {
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
}

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn trim(committer: &mut Committer, position: LogPosition, bytes: u64) -> Result<(), StoreError> {
    committer.checkpoints.last_bytes = bytes;
    let Some(log) = &mut committer.log else { return Ok(()) };
    committer.checkpoints.since = committer.checkpoints.since.max(position);
    log.trim(LogPosition(position.0 + 1))
}
