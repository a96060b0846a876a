//! Loading, restarting, scanning, and what a graph takes in memory.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ficus_model::{Direction as Way, Value, VertexId};
use ficus_storage::{Environment, Snapshot, Store, StoreOptions};

use super::{Print, Resident, at_least, at_most, part, status_bytes};
use crate::Outcome;
use crate::failure::Failure;
use crate::kronecker::kronecker;
use crate::output::talk;

/// Scans are repeated so often; the best time counts, for both sides.
const REPETITIONS: usize = 7;

/// The reference: offsets and targets in two vectors.
struct PlainCsr {
    offsets: Vec<u32>,
    targets: Vec<u32>,
}

impl PlainCsr {
    fn new(vertices: usize, edges: &[(u32, u32)]) -> PlainCsr {
        let mut offsets = vec![0u32; vertices + 1];
        edges.iter().for_each(|(source, _)| offsets[*source as usize + 1] += 1);
        for vertex in 0..vertices {
            offsets[vertex + 1] += offsets[vertex];
        }
        PlainCsr { offsets, targets: edges.iter().map(|(_, target)| *target).collect() }
    }

    fn neighbours(&self, vertex: usize) -> &[u32] {
        &self.targets[self.offsets[vertex] as usize..self.offsets[vertex + 1] as usize]
    }
}

pub fn run(folder: &Path, scale: u32, print: Print<'_>) -> Outcome {
    talk(&format!("making a Kronecker graph of scale {scale}, edge factor 16"));
    let edges = kronecker(scale, 16, 1);
    let vertices = 1usize << scale;
    let csv = part(folder, "csv")?;
    write_csv(&csv, vertices, &edges)?;
    let data = part(folder, "kronecker")?;
    let (seconds, peak_bytes) = load(&csv, &data)?;
    print(at_least("bulk load from CSV", "rate", edges.len() as f64 / seconds, "edges/s", Some(2.5e6)))?;

    let before = Resident::now()?;
    let started = Instant::now();
    let store = Store::open(StoreOptions::default(), Environment::on_directory(&data)?)?;
    let graph = crate::store::graph(&store, "g")?;
    let snapshot = graph.snapshot();
    let first = snapshot
        .find_vertex(&Value::Long(1))
        .ok_or_else(|| Failure::failed("the loaded graph has no vertex with id 1"))?;
    let degree = snapshot.degree(first, Way::Out, &[]);
    print(at_most("restart to first answer", "time", started.elapsed().as_secs_f64(), "s", Some(1.0)))?;
    let expected = edges.iter().filter(|(source, _)| *source == 1).count() as u64;
    if (snapshot.edge_count(), degree) != (edges.len() as u64, expected) {
        return Err(Failure::failed(format!(
            "the loaded graph has {} edges and vertex 1 has {degree}, not {} and {expected}",
            snapshot.edge_count(),
            edges.len()
        )));
    }
    touch_everything(&snapshot);
    let grown = before.grown()?;
    print(at_most("memory of a graph", "per edge", grown as f64 / edges.len() as f64, "bytes/edge", Some(24.0)))?;
    print(at_most("peak of the load", "over final", peak_bytes as f64 / grown.max(1) as f64, "ratio", Some(2.0)))?;

    let plain = PlainCsr::new(vertices, &edges);
    scan("neighbour scan, consolidated", &snapshot, &plain, Some(0.8), print)?;
    drop((snapshot, graph));
    store.close()?;
    drop(store);
    with_deltas(folder, vertices, &edges, print)
}

/// Edges per second of a scan of all vertices, of the store and of the plain CSR, in turns.
fn scan(case: &str, snapshot: &Snapshot, plain: &PlainCsr, target: Option<f64>, print: Print<'_>) -> Outcome {
    let (mut ours, mut reference) = (Duration::MAX, Duration::MAX);
    for _ in 0..REPETITIONS {
        let started = Instant::now();
        let mut sum = 0u64;
        for vertex in 0..plain.offsets.len() - 1 {
            sum += plain.neighbours(vertex).iter().map(|target| u64::from(*target)).sum::<u64>();
        }
        std::hint::black_box(sum);
        reference = reference.min(started.elapsed());
        let started = Instant::now();
        let (mut sum, mut count) = (0u64, 0usize);
        snapshot.neighbours(Way::Out, None).visit_all(&mut |_, slice| {
            count += slice.len();
            // As in the reference: the sum of a list, then the sum of lists.
            let mut of_list = 0;
            slice.for_each(|neighbour| of_list += neighbour.0);
            sum += of_list;
        });
        std::hint::black_box(sum);
        ours = ours.min(started.elapsed());
        if count != plain.targets.len() {
            return Err(Failure::failed(format!("{count} neighbours scanned instead of {}", plain.targets.len())));
        }
    }
    let edges = plain.targets.len() as f64;
    print(at_least(case, "plain CSR", edges / reference.as_secs_f64(), "edges/s", None))?;
    print(at_least(case, "store", edges / ours.as_secs_f64(), "edges/s", None))?;
    print(at_least(case, "store / plain CSR", reference.as_secs_f64() / ours.as_secs_f64(), "ratio", target))?;
    Ok(())
}

/// The same scan with one edge in twenty in the overlay.
fn with_deltas(folder: &Path, vertices: usize, edges: &[(u32, u32)], print: Print<'_>) -> Outcome {
    let is_late = |position: usize| position % 20 == 7;
    let early: Vec<(u32, u32)> =
        edges.iter().enumerate().filter(|(position, _)| !is_late(*position)).map(|(_, edge)| *edge).collect();
    let csv = part(folder, "csv")?;
    write_csv(&csv, vertices, &early)?;
    let data = part(folder, "deltas")?;
    load(&csv, &data)?;
    let mut options = StoreOptions::default();
    // The overlay is to stay.
    options.checkpoint_log_bytes = u64::MAX;
    let store = Store::open(options, Environment::on_directory(&data)?)?;
    let graph = crate::store::graph(&store, "g")?;
    let snapshot = graph.snapshot();
    let ids: Vec<VertexId> = (0..vertices as i64)
        .map(|id| snapshot.find_vertex(&Value::Long(id)).ok_or_else(|| Failure::failed(format!("no vertex {id}"))))
        .collect::<Result<_, _>>()?;
    let mut bulk = graph.bulk();
    // In an order that has nothing to do with the vertices, as traffic has.
    let late: Vec<(u32, u32)> =
        edges.iter().enumerate().filter(|(position, _)| is_late(*position)).map(|(_, edge)| *edge).collect();
    for round in 0..997 {
        for (source, target) in late.iter().skip(round).step_by(997) {
            bulk.add_edge("knows", ids[*source as usize], ids[*target as usize], None, Vec::new())?;
        }
    }
    bulk.finish()?;
    let plain = PlainCsr::new(vertices, edges);
    scan("neighbour scan, 5 % in deltas", &graph.snapshot(), &plain, Some(0.5), print)?;
    drop((snapshot, graph));
    store.close()?;
    Ok(())
}

/// Reads every half-edge in both directions, with its edge: so that what is mapped is counted.
fn touch_everything(snapshot: &Snapshot) {
    let mut vertices = Vec::new();
    let mut cursor = ficus_storage::ScanCursor::default();
    let mut halves = Vec::new();
    let mut sum = 0u64;
    let mut more = true;
    while more {
        vertices.clear();
        more = snapshot.scan_vertices(&mut cursor, 4096, &mut vertices);
        for vertex in &vertices {
            let mut cursor = ficus_storage::HalfEdgeCursor::default();
            halves.clear();
            while snapshot.half_edges(*vertex, Way::Both, &[], &mut cursor, 4096, &mut halves) {
                halves.clear();
            }
            sum += halves.iter().map(|half_edge| half_edge.edge.0).sum::<u64>();
            std::hint::black_box(snapshot.vertex_id(*vertex));
        }
    }
    std::hint::black_box(sum);
}

pub fn write_csv(folder: &Path, vertices: usize, edges: &[(u32, u32)]) -> std::io::Result<()> {
    let mut file = std::io::BufWriter::with_capacity(1 << 20, std::fs::File::create(folder.join("people.csv"))?);
    writeln!(file, ":ID,:LABEL")?;
    for vertex in 0..vertices {
        writeln!(file, "{vertex},person")?;
    }
    file.flush()?;
    let mut file = std::io::BufWriter::with_capacity(1 << 20, std::fs::File::create(folder.join("knows.csv"))?);
    writeln!(file, ":START_ID,:END_ID,:TYPE")?;
    for (source, target) in edges {
        writeln!(file, "{source},{target},knows")?;
    }
    file.flush()
}

/// Loads a folder of CSV files in a process of its own: seconds, and bytes in memory at the peak.
pub fn load(csv: &Path, data: &Path) -> Result<(f64, u64), Failure> {
    let started = Instant::now();
    let mut child = Command::new(std::env::current_exe()?)
        .args(["load", "--id-type", "long", "--data-dir"])
        .arg(data)
        .arg(csv)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let status_file = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        if let Some(status) = child.try_wait()? {
            if !status.success() {
                return Err(Failure::failed(format!("ficus load {} ended with {status}", csv.display())));
            }
            return Ok((started.elapsed().as_secs_f64(), peak));
        }
        // Anonymous memory only: pages of files are the operating system's to take back.
        peak = peak.max(status_bytes(&status_file, "RssAnon:").unwrap_or(0));
        std::thread::sleep(Duration::from_millis(10));
    }
}
