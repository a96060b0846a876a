//! A data directory of the file system.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::StoreError;
use crate::environment::{DirectoryLock, Disk, DiskFile};
use crate::machine::machine_memory_bytes;
use crate::mapping::{MappedFiles, SegmentBytes};

/// The file whose lock says that a process has the directory open; its text says which.
const LOCK_FILE: &str = "LOCK";

/// A data directory of the file system.
#[derive(Debug)]
pub struct DirectoryDisk {
    directory: PathBuf,
    /// The directory itself: what was begun in it must not fail since no more files can be opened.
    handle: File,
    mapped: Arc<MappedFiles>,
}

impl DirectoryDisk {
    /// Uses a directory, which is created if it is missing.
    pub fn create(directory: &Path) -> Result<DirectoryDisk, StoreError> {
        fs::create_dir_all(directory)
            .map_err(|error| StoreError::io(format!("creating data directory {}", directory.display()), error))?;
        // The new name itself has to survive a power cut.
        if let Some(parent) = directory.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            File::open(parent)
                .and_then(|parent| parent.sync_all())
                .map_err(|error| StoreError::io(format!("syncing {}", parent.display()), error))?;
        }
        DirectoryDisk::existing(directory)
    }

    /// Uses a directory that must exist.
    pub fn existing(directory: &Path) -> Result<DirectoryDisk, StoreError> {
        let handle = fs::read_dir(directory).and_then(|_| File::open(directory));
        let handle =
            handle.map_err(|error| StoreError::io(format!("reading data directory {}", directory.display()), error))?;
        let memory_bytes = machine_memory_bytes().map_or(u64::MAX, |bytes| bytes as u64);
        Ok(DirectoryDisk { directory: directory.to_path_buf(), handle, mapped: MappedFiles::new(memory_bytes) })
    }
}

impl DirectoryDisk {
    /// As [`Disk::lock`], by who only reads: where nothing can be written there may be no lock to take, and nobody who could change what is read.
    pub(crate) fn lock_to_read(&self, holder: &str) -> Result<Option<Box<dyn DirectoryLock>>, StoreError> {
        let complain = |failure| match failure {
            Ok(holder) => StoreError::Locked { directory: self.location(), holder },
            Err(error) => StoreError::io(format!("locking {}", self.location()), error),
        };
        match self.lock(holder) {
            Err(Err(error)) if refuses_writes(&error) => {}
            taken => return taken.map(Some).map_err(complain),
        }
        // Others may see the same directory where it can be written to.
        match File::open(self.directory.join(LOCK_FILE)) {
            Ok(mut file) => {
                hold(&mut file).map_err(complain)?;
                Ok(Some(Box::new(HeldLock { _file: file })))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(complain(Err(error))),
        }
    }
}

/// True if there is something that this process may not change.
fn refuses_writes(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// Takes the lock on a file; `Err(Ok(holder))` if another process has it.
fn hold(file: &mut File) -> Result<(), Result<String, io::Error>> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            file.read_to_string(&mut text).map_err(Err)?;
            Err(Ok(text.trim().to_string()))
        }
        Err(TryLockError::Error(error)) => Err(Err(error)),
    }
}

impl Disk for DirectoryDisk {
    fn location(&self) -> String {
        self.directory.display().to_string()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            let is_file = entry.file_type()?.is_file();
            names.extend(entry.file_name().into_string().ok().filter(|name| is_file && name != LOCK_FILE));
        }
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(self.directory.join(name))?;
        Ok(Box::new(DirectoryFile { file }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let path = self.directory.join(name);
        // A check must be able to read what it may not write.
        let file = match OpenOptions::new().read(true).write(true).open(&path) {
            Err(error) if refuses_writes(&error) => File::open(&path)?,
            opened => opened?,
        };
        Ok(Box::new(DirectoryFile { file }))
    }

    fn map(&self, name: &str) -> io::Result<Arc<SegmentBytes>> {
        Ok(Arc::new(SegmentBytes::map(&File::open(self.directory.join(name))?, &self.mapped)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.directory.join(from), self.directory.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.directory.join(name))
    }

    fn free_bytes(&self) -> io::Result<Option<u64>> {
        let system = rustix::fs::statvfs(&self.directory)?;
        Ok(Some(system.f_bavail.saturating_mul(system.f_frsize)))
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.handle.sync_all()
    }

    fn lock(&self, holder: &str) -> Result<Box<dyn DirectoryLock>, Result<String, io::Error>> {
        let path = self.directory.join(LOCK_FILE);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(Err::<String, _>)?;
        hold(&mut file)?;
        let write = |file: &mut File| {
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(holder.as_bytes())
        };
        write(&mut file).map_err(Err::<String, _>)?;
        Ok(Box::new(HeldLock { _file: file }))
    }
}

/// The operating system drops the lock with the file, also when the process is killed.
struct HeldLock {
    _file: File,
}

impl DirectoryLock for HeldLock {}

struct DirectoryFile {
    file: File,
}

impl DiskFile for DirectoryFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        // Data and the length that is needed to read it.
        self.file.sync_data()
    }
}
