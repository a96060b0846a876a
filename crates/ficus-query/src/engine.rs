//! The engine: prepares logical plans and runs them on executors.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use ficus_analytics::{Analytics, AnalyticsOptions};
use ficus_dataflow::Waker;
use ficus_dataflow::{
    CancelToken, Clock, Control, Delivery, Estimate, ExecutorOptions, Executors, Frees, Gate, MonotonicClock,
    NodeProfile, Outcome, Remains, Sink, Task, TaskHandle, Tenant,
};
use ficus_model::{Explanation, Value};
use ficus_storage::{ElementKind, Snapshot, Transaction, Undone};

use crate::bound::{Bound, Passing};
use crate::budget::{Held, MemoryAccount, ServerMemory};
use crate::caller::Caller;
use crate::context::{Graphs, QueryContext, Result, Traversers};
use crate::detach::{Detacher, Materialize};
use crate::error::{QueryError, QueryErrorKind};
use crate::freeing;
use crate::growing;
use crate::kinds::Kinds;
use crate::large_values::LargeValues;
use crate::logical::{LogicalPlan, Node, SackOptions, Strategy, visit};
use crate::operators::io::GraphFiles;
use crate::parts::Parts;
use crate::physical::{self, PhysicalPlan};
use crate::planning::{self, Planning};
use crate::random::Random;
use crate::rules::{self, Applied, Rule};
use crate::services::ServiceRegistry;
use crate::side_effect::SideEffects;
use crate::strategies;
use crate::traverser::Traverser;

/// A query ready to run, any number of times.
pub struct Prepared {
    /// As the front end meant it.
    pub original: Arc<LogicalPlan>,
    /// As it will run.
    pub optimised: LogicalPlan,
    /// The rules that changed it, in order, with the plan after each; those of the physical plan are in that.
    pub applied: Vec<Applied>,
    /// For the runtime.
    pub physical: PhysicalPlan,
    /// How large its runs were, and those of its kind.
    estimate: OnceLock<Arc<Estimate>>,
}

impl Prepared {
    /// Optimises and builds a plan.
    ///
    /// Errors: `Invalid` for what no operator can carry out.
    pub fn new(original: LogicalPlan) -> Result<Prepared> {
        Prepared::in_time(original, false, &planning::UNLIMITED)
    }

    /// As [`Prepared::new`], keeping the texts that `explain()` shows: of the plan after each rule, of spreads and of scopes.
    pub fn explained(original: LogicalPlan) -> Result<Prepared> {
        Prepared::in_time(original, true, &planning::UNLIMITED)
    }

    /// As [`Prepared::new`], or with `keep_texts` as [`Prepared::explained`], as long as the query has not to stop.
    ///
    /// Errors: `Invalid` for what no operator can carry out; those of `planning`.
    pub fn in_time(original: LogicalPlan, keep_texts: bool, planning: &Planning) -> Result<Prepared> {
        let original = Arc::new(original);
        let mut optimised = (*original).clone();
        strategies::apply(&mut optimised);
        let applied = rules::apply(&mut optimised, keep_texts, planning)?;
        let physical = physical::build(&optimised, keep_texts, planning)?;
        Ok(Prepared { original, optimised, applied, physical, estimate: OnceLock::new() })
    }

    /// Whether it may write, so that it needs a transaction that may, and that records what is read.
    pub fn writes(&self) -> bool {
        self.physical.requirements.writes
    }

    /// All rules that were applied, in order, with what came of each.
    pub fn rules(&self) -> impl Iterator<Item = &Applied> {
        self.applied.iter().chain(&self.physical.applied)
    }

    /// What `explain()` shows: the traversal as written, after each rule that changed it, what rules did to the steps of the physical plan, its
    /// operators, which parts of it several executors may work on, and how its scopes run.
    pub fn explanation(&self) -> Explanation {
        let mut intermediate: Vec<(Arc<str>, Arc<str>, Arc<str>)> = Vec::new();
        let mut add = |name: &str, category: &str, text: &str| {
            intermediate.push((Arc::from(name), Arc::from(category), Arc::from(text)));
        };
        for (rule, text) in self.rules() {
            add(rule.info().name, rule.info().stage.category(), text);
        }
        add("Operators", "P", &self.physical.operators());
        self.physical.spreads.iter().for_each(|text| add("Spread", "P", text));
        self.physical.scopes.iter().for_each(|text| add("Scope", "P", text));
        Explanation {
            original: Arc::from(self.original.to_string()),
            intermediate,
            final_plan: Arc::from(self.optimised.to_string()),
        }
    }

    /// As [`Prepared::explanation`], with the way each scan would read `snapshot`.
    pub fn explanation_on(&self, snapshot: &Snapshot) -> Explanation {
        let mut explanation = self.explanation();
        let name = Rule::AccessPaths.info().name;
        let Some((_, _, shown)) = explanation.intermediate.iter_mut().find(|(own, ..)| **own == *name) else {
            return explanation;
        };
        let mut paths = Vec::new();
        visit::walk_traversals(&self.optimised.root, &mut |traversal| {
            for (position, own) in traversal.nodes.iter().enumerate() {
                let elements = match own.node {
                    Node::Vertices { all: true, .. } => ElementKind::Vertex,
                    Node::Edges { all: true, .. } => ElementKind::Edge,
                    _ => continue,
                };
                let access = physical::conditions_of(&traversal.nodes[position + 1..]);
                if !access.is_all() {
                    paths.push(format!("{} by {}", own.node, access.path(snapshot, elements)));
                }
            }
        });
        *shown = Arc::from(paths.join("; ").as_str());
        explanation
    }
}

/// One row of a result: a detached value and how often it occurs.
pub type Row = (Value, u64);

/// How a query ended, for its caller.
pub struct QueryEnd {
    /// The error that ended it, if one did.
    pub result: Result<()>,
    /// The transaction it ran in, to commit, roll back or go on with.
    pub transaction: Transaction,
    /// Counters by node of the plan, if it was profiled.
    pub profile: Option<Vec<NodeProfile>>,
    /// The most memory its operators held at once, in bytes (estimated).
    pub memory_peak_bytes: usize,
    /// Work units it used.
    pub work_units: u64,
    /// Ends the transaction if its changes are not wanted.
    pub unwanted: Unwanted,
}

/// Frees a transaction with changes that nobody wants.
pub struct Unwanted {
    frees: Frees,
    /// What the changes hold on the query's account.
    changes: Held,
}

impl Unwanted {
    /// Frees what else is large where the query was: elsewhere then, else at once.
    pub fn frees(&self) -> Frees {
        self.frees.clone()
    }

    /// Rolls back. Of many changes, the memory is free some time later, and their account then.
    pub fn roll_back(self, transaction: Transaction) {
        self.undo(transaction.forget());
    }

    /// As [`Unwanted::roll_back`], where the transaction goes on without them.
    pub fn undo(self, undone: Undone) {
        /// So many are freed within a millisecond or two.
        const AT_ONCE_MAX: usize = 1 << 14;
        let is_divisible = undone.changes_at_once() <= AT_ONCE_MAX;
        let changes = growing::kept(Box::new(Changes(undone)), Arc::new(self.changes));
        if is_divisible {
            self.frees.free_in_pieces(changes);
        } else {
            self.frees.free(changes);
        }
    }
}

/// Changes of a transaction that nobody wants.
struct Changes(Undone);

impl Remains for Changes {
    fn free_some(&mut self, pieces: usize) -> usize {
        self.0.free_some(pieces)
    }

    fn pieces(&self) -> usize {
        self.0.changes()
    }

    fn split(&mut self) -> Option<Box<dyn Remains>> {
        Some(Box::new(Changes(self.0.split()?)))
    }
}

/// Wakes a query that waits for its caller to take rows.
#[derive(Clone)]
pub struct RowWaker(Waker<Graphs>);

impl RowWaker {
    /// Says that rows can be taken again.
    pub fn wake(&self) {
        self.0.wake();
    }
}

/// Takes the rows of a query. Called on an executor: must not block.
pub trait RowSink: Send {
    /// Takes rows from the front; `Full` makes the query wait until `waker` is called.
    ///
    /// `held` is what the rows take on the query's account. Who keeps them beyond this call takes it along and drops it with them.
    fn rows(&mut self, rows: &mut VecDeque<Row>, held: &mut Held, waker: &RowWaker) -> Delivery;

    /// The query is over.
    fn end(self: Box<Self>, end: QueryEnd);
}

/// Limits and options of one run.
#[derive(Clone)]
pub struct RunOptions {
    /// For whom the work is done, for fairness between tenants.
    pub tenant: Tenant,
    /// Who asks; none where nobody has to say so.
    pub caller: Option<Arc<Caller>>,
    /// Nanoseconds the query may take from now; none: no limit.
    pub timeout_ns: Option<u64>,
    /// Bytes its operators may hold.
    pub memory_limit_bytes: usize,
    /// The account it takes them from, if somebody else wants to see it; else the engine opens one.
    pub memory: Option<MemoryAccount>,
    /// What of elements goes into rows.
    pub materialize: Materialize,
    /// Whether to count per node.
    pub profiled: bool,
    /// Whether it looks at the graph at all; what does not is answered though a file of the graph is damaged.
    pub reads_graph: bool,
    /// The switch to stop it; give a clone to whoever may.
    pub cancel: CancelToken,
    /// Where it waits if it is large and there is no place for it yet.
    pub gate: Option<Arc<Gate<Graphs>>>,
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions {
            tenant: Tenant::default(),
            caller: None,
            timeout_ns: None,
            memory_limit_bytes: 1 << 30,
            memory: None,
            materialize: Materialize::All,
            profiled: false,
            reads_graph: true,
            cancel: CancelToken::default(),
            gate: None,
        }
    }
}

/// Runs queries.
pub struct Engine {
    executors: Executors<Graphs>,
    clock: Arc<dyn Clock>,
    services: Arc<ServiceRegistry>,
    analytics: Option<Arc<Analytics>>,
    io_root: Option<Arc<std::path::Path>>,
    files: Option<Arc<dyn GraphFiles>>,
    next_seed: AtomicU64,
    memory: Arc<ServerMemory>,
    kinds: Kinds,
}

/// How an engine is set up.
pub struct EngineOptions {
    /// Executor threads and their turns.
    pub executors: ExecutorOptions,
    /// What `call()` can call.
    pub services: ServiceRegistry,
    /// Passes for k-hop queries; none: each searches by itself.
    pub analytics: Option<AnalyticsOptions>,
    /// The folder `io()` is confined to; none refuses `io()`.
    pub io_root: Option<std::path::PathBuf>,
    /// Reads and writes graph files for `io()`; none refuses `io()`.
    pub files: Option<Arc<dyn GraphFiles>>,
    /// Where unseeded random numbers begin.
    pub random_seed: u64,
    /// Bytes that all queries may hold together.
    pub queries_memory_bytes: usize,
    /// Called on the thread that has freed the last of what a query held, with the most bytes that it was; is fast.
    pub memory_freed: Option<fn(usize)>,
}

impl EngineOptions {
    /// An engine with so many executors and the standard services: no passes, no files, no bound on memory.
    pub fn with_executors(executors: usize) -> EngineOptions {
        EngineOptions {
            executors: ExecutorOptions { executors, ..ExecutorOptions::default() },
            services: ServiceRegistry::standard(),
            analytics: None,
            io_root: None,
            files: None,
            random_seed: 1,
            queries_memory_bytes: usize::MAX,
            memory_freed: None,
        }
    }
}

impl Engine {
    /// Starts the executors.
    ///
    /// Errors: those of the operating system when it refuses a thread.
    pub fn start(options: EngineOptions) -> std::io::Result<Engine> {
        freeing::begin();
        Ok(Engine {
            executors: Executors::start(&options.executors)?,
            clock: Arc::new(MonotonicClock::default()),
            services: Arc::new(options.services),
            analytics: options.analytics.map(Analytics::start).transpose()?.map(Arc::new),
            io_root: options.io_root.map(Arc::from),
            files: options.files,
            next_seed: AtomicU64::new(options.random_seed),
            memory: Arc::new(ServerMemory::new(options.queries_memory_bytes).tell(options.memory_freed)),
            kinds: Kinds::default(),
        })
    }

    /// What all queries hold together, and may.
    pub fn memory(&self) -> &Arc<ServerMemory> {
        &self.memory
    }

    /// An account for one query of a tenant.
    pub fn account(&self, limit_bytes: usize, tenant: Tenant) -> MemoryAccount {
        MemoryAccount::of_server(limit_bytes, &self.memory, tenant)
    }

    /// Passes and projections, if it has any.
    pub fn analytics(&self) -> Option<&Arc<Analytics>> {
        self.analytics.as_ref()
    }

    /// How often an executor was given a part of a query of another.
    pub fn times_spread(&self) -> u64 {
        self.executors.times_spread()
    }

    /// How often an executor was relieved of a turn that did not end, so that others went on.
    pub fn times_relieved(&self) -> u64 {
        self.executors.times_relieved()
    }

    /// Queries that are running or waiting, and parts of them on other executors.
    pub fn load(&self) -> usize {
        self.executors.load()
    }

    /// Starts a query in `transaction`; rows and end go to `sink`.
    pub fn submit(
        &self,
        prepared: &Prepared,
        transaction: Transaction,
        options: &RunOptions,
        sink: Box<dyn RowSink>,
    ) -> TaskHandle<Graphs> {
        let task = self.task(prepared, transaction, options, sink);
        self.executors.submit(options.tenant, task)
    }

    /// As [`Engine::submit`]; a query that is likely to be small begins on the calling thread, and often ends there before this returns, see
    /// [`Executors::submit_here`].
    pub fn submit_here(
        &self,
        prepared: &Prepared,
        transaction: Transaction,
        options: &RunOptions,
        sink: Box<dyn RowSink>,
    ) -> TaskHandle<Graphs> {
        let task = self.task(prepared, transaction, options, sink);
        match prepared.physical.requirements.begins_anywhere {
            true => self.executors.submit_here(options.tenant, task),
            false => self.executors.submit(options.tenant, task),
        }
    }

    /// Runs a query to its end on the calling thread.
    pub fn run_here(
        &self,
        prepared: &Prepared,
        transaction: Transaction,
        options: &RunOptions,
        sink: Box<dyn RowSink>,
    ) {
        self.task(prepared, transaction, options, sink).run_to_end();
    }

    fn task(
        &self,
        prepared: &Prepared,
        transaction: Transaction,
        options: &RunOptions,
        sink: Box<dyn RowSink>,
    ) -> Task<Graphs> {
        let source = &prepared.optimised.source;
        let seed = source.strategies.iter().find_map(|strategy| match strategy {
            Strategy::Seed(seed) => Some(*seed as u64),
            _ => None,
        });
        let mut side_effects = SideEffects::default();
        for (key, value, reducer) in &source.side_effects {
            side_effects.register(key, || value.clone(), *reducer);
        }
        side_effects.register_steps(&prepared.optimised.root);
        let control = Control {
            cancel: options.cancel.clone(),
            deadline_ns: options.timeout_ns.map(|timeout_ns| self.clock.now_ns().saturating_add(timeout_ns)),
            clock: self.clock.clone(),
        };
        // Before others ask for what is known of the kind.
        let estimate = prepared.estimate.get_or_init(|| {
            let kind = self.kinds.of(&prepared.original);
            kind.experiences.tell(&prepared.physical.experiences);
            Arc::new(Estimate::of_query(kind.estimate))
        });
        let context = QueryContext {
            control: control.clone(),
            transaction,
            side_effects,
            random: Random::seeded(self.next_seed.fetch_add(1, Ordering::Relaxed)),
            seed,
            step_randoms: Vec::new(),
            computed: Default::default(),
            memory: options.memory.clone().unwrap_or_else(|| self.account(options.memory_limit_bytes, options.tenant)),
            large_values: LargeValues::default(),
            changes: Held::default(),
            discarded: Vec::new(),
            memberships: Default::default(),
            services: self.services.clone(),
            analytics: self.analytics.clone(),
            io_root: self.io_root.clone(),
            files: self.files.clone(),
            sack: source.sack.clone(),
            bounds: (0..prepared.physical.bounds).map(|_| Bound::default()).collect(),
            passing: prepared.physical.passing.iter().map(Passing::after).collect(),
            parts: (0..prepared.physical.parts).map(|_| Parts::default()).collect(),
            ways: Arc::default(),
            adds_bulk: !source.without_bulk,
            caller: options.caller.clone(),
        };
        let seeds = [seed_traverser(&context.sack)];
        let detacher = Detacher::new(options.materialize, control.clone());
        let sink = Box::new(RowAdapter {
            sink,
            detacher,
            rows: VecDeque::new(),
            held: Held::default(),
            reads_graph: options.reads_graph,
        });
        Task::new(prepared.physical.plan.clone(), seeds, context, sink, control, options.profiled)
            .behind(options.gate.clone())
            .estimated(estimate.clone())
    }
}

/// The traverser that starts a query; sources replace its object.
fn seed_traverser(sack: &Option<SackOptions>) -> Traverser {
    let mut seed = Traverser::new(Value::Null);
    if let Some(sack) = sack {
        seed.set_sack(sack.initial.clone());
    }
    seed
}

/// Between the runtime's sink and the engine's: detaches rows.
struct RowAdapter {
    sink: Box<dyn RowSink>,
    detacher: Detacher,
    rows: VecDeque<Row>,
    /// About what `rows` hold, on the query's account.
    held: Held,
    reads_graph: bool,
}

/// Rows that are handed on together hold about as much at most, however large they are: what lies in the channel to a slow client is bounded
/// by some of these.
const DELIVERY_BYTES_MAX: usize = 1 << 20;

/// And no more than one part in so many of what the query may hold: with a small budget, rows on their way shall not be all of it.
const DELIVERY_PART: usize = 32;

impl RowAdapter {
    /// Has so many bytes for the rows on the query's account.
    ///
    /// That they are beyond the query's own budget is no reason to fail: they are few, or one value that shares its memory with what the
    /// query holds anyway. They stay counted, so whatever else it wants then fails.
    fn count(&mut self, bytes: usize, context: &QueryContext) -> Result<()> {
        match self.held.add(&context.memory, bytes - self.held.bytes()) {
            Err(error) if error.kind != QueryErrorKind::Budget => Err(error),
            _ => Ok(()),
        }
    }
}

impl Sink<Graphs> for RowAdapter {
    fn deliver(
        &mut self,
        traversers: &mut Traversers,
        context: &mut QueryContext,
        waker: &Waker<Graphs>,
    ) -> Result<Delivery> {
        let bytes_max = DELIVERY_BYTES_MAX.min(context.memory.limit_bytes() / DELIVERY_PART);
        // What a comparison says that was not carried to its end does not leave the query.
        context.check()?;
        // What was not taken comes again.
        let mut bytes = self.held.bytes();
        while bytes <= bytes_max
            && let Some(traverser) = traversers.pop_front()
        {
            let value = self.detacher.detach(traverser.value, context)?;
            bytes += value.size_hint_bytes();
            self.rows.push_back((value, traverser.bulk));
        }
        self.detacher.forget();
        self.count(bytes, context)?;
        let delivery = self.sink.rows(&mut self.rows, &mut self.held, &RowWaker(waker.clone()));
        if self.rows.is_empty() {
            self.held.give_back();
        }
        Ok(delivery)
    }

    fn pending(&self) -> bool {
        !self.rows.is_empty()
    }

    fn complete(self: Box<Self>, context: QueryContext, outcome: Outcome<Graphs>) {
        // Who reads a damaged column is unwound from it; only now is it looked at which. What others have found meanwhile may have made this wrong.
        let sound = match &outcome.result {
            Err(error) if error.kind == QueryErrorKind::Internal => context.transaction.examine(),
            _ if self.reads_graph => context.transaction.check_sound(),
            _ => Ok(()),
        };
        // As for rows: what was compared to decide that there are none, or what to change.
        let in_time = context.check();
        let result = sound.map_err(QueryError::from).and(outcome.result).and(in_time);
        let end = QueryEnd {
            result,
            memory_peak_bytes: context.memory.peak_bytes(),
            transaction: context.transaction,
            profile: outcome.profile,
            work_units: outcome.work_units,
            unwanted: Unwanted { frees: outcome.frees, changes: context.changes },
        };
        self.sink.end(end);
    }
}

/// Collects all rows; for tests, tools and calls on the calling thread.
pub struct Collector {
    /// Where rows and the end go.
    pub done: Box<dyn FnOnce(Vec<Row>, QueryEnd) + Send>,
    /// The rows so far.
    pub collected: Vec<Row>,
}

impl RowSink for Collector {
    fn rows(&mut self, rows: &mut VecDeque<Row>, _held: &mut Held, _waker: &RowWaker) -> Delivery {
        self.collected.extend(rows.drain(..));
        Delivery::Accepted
    }

    fn end(self: Box<Self>, end: QueryEnd) {
        (self.done)(self.collected, end);
    }
}

impl Engine {
    /// Runs a query to its end on the calling thread and returns its rows with the transaction it ran in.
    pub fn collect(
        &self,
        prepared: &Prepared,
        transaction: Transaction,
        options: &RunOptions,
    ) -> (Result<Vec<Row>>, Option<Transaction>) {
        let (sender, receiver) = std::sync::mpsc::channel();
        let done = Box::new(move |rows: Vec<Row>, end: QueryEnd| {
            let _ = sender.send((end.result.map(|()| rows), Some(end.transaction)));
        });
        self.run_here(prepared, transaction, options, Box::new(Collector { done, collected: Vec::new() }));
        receiver.recv().unwrap_or_else(|_| (Err(QueryError::invalid("the query ended without saying how")), None))
    }
}
