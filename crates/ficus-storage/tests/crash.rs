//! Crashes from seeds on a simulated disk: what was acknowledged is there, nothing is there by half, and the store always
//! starts. A failure prints the seed; `FICUS_CRASH_SEED=<seed>` repeats it alone.

use std::sync::{Arc, Mutex};

use ficus_model::{Cardinality, Value};
use ficus_storage::simulated_disk::{Faults, Seeded, SimulatedDisk};
use ficus_storage::{Environment, ErrorKind, Graph, Random, ScanCursor, Store, StoreError, StoreOptions, SystemClock};

struct FixedRandom(Mutex<Seeded>);

impl Random for FixedRandom {
    fn number(&self) -> u64 {
        self.0.lock().unwrap().number()
    }
}

fn open(disk: &SimulatedDisk, seed: u64) -> Result<Arc<Store>, StoreError> {
    open_with_segments(disk, seed, 500)
}

fn open_with_segments(disk: &SimulatedDisk, seed: u64, log_segment_bytes: u64) -> Result<Arc<Store>, StoreError> {
    let environment = Environment {
        clock: Arc::new(SystemClock),
        disk: Some(Arc::new(disk.clone())),
        random: Arc::new(FixedRandom(Mutex::new(Seeded::new(seed)))),
        spawn: None,
    };
    let mut options = StoreOptions::default();
    options.tablet_bits = 1;
    options.log_segment_bytes = log_segment_bytes;
    Store::open(options, environment)
}

/// One transaction: three vertices with the number of the transaction, in a ring. Never there by half.
fn write_ring(graph: &Arc<Graph>, number: u64) -> Result<(), StoreError> {
    let mut writing = graph.begin();
    let vertices = [(); 3].map(|()| writing.add_vertex("ring", None).unwrap());
    for (position, vertex) in vertices.into_iter().enumerate() {
        writing.set_vertex_property(vertex, "number", Value::Long(number as i64), Cardinality::Single, None).unwrap();
        writing.add_edge("next", vertex, vertices[(position + 1) % 3], None).unwrap();
    }
    writing.commit().map(|_| ())
}

/// The numbers of all rings, after checking that each is whole.
fn rings(graph: &Arc<Graph>) -> Vec<u64> {
    let snapshot = graph.snapshot();
    snapshot.check_invariants().unwrap();
    assert_eq!(snapshot.edge_count(), snapshot.vertex_count());
    let mut vertices = Vec::new();
    snapshot.scan_vertices(&mut ScanCursor::default(), usize::MAX, &mut vertices);
    let mut counts = std::collections::BTreeMap::new();
    for vertex in vertices {
        match snapshot.vertex_value(vertex, snapshot.key_id("number").unwrap()) {
            Some(Value::Long(number)) => *counts.entry(number as u64).or_insert(0) += 1,
            other => panic!("a vertex with number {other:?}"),
        }
    }
    assert!(counts.values().all(|count| *count == 3), "half a ring: {counts:?}");
    counts.into_keys().collect()
}

/// Works until the disk fails, crashes, starts again; several times over.
fn survive(seed: u64) {
    let mut random = Seeded::new(seed);
    let mut disk = SimulatedDisk::new();
    // Acknowledged; and unknown, since the disk failed while they were being committed.
    let (mut certain, mut possible) = (Vec::new(), Vec::new());
    let mut number = 0;
    for round in 0..4 {
        let faults = Faults { crash_at_operation: Some(1 + random.below(120)), ..Faults::default() };
        disk.set_faults(faults);
        if let Ok(store) = open(&disk, random.number()) {
            let graph = store.graph("g").map_or_else(|| store.create_graph("g"), Ok);
            if let Ok(graph) = graph {
                let found = rings(&graph);
                assert!(certain.iter().all(|ring| found.contains(ring)), "lost: {certain:?} but {found:?}");
                for _ in 0..40 {
                    number += 1;
                    match random.below(12) {
                        0 => drop(store.checkpoint()),
                        1 => {
                            let mut bulk = graph.bulk();
                            let a = bulk.add_vertex("lone", None, Vec::new());
                            drop(a);
                            // Never flushed: an unfinished bulk load leaves nothing that was not sent.
                        }
                        _ => match write_ring(&graph, number) {
                            Ok(()) => certain.push(number),
                            Err(error) => {
                                assert_eq!(error.kind(), ErrorKind::World, "{error}");
                                possible.push(number);
                            }
                        },
                    }
                }
                let visible = rings(&graph);
                assert!(certain.iter().all(|ring| visible.contains(ring)));
                if random.below(3) == 0 {
                    drop(store.close());
                }
            }
        }
        disk = disk.crash(random.number());
        let again = open(&disk, random.number()).unwrap_or_else(|error| panic!("round {round}: no start: {error}"));
        if let Some(graph) = again.graph("g") {
            let found = rings(&graph);
            assert!(certain.iter().all(|ring| found.contains(ring)), "lost: {certain:?} but {found:?}");
            let known = |ring: &u64| certain.contains(ring) || possible.contains(ring);
            assert!(found.iter().all(known), "from nowhere: {found:?}");
            // What turned out to be there stays there.
            certain = found;
            possible.clear();
        } else {
            assert!(certain.is_empty());
        }
        drop(again);
    }
}

#[test]
fn what_was_acknowledged_survives_every_crash() {
    let seeds = match std::env::var("FICUS_CRASH_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (0..400).collect(),
    };
    for seed in seeds {
        if std::panic::catch_unwind(|| survive(seed)).is_err() {
            panic!("seed {seed}; repeat with FICUS_CRASH_SEED={seed}");
        }
    }
}

#[test]
fn a_full_disk_refuses_the_write_and_lets_others_pass_when_there_is_room_again() {
    let disk = SimulatedDisk::new();
    let store = open(&disk, 1).unwrap();
    let graph = store.create_graph("g").unwrap();
    write_ring(&graph, 1).unwrap();
    disk.set_faults(Faults { capacity_bytes: Some(700), ..Faults::default() });
    let refused = (100..).find_map(|number| write_ring(&graph, number).err()).unwrap();
    assert!(matches!(refused, StoreError::DiskFull { .. }), "{refused}");
    let before = graph.vertex_count();
    assert!(write_ring(&graph, 3).is_err());
    assert_eq!(graph.vertex_count(), before);
    assert!(matches!(store.writable(), Err(StoreError::DiskFull { .. })));
    // It says that there is room as soon as there is, before anybody has tried.
    disk.set_faults(Faults::default());
    let files = disk.used_bytes();
    store.writable().unwrap();
    assert_eq!(disk.used_bytes(), files, "what looks for room leaves nothing behind");
    write_ring(&graph, 4).unwrap();
    let again = open(&disk.crash(7), 2).unwrap();
    let found = rings(&again.graph("g").unwrap());
    assert!(found.contains(&1) && found.contains(&4) && !found.contains(&3));
}

#[test]
fn a_full_disk_is_told_before_anything_was_refused_and_where_only_writing_tells() {
    let disk = SimulatedDisk::new();
    // Of a log that is short and grows.
    let store = open_with_segments(&disk, 1, 1 << 20).unwrap();
    let graph = store.create_graph("g").unwrap();
    disk.set_faults(Faults { capacity_bytes: Some(disk.used_bytes() + 100), ..Faults::default() });
    assert!(matches!(store.writable(), Err(StoreError::DiskFull { .. })));
    disk.set_faults(Faults { hides_room: true, ..Faults::default() });
    store.writable().unwrap();
    disk.set_faults(Faults { capacity_bytes: Some(disk.used_bytes()), hides_room: true, ..Faults::default() });
    store.writable().expect("nobody knows yet");
    write_ring(&graph, 1).unwrap_err();
    assert!(matches!(store.writable(), Err(StoreError::DiskFull { .. })));
    disk.set_faults(Faults { capacity_bytes: Some(disk.used_bytes() + 100), hides_room: true, ..Faults::default() });
    assert!(matches!(store.writable(), Err(StoreError::DiskFull { .. })));
    disk.set_faults(Faults::default());
    // A commit that works tells as well.
    write_ring(&graph, 2).unwrap();
    disk.set_faults(Faults { hides_room: true, ..Faults::default() });
    store.writable().unwrap();
    assert_eq!(rings(&graph), [2]);
}

/// Connections may take all that can be open, and the log has to go on in another file meanwhile.
#[test]
fn a_file_that_cannot_be_opened_refuses_the_write_and_lets_others_pass_when_it_can() {
    // A log that grows, and one that goes on in files that were made ahead.
    for (segment_bytes, rings_before) in [(1 << 20, 0), (2_000, 0), (2_000, 4)] {
        let disk = SimulatedDisk::new();
        let store = open_with_segments(&disk, 1, segment_bytes).unwrap();
        let graph = store.create_graph("g").unwrap();
        (0..rings_before).for_each(|number| write_ring(&graph, number).unwrap());
        disk.set_faults(Faults { refuses_files: true, ..Faults::default() });
        let outcomes: Vec<_> = (100..140).map(|number| (number, write_ring(&graph, number))).collect();
        let refused = |outcome: &Result<(), StoreError>| matches!(outcome, Err(StoreError::TooManyFiles { .. }));
        assert!(outcomes.iter().all(|(_, outcome)| outcome.is_ok() || refused(outcome)), "{outcomes:?}");
        let any_refused = outcomes.iter().any(|(_, outcome)| refused(outcome));
        assert_eq!(any_refused, segment_bytes == 2_000);
        assert_eq!(store.writable().is_err(), any_refused);
        disk.set_faults(Faults::default());
        store.writable().unwrap();
        write_ring(&graph, 99).unwrap();
        let written = outcomes.iter().filter(|(_, outcome)| outcome.is_ok()).map(|(number, _)| *number);
        let expected: Vec<u64> = (0..rings_before).chain([99]).chain(written).collect();
        for seed in 0..20 {
            let again = open(&disk.crash(seed), 2).unwrap();
            assert_eq!(rings(&again.graph("g").unwrap()), expected, "seed {seed}");
        }
    }
}

#[test]
fn after_a_failed_flush_writes_are_refused_and_reads_go_on() {
    let disk = SimulatedDisk::new();
    // Of a log that is short, whose next flush is that of the commit and not of a file that is made ahead.
    let store = open_with_segments(&disk, 1, 1 << 20).unwrap();
    let graph = store.create_graph("g").unwrap();
    write_ring(&graph, 1).unwrap();
    disk.set_faults(Faults { fail_flush: Some(disk.flushes() + 1), ..Faults::default() });
    let error = write_ring(&graph, 2).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::World);
    assert!(matches!(write_ring(&graph, 3), Err(StoreError::Poisoned { .. })));
    assert!(matches!(store.writable(), Err(StoreError::Poisoned { .. })));
    assert_eq!(rings(&graph), [1]);
    store.close().unwrap();
    let again = open(&disk, 2).unwrap();
    let found = rings(&again.graph("g").unwrap());
    assert!(found == [1] || found == [1, 2], "{found:?}");
}

#[test]
fn after_a_failed_flush_nothing_of_the_unknown_is_shown_or_stored() {
    let disk = SimulatedDisk::new();
    // Of a log that is short, whose next flush is that of the commit and not of a file that is made ahead.
    let store = open_with_segments(&disk, 1, 1 << 20).unwrap();
    let graph = store.create_graph("g").unwrap();
    write_ring(&graph, 1).unwrap();
    let mut bulk = graph.bulk();
    bulk.add_vertex("lone", None, Vec::new()).unwrap();
    disk.set_faults(Faults { fail_flush: Some(disk.flushes() + 1), ..Faults::default() });
    bulk.finish().unwrap_err();
    // The batch was applied, but nobody knows whether the log has it.
    assert!(matches!(store.consolidate(), Err(StoreError::Poisoned { .. })));
    assert!(matches!(store.checkpoint(), Err(StoreError::Poisoned { .. })));
    assert_eq!(rings(&graph), [1]);
}

fn is_log(name: &str) -> bool {
    name.starts_with("log-") && name.ends_with(".ficus")
}

fn log_files(disk: &SimulatedDisk) -> Vec<String> {
    use ficus_storage::Disk;
    let mut names: Vec<_> = disk.list().unwrap().into_iter().filter(|name| is_log(name)).collect();
    names.sort();
    names
}

/// A disk with 20 rings in several log files, as after a power cut.
fn filled() -> SimulatedDisk {
    filled_with_segments(500)
}

fn filled_with_segments(log_segment_bytes: u64) -> SimulatedDisk {
    let disk = SimulatedDisk::new();
    let store = open_with_segments(&disk, 1, log_segment_bytes).unwrap();
    let graph = store.create_graph("g").unwrap();
    (0..20).for_each(|number| write_ring(&graph, number).unwrap());
    disk.crash(1)
}

#[test]
fn a_torn_tail_is_cut_at_the_last_whole_record() {
    let whole = filled();
    let name = log_files(&whole).pop().unwrap();
    let content = whole.content(&name).unwrap();
    for cut in (1..content.len()).step_by(13) {
        let disk = whole.crash(1);
        disk.put(&name, content[..cut].to_vec());
        let store = open(&disk, 2).unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
        let graph = store.graph("g").unwrap();
        let found = rings(&graph);
        assert!(found.len() <= 20 && found == (0..found.len() as u64).collect::<Vec<_>>(), "{found:?}");
        write_ring(&graph, 99).unwrap();
        drop(store);
        assert!(rings(&open(&disk, 3).unwrap().graph("g").unwrap()).contains(&99));
    }
}

#[test]
fn a_damaged_middle_refuses_to_start() {
    let whole = filled();
    let names = log_files(&whole);
    assert!(names.len() >= 3);
    for name in &names[..names.len() - 1] {
        let content = whole.content(name).unwrap();
        for place in (0..content.len()).step_by(37) {
            let disk = whole.crash(1);
            let mut damaged = content.clone();
            damaged[place] ^= 0x10;
            disk.put(name, damaged);
            let error = open(&disk, 2).err().unwrap_or_else(|| panic!("{name} damaged at {place} was accepted"));
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            assert!(error.to_string().contains("ficus admin check"), "{error}");
        }
    }
    // In the newest file, a later record proves that what is damaged was whole.
    let one_file = filled_with_segments(1 << 20);
    let name = &log_files(&one_file)[0];
    let content = one_file.content(name).unwrap();
    for place in (0..content.len() - 600).step_by(7) {
        let mut damaged = content.clone();
        damaged[place] ^= 1;
        let disk = one_file.crash(1);
        disk.put(name, damaged);
        assert_eq!(open(&disk, 2).unwrap_err().kind(), ErrorKind::Corrupt, "at {place}");
    }
    // A file that is missing in the middle.
    use ficus_storage::Disk;
    let disk = whole.crash(1);
    disk.remove(&names[1]).unwrap();
    assert_eq!(open(&disk, 2).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn a_damaged_checkpoint_is_noticed() {
    use ficus_storage::Disk;
    let disk = filled();
    let store = open(&disk, 2).unwrap();
    store.checkpoint().unwrap();
    write_ring(&store.graph("g").unwrap(), 50).unwrap();
    let disk = disk.crash(3);
    let expected: Vec<u64> = (0..20).chain([50]).collect();
    assert_eq!(rings(&open(&disk.crash(1), 3).unwrap().graph("g").unwrap()), expected);
    let name = disk.list().unwrap().into_iter().find(|name| name.starts_with("checkpoint-")).unwrap();
    let content = disk.content(&name).unwrap();
    for place in (0..content.len()).step_by(41) {
        let disk = disk.crash(1);
        let mut damaged = content.clone();
        damaged[place] ^= 0x04;
        disk.put(&name, damaged);
        let error = open(&disk, 3).err().unwrap_or_else(|| panic!("damage at {place} was accepted"));
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    }
    // A log that ends before it has lost something.
    let log_only = filled();
    log_only.put(&name, content[..content.len() - 5].to_vec());
    let error = open(&log_only, 2).unwrap_err();
    assert!(error.kind() == ErrorKind::Corrupt && error.to_string().contains("a log file is missing"), "{error}");
    // With the whole log still there, a damaged checkpoint does no harm.
    let opened = filled();
    let store = open(&opened, 2).unwrap();
    let log_only = opened.crash(1);
    drop(store);
    log_only.put(&name, content[..content.len() - 5].to_vec());
    let store = open(&log_only, 3).unwrap();
    assert_eq!(rings(&store.graph("g").unwrap()).len(), 20);
    // It is told, until another checkpoint takes its place.
    let recovery = store.recovery();
    assert!(recovery.checkpoint.is_none(), "{recovery:?}");
    assert!(matches!(&recovery.passed_over[..], [StoreError::Corrupt { file, .. }] if *file == name), "{recovery:?}");
    store.close().unwrap();
    drop(store);
    let store = open(&log_only, 4).unwrap();
    let recovery = store.recovery();
    assert!(recovery.checkpoint.as_ref().is_some_and(|used| *used > name), "{recovery:?}");
    assert!(recovery.passed_over.is_empty(), "{recovery:?}");
}

/// An older checkpoint is there as long as an archive has not got the newer one.
#[test]
fn a_damaged_checkpoint_in_front_of_an_older_one_is_told() {
    let disk = filled();
    let store = open(&disk, 2).unwrap();
    store.checkpoint().unwrap();
    let older = disk.crash(3);
    write_ring(&store.graph("g").unwrap(), 50).unwrap();
    let log = disk.crash(3);
    store.checkpoint().unwrap();
    let newer = disk.crash(3);
    let checkpoint = |disk: &SimulatedDisk| {
        use ficus_storage::Disk;
        disk.list().unwrap().into_iter().find(|name| name.starts_with("checkpoint-")).unwrap()
    };
    let (older_name, newer_name) = (checkpoint(&older), checkpoint(&newer));
    assert!(older_name < newer_name);
    let mut content = newer.content(&newer_name).unwrap();
    content[40] ^= 1;
    log.put(&newer_name, content);
    let store = open(&log, 4).unwrap();
    assert_eq!(rings(&store.graph("g").unwrap()).len(), 21);
    let recovery = store.recovery();
    assert_eq!(recovery.checkpoint.as_ref(), Some(&older_name));
    assert!(
        matches!(&recovery.passed_over[..], [StoreError::Corrupt { file, .. }] if *file == newer_name),
        "{recovery:?}"
    );
}
