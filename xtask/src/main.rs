//! Maintenance commands of the workspace: `cargo run -p xtask -- tidy`.
//!
//! `tidy` keeps documents, map and code in step. It also runs as a test of this crate, so `cargo test` finds what drifts.
#![forbid(unsafe_code)]

mod documents;
mod files;
mod finding;
mod layers;
mod licences;
mod skips;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use finding::Finding;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut stderr = std::io::stderr().lock();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["tidy"] => {
            let findings = tidy(&root());
            for finding in &findings {
                // If stderr is gone there is nobody to tell; the exit code says it too.
                let _ = writeln!(stderr, "{finding}");
            }
            let _ = writeln!(stderr, "tidy: {} to mend", findings.len());
            if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        _ => {
            let _ = writeln!(stderr, "usage: cargo run -p xtask -- tidy");
            ExitCode::from(2)
        }
    }
}

/// The root of the workspace.
fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().map_or_else(|| manifest.to_owned(), Path::to_owned)
}

/// Runs all checks.
fn tidy(root: &Path) -> Vec<Finding> {
    let tracked = match files::tracked(root) {
        Ok(tracked) => tracked,
        Err(reason) => return vec![Finding::new("workspace", 0, reason, "run this inside a clone with git installed")],
    };
    let mut findings = Vec::new();
    findings.extend(files::check(root, &tracked));
    findings.extend(documents::check(root, &tracked));
    findings.extend(layers::check(root));
    findings.extend(licences::check(root));
    findings.extend(skips::check(root));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_is_tidy() {
        let findings = tidy(&root());
        let listed: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert!(findings.is_empty(), "{} to mend:\n{}", findings.len(), listed.join("\n"));
    }
}
