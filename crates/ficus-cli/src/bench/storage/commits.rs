//! Durable commits, against the time of a bare fsync.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ficus_model::VertexId;
use ficus_storage::{DirectoryDisk, Environment, Graph, Store, StoreOptions};

use super::causes::{Commit, log_flushes, shares};
use super::watched_disk::{Watch, WatchedDisk};
use super::{Print, at_least, at_most, part};
use crate::Outcome;
use crate::bench::measure::Times;
use crate::failure::Failure;

/// Vertices that commits put edges between.
const VERTICES: usize = 10_000;

pub fn run(folder: &Path, quick: bool, print: Print<'_>) -> Outcome {
    let time = Duration::from_secs(if quick { 2 } else { 8 });
    let folder = part(folder, "commits")?;
    let watch = Arc::<Watch>::default();
    let disk = WatchedDisk { disk: DirectoryDisk::create(&folder)?, watch: watch.clone() };
    let environment = Environment { disk: Some(Arc::new(disk)), ..Environment::on_directory(&folder)? };
    let store = Store::open(StoreOptions::default(), environment)?;
    let graph = store.create_graph("g")?;
    let vertices = add_vertices(&graph)?;
    // Disks change their speed: what a flush takes is measured on both sides of each load.
    let mut fsyncs = vec![fsync_times(&folder)?];
    for (writers, case) in [(1, "single-edge commits, 1 writer"), (64, "single-edge commits, 64 writers")] {
        watch.take();
        let mut commits = write_for(&graph, &vertices, writers, time)?;
        let spans = watch.take();
        fsyncs.push(fsync_times(&folder)?);
        let fsync_us = fsyncs.iter().rev().take(2).flatten().copied().collect::<Times>().percentile_us(0.5);
        let mut times: Times = commits.iter().map(|commit| commit.time).collect();
        let rate = commits.len() as f64 / time.as_secs_f64();
        let [p50, p99] = [0.5, 0.99].map(|share| times.percentile_us(share) / fsync_us);
        print(at_most(case, "fsync of 4 KiB, p50", fsync_us, "us", None))?;
        print(at_least(case, "rate", rate, "commits/s", (writers > 1).then_some(30_000.0)))?;
        if writers == 1 {
            print(at_least(case, "rate x fsync", rate * fsync_us / 1e6, "ratio", Some(0.7)))?;
        }
        print(at_most(case, "p50", p50, "fsyncs", None))?;
        print(at_most(case, "p99", p99, "fsyncs", (writers > 1).then_some(20.0)))?;
        let mut flushes = log_flushes(&spans);
        for (metric, share) in [("flush of the log, p50", 0.5), ("flush of the log, p99", 0.99)] {
            print(at_most(case, metric, flushes.percentile_us(share) / fsync_us, "fsyncs", None))?;
        }
        for (cause, share) in shares(&mut commits, &spans) {
            print(at_most(case, cause, share * 100.0, "% of the slowest 1 %", None))?;
        }
    }
    drop(graph);
    store.close()?;
    Ok(())
}

/// The times of writing 4 KiB to the end of a file and making it durable.
fn fsync_times(folder: &Path) -> Result<Vec<Duration>, Failure> {
    let mut file = File::create(folder.join("fsync"))?;
    let mut times = Vec::new();
    for repetition in 0..300u64 {
        file.seek(SeekFrom::Start(repetition * 4096))?;
        let started = Instant::now();
        file.write_all(&[repetition as u8; 4096])?;
        file.sync_data()?;
        times.push(started.elapsed());
    }
    std::fs::remove_file(folder.join("fsync"))?;
    Ok(times)
}

fn add_vertices(graph: &Arc<Graph>) -> Result<Vec<VertexId>, Failure> {
    let mut transaction = graph.begin();
    let vertices = (0..VERTICES).map(|_| transaction.add_vertex("person", None)).collect::<Result<Vec<_>, _>>()?;
    transaction.commit()?;
    Ok(vertices)
}

/// Commits of one edge each by so many threads, for a while.
fn write_for(graph: &Arc<Graph>, vertices: &[VertexId], writers: u64, time: Duration) -> Result<Vec<Commit>, Failure> {
    let until = Instant::now() + time;
    let write = |writer: u64| -> Result<Vec<Commit>, Failure> {
        let mut commits = Vec::new();
        let mut number = writer;
        while Instant::now() < until {
            number = number.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            let begun = Instant::now();
            let mut transaction = graph.begin();
            let [source, target] = [number >> 40, number >> 20].map(|place| vertices[place as usize % vertices.len()]);
            transaction.add_edge("knows", source, target, None)?;
            transaction.commit()?;
            commits.push(Commit { begun, time: begun.elapsed() });
        }
        Ok(commits)
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..writers).map(|writer| scope.spawn(move || write(writer))).collect();
        threads.into_iter().try_fold(Vec::new(), |mut all, thread| {
            all.extend(thread.join().map_err(|_| Failure::failed("a writer panicked"))??);
            Ok(all)
        })
    })
}
