//! Finding and reading the feature files: a folder, or the jar that TinkerPop publishes.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::gherkin::{self, Scenario};

/// A feature file is some hundred kilobytes; more is not one.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// One feature file, read.
#[derive(Clone, Debug)]
pub struct Feature {
    /// Path below the folder or in the jar, from `features/` on.
    pub path: String,
    /// Its scenarios.
    pub scenarios: Vec<Scenario>,
}

/// Reads all feature files of `source`, sorted by path.
pub fn read(source: &Path) -> Result<Vec<Feature>, String> {
    let mut texts = if source.is_dir() { texts_of_folder(source)? } else { texts_of_jar(source)? };
    texts.sort();
    if texts.is_empty() {
        return Err(format!("{}: no feature files in it", source.display()));
    }
    let parse = |(path, text): (String, String)| match gherkin::parse(&text) {
        Ok(scenarios) => Ok(Feature { path: short(&path), scenarios }),
        Err(error) => Err(format!("{path}: {error}")),
    };
    texts.into_iter().map(parse).collect()
}

/// The part of a path that people know a feature by.
fn short(path: &str) -> String {
    path.rsplit_once("features/").map_or(path, |(_, rest)| rest).to_owned()
}

fn texts_of_folder(folder: &Path) -> Result<Vec<(String, String)>, String> {
    let mut texts = Vec::new();
    let mut folders: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let fail = |error: std::io::Error| format!("{}: {error}", folder.display());
        for entry in std::fs::read_dir(&folder).map_err(fail)? {
            let path = entry.map_err(fail)?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "feature") {
                texts.push((path.display().to_string(), std::fs::read_to_string(&path).map_err(fail)?));
            }
        }
    }
    Ok(texts)
}

fn texts_of_jar(jar: &Path) -> Result<Vec<(String, String)>, String> {
    let fail = |error: &dyn std::fmt::Display| format!("{}: {error}", jar.display());
    let file = File::open(jar).map_err(|error| fail(&error))?;
    let mut archive = zip::ZipArchive::new(file).map_err(|error| fail(&error))?;
    let mut texts = Vec::new();
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(|error| fail(&error))?;
        let name = entry.name().to_owned();
        if name.ends_with(".feature") {
            let mut text = String::new();
            entry.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(|error| fail(&error))?;
            texts.push((name, text));
        }
    }
    Ok(texts)
}
