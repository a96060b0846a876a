//! A program that runs for a query, and what becomes of its values.

use std::sync::Arc;

use ficus_analytics::{Place, Projection};
use ficus_dataflow::Progress;
use ficus_model::{Cardinality, Shared, Value, ValueMap};

use super::algorithm::{Algorithm, Request, Values};
use super::background::{Background, Part};
use crate::context::{Cx, QueryContext, Result};
use crate::services::LaterValues;

/// A program that was begun.
pub struct Job {
    algorithm: Algorithm,
    background: Background<(Arc<Projection>, Values)>,
    values: Option<(Arc<Projection>, Values)>,
    next: Place,
    write: Option<Arc<str>>,
    written: i64,
    has_ended: bool,
}

/// Values between two words on how far it has come.
const VALUES_PER_WORD: Place = 1 << 12;

/// Rows written between two looks at whether the turn is over.
const WRITTEN_PER_CHARGE: usize = 16;

impl Job {
    /// Begins it on the threads of analytics.
    ///
    /// Errors: `Invalid` without analytics; `Budget` if it would hold more than the query may.
    pub fn begin(algorithm: Algorithm, request: Request, cx: &mut Cx<'_>) -> Result<Job> {
        let Request { options, program, bytes, write } = request;
        let background = Background::begin(
            algorithm.service_name(),
            Part::Labels(options),
            bytes,
            cx,
            |projection, snapshot, control| {
                let values = program(&projection, snapshot, control)?;
                Ok((projection, values))
            },
        )?;
        Ok(Job { algorithm, background, values: None, next: 0, write, written: 0, has_ended: false })
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

    /// Says now and then how many of the values are on their way.
    fn tell(&self, stage: &'static str, cx: &Cx<'_>) {
        if let Some((projection, _)) = self.values.as_ref().filter(|_| self.next.is_multiple_of(VALUES_PER_WORD)) {
            let share = f64::from(self.next) / projection.vertex_count().max(1) as f64;
            cx.control.cancel.set_progress(Progress { stage, round: None, share });
        }
    }

    /// Writes values until the turn is over; true if all are written.
    fn write(&mut self, key: &str, cx: &mut Cx<'_>) -> Result<bool> {
        let Some(projection) = self.values.as_ref().map(|(projection, _)| projection.clone()) else { return Ok(true) };
        while !cx.exhausted() {
            cx.charge(WRITTEN_PER_CHARGE);
            for _ in 0..WRITTEN_PER_CHARGE {
                self.tell("writing", cx);
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
            let Some(ended) = self.background.outcome(cx)? else { return Ok(None) };
            self.values = Some(ended);
        }
        let Some(key) = self.write.clone() else {
            self.tell("answering", cx);
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
        self.background.release(context);
    }
}

fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    let text = |text: &str| Value::String(Arc::from(text));
    Value::Map(Shared::new(entries.into_iter().map(|(key, value)| (text(key), value)).collect::<ValueMap>()))
}
