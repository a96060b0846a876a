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
    /// A social network like that of the LDBC Social Network Benchmark, in the files that docs/examples/mappings/snb.toml loads: persons, friendships,
    /// forums, posts, comments, likes, tags, places, organisations.
    Snb(SnbArguments),
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

#[derive(Debug, clap::Args)]
struct SnbArguments {
    /// The scale factor: 1 has 9,892 persons and 3 million messages, 0.1 a tenth of that, 10 thirteen times as much. From 0.001 to 100.
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR", value_parser = scale_factor)]
    scale: f64,
    /// The same seed gives the same files.
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    seed: u64,
    /// The folder for the files; created if there is none.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// A scale factor; persons and friendships, which are kept in memory, take some 2 GiB at the largest.
fn scale_factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().map_err(|_| "a number is expected, such as 0.1".to_owned())?;
    if (0.001..=100.0).contains(&factor) { Ok(factor) } else { Err("it must be from 0.001 to 100".into()) }
}

/// Runs the verb.
pub fn run(arguments: DatagenArguments, format: OutputFormat) -> Outcome {
    match arguments.graph {
        GeneratedGraph::Kronecker(arguments) => run_kronecker(arguments, format),
        GeneratedGraph::Snb(arguments) => run_snb(&arguments, format),
    }
}

fn run_snb(arguments: &SnbArguments, format: OutputFormat) -> Outcome {
    let SnbArguments { scale, seed, out } = arguments;
    let rows = crate::social::generate(*scale, *seed, out)
        .map_err(|error| Failure::failed(format!("{}: {error}", out.display())))?;
    if format == OutputFormat::Json {
        let rows: serde_json::Map<String, serde_json::Value> =
            rows.into_iter().map(|(file, rows)| (file.to_owned(), rows.into())).collect();
        result(&json!({"scale": scale, "seed": seed, "rows": rows}).to_string())?;
        return Ok(());
    }
    for (file, rows) in &rows {
        result(&format!("{rows:>12}  {file}_0_0.csv"))?;
    }
    let sum: u64 = rows.iter().map(|(_, rows)| rows).sum();
    result(&format!(
        "wrote {sum} rows; load them with\n  ficus load --data-dir DIR --graph snb --mapping docs/examples/mappings/snb.toml {}",
        out.display()
    ))?;
    Ok(())
}

fn run_kronecker(arguments: KroneckerArguments, format: OutputFormat) -> Outcome {
    let KroneckerArguments { scale, edge_factor, seed, out } = arguments;
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
