//! Time to read and write what travels most: a response of 100 vertices and a bytecode request.
//!
//! A good number: GraphBinary writes a vertex with two properties in well under 0.2 µs, so that a response costs less
//! than sending it does; GraphSON 3.0 in under 1 µs. Reading is the client's work and may take three times as long.

#![allow(missing_docs)] // The macro that makes the groups writes undocumented functions.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ficus_model::{
    Argument, Bytecode, Comparison, DetachedVertex, DetachedVertexProperty, Element, Instruction, P, Shared, Value,
};
use ficus_wire::{
    Data, Format, Limits, Request, RequestId, Response, decode_request, decode_response, encode_request,
    encode_response,
};

const FORMATS: [Format; 2] = [Format::GraphBinary1, Format::GraphSon3];

fn response() -> Response {
    let property = |id: i64, key: &str, value: Value| DetachedVertexProperty {
        id: Value::Long(id),
        key: key.into(),
        value,
        properties: Vec::new(),
        owner: None,
    };
    let vertex = |id: i64| {
        let name = property(2 * id, "name", Value::String(format!("person {id}").into()));
        let age = property(2 * id + 1, "age", Value::Int(20 + (id % 60) as i32));
        let vertex = DetachedVertex { id: Value::Long(id), label: "person".into(), properties: vec![name, age] };
        (Value::Element(Arc::new(Element::Vertex(vertex))), 1)
    };
    Response::new(Some(RequestId::Uuid(uuid::Uuid::nil())), 200, Data::Traversers((0..100).map(vertex).collect()))
}

/// `g.V(1).has("age", gt(30)).repeat(__.out("knows")).times(2).values("name").limit(10)`
fn request() -> Request {
    let text = |text: &str| Argument::Value(Value::String(text.into()));
    let step = |name: &str, args: Vec<Argument>| Instruction { name: name.into(), args, offset: None };
    let out = Bytecode { source: Vec::new(), steps: vec![step("out", vec![text("knows")])] };
    let over_30 = Argument::Predicate(P::Compare(Comparison::Gt, Value::Int(30)));
    let steps = vec![
        step("V", vec![Argument::Value(Value::Long(1))]),
        step("has", vec![text("age"), over_30]),
        step("repeat", vec![Argument::Traversal(Arc::new(out))]),
        step("times", vec![Argument::Value(Value::Int(2))]),
        step("values", vec![text("name")]),
        step("limit", vec![Argument::Value(Value::Long(10))]),
    ];
    let gremlin = Value::Bytecode(Arc::new(Bytecode { source: Vec::new(), steps }));
    let aliases = [(Value::String("g".into()), Value::String("gmodern".into()))].into_iter().collect();
    let args = [("gremlin".into(), gremlin), ("aliases".into(), Value::Map(Shared::new(aliases)))];
    Request {
        id: RequestId::Uuid(uuid::Uuid::nil()),
        op: "bytecode".into(),
        processor: "traversal".into(),
        args: args.into_iter().collect(),
    }
}

fn responses(criterion: &mut Criterion) {
    let response = response();
    let limits = Limits::default();
    for format in FORMATS {
        let mut bytes = Vec::new();
        encode_response(format, &response, &mut bytes).expect("the response is expressible");
        let mut group = criterion.benchmark_group(format!("100 vertices {format:?}"));
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        let mut out = Vec::with_capacity(bytes.len());
        group.bench_function("write", |bencher| {
            bencher.iter(|| {
                out.clear();
                encode_response(format, black_box(&response), &mut out).expect("the response is expressible");
            });
        });
        group.bench_function("read", |bencher| {
            bencher.iter(|| decode_response(format, black_box(&bytes), &limits).expect("we wrote it"));
        });
        group.finish();
    }
}

fn requests(criterion: &mut Criterion) {
    let request = request();
    let limits = Limits::default();
    for format in FORMATS {
        let mut bytes = Vec::new();
        encode_request(format, &request, &mut bytes).expect("the request is expressible");
        let mut group = criterion.benchmark_group(format!("bytecode {format:?}"));
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        let mut out = Vec::with_capacity(bytes.len());
        group.bench_function("write", |bencher| {
            bencher.iter(|| {
                out.clear();
                encode_request(format, black_box(&request), &mut out).expect("the request is expressible");
            });
        });
        group.bench_function("read", |bencher| {
            bencher.iter(|| decode_request(format, black_box(&bytes), &limits).expect("we wrote it"));
        });
        group.finish();
    }
}

criterion_group!(benches, responses, requests);
criterion_main!(benches);
