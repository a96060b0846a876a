//! Walks of several hops with conditions on vertices and edges: the same rows as a stream of walks, as a search on the store, along
//! projections, and in passes shared by many queries.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ficus_analytics::AnalyticsOptions;
use ficus_model::{Cardinality, Direction, Value, VertexId};
use ficus_query::engine::{Collector, Engine, QueryEnd, Row, RunOptions};
use ficus_storage::{Graph, HalfEdgeCursor, Store};

use super::k_hop::{engine, prepare, sorted};

/// Numbers from a seed.
pub(super) struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (self.0 >> 33) % end
    }

    pub fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len() as u64) as usize]
    }
}

const VERTICES: u64 = 120;

/// An uneven graph: some vertices lack properties, some have several values under a key, under `mixed` one has a number, which no walk reaches.
pub(super) fn graph() -> Arc<Graph> {
    let graph = Store::in_memory().create_graph("g").unwrap();
    let mut writing = graph.begin();
    let mut numbers = Numbers(7);
    let ids: Vec<VertexId> =
        (0..VERTICES).map(|number| writing.add_vertex(["v", "w", "x"][number as usize % 3], None).unwrap()).collect();
    for id in &ids {
        let mut set = |key: &str, value: Value, cardinality| {
            writing.set_vertex_property(*id, key, value, cardinality, None).unwrap();
        };
        if numbers.below(4) > 0 {
            set("n", Value::Long(numbers.below(10) as i64), Cardinality::Single);
        }
        if numbers.below(3) == 0 {
            set("n", Value::Double(numbers.below(20) as f64 / 2.0), Cardinality::List);
        }
        set("name", Value::String(["ann", "bob", "cid"][numbers.below(3) as usize].into()), Cardinality::Single);
        let is_last = id.0 == VERTICES - 1;
        let mixed = if is_last { Value::Long(1) } else { Value::String("some".into()) };
        set("mixed", mixed, Cardinality::Single);
    }
    for number in 0..500 {
        let mut pick = || ids[(numbers.below(VERTICES - 1) * numbers.below(VERTICES - 1) / (VERTICES - 1)) as usize];
        let (out, into) = (pick(), pick());
        let edge = writing.add_edge(["knows", "likes"][number % 2], out, into, None).unwrap();
        if numbers.below(5) > 0 {
            writing.set_edge_property(edge, "weight", Value::Long(numbers.below(10) as i64)).unwrap();
        }
    }
    writing.commit().unwrap();
    graph
}

/// A condition on vertices.
fn on_vertices(numbers: &mut Numbers) -> String {
    let below = numbers.below(10);
    match numbers.below(14) {
        0 => format!("has('n', gt({below}))"),
        1 => format!("has('n', within({below}, 3, 4.5))"),
        2 => "hasLabel('v', 'w')".into(),
        3 => "has('name', 'ann')".into(),
        4 => "has('name', startingWith('b').negate())".into(),
        5 => "has('n')".into(),
        6 => "hasNot('n')".into(),
        7 => format!("where(__.has('n', lt({below})))"),
        8 => format!("not(__.has('n', {below}))"),
        9 => format!("or(__.has('n', {below}), __.hasLabel('x'))"),
        10 => format!("and(__.has('n', neq({below})), __.has('name', neq('cid')))"),
        11 => format!("where(__.values('n').is(gte({below})))"),
        12 => format!("hasId(lt({}))", below * 12),
        _ => "has('mixed', containing('om'))".into(),
    }
}

/// A condition on edges.
fn on_edges(numbers: &mut Numbers) -> String {
    let below = numbers.below(10);
    match numbers.below(5) {
        0 => format!("has('weight', gt({below}))"),
        1 => "hasLabel('knows')".into(),
        2 => format!("has('weight', between(2, {}))", below + 3),
        3 => "hasNot('weight')".into(),
        _ => format!("not(__.has('weight', {below}))"),
    }
}

/// A hop.
fn hop(numbers: &mut Numbers) -> String {
    let labels = numbers.of(&["", "'knows'", "'likes', 'knows'", "'unheard'", ""]);
    let (way, end) =
        [("out", "inV()"), ("in", "outV()"), ("both", "otherV()"), ("out", "otherV()")][numbers.below(4) as usize];
    let on_edges = if numbers.below(2) == 0 { format!(".{}", on_edges(numbers)) } else { String::new() };
    let mut hop = match numbers.below(3) {
        0 => format!("__.{way}E({labels}){on_edges}.{end}"),
        _ => format!("__.{way}({labels})"),
    };
    for _ in 0..numbers.below(3) {
        hop += &format!(".{}", on_vertices(numbers));
    }
    hop
}

/// A walk and what is asked of it.
fn text(numbers: &mut Numbers) -> String {
    let start = numbers.of(&["g.V(3)", "g.V(0, 5, 5)", "g.V()", "g.V(1).out('knows')", "g.V().hasLabel('x')"]);
    let (hop, hops) = (hop(numbers), 1 + numbers.below(3));
    let walk = match numbers.below(7) {
        0 => format!("repeat({hop}).times({hops})"),
        1 => format!("times({hops}).repeat({hop})"),
        2 => format!("repeat({hop}).emit().times({hops})"),
        3 => format!("emit().repeat({hop}).times({hops})"),
        4 => {
            let hop = hop.trim_start_matches("__.");
            format!("{hop}.{hop}")
        }
        5 => format!("repeat({hop}).emit().times({hops}).hasId({})", numbers.below(VERTICES)),
        _ => format!("repeat({hop}).times({hops}).hasId({})", numbers.below(VERTICES)),
    };
    let ending = numbers.of(&["", ".count()", ".id()", ".values('n')", ".out().count()", ".has('n', 3).count()"]);
    format!("{start}.{walk}.dedup(){ending}")
}

fn rows(engine: &Engine, graph: &Arc<Graph>, text: &str, with_rules: bool) -> Vec<String> {
    let prepared = prepare(text, with_rules);
    if with_rules {
        assert!(prepared.optimised.to_string().contains("KHopStep"), "no rule for {text}: {}", prepared.optimised);
    }
    let rows = engine.collect(&prepared, graph.begin_reading(), &RunOptions::default()).0;
    sorted(rows.unwrap_or_else(|error| panic!("{text}: {error}")))
}

#[test]
#[allow(clippy::print_stdout, reason = "a failed test prints its seed")]
fn rows_are_those_of_a_stream_of_walks() {
    let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    println!("seed {seed}");
    let mut numbers = Numbers(seed);
    let texts: Vec<String> = (0..400).map(|_| text(&mut numbers)).collect();
    let (graph, alone) = (graph(), engine(None));
    let expected: Vec<Vec<String>> = texts
        .iter()
        .map(|text| {
            let stream = rows(&alone, &graph, text, false);
            assert_eq!(rows(&alone, &graph, text, true), stream, "{text}");
            stream
        })
        .collect();
    for alone_edges in [3, 60] {
        let options = AnalyticsOptions { threads: 2, projection_bytes_limit: 1 << 30, batching: true, alone_edges };
        let shared = engine(Some(options));
        let counters = shared.analytics().unwrap().counters();
        let asked = || counters.questions.load(Ordering::Relaxed);
        let made = || counters.projections.load(Ordering::Relaxed);
        // The first time on the store, then along projections that were made meanwhile, as soon as the machine has time for them.
        for round in 0..100 {
            if round >= 4 && made() > 3 && (asked() > 50 || alone_edges > 3) {
                break;
            }
            let (sender, receiver) = std::sync::mpsc::channel();
            for (number, text) in texts.iter().enumerate() {
                let sender = sender.clone();
                let done = Box::new(move |rows: Vec<Row>, end: QueryEnd| {
                    sender.send((number, end.result.map(|()| rows))).unwrap();
                });
                let sink = Box::new(Collector { done, collected: Vec::new() });
                shared.submit(&prepare(text, true), graph.begin_reading(), &RunOptions::default(), sink);
            }
            drop(sender);
            for (number, rows) in receiver {
                assert_eq!(sorted(rows.unwrap()), expected[number], "round {round}: {}", texts[number]);
            }
        }
        assert!(made() > 3, "only {} projections, alone up to {alone_edges}", made());
        assert!(asked() > 50 || alone_edges > 3, "only {} questions were asked", asked());
    }
}

#[test]
fn a_condition_that_fails_elsewhere_fails_no_query() {
    let graph = graph();
    let options = AnalyticsOptions { threads: 2, projection_bytes_limit: 1 << 30, batching: true, alone_edges: 3 };
    let (alone, shared) = (engine(None), engine(Some(options)));
    // The number under `mixed` is at a vertex without edges.
    let text = "g.V(0, 1, 2).repeat(__.out().has('mixed', startingWith('so'))).times(3).dedup().id()";
    let expected = rows(&alone, &graph, text, false);
    assert!(!expected.is_empty());
    for _ in 0..200 {
        assert_eq!(rows(&shared, &graph, text, true), expected);
    }
    assert!(shared.analytics().unwrap().counters().questions.load(Ordering::Relaxed) > 0);
    // A query that comes there fails, as its stream does.
    let mut writing = graph.begin();
    let ids = [0, VERTICES as i64 - 1].map(|id| writing.find_vertex(&Value::Long(id)).unwrap());
    writing.add_edge("knows", ids[0], ids[1], None).unwrap();
    writing.commit().unwrap();
    for with_rules in [false, true] {
        let run = alone.collect(&prepare(text, with_rules), graph.begin_reading(), &RunOptions::default());
        assert!(run.0.is_err(), "with rules: {with_rules}");
    }
}

#[test]
fn emitted_vertices_can_have_a_condition() {
    let (graph, engine) = (graph(), engine(None));
    for filter in ["has('n', gt(4))", "hasLabel('v')", "not(__.has('n'))"] {
        for (form, start) in [("repeat(__.out()).emit(", ""), ("emit(", ".repeat(__.out())")] {
            for ending in ["id()", "count()", "values('n')"] {
                let walk = format!("g.V(3).{form}__.{filter}){start}.dedup().{ending}");
                // The stream of this walk never ends: the graph has circles. Filtered behind it is the same.
                let emit = form.replace("emit(", "emit()");
                let close = if start.is_empty() { "" } else { start };
                let behind = format!("g.V(3).{emit}{close}.dedup().{filter}.{ending}");
                assert_eq!(rows(&engine, &graph, &walk, true), rows(&engine, &graph, &behind, true), "{walk}");
            }
        }
    }
}

#[test]
fn a_limit_ends_the_search() {
    let (graph, engine) = (graph(), engine(None));
    let all = rows(&engine, &graph, "g.V(3).repeat(__.out()).emit().dedup().id()", true);
    for (limit, expected) in [(1, 1), (5, 5), (1000, all.len())] {
        let some = rows(&engine, &graph, &format!("g.V(3).repeat(__.out()).emit().dedup().limit({limit}).id()"), true);
        assert_eq!(some.len(), expected);
        assert!(some.iter().all(|id| all.contains(id)));
    }
    let skipped = rows(&engine, &graph, "g.V(3).emit().repeat(__.both()).times(3).dedup().range(2, 6).id()", true);
    assert_eq!(skipped.len(), 4);
}

#[test]
fn what_looks_at_more_than_one_element_stays_a_stream() {
    let texts = [
        "g.V(3).repeat(__.out().where(__.out('knows'))).times(2).dedup()",
        "g.V(3).repeat(__.out().has('n', 1).as('a')).times(2).dedup()",
        "g.V(3).repeat(__.outE().has('weight', 1).outV()).times(2).dedup()",
        "g.V(3).repeat(__.out()).emit(__.has('n', 1)).until(__.has('n', 2)).dedup()",
        "g.V(3).repeat(__.out()).until(__.has('n', 2))",
        "g.V(3).repeat(__.out()).until(__.or(__.has('n', 2), __.out('knows'))).dedup()",
        "g.V(3).map(__.out().out().dedup())",
        "g.V(3).local(__.out().out().dedup().limit(2))",
        "g.V(3).union(__.out().out().dedup())",
        "g.V(3).where(__.out().out().dedup())",
        "g.V(3).repeat(__.out()).times(2).dedup().limit(3)",
        "g.V(3).repeat(__.out().simplePath()).times(2).dedup()",
        "g.V(3).repeat(__.out().has('n', 1)).times(2).dedup().path()",
        "g.V().pageRank().repeat(__.out().has('gremlin.pageRankVertexProgram.pageRank', gt(0.1))).times(2).dedup()",
    ];
    for text in texts {
        let prepared = prepare(text, true);
        assert!(!prepared.optimised.to_string().contains("KHopStep"), "{}", prepared.optimised);
    }
}

#[test]
#[allow(clippy::print_stdout, reason = "a failed test prints its seed")]
fn beside_writers_rows_are_those_of_their_states() {
    let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    println!("seed {seed}");
    let graph = graph();
    let options = AnalyticsOptions { threads: 2, projection_bytes_limit: 1 << 30, batching: true, alone_edges: 3 };
    let (alone, shared) = (engine(None), engine(Some(options)));
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut numbers = Numbers(seed ^ 1);
            while !is_done.load(Ordering::Relaxed) {
                let mut writing = graph.begin();
                let mut pick = || writing.find_vertex(&Value::Long(numbers.below(VERTICES - 1) as i64)).unwrap();
                let (out, into, other) = (pick(), pick(), pick());
                let edge = writing.add_edge(["knows", "likes"][numbers.below(2) as usize], out, into, None).unwrap();
                writing.set_edge_property(edge, "weight", Value::Long(numbers.below(10) as i64)).unwrap();
                let value = Value::Long(numbers.below(10) as i64);
                writing.set_vertex_property(other, "n", value, Cardinality::Single, None).unwrap();
                let mut half_edges = Vec::new();
                let mut cursor = HalfEdgeCursor::default();
                writing.half_edges(other, Direction::Out, &[], &mut cursor, 100, &mut half_edges);
                if half_edges.len() > 4 {
                    writing.remove_edge(half_edges[0].edge).unwrap();
                }
                writing.commit().unwrap();
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
        });
        let mut numbers = Numbers(seed);
        let mut compared = 0;
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            while compared < 400 {
                let text = text(&mut numbers);
                let (first, second) = (graph.begin_reading(), graph.begin_reading());
                if first.commit_ts() != second.commit_ts() {
                    continue;
                }
                let ts = first.commit_ts();
                let run = |engine: &Engine, transaction, with_rules| {
                    let prepared = prepare(&text, with_rules);
                    sorted(engine.collect(&prepared, transaction, &RunOptions::default()).0.unwrap())
                };
                assert_eq!(run(&shared, first, true), run(&alone, second, false), "{text} at {ts:?}");
                compared += 1;
            }
        }));
        is_done.store(true, Ordering::Relaxed);
        checked.unwrap();
    });
    let counters = shared.analytics().unwrap().counters();
    let versions = counters.versions.load(Ordering::Relaxed);
    assert!(versions > 5, "only {versions} versions followed the graph");
}

#[test]
fn a_way_to_a_vertex_can_have_conditions() {
    let (graph, engine) = (graph(), engine(None));
    for hop in ["__.out().has('n')", "__.outE().has('weight', gt(3)).inV()", "__.both('knows').hasLabel('v', 'w')"] {
        let all = rows(&engine, &graph, &format!("g.V(3).repeat({hop}).emit().dedup().id()"), true);
        for target in 0..VERTICES {
            let text = format!("g.V(3).repeat({hop}).until(__.hasId({target})).limit(1).id()");
            let is_reached = all.contains(&target.to_string());
            let expected: Vec<String> = is_reached.then(|| target.to_string()).into_iter().collect();
            assert_eq!(rows(&engine, &graph, &text, true), expected, "{text}");
        }
    }
}

/// A graph without circles, in which every stream of walks ends.
fn graph_without_circles() -> Arc<Graph> {
    let graph = Store::in_memory().create_graph("g").unwrap();
    let mut writing = graph.begin();
    let mut numbers = Numbers(11);
    let ids: Vec<VertexId> =
        (0..40).map(|number| writing.add_vertex(["v", "w", "x"][number % 3], None).unwrap()).collect();
    for id in &ids {
        if numbers.below(5) > 0 {
            let value = Value::Long(numbers.below(10) as i64);
            writing.set_vertex_property(*id, "n", value, Cardinality::Single, None).unwrap();
        }
        let name = Value::String(["ann", "bob", "cid"][numbers.below(3) as usize].into());
        writing.set_vertex_property(*id, "name", name, Cardinality::Single, None).unwrap();
        writing.set_vertex_property(*id, "mixed", Value::String("some".into()), Cardinality::Single, None).unwrap();
    }
    for number in 0..70 {
        let (one, other) = (numbers.below(40) as usize, numbers.below(40) as usize);
        if one != other {
            let label = ["knows", "likes"][number % 2];
            writing.add_edge(label, ids[one.min(other)], ids[one.max(other)], None).unwrap();
        }
    }
    writing.commit().unwrap();
    graph
}

/// A hop that goes on.
fn onward(numbers: &mut Numbers) -> String {
    let labels = numbers.of(&["", "'knows'", "'likes', 'knows'", ""]);
    let condition = if numbers.below(3) == 0 { format!(".{}", on_vertices(numbers)) } else { String::new() };
    format!("__.out({labels}){condition}")
}

/// A walk of which vertices on the way count.
fn marked(numbers: &mut Numbers) -> String {
    let start = numbers.of(&["g.V(3)", "g.V(0, 5, 5)", "g.V()", "g.V(1).out('knows')", "g.V().hasLabel('x')"]);
    let (hop, hops, condition) = (onward(numbers), 1 + numbers.below(4), on_vertices(numbers));
    let condition = format!("__.{condition}");
    let walk = match numbers.below(8) {
        0 => format!("repeat({hop}).emit({condition}).times({hops})"),
        1 => format!("emit({condition}).repeat({hop}).times({hops})"),
        2 => format!("times({hops}).repeat({hop}).emit({condition})"),
        3 => format!("repeat({hop}).until({condition})"),
        4 => format!("until({condition}).repeat({hop})"),
        5 => format!("repeat({hop}).until(__.or({condition}, __.loops().is({hops})))"),
        6 => format!("until(__.or(__.loops().is({hops}), {condition})).repeat({hop})"),
        _ => format!("repeat({hop}).emit({condition})"),
    };
    let ending = numbers.of(&["", ".count()", ".id()", ".values('n')", ".out().count()", ".has('n', 3).count()"]);
    format!("{start}.{walk}.dedup(){ending}")
}

/// A walk inside of a sub-query.
fn nested(numbers: &mut Numbers) -> String {
    let start = numbers.of(&["g.V(3)", "g.V(0, 5, 5)", "g.V()", "g.V().hasLabel('x')"]);
    let (hop, hops, condition) = (onward(numbers), 1 + numbers.below(3), on_vertices(numbers));
    let target = numbers.below(40);
    let walk = match numbers.below(5) {
        0 => format!("repeat({hop}).times({hops}).dedup()"),
        1 => format!("repeat({hop}).emit().times({hops}).dedup()"),
        2 => format!("emit().repeat({hop}).dedup()"),
        3 => format!("repeat({hop}).until(__.{condition}).dedup()"),
        _ => format!("repeat({hop}).emit(__.{condition}).times({hops}).dedup()"),
    };
    let question = match numbers.below(3) {
        0 => format!("repeat({hop}).until(__.hasId({target}))"),
        1 => format!("repeat({hop}).emit().times({hops}).hasId({target})"),
        _ => format!("repeat({hop}).until(__.{condition})"),
    };
    match numbers.below(7) {
        0 => format!("{start}.where(__.{question}).id()"),
        1 => format!("{start}.not(__.{question}).id()"),
        2 => format!("{start}.or(__.{question}, __.out('likes').hasId(3)).id()"),
        3 => format!("{start}.project('i', 'c').by(__.id()).by(__.{walk}.count())"),
        4 => format!("{start}.local(__.{walk}.id())"),
        5 => format!("{start}.flatMap(__.{walk}.values('n')).sum()"),
        _ => format!("{start}.map(__.{walk}.count())"),
    }
}

#[test]
#[allow(clippy::print_stdout, reason = "a failed test prints its seed")]
fn vertices_on_the_way_and_walks_in_sub_queries_are_those_of_a_stream() {
    let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    println!("seed {seed}");
    let graph = graph_without_circles();
    let options = AnalyticsOptions { threads: 2, projection_bytes_limit: 1 << 30, batching: true, alone_edges: 3 };
    let engines = [engine(None), engine(Some(options))];
    let mut numbers = Numbers(seed);
    for number in 0..600 {
        let text = if number % 2 == 0 { marked(&mut numbers) } else { nested(&mut numbers) };
        let stream = rows(&engines[0], &graph, &text, false);
        for engine in &engines {
            assert_eq!(rows(engine, &graph, &text, true), stream, "{text}");
        }
    }
}

#[test]
fn a_walk_to_the_nearest_ends_in_a_graph_with_circles() {
    let (graph, engine) = (graph(), engine(None));
    let all = rows(&engine, &graph, "g.V(3).repeat(__.out()).until(__.has('n', 5)).dedup().id()", true);
    assert!(all.len() > 1);
    for (ending, expected) in [("limit(1)", 1), ("dedup().limit(1)", 1), ("dedup().limit(1000)", all.len())] {
        let text = format!("g.V(3).repeat(__.out()).until(__.has('n', 5)).{ending}.id()");
        let some = rows(&engine, &graph, &text, true);
        assert_eq!(some.len(), expected, "{text}");
        assert!(some.iter().all(|id| all.contains(id)), "{text}");
    }
}

/// Too much for a walk in place: the search takes over.
#[test]
fn long_walks_in_sub_queries_are_those_of_a_stream() {
    let graph = Store::in_memory().create_graph("g").unwrap();
    let mut writing = graph.begin();
    let ids: Vec<VertexId> = (0..50).map(|_| writing.add_vertex("v", None).unwrap()).collect();
    for from in 0..50 {
        for step in 1..=30 {
            writing.add_edge("e", ids[from], ids[(from + step * step) % 50], None).unwrap();
        }
    }
    writing.commit().unwrap();
    let options = AnalyticsOptions { threads: 2, projection_bytes_limit: 1 << 30, batching: true, alone_edges: 3 };
    let shared = engine(Some(options));
    for text in [
        "g.V().project('i', 'c').by(__.id()).by(__.repeat(__.out()).times(3).dedup().count())",
        "g.V(1, 2, 3).local(__.repeat(__.out().hasId(neq(7))).emit().times(3).dedup().id())",
        "g.V().where(__.repeat(__.out().hasId(neq(7))).emit().times(3).hasId(7)).count()",
    ] {
        assert_eq!(rows(&shared, &graph, text, true), rows(&shared, &graph, text, false), "{text}");
    }
}
