//! Declared types, unique indexes, and the tasks behind them: what is refused, when, and what a restart finds.

use std::sync::Arc;

use ficus_model::{Cardinality, Direction, Value};
use ficus_storage::simulated_disk::SimulatedDisk;
use ficus_storage::{
    Attribute, BulkProperty, ElementKind, Environment, Graph, IndexCursor, IndexDefinition, IndexKind, IndexQuery,
    IndexState, IndexTest, Multiplicity, SortKey, SortedCursor, SortedQuery, Store, StoreError, StoreOptions,
    TaskState, TypeDefinition, TypeMode, ValueType,
};

const VERTEX: ElementKind = ElementKind::Vertex;

fn text(text: &str) -> Value {
    Value::String(text.into())
}

fn graph() -> Arc<Graph> {
    Store::in_memory().create_graph("g").unwrap()
}

fn unique(keys: &[&str]) -> IndexDefinition {
    let kind = if keys.len() == 1 { IndexKind::Hash } else { IndexKind::Ordered };
    IndexDefinition::new(VERTEX, Some("person"), keys, kind).unique().named("u")
}

fn add(graph: &Arc<Graph>, label: &str, properties: &[(&str, Value)]) -> Result<(), StoreError> {
    let mut writing = graph.begin();
    let vertex = writing.add_vertex(label, None)?;
    for (key, value) in properties {
        writing.set_vertex_property(vertex, key, value.clone(), Cardinality::Single, None)?;
    }
    writing.commit().map(|_| ())
}

fn person() -> TypeDefinition {
    TypeDefinition {
        mode: TypeMode::Strict,
        attributes: vec![
            Attribute { nullable: false, ..Attribute::new("name", ValueType::String) },
            Attribute { default: Some(Value::Long(18)), ..Attribute::new("age", ValueType::Long) },
            Attribute { cardinality: Cardinality::Set, ..Attribute::new("nick", ValueType::String) },
        ],
        primary_key: vec!["name".into()],
        ..TypeDefinition::new(VERTEX, "person")
    }
}

#[test]
fn a_graph_has_so_many_indexes_and_types_and_no_more() {
    let graph = graph();
    let index = |number: usize| IndexDefinition::new(VERTEX, None, &[&format!("key{number}")], IndexKind::Hash);
    (0..4096).for_each(|number| graph.define_index(&index(number)).unwrap());
    let too_many = |outcome| matches!(outcome, Err(StoreError::LimitReached { limit: 4096, .. }));
    assert!(too_many(graph.define_index(&index(4096))));
    assert!(too_many(graph.define_type(&person())), "it has a primary key");
    graph.define_index(&index(7)).expect("it is there already");
    graph.drop_index(&index(7).name).unwrap();
    graph.define_index(&index(4096)).unwrap();
    let of = |number: usize| TypeDefinition::new(VERTEX, &format!("label{number}"));
    (0..4096).for_each(|number| graph.define_type(&of(number)).unwrap());
    assert!(too_many(graph.define_type(&of(4096))));
    graph.define_type(&of(7)).expect("it is there already");
}

#[test]
fn equal_values_are_refused_at_once_and_not_worth_a_retry() {
    for keys in [&["name"][..], &["name", "city"]] {
        let graph = graph();
        graph.define_index(&unique(keys)).unwrap();
        let ann = [("name", text("Ann")), ("city", text("Bern"))];
        add(&graph, "person", &ann).unwrap();
        let error = add(&graph, "person", &ann).unwrap_err();
        assert!(matches!(error, StoreError::UniqueViolation { .. }) && !error.is_retryable(), "{error}");
        assert!(error.to_string().starts_with("the unique index 'u' has name = Ann"), "{error}");
        // Of another label, without a key, or with another value there is nothing to refuse.
        add(&graph, "dog", &ann).unwrap();
        add(&graph, "person", &[("city", text("Bern"))]).unwrap();
        add(&graph, "person", &[("name", text("Ben")), ("city", text("Bern"))]).unwrap();
        graph.snapshot().check_invariants().unwrap();
    }
}

#[test]
fn what_a_transaction_leaves_is_what_counts() {
    let graph = graph();
    graph.define_index(&unique(&["name"])).unwrap();
    add(&graph, "person", &[("name", text("Ann"))]).unwrap();
    let ann = graph.snapshot().find_vertex(&Value::Long(0)).unwrap();
    // A value that is given back may be taken in the same transaction.
    let mut writing = graph.begin();
    writing.remove_vertex(ann).unwrap();
    let other = writing.add_vertex("person", None).unwrap();
    writing.set_vertex_property(other, "name", text("Ann"), Cardinality::Single, None).unwrap();
    writing.commit().unwrap();
    // Two of one transaction may not have it, whenever they got it.
    let mut writing = graph.begin();
    let [a, b] = [(); 2].map(|()| writing.add_vertex("person", None).unwrap());
    writing.set_vertex_property(a, "name", text("Ben"), Cardinality::Single, None).unwrap();
    assert!(writing.set_vertex_property(b, "name", text("Ben"), Cardinality::Single, None).is_err());
    writing.set_vertex_property(a, "name", text("Cem"), Cardinality::Single, None).unwrap();
    writing.set_vertex_property(b, "name", text("Ben"), Cardinality::Single, None).unwrap();
    writing.commit().unwrap();
    graph.snapshot().check_invariants().unwrap();
}

#[test]
fn of_concurrent_transactions_with_one_value_one_commits_and_the_others_learn_why() {
    let graph = graph();
    graph.define_index(&unique(&["name"])).unwrap();
    let mut writers: Vec<_> = (0..4).map(|_| graph.begin()).collect();
    for writing in &mut writers {
        let vertex = writing.add_vertex("person", None).unwrap();
        writing.set_vertex_property(vertex, "name", text("Ann"), Cardinality::Single, None).unwrap();
    }
    let outcomes: Vec<_> = writers.into_iter().map(|writing| writing.commit()).collect();
    assert!(outcomes[0].is_ok());
    assert!(outcomes[1..].iter().all(|outcome| outcome.as_ref().is_err_and(StoreError::is_retryable)));
    // Run again, it is clear.
    let again = add(&graph, "person", &[("name", text("Ann"))]).unwrap_err();
    assert!(matches!(again, StoreError::UniqueViolation { .. }));
    // Threads that insert the same names leave one of each.
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let graph = graph.clone();
            std::thread::spawn(move || {
                (0..50).filter(|name| add(&graph, "person", &[("name", Value::Int(*name))]).is_ok()).count()
            })
        })
        .collect();
    let added: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(added, 50);
    graph.snapshot().check_invariants().unwrap();
}

#[test]
fn a_unique_index_over_equal_values_fails_and_is_gone() {
    let graph = graph();
    for name in ["Ann", "Ben", "Ann"] {
        add(&graph, "person", &[("name", text(name))]).unwrap();
    }
    let error = graph.define_index(&unique(&["name"])).unwrap_err();
    let task = graph.tasks().unwrap().pop().unwrap();
    let TaskState::Failed { reason } = &task.state else { panic!("{task:?}") };
    assert!(error.to_string().contains(&**reason), "{error}");
    assert!(reason.contains("the unique index 'u' has name = Ann already"), "{reason}");
    assert!(graph.indexes().is_empty());
    add(&graph, "person", &[("name", text("Ann"))]).unwrap();
}

#[test]
fn a_strict_type_refuses_what_it_does_not_declare() {
    let graph = graph();
    assert!(graph.load().is_some());
    graph.define_type(&person()).unwrap();
    assert!(graph.load().is_none(), "a whole base would not be held against the type");
    let refused = |properties: &[(&str, Value)], expected: &str| {
        let error = add(&graph, "person", properties).unwrap_err();
        assert_eq!(error.to_string(), format!("vertex type 'person' refuses the property {expected}"));
        assert!(!error.is_retryable());
    };
    refused(&[("name", Value::Int(1))], "'name': expected string, given Integer");
    refused(&[("shoe", Value::Int(1))], "'shoe': expected one of the attributes [name, age, nick], given Integer");
    refused(&[("age", Value::Int(1))], "'name': expected string, given nothing");
    add(&graph, "person", &[("name", text("Ann"))]).unwrap();
    let snapshot = graph.snapshot();
    let ann = snapshot.find_vertex(&Value::Long(3)).or(snapshot.find_vertex(&Value::Long(0)));
    let ann = ann.unwrap_or_else(|| panic!("{:?}", snapshot.vertex_count()));
    assert_eq!(snapshot.vertex_value(ann, snapshot.key_id("age").unwrap()), Some(Value::Long(18)));
    // Numbers widen to the declared type.
    add(&graph, "person", &[("name", text("Ben")), ("age", Value::Int(7))]).unwrap();
    assert!(matches!(add(&graph, "person", &[("name", text("Ben"))]), Err(StoreError::UniqueViolation { .. })));
    let mut writing = graph.begin();
    writing.set_vertex_property(ann, "nick", text("A"), Cardinality::Set, None).unwrap();
    writing.set_vertex_property(ann, "nick", text("B"), Cardinality::Set, None).unwrap();
    assert!(writing.set_vertex_property(ann, "age", Value::Long(3), Cardinality::List, None).is_err());
    writing.commit().unwrap();
    // What it must have it cannot lose.
    let mut writing = graph.begin();
    let mut records = Vec::new();
    writing.vertex_properties(ann, writing.key_id("name"), &mut records);
    writing.remove_vertex_property(ann, records[0].id).unwrap();
    assert!(matches!(writing.commit(), Err(StoreError::SchemaViolation { .. })));
    // A bulk load refuses one by one.
    let mut load = graph.bulk();
    let wrong = load.add_vertex("person", None, vec![BulkProperty::single("age", Value::Int(1))]);
    assert!(matches!(wrong, Err(StoreError::SchemaViolation { .. })));
    load.add_vertex("person", None, vec![BulkProperty::single("name", text("Cem"))]).unwrap();
    load.finish().unwrap();
    graph.snapshot().check_invariants().unwrap();
}

#[test]
fn multiplicities_hold_against_concurrent_edges_too() {
    let cases = [
        (Multiplicity::Multi, [true; 4]),
        (Multiplicity::Simple, [false, true, true, true]),
        (Multiplicity::ManyToOne, [false, false, true, true]),
        (Multiplicity::OneToMany, [false, true, false, true]),
        (Multiplicity::OneToOne, [false, false, false, true]),
    ];
    for (multiplicity, expected) in cases {
        let graph = graph();
        let mut definition = TypeDefinition::new(ElementKind::Edge, "e");
        definition.multiplicity = multiplicity;
        graph.define_type(&definition).unwrap();
        let mut writing = graph.begin();
        let [a, b, c, d] = [(); 4].map(|()| writing.add_vertex("v", None).unwrap());
        writing.commit().unwrap();
        // Begun before the first edge is there: the resolver has to find it.
        let ends = [(a, b), (a, c), (d, b), (c, d)];
        let mut early: Vec<_> = ends.iter().map(|_| graph.begin()).collect();
        for (writing, (out, in_)) in early.iter_mut().zip(ends) {
            writing.add_edge("e", out, in_, None).unwrap();
        }
        let mut writing = graph.begin();
        let first = writing.add_edge("e", a, b, None).unwrap();
        writing.commit().unwrap();
        for (place, (out, in_)) in ends.into_iter().enumerate() {
            let late = graph.begin().add_edge("e", out, in_, None);
            assert_eq!(late.is_ok(), expected[place], "{multiplicity:?} {place} {late:?}");
        }
        for (place, writing) in early.into_iter().enumerate().take(1) {
            let outcome = writing.commit();
            assert_eq!(outcome.is_ok(), expected[place], "{multiplicity:?} {place}");
            assert!(outcome.is_ok() || outcome.unwrap_err().is_retryable());
        }
        // An edge may take the place of one that goes.
        let mut writing = graph.begin();
        for edge in writing.edges_between(a, b, writing.label_id("e")) {
            writing.remove_edge(edge).unwrap();
        }
        assert!(!writing.edge_exists(first));
        writing.add_edge("e", a, b, None).unwrap();
        writing.commit().unwrap();
        graph.snapshot().check_invariants().unwrap();
    }
}

fn open(disk: &SimulatedDisk) -> (Arc<Store>, Arc<Graph>) {
    let store = Store::open(StoreOptions::default(), disk.environment()).unwrap();
    let graph = store.graph("g").unwrap_or_else(|| store.create_graph("g").unwrap());
    (store, graph)
}

/// More vertices than one step looks at.
fn fill(graph: &Arc<Graph>, count: i32) {
    let mut load = graph.bulk();
    for number in 0..count {
        let properties = vec![BulkProperty::single("name", Value::Int(number))];
        load.add_vertex("person", None, properties).unwrap();
    }
    load.finish().unwrap();
}

#[test]
fn a_build_goes_on_after_a_restart_wherever_it_was() {
    for (steps, checkpoint) in [(0, false), (1, false), (1, true), (3, true), (5, false), (6, true)] {
        let disk = SimulatedDisk::new();
        let (store, graph) = open(&disk);
        fill(&graph, 5000);
        graph.define_index(&unique(&["name"])).unwrap();
        let task = graph.tasks().unwrap()[0].number;
        for _ in 0..steps {
            graph.step_task(task).unwrap();
        }
        // Written while it is built, at both sides of its place.
        let mut writing = graph.begin();
        let first = writing.find_vertex(&Value::Long(0)).unwrap();
        writing.set_vertex_property(first, "name", Value::Int(-1), Cardinality::Single, None).unwrap();
        let last = writing.find_vertex(&Value::Long(4999)).unwrap();
        writing.set_vertex_property(last, "name", Value::Int(-2), Cardinality::Single, None).unwrap();
        writing.commit().unwrap();
        let state = graph.indexes()[0].state;
        assert_eq!(state == IndexState::Ready, steps == 6, "{steps} {state:?}");
        if checkpoint {
            store.checkpoint().unwrap();
        }
        let disk = disk.crash(steps);
        let (_store, graph) = open(&disk);
        assert_eq!(graph.indexes()[0].state, state);
        graph.snapshot().check_invariants().unwrap();
        graph.finish_tasks().unwrap();
        assert_eq!(graph.indexes()[0].state, IndexState::Ready);
        assert_eq!(graph.indexes()[0].entries, 5000);
        graph.snapshot().check_invariants().unwrap();
        assert!(add(&graph, "person", &[("name", Value::Int(7))]).is_err());
        add(&graph, "person", &[("name", Value::Int(0))]).unwrap();
    }
}

#[test]
fn equal_values_that_come_in_while_a_unique_index_is_built_are_found() {
    let disk = SimulatedDisk::new();
    let (_store, graph) = open(&disk);
    fill(&graph, 5000);
    graph.define_index(&unique(&["name"])).unwrap();
    let task = graph.tasks().unwrap()[0].number;
    assert!(graph.step_task(task).unwrap());
    add(&graph, "person", &[("name", Value::Int(4000))]).unwrap();
    let error = graph.finish_tasks().unwrap_err();
    assert!(error.to_string().contains("build index 'u' failed and was undone"), "{error}");
    // The log decides the same way again.
    let (_store, graph) = open(&disk.crash(1));
    assert!(graph.indexes().is_empty());
    assert!(matches!(graph.tasks().unwrap()[0].state, TaskState::Failed { .. }));
}

#[test]
fn a_task_can_be_cancelled_and_a_type_dropped_bit_by_bit() {
    let disk = SimulatedDisk::new();
    let (store, graph) = open(&disk);
    fill(&graph, 5000);
    graph.define_index(&unique(&["name"])).unwrap();
    let task = graph.tasks().unwrap()[0].number;
    graph.step_task(task).unwrap();
    graph.cancel_task(task).unwrap();
    assert!(graph.indexes().is_empty());
    assert!(graph.cancel_task(task).is_err());
    // Edges of the vertices that go, go with them.
    let mut writing = graph.begin();
    let hub = writing.add_vertex("hub", None).unwrap();
    for id in 0..3000 {
        let person = writing.find_vertex(&Value::Long(id)).unwrap();
        writing.add_edge("knows", hub, person, None).unwrap();
    }
    writing.commit().unwrap();
    graph.drop_type(VERTEX, "person", false).unwrap();
    let refused = add(&graph, "person", &[]).unwrap_err();
    assert!(refused.to_string().contains("it is being dropped"), "{refused}");
    let task = graph.tasks().unwrap().pop().unwrap();
    graph.step_task(task.number).unwrap();
    let left = graph.tasks().unwrap().pop().unwrap();
    assert!(left.is_running() && left.done > 0 && left.done < left.total, "{left:?}");
    store.checkpoint().unwrap();
    let (_store, graph) = open(&disk.crash(2));
    graph.finish_tasks().unwrap();
    let snapshot = graph.snapshot();
    assert_eq!((snapshot.vertex_count(), snapshot.edge_count()), (1, 0));
    let hub = snapshot.find_vertex(&snapshot.vertex_id(hub).unwrap()).unwrap();
    assert_eq!(snapshot.degree(hub, Direction::Both, &[]), 0);
    snapshot.check_invariants().unwrap();
    add(&graph, "person", &[]).unwrap();
}

#[test]
fn a_type_over_elements_that_do_not_obey_is_undeclared_again() {
    let graph = graph();
    fill(&graph, 3000);
    graph.define_type(&person()).unwrap();
    let error = graph.finish_tasks().unwrap_err();
    assert!(error.to_string().contains("refuses the property 'name': expected string, given Integer"), "{error}");
    assert!(graph.snapshot().types().is_empty() && graph.indexes().is_empty());
    let mut open = TypeDefinition::new(VERTEX, "person");
    open.attributes = vec![Attribute::new("name", ValueType::Int)];
    open.primary_key = vec!["name".into()];
    graph.define_type(&open).unwrap();
    graph.finish_tasks().unwrap();
    assert!(graph.drop_index("primary.person").unwrap_err().to_string().contains("primary key"));
    graph.snapshot().check_invariants().unwrap();
    graph.drop_type(VERTEX, "person", true).unwrap();
    assert_eq!((graph.indexes().len(), graph.vertex_count()), (0, 3000));
}

#[test]
fn a_thread_of_the_store_works_on_tasks_by_itself() {
    let directory = tempfile::tempdir().unwrap();
    let environment = Environment::on_directory(directory.path()).unwrap();
    let store = Store::open(StoreOptions::default(), environment).unwrap();
    let graph = store.create_graph("g").unwrap();
    fill(&graph, 6000);
    graph.define_index(&unique(&["name"])).unwrap();
    assert!(graph.has_task_thread());
    while graph.tasks().unwrap().iter().any(|task| task.is_running()) {
        std::thread::yield_now();
    }
    assert_eq!(graph.indexes()[0].entries, 6000);
    store.close().unwrap();
}

#[test]
fn half_edges_come_in_the_order_of_their_sort_keys() {
    let graph = graph();
    let mut definition = TypeDefinition::new(ElementKind::Edge, "e");
    definition.sort_keys = vec![SortKey { key: "at".into(), descending: true }];
    graph.define_type(&definition).unwrap();
    let mut writing = graph.begin();
    let hub = writing.add_vertex("v", None).unwrap();
    let ats = [Some(3), None, Some(9), Some(5), Some(3)];
    for at in ats {
        let other = writing.add_vertex("v", None).unwrap();
        let edge = writing.add_edge("e", hub, other, None).unwrap();
        if let Some(at) = at {
            writing.set_edge_property(edge, "at", Value::Int(at)).unwrap();
        }
    }
    writing.commit().unwrap();
    let snapshot = graph.snapshot();
    let (label, key) = (snapshot.label_id("e").unwrap(), snapshot.key_id("at").unwrap());
    let read = |(low, high): (Option<i32>, Option<i32>), max| {
        let test = IndexTest::Between { low: low.map(Value::Int), high: high.map(Value::Int) };
        let query = SortedQuery { direction: Direction::Out, label, test, backward: false };
        let mut found = Vec::new();
        snapshot.half_edges_by_sort_key(hub, &query, &mut SortedCursor::default(), max, &mut found);
        found.iter().map(|half_edge| snapshot.edge_value(half_edge.edge, key)).collect::<Vec<_>>()
    };
    let values = |list: &[Option<i32>]| list.iter().map(|at| at.map(Value::Int)).collect::<Vec<_>>();
    assert_eq!(read((None, None), 9), values(&[Some(9), Some(5), Some(3), Some(3)]));
    assert_eq!(read((None, None), 2), values(&[Some(9), Some(5)]));
    assert_eq!(read((Some(4), None), 9), values(&[Some(9), Some(5)]));
    // The two edges with equal keys come together.
    assert_eq!(read((None, Some(5)), 2), values(&[Some(5), Some(3), Some(3)]));
}

#[test]
fn what_few_elements_do_not_obey_is_refused_at_once() {
    let disk = SimulatedDisk::new();
    let (_store, graph) = open(&disk);
    add(&graph, "person", &[("name", text("Ann"))]).unwrap();
    add(&graph, "person", &[("name", text("Ann"))]).unwrap();
    let failed = |outcome: Result<(), StoreError>, work: &str| {
        let error = outcome.unwrap_err();
        assert!(matches!(error, StoreError::TaskFailed { .. }) && error.to_string().contains(work), "{error}");
    };
    failed(graph.define_index(&unique(&["name"])), "build index 'u' failed and was undone");
    // A primary key that two have is none, and there is no type without it.
    failed(graph.define_type(&person()), "build index 'primary.person'");
    let strict = TypeDefinition { mode: TypeMode::Strict, ..TypeDefinition::new(VERTEX, "person") };
    failed(graph.define_type(&strict), "verify vertex type 'person'");
    for graph in [graph, open(&disk.crash(1)).1] {
        assert!(graph.indexes().is_empty() && graph.snapshot().types().is_empty());
        add(&graph, "person", &[("name", text("Ann")), ("free", Value::Int(1))]).unwrap();
        graph.snapshot().check_invariants().unwrap();
    }
}

#[test]
fn a_declared_set_has_no_value_twice() {
    let graph = graph();
    let mut writing = graph.begin();
    let vertex = writing.add_vertex("person", None).unwrap();
    for nick in ["a", "a", "b"] {
        writing.set_vertex_property(vertex, "nick", text(nick), Cardinality::List, None).unwrap();
    }
    writing.commit().unwrap();
    let sets = TypeDefinition {
        attributes: vec![Attribute { cardinality: Cardinality::Set, ..Attribute::new("nick", ValueType::String) }],
        ..TypeDefinition::new(VERTEX, "person")
    };
    let error = graph.define_type(&sets).unwrap_err();
    assert!(error.to_string().contains("expected a set, given the same value twice"), "{error}");

    let graph = self::graph();
    graph.define_type(&sets).unwrap();
    let mut writing = graph.begin();
    let vertex = writing.add_vertex("person", None).unwrap();
    for nick in ["a", "a", "b", "a"] {
        writing.set_vertex_property(vertex, "nick", text(nick), Cardinality::List, None).unwrap();
    }
    writing.commit().unwrap();
    let mut nicks = Vec::new();
    graph.snapshot().vertex_properties(vertex, None, &mut nicks);
    assert!(nicks.iter().map(|nick| &nick.value).eq(&[text("a"), text("b")]), "{nicks:?}");
}

#[test]
fn an_index_finds_what_a_scan_finds_and_once() {
    let graph = graph();
    let values = |values: &[Value]| {
        let mut writing = graph.begin();
        let vertex = writing.add_vertex("person", None).unwrap();
        for value in values {
            writing.set_vertex_property(vertex, "name", value.clone(), Cardinality::List, None).unwrap();
        }
        writing.commit().unwrap();
        vertex
    };
    let several = values(&[Value::Double(0.1), Value::Float(0.1), Value::Int(1)]);
    let other = values(&[Value::Float(0.1)]);
    graph.define_index(&IndexDefinition::new(VERTEX, Some("person"), &["name"], IndexKind::Hash)).unwrap();
    let snapshot = graph.snapshot();
    let index = graph.indexes()[0].number;
    let query =
        |value: Value| IndexQuery { index, equal: Vec::new(), test: IndexTest::Equal(value), descending: false };
    for at_once in [1, 2, 100] {
        let (mut cursor, mut found) = (IndexCursor::default(), Vec::new());
        while snapshot.scan_index(&query(Value::Float(0.1)), &mut cursor, at_once, &mut found) {}
        found.sort_unstable();
        assert_eq!(found, [several.0, other.0], "{at_once} at once");
    }
    // Members of collections compare by value, whatever their types, and hashes do not tell.
    assert!(!snapshot.can_answer(&query(Value::from(vec![Value::Long(1)]))));
}
