//! Clients: a WebSocket that speaks the wire's formats, and bare HTTP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ficus_model::{Argument, Bytecode, Instruction, Shared, Value, ValueMap};
use ficus_server::{Backend, BoundServer, ServerConfig, bind};
use ficus_wire::{Data, Format, Limits, Request, RequestId, Response};
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use uuid::Uuid;

use crate::mock::Mock;

/// Longer than anything takes unless the test fails.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A server that ends with the test.
pub struct Server {
    pub address: SocketAddr,
    pub mock: Arc<Mock>,
    pub shutdown: Option<oneshot::Sender<()>>,
    pub task: JoinHandle<()>,
}

impl Server {
    pub async fn start() -> Server {
        Server::with(|_| ()).await
    }

    pub async fn with(change: impl FnOnce(&mut ServerConfig)) -> Server {
        let mock = Arc::new(Mock::default());
        Server::over(mock.clone(), mock, change).await
    }

    /// A server with a backend other than the mock, which then hears nothing.
    pub async fn over(backend: Arc<dyn Backend>, mock: Arc<Mock>, change: impl FnOnce(&mut ServerConfig)) -> Server {
        let mut config = ServerConfig { listen: "127.0.0.1:0".into(), ..ServerConfig::default() };
        change(&mut config);
        let bound: BoundServer = bind(config, backend).await.expect("binds");
        let (shutdown, stop) = oneshot::channel::<()>();
        let address = bound.address();
        let task = tokio::spawn(bound.serve(async move {
            // Also when the sender is dropped with the test.
            let _ = stop.await;
        }));
        Server { address, mock, shutdown: Some(shutdown), task }
    }

    pub async fn connect(&self) -> Client {
        self.connect_with(&[]).await.expect("the handshake succeeds")
    }

    pub async fn connect_with(&self, headers: &[(&'static str, &str)]) -> Result<Client, u16> {
        use tokio_tungstenite::tungstenite::Error;
        use tokio_tungstenite::tungstenite::client::IntoClientRequest;
        let stream = TcpStream::connect(self.address).await.expect("connects");
        let mut request = format!("ws://{}/gremlin", self.address).into_client_request().expect("valid");
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().expect("valid"));
        }
        match tokio_tungstenite::client_async(request, stream).await {
            Ok((socket, _)) => Ok(Client { socket, format: Format::GraphBinary1, text: false }),
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    pub async fn http(&self, request: &str) -> HttpAnswer {
        self.http_bytes(request.as_bytes()).await
    }

    pub async fn http_bytes(&self, request: &[u8]) -> HttpAnswer {
        let mut stream = TcpStream::connect(self.address).await.expect("connects");
        stream.write_all(request).await.expect("takes the request");
        read_http(&mut stream).await
    }

    pub async fn get(&self, path: &str) -> HttpAnswer {
        self.http(&format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")).await
    }

    pub async fn post(&self, headers: &str, body: &str) -> HttpAnswer {
        let length = body.len();
        let head = format!("POST /gremlin HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n");
        self.http(&format!("{head}{headers}\r\n{body}")).await
    }

    /// The value of a metric, `name{labels}` as it is written.
    pub async fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").await.text();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in\n{text}"))
    }

    /// Waits until a metric has a value.
    pub async fn metric_becomes(&self, name: &str, expected: f64) {
        for _ in 0..1000 {
            if self.metric(name).await == expected {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{name} is {} and never became {expected}", self.metric(name).await);
    }
}

pub struct HttpAnswer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl HttpAnswer {
    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("text")
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The body as a response of the wire.
    pub fn response(&self) -> Response {
        let format = Format::from_mime(self.header("content-type").expect("has a type")).expect("known");
        ficus_wire::decode_response(format, &self.body, &Limits::default()).expect("readable")
    }
}

pub async fn read_http(stream: &mut TcpStream) -> HttpAnswer {
    let reading = async {
        let mut bytes = Vec::new();
        loop {
            let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
            if let Some(end) = end {
                let head = String::from_utf8(bytes[..end].to_vec()).expect("text");
                let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
                let mut answer = HttpAnswer { status, head, body: bytes[end + 4..].to_vec() };
                let length = answer.header("content-length").map_or(0, |length| length.parse().expect("a number"));
                while answer.body.len() < length {
                    assert!(stream.read_buf(&mut answer.body).await.expect("reads") > 0, "a body cut short");
                }
                assert_eq!(answer.body.len(), length, "more than one answer");
                return answer;
            }
            assert!(stream.read_buf(&mut bytes).await.expect("reads") > 0, "no answer after {bytes:?}");
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("an answer in time")
}

pub struct Client {
    pub socket: WebSocketStream<TcpStream>,
    pub format: Format,
    pub text: bool,
}

/// A request with an id of its own.
pub fn request(op: &str, processor: &str, args: &[(&str, Value)]) -> Request {
    let args = args.iter().map(|(name, value)| ((*name).into(), value.clone())).collect();
    Request { id: RequestId::Uuid(Uuid::new_v4()), op: op.into(), processor: processor.into(), args }
}

pub fn text(text: &str) -> Value {
    Value::String(text.into())
}

pub fn map(entries: &[(&str, Value)]) -> Value {
    let entries: ValueMap = entries.iter().map(|(name, value)| (text(name), value.clone())).collect();
    Value::Map(Shared::new(entries))
}

pub fn eval(gremlin: &str) -> Request {
    request("eval", "", &[("gremlin", text(gremlin))])
}

pub fn eval_with(gremlin: &str, args: &[(&str, Value)]) -> Request {
    let mut request = eval(gremlin);
    request.args.extend(args.iter().map(|(name, value)| (Arc::from(*name), value.clone())));
    request
}

/// Bytecode of one step that the mock knows, or of one source instruction `tx`.
pub fn steps(name: &str, number: i32) -> Value {
    let instruction = |args| Instruction { name: name.into(), args, offset: None };
    let steps = vec![instruction(vec![Argument::Value(Value::Int(number))])];
    Value::Bytecode(Arc::new(Bytecode { source: Vec::new(), steps }))
}

pub fn tx(word: &str) -> Value {
    let args = vec![Argument::Value(text(word))];
    let source = vec![Instruction { name: "tx".into(), args, offset: None }];
    Value::Bytecode(Arc::new(Bytecode { source, steps: Vec::new() }))
}

pub fn bytecode(gremlin: Value) -> Request {
    request("bytecode", "traversal", &[("gremlin", gremlin), ("aliases", map(&[("g", text("g"))]))])
}

impl Client {
    pub fn speaking(mut self, format: Format) -> Client {
        self.format = format;
        self
    }

    pub fn in_text(mut self) -> Client {
        self.format = Format::GraphSon3;
        self.text = true;
        self
    }

    pub async fn send(&mut self, request: &Request) {
        let mut bytes = Vec::new();
        if self.text {
            ficus_wire::encode_request(self.format, request, &mut bytes).expect("encodes");
            self.send_message(Message::text(String::from_utf8(bytes).expect("JSON is text"))).await;
        } else {
            ficus_wire::encode_frame(self.format, request, &mut bytes).expect("encodes");
            self.send_message(Message::binary(bytes)).await;
        }
    }

    pub async fn send_message(&mut self, message: Message) {
        self.socket.send(message).await.expect("takes the message");
    }

    /// The next message that is no ping.
    pub async fn next_message(&mut self) -> Option<Message> {
        loop {
            let next = tokio::time::timeout(PATIENCE, self.socket.next()).await.expect("a message in time");
            match next {
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(message)) => return Some(message),
                Some(Err(_)) | None => return None,
            }
        }
    }

    pub async fn next(&mut self) -> Response {
        let message = self.next_message().await.expect("a response before the end");
        let bytes = match &message {
            Message::Text(text) if self.text => text.as_bytes(),
            Message::Binary(bytes) if !self.text => bytes,
            other => panic!("unexpected: {other:?}"),
        };
        ficus_wire::decode_response(self.format, bytes, &Limits::default()).expect("a readable response")
    }

    /// All parts of the answer to a request.
    pub async fn ask(&mut self, request: &Request) -> Vec<Response> {
        self.send(request).await;
        self.collect(&request.id).await
    }

    pub async fn collect(&mut self, id: &RequestId) -> Vec<Response> {
        let mut parts = Vec::new();
        loop {
            let part = self.next().await;
            assert_eq!(part.request_id.as_ref(), Some(id), "{part:?}");
            let last = part.status != 206;
            parts.push(part);
            if last {
                return parts;
            }
        }
    }

    /// The one part of the answer to a request.
    pub async fn ask_once(&mut self, request: &Request) -> Response {
        let mut parts = self.ask(request).await;
        assert_eq!(parts.len(), 1, "{parts:?}");
        parts.remove(0)
    }

    /// The code and reason of the close frame that comes next.
    pub async fn next_close(&mut self) -> (u16, String) {
        match self.next_message().await {
            Some(Message::Close(Some(frame))) => (frame.code.into(), frame.reason.to_string()),
            other => panic!("expected a close frame, got {other:?}"),
        }
    }
}

/// The values of a response, whatever their form.
pub fn values(response: &Response) -> Vec<Value> {
    match &response.data {
        Data::None => Vec::new(),
        Data::Values(values) => values.clone(),
        Data::Traversers(rows) | Data::Bulked(rows) => rows.iter().map(|(value, _)| value.clone()).collect(),
    }
}

pub fn attribute<'a>(response: &'a Response, name: &str) -> Option<&'a Value> {
    response.attributes.get(&text(name))
}

/// What is under a key of the one map in a response.
pub fn entry(response: &Response, key: &str) -> Value {
    match &values(response)[..] {
        [Value::Map(map)] => map.get(&text(key)).cloned().unwrap_or_else(|| panic!("no {key} in {map:?}")),
        other => panic!("expected one map, got {other:?}"),
    }
}
