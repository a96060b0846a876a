//! Random changes around a few vertices, some with many edges; the edges between any two held against all that there are.

use super::*;
use crate::simulated_disk::{Seeded, SimulatedDisk};
use crate::test_store::open;
use crate::{EdgeRecord, HalfEdgeCursor};

const LABELS: [&str; 3] = ["knows", "likes", "follows"];

fn label_of(random: &mut Seeded) -> &'static str {
    LABELS[random.below(3) as usize]
}

/// Reads in pieces of so many looks.
fn read(
    snapshot: &Snapshot,
    (vertex, direction, other): (VertexId, Direction, VertexId),
    labels: &[LabelId],
    looks: usize,
) -> Vec<HalfEdge> {
    let (mut cursor, mut found, mut calls) = (BetweenCursor::default(), Vec::new(), 0);
    while snapshot.half_edges_to(vertex, direction, labels, other, &mut cursor, looks, &mut found) {
        calls += 1;
        assert!(calls < 20_000, "it does not end");
    }
    found
}

fn check(snapshot: &Snapshot, vertices: &[VertexId], random: &mut Seeded) {
    let label = |name: &&str| snapshot.label_id(name);
    let mut all: Vec<LabelId> = LABELS.iter().filter_map(label).collect();
    if random.below(2) == 0 {
        all.reverse();
    }
    let twice: Vec<LabelId> = all.iter().take(2).chain(all.iter().take(1)).copied().collect();
    let lists = [Vec::new(), all.iter().take(1).copied().collect(), twice, all];
    for labels in lists {
        for _ in 0..12 {
            let pair = [0, 1].map(|_| vertices[random.below(vertices.len() as u64) as usize]);
            for direction in [Direction::Out, Direction::In, Direction::Both] {
                let mut expected = Vec::new();
                let mut cursor = HalfEdgeCursor::default();
                snapshot.half_edges(pair[0], direction, &labels, &mut cursor, usize::MAX, &mut expected);
                expected.retain(|half_edge| half_edge.neighbour == pair[1]);
                for looks in [1 + random.below(40) as usize, usize::MAX] {
                    let found = read(snapshot, (pair[0], direction, pair[1]), &labels, looks);
                    assert_eq!(found, expected, "{pair:?} {direction:?} {labels:?} {looks} looks");
                }
                if let (Direction::Out, [] | [_]) = (direction, labels.as_slice()) {
                    let edges: Vec<EdgeId> = expected.iter().map(|half_edge| half_edge.edge).collect();
                    let only = labels.first().copied();
                    assert_eq!(snapshot.edges_between(pair[0], pair[1], only), edges);
                    assert_eq!(snapshot.edge_between(pair[0], pair[1], only), edges.first().copied());
                }
            }
        }
    }
}

fn run(seed: u64) {
    let mut random = Seeded::new(seed);
    let mut disk = SimulatedDisk::new();
    let (mut store, mut graph) = open(&disk);
    let mut writing = graph.begin();
    let mut vertices: Vec<VertexId> = (0..8).map(|_| writing.add_vertex("v", None).unwrap()).collect();
    let mut edges: Vec<EdgeId> = Vec::new();
    // The first two are at most ends, so that lists are of blocks and of pages, and parts of a list.
    let end = |random: &mut Seeded, vertices: &[VertexId]| match random.below(3) {
        0 => vertices[random.below(2) as usize],
        _ => vertices[random.below(vertices.len() as u64) as usize],
    };
    for _ in 0..60 {
        match random.below(16) {
            0..=7 => {
                for _ in 0..1 + random.below(40) {
                    let (out, in_) = (end(&mut random, &vertices), end(&mut random, &vertices));
                    edges.push(writing.add_edge(label_of(&mut random), out, in_, None).unwrap());
                }
            }
            8..=9 if !edges.is_empty() => {
                for _ in 0..1 + random.below(30) {
                    let place = random.below(edges.len() as u64) as usize;
                    writing.remove_edge(edges[place]).unwrap();
                }
            }
            10 if !edges.is_empty() => {
                let edge = edges[random.below(edges.len() as u64) as usize];
                if writing.edge_exists(edge) {
                    writing.set_edge_property(edge, "w", ficus_model::Value::Int(1)).unwrap();
                }
            }
            11 if random.below(4) == 0 => {
                let place = random.below(vertices.len() as u64) as usize;
                let gone = std::mem::replace(&mut vertices[place], writing.add_vertex("v", None).unwrap());
                writing.remove_vertex(gone).unwrap();
            }
            what => {
                check(&writing, &vertices, &mut random);
                writing.commit().unwrap();
                match what {
                    12 | 13 => store.consolidate().unwrap(),
                    14 => {
                        store.checkpoint().unwrap();
                        disk = disk.crash(seed);
                        (store, graph) = open(&disk);
                    }
                    _ => {}
                }
                check(&graph.snapshot(), &vertices, &mut random);
                writing = graph.begin();
            }
        }
    }
    check(&writing, &vertices, &mut random);
}

#[test]
fn edges_between_two_agree_with_looking_at_all() {
    for seed in 0..40 {
        let outcome = std::panic::catch_unwind(|| run(seed));
        assert!(outcome.is_ok(), "seed {seed} fails; repeat it with run({seed})");
    }
}

#[test]
fn the_shorter_list_is_read() {
    let (store, graph) = open(&SimulatedDisk::new());
    let mut writing = graph.begin();
    let hub = writing.add_vertex("v", None).unwrap();
    let others: Vec<VertexId> = (0..3_000).map(|_| writing.add_vertex("v", None).unwrap()).collect();
    let edges: Vec<EdgeId> = others.iter().map(|other| writing.add_edge("knows", hub, *other, None).unwrap()).collect();
    writing.commit().unwrap();
    for consolidated in [false, true] {
        if consolidated {
            store.consolidate().unwrap();
        }
        let snapshot = graph.snapshot();
        let label = snapshot.label_id("knows").unwrap();
        for (direction, from, to) in [(Direction::Out, hub, others[2_900]), (Direction::In, others[2_900], hub)] {
            for labels in [vec![], vec![label]] {
                let (mut cursor, mut found) = (BetweenCursor::default(), Vec::new());
                let more = snapshot.half_edges_to(from, direction, &labels, to, &mut cursor, 2, &mut found);
                assert_eq!((more, found.len()), (false, 1), "{direction:?} {labels:?} {consolidated}");
                let record = snapshot.edge(found[0].edge);
                assert_eq!(found[0].edge, edges[2_900]);
                assert_eq!(record, Some(EdgeRecord { label, out: hub, in_: others[2_900] }));
            }
        }
    }
}

/// The list that is read stays the same, whatever is written between two pieces.
#[test]
fn what_is_written_meanwhile_does_not_change_the_list_that_is_read() {
    let (_store, graph) = open(&SimulatedDisk::new());
    let mut writing = graph.begin();
    let [a, b, c] = [0; 3].map(|_| writing.add_vertex("v", None).unwrap());
    let mut edges: Vec<EdgeId> = (0..10).map(|_| writing.add_edge("knows", a, b, None).unwrap()).collect();
    (0..5).for_each(|_| assert!(writing.add_edge("knows", a, c, None).is_ok()));
    let (mut cursor, mut found) = (BetweenCursor::default(), Vec::new());
    assert!(writing.half_edges_to(a, Direction::Out, &[], b, &mut cursor, 4, &mut found));
    (0..50).for_each(|_| assert!(writing.add_edge("knows", c, b, None).is_ok()));
    edges.push(writing.add_edge("knows", a, b, None).unwrap());
    while writing.half_edges_to(a, Direction::Out, &[], b, &mut cursor, 4, &mut found) {}
    assert_eq!(found.into_iter().map(|own| own.edge).collect::<Vec<_>>(), edges);
}
