//! Other engines on the same graph with the same questions, as programs of their own.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{Bench, Measured, Print, at_least, at_most};
use crate::Outcome;
use crate::failure::Failure;
use crate::output::talk;

/// Name, text, and by how much we want to be faster, by case.
type Peer = (&'static str, &'static str, &'static [(&'static str, f64)]);

/// The programs.
const PEERS: &[Peer] = &[
    (
        "GraphBLAS",
        include_str!("../../../../../bench/peers/khop_graphblas.py"),
        &[("100 x 3 hops", 12.0), ("3 hops alone", 2.0), ("search alone", 1.0), (super::PAGE_RANK, 1.5)],
    ),
    (
        "igraph",
        include_str!("../../../../../bench/peers/khop_igraph.py"),
        &[("3 hops alone", 1.0), ("search alone", 1.0)],
    ),
    ("FalkorDB", include_str!("../../../../../bench/peers/khop_falkordb.py"), &[("100 x 3 hops", 10.0)]),
];

/// What a program ends with when its engine is not installed, and the suite can do without.
const NOT_THERE: i32 = 3;

/// Runs them with this Python, which has the engines installed.
pub fn run(bench: &Bench, python: &Path, ours: &Measured, print: Print<'_>) -> Outcome {
    let sources = bench.csv.join("sources");
    let mut file = std::fs::File::create(&sources)?;
    for id in &bench.ids {
        writeln!(file, "{id}")?;
    }
    for (name, program, targets) in PEERS {
        talk(&format!("asking {name}"));
        let output = Command::new(python)
            .args(["-c", program])
            .arg(bench.csv.join("knows.csv"))
            .arg((1u64 << bench.scale).to_string())
            .arg(&sources)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()?;
        if output.status.code() == Some(NOT_THERE) {
            talk(&format!("{name} is not installed: its measures are missing"));
            continue;
        }
        if !output.status.success() {
            let how = format!("{name} with {} ended with {}", python.display(), output.status);
            return Err(Failure::failed(format!("{how}; bench/peers/README.md tells what it needs")));
        }
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let measure: serde_json::Value = serde_json::from_str(line).map_err(Failure::failed)?;
            let case = measure["case"].as_str().unwrap_or_default();
            let theirs = measure["ms"].as_f64().unwrap_or(f64::NAN);
            print(at_most(bench.scale, &format!("{case}, {name}"), "time", theirs, "ms", None))?;
            let Some((case, own, found)) = ours.iter().find(|(own, ..)| own.as_str() == case) else { continue };
            if measure["count"].as_u64() != Some(*found) {
                let count = &measure["count"];
                return Err(Failure::failed(format!("{case}: {name} finds {count} vertices, we find {found}")));
            }
            let target = targets.iter().find(|(known, _)| *known == case.as_str()).map(|(_, factor)| *factor);
            print(at_least(bench.scale, &format!("{case}, {name} / ours"), "speed-up", theirs / own, "ratio", target))?;
        }
    }
    Ok(())
}
