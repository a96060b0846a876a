//! Documents that stay true: every path and every crate they name in code font exists, and the map names every crate.

use std::collections::BTreeSet;
use std::path::Path;

use crate::finding::Finding;

/// The file with the map.
const MAP: &str = "ARCHITECTURE.md";

/// Folders at the root; a word in code font that begins with one of them is a path.
const ROOT_FOLDERS: &[&str] = &["crates/", "docs/", "tests/", "xtask/", ".ci/", "fuzz/"];

/// Checks all documents.
pub fn check(root: &Path, tracked: &[String]) -> Vec<Finding> {
    let crates = crate_names(root);
    let mut findings = Vec::new();
    for name in tracked.iter().filter(|name| name.ends_with(".md")) {
        let Ok(text) = std::fs::read_to_string(root.join(name)) else { continue };
        let folder = Path::new(name).parent().unwrap_or(Path::new(""));
        let exists = |path: &str| {
            let path = path.trim_end_matches('/');
            root.join(path).exists() || root.join(folder).join(path).exists() || matches_tracked(path, tracked)
        };
        findings.extend(check_text(name, &text, &crates, exists));
    }
    match std::fs::read_to_string(root.join(MAP)) {
        Ok(map) => {
            for missing in crates.iter().filter(|name| !map.contains(&format!("`{name}`"))) {
                let what = format!("the crate `{missing}` is not on the map");
                findings.push(Finding::new(MAP, 0, what, "add its paragraph: what it is, what it must never know"));
            }
        }
        Err(_) => {
            findings.push(Finding::new(MAP, 0, "there is no map", "write it: the crates, top first, and their rules"))
        }
    }
    findings
}

/// Names of the crates in `crates/`.
fn crate_names(root: &Path) -> BTreeSet<String> {
    let Ok(entries) = std::fs::read_dir(root.join("crates")) else { return BTreeSet::new() };
    entries
        .filter_map(Result::ok)
        .filter(|entry| entry.path().join("Cargo.toml").is_file())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Whether a path with `*` or a tail such as `:12` stands for a file of the project.
fn matches_tracked(path: &str, tracked: &[String]) -> bool {
    let path = path.split(':').next().unwrap_or(path);
    match path.split_once('*') {
        Some((before, after)) => tracked.iter().any(|name| name.starts_with(before) && name.ends_with(after)),
        None => tracked.iter().any(|name| name == path || name.starts_with(&format!("{path}/"))),
    }
}

fn check_text(name: &str, text: &str, crates: &BTreeSet<String>, exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut in_block = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
            continue;
        }
        if in_block {
            continue;
        }
        for word in code_words(line) {
            if word.starts_with("ficus-") && is_crate_name(word) && !crates.contains(word) {
                let what = format!("there is no crate `{word}`");
                findings.push(Finding::new(name, index + 1, what, "name the crate as it is called now"));
            }
            if ROOT_FOLDERS.iter().any(|folder| word.starts_with(folder)) && is_path(word) && !exists(word) {
                let what = format!("there is no `{word}`");
                findings.push(Finding::new(name, index + 1, what, "name the file as it is called now"));
            }
        }
        for target in link_targets(line) {
            let path = target.split('#').next().unwrap_or_default();
            if !path.is_empty() && !path.contains("://") && !path.starts_with("mailto:") && !exists(path) {
                let what = format!("the link to {path} leads nowhere");
                findings.push(Finding::new(name, index + 1, what, "link to the file as it is called now"));
            }
        }
    }
    findings
}

/// Words between single backticks.
fn code_words(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

fn is_crate_name(word: &str) -> bool {
    // The test kits and their binaries are no crates of the map.
    !["ficus-conformance", "ficus-kill9", "ficus-proof", "ficus-history", "ficus-crash"].contains(&word)
        && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

fn is_path(word: &str) -> bool {
    !word.contains([' ', '<', '>', '{', '$', '…', '('])
}

/// Targets of `[text](target)`.
fn link_targets(line: &str) -> Vec<&str> {
    line.match_indices("](")
        .filter_map(|(at, _)| {
            let rest = &line[at + 2..];
            rest.find(')').map(|end| rest[..end].trim())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_must_exist() {
        let crates: BTreeSet<String> = ["ficus-model".to_owned()].into();
        let check = |text: &str| {
            let findings = check_text("a.md", text, &crates, |path| path == "docs/a.md");
            findings.into_iter().map(|finding| (finding.line, finding.what)).collect::<Vec<_>>()
        };
        assert_eq!(check("`ficus-model`, `docs/a.md`, [a](docs/a.md#top), [b](https://x.example)\n"), []);
        assert_eq!(check("\n`ficus-old`"), [(2, "there is no crate `ficus-old`".to_owned())]);
        assert_eq!(check("`docs/b.md`"), [(1, "there is no `docs/b.md`".to_owned())]);
        assert_eq!(check("[b](docs/b.md)"), [(1, "the link to docs/b.md leads nowhere".to_owned())]);
        assert_eq!(check("```\n`docs/b.md`\n```\n"), []);
    }
}
