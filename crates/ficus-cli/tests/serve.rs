//! `ficus serve` as those see it who start it, stop it and look after it: settings, exit codes, signals, TLS.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value as Json;

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ficus-serve-test-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder can be made");
        Folder(path)
    }

    fn ficus(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ficus"));
        command.args(arguments).current_dir(&self.0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn file(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).expect("it can be written");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A server that ends with the test.
struct Server {
    process: Child,
    address: String,
    folder: Folder,
}

impl Server {
    fn start(settings: &[&str]) -> Server {
        Server::start_with(settings, |_| ())
    }

    fn start_with(settings: &[&str], change: impl FnOnce(&mut Command)) -> Server {
        Server::start_in(Folder::new(), settings, change)
    }

    fn start_in(folder: Folder, settings: &[&str], change: impl FnOnce(&mut Command)) -> Server {
        let mut command = folder.ficus(&["serve", "--format", "json", "--listen", "127.0.0.1:0"]);
        for setting in settings {
            command.args(["--set", setting]);
        }
        change(&mut command);
        let mut process = command.spawn().expect("it starts");
        let mut banner = String::new();
        let stdout = process.stdout.take().expect("stdout is piped");
        BufReader::new(stdout).read_line(&mut banner).expect("the server says where it listens");
        let banner: Json = serde_json::from_str(&banner).expect("the banner is JSON");
        let address = banner["address"].as_str().expect("it has an address").to_owned();
        Server { process, address, folder }
    }

    fn ask(&self, arguments: &[&str]) -> Output {
        self.folder.ficus(arguments).args(["--server", &self.address]).output().expect("the binary runs")
    }

    fn connect(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.write_all(request.as_bytes()).expect("it reads");
        stream
    }

    fn get(&self, path: &str) -> String {
        let mut stream = self.connect(&format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }

    fn signal(&self, name: &str) {
        let told = Command::new("kill").args([name, &self.process.id().to_string()]).status().expect("kill is there");
        assert!(told.success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn settings_that_cannot_work_are_wrong_usage() {
    let folder = Folder::new();
    let cases: &[(&[&str], &str)] = &[
        (&["--listen", "nonsense"], "cannot listen on nonsense"),
        (&["--listen", "127.0.0.1:99999"], "cannot listen on 127.0.0.1:99999"),
        // An address for documents, which no machine has.
        (&["--listen", "192.0.2.1:0", "--set", "server.allow_unauthenticated=true"], "cannot listen on 192.0.2.1:0"),
        (&["--listen", "0.0.0.0:0"], "without authentication"),
        (&["--set", "server.batch_size=0"], "`batch_size`"),
        (&["--set", "server.tls.certificate=absent.pem"], "missing field `key`"),
        (&["--set", "server.tls.certificate=absent.pem", "--set", "server.tls.key=absent.pem"], "absent.pem"),
        (&["--set", "engine.executors=1000000"], "`engine.executors` is 1000000"),
    ];
    for (arguments, part) in cases {
        let output = folder.ficus(&["serve"]).args(*arguments).output().expect("the binary runs");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(part), "{arguments:?}: {}", said(&output));
    }
    let output = folder.ficus(&["serve"]).env("FICUS_LOG_LEVEL", "debug").output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("did you mean FICUS_LOG__LEVEL?"), "{}", said(&output));
}

#[test]
#[cfg(target_os = "linux")]
fn paths_and_variables_of_others_need_not_be_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let (data, archive) = (OsStr::from_bytes(b"data \xff"), OsStr::from_bytes(b"archive \xfe"));
    let server = Server::start_with(&[], |command| {
        command.env("OTHER", OsStr::from_bytes(b"\xff"));
        command.arg("--data-dir").arg(data).arg("--archive-dir").arg(archive);
    });
    for name in [data, archive] {
        assert!(server.folder.0.join(name).is_dir(), "{name:?}");
    }
    assert_eq!(std::fs::read_dir(&server.folder.0).expect("it is there").count(), 2, "and nothing else");
}

#[test]
fn who_is_told_twice_to_stop_ends_at_once() {
    for (first, second) in [("-TERM", "-TERM"), ("-INT", "-TERM"), ("-TERM", "-INT")] {
        let mut server = Server::start(&["server.timeouts.drain_ms=600000", "server.timeouts.evaluation_cap_ms=0"]);
        let endless = "g.inject(1).repeat(__.identity()).until(__.is(2))&evaluationTimeout=0";
        let _busy = server.connect(&format!("GET /gremlin?gremlin={endless} HTTP/1.1\r\nHost: x\r\n\r\n"));
        while !server.get("/metrics").contains("\nficus_requests_running 1\n") {
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut log = BufReader::new(server.process.stderr.take().expect("stderr is piped"));
        server.signal(first);
        // Said once the first was taken, so that the second is one of its own.
        let mut line = String::new();
        while !line.contains("to end at once") {
            line.clear();
            assert!(log.read_line(&mut line).expect("it can be read") > 0, "it ended by itself");
        }
        server.signal(second);
        assert_eq!(server.process.wait().expect("it ends").code(), Some(130), "{first} {second}");
    }
}

#[test]
fn queries_are_looked_after_when_no_graph_is_left() {
    let server = Server::start(&[]);
    let removed = server.ask(&["admin", "graphs", "--remove", "g"]);
    assert!(removed.status.success(), "{}", said(&removed));
    let listed = server.ask(&["--format", "json", "admin", "queries"]);
    assert!(listed.status.success() && said(&listed).contains("ficus.queries"), "{}", said(&listed));
    let tenants = server.ask(&["admin", "tenants"]);
    assert!(tenants.status.success(), "{}", said(&tenants));
    let killed = server.ask(&["admin", "kill", "1f6e52ac-02cb-4a5c-a343-5a1ba2e4a3c5"]);
    assert_eq!(killed.status.code(), Some(1));
    assert!(said(&killed).contains("there is no query 1f6e52ac"), "{}", said(&killed));
}

#[test]
fn a_query_that_needs_more_than_all_may_hold_is_not_told_to_come_again() {
    let server = Server::start(&["engine.queries_memory_bytes=16777216"]);
    // A list of 33 million: half a gibibyte, which one query may hold.
    let list = "g.inject(1).repeat(__.union(__.identity(),__.identity())).times(25).fold()";
    let answer = server.get(&format!("/gremlin?gremlin={list}"));
    assert!(answer.contains("FICUS-2009") && answer.contains("queries_memory_bytes"), "{answer}");
}

#[test]
fn verbs_speak_tls() {
    let folder = Folder::new();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into(), "127.0.0.1".into()]).expect("it is made");
    folder.file("cert.pem", &made.cert.pem());
    folder.file("key.pem", &made.signing_key.serialize_pem());
    folder.file("v.csv", "~id,~label\na,x\nb,x\n");
    // One by one, as by the environment of a container.
    let server = Server::start_in(folder, &["server.tls.certificate=cert.pem", "server.tls.key=key.pem"], |_| ());
    let (secure, plain) = (format!("https://{}", server.address), format!("ws://{}", server.address));
    let run = |arguments: &[&str]| {
        let output = server.folder.ficus(arguments).output().expect("the binary runs");
        (output.status.code(), said(&output))
    };
    let trusting = ["--ca-file", "cert.pem"];
    let loaded = run(&[&["load", "--quiet", "--server", &secure, "v.csv"][..], &trusting].concat());
    assert_eq!(loaded.0, Some(0), "{}", loaded.1);
    let socket = secure.replace("https", "wss");
    let counted = run(&[&["shell", &socket, "-e", "g.V().count()"][..], &trusting].concat());
    assert_eq!(counted, (Some(0), "2\n".to_owned()));
    let listed = run(&[&["admin", "queries", "--server", &socket][..], &trusting].concat());
    assert_eq!(listed.0, Some(0), "{}", listed.1);
    let exported = run(&[&["export", "--server", &secure, "g.json"][..], &trusting].concat());
    assert_eq!(exported.0, Some(0), "{}", exported.1);
    let stranger = run(&["shell", &socket, "-e", "g.V().count()"]);
    assert_eq!(stranger.0, Some(1), "{}", stranger.1);
    assert!(stranger.1.contains("--ca-file"), "{}", stranger.1);
    for arguments in [&["shell", &plain, "-e", "g.V()"][..], &["admin", "graphs", "--server", &server.address]] {
        let (code, told) = run(arguments);
        assert_eq!(code, Some(1), "{told}");
        assert!(told.contains("write wss:// or https://"), "{arguments:?}: {told}");
    }
}
