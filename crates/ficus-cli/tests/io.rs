//! `io()` of a running server: what it writes it reads back the same, and it stays in its folder.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A server with a folder of its own; both go away with the test.
struct Server {
    process: Child,
    address: String,
    folder: PathBuf,
}

impl Server {
    /// Starts a server; `io()` may use the folder `io` if `with_io`.
    fn start(with_io: bool) -> Server {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("ficus-io-test-{}-{number}", std::process::id()));
        std::fs::create_dir_all(folder.join("io")).expect("a temporary folder can be made");
        let mut command = Command::new(env!("CARGO_BIN_EXE_ficus"));
        command.args(["serve", "--format", "json", "--listen", "127.0.0.1:0", "--demo", "tinkerpop"]);
        if with_io {
            command.arg("--set").arg(format!("engine.io_dir={}", folder.join("io").display()));
        }
        let mut process =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let mut banner = String::new();
        let stdout = process.stdout.take().expect("stdout is piped");
        BufReader::new(stdout).read_line(&mut banner).expect("the server says where it listens");
        let banner: serde_json::Value = serde_json::from_str(&banner).expect("the banner is JSON");
        let address = banner["address"].as_str().expect("it has an address").to_owned();
        Server { process, address, folder }
    }

    /// Writes a file into the folder of `io()`.
    fn file(&self, name: &str, text: &str) {
        std::fs::write(self.folder.join("io").join(name), text).expect("it can be written");
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.join("io").join(name)).expect("it is there")
    }

    /// The rows of a query, or the message of its error.
    fn ask(&self, source: &str, query: &str) -> Result<Vec<String>, String> {
        let output = Command::new(env!("CARGO_BIN_EXE_ficus"))
            .args(["shell", &self.address, "--source", source, "-e", query])
            .stdin(Stdio::null())
            .output()
            .expect("the binary runs");
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }

    fn succeed(&self, source: &str, query: &str) -> Vec<String> {
        self.ask(source, query).unwrap_or_else(|message| panic!("{source}: {query}: {message}"))
    }

    fn refuse(&self, source: &str, query: &str, part: &str) {
        match self.ask(source, query) {
            Err(message) => assert!(message.contains(part), "{source}: {query}: {message}"),
            Ok(rows) => panic!("{source}: {query} gave {rows:?}"),
        }
    }

    /// All vertices, vertex properties with their meta-properties, and edges, without the ids of properties.
    fn contents(&self, source: &str) -> Vec<String> {
        let mut contents = Vec::new();
        for query in [
            "g.V().project('id', 'label').by(T.id).by(T.label)",
            "g.V().properties().project('of', 'key', 'value', 'meta').by(__.element().id()).by(T.key).by(T.value).by(valueMap())",
            "g.E().elementMap()",
        ] {
            let mut rows = self.succeed(source, query);
            rows.sort();
            contents.extend(rows);
        }
        contents
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn what_is_written_is_read_back() {
    let server = Server::start(true);
    let cases = [
        ("gmodern", "a.json", ""),
        ("gcrew", "b.json", ""),
        ("gcrew", "c", ".with(IO.FORM, IO.graphson)"),
        ("gcrew", "d.kryo", ""),
        ("gsink", "e", ".with(IO.FORM, IO.gryo)"),
        ("gmodern", "a.json", ""),
    ];
    for (source, file, option) in cases {
        let named = |side: &str| option.replace("FORM", side);
        server.succeed(source, &format!("g.io('{file}'){}.write()", named("writer")));
        let rows = server.succeed("ggraph", &format!("g.io('{file}'){}.read()", named("reader")));
        assert_eq!(rows, Vec::<String>::new(), "{file}");
        assert_eq!(server.contents("ggraph"), server.contents(source), "{source} {file}");
        server.succeed("ggraph", "g.V().drop()");
    }
    // GraphML has texts for ids; what stands in it survives another round.
    server.succeed("gmodern", "g.io('a.xml').write()");
    server.succeed("ggraph", "g.io('a.xml').read()");
    server.succeed("ggraph", "g.io('b.graphml').write()");
    assert_eq!(server.read("a.xml"), server.read("b.graphml"));
    assert_eq!(server.succeed("ggraph", "g.V('1').out('created').valueMap('name', 'lang')").len(), 1);
    let names: Vec<_> = std::fs::read_dir(server.folder.join("io")).expect("it is there").collect();
    assert_eq!(names.len(), 7, "nothing else is left behind: {names:?}");
}

#[test]
fn unusable_files_and_formats_are_refused() {
    let server = Server::start(true);
    server.file("twice.json", "{\"id\":1,\"label\":\"a\"}\n{\"id\":2,\"label\":\"a\"}\n{\"id\":1,\"label\":\"b\"}\n");
    server.file("twice.xml", "<graphml>\n<graph>\n<node id=\"1\"/>\n<node id=\"1\"/>\n</graph></graphml>");
    server.file("edge.json", "{\"id\":1,\"outE\":{\"knows\":[{\"inV\":2}]}}\n");
    server.file("broken.json", "{\"id\":1}\n{\"id\":\n");
    server.file("any.kryo", "{}");
    let cases = [
        ("ggraph", "g.io('twice.json').read()", "twice.json, line 3: Vertex with id already exists: 1"),
        ("ggraph", "g.io('twice.xml').read()", "twice.xml, line 4: Vertex with id already exists: 1"),
        ("ggraph", "g.io('edge.json').read()", "edge.json, line 1: its target vertex 2 does not exist"),
        ("ggraph", "g.io('broken.json').read()", "broken.json, line 2"),
        ("ggraph", "g.io('absent.json').read()", "[absent.json]"),
        ("ggraph", "g.io('any.kryo').read()", "vertex 1, byte 0: the file ends within a vertex"),
        ("ggraph", "g.io('edge.json').with(IO.reader, IO.gryo).read()", "the mark of a Gryo file"),
        ("ggraph", "g.io('edge.csv').write()", "tells no format"),
        ("ggraph", "g.io('edge.json').with(IO.writer, 'csv').write()", "graphml, graphson and gryo"),
        ("ggraph", "g.io('.').with(IO.reader, IO.graphson).read()", "not a regular file"),
        ("ggraph", "g.io('no/folder.json').write()", "no/folder.json"),
        ("gcrew", "g.io('lossy.xml').write()", "meta-properties of 'location'"),
    ];
    for (source, query, part) in cases {
        server.refuse(source, query, part);
    }
    assert_eq!(server.succeed("ggraph", "g.V().count()"), ["0"], "what a failed read added is rolled back");
    assert!(!server.folder.join("io/lossy.xml").exists());
}

#[test]
fn nothing_outside_the_folder_is_touched() {
    use std::os::unix::fs::symlink;

    let server = Server::start(true);
    let outside = server.folder.join("outside.json");
    std::fs::write(&outside, "{\"id\":1}\n").expect("it can be written");
    let io = server.folder.join("io");
    symlink(&outside, io.join("link.json")).expect("links can be made");
    symlink(server.folder.join("made.json"), io.join("dangling.json")).expect("links can be made");
    symlink(&server.folder, io.join("up")).expect("links can be made");
    let absolute = outside.display().to_string();
    for name in ["../outside.json", "x/../../outside.json", &absolute, "link.json", "dangling.json", "up/outside.json"]
    {
        for verb in ["read", "write"] {
            server.refuse("gmodern", &format!("g.io('{name}').{verb}()"), "folder the server allows");
        }
    }
    assert_eq!(std::fs::read_to_string(&outside).expect("it is there"), "{\"id\":1}\n");
    assert!(!server.folder.join("made.json").exists());
    // A link that stays inside is a name like any other.
    server.file("inside.json", "{\"id\":1}\n");
    symlink(io.join("inside.json"), io.join("alias.json")).expect("links can be made");
    server.succeed("ggraph", "g.io('alias.json').read()");
    assert_eq!(server.succeed("ggraph", "g.V().count()"), ["1"]);
}

#[test]
fn without_a_folder_it_is_switched_off() {
    let server = Server::start(false);
    for query in ["g.io('a.json').read()", "g.io('a.json').write()"] {
        server.refuse("gmodern", query, "engine.io_dir");
    }
}
