//! Licences of everything that is linked in: each dependency offers one that goes with Apache-2.0.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::finding::Finding;

/// Licences that ask for no more than their text being kept.
const ALLOWED: &[&str] = &[
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "MIT",
    "MIT-0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
    "0BSD",
];

/// Checks all dependencies that `cargo metadata` lists.
pub fn check(root: &Path) -> Vec<Finding> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo).args(["metadata", "--format-version", "1", "--locked"]).current_dir(root).output();
    let problem = |reason: String| {
        vec![Finding::new(
            "Cargo.lock",
            0,
            format!("licences are unknown: {reason}"),
            "make `cargo metadata --locked` work",
        )]
    };
    let output = match output {
        Ok(output) if output.status.success() => output,
        Ok(output) => return problem(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => return problem(error.to_string()),
    };
    match serde_json::from_slice::<Value>(&output.stdout) {
        Ok(metadata) => check_packages(&metadata["packages"]),
        Err(error) => problem(error.to_string()),
    }
}

fn check_packages(packages: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages.as_array().into_iter().flatten() {
        let (name, version) = (text(package, "name"), text(package, "version"));
        let licence = text(package, "license");
        if !is_allowed(licence) {
            let what = if licence.is_empty() {
                format!("{name} {version} names no licence")
            } else {
                format!("{name} {version} is under '{licence}'")
            };
            findings.push(Finding::new(
                "Cargo.lock",
                0,
                what,
                "find another crate, or decide in docs/decisions and allow it",
            ));
        }
    }
    findings
}

fn text<'a>(package: &'a Value, key: &str) -> &'a str {
    package[key].as_str().unwrap_or_default()
}

/// Whether an SPDX expression can be met by allowed licences alone.
fn is_allowed(expression: &str) -> bool {
    let tokens = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut tokens = tokens.split_whitespace().collect::<Vec<_>>().into_iter().peekable();
    let allowed = any_of(&mut tokens);
    allowed && tokens.next().is_none()
}

type Tokens<'a> = std::iter::Peekable<std::vec::IntoIter<&'a str>>;

fn any_of(tokens: &mut Tokens<'_>) -> bool {
    let mut allowed = all_of(tokens);
    while tokens.next_if_eq(&"OR").is_some() {
        allowed |= all_of(tokens);
    }
    allowed
}

fn all_of(tokens: &mut Tokens<'_>) -> bool {
    let mut allowed = single(tokens);
    while tokens.next_if_eq(&"AND").is_some() {
        allowed &= single(tokens);
    }
    allowed
}

fn single(tokens: &mut Tokens<'_>) -> bool {
    match tokens.next() {
        Some("(") => {
            let allowed = any_of(tokens);
            allowed && tokens.next() == Some(")")
        }
        Some(name) => match tokens.next_if_eq(&"WITH").and_then(|_| tokens.next()) {
            Some(exception) => ALLOWED.contains(&format!("{name} WITH {exception}").as_str()),
            None => ALLOWED.contains(&name),
        },
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_weighed() {
        let cases = [
            ("MIT", true),
            ("MIT OR Apache-2.0", true),
            ("MIT/Apache-2.0", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR MIT", true),
            ("GPL-3.0 AND MIT", false),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("Apache-2.0 WITH LLVM-exception OR MIT", true),
            ("Apache-2.0 WITH Something", false),
            ("Apache-2.0 AND ISC", true),
            ("", false),
        ];
        for (expression, expected) in cases {
            assert_eq!(is_allowed(expression), expected, "{expression}");
        }
    }

    #[test]
    fn packages_are_named() {
        let packages = serde_json::json!([
            {"name": "a", "version": "1.0.0", "license": "MIT"},
            {"name": "b", "version": "2.0.0", "license": null},
            {"name": "c", "version": "3.0.0", "license": "AGPL-3.0"},
        ]);
        let found: Vec<String> = check_packages(&packages).into_iter().map(|finding| finding.what).collect();
        assert_eq!(found, ["b 2.0.0 names no licence", "c 3.0.0 is under 'AGPL-3.0'"]);
    }
}
