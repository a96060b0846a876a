//! The files behind `io()`: GraphML, GraphSON and Gryo through the readers of `ficus load` and the writers of `ficus export`.
//!
//! The engine has confined the path to the folder of `engine.io_dir` before it asks. Messages name a file by its last
//! part only: where the folder is, is the server's business.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, ErrorKind};
use std::path::{Path, PathBuf};

use ficus_query::error::{QueryError, QueryErrorKind};
use ficus_query::operators::io::GraphFiles;
use ficus_storage::Transaction;

use crate::column_type::ColumnType;
use crate::export::{TargetForm, write_document};
use crate::load::loader::LoadError;
use crate::load::{SourceForm, SourceOptions, find, read_into};

/// Reads and writes whole graphs as GraphML, GraphSON or Gryo.
pub struct GraphDocuments;

/// The formats of `io()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DocumentForm {
    Graphml,
    Graphson,
    Gryo,
}

impl DocumentForm {
    /// The format that `with()` named, else the one that the file's name tells.
    fn of(file: &Path, format: Option<&str>) -> Result<DocumentForm, QueryError> {
        let extension = file.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
        match (format, extension.as_deref()) {
            (Some("graphml"), _) | (None, Some("xml" | "graphml")) => Ok(DocumentForm::Graphml),
            (Some("graphson"), _) | (None, Some("json" | "graphson")) => Ok(DocumentForm::Graphson),
            (Some("gryo"), _) | (None, Some("kryo" | "gryo")) => Ok(DocumentForm::Gryo),
            (Some(other), _) => {
                Err(QueryError::invalid(format!("io() knows the formats graphml, graphson and gryo, not [{other}]")))
            }
            (None, _) => Err(QueryError::invalid(format!(
                "the name [{}] tells no format: let it end in .xml, .graphml, .json, .graphson or .kryo, or name one with \
                 with(IO.reader, …) or with(IO.writer, …)",
                name_of(file)
            ))),
        }
    }
}

fn name_of(file: &Path) -> String {
    file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// An error of the file system: the caller's if it is about the name, else the world's.
fn world_error(file: &Path, error: &std::io::Error) -> QueryError {
    let kind = match error.kind() {
        ErrorKind::NotFound | ErrorKind::IsADirectory => QueryErrorKind::Invalid,
        _ => QueryErrorKind::Store,
    };
    QueryError::new(kind, format!("io() cannot use [{}]: {error}", name_of(file)))
}

/// Pipes and devices could make an executor wait for ever.
fn require_regular(file: &Path, metadata: &std::fs::Metadata) -> Result<(), QueryError> {
    if metadata.is_file() {
        return Ok(());
    }
    Err(QueryError::invalid(format!("io() cannot use [{}]: it is not a regular file", name_of(file))))
}

impl GraphFiles for GraphDocuments {
    fn read(&self, file: &Path, format: Option<&str>, transaction: &mut Transaction) -> Result<(), QueryError> {
        let form = match DocumentForm::of(file, format)? {
            DocumentForm::Graphml => SourceForm::Graphml,
            DocumentForm::Graphson => SourceForm::Graphson,
            DocumentForm::Gryo => SourceForm::Gryo,
        };
        let metadata = std::fs::metadata(file).map_err(|error| world_error(file, &error))?;
        require_regular(file, &metadata)?;
        let options = SourceOptions {
            paths: vec![file.to_owned()],
            groups: Vec::new(),
            form,
            mapping: None,
            id_kind: ColumnType::String,
            delimiter: b',',
            list_separator: ';',
        };
        for mut source in find(&options).map_err(QueryError::invalid)?.sources {
            source.name = name_of(file).into();
            read_into(&source, transaction).map_err(|error| match error {
                LoadError::Store(error) => QueryError::from(error),
                other => QueryError::invalid(format!("io() cannot read this: {other}")),
            })?;
        }
        Ok(())
    }

    fn write(&self, file: &Path, format: Option<&str>, transaction: &Transaction) -> Result<(), QueryError> {
        let form = match DocumentForm::of(file, format)? {
            DocumentForm::Graphml => TargetForm::Graphml,
            DocumentForm::Graphson => TargetForm::Graphson,
            DocumentForm::Gryo => TargetForm::Gryo,
        };
        match std::fs::symlink_metadata(file) {
            Ok(metadata) => require_regular(file, &metadata)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(world_error(file, &error)),
        }
        let draft = Draft::create(file).map_err(|error| world_error(file, &error))?;
        let mut out = BufWriter::new(&draft.open);
        write_document((**transaction).clone(), form, &mut out).map_err(|error| match error.kind() {
            ErrorKind::InvalidInput => QueryError::invalid(error.to_string()),
            _ => world_error(file, &error),
        })?;
        drop(out);
        draft.publish(file).map_err(|error| world_error(file, &error))
    }
}

/// A file being written beside the one it will replace, so that nobody ever sees half of it; removed unless published.
struct Draft {
    open: File,
    path: Option<PathBuf>,
}

impl Draft {
    fn create(file: &Path) -> std::io::Result<Draft> {
        let path = file.with_file_name(format!(".{}.{}", name_of(file), uuid::Uuid::new_v4()));
        // A new file: a link that waits under this name would be refused, not followed.
        let open = OpenOptions::new().write(true).create_new(true).open(&path)?;
        Ok(Draft { open, path: Some(path) })
    }

    fn publish(mut self, file: &Path) -> std::io::Result<()> {
        self.open.sync_all()?;
        match &self.path {
            Some(path) => std::fs::rename(path, file)?,
            None => return Ok(()),
        }
        self.path = None;
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // If it stays behind nothing is wrong but the space; the error that led here is told already.
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_option_before_name() {
        let cases = [
            ("a.json", None, Ok(DocumentForm::Graphson)),
            ("a.JSON", None, Ok(DocumentForm::Graphson)),
            ("a.xml", None, Ok(DocumentForm::Graphml)),
            ("a.graphml", None, Ok(DocumentForm::Graphml)),
            ("a.xml", Some("graphson"), Ok(DocumentForm::Graphson)),
            ("a", Some("graphml"), Ok(DocumentForm::Graphml)),
            ("a.kryo", None, Ok(DocumentForm::Gryo)),
            ("a.json", Some("gryo"), Ok(DocumentForm::Gryo)),
            ("a.csv", None, Err("tells no format")),
            ("a", None, Err("tells no format")),
            ("a.json", Some("csv"), Err("not [csv]")),
        ];
        for (name, format, expected) in cases {
            match (DocumentForm::of(Path::new(name), format), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{name} {format:?}"),
                (Err(error), Err(part)) => assert!(error.message.contains(part), "{name} {format:?}: {error}"),
                (found, expected) => panic!("{name} {format:?}: {found:?} instead of {expected:?}"),
            }
        }
    }
}
