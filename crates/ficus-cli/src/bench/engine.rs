//! The part of the suite `micro` that asks the engine: on the calling thread, without executors, sockets or encoding.
//!
//! *prepared* runs a plan again and again, as the server does with a text it has seen; *from text* parses, lowers, optimises
//! and builds each time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ficus_dataflow::Delivery;
use ficus_gremlin::lower::lower;
use ficus_gremlin::text::{ParseOptions, parse_traversal};
use ficus_query::budget::Held;
use ficus_query::engine::{Engine, Prepared, QueryEnd, Row, RowSink, RowWaker, RunOptions};
use ficus_storage::{Graph, Store};

use super::measure::Measure;
use super::micro::{per_second, rate};
use crate::Outcome;
use crate::failure::Failure;
use crate::serve::start_executors;

/// The queries, with the rate that is aimed at where there is an aim.
const QUERIES: &[(&str, &str, Option<f64>)] = &[
    ("look-up", "g.V(3).id()", None),
    ("one-hop count", "g.V(3).out().count()", Some(100_000.0)),
    ("one-hop values", "g.V(3).out().values('code')", None),
    ("two-hop count", "g.V(3).out().out().count()", None),
    ("two-hop distinct count", "g.V(3).out().out().dedup().count()", None),
    ("has by index", "g.V().has('code','AUS').id()", None),
    ("filter by sub-query", "g.V(3).out().where(out().has('code','LHR')).count()", None),
];

/// Counts rows and throws them away.
struct RowCount {
    rows: Arc<AtomicU64>,
    failed: Arc<AtomicU64>,
}

impl RowSink for RowCount {
    fn rows(&mut self, rows: &mut VecDeque<Row>, _held: &mut Held, _waker: &RowWaker) -> Delivery {
        self.rows.fetch_add(rows.drain(..).map(|(_, bulk)| bulk).sum(), Ordering::Relaxed);
        Delivery::Accepted
    }

    fn end(self: Box<Self>, end: QueryEnd) {
        self.failed.fetch_add(u64::from(end.result.is_err()), Ordering::Relaxed);
    }
}

fn prepare(text: &str) -> Result<Prepared, Failure> {
    let bytecode = parse_traversal(text, &ParseOptions::default()).map_err(Failure::failed)?;
    let plan = lower(&bytecode).map_err(Failure::failed)?;
    Prepared::new(plan).map_err(Failure::failed)
}

/// Runs the part.
pub fn run(
    store: &Arc<Store>,
    graph: &Arc<Graph>,
    budget: Duration,
    print: &mut dyn FnMut(Measure) -> std::io::Result<()>,
) -> Outcome {
    let _ = store;
    graph.create_index(None, "code")?;
    let engine = start_executors(&Default::default())?;
    let options = RunOptions::default();
    for (case, text, target) in QUERIES {
        let (rows, failed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let ask = |engine: &Engine, prepared: &Prepared| {
            let sink = RowCount { rows: rows.clone(), failed: failed.clone() };
            let transaction = if prepared.writes() { graph.begin() } else { graph.begin_reading() };
            engine.run_here(prepared, transaction, &options, Box::new(sink));
            1
        };
        let prepared = prepare(text)?;
        let queries = rate(budget, || ask(&engine, &prepared));
        let measure = per_second(&format!("engine: {case}, prepared"), queries, "queries/s");
        print(Measure { target: *target, ..measure })?;
        let mut broken = None;
        let queries = rate(budget, || match prepare(text) {
            Ok(prepared) => ask(&engine, &prepared),
            Err(error) => {
                broken = Some(error);
                1
            }
        });
        if let Some(error) = broken {
            return Err(error);
        }
        print(per_second(&format!("engine: {case}, from text"), queries, "queries/s"))?;
        if failed.load(Ordering::Relaxed) > 0 || rows.load(Ordering::Relaxed) == 0 {
            return Err(Failure::failed(format!("[{text}] failed or yielded nothing, so its rate means nothing")));
        }
    }
    Ok(())
}
