//! Arrows point down: a crate depends only on crates of lower layers.

use std::path::Path;

use toml::Table;

use crate::finding::Finding;

/// The layers, top first; crates of one layer do not know each other.
const LAYERS: &[&[&str]] = &[
    &["ficus-cli"],
    &["ficus-server"],
    &["ficus-stream", "ficus-cluster"],
    &["ficus-gremlin", "ficus-a1ql", "ficus-wire"],
    &["ficus-query"],
    &["ficus-analytics"],
    &["ficus-dataflow", "ficus-storage"],
    &["ficus-model"],
];

/// Checks the manifests of all crates.
pub fn check(root: &Path) -> Vec<Finding> {
    let Ok(entries) = std::fs::read_dir(root.join("crates")) else { return Vec::new() };
    let mut findings = Vec::new();
    for entry in entries.filter_map(Result::ok) {
        let manifest = entry.path().join("Cargo.toml");
        let Ok(text) = std::fs::read_to_string(&manifest) else { continue };
        let crate_name = entry.file_name().to_string_lossy().into_owned();
        findings.extend(check_manifest(&crate_name, &text));
    }
    findings
}

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&name))
}

fn check_manifest(name: &str, text: &str) -> Vec<Finding> {
    let file = format!("crates/{name}/Cargo.toml");
    let manifest: Table = match text.parse() {
        Ok(manifest) => manifest,
        Err(error) => return vec![Finding::new(&file, 0, format!("it is no TOML: {error}"), "mend it")],
    };
    let Some(own) = layer(name) else {
        let remedy = "give it a layer in xtask/src/layers.rs and a paragraph in ARCHITECTURE.md";
        return vec![Finding::new(&file, 0, format!("the crate {name} has no layer"), remedy)];
    };
    let mut findings = Vec::new();
    // Tests may use what stands beside or above; what ships may not.
    for section in ["dependencies", "build-dependencies"] {
        let Some(dependencies) = manifest.get(section).and_then(toml::Value::as_table) else { continue };
        for dependency in dependencies.keys().filter(|dependency| dependency.starts_with("ficus-")) {
            if layer(dependency).is_none_or(|other| other <= own) {
                let what = format!("{name} depends on {dependency}, which is not below it");
                let remedy = "move the shared part down, or pass it in through a trait of the lower crate";
                findings.push(Finding::new(&file, 0, what, remedy));
            }
        }
        for (dependency, form) in dependencies {
            let shared = form.as_table().is_some_and(|form| form.get("workspace") == Some(&toml::Value::Boolean(true)));
            if !shared {
                let remedy = "name it under [workspace.dependencies] with a line on what it does for us";
                findings.push(Finding::new(&file, 0, format!("{dependency} has a version of its own"), remedy));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_point_down() {
        let count = |name: &str, text: &str| check_manifest(name, text).len();
        assert_eq!(count("ficus-query", "[dependencies]\nficus-storage.workspace = true\n"), 0);
        assert_eq!(count("ficus-storage", "[dependencies]\nficus-query.workspace = true\n"), 1);
        assert_eq!(count("ficus-storage", "[dependencies]\nficus-dataflow.workspace = true\n"), 1);
        assert_eq!(count("ficus-storage", "[dev-dependencies]\nficus-query.workspace = true\n"), 0);
        assert_eq!(count("ficus-unheard", ""), 1);
        assert_eq!(count("ficus-model", "[dependencies]\nuuid = \"1\"\n"), 1);
    }
}
