//! The suite `storage`: what the store is measured by, on a Kronecker graph, each figure beside its reference of the same run.
//!
//! The graph is written as CSV and loaded by a process of its own, as a user would do it; then the directory is opened here.

mod commits;
mod graph;
mod supernode;
mod wire;

use std::path::{Path, PathBuf};

pub(super) use graph::{load, write_csv};

use super::measure::{Direction, Measure};
use crate::Outcome;
use crate::output::talk;

/// Prints a measure.
pub type Print<'a> = &'a mut dyn FnMut(Measure) -> std::io::Result<()>;

/// Runs the suite.
pub fn run(quick: bool, data_dir: Option<PathBuf>, print: Print<'_>) -> Outcome {
    let folder = Folder::new(data_dir)?;
    let scale = if quick { 16 } else { 20 };
    talk(&format!("working in {}", folder.path.display()));
    graph::run(&folder.path, scale, print)?;
    commits::run(&folder.path, quick, print)?;
    supernode::run(&folder.path, quick, print)?;
    wire::run(&folder.path, quick, print)
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
fn status_bytes(file: &str, field: &str) -> std::io::Result<u64> {
    let status = std::fs::read_to_string(file)?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kilobytes.map(|kilobytes| kilobytes * 1024).ok_or_else(|| std::io::Error::other(format!("{file} has no {field}")))
}
