//! Every index, against a naive scan: random values of all types, random changes, random questions.
#![allow(clippy::print_stdout)] // the seed of a failure

use std::collections::BTreeSet;
use std::sync::Arc;

use ficus_model::{Cardinality, Comparison, EdgeId, OffsetDateTime, P, Shared, TextComparison, Value, VertexId};
use ficus_storage::simulated_disk::{Seeded, SimulatedDisk};
use ficus_storage::{
    ElementKind, Graph, IndexCursor, IndexDefinition, IndexKind, IndexQuery, IndexTest, ScanCursor, Snapshot, Store,
    StoreOptions, Transaction,
};

const KEYS: [&str; 3] = ["a", "b", "c"];
const LABELS: [&str; 2] = ["x", "y"];

fn value(random: &mut Seeded) -> Value {
    let small = random.below(12) as i32 - 3;
    match random.below(12) {
        0 => Value::Int(small),
        1 => Value::Long(i64::from(small)),
        2 => Value::Double(f64::from(small) / 2.0),
        3 => Value::Float(small as f32 / 10.0),
        4 => Value::BigDecimal(Arc::new(bigdecimal::BigDecimal::new(small.into(), 1))),
        5 => Value::Long((1 << 53) + i64::from(small)),
        6 => Value::Double((1u64 << 53) as f64 + f64::from(small)),
        7 => Value::Bool(small % 2 == 0),
        8 => Value::DateTime(OffsetDateTime::from_epoch_millis(i64::from(small) * 1000)),
        9 => Value::List(Shared::new(vec![Value::Int(small)])),
        _ => Value::String(["", "a", "ab", "abc", "b", "ba", "\u{0}", "a\u{0}b"][random.below(8) as usize].into()),
    }
}

fn test(random: &mut Seeded) -> (IndexTest, P) {
    let bound = value(random);
    let compare = |comparison, value: &Value| P::Compare(comparison, value.clone());
    match random.below(6) {
        0 => (IndexTest::Between { low: Some(bound.clone()), high: None }, compare(Comparison::Gt, &bound)),
        1 => (IndexTest::Between { low: None, high: Some(bound.clone()) }, compare(Comparison::Lte, &bound)),
        2 => {
            let high = value(random);
            let predicate = P::And(vec![compare(Comparison::Gte, &bound), compare(Comparison::Lt, &high)]);
            (IndexTest::Between { low: Some(bound), high: Some(high) }, predicate)
        }
        3 => {
            let beginning: Arc<str> = ["", "a", "ab", "b"][random.below(4) as usize].into();
            (IndexTest::StartingWith(beginning.clone()), P::Text(TextComparison::StartingWith, beginning))
        }
        _ => (IndexTest::Equal(bound.clone()), P::eq(bound)),
    }
}

/// False also where the predicate cannot be tested, as a text predicate on a number.
fn holds(predicate: &P, value: &Value) -> bool {
    match (predicate, value) {
        (P::Text(..), Value::String(_)) => predicate.test(value).unwrap(),
        (P::Text(..), _) => false,
        _ => predicate.test(value).unwrap(),
    }
}

fn values(snapshot: &Snapshot, elements: ElementKind, element: u64, key: &str) -> Vec<Value> {
    let Some(key) = snapshot.key_id(key) else { return Vec::new() };
    match elements {
        ElementKind::Vertex => {
            let mut records = Vec::new();
            snapshot.vertex_properties(VertexId(element), Some(key), &mut records);
            records.into_iter().map(|record| record.value).collect()
        }
        ElementKind::Edge => snapshot.edge_value(EdgeId(element), key).into_iter().collect(),
    }
}

fn all(snapshot: &Snapshot, elements: ElementKind, label: Option<&str>) -> Vec<u64> {
    let label = label.map(|label| snapshot.label_id(label));
    let (mut vertices, mut edges) = (Vec::new(), Vec::new());
    match elements {
        ElementKind::Vertex => snapshot.scan_vertices(&mut ScanCursor::default(), usize::MAX, &mut vertices),
        ElementKind::Edge => snapshot.scan_edges(&mut ScanCursor::default(), usize::MAX, &mut edges),
    };
    let vertices = vertices.into_iter().map(|vertex| (vertex.0, snapshot.vertex_label(vertex)));
    let edges = edges.into_iter().map(|edge| (edge.0, snapshot.edge(edge).map(|record| record.label)));
    let all = vertices.chain(edges);
    all.filter(|(_, own)| label.is_none_or(|label| *own == label)).map(|(element, _)| element).collect()
}

/// Asks every index a random question and holds the answer against a scan.
fn ask(snapshot: &Snapshot, random: &mut Seeded) {
    for index in snapshot.indexes() {
        let definition = &index.definition;
        let leading = random.below(definition.keys.len() as u64) as usize;
        let mut equal = Vec::new();
        while equal.len() < leading {
            let value = value(random);
            if IndexQuery::may_lead(&value) {
                equal.push(value);
            }
        }
        let (test, predicate) = test(random);
        let descending = random.below(2) == 0;
        let query = IndexQuery { index: index.number, equal, test, descending };
        if !snapshot.can_answer(&query) {
            assert_eq!(definition.kind, IndexKind::Hash, "{query:?}");
            continue;
        }
        let predicates: Vec<P> = query.equal.iter().cloned().map(P::eq).chain([predicate]).collect();
        let passes = |element: &u64| {
            predicates.iter().zip(&definition.keys).all(|(predicate, key)| {
                let own = values(snapshot, definition.elements, *element, key);
                own.iter().any(|value| holds(predicate, value))
            })
        };
        let (mut cursor, mut found, mut more) = (IndexCursor::default(), Vec::new(), true);
        while more {
            let batch = 1 + random.below(5) as usize;
            let before = found.len();
            more = snapshot.scan_index(&query, &mut cursor, batch, &mut found);
            assert!(found.len() - before <= batch);
        }
        let once: BTreeSet<u64> = found.iter().copied().collect();
        assert_eq!(once.len(), found.len(), "{query:?} gave an element twice");
        let expected: BTreeSet<u64> =
            all(snapshot, definition.elements, definition.label.as_deref()).into_iter().filter(passes).collect();
        let answered: BTreeSet<u64> = once.into_iter().filter(passes).collect();
        assert_eq!(answered, expected, "{definition} {query:?}");
    }
}

fn change(writing: &mut Transaction, random: &mut Seeded) {
    let vertices = all(writing, ElementKind::Vertex, None);
    let edges = all(writing, ElementKind::Edge, None);
    let mut pick = |list: &[u64]| list.get(random.below(list.len().max(1) as u64) as usize).copied();
    let (vertex, other, edge) =
        (pick(&vertices).map(VertexId), pick(&vertices).map(VertexId), pick(&edges).map(EdgeId));
    let label = LABELS[random.below(2) as usize];
    let key = KEYS[random.below(3) as usize];
    let value = value(random);
    match (random.below(12), vertex, other, edge) {
        (0..=2, ..) | (_, None, ..) => {
            writing.add_vertex(label, None).unwrap();
        }
        (3, Some(out), Some(in_), _) => {
            writing.add_edge(label, out, in_, None).unwrap();
        }
        (4, Some(vertex), ..) if vertices.len() > 20 => writing.remove_vertex(vertex).unwrap(),
        (5, Some(vertex), ..) => {
            let mut records = Vec::new();
            writing.vertex_properties(vertex, None, &mut records);
            if let Some(record) = records.first() {
                writing.remove_vertex_property(vertex, record.id).unwrap();
            }
        }
        (6, _, _, Some(edge)) => {
            if let Some(key) = writing.key_id(key) {
                writing.remove_edge_property(edge, key).unwrap();
            }
        }
        (7, _, _, Some(edge)) if edges.len() > 20 => writing.remove_edge(edge).unwrap(),
        (8, _, _, Some(edge)) => writing.set_edge_property(edge, key, value).unwrap(),
        (which, Some(vertex), ..) => {
            let cardinality = Cardinality::ALL[which as usize % 3];
            writing.set_vertex_property(vertex, key, value, cardinality, None).unwrap();
        }
    }
}

fn definitions() -> Vec<IndexDefinition> {
    use ElementKind::{Edge, Vertex};
    use IndexKind::{Hash, Ordered};
    vec![
        IndexDefinition::new(Vertex, None, &["a"], Hash),
        IndexDefinition::new(Vertex, Some("x"), &["b"], Hash),
        IndexDefinition::new(Vertex, None, &["a"], Ordered),
        IndexDefinition::new(Vertex, Some("y"), &["b"], Ordered),
        IndexDefinition::new(Vertex, Some("x"), &["a", "b"], Ordered),
        IndexDefinition::new(Vertex, None, &["c", "a", "b"], Ordered),
        IndexDefinition::new(Edge, None, &["a"], Hash),
        IndexDefinition::new(Edge, Some("x"), &["a"], Ordered),
        IndexDefinition::new(Edge, None, &["b", "a"], Ordered),
    ]
}

fn seed() -> u64 {
    std::env::var("FICUS_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7)
}

#[test]
fn every_index_agrees_with_a_scan() {
    let seed = seed();
    println!("FICUS_TEST_SEED={seed}");
    for round in 0..12 {
        let mut random = Seeded::new(seed * 1000 + round);
        let disk = SimulatedDisk::new();
        let mut store = open(&disk);
        let mut graph: Arc<Graph> = store.create_graph("g").unwrap();
        let mut left = definitions();
        while !left.is_empty() {
            for _ in 0..2 {
                let definition = left.swap_remove(random.below(left.len() as u64) as usize);
                graph.define_index(&definition).unwrap();
                graph.define_index(&definition).unwrap();
                if left.is_empty() {
                    break;
                }
            }
            let mut writing = graph.begin();
            for _ in 0..40 {
                change(&mut writing, &mut random);
            }
            ask(&writing, &mut random);
            writing.commit().unwrap();
            graph.snapshot().check_invariants().unwrap();
            // Entries are in pages, in files, in files of a base that is older than the index, and read again.
            match random.below(6) {
                0 => store.consolidate().unwrap(),
                1 => store.checkpoint().unwrap(),
                2 => {
                    store.close().unwrap();
                    (store, graph) = reopen(&disk);
                }
                _ => {}
            }
        }
        for _ in 0..20 {
            ask(&graph.snapshot(), &mut random);
        }
        store.consolidate().unwrap();
        graph.snapshot().check_invariants().unwrap();
        for _ in 0..10 {
            let mut writing = graph.begin();
            for _ in 0..10 {
                change(&mut writing, &mut random);
            }
            writing.commit().unwrap();
            ask(&graph.snapshot(), &mut random);
            if random.below(4) == 0 {
                // With what the log has behind the checkpoint; a transaction reads its own writes above the files.
                (store, graph) = reopen(&disk.crash(random.number()));
                graph.snapshot().check_invariants().unwrap();
                let mut writing = graph.begin();
                for _ in 0..10 {
                    change(&mut writing, &mut random);
                }
                ask(&writing, &mut random);
            }
        }
        graph.snapshot().check_invariants().unwrap();
        drop(store);
    }
}

fn open(disk: &SimulatedDisk) -> Arc<Store> {
    Store::open(StoreOptions::default(), disk.environment()).unwrap()
}

fn reopen(disk: &SimulatedDisk) -> (Arc<Store>, Arc<Graph>) {
    let store = open(disk);
    let graph = store.graph("g").unwrap();
    (store, graph)
}

#[test]
fn an_ordered_scan_goes_both_ways_in_the_order_of_values() {
    let graph = Store::in_memory().create_graph("g").unwrap();
    graph.define_index(&IndexDefinition::new(ElementKind::Vertex, None, &["a"], IndexKind::Ordered)).unwrap();
    let mut writing = graph.begin();
    for number in [3, 1, 2, 1] {
        let vertex = writing.add_vertex("v", None).unwrap();
        writing.set_vertex_property(vertex, "a", Value::Int(number), Cardinality::Single, None).unwrap();
    }
    writing.commit().unwrap();
    let snapshot = graph.snapshot();
    let read = |descending| {
        let (mut cursor, mut found) = (IndexCursor::default(), Vec::new());
        let query = IndexQuery { index: 0, equal: Vec::new(), test: IndexTest::Any, descending };
        while snapshot.scan_index(&query, &mut cursor, 1, &mut found) {}
        found
    };
    assert_eq!(read(false), [1, 3, 2, 0]);
    assert_eq!(read(true), [0, 2, 3, 1]);
}

#[test]
fn what_can_be_no_index_is_refused() {
    let graph = Store::in_memory().create_graph("g").unwrap();
    let refused = |definition: IndexDefinition, expected: &str| {
        let error = graph.define_index(&definition).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    let vertex = ElementKind::Vertex;
    refused(IndexDefinition::new(vertex, None, &[], IndexKind::Ordered), "1 to 8 keys");
    refused(IndexDefinition::new(vertex, None, &["a", "b"], IndexKind::Hash), "a hash index has one key");
    refused(IndexDefinition::new(vertex, None, &["a", "a"], IndexKind::Ordered), "twice");
    refused(IndexDefinition::new(vertex, Some(""), &["a"], IndexKind::Hash), "a label has 1 to");
    let index = IndexDefinition::new(vertex, None, &["a"], IndexKind::Hash);
    graph.define_index(&index).unwrap();
    refused(index.clone().unique(), "there is an index of this name");
    refused(index.clone().named("other"), "the same index under the name");
    assert_eq!(graph.drop_index("other").unwrap_err().to_string(), "there is no index named 'other'");
    graph.drop_index(&index.name).unwrap();
    assert!(graph.indexes().is_empty());
}
