//! `ficus-conformance`: runs TinkerPop's feature suite against a server over WebSocket.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr)] // a command line tool: results on stdout, talk on stderr

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use ficus_conformance::features;
use ficus_conformance::report::{Line, Report, Verdict};
use ficus_conformance::server_process::{ServerProcess, free_port};
use ficus_conformance::skips::{FormatName, Parameters, Skips};
use ficus_conformance::world::{Settings, World};
use regex::Regex;

/// Runs TinkerPop's feature suite against a server over WebSocket.
#[derive(Parser)]
#[command(name = "ficus-conformance", version)]
struct Arguments {
    /// The server; without it one is started from FICUS_BIN, or from the binary beside this one
    #[arg(long)]
    url: Option<String>,
    /// Serializers, each a run of its own
    #[arg(long, value_delimiter = ',', default_value = "graphbinary,graphson3")]
    format: Vec<FormatName>,
    /// How parameters reach the server
    #[arg(long, default_value = "literal")]
    parameters: Parameters,
    /// Folder with feature files, or the jar of org.apache.tinkerpop:gremlin-test
    #[arg(long)]
    features: PathBuf,
    /// Only scenarios whose `feature: name` matches
    #[arg(long)]
    only: Option<Regex>,
    /// Another list of skips than the one built in
    #[arg(long)]
    skips: Option<PathBuf>,
    /// Treat known failures as failures
    #[arg(long)]
    strict: bool,
    /// What stands for `data` in the paths that io() reads
    #[arg(long)]
    data_path: Option<String>,
    /// Folder with the files that io() reads, for a server that is started here
    #[arg(long, conflicts_with = "url")]
    io_files: Option<PathBuf>,
    /// Fail when fewer scenarios pass; one number, or one per serializer
    #[arg(long, value_delimiter = ',')]
    expect_pass: Vec<usize>,
    /// Write every scenario's verdict to this file as JSON
    #[arg(long)]
    report: Option<PathBuf>,
    /// Print the report as JSON instead of text
    #[arg(long)]
    json: bool,
    /// Seconds that an answer may take
    #[arg(long, default_value_t = 60)]
    answer_seconds_max: u64,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("ficus-conformance: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<bool, String> {
    let skips = match &arguments.skips {
        Some(path) => std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?,
        None => include_str!("../skip.toml").to_owned(),
    };
    let skips = Skips::parse(&skips).map_err(|error| format!("skip.toml: {error}"))?;
    let features = features::read(&arguments.features)?;
    let folder = tempfile::tempdir().map_err(|error| format!("a folder for the server: {error}"))?;
    let (mut own_server, url) = match &arguments.url {
        Some(url) => (None, url.clone()),
        None => {
            let io_dir = folder.path().join("io");
            offer_files(arguments.io_files.as_deref(), &io_dir.join("data"))?;
            let setting = format!("engine.io_dir={}", io_dir.display());
            let flags = ["--demo", "tinkerpop", "--set", &setting];
            let server = ServerProcess::start(&folder.path().join("store"), free_port()?, &flags)?;
            let url = server.url();
            (Some(server), url)
        }
    };
    let mut reports = Vec::new();
    let mut green = true;
    for (index, &format) in arguments.format.iter().enumerate() {
        let settings = Settings {
            url: url.clone(),
            format: format.format(),
            parameters: arguments.parameters,
            data_path: arguments.data_path.clone(),
            answer_time_max: Duration::from_secs(arguments.answer_seconds_max),
        };
        let mut report = run_suite(arguments, &skips, &features, format, World::new(settings));
        if arguments.only.is_some() {
            // Most entries match nothing in a part of the suite.
            report.stale_skips.clear();
        }
        if !arguments.json {
            print!("{}", report.text());
        }
        let wanted = arguments.expect_pass.get(index).or_else(|| arguments.expect_pass.last()).copied().unwrap_or(0);
        let passed = report.count(Verdict::Passed);
        if passed < wanted {
            eprintln!("{}: expected at least {wanted} scenarios to pass, {passed} did", report.run);
            green = false;
        }
        green &= report.is_green();
        reports.push(report);
    }
    if let Some(server) = &mut own_server
        && !server.is_alive()
    {
        eprintln!("the server ended during the run:\n{}", server.log_tail());
        green = false;
    }
    let json = || serde_json::to_string_pretty(&reports).map_err(|error| format!("writing the report: {error}"));
    if let Some(path) = &arguments.report {
        std::fs::write(path, json()?).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    if arguments.json {
        println!("{}", json()?);
    }
    Ok(green)
}

/// Copies the files of `source` to a folder that the server may read and write.
fn offer_files(source: Option<&Path>, target: &Path) -> Result<(), String> {
    std::fs::create_dir_all(target).map_err(|error| format!("{}: {error}", target.display()))?;
    let Some(source) = source else { return Ok(()) };
    let fail = |error: std::io::Error| format!("{}: {error}", source.display());
    for entry in std::fs::read_dir(source).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        std::fs::copy(entry.path(), target.join(entry.file_name())).map_err(fail)?;
    }
    Ok(())
}

/// Runs the chosen scenarios with one serializer.
fn run_suite(
    arguments: &Arguments,
    skips: &Skips,
    features: &[features::Feature],
    format: FormatName,
    mut world: World,
) -> Report {
    let parameters = arguments.parameters;
    let known_failures = if arguments.strict { &[][..] } else { &skips.known_failure[..] };
    // Each entry with: whether it is a skip, how many scenarios it matched, how many of those passed.
    let entries = skips.skip.iter().map(|entry| (entry, Verdict::Skipped));
    let entries = entries.chain(known_failures.iter().map(|entry| (entry, Verdict::KnownFailure)));
    let mut entries: Vec<_> = entries.map(|(entry, verdict)| (entry, verdict, 0usize)).collect();
    let mut report = Report { run: format!("{format:?}, parameters as {parameters:?}"), ..Report::default() };

    for feature in features {
        for scenario in &feature.scenarios {
            if arguments
                .only
                .as_ref()
                .is_some_and(|only| !only.is_match(&format!("{}: {}", feature.path, scenario.name)))
            {
                continue;
            }
            let started = Instant::now();
            let outcome = world.run(scenario);
            let listed =
                entries.iter_mut().find(|(entry, ..)| entry.matches(&feature.path, scenario, format, parameters));
            let (verdict, reason) = match (&outcome, listed) {
                (Ok(()), None) => (Verdict::Passed, None),
                (Err(_), None) => (Verdict::Failed, None),
                (outcome, Some((entry, verdict, matched))) => {
                    *matched += 1;
                    match outcome {
                        Err(_) => (*verdict, Some(entry.reason.clone())),
                        Ok(()) => (Verdict::UnexpectedPass, Some(entry.reason.clone())),
                    }
                }
            };
            let mismatch = outcome.err();
            report.scenarios.push(Line {
                feature: feature.path.clone(),
                scenario: scenario.name.clone(),
                line: scenario.line,
                verdict,
                reason,
                step: mismatch.as_ref().map(|mismatch| mismatch.step.clone()),
                difference: mismatch.map(|mismatch| mismatch.difference),
                duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            });
        }
    }
    let stale = entries.iter().filter(|(entry, _, matched)| *matched == 0 && entry.concerns(format, parameters));
    report.stale_skips = stale.map(|(entry, ..)| format!("matches no scenario: {}", entry.describe())).collect();
    report
}
