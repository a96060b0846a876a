//! The binary as scripts see it: exit codes, what goes to stdout, and round trips through files of every form.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ficus-cli-test-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder can be made");
        Folder(path)
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("it can be written");
        path.display().to_string()
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn ficus(folder: &Folder, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ficus"))
        .args(arguments)
        .current_dir(&folder.0)
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("it ended by itself")
}

fn succeed(folder: &Folder, arguments: &[&str]) -> String {
    let output = ficus(folder, arguments);
    assert_eq!(code(&output), 0, "{arguments:?}\n{}{}", stdout(&output), stderr(&output));
    stdout(&output)
}

fn demo(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("demos").join(name).display().to_string()
}

#[test]
fn exit_codes_tell_usage_from_failure() {
    let folder = Folder::new();
    let cases: &[(&[&str], i32, &str)] = &[
        (&["--version"], 0, ""),
        (&["--help"], 0, ""),
        (&["lod"], 2, "load"),
        (
            &["load"],
            2,
            "--data-dir DIR for a data directory that no server uses, --server HOST:PORT for a running server",
        ),
        (&["export", "x.json"], 2, "--data-dir DIR for a data directory that no server uses, --server HOST:PORT"),
        (&["shell", "127.0.0.1:99999", "-e", "g.V()"], 2, "'99999' in '127.0.0.1:99999' is no port"),
        (&["admin", "graphs", "--server", "127.0.0.1:99999"], 2, "is no port"),
        (&["admin", "kill", "7"], 2, "this is no id of a query"),
        (&["load", "--data-dir", "d"], 2, "nothing to load"),
        (&["load", "--data-dir", "d", "absent.json"], 2, "absent.json"),
        (&["load", "--data-dir", "d", "-"], 2, "write it to a file first"),
        // What can be read only once: the header would be all that is ever seen.
        (&["load", "--data-dir", "d", "--from", "neo4j", "/dev/null"], 2, "write it to a file first"),
        (&["load", "--data-dir", "d", "--vertices", "/dev/null"], 2, "write it to a file first"),
        (&["export", "--data-dir", "absent", "x.json"], 1, "no data directory"),
        (&["export", "--data-dir", "absent", "x.unknown"], 2, "--to"),
        (&["shell", "127.0.0.1:1", "-e", "g.V()"], 1, "127.0.0.1:1"),
        (&["serve", "--set", "server.lisen=x"], 2, "did you mean `listen`?"),
        (&["admin", "check", "--data-dir", "absent"], 1, "no data directory"),
    ];
    for (arguments, expected, part) in cases {
        let output = ficus(&folder, arguments);
        assert_eq!(code(&output), *expected, "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(part), "{arguments:?}: {}", stderr(&output));
    }
    assert!(stdout(&ficus(&folder, &["--version"])).contains(env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_port_that_is_taken_is_told_before_the_store_is_opened() {
    let folder = Folder::new();
    let other = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let address = other.local_addr().expect("it has one").to_string();
    // No directory, which the store would say.
    let data = folder.file("data", "");
    let output = ficus(&folder, &["serve", "--data-dir", &data, "--listen", &address]);
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).contains(&format!("cannot listen on {address}")), "{}", stderr(&output));
}

#[test]
fn rejected_records_are_reported_and_sums_agree() {
    let folder = Folder::new();
    let vertices = folder.file("v.csv", "~id,~label,age:Int(single)\na,x,1\nb,x,old\na,x,2\nc,x,3\n");
    let edges = folder.file("e.csv", "~id,~from,~to,~label\n1,a,c,to\n2,a,b,to\n3,c,a,to\n");
    let arguments = ["--format", "json", "load", "--data-dir", "d", "--quiet", &vertices, &edges];
    let output = ficus(&folder, &arguments);
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    let report: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("one JSON object");
    for (key, expected) in [("read", 7), ("vertices", 2), ("edges", 2), ("rejected", 3)] {
        assert_eq!(report[key], expected, "{key} in {report}");
    }
    assert_eq!(report["balanced"], true);
    let rejected = std::fs::read_to_string(folder.path("load.rejected.jsonl")).expect("the report is there");
    let rejected: Vec<serde_json::Value> =
        rejected.lines().map(|line| serde_json::from_str(line).expect("JSON lines")).collect();
    let seen: Vec<(&str, u64, &str)> = rejected
        .iter()
        .map(|entry| {
            let text = |key: &str| entry[key].as_str().expect("a text");
            (text("row"), entry["line"].as_u64().expect("a number"), text("reason"))
        })
        .collect();
    assert_eq!(seen[0].0, "b,x,old");
    assert_eq!((seen[1].0, seen[1].1), ("a,x,2", 4));
    assert_eq!((seen[2].0, seen[2].1), ("2,a,b,to", 3));
    assert!(seen[2].2.contains("target vertex 'b' does not exist"), "{seen:?}");
    // What was good is there.
    let again = succeed(&folder, &["export", "--data-dir", "d", "--to", "compact", "-"]);
    assert!(again.contains("e\ts1\tto\tsa\tsc"), "{again}");
}

#[test]
fn a_row_that_is_too_long_is_rejected_and_never_cut() {
    let folder = Folder::new();
    let long = "x".repeat((16 << 20) + 100);
    for row in [format!("b,x,{long}"), format!("b,x,\"{long}\""), format!("b,x,{long},")] {
        let vertices = folder.file("v.csv", &format!("~id,~label,name\na,x,short\n{row}\nc,x,short\n"));
        let output = ficus(&folder, &["load", "--data-dir", "d", "--graph", "g", "--dry-run", "--quiet", &vertices]);
        assert_eq!(code(&output), 3, "{}{}", stdout(&output), stderr(&output));
        assert!(stdout(&output).contains("read 3 records = 2 loaded + 1 rejected"), "{}", stdout(&output));
        let rejected = std::fs::read_to_string(folder.path("load.rejected.jsonl")).expect("the report is there");
        assert!(rejected.contains("the row is longer than 16 MiB"), "{}", &rejected[..200]);
        // As records, which is the road of a load into a graph that has elements.
        let first = folder.file("first.csv", "~id,~label,name\nz,x,short\n");
        succeed(&folder, &["load", "--data-dir", "d", "--quiet", &first]);
        let output = ficus(&folder, &["load", "--data-dir", "d", "--quiet", &vertices]);
        assert_eq!(code(&output), 3, "{}{}", stdout(&output), stderr(&output));
        let _ = std::fs::remove_dir_all(folder.path("d"));
    }
}

#[test]
fn a_load_gives_up_past_the_bound() {
    let folder = Folder::new();
    let vertices = folder.file("v.csv", "~id,~label,n:Int\na,x,p\nb,x,q\nc,x,1\n");
    let output = ficus(&folder, &["load", "--data-dir", "d", "--max-errors", "1", &vertices]);
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).contains("more than 1 records were rejected"), "{}", stderr(&output));
}

/// A thread that finished with one file waited for the lock of the feed, whose holder waited until that file was taken.
#[test]
fn many_small_files_load_however_threads_meet() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("in")).expect("it can be made");
    for number in 0..60 {
        folder.file(&format!("in/{number}.json"), &format!("{{\"id\":{number},\"label\":\"a\"}}\n"));
    }
    for _ in 0..40 {
        let said = succeed(&folder, &["load", "--dry-run", "--quiet", "--threads", "2", "in"]);
        assert!(said.contains("would load 60 vertices"), "{said}");
    }
}

#[test]
fn two_columns_for_one_value_are_refused() {
    let folder = Folder::new();
    for (text, accepted) in [
        (":ID,name,name,:LABEL\n1,a,b,x\n", false),
        (":ID,name,name:string[],:LABEL\n1,a,b,x\n", false),
        ("name:ID,name,:LABEL\n1,a,x\n", false),
        (":START_ID,:END_ID,:TYPE,w:int,w:int\n", false),
        ("~id,~label,name:String(single),name\n1,x,a,b\n", false),
        ("~id,~label,name,name:String[]\n1,x,a,b;c\n", true),
    ] {
        let file = folder.file("f.csv", text);
        let output = ficus(&folder, &["load", "--dry-run", "--quiet", &file]);
        assert_eq!(code(&output), if accepted { 0 } else { 2 }, "{text}{}", stderr(&output));
        assert!(accepted || stderr(&output).contains("two columns"), "{}", stderr(&output));
    }
}

#[test]
fn a_dry_run_keeps_nothing() {
    let folder = Folder::new();
    let said = succeed(&folder, &["load", "--dry-run", "--quiet", &demo("modern.ficus")]);
    assert!(said.contains("would load 6 vertices and 6 edges"), "{said}");
    assert_eq!(std::fs::read_dir(&folder.0).expect("it is there").count(), 0);
}

/// The lines of a compact export without what a form does not carry: property ids, and edge ids on demand.
fn comparable(text: &str, with_edge_ids: bool) -> BTreeSet<String> {
    let mut owner = String::new();
    text.lines()
        .map(|line| {
            let mut fields: Vec<&str> = line.split('\t').collect();
            match fields[0] {
                "v" => {
                    owner = fields[1].to_owned();
                    line.to_owned()
                }
                "p" => {
                    fields[1] = &owner;
                    fields.join("\t")
                }
                "e" if !with_edge_ids => {
                    fields[1] = "-";
                    fields.join("\t")
                }
                _ => line.to_owned(),
            }
        })
        .collect()
}

#[test]
fn what_is_exported_can_be_loaded_again() {
    // Demo, form, target, flags of the load, whether the form carries edge ids.
    let cases: &[(&str, &str, &str, &[&str], bool)] = &[
        ("modern.ficus", "compact", "out.ficus", &[], true),
        ("crew.ficus", "compact", "out.ficus.zst", &[], true),
        ("crew.ficus", "graphson", "out.json.gz", &[], true),
        ("crew.ficus", "gryo", "out.kryo.gz", &[], true),
        ("grateful-dead.ficus.zst", "gryo", "out.kryo", &[], true),
        ("sink.ficus", "graphson", "out.json", &[], true),
        ("classic.ficus", "graphml", "out.graphml", &["--id-type", "int"], true),
        ("modern.ficus", "neptune", "folder", &["--id-type", "int"], true),
        ("modern.ficus", "neo4j", "folder", &[], false),
        ("modern.ficus", "parquet", "folder", &[], true),
        ("grateful-dead.ficus.zst", "parquet", "folder", &[], true),
        ("grateful-dead.ficus.zst", "graphson", "out.json.zst", &[], true),
    ];
    for (demo_name, form, target, flags, with_edge_ids) in cases {
        let folder = Folder::new();
        succeed(&folder, &["load", "--quiet", "--data-dir", "one", &demo(demo_name)]);
        let before = succeed(&folder, &["export", "--data-dir", "one", "--to", "compact", "-"]);
        succeed(&folder, &["export", "--data-dir", "one", "--to", form, target]);
        let mut load = vec!["load", "--quiet", "--data-dir", "two", target];
        load.extend_from_slice(flags);
        succeed(&folder, &load);
        let after = succeed(&folder, &["export", "--data-dir", "two", "--to", "compact", "-"]);
        let sets = (comparable(&before, *with_edge_ids), comparable(&after, *with_edge_ids));
        assert_eq!(sets.0, sets.1, "{demo_name} as {form}");
        assert_eq!(before.lines().count(), after.lines().count(), "{demo_name} as {form}");
        succeed(&folder, &["admin", "check", "--data-dir", "two"]);
    }
}

/// What a table cannot say must be named before it is written, not missing when it is read.
#[test]
fn names_that_a_table_cannot_hold_are_named() {
    let folder = Folder::new();
    let cases: &[(&str, &[&str], &str)] = &[
        ("v\ts1\tx\np\t0\ta:b\ti1", &["neo4j"], "the key 'a:b'"),
        ("v\ts1\tx\np\t0\t~id\ti1", &["neptune", "parquet"], "the key '~id'"),
        ("v\ts1\tx\np\t0\ta\\\\\ti1", &["neptune", "parquet"], "the key 'a\\'"),
        ("v\ts1\tx\np\t0\t a\ti1", &["neo4j", "neptune", "parquet"], "the key ' a'"),
        ("v\ts1\tx;y", &["neo4j", "neptune", "parquet"], "the label 'x;y'"),
        ("v\ts1\tx\ne\ts2\tx;y\ts1\ts1", &["neptune", "parquet"], "the label 'x;y'"),
        ("v\ts\tx", &["neo4j", "neptune", "parquet"], "an empty text"),
    ];
    for (number, (text, refusing, part)) in cases.iter().enumerate() {
        let file = folder.file("in.ficus", &format!("#ficus-graph 1\n{text}\n"));
        let (data, again) = (format!("d{number}"), format!("again{number}"));
        succeed(&folder, &["load", "--quiet", "--data-dir", &data, &file]);
        let before = succeed(&folder, &["export", "--data-dir", &data, "--to", "compact", "-"]);
        for form in ["graphson", "neo4j", "neptune", "parquet"] {
            let target = folder.path(&format!("{number}-{form}{}", if form == "graphson" { ".json" } else { "" }));
            let output = ficus(&folder, &["export", "--data-dir", &data, "--to", form, &target]);
            if refusing.contains(&form) {
                assert_eq!(code(&output), 1, "{text} as {form}");
                assert!(stderr(&output).contains(part), "{text} as {form}: {}", stderr(&output));
                continue;
            }
            assert_eq!(code(&output), 0, "{text} as {form}: {}", stderr(&output));
            let directory = format!("{again}-{form}");
            succeed(&folder, &["load", "--quiet", "--data-dir", &directory, &target]);
            let after = succeed(&folder, &["export", "--data-dir", &directory, "--to", "compact", "-"]);
            assert_eq!(comparable(&before, false), comparable(&after, false), "{text} as {form}");
        }
    }
}

#[test]
fn losses_are_refused_unless_allowed() {
    let folder = Folder::new();
    succeed(&folder, &["load", "--quiet", "--data-dir", "d", &demo("crew.ficus")]);
    let output = ficus(&folder, &["export", "--data-dir", "d", "out.graphml"]);
    assert_eq!(code(&output), 1);
    for part in ["meta-properties of 'location'", "several values under the key 'location'"] {
        assert!(stderr(&output).contains(part), "{}", stderr(&output));
    }
    assert!(!Path::new(&folder.path("out.graphml")).exists());
    succeed(&folder, &["export", "--data-dir", "d", "--lossy", "out.graphml"]);
}

#[test]
fn graphml_refuses_what_xml_and_its_keys_cannot_hold() {
    let folder = Folder::new();
    let vertex = |id: u32, label: &str, properties: &str| {
        format!("{{\"id\":{id},\"label\":\"{label}\",\"properties\":{{{properties}}}}}\n")
    };
    let cases = [
        (
            vertex(1, "a", "\"x\":[{\"value\":1}]") + &vertex(2, "b", "\"x\":[{\"value\":\"t\"}]"),
            "different types of the key 'x'",
        ),
        (vertex(1, "a", "\"x\":[{\"value\":\"a\\u0001b\"}]"), "characters under the key 'x'"),
        (vertex(1, "a", "\"x\":[{\"value\":\"a\\uffffb\"}]"), "characters under the key 'x'"),
        (vertex(1, "a\\u001f", ""), "characters of the label 'a\\u{1f}'"),
        (vertex(1, "a", "\"\\u000b\":[{\"value\":1}]"), "characters of the key '\\u{b}'"),
    ];
    for (number, (text, part)) in cases.iter().enumerate() {
        let file = folder.file(&format!("{number}.json"), text);
        let data = format!("d{number}");
        succeed(&folder, &["load", "--quiet", "--data-dir", &data, &file]);
        let output = ficus(&folder, &["export", "--data-dir", &data, "out.graphml"]);
        assert_eq!(code(&output), 1, "{text}");
        assert!(stderr(&output).contains(part), "{text}: {}", stderr(&output));
        succeed(&folder, &["export", "--data-dir", &data, "--lossy", "out.graphml"]);
        // What is written is XML all the same.
        let again = format!("again{number}");
        succeed(&folder, &["load", "--quiet", "--data-dir", &again, "--id-type", "int", "out.graphml"]);
    }
    let text = "a\u{fffd}b";
    assert!(succeed(&folder, &["export", "--data-dir", "again1", "--to", "compact", "-"]).contains(text));
    // Line ends and tabs of texts, labels and keys stay as they are.
    let file =
        folder.file("ends.json", &vertex(1, "a\\r\\n\\tb", "\"k\\r\\n\\t\":[{\"value\":\"x\\r\\ny\\rz\\n\\t \"}]"));
    succeed(&folder, &["load", "--quiet", "--data-dir", "ends", &file]);
    succeed(&folder, &["export", "--data-dir", "ends", "ends.graphml"]);
    succeed(&folder, &["load", "--quiet", "--data-dir", "again", "--id-type", "int", "ends.graphml"]);
    let all = |data: &str| succeed(&folder, &["export", "--data-dir", data, "--to", "graphson", "-"]);
    assert_eq!(all("ends"), all("again"));
    let written = std::fs::read_to_string(folder.path("ends.graphml")).expect("it is there");
    assert!(!written.contains('\r') && written.contains("x&#13;&#10;y&#13;z"), "{written}");
}

/// A graph that is built as a whole and one that has elements take the same records and reject the same.
#[test]
fn both_roads_into_a_graph_read_lists_labels_and_ids_alike() {
    let folder = Folder::new();
    let vertices =
        ":ID(P){id-type:long},:LABEL,s:string[],n:int[]\n007,a,x;;y,1;2\n8,;,,\n9,b,;,\n+10,b,,1;;2\n11,b,y;,3\n";
    let edges = ":START_ID(P){id-type:long},:END_ID(P){id-type:long},:TYPE\n7,09,t\n0011,7,t\n";
    let (vertices, edges) = (folder.file("v.csv", vertices), folder.file("e.csv", edges));
    let first = folder.file("first.csv", ":ID,:LABEL\nfirst,a\n");
    let mut found = Vec::new();
    for (data, files) in
        [("log", vec![&first]), ("log", vec![&vertices, &edges]), ("whole", vec![&first, &vertices, &edges])]
    {
        let mut arguments = vec!["load", "--quiet", "--data-dir", data];
        arguments.extend(files.iter().map(|file| file.as_str()));
        let output = ficus(&folder, &arguments);
        if files.len() == 1 {
            assert_eq!(code(&output), 0, "{}", stderr(&output));
            continue;
        }
        assert_eq!(code(&output), 3, "{}{}", stdout(&output), stderr(&output));
        let rejected = std::fs::read_to_string(folder.path("load.rejected.jsonl")).expect("some were");
        assert!(
            rejected.contains("its label is empty") && rejected.contains("item 2 of the list is empty"),
            "{rejected}"
        );
        assert_eq!(rejected.lines().count(), 2, "{rejected}");
        // What it writes with empty items it reads again.
        let neo4j = format!("{data}-neo4j");
        succeed(&folder, &["export", "--data-dir", data, "--to", "neo4j", &neo4j]);
        let again = format!("{data}-again");
        succeed(&folder, &["load", "--quiet", "--data-dir", &again, &neo4j]);
        for data in [data, &again] {
            found.push(comparable(&succeed(&folder, &["export", "--data-dir", data, "--to", "compact", "-"]), false));
        }
    }
    assert!(found.iter().all(|content| *content == found[0]), "{found:?}");
    let shown = format!("{:?}", found[0]);
    assert!(["P:7", "P:9", "P:11"].iter().all(|id| shown.contains(id)) && !shown.contains("P:0"), "{shown}");
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let folder = Folder::new();
    succeed(&folder, &["load", "--quiet", "--data-dir", "d", &demo("grateful-dead.ficus.zst")]);
    let mut child = Command::new(env!("CARGO_BIN_EXE_ficus"))
        .args(["export", "--data-dir", "d", "--to", "compact", "-"])
        .current_dir(&folder.0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut first = [0; 16];
    child.stdout.take().expect("it was piped").read_exact(&mut first).expect("it writes");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(stderr(&output), "");
    assert_eq!(code(&output), 0);
}

#[test]
fn the_example_mappings_read_small_tables() {
    let mappings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/mappings");
    let mapping = |name: &str| mappings.join(name).display().to_string();
    let folder = Folder::new();
    std::fs::create_dir(folder.path("films")).expect("a folder");
    let header = "film_id,title,type,release_year,age_certification,runtime_min,genres,countries,imdb_score,imdb_votes";
    folder.file("films/films.csv", &format!("{header}\ntm1,\"A, B\",MOVIE,2021,R,126,drama;thriller,DE,5.5,12\n"));
    folder.file("films/people.csv", "person_id,name\n7,Tamsin\n");
    folder.file("films/genres.csv", "genre\ndrama\nthriller\n");
    folder.file("films/acted_in.csv", "person_id,film_id,character\n7,tm1,Elizabeth\n8,tm1,Phil\n");
    folder.file("films/directed.csv", "person_id,film_id\n7,tm1\n");
    let output = ficus(
        &folder,
        &["--format", "json", "load", "--dry-run", "--quiet", "--mapping", &mapping("films.toml"), "films"],
    );
    let report: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("one JSON object");
    assert_eq!(
        (&report["vertices"], &report["edges"], &report["rejected"]),
        (&4.into(), &4.into(), &1.into()),
        "{report}"
    );
    let list = folder.file("soc-x.txt", "# comment\n1\t2\n2\t2\n");
    let said = succeed(&folder, &["load", "--dry-run", "--quiet", "--mapping", &mapping("edge-list.toml"), &list]);
    assert!(said.contains("0 vertices and 2 edges") && said.contains("created 2 vertices"), "{said}");
    std::fs::read_to_string(mapping("snb.toml")).expect("it is there");
}

#[test]
fn a_made_up_social_network_loads_without_a_rejected_record() {
    let folder = Folder::new();
    let made =
        ficus(&folder, &["--format", "json", "datagen", "snb", "--scale", "0.003", "--seed", "9", "--out", "snb"]);
    let made: serde_json::Value = serde_json::from_str(&stdout(&made)).expect("one JSON object");
    let rows = |files: &[&str]| files.iter().map(|file| made["rows"][file].as_u64().expect(file)).sum::<u64>();
    let mapping = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/mappings/snb.toml");
    let mapping = mapping.display().to_string();
    let load =
        ["--format", "json", "load", "--quiet", "--data-dir", "data", "--graph", "snb", "--mapping", &mapping, "snb"];
    let loaded = ficus(&folder, &load);
    let loaded: serde_json::Value = serde_json::from_str(&stdout(&loaded)).expect("one JSON object");
    let vertices = rows(&["person", "forum", "post", "comment", "organisation", "place", "tag", "tagclass"]);
    let (places, classes) = (rows(&["place"]) - 6, rows(&["tagclass"]) - 1);
    // Columns that name a vertex: all but those of continents and of the topmost class are set.
    let keys = rows(&["person", "forum", "organisation", "tag"]) + 3 * rows(&["post", "comment"]) + places + classes;
    let pairs = rows(&[
        "person_knows_person",
        "person_hasInterest_tag",
        "person_workAt_organisation",
        "person_studyAt_organisation",
        "forum_hasMember_person",
        "forum_hasTag_tag",
        "post_hasTag_tag",
        "comment_hasTag_tag",
        "person_likes_post",
        "person_likes_comment",
    ]);
    let told = |key: &str| loaded[key].as_u64().expect(key);
    assert_eq!((told("vertices"), told("edges"), told("rejected")), (vertices, keys + pairs, 0), "{loaded}");
    let output = ficus(&folder, &["datagen", "snb", "--scale", "0", "--out", "snb"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("it must be from 0.001 to 100"), "{}", stderr(&output));
}

/// The same files into an empty graph, which is built as a whole, and into one that has an element.
#[test]
fn both_roads_of_a_load_give_the_same_graph() {
    let folder = Folder::new();
    let mapping = folder.file(
        "mapping.toml",
        r##"
[csv]
comment = "#"
[[vertices]]
files = ["person.csv"]
label_column = "kind"
labels = { a = "author" }
id = "id"
id_space = "person"
[vertices.properties]
age = "int"
born = "epoch-millis"
tags = "set<string>"
scores = "array<double>"
[[vertices.edges]]
column = "friends"
label = "friend"
other_space = "person"
several = true
[[vertices.edges]]
column = "boss"
label = "leads"
other_space = "person"
direction = "in"
[[edges]]
files = ["knows.csv"]
label = "knows"
id = "id"
id_type = "long"
from = "from"
from_space = "person"
to = "to"
to_space = "person"
properties = { weight = "double", since = "array<int>" }
[[edges]]
files = ["pairs.csv"]
label = "pair"
from = "x"
from_type = "int"
to = "y"
to_type = "int"
symmetric = true
create_vertices = "number"
"##,
    );
    let mut person = String::from("id,kind,name,age,born,tags,scores,friends,boss\n# a comment\n");
    let rows = [
        "1,a,Ann,30,86400000,x;y;x,1.5;2,2;3,\n",
        "2,b,\"Ben, \"\"B\"\"\",,-1,,,,1\r\n",
        "\n3,,no label,1,,,,,\n",
        "4,a,\"two\nlines\",41,,z,,1;9;2,2\n",
        "1,a,again,1,,,,2,\n",
        "5,a,old,old,,,,1,\n",
        "6,a,short\n",
        "7,b,\"\",  7 ,,,,,7\n",
        "8,b,\"x\"y,1,,,,,\n",
        ",b,no id,1,,,,,\n",
    ];
    rows.iter().for_each(|row| person.push_str(row));
    (0..3000).for_each(|number| person.push_str(&format!("{},b,p{number},{number},,,,1;2,4\n", 100 + number)));
    let mut knows = String::from("id,from,to,weight,since\n");
    // Ids far above those that edges without one get.
    let rows = [
        "1000001,1,2,0.5,1;2\n",
        "1000002,2,99,1,\n",
        "1000001,2,1,2,\n",
        "1000003,\"4\",7,,\n",
        "x,1,2,,\n",
        "1000005,1,2,heavy,\n",
        "1000006,,2,1,\n",
    ];
    rows.iter().for_each(|row| knows.push_str(row));
    (0..3000).for_each(|number| knows.push_str(&format!("{},{},{},1.25,\n", 1_000_010 + number, 100 + number, 4)));
    let person = folder.file("person.csv", &person);
    let knows = folder.file("knows.csv", &knows);
    let pairs = folder.file("pairs.csv", "x,y\n1,2\n2,3\n1,1\n,4\n5,z\n");
    let seed = folder.file("seed.csv", "~id,~label\nseed,seed\n");
    let load = |directory: &str, more: &[&str]| {
        let rejects = format!("{directory}.jsonl");
        let mut arguments = vec!["--format", "json", "load", "--quiet", "--data-dir", directory];
        arguments.extend(["--reject-file", &rejects, "--mapping", &mapping, &knows, &person, &pairs]);
        arguments.extend(more);
        let output = ficus(&folder, &arguments);
        assert_eq!(code(&output), 3, "{}", stderr(&output));
        let mut report: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("one JSON object");
        ["seconds", "reject_file"].into_iter().for_each(|changing| drop(report[changing].take()));
        let text = std::fs::read_to_string(folder.path(&rejects)).expect("there are rejected records");
        let rejected: BTreeSet<String> = text.lines().map(str::to_owned).collect();
        (report, rejected)
    };
    succeed(&folder, &["load", "--quiet", "--data-dir", "added", &seed]);
    let whole = load("whole", &[]);
    assert_eq!(whole, load("added", &[]));
    assert_eq!(whole, load("narrow", &["--threads", "1"]));
    assert_eq!(whole.1.len(), 16, "{:#?}", whole.1);
    let export = |directory: &str| {
        let text = succeed(&folder, &["export", "--data-dir", directory, "--to", "compact", "-"]);
        succeed(&folder, &["admin", "check", "--data-dir", directory]);
        // Edges of the second kind have made ids, which depend on what else the graph has.
        let mut lines = comparable(&text, false);
        lines.retain(|line| !line.contains("seed"));
        lines
    };
    assert_eq!(export("whole"), export("added"));
    let order = |directory: &str| succeed(&folder, &["export", "--data-dir", directory, "--to", "compact", "-"]);
    assert_eq!(order("whole"), order("narrow"), "the result does not depend on the number of threads");
}

/// A file of vertices is read once if its foreign keys allow it, and else again; both give what single records give.
#[test]
fn foreign_keys_give_the_same_edges_however_often_their_file_is_read() {
    let folder = Folder::new();
    let mapping = r#"
[[vertices]]
files = ["post.csv"]
label = "post"
id = "id"
id_space = "message"
[[vertices.edges]]
column = "reply"
label = "replyOf"
other_space = "message"
[[vertices.edges]]
column = "place"
label = "in"
other_type = "long"
direction = "in"
[[vertices]]
files = ["place.csv"]
label = "place"
id = "id"
id_type = "long"
"#;
    let mapping = folder.file("mapping.toml", mapping);
    // More than one piece.
    let filler = "x".repeat(100);
    let rows: Vec<String> = (0..15_000)
        .map(|id: u64| format!("{id},{},{},{filler}\n", id / 2, if id.is_multiple_of(3) { "" } else { "7" }))
        .collect();
    let cases: &[(&str, &str, usize)] = &[
        ("", "", 0),
        ("15001,99999,7,dangling\n", "", 1),
        ("", "3,1,7,taken\n", 1),
        ("", "\"15002\",\"3\",7,quoted\n", 0),
        ("015,3,7,leading zero\n", "15003,015,,to it\n", 0),
        ("15004,x y,7,no number\n", "", 1),
        ("15005,123456789012345678901,7,long\n123456789012345678901,,,long\n", "", 0),
        ("15006,3,-7,\n", "", 1),
        ("15007,3\n", "", 1),
    ];
    for (number, (before, behind, rejected)) in cases.iter().enumerate() {
        let post = format!("id,reply,place,text\n{before}{}{behind}", rows.concat());
        let (post, place) = (folder.file("post.csv", &post), folder.file("place.csv", "id\n7\n-7000\n"));
        let seed = folder.file("seed.csv", "~id,~label\nseed,seed\n");
        let load = |directory: &str| {
            let rejects = format!("{directory}.jsonl");
            let arguments = [
                "load",
                "--quiet",
                "--data-dir",
                directory,
                "--reject-file",
                &rejects,
                "--mapping",
                &mapping,
                &post,
                &place,
            ];
            let output = ficus(&folder, &arguments);
            assert_eq!(code(&output), if *rejected > 0 { 3 } else { 0 }, "case {number}: {}", stderr(&output));
            let text = std::fs::read_to_string(folder.path(&rejects)).unwrap_or_default();
            assert_eq!(text.lines().count(), *rejected, "case {number}: {text}");
            let exported = succeed(&folder, &["export", "--data-dir", directory, "--to", "compact", "-"]);
            let mut lines = comparable(&exported, false);
            lines.retain(|line| !line.contains("seed"));
            (lines, text, exported.lines().filter(|line| line.starts_with("e\t")).count())
        };
        let (whole, added) = (format!("whole{number}"), format!("added{number}"));
        succeed(&folder, &["load", "--quiet", "--data-dir", &added, &seed]);
        assert!(load(&whole) == load(&added), "case {number}");
    }
}

/// Every type of value, several values and meta-properties, parallel edges and loops.
const EVERYTHING: &[&str] = &[
    "#ficus-graph 1",
    "v\tl1\tthing",
    "p\t0\tbool\tt1",
    "p\t1\tint\ti-5",
    "p\t2\tlong\tl-9223372036854775808",
    "p\t3\tdouble\td0.1",
    "p\t4\tfloat\tf1.5",
    "p\t5\ttext\tstabs \\t, \"quotes\"; lines \\n\\r <&> é",
    "p\t6\tempty\ts",
    "p\t7\tbyte\tj{\"@type\":\"gx:Byte\",\"@value\":-7}",
    "p\t8\tshort\tj{\"@type\":\"gx:Int16\",\"@value\":300}",
    "p\t9\tbig\tj{\"@type\":\"gx:BigInteger\",\"@value\":123456789012345678901234567890}",
    "p\t10\tdecimal\tj{\"@type\":\"gx:BigDecimal\",\"@value\":1.50}",
    "p\t11\tchar\tj{\"@type\":\"gx:Char\",\"@value\":\"x\"}",
    "p\t12\tuuid\tj{\"@type\":\"g:UUID\",\"@value\":\"41d2e28a-20a4-4ab0-b379-d810dede3786\"}",
    "p\t13\ttime\tj{\"@type\":\"gx:OffsetDateTime\",\"@value\":\"2024-02-29T12:00:00.5+01:00\"}",
    "p\t14\tspan\tj{\"@type\":\"gx:Duration\",\"@value\":\"PT1.5S\"}",
    "p\t15\tbytes\tj{\"@type\":\"gx:ByteBuffer\",\"@value\":\"AAEC/w==\"}",
    "p\t16\tlist\tj{\"@type\":\"g:List\",\"@value\":[{\"@type\":\"g:Int32\",\"@value\":1},\"b\"]}",
    "p\t17\tset\tj{\"@type\":\"g:Set\",\"@value\":[{\"@type\":\"g:Int32\",\"@value\":1}]}",
    "p\t18\tmap\tj{\"@type\":\"g:Map\",\"@value\":[\"a\",{\"@type\":\"g:Int64\",\"@value\":2}]}",
    "p\t19\tnan\tj{\"@type\":\"g:Double\",\"@value\":\"NaN\"}",
    "p\t20\tcity\tsx\tsince\ti1\tuntil\td2.5",
    "p\t21\tcity\tsy",
    "p\t22\tcity\tsx",
    "v\tsb\tthing",
    "v\tsno properties\tother",
    "e\tl7\tknows\tl1\tsb\tweight\td0.5\twhen\tj{\"@type\":\"gx:OffsetDateTime\",\"@value\":\"1970-01-01T00:00:00Z\"}",
    "e\tl8\tknows\tl1\tsb\tweight\td0.5",
    "e\tse9\tknows\tl1\tl1",
];

#[test]
fn everything_comes_back_or_is_named() {
    let folder = Folder::new();
    let file = folder.file("all.ficus", &(EVERYTHING.join("\n") + "\n"));
    succeed(&folder, &["load", "--quiet", "--data-dir", "one", &file]);
    let before = succeed(&folder, &["export", "--data-dir", "one", "--to", "compact", "-"]);
    assert_eq!(before.lines().count(), EVERYTHING.len(), "{before}");
    for (form, target) in [("compact", "all2.ficus"), ("graphson", "all.json")] {
        succeed(&folder, &["export", "--data-dir", "one", "--to", form, target]);
        let directory = format!("from-{form}");
        succeed(&folder, &["load", "--quiet", "--data-dir", &directory, target]);
        let after = succeed(&folder, &["export", "--data-dir", &directory, "--to", "compact", "-"]);
        assert_eq!(comparable(&before, true), comparable(&after, true), "{form}");
        assert_eq!(before.lines().count(), after.lines().count(), "{form}");
    }
    for (form, target) in
        [("graphml", "all.graphml"), ("neo4j", "neo4j"), ("neptune", "neptune"), ("parquet", "parquet")]
    {
        let output = ficus(&folder, &["export", "--data-dir", "one", "--to", form, target]);
        assert_eq!(code(&output), 1, "{form}");
        let named = ["'bytes'", "'set'", "'map'", "meta-properties of 'city'", "types of vertex ids"];
        for part in named {
            assert!(stderr(&output).contains(part), "{form} does not name {part}: {}", stderr(&output));
        }
        assert!(!Path::new(&folder.path(target)).exists(), "{form}");
    }
}

/// Of all types that Parquet has, several values, lists, keys that need care, and gaps in every column.
const TYPED: &[&str] = &[
    "#ficus-graph 1",
    "v\tl1\tthing",
    "p\t0\tbool\tt1",
    "p\t1\tint\ti-5",
    "p\t2\tlong\tl-9223372036854775808",
    "p\t3\tdouble\td0.1",
    "p\t4\tfloat\tf1.5",
    "p\t5\ttext\tstabs \\t, \"quotes\"; lines \\n\\r <&> é",
    "p\t6\tempty\ts",
    "p\t7\tbyte\tj{\"@type\":\"gx:Byte\",\"@value\":-7}",
    "p\t8\tshort\tj{\"@type\":\"gx:Int16\",\"@value\":300}",
    "p\t9\tuuid\tj{\"@type\":\"g:UUID\",\"@value\":\"41d2e28a-20a4-4ab0-b379-d810dede3786\"}",
    "p\t10\ta:b\tj{\"@type\":\"gx:OffsetDateTime\",\"@value\":\"1924-02-29T12:00:00.5Z\"}",
    "p\t11\tlist\tj{\"@type\":\"g:List\",\"@value\":[{\"@type\":\"g:Int32\",\"@value\":1},{\"@type\":\"g:Int32\",\"@value\":2}]}",
    "p\t12\tcity\tsx",
    "p\t13\tcity\tsy",
    "v\tl2\tthing",
    "p\t14\tcity\tsz",
    "v\tl3\tthing",
    "v\tl4\tOther thing",
    "p\t15\tcity\tl7",
    "e\tl7\tknows\tl1\tl4\tweight\td0.5\ttags\tj{\"@type\":\"g:List\",\"@value\":[\"a\",\"b\"]}",
    "e\tl8\tknows\tl1\tl4",
    "e\tl9\tlikes\tl1\tl1",
];

#[test]
fn parquet_keeps_types() {
    let folder = Folder::new();
    let file = folder.file("typed.ficus", &(TYPED.join("\n") + "\n"));
    succeed(&folder, &["load", "--quiet", "--data-dir", "one", &file]);
    let before = succeed(&folder, &["export", "--data-dir", "one", "--to", "compact", "-"]);
    assert_eq!(before.lines().count(), TYPED.len(), "{before}");
    succeed(&folder, &["export", "--data-dir", "one", "--to", "parquet", "parquet"]);
    let names = std::fs::read_dir(folder.path("parquet")).expect("it is there").count();
    assert_eq!(names, 4, "a file per label");
    succeed(&folder, &["load", "--quiet", "--data-dir", "two", "parquet"]);
    let after = succeed(&folder, &["export", "--data-dir", "two", "--to", "compact", "-"]);
    assert_eq!(comparable(&before, true), comparable(&after, true));
    // What has no place there is named, and left out or written as text if that is accepted.
    let lossy =
        "v\tl1\tthing\np\t0\t~id\ti1\np\t1\tn\ti1\nv\tl2\tthing\np\t2\tn\tj{\"@type\":\"g:List\",\"@value\":[]}\n";
    let file = folder.file("lossy.ficus", &format!("{}\n{lossy}", TYPED[0]));
    succeed(&folder, &["load", "--quiet", "--data-dir", "three", &file]);
    let refused = ficus(&folder, &["export", "--data-dir", "three", "--to", "parquet", "lost"]);
    for part in ["the key '~id'", "empty lists under the key 'n'"] {
        assert!(stderr(&refused).contains(part), "{}", stderr(&refused));
    }
    succeed(&folder, &["export", "--data-dir", "three", "--lossy", "--to", "parquet", "lost"]);
    succeed(&folder, &["load", "--quiet", "--data-dir", "four", "lost"]);
    let left = succeed(&folder, &["export", "--data-dir", "four", "--to", "compact", "-"]);
    assert_eq!(left.lines().count(), 4, "{left}");
}

#[test]
fn what_a_form_leaves_to_its_reader_is_said() {
    let folder = Folder::new();
    succeed(&folder, &["load", "--quiet", "--data-dir", "d", &demo("modern.ficus")]);
    let cases = [("neo4j", "ids of edges"), ("neptune", "--id-type int"), ("graphml", "--id-type int")];
    for (form, part) in cases {
        let output = ficus(&folder, &["export", "--data-dir", "d", "--to", form, form]);
        assert_eq!(code(&output), 0);
        assert!(stderr(&output).contains(part), "{form}: {}", stderr(&output));
    }
}

#[test]
fn analyses_of_a_data_directory() {
    let folder = Folder::new();
    let vertices = folder.file("v.csv", "~id,~label\na,v\nb,v\nc,v\nd,v\n");
    let edges = folder.file("e.csv", "~id,~from,~to,~label\n1,a,b,e\n2,b,c,e\n3,c,a,e\n");
    succeed(&folder, &["load", "--data-dir", "data", "--quiet", &vertices, &edges]);
    let rows = |arguments: &[&str]| -> Vec<String> {
        let output = succeed(&folder, &[&["analyze", "--data-dir", "data"], arguments].concat());
        let mut lines: Vec<String> = output.lines().map(str::to_owned).collect();
        lines[1..].sort();
        lines
    };
    assert_eq!(rows(&["triangles"]), ["vertex,triangles", "a,1", "b,1", "c,1", "d,0"]);
    let ids = folder.file("ids", "a\nd\n");
    assert_eq!(
        rows(&["khop", "hops=2", "--sources-file", &ids]),
        ["source,count,levels", "a,2,\"[0,1,1]\"", "d,0,\"[0,0]\""]
    );
    assert_eq!(rows(&["khop", r#"sources=["a"]"#, r#"targets=["c","d"]"#]), ["source,target,distance", "a,c,2"]);
    assert_eq!(rows(&["degree", "write=busy"]), ["written", "4"]);
    let output = succeed(&folder, &["--format", "json", "analyze", "--data-dir", "data", "kcore"]);
    assert!(output.lines().any(|line| line == r#"{"vertex":"d","core":0}"#), "{output}");
    let refused = ficus(&folder, &["analyze", "--data-dir", "data", "pagerank", "nonsense=1"]);
    assert_eq!(code(&refused), 1);
    assert!(stderr(&refused).contains("there is no parameter [nonsense]"), "{}", stderr(&refused));
    assert_eq!(code(&ficus(&folder, &["analyze", "--data-dir", "data", "pagerank", "nonsense"])), 2);
}
