//! `match()` as a line of steps: the same rows as by its scope, and in its place only where nobody can tell.

use std::sync::Arc;

use ficus_query::engine::{Engine, RunOptions};
use ficus_storage::Graph;

use super::k_hop::{engine, prepare, sorted};
use super::k_hop_conditions::{Numbers, graph};
use crate::modern::modern;

fn is_in_line(text: &str) -> bool {
    format!("{:?}", prepare(text, true).explanation()).contains("MatchToLine")
}

fn rows(engine: &Engine, graph: &Arc<Graph>, text: &str, with_rules: bool) -> Result<Vec<String>, String> {
    let options = RunOptions { timeout_ns: Some(20_000_000_000), ..RunOptions::default() };
    let (rows, _) = engine.collect(&prepare(text, with_rules), graph.begin_reading(), &options);
    rows.map(sorted).map_err(|error| error.to_string())
}

#[track_caller]
fn same(engine: &Engine, graph: &Arc<Graph>, text: &str) -> usize {
    let line = rows(engine, graph, text, true);
    let scope = rows(engine, graph, text, false);
    assert_eq!(line, scope, "{text}");
    line.map_or(0, |rows| rows.len())
}

#[test]
fn patterns_become_steps() {
    let (engine, graph) = (engine(None), modern());
    for text in [
        "g.V().match(__.as('a').out('created').as('b'), __.as('b').has('name', 'lop'), __.as('b').in('created').as('c'), \
         __.as('c').has('age', 29)).select('a', 'c').by('name')",
        "g.V().match(__.as('a').out('knows').as('b'), __.as('a').out('created').as('c'), __.as('b').out('created').as('c'))",
        "g.V().match(__.as('a').out().as('b'), __.as('b').in().as('a')).count()",
        "g.V().match(__.as('a').both().as('b'), __.as('b').both().as('c'), __.as('c').both().as('a')).count()",
        "g.V().as('x').out('knows').match(__.as('a').out().as('b'), __.where('a', neq('b'))).select('x', 'a')",
        "g.V().match(__.as('a').out().as('b'), __.not(__.as('b').out())).select('b').values('name')",
        "g.V().match(__.as('a').out().as('b'), __.as('a').out().as('c'), __.where('b', neq('c'))).dedup('b', 'c').select('b', 'c')",
        "g.V().match(__.as('a').outE().as('e'), __.as('e').inV().as('b'), __.as('b').in('created').as('a')).select('e')",
        "g.V().match(__.as('a').out().as('b'), __.and(__.as('b').has('lang'), __.as('b').in().as('c'))).as('m').select('m')",
        "g.V().match(__.as('a').out().as('b'), __.not(__.as('b').in('knows').as('a'))).select('a', 'b')",
        "g.V().match(__.as('a').values('name').as('n'), __.as('a').out().as('b')).select('n', 'b')",
        "g.V().hasLabel('person').match(__.as('a').out()).count()",
        // Rows at the same vertex become one where nobody reads a label, and go on where they are.
        "g.V().match(__.as('a').both().as('b'), __.as('b').both().as('c'), __.as('c').both().as('d')).count()",
        "g.V().match(__.as('a').both().as('b'), __.as('b').both().as('c')).select('c').as('x').out().select('x').by('name')",
        "g.V().match(__.as('a').both().as('b'), __.as('b').both().as('c')).select('c').dedup().values('name')",
        "g.V().match(__.as('a').both().as('b'), __.as('b').both().as('c')).select('b').groupCount().by('name')",
        // A test of an edge from either end, and from elsewhere.
        "g.V().match(__.as('a').both().as('b'), __.as('b').both().as('c'), __.not(__.as('a').both().as('c'))).select('a', 'c')",
        "g.V().match(__.as('a').both().as('b'), __.as('b').both().as('c'), __.not(__.as('c').in('created').as('a'))).select('a', 'c')",
        "g.V().match(__.as('a').both().as('b'), __.as('b').both().as('c'), __.not(__.as('a').out().as('b')), __.where('a', neq('c'))).select('a', 'b', 'c')",
    ] {
        assert!(is_in_line(text), "{text}");
        assert!(same(&engine, &graph, text) > 0, "{text}");
    }
}

#[test]
fn what_a_line_cannot_say_keeps_its_scope() {
    let (engine, graph) = (engine(None), modern());
    for text in [
        // Alternatives.
        "g.V().match(__.or(__.as('a').out('knows').as('b'), __.as('a').in('knows').as('b'))).select('a', 'b')",
        // What counts, cuts or remembers its rows does so for each binding.
        "g.V().match(__.as('a').out().count().as('n')).select('a', 'n')",
        "g.V().match(__.as('a').out().limit(1).as('b')).select('a')",
        "g.V().match(__.as('a').out().dedup().as('b'), __.as('b').in().as('c')).select('a', 'c')",
        // A path shows where `match()` has been.
        "g.V().match(__.as('a').out().as('b'), __.as('b').in().as('c')).path().count(Scope.local)",
        // Another step has one of its labels.
        "g.V().as('a').out().match(__.as('a').out().as('b')).select('a', 'b')",
        "g.V().match(__.as('a').out().as('b'), __.as('b').in().as('c')).select('b').as('a').out().select('a')",
        // Values are compared in more ways than one.
        "g.V().match(__.as('a').values('name').as('n'), __.as('a').out().as('b'), __.as('b').values('name').as('n'))",
        // Its rows carry more than their labels.
        "g.withSack(1).V().match(__.as('a').out().as('b')).select('b').sack()",
        "g.V().match(__.as('a').out().as('b')).select('b').aggregate('s').count()",
        // One label alone would not be a map.
        "g.V().match(__.as('a').out('knows'))",
    ] {
        assert!(!is_in_line(text), "{text}");
        same(&engine, &graph, text);
    }
    let unsolvable = "g.V().match(__.as('a').out().as('b'), __.as('x').out().as('y'))";
    assert!(!is_in_line(unsolvable));
    assert!(rows(&engine, &graph, unsolvable, true).unwrap_err().contains("unsolvable"));
}

fn begins_at_test(text: &str) -> bool {
    format!("{:?}", prepare(text, true).explanation()).contains("MatchFromTest")
}

#[test]
fn what_is_found_by_a_value_is_looked_up_first() {
    let (engine, graph) = (engine(None), modern());
    for text in [
        "g.V().match(__.as('a').out('created').as('b'), __.as('b').has('name', 'lop')).select('a').by('name')",
        "g.V().match(__.as('a').out('created').has('name', 'lop').as('b'))",
        "g.V().match(__.as('a').out('created').has('name', 'lop').as('b')).as('m').select('m')",
        "g.V().hasLabel('person').match(__.as('a').both().as('b'), __.as('b').out().as('c'), __.as('c').has('software', 'name', 'ripple')).select('a', 'c')",
        "g.V().has('age').match(__.as('a').out().has('age').as('b'), __.as('b').in().has('name', 'marko').as('c')).count()",
        "g.V().match(__.as('a').both().as('b'), __.as('b').both().as('a'), __.as('b').has('name', 'josh')).count()",
        "g.V().match(__.as('a').out().as('b'), __.as('b').has('name', 'lop'), __.not(__.as('a').out('knows'))).select('a', 'b')",
        "g.V().match(__.as('a').out().as('b'), __.as('b').has('name', 'lop'), __.as('b').in().as('c'), __.where('a', neq('c')))",
        "g.V().match(__.as('a').out().as('b'), __.as('a').has('name', 'marko'), __.as('b').has('lang', 'java'))",
        "g.V().match(__.as('a').out().as('b'), __.as('a').values('age').as('n'), __.as('b').has('name', 'josh')).select('n')",
        "g.V().match(__.as('a').out().as('b'), __.as('b').hasId(3)).select('a', 'b')",
    ] {
        assert!(begins_at_test(text), "{text}");
        assert!(same(&engine, &graph, text) > 0, "{text}");
    }
    for text in [
        // Nothing is found by one value, or what is there is known already.
        "g.V().match(__.as('a').out().as('b'), __.as('b').has('age', gt(30)))",
        "g.V(1).match(__.as('a').out().as('b'), __.as('b').has('name', 'lop'))",
        "g.V().has('name', 'marko').match(__.as('a').out().as('b'), __.as('b').has('name', 'lop'))",
        "g.V().hasLabel('person').out().match(__.as('a').in().as('b'), __.as('b').has('name', 'marko'))",
        // The way there is more than hops.
        "g.V().match(__.as('a').outE().as('e'), __.as('e').inV().as('b'), __.as('b').has('name', 'lop'))",
        "g.V().match(__.as('a').repeat(__.out()).times(2).as('b'), __.as('b').has('name', 'lop'))",
        // A label says which vertices to look at, and where it would begin none does.
        "g.V().hasLabel('person').match(__.as('a').out().as('b'), __.as('b').has('name', 'lop'))",
        "g.V().match(__.as('a').hasLabel('person'), __.as('a').out().as('b'), __.as('b').has('name', 'lop'))",
        // Asked of all it could fail where it is never asked.
        "g.V().match(__.as('a').out('knows').as('b'), __.as('b').has('age', 28).has('age', containing('x')))",
        // Alternatives, and paths that show the way.
        "g.V().match(__.or(__.as('a').out().as('b'), __.as('a').in().as('b')), __.as('b').has('name', 'lop'))",
        "g.V().match(__.as('a').out().as('b'), __.as('b').has('name', 'lop')).path()",
    ] {
        assert!(!begins_at_test(text), "{text}");
        same(&engine, &graph, text);
    }
}

fn pattern(numbers: &mut Numbers) -> String {
    let labels = ["a", "b", "c", "d"];
    let (start, end) = (numbers.of(&labels[..3]), numbers.of(&labels));
    let hop = numbers.of(&[
        "out()",
        "in('knows')",
        "both('likes')",
        "out('knows', 'likes')",
        "outE('knows').inV()",
        "both()",
    ]);
    let condition = numbers.of(&["", "", ".has('n', gt(3))", ".hasLabel('v', 'w')", ".where(__.out('likes'))"]);
    match numbers.below(10) {
        9 => format!("__.as('{start}').has('n', 3)"),
        0 => format!("__.as('{start}').has('n', lt(7))"),
        1 => format!("__.not(__.as('{start}').{hop}.as('{end}'))"),
        2 => format!("__.where('{start}', neq('{end}'))"),
        3 => format!("__.as('{start}').{hop}"),
        _ => format!("__.as('{start}').{hop}{condition}.as('{end}')"),
    }
}

#[test]
fn random_patterns_find_the_same() {
    let seed = std::env::var("FICUS_TEST_SEED").map_or(std::process::id().into(), |seed| seed.parse().unwrap());
    #[allow(clippy::print_stdout)] // The seed repeats the run.
    {
        println!("FICUS_TEST_SEED={seed} repeats this");
    }
    let (engine, graph, mut numbers) = (engine(None), graph(), Numbers(seed));
    let (mut in_line, mut found) = (0, 0);
    for _ in 0..200 {
        let first = numbers.of(&["out('knows')", "both()", "in()"]);
        let mut patterns = vec![format!("__.as('a').{first}.as('b')")];
        patterns.extend((0..1 + numbers.below(3)).map(|_| pattern(&mut numbers)));
        let start = numbers.of(&["g.V(3)", "g.V(0, 5, 5)", "g.V(1).out('knows')", "g.V(0, 1, 2, 3, 4)"]);
        // Of all vertices, with few patterns behind a test: without rules their rows would be too many.
        let is_open = numbers.below(4) == 0;
        if is_open {
            patterns.truncate(2);
            patterns.insert(1, "__.as('b').has('n', 3)".into());
        }
        let start = if is_open { numbers.of(&["g.V()", "g.V().has('n', lt(5))"]) } else { start };
        let ending = numbers.of(&[
            "",
            ".count()",
            ".select('a', 'b')",
            ".select('b').values('n')",
            ".where('a', neq('b')).count()",
        ]);
        let text = format!("{start}.match({}){ending}", patterns.join(", "));
        in_line += usize::from(is_in_line(&text));
        found += usize::from(same(&engine, &graph, &text) > 0);
    }
    assert!(in_line > 50 && found > 50, "{in_line} in line, {found} with rows");
}

/// A vertex with more neighbours than a list of them may have is looked at from the other end.
#[test]
fn a_vertex_with_very_many_neighbours_closes_cycles_too() {
    let store = ficus_storage::Store::in_memory();
    let graph = store.create_graph("g").unwrap();
    let mut writing = graph.begin();
    let hub = writing.add_vertex("hub", None).unwrap();
    let ends: Vec<_> = (0..70_000).map(|_| writing.add_vertex("v", None).unwrap()).collect();
    for end in &ends {
        writing.add_edge("to", hub, *end, None).unwrap();
    }
    writing.add_edge("to", hub, ends[1], None).unwrap();
    for pair in ends[..100].windows(2) {
        writing.add_edge("next", pair[0], pair[1], None).unwrap();
    }
    writing.commit().unwrap();
    let engine = engine(None);
    let text = "g.V().hasLabel('hub').match(__.as('h').out('to').as('a'), __.as('a').out('next').as('b'), __.as('h').out('to').as('b'))";
    assert!(is_in_line(text));
    // Of the pairs, the first and the second end at or begin with the vertex that two edges lead to.
    assert_eq!(rows(&engine, &graph, &format!("{text}.count()"), true).unwrap(), ["101"]);
}
