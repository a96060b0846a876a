//! HTTP: the paths of the server, and Gremlin by GET and POST.
//!
//! | path | methods | what |
//! |---|---|---|
//! | `/gremlin`, `/` | GET, POST, OPTIONS | a request and its answer, or the upgrade to a WebSocket |
//! | `/health/live`, `/health/ready`, `/health/writable` | GET, HEAD | 200 or 503 |
//! | `/metrics` | GET | counters |
//! | `/v1/graphs`, … | | see [`crate::http_graphs`] |

use std::convert::Infallible;
use std::error::Error;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, ready};
use std::time::Duration;

use ficus_model::{Value, ValueMap};
use ficus_query::budget::Held;
use ficus_wire::{Data, Request as GremlinRequest, RequestId, Response as GremlinResponse};
use http_body_util::{LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Version};
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tracing::Instrument;

use crate::answer::{self, AnswerRoom};
use crate::authentication::Credentials;
use crate::backend::Failure;
use crate::catalogue;
use crate::http_body::AnswerBody;
use crate::http_graphs;
use crate::http_request::{from_body, from_query};
use crate::inflow::{DECODED_SIZE, Inflow, NoRoom, Reception, Waiting};
use crate::metrics::OperationKind;
use crate::negotiation::{Target, choose};
use crate::operation::{Operation, interpret};
use crate::origin;
use crate::rows::Part;
use crate::running::Running;
use crate::shared::{Phase, Shared};
use crate::strangers::Permit;
use crate::tenants::Asker;
use crate::text_plain;
use crate::transport::Transport;
use crate::web_socket;

/// Rows taken from the engine at a time; all of them go into one response.
const ROWS_AT_A_TIME: usize = 1024;

pub(crate) type Answer = Response<AnswerBody>;

/// What the requests of one connection share.
#[derive(Clone)]
pub(crate) struct HttpConnection {
    pub shared: Arc<Shared>,
    /// The client's address as the attribute `host` tells it.
    pub host: Arc<str>,
    /// Its place among the connections that may be open; a WebSocket takes it along.
    pub permit: Permit,
    /// Whether the head of a request was ever complete.
    pub has_asked: Arc<AtomicBool>,
}

/// Answers one request; never fails.
pub(crate) async fn respond(connection: HttpConnection, request: Request<Incoming>) -> Result<Answer, Infallible> {
    connection.has_asked.store(true, Ordering::Relaxed);
    let origin = request.headers().get(header::ORIGIN).cloned();
    let mut answer = match connection.route(request).await {
        Ok(answer) => answer,
        Err(refusal) => refusal.into_answer(),
    };
    if connection.shared.phase() != Phase::Serving && answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if let Some(origin) = origin
        && answer.status() != StatusCode::FORBIDDEN
        && answer.status() != StatusCode::SWITCHING_PROTOCOLS
    {
        // It was checked on the way in.
        answer.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        answer.headers_mut().insert(header::VARY, HeaderValue::from_static("origin"));
    }
    Ok(answer)
}

/// A request that has no result.
pub(crate) struct Refusal {
    failure: Failure,
    request_id: Option<RequestId>,
    header: Option<(header::HeaderName, &'static str)>,
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Refusal {
        Refusal { failure, request_id: None, header: None }
    }
}

impl Refusal {
    fn into_answer(self) -> Answer {
        let Failure { status, code, message, retryable, .. } = &self.failure;
        let http = match catalogue::find(code) {
            Some(entry) if entry.status == *status => entry.http_status(),
            _ => catalogue::http_status(*status),
        };
        let mut body = serde_json::json!({
            "message": message,
            "code": code,
            "status": status,
            "retryable": retryable,
            "Exception-Class": code,
            "exceptions": [code],
            "stackTrace": format!("{code}: {message}"),
        });
        if let Some(id) = &self.request_id {
            body["requestId"] = id.to_string().into();
        }
        for (name, value) in &self.failure.attributes {
            if let (Value::String(name), Value::String(text)) = (name, value) {
                body[&**name] = text.to_string().into();
            }
        }
        let status = StatusCode::from_u16(http).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut answer = plain(status, "application/json", body.to_string());
        if let Some((name, value)) = self.header {
            answer.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        let unread = [&catalogue::MESSAGE_TOO_LARGE, &catalogue::BODY_TOO_SLOW, &catalogue::UPLOAD_TOO_LARGE];
        if unread.iter().any(|entry| entry.code == *code) {
            // The rest of the body stays unread.
            answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        answer
    }
}

pub(crate) fn plain(status: StatusCode, content_type: &'static str, body: impl Into<AnswerBody>) -> Answer {
    let mut answer = Response::new(body.into());
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}

fn text_of(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

impl HttpConnection {
    /// Whether queries are answered, or commits are possible.
    async fn health(&self, is_ready: bool) -> Answer {
        let word = if is_ready { "ready" } else { "writable" };
        if self.shared.phase() != Phase::Serving {
            return health_answer(word, Err("the server is shutting down".to_string()));
        }
        let backend = self.shared.backend.clone();
        let health = tokio::task::spawn_blocking(move || backend.health()).await;
        health_answer(
            word,
            match health {
                Ok(health) if is_ready && health.ready => Ok(()),
                Ok(_) if is_ready => Err("the engine is not ready".to_string()),
                Ok(health) => health.writable,
                Err(error) => Err(error.to_string()),
            },
        )
    }

    async fn route(&self, request: Request<Incoming>) -> Result<Answer, Refusal> {
        let (path, method) = (request.uri().path(), request.method());
        let is_read = method == Method::GET || method == Method::HEAD;
        match path {
            "/health/live" if is_read => Ok(health_answer("live", Ok(()))),
            "/health/ready" | "/health/writable" if is_read => {
                let is_ready = path == "/health/ready";
                Ok(self.health(is_ready).await)
            }
            "/metrics" if is_read => {
                self.authenticate(request.headers()).await?;
                let mut text = String::with_capacity(16 << 10);
                self.shared.metrics.write(&mut text);
                self.shared.inflow.write(&mut text);
                self.shared.backend.write_metrics(&mut text);
                Ok(plain(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text))
            }
            "/health/live" | "/health/ready" | "/health/writable" | "/metrics" => Err(not_allowed("GET, HEAD")),
            "/gremlin" | "/" => self.gremlin(request).await,
            _ if path.strip_prefix(http_graphs::ROOT).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) => {
                self.graphs(request).await
            }
            _ => {
                let message = format!("there is nothing at {path}; Gremlin is at /gremlin");
                Err(Failure::new(&catalogue::NO_SUCH_PATH, message).into())
            }
        }
    }

    async fn gremlin(&self, request: Request<Incoming>) -> Result<Answer, Refusal> {
        let headers = request.headers();
        let config = &self.shared.config;
        self.check_origin(headers)?;
        if wants_web_socket(headers) {
            return self.upgrade(request).await;
        }
        match *request.method() {
            Method::GET | Method::POST => {}
            Method::OPTIONS => return Ok(preflight()),
            _ => return Err(not_allowed("GET, POST, OPTIONS")),
        }
        self.refuse_while_draining()?;
        let asker = self.authenticate(headers).await?;
        let received = Instant::now();
        let mut kind = OperationKind::Unknown;
        let mut rows = 0;
        let outcome = self.evaluate(request, asker, &mut kind, &mut rows).await;
        let status = match &outcome {
            Ok(_) => 200,
            Err(refusal) => refusal.failure.status,
        };
        let elapsed = received.elapsed();
        self.shared.metrics.answered(kind, status, elapsed);
        let elapsed_us = elapsed.as_micros() as u64;
        tracing::debug!(target: "ficus::request", op = ?kind, status, elapsed_us, rows, "request over HTTP");
        let slow_ms = config.timeouts.slow_request_ms;
        if slow_ms > 0 && elapsed >= Duration::from_millis(slow_ms) {
            tracing::warn!(target: "ficus::request", op = ?kind, status, elapsed_us, rows, "slow request over HTTP");
        }
        outcome
    }

    /// Refuses what a web page of another origin asks.
    pub(crate) fn check_origin(&self, headers: &HeaderMap) -> Result<(), Failure> {
        let config = &self.shared.config;
        let (asked_by, asked_of) = (text_of(headers, header::ORIGIN), text_of(headers, header::HOST));
        // An origin that is no text is nobody's.
        let asked_by = if headers.contains_key(header::ORIGIN) { asked_by.or(Some("null")) } else { None };
        if origin::is_allowed(asked_by, asked_of, config, self.shared.users.is_some()) {
            return Ok(());
        }
        let origin = asked_by.unwrap_or_default();
        Err(Failure::new(&catalogue::ORIGIN_REFUSED, format!("pages of {origin} may not use this server")))
    }

    pub(crate) fn refuse_while_draining(&self) -> Result<(), Failure> {
        match self.shared.phase() {
            Phase::Serving => Ok(()),
            _ => Err(shutting_down()),
        }
    }

    /// Who asks, by HTTP basic authentication if anybody has to say.
    pub(crate) async fn authenticate(&self, headers: &HeaderMap) -> Result<Asker, Refusal> {
        let Some(users) = &self.shared.users else { return Ok(self.shared.anonymous.clone()) };
        let refuse = |entry, message: &str| Refusal {
            failure: Failure::new(entry, message),
            request_id: None,
            header: Some((header::WWW_AUTHENTICATE, "Basic realm=\"FicusDB\", charset=\"UTF-8\"")),
        };
        let Some(value) = headers.get(header::AUTHORIZATION) else {
            return Err(refuse(&catalogue::AUTHENTICATION_REQUIRED, "user name and password are required"));
        };
        let credentials = value.to_str().ok().and_then(Credentials::from_basic);
        let Some(credentials) = credentials else {
            return Err(refuse(&catalogue::AUTHENTICATION_FAILED, "the Authorization header is not valid for Basic"));
        };
        match users.clone().check(credentials, self.shared.config.timeouts.evaluation(None)).await? {
            Some(asker) => Ok(asker),
            None => Err(refuse(&catalogue::AUTHENTICATION_FAILED, "Username and/or password are incorrect")),
        }
    }

    async fn evaluate(
        &self,
        request: Request<Incoming>,
        asker: Asker,
        kind: &mut OperationKind,
        rows: &mut u64,
    ) -> Result<Answer, Refusal> {
        let default_id = RequestId::Uuid(self.shared.identifiers.next());
        let accept = text_of(request.headers(), header::ACCEPT).map(str::to_owned);
        // Until the answer is made.
        let mut waiting = Waiting::new(&self.shared.inflow, false);
        let gremlin = self.read(request, default_id, &mut waiting).await?;
        let id = gremlin.id.clone();
        let identified = |failure| Refusal { failure, request_id: Some(id.clone()), header: None };
        let Some(target) = choose(accept.as_deref()) else {
            let accept = accept.unwrap_or_default();
            let message = format!("no serializer for requested Accept header: {accept}");
            return Err(identified(Failure::new(&catalogue::NOT_ACCEPTABLE, message)));
        };
        let shared = &self.shared;
        let operation = answer::guard(&shared.metrics, || interpret(gremlin, &shared.config, &*shared.backend));
        let operation = operation.map_err(identified)?;
        *kind = operation.kind();
        let mut held = Held::default();
        let (response, warnings) = match operation {
            Operation::Run(mut run) => {
                run.batch_size = ROWS_AT_A_TIME;
                let running = answer::guard(&shared.metrics, || Running::start(shared, *run, None, asker));
                let mut running = running.map_err(identified)?;
                let (values, attributes, gathered) = self.collect(&mut running, rows).await.map_err(identified)?;
                held = gathered;
                let mut response = GremlinResponse::new(Some(id.clone()), 200, values);
                response.attributes = attributes;
                (response, std::mem::take(&mut running.warnings))
            }
            // Every request over HTTP is a transaction of its own, so there is nothing to end.
            Operation::FinishTransaction { .. } => {
                let data = Data::Values(vec![Value::Null]);
                (GremlinResponse::new(Some(id.clone()), 200, data), Vec::new())
            }
            Operation::CloseSession(_) | Operation::Authenticate(_) => {
                let message = "this operation is for WebSockets; HTTP has basic authentication and no sessions";
                return Err(identified(Failure::new(&catalogue::UNKNOWN_OPERATION, message)));
            }
        };
        self.write(response, warnings, &target, held).map_err(identified)
    }

    /// Reads the request out of the query or the body; `waiting` has the memory for it then.
    async fn read(
        &self,
        request: Request<Incoming>,
        default_id: RequestId,
        waiting: &mut Waiting,
    ) -> Result<GremlinRequest, Refusal> {
        if request.method() == Method::GET {
            return Ok(from_query(request.uri().query().unwrap_or_default(), default_id)?);
        }
        let (parts, body) = request.into_parts();
        let config = &self.shared.config;
        let limit = config.limits.message_bytes;
        let too_large = || {
            let message = format!("the body has more than the {limit} bytes a request may have");
            Failure::new(&catalogue::MESSAGE_TOO_LARGE, message)
        };
        if body.size_hint().lower() > limit as u64 {
            return Err(too_large().into());
        }
        let patience = Duration::from_millis(config.timeouts.body_ms);
        let body = match timeout(patience, gather(Limited::new(body, limit), &self.shared.inflow)).await {
            Ok(Ok(body)) => body,
            Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(too_large().into()),
            Ok(Err(error)) if error.is::<NoRoom>() => {
                return Err(Failure::new(&catalogue::REQUESTS_MEMORY, error.to_string()).into());
            }
            Ok(Err(error)) => {
                let message = format!("the body could not be read: {error}");
                return Err(Failure::new(&catalogue::MALFORMED, message).into());
            }
            Err(_) => {
                let message = format!("the body did not arrive within {} ms", patience.as_millis());
                return Err(Failure::new(&catalogue::BODY_TOO_SLOW, message).into());
            }
        };
        waiting
            .set(body.len().saturating_mul(DECODED_SIZE))
            .map_err(|no_room| Failure::new(&catalogue::REQUESTS_MEMORY, no_room.to_string()))?;
        let content_type = text_of(&parts.headers, header::CONTENT_TYPE);
        let read = answer::guard(&self.shared.metrics, || {
            from_body(content_type, &body, &self.shared.wire_limits, default_id)
        });
        Ok(read?)
    }

    /// All rows of a query, the attributes of its end, and what the rows take of its memory. Dropped with the connection, which cancels it.
    async fn collect(&self, running: &mut Running, count: &mut u64) -> Result<(Data, ValueMap, Held), Failure> {
        let mut phase = self.shared.phase.clone();
        let mut all = Data::Values(Vec::new());
        let limits = &self.shared.config.limits;
        let (limit, bytes_max) = (limits.http_rows as u64, limits.http_response_bytes);
        let mut bytes = 0;
        let mut held = Held::default();
        let far = Instant::now() + Duration::from_secs(365 * 24 * 3600);
        let deadline = running.deadline.unwrap_or(far);
        loop {
            let part = tokio::select! {
                biased;
                part = poll_fn(|context| running.poll_part(context)) => part,
                () = sleep_until(deadline) => match running.check_deadline(Instant::now()) {
                    Some(failure) => {
                        free_aside(all);
                        return Err(failure);
                    }
                    None => continue,
                },
                _ = phase.wait_for(|phase| *phase == Phase::Stopping) => return Err(shutting_down()),
            };
            let (data, last) = match part {
                Part::More(data) => (data, None),
                Part::Last(data, completion) => (data, Some(completion.attributes)),
                Part::Failed(failure) => {
                    free_aside(all);
                    return Err(failure);
                }
            };
            *count = running.rows_sent();
            held.absorb(&mut running.take_held());
            bytes += bytes_of(&data);
            append(&mut all, data);
            if *count > limit || bytes > bytes_max {
                free_aside(all);
                let message = match *count > limit {
                    true => format!("the result has more than the {limit} rows one HTTP response may have"),
                    false => format!(
                        "the rows of the result have more than the {bytes_max} bytes that are gathered for one HTTP response"
                    ),
                };
                return Err(Failure::new(&catalogue::RESULT_TOO_LARGE, message));
            }
            if let Some(attributes) = last {
                return Ok((all, attributes, held));
            }
        }
    }

    fn write(
        &self,
        mut response: GremlinResponse,
        warnings: Vec<String>,
        target: &Target,
        mut held: Held,
    ) -> Result<Answer, Failure> {
        let limit = self.shared.config.limits.http_response_bytes;
        let is_incomplete = response.attributes.contains_key(&Value::String("incomplete".into()));
        let body = match target {
            Target::Text => {
                let mut room = AnswerRoom::new(&mut held, limit);
                let text = match &response.data {
                    Data::Values(values) => text_plain::lines(values.iter(), &mut room),
                    Data::Traversers(rows) | Data::Bulked(rows) => {
                        text_plain::lines(rows.iter().map(|(value, _)| value), &mut room)
                    }
                    Data::None => Some(Vec::new()),
                };
                drop(response);
                match text {
                    Some(last) => room.whole(last),
                    None => return Err(room.failure()),
                }
            }
            Target::Wire(format, _) => {
                if !warnings.is_empty() {
                    let list = warnings.into_iter().map(|warning| Value::String(warning.into())).collect();
                    response
                        .attributes
                        .insert(Value::String("warnings".into()), Value::List(ficus_model::Shared::new(list)));
                }
                let room = AnswerRoom::new(&mut held, limit);
                let (body, fault) = answer::encode(*format, response, room, &self.shared.metrics);
                if let Some(fault) = fault {
                    return Err(fault);
                }
                body
            }
        };
        if body.len() > limit {
            return Err(answer::too_large(limit));
        }
        body.count(&mut held)?;
        let mut answer = plain(StatusCode::OK, target.content_type(), AnswerBody::on_account(body.pieces(), held));
        if is_incomplete {
            // Also for formats without a place for it.
            answer.headers_mut().insert("ficus-incomplete", HeaderValue::from_static("true"));
        }
        Ok(answer)
    }

    /// Turns the connection into a WebSocket.
    async fn upgrade(&self, mut request: Request<Incoming>) -> Result<Answer, Refusal> {
        let headers = request.headers();
        let bad = |message: &str| Refusal {
            failure: Failure::new(&catalogue::BAD_HANDSHAKE, message),
            request_id: None,
            header: Some((header::SEC_WEBSOCKET_VERSION, "13")),
        };
        if request.uri().path() != "/gremlin" {
            return Err(Failure::new(&catalogue::NO_SUCH_PATH, "WebSockets are at /gremlin").into());
        }
        if request.method() != Method::GET || request.version() < Version::HTTP_11 {
            return Err(bad("a WebSocket begins with GET over HTTP/1.1"));
        }
        if text_of(headers, header::SEC_WEBSOCKET_VERSION) != Some("13") {
            return Err(bad("the server speaks version 13 of the WebSocket protocol"));
        }
        let Some(key) = headers.get(header::SEC_WEBSOCKET_KEY) else {
            return Err(bad("the header Sec-WebSocket-Key is missing"));
        };
        let accept = derive_accept_key(key.as_bytes());
        self.refuse_while_draining()?;
        let asker = match headers.contains_key(header::AUTHORIZATION) {
            true => Some(self.authenticate(headers).await?),
            false => None,
        };
        let user_agent = text_of(request.headers(), header::USER_AGENT).unwrap_or_default();
        tracing::debug!(host = %self.host, user_agent, "connection becomes a WebSocket");
        let upgrading = hyper::upgrade::on(&mut request);
        tokio::spawn(run_web_socket(self.clone(), upgrading, asker).in_current_span());
        let mut answer = Response::new(AnswerBody::default());
        *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = answer.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        let accept = HeaderValue::from_str(&accept).expect("Base64 is fit for a header");
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
        Ok(answer)
    }
}

async fn run_web_socket(connection: HttpConnection, upgrading: hyper::upgrade::OnUpgrade, asker: Option<Asker>) {
    let HttpConnection { shared, host, permit, .. } = connection;
    let upgraded = match upgrading.await {
        Ok(upgraded) => upgraded,
        Err(error) => {
            tracing::debug!(%error, "the upgrade to a WebSocket failed");
            return;
        }
    };
    let parts = match upgraded.downcast::<TokioIo<Transport>>() {
        Ok(parts) => parts,
        Err(_) => {
            tracing::error!("a connection was not over the transport it was accepted on");
            return;
        }
    };
    web_socket::serve(shared, parts.io.into_inner(), parts.read_buf.to_vec(), host, asker, permit).await;
}

/// Reads a body whole, unless there is no room for it, or none any more.
async fn gather(mut body: Limited<Incoming>, inflow: &Arc<Inflow>) -> Result<Vec<u8>, Box<dyn Error + Send + Sync>> {
    let mut reception = Reception::new(inflow, false);
    let mut bytes = Vec::new();
    poll_fn(|context| {
        loop {
            reception.check(context.waker())?;
            match ready!(Pin::new(&mut body).poll_frame(context)) {
                None => return Poll::Ready(Ok(())),
                Some(frame) => {
                    // Trailers are of no use here.
                    let Ok(piece) = frame?.into_data() else { continue };
                    reception.more(piece.len(), context.waker())?;
                    bytes.extend_from_slice(&piece);
                }
            }
        }
    })
    .await
    .map(|()| bytes)
}

fn wants_web_socket(headers: &HeaderMap) -> bool {
    let lists = |name, word: &str| {
        let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|part| part.trim().eq_ignore_ascii_case(word))
    };
    lists(header::UPGRADE, "websocket") && lists(header::CONNECTION, "upgrade")
}

pub(crate) fn not_allowed(allow: &'static str) -> Refusal {
    let failure = Failure::new(&catalogue::METHOD_NOT_ALLOWED, format!("this path answers {allow}"));
    Refusal { failure, request_id: None, header: Some((header::ALLOW, allow)) }
}

fn shutting_down() -> Failure {
    Failure::new(&catalogue::SHUTTING_DOWN, "the server is shutting down; connect again")
}

fn health_answer(word: &'static str, well: Result<(), String>) -> Answer {
    let (status, text) = match well {
        Ok(()) => (StatusCode::OK, format!("{word}\n")),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("not {word}: {why}\n")),
    };
    plain(status, "text/plain; charset=utf-8", text)
}

/// Answers a browser that asks whether it may ask.
fn preflight() -> Answer {
    let mut answer = Response::new(AnswerBody::default());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    let headers = answer.headers_mut();
    headers.insert(header::ALLOW, HeaderValue::from_static("GET, POST, OPTIONS"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST"));
    let allowed = HeaderValue::from_static("accept, authorization, content-type");
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    answer
}

/// Rows below which it is no matter who frees them.
const FREED_ASIDE_ROWS: usize = 4096;

/// Frees rows that nobody gets, many of them on a thread that may take its time.
fn free_aside(rows: Data) {
    if rows.rows() > FREED_ASIDE_ROWS {
        tokio::task::spawn_blocking(move || drop(rows));
    }
}

/// About what rows take in memory.
fn bytes_of(data: &Data) -> usize {
    match data {
        Data::None => 0,
        Data::Values(values) => values.iter().map(Value::size_hint_bytes).sum(),
        Data::Traversers(rows) | Data::Bulked(rows) => rows.iter().map(|(value, _)| value.size_hint_bytes()).sum(),
    }
}

/// Joins the parts of a result.
fn append(all: &mut Data, part: Data) {
    match (&mut *all, part) {
        (_, Data::None) => {}
        (Data::Values(values), Data::Values(more)) => values.extend(more),
        (Data::Traversers(rows), Data::Traversers(more)) => rows.extend(more),
        (_, part) => *all = part,
    }
}
