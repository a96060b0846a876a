//! What later steps say to the hops and scans that bring their rows, and what tests remember: the same rows as without, on graphs that
//! are large enough for it to happen.

use std::collections::VecDeque;
use std::sync::Arc;

use ficus_dataflow::Delivery;
use ficus_gremlin::lower::lower;
use ficus_gremlin::text::{ParseOptions, parse_traversal};
use ficus_model::{Cardinality, OffsetDateTime, Value, VertexId};
use ficus_query::budget::Held;
use ficus_query::engine::{Engine, EngineOptions, Prepared, QueryEnd, Row, RowSink, RowWaker, RunOptions};
use ficus_storage::{Graph, Store, Transaction};

use crate::in_place::compare;
use crate::runner::Runner;

const PERSONS: usize = 60;
const TAGS: usize = 40;
const POSTS: usize = 4_500;

/// Scrambles, so that what is near in one order is far in another.
fn scrambled(number: usize) -> usize {
    number.wrapping_mul(2_654_435_761) >> 7
}

/// Posts of persons with tags, of which few have a title that is asked for.
fn fill(graph: &Arc<Graph>) {
    let mut writing = graph.begin();
    let add = |writing: &mut Transaction, label: &str, id: String| {
        writing.add_vertex(label, Some(Value::from(id.as_str()))).unwrap()
    };
    let kinds: Vec<VertexId> = (0..5)
        .map(|n| {
            let kind = add(&mut writing, "kind", format!("k{n}"));
            set(&mut writing, kind, "title", Value::from(format!("kind{n}").as_str()));
            kind
        })
        .collect();
    let tags: Vec<VertexId> = (0..TAGS)
        .map(|n| {
            let tag = add(&mut writing, "tag", format!("t{n}"));
            set(&mut writing, tag, "title", Value::from(format!("tag{n}").as_str()));
            writing.add_edge("is", tag, kinds[n % 5], None).unwrap();
            tag
        })
        .collect();
    let hub = add(&mut writing, "hub", String::from("hub"));
    let persons: Vec<VertexId> = (0..PERSONS).map(|n| add(&mut writing, "person", format!("p{n}"))).collect();
    for n in 0..PERSONS {
        for other in [n * 7 + 1, n * n + 2, n / 2] {
            writing.add_edge("knows", persons[n], persons[other % PERSONS], None).unwrap();
        }
    }
    for n in 0..POSTS {
        let label = if n % 3 == 0 { "post" } else { "comment" };
        let post = add(&mut writing, label, format!("m{n}"));
        set(&mut writing, post, "number", Value::Long((scrambled(n) % 4_000) as i64));
        set(&mut writing, post, "day", Value::DateTime(day((scrambled(n) % 700) as i64)));
        let mixed = match n % 50 {
            0 => Value::Double(n as f64 / 3.0),
            _ => Value::Int((scrambled(n) % 1_000) as i32),
        };
        set(&mut writing, post, "mixed", mixed);
        if n % 4 == 0 {
            set(&mut writing, post, "rare", Value::Int((n % 97) as i32));
        }
        writing.add_edge("wrote", persons[scrambled(n) % PERSONS], post, None).unwrap();
        writing.add_edge("wrote", hub, post, None).unwrap();
        for tag in [scrambled(n) % TAGS, n % TAGS] {
            writing.add_edge("has", post, tags[tag], None).unwrap();
        }
    }
    writing.commit().unwrap();
}

fn set(writing: &mut Transaction, vertex: VertexId, key: &str, value: Value) {
    writing.set_vertex_property(vertex, key, value, Cardinality::Single, None).unwrap();
}

fn day(number: i64) -> OffsetDateTime {
    OffsetDateTime { epoch_seconds: 1_600_000_000 + number * 86_400, nanos: 0, offset_seconds: 0 }
}

/// Consolidated, and then changed where tests, sets and bounds would notice.
fn graphs() -> Vec<(Arc<Store>, Arc<Graph>)> {
    [false, true]
        .into_iter()
        .map(|is_changed| {
            let store = Store::in_memory();
            let graph = store.create_graph("g").unwrap();
            fill(&graph);
            store.consolidate().unwrap();
            if is_changed {
                change(&graph);
            }
            (store, graph)
        })
        .collect()
}

fn change(graph: &Arc<Graph>) {
    let mut writing = graph.begin();
    let find = |writing: &Transaction, id: &str| writing.find_vertex(&Value::from(id)).unwrap();
    // A tag gets another title, another one a second, one goes, and one is new.
    let tag = find(&writing, "t3");
    set(&mut writing, tag, "title", Value::from("tag7"));
    let tag = find(&writing, "t4");
    writing.set_vertex_property(tag, "title", Value::from("tag7"), Cardinality::List, None).unwrap();
    let tag = find(&writing, "t5");
    writing.remove_vertex(tag).unwrap();
    let tag = writing.add_vertex("tag", Some(Value::from("late"))).unwrap();
    set(&mut writing, tag, "title", Value::from("tag7"));
    for n in (0..POSTS).step_by(911) {
        let post = find(&writing, &format!("m{n}"));
        set(&mut writing, post, "number", Value::Long(100_000 + n as i64));
        set(&mut writing, post, "day", Value::DateTime(OffsetDateTime { offset_seconds: 3600, ..day(9_000) }));
        writing.add_edge("has", post, tag, None).unwrap();
    }
    // A post that two wrote, one of them twice.
    let (first, second) = (find(&writing, "p1"), find(&writing, "p2"));
    for n in [6, 7, 8] {
        let post = find(&writing, &format!("m{n}"));
        for author in [first, second, first] {
            writing.add_edge("wrote", author, post, None).unwrap();
        }
    }
    for n in (5..POSTS).step_by(1_013) {
        let post = find(&writing, &format!("m{n}"));
        writing.remove_vertex(post).unwrap();
    }
    writing.commit().unwrap();
}

/// Tests of a post that have another way: from their end.
const TESTS: [&str; 13] = [
    "out('has').has('title', 'tag7')",
    "out('has').has('title', 'tag5')",
    "out('has').has('title', 'none')",
    "out('has').hasLabel('tag').has('title', 'tag7').out('is').has('title', 'kind2')",
    "out('has').out('is').has('title', 'kind1')",
    "hasLabel('post').out('has').has('title', 'tag7')",
    "out('nothing').has('title', 'tag7')",
    "out('has').out('nothing').has('title', 'kind1')",
    "in('wrote').out('knows').out('wrote').has('title', 'tag7')",
    "out('has').where(within('some'))",
    "out('has').until(has('title', 'kind3')).repeat(out('is'))",
    "out('has').where(out('is').has('title', 'kind4'))",
    "out('has').has('title', within('tag7', 'tag9'))",
];

/// Entries of maps, of which those that are ordered by decide whether a row is wanted.
const MAPS: [&str; 8] = [
    "project('n', 'id').by('number').by(id).order().by('n', desc).by('id').limit(9)",
    "project('id', 'n').by(id).by('number').order().by('n').by('id').limit(20)",
    "project('id', 'n').by(id).by('mixed').order().by('n', desc).by('id').limit(6)",
    "project('id', 'n').by(id).by('rare').order().by('n').by('id').range(2, 30)",
    "project('id', 'n', 'tags').by(id).by(out('has').count()).by(out('has').values('title').order().fold()).\
     order().by('n', desc).by('id').limit(4)",
    "project('day', 'id').by('day').by(id).where(select('day')).order().by('day').by('id').limit(5)",
    "project('n', 'id').by(values('number').is(lt(900))).by(id).order().by('n', desc).by('id').limit(7)",
    "project('n', 'id').by('number').by(id).order().by('id').by('n').limit(7)",
];

/// What is gathered, of which each row stands for one or many.
const GATHERED: [&str; 10] = [
    "aggregate('x').cap('x')",
    "aggregate('x').count()",
    "aggregate('x').cap('x').unfold().groupCount()",
    "aggregate('x').by(label).cap('x').unfold().groupCount()",
    "as('a').out('has').aggregate('x').select('a').cap('x').unfold().groupCount().by('title')",
    "aggregate('x').out('has').aggregate('x').cap('x').count(local)",
    "local(aggregate('x').out('has').limit(1)).aggregate('y').cap('x', 'y').select('x').count(local)",
    "aggregate('x').aggregate('x').cap('x').unfold().count()",
    "values('rare').aggregate('x').cap('x').order(local).limit(local, 3)",
    "out('has').dedup().aggregate('x').in('has').where(within('x')).count()",
];

/// Collections of which the first members in order are wanted.
const MEMBERS: [&str; 9] = [
    "values('number').fold().order(local).limit(local, 5)",
    "values('number').fold().order(local).by(desc).range(local, 2, 9)",
    "values('mixed').fold().order(local).limit(local, 1)",
    "groupCount().by('rare').order(local).by(values, desc).by(keys).limit(local, 4)",
    "groupCount().by('number').order(local).by(values).by(keys, desc).limit(local, 300)",
    "groupCount().by('rare').order(local).by(keys).limit(local, 40).order(local).by(values).by(keys).tail(local, 2)",
    "values('rare').fold().order(local).as('all').limit(local, 2).select('all').count(local)",
    "values('rare').fold().order(local).limit(local, 2).path().unfold().count(local).sum()",
    "fold().order(local).by('rare').limit(local, 3).unfold().values('rare')",
];

/// Orders of which the first rows are wanted, or the last.
const ORDERS: [&str; 18] = [
    "order().by('number').by(id).tail(5)",
    "order().by('number', desc).by(id).tail(20)",
    "order().by('day').by('number', desc).by(id).tail(3)",
    "order().by('mixed').by(id).tail(30)",
    "order().by('mixed', desc).tail(8)",
    "order().by('rare').tail(6)",
    "order().by('number').tail(200)",
    "where(out('has').has('title', 'tag9')).order().by('number', desc).tail()",
    "order().by('number').by(id).limit(5)",
    "order().by('number', desc).by(id).limit(20)",
    "order().by('day', desc).by(id).limit(12)",
    "order().by('day').by('number', desc).by(id).range(3, 9)",
    "order().by('mixed', desc).by(id).limit(8)",
    "order().by('mixed').by(id).limit(30)",
    "order().by('rare').by(id).limit(6)",
    "order().by('number').limit(7)",
    "order().by('none').limit(3)",
    "where(out('has').has('title', 'tag9')).order().by('number', desc).by(id).limit(4)",
];

fn texts() -> Vec<String> {
    let mut texts = Vec::new();
    for test in TESTS {
        let some = "g.V('t1', 't2', 't7').aggregate('some')";
        texts.push(format!("{some}.V().hasLabel('post', 'comment').where(__.{test}).id()"));
        texts.push(format!("{some}.V().hasLabel('comment').not(__.{test}).count()"));
        texts.push(format!("{some}.V().hasLabel('person').out('wrote').has('number', lt(2500)).where(__.{test}).id()"));
        texts.push(format!("{some}.V().hasLabel('person').out('wrote').not(__.{test}).where(__.{test}).id()"));
        // The hop tests what it leads to, and gives labels to what passes.
        texts.push(format!(
            "{some}.V().hasLabel('person').as('a').outE('wrote').as('w').inV().as('m').where(__.{test}).select('a', 'm').by(id)"
        ));
        texts.push(format!(
            "{some}.V('p1', 'p2').out('wrote').as('m').not(__.{test}).where(__.out('has')).path().by(id)"
        ));
        texts.push(format!(
            "{some}.V('p1', 'p2', 'hub').out('wrote').has('mixed').where(__.{test}).as('m').limit(7).select('m').id()"
        ));
        texts.push(format!(
            "{some}.V('p1').repeat(both('knows').where(__.out('wrote').{test})).emit().times(2).id().order()"
        ));
        // Long enough that the hop is turned round, in the midst of the neighbours of one vertex.
        texts.push(format!("{some}.V().hasLabel('person', 'hub').out('wrote').where(__.{test}).id().order()"));
        texts.push(format!("{some}.V('p1', 'hub', 'p2', 'hub').out('wrote').where(__.{test}).count()"));
        // Long enough that the hop is turned round.
        let far = "V('p1', 'p2', 'p3', 'p5').both('knows').both('knows').out('wrote')";
        texts.push(format!("{some}.{far}.where(__.{test}).id().order()"));
        texts.push(format!(
            "{some}.{far}.has('number', gt(1000)).where(__.{test}).values('number').fold().order(local)"
        ));
        texts.push(format!(
            "{some}.V().hasLabel('person').project('id', 'yes', 'no').by(id).\
             by(out('wrote').where(__.{test}).count()).by(out('wrote').not(__.{test}).values('number').sum())"
        ));
        texts.push(format!(
            "{some}.V().hasLabel('person').local(out('wrote').has('number', gt(3900)).aggregate('some').out('has').limit(1)).\
             in('has').where(__.{test}).count()"
        ));
    }
    for order in ORDERS {
        texts.push(format!("g.V().hasLabel('person').out('wrote').{order}.id()"));
        texts.push(format!("g.V().hasLabel('person').out('wrote').has('number', lt(3000)).{order}.id()"));
        texts.push(format!("g.V('t7').in('has').hasLabel('post').{order}.values('number')"));
        texts.push(format!("g.V().hasLabel('post').{order}.id()"));
        texts.push(format!("g.V().{order}.id()"));
        texts.push(format!("g.V().has('number', gt(1000)).{order}.id()"));
        texts.push(format!("g.V().hasLabel('person').map(out('wrote').{order}.id().fold())"));
        texts.push(format!("g.V().hasLabel('person').where(out('wrote').{order}).out('wrote').{order}.id()"));
    }
    for map in MAPS {
        texts.push(format!("g.V().hasLabel('post', 'comment').{map}"));
        texts.push(format!("g.V().hasLabel('person').out('wrote').dedup().{map}"));
        texts.push(format!("g.V('p1', 'p2', 'p3').local(out('wrote').{map}.limit(2))"));
    }
    for gathered in GATHERED {
        for source in ["g", "g.withBulk(false)", "g.withSack(1)", "g.withSack(1, sum)"] {
            // Few rows, many rows, and many of which most are equal.
            texts.push(format!("{source}.V('p1').out('knows').out('wrote').{gathered}"));
            texts.push(format!("{source}.V('hub').out('wrote').{gathered}"));
            texts.push(format!("{source}.V('p1').out('wrote').out('has').in('has').{gathered}"));
        }
        texts.push(format!("g.withSideEffect('x', []).V('p1').out('knows').out('wrote').{gathered}"));
    }
    for members in MEMBERS {
        texts.push(format!("g.V().hasLabel('post').{members}"));
        texts.push(format!("g.V('p1', 'p3').map(out('wrote').{members})"));
    }
    texts.extend(
        [
            "g.V('p1').out('knows').out('knows').dedup().id()",
            // Ways are forgotten, or not.
            "g.V('p1').as('a').out('wrote').as('m').select('m').order().by('number').by(id).limit(5).id()",
            "g.V().hasLabel('person').as('a').out('wrote').where(neq('a')).out('has').groupCount().by('title')",
            "g.V('p1', 'p2').out('knows').simplePath().out('wrote').out('has').dedup().as('t').in('has').count()",
            "g.V('p1', 'p2').as('a').out('knows').as('b').select('a', 'b').select(values).unfold().out('wrote').tail(7).id()",
            "g.V('p1', 'p2').as('a').out('knows').select('a').out('knows').barrier().limit(3).id()",
            "g.V('p1', 'p2').as('a').out('knows').select('a').out('knows').aggregate('x').limit(3).id()",
            "g.V('p1').as('a').out('knows').select('a').out('knows').repeat(both('knows')).times(2).limit(9).id()",
            "g.V('p1').as('a').out('knows').where(neq('a')).order().by(id).as('b').out('knows').order().by(id).limit(4).id()",
            "g.V('p1').as('a').out('knows').math('a + 1').by(out('wrote').count()).order().tail(3)",
            // Labels that are counted in the hop keep the way of the row that they come of.
            "g.V('p3', 'hub', 'p1').as('a').out('wrote').label().dedup().as('b').select('a', 'b').by(id).by()",
            "g.with('ficus.spread', false).V('p1', 't3', 'm1').as('a').outE().label().dedup().select('a').id()",
            "g.with('ficus.spread', false).V('t3', 'm1', 'p1').as('a').out().label().dedup().as('b').select('a', 'b').by(id).by()",
            "g.V('hub', 'p1', 't3').as('a').both().label().groupCount().as('x').select('x')",
            // A test that fails says so at its own step, whoever makes it.
            "g.V('p1', 'p2').out('wrote').where(__.values('mixed').math('_ * 2').is(gt(3))).id()",
            "g.V('p1', 'p2').out('wrote').as('m').not(__.out('has').values('title').asNumber().is(3)).select('m').count()",
            "g.V('hub').out('wrote').where(__.values('number').math('1 / (_ - 7)').is(gt(0))).limit(2).id()",
            "g.withSack(0).V('p1').repeat(both('knows').dedup().sack(sum).by(constant(2))).emit().times(3).sack().sum()",
            "g.V().hasLabel('post').group().by('rare').by(constant('x')).count(local)",
            "g.V().hasLabel('post').project('n', 'x').by('number').by(out('has').aggregate('x').count()).order().by('n').limit(3).\
             cap('x').unfold().count()",
            "g.V().hasLabel('person').project('a', 'b').by(constant(1)).by(constant('x').as('y')).dedup()",
            "g.V().hasLabel('person').out('wrote').out('has').dedup().id()",
            "g.V().hasLabel('person').out('wrote').out('has').has('title', neq('tag1')).dedup().count()",
            "g.V().hasLabel('person').local(out('wrote').out('has').dedup().count())",
            "g.V('p1').as('a').out('knows').out('knows').where(neq('a')).dedup().id()",
            "g.V('p1').aggregate('x').repeat(both('knows').where(without('x')).dedup().aggregate('x')).emit().times(3).id()",
            "g.withSack(0).V('p1').aggregate('x').repeat(both('knows').where(without('x')).dedup().aggregate('x').\
             sack(sum).by(constant(1))).emit().times(4).order().by(sack()).by(id).project('id', 'far').by(id).by(sack())",
            "g.V('p2', 'p3').repeat(out('knows').dedup()).emit().times(4).path().count(local)",
            "g.V('p2', 'p3').repeat(both('knows')).times(4).dedup().id()",
            "g.V().hasLabel('person').where(repeat(both('knows')).emit().times(3).has('number', 1)).id()",
            "g.V().hasLabel('tag').in('has').in('wrote').dedup().by(out('knows').count()).count()",
            "g.V().hasLabel('tag').union(__.in('has'), out('is')).dedup().count()",
            "g.V().hasLabel('person').out('wrote').hasLabel('post').count()",
            "g.V().hasLabel('person').out('wrote').hasLabel('post', 'tag', 'none').has('number', lt(2000)).count()",
            "g.V().hasLabel('person').out('wrote').has('mixed', gt(10)).count()",
            "g.V().hasLabel('person').out('wrote').not(hasLabel('post')).hasLabel(neq('tag')).has('day', lt(datetime('2021-03-01'))).count()",
            "g.V().hasLabel('person').both('knows').out('wrote').hasLabel('post').count()",
            "g.V().hasLabel('person').local(out('wrote').hasLabel('post').count())",
            "g.V('p1').as('a').out('knows').out('wrote').hasLabel('post').where(neq('a')).count()",
            "g.V('p1').repeat(out('knows')).times(3).out('wrote').has('number', gte(1500)).count()",
            "g.V().hasLabel('person').out('wrote').out('has').groupCount().by('title')",
            "g.V().hasLabel('person').out('wrote').out('has').groupCount().by(label)",
            "g.V().hasLabel('person').both('knows').out('wrote').groupCount().by('mixed')",
            "g.V().hasLabel('person').out('wrote').groupCount().by('number').order(local).by(values, desc).by(keys).limit(local, 5)",
            "g.V().hasLabel('person').union(out('knows'), out('wrote'), out('knows')).groupCount().by('mixed')",
            "g.V().hasLabel('person').local(out('wrote').out('has').groupCount().by('title'))",
            "g.V('p1', 'p2').out('knows').as('x').where(neq('x')).id()",
            "g.V('p1', 'p2').out('knows').as('x').has('number', lt(3)).where(eq('x')).id()",
            "g.V('p1', 'p2').as('x').out('knows').as('x').where(eq('x')).count()",
            "g.V('p1', 'p2').as('x').outE('knows').inV().as('x').where(eq('x')).count()",
            "g.V('p1', 'p1', 'p2').both('knows').both('knows').optional(both('knows').dedup()).count()",
            "g.V('p1', 'p2').out('wrote').group().by(label).by(out('has').groupCount().by('title'))",
            "g.V('p1').sideEffect(out('knows').aggregate('x')).out('knows').out('knows').where(within('x')).dedup().id()",
        ]
        .map(String::from),
    );
    texts
}

#[test]
fn rows_are_the_same() {
    for (_store, graph) in graphs() {
        assert!(compare(&Runner::new(graph), texts()) > 110);
    }
}

/// Leaves of a vertex that has more edges than are looked at in one go on the way back from it.
fn star() -> (Arc<Store>, Arc<Graph>) {
    const LEAVES: usize = 50_000;
    let store = Store::in_memory();
    let graph = store.create_graph("g").unwrap();
    let mut writing = graph.begin();
    let place = |writing: &mut Transaction, title: &str| {
        let place = writing.add_vertex("place", Some(Value::from(title))).unwrap();
        set(writing, place, "title", Value::from(title));
        place
    };
    let (large, small, land) =
        (place(&mut writing, "large"), place(&mut writing, "small"), place(&mut writing, "land"));
    writing.add_edge("in", large, land, None).unwrap();
    for n in 0..LEAVES {
        let leaf = writing.add_vertex("leaf", Some(Value::Long(n as i64))).unwrap();
        set(&mut writing, leaf, "number", Value::Int((scrambled(n) % 1_000) as i32));
        writing.add_edge("at", leaf, if scrambled(n).is_multiple_of(9) { small } else { large }, None).unwrap();
    }
    writing.commit().unwrap();
    store.consolidate().unwrap();
    (store, graph)
}

#[test]
fn a_way_back_goes_on_where_it_stood() {
    let (_store, graph) = star();
    let mut texts = Vec::new();
    for test in [
        "out('at').has('title', 'large')",
        "out('at').has('title', 'small')",
        "out('at').out('in').has('title', 'land')",
        "has('number', lt(700)).out('at').has('title', 'large')",
    ] {
        texts.push(format!("g.V().hasLabel('leaf').where(__.{test}).count()"));
        texts.push(format!("g.V().hasLabel('leaf').not(__.{test}).values('number').sum()"));
        texts.push(format!("g.V().hasLabel('leaf').limit(45000).where(__.{test}).values('number').max()"));
        texts.push(format!("g.V().hasLabel('leaf').union(where(__.{test}), not(__.{test})).count()"));
    }
    assert_eq!(compare(&Runner::new(graph), texts), 16);
}

/// Pages beyond what is kept in one run, of keys with ties and with few values, and of rows that come with a bulk.
#[test]
fn far_pages_are_the_same() {
    let (_store, graph) = star();
    let mut texts = Vec::new();
    for keys in
        ["by('number')", "by('number', desc)", "by('number', desc).by(id)", "by(__.out('at').id()).by('number')"]
    {
        for cut in [
            "range(3000, 3010)",
            "range(12000, 12005)",
            "skip(30000).limit(5)",
            "limit(2049).tail(3)",
            "range(49995, -1)",
        ] {
            texts.push(format!("g.V().hasLabel('leaf').order().{keys}.{cut}.id()"));
        }
    }
    texts
        .push("g.V().hasLabel('leaf').has('number', lt(600)).order().by('number', desc).range(9000, 9009).id()".into());
    texts.push("g.V('large').in('at').order().by('number').by(id, desc).range(5000, 5009).id()".into());
    texts.push("g.V().hasLabel('leaf').out('at').order().by('title').range(7000, 7003).id()".into());
    assert_eq!(compare(&Runner::new(graph), texts), 23);
}

/// What is cut off is not made; of values some elements have none, and some several.
#[test]
fn limits_ahead_are_the_same() {
    let (_store, graph) = star();
    let mut texts = Vec::new();
    for cut in ["limit(3)", "range(2, 5)", "skip(49995)", "tail(4)", "limit(7).tail(2)"] {
        for made in ["values('title')", "valueMap('number')", "project('n', 'at').by('number').by(out('at').id())"] {
            texts.push(format!("g.V().hasLabel('leaf').order().by('number', desc).by(id).{made}.{cut}"));
        }
        texts.push(format!(
            "g.V('large').as('c').in('at').as('l').order().by('number').by(id).select('c', 'l').by(id).{cut}"
        ));
        texts.push(format!("g.V('large').in('at').order().by(id).path().by(id).{cut}"));
        texts.push(format!("g.V().hasLabel('leaf').order().by(id).values('missing').{cut}"));
    }
    assert_eq!(compare(&Runner::new(graph), texts), 18);
    // From none to three values.
    let store = Store::in_memory();
    let graph = store.create_graph("g").unwrap();
    let mut writing = graph.begin();
    for n in 0..40_i64 {
        let vertex = writing.add_vertex("v", Some(Value::Long(n))).unwrap();
        for value in 0..n % 4 {
            let value = Value::Long(n * 10 + value);
            writing.set_vertex_property(vertex, "x", value, Cardinality::List, None).unwrap();
        }
    }
    writing.commit().unwrap();
    let mut texts = Vec::new();
    for cut in ["limit(2)", "range(4, 9)", "limit(1000)", "tail(3)", "limit(0)"] {
        texts.push(format!("g.V().order().by(id).values('x').{cut}"));
        texts.push(format!("g.V().order().by(id, desc).properties('x').{cut}.value()"));
        texts.push(format!("g.V().order().by(id, desc).valueMap().by(__.unfold()).{cut}"));
    }
    assert_eq!(compare(&Runner::new(graph), texts), 12);
}

/// Maps that are made behind their list: of vertices that come often, of edges and properties, of nothing, and of what is no element.
#[test]
fn maps_in_lists_are_the_same() {
    let (_store, graph) = star();
    let mut texts = Vec::new();
    for rows in [
        "V().hasLabel('leaf').has('number', lt(40)).out('at')",
        "V().hasLabel('leaf').has('number', 7).outE('at')",
        "V().hasLabel('leaf').has('number', 7).union(identity(), outE('at'), out('at'))",
        "V().hasLabel('leaf').has('number', 7).properties()",
        "V().hasLabel('place').order().by('title').limit(2).local(__.in('at').limit(3))",
        "V('large').in('at').limit(5000).out('at').barrier()",
        "V().hasLabel('nothing')",
        "V().hasLabel('place').values('title')",
    ] {
        for maps in ["elementMap()", "valueMap()", "valueMap('number', 'title').by(unfold())", "propertyMap()"] {
            texts.push(format!("g.{rows}.{maps}.fold()"));
            texts.push(format!("g.{rows}.{maps}.fold().as('l').count(local).select('l').limit(local, 2)"));
        }
    }
    texts.push("g.V().hasLabel('place').map(__.in('at').limit(4).elementMap().fold())".into());
    texts.push("g.V().hasLabel('place').group().by('title').by(__.in('at').limit(4).elementMap().fold())".into());
    assert_eq!(compare(&Runner::new(graph), texts), 58);
}

#[test]
fn short_loops_back_to_a_label_are_the_same() {
    let mut texts = Vec::new();
    for hop in ["both('knows')", "out('knows')", "both('knows').hasLabel('person')", "in().in('knows')"] {
        for times in 1..=3 {
            let loop_of = format!("repeat(__.{hop}).times({times})");
            texts.push(format!("g.V().hasLabel('person').as('a').{loop_of}.where(eq('a')).count()"));
            texts.push(format!("g.V().hasLabel('person').as('a').{loop_of}.where(eq('a')).groupCount().by(id)"));
            texts.push(format!(
                "g.V().hasLabel('person').as('a').{loop_of}.as('b').where('a', eq('b')).select('a', 'b').by(id)"
            ));
            texts.push(format!("g.V('p3').as('a').out('knows').{loop_of}.where(eq('a')).id()"));
        }
    }
    for (_store, graph) in graphs() {
        assert!(compare(&Runner::new(graph), texts.clone()) > 40);
    }
}

/// Persons with many posts each, of which few have a tag.
fn much_written() -> (Arc<Store>, Arc<Graph>) {
    let store = Store::in_memory();
    let graph = store.create_graph("g").unwrap();
    let mut writing = graph.begin();
    let tag = writing.add_vertex("tag", Some(Value::from("t"))).unwrap();
    set(&mut writing, tag, "title", Value::from("rare"));
    for n in 0..200 {
        let person = writing.add_vertex("person", Some(Value::Long(n))).unwrap();
        for m in 0..300 {
            let post = writing.add_vertex("post", Some(Value::Long(1_000 * (n + 1) + m))).unwrap();
            writing.add_edge("wrote", person, post, None).unwrap();
            if scrambled((300 * n + m) as usize).is_multiple_of(150) {
                writing.add_edge("has", post, tag, None).unwrap();
            }
        }
    }
    writing.commit().unwrap();
    store.consolidate().unwrap();
    (store, graph)
}

struct Ends(std::sync::mpsc::Sender<(Vec<String>, u64)>, Vec<String>);

impl RowSink for Ends {
    fn rows(&mut self, rows: &mut VecDeque<Row>, _held: &mut Held, _waker: &RowWaker) -> Delivery {
        self.1.extend(rows.drain(..).map(|row| format!("{:?} x {}", row.0, row.1)));
        Delivery::Accepted
    }

    fn end(self: Box<Self>, end: QueryEnd) {
        end.result.unwrap();
        self.0.send((self.1, end.work_units)).unwrap();
    }
}

/// What a run has paid for finding out, the next one of its plan need not.
#[test]
fn a_plan_that_was_run_sets_out_from_the_end_at_once() {
    let (_of_star, star) = star();
    let (_of_persons, persons) = much_written();
    let engine = Engine::start(EngineOptions::with_executors(1)).unwrap();
    for (graph, text) in [
        (&star, "g.V().hasLabel('leaf').where(__.out('at').has('title', 'small')).values('number').sum()"),
        (&star, "g.V().hasLabel('leaf').not(__.out('at').out('in').has('title', 'land')).count()"),
        (&persons, "g.V().hasLabel('person').out('wrote').where(__.out('has').has('title', 'rare')).id()"),
        (&persons, "g.V().hasLabel('person').out('wrote').where(__.out('has').has('title', 'rare')).count()"),
    ] {
        let plan = lower(&parse_traversal(text, &ParseOptions::default()).unwrap()).unwrap();
        let prepared = Prepared::new(plan).unwrap();
        let runs: Vec<(Vec<String>, u64)> = (0..40)
            .map(|_| {
                let (sender, receiver) = std::sync::mpsc::channel();
                let sink = Box::new(Ends(sender, Vec::new()));
                engine.submit(&prepared, graph.begin_reading(), &RunOptions::default(), sink);
                receiver.recv().unwrap()
            })
            .collect();
        let units: Vec<u64> = runs.iter().map(|run| run.1).collect();
        assert!(runs.iter().all(|run| run.0 == runs[0].0), "{text}");
        assert!(!runs[0].0.is_empty());
        assert!(units[1] < units[0] - 1_000, "{text}: {units:?}");
        // All others are like the second, but one, which finds out anew.
        assert_eq!(units.iter().filter(|own| **own > units[1] + 1_000).count(), 2, "{text}: {units:?}");
    }
}
