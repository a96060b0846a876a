//! HTTP: graphs as wholes.
//!
//! | path | methods | what |
//! |---|---|---|
//! | `/v1/graphs` | GET | which there are |
//! | `/v1/graphs/NAME` | GET, PUT, DELETE | one of them; make it, remove it |
//! | `/v1/graphs/NAME/load` | POST | files, as a tar archive in the body, into the graph; the answer tells how far it is, line by line |
//! | `/v1/graphs/NAME/export` | GET | the graph as a file, or as files in a tar archive |
//!
//! Where users have names these are for administrators: they go past the limits of queries.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::{Value as Json, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::backend::Failure;
use crate::catalogue;
use crate::http::{Answer, HttpConnection, Refusal, not_allowed, plain};
use crate::http_body::AnswerBody;
use crate::http_request::parameters;
use crate::transfer::{GraphService, Piece, PieceReader, Reply, ReplyParts, TransferRequest, pieces};

/// Where graphs are.
pub(crate) const ROOT: &str = "/v1/graphs";

/// Time in which a client whose files are refused may go on sending them before the connection ends.
const REFUSED_BODY_TIME: Duration = Duration::from_secs(3);

impl HttpConnection {
    /// Answers a request for a path below [`ROOT`].
    pub(crate) async fn graphs(&self, request: Request<Incoming>) -> Result<Answer, Refusal> {
        self.check_origin(request.headers())?;
        self.refuse_while_draining()?;
        let asker = self.authenticate(request.headers()).await?;
        if let Some(caller) = asker.caller.as_ref().filter(|caller| !caller.is_administrator) {
            let message = format!("{} is for administrators, and {} is none", request.uri().path(), caller.user);
            return Err(Failure::new(&catalogue::NOT_ALLOWED, message).into());
        }
        let path = request.uri().path().to_owned();
        let nothing_there = || {
            let message = format!("there is nothing at {path}; graphs are at {ROOT}/NAME, with /load and /export");
            Refusal::from(Failure::new(&catalogue::NO_SUCH_PATH, message))
        };
        let Some(service) = self.shared.backend.graphs() else { return Err(nothing_there()) };
        let parts: Vec<&str> = path[ROOT.len()..].split('/').filter(|part| !part.is_empty()).collect();
        let method = request.method().clone();
        match (parts.as_slice(), &method) {
            ([], &Method::GET) => Ok(told(StatusCode::OK, &json!({"graphs": service.list()}))),
            ([], _) => Err(not_allowed("GET")),
            ([name], &Method::GET) => match entry(&*service, name) {
                Some(entry) => Ok(told(StatusCode::OK, &entry)),
                None => Err(no_such_graph(name).into()),
            },
            ([name], &Method::PUT) => {
                let (name, service) = ((*name).to_owned(), service.clone());
                let created = aside(move || service.create(&name).map(|()| entry(&*service, &name))).await??;
                Ok(told(StatusCode::CREATED, &created.unwrap_or_default()))
            }
            ([name], &Method::DELETE) => {
                let (name, service) = ((*name).to_owned(), service.clone());
                let removed = json!({"removed": name});
                aside(move || service.remove(&name)).await??;
                Ok(told(StatusCode::OK, &removed))
            }
            ([_], _) => Err(not_allowed("GET, PUT, DELETE")),
            ([name, "load"], &Method::POST) => {
                let wanted = self.wanted(name, &request, asker.user().cloned())?;
                let (sender, receiver) = pieces();
                let (reply, answer) = Reply::channel();
                service.load(wanted, PieceReader::new(receiver), reply);
                let patience = Duration::from_millis(self.shared.config.timeouts.body_ms);
                let mut body = request.into_body();
                let mut answer = std::pin::pin!(begun(answer));
                let early = tokio::select! {
                    biased;
                    early = &mut answer => early,
                    () = send_on(&mut body, sender, patience) => return answer.await,
                };
                // A client that still sends would not read why it is refused if the connection ended now.
                let _ = timeout(REFUSED_BODY_TIME, async { while let Some(Ok(_)) = body.frame().await {} }).await;
                early
            }
            ([_, "load"], _) => Err(not_allowed("POST")),
            ([name, "export"], &Method::GET) => {
                let wanted = self.wanted(name, &request, asker.user().cloned())?;
                let (reply, answer) = Reply::channel();
                service.export(wanted, reply);
                begun(answer).await
            }
            ([_, "export"], _) => Err(not_allowed("GET")),
            _ => Err(nothing_there()),
        }
    }

    fn wanted(
        &self,
        graph: &str,
        request: &Request<Incoming>,
        user: Option<Arc<str>>,
    ) -> Result<TransferRequest, Failure> {
        let parameters = parameters(request.uri().query().unwrap_or_default())?;
        Ok(TransferRequest { graph: graph.to_owned(), parameters, user })
    }
}

fn entry(service: &dyn GraphService, name: &str) -> Option<Json> {
    service.list().into_iter().find(|entry| entry["name"] == name)
}

/// The failure of whoever asks for a graph that is not there.
pub fn no_such_graph(name: &str) -> Failure {
    Failure::new(&catalogue::NO_SUCH_GRAPH, format!("there is no graph [{name}]"))
}

fn told(status: StatusCode, what: &Json) -> Answer {
    plain(status, "application/json", format!("{what}\n"))
}

/// Does what may wait for a disk on a thread that may wait.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Failure::new(&catalogue::INTERNAL, format!("the request failed: {error}")))
}

/// Hands a body on, piece by piece, until it ends or nobody takes it.
async fn send_on(body: &mut Incoming, pieces: mpsc::Sender<Piece>, patience: Duration) {
    loop {
        let piece = match timeout(patience, body.frame()).await {
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) if !data.is_empty() => Ok(data),
                // Trailers say nothing.
                _ => continue,
            },
            Ok(None) => Ok(Bytes::new()),
            Ok(Some(Err(error))) => {
                let message = format!("the body could not be read: {error}");
                Err(io::Error::other(Failure::new(&catalogue::MALFORMED, message)))
            }
            Err(_) => {
                let message = format!("nothing of the body arrived within {} ms", patience.as_millis());
                Err(io::Error::other(Failure::new(&catalogue::BODY_TOO_SLOW, message)))
            }
        };
        let is_last = piece.as_ref().map_or(true, Bytes::is_empty);
        if pieces.send(piece).await.is_err() || is_last {
            return;
        }
    }
}

/// Waits for an answer to begin.
async fn begun(parts: ReplyParts) -> Result<Answer, Refusal> {
    let ReplyParts { head, body } = parts;
    let head = match head.await {
        Ok(Ok(head)) => head,
        Ok(Err(failure)) => return Err(failure.into()),
        Err(_) => return Err(Failure::new(&catalogue::INTERNAL, "the request ended without an answer").into()),
    };
    let mut answer: Answer = Response::new(AnswerBody::Pieces(body));
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(head.content_type));
    for (name, value) in head.headers {
        let value: String = value.chars().filter(|character| matches!(character, ' '..='~')).collect();
        if let Ok(value) = HeaderValue::from_str(&value) {
            answer.headers_mut().append(name, value);
        }
    }
    Ok(answer)
}
