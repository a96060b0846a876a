//! The suite `storage`: what the store is measured by, on a Kronecker graph, each figure beside its reference of the same run.
//!
//! The graph is written as CSV and loaded by a process of its own, as a user would do it; then the directory is opened here.

mod causes;
mod commits;
mod graph;
mod reads;
mod supernode;
mod vertices;
mod watched_disk;
mod wire;

use std::path::{Path, PathBuf};

use clap::ValueEnum;
pub(super) use graph::{load, write_csv};

use super::measure::{Direction, Measure};
use crate::Outcome;
use crate::output::talk;

/// Prints a measure.
pub type Print<'a> = &'a mut dyn FnMut(Measure) -> std::io::Result<()>;

/// A part of the suite, which can be run alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Loading a graph, restarting, memory of an edge, scans.
    Graph,
    /// Memory of a vertex with one property.
    Vertices,
    /// Durable commits of 1 and of 64 threads.
    Commits,
    /// Reads beside writes.
    Reads,
    /// A vertex with ten million edges.
    Hub,
    /// Commits and upserts over WebSocket.
    Wire,
}

/// Runs the suite, or some of its parts.
pub fn run(quick: bool, only: &[Part], data_dir: Option<PathBuf>, print: Print<'_>) -> Outcome {
    let folder = Folder::new(data_dir)?;
    let scale = if quick { 16 } else { 20 };
    talk(&format!("working in {}", folder.path.display()));
    for part in Part::value_variants().iter().filter(|part| only.is_empty() || only.contains(part)) {
        match part {
            Part::Graph => graph::run(&folder.path, scale, print)?,
            Part::Vertices => vertices::run(&folder.path, scale, print)?,
            Part::Commits => commits::run(&folder.path, quick, print)?,
            Part::Reads => reads::run(&folder.path, quick, print)?,
            Part::Hub => supernode::run(&folder.path, quick, print)?,
            Part::Wire => wire::run(&folder.path, quick, print)?,
        }
    }
    Ok(())
}

/// A folder that is removed in the end, unless the user named it.
pub(super) struct Folder {
    pub(super) path: PathBuf,
    temporary: bool,
}

impl Folder {
    pub(super) fn new(data_dir: Option<PathBuf>) -> std::io::Result<Folder> {
        let temporary = data_dir.is_none();
        let path = data_dir.unwrap_or_else(|| std::env::temp_dir().join(format!("ficus-bench-{}", std::process::id())));
        std::fs::create_dir_all(&path)?;
        Ok(Folder { path, temporary })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.temporary {
            // What stays is only temporary files; the measures are printed already.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// An empty folder for one part of the suite.
pub(super) fn part(folder: &Path, name: &str) -> std::io::Result<PathBuf> {
    let path = folder.join(name);
    if path.exists() {
        std::fs::remove_dir_all(&path)?;
    }
    std::fs::create_dir_all(&path)?;
    Ok(path)
}

fn at_least(case: &str, metric: &'static str, value: f64, unit: &'static str, target: Option<f64>) -> Measure {
    Measure { suite: "storage", case: case.into(), metric, value, unit, target, direction: Direction::AtLeast }
}

fn at_most(case: &str, metric: &'static str, value: f64, unit: &'static str, target: Option<f64>) -> Measure {
    Measure { suite: "storage", case: case.into(), metric, value, unit, target, direction: Direction::AtMost }
}

/// Bytes of this process that are in memory.
#[derive(Clone, Copy)]
struct Resident {
    anonymous: u64,
    mapped: u64,
}

impl Resident {
    fn now() -> std::io::Result<Resident> {
        let field = |field| status_bytes("/proc/self/status", field);
        Ok(Resident { anonymous: field("RssAnon:")?, mapped: field("RssFile:")? })
    }

    /// What came in since. What the allocator gave back meanwhile, of work done before, does not count against it.
    fn grown(self) -> std::io::Result<u64> {
        let now = Resident::now()?;
        Ok(now.anonymous.saturating_sub(self.anonymous) + now.mapped.saturating_sub(self.mapped))
    }
}

/// A field of a process status, which is in kilobytes.
pub(super) fn status_bytes(file: &str, field: &str) -> std::io::Result<u64> {
    let status = std::fs::read_to_string(file)?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kilobytes.map(|kilobytes| kilobytes * 1024).ok_or_else(|| std::io::Error::other(format!("{file} has no {field}")))
}
