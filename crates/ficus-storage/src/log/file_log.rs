//! The commit log as numbered files in the data directory.
//!
//! The name of a file is the position where it starts: `log-0000000000000000.ficus`. A file that is full is flushed before
//! the next one is begun, so only the newest can have a torn tail. Where commits wait for flushes, files are made ahead ([`Spare`]): behind the last
//! record of such a file are zeros, and it is full before the next one is begun.

use std::io;
use std::sync::Arc;

use super::segment::{FRAME_BYTES, LogFile, SEGMENT_HEADER_BYTES, put_frame, read_segment_header, segment_header};
use super::spare::{SPARE_NAME, Spare};
use super::{Log, LogPosition, RecordVisitor};
use crate::environment::{Disk, DiskFile};
use crate::{FullDisk, StoreError};

/// A file that grows by its records is left for one that was made ahead as soon as this part of a file was written, or so many bytes: a store that
/// writes little needs none.
const SPARE_SHARE: u64 = 16;
const SPARE_AFTER: u64 = 512 << 10;

/// The commit log as numbered files in the data directory.
pub(crate) struct FileLog {
    disk: Arc<dyn Disk>,
    store: u64,
    segment_bytes: u64,
    /// Starts of all files, ascending; the last is being written.
    starts: Vec<u64>,
    file: Box<dyn DiskFile>,
    /// Length of the last file up to the end of its last whole record.
    length: u64,
    /// Everything before is flushed.
    durable: u64,
    buffer: Vec<u8>,
    /// Where files are made ahead, if they are.
    spare: Option<Arc<Spare>>,
    /// Bytes that the last file was made with; 0 if it grows.
    ready: u64,
    /// The last file was cut, which is not flushed.
    is_cut: bool,
}

/// What opening a log found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogReport {
    /// Number of files.
    pub(crate) files: u64,
    /// Whole records.
    pub(crate) records: u64,
    /// Bytes of whole records with their frames.
    pub(crate) bytes: u64,
    /// Bytes behind the last whole record, as a crash leaves them, and what they look like.
    pub(crate) torn: Option<(u64, &'static str)>,
    /// The position at which a newest file begins whose making was cut short; the log goes on there.
    pub(crate) unfinished: Option<LogPosition>,
    /// The position at which the first file begins.
    pub(crate) start: LogPosition,
    /// The position after the last whole record.
    pub(crate) tail: LogPosition,
}

/// The name of the log file that starts at a position.
pub(crate) fn file_name(start: u64) -> String {
    format!("log-{start:016x}.ficus")
}

fn start_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("log-")?.strip_suffix(".ficus")?;
    if digits.len() == 16 { u64::from_str_radix(digits, 16).ok() } else { None }
}

/// The starts of all log files, ascending.
pub(crate) fn list_starts(disk: &dyn Disk) -> Result<Vec<u64>, StoreError> {
    let names = disk.list().map_err(|error| StoreError::io(format!("listing {}", disk.location()), error))?;
    let mut starts: Vec<u64> = names.iter().filter_map(|name| start_of(name)).collect();
    starts.sort_unstable();
    Ok(starts)
}

/// Reads every file of a log without changing anything; fails at the first damage. `store` is checked if it is known.
pub(crate) fn check_log(disk: &dyn Disk, store: Option<u64>) -> Result<LogReport, StoreError> {
    Ok(FoundLog::look(disk, store)?.report)
}

/// Hands over the records at or after `position` of a log that [`check_log`] found good; ends at a torn tail.
pub(crate) fn read_log(disk: &dyn Disk, position: LogPosition, visit: RecordVisitor<'_>) -> Result<(), StoreError> {
    visit_segments(disk, &list_starts(disk)?, position, visit).map(|_| ())
}

/// Hands over records; ends at the first place that has none, and tells the file, the offset and what is there.
fn visit_segments(
    disk: &dyn Disk,
    starts: &[u64],
    position: LogPosition,
    visit: RecordVisitor<'_>,
) -> Result<Option<(String, u64, &'static str)>, StoreError> {
    for (number, &start) in starts.iter().enumerate() {
        if starts.get(number + 1).is_some_and(|next| *next <= position.0) {
            continue;
        }
        let segment = LogFile::open(disk, start)?;
        let (end, wrong) = segment.frames(|frame| match frame.position >= position {
            true => visit(frame.position, frame.payload),
            false => Ok(()),
        })?;
        if let Some(what) = wrong {
            return Ok(Some((segment.name, end, what)));
        }
    }
    Ok(None)
}

/// A log as it was found, of which nothing was changed yet.
pub(crate) struct FoundLog {
    pub(crate) report: LogReport,
    /// The store that it belongs to, if there is anything to tell it.
    pub(crate) store: Option<u64>,
    /// Starts of all files, ascending, without the unfinished one.
    starts: Vec<u64>,
}

impl FoundLog {
    /// Reads every file; fails at the first damage. `store` is checked if it is known.
    pub(crate) fn look(disk: &dyn Disk, store: Option<u64>) -> Result<FoundLog, StoreError> {
        let starts = list_starts(disk)?;
        let start = LogPosition(starts.first().copied().unwrap_or(0));
        let report = LogReport { files: starts.len() as u64, start, ..LogReport::default() };
        let mut found = FoundLog { report, store, starts };
        let mut expected_start = None;
        for number in 0..found.starts.len() {
            let end = found.look_at(disk, number, expected_start)?;
            expected_start = Some(end);
            found.report.tail = LogPosition(end);
        }
        if found.report.unfinished.is_some() {
            found.starts.pop();
        }
        Ok(found)
    }

    /// Reads one file, before which another one ends at `expected_start`; returns where its records end.
    fn look_at(&mut self, disk: &dyn Disk, number: usize, expected_start: Option<u64>) -> Result<u64, StoreError> {
        let start = self.starts[number];
        let is_last = number + 1 == self.starts.len();
        let segment = LogFile::open(disk, start)?;
        let corrupt = |offset, what: String| StoreError::corrupt(segment.name.clone(), offset, what);
        let header = read_segment_header(&segment.bytes);
        if let Ok((found_store, found_start)) = header {
            if *self.store.get_or_insert(found_store) != found_store {
                return Err(corrupt(16, "it belongs to another store".to_string()));
            }
            if found_start != start {
                return Err(corrupt(24, "its name does not agree with its content; was it renamed?".to_string()));
            }
        }
        // Also of a file without a header: in front of it, others may have been lost or copied by half.
        if let Some(expected) = expected_start.filter(|expected| *expected != start) {
            let what = format!(
                "it begins at log position {start}, but the file before it ends at {expected}; a log file is missing, was cut or was copied by half"
            );
            return Err(corrupt(0, what));
        }
        match header {
            Ok(_) => {}
            // The header is flushed before the first record is written.
            Err(what) if is_last && segment.proof_of_damage(0).is_none() => {
                self.report.torn = Some((segment.bytes.len() as u64, what));
                self.report.unfinished = Some(LogPosition(start));
                return Ok(start);
            }
            Err(what) => return Err(corrupt(0, what.to_string())),
        }
        let report = &mut self.report;
        let (end, wrong) = segment.frames(|frame| {
            report.records += 1;
            report.bytes += (FRAME_BYTES + frame.payload.len()) as u64;
            Ok(())
        })?;
        if let Some(what) = wrong {
            if !is_last {
                return Err(corrupt(end, format!("{what}, although later files were written")));
            }
            if let Some(later) = segment.proof_of_damage(end) {
                return Err(corrupt(end, format!("{what}, although the later record at byte {later} knows it whole")));
            }
            // What was made ahead for records to come is no unfinished write.
            let unused = segment.bytes[end as usize..].iter().rev().take_while(|byte| **byte == 0).count();
            let torn = segment.bytes.len() as u64 - end - unused as u64;
            report.torn = Some((torn, what)).filter(|(torn, _)| *torn > 0);
        }
        Ok(start + end)
    }

    /// Hands over the records at or after `position`, all that were found.
    pub(crate) fn read_from(
        &self,
        disk: &dyn Disk,
        position: LogPosition,
        visit: RecordVisitor<'_>,
    ) -> Result<(), StoreError> {
        let tail = self.report.tail.0;
        match visit_segments(disk, &self.starts, position, visit)? {
            // The end of the newest file, as it was found.
            Some((name, offset, _))
                if self.starts.last().is_some_and(|last| file_name(*last) == name && last + offset == tail) =>
            {
                Ok(())
            }
            Some((name, offset, what)) => Err(StoreError::corrupt(name, offset, what)),
            None => Ok(()),
        }
    }
}

impl FileLog {
    /// Opens the log that was found in a directory, cutting a torn tail, or begins one. `new_store` is the number of one that begins, if nothing
    /// tells another.
    ///
    /// Whatever can refuse the log has to be looked at before: from here on files are changed.
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        found: FoundLog,
        new_store: u64,
        segment_bytes: u64,
    ) -> Result<FileLog, StoreError> {
        let FoundLog { report, store, mut starts } = found;
        let tail = report.tail.0;
        let store = store.unwrap_or(new_store);
        if let Some(unfinished) = report.unfinished {
            let name = file_name(unfinished.0);
            disk.remove(&name).map_err(|error| StoreError::io(format!("removing the unfinished {name}"), error))?;
        }
        let (buffer, spare, ready, is_cut) = Default::default();
        let Some(&last) = starts.last() else {
            let file = create_segment(disk.as_ref(), store, tail)?;
            starts.push(tail);
            let length = SEGMENT_HEADER_BYTES;
            let durable = tail + length;
            return Ok(FileLog {
                disk,
                store,
                segment_bytes,
                starts,
                file,
                length,
                durable,
                buffer,
                spare,
                ready,
                is_cut,
            });
        };
        let name = file_name(last);
        let io = |error| StoreError::io(format!("opening {name}"), error);
        let file = disk.open(&name).map_err(io)?;
        let length = tail - last;
        if file.length().map_err(io)? != length {
            file.set_length(length).map_err(io)?;
        }
        // What was read back may not have been flushed yet.
        file.sync().map_err(io)?;
        disk.sync_directory().map_err(io)?;
        let durable = tail;
        Ok(FileLog { disk, store, segment_bytes, starts, file, length, durable, buffer, spare, ready, is_cut })
    }

    /// From now on files are made ahead.
    pub(crate) fn use_spare(&mut self, spare: Arc<Spare>) {
        self.spare = Some(spare);
    }

    /// The number of the store that the log belongs to.
    pub(crate) fn store(&self) -> u64 {
        self.store
    }

    fn current_start(&self) -> u64 {
        self.starts[self.starts.len() - 1]
    }

    /// Bytes after which the last file is full.
    fn limit(&self) -> u64 {
        if self.ready > 0 { self.ready } else { self.segment_bytes }
    }

    /// Bytes after which a file that grows is left.
    fn spare_after(&self) -> u64 {
        (self.segment_bytes / SPARE_SHARE).min(SPARE_AFTER)
    }

    /// Begins the next file if the last one is full, or if it grows and one that does not is there.
    fn make_room(&mut self) -> Result<(), StoreError> {
        let is_full = self.length >= self.limit();
        let may_change = is_full || self.ready == 0 && self.length >= self.spare_after();
        let spare = self.spare.as_ref().filter(|spare| may_change && spare.take());
        let (disk, store, start) = (self.disk.clone(), self.store, self.current_start() + self.length);
        let ready = spare.map_or(0, |spare| spare.bytes());
        if !is_full && ready == 0 {
            return Ok(());
        }
        self.barrier()?;
        let made = match ready {
            0 => create_segment(disk.as_ref(), store, start),
            _ => name_segment(disk.as_ref(), store, start),
        };
        if let Some(spare) = self.spare.as_ref().filter(|_| ready > 0) {
            spare.let_go(made.is_ok());
        }
        self.file = made?;
        self.ready = ready;
        self.starts.push(start);
        self.length = SEGMENT_HEADER_BYTES;
        self.durable = start + self.length;
        if let Some(spare) = &self.spare {
            spare.forgive();
        }
        Ok(())
    }

    /// Adds records, as [`Log::append_group`] does, to the last file or a next one.
    fn try_to_append(&mut self, records: &[&[u8]]) -> Result<Vec<LogPosition>, StoreError> {
        self.make_room()?;
        self.buffer.clear();
        let start = self.current_start() + self.length;
        let mut positions = Vec::with_capacity(records.len());
        for record in records {
            let position = start + self.buffer.len() as u64;
            put_frame(record, position, self.durable, &mut self.buffer);
            positions.push(LogPosition(position));
            if self.length + self.buffer.len() as u64 >= self.limit() {
                break;
            }
        }
        if let Err(error) = self.file.write_all_at(&self.buffer, self.length) {
            let action = format!("writing {}", file_name(self.current_start()));
            let error = StoreError::io(action.clone(), error);
            // Part of the records may be there; without them the log is as before, and has nothing behind them.
            (self.ready, self.is_cut) = (0, true);
            return Err(match (self.file.set_length(self.length), error) {
                (Ok(()), full @ StoreError::DiskFull { .. }) => full,
                // Whatever the reason, what was refused may still be there.
                (Err(cut), StoreError::DiskFull { .. }) => {
                    StoreError::Io { action: format!("{action} back"), source: Arc::new(cut) }
                }
                (_, error) => error,
            });
        }
        self.length += self.buffer.len() as u64;
        // One huge record should not hold memory for ever.
        self.buffer.shrink_to(1 << 20);
        self.look_ahead();
        Ok(positions)
    }

    /// Makes what can be made of room for records that were refused; true if another try is worth it.
    fn finds_room(&mut self, full: FullDisk) -> bool {
        match full {
            FullDisk::Space | FullDisk::Quota => self.spare.as_ref().is_some_and(|spare| spare.give_up()),
            // Where there are records the file is full, and the next one has room for others.
            FullDisk::FileSize if self.length > SEGMENT_HEADER_BYTES => {
                self.ready = self.length;
                true
            }
            FullDisk::FileSize => false,
        }
    }

    /// Asks for the next file, in time.
    fn look_ahead(&self) {
        let share = if self.ready > 0 { self.ready / 2 } else { self.spare_after() };
        if let Some(spare) = self.spare.as_ref().filter(|_| self.length >= share) {
            spare.want();
        }
    }
}

/// Makes a file with a header; removes what it made if it cannot.
fn create_segment(disk: &dyn Disk, store: u64, start: u64) -> Result<Box<dyn DiskFile>, StoreError> {
    let name = file_name(start);
    let make = || {
        let file = disk.create(&name)?;
        file.write_all_at(&segment_header(store, start), 0)?;
        file.sync()?;
        disk.sync_directory()?;
        Ok(file)
    };
    make().map_err(|error| unmade(disk, &name, format!("creating {name}"), error))
}

/// Takes back what was made of a file of the log. Where that is not certain to last the log must not go on in the file before: after a crash there
/// would be both.
fn unmade(disk: &dyn Disk, name: &str, action: String, error: io::Error) -> StoreError {
    let is_gone = match disk.remove(name) {
        Ok(()) => disk.sync_directory().is_ok(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    match is_gone {
        true => StoreError::io(action, error),
        false => StoreError::Io { action, source: Arc::new(error) },
    }
}

/// Makes the spare file part of the log. It has its header before it has its name, so that no file of the log has another one's.
fn name_segment(disk: &dyn Disk, store: u64, start: u64) -> Result<Box<dyn DiskFile>, StoreError> {
    let name = file_name(start);
    let make = || {
        let file = disk.open(SPARE_NAME)?;
        file.write_all_at(&segment_header(store, start), 0)?;
        file.sync()?;
        disk.rename(SPARE_NAME, &name)?;
        disk.sync_directory()?;
        Ok(file)
    };
    make().map_err(|error| unmade(disk, &name, format!("making {SPARE_NAME} {name}"), error))
}

impl Log for FileLog {
    fn append_group(&mut self, records: &[&[u8]]) -> Result<Vec<LogPosition>, StoreError> {
        match self.try_to_append(records) {
            // Nothing of them is there, and nothing was flushed in between.
            Err(StoreError::DiskFull { full, .. }) if self.finds_room(full) => self.try_to_append(records),
            outcome => outcome,
        }
    }

    fn barrier(&mut self) -> Result<(), StoreError> {
        let tail = self.current_start() + self.length;
        if self.durable == tail && !self.is_cut {
            return Ok(());
        }
        // What a failed flush wrote is unknown, whatever the reason: a full disk is none here.
        self.file.sync().map_err(|error| StoreError::Io {
            action: format!("flushing {}", file_name(self.current_start())),
            source: Arc::new(error),
        })?;
        (self.durable, self.is_cut) = (tail, false);
        Ok(())
    }

    fn ready_bytes(&self) -> u64 {
        self.ready.saturating_sub(self.length)
    }

    fn tail(&self) -> LogPosition {
        LogPosition(self.current_start() + self.length)
    }

    fn trim(&mut self, position: LogPosition) -> Vec<String> {
        let count = self.starts.iter().skip(1).take_while(|start| **start <= position.0).count();
        self.starts.drain(..count).map(file_name).collect()
    }

    fn close(&mut self) -> Result<(), StoreError> {
        if std::mem::take(&mut self.ready) > self.length {
            let cut = || self.file.set_length(self.length).and_then(|()| self.file.sync());
            cut().map_err(|error| StoreError::io(format!("cutting {}", file_name(self.current_start())), error))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated_disk::{Faults, SimulatedDisk};

    fn open(disk: &SimulatedDisk) -> (FileLog, LogReport) {
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        let found = FoundLog::look(disk, None).unwrap();
        let report = found.report.clone();
        let mut log = FileLog::open(shared.clone(), found, 7, 1_600).unwrap();
        log.use_spare(Arc::new(Spare::new(shared, 1_600)));
        (log, report)
    }

    fn put(log: &mut FileLog, number: u8) -> LogPosition {
        let position = log.append(&[number; 50]).unwrap();
        log.barrier().unwrap();
        position
    }

    fn put_all(log: &mut FileLog, numbers: std::ops::Range<u8>) {
        for number in numbers {
            put(log, number);
        }
    }

    fn records(disk: &SimulatedDisk) -> Vec<u8> {
        let mut records = Vec::new();
        let mut visit = |_: LogPosition, payload: &[u8]| {
            records.push(payload[0]);
            Ok(())
        };
        read_log(disk, LogPosition(0), &mut visit).unwrap();
        records
    }

    #[test]
    fn records_replace_zeros_as_soon_as_a_file_was_made_ahead() {
        let disk = SimulatedDisk::new();
        let (mut log, _) = open(&disk);
        put_all(&mut log, 0..1);
        assert_eq!(log.starts.len(), 1, "a log that is short grows");
        put_all(&mut log, 1..2);
        assert_eq!(log.starts.len(), 2);
        let name = file_name(log.current_start());
        assert_eq!(disk.content(&name).unwrap().len(), 1_600);
        put_all(&mut log, 2..60);
        assert!(log.starts.len() > 2 && log.ready == 1_600, "the next one was made ahead, too");
        assert_eq!(records(&disk), (0..60).collect::<Vec<u8>>());
        let report = check_log(&disk, Some(7)).unwrap();
        assert_eq!((report.records, report.torn), (60, None), "zeros are no unfinished write");
        log.close().unwrap();
        let name = file_name(log.current_start());
        assert_eq!(disk.content(&name).unwrap().len() as u64, log.length);
    }

    #[test]
    fn a_file_of_the_log_is_used_again_when_it_is_not_needed_any_more() {
        let disk = SimulatedDisk::new();
        let (mut log, _) = open(&disk);
        let spare = log.spare.take().unwrap();
        put_all(&mut log, 0..30);
        let newest = put(&mut log, 30);
        let trimmed = log.trim(newest);
        assert_eq!(trimmed.len(), 1);
        assert!(spare.recycle(&trimmed[0]).unwrap());
        log.use_spare(spare);
        let numbers = |first: u8, last: u8| (first..=last).collect::<Vec<u8>>();
        let first = records(&disk)[0];
        put_all(&mut log, 31..90);
        assert_eq!(records(&disk), numbers(first, 89));
    }

    #[test]
    fn a_file_that_was_cut_is_left_when_that_is_durable() {
        for seed in 0..40 {
            let disk = SimulatedDisk::new();
            let (mut log, _) = open(&disk);
            put(&mut log, 0);
            // No room for the next record, of which a part is written; nor for a new file, so that the spare one is used.
            disk.set_faults(Faults { capacity_bytes: Some(disk.used_bytes() + 30), ..Faults::default() });
            let spare = log.spare.take().unwrap();
            assert!(matches!(log.append(&[1; 90]), Err(StoreError::DiskFull { .. })));
            disk.set_faults(Faults::default());
            log.use_spare(spare);
            put(&mut log, 2);
            assert_eq!(log.starts.len(), 2);
            let crashed = disk.crash(seed);
            open(&crashed);
            assert_eq!(records(&crashed), [0, 2], "seed {seed}");
        }
    }

    /// Whatever a crash leaves of files that are made, named and used again: a start finds what was flushed, in one row.
    #[test]
    fn a_crash_at_any_operation_leaves_a_log() {
        for crash_at in 1..260 {
            for seed in 0..6 {
                let disk = SimulatedDisk::new();
                let (mut log, _) = open(&disk);
                disk.set_faults(Faults { crash_at_operation: Some(crash_at), ..Faults::default() });
                let spare = log.spare.clone().unwrap();
                let (mut flushed, mut trimmed) = (0, 0);
                for number in 0..100 {
                    let Ok(position) = log.append(&[number; 50]) else { break };
                    if log.barrier().is_err() {
                        break;
                    }
                    flushed = number + 1;
                    if number % 9 == 8 {
                        // From here on they may be gone.
                        trimmed = number;
                        for name in log.trim(position) {
                            if !matches!(spare.recycle(&name), Ok(true)) && disk.remove(&name).is_err() {
                                break;
                            }
                        }
                    }
                }
                let crashed = disk.crash(seed * 1_000 + crash_at);
                let (_, report) = open(&crashed);
                let found = records(&crashed);
                let context = format!("operation {crash_at}, seed {seed}: {report:?}");
                let first = found.first().copied().unwrap_or(0);
                assert!(first <= trimmed && found.len() >= usize::from(flushed - first), "{context}");
                assert!(found.iter().enumerate().all(|(place, number)| *number == first + place as u8), "{context}");
            }
        }
    }
}
