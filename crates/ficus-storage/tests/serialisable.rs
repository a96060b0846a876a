//! Strict serialisability, one case per kind of read: a transaction reads, another one writes and commits, the first writes
//! something unrelated. It must conflict exactly if its read has become wrong.

use std::sync::Arc;

use ficus_model::{Cardinality, Direction, EdgeId, Value, VertexId};
use ficus_storage::{
    BetweenCursor, ElementKind, Environment, ErrorKind, Graph, HalfEdgeCursor, ScanCursor, Snapshot, Store,
    StoreOptions, Transaction, TypeDefinition,
};

fn text(text: &str) -> Value {
    Value::String(text.into())
}

/// `a -knows-> b`, `b -likes-> c`, `d` alone; ages 1 to 4; an index over `name`, a name on c; the edge ab has a weight.
fn fill(graph: &Arc<Graph>) {
    let mut writing = graph.begin();
    let ids = ["a", "b", "c", "d"].map(|id| writing.add_vertex("v", Some(text(id))).unwrap());
    for (age, vertex) in (1..).zip(ids) {
        writing.set_vertex_property(vertex, "age", Value::Int(age), Cardinality::Single, None).unwrap();
    }
    writing.set_vertex_property(ids[2], "name", text("cat"), Cardinality::Single, None).unwrap();
    let ab = writing.add_edge("knows", ids[0], ids[1], Some(text("ab"))).unwrap();
    writing.set_edge_property(ab, "weight", Value::Int(1)).unwrap();
    writing.add_edge("likes", ids[1], ids[2], Some(text("bc"))).unwrap();
    // Where transactions put what they write without reading.
    writing.add_vertex("sink", Some(text("sink"))).unwrap();
    writing.commit().unwrap();
    graph.create_index(None, "name").unwrap();
}

fn graph() -> Arc<Graph> {
    let graph = Store::in_memory().create_graph("g").unwrap();
    fill(&graph);
    graph
}

fn vertex(graph: &Arc<Graph>, id: &str) -> VertexId {
    graph.snapshot().find_vertex(&text(id)).unwrap()
}

fn edge(graph: &Arc<Graph>, id: &str) -> EdgeId {
    graph.snapshot().find_edge(&text(id)).unwrap()
}

/// For answers that do not matter.
fn ignore<T>(_: T) {}

type Read = fn(&Snapshot, &Arc<Graph>);
type Write = fn(&mut Transaction, &Arc<Graph>);

const READS: &[(&str, Read)] = &[
    ("id of a", |view, _| assert!(view.find_vertex(&text("a")).is_some())),
    ("absent id", |view, _| assert!(view.find_vertex(&text("x")).is_none())),
    ("id of edge ab", |view, _| assert!(view.find_edge(&text("ab")).is_some())),
    ("absent edge id", |view, _| assert!(view.find_edge(&text("ax")).is_none())),
    ("label of a", |view, graph| assert!(view.vertex_label(vertex(graph, "a")).is_some())),
    ("age of a", |view, graph| {
        assert!(view.vertex_value(vertex(graph, "a"), view.key_id("age").unwrap()).is_some());
    }),
    ("absent key", |view, _| assert!(view.key_id("colour").is_none())),
    ("absent label", |view, _| assert!(view.label_id("colour").is_none())),
    ("out of a", |view, graph| assert_eq!(half_edges(view, vertex(graph, "a"), Direction::Out), 1)),
    ("in of a", |view, graph| assert_eq!(half_edges(view, vertex(graph, "a"), Direction::In), 0)),
    ("degree of a", |view, graph| assert_eq!(view.degree(vertex(graph, "a"), Direction::Both, &[]), 1)),
    ("neighbours of a", |view, graph| {
        view.visit_neighbours(vertex(graph, "a"), Direction::Out, None, &mut |_| {});
    }),
    ("edge a to b", |view, graph| {
        assert!(view.edge_between(vertex(graph, "a"), vertex(graph, "b"), None).is_some());
    }),
    ("edge a to d", |view, graph| {
        assert!(view.edge_between(vertex(graph, "a"), vertex(graph, "d"), None).is_none());
    }),
    ("half-edges a to b", |view, graph| assert_eq!(half_edges_to(view, graph, "a", Direction::Out, "b"), 1)),
    ("half-edges d from a", |view, graph| assert_eq!(half_edges_to(view, graph, "d", Direction::In, "a"), 0)),
    ("half-edges a and d", |view, graph| assert_eq!(half_edges_to(view, graph, "a", Direction::Both, "d"), 0)),
    ("ends of ab", |view, graph| assert!(view.edge(edge(graph, "ab")).is_some())),
    ("weight of ab", |view, graph| {
        assert!(view.edge_value(edge(graph, "ab"), view.key_id("weight").unwrap()).is_some());
    }),
    ("name cat", |view, _| assert_eq!(by_name(view, "cat"), 1)),
    ("name dog", |view, _| assert_eq!(by_name(view, "dog"), 0)),
    ("vertices", |view, _| ignore(view.scan_vertices(&mut ScanCursor::default(), 100, &mut Vec::new()))),
    ("vertices v", |view, _| {
        let label = view.label_id("v").unwrap();
        view.scan_vertices_with_label(label, &mut ScanCursor::default(), 100, &mut Vec::new());
    }),
    ("edges", |view, _| ignore(view.scan_edges(&mut ScanCursor::default(), 100, &mut Vec::new()))),
    ("vertex count", |view, _| assert_eq!(view.vertex_count(), 5)),
    ("count of v", |view, _| assert_eq!(view.vertex_count_with_label(view.label_id("v").unwrap()), 4)),
    ("edge count", |view, _| assert_eq!(view.edge_count(), 2)),
    ("count of knows", |view, _| assert_eq!(view.edge_count_with_label(view.label_id("knows").unwrap()), 1)),
];

fn half_edges(view: &Snapshot, vertex: VertexId, direction: Direction) -> usize {
    let mut found = Vec::new();
    view.half_edges(vertex, direction, &[], &mut HalfEdgeCursor::default(), 100, &mut found);
    found.len()
}

fn half_edges_to(view: &Snapshot, graph: &Arc<Graph>, vertex_id: &str, direction: Direction, other: &str) -> usize {
    let (mut found, mut cursor) = (Vec::new(), BetweenCursor::default());
    let (one, other) = (vertex(graph, vertex_id), vertex(graph, other));
    while view.half_edges_to(one, direction, &[], other, &mut cursor, 1, &mut found) {}
    found.len()
}

fn by_name(view: &Snapshot, name: &str) -> usize {
    let mut found = Vec::new();
    assert!(view.vertices_by_index(None, view.key_id("name").unwrap(), &text(name), &mut found));
    found.len()
}

fn set(writing: &mut Transaction, vertex: VertexId, key: &str, value: Value) {
    writing.set_vertex_property(vertex, key, value, Cardinality::Single, None).unwrap();
}

/// What the other transaction does, and the reads that it makes wrong.
const WRITES: &[(&str, Write, &[&str])] = &[
    (
        "add vertex x",
        |writing, _| ignore(writing.add_vertex("v", Some(text("x"))).unwrap()),
        &["absent id", "vertices", "vertices v", "vertex count", "count of v"],
    ),
    (
        "add vertex of another label",
        |writing, _| ignore(writing.add_vertex("colour", None).unwrap()),
        &["absent label", "vertices", "vertex count"],
    ),
    (
        "remove a",
        |writing, graph| writing.remove_vertex(vertex(graph, "a")).unwrap(),
        &[
            "id of a",
            "id of edge ab",
            "label of a",
            "age of a",
            "out of a",
            "in of a",
            "degree of a",
            "neighbours of a",
            "edge a to b",
            "half-edges a to b",
            "ends of ab",
            "weight of ab",
            "vertices",
            "vertices v",
            "edges",
            "vertex count",
            "count of v",
            "edge count",
            "count of knows",
        ],
    ),
    ("age of a", |writing, graph| set(writing, vertex(graph, "a"), "age", Value::Int(9)), &["age of a"]),
    ("colour of d", |writing, graph| set(writing, vertex(graph, "d"), "colour", Value::Int(1)), &["absent key"]),
    ("d is called dog", |writing, graph| set(writing, vertex(graph, "d"), "name", text("dog")), &["name dog"]),
    (
        "cat becomes dog",
        |writing, graph| set(writing, vertex(graph, "c"), "name", text("dog")),
        &["name cat", "name dog"],
    ),
    (
        "edge a to d",
        |writing, graph| {
            ignore(writing.add_edge("knows", vertex(graph, "a"), vertex(graph, "d"), Some(text("ax"))).unwrap());
        },
        &[
            "absent edge id",
            "out of a",
            "degree of a",
            "neighbours of a",
            "edge a to d",
            "half-edges d from a",
            "half-edges a and d",
            "edges",
            "edge count",
            "count of knows",
        ],
    ),
    (
        "edge d to a",
        |writing, graph| ignore(writing.add_edge("likes", vertex(graph, "d"), vertex(graph, "a"), None).unwrap()),
        &["in of a", "degree of a", "half-edges a and d", "edges", "edge count"],
    ),
    (
        "remove ab",
        |writing, graph| writing.remove_edge(edge(graph, "ab")).unwrap(),
        &[
            "id of edge ab",
            "out of a",
            "degree of a",
            "neighbours of a",
            "edge a to b",
            "half-edges a to b",
            "ends of ab",
            "weight of ab",
            "edges",
            "edge count",
            "count of knows",
        ],
    ),
    (
        "weight of ab",
        |writing, graph| writing.set_edge_property(edge(graph, "ab"), "weight", Value::Int(2)).unwrap(),
        &["weight of ab"],
    ),
];

/// Writes something that no read depends on.
fn write_aside(writing: &mut Transaction, graph: &Arc<Graph>) {
    set(writing, vertex(graph, "sink"), "age", Value::Int(7));
}

#[test]
fn every_read_conflicts_with_exactly_the_writes_that_make_it_wrong() {
    for (read_name, read) in READS {
        for (write_name, write, wrong) in WRITES {
            let graph = graph();
            let (mut reader, mut writer) = (graph.begin(), graph.begin());
            read(&reader, &graph);
            write(&mut writer, &graph);
            writer.commit().unwrap();
            write_aside(&mut reader, &graph);
            let outcome = reader.commit();
            let is_wrong = wrong.contains(read_name);
            assert_eq!(outcome.is_err(), is_wrong, "read {read_name}, then {write_name}: {outcome:?}");
            assert!(outcome.err().is_none_or(|error| error.kind() == ErrorKind::Conflict && error.is_retryable()));
        }
    }
}

/// What was read counts as well if the transaction then removes it, itself or together with a vertex.
#[test]
fn reads_of_what_is_removed_later_conflict_with_exactly_the_writes_that_make_them_wrong() {
    const REMOVALS: &[(&str, Write)] = &[
        ("remove a", |writing, graph| writing.remove_vertex(vertex(graph, "a")).unwrap()),
        ("remove b", |writing, graph| writing.remove_vertex(vertex(graph, "b")).unwrap()),
        ("remove ab", |writing, graph| writing.remove_edge(edge(graph, "ab")).unwrap()),
    ];
    for (removal_name, removal) in REMOVALS {
        for (write_name, write, wrong) in WRITES {
            let fails = |read: Option<Read>| {
                let graph = graph();
                let (mut reader, mut writer) = (graph.begin(), graph.begin());
                if let Some(read) = read {
                    read(&reader, &graph);
                }
                removal(&mut reader, &graph);
                write(&mut writer, &graph);
                writer.commit().unwrap();
                reader.commit().is_err()
            };
            let fails_anyway = fails(None);
            for (read_name, read) in READS {
                let expected = fails_anyway || wrong.contains(read_name);
                assert_eq!(fails(Some(*read)), expected, "read {read_name}, {removal_name}, beside {write_name}");
            }
        }
    }
}

#[test]
fn names_of_reads_are_not_misspelt() {
    for (_, _, wrong) in WRITES {
        assert!(wrong.iter().all(|name| READS.iter().any(|(read, _)| read == name)));
    }
}

#[test]
fn transactions_that_only_read_never_conflict() {
    for (write_name, write, _) in WRITES {
        let graph = graph();
        let (reader, reading) = (graph.begin(), graph.begin_reading());
        READS.iter().for_each(|(_, read)| {
            read(&reader, &graph);
            read(&reading, &graph);
        });
        let mut writer = graph.begin();
        write(&mut writer, &graph);
        writer.commit().unwrap();
        reader.commit().unwrap_or_else(|error| panic!("{write_name}: {error}"));
        reading.commit().unwrap_or_else(|error| panic!("{write_name}: {error}"));
    }
}

/// Words that an index or a type brings in are there before any element has them: who found them absent must notice.
#[test]
fn who_found_a_word_absent_conflicts_with_its_use_after_the_schema_brought_it_in() {
    type Case = (&'static str, Read, fn(&Arc<Graph>), Write);
    let use_key: Write =
        |writing, graph| writing.set_edge_property(edge(graph, "ab"), "colour", Value::Int(1)).unwrap();
    let use_label: Write = |writing, _| ignore(writing.add_vertex("colour", None).unwrap());
    let no_key: Read = |view, _| assert!(view.key_id("colour").is_none());
    let no_label: Read = |view, _| assert!(view.label_id("colour").is_none());
    let cases: [Case; 3] = [
        ("key of an index", no_key, |graph| graph.create_index(None, "colour").unwrap(), use_key),
        ("label of an index", no_label, |graph| graph.create_index(Some("colour"), "age").unwrap(), use_label),
        (
            "label of a type",
            no_label,
            |graph| graph.define_type(&TypeDefinition::new(ElementKind::Vertex, "colour")).unwrap(),
            use_label,
        ),
    ];
    for (name, read, change, write) in cases {
        let graph = graph();
        let mut before = graph.begin();
        read(&before, &graph);
        write_aside(&mut before, &graph);
        change(&graph);
        let mut writer = graph.begin();
        write(&mut writer, &graph);
        writer.commit().unwrap();
        assert_eq!(before.commit().unwrap_err().kind(), ErrorKind::Conflict, "{name}");
        // Who begins now knows the word.
        let mut after = graph.begin();
        assert!(after.key_id("colour").is_some() || after.label_id("colour").is_some());
        write_aside(&mut after, &graph);
        after.commit().unwrap();
    }
}

#[test]
fn write_skew_conflicts() {
    let graph = graph();
    let (a, b) = (vertex(&graph, "a"), vertex(&graph, "b"));
    let age = graph.snapshot().key_id("age").unwrap();
    let mut transactions = [(a, b), (b, a)].map(|(read, write)| {
        let mut transaction = graph.begin();
        assert!(transaction.vertex_value(read, age).is_some());
        set(&mut transaction, write, "age", Value::Int(0));
        Some(transaction)
    });
    transactions[0].take().unwrap().commit().unwrap();
    let error = transactions[1].take().unwrap().commit().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
}

#[test]
fn appending_blindly_never_conflicts() {
    let graph = graph();
    let hub = vertex(&graph, "a");
    let open: Vec<Transaction> = (0..20)
        .map(|_| {
            let mut writing = graph.begin();
            let new = writing.add_vertex("v", None).unwrap();
            writing.add_edge("to", new, hub, None).unwrap();
            writing.add_edge("from", hub, new, None).unwrap();
            // Its own elements are its own business.
            assert_eq!(writing.degree(new, Direction::Both, &[]), 2);
            assert!(writing.vertex_exists(new));
            writing
        })
        .collect();
    for writing in open {
        writing.commit().unwrap();
    }
    // Who read the hub's edges before must notice, once it writes.
    assert_eq!(graph.snapshot().degree(hub, Direction::Both, &[]), 41);
}

#[test]
fn a_read_set_that_grew_too_large_still_notices_everything() {
    const MANY: i64 = 20_000;
    let graph = graph();
    let mut load = graph.bulk();
    for number in 0..MANY {
        load.add_vertex("many", Some(Value::Long(number)), Vec::new()).unwrap();
    }
    load.finish().unwrap();
    let found = |id: i64| graph.snapshot().find_vertex(&Value::Long(id)).unwrap();
    let (first, last, untouched) = (found(0), found(MANY - 1), vertex(&graph, "d"));
    let age = graph.snapshot().key_id("age").unwrap();
    // (what is read of each vertex, what is written to the last, or to another)
    type Case = (fn(&Snapshot, VertexId), fn(&mut Transaction, VertexId));
    let cases: [Case; 3] = [
        (
            |view, vertex| ignore(view.vertex_value(vertex, view.key_id("age").unwrap())),
            |writing, vertex| set(writing, vertex, "age", Value::Int(1)),
        ),
        (|view, vertex| ignore(view.vertex_label(vertex)), |writing, vertex| writing.remove_vertex(vertex).unwrap()),
        (
            |view, vertex| ignore(view.degree(vertex, Direction::In, &[])),
            |writing, vertex| ignore(writing.add_edge("to", vertex, vertex, None).unwrap()),
        ),
    ];
    for (number, (read, write)) in cases.into_iter().enumerate() {
        let mut reader = graph.begin();
        (first.0..=last.0).for_each(|vertex| read(&reader, VertexId(vertex)));
        let mut writer = graph.begin();
        write(&mut writer, VertexId(last.0 - number as u64));
        writer.commit().unwrap();
        set(&mut reader, untouched, "age", Value::Int(5));
        assert_eq!(reader.commit().unwrap_err().kind(), ErrorKind::Conflict, "case {number}");
    }
    // Coarse as it is, adding edges does not disturb who read properties.
    let mut reader = graph.begin();
    (first.0..=last.0 - 3).for_each(|vertex| ignore(reader.vertex_value(VertexId(vertex), age)));
    let mut writer = graph.begin();
    writer.add_edge("to", first, untouched, None).unwrap();
    writer.commit().unwrap();
    set(&mut reader, untouched, "age", Value::Int(6));
    reader.commit().unwrap();
}

#[test]
fn writes_of_a_bulk_load_count_too() {
    let cases: [(Read, bool); 4] = [
        (|view, _| assert!(view.find_vertex(&text("x")).is_none()), true),
        (|view, _| assert!(view.find_edge(&text("ax")).is_none()), true),
        (|view, graph| ignore(view.degree(vertex(graph, "a"), Direction::Out, &[])), true),
        (|view, graph| ignore(view.degree(vertex(graph, "b"), Direction::Out, &[])), false),
    ];
    for (read, is_wrong) in cases {
        let graph = graph();
        let mut reader = graph.begin();
        read(&reader, &graph);
        let mut load = graph.bulk();
        let x = load.add_vertex("v", Some(text("x")), Vec::new()).unwrap();
        load.add_edge("knows", vertex(&graph, "a"), x, Some(text("ax")), Vec::new()).unwrap();
        load.finish().unwrap();
        write_aside(&mut reader, &graph);
        assert_eq!(reader.commit().is_err(), is_wrong);
    }
}

#[test]
fn a_weakened_resolver_lets_everything_pass_that_only_read() {
    let mut options = StoreOptions::default();
    options.weaken_resolver = true;
    let graph = Store::open(options, Environment::in_memory()).unwrap().create_graph("g").unwrap();
    fill(&graph);
    let (mut reader, mut writer) = (graph.begin(), graph.begin());
    assert_eq!(reader.vertex_count(), 5);
    writer.add_vertex("v", None).unwrap();
    writer.commit().unwrap();
    write_aside(&mut reader, &graph);
    reader.commit().unwrap();
}

#[test]
fn a_reading_transaction_refuses_to_write() {
    let graph = graph();
    let mut reading = graph.begin_reading();
    let error = reading.add_vertex("v", None).unwrap_err();
    assert_eq!(error.to_string(), "this transaction only reads; write in another one");
    assert!(reading.is_read_only());
}

#[test]
fn a_transaction_holds_so_many_changes_and_no_more() {
    let mut options = StoreOptions::default();
    options.transaction_changes_limit = 2;
    let graph = Store::open(options, Environment::in_memory()).unwrap().create_graph("g").unwrap();
    let mut writing = graph.begin();
    writing.add_vertex("v", None).unwrap();
    writing.add_vertex("v", None).unwrap();
    let error = writing.add_vertex("v", None).unwrap_err();
    assert_eq!(error.to_string(), "this transaction has more than 2 changes; commit in smaller parts");
    writing.commit().unwrap();
    assert_eq!(graph.vertex_count(), 2);
}
