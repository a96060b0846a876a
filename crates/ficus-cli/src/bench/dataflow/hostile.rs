//! Queries that try to run away: how fast they are gone when they are cancelled or their deadline comes, what they take at most, and what small
//! queries of others notice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use ficus_dataflow::Tenant;
use ficus_query::engine::{Engine, RunOptions};
use ficus_storage::Graph;

use super::{Forget, Print, graph, measure, prepare};
use crate::Outcome;
use crate::bench::measure::Times;
use crate::failure::Failure;
use crate::serve::start_executors;

const QUERIES: &str = include_str!("../../../../../tests/fixtures/hostile.txt");
const MANY: &str = "g.V().as('a').V().as('b').V().as('c').math('a * 40000 + b * 200 + c').by(T.id)";

/// Bytes that a query, and all together, may hold.
const MEMORY_LIMIT_BYTES: usize = 256 << 20;

fn queries() -> impl Iterator<Item = (&'static str, String)> {
    let lines = QUERIES.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.filter_map(|line| {
        let mut parts = line.split(" | ");
        Some((parts.next()?, parts.next()?.replace("{many}", MANY)))
    })
}

/// Resident memory of this process.
fn resident_bytes() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split_whitespace().nth(1)?.parse::<usize>().ok());
    pages.unwrap_or(0) * 4096
}

/// Looks at the resident memory until it is dropped.
struct Watch {
    stop: Arc<AtomicBool>,
    /// Since the beginning.
    peak: Arc<AtomicUsize>,
    /// Since a query began.
    query_peak: Arc<AtomicUsize>,
}

impl Watch {
    fn start() -> Watch {
        let watch = Watch { stop: Arc::default(), peak: Arc::default(), query_peak: Arc::default() };
        let (stop, peaks) = (watch.stop.clone(), [watch.peak.clone(), watch.query_peak.clone()]);
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let resident = resident_bytes();
                peaks.iter().for_each(|peak| _ = peak.fetch_max(resident, Ordering::Relaxed));
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        watch
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Between two looks whether everything is released: a client that waits leaves the cores to those that free.
const LOOK: Duration = Duration::from_micros(50);

/// How a query is stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Cancelled,
    Deadline,
}

struct Stopped {
    /// From the moment it was to end until its client was told, its transaction over and its executor free.
    ended: Duration,
    /// Until its memory was back as well.
    released: Duration,
}

/// A run of a query.
struct Run {
    /// None if it ended before it was stopped.
    stopped: Option<Stopped>,
    /// The most that it held on its account.
    accounted_bytes: usize,
}

/// Runs a query for a time and stops it.
fn stop(engine: &Engine, graph: &Arc<Graph>, text: &str, after: Duration, way: Way) -> Result<Run, Failure> {
    let prepared = prepare(text)?;
    let (sender, end) = channel();
    let timeout_ns = (way == Way::Deadline).then_some(after.as_nanos() as u64);
    let account = engine.account(MEMORY_LIMIT_BYTES, Tenant::default());
    let memory = Some(account.clone());
    let options = RunOptions { memory_limit_bytes: MEMORY_LIMIT_BYTES, memory, timeout_ns, ..RunOptions::default() };
    let began = Instant::now();
    // As the server begins them.
    let transaction = if prepared.writes() { graph.begin() } else { graph.begin_reading() };
    let handle = engine.submit(&prepared, transaction, &options, Box::new(Forget(sender)));
    let early = end.recv_timeout(after.saturating_sub(began.elapsed())).is_ok();
    let asked = Instant::now();
    if !early {
        if way == Way::Cancelled {
            handle.cancel();
        }
        // However it ended: at its limits, or as it was told.
        let _ended = end.recv().map_err(|_| Failure::failed(format!("[{text}] ended without saying so")))?;
    }
    let ended = asked.elapsed();
    let accounted_bytes = account.peak_bytes();
    drop((account, options));
    while engine.memory().used_bytes() > 0 || engine.load() > 0 {
        std::thread::sleep(LOOK);
    }
    let stopped = (!early).then(|| Stopped { ended, released: asked.elapsed() });
    Ok(Run { stopped, accounted_bytes })
}

/// A small graph on which all run away, and an engine with little memory.
fn stage() -> Result<(Arc<Graph>, Engine), Failure> {
    let graph = graph(200, 50, |vertex, step| vertex + step + 1)?;
    let settings = crate::serve::EngineSettings {
        queries_memory_bytes: MEMORY_LIMIT_BYTES,
        khop: crate::serve::KHop::Single,
        ..Default::default()
    };
    Ok((graph, start_executors(&settings)?))
}

/// Runs the section.
pub fn run(quick: bool, print: Print<'_>) -> Outcome {
    let (graph, engine) = stage()?;
    let pauses: &[u64] = if quick { &[20] } else { &[1, 10, 40, 100, 250, 600] };
    let base = resident_bytes();
    let watch = Watch::start();
    let (mut ended, mut released) = (Times::default(), Times::default());
    let mut slowest = (Duration::ZERO, "");
    let (mut stopped, mut early) = (0, 0);
    for (name, text) in queries() {
        for pause in pauses {
            for way in [Way::Cancelled, Way::Deadline] {
                watch.query_peak.store(0, Ordering::Relaxed);
                let run = stop(&engine, &graph, &text, Duration::from_millis(*pause), way)?;
                let resident = watch.query_peak.load(Ordering::Relaxed).saturating_sub(base);
                if resident > MEMORY_LIMIT_BYTES / 100 * 105 {
                    let (own, all) = (run.accounted_bytes >> 20, resident >> 20);
                    crate::output::talk(&format!(
                        "large: {name} after {pause} ms: {all} MiB more than at the begin, {own} accounted"
                    ));
                }
                match run.stopped {
                    None => early += 1,
                    Some(times) => {
                        stopped += 1;
                        ended.add(times.ended);
                        released.add(times.released);
                        if times.released > slowest.0 {
                            slowest = (times.released, name);
                        }
                        if times.released > Duration::from_millis(10) {
                            let (ms, of) = (times.released.as_secs_f64() * 1e3, times.ended.as_secs_f64() * 1e3);
                            crate::output::talk(&format!(
                                "slow: {name} after {pause} ms: ended {of:.1} ms, released {ms:.1} ms"
                            ));
                        }
                    }
                }
            }
        }
    }
    let beyond = watch.peak.load(Ordering::Relaxed).saturating_sub(base) as f64 / MEMORY_LIMIT_BYTES as f64;
    drop(watch);
    print(measure("hostile: stopped", "queries", f64::from(stopped), "queries", None))?;
    print(measure("hostile: over their budget first", "queries", f64::from(early), "queries", None))?;
    print(measure("hostile: stop to end", "p50", ended.percentile_us(0.5) / 1e3, "ms", None))?;
    print(measure("hostile: stop to end", "p99", ended.percentile_us(0.99) / 1e3, "ms", Some(10.0)))?;
    print(measure("hostile: stop to full release", "p50", released.percentile_us(0.5) / 1e3, "ms", None))?;
    print(measure("hostile: stop to full release", "p99", released.percentile_us(0.99) / 1e3, "ms", Some(10.0)))?;
    let case = format!("hostile: slowest ({})", slowest.1);
    print(measure(&case, "release", slowest.0.as_secs_f64() * 1e3, "ms", None))?;
    print(measure("hostile: memory / limit", "peak", beyond, "ratio", Some(1.05)))?;
    Ok(())
}

/// Many queries that are cancelled right after their begin.
pub fn leak(quick: bool, print: Print<'_>) -> Outcome {
    let (graph, engine) = stage()?;
    let count = if quick { 20_000 } else { 1_000_000 };
    let prepared = prepare("g.V().repeat(__.both()).emit().path()")?;
    let round = |count: u32| -> Result<Duration, Failure> {
        let began = Instant::now();
        let (sender, ends) = channel();
        for number in 0..count {
            let options = RunOptions { memory_limit_bytes: MEMORY_LIMIT_BYTES, ..RunOptions::default() };
            let handle = engine.submit(&prepared, graph.begin_reading(), &options, Box::new(Forget(sender.clone())));
            handle.cancel();
            // As many under way at once as clients may have.
            if number >= 256 {
                let _ended = ends.recv().map_err(|_| Failure::failed("a cancelled query never ended"))?;
            }
        }
        drop(sender);
        ends.iter().for_each(drop);
        Ok(began.elapsed())
    };
    round(count / 10)?;
    let before = resident_bytes();
    let time = round(count)?;
    let grown = resident_bytes().saturating_sub(before) as f64 / f64::from(1 << 20);
    let case = format!("hostile: {count} cancelled");
    print(measure(&case, "memory growth", grown, "MiB", Some(16.0)))?;
    print(measure(&case, "each", time.as_secs_f64() * 1e6 / f64::from(count), "us", None))?;
    // What the last one held is freed after its end.
    let began = Instant::now();
    while engine.memory().used_bytes() > 0 && began.elapsed() < Duration::from_secs(1) {
        std::thread::yield_now();
    }
    let held = engine.memory().used_bytes() as f64;
    print(measure(&case, "held", held, "bytes", Some(0.0)))?;
    Ok(())
}
