//! Side effects that only `cap()` asks for: the same as rows as by their names.

use std::sync::Arc;

use ficus_query::engine::{Engine, RunOptions};
use ficus_query::rules::Rule;
use ficus_storage::Graph;

use crate::k_hop::{engine, prepare, sorted};
use crate::modern::modern;

/// The rows, or the error.
fn rows(engine: &Engine, graph: &Arc<Graph>, text: &str, with_rules: bool) -> Result<Vec<String>, String> {
    let (rows, _) = engine.collect(&prepare(text, with_rules), graph.begin(), &RunOptions::default());
    rows.map(sorted).map_err(|error| error.to_string())
}

fn applied(text: &str) -> String {
    prepare(text, true).applied.iter().map(|(rule, _)| format!("{rule:?} ")).collect()
}

const EFFECTS: [&str; 10] = [
    "groupCount('m')",
    "groupCount('m').by(T.label)",
    "groupCount('m').by('age')",
    "groupCount('m').by(__.out().count())",
    "group('m')",
    "group('m').by(T.label)",
    "group('m').by(T.label).by(__.out('created').values('name').fold())",
    "group('m').by('lang').by(__.count())",
    "group('m').by(T.label).by(__.values('age').sum())",
    "tree('m')",
];

#[test]
fn what_only_cap_asks_for_is_the_same_as_a_row() {
    let (graph, engine) = (modern(), engine(None));
    for start in ["V()", "V().out()", "V().out().out()", "V().hasLabel('nobody')", "V(1).both().as('x').both()"] {
        for effect in EFFECTS {
            for ending in ["", ".unfold()", ".as('y').select('y')", ".count(Scope.local)", ".path().count(Scope.local)"]
            {
                let text = format!("g.{start}.{effect}.cap('m'){ending}");
                assert!(applied(&text).contains("CapsAsRows"), "{text}: {}", applied(&text));
                let expected = rows(&engine, &graph, &text, false);
                assert!(expected.is_ok(), "{text}: {expected:?}");
                assert_eq!(rows(&engine, &graph, &text, true), expected, "{text}");
            }
        }
    }
}

#[test]
fn what_others_ask_for_keeps_its_name() {
    let (graph, engine) = (modern(), engine(None));
    for text in [
        "g.V().groupCount('m').by(T.label).groupCount('m').by('name').cap('m')",
        "g.V().groupCount('m').by(T.label).cap('m').groupCount('m').cap('m')",
        "g.V().groupCount('m').by(T.label).cap('m').select('m')",
        "g.V().groupCount('m').by(T.label).out().cap('m')",
        "g.V().groupCount('m').by(T.label).cap('m', 'm')",
        "g.V().local(groupCount('m').by(T.label).cap('m'))",
        "g.withSideEffect('m', ['person': 7L]).V().groupCount('m').by(T.label).cap('m')",
        "g.V().as('m').groupCount('m').by(T.label).cap('m').select('m')",
        "g.V(1).out('created').tree('m').by('age').cap('m')",
    ] {
        assert!(!applied(text).contains("CapsAsRows"), "{text}");
        assert_eq!(rows(&engine, &graph, text, true), rows(&engine, &graph, text, false), "{text}");
    }
}

#[test]
fn what_cap_drops_is_not_kept() {
    let (graph, engine) = (modern(), engine(None));
    for (text, is_applied) in [
        ("g.V().both().aggregate('m').cap('m')", true),
        ("g.V().both().aggregate('m').by('name').cap('m').unfold()", true),
        ("g.V().both().aggregate('m').aggregate('n').cap('m', 'n')", true),
        ("g.V().local(both().aggregate('m').cap('m'))", true),
        ("g.V().hasLabel('nobody').aggregate('m').cap('m')", true),
        ("g.V().both().aggregate('m').count()", false),
        ("g.V().both().aggregate('m').out().cap('m')", false),
    ] {
        let prepared = prepare(text, true);
        let is_only = prepared.physical.applied.iter().any(|(rule, _)| *rule == Rule::AggregateOnly);
        assert_eq!(is_only, is_applied, "{text}");
        assert_eq!(rows(&engine, &graph, text, true), rows(&engine, &graph, text, false), "{text}");
    }
}
