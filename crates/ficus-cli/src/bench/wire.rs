//! The suite `wire`: what a client waits for, over WebSocket on loopback.
//!
//! In the same run a bare WebSocket echo is measured, so that the server's own share of a request is the difference of
//! the two medians.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpListener;
use tokio_tungstenite::tungstenite::Message;

use super::measure::{Direction, Measure, Times};
use crate::Outcome;
use crate::failure::Failure;
use crate::output::talk;
use crate::shell::client::{Client, ClientOptions, Question};

/// Cases: name and query on the air-routes demo, and the aim for the server's share at p50 in microseconds.
const CASES: &[(&str, &str, Option<f64>)] = &[
    ("g.V(id)", "g.V(3)", None),
    ("one-hop count", "g.V(3).out().count()", Some(150.0)),
    ("two-hop count", "g.V(3).out().out().count()", None),
    ("has by index", "g.V().has('airport','code','AUS')", None),
    ("single-edge commit", "g.V(3).addE('bench').to(__.V(4))", None),
];

/// Removes what the suite has written.
const CLEAN_UP: &str = "g.V(3).outE('bench').drop()";

/// Bytes of the echoed message: about those of a request here.
const ECHO_BYTES: usize = 256;

/// Runs the suite.
pub fn run(
    quick: bool,
    url: Option<String>,
    data_dir: Option<PathBuf>,
    print: &mut dyn FnMut(Measure) -> std::io::Result<()>,
) -> Outcome {
    let server = match &url {
        Some(_) => None,
        None => Some(Server::start(data_dir, Some("air-routes"))?),
    };
    let url = url.unwrap_or_else(|| server.as_ref().map(|server| server.url.clone()).unwrap_or_default());
    let repetitions = if quick { 500 } else { 10_000 };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let mut echo = measure_echo(repetitions).await?;
        let echo_p50 = echo.percentile_us(0.5);
        report("echo", &mut echo, print)?;
        let mut client = Client::connect(&ClientOptions { url, credentials: None, trust: Default::default() })
            .await
            .map_err(Failure::failed)?;
        for (case, gremlin, share_target) in CASES {
            let question = Question { gremlin: (*gremlin).into(), source: "g".into(), ..Question::default() };
            let mut times = measure_query(&mut client, &question, repetitions).await?;
            let share = times.percentile_us(0.5) - echo_p50;
            report(case, &mut times, print)?;
            print(measure(case, "server share p50", share, *share_target))?;
        }
        let question = Question { gremlin: CLEAN_UP.into(), source: "g".into(), ..Question::default() };
        client.ask(&question, |_| Ok(())).await.map_err(Failure::failed)
    })
}

fn measure(case: &str, metric: &'static str, value: f64, target: Option<f64>) -> Measure {
    Measure { suite: "wire", case: case.into(), metric, value, unit: "us", target, direction: Direction::AtMost }
}

fn report(case: &str, times: &mut Times, print: &mut dyn FnMut(Measure) -> std::io::Result<()>) -> std::io::Result<()> {
    print(measure(case, "p50", times.percentile_us(0.5), None))?;
    print(measure(case, "p99", times.percentile_us(0.99), None))
}

async fn measure_query(client: &mut Client, question: &Question, repetitions: usize) -> Result<Times, Failure> {
    let mut times = Times::default();
    // The first tenth warms caches up and is not counted.
    for repetition in 0..repetitions + repetitions / 10 {
        let started = Instant::now();
        client
            .ask(question, |_| Ok(()))
            .await
            .map_err(|error| Failure::failed(format!("{}: {error}", question.gremlin)))?;
        if repetition >= repetitions / 10 {
            times.add(started.elapsed());
        }
    }
    Ok(times)
}

/// Times of a message that comes straight back.
async fn measure_echo(repetitions: usize) -> Result<Times, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let serving = tokio::spawn(async move {
        let Ok((stream, _)) = listener.accept().await else { return };
        // Like the server, the echo does not wait for more to send.
        if stream.set_nodelay(true).is_err() {
            return;
        }
        let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else { return };
        while let Some(Ok(message)) = socket.next().await {
            if !message.is_binary() || socket.send(message).await.is_err() {
                return;
            }
        }
    });
    let url = format!("ws://{address}/");
    let (mut socket, _) =
        tokio_tungstenite::connect_async_with_config(url, None, true).await.map_err(Failure::failed)?;
    let mut times = Times::default();
    for repetition in 0..repetitions + repetitions / 10 {
        let started = Instant::now();
        socket.send(Message::Binary(vec![0; ECHO_BYTES].into())).await.map_err(Failure::failed)?;
        if let Some(Err(error)) = socket.next().await {
            return Err(Failure::failed(format!("echo: {error}")));
        }
        if repetition >= repetitions / 10 {
            times.add(started.elapsed());
        }
    }
    drop(socket);
    serving.abort();
    Ok(times)
}

/// A server in a process of its own, ended with this value.
pub(super) struct Server {
    child: Child,
    /// Where clients connect.
    pub(super) url: String,
    temporary: Option<PathBuf>,
}

impl Server {
    /// Starts a server on a directory, or a temporary one, with a demo graph or what is there.
    pub(super) fn start(data_dir: Option<PathBuf>, demo: Option<&str>) -> Result<Server, Failure> {
        Server::start_with(data_dir, demo, &[])
    }

    /// As [`Server::start`], with settings of the form `key=value`.
    pub(super) fn start_with(
        data_dir: Option<PathBuf>,
        demo: Option<&str>,
        settings: &[&str],
    ) -> Result<Server, Failure> {
        let temporary =
            data_dir.is_none().then(|| std::env::temp_dir().join(format!("ficus-bench-{}", std::process::id())));
        let directory = data_dir.or_else(|| temporary.clone()).unwrap_or_default();
        let program = std::env::current_exe()?;
        talk(&format!("starting a server on {}", directory.display()));
        let mut child = Command::new(program)
            .args(["--format", "json", "serve", "--listen", "127.0.0.1:0", "--set", "log.level=warn"])
            .args(demo.into_iter().flat_map(|demo| ["--demo", demo]))
            .args(settings.iter().flat_map(|setting| ["--set", setting]))
            .arg("--data-dir")
            .arg(&directory)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().ok_or_else(|| Failure::failed("the server has no stdout"))?;
        let mut server = Server { child, url: String::new(), temporary };
        let mut banner = String::new();
        BufReader::new(stdout).read_line(&mut banner)?;
        let banner: serde_json::Value = serde_json::from_str(&banner)
            .map_err(|_| Failure::failed("the server did not come up; its messages are above"))?;
        let address = banner["address"].as_str().unwrap_or_default();
        server.url = format!("ws://{address}/gremlin");
        Ok(server)
    }
}

impl Server {
    /// The process that serves.
    pub(super) fn process(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nothing here is worth a clean end: the data is of this run alone.
        let _ = self.child.kill();
        let _ = self.child.wait();
        std::thread::sleep(Duration::from_millis(10));
        if let Some(directory) = &self.temporary {
            let _ = std::fs::remove_dir_all(directory);
        }
    }
}
