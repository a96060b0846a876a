//! Where transactions wait for the log: bounded, in order, one group at a time.
//!
//! With a commit thread, committers queue up and the thread takes all that wait as one group. Without one (in memory, in a
//! simulation) whoever waits does the work, under the same lock.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::base::BaseBuilder;
use crate::committer::{Answers, Committer, Job, Submission};
use crate::environment::Disk;
use crate::log::{encode_body, set_record_header};
use crate::mutation::Body;
use crate::segment::SegmentOrigin;
use crate::tablet::IdLayout;
use crate::{CommitCallback, CommitTs, StoreError};

/// Bytes of records that may wait; more make the next committer wait.
const QUEUE_BYTES_LIMIT: usize = 64 << 20;

/// Bytes of records in one group: bounds how long the first of a group waits for the last.
const GROUP_BYTES_LIMIT: usize = 16 << 20;

/// Bytes of one encoded record.
const RECORD_BYTES_LIMIT: usize = 1 << 30;

/// Where transactions wait for the log.
pub(crate) struct CommitQueue {
    /// Protects the order of what waits. Rank 1: nothing else is locked inside.
    waiting: Mutex<Waiting>,
    /// Something was queued, or the queue was closed.
    work: Condvar,
    /// Something was taken from the queue.
    room: Condvar,
    /// Protects the state between groups. Rank 0: `waiting` is taken inside. `None` after closing.
    committer: Mutex<Option<Committer>>,
    /// True if a thread runs [`CommitQueue::run`].
    has_thread: AtomicBool,
    /// True if records have to be encoded.
    has_log: bool,
    writer: u64,
    /// Why writes are refused. Rank 1.
    failure: Mutex<Option<String>>,
    /// The data directory, and the number of the store in it.
    disk: Option<Arc<dyn Disk>>,
    store: u64,
    next_unique: AtomicU64,
    /// Whom to tell that there may be tasks; `None` without a thread for them. Rank 1.
    tasks: Mutex<Option<mpsc::Sender<()>>>,
}

struct Waiting {
    jobs: VecDeque<(usize, Job)>,
    bytes: usize,
    next_sequence: u64,
    closed: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic inside poisons the store itself, see `work_off`; the lock needs no second memory of it.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CommitQueue {
    /// A queue in front of a committer that has begun its epoch.
    pub(crate) fn new(committer: Committer, store: u64) -> CommitQueue {
        CommitQueue {
            waiting: Mutex::new(Waiting { jobs: VecDeque::new(), bytes: 0, next_sequence: 1, closed: false }),
            work: Condvar::new(),
            room: Condvar::new(),
            has_thread: AtomicBool::new(false),
            has_log: committer.log.is_some(),
            writer: committer.writer,
            disk: committer.state.disk.clone(),
            store,
            next_unique: AtomicU64::new(1),
            committer: Mutex::new(Some(committer)),
            failure: Mutex::new(None),
            tasks: Mutex::new(None),
        }
    }

    /// From now on a thread works the queue off; it must call [`CommitQueue::run`].
    pub(crate) fn expect_thread(&self) {
        self.has_thread.store(true, Ordering::Release);
    }

    /// True if commits are the business of a thread of the store.
    pub(crate) fn has_thread(&self) -> bool {
        self.has_thread.load(Ordering::Acquire)
    }

    /// From now on a thread works on tasks; it must call [`crate::schema::run_tasks`] with the other end.
    pub(crate) fn expect_task_thread(&self, wanted: mpsc::Sender<()>) {
        *lock(&self.tasks) = Some(wanted);
        self.want_tasks();
    }

    /// Tells the thread that works on tasks, if there is one, that there may be some.
    pub(crate) fn want_tasks(&self) {
        if let Some(wanted) = &*lock(&self.tasks) {
            // Without a receiver the store is closing; the next start goes on with them.
            let _ = wanted.send(());
        }
    }

    /// True if a thread works on tasks.
    pub(crate) fn has_task_thread(&self) -> bool {
        lock(&self.tasks).is_some()
    }

    /// Commits and waits for the outcome.
    pub(crate) fn commit(&self, body: Body) -> Result<CommitTs, StoreError> {
        let (sender, receiver) = mpsc::channel();
        self.submit(body, true, Box::new(move |outcome| drop(sender.send(outcome))));
        self.wait_for(&receiver)?
    }

    /// Commits; `callback` is told the outcome.
    pub(crate) fn commit_with(&self, body: Body, callback: CommitCallback) {
        let told = Told(Some(callback));
        self.submit(body, true, Box::new(move |outcome| told.tell(outcome)));
    }

    /// Queues a batch of a bulk load. `callback` is told its outcome before it is durable.
    pub(crate) fn commit_later(&self, body: Body, callback: CommitCallback) {
        self.submit(body, false, callback);
    }

    /// Waits until all that was queued before is durable and visible.
    pub(crate) fn barrier(&self) -> Result<CommitTs, StoreError> {
        let (sender, receiver) = mpsc::channel();
        self.push(0, |_| Job::Barrier(Box::new(move |outcome| drop(sender.send(outcome)))));
        self.wait_for(&receiver)?
    }

    /// Builds a base for a graph. `generation` is never used twice for it.
    pub(crate) fn base_builder(&self, graph: u32, layout: IdLayout, generation: u64) -> BaseBuilder {
        BaseBuilder::new(self.disk.clone(), SegmentOrigin { store: self.store, graph }, layout, generation)
    }

    /// A number that no other caller of this queue gets, and that no earlier opening of the store gave.
    pub(crate) fn unique_number(&self) -> u64 {
        // Writers are random numbers; positions in the log, the other source of generations, stay below 2^48.
        (self.writer | 1 << 63).wrapping_add(self.next_unique.fetch_add(1, Ordering::Relaxed) << 8)
    }

    /// Runs `inspect` on the committer between two groups and waits for its answer.
    pub(crate) fn inspect<T: Send + 'static>(
        &self,
        inspect: impl FnOnce(&mut Committer) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let (sender, receiver) = mpsc::channel();
        let task = move |committer: &mut Committer| drop(sender.send(inspect(committer)));
        self.push(0, |_| Job::Inspect(Box::new(task)));
        self.wait_for(&receiver)
    }

    /// `Ok` if writes are accepted.
    pub(crate) fn writable(&self) -> Result<(), StoreError> {
        if let Some(cause) = lock(&self.failure).clone() {
            return Err(StoreError::Poisoned { cause });
        }
        if lock(&self.waiting).closed { Err(StoreError::Closed) } else { Ok(()) }
    }

    /// Refuses writes from now on.
    pub(crate) fn poison(&self, cause: String) {
        lock(&self.failure).get_or_insert(cause);
    }

    /// Accepts no more jobs; those queued are still done.
    pub(crate) fn close(&self) {
        lock(&self.waiting).closed = true;
        // Ends the thread that works on tasks.
        drop(lock(&self.tasks).take());
        self.work.notify_all();
        self.room.notify_all();
    }

    /// Takes the committer out of a closed queue, after its thread has ended.
    pub(crate) fn take_committer(&self) -> Option<Committer> {
        self.has_thread.store(false, Ordering::Release);
        self.work_off();
        lock(&self.committer).take()
    }

    /// The commit thread: works until the queue is closed and empty.
    pub(crate) fn run(&self) {
        loop {
            let mut waiting = lock(&self.waiting);
            while waiting.jobs.is_empty() {
                if waiting.closed {
                    return;
                }
                waiting = self.work.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            }
            drop(waiting);
            self.work_off();
        }
    }

    fn submit(&self, body: Body, awaited: bool, callback: CommitCallback) {
        let mut bytes = Vec::new();
        if self.has_log {
            bytes = encode_body(&body);
            if bytes.len() > RECORD_BYTES_LIMIT {
                return callback(Err(StoreError::LimitReached {
                    what: "bytes in one transaction (commit in smaller parts)".to_string(),
                    limit: RECORD_BYTES_LIMIT as u64,
                }));
            }
        }
        self.push(bytes.len(), |sequence| {
            if self.has_log {
                set_record_header(&mut bytes, self.writer, sequence);
            }
            Job::Write(Submission { bytes, sequence, body, awaited, callback })
        });
    }

    /// Queues a job, waiting for room. Jobs are queued in the order of their sequence numbers.
    fn push(&self, bytes: usize, job: impl FnOnce(u64) -> Job) {
        let mut answers = Answers::new();
        let mut waiting = lock(&self.waiting);
        while self.has_thread.load(Ordering::Acquire) && !waiting.closed && waiting.bytes > QUEUE_BYTES_LIMIT {
            waiting = self.room.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        let sequence = waiting.next_sequence;
        let job = job(sequence);
        let refused = if waiting.closed {
            Some(StoreError::Closed)
        } else {
            // Inspections are refused as well: a checkpoint or a new base would make durable, or show to readers, what the log
            // may have lost.
            lock(&self.failure).clone().map(|cause| StoreError::Poisoned { cause })
        };
        match refused {
            Some(error) => refuse(job, error, &mut answers),
            None => {
                if matches!(job, Job::Write(_)) {
                    waiting.next_sequence += 1;
                }
                waiting.bytes += bytes;
                waiting.jobs.push_back((bytes, job));
            }
        }
        drop(waiting);
        if self.has_thread.load(Ordering::Acquire) {
            self.work.notify_one();
        } else {
            self.work_off();
        }
        tell(answers);
    }

    fn wait_for<T>(&self, receiver: &mpsc::Receiver<T>) -> Result<T, StoreError> {
        receiver.recv().map_err(|_| match self.writable() {
            Err(error) => error,
            Ok(()) => StoreError::Closed,
        })
    }

    /// Does all that waits, group by group.
    fn work_off(&self) {
        loop {
            let mut answers = Answers::new();
            let mut committer = lock(&self.committer);
            let jobs = self.take_group();
            if jobs.is_empty() {
                return;
            }
            let failure = lock(&self.failure).clone();
            match (committer.as_mut(), failure) {
                (Some(committer), None) => {
                    let work = AssertUnwindSafe(|| committer.commit_group(jobs, &mut answers));
                    match catch_unwind(work) {
                        Ok(Ok(())) => {}
                        Ok(Err(error)) => self.poison(error.to_string()),
                        // What was applied is unknown; readers keep the last published roots.
                        Err(_) => self.poison("a bug in the store stopped the commit thread".to_string()),
                    }
                }
                (Some(_), Some(cause)) => {
                    let refused = |job| refuse(job, StoreError::Poisoned { cause: cause.clone() }, &mut answers);
                    jobs.into_iter().for_each(refused);
                }
                (None, _) => jobs.into_iter().for_each(|job| refuse(job, StoreError::Closed, &mut answers)),
            }
            drop(committer);
            tell(answers);
        }
    }

    fn take_group(&self) -> Vec<Job> {
        let mut waiting = lock(&self.waiting);
        let mut group = Vec::new();
        let mut bytes = 0;
        while let Some((size, job)) = waiting.jobs.pop_front() {
            bytes += size;
            group.push(job);
            if bytes > GROUP_BYTES_LIMIT {
                break;
            }
        }
        waiting.bytes -= bytes;
        self.room.notify_all();
        group
    }
}

/// Calls back exactly once, even if the commit thread panics before it can.
struct Told(Option<CommitCallback>);

impl Told {
    fn tell(mut self, outcome: Result<CommitTs, StoreError>) {
        if let Some(callback) = self.0.take() {
            callback(outcome);
        }
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        if let Some(callback) = self.0.take() {
            callback(Err(StoreError::Poisoned { cause: "a bug in the store stopped this commit".to_string() }));
        }
    }
}

fn refuse(job: Job, error: StoreError, answers: &mut Answers) {
    match job {
        Job::Write(Submission { callback, .. }) | Job::Barrier(callback) => answers.push((callback, Err(error))),
        Job::Inspect(_) => {}
    }
}

/// Calls back, with no lock held, since a callback may begin the next transaction.
fn tell(answers: Answers) {
    for (callback, outcome) in answers {
        callback(outcome);
    }
}

impl std::fmt::Debug for CommitQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommitQueue").field("writable", &self.writable()).finish_non_exhaustive()
    }
}
