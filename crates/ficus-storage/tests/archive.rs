//! What an archive covers can be restored, moment by moment; what it does not cover, or has damaged, is refused; and an
//! interrupted restore is never taken for a store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ficus_model::{Cardinality, Value};
use ficus_storage::simulated_disk::{Faults, Seeded, SimulatedDisk};
use ficus_storage::{
    Clock, CommitTs, Disk, Environment, ErrorKind, RestorePoint, ScanCursor, Store, StoreError, StoreOptions,
    SystemRandom,
};

/// A clock that stands still until it is moved.
#[derive(Default)]
struct Hand(AtomicU64);

impl Clock for Hand {
    fn epoch_seconds(&self) -> u64 {
        self.epoch_millis() / 1000
    }

    fn epoch_millis(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

fn environment(disk: &SimulatedDisk, clock: &Arc<Hand>) -> Environment {
    Environment {
        clock: clock.clone(),
        disk: Some(Arc::new(disk.clone())),
        random: Arc::new(SystemRandom),
        spawn: None,
    }
}

fn options() -> StoreOptions {
    let mut options = StoreOptions::default();
    options.tablet_bits = 1;
    // Many log files, so that some are trimmed.
    options.log_segment_bytes = 512;
    options
}

/// All values of the property `n`, which every commit adds to or removes from.
fn content(store: &Store) -> Vec<i64> {
    let graph = store.graph("g").expect("the graph is there");
    let snapshot = graph.snapshot();
    snapshot.check_invariants().unwrap();
    let mut vertices = Vec::new();
    snapshot.scan_vertices(&mut ScanCursor::default(), usize::MAX, &mut vertices);
    let mut values = Vec::new();
    for vertex in vertices {
        let mut properties = Vec::new();
        snapshot.vertex_properties(vertex, None, &mut properties);
        values.extend(properties.iter().map(|property| match property.value {
            Value::Long(value) => value,
            _ => panic!("only numbers were written"),
        }));
    }
    values.sort_unstable();
    values
}

/// A moment with what a store held then.
struct Moment {
    commit: CommitTs,
    time_ms: u64,
    content: Vec<i64>,
}

/// Commits, and now and then consolidates or takes a checkpoint; a backup is made by `backup` after some commits.
fn history(seed: u64, store: &Store, clock: &Hand, backup: &dyn Fn()) -> Vec<Moment> {
    let mut random = Seeded::new(seed);
    let graph = store.create_graph("g").unwrap();
    graph.create_index(None, "n").unwrap();
    let mut moments = Vec::new();
    for number in 0..40 {
        clock.0.fetch_add(1 + random.below(1000), Ordering::Relaxed);
        let mut writing = graph.begin();
        let mut vertices = Vec::new();
        graph.snapshot().scan_vertices(&mut ScanCursor::default(), usize::MAX, &mut vertices);
        if random.below(4) == 0 && !vertices.is_empty() {
            writing.remove_vertex(vertices[random.below(vertices.len() as u64) as usize]).unwrap();
        } else {
            let vertex = writing.add_vertex("a", None).unwrap();
            writing.set_vertex_property(vertex, "n", Value::Long(number), Cardinality::Single, None).unwrap();
        }
        let commit = writing.commit().unwrap();
        moments.push(Moment { commit, time_ms: clock.epoch_millis(), content: content(store) });
        match random.below(8) {
            0 => store.consolidate().unwrap(),
            1 => store.checkpoint().unwrap(),
            2 => backup(),
            _ => {}
        }
    }
    moments
}

fn restored(archive: &SimulatedDisk, until: RestorePoint) -> Result<Arc<Store>, StoreError> {
    let disk = SimulatedDisk::new();
    let target: Arc<dyn Disk> = Arc::new(disk.clone());
    Store::restore_disk(archive, &target, until, &SystemRandom)?;
    Store::open(options(), environment(&disk.crash(7), &Arc::default()))
}

fn seeds(count: u64) -> std::ops::Range<u64> {
    let first = std::env::var("FICUS_TEST_SEED").map_or(0, |seed| seed.parse().expect("FICUS_TEST_SEED is a number"));
    first..first + count
}

/// A store that is archived from its beginning, its moments, and its archive as a power cut leaves it.
fn archived(seed: u64) -> (SimulatedDisk, SimulatedDisk, Vec<Moment>) {
    let (disk, archive, clock) = (SimulatedDisk::new(), SimulatedDisk::new(), Arc::new(Hand::default()));
    let target = Arc::new(archive.clone());
    let store = Store::open_archived(options(), environment(&disk, &clock), target, Duration::from_secs(1)).unwrap();
    let moments = history(seed, &store, &clock, &|| store.archive().unwrap());
    store.archive().unwrap();
    let status = store.archive_status().unwrap();
    assert_eq!((status.commit, status.failures), (moments.last().unwrap().commit, 0), "FICUS_TEST_SEED={seed}");
    (disk.crash(seed), archive.crash(seed), moments)
}

#[test]
fn every_moment_of_an_archived_store_can_be_restored() {
    for seed in seeds(12) {
        let (_, archive, moments) = archived(seed);
        for moment in &moments {
            let again = format!("FICUS_TEST_SEED={seed}, commit {}", moment.commit.0);
            let by_commit = restored(&archive, RestorePoint::Commit(moment.commit)).expect(&again);
            assert_eq!(content(&by_commit), moment.content, "{again}");
            let by_time = restored(&archive, RestorePoint::Time(moment.time_ms)).expect(&again);
            assert_eq!(content(&by_time), moment.content, "{again}");
        }
        let last = moments.last().unwrap();
        let newest = restored(&archive, RestorePoint::Newest).unwrap();
        assert_eq!(content(&newest), last.content, "FICUS_TEST_SEED={seed}");
        let beyond = RestorePoint::Commit(CommitTs(last.commit.0 + 10_000));
        assert!(matches!(restored(&archive, beyond), Err(StoreError::Archive { .. })), "FICUS_TEST_SEED={seed}");
    }
}

#[test]
fn backups_now_and_then_cover_what_they_say_or_refuse() {
    let (mut right, mut refused) = (0, 0);
    for seed in seeds(12) {
        let (disk, archive, clock) = (SimulatedDisk::new(), SimulatedDisk::new(), Arc::new(Hand::default()));
        let store = Store::open(options(), environment(&disk, &clock)).unwrap();
        let moments = history(seed, &store, &clock, &|| {
            Store::backup_disk(&disk, &archive).unwrap();
        });
        let report = Store::backup_disk(&disk, &archive).unwrap();
        assert_eq!(report.commit, moments.last().unwrap().commit, "FICUS_TEST_SEED={seed}");
        for moment in &moments {
            for until in [RestorePoint::Commit(moment.commit), RestorePoint::Time(moment.time_ms)] {
                match restored(&archive, until) {
                    Ok(store) => {
                        assert_eq!(content(&store), moment.content, "FICUS_TEST_SEED={seed}, {until}");
                        right += 1;
                    }
                    Err(StoreError::Archive { .. }) => refused += 1,
                    Err(error) => panic!("FICUS_TEST_SEED={seed}, {until}: {error}"),
                }
            }
        }
        let newest = restored(&archive, RestorePoint::Newest).unwrap();
        assert_eq!(content(&newest), moments.last().unwrap().content, "FICUS_TEST_SEED={seed}");
    }
    assert!(right > 100 && refused > 10, "{right} right, {refused} refused");
}

#[test]
fn an_interrupted_restore_is_refused_and_can_be_run_again() {
    let (_, archive, moments) = archived(3);
    let middle = &moments[20];
    let until = RestorePoint::Commit(middle.commit);
    let whole = SimulatedDisk::new();
    Store::restore_disk(&archive, &(Arc::new(whole.clone()) as Arc<dyn Disk>), until, &SystemRandom).unwrap();
    for operation in 1..=whole.operations() {
        let disk = SimulatedDisk::new();
        disk.set_faults(Faults { crash_at_operation: Some(operation), ..Faults::default() });
        let outcome = Store::restore_disk(&archive, &(Arc::new(disk.clone()) as Arc<dyn Disk>), until, &SystemRandom);
        let disk = disk.crash(operation);
        match Store::open(options(), environment(&disk.crash(0), &Arc::default())) {
            Ok(store) if store.graph_names().is_empty() => assert!(disk.list().unwrap().is_empty(), "{operation}"),
            Ok(store) => assert_eq!(content(&store), middle.content, "{operation}"),
            Err(error) => {
                assert!(outcome.is_err() && matches!(error, StoreError::Archive { .. }), "{operation}: {error}");
                let again: Arc<dyn Disk> = Arc::new(disk.clone());
                Store::restore_disk(&archive, &again, until, &SystemRandom).unwrap();
                let store = Store::open(options(), environment(&disk, &Arc::default())).unwrap();
                assert_eq!(content(&store), middle.content, "{operation}");
            }
        }
    }
}

#[test]
fn damage_in_an_archive_is_refused_or_does_no_harm() {
    let (_, archive, moments) = archived(5);
    let newest = &moments.last().unwrap().content;
    let names: Vec<String> = archive.list().unwrap().into_iter().filter(|name| name.ends_with(".ficus")).collect();
    let mut refused = 0;
    for seed in seeds(300) {
        let mut random = Seeded::new(seed);
        let damaged = archive.crash(1);
        let name = &names[random.below(names.len() as u64) as usize];
        let mut bytes = damaged.content(name).unwrap();
        let place = random.below(bytes.len() as u64) as usize;
        bytes[place] ^= 1 << random.below(8);
        damaged.put(name, bytes);
        match restored(&damaged, RestorePoint::Newest) {
            // Files that this state does not need, and the very last record, which looks unfinished.
            Ok(store) => {
                let found = content(&store);
                let is_a_moment = name.starts_with("log-") && moments.iter().any(|moment| moment.content == found);
                assert!(found == *newest || is_a_moment, "{name} at {place}, FICUS_TEST_SEED={seed}");
            }
            Err(error) => {
                assert!(
                    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::World),
                    "{error}, FICUS_TEST_SEED={seed}"
                );
                refused += 1;
            }
        }
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn nothing_is_removed_that_a_failing_archive_lacks() {
    let (disk, archive, clock) = (SimulatedDisk::new(), SimulatedDisk::new(), Arc::new(Hand::default()));
    let target = Arc::new(archive.clone());
    let store = Store::open_archived(options(), environment(&disk, &clock), target, Duration::from_secs(1)).unwrap();
    archive.set_faults(Faults { capacity_bytes: Some(archive.used_bytes() + 1000), ..Faults::default() });
    let moments = history(9, &store, &clock, &|| {});
    store.checkpoint().unwrap();
    let status = store.archive_status().unwrap();
    assert!(status.failures > 0 && status.failure.is_some() && store.writable().is_ok());
    archive.set_faults(Faults::default());
    store.archive().unwrap();
    assert!(store.archive_status().unwrap().failure.is_none());
    for moment in &moments {
        let store = restored(&archive, RestorePoint::Commit(moment.commit)).unwrap();
        assert_eq!(content(&store), moment.content);
    }
}

#[test]
fn archives_of_other_stores_and_histories_are_refused() {
    let (disk, archive, moments) = archived(11);
    let backup = |disk: &SimulatedDisk| Store::backup_disk(disk, &archive);
    backup(&disk).unwrap();
    // Restored: another store, although its files have the same names.
    let earlier = SimulatedDisk::new();
    let target: Arc<dyn Disk> = Arc::new(earlier.clone());
    Store::restore_disk(&archive, &target, RestorePoint::Commit(moments[10].commit), &SystemRandom).unwrap();
    assert!(matches!(backup(&earlier), Err(StoreError::Archive { .. })));
    // Written to by hand from an older copy: the same store, another history.
    let clock = Arc::new(Hand::default());
    let first = SimulatedDisk::new();
    let store = Store::open(options(), environment(&first, &clock)).unwrap();
    let graph = store.create_graph("g").unwrap();
    let copy = first.crash(1);
    let archive = SimulatedDisk::new();
    graph.begin().commit().unwrap();
    let mut writing = graph.begin();
    writing.add_vertex("a", None).unwrap();
    writing.commit().unwrap();
    Store::backup_disk(&first, &archive).unwrap();
    let other = Store::open(options(), environment(&copy, &clock)).unwrap();
    let mut writing = other.graph("g").unwrap().begin();
    writing.add_vertex("b", None).unwrap();
    writing.commit().unwrap();
    assert!(matches!(Store::backup_disk(&copy, &archive), Err(StoreError::Archive { .. })));
    // And an archive is no data directory.
    let opened = Store::open(options(), environment(&archive, &clock));
    assert!(matches!(opened, Err(StoreError::Archive { .. })));
}
