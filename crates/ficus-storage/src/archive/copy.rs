//! Brings what is new in a data directory into an archive.
//!
//! Order matters: files of bases before the log records and the checkpoint that name them, the log before the checkpoint that
//! stands in it. So an archive is whole after every step, whatever interrupts the next one.
//!
//! The source may be in use. What it writes is either never changed (files of bases, checkpoints) or only gets longer (log files), and it removes
//! only what a newer checkpoint has made superfluous. So when a file is gone that was there a moment ago, there is a newer
//! checkpoint, and the copy begins again with that one. A log file is flushed here before it is read: what an archive has, a
//! power cut does not take from the source.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use super::{
    ARCHIVE_MARK, BackupReport, RESTORING_MARK, UNFINISHED_SUFFIX, copy_unfinished, finish_file, list, put_mark,
    read_start, refusal, remove, sync_names,
};
use crate::base::is_base_file;
use crate::checkpoint::{self, checkpoint_files, list_checkpoints};
use crate::environment::{Disk, DiskFile};
use crate::log::{
    self, LogPosition, SEGMENT_HEADER_BYTES, attached_files, list_starts, may_go_on, read_segment_header,
    record_time_ms, whole_frames,
};
use crate::segment::verify_file;
use crate::{CommitTs, StoreError};

/// How often the newest checkpoint may be replaced while its files are looked for.
const TRIES: usize = 20;

/// Bytes of a log file that are read at once, at first.
const READ_BYTES: u64 = 1 << 20;

/// What is known to be equal in source and archive, so that it is not compared again.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The newest log file: where it starts, and its length in the archive.
    log: Option<(u64, u64)>,
    /// The newest record in the archive and its time.
    newest: Option<(CommitTs, Option<u64>)>,
}

/// Brings what is new in `source` into `target`, which must be locked.
pub(super) fn copy(source: &dyn Disk, target: &dyn Disk, known: &mut Known) -> Result<BackupReport, StoreError> {
    prepare(target)?;
    let mut copy = Copy { source, target, known, report: BackupReport::default(), present: BTreeSet::new() };
    let mut tries = 0;
    loop {
        match copy.run() {
            Ok(()) => break,
            Err(error) if tries < TRIES && has_vanished(&error) => tries += 1,
            Err(error) => {
                copy.known.log = None;
                return Err(error);
            }
        }
    }
    let mut report = copy.report;
    if let Some((commit, time_ms)) = known.newest {
        (report.commit, report.time_ms) = (commit, time_ms);
    }
    Ok(report)
}

/// The bytes of a log file from an offset on: up to its end, or to where there are no records yet, if it was made ahead.
fn read_records(file: &dyn DiskFile, start: u64, from: u64, length: u64) -> io::Result<Vec<u8>> {
    let header = SEGMENT_HEADER_BYTES.saturating_sub(from);
    let (mut bytes, mut checked) = (Vec::new(), header as usize);
    loop {
        let begun = bytes.len();
        let more = (length - from - begun as u64).min(READ_BYTES.max(begun as u64));
        bytes.resize(begun + more as usize, 0);
        file.read_exact_at(&mut bytes[begun..], from + begun as u64)?;
        if from + bytes.len() as u64 == length || bytes.len() < checked {
            return Ok(bytes);
        }
        let (whole, wrong) =
            whole_frames(&bytes[checked..], start + from + checked as u64, |_, _| Ok(())).map_err(io::Error::other)?;
        if !may_go_on(wrong) {
            return Ok(bytes);
        }
        checked += whole;
    }
}

/// True for a file that was listed and is gone.
fn has_vanished(error: &StoreError) -> bool {
    matches!(error, StoreError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
}

/// Makes a directory an archive, or refuses it.
fn prepare(target: &dyn Disk) -> Result<(), StoreError> {
    let names = list(target)?;
    if names.iter().any(|name| name == ARCHIVE_MARK) {
        return Ok(());
    }
    if names.iter().any(|name| name.ends_with(".ficus") || name == RESTORING_MARK) {
        return Err(refusal(target, "it has files of a store, and is no archive; give an empty directory"));
    }
    put_mark(
        target,
        ARCHIVE_MARK,
        "An archive of a FicusDB store. `ficus admin restore` makes a data directory of it.\n",
    )
}

struct Copy<'a> {
    source: &'a dyn Disk,
    target: &'a dyn Disk,
    known: &'a mut Known,
    report: BackupReport,
    /// Names in the target.
    present: BTreeSet<String>,
}

impl Copy<'_> {
    fn run(&mut self) -> Result<(), StoreError> {
        self.present = list(self.target)?.into_iter().collect();
        let checkpoint = list_checkpoints(self.source)?.first().copied();
        let starts = list_starts(self.source)?;
        // Once open, a file can be read to its end, also when the source removes it.
        let open = |start: &u64| self.source.open(&log::file_name(*start));
        let files: io::Result<Vec<Box<dyn DiskFile>>> = starts.iter().map(open).collect();
        let files = files.map_err(|error| StoreError::io("opening the commit log", error))?;
        let in_target = list_starts(self.target)?;
        self.check_history(&starts, &in_target)?;
        for (index, (start, file)) in starts.iter().zip(&files).enumerate() {
            let is_complete = in_target.contains(start) && in_target.last().is_some_and(|last| last > start);
            if !is_complete {
                let is_last = index + 1 == starts.len();
                self.copy_log(*start, file.as_ref(), is_last, checkpoint.unwrap_or_default())?;
            }
        }
        match checkpoint {
            Some(position) if !self.present.contains(&checkpoint::file_name(position)) => {
                self.copy_checkpoint(position)
            }
            _ => Ok(()),
        }
    }

    /// Refuses an archive that does not go on where this source comes from.
    fn check_history(&self, starts: &[u64], in_target: &[u64]) -> Result<(), StoreError> {
        let numbers =
            [(self.source, starts.first()), (self.target, in_target.first())].map(|(disk, start)| match start {
                Some(start) => read_start(disk, &log::file_name(*start), SEGMENT_HEADER_BYTES)
                    .map(|header| read_segment_header(&header).ok().map(|(store, _)| store)),
                None => Ok(None),
            });
        let [source, target] = numbers;
        if let (Some(source), Some(target)) = (source?, target?)
            && source != target
        {
            return Err(refusal(self.target, "it is the archive of another store; use an empty directory"));
        }
        match (starts.first(), in_target.last()) {
            (Some(first), Some(last)) if first <= last && !starts.contains(last) => Err(self.other_history()),
            _ => Ok(()),
        }
    }

    fn other_history(&self) -> StoreError {
        refusal(
            self.target,
            "it has log records that the data directory does not have: that was copied or restored from an earlier \
             state by other means. Keep the archive as it is and use an empty directory",
        )
    }

    fn copy_log(
        &mut self,
        start: u64,
        file: &dyn DiskFile,
        is_last: bool,
        checkpoint: LogPosition,
    ) -> Result<(), StoreError> {
        let name = log::file_name(start);
        let io = |error| StoreError::io(format!("reading {name}"), error);
        let length = file.length().map_err(io)?;
        if is_last {
            file.sync().map_err(io)?;
        }
        let from = match self.known.log {
            Some((known, end)) if known == start => end,
            _ if self.present.contains(&name) => self.compare_log(start, file, length)?,
            _ => 0,
        };
        if length < from {
            return Err(self.other_history());
        }
        if length == from {
            self.known.log = Some((start, from));
            return Ok(());
        }
        let bytes = read_records(file, start, from, length).map_err(io)?;
        let header = SEGMENT_HEADER_BYTES.saturating_sub(from) as usize;
        if header > 0 {
            match read_segment_header(&bytes[..header.min(bytes.len())]) {
                Ok((_, found)) if found == start => {}
                // Its making was cut short; it has no records.
                Err(_) if is_last => return Ok(()),
                Ok(_) => return Err(StoreError::corrupt(name, 24, "its name does not agree with its content")),
                Err(what) => return Err(StoreError::corrupt(name, 0, what)),
            }
        }
        let mut named = Vec::new();
        let mut newest = self.known.newest;
        let (whole, wrong) = whole_frames(&bytes[header..], start + from + header as u64, |position, payload| {
            let files =
                attached_files(payload).map_err(|what| StoreError::corrupt(&*name, position.0 - start, what))?;
            named.extend(files.into_iter().map(|file| (position, file)));
            newest = Some((CommitTs(position.0), record_time_ms(payload)));
            Ok(())
        })?;
        let end = from + (header + whole) as u64;
        if let (Some(what), false) = (wrong, is_last) {
            return Err(StoreError::corrupt(name, end, format!("{what}, although later files were written")));
        }
        for (position, file) in named {
            match self.copy_base_file(&file) {
                // A newer checkpoint has made it superfluous: nobody applies this record any more.
                Err(error) if has_vanished(&error) && position <= checkpoint => {}
                copied => copied?,
            }
        }
        self.known.log = None;
        self.append(&name, from, &bytes[..header + whole])?;
        (self.known.log, self.known.newest) = (Some((start, end)), newest);
        Ok(())
    }

    /// How much of a log file the archive has; it must be the same as in the source.
    fn compare_log(&mut self, start: u64, file: &dyn DiskFile, length: u64) -> Result<u64, StoreError> {
        let name = log::file_name(start);
        let archived = read_start(self.target, &name, u64::MAX)?;
        if archived.len() < SEGMENT_HEADER_BYTES as usize || read_segment_header(&archived).is_err() {
            // Its making was cut short.
            return Ok(0);
        }
        let header = SEGMENT_HEADER_BYTES as usize;
        let mut newest = None;
        let (whole, _) = whole_frames(&archived[header..], start + header as u64, |position, payload| {
            newest = Some((CommitTs(position.0), record_time_ms(payload)));
            Ok(())
        })?;
        let end = header + whole;
        if length < end as u64 {
            return Err(self.other_history());
        }
        let mut own = vec![0; end];
        file.read_exact_at(&mut own, 0).map_err(|error| StoreError::io(format!("reading {name}"), error))?;
        if own != archived[..end] {
            return Err(self.other_history());
        }
        self.known.newest = newest.or(self.known.newest);
        Ok(end as u64)
    }

    fn append(&mut self, name: &str, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        let is_new = !self.present.contains(name);
        let write = || {
            let file = if is_new { self.target.create(name)? } else { self.target.open(name)? };
            file.set_length(offset)?;
            file.write_all_at(bytes, offset)?;
            file.sync()?;
            if is_new { self.target.sync_directory() } else { Ok(()) }
        };
        write().map_err(|error| StoreError::io(format!("writing {name} in {}", self.target.location()), error))?;
        self.present.insert(name.to_string());
        self.report.files += 1;
        self.report.bytes += bytes.len() as u64;
        Ok(())
    }

    fn copy_checkpoint(&mut self, position: LogPosition) -> Result<(), StoreError> {
        let name = checkpoint::file_name(position);
        for file in checkpoint_files(self.source, &name)?.1 {
            self.copy_base_file(&file)?;
        }
        let (unfinished, bytes) = copy_unfinished(self.source, self.target, &name, &[])?;
        checkpoint_files(self.target, &unfinished)?;
        sync_names(self.target)?;
        self.finish(&name, bytes)?;
        sync_names(self.target)
    }

    fn copy_base_file(&mut self, name: &Arc<str>) -> Result<(), StoreError> {
        if !is_base_file(name) {
            return Err(StoreError::corrupt(
                "the commit log",
                0,
                format!("it names a file '{name}' that is none of a base"),
            ));
        }
        if self.present.contains(&**name) {
            return Ok(());
        }
        let (unfinished, bytes) = copy_unfinished(self.source, self.target, name, &[])?;
        let copied = self.target.map(&unfinished);
        let copied = copied.map_err(|error| StoreError::io(format!("mapping {unfinished}"), error))?;
        if let Err(error) = verify_file(copied, name) {
            remove(self.target, &unfinished)?;
            return Err(error);
        }
        self.finish(name, bytes)
    }

    fn finish(&mut self, name: &str, bytes: u64) -> Result<(), StoreError> {
        debug_assert!(!name.ends_with(UNFINISHED_SUFFIX));
        finish_file(self.target, name)?;
        self.present.insert(name.to_string());
        self.report.files += 1;
        self.report.bytes += bytes;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{FileLog, FoundLog, Log, Spare};
    use crate::simulated_disk::SimulatedDisk;

    #[test]
    fn of_a_log_file_that_was_made_ahead_the_records_are_read() {
        let shared: Arc<dyn Disk> = Arc::new(SimulatedDisk::new());
        let segment_bytes = 8 * READ_BYTES;
        let found = FoundLog::look(shared.as_ref(), None).unwrap();
        let mut log = FileLog::open(shared.clone(), found, 7, segment_bytes).unwrap();
        log.use_spare(Arc::new(Spare::new(shared.clone(), segment_bytes)));
        log.append(&vec![1; READ_BYTES as usize]).unwrap();
        // One that is longer than what is read at first, and is zeros as well; then short ones.
        log.append(&vec![0; READ_BYTES as usize * 3 / 2]).unwrap();
        (0..50).for_each(|number| assert!(log.append(&[number; 900]).is_ok()));
        let start = *list_starts(shared.as_ref()).unwrap().last().unwrap();
        let file = shared.open(&log::file_name(start)).unwrap();
        assert!(start > 0 && file.length().unwrap() == segment_bytes);
        for from in [0, 17, SEGMENT_HEADER_BYTES] {
            let bytes = read_records(file.as_ref(), start, from, segment_bytes).unwrap();
            let header = (SEGMENT_HEADER_BYTES - from) as usize;
            let mut records = 0;
            let first = start + SEGMENT_HEADER_BYTES;
            whole_frames(&bytes[header..], first, |_, _| {
                records += 1;
                Ok(())
            })
            .unwrap();
            assert_eq!(records, 51);
            assert!(bytes.len() < segment_bytes as usize / 2, "the zeros behind them are not all read");
        }
    }
}
