//! Keeps an archive close behind a store that is in use.

use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::copy::{Known, copy};
use super::lock;
use crate::environment::{DirectoryLock, Disk};
use crate::{Clock, CommitTs, StoreError};

/// How far an archive is.
#[derive(Clone, Debug, Default)]
pub struct ArchiveStatus {
    /// The newest commit that the archive has.
    pub commit: CommitTs,
    /// All that was committed at this moment is in the archive; in milliseconds since 1970, 0 if nothing is known yet.
    pub complete_ms: u64,
    /// How long that moment is ago: what is not in the archive is younger. `None` if nothing is known yet.
    pub age: Option<Duration>,
    /// Attempts that failed since the start.
    pub failures: u64,
    /// Why the last attempt failed, if it did. Nothing is lost by that: log and files stay in the data directory until the archive has them.
    pub failure: Option<StoreError>,
}

/// Brings what a store writes into an archive.
pub(crate) struct Archiver {
    source: Arc<dyn Disk>,
    target: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    /// Held while something is copied; rank: after the checkpointer's, before all others.
    known: Mutex<Known>,
    /// Rank: taken for a moment, with no other lock taken inside.
    status: Mutex<ArchiveStatus>,
    _lock: Box<dyn DirectoryLock>,
}

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What a panic may have left is only knowledge about files, which are compared again.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Archiver {
    /// Takes an archive for a store. It is an error if it is of another one; that it cannot be written to is none, and
    /// is seen in the status.
    pub(crate) fn begin(
        source: Arc<dyn Disk>,
        target: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
    ) -> Result<Archiver, StoreError> {
        let _lock = lock(target.as_ref(), "a store")?;
        let archiver = Archiver { source, target, clock, known: Mutex::default(), status: Mutex::default(), _lock };
        match archiver.catch_up() {
            Err(error @ (StoreError::Archive { .. } | StoreError::Corrupt { .. })) => Err(error),
            _ => Ok(archiver),
        }
    }

    /// Brings all that is committed into the archive.
    pub(crate) fn catch_up(&self) -> Result<(), StoreError> {
        let mut known = hold(&self.known);
        let begun_ms = self.clock.epoch_millis();
        let outcome = copy(self.source.as_ref(), self.target.as_ref(), &mut known);
        let mut status = hold(&self.status);
        match &outcome {
            Ok(report) => {
                (status.commit, status.complete_ms, status.failure) = (report.commit, begun_ms, None);
            }
            Err(error) => {
                status.failures += 1;
                status.failure = Some(error.clone());
                *known = Known::default();
            }
        }
        outcome.map(|_| ())
    }

    /// How far the archive is.
    pub(crate) fn status(&self) -> ArchiveStatus {
        let mut status = hold(&self.status).clone();
        let age = |complete_ms| Duration::from_millis(self.clock.epoch_millis().saturating_sub(complete_ms));
        status.age = Some(status.complete_ms).filter(|complete_ms| *complete_ms > 0).map(age);
        status
    }

    /// Catches up every `delay`, until the other end of `stop` is dropped or `may_go_on` says no.
    pub(crate) fn run(&self, delay: Duration, stop: &Receiver<()>, may_go_on: impl Fn() -> bool) {
        while stop.recv_timeout(delay) == Err(RecvTimeoutError::Timeout) && may_go_on() {
            // Kept in the status; the next try comes by itself.
            let _ = self.catch_up();
        }
    }
}

impl fmt::Debug for Archiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Archiver").field("target", &self.target.location()).finish_non_exhaustive()
    }
}
