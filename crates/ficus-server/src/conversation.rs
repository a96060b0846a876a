//! What is said on one WebSocket, without the socket: requests in, parts of answers out, in order.
//!
//! Entries stand in the order of their requests. Those at the head are started, up to a number at a time; the requests of
//! a session run alone, so that each sees what the ones before it did. Only the front entry is written from.
//!
//! Until the client has authenticated, requests are held back: the first one is answered with a challenge, and all of them
//! go on once the answer to it was right.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use ficus_query::budget::Held;
use ficus_wire::{Data, DecodeError, DecodeErrorKind, Format, Request, RequestId, Response};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::answer::{self, AnswerRoom};
use crate::authentication::{Credentials, Users};
use crate::backend::Failure;
use crate::catalogue;
use crate::inflow::{DECODED_SIZE, FREE_BYTES, Waiting};
use crate::metrics::OperationKind;
use crate::operation::{Operation, interpret};
use crate::rows::Part;
use crate::running::{Outcome, Running, SessionTransaction, finish_transaction, poll_outcome};
use crate::session::{SessionLife, Sessions};
use crate::shared::{Phase, Shared};
use crate::strangers::{Permit, Stranger};
use crate::tenants::Asker;

/// Requests of so many bytes are always answered.
const SMALL_BYTES: usize = FREE_BYTES / DECODED_SIZE;

/// Wrong passwords that a connection may send before it is closed.
const ATTEMPTS: u32 = 3;

/// The requests of one WebSocket and what has become of them.
pub(crate) struct Conversation {
    shared: Arc<Shared>,
    /// The client's address as the attribute `host` tells it.
    host: Arc<str>,
    login: Login,
    /// The connection's place, until it is known who asks.
    stranger: Option<Stranger>,
    /// The connection's place from then on.
    own_place: Option<Permit>,
    sessions: Sessions,
    entries: VecDeque<Entry>,
    /// Entries at the head that were started.
    started: usize,
    /// Started entries that still work.
    active: usize,
    /// The session whose request is active; nothing else may be.
    active_session: Option<Arc<str>>,
    /// Bytes of the requests in `entries` and held.
    queued_bytes: usize,
    /// Memory for them.
    waiting: Waiting,
    /// There was no more of it for the last one, which is small.
    is_tight: bool,
    /// How the last request came, for answers to what cannot be read.
    manner: Manner,
    phase: Phase,
    close: Option<(CloseCode, &'static str)>,
}

/// The form of a request and thus of its answer.
#[derive(Clone, Copy, Debug)]
struct Manner {
    format: Format,
    text_frame: bool,
}

/// What answers need to know of their request.
#[derive(Debug)]
struct Envelope {
    request_id: Option<RequestId>,
    manner: Manner,
    kind: OperationKind,
    received: Instant,
    bytes: usize,
}

struct Entry {
    envelope: Envelope,
    state: State,
}

enum State {
    /// Not started yet.
    Waiting(Operation),
    /// The answer is ready.
    Answered(Box<Response>),
    /// A query runs.
    Running(Box<Running>),
    /// A transaction ends; text gets a null.
    Ending { outcome: Outcome, answer_null: bool },
    /// A password is being checked.
    Checking(oneshot::Receiver<Checked>),
}

/// Who asks, if the password was right; or why it was not checked.
type Checked = Result<Option<Asker>, Failure>;

/// Whether the client has said who it is.
enum Login {
    /// It has, or nobody has to.
    Open(Asker),
    /// It has to; requests wait.
    Required { users: Arc<Users>, held: Vec<(Envelope, Request)>, challenged: Option<Instant>, failures: u32 },
}

/// Something to be sent, or at least to be noted.
pub(crate) enum Outgoing {
    /// A part of the front entry's answer.
    Part(Part),
    /// The front entry's whole answer.
    Answer(Box<Response>),
    /// The password of the front entry was checked.
    Checked(Checked),
}

impl Conversation {
    /// The connection's place, for who sees to its end.
    pub fn take_place(&mut self) -> (Option<Stranger>, Option<Permit>) {
        (self.stranger.take(), self.own_place.take())
    }

    /// `stranger` is the connection's place as long as nobody knows who asks.
    pub fn new(shared: Arc<Shared>, host: Arc<str>, asker: Option<Asker>, stranger: Option<Stranger>) -> Conversation {
        let login = match (&shared.users, asker) {
            (Some(users), None) => {
                Login::Required { users: users.clone(), held: Vec::new(), challenged: None, failures: 0 }
            }
            (_, asker) => Login::Open(asker.unwrap_or_else(|| shared.anonymous.clone())),
        };
        let life = SessionLife {
            idle: crate::config::optional(shared.config.timeouts.session_idle_ms),
            transaction: crate::config::optional(shared.config.timeouts.transaction_ms),
        };
        let sessions = Sessions::new(shared.sessions.clone(), shared.backend.clone(), life);
        let phase = shared.phase();
        let waiting = Waiting::new(&shared.inflow, matches!(login, Login::Required { .. }));
        Conversation {
            shared,
            host,
            login,
            stranger,
            own_place: None,
            sessions,
            entries: VecDeque::new(),
            started: 0,
            active: 0,
            active_session: None,
            queued_bytes: 0,
            waiting,
            is_tight: false,
            manner: Manner { format: Format::GraphSon3, text_frame: false },
            phase,
            close: None,
        }
    }

    /// Takes a binary message: mime type and request.
    pub fn receive_binary(&mut self, bytes: &[u8]) {
        let limits = self.shared.wire_limits;
        let decoded = answer::guard(&self.shared.metrics, || Ok(ficus_wire::decode_frame(bytes, &limits)));
        self.receive(decoded, bytes.len(), false);
    }

    /// Takes a text message: a request in JSON.
    pub fn receive_text(&mut self, text: &str) {
        let limits = self.shared.wire_limits;
        let format = Format::GraphSon3;
        let decoded = answer::guard(&self.shared.metrics, || {
            Ok(ficus_wire::decode_request(format, text.as_bytes(), &limits).map(|request| (format, request)))
        });
        self.receive(decoded, text.len(), true);
    }

    /// A message was larger than allowed; what follows it cannot be read.
    pub fn refuse_size(&mut self, reason: &str) {
        let limit = self.shared.config.limits.message_bytes;
        let failure =
            Failure::new(&catalogue::MESSAGE_TOO_LARGE, format!("{reason}; a message may have {limit} bytes at most"));
        self.push_failure(self.envelope(None, OperationKind::Unknown, 0), &failure);
        self.close = Some((CloseCode::Size, "message too large"));
    }

    /// There is no room for the message that is arriving.
    pub fn refuse_room(&mut self, reason: &str) {
        let failure = Failure::new(&catalogue::REQUESTS_MEMORY, reason);
        self.push_failure(self.envelope(None, OperationKind::Unknown, 0), &failure);
        self.close = Some((CloseCode::Again, "no room for the message; try again later"));
    }

    /// A text message was not UTF-8.
    pub fn refuse_text(&mut self, reason: &str) {
        self.manner.text_frame = true;
        self.manner.format = Format::GraphSon3;
        let failure = Failure::new(&catalogue::MALFORMED, format!("a text message has to be UTF-8: {reason}"));
        self.push_failure(self.envelope(None, OperationKind::Unknown, 0), &failure);
        self.close = Some((CloseCode::Invalid, "text is not UTF-8"));
    }

    fn receive(
        &mut self,
        decoded: Result<Result<(Format, Request), Box<DecodeError>>, Failure>,
        bytes: usize,
        text_frame: bool,
    ) {
        let (request_id, failure) = match decoded {
            Ok(Ok((format, request))) => {
                self.manner = Manner { format, text_frame };
                let room = self.make_room(bytes);
                let counted = if room.is_ok() { bytes } else { 0 };
                let envelope = self.envelope(Some(request.id.clone()), OperationKind::Unknown, counted);
                return match room {
                    Ok(()) => self.admit(envelope, request),
                    Err(failure) => self.push_failure(envelope, &failure),
                };
            }
            Ok(Err(error)) => {
                let format = error.format.unwrap_or(Format::GraphSon3);
                self.manner = Manner { format, text_frame };
                (error.request_id.clone(), unreadable(&error))
            }
            Err(failure) => (None, failure),
        };
        self.push_failure(self.envelope(request_id, OperationKind::Unknown, bytes), &failure);
    }

    /// Makes room for one more request of so many bytes. A small one finds it in any case, but is the last that is read for now.
    fn make_room(&mut self, bytes: usize) -> Result<(), Failure> {
        match self.waiting.set((self.queued_bytes + bytes).saturating_mul(DECODED_SIZE)) {
            Ok(()) => self.is_tight = false,
            Err(_) if bytes <= SMALL_BYTES => self.is_tight = true,
            Err(no_room) => return Err(Failure::new(&catalogue::REQUESTS_MEMORY, no_room.to_string())),
        }
        Ok(())
    }

    /// So many bytes less of requests wait.
    fn forget_bytes(&mut self, bytes: usize) {
        self.queued_bytes -= bytes;
        self.is_tight = self.waiting.set(self.queued_bytes.saturating_mul(DECODED_SIZE)).is_err();
    }

    /// Whether the client has said who it is, or need not.
    pub fn is_known(&self) -> bool {
        matches!(self.login, Login::Open(_))
    }

    fn envelope(&self, request_id: Option<RequestId>, kind: OperationKind, bytes: usize) -> Envelope {
        Envelope { request_id, manner: self.manner, kind, received: Instant::now(), bytes }
    }

    /// Takes a readable request: into the queue, or on hold until the client has authenticated.
    fn admit(&mut self, mut envelope: Envelope, request: Request) {
        let limit = self.shared.config.limits.pipelined_requests;
        let held = match &self.login {
            Login::Open(_) => 0,
            Login::Required { held, .. } => held.len(),
        };
        if self.entries.len() + held >= limit {
            let message = format!("Rate limiting: {limit} requests wait on this connection, as many as allowed");
            let failure = Failure::new(&catalogue::TOO_MANY_REQUESTS_ON_CONNECTION, message);
            return self.push_failure(envelope, &failure);
        }
        if matches!(self.login, Login::Required { .. }) && &*request.op != "authentication" {
            return self.hold(envelope, request);
        }
        let config = &self.shared.config;
        let operation = answer::guard(&self.shared.metrics, || interpret(request, config, &*self.shared.backend));
        match operation {
            Ok(operation) => {
                envelope.kind = operation.kind();
                if let Some(failure) = self.refusal_while_draining(&operation) {
                    return self.push_failure(envelope, &failure);
                }
                self.push(envelope, State::Waiting(operation));
            }
            Err(failure) => self.push_failure(envelope, &failure),
        }
    }

    /// Keeps a request until the client has authenticated; the first one is answered with a challenge.
    fn hold(&mut self, envelope: Envelope, request: Request) {
        let Login::Required { held, challenged, .. } = &mut self.login else { return };
        let challenge = held.is_empty().then(|| Envelope {
            request_id: envelope.request_id.clone(),
            manner: envelope.manner,
            kind: OperationKind::Authentication,
            received: envelope.received,
            bytes: 0,
        });
        self.queued_bytes += envelope.bytes;
        held.push((envelope, request));
        if let Some(envelope) = challenge {
            *challenged = Some(envelope.received);
            let response = Response::new(envelope.request_id.clone(), 407, Data::None);
            self.push(envelope, State::Answered(Box::new(response)));
        }
    }

    /// While the server shuts down only open transactions may be brought to their end.
    fn refusal_while_draining(&self, operation: &Operation) -> Option<Failure> {
        let in_transaction = operation.session().is_some() && self.sessions.has_open_transaction();
        let refused = match self.phase {
            Phase::Serving => false,
            Phase::Draining => !in_transaction,
            Phase::Stopping => true,
        };
        refused.then(|| Failure::new(&catalogue::SHUTTING_DOWN, "the server is shutting down; connect again"))
    }

    fn push_failure(&mut self, envelope: Envelope, failure: &Failure) {
        let response = answer::failure(envelope.request_id.clone(), failure);
        self.push(envelope, State::Answered(Box::new(response)));
    }

    fn push(&mut self, envelope: Envelope, state: State) {
        self.queued_bytes += envelope.bytes;
        self.shared.metrics.waiting.fetch_add(1, Ordering::Relaxed);
        self.entries.push_back(Entry { envelope, state });
    }

    /// Whether more requests may be read. Answers to refused requests count, so the bound holds against anybody.
    pub fn may_read(&self) -> bool {
        let limits = &self.shared.config.limits;
        self.close.is_none()
            && (!self.is_tight || self.entries.is_empty())
            && self.entries.len() < limits.pipelined_requests.saturating_mul(2)
            && self.queued_bytes < limits.pipelined_bytes
    }

    /// Starts what may run.
    pub fn start_waiting(&mut self) {
        let limit = self.shared.config.limits.running_per_connection;
        while self.started < self.entries.len() && self.active < limit && self.active_session.is_none() {
            let index = self.started;
            if let State::Waiting(operation) = &self.entries[index].state {
                if operation.session().is_some() && self.active > 0 {
                    return;
                }
                self.start(index);
            }
            self.started += 1;
        }
    }

    fn start(&mut self, index: usize) {
        let Entry { state, envelope } = &mut self.entries[index];
        // The placeholder is replaced below in every case.
        let placeholder = State::Answered(Box::new(Response::new(None, 500, Data::None)));
        let State::Waiting(operation) = std::mem::replace(state, placeholder) else {
            unreachable!("only waiting entries are started");
        };
        let request_id = envelope.request_id.clone();
        let session = operation.session().cloned();
        let metrics = self.shared.metrics.clone();
        let started = answer::guard(&metrics, || self.start_operation(request_id.clone(), operation));
        let state = started.unwrap_or_else(|failure| State::Answered(Box::new(answer::failure(request_id, &failure))));
        if !matches!(state, State::Answered(_)) {
            self.active += 1;
            self.active_session = session;
        }
        self.entries[index].state = state;
    }

    fn start_operation(&mut self, request_id: Option<RequestId>, operation: Operation) -> Result<State, Failure> {
        let host = self.host.clone();
        let answered = |data| Box::new(answer::success(request_id, data, &host, Default::default(), &[]));
        match operation {
            Operation::Run(run) => {
                let transaction = match &run.session {
                    None => None,
                    Some(session) => {
                        let key = self.sessions.transaction(session, &run.source)?;
                        let (session, managed) = (session.clone(), run.manage_transaction);
                        Some(SessionTransaction { session, key, managed })
                    }
                };
                let Login::Open(asker) = &self.login else {
                    // Cannot happen: requests are held until somebody has said who it is.
                    let message = "user name and password are required";
                    return Err(Failure::new(&catalogue::AUTHENTICATION_REQUIRED, message));
                };
                let running = Running::start(&self.shared, *run, transaction, asker.clone())?;
                Ok(State::Running(Box::new(running)))
            }
            Operation::FinishTransaction { session, source, commit, answer_null } => {
                let key = match &session {
                    Some(session) => self.sessions.take_transaction(session, &source)?,
                    None => None,
                };
                let Some(key) = key else { return Ok(State::Answered(answered(ended_data(answer_null)))) };
                let outcome = finish_transaction(&*self.shared.backend, key, commit);
                Ok(State::Ending { outcome, answer_null })
            }
            Operation::CloseSession(session) => {
                self.sessions.close(&session);
                Ok(State::Answered(answered(Data::None)))
            }
            Operation::Authenticate(credentials) => match (&mut self.login, credentials) {
                (Login::Open(_), _) => Err(Failure::new(
                    &catalogue::UNKNOWN_OPERATION,
                    "Message with op code [authentication] is not recognized: the client is authenticated already, or \
                     nobody has to be",
                )),
                (Login::Required { .. }, None) => Ok(State::Checking(rejected())),
                (Login::Required { users, challenged, .. }, Some(credentials)) => {
                    // It has answered; from here on it is the server that takes its time.
                    *challenged = None;
                    let patience = self.shared.config.timeouts.evaluation(None);
                    Ok(State::Checking(check(users.clone(), credentials, patience)))
                }
            },
        }
    }

    /// What the front entry has to say. Wakes when it has more.
    pub fn poll_outgoing(&mut self, context: &mut Context<'_>) -> Poll<Outgoing> {
        let Some(front) = self.entries.front_mut() else { return Poll::Pending };
        match &mut front.state {
            // It is started before the next look.
            State::Waiting(_) => Poll::Pending,
            State::Answered(response) => {
                let taken = std::mem::replace(&mut **response, Response::new(None, 500, Data::None));
                Poll::Ready(Outgoing::Answer(Box::new(taken)))
            }
            State::Running(running) => running.poll_part(context).map(Outgoing::Part),
            State::Ending { outcome, answer_null } => {
                let data = ended_data(*answer_null);
                let part = |result| match result {
                    Ok(()) => Part::Last(data, Default::default()),
                    Err(failure) => Part::Failed(failure),
                };
                poll_outcome(outcome, context).map(part).map(Outgoing::Part)
            }
            State::Checking(checked) => {
                let polled = Future::poll(std::pin::Pin::new(checked), context);
                polled.map(|checked| Outgoing::Checked(checked.unwrap_or(Ok(None))))
            }
        }
    }

    /// Turns what the front entry said into a message, and takes the entry off the queue with its last word.
    ///
    /// What comes with it is the message's memory: to be dropped when it is written.
    pub fn render(&mut self, outgoing: Outgoing) -> Option<(Message, Held)> {
        let part = match outgoing {
            Outgoing::Checked(checked) => {
                self.settle(checked);
                return None;
            }
            Outgoing::Answer(response) => return self.render_last(*response, Held::default()),
            Outgoing::Part(part) => part,
        };
        let front = self.entries.front_mut().expect("parts come from the front entry");
        let request_id = front.envelope.request_id.clone();
        let held = match &mut front.state {
            State::Running(running) => running.take_held(),
            _ => Held::default(),
        };
        match part {
            Part::More(data) => self.render_more(Response::new(request_id, 206, data), held),
            Part::Failed(failure) => self.render_last(answer::failure(request_id, &failure), held),
            Part::Last(data, completion) => {
                let warnings: &[String] = match &front.state {
                    State::Running(running) => &running.warnings,
                    _ => &[],
                };
                let response = answer::success(request_id, data, &self.host, completion.attributes, warnings);
                self.render_last(response, held)
            }
        }
    }

    fn render_more(&mut self, response: Response, mut held: Held) -> Option<(Message, Held)> {
        let manner = self.entries.front().map(|front| front.envelope.manner)?;
        let (bytes, fault) = self.encode(manner.format, response, &mut held);
        if let Some(fault) = fault {
            // The answer has become a failure, which is the last word; the query stops with its entry.
            self.finish_front(fault.status);
        }
        Some((message(manner, bytes), held))
    }

    fn render_last(&mut self, response: Response, mut held: Held) -> Option<(Message, Held)> {
        let manner = self.entries.front().map(|front| front.envelope.manner)?;
        let status = response.status;
        let (bytes, fault) = self.encode(manner.format, response, &mut held);
        self.finish_front(fault.map_or(status, |fault| fault.status));
        Some((message(manner, bytes), held))
    }

    fn encode(&self, format: Format, response: Response, held: &mut Held) -> (Vec<u8>, Option<Failure>) {
        let bytes_max = self.shared.config.limits.response_bytes;
        let room = AnswerRoom::new(held, bytes_max);
        let (written, fault) = answer::encode(format, response, room, &self.shared.metrics);
        (written.joined(held), fault)
    }

    /// Takes the front entry off the queue.
    fn finish_front(&mut self, status: u16) {
        let Some(Entry { envelope, state }) = self.entries.pop_front() else { return };
        self.forget_bytes(envelope.bytes);
        self.started = self.started.saturating_sub(1);
        let metrics = &self.shared.metrics;
        metrics.waiting.fetch_sub(1, Ordering::Relaxed);
        let (mut rows, mut query_id) = (0, None);
        if !matches!(state, State::Answered(_) | State::Waiting(_)) {
            self.active -= 1;
            if let Some(session) = self.active_session.take() {
                self.sessions.touch(&session);
            }
        }
        if let State::Running(running) = &state {
            rows = running.rows_sent();
            query_id = Some(running.query_id);
            if let Some(transaction) = running.transaction.as_ref().filter(|_| running.transaction_ended) {
                self.sessions.forget(&transaction.session, transaction.key);
            }
        }
        let elapsed = envelope.received.elapsed();
        metrics.answered(envelope.kind, status, elapsed);
        let query_id = query_id.map(tracing::field::display);
        let elapsed_us = elapsed.as_micros() as u64;
        let (op, bytes) = (envelope.kind, envelope.bytes);
        tracing::debug!(target: "ficus::request", query_id, ?op, status, elapsed_us, rows, bytes, "request");
        let slow_ms = self.shared.config.timeouts.slow_request_ms;
        if slow_ms > 0 && elapsed >= Duration::from_millis(slow_ms) {
            tracing::warn!(target: "ficus::request", query_id, ?op, status, elapsed_us, rows, "slow request");
        }
    }

    /// Goes on after a password was checked.
    fn settle(&mut self, checked: Checked) {
        let authentication = self.entries.front().map(|front| {
            let Envelope { request_id, manner, kind, received, .. } = &front.envelope;
            Envelope { request_id: request_id.clone(), manner: *manner, kind: *kind, received: *received, bytes: 0 }
        });
        let status = match &checked {
            Ok(Some(_)) => 200,
            Ok(None) => 401,
            Err(failure) => failure.status,
        };
        self.finish_front(status);
        let asker = match checked {
            Ok(asker) => asker,
            Err(failure) => return self.refuse_held(authentication, &failure),
        };
        let Some(asker) = asker else {
            self.note_failed_login();
            tracing::info!(host = %self.host, "authentication failed");
            let entry = &catalogue::AUTHENTICATION_FAILED;
            let failure = Failure::new(entry, "Username and/or password are incorrect");
            return self.refuse_held(authentication, &failure);
        };
        let held = match std::mem::replace(&mut self.login, Login::Open(asker)) {
            Login::Required { held, .. } => held,
            Login::Open(_) => Vec::new(),
        };
        if held.is_empty()
            && let Some(envelope) = authentication
        {
            // Nothing was asked before, so this has to be answered itself.
            let response =
                answer::success(envelope.request_id.clone(), Data::None, &self.host, Default::default(), &[]);
            self.push(envelope, State::Answered(Box::new(response)));
        }
        self.waiting.is_known();
        self.own_place = self.stranger.take().and_then(|stranger| stranger.is_known());
        for (envelope, request) in held {
            self.queued_bytes -= envelope.bytes;
            self.admit(envelope, request);
        }
    }

    /// The client was asked who it is, and did not say.
    fn note_failed_login(&mut self) {
        let Login::Required { failures, .. } = &mut self.login else { return };
        *failures += 1;
        if *failures >= ATTEMPTS {
            self.close = Some((CloseCode::Policy, "authentication failed"));
        }
    }

    /// Answers all held requests with a failure; without any, the authentication itself.
    fn refuse_held(&mut self, authentication: Option<Envelope>, failure: &Failure) {
        let Login::Required { held, challenged, .. } = &mut self.login else { return };
        *challenged = None;
        let held = std::mem::take(held);
        if held.is_empty()
            && let Some(envelope) = authentication
        {
            self.push_failure(envelope, failure);
        }
        for (envelope, _) in held {
            self.queued_bytes -= envelope.bytes;
            self.push_failure(envelope, failure);
        }
    }

    /// The next moment at which [`Conversation::tick`] has something to do.
    pub fn next_due(&self) -> Option<Instant> {
        let running = self.entries.range(..self.started).filter_map(|entry| match &entry.state {
            State::Running(running) => running.deadline,
            _ => None,
        });
        let challenge = match &self.login {
            Login::Required { challenged, .. } => challenged.map(|at| at + self.authentication_time()),
            Login::Open(_) => None,
        };
        running.chain(self.sessions.next_expiry(self.active_session.as_deref())).chain(challenge).min()
    }

    /// Lets time do its work: expired sessions, queries that did not end, challenges nobody answered.
    pub fn tick(&mut self, now: Instant) {
        self.sessions.expire(now, self.active_session.as_deref());
        for entry in self.entries.range_mut(..self.started) {
            let State::Running(running) = &mut entry.state else { continue };
            let Some(failure) = running.check_deadline(now) else { continue };
            if let Some(transaction) = running.transaction.as_ref().filter(|_| running.transaction_ended) {
                self.sessions.forget(&transaction.session, transaction.key);
            }
            let response = answer::failure(entry.envelope.request_id.clone(), &failure);
            entry.state = State::Answered(Box::new(response));
            self.active -= 1;
            self.active_session = None;
        }
        let late = match &self.login {
            Login::Required { challenged, .. } => challenged.is_some_and(|at| at + self.authentication_time() <= now),
            Login::Open(_) => false,
        };
        if late {
            let message = format!(
                "Authentication did not finish in the allowed duration ({} ms)",
                self.shared.config.timeouts.authentication_ms
            );
            self.note_failed_login();
            self.refuse_held(None, &Failure::new(&catalogue::AUTHENTICATION_REQUIRED, message));
        }
    }

    fn authentication_time(&self) -> Duration {
        Duration::from_millis(self.shared.config.timeouts.authentication_ms)
    }

    /// Follows the life of the server.
    pub fn enter(&mut self, phase: Phase) {
        self.phase = self.phase.max(phase);
        if self.phase < Phase::Stopping {
            return;
        }
        let failure = Failure::new(&catalogue::SHUTTING_DOWN, "the server is shutting down; connect again");
        for entry in &mut self.entries {
            if !matches!(entry.state, State::Answered(_)) {
                let response = answer::failure(entry.envelope.request_id.clone(), &failure);
                entry.state = State::Answered(Box::new(response));
            }
        }
        self.active = 0;
        self.active_session = None;
        self.started = self.entries.len();
    }

    /// True when no request waits for an answer.
    pub fn is_idle(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether the connection is to be closed now that all is said.
    pub fn wants_to_close(&self) -> Option<(CloseCode, &'static str)> {
        if !self.entries.is_empty() {
            return None;
        }
        let may_go = match self.phase {
            Phase::Serving => false,
            Phase::Draining => !self.sessions.has_open_transaction(),
            Phase::Stopping => true,
        };
        self.close.or(may_go.then_some((CloseCode::Away, "the server is shutting down")))
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        let waiting = i64::try_from(self.entries.len()).unwrap_or(i64::MAX);
        self.shared.metrics.waiting.fetch_sub(waiting, Ordering::Relaxed);
        // Queries first, then, with the field, the sessions' transactions.
        self.entries.clear();
    }
}

/// What answers the end of a transaction: a null to text, nothing to bytecode.
fn ended_data(answer_null: bool) -> Data {
    if answer_null { Data::Values(vec![ficus_model::Value::Null]) } else { Data::None }
}

fn message(manner: Manner, bytes: Vec<u8>) -> Message {
    if !manner.text_frame {
        return Message::Binary(bytes.into());
    }
    match String::from_utf8(bytes) {
        Ok(text) => Message::Text(text.into()),
        // JSON is UTF-8; should it not be, the bytes tell more than nothing would.
        Err(error) => Message::Binary(error.into_bytes().into()),
    }
}

/// The failure that answers bytes which are no request.
pub(crate) fn unreadable(error: &DecodeError) -> Failure {
    let entry = match error.kind {
        DecodeErrorKind::UnknownMime => &catalogue::UNKNOWN_MIME,
        DecodeErrorKind::UnknownType | DecodeErrorKind::Unsupported => &catalogue::NOT_DECODABLE,
        DecodeErrorKind::Limit => &catalogue::MESSAGE_LIMIT,
        _ => &catalogue::MALFORMED,
    };
    Failure::new(entry, format!("Message could not be parsed. Check the format of the request: {error}"))
}

/// Checks a password beside the connection's task.
fn check(users: Arc<Users>, credentials: Credentials, patience: Option<Duration>) -> oneshot::Receiver<Checked> {
    let (mut sender, receiver) = oneshot::channel();
    tokio::spawn(async move {
        let checked = tokio::select! {
            // The client has gone.
            () = sender.closed() => return,
            checked = users.check(credentials, patience) => checked,
        };
        drop(sender.send(checked));
    });
    receiver
}

/// The outcome for credentials that could not be read.
fn rejected() -> oneshot::Receiver<Checked> {
    let (sender, receiver) = oneshot::channel();
    drop(sender.send(Ok(None)));
    receiver
}
