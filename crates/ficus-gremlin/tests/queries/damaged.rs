//! Queries over a column that was damaged on the disk: an error that names the file, and no other query hurt.

use std::sync::Arc;

use ficus_model::{Cardinality, Value};
use ficus_query::engine::RunOptions;
use ficus_query::error::QueryErrorKind;
use ficus_storage::simulated_disk::SimulatedDisk;
use ficus_storage::{Disk, Environment, Store, StoreOptions};

use crate::indexed::{engine, prepare};

fn open(disk: &SimulatedDisk) -> Arc<Store> {
    let environment = Environment { disk: Some(Arc::new(disk.clone())), ..Environment::in_memory() };
    let mut options = StoreOptions::default();
    options.tablet_bits = 0;
    Store::open(options, environment).unwrap()
}

#[test]
fn a_damaged_column_is_an_error_that_names_it() {
    let disk = SimulatedDisk::new();
    let store = open(&disk);
    let graph = store.create_graph("g").unwrap();
    let mut writing = graph.begin();
    for number in 0..200 {
        let vertex = writing.add_vertex("person", None).unwrap();
        let text = Value::String(format!("a text of its own, number {number}").into());
        writing.set_vertex_property(vertex, "name", text, Cardinality::Single, None).unwrap();
    }
    writing.commit().unwrap();
    store.consolidate().unwrap();
    drop(graph);
    store.close().unwrap();
    let name = disk.list().unwrap().into_iter().find(|name| name.starts_with("segment-")).unwrap();
    let file = disk.open(&name).unwrap();
    let mut bytes = vec![0; file.length().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    let wanted = b"number 150";
    let place = bytes.windows(wanted.len()).position(|part| part == wanted).unwrap() as u64;
    // No text any more.
    file.write_all_at(&[0xff], place).unwrap();
    file.sync().unwrap();
    let graph = open(&disk).graph("g").unwrap();
    let engine = engine();
    let run = |query: &str| engine.collect(&prepare(query), graph.begin(), &RunOptions::default()).0;
    let error = run("g.V().values('name')").unwrap_err();
    assert_eq!(error.kind, QueryErrorKind::Damaged, "{error}");
    assert!(error.to_string().contains(&format!("{name} is damaged at byte ")), "{error}");
    let after = run("g.V().count()").unwrap_err();
    assert_eq!(after, error, "from then on the graph is not believed");
}
