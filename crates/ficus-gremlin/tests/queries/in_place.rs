//! Sub-queries evaluated in place: the same rows as in scopes, also where a walk is too long and a scope has to take over.

use std::sync::Arc;

use ficus_model::{Cardinality, Direction, OffsetDateTime, Value, VertexId};
use ficus_query::engine::RunOptions;
use ficus_storage::{Graph, HalfEdgeCursor, Store};

use crate::runner::{Answer, Circumstances, Rules, Runner, Show, USUAL};

/// More than a walk in place may look at.
const FANS: u64 = 17_000;

/// Persons who know each other in a ring with chords, posts with tags, and one person whom very many like.
pub fn graph() -> Arc<Graph> {
    let graph = Store::in_memory().create_graph("g").unwrap();
    fill(&graph);
    graph
}

fn fill(graph: &Arc<Graph>) {
    let mut writing = graph.begin();
    let add = |writing: &mut ficus_storage::Transaction, label: &str, id: String, number: i64| {
        let vertex = writing.add_vertex(label, Some(Value::from(id.as_str()))).unwrap();
        writing.set_vertex_property(vertex, "number", Value::Long(number), Cardinality::Single, None).unwrap();
        writing.set_vertex_property(vertex, "day", Value::DateTime(day(number)), Cardinality::Single, None).unwrap();
        let name = Value::from(["ann", "bob", "cid"][number as usize % 3]);
        writing.set_vertex_property(vertex, "name", name, Cardinality::Single, None).unwrap();
        vertex
    };
    let persons: Vec<VertexId> = (0..30).map(|n| add(&mut writing, "person", format!("p{n}"), n)).collect();
    let tags: Vec<VertexId> = (0..7).map(|n| add(&mut writing, "tag", format!("t{n}"), n)).collect();
    for n in 0..30usize {
        writing.add_edge("knows", persons[n], persons[(n + 1) % 30], None).unwrap();
        writing.add_edge("knows", persons[n], persons[(n * 7 + 3) % 30], None).unwrap();
    }
    for n in 0..200usize {
        let post = add(&mut writing, "post", format!("m{n}"), (n * 37 % 100) as i64);
        if n % 5 == 0 {
            writing.set_vertex_property(post, "number", Value::Long(-1), Cardinality::List, None).unwrap();
        }
        let edge = writing.add_edge("wrote", persons[n * n % 30], post, None).unwrap();
        writing.set_edge_property(edge, "at", Value::Long((n * 53 % 97) as i64)).unwrap();
        for tag in [n % 7, n * 3 % 7] {
            writing.add_edge("has", post, tags[tag], None).unwrap();
        }
    }
    for n in 0..FANS {
        let fan = add(&mut writing, "fan", format!("f{n}"), n as i64);
        writing.add_edge("likes", fan, persons[0], None).unwrap();
    }
    writing.commit().unwrap();
}

/// So many days after 2020-09-13, in UTC.
fn day(number: i64) -> OffsetDateTime {
    OffsetDateTime { epoch_seconds: 1_600_000_000 + number * 86_400, nanos: 0, offset_seconds: 0 }
}

/// Columns under changes: consolidated, and then some values changed, added and removed, and some vertices as well.
pub fn changed_graph() -> (Arc<Store>, Arc<Graph>) {
    let store = Store::in_memory();
    let graph = store.create_graph("g").unwrap();
    fill(&graph);
    store.consolidate().unwrap();
    let mut writing = graph.begin();
    let find =
        |writing: &ficus_storage::Transaction, id: String| writing.find_vertex(&Value::from(id.as_str())).unwrap();
    for n in (0..200i64).step_by(7) {
        let post = find(&writing, format!("m{n}"));
        writing.set_vertex_property(post, "number", Value::Long(n * 11 % 100), Cardinality::Single, None).unwrap();
        // What no column of moments holds: an offset.
        let own = OffsetDateTime { offset_seconds: 3600, ..day(n) };
        writing.set_vertex_property(post, "day", Value::DateTime(own), Cardinality::List, None).unwrap();
        writing.set_vertex_property(post, "name", Value::from("dan"), Cardinality::List, None).unwrap();
    }
    for n in (3..200i64).step_by(31) {
        let post = find(&writing, format!("m{n}"));
        writing.remove_vertex(post).unwrap();
    }
    // Edges whose values are no integers any more, gone, or others; and one edge that is gone.
    for (n, name) in ["p0", "p1", "p4", "p16"].into_iter().enumerate() {
        let person = find(&writing, name.into());
        let (label, mut edges) = (writing.label_id("wrote").unwrap(), Vec::new());
        writing.half_edges(person, Direction::Out, &[label], &mut HalfEdgeCursor::default(), 100, &mut edges);
        for (place, half_edge) in edges.into_iter().enumerate().filter(|(place, _)| place % 4 == n) {
            match place % 3 {
                0 => writing.set_edge_property(half_edge.edge, "at", Value::Double(place as f64 + 0.5)).unwrap(),
                1 => writing.set_edge_property(half_edge.edge, "at", Value::Int(place as i32 * 3)).unwrap(),
                _ => writing.remove_edge(half_edge.edge).unwrap(),
            }
        }
    }
    let person = find(&writing, "p5".into());
    for n in 0..20 {
        let post = writing.add_vertex("post", Some(Value::from(format!("late{n}").as_str()))).unwrap();
        if n % 2 == 0 {
            writing.set_vertex_property(post, "number", Value::Int(n * 5), Cardinality::Single, None).unwrap();
            writing
                .set_vertex_property(post, "day", Value::DateTime(day(n.into())), Cardinality::Single, None)
                .unwrap();
        }
        writing.add_edge("wrote", person, post, None).unwrap();
    }
    writing.commit().unwrap();
    (store, graph)
}

/// Conditions behind a hop with many ends, some of which columns of numbers and texts can tell.
const CONDITIONS: [&str; 16] = [
    "has('number', lt(30))",
    "has('number', lte(-1))",
    "has('number', gt(94))",
    "has('number', between(10, 20))",
    "has('number', eq(37))",
    "has('number', eq(37.0d))",
    "has('number', neq(37))",
    "has('number', inside(-2, 3)).has('name', 'ann')",
    "has('number', gt('a'))",
    "has('none', lt(5))",
    "has('day', lt(datetime('2020-10-01T00:00:00Z')))",
    "has('day', gte(datetime('2020-10-01T12:26:40Z')))",
    "has('day', between(datetime('2020-09-20T00:00:00Z'), datetime('2020-10-20T00:00:00Z')))",
    "has('day', lt(datetime('2020-10-01T00:00:00+02:00')))",
    "has('name', within('bob', 'dan'))",
    "has('name', neq('ann'))",
];

/// Conditions on edges.
const EDGE_CONDITIONS: [&str; 8] = [
    "has('at', lt(30))",
    "has('at', gte(50))",
    "has('at', between(10, 60))",
    "has('at', inside(10, 60)).has('at', neq(53))",
    "has('at', 9)",
    "has('at', gt('a'))",
    "has('none', lt(5))",
    "hasNot('at')",
];

/// Sub-queries with the person as their start.
const QUESTIONS: [&str; 24] = [
    "out('wrote').choose(has('number', gt(50)), __.out('has'), __.in('wrote')).has('name')",
    "both('knows').choose(values('number').is(gt(3)), __.out('wrote').has('number', lt(20)))",
    "out('wrote').choose(values('number')).option(lt(20), __.out('has').hasId('t3')).option(none, __.in('likes'))",
    "choose(values('none')).option(unproductive, __.out('wrote').has('number', 5)).option(1, __.in('likes'))",
    "map(out('wrote')).has('number', gt(60))",
    "flatMap(out('wrote').limit(2)).has('number', gt(60))",
    "out('wrote').optional(out('has').hasId('t2')).has('number')",
    "both('knows').map(out('wrote').count()).is(gt(7))",
    "out('wrote').has('number', gt(50))",
    "out('wrote').has('number', -1)",
    "out('wrote').out('has').hasId('t3')",
    "in('likes').has('number', 16999)",
    "in('likes').out('likes').has('number', 0)",
    "outE('wrote').has('at', lt(10)).inV().hasLabel('post')",
    "bothE('knows').otherV().has('number', 4)",
    "both('knows').both('knows').hasId('p9')",
    "out('wrote').count().is(gt(6))",
    "out('wrote').values('number').sum().is(gt(300))",
    "out('wrote').values('number').max().is(99)",
    "out('wrote').limit(2).out('has').dedup().count().is(2)",
    "coalesce(out('none'), out('wrote').limit(1)).out('has').hasId('t0')",
    "union(out('wrote'), in('likes')).has('number', 16998)",
    "until(hasLabel('tag')).repeat(out('wrote', 'has')).hasId('t5')",
    "repeat(both('knows')).emit().times(2).has('number', 29)",
];

/// Sub-queries with results.
const RESULTS: [&str; 34] = [
    "V('p2')",
    "V('nobody')",
    "V('p2', 'p1')",
    "V(['p1'])",
    "out('wrote').choose(values('number').is(lt(30)), constant('low'), constant('high')).groupCount()",
    "both('knows').choose(out('wrote').count().is(gt(6)), __.out('wrote').id(), __.id()).fold()",
    "out('wrote').choose(values('number')).option(between(0, 30), constant('a')).option(between(20, 60), constant('b')).fold()",
    "out('wrote').choose(values('number')).option(eq(5), constant('five')).option(none, __.out('has').id()).fold()",
    "both('knows').choose(values('none')).option('x', constant(1)).option(unproductive, constant(2)).fold()",
    "both('knows').choose(hasId('p1'), __.out('knows')).id().fold()",
    "both('knows').map(out('wrote').order().by('number', desc).limit(2)).id().fold()",
    "both('knows').flatMap(out('wrote').order().by('number').limit(2)).id().fold()",
    "both('knows').both('knows').flatMap(out('wrote').dedup().out('has').dedup()).count()",
    "both('knows').optional(out('wrote').has('number', lt(4))).id().order().fold()",
    "both('knows').map(out('none')).count()",
    "out('wrote').choose(has('number', gt(50)), __.out('has').count(), constant(-1)).fold()",
    "out('wrote').out('has').in('has').has('number', gt(30)).count()",
    "out('wrote').out('has').where(__.in('has').has('number', 5)).count()",
    "out('wrote').filter(out('has').hasId('t2')).in('wrote').both('knows').values('number').fold()",
    "both('knows').both('knows').out('wrote').out('has').id().groupCount().unfold().count()",
    "both('knows').in('likes').out('likes').dedup().count()",
    "out('wrote').out('has').limit(3).in('has').count()",
    "out('wrote').values('number').order().by(desc).fold()",
    "out('wrote').order().by('number', desc).by(id).limit(3).id().fold()",
    "out('wrote').out('has').id().dedup().order().fold()",
    "out('wrote').has('number', gt(20)).count()",
    "in('likes').count()",
    "in('likes').values('number').max()",
    "outE('wrote').values('at').mean()",
    "outE('wrote').order().by('at').limit(1).inV().id()",
    "coalesce(out('none').id(), out('wrote').id(), constant('nothing'))",
    "not(out('wrote')).id()",
    "and(out('wrote'), or(out('none'), in('likes'))).label()",
    "repeat(out('knows')).times(2).emit().id().order().fold()",
];

pub fn texts() -> Vec<String> {
    let mut texts = Vec::new();
    for question in QUESTIONS {
        texts.push(format!("g.V().hasLabel('person').where(__.{question}).id()"));
        texts.push(format!("g.V().hasLabel('person').not(__.{question}).id()"));
        // `dedup()` ends it where the question is never answered.
        texts.push(format!("g.V('p1').repeat(both('knows').dedup()).until(__.{question}).id()"));
        texts.push(format!("g.V('p2').repeat(both('knows')).emit(__.{question}).times(2).dedup().id()"));
        texts.push(format!("g.V('p2').repeat(both('knows').where(__.{question})).times(2).dedup().id()"));
        texts.push(format!("g.V().hasLabel('person').where(__.{question}).as('a').out('knows').where(neq('a')).id()"));
    }
    for result in RESULTS {
        texts.push(format!("g.V().hasLabel('person').project('id', 'result').by(id).by(__.{result})"));
        texts.push(format!("g.V().hasLabel('person').map(__.{result})"));
        texts.push(format!("g.V().hasLabel('person').flatMap(__.{result})"));
        texts.push(format!("g.V().hasLabel('person').order().by(__.{result}).by(id).id()"));
        texts.push(format!("g.V().hasLabel('person').group().by(__.{result}).by(count())"));
        texts.push(format!("g.V().hasLabel('person').coalesce(__.{result}, constant('none'))"));
    }
    texts.extend(
        [
            "g.V('p3').sideEffect(out('wrote').aggregate('mine')).both('knows').out('wrote').where(without('mine')).id()",
            "g.V('p3').aggregate('seen').repeat(both('knows').where(without('seen')).dedup().aggregate('seen')).emit().times(4).id()",
            "g.V().hasLabel('person').where(out('wrote').where(within('x'))).count()",
            "g.V('p3').out('wrote').as('m').out('has').where(__.in('has').where(neq('m'))).id()",
            "g.V('p3').as('a').both('knows').project('x').by(select('a').id())",
            "g.V('p1').out('wrote').fold().as('mine').unfold().out('has').project('n').by(__.in('has').where(within('mine')).count())",
            "g.V('p1').out('wrote').fold().as('mine').unfold().out('has').project('n').by(__.in('has').where(without('mine')).count())",
            "g.V('p1').as('me').out('wrote').project('n').by(__.in('wrote').out('wrote').in('wrote').where(within('me')).count())",
            "g.V('p1').out('wrote').project('n').by(__.out('has').in('has').where(within('nobody')).count())",
            "g.V('p1').out('wrote').values('number').fold().as('n').unfold().project('n').by(__.constant(1).where(within('n')).count())",
            "g.V().hasLabel('person').outE('wrote').has('at', lt(40)).as('w').inV().as('m').select('w', 'm').by('at').by(id)",
            "g.V().hasLabel('post').inE('wrote').as('w').outV().as('p').where(select('w').has('at', gt(50))).select('p').id()",
            "g.V().hasLabel('person').bothE('knows').as('k').otherV().path()",
            "g.V('p0').bothE('likes', 'knows').otherV().has('number', lt(9)).path().by(label)",
            "g.V().hasLabel('person').outE('wrote').as('w').has('at', gt(20)).as('x').inV().dedup().select('w', 'x').by('at')",
            "g.V().hasLabel('person').outE('wrote').as('w').inV().where(values('number').is(gt(30))).count()",
            "g.V().hasLabel('person').outE('wrote').as('w').inV().out('has').where(within('w')).count()",
            "g.V().hasLabel('person').as('p').out('wrote').out('has').group().by().by(select('p').fold()).unfold()",
            "g.V().hasLabel('person').as('p').both('knows').both('knows').group().by().by(select('p').fold()).unfold()",
            "g.V().hasLabel('fan').as('f').out('likes').group().by().by(select('f').fold()).select(values).unfold().count(local)",
            "g.V('p3').aggregate('x').both('knows').group().by().by(select('x').fold()).unfold()",
            "g.V('p3').both('knows').group().by().by(select('none').fold()).unfold()",
            "g.V().hasLabel('person').as('p').out('wrote').out('has').group().by().by(select('p').fold()).unfold().as('e').select(values).as('m').select('e').select(keys).project('a', 'n').by(id).by(select('m').count(local))",
            "g.V().hasLabel('person').as('p').out('wrote').out('has').group().by().by(select('p').fold()).as('g').unfold().select('g').count(local)",
            "g.V().hasLabel('person').as('p').both('knows').group().by().by(select('p').fold()).unfold().unfold().count()",
            "g.V().hasLabel('person').as('p').both('knows').group().by().by(select('p').fold()).unfold().path().count()",
            "g.withSack(3).V().hasLabel('person').as('p').both('knows').group().by().by(select('p').fold()).unfold().limit(7).sack().sum()",
            "g.V().hasLabel('person').as('p').both('knows').group().by().by(select('p').fold()).unfold().count()",
            "g.V().hasLabel('person').as('a').both('knows').both('knows').where(eq('a')).count()",
            "g.V().hasLabel('person').as('a').both().both().as('b').where(eq('a')).select('a', 'b').by(id)",
            "g.V().hasLabel('person').as('f').out('wrote').as('m').out('has').as('t').in('has').where(eq('m')).as('n').select('f', 't', 'n').by(id)",
            "g.V().hasLabel('person').as('f').out('wrote').out('has').has('name').in('has').where(eq('f')).count()",
            "g.V('p1').repeat(both('knows')).emit().times(2).dedup().as('f').out('wrote').as('m').in('wrote').where(eq('f')).select('m').groupCount().by('name')",
            "g.V().hasLabel('person').as('f').union(both('knows'), identity()).as('g').out('wrote').in('wrote').where(eq('g')).groupCount().by(id)",
            "g.V().hasLabel('person').outE('wrote').as('w').inV().in('wrote').where(eq('w')).count()",
            "g.V().hasLabel('person').as('a').values('number').as('n').select('a').out('knows').out('knows').where(eq('n')).count()",
            "g.V('p3').match(__.as('a').both('knows').as('b'), __.as('b').both('knows').as('c'), __.as('a').bothE('knows').otherV().as('c')).count()",
            "g.V('p3').both('knows').union(identity(), both('knows').hasLabel('person')).dedup().id()",
            // A search, whose order is another.
            "g.V('p3').both('knows').union(identity(), both('knows')).dedup().order().by(id).id()",
            "g.V().hasLabel('person').union(both('knows'), out('wrote').in('wrote'), __.in('likes').out('likes')).dedup().path()",
            "g.V('p3').repeat(union(both('knows'), out('wrote').in('wrote')).dedup()).times(3).id()",
            "g.V('p3').where(union(both('knows'), out('wrote').in('wrote')).dedup().count().is(gt(4))).id()",
            "g.V('p3').as('p').both('none').group().by().by(select('p').fold())",
            "g.V('p3').as('p').out('wrote').as('m').group().by().by(select('m').fold()).unfold()",
            "g.V('p3').as('p').outE('wrote').as('w').inV().group().by().by(select('w').fold()).unfold()",
            "g.V('p3').as('p').both('knows').as('p').both('knows').group().by().by(select(first, 'p').fold()).unfold()",
            "g.V('p3').as('p').both('knows').as('p').both('knows').group().by().by(select('p').fold()).unfold()",
            "g.V().hasLabel('post').order().by('number', desc).by(id).limit(7).id()",
            "g.V().hasLabel('post').order().by('number').limit(5).values('number')",
            "g.V().hasLabel('fan').order().by('number', desc).range(3, 9).values('number')",
            "g.V().hasLabel('fan').order().by(values('number').math('_ % 7')).by('number').limit(300).values('number')",
            "g.V('p1').out('wrote').hasId(neq('m1')).hasLabel(within('post', 'tag')).has('number', within(1, 37, 74)).id()",
            "g.V('p1').where(__.out('wrote').values('none').sum()).id()",
            "g.V().hasLabel('person').map(project('n', 'w', 'x').by('name').by(out('wrote').count()).by(out('none')))",
            "g.V().hasLabel('person').local(both('knows').project('n', 'm').by(id).by(out('wrote').values('number').min()))",
            "g.V().hasLabel('person').as('p').map(out('wrote').project('n', 'p').by('number').by(select('p').by('name')).fold())",
            "g.V().hasLabel('post').groupCount().by(project('n', 'd').by('number').by(choose(has('number', gt(50)), constant('high'), constant('low')))).unfold()",
            "g.V().hasLabel('post').group().by(project('n').by('number').select('n')).by(project('i').by(id).fold()).unfold()",
            "g.V().hasLabel('post').where(project('n').by('number').select('n').is(gt(50))).id()",
            "g.V().hasLabel('post').map(project('n', 'i').by(label)).dedup()",
            "g.V('p1').out('wrote').where(values('number').out())",
            "g.V('t1').in('has').in('wrote').simplePath().limit(2).count()",
        ]
        .map(String::from),
    );
    texts
}

#[test]
fn rows_are_those_of_scopes() {
    assert!(compare(&Runner::new(graph()), texts()) > 120);
}

#[test]
fn columns_tell_what_their_values_would() {
    let (_store, graph) = changed_graph();
    let texts = CONDITIONS.iter().flat_map(|condition| {
        [
            format!("g.V().hasLabel('person').out('wrote').{condition}.id()"),
            format!("g.V().hasLabel('tag').in('has').{condition}.id()"),
            format!("g.V().hasLabel('tag').project('posts').by(__.in('has').{condition}.count())"),
            format!("g.V().hasLabel('person').where(__.out('wrote').{condition}).id()"),
            format!("g.V('p0').in('likes').{condition}.count()"),
        ]
    });
    let of_edges = EDGE_CONDITIONS.iter().flat_map(|condition| {
        [
            format!("g.V().hasLabel('person').outE('wrote').{condition}.inV().id()"),
            format!("g.V().hasLabel('post').inE('wrote').{condition}.outV().id()"),
            format!("g.V().hasLabel('person').outE('wrote').{condition}.values('at')"),
            format!("g.V().hasLabel('person').outE('wrote').{condition}.as('e').inV().has('number', gt(9)).select('e').values('at')"),
            format!("g.V().hasLabel('person').where(__.outE('wrote').{condition}.inV().has('number', gt(10))).id()"),
            format!("g.V().hasLabel('person').project('n').by(__.outE('wrote').{condition}.count())"),
            format!("g.V().hasLabel('person').outE('wrote').{condition}.inV().dedup().count()"),
        ]
    });
    let texts: Vec<String> = texts.chain(of_edges).collect();
    let runner = Runner::new(graph);
    assert!(compare(&runner, texts) > 100);
    // As its values are read one by one.
    for test in ["'ann'", "neq('ann')", "within('bob', 'dan')", "without('bob', 'dan')", "neq('dan')"] {
        let rows = |filter: String| {
            let text = format!("g.V().hasLabel('tag').in('has').{filter}.id()");
            runner.text(&text, USUAL, &RunOptions::default(), Show::Sorted)
        };
        assert_eq!(
            rows(format!("has('name', {test})")),
            rows(format!("filter(__.values('name').is({test}))")),
            "{test}"
        );
    }
}

/// Runs queries as usual, in scopes, and as written; says how many have rows.
pub fn compare(runner: &Runner, texts: Vec<String>) -> usize {
    let options = RunOptions::default();
    let (mut answered, mut different) = (0, Vec::new());
    for text in texts {
        let usual = runner.text(&text, USUAL, &options, Show::Sorted);
        answered += usize::from(matches!(&usual, Answer::Rows(rows) if !rows.is_empty()));
        let in_scopes = format!("g.with('ficus.inPlace', false).{}", text.strip_prefix("g.").unwrap());
        let plain = Circumstances { rules: Rules::None, ..USUAL };
        for (how, answer) in [
            ("in scopes", runner.text(&in_scopes, USUAL, &options, Show::Sorted)),
            ("without rules", runner.text(&text, plain, &options, Show::Sorted)),
        ] {
            if answer != usual {
                different.push(format!("{text}\n   {usual:?}\n   {how} {answer:?}"));
            }
        }
    }
    assert!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n"));
    answered
}

/// A walk goes through the stack once for each step, so a long sub-query has to go to a scope.
#[test]
fn long_sub_queries_do_not_need_the_stack() {
    let runner = Runner::new(graph());
    let long = "out('knows').".repeat(3000);
    let wide = format!("{}identity(){}", "where(__.".repeat(100), ")".repeat(100));
    for text in [
        format!("g.V('p1').where(__.{long}limit(1)).count()"),
        format!("g.V('p1').map(__.{long}limit(1).constant('x'))"),
        format!("g.V('p1').{wide}.count()"),
    ] {
        let answer = runner.text(&text, USUAL, &RunOptions::default(), Show::Sorted);
        assert!(matches!(&answer, Answer::Rows(rows) if rows.len() == 1), "{}…: {answer:?}", &text[..60]);
    }
}
