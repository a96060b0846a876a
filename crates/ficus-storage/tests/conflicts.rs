//! Which transactions may commit side by side: every pair of operations, in both orders of commit, on one small graph.

use std::sync::Arc;

use ficus_model::{Cardinality, Direction, Value};
use ficus_storage::simulated_disk::SimulatedDisk;
use ficus_storage::{Environment, ErrorKind, Graph, Protect, Store, StoreError, StoreOptions, Transaction};

fn text(text: &str) -> Value {
    Value::String(text.into())
}

/// Vertices a, b, c with an edge `ab` and a property on b; an index over `name`.
fn graph() -> Arc<Graph> {
    let graph = Store::in_memory().create_graph("g").unwrap();
    let mut writing = graph.begin();
    let [a, b, c] = ["a", "b", "c"].map(|id| writing.add_vertex("v", Some(text(id))).unwrap());
    writing.add_edge("knows", a, b, Some(text("ab"))).unwrap();
    writing.set_vertex_property(b, "age", Value::Int(1), Cardinality::Single, None).unwrap();
    writing.set_vertex_property(c, "name", text("cat"), Cardinality::Single, None).unwrap();
    writing.commit().unwrap();
    graph.create_index(None, "name").unwrap();
    graph
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    SetAgeOfA,
    SetNameOfA,
    SetAgeOfB,
    AddEdgeAb,
    AddEdgeAc,
    RemoveA,
    RemoveC,
    RemoveEdgeAb,
    SetEdgeAb,
    AddVertexX,
    UpsertVertexY,
    UpsertByName,
    UpsertByAge,
    UpsertEdgeAc,
    CountThenAdd,
}

use Act::*;

const ACTS: [Act; 15] = [
    SetAgeOfA,
    SetNameOfA,
    SetAgeOfB,
    AddEdgeAb,
    AddEdgeAc,
    RemoveA,
    RemoveC,
    RemoveEdgeAb,
    SetEdgeAb,
    AddVertexX,
    UpsertVertexY,
    UpsertByName,
    UpsertByAge,
    UpsertEdgeAc,
    CountThenAdd,
];

fn act(writing: &mut Transaction, act: Act) {
    // How the elements were found is no part of the act.
    writing.pause_recording();
    let vertex = |writing: &Transaction, id: &str| writing.find_vertex(&text(id)).unwrap();
    let (a, b, c) = (vertex(writing, "a"), vertex(writing, "b"), vertex(writing, "c"));
    let edge = writing.find_edge(&text("ab")).unwrap();
    writing.resume_recording();
    let single = Cardinality::Single;
    match act {
        SetAgeOfA => drop(writing.set_vertex_property(a, "age", Value::Int(7), single, None).unwrap()),
        SetNameOfA => drop(writing.set_vertex_property(a, "name", text("dog"), single, None).unwrap()),
        SetAgeOfB => drop(writing.set_vertex_property(b, "age", Value::Int(2), single, None).unwrap()),
        AddEdgeAb => drop(writing.add_edge("likes", a, b, None).unwrap()),
        AddEdgeAc => drop(writing.add_edge("likes", a, c, None).unwrap()),
        RemoveA => writing.remove_vertex(a).unwrap(),
        RemoveC => writing.remove_vertex(c).unwrap(),
        RemoveEdgeAb => writing.remove_edge(edge).unwrap(),
        SetEdgeAb => writing.set_edge_property(edge, "since", Value::Int(1)).unwrap(),
        AddVertexX => drop(writing.add_vertex("v", Some(text("x"))).unwrap()),
        UpsertVertexY => {
            assert_eq!(writing.find_vertex(&text("y")), None);
            writing.add_vertex("v", Some(text("y"))).unwrap();
        }
        UpsertByName => {
            writing.protect(Protect::VerticesWithProperty { key: "name", value: &text("dog") });
            let new = writing.add_vertex("v", None).unwrap();
            writing.set_vertex_property(new, "name", text("dog"), single, None).unwrap();
        }
        UpsertByAge => {
            writing.protect(Protect::VerticesWithProperty { key: "age", value: &Value::Int(9) });
            let new = writing.add_vertex("w", None).unwrap();
            writing.set_vertex_property(new, "age", Value::Int(9), single, None).unwrap();
        }
        UpsertEdgeAc => {
            writing.protect(Protect::Adjacency(a, Direction::Out));
            writing.add_edge("upserted", a, c, None).unwrap();
        }
        CountThenAdd => {
            writing.add_vertex("counted", Some(Value::Long(writing.vertex_count() as i64))).unwrap();
        }
    }
}

/// True if `second` may commit after `first` although it began before it.
fn may_follow(first: Act, second: Act) -> bool {
    let touches_a = |act| matches!(act, SetAgeOfA | SetNameOfA | RemoveA);
    let changes_edges_of_a = |act| matches!(act, AddEdgeAb | AddEdgeAc | RemoveA | RemoveEdgeAb | UpsertEdgeAc);
    let changes_edge_ab = |act| matches!(act, RemoveA | RemoveEdgeAb | SetEdgeAb);
    let writes_age = |act| matches!(act, SetAgeOfA | SetAgeOfB | UpsertByAge);
    let writes_dog = |act| matches!(act, SetNameOfA | UpsertByName);
    let changes_count =
        |act| matches!(act, AddVertexX | UpsertVertexY | UpsertByName | UpsertByAge | RemoveA | RemoveC | CountThenAdd);
    match second {
        SetAgeOfA | SetNameOfA => !touches_a(first),
        SetAgeOfB => !matches!(first, SetAgeOfB),
        AddEdgeAb => first != RemoveA,
        AddEdgeAc => !matches!(first, RemoveA | RemoveC),
        RemoveA => !touches_a(first) && !changes_edges_of_a(first),
        RemoveC => !matches!(first, RemoveC | AddEdgeAc | UpsertEdgeAc),
        RemoveEdgeAb | SetEdgeAb => !changes_edge_ab(first),
        AddVertexX => first != AddVertexX,
        UpsertVertexY => first != UpsertVertexY,
        UpsertByName => !writes_dog(first),
        // `age` has no index, so any write to it counts.
        UpsertByAge => !writes_age(first),
        UpsertEdgeAc => !changes_edges_of_a(first) && first != RemoveC,
        CountThenAdd => !changes_count(first),
    }
}

#[test]
fn every_pair_of_operations_conflicts_exactly_when_it_has_to() {
    for first in ACTS {
        for second in ACTS {
            let graph = graph();
            let (mut one, mut two) = (graph.begin(), graph.begin());
            act(&mut one, first);
            act(&mut two, second);
            one.commit().unwrap();
            let before = graph.snapshot();
            let outcome = two.commit();
            graph.snapshot().check_invariants().unwrap();
            if may_follow(first, second) {
                outcome.unwrap_or_else(|error| panic!("{second:?} after {first:?}: {error}"));
            } else {
                let error = outcome.err().unwrap_or_else(|| panic!("{second:?} after {first:?} must conflict"));
                assert_eq!(error.kind(), ErrorKind::Conflict, "{second:?} after {first:?}: {error}");
                assert_eq!(graph.snapshot().vertex_count(), before.vertex_count());
                assert_eq!(graph.snapshot().edge_count(), before.edge_count());
                // Run again, it commits, unless what it needs is gone.
                let mut again = graph.begin();
                let possible = again.find_vertex(&text("a")).is_some()
                    && again.find_vertex(&text("c")).is_some()
                    && again.find_edge(&text("ab")).is_some()
                    && again.find_vertex(&text("x")).is_none()
                    && again.find_vertex(&text("y")).is_none();
                if possible {
                    act(&mut again, second);
                    again.commit().unwrap();
                }
            }
        }
    }
}

#[test]
fn many_threads_commit_in_groups_and_upsert_without_duplicates() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(StoreOptions::default(), Environment::on_directory(directory.path()).unwrap()).unwrap();
    let graph = store.create_graph("g").unwrap();
    graph.create_index(None, "key").unwrap();
    let hub = {
        let mut writing = graph.begin();
        let hub = writing.add_vertex("hub", None).unwrap();
        writing.commit().unwrap();
        hub
    };
    const THREADS: i64 = 8;
    const KEYS: i64 = 25;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let graph = graph.clone();
            scope.spawn(move || {
                for key in 0..KEYS {
                    // Upsert of a shared key: exactly one vertex, whoever comes first.
                    loop {
                        let mut writing = graph.begin();
                        let value = Value::Long(key);
                        let mut found = Vec::new();
                        if let Some(id) = writing.key_id("key") {
                            writing.vertices_by_index(None, id, &value, &mut found);
                        }
                        if found.is_empty() {
                            let new = writing.add_vertex("upserted", None).unwrap();
                            writing.set_vertex_property(new, "key", value, Cardinality::Single, None).unwrap();
                        }
                        match writing.commit() {
                            Ok(_) => break,
                            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
                        }
                    }
                    // All add edges to one vertex, which is never a conflict.
                    let mut writing = graph.begin();
                    let new = writing.add_vertex("spoke", None).unwrap();
                    writing.add_edge("to", new, hub, Some(Value::Long(1000 + thread * KEYS + key))).unwrap();
                    writing.commit().unwrap();
                }
            });
        }
    });
    let check = |graph: &Arc<Graph>| {
        let snapshot = graph.snapshot();
        snapshot.check_invariants().unwrap();
        assert_eq!(snapshot.vertex_count_with_label(snapshot.label_id("upserted").unwrap()), KEYS as u64);
        assert_eq!(snapshot.edge_count(), (THREADS * KEYS) as u64);
    };
    check(&graph);
    let second = Store::open(StoreOptions::default(), Environment::on_directory(directory.path()).unwrap());
    let error = second.err().unwrap();
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    store.close().unwrap();
    assert!(matches!(graph.clear(), Err(StoreError::Closed)));
    let report = Store::check(directory.path()).unwrap();
    assert_eq!(report.worst(), ficus_storage::Finding::Good, "{report:?}");
    let store = Store::open(StoreOptions::default(), Environment::on_directory(directory.path()).unwrap()).unwrap();
    check(&store.graph("g").unwrap());
}

#[test]
fn asynchronous_commits_call_back_when_they_are_visible() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(StoreOptions::default(), Environment::on_directory(directory.path()).unwrap()).unwrap();
    let graph = store.create_graph("g").unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    for number in 0..100 {
        let mut writing = graph.begin();
        writing.add_vertex("v", Some(Value::Int(number))).unwrap();
        let (sender, graph) = (sender.clone(), graph.clone());
        writing.commit_with(Box::new(move |outcome| {
            let visible = graph.snapshot().find_vertex(&Value::Int(number)).is_some();
            sender.send((outcome.is_ok(), visible)).unwrap();
        }));
    }
    drop(sender);
    assert!(receiver.iter().all(|told| told == (true, true)));
    assert_eq!(graph.vertex_count(), 100);
}

#[test]
fn a_graph_is_written_after_another_was_cleared_or_dropped() {
    let store = Store::in_memory();
    let [quiet, cleared, dropped] = ["quiet", "cleared", "dropped"].map(|name| store.create_graph(name).unwrap());
    let add = |graph: &Arc<Graph>| -> Result<(), StoreError> {
        let mut writing = graph.begin();
        writing.add_vertex("x", None)?;
        writing.commit().map(|_| ())
    };
    [&quiet, &cleared, &dropped].into_iter().for_each(|graph| add(graph).unwrap());
    cleared.clear().unwrap();
    add(&quiet).unwrap();
    drop(dropped);
    store.drop_graph("dropped").unwrap();
    add(&quiet).unwrap();
    add(&cleared).unwrap();
    assert_eq!(quiet.vertex_count(), 3);
}

/// A start forgets what was written before it. Nobody who begins after it may notice, neither by a conflict that is none nor by one
/// that is missed; and the next start, which reads the same log, has to decide as this one did.
#[test]
fn a_restart_forgets_what_was_written_and_no_conflict() {
    let open = |disk: &SimulatedDisk| Store::open(StoreOptions::default(), disk.environment()).unwrap();
    let set_age = |writing: &mut Transaction, age: i32| {
        let vertex = writing.find_vertex(&text("a")).unwrap();
        writing.set_vertex_property(vertex, "age", Value::Int(age), Cardinality::Single, None).unwrap();
    };
    let age = |graph: &Graph| {
        let (snapshot, mut found) = (graph.snapshot(), Vec::new());
        let vertex = snapshot.find_vertex(&text("a")).unwrap();
        snapshot.vertex_properties(vertex, None, &mut found);
        found.first().map(|property| property.value.clone())
    };
    let mut disk = SimulatedDisk::new();
    for name in ["first", "second"] {
        let store = open(&disk);
        let mut writing = store.create_graph(name).unwrap().begin();
        writing.add_vertex("v", Some(text("a"))).unwrap();
        writing.commit().unwrap();
    }
    for round in 1..8 {
        disk = disk.crash(round);
        let store = open(&disk);
        let [first, second] = ["first", "second"].map(|name| store.graph(name).unwrap());
        let before = i32::try_from(round).unwrap() * 10 - 8;
        for graph in [&first, &second] {
            assert_eq!(age(graph), (round > 1).then_some(Value::Int(before)), "round {round}");
        }
        // Begun with the state of the start, in the graph that was written first.
        let [mut quiet, mut late] = [first.begin(), first.begin()];
        set_age(&mut quiet, before + 9);
        set_age(&mut late, before + 8);
        let mut other = second.begin();
        set_age(&mut other, before + 10);
        other.commit().unwrap();
        quiet.commit().unwrap();
        assert!(matches!(late.commit(), Err(StoreError::Conflict { .. })), "round {round}");
        let mut writing = first.begin();
        set_age(&mut writing, before + 10);
        writing.commit().unwrap();
        // Some starts have a checkpoint, with or without something behind it, others the log alone.
        if round % 3 == 0 {
            store.checkpoint().unwrap();
        }
        if round % 4 == 0 {
            store.close().unwrap();
        }
    }
}

/// However much commits meanwhile, on whichever graph, and is forgotten by whoever needs it no more: a transaction is held against all that was written
/// after it began, and against nothing else; and so it is by a start that finds the checkpoint in between.
#[test]
fn a_transaction_that_is_long_under_way_is_held_against_what_came_since() {
    let disk = SimulatedDisk::new();
    let store = Store::open(StoreOptions::default(), disk.environment()).unwrap();
    let [busy, quiet] = ["busy", "quiet"].map(|name| store.create_graph(name).unwrap());
    for graph in [&busy, &quiet] {
        let mut writing = graph.begin();
        for id in ["changed", "left"] {
            writing.add_vertex("v", Some(text(id))).unwrap();
        }
        writing.commit().unwrap();
    }
    let go_on = |commits: u64| {
        for _ in 0..commits {
            let mut writing = busy.begin();
            writing.add_vertex("other", None).unwrap();
            writing.commit().unwrap();
        }
    };
    let set_age = |writing: &mut Transaction, id: &str| {
        let vertex = writing.find_vertex(&text(id)).unwrap();
        writing.set_vertex_property(vertex, "age", Value::Int(1), Cardinality::Single, None).unwrap();
    };
    let read_of = |graph: &Arc<Graph>, id: &str, label: &str| {
        let mut writing = graph.begin();
        let vertex = writing.find_vertex(&text(id)).unwrap();
        writing.vertex_properties(vertex, None, &mut Vec::new());
        writing.add_vertex(label, None).unwrap();
        writing
    };
    go_on(2_000);
    let mut all = Vec::new();
    for graph in [&busy, &quiet] {
        all.extend([("changed", true), ("left", false)].map(|(id, meets)| (read_of(graph, id, "late"), meets)));
    }
    go_on(2_000);
    for graph in [&busy, &quiet] {
        let mut writing = graph.begin();
        set_age(&mut writing, "changed");
        writing.commit().unwrap();
    }
    go_on(2_000);
    store.checkpoint().unwrap();
    go_on(1_000);
    for (writing, meets) in all {
        let outcome = writing.commit();
        assert_eq!(outcome.is_err(), meets, "{outcome:?}");
    }
    // Nobody is under way any more.
    go_on(2_000);
    read_of(&quiet, "changed", "later").commit().unwrap();
    let counts = |store: &Store| {
        ["busy", "quiet"].map(|name| {
            let snapshot = store.graph(name).unwrap().snapshot();
            let count = |label| snapshot.label_id(label).map_or(0, |label| snapshot.vertex_count_with_label(label));
            ["late", "later", "other"].map(count)
        })
    };
    assert_eq!(counts(&store), [[1, 0, 9_000], [1, 1, 0]]);
    let again = Store::open(StoreOptions::default(), disk.crash(1).environment()).unwrap();
    assert_eq!(counts(&again), counts(&store));
}
