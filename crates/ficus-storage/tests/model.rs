//! Random histories against a naive model: through the transaction that writes, through snapshots, and through a store
//! that was closed and opened again.

use std::collections::BTreeMap;
use std::sync::Arc;

use ficus_model::{Cardinality, Direction, EdgeId, Value, VertexId};
use ficus_storage::simulated_disk::{Seeded, SimulatedDisk};
use ficus_storage::{
    ElementKind, Environment, Graph, HalfEdgeCursor, Random, ScanCursor, Snapshot, SortKey, Store, StoreOptions,
    SystemClock, TypeDefinition,
};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    AddVertex { label: u8, id: Option<u8> },
    AddEdge { label: u8, out: usize, in_: usize },
    SetProperty { vertex: usize, key: u8, value: u8, cardinality: u8 },
    SetMeta { vertex: usize, property: usize, key: u8, value: u8 },
    SetEdgeProperty { edge: usize, key: u8, value: u8 },
    RemoveVertex { vertex: usize },
    RemoveEdge { edge: usize },
    RemoveProperty { vertex: usize, property: usize },
    RemoveEdgeProperty { edge: usize, key: u8 },
    CreateIndex { label: Option<u8>, key: u8 },
    Commit,
    Rollback,
    Consolidate,
    Reopen { checkpoint: bool },
}

fn any_step() -> impl Strategy<Value = Step> {
    let n = 0usize..64;
    let small = 0u8..3;
    prop_oneof![
        6 => (small.clone(), prop::option::of(0u8..40)).prop_map(|(label, id)| Step::AddVertex { label, id }),
        10 => (small.clone(), n.clone(), n.clone()).prop_map(|(label, out, in_)| Step::AddEdge { label, out, in_ }),
        6 => (n.clone(), small.clone(), 0u8..4, small.clone())
            .prop_map(|(vertex, key, value, cardinality)| Step::SetProperty { vertex, key, value, cardinality }),
        2 => (n.clone(), n.clone(), small.clone(), small.clone())
            .prop_map(|(vertex, property, key, value)| Step::SetMeta { vertex, property, key, value }),
        2 => (n.clone(), small.clone(), small.clone())
            .prop_map(|(edge, key, value)| Step::SetEdgeProperty { edge, key, value }),
        2 => n.clone().prop_map(|vertex| Step::RemoveVertex { vertex }),
        2 => n.clone().prop_map(|edge| Step::RemoveEdge { edge }),
        1 => (n.clone(), n.clone()).prop_map(|(vertex, property)| Step::RemoveProperty { vertex, property }),
        1 => (n, small.clone()).prop_map(|(edge, key)| Step::RemoveEdgeProperty { edge, key }),
        1 => (prop::option::of(small.clone()), small).prop_map(|(label, key)| Step::CreateIndex { label, key }),
        4 => Just(Step::Commit),
        1 => Just(Step::Rollback),
        2 => Just(Step::Consolidate),
        1 => any::<bool>().prop_map(|checkpoint| Step::Reopen { checkpoint }),
    ]
}

/// The naive store: everything in maps, cloned whole at every commit.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    vertices: BTreeMap<VertexId, ModelVertex>,
    edges: BTreeMap<EdgeId, ModelEdge>,
}

#[derive(Clone, Debug, PartialEq)]
struct ModelVertex {
    id: Value,
    label: String,
    properties: Vec<ModelProperty>,
}

#[derive(Clone, Debug, PartialEq)]
struct ModelProperty {
    id: u64,
    key: String,
    value: Value,
    metas: Vec<(String, Value)>,
}

#[derive(Clone, Debug, PartialEq)]
struct ModelEdge {
    id: Value,
    label: String,
    out: VertexId,
    in_: VertexId,
    properties: Vec<(String, Value)>,
}

/// Integers of every width are one id.
fn same_id(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Int(a), Value::Long(b)) | (Value::Long(b), Value::Int(a)) => i64::from(*a) == *b,
        (a, b) => a == b,
    }
}

fn set(properties: &mut Vec<(String, Value)>, key: String, value: Value) {
    match properties.iter_mut().find(|(existing, _)| *existing == key) {
        Some((_, existing)) => *existing = value,
        None => properties.push((key, value)),
    }
}

/// Reads everything a snapshot has into a model.
fn read(snapshot: &Snapshot) -> Model {
    let mut model = Model::default();
    let mut vertices = Vec::new();
    snapshot.scan_vertices(&mut ScanCursor::default(), usize::MAX, &mut vertices);
    for vertex in vertices {
        let mut records = Vec::new();
        snapshot.vertex_properties(vertex, None, &mut records);
        let listed: Vec<_> = records.iter().map(|record| record.key).collect();
        let [in_order, mut in_any] = [true, false].map(|in_order| {
            let mut keys = Vec::new();
            snapshot.visit_vertex_keys(vertex, in_order, |key| keys.push(key));
            keys
        });
        assert_eq!(in_order, listed);
        in_any.sort_unstable();
        let mut sorted = listed;
        sorted.sort_unstable();
        assert_eq!(in_any, sorted);
        let properties = records.into_iter().map(|record| {
            let mut metas = Vec::new();
            snapshot.meta_properties(vertex, record.id, &mut metas);
            let metas = metas.into_iter().map(|(key, value)| (snapshot.key_name(key).to_string(), value)).collect();
            let key = snapshot.key_name(record.key).to_string();
            ModelProperty { id: record.id, key, value: record.value, metas }
        });
        let properties = properties.collect();
        let label = snapshot.label_name(snapshot.vertex_label(vertex).unwrap()).to_string();
        model.vertices.insert(vertex, ModelVertex { id: snapshot.vertex_id(vertex).unwrap(), label, properties });
    }
    let mut edges = Vec::new();
    snapshot.scan_edges(&mut ScanCursor::default(), usize::MAX, &mut edges);
    for edge in edges {
        let record = snapshot.edge(edge).unwrap();
        let mut properties = Vec::new();
        snapshot.edge_properties(edge, &mut properties);
        let properties = properties.into_iter().map(|(key, value)| (snapshot.key_name(key).to_string(), value));
        model.edges.insert(
            edge,
            ModelEdge {
                id: snapshot.edge_id(edge).unwrap(),
                label: snapshot.label_name(record.label).to_string(),
                out: record.out,
                in_: record.in_,
                properties: properties.collect(),
            },
        );
    }
    model
}

/// Everything a snapshot says, held against the model.
fn compare(snapshot: &Snapshot, model: &Model) {
    assert_eq!(read(snapshot), *model);
    snapshot.check_invariants().unwrap();
    for (&vertex, expected) in &model.vertices {
        assert_eq!(snapshot.find_vertex(&expected.id), Some(vertex));
        for direction in [Direction::Out, Direction::In] {
            let mut neighbours: Vec<_> = model
                .edges
                .iter()
                .filter_map(|(edge, row)| match direction {
                    Direction::Out => (row.out == vertex).then_some((&row.label, *edge, row.in_)),
                    _ => (row.in_ == vertex).then_some((&row.label, *edge, row.out)),
                })
                .map(|(label, edge, neighbour)| (snapshot.label_id(label).unwrap(), edge, neighbour))
                .collect();
            neighbours.sort();
            let mut found = Vec::new();
            snapshot.half_edges(vertex, direction, &[], &mut HalfEdgeCursor::default(), usize::MAX, &mut found);
            let found: Vec<_> = found.iter().map(|half_edge| (half_edge.edge, half_edge.neighbour)).collect();
            assert_eq!(found, neighbours.iter().map(|(_, edge, other)| (*edge, *other)).collect::<Vec<_>>());
            for label in [None, snapshot.label_id("e0"), snapshot.label_id("e1")] {
                let wanted = neighbours.iter().filter(|(of, ..)| label.is_none_or(|label| label == *of));
                let mut wanted: Vec<VertexId> = wanted.map(|(.., other)| *other).collect();
                wanted.sort_unstable();
                let mut found = Vec::new();
                snapshot
                    .neighbours(direction, label)
                    .visit(vertex, &mut |slice| slice.for_each(|vertex| found.push(vertex)));
                found.sort_unstable();
                assert_eq!(found, wanted);
                let mut found = Vec::new();
                snapshot.neighbours(direction, label).visit_all(&mut |of, slice| {
                    if of == vertex {
                        slice.for_each(|vertex| found.push(vertex));
                    }
                });
                found.sort_unstable();
                assert_eq!(found, wanted);
            }
        }
    }
    for key in ["k0", "k1", "k2"] {
        let Some(key_id) = snapshot.key_id(key) else { continue };
        for value in 0..4 {
            let value = Value::Int(value);
            let mut found = Vec::new();
            if snapshot.vertices_by_index(None, key_id, &value, &mut found) {
                let has = |vertex: &ModelVertex| {
                    vertex.properties.iter().any(|property| property.key == key && property.value == value)
                };
                let expected: Vec<_> =
                    model.vertices.iter().filter(|(_, vertex)| has(vertex)).map(|(vertex, _)| *vertex).collect();
                assert_eq!(found, expected);
            }
        }
    }
}

struct FixedRandom(std::sync::Mutex<Seeded>);

impl Random for FixedRandom {
    fn number(&self) -> u64 {
        self.0.lock().unwrap().number()
    }
}

fn open(disk: &SimulatedDisk, tablet_bits: u8) -> (Arc<Store>, Arc<Graph>) {
    let environment = Environment {
        clock: Arc::new(SystemClock),
        disk: Some(Arc::new(disk.clone())),
        random: Arc::new(FixedRandom(std::sync::Mutex::new(Seeded::new(disk.operations())))),
        spawn: None,
    };
    let mut options = StoreOptions::default();
    options.tablet_bits = tablet_bits;
    options.log_segment_bytes = 2000;
    let store = Store::open(options, environment).unwrap();
    let graph = store.graph("g").unwrap_or_else(|| store.create_graph("g").unwrap());
    (store, graph)
}

fn run(steps: Vec<Step>, tablet_bits: u8) {
    let mut disk = SimulatedDisk::new();
    let (mut store, mut graph) = open(&disk, tablet_bits);
    for (label, keys) in [("e0", vec![("k0", true)]), ("e1", vec![("k1", false), ("k2", true)])] {
        let mut definition = TypeDefinition::new(ElementKind::Edge, label);
        definition.sort_keys =
            keys.into_iter().map(|(key, descending)| SortKey { key: key.into(), descending }).collect();
        graph.define_type(&definition).unwrap();
    }
    let mut committed = Model::default();
    let mut model = Model::default();
    let mut old: Vec<(Snapshot, Model)> = Vec::new();
    let mut writing = graph.begin();
    for (steps_done, step) in (0u64..).zip(steps) {
        let vertex_at = |position: usize| model.vertices.keys().nth(position % model.vertices.len().max(1)).copied();
        let edge_at = |position: usize| model.edges.keys().nth(position % model.edges.len().max(1)).copied();
        match step {
            Step::AddVertex { label, id } => {
                let label = format!("l{label}");
                let id = id
                    .map(|id| if id % 2 == 0 { Value::Int(id.into()) } else { Value::String(format!("v{id}").into()) });
                let taken = id.as_ref().is_some_and(|id| model.vertices.values().any(|vertex| same_id(&vertex.id, id)));
                match writing.add_vertex(&label, id) {
                    Ok(vertex) => {
                        assert!(!taken);
                        let id = writing.vertex_id(vertex).unwrap();
                        model.vertices.insert(vertex, ModelVertex { id, label, properties: Vec::new() });
                    }
                    Err(error) => assert!(taken, "{error}"),
                }
            }
            Step::AddEdge { label, out, in_ } => {
                let (Some(out), Some(in_)) = (vertex_at(out), vertex_at(in_)) else { continue };
                let label = format!("e{label}");
                let edge = writing.add_edge(&label, out, in_, None).unwrap();
                let id = writing.edge_id(edge).unwrap();
                model.edges.insert(edge, ModelEdge { id, label, out, in_, properties: Vec::new() });
            }
            Step::SetProperty { vertex, key, value, cardinality } => {
                let Some(vertex) = vertex_at(vertex) else { continue };
                let (key, value) = (format!("k{key}"), Value::Int(value.into()));
                let cardinality = Cardinality::ALL[usize::from(cardinality)];
                let id = writing.set_vertex_property(vertex, &key, value.clone(), cardinality, None).unwrap();
                let properties = &mut model.vertices.get_mut(&vertex).unwrap().properties;
                let same = properties.iter().find(|property| property.key == key && property.value == value);
                match (cardinality, same) {
                    (Cardinality::Set, Some(same)) => assert_eq!(same.id, id),
                    _ => {
                        if cardinality == Cardinality::Single {
                            properties.retain(|property| property.key != key);
                        }
                        properties.push(ModelProperty { id, key, value, metas: Vec::new() });
                    }
                }
            }
            Step::SetMeta { vertex, property, key, value } => {
                let Some(vertex) = vertex_at(vertex) else { continue };
                let properties = &mut model.vertices.get_mut(&vertex).unwrap().properties;
                let count = properties.len().max(1);
                let Some(property) = properties.get_mut(property % count) else { continue };
                let (key, value) = (format!("k{key}"), Value::Int(value.into()));
                writing.set_meta_property(vertex, property.id, &key, value.clone()).unwrap();
                set(&mut property.metas, key, value);
            }
            Step::SetEdgeProperty { edge, key, value } => {
                let Some(edge) = edge_at(edge) else { continue };
                let (key, value) = (format!("k{key}"), Value::Int(value.into()));
                writing.set_edge_property(edge, &key, value.clone()).unwrap();
                set(&mut model.edges.get_mut(&edge).unwrap().properties, key, value);
            }
            Step::RemoveVertex { vertex } => {
                let Some(vertex) = vertex_at(vertex) else { continue };
                writing.remove_vertex(vertex).unwrap();
                model.vertices.remove(&vertex);
                model.edges.retain(|_, edge| edge.out != vertex && edge.in_ != vertex);
            }
            Step::RemoveEdge { edge } => {
                let Some(edge) = edge_at(edge) else { continue };
                writing.remove_edge(edge).unwrap();
                model.edges.remove(&edge);
            }
            Step::RemoveProperty { vertex, property } => {
                let Some(vertex) = vertex_at(vertex) else { continue };
                let properties = &mut model.vertices.get_mut(&vertex).unwrap().properties;
                if properties.is_empty() {
                    continue;
                }
                let removed = properties.remove(property % properties.len());
                writing.remove_vertex_property(vertex, removed.id).unwrap();
            }
            Step::RemoveEdgeProperty { edge, key } => {
                let Some(edge) = edge_at(edge) else { continue };
                let key = format!("k{key}");
                if let Some(key) = writing.key_id(&key) {
                    writing.remove_edge_property(edge, key).unwrap();
                }
                model.edges.get_mut(&edge).unwrap().properties.retain(|(existing, _)| *existing != key);
            }
            Step::CreateIndex { label, key } => {
                let label = label.map(|label| format!("l{label}"));
                graph.create_index(label.as_deref(), &format!("k{key}")).unwrap();
            }
            Step::Commit => {
                compare(&writing, &model);
                writing.commit().unwrap();
                committed = model.clone();
                old.push((graph.snapshot(), committed.clone()));
                writing = graph.begin();
            }
            Step::Rollback => {
                writing.rollback();
                model = committed.clone();
                writing = graph.begin();
            }
            Step::Consolidate => {
                // The transaction goes on, on the pages it began with.
                store.consolidate().unwrap();
                compare(&writing, &model);
                compare(&graph.snapshot(), &committed);
            }
            Step::Reopen { checkpoint } => {
                drop(writing);
                drop(old.split_off(0));
                if checkpoint {
                    store.checkpoint().unwrap();
                }
                // As after a crash: nothing is closed.
                disk = disk.crash(steps_done);
                (store, graph) = open(&disk, tablet_bits);
                model = committed.clone();
                writing = graph.begin();
                compare(&writing, &model);
            }
        }
    }
    compare(&writing, &model);
    for (snapshot, model) in &old {
        compare(snapshot, model);
    }
    drop(store);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]
    #[test]
    fn random_histories_agree_with_the_model(
        steps in prop::collection::vec(any_step(), 0..150),
        tablet_bits in prop::sample::select(vec![0u8, 1, 4]),
    ) {
        run(steps, tablet_bits);
    }
}
