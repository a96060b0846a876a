//! One data directory with its graphs and its commit log.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::archive::{ArchiveStatus, Archiver};
use crate::beginning::HeldBeginnings;
use crate::checkpointer::Checkpointer;
use crate::commit_queue::CommitQueue;
use crate::committer::{CheckpointTrigger, Committer, Directory, State};
use crate::consolidation::Consolidation;
use crate::damage_mark::examine;
use crate::environment::{DirectoryLock, Disk, Environment, Spawn};
use crate::gentle_disk::{GentleDisk, Traffic};
use crate::log::{Log, Spare};
use crate::mutation::Body;
use crate::number_range::moment_of;
use crate::recovery::{Recovery, recover};
use crate::schema::run_tasks;
use crate::versions::Retention;
use crate::{Clock, CommitTs, Graph, StoreError};

/// When a commit is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncPolicy {
    /// After the log was flushed to the disk.
    #[default]
    Always,
    /// After the log was handed to the operating system; a power cut may lose the newest commits, never half of one.
    Never,
}

/// One brings a group to the disk while the other applies the group before. They are the first threads of a store.
const COMMIT_THREADS: [&str; 2] = ["ficus-commit-1", "ficus-commit-2"];

/// Bytes a graph's name may have.
const NAME_BYTES_LIMIT: usize = 128;

/// The largest `tablet_bits`.
const TABLET_BITS_LIMIT: u8 = 10;

/// The largest `transaction_changes_limit`: keeps a log record well below its own limit.
const TRANSACTION_CHANGES_MAX: usize = 16 << 20;

/// How a store is opened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoreOptions {
    /// Base-2 logarithm of the number of tablets of graphs created from now on; 0 to 10.
    pub tablet_bits: u8,
    /// When a commit is acknowledged.
    pub sync: SyncPolicy,
    /// A checkpoint is taken when the log has grown by this many bytes, or by the size of the last checkpoint if that is
    /// more.
    pub checkpoint_log_bytes: u64,
    /// Bytes after which the log goes on in a new file.
    pub log_segment_bytes: u64,
    /// Milliseconds for which a state can be read as of then after it was replaced; 0 keeps none. What is kept costs the
    /// memory of all that was changed since.
    pub retention_ms: u64,
    /// States of one graph that are kept at most, whatever the retention.
    pub retention_versions: usize,
    /// Changes that one transaction may hold.
    pub transaction_changes_limit: usize,
    /// Makes the resolver ignore what transactions have read, so that tests of isolation can show that they would notice.
    #[doc(hidden)]
    pub weaken_resolver: bool,
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        StoreOptions {
            tablet_bits: 4,
            sync: SyncPolicy::Always,
            checkpoint_log_bytes: 256 << 20,
            log_segment_bytes: 64 << 20,
            retention_ms: 0,
            retention_versions: 10_000,
            transaction_changes_limit: 16 << 20,
            weaken_resolver: false,
        }
    }
}

impl StoreOptions {
    fn check(&self) -> Result<(), StoreError> {
        if self.tablet_bits > TABLET_BITS_LIMIT {
            let reason = format!("{} is not between 0 and {TABLET_BITS_LIMIT}", self.tablet_bits);
            return Err(StoreError::InvalidOption { option: "tablet_bits", reason });
        }
        if !(1..=TRANSACTION_CHANGES_MAX).contains(&self.transaction_changes_limit) {
            let reason = format!("{} is not between 1 and {TRANSACTION_CHANGES_MAX}", self.transaction_changes_limit);
            return Err(StoreError::InvalidOption { option: "transaction_changes_limit", reason });
        }
        Ok(())
    }
}

/// One data directory with its graphs and its commit log.
///
/// Dropping a store with a disk closes it; graphs taken from it can then be read but not written.
pub struct Store {
    options: StoreOptions,
    clock: Arc<dyn Clock>,
    directory: Arc<Directory>,
    queue: Arc<CommitQueue>,
    checkpointer: Option<Arc<Checkpointer>>,
    recovery: Recovery,
    /// Tells threads that work for their own sake to stop.
    closing: Arc<AtomicBool>,
    /// What has to end before the store is closed. Rank: before all others.
    open: Mutex<Option<Opened>>,
}

struct Opened {
    threads: Vec<JoinHandle<()>>,
    /// Dropped to end the thread that archives.
    archiving: Option<mpsc::Sender<()>>,
    _lock: Option<Box<dyn DirectoryLock>>,
}

impl Store {
    /// A store without a disk and without threads: commits are transactional but end with the process.
    pub fn in_memory() -> Arc<Store> {
        Store::open(StoreOptions::default(), Environment::in_memory()).expect("without a disk nothing can fail")
    }

    /// Opens a store, recovering what was committed.
    ///
    /// Errors: `Locked` if another process has the directory open, `Corrupt` if stored bytes are damaged in a way that no
    /// crash can explain.
    pub fn open(options: StoreOptions, environment: Environment) -> Result<Arc<Store>, StoreError> {
        Store::open_with(options, environment, None)
    }

    /// [`Store::open`], with an archive that is kept close behind: all that is committed is copied there every `delay` and
    /// with every checkpoint, and nothing that it lacks is removed from the data directory. See [`Store::restore`].
    ///
    /// Errors: also `Archive` if it is of another store or of another history of this one. That it cannot be written to is no
    /// error of the store: [`Store::archive_status`] tells.
    pub fn open_archived(
        options: StoreOptions,
        environment: Environment,
        archive: Arc<dyn Disk>,
        delay: Duration,
    ) -> Result<Arc<Store>, StoreError> {
        if environment.disk.is_none() {
            let reason = "a store in memory has nothing to archive".to_string();
            return Err(StoreError::InvalidOption { option: "archive_dir", reason });
        }
        Store::open_with(options, environment, Some((archive, delay)))
    }

    fn open_with(
        options: StoreOptions,
        environment: Environment,
        archive: Option<(Arc<dyn Disk>, Duration)>,
    ) -> Result<Arc<Store>, StoreError> {
        options.check()?;
        let directory = Arc::new(Directory::default());
        let mut checkpoints = CheckpointTrigger { log_bytes: options.checkpoint_log_bytes, ..Default::default() };
        let mut state = State::default();
        let mut log: Option<Box<dyn Log>> = None;
        let mut lock = None;
        let mut checkpointer = None;
        let mut recovery = Recovery::default();
        let (mut number, mut time_ms) = (0, 0);
        let traffic = Arc::<Traffic>::default();
        if let Some(disk) = &environment.disk {
            lock = Some(take_lock(disk.as_ref(), &environment)?);
            let (new_store, weaken) = (environment.random.number(), options.weaken_resolver);
            let mut found = recover(disk, new_store, options.log_segment_bytes, weaken, archive.is_some())?;
            checkpoints.since = found.checkpoint;
            checkpoints.last_bytes = found.checkpoint_bytes;
            number = found.log.store();
            time_ms = found.time_ms;
            recovery = found.recovery;
            let archiver = archive
                .as_ref()
                .map(|(target, _)| Archiver::begin(disk.clone(), target.clone(), environment.clock.clone()))
                .transpose()?;
            let gentle_disk: Arc<dyn Disk> = Arc::new(GentleDisk::new(disk.clone(), traffic.clone()));
            let spare = Arc::new(Spare::new(gentle_disk.clone(), options.log_segment_bytes));
            if options.sync == SyncPolicy::Always {
                found.log.use_spare(spare.clone());
            }
            let archiver = archiver.map(Arc::new);
            checkpointer = Some(Arc::new(Checkpointer::new(gentle_disk, number, found.checkpoint, archiver, spare)));
            state = found.state;
            log = Some(Box::new(found.log));
        }
        if options.weaken_resolver {
            state.resolver.ignore_reads();
        }
        let writer = environment.random.number();
        let (wanted, asked) = mpsc::channel();
        if environment.spawn.is_some() && checkpointer.is_some() {
            checkpoints.wanted = Some(wanted);
        }
        let sync = options.sync;
        let clock = environment.clock.clone();
        let retention = Retention { millis: options.retention_ms, versions: options.retention_versions };
        let directory_of = directory.clone();
        let mut committer = Committer {
            state,
            log,
            checkpoints,
            writer,
            directory: directory_of,
            clock: clock.clone(),
            retention,
            farewell: Arc::default(),
            begun: HeldBeginnings::new(CommitTs(0)),
        };
        let time_ms = time_ms.max(clock.epoch_millis());
        committer.begin_epoch(time_ms)?;
        // From now on it is known when a state became visible.
        committer.state.graphs.values_mut().for_each(|graph| graph.unpublished = 1);
        committer.publish(true);
        let queue = Arc::new(CommitQueue::new(committer, sync, number, time_ms, traffic));
        let open = Mutex::new(Some(Opened { threads: Vec::new(), archiving: None, _lock: lock }));
        let closing = Arc::default();
        let store = Arc::new(Store { closing, options, clock, directory, queue, checkpointer, recovery, open });
        if let Some(spawn) = &environment.spawn {
            store.start_threads(spawn.as_ref(), asked, archive.map(|(_, delay)| delay))?;
            // Files of an older format have indexes without files of their own; nobody may write for long.
            store.queue.inspect(|committer| committer.look_for_consolidation())?;
        }
        Ok(store)
    }

    fn start_threads(
        &self,
        spawn: &dyn Spawn,
        asked: mpsc::Receiver<()>,
        archive_delay: Option<Duration>,
    ) -> Result<(), StoreError> {
        let failed = |name: &str, error| StoreError::io(format!("starting the thread {name}"), error);
        let start = |name: &str, task: Box<dyn FnOnce() + Send>| {
            spawn.spawn_in_background(name, task).map_err(|error| failed(name, error))
        };
        let mut threads = Vec::new();
        self.queue.expect_threads();
        for name in COMMIT_THREADS {
            let queue = self.queue.clone();
            threads.push(spawn.spawn(name, Box::new(move || queue.run())).map_err(|error| failed(name, error))?);
        }
        let farewell = self.queue.farewell().clone();
        farewell.expect_threads();
        threads.push(start("ficus-farewell", Box::new(move || farewell.run()))?);
        let (wanted, asked_for_tasks) = mpsc::channel();
        let queue = self.queue.clone();
        threads.push(start("ficus-tasks", Box::new(move || run_tasks(&queue, &asked_for_tasks)))?);
        self.queue.expect_task_thread(wanted);
        if let Some(checkpointer) = self.checkpointer.clone() {
            let spare = checkpointer.spare().clone();
            spare.expect_thread();
            threads.push(start("ficus-log", Box::new(move || spare.run()))?);
            let queue = self.queue.clone();
            let task = move || {
                while asked.recv().is_ok() {
                    // Kept for `checkpoint_failure`; the next try comes when the log has grown again.
                    let _ = checkpointer.run_due(&queue);
                }
            };
            threads.push(start("ficus-checkpoint", Box::new(task))?);
        }
        let archiver = self.checkpointer.as_ref().and_then(|checkpointer| checkpointer.archiver().cloned());
        let mut archiving = None;
        if let (Some(archiver), Some(delay)) = (archiver, archive_delay) {
            let (sender, stop) = mpsc::channel();
            archiving = Some(sender);
            let queue = self.queue.clone();
            // After a failed flush it is unknown what will be in the log.
            let may_go_on = move || queue.writable().is_ok();
            threads.push(start("ficus-archive", Box::new(move || archiver.run(delay, &stop, may_go_on)))?);
        }
        let (directory, closing) = (self.directory.clone(), self.closing.clone());
        let verify = Box::new(move || verify_bases(&directory, &closing));
        let verifies = spawn.spawn_at_leisure("ficus-verify", verify);
        threads.push(verifies.map_err(|error| failed("ficus-verify", error))?);
        if let Some(open) = self.open.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            open.threads = threads;
            open.archiving = archiving;
        }
        Ok(())
    }

    /// The graph of this name.
    pub fn graph(&self, name: &str) -> Option<Arc<Graph>> {
        let entry = self.directory.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()?;
        Some(Arc::new(Graph {
            number: entry.number,
            name: entry.name,
            published: entry.published,
            queue: self.queue.clone(),
            clock: self.clock.clone(),
            changes_limit: self.options.transaction_changes_limit,
        }))
    }

    /// Creates an empty graph.
    pub fn create_graph(&self, name: &str) -> Result<Arc<Graph>, StoreError> {
        check_name(name)?;
        self.queue.commit(Body::CreateGraph { name: Arc::from(name), tablet_bits: self.options.tablet_bits })?;
        // Another thread may have dropped it at once.
        self.graph(name).ok_or_else(|| StoreError::NoSuchGraph { name: name.to_string() })
    }

    /// Removes a graph with all it holds. Snapshots of it can still be read; writes to it are refused.
    pub fn drop_graph(&self, name: &str) -> Result<(), StoreError> {
        let graph = self.graph(name).ok_or_else(|| StoreError::NoSuchGraph { name: name.to_string() })?;
        // The last to hold it gives its memory back, which takes its time: this thread, not the one that commits.
        let _before = graph.snapshot();
        self.queue.commit(Body::DropGraph { graph: graph.number }).map(|_| ())
    }

    /// Names of all graphs in alphabetic order.
    pub fn graph_names(&self) -> Vec<String> {
        let directory = self.directory.read().unwrap_or_else(PoisonError::into_inner);
        directory.keys().map(|name| name.to_string()).collect()
    }

    /// The graphs whose files were found damaged, with the first damage of each; see [`Graph::damage`].
    pub fn damaged_graphs(&self) -> Vec<(String, StoreError)> {
        let directory = self.directory.read().unwrap_or_else(PoisonError::into_inner);
        directory.values().filter_map(|graph| Some((graph.name.to_string(), graph.published.damage.get()?))).collect()
    }

    /// How long ago the oldest state that somebody still reads was replaced by a newer one; zero if all read the newest.
    /// What changed since is in memory twice.
    pub fn oldest_snapshot_age(&self) -> Duration {
        let now = self.clock.epoch_millis();
        let directory = self.directory.read().unwrap_or_else(PoisonError::into_inner);
        let ages = directory.values().map(|graph| graph.published.versions.oldest_reader_ms(now));
        Duration::from_millis(ages.max().unwrap_or(0))
    }

    /// Writes the whole state to a checkpoint file and trims the log behind it. Commits go on meanwhile. Does nothing
    /// without a disk.
    pub fn checkpoint(&self) -> Result<(), StoreError> {
        self.checkpointer.as_ref().map_or(Ok(()), |checkpointer| checkpointer.run(&self.queue))
    }

    /// Moves everything that was committed into the bases of the graphs: from then on reads find plain columns. Happens by
    /// itself, with a checkpoint, when an eighth of a graph has changed. Commits go on meanwhile.
    pub fn consolidate(&self) -> Result<(), StoreError> {
        match &self.checkpointer {
            Some(checkpointer) => checkpointer.consolidate(&self.queue),
            None => Consolidation { queue: &self.queue }.run(true),
        }
    }

    /// What the start began with, and what it could not use. Whoever opens a store should tell the latter.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// Why the last checkpoint failed, if it did. Nothing is lost by that, but the log grows and a restart takes longer.
    pub fn checkpoint_failure(&self) -> Option<StoreError> {
        self.checkpointer.as_ref().and_then(|checkpointer| checkpointer.failure())
    }

    /// Brings all that was committed into the archive; does nothing without one. Happens by itself.
    pub fn archive(&self) -> Result<(), StoreError> {
        let archiver = self.checkpointer.as_ref().and_then(|checkpointer| checkpointer.archiver());
        self.queue.writable()?;
        archiver.map_or(Ok(()), |archiver| archiver.catch_up())
    }

    /// How far the archive is; `None` without one.
    pub fn archive_status(&self) -> Option<ArchiveStatus> {
        self.checkpointer.as_ref().and_then(|checkpointer| checkpointer.archiver()).map(|archiver| archiver.status())
    }

    /// Commits what is queued, writes a checkpoint and releases the data directory; later writes give `Closed`.
    pub fn close(&self) -> Result<(), StoreError> {
        let Some(mut opened) = self.open.lock().unwrap_or_else(PoisonError::into_inner).take() else { return Ok(()) };
        self.closing.store(true, Ordering::Relaxed);
        let failure = self.queue.writable().err();
        if let (None, Some(checkpointer)) = (&failure, &self.checkpointer) {
            // Else the next start would have to read a long overlay. If it fails, that is all that is lost.
            let _ = checkpointer.run(&self.queue);
        }
        self.queue.close();
        if let Some(checkpointer) = &self.checkpointer {
            checkpointer.spare().close();
        }
        drop(opened.archiving.take());
        let mut threads = opened.threads.into_iter();
        let joined: Vec<_> = threads.by_ref().take(COMMIT_THREADS.len()).map(JoinHandle::join).collect();
        let ended = joined.iter().all(Result::is_ok);
        let committer = self.queue.take_committer();
        let outcome = match (committer, &self.checkpointer) {
            (Some(mut committer), Some(checkpointer)) if failure.is_none() && ended => {
                // Ends the checkpoint thread, which may be in the middle of a checkpoint.
                drop(committer.checkpoints.wanted.take());
                // What was made ahead for records may be all the room that is left for the checkpoint. After a flush that fails there is none.
                checkpointer.spare().remove();
                let cut = committer.log.as_mut().map_or(Ok(()), |log| log.close());
                cut.map_err(StoreError::of_checkpoint).and_then(|()| checkpointer.run_last(&mut committer))
            }
            (committer, _) => {
                drop(committer);
                Ok(())
            }
        };
        let ended = threads.all(|thread| thread.join().is_ok()) && ended;
        if !ended {
            return Err(StoreError::Poisoned { cause: "a thread of the store panicked".to_string() });
        }
        if let Some(checkpointer) = &self.checkpointer {
            checkpointer.spare().remove();
        }
        outcome
    }

    /// `Ok` if writes are accepted, else why they are refused: after a failed flush for good, on a full disk until there is room, for which this looks.
    /// So it may wait for the disk.
    pub fn writable(&self) -> Result<(), StoreError> {
        self.queue.has_room()
    }
}

/// Reads all that was mapped at the start once, beside the queries: a start does not wait for it. A graph whose files are damaged is refused
/// from then on; the others go on.
fn verify_bases(directory: &Directory, closing: &AtomicBool) {
    let listed: Vec<_> = directory.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
    for entry in listed {
        let root = entry.published.versions.newest();
        if let Err(error) = examine(&root, closing) {
            entry.published.note_damage(&error);
        }
    }
}

fn take_lock(disk: &dyn Disk, environment: &Environment) -> Result<Box<dyn DirectoryLock>, StoreError> {
    let since = moment_of(environment.clock.epoch_seconds().saturating_mul(1000));
    let holder = format!("process {} (since {since})", std::process::id());
    disk.lock(&holder).map_err(|failure| match failure {
        Ok(holder) => StoreError::Locked { directory: disk.location(), holder },
        Err(error) => StoreError::io(format!("locking {}", disk.location()), error),
    })
}

impl Drop for Store {
    fn drop(&mut self) {
        // In memory there is nothing to close, and graphs can be used on. Who wants to know the outcome calls `close`;
        // nothing that was acknowledged depends on it.
        if self.checkpointer.is_some() {
            let _ = self.close();
        }
    }
}

fn check_name(name: &str) -> Result<(), StoreError> {
    let mut characters = name.chars();
    let begins = characters.next().is_some_and(|first| first.is_ascii_alphanumeric());
    let goes_on = characters.all(|next| next.is_ascii_alphanumeric() || "_-.".contains(next));
    if begins && goes_on && name.len() <= NAME_BYTES_LIMIT {
        return Ok(());
    }
    Err(StoreError::InvalidGraphName { name: name.chars().take(NAME_BYTES_LIMIT).collect() })
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("options", &self.options).field("queue", &self.queue).finish_non_exhaustive()
    }
}
