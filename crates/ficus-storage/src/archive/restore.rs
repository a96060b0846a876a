//! Makes a data directory out of an archive, with the state at a chosen moment.
//!
//! Nothing is applied: the newest checkpoint at or before the moment, the files it names and the log from there to the
//! moment *are* a data directory, whose start does the rest. `RESTORING` is the first file to be made and the last step is to
//! remove it, so a restore that was interrupted is known, refused by a start, and can be run again.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::{
    RESTORING_MARK, UNFINISHED_SUFFIX, copy_unfinished, finish_file, list, put_mark, refusal, remove, sync_names,
};
use crate::base::is_base_file;
use crate::checkpoint::{self, checkpoint_files, checkpoint_header, list_checkpoints, load_checkpoint};
use crate::committer::State;
use crate::environment::Disk;
use crate::log::{
    LogFile, LogPosition, SEGMENT_HEADER_BYTES, attached_files, list_starts, read_log, read_segment_header,
    record_time_ms, segment_header,
};
use crate::number_range::moment_of;
use crate::recovery::replay;
use crate::segment::{SEGMENT_FILE_HEADER_BYTES, renumbered_header, verify_file};
use crate::{CommitTs, StoreError};

/// Which state to restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestorePoint {
    /// The newest that the archive has.
    Newest,
    /// All that was committed at this moment, in milliseconds since 1970.
    Time(u64),
    /// Everything up to this commit, itself included.
    Commit(CommitTs),
}

impl fmt::Display for RestorePoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RestorePoint::Newest => write!(f, "the newest state"),
            RestorePoint::Time(time) => write!(f, "the moment {} ({time})", moment_of(*time)),
            RestorePoint::Commit(commit) => write!(f, "commit {}", commit.0),
        }
    }
}

/// What was restored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RestoreReport {
    /// The newest commit that the restored state has.
    pub commit: CommitTs,
    /// When it was, in milliseconds since 1970, if that was noted.
    pub time_ms: Option<u64>,
    /// Log records that the first start applies.
    pub records: u64,
    /// Bytes behind the last whole record of the archive: what was being copied when it was interrupted.
    pub torn_bytes: u64,
}

/// A log file of the archive, as far as it is to be restored.
struct Part {
    start: u64,
    /// Where its records end; the next file starts there unless something is missing.
    end: u64,
    /// Where the last record that is to be restored ends.
    cut: u64,
}

/// The last record to be restored, and the unbroken row of files up to it.
struct Span {
    parts: Vec<Part>,
    commit: LogPosition,
    time_ms: Option<u64>,
    torn_bytes: u64,
}

/// Restores into `target`, which must be locked. The store gets the number `store`.
pub(super) fn restore(
    archive: &dyn Disk,
    target: &Arc<dyn Disk>,
    until: RestorePoint,
    store: u64,
) -> Result<RestoreReport, StoreError> {
    let span = find_span(archive, until)?;
    let checkpoint = choose_checkpoint(archive, &span)?;
    let mut files: BTreeSet<Arc<str>> = BTreeSet::new();
    if checkpoint > LogPosition(0) {
        files.extend(checkpoint_files(archive, &checkpoint::file_name(checkpoint))?.1);
    }
    prepare(target.as_ref())?;
    let mut restoring = Restoring { archive, target: target.as_ref(), store };
    let mut records = 0;
    for part in span.parts.iter().filter(|part| part.cut > checkpoint.0) {
        records += restoring.restore_log(part, checkpoint, &mut files)?;
    }
    files.iter().try_for_each(|name| restoring.restore_base_file(name))?;
    if checkpoint > LogPosition(0) {
        restoring.restore_checkpoint(checkpoint)?;
    }
    sync_names(target.as_ref())?;
    read_back(target, checkpoint, span.commit)?;
    remove(target.as_ref(), RESTORING_MARK)?;
    sync_names(target.as_ref())?;
    let commit = CommitTs(span.commit.0);
    Ok(RestoreReport { commit, time_ms: span.time_ms, records, torn_bytes: span.torn_bytes })
}

/// Reads the whole log of the archive up to the moment.
fn find_span(archive: &dyn Disk, until: RestorePoint) -> Result<Span, StoreError> {
    let starts = list_starts(archive)?;
    let mut span = Span { parts: Vec::new(), commit: LogPosition(0), time_ms: None, torn_bytes: 0 };
    // Times never go back in one row of records, but may where something is missing.
    let mut time_ms = 0;
    let mut is_behind = false;
    for (index, start) in starts.iter().enumerate() {
        let file = LogFile::open(archive, *start)?;
        let (_, found) = read_segment_header(&file.bytes).map_err(|what| StoreError::corrupt(&*file.name, 0, what))?;
        if found != *start {
            return Err(StoreError::corrupt(&*file.name, 24, "its name does not agree with its content"));
        }
        let gap = span.parts.last().map(|last| last.end).filter(|end| end != start);
        let mut part = Part { start: *start, end: *start, cut: *start };
        let mut first = true;
        let mut newest = None;
        let (end, wrong) = file.visit(|position, payload, end| {
            time_ms = record_time_ms(payload).unwrap_or(0).max(time_ms);
            is_behind |= match until {
                RestorePoint::Newest => false,
                RestorePoint::Time(time) => time_ms > time,
                RestorePoint::Commit(commit) => position.0 > commit.0,
            };
            if let (true, true, Some(end)) = (first, is_behind, gap) {
                let reason = format!(
                    "it does not cover {until}: log records {end} to {start} are missing, which were written before that or after"
                );
                return Err(refusal(archive, reason));
            }
            first = false;
            if !is_behind {
                part.cut = end;
                newest = Some((position, record_time_ms(payload)));
            }
            Ok(())
        })?;
        part.end = start + end;
        if let Some(what) = wrong {
            let is_last = index + 1 == starts.len();
            if let Some(later) = file.proof_of_damage(end).filter(|_| is_last) {
                let what = format!("{what}, although the later record at byte {later} knows it whole");
                return Err(StoreError::corrupt(file.name, end, what));
            }
            if !is_last {
                return Err(StoreError::corrupt(file.name, end, format!("{what}, although later files were archived")));
            }
            span.torn_bytes = file.bytes.len() as u64 - end;
        }
        if gap.is_some() {
            span.parts.clear();
        }
        if let Some((position, time)) = newest {
            (span.commit, span.time_ms) = (position, time);
            span.parts.push(part);
        } else if !is_behind {
            span.parts.push(part);
        }
        if is_behind {
            break;
        }
    }
    if let (RestorePoint::Commit(commit), Some(last), false) = (until, span.parts.last(), is_behind)
        && commit.0 >= last.end
    {
        return Err(refusal(archive, format!("it does not cover {until}: it ends at commit {}", span.commit.0)));
    }
    if span.commit == LogPosition(0) {
        return Err(refusal(archive, format!("it does not cover {until}: it has no commit that is as old")));
    }
    Ok(span)
}

/// The newest checkpoint from which the log reaches the moment; 0 if that is the beginning of the log.
fn choose_checkpoint(archive: &dyn Disk, span: &Span) -> Result<LogPosition, StoreError> {
    let first = span.parts.first().map_or(0, |part| part.start);
    let fits = |position: &LogPosition| *position <= span.commit && position.0 >= first;
    match list_checkpoints(archive)?.into_iter().find(fits) {
        Some(position) => Ok(position),
        None if first == 0 => Ok(LogPosition(0)),
        None => {
            let reason = format!(
                "it does not cover commit {}: the log is there from {first} on, but no checkpoint between the two",
                span.commit.0
            );
            Err(refusal(archive, reason))
        }
    }
}

/// Begins a restore: the directory has to be empty, or left by a restore that was interrupted, whose files go.
fn prepare(target: &dyn Disk) -> Result<(), StoreError> {
    let names = list(target)?;
    let is_ours = |name: &String| name.ends_with(".ficus") || name.ends_with(UNFINISHED_SUFFIX);
    if !names.iter().any(|name| name == RESTORING_MARK) {
        if !names.is_empty() {
            return Err(refusal(target, "it is not empty; restore into an empty directory"));
        }
        return put_mark(target, RESTORING_MARK, "A restore into this directory has begun and not ended.\n");
    }
    names.iter().filter(|name| is_ours(name)).try_for_each(|name| remove(target, name))?;
    sync_names(target)
}

/// Loads what was made, as a start does.
fn read_back(target: &Arc<dyn Disk>, checkpoint: LogPosition, commit: LogPosition) -> Result<(), StoreError> {
    let mut state = match checkpoint {
        LogPosition(0) => State::default(),
        position => load_checkpoint(target.as_ref(), position)?.0,
    };
    state.disk = Some(target.clone());
    let from = LogPosition(checkpoint.0 + 1);
    read_log(target.as_ref(), from, &mut |position, bytes| replay(&mut state, position, bytes))?;
    state.lost().cloned().map_or(Ok(()), Err)?;
    match state.last_ts.0 == commit.0 {
        true => Ok(()),
        false => Err(StoreError::corrupt("the commit log", state.last_ts.0, "what was restored ends elsewhere")),
    }
}

struct Restoring<'a> {
    archive: &'a dyn Disk,
    target: &'a dyn Disk,
    store: u64,
}

impl Restoring<'_> {
    /// Writes a log file up to the cut; notes the files that records behind the checkpoint name. Returns the number of these
    /// records.
    fn restore_log(
        &mut self,
        part: &Part,
        checkpoint: LogPosition,
        files: &mut BTreeSet<Arc<str>>,
    ) -> Result<u64, StoreError> {
        let file = LogFile::open(self.archive, part.start)?;
        let length = (part.cut - part.start).max(SEGMENT_HEADER_BYTES) as usize;
        let mut records = 0;
        file.visit(|position, payload, end| {
            if position > checkpoint && end <= part.cut {
                let corrupt = |what| StoreError::corrupt(&*file.name, position.0 - part.start, what);
                files.extend(attached_files(payload).map_err(corrupt)?);
                records += 1;
            }
            Ok(())
        })?;
        let write = || {
            let to = self.target.create(&file.name)?;
            to.write_all_at(&segment_header(self.store, part.start), 0)?;
            let header = SEGMENT_HEADER_BYTES as usize;
            to.write_all_at(&file.bytes[header..length], SEGMENT_HEADER_BYTES)?;
            to.sync()
        };
        write()
            .map_err(|error| StoreError::io(format!("writing {} in {}", file.name, self.target.location()), error))?;
        Ok(records)
    }

    fn restore_base_file(&mut self, name: &Arc<str>) -> Result<(), StoreError> {
        if !is_base_file(name) || !list(self.archive)?.iter().any(|found| **found == **name) {
            return Err(refusal(self.archive, format!("it lacks the file {name}, which this state needs")));
        }
        let map = |disk: &dyn Disk, name: &str| {
            disk.map(name).map_err(|error| StoreError::io(format!("mapping {name} in {}", disk.location()), error))
        };
        let archived = map(self.archive, name)?;
        verify_file(archived.clone(), name)?;
        let header: [u8; SEGMENT_FILE_HEADER_BYTES] = renumbered_header(archived.bytes(), self.store);
        let (unfinished, _) = copy_unfinished(self.archive, self.target, name, &header)?;
        verify_file(map(self.target, &unfinished)?, name)?;
        finish_file(self.target, name)
    }

    fn restore_checkpoint(&mut self, position: LogPosition) -> Result<(), StoreError> {
        let name = checkpoint::file_name(position);
        let header = checkpoint_header(self.store, position);
        let (unfinished, _) = copy_unfinished(self.archive, self.target, &name, &header)?;
        checkpoint_files(self.target, &unfinished)?;
        finish_file(self.target, &name)
    }
}
