//! Random graphs, loaded as a whole and by transactions: both have to be the same.

use std::sync::Arc;

use ficus_model::{Cardinality, Direction, LabelId, Shared, Value, VertexId};

use super::{EdgeChunk, LoadId, LoadProperty, LoadValue, VertexChunk};
use crate::environment::Disk;
use crate::simulated_disk::{Faults, SimulatedDisk};
use crate::{
    ElementKind, Environment, Graph, HalfEdgeCursor, Multiplicity, ScanCursor, Snapshot, SortKey, Store, StoreError,
    StoreOptions, TypeDefinition, TypeMode,
};

/// Splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (number ^ number >> 31) % bound
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }
}

#[derive(Clone, Debug)]
struct Property {
    key: String,
    value: Value,
    cardinality: Cardinality,
    meta: Option<(String, Value)>,
}

#[derive(Clone, Debug)]
struct Vertex {
    id: Value,
    label: String,
    properties: Vec<Property>,
}

#[derive(Clone, Debug)]
struct Edge {
    id: Option<Value>,
    label: String,
    ends: (Value, Value),
    properties: Vec<(String, Value)>,
}

fn value(random: &mut Random) -> Value {
    match random.below(5) {
        0 => Value::Int(random.below(3) as i32),
        1 => Value::Long(-(random.below(1 << 40) as i64)),
        2 => Value::String(format!("text {}", random.below(20)).into()),
        3 => Value::Double(random.below(8) as f64 / 4.0),
        _ => Value::List(Shared::new(vec![Value::Bool(random.chance(2)), Value::String("x".into())])),
    }
}

fn id(random: &mut Random, spread: u64) -> Value {
    match random.below(6) {
        0 => Value::String(format!("v{}", random.below(spread)).into()),
        1 => Value::Double(random.below(spread) as f64 + 0.5),
        2 => Value::Int(random.below(spread) as i32),
        3 => Value::String(random.below(spread).to_string().into()),
        _ => Value::Long(random.below(spread) as i64),
    }
}

fn word(random: &mut Random, prefix: &str, count: u64) -> String {
    format!("{prefix}{}", random.below(count))
}

fn vertices(random: &mut Random, count: u64) -> Vec<Vertex> {
    let vertex = |random: &mut Random| Vertex {
        id: id(random, 2 * count),
        label: word(random, "label", 3),
        properties: (0..random.below(5))
            .map(|_| Property {
                key: word(random, "key", 4),
                value: value(random),
                cardinality: [Cardinality::Single, Cardinality::List, Cardinality::Set][random.below(3) as usize],
                meta: random.chance(8).then(|| (word(random, "key", 4), value(random))),
            })
            .collect(),
    };
    (0..count).map(|_| vertex(random)).collect()
}

fn edges(random: &mut Random, vertices: &[Vertex], count: u64, labels: u64, plain: bool) -> Vec<Edge> {
    let edge = |random: &mut Random| Edge {
        // Integers below zero: a transaction may make an id that comes with a later edge, a load never does.
        id: (!plain && random.chance(3)).then(|| match id(random, 4 * count) {
            Value::Long(number) => Value::Long(-1 - number),
            Value::Int(number) => Value::Int(-1 - number),
            other => other,
        }),
        label: word(random, "edge", labels),
        ends: [(); 2].map(|()| vertices[random.below(vertices.len() as u64) as usize].id.clone()).into(),
        properties: match plain {
            true => Vec::new(),
            false => (0..random.below(3)).map(|_| (word(random, "key", 4), value(random))).collect(),
        },
    };
    (0..count).map(|_| edge(random)).collect()
}

/// Loads as a whole, in chunks of random sizes; gives what was refused.
fn load(graph: &Arc<Graph>, vertices: &[Vertex], edges: &[Edge], random: &mut Random) -> Vec<String> {
    let mut refused = Vec::new();
    let mut load = graph.load().expect("the graph has no elements");
    let mut rest = vertices;
    while !rest.is_empty() {
        let (part, behind) = rest.split_at(1 + random.below(rest.len() as u64) as usize);
        let mut chunk = VertexChunk::new();
        for vertex in part {
            let label = chunk.label(&vertex.label).unwrap();
            // A vertex that is given up leaves nothing behind.
            chunk.begin(label, LoadId::Text("given up")).unwrap();
            let key = chunk.key("key0").unwrap();
            chunk.single(key, LoadValue::Int(1)).unwrap();
            chunk.abandon();
            chunk.begin(label, LoadId::Value(&vertex.id)).unwrap();
            for property in &vertex.properties {
                let meta = property.meta.iter().map(|(key, value)| (chunk.key(key).unwrap(), value.clone()));
                let meta: Vec<_> = meta.collect();
                let key = chunk.key(&property.key).unwrap();
                let (value, cardinality) = (LoadValue::Value(&property.value), property.cardinality);
                chunk.property(key, LoadProperty { value, cardinality, id: None, meta: &meta }).unwrap();
            }
            chunk.end();
        }
        refused.extend(load.add(chunk).unwrap().into_iter().map(|refused| format!("vertex {:?}", refused.id)));
        rest = behind;
    }
    let mut load = load.into_edges();
    let directory = load.directory();
    let mut rest = edges;
    while !rest.is_empty() {
        let (part, behind) = rest.split_at(1 + random.below(rest.len() as u64) as usize);
        let mut chunk = EdgeChunk::new();
        for edge in part {
            let label = chunk.label(&edge.label).unwrap();
            let [out, in_] = [&edge.ends.0, &edge.ends.1].map(|id| directory.find(LoadId::Value(id)).unwrap());
            for attempt in 0..2 {
                let id = edge.id.as_ref().map_or(LoadId::Made, LoadId::Value);
                chunk.begin(label, out, in_, id).unwrap();
                for (key, value) in &edge.properties {
                    let key = chunk.key(key).unwrap();
                    chunk.property(key, LoadValue::Value(value)).unwrap();
                }
                chunk.end();
                if attempt == 0 {
                    chunk.abandon();
                }
            }
        }
        refused.extend(load.add(chunk).unwrap().into_iter().map(|refused| format!("edge {:?}", refused.id)));
        rest = behind;
    }
    let report = load.finish(2).unwrap();
    assert_eq!((report.vertices, report.edges), (graph.vertex_count(), graph.edge_count()));
    refused
}

fn write(graph: &Arc<Graph>, vertices: &[Vertex], edges: &[Edge]) -> Vec<String> {
    let mut refused = Vec::new();
    let mut writing = graph.begin();
    for vertex in vertices {
        match writing.add_vertex(&vertex.label, Some(vertex.id.clone())) {
            Err(_) => refused.push(format!("vertex {:?}", vertex.id)),
            Ok(added) => {
                for property in &vertex.properties {
                    let Property { key, value, cardinality, meta } = property.clone();
                    let id = writing.set_vertex_property(added, &key, value, cardinality, None).unwrap();
                    if let Some((key, value)) = meta {
                        writing.set_meta_property(added, id, &key, value).unwrap();
                    }
                }
            }
        }
    }
    for edge in edges {
        let [out, in_] = [&edge.ends.0, &edge.ends.1].map(|id| writing.find_vertex(id).unwrap());
        match writing.add_edge(&edge.label, out, in_, edge.id.clone()) {
            Err(_) => refused.push(format!("edge {:?}", edge.id.as_ref().unwrap())),
            Ok(added) => {
                for (key, value) in &edge.properties {
                    writing.set_edge_property(added, key, value.clone()).unwrap();
                }
            }
        }
    }
    writing.commit().unwrap();
    refused
}

/// All elements as sorted lines, in which only user ids appear; made ids are left out.
fn lines(snapshot: &Snapshot, edges: &[Edge]) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut found, mut cursor) = (Vec::new(), ScanCursor::default());
    while snapshot.scan_vertices(&mut cursor, 1000, &mut found) {}
    for vertex in found {
        lines.push(vertex_line(snapshot, vertex));
        for direction in [Direction::Out, Direction::In] {
            let mut half_edges = Vec::new();
            let mut cursor = HalfEdgeCursor::default();
            while snapshot.half_edges(vertex, direction, &[], &mut cursor, 100, &mut half_edges) {}
            for half_edge in half_edges {
                let record = snapshot.edge(half_edge.edge).unwrap();
                let expected = if direction == Direction::Out { record.in_ } else { record.out };
                assert_eq!(half_edge.neighbour, expected);
                let id = snapshot.edge_id(half_edge.edge).unwrap();
                assert_eq!(snapshot.find_edge(&id), Some(half_edge.edge), "{id:?}");
                let is_given = edges.iter().any(|edge| edge.id.as_ref() == Some(&id));
                let mut properties = Vec::new();
                snapshot.edge_properties(half_edge.edge, &mut properties);
                let properties: Vec<_> =
                    properties.into_iter().map(|(key, value)| (snapshot.key_name(key), value)).collect();
                let ends = [record.out, record.in_].map(|end| snapshot.vertex_id(end).unwrap());
                let label = snapshot.label_name(record.label);
                lines.push(format!("{direction:?} {label} {ends:?} {properties:?} {:?}", is_given.then_some(id)));
            }
        }
    }
    lines.sort_unstable();
    lines
}

fn vertex_line(snapshot: &Snapshot, vertex: VertexId) -> String {
    let id = snapshot.vertex_id(vertex).unwrap();
    assert_eq!(snapshot.find_vertex(&id), Some(vertex), "{id:?}");
    let mut properties = Vec::new();
    snapshot.vertex_properties(vertex, None, &mut properties);
    let shown: Vec<_> = properties
        .into_iter()
        .map(|property| {
            let mut metas = Vec::new();
            snapshot.meta_properties(vertex, property.id, &mut metas);
            let metas: Vec<_> = metas.into_iter().map(|(key, value)| (snapshot.key_name(key), value)).collect();
            (snapshot.key_name(property.key), property.value, metas)
        })
        .collect();
    let label = snapshot.vertex_label(vertex).map(|label: LabelId| snapshot.label_name(label));
    format!("vertex {id:?} {label:?} {shown:?}")
}

fn check(seed: u64) {
    let mut random = Random(seed);
    let count = 1 + random.below(200);
    let vertices = vertices(&mut random, count);
    let plain = random.chance(3);
    let labels = [1, 3, 300][random.below(3) as usize];
    let count = random.below(600);
    let edges = edges(&mut random, &vertices, count, labels, plain);
    let options = StoreOptions { tablet_bits: random.below(6) as u8, ..StoreOptions::default() };
    let stores = [(); 2].map(|()| Store::open(options.clone(), Environment::in_memory()).unwrap());
    let [whole, written] = [0, 1].map(|store| stores[store].create_graph("g").unwrap());
    let refused = [load(&whole, &vertices, &edges, &mut random), write(&written, &vertices, &edges)];
    assert_eq!(refused[0], refused[1], "seed {seed}");
    whole.snapshot().check_invariants().unwrap_or_else(|reason| panic!("seed {seed}: {reason}"));
    assert_eq!(lines(&whole.snapshot(), &edges), lines(&written.snapshot(), &edges), "seed {seed}");
    // Nothing that is added later gets a number that is taken.
    let mut writing = whole.begin();
    let added = writing.add_vertex("later", None).unwrap();
    writing.set_vertex_property(added, "key0", Value::Int(1), Cardinality::Single, None).unwrap();
    writing.add_edge("later", added, added, None).unwrap();
    writing.commit().unwrap();
    whole.snapshot().check_invariants().unwrap_or_else(|reason| panic!("seed {seed}: {reason}"));
    assert!(whole.load().is_none(), "it has elements now");
}

#[test]
fn a_whole_load_gives_the_graph_that_transactions_give() {
    let seed = std::env::var("FICUS_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    match seed {
        Some(seed) => check(seed),
        None => (0..60).for_each(check),
    }
}

/// Else the disk would stay full, and each further try would make it fuller.
#[test]
fn a_load_or_consolidation_that_finds_the_disk_full_leaves_no_files() {
    let base_files = |disk: &SimulatedDisk| {
        let names = disk.list().unwrap();
        names.into_iter().filter(|name| crate::base::is_base_file(name)).collect::<Vec<_>>()
    };
    let (mut loads_refused, mut consolidations_refused) = (0, 0);
    for room in (0..).step_by(600) {
        let disk = SimulatedDisk::new();
        let options = StoreOptions { tablet_bits: 1, ..StoreOptions::default() };
        let store = Store::open(options, disk.environment()).unwrap();
        let graph = store.create_graph("g").unwrap();
        let mut load = graph.load().expect("the graph has no elements");
        let mut chunk = VertexChunk::new();
        let label = chunk.label("label").unwrap();
        for name in ["a", "b", "c"] {
            chunk.begin(label, LoadId::Text(name)).unwrap();
            chunk.end();
        }
        assert!(load.add(chunk).unwrap().is_empty());
        let full = |room: u64| Faults { capacity_bytes: Some(disk.used_bytes() + room), ..Faults::default() };
        disk.set_faults(full(room));
        let loaded = load.into_edges().finish(1);
        disk.set_faults(Faults::default());
        if let Err(error) = loaded {
            assert!(matches!(error, StoreError::DiskFull { .. }), "{error}");
            assert_eq!(base_files(&disk), [""; 0], "room {room}");
            loads_refused += 1;
            continue;
        }
        let loaded = base_files(&disk);
        let mut writing = graph.begin();
        writing.add_vertex("label", None).unwrap();
        writing.commit().unwrap();
        disk.set_faults(full(room - 600 * loads_refused));
        let consolidated = store.consolidate();
        disk.set_faults(Faults::default());
        if consolidated.is_err() {
            assert_eq!(base_files(&disk), loaded, "room {room}");
            consolidations_refused += 1;
            continue;
        }
        assert_eq!(graph.vertex_count(), 4);
        break;
    }
    assert!(loads_refused > 3 && consolidations_refused > 3, "{loads_refused}, {consolidations_refused}");
}

/// The record of a load that was refused is read at every start, also when its files are gone.
#[test]
fn a_load_that_is_refused_at_its_end_leaves_a_store_that_starts() {
    let mut disk = SimulatedDisk::new();
    let open = |disk: &SimulatedDisk| {
        Store::open(StoreOptions { tablet_bits: 1, ..StoreOptions::default() }, disk.environment())
    };
    let store = open(&disk).unwrap();
    let graph = store.create_graph("g").unwrap();
    // Its words are there before the load begins: a new one would be a conflict.
    graph.create_index(Some("label"), "key").unwrap();
    let mut load = graph.load().expect("the graph has no elements");
    let mut chunk = VertexChunk::new();
    let label = chunk.label("label").unwrap();
    chunk.begin(label, LoadId::Text("a")).unwrap();
    chunk.end();
    assert!(load.add(chunk).unwrap().is_empty());
    let mode = TypeMode::Strict;
    graph.define_type(&TypeDefinition { mode, ..TypeDefinition::new(ElementKind::Vertex, "label") }).unwrap();
    assert!(matches!(load.into_edges().finish(1), Err(StoreError::InvalidSchema { .. })));
    for seed in 0..20 {
        disk = disk.crash(seed);
        let store = open(&disk).unwrap_or_else(|error| panic!("start {seed}: {error}"));
        assert_eq!(store.graph("g").unwrap().vertex_count(), 0);
        // As the process leaves it that is killed now.
        disk = disk.crash(seed);
    }
}

#[test]
fn types_that_refuse_nothing_leave_a_load_as_it_is() {
    let store = Store::open(StoreOptions::default(), Environment::in_memory()).unwrap();
    let of_edges = || TypeDefinition::new(ElementKind::Edge, "edge0");
    let sorted = TypeDefinition { sort_keys: vec![SortKey { key: "key0".into(), descending: true }], ..of_edges() };
    let restricting = [
        TypeDefinition { mode: TypeMode::Strict, ..of_edges() },
        TypeDefinition { multiplicity: Multiplicity::Simple, ..of_edges() },
        TypeDefinition { primary_key: vec!["key0".into()], ..TypeDefinition::new(ElementKind::Vertex, "label0") },
    ];
    for (number, definition) in restricting.iter().enumerate() {
        let graph = store.create_graph(&format!("restricted{number}")).unwrap();
        graph.define_type(definition).unwrap();
        assert!(graph.load().is_none(), "{definition}");
    }
    let graph = store.create_graph("g").unwrap();
    graph.define_type(&sorted).unwrap();
    let mut random = Random(7);
    let vertices = vertices(&mut random, 40);
    let edges = edges(&mut random, &vertices, 300, 2, false);
    load(&graph, &vertices, &edges, &mut random);
    let before = lines(&graph.snapshot(), &edges);
    store.consolidate().unwrap();
    assert_eq!(lines(&graph.snapshot(), &edges), before);
    let snapshot = graph.snapshot();
    snapshot.check_invariants().unwrap();
    assert!(!snapshot.root.declared_orders().is_empty() && !snapshot.root.has_unsorted_base());
}
