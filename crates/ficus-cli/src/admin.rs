//! `ficus admin`: looking after a data directory. Only `backup` may be run while a server uses it.

use std::path::PathBuf;

use clap::Subcommand;
use ficus_model::Direction;
use serde_json::json;

use crate::Outcome;
use crate::export::elements::Elements;
use crate::failure::Failure;
use crate::output::{OutputFormat, result};

/// Flags of `ficus admin`.
#[derive(Debug, clap::Args)]
pub struct AdminArguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Read every stored file, check every graph and say what was found.
    Check {
        /// The data directory.
        #[arg(long, value_name = "DIR", env = "FICUS_STORE__DATA_DIR")]
        data_dir: PathBuf,
    },
    /// Bring all that is committed into an archive, also while a server uses the data directory.
    Backup(crate::archive::BackupArguments),
    /// Make a data directory out of an archive, with the newest state or that of a moment or commit.
    Restore(crate::archive::RestoreArguments),
    /// Look at and change declared types, indexes and tasks of a graph.
    Schema(crate::schema::SchemaArguments),
    /// Make the hash of a password for server.users; the password is read from FICUS_PASSWORD.
    HashPassword,
}

/// Runs the verb.
pub fn run(arguments: AdminArguments, format: OutputFormat) -> Outcome {
    match arguments.task {
        Task::Check { data_dir } => check(&data_dir, format),
        Task::Backup(arguments) => crate::archive::backup(&arguments, format),
        Task::Restore(arguments) => crate::archive::restore(&arguments, format),
        Task::Schema(arguments) => crate::schema::run(arguments, format),
        Task::HashPassword => {
            let password = std::env::var("FICUS_PASSWORD")
                .map_err(|_| Failure::usage("put the password into the environment, as FICUS_PASSWORD"))?;
            let hash = ficus_server::hash_password(&password).map_err(Failure::failed)?;
            result(&if format == OutputFormat::Json { json!({"password_hash": hash}).to_string() } else { hash })?;
            Ok(())
        }
    }
}

/// What a check of one graph counted.
#[derive(Default)]
struct Findings {
    vertices: u64,
    edges: u64,
    out_halves: u64,
    in_halves: u64,
    vertices_counted: u64,
    edges_counted: u64,
    faults: Vec<String>,
}

/// Faults listed per graph; more are only counted as one.
const FAULTS_SHOWN: usize = 20;

/// Opens the store, which reads and verifies all its files, and walks over all graphs.
fn check(directory: &std::path::Path, format: OutputFormat) -> Outcome {
    let store = crate::store::open(directory, false)?;
    let mut faulty = 0;
    for name in store.graph_names() {
        let graph = crate::store::graph(&store, &name)?;
        let findings = check_graph(&Elements::new(graph.snapshot()))?;
        let Findings { vertices, edges, faults, .. } = &findings;
        faulty += usize::from(!faults.is_empty());
        if format == OutputFormat::Json {
            let line = json!({"graph": name, "vertices": vertices, "edges": edges, "faults": faults});
            result(&line.to_string())?;
            continue;
        }
        let verdict = if faults.is_empty() { "sound" } else { "DAMAGED" };
        result(&format!("{name}: {vertices} vertices, {edges} edges, {verdict}"))?;
        for fault in faults {
            result(&format!("  {fault}"))?;
        }
    }
    let indexes = store.graph_names().len();
    store.close()?;
    match faulty {
        0 => Ok(()),
        count => Err(Failure::failed(format!("{count} of {indexes} graphs are damaged; restore them from a backup"))),
    }
}

fn check_graph(elements: &Elements) -> Result<Findings, Failure> {
    let snapshot = &elements.snapshot;
    let mut found = Findings {
        vertices_counted: snapshot.vertex_count(),
        edges_counted: snapshot.edge_count(),
        ..Findings::default()
    };
    let mut fault = Vec::new();
    elements.each_vertex(|id| {
        found.vertices += 1;
        let vertex = elements.vertex(id)?;
        if snapshot.find_vertex(&vertex.id) != Some(id) {
            fault.push(format!("vertex {} is not found by its id", crate::render::literal(&vertex.id)));
        }
        found.out_halves += snapshot.degree(id, Direction::Out, &[]);
        found.in_halves += snapshot.degree(id, Direction::In, &[]);
        Ok(())
    })?;
    elements.each_edge(|id| {
        found.edges += 1;
        let edge = elements.edge(id)?;
        if snapshot.find_edge(&edge.id) != Some(id) {
            fault.push(format!("edge {} is not found by its id", crate::render::literal(&edge.id)));
        }
        Ok(())
    })?;
    let pairs = [
        ("vertices scanned and counted", found.vertices, found.vertices_counted),
        ("edges scanned and counted", found.edges, found.edges_counted),
        ("edges and outgoing half-edges", found.edges, found.out_halves),
        ("edges and incoming half-edges", found.edges, found.in_halves),
    ];
    for (what, left, right) in pairs {
        if left != right {
            fault.push(format!("{what} differ: {left} and {right}"));
        }
    }
    if fault.len() > FAULTS_SHOWN {
        let more = fault.len() - FAULTS_SHOWN;
        fault.truncate(FAULTS_SHOWN);
        fault.push(format!("and {more} more"));
    }
    found.faults = fault;
    Ok(found)
}
