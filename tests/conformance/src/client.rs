//! A blocking Gremlin client over WebSocket: one socket, one request at a time.
//!
//! It speaks through `ficus-wire`, so a fault there that both directions share would go unnoticed; running the suite
//! against another server of the same protocol shows it.

use std::fmt;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use ficus_model::{Shared, Value, ValueMap};
use ficus_wire::{Data, Format, Limits, Request, RequestId, Response};
use indexmap::IndexMap;
use std::sync::Arc;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Message, WebSocket};
use uuid::Uuid;

/// A response as large as this is a fault of the server, not a result.
const RESPONSE_BYTES_MAX: usize = 256 << 20;

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// The server refused, with a status code, a message and attributes.
    Refused {
        /// The status code.
        status: u16,
        /// The message.
        message: String,
        /// The attributes of the status.
        attributes: ValueMap,
    },
    /// The connection broke, or said what the protocol does not allow.
    Broken(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Refused { status, message, .. } => write!(f, "status {status}: {message}"),
            Failure::Broken(reason) => write!(f, "connection: {reason}"),
        }
    }
}

impl Failure {
    /// The status code of a refusal.
    pub fn status(&self) -> Option<u16> {
        match self {
            Failure::Refused { status, .. } => Some(*status),
            Failure::Broken(_) => None,
        }
    }
}

/// One connection.
pub struct Client {
    /// The socket, for tests that go below requests.
    pub socket: WebSocket<TcpStream>,
    format: Format,
}

/// What a text request may carry beside its text.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The traversal source that `g` stands for.
    pub alias: Option<String>,
    /// Values of the parameters in the text.
    pub bindings: ValueMap,
    /// The session to run in.
    pub session: Option<String>,
    /// Further request arguments.
    pub args: Vec<(&'static str, Value)>,
}

impl Options {
    /// Only an alias.
    pub fn alias(name: &str) -> Options {
        Options { alias: Some(name.to_owned()), ..Options::default() }
    }
}

/// A string value.
pub fn text(text: &str) -> Value {
    Value::String(text.into())
}

impl Client {
    /// Connects to `url`, such as `ws://127.0.0.1:8182/gremlin`; an answer may take `answer_time_max`.
    pub fn connect(url: &str, format: Format, answer_time_max: Duration) -> Result<Client, Failure> {
        let broken = |error: &dyn fmt::Display| Failure::Broken(format!("{url}: {error}"));
        let address = url.strip_prefix("ws://").ok_or_else(|| broken(&"expected a URL that starts with ws://"))?;
        let address = address.split('/').next().unwrap_or(address);
        let stream = TcpStream::connect(address).map_err(|error| broken(&error))?;
        stream.set_nodelay(true).map_err(|error| broken(&error))?;
        stream.set_read_timeout(Some(answer_time_max)).map_err(|error| broken(&error))?;
        stream.set_write_timeout(Some(answer_time_max)).map_err(|error| broken(&error))?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(RESPONSE_BYTES_MAX))
            .max_frame_size(Some(RESPONSE_BYTES_MAX));
        let (socket, _) =
            tungstenite::client::client_with_config(url, stream, Some(config)).map_err(|error| broken(&error))?;
        Ok(Client { socket, format })
    }

    /// Runs gremlin-lang text and gathers all results, bulks unrolled.
    pub fn submit(&mut self, gremlin: &str, options: &Options) -> Result<Vec<Value>, Failure> {
        let request = eval_request(gremlin, options);
        self.send(&request)?;
        self.gather(&request.id)
    }

    /// Sends a request without waiting for the answer.
    pub fn send(&mut self, request: &Request) -> Result<(), Failure> {
        let mut frame = Vec::new();
        ficus_wire::encode_frame(self.format, request, &mut frame)
            .map_err(|error| Failure::Broken(format!("the request cannot be written: {error}")))?;
        self.send_bytes(frame)
    }

    /// Sends a binary frame as it is.
    pub fn send_bytes(&mut self, frame: Vec<u8>) -> Result<(), Failure> {
        self.socket.send(Message::binary(frame)).map_err(|error| Failure::Broken(error.to_string()))
    }

    /// Waits for one response frame.
    pub fn receive(&mut self) -> Result<Response, Failure> {
        loop {
            let body = match self.socket.read().map_err(|error| broken_read(&error))? {
                Message::Binary(body) => body,
                Message::Text(body) => body.into(),
                Message::Close(frame) => return Err(Failure::Broken(format!("closed by the server: {frame:?}"))),
                _ => continue,
            };
            return ficus_wire::decode_response(self.format, &body, &Limits::default())
                .map_err(|error| Failure::Broken(format!("a response that cannot be read: {error:?}")));
        }
    }

    /// Gathers the results of the request `id` up to its last response.
    pub fn gather(&mut self, id: &RequestId) -> Result<Vec<Value>, Failure> {
        let mut values = Vec::new();
        loop {
            let response = self.receive()?;
            if response.request_id.as_ref() != Some(id) {
                let found = format!("a response to {:?}, expected {id:?}", response.request_id);
                return Err(Failure::Broken(found));
            }
            match response.data {
                Data::None => {}
                Data::Values(mut more) => values.append(&mut more),
                Data::Traversers(bulks) | Data::Bulked(bulks) => {
                    for (value, bulk) in bulks {
                        values.extend((0..bulk).map(|_| value.clone()));
                    }
                }
            }
            match response.status {
                206 => {}
                200 | 204 => return Ok(values),
                status => {
                    let (message, attributes) = (response.message, response.attributes);
                    return Err(Failure::Refused { status, message, attributes });
                }
            }
        }
    }
}

/// A read time-out says so in plain words.
fn broken_read(error: &tungstenite::Error) -> Failure {
    Failure::Broken(match error {
        tungstenite::Error::Io(error) if error.kind() == std::io::ErrorKind::WouldBlock => "no answer in time".into(),
        other => other.to_string(),
    })
}

/// A request that evaluates gremlin-lang text.
pub fn eval_request(gremlin: &str, options: &Options) -> Request {
    let mut args: IndexMap<Arc<str>, Value> = IndexMap::new();
    args.insert("gremlin".into(), text(gremlin));
    args.insert("language".into(), text("gremlin-lang"));
    if let Some(alias) = &options.alias {
        let aliases: ValueMap = [(text("g"), text(alias))].into_iter().collect();
        args.insert("aliases".into(), Value::Map(Shared::new(aliases)));
    }
    if !options.bindings.is_empty() {
        args.insert("bindings".into(), Value::Map(Shared::new(options.bindings.clone())));
    }
    if let Some(session) = &options.session {
        args.insert("session".into(), text(session));
    }
    for (name, value) in &options.args {
        args.insert((*name).into(), value.clone());
    }
    let processor = if options.session.is_some() { "session" } else { "" };
    Request { id: RequestId::Uuid(Uuid::new_v4()), op: "eval".into(), processor: processor.into(), args }
}

/// Tries to connect until `patience` is over.
pub fn connect_within(url: &str, format: Format, patience: Duration) -> Result<Client, Failure> {
    let started = Instant::now();
    loop {
        match Client::connect(url, format, Duration::from_secs(60)) {
            Err(_) if started.elapsed() < patience => std::thread::sleep(Duration::from_millis(20)),
            outcome => return outcome,
        }
    }
}
