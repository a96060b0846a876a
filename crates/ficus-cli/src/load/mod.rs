//! `ficus load`: files into a graph.
//!
//! ```text
//! paths ─► sources (which file, which reader) ─► readers ─► batches of records ─► loader ─► store
//!                                                   └─► rejected rows ─► report file
//! ```
//!
//! Every record that is read is either loaded or rejected with file, line, column, reason and row; the sums are checked
//! before the verb reports success.

mod compact;
mod direct;
mod fast_table;
mod graphml;
mod graphson;
mod gryo;
mod id_reader;
mod input;
pub mod job;
pub mod kryo;
pub mod loader;
mod long_row;
mod mapping;
mod neo4j;
mod neptune;
mod parquet;
#[cfg(test)]
mod parquet_tests;
mod parquet_value;
mod piece;
mod placement;
pub mod progress;
mod record;
mod references;
mod remote;
pub mod report;
mod resume;
#[cfg(test)]
mod robustness_tests;
mod row;
mod row_chunks;
mod row_end;
mod rows;
mod sources;
mod table;
mod writer;

pub use placement::read_into;
pub use sources::{SourceForm, SourceOptions, find};

use std::path::PathBuf;

use ficus_storage::Store;
use serde_json::json;

use self::job::{Choices, Job, Report};
use self::progress::Progress;
use self::report::{Counts, Rejects};
use crate::Outcome;
use crate::connection::Trust;
use crate::failure::Failure;
use crate::output::{OutputFormat, result, talk};

/// Flags of `ficus load`.
#[derive(Debug, clap::Args)]
pub struct LoadArguments {
    /// Files, or folders with files. Names may end in .gz or .zst.
    paths: Vec<PathBuf>,
    /// The data directory; created if there is none. No server may be using it: see --server.
    #[arg(long, value_name = "DIR", env = "FICUS_STORE__DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// Load into a running server, as HOST:PORT, which goes on answering; the files are sent there. Counts more than --data-dir.
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,
    /// The user's name for --server; the password comes from FICUS_PASSWORD.
    #[arg(long, value_name = "NAME", env = "FICUS_USER")]
    user: Option<String>,
    #[command(flatten)]
    trust: Trust,
    /// The graph, which is also the name of its traversal source; created if there is none.
    #[arg(long, default_value = "g", value_name = "NAME")]
    graph: String,
    #[command(flatten)]
    choices: Choices,
    /// Where rejected records are written, as JSON lines.
    #[arg(long, default_value = "load.rejected.jsonl", value_name = "FILE")]
    reject_file: PathBuf,
    /// No progress on stderr.
    #[arg(long)]
    quiet: bool,
}

/// Runs the verb.
pub fn run(arguments: LoadArguments, format: OutputFormat) -> Outcome {
    let LoadArguments { paths, data_dir, server, user, trust, graph, choices, reject_file, quiet } = arguments;
    if data_dir.is_none() && server.is_none() && !choices.dry_run {
        return Err(Failure::usage(
            "say where to load: --data-dir DIR for a data directory that no server uses, --server HOST:PORT for a running server",
        ));
    }
    let how = choices.how_read(&choices.mapping_text().map_err(Failure::usage)?);
    let found = find(&choices.sources(paths)).map_err(Failure::usage)?;
    if let Some(server) = server {
        let server = crate::http_client::HttpServer::new(&server, crate::shell::credentials(user)?, trust)?;
        let (report, rejects) = remote::load(&server, &graph, found, &choices, &reject_file, quiet)?;
        return tell(&report, rejects, format);
    }
    let dry_run = choices.dry_run;
    let store = match &data_dir {
        Some(directory) if !dry_run => crate::store::open(directory, true)?,
        _ => Store::in_memory(),
    };
    let job = Job::new(&store, &graph, found, choices, &how, &mut |remark| talk(remark))?;
    let mut rejects = Rejects::in_file(&reject_file, job.reject_bytes()).map_err(|error| {
        let path = reject_file.display();
        Failure::failed(format!("{path}, where the interrupted load reported rejected records: {error}"))
    })?;
    let mut progress = Progress::new(job.bytes(), quiet);
    let report = job.run(&mut rejects, &mut progress)?;
    if report.complete && !dry_run {
        store.close()?;
    }
    tell(&report, rejects, format)
}

/// Says what became of a load, to people or programs.
fn tell(report: &Report, mut rejects: Rejects, format: OutputFormat) -> Outcome {
    let reject_file = rejects.finish()?;
    let Report { graph, dry_run, counts, balanced, complete, kept, seconds, error } = report;
    let Counts { vertices, edges, implied_vertices, read, rejected } = counts;
    match format {
        OutputFormat::Json => result(
            &json!({
                "graph": graph, "dry_run": dry_run, "read": read, "vertices": vertices, "edges": edges,
                "implied_vertices": implied_vertices, "rejected": rejected, "balanced": balanced, "complete": complete,
                "kept": kept, "seconds": seconds, "reject_file": reject_file,
            })
            .to_string(),
        )?,
        _ => {
            let loaded = vertices + edges;
            let verb = match (dry_run, kept) {
                (true, _) => "would load",
                (false, true) => "loaded",
                (false, false) => "gave up before it loaded",
            };
            result(&format!("{verb} {vertices} vertices and {edges} edges into {graph} in {seconds:.1} s"))?;
            if *implied_vertices > 0 {
                result(&format!("created {implied_vertices} vertices that only edges name"))?;
            }
            let sign = if *balanced { "=" } else { "≠" };
            result(&format!("read {read} records {sign} {loaded} loaded + {rejected} rejected"))?;
        }
    }
    if let Some(error) = error {
        return Err(Failure::failed(error));
    }
    if !balanced {
        return Err(Failure::failed("the sums do not agree: this is a bug, please report it"));
    }
    match reject_file {
        Some(path) => Err(Failure::Rejected(format!("{rejected} records were rejected; see {}", path.display()))),
        None => Ok(()),
    }
}
