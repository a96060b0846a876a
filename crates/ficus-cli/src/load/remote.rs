//! A load into a running server: files go there as a tar archive, and what becomes of their records comes back line by line.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader};
use std::path::{Component, Path, PathBuf};

use hyper::Method;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::job::{Choices, Report};
use super::progress::Progress;
use super::report::{Counts, Rejects};
use super::sources::Sources;
use crate::failure::Failure;
use crate::http_client::{HttpServer, path_part, query_string};
use crate::output::talk;

/// A line of the answer. Each has one of the fields, or something that later servers say.
#[derive(Deserialize)]
struct Line<'a> {
    /// How far it is.
    progress: Option<Far>,
    /// Something to tell the user.
    remark: Option<String>,
    /// A record that was rejected, as it stands in the report.
    #[serde(borrow)]
    rejected: Option<&'a RawValue>,
    /// What became of the load; the last line.
    report: Option<Report>,
}

#[derive(Deserialize)]
struct Far {
    bytes: u64,
    bytes_total: u64,
    counts: Counts,
}

/// Loads what was found into a graph of a server; gives what became of it, and the rejected records.
pub fn load(
    server: &HttpServer,
    graph: &str,
    found: Sources,
    choices: &Choices,
    reject_file: &Path,
    quiet: bool,
) -> Result<(Report, Rejects), Failure> {
    found.remarks.iter().for_each(|remark| talk(remark));
    let mut files: Vec<PathBuf> = Vec::new();
    let mut names = HashMap::new();
    for path in choices.mapping.iter().chain(found.sources.iter().map(|source| &source.path)) {
        if names.contains_key(path) {
            continue;
        }
        let name = name_there(path);
        if names.values().any(|taken| *taken == name) {
            return Err(Failure::usage(format!("{}: another file would have the same name there", path.display())));
        }
        names.insert(path.clone(), name);
        files.push(path.clone());
    }
    let name_of = |path: &Path| names.get(path).cloned().unwrap_or_else(|| name_there(path));
    let query = query_string(choices.parameters(name_of));
    let path = format!("/v1/graphs/{}/load?{query}", path_part(graph)?);
    let bytes: u64 = found.sources.iter().map(|source| source.bytes).sum();
    if !quiet {
        talk(&format!("sending {} files, {:.1} MB", files.len(), bytes as f64 / 1e6));
    }
    let send = |out: &mut ficus_server::transfer::PieceWriter| -> io::Result<()> {
        let mut archive = tar::Builder::new(out);
        for file in &files {
            let complain = |error: io::Error| match error.kind() {
                io::ErrorKind::BrokenPipe => error,
                kind => io::Error::new(kind, format!("{}: {error}", file.display())),
            };
            archive.append_path_with_name(file, name_of(file)).map_err(complain)?;
        }
        archive.finish()
    };
    server.ask(Method::POST, &path, Some(Box::new(send)), |answer| {
        // All of them come, those of an interrupted load as well.
        let mut rejects = Rejects::in_file(reject_file, 0)?;
        let mut progress = Progress::new(bytes, quiet);
        let mut report = None;
        for line in BufReader::new(answer.body).lines() {
            let line = line?;
            let said: Line<'_> = serde_json::from_str(&line)
                .map_err(|error| Failure::failed(format!("the server's answer cannot be read: {error}")))?;
            if let Some(far) = said.progress {
                progress.show(far.bytes, far.bytes_total, &far.counts);
            }
            if let Some(remark) = said.remark {
                talk(&remark);
            }
            if let Some(entry) = said.rejected {
                rejects.add_line(entry.get())?;
            }
            report = said.report.or(report);
        }
        progress.finish();
        match report {
            Some(report) => Ok((report, rejects)),
            None => Err(Failure::failed("the server ended the load without a report; see its log")),
        }
    })
}

/// The name of a file on the server, which knows no places outside of its own.
fn name_there(path: &Path) -> String {
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(part) => Some(part.to_string_lossy().into_owned()),
        Component::ParentDir => Some("up".to_owned()),
        _ => None,
    });
    parts.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_within_the_folder() {
        for (path, name) in [("/a/b.csv", "a/b.csv"), ("../b.csv", "up/b.csv"), ("./b.csv", "b.csv")] {
            assert_eq!(name_there(Path::new(path)), name);
        }
    }
}
