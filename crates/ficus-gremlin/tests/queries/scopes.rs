//! Scopes with other policies, more instances, and none at all: the same rows, and `explain()` shows how they run.

use std::sync::Arc;

use ficus_gremlin::lower::lower;
use ficus_gremlin::text::{ParseOptions, parse_traversal};
use ficus_query::engine::{Prepared, RunOptions};
use ficus_query::error::QueryErrorKind;

use crate::in_place;
use crate::modern::modern;
use crate::runner::{Answer, OTHER_SCOPES, Runner, Show, USUAL};

fn prepare(text: &str) -> Result<Prepared, (Option<QueryErrorKind>, String)> {
    let bytecode = parse_traversal(text, &ParseOptions::default()).map_err(|error| (None, error.to_string()))?;
    let plan = lower(&bytecode).map_err(|error| (None, error.to_string()))?;
    Prepared::explained(plan).map_err(|error| (Some(error.kind), error.message.to_string()))
}

/// The scopes of a text, as `explain()` shows them.
fn shown(text: &str) -> Vec<String> {
    let prepared = prepare(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    let of_scopes = |(rule, _, text): &(Arc<str>, Arc<str>, Arc<str>)| (&**rule == "Scope").then(|| text.to_string());
    prepared.explanation().intermediate.iter().filter_map(of_scopes).collect()
}

#[test]
fn rows_do_not_depend_on_scopes() {
    let runner = Runner::new(in_place::graph());
    let (mut compared, mut different) = (0, Vec::new());
    for text in in_place::texts() {
        let rows = |circumstances| match runner.text(&text, circumstances, &RunOptions::default(), Show::Sorted) {
            Answer::Rows(mut rows) => {
                rows.sort_unstable();
                Answer::Rows(rows)
            }
            other => other,
        };
        let usual = rows(USUAL);
        for circumstances in OTHER_SCOPES {
            match rows(circumstances) {
                Answer::Failed(QueryErrorKind::Option, _) => {}
                other if other == usual => compared += 1,
                other => different.push(format!("{text}\n   {usual:?}\n   {circumstances:?} {other:?}")),
            }
        }
    }
    assert!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n"));
    assert!(compared > 900, "only {compared} answers compared");
}

#[test]
fn loops_take_policies() {
    let runner = Runner::new(in_place::graph());
    for walk in [
        "repeat(both('knows')).times(3).as('w').dedup()",
        "repeat(both('knows')).emit().times(2).as('w').dedup()",
        "repeat(both('knows').where(__.out('wrote').has('number', gt(50)))).times(4).as('w').dedup()",
        "repeat(out('knows')).emit(__.out('wrote').count().is(gt(6))).times(4).as('w').dedup()",
    ] {
        let rows = |with: &str| {
            let text = format!("g{with}.V('p1').{walk}.id().order().fold()");
            runner.text(&text, USUAL, &RunOptions::default(), Show::Sorted)
        };
        let usual = rows("");
        assert!(matches!(&usual, Answer::Rows(rows) if rows[0].len() > 5), "{walk}: {usual:?}");
        for policy in ["fifo", "bfs", "dfs"] {
            for setting in ["scope.w.policy", "scope.w.intraPolicy", "intraPolicy"] {
                assert_eq!(rows(&format!(".with('ficus.{setting}', '{policy}')")), usual, "{walk} {setting} {policy}");
            }
        }
        assert_eq!(rows(".with('ficus.scopes', false)"), usual, "{walk}");
    }
}

#[test]
fn plans_show_how_scopes_run() {
    let where_of = |with: &str, label: &str| {
        shown(&format!("g{with}.V().where(__.out('created').has('name', 'lop')){label}.values('name')")).join("; ")
    };
    let ends = |text: String, end: &str| assert!(text.ends_with(end), "{text}");
    ends(where_of("", ""), "]): branch, in place first, fifo, maxInstances 1");
    ends(where_of("", ".as('w')"), "]): branch, in place first, fifo, maxInstances 1");
    ends(where_of(".with('ficus.inPlace', false)", ""), "]): branch, fifo, maxInstances 1");
    ends(where_of(".with('ficus.scope.w.policy', 'fifo')", ".as('w')"), "]): branch, fifo, maxInstances 1");
    ends(where_of(".with('ficus.scope.w.policy', 'dfs')", ".as('w')"), "]): branch, dfs, maxInstances 256");
    let eight = ".with('ficus.scope.w.policy', 'dfs').with('ficus.scope.w.maxInstances', 8)";
    ends(where_of(eight, ".as('w')"), "]): branch, dfs, maxInstances 8");
    ends(where_of(".with('ficus.scope.w.maxInstances', 8L)", ".as('w')"), "]): branch, bfs, maxInstances 8");
    ends(
        where_of(".with('ficus.earlyCancellation', false).with('ficus.inPlace', false)", ""),
        "]): branch, not cancelled, fifo, maxInstances 1",
    );
    ends(where_of(".with('ficus.scopes', false)", ""), "]): one pipeline for all rows");
    ends(
        where_of(".with('ficus.scope.w.intraPolicy', 'bfs')", ".as('w')"),
        "]): branch, fifo, maxInstances 1, bfs inside",
    );
    let inside = ".with('ficus.intraPolicy', 'fifo').with('ficus.scope.w.policy', 'dfs').with('ficus.scope.w.intraPolicy', 'dfs')";
    let text = where_of(inside, ".as('w')");
    assert!(text.starts_with("query, fifo inside; "), "{text}");
    ends(text, "]): branch, dfs, maxInstances 256, dfs inside");
    let counted = "g.with('ficus.scopes', false).V().where(__.out('created').count().is(1))";
    ends(shown(counted).join("; "), "]): branch, not cancelled, fifo, maxInstances 1");
    // By the first step of the sub-query, here of the second by().
    let by = "g.with('ficus.scope.w.policy', 'bfs').V().order().by('name').by(__.out().as('w').count())";
    ends(shown(by).join("; "), "]): branch, bfs, maxInstances 256");
    // The label of a step that has sub-queries is its own.
    let inner = "g.with('ficus.scope.w.policy', 'bfs').V().where(__.filter(out('created')).as('w').in('knows'))";
    let scopes = shown(inner);
    assert!(
        scopes[0].ends_with(" fifo, maxInstances 1") && scopes[1].ends_with(" bfs, maxInstances 256"),
        "{scopes:?}"
    );
    ends(shown("g.V().repeat(out()).emit().times(2).path()").join("; "), "loop, bfs");
    ends(shown("g.V().repeat(out().sack(sum)).times(2).path()").join("; "), "loop, bfs up to 8192 rows");
    ends(shown("g.V().repeat(out()).times(2).dedup().limit(1)").join("; "), "loop, dfs");
    ends(shown("g.V().repeat(out()).times(2)").join("; "), "loop, bfs, an instance per iteration");
    let dfs = "g.with('ficus.scope.r.policy', 'dfs').V().repeat(out()).times(2).as('r')";
    ends(shown(dfs).join("; "), "loop, dfs");
    let inside = "g.with('ficus.scope.r.intraPolicy', 'bfs').V().repeat(out()).times(2).as('r').path()";
    ends(shown(inside).join("; "), "loop, bfs up to 8192 rows, bfs inside");
}

#[test]
fn options_that_are_none_are_refused() {
    for (text, expected) in [
        ("g.with('ficus.inplace', false).V()", "did you mean 'ficus.inPlace'?"),
        ("g.with('ficus.scope.w.polcy', 'dfs').V()", "did you mean 'ficus.scope.w.policy'?"),
        ("g.with('ficus.zzzzzzzzzzzz').V()", "there are evaluationTimeout, ficus.analysis, "),
        ("g.with('ficus.spread', 'no').V()", "takes true or false, but got 'no'"),
        ("g.with('ficus.scope.w.policy', 'lifo').V()", "takes 'fifo' or 'bfs' or 'dfs', but got 'lifo'"),
        ("g.with('ficus.intraPolicy', 'lifo').V()", "takes 'fifo' or 'bfs' or 'dfs', but got 'lifo'"),
        ("g.with('ficus.intraPolicy', 'bfs').addV()", "with('ficus.intraPolicy', 'bfs'): the query writes"),
        ("g.with('ficus.scope.w.intraPolicy', 'bfs').V().sideEffect(out()).as('w')", "side effects between rows"),
        ("g.with('ficus.scope.w.maxInstances', 0).V()", "takes an integer from 1 to 256, but got Integer 0"),
        ("g.with('evaluationTimeout', 'soon').V()", "takes an integer from 0 on, but got 'soon'"),
        ("g.with('ficus.scope.w.policy', 'dfs').V()", "no step has this label"),
        ("g.with('ficus.scope.w.policy', 'dfs').V().as('w').out()", "the step with this label has no scope"),
        (
            "g.with('ficus.scope.w.policy', 'fifo').with('ficus.scope.w.maxInstances', 2).V().where(out()).as('w')",
            "fifo runs one instance at a time",
        ),
        ("g.with('ficus.scope.w.policy', 'dfs').V().sideEffect(out()).as('w')", "side effects between rows"),
        ("g.with('ficus.scope.w.maxInstances', 2).V().repeat(out()).times(2).as('w')", "iterations of a loop share"),
        ("g.with('ficus.scope.w.policy', 'dfs').V().repeat(out().dedup()).times(2).as('w')", "gathers all rows"),
        (
            "g.with('ficus.scopes', false).with('ficus.scope.w.policy', 'dfs').V().where(out()).as('w')",
            "there are no scopes",
        ),
    ] {
        match prepare(text) {
            Ok(_) => panic!("{text} is accepted"),
            Err((kind, message)) => {
                assert!(message.contains(expected), "{text}: {message}");
                assert!(matches!(kind, None | Some(QueryErrorKind::Option)), "{text}: {kind:?}");
            }
        }
    }
}

#[test]
fn rows_keep_their_order_with_every_policy_inside() {
    let runner = Runner::new(in_place::graph());
    let text = "V().both().both().map(values('number').fold()).limit(3)";
    let ask = |with: &str| runner.text(&format!("g{with}.{text}"), USUAL, &RunOptions::default(), Show::AsIs);
    let usual = ask("");
    assert!(matches!(&usual, Answer::Rows(rows) if rows.len() == 3), "{usual:?}");
    for policy in ["fifo", "bfs", "dfs"] {
        assert_eq!(ask(&format!(".with('ficus.intraPolicy', '{policy}')")), usual, "{policy}");
    }
}

/// Without early cancellation more is looked at, so an arm whose later rows are bad fails; where answers are equal, they are found.
#[test]
fn what_is_not_cancelled_runs_to_its_end() {
    let runner = Runner::new(modern());
    let text = "V().hasLabel('person').where(__.out().as('w').choose(hasLabel('person'), identity(), fail('reached'))).count()";
    let ask = |with: &str| runner.text(&format!("g{with}.{text}"), USUAL, &RunOptions::default(), Show::Sorted);
    assert!(matches!(ask(""), Answer::Rows(_) | Answer::Failed(QueryErrorKind::Failed, _)));
    assert!(matches!(ask(".with('ficus.scopes', false)"), Answer::Failed(QueryErrorKind::Failed, _)));
}
