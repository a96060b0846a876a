//! The same rows with and without indexes, and which index a plan uses.

use std::sync::Arc;

use ficus_gremlin::lower::lower;
use ficus_gremlin::text::{ParseOptions, parse_traversal};
use ficus_model::{Cardinality, Value};
use ficus_query::engine::{Engine, EngineOptions, Prepared, RunOptions};
use ficus_storage::{Graph, Store};

/// People of ages 0 to 49, some with two nicks or an age of another type, who know each other since a year.
fn graph() -> Arc<Graph> {
    let graph = Store::in_memory().create_graph("g").unwrap();
    let mut writing = graph.begin();
    let mut people = Vec::new();
    for number in 0..200 {
        let label = if number % 4 == 0 { "dog" } else { "person" };
        let vertex = writing.add_vertex(label, None).unwrap();
        let age = match number % 7 {
            0 => Value::Double(f64::from(number % 50) + 0.5),
            1 => Value::Long(i64::from(number % 50)),
            2 => Value::String(format!("{}", number % 50).into()),
            _ => Value::Int(number % 50),
        };
        let name = Value::String(format!("{}{}", ["ann", "ben", "cem"][number as usize % 3], number % 20).into());
        writing.set_vertex_property(vertex, "age", age, Cardinality::Single, None).unwrap();
        writing.set_vertex_property(vertex, "name", name, Cardinality::Single, None).unwrap();
        for nick in 0..number % 3 {
            let nick = Value::Int(nick * 10 + number % 5);
            writing.set_vertex_property(vertex, "nick", nick, Cardinality::List, None).unwrap();
        }
        people.push(vertex);
    }
    for number in 0..200 {
        let edge = writing.add_edge("knows", people[number], people[number * 7 % 200], None).unwrap();
        writing.set_edge_property(edge, "since", Value::Int(1990 + number as i32 % 30)).unwrap();
    }
    writing.commit().unwrap();
    graph
}

/// An engine of one executor.
pub fn engine() -> Engine {
    Engine::start(EngineOptions::with_executors(1)).unwrap()
}

/// A query, ready to run.
pub fn prepare(text: &str) -> Prepared {
    let bytecode = parse_traversal(text, &ParseOptions::default()).unwrap();
    Prepared::new(lower(&bytecode).unwrap()).unwrap()
}

fn rows(engine: &Engine, graph: &Arc<Graph>, text: &str) -> Result<Vec<String>, String> {
    let (outcome, _) = engine.collect(&prepare(text), graph.begin(), &RunOptions::default());
    let mut rows: Vec<String> = outcome
        .map_err(|error| error.to_string())?
        .into_iter()
        .flat_map(|(value, bulk)| std::iter::repeat_n(value.to_string(), bulk as usize))
        .collect();
    rows.sort();
    Ok(rows)
}

fn path(graph: &Arc<Graph>, text: &str) -> String {
    let explanation = prepare(text).explanation_on(&graph.snapshot());
    let mut applied = explanation.intermediate.iter();
    applied.find(|(rule, ..)| &**rule == "AccessPaths").map(|(_, _, text)| text.to_string()).unwrap_or_default()
}

const INDEXES: &str = "g.call('ficus.schema.createIndex', [keys: 'age', kind: 'ordered'])
g.call('ficus.schema.createIndex', [keys: 'age', label: 'person'])
g.call('ficus.schema.createIndex', [keys: 'name', kind: 'ordered'])
g.call('ficus.schema.createIndex', [keys: 'nick', kind: 'ordered'])
g.call('ficus.schema.createIndex', [keys: ['name', 'age'], label: 'person'])
g.call('ficus.schema.createIndex', [keys: 'since', elements: 'edge', kind: 'ordered'])";

const QUERIES: &[(&str, &str)] = &[
    ("g.V().has('age', 7).id()", "vertex.*.age.ordered"),
    ("g.V().hasLabel('person').has('age', 7).id()", "vertex.person.age.hash"),
    ("g.V().has('person', 'age', 7.0).id()", "vertex.person.age.hash"),
    ("g.V().has('age', P.gt(40)).id()", "vertex.*.age.ordered [from 40]"),
    ("g.V().has('age', P.between(10, 12)).id()", "vertex.*.age.ordered [10 to 12]"),
    ("g.V().has('age', P.outside(3, 45)).id()", "vertex.*.age.ordered [2 look-ups]"),
    ("g.V().has('age', P.within(1, 2, '2', 2.5, 1)).id()", "vertex.*.age.ordered"),
    ("g.V().has('age', P.within([])).id()", ""),
    ("g.V().has('age', P.gt('4')).id()", "vertex.*.age.ordered [from 4]"),
    ("g.V().has('name', TextP.startingWith('ben1')).id()", "vertex.*.name.ordered [starting with ben1]"),
    ("g.V().hasLabel('person').has('name', 'ann1').has('age', P.lt(30)).id()", "vertex.person.name.age.ordered"),
    ("g.V().hasLabel('person').has('age', 21).has('name', 'ann1').id()", "vertex.person.name.age.ordered"),
    ("g.V().has('nick', P.gt(0)).has('nick', P.lt(12)).id()", "vertex.*.nick.ordered"),
    ("g.V().has('nick', P.within(0, 1, 10, 11)).id()", "vertex.*.nick.ordered"),
    ("g.V().has('nick', P.neq(1)).id()", ""),
    ("g.E().has('since', P.gte(2015)).id()", "edge.*.since.ordered [from 2015]"),
    ("g.E().hasLabel('knows').has('since', 1991).outV().values('age')", "edge.*.since.ordered [= 1991]"),
    ("g.V().has('age', 7).out().has('age', P.gt(3)).id()", "vertex.*.age.ordered"),
    ("g.V().has('unheard', 1).id()", "nothing"),
    ("g.V().hasLabel('person').has('age', P.lte(3)).order().by('name').limit(3).values('name')", "age"),
    ("g.V().has('name', 'ann0').as('a').V().has('age', P.gt(45)).as('b').select('a', 'b').count()", "name"),
];

#[test]
fn rows_are_the_same_with_and_without_indexes() {
    let (graph, engine) = (graph(), engine());
    let plain: Vec<_> = QUERIES.iter().map(|(text, _)| rows(&engine, &graph, text)).collect();
    for create in INDEXES.lines() {
        assert_eq!(rows(&engine, &graph, create).unwrap().len(), 1, "{create}");
    }
    for ((text, expected), plain) in QUERIES.iter().zip(plain) {
        assert_eq!(rows(&engine, &graph, text), plain, "{text}");
        let path = path(&graph, text);
        assert!(path.contains(expected), "{text}: {path}");
    }
    assert!(QUERIES.iter().any(|(text, _)| rows(&engine, &graph, text).is_ok_and(|rows| rows.len() > 3)));
}

#[test]
fn the_schema_is_seen_and_changed_through_services() {
    let (graph, engine) = (Store::in_memory().create_graph("g").unwrap(), engine());
    let ask = |text: &str| rows(&engine, &graph, text);
    ask("g.call('ficus.schema.createVertexType', [label: 'person', mode: 'strict', primaryKey: 'name', \
         attributes: [name: 'string', age: [type: 'long', default: 18, nullable: false]]])")
    .unwrap();
    ask("g.call('ficus.schema.createEdgeType', [label: 'knows', multiplicity: 'simple', sortKeys: 'since desc'])")
        .unwrap();
    let listed = ask("g.call('ficus.schema.list').select('what')").unwrap();
    assert_eq!(listed, ["edge type", "index", "vertex type"]);
    let described = ask("g.call('ficus.schema.describe', [label: 'knows', elements: 'edge'])").unwrap().remove(0);
    assert!(described.contains("multiplicity=simple") && described.contains("since desc"), "{described}");
    assert_eq!(ask("g.call('--list')").unwrap().len(), 2);
    assert_eq!(ask("g.call('--list').with('all', true)").unwrap().len(), 21);
    let refused = [
        ("g.addV('person').property('name', 1)", "expected string, given Integer"),
        ("g.addV('person').property('shoe', 1)", "expected one of the attributes"),
        ("g.call('ficus.schema.createIndex', [key: 'name'])", "there is no parameter [key]"),
        ("g.call('ficus.schema.createIndex', [keys: 'a', kind: 'btree'])", "hash or ordered"),
        (
            "g.call('ficus.schema.createVertexType', [label: 'x', attributes: [a: 'number']])",
            "the type of 'a' is one of",
        ),
        ("g.call('ficus.schema.dropIndex', [name: 'x'])", "there is no index named 'x'"),
        ("g.call('ficus.schema.cancelTask', [task: 7])", "there is no running task 7"),
        ("g.call('ficus.schema.describe')", "it needs the parameter [label]"),
    ];
    for (text, expected) in refused {
        let error = ask(text).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
    let added = ask("g.addV('person').property('name', 'Ann').values('age')").unwrap();
    assert_eq!(added, ["18"]);
    ask("g.call('ficus.schema.dropType', [label: 'person'])").unwrap();
    assert_eq!(ask("g.call('ficus.schema.list').select('what')").unwrap(), ["edge type"]);
}
