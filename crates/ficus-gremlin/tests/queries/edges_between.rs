//! Hops to a known vertex from one with many edges: the same rows in the same order as by looking at all of its edges, whatever asks for them, and
//! transactions depend on the edges between the two alone.

use std::sync::Arc;

use ficus_gremlin::lower::lower;
use ficus_gremlin::text::generate::Generator;
use ficus_gremlin::text::{ParseOptions, parse_traversal};
use ficus_model::{Cardinality, Value, VertexId};
use ficus_query::engine::{Engine, EngineOptions, Prepared, RunOptions};
use ficus_query::rules::Rule;
use ficus_storage::{ErrorKind, Graph, Store};

use crate::runner::{Answer, Circumstances, Rules, Runner, Show, USUAL};

/// Vertices beside the two hubs, which have so many edges of each label that looking for one of them pays.
const OTHERS: i64 = 2_500;

fn name(text: &str) -> Value {
    Value::String(text.into())
}

/// Two hubs, `alpha` and 5000, with edges to all others and each other, some of them several times, some to themselves, some gone again;
/// others that know each other; half of it consolidated.
fn hubs(random: &mut Generator) -> Arc<Graph> {
    let store = Store::in_memory();
    let graph = store.create_graph("g").unwrap();
    let mut writing = graph.begin();
    let hubs = [name("alpha"), Value::Long(5000)].map(|id| writing.add_vertex("hub", Some(id)).unwrap());
    let others: Vec<VertexId> =
        (0..OTHERS).map(|id| writing.add_vertex("person", Some(Value::Long(id))).unwrap()).collect();
    for (age, other) in others.iter().enumerate() {
        let age = Value::Int(age as i32 % 50);
        writing.set_vertex_property(*other, "age", age, Cardinality::Single, None).unwrap();
    }
    let mut edges = Vec::new();
    for round in 0..3 {
        let mut add = |label: &str, out, in_, random: &mut Generator| {
            let edge = writing.add_edge(label, out, in_, Some(Value::Long(100_000 + edges.len() as i64))).unwrap();
            writing.set_edge_property(edge, "w", Value::Int(random.below(10) as i32)).unwrap();
            edges.push(edge);
        };
        for place in 0..others.len() {
            // The first two have edges with the hubs in any case.
            let other = if place < 2 { others[place] } else { others[random.below(others.len() as u64) as usize] };
            let label = ["knows", "likes"][random.below(2) as usize];
            let hub = hubs[random.below(2) as usize];
            add(label, hub, other, random);
            if random.below(2) == 0 {
                add(label, other, hub, random);
            }
            if random.below(3) == 0 {
                add("knows", other, others[random.below(30) as usize], random);
            }
        }
        for _ in 0..3 {
            let [a, b] = [0, 1].map(|_| hubs[random.below(2) as usize]);
            add("knows", a, b, random);
        }
        for _ in 0..600 {
            writing.remove_edge(edges[random.below(edges.len() as u64) as usize]).unwrap();
        }
        writing.commit().unwrap();
        if round == 0 {
            store.consolidate().unwrap();
        }
        writing = graph.begin();
    }
    writing.rollback();
    graph
}

const IDS: [&str; 9] = ["'alpha'", "5000", "0", "1", "'1'", "2", "3", "17", "9999"];
/// Where walks end: at one vertex, or at several, one after the other.
const KNOWN: [&str; 5] =
    ["V({id})", "V({id})", "V({id}, {id})", "V(0, 1, 2, 'alpha', 5000)", "V().hasLabel('hub', 'person').limit(20)"];
const STARTS: [&str; 9] = [
    "V('alpha')",
    "V(5000)",
    "V('alpha', 5000, 1)",
    "V().hasLabel('hub')",
    "V(0, 5000)",
    "V(1).both('knows')",
    "both('knows').limit(40)",
    "both('knows').both().limit(40)",
    "V().hasLabel('person').limit(40)",
];
const HOPS: [&str; 10] = [
    "out('knows')",
    "in('likes')",
    "both()",
    "both('knows')",
    "out('likes', 'knows', 'likes')",
    "out('knows', 'no such label')",
    "outE('knows').inV()",
    "bothE().otherV()",
    "inE('likes').has('w', gt(3)).outV()",
    "outE().as('e').inV()",
];
const TESTS: [&str; 9] = [
    "hasId({id})",
    "hasId({id}).has('age')",
    "has('age', lt(40)).hasId({id})",
    "where(__.hasId({id}))",
    "where(eq('a'))",
    "where(eq('a')).where(__.both('likes'))",
    "hasId(within({id}))",
    "hasId({id}, {id})",
    "and(__.hasId({id}), __.in())",
];
const EDGE_TESTS: [(&str, &str); 8] = [
    ("outE('knows')", "where(__.inV().hasId({id}))"),
    ("inE()", "where(__.outV().as('a'))"),
    ("inE('knows', 'likes')", "where(__.outV().where(eq('a')))"),
    ("bothE()", "where(__.otherV().hasId({id}))"),
    ("outE()", "has('w', gt(4)).where(__.inV().hasId({id}).has('age'))"),
    ("outE('likes')", "filter(__.inV().where(eq('a')))"),
    ("outE()", "and(__.inV().hasId({id}), __.has('w'))"),
    ("bothE('knows')", "where(__.bothV().hasId({id}))"),
];
const TAILS: [&str; 9] = [
    "",
    ".count()",
    ".limit(1)",
    ".path()",
    ".id()",
    ".dedup()",
    ".as('z').select('a', 'z')",
    ".groupCount()",
    ".both().limit(3)",
];
const EDGE_TAILS: [&str; 7] = [
    "",
    ".count()",
    ".limit(2).id()",
    ".path()",
    ".values('w')",
    ".inV().id()",
    ".as('z').select('z', 'a').by('w').by(T.id)",
];

/// Loops whose last hop has to lead to one vertex if the rows behind them have to be there.
const LOOPS: [&str; 10] = [
    "repeat(__.both('knows').simplePath()).times(2)",
    "repeat(__.out('knows', 'likes')).times(2)",
    "repeat(__.both('likes')).emit().times(2)",
    "emit().repeat(__.out().has('age', lt(30))).times(2)",
    "repeat(__.out('knows').simplePath()).until(__.hasId({id}).or().loops().is(2))",
    "repeat(__.both('knows')).until(__.or(__.has('age', 7), __.loops().is(gte(2))))",
    "repeat(__.out('knows').in('likes')).times(1)",
    "until(__.loops().is(2)).repeat(__.in('knows'))",
    "repeat(__.both('knows').as('a')).times(2)",
    "repeat(__.out('likes').repeat(__.out('knows')).times(1)).times(1)",
];
const LOOP_TAILS: [&str; 7] = [
    "hasId({id}).path().by(T.id)",
    "hasId({id}).count()",
    "where(eq('a')).path().by(T.id)",
    "where(eq('a')).id()",
    "hasId({id}).has('age').limit(3).path()",
    "has('age').where(eq('a')).groupCount().by(T.id)",
    "filter(__.hasId({id})).dedup().id()",
];

fn of(random: &mut Generator, list: &[&'static str]) -> &'static str {
    list[random.below(list.len() as u64) as usize]
}

/// Whether rows leave a loop in the middle: which of them come first depends on how many go on, and on the size of a batch.
fn leaves_early(text: &str) -> bool {
    text.contains("until(") || text.contains("emit(")
}

/// A query; what reads, or what writes as well.
fn query(random: &mut Generator) -> String {
    let known = of(random, &KNOWN).replacen("{id}", of(random, &IDS), 1).replace("{id}", of(random, &IDS)) + ".as('a')";
    let (hop, test, tail) = match random.below(3) {
        0 => {
            let (hop, test) = EDGE_TESTS[random.below(EDGE_TESTS.len() as u64) as usize];
            (hop, test, of(random, &EDGE_TAILS))
        }
        _ => (of(random, &HOPS), of(random, &TESTS), of(random, &TAILS)),
    };
    let start = of(random, &STARTS);
    let asked = format!("__.{hop}.{test}").replace("{id}", of(random, &IDS));
    let way = asked.trim_start_matches("__.");
    let text = match random.below(18) {
        16..=17 => {
            let few = of(random, &["V(0, 1)", "V(2)", "V().hasLabel('person').limit(3)", "V(5000)"]);
            let ends = of(random, &LOOP_TAILS).replace("{id}", of(random, &IDS));
            let walk = of(random, &LOOPS).replace("{id}", of(random, &IDS));
            let ends = if leaves_early(&walk) { ends.replace(".limit(3)", "") } else { ends };
            format!("g.{known}.limit(2).{few}.{walk}.{ends}")
        }
        10 => format!("g.{known}.{start}.choose({asked}, __.constant(1), __.constant(0)).groupCount()"),
        11 => format!("g.{known}.{start}.map(__.both('knows').limit(9).where({asked}).count()).fold()"),
        12 => format!("g.{known}.{start}.where(__.out('knows').limit(5).{way}).id()"),
        13 => format!("g.{known}.{start}.not(__.both('likes').{way}).count()"),
        14 => format!("g.{known}.{start}.where(__.and({asked}, __.out('likes'))).id()"),
        15 => format!("g.{known}.{start}.flatMap(__.both('knows').limit(9).where(neq('a')).{way}).count()"),
        0..=4 => format!("g.{known}.{start}.{way}{tail}"),
        5 => format!("g.{known}.{start}.where({asked}).id()"),
        6 => format!("g.{known}.{start}.project('n', 'm').by({asked}.count()).by({asked}.fold())"),
        7 => format!("g.{known}.{start}.coalesce({asked}.label(), __.constant('none'))"),
        8 => format!("g.{known}.{start}.local({asked}.limit(2)).count()"),
        _ => format!("g.{known}.{start}.union({asked}, __.both('knows').where({asked})).count()"),
    };
    match random.below(4) {
        // What writes has its reads recorded.
        0 => format!("{text}.fold().sideEffect(__.addV('new'))"),
        _ => text,
    }
}

fn run(runner: &Runner, text: &str, rules: Rules, batch_rows_limit: Option<usize>) -> Answer {
    let options = RunOptions { timeout_ns: Some(600_000_000_000), ..RunOptions::default() };
    match runner.text(text, Circumstances { rules, batch_rows_limit, ..USUAL }, &options, Show::Sorted) {
        Answer::Rows(mut rows) if leaves_early(text) => {
            rows.sort_unstable();
            Answer::Rows(rows)
        }
        answer => answer,
    }
}

#[test]
fn rows_and_their_order_are_those_of_looking_at_all_edges() {
    let seed = std::env::var("FICUS_TEST_SEED").map_or(1, |seed| seed.parse().expect("FICUS_TEST_SEED is a number"));
    let times =
        std::env::var("FICUS_TEST_TIMES").map_or(1, |times| times.parse().expect("FICUS_TEST_TIMES is a number"));
    let mut random = Generator::new(seed);
    let runner = Runner::new(hubs(&mut random));
    let (mut with_rows, mut applied) = (0, 0);
    let count = 800 * times;
    for _ in 0..count {
        let text = query(&mut random);
        let bytecode = parse_traversal(&text, &ParseOptions::default()).expect("a query");
        applied += usize::from(Runner::applied(&bytecode).contains(&Rule::EdgesBetween));
        let without = run(&runner, &text, Rules::Without(Rule::EdgesBetween), None);
        assert_eq!(run(&runner, &text, Rules::All, None), without, "seed {seed}: {text}");
        assert_eq!(run(&runner, &text, Rules::All, Some(1)), without, "seed {seed}, row by row: {text}");
        let (only, none) =
            (run(&runner, &text, Rules::Only(Rule::EdgesBetween), None), run(&runner, &text, Rules::None, None));
        assert_eq!(only, none, "seed {seed}, alone: {text}");
        with_rows += usize::from(matches!(without, Answer::Rows(rows) if !rows.is_empty()));
    }
    let hub = "g.V('alpha', 5000).as('h').union(__.out('knows').count(), __.in('likes').count())";
    let Answer::Rows(degrees) = run(&runner, hub, Rules::All, None) else { panic!("{hub}") };
    assert!(degrees.iter().all(|degree| degree.len() > "999L".len()), "few edges: {degrees:?}");
    assert!(with_rows > count / 3 && applied > count / 2, "{with_rows} with rows, {applied} with the rule, of {count}");
}

#[test]
fn patterns_that_close_a_cycle_count_all_edges() {
    let mut random = Generator::new(3);
    let runner = Runner::new(hubs(&mut random));
    for text in [
        "g.V('alpha').match(__.as('a').out('knows').as('b'), __.as('b').out('knows').as('a')).select('b').id()",
        "g.V().hasLabel('hub').match(__.as('a').both().has('age', 7).as('b'), __.as('b').both('knows').as('c'), __.as('a').out().as('c')).count()",
        "g.V(0, 1, 2).match(__.as('a').both().as('b'), __.as('b').both().as('a')).select('b').groupCount().by(T.id)",
        "g.V(0, 1, 2).match(__.as('a').both().as('b'), __.as('b').both().as('a')).count().sideEffect(__.addV('new'))",
    ] {
        let line = run(&runner, text, Rules::All, None);
        assert!(matches!(&line, Answer::Rows(rows) if !rows.is_empty()), "{text}: {line:?}");
        let sorted = |answer: Answer| match answer {
            Answer::Rows(mut rows) => {
                rows.sort();
                Answer::Rows(rows)
            }
            other => other,
        };
        assert_eq!(sorted(line), sorted(run(&runner, text, Rules::None, None)), "{text}");
    }
}

/// What else sees the rows of the last iteration has to see all of them.
#[test]
fn rows_that_others_see_are_not_left_out_of_loops() {
    let mut random = Generator::new(5);
    let runner = Runner::new(hubs(&mut random));
    for text in [
        "g.withSack(1.0d, sum).V(0, 1).repeat(__.both('knows').barrier(normSack)).times(2).hasId(2).sack().sum()",
        "g.V(0, 1).repeat(__.both('knows')).until(__.aggregate('x').loops().is(2)).hasId(2).cap('x').count(local)",
        "g.V(0, 1).repeat(__.out('knows')).emit(__.aggregate('x')).times(2).hasId(2).cap('x').count(local)",
        "g.V(0, 1).repeat(__.both('knows').dedup()).times(2).hasId(2).count()",
        "g.V(0, 1).repeat(__.both('knows').limit(40)).times(2).hasId('alpha').count()",
    ] {
        let all = run(&runner, text, Rules::All, None);
        assert!(matches!(&all, Answer::Rows(rows) if !rows.is_empty()), "{text}: {all:?}");
        assert_eq!(all, run(&runner, text, Rules::Without(Rule::EdgesBetween), None), "{text}");
    }
}

#[test]
fn the_rule_applies_where_one_vertex_is_named_and_to_nothing_else() {
    let applies = |text: &str| {
        let bytecode = parse_traversal(text, &ParseOptions::default()).expect("a query");
        Runner::applied(&bytecode).contains(&Rule::EdgesBetween)
    };
    for text in [
        "g.V(1).out('knows').hasId(2)",
        "g.V(1).outE('knows').where(inV().hasId(2))",
        "g.V(1).as('a').out().both('knows').where(eq('a'))",
        "g.V(1).as('a').V(2).coalesce(inE('knows').where(outV().as('a')), addE('knows').from('a'))",
        "g.V(1).where(out('knows').hasId(2))",
        "g.V(1).project('n').by(out('knows').hasId(2).count())",
        "g.V(1).bothE().where(otherV().hasId('x'))",
    ] {
        assert!(applies(text), "{text}");
    }
    for text in [
        "g.V(1).out('knows').hasId(2, 3)",
        "g.V(1).out('knows').hasId(neq(2))",
        "g.V(1).out('knows').as('a').where(eq('a'))",
        "g.V(1).out('knows').has('age', 2)",
        "g.V(1).outE('knows').where(outV().hasId(2))",
        "g.V(1).outE('knows').hasId(2)",
        "g.V(1).as('a').out().where(neq('a'))",
        "g.V(1).out().where(inE().hasId(2))",
    ] {
        assert!(!applies(text), "{text}");
    }
}

/// Upserts of different edges at one vertex depend on nothing in common; of those of the same edge one finds what the other made.
#[test]
fn upserts_conflict_over_the_edges_between_the_two_alone() {
    let graph = Store::in_memory().create_graph("g").unwrap();
    let mut writing = graph.begin();
    for id in 0..4 {
        writing.add_vertex("person", Some(Value::Int(id))).unwrap();
    }
    writing
        .add_edge(
            "knows",
            writing.find_vertex(&Value::Int(3)).unwrap(),
            writing.find_vertex(&Value::Int(0)).unwrap(),
            None,
        )
        .unwrap();
    writing.commit().unwrap();
    let engine = Engine::start(EngineOptions::with_executors(1)).expect("one thread can be started");
    let upsert = |from: i32, how: &str| {
        let text = how.replace("{from}", &from.to_string());
        let bytecode = parse_traversal(&text, &ParseOptions::default()).expect("a query");
        let prepared = Prepared::new(lower(&bytecode).expect("a plan")).expect("a plan");
        let (rows, transaction) = engine.collect(&prepared, graph.begin(), &RunOptions::default());
        assert_eq!(rows.expect("rows").len(), 1, "{text}");
        transaction.expect("the query ended well")
    };
    for how in [
        "g.V({from}).as('a').V(0).coalesce(inE('knows').where(outV().as('a')), addE('knows').from('a'))",
        "g.V(0).as('b').V({from}).coalesce(out('knows').where(eq('b')), addE('knows').to('b').inV())",
        "g.V({from}).coalesce(outE('knows').where(inV().hasId(0)), addE('knows').to(__.V(0)))",
        "g.mergeE([(T.label): 'knows', (Direction.from): {from}, (Direction.to): 0])",
    ] {
        let edges = graph.snapshot().edge_count();
        let [one, other, same] = [1, 2, 1].map(|from| upsert(from, how));
        one.commit().unwrap();
        other.commit().unwrap_or_else(|error| panic!("{how}: {error}"));
        assert_eq!(same.commit().unwrap_err().kind(), ErrorKind::Conflict, "{how}");
        assert_eq!(graph.snapshot().edge_count(), edges + 2, "{how}");
        // What is there is found, and a clean slate for the next.
        assert!(upsert(1, how).is_read_only(), "{how}");
        let mut writing = graph.begin();
        for from in [1, 2] {
            let [from, to] = [from, 0].map(|id| writing.find_vertex(&Value::Int(id)).unwrap());
            for edge in writing.edges_between(from, to, None) {
                writing.remove_edge(edge).unwrap();
            }
        }
        writing.commit().unwrap();
    }
}
