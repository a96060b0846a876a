//! A program that runs for a query, and what becomes of its values.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ficus_analytics::{AnalyticsError, Control as ProgramControl, Place, Projection};
use ficus_dataflow::Control;
use ficus_model::{Cardinality, Value, ValueMap};
use ficus_storage::Protect;

use super::algorithm::{Algorithm, Request, Values};
use crate::budget::Held;
use crate::context::{Cx, QueryContext, Result};
use crate::error::{QueryError, QueryErrorKind};
use crate::services::LaterValues;

type Outcome = std::result::Result<(Arc<Projection>, Values), AnalyticsError>;

/// A program that was begun.
pub struct Job {
    algorithm: Algorithm,
    outcome: Arc<Mutex<Option<Outcome>>>,
    /// False once nobody waits any more.
    is_wanted: Arc<AtomicBool>,
    values: Option<(Arc<Projection>, Values)>,
    next: Place,
    write: Option<Arc<str>>,
    written: i64,
    has_ended: bool,
    held: Held,
}

/// Rows written between two looks at whether the turn is over.
const WRITTEN_PER_CHARGE: usize = 16;

impl Job {
    /// Begins it on the threads of analytics.
    ///
    /// Errors: `Invalid` without analytics; `Budget` if it would hold more than the query may.
    pub fn begin(algorithm: Algorithm, request: Request, cx: &mut Cx<'_>) -> Result<Job> {
        let context = &mut *cx.context;
        let analytics = context.analytics.clone().ok_or_else(|| {
            QueryError::invalid(format!(
                "{} needs the analytics engine, which is not running here",
                algorithm.service_name()
            ))
        })?;
        // What comes out depends on all of this.
        context.transaction.protect(Protect::AllVertices);
        context.transaction.protect(Protect::AllEdges);
        let has_writes = !context.transaction.is_read_only();
        let snapshot = (*context.transaction).clone();
        let (vertices, edges) = (snapshot.vertex_count() as usize, snapshot.edge_count() as usize);
        let mut bytes = request.bytes.0 * vertices + request.bytes.1 * edges;
        if has_writes {
            bytes += Projection::estimated_bytes(vertices as u64, edges as u64) as usize;
        }
        let mut held = Held::default();
        held.add(&mut context.memory, bytes)?;
        let (outcome, is_wanted) = (Arc::new(Mutex::new(None)), Arc::new(AtomicBool::new(true)));
        let control = JobControl { query: cx.control.clone(), is_wanted: is_wanted.clone() };
        let (filled, waker) = (outcome.clone(), cx.waker.clone());
        let (options, program) = (request.options, request.program);
        let of_pool = analytics.clone();
        analytics.spawn(move || {
            // A panic would otherwise leave the query waiting for ever.
            let run = std::panic::AssertUnwindSafe(|| {
                let projection = match has_writes {
                    true => Arc::new(Projection::new(&snapshot, &options, &control)?),
                    false => of_pool.projection(&snapshot, &options, &control)?,
                };
                let values = program(&projection, &snapshot, &control)?;
                Ok((projection, values))
            });
            let ended = std::panic::catch_unwind(run).unwrap_or_else(|_| {
                let reason = "the program failed unexpectedly; this is a bug in FicusDB, please report it".to_owned();
                Err(AnalyticsError::Invalid { parameter: "(none)", reason })
            });
            *filled.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
            waker.wake();
        });
        let write = request.write;
        Ok(Job { algorithm, outcome, is_wanted, values: None, next: 0, write, written: 0, has_ended: false, held })
    }

    /// The value of the next vertex that has one, with its place.
    fn next_value(&mut self, context: &QueryContext) -> Option<(Place, Value)> {
        let (projection, values) = self.values.as_ref()?;
        while (self.next as usize) < projection.vertex_count() {
            let place = self.next;
            self.next += 1;
            let value = match values {
                Values::Doubles(doubles) if !doubles[place as usize].is_finite() => continue,
                Values::Doubles(doubles) => Value::Double(doubles[place as usize]),
                Values::Longs(longs) => Value::Long(i64::try_from(longs[place as usize]).unwrap_or(i64::MAX)),
                Values::Places(places) => {
                    let named = projection.vertex(places[place as usize]);
                    context.transaction.vertex_id(named).unwrap_or(Value::Null)
                }
            };
            return Some((place, value));
        }
        None
    }

    /// Writes values until the turn is over; true if all are written.
    fn write(&mut self, key: &str, cx: &mut Cx<'_>) -> Result<bool> {
        let Some(projection) = self.values.as_ref().map(|(projection, _)| projection.clone()) else { return Ok(true) };
        while !cx.exhausted() {
            cx.charge(WRITTEN_PER_CHARGE);
            for _ in 0..WRITTEN_PER_CHARGE {
                let Some((place, value)) = self.next_value(cx.context) else { return Ok(true) };
                let vertex = projection.vertex(place);
                cx.context.transaction.set_vertex_property(vertex, key, value, Cardinality::Single, None)?;
                self.written += 1;
            }
        }
        Ok(false)
    }
}

impl LaterValues for Job {
    fn next(&mut self, cx: &mut Cx<'_>) -> Result<Option<Value>> {
        if self.has_ended {
            return Ok(None);
        }
        if self.values.is_none() {
            let Some(ended) = self.outcome.lock().unwrap_or_else(PoisonError::into_inner).take() else {
                cx.park();
                return Ok(None);
            };
            self.values = Some(ended.map_err(|error| of_program(self.algorithm, error, cx))?);
        }
        let Some(key) = self.write.clone() else {
            let Some((place, value)) = self.next_value(cx.context) else { return Ok(None) };
            let vertex = self.values.as_ref().map(|(projection, _)| projection.vertex(place));
            let vertex = vertex.map_or(Value::Null, Value::Vertex);
            return Ok(Some(map([("vertex", vertex), (self.algorithm.value_name(), value)])));
        };
        if !self.write(&key, cx)? {
            return Ok(None);
        }
        self.has_ended = true;
        Ok(Some(map([("written", Value::Long(self.written))])))
    }

    fn release(&mut self, context: &mut QueryContext) {
        self.held.give_back(&mut context.memory);
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.is_wanted.store(false, Ordering::Relaxed);
    }
}

fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    let text = |text: &str| Value::String(Arc::from(text));
    Value::Map(Arc::new(entries.into_iter().map(|(key, value)| (text(key), value)).collect::<ValueMap>()))
}

/// A program ends early when its query has ended, or does not want it any more.
struct JobControl {
    query: Control,
    is_wanted: Arc<AtomicBool>,
}

impl ProgramControl for JobControl {
    fn is_stopped(&self) -> bool {
        !self.is_wanted.load(Ordering::Relaxed) || self.query.check().is_err()
    }
}

/// What a query fails with when its program failed.
fn of_program(algorithm: Algorithm, error: AnalyticsError, cx: &Cx<'_>) -> QueryError {
    let named = format!("{}: {error}", algorithm.service_name());
    match (&error, cx.control.check()) {
        (AnalyticsError::Stopped, Err(interrupt)) => interrupt.into(),
        (AnalyticsError::Memory { .. } | AnalyticsError::TooManyVertices { .. }, _) => {
            QueryError::new(QueryErrorKind::Budget, named)
        }
        (AnalyticsError::Invalid { .. }, _) => QueryError::invalid(named),
        _ => QueryError::new(QueryErrorKind::Internal, named),
    }
}
