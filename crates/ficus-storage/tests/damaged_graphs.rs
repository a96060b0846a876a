//! Damage to the files of one graph: nobody believes that graph any more, the others go on, and a start loses nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ficus_model::{Cardinality, Value};
use ficus_storage::simulated_disk::SimulatedDisk;
use ficus_storage::{Disk, Environment, Graph, Store, StoreError, StoreOptions, SystemThreads};

fn try_open(disk: &SimulatedDisk) -> Result<Arc<Store>, StoreError> {
    let environment = Environment {
        disk: Some(Arc::new(disk.clone())),
        spawn: Some(Arc::new(SystemThreads)),
        ..Environment::in_memory()
    };
    let mut options = StoreOptions::default();
    options.tablet_bits = 0;
    // What is before a checkpoint goes.
    options.log_segment_bytes = 512;
    Store::open(options, environment)
}

fn open(disk: &SimulatedDisk) -> Arc<Store> {
    try_open(disk).unwrap()
}

fn add(graph: &Arc<Graph>, numbers: std::ops::Range<i64>) -> Result<(), StoreError> {
    let mut writing = graph.begin();
    for number in numbers {
        let vertex = writing.add_vertex("person", Some(Value::String(format!("id of {number}").into())))?;
        let text = Value::String(format!("a text of its own, number {number}").into());
        writing.set_vertex_property(vertex, "name", text, Cardinality::Single, None)?;
    }
    writing.commit().map(drop)
}

/// Two graphs with bases, and records behind the checkpoint for both.
fn two_graphs() -> SimulatedDisk {
    let disk = SimulatedDisk::new();
    let store = open(&disk);
    for name in ["a", "b"] {
        add(&store.create_graph(name).unwrap(), 0..200).unwrap();
    }
    store.consolidate().unwrap();
    for name in ["a", "b"] {
        add(&store.graph(name).unwrap(), 200..210).unwrap();
    }
    // As after kill -9.
    disk.crash(1)
}

fn segment(disk: &SimulatedDisk, graph: u32) -> String {
    let beginning = format!("segment-{graph:08x}-");
    disk.list().unwrap().into_iter().find(|name| name.starts_with(&beginning)).unwrap()
}

fn is_damaged(store: &Store) -> bool {
    let end = Instant::now() + Duration::from_secs(10);
    while store.damaged_graphs().is_empty() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
    matches!(&store.damaged_graphs()[..], [(name, StoreError::Corrupt { .. })] if name == "a")
}

fn count(store: &Store, name: &str) -> u64 {
    store.graph(name).unwrap().vertex_count()
}

/// What holds of every store whose graph `a` is damaged.
fn a_is_refused_and_b_goes_on(store: &Store) {
    assert!(is_damaged(store), "{:?}", store.damaged_graphs());
    let (a, b) = (store.graph("a").unwrap(), store.graph("b").unwrap());
    assert!(matches!(a.begin_reading().check_sound(), Err(StoreError::Corrupt { .. })));
    assert!(matches!(a.begin().examine(), Err(StoreError::Corrupt { .. })));
    let refused = catch_unwind(AssertUnwindSafe(|| add(&a, 1000..1001)));
    assert!(!matches!(refused, Ok(Ok(()))), "a commit to it is refused");
    store.writable().unwrap();
    let before = b.vertex_count();
    add(&b, 1000 + before as i64..1001 + before as i64).unwrap();
    assert_eq!(b.vertex_count(), before + 1);
    assert!(b.damage().is_none());
}

fn flip(disk: &SimulatedDisk, name: &str, place: usize) {
    let mut content = disk.content(name).unwrap();
    content[place] ^= 0xff;
    disk.put(name, content);
}

#[test]
fn what_a_start_finds_by_itself_is_known_and_concerns_one_graph() {
    let disk = two_graphs();
    let name = segment(&disk, 0);
    let content = disk.content(&name).unwrap();
    let place = content.windows(10).position(|part| part == b"number 150").unwrap();
    // A letter for another: nothing contradicts itself, only the checksum tells.
    flip(&disk, &name, place);
    let mut changed = disk.content(&name).unwrap();
    changed[place] = b'N';
    disk.put(&name, changed);
    let store = open(&disk);
    a_is_refused_and_b_goes_on(&store);
    store.checkpoint().unwrap();
    store.close().unwrap();
    drop(store);
    let store = open(&disk);
    a_is_refused_and_b_goes_on(&store);
    assert_eq!(count(&store, "b"), 212);
    // An empty graph has no damaged files.
    store.graph("a").unwrap().clear().unwrap();
    assert!(store.damaged_graphs().is_empty());
    add(&store.graph("a").unwrap(), 0..5).unwrap();
    store.close().unwrap();
    assert_eq!(count(&open(&disk), "a"), 5);
}

#[test]
fn a_start_leaves_a_graph_behind_whose_files_cannot_be_opened() {
    let sound = two_graphs();
    let ids = sound.list().unwrap().into_iter().find(|name| name.starts_with("ids-00000000-")).unwrap();
    for (name, harm) in [(segment(&sound, 0), 0), (segment(&sound, 0), 1), (ids, 2), (segment(&sound, 0), 3)] {
        let disk = sound.crash(1);
        let whole = disk.content(&name).unwrap();
        match harm {
            0 => flip(&disk, &name, 20),
            1 | 2 => disk.put(&name, whole[..whole.len() / 2].to_vec()),
            _ => disk.remove(&name).unwrap(),
        }
        for round in 0..2 {
            let store = open(&disk);
            a_is_refused_and_b_goes_on(&store);
            assert_eq!(count(&store, "b"), 211 + round);
            assert!(store.checkpoint().is_err(), "it would forget what the log has of the graph");
            store.close().unwrap();
        }
        // The file comes back from a copy: all is there, also what was committed behind the checkpoint.
        let repaired = disk.crash(2);
        repaired.put(&name, whole.to_vec());
        let store = open(&repaired);
        assert!(store.damaged_graphs().is_empty() && count(&store, "a") == 210 && count(&store, "b") == 212);
        store.graph("a").unwrap().snapshot().check_invariants().unwrap();
        store.close().unwrap();
        // Or it is given up.
        let store = open(&disk);
        store.drop_graph("a").unwrap();
        store.checkpoint().unwrap();
        store.close().unwrap();
        drop(store);
        let store = open(&disk);
        assert_eq!(store.graph_names(), ["b"]);
        assert_eq!(count(&store, "b"), 212);
    }
}

#[test]
fn records_that_meet_damage_lose_their_graph_and_no_other() {
    let disk = SimulatedDisk::new();
    let store = open(&disk);
    for name in ["a", "b"] {
        let graph = store.create_graph(name).unwrap();
        add(&graph, 0..200).unwrap();
        graph.create_index(None, "name").unwrap();
    }
    store.consolidate().unwrap();
    let a = store.graph("a").unwrap();
    let mut writing = a.begin();
    let vertex = writing.find_vertex(&Value::String("id of 150".into())).unwrap();
    // Whoever applies it reads the value that was there, to take it out of the index.
    writing.set_vertex_property(vertex, "name", Value::Int(7), Cardinality::Single, None).unwrap();
    writing.commit().unwrap();
    add(&store.graph("b").unwrap(), 200..210).unwrap();
    let disk = disk.crash(1);
    let name = segment(&disk, 0);
    let content = disk.content(&name).unwrap();
    flip(&disk, &name, content.windows(10).position(|part| part == b"number 150").unwrap());
    let store = open(&disk);
    a_is_refused_and_b_goes_on(&store);
    assert_eq!(count(&store, "b"), 211);
}
