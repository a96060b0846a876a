//! Work on the threads of analytics that a query waits for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ficus_analytics::{AnalyticsError, Control as ProgramControl, Projection, ProjectionOptions};
use ficus_dataflow::{Control, Progress};
use ficus_model::VertexId;
use ficus_storage::{Protect, Snapshot};

use crate::budget::Held;
use crate::context::{Cx, QueryContext, Result};
use crate::error::{QueryError, QueryErrorKind};

/// The part of the graph that work is about.
pub enum Part {
    /// Edges by label. The projection is shared, unless the transaction has written.
    Labels(ProjectionOptions),
    /// The same for work that does not mind places of vertices that are gone, such as a search: the projection may follow an earlier one.
    Walked(ProjectionOptions),
    /// These edges, by their ends.
    Edges(Vec<(VertexId, VertexId)>),
    /// What was projected before.
    Projected(Arc<Projection>),
}

/// Work that was begun.
pub struct Background<T> {
    name: &'static str,
    outcome: Slot<T>,
    /// False once nobody waits any more.
    is_wanted: Arc<AtomicBool>,
    held: Held,
}

/// Where the outcome is put.
type Slot<T> = Arc<Mutex<Option<std::result::Result<T, AnalyticsError>>>>;

impl<T: Send + 'static> Background<T> {
    /// Begins it. `bytes` are those that it holds for each vertex and for each edge, its result included.
    ///
    /// Errors: `Invalid` without analytics; `Budget` if it would hold more than the query may.
    pub fn begin(
        name: &'static str,
        part: Part,
        bytes: (usize, usize),
        cx: &mut Cx<'_>,
        work: impl FnOnce(Arc<Projection>, &Snapshot, &dyn ProgramControl) -> std::result::Result<T, AnalyticsError>
        + Send
        + 'static,
    ) -> Result<Background<T>> {
        let context = &mut *cx.context;
        let analytics = context.analytics.clone().ok_or_else(|| {
            QueryError::invalid(format!("{name} needs the analytics engine, which is not running here"))
        })?;
        // What comes out depends on all of this.
        context.transaction.protect(Protect::AllVertices);
        context.transaction.protect(Protect::AllEdges);
        let has_writes = !context.transaction.is_read_only();
        let snapshot = (*context.transaction).clone();
        let vertices = snapshot.vertex_count() as usize;
        let edges = match &part {
            Part::Labels(_) | Part::Walked(_) => snapshot.edge_count(),
            Part::Edges(edges) => edges.len() as u64,
            Part::Projected(projection) => projection.edge_count(),
        } as usize;
        let mut needed_bytes = bytes.0 * vertices + bytes.1 * edges;
        if has_writes && matches!(part, Part::Labels(_) | Part::Walked(_)) || matches!(part, Part::Edges(_)) {
            needed_bytes += Projection::estimated_bytes(vertices as u64, edges as u64) as usize;
        }
        let mut held = Held::default();
        held.add(&context.memory, needed_bytes)?;
        let (outcome, is_wanted) = (Slot::default(), Arc::new(AtomicBool::new(true)));
        let (query, wanted) = (cx.control.clone(), is_wanted.clone());
        let control = BackgroundControl { stage: "projecting", query, is_wanted: wanted };
        control.progress(0.0);
        let (filled, waker) = (outcome.clone(), cx.waker.clone());
        let of_pool = analytics.clone();
        analytics.spawn(move || {
            // A panic would otherwise leave the query waiting for ever.
            let run = std::panic::AssertUnwindSafe(|| {
                let projection = match part {
                    Part::Labels(options) | Part::Walked(options) if has_writes => {
                        Arc::new(Projection::new(&snapshot, &options, &control)?)
                    }
                    Part::Labels(options) => of_pool.projection(&snapshot, &options, &control)?,
                    Part::Walked(options) => of_pool.following(&snapshot, &options, &control)?,
                    Part::Edges(edges) => Arc::new(Projection::of_edges(&snapshot, &edges, &control)?),
                    Part::Projected(projection) => projection,
                };
                let control = BackgroundControl { stage: "computing", ..control };
                control.progress(0.0);
                work(projection, &snapshot, &control)
            });
            let ended = std::panic::catch_unwind(run).unwrap_or_else(|_| {
                let reason = "the program failed unexpectedly; this is a bug in FicusDB, please report it".to_owned();
                Err(AnalyticsError::Invalid { parameter: "(none)", reason })
            });
            *filled.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
            waker.wake();
        });
        Ok(Background { name, outcome, is_wanted, held })
    }

    /// What came out; `None`, and the operator is parked, as long as it is not there.
    ///
    /// Errors: what the work ended with.
    pub fn outcome(&self, cx: &mut Cx<'_>) -> Result<Option<T>> {
        match self.outcome.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(ended) => ended.map(Some).map_err(|error| of_program(self.name, error, cx)),
            None => {
                cx.park();
                Ok(None)
            }
        }
    }

    /// Hands back what it holds of the query's memory.
    pub fn release(&mut self, _context: &mut QueryContext) {
        self.held.give_back();
    }
}

impl<T> Drop for Background<T> {
    fn drop(&mut self) {
        self.is_wanted.store(false, Ordering::Relaxed);
    }
}

/// Work ends early when its query has ended, or does not want it any more.
struct BackgroundControl {
    /// What is being done.
    stage: &'static str,
    query: Control,
    is_wanted: Arc<AtomicBool>,
}

impl ProgramControl for BackgroundControl {
    fn is_stopped(&self) -> bool {
        !self.is_wanted.load(Ordering::Relaxed) || self.query.check().is_err()
    }

    fn progress(&self, share: f64) {
        self.query.cancel.set_progress(Progress { stage: self.stage, round: None, share });
    }

    fn round(&self, done: u32, limit: u32) {
        let share = f64::from(done) / f64::from(limit.max(1));
        self.query.cancel.set_progress(Progress { stage: self.stage, round: Some(done), share });
    }
}

/// What a query fails with when its program failed.
fn of_program(name: &str, error: AnalyticsError, cx: &Cx<'_>) -> QueryError {
    let named = format!("{name}: {error}");
    match (&error, cx.control.check()) {
        (AnalyticsError::Stopped, Err(interrupt)) => interrupt.into(),
        (AnalyticsError::Memory { .. } | AnalyticsError::TooManyVertices { .. }, _) => {
            QueryError::new(QueryErrorKind::Budget, named)
        }
        (AnalyticsError::Invalid { .. }, _) => QueryError::invalid(named),
        _ => QueryError::new(QueryErrorKind::Internal, named),
    }
}
