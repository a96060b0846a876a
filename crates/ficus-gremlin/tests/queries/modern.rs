//! The graph "modern": six vertices, six edges.

use std::sync::Arc;

use ficus_model::{Cardinality, Value};
use ficus_storage::{Graph, Store};

/// Makes the graph in memory.
pub fn modern() -> Arc<Graph> {
    let graph = Store::in_memory().create_graph("modern").expect("the store is empty");
    let mut transaction = graph.begin();
    let vertices = [
        (1, "person", "marko", ("age", Value::Int(29))),
        (2, "person", "vadas", ("age", Value::Int(27))),
        (3, "software", "lop", ("lang", Value::String("java".into()))),
        (4, "person", "josh", ("age", Value::Int(32))),
        (5, "software", "ripple", ("lang", Value::String("java".into()))),
        (6, "person", "peter", ("age", Value::Int(35))),
    ];
    for (id, label, name, (key, value)) in vertices {
        let vertex = transaction.add_vertex(label, Some(Value::Int(id))).expect("the id is free");
        for (key, value) in [("name", Value::String(name.into())), (key, value)] {
            transaction.set_vertex_property(vertex, key, value, Cardinality::Single, None).expect("it can be stored");
        }
    }
    let edges = [
        (7, "knows", 1, 2, 0.5),
        (8, "knows", 1, 4, 1.0),
        (9, "created", 1, 3, 0.4),
        (10, "created", 4, 5, 1.0),
        (11, "created", 4, 3, 0.4),
        (12, "created", 6, 3, 0.2),
    ];
    for (id, label, out, in_, weight) in edges {
        let find = |id| transaction.find_vertex(&Value::Int(id)).expect("it was added");
        let (out, in_) = (find(out), find(in_));
        let edge = transaction.add_edge(label, out, in_, Some(Value::Int(id))).expect("the id is free");
        transaction.set_edge_property(edge, "weight", Value::Double(weight)).expect("it can be stored");
    }
    transaction.commit().expect("nobody else writes");
    graph
}
