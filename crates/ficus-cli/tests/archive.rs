//! A server with an archive is killed under writes: what the archive says it has can be restored, also as of earlier.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, UNIX_EPOCH};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("ficus-archive-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a temporary folder can be made");
        Folder(path)
    }

    fn ficus(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ficus"));
        command.args(["--format", "json"]).args(arguments).current_dir(&self.0).stdin(Stdio::null());
        command.output().expect("the binary runs")
    }

    fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.ficus(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn refuse(&self, arguments: &[&str], status: i32, part: &str) {
        let output = self.ficus(arguments);
        let shown = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(status) && shown.contains(part), "{arguments:?}: {shown}");
    }

    /// The newest commit that a backup has.
    fn backup(&self, to: &str) -> u64 {
        let said = self.succeed(&["admin", "backup", "--data-dir", "data", "--to", to]);
        let said: serde_json::Value = serde_json::from_str(&said).expect("one JSON object");
        said["commit"].as_u64().expect("a number")
    }

    /// Vertices after a restore.
    fn restored(&self, from: &str, to: &str, point: &[&str]) -> u64 {
        let mut arguments = vec!["admin", "restore", "--from", from, "--to", to];
        arguments.extend(point);
        let said: serde_json::Value = serde_json::from_str(&self.succeed(&arguments)).expect("one JSON object");
        assert!(said["commit"].as_u64() > Some(0) && said["time_ms"].as_u64() > Some(0), "{said}");
        self.vertices(to)
    }

    /// Vertices in a data directory that no server uses.
    fn vertices(&self, directory: &str) -> u64 {
        let checked = self.succeed(&["admin", "check", "--data-dir", directory]);
        let of_graph = checked.lines().last().expect("a graph comes last");
        let checked: serde_json::Value = serde_json::from_str(of_graph).expect("a line is a JSON object");
        checked["vertices"].as_u64().expect("a number")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start(folder: &Folder) -> Server {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ficus"));
        command.args(["serve", "--format", "json", "--listen", "127.0.0.1:0", "--data-dir", "data"]);
        command.args(["--archive-dir", "archive", "--set", "store.archive_delay_ms=20"]).current_dir(&folder.0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("it starts");
        let mut banner = String::new();
        let stdout = process.stdout.take().expect("stdout is piped");
        BufReader::new(stdout).read_line(&mut banner).expect("the server says where it listens");
        let banner: serde_json::Value = serde_json::from_str(&banner).expect("the banner is JSON");
        Server { process, address: banner["address"].as_str().expect("it has an address").to_owned() }
    }

    /// An answer over HTTP, without its head; `None` if the server went away.
    fn http(&self, request: &str) -> Option<String> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
        Some(body.to_owned())
    }

    /// Commits a vertex; false if the server went away.
    fn add(&self) -> bool {
        let body = r#"{"gremlin":"g.addV('a')"}"#;
        let head = "POST /gremlin HTTP/1.1\r\nHost: ficus\r\nConnection: close\r\nContent-Type: application/json\r\n";
        self.http(&format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())).is_some()
    }

    fn metric(&self, name: &str) -> f64 {
        let metrics = self.http("GET /metrics HTTP/1.1\r\nHost: ficus\r\nConnection: close\r\n\r\n");
        let metrics = metrics.expect("the server is there");
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.trim().parse().ok()).unwrap_or_else(|| panic!("{name} in {metrics}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn now_ms() -> u64 {
    u64::try_from(UNIX_EPOCH.elapsed().expect("it is after 1970").as_millis()).expect("64 bits are enough")
}

#[test]
fn a_killed_server_is_restored_to_now_and_to_earlier() {
    let folder = Folder::new("killed");
    let mut server = Server::start(&folder);
    (0..7).for_each(|_| assert!(server.add()));
    let moment = now_ms();
    while now_ms() == moment {
        std::thread::yield_now();
    }
    (0..5).for_each(|_| assert!(server.add()));
    // Beside the server, into a place of its own; the archive of the server is taken.
    let commit = folder.backup("backup");
    folder.refuse(&["admin", "backup", "--data-dir", "data", "--to", "archive"], 1, "in use");
    let patience = Instant::now() + Duration::from_secs(120);
    while server.metric("ficus_archive_commit") < commit as f64 {
        assert!(Instant::now() < patience, "the archive does not catch up");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(server.metric("ficus_archive_failures_total"), 0.0);
    assert!(server.metric("ficus_archive_age_seconds") < 3600.0);
    // Killed in the middle of writes.
    let acknowledged = AtomicU64::new(12);
    std::thread::scope(|scope| {
        let id = server.process.id().to_string();
        for _ in 0..2 {
            scope.spawn(|| {
                while server.add() {
                    acknowledged.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        while acknowledged.load(Ordering::Relaxed) < 60 {
            std::thread::yield_now();
        }
        let killed = Command::new("kill").args(["-9", &id]).status().expect("kill is there");
        assert!(killed.success());
    });
    server.process.wait().expect("it can be waited for");
    let acknowledged = acknowledged.into_inner();

    let until = moment.to_string();
    let by_commit = commit.to_string();
    assert_eq!(folder.restored("archive", "then", &["--until", &until]), 7);
    assert_eq!(folder.restored("archive", "later", &["--commit", &by_commit]), 12);
    let newest = folder.restored("archive", "newest", &[]);
    assert!((12..=acknowledged + 2).contains(&newest), "{newest} of {acknowledged}");
    assert_eq!(folder.restored("backup", "from-backup", &[]), 12);
    assert_eq!(folder.restored("backup", "from-backup-then", &["--until", &until]), 7);
    folder.refuse(&["admin", "restore", "--from", "archive", "--to", "then"], 1, "not empty");
    let beyond = u64::MAX.to_string();
    folder.refuse(
        &["admin", "restore", "--from", "archive", "--to", "no", "--commit", &beyond],
        1,
        "it ends at commit",
    );
    folder.refuse(&["admin", "restore", "--from", "archive", "--to", "no", "--until", "soon"], 2, "looks like");
    assert!(folder.succeed(&["admin", "check", "--data-dir", "archive"]).contains("this is an archive"));
    // What the data directory still has is nothing less than what was acknowledged, and comes to the archive as well.
    folder.backup("archive");
    let all = folder.restored("archive", "all", &[]);
    assert!((acknowledged..=acknowledged + 2).contains(&all), "{all} of {acknowledged}");
    assert_eq!(folder.vertices("data"), all);
}

#[test]
fn an_archive_needs_a_data_directory_of_its_own() {
    let folder = Folder::new("refused");
    folder.refuse(&["serve", "--archive-dir", "archive"], 2, "store.data_dir");
    folder.refuse(&["admin", "backup", "--data-dir", "absent", "--to", "archive"], 1, "no data directory");
    folder.refuse(&["admin", "restore", "--from", "absent", "--to", "data"], 1, "no archive");
    assert!(!folder.0.join("archive").exists() && !folder.0.join("data").exists());
}
