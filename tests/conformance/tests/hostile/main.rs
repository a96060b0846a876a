//! Clients that mean harm, or make mistakes: each gets the documented status, and the server stays healthy.
//!
//! Healthy means: the process lives, has caught no panic, runs no forgotten request, and answers a newcomer in both
//! serializers. Statuses are those of `docs/errors.md`.

mod connections;
mod disk;
mod frames;
mod queries;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ficus_conformance::client::{Client, Options};
use ficus_conformance::server_process::{ServerProcess, free_port};
use ficus_model::Value;
use ficus_wire::{Data, Format, Limits, Response};
use tempfile::TempDir;
use tungstenite::Message;

/// The slowest of these answers, in a debug build on a busy machine.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(120);
const FORMATS: [Format; 2] = [Format::GraphBinary1, Format::GraphSon3];

/// A server with the sample graphs, in a folder of its own.
struct Tested {
    server: ServerProcess,
    _folder: TempDir,
}

impl Tested {
    fn start() -> Tested {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let data: PathBuf = folder.path().join("data");
        let port = free_port().expect("a free port");
        let server = ServerProcess::start(&data, port, &["--demo", "tinkerpop"]);
        Tested { server: server.unwrap_or_else(|error| panic!("{error}")), _folder: folder }
    }

    fn client(&self, format: Format) -> Client {
        Client::connect(&self.server.url(), format, ANSWER_TIME_MAX).expect("a healthy server accepts connections")
    }

    /// One gauge or counter of the server.
    fn metric(&self, name: &str) -> Option<f64> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.server.port())).expect("the server listens");
        stream.set_read_timeout(Some(ANSWER_TIME_MAX)).expect("a time-out that is not zero");
        let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).expect("the server reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("metrics are text");
        let line = text.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')))?;
        line.rsplit(' ').next()?.parse().ok()
    }

    /// Fails the test when the server has suffered.
    #[track_caller]
    fn assert_healthy(&mut self) {
        assert!(self.server.is_alive(), "the server ended:\n{}", self.server.log_tail());
        for format in FORMATS {
            let answer = self.client(format).submit("g.V().count()", &Options::alias("gmodern"));
            assert_eq!(answer, Ok(vec![Value::Long(6)]), "{format:?}");
        }
        assert_eq!(self.metric("ficus_panics_total"), Some(0.0), "{}", self.server.log_tail());
        let waited_from = Instant::now();
        while self.metric("ficus_requests_running") != Some(0.0) {
            assert!(waited_from.elapsed() < ANSWER_TIME_MAX, "a request runs on although nobody waits for it");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// What became of a frame.
#[derive(Debug)]
enum Fate {
    Answered(Box<Response>),
    Closed,
}

/// Reads until the last response to a request, in whichever format it comes.
fn fate(client: &mut Client) -> Fate {
    loop {
        let body = match client.socket.read() {
            Ok(Message::Binary(body)) => body,
            Ok(Message::Text(body)) => body.into(),
            Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => continue,
            Ok(Message::Close(_)) => return Fate::Closed,
            Err(tungstenite::Error::Io(error)) if error.kind() == std::io::ErrorKind::WouldBlock => {
                panic!("neither an answer nor a close in {ANSWER_TIME_MAX:?}")
            }
            Err(_) => return Fate::Closed,
        };
        let format = if body.first() == Some(&b'{') { Format::GraphSon3 } else { Format::GraphBinary1 };
        let response = ficus_wire::decode_response(format, &body, &Limits::default());
        let response = response.unwrap_or_else(|error| panic!("an answer that cannot be read: {error}"));
        if response.status != 206 {
            return Fate::Answered(Box::new(response));
        }
        assert!(!matches!(response.data, Data::None), "a partial response without data");
    }
}
