//! The queries that run, and the line of those that wait to run.
//!
//! A query is admitted if fewer than the limit run and the queries that run leave some of the memory that all may hold; else it waits in the
//! order of arrival, on its own time: its deadline, its client's leaving and an administrator reach it there. Whoever ends lets the next in.
//! What is in the list is told by `call('ficus.queries')` and ended by `call('ficus.kill')`, see [`super::query_services`].
//!
//! ```text
//!   enter ──admitted──▶ running ──ticket dropped──▶ gone ─▶ the next in line
//!      └──▶ in line ──admitted──▶ ▲
//!              └── deadline, cancelled, killed ──▶ told so, gone
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use ficus_dataflow::{CancelToken, Interrupt};
use ficus_query::budget::{MemoryAccount, ServerMemory};
use ficus_query::engine::Prepared;
use uuid::Uuid;

use super::run::CancelSwitch;
use crate::backend::Program;

/// How often the deadlines of queries in line are looked at.
const LINE_LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// Bytes of a query's text that are kept to be shown.
const TEXT_SHOWN_BYTES: usize = 200;

/// The queries of a server.
pub struct Queries {
    /// Protects the list and the line; held for look-ups and moves, never while a query starts.
    state: Mutex<State>,
    limit: usize,
    memory: OnceLock<Arc<ServerMemory>>,
    waited: AtomicU64,
    waited_us: AtomicU64,
    killed: AtomicU64,
}

#[derive(Default)]
struct State {
    next_number: u64,
    /// Somebody looks after the deadlines of those in line.
    is_watched: bool,
    running: BTreeMap<u64, Arc<Entry>>,
    line: VecDeque<Waiting>,
}

struct Waiting {
    number: u64,
    entry: Arc<Entry>,
    start: Start,
}

/// Starts a query that was let in, or tells it why it never will be.
pub(super) type Start = Box<dyn FnOnce(Result<Ticket, Interrupt>) + Send>;

/// What is known of a query that runs or waits.
pub struct Entry {
    /// Its name, as in logs.
    pub id: Uuid,
    /// Who asked; none without authentication.
    pub user: Option<Arc<str>>,
    /// The traversal source.
    pub source: Arc<str>,
    /// What was asked.
    pub program: Program,
    /// When it arrived.
    pub arrived: Instant,
    /// When its time is up.
    pub deadline: Option<Instant>,
    /// What it holds.
    pub memory: MemoryAccount,
    /// Rows sent so far.
    pub rows: AtomicU64,
    /// Whether it waits in line; how long it did.
    pub queued: OnceLock<Duration>,
    /// The statement that runs.
    pub statement: Mutex<Option<Arc<Prepared>>>,
    /// Shows the operator at work.
    pub cancel: CancelToken,
    pub(super) switch: CancelSwitch,
}

impl Entry {
    /// The operator that had its turn last.
    pub fn operator(&self) -> Option<Arc<str>> {
        let node = self.cancel.node_at_work()?;
        let statement = self.statement.lock().unwrap_or_else(PoisonError::into_inner);
        statement.as_ref()?.physical.nodes.get(node.0 as usize).map(|node| node.name.clone())
    }

    /// The begin of its text; of bytecode, its traversal as it would be written.
    pub fn text(&self) -> Arc<str> {
        match &self.program {
            Program::Text { gremlin, .. } => shown(gremlin),
            Program::Bytecode(_) => {
                let statement = self.statement.lock().unwrap_or_else(PoisonError::into_inner).clone();
                shown(&statement.map_or_else(|| "bytecode".to_owned(), |statement| statement.original.to_string()))
            }
        }
    }

    /// How long it has waited in line, so far or before it was let in.
    pub fn waited(&self) -> Duration {
        self.queued.get().copied().unwrap_or_else(|| self.arrived.elapsed())
    }
}

/// The part of a text that is shown.
fn shown(text: &str) -> Arc<str> {
    match text.char_indices().map(|(at, _)| at).take_while(|at| *at <= TEXT_SHOWN_BYTES).last() {
        Some(end) if text.len() > TEXT_SHOWN_BYTES => format!("{}…", &text[..end]).into(),
        _ => text.into(),
    }
}

/// The place of a running query in the list; dropping it makes room for the next.
pub struct Ticket {
    queries: Arc<Queries>,
    number: u64,
    /// What is known of the query.
    pub entry: Arc<Entry>,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.queries.leave(self.number);
    }
}

impl Queries {
    /// No query yet; at most `limit` will run at a time.
    pub fn new(limit: usize) -> Queries {
        Queries {
            state: Mutex::default(),
            limit: limit.max(1),
            memory: OnceLock::new(),
            waited: AtomicU64::new(0),
            waited_us: AtomicU64::new(0),
            killed: AtomicU64::new(0),
        }
    }

    /// Which memory is shared by the queries; called once, when the engine is there.
    pub(super) fn set_memory(&self, memory: Arc<ServerMemory>) {
        let _ = self.memory.set(memory);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // All critical sections are single operations on the collections.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether one more may run.
    fn has_room(&self, running: usize) -> bool {
        // A quarter is left to those that run already.
        let is_free = |memory: &Arc<ServerMemory>| memory.used_bytes() < memory.limit_bytes() / 4 * 3;
        running == 0 || running < self.limit && self.memory.get().is_none_or(is_free)
    }

    /// Starts a query at once, or puts it in the line; `at_once`: past the line and the limit, for those who look after the server. Says its
    /// number.
    pub(super) fn enter(self: &Arc<Self>, entry: Arc<Entry>, at_once: bool, start: Start) -> u64 {
        let mut state = self.lock();
        let number = state.next_number;
        state.next_number += 1;
        let has_turn = state.line.is_empty() && self.has_room(state.running.len());
        if !at_once && !has_turn {
            state.line.push_back(Waiting { number, entry, start });
            if !state.is_watched {
                state.is_watched = self.watch_deadlines();
            }
            return number;
        }
        state.running.insert(number, entry.clone());
        drop(state);
        self.let_in(Waiting { number, entry, start });
        number
    }

    fn let_in(self: &Arc<Self>, waiting: Waiting) {
        let Waiting { number, entry, start } = waiting;
        let waited = entry.arrived.elapsed();
        let _ = entry.queued.set(waited);
        self.waited_us.fetch_add(u64::try_from(waited.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        start(Ok(Ticket { queries: self.clone(), number, entry }));
    }

    fn leave(self: &Arc<Self>, number: u64) {
        self.lock().running.remove(&number);
        self.admit();
    }

    /// Lets in who may come in.
    fn admit(self: &Arc<Self>) {
        loop {
            let mut state = self.lock();
            if !self.has_room(state.running.len()) {
                return;
            }
            let Some(next) = state.line.pop_front() else { return };
            state.running.insert(next.number, next.entry.clone());
            drop(state);
            self.waited.fetch_add(1, Ordering::Relaxed);
            self.let_in(next);
        }
    }

    /// Takes a query out of the line and tells it why. Does nothing to one that is not in it any more.
    pub(super) fn give_up(&self, number: u64, why: Interrupt) {
        let mut state = self.lock();
        let Some(position) = state.line.iter().position(|waiting| waiting.number == number) else { return };
        let waiting = state.line.remove(position);
        drop(state);
        if let Some(Waiting { start, .. }) = waiting {
            start(Err(why));
        }
    }

    /// Looks after the deadlines of those in line until nobody is in it; false if there is no runtime to do so. Cost: a walk over the line per
    /// look.
    fn watch_deadlines(self: &Arc<Self>) -> bool {
        let queries = self.clone();
        let watch = async move {
            loop {
                tokio::time::sleep(LINE_LOOK_INTERVAL).await;
                let now = Instant::now();
                let mut state = queries.lock();
                let is_late = |waiting: &Waiting| waiting.entry.deadline.is_some_and(|deadline| deadline <= now);
                let late: Vec<u64> =
                    state.line.iter().filter(|waiting| is_late(waiting)).map(|waiting| waiting.number).collect();
                state.is_watched = !state.line.is_empty();
                let goes_on = state.is_watched;
                drop(state);
                late.into_iter().for_each(|number| queries.give_up(number, Interrupt::DeadlineExceeded));
                // Memory is handed back also when nobody ends.
                queries.admit();
                if !goes_on {
                    return;
                }
            }
        };
        // Without a runtime nobody looks: who is late hears of it when let in.
        tokio::runtime::Handle::try_current().map(|runtime| drop(runtime.spawn(watch))).is_ok()
    }

    /// The queries that run, oldest first, and those that wait, first in line first.
    pub fn list(&self) -> Vec<Arc<Entry>> {
        let state = self.lock();
        state.running.values().chain(state.line.iter().map(|waiting| &waiting.entry)).cloned().collect()
    }

    /// Ends a query as an administrator; false if none has this name.
    pub fn kill(&self, id: Uuid) -> bool {
        let Some(entry) = self.list().into_iter().find(|entry| entry.id == id) else { return false };
        self.killed.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(query_id = %id, user = entry.user.as_deref(), "an administrator ends a query");
        entry.switch.stop(Interrupt::Killed);
        true
    }

    /// Appends the metrics in the Prometheus text format.
    pub(super) fn write_metrics(&self, out: &mut String) {
        use std::fmt::Write;
        let (running, waiting) = {
            let state = self.lock();
            (state.running.len(), state.line.len())
        };
        let mut metric = |name: &str, kind: &str, help: &str, value: &dyn std::fmt::Display| {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        };
        metric("ficus_queries_running", "gauge", "Queries that were let in and have not ended.", &running);
        metric(
            "ficus_queries_waiting",
            "gauge",
            "Queries in line, because as many run as may or hold the memory.",
            &waiting,
        );
        let waited = self.waited.load(Ordering::Relaxed);
        metric("ficus_queries_waited_total", "counter", "Queries that were let in after a time in line.", &waited);
        let seconds = self.waited_us.load(Ordering::Relaxed) as f64 / 1e6;
        metric("ficus_queries_wait_seconds_total", "counter", "Time that queries spent in line, in sum.", &seconds);
        let killed = self.killed.load(Ordering::Relaxed);
        metric("ficus_queries_killed_total", "counter", "Queries that administrators ended.", &killed);
        if let Some(memory) = self.memory.get() {
            metric("ficus_queries_memory_bytes", "gauge", "Memory that queries hold together.", &memory.used_bytes());
            let limit = memory.limit_bytes();
            metric("ficus_queries_memory_limit_bytes", "gauge", "Memory that queries may hold together.", &limit);
            let help = "Times that a query ended because all held what they may together.";
            metric("ficus_queries_memory_refusals_total", "counter", help, &memory.refusals());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u128) -> Arc<Entry> {
        Arc::new(Entry {
            id: Uuid::from_u128(number),
            user: None,
            source: "g".into(),
            program: Program::Text { gremlin: "g.V()".into(), language: None },
            arrived: Instant::now(),
            deadline: None,
            memory: MemoryAccount::new(1 << 20),
            rows: AtomicU64::new(0),
            queued: OnceLock::new(),
            statement: Mutex::default(),
            cancel: CancelToken::default(),
            switch: CancelSwitch::new(CancelToken::default()),
        })
    }

    type Told = Arc<Mutex<Vec<(u128, Result<Ticket, Interrupt>)>>>;

    fn enter(queries: &Arc<Queries>, number: u128, told: &Told) -> u64 {
        let told = told.clone();
        queries.enter(entry(number), false, Box::new(move |start| told.lock().unwrap().push((number, start))))
    }

    #[test]
    fn the_line_keeps_the_order_and_can_be_left() {
        let (queries, told) = (Arc::new(Queries::new(2)), Told::default());
        let numbers: Vec<u64> = (0..6).map(|number| enter(&queries, number, &told)).collect();
        let let_in = || told.lock().unwrap().iter().map(|(number, start)| (*number, start.is_ok())).collect::<Vec<_>>();
        assert_eq!(let_in(), [(0, true), (1, true)]);
        assert_eq!(queries.list().len(), 6);
        queries.give_up(numbers[3], Interrupt::Killed);
        queries.give_up(numbers[0], Interrupt::Killed);
        assert_eq!(let_in(), [(0, true), (1, true), (3, false)]);
        // One after another ends; nobody overtakes.
        let first = told.lock().unwrap().remove(0);
        drop(first);
        assert_eq!(let_in(), [(1, true), (3, false), (2, true)]);
        let all = std::mem::take(&mut *told.lock().unwrap());
        drop(all);
        assert_eq!(let_in(), [(4, true), (5, true)]);
        let all = std::mem::take(&mut *told.lock().unwrap());
        drop(all);
        assert!(queries.list().is_empty());
        let mut text = String::new();
        queries.write_metrics(&mut text);
        assert!(text.contains("\nficus_queries_waited_total 3\n") && text.contains("\nficus_queries_running 0\n"));
    }

    #[test]
    fn who_looks_after_the_server_does_not_wait_and_memory_counts() {
        let (queries, told) = (Arc::new(Queries::new(10)), Told::default());
        let memory = Arc::new(ServerMemory::new(8 << 20));
        queries.set_memory(memory.clone());
        let account = MemoryAccount::of_server(8 << 20, memory);
        enter(&queries, 0, &told);
        account.adjust(7 << 20).expect("there is room");
        enter(&queries, 1, &told);
        assert_eq!(told.lock().unwrap().len(), 1, "those that run hold nearly all");
        let own = told.clone();
        queries.enter(entry(2), true, Box::new(move |start| own.lock().unwrap().push((2, start))));
        assert_eq!(told.lock().unwrap().len(), 2);
        drop(account);
        let first = told.lock().unwrap().remove(0);
        drop(first);
        assert_eq!(told.lock().unwrap().len(), 2, "the next was let in");
        let all = std::mem::take(&mut *told.lock().unwrap());
        drop(all);
    }

    #[test]
    fn long_texts_are_cut_between_letters() {
        assert_eq!(&*shown("g.V()"), "g.V()");
        let cut = shown(&"ä".repeat(500));
        assert!(cut.len() <= TEXT_SHOWN_BYTES + 5 && cut.ends_with('…'), "{cut}");
    }
}
