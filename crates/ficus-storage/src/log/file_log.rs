//! The commit log as numbered files in the data directory.
//!
//! The name of a file is the position where it starts: `log-0000000000000000.ficus`. A file that is full is flushed before
//! the next one is begun, so only the newest can have a torn tail.

use std::sync::Arc;

use super::segment::{FRAME_BYTES, LogFile, SEGMENT_HEADER_BYTES, put_frame, read_segment_header, segment_header};
use super::{Log, LogPosition, RecordVisitor};
use crate::StoreError;
use crate::environment::{Disk, DiskFile};

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
    Ok(inspect_log(disk, store)?.0)
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

/// The report, the store that the log belongs to, and whether the last file is one whose making was cut short.
fn inspect_log(disk: &dyn Disk, store: Option<u64>) -> Result<(LogReport, Option<u64>, bool), StoreError> {
    let starts = list_starts(disk)?;
    let mut report = LogReport { files: starts.len() as u64, ..LogReport::default() };
    let mut store = store;
    let mut expected_start = None;
    for (position, &start) in starts.iter().enumerate() {
        let is_last = position + 1 == starts.len();
        let segment = LogFile::open(disk, start)?;
        let corrupt = |offset, what: String| StoreError::corrupt(segment.name.clone(), offset, what);
        match read_segment_header(&segment.bytes) {
            Ok((found_store, found_start)) => {
                if *store.get_or_insert(found_store) != found_store {
                    return Err(corrupt(16, "it belongs to another store".to_string()));
                }
                if found_start != start {
                    return Err(corrupt(24, "its name does not agree with its content; was it renamed?".to_string()));
                }
            }
            // The header is flushed before the first record is written.
            Err(what) if is_last && segment.proof_of_damage(0).is_none() => {
                report.torn = Some((segment.bytes.len() as u64, what));
                report.tail = LogPosition(start);
                return Ok((report, store, true));
            }
            Err(what) => return Err(corrupt(0, what.to_string())),
        }
        if expected_start.is_some_and(|expected| expected != start) {
            let what = "the file before it ends elsewhere; a log file is missing or was cut".to_string();
            return Err(corrupt(0, what));
        }
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
            report.torn = Some((segment.bytes.len() as u64 - end, what));
        }
        expected_start = Some(start + end);
        report.tail = LogPosition(start + end);
    }
    Ok((report, store, false))
}

impl FileLog {
    /// Opens the log in a directory, cutting a torn tail, or begins one. `store` is the number of the store, if it is
    /// known from a checkpoint; `new_store` is used for a new one.
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        store: Option<u64>,
        new_store: u64,
        segment_bytes: u64,
    ) -> Result<(FileLog, LogReport), StoreError> {
        let (report, found_store, unfinished) = inspect_log(disk.as_ref(), store)?;
        let mut starts = list_starts(disk.as_ref())?;
        let tail = report.tail.0;
        if unfinished {
            let name = file_name(tail);
            disk.remove(&name).map_err(|error| StoreError::io(format!("removing the unfinished {name}"), error))?;
            starts.pop();
        }
        let store = found_store.unwrap_or(new_store);
        let Some(&last) = starts.last() else {
            let file = create_segment(disk.as_ref(), store, tail)?;
            let durable = tail + SEGMENT_HEADER_BYTES;
            let starts = vec![tail];
            let log = FileLog {
                disk,
                store,
                segment_bytes,
                starts,
                file,
                length: SEGMENT_HEADER_BYTES,
                durable,
                buffer: Vec::new(),
            };
            return Ok((log, report));
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
        let log = FileLog { disk, store, segment_bytes, starts, file, length, durable: tail, buffer: Vec::new() };
        Ok((log, report))
    }

    /// The number of the store that the log belongs to.
    pub(crate) fn store(&self) -> u64 {
        self.store
    }

    /// The position where the oldest file starts.
    pub(crate) fn start(&self) -> LogPosition {
        LogPosition(self.starts[0])
    }

    fn current_start(&self) -> u64 {
        self.starts[self.starts.len() - 1]
    }

    fn begin_segment(&mut self) -> Result<(), StoreError> {
        self.barrier()?;
        let start = self.current_start() + self.length;
        self.file = create_segment(self.disk.as_ref(), self.store, start)?;
        self.starts.push(start);
        self.length = SEGMENT_HEADER_BYTES;
        self.durable = start + self.length;
        Ok(())
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
    make().map_err(|error| {
        // The error below matters more than whether this works; an unfinished file is removed at the next start.
        let _ = disk.remove(&name);
        StoreError::io(format!("creating {name}"), error)
    })
}

impl Log for FileLog {
    fn append_group(&mut self, records: &[&[u8]]) -> Result<Vec<LogPosition>, StoreError> {
        if self.length >= self.segment_bytes {
            self.begin_segment()?;
        }
        self.buffer.clear();
        let start = self.current_start() + self.length;
        let mut positions = Vec::with_capacity(records.len());
        for record in records {
            let position = start + self.buffer.len() as u64;
            put_frame(record, position, self.durable, &mut self.buffer);
            positions.push(LogPosition(position));
            if self.length + self.buffer.len() as u64 >= self.segment_bytes {
                break;
            }
        }
        if let Err(error) = self.file.write_all_at(&self.buffer, self.length) {
            let action = format!("writing {}", file_name(self.current_start()));
            let error = StoreError::io(action.clone(), error);
            // Part of the records may be there; without them the log is as before.
            return Err(match (self.file.set_length(self.length), error) {
                (Ok(()), full @ StoreError::DiskFull { .. }) => full,
                (Err(cut), StoreError::DiskFull { .. }) => StoreError::io(format!("{action} back"), cut),
                (_, error) => error,
            });
        }
        self.length += self.buffer.len() as u64;
        // One huge record should not hold memory for ever.
        self.buffer.shrink_to(1 << 20);
        Ok(positions)
    }

    fn barrier(&mut self) -> Result<(), StoreError> {
        let tail = self.current_start() + self.length;
        if self.durable == tail {
            return Ok(());
        }
        let flush = |error| match StoreError::io(format!("flushing {}", file_name(self.current_start())), error) {
            // What a failed flush wrote is unknown, whatever the reason.
            StoreError::DiskFull { action } => {
                StoreError::Io { action, source: Arc::new(std::io::ErrorKind::StorageFull.into()) }
            }
            error => error,
        };
        self.file.sync().map_err(flush)?;
        self.durable = tail;
        Ok(())
    }

    fn read_from(&self, position: LogPosition, visit: RecordVisitor<'_>) -> Result<(), StoreError> {
        match visit_segments(self.disk.as_ref(), &self.starts, position, visit)? {
            None => Ok(()),
            Some((name, offset, what)) => Err(StoreError::corrupt(name, offset, what)),
        }
    }

    fn tail(&self) -> LogPosition {
        LogPosition(self.current_start() + self.length)
    }

    fn trim(&mut self, position: LogPosition) -> Result<(), StoreError> {
        while self.starts.len() > 1 && self.starts[1] <= position.0 {
            let name = file_name(self.starts[0]);
            self.disk.remove(&name).map_err(|error| StoreError::io(format!("removing {name}"), error))?;
            self.starts.remove(0);
        }
        Ok(())
    }
}
