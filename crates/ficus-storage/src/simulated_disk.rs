//! A disk in memory that forgets what was not flushed, tears what was half flushed, fills up and fails, all from a seed.
//!
//! Every write since the last [`DiskFile::sync`] of its file is kept apart, cut into sectors. [`SimulatedDisk::crash`]
//! decides for each sector, and for each creation, rename and removal since the last [`Disk::sync_directory`], whether it
//! reached the disk. So writes are lost, torn and reordered in every way a real disk may do it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::environment::{DirectoryLock, Disk, DiskFile, Environment};
use crate::mapping::SegmentBytes;

/// Bytes that reach the disk together or not at all.
const SECTOR_BYTES: usize = 512;

/// A disk in memory. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct SimulatedDisk {
    state: Arc<Mutex<DiskState>>,
}

#[derive(Debug, Default)]
struct DiskState {
    /// Names as the running process sees them.
    names: BTreeMap<String, u64>,
    /// Names as they were when the directory was last synced.
    durable_names: BTreeMap<String, u64>,
    /// Changes of names since then, in order.
    name_changes: Vec<BTreeMap<String, u64>>,
    files: BTreeMap<u64, FileState>,
    next_file: u64,
    locks: BTreeSet<u64>,
    faults: Faults,
    operations: u64,
    flushes: u64,
}

#[derive(Clone, Debug, Default)]
struct FileState {
    content: Vec<u8>,
    durable: Vec<u8>,
    /// Changes since the last sync, in order.
    pending: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Length(usize),
}

/// What goes wrong, and when.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// From this operation on (writes, syncs, changes of names), everything fails, as if the power were gone.
    pub crash_at_operation: Option<u64>,
    /// This operation, and no other, fails.
    pub fail_operation: Option<u64>,
    /// This flush of a file (counted from 1), and no other, fails.
    pub fail_flush: Option<u64>,
    /// All files together may not become larger than this.
    pub capacity_bytes: Option<u64>,
    /// No file may become larger than this.
    pub file_bytes_limit: Option<u64>,
    /// On a full disk, files cannot be cut either, as where nothing is ever written in place.
    pub cuts_need_room: bool,
    /// No file can be opened or made, since too many are open.
    pub refuses_files: bool,
    /// Nobody is told how much room there is, as where a quota holds.
    pub hides_room: bool,
}

/// A small generator of numbers, so that a test repeats from its seed.
#[derive(Clone, Debug)]
pub struct Seeded(u64);

impl Seeded {
    /// Numbers that depend on the seed alone.
    pub fn new(seed: u64) -> Seeded {
        Seeded(seed)
    }

    /// The next number (SplitMix64).
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end.max(1)
    }
}

impl SimulatedDisk {
    /// An empty disk.
    pub fn new() -> SimulatedDisk {
        SimulatedDisk::default()
    }

    /// The real world with this disk and without threads.
    pub fn environment(&self) -> Environment {
        Environment { disk: Some(Arc::new(self.clone())), ..Environment::in_memory() }
    }

    fn state(&self) -> MutexGuard<'_, DiskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on these things go wrong.
    pub fn set_faults(&self, faults: Faults) {
        self.state().faults = faults;
    }

    /// Number of operations so far, as [`Faults::crash_at_operation`] counts them.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Number of flushes of files so far, as [`Faults::fail_flush`] counts them.
    pub fn flushes(&self) -> u64 {
        self.state().flushes
    }

    /// Bytes that files have taken, as [`Faults::capacity_bytes`] counts them.
    pub fn used_bytes(&self) -> u64 {
        self.state().used_bytes()
    }

    /// The disk as a crash at this moment may leave it; `seed` decides what had reached it.
    pub fn crash(&self, seed: u64) -> SimulatedDisk {
        let mut random = Seeded::new(seed);
        let state = self.state();
        // Names change in order, as journaling file systems have it.
        let kept_names = random.below(state.name_changes.len() as u64 + 1) as usize;
        let names = match kept_names {
            0 => state.durable_names.clone(),
            kept => state.name_changes[kept - 1].clone(),
        };
        let files: BTreeMap<u64, FileState> = names
            .values()
            .map(|number| {
                let content = state.files[number].after_crash(&mut random);
                (*number, FileState { durable: content.clone(), content, pending: Vec::new() })
            })
            .collect();
        let crashed = DiskState {
            durable_names: names.clone(),
            names,
            files,
            next_file: state.next_file,
            ..DiskState::default()
        };
        SimulatedDisk { state: Arc::new(Mutex::new(crashed)) }
    }

    /// The content of a file, to be damaged and put back with [`SimulatedDisk::put`].
    pub fn content(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.state();
        Some(state.files[state.names.get(name)?].content.clone())
    }

    /// Puts a durable file on the disk, replacing what has its name.
    pub fn put(&self, name: &str, content: Vec<u8>) {
        let mut state = self.state();
        let number = state.next_file;
        state.next_file += 1;
        state.files.insert(number, FileState { durable: content.clone(), content, pending: Vec::new() });
        state.names.insert(name.to_string(), number);
        state.durable_names.insert(name.to_string(), number);
    }
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Change::Write { offset, bytes } => put_at(content, bytes, *offset),
            Change::Length(length) => content.resize(*length, 0),
        }
    }
}

impl FileState {
    /// The content after a crash: each sector of each unsynced write is kept or lost on its own; changes of length too.
    fn after_crash(&self, random: &mut Seeded) -> Vec<u8> {
        let mut content = self.durable.clone();
        // Most crashes keep most; some keep nothing.
        let odds = random.below(5);
        for change in &self.pending {
            match change {
                Change::Length(length) => {
                    if random.below(4) < odds {
                        content.resize(*length, 0);
                    }
                }
                Change::Write { offset, bytes } => {
                    let mut start = 0;
                    while start < bytes.len() {
                        let end =
                            bytes.len().min((offset + start) / SECTOR_BYTES * SECTOR_BYTES + SECTOR_BYTES - offset);
                        if random.below(4) < odds {
                            put_at(&mut content, &bytes[start..end], offset + start);
                        }
                        start = end;
                    }
                }
            }
        }
        content
    }
}

fn put_at(content: &mut Vec<u8>, bytes: &[u8], offset: usize) {
    if content.len() < offset + bytes.len() {
        content.resize(offset + bytes.len(), 0);
    }
    content[offset..offset + bytes.len()].copy_from_slice(bytes);
}

impl DiskState {
    fn used_bytes(&self) -> u64 {
        self.names.values().map(|number| self.files[number].content.len() as u64).sum()
    }

    fn has_file_to_give(&self) -> io::Result<()> {
        if self.faults.refuses_files { Err(rustix::io::Errno::MFILE.into()) } else { Ok(()) }
    }

    fn operation(&mut self) -> io::Result<()> {
        self.operations += 1;
        if self.faults.crash_at_operation.is_some_and(|crash| self.operations >= crash) {
            return Err(io::Error::other("simulated power cut"));
        }
        if self.faults.fail_operation == Some(self.operations) {
            return Err(io::Error::other("simulated failure of the disk"));
        }
        Ok(())
    }

    fn change_names(&mut self, change: impl FnOnce(&mut BTreeMap<String, u64>) -> io::Result<()>) -> io::Result<()> {
        self.operation()?;
        change(&mut self.names)?;
        self.name_changes.push(self.names.clone());
        Ok(())
    }
}

fn not_found(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("no file {name}"))
}

impl Disk for SimulatedDisk {
    fn location(&self) -> String {
        "a simulated disk".to_string()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.state().names.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.state();
        state.has_file_to_give()?;
        let number = state.next_file;
        state.change_names(|names| {
            if names.contains_key(name) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            names.insert(name.to_string(), number);
            Ok(())
        })?;
        state.next_file += 1;
        state.files.insert(number, FileState::default());
        Ok(Box::new(SimulatedFile { disk: self.clone(), number }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let state = self.state();
        state.has_file_to_give()?;
        let number = *state.names.get(name).ok_or_else(|| not_found(name))?;
        Ok(Box::new(SimulatedFile { disk: self.clone(), number }))
    }

    fn map(&self, name: &str) -> io::Result<Arc<SegmentBytes>> {
        let content = self.content(name).ok_or_else(|| not_found(name))?;
        Ok(Arc::new(SegmentBytes::copy(&content)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.state().change_names(|names| {
            let number = names.remove(from).ok_or_else(|| not_found(from))?;
            names.insert(to.to_string(), number);
            Ok(())
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.state().change_names(|names| names.remove(name).map(|_| ()).ok_or_else(|| not_found(name)))
    }

    fn free_bytes(&self) -> io::Result<Option<u64>> {
        let state = self.state();
        if state.faults.hides_room {
            return Ok(None);
        }
        Ok(state.faults.capacity_bytes.map(|capacity| capacity.saturating_sub(state.used_bytes())))
    }

    fn sync_directory(&self) -> io::Result<()> {
        let mut state = self.state();
        state.operation()?;
        state.durable_names = state.names.clone();
        state.name_changes.clear();
        Ok(())
    }

    fn lock(&self, holder: &str) -> Result<Box<dyn DirectoryLock>, Result<String, io::Error>> {
        let mut state = self.state();
        if !state.locks.insert(0) {
            return Err(Ok(holder.to_string()));
        }
        Ok(Box::new(SimulatedLock { disk: self.clone() }))
    }
}

struct SimulatedLock {
    disk: SimulatedDisk,
}

impl DirectoryLock for SimulatedLock {}

impl Drop for SimulatedLock {
    fn drop(&mut self) {
        self.disk.state().locks.clear();
    }
}

struct SimulatedFile {
    disk: SimulatedDisk,
    number: u64,
}

impl SimulatedFile {
    fn with<T>(&self, act: impl FnOnce(&mut DiskState, u64) -> io::Result<T>) -> io::Result<T> {
        act(&mut self.disk.state(), self.number)
    }
}

impl DiskFile for SimulatedFile {
    fn length(&self) -> io::Result<u64> {
        self.with(|state, number| Ok(state.files[&number].content.len() as u64))
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.with(|state, number| {
            let content = &state.files[&number].content;
            let bytes = content.get(offset as usize..).and_then(|rest| rest.get(..buffer.len()));
            buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        })
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.with(|state, number| {
            state.operation()?;
            let used = state.used_bytes();
            let offset = offset as usize;
            let mut bytes = bytes;
            let file = state.files.get_mut(&number).ok_or(io::ErrorKind::NotFound)?;
            let mut outcome = Ok(());
            if let Some(capacity) = state.faults.capacity_bytes {
                let growth = (offset + bytes.len()).saturating_sub(file.content.len()) as u64;
                let room = capacity.saturating_sub(used);
                if growth > room {
                    // As a real disk does, it takes what fits.
                    bytes = &bytes[..bytes.len().saturating_sub((growth - room) as usize)];
                    outcome = Err(io::ErrorKind::StorageFull.into());
                }
            }
            if let Some(limit) = state.faults.file_bytes_limit.filter(|limit| (offset + bytes.len()) as u64 > *limit) {
                bytes = &bytes[..(limit as usize).saturating_sub(offset).min(bytes.len())];
                outcome = Err(io::ErrorKind::FileTooLarge.into());
            }
            if bytes.is_empty() {
                return outcome;
            }
            put_at(&mut file.content, bytes, offset);
            file.pending.push(Change::Write { offset, bytes: bytes.to_vec() });
            outcome
        })
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.with(|state, number| {
            state.operation()?;
            if state.faults.cuts_need_room && state.faults.capacity_bytes.is_some_and(|all| all <= state.used_bytes()) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let file = state.files.get_mut(&number).ok_or(io::ErrorKind::NotFound)?;
            file.content.resize(length as usize, 0);
            file.pending.push(Change::Length(length as usize));
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.with(|state, number| {
            state.operation()?;
            state.flushes += 1;
            let fails = state.faults.fail_flush == Some(state.flushes);
            let mut random = Seeded::new(state.flushes);
            let file = state.files.get_mut(&number).ok_or(io::ErrorKind::NotFound)?;
            if fails {
                // What of it reached the disk is decided now: the system forgets that the rest has to be written, and no
                // later flush makes up for it.
                file.durable = file.after_crash(&mut random);
                file.pending.clear();
                return Err(io::Error::other("simulated failure of a flush"));
            }
            let FileState { durable, pending, .. } = file;
            pending.iter().for_each(|change| change.apply(durable));
            file.pending.clear();
            Ok(())
        })
    }
}
