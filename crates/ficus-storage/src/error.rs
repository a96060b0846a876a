//! What can go wrong in the store, in three families: the caller's, the world's, and damaged data.
//!
//! Errors are cheap to clone because one failed group commit answers many committers. They are logged nowhere in this
//! crate: whoever handles one decides.

use std::fmt;
use std::io;
use std::sync::Arc;

use ficus_model::{EdgeId, Value, VertexId};
use rustix::io::Errno;

/// Who can do something about a [`StoreError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The request was wrong; sending it again gives the same answer.
    Caller,
    /// Another transaction came first; running the whole transaction again can succeed.
    Conflict,
    /// Disk, lock or shutdown; an operator has to look.
    World,
    /// Stored bytes are not what was written.
    Corrupt,
}

/// What there is no more of where nothing more can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FullDisk {
    /// Room on the disk.
    Space,
    /// What the user may have of it.
    Quota,
    /// What one file may have: the process has a limit, or the file system.
    FileSize,
}

impl FullDisk {
    fn reason(self) -> &'static str {
        match self {
            FullDisk::Space => "the disk is full",
            FullDisk::Quota => "the quota of the disk is used up",
            FullDisk::FileSize => {
                "the file may not become as large as that (`ulimit -f`, or a limit of the file system)"
            }
        }
    }

    fn advice(self) -> &'static str {
        match self {
            FullDisk::Space => "free some space",
            FullDisk::Quota => "free some space, or raise the quota,",
            FullDisk::FileSize => "raise the limit",
        }
    }
}

/// Any failure of the store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// `add_vertex` with a user id that is taken.
    DuplicateVertex {
        /// The id.
        id: Value,
    },
    /// `add_edge` with a user id that is taken.
    DuplicateEdge {
        /// The id.
        id: Value,
    },
    /// A write to a vertex that is not there (removed earlier in the same transaction, or of another graph).
    NoSuchVertex {
        /// The vertex.
        vertex: VertexId,
    },
    /// A write to an edge that is not there.
    NoSuchEdge {
        /// The edge.
        edge: EdgeId,
    },
    /// A write to a vertex property that is not there.
    NoSuchVertexProperty {
        /// The vertex.
        vertex: VertexId,
        /// The property's id.
        property: u64,
    },
    /// A value that cannot be stored, such as a path or an element.
    UnsupportedValue {
        /// Where it was to be stored: `property 'name'`, `vertex id`, …
        place: String,
        /// The value's type and why it is refused.
        reason: String,
    },
    /// A bound of the store was reached: number of labels, keys, ids, size of one transaction.
    LimitReached {
        /// What there is too much of.
        what: String,
        /// The bound.
        limit: u64,
    },
    /// A graph of this name exists.
    GraphExists {
        /// The name.
        name: String,
    },
    /// A bulk load needs a graph without elements.
    GraphNotEmpty {
        /// The name.
        name: String,
    },
    /// No graph has this name, or it was dropped.
    NoSuchGraph {
        /// The name.
        name: String,
    },
    /// A graph name that is empty, too long or has other characters than letters, digits, `_`, `-` and `.`.
    InvalidGraphName {
        /// The name.
        name: String,
    },
    /// A store option with a value outside its range.
    InvalidOption {
        /// The option.
        option: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A state of the past was asked for that is not kept.
    OutsideRetention {
        /// Which states there are, and what to ask for.
        reason: String,
    },
    /// More changes in one transaction than allowed.
    TransactionTooLarge {
        /// The bound.
        limit: u64,
    },
    /// A write in a transaction that was begun to read only.
    ReadOnly,
    /// An index or type that cannot be as it was declared.
    InvalidSchema {
        /// The index or type.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no such index, type or task.
    UnknownSchema {
        /// What was asked for.
        what: String,
    },
    /// An element would not obey its declared type.
    SchemaViolation {
        /// The type, as in `vertex type 'person'`.
        type_name: String,
        /// The property, or `multiplicity`.
        property: String,
        /// What the type wants.
        expected: String,
        /// What it was given.
        given: String,
    },
    /// Two elements would have equal values in a unique index.
    UniqueViolation {
        /// The index.
        index: String,
        /// Its keys.
        keys: Vec<String>,
        /// The values that are taken.
        values: Vec<Value>,
        /// The user id of the element that has them; null if it is of the same transaction.
        holder: Value,
    },
    /// A task of the schema could not be done.
    TaskFailed {
        /// What it was to do.
        work: String,
        /// Why it could not.
        reason: String,
    },
    /// Another transaction committed first and touched the same thing.
    Conflict {
        /// What both touched.
        what: String,
    },
    /// Reading or writing a file failed.
    Io {
        /// What was being done, to which file.
        action: String,
        /// The system's answer.
        source: Arc<io::Error>,
    },
    /// The disk is full; nothing of the transaction was kept.
    DiskFull {
        /// What was being written.
        action: String,
        /// What there is no more of.
        full: FullDisk,
    },
    /// The process, or the system, has as many files and connections open as it may; nothing of the transaction was kept.
    TooManyFiles {
        /// What was being opened.
        action: String,
    },
    /// An earlier write to the log failed, so it is unknown what the disk holds; reads go on, writes need a restart.
    Poisoned {
        /// The earlier failure.
        cause: String,
    },
    /// A checkpoint, or the files that it would have named, could not be written. Nothing is lost by that: the log has all that was committed.
    NoCheckpoint {
        /// What failed, and why.
        cause: String,
        /// What to do about it.
        advice: &'static str,
    },
    /// Another process has the data directory open.
    Locked {
        /// The data directory.
        directory: String,
        /// What the holder wrote about itself.
        holder: String,
    },
    /// A directory cannot be used as the archive or data directory that it was given as, or does not cover what was asked.
    Archive {
        /// The directory.
        directory: String,
        /// Why, and what to do.
        reason: String,
    },
    /// The store was closed.
    Closed,
    /// A stored file does not hold what was written to it.
    Corrupt {
        /// The file.
        file: String,
        /// Where in it.
        offset_bytes: u64,
        /// What was expected and what was found.
        what: String,
    },
}

impl StoreError {
    /// The family this error belongs to.
    pub fn kind(&self) -> ErrorKind {
        use StoreError::*;
        match self {
            DuplicateVertex { .. }
            | DuplicateEdge { .. }
            | NoSuchVertex { .. }
            | NoSuchEdge { .. }
            | NoSuchVertexProperty { .. }
            | UnsupportedValue { .. }
            | LimitReached { .. }
            | GraphExists { .. }
            | GraphNotEmpty { .. }
            | NoSuchGraph { .. }
            | InvalidGraphName { .. }
            | InvalidOption { .. }
            | OutsideRetention { .. }
            | TransactionTooLarge { .. }
            | ReadOnly
            | InvalidSchema { .. }
            | UnknownSchema { .. }
            | SchemaViolation { .. }
            | UniqueViolation { .. }
            | TaskFailed { .. } => ErrorKind::Caller,
            Conflict { .. } => ErrorKind::Conflict,
            Io { .. }
            | DiskFull { .. }
            | TooManyFiles { .. }
            | Poisoned { .. }
            | NoCheckpoint { .. }
            | Locked { .. }
            | Archive { .. }
            | Closed => ErrorKind::World,
            Corrupt { .. } => ErrorKind::Corrupt,
        }
    }

    /// True if running the whole transaction again can succeed.
    pub fn is_retryable(&self) -> bool {
        self.kind() == ErrorKind::Conflict
    }

    /// What a violation of the schema is about, for a conflict over it.
    pub(crate) fn schema_subject(&self) -> String {
        match self {
            StoreError::UniqueViolation { index, .. } => format!("a value of the unique index '{index}'"),
            StoreError::SchemaViolation { type_name, property, .. } => {
                format!("the declaration of '{property}' in {type_name}, or an edge it counts,")
            }
            other => other.to_string(),
        }
    }

    /// True if there was no room for something, of which nothing was kept: the same may work later.
    pub(crate) fn is_shortage(&self) -> bool {
        matches!(self, StoreError::DiskFull { .. } | StoreError::TooManyFiles { .. })
    }

    /// Wraps an operating system error; a disk where no room is left becomes [`StoreError::DiskFull`], and files that cannot be opened since there are
    /// too many become [`StoreError::TooManyFiles`].
    pub(crate) fn io(action: impl Into<String>, source: io::Error) -> StoreError {
        let action = action.into();
        let full = match source.kind() {
            io::ErrorKind::StorageFull => Some(FullDisk::Space),
            io::ErrorKind::QuotaExceeded => Some(FullDisk::Quota),
            io::ErrorKind::FileTooLarge => Some(FullDisk::FileSize),
            _ => None,
        };
        if let Some(full) = full {
            return StoreError::DiskFull { action, full };
        }
        if matches!(Errno::from_io_error(&source), Some(Errno::MFILE | Errno::NFILE)) {
            return StoreError::TooManyFiles { action };
        }
        StoreError::Io { action, source: Arc::new(source) }
    }

    /// The same failure, of a checkpoint or of files for one: no transaction is concerned.
    pub(crate) fn of_checkpoint(self) -> StoreError {
        let (cause, advice) = match self {
            StoreError::DiskFull { action, full } => (format!("{action} failed: {}", full.reason()), full.advice()),
            StoreError::TooManyFiles { action } => (
                format!("{action} failed: as many files and connections are open as may be"),
                "raise the limit of open files",
            ),
            StoreError::Io { action, source } => (format!("{action} failed: {source}"), "look after the disk"),
            other => return other,
        };
        StoreError::NoCheckpoint { cause, advice }
    }

    /// Names a place in a file whose content is wrong.
    pub(crate) fn corrupt(file: impl Into<String>, offset_bytes: u64, what: impl Into<String>) -> StoreError {
        StoreError::Corrupt { file: file.into(), offset_bytes, what: what.into() }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use StoreError::*;
        match self {
            DuplicateVertex { id } => write!(f, "Vertex with id already exists: {}", IdText(id)),
            DuplicateEdge { id } => write!(f, "Edge with id already exists: {}", IdText(id)),
            NoSuchVertex { vertex } => {
                write!(f, "the vertex (internal number {}) does not exist or was removed", vertex.0)
            }
            NoSuchEdge { edge } => write!(f, "the edge (internal number {}) does not exist or was removed", edge.0),
            NoSuchVertexProperty { vertex, property } => {
                write!(
                    f,
                    "vertex property {property} of the vertex (internal number {}) does not exist or was removed",
                    vertex.0
                )
            }
            UnsupportedValue { place, reason } => write!(f, "cannot store this as {place}: {reason}"),
            LimitReached { what, limit } => write!(f, "too many {what}: the limit is {limit}"),
            GraphExists { name } => write!(f, "a graph named '{name}' exists already"),
            GraphNotEmpty { name } => write!(
                f,
                "graph '{name}' has vertices or edges; only an empty graph can be filled at once, load into it by transactions"
            ),
            NoSuchGraph { name } => write!(f, "there is no graph named '{name}'"),
            InvalidGraphName { name } => write!(
                f,
                "'{name}' cannot name a graph: use 1 to 128 letters, digits, '_', '-' or '.', beginning with a letter or digit"
            ),
            OutsideRetention { reason } => write!(f, "this state of the past cannot be read: {reason}"),
            TransactionTooLarge { limit } => {
                write!(f, "this transaction has more than {limit} changes; commit in smaller parts")
            }
            ReadOnly => write!(f, "this transaction only reads; write in another one"),
            InvalidOption { option, reason } => write!(f, "store option {option}: {reason}"),
            InvalidSchema { what, reason } => write!(f, "{what} cannot be declared or changed so: {reason}"),
            UnknownSchema { what } => write!(f, "there is no {what}"),
            SchemaViolation { type_name, property, expected, given } => {
                write!(f, "{type_name} refuses the property '{property}': expected {expected}, given {given}")
            }
            UniqueViolation { index, keys, values, holder } => {
                let pairs: Vec<String> =
                    keys.iter().zip(values).map(|(key, value)| format!("{key} = {}", IdText(value))).collect();
                write!(f, "the unique index '{index}' has {} already", pairs.join(", "))?;
                match holder {
                    Value::Null => Ok(()),
                    holder => write!(f, ", at the element with id {}", IdText(holder)),
                }
            }
            TaskFailed { work, reason } => write!(f, "the task to {work} failed and was undone: {reason}"),
            Conflict { what } => {
                write!(
                    f,
                    "conflict: {what} was changed by another transaction; nothing was committed, run the transaction again"
                )
            }
            Io { action, source } => write!(f, "{action} failed: {source}"),
            DiskFull { action, full } => write!(
                f,
                "{action} failed: {}; nothing of it was committed, what was committed before is safe; {} and run it again",
                full.reason(),
                full.advice()
            ),
            TooManyFiles { action } => write!(
                f,
                "{action} failed: as many files and connections are open as may be; nothing was committed, run it again when there are fewer, or raise the limit of open files"
            ),
            Poisoned { cause } => {
                write!(
                    f,
                    "writes are refused since an earlier write failed ({cause}); reads go on, restart to write again"
                )
            }
            NoCheckpoint { cause, advice } => write!(
                f,
                "there is no new checkpoint ({cause}); nothing is lost, the commit log has all that was committed and the next start reads it, which takes longer; {advice}"
            ),
            Locked { directory, holder } => {
                write!(f, "data directory {directory} is in use by {holder}; stop that process first")
            }
            Archive { directory, reason } => write!(f, "{directory}: {reason}"),
            Closed => write!(f, "the store is closed"),
            Corrupt { file, offset_bytes, what } => {
                write!(
                    f,
                    "{file} is damaged at byte {offset_bytes}: {what}; run `ficus admin check` for the whole picture"
                )
            }
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StoreError::Io { source, .. } => Some(source.as_ref()),
            _ => None,
        }
    }
}

/// An id as TinkerPop prints it in messages.
pub(crate) struct IdText<'a>(pub(crate) &'a Value);

impl fmt::Display for IdText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Byte(id) => write!(f, "{id}"),
            Value::Short(id) => write!(f, "{id}"),
            Value::Int(id) => write!(f, "{id}"),
            Value::Long(id) => write!(f, "{id}"),
            Value::BigInteger(id) => write!(f, "{id}"),
            Value::Float(id) => write!(f, "{id}"),
            Value::Double(id) => write!(f, "{id}"),
            Value::BigDecimal(id) => write!(f, "{id}"),
            Value::Char(id) => write!(f, "{id}"),
            Value::String(id) => f.write_str(id),
            Value::Uuid(id) => write!(f, "{id}"),
            other => write!(f, "{other:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_with_room_is_no_failure_of_the_disk() {
        for (errno, expected) in [
            (Errno::NOSPC, Some(FullDisk::Space)),
            (Errno::DQUOT, Some(FullDisk::Quota)),
            (Errno::FBIG, Some(FullDisk::FileSize)),
            (Errno::IO, None),
        ] {
            let error = StoreError::io("writing a file", errno.into());
            let full = match &error {
                StoreError::DiskFull { full, .. } => Some(*full),
                _ => None,
            };
            assert_eq!(full, expected, "{error}");
            assert_eq!(error.is_shortage(), expected.is_some());
            let text = error.of_checkpoint().to_string();
            assert!(text.contains("writing a file failed") && text.contains("nothing is lost"), "{text}");
        }
    }
}
