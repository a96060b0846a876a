//! Where transactions wait for the log: bounded, in order, one group at a time.
//!
//! Committers queue up, and whoever has the *turn* takes all that wait as one group. A group goes through two halves: to the disk
//! ([`LogWriter`]), then into the state ([`Committer`]). There are two commit threads, so that one can bring a group to the disk while the other
//! applies the group before. Groups keep their order because a thread takes the state before it lets go of the log.
//!
//! When the next group begins depends on what takes longer ([`crate::pace`]). A *long* group takes longer to apply than a flush: it is applied, shown and
//! answered in parts, so that those who are answered go on meanwhile, and the turn is given up, if something waits, when what is left of it takes as long
//! as a flush. A short one is answered before the next one begins, which waits a little for those who come back: else they would wait for the flush of
//! the few who came in between.
//! A committer who is alone takes the turn itself: waking a thread and being woken would cost it more than the work.
//!
//! ```text
//! turn ── gather ─▶ take group ─▶ log: append, flush ──▶ state: apply, publish ──▶ answer ─▶ give back pages
//!  ▲                                                      │        ▲ part by part │
//!  └───────── long, the rest takes a flush ◀──────────────┘        └──────────────┘
//! ```
//! Without commit threads (in memory, in a simulation) whoever waits does the work, under the same locks.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use crate::answers::{Answers, Caller, Sleeper};
use crate::base::BaseBuilder;
use crate::beginning::{Beginning, Beginnings};
use crate::committer::{Committer, Job, LogWriter, LoggedGroup, Submission};
use crate::environment::Disk;
use crate::farewell::Farewell;
use crate::gentle_disk::{GentleDisk, Traffic};
use crate::log::{encode_record, set_record_header};
use crate::mutation::{Body, Fact};
use crate::pace::{Pace, Returning};
use crate::segment::SegmentOrigin;
use crate::shortage::Shortage;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex, MutexGuard, mpsc};
use crate::tablet::IdLayout;
use crate::{Clock, CommitCallback, CommitTs, StoreError, SyncPolicy};

/// Bytes of records that may wait; more make the next committer wait.
const QUEUE_BYTES_LIMIT: usize = 64 << 20;

/// Bytes of records in one group: bounds how long the first of a group waits for the last.
const GROUP_BYTES_LIMIT: usize = 16 << 20;

/// Mutations after which those are answered who wait for them, in a long group.
const PART: usize = if cfg!(shuttle) { 1 } else { 8 };

/// Bytes of one encoded record.
const RECORD_BYTES_LIMIT: usize = 1 << 30;

/// Unique numbers for one position of the log, as a power of two. Who takes more takes those of positions that it has written.
const UNIQUE_BITS: u32 = 15;

/// Where transactions wait for the log.
pub(crate) struct CommitQueue {
    /// Protects the order of what waits. Rank 2: nothing else is locked inside, but `failure`.
    waiting: Mutex<Waiting>,
    /// Something waits and nobody has the turn, or the queue was closed.
    work: Condvar,
    /// Something was taken from the queue.
    room: Condvar,
    /// As many wait as who has the turn waits for.
    gathered: Condvar,
    /// When the next group begins.
    pace: Pace,
    /// Whether records find room. Rank 3.
    shortage: Arc<Shortage>,
    /// The log, while a group is brought to the disk. Rank 0.
    log: Mutex<LogWriter>,
    /// Protects the state between groups. Rank 1. `None` after closing.
    committer: Mutex<Option<Committer>>,
    /// Roots that nobody may read any more.
    farewell: Arc<Farewell>,
    /// Since when transactions are under way.
    beginnings: Arc<Beginnings>,
    /// True if threads run [`CommitQueue::run`].
    has_thread: AtomicBool,
    /// True if records have to be encoded.
    has_log: bool,
    writer: u64,
    /// Why writes are refused. Rank 3.
    failure: Mutex<Option<String>>,
    /// True if there is a failure.
    has_failed: AtomicBool,
    /// The data directory, the same for work that nobody waits for, and the number of the store in it.
    disk: Option<Arc<dyn Disk>>,
    gentle_disk: Option<Arc<dyn Disk>>,
    store: u64,
    next_unique: AtomicU64,
    /// Tells records their time.
    clock: Arc<dyn Clock>,
    /// Whom to tell that there may be tasks; `None` without a thread for them. Rank 3.
    tasks: Mutex<Option<std::sync::mpsc::Sender<()>>>,
}

struct Waiting {
    jobs: VecDeque<(usize, Job)>,
    bytes: usize,
    next_sequence: u64,
    /// The time of the newest record; times never go back.
    time_ms: u64,
    closed: bool,
    /// Somebody has the turn.
    is_taken: bool,
    /// Commit threads that wait for work.
    idle: usize,
    /// Committers that wait for room.
    for_room: usize,
    /// Who was answered and may be back soon.
    returning: Returning,
    /// How many who has the turn waits for; the largest number if for nobody.
    expected: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic inside poisons the store itself, see `work_off`; the lock needs no second memory of it.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CommitQueue {
    /// A queue in front of a committer that has begun its epoch at `time_ms`. Its flushes are noted in `traffic`.
    pub(crate) fn new(
        mut committer: Committer,
        sync: SyncPolicy,
        store: u64,
        time_ms: u64,
        traffic: Arc<Traffic>,
    ) -> CommitQueue {
        let disk = committer.state.disk.clone();
        let gentle = |disk| Arc::new(GentleDisk::new(disk, traffic.clone())) as Arc<dyn Disk>;
        let gentle_disk = disk.clone().map(gentle);
        let shortage = Arc::new(Shortage::new(disk.clone()));
        let log = committer.log.take();
        // Behind the epoch that this opening wrote to the log, and so behind all numbers of earlier ones; positions have 48 bits.
        let next_unique = AtomicU64::new(1 << 63 | committer.state.last_ts.0 << UNIQUE_BITS);
        let waiting = Waiting {
            jobs: VecDeque::new(),
            bytes: 0,
            next_sequence: 1,
            time_ms,
            closed: false,
            is_taken: false,
            idle: 0,
            for_room: 0,
            returning: Returning::new(),
            expected: usize::MAX,
        };
        CommitQueue {
            waiting: Mutex::new(waiting),
            work: Condvar::new(),
            room: Condvar::new(),
            gathered: Condvar::new(),
            pace: Pace::new(),
            farewell: committer.farewell.clone(),
            beginnings: committer.begun.shared().clone(),
            has_thread: AtomicBool::new(false),
            has_log: log.is_some(),
            log: Mutex::new(LogWriter { log, sync, traffic, shortage: shortage.clone() }),
            shortage,
            writer: committer.writer,
            disk,
            gentle_disk,
            clock: committer.clock.clone(),
            store,
            next_unique,
            committer: Mutex::new(Some(committer)),
            failure: Mutex::new(None),
            has_failed: AtomicBool::new(false),
            tasks: Mutex::new(None),
        }
    }

    /// From now on two threads work the queue off; they must call [`CommitQueue::run`].
    pub(crate) fn expect_threads(&self) {
        self.has_thread.store(true, Ordering::Release);
    }

    /// From now on a thread works on tasks; it must call [`crate::schema::run_tasks`] with the other end.
    pub(crate) fn expect_task_thread(&self, wanted: std::sync::mpsc::Sender<()>) {
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

    /// Where roots go that were replaced.
    pub(crate) fn farewell(&self) -> &Arc<Farewell> {
        &self.farewell
    }

    /// To be held by a transaction from before it takes its snapshot, until its commit takes it over.
    pub(crate) fn beginning(&self) -> Arc<Beginning> {
        self.beginnings.newest()
    }

    /// Commits and waits for the outcome.
    pub(crate) fn commit(&self, body: Body) -> Result<CommitTs, StoreError> {
        self.commit_and_wait(body, Vec::new(), None)
    }

    /// As [`CommitQueue::commit`], what a transaction wrote.
    pub(crate) fn commit_begun(&self, body: Body, begun: Option<Arc<Beginning>>) -> Result<CommitTs, StoreError> {
        self.commit_and_wait(body, Vec::new(), begun)
    }

    /// As [`CommitQueue::commit`], with facts that are remembered with it.
    pub(crate) fn commit_with_facts(&self, body: Body, facts: Vec<Fact>) -> Result<CommitTs, StoreError> {
        self.commit_and_wait(body, facts, None)
    }

    fn commit_and_wait(
        &self,
        body: Body,
        facts: Vec<Fact>,
        begun: Option<Arc<Beginning>>,
    ) -> Result<CommitTs, StoreError> {
        let (sleeper, caller) = Sleeper::here();
        self.submit(body, facts, begun, Waits::ByItself, caller);
        sleeper.wait()
    }

    /// Commits what a transaction wrote; `callback` is told the outcome.
    pub(crate) fn commit_with(&self, body: Body, begun: Option<Arc<Beginning>>, callback: CommitCallback) {
        self.submit(body, Vec::new(), begun, Waits::ForCallback, Caller::to_call(callback));
    }

    /// Queues a batch of a bulk load, with facts that are remembered with it. `callback` is told its outcome before it is
    /// durable.
    pub(crate) fn commit_later(&self, body: Body, facts: Vec<Fact>, callback: CommitCallback) {
        self.submit(body, facts, None, Waits::ForBarrier, Caller::to_call(callback));
    }

    /// Waits until all that was queued before is durable and visible.
    pub(crate) fn barrier(&self) -> Result<CommitTs, StoreError> {
        let (sender, receiver) = mpsc::channel();
        self.push(0, Waits::ForCallback, |_, _| {
            Job::Barrier(Caller::to_call(Box::new(move |outcome| drop(sender.send(outcome)))))
        });
        self.wait_for(&receiver)?
    }

    /// Builds a base for a graph. `generation` is never used twice for it.
    pub(crate) fn base_builder(&self, graph: u32, layout: IdLayout, generation: u64) -> BaseBuilder {
        BaseBuilder::new(self.disk.clone(), SegmentOrigin { store: self.store, graph }, layout, generation)
    }

    /// As [`CommitQueue::base_builder`], for a base that is built beside commits.
    pub(crate) fn gentle_base_builder(&self, graph: u32, layout: IdLayout, generation: u64) -> BaseBuilder {
        BaseBuilder::new(self.gentle_disk.clone(), SegmentOrigin { store: self.store, graph }, layout, generation)
    }

    /// Removes files that no record names. What cannot be removed is left to the next start.
    pub(crate) fn remove_files(&self, names: &[Arc<str>]) {
        if let Some(disk) = &self.disk {
            names.iter().for_each(|name| drop(disk.remove(name)));
        }
    }

    /// A number that no other caller of this queue gets, and that no earlier opening of the store gave.
    pub(crate) fn unique_number(&self) -> u64 {
        self.next_unique.fetch_add(1, Ordering::Relaxed)
    }

    /// Runs `inspect` on the committer between two groups and waits for its answer.
    pub(crate) fn inspect<T: Send + 'static>(
        &self,
        inspect: impl FnOnce(&mut Committer) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let (sender, receiver) = mpsc::channel();
        let task = move |committer: &mut Committer| drop(sender.send(inspect(committer)));
        self.push(0, Waits::ForCallback, |_, _| Job::Inspect(Box::new(task)));
        self.wait_for(&receiver)
    }

    /// `Ok` if writes are accepted.
    pub(crate) fn writable(&self) -> Result<(), StoreError> {
        if let Some(error) = self.failure() {
            return Err(error);
        }
        if lock(&self.waiting).closed { Err(StoreError::Closed) } else { Ok(()) }
    }

    /// As [`CommitQueue::writable`], and whether records find room on the disk, to which this may write.
    pub(crate) fn has_room(&self) -> Result<(), StoreError> {
        self.writable().and_then(|()| self.shortage.look())
    }

    /// Refuses writes from now on.
    pub(crate) fn poison(&self, cause: String) {
        lock(&self.failure).get_or_insert(cause);
        self.has_failed.store(true, Ordering::Release);
    }

    fn failure(&self) -> Option<StoreError> {
        if !self.has_failed.load(Ordering::Acquire) {
            return None;
        }
        lock(&self.failure).clone().map(|cause| StoreError::Poisoned { cause })
    }

    /// Accepts no more jobs; those queued are still done.
    pub(crate) fn close(&self) {
        lock(&self.waiting).closed = true;
        // Ends the thread that works on tasks.
        drop(lock(&self.tasks).take());
        self.work.notify_all();
        self.room.notify_all();
        self.farewell.close();
    }

    /// Takes the committer, with the log, out of a closed queue, after its threads have ended.
    pub(crate) fn take_committer(&self) -> Option<Committer> {
        self.has_thread.store(false, Ordering::Release);
        self.work_off();
        let log = lock(&self.log).log.take();
        let mut committer = lock(&self.committer).take()?;
        committer.log = committer.log.or(log);
        Some(committer)
    }

    /// A commit thread: works until the queue is closed and empty.
    pub(crate) fn run(&self) {
        let mut waiting = lock(&self.waiting);
        loop {
            while waiting.jobs.is_empty() || waiting.is_taken {
                if waiting.closed && waiting.jobs.is_empty() {
                    drop(waiting);
                    // The other thread may have found something when the queue was closed, which is done by now.
                    self.work.notify_all();
                    return;
                }
                waiting.idle += 1;
                waiting = self.work.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                waiting.idle -= 1;
            }
            self.take_turn(waiting);
            // Whatever waits now is for this thread, unless somebody was faster.
            waiting = lock(&self.waiting);
        }
    }

    /// Does one group. Nobody has the turn; whoever calls this looks after what waits then.
    fn take_turn(&self, mut waiting: MutexGuard<'_, Waiting>) {
        waiting.is_taken = true;
        let mut waiting = self.gather(waiting);
        let jobs = self.take_group(&mut waiting);
        drop(waiting);
        if !self.commit_group(lock(&self.log), jobs) {
            lock(&self.waiting).is_taken = false;
        }
        self.farewell.release();
    }

    /// Waits a little for those who were just answered and come back.
    fn gather<'a>(&self, mut waiting: MutexGuard<'a, Waiting>) -> MutexGuard<'a, Waiting> {
        while !cfg!(shuttle)
            && !waiting.closed
            && let Some((expected, patience)) = waiting.returning.missing(waiting.jobs.len(), Instant::now)
        {
            waiting.expected = expected;
            waiting = self.gathered.wait_timeout(waiting, patience).unwrap_or_else(PoisonError::into_inner).0;
            waiting.expected = usize::MAX;
        }
        waiting
    }

    /// Ends the turn before the group is done, if something waits for the next one; true if so.
    fn pass_turn(&self) -> bool {
        let mut waiting = lock(&self.waiting);
        let is_passed = waiting.is_taken && !waiting.jobs.is_empty();
        if is_passed {
            waiting.is_taken = false;
            self.want_work(waiting);
        }
        is_passed
    }

    /// Wakes a commit thread, if it can do something.
    fn want_work(&self, waiting: MutexGuard<'_, Waiting>) {
        let is_wanted = !waiting.is_taken && !waiting.jobs.is_empty() && waiting.idle > 0;
        drop(waiting);
        if is_wanted {
            self.work.notify_one();
        }
    }

    fn submit(&self, body: Body, facts: Vec<Fact>, begun: Option<Arc<Beginning>>, waits: Waits, caller: Caller) {
        let mut bytes = Vec::new();
        if self.has_log {
            bytes = encode_record(&body, &facts);
            if bytes.len() > RECORD_BYTES_LIMIT {
                return caller.tell(Err(StoreError::LimitReached {
                    what: "bytes in one transaction (commit in smaller parts)".to_string(),
                    limit: RECORD_BYTES_LIMIT as u64,
                }));
            }
        }
        let awaited = waits != Waits::ForBarrier;
        self.push(bytes.len(), waits, |sequence, time_ms| {
            if self.has_log {
                *time_ms = self.clock.epoch_millis().max(*time_ms);
                set_record_header(&mut bytes, self.writer, sequence, *time_ms);
            }
            Job::Write(Submission { bytes, sequence, body, facts, begun, awaited, caller })
        });
    }

    /// Queues a job, waiting for room. Jobs are queued in the order of their sequence numbers and times; `job` is given the
    /// number, and the time of the newest record, which it moves on.
    fn push(&self, bytes: usize, waits: Waits, job: impl FnOnce(u64, &mut u64) -> Job) {
        let mut answers = Answers::default();
        let mut waiting = lock(&self.waiting);
        while self.has_thread.load(Ordering::Acquire) && !waiting.closed && waiting.bytes > QUEUE_BYTES_LIMIT {
            waiting.for_room += 1;
            waiting = self.room.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            waiting.for_room -= 1;
        }
        let sequence = waiting.next_sequence;
        let job = job(sequence, &mut waiting.time_ms);
        let refused = if waiting.closed {
            Some(StoreError::Closed)
        } else {
            // Inspections are refused as well: a checkpoint or a new base would make durable, or show to readers, what the log
            // may have lost.
            self.failure()
        };
        match refused {
            Some(error) => job.answer(Err(error), &mut answers),
            None => {
                if matches!(job, Job::Write(_)) {
                    waiting.next_sequence += 1;
                }
                waiting.bytes += bytes;
                waiting.jobs.push_back((bytes, job));
                waiting.returning.comes(Instant::now);
                if waiting.jobs.len() >= waiting.expected {
                    self.gathered.notify_one();
                }
            }
        }
        if !self.has_thread.load(Ordering::Acquire) {
            drop(waiting);
            self.work_off();
        } else if waits == Waits::ByItself && waiting.jobs.len() == 1 && !waiting.is_taken {
            self.take_turn(waiting);
            self.want_work(lock(&self.waiting));
        } else {
            self.want_work(waiting);
        }
        answers.tell();
    }

    fn wait_for<T>(&self, receiver: &mpsc::Receiver<T>) -> Result<T, StoreError> {
        receiver.recv().map_err(|_| match self.writable() {
            Err(error) => error,
            Ok(()) => StoreError::Closed,
        })
    }

    /// Does all that waits, group by group, where there are no commit threads.
    fn work_off(&self) {
        loop {
            let log = lock(&self.log);
            let jobs = self.take_group(&mut lock(&self.waiting));
            if jobs.is_empty() {
                return;
            }
            self.commit_group(log, jobs);
        }
    }

    /// Commits a group and answers it. True if the other commit thread has the next turn.
    fn commit_group(&self, mut log: MutexGuard<'_, LogWriter>, jobs: Vec<Job>) -> bool {
        let mut answers = Answers::default();
        let logged = match self.failure() {
            None => self.or_poison(|| log.write_group(jobs, &mut answers)),
            Some(error) => {
                jobs.into_iter().for_each(|job| job.answer(Err(error.clone()), &mut answers));
                None
            }
        };
        let is_passed = match logged {
            Some(group) => self.apply_group(log, group, &mut answers),
            None => {
                drop(log);
                false
            }
        };
        answers.tell();
        is_passed
    }

    /// Applies a group that is in the log; of a long one those who sleep are answered part by part. True if the other commit thread has the next turn.
    fn apply_group(&self, log: MutexGuard<'_, LogWriter>, mut group: LoggedGroup, answers: &mut Answers) -> bool {
        group.logged_in.into_iter().for_each(|time| self.pace.logged(time));
        let ahead = self.pace.ahead();
        let mut left = group.weight();
        let is_long = left > ahead && !group.inspects();
        let part_weight = if is_long { PART } else { usize::MAX };
        let mut is_passed = false;
        let mut committer = lock(&self.committer);
        let mut with_log = group.inspects().then_some(log);
        match (committer.as_mut(), self.failure()) {
            (Some(committer), None) => {
                self.or_poison(|| {
                    let mut swap_log = |committer: &mut Committer| {
                        if let Some(writer) = &mut with_log {
                            std::mem::swap(&mut writer.log, &mut committer.log);
                        }
                    };
                    swap_log(committer);
                    while let Some(part) = group.next_part(part_weight) {
                        let (weight, begun) = (part.weight(), Instant::now());
                        left -= weight;
                        if is_long && !is_passed && left <= ahead {
                            is_passed = self.pass_turn();
                        }
                        committer.apply_group(part, answers);
                        if is_long {
                            answers.tell_sleepers();
                        }
                        self.pace.applied(weight, begun.elapsed());
                    }
                    swap_log(committer);
                    Ok(())
                });
            }
            (Some(_), Some(error)) => group.refuse(&error, answers),
            (None, _) => group.refuse(&StoreError::Closed, answers),
        }
        if !is_long && self.has_thread.load(Ordering::Acquire) {
            let mut waiting = lock(&self.waiting);
            let others = waiting.jobs.len();
            waiting.returning.answering(answers.len(), others, Instant::now(), self.pace.patience());
        }
        is_passed
    }

    /// Does a part of a commit. If it fails, or panics, what the log or the state holds is unknown: writes are refused from then on, and
    /// readers keep the last published roots.
    fn or_poison<T>(&self, work: impl FnOnce() -> Result<T, StoreError>) -> Option<T> {
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(done)) => return Some(done),
            Ok(Err(error)) => self.poison(error.to_string()),
            Err(_) => self.poison("a bug in the store stopped a commit thread".to_string()),
        }
        None
    }

    fn take_group(&self, waiting: &mut Waiting) -> Vec<Job> {
        let mut group = Vec::with_capacity(waiting.jobs.len());
        let mut bytes = 0;
        while let Some((size, job)) = waiting.jobs.pop_front() {
            bytes += size;
            group.push(job);
            if bytes > GROUP_BYTES_LIMIT {
                break;
            }
        }
        waiting.bytes -= bytes;
        if waiting.for_room > 0 {
            self.room.notify_all();
        }
        group
    }
}

/// How a committer waits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    /// Its thread has nothing else to do.
    ByItself,
    /// It is called back.
    ForCallback,
    /// Not now: it is told by a later barrier.
    ForBarrier,
}

impl std::fmt::Debug for CommitQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommitQueue").field("writable", &self.writable()).finish_non_exhaustive()
    }
}

#[cfg(all(test, shuttle))]
mod interleavings;
