//! The two halves of a commit: the log, to which a group of records is appended and flushed once, and the state, to which they are applied in log
//! order; the new roots are published. Who does when what is decided in [`crate::commit_queue`].
//!
//! The same [`State::apply`] runs on a live record and on one that is read back at start, so recovery cannot differ from
//! what was acknowledged.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::Sender;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use crate::answers::{Answers, Caller};
use crate::apply::apply_write;
use crate::base::{Base, BaseFiles};
use crate::beginning::{Beginning, HeldBeginnings};
use crate::consolidation::{KeptWrites, is_due};
use crate::damage_mark::or_damage;
use crate::environment::Disk;
use crate::farewell::Farewell;
use crate::gentle_disk::Traffic;
use crate::graph::Published;
use crate::log::{Log, LogPosition, RECORD_HEADER_BYTES, set_record_header};
use crate::mutation::{AttachBase, Body, Fact, GraphWrite, Record};
use crate::resolver::Resolver;
use crate::root::GraphRoot;
use crate::schema::apply_change;
use crate::shortage::Shortage;
use crate::string_pool::StringPool;
use crate::tablet::IdLayout;
use crate::versions::Retention;
use crate::words::{WORD_BYTES_LIMIT, Words};
use crate::{Clock, CommitTs, StoreError, SyncPolicy};

/// Mutations of a bulk load that may be applied before readers get to see them. Publishing makes every page that is
/// touched next be copied once, so it should not happen for every batch.
const UNPUBLISHED_LIMIT: u64 = 1 << 19;

/// Writes that the resolver remembers before it is worth looking which of them it can forget.
const FORGET_AFTER: usize = 1 << 10;

/// What waits in the commit queue.
pub(crate) enum Job {
    /// A record for the log.
    Write(Submission),
    /// Makes durable and visible all that was queued before.
    Barrier(Caller),
    /// Looks at the state between two groups of commits.
    Inspect(Box<dyn FnOnce(&mut Committer) + Send>),
}

impl Job {
    fn submission(&self) -> Option<&Submission> {
        match self {
            Job::Write(submission) => Some(submission),
            Job::Barrier(_) | Job::Inspect(_) => None,
        }
    }

    /// What applying it costs, in mutations.
    fn weight(&self) -> usize {
        match self.submission().map(|submission| &submission.body) {
            Some(Body::Write(write)) => write.mutations.len().max(1),
            _ => 1,
        }
    }

    /// Has its caller told the outcome.
    pub(crate) fn answer(self, outcome: Result<CommitTs, StoreError>, answers: &mut Answers) {
        match self {
            Job::Write(Submission { caller, .. }) | Job::Barrier(caller) => answers.push(caller, outcome),
            // Who waits learns it from the channel that is dropped.
            Job::Inspect(_) => {}
        }
    }

    /// True if somebody waits until it is durable.
    fn is_awaited(&self) -> bool {
        match self {
            Job::Write(submission) => submission.awaited,
            Job::Barrier(_) => true,
            Job::Inspect(_) => false,
        }
    }
}

/// A record on its way to the log.
pub(crate) struct Submission {
    /// The encoded record with room for writer and sequence; empty if there is no log.
    pub(crate) bytes: Vec<u8>,
    /// Counts this writer's records.
    pub(crate) sequence: u64,
    /// What it asks for.
    pub(crate) body: Body,
    /// What is to be remembered with it.
    pub(crate) facts: Vec<Fact>,
    /// Since when the transaction was under way that wrote it: held until it is decided, so that the resolver remembers enough.
    pub(crate) begun: Option<Arc<Beginning>>,
    /// False for a batch of a bulk load, which is made durable and visible by a later barrier or commit.
    pub(crate) awaited: bool,
    /// Told the outcome.
    pub(crate) caller: Caller,
}

/// A graph as the directory lists it.
#[derive(Clone, Debug)]
pub(crate) struct DirectoryEntry {
    pub(crate) number: u32,
    pub(crate) name: Arc<str>,
    pub(crate) published: Arc<Published>,
}

/// The graphs by name. Rank: taken for a moment, with no other lock taken inside.
pub(crate) type Directory = RwLock<BTreeMap<Arc<str>, DirectoryEntry>>;

/// One graph at the newest applied record.
#[derive(Debug)]
pub(crate) struct CommittedGraph {
    pub(crate) name: Arc<str>,
    pub(crate) root: Arc<GraphRoot>,
    pub(crate) published: Arc<Published>,
    /// Mutations applied since the root was published.
    pub(crate) unpublished: u64,
    /// Writes since a consolidation of this graph began; `None` if none is under way.
    pub(crate) kept: Option<KeptWrites>,
    /// Facts that committed with writes, by name.
    pub(crate) facts: BTreeMap<Arc<str>, Arc<[u8]>>,
    /// The damage because of which this is not what was committed: records are not applied to it any more, until it is cleared, and no checkpoint
    /// may forget the log that has them.
    pub(crate) unrestored: Option<StoreError>,
}

impl CommittedGraph {
    /// Says that the graph's state is lost, as far as its files and the log do not have it, since a file is damaged.
    fn lose(&mut self, error: &StoreError, retired_files: &mut Vec<Arc<str>>) {
        KeptWrites::cancel(&mut self.kept, retired_files);
        self.unpublished = 0;
        self.unrestored = Some(error.clone());
        self.published.damage.note(error);
    }

    /// Whether a consolidation can do anything for it.
    pub(crate) fn is_sound(&self) -> bool {
        self.unrestored.is_none() && self.published.damage.get().is_none()
    }
}

/// All that the log determines: the whole state at one log position.
#[derive(Default)]
pub(crate) struct State {
    /// The newest applied record.
    pub(crate) last_ts: CommitTs,
    /// By number.
    pub(crate) graphs: BTreeMap<u32, CommittedGraph>,
    /// The number of the next graph.
    pub(crate) next_graph: u32,
    /// The newest epoch.
    pub(crate) epoch: u64,
    /// Writers of this epoch with the last sequence applied of each.
    pub(crate) writers: BTreeMap<u64, u64>,
    pub(crate) resolver: Resolver,
    pub(crate) strings: StringPool,
    /// Where files that records name are found; `None` in memory.
    pub(crate) disk: Option<Arc<dyn Disk>>,
    /// Indexes got files that the newest checkpoint does not name.
    pub(crate) has_new_indexes: bool,
    /// Files of bases that no graph has any more. A checkpoint or the log may still name them until the next checkpoint stands.
    pub(crate) retired_files: Vec<Arc<str>>,
}

impl State {
    /// Applies the record at `position`. The answer, abort included, depends on the log alone. `Ok(false)` tells that the
    /// record is a duplicate or of a fenced writer, and was dropped.
    pub(crate) fn apply(&mut self, record: Record, position: LogPosition) -> Result<bool, StoreError> {
        let ts = CommitTs(position.0);
        assert!(ts > self.last_ts, "log positions ascend");
        self.last_ts = ts;
        if let Body::Epoch { epoch, forgets } = record.body {
            if epoch > self.epoch {
                self.epoch = epoch;
                if forgets {
                    self.resolver.begin_epoch();
                }
                self.writers = BTreeMap::from([(record.writer, record.sequence)]);
                return Ok(true);
            }
            return Ok(false);
        }
        match self.writers.get_mut(&record.writer) {
            Some(last) if *last < record.sequence => *last = record.sequence,
            _ => return Ok(false),
        }
        let graph = match &record.body {
            Body::Write(write) => Some(write.graph),
            Body::AttachBase(attach) => Some(attach.graph),
            _ => None,
        };
        self.apply_unless_damaged(record.body, ts)?;
        if let Some(graph) = graph.and_then(|number| self.graphs.get_mut(&number)) {
            for (name, content) in record.facts {
                match content.is_empty() {
                    true => graph.facts.remove(&name),
                    false => graph.facts.insert(name, content),
                };
            }
        }
        Ok(true)
    }

    /// As [`State::apply_body`]. If a file of the graph turns out to be damaged, that graph is lost, and no other.
    fn apply_unless_damaged(&mut self, body: Body, ts: CommitTs) -> Result<(), StoreError> {
        let number = match &body {
            Body::Write(write) => Some(write.graph),
            Body::AttachBase(attach) => Some(attach.graph),
            Body::CreateIndex { graph, .. } | Body::Schema { graph, .. } => Some(*graph),
            Body::CreateGraph { .. } | Body::DropGraph { .. } | Body::ClearGraph { .. } | Body::Epoch { .. } => None,
        };
        let lost = number.and_then(|number| self.graphs.get(&number)?.unrestored.clone());
        lost.map_or(Ok(()), Err)?;
        let outcome = catch_unwind(AssertUnwindSafe(|| self.apply_body(body, ts)));
        let Some(graph) = number.and_then(|number| self.graphs.get_mut(&number)) else {
            return outcome.unwrap_or_else(|panic| resume_unwind(panic));
        };
        let outcome = or_damage(outcome, &graph.root);
        if let Err(error @ StoreError::Corrupt { .. }) = &outcome {
            graph.lose(error, &mut self.retired_files);
        }
        outcome
    }

    /// Says that a graph is lost since a file of it is damaged.
    pub(crate) fn lose(&mut self, graph: u32, error: &StoreError) {
        if let Some(graph) = self.graphs.get_mut(&graph) {
            graph.lose(error, &mut self.retired_files);
        }
    }

    /// Why some graph is not what was committed to it.
    pub(crate) fn lost(&self) -> Option<&StoreError> {
        self.graphs.values().find_map(|graph| graph.unrestored.as_ref())
    }

    fn apply_body(&mut self, body: Body, ts: CommitTs) -> Result<(), StoreError> {
        if !matches!(body, Body::Write(_)) {
            // A consolidation can apply writes once more, and nothing else.
            let graphs = self.graphs.values_mut();
            graphs.for_each(|graph| KeptWrites::cancel(&mut graph.kept, &mut self.retired_files));
        }
        match body {
            Body::Write(write) => {
                let graph = graph_mut(&mut self.graphs, write.graph)?;
                self.resolver.check(&write, &graph.root)?;
                self.resolver.remember_write(&write, &graph.root, ts);
                graph.unpublished += write.mutations.len().max(1) as u64;
                if let Some(kept) = &mut graph.kept {
                    kept.keep(&write, ts);
                }
                let root = Arc::make_mut(&mut graph.root);
                apply_write(write, root, &mut self.strings);
                root.commit_ts = ts;
            }
            Body::CreateGraph { name, tablet_bits } => {
                if self.graphs.values().any(|graph| graph.name == name) {
                    return Err(StoreError::GraphExists { name: name.to_string() });
                }
                let mut root = GraphRoot::empty(IdLayout { tablet_bits });
                root.commit_ts = ts;
                let root = Arc::new(root);
                let published = Arc::new(Published::new(root.clone()));
                let (kept, facts, unrestored) = Default::default();
                let graph = CommittedGraph { name, root, published, unpublished: 1, kept, facts, unrestored };
                self.graphs.insert(self.next_graph, graph);
                self.next_graph += 1;
            }
            Body::DropGraph { graph } => {
                let dropped = graph_mut(&mut self.graphs, graph)?.root.clone();
                self.graphs.remove(&graph);
                self.retire(&dropped);
                self.resolver.fence(ts);
            }
            Body::ClearGraph { graph } => {
                let graph = graph_mut(&mut self.graphs, graph)?;
                let mut root = graph.root.cleared();
                root.commit_ts = ts;
                let cleared = std::mem::replace(&mut graph.root, Arc::new(root));
                graph.unpublished += 1;
                graph.facts.clear();
                graph.unrestored = None;
                self.retire(&cleared);
                self.resolver.fence(ts);
            }
            Body::CreateIndex { graph, label, key } => {
                let graph = graph_mut(&mut self.graphs, graph)?;
                let root = Arc::make_mut(&mut graph.root);
                if let Some(label) = &label {
                    check_word(label)?;
                    Words::check_word(&root.words.labels, "vertex label", label)?;
                }
                check_word(&key)?;
                Words::check_word(&root.words.keys, "property key", &key)?;
                let label = label.map(|label| root.words.intern_label(&label));
                let key = root.words.intern_key(&key);
                root.create_index(label, key);
                root.commit_ts = ts;
                graph.unpublished += 1;
            }
            Body::AttachBase(attach) => {
                self.attach(attach, ts)?;
            }
            Body::Schema { graph: number, change, tells_words } => {
                let graph = graph_mut(&mut self.graphs, number)?;
                let (words, files) = (graph.root.words.clone(), graph.root.files());
                let changed = apply_change(change, Arc::make_mut(&mut graph.root));
                // Some words may be new even if the change is refused.
                if !Arc::ptr_eq(&words, &graph.root.words) {
                    // New words have their numbers from here on, which a consolidation under way does not know.
                    KeptWrites::cancel(&mut graph.kept, &mut self.retired_files);
                    graph.unpublished += 1;
                    if tells_words {
                        self.resolver.remember_words(number, &words, &graph.root.words, ts);
                        Arc::make_mut(&mut graph.root).commit_ts = ts;
                    }
                }
                let removals = changed?;
                retire_lost(&files, &graph.root, &mut self.retired_files);
                graph.unpublished += 1;
                if !removals.is_empty() {
                    let write = GraphWrite { graph: number, mutations: removals, ..GraphWrite::default() };
                    self.resolver.remember_write(&write, &graph.root, ts);
                    graph.unpublished += write.mutations.len() as u64;
                    if let Some(kept) = &mut graph.kept {
                        kept.keep(&write, ts);
                    }
                    let root = Arc::make_mut(&mut graph.root);
                    apply_write(write, root, &mut self.strings);
                    root.commit_ts = ts;
                }
            }
            Body::Epoch { .. } => {}
        }
        Ok(())
    }
}

impl State {
    /// Puts the base that a record names under a graph, if that has no elements.
    fn attach(&mut self, attach: AttachBase, ts: CommitTs) -> Result<(), StoreError> {
        let graph = graph_mut(&mut self.graphs, attach.graph)?;
        let root = &graph.root;
        if root.vertex_count > 0 || root.edge_count > 0 {
            return Err(StoreError::GraphNotEmpty { name: graph.name.to_string() });
        }
        let words = [(&root.words.labels, &attach.labels), (&root.words.keys, &attach.keys)];
        if !words.iter().all(|(existing, all)| all.starts_with(existing.names())) {
            return Err(StoreError::Conflict { what: format!("the list of labels or keys of graph '{}'", graph.name) });
        }
        // Before the files are opened: those of a load that was refused are gone when its record is read again.
        if root.restricts_loads() {
            return Err(StoreError::InvalidSchema {
                what: format!("graph '{}'", graph.name),
                reason: "it has declared types or unique indexes, which such a load does not check".to_string(),
            });
        }
        let base = match (attach.opened.0, &self.disk) {
            (Some(base), _) => base,
            (None, Some(disk)) => Arc::new(Base::open(disk.as_ref(), root.layout, BaseFiles { names: attach.files })?),
            (None, None) => return Err(StoreError::corrupt("the commit log", ts.0, "files without a disk")),
        };
        let root = Arc::make_mut(&mut graph.root);
        for label in &attach.labels {
            root.words.intern_label(label);
        }
        for key in &attach.keys {
            root.words.intern_key(key);
        }
        let files = root.files();
        root.attach(base);
        root.next_ids.pass(attach.next_ids);
        root.rebuild_indexes();
        retire_lost(&files, root, &mut self.retired_files);
        root.commit_ts = ts;
        graph.unpublished += 1;
        self.resolver.fence(ts);
        Ok(())
    }

    /// Notes the files of a root that no graph has any more.
    fn retire(&mut self, root: &GraphRoot) {
        self.retired_files.extend(root.files());
    }
}

/// Notes the files that a graph had and has no more.
pub(crate) fn retire_lost(before: &[Arc<str>], root: &GraphRoot, retired_files: &mut Vec<Arc<str>>) {
    let kept = root.files();
    retired_files.extend(before.iter().filter(|name| !kept.contains(name)).cloned());
}

fn check_word(word: &str) -> Result<(), StoreError> {
    if word.is_empty() || word.len() > WORD_BYTES_LIMIT {
        return Err(StoreError::InvalidOption {
            option: "index",
            reason: format!("labels and keys have 1 to {WORD_BYTES_LIMIT} bytes"),
        });
    }
    Ok(())
}

fn graph_mut(graphs: &mut BTreeMap<u32, CommittedGraph>, number: u32) -> Result<&mut CommittedGraph, StoreError> {
    graphs.get_mut(&number).ok_or_else(|| StoreError::NoSuchGraph { name: format!("number {number} (dropped)") })
}

/// Decides when the log has grown enough for the next checkpoint.
#[derive(Debug, Default)]
pub(crate) struct CheckpointTrigger {
    /// The log's tail when the last checkpoint was taken or asked for.
    pub(crate) since: LogPosition,
    /// Bytes the log may grow by.
    pub(crate) log_bytes: u64,
    /// Length of the last checkpoint: writing the whole state again is worth as much log.
    pub(crate) last_bytes: u64,
    /// True from asking for a checkpoint until it was tried.
    pub(crate) asked: bool,
    /// Whom to ask; `None` if checkpoints are taken on request only.
    pub(crate) wanted: Option<Sender<()>>,
}

/// Bytes of log for which a consolidation alone is no reason for a checkpoint: reading them at a start takes no second, and the flushes of a checkpoint
/// hold up those of commits.
const SHORT_LOG_BYTES: u64 = 16 << 20;

impl CheckpointTrigger {
    /// True if the log from the newest checkpoint to `tail` is worth another one.
    pub(crate) fn is_worth_it(&self, newest: LogPosition, tail: LogPosition) -> bool {
        tail.0.saturating_sub(newest.0) > self.log_bytes.min(SHORT_LOG_BYTES).max(self.last_bytes)
    }

    fn look_at(&mut self, tail: LogPosition, consolidation_is_due: impl Fn() -> bool) {
        let Some(wanted) = &self.wanted else { return };
        let log_is_long = tail.0.saturating_sub(self.since.0) > self.log_bytes.max(self.last_bytes);
        if log_is_long || !self.asked && consolidation_is_due() {
            self.since = tail;
            self.asked = true;
            // Without a receiver the store is closing, and takes a checkpoint anyway.
            let _ = wanted.send(());
        }
    }
}

/// The first half of a commit: brings a group's records into the log and to the disk.
pub(crate) struct LogWriter {
    /// `None` in memory, and while a [`Committer`] that is looked at has it.
    pub(crate) log: Option<Box<dyn Log>>,
    /// When a commit is acknowledged.
    pub(crate) sync: SyncPolicy,
    /// Tells those who work on the same disk in the background.
    pub(crate) traffic: Arc<Traffic>,
    /// Tells those who ask whether there is room.
    pub(crate) shortage: Arc<Shortage>,
}

/// A group that is in the log, and on the disk if anybody waits for it.
pub(crate) struct LoggedGroup {
    /// With the positions of their records.
    jobs: VecDeque<(LogPosition, Job)>,
    /// Somebody waits for it.
    is_awaited: bool,
    /// The end of the log behind it.
    tail: LogPosition,
    /// How long it took to bring it there, if anybody waits for it.
    pub(crate) logged_in: Option<Duration>,
}

impl LoggedGroup {
    /// What applying it costs, in mutations.
    pub(crate) fn weight(&self) -> usize {
        self.jobs.iter().map(|(_, job)| job.weight()).sum()
    }

    /// Takes its next part, of at least this weight if so much is left; `None` behind the last one. The log ends behind the last part.
    pub(crate) fn next_part(&mut self, weight: usize) -> Option<LoggedGroup> {
        let mut part = LoggedGroup { jobs: VecDeque::new(), is_awaited: false, tail: LogPosition(0), logged_in: None };
        let mut taken = 0;
        while taken < weight
            && let Some((position, job)) = self.jobs.pop_front()
        {
            taken += job.weight();
            part.is_awaited |= job.is_awaited();
            part.jobs.push_back((position, job));
        }
        if self.jobs.is_empty() {
            part.tail = std::mem::replace(&mut self.tail, LogPosition(0));
        }
        (taken > 0).then_some(part)
    }

    /// True if something in it looks at the state together with the log.
    pub(crate) fn inspects(&self) -> bool {
        self.jobs.iter().any(|(_, job)| matches!(job, Job::Inspect(_)))
    }

    /// Tells all who wait that it failed.
    pub(crate) fn refuse(self, error: &StoreError, answers: &mut Answers) {
        self.jobs.into_iter().for_each(|(_, job)| job.answer(Err(error.clone()), answers));
    }
}

impl LogWriter {
    /// Writes the records of a group with one call and flushes the log once, if anybody waits for that.
    ///
    /// Errors: the log failed and what it holds is unknown, so the store must accept no more writes; all jobs are answered.
    /// A full disk, or a file that cannot be opened since too many are, concerns the records of this group only: they are answered, the others go on.
    pub(crate) fn write_group(&mut self, jobs: Vec<Job>, answers: &mut Answers) -> Result<LoggedGroup, StoreError> {
        let begun = Instant::now();
        let (positions, refusal) = self.append(&jobs);
        if let Some(error) = &refusal
            && !error.is_shortage()
        {
            jobs.into_iter().for_each(|job| job.answer(Err(error.clone()), answers));
            return Err(error.clone());
        }
        match (&refusal, &self.log) {
            (Some(error), _) => self.shortage.note(error),
            (None, Some(log)) if !positions.is_empty() => self.shortage.found_room(log.ready_bytes()),
            (None, _) => {}
        }
        let mut positions = positions.into_iter();
        let mut group = LoggedGroup {
            jobs: VecDeque::with_capacity(jobs.len()),
            is_awaited: false,
            tail: LogPosition(0),
            logged_in: None,
        };
        for job in jobs {
            let position = match (job.submission().map(|_| positions.next()), &refusal) {
                (Some(Some(position)), _) => position,
                (Some(None), Some(error)) => {
                    job.answer(Err(error.clone()), answers);
                    continue;
                }
                (Some(None), None) => unreachable!("a record without a position was refused"),
                (None, _) => LogPosition(0),
            };
            group.is_awaited |= job.is_awaited();
            group.jobs.push_back((position, job));
        }
        if let Some(log) = &mut self.log {
            let must_flush = group.is_awaited && self.sync == SyncPolicy::Always;
            if must_flush {
                self.traffic.flush_begins();
                if let Err(error) = log.barrier() {
                    group.refuse(&error, answers);
                    return Err(error);
                }
            }
            group.logged_in = group.is_awaited.then(|| begun.elapsed());
            group.tail = log.tail();
        }
        Ok(group)
    }

    /// Appends the records of a group: the positions of those that are in the log, and why the others are not.
    fn append(&mut self, jobs: &[Job]) -> (Vec<LogPosition>, Option<StoreError>) {
        let submissions = jobs.iter().filter_map(Job::submission);
        // Without a log, sequence numbers order the records.
        let Some(log) = &mut self.log else {
            return (submissions.map(|submission| LogPosition(submission.sequence + 1)).collect(), None);
        };
        let records: Vec<&[u8]> = submissions.map(|submission| submission.bytes.as_slice()).collect();
        debug_assert!(records.iter().all(|record| record.len() >= RECORD_HEADER_BYTES), "a record has a header");
        let mut positions = Vec::with_capacity(records.len());
        while positions.len() < records.len() {
            match log.append_group(&records[positions.len()..]) {
                Ok(appended) => positions.extend(appended),
                Err(error) => return (positions, Some(error)),
            }
        }
        (positions, None)
    }
}

/// The second half of a commit: the state, what it is published to, and what follows from it.
pub(crate) struct Committer {
    pub(crate) state: State,
    /// The log, for whoever looks at the state between two groups; at other times the [`LogWriter`] has it.
    pub(crate) log: Option<Box<dyn Log>>,
    pub(crate) checkpoints: CheckpointTrigger,
    pub(crate) writer: u64,
    pub(crate) directory: Arc<Directory>,
    /// Tells when a state became visible.
    pub(crate) clock: Arc<dyn Clock>,
    /// How long states of the past can be read.
    pub(crate) retention: Retention,
    /// Where roots go that were replaced.
    pub(crate) farewell: Arc<Farewell>,
    /// Since when transactions are under way.
    pub(crate) begun: HeldBeginnings,
}

impl Committer {
    /// Applies a group that is in the log, in log order, and shows it to readers.
    pub(crate) fn apply_group(&mut self, group: LoggedGroup, answers: &mut Answers) {
        let LoggedGroup { jobs, is_awaited, tail, logged_in: _ } = group;
        let mut inspections = Vec::new();
        for (position, job) in jobs {
            match job {
                Job::Write(Submission { body, facts, sequence, caller, begun, .. }) => {
                    let record = Record { writer: self.writer, sequence, facts, body };
                    let outcome = self.state.apply(record, position);
                    drop(begun);
                    let outcome = outcome.and_then(|applied| match applied {
                        true => Ok(CommitTs(position.0)),
                        false => Err(StoreError::Poisoned { cause: "another process writes to this log".to_string() }),
                    });
                    answers.push(caller, outcome);
                }
                Job::Barrier(caller) => answers.push(caller, Ok(self.state.last_ts)),
                Job::Inspect(inspect) => inspections.push(inspect),
            }
        }
        self.catch_up_all();
        self.publish(is_awaited);
        self.forget();
        inspections.into_iter().for_each(|inspect| inspect(self));
        if tail > LogPosition(0) {
            let due = || consolidation_is_due(&self.state);
            self.checkpoints.look_at(tail, due);
        }
    }

    /// Asks for a consolidation if one is due already, before anything is written.
    pub(crate) fn look_for_consolidation(&mut self) {
        self.checkpoints.look_at(self.checkpoints.since, || consolidation_is_due(&self.state));
    }

    /// Has the resolver forget what can concern no transaction any more.
    fn forget(&mut self) {
        let remembered = self.state.resolver.remembered();
        if remembered < FORGET_AFTER {
            return;
        }
        // A beginning is for transactions on all graphs.
        if self.state.graphs.values().all(|graph| graph.unpublished == 0) {
            self.begun.renew(self.state.last_ts);
        }
        self.state.resolver.forget(self.begun.oldest());
    }

    /// Shows readers what was applied: always if somebody waits for it, else once in a while.
    pub(crate) fn publish(&mut self, now: bool) {
        for graph in self.state.graphs.values_mut() {
            if graph.unpublished > UNPUBLISHED_LIMIT || now && graph.unpublished > 0 {
                graph.unpublished = 0;
                let replaced = graph.published.publish(graph.root.clone(), self.clock.epoch_millis(), self.retention);
                self.farewell.add(replaced, &graph.root);
                if graph.unrestored.is_none() && graph.root.files().is_empty() {
                    // Readers see that it was cleared.
                    graph.published.damage.clear();
                }
            }
        }
        let listed = self.directory.read().unwrap_or_else(PoisonError::into_inner);
        let is_listed = |(number, graph): (&u32, &CommittedGraph)| {
            listed.get(&graph.name).is_some_and(|entry| entry.number == *number)
        };
        let changed = listed.len() != self.state.graphs.len() || !self.state.graphs.iter().all(is_listed);
        drop(listed);
        if changed {
            let entries = self.state.graphs.iter().map(|(number, graph)| {
                let entry =
                    DirectoryEntry { number: *number, name: graph.name.clone(), published: graph.published.clone() };
                (graph.name.clone(), entry)
            });
            *self.directory.write().unwrap_or_else(PoisonError::into_inner) = entries.collect();
        }
    }

    /// Writes and flushes the record that makes this process the only writer; `time_ms` is what its clock says.
    pub(crate) fn begin_epoch(&mut self, time_ms: u64) -> Result<(), StoreError> {
        let body = Body::Epoch { epoch: self.state.epoch + 1, forgets: true };
        let position = match &mut self.log {
            Some(log) => {
                let mut bytes = crate::log::encode_body(&body);
                set_record_header(&mut bytes, self.writer, 0, time_ms);
                let position = log.append(&bytes)?;
                log.barrier()?;
                position
            }
            None => LogPosition(1),
        };
        let record = Record { writer: self.writer, sequence: 0, facts: Vec::new(), body };
        let applied = self.state.apply(record, position)?;
        assert!(applied, "the next epoch is newer than all before");
        Ok(())
    }
}

fn consolidation_is_due(state: &State) -> bool {
    state.graphs.values().any(|graph| graph.kept.is_none() && graph.is_sound() && is_due(&graph.root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_consolidation_brings_a_checkpoint_when_the_log_has_become_long() {
        let is_worth_it = |log_bytes, last_bytes, tail| {
            let trigger = CheckpointTrigger { log_bytes, last_bytes, ..CheckpointTrigger::default() };
            trigger.is_worth_it(LogPosition(1_000), LogPosition(1_000 + tail))
        };
        assert!(!is_worth_it(u64::MAX, 0, SHORT_LOG_BYTES) && is_worth_it(u64::MAX, 0, SHORT_LOG_BYTES + 1));
        let long = SHORT_LOG_BYTES * 3;
        assert!(!is_worth_it(u64::MAX, long, long) && is_worth_it(u64::MAX, long, long + 1), "as long as the last one");
        assert!(is_worth_it(500, 0, 501), "as short as it was asked for");
    }
}
