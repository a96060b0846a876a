//! Rings that are closed by a search: the same rows as by going the last hop, and in its place only where it is one hop back to a vertex.

use super::k_hop::prepare;
use super::runner::{Circumstances, Rules, Runner, Show, USUAL};
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
