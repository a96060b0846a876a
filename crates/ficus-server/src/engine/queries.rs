//! The queries that run, and the line of those that wait to run.
//!
//! A query is in the list from its arrival on, while it is planned. It is admitted if fewer than the limit run and the queries that run leave some of the memory that all may hold, or those of its tenant some of its share; else it waits in its
//! tenant's line in the order of arrival, on its own time: its deadline, its client's leaving and an administrator reach it there. Whoever ends
//! lets the next in: of the tenants that wait, it comes from the one that runs least for its weight. A tenant that runs nothing is let in past the limit on
//! their number, so that no flood of queries shuts others out; at most as many more run as there are other tenants.
//!
//! Nobody can tell a small query from a large one before it runs, so those in line are *tried*: each does a little work at once, and waits for its turn
//! behind a [`Gate`] only if that was not all. However many large ones are in line, small ones pass them.
//!
//! What is in the list is told by `call('ficus.queries')` and ended by `call('ficus.kill')`, see [`super::query_services`].
//!
//! ```text
//!   arrive ──planned──▶ enter ──admitted──▶ running ──ticket dropped──▶ gone ─▶ the next in line
//!                         └──▶ in line ──admitted──▶ ▲      │
//!                                 ├── tried: small ────────┴──▶ gone
//!                                 └── deadline, cancelled, killed ──▶ told so, gone
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use ficus_dataflow::{CancelToken, Gate, Interrupt, Weight};
use ficus_query::budget::{MemoryAccount, ServerMemory};
use ficus_query::caller::Caller;
use ficus_query::context::Graphs;
use ficus_query::engine::Prepared;
use uuid::Uuid;

use super::run::CancelSwitch;
use crate::backend::Program;
use crate::tenants::{Asker, Load, Tenant, Tenants};

/// How often the deadlines of queries in line are looked at.
const LINE_LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// Work units that a query in line may do before it waits: those of a small one, less than a millisecond.
const TRIAL_UNITS: u64 = 8192;

/// Queries of a tenant that are in line and tried at a time. They hold a snapshot and what little they have found, and executors look after them.
const TRIALS_MAX: usize = 4096;

/// Queries of a tenant that begin at a look at the line, because there was no memory when they came.
const TRIALS_PER_LOOK: usize = 64;

/// Bytes of a query's text that are kept to be shown.
const TEXT_SHOWN_BYTES: usize = 200;

/// The queries of a server.
pub struct Queries {
    /// Protects the list and the line; held for look-ups and moves, never while a query starts.
    state: Mutex<State>,
    limit: usize,
    memory: OnceLock<Arc<ServerMemory>>,
    tenants: OnceLock<Arc<Tenants>>,
    waited: AtomicU64,
    waited_us: AtomicU64,
    killed: AtomicU64,
    helped: AtomicU64,
}

#[derive(Default)]
struct State {
    next_number: u64,
    /// Somebody looks after the deadlines of those in line.
    is_watched: bool,
    running: BTreeMap<u64, Arc<Entry>>,
    /// Those that are being planned, in the order of arrival.
    planning: BTreeMap<u64, Arc<Entry>>,
    /// The lines of tenants that have queries, by the tenant's number.
    lines: BTreeMap<u64, Line>,
}

/// The queries of one tenant.
struct Line {
    weight: Weight,
    running: usize,
    waiting: VecDeque<Waiting>,
    /// Those in `waiting` that are tried.
    tried: usize,
}

struct Waiting {
    number: u64,
    entry: Arc<Entry>,
    /// Begins it; none if it is tried.
    start: Option<Start>,
    /// It may be tried, as soon as there is memory.
    may_be_tried: bool,
    /// Was not let in when it came.
    has_waited: bool,
}

/// A query that begins.
struct Beginning {
    number: u64,
    entry: Arc<Entry>,
    start: Start,
}

impl Waiting {
    fn is_tried(&self) -> bool {
        self.start.is_none()
    }

    /// Has it tried, if it may and is not yet, and there is memory.
    fn try_out(&mut self) -> Option<Beginning> {
        if !self.may_be_tried || !self.entry.memory.may_be_tried() {
            return None;
        }
        let start = self.start.take()?;
        let _ = self.entry.gate.set(Gate::new(TRIAL_UNITS));
        Some(Beginning { number: self.number, entry: self.entry.clone(), start })
    }
}

impl Line {
    /// How many do nothing until they are let in.
    fn idle(&self) -> usize {
        self.waiting.iter().filter(|waiting| waiting.entry.is_in_line()).count()
    }

    /// Has the query with this number tried, if no more than so many are.
    fn try_out(&mut self, number: u64) -> Option<Beginning> {
        let waiting = self.waiting.iter_mut().rev().find(|waiting| waiting.number == number)?;
        let begins = (self.tried < TRIALS_MAX).then(|| waiting.try_out())?;
        self.tried += usize::from(begins.is_some());
        begins
    }

    /// Has some of those tried that could not be when they came. Cost: a walk over the line.
    fn try_out_late(&mut self) -> Vec<Beginning> {
        let room = TRIALS_MAX.saturating_sub(self.tried).min(TRIALS_PER_LOOK);
        let late = self.waiting.iter_mut().filter(|waiting| waiting.may_be_tried && !waiting.is_tried());
        // If there is no memory for one, there is none for those behind it.
        let begin: Vec<Beginning> = late.map_while(Waiting::try_out).take(room).collect();
        self.tried += begin.len();
        begin
    }
}

/// How a query is let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entrance {
    /// Past the line and the limit: it looks after the server.
    AtOnce,
    /// Through the line, in which it may do a little.
    Tried,
    /// Through the line.
    InLine,
}

impl State {
    fn line(&mut self, tenant: &Tenant) -> &mut Line {
        let ficus_dataflow::Tenant { number, weight } = tenant.share();
        self.lines.entry(number).or_insert_with(|| Line { weight, running: 0, waiting: VecDeque::new(), tried: 0 })
    }

    /// Takes the next number.
    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number - 1
    }

    fn in_line(&self) -> usize {
        self.lines.values().map(|line| line.waiting.len()).sum()
    }

    fn idle(&self) -> usize {
        self.lines.values().map(Line::idle).sum()
    }

    fn begin(&mut self, number: u64, entry: &Arc<Entry>) {
        self.line(&entry.asker.tenant).running += 1;
        self.running.insert(number, entry.clone());
    }

    fn end(&mut self, number: u64) -> Option<Arc<Entry>> {
        let entry = self.running.remove(&number)?;
        let tenant = entry.asker.tenant.share().number;
        if let Some(line) = self.lines.get_mut(&tenant) {
            line.running -= 1;
        }
        self.forget_if_empty(tenant);
        Some(entry)
    }

    fn forget_if_empty(&mut self, tenant: u64) {
        if self.lines.get(&tenant).is_some_and(|line| line.running == 0 && line.waiting.is_empty()) {
            self.lines.remove(&tenant);
        }
    }

    /// The tenant whose turn it is, of those for whose next query there is memory; `has_room`: fewer run than may.
    fn next_tenant(&self, has_room: bool) -> Option<u64> {
        let has_memory = |first: &Waiting| self.running.is_empty() || first.entry.memory.may_begin();
        let rank = |line: &Line| {
            let first = line.waiting.front().filter(|first| has_memory(first))?;
            let running = line.running as u64 * u64::from(Weight::MAX.get()) / u64::from(line.weight.get());
            (has_room || line.running == 0).then_some((running, first.number))
        };
        let ranked = self.lines.iter().filter_map(|(tenant, line)| Some((rank(line)?, *tenant)));
        ranked.min().map(|(_, tenant)| tenant)
    }

    /// Takes the first of a tenant out of its line, to run.
    fn take_first(&mut self, tenant: u64) -> Option<Waiting> {
        let line = self.lines.get_mut(&tenant)?;
        let first = line.waiting.pop_front()?;
        line.tried -= usize::from(first.is_tried());
        self.begin(first.number, &first.entry);
        Some(first)
    }

    /// Takes a query out of its line that is tried, or one that is not.
    fn take(&mut self, number: u64, is_tried: bool) -> Option<Waiting> {
        // In the order of their numbers but for those that took long to plan.
        let place = |line: &Line| line.waiting.iter().rposition(|waiting| waiting.number == number);
        let (tenant, position) = self.lines.iter().find_map(|(tenant, line)| Some((*tenant, place(line)?)))?;
        let line = self.lines.get_mut(&tenant)?;
        line.waiting.get(position).filter(|waiting| waiting.is_tried() == is_tried)?;
        let waiting = line.waiting.remove(position);
        line.tried -= usize::from(is_tried);
        self.forget_if_empty(tenant);
        waiting
    }

    /// The query of `tenant` with this number, if it is still in line; searched from the end.
    fn in_line_as(&mut self, number: u64, tenant: u64) -> Option<&mut Waiting> {
        self.lines.get_mut(&tenant)?.waiting.iter_mut().rev().find(|waiting| waiting.number == number)
    }

    /// Has queries tried that could not be when they came.
    fn try_out_late(&mut self) -> Vec<Beginning> {
        self.lines.values_mut().flat_map(Line::try_out_late).collect()
    }
}

/// Why a query is not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillRefusal {
    /// There is none of this name.
    NoQuery,
    /// It is of somebody else.
    NotAllowed,
}

/// Starts a query that was let in, or tells it why it never will be.
pub(super) type Start = Box<dyn FnOnce(Result<Ticket, Interrupt>) + Send>;

/// What is known of a query that runs or waits.
pub struct Entry {
    /// Its name, as in logs.
    pub id: Uuid,
    /// Who asked.
    pub asker: Asker,
    /// The traversal source.
    pub source: Arc<str>,
    /// What was asked.
    pub program: Program,
    /// When it arrived.
    pub arrived: Instant,
    /// How long it took to plan, once that is done.
    pub planned: OnceLock<Duration>,
    /// When its time is up: that of the request while it is planned, then that of its first statement.
    pub deadline: Mutex<Option<Instant>>,
    /// What it holds.
    pub memory: MemoryAccount,
    /// Rows sent so far.
    pub rows: AtomicU64,
    /// How long it was in line, once that is over.
    pub queued: OnceLock<Duration>,
    /// Where it waits after its first steps, if it was tried.
    pub(super) gate: OnceLock<Arc<Gate<Graphs>>>,
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
        statement.as_ref()?.physical.nodes.get(node.0 as usize).map(|node| node.name.to_string().into())
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

    /// Whether `caller` may see what it asks, and end it: its user, administrators, and everybody where nobody has to say who it is.
    pub fn is_open_to(&self, caller: Option<&Caller>) -> bool {
        caller.is_none_or(|caller| caller.is_administrator || self.asker.user() == Some(&caller.user))
    }

    /// Whether it is planned and does nothing until its turn comes.
    pub fn is_in_line(&self) -> bool {
        let is_held = || self.gate.get().is_none_or(|gate| gate.has_held());
        self.planned.get().is_some() && self.queued.get().is_none() && is_held()
    }

    /// How long it has waited in line, so far or before it was let in; of one that was tried, with the little time of that.
    pub fn waited(&self) -> Duration {
        self.queued.get().copied().unwrap_or_else(|| match self.planned.get() {
            Some(planned) if self.is_in_line() => self.arrived.elapsed().saturating_sub(*planned),
            _ => Duration::ZERO,
        })
    }

    /// How much of its time was over when it began to run.
    pub fn spent_before(&self) -> Duration {
        self.planned.get().copied().unwrap_or_default() + self.waited()
    }

    fn deadline(&self) -> Option<Instant> {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its plan is made, and says when its time is up.
    pub(super) fn is_planned(&self, deadline: Option<Instant>) {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) = deadline;
        let _ = self.planned.set(self.arrived.elapsed());
    }
}

/// The part of a text that is shown.
fn shown(text: &str) -> Arc<str> {
    match text.char_indices().map(|(at, _)| at).take_while(|at| *at <= TEXT_SHOWN_BYTES).last() {
        Some(end) if text.len() > TEXT_SHOWN_BYTES => format!("{}…", &text[..end]).into(),
        _ => text.into(),
    }
}

/// The place of a query that is being planned in the list; it is gone when this is dropped, unless the query has entered.
pub(super) struct Arrival {
    queries: Arc<Queries>,
    number: u64,
    entry: Arc<Entry>,
}

impl Arrival {
    /// What is known of the query.
    pub(super) fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Starts a query at once, or puts it in the line. Says its number.
    pub(super) fn enter(self, entrance: Entrance, start: Start) -> u64 {
        let (queries, entry, number) = (self.queries.clone(), self.entry.clone(), self.number);
        queries.enter_as(number, entry, entrance, start)
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        self.queries.lock().planning.remove(&self.number);
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
            tenants: OnceLock::new(),
            waited: AtomicU64::new(0),
            waited_us: AtomicU64::new(0),
            killed: AtomicU64::new(0),
            helped: AtomicU64::new(0),
        }
    }

    /// Which memory is shared by the queries; called once, when the engine is there.
    pub(super) fn set_memory(&self, memory: Arc<ServerMemory>) {
        let _ = self.memory.set(memory);
    }

    /// Who the tenants are; called once, when the server is there.
    pub(super) fn set_tenants(&self, tenants: Arc<Tenants>) {
        let _ = self.tenants.set(tenants);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // All critical sections are single operations on the collections.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn enter(self: &Arc<Self>, entry: Arc<Entry>, entrance: Entrance, start: Start) -> u64 {
        self.arrive(entry).enter(entrance, start)
    }

    /// Puts a query in the list that is about to be planned.
    pub(super) fn arrive(self: &Arc<Self>, entry: Arc<Entry>) -> Arrival {
        let mut state = self.lock();
        let number = state.number();
        state.planning.insert(number, entry.clone());
        Arrival { queries: self.clone(), number, entry }
    }

    /// As [`Arrival::enter`], of the query that arrived under this number.
    fn enter_as(self: &Arc<Self>, number: u64, entry: Arc<Entry>, entrance: Entrance, start: Start) -> u64 {
        let mut state = self.lock();
        // In the list it is at one place at any moment.
        state.planning.remove(&number);
        let may_be_tried = entrance == Entrance::Tried;
        let waiting = Waiting { number, entry, start: Some(start), may_be_tried, has_waited: false };
        if entrance == Entrance::AtOnce {
            state.begin(number, &waiting.entry);
            drop(state);
            self.let_in(waiting);
            return number;
        }
        let tenant = waiting.entry.asker.tenant.share().number;
        state.line(&waiting.entry.asker.tenant.clone()).waiting.push_back(waiting);
        drop(state);
        self.admit();
        let mut state = self.lock();
        let Some(waiting) = state.in_line_as(number, tenant) else { return number };
        waiting.has_waited = true;
        if !state.is_watched {
            state.is_watched = self.watch_deadlines();
        }
        let tried = state.lines.get_mut(&tenant).and_then(|line| line.try_out(number));
        drop(state);
        tried.into_iter().for_each(|tried| self.begin(tried));
        number
    }

    fn begin(self: &Arc<Self>, Beginning { number, entry, start }: Beginning) {
        entry.asker.tenant.count_query();
        start(Ok(Ticket { queries: self.clone(), number, entry }));
    }

    fn let_in(self: &Arc<Self>, waiting: Waiting) {
        let Waiting { number, entry, start, has_waited, .. } = waiting;
        let waited = entry.waited();
        let _ = entry.queued.set(waited);
        let has_waited = has_waited && (start.is_some() || !waited.is_zero());
        self.waited.fetch_add(u64::from(has_waited), Ordering::Relaxed);
        self.waited_us.fetch_add(u64::try_from(waited.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        match (start, entry.gate.get()) {
            (Some(start), _) => self.begin(Beginning { number, entry, start }),
            (None, Some(gate)) => gate.open(),
            (None, None) => {}
        }
    }

    fn leave(self: &Arc<Self>, number: u64) {
        let ended = {
            let mut state = self.lock();
            state.end(number).or_else(|| Some(state.take(number, true)?.entry))
        };
        let was_helped = ended.is_some_and(|entry| entry.cancel.times_helped() > 0);
        self.helped.fetch_add(u64::from(was_helped), Ordering::Relaxed);
        self.admit();
    }

    /// Lets in who may come in.
    fn admit(self: &Arc<Self>) {
        loop {
            let mut state = self.lock();
            let has_room = state.running.len() < self.limit;
            let next = state.next_tenant(has_room).and_then(|tenant| state.take_first(tenant));
            drop(state);
            let Some(next) = next else { return };
            self.let_in(next);
        }
    }

    /// Takes a query out of the line and tells it why. Does nothing to one that is not in it any more, or tried: that ends by itself.
    pub(super) fn give_up(&self, number: u64, why: Interrupt) {
        let waiting = self.lock().take(number, false);
        if let Some(start) = waiting.and_then(|waiting| waiting.start) {
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
                let has_passed = |entry: &Entry| entry.deadline().is_some_and(|deadline| deadline <= now);
                let is_late = |waiting: &Waiting| !waiting.is_tried() && has_passed(&waiting.entry);
                let waiting = state.lines.values().flat_map(|line| &line.waiting);
                let late: Vec<u64> = waiting.filter(|waiting| is_late(waiting)).map(|waiting| waiting.number).collect();
                state.is_watched = state.in_line() > 0;
                let goes_on = state.is_watched;
                let tried = state.try_out_late();
                drop(state);
                tried.into_iter().for_each(|tried| queries.begin(tried));
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

    /// The queries that run, oldest first, those that wait, first in line first, and those that are being planned.
    pub fn list(&self) -> Vec<Arc<Entry>> {
        let state = self.lock();
        let mut waiting: Vec<&Waiting> = state.lines.values().flat_map(|line| &line.waiting).collect();
        waiting.sort_unstable_by_key(|waiting| waiting.number);
        let waiting = waiting.into_iter().map(|waiting| &waiting.entry);
        state.running.values().chain(waiting).chain(state.planning.values()).cloned().collect()
    }

    /// The tenants, with what they have under way.
    pub fn tenants(&self) -> Vec<(Arc<Tenant>, Load)> {
        let Some(tenants) = self.tenants.get() else { return Vec::new() };
        let loads = self.loads();
        let load = |tenant: &Tenant| loads.get(&tenant.share().number).copied().unwrap_or_default();
        tenants.iter().map(|tenant| (tenant.clone(), load(tenant))).collect()
    }

    fn loads(&self) -> BTreeMap<u64, Load> {
        let load = |line: &Line| {
            let waiting = line.idle();
            Load { running: line.running + line.waiting.len() - waiting, waiting }
        };
        self.lock().lines.iter().map(|(tenant, line)| (*tenant, load(line))).collect()
    }

    /// Ends the query of this name for `caller`; none: for somebody who may end all.
    ///
    /// Errors: there is no such query, or it is not `caller`'s.
    pub fn kill(&self, id: Uuid, caller: Option<&Caller>) -> Result<(), KillRefusal> {
        let entry = self.list().into_iter().find(|entry| entry.id == id).ok_or(KillRefusal::NoQuery)?;
        if !entry.is_open_to(caller) {
            return Err(KillRefusal::NotAllowed);
        }
        self.killed.fetch_add(1, Ordering::Relaxed);
        let (owner, by) = (entry.asker.user().map(|user| &**user), caller.map(|caller| &*caller.user));
        tracing::warn!(query_id = %id, owner, by, "a query is ended by its user or an administrator");
        entry.switch.stop(Interrupt::Killed);
        Ok(())
    }

    /// Appends the metrics in the Prometheus text format.
    pub(super) fn write_metrics(&self, out: &mut String) {
        use std::fmt::Write;
        let (running, waiting) = {
            let state = self.lock();
            let idle = state.idle();
            (state.running.len() + state.in_line() - idle, idle)
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
        metric("ficus_queries_killed_total", "counter", "Queries that their users or administrators ended.", &killed);
        let helped = self.helped.load(Ordering::Relaxed);
        metric("ficus_queries_spread_total", "counter", "Queries that have used several executors.", &helped);
        if let Some(memory) = self.memory.get() {
            metric("ficus_queries_memory_bytes", "gauge", "Memory that queries hold together.", &memory.used_bytes());
            let limit = memory.limit_bytes();
            metric("ficus_queries_memory_limit_bytes", "gauge", "Memory that queries may hold together.", &limit);
            let help = "Times that a query ended because all held what they may together.";
            metric("ficus_queries_memory_refusals_total", "counter", help, &memory.refusals());
        }
        if let Some(tenants) = self.tenants.get() {
            let loads = self.loads();
            tenants.write_metrics(|tenant| loads.get(&tenant).copied().unwrap_or_default(), out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u128) -> Arc<Entry> {
        entry_of(number, &Asker::anonymous())
    }

    fn entry_of(number: u128, asker: &Asker) -> Arc<Entry> {
        entry_with(number, asker, MemoryAccount::new(1 << 20))
    }

    fn entry_with(number: u128, asker: &Asker, memory: MemoryAccount) -> Arc<Entry> {
        Arc::new(Entry {
            id: Uuid::from_u128(number),
            asker: asker.clone(),
            source: "g".into(),
            program: Program::Text { gremlin: "g.V()".into(), language: None },
            arrived: Instant::now(),
            planned: OnceLock::new(),
            deadline: Mutex::default(),
            memory,
            rows: AtomicU64::new(0),
            queued: OnceLock::new(),
            gate: OnceLock::new(),
            statement: Mutex::default(),
            cancel: CancelToken::default(),
            switch: CancelSwitch::new(CancelToken::default()),
        })
    }

    type Told = Arc<Mutex<Vec<(u128, Result<Ticket, Interrupt>)>>>;

    fn enter(queries: &Arc<Queries>, number: u128, told: &Told) -> u64 {
        let told = told.clone();
        queries.enter(
            entry(number),
            Entrance::InLine,
            Box::new(move |start| told.lock().unwrap().push((number, start))),
        )
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
    fn queries_are_listed_and_can_be_ended_while_they_are_planned() {
        let (queries, told) = (Arc::new(Queries::new(1)), Told::default());
        let arrival = queries.arrive(entry(7));
        let number = arrival.number;
        assert_eq!(queries.list().iter().map(|entry| entry.id.as_u128()).collect::<Vec<_>>(), [7]);
        assert_eq!(queries.kill(Uuid::from_u128(7), None), Ok(()));
        assert!(arrival.entry().switch.is_stopped());
        assert_eq!(arrival.entry().waited(), Duration::ZERO);
        // One that is refused is gone; one that is planned is listed once.
        drop(queries.arrive(entry(8)));
        arrival.entry().is_planned(None);
        let own = told.clone();
        assert_eq!(
            arrival.enter(Entrance::InLine, Box::new(move |start| own.lock().unwrap().push((7, start)))),
            number
        );
        assert_eq!(queries.list().len(), 1);
        let all = std::mem::take(&mut *told.lock().unwrap());
        drop(all);
        assert!(queries.list().is_empty());
    }

    /// Askers `a`, `b`, … of these weights.
    fn askers(weights: &[i64]) -> Vec<Asker> {
        let names: Vec<String> = (b'a'..).take(weights.len()).map(|letter| char::from(letter).to_string()).collect();
        let tenant = |weight: &i64| crate::TenantConfig { weight: *weight, users: Vec::new() };
        let tenants = names.iter().cloned().zip(weights.iter().map(tenant)).collect();
        let config = crate::ServerConfig { tenants, ..crate::ServerConfig::default() };
        let users: Vec<&str> = names.iter().map(String::as_str).collect();
        let (_, mut askers) = Tenants::of_users(&config, &users).expect("it can work");
        names.iter().map(|name| askers.remove(name).expect("all are users")).collect()
    }

    fn enter_for(queries: &Arc<Queries>, asker: &Asker, number: u128, told: &Told) {
        let told = told.clone();
        let start: Start = Box::new(move |start| told.lock().unwrap().push((number, start)));
        queries.enter(entry_of(number, asker), Entrance::InLine, start);
    }

    #[test]
    fn a_flood_does_not_keep_other_tenants_out() {
        let (queries, told) = (Arc::new(Queries::new(2)), Told::default());
        let askers = askers(&[100, 100, 100]);
        (0..100).for_each(|number| enter_for(&queries, &askers[0], number, &told));
        let let_in = || told.lock().unwrap().iter().map(|(number, _)| *number).collect::<Vec<_>>();
        assert_eq!(let_in(), [0, 1]);
        // One of each other tenant is let in past the limit, the second waits.
        for (asker, number) in [(1, 200), (1, 201), (2, 300)] {
            enter_for(&queries, &askers[asker], number, &told);
        }
        assert_eq!(let_in(), [0, 1, 200, 300]);
        // Who ends makes room for the own tenant only, as long as more run than may.
        let ended = told.lock().unwrap().remove(2);
        drop(ended);
        assert_eq!(let_in(), [0, 1, 300, 201]);
        let ended = told.lock().unwrap().remove(0);
        drop(ended);
        assert_eq!(let_in(), [1, 300, 201], "three run where two may");
        let ended = told.lock().unwrap().remove(0);
        drop(ended);
        assert_eq!(let_in(), [300, 201, 2], "the flood goes on with one, as it ran nothing");
        while !told.lock().unwrap().is_empty() {
            let ended = told.lock().unwrap().remove(0);
            drop(ended);
        }
        assert!(queries.list().is_empty() && queries.lock().lines.is_empty());
    }

    #[test]
    fn places_are_as_the_weights() {
        let (queries, told) = (Arc::new(Queries::new(40)), Told::default());
        let askers = askers(&[100, 300]);
        for number in 0..200 {
            enter_for(&queries, &askers[0], number, &told);
        }
        for number in 1000..1200 {
            enter_for(&queries, &askers[1], number, &told);
        }
        // All that ran before the second came end, oldest first.
        for _ in 0..60 {
            let ended = told.lock().unwrap().remove(0);
            drop(ended);
        }
        let second = told.lock().unwrap().iter().filter(|(number, _)| *number >= 1000).count();
        assert_eq!((told.lock().unwrap().len(), second), (40, 30));
        let all = std::mem::take(&mut *told.lock().unwrap());
        drop(all);
    }

    #[test]
    fn who_looks_after_the_server_does_not_wait_and_memory_counts() {
        let (queries, told) = (Arc::new(Queries::new(10)), Told::default());
        let memory = Arc::new(ServerMemory::new(8 << 20));
        let account = || MemoryAccount::of_server(8 << 20, &memory, ficus_dataflow::Tenant::default());
        let enter = |number| {
            let own = told.clone();
            let start: Start = Box::new(move |start| own.lock().unwrap().push((number, start)));
            queries.enter(entry_with(number, &Asker::anonymous(), account()), Entrance::InLine, start);
        };
        enter(0);
        let account = account();
        account.adjust(7 << 20).expect("there is room");
        enter(1);
        assert_eq!(told.lock().unwrap().len(), 1, "those that run hold nearly all");
        let own = told.clone();
        queries.enter(entry(2), Entrance::AtOnce, Box::new(move |start| own.lock().unwrap().push((2, start))));
        assert_eq!(told.lock().unwrap().len(), 2);
        drop(account);
        let first = told.lock().unwrap().remove(0);
        drop(first);
        assert_eq!(told.lock().unwrap().len(), 2, "the next was let in");
        let all = std::mem::take(&mut *told.lock().unwrap());
        drop(all);
    }

    #[test]
    fn a_tenant_that_holds_less_than_its_share_comes_in_while_others_wait_for_memory() {
        let (queries, told) = (Arc::new(Queries::new(10)), Told::default());
        let memory = Arc::new(ServerMemory::new(64 << 20));
        let askers = askers(&[100, 100]);
        let account = |tenant: usize| MemoryAccount::of_server(64 << 20, &memory, askers[tenant].tenant.share());
        let enter = |number: u128, tenant: usize| {
            let own = told.clone();
            let start: Start = Box::new(move |start| own.lock().unwrap().push((number, start)));
            queries.enter(entry_with(number, &askers[tenant], account(tenant)), Entrance::InLine, start);
        };
        let let_in = || told.lock().unwrap().iter().map(|(number, _)| *number).collect::<Vec<_>>();
        enter(0, 0);
        let large = account(0);
        large.adjust(50 << 20).expect("alone it may have all");
        enter(1, 0);
        assert_eq!(let_in(), [0], "the rest is left to those that run");
        enter(2, 1);
        assert_eq!(let_in(), [0, 2]);
        drop(large);
        let first = told.lock().unwrap().remove(0);
        drop(first);
        assert_eq!(let_in(), [2, 1]);
        let all = std::mem::take(&mut *told.lock().unwrap());
        drop(all);
    }

    #[test]
    fn who_finds_no_memory_is_tried_as_soon_as_there_is_some() {
        let (queries, told) = (Arc::new(Queries::new(1)), Told::default());
        let memory = Arc::new(ServerMemory::new(64 << 20));
        let account = || MemoryAccount::of_server(64 << 20, &memory, ficus_dataflow::Tenant::default());
        let enter = |number: u128, entrance| {
            let own = told.clone();
            let start: Start = Box::new(move |start| own.lock().unwrap().push((number, start)));
            queries.enter(entry_with(number, &Asker::anonymous(), account()), entrance, start);
        };
        let begun = || told.lock().unwrap().iter().map(|(number, _)| *number).collect::<Vec<_>>();
        let look = || {
            let late = queries.lock().try_out_late();
            late.into_iter().for_each(|tried| queries.begin(tried));
        };
        enter(0, Entrance::Tried);
        let large = account();
        // Less than begins, more than is tried: the rest is for those that run.
        large.adjust(60 << 20).expect("there is room");
        for number in 1..=100 {
            enter(number, Entrance::Tried);
        }
        enter(101, Entrance::InLine);
        look();
        assert_eq!(begun(), [0]);
        drop(large);
        enter(102, Entrance::Tried);
        assert_eq!(begun(), [0, 102], "it passes those that have not looked");
        look();
        assert_eq!(begun().len(), 2 + TRIALS_PER_LOOK);
        look();
        assert_eq!(begun().len(), 102, "all but the one that may not");
        assert_eq!(queries.lock().lines.values().map(|line| line.tried).collect::<Vec<_>>(), [101]);
        // Who ends in line leaves it, and whoever is first comes in.
        let all = std::mem::take(&mut *told.lock().unwrap());
        drop(all);
        assert_eq!(begun(), [101]);
        told.lock().unwrap().clear();
        assert!(queries.list().is_empty() && queries.lock().lines.is_empty());
    }

    #[test]
    fn the_time_before_a_statement_is_that_of_planning_and_in_line_only() {
        let mut entry = Arc::into_inner(entry(1)).expect("nobody else has it");
        entry.arrived = Instant::now().checked_sub(Duration::from_secs(5)).expect("the machine runs longer");
        entry.planned.set(Duration::from_millis(3)).expect("once");
        entry.gate.set(Gate::new(1)).expect("once");
        // It was tried and not held: what its statements took is not that of the next.
        assert_eq!(entry.spent_before(), Duration::from_millis(3));
        entry.queued.set(Duration::from_millis(4)).expect("once");
        assert_eq!(entry.spent_before(), Duration::from_millis(7));
    }

    #[test]
    fn long_texts_are_cut_between_letters() {
        assert_eq!(&*shown("g.V()"), "g.V()");
        let cut = shown(&"ä".repeat(500));
        assert!(cut.len() <= TEXT_SHOWN_BYTES + 5 && cut.ends_with('…'), "{cut}");
    }
}
