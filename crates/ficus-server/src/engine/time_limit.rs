//! How long a program may take, from its arrival on: planning and waiting in line are the query's own time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ficus_dataflow::{CancelToken, Clock, Control, MonotonicClock};
use ficus_model::Value;
use ficus_query::logical::{Name, SourceOptions};
use ficus_query::planning::Planning;

/// The time that the statements of a program have.
#[derive(Clone)]
pub(super) struct TimeLimit {
    /// When the program came.
    pub arrived: Instant,
    /// Reads zero then.
    clock: Arc<dyn Clock>,
    timeout: Option<Duration>,
    cap: Option<Duration>,
}

impl TimeLimit {
    /// Of a program that comes now: what the request asks for, and the most that a statement may ask for.
    pub fn from_now(timeout: Option<Duration>, cap: Option<Duration>) -> TimeLimit {
        TimeLimit { arrived: Instant::now(), clock: Arc::new(MonotonicClock::default()), timeout, cap }
    }

    /// The time of a request whose statements ask for nothing else.
    pub fn of_request(&self) -> Option<Duration> {
        self.timeout
    }

    /// The time of a statement: what it asks for within the cap, or what the request may take.
    pub fn of_statement(&self, source: &SourceOptions) -> Option<Duration> {
        let asked = |(key, value): &(Name, Value)| match (&**key, value) {
            ("evaluationTimeout" | "scriptEvaluationTimeout", Value::Int(ms)) => u64::try_from(*ms).ok(),
            ("evaluationTimeout" | "scriptEvaluationTimeout", Value::Long(ms)) => u64::try_from(*ms).ok(),
            _ => None,
        };
        match source.options.iter().rev().find_map(asked) {
            // Zero switches the limit off, as far as the cap allows.
            Some(0) => self.cap,
            Some(ms) => {
                let asked = Duration::from_millis(ms);
                Some(self.cap.map_or(asked, |cap| asked.min(cap)))
            }
            None => self.timeout,
        }
    }

    /// When this much time is over.
    pub fn end_of(&self, timeout: Option<Duration>) -> Option<Instant> {
        timeout.and_then(|timeout| self.arrived.checked_add(timeout))
    }

    /// Planning that ends when this much time is over, or by the switch.
    pub fn planning(&self, timeout: Option<Duration>, cancel: &CancelToken) -> Planning {
        let deadline_ns = timeout.map(|timeout| u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
        Planning::under(Control { cancel: cancel.clone(), deadline_ns, clock: self.clock.clone() })
    }
}
