//! Files of older versions open to the same graphs. Each folder of `tests/fixtures` has the files of one store and
//! `expected.txt`, what must be read from them; a folder is never changed once its format was released.
//!
//! `v1` was written by the first server: log records of format 1, checkpoint of version 1, no segments. To add the format of today under a new
//! name: `FICUS_WRITE_FIXTURE=v4 cargo test -p ficus-storage --test stored_formats`.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ficus_model::{Cardinality, Shared, Value};
use ficus_storage::simulated_disk::SimulatedDisk;
use ficus_storage::{
    Disk, ElementKind, IndexDefinition, IndexKind, ScanCursor, Snapshot, Store, StoreOptions, Transaction,
};

/// Names the folder that the files of today's format are written to, if it is set.
const WRITE_FIXTURE: &str = "FICUS_WRITE_FIXTURE";

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn open(disk: &SimulatedDisk) -> Arc<Store> {
    Store::open(StoreOptions::default(), disk.environment()).unwrap()
}

/// Everything a store holds, as text.
fn dump(store: &Store) -> String {
    let mut text = String::new();
    for name in store.graph_names() {
        let graph = store.graph(&name).unwrap();
        let snapshot = graph.snapshot();
        snapshot.check_invariants().unwrap();
        writeln!(text, "graph {name}").unwrap();
        for index in graph.indexes() {
            // As the expected text of the first version has it.
            let (label, key) = (index.definition.label, index.definition.keys.join("."));
            writeln!(text, "  index IndexDefinition {{ label: {label:?}, key: {key:?} }}").unwrap();
        }
        dump_elements(&snapshot, &mut text);
    }
    text
}

fn dump_elements(snapshot: &Snapshot, text: &mut String) {
    let mut vertices = Vec::new();
    snapshot.scan_vertices(&mut ScanCursor::default(), usize::MAX, &mut vertices);
    for vertex in vertices {
        let label = snapshot.label_name(snapshot.vertex_label(vertex).unwrap());
        writeln!(text, "  vertex {vertex:?} {:?} {label}", snapshot.vertex_id(vertex).unwrap()).unwrap();
        let mut properties = Vec::new();
        snapshot.vertex_properties(vertex, None, &mut properties);
        for property in properties {
            let key = snapshot.key_name(property.key);
            writeln!(text, "    {key} = {:?}, property {}", property.value, property.id).unwrap();
            let mut metas = Vec::new();
            snapshot.meta_properties(vertex, property.id, &mut metas);
            for (key, value) in metas {
                writeln!(text, "      {} = {value:?}", snapshot.key_name(key)).unwrap();
            }
        }
    }
    let mut edges = Vec::new();
    snapshot.scan_edges(&mut ScanCursor::default(), usize::MAX, &mut edges);
    for edge in edges {
        let (record, id) = (snapshot.edge(edge).unwrap(), snapshot.edge_id(edge).unwrap());
        let label = snapshot.label_name(record.label);
        writeln!(text, "  edge {edge:?} {id:?} {label} {:?} to {:?}", record.out, record.in_).unwrap();
        let mut properties = Vec::new();
        snapshot.edge_properties(edge, &mut properties);
        for (key, value) in properties {
            writeln!(text, "    {} = {value:?}", snapshot.key_name(key)).unwrap();
        }
    }
}

/// The files of a fixture on a disk, without those that `leave_out` names.
fn disk_of(folder: &Path, leave_out: &str) -> SimulatedDisk {
    let disk = SimulatedDisk::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if name.ends_with(".ficus") && !name.starts_with(leave_out) {
            disk.put(&name, std::fs::read(entry.path()).unwrap());
        }
    }
    disk
}

#[test]
fn older_files_open_to_the_same_graphs() {
    let mut folders = 0;
    for entry in std::fs::read_dir(fixtures()).unwrap() {
        let folder = entry.unwrap().path();
        let expected = std::fs::read_to_string(folder.join("expected.txt")).unwrap();
        let disk = disk_of(&folder, "none");
        let store = open(&disk);
        assert_eq!(dump(&store), expected, "{}", folder.display());
        // And can be written to, in today's format, with the same outcome.
        store.consolidate().unwrap();
        store.close().unwrap();
        assert_eq!(dump(&open(&disk)), expected, "{}, written again", folder.display());
        folders += 1;
    }
    assert!(folders > 0);
}

#[test]
fn the_log_of_the_first_version_alone_gives_the_same_graphs() {
    let folder = fixtures().join("v1");
    let expected = std::fs::read_to_string(folder.join("expected.txt")).unwrap();
    assert_eq!(dump(&open(&disk_of(&folder, "checkpoint"))), expected);
}

/// Values of every kind that can be stored.
fn values() -> Vec<Value> {
    use std::str::FromStr;
    vec![
        Value::Bool(true),
        Value::Byte(-1),
        Value::Short(-300),
        Value::Int(70_000),
        Value::Long(1 << 40),
        Value::Float(0.5),
        Value::Double(-1.25),
        Value::BigInteger(Arc::new(num_bigint::BigInt::from(1u128 << 100))),
        Value::BigDecimal(Arc::new(bigdecimal::BigDecimal::from_str("12345678901234567890.5").unwrap())),
        Value::Char('ß'),
        Value::String("text".into()),
        Value::Uuid(uuid::Uuid::from_u128(7)),
        Value::Binary(Arc::from(&b"bytes"[..])),
        Value::List(Shared::new(vec![Value::Int(1), Value::String("two".into())])),
    ]
}

/// Some of everything: a base, an overlay in the checkpoint, and a tail of the log.
fn fill(store: &Store) {
    let graph = store.create_graph("g").unwrap();
    store.create_graph("empty").unwrap();
    graph.create_index(Some("person"), "k1").unwrap();
    for (elements, keys) in
        [(ElementKind::Vertex, &["k2"][..]), (ElementKind::Vertex, &["k3", "k0"]), (ElementKind::Edge, &["weight"])]
    {
        graph.define_index(&IndexDefinition::new(elements, None, keys, IndexKind::Ordered)).unwrap();
        graph.finish_tasks().unwrap();
    }
    let some = |writing: &mut Transaction, first: i64| {
        let label = ["person", "thing"];
        let vertices: Vec<_> = (0..6)
            .map(|number| {
                let id = if number % 3 == 0 {
                    Value::String(format!("id {}", first + number).into())
                } else {
                    Value::Long(first + number)
                };
                writing.add_vertex(label[number as usize % 2], Some(id)).unwrap()
            })
            .collect();
        for (position, value) in values().into_iter().enumerate() {
            let key = format!("k{}", position % 5);
            let vertex = vertices[position % vertices.len()];
            let property = writing.set_vertex_property(vertex, &key, value.clone(), Cardinality::List, None).unwrap();
            writing.set_meta_property(vertex, property, "meta", Value::Int(position as i32)).unwrap();
            let target = vertices[(position * 3 + 1) % vertices.len()];
            let edge = writing.add_edge(["knows", "made"][position % 2], vertex, target, None).unwrap();
            writing.set_edge_property(edge, "weight", value).unwrap();
        }
        vertices
    };
    let mut writing = graph.begin();
    let first = some(&mut writing, 100);
    writing.commit().unwrap();
    store.consolidate().unwrap();
    let mut writing = graph.begin();
    some(&mut writing, 200);
    writing.remove_vertex(first[1]).unwrap();
    writing.commit().unwrap();
    store.checkpoint().unwrap();
    let mut writing = graph.begin();
    let third = some(&mut writing, 300);
    writing.set_vertex_property(first[2], "k0", Value::Int(5), Cardinality::Single, None).unwrap();
    writing.remove_vertex(third[0]).unwrap();
    writing.commit().unwrap();
}

/// What the files of today say is what was written; they become a fixture if that is asked for.
#[test]
fn files_of_today_open_to_the_same_graphs() {
    let disk = SimulatedDisk::new();
    let store = open(&disk);
    fill(&store);
    let expected = dump(&store);
    let files = disk.crash(0);
    drop(store);
    let names: Vec<String> = files.list().unwrap().into_iter().filter(|name| name.ends_with(".ficus")).collect();
    let contents: Vec<Vec<u8>> = names.iter().map(|name| files.content(name).unwrap()).collect();
    assert_eq!(dump(&open(&files)), expected);
    let Ok(name) = std::env::var(WRITE_FIXTURE) else { return };
    let folder = fixtures().join(name);
    std::fs::create_dir(&folder).expect("a released fixture is never written again: give the new format a new name");
    std::fs::write(folder.join("expected.txt"), expected).unwrap();
    for (name, content) in names.iter().zip(contents) {
        std::fs::write(folder.join(name), content).unwrap();
    }
}
