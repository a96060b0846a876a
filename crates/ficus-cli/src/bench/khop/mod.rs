//! The suite `khop`: what C-Graph measures, on Kronecker graphs: many k-hop queries at once, breadth-first searches, growing graphs,
//! users over WebSocket. With `--peers`, other engines answer the same questions in the same run.

mod peers;
mod service;
mod users;
mod versions;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ficus_analytics::programs::{PageRankOptions, page_rank};
use ficus_analytics::question::Common;
use ficus_analytics::{Hops, Place, Projection, ProjectionOptions, Question, Unlimited, Walk, answer};
use ficus_model::{Direction as Way, Value};
use ficus_storage::{Environment, Snapshot, Store, StoreOptions};

use super::measure::{Direction, Measure, Times};
use super::storage::{Folder, Print, load, part, status_bytes, write_csv};
use crate::Outcome;
use crate::failure::Failure;
use crate::kronecker::kronecker;
use crate::output::talk;

/// Sources of the widest pass.
const SOURCES: usize = 512;

/// Passes are repeated so often; the best time counts, as for peers.
const REPETITIONS: usize = 5;

/// A case that peers have as well.
const PAGE_RANK: &str = "20 iterations of PageRank";

/// A part of the suite, which can be run alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Projecting, passes of several widths, searches, users of one process, programs.
    Passes,
    /// What other engines answer as well, and with --peers their answers.
    Peers,
    /// Projections that follow a graph which is written to.
    Versions,
    /// Users over WebSocket. Not of graphs below scale 16.
    Users,
}

/// What is measured.
pub struct Wanted<'a> {
    /// Smaller graphs, and less of them.
    pub quick: bool,
    /// The graphs; empty: those of the suite.
    pub scales: &'a [u32],
    /// The parts; empty: all.
    pub parts: &'a [Part],
    /// A Python with the peers.
    pub peers: Option<&'a Path>,
}

impl Wanted<'_> {
    fn has(&self, part: Part) -> bool {
        self.parts.is_empty() || self.parts.contains(&part)
    }
}

/// Runs the suite.
pub fn run(wanted: &Wanted<'_>, data_dir: Option<PathBuf>, print: Print<'_>) -> Outcome {
    let folder = Folder::new(data_dir)?;
    talk(&format!("working in {}", folder.path.display()));
    let scales: &[u32] = match (wanted.scales, wanted.quick) {
        ([], true) => &[14, 16],
        ([], false) => &[16, 17, 18, 19, 20],
        (given, _) => given,
    };
    for scale in scales {
        let bench = Bench::new(&folder.path, *scale)?;
        if wanted.has(Part::Passes) {
            bench.passes(print)?;
            bench.programs(print)?;
            service::run(&bench, print)?;
        }
        if wanted.has(Part::Peers) {
            let measured = bench.against_peers(print)?;
            if let Some(python) = wanted.peers {
                peers::run(&bench, python, &measured, print)?;
            }
        }
        let Bench { data, store, ids, .. } = bench;
        store.close()?;
        if wanted.has(Part::Versions) {
            versions::run(&folder.path, *scale, &data, &ids, print)?;
        }
        if wanted.has(Part::Users) && *scale >= 16 && (!wanted.scales.is_empty() || [16, 20].contains(scale)) {
            users::run(&folder.path, *scale, &data, &ids, wanted.quick, print)?;
        }
    }
    Ok(())
}

/// A graph, opened and projected.
struct Bench {
    scale: u32,
    store: std::sync::Arc<Store>,
    snapshot: Snapshot,
    projection: Projection,
    /// User ids of the sources: vertices with out edges, drawn by a fixed rule.
    ids: Vec<u64>,
    sources: Vec<Place>,
    csv: PathBuf,
    data: PathBuf,
}

/// What is compared with peers: case, milliseconds, vertices found.
type Measured = Vec<(String, f64, u64)>;

impl Bench {
    fn new(folder: &Path, scale: u32) -> Result<Bench, Failure> {
        let (csv, data) = (folder.join(format!("csv-{scale}")), folder.join(format!("data-{scale}")));
        // Written last: what stands in a folder that stays is not made again.
        let made = csv.join("made");
        if !made.exists() {
            talk(&format!("making a Kronecker graph of scale {scale}, edge factor 16"));
            let edges = kronecker(scale, 16, 1);
            part(folder, &format!("csv-{scale}"))?;
            part(folder, &format!("data-{scale}"))?;
            write_csv(&csv, 1 << scale, &edges)?;
            load(&csv, &data)?;
            std::fs::write(&made, "")?;
        }
        let store = Store::open(StoreOptions::default(), Environment::on_directory(&data)?)?;
        let graph = crate::store::graph(&store, "g")?;
        let snapshot = graph.snapshot();
        let projection =
            Projection::new(&snapshot, &ProjectionOptions::default(), &Unlimited).map_err(Failure::failed)?;
        let (mut ids, mut sources, mut number) = (Vec::new(), Vec::new(), 12_345u64);
        while sources.len() < SOURCES {
            number = number.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            let id = number >> 33 & ((1 << scale) - 1);
            let vertex = snapshot.find_vertex(&Value::Long(id as i64));
            let place = vertex.and_then(|vertex| projection.place(vertex));
            if let Some(place) = place.filter(|place| projection.out().degree(*place) > 0) {
                ids.push(id);
                sources.push(place);
            }
        }
        Ok(Bench { scale, store, snapshot, projection, ids, sources, csv, data })
    }

    fn common(&self) -> Common<'_> {
        Common { projection: &self.projection, direction: Way::Out, walk: Walk::WithinOrSource, allowed: None }
    }

    /// The best time of some passes of the first sources, and the vertices found.
    fn pass(&self, width: usize, hops: Hops) -> Result<(Duration, u64), Failure> {
        let questions: Vec<Question> = self.sources[..width].iter().map(|s| Question::from(*s, hops)).collect();
        let (mut best, mut found) = (Duration::MAX, 0);
        for _ in 0..REPETITIONS {
            let started = Instant::now();
            let answers = answer(self.common(), &questions, &Unlimited).map_err(Failure::failed)?;
            best = best.min(started.elapsed());
            found = answers.iter().map(|answer| answer.count(Walk::WithinOrSource, hops)).sum();
        }
        Ok((best, found))
    }

    /// What the process holds more at most while a pass searches everything.
    fn memory_of_pass(&self, width: usize) -> Result<u64, Failure> {
        // Lets the peak begin at what is held now.
        std::fs::write("/proc/self/clear_refs", "5")?;
        let before = status_bytes("/proc/self/status", "VmRSS:")?;
        let questions: Vec<Question> = self.sources[..width].iter().map(|s| Question::from(*s, Hops::ALL)).collect();
        answer(self.common(), &questions, &Unlimited).map_err(Failure::failed)?;
        Ok(status_bytes("/proc/self/status", "VmHWM:")?.saturating_sub(before))
    }

    /// Times of single searches, and the vertices found in all.
    fn alone(&self, sources: usize, hops: Hops) -> Result<(Times, u64), Failure> {
        let (mut times, mut found) = (Times::default(), 0);
        for source in &self.sources[..sources] {
            let started = Instant::now();
            let answers =
                answer(self.common(), &[Question::from(*source, hops)], &Unlimited).map_err(Failure::failed)?;
            times.add(started.elapsed());
            found += answers[0].count(Walk::WithinOrSource, hops);
        }
        Ok((times, found))
    }

    fn passes(&self, print: Print<'_>) -> Outcome {
        let scale = self.scale;
        let started = Instant::now();
        let again =
            Projection::new(&self.snapshot, &ProjectionOptions::default(), &Unlimited).map_err(Failure::failed)?;
        let rate = again.edge_count() as f64 / started.elapsed().as_secs_f64();
        print(at_least(scale, "projection", "rate", rate, "edges/s", None))?;
        let bytes = again.bytes() as f64 / again.edge_count() as f64;
        print(at_most(scale, "projection", "size", bytes, "bytes/edge", None))?;
        drop(again);
        for width in [10, 50, 100, 200, 350] {
            let time = self.pass(width, Hops(3))?.0;
            print(at_most(scale, &format!("{width} x 3 hops"), "time", ms(time), "ms", None))?;
        }
        let (mut alone, _) = self.alone(64, Hops::ALL)?;
        let single_ms = alone.percentile_us(0.5) / 1e3;
        for width in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512] {
            let time = self.pass(width, Hops::ALL)?.0;
            let case = format!("{width} breadth-first searches");
            print(at_most(scale, &case, "time", ms(time), "ms", None))?;
            if width == SOURCES {
                let bytes = self.memory_of_pass(width)?;
                let target = (scale == 20).then_some(260.0);
                print(at_most(scale, &case, "memory", bytes as f64 / 1e6, "MB", target))?;
            }
            if width == 256 {
                let ratio = ms(time) / (256.0 * single_ms);
                print(at_most(scale, &case, "over single ones", ratio, "ratio", Some(1.0 / 6.0)))?;
            }
        }
        Ok(())
    }

    /// Programs over the whole graph.
    fn programs(&self, print: Print<'_>) -> Outcome {
        let mut best = Duration::MAX;
        for _ in 0..REPETITIONS {
            let started = Instant::now();
            self.page_rank()?;
            best = best.min(started.elapsed());
        }
        print(at_most(self.scale, PAGE_RANK, "time", ms(best), "ms", None))?;
        Ok(())
    }

    /// Twenty iterations, whatever the ranks do meanwhile; the sum of the ranks in millionths.
    fn page_rank(&self) -> Result<u64, Failure> {
        let options = PageRankOptions { tolerance: 0.0, iterations_limit: 20, ..PageRankOptions::default() };
        let outcome = page_rank(&self.projection, &options, &Unlimited).map_err(Failure::failed)?;
        Ok((outcome.ranks.iter().sum::<f64>() * 1e6).round() as u64)
    }

    /// The cases that peers have as well.
    fn against_peers(&self, print: Print<'_>) -> Result<Measured, Failure> {
        let mut measured = Measured::new();
        let passes = [10, 50, 100, 200, 350].map(|width| (width, Hops(3), "x 3 hops"));
        for (width, hops, what) in passes.into_iter().chain([(64, Hops::ALL, "breadth-first searches")]) {
            let (time, found) = self.pass(width, hops)?;
            measured.push((format!("{width} {what}"), ms(time), found));
        }
        for (case, time, _) in &measured {
            print(at_most(self.scale, &format!("{case}, beside peers"), "time", *time, "ms", None))?;
        }
        for (case, sources, hops) in [("3 hops alone", 100, Hops(3)), ("search alone", 20, Hops::ALL)] {
            let (mut times, found) = self.alone(sources, hops)?;
            print(at_most(self.scale, case, "p50", times.percentile_us(0.5) / 1e3, "ms", None))?;
            print(at_most(self.scale, case, "p99", times.percentile_us(0.99) / 1e3, "ms", None))?;
            measured.push((case.to_owned(), times.percentile_us(0.5) / 1e3, found));
        }
        let (mut best, mut sum) = (Duration::MAX, 0);
        for _ in 0..REPETITIONS {
            let started = Instant::now();
            sum = self.page_rank()?;
            best = best.min(started.elapsed());
        }
        measured.push((PAGE_RANK.to_owned(), ms(best), sum));
        Ok(measured)
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn at_least(
    scale: u32,
    case: &str,
    metric: &'static str,
    value: f64,
    unit: &'static str,
    target: Option<f64>,
) -> Measure {
    let case = format!("scale {scale}: {case}");
    Measure { suite: "khop", case, metric, value, unit, target, direction: Direction::AtLeast }
}

fn at_most(
    scale: u32,
    case: &str,
    metric: &'static str,
    value: f64,
    unit: &'static str,
    target: Option<f64>,
) -> Measure {
    let case = format!("scale {scale}: {case}");
    Measure { suite: "khop", case, metric, value, unit, target, direction: Direction::AtMost }
}
