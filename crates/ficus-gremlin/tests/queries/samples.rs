//! `sample()` of many rows, of which only those that are wanted are kept.

use std::sync::Arc;

use ficus_model::{Cardinality, Value};
use ficus_query::engine::RunOptions;
use ficus_storage::{Graph, Store};

use crate::runner::{Answer, Runner, Show, USUAL};

const VERTICES: i64 = 20_000;

/// Vertices with a weight from 0 to 9.
fn graph() -> Arc<Graph> {
    let graph = Store::in_memory().create_graph("g").unwrap();
    let mut writing = graph.begin();
    for id in 0..VERTICES {
        let vertex = writing.add_vertex("v", Some(Value::Long(id))).unwrap();
        writing.set_vertex_property(vertex, "w", Value::Long(id % 10), Cardinality::Single, None).unwrap();
    }
    writing.commit().unwrap();
    graph
}

#[test]
fn samples_of_many_rows_have_the_size_and_the_weights_that_are_asked_for() {
    let runner = Runner::new(graph());
    let options = |memory_limit_bytes| RunOptions { memory_limit_bytes, ..RunOptions::default() };
    let rows = |text: &str, memory: usize| match runner.text(text, USUAL, &options(memory), Show::AsIs) {
        Answer::Rows(rows) => rows,
        other => panic!("{text}: {other:?}"),
    };
    let number = |row: &String| row.trim_end_matches('L').parse::<f64>().expect("a number");
    for (text, count) in [
        ("g.V().sample(0).count()", 0.0),
        ("g.V().sample(7).dedup().count()", 7.0),
        ("g.V().sample(12000).dedup().count()", 12_000.0),
        ("g.V().sample(20000).dedup().count()", 20_000.0),
        ("g.V().sample(30000).count()", 20_000.0),
        ("g.V().sample(17999).by('w').dedup().count()", 17_999.0),
        ("g.V().values('w').sample(50).count()", 50.0),
        ("g.V().as('x').sample(50).select('x').dedup().count()", 50.0),
    ] {
        assert_eq!(number(&rows(text, 1 << 30)[0]), count, "{text}");
    }
    // With their share a weight comes as often as it is large: 285 / 45 on average; without, all come alike.
    for (text, wanted) in [
        ("g.V().sample(500).by('w').values('w').mean()", 285.0 / 45.0),
        ("g.V().sample(500).values('w').mean()", 4.5),
        ("g.V().sample(500).by(__.constant(3)).values('w').mean()", 4.5),
    ] {
        let mean = number(&rows(text, 1 << 30)[0]);
        assert!((mean - wanted).abs() < 0.8, "{text}: {mean} instead of {wanted}");
    }
    // What is not wanted is not kept: with a way of its own each row takes some hundred bytes.
    assert_eq!(rows("g.V().as('y').sample(3).path()", 3 << 20).len(), 3);
}
