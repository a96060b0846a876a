//! Whether records still find room on the disk of the log: for those who ask whether the store can be written to.
//!
//! A full disk refuses the records that met it and leaves the store as it was, so the next ones are tried again; whoever only asks must not wait for
//! somebody to try. What the last append met is noted; while it was a full disk, asking looks for room, and a disk that says it has some is written
//! to, since quotas and the like are known to no one before. Before anything was refused, the disk is believed.

use std::sync::Arc;

use crate::environment::Disk;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard};
use crate::{FullDisk, StoreError};

/// The file that is written to see whether there is room. It is removed at once; a start removes what a crash left of it.
pub(crate) const ROOM_NAME: &str = "log-room.unfinished";

/// Bytes of room without which the disk counts as full: a few hundred small commits.
const ROOM_BYTES: u64 = 256 << 10;

/// Whether records find room.
pub(crate) struct Shortage {
    disk: Option<Arc<dyn Disk>>,
    /// Why the last records were refused, if they were. Rank: nothing else is locked inside.
    refused: Mutex<Refused>,
    /// True if there is something in `refused`.
    is_noted: AtomicBool,
    /// Bytes that the log has taken already, for records to come.
    ready_bytes: AtomicU64,
    /// Held by who writes to the disk to see whether there is room; others do not wait for that.
    looking: Mutex<()>,
}

#[derive(Default)]
struct Refused {
    error: Option<StoreError>,
    /// How often it was noted: what was refused after a look for room had begun is not forgotten because of it.
    times: u64,
}

impl Shortage {
    /// Of a log on this disk; in memory there is always room.
    pub(crate) fn new(disk: Option<Arc<dyn Disk>>) -> Shortage {
        let (refused, is_noted) = Default::default();
        Shortage { disk, refused, is_noted, ready_bytes: AtomicU64::new(0), looking: Mutex::new(()) }
    }

    fn refused(&self) -> MutexGuard<'_, Refused> {
        self.refused.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Records were refused since the disk is full.
    pub(crate) fn note(&self, error: &StoreError) {
        let mut refused = self.refused();
        refused.error = Some(error.clone());
        refused.times += 1;
        self.is_noted.store(true, Ordering::Release);
    }

    /// Records are in the log, which has taken `ready_bytes` more already.
    pub(crate) fn found_room(&self, ready_bytes: u64) {
        self.ready_bytes.store(ready_bytes, Ordering::Relaxed);
        if self.is_noted.load(Ordering::Acquire) {
            self.forget(None);
        }
    }

    /// Forgets what was refused, if that was not refused after `times`.
    fn forget(&self, times: Option<u64>) {
        let mut refused = self.refused();
        if times.is_none_or(|times| times == refused.times) {
            refused.error = None;
            self.is_noted.store(false, Ordering::Release);
        }
    }

    /// `Ok` if the next records should find room. May write to the disk.
    pub(crate) fn look(&self) -> Result<(), StoreError> {
        let Some(disk) = &self.disk else { return Ok(()) };
        // Where the disk does not tell, it is tried.
        let is_full = || matches!(disk.free_bytes(), Ok(Some(bytes)) if bytes < ROOM_BYTES);
        if !self.is_noted.load(Ordering::Acquire) {
            return match self.ready_bytes.load(Ordering::Relaxed) < ROOM_BYTES && is_full() {
                true => Err(StoreError::DiskFull {
                    action: "looking for room for the commit log".to_string(),
                    full: FullDisk::Space,
                }),
                false => Ok(()),
            };
        }
        let (error, times) = match &*self.refused() {
            Refused { error: Some(error), times } => (error.clone(), *times),
            Refused { error: None, .. } => return Ok(()),
        };
        let Ok(_alone) = self.looking.try_lock() else { return Err(error) };
        if is_full() || try_to_write(disk.as_ref()).is_err() {
            return Err(error);
        }
        self.forget(Some(times));
        Ok(())
    }
}

/// Writes a file as large as the room that there should be, and removes it.
fn try_to_write(disk: &dyn Disk) -> std::io::Result<()> {
    let write = || {
        let file = disk.create(ROOM_NAME)?;
        file.write_all_at(&vec![0; ROOM_BYTES as usize], 0)?;
        file.sync()
    };
    let written = write();
    disk.remove(ROOM_NAME).and(written)
}
