//! Loads and exports of a running server: it goes on answering, a graph is there whole or not at all, and what is interrupted
//! goes on where it was.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value as Json;

const BINARY: &str = env!("CARGO_BIN_EXE_ficus");

/// A server with a folder of its own; both go away with the test.
struct Server {
    process: Child,
    address: String,
    folder: PathBuf,
}

impl Server {
    fn start(settings: &[&str]) -> Server {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("ficus-live-test-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder can be made");
        let (process, address) = serve(&folder, settings);
        Server { process, address, folder }
    }

    /// Kills the server and starts another over its data.
    fn crash(&mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it can be waited for");
        (self.process, self.address) = serve(&self.folder, &[]);
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.join(name);
        std::fs::write(&path, text).expect("it can be written");
        path
    }

    fn ficus(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command.args(arguments).args(["--server", &self.address]).current_dir(&self.folder);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn load(&self, graph: &str, files: &[&Path], options: &[&str]) -> Command {
        let mut command = self.ficus(&["load", "--quiet", "--graph", graph]);
        command.args(["--reject-file", &format!("{graph}.rejected.jsonl")]).args(options).args(files);
        command
    }

    fn rejected(&self, graph: &str) -> String {
        std::fs::read_to_string(self.folder.join(format!("{graph}.rejected.jsonl"))).unwrap_or_default()
    }

    /// The rows of an export, sorted; the form has no ids of edges.
    fn content(&self, graph: &str) -> Vec<String> {
        let target = format!("{graph}-out");
        let _ = std::fs::remove_dir_all(self.folder.join(&target));
        let (status, shown) = run(&mut self.ficus(&["export", "--lossy", "--to", "neo4j", "--graph", graph, &target]));
        assert_eq!(status, 0, "{shown}");
        rows_of(&self.folder.join(&target))
    }

    /// The answer to an HTTP request: its status and its body.
    fn http(&self, method: &str, path: &str, body: &[u8]) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).expect("it reads");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("it answers");
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").expect("it has a head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("it has a status");
        (status, body.to_owned())
    }

    /// The one number that a query gives.
    fn number(&self, source: &str, query: &str) -> Option<u64> {
        let body = serde_json::json!({"gremlin": query, "aliases": {"g": source}}).to_string();
        let (status, body) = self.http("POST", "/gremlin", body.as_bytes());
        let body: Json = serde_json::from_str(&body).expect("it is JSON");
        let value = &body["result"]["data"]["@value"][0]["@value"];
        (status == 200).then(|| value.as_u64().expect("it is a number"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn serve(folder: &Path, settings: &[&str]) -> (Child, String) {
    serve_and_say(folder, settings, Stdio::null())
}

/// Starts a server whose log goes there; gives its address too.
fn serve_and_say(folder: &Path, settings: &[&str], log: Stdio) -> (Child, String) {
    let mut command = Command::new(BINARY);
    command.args(["serve", "--format", "json", "--listen", "127.0.0.1:0", "--data-dir"]).arg(folder.join("data"));
    for setting in settings {
        command.args(["--set", setting]);
    }
    let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn().expect("it starts");
    let mut banner = String::new();
    let stdout = process.stdout.take().expect("stdout is piped");
    BufReader::new(stdout).read_line(&mut banner).expect("the server says where it listens");
    let banner: Json = serde_json::from_str(&banner).expect("the banner is JSON");
    (process, banner["address"].as_str().expect("it has an address").to_owned())
}

fn rows_of(folder: &Path) -> Vec<String> {
    let mut rows = Vec::new();
    for entry in std::fs::read_dir(folder).expect("it was written") {
        let path = entry.expect("it can be listed").path();
        let content = std::fs::read_to_string(&path).expect("it can be read");
        rows.extend(content.lines().map(|line| format!("{} {line}", path.file_name().unwrap().to_string_lossy())));
    }
    rows.sort_unstable();
    rows
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

/// Panics with the first rows that differ.
fn assert_same(found: &[String], expected: &[String]) {
    let known: std::collections::HashSet<_> = found.iter().collect();
    let missing: Vec<_> = expected.iter().filter(|row| !known.contains(row)).take(3).collect();
    let known: std::collections::HashSet<_> = expected.iter().collect();
    let further: Vec<_> = found.iter().filter(|row| !known.contains(row)).take(3).collect();
    assert!(
        found == expected,
        "{} rows instead of {}; missing {missing:?}, further {further:?}",
        found.len(),
        expected.len()
    );
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn run(command: &mut Command) -> (i32, String) {
    let output = command.output().expect("the binary runs");
    (output.status.code().unwrap_or(-1), text(&output))
}

/// Vertices and edges with Neo4j headers; one in 500 of either is rejected.
fn files(server: &Server, vertices: u64, edges: u64) -> [PathBuf; 2] {
    let mut nodes = String::from("id:ID,name,age:int,:LABEL\n");
    for id in 0..vertices {
        let age = if id % 500 == 3 { "old".to_owned() } else { (id % 90).to_string() };
        let _ = writeln!(nodes, "{id},name {id},{age},person");
    }
    let mut links = String::from(":START_ID,:END_ID,:TYPE,weight:double\n");
    for edge in 0..edges {
        let to = if edge % 500 == 7 { vertices + 1 } else { edge * 7919 % vertices };
        let _ = writeln!(links, "{},{to},knows,{}", (edge / 3 * 31) % vertices, edge % 4);
    }
    [server.file("edges.csv", &links), server.file("nodes.csv", &nodes)]
}

#[test]
#[cfg(target_os = "linux")]
fn a_log_that_nobody_takes_ends_nothing() {
    let mut server = Server::start(&[]);
    server.process.kill().and_then(|()| server.process.wait()).expect("it runs");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("the system has it");
    (server.process, server.address) = serve_and_say(&server.folder, &["log.level=debug"], full.into());
    assert_eq!(server.number("g", "g.addV('x').count()"), Some(1));
    assert_eq!(server.number("g", "g.V().count()"), Some(1));
    let told = Command::new("kill").args(["-TERM", &server.process.id().to_string()]).status().expect("kill is there");
    assert!(told.success());
    assert_eq!(server.process.wait().expect("it ends").code(), Some(0), "it stops in order");
}

#[test]
fn a_graph_comes_in_whole_while_the_server_answers() {
    let server = Server::start(&[]);
    let [edges, nodes] = files(&server, 30_000, 120_000);
    let paths = [edges.as_path(), nodes.as_path()];
    let is_done = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut seen = Vec::new();
            while !is_done.load(Ordering::Relaxed) {
                seen.push(server.number("g", "g.V().count()").expect("it answers"));
                server.number("g", "g.V().limit(10).out().count()").expect("it answers");
            }
            seen
        });
        let (status, shown) = run(&mut server.load("g", &paths, &["--max-errors", "100000"]));
        is_done.store(true, Ordering::Relaxed);
        assert_eq!(status, 3, "{shown}");
        assert!(shown.contains("= 149640 loaded") || shown.contains("loaded 29940 vertices"), "{shown}");
        watching.join().expect("it answered all the time")
    });
    let (_, metrics) = server.http("GET", "/metrics", b"");
    for sample in [
        "ficus_load_running 0",
        "ficus_loads_total{outcome=\"complete\"} 1",
        "ficus_loads_total{outcome=\"broken_off\"} 0",
        "ficus_load_records_total{kind=\"vertex\"} 29940",
    ] {
        assert!(metrics.lines().any(|line| line == sample), "{sample} is not in {metrics}");
    }
    assert!(seen.iter().all(|count| [0, 29_940].contains(count)), "a part of the graph was seen: {seen:?}");
    // The same as without a server.
    let offline = ["load", "--quiet", "--max-errors", "100000", "--data-dir", "offline", "edges.csv", "nodes.csv"];
    let (status, shown) = run(Command::new(BINARY).args(offline).current_dir(&server.folder));
    assert_eq!(status, 3, "{shown}");
    let reported = |report: &str| -> Vec<(Json, Json)> {
        let lines = report.lines().map(|line| serde_json::from_str::<Json>(line).expect("it is JSON"));
        lines.map(|line| (line["line"].clone(), line["reason"].clone())).collect()
    };
    let report = std::fs::read_to_string(server.folder.join("load.rejected.jsonl")).expect("there are some");
    assert_eq!(reported(&server.rejected("g")), reported(&report));
    let offline = ["export", "--lossy", "--to", "neo4j", "--data-dir", "offline", "offline-out"];
    let (status, shown) = run(Command::new(BINARY).args(offline).current_dir(&server.folder));
    assert_eq!(status, 0, "{shown}");
    assert_same(&server.content("g"), &rows_of(&server.folder.join("offline-out")));
}

#[test]
fn what_was_loaded_survives_a_crash_and_new_graphs_are_sources() {
    let mut server = Server::start(&[]);
    let [edges, nodes] = files(&server, 1000, 3000);
    let paths = [edges.as_path(), nodes.as_path()];
    assert_eq!(server.number("second", "g.V().count()"), None);
    assert_eq!(run(&mut server.load("second", &paths, &["--index", "person:name"])).0, 3);
    let content = server.content("second");
    server.crash();
    assert_same(&server.content("second"), &content);
    assert_eq!(server.number("second", "g.V().has('person','name','name 7').count()"), Some(1));
    let left: Vec<_> =
        std::fs::read_dir(server.folder.join("data/incoming/files")).map(Iterator::collect).unwrap_or_default();
    assert!(left.is_empty(), "{left:?}");
    let (status, shown) = run(&mut server.ficus(&["admin", "graphs", "--remove", "second"]));
    assert_eq!(status, 0, "{shown}");
    assert_eq!(server.number("second", "g.V().count()"), None);
    server.crash();
    assert_eq!(server.number("second", "g.V().count()"), None);
    let (status, shown) = run(&mut server.ficus(&["admin", "graphs", "--create", "third"]));
    assert_eq!(status, 0, "{shown}");
    assert_eq!(server.number("third", "g.V().count()"), Some(0));
    let (status, shown) = run(&mut server.ficus(&["admin", "graphs"]));
    assert!(status == 0 && shown.contains("third: 0 vertices, 0 edges"), "{shown}");
}

#[test]
fn a_damaged_graph_is_refused_and_the_others_go_on() {
    let mut server = Server::start(&[]);
    let [edges, nodes] = files(&server, 1000, 3000);
    for graph in ["first", "second"] {
        assert_eq!(run(&mut server.load(graph, &[&edges, &nodes], &[])).0, 3);
    }
    // "g" is graph 0.
    let folder = std::fs::read_dir(server.folder.join("data")).expect("it can be listed");
    let mut names: Vec<_> = folder.map(|entry| entry.expect("it can be listed").path()).collect();
    names.sort_unstable();
    let is_segment = |path: &&PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("segment-00000001-");
    let segment = names.iter().find(is_segment).expect("it has one");
    let whole = std::fs::read(segment).expect("it can be read");
    for (place, patience) in [(whole.len() / 2, 100), (20, 1)] {
        server.process.kill().expect("it runs");
        server.process.wait().expect("it can be waited for");
        let mut damaged = whole.clone();
        damaged[place] ^= 0x55;
        std::fs::write(segment, &damaged).expect("it can be written");
        (server.process, server.address) = serve(&server.folder, &[]);
        // A place in a column is come to beside the queries.
        let mut metrics = String::new();
        for _ in 0..patience {
            metrics = server.http("GET", "/metrics", b"").1;
            if metrics.contains("ficus_graph_damaged{source=\"first\"} 1") {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        assert!(metrics.contains("ficus_graph_damaged{source=\"first\"} 1"), "{metrics}");
        assert!(metrics.contains("ficus_graph_damaged{source=\"second\"} 0"), "{metrics}");
        for query in ["g.V().count()", "g.V().values('name')", "g.addV('x')"] {
            let body = serde_json::json!({"gremlin": query, "aliases": {"g": "first"}}).to_string();
            let (status, body) = server.http("POST", "/gremlin", body.as_bytes());
            assert!(status == 500 && body.contains("FICUS-2016") && body.contains("is damaged at byte"), "{body}");
        }
        assert_eq!(server.number("second", "g.addV('x').constant(1)"), Some(1));
        assert_eq!(server.http("GET", "/health/writable", b"").0, 200);
        let (status, shown) = run(&mut server.ficus(&["admin", "graphs"]));
        assert!(status == 0 && shown.contains("first: not to be read, segment-00000001-"), "{shown}");
        let (status, shown) = run(&mut server.ficus(&["export", "--graph", "first", "out.json"]));
        assert!(status == 1 && shown.contains("is damaged at byte"), "{shown}");
        let (status, shown) = run(&mut server.load("first", &[&edges, &nodes], &[]));
        assert!(status == 1 && shown.contains("is damaged at byte"), "{shown}");
    }
    std::fs::write(segment, &whole).expect("it can be written");
    server.crash();
    assert_eq!(server.number("first", "g.V().count()"), Some(998));
    assert_eq!(server.number("second", "g.V().count()"), Some(1000));
}

/// Asks the process to end, and waits for it: whether it ended well.
fn terminate(process: &mut Child) -> bool {
    let asked = Command::new("kill").args(["-TERM", &process.id().to_string()]).status().expect("kill is there");
    assert!(asked.success());
    process.wait().expect("it can be waited for").success()
}

#[test]
fn a_damaged_checkpoint_that_is_passed_over_is_told() {
    let mut server = Server::start(&[]);
    assert_eq!(server.number("g", "g.addV('x').constant(1)"), Some(1));
    assert!(terminate(&mut server.process));
    let folder = std::fs::read_dir(server.folder.join("data")).expect("it can be listed");
    let mut names = folder.map(|entry| entry.expect("it can be listed").path());
    let is_checkpoint = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("checkpoint-");
    let checkpoint = names.find(is_checkpoint).expect("it was taken at the stop");
    let mut content = std::fs::read(&checkpoint).expect("it can be read");
    content[40] ^= 1;
    std::fs::write(&checkpoint, content).expect("it can be written");
    let log = server.folder.join("log");
    let to = std::fs::File::create(&log).expect("it can be made");
    (server.process, server.address) = serve_and_say(&server.folder, &[], to.into());
    assert_eq!(server.number("g", "g.V().count()"), Some(1));
    let metrics = server.http("GET", "/metrics", b"").1;
    assert!(metrics.contains("ficus_checkpoints_passed_over 1\n"), "{metrics}");
    assert!(metrics.contains("ficus_checkpoint_failed 0\n"), "{metrics}");
    let name = checkpoint.file_name().unwrap().to_string_lossy().into_owned();
    let said = std::fs::read_to_string(&log).expect("it can be read");
    assert!(said.contains("WARN") && said.contains(&name) && said.contains("passed over"), "{said}");
}

/// The limit of the shell (`ulimit -f`), beyond which the system sends a signal that ends a process.
#[test]
fn a_file_that_may_not_become_larger_is_a_full_disk_and_no_end() {
    let mut server = Server::start(&[]);
    assert!(terminate(&mut server.process));
    let mut command = Command::new("sh");
    // Blocks of 512 or 1024 bytes.
    command.args(["-c", "ulimit -f 400; exec \"$0\" \"$@\"", BINARY, "serve", "--format", "json"]);
    command.args(["--listen", "127.0.0.1:0", "--data-dir"]).arg(server.folder.join("data"));
    let mut process =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("sh is there");
    let mut banner = String::new();
    BufReader::new(process.stdout.take().expect("stdout is piped"))
        .read_line(&mut banner)
        .expect("it says where it listens");
    let banner: Json = serde_json::from_str(&banner).expect("the banner is JSON");
    server.address = banner["address"].as_str().expect("it has an address").to_owned();
    server.process = process;
    let add = |text_bytes: usize| {
        let bindings = serde_json::json!({"text": "x".repeat(text_bytes)});
        let body =
            serde_json::json!({"gremlin": "g.addV('x').property('text', text)", "bindings": bindings}).to_string();
        server.http("POST", "/gremlin", body.as_bytes())
    };
    // The log goes on in other files.
    for _ in 0..60 {
        let (status, body) = add(20_000);
        assert_eq!(status, 200, "{body}");
    }
    let (status, body) = add(600_000);
    assert!(status == 500 && body.contains("FICUS-2010") && body.contains("ulimit -f"), "{body}");
    assert_eq!(server.number("g", "g.V().count()"), Some(60));
    assert_eq!(add(100).0, 200);
    // Nor does the last checkpoint fit.
    assert!(!terminate(&mut server.process));
    let mut said = String::new();
    server.process.stderr.take().expect("it is piped").read_to_string(&mut said).expect("it can be read");
    assert!(said.contains("nothing is lost") && said.contains("ulimit -f"), "{said}");
    (server.process, server.address) = serve(&server.folder, &[]);
    assert_eq!(server.number("g", "g.V().count()"), Some(61));
}

#[test]
fn a_load_whose_client_or_server_dies_goes_on() {
    let mut server = Server::start(&[]);
    let [edges, nodes] = files(&server, 12_000, 30_000);
    let paths = [edges.as_path(), nodes.as_path()];
    let first = server.file("first.csv", "id:ID,name,age:int,:LABEL\nfirst,first,1,person\n");
    for graph in ["whole", "killed"] {
        let (status, shown) = run(&mut server.load(graph, &[&first], &[]));
        assert_eq!(status, 0, "{shown}");
    }
    let options = ["--resume", "--max-errors", "100000"];
    assert_eq!(run(&mut server.load("whole", &paths, &options)).0, 3);
    for round in 0..8_u64 {
        let mut client = server.load("killed", &paths, &options).spawn().expect("it runs");
        std::thread::sleep(Duration::from_millis(40 + 90 * round));
        if round % 3 == 2 {
            server.crash();
        }
        client.kill().expect("a child can be killed");
        client.wait().expect("it can be waited for");
    }
    // The load of the last client may take a moment to see that nobody waits for it.
    let (mut status, mut shown) = run(&mut server.load("killed", &paths, &options));
    while status == 1 && shown.contains("another load") {
        std::thread::sleep(Duration::from_millis(20));
        (status, shown) = run(&mut server.load("killed", &paths, &options));
    }
    assert_eq!(status, 3, "{shown}");
    assert_same(&server.content("killed"), &server.content("whole"));
    assert_same(&lines(&server.rejected("killed")), &lines(&server.rejected("whole")));
    let (status, shown) = run(&mut server.load("killed", &paths, &options));
    assert!(status == 3 && shown.contains("complete already"), "{status}: {shown}");
    assert_same(&server.content("killed"), &server.content("whole"));
    assert_same(&lines(&server.rejected("killed")), &lines(&server.rejected("whole")));
}

#[test]
fn records_that_the_graph_refuses_meanwhile_are_rejected() {
    const ROWS: u64 = 20_000;
    let server = Server::start(&[]);
    let first = server.file("first.csv", ":ID,name,:LABEL\nfirst,first,person\n");
    assert_eq!(run(&mut server.load("g", &[&first], &[])).0, 0);
    let ask = |query: &str| {
        let body = serde_json::json!({"gremlin": query, "aliases": {"g": "g"}}).to_string();
        server.http("POST", "/gremlin", body.as_bytes())
    };
    let (status, body) = ask("g.call('ficus.schema.createIndex', ['label': 'person', 'keys': 'name', 'unique': true])");
    assert_eq!(status, 200, "{body}");
    let mut persons = String::from(":ID,name,:LABEL\n");
    for id in 0..ROWS {
        // One of these has the name of another.
        let _ = writeln!(persons, "{id},name {},person", if id == 15_000 { 7 } else { id });
    }
    let persons = server.file("persons.csv", &persons);
    let is_done = AtomicBool::new(false);
    let (status, shown, taken) = std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let mut taken = 0;
            for id in (0..ROWS).rev().step_by(97).take_while(|_| !is_done.load(Ordering::Relaxed)) {
                let (status, _) = ask(&format!("g.addV('other').property(T.id, '{id}')"));
                taken += u64::from(status == 200);
            }
            taken
        });
        let (status, shown) = run(&mut server.load("g", &[&persons], &[]));
        is_done.store(true, Ordering::Relaxed);
        (status, shown, writing.join().expect("it answered all the time"))
    });
    let rejected = server.rejected("g").lines().count() as u64;
    assert_eq!((status, rejected), (3, taken + 1), "{shown}");
    let sums = format!("read {ROWS} records = {} loaded + {rejected} rejected", ROWS - rejected);
    assert!(shown.contains(&sums), "{sums}: {shown}");
    assert_eq!(server.number("g", "g.V().count()"), Some(1 + ROWS - 1));
}

#[test]
fn what_cannot_be_done_is_refused_with_a_reason() {
    let server = Server::start(&["store.upload_bytes=1000"]);
    let cases: [(&str, &str, &[u8], u16, &str); 10] = [
        ("POST", "/v1/graphs/g/load", b"no archive", 400, "tar archive"),
        ("POST", "/v1/graphs/g/load?frm=csv", b"", 400, "frm"),
        ("POST", "/v1/graphs/g/load?from=xls", b"", 400, "xls"),
        ("POST", "/v1/graphs/g/load?mapping=m.toml", &[0; 1024], 400, "m.toml"),
        ("POST", "/v1/graphs/g/load", &[0; 1024], 400, "nothing to load"),
        ("GET", "/v1/graphs/g/load", b"", 405, "POST"),
        ("GET", "/v1/graphs/other/export?to=graphson", b"", 404, "no graph [other]"),
        ("GET", "/v1/graphs/g/export", b"", 400, "`to` is missing"),
        ("PUT", "/v1/graphs/g", b"", 400, "already"),
        ("DELETE", "/v1/graphs/other", b"", 404, "no graph [other]"),
    ];
    for (method, path, body, status, part) in cases {
        let (answered, body) = server.http(method, path, body);
        assert!(answered == status && body.contains(part), "{method} {path}: {answered} {body}");
    }
    let long = server.file("long.csv", &format!("id:ID,:LABEL\n{}", "a,b\n".repeat(2000)));
    let (status, shown) = run(&mut server.load("g", &[&long], &[]));
    assert!(status == 1 && shown.contains("1000 bytes"), "{status}: {shown}");
    let wrong = server.file("wrong.csv", "id:ID,:LABEL\n\"a,b\n");
    let (status, shown) = run(&mut server.load("g", &[&wrong], &[]));
    assert!(status != 0 && !shown.contains("incoming"), "{status}: {shown}");
    assert_eq!(server.number("g", "g.V().count()"), Some(0));
}

#[test]
fn where_users_have_names_these_are_for_administrators() {
    let hash = |password: &str| {
        let output = Command::new(BINARY).args(["admin", "hash-password"]).env("FICUS_PASSWORD", password).output();
        String::from_utf8(output.expect("it runs").stdout).expect("it is text").trim().to_owned()
    };
    let users = format!(
        "server.users=[{{name=\"ann\",password_hash=\"{}\"}},{{name=\"bob\",password_hash=\"{}\"}}]",
        hash("a"),
        hash("b")
    );
    let server = Server::start(&[&users, "server.administrators=[\"ann\"]"]);
    let file = server.file("v.csv", "id:ID,:LABEL\na,b\n");
    let asked = |user: Option<(&str, &str)>| {
        let mut command = server.load("g", &[&file], &[]);
        if let Some((user, password)) = user {
            command.args(["--user", user]).env("FICUS_PASSWORD", password);
        }
        run(&mut command)
    };
    for (user, part) in [(None, "401"), (Some(("bob", "b")), "administrators"), (Some(("ann", "b")), "401")] {
        let (status, shown) = asked(user);
        assert!(status == 1 && shown.contains(part), "{user:?}: {status}: {shown}");
    }
    let (status, shown) = asked(Some(("ann", "a")));
    assert_eq!(status, 0, "{shown}");
}
