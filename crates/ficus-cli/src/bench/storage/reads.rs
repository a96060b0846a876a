//! What reads cost while writes go on at full speed.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ficus_model::{Direction as Way, VertexId};
use ficus_storage::{Environment, Graph, Store, StoreOptions};

use super::{Print, at_least, at_most, part};
use crate::Outcome;
use crate::bench::measure::Times;
use crate::failure::Failure;
use crate::kronecker::kronecker;

/// Who writes beside the reads: threads, and edges of each of their commits.
const WRITE_LOADS: [(&str, u64, u64); 3] = [
    ("2-hop reads beside 1 writer", 1, 100),
    ("2-hop reads beside 8 writers of single edges", 8, 1),
    ("2-hop reads beside 64 writers of single edges", 64, 1),
];

/// Two-hop reads of one thread over all vertices, first alone, then beside writers that commit edges between the same vertices without a
/// pause. Readers go over one edge label, and writers add edges of another: the reads alone are those before and after the writes, since a shared
/// machine changes its speed. Or they go over all labels, and read what is added as well: then the reads alone are those of the graph as the
/// writers left it, consolidated, which has more to read than before.
pub fn run(folder: &Path, quick: bool, print: Print<'_>) -> Outcome {
    let time = Duration::from_secs(if quick { 2 } else { 8 });
    let folder = part(folder, "beside")?;
    let store = Store::open(StoreOptions::default(), Environment::on_directory(&folder)?)?;
    let graph = store.create_graph("g")?;
    let mut bulk = graph.bulk();
    let vertices = (0..1 << 14).map(|_| bulk.add_vertex("person", None, Vec::new())).collect::<Result<Vec<_>, _>>()?;
    for (source, target) in kronecker(14, 16, 3) {
        bulk.add_edge("knows", vertices[source as usize], vertices[target as usize], None, Vec::new())?;
    }
    bulk.finish()?;
    // Roots of middling degree: the tail of the distribution is to come from disturbances, not from hubs.
    let snapshot = graph.snapshot();
    let is_root = |vertex: &VertexId| (4..=8).contains(&snapshot.degree(*vertex, Way::Out, &[]));
    let roots: Vec<VertexId> = vertices.iter().copied().filter(is_root).collect();
    drop(snapshot);
    for (case, writers, batch) in WRITE_LOADS {
        for (what, label) in [("", Some("knows")), (", of what is written too", None)] {
            let case = format!("{case}{what}");
            store.consolidate()?;
            let mut idle = Reads::default();
            idle.read_for(&graph, &roots, label, time);
            if label.is_none() {
                print(at_most(&case, "p99 before the writes", idle.times.percentile_us(0.99), "us", None))?;
                idle = Reads::default();
            }
            let (stop, mut busy) = (AtomicBool::new(false), Reads::default());
            let written = std::thread::scope(|scope| {
                let write = |writer| write_until(&graph, &vertices, writer, batch, &stop);
                let threads: Vec<_> = (0..writers).map(|writer| scope.spawn(move || write(writer))).collect();
                busy.read_for(&graph, &roots, label, time);
                stop.store(true, Ordering::Relaxed);
                threads.into_iter().try_fold(0, |sum, thread| {
                    Ok::<u64, Failure>(sum + thread.join().map_err(|_| Failure::failed("a writer panicked"))??)
                })
            })?;
            store.consolidate()?;
            idle.read_for(&graph, &roots, label, time);
            let [idle_us, busy_us] = [&mut idle, &mut busy].map(|reads| reads.times.percentile_us(0.99));
            print(at_least(&case, "written", written as f64 / time.as_secs_f64(), "edges/s", None))?;
            print(at_most(&case, "preempted", busy.preempted(), "% of reads", None))?;
            print(at_most(&case, "p50 idle", idle.times.percentile_us(0.5), "us", None))?;
            print(at_most(&case, "p50 beside writes", busy.times.percentile_us(0.5), "us", None))?;
            print(at_most(&case, "p99 idle", idle_us, "us", None))?;
            print(at_most(&case, "p99 beside writes", busy_us, "us", None))?;
            print(at_most(&case, "p99 / p99 idle", busy_us / idle_us, "ratio", Some(1.3)))?;
        }
    }
    drop(graph);
    store.close()?;
    Ok(())
}

/// Commits of so many edges each until told to stop; returns the number of edges.
fn write_until(
    graph: &Arc<Graph>,
    vertices: &[VertexId],
    writer: u64,
    batch: u64,
    stop: &AtomicBool,
) -> Result<u64, Failure> {
    let (mut count, mut place) = (0u64, writer * 7);
    while !stop.load(Ordering::Relaxed) {
        let mut transaction = graph.begin();
        for _ in 0..batch {
            (count, place) = (count + 1, place + 1);
            let [source, target] =
                [place * 7919, place * 104_729].map(|place| vertices[place as usize % vertices.len()]);
            transaction.add_edge("writes", source, target, None)?;
        }
        transaction.commit()?;
    }
    Ok(count)
}

/// Reads of one thread.
#[derive(Default)]
struct Reads {
    times: Times,
    count: u64,
    /// How often the thread had to leave its processor to another one meanwhile.
    preemptions: u64,
}

impl Reads {
    fn read_for(&mut self, graph: &Arc<Graph>, roots: &[VertexId], label: Option<&str>, time: Duration) {
        let preemptions = preemptions();
        let until = Instant::now() + time;
        let mut position = 0;
        while Instant::now() < until {
            let started = Instant::now();
            let snapshot = graph.snapshot();
            let label = label.and_then(|label| snapshot.label_id(label));
            let (mut nearby, mut sum) = (Vec::new(), 0u64);
            snapshot
                .visit_neighbours(roots[position % roots.len()], Way::Out, label, &mut |vertex| nearby.push(vertex));
            for vertex in nearby {
                snapshot.visit_neighbours(vertex, Way::Out, label, &mut |vertex| sum += vertex.0);
            }
            std::hint::black_box(sum);
            self.times.add(started.elapsed());
            position += 1;
        }
        self.count += position as u64;
        self.preemptions += self::preemptions() - preemptions;
    }

    /// In percent of the reads; more than one of them is in p99.
    fn preempted(&self) -> f64 {
        self.preemptions as f64 * 100.0 / self.count.max(1) as f64
    }
}

/// How often this thread had to leave its processor to another one; 0 where the system does not tell.
fn preemptions() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let count = status.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}
