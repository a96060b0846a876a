//! Programs over the whole graph, through `call()`.

use std::collections::BTreeMap;
use std::sync::Arc;

use ficus_analytics::AnalyticsOptions;
use ficus_gremlin::lower::lower;
use ficus_gremlin::text::{ParseOptions, parse_traversal};
use ficus_query::engine::{Engine, EngineOptions, Prepared, Row, RunOptions};
use ficus_storage::{Graph, Store};

/// Two triangles that share `c`, a chain behind them, and `h` alone. All edges are `e`, but `g`'s is `f`.
const GRAPH: &str = "g.addV('v').property(id, 'a').as('a').addV('v').property(id, 'b').as('b').addV('v').property(id, 'c').as('c')
.addV('v').property(id, 'd').as('d').addV('v').property(id, 'e').as('e').addV('v').property(id, 'f').as('f').addV('v').property(id, 'g').as('g')
.addV('v').property(id, 'h')
.addE('e').from('a').to('b').property('w', 1).addE('e').from('b').to('c').property('w', 2).addE('e').from('a').to('c').property('w', 4.5d)
.addE('e').from('c').to('d').property('w', 1).addE('e').from('d').to('e').property('w', 1).addE('e').from('e').to('c').property('w', 1)
.addE('e').from('e').to('f').property('w', 10).addE('f').from('f').to('g')";

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
        let graph = Store::in_memory().create_graph("g").unwrap();
        let sample = Sample { graph, engine: Engine::start(options).unwrap() };
        sample.ask(GRAPH).unwrap();
        sample
    }

    fn run(&self, text: &str, options: &RunOptions) -> Result<Vec<Row>, String> {
        let plan = lower(&parse_traversal(text, &ParseOptions::default()).unwrap()).unwrap();
        let prepared = Prepared::new(plan).unwrap();
        let (rows, transaction) = self.engine.collect(&prepared, self.graph.begin(), options);
        let rows = rows.map_err(|error| error.to_string())?;
        if let Some(transaction) = transaction {
            transaction.commit().unwrap();
        }
        Ok(rows)
    }

    fn ask(&self, text: &str) -> Result<Vec<String>, String> {
        let rows = self.run(text, &RunOptions::default())?;
        let mut rows: Vec<String> =
            rows.into_iter().flat_map(|(value, bulk)| std::iter::repeat_n(value.to_string(), bulk as usize)).collect();
        rows.sort();
        Ok(rows)
    }

    /// The value of each vertex, by its id.
    fn values(&self, call: &str, name: &str) -> BTreeMap<String, String> {
        let text = format!(
            "g.call({call}).project('v', 'x').by(__.select('vertex').id()).by(__.select('{name}')).map(__.union(__.select('v'), __.select('x')).fold())"
        );
        let each = |row: String| {
            let (id, value) =
                row.trim_matches(['[', ']']).split_once(", ").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
            (id, value)
        };
        self.ask(&text).unwrap().into_iter().map(each).collect()
    }
}

fn pairs<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(id, value)| (id.to_owned(), value.to_owned())).collect()
}

#[test]
fn each_program_has_its_values() {
    let sample = Sample::new();
    let all = |values: [&'static str; 8]| {
        pairs::<8>(std::array::from_fn(|n| (["a", "b", "c", "d", "e", "f", "g", "h"][n], values[n])))
    };
    assert_eq!(sample.values("'ficus.triangles'", "triangles"), all(["1", "1", "2", "1", "1", "0", "0", "0"]));
    assert_eq!(sample.values("'ficus.kcore'", "core"), all(["2", "2", "2", "2", "2", "1", "1", "0"]));
    assert_eq!(sample.values("'ficus.degree'", "degree"), all(["2", "2", "4", "2", "3", "2", "1", "0"]));
    assert_eq!(
        sample.values("'ficus.degree', [edges: 'f', direction: 'IN']", "degree"),
        all(["0", "0", "0", "0", "0", "0", "1", "0"])
    );
    let weak = sample.values("'ficus.components'", "component");
    assert!(["a", "b", "d", "e", "f", "g"].iter().all(|id| weak[*id] == weak["c"]) && weak["h"] == "h", "{weak:?}");
    let strong = sample.values("'ficus.components', [kind: 'strong']", "component");
    assert!(strong["c"] == strong["d"] && strong["d"] == strong["e"] && strong["a"] == "a", "{strong:?}");
    assert_eq!(
        sample.values("'ficus.sssp', [sources: 'a']", "distance"),
        pairs([("a", "0.0"), ("b", "1.0"), ("c", "1.0"), ("d", "2.0"), ("e", "3.0"), ("f", "4.0"), ("g", "5.0")])
    );
    assert_eq!(
        sample.values("'ficus.sssp', [sources: ['a'], weight: 'w', defaultWeight: 1, maxDistance: 5]", "distance"),
        pairs([("a", "0.0"), ("b", "1.0"), ("c", "3.0"), ("d", "4.0"), ("e", "5.0")])
    );
    let between = sample.values("'ficus.betweenness', [direction: 'BOTH', normalised: false]", "betweenness");
    assert_eq!((between["f"].as_str(), between["c"].as_str(), between["a"].as_str()), ("5.0", "8.0", "0.0"));
    let labels = sample.values("'ficus.labelPropagation', [iterations: 0]", "label");
    assert!(labels.iter().all(|(id, label)| id == label), "{labels:?}");
}

#[test]
fn ranks_add_up_to_one() {
    let sample = Sample::new();
    let sum = |call: &str| -> f64 {
        sample.ask(&format!("g.call({call}).select('rank').sum()")).unwrap()[0].parse().unwrap()
    };
    assert!((sum("'ficus.pagerank'") - 1.0).abs() < 1e-9);
    assert!((sum("'ficus.pagerank', [sources: ['a', 'h'], damping: 0.5]") - 1.0).abs() < 1e-9);
    // Whoever starts at a vertex without edges stays there.
    let nowhere = sample.values("'ficus.pagerank', [sources: 'h']", "rank");
    assert!(nowhere["h"].parse::<f64>().unwrap() > 0.999_999 && nowhere["a"] == "0.0", "{nowhere:?}");
}

#[test]
fn values_are_written_in_the_transaction_of_the_query() {
    let sample = Sample::new();
    assert_eq!(sample.ask("g.call('ficus.kcore', [write: 'core']).select('written')").unwrap(), ["8"]);
    assert_eq!(sample.ask("g.V('c').values('core')").unwrap(), ["2"]);
    assert_eq!(sample.ask("g.V().has('core', 0).count()").unwrap(), ["1"]);
}

#[test]
fn how_far_a_program_has_come_is_told() {
    let sample = Sample::new();
    for (text, stage) in [
        ("g.call('ficus.pagerank')", "answering"),
        ("g.call('ficus.pagerank', [write: 'rank'])", "writing"),
        ("g.V().pageRank()", "computing"),
    ] {
        let options = RunOptions::default();
        assert_eq!(options.cancel.progress(), None);
        sample.run(text, &options).unwrap();
        assert_eq!(options.cancel.progress().unwrap().stage, stage, "{text}");
    }
}

#[test]
fn a_traversal_that_must_not_write_calls_nothing_that_writes() {
    let sample = Sample::new();
    for call in [
        "call('ficus.kcore', [write: 'core'])",
        "call('ficus.kcore').with('write', 'core')",
        "call('ficus.kcore', __.constant(['write': 'core']))",
        "call('ficus.schema.createIndex', [keys: 'name'])",
        "call('ficus.schema.cancelTask', [task: 1])",
    ] {
        let error = sample.ask(&format!("g.withStrategies(ReadOnlyStrategy).{call}")).unwrap_err();
        assert!(error.contains("is not read only"), "{call}: {error}");
    }
    assert_eq!(sample.ask("g.V().has('core').count()").unwrap(), ["0"]);
    for call in ["call('ficus.kcore')", "call('ficus.schema.list')", "call('--list')"] {
        sample.ask(&format!("g.withStrategies(ReadOnlyStrategy).{call}")).unwrap();
    }
}

#[test]
fn what_the_transaction_has_written_is_seen() {
    let sample = Sample::new();
    assert_eq!(sample.ask("g.call('ficus.degree').count()").unwrap(), ["8"]);
    let mut writing = sample.graph.begin();
    let (a, b) = (writing.add_vertex("v", None).unwrap(), writing.add_vertex("v", None).unwrap());
    writing.add_edge("e", a, b, None).unwrap();
    let plan =
        lower(&parse_traversal("g.call('ficus.degree').select('degree').sum()", &ParseOptions::default()).unwrap());
    let prepared = Prepared::new(plan.unwrap()).unwrap();
    let rows = sample.engine.collect(&prepared, writing, &RunOptions::default()).0.unwrap();
    assert_eq!(rows[0].0.to_string(), "18");
}

#[test]
fn wrong_parameters_are_refused() {
    let sample = Sample::new();
    for (call, expected) in [
        ("'ficus.khop'", "it needs the parameter [sources]"),
        ("'ficus.khop', [sources: 'nobody']", "there is no vertex nobody"),
        ("'ficus.khop', [sources: 'a', walk: 'exactly']", "exactly needs the parameter [hops]"),
        ("'ficus.khop', [sources: 'a', walk: 'far']", "within, withinOrSource or exactly, not far"),
        ("'ficus.pagerank', [dumping: 0.5]", "ficus.pagerank: there is no parameter [dumping]; it has ["),
        ("'ficus.pagerank', [damping: 2]", "parameter damping: 2 is not between 0 and 1"),
        ("'ficus.pagerank', [direction: 'UP']", "[direction] is IN, OUT or BOTH, not UP"),
        ("'ficus.sssp'", "it needs the parameter [sources]"),
        ("'ficus.sssp', [sources: 'z']", "[sources]: there is no vertex z"),
        ("'ficus.sssp', [sources: 'a', weight: 'w']", "has no property 'w'"),
        ("'ficus.sssp', [sources: 'a', weight: 'w', write: 'x']", "[write] cannot be combined with [weight]"),
        ("'ficus.components', [kind: 'some']", "[kind] is weak or strong, not some"),
        ("'ficus.betweenness', [samples: 0]", "[samples] is at least 1"),
    ] {
        let error = sample.ask(&format!("g.call({call})")).unwrap_err();
        assert!(error.contains(expected), "{call}: {error}");
    }
}

#[test]
fn a_program_keeps_to_the_limits_of_its_query() {
    let sample = Sample::new();
    let limits = RunOptions { memory_limit_bytes: 100, ..RunOptions::default() };
    let error = sample.run("g.call('ficus.pagerank')", &limits).unwrap_err();
    assert!(error.contains("memory budget"), "{error}");
    let late = RunOptions { timeout_ns: Some(0), ..RunOptions::default() };
    assert!(sample.run("g.call('ficus.pagerank')", &late).is_err());
}

#[test]
fn many_k_hop_questions_in_one_call() {
    let sample = Sample::new();
    let counts = |parameters: &str| {
        let text = format!(
            "g.call('ficus.khop', [{parameters}]).project('s', 'n', 'l').by(__.select('source').id()).by(__.select('count')).by(__.select('levels')).map(__.unfold().select(values).fold())"
        );
        sample.ask(&text).unwrap()
    };
    // One alone is a search, several are a pass.
    assert_eq!(counts("sources: 'a', hops: 2"), ["[a, 3, [0, 2, 1]]"]);
    assert_eq!(
        counts("sources: ['a', 'c', 'h'], hops: 2"),
        ["[a, 3, [0, 2, 1]]", "[c, 2, [0, 1, 1]]", "[h, 0, [0, 0]]"]
    );
    assert_eq!(counts("sources: ['a', 'g'], hops: 1, direction: 'IN'"), ["[a, 0, [0, 0]]", "[g, 1, [0, 1]]"]);
    assert_eq!(counts("sources: ['a', 'f'], edges: 'f'"), ["[a, 0, [0, 0]]", "[f, 1, [0, 1, 0]]"]);
    assert_eq!(
        counts("sources: ['a', 'c'], hops: 3, walk: 'exactly'"),
        ["[a, 2, [1, 2, 2, 2]]", "[c, 2, [1, 1, 1, 2]]"]
    );
    assert_eq!(counts("sources: ['h', 'g'], walk: 'withinOrSource'"), ["[g, 1, [1, 0]]", "[h, 1, [1, 0]]"]);
    let distances = |parameters: &str| {
        let text = format!(
            "g.call('ficus.khop', [{parameters}]).project('s', 't', 'd').by(__.select('source').id()).by(__.select('target').id()).by(__.select('distance')).map(__.unfold().select(values).fold())"
        );
        sample.ask(&text).unwrap()
    };
    assert_eq!(
        distances("sources: ['a', 'd', 'h'], targets: ['c', 'g', 'h']"),
        ["[a, c, 1]", "[a, g, 5]", "[d, c, 2]", "[d, g, 3]"]
    );
    assert_eq!(distances("sources: ['a'], targets: ['g'], hops: 4"), [""; 0]);
}

#[test]
fn clusters_of_peer_pressure() {
    let sample = Sample::new();
    let clusters = sample.values("'ficus.peerPressure', [edges: 'f']", "cluster");
    assert_eq!((clusters["g"].as_str(), clusters["f"].as_str(), clusters["a"].as_str()), ("f", "f", "a"));
    assert_eq!(sample.values("'ficus.peerPressure', [iterations: 0]", "cluster")["g"], "g");
}
