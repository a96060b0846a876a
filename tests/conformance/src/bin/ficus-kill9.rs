//! `ficus-kill9`: kills a server under concurrent writes, again and again, and checks what is left.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr)] // a command line tool: results on stdout, talk on stderr

use std::process::ExitCode;

use clap::Parser;
use ficus_conformance::kill9::{self, Plan};

/// Kills a server under concurrent writes, again and again, and checks that no acknowledged write is lost, no transaction
/// is torn, and the server starts. The binary is FICUS_BIN, or the one beside this program.
#[derive(Parser)]
#[command(name = "ficus-kill9", version)]
struct Arguments {
    /// How often to kill
    #[arg(long, default_value_t = 25)]
    rounds: u64,
    /// Connections that write at the same time
    #[arg(long, default_value_t = 4)]
    writers: u64,
    /// Decides the moments of the kills; random when not given
    #[arg(long)]
    seed: Option<u64>,
    /// Longest time between the start of the writers and the kill
    #[arg(long, default_value_t = 300)]
    kill_after_ms_max: u64,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let seed = arguments.seed.unwrap_or_else(rand::random);
    let (rounds, writers) = (arguments.rounds, arguments.writers);
    let plan = Plan { rounds, writers, seed, kill_after_ms_max: arguments.kill_after_ms_max };
    println!("seed {seed}");
    let folder = match tempfile::tempdir() {
        Ok(folder) => folder,
        Err(error) => {
            eprintln!("ficus-kill9: a folder for the server: {error}");
            return ExitCode::from(2);
        }
    };
    let outcome = kill9::run(&plan, &folder.path().join("data"), |tally| {
        if tally.rounds.is_multiple_of(25) {
            println!("{tally:?}");
        }
    });
    match outcome {
        Ok(tally) => {
            println!("{tally:?}");
            println!("{} passed, 0 failed", tally.rounds);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("ficus-kill9: {error}\nthe data is kept in {}", folder.keep().display());
            ExitCode::FAILURE
        }
    }
}
