//! `ficus export`: a graph, as it is at one commit, into files.
//!
//! The graph is read from one snapshot and streamed: writers of the server are not disturbed and memory stays small.
//! Forms that cannot hold everything (GraphML, CSV) are surveyed first; what would be lost is named and refused unless
//! the user says `--lossy`. `--to compact` and `--to graphson` lose nothing.

mod csv;
pub mod elements;
mod graphml;
mod graphson;
mod gryo;
mod line_form;
mod parquet;
mod survey;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use ficus_storage::Snapshot;
use hyper::Method;
use serde_json::json;

use self::elements::Elements;
use self::survey::Survey;
use crate::Outcome;
use crate::connection::Trust;
use crate::failure::Failure;
use crate::http_client::{HttpServer, path_part, query_string};
use crate::output::{OutputFormat, result, talk};

/// Forms that `export` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum TargetForm {
    /// GraphSON 3, one vertex per line.
    Graphson,
    /// GraphML as TinkerPop reads it.
    Graphml,
    /// Gryo 3, the binary form of TinkerPop.
    Gryo,
    /// CSV with the headers of neo4j-admin, one file per label.
    Neo4j,
    /// CSV with the headers of Neptune, one file per label.
    Neptune,
    /// Parquet, one file of typed columns per label.
    Parquet,
    /// FicusDB's own line form.
    Compact,
}

impl TargetForm {
    /// Whether this form makes one file per label.
    pub fn is_folder(self) -> bool {
        matches!(self, TargetForm::Neo4j | TargetForm::Neptune | TargetForm::Parquet)
    }
}

/// Flags of `ficus export`.
#[derive(Debug, clap::Args)]
pub struct ExportArguments {
    /// The file to write, `-` for stdout; for the CSV forms and Parquet a folder.
    target: PathBuf,
    /// The data directory. No server may be using it: see --server.
    #[arg(long, value_name = "DIR", env = "FICUS_STORE__DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// Export from a running server, as HOST:PORT. Counts more than --data-dir.
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,
    /// The user's name for --server; the password comes from FICUS_PASSWORD.
    #[arg(long, value_name = "NAME", env = "FICUS_USER")]
    user: Option<String>,
    #[command(flatten)]
    trust: Trust,
    /// The graph.
    #[arg(long, default_value = "g", value_name = "NAME")]
    graph: String,
    /// Form of the output; if absent, told by the name of the target.
    #[arg(long, value_enum, value_name = "FORM")]
    to: Option<TargetForm>,
    /// Leave out, or write as text, what the form cannot hold.
    #[arg(long)]
    lossy: bool,
}

/// Runs the verb.
pub fn run(arguments: ExportArguments, format: OutputFormat) -> Outcome {
    let ExportArguments { target, data_dir, server, user, trust, graph: name, to, lossy } = arguments;
    let form = to
        .or_else(|| form_of(&target))
        .ok_or_else(|| Failure::usage(format!("the name {} tells no form; give one with --to", target.display())))?;
    let to_stdout = target.as_os_str() == "-";
    if form.is_folder() && to_stdout {
        return Err(Failure::usage("this form makes one file per label; name a folder instead of -"));
    }
    let (vertices, edges) = match (server, data_dir) {
        (Some(server), _) => {
            let server = HttpServer::new(&server, crate::shell::credentials(user)?, trust)?;
            from_server(&server, &name, form, lossy, &target)?
        }
        (None, Some(data_dir)) => {
            let graphs = crate::store::read(&data_dir)?;
            let snapshot = graphs.snapshot(&name)?.ok_or_else(|| crate::store::no_graph(&name, &graphs.names()))?;
            let export = Export::new(snapshot, form, lossy)?;
            export.remarks().iter().for_each(|remark| talk(remark));
            if form.is_folder() {
                export.write_folder(&target)?;
            } else {
                let mut out = open(&target, to_stdout)?;
                export.write_document(&mut out)?;
                out.flush()?;
            }
            export.counts()
        }
        (None, None) => {
            return Err(Failure::usage(
                "say from where: --data-dir DIR for a data directory that no server uses, --server HOST:PORT for a running server",
            ));
        }
    };
    let line = match format {
        OutputFormat::Json => json!({"graph": name, "vertices": vertices, "edges": edges}).to_string(),
        _ => format!("wrote {vertices} vertices and {edges} edges of {name} to {}", target.display()),
    };
    // What goes to stdout as the export itself must not be mixed with anything.
    if to_stdout {
        talk(&line)
    } else {
        result(&line)?
    }
    Ok(())
}

/// Has a server write a graph; gives the numbers of its vertices and edges.
fn from_server(
    server: &HttpServer,
    graph: &str,
    form: TargetForm,
    lossy: bool,
    target: &Path,
) -> Result<(u64, u64), Failure> {
    let form_name = form.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    let query = query_string([("to", form_name), ("lossy", lossy.to_string())]);
    let path = format!("/v1/graphs/{}/export?{query}", path_part(graph)?);
    server.ask(Method::GET, &path, None, |mut answer| {
        for remark in answer.headers.get_all("ficus-remark") {
            talk(&String::from_utf8_lossy(remark.as_bytes()));
        }
        if form.is_folder() {
            std::fs::create_dir_all(target)?;
            tar::Archive::new(&mut answer.body).unpack(target)?;
            // The end of the archive is not that of the body, which may have broken off.
            io::copy(&mut answer.body, &mut io::sink())?;
        } else {
            let mut out = open(target, target.as_os_str() == "-")?;
            io::copy(&mut answer.body, &mut out)?;
            out.flush()?;
        }
        let count = |name: &str| answer.header(name).and_then(|count| count.parse().ok()).unwrap_or(0);
        Ok((count("ficus-vertices"), count("ficus-edges")))
    })
}

/// A graph as it is at one commit, to be written in one of the forms.
pub struct Export {
    elements: Elements,
    form: TargetForm,
    survey: Option<Survey>,
    remarks: Vec<String>,
}

impl Export {
    /// Looks whether the form can hold the graph; what it cannot hold is left out if `lossy` says so.
    pub fn new(snapshot: Snapshot, form: TargetForm, lossy: bool) -> Result<Export, Failure> {
        // All of it is about to be read.
        snapshot.examine()?;
        let elements = Elements::new(snapshot);
        let survey = match form {
            TargetForm::Graphson | TargetForm::Gryo | TargetForm::Compact => None,
            _ => Some(Survey::of(&elements, form)),
        };
        let mut remarks = Vec::new();
        if let Some(losses) = survey.as_ref().and_then(Survey::losses) {
            if !lossy {
                return Err(Failure::failed(format!(
                    "this form cannot hold {losses}; use --to graphson or --to compact, or accept the loss with --lossy"
                )));
            }
            remarks.push(format!("not kept: {losses}"));
        }
        remarks.extend(survey.as_ref().and_then(|survey| survey.remark(form)));
        Ok(Export { elements, form, survey, remarks })
    }

    /// What the user should know.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Numbers of vertices and edges.
    pub fn counts(&self) -> (u64, u64) {
        (self.elements.snapshot.vertex_count(), self.elements.snapshot.edge_count())
    }

    /// Writes a form that makes one file per label.
    pub fn write_folder(&self, folder: &Path) -> io::Result<()> {
        match (&self.survey, self.form) {
            (Some(survey), TargetForm::Parquet) => parquet::write(&self.elements, survey, folder),
            (Some(survey), form) if form.is_folder() => csv::write(&self.elements, survey, form, folder),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "this form is one file")),
        }
    }

    /// Writes a form that is one file.
    pub fn write_document(&self, out: &mut dyn Write) -> io::Result<()> {
        match (self.form, &self.survey) {
            (TargetForm::Graphson, _) => graphson::write(&self.elements, out),
            (TargetForm::Gryo, _) => gryo::write(&self.elements, out),
            (TargetForm::Compact, _) => line_form::write(&self.elements, out),
            (TargetForm::Graphml, Some(survey)) => graphml::write(&self.elements, survey, out),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "this form makes one file per label")),
        }
    }
}

/// Writes the graph of `snapshot` as GraphSON, GraphML or Gryo.
///
/// Errors: `InvalidInput` for what the form cannot hold, and those of `out`.
pub fn write_document(snapshot: Snapshot, form: TargetForm, out: &mut dyn Write) -> io::Result<()> {
    let refuse = |reason: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    match Export::new(snapshot, form, false) {
        Ok(export) if !form.is_folder() => export.write_document(out)?,
        Ok(_) => return refuse("this form makes one file per label; use `ficus export`"),
        Err(failure) => return refuse(failure.message().unwrap_or_default()),
    }
    out.flush()
}

fn form_of(target: &Path) -> Option<TargetForm> {
    let name = target.file_name()?.to_string_lossy().to_ascii_lowercase();
    let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
    match name.rsplit_once('.')?.1 {
        "json" | "graphson" => Some(TargetForm::Graphson),
        "graphml" | "xml" => Some(TargetForm::Graphml),
        "kryo" | "gryo" => Some(TargetForm::Gryo),
        "ficus" => Some(TargetForm::Compact),
        _ => None,
    }
}

/// Opens the target, packing it if its name says so.
fn open(target: &Path, to_stdout: bool) -> io::Result<Box<dyn Output>> {
    if to_stdout {
        return Ok(Box::new(Plain(BufWriter::new(io::stdout()))));
    }
    let file = BufWriter::new(File::create(target)?);
    let name = target.to_string_lossy();
    Ok(if name.ends_with(".gz") {
        Box::new(Gzip(Some(flate2::write::GzEncoder::new(file, flate2::Compression::default()))))
    } else if name.ends_with(".zst") {
        Box::new(BufWriter::with_capacity(1 << 16, zstd::stream::write::Encoder::new(file, 3)?.auto_finish()))
    } else {
        Box::new(Plain(file))
    })
}

/// A writer whose `flush` also ends a packed stream.
trait Output: Write {}
impl Output for BufWriter<zstd::stream::write::AutoFinishEncoder<'_, BufWriter<File>>> {}

struct Plain<W: Write>(W);
impl<W: Write> Output for Plain<W> {}
impl<W: Write> Write for Plain<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

struct Gzip(Option<flate2::write::GzEncoder<BufWriter<File>>>);
impl Output for Gzip {}
impl Write for Gzip {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Some(encoder) => encoder.write(bytes),
            None => Err(io::Error::other("the packed stream has ended")),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        match self.0.take() {
            Some(encoder) => encoder.finish()?.flush(),
            None => Ok(()),
        }
    }
}
