//! Bulk loads: what they refuse, how they meet other writers, and that a checkpoint and a restart keep it all.

use ficus_model::{Cardinality, Value};
use ficus_storage::{BulkProperty, Environment, ErrorKind, Finding, ScanCursor, Store, StoreError, StoreOptions};

#[test]
fn a_bulk_load_beside_other_writers_survives_checkpoint_and_restart() {
    const VERTICES: i64 = 20_000;
    let directory = tempfile::tempdir().unwrap();
    let mut options = StoreOptions::default();
    // Checkpoints are taken in the middle of the load.
    options.checkpoint_log_bytes = 300_000;
    options.log_segment_bytes = 100_000;
    let open = || Store::open(options.clone(), Environment::on_directory(directory.path()).unwrap()).unwrap();
    let store = open();
    let graph = store.create_graph("g").unwrap();
    graph.create_index(Some("person"), "name").unwrap();
    let mut bulk = graph.bulk();
    let mut vertices = Vec::new();
    for number in 0..VERTICES {
        let properties = vec![
            BulkProperty::single("name", Value::String(format!("n{}", number % 100).into())),
            BulkProperty::list("mail", Value::Int(1)),
            BulkProperty { meta: vec![("since", Value::Int(3))], ..BulkProperty::list("mail", Value::Int(2)) },
        ];
        vertices.push(bulk.add_vertex("person", Some(Value::Long(number * 3)), properties).unwrap());
        if number % 1000 == 0 {
            let mut writing = graph.begin();
            writing.add_vertex("other", Some(Value::String(number.to_string().into()))).unwrap();
            writing.commit().unwrap();
        }
    }
    let taken = bulk.add_vertex("person", Some(Value::Int(3)), Vec::new()).unwrap_err();
    assert_eq!(taken.to_string(), "Vertex with id already exists: 3");
    let unfit = bulk.add_vertex("person", None, vec![BulkProperty::single("name", Value::Null)]).unwrap_err();
    assert_eq!(unfit.kind(), ErrorKind::Caller);
    assert_eq!(bulk.find_vertex(&Value::Int(6)), Some(vertices[2]));
    for number in 0..VERTICES as usize {
        let (out, in_) = (vertices[number], vertices[number * 7 % vertices.len()]);
        bulk.add_edge("knows", out, in_, None, vec![("weight", Value::Double(0.5))]).unwrap();
    }
    bulk.add_edge("once", vertices[0], vertices[1], Some(Value::Int(-1)), Vec::new()).unwrap();
    assert!(bulk.add_edge("once", vertices[0], vertices[1], Some(Value::Long(-1)), Vec::new()).is_err());
    bulk.set_vertex_property(vertices[0], "name", Value::String("first".into()), Cardinality::Single).unwrap();
    let report = bulk.finish().unwrap();
    assert_eq!((report.vertices, report.edges), (VERTICES as u64, VERTICES as u64 + 1));

    let check = |store: &Store| {
        let snapshot = store.graph("g").unwrap().snapshot();
        snapshot.check_invariants().unwrap();
        assert_eq!((snapshot.vertex_count(), snapshot.edge_count()), (VERTICES as u64 + 20, VERTICES as u64 + 1));
        let (name, person) = (snapshot.key_id("name").unwrap(), snapshot.label_id("person"));
        let mut found = Vec::new();
        assert!(snapshot.vertices_by_index(person, name, &Value::String("n0".into()), &mut found));
        assert_eq!(found.len(), VERTICES as usize / 100 - 1);
        let mut properties = Vec::new();
        snapshot.vertex_properties(vertices[1], snapshot.key_id("mail"), &mut properties);
        assert_eq!(
            properties.iter().map(|property| property.value.clone()).collect::<Vec<_>>(),
            [1, 2].map(Value::Int)
        );
        let mut metas = Vec::new();
        snapshot.meta_properties(vertices[1], properties[1].id, &mut metas);
        assert_eq!(metas, [(snapshot.key_id("since").unwrap(), Value::Int(3))]);
        let mut edges = Vec::new();
        snapshot.scan_edges(&mut ScanCursor::default(), 1, &mut edges);
        assert_eq!(snapshot.edge_value(edges[0], snapshot.key_id("weight").unwrap()), Some(Value::Double(0.5)));
    };
    check(&store);
    assert!(store.checkpoint_failure().is_none());
    store.close().unwrap();
    let report = Store::check(directory.path()).unwrap();
    assert_eq!(report.worst(), Finding::Good, "{report:?}");
    assert!(report.files.iter().any(|file| file.text.contains("20020 vertices and 20001 edges, all rules kept")));
    // After a clean close the log is short.
    let log: u64 = std::fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("log-"))
        .map(|entry| entry.metadata().unwrap().len())
        .sum();
    assert!(log < 300_000, "{log} bytes of log");
    check(&open());
}

#[test]
fn a_batch_that_does_not_fit_ends_the_load_with_its_reason() {
    let store = Store::in_memory();
    let graph = store.create_graph("g").unwrap();
    let mut bulk = graph.bulk();
    let a = bulk.add_vertex("v", Some(Value::Int(1)), Vec::new()).unwrap();
    bulk.flush().unwrap();
    // Another writer takes an id that the loader believes to be free.
    let mut writing = graph.begin();
    writing.add_vertex("v", Some(Value::Int(2))).unwrap();
    writing.commit().unwrap();
    bulk.add_vertex("v", Some(Value::Int(2)), Vec::new()).unwrap();
    bulk.add_edge("e", a, a, None, Vec::new()).unwrap();
    assert!(matches!(bulk.finish(), Err(StoreError::DuplicateVertex { .. })));
    assert_eq!((graph.vertex_count(), graph.edge_count()), (2, 0));
}

/// Where a start is refused because the log does not reach to the checkpoint, a check says so.
#[test]
fn a_check_misses_the_log_that_a_start_misses() {
    let directory = tempfile::tempdir().unwrap();
    let open =
        || Store::open(StoreOptions::default(), Environment::on_directory(directory.path()).unwrap()).map(|_| ());
    let store = Store::open(StoreOptions::default(), Environment::on_directory(directory.path()).unwrap()).unwrap();
    let graph = store.create_graph("g").unwrap();
    let mut writing = graph.begin();
    writing.add_vertex("v", None).unwrap();
    writing.commit().unwrap();
    store.close().unwrap();
    drop((graph, store));
    let log = std::fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.file_name().unwrap().to_string_lossy().starts_with("log-"))
        .unwrap();
    let content = std::fs::read(&log).unwrap();
    for kept in [Some(content.len() / 2), None] {
        match kept {
            Some(length) => std::fs::write(&log, &content[..length]).unwrap(),
            None => std::fs::remove_file(&log).unwrap(),
        }
        let report = Store::check(directory.path()).unwrap();
        assert!(
            report.files.iter().any(|file| file.text.contains("a log file or a checkpoint is missing")),
            "{report:?}"
        );
        assert_eq!(report.worst(), Finding::Bad);
        assert!(matches!(open(), Err(StoreError::Corrupt { .. })));
    }
}

#[test]
fn a_check_explains_damage() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(StoreOptions::default(), Environment::on_directory(directory.path()).unwrap()).unwrap();
    let graph = store.create_graph("g").unwrap();
    let mut writing = graph.begin();
    writing.add_vertex("v", None).unwrap();
    writing.commit().unwrap();
    assert!(matches!(Store::check(directory.path()), Err(StoreError::Locked { .. })));
    drop((graph, store));
    std::fs::write(directory.path().join("notes.txt"), "mine").unwrap();
    let report = Store::check(directory.path()).unwrap();
    assert_eq!(report.worst(), Finding::Harmless, "{report:?}");
    let checkpoint = std::fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.file_name().unwrap().to_string_lossy().starts_with("checkpoint-"))
        .unwrap();
    let mut content = std::fs::read(&checkpoint).unwrap();
    let middle = content.len() / 2;
    content[middle] ^= 1;
    std::fs::write(&checkpoint, content).unwrap();
    let report = Store::check(directory.path()).unwrap();
    assert_eq!(report.worst(), Finding::Bad);
    assert!(report.files.iter().any(|file| file.text.contains("checksum")), "{report:?}");
}

#[test]
fn an_id_that_a_load_made_is_taken() {
    let graph = Store::in_memory().create_graph("g").unwrap();
    let mut bulk = graph.bulk();
    let vertex = bulk.add_vertex("v", Some(Value::String("a".into())), Vec::new()).unwrap();
    bulk.add_edge("e", vertex, vertex, None, Vec::new()).unwrap();
    let taken = bulk.add_edge("e", vertex, vertex, Some(Value::Long(0)), Vec::new()).unwrap_err();
    assert_eq!(taken.to_string(), "Edge with id already exists: 0");
    assert_eq!(bulk.finish().unwrap().edges, 1);
}
