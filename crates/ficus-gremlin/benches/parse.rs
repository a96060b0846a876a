//! Time to read a query: a short one, one of a screen, one of 10 KB, and one of 10 KB that is mostly data.
//!
//! Good: under 1 µs for the short one, and no more than 25 ns per byte for the others, most of it allocation.
#![allow(missing_docs)] // The macros of the harness generate public items.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ficus_gremlin::text::{ParseOptions, Statement, parse, print};

const SHORT: &str = "g.V(1).out('knows').count()";
const MEDIUM: &str = "g.V().has('person','name',within('marko','josh','peter')).as('a').\
    repeat(both('knows','created').simplePath()).emit(has('age',P.gt(27).and(P.lt(40)))).times(3).\
    where(neq('a')).order().by('name',desc).by(T.id).group().by(label).by(values('name').fold()).\
    project('x','y').by(select(values)).by(unfold().count(local)).limit(10)";

fn long_query() -> String {
    let mut query = "g.V(1)".to_string();
    while query.len() < 10_000 {
        query.push_str(
            ".union(out('knows'),in('created').has('lang','java')).dedup().where(__.values('age').is(gt(30)))",
        );
    }
    query
}

fn data_query() -> String {
    let mut query = "g.inject([".to_string();
    while query.len() < 10_000 {
        query.push_str("[id: 12345, name: 'somebody', score: 0.25, tags: ['a', 'b']], ");
    }
    query.push_str("1])");
    query
}

fn queries(criterion: &mut Criterion) {
    let options = ParseOptions::default();
    for (name, text) in
        [("short", SHORT.to_string()), ("medium", MEDIUM.to_string()), ("long", long_query()), ("data", data_query())]
    {
        let mut group = criterion.benchmark_group("parse");
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| parse(black_box(&text), &options).expect("the query is well-formed"));
        });
        group.finish();
    }
    let script = parse(MEDIUM, &options).expect("the query is well-formed");
    let Statement::Traversal { bytecode, .. } = &script.statements[0] else { return };
    criterion.bench_function("print/medium", |bencher| bencher.iter(|| print(black_box(bytecode))));
}

criterion_group!(benches, queries);
criterion_main!(benches);
