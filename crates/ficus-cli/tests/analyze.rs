//! `ficus analyze` against a server: what is going on is told, and Ctrl-C ends the work there.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn ficus(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ficus"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// A server with a demo graph; it and its data go away with the test.
struct Server {
    child: Child,
    address: String,
    folder: PathBuf,
}

impl Server {
    fn start() -> Server {
        let folder = std::env::temp_dir().join(format!("ficus-analyze-test-{}", std::process::id()));
        let data = folder.display().to_string();
        let arguments =
            ["--format", "json", "serve", "--listen", "127.0.0.1:0", "--demo", "modern", "--data-dir", &data];
        let mut child = ficus(&arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut banner = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut banner).unwrap();
        let from = banner.find("\"address\":\"").expect("the banner has an address") + "\"address\":\"".len();
        let address = banner[from..].split('"').next().unwrap().to_owned();
        Server { child, address, folder }
    }

    /// Queries that run or wait.
    fn queries(&self) -> String {
        let output = ficus(&["admin", "queries", "--server", &self.address]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Waits until the list of queries is so.
    fn wait_until(&self, is_so: impl Fn(&str) -> bool) {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let queries = self.queries();
            if is_so(&queries) {
                return;
            }
            assert!(Instant::now() < until, "the queries are still {queries}");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn an_interrupted_analysis_ends_on_the_server_and_writes_nothing() {
    let server = Server::start();
    // Ranks that never stand still enough: it runs until somebody ends it.
    let endless = ["tolerance=0", "iterations=4000000000", "write=rank"];
    let place = ["--server", &server.address, "--timeout", "600000"];
    let arguments = [&["analyze", "pagerank"], &endless[..], &place[..]].concat();
    let mut analysis = ficus(&arguments).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    server.wait_until(|queries| queries.contains("computing") && queries.contains("percent"));
    let signalled = Command::new("kill").args(["-INT", &analysis.id().to_string()]).status().unwrap();
    assert!(signalled.success());
    let status = analysis.wait().unwrap();
    let mut said = String::new();
    analysis.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("cancelled; nothing was written"), "{said}");
    server.wait_until(|queries| !queries.contains("pagerank"));
    let short = [&["analyze", "degree"], &place[..]].concat();
    let output = ficus(&short).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 7);
}
