//! Times of the store's small things. What a good number is stands at each.

#![allow(missing_docs)] // The macro that makes the groups writes undocumented functions.

use std::sync::Arc;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use ficus_model::{Cardinality, Direction, Value, VertexId};
use ficus_storage::simulated_disk::Seeded;
use ficus_storage::{BulkProperty, Environment, Graph, HalfEdgeCursor, Store, StoreOptions};

const VERTICES: u64 = 1 << 16;
const EDGES: u64 = 1 << 20;

fn load(store: &Store, name: &str) -> Arc<Graph> {
    let graph = store.create_graph(name).expect("a new name");
    let mut random = Seeded::new(1);
    let mut bulk = graph.bulk();
    let mut vertices = Vec::new();
    for number in 0..VERTICES {
        let properties = vec![BulkProperty::single("number", Value::Long(number as i64))];
        vertices.push(bulk.add_vertex("v", None, properties).expect("a free id"));
    }
    for _ in 0..EDGES {
        // Squared, so that some vertices have many edges.
        let target = (random.below(256) * random.below(256)) as usize;
        let source = random.below(VERTICES) as usize;
        bulk.add_edge("e", vertices[source], vertices[target], None, Vec::new()).expect("both ends exist");
    }
    bulk.finish().expect("no disk, no error");
    graph
}

fn half_edges(criterion: &mut Criterion) {
    let graph = load(&Store::in_memory(), "g");
    let snapshot = graph.snapshot();
    let mut group = criterion.benchmark_group("half_edges");
    let mut out = Vec::with_capacity(EDGES as usize);
    // Good: 100 M half-edges/s and more for the lists of many vertices, 500 M/s in long lists.
    group.throughput(Throughput::Elements(EDGES));
    for (name, direction) in [("out, 16 each", Direction::Out), ("in, skewed", Direction::In)] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut sum = 0u64;
                for vertex in 0..VERTICES {
                    out.clear();
                    let mut cursor = HalfEdgeCursor::default();
                    snapshot.half_edges(VertexId(vertex), direction, &[], &mut cursor, usize::MAX, &mut out);
                    sum += out.iter().map(|half_edge| half_edge.neighbour.0).sum::<u64>();
                }
                sum
            });
        });
    }
    group.finish();
}

fn look_ups(criterion: &mut Criterion) {
    let store = Store::in_memory();
    let graph = load(&store, "g");
    graph.create_index(Some("v"), "number").expect("no disk, no error");
    let snapshot = graph.snapshot();
    let (label, key) = (snapshot.label_id("v"), snapshot.key_id("number").expect("it is used"));
    let mut random = Seeded::new(2);
    let mut found = Vec::new();
    // Good: below 100 ns each.
    criterion.bench_function("begin", |bencher| bencher.iter(|| graph.begin()));
    criterion.bench_function("find_vertex", |bencher| {
        bencher.iter(|| snapshot.find_vertex(&Value::Long(random.below(VERTICES) as i64)));
    });
    criterion.bench_function("vertex_value", |bencher| {
        bencher.iter(|| snapshot.vertex_value(VertexId(random.below(VERTICES)), key));
    });
    // Good: below 500 ns.
    criterion.bench_function("vertices_by_index", |bencher| {
        bencher.iter(|| {
            found.clear();
            snapshot.vertices_by_index(label, key, &Value::Long(random.below(VERTICES) as i64), &mut found)
        });
    });
}

fn commits(criterion: &mut Criterion) {
    let store = Store::in_memory();
    let graph = load(&store, "g");
    let mut random = Seeded::new(3);
    // Good: below 20 µs, without a disk.
    criterion.bench_function("commit of one edge, in memory", |bencher| {
        bencher.iter(|| {
            let mut writing = graph.begin();
            let (out, in_) = (VertexId(random.below(VERTICES)), VertexId(random.below(VERTICES)));
            writing.add_edge("e", out, in_, None).expect("both ends exist");
            writing.commit().expect("nobody else writes")
        });
    });
    criterion.bench_function("commit of one property, in memory", |bencher| {
        bencher.iter(|| {
            let mut writing = graph.begin();
            let vertex = VertexId(random.below(VERTICES));
            writing
                .set_vertex_property(vertex, "number", Value::Int(1), Cardinality::Single, None)
                .expect("the vertex exists");
            writing.commit().expect("nobody else writes")
        });
    });
    let directory = tempfile::tempdir().expect("a folder for the bench");
    let environment = Environment::on_directory(directory.path()).expect("a folder for the bench");
    let durable = Store::open(StoreOptions::default(), environment).expect("an empty folder");
    let graph = load(&durable, "g");
    let mut group = criterion.benchmark_group("durable");
    group.sample_size(10);
    // Good: one flush of the disk each; with 64 writers at once, 30 000 a second.
    for writers in [1u64, 64] {
        const COMMITS: u64 = 50;
        group.throughput(Throughput::Elements(writers * COMMITS));
        group.bench_function(format!("commits of one edge, {writers} writers"), |bencher| {
            bencher.iter(|| {
                std::thread::scope(|scope| {
                    for writer in 0..writers {
                        let graph = graph.clone();
                        scope.spawn(move || {
                            let mut random = Seeded::new(writer);
                            for _ in 0..COMMITS {
                                let mut writing = graph.begin();
                                let ends = (VertexId(random.below(VERTICES)), VertexId(random.below(VERTICES)));
                                writing.add_edge("e", ends.0, ends.1, None).expect("both ends exist");
                                writing.commit().expect("adding edges is no conflict");
                            }
                        });
                    }
                });
            });
        });
    }
    group.finish();
}

fn bulk(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("bulk");
    group.sample_size(10);
    group.throughput(Throughput::Elements(VERTICES + EDGES));
    // Good: 300 000 elements/s and more.
    group.bench_function("in memory", |bencher| {
        bencher.iter_batched(Store::in_memory, |store| load(&store, "g"), BatchSize::PerIteration);
    });
    group.bench_function("durable", |bencher| {
        let open = || {
            let directory = tempfile::tempdir().expect("a folder for the bench");
            let environment = Environment::on_directory(directory.path()).expect("a folder for the bench");
            (Store::open(StoreOptions::default(), environment).expect("an empty folder"), directory)
        };
        bencher.iter_batched(open, |(store, directory)| (load(&store, "g"), store, directory), BatchSize::PerIteration);
    });
    group.finish();
}

criterion_group!(benches, half_edges, look_ups, commits, bulk);
criterion_main!(benches);
