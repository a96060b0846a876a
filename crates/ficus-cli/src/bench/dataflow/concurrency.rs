//! More executors, more queries at once, and a foreground query beside others (Banyan, VLDB 2022, §5.4 and §5.5).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ficus_query::engine::{Engine, Prepared};

use super::snb::Snb;
use super::{Print, at_least, measure};
use crate::Outcome;
use crate::bench::measure::Times;
use crate::failure::Failure;
use crate::serve::{EngineSettings, start_executors};

/// What of the distribution of times is told.
const SHARES: [(f64, &str); 7] =
    [(0.05, "p5"), (0.1, "p10"), (0.25, "p25"), (0.5, "p50"), (0.75, "p75"), (0.9, "p90"), (0.99, "p99")];

const TIMEOUT: Duration = Duration::from_secs(30);

fn engine(executors: usize) -> Result<Engine, Failure> {
    start_executors(&EngineSettings { executors, khop: crate::serve::KHop::Single, ..Default::default() })
}

/// Engines with more and more executors, and the network.
pub struct Stage {
    engines: Vec<(usize, Engine)>,
    snb: Snb,
    quick: bool,
}

impl Stage {
    /// Opens the network.
    pub fn open(quick: bool, directory: &Path) -> Result<Stage, Failure> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let counts = (0..).map(|power| 1 << power).take_while(|count| *count <= cores);
        let engines = counts.map(|count| Ok((count, engine(count)?))).collect::<Result<Vec<_>, Failure>>()?;
        let (_, first) = engines.first().ok_or_else(|| Failure::failed("there is no core"))?;
        let snb = Snb::open(directory, first, if quick { 1 } else { 3 }, 1)?;
        Ok(Stage { engines, snb, quick })
    }

    /// The engine with an executor per core.
    fn whole(&self) -> &Engine {
        &self.engines[self.engines.len() - 1].1
    }
}

/// What two clients that ask a query at the same time, each with an executor for itself, get of the machine together, in rounds of one client's time: 2 if
/// the cores have nothing in common. No query on two executors gets more, unless it does less.
fn ceiling(stage: &Stage, set: usize, name: &str, alone: f64, rounds: usize) -> Result<f64, Failure> {
    let (snb, engine) = (&stage.snb, stage.whole());
    let apart = snb.fill(&snb.text(name).gremlin, set, ".with('ficus.spread', false)")?;
    let mut best = f64::INFINITY;
    for _ in 0..rounds {
        let began = Instant::now();
        std::thread::scope(|scope| -> Outcome {
            let ask = || (0..2).try_for_each(|_| snb.run(engine, &apart, TIMEOUT).map(drop));
            let clients = [scope.spawn(ask), scope.spawn(ask)];
            clients
                .into_iter()
                .try_for_each(|client| client.join().map_err(|_| Failure::failed("a client panicked"))?)
        })?;
        best = best.min(began.elapsed().as_secs_f64());
    }
    Ok(4.0 * alone / best)
}

/// Large queries alone, with more and more executors.
pub fn scaling(stage: &Stage, print: Print<'_>) -> Outcome {
    let Stage { snb, engines, quick } = stage;
    let rounds = if *quick { 2 } else { 4 };
    let mut product = (0.0, 0.0, 0);
    for name in ["IC3", "IC5", "IC6", "IC9", "IC10", "IC12"] {
        let mut sums = vec![0.0; engines.len()];
        let mut ceilings = 0.0;
        for set in 0..snb.sets.len() {
            let prepared = snb.fill(&snb.text(name).gremlin, set, "")?;
            let mut best = vec![f64::INFINITY; engines.len()];
            for _ in 0..rounds {
                for ((_, engine), best) in engines.iter().zip(&mut best) {
                    *best = best.min(snb.run(engine, &prepared, TIMEOUT)?.time.as_secs_f64());
                }
            }
            best.iter().zip(&mut sums).for_each(|(best, sum)| *sum += best);
            ceilings += ceiling(stage, set, name, best[0], rounds)?;
        }
        for ((count, _), sum) in engines.iter().zip(&sums) {
            let case = format!("executors: {name} on {count}");
            print(measure(&case, "time", sum / snb.sets.len() as f64 * 1e3, "ms", None))?;
        }
        if engines.len() > 1 {
            let ratio = sums[0] / sums[1];
            let ceiling = ceilings / snb.sets.len() as f64;
            product = (product.0 + ratio.ln(), product.1 + ceiling.ln(), product.2 + 1);
            let case = format!("executors: {name}");
            print(at_least(&case, "one / two", ratio, "ratio", Some(1.8)))?;
            print(at_least(&case, "two queries apart / one", ceiling, "ratio", None))?;
        }
    }
    if product.2 > 0 {
        let mean = |sum: f64| (sum / f64::from(product.2)).exp();
        print(at_least("executors: all of them", "one / two", mean(product.0), "ratio", Some(1.8)))?;
        print(at_least("executors: all of them", "two queries apart / one", mean(product.1), "ratio", None))?;
    }
    Ok(())
}

/// Clients that each ask one query after the other until they are dropped.
struct Clients {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
}

impl Clients {
    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Starts clients within a scope; each begins at another question.
fn clients<'scope, 'env>(
    scope: &'scope std::thread::Scope<'scope, 'env>,
    snb: &'env Snb,
    engine: &'env Engine,
    questions: &'env [Prepared],
    count: usize,
) -> Clients {
    let clients = Clients { stop: Arc::default(), done: Arc::default() };
    for number in 0..count {
        let (stop, done) = (clients.stop.clone(), clients.done.clone());
        scope.spawn(move || {
            let mut next = number;
            while !stop.load(Ordering::Relaxed) {
                if snb.run(engine, &questions[next % questions.len()], TIMEOUT).is_ok() {
                    done.fetch_add(1, Ordering::Relaxed);
                }
                next += 1;
            }
        });
    }
    clients
}

/// IC6 with one set of parameters, more and more at once.
pub fn width(stage: &Stage, print: Print<'_>) -> Outcome {
    let (snb, engine) = (&stage.snb, stage.whole());
    let time = Duration::from_millis(if stage.quick { 300 } else { 2_500 });
    let question = [snb.fill(&snb.text("IC6").gremlin, 0, "")?];
    let mut rates = Vec::new();
    let widths = [1, 2, 4, 8, 16, 32];
    // In turn and several times: the machine's speed changes.
    let mut done = [0u64; 6];
    for _ in 0..3 {
        for (width, done) in widths.iter().zip(&mut done) {
            *done += std::thread::scope(|scope| {
                let clients = clients(scope, snb, engine, &question, *width);
                std::thread::sleep(time / 10);
                let before = clients.done.load(Ordering::Relaxed);
                std::thread::sleep(time);
                let after = clients.done.load(Ordering::Relaxed);
                clients.stop();
                after - before
            });
        }
    }
    for (width, done) in widths.iter().zip(done) {
        let rate = done as f64 / (time.as_secs_f64() * 3.0);
        rates.push(rate);
        print(at_least(&format!("width: IC6, W = {width}"), "rate", rate, "queries/s", None))?;
    }
    print(at_least("width: IC6", "W = 32 / W = 2", rates[5] / rates[1], "ratio", Some(0.98)))?;
    Ok(())
}

/// A query of each of these in the foreground, beside four clients of small and of large ones.
pub fn foreground(stage: &Stage, print: Print<'_>) -> Outcome {
    let (snb, engine) = (&stage.snb, stage.whole());
    let count = if stage.quick { 60 } else { 400 };
    let fill = |name: &str| -> Result<Vec<Prepared>, Failure> {
        (0..snb.sets.len()).map(|set| snb.fill(&snb.text(name).gremlin, set, "")).collect()
    };
    for (name, small, large) in [("IC1", "IC10", "IC9"), ("IC2", "IC2", "IC5")] {
        let question = snb.fill(&snb.text(name).gremlin, 0, "")?;
        let mut medians = Vec::new();
        let behind = [("nothing", Vec::new()), (small, fill(small)?), (large, fill(large)?)];
        for (beside, questions) in &behind {
            let mut times = Times::default();
            std::thread::scope(|scope| -> Outcome {
                let clients = clients(scope, snb, engine, questions, if questions.is_empty() { 0 } else { 4 });
                let began = Instant::now();
                for number in 0..count + count / 10 {
                    let run = snb.run(engine, &question, TIMEOUT);
                    if number >= count / 10 {
                        times.add(run.inspect_err(|_| clients.stop())?.time);
                    }
                    if began.elapsed() > Duration::from_secs(12) {
                        break;
                    }
                }
                clients.stop();
                Ok(())
            })?;
            let case = format!("foreground: {name} beside 4 of {beside}");
            for (share, metric) in SHARES {
                print(measure(&case, metric, times.percentile_us(share) / 1e3, "ms", None))?;
            }
            let p95 = times.percentile_us(0.95) / 1e3;
            print(measure(&case, "p95", p95, "ms", None))?;
            medians.push(p95);
        }
        let case = format!("foreground: {name} beside {large} / beside {small}");
        print(measure(&case, "p95", medians[2] / medians[1], "ratio", Some(1.1)))?;
    }
    Ok(())
}
