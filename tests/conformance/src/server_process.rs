//! A server process of a test's own: on a free port, in a folder of its own, gone when the test is.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ficus_wire::Format;

use crate::client::Client;

/// A debug build on a busy machine starts in a second or two.
const START_TIME_MAX: Duration = Duration::from_secs(60);

/// A running server; dropping it kills the process.
pub struct ServerProcess {
    child: Child,
    port: u16,
    log: PathBuf,
}

/// The binary to test: `FICUS_BIN`, or the one that cargo has put beside the tests.
pub fn binary() -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os("FICUS_BIN") {
        return Ok(PathBuf::from(path));
    }
    let own = std::env::current_exe().map_err(|error| format!("where this program is: {error}"))?;
    let folders = own.ancestors().skip(1).take(2);
    let found = folders.map(|folder| folder.join("ficus")).find(|path| path.is_file());
    found.ok_or_else(|| {
        "no ficus binary beside this program: build it with `cargo build -p ficus-cli`, or name it in FICUS_BIN".into()
    })
}

/// A port that is free now.
pub fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| format!("no free port: {error}"))?;
    listener.local_addr().map(|address| address.port()).map_err(|error| format!("no free port: {error}"))
}

impl ServerProcess {
    /// Starts `ficus serve` on `data` and waits until it accepts WebSockets.
    pub fn start(data: &Path, port: u16, arguments: &[&str]) -> Result<ServerProcess, String> {
        let mut command = Command::new(binary()?);
        command.arg("serve").arg("--data-dir").arg(data).arg("--listen").arg(format!("127.0.0.1:{port}"));
        command.args(arguments);
        ServerProcess::spawn(command, data, port)
    }

    /// Starts a command that is to serve on `port`; its output goes to a file beside `data`.
    pub fn spawn(mut command: Command, data: &Path, port: u16) -> Result<ServerProcess, String> {
        let log = data.with_extension("log");
        let file = File::options().create(true).append(true).open(&log);
        let file = file.map_err(|error| format!("{}: {error}", log.display()))?;
        let copy = file.try_clone().map_err(|error| format!("{}: {error}", log.display()))?;
        command.stdin(Stdio::null()).stdout(file).stderr(copy);
        let child = command.spawn().map_err(|error| format!("starting {command:?}: {error}"))?;
        let mut server = ServerProcess { child, port, log };
        server.wait_until_ready()?;
        Ok(server)
    }

    fn wait_until_ready(&mut self) -> Result<(), String> {
        let started = Instant::now();
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("the server ended with {status} instead of starting:\n{}", self.log_tail()));
            }
            match Client::connect(&self.url(), Format::GraphSon3, Duration::from_secs(5)) {
                Ok(_) => return Ok(()),
                Err(failure) if started.elapsed() > START_TIME_MAX => {
                    return Err(format!("no answer in {START_TIME_MAX:?}: {failure}\n{}", self.log_tail()));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    /// Where it answers.
    pub fn url(&self) -> String {
        format!("ws://127.0.0.1:{}/gremlin", self.port)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its process id.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// True while the process runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Ends it at once, as `kill -9` does, and waits until it is gone.
    pub fn kill(&mut self) {
        // It may have ended by itself; then there is nothing left to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The end of what it wrote.
    pub fn log_tail(&self) -> String {
        const LINES_MAX: usize = 40;
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LINES_MAX)..].join("\n")
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.kill();
    }
}
