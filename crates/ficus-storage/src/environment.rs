//! The outside world of a store: time, randomness, disk and threads, behind small traits.
//!
//! A real store uses [`Environment::on_directory`]; tests put in a simulated disk, fixed numbers and no threads, and so
//! repeat every run from a seed.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::StoreError;
use crate::directory_disk::DirectoryDisk;
use crate::mapping::SegmentBytes;

/// Tells the time. The store uses it for names, reports and reads of the past only, never to decide about a commit.
pub trait Clock: Send + Sync {
    /// Seconds since 1970-01-01 UTC.
    fn epoch_seconds(&self) -> u64;
    /// Milliseconds since 1970-01-01 UTC.
    fn epoch_millis(&self) -> u64 {
        self.epoch_seconds().saturating_mul(1000)
    }
}

/// Gives numbers that nobody else has.
pub trait Random: Send + Sync {
    /// A number.
    fn number(&self) -> u64;
}

/// Starts threads.
pub trait Spawn: Send + Sync {
    /// Runs a task on a thread of its own.
    fn spawn(&self, name: &str, task: Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>>;

    /// As [`Spawn::spawn`], for work that nobody waits for: it should give way to all other threads.
    fn spawn_in_background(&self, name: &str, task: Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>> {
        self.spawn(name, task)
    }

    /// As [`Spawn::spawn_in_background`], for work that may take as long as it likes: it should run only where no other thread wants the core.
    fn spawn_at_leisure(&self, name: &str, task: Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>> {
        self.spawn_in_background(name, task)
    }
}

/// The files of one data directory, all on one level.
///
/// What is written is certain to survive a power cut only after [`DiskFile::sync`], and a new, renamed or removed name
/// only after [`Disk::sync_directory`].
pub trait Disk: Send + Sync {
    /// Where it is, for messages.
    fn location(&self) -> String;
    /// Names of all files, in any order.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Creates an empty file; fails if it exists.
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;
    /// Opens a file; fails if it does not exist.
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;
    /// The bytes of a file that nobody changes any more.
    fn map(&self, name: &str) -> io::Result<Arc<SegmentBytes>>;
    /// Gives a file another name, replacing what has it.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Bytes that may still be written, where that is known.
    fn free_bytes(&self) -> io::Result<Option<u64>> {
        Ok(None)
    }
    /// Makes creations, renames and removals durable.
    fn sync_directory(&self) -> io::Result<()>;
    /// Takes the directory for this process until the guard is dropped. `Err(Ok(holder))` if another one has it.
    fn lock(&self, holder: &str) -> Result<Box<dyn DirectoryLock>, Result<String, io::Error>>;
}

/// Holds a data directory for one process.
pub trait DirectoryLock: Send + Sync {}

/// One file.
pub trait DiskFile: Send + Sync {
    /// Length in bytes.
    fn length(&self) -> io::Result<u64>;
    /// Fills `buffer` from `offset`; fails with `UnexpectedEof` if the file ends before.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes all of `bytes` at `offset`, growing the file.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Cuts or grows the file.
    fn set_length(&self, length: u64) -> io::Result<()>;
    /// Makes content and length durable.
    fn sync(&self) -> io::Result<()>;
}

/// The outside world of one store.
#[derive(Clone)]
pub struct Environment {
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// The data directory; `None` keeps everything in memory.
    pub disk: Option<Arc<dyn Disk>>,
    /// Gives numbers that nobody else has.
    pub random: Arc<dyn Random>,
    /// Starts threads; `None` does all work on the thread that asks for it, which makes a run repeatable.
    pub spawn: Option<Arc<dyn Spawn>>,
}

impl Environment {
    /// The real world, with this data directory, which is created if it is missing.
    pub fn on_directory(directory: impl AsRef<Path>) -> Result<Environment, StoreError> {
        let disk = DirectoryDisk::create(directory.as_ref())?;
        Ok(Environment {
            clock: Arc::new(SystemClock),
            disk: Some(Arc::new(disk)),
            random: Arc::new(SystemRandom),
            spawn: Some(Arc::new(SystemThreads)),
        })
    }

    /// The real world without a disk and without threads.
    pub fn in_memory() -> Environment {
        Environment { clock: Arc::new(SystemClock), disk: None, random: Arc::new(SystemRandom), spawn: None }
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let location = self.disk.as_ref().map(|disk| disk.location());
        f.debug_struct("Environment").field("disk", &location).finish_non_exhaustive()
    }
}

/// The system's clock.
#[derive(Debug)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn epoch_seconds(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
    }

    fn epoch_millis(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

/// The system's random numbers.
#[derive(Debug)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn number(&self) -> u64 {
        uuid::Uuid::new_v4().as_u64_pair().0
    }
}

/// Threads of the operating system.
#[derive(Debug)]
pub struct SystemThreads;

impl Spawn for SystemThreads {
    fn spawn(&self, name: &str, task: Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>> {
        std::thread::Builder::new().name(name.to_string()).spawn(task)
    }

    fn spawn_in_background(&self, name: &str, task: Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>> {
        self.spawn(name, behind(lower_priority, task))
    }

    fn spawn_at_leisure(&self, name: &str, task: Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>> {
        self.spawn_in_background(name, behind(run_when_idle, task))
    }
}

/// The task, on a thread that has done something else first.
fn behind(first: fn(), task: Box<dyn FnOnce() + Send>) -> Box<dyn FnOnce() + Send> {
    Box::new(move || {
        first();
        task();
    })
}

/// What a thread in the background adds to its niceness: beside one busy thread of ordinary priority it gets a tenth of a core.
const BACKGROUND_NICENESS: i32 = 10;

/// Lowers the priority of this thread, where the system has one for each.
fn lower_priority() {
    if cfg!(target_os = "linux") {
        // A system that refuses this runs it as any other thread: slower for others, and right.
        let _ = rustix::process::nice(BACKGROUND_NICENESS);
    }
}

/// Has this thread run only where no other wants the core, where the system knows of such threads. With a low priority alone it would get a tenth of a
/// busy core, in pieces of some milliseconds, for which a query has to wait.
#[cfg(target_os = "linux")]
fn run_when_idle() {
    use thread_priority::{NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy};
    let policy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    // Where this is refused it keeps the low priority that it has.
    let _ = thread_priority::set_thread_priority_and_policy(
        thread_priority::thread_native_id(),
        ThreadPriority::Min,
        policy,
    );
}

#[cfg(not(target_os = "linux"))]
fn run_when_idle() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_at_leisure_runs_where_no_other_thread_wants_the_core() {
        let policy = || {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            // Behind the name, which may have spaces, comes the third field; the policy is the 41st, and 5 that of idle threads (`man sched`).
            let fields = stat.rsplit_once(')').unwrap().1;
            fields.split_ascii_whitespace().nth(41 - 3).unwrap().parse::<u32>().unwrap()
        };
        let (sender, policies) = std::sync::mpsc::channel();
        let tell = || {
            let sender = sender.clone();
            Box::new(move || sender.send(policy()).unwrap())
        };
        SystemThreads.spawn_in_background("background", tell()).unwrap().join().unwrap();
        SystemThreads.spawn_at_leisure("leisure", tell()).unwrap().join().unwrap();
        assert_eq!(policies.try_iter().collect::<Vec<_>>(), [0, 5]);
    }
}
