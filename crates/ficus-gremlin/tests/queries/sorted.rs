//! The first edges by a sort key and ranges of it: the same rows, in the same order where there is one, with and without the declaration.

use std::collections::VecDeque;
use std::sync::Arc;

use ficus_dataflow::Delivery;
use ficus_gremlin::lower::lower;
use ficus_gremlin::text::{ParseOptions, parse_traversal};
use ficus_model::{Value, VertexId};
use ficus_query::budget::Held;
use ficus_query::engine::{Engine, EngineOptions, Prepared, QueryEnd, Row, RowSink, RowWaker, RunOptions};
use ficus_storage::{ElementKind, Graph, SortKey, Store, TypeDefinition};

const HUB_EDGES: u64 = 400;

/// Three vertices with many edges whose keys have ties, gaps and other types; some removed again, some changed. With the sort key declared or not.
fn graph(sort_key: Option<bool>) -> (Arc<Store>, Arc<Graph>) {
    let store = Store::in_memory();
    let graph = store.create_graph("g").unwrap();
    if let Some(descending) = sort_key {
        let mut definition = TypeDefinition::new(ElementKind::Edge, "paid");
        definition.sort_keys = vec![SortKey { key: "at".into(), descending }];
        graph.define_type(&definition).unwrap();
    }
    for half in 0..2u64 {
        let mut writing = graph.begin();
        let ids: Vec<VertexId> = match half {
            0 => (0..20).map(|_| writing.add_vertex("v", None).unwrap()).collect(),
            _ => (0..20).map(|id| writing.find_vertex(&Value::Long(id)).unwrap()).collect(),
        };
        let mut edges = Vec::new();
        for number in half * HUB_EDGES..(half + 1) * HUB_EDGES {
            let mix = |salt: u64| (number.wrapping_add(salt).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33) as i32;
            let label = if number % 9 == 0 { "other" } else { "paid" };
            let (hub, end) = (ids[number as usize % 3], ids[3 + mix(1) as usize % 17]);
            let edge = writing.add_edge(label, hub, end, None).unwrap();
            let at = match mix(2) % 11 {
                0 => None,
                1 => Some(Value::String(format!("t{}", mix(3) % 5).into())),
                2 => Some(Value::Double(f64::from(mix(3) % 50) + 0.5)),
                3 => Some(Value::Long(i64::from(mix(3) % 50))),
                _ => Some(Value::Int(mix(3) % 50)),
            };
            if let Some(at) = at {
                writing.set_edge_property(edge, "at", at).unwrap();
            }
            writing.set_edge_property(edge, "n", Value::Int(number as i32)).unwrap();
            edges.push(edge);
        }
        for edge in edges.iter().step_by(13) {
            writing.remove_edge(*edge).unwrap();
        }
        for edge in edges.iter().skip(5).step_by(13) {
            writing.set_edge_property(*edge, "at", Value::Int(7)).unwrap();
        }
        writing.commit().unwrap();
        if half == 0 {
            store.consolidate().unwrap();
        }
    }
    (store, graph)
}

fn rows(engine: &Engine, graph: &Arc<Graph>, text: &str) -> Vec<String> {
    let plan = lower(&parse_traversal(text, &ParseOptions::default()).unwrap()).unwrap();
    let prepared = Prepared::new(plan).unwrap();
    let (rows, _) = engine.collect(&prepared, graph.begin_reading(), &RunOptions::default());
    let each = |(value, bulk): (Value, u64)| std::iter::repeat_n(value.to_string(), bulk as usize);
    rows.unwrap().into_iter().flat_map(each).collect()
}

#[test]
fn the_first_by_a_sort_key_are_those_of_a_whole_sort() {
    let options = EngineOptions::with_executors(1);
    let engine = Engine::start(options).unwrap();
    let (_plain_store, plain) = graph(None);
    let starts = ["g.V(0)", "g.V(0, 1, 2)", "g.V()", "g.V(0, 0)"];
    let ordered = [
        "outE('paid').order().by('at').limit(20)",
        "outE('paid').order().by('at', desc).limit(7)",
        "outE('paid').order().by('at', asc).range(3, 9)",
        "inE('paid').order().by('at', desc).limit(5)",
        "outE('paid').order().by('at').limit(100000)",
        "outE('paid').order().by('n', desc).limit(4)",
        "outE('paid').order().by('at').by('n', desc).limit(9)",
        "outE('other').order().by('at').limit(3)",
        "outE('paid', 'other').order().by('at').limit(3)",
    ];
    let ranges = [
        "outE('paid').has('at', P.gt(30))",
        "outE('paid').has('at', P.between(10, 20))",
        "inE('paid').has('at', P.lte(5)).has('n', P.gt(100))",
        "outE('paid').has('at', 7)",
        "outE('paid').has('at', P.within(1, 2))",
        "outE('paid').has('at', P.neq(3))",
    ];
    let ways = [
        "outE('paid').has('at', P.gt(30)).inV()",
        "inE('paid').has('at', P.lte(5)).has('n', P.gt(100)).outV()",
        "outE('paid').has('at', P.gte(0)).has('n', P.lt(0)).inV()",
        "outE('paid').inV().dedup()",
    ];
    for descending in [false, true] {
        let (_store, sorted) = graph(Some(descending));
        let label = sorted.snapshot().label_id("paid").unwrap();
        assert_eq!(sorted.snapshot().sort_keys_hint(label).len(), 1, "the edges are in order");
        for start in starts {
            for steps in ordered {
                let text = format!("{start}.{steps}.values('n')");
                assert_eq!(rows(&engine, &sorted, &text), rows(&engine, &plain, &text), "{text}");
            }
            let edges = ranges.iter().map(|steps| format!("{start}.{steps}.values('n')"));
            let vertices = ways.iter().map(|steps| format!("{start}.{steps}.id()"));
            for text in edges.chain(vertices) {
                let [mut found, mut expected] = [&sorted, &plain].map(|graph| rows(&engine, graph, &text));
                found.sort();
                expected.sort();
                assert_eq!(found, expected, "{text}");
            }
        }
    }
}

/// A hop whose filter lets nothing through has to end its turns all the same, or nobody could stop it.
#[test]
fn a_hop_that_finds_nothing_ends_its_turns() {
    let store = Store::in_memory();
    let graph = store.create_graph("g").unwrap();
    let mut definition = TypeDefinition::new(ElementKind::Edge, "paid");
    definition.sort_keys = vec![SortKey { key: "at".into(), descending: false }];
    graph.define_type(&definition).unwrap();
    let mut writing = graph.begin();
    let ends = [0i64, 1].map(|id| writing.add_vertex("v", Some(Value::Long(id))).unwrap());
    for number in 0..40_000 {
        let edge = writing.add_edge("paid", ends[0], ends[1], None).unwrap();
        writing.set_edge_property(edge, "at", Value::Int(number)).unwrap();
    }
    writing.commit().unwrap();
    let options = EngineOptions::with_executors(1);
    let engine = Engine::start(options).unwrap();
    for way in ["has('at', P.gte(0)).has('at', P.neq(7)).has('none', 1)", "has('none', P.lt(5))"] {
        let text = format!("g.V(0L).outE('paid').{way}.inV()");
        let plan = lower(&parse_traversal(&text, &ParseOptions::default()).unwrap()).unwrap();
        let prepared = Prepared::new(plan).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        struct Ends(std::sync::mpsc::Sender<u64>);
        impl RowSink for Ends {
            fn rows(&mut self, rows: &mut VecDeque<Row>, _held: &mut Held, _waker: &RowWaker) -> Delivery {
                rows.clear();
                Delivery::Accepted
            }
            fn end(self: Box<Self>, end: QueryEnd) {
                end.result.unwrap();
                self.0.send(end.work_units).unwrap();
            }
        }
        engine.submit(&prepared, graph.begin_reading(), &RunOptions::default(), Box::new(Ends(sender)));
        assert!(receiver.recv().unwrap() >= 40_000, "{text}");
    }
}
