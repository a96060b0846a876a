//! Segments against plain arrays: scans of half-edges, look-ups, building.
//!
//! `cargo bench -p ficus-storage --features measure --bench segment`
#![allow(missing_docs, clippy::print_stdout)]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ficus_storage::measure::{MeasuredSegment, PlainCsr};

const VERTICES: usize = 1 << 17;
const DEGREE: usize = 16;

fn segments(criterion: &mut Criterion) {
    let csr = PlainCsr::random(VERTICES, DEGREE);
    let loaded = MeasuredSegment::loaded(&csr);
    let consolidated = MeasuredSegment::consolidated(&csr);
    let half_edges = csr.half_edges();
    println!("bytes an edge, loaded {:.2}", loaded.bytes() as f64 / half_edges as f64);
    println!("bytes an edge, consolidated {:.2}", consolidated.bytes() as f64 / half_edges as f64);
    let shuffled = csr.shuffled_vertices();
    let in_order: Vec<u32> = (0..VERTICES as u32).collect();

    for (name, order) in [("in order", &in_order), ("shuffled", &shuffled)] {
        let mut group = criterion.benchmark_group(format!("neighbours {name}"));
        group.throughput(Throughput::Elements(half_edges as u64));
        group.bench_function("plain arrays", |bench| bench.iter(|| csr.sum_of_neighbours(black_box(order))));
        group.bench_function("segment", |bench| bench.iter(|| loaded.sum_of_neighbours(black_box(order))));
        group.bench_function("segment, by label", |bench| {
            bench.iter(|| loaded.sum_of_neighbours_with_label(black_box(order)));
        });
        group.bench_function("segment, with edges", |bench| {
            bench.iter(|| consolidated.sum_of_half_edges(black_box(order)));
        });
        group.finish();
    }

    let mut group = criterion.benchmark_group("look-ups");
    group.throughput(Throughput::Elements(VERTICES as u64));
    group.bench_function("property", |bench| bench.iter(|| loaded.sum_of_property(black_box(&shuffled))));
    group.bench_function("vertex by counted id", |bench| bench.iter(|| loaded.find_vertices(black_box(&shuffled))));
    group.bench_function("edge by sequence, loaded", |bench| bench.iter(|| loaded.find_edges(black_box(&shuffled))));
    group.bench_function("edge by sequence, consolidated", |bench| {
        bench.iter(|| consolidated.find_edges(black_box(&shuffled)));
    });
    group.finish();

    let mut group = criterion.benchmark_group("build");
    group.sample_size(10);
    group.throughput(Throughput::Elements(2 * half_edges as u64));
    group.bench_function("loaded", |bench| bench.iter(|| MeasuredSegment::loaded(black_box(&csr))));
    group.bench_function("consolidated", |bench| bench.iter(|| MeasuredSegment::consolidated(black_box(&csr))));
    group.finish();
}

criterion_group!(benches, segments);
criterion_main!(benches);
