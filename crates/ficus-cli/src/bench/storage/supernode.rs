//! A vertex with ten million edges beside ordinary ones.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ficus_model::{Direction as Way, VertexId};
use ficus_storage::{Environment, Graph, Store, StoreOptions};

use super::{Print, at_most, part};
use crate::Outcome;
use crate::bench::measure::Times;
use crate::failure::Failure;

/// Every question is asked so often.
const REPETITIONS: u64 = 2_000;

pub fn run(folder: &Path, quick: bool, print: Print<'_>) -> Outcome {
    let edges = if quick { 100_000u64 } else { 10_000_000 };
    let data = part(folder, "supernode")?;
    let store = Store::open(StoreOptions::default(), Environment::on_directory(&data)?)?;
    let graph = store.create_graph("g")?;
    let mut bulk = graph.bulk();
    let hub = bulk.add_vertex("person", None, Vec::new())?;
    let others = (0..100_000).map(|_| bulk.add_vertex("person", None, Vec::new())).collect::<Result<Vec<_>, _>>()?;
    for edge in 0..edges {
        let other = others[(edge * 7919 % 100_000) as usize];
        bulk.add_edge("follows", other, hub, None, Vec::new())?;
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
