//! Each skipped scenario of the feature suite has a reason.

use std::path::Path;

use toml::Table;

use crate::finding::Finding;

/// The list of skipped scenarios.
const SKIPS: &str = "tests/conformance/skip.toml";

/// Checks the list, if there is one.
pub fn check(root: &Path) -> Vec<Finding> {
    match std::fs::read_to_string(root.join(SKIPS)) {
        Ok(text) => check_text(&text),
        Err(_) => Vec::new(),
    }
}

fn check_text(text: &str) -> Vec<Finding> {
    let lists: Table = match text.parse() {
        Ok(lists) => lists,
        Err(error) => return vec![Finding::new(SKIPS, 0, format!("it is no TOML: {error}"), "mend it")],
    };
    let mut findings = Vec::new();
    for (list, entries) in &lists {
        for (index, entry) in entries.as_array().into_iter().flatten().enumerate() {
            let texts = ["reason", "cause"].iter().filter_map(|key| entry.get(key).and_then(toml::Value::as_str));
            if !texts.into_iter().any(|text| text.trim().len() >= 10) {
                let what = format!("entry {} of {list} gives no reason", index + 1);
                findings.push(Finding::new(SKIPS, 0, what, "say why, as a provider would explain it to a user"));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_need_reasons() {
        assert_eq!(check_text("[[skip]]\nreason = \"needs a graph computer\"\n").len(), 0);
        assert_eq!(check_text("[[skip]]\nreason = \"\"\n[[known_failure]]\nscenario = \"a\"\n").len(), 2);
    }
}
