//! Time to make a plan of a text, as each query with other parameters asks for anew: to read it, to lower it, and to make the physical plan.
//!
//! Good: less than what a look-up of some rows takes, 50 µs, for a query of a screen.
#![allow(missing_docs)] // The macros of the harness generate public items.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use ficus_gremlin::lower::lower;
use ficus_gremlin::text::{ParseOptions, Statement, parse};
use ficus_query::engine::Prepared;

const QUERIES: &[(&str, &str)] = &[
    ("edge", "g.V(1L).addE('knows').to(__.V(2L)).iterate()"),
    ("values", "g.V('person:1').values('name')"),
    (
        "project",
        "g.V('message:1').out('hasCreator').project('person', 'firstName', 'lastName').by(id).by('firstName').by('lastName')",
    ),
    (
        "newest",
        "g.V('person:1').in('hasCreator').order().by('creationDate', desc).by(id).limit(10).as('m').\
         until(hasLabel('post')).repeat(out('replyOf')).\
         project('message', 'text', 'date', 'post', 'author', 'firstName', 'lastName').\
         by(select('m').id()).by(select('m').coalesce(values('content'), values('imageFile'))).\
         by(select('m').values('creationDate')).by(id).by(out('hasCreator').id()).\
         by(out('hasCreator').values('firstName')).by(out('hasCreator').values('lastName')).\
         order().by('date', desc).by('message')",
    ),
    (
        "upsert",
        "g.mergeV([(T.label): 'person', 'id': 1]).option(onCreate, ['name': 'marko']).option(onMatch, ['name': 'marko']).as('v').\
         mergeE([(T.label): 'knows', (from): outV, (to): inV]).option(outV, select('v')).option(inV, V('person:2'))",
    ),
];

fn plans(criterion: &mut Criterion) {
    let options = ParseOptions::default();
    for (name, text) in QUERIES {
        let mut group = criterion.benchmark_group(*name);
        group.bench_function("parse", |bencher| {
            bencher.iter(|| parse(black_box(text), &options).expect("the query is well-formed"));
        });
        let script = parse(text, &options).expect("the query is well-formed");
        let Statement::Traversal { bytecode, .. } = &script.statements[0] else { return };
        group.bench_function("lower", |bencher| {
            bencher.iter(|| lower(black_box(bytecode)).expect("the query is understood"));
        });
        group.bench_function("plan", |bencher| {
            let plan = lower(bytecode).expect("the query is understood");
            let make = |plan| Prepared::new(plan).expect("the query can be carried out");
            bencher.iter_batched(|| plan.clone(), make, BatchSize::SmallInput);
        });
        group.finish();
    }
}

criterion_group!(benches, plans);
criterion_main!(benches);
