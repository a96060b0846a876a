//! k-hop questions of many users, answered together.
//!
//! Questions about one state of one graph that go the same way wait in one *line*. A coordinator takes the line that has waited
//! longest, all of it up to the width of a pass, and answers it on the threads of the pool; what arrives meanwhile forms the next
//! pass. Nobody waits for company: a question that finds the coordinator idle is answered at once, alone.
//!
//! Every question keeps its own [`Control`]: one whose caller has gone is dropped from the line, and a pass ends early only
//! when nobody wants any of its answers.

mod cache;
mod line;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use ficus_model::VertexId;
use ficus_storage::Snapshot;

use crate::{AnalyticsError, Answer, Control, HopEdges, Projection, ProjectionOptions};
use cache::{ProjectionCache, Wish};
pub use line::Line;
use line::{Waiting, answer_line};

/// A question of a user.
pub struct KHopRequest {
    /// The state it is about. Not that of a transaction with writes of its own: they would be shared with others.
    pub snapshot: Snapshot,
    /// Which questions it can be answered with.
    pub line: Line,
    /// Where it starts. Vertices that are gone reach nothing.
    pub sources: Vec<VertexId>,
    /// How many hops it takes.
    pub hops: crate::Hops,
    /// If given, the question ends when this vertex is reached.
    pub target: Option<VertexId>,
    /// Whether the vertices are wanted, not only their number.
    pub wants_vertices: bool,
    /// Whether somebody still wants the answer.
    pub control: Arc<dyn Control + Send>,
    /// Told the answer.
    pub deliver: Delivery,
}

/// What is told an answer: once, whatever happens, on a thread of the service. Must not block.
pub struct Delivery(Option<Box<Telling>>);

type Telling = dyn FnOnce(Result<KHopReply, AnalyticsError>) + Send;

impl Delivery {
    /// Calls this with the answer.
    pub fn new(tell: impl FnOnce(Result<KHopReply, AnalyticsError>) + Send + 'static) -> Delivery {
        Delivery(Some(Box::new(tell)))
    }

    fn tell(mut self, reply: Result<KHopReply, AnalyticsError>) {
        if let Some(tell) = self.0.take() {
            tell(reply);
        }
    }
}

impl Drop for Delivery {
    /// Who is still waiting was in a pass that panicked.
    fn drop(&mut self) {
        if let Some(tell) = self.0.take() {
            tell(Err(AnalyticsError::Failed));
        }
    }
}

/// What a user gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KHopReply {
    /// Numbers by hop, and the distance of the target.
    pub answer: Answer,
    /// The vertices, if they were wanted.
    pub vertices: Vec<VertexId>,
    /// Questions that were answered together.
    pub width: usize,
    /// From asking to the beginning of the pass.
    pub waited_ns: u64,
}

/// Limits of the service.
#[derive(Clone, Copy, Debug)]
pub struct AnalyticsOptions {
    /// Threads of a pass.
    pub threads: usize,
    /// Bytes that projections may take together; those not used for longest go first.
    pub projection_bytes_limit: u64,
    /// False: those who could ask are to search by themselves.
    pub batching: bool,
    /// Edges that count as few: what a query looks at by itself in less than a millisecond, and the longest hop along a projection that
    /// it goes without asking. Most neighbourhoods are smaller.
    pub alone_edges: u64,
}

impl Default for AnalyticsOptions {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        AnalyticsOptions { threads, projection_bytes_limit: 2 << 30, batching: true, alone_edges: 1 << 19 }
    }
}

/// A hop that is only counted goes along so many times more edges in the same time.
const COUNTED_EDGES: u64 = 4;

/// Many edges of a graph are more than this share of them.
const ALONE_SHARE: u64 = 8;

/// Counters for metrics.
#[derive(Debug, Default)]
pub struct Counters {
    /// Passes that were run.
    pub passes: AtomicU64,
    /// Questions that were answered by them.
    pub questions: AtomicU64,
    /// Projections that were made from nothing.
    pub projections: AtomicU64,
    /// Versions of projections that were made for later states.
    pub versions: AtomicU64,
    /// Nanoseconds questions waited for their pass, in sum.
    pub waited_ns: AtomicU64,
}

/// The service: threads, projections and lines.
pub struct Analytics {
    shared: Arc<Shared>,
    coordinator: Option<JoinHandle<()>>,
}

struct Shared {
    pool: rayon::ThreadPool,
    options: AnalyticsOptions,
    counters: Counters,
    /// Rank: taken for a moment, with no other lock taken inside.
    inbox: Mutex<Inbox>,
    arrived: Condvar,
    /// Rank: as `inbox`; the marks of projections are locked inside.
    cache: Mutex<ProjectionCache>,
}

#[derive(Default)]
struct Inbox {
    waiting: VecDeque<Waiting>,
    /// Projections that are to be made while nobody waits.
    wanted: VecDeque<Wanted>,
    /// Those of them that are to be made from nothing, on the pool.
    to_make: VecDeque<(Snapshot, ProjectionOptions)>,
    is_making: bool,
    stop: bool,
}

/// A projection that nobody waits for.
struct Wanted {
    snapshot: Snapshot,
    options: ProjectionOptions,
    wish: Wish,
}

/// Projections that are wanted and not begun: each keeps a state in memory.
const WANTED_LIMIT: usize = 16;

impl Analytics {
    /// Starts its threads.
    ///
    /// Errors: those of the operating system when it refuses a thread.
    pub fn start(options: AnalyticsOptions) -> std::io::Result<Analytics> {
        let name = |number| format!("analytics-{number}");
        let pool = rayon::ThreadPoolBuilder::new().num_threads(options.threads.max(1)).thread_name(name).build();
        let shared = Arc::new(Shared {
            pool: pool.map_err(std::io::Error::other)?,
            options,
            counters: Counters::default(),
            inbox: Mutex::default(),
            arrived: Condvar::new(),
            cache: Mutex::new(ProjectionCache::new(options.projection_bytes_limit)),
        });
        let of_thread = shared.clone();
        let coordinator =
            std::thread::Builder::new().name("analytics".to_owned()).spawn(move || of_thread.coordinate())?;
        Ok(Analytics { shared, coordinator: Some(coordinator) })
    }

    /// What happened so far.
    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    /// Bytes that cached projections hold.
    pub fn projection_bytes(&self) -> u64 {
        lock(&self.shared.cache).bytes()
    }

    /// Whether questions join each other's passes.
    pub fn is_batching(&self) -> bool {
        self.shared.options.batching
    }

    /// Edges of a hop that a query goes by itself rather than ask, and that it looks at before a projection is wanted: of a small graph, fewer.
    pub fn alone_edges(&self, snapshot: &Snapshot) -> u64 {
        self.shared.options.alone_edges.min(snapshot.edge_count() / ALONE_SHARE)
    }

    /// Edges of a hop along a projection that a query goes by itself rather than ask.
    pub fn hop_edges(&self, snapshot: &Snapshot) -> HopEdges {
        let kept = self.alone_edges(snapshot);
        let counted = self.shared.options.alone_edges.saturating_mul(COUNTED_EDGES);
        HopEdges { kept, counted: counted.min(snapshot.edge_count() / ALONE_SHARE) }
    }

    /// The projection of this state, if there is one already.
    pub fn ready(&self, snapshot: &Snapshot, options: &ProjectionOptions) -> Option<Arc<Projection>> {
        lock(&self.shared.cache).get(snapshot, options, false)
    }

    /// The projection of this state, whole, as programs need it; made on the calling thread's time, with the pool, if there is none.
    ///
    /// Errors: `Stopped`; `Memory` if it cannot be kept within the limit; `TooManyVertices`; `Untestable`.
    pub fn projection(
        &self,
        snapshot: &Snapshot,
        options: &ProjectionOptions,
        control: &dyn Control,
    ) -> Result<Arc<Projection>, AnalyticsError> {
        self.shared.whole(snapshot, options, control)
    }

    /// The projection of this state for questions: a version of an earlier one if that is there and not much has changed.
    ///
    /// Errors: as [`Analytics::projection`].
    pub fn following(
        &self,
        snapshot: &Snapshot,
        options: &ProjectionOptions,
        control: &dyn Control,
    ) -> Result<Arc<Projection>, AnalyticsError> {
        self.shared.following(snapshot, options, control)
    }

    /// Runs work on the threads of the pool.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.shared.pool.install(work)
    }

    /// Runs work on the threads of the pool, later; whoever wants its outcome is told by the work itself.
    pub fn spawn(&self, work: impl FnOnce() + Send + 'static) {
        self.shared.pool.spawn(work);
    }

    /// Says that so many edges of this state were looked at one question at a time. A version of a projection that is there is made
    /// soon, in the background; without one, when that has cost more than making it would.
    pub fn note_live_work(&self, snapshot: &Snapshot, options: &ProjectionOptions, edges: u64) {
        let bytes = Projection::estimated_bytes(snapshot.vertex_count(), snapshot.edge_count());
        if bytes > self.shared.options.projection_bytes_limit {
            return;
        }
        let wish = lock(&self.shared.cache).note_live_work(snapshot, options, edges);
        if let Some(wish) = wish {
            let mut inbox = lock(&self.shared.inbox);
            // Who waited longest has found another way by now; it can be earned again.
            let full = inbox.wanted.len() == WANTED_LIMIT;
            let dropped = if full { inbox.wanted.pop_front() } else { None };
            inbox.wanted.push_back(Wanted { snapshot: snapshot.clone(), options: options.clone(), wish });
            drop(inbox);
            if let Some(Wanted { snapshot, options, .. }) = dropped {
                lock(&self.shared.cache).forget_demand(&snapshot, &options);
            }
            self.shared.arrived.notify_one();
        }
    }

    /// Asks. The answer is delivered later, whatever happens.
    pub fn ask(&self, request: KHopRequest) {
        let mut inbox = lock(&self.shared.inbox);
        if inbox.stop {
            drop(inbox);
            request.deliver.tell(Err(AnalyticsError::Stopped));
            return;
        }
        inbox.waiting.push_back(Waiting { request, since: Instant::now() });
        drop(inbox);
        self.shared.arrived.notify_one();
    }
}

impl Drop for Analytics {
    /// Ends the coordinator after its pass; who still waits is told `Stopped`.
    fn drop(&mut self) {
        lock(&self.shared.inbox).stop = true;
        self.shared.arrived.notify_one();
        if let Some(coordinator) = self.coordinator.take()
            && coordinator.thread().id() != std::thread::current().id()
            // A program may be the last to know of the service; the coordinator may wait for its very thread.
            && self.shared.pool.current_thread_index().is_none()
        {
            // If it panicked, the panic hook has reported it.
            let _ = coordinator.join();
        }
    }
}

impl Shared {
    fn coordinate(self: &Arc<Shared>) {
        loop {
            let mut inbox = lock(&self.inbox);
            while inbox.waiting.is_empty() && inbox.wanted.is_empty() && !inbox.stop {
                inbox = self.arrived.wait(inbox).unwrap_or_else(PoisonError::into_inner);
            }
            if inbox.stop {
                let waiting = std::mem::take(&mut inbox.waiting);
                drop(inbox);
                waiting.into_iter().for_each(|waiting| waiting.request.deliver.tell(Err(AnalyticsError::Stopped)));
                return;
            }
            let taken = line::take(&mut inbox.waiting, crate::question::PASS_LIMIT);
            let wanted = if taken.is_empty() { inbox.wanted.pop_front() } else { None };
            drop(inbox);
            // A panic fails those who are in the pass, who are told, and nobody else; the panic hook has reported it.
            let _ = catch_unwind(AssertUnwindSafe(|| {
                if let Some(wanted) = wanted {
                    self.provide(wanted);
                }
                if !taken.is_empty() {
                    self.answer(taken);
                }
            }));
        }
    }

    fn answer(&self, taken: Vec<Waiting>) {
        self.counters.passes.fetch_add(1, Ordering::Relaxed);
        self.counters.questions.fetch_add(taken.len() as u64, Ordering::Relaxed);
        let waited: u64 = taken.iter().map(|waiting| waiting.since.elapsed().as_nanos() as u64).sum();
        self.counters.waited_ns.fetch_add(waited, Ordering::Relaxed);
        answer_line(taken, &self.pool, &|snapshot, options, control| self.following(snapshot, options, control));
    }

    /// Makes what nobody waits for; what it fails with, those who ask for it are told.
    fn provide(self: &Arc<Shared>, wanted: Wanted) {
        let Wanted { snapshot, options, wish } = wanted;
        match wish {
            Wish::Follow => {
                let worn = self.follow(&snapshot, &options, &WhileOpen(self)).ok().flatten();
                if worn.is_some_and(|version| version.is_worn()) {
                    self.make_beside(snapshot, options);
                }
            }
            Wish::Make => self.make_beside(snapshot, options),
        }
    }

    /// Makes a whole projection on the pool, while questions are answered; one at a time.
    fn make_beside(self: &Arc<Shared>, snapshot: Snapshot, options: ProjectionOptions) {
        let mut inbox = lock(&self.inbox);
        let is_same =
            |(other, known): &(Snapshot, ProjectionOptions)| *known == options && other.is_state(&snapshot.key());
        if inbox.to_make.iter().any(is_same) {
            return;
        }
        if inbox.to_make.len() == WANTED_LIMIT {
            drop(inbox);
            lock(&self.cache).forget_demand(&snapshot, &options);
            return;
        }
        inbox.to_make.push_back((snapshot, options));
        if std::mem::replace(&mut inbox.is_making, true) {
            return;
        }
        drop(inbox);
        let shared = self.clone();
        self.pool.spawn(move || shared.make_all());
    }

    fn make_all(&self) {
        loop {
            let mut inbox = lock(&self.inbox);
            let Some((snapshot, options)) = inbox.to_make.pop_front().filter(|_| !inbox.stop) else {
                inbox.is_making = false;
                return;
            };
            drop(inbox);
            // The panic hook has reported it.
            let _ = catch_unwind(AssertUnwindSafe(|| self.whole(&snapshot, &options, &WhileOpen(self))));
        }
    }

    fn following(
        &self,
        snapshot: &Snapshot,
        options: &ProjectionOptions,
        control: &dyn Control,
    ) -> Result<Arc<Projection>, AnalyticsError> {
        if let Some(ready) = lock(&self.cache).get(snapshot, options, false) {
            return Ok(ready);
        }
        match self.follow(snapshot, options, control)? {
            Some(version) => Ok(version),
            None => self.whole(snapshot, options, control),
        }
    }

    /// A version of a projection that is there.
    fn follow(
        &self,
        snapshot: &Snapshot,
        options: &ProjectionOptions,
        control: &dyn Control,
    ) -> Result<Option<Arc<Projection>>, AnalyticsError> {
        let mut cache = lock(&self.cache);
        if let Some(ready) = cache.get(snapshot, options, false) {
            return Ok(Some(ready));
        }
        let nearest = cache.nearest(snapshot, options);
        drop(cache);
        let Some(nearest) = nearest else { return Ok(None) };
        let Some(version) = nearest.patched(snapshot, control)? else { return Ok(None) };
        let version = Arc::new(version);
        self.counters.versions.fetch_add(1, Ordering::Relaxed);
        lock(&self.cache).add(options.clone(), version.clone());
        Ok(Some(version))
    }

    fn whole(
        &self,
        snapshot: &Snapshot,
        options: &ProjectionOptions,
        control: &dyn Control,
    ) -> Result<Arc<Projection>, AnalyticsError> {
        if let Some(ready) = lock(&self.cache).get(snapshot, options, true) {
            return Ok(ready);
        }
        let needed_bytes = Projection::estimated_bytes(snapshot.vertex_count(), snapshot.edge_count());
        let limit_bytes = self.options.projection_bytes_limit;
        if needed_bytes > limit_bytes {
            return Err(AnalyticsError::Memory { what: "the projection of this graph", needed_bytes, limit_bytes });
        }
        let of_pool = snapshot.clone();
        let made = Arc::new(self.pool.install(move || Projection::new(&of_pool, options, control))?);
        self.counters.projections.fetch_add(1, Ordering::Relaxed);
        lock(&self.cache).add(options.clone(), made.clone());
        Ok(made)
    }
}

/// Ends work in the background with the service.
struct WhileOpen<'a>(&'a Shared);

impl Control for WhileOpen<'_> {
    fn is_stopped(&self) -> bool {
        lock(&self.0.inbox).stop
    }
}

/// What is inside of our locks is whole between any two of its changes.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
