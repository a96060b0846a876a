//! Running a program: its statements one after another in one transaction, the last one answers.
//!
//! A [`Run`] travels: it is owned by the sink of the statement that is running, and moves on when that ends. Rows go to the
//! connection as they come, those of a program that writes after its commit; if that meets a conflict, the program runs again
//! ([`super::retry`]).

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::task::Wake;

use ficus_dataflow::{CancelToken, Delivery, Frees, Interrupt, TaskHandle};
use ficus_gremlin::text::TransactionOperation;
use ficus_model::{Value, ValueMap};
use ficus_query::budget::Held;
use ficus_query::context::Graphs;
use ficus_query::detach;
use ficus_query::engine::{Prepared, QueryEnd, Row, RowSink, RowWaker, RunOptions, Unwanted};
use ficus_query::{QueryError, QueryErrorKind};
use ficus_storage::{AsOf, Graph, Savepoint, Transaction};

use crate::backend::{Failure, Materialize, Query, TransactionKey};
use crate::catalogue;
use crate::event::{Batch, Completion, EventSink, Push};

use super::Shared;
use super::failure::{self, Form};
use super::partial;
use super::past;
use super::program::{self, Answer, Ready};
use super::queries::{Entrance, Entry, Queries, Ticket};
use super::query_services::looks_after_queries;
use super::retry::{HELD_ROWS_MAX, Tries};
use super::server_source::{SERVER_SOURCE, ServerSource};
use super::time_limit::TimeLimit;
use super::transactions;

/// Cancels whatever statement of a program is running.
#[derive(Clone)]
pub struct CancelSwitch {
    token: CancelToken,
    /// Protects where the program is; held to set or clone it.
    place: Arc<Mutex<Option<Place>>>,
}

/// Where a program is that may have to be stopped.
#[derive(Clone)]
enum Place {
    /// In line, under this number.
    Line(Weak<Queries>, u64),
    /// On an executor.
    Running(Arc<TaskHandle<Graphs>>),
}

impl CancelSwitch {
    /// A switch for queries that run under `token`.
    pub fn new(token: CancelToken) -> CancelSwitch {
        CancelSwitch { token, place: Arc::default() }
    }

    /// Stops the program.
    pub fn cancel(&self) {
        self.stop(Interrupt::Cancelled);
    }

    /// Stops the program for this reason. The first reason counts.
    pub fn stop(&self, why: Interrupt) {
        self.token.stop(why);
        let place = self.place.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match place {
            None => {}
            Some(Place::Line(queries, number)) => {
                if let Some(queries) = queries.upgrade() {
                    queries.give_up(number, why);
                }
            }
            Some(Place::Running(handle)) => handle.stop(why),
        }
    }

    #[cfg(test)]
    pub(super) fn is_stopped(&self) -> bool {
        self.token.is_cancelled()
    }

    fn watch(&self, handle: TaskHandle<Graphs>) {
        *self.place.lock().unwrap_or_else(PoisonError::into_inner) = Some(Place::Running(Arc::new(handle)));
    }

    /// It was given a number; it may have been let in since.
    fn entered(&self, queries: &Arc<Queries>, number: u64) {
        self.place
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert_with(|| Place::Line(Arc::downgrade(queries), number));
        // Who stopped it before that could not know the number.
        if let Some(why) = self.token.interrupt() {
            queries.give_up(number, why);
        }
    }
}

/// The statements of a program. A plan of tens of thousands of steps takes milliseconds to free, for which no executor is to be kept.
struct Statements {
    list: Arc<Vec<Ready>>,
    /// The one that was run last.
    last: Option<Arc<Prepared>>,
    frees: Frees,
}

impl Drop for Statements {
    fn drop(&mut self) {
        self.frees.free((std::mem::take(&mut self.list), self.last.take()));
    }
}

/// A program on its way.
struct Run {
    shared: Arc<Shared>,
    statements: Statements,
    position: usize,
    graph: Arc<Graph>,
    key: Option<TransactionKey>,
    /// What the session's transaction was before this program: if it fails, nothing of it is left.
    savepoint: Option<Savepoint>,
    transaction_finished: bool,
    tries: Tries,
    /// Rows of the last statement that are sent after the commit; `None` if they are sent as they come.
    held: Option<Batch>,
    /// Something of the answer was sent, or of the work committed: running it again would do it twice.
    is_told: bool,
    form: Form,
    time: TimeLimit,
    materialize: Materialize,
    cancel: CancelToken,
    switch: CancelSwitch,
    events: EventSink,
    ticket: Ticket,
    /// The deadline came before the end, and what was found until then is the answer.
    is_incomplete: bool,
}

thread_local! {
    /// Whether the next statement that is submitted on this thread may begin on it: the thread has come from the client. Not so where a program
    /// goes on, or another is let in, because something has ended: those would nest, and the thread may be the store's.
    static MAY_BEGIN: Cell<bool> = const { Cell::new(false) };
}

/// Starts a program. Never blocks longer than it takes to parse the text, and for one turn if an executor is free.
pub fn start(shared: &Arc<Shared>, query: Query, events: EventSink, cancel: CancelToken, switch: &CancelSwitch) {
    let form = Form::of(&query.program);
    let is_of_server = &*query.source == SERVER_SOURCE;
    let unknown =
        || Failure::new(&catalogue::UNKNOWN_SOURCE, format!("there is no traversal source [{}]", query.source));
    let graph = match is_of_server {
        true => shared.server_source.graph(),
        false => shared.sources.get(&query.source).ok_or_else(unknown),
    };
    let graph = match graph {
        Ok(graph) => graph,
        Err(failure) => return events.fail(failure),
    };
    let time = TimeLimit::from_now(query.timeout, query.timeout_cap);
    let entry = Arc::new(Entry {
        id: query.query_id,
        asker: query.asker.clone(),
        source: query.source.clone(),
        program: query.program.clone(),
        arrived: time.arrived,
        planned: OnceLock::new(),
        deadline: Mutex::new(time.end_of(time.of_request())),
        memory: shared.engine.account(shared.memory_limit_bytes, query.asker.tenant.share()),
        rows: AtomicU64::new(0),
        queued: OnceLock::new(),
        gate: OnceLock::new(),
        statement: Mutex::default(),
        cancel: cancel.clone(),
        switch: switch.clone(),
    });
    let arrival = shared.queries.arrive(entry);
    let planned = plan(shared, &query, &time, &cancel).and_then(|planned| match is_of_server {
        true if planned.0.iter().any(reads_graph) => Err(ServerSource::refusal()),
        _ => Ok(planned),
    });
    let (statements, as_of) = match planned {
        Ok(planned) => planned,
        Err(failure) => {
            // Who is told that it ended does not find it in the list.
            drop(arrival);
            events.fail(failure);
            return;
        }
    };
    let timeout = statements.iter().find_map(|statement| match statement {
        Ready::Query { prepared, .. } => Some(time.of_statement(&prepared.original.source)),
        _ => None,
    });
    arrival.entry().is_planned(time.end_of(timeout.unwrap_or(time.of_request())));
    let entrance = entrance(&statements);
    let (of_run, own_switch) = (shared.clone(), switch.clone());
    let start = move |admitted: Result<Ticket, Interrupt>| match admitted {
        Ok(ticket) => {
            begin_run(&of_run, query, graph, statements, as_of, form, events, time, cancel, own_switch, ticket)
        }
        Err(why) => events.fail(failure::query(&QueryError::from(why), form)),
    };
    MAY_BEGIN.set(true);
    let number = arrival.enter(entrance, Box::new(start));
    MAY_BEGIN.set(false);
    switch.entered(&shared.queries, number);
}

/// How a program is let in.
fn entrance(statements: &[Ready]) -> Entrance {
    let all = |is_so: fn(&Prepared) -> bool| {
        statements.iter().all(|statement| match statement {
            Ready::Query { prepared, .. } => is_so(prepared),
            _ => true,
        })
    };
    // The end of a transaction makes room for others, and who looks after the server is not to wait for it.
    if all(|prepared| looks_after_queries(&prepared.original)) {
        return Entrance::AtOnce;
    }
    // A service may do much in a single step.
    match all(|prepared| prepared.physical.requirements.begins_anywhere) {
        true => Entrance::Tried,
        false => Entrance::InLine,
    }
}

/// The statements of a program, and the state that they read if it is an earlier one.
fn plan(
    shared: &Shared,
    query: &Query,
    time: &TimeLimit,
    cancel: &CancelToken,
) -> Result<(Arc<Vec<Ready>>, Option<AsOf>), Failure> {
    let statements = program::prepare(&shared.programs, &query.program, &query.bindings, time, cancel)?;
    let as_of = past::as_of(&statements, query.transaction.is_some())?;
    partial::check(&statements)?;
    Ok((statements, as_of))
}

/// Begins a program that was let in.
#[expect(clippy::too_many_arguments, reason = "they are what a run is made of")]
fn begin_run(
    shared: &Arc<Shared>,
    query: Query,
    graph: Arc<Graph>,
    statements: Arc<Vec<Ready>>,
    as_of: Option<AsOf>,
    form: Form,
    events: EventSink,
    time: TimeLimit,
    cancel: CancelToken,
    switch: CancelSwitch,
    ticket: Ticket,
) {
    if let Some(damage) = graph.damage().filter(|_| statements.iter().any(reads_graph)) {
        events.fail(failure::query(&QueryError::from(damage), form));
        return;
    }
    let mut transaction = match query.transaction {
        None => match as_of.map(|as_of| graph.begin_reading_as_of(as_of)) {
            None => begin(&graph, &statements),
            Some(Ok(transaction)) => transaction,
            Some(Err(error)) => {
                events.fail(past::failure(&error));
                return;
            }
        },
        Some(key) => match shared.transactions.take(key, &cancel) {
            Ok(transaction) => transaction,
            Err(failure) => {
                events.fail(failure);
                return;
            }
        },
    };
    let savepoint = query.transaction.map(|_| transaction.savepoint());
    // Who writes answers after the commit, so that a conflict can be met by running it again.
    let held = (query.transaction.is_none() && transaction.may_write()).then(Batch::default);
    let run = Run {
        shared: shared.clone(),
        statements: Statements { list: statements, last: None, frees: Frees::default() },
        position: 0,
        graph,
        key: query.transaction,
        savepoint,
        transaction_finished: false,
        tries: Tries::new(),
        held,
        is_told: false,
        form,
        time,
        materialize: query.materialize_properties,
        cancel,
        switch,
        events,
        ticket,
        is_incomplete: false,
    };
    run.next(transaction);
}

/// Whether a statement looks at the graph.
fn reads_graph(statement: &Ready) -> bool {
    match statement {
        Ready::Query { prepared, .. } => !looks_after_queries(&prepared.original),
        Ready::Explain(_) => true,
        Ready::Value(_) | Ready::Transaction(_) => false,
    }
}

/// A transaction for a whole program; one that cannot write costs its reads nothing.
fn begin(graph: &Arc<Graph>, statements: &[Ready]) -> Transaction {
    let writes = |statement: &Ready| matches!(statement, Ready::Query { prepared, .. } if prepared.writes());
    if statements.iter().any(writes) { graph.begin() } else { graph.begin_reading() }
}

impl Run {
    /// Whether what the statement under way finds by its deadline is wanted.
    fn wants_partial(&self) -> bool {
        matches!(self.statements.list.get(self.position), Some(Ready::Query { prepared, .. }) if partial::is_wanted(prepared))
    }

    fn is_last(&self) -> bool {
        self.position + 1 >= self.statements.list.len()
    }

    /// Runs the statement at `position`, or ends the program after the last.
    fn next(mut self, transaction: Transaction) {
        let mut transaction = Some(transaction);
        loop {
            let Some(own) = transaction.take() else { return };
            match self.statements.list.get(self.position).cloned() {
                None => return self.finish(own),
                Some(Ready::Explain(prepared)) => {
                    let explanation = Value::Explanation(Arc::new(prepared.explanation_on(&own)));
                    if self.is_last() {
                        return self.answer(vec![(explanation, 1)], own);
                    }
                    transaction = Some(own);
                    self.position += 1;
                }
                Some(Ready::Value(value)) => {
                    if self.is_last() {
                        return self.answer(vec![(value, 1)], own);
                    }
                    transaction = Some(own);
                    self.position += 1;
                }
                Some(Ready::Transaction(TransactionOperation::Begin)) => {
                    if self.is_last() {
                        return self.answer(vec![(Value::Null, 1)], own);
                    }
                    transaction = Some(own);
                    self.position += 1;
                }
                Some(Ready::Transaction(operation)) => {
                    return self.end_transaction(own, operation == TransactionOperation::Commit);
                }
                Some(Ready::Query { prepared, answer }) => return self.submit(&prepared, answer, own),
            }
        }
    }

    /// Commits or rolls back in the middle of a program; what follows runs in a new transaction.
    fn end_transaction(mut self, transaction: Transaction, commit: bool) {
        transactions::end(
            transaction,
            commit,
            Box::new(move |outcome| match outcome {
                Err(failure) => {
                    self.shared.retries.conflict_if(&failure);
                    // The session goes on in a new transaction; what the failed one had done is gone.
                    if let Some(key) = self.key {
                        self.shared.transactions.put_back(key, self.graph.begin());
                    }
                    self.events.fail(failure);
                }
                Ok(()) => {
                    self.is_told = true;
                    // A session's goes on behind this program, which tells nothing of what comes then.
                    let mut next = match self.key {
                        Some(_) => self.graph.begin(),
                        None => begin(&self.graph, &self.statements.list),
                    };
                    self.savepoint = self.key.map(|_| next.savepoint());
                    if self.is_last() {
                        if let Some(key) = self.key.take() {
                            self.shared.transactions.forget(key);
                            self.transaction_finished = true;
                        }
                        return self.answer(vec![(Value::Null, 1)], next);
                    }
                    self.position += 1;
                    self.next(next);
                }
            }),
        );
    }

    fn submit(mut self, prepared: &Arc<Prepared>, answer: Answer, transaction: Transaction) {
        let timeout = self.time.of_statement(&prepared.original.source);
        // The time of planning and in line is the query's own.
        let timeout = timeout.map(|timeout| timeout.saturating_sub(self.ticket.entry.spent_before()));
        let timeout = self.tries.remaining(timeout);
        *self.ticket.entry.statement.lock().unwrap_or_else(PoisonError::into_inner) = Some(prepared.clone());
        let tokens_only = prepared.original.source.options.iter().any(|(key, value)| {
            &**key == "materializeProperties" && matches!(value, Value::String(how) if &**how == "tokens")
        });
        let options = RunOptions {
            tenant: self.ticket.entry.asker.tenant.share(),
            caller: self.ticket.entry.asker.caller.clone(),
            timeout_ns: timeout.map(|timeout| u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX)),
            memory_limit_bytes: self.shared.memory_limit_bytes,
            memory: Some(self.ticket.entry.memory.clone()),
            materialize: match self.materialize {
                Materialize::All if !tokens_only => detach::Materialize::All,
                _ => detach::Materialize::Tokens,
            },
            profiled: prepared.physical.requirements.profiled,
            reads_graph: !looks_after_queries(&prepared.original),
            cancel: self.cancel.clone(),
            gate: self.ticket.entry.gate.get().cloned(),
        };
        let shared = self.shared.clone();
        let switch = self.switch.clone();
        let is_last = self.is_last();
        let sink = StatementSink { run: self, answer, is_last, seen: false, closed: false };
        let handle = match MAY_BEGIN.take() {
            true => shared.engine.submit_here(prepared, transaction, &options, Box::new(sink)),
            false => shared.engine.submit(prepared, transaction, &options, Box::new(sink)),
        };
        switch.watch(handle);
    }

    /// Sends a single batch, and ends.
    fn answer(mut self, rows: Vec<Row>, transaction: Transaction) {
        self.held.get_or_insert_default().rows.extend(rows);
        self.finish(transaction);
    }

    fn fail(mut self, mut transaction: Transaction, unwanted: Unwanted, error: &QueryError) {
        match self.key {
            Some(key) => {
                if let Some(savepoint) = self.savepoint.take() {
                    unwanted.undo(transaction.roll_back_to(savepoint));
                }
                self.shared.transactions.put_back(key, transaction);
            }
            None => {
                unwanted.roll_back(transaction);
                if error.kind == QueryErrorKind::Conflict {
                    return self.refused(error);
                }
            }
        }
        self.events.fail(failure::query(error, self.form));
    }

    /// The program is through: commits what is its own.
    fn finish(mut self, transaction: Transaction) {
        drop(self.savepoint.take());
        if let Some(key) = self.key {
            self.shared.transactions.put_back(key, transaction);
            self.done();
        } else if transaction.is_read_only() {
            self.done();
        } else {
            transaction.commit_with(Box::new(move |outcome| match outcome {
                Ok(_) => self.done(),
                Err(error) => self.refused(&QueryError::from(error)),
            }));
        }
    }

    /// Sends what was held back, and the end.
    fn done(self) {
        let mut attributes = ValueMap::default();
        if self.is_incomplete {
            attributes.insert(Value::String("incomplete".into()), Value::Bool(true));
        }
        let waited_ms = self.ticket.entry.waited().as_millis();
        if waited_ms > 0 {
            let waited_ms = i64::try_from(waited_ms).unwrap_or(i64::MAX);
            attributes.insert(Value::String("queuedMs".into()), Value::Long(waited_ms));
        }
        let completion = Completion { transaction_finished: self.transaction_finished, attributes };
        let rows = self.held.unwrap_or_default();
        if let Push::Full(_) = self.events.try_push(rows, std::task::Waker::noop()) {
            // Cannot happen: rows are held back only as long as nothing else was pushed.
            self.events.fail(Failure::new(&catalogue::INTERNAL, "the answer found no room"));
            return;
        }
        self.events.done(completion);
    }

    /// The commit was refused. Called on the store's commit thread: must not block.
    fn refused(mut self, error: &QueryError) {
        let is_conflict = error.kind == QueryErrorKind::Conflict;
        if is_conflict {
            self.shared.retries.conflict();
        }
        let may_retry = is_conflict && !self.is_told && !self.cancel.is_cancelled() && !self.events.is_closed();
        match may_retry.then(|| self.tries.next_pause(&self.shared.retries)).flatten() {
            None => self.events.fail(failure::query(error, self.form)),
            Some(pause) => {
                let tries = self.tries.clone();
                tries.after(pause, move || self.again());
            }
        }
    }

    /// Runs the program from its beginning.
    fn again(mut self) {
        self.position = 0;
        self.held = Some(Batch::default());
        let transaction = begin(&self.graph, &self.statements.list);
        self.next(transaction);
    }
}

/// Takes the rows of one statement.
struct StatementSink {
    run: Run,
    answer: Answer,
    is_last: bool,
    seen: bool,
    closed: bool,
}

/// Wakes the query when the connection has taken a batch.
struct RowsWanted(RowWaker);

impl Wake for RowsWanted {
    fn wake(self: Arc<Self>) {
        self.0.wake();
    }
}

impl RowSink for StatementSink {
    fn rows(&mut self, rows: &mut VecDeque<Row>, held: &mut Held, waker: &RowWaker) -> Delivery {
        self.seen |= !rows.is_empty();
        let is_wanted = self.is_last && matches!(self.answer, Answer::Rows | Answer::Required) && !self.closed;
        if !is_wanted {
            rows.clear();
            return Delivery::Accepted;
        }
        if rows.is_empty() {
            return Delivery::Accepted;
        }
        if let Some(kept) = &mut self.run.held {
            if self.run.events.is_closed() {
                self.closed = true;
                self.run.cancel.cancel();
                rows.clear();
                return Delivery::Accepted;
            }
            if kept.rows.len() + rows.len() <= HELD_ROWS_MAX {
                kept.rows.extend(rows.drain(..));
                kept.held.absorb(held);
                return Delivery::Accepted;
            }
            // Too many to keep: from here on they are sent as they come, and a conflict is the client's.
            let mut kept = self.run.held.take().unwrap_or_default();
            for row in kept.rows.into_iter().rev() {
                rows.push_front(row);
            }
            held.absorb(&mut kept.held);
        }
        self.run.is_told = true;
        let batch = Batch { rows: rows.drain(..).collect(), held: std::mem::take(held) };
        let count = batch.rows.len() as u64;
        let wanted = std::task::Waker::from(Arc::new(RowsWanted(waker.clone())));
        match self.run.events.try_push(batch, &wanted) {
            Push::Accepted => {
                self.run.ticket.entry.rows.fetch_add(count, Ordering::Relaxed);
                Delivery::Accepted
            }
            Push::Full(batch) => {
                // They wait where the query sees them, so that it does not end before they are sent.
                rows.extend(batch.rows);
                *held = batch.held;
                Delivery::Full
            }
            Push::Closed => {
                // The client is gone: nothing is wanted any more, and nothing is committed.
                self.closed = true;
                self.run.cancel.cancel();
                rows.clear();
                Delivery::Accepted
            }
        }
    }

    fn end(self: Box<Self>, end: QueryEnd) {
        let StatementSink { mut run, answer, is_last, seen, closed, .. } = *self;
        run.ticket.entry.asker.tenant.count_work(end.work_units);
        run.statements.frees = end.unwanted.frees();
        run.statements.last = run.ticket.entry.statement.lock().unwrap_or_else(PoisonError::into_inner).take();
        let result = match end.result {
            Ok(()) if closed => Err(QueryError::new(QueryErrorKind::Cancelled, "the client is gone")),
            other => other,
        };
        if let Err(error) = result {
            let is_asked_for = is_last && answer == Answer::Rows && run.wants_partial();
            if error.kind != QueryErrorKind::Timeout || !is_asked_for {
                return run.fail(end.transaction, end.unwanted, &error);
            }
            run.is_incomplete = true;
        }
        if answer == Answer::Required && !seen {
            let error = QueryError::invalid("next() was asked of a traversal that yields nothing; ask hasNext() first");
            return run.fail(end.transaction, end.unwanted, &error);
        }
        if is_last {
            match answer {
                Answer::Exists => run.answer(vec![(Value::Bool(seen), 1)], end.transaction),
                _ => run.finish(end.transaction),
            }
        } else {
            run.position += 1;
            run.next(end.transaction);
        }
    }
}
