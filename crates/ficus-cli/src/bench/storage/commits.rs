//! Durable commits, against the time of a bare fsync.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ficus_model::VertexId;
use ficus_storage::{Environment, Graph, Store, StoreOptions};

use super::{Print, at_least, at_most, part};
use crate::Outcome;
use crate::bench::measure::Times;
use crate::failure::Failure;

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
    Ok(())
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
