//! `ficus-history`: random transactions of many clients, checked for strict serialisability.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr)] // a command line tool: results on stdout, talk on stderr

use std::process::ExitCode;

use clap::Parser;
use ficus_proof::order::{Summary, check};
use ficus_proof::run::{Plan, run};

/// Runs random transactions of 8 to 64 clients against stores in memory and on a simulated disk, and checks that all of them
/// are strictly serialisable and every snapshot is consistent.
#[derive(Parser)]
#[command(name = "ficus-history", version)]
struct Arguments {
    /// Runs, each from a seed of its own
    #[arg(long, default_value_t = 200)]
    seeds: u64,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    first_seed: u64,
    /// Transactions of each run
    #[arg(long, default_value_t = 5000)]
    transactions: u64,
}

fn main() -> ExitCode {
    let Arguments { seeds, first_seed, transactions } = Arguments::parse();
    let mut total = Summary::default();
    for seed in first_seed..first_seed + seeds {
        let plan = Plan::of_seed(seed, transactions);
        match check(&run(&plan)) {
            Ok(summary) => total += summary,
            Err(anomaly) => {
                eprintln!("ficus-history: {plan:?}\n{anomaly}");
                eprintln!("repeat with --first-seed {seed} --seeds 1 --transactions {transactions}");
                return ExitCode::FAILURE;
            }
        }
        if (seed + 1).is_multiple_of(20) {
            println!("after seed {seed}: {total:?}");
        }
    }
    let transactions = total.committed + total.read_only + total.aborted;
    println!("{transactions} transactions of {seeds} seeds, {total:?}: no anomaly");
    ExitCode::SUCCESS
}
