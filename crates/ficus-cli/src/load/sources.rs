//! From the paths on the command line to the files that will be read and how.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::graphson::EdgeSides;
use super::input::{self, matches_pattern, unpacked_name};
use super::mapping::{Mapping, Table};
use super::neo4j::Neo4jOptions;
use super::record::{Pass, ReadError, Sink};
use super::rows::{Dialect, RowStatus, Rows};
use super::table::TablePlan;
use super::{compact, graphml, graphson, gryo, neo4j, neptune, parquet};
use crate::column_type::ColumnType;

/// Forms of files that `load` reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum SourceForm {
    /// Told by the name, and for CSV by the header.
    Auto,
    /// GraphSON 1 to 3.
    Graphson,
    /// GraphML.
    Graphml,
    /// Gryo 1 and 3, the binary form of TinkerPop.
    Gryo,
    /// CSV with the headers of neo4j-admin.
    Neo4j,
    /// CSV with the headers of Neptune.
    Neptune,
    /// FicusDB's own line form.
    Compact,
}

/// A group of files as `--vertices` and `--edges` name them: `[LABEL=]FIRST,MORE…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileGroup {
    /// Label of all rows.
    pub label: Option<String>,
    /// The files; the header of the first counts for all.
    pub files: Vec<PathBuf>,
}

impl FileGroup {
    /// Reads the text of an option.
    pub fn parse(text: &str) -> Result<FileGroup, String> {
        let (label, files) = match text.split_once('=') {
            Some((label, files)) if !label.is_empty() => (Some(label.to_owned()), files),
            Some(_) => return Err("the label before '=' is empty".into()),
            None => (None, text),
        };
        let files: Vec<PathBuf> = files.split(',').filter(|name| !name.is_empty()).map(PathBuf::from).collect();
        if files.is_empty() {
            return Err("no file is named".into());
        }
        Ok(FileGroup { label, files })
    }
}

/// What the command line says about the input.
pub struct SourceOptions {
    /// Files and folders.
    pub paths: Vec<PathBuf>,
    /// Groups of files with one header.
    pub groups: Vec<FileGroup>,
    /// Their form.
    pub form: SourceForm,
    /// A mapping file.
    pub mapping: Option<PathBuf>,
    /// Type of ids that the input leaves untyped.
    pub id_kind: ColumnType,
    /// Between fields of CSV without a mapping.
    pub delimiter: u8,
    /// Between the values of an array in CSV with Neo4j headers.
    pub list_separator: char,
}

/// A file with its reader.
pub struct Source {
    /// The name in messages.
    pub name: Arc<str>,
    /// Where it is.
    pub path: PathBuf,
    /// Bytes on disk.
    pub bytes: u64,
    reader: Reader,
}

// One per file: the size of a plan does not matter.
#[allow(clippy::large_enum_variant)]
enum Reader {
    GraphSon(EdgeSides),
    GraphMl(ColumnType),
    Gryo(EdgeSides),
    Compact,
    Table { plan: TablePlan, dialect: Dialect, header_in_file: bool },
    Parquet { plan: TablePlan, schema: parquet::Schema },
}

/// All sources, and remarks for the user about what was found.
pub struct Sources {
    /// In the order in which they are read.
    pub sources: Vec<Source>,
    /// Remarks, such as files that no table of the mapping wants.
    pub remarks: Vec<String>,
}

impl Source {
    /// Whether the file has anything to say in this pass.
    pub fn speaks_in(&self, pass: Pass) -> bool {
        match (&self.reader, pass) {
            (Reader::Table { plan, .. } | Reader::Parquet { plan, .. }, pass) => plan.speaks_in(pass),
            _ => true,
        }
    }

    /// Reads the file; adds the bytes taken from disk to `bytes_read`.
    pub fn read(&self, pass: Pass, sink: &mut Sink<'_>, bytes_read: Arc<AtomicU64>) -> Result<(), ReadError> {
        if self.groups() > 0 {
            return (0..self.groups()).try_for_each(|group| self.read_group(group, pass, sink, &bytes_read));
        }
        let mut input = input::open(&self.path, bytes_read)?;
        match &self.reader {
            Reader::GraphSon(sides) => graphson::read(&mut input, pass, sides, sink)?,
            Reader::GraphMl(id_kind) => graphml::read(&mut input, pass, *id_kind, sink)?,
            Reader::Gryo(sides) => gryo::read(&mut input, pass, sides, sink)?,
            Reader::Compact => compact::read(&mut input, pass, sink)?,
            Reader::Table { plan, dialect, header_in_file } => {
                let mut rows = Rows::new(without_byte_order_mark(input)?, *dialect);
                if *header_in_file {
                    rows.next_row()?;
                }
                plan.read(&mut rows, pass, sink)?;
            }
            // Without groups it has no rows.
            Reader::Parquet { .. } => {}
        }
        sink.flush()?;
        Ok(())
    }

    /// Groups of rows that can be read each by itself; 0 for forms that are read from the beginning to the end.
    pub fn groups(&self) -> usize {
        match &self.reader {
            Reader::Parquet { schema, .. } => schema.groups(),
            _ => 0,
        }
    }

    /// Reads one of the groups; adds its share of the file to `bytes_read`.
    pub fn read_group(
        &self,
        group: usize,
        pass: Pass,
        sink: &mut Sink<'_>,
        bytes_read: &AtomicU64,
    ) -> Result<(), ReadError> {
        if let Reader::Parquet { plan, schema } = &self.reader {
            schema.read_group(&self.path, group, plan, pass, sink)?;
        }
        bytes_read.fetch_add(self.bytes / self.groups().max(1) as u64, Ordering::Relaxed);
        sink.flush()?;
        Ok(())
    }

    /// The meaning of the file's columns, if it has any.
    pub fn plan(&self) -> Option<&TablePlan> {
        match &self.reader {
            Reader::Table { plan, .. } | Reader::Parquet { plan, .. } => Some(plan),
            _ => None,
        }
    }

    /// The meaning of the file's rows, and how they are written, if it is a text.
    pub fn table(&self) -> Option<(&TablePlan, Dialect)> {
        match &self.reader {
            Reader::Table { plan, dialect, .. } => Some((plan, *dialect)),
            _ => None,
        }
    }

    /// Opens a table for reading behind its header; also gives the number of lines passed over.
    pub fn open_rows(&self, bytes_read: Arc<AtomicU64>) -> std::io::Result<(Box<dyn BufRead + Send>, u64)> {
        let input = without_byte_order_mark(input::open(&self.path, bytes_read)?)?;
        match &self.reader {
            Reader::Table { dialect, header_in_file: true, .. } => {
                let mut rows = Rows::new(input, *dialect);
                rows.next_row()?;
                Ok(rows.into_input())
            }
            _ => Ok((input, 0)),
        }
    }

    /// What is odd about the file as a whole, once its vertices have been read.
    pub fn warning(&self) -> Option<String> {
        match &self.reader {
            Reader::GraphSon(sides) | Reader::Gryo(sides) => {
                sides.warning().map(|warning| format!("{}: {warning}", self.name))
            }
            _ => None,
        }
    }
}

/// Finds all sources that the options name.
pub fn find(options: &SourceOptions) -> Result<Sources, String> {
    let mut found = Sources { sources: Vec::new(), remarks: Vec::new() };
    let grouped = options.groups.iter().flat_map(|group| &group.files);
    options.paths.iter().chain(grouped).try_for_each(|path| check_rereadable(path))?;
    if let Some(path) = &options.mapping {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mapping = Mapping::parse(&text).map_err(|reason| format!("{}: {reason}", path.display()))?;
        if !options.groups.is_empty() || options.form != SourceForm::Auto {
            return Err("a mapping says itself how files are read; leave out --from, --vertices and --edges".into());
        }
        mapped_sources(options, &mapping, &mut found)?;
    } else {
        for path in &options.paths {
            if path.is_dir() {
                for file in files_of(path)? {
                    match form_of(&file, options.form) {
                        Some(form) => add(options, &file, form, &mut found)?,
                        None => found.remarks.push(format!("{}: skipped, its name tells no form", file.display())),
                    }
                }
            } else {
                let form = form_of(path, options.form).ok_or_else(|| {
                    format!("{}: its name tells no form; give one with --from, or a --mapping", path.display())
                })?;
                add(options, path, form, &mut found)?;
            }
        }
        for group in &options.groups {
            add_group(options, group, &mut found)?;
        }
    }
    if found.sources.is_empty() {
        return Err("there is nothing to load; name files or folders".into());
    }
    Ok(found)
}

/// Refuses pipes and the like: a file is read several times, for its header, its vertices and its edges.
fn check_rereadable(path: &Path) -> Result<(), String> {
    let advice = "a load reads its files more than once; write it to a file first";
    if path == Path::new("-") {
        return Err(format!("standard input cannot be loaded: {advice}"));
    }
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() && !found.is_dir() => {
            Err(format!("{}: this is no regular file, and {advice}", path.display()))
        }
        // What is absent is reported where it is opened.
        _ => Ok(()),
    }
}

/// What a name says about a file.
enum NamedForm {
    Known(SourceForm),
    /// Rows and columns, of which the header tells more.
    Delimited,
}

fn form_of(path: &Path, wanted: SourceForm) -> Option<NamedForm> {
    if wanted != SourceForm::Auto {
        return Some(NamedForm::Known(wanted));
    }
    let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
    match unpacked_name(&name).rsplit_once('.')?.1 {
        "json" | "graphson" | "jsonl" | "ndjson" => Some(NamedForm::Known(SourceForm::Graphson)),
        "graphml" | "xml" => Some(NamedForm::Known(SourceForm::Graphml)),
        "kryo" | "gryo" => Some(NamedForm::Known(SourceForm::Gryo)),
        "ficus" => Some(NamedForm::Known(SourceForm::Compact)),
        "csv" | "tsv" | "parquet" => Some(NamedForm::Delimited),
        _ => None,
    }
}

fn add(options: &SourceOptions, path: &Path, form: NamedForm, found: &mut Sources) -> Result<(), String> {
    let reader = match form {
        NamedForm::Known(SourceForm::Graphson) => Reader::GraphSon(EdgeSides::default()),
        NamedForm::Known(SourceForm::Graphml) => Reader::GraphMl(options.id_kind),
        NamedForm::Known(SourceForm::Gryo) => Reader::Gryo(EdgeSides::default()),
        NamedForm::Known(SourceForm::Compact) => Reader::Compact,
        NamedForm::Known(form) => table_reader(options, path, form, None)?,
        NamedForm::Delimited => table_reader(options, path, SourceForm::Auto, None)?,
    };
    push(path, reader, found)
}

fn push(path: &Path, reader: Reader, found: &mut Sources) -> Result<(), String> {
    let bytes = std::fs::metadata(path).map_err(|error| format!("{}: {error}", path.display()))?.len();
    found.sources.push(Source { name: path.display().to_string().into(), path: path.to_owned(), bytes, reader });
    Ok(())
}

fn add_group(options: &SourceOptions, group: &FileGroup, found: &mut Sources) -> Result<(), String> {
    let label = group.label.as_deref().map(Arc::from);
    let Some((first, rest)) = group.files.split_first() else { return Ok(()) };
    let reader = table_reader(options, first, SourceForm::Neo4j, label)?;
    let shared = match &reader {
        Reader::Table { plan, dialect, .. } => Some((plan.clone(), *dialect)),
        // Every such file names its columns.
        _ => None,
    };
    let label = group.label.as_deref().map(Arc::from);
    push(first, reader, found)?;
    for path in rest {
        let reader = match &shared {
            Some((plan, dialect)) => Reader::Table { plan: plan.clone(), dialect: *dialect, header_in_file: false },
            None => table_reader(options, path, SourceForm::Neo4j, label.clone())?,
        };
        push(path, reader, found)?;
    }
    Ok(())
}

/// Reads the header of a file and decides what its columns mean.
fn table_reader(
    options: &SourceOptions,
    path: &Path,
    form: SourceForm,
    label: Option<Arc<str>>,
) -> Result<Reader, String> {
    let complain = |reason: String| format!("{}: {reason}", path.display());
    let mut dialect = Dialect { delimiter: options.delimiter, ..Dialect::default() };
    if unpacked_name(&path.to_string_lossy()).ends_with(".tsv") && options.delimiter == b',' {
        dialect.delimiter = b'\t';
    }
    let schema = parquet::recognises(path).then(|| parquet::Schema::of(path)).transpose().map_err(complain)?;
    let header = match &schema {
        Some(schema) => schema.names(),
        None => header_of(path, dialect).map_err(complain)?,
    };
    let form = match form {
        SourceForm::Auto if neptune::recognises(&header) => SourceForm::Neptune,
        SourceForm::Auto if neo4j::recognises(&header) => SourceForm::Neo4j,
        SourceForm::Auto => {
            return Err(complain(format!(
                "the header ({}) is neither of Neo4j (:ID, :START_ID) nor of Neptune (~id, ~from); describe the file in \
                 a --mapping",
                header.join(", ")
            )));
        }
        known => known,
    };
    let plan = match form {
        SourceForm::Neptune => neptune::plan(header, options.id_kind),
        _ => {
            let list_separator = options.list_separator;
            neo4j::plan(header, &Neo4jOptions { label, id_kind: options.id_kind, list_separator })
        }
    };
    reader_of(plan.map_err(complain)?, schema, dialect, true).map_err(complain)
}

/// The reader of a table, of typed columns if there is a schema.
fn reader_of(
    plan: TablePlan,
    schema: Option<parquet::Schema>,
    dialect: Dialect,
    header_in_file: bool,
) -> Result<Reader, String> {
    if let Some(key) = plan.key_overwritten() {
        return Err(format!(
            "two columns hold the one value of the property '{key}'; rename one, leave it out, or let a --mapping make it a set"
        ));
    }
    match schema {
        None => Ok(Reader::Table { plan, dialect, header_in_file }),
        Some(schema) => {
            schema.check(&plan)?;
            Ok(Reader::Parquet { plan, schema })
        }
    }
}

fn header_of(path: &Path, dialect: Dialect) -> Result<Vec<String>, String> {
    let input = input::open(path, Arc::default()).map_err(|error| error.to_string())?;
    let mut rows = Rows::new(without_byte_order_mark(input).map_err(|error| error.to_string())?, dialect);
    match rows.next_row().map_err(|error| error.to_string())? {
        RowStatus::Row => (0..rows.len())
            .filter_map(|index| rows.field(index))
            .map(|field| field.text().map(|text| text.trim().to_owned()))
            .collect(),
        RowStatus::Broken(column, reason) => Err(format!("line {}, column {column}: {reason}", rows.line())),
        RowStatus::End => Err("the file is empty; a header line is expected".into()),
    }
}

/// Skips the mark that some programs write before UTF-8 text.
fn without_byte_order_mark(mut input: Box<dyn BufRead + Send>) -> std::io::Result<Box<dyn BufRead + Send>> {
    if input.fill_buf()?.starts_with(&[0xEF, 0xBB, 0xBF]) {
        input.consume(3);
    }
    Ok(input)
}

fn files_of(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let complain = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(complain)? {
        let path = entry.map_err(complain)?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn mapped_sources(options: &SourceOptions, mapping: &Mapping, found: &mut Sources) -> Result<(), String> {
    let mut files = Vec::new();
    let mut named = Vec::new();
    for path in &options.paths {
        if path.is_dir() {
            files.extend(files_of(path)?);
        } else {
            files.push(path.clone());
            named.push(path.clone());
        }
    }
    let mut wanted = vec![false; files.len()];
    for table in mapping.tables() {
        let mut any = false;
        for (index, path) in files.iter().enumerate() {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            if !table.files().iter().any(|pattern| matches_pattern(pattern, &name)) {
                continue;
            }
            (any, wanted[index]) = (true, true);
            push(path, mapped_reader(&table, path).map_err(|reason| format!("{}: {reason}", path.display()))?, found)?;
        }
        if !any && !table.optional() {
            return Err(format!(
                "no file is called {}; if the table may be missing, say `optional = true`",
                table.files().join(" or ")
            ));
        }
    }
    for (path, wanted) in files.iter().zip(wanted) {
        if !wanted && named.contains(path) {
            return Err(format!("{}: no table of the mapping wants a file of this name", path.display()));
        }
        if !wanted {
            found.remarks.push(format!("{}: skipped, no table of the mapping wants it", path.display()));
        }
    }
    Ok(())
}

fn mapped_reader(table: &Table<'_>, path: &Path) -> Result<Reader, String> {
    let dialect = table.dialect()?;
    let schema = parquet::recognises(path).then(|| parquet::Schema::of(path)).transpose()?;
    let (header, header_in_file) = match (&schema, table.header()) {
        (Some(_), Some(_)) => return Err("csv.header is for files without names of columns; this one has them".into()),
        (Some(schema), None) => (schema.names(), true),
        (None, Some(header)) => (header, false),
        (None, None) => (header_of(path, dialect)?, true),
    };
    reader_of(table.plan(header)?, schema, dialect, header_in_file)
}
