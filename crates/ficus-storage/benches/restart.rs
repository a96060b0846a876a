//! From opening a store to the first answer of an index, and what the process has in memory then: for graphs of more and more vertices, of which
//! one integer and one text are indexed. Good: less than a second, whatever the size.
//!
//! `cargo bench -p ficus-storage --bench restart -- 1000000 4000000`

#![allow(clippy::print_stdout)] // figures

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use ficus_model::{Cardinality, Value, VertexId};
use ficus_storage::{
    BulkProperty, ElementKind, Environment, Graph, IndexCursor, IndexDefinition, IndexKind, IndexQuery, IndexTest,
    Store, StoreOptions,
};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    match arguments.first().map(String::as_str) {
        // A process of its own: what a build leaves in memory is none of a start.
        Some("open") => open(Path::new(&arguments[1]), arguments[2].parse().expect("a number of vertices")),
        Some(_) => arguments.iter().for_each(|count| measure(count.parse().expect("a number of vertices"))),
        None => [250_000, 1_000_000].into_iter().for_each(measure),
    }
}

fn measure(count: i64) {
    let folder = tempfile::tempdir().expect("a folder");
    let (built, settled) = build(folder.path(), count);
    println!("{count} vertices: built in {built:.2} s, indexes in {settled:.2} s more");
    let program = std::env::current_exe().expect("this program");
    let status = Command::new(program).arg("open").arg(folder.path()).arg(count.to_string()).status();
    assert!(status.expect("the process starts").success());
}

fn number(vertex: i64, count: i64) -> i64 {
    // Not in the order of the vertices.
    vertex.wrapping_mul(2_654_435_761).rem_euclid(count)
}

fn name(vertex: i64) -> String {
    format!("name-{:x}", (vertex as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 24)
}

fn build(folder: &Path, count: i64) -> (f64, f64) {
    let started = Instant::now();
    let store = Store::open(StoreOptions::default(), environment(folder)).expect("an empty folder");
    let graph = store.create_graph("g").expect("a new name");
    let mut bulk = graph.bulk();
    for vertex in 0..count {
        let properties = vec![
            BulkProperty::single("number", Value::Long(number(vertex, count))),
            BulkProperty::single("name", Value::String(name(vertex).into())),
        ];
        bulk.add_vertex("v", None, properties).expect("a free id");
    }
    bulk.finish().expect("a disk with room");
    let built = started.elapsed().as_secs_f64();
    let started = Instant::now();
    for (key, kind) in [("number", IndexKind::Ordered), ("name", IndexKind::Ordered), ("name", IndexKind::Hash)] {
        graph.define_index(&IndexDefinition::new(ElementKind::Vertex, Some("v"), &[key], kind)).expect("a new index");
    }
    graph.finish_tasks().expect("no task fails");
    store.consolidate().expect("a disk with room");
    store.close().expect("a disk with room");
    (built, started.elapsed().as_secs_f64())
}

fn open(folder: &Path, count: i64) {
    let started = Instant::now();
    let store = Store::open(StoreOptions::default(), environment(folder)).expect("a sound store");
    let graph = store.graph("g").expect("the graph");
    let snapshot = graph.snapshot();
    let opened = started.elapsed().as_secs_f64();
    let ask = |index: usize, value: Value| {
        let index = snapshot.indexes()[index].number;
        let (mut cursor, mut found) = (IndexCursor::default(), Vec::new());
        let query = IndexQuery { index, equal: Vec::new(), test: IndexTest::Equal(value), descending: false };
        assert!(!snapshot.scan_index(&query, &mut cursor, 1000, &mut found));
        found.len()
    };
    assert!(ask(1, Value::String(name(count / 2).into())) > 0);
    let answered = started.elapsed().as_secs_f64();
    let resident = resident();
    println!("  opened in {opened:.3} s, first answer after {answered:.3} s, {resident}");
    let random = |step: i64| step.wrapping_mul(7_919).rem_euclid(count);
    let rounds = 200_000;
    for (index, what) in ["ordered integer", "ordered text", "hashed text"].into_iter().enumerate() {
        // Once for what is not in memory yet.
        for is_counted in [false, true] {
            let started = Instant::now();
            for step in 0..rounds {
                let vertex = random(step);
                let value = match index {
                    0 => Value::Long(number(vertex, count)),
                    _ => Value::String(name(vertex).into()),
                };
                assert!(ask(index, value) > 0);
            }
            if is_counted {
                println!(
                    "  {what}: {:.0} ns a look-up",
                    started.elapsed().as_secs_f64() * 1e9 / f64::from(rounds as i32)
                );
            }
        }
    }
    let (mut cursor, mut found, mut seen) = (IndexCursor::default(), Vec::new(), 0);
    let started = Instant::now();
    let query =
        IndexQuery { index: snapshot.indexes()[0].number, equal: Vec::new(), test: IndexTest::Any, descending: false };
    let mut more = true;
    while more {
        found.clear();
        more = snapshot.scan_index(&query, &mut cursor, 1024, &mut found);
        seen += found.len();
    }
    let rate = seen as f64 / started.elapsed().as_secs_f64() / 1e6;
    println!("  {seen} entries in order at {rate:.1} M/s");
    println!("  after all that {}", self::resident());
    drop(snapshot);
    change(&graph, count);
    store.close().expect("a disk with room");
    let started = Instant::now();
    let store = Store::open(StoreOptions::default(), environment(folder)).expect("a sound store");
    assert!(store.graph("g").is_some());
    println!("  opened with those changes in the overlay in {:.3} s", started.elapsed().as_secs_f64());
}

/// What a commit costs that changes both indexed properties of vertices of the base, or adds vertices.
fn change(graph: &Arc<Graph>, count: i64) {
    const BATCHES: i64 = 20;
    const BATCH: i64 = 1000;
    for adds in [false, true] {
        let started = Instant::now();
        for step in 0..BATCHES {
            let mut writing = graph.begin();
            for place in step * BATCH..(step + 1) * BATCH {
                let vertex = match adds {
                    true => writing.add_vertex("v", None).expect("a free id"),
                    false => VertexId(place.wrapping_mul(7_919).rem_euclid(count) as u64),
                };
                let mut set = |key: &str, value| {
                    let outcome = writing.set_vertex_property(vertex, key, value, Cardinality::Single, None);
                    outcome.expect("the vertex is there");
                };
                set("number", Value::Long(number(place + 1, count)));
                set("name", Value::String(name(place - 1).into()));
            }
            writing.commit().expect("nobody else writes");
        }
        let microseconds = started.elapsed().as_secs_f64() * 1e6 / (BATCHES * BATCH) as f64;
        println!("  {} vertices: {microseconds:.1} us each", if adds { "added" } else { "changed" });
    }
}

fn environment(folder: &Path) -> Environment {
    Environment::on_directory(folder).expect("a folder")
}

fn resident() -> String {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let megabytes = |field: &str| {
        let line = status.lines().find(|line| line.starts_with(field)).expect("a field of Linux");
        let kilobytes: u64 = line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number");
        kilobytes / 1024
    };
    format!("{} MB of its own and {} MB of files in memory", megabytes("RssAnon:"), megabytes("RssFile:"))
}
