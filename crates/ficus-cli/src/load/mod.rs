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
pub mod kryo;
pub mod loader;
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
pub mod report;
mod resume;
#[cfg(test)]
mod robustness_tests;
mod row;
mod row_chunks;
mod rows;
mod sources;
mod table;

pub use placement::read_into;
pub use sources::{Source, SourceForm, SourceOptions, find};

use std::path::PathBuf;

use ficus_storage::Store;
use serde_json::json;

use self::loader::{LoadError, LoadOptions};
use self::progress::Progress;
use self::report::{Counts, RejectFile};
use self::resume::Position;
use self::sources::FileGroup;
use crate::Outcome;
use crate::column_type::ColumnType;
use crate::failure::Failure;
use crate::output::{OutputFormat, result, talk};

/// Flags of `ficus load`.
#[derive(Debug, clap::Args)]
pub struct LoadArguments {
    /// Files, or folders with files. Names may end in .gz or .zst.
    paths: Vec<PathBuf>,
    /// The data directory; created if there is none.
    #[arg(long, value_name = "DIR", env = "FICUS_STORE__DATA_DIR", required_unless_present = "dry_run")]
    data_dir: Option<PathBuf>,
    /// The graph, which is also the name of its traversal source; created if there is none.
    #[arg(long, default_value = "g", value_name = "NAME")]
    graph: String,
    /// Form of the input.
    #[arg(long, value_enum, default_value = "auto", value_name = "FORM")]
    from: SourceForm,
    /// A mapping file that says what delimited files with other headers mean.
    #[arg(long, value_name = "FILE")]
    mapping: Option<PathBuf>,
    /// Vertex files with Neo4j headers, as [LABEL=]FIRST,MORE…: the header of the first counts for all. Repeatable.
    #[arg(long, value_name = "GROUP", value_parser = FileGroup::parse)]
    vertices: Vec<FileGroup>,
    /// Edge files with Neo4j headers, as [TYPE=]FIRST,MORE…. Repeatable.
    #[arg(long, value_name = "GROUP", value_parser = FileGroup::parse)]
    edges: Vec<FileGroup>,
    /// Type of ids that the input leaves untyped (GraphML, Neptune, Neo4j without id-type): string, int, long, uuid.
    #[arg(long, default_value = "string", value_name = "TYPE", value_parser = ColumnType::from_name)]
    id_type: ColumnType,
    /// Between the fields of CSV; one character.
    #[arg(long, default_value = ",", value_name = "CHAR", value_parser = ascii)]
    delimiter: u8,
    /// Between the values of an array in CSV with Neo4j headers.
    #[arg(long, default_value = ";", value_name = "CHAR")]
    array_delimiter: char,
    /// Index the values of a property before loading: KEY, or LABEL:KEY for one label. Repeatable.
    #[arg(long, value_name = "INDEX")]
    index: Vec<String>,
    /// Read and check everything, keep nothing. Needs memory for the whole graph.
    #[arg(long)]
    dry_run: bool,
    /// Go on with a load of the same files that was interrupted. Nothing is loaded twice, and nothing at all if it was complete.
    #[arg(long, conflicts_with = "dry_run")]
    resume: bool,
    /// Begin anew although an earlier load of the graph was interrupted; what that one loaded stays.
    #[arg(long, conflicts_with = "resume")]
    forget: bool,
    /// Where rejected records are written, as JSON lines.
    #[arg(long, default_value = "load.rejected.jsonl", value_name = "FILE")]
    reject_file: PathBuf,
    /// Rejections after which the load is given up.
    #[arg(long, default_value_t = 1000, value_name = "COUNT")]
    max_errors: u64,
    /// Threads that read and parse; the default is the number of cores.
    #[arg(long, value_name = "COUNT")]
    threads: Option<usize>,
    /// No progress on stderr.
    #[arg(long)]
    quiet: bool,
}

fn ascii(text: &str) -> Result<u8, String> {
    match text {
        "\\t" | "tab" => Ok(b'\t'),
        _ if text.len() == 1 => Ok(text.as_bytes()[0]),
        _ => Err("one ASCII character is expected, or tab".into()),
    }
}

/// Runs the verb.
pub fn run(arguments: LoadArguments, format: OutputFormat) -> Outcome {
    let how = how_read(&arguments)?;
    let mut groups = arguments.vertices;
    groups.extend(arguments.edges);
    let options = SourceOptions {
        paths: arguments.paths,
        groups,
        form: arguments.from,
        mapping: arguments.mapping,
        id_kind: arguments.id_type,
        delimiter: arguments.delimiter,
        list_separator: arguments.array_delimiter,
    };
    let found = find(&options).map_err(Failure::usage)?;
    for remark in &found.remarks {
        talk(remark);
    }
    let store = match &arguments.data_dir {
        Some(directory) if !arguments.dry_run => crate::store::open(directory, true)?,
        _ => Store::in_memory(),
    };
    let is_new = store.graph(&arguments.graph).is_none();
    let graph = crate::store::graph_or_new(&store, &arguments.graph)?;
    let is_whole = graph.load().is_some();
    let inputs = resume::inputs(&found.sources, &how);
    let noted = Position::of(&graph)?;
    let position = match noted {
        Some(noted) if arguments.resume && !is_whole && noted.inputs == inputs => noted,
        Some(noted) if arguments.resume && !is_whole && !noted.done => {
            return Err(Failure::failed(format!(
                "the load into graph {} that was interrupted was of other files, or with other options; give the same, or \
                 --forget it",
                arguments.graph
            )));
        }
        Some(noted) if !noted.done && !arguments.forget && !is_whole && !arguments.dry_run => {
            return Err(Failure::failed(format!(
                "a load into graph {} was interrupted after {} records; go on with it with --resume, or --forget it",
                arguments.graph, noted.counts.read
            )));
        }
        _ => Position { inputs, ..Position::default() },
    };
    if position.done {
        talk(&format!("the load into graph {} was complete already", arguments.graph));
    } else if position.items > 0 {
        talk(&format!("going on behind {} records", position.counts.read));
    }
    if is_whole && !is_new {
        talk(&format!("graph {} has no elements; of a load that was interrupted nothing is kept", arguments.graph));
    }
    for index in arguments.index.iter().filter(|_| position.items == 0 && !position.done) {
        let (label, key) = index.split_once(':').map_or((None, index.as_str()), |(label, key)| (Some(label), key));
        graph.create_index(label, key)?;
    }
    let threads = arguments.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let was_done = position.done;
    let mut rejects = RejectFile::going_on(&arguments.reject_file, position.reject_bytes).map_err(|error| {
        let path = arguments.reject_file.display();
        Failure::failed(format!("{path}, where the interrupted load reported rejected records: {error}"))
    })?;
    let mut counts = position.counts;
    let load_options = LoadOptions { threads, errors_max: arguments.max_errors, dry_run: arguments.dry_run, position };
    let mut progress = Progress::new(bytes_to_read(&found.sources), arguments.quiet);
    let outcome = match was_done {
        true => Ok(()),
        false => loader::load(&graph, &found.sources, &load_options, &mut rejects, &mut progress, &mut counts),
    };
    progress.finish();
    let report = rejects.finish().map_err(LoadError::Report).map_err(Failure::failed)?.map(PathBuf::from);
    if outcome.is_ok() && !arguments.dry_run {
        store.close()?;
    }
    let seconds = progress.elapsed().as_secs_f64();
    let balanced = counts.balanced();
    let kept = !arguments.dry_run && (outcome.is_ok() || !is_whole);
    match format {
        OutputFormat::Json => result(
            &json!({
                "graph": arguments.graph, "dry_run": arguments.dry_run, "read": counts.read, "vertices": counts.vertices,
                "edges": counts.edges, "implied_vertices": counts.implied_vertices, "rejected": counts.rejected,
                "balanced": balanced, "complete": outcome.is_ok(), "kept": kept, "seconds": seconds, "reject_file": report,
            })
            .to_string(),
        )?,
        _ => {
            let Counts { vertices, edges, implied_vertices, read, rejected } = counts;
            let loaded = vertices + edges;
            let verb = match (arguments.dry_run, kept) {
                (true, _) => "would load",
                (false, true) => "loaded",
                (false, false) => "gave up before it loaded",
            };
            result(&format!("{verb} {vertices} vertices and {edges} edges into {} in {seconds:.1} s", arguments.graph))?;
            if implied_vertices > 0 {
                result(&format!("created {implied_vertices} vertices that only edges name"))?;
            }
            let sign = if balanced { "=" } else { "≠" };
            result(&format!("read {read} records {sign} {loaded} loaded + {rejected} rejected"))?;
        }
    }
    outcome.map_err(|error| match counts.read {
        0 => Failure::failed(error),
        _ if is_whole => Failure::failed(format!("{error}; the graph has no elements, as before")),
        _ => Failure::failed(format!("{error}; what was committed until then stays in the graph, go on with --resume")),
    })?;
    if !balanced {
        return Err(Failure::failed("the sums do not agree: this is a bug, please report it"));
    }
    match report {
        Some(path) => {
            Err(Failure::Rejected(format!("{} records were rejected; see {}", counts.rejected, path.display())))
        }
        None => Ok(()),
    }
}

/// The options that say how files are read, as a text that two equal loads have in common.
fn how_read(arguments: &LoadArguments) -> Result<String, Failure> {
    let mapping = match &arguments.mapping {
        Some(path) => {
            std::fs::read_to_string(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?
        }
        None => String::new(),
    };
    let LoadArguments { from, vertices, edges, id_type, delimiter, array_delimiter, .. } = arguments;
    Ok(format!("{from:?} {vertices:?} {edges:?} {id_type:?} {delimiter} {array_delimiter:?} {mapping}"))
}

/// Bytes on disk that both passes will read.
fn bytes_to_read(sources: &[Source]) -> u64 {
    let passes = [record::Pass::Vertices, record::Pass::Edges];
    passes
        .iter()
        .flat_map(|pass| sources.iter().filter(|source| source.speaks_in(*pass)))
        .map(|source| source.bytes)
        .sum()
}
