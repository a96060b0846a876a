//! Small queries beside large ones: clients that each ask one after the other, some small questions, some large.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use ficus_dataflow::Tenant;
use ficus_query::engine::{Engine, Prepared, RunOptions};
use ficus_storage::Graph;

use super::{Forget, Print, at_least, graph, measure, prepare};
use crate::Outcome;
use crate::bench::measure::Times;
use crate::failure::Failure;
use crate::serve::start_executors;

/// Clients of each kind.
const CLIENTS: usize = 16;

/// Different questions of each kind.
const QUESTIONS: usize = 64;

struct Load {
    engine: Arc<Engine>,
    graph: Arc<Graph>,
    small: Arc<Vec<Prepared>>,
    large: Arc<Vec<Prepared>>,
}

/// What clients of one kind saw.
struct Seen {
    rate: f64,
    times: Times,
}

impl Load {
    /// Runs clients for a time; `tenants` tells whether each kind is a tenant of its own.
    fn run(&self, small: usize, large: usize, tenants: bool, time: Duration) -> Result<(Seen, Seen), Failure> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut clients = Vec::new();
        for number in 0..small + large {
            let is_large = number >= small;
            let (engine, graph, stop) = (self.engine.clone(), self.graph.clone(), stop.clone());
            let questions = if is_large { self.large.clone() } else { self.small.clone() };
            let options =
                RunOptions { tenant: Tenant::numbered(u64::from(tenants && is_large)), ..RunOptions::default() };
            clients.push(std::thread::spawn(move || {
                let (sender, end) = channel();
                let mut times = Vec::new();
                let mut next = number * 7;
                while !stop.load(Ordering::Relaxed) {
                    let question = &questions[next % questions.len()];
                    next += 1;
                    let began = Instant::now();
                    engine.submit(question, graph.begin_reading(), &options, Box::new(Forget(sender.clone())));
                    match end.recv() {
                        Ok(Ok(())) => times.push(began.elapsed()),
                        ended => return Err(Failure::failed(format!("a query of the load ended with {ended:?}"))),
                    }
                }
                Ok((is_large, times))
            }));
        }
        std::thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
        let began = Instant::now();
        let mut seen = [(0, Times::default()), (0, Times::default())];
        for client in clients {
            let (is_large, times) = client.join().map_err(|_| Failure::failed("a client of the load failed"))??;
            let own = &mut seen[usize::from(is_large)];
            own.0 += times.len();
            times.into_iter().for_each(|time| own.1.add(time));
        }
        // The last queries of the large ones may outlast the time.
        let _ = began;
        let [small, large] = seen.map(|(count, times)| Seen { rate: count as f64 / time.as_secs_f64(), times });
        Ok((small, large))
    }
}

/// Runs the section.
pub fn run(quick: bool, print: Print<'_>) -> Outcome {
    let vertices = if quick { 5_000 } else { 50_000 };
    let degree = 20;
    let mixed = |vertex: usize, step: usize| {
        ((vertex * degree + step) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29) as usize
    };
    let graph = graph(vertices, degree, mixed)?;
    let settings = crate::serve::EngineSettings { khop: crate::serve::KHop::Single, ..Default::default() };
    let engine = Arc::new(start_executors(&settings)?);
    let ask = |text: &dyn Fn(usize) -> String| {
        (0..QUESTIONS).map(|number| prepare(&text(number * 977 % vertices))).collect::<Result<Vec<_>, _>>()
    };
    let small = ask(&|id| format!("g.V({id}L).out('knows').values('name').fold()"))?;
    let large = ask(&|id| {
        format!(
            "g.V({id}L).out('knows').out('knows').out('knows').dedup().order().by('name', Order.desc).limit(20).values('name')"
        )
    })?;
    let load = Load { engine, graph, small: Arc::new(small), large: Arc::new(large) };
    let time = Duration::from_millis(if quick { 700 } else { 8_000 });
    // For the caches.
    load.run(CLIENTS, 2, false, time / 4)?;
    let (mut alone, _) = load.run(CLIENTS, 0, false, time)?;
    let (_, mut large_alone) = load.run(0, CLIENTS, false, time)?;
    print(at_least("isolation: small alone", "rate", alone.rate, "queries/s", None))?;
    print(measure("isolation: small alone", "p99", alone.times.percentile_us(0.99) / 1e3, "ms", None))?;
    print(at_least("isolation: large alone", "rate", large_alone.rate, "queries/s", None))?;
    print(measure("isolation: large alone", "p50", large_alone.times.percentile_us(0.5) / 1e3, "ms", None))?;
    for (tenants, name) in [(false, "one tenant"), (true, "two tenants")] {
        let (mut beside, mut large) = load.run(CLIENTS, CLIENTS, tenants, time)?;
        let case = format!("isolation: small beside large, {name}");
        print(at_least(&case, "rate", beside.rate, "queries/s", None))?;
        print(at_least(&case, "rate / alone", beside.rate / alone.rate, "ratio", Some(0.45)))?;
        let (own, other) = (beside.times.percentile_us(0.99), alone.times.percentile_us(0.99));
        print(measure(&case, "p99", own / 1e3, "ms", None))?;
        print(measure(&case, "p99 / alone", own / other, "ratio", Some(3.0)))?;
        let case = format!("isolation: large beside small, {name}");
        print(at_least(&case, "rate / alone", large.rate / large_alone.rate, "ratio", None))?;
        print(measure(&case, "p99", large.times.percentile_us(0.99) / 1e3, "ms", None))?;
    }
    let (mut few, _) = load.run(CLIENTS, 4, false, time)?;
    let (four, other) = (few.times.percentile_us(0.95), alone.times.percentile_us(0.95));
    print(measure("isolation: small beside 4 large", "p95 / alone", four / other, "ratio", None))?;
    Ok(())
}
