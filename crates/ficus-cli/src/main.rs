//! The `ficus` binary: one verb per task.
//!
//! Each verb has a module; this file reads the command line and turns outcomes into exit codes: 0 done, 1 failed,
//! 2 wrong usage, 3 loaded with rejected records. Results go to stdout, talk to stderr.
//!
//! *Architecture Invariant:* sits on top of all crates; nothing depends on it.
#![deny(unsafe_code)]

mod address;
mod admin;
mod allocator;
mod analyze;
mod archive;
mod bench;
mod code_pages;
mod column_type;
mod compact;
mod connection;
mod datagen;
mod demo;
mod export;
mod failure;
mod gryo;
mod http_client;
mod kronecker;
mod load;
mod nearest;
mod output;
mod render;
mod schema;
mod serve;
mod shell;
mod social;
mod store;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::failure::Failure;
use crate::output::OutputFormat;

/// Version and commit, as `--version` prints them.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("FICUS_COMMIT"), ")");

/// FicusDB: a transactional graph database that speaks Gremlin.
#[derive(Debug, Parser)]
#[command(name = "ficus", version = VERSION, disable_help_subcommand = true)]
struct CommandLine {
    /// Form of results on stdout.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "FORM")]
    format: OutputFormat,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run the server.
    Serve(serve::ServeArguments),
    /// Load files into a graph.
    Load(load::LoadArguments),
    /// Write a graph to files.
    Export(export::ExportArguments),
    /// Ask a server: interactively, or with -e, a file or stdin.
    #[command(visible_alias = "query")]
    Shell(shell::ShellArguments),
    /// Ask k-hop questions of many vertices, or run a program over a whole graph.
    Analyze(analyze::AnalyzeArguments),
    /// Make graphs for benchmarks.
    Datagen(datagen::DatagenArguments),
    /// Measure speed.
    Bench(bench::BenchArguments),
    /// Look after a data directory.
    Admin(admin::AdminArguments),
}

/// Commits make pages, queries make traversers, and other threads drop them: most of what the system's allocator is slow at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let command_line = match CommandLine::try_parse() {
        Ok(command_line) => command_line,
        Err(error) => {
            // Help and version are results; clap prints them to stdout and everything else to stderr.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
    };
    let format = command_line.format;
    if matches!(command_line.verb, Verb::Serve(_) | Verb::Bench(_)) {
        allocator::set_up();
    }
    let outcome = match command_line.verb {
        Verb::Serve(arguments) => serve::run(arguments, format),
        Verb::Load(arguments) => load::run(arguments, format),
        Verb::Export(arguments) => export::run(arguments, format),
        Verb::Shell(arguments) => shell::run(arguments, format),
        Verb::Analyze(arguments) => analyze::run(arguments, format),
        Verb::Datagen(arguments) => datagen::run(arguments, format),
        Verb::Bench(arguments) => bench::run(arguments, format),
        Verb::Admin(arguments) => admin::run(arguments, format),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                output::talk(&format!("ficus: {message}"));
            }
            failure.exit_code()
        }
    }
}

/// What every verb gives back.
type Outcome = Result<(), Failure>;
