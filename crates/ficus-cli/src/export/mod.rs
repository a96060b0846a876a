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

use ficus_storage::Snapshot;
use serde_json::json;

use self::elements::Elements;
use self::survey::Survey;
use crate::Outcome;
use crate::failure::Failure;
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

/// Flags of `ficus export`.
#[derive(Debug, clap::Args)]
pub struct ExportArguments {
    /// The file to write, `-` for stdout; for the CSV forms and Parquet a folder.
    target: PathBuf,
    /// The data directory.
    #[arg(long, value_name = "DIR", env = "FICUS_STORE__DATA_DIR")]
    data_dir: PathBuf,
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
    let target = &arguments.target;
    let form = arguments
        .to
        .or_else(|| form_of(target))
        .ok_or_else(|| Failure::usage(format!("the name {} tells no form; give one with --to", target.display())))?;
    let store = crate::store::open(&arguments.data_dir, false)?;
    let graph = crate::store::graph(&store, &arguments.graph)?;
    let snapshot = graph.snapshot();
    // All of it is about to be read.
    snapshot.examine()?;
    let elements = Elements::new(snapshot);
    let is_folder = matches!(form, TargetForm::Neo4j | TargetForm::Neptune | TargetForm::Parquet);
    let survey = match form {
        TargetForm::Graphson | TargetForm::Gryo | TargetForm::Compact => None,
        _ => Some(Survey::of(&elements, form)),
    };
    if let Some(losses) = survey.as_ref().and_then(Survey::losses) {
        if !arguments.lossy {
            return Err(Failure::failed(format!(
                "this form cannot hold {losses}; use --to graphson or --to compact, or accept the loss with --lossy"
            )));
        }
        talk(&format!("not kept: {losses}"));
    }
    if let Some(remark) = survey.as_ref().and_then(|survey| survey.remark(form)) {
        talk(&remark);
    }
    let to_stdout = target.as_os_str() == "-";
    match (&survey, is_folder) {
        (Some(survey), true) if !to_stdout => match form {
            TargetForm::Parquet => parquet::write(&elements, survey, target)?,
            _ => csv::write(&elements, survey, form, target)?,
        },
        (_, true) => return Err(Failure::usage("this form makes one file per label; name a folder instead of -")),
        (survey, false) => {
            let mut out = open(target, to_stdout)?;
            match (form, survey) {
                (TargetForm::Graphson, _) => graphson::write(&elements, &mut out)?,
                (TargetForm::Gryo, _) => gryo::write(&elements, &mut out)?,
                (TargetForm::Compact, _) => line_form::write(&elements, &mut out)?,
                (_, Some(survey)) => graphml::write(&elements, survey, &mut out)?,
                (_, None) => {}
            }
            out.flush()?;
        }
    }
    let (vertices, edges) = (elements.snapshot.vertex_count(), elements.snapshot.edge_count());
    let line = match format {
        OutputFormat::Json => json!({"graph": arguments.graph, "vertices": vertices, "edges": edges}).to_string(),
        _ => format!("wrote {vertices} vertices and {edges} edges of {} to {}", arguments.graph, target.display()),
    };
    // What goes to stdout as the export itself must not be mixed with anything.
    if to_stdout {
        talk(&line)
    } else {
        result(&line)?
    }
    store.close()?;
    Ok(())
}

/// Writes the graph of `snapshot` as GraphSON, GraphML or Gryo.
///
/// Errors: `InvalidInput` for what the form cannot hold, and those of `out`.
pub fn write_document(snapshot: Snapshot, form: TargetForm, out: &mut dyn Write) -> io::Result<()> {
    let refuse = |reason: String| Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    let elements = Elements::new(snapshot);
    match form {
        TargetForm::Graphson => graphson::write(&elements, out)?,
        TargetForm::Gryo => gryo::write(&elements, out)?,
        TargetForm::Compact => line_form::write(&elements, out)?,
        TargetForm::Graphml => {
            let survey = Survey::of(&elements, form);
            if let Some(losses) = survey.losses() {
                return refuse(format!("GraphML cannot hold {losses}; write GraphSON instead"));
            }
            graphml::write(&elements, &survey, out)?;
        }
        TargetForm::Neo4j | TargetForm::Neptune | TargetForm::Parquet => {
            return refuse("this form makes one file per label; use `ficus export`".into());
        }
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
