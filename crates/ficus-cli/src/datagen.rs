//! `ficus datagen`: graphs for benchmarks, made from a seed.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::Outcome;
use crate::failure::Failure;
use crate::kronecker::kronecker;
use crate::output::{OutputFormat, result};

/// Flags of `ficus datagen`.
#[derive(Debug, clap::Args)]
pub struct DatagenArguments {
    #[command(subcommand)]
    graph: GeneratedGraph,
}

#[derive(Debug, clap::Subcommand)]
enum GeneratedGraph {
    /// A Kronecker graph as Graph500 defines it (A=.57 B=.19 C=.19), as CSV with Neo4j headers.
    Kronecker(KroneckerArguments),
}

#[derive(Debug, clap::Args)]
struct KroneckerArguments {
    /// The graph has 2^SCALE vertices.
    #[arg(long, default_value_t = 20, value_name = "SCALE", value_parser = clap::value_parser!(u32).range(1..=30))]
    scale: u32,
    /// Edges drawn per vertex, before loops and duplicates are removed.
    #[arg(long, default_value_t = 16, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1024))]
    edge_factor: u32,
    /// The same seed gives the same files.
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    seed: u64,
    /// The folder for `nodes.csv` and `edges.csv`; created if there is none.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// Runs the verb.
pub fn run(arguments: DatagenArguments, format: OutputFormat) -> Outcome {
    let GeneratedGraph::Kronecker(KroneckerArguments { scale, edge_factor, seed, out }) = arguments.graph;
    let edges = kronecker(scale, u64::from(edge_factor), seed);
    let vertices = 1u64 << scale;
    write(vertices, &edges, &out).map_err(|error| Failure::failed(format!("{}: {error}", out.display())))?;
    let edges = edges.len();
    match format {
        OutputFormat::Json => result(&json!({"vertices": vertices, "edges": edges}).to_string())?,
        _ => result(&format!(
            "wrote {vertices} vertices and {edges} edges; load them with\n  ficus load --data-dir DIR --vertices node={0}/nodes.csv \
             --edges link={0}/edges.csv",
            out.display()
        ))?,
    }
    Ok(())
}

fn write(vertices: u64, edges: &[(u32, u32)], folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut nodes = BufWriter::new(File::create(folder.join("nodes.csv"))?);
    writeln!(nodes, ":ID{{id-type:long}}")?;
    for vertex in 0..vertices {
        writeln!(nodes, "{vertex}")?;
    }
    nodes.flush()?;
    let mut out = BufWriter::with_capacity(1 << 20, File::create(folder.join("edges.csv"))?);
    writeln!(out, ":START_ID{{id-type:long}},:END_ID{{id-type:long}}")?;
    for (source, target) in edges {
        writeln!(out, "{source},{target}")?;
    }
    out.flush()
}
