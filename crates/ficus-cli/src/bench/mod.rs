//! `ficus bench SUITE`: measures of the product itself, one JSON object each.
//!
//! A measure has a suite, a case, a metric with value and unit, and where there is one a target with the direction in
//! which it holds (`>=` or `<=`). A missed target is reported, not an error: machines differ.

mod dataflow;
mod engine;
mod khop;
mod measure;
mod micro;
mod storage;
mod wire;

use std::path::PathBuf;

use self::measure::Measure;
use crate::Outcome;
use crate::failure::Failure;
use crate::output::{OutputFormat, result};
use crate::serve::{EngineSettings, use_large_pages};

/// Suites of measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Suite {
    /// In this process: queries that try to run away, small queries beside large ones; with --data-dir also scopes, executors and patterns over a
    /// social network.
    Dataflow,
    /// Many k-hop queries at once, searches, users over WebSocket. Needs some GB of disk and several minutes.
    Khop,
    /// In this process: store and engine without a network.
    Micro,
    /// The store: load, memory, scans, commits, reads beside writes. Needs some GB of disk and several minutes.
    Storage,
    /// Over WebSocket, against a server of its own or --url.
    Wire,
}

/// Flags of `ficus bench`.
#[derive(Debug, clap::Args)]
pub struct BenchArguments {
    /// What to measure.
    #[arg(value_enum)]
    suite: Suite,
    /// Fewer repetitions: seconds instead of a minute, for a first look.
    #[arg(long)]
    quick: bool,
    /// The same as --format json.
    #[arg(long)]
    json: bool,
    /// For storage: only these parts of the suite.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PART")]
    only: Vec<storage::Part>,
    /// For dataflow: only these sections of the suite.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "SECTION")]
    sections: Vec<dataflow::Section>,
    /// For khop: only these parts of the suite.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PART")]
    parts: Vec<khop::Part>,
    /// For khop: graphs of 2^SCALE vertices, 10 to 24, instead of those of the suite.
    #[arg(long, value_delimiter = ',', value_name = "SCALE", value_parser = clap::value_parser!(u32).range(10..=24))]
    scales: Vec<u32>,
    /// For khop: a Python with the engines of bench/peers, which are then measured in the same run.
    #[arg(long, value_name = "PROGRAM")]
    peers: Option<PathBuf>,
    /// For wire: a server that serves the air-routes demo as g. It gets one edge per repetition, which is removed again.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// For wire: the data directory of the server that is started. For storage and khop: the folder to work in, which stays; khop
    /// makes no graph again that is there; a temporary one if absent. For dataflow: a store with a social network, loaded with docs/examples/mappings/snb.toml,
    /// that nobody else has open.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

/// Runs the verb.
pub fn run(arguments: BenchArguments, format: OutputFormat) -> Outcome {
    if !arguments.only.is_empty() && arguments.suite != Suite::Storage {
        return Err(Failure::usage("--only is for the suite storage; khop has --parts, the others have one part"));
    }
    if arguments.suite != Suite::Khop && !(arguments.parts.is_empty() && arguments.scales.is_empty()) {
        return Err(Failure::usage("--parts and --scales are for the suite khop"));
    }
    if !arguments.sections.is_empty() && arguments.suite != Suite::Dataflow {
        return Err(Failure::usage("--sections is for the suite dataflow"));
    }
    // As the server does by default; but the suite that measures what graphs take would not see what of it lies in the large pages of before.
    use_large_pages(EngineSettings::default().large_pages && arguments.suite != Suite::Storage);
    let format = if arguments.json { OutputFormat::Json } else { format };
    let mut print = |measure: Measure| -> std::io::Result<()> {
        match format {
            OutputFormat::Json => result(&measure.json().to_string()),
            _ => result(&measure.text()),
        }
    };
    match arguments.suite {
        Suite::Dataflow => {
            dataflow::run(arguments.quick, &arguments.sections, arguments.data_dir.as_deref(), &mut print)
        }
        Suite::Khop => {
            let (scales, parts) = (arguments.scales.as_slice(), arguments.parts.as_slice());
            let wanted = khop::Wanted { quick: arguments.quick, scales, parts, peers: arguments.peers.as_deref() };
            khop::run(&wanted, arguments.data_dir, &mut print)
        }
        Suite::Micro => micro::run(arguments.quick, &mut print),
        Suite::Storage => storage::run(arguments.quick, &arguments.only, arguments.data_dir, &mut print),
        Suite::Wire => wire::run(arguments.quick, arguments.url, arguments.data_dir, &mut print),
    }
}
