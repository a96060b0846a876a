//! Durable commits, against the time of a bare fsync; and what reads cost while writes go on at full speed.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
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

/// Vertices that commits put edges between.
const VERTICES: usize = 10_000;

pub fn run(folder: &Path, quick: bool, print: Print<'_>) -> Outcome {
    let seconds = Duration::from_secs(if quick { 2 } else { 8 });
    let folder = part(folder, "commits")?;
    let fsync = fsync_time(&folder)?;
    print(at_most("fsync of 4 KiB", "p50", fsync.as_secs_f64() * 1e6, "us", None))?;
    let store = Store::open(StoreOptions::default(), Environment::on_directory(&folder)?)?;
    let graph = store.create_graph("g")?;
    let vertices = add_vertices(&graph)?;
    let mut one = write_for(&graph, &vertices, 1, seconds)?;
    let rate = one.count as f64 / seconds.as_secs_f64();
    print(at_least("single-edge commits, 1 writer", "rate", rate, "commits/s", None))?;
    let share = rate * fsync.as_secs_f64();
    print(at_least("single-edge commits, 1 writer", "rate x fsync", share, "ratio", Some(0.7)))?;
    print(at_most("single-edge commits, 1 writer", "p99", one.times.percentile_us(0.99), "us", None))?;
    let mut many = write_for(&graph, &vertices, 64, seconds)?;
    let rate = many.count as f64 / seconds.as_secs_f64();
    print(at_least("single-edge commits, 64 writers", "rate", rate, "commits/s", Some(30_000.0)))?;
    let p99 = many.times.percentile_us(0.99) / (fsync.as_secs_f64() * 1e6);
    print(at_most("single-edge commits, 64 writers", "p99", p99, "fsyncs", Some(20.0)))?;
    drop(graph);
    store.close()?;
    drop(store);
    reads_beside_writes(&folder, seconds, print)
}

/// The median time of writing 4 KiB to the end of a file and making it durable.
fn fsync_time(folder: &Path) -> Result<Duration, Failure> {
    let mut file = File::create(folder.join("fsync"))?;
    let mut times = Vec::new();
    for repetition in 0..300u64 {
        file.seek(SeekFrom::Start(repetition * 4096))?;
        let started = Instant::now();
        file.write_all(&[repetition as u8; 4096])?;
        file.sync_data()?;
        times.push(started.elapsed());
    }
    times.sort_unstable();
    std::fs::remove_file(folder.join("fsync"))?;
    Ok(times[times.len() / 2])
}

fn add_vertices(graph: &Arc<Graph>) -> Result<Vec<VertexId>, Failure> {
    let mut transaction = graph.begin();
    let vertices = (0..VERTICES).map(|_| transaction.add_vertex("person", None)).collect::<Result<Vec<_>, _>>()?;
    transaction.commit()?;
    Ok(vertices)
}

struct Written {
    count: u64,
    times: Times,
}

/// Commits of one edge each by so many threads, for a while.
fn write_for(graph: &Arc<Graph>, vertices: &[VertexId], writers: u64, time: Duration) -> Result<Written, Failure> {
    let until = Instant::now() + time;
    let write = |writer: u64| -> Result<Vec<Duration>, Failure> {
        let mut times = Vec::new();
        let mut number = writer;
        while Instant::now() < until {
            number = number.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            let started = Instant::now();
            let mut transaction = graph.begin();
            let [source, target] = [number >> 40, number >> 20].map(|place| vertices[place as usize % vertices.len()]);
            transaction.add_edge("knows", source, target, None)?;
            transaction.commit()?;
            times.push(started.elapsed());
        }
        Ok(times)
    };
    let mut written = Written { count: 0, times: Times::default() };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..writers).map(|writer| scope.spawn(move || write(writer))).collect();
        for thread in threads {
            let times = thread.join().map_err(|_| Failure::failed("a writer panicked"))??;
            written.count += times.len() as u64;
            times.into_iter().for_each(|time| written.times.add(time));
        }
        Ok(written)
    })
}

/// Who writes beside the reads: threads, and edges of each of their commits.
const WRITE_LOADS: [(&str, u64, u64); 3] = [
    ("2-hop reads beside 1 writer", 1, 100),
    ("2-hop reads beside 8 writers of single edges", 8, 1),
    ("2-hop reads beside 64 writers of single edges", 64, 1),
];

/// Two-hop reads of one thread over all vertices, first alone, then beside writers that commit edges between the same vertices without a
/// pause.
fn reads_beside_writes(folder: &Path, time: Duration, print: Print<'_>) -> Outcome {
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
        store.consolidate()?;
        let idle = read_for(&graph, &roots, time).percentile_us(0.99);
        let (stop, mut busy) = (AtomicBool::new(false), Times::default());
        let written = std::thread::scope(|scope| {
            let write = |writer| write_until(&graph, &vertices, writer, batch, &stop);
            let threads: Vec<_> = (0..writers).map(|writer| scope.spawn(move || write(writer))).collect();
            busy = read_for(&graph, &roots, time);
            stop.store(true, Ordering::Relaxed);
            threads.into_iter().try_fold(0, |sum, thread| {
                Ok::<u64, Failure>(sum + thread.join().map_err(|_| Failure::failed("a writer panicked"))??)
            })
        })?;
        let busy = busy.percentile_us(0.99);
        print(at_least(case, "written", written as f64 / time.as_secs_f64(), "edges/s", None))?;
        print(at_most(case, "p99 idle", idle, "us", None))?;
        print(at_most(case, "p99 beside writes", busy, "us", None))?;
        print(at_most(case, "p99 / p99 idle", busy / idle, "ratio", Some(1.3)))?;
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

fn read_for(graph: &Arc<Graph>, roots: &[VertexId], time: Duration) -> Times {
    let mut times = Times::default();
    let until = Instant::now() + time;
    let mut position = 0;
    while Instant::now() < until {
        let started = Instant::now();
        let snapshot = graph.snapshot();
        let label = snapshot.label_id("knows");
        let (mut nearby, mut sum) = (Vec::new(), 0u64);
        snapshot.visit_neighbours(roots[position % roots.len()], Way::Out, label, &mut |vertex| nearby.push(vertex));
        for vertex in nearby {
            snapshot.visit_neighbours(vertex, Way::Out, label, &mut |vertex| sum += vertex.0);
        }
        std::hint::black_box(sum);
        times.add(started.elapsed());
        position += 1;
    }
    times
}
