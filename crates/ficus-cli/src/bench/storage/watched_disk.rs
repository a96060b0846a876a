//! A disk that notes what was done to it and when, to tell what slow commits waited for.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use ficus_storage::{DirectoryDisk, DirectoryLock, Disk, DiskFile, SegmentBytes};

/// Something that takes its time on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Flushing records of the commit log.
    FlushLog,
    /// Making files of the log, ahead or not, and giving them their names.
    MakeLog,
    /// Removing a file.
    Remove,
    /// Flushing a piece of a segment or of a checkpoint.
    FlushInBackground,
    /// From the first to the last call for a segment or checkpoint, with what is computed in between.
    Background,
}

/// From when to when something was done.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub deed: Deed,
    pub from: Instant,
    pub to: Instant,
}

/// What was done to a disk.
#[derive(Debug, Default)]
pub struct Watch {
    /// In the order in which they ended. Rank: nothing else is locked inside.
    spans: Mutex<Vec<Span>>,
    /// The first call for the segments or the checkpoint that are being made.
    background: Mutex<Option<Instant>>,
}

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// True for files of the log, also for one that is made ahead and gets its name later.
fn is_log(name: &str) -> bool {
    name.starts_with("log-")
}

impl Watch {
    /// Takes out all that ended since the last call, in the order of their ends.
    pub fn take(&self) -> Vec<Span> {
        std::mem::take(&mut *hold(&self.spans))
    }

    fn note<T>(&self, deed: Deed, work: impl FnOnce() -> T) -> T {
        let from = Instant::now();
        let done = work();
        self.add(deed, from);
        done
    }

    fn add(&self, deed: Deed, from: Instant) {
        hold(&self.spans).push(Span { deed, from, to: Instant::now() });
    }

    fn background_begins(&self) {
        hold(&self.background).get_or_insert_with(Instant::now);
    }

    fn background_ends(&self) {
        if let Some(from) = hold(&self.background).take() {
            self.add(Deed::Background, from);
        }
    }
}

/// A directory with a watch on it.
pub struct WatchedDisk {
    pub disk: DirectoryDisk,
    pub watch: Arc<Watch>,
}

impl WatchedDisk {
    fn watched(&self, name: &str, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        Box::new(WatchedFile { file, is_log: is_log(name), watch: self.watch.clone() })
    }
}

impl Disk for WatchedDisk {
    fn location(&self) -> String {
        self.disk.location()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let create = || self.disk.create(name).map(|file| self.watched(name, file));
        if is_log(name) {
            return self.watch.note(Deed::MakeLog, create);
        }
        self.watch.background_begins();
        create()
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.disk.open(name).map(|file| self.watched(name, file))
    }

    fn map(&self, name: &str) -> io::Result<Arc<SegmentBytes>> {
        self.disk.map(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        if is_log(to) {
            return self.watch.note(Deed::MakeLog, || self.disk.rename(from, to));
        }
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.watch.note(Deed::Remove, || self.disk.remove(name))
    }

    fn free_bytes(&self) -> io::Result<Option<u64>> {
        self.disk.free_bytes()
    }

    fn sync_directory(&self) -> io::Result<()> {
        let done = self.disk.sync_directory();
        self.watch.background_ends();
        done
    }

    fn lock(&self, holder: &str) -> Result<Box<dyn DirectoryLock>, Result<String, io::Error>> {
        self.disk.lock(holder)
    }
}

struct WatchedFile {
    file: Box<dyn DiskFile>,
    is_log: bool,
    watch: Arc<Watch>,
}

impl DiskFile for WatchedFile {
    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.file.set_length(length)
    }

    fn sync(&self) -> io::Result<()> {
        let deed = match (self.is_log, std::thread::current().name()) {
            // The thread that makes files ahead.
            (true, Some("ficus-log")) => Deed::MakeLog,
            (true, _) => Deed::FlushLog,
            (false, _) => Deed::FlushInBackground,
        };
        self.watch.note(deed, || self.file.sync())
    }
}
