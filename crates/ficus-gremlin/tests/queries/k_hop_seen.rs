//! Loops that remember in a side effect where they have been: the same rows, with the same sacks, as a search and as they are written.

use std::sync::Arc;

use ficus_analytics::{AnalyticsOptions, ProjectionOptions, Unlimited};
use ficus_model::{Cardinality, Value, VertexId};
use ficus_query::engine::{Engine, RunOptions};
use ficus_storage::{Graph, Store};

use crate::k_hop::{engine, prepare, sorted};

/// Two parts of unequal density, with loops, parallel edges and vertices without edges.
fn graph() -> Arc<Graph> {
    let graph = Store::in_memory().create_graph("g").unwrap();
    let mut writing = graph.begin();
    let ids: Vec<VertexId> = (0..400)
        .map(|number| {
            let vertex = writing.add_vertex("v", None).unwrap();
            let value = Value::Int(number * 37 % 11);
            writing.set_vertex_property(vertex, "n", value, Cardinality::Single, None).unwrap();
            vertex
        })
        .collect();
    for number in 0..1_100usize {
        let mix = |salt: usize| (number * 7_919 + salt).wrapping_mul(2_654_435_761) >> 9;
        let (from, to) = match number % 9 {
            0 => (mix(1) % 370, mix(2) % 370),
            _ => (mix(3) % 90, mix(5) % 90),
        };
        let edge = writing.add_edge(["knows", "likes"][number % 2], ids[from], ids[to], None).unwrap();
        writing.set_edge_property(edge, "w", Value::Int((number % 7) as i32)).unwrap();
    }
    writing.commit().unwrap();
    graph
}

const LOOPS: [&str; 12] = [
    "aggregate('x').repeat(both('knows').where(without('x')).dedup().aggregate('x')).emit().times(3)",
    "aggregate('x').repeat(__.out().dedup().where(without('x')).aggregate('x')).times(2)",
    "aggregate('x').repeat(__.out().dedup().where(without('x')).aggregate('x')).emit()",
    "repeat(__.in('likes').where(without('x')).dedup().aggregate('x')).emit()",
    "repeat(both().where(without('x')).dedup().aggregate('x')).times(4)",
    "repeat(both().where(without('x')).dedup().aggregate('x')).times(1)",
    "repeat(both().where(without('x')).dedup().aggregate('x')).emit().times(40)",
    "aggregate('x').repeat(both().where(without('x')).dedup().aggregate('x')).times(40)",
    "aggregate('x').repeat(both().has('n', gt(2)).where(without('x')).dedup().aggregate('x')).emit().times(4)",
    "aggregate('x').repeat(bothE('likes').has('w', lt(5)).otherV().where(without('x')).has('n', neq(3)).dedup().aggregate('x')).emit().times(3)",
    "aggregate('x').repeat(__.out('unheard').where(without('x')).dedup().aggregate('x')).emit().times(3)",
    "out().aggregate('x').repeat(__.out('likes').where(without('x')).dedup().aggregate('x')).emit().times(2)",
];

const STARTS: [&str; 6] = ["V(3L)", "V(0L, 50L, 50L)", "V()", "V(100000L)", "V(399L)", "V().has('n', 4)"];

/// The loop with something done to the sack in each of its iterations.
fn with_sack(text: &str, change: &str) -> String {
    text.replace("aggregate('x'))", &format!("aggregate('x').{change})"))
}

fn texts() -> Vec<String> {
    let mut texts = Vec::new();
    for start in STARTS {
        for own in LOOPS {
            for ending in ["", ".id()", ".count()", ".out('knows').count()", ".has('n', lt(6)).values('n')"] {
                texts.push(format!("g.{start}.{own}{ending}"));
            }
            for ending in [".sack()", ".project('v', 'far').by(id).by(sack())", ".out().sack().sum()"] {
                texts.push(format!("g.withSack(7).{start}.{own}{ending}"));
                for (first, change) in [
                    ("0", "sack(sum).by(constant(1))"),
                    ("1L", "sack(mult).by(constant(3))"),
                    ("0.5d", "sack(minus).by(constant(2))"),
                ] {
                    texts.push(format!("g.withSack({first}).{start}.{}{ending}", with_sack(own, change)));
                }
            }
        }
    }
    texts
}

fn rows(engine: &Engine, graph: &Arc<Graph>, text: &str, with_rules: bool) -> Vec<String> {
    let prepared = prepare(text, with_rules);
    sorted(
        engine
            .collect(&prepared, graph.begin(), &RunOptions::default())
            .0
            .unwrap_or_else(|error| panic!("{text}: {error}")),
    )
}

#[test]
fn rows_and_sacks_are_those_of_the_loop() {
    let (graph, alone) = (graph(), engine(None));
    let options = AnalyticsOptions { threads: 2, projection_bytes_limit: 1 << 30, batching: true, alone_edges: 3 };
    let shared = engine(Some(options));
    let projection = ProjectionOptions { edge_labels: None, edges: None };
    shared.analytics().unwrap().projection(&graph.snapshot(), &projection, &Unlimited).unwrap();
    let mut rows_seen = 0;
    for text in texts() {
        assert!(prepare(&text, true).optimised.to_string().contains("KHopStep"), "no rule for {text}");
        let expected = rows(&alone, &graph, &text, false);
        assert_eq!(rows(&alone, &graph, &text, true), expected, "{text}");
        assert_eq!(rows(&shared, &graph, &text, true), expected, "along a projection: {text}");
        rows_seen += expected.len();
    }
    assert!(rows_seen > 15_000, "{rows_seen} rows");
}

#[test]
fn rows_come_hop_by_hop() {
    let (graph, engine) = (graph(), engine(None));
    let text = format!("g.withSack(0).V(3L).{}.sack()", with_sack(LOOPS[0], "sack(sum).by(constant(1))"));
    let (collected, _) = engine.collect(&prepare(&text, true), graph.begin(), &RunOptions::default());
    let far: Vec<String> = collected.unwrap().into_iter().map(|(value, _)| value.to_string()).collect();
    assert!(
        far.is_sorted() && far.first().is_some_and(|first| first == "1") && far.last().is_some_and(|last| last == "3")
    );
}

#[test]
fn other_loops_stay_as_they_are() {
    let (graph, engine) = (graph(), engine(None));
    let body = "both('knows').where(without('x')).dedup().aggregate('x')";
    let mut texts: Vec<String> = [
        // Somebody asks for what was gathered, or adds to it.
        format!("g.V(3L).aggregate('x').repeat({body}).emit().times(2).cap('x')"),
        format!("g.V(3L).aggregate('x').repeat({body}).emit().times(2).out().where(within('x'))"),
        format!("g.V(3L).aggregate('x').repeat({body}).emit().times(2).select('x')"),
        format!("g.V(3L).aggregate('x').out().aggregate('x').repeat({body}).emit().times(2)"),
        format!("g.withSideEffect('x', [1, 2]).V(3L).aggregate('x').repeat({body}).emit().times(2)"),
        format!("g.V(3L).aggregate('y').repeat({body}).emit().times(2).aggregate('x')"),
        format!("g.V(3L).aggregate('x').repeat({body}).emit().times(2).path()"),
        // Some of its first rows are enough.
        format!("g.V(3L).aggregate('x').repeat({body}).emit().limit(2).count()"),
        // The start comes out as well, more than once maybe; or the loop ends otherwise.
        format!("g.V(3L, 3L).aggregate('x').emit().repeat({body}).times(2)"),
        format!("g.V(3L).aggregate('x').emit().times(2).repeat({body})"),
        format!("g.V(3L).aggregate('x').times(2).repeat({body}).emit()"),
        format!("g.V(3L).aggregate('x').repeat({body}).until(has('n', 4))"),
        format!("g.V(3L).aggregate('x').repeat({body}).emit(has('n', 4)).times(3)"),
        // What is gathered is something else.
        String::from(
            "g.V(3L).aggregate('x').by('n').repeat(both().where(without('x')).dedup().aggregate('x')).times(2)",
        ),
        String::from(
            "g.V(3L).aggregate('x').repeat(both().where(without('x')).dedup().aggregate('x').by('n')).times(2)",
        ),
        String::from("g.V(3L).aggregate('x').repeat(both().where(without('x')).aggregate('x')).times(2)"),
        String::from(
            "g.V(3L).aggregate('x').repeat(both().where(without('x')).dedup().local(aggregate('x'))).emit().times(3)",
        ),
        String::from(
            "g.V(3L).aggregate('x').repeat(both().where(without('y')).dedup().aggregate('x')).emit().times(2)",
        ),
        String::from(
            "g.V(3L).aggregate('x').repeat(both().where(without('x')).dedup().by('n').aggregate('x')).emit().times(2)",
        ),
        String::from(
            "g.V(3L).aggregate('x').repeat(both().as('a').where(without('x')).dedup().aggregate('x')).emit().times(2).select('a')",
        ),
        String::from(
            "g.V(3L).aggregate('x').repeat(both().where(without('x')).dedup().aggregate('x').out()).emit().times(2)",
        ),
        String::from(
            "g.V().local(aggregate('x').repeat(both().where(without('x')).dedup().aggregate('x')).emit().times(2))",
        ),
    ]
    .into();
    // Sacks that differ, or change otherwise.
    texts.extend(
        [
            ("0, sum", "V(3L)", "sack(sum).by(constant(1))"),
            ("0", "V(3L, 5L).sack(sum).by('n')", "sack(sum).by(constant(1))"),
            ("0", "V(3L, 5L).local(sack(sum).by('n'))", "sack(sum).by(constant(1))"),
            ("1", "V(3L)", "sack(div).by(constant(2))"),
            ("1", "V(3L)", "sack(sum).by('n')"),
            ("'a'", "V(3L)", "sack(sum).by(constant('b'))"),
        ]
        .map(|(first, start, change)| {
            let own = with_sack(&format!("aggregate('x').repeat({body}).emit().times(2)"), change);
            format!("g.withSack({first}).{start}.{own}.sack()")
        }),
    );
    for text in texts {
        assert!(!prepare(&text, true).optimised.to_string().contains("KHopStep"), "{text}");
        let run = |with_rules| {
            let (rows, _) = engine.collect(&prepare(&text, with_rules), graph.begin(), &RunOptions::default());
            rows.map(sorted).map_err(|error| error.kind)
        };
        assert_eq!(run(true), run(false), "{text}");
    }
}
