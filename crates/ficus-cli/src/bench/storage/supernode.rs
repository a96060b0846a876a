//! A vertex with ten million edges beside ordinary ones.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ficus_gremlin::lower::lower;
use ficus_gremlin::text::{ParseOptions, parse_traversal};
use ficus_model::{Direction as Way, Value, VertexId};
use ficus_query::engine::{Prepared, RunOptions};
use ficus_storage::{
    ElementKind, Environment, Graph, IndexTest, SortKey, SortedCursor, SortedQuery, Store, StoreOptions, TypeDefinition,
};

use super::{Print, at_most, part};
use crate::Outcome;
use crate::bench::measure::Times;
use crate::failure::Failure;
use crate::serve::start_executors;

/// Every question is asked so often.
const REPETITIONS: u64 = 2_000;

pub fn run(folder: &Path, quick: bool, print: Print<'_>) -> Outcome {
    let edges = if quick { 100_000u64 } else { 10_000_000 };
    let data = part(folder, "supernode")?;
    let store = Store::open(StoreOptions::default(), Environment::on_directory(&data)?)?;
    let graph = store.create_graph("g")?;
    let mut definition = TypeDefinition::new(ElementKind::Edge, "follows");
    definition.sort_keys = vec![SortKey { key: "at".into(), descending: false }];
    graph.define_type(&definition)?;
    let mut bulk = graph.bulk();
    let hub = bulk.add_vertex("person", None, Vec::new())?;
    let others = (0..100_000).map(|_| bulk.add_vertex("person", None, Vec::new())).collect::<Result<Vec<_>, _>>()?;
    for edge in 0..edges {
        let other = others[(edge * 7919 % 100_000) as usize];
        let at = Value::Long((edge.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as i64);
        bulk.add_edge("follows", other, hub, None, vec![("at", at)])?;
        if edge % 100 == 0 {
            bulk.add_edge("follows", hub, other, None, Vec::new())?;
        }
    }
    bulk.finish()?;
    store.consolidate()?;
    let snapshot = graph.snapshot();
    let label = snapshot.label_id("follows");
    let mut degree = Times::default();
    let mut exists = Times::default();
    for repetition in 0..REPETITIONS {
        let started = Instant::now();
        let found = std::hint::black_box(snapshot.degree(hub, Way::In, label.as_slice()));
        degree.add(started.elapsed());
        if found != edges {
            return Err(Failure::failed(format!("the hub has {found} edges instead of {edges}")));
        }
        let other = others[repetition as usize];
        let started = Instant::now();
        let found = std::hint::black_box(snapshot.edge_between(other, hub, label));
        exists.add(started.elapsed());
        if found.is_none() {
            return Err(Failure::failed("an edge to the hub is not found"));
        }
    }
    let case = "vertex with 10 M edges";
    print(at_most(case, "degree p99", degree.percentile_us(0.99), "us", Some(1000.0)))?;
    print(at_most(case, "edge exists p99", exists.percentile_us(0.99), "us", Some(1000.0)))?;
    for (metric, backward) in [("top 20 by sort key p99", true), ("first 20 by sort key p99", false)] {
        let mut times = Times::default();
        for _ in 0..REPETITIONS {
            let Some(label) = label else { break };
            let query = SortedQuery { direction: Way::In, label, test: IndexTest::Any, backward };
            let (mut cursor, mut found) = (SortedCursor::default(), Vec::new());
            let started = Instant::now();
            snapshot.half_edges_by_sort_key(hub, &query, &mut cursor, 20, &mut found);
            times.add(started.elapsed());
            if found.len() < 20 {
                return Err(Failure::failed("the hub's edges are not in order"));
            }
        }
        print(at_most(case, metric, times.percentile_us(0.99), "us", Some(1000.0)))?;
    }
    let in_gremlin = top_in_gremlin(&graph, hub)?;
    print(at_most(case, "top 20 in Gremlin p99", in_gremlin, "us", Some(1000.0)))?;
    let there = insert(&graph, &others, hub)?;
    let elsewhere = insert(&graph, &others, others[7])?;
    print(at_most(
        case,
        "insert / insert elsewhere",
        there.as_secs_f64() / elsewhere.as_secs_f64(),
        "ratio",
        Some(2.0),
    ))?;
    drop((snapshot, graph));
    store.close()?;
    Ok(())
}

/// The 99th percentile of `order().by(…).limit(20)` by the engine, in microseconds.
fn top_in_gremlin(graph: &Arc<Graph>, hub: VertexId) -> Result<f64, Failure> {
    let id = graph.snapshot().vertex_id(hub).ok_or_else(|| Failure::failed("the hub is gone"))?;
    let text = format!("g.V({id}).inE('follows').order().by('at', desc).limit(20).values('at')");
    let bytecode = parse_traversal(&text, &ParseOptions::default()).map_err(Failure::failed)?;
    let prepared = Prepared::new(lower(&bytecode).map_err(Failure::failed)?).map_err(Failure::failed)?;
    let engine = start_executors(&Default::default())?;
    let mut times = Times::default();
    for _ in 0..REPETITIONS {
        let started = Instant::now();
        let (rows, _) = engine.collect(&prepared, graph.begin_reading(), &RunOptions::default());
        times.add(started.elapsed());
        if rows.map_err(Failure::failed)?.iter().map(|(_, bulk)| bulk).sum::<u64>() != 20 {
            return Err(Failure::failed("the top 20 are not 20"));
        }
    }
    Ok(times.percentile_us(0.99))
}

/// The median time of adding one edge to a vertex in a transaction, commit left out: the disk is not the question here.
fn insert(graph: &Arc<Graph>, others: &[VertexId], to: VertexId) -> Result<Duration, Failure> {
    let mut times = Vec::new();
    for other in &others[..500] {
        let mut transaction = graph.begin();
        let started = Instant::now();
        transaction.add_edge("follows", *other, to, None)?;
        times.push(started.elapsed());
        transaction.commit()?;
    }
    times.sort_unstable();
    Ok(times[times.len() / 2])
}
