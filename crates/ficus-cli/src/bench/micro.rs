//! The suite `micro`: store and engine in this process, on the air-routes demo, one thread.

use std::time::{Duration, Instant};

use ficus_model::{Direction as Way, Value};
use ficus_storage::{HalfEdgeCursor, Store};

use super::measure::{Direction, Measure, Times};
use crate::Outcome;
use crate::demo::Demo;
use crate::failure::Failure;

/// An airport with many routes: Austin.
const VERTEX: i32 = 3;

/// Runs the suite.
pub fn run(quick: bool, print: &mut dyn FnMut(Measure) -> std::io::Result<()>) -> Outcome {
    let store = Store::in_memory();
    Demo::AirRoutes.install(&store)?;
    let budget = if quick { Duration::from_millis(300) } else { Duration::from_secs(3) };
    let graph = crate::store::graph(&store, "g")?;
    let snapshot = graph.snapshot();
    let vertex = snapshot
        .find_vertex(&Value::Int(VERTEX))
        .ok_or_else(|| Failure::failed(format!("the demo has no vertex {VERTEX}")))?;

    let lookups = rate(budget, || {
        std::hint::black_box(snapshot.find_vertex(std::hint::black_box(&Value::Int(VERTEX))));
        1
    });
    print(per_second("store: vertex by id", lookups, "lookups/s"))?;

    let mut halves = Vec::new();
    let neighbours = rate(budget, || {
        halves.clear();
        let mut cursor = HalfEdgeCursor::default();
        while snapshot.half_edges(vertex, Way::Out, &[], &mut cursor, 1024, &mut halves) {}
        std::hint::black_box(&halves).len() as u64
    });
    print(per_second("store: neighbour scan", neighbours, "half-edges/s"))?;

    super::engine::run(&store, &graph, budget, print)?;

    // Last, because it adds to the graph.
    let other = snapshot
        .find_vertex(&Value::Int(VERTEX + 1))
        .ok_or_else(|| Failure::failed(format!("the demo has no vertex {}", VERTEX + 1)))?;
    let mut times = Times::default();
    let until = Instant::now() + budget;
    while Instant::now() < until {
        let started = Instant::now();
        let mut transaction = graph.begin();
        transaction.add_edge("bench", vertex, other, None)?;
        transaction.commit()?;
        times.add(started.elapsed());
    }
    for (metric, share) in [("p50", 0.5), ("p99", 0.99)] {
        print(Measure {
            suite: "micro",
            case: "store: single-edge commit".into(),
            metric,
            value: times.percentile_us(share),
            unit: "us",
            target: None,
            direction: Direction::AtMost,
        })?;
    }
    Ok(())
}

/// Units per second of a piece of work that is repeated for a while.
pub(super) fn rate(budget: Duration, mut work: impl FnMut() -> u64) -> f64 {
    /// Between two looks at the clock.
    const REPETITIONS: u32 = 64;
    let started = Instant::now();
    let mut units = 0;
    while started.elapsed() < budget {
        for _ in 0..REPETITIONS {
            units += work();
        }
    }
    units as f64 / started.elapsed().as_secs_f64()
}

pub(super) fn per_second(case: &str, value: f64, unit: &'static str) -> Measure {
    Measure {
        suite: "micro",
        case: case.into(),
        metric: "rate",
        value,
        unit,
        target: None,
        direction: Direction::AtLeast,
    }
}
