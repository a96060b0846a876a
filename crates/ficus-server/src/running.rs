//! A query that runs: its rows, its cancellation, its share of the server's limits, and the end of its transaction.
//!
//! ```text
//! start ──► streaming ──done──► (managed transaction: commit ──►) last part
//!               └─────failed──► (managed transaction: roll back ──►) failure
//! dropped before the end ──► cancelled
//! ```

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use ficus_query::budget::Held;
use tokio::sync::oneshot;
use tokio::time::Instant;
use uuid::Uuid;

use crate::backend::{Backend, CancelHandle, Failure, Query, TransactionKey};
use crate::catalogue;
use crate::event;
use crate::metrics::{Gauge, Metrics};
use crate::operation::Run;
use crate::rows::{Part, Rows};
use crate::shared::Shared;
use crate::tenants::Asker;

/// Time beyond the cap that the engine gets to end a query by itself before the server gives up on it.
const GRACE: Duration = Duration::from_secs(2);

/// Where a commit or rollback will say how it went.
pub(crate) type Outcome = oneshot::Receiver<Result<(), Failure>>;

/// The session's transaction a query runs in.
#[derive(Clone, Debug)]
pub(crate) struct SessionTransaction {
    pub session: Arc<str>,
    pub key: TransactionKey,
    /// Commit or roll back with the query.
    pub managed: bool,
}

/// A query that was started and whose answer is not complete.
pub(crate) struct Running {
    /// Names this run in logs.
    pub query_id: Uuid,
    backend: Arc<dyn Backend>,
    metrics: Arc<Metrics>,
    rows: Rows,
    cancel: Option<CancelHandle>,
    /// When the server gives up on it.
    pub deadline: Option<Instant>,
    pub transaction: Option<SessionTransaction>,
    /// Set when the transaction's key is dead.
    pub transaction_ended: bool,
    pub warnings: Vec<String>,
    ending: Option<(Outcome, Part)>,
    _running: Gauge<fn(&Metrics) -> &AtomicI64>,
}

impl Running {
    /// Starts a query. Fails when the server runs as many as it may.
    pub fn start(
        shared: &Arc<Shared>,
        run: Run,
        transaction: Option<SessionTransaction>,
        asker: Asker,
    ) -> Result<Running, Failure> {
        let metrics = shared.metrics.clone();
        let limit = shared.config.limits.running;
        if metrics.running.load(Ordering::Relaxed) >= i64::try_from(limit).unwrap_or(i64::MAX) {
            let message = format!("Rate limiting: {limit} requests run, as many as allowed");
            return Err(Failure::new(&catalogue::TOO_MANY_REQUESTS, message));
        }
        let running = Gauge::new(metrics.clone(), (|metrics| &metrics.running) as fn(&Metrics) -> &AtomicI64);
        let timeouts = &shared.config.timeouts;
        let timeout_cap = timeouts.evaluation_cap();
        let query = Query {
            program: run.program,
            bindings: run.bindings,
            source: run.source,
            transaction: transaction.as_ref().map(|transaction| transaction.key),
            timeout: timeouts.evaluation(run.evaluation_timeout_ms),
            timeout_cap,
            batch_size: run.batch_size,
            materialize_properties: run.materialize_properties,
            query_id: shared.identifiers.next(),
            asker,
        };
        let user_agent = run.user_agent.as_deref();
        tracing::trace!(query_id = %query.query_id, source = %query.source, tenant = %query.asker.tenant.name(), user_agent, "query starts");
        let query_id = query.query_id;
        let (sink, receiver) = event::channel();
        let cancel = shared.backend.start(query, sink);
        Ok(Running {
            query_id,
            backend: shared.backend.clone(),
            metrics,
            rows: Rows::new(receiver, run.shape, run.batch_size),
            cancel: Some(cancel),
            deadline: timeout_cap.map(|cap| Instant::now() + cap + GRACE),
            transaction,
            transaction_ended: false,
            warnings: run.warnings,
            ending: None,
            _running: running,
        })
    }

    /// The next part of the answer. Not to be called again after the last.
    pub fn poll_part(&mut self, context: &mut Context<'_>) -> Poll<Part> {
        if self.ending.is_none() {
            let part = ready!(self.rows.poll_part(context));
            let succeeded = match &part {
                Part::More(_) => return Poll::Ready(part),
                Part::Last(_, completion) => {
                    self.transaction_ended = completion.transaction_finished;
                    true
                }
                Part::Failed(_) => false,
            };
            self.cancel = None;
            match &self.transaction {
                Some(transaction) if transaction.managed && !self.transaction_ended => {
                    let outcome = finish_transaction(&*self.backend, transaction.key, succeeded);
                    self.transaction_ended = true;
                    self.ending = Some((outcome, part));
                }
                _ => return Poll::Ready(part),
            }
        }
        let (outcome, _) = self.ending.as_mut().expect("it was set or found above");
        let result = ready!(poll_outcome(outcome, context));
        let (_, part) = self.ending.take().expect("it was borrowed above");
        Poll::Ready(match (result, part) {
            (Err(failure), Part::Last(..)) => Part::Failed(failure),
            (_, part) => part,
        })
    }

    /// Gives up on the query when its time, and the engine's grace, are over.
    pub fn check_deadline(&mut self, now: Instant) -> Option<Failure> {
        if self.deadline.is_none_or(|deadline| deadline > now) {
            return None;
        }
        if let Some(cancel) = self.cancel.take() {
            cancel.cancel();
        }
        if let Some(transaction) = &self.transaction
            && transaction.managed
            && !self.transaction_ended
        {
            drop(finish_transaction(&*self.backend, transaction.key, false));
            self.transaction_ended = true;
        }
        tracing::error!(query_id = %self.query_id, "a query did not end at its time limit and was given up");
        let message = "A timeout occurred during traversal evaluation - consider increasing evaluationTimeout";
        Some(Failure::new(&catalogue::TIMEOUT, message))
    }

    /// What the rows of the last part take of the query's memory.
    pub fn take_held(&mut self) -> Held {
        self.rows.take_held()
    }

    /// Rows sent so far.
    pub fn rows_sent(&self) -> u64 {
        self.rows.sent
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.metrics.rows_sent.fetch_add(self.rows.sent, Ordering::Relaxed);
        if let Some(cancel) = self.cancel.take() {
            self.metrics.abandoned.fetch_add(1, Ordering::Relaxed);
            cancel.cancel();
        }
    }
}

/// Ends a transaction; the outcome comes later.
pub(crate) fn finish_transaction(backend: &dyn Backend, key: TransactionKey, commit: bool) -> Outcome {
    let (sender, outcome) = oneshot::channel();
    // Nobody listens any more when the client has gone; the transaction ends all the same.
    let done = move |result| drop(sender.send(result));
    backend.finish_transaction(key, commit, Box::new(done));
    outcome
}

/// How a commit or rollback went. Not to be called again after it answered.
pub(crate) fn poll_outcome(outcome: &mut Outcome, context: &mut Context<'_>) -> Poll<Result<(), Failure>> {
    let result = ready!(Future::poll(Pin::new(outcome), context));
    Poll::Ready(result.unwrap_or_else(|_| {
        Err(Failure::new(&catalogue::INTERNAL, "the transaction ended without an outcome; the server's log tells more"))
    }))
}
