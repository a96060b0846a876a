//! Archives: copies of a data directory from which every moment that they cover can be restored.
//!
//! An archive is a directory with the same files as a data directory, of several checkpoints at once, and `ARCHIVE`, which
//! keeps it from being opened as a store. Files of bases never change and are copied once; log files grow at their end; so
//! an archive is continued, not made anew. Whoever continues it reads files only: a backup needs nothing from the process that has
//! the data directory open, and commits never wait for it.
//!
//! ```text
//! data directory ──[copy]──▶ archive ──[restore]──▶ another data directory, cut at a moment
//!        │ checkpoints, log files, files of bases         under a store number of its own
//!        └─[archiver]: the same copy again and again; log and files stay until it has them
//! ```
//! A restored store goes on under another number: what it writes can never be mixed with what the archive has of the old one.

mod archiver;
mod copy;
mod restore;

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::environment::{DirectoryLock, Disk, Random, SystemRandom};
use crate::{CommitTs, DirectoryDisk, Store, StoreError};

pub use archiver::ArchiveStatus;
pub(crate) use archiver::Archiver;
pub use restore::{RestorePoint, RestoreReport};

/// Says that a directory is an archive.
const ARCHIVE_MARK: &str = "ARCHIVE";

/// Says that a restore into a directory has begun and not ended.
pub(crate) const RESTORING_MARK: &str = "RESTORING";

/// Ends the names of files that are not whole yet.
const UNFINISHED_SUFFIX: &str = ".unfinished";

/// Bytes copied at once.
const COPY_BYTES: usize = 4 << 20;

/// What a backup brought into an archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackupReport {
    /// The newest commit that the archive has.
    pub commit: CommitTs,
    /// When it was, in milliseconds since 1970; `None` if it was written by a release that noted no times.
    pub time_ms: Option<u64>,
    /// Files that were made or continued.
    pub files: u64,
    /// Bytes that were copied.
    pub bytes: u64,
}

impl Store {
    /// Brings all that is committed in a data directory into an archive, which is created if it is missing. The store may be
    /// open, in any process, and goes on undisturbed. Files that the archive has are not copied again.
    ///
    /// Errors: `Archive` if the archive is of another store or of another history of this one, `Corrupt` if a checksum is
    /// wrong, `Locked` if another process writes to the archive.
    pub fn backup(data_directory: impl AsRef<Path>, archive: impl AsRef<Path>) -> Result<BackupReport, StoreError> {
        let source = DirectoryDisk::existing(data_directory.as_ref())?;
        Store::backup_disk(&source, &DirectoryDisk::create(archive.as_ref())?)
    }

    /// [`Store::backup`] from disk to disk.
    pub fn backup_disk(source: &dyn Disk, archive: &dyn Disk) -> Result<BackupReport, StoreError> {
        let _lock = lock(archive, "a backup")?;
        copy::copy(source, archive, &mut copy::Known::default())
    }

    /// Makes a data directory out of an archive, with the state at a moment that the archive covers. The directory must be
    /// empty, or one where a restore was interrupted. Every checksum is verified; what was made is read back.
    ///
    /// Errors: `Archive` if the archive does not cover the moment, `Corrupt` if a file of it is damaged.
    pub fn restore(
        archive: impl AsRef<Path>,
        data_directory: impl AsRef<Path>,
        until: RestorePoint,
    ) -> Result<RestoreReport, StoreError> {
        let source = DirectoryDisk::existing(archive.as_ref())?;
        let target = Arc::new(DirectoryDisk::create(data_directory.as_ref())?);
        Store::restore_disk(&source, &(target as Arc<dyn Disk>), until, &SystemRandom)
    }

    /// [`Store::restore`] from disk to disk; `random` gives the store its number.
    pub fn restore_disk(
        archive: &dyn Disk,
        target: &Arc<dyn Disk>,
        until: RestorePoint,
        random: &dyn Random,
    ) -> Result<RestoreReport, StoreError> {
        let _lock = lock(target.as_ref(), "a restore")?;
        restore::restore(archive, target, until, random.number())
    }
}

/// Refuses directories that are no data directory although they have its files.
pub(crate) fn refuse_marked(disk: &dyn Disk) -> Result<(), StoreError> {
    let names = list(disk)?;
    let has = |mark: &str| names.iter().any(|name| name == mark);
    if has(RESTORING_MARK) {
        return Err(refusal(disk, "a restore into it was not finished; run the restore again"));
    }
    if has(ARCHIVE_MARK) {
        return Err(refusal(disk, "it is an archive, no data directory; make one of it with `ficus admin restore`"));
    }
    Ok(())
}

/// What a mark says about the directory that it is in; `None` for other files.
pub(crate) fn explain_mark(name: &str) -> Option<&'static str> {
    match name {
        ARCHIVE_MARK => Some("this is an archive: it can be restored, and not opened"),
        RESTORING_MARK => Some("a restore into this directory was not finished; run it again"),
        _ => None,
    }
}

fn refusal(disk: &dyn Disk, reason: impl Into<String>) -> StoreError {
    StoreError::Archive { directory: disk.location(), reason: reason.into() }
}

fn lock(disk: &dyn Disk, who: &str) -> Result<Box<dyn DirectoryLock>, StoreError> {
    disk.lock(&format!("{who}, process {}", std::process::id())).map_err(|failure| match failure {
        Ok(holder) => StoreError::Locked { directory: disk.location(), holder },
        Err(error) => StoreError::io(format!("locking {}", disk.location()), error),
    })
}

fn list(disk: &dyn Disk) -> Result<Vec<String>, StoreError> {
    disk.list().map_err(|error| StoreError::io(format!("listing {}", disk.location()), error))
}

fn sync_names(disk: &dyn Disk) -> Result<(), StoreError> {
    disk.sync_directory().map_err(|error| StoreError::io(format!("syncing {}", disk.location()), error))
}

fn remove(disk: &dyn Disk, name: &str) -> Result<(), StoreError> {
    disk.remove(name).map_err(|error| StoreError::io(format!("removing {name} in {}", disk.location()), error))
}

/// Makes a mark and its name durable.
fn put_mark(disk: &dyn Disk, mark: &str, text: &str) -> Result<(), StoreError> {
    let make = || {
        let file = disk.create(mark)?;
        file.write_all_at(text.as_bytes(), 0)?;
        file.sync()?;
        disk.sync_directory()
    };
    make().map_err(|error| StoreError::io(format!("writing {mark} in {}", disk.location()), error))
}

/// The first bytes of a file, as many as there are up to `limit`.
fn read_start(disk: &dyn Disk, name: &str, limit: u64) -> Result<Vec<u8>, StoreError> {
    let read = || -> io::Result<Vec<u8>> {
        let file = disk.open(name)?;
        let mut bytes = vec![0; file.length()?.min(limit) as usize];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    };
    read().map_err(|error| StoreError::io(format!("reading {name} in {}", disk.location()), error))
}

/// Copies a file under an unfinished name, with other first bytes if `start` has some, and flushes it. `name` must not exist.
/// Returns the unfinished name and the number of bytes.
fn copy_unfinished(
    source: &dyn Disk,
    target: &dyn Disk,
    name: &str,
    start: &[u8],
) -> Result<(String, u64), StoreError> {
    let unfinished = format!("{name}{UNFINISHED_SUFFIX}");
    let from = source.open(name).map_err(|error| StoreError::io(format!("opening {name}"), error))?;
    let copy = || -> io::Result<u64> {
        if target.list()?.contains(&unfinished) {
            target.remove(&unfinished)?;
        }
        let to = target.create(&unfinished)?;
        let length = from.length()?;
        let mut buffer = vec![0; COPY_BYTES.min(length as usize)];
        let mut offset = 0;
        while offset < length {
            let part = &mut buffer[..COPY_BYTES.min((length - offset) as usize)];
            from.read_exact_at(part, offset)?;
            if offset == 0 {
                let renewed = start.len().min(part.len());
                part[..renewed].copy_from_slice(&start[..renewed]);
            }
            to.write_all_at(part, offset)?;
            offset += part.len() as u64;
        }
        to.sync()?;
        Ok(length)
    };
    let length = copy().map_err(|error| StoreError::io(format!("copying {name} to {}", target.location()), error))?;
    Ok((unfinished, length))
}

/// Gives a file that was found whole its name.
fn finish_file(target: &dyn Disk, name: &str) -> Result<(), StoreError> {
    let unfinished = format!("{name}{UNFINISHED_SUFFIX}");
    target.rename(&unfinished, name).map_err(|error| StoreError::io(format!("renaming {unfinished}"), error))
}
