//! Random changes around one vertex, read in order and held against sorting all its half-edges.

use std::cmp::Ordering;

use ficus_model::KeyId;
use ficus_model::compare::compare;

use super::*;
use crate::simulated_disk::{Seeded, SimulatedDisk};
use crate::test_store::open;
use crate::{ElementKind, Graph, HalfEdgeCursor, TypeDefinition};

fn any_value(random: &mut Seeded) -> Value {
    const LARGE: i64 = 1 << 60;
    match random.below(7) {
        0 => Value::Long(LARGE + random.below(3) as i64),
        1 => Value::Double(random.below(4) as f64 / 2.0),
        2 => Value::String(["", "a", "ab", "b"][random.below(4) as usize].into()),
        3 => Value::Bool(random.below(2) == 1),
        _ => Value::Int(random.below(5) as i32),
    }
}

/// What a sorted read has to give, by looking at everything.
fn expected(snapshot: &Snapshot, hub: VertexId, query: &SortedQuery, keys: &[SortKey]) -> Vec<EdgeId> {
    let mut all = Vec::new();
    let labels = [query.label];
    snapshot.half_edges(hub, query.direction, &labels, &mut HalfEdgeCursor::default(), usize::MAX, &mut all);
    let value = |edge: EdgeId, key: &SortKey| snapshot.edge_value(edge, snapshot.key_id(&key.key)?);
    all.retain(|half_edge| value(half_edge.edge, &keys[0]).is_some());
    all.sort_by(|a, b| {
        keys.iter().fold(Ordering::Equal, |so_far, key| {
            so_far.then_with(|| {
                let by_value = match (value(a.edge, key), value(b.edge, key)) {
                    (Some(a), Some(b)) => order(&a, &b, &InternalIds),
                    (a, b) => a.is_some().cmp(&b.is_some()),
                };
                if key.descending != query.backward { by_value.reverse() } else { by_value }
            })
        })
    });
    all.into_iter().map(|half_edge| half_edge.edge).collect()
}

fn read(snapshot: &Snapshot, hub: VertexId, query: &SortedQuery, max: usize) -> Vec<EdgeId> {
    let (mut cursor, mut found) = (SortedCursor::default(), Vec::new());
    while snapshot.half_edges_by_sort_key(hub, query, &mut cursor, max, &mut found) {}
    found.into_iter().map(|half_edge| half_edge.edge).collect()
}

fn check(snapshot: &Snapshot, hub: VertexId, bound: &Value, must_be_sorted: bool) {
    snapshot.check_invariants().unwrap();
    for name in ["single", "double"] {
        let Some(label) = snapshot.label_id(name) else { continue };
        let keys = snapshot.sort_keys_hint(label);
        assert!(!must_be_sorted || !keys.is_empty(), "{name} is not sorted");
        for direction in [Direction::Out, Direction::In].into_iter().filter(|_| !keys.is_empty()) {
            for backward in [false, true] {
                let mut query = SortedQuery { direction, label, test: IndexTest::Any, backward };
                let all = expected(snapshot, hub, &query, &keys);
                for max in [1, 5, usize::MAX] {
                    assert_eq!(read(snapshot, hub, &query, max), all, "{name} {query:?}");
                }
                query.test = IndexTest::Between { low: Some(bound.clone()), high: None };
                let found = read(snapshot, hub, &query, 3);
                let inside = |edge: &EdgeId| {
                    let value = snapshot.edge_value(*edge, key_of(snapshot, &keys[0]))?;
                    compare(&value, bound, &InternalIds)
                };
                let wanted: Vec<EdgeId> =
                    all.iter().copied().filter(|edge| inside(edge).is_some_and(Ordering::is_ge)).collect();
                // More may come, in order; nothing may be missing.
                let left: Vec<EdgeId> = found.iter().copied().filter(|edge| wanted.contains(edge)).collect();
                assert_eq!(left, wanted, "{name} {query:?}");
                let order: Vec<EdgeId> = all.iter().copied().filter(|edge| found.contains(edge)).collect();
                assert_eq!(found, order);
            }
        }
    }
}

fn key_of(snapshot: &Snapshot, key: &SortKey) -> KeyId {
    snapshot.key_id(&key.key).unwrap()
}

fn declare(graph: &Graph, label: &str, keys: &[(&str, bool)]) {
    let mut definition = TypeDefinition::new(ElementKind::Edge, label);
    definition.sort_keys =
        keys.iter().map(|(key, descending)| SortKey { key: (*key).into(), descending: *descending }).collect();
    graph.define_type(&definition).unwrap();
}

fn run(seed: u64) {
    let mut random = Seeded::new(seed);
    let mut disk = SimulatedDisk::new();
    let (mut store, mut graph) = open(&disk);
    let declare_all = |graph: &Graph| {
        declare(graph, "single", &[("at", seed.is_multiple_of(2))]);
        declare(graph, "double", &[("at", seed.is_multiple_of(3)), ("by", true)]);
    };
    let is_late = seed % 4 == 1;
    if !is_late {
        declare_all(&graph);
    }
    let mut writing = graph.begin();
    let hub = writing.add_vertex("v", None).unwrap();
    let others: Vec<VertexId> = (0..5).map(|_| writing.add_vertex("v", None).unwrap()).collect();
    let mut edges: Vec<EdgeId> = Vec::new();
    let mut sorted = !is_late;
    for step in 0..160 {
        let edge = edges.get(random.below(edges.len().max(1) as u64) as usize).copied();
        match (random.below(16), edge) {
            (0..=5, _) | (_, None) => {
                let other = if random.below(9) == 0 { hub } else { others[random.below(5) as usize] };
                let (out, in_) = if random.below(2) == 0 { (hub, other) } else { (other, hub) };
                let label = ["single", "double"][random.below(2) as usize];
                let edge = writing.add_edge(label, out, in_, None).unwrap();
                edges.push(edge);
                if random.below(5) > 0 {
                    writing.set_edge_property(edge, "at", any_value(&mut random)).unwrap();
                }
            }
            (6..=9, Some(edge)) => {
                let key = ["at", "by", "at", "other"][random.below(4) as usize];
                writing.set_edge_property(edge, key, any_value(&mut random)).unwrap();
            }
            (10, Some(edge)) => {
                if let Some(key) = writing.key_id(["at", "by"][random.below(2) as usize]) {
                    writing.remove_edge_property(edge, key).unwrap();
                }
            }
            (11..=12, Some(edge)) => {
                writing.remove_edge(edge).unwrap();
                edges.retain(|own| *own != edge);
            }
            (what, _) => {
                check(&writing, hub, &any_value(&mut random), sorted);
                writing.commit().unwrap();
                match what {
                    13 if random.below(2) == 0 => {
                        store.consolidate().unwrap();
                        sorted |= is_late && !graph.snapshot().root.declared_orders().is_empty();
                    }
                    14 if is_late && step > 80 => declare_all(&graph),
                    15 if random.below(3) == 0 => {
                        if random.below(2) == 0 {
                            store.checkpoint().unwrap();
                        }
                        disk = disk.crash(seed);
                        (store, graph) = open(&disk);
                    }
                    _ => {}
                }
                check(&graph.snapshot(), hub, &any_value(&mut random), sorted);
                writing = graph.begin();
            }
        }
    }
    check(&writing, hub, &any_value(&mut random), sorted);
}

#[test]
fn sorted_reads_agree_with_sorting_all() {
    for seed in 0..60 {
        let outcome = std::panic::catch_unwind(|| run(seed));
        assert!(outcome.is_ok(), "seed {seed} fails; repeat it with run({seed})");
    }
}

/// Whoever has read in order conflicts with what would have changed the answer.
#[test]
fn what_comes_into_the_order_conflicts() {
    let (_store, graph) = open(&SimulatedDisk::new());
    declare(&graph, "single", &[("at", true)]);
    let mut writing = graph.begin();
    let (hub, other) = (writing.add_vertex("v", None).unwrap(), writing.add_vertex("v", None).unwrap());
    let old = writing.add_edge("single", hub, other, None).unwrap();
    writing.set_edge_property(old, "at", Value::Int(1)).unwrap();
    writing.commit().unwrap();
    let newest_of = |view: &Snapshot| {
        let label = view.label_id("single").unwrap();
        let test = IndexTest::Between { low: Some(Value::Int(5)), high: None };
        read(view, hub, &SortedQuery { direction: Direction::Out, label, test, backward: false }, 1)
    };
    let changes: [&dyn Fn(&mut crate::Transaction); 3] = [
        &|other_writing| other_writing.set_edge_property(old, "at", Value::Int(9)).unwrap(),
        &|other_writing| {
            let edge = other_writing.add_edge("single", hub, other, None).unwrap();
            other_writing.set_edge_property(edge, "at", Value::Int(8)).unwrap();
        },
        &|other_writing| other_writing.remove_edge(old).unwrap(),
    ];
    for change in changes {
        let mut reader = graph.begin();
        newest_of(&reader);
        reader.add_vertex("v", None).unwrap();
        let mut other_writing = graph.begin();
        change(&mut other_writing);
        other_writing.commit().unwrap();
        assert_eq!(reader.commit().unwrap_err().kind(), crate::ErrorKind::Conflict);
    }
}
