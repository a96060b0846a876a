//! Loops that bring equal rows together, end where they go in circles, are written out, or go deeper than wide: the same rows as without all that, and
//! where without it they would never end, those of a query that does.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use ficus_dataflow::Delivery;
use ficus_model::{Cardinality, Value, VertexId};
use ficus_query::budget::Held;
use ficus_query::engine::{Engine, QueryEnd, Row, RowSink, RowWaker, RunOptions};
use ficus_storage::{Graph, Store};

use crate::k_hop::{engine, prepare, sorted};

/// Vertices of two parts that no edge joins, with circles, loops and parallel edges, and some without edges.
fn graph() -> Arc<Graph> {
    let graph = Store::in_memory().create_graph("g").unwrap();
    let mut writing = graph.begin();
    let ids: Vec<VertexId> = (0..60)
        .map(|number| {
            let vertex = writing.add_vertex("v", None).unwrap();
            writing.set_vertex_property(vertex, "n", Value::Int(number), Cardinality::Single, None).unwrap();
            vertex
        })
        .collect();
    for number in 0..90usize {
        let mix = |salt: usize| (number * 7_919 + salt).wrapping_mul(2_654_435_761) >> 9;
        let (from, to) =
            if number % 3 == 0 { (mix(1) % 25, mix(2) % 25) } else { (25 + mix(3) % 30, 25 + mix(5) % 30) };
        writing.add_edge(["a", "b"][number % 2], ids[from], ids[to], None).unwrap();
    }
    writing.commit().unwrap();
    graph
}

fn rows(engine: &Engine, graph: &Arc<Graph>, text: &str, with_rules: bool) -> Vec<String> {
    let prepared = prepare(text, with_rules);
    let (rows, _) = engine.collect(&prepared, graph.begin(), &RunOptions::default());
    sorted(rows.unwrap_or_else(|error| panic!("{text}: {error}")))
}

/// Tells what a run took.
struct Tell(Sender<Taken>);

/// Work units, and the most bytes that it held.
struct Taken {
    work: u64,
    bytes: usize,
}

impl RowSink for Tell {
    fn rows(&mut self, rows: &mut VecDeque<Row>, _held: &mut Held, _waker: &RowWaker) -> Delivery {
        rows.clear();
        Delivery::Accepted
    }

    fn end(self: Box<Self>, end: QueryEnd) {
        assert!(end.result.is_ok(), "{:?}", end.result);
        let _ = self.0.send(Taken { work: end.work_units, bytes: end.memory_peak_bytes });
    }
}

fn taken(engine: &Engine, graph: &Arc<Graph>, text: &str) -> Taken {
    let (sender, end) = channel();
    engine.submit(&prepare(text, true), graph.begin(), &RunOptions::default(), Box::new(Tell(sender)));
    end.recv().unwrap_or_else(|_| panic!("{text} failed"))
}

/// The rules that were applied to a text.
fn applied(text: &str) -> String {
    prepare(text, true).applied.iter().map(|(rule, _)| format!("{rule:?} ")).collect()
}

#[test]
fn sub_queries_merge_equal_rows() {
    let (graph, engine) = (graph(), engine(None));
    let loops = [
        "repeat(both()).times(3)",
        "repeat(both()).emit().times(3)",
        "emit().repeat(__.out()).times(4)",
        "times(2).repeat(both())",
        "repeat(both()).emit(has('n', gt(20))).times(3)",
        "repeat(union(__.out('a'), __.in('b'), identity())).times(3)",
        "repeat(union(__.out('a'), both()).has('n', gt(4))).emit().times(3)",
        "repeat(both().has('n', gt(4))).until(or(has('n', gt(40)), loops().is(3)))",
    ];
    let mut seen = 0;
    for own in loops {
        for around in ["local(X)", "flatMap(X)", "optional(X)", "coalesce(X, both())", "local(optional(flatMap(X)))"] {
            for ending in ["", ".count()", ".values('n').sum()", ".dedup()", ".out()", ".limit(100000)"] {
                let around = around.replace('X', &format!("__.{own}"));
                let text = format!("g.V().{around}{ending}");
                assert!(!applied(&text).contains("RepeatWrittenOut"), "{text}");
                let expected = rows(&engine, &graph, &text, false);
                assert_eq!(rows(&engine, &graph, &text, true), expected, "{text}");
                seen += expected.len();
            }
        }
    }
    assert!(seen > 100_000, "{seen}");
    // What would be 10^15 rows.
    let text = "g.V().local(__.repeat(both()).times(40)).count()";
    assert!(applied(text).contains("MergeEqualInLoops"));
    assert_eq!(rows(&engine, &graph, text, true).len(), 1);
    assert_eq!(rows(&engine, &graph, "g.V().repeat(union(both(), both())).times(40).count()", true).len(), 1);
}

#[test]
fn what_is_cut_off_is_not_gathered_first() {
    let (graph, engine) = (graph(), engine(None));
    let cut = "g.V().local(__.repeat(both()).times(2).limit(2)).dedup()";
    assert!(!applied(cut).contains("DistinctInLoops"));
    let few = "g.V().local(__.repeat(both()).times(12).limit(2)).limit(10)";
    assert!(!applied(few).contains("MergeEqualInLoops"));
    assert_eq!(rows(&engine, &graph, few, true).len(), 10);
    // So many are there sooner if equal ones are one.
    let many = "g.V().repeat(both()).times(30).range(100000000, 100000002)";
    assert!(applied(many).contains("MergeEqualInLoops"));
    assert_eq!(rows(&engine, &graph, many, true).len(), 2);
    let work = taken(&engine, &graph, many).work;
    assert!(work < 100_000, "{work}");
}

#[test]
fn loops_that_go_in_circles_end() {
    let (graph, engine) = (graph(), engine(None));
    // What is reached at last, and how else to find out.
    let tests = [
        ("repeat(union(__.out(), __.in())).until(has('n', N))", "repeat(both()).emit().has('n', N)"),
        ("repeat(union(__.out('a'), __.in('a'))).until(has('n', N))", "repeat(both('a')).emit().has('n', N)"),
        ("until(has('n', N)).repeat(union(__.out(), __.in()))", "emit().repeat(both()).has('n', N)"),
        ("until(has('n', N)).repeat(optional(__.out()))", "emit().repeat(__.out()).has('n', N)"),
        ("repeat(coalesce(__.out('a'), __.in('a'), identity())).until(has('n', N))", ""),
        (
            "repeat(local(both().has('n', neq(3)))).until(has('n', N))",
            "repeat(both().has('n', neq(3))).emit().has('n', N)",
        ),
    ];
    let mut seen = 0;
    for number in [0, 7, 21, 30, 54, 59] {
        for (own, other) in tests {
            let (own, other) = (own.replace('N', &number.to_string()), other.replace('N', &number.to_string()));
            for around in ["where(X)", "not(X)", "filter(X)", "choose(X, constant('yes'), constant('no'))"] {
                let text = |inner: &str| format!("g.V().{}", around.replace('X', &format!("__.{inner}")));
                let found = rows(&engine, &graph, &text(&own), true);
                if !other.is_empty() {
                    assert_eq!(found, rows(&engine, &graph, &text(&other), true), "{}", text(&own));
                }
                seen += found.len();
            }
            let found = rows(&engine, &graph, &format!("g.V().{own}.dedup()"), true);
            assert!(found.len() <= 1, "{own}");
        }
    }
    assert!(seen > 1_000, "{seen}");
    // In sub-queries whose rows are wanted once each.
    for (text, other) in [
        ("optional(__.repeat(__.out()).until(has('n', 7))).dedup()", ""),
        ("local(__.repeat(union(__.out(), __.in())).emit()).dedup()", "repeat(both()).emit().dedup()"),
        (
            "coalesce(flatMap(__.repeat(both()).emit()), identity()).dedup()",
            "union(repeat(both()).emit(), not(both())).dedup()",
        ),
    ] {
        let text = format!("g.V().{text}");
        assert!(applied(&text).contains("DistinctInLoops"), "{text}: {}", applied(&text));
        let found = rows(&engine, &graph, &text, true);
        assert!(!found.is_empty());
        if !other.is_empty() {
            assert_eq!(found, rows(&engine, &graph, &format!("g.V().{other}"), true), "{text}");
        }
    }
    // Those that are emitted on the way, each once.
    let all = rows(&engine, &graph, "g.V().repeat(both()).emit().dedup()", true);
    assert_eq!(rows(&engine, &graph, "g.V().repeat(union(__.out(), __.in())).emit().dedup()", true), all);
}

#[test]
fn loops_that_count_iterations_pass_a_row_in_each() {
    let (graph, engine) = (graph(), engine(None));
    for own in [
        "repeat(union(__.out(), __.in())).times(3)",
        "repeat(union(__.out(), __.in())).until(loops().is(4))",
        "repeat(union(__.out(), __.in())).until(or(has('n', 7), loops().is(4)))",
        "repeat(union(__.out(), __.in())).emit(loops().is(2)).times(4)",
        "until(loops().is(2)).repeat(union(__.out(), __.in()))",
        "repeat(local(__.repeat(__.out()).times(2))).times(2)",
    ] {
        for text in [
            format!("g.V().{own}.dedup()"),
            format!("g.V().where(__.{own}.has('n', lt(9)))"),
            format!("g.V().local(optional(__.{own})).values('n').dedup()"),
        ] {
            assert!(applied(&text).contains("DistinctInLoops"), "{text}");
            assert_eq!(rows(&engine, &graph, &text, true), rows(&engine, &graph, &text, false), "{text}");
        }
    }
    // An inner loop asks how far the outer one is.
    let named =
        "g.V().repeat('far', local(__.repeat(__.out()).until(or(loops('far').is(1), loops().is(2))))).times(3).dedup()";
    assert!(!applied(named).contains("DistinctInLoops"));
    assert_eq!(rows(&engine, &graph, named, true), rows(&engine, &graph, named, false));
}

#[test]
fn loops_are_written_out_where_rows_keep_their_way() {
    let (graph, engine) = (graph(), engine(None));
    let mut seen = 0;
    for own in [
        "repeat(both()).times(3)",
        "repeat(both().simplePath()).times(4)",
        "times(3).repeat(__.out().simplePath())",
        "times(0).repeat(__.out())",
        "repeat(__.out()).times(0)",
        "repeat(both().as('a')).times(3)",
        "repeat(both().as('a').has('n', gt(3))).times(3).as('b')",
        "repeat(bothE().otherV().cyclicPath()).times(3)",
        "repeat(__.outE('a').as('a').inV()).times(3)",
        "repeat('x', both().where(__.out())).times(2)",
        "repeat(both().where(repeat(__.out().simplePath()).times(2))).times(2)",
        "as('s').repeat(both().where(neq('s'))).times(3)",
    ] {
        for ending in [
            ".path()",
            ".simplePath().count()",
            ".path().by('n').count()",
            ".tree()",
            ".limit(20).path().count(Scope.local)",
        ] {
            for start in ["V()", "V(3L, 30L, 30L)", "V().has('n', lt(5)).as('a')"] {
                let text = format!("g.{start}.{own}{ending}");
                let is_empty = own.starts_with("times(0)");
                assert_eq!(applied(&text).contains("RepeatWrittenOut"), !is_empty, "{text}: {}", applied(&text));
                let expected = rows(&engine, &graph, &text, false);
                assert_eq!(rows(&engine, &graph, &text, true), expected, "{text}");
                seen += expected.len();
            }
        }
    }
    assert!(seen > 3_000, "{seen}");
    for text in [
        // Nobody asks for ways; somebody asks how far it is, or for whom rows wait; the last hop is looked up; the loop has a policy.
        "g.V().repeat(both()).times(2)",
        "g.V().repeat(both().filter(loops().is(1))).times(2).path()",
        "g.V().repeat(both().limit(10)).times(2).path()",
        "g.V().repeat(both().dedup()).times(2).path()",
        "g.V().repeat(both()).emit().times(2).path()",
        "g.V().repeat(both().simplePath()).times(3).hasId(3L).path()",
        "g.with('ficus.scope.x.policy', 'dfs').V().repeat(both()).times(2).as('x').path()",
    ] {
        assert!(!applied(text).contains("RepeatWrittenOut"), "{text}");
        assert_eq!(rows(&engine, &graph, text, true).len(), rows(&engine, &graph, text, false).len(), "{text}");
    }
}

#[test]
fn wide_loops_go_deeper() {
    let (graph, engine) = (graph(), engine(None));
    // Where it is no line: a few hundred thousand ways, of which few wait.
    let text = "g.V().repeat(both().filter(loops().is(lt(100)))).times(7).path()";
    let held = |policy: &str| {
        let text = text.replace("g.V()", &format!("g{policy}.V()"));
        let text = text.replace(".path()", ".as('x').path().count(Scope.local).dedup()");
        assert_eq!(rows(&engine, &graph, &text, true), ["8"], "{text}");
        taken(&engine, &graph, &text).bytes
    };
    let (usual, wide) = (held(""), held(".with('ficus.scope.x.policy', 'bfs')"));
    assert!(4 * usual < wide, "{usual} bytes held, {wide} where iterations come one after the other");
}
