//! A client of the server's paths for graphs as wholes: one request after another over HTTP, bodies in pieces.

use std::io::{self, Read};

use ficus_server::transfer::{PieceBody, PieceReader, PieceWriter, pieces};
use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, HOST, HeaderMap};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use serde_json::Value as Json;

use crate::connection::{self, Trust};
use crate::failure::Failure;

/// A server to send requests to.
pub struct HttpServer {
    address: String,
    is_encrypted: bool,
    trust: Trust,
    authorization: Option<String>,
}

/// What writes the body of a request.
pub type BodyOf<'a> = dyn FnOnce(&mut PieceWriter) -> io::Result<()> + Send + 'a;

/// An answer; its body is read as it comes.
pub struct Answer {
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: PieceReader,
}

impl HttpServer {
    /// The server that the user named as `HOST:PORT`, with or without `http://` or `ws://` before it; `https://` and `wss://` are TLS.
    pub fn new(server: &str, credentials: Option<(String, String)>, trust: Trust) -> Result<HttpServer, Failure> {
        let (rest, is_encrypted) = match server.split_once("://") {
            None => (server, false),
            Some(("http" | "ws", rest)) => (rest, false),
            Some(("https" | "wss", rest)) => (rest, true),
            Some(_) => return Err(Failure::usage(format!("'{server}' is no server; one looks like 127.0.0.1:8182"))),
        };
        let host = rest.split('/').next().unwrap_or_default();
        let address = crate::address::with_port(host).map_err(Failure::usage)?;
        let authorization = credentials.map(|(name, password)| {
            format!("Basic {}", data_encoding::BASE64.encode(format!("{name}:{password}").as_bytes()))
        });
        Ok(HttpServer { address, is_encrypted, trust, authorization })
    }

    /// Sends a request and reads its answer, on the calling thread and two others.
    ///
    /// Errors: the connection, and answers that refuse, with the server's message.
    pub fn ask<T>(
        &self,
        method: Method,
        path: &str,
        body: Option<Box<BodyOf<'_>>>,
        read: impl FnOnce(Answer) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let (sender, receiver) = pieces();
        let mut request = Request::builder().method(method).uri(path).header(HOST, &self.address);
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let request = request.body(PieceBody::new(receiver)).map_err(Failure::failed)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        std::thread::scope(|scope| {
            let mut writer = PieceWriter::new(sender);
            let writing = scope.spawn(move || match body {
                None => writer.end(),
                Some(body) => match body(&mut writer) {
                    Ok(()) => writer.end(),
                    Err(error) => {
                        writer.break_off(error.to_string());
                        Err(error)
                    }
                },
            });
            let answer = runtime.block_on(self.send(request));
            let written = writing.join().map_err(|_| Failure::failed("the files could not be sent"))?;
            match (answer, written) {
                // What keeps a file from being read is the cause, whatever the server says of the half of it.
                (_, Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::failed(error)),
                (answer, _) => read(answer?),
            }
        })
    }

    async fn send(&self, request: Request<PieceBody>) -> Result<Answer, Failure> {
        let broken =
            |reason| Failure::failed(format!("{}: {}", self.address, connection::with_hint(reason, self.is_encrypted)));
        let stream =
            connection::connect(&self.address, self.is_encrypted, &self.trust).await.map_err(Failure::failed)?;
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut client, connection) = handshake.map_err(|error| broken(error.to_string()))?;
        tokio::spawn(connection);
        let answer = client.send_request(request).await.map_err(|error| broken(error.to_string()))?;
        let (parts, body) = answer.into_parts();
        if !parts.status.is_success() {
            let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
            let message = serde_json::from_slice::<Json>(&body).ok();
            let message = message.and_then(|body| Some(body.get("message")?.as_str()?.to_owned()));
            let message = message.unwrap_or_else(|| String::from_utf8_lossy(&body).into_owned());
            return Err(Failure::failed(format!("the server refuses: {message} ({})", parts.status.as_u16())));
        }
        let (sender, receiver) = pieces();
        tokio::spawn(hand_on(body, sender));
        Ok(Answer { headers: parts.headers, body: PieceReader::new(receiver) })
    }
}

/// Gives a body to whoever reads it.
async fn hand_on(mut body: Incoming, pieces: tokio::sync::mpsc::Sender<ficus_server::transfer::Piece>) {
    loop {
        let piece = match body.frame().await {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) if !data.is_empty() => Ok(data),
                _ => continue,
            },
            Some(Err(error)) => Err(io::Error::other(format!("the server broke off: {error}"))),
            None => Ok(Bytes::new()),
        };
        let is_last = piece.as_ref().map_or(true, Bytes::is_empty);
        if pieces.send(piece).await.is_err() || is_last {
            return;
        }
    }
}

impl Answer {
    /// A header that is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// All of the body.
    pub fn text(mut self) -> Result<String, Failure> {
        let mut text = String::new();
        self.body.read_to_string(&mut text)?;
        Ok(text)
    }
}

/// `name=value&…` with everything escaped that has a meaning of its own.
pub fn query_string<'a>(parameters: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let escape = |text: &str| -> String {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~' | b'/' | b':');
        text.bytes()
            .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
            .collect()
    };
    let pairs = parameters.into_iter().map(|(name, value)| format!("{}={}", escape(name), escape(&value)));
    pairs.collect::<Vec<_>>().join("&")
}

/// A name as a part of a path.
pub fn path_part(name: &str) -> Result<String, Failure> {
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')) {
        return Err(Failure::usage(format!("'{name}' is no name of a graph on a server")));
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_named_in_several_ways() {
        for server in ["h:8182", "http://h:8182", "ws://h:8182/gremlin", "h", "http://h/"] {
            let found = HttpServer::new(server, None, Trust::default()).expect(server);
            assert_eq!((&*found.address, found.is_encrypted), ("h:8182", false));
        }
        for server in ["https://h", "wss://h:8182/gremlin"] {
            let found = HttpServer::new(server, None, Trust::default()).expect(server);
            assert_eq!((&*found.address, found.is_encrypted), ("h:8182", true));
        }
        for server in ["ftp://h", "http://", ""] {
            assert!(HttpServer::new(server, None, Trust::default()).is_err(), "{server}");
        }
    }

    #[test]
    fn parameters_are_escaped() {
        let query = query_string([("delimiter", "|".to_owned()), ("vertices", "A=b c,d&e".to_owned())]);
        assert_eq!(query, "delimiter=%7C&vertices=A%3Db%20c%2Cd%26e");
    }
}
