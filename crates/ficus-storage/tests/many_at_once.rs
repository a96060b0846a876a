//! What is read of many vertices at once, against the same of one after the other: hops, and filters by label and by number. Graphs have long
//! stretches of one label and mixed ones, a base and changes behind it.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::Arc;

use ficus_model::{Cardinality, Direction, LabelId, Value, VertexId};
use ficus_storage::simulated_disk::Seeded;
use ficus_storage::{Environment, Graph, HalfEdgeCursor, NumberRange, Snapshot, Store, StoreOptions};

const LABELS: [&str; 4] = ["person", "post", "comment", "tag"];

struct Chance(RefCell<Seeded>);

impl Chance {
    fn below(&self, end: usize) -> usize {
        (self.0.borrow_mut().number() % end as u64) as usize
    }
}

fn add_vertices(graph: &Arc<Graph>, chance: &Chance, count: usize, stretch: usize) -> Vec<VertexId> {
    let mut writing = graph.begin();
    let mut label = 0;
    let made = (0..count).map(|number| {
        if number % stretch == 0 {
            label = chance.below(LABELS.len());
        }
        let vertex = writing.add_vertex(LABELS[label], None).unwrap();
        if chance.below(9) > 0 {
            let value = Value::Long(chance.below(100) as i64);
            writing.set_vertex_property(vertex, "number", value, Cardinality::Single, None).unwrap();
        }
        vertex
    });
    let made = made.collect();
    writing.commit().unwrap();
    made
}

fn add_edges(graph: &Arc<Graph>, chance: &Chance, vertices: &[VertexId], count: usize) {
    let mut writing = graph.begin();
    for _ in 0..count {
        // Few have most.
        let pick = |chance: &Chance| vertices[chance.below(chance.below(vertices.len()) + 1)];
        let label = ["knows", "likes", "wrote"][chance.below(3)];
        writing.add_edge(label, pick(chance), pick(chance), None).unwrap();
    }
    writing.commit().unwrap();
}

/// Changes edges, values and vertices; gives the vertices that are left.
fn change(graph: &Arc<Graph>, chance: &Chance, vertices: &[VertexId]) -> Vec<VertexId> {
    let mut writing = graph.begin();
    let mut left = Vec::new();
    for vertex in vertices {
        match chance.below(12) {
            0 => writing.remove_vertex(*vertex).unwrap(),
            1 => {
                let value = Value::Long(chance.below(100) as i64);
                writing.set_vertex_property(*vertex, "number", value, Cardinality::Single, None).unwrap();
                left.push(*vertex);
            }
            2 => {
                let mut edges = Vec::new();
                writing.half_edges(*vertex, Direction::Out, &[], &mut HalfEdgeCursor::default(), 2, &mut edges);
                for half_edge in edges {
                    writing.remove_edge(half_edge.edge).unwrap();
                }
                left.push(*vertex);
            }
            _ => left.push(*vertex),
        }
    }
    writing.commit().unwrap();
    left
}

fn one_by_one(
    snapshot: &Snapshot,
    vertices: &[VertexId],
    direction: Direction,
    labels: &[LabelId],
) -> Vec<Vec<VertexId>> {
    let neighbours = |vertex: &VertexId| {
        let mut found = Vec::new();
        snapshot.copy_neighbours(*vertex, direction, labels, &mut HalfEdgeCursor::default(), usize::MAX, &mut found);
        found
    };
    vertices.iter().map(neighbours).collect()
}

fn together(
    snapshot: &Snapshot,
    vertices: &[VertexId],
    direction: Direction,
    labels: &[LabelId],
    asked: &mut usize,
) -> Vec<Vec<VertexId>> {
    let mut all: Vec<Vec<VertexId>> = Vec::new();
    let visited = snapshot.visit_hops(vertices, direction, labels, |place, ends| {
        assert_eq!(place, all.len(), "one after the other");
        match ends {
            Some(ends) => {
                let mut own = Vec::new();
                ends.into_iter().for_each(|slice| slice.for_each(|neighbour| own.push(neighbour)));
                all.push(own);
            }
            None => {
                *asked += 1;
                all.extend(one_by_one(snapshot, &vertices[place..=place], direction, labels));
            }
        }
        ControlFlow::Continue(())
    });
    assert_eq!(visited, vertices.len());
    all
}

fn check(graph: &Arc<Graph>, chance: &Chance, vertices: &[VertexId]) -> usize {
    let snapshot = graph.snapshot();
    let label = |name: &str| snapshot.label_id(name).unwrap();
    let edge_labels = [vec![], vec![label("knows")], vec![label("wrote")], vec![label("knows"), label("likes")]];
    let mut asked = 0;
    for count in [0, 1, 5, 16, 17, 300] {
        let some: Vec<VertexId> = (0..count).map(|_| vertices[chance.below(vertices.len())]).collect();
        for direction in [Direction::Out, Direction::In, Direction::Both] {
            for labels in &edge_labels {
                let expected = one_by_one(&snapshot, &some, direction, labels);
                assert_eq!(
                    together(&snapshot, &some, direction, labels, &mut asked),
                    expected,
                    "{direction:?} {labels:?}"
                );
                let stop = chance.below(count + 1);
                let before = snapshot.visit_hops(&some, direction, labels, |place, _| match place < stop {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                });
                assert_eq!(before, stop);
            }
        }
        for names in [vec!["post"], vec!["person", "tag"], vec!["comment", "post", "tag"]] {
            let labels: Vec<LabelId> = names.iter().filter_map(|name| snapshot.label_id(name)).collect();
            for negated in [false, true] {
                let has = |vertex: &VertexId| labels.contains(&snapshot.vertex_label(*vertex).unwrap()) != negated;
                let mut kept = some.clone();
                if !snapshot.drop_by_label(&labels, negated, &mut kept) {
                    kept.retain(has);
                }
                assert_eq!(kept, some.iter().copied().filter(has).collect::<Vec<_>>(), "{names:?} {negated}");
            }
        }
        let (key, range) = (snapshot.key_id("number").unwrap(), NumberRange { low: 20, high: 60, of_moments: false });
        let fits = |vertex: &VertexId| matches!(snapshot.vertex_value(*vertex, key), Some(Value::Long(number)) if (20..=60).contains(&number));
        let mut kept = some.clone();
        if !snapshot.drop_outside(key, &range, &mut kept) {
            kept.retain(fits);
        }
        assert_eq!(kept, some.iter().copied().filter(fits).collect::<Vec<_>>());
    }
    asked
}

#[test]
#[allow(clippy::print_stdout, reason = "a failed test prints its seed")]
fn many_at_once_are_those_one_by_one() {
    let first = std::env::var("FICUS_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1u64);
    for seed in first..first + 8 {
        println!("FICUS_TEST_SEED={seed}");
        let chance = Chance(RefCell::new(Seeded::new(seed)));
        let mut options = StoreOptions::default();
        options.tablet_bits = [0, 2, 4, 6][seed as usize % 4];
        let store = Store::open(options, Environment::in_memory()).unwrap();
        let graph = store.create_graph("g").unwrap();
        let stretch = [1, 50, 700][chance.below(3)];
        let mut vertices = add_vertices(&graph, &chance, 2003, stretch);
        add_edges(&graph, &chance, &vertices, 8000);
        check(&graph, &chance, &vertices);
        store.consolidate().unwrap();
        check(&graph, &chance, &vertices);
        vertices = change(&graph, &chance, &vertices);
        vertices.extend(add_vertices(&graph, &chance, 100, 3));
        add_edges(&graph, &chance, &vertices, 300);
        assert!(check(&graph, &chance, &vertices) > 0, "some have changed");
        store.consolidate().unwrap();
        check(&graph, &chance, &vertices);
    }
}
