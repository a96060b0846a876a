//! `ficus-crash`: stores on a simulated disk that fails and loses power, from seeds.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr)] // a command line tool: results on stdout, talk on stderr

use std::panic::catch_unwind;
use std::process::ExitCode;

use clap::Parser;
use ficus_proof::crash::{Tally, survive};

/// Runs stores on a simulated disk with lost, torn and reordered writes, failing flushes and too little room, crashes them in the
/// middle of anything, and checks that what was acknowledged is there, whole, and nothing else is.
#[derive(Parser)]
#[command(name = "ficus-crash", version)]
struct Arguments {
    /// Runs, each from a seed of its own
    #[arg(long, default_value_t = 10_000)]
    seeds: u64,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    first_seed: u64,
}

fn main() -> ExitCode {
    let Arguments { seeds, first_seed } = Arguments::parse();
    let mut total = Tally::default();
    for seed in first_seed..first_seed + seeds {
        match catch_unwind(|| survive(seed)) {
            Ok(Ok(tally)) => total += tally,
            failed => {
                let what = failed.map_or_else(|_| "a panic, see above".to_string(), |outcome| outcome.unwrap_err());
                eprintln!("ficus-crash: seed {seed}: {what}\nrepeat with --first-seed {seed} --seeds 1");
                return ExitCode::FAILURE;
            }
        }
        if (seed + 1).is_multiple_of(1000) {
            println!("after seed {seed}: {total:?}");
        }
    }
    println!("{seeds} seeds, {total:?}: nothing lost, nothing half");
    ExitCode::SUCCESS
}
