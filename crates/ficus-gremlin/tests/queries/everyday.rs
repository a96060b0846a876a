//! What one asks a graph that one does not know: distinct values, keys, neighbours, and counts by what is a few hops away. The same rows with rules and
//! without, on graphs that are large enough for many to be taken together, with columns, changes to them, and writes of the same transaction.

use std::sync::Arc;

use ficus_gremlin::lower::lower;
use ficus_gremlin::text::{ParseOptions, parse_traversal};
use ficus_model::{Cardinality, OffsetDateTime, Value, VertexId};
use ficus_query::engine::{Engine, EngineOptions, Prepared, RunOptions};
use ficus_query::rules::Rule;
use ficus_storage::{Graph, Store, Transaction};

use crate::in_place::compare;
use crate::runner::Runner;

const PERSONS: usize = 40;
const POSTS: usize = 1_000;

fn set(writing: &mut Transaction, vertex: VertexId, key: &str, value: impl Into<Value>, cardinality: Cardinality) {
    writing.set_vertex_property(vertex, key, value.into(), cardinality, None).unwrap();
}

/// Posts of persons of cities; some are without a value, have several, or several ways to one; one person wrote more than a walk looks at together.
fn fill(writing: &mut Transaction) {
    use Cardinality::{List, Single};
    let mut add = |label: &str, id: String| writing.add_vertex(label, Some(Value::from(id.as_str()))).unwrap();
    let cities: Vec<VertexId> = (0..6).map(|n| add("city", format!("c{n}"))).collect();
    let persons: Vec<VertexId> = (0..PERSONS).map(|n| add("person", format!("p{n}"))).collect();
    let posts: Vec<VertexId> = (0..POSTS).map(|n| add(["post", "comment"][n % 2], format!("m{n}"))).collect();
    for (n, city) in cities.iter().enumerate().skip(1) {
        set(writing, *city, "name", ["Rome", "Oslo", "Rome", "Bonn"][n % 4], Single);
    }
    for (n, person) in persons.iter().enumerate() {
        if n % 5 > 0 {
            set(writing, *person, "name", format!("name {}", n % 7).as_str(), Single);
        }
        if n % 9 == 0 {
            set(writing, *person, "name", "another", List);
        }
        // None, one, the same one twice, or two, the first of which may have no name.
        for place in 0..n % 3 {
            writing.add_edge("in", *person, cities[n % 4 * place % 6], None).unwrap();
        }
        writing.add_edge("knows", *person, *person, None).unwrap();
        writing.add_edge("knows", *person, persons[(n * 7 + 3) % PERSONS], None).unwrap();
    }
    for (n, post) in posts.iter().enumerate() {
        set(writing, *post, "kind", ["long", "short", "odd"][n * n % 3], Single);
        match n % 4 {
            0 => set(writing, *post, "size", Value::Int((n % 50) as i32), Single),
            1 => set(writing, *post, "size", Value::Long((n % 50) as i64), Single),
            2 => set(writing, *post, "size", Value::Double(n as f64 / 4.0), Single),
            _ => {}
        }
        let seconds = 1_600_000_000 + (n % 90) as i64;
        let day = OffsetDateTime { epoch_seconds: seconds, nanos: 0, offset_seconds: 0 };
        set(writing, *post, "day", Value::DateTime(day), Single);
        writing.add_edge("by", *post, persons[n * n % PERSONS], None).unwrap();
        writing.add_edge("wrote", persons[n % 2], *post, None).unwrap();
        for place in 0..n % 13 {
            writing.add_edge("likes", *post, persons[(n + place) % PERSONS], None).unwrap();
        }
        if n % 11 > 0 {
            writing.add_edge("answers", *post, posts[n / 3], None).unwrap();
        }
    }
}

/// New values and vertices among those of columns, and some gone.
fn change(writing: &mut Transaction) {
    let find = |writing: &Transaction, id: &str| writing.find_vertex(&Value::from(id)).unwrap();
    let late = writing.add_vertex("person", Some(Value::from("late"))).unwrap();
    set(writing, late, "name", "late", Cardinality::Single);
    for n in (0..POSTS).step_by(101) {
        let post = find(writing, &format!("m{n}"));
        set(writing, post, "kind", "new", Cardinality::Single);
        set(writing, post, "kind", "long", Cardinality::List);
        set(writing, post, "size", "none", Cardinality::Single);
        set(writing, post, "only", n as i32, Cardinality::Single);
        writing.add_edge("by", post, late, None).unwrap();
        writing.add_edge("knows", late, post, None).unwrap();
    }
    for id in ["p3", "m7", "m600", "c5"] {
        let vertex = find(writing, id);
        writing.remove_vertex(vertex).unwrap();
    }
}

/// As it was written, consolidated, and changed after that.
fn graphs() -> Vec<(Arc<Store>, Arc<Graph>)> {
    (0..3)
        .map(|kind| {
            let store = Store::in_memory();
            let graph = store.create_graph("g").unwrap();
            let mut writing = graph.begin();
            fill(&mut writing);
            writing.commit().unwrap();
            if kind > 0 {
                store.consolidate().unwrap();
            }
            if kind > 1 {
                let mut writing = graph.begin();
                change(&mut writing);
                writing.commit().unwrap();
            }
            (store, graph)
        })
        .collect()
}

/// Walks that `by()` makes.
const WALKS: [&str; 14] = [
    "out('by')",
    "out('by').id()",
    "out('by').label()",
    "out('by').values('name')",
    "out('likes').values('name')",
    "out('likes').has('name', 'name 4').values('name')",
    "out('answers').out('by').values('name')",
    "out('answers').out('answers').out('by').out('in').values('name')",
    "out('by').out('in').values('name')",
    "out('by').hasLabel('person').out('in').has('name', neq('Oslo')).values('name')",
    "in('answers').values('size')",
    "in('wrote').out('wrote').values('kind')",
    "both('by', 'answers').label()",
    "out('nothing').values('name')",
];

fn texts() -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for walk in WALKS {
        for start in ["V()", "V().hasLabel('post')", "V().hasLabel('person').both()", "V('p0', 'p1').out('wrote')"] {
            texts.push(format!("g.{start}.groupCount().by(__.{walk})"));
            texts.push(format!("g.{start}.group().by(__.{walk}).by(__.count())"));
            texts.push(format!("g.{start}.dedup().by(__.{walk}).id()"));
        }
        texts.push(format!("g.V().hasLabel('person').local(__.out('knows').groupCount().by(__.{walk}))"));
        texts.push(format!("g.V('p0').repeat(__.both().dedup().by(__.{walk})).times(3).id()"));
        texts.push(format!("g.V().as('a').out('answers').as('b').dedup().by(__.{walk}).select('b').id()"));
        texts.push(format!("g.withSack(1).V().groupCount().by(__.{walk}).select(keys).unfold().count()"));
        texts.push(format!(
            "g.V().union(__.identity(), __.out('by'), __.values('kind').limit(0)).groupCount().by(__.{walk})"
        ));
    }
    for key in ["kind", "only"] {
        for hop in ["out('by')", "both()", "out('answers').out('by')", "outE().inV()", "both().as('b').where(neq('a'))"]
        {
            texts.push(format!("g.V().as('a').{hop}.dedup().by('{key}').id()"));
            texts.push(format!("g.V().as('a').{hop}.dedup().by('{key}').path().by(T.id)"));
            texts.push(format!("g.V().as('a').{hop}.as('c').dedup().by('{key}').select('a', 'c').by(T.id)"));
            texts.push(format!("g.V().as('a').{hop}.dedup().by(__.both().values('{key}').count()).count()"));
        }
        texts.push(format!("g.V('p0').repeat(__.both().dedup().by('{key}')).times(3).id()"));
        texts.push(format!("g.V().local(__.both().dedup().by('{key}').id().fold())"));
    }
    for key in ["kind", "size", "day", "name", "only", "none"] {
        for start in
            ["V()", "V().hasLabel('comment')", "V().hasLabel('post').has('kind', 'long')", "V('p1').V()", "E()"]
        {
            for end in ["dedup()", "dedup().count()", "groupCount()", "dedup().as('x').select('x')", "as('x').dedup()"]
            {
                texts.push(format!("g.{start}.values('{key}').{end}"));
            }
        }
        texts.push(format!("g.V().values('{key}').dedup().path().count()"));
        texts.push(format!("g.withSack(2).V().values('{key}').dedup().sack().sum()"));
        texts.push(format!(
            "g.V().hasLabel('person').local(__.V().hasLabel('post').values('{key}').dedup().limit(2).count())"
        ));
    }
    for start in
        ["V()", "E()", "V().as('a').both().as('b')", "V('p0', 'p1', 'p0')", "V().outE()", "V().both().limit(7)"]
    {
        // New edges have other ids each time.
        for end in ["id().dedup().count()", "dedup().by(T.id).label()", "dedup().by(__.id()).path().by(T.label)"] {
            texts.push(format!("g.{start}.{end}"));
        }
    }
    texts.push("g.V().both().limit(7).id().dedup()".into());
    for start in ["V()", "E()", "V().hasLabel('person')", "V('p0').out('wrote')", "V().as('a').out('by').as('b')"] {
        for end in [
            "properties().key()",
            "properties().key().dedup()",
            "properties().key().groupCount()",
            "properties().key().as('k').select('k').dedup()",
            "properties().count()",
            "properties().key().count()",
            "values().count()",
            "properties('name', 'kind').key().groupCount()",
            "properties().value().count()",
            "properties().key().path().count()",
        ] {
            texts.push(format!("g.{start}.{end}"));
        }
    }
    for hop in ["out()", "both()", "both().both()", "both('knows', 'answers')", "outE().inV()", "out('by').has('name')"]
    {
        for start in ["V()", "V().hasLabel('post')", "V('p0', 'p1', 'p0')", "V().as('a')", "withSack(1).V()"] {
            for end in ["dedup().id()", "dedup().count()", "as('b').dedup().as('c').select('b', 'c').count()"] {
                texts.push(format!("g.{start}.{hop}.{end}"));
            }
        }
        texts.push(format!("g.V('p0').repeat(__.{hop}.dedup()).times(2).id()"));
        texts.push(format!("g.V().{hop}.dedup().groupCount().by(T.label)"));
        for start in ["V()", "V().hasLabel('post')", "V().has('kind', 'long')", "V('p1').V().hasLabel('person')"] {
            texts.push(format!("g.{start}.{hop}.count()"));
        }
    }
    for hop in ["out('by')", "both()", "out('answers').as('x').out('by').has('name')", "inE().outV()", "both().both()"]
    {
        for start in ["V()", "V().as('a')", "V('p0', 'p0').out('wrote')", "withSack(1).V()"] {
            for value in ["values('name')", "values('name', 'kind')", "values()", "id()", "values('size').as('v')"] {
                texts.push(format!("g.{start}.{hop}.{value}.dedup()"));
                texts.push(format!("g.{start}.{hop}.{value}.dedup().path().count(local).sum()"));
            }
        }
        texts.push(format!("g.V().as('a').{hop}.values('name').dedup().select('a').id()"));
        texts.push(format!("g.V().hasLabel('person').local(__.{hop}.values('name').dedup().count())"));
        texts.push(format!("g.V('p0').repeat(__.{hop}.dedup()).times(2).values('name').dedup()"));
    }
    for start in ["V()", "V().hasLabel('person')", "V().has('kind')", "E()", "withSack(1).V('p0').V()"] {
        texts.push(format!("g.{start}.in('by', 'knows', 'by').count()"));
        texts.push(format!("g.{start}.bothE('likes').as('e').count()"));
    }
    for by in [
        "outE().groupCount().by(T.label)",
        "out('likes').dedup().count()",
        "properties().key().dedup().fold()",
        "order().by(T.id).limit(3).id().fold()",
        "limit(0).fold()",
        "values('none').dedup().fold()",
        "values('kind').groupCount().unfold()",
        "barrier().out('by').dedup().id()",
        "aggregate('seen').count()",
    ] {
        for key in ["T.label", "'kind'", "__.out('by').values('name')"] {
            texts.push(format!("g.V().group().by({key}).by(__.{by})"));
            texts.push(format!("g.V().hasLabel('person').local(__.out('wrote').group().by({key}).by(__.{by}))"));
        }
    }
    texts
}

#[test]
fn rows_are_the_same_with_rules_and_without() {
    let texts = texts();
    for (_store, graph) in graphs() {
        let answered = compare(&Runner::new(graph), texts.clone());
        assert!(answered > texts.len() * 3 / 4, "{answered} of {}", texts.len());
    }
}

#[test]
fn what_the_same_transaction_wrote_is_seen() {
    let engine = Engine::start(EngineOptions::with_executors(1)).expect("one thread can be started");
    let (_store, graph) = graphs().swap_remove(1);
    for text in texts().iter().step_by(3) {
        let run = |text: &str| {
            let mut writing = graph.begin();
            change(&mut writing);
            let bytecode = parse_traversal(text, &ParseOptions::default()).expect("a query");
            let prepared = Prepared::new(lower(&bytecode).expect("a plan")).expect("a plan");
            let (rows, transaction) = engine.collect(&prepared, writing, &RunOptions::default());
            drop(transaction);
            let mut rows: Vec<String> = match rows {
                Ok(rows) => rows
                    .iter()
                    .flat_map(|(value, bulk)| std::iter::repeat_n(format!("{value:?}"), *bulk as usize))
                    .collect(),
                Err(error) => vec![error.message.to_string()],
            };
            rows.sort();
            // Entries of maps may come in another order.
            rows.iter().map(|row| sorted(row)).collect::<Vec<String>>()
        };
        let plain = format!("g.with('ficus.rules', false).{}", text.strip_prefix("g.").expect("a query"));
        assert_eq!(run(text), run(&plain), "{text}");
    }
}

/// The characters of a text in order: the same for maps with the same entries.
fn sorted(text: &str) -> String {
    let mut bytes: Vec<char> = text.chars().collect();
    bytes.sort_unstable();
    bytes.into_iter().collect()
}

#[test]
fn rules_are_applied_where_they_are_worth_it() {
    let applied = |text: &str| {
        let bytecode = parse_traversal(text, &ParseOptions::default()).expect("a query");
        Runner::applied(&bytecode)
    };
    for (text, rule, is_applied) in [
        ("g.V().both().dedup().count()", Rule::PackedEnds, true),
        ("g.V().both().as('b').dedup().select('b')", Rule::PackedEnds, true),
        ("g.V().both().dedup().path()", Rule::PackedEnds, false),
        ("g.V().local(__.both().dedup())", Rule::PackedEnds, false),
        ("g.V().groupCount().by(__.out('by').values('name'))", Rule::WalksOfMany, true),
        ("g.V().dedup().by(__.out('by').hasLabel('person').id())", Rule::WalksOfMany, true),
        ("g.V().groupCount('x').by(__.out('by').values('name'))", Rule::WalksOfMany, false),
        ("g.V().groupCount().by(__.out('by').count())", Rule::WalksOfMany, false),
        ("g.V().groupCount().by(__.out('a').out('b').out('c').out('d'))", Rule::WalksOfMany, false),
        ("g.V().dedup('x').by(__.out('by'))", Rule::WalksOfMany, false),
        ("g.addV('x').groupCount().by(__.out('by'))", Rule::WalksOfMany, false),
        ("g.V().id().dedup()", Rule::AlreadyDistinct, true),
        ("g.V().out('by').id().dedup()", Rule::AlreadyDistinct, false),
        ("g.V().out('by').dedup().by(T.id)", Rule::AlreadyDistinct, true),
        ("g.V().as('a').out('by').dedup('a').by(T.id)", Rule::AlreadyDistinct, false),
        ("g.V().out('by').dedup().by('name')", Rule::DistinctInHop, true),
        ("g.V().out('by').as('b').dedup().by(T.label).path()", Rule::DistinctInHop, true),
        ("g.V().out('by').dedup().by(__.out('in').values('name').fold())", Rule::DistinctInHop, true),
        ("g.V().as('a').out('by').dedup().by(__.where(neq('a')).count())", Rule::DistinctInHop, false),
        ("g.V().as('a').out('by').dedup().by(__.out('in').dedup('a').count())", Rule::DistinctInHop, false),
        ("g.withSack(1).V().out('by').dedup().by(__.sack())", Rule::DistinctInHop, false),
        ("g.V().out('by').dedup().by(__.values('name').sample(1))", Rule::DistinctInHop, false),
        ("g.V().repeat(__.out('by').dedup().by(__.loops())).times(2)", Rule::DistinctInHop, false),
        ("g.V().out('by').property('x', 1).dedup().by('name')", Rule::DistinctInHop, false),
        ("g.V().properties().key().dedup()", Rule::KeysOfProperties, true),
        ("g.V().properties().count()", Rule::KeysOfProperties, true),
        ("g.V().properties('a').key()", Rule::KeysOfProperties, false),
        ("g.V().properties().key().path()", Rule::KeysOfProperties, false),
        ("g.V().values('kind').dedup()", Rule::FoldInScan, true),
        ("g.V().values('kind').groupCount()", Rule::FoldInScan, true),
        ("g.V().values('kind').dedup().path()", Rule::FoldInScan, false),
        ("g.V().hasLabel('post').out('by').count()", Rule::FoldInScan, true),
        ("g.V().hasLabel('post').out('by').count()", Rule::CountDegrees, true),
        ("g.V().out('by').values('age').max()", Rule::FoldOfEnds, true),
        ("g.V().out('by').values('name').groupCount()", Rule::FoldOfEnds, true),
        ("g.V().out('by').has('age').values('name').groupCount()", Rule::FoldOfEnds, true),
        ("g.V().out('by').has('age', 3).as('x').values('name').groupCount()", Rule::FoldOfEnds, true),
        ("g.V().outE('by').inV().group().by('name').by(__.values('age').mean())", Rule::FoldOfEnds, true),
        ("g.V().out('by').values('age', 'name').count()", Rule::FoldOfEnds, false),
        ("g.V().local(__.out('by').values('age').sum())", Rule::FoldOfEnds, false),
        ("g.addV('x').out('by').values('age').sum()", Rule::FoldOfEnds, false),
    ] {
        assert_eq!(applied(text).contains(&rule), is_applied, "{rule} of {text}");
    }
}
