//! A disk for work that nobody waits for: what is written is flushed in small pieces, with pauses while commits are flushed.
//!
//! A flush of the commit log waits for all that the device was given before it, and on some file systems for all that other files have not flushed
//! yet. Segments and checkpoints are many megabytes; written in pieces they hold up a commit for one of them at most, and with pauses only some of the
//! commits.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::environment::{DirectoryLock, Disk, DiskFile};
use crate::mapping::SegmentBytes;

/// Bytes that are written at once: less than a millisecond of a disk. Beside pieces of 1 MiB without a pause, the slowest hundredth of flushes of a log
/// took five times as long as alone; with such pieces and pauses 1.6 times (ext4 on a virtual disk).
const PIECE_BYTES: usize = 256 << 10;

/// A pause is so many times as long as the flush before it.
const PAUSE_SHARE: u32 = 3;

/// A disk that was slow once should not stop the work.
const PAUSE_LIMIT: Duration = Duration::from_millis(50);

/// The same disk, for work that nobody waits for.
pub(crate) struct GentleDisk {
    disk: Arc<dyn Disk>,
    traffic: Arc<Traffic>,
}

/// What others do on the disk meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    /// Flushes of the commit log so far.
    flushes: AtomicU64,
}

impl Traffic {
    /// Notes that commits are about to be flushed.
    pub(crate) fn flush_begins(&self) {
        self.flushes.fetch_add(1, Ordering::Relaxed);
    }

    fn flushes(&self) -> u64 {
        self.flushes.load(Ordering::Relaxed)
    }
}

impl GentleDisk {
    /// The same disk, with regard to those flushes that are noted.
    pub(crate) fn new(disk: Arc<dyn Disk>, traffic: Arc<Traffic>) -> GentleDisk {
        GentleDisk { disk, traffic }
    }

    fn gentle(&self, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        Box::new(GentleFile { file, unflushed: AtomicUsize::new(0), traffic: self.traffic.clone() })
    }
}

impl Disk for GentleDisk {
    fn location(&self) -> String {
        self.disk.location()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.disk.create(name).map(|file| self.gentle(file))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.disk.open(name).map(|file| self.gentle(file))
    }

    fn map(&self, name: &str) -> io::Result<Arc<SegmentBytes>> {
        self.disk.map(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn free_bytes(&self) -> io::Result<Option<u64>> {
        self.disk.free_bytes()
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.disk.sync_directory()
    }

    fn lock(&self, holder: &str) -> Result<Box<dyn DirectoryLock>, Result<String, io::Error>> {
        self.disk.lock(holder)
    }
}

/// A file that is flushed whenever a piece was written.
struct GentleFile {
    file: Box<dyn DiskFile>,
    unflushed: AtomicUsize,
    traffic: Arc<Traffic>,
}

impl GentleFile {
    /// Flushes; then leaves the disk to the commits, if there were some meanwhile.
    fn flush_piece(&self) -> io::Result<()> {
        let (flushes, begun) = (self.traffic.flushes(), Instant::now());
        self.file.sync()?;
        self.unflushed.store(0, Ordering::Relaxed);
        if self.traffic.flushes() != flushes {
            std::thread::sleep((begun.elapsed() * PAUSE_SHARE).min(PAUSE_LIMIT));
        }
        Ok(())
    }
}

impl DiskFile for GentleFile {
    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        for (number, piece) in bytes.chunks(PIECE_BYTES).enumerate() {
            self.file.write_all_at(piece, offset + (number * PIECE_BYTES) as u64)?;
            let unflushed = self.unflushed.fetch_add(piece.len(), Ordering::Relaxed) + piece.len();
            if unflushed >= PIECE_BYTES {
                self.flush_piece()?;
            }
        }
        Ok(())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.file.set_length(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated_disk::SimulatedDisk;

    #[test]
    fn all_but_the_last_piece_is_durable_before_the_end() {
        let simulated = SimulatedDisk::new();
        let disk = GentleDisk::new(Arc::new(simulated.clone()), Arc::default());
        let file = disk.create("a").unwrap();
        disk.sync_directory().unwrap();
        let bytes: Vec<u8> = (0..PIECE_BYTES * 2 + 1000).map(|n| (n % 251) as u8).collect();
        file.write_all_at(&bytes[..700], 0).unwrap();
        file.write_all_at(&bytes[700..], 700).unwrap();
        let crashed = simulated.crash(1);
        let mut found = vec![0; PIECE_BYTES * 2];
        crashed.open("a").unwrap().read_exact_at(&mut found, 0).unwrap();
        assert_eq!(found, bytes[..found.len()]);
    }
}
