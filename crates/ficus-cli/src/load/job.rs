//! A load from what is asked to what became of it: on a data directory by `ficus load`, or within a server that goes on
//! answering.

use std::sync::Arc;

use clap::{Parser, ValueEnum};
use ficus_storage::{Graph, Store};
use serde::{Deserialize, Serialize};

use super::loader::{self, LoadError, LoadOptions};
use super::progress::Progress;
use super::record;
use super::report::{Counts, Rejects};
use super::resume::{self, Position};
use super::sources::{FileGroup, Source, SourceForm, SourceOptions, Sources};
use crate::column_type::ColumnType;
use crate::failure::Failure;

/// What is to be loaded, and how files are read. The same flags of the command line are the parameters of a request.
#[derive(Clone, Debug, clap::Args)]
pub struct Choices {
    /// Form of the input.
    #[arg(long, value_enum, default_value = "auto", value_name = "FORM")]
    pub from: SourceForm,
    /// A mapping file that says what delimited files with other headers mean.
    #[arg(long, value_name = "FILE")]
    pub mapping: Option<std::path::PathBuf>,
    /// Vertex files with Neo4j headers, as [LABEL=]FIRST,MORE…: the header of the first counts for all. Repeatable.
    #[arg(long, value_name = "GROUP", value_parser = FileGroup::parse)]
    pub vertices: Vec<FileGroup>,
    /// Edge files with Neo4j headers, as [TYPE=]FIRST,MORE…. Repeatable.
    #[arg(long, value_name = "GROUP", value_parser = FileGroup::parse)]
    pub edges: Vec<FileGroup>,
    /// Type of ids that the input leaves untyped (GraphML, Neptune, Neo4j without id-type): string, int, long, uuid.
    #[arg(long, default_value = "string", value_name = "TYPE", value_parser = ColumnType::from_name)]
    pub id_type: ColumnType,
    /// Between the fields of CSV; one character.
    #[arg(long, default_value = ",", value_name = "CHAR", value_parser = ascii)]
    pub delimiter: u8,
    /// Between the values of an array in CSV with Neo4j headers.
    #[arg(long, default_value = ";", value_name = "CHAR")]
    pub array_delimiter: char,
    /// Index the values of a property before loading: KEY, or LABEL:KEY for one label. Repeatable.
    #[arg(long, value_name = "INDEX")]
    pub index: Vec<String>,
    /// Read and check everything as if the graph were empty, keep nothing. Needs memory for the whole graph.
    #[arg(long)]
    pub dry_run: bool,
    /// Go on with a load of the same files that was interrupted. Nothing is loaded twice, and nothing at all if it was complete.
    #[arg(long, conflicts_with = "dry_run")]
    pub resume: bool,
    /// Begin anew although an earlier load of the graph was interrupted; what that one loaded stays.
    #[arg(long, conflicts_with = "resume")]
    pub forget: bool,
    /// Rejections after which the load is given up.
    #[arg(long, default_value_t = 1000, value_name = "COUNT")]
    pub max_errors: u64,
    /// Threads that read and parse; the default is the number of cores.
    #[arg(long, value_name = "COUNT")]
    pub threads: Option<usize>,
}

fn ascii(text: &str) -> Result<u8, String> {
    match text {
        "\\t" | "tab" => Ok(b'\t'),
        _ if text.len() == 1 => Ok(text.as_bytes()[0]),
        _ => Err("one ASCII character is expected, or tab".into()),
    }
}

/// A request's parameters, read as the flags that they are.
#[derive(Debug, clap::Parser)]
#[command(name = "load", no_binary_name = true, disable_help_flag = true)]
struct Parameters {
    #[command(flatten)]
    choices: Choices,
}

/// Parameters that are there or not.
const SWITCHES: [&str; 3] = ["dry-run", "resume", "forget"];

impl Choices {
    /// Reads the parameters of a request: names of flags, `true` or `false` for those without a value.
    pub fn from_parameters(parameters: &[(String, String)]) -> Result<Choices, String> {
        let mut arguments = Vec::with_capacity(parameters.len());
        for (name, value) in parameters {
            let name = name.replace('_', "-");
            match value.as_str() {
                "" | "true" if SWITCHES.contains(&&*name) => arguments.push(format!("--{name}")),
                "false" if SWITCHES.contains(&&*name) => {}
                _ => arguments.push(format!("--{name}={value}")),
            }
        }
        let parsed = Parameters::try_parse_from(arguments).map_err(|error| {
            let text = error.to_string();
            let text = text.trim_start_matches("error: ").replace("argument '--", "parameter '");
            text.lines().next().unwrap_or_default().to_owned()
        })?;
        Ok(parsed.choices)
    }

    /// As the parameters of a request; `name` gives files the names that they have there.
    pub fn parameters(&self, name: impl Fn(&std::path::Path) -> String) -> Vec<(&'static str, String)> {
        let Choices { from, mapping, vertices, edges, id_type, delimiter, array_delimiter, .. } = self;
        let mut all = vec![
            ("from", from.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()),
            ("id-type", id_type.name().to_owned()),
            ("delimiter", char::from(*delimiter).to_string()),
            ("array-delimiter", array_delimiter.to_string()),
            ("max-errors", self.max_errors.to_string()),
        ];
        all.extend(mapping.as_deref().map(|path| ("mapping", name(path))));
        let group = |group: &FileGroup| {
            let files = group.files.iter().map(|file| name(file)).collect::<Vec<_>>().join(",");
            group.label.as_ref().map_or(files.clone(), |label| format!("{label}={files}"))
        };
        all.extend(vertices.iter().map(|files| ("vertices", group(files))));
        all.extend(edges.iter().map(|files| ("edges", group(files))));
        all.extend(self.index.iter().map(|index| ("index", index.clone())));
        all.extend(self.threads.map(|threads| ("threads", threads.to_string())));
        let switches = [self.dry_run, self.resume, self.forget];
        all.extend(
            SWITCHES.into_iter().zip(switches).filter(|(_, is_on)| *is_on).map(|(name, _)| (name, "true".into())),
        );
        all
    }

    /// Where the files are: `paths`, and those that groups and mapping name.
    pub fn sources(&self, paths: Vec<std::path::PathBuf>) -> SourceOptions {
        let mut groups = self.vertices.clone();
        groups.extend(self.edges.iter().cloned());
        SourceOptions {
            paths,
            groups,
            form: self.from,
            mapping: self.mapping.clone(),
            id_kind: self.id_type,
            delimiter: self.delimiter,
            list_separator: self.array_delimiter,
        }
    }

    /// What stands in the mapping file.
    pub fn mapping_text(&self) -> Result<String, String> {
        match &self.mapping {
            Some(path) => std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display())),
            None => Ok(String::new()),
        }
    }

    /// The options that say how files are read, as a text that two equal loads have in common; `mapping` is that of the file.
    pub fn how_read(&self, mapping: &str) -> String {
        let Choices { from, vertices, edges, id_type, delimiter, array_delimiter, .. } = self;
        format!("{from:?} {vertices:?} {edges:?} {id_type:?} {delimiter} {array_delimiter:?} {mapping}")
    }
}

/// A load that may begin.
pub struct Job {
    graph: Arc<Graph>,
    sources: Vec<Source>,
    choices: Choices,
    /// Where it begins.
    position: Position,
    /// Whether the graph is built as a whole.
    is_whole: bool,
}

/// What became of a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The graph.
    pub graph: String,
    /// Whether nothing was to be kept.
    pub dry_run: bool,
    /// What became of the records.
    #[serde(flatten)]
    pub counts: Counts,
    /// Whether every record that was read was either loaded or rejected.
    pub balanced: bool,
    /// Whether all files were read to their ends.
    pub complete: bool,
    /// Whether what was loaded is in the graph.
    pub kept: bool,
    /// How long it took.
    pub seconds: f64,
    /// Why it ended early.
    pub error: Option<String>,
}

impl Job {
    /// Looks whether a load of what was found into a graph may begin. `how` is [`Choices::how_read`]; remarks go to `talk`.
    pub fn new(
        store: &Store,
        graph_name: &str,
        found: Sources,
        choices: Choices,
        how: &str,
        talk: &mut dyn FnMut(&str),
    ) -> Result<Job, Failure> {
        found.remarks.iter().for_each(|remark| talk(remark));
        let is_new = store.graph(graph_name).is_none();
        let graph = crate::store::graph_or_new(store, graph_name)?;
        graph.damage().map_or(Ok(()), Err)?;
        let is_whole = graph.load().is_some();
        let inputs = resume::inputs(&found.sources, how);
        let noted = Position::of(&graph)?;
        let position = match noted {
            Some(noted) if choices.resume && !is_whole && noted.inputs == inputs => noted,
            Some(noted) if choices.resume && !is_whole && !noted.done => {
                return Err(Failure::failed(format!(
                    "the load into graph {graph_name} that was interrupted was of other files, or with other options; give \
                     the same, or --forget it"
                )));
            }
            Some(noted) if !noted.done && !choices.forget && !is_whole && !choices.dry_run => {
                return Err(Failure::failed(format!(
                    "a load into graph {graph_name} was interrupted after {} records; go on with it with --resume, or \
                     --forget it",
                    noted.counts.read
                )));
            }
            _ => Position { inputs, ..Position::default() },
        };
        if position.done {
            talk(&format!("the load into graph {graph_name} was complete already"));
        } else if position.items > 0 {
            talk(&format!("going on behind {} records", position.counts.read));
        }
        if is_whole && !is_new && choices.resume {
            talk(&format!("graph {graph_name} has no elements; of a load that was interrupted nothing is kept"));
        }
        Ok(Job { graph, sources: found.sources, choices, position, is_whole })
    }

    /// The graph.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// Bytes that the report of rejected records has already.
    pub fn reject_bytes(&self) -> u64 {
        self.position.reject_bytes
    }

    /// Bytes on disk that will be read.
    pub fn bytes(&self) -> u64 {
        let passes = [record::Pass::Vertices, record::Pass::Edges];
        let speaking = passes.iter().flat_map(|pass| self.sources.iter().filter(|source| source.speaks_in(*pass)));
        speaking.map(|source| source.bytes).sum()
    }

    /// Loads.
    ///
    /// Errors: what keeps a load from beginning; what ends it early is in the report.
    pub fn run(self, rejects: &mut Rejects, progress: &mut Progress) -> Result<Report, Failure> {
        let Job { graph, sources, choices, position, is_whole } = self;
        for index in choices.index.iter().filter(|_| position.items == 0 && !position.done) {
            let (label, key) = index.split_once(':').map_or((None, index.as_str()), |(label, key)| (Some(label), key));
            graph.create_index(label, key)?;
        }
        let threads = choices.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
        let (was_done, mut counts) = (position.done, position.counts);
        let Choices { dry_run, max_errors: errors_max, .. } = choices;
        let options = LoadOptions { threads, errors_max, dry_run, position };
        let outcome = match was_done {
            true => Ok(()),
            false => loader::load(&graph, &sources, &options, rejects, progress, &mut counts),
        };
        progress.finish();
        rejects.flush().map_err(LoadError::Report).map_err(Failure::failed)?;
        let error = outcome.as_ref().err().map(|error| match counts.read {
            0 => error.to_string(),
            _ if is_whole => format!("{error}; the graph has no elements, as before"),
            _ => format!("{error}; what was committed until then stays in the graph, go on with --resume"),
        });
        Ok(Report {
            graph: graph.name().to_string(),
            dry_run,
            counts,
            balanced: counts.balanced(),
            complete: outcome.is_ok(),
            kept: !dry_run && (outcome.is_ok() || !is_whole),
            seconds: progress.elapsed().as_secs_f64(),
            error,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn parameters_are_flags() {
        let given = [
            ("from", "neo4j"),
            ("vertices", "Person=a.csv,b.csv"),
            ("edges", "KNOWS=c.csv"),
            ("id_type", "long"),
            ("delimiter", "|"),
            ("index", "Person:name"),
            ("index", "age"),
            ("max-errors", "7"),
            ("resume", "true"),
            ("forget", "false"),
        ];
        let choices = Choices::from_parameters(&pairs(&given)).expect("all of them are known");
        assert_eq!((choices.from, choices.delimiter, choices.max_errors), (SourceForm::Neo4j, b'|', 7));
        assert!(choices.resume && !choices.forget && !choices.dry_run);
        let again = choices.parameters(|path| path.display().to_string());
        let again: Vec<_> = again.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let again = Choices::from_parameters(&again).expect("they are its own");
        assert_eq!(format!("{choices:?}"), format!("{again:?}"));
    }

    #[test]
    fn unknown_parameters_and_values_are_named() {
        for (parameter, part) in
            [(("frm", "csv"), "frm"), (("from", "xls"), "xls"), (("max-errors", "x"), "max-errors")]
        {
            let error = Choices::from_parameters(&pairs(&[parameter])).expect_err("it is wrong");
            assert!(error.contains(part), "{error}");
        }
        assert!(Choices::from_parameters(&pairs(&[("resume", "1")])).is_err());
    }
}
