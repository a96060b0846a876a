//! A disk without room, or a file that may not grow: what is refused and what is safe, what gives room, and what is said about it.

use std::sync::Arc;

use ficus_model::{Cardinality, Value};
use ficus_storage::simulated_disk::{Faults, SimulatedDisk};
use ficus_storage::{Disk, FullDisk, Graph, Store, StoreError, StoreOptions};

/// Bytes of a log file.
const SEGMENT_BYTES: u64 = 8_000;

fn open(disk: &SimulatedDisk) -> Arc<Store> {
    open_with_segments(disk, SEGMENT_BYTES)
}

fn open_with_segments(disk: &SimulatedDisk, segment_bytes: u64) -> Arc<Store> {
    let mut options = StoreOptions::default();
    options.tablet_bits = 1;
    options.log_segment_bytes = segment_bytes;
    Store::open(options, disk.environment()).unwrap()
}

/// One vertex with a text of so many bytes.
fn write(graph: &Arc<Graph>, text_bytes: usize) -> Result<(), StoreError> {
    let mut writing = graph.begin();
    let vertex = writing.add_vertex("v", None)?;
    let text = Value::String("x".repeat(text_bytes).into());
    writing.set_vertex_property(vertex, "text", text, Cardinality::Single, None)?;
    writing.commit().map(|_| ())
}

fn capacity(disk: &SimulatedDisk, more: u64) -> Faults {
    Faults { capacity_bytes: Some(disk.used_bytes() + more), ..Faults::default() }
}

fn has(disk: &SimulatedDisk, name: &str) -> bool {
    disk.list().unwrap().iter().any(|found| found == name)
}

fn vertices(disk: &SimulatedDisk) -> u64 {
    open(disk).graph("g").unwrap().vertex_count()
}

/// Log files are made ahead, and the next one has been.
fn with_a_spare_file() -> (SimulatedDisk, Arc<Store>, Arc<Graph>, u64) {
    let disk = SimulatedDisk::new();
    let store = open(&disk);
    let graph = store.create_graph("g").unwrap();
    let mut written = 0;
    while !(written > 5 && has(&disk, SPARE)) {
        write(&graph, 300).unwrap();
        written += 1;
    }
    (disk, store, graph, written)
}

const SPARE: &str = "log-spare.unfinished";

#[test]
fn what_was_made_ahead_gives_way_to_a_record_that_finds_no_room() {
    for seed in 0..20 {
        let (disk, store, graph, written) = with_a_spare_file();
        disk.set_faults(capacity(&disk, 0));
        // Longer than what is left of the file.
        write(&graph, 7_500).unwrap();
        assert!(!has(&disk, SPARE));
        // And no longer than is there.
        let refused = write(&graph, 20_000).unwrap_err();
        assert!(matches!(refused, StoreError::DiskFull { full: FullDisk::Space, .. }), "{refused}");
        assert_eq!(graph.vertex_count(), written + 1);
        let crashed = disk.crash(seed);
        assert_eq!(vertices(&crashed), written + 1, "seed {seed}");
        disk.set_faults(Faults::default());
        write(&graph, 20_000).unwrap();
        // The log goes on in another file, and then there is a spare one again.
        while !has(&disk, SPARE) {
            write(&graph, 300).unwrap();
        }
        let count = graph.vertex_count();
        assert_eq!(vertices(&disk.crash(seed)), count);
        drop(store);
        assert_eq!(vertices(&disk), count);
    }
}

#[test]
fn what_was_made_ahead_gives_way_to_the_last_checkpoint() {
    let (disk, store, graph, written) = with_a_spare_file();
    disk.set_faults(capacity(&disk, 0));
    drop(graph);
    store.close().unwrap();
    disk.set_faults(Faults::default());
    assert!(disk.list().unwrap().iter().any(|name| name.starts_with("checkpoint-")));
    assert_eq!(vertices(&disk), written);
}

#[test]
fn what_was_made_ahead_gives_way_to_a_checkpoint_which_gives_room() {
    let (disk, store, graph, written) = with_a_spare_file();
    disk.set_faults(capacity(&disk, 0));
    store.checkpoint().unwrap();
    assert!(store.checkpoint_failure().is_none());
    write(&graph, 300).unwrap();
    assert_eq!(vertices(&disk.crash(1)), written + 1);
}

#[test]
fn a_checkpoint_that_finds_no_room_loses_nothing_and_says_so() {
    let disk = SimulatedDisk::new();
    // Of a log that grows.
    let store = open_with_segments(&disk, 1 << 20);
    let graph = store.create_graph("g").unwrap();
    (0..30).for_each(|_| write(&graph, 300).unwrap());
    let full = capacity(&disk, 100);
    let too_many = Faults { refuses_files: true, ..Faults::default() };
    for (faults, cause) in [(full, "the disk is full"), (too_many, "as many files")] {
        disk.set_faults(faults);
        let says = |error: StoreError| {
            let text = error.to_string();
            assert!(matches!(error, StoreError::NoCheckpoint { .. }), "{error:?}");
            assert!(text.contains(cause) && text.contains("nothing is lost"), "{text}");
            assert!(!text.contains("nothing was committed") && !text.contains("nothing of it was committed"), "{text}");
        };
        says(store.checkpoint().unwrap_err());
        says(store.checkpoint_failure().unwrap());
        says(store.consolidate().unwrap_err());
    }
    disk.set_faults(full);
    let error = store.close().unwrap_err();
    assert!(matches!(error, StoreError::NoCheckpoint { .. }), "{error:?}");
    disk.set_faults(Faults::default());
    for seed in 0..20 {
        assert_eq!(vertices(&disk.crash(seed)), 30, "seed {seed}");
    }
    assert_eq!(vertices(&disk), 30);
}

#[test]
fn a_log_goes_on_in_another_file_when_one_may_not_grow() {
    for seed in 0..10 {
        let disk = SimulatedDisk::new();
        let store = open_with_segments(&disk, 1 << 20);
        let graph = store.create_graph("g").unwrap();
        disk.set_faults(Faults { file_bytes_limit: Some(2_000), ..Faults::default() });
        (0..30).for_each(|_| write(&graph, 300).unwrap());
        for _ in 0..3 {
            let refused = write(&graph, 3_000).unwrap_err();
            assert!(matches!(refused, StoreError::DiskFull { full: FullDisk::FileSize, .. }), "{refused}");
            assert!(refused.to_string().contains("ulimit -f"), "{refused}");
        }
        let logs = disk.list().unwrap().into_iter().filter(|name| name.starts_with("log-")).count();
        assert!((6..12).contains(&logs), "{logs} files");
        write(&graph, 300).unwrap();
        assert_eq!(vertices(&disk.crash(seed)), 31, "seed {seed}");
    }
}

/// A file that cannot be cut back may still have what was refused.
#[test]
fn after_a_write_that_cannot_be_taken_back_nothing_is_written() {
    let disk = SimulatedDisk::new();
    let store = open_with_segments(&disk, 1 << 20);
    let graph = store.create_graph("g").unwrap();
    write(&graph, 300).unwrap();
    let faults = capacity(&disk, 100);
    disk.set_faults(Faults { cuts_need_room: true, ..faults });
    let error = write(&graph, 300).unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error}");
    disk.set_faults(Faults::default());
    assert!(matches!(write(&graph, 300), Err(StoreError::Poisoned { .. })));
    assert_eq!(vertices(&disk.crash(1)), 1);
}
