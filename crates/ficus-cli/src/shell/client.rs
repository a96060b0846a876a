//! A client of the server: an ordinary WebSocket speaking GraphBinary, as every driver does.

use std::sync::Arc;
use std::time::Duration;

use ficus_model::{Shared, Value, ValueMap};
use ficus_wire::{Data, Format, Limits, Request, RequestId, Response};
use futures_util::{SinkExt, StreamExt};
use indexmap::IndexMap;
use tokio_tungstenite::tungstenite::{Message, protocol::WebSocketConfig};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};
use uuid::Uuid;

use crate::connection::{self, Connection, Trust};

/// Time in which a server must answer the handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes read from the socket at a time; they are zeroed before each read.
const READ_BUFFER_BYTES: usize = 8 << 10;
/// The largest response taken.
const RESPONSE_BYTES_MAX: usize = 256 << 20;

/// Where and how to connect.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// `ws://HOST:PORT/gremlin`, or `wss://` for TLS.
    pub url: String,
    /// Name and password, if the server asks.
    pub credentials: Option<(String, String)>,
    /// Whom to trust where there is TLS.
    pub trust: Trust,
}

/// Why a request failed.
#[derive(Clone, Debug)]
pub enum ClientError {
    /// The connection; the next request needs a new one.
    Connection(String),
    /// The server's answer; the connection is as good as before.
    Refused {
        /// The status.
        status: u16,
        /// The code of the catalogue; empty from a server that has none.
        code: String,
        /// The server's text.
        message: String,
    },
}

impl std::fmt::Display for ClientError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ClientError::Connection(reason) => write!(f, "connection: {reason}"),
            ClientError::Refused { status, code, message } if code.is_empty() => write!(f, "{status}: {message}"),
            ClientError::Refused { code, message, .. } => write!(f, "{code}: {message}"),
        }
    }
}

fn broken(reason: impl std::fmt::Display) -> ClientError {
    ClientError::Connection(reason.to_string())
}

/// One request.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// gremlin-lang text.
    pub gremlin: String,
    /// The traversal source that `g` stands for.
    pub source: String,
    /// Milliseconds it may run; the server's default if absent.
    pub timeout_ms: Option<u64>,
    /// Rows per response; the server's default if absent.
    pub batch_size: Option<i32>,
}

/// A connection to a server.
pub struct Client {
    socket: WebSocketStream<Connection>,
    options: ClientOptions,
    limits: Limits,
    frame: Vec<u8>,
    /// Whether the last answer is only what was found by its deadline, as `with('ficus.partial', true)` asks.
    pub is_incomplete: bool,
}

impl Client {
    /// Connects.
    pub async fn connect(options: &ClientOptions) -> Result<Client, ClientError> {
        let mut config = WebSocketConfig::default().read_buffer_size(READ_BUFFER_BYTES);
        config.max_message_size = Some(RESPONSE_BYTES_MAX);
        config.max_frame_size = Some(RESPONSE_BYTES_MAX);
        let (scheme, rest) = options.url.split_once("://").unwrap_or(("ws", &options.url));
        let (address, is_encrypted) = (rest.split('/').next().unwrap_or_default(), scheme == "wss");
        let stream = connection::connect(address, is_encrypted, &options.trust).await.map_err(broken)?;
        let greeting = client_async_with_config(&options.url, stream, Some(config));
        let (socket, _) = tokio::time::timeout(HANDSHAKE_TIMEOUT, greeting)
            .await
            .map_err(|_| broken(format!("{} did not answer in {} s", options.url, HANDSHAKE_TIMEOUT.as_secs())))?
            .map_err(|error| {
                broken(format!("{}: {}", options.url, connection::with_hint(error.to_string(), is_encrypted)))
            })?;
        let limits = Limits { bytes: RESPONSE_BYTES_MAX, ..Limits::default() };
        Ok(Client { socket, options: options.clone(), limits, frame: Vec::new(), is_incomplete: false })
    }

    /// Asks and hands over the rows of each response as they come.
    pub async fn ask(
        &mut self,
        question: &Question,
        mut rows: impl FnMut(Vec<Value>) -> Result<(), ClientError>,
    ) -> Result<(), ClientError> {
        let id = RequestId::Uuid(Uuid::new_v4());
        self.send(&request(&id, question)).await?;
        loop {
            let response = self.receive().await?;
            if response.request_id.as_ref().is_some_and(|answered| *answered != id) {
                // The rest of an earlier request that failed here before it was over.
                continue;
            }
            match response.status {
                200 | 204 | 206 => {
                    let more = response.status == 206;
                    let incomplete = response.attributes.get(&Value::String("incomplete".into()));
                    self.is_incomplete = incomplete == Some(&Value::Bool(true));
                    let values = values_of(response.data);
                    if !values.is_empty() {
                        rows(values)?;
                    }
                    if !more {
                        return Ok(());
                    }
                }
                407 => self.authenticate(&id).await?,
                status => {
                    let code = match response.attributes.get(&text("code")) {
                        Some(Value::String(code)) => code.to_string(),
                        _ => String::new(),
                    };
                    return Err(ClientError::Refused { status, code, message: response.message });
                }
            }
        }
    }

    async fn authenticate(&mut self, id: &RequestId) -> Result<(), ClientError> {
        let Some((name, password)) = self.options.credentials.clone() else {
            let message = "the server asks who you are; give --user, and the password in FICUS_PASSWORD".into();
            return Err(ClientError::Refused { status: 407, code: String::new(), message });
        };
        let sasl = data_encoding::BASE64.encode(format!("\0{name}\0{password}").as_bytes());
        let args = [("sasl".into(), text(&sasl)), ("saslMechanism".into(), text("PLAIN"))].into_iter().collect();
        self.send(&Request { id: id.clone(), op: "authentication".into(), processor: "".into(), args }).await
    }

    async fn send(&mut self, request: &Request) -> Result<(), ClientError> {
        self.frame.clear();
        ficus_wire::encode_frame(Format::GraphBinary1, request, &mut self.frame).map_err(broken)?;
        let message = Message::Binary(self.frame.clone().into());
        self.socket.send(message).await.map_err(broken)
    }

    async fn receive(&mut self) -> Result<Response, ClientError> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Binary(body))) => {
                    return ficus_wire::decode_response(Format::GraphBinary1, &body, &self.limits)
                        .map_err(|error| broken(format!("an answer that cannot be read: {error}")));
                }
                Some(Ok(Message::Text(body))) => {
                    return ficus_wire::decode_response(Format::GraphSon3, body.as_bytes(), &self.limits)
                        .map_err(|error| broken(format!("an answer that cannot be read: {error}")));
                }
                Some(Ok(Message::Close(frame))) => {
                    let reason = frame.map(|frame| frame.reason.to_string()).unwrap_or_default();
                    return Err(broken(format!("closed by the server {reason}").trim_end()));
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(broken(error)),
                None => return Err(broken("closed by the server")),
            }
        }
    }
}

fn text(text: &str) -> Value {
    Value::String(Arc::from(text))
}

fn request(id: &RequestId, question: &Question) -> Request {
    let mut args: IndexMap<Arc<str>, Value> = IndexMap::new();
    args.insert("gremlin".into(), text(&question.gremlin));
    args.insert("language".into(), text("gremlin-lang"));
    let aliases: ValueMap = [(text("g"), text(&question.source))].into_iter().collect();
    args.insert("aliases".into(), Value::Map(Shared::new(aliases)));
    if let Some(timeout) = question.timeout_ms {
        args.insert("evaluationTimeout".into(), Value::Long(i64::try_from(timeout).unwrap_or(i64::MAX)));
    }
    if let Some(size) = question.batch_size {
        args.insert("batchSize".into(), Value::Int(size));
    }
    args.insert("userAgent".into(), text(concat!("ficus-shell/", env!("CARGO_PKG_VERSION"))));
    Request { id: id.clone(), op: "eval".into(), processor: "".into(), args }
}

fn values_of(data: Data) -> Vec<Value> {
    match data {
        Data::None => Vec::new(),
        Data::Values(values) => values,
        Data::Traversers(rows) | Data::Bulked(rows) => {
            rows.into_iter().flat_map(|(value, bulk)| (0..bulk).map(move |_| value.clone())).collect()
        }
    }
}
