//! Commits by several threads in many orders of events: everybody is answered, after what they committed is durable and can be seen; nobody waits
//! for ever (the scheduler reports a deadlock).
//!
//! Run with `RUSTFLAGS="--cfg shuttle" cargo test -p ficus-storage --lib interleavings`. A failure prints a schedule that repeats it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex as PlainMutex, PoisonError, RwLock};

use shuttle::thread;

use super::CommitQueue;
use crate::beginning::HeldBeginnings;
use crate::committer::{CheckpointTrigger, Committer, Directory, State};
use crate::farewell::Farewell;
use crate::log::{Log, LogPosition};
use crate::mutation::Body;
use crate::versions::Retention;
use crate::{CommitTs, StoreError, SyncPolicy, SystemClock};

/// Orders of events that are tried.
const RUNS: usize = 3_000;

/// What a log knows.
#[derive(Default)]
struct Written {
    tail: u64,
    durable: u64,
    fails_after: Option<u64>,
}

/// A log whose every call may be interrupted by others.
struct SlowLog(Arc<PlainMutex<Written>>);

impl SlowLog {
    fn with<T>(&self, look: impl FnOnce(&mut Written) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Log for SlowLog {
    fn append_group(&mut self, records: &[&[u8]]) -> Result<Vec<LogPosition>, StoreError> {
        thread::yield_now();
        self.with(|written| {
            let positions = records.iter().map(|_| {
                written.tail += 1;
                LogPosition(written.tail)
            });
            Ok(positions.collect())
        })
    }

    fn barrier(&mut self) -> Result<(), StoreError> {
        let tail = self.with(|written| written.tail);
        thread::yield_now();
        self.with(|written| {
            if written.fails_after.is_some_and(|last| tail > last) {
                return Err(StoreError::Poisoned { cause: "the disk of the test is gone".to_string() });
            }
            written.durable = tail;
            Ok(())
        })
    }

    fn ready_bytes(&self) -> u64 {
        0
    }

    fn tail(&self) -> LogPosition {
        LogPosition(self.with(|written| written.tail + 1))
    }

    fn trim(&mut self, _position: LogPosition) -> Vec<String> {
        Vec::new()
    }

    fn close(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

struct Bench {
    queue: Arc<CommitQueue>,
    directory: Arc<Directory>,
    written: Arc<PlainMutex<Written>>,
}

impl Bench {
    fn new(fails_after: Option<u64>) -> Bench {
        let written = Arc::new(PlainMutex::new(Written { fails_after, ..Written::default() }));
        let directory: Arc<Directory> = Arc::new(RwLock::new(BTreeMap::new()));
        let mut committer = Committer {
            state: State::default(),
            log: Some(Box::new(SlowLog(written.clone()))),
            checkpoints: CheckpointTrigger::default(),
            writer: 7,
            directory: directory.clone(),
            clock: Arc::new(SystemClock),
            retention: Retention { millis: 0, versions: 0 },
            farewell: Arc::new(Farewell::default()),
            begun: HeldBeginnings::new(CommitTs(0)),
        };
        committer.begin_epoch(0).expect("the log of a new store takes an epoch");
        let queue = Arc::new(CommitQueue::new(committer, SyncPolicy::Always, 1, 0, Arc::default()));
        queue.expect_threads();
        Bench { queue, directory, written }
    }

    fn commit_threads(&self) -> Vec<thread::JoinHandle<()>> {
        let of = |queue: Arc<CommitQueue>| thread::spawn(move || queue.run());
        (0..2).map(|_| of(self.queue.clone())).collect()
    }

    /// Whoever was told of a commit can see it, and it is on the disk.
    fn check(directory: &Directory, written: &PlainMutex<Written>, name: &str, ts: CommitTs) {
        let durable = written.lock().unwrap_or_else(PoisonError::into_inner).durable;
        assert!(ts.0 <= durable, "{name} was acknowledged at {} when {durable} was durable", ts.0);
        let listed = directory.read().unwrap_or_else(PoisonError::into_inner);
        assert!(listed.contains_key(name), "{name} was acknowledged before it could be seen");
    }
}

fn create(name: &str) -> Body {
    Body::CreateGraph { name: Arc::from(name), tablet_bits: 0 }
}

/// Two threads that wait for one commit each: nobody comes later and wakes whom they forgot.
fn two_commits() {
    let bench = Bench::new(None);
    let commit_threads = bench.commit_threads();
    let of = |name: &'static str| {
        let (queue, directory, written) = (bench.queue.clone(), bench.directory.clone(), bench.written.clone());
        thread::spawn(move || {
            let ts = queue.commit(create(name)).expect("the log takes it");
            Bench::check(&directory, &written, name, ts);
        })
    };
    let users = [of("a"), of("b")];
    users.into_iter().for_each(|user| user.join().expect("a user ends"));
    bench.queue.close();
    commit_threads.into_iter().for_each(|thread| thread.join().expect("a commit thread ends"));
}

/// Three threads that wait, one that is called back, one barrier.
fn commits(fails_after: Option<u64>) {
    let bench = Bench::new(fails_after);
    let commit_threads = bench.commit_threads();
    let may_fail = fails_after.is_some();
    let mut users = Vec::new();
    for user in 0..3 {
        let (queue, directory, written) = (bench.queue.clone(), bench.directory.clone(), bench.written.clone());
        users.push(thread::spawn(move || {
            for number in 0..2 {
                let name = format!("{user}-{number}");
                match queue.commit(create(&name)) {
                    Ok(ts) => Bench::check(&directory, &written, &name, ts),
                    Err(error) => assert!(may_fail, "{error}"),
                }
            }
        }));
    }
    let (queue, directory, written) = (bench.queue.clone(), bench.directory.clone(), bench.written.clone());
    users.push(thread::spawn(move || {
        let (sender, receiver) = shuttle::sync::mpsc::channel();
        queue.commit_with(create("called back"), None, Box::new(move |outcome| sender.send(outcome).expect("heard")));
        match receiver.recv().expect("everybody is called back") {
            Ok(ts) => Bench::check(&directory, &written, "called back", ts),
            Err(error) => assert!(may_fail, "{error}"),
        }
        let all = queue.barrier();
        assert!(all.is_ok() || may_fail, "{all:?}");
    }));
    users.into_iter().for_each(|user| user.join().expect("a user ends"));
    bench.queue.close();
    commit_threads.into_iter().for_each(|thread| thread.join().expect("a commit thread ends"));
    let committer = bench.queue.take_committer().expect("it was there");
    let listed = committer.state.graphs.len();
    assert!(listed == 7 || may_fail && listed < 7, "{listed} graphs");
}

#[test]
fn the_last_is_answered() {
    shuttle::check_random(two_commits, 10 * RUNS);
    shuttle::check_pct(two_commits, RUNS, 3);
}

#[test]
fn everybody_is_answered() {
    shuttle::check_random(|| commits(None), RUNS);
    shuttle::check_pct(|| commits(None), RUNS, 3);
}

#[test]
fn everybody_is_answered_when_the_disk_fails() {
    shuttle::check_random(|| commits(Some(3)), RUNS);
}
