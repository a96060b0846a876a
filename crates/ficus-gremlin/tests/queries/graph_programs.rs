//! `pageRank()` and its kin over the graph `modern`. What is expected is what TinkerPop 3.8.1 answers with `withComputer()`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ficus_analytics::AnalyticsOptions;
use ficus_gremlin::lower::lower;
use ficus_gremlin::text::{ParseOptions, parse_traversal};
use ficus_model::Value;
use ficus_query::engine::{Engine, EngineOptions, Prepared, Row, RunOptions};
use ficus_storage::{Graph, Store, Transaction};

use crate::k_hop_conditions::Numbers;
use crate::modern::modern;

const RANK: &str = "gremlin.pageRankVertexProgram.pageRank";
const COMPONENT: &str = "gremlin.connectedComponentVertexProgram.component";
const CLUSTER: &str = "gremlin.peerPressureVertexProgram.cluster";

struct Sample {
    graph: Arc<Graph>,
    engine: Engine,
}

impl Sample {
    fn new() -> Sample {
        let options = EngineOptions {
            analytics: Some(AnalyticsOptions { threads: 2, ..AnalyticsOptions::default() }),
            ..EngineOptions::with_executors(2)
        };
        Sample { graph: modern(), engine: Engine::start(options).unwrap() }
    }

    /// The rows of a query, and its transaction.
    fn collect(&self, text: &str, options: &RunOptions) -> (Result<Vec<Row>, String>, Option<Transaction>) {
        let plan = lower(&parse_traversal(text, &ParseOptions::default()).unwrap()).map_err(|error| error.to_string());
        let prepared = match plan.and_then(|plan| Prepared::new(plan).map_err(|error| error.to_string())) {
            Ok(prepared) => prepared,
            Err(refused) => return (Err(refused), None),
        };
        let (rows, transaction) = self.engine.collect(&prepared, self.graph.begin(), options);
        (rows.map_err(|error| error.to_string()), transaction)
    }

    fn run(&self, text: &str, options: &RunOptions) -> Result<Vec<String>, String> {
        let rows = self.collect(text, options).0?;
        let each = |(value, bulk): (Value, u64)| std::iter::repeat_n(value.to_string(), bulk as usize);
        let mut rows: Vec<String> = rows.into_iter().flat_map(each).collect();
        rows.sort();
        Ok(rows)
    }

    fn ask(&self, text: &str) -> Vec<String> {
        self.run(text, &RunOptions::default()).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// Carries out what changes the graph.
    fn write(&self, text: &str) {
        let (rows, transaction) = self.collect(text, &RunOptions::default());
        rows.unwrap_or_else(|error| panic!("{text}: {error}"));
        transaction.expect("the query gave it back").commit().unwrap();
    }

    /// Rows of the form `name=value`, the values numbers.
    #[track_caller]
    fn check_numbers(&self, steps: &str, key: &str, expected: &str) {
        let text = format!("g.{steps}.project('n', 'x').by('name').by('{key}').map(__.unfold().select(values).fold())");
        let found = self.ask(&text);
        let mut expected: Vec<&str> = expected.split(' ').collect();
        expected.sort();
        let all = format!("{text} gave {found:?}");
        assert_eq!(found.len(), expected.len(), "{all}");
        for (found, expected) in found.iter().zip(expected) {
            let (name, value) = expected.split_once('=').unwrap();
            let found = found.trim_matches(['[', ']']).split_once(", ").unwrap();
            assert_eq!(found.0, name, "{all}");
            let difference = found.1.parse::<f64>().unwrap() - value.parse::<f64>().unwrap();
            assert!(difference.abs() < 1e-12, "{all}, expected {expected}");
        }
    }

    #[track_caller]
    fn check(&self, text: &str, expected: &str) {
        let mut expected: Vec<&str> = expected.split(" | ").filter(|row| !row.is_empty()).collect();
        expected.sort();
        assert_eq!(self.ask(text), expected, "{text}");
    }
}

#[test]
fn ranks() {
    let sample = Sample::new();
    let check = |steps: &str, expected: &str| sample.check_numbers(steps, RANK, expected);
    check(
        "V().pageRank()",
        "marko=0.11375510357865538 vadas=0.14598540152719103 lop=0.3047200907912249 josh=0.14598540152719103 ripple=0.17579889899708231 peter=0.11375510357865538",
    );
    check(
        "V().pageRank(0.5)",
        "marko=0.1318679621190201 vadas=0.1538461534883569 lop=0.2582422671312967 josh=0.1538461534883569 ripple=0.17032950165394953 peter=0.1318679621190201",
    );
    check("V().hasLabel('person').pageRank().with(PageRank.times, 0)", "marko=1 vadas=1 josh=1 peter=1");
    check(
        "V().pageRank().with(PageRank.times, 1)",
        "josh=0.14305555555555555 ripple=0.16666666666666669 peter=0.09583333333333334 marko=0.09583333333333334 vadas=0.14305555555555555 lop=0.3555555555555555",
    );
    check(
        "V().pageRank().with(PageRank.times, 5)",
        "marko=0.1136216612614133 vadas=0.14598422136890216 lop=0.3051192375846622 josh=0.14598422136890216 ripple=0.17566899715470677 peter=0.1136216612614133",
    );
    // Those chosen before say where ranks begin; a V() in front and other programs do not.
    check("V(1).pageRank().out('created')", "lop=0.3047200907912248");
    check("V().connectedComponent().pageRank().has('name', 'peter')", "peter=0.11375510357865538");
    check("V().pageRank().pageRank().has('name', 'peter')", "peter=0.11375510357865538");
    check(
        "V().hasLabel('person').pageRank()",
        "marko=0.4550196903193589 vadas=0.5839416058666033 josh=0.5839416058666033 peter=0.4550196903193589",
    );
    sample.check_numbers(
        "V().out('created').pageRank().with(PageRank.edges, __.bothE()).with(PageRank.propertyName, 'x').with(PageRank.times, 3)",
        "x",
        "lop=0.5507361111111112 lop=0.5507361111111112 lop=0.5507361111111112 ripple=0.23670833333333335",
    );
    // Edges that were chosen one by one, by a condition and by a traversal.
    for filter in ["has('weight', gt(0.4))", "where(__.values('weight').is(gt(0.4)))"] {
        check(
            &format!("V().pageRank().with(PageRank.edges, __.outE().{filter})"),
            "marko=0.12405035034963485 lop=0.12405035034963485 peter=0.12405035034963485 josh=0.17677171343285997 vadas=0.17677171343285997 ripple=0.2743055220853752",
        );
    }
}

#[test]
fn components_and_clusters() {
    let sample = Sample::new();
    let rows = |steps: &str, key: &str| {
        format!("g.{steps}.project('n', 'x').by('name').by('{key}').map(__.unfold().select(values).fold())")
    };
    let all = "[marko, 1] | [vadas, 1] | [lop, 1] | [josh, 1] | [ripple, 1] | [peter, 1]";
    sample.check(&rows("V().connectedComponent()", COMPONENT), all);
    let out = "V().hasLabel('software').connectedComponent().with(ConnectedComponent.edges, __.outE()).in()";
    sample.check(&rows(out, COMPONENT), "[marko, 1] | [josh, 1] | [josh, 1] | [peter, 6]");
    let into = "V().connectedComponent().with(ConnectedComponent.edges, __.inE())";
    sample.check(&rows(into, COMPONENT), "[marko, 1] | [vadas, 2] | [lop, 3] | [josh, 3] | [ripple, 5] | [peter, 3]");
    sample.check("g.V(1).connectedComponent().values('gremlin.connectedComponentVertexProgram.component').is(typeOf(GType.STRING)).count()", "1");
    let settled = "[marko, 1] | [vadas, 1] | [lop, 1] | [josh, 1] | [ripple, 1] | [peter, 6]";
    sample.check(&rows("V().peerPressure()", CLUSTER), settled);
    sample.check(
        &rows("V().peerPressure().with(PeerPressure.times, 1)", CLUSTER),
        "[marko, 1] | [vadas, 1] | [lop, 1] | [josh, 1] | [ripple, 4] | [peter, 6]",
    );
    sample.check(
        &rows("V().peerPressure().with(PeerPressure.times, 0)", CLUSTER),
        "[marko, 1] | [vadas, 2] | [lop, 3] | [josh, 4] | [ripple, 5] | [peter, 6]",
    );
    sample.check(&rows("V().peerPressure().with(PeerPressure.edges, __.bothE())", CLUSTER), all);
    // Votes are as strong as traversers stand there.
    sample.check(
        &rows("V().hasLabel('person').peerPressure().with(PeerPressure.edges, __.inE())", CLUSTER),
        "[marko, 1] | [vadas, 2] | [josh, 4] | [peter, 6]",
    );
}

#[test]
fn what_was_computed_is_a_property_of_the_query() {
    let sample = Sample::new();
    let cluster = "peerPressure().with(PeerPressure.propertyName, 'c')";
    sample.check(&format!("g.V(4).{cluster}.values('c')"), "1");
    sample.check(&format!("g.V(4).{cluster}.properties('c').value()"), "1");
    sample.check(&format!("g.V(4).{cluster}.properties().key()"), "age | c | name");
    sample.check(&format!("g.V(4).{cluster}.valueMap('c', 'age')"), "{c=[1], age=[32]}");
    sample.check(&format!("g.V().{cluster}.has('c', 6).values('name')"), "peter");
    sample.check(&format!("g.V().{cluster}.has('c').count()"), "6");
    sample.check(&format!("g.V().{cluster}.hasNot('c').count()"), "0");
    sample.check(&format!("g.V().{cluster}.group().by('c').by(__.count())"), "{1=5, 6=1}");
    sample.check(&format!("g.V().{cluster}.order().by('c', desc).limit(1).values('name')"), "peter");
    sample.check(&format!("g.V().{cluster}.out('created').dedup().elementMap('c').select(keys).unfold().count()"), "6");
    // In front of the program and in later queries there is no such thing.
    sample.check(&format!("g.V().has('c').{cluster}.count()"), "0");
    sample.check("g.V().values('c')", "");
    // It hides what is stored under its name.
    sample.check("g.V(1).peerPressure().with(PeerPressure.propertyName, 'age').values('age')", "1");
    sample.check("g.V(1).peerPressure().with(PeerPressure.propertyName, 'age').has('age', 29).count()", "0");
    sample.check("g.V(1).peerPressure().with(PeerPressure.propertyName, 'age').valueMap('age')", "{age=[1]}");
    sample.check("g.V(1).values('age')", "29");
    // A scan behind it knows it, whatever indexes there are.
    sample.check(&format!("g.V(1).{cluster}.V().has('c', 6).values('name')"), "peter");
    // Traversers keep what they are and where they were.
    sample.check(
        &format!(
            "g.V().as('a').out('knows').{cluster}.as('b').select('a', 'b').select(values).unfold().values('name')"
        ),
        "marko | vadas | marko | josh",
    );
    sample.check(&format!("g.V().values('name').{cluster}.count()"), "6");
    sample.check(&format!("g.E().{cluster}.count()"), "6");
}

#[test]
fn paths() {
    let sample = Sample::new();
    let from_marko = |options: &str| format!("g.V(1).shortestPath(){options}.map(__.unfold().id().fold())");
    let all = "[1] | [1, 2] | [1, 3] | [1, 4] | [1, 4, 5] | [1, 3, 6]";
    sample.check(&from_marko(""), all);
    sample.check(&from_marko(".with(ShortestPath.includeEdges, false)"), all);
    sample.check(&from_marko(".with(ShortestPath.maxDistance, 0)"), "[1]");
    sample.check(&from_marko(".with(ShortestPath.maxDistance, 1.0)"), "[1] | [1, 2] | [1, 3] | [1, 4]");
    sample.check(
        &from_marko(".with(ShortestPath.distance, __.constant(1)).with(ShortestPath.maxDistance, 1)"),
        "[1] | [1, 2] | [1, 3] | [1, 4]",
    );
    let by_weight = "[1] | [1, 2] | [1, 3] | [1, 3, 4] | [1, 3, 4, 5] | [1, 3, 6]";
    for distance in ["'weight'", "__.values('weight')", "__.values('weight').math('_ * 2')"] {
        sample.check(&from_marko(&format!(".with(ShortestPath.distance, {distance})")), by_weight);
    }
    // Edges without the property have length 0.
    sample.check(
        &from_marko(".with(ShortestPath.distance, 'nope')"),
        "[1] | [1, 2] | [1, 3] | [1, 4, 3] | [1, 3, 4] | [1, 4] | [1, 4, 5] | [1, 3, 4, 5] | [1, 3, 6] | [1, 4, 3, 6]",
    );
    sample.check(&from_marko(".with(ShortestPath.edges, IN)"), "[1]");
    sample.check(&from_marko(".with(ShortestPath.edges, __.outE('knows'))"), "[1] | [1, 2] | [1, 4]");
    sample.check(&from_marko(".with(ShortestPath.edges, __.outE().has('weight', 1.0))"), "[1] | [1, 4] | [1, 4, 5]");
    sample.check(
        &from_marko(".with(ShortestPath.includeEdges).with(ShortestPath.edges, __.outE())"),
        "[1] | [1, 7, 2] | [1, 8, 4] | [1, 9, 3] | [1, 8, 4, 10, 5]",
    );
    // What is as far as the target may be on a path to it.
    sample.check(
        &from_marko(".with(ShortestPath.distance, 'nope').with(ShortestPath.target, __.hasId(3))"),
        "[1, 3] | [1, 4, 3]",
    );
    for target in [
        "has('name', 'josh')",
        "hasId(4)",
        "hasId(77, 4, 4).hasLabel('person')",
        "has(T.id, within(4, 3)).has('age')",
        "values('name').is('josh')",
        "in('knows').has('age', 29).values('x')",
    ] {
        let expected = if target.ends_with("'x')") { "" } else { "[1, 4]" };
        sample.check(&from_marko(&format!(".with(ShortestPath.target, __.{target})")), expected);
    }
    let to_josh = "with(ShortestPath.target, __.has('name', 'josh'))";
    sample.check(
        &format!("g.V(1, 2).both().shortestPath().{to_josh}.map(__.unfold().id().fold())"),
        "[1, 4] | [2, 1, 4] | [3, 4] | [4]",
    );
    sample.check(&format!("g.V(3).in().in().shortestPath().{to_josh}.count()"), "1");
    sample.check(
        &format!("g.V(4, 3).in().shortestPath().{to_josh}.map(__.unfold().id().fold())"),
        "[1, 4] | [1, 4] | [4] | [6, 3, 4]",
    );
    sample.check(&format!("g.V(1).shortestPath().{to_josh}.unfold().values('name')"), "josh | marko");
    sample.check("g.V(1).shortestPath().path().count(local)", "2 | 2 | 2 | 2 | 2 | 2");
    sample.check("g.V(1).shortestPath().count(local)", "1 | 2 | 2 | 2 | 3 | 3");
}

#[test]
fn errors_and_limits() {
    let sample = Sample::new();
    let refused = |text: &str, message: &str| {
        let error = sample.run(text, &RunOptions::default()).unwrap_err();
        assert!(error.contains(message), "{text}: {error}");
    };
    refused("g.V().values('name').shortestPath()", "begins at vertices, but the traverser holds a String");
    refused(
        "g.V(1).shortestPath().with(ShortestPath.distance, __.constant('x'))",
        "the distance of an edge is a number",
    );
    refused("g.V(1).shortestPath().with(ShortestPath.distance, __.constant(-1))", "must be a number of 0 or more");
    refused("g.V().pageRank(1.5)", "1.5 is not between 0 and 1");
    for text in ["g.V(1).pageRank()", "g.V(1).peerPressure()", "g.V(1).connectedComponent()", "g.V(1).shortestPath()"] {
        let error = sample.run(text, &RunOptions { memory_limit_bytes: 100, ..RunOptions::default() }).unwrap_err();
        assert!(error.contains("memory budget"), "{text}: {error}");
        let cancelled = RunOptions::default();
        cancelled.cancel.cancel();
        assert!(sample.run(text, &cancelled).is_err(), "{text}");
    }
}

#[test]
fn a_query_sees_its_own_writes_in_programs() {
    let sample = Sample::new();
    sample.check(
        "g.addE('knows').from(__.V(5)).to(__.V(6)).V(6).connectedComponent().with(ConnectedComponent.edges, __.bothE('knows')).values('gremlin.connectedComponentVertexProgram.component')",
        "5",
    );
    // The transaction was not committed.
    sample.check("g.V(6).connectedComponent().with(ConnectedComponent.edges, __.bothE('knows')).values('gremlin.connectedComponentVertexProgram.component')", "6");
}

/// Searches go along a projection that follows the graph: they find what a search of a graph that was never projected finds.
#[test]
fn paths_follow_what_is_written() {
    let kept = Sample::new();
    let paths = "g.V().shortestPath().map(__.unfold().values('name').fold())";
    let writes = [
        "g.V().has('name', 'vadas').addE('knows').to(__.V().has('name', 'ripple'))",
        "g.V().has('name', 'marko').outE('created').drop()",
        "g.addV('person').property('name', 'new').addE('knows').to(__.V().has('name', 'marko'))",
        "g.V().has('name', 'josh').drop()",
        "g.addV('person').property('name', 'alone')",
        "g.V().has('name', 'new').drop()",
        "g.addV('person').property('name', 'last').addE('knows').from(__.V().has('name', 'peter'))",
        "g.E().drop()",
    ];
    let mut answers = vec![kept.ask(paths)];
    for write in writes {
        kept.write(write);
        let fresh = Sample { graph: kept.graph.clone(), ..Sample::new() };
        for ways in
            ["", ".with(ShortestPath.edges, __.outE('knows'))", ".with(ShortestPath.target, __.has('name', 'ripple'))"]
        {
            let text = paths.replace("shortestPath()", &format!("shortestPath(){ways}"));
            assert_eq!(kept.ask(&text), fresh.ask(&text), "{text} behind {write}");
        }
        answers.push(kept.ask(paths));
    }
    let counters = kept.engine.analytics().unwrap().counters();
    assert!(counters.versions.load(Ordering::Relaxed) >= writes.len() as u64, "no projection followed");
    answers.dedup();
    assert_eq!(answers.len(), writes.len() + 1, "each write changes what is found");
}

/// Whether pairs are searched for in the store, in a projection, or first the one and then the other: paths are those that also lead elsewhere.
#[test]
fn paths_between_few_vertices_are_among_those_to_all() {
    const VERTICES: u64 = 200;
    let seed = std::process::id().into();
    let mut random = Numbers(seed);
    let graph = Store::in_memory().create_graph("g").unwrap();
    let mut writing = graph.begin();
    let ids: Vec<_> = (0..VERTICES as i64).map(|id| writing.add_vertex("v", Some(Value::Long(id))).unwrap()).collect();
    for number in 0..3 * VERTICES {
        let [out, into] = [(); 2].map(|()| ids[random.below(VERTICES) as usize]);
        writing.add_edge(if number % 4 == 0 { "f" } else { "e" }, out, into, None).unwrap();
    }
    writing.commit().unwrap();
    // What a search may go along is a share of the graph, whatever the option says; without analytics it may go along all.
    let samples = [Some(0), Some(1 << 19), None].map(|alone_edges| {
        let of = |alone_edges| AnalyticsOptions { threads: 1, alone_edges, ..AnalyticsOptions::default() };
        let options = EngineOptions { analytics: alone_edges.map(of), ..EngineOptions::with_executors(1) };
        Sample { graph: graph.clone(), engine: Engine::start(options).unwrap() }
    });
    for ways in ["", "__.outE('e')", "__.inE()", "__.bothE('f')", "__.outE('none')"] {
        for most in ["", ".with(ShortestPath.maxDistance, 2)"] {
            let (sources, targets) =
                ([(); 2].map(|()| random.below(VERTICES)), [(); 3].map(|()| random.below(VERTICES)));
            let edges = if ways.is_empty() { String::new() } else { format!(".with(ShortestPath.edges, {ways})") };
            let text = |target: &str| {
                let [one, other] = sources;
                format!("g.V({one}, {other}, {one}).shortestPath(){edges}{target}{most}.map(__.unfold().id().fold())")
            };
            let ends = |row: &String| {
                targets.iter().any(|target| row.ends_with(&format!(" {target}]")) || *row == format!("[{target}]"))
            };
            let expected: Vec<String> = samples[0].ask(&text("")).into_iter().filter(ends).collect();
            let [a, b, c] = targets;
            let target = format!(".with(ShortestPath.target, __.hasId({a}, {b}, {c}))");
            for (way, sample) in samples.iter().enumerate() {
                assert_eq!(sample.ask(&text(&target)), expected, "{}, way {way}, seed {seed}", text(&target));
            }
        }
    }
}

#[test]
fn a_computer_changes_nothing() {
    let sample = Sample::new();
    let with = "g.withStrategies(new VertexProgramStrategy(workers: 4))";
    for steps in
        ["V().pageRank().values('gremlin.pageRankVertexProgram.pageRank')", "V().shortestPath().count()", "V().count()"]
    {
        assert_eq!(sample.ask(&format!("{with}.{steps}")), sample.ask(&format!("g.{steps}")));
    }
}
