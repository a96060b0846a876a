//! What a user of the store relies on, in small graphs with vertices a to e.

use std::sync::Arc;

use ficus_model::{Cardinality, Direction, EdgeId, LabelId, Value, VertexId};
use ficus_storage::{
    EdgeScanCursor, ElementKind, ErrorKind, Graph, HalfEdgeCursor, ScanCursor, Snapshot, Store, StoreError,
    TypeDefinition,
};

fn text(text: &str) -> Value {
    Value::String(text.into())
}

fn graph() -> Arc<Graph> {
    Store::in_memory().create_graph("g").unwrap()
}

fn neighbours(snapshot: &Snapshot, vertex: VertexId, direction: Direction, labels: &[&str]) -> Vec<u64> {
    let labels: Vec<LabelId> = labels.iter().filter_map(|label| snapshot.label_id(label)).collect();
    // One at a time, so that cursors are tested as well.
    let (mut cursor, mut out) = (HalfEdgeCursor::default(), Vec::new());
    while snapshot.half_edges(vertex, direction, &labels, &mut cursor, 1, &mut out) {}
    let mut at_once = Vec::new();
    assert!(!snapshot.half_edges(vertex, direction, &labels, &mut HalfEdgeCursor::default(), 100, &mut at_once));
    assert_eq!(out, at_once);
    assert_eq!(out.len() as u64, snapshot.degree(vertex, direction, &labels));
    out.iter().map(|half_edge| half_edge.neighbour.0).collect()
}

#[test]
fn what_was_written_in_vain_can_be_freed_in_pieces() {
    const COUNT: usize = 1000;
    let name: Arc<str> = "somebody".into();
    for reads in [true, false] {
        let graph = graph();
        let mut writing = graph.begin();
        for _ in 0..COUNT {
            let vertex = writing.add_vertex("person", None).unwrap();
            if reads {
                let value = Value::String(name.clone());
                writing.set_vertex_property(vertex, "name", value, Cardinality::Single, None).unwrap();
            }
        }
        let mut undone = writing.forget();
        // Those that were read have their rows besides.
        let changes = undone.changes();
        assert!(changes >= if reads { 3 * COUNT } else { COUNT }, "{changes} changes");
        assert!(undone.changes_at_once() < COUNT / 4, "{} at once", undone.changes_at_once());
        let mut parts = vec![undone.split()];
        parts.push(Some(undone));
        assert_eq!(parts.iter().flatten().count(), if reads { 2 } else { parts.iter().flatten().count() });
        let mut calls = 0;
        for part in parts.iter_mut().flatten() {
            while part.free_some(100) == 0 {
                calls += 1;
            }
            assert_eq!((part.changes(), part.free_some(7)), (0, 7));
        }
        assert!(calls > COUNT / 100 / 2, "{calls} calls");
        assert_eq!(Arc::strong_count(&name), 1);
        assert_eq!(graph.snapshot().vertex_count(), 0);
        graph.begin().add_vertex("person", None).unwrap();
    }
}

/// With elements that reach the private root when it is read, and with a declared type, whose elements are there at once.
#[test]
fn going_back_to_a_savepoint_leaves_nothing_of_what_was_written_since() {
    for (is_declared, reads) in [(false, false), (false, true), (true, false), (true, true)] {
        let graph = Store::in_memory().create_graph("g").unwrap();
        if is_declared {
            graph.define_type(&TypeDefinition::new(ElementKind::Vertex, "person")).unwrap();
        }
        let mut writing = graph.begin();
        let [a, b] = [(); 2].map(|()| writing.add_vertex("person", None).unwrap());
        writing.add_edge("knows", a, b, None).unwrap();
        writing.commit().unwrap();

        let mut writing = graph.begin();
        let mut kept = Vec::new();
        for round in 1..4 {
            kept.push(writing.add_vertex("person", None).unwrap());
            writing.add_edge("knows", a, kept[0], None).unwrap();
            if reads {
                assert_eq!((writing.vertex_count(), writing.edge_count()), (2 + round, 1 + round));
            }
            let changes = writing.change_count();
            let savepoint = writing.savepoint();
            let lost = writing.add_vertex("lost", None).unwrap();
            writing.add_edge("loses", lost, b, None).unwrap();
            writing.set_vertex_property(kept[0], "lost", Value::Int(1), Cardinality::Single, None).unwrap();
            writing.remove_vertex(a).unwrap();
            writing.remove_vertex(kept[0]).unwrap();
            drop(writing.roll_back_to(savepoint));
            assert_eq!(writing.change_count(), changes);
        }
        writing.set_vertex_property(kept[0], "name", Value::Int(1), Cardinality::Single, None).unwrap();
        assert_eq!((writing.vertex_count(), writing.edge_count()), (5, 4));
        writing.check_invariants().unwrap();
        writing.commit().unwrap();
        let snapshot = graph.snapshot();
        snapshot.check_invariants().unwrap();
        assert_eq!((snapshot.vertex_count(), snapshot.edge_count()), (5, 4));
        assert!(snapshot.label_id("lost").is_none() && snapshot.key_id("lost").is_none());
        assert_eq!(snapshot.vertex_value(kept[0], snapshot.key_id("name").unwrap()), Some(Value::Int(1)));
    }
}

#[test]
fn a_transaction_sees_its_own_writes_and_others_see_them_after_the_commit() {
    let graph = graph();
    let mut writing = graph.begin();
    let a = writing.add_vertex("person", Some(text("a"))).unwrap();
    let b = writing.add_vertex("person", None).unwrap();
    let edge = writing.add_edge("knows", a, b, None).unwrap();
    writing.set_vertex_property(a, "name", text("ann"), Cardinality::Single, None).unwrap();
    writing.set_edge_property(edge, "since", Value::Int(2020)).unwrap();
    let name = writing.key_id("name").unwrap();
    assert_eq!(writing.vertex_value(a, name), Some(text("ann")));
    assert_eq!(neighbours(&writing, a, Direction::Out, &["knows"]), [b.0]);
    assert_eq!(graph.snapshot().vertex_count(), 0);
    assert_eq!(graph.snapshot().key_id("name"), None);

    let before = graph.snapshot();
    let ts = writing.commit().unwrap();
    let after = graph.snapshot();
    assert_eq!((before.vertex_count(), after.vertex_count(), after.edge_count()), (0, 2, 1));
    assert_eq!(after.commit_ts(), ts);
    assert_eq!(after.vertex_value(a, after.key_id("name").unwrap()), Some(text("ann")));
    assert_eq!(after.edge_value(edge, after.key_id("since").unwrap()), Some(Value::Int(2020)));
    assert_eq!(neighbours(&after, b, Direction::Both, &[]), [a.0]);
    after.check_invariants().unwrap();
}

#[test]
fn integer_ids_are_found_whatever_their_width_and_as_text() {
    let graph = graph();
    let mut writing = graph.begin();
    let one = writing.add_vertex("v", Some(Value::Int(1))).unwrap();
    let two = writing.add_vertex("v", Some(Value::Long(2))).unwrap();
    let text_two = writing.add_vertex("v", Some(text("2"))).unwrap();
    for id in [Value::Int(1), Value::Long(1), Value::Byte(1), text("1")] {
        assert_eq!(writing.find_vertex(&id), Some(one), "{id:?}");
    }
    assert_eq!(writing.find_vertex(&Value::Short(2)), Some(two));
    assert_eq!(writing.find_vertex(&text("2")), Some(text_two));
    assert_eq!(writing.find_vertex(&Value::Double(1.0)), None);
    assert_eq!(writing.vertex_id(one), Some(Value::Int(1)));
    let error = writing.add_vertex("v", Some(Value::Long(1))).unwrap_err();
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::Caller, "Vertex with id already exists: 1".to_string()));
    let made = writing.add_vertex("v", None).unwrap();
    assert!(matches!(writing.vertex_id(made), Some(Value::Long(_))));
}

#[test]
fn made_up_ids_skip_used_ones() {
    let graph = graph();
    let mut writing = graph.begin();
    for id in [0, 1, 3] {
        writing.add_vertex("v", Some(Value::Int(id))).unwrap();
    }
    let made: Vec<_> = (0..2)
        .map(|_| {
            let vertex = writing.add_vertex("v", None).unwrap();
            writing.vertex_id(vertex).unwrap()
        })
        .collect();
    assert_eq!(made, [Value::Long(2), Value::Long(4)]);
}

#[test]
fn cardinalities_decide_what_stays() {
    let graph = graph();
    let mut writing = graph.begin();
    let a = writing.add_vertex("v", None).unwrap();
    let mut set =
        |value: i32, cardinality| writing.set_vertex_property(a, "k", Value::Int(value), cardinality, None).unwrap();
    let first = set(1, Cardinality::List);
    let second = set(1, Cardinality::List);
    assert_ne!(first, second);
    assert_eq!(set(1, Cardinality::Set), first);
    let third = set(2, Cardinality::Set);
    let values = |snapshot: &Snapshot| {
        let mut all = Vec::new();
        snapshot.vertex_properties(a, snapshot.key_id("k"), &mut all);
        all.into_iter().map(|property| (property.id, property.value)).collect::<Vec<_>>()
    };
    assert_eq!(values(&writing), [(first, Value::Int(1)), (second, Value::Int(1)), (third, Value::Int(2))]);
    writing.set_meta_property(a, third, "m", Value::Int(9)).unwrap();
    writing.remove_vertex_property(a, second).unwrap();
    let mut metas = Vec::new();
    writing.meta_properties(a, third, &mut metas);
    assert_eq!(metas, [(writing.key_id("m").unwrap(), Value::Int(9))]);
    let last = writing.set_vertex_property(a, "k", Value::Int(3), Cardinality::Single, None).unwrap();
    assert_eq!(values(&writing), [(last, Value::Int(3))]);
    writing.commit().unwrap();
    assert_eq!(values(&graph.snapshot()), [(last, Value::Int(3))]);
    assert!(matches!(
        graph.begin().set_vertex_property(a, "k", Value::Null, Cardinality::Single, None),
        Err(StoreError::UnsupportedValue { .. })
    ));
}

#[test]
fn indexes_find_equal_numbers_and_follow_changes() {
    let graph = graph();
    let mut writing = graph.begin();
    let a = writing.add_vertex("person", None).unwrap();
    let b = writing.add_vertex("dog", None).unwrap();
    writing.set_vertex_property(a, "age", Value::Int(7), Cardinality::Single, None).unwrap();
    writing.set_vertex_property(b, "age", Value::Double(7.0), Cardinality::Single, None).unwrap();
    writing.commit().unwrap();
    let find = |snapshot: &Snapshot, label: Option<&str>, value: Value| {
        let mut out = Vec::new();
        let label = label.map(|label| snapshot.label_id(label).unwrap());
        let indexed = snapshot.vertices_by_index(label, snapshot.key_id("age").unwrap(), &value, &mut out);
        indexed.then_some(out)
    };
    assert_eq!(find(&graph.snapshot(), None, Value::Int(7)), None);
    graph.create_index(Some("person"), "age").unwrap();
    assert_eq!(find(&graph.snapshot(), None, Value::Int(7)), None);
    assert_eq!(find(&graph.snapshot(), Some("person"), Value::Long(7)), Some(vec![a]));
    graph.create_index(None, "age").unwrap();
    graph.create_index(None, "age").unwrap();
    assert_eq!(graph.indexes().len(), 2);
    assert_eq!(find(&graph.snapshot(), None, Value::Long(7)), Some(vec![a, b]));
    assert_eq!(find(&graph.snapshot(), Some("dog"), Value::Long(7)), Some(vec![b]));
    let mut writing = graph.begin();
    writing.set_vertex_property(a, "age", Value::Int(8), Cardinality::Single, None).unwrap();
    writing.remove_vertex(b).unwrap();
    assert_eq!(find(&writing, None, Value::Long(7)), Some(vec![]));
    assert_eq!(find(&writing, None, Value::Float(8.0)), Some(vec![a]));
    writing.commit().unwrap();
    assert_eq!(find(&graph.snapshot(), None, Value::Long(8)), Some(vec![a]));
    graph.snapshot().check_invariants().unwrap();
}

#[test]
fn reads_of_one_label_see_what_changed_of_it_and_nothing_else() {
    let store = Store::in_memory();
    let graph = store.create_graph("g").unwrap();
    let mut writing = graph.begin();
    let [a, b, c] = [(); 3].map(|()| writing.add_vertex("person", None).unwrap());
    let first = writing.add_edge("knows", a, b, None).unwrap();
    writing.add_edge("knows", a, c, None).unwrap();
    writing.add_edge("knows", b, c, None).unwrap();
    writing.commit().unwrap();
    store.consolidate().unwrap();
    let read = |vertex: VertexId, label: &str| {
        let snapshot = graph.snapshot();
        let listed = neighbours(&snapshot, vertex, Direction::Out, &[label]);
        let (label, mut visited) = (snapshot.label_id(label), Vec::new());
        snapshot.visit_neighbours(vertex, Direction::Out, label, &mut |vertex| visited.push(vertex.0));
        assert_eq!(visited, listed);
        visited.clear();
        let all = snapshot.neighbours(Direction::Out, label);
        all.visit(vertex, &mut |slice| slice.for_each(|vertex| visited.push(vertex.0)));
        assert_eq!(visited, listed);
        listed
    };
    let mut writing = graph.begin();
    writing.add_edge("likes", a, a, None).unwrap();
    let d = writing.add_vertex("person", None).unwrap();
    writing.add_edge("likes", d, a, None).unwrap();
    writing.commit().unwrap();
    assert_eq!((read(a, "knows"), read(a, "likes")), (vec![b.0, c.0], vec![a.0]));
    assert_eq!((read(d, "knows"), read(d, "likes")), (vec![], vec![a.0]));
    let mut writing = graph.begin();
    writing.remove_edge(first).unwrap();
    writing.commit().unwrap();
    assert_eq!((read(a, "knows"), read(b, "knows")), (vec![c.0], vec![c.0]));
    let mut writing = graph.begin();
    writing.add_edge("knows", b, d, None).unwrap();
    writing.commit().unwrap();
    assert_eq!((read(a, "knows"), read(b, "knows")), (vec![c.0], vec![c.0, d.0]));
    // Both labels in one base, and labels that share a bit with the first.
    store.consolidate().unwrap();
    let mut writing = graph.begin();
    for label in 0..70 {
        writing.add_edge(&format!("label {label}"), a, d, None).unwrap();
    }
    writing.commit().unwrap();
    assert_eq!((read(a, "knows"), read(a, "likes"), read(b, "knows")), (vec![c.0], vec![a.0], vec![c.0, d.0]));
    assert_eq!((read(a, "label 0"), read(a, "label 69"), read(d, "label 0")), (vec![d.0], vec![d.0], vec![]));
}

#[test]
fn removing_a_vertex_removes_its_edges() {
    let graph = graph();
    let mut writing = graph.begin();
    let [a, b, c] = [(); 3].map(|()| writing.add_vertex("v", None).unwrap());
    let ab = writing.add_edge("x", a, b, None).unwrap();
    let loop_ = writing.add_edge("x", a, a, None).unwrap();
    let bc = writing.add_edge("y", b, c, None).unwrap();
    writing.commit().unwrap();
    assert_eq!(neighbours(&graph.snapshot(), a, Direction::Both, &["y", "x", "x"]), [b.0, a.0, a.0]);
    let mut writing = graph.begin();
    writing.remove_vertex(a).unwrap();
    writing.remove_vertex(a).unwrap();
    assert!(matches!(writing.add_edge("x", a, b, None), Err(StoreError::NoSuchVertex { .. })));
    assert!(!writing.edge_exists(ab) && !writing.edge_exists(loop_) && writing.edge_exists(bc));
    writing.commit().unwrap();
    let snapshot = graph.snapshot();
    assert_eq!((snapshot.vertex_count(), snapshot.edge_count()), (2, 1));
    assert_eq!(neighbours(&snapshot, b, Direction::In, &[]), [0u64; 0]);
    snapshot.check_invariants().unwrap();
}

#[test]
fn scans_give_insertion_order_in_pieces_of_any_size() {
    let graph = graph();
    let mut writing = graph.begin();
    let vertices: Vec<_> =
        (0..700).map(|n| writing.add_vertex(if n % 3 == 0 { "x" } else { "y" }, None).unwrap()).collect();
    let edges: Vec<_> =
        (0..700).map(|n| writing.add_edge("e", vertices[n * 31 % 700], vertices[n], None).unwrap()).collect();
    for position in (0..700).step_by(5) {
        writing.remove_edge(edges[position]).unwrap();
    }
    let kept: Vec<_> = edges.iter().copied().enumerate().filter(|(n, _)| n % 5 != 0).map(|(_, edge)| edge).collect();
    for max in [1, 7, 64, 1000] {
        let (mut cursor, mut scanned) = (ScanCursor::default(), Vec::new());
        while writing.scan_vertices(&mut cursor, max, &mut scanned) {}
        assert_eq!(scanned, vertices);
        let (mut cursor, mut scanned) = (ScanCursor::default(), Vec::new());
        while writing.scan_edges(&mut cursor, max, &mut scanned) {}
        assert_eq!(scanned, kept);
        let (mut cursor, mut scanned) = (ScanCursor::default(), Vec::new());
        while writing.scan_vertices_with_label(writing.label_id("x").unwrap(), &mut cursor, max, &mut scanned) {}
        assert_eq!(scanned, vertices.iter().copied().step_by(3).collect::<Vec<_>>());
    }
    writing.check_invariants().unwrap();
}

#[test]
fn graphs_have_names_and_can_be_dropped_and_cleared() {
    let store = Store::in_memory();
    let first = store.create_graph("first").unwrap();
    store.create_graph("second.graph-2").unwrap();
    assert_eq!(store.graph_names(), ["first", "second.graph-2"]);
    assert!(matches!(store.create_graph("first"), Err(StoreError::GraphExists { .. })));
    for wrong in ["", "a b", "../x", ".x", "ä", &"x".repeat(200)] {
        assert!(matches!(store.create_graph(wrong), Err(StoreError::InvalidGraphName { .. })), "{wrong}");
    }
    let mut writing = first.begin();
    writing.add_vertex("v", None).unwrap();
    writing.commit().unwrap();
    let old = first.snapshot();
    first.clear().unwrap();
    assert_eq!((old.vertex_count(), first.vertex_count()), (1, 0));
    let mut writing = first.begin();
    writing.add_vertex("v", None).unwrap();
    store.drop_graph("first").unwrap();
    assert!(matches!(writing.commit(), Err(StoreError::NoSuchGraph { .. })));
    assert!(store.graph("first").is_none());
    store.close().unwrap();
    assert!(matches!(store.create_graph("third"), Err(StoreError::Closed)));
}

#[test]
fn edges_of_a_label_are_scanned_vertex_by_vertex_with_own_writes() {
    let store = Store::in_memory();
    let graph = store.create_graph("g").unwrap();
    let mut writing = graph.begin();
    let vertices: Vec<VertexId> = (0..500).map(|_| writing.add_vertex("v", None).unwrap()).collect();
    let mut knows = Vec::new();
    for (position, label) in (0..2_000).zip(["knows", "likes", "knows", "made"].into_iter().cycle()) {
        let (out, in_) = (vertices[position * 7 % 300], vertices[position * 11 % 500]);
        let edge = writing.add_edge(label, out, in_, None).unwrap();
        if label == "knows" {
            knows.push((out, edge));
        }
    }
    writing.commit().unwrap();
    let scan = |snapshot: &Snapshot, max: usize| {
        let (mut cursor, mut found) = (EdgeScanCursor::default(), Vec::new());
        let label = snapshot.label_id("knows").unwrap();
        while snapshot.scan_edges_with_label(label, &mut cursor, max, &mut found) {}
        assert_eq!(found.len() as u64, snapshot.edge_count_with_label(label));
        found
    };
    let sorted = |knows: &[(VertexId, EdgeId)]| {
        let mut knows = knows.to_vec();
        knows.sort_unstable();
        knows.into_iter().map(|(_, edge)| edge).collect::<Vec<_>>()
    };
    let check = |snapshot: &Snapshot, knows: &[(VertexId, EdgeId)]| {
        for max in [1, 3, 256, 10_000] {
            assert_eq!(scan(snapshot, max), sorted(knows), "{max} at once");
        }
        let label = |name| snapshot.label_id(name).unwrap();
        let counts = snapshot.counts_by_label(ElementKind::Edge);
        assert_eq!(counts, [(label("knows"), knows.len() as u64), (label("likes"), 500), (label("made"), 500)]);
    };
    check(&graph.snapshot(), &knows);
    store.consolidate().unwrap();
    check(&graph.snapshot(), &knows);

    let mut writing = graph.begin();
    for (_, edge) in knows.drain(..400) {
        writing.remove_edge(edge).unwrap();
    }
    let added = writing.add_edge("knows", vertices[400], vertices[0], None).unwrap();
    knows.push((vertices[400], added));
    check(&writing, &knows);
    writing.commit().unwrap();
    check(&graph.snapshot(), &knows);
    assert_eq!(graph.snapshot().counts_by_label(ElementKind::Vertex), [(graph.snapshot().label_id("v").unwrap(), 500)]);
}

#[test]
fn codes_of_texts_stand_for_the_texts() {
    let store = Store::in_memory();
    let graph = store.create_graph("g").unwrap();
    let mut writing = graph.begin();
    let vertices: Vec<VertexId> = (0..2_000).map(|_| writing.add_vertex("v", None).unwrap()).collect();
    let set = |writing: &mut ficus_storage::Transaction, place: usize, key: &str, value: Value, cardinality| {
        writing.set_vertex_property(vertices[place], key, value, cardinality, None).unwrap()
    };
    for place in 0..2_000 {
        if place % 7 != 0 {
            set(&mut writing, place, "few", text(["a", "b", "c"][place % 3]), Cardinality::Single);
        }
        set(&mut writing, place, "many", text(&format!("text {place}")), Cardinality::Single);
        set(&mut writing, place, "number", Value::Int(place as i32 % 3), Cardinality::Single);
        set(&mut writing, place, "several", text(["a", "b"][place % 2]), Cardinality::Single);
    }
    set(&mut writing, 99, "several", text("b"), Cardinality::List);
    writing.commit().unwrap();
    let told = |snapshot: &Snapshot, key: &str, some: &[VertexId]| {
        let (key, mut codes) = (snapshot.key_id(key).unwrap(), Vec::new());
        if !snapshot.text_codes(key, some, &mut codes) {
            return false;
        }
        assert_eq!(codes.len(), some.len());
        for (vertex, code) in some.iter().zip(codes) {
            let told = code.map(|code| Value::String(snapshot.text_of_code(key, code).unwrap()));
            assert_eq!(told, snapshot.vertex_value(*vertex, key), "{vertex:?}");
        }
        true
    };
    // Nothing is in columns yet.
    assert!(!told(&graph.snapshot(), "few", &vertices));
    store.consolidate().unwrap();
    let snapshot = graph.snapshot();
    assert!(told(&snapshot, "few", &vertices) && told(&snapshot, "few", &vertices[13..14]));
    assert!(!told(&snapshot, "many", &vertices) && !told(&snapshot, "number", &vertices));
    assert!(!told(&snapshot, "several", &vertices) && told(&snapshot, "several", &vertices[..99]));
    // What has changed is told by nobody, and who may write has to be told what is read.
    let mut writing = graph.begin();
    assert!(!told(&writing, "few", &vertices));
    set(&mut writing, 400, "few", text("new"), Cardinality::Single);
    writing.commit().unwrap();
    assert!(!told(&graph.snapshot(), "few", &vertices) && told(&graph.snapshot(), "few", &vertices[..400]));
    assert!(told(&snapshot, "few", &vertices));
}
