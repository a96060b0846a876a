//! Rules that every file of the project keeps: length, words that do not belong here, a paragraph on top.

use std::path::Path;
use std::process::Command;

use crate::finding::Finding;

/// The longest source file.
const LINES_MAX: usize = 1000;

/// Texts that tie the project to one machine or one network, with what to write instead. Written in two parts, so that
/// this file does not hold them.
const FORBIDDEN: &[(&str, &str, &str)] = &[
    ("/wo", "rk/", "name the path from the root of the project"),
    ("/ro", "ot/", "name the path from the root of the project, or use $HOME"),
    ("/tm", "p/ref", "describe the fact instead of the place it was found"),
    ("ghp", "_", "secrets never enter the repository"),
    ("BEGIN PRIVATE", " KEY", "secrets never enter the repository; tests make their keys"),
];

/// Hosts of package mirrors; the public registries that documents name are not among them.
const MIRRORS: &[(&str, &str)] = &[("artifac", "tory"), ("nex", "us/repository"), (".pk", "g.dev/mirror")];

/// Ends of names of files that hold text we write.
const TEXT_ENDS: &[&str] = &[
    ".rs", ".md", ".toml", ".sh", ".py", ".cjs", ".js", ".java", ".go", ".yml", ".yaml", "Makefile", ".ci/run", ".pest",
];

/// Files under version control, and new ones that are not ignored.
pub fn tracked(root: &Path) -> Result<Vec<String>, String> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("git cannot be run: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    let names = String::from_utf8_lossy(&output.stdout);
    Ok(names.lines().filter(|name| root.join(name).is_file()).map(str::to_owned).collect())
}

/// Checks all text files.
pub fn check(root: &Path, tracked: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in tracked.iter().filter(|name| TEXT_ENDS.iter().any(|end| name.ends_with(end))) {
        match std::fs::read_to_string(root.join(name)) {
            Ok(text) => findings.extend(check_text(name, &text)),
            Err(error) => {
                findings.push(Finding::new(name, 0, format!("it cannot be read: {error}"), "write it as UTF-8"))
            }
        }
    }
    findings
}

fn check_text(name: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lines = text.lines().count();
    if name.ends_with(".rs") && lines > LINES_MAX {
        let what = format!("{lines} lines, more than {LINES_MAX}");
        findings.push(Finding::new(name, 0, what, "cut it where its //! paragraph shows a second concept"));
    }
    // Tests in a file of their own stand beside the module that says what they are about.
    let is_module = name.ends_with(".rs") && name.contains("/src/") && !name.ends_with("tests.rs");
    if is_module && !text.trim_start().starts_with("//!") && !text.trim_start().starts_with("#![") {
        findings.push(Finding::new(name, 1, "no //! paragraph", "say what the module is and what it leaves to others"));
    }
    for (index, line) in text.lines().enumerate() {
        for (first, second, remedy) in FORBIDDEN {
            if line.contains(&format!("{first}{second}")) {
                findings.push(Finding::new(name, index + 1, format!("'{first}{second}' is of one machine"), *remedy));
            }
        }
        for (first, second) in MIRRORS {
            if line.contains(&format!("{first}{second}")) {
                let remedy = "leave the choice of registry to the user's own configuration";
                findings.push(Finding::new(name, index + 1, format!("'{first}{second}' is a package mirror"), remedy));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_does_not_belong() {
        let count = |name: &str, text: &str| check_text(name, text).len();
        assert_eq!(count("crates/a/src/b.rs", "//! Fine.\n"), 0);
        assert_eq!(count("crates/a/src/b.rs", "fn main() {}\n"), 1);
        assert_eq!(count("docs/a.md", &format!("see /wo{}x", "rk/")), 1);
        assert_eq!(count("crates/a/src/b.rs", &format!("//! Long.\n{}", "\n".repeat(LINES_MAX))), 1);
        assert_eq!(count("docs/a.md", &"\n".repeat(LINES_MAX + 5)), 0);
    }
}
