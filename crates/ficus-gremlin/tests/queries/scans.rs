//! Scans that make no rows: counters of the store, edges by label, conditions and folds over columns. The same answers as step by step, on
//! columns as they were consolidated and under changes, also for a transaction that writes.

use std::sync::Arc;

use ficus_model::{Cardinality, Value};
use ficus_query::engine::RunOptions;
use ficus_storage::{ErrorKind, Graph, Store};

use crate::in_place::changed_graph;
use crate::indexed::{engine, prepare};
use crate::runner::{Answer, Circumstances, Rules, Runner, Show, USUAL, shown};

/// Scans, and what becomes of them.
const SCANS: [&str; 45] = [
    "V()",
    "V().hasLabel('post')",
    "V().hasLabel('fan')",
    "V().hasLabel('nobody')",
    "V().hasLabel('post', 'tag')",
    "V().hasLabel('post').has('number', gt(40))",
    "V().hasLabel('post').hasNot('number')",
    "V().has('day')",
    "V().hasLabel('post').has('name', startingWith('b'))",
    "V().has('name', within('ann', 'dan')).has('number', lt(50))",
    "V().hasLabel('post').has('name', neq('ann'))",
    "V().out('wrote')",
    "V().as('x').in('knows', 'wrote').has('number')",
    "V().outE('has')",
    "V().both('knows').in('nothing')",
    "V().where(out('wrote').has('number', lt(50)))",
    "V().where(out('wrote').count().is(0))",
    "V().has('name', 'ann').where(__.in('wrote'))",
    "E().hasLabel('wrote')",
    "E().hasLabel('wrote').has('at', gt(30)).hasNot('nothing')",
    "E().hasLabel('knows', 'wrote')",
    "E().hasLabel('wrote').or(__.has('at', lt(10)), __.has('at', gt(40)), __.has('nothing'))",
    "V().hasLabel('post').outE('has', 'wrote').not(__.has('at', gt(20)))",
    "V().outE('wrote').has('at', lt(60))",
    "V().not(__.has('name', 'ann'))",
    "V().or(__.has('number', gt(40)), __.has('name', startingWith('b')), __.has('nothing'))",
    "V().or(__.hasLabel('post').has('number', lt(20)), __.hasLabel('fan').hasNot('number'), __.has('number', within(30, 31)))",
    "V().and(__.has('name'), __.not(__.or(__.has('number', within(3, 5, 8)), __.not(__.has('day')))))",
    "V().has('number', lt(10).or(gt(90)).or(eq(50)))",
    "V().has('number', within(1, 2.0, 77)).not(__.has('name', neq('dan')))",
    "V().or(__.has('nothing', 1), __.not(__.has('nothing')))",
    "V().not(__.hasNot('number').has('day'))",
    "V().or(__.has('name', typeOf(GType.STRING)), __.has('number', 7))",
    "V().out('wrote').or(__.has('number', lt(30)), __.has('name', within('ann', 'dan')))",
    "V().hasLabel('post').as('x').in('wrote').not(__.has('number', lt(50))).as('y').where(neq('x'))",
    "V().where(out('wrote').or(__.has('number', lt(10)), __.has('name', 'ann')))",
    "V().hasLabel('post').or(__.has('number', lt(30)), out('has').not(__.has('name', 'ann')))",
    "V().both()",
    "V().both().barrier().both('wrote')",
    "V().hasLabel('post').in('wrote').has('name', startingWith('p'))",
    "V().both().has('number', lt(50)).dedup()",
    "V().as('x').both('wrote').dedup().as('y').where(neq('x'))",
    "V().both().both('wrote').has('name', typeOf(GType.STRING))",
    "V().hasLabel('person').as('x').out('wrote').simplePath().in('wrote').dedup()",
    "V().outE('wrote').inV().has('number')",
];

const ENDS: [&str; 22] = [
    "count()",
    "groupCount().by(T.label)",
    "groupCount().by('name')",
    "groupCount().by('at')",
    "label().groupCount()",
    "label().dedup()",
    "label().dedup().count()",
    "group().by('name').by(__.values('number').sum())",
    "group().by('name').by(__.values('number').mean())",
    "group().by('name').by(__.values('day').count())",
    "group().by('number').by(__.values('name').max())",
    "values('number').sum()",
    "values('number').mean()",
    "values('number').min()",
    "values('day').max()",
    "values('number').count()",
    "values('name').groupCount()",
    "values('number').groupCount()",
    "values('day', 'name').count()",
    "values('name').max()",
    "values('at').sum()",
    "order().by('at').by(T.id).limit(5).id()",
];

fn answer(graph: &Arc<Graph>, text: &str, writing: bool) -> Answer {
    let transaction = if writing { graph.begin() } else { graph.begin_reading() };
    match engine().collect(&prepare(text), transaction, &RunOptions::default()).0 {
        Ok(rows) => Answer::Rows(rows.iter().map(|(value, _)| shown(value, Show::Sorted)).collect()),
        Err(error) => Answer::Failed(error.kind, error.message.to_string()),
    }
}

#[test]
fn scans_give_the_same_answers_step_by_step() {
    let (store, graph) = changed_graph();
    let mut answered = 0;
    for round in ["changed", "consolidated"] {
        let runner = Runner::new(graph.clone());
        for scan in SCANS {
            for end in ENDS {
                let text = format!("g.{scan}.{end}");
                let run = |rules, batch_rows_limit| {
                    let circumstances = Circumstances { rules, batch_rows_limit, ..USUAL };
                    runner.text(&text, circumstances, &RunOptions::default(), Show::Sorted)
                };
                let wanted = run(Rules::None, None);
                assert_eq!(run(Rules::All, None), wanted, "{text}, {round}");
                assert_eq!(run(Rules::All, Some(1)), wanted, "{text}, {round}, row by row");
                answered += usize::from(matches!(&wanted, Answer::Rows(rows) if !rows.is_empty()));
            }
            let text = format!("g.{scan}.count()");
            assert_eq!(answer(&graph, &text, true), answer(&graph, &text, false), "{text}, {round}, writing");
        }
        store.consolidate().unwrap();
    }
    assert!(answered > 150, "{answered}");
}

#[test]
fn ends_of_all_edges_are_those_that_edges_have_one_by_one() {
    let (store, graph) = changed_graph();
    for round in ["changed", "consolidated"] {
        let runner = Runner::new(graph.clone());
        for start in [
            "E().outV()",
            "E().inV()",
            "E().inV().has('number', lt(50))",
            "E().outV().as('x').out().as('y').select('x', 'y')",
        ] {
            for end in ["id()", "dedup().count()", "groupCount()", "count()"] {
                let text = format!("g.{start}.{end}");
                let run = |rules| {
                    let circumstances = Circumstances { rules, ..USUAL };
                    match runner.text(&text, circumstances, &RunOptions::default(), Show::Sorted) {
                        // Their order is open.
                        Answer::Rows(mut rows) => {
                            rows.sort_unstable();
                            Answer::Rows(rows)
                        }
                        other => other,
                    }
                };
                assert_eq!(run(Rules::All), run(Rules::None), "{text}, {round}");
            }
        }
        store.consolidate().unwrap();
    }
}

/// Hops, and what is counted behind them by label, by several labels, or not at all.
const HOPS: [&str; 11] = [
    "outE()",
    "bothE()",
    "inE('wrote')",
    "bothE('wrote', 'knows', 'wrote')",
    "outE().hasLabel('wrote')",
    "bothE('wrote').hasLabel('knows', 'wrote').has('at', gt(30))",
    "out()",
    "both()",
    "both('wrote').hasLabel('post').has('number', lt(50))",
    "outE().inV()",
    "bothE('wrote').otherV().has('name', neq('ann'))",
];

const COUNTED: [&str; 16] = [
    "groupCount().by(T.label)",
    "label().groupCount()",
    "label().dedup()",
    "label().as('l').select('x', 'l').by(T.id).by().groupCount()",
    "label().fold()",
    "label().limit(7)",
    "id().count()",
    "valueMap().count()",
    "as('y').select('x', 'y').groupCount()",
    "as('y').select('x', 'y').by(T.label).groupCount()",
    "as('y').select('y', 'x').by('name').by('number').dedup()",
    "as('y').select('x', 'y').dedup().count()",
    "as('y').dedup('x', 'y').by(T.label).select('y').id()",
    "as('y').groupCount().by(__.select('z', 'y'))",
    "project('a', 'b').by('name').by(T.label).groupCount()",
    "aggregate('x').as('y').select('x', 'y').by(__.count(Scope.local)).by(T.id).dedup().count()",
];

#[test]
fn hops_are_counted_as_their_rows_are() {
    let (store, graph) = changed_graph();
    let mut answered = 0;
    for round in ["changed", "consolidated"] {
        let runner = Runner::new(graph.clone());
        for start in [
            "V().hasLabel('tag').as('x')",
            "V().hasLabel('fan', 'person').as('x')",
            "V('p5', 'p0', 'm3').as('x')",
            "V('p5', 'm3').as('x').both()",
        ] {
            for hop in HOPS {
                for end in COUNTED {
                    let text = format!("g.{start}.{hop}.{end}");
                    let run = |rules, batch_rows_limit| {
                        let circumstances = Circumstances { rules, batch_rows_limit, ..USUAL };
                        runner.text(&text, circumstances, &RunOptions::default(), Show::Sorted)
                    };
                    let wanted = run(Rules::None, None);
                    assert_eq!(run(Rules::All, None), wanted, "{text}, {round}");
                    assert_eq!(run(Rules::All, Some(3)), wanted, "{text}, {round}, three rows at a time");
                    answered += usize::from(matches!(&wanted, Answer::Rows(rows) if !rows.is_empty()));
                }
                for end in ["label().groupCount()", "label().limit(3)"] {
                    let text = format!("g.{start}.{hop}.{end}");
                    assert_eq!(answer(&graph, &text, true), answer(&graph, &text, false), "{text}, {round}, writing");
                }
            }
        }
        store.consolidate().unwrap();
    }
    assert!(answered > 1000, "{answered}");
}

#[test]
fn sums_of_columns_grow_as_sums_of_rows_do() {
    let store = Store::in_memory();
    let graph = store.create_graph("g").unwrap();
    let mut writing = graph.begin();
    for number in 0..600i64 {
        let vertex = writing.add_vertex("v", None).unwrap();
        let int = Value::Int(if number % 2 == 0 { i32::MAX - number as i32 } else { -7 });
        let long = Value::Long(if number % 50 == 0 { i64::MAX / 3 } else { -number });
        let kind = Value::from(["odd", "even", "third"][number as usize % 3]);
        for (key, value) in [("int", int), ("long", long), ("short", Value::Short(number as i16)), ("kind", kind)] {
            if key == "kind" && number % 7 == 0 {
                continue;
            }
            writing.set_vertex_property(vertex, key, value, Cardinality::Single, None).unwrap();
        }
    }
    writing.commit().unwrap();
    store.consolidate().unwrap();
    let runner = Runner::new(graph);
    for key in ["int", "long", "short"] {
        for end in ["sum()", "mean()", "max()", "min()"] {
            let text = format!("g.V().values('{key}').{end}");
            let run =
                |rules| runner.text(&text, Circumstances { rules, ..USUAL }, &RunOptions::default(), Show::Sorted);
            assert_eq!(run(Rules::All), run(Rules::None), "{text}");
        }
        for end in ["sum()", "mean()", "max()", "min()", "count()"] {
            let text = format!("g.V().group().by('kind').by(__.values('{key}').{end})");
            let run =
                |rules| runner.text(&text, Circumstances { rules, ..USUAL }, &RunOptions::default(), Show::Sorted);
            assert_eq!(run(Rules::All), run(Rules::None), "{text}");
        }
    }
}

#[test]
fn rows_are_counted_by_the_codes_of_texts() {
    const LEAVES: usize = 20_000;
    let store = Store::in_memory();
    let graph = store.create_graph("g").unwrap();
    let mut writing = graph.begin();
    let hub = writing.add_vertex("hub", Some("hub".into())).unwrap();
    let mut leaves = Vec::new();
    let name = |number: usize| Value::from(["ann", "bob", "cy", "dan", "eve"][number % 5]);
    for number in 0..LEAVES {
        let leaf = writing.add_vertex(["leaf", "twig"][number % 2], None).unwrap();
        writing.add_edge("has", hub, leaf, None).unwrap();
        if number % 11 != 0 {
            writing.set_vertex_property(leaf, "name", name(number / 3), Cardinality::Single, None).unwrap();
        }
        writing.set_vertex_property(leaf, "several", name(number / 3), Cardinality::Single, None).unwrap();
        if number % 5_000 == 4_999 {
            writing.set_vertex_property(leaf, "several", "second".into(), Cardinality::List, None).unwrap();
        }
        let mixed = if number % 7_000 == 6_999 { Value::Int(7) } else { name(number) };
        writing.set_vertex_property(leaf, "mixed", mixed, Cardinality::Single, None).unwrap();
        let own = format!("leaf {number}");
        writing.set_vertex_property(leaf, "own", own.as_str().into(), Cardinality::Single, None).unwrap();
        leaves.push(leaf);
    }
    writing.commit().unwrap();
    store.consolidate().unwrap();
    for round in ["consolidated", "changed"] {
        let runner = Runner::new(graph.clone());
        for text in [
            "g.V('hub').out('has').groupCount().by('name')",
            "g.V('hub').out('has').groupCount().by('mixed')",
            "g.V('hub').out('has').groupCount().by(__.values('several'))",
            "g.V('hub').out('has').values('several').groupCount()",
            "g.V('hub').out('has').groupCount().by('none')",
            "g.V('hub').out('has').in('has').groupCount().by('name')",
            "g.V('hub').union(out('has'), out('has').hasLabel('leaf'), outE('has')).groupCount().by('name')",
            "g.V('hub').out('has').groupCount().by('own').count(local)",
            "g.V('hub').out('has').in('has').groupCount().by(T.id)",
            "g.V('hub').union(out('has'), outE('has'), out('has').hasLabel('leaf')).groupCount().by(T.id).count(local)",
            // The hub is too much for a look.
            "g.V().group().by(T.label).by(__.both('has').count())",
            "g.V('hub').union(identity(), out('has').limit(30), identity()).group().by(T.label).by(__.out('has').values('name').count())",
            "g.V().group().by(T.label).by(__.out('has').values('name').max())",
            "g.V('hub').union(identity(), out('has').limit(9)).group().by(T.label).by(__.both('has').hasLabel('twig').values('own').min())",
            "g.V().group().by(T.label).by(__.out('has').constant(2).sum())",
            "g.V().group().by(T.label).by(__.out('has').limit(1).count())",
            "g.V().hasLabel('leaf').groupCount().by('name')",
            "g.V().groupCount().by('mixed')",
            "g.V().hasLabel('twig').has('name').group().by('name').by(values('own').count())",
        ] {
            let run = |rules| runner.text(text, Circumstances { rules, ..USUAL }, &RunOptions::default(), Show::Sorted);
            let wanted = run(Rules::None);
            assert!(matches!(&wanted, Answer::Rows(rows) if rows.len() == 1), "{text}: {wanted:?}");
            assert_eq!(run(Rules::All), wanted, "{text}, {round}");
        }
        for rules in [Rules::None, Rules::All] {
            let text = "g.V('hub').out('has').groupCount().by('several')";
            let found = runner.text(text, Circumstances { rules, ..USUAL }, &RunOptions::default(), Show::Sorted);
            assert!(
                matches!(&found, Answer::Failed(_, why) if why.contains("Multiple properties")),
                "{round}: {found:?}"
            );
        }
        let mut writing = graph.begin();
        for number in (0..LEAVES).step_by(401) {
            writing.set_vertex_property(leaves[number], "name", "new".into(), Cardinality::Single, None).unwrap();
        }
        writing.remove_vertex(leaves[17]).unwrap();
        writing.commit().unwrap();
    }
}

#[test]
fn counters_are_read_by_the_transaction_that_asks_them() {
    for (query, conflicts) in [
        ("g.E().count()", true),
        ("g.E().groupCount().by(T.label)", true),
        ("g.E().hasLabel('knows').count()", true),
        ("g.E().hasLabel('likes').count()", false),
        ("g.V().hasLabel('person').count()", false),
    ] {
        let graph = Store::in_memory().create_graph("g").unwrap();
        let mut first = graph.begin();
        let (a, b) = (first.add_vertex("person", None).unwrap(), first.add_vertex("person", None).unwrap());
        first.add_edge("knows", a, b, None).unwrap();
        first.add_edge("likes", a, b, None).unwrap();
        first.commit().unwrap();
        let (outcome, transaction) = engine().collect(&prepare(query), graph.begin(), &RunOptions::default());
        outcome.unwrap();
        let mut asking = transaction.expect("the query has ended");
        asking.add_vertex("note", None).unwrap();
        let mut other = graph.begin();
        other.add_edge("knows", b, a, None).unwrap();
        other.commit().unwrap();
        let kind = asking.commit().map_err(|error| error.kind());
        assert_eq!(kind.is_err(), conflicts, "{query}: {kind:?}");
        assert!(kind.is_ok() || kind == Err(ErrorKind::Conflict), "{query}: {kind:?}");
    }
}

/// How `V()` finds its vertices.
fn way(graph: &Arc<Graph>, text: &str) -> String {
    let explanation = prepare(text).explanation_on(&graph.begin_reading());
    let ways = explanation.intermediate.iter().find(|(name, ..)| &**name == "AccessPaths");
    ways.map_or(String::new(), |(_, _, text)| text.to_string())
}

#[test]
fn a_hop_says_at_which_vertices_it_begins() {
    let (store, graph) = changed_graph();
    store.consolidate().unwrap();
    let count = |text: &str| answer(&graph, text, false);
    for (text, by) in [
        ("g.V().out('wrote').count()", "scan of the label"),
        ("g.V().as('a').out('wrote').as('b').select('a', 'b').count()", "scan of the label"),
        ("g.V().where(out('wrote')).count()", "scan of the label"),
        ("g.V().out('nothing').values('name')", "nothing"),
        ("g.V().where(out('wrote').count().is(0)).count()", ""),
        ("g.V().optional(out('wrote')).count()", ""),
    ] {
        assert_eq!(way(&graph, text).contains(by), !by.is_empty() || way(&graph, text).is_empty(), "{text}");
    }
    // An edge that leaves a vertex of another label is found before the next consolidation and behind it.
    let Answer::Rows(before) = count("g.V().out('wrote').count()") else { panic!("no count") };
    let mut writing = graph.begin();
    let (label, mut tags) = (writing.label_id("tag").unwrap(), Vec::new());
    writing.scan_vertices_with_label(label, &mut ficus_storage::ScanCursor::default(), 2, &mut tags);
    writing.add_edge("wrote", tags[0], tags[1], None).unwrap();
    writing.commit().unwrap();
    for round in ["changed", "consolidated"] {
        assert_ne!(count("g.V().out('wrote').count()"), Answer::Rows(before.clone()), "{round}");
        assert_eq!(
            count("g.V().hasLabel('tag').out('wrote').count()"),
            count("g.V().out('wrote').hasLabel('tag').count()"),
            "{round}"
        );
        store.consolidate().unwrap();
    }
}
