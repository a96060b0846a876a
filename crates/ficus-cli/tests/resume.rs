//! Loads that are killed at random moments and gone on with: nothing is missing and nothing is there twice.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const VERTICES: u64 = 12_000;
const EDGES: u64 = 30_000;

/// Splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (number ^ number >> 31) % bound
    }
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("ficus-resume-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a temporary folder can be made");
        Folder(path)
    }

    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, content).expect("a file can be written");
        path
    }

    fn load(&self, data: &str, files: &[&Path], options: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ficus"));
        command.arg("load").arg("--quiet").arg("--data-dir").arg(self.0.join(data));
        command.arg("--reject-file").arg(self.0.join(format!("{data}.rejected.jsonl")));
        command.args(options).args(files).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Rows of all files of an export, sorted; the form has no ids of edges.
    fn content(&self, data: &str) -> Vec<String> {
        let target = self.0.join(format!("{data}-out"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_ficus"));
        command.args(["export", "--lossy", "--to", "neo4j", "--data-dir"]).arg(self.0.join(data)).arg(&target);
        let output = command.output().expect("the binary runs");
        assert!(output.status.success(), "{}", text(&output));
        let mut rows = Vec::new();
        for entry in std::fs::read_dir(&target).expect("it was written") {
            let path = entry.expect("it can be listed").path();
            let content = std::fs::read_to_string(&path).expect("it can be read");
            rows.extend(content.lines().map(|line| format!("{} {line}", path.file_name().unwrap().to_string_lossy())));
        }
        rows.sort_unstable();
        rows
    }

    fn rejected(&self, data: &str) -> String {
        std::fs::read_to_string(self.0.join(format!("{data}.rejected.jsonl"))).unwrap_or_default()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn run(command: &mut Command) -> (i32, String) {
    let output = command.output().expect("the binary runs");
    (output.status.code().unwrap_or(-1), text(&output))
}

/// Files with parallel edges without ids, edges before vertices, and some rows that are rejected in either pass.
fn files(folder: &Folder, random: &mut Random) -> [PathBuf; 3] {
    let mut vertices = String::from("id:ID,name,age:int,:LABEL\n");
    for id in 0..VERTICES {
        let _ = match random.below(500) {
            0 => writeln!(vertices, "{id},name {id},old,person"),
            1 => writeln!(vertices, "{},again,1,person", id / 2),
            _ => writeln!(vertices, "{id},name {id},{},person", id % 90),
        };
    }
    let mut edges = String::from(":START_ID,:END_ID,:TYPE,weight:double\n");
    for _ in 0..EDGES {
        let (from, to) = (random.below(VERTICES), random.below(VERTICES / 100) + random.below(400) / 399 * VERTICES);
        let _ = writeln!(edges, "{from},{to},knows,{}", random.below(4));
    }
    let first = "id:ID,name,age:int,:LABEL\nfirst,first,1,person\n";
    [folder.file("first.csv", first), folder.file("edges.csv", &edges), folder.file("vertices.csv", &vertices)]
}

fn seed() -> u64 {
    let given = std::env::var("FICUS_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    given.unwrap_or_else(|| {
        u64::from(std::process::id()) << 20 ^ std::time::UNIX_EPOCH.elapsed().map_or(0, |now| now.as_secs())
    })
}

#[test]
#[allow(clippy::print_stdout, reason = "shown if it fails")]
fn a_load_that_is_killed_goes_on_where_it_was() {
    let seed = seed();
    println!("FICUS_TEST_SEED={seed}");
    let mut random = Random(seed);
    let folder = Folder::new("kill");
    let [first, edges, vertices] = files(&folder, &mut random);
    let files = [edges.as_path(), vertices.as_path()];
    for data in ["whole", "killed"] {
        assert_eq!(run(&mut folder.load(data, &[&first], &[])).0, 0);
    }
    let (status, shown) = run(&mut folder.load("whole", &files, &["--max-errors", "100000"]));
    assert_eq!(status, 3, "{shown}");
    let (mut kills, mut ended) = (0, false);
    while !ended {
        let mut child =
            folder.load("killed", &files, &["--resume", "--max-errors", "100000"]).spawn().expect("it runs");
        // After some kills it is let be, so that the test ends on slow machines as well.
        if kills < 12 {
            std::thread::sleep(Duration::from_millis(5 + random.below(700)));
            child.kill().expect("a child can be killed");
            kills += 1;
        }
        let output = child.wait_with_output().expect("it can be waited for");
        ended = output.status.code().is_some();
        assert!(!ended || output.status.code() == Some(3), "seed {seed}: {}", text(&output));
    }
    assert_eq!(folder.content("killed"), folder.content("whole"), "seed {seed}, {kills} kills");
    assert_eq!(folder.rejected("killed"), folder.rejected("whole"), "seed {seed}, {kills} kills");
    let (status, shown) = run(&mut folder.load("killed", &files, &["--resume"]));
    assert!(status == 3 && shown.contains("complete already"), "{status}: {shown}");
    assert_eq!(folder.content("killed"), folder.content("whole"), "seed {seed}: a complete load adds nothing");
}

#[test]
fn a_load_that_failed_goes_on_when_its_files_are_mended() {
    let folder = Folder::new("mended");
    let mut random = Random(7);
    let [first, edges, vertices] = files(&folder, &mut random);
    let files = [edges.as_path(), vertices.as_path()];
    for data in ["whole", "failed"] {
        assert_eq!(run(&mut folder.load(data, &[&first], &[])).0, 0);
    }
    assert_eq!(run(&mut folder.load("whole", &files, &["--max-errors", "100000"])).0, 3);
    let (status, shown) = run(&mut folder.load("failed", &files, &["--max-errors", "3"]));
    assert!(status == 1 && shown.contains("--resume"), "{status}: {shown}");
    // Another load would hide that this one is not complete.
    let (status, shown) = run(&mut folder.load("failed", &files, &[]));
    assert!(status == 1 && shown.contains("--forget"), "{status}: {shown}");
    let (status, shown) = run(&mut folder.load("failed", &[&first], &["--resume"]));
    assert!(status == 1 && shown.contains("other files"), "{status}: {shown}");
    let whole = std::fs::read_to_string(&vertices).expect("it is there");
    folder.file("vertices.csv", &whole.replacen("name 1,", "name X,", 1));
    let (status, shown) = run(&mut folder.load("failed", &files, &["--resume", "--max-errors", "100000"]));
    assert!(status == 1 && shown.contains("are not those"), "{status}: {shown}");
    folder.file("vertices.csv", &whole);
    assert_eq!(run(&mut folder.load("failed", &files, &["--resume", "--max-errors", "100000"])).0, 3);
    assert_eq!(folder.content("failed"), folder.content("whole"));
    assert_eq!(folder.rejected("failed"), folder.rejected("whole"));
}

#[test]
fn a_load_of_a_whole_graph_is_there_or_not() {
    let folder = Folder::new("fresh");
    let [first, edges, vertices] = files(&folder, &mut Random(9));
    let files = [edges.as_path(), vertices.as_path()];
    for moment in [0, 20, 60, 150] {
        let options = ["--resume", "--max-errors", "100000"];
        let mut child = folder.load("g", &files, &options).spawn().expect("it runs");
        std::thread::sleep(Duration::from_millis(moment));
        child.kill().expect("a child can be killed");
        child.wait().expect("it can be waited for");
    }
    assert_eq!(run(&mut folder.load("g", &files, &["--resume", "--max-errors", "100000"])).0, 3);
    let content = folder.content("g");
    let (status, shown) = run(&mut folder.load("g", &files, &["--resume"]));
    assert!(status == 3 && shown.contains("complete already"), "{status}: {shown}");
    assert_eq!(folder.content("g"), content);
    // Other files are another load.
    assert_eq!(run(&mut folder.load("g", &[&first], &["--resume"])).0, 0);
    assert_eq!(folder.content("g").len(), content.len() + 1);
}

/// A graph of one person whose names are unique, and rows of persons of which `repeated` have a name that is taken.
fn unique_names(folder: &Folder, data: &str, rows: u64, repeated: &[u64]) -> PathBuf {
    let first = folder.file("one.csv", ":ID,name:string,:LABEL\nfirst,first,person\n");
    assert_eq!(run(&mut folder.load(data, &[&first], &[])).0, 0);
    let mut command = Command::new(env!("CARGO_BIN_EXE_ficus"));
    command.args(["admin", "schema", "--graph", "g", "--data-dir"]).arg(folder.0.join(data));
    let (status, shown) = run(command.args(["createIndex", "label=person", "keys=name", "unique=true"]));
    assert_eq!(status, 0, "{shown}");
    let mut persons = String::from(":ID,name:string,:LABEL\n");
    for id in 0..rows {
        let name = if repeated.contains(&id) { id / 2 } else { id };
        let _ = writeln!(persons, "{id},name {name},person");
    }
    folder.file("persons.csv", &persons)
}

#[test]
fn records_that_the_graph_refuses_are_rejected_and_no_others() {
    let folder = Folder::new("unique");
    let repeated = [1000, 9000, 9001, 11_999];
    let persons = unique_names(&folder, "g", VERTICES, &repeated);
    let (status, shown) = run(&mut folder.load("g", &[&persons], &["--threads", "4"]));
    assert!(status == 3 && shown.contains("read 12000 records = 11996 loaded + 4 rejected"), "{status}: {shown}");
    let rejected = folder.rejected("g");
    let lines: Vec<&str> = rejected.lines().collect();
    assert_eq!(lines.len(), 4, "{rejected}");
    for (line, id) in lines.iter().zip(repeated) {
        assert!(line.contains(&format!("\"line\":{},", id + 2)), "{line}");
        assert!(line.contains("unique index") && line.contains(&format!("\"row\":\"{id},name")), "{line}");
    }
    let content = folder.content("g");
    // Two headers are one: there is one file.
    assert_eq!(content.len() as u64, 1 + 1 + VERTICES - 4);
    let (status, shown) = run(&mut folder.load("g", &[&persons], &["--resume"]));
    assert!(status == 3 && shown.contains("complete already"), "{status}: {shown}");
    assert_eq!(folder.content("g"), content);
}

#[test]
fn a_load_that_ends_at_refused_records_goes_on_without_a_hole() {
    let folder = Folder::new("hole");
    let repeated: Vec<u64> = (0..60).map(|number| 5000 + number * 100).collect();
    for data in ["whole", "ended"] {
        unique_names(&folder, data, VERTICES, &repeated);
    }
    let persons = folder.0.join("persons.csv");
    assert_eq!(run(&mut folder.load("whole", &[&persons], &[])).0, 3);
    let (mut max_errors, mut ends) = (10, 0);
    loop {
        let options = ["--resume", "--max-errors", &max_errors.to_string()];
        let (status, shown) = run(&mut folder.load("ended", &[&persons], &options));
        if status == 3 {
            break;
        }
        // What is told is what is there: the graph had one vertex, and the export has a header.
        let loaded = folder.content("ended").len() - 2;
        let rejected = folder.rejected("ended").lines().count();
        assert_eq!((status, rejected), (1, max_errors + 1), "{shown}");
        let sums = format!("read {} records = {loaded} loaded + {rejected} rejected", loaded + rejected);
        assert!(shown.contains(&sums) && shown.contains("--resume"), "{sums}: {shown}");
        max_errors += 20;
        ends += 1;
    }
    assert_eq!(ends, 3);
    assert_eq!(folder.content("ended"), folder.content("whole"));
    assert_eq!(folder.rejected("ended"), folder.rejected("whole"));
}
