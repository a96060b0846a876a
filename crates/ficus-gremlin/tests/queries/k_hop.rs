//! Walks of several hops: the same rows as a stream of walks, as a search on the store, and in passes shared by many queries.

use std::sync::Arc;

use ficus_analytics::{AnalyticsOptions, ProjectionOptions, Unlimited};
use ficus_gremlin::lower::lower;
use ficus_gremlin::text::{ParseOptions, parse_traversal};
use ficus_model::{Value, VertexId};
use ficus_query::engine::{Collector, Engine, EngineOptions, Prepared, QueryEnd, Row, RunOptions};
use ficus_storage::{Graph, Store};

const VERTICES: u64 = 200;

/// Every query asks before its first hop that is worth the name.
const ASKING: AnalyticsOptions =
    AnalyticsOptions { threads: 2, projection_bytes_limit: 1 << 30, batching: true, alone_edges: 3 };

/// An uneven graph with loops, parallel edges and vertices without edges.
fn graph() -> Arc<Graph> {
    let graph = Store::in_memory().create_graph("g").unwrap();
    let mut writing = graph.begin();
    let ids: Vec<VertexId> = (0..VERTICES).map(|_| writing.add_vertex("v", None).unwrap()).collect();
    for number in 0..600u64 {
        let mix = |salt: u64| (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ salt).wrapping_mul(salt | 1) >> 40;
        let pick = |salt: u64| ids[((mix(salt) % 180) * (mix(salt + 7) % 180) / 180) as usize];
        writing.add_edge(["knows", "likes"][number as usize % 2], pick(11), pick(29), None).unwrap();
    }
    writing.commit().unwrap();
    graph
}

pub(super) fn engine(analytics: Option<AnalyticsOptions>) -> Engine {
    let options = EngineOptions { analytics, ..EngineOptions::with_executors(2) };
    Engine::start(options).unwrap()
}

pub(super) fn prepare(text: &str, with_rules: bool) -> Prepared {
    let mut plan = lower(&parse_traversal(text, &ParseOptions::default()).unwrap()).unwrap();
    plan.source.options.push(("ficus.rules".into(), Value::Bool(with_rules)));
    Prepared::new(plan).unwrap()
}

pub(super) fn sorted(rows: Vec<Row>) -> Vec<String> {
    let each = |(value, bulk): Row| std::iter::repeat_n(value.to_string(), bulk as usize);
    let mut rows: Vec<String> = rows.into_iter().flat_map(each).collect();
    rows.sort();
    rows
}

fn texts() -> Vec<String> {
    let shapes = [
        "repeat(__.out()).times(2).dedup()",
        "repeat(__.out('knows')).times(3).dedup()",
        "repeat(__.in()).emit().times(3).dedup()",
        "emit().repeat(__.both('likes')).times(2).dedup()",
        "times(2).repeat(__.both()).dedup()",
        "repeat(__.out('knows', 'likes')).emit().times(4).dedup()",
        "repeat(__.out('unheard')).times(2).dedup()",
        "emit().repeat(__.out('unheard')).times(2).dedup()",
        "out().out().dedup()",
        "out().out().out('knows').out('knows').dedup()",
        "repeat(__.out()).times(2).dedup().out('likes')",
        "out('knows').union(__.identity(), __.out('knows')).dedup()",
        "union(__.both(), __.both().both()).dedup()",
        "union(__.in('likes').in('likes'), __.identity(), __.in('likes')).dedup()",
        "out().union(__.out().union(__.out(), __.identity()), __.identity()).hasLabel('v').dedup()",
        "out().out().union(__.identity(), __.out()).union(__.identity(), __.in()).out().out().dedup()",
        "repeat(__.out()).times(2).dedup().repeat(__.in()).times(2).dedup()",
        "repeat(__.out()).emit().times(3).dedup().hasId(7)",
        "repeat(__.in()).times(2).hasId(1).dedup()",
        "emit().repeat(__.both()).times(2).hasId(0).limit(1)",
        "repeat(__.out()).emit().times(3).hasId(9999).dedup()",
        "repeat(__.out()).times(3).hasId('no such id').limit(1)",
    ];
    let endings = ["", ".count()", ".id()", ".out().count()", ".hasLabel('v').count()"];
    let starts = ["g.V(3)", "g.V(0, 5, 5)", "g.V()", "g.V(100000)", "g.V(0).out()"];
    let mut texts = Vec::new();
    for start in starts {
        for shape in shapes {
            texts.extend(endings.iter().map(|ending| format!("{start}.{shape}{ending}")));
        }
    }
    texts
}

#[test]
fn rows_are_those_of_a_stream_of_walks() {
    // Passes for nearly all, and searches along a projection for nearly all.
    let asked = [ASKING.alone_edges, 75].map(shared_rows_are_those_of_a_stream);
    // Walks from nowhere ask nothing, unless they count.
    assert!(asked[0] >= 150 && asked[0] > asked[1], "{asked:?} questions were asked");
}

/// How many questions were asked.
fn shared_rows_are_those_of_a_stream(alone_edges: u64) -> u64 {
    let (graph, alone, shared) = (graph(), engine(None), engine(Some(AnalyticsOptions { alone_edges, ..ASKING })));
    let analytics = shared.analytics().unwrap();
    let snapshot = graph.snapshot();
    let named = |names: &[&str]| {
        let mut labels: Vec<_> = names.iter().filter_map(|name| snapshot.label_id(name)).collect();
        labels.sort_unstable();
        Some(labels)
    };
    let parts = [None, named(&["knows"]), named(&["likes"]), named(&["knows", "likes"]), named(&[])];
    for edge_labels in parts {
        analytics.projection(&snapshot, &ProjectionOptions { edge_labels, edges: None }, &Unlimited).unwrap();
    }
    let texts = texts();
    let expected: Vec<_> = texts
        .iter()
        .map(|text| {
            let run = |with_rules| {
                let prepared = prepare(text, with_rules);
                sorted(alone.collect(&prepared, graph.begin(), &RunOptions::default()).0.unwrap())
            };
            let (stream, search) = (run(false), run(true));
            assert_eq!(search, stream, "{text}");
            assert!(prepare(text, true).optimised.to_string().contains("KHopStep"), "no rule for {text}");
            stream
        })
        .collect();
    // All at once, so that questions wait for each other's passes.
    let (sender, receiver) = std::sync::mpsc::channel();
    for (number, text) in texts.iter().enumerate() {
        let sender = sender.clone();
        let done =
            Box::new(move |rows: Vec<Row>, end: QueryEnd| sender.send((number, end.result.map(|()| rows))).unwrap());
        let sink = Box::new(Collector { done, collected: Vec::new() });
        shared.submit(&prepare(text, true), graph.begin_reading(), &RunOptions::default(), sink);
    }
    drop(sender);
    let mut answered = 0;
    for (number, rows) in receiver {
        assert_eq!(sorted(rows.unwrap()), expected[number], "shared: {}", texts[number]);
        answered += 1;
    }
    assert_eq!(answered, texts.len());
    analytics.counters().questions.load(std::sync::atomic::Ordering::Relaxed)
}

#[test]
fn the_way_to_a_vertex_ends_there() {
    let (graph, engine) = (graph(), engine(None));
    let reached = |text: &str| {
        let prepared = prepare(text, true);
        assert!(prepared.optimised.to_string().contains("to("), "{}", prepared.optimised);
        sorted(engine.collect(&prepared, graph.begin(), &RunOptions::default()).0.unwrap())
    };
    // The streams of these walks never end: the graph has circles.
    let all = "g.V(3).repeat(__.out()).emit().dedup().id()";
    let all = sorted(engine.collect(&prepare(all, true), graph.begin(), &RunOptions::default()).0.unwrap());
    for target in 0..VERTICES {
        let is_reached = all.contains(&target.to_string());
        let expected: Vec<String> = is_reached.then(|| target.to_string()).into_iter().collect();
        for ending in ["limit(1).id()", "dedup().id()"] {
            assert_eq!(reached(&format!("g.V(3).repeat(__.out()).until(__.hasId({target})).{ending}")), expected);
        }
    }
    assert_eq!(reached("g.V(3).until(__.hasId(3)).repeat(__.out()).limit(1).id()"), ["3"]);
    assert_eq!(reached("g.V(199).until(__.hasId(3)).repeat(__.out()).limit(1).count()"), ["0"]);
}

#[test]
fn a_query_can_ask_for_the_stream() {
    let plain = prepare("g.with('ficus.khop', false).V(3).repeat(__.out()).times(2).dedup()", true);
    assert!(!plain.optimised.to_string().contains("KHopStep"), "{}", plain.optimised);
}

#[test]
fn enough_searches_make_a_projection() {
    let (graph, engine) = (graph(), engine(Some(ASKING)));
    let prepared = prepare("g.V().repeat(__.out()).times(3).dedup().count()", true);
    let mut first = None;
    loop {
        let rows = engine.collect(&prepared, graph.begin_reading(), &RunOptions::default()).0.unwrap();
        assert_eq!(first.get_or_insert_with(|| rows.clone()), &rows);
        if engine.analytics().unwrap().ready(&graph.snapshot(), &ProjectionOptions::default()).is_some() {
            break;
        }
    }
    let rows = engine.collect(&prepared, graph.begin_reading(), &RunOptions::default()).0.unwrap();
    assert_eq!(first.unwrap(), rows);
}

#[test]
fn a_query_sees_what_its_transaction_wrote() {
    let (graph, engine) = (graph(), engine(Some(ASKING)));
    let snapshot = graph.snapshot();
    engine.analytics().unwrap().projection(&snapshot, &ProjectionOptions::default(), &Unlimited).unwrap();
    let prepared = prepare("g.V(0).repeat(__.out('fresh')).times(2).dedup().count()", true);
    let mut transaction = graph.begin();
    let added: Vec<VertexId> = (0..3).map(|_| transaction.add_vertex("v", None).unwrap()).collect();
    let start = transaction.find_vertex(&ficus_model::Value::Int(0)).unwrap();
    transaction.add_edge("fresh", start, added[0], None).unwrap();
    transaction.add_edge("fresh", added[0], added[1], None).unwrap();
    transaction.add_edge("fresh", added[0], added[2], None).unwrap();
    let rows = engine.collect(&prepared, transaction, &RunOptions::default()).0.unwrap();
    assert_eq!(sorted(rows), ["2"]);
}

#[test]
fn a_cancelled_query_leaves_its_line() {
    let (graph, engine) = (graph(), engine(Some(ASKING)));
    let options = RunOptions::default();
    engine.analytics().unwrap().projection(&graph.snapshot(), &ProjectionOptions::default(), &Unlimited).unwrap();
    options.cancel.cancel();
    let prepared = prepare("g.V().repeat(__.out()).times(3).dedup().count()", true);
    assert!(engine.collect(&prepared, graph.begin_reading(), &options).0.is_err());
}
