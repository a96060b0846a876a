//! Rings that are closed by a search: the same rows as by going the last hop, and in its place only where it is one hop back to a vertex.

use super::k_hop::prepare;
use super::runner::{Answer, Circumstances, Rules, Runner, Show, USUAL};
use crate::in_place::changed_graph;
use ficus_query::engine::RunOptions;

fn is_searched(text: &str) -> bool {
    format!("{:?}", prepare(text, true).explanation()).contains("ClosedRings")
}

#[test]
fn rings_are_closed_by_a_search() {
    let (store, graph) = changed_graph();
    for round in ["changed", "consolidated"] {
        let runner = Runner::new(graph.clone());
        let mut found = 0;
        for (text, searched) in [
            ("g.V().hasLabel('person').as('a').both('knows').both('knows').where(eq('a')).count()", true),
            (
                "g.V().hasLabel('person').as('a').both().both().as('b').where(eq('a')).as('c').select('a', 'b', 'c').by(id)",
                true,
            ),
            (
                "g.V().hasLabel('person').as('a').both('knows').as('b').both('knows').as('c').both('knows').where(eq('a')).select('b', 'c').by(id)",
                true,
            ),
            (
                "g.V().hasLabel('person').as('f').out('wrote').as('m').out('has').as('t').in('has').where(eq('m')).select('f', 't').by(id)",
                true,
            ),
            (
                "g.V().hasLabel('person').as('f').out('wrote').out('has').has('name').in('has').in('wrote').where(eq('f')).count()",
                true,
            ),
            (
                "g.V().hasLabel('person').as('f').out('wrote').has('number', gt(20)).as('m').in('wrote').where(eq('f')).values('name')",
                true,
            ),
            (
                "g.V('p1').repeat(both('knows')).emit().times(2).dedup().as('f').out('wrote').as('m').in('wrote').where(eq('f')).select('m').groupCount().by('name')",
                true,
            ),
            (
                "g.V().hasLabel('person').union(both('knows'), identity()).as('g').out('wrote').in('wrote').where(eq('g')).groupCount().by(id)",
                true,
            ),
            (
                "g.V().hasLabel('person').as('a').out('knows').as('b').out('knows').where(eq('a')).out('wrote').in('wrote').where(eq('b')).count()",
                true,
            ),
            // One hop alone is asked for the edges between the two.
            ("g.V().hasLabel('person').as('a').hasLabel('person').both('knows').where(eq('a')).count()", false),
            // What is under the label is no vertex, or not one thing only.
            ("g.V().hasLabel('person').outE('wrote').as('w').inV().in('wrote').where(eq('w')).count()", false),
            (
                "g.V().hasLabel('person').as('a').values('number').as('n').select('a').out('knows').out('knows').where(eq('n')).count()",
                false,
            ),
            (
                "g.V().hasLabel('person').as('a').out('knows').as('a').out('wrote').in('wrote').where(eq('a')).count()",
                false,
            ),
            // Somebody sees the way.
            ("g.V().hasLabel('person').as('a').both('knows').both('knows').where(eq('a')).path().by(id)", false),
            (
                "g.withSack(1).V().hasLabel('person').as('a').both('knows').both('knows').where(eq('a')).sack().sum()",
                false,
            ),
        ] {
            assert_eq!(is_searched(text), searched, "{text}");
            let run = |rules| runner.text(text, Circumstances { rules, ..USUAL }, &RunOptions::default(), Show::Sorted);
            let wanted = run(Rules::None);
            assert_eq!(run(Rules::All), wanted, "{text}, {round}");
            found += usize::from(!format!("{wanted:?}").contains("Rows([])"));
        }
        assert!(found > 12, "{found} of them find something");
        store.consolidate().unwrap();
    }
}

#[test]
fn edges_that_are_asked_for_are_looked_up() {
    let is_looked_up = |text: &str| format!("{:?}", prepare(text, true).explanation()).contains("EdgeTests");
    let (store, graph) = changed_graph();
    for round in ["changed", "consolidated"] {
        let runner = Runner::new(graph.clone());
        let mut found = 0;
        for (text, looked_up) in [
            (
                "g.V().hasLabel('person').as('a').out('wrote').in('wrote').out('wrote').where(__.in('wrote').as('a')).count()",
                true,
            ),
            (
                "g.V().hasLabel('person').as('a').both('knows').both('knows').both('knows').where(both('knows').as('a')).groupCount().by(id)",
                true,
            ),
            (
                "g.V().hasLabel('person').as('a').out('wrote').in('wrote').out('wrote').where(__.in('wrote').where(eq('a'))).as('c').select('a', 'c').by(id)",
                true,
            ),
            (
                "g.V().hasLabel('person').as('a').both('knows').both('knows').not(both('knows').where(eq('a'))).as('c').select('a', 'c').by(id)",
                true,
            ),
            (
                "g.V().hasLabel('person').as('a').out('wrote').as('b').in('wrote').as('c').where(__.as('c').out('wrote').as('b')).select('a', 'b', 'c').by(id)",
                true,
            ),
            (
                "g.V().hasLabel('person').as('a').both('knows').as('b').out('wrote').as('c').where(__.not(__.as('a').out('wrote').as('c'))).select('a', 'c').by(id)",
                true,
            ),
            (
                "g.V().hasLabel('person').as('a').out('wrote').in('wrote').out('wrote').has('number', gt(20)).where(__.in('wrote').as('a')).dedup().values('number')",
                true,
            ),
            (
                "g.V().hasLabel('person').as('a').out('wrote').in('wrote').out('wrote').dedup().where(__.in('wrote').as('a')).values('number')",
                true,
            ),
            (
                "g.V().hasLabel('person').as('a').both('knows').both('knows').where(neq('a')).where(__.not(both('knows').as('a'))).values('name')",
                true,
            ),
            (
                "g.E().hasLabel('wrote').as('e').outV().as('o').select('e').inV().where(__.in('wrote').as('o')).values('number')",
                true,
            ),
            (
                "g.V().hasLabel('person').as('a').out('knows').out('knows').as('b').where(select('a').out('knows').where(eq('b'))).select('a', 'b').by(id)",
                true,
            ),
            (
                "g.V().hasLabel('person').as('a').both('knows').as('b').out('wrote').where(__.not(select('b').out('knows').where(eq('a')))).count()",
                false,
            ),
            // Several edges let a row through once.
            (
                "g.V().hasLabel('person').as('a').both('knows', 'wrote').as('b').where(both('knows', 'wrote').as('a')).select('a', 'b').by(id)",
                true,
            ),
            // The only vertex that it may be is known by its id.
            (
                "g.V('p1').as('a').both('knows').both('knows').where(both('knows').as('a')).as('x').where(out('wrote')).select('x').values('name')",
                false,
            ),
            // What is under the label is no vertex, or may be missing, or is there twice; neither is where the row is.
            ("g.V().hasLabel('person').outE('wrote').as('w').inV().where(__.in('wrote').as('w')).count()", false),
            ("g.V().hasLabel('person').optional(out('wrote').as('w')).where(__.in('wrote').as('w')).count()", false),
            (
                "g.V().hasLabel('person').as('a').both('knows').as('a').both('knows').where(both('knows').as('a')).count()",
                false,
            ),
            (
                "g.V().hasLabel('person').as('a').both('knows').as('b').both('knows').where(__.as('a').both('knows').as('b')).count()",
                false,
            ),
            // More than one hop.
            (
                "g.V().hasLabel('person').as('a').out('wrote').where(__.in('wrote').both('knows').as('a')).count()",
                false,
            ),
            // Somebody sees the way.
            (
                "g.V().hasLabel('person').as('a').both('knows').both('knows').where(both('knows').as('a')).path().by(id)",
                false,
            ),
        ] {
            assert_eq!(is_looked_up(text), looked_up, "{text}");
            // Rows that are equal in between may come in another order.
            let run = |rules| {
                let found = runner.text(text, Circumstances { rules, ..USUAL }, &RunOptions::default(), Show::Sorted);
                let Answer::Rows(mut rows) = found else { panic!("{text}: {found:?}") };
                rows.sort();
                rows
            };
            let wanted = run(Rules::None);
            assert_eq!(run(Rules::All), wanted, "{text}, {round}");
            found += usize::from(!wanted.is_empty());
        }
        assert!(found > 12, "{found} of them find something, {round}");
        store.consolidate().unwrap();
    }
}
