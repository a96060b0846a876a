//! Reads of states of the past, and how old the oldest state is that somebody reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ficus_storage::{AsOf, Clock, CommitTs, Environment, Graph, Store, StoreError, StoreOptions};

/// A clock that stands still until it is set.
struct Hand(AtomicU64);

impl Clock for Hand {
    fn epoch_seconds(&self) -> u64 {
        self.epoch_millis() / 1000
    }

    fn epoch_millis(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

fn store(retention_ms: u64, retention_versions: usize) -> (Arc<Store>, Arc<Hand>) {
    let clock = Arc::new(Hand(AtomicU64::new(1_000_000)));
    let mut options = StoreOptions::default();
    options.retention_ms = retention_ms;
    options.retention_versions = retention_versions;
    let environment = Environment { clock: clock.clone(), ..Environment::in_memory() };
    (Store::open(options, environment).unwrap(), clock)
}

fn add(graph: &Arc<Graph>) -> CommitTs {
    let mut writing = graph.begin();
    writing.add_vertex("v", None).unwrap();
    writing.commit().unwrap()
}

/// The number of vertices as of then, or none if that is outside the retention.
fn count(graph: &Arc<Graph>, as_of: AsOf) -> Option<u64> {
    match graph.begin_reading_as_of(as_of) {
        Ok(reading) => Some(reading.vertex_count()),
        Err(StoreError::OutsideRetention { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_state_of_the_past_can_be_read_for_as_long_as_it_is_kept() {
    let (store, clock) = store(5_000, 100);
    let graph = store.create_graph("g").unwrap();
    let begin = clock.epoch_millis();
    let mut commits = Vec::new();
    for _ in 0..4 {
        clock.0.fetch_add(1_000, Ordering::SeqCst);
        commits.push(add(&graph));
    }
    // Vertex n was added at begin + n seconds.
    for millis in 0..4_000 {
        assert_eq!(count(&graph, AsOf::Time(begin + millis)), Some(millis / 1000));
    }
    assert_eq!(count(&graph, AsOf::Time(begin - 1)), None);
    assert_eq!(count(&graph, AsOf::Time(begin + 4_000)), Some(4));
    assert_eq!(count(&graph, AsOf::Time(begin + 4_001)), None, "the future");
    for (vertices, ts) in (1..).zip(&commits) {
        assert_eq!(count(&graph, AsOf::Commit(*ts)), Some(vertices));
    }
    assert_eq!(count(&graph, AsOf::Commit(CommitTs(commits[3].0 + 1))), None);
    // Who is refused is told in which direction there is something.
    let advice = |as_of| graph.begin_reading_as_of(as_of).err().unwrap().to_string();
    for future in [AsOf::Time(begin + 4_001), AsOf::Commit(CommitTs(commits[3].0 + 1))] {
        assert!(advice(future).contains("earlier") && !advice(future).contains("later"), "{}", advice(future));
    }
    assert!(advice(AsOf::Time(begin - 1)).contains("ask for a later one"), "{}", advice(AsOf::Time(begin - 1)));
    // What was replaced more than five seconds ago goes with the next commit.
    clock.0.store(begin + 7_500, Ordering::SeqCst);
    let held = graph.begin_reading_as_of(AsOf::Time(begin + 1_000)).unwrap();
    add(&graph);
    assert_eq!(count(&graph, AsOf::Time(begin + 1_000)), None);
    assert_eq!(count(&graph, AsOf::Time(begin + 2_000)), Some(2));
    assert_eq!(held.vertex_count(), 1, "who reads it keeps it");
}

#[test]
fn versions_are_bounded_and_off_by_default() {
    let (bounded, clock) = store(1_000_000, 3);
    let graph = bounded.create_graph("g").unwrap();
    let begin = clock.epoch_millis();
    for _ in 0..10 {
        clock.0.fetch_add(1, Ordering::SeqCst);
        add(&graph);
    }
    let kept: Vec<_> = (0..=10).map(|millis| count(&graph, AsOf::Time(begin + millis))).collect();
    let mut expected = vec![None; 7];
    expected.extend([Some(7), Some(8), Some(9), Some(10)]);
    assert_eq!(kept, expected);
    let (off, clock) = store(0, 100);
    let graph = off.create_graph("g").unwrap();
    clock.0.fetch_add(10, Ordering::SeqCst);
    add(&graph);
    assert_eq!(count(&graph, AsOf::Time(clock.epoch_millis() - 1)), None);
    assert_eq!(count(&graph, AsOf::Time(clock.epoch_millis())), Some(1));
}

#[test]
fn the_age_of_the_oldest_snapshot_counts_from_when_it_was_replaced() {
    let (store, clock) = store(0, 0);
    let graph = store.create_graph("g").unwrap();
    let age = || store.oldest_snapshot_age();
    let reading = graph.begin_reading();
    clock.0.fetch_add(60_000, Ordering::SeqCst);
    assert_eq!(age(), Duration::ZERO, "it reads the newest state");
    add(&graph);
    clock.0.fetch_add(2_000, Ordering::SeqCst);
    assert_eq!(age(), Duration::from_secs(2));
    let snapshot = graph.snapshot();
    add(&graph);
    clock.0.fetch_add(1_000, Ordering::SeqCst);
    assert_eq!(age(), Duration::from_secs(3));
    drop(reading);
    assert_eq!(age(), Duration::from_secs(1));
    let copy = snapshot.clone();
    drop(snapshot);
    assert_eq!(age(), Duration::from_secs(1));
    drop(copy);
    assert_eq!(age(), Duration::ZERO);
    // Transactions that come and go leave nothing behind, whatever else is open.
    let _open = graph.begin();
    for _ in 0..1_000 {
        add(&graph);
    }
    clock.0.fetch_add(500, Ordering::SeqCst);
    assert_eq!(age(), Duration::from_millis(500));
}
