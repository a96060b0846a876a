//! Reads every stored file of a data directory and explains it, without changing anything: `ficus admin check`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::archive::{RESTORING_MARK, explain_mark};
use crate::base::is_base_file;
use crate::checkpoint::{UNFINISHED_SUFFIX, check_checkpoint, file_name, list_checkpoints, load_what_is_sound};
use crate::committer::State;
use crate::environment::Disk;
use crate::log::{self, LogPosition, SPARE_NAME, check_log, read_log};
use crate::recovery::{check_reach, replay};
use crate::shortage::ROOM_NAME;
use crate::{DirectoryDisk, Snapshot, Store, StoreError};

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finding {
    /// As it should be.
    Good,
    /// A crash leaves this behind; the next start mends it and nothing acknowledged is lost.
    Harmless,
    /// The store will not start, or something is lost.
    Bad,
}

/// What was found in one file, or in what the files say together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileReport {
    /// The file, or `state` for all of them together.
    pub file: String,
    /// How bad it is.
    pub finding: Finding,
    /// What is in it, or what is wrong and where.
    pub text: String,
}

/// A graph that keeps all rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphReport {
    /// Its name.
    pub graph: String,
    /// Vertices in it.
    pub vertices: u64,
    /// Edges in it.
    pub edges: u64,
}

/// What was found in a data directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreReport {
    /// File by file.
    pub files: Vec<FileReport>,
    /// The graphs that are sound, in the order they were made.
    pub graphs: Vec<GraphReport>,
}

impl StoreReport {
    /// The worst of all findings.
    pub fn worst(&self) -> Finding {
        self.files.iter().map(|file| file.finding).max().unwrap_or(Finding::Good)
    }

    fn add(&mut self, file: impl Into<String>, finding: Finding, text: impl Into<String>) {
        self.files.push(FileReport { file: file.into(), finding, text: text.into() });
    }
}

impl Store {
    /// Reads every stored file of a data directory and explains it. Changes nothing, but needs the store to be closed. The directory
    /// may be read-only.
    ///
    /// Errors: `Locked` if a process has the directory open, `Io` if it cannot be read. What is wrong with the files is in
    /// the report.
    pub fn check(directory: impl AsRef<Path>) -> Result<StoreReport, StoreError> {
        let disk = DirectoryDisk::existing(directory.as_ref())?;
        let _lock = disk.lock_to_read("a check of the store")?;
        check_disk(&(Arc::new(disk) as Arc<dyn Disk>))
    }
}

/// Reads every stored file of a disk and explains it.
pub(crate) fn check_disk(disk: &Arc<dyn Disk>) -> Result<StoreReport, StoreError> {
    let mut report = StoreReport::default();
    let mut names = disk.list().map_err(|error| StoreError::io(format!("listing {}", disk.location()), error))?;
    names.sort_unstable();
    for name in &names {
        if name == SPARE_NAME {
            let what = "a file of zeros, made ahead for the commit log; the next start removes it";
            report.add(name, Finding::Harmless, what);
        } else if name == ROOM_NAME {
            report.add(name, Finding::Harmless, "written to see whether the disk has room; the next start removes it");
        } else if name.ends_with(UNFINISHED_SUFFIX) {
            report.add(name, Finding::Harmless, "a checkpoint that was not finished; the next start removes it");
        } else if let Some(what) = explain_mark(name) {
            let is_restoring = name == RESTORING_MARK;
            report.add(name, if is_restoring { Finding::Bad } else { Finding::Harmless }, what);
        } else if !(is_base_file(name)
            || name.ends_with(".ficus") && (name.starts_with("log-") || name.starts_with("checkpoint-")))
        {
            report.add(name, Finding::Harmless, "not a file of the store; it is left alone");
        }
    }
    let mut newest = None;
    for position in list_checkpoints(disk.as_ref())? {
        let name = file_name(position);
        match check_checkpoint(disk.as_ref(), &name) {
            Ok(found) => {
                newest = newest.or(Some((position, found.store)));
                let text = format!(
                    "a whole checkpoint at log position {}: {} graphs, {} vertices, {} edges in {} blocks, {} bytes",
                    found.position, found.graphs, found.vertices, found.edges, found.blocks, found.bytes
                );
                report.add(name, Finding::Good, text);
            }
            Err(error) => report.add(name, Finding::Bad, error.to_string()),
        }
    }
    match check_log(disk.as_ref(), newest.map(|(_, store)| store)) {
        Ok(found) => {
            let (files, records, bytes, tail) = (found.files, found.records, found.bytes, found.tail.0);
            let text = format!("{files} log files with {records} records of {bytes} bytes up to log position {tail}");
            report.add("the commit log", Finding::Good, text);
            let checkpoint = newest.map_or(LogPosition(0), |(position, _)| position);
            if let Err(error) = check_reach(found.start, found.tail, checkpoint) {
                report.add("the commit log", Finding::Bad, error.to_string());
            }
            match (found.torn, found.unfinished) {
                (Some((_, what)), Some(start)) => {
                    let text = format!("it was being made and has no record ({what}); the next start makes it again");
                    report.add(log::file_name(start.0), Finding::Harmless, text);
                }
                (Some((bytes, what)), None) => {
                    let text =
                        format!("{bytes} bytes of an unfinished write at the end ({what}); the next start cuts them");
                    report.add("the commit log", Finding::Harmless, text);
                }
                (None, _) => {}
            }
        }
        Err(error) => report.add("the commit log", Finding::Bad, error.to_string()),
    }
    if report.worst() != Finding::Bad {
        match check_state(disk, newest.map(|(position, _)| position), &mut report) {
            Ok(()) => {}
            Err(error) => report.add("state", Finding::Bad, error.to_string()),
        }
    }
    Ok(report)
}

/// Restores the state in memory and checks its rules.
fn check_state(disk: &Arc<dyn Disk>, newest: Option<LogPosition>, report: &mut StoreReport) -> Result<(), StoreError> {
    let mut state = match newest {
        Some(position) => load_what_is_sound(disk.as_ref(), position)?.0,
        None => State::default(),
    };
    state.disk = Some(disk.clone());
    let mut files = FilesCheck::default();
    files.check(&state, report);
    // What is damaged cannot be read, nor what follows from it.
    for (number, error) in &files.damaged {
        state.lose(*number, error);
    }
    files.lost(&state, report);
    let from = LogPosition(newest.map_or(0, |position| position.0 + 1));
    read_log(disk.as_ref(), from, &mut |position, bytes| replay(&mut state, position, bytes))?;
    files.check(&state, report);
    files.lost(&state, report);
    for (number, graph) in &state.graphs {
        if files.damaged.contains_key(number) {
            continue;
        }
        let (snapshot, name) = (Snapshot::new(graph.root.clone()), named(&graph.name));
        match snapshot.check_invariants() {
            Ok(()) => {
                let (vertices, edges) = (snapshot.vertex_count(), snapshot.edge_count());
                report.add(name, Finding::Good, format!("{vertices} vertices and {edges} edges, all rules kept"));
                report.graphs.push(GraphReport { graph: graph.name.to_string(), vertices, edges });
            }
            Err(rule) => report.add(name, Finding::Bad, rule),
        }
    }
    Ok(())
}

/// Which files of bases and indexes were read. A damaged one must not be read as what it was: neither by records that are applied, nor by
/// those who look at the rules.
#[derive(Default)]
struct FilesCheck {
    /// The files that the last check of a graph read.
    read: BTreeMap<u32, Vec<Arc<str>>>,
    /// Graphs with damaged ones.
    damaged: BTreeMap<u32, StoreError>,
}

impl FilesCheck {
    /// Tells which graphs a start would not restore.
    fn lost(&mut self, state: &State, report: &mut StoreReport) {
        for (number, graph) in &state.graphs {
            if let Some(error) = graph.unrestored.as_ref().filter(|_| !self.damaged.contains_key(number)) {
                self.damaged.insert(*number, error.clone());
                report.add(named(&graph.name), Finding::Bad, error.to_string());
            }
        }
    }

    /// Reads the files of all graphs, except those that it has read.
    fn check(&mut self, state: &State, report: &mut StoreReport) {
        for (number, graph) in &state.graphs {
            let names = graph.root.files();
            if graph.root.base().is_none() || self.read.get(number) == Some(&names) {
                continue;
            }
            match graph.root.verify_files(&AtomicBool::new(false)) {
                Ok(()) => {
                    let (files, bytes) = (names.len(), graph.root.files_bytes());
                    let text = format!("{files} files of its base and indexes with {bytes} bytes, all checksums right");
                    report.add(named(&graph.name), Finding::Good, text);
                }
                Err(error) => {
                    report.add(named(&graph.name), Finding::Bad, error.to_string());
                    self.damaged.insert(*number, error);
                }
            }
            self.read.insert(*number, names);
        }
    }
}

fn named(graph: &str) -> String {
    format!("graph '{graph}'")
}
