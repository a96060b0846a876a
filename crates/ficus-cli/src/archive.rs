//! `ficus admin backup` and `ficus admin restore`.

use std::path::PathBuf;

use chrono::{DateTime, SecondsFormat};
use ficus_storage::{BackupReport, CommitTs, RestorePoint, RestoreReport, Store};
use serde_json::json;

use crate::Outcome;
use crate::failure::Failure;
use crate::output::{OutputFormat, result};

/// Flags of `ficus admin backup`.
#[derive(Debug, clap::Args)]
pub struct BackupArguments {
    /// The data directory; a server may be using it.
    #[arg(long, value_name = "DIR", env = "FICUS_STORE__DATA_DIR")]
    data_dir: PathBuf,
    /// The archive: an empty directory, or one that has earlier backups of the same store. Created if there is none.
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
}

/// Flags of `ficus admin restore`.
#[derive(Debug, clap::Args)]
pub struct RestoreArguments {
    /// The archive.
    #[arg(long, value_name = "DIR")]
    from: PathBuf,
    /// The new data directory: empty, or left by a restore that was interrupted. Created if there is none.
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Restore what was committed at this moment, as 2026-11-30T18:30:00Z or in milliseconds since 1970. Without it the newest state.
    #[arg(long, value_name = "TIME", value_parser = milliseconds, conflicts_with = "commit")]
    until: Option<u64>,
    /// Restore everything up to this commit, itself included.
    #[arg(long, value_name = "TS")]
    commit: Option<u64>,
}

/// Brings what is new into an archive.
pub fn backup(arguments: &BackupArguments, format: OutputFormat) -> Outcome {
    let BackupArguments { data_dir, to } = arguments;
    if !data_dir.is_dir() {
        return Err(Failure::failed(format!("{}: there is no data directory", data_dir.display())));
    }
    let BackupReport { commit, time_ms, files, bytes } = Store::backup(data_dir, to)?;
    let line = match format {
        OutputFormat::Json => {
            json!({"commit": commit.0, "time_ms": time_ms, "files": files, "bytes": bytes}).to_string()
        }
        _ => {
            let (place, at) = (to.display(), moment(time_ms));
            format!("{place} has all up to commit {}{at}; {files} files with {bytes} bytes were written", commit.0)
        }
    };
    Ok(result(&line)?)
}

/// Makes a data directory out of an archive.
pub fn restore(arguments: &RestoreArguments, format: OutputFormat) -> Outcome {
    let RestoreArguments { from, to, until, commit } = arguments;
    if !from.is_dir() {
        return Err(Failure::failed(format!("{}: there is no archive", from.display())));
    }
    let point = match (until, commit) {
        (Some(time), _) => RestorePoint::Time(*time),
        (None, Some(commit)) => RestorePoint::Commit(CommitTs(*commit)),
        (None, None) => RestorePoint::Newest,
    };
    let RestoreReport { commit, time_ms, records, torn_bytes } = Store::restore(from, to, point)?;
    let line = match format {
        OutputFormat::Json => {
            json!({"commit": commit.0, "time_ms": time_ms, "records": records, "torn_bytes": torn_bytes}).to_string()
        }
        _ => {
            let (place, at) = (to.display(), moment(time_ms));
            let torn = match torn_bytes {
                0 => String::new(),
                bytes => format!("; {bytes} bytes of an unfinished copy at the end of the archive were left out"),
            };
            format!("{place} has all up to commit {}{at}; its first start applies {records} records{torn}", commit.0)
        }
    };
    Ok(result(&line)?)
}

/// When a commit was, behind its number.
fn moment(time_ms: Option<u64>) -> String {
    let time = time_ms.and_then(|time| DateTime::from_timestamp_millis(i64::try_from(time).ok()?));
    time.map_or_else(String::new, |time| format!(" of {}", time.to_rfc3339_opts(SecondsFormat::Millis, true)))
}

/// Reads a moment as milliseconds since 1970.
fn milliseconds(text: &str) -> Result<u64, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let time = DateTime::parse_from_rfc3339(text)
        .map_err(|error| format!("{error}; a moment looks like 2026-11-30T18:30:00Z, or is milliseconds since 1970"))?;
    u64::try_from(time.timestamp_millis()).map_err(|_| "it is before 1970".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_and_shown() {
        assert_eq!(milliseconds("1764527400123"), Ok(1_764_527_400_123));
        assert_eq!(milliseconds("2025-11-30T18:30:00.123Z"), Ok(1_764_527_400_123));
        assert_eq!(milliseconds("2025-11-30T20:00:00.123+01:30"), Ok(1_764_527_400_123));
        assert_eq!(moment(Some(1_764_527_400_123)), " of 2025-11-30T18:30:00.123Z");
        assert_eq!(moment(None), "");
        for wrong in ["1969-01-01T00:00:00Z", "yesterday", "-1", "2025-11-30T18:30:00", ""] {
            assert!(milliseconds(wrong).is_err(), "{wrong}");
        }
    }
}
