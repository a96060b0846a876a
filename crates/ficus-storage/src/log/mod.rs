//! The commit log: write-ahead log, replication stream and change feed in one.
//!
//! The trait fits a file on this machine and a replicated log alike. There is no compare-and-append: whether a record
//! commits is decided when it is applied. Positions are ordered, not dense. An append whose answer is lost is *unknown*,
//! not failed; so records carry their writer and a sequence number, and applying drops duplicates.

mod file_log;
mod record_codec;
mod segment;
mod spare;

pub(crate) use file_log::{FileLog, FoundLog, check_log, file_name, list_starts, read_log};
pub(crate) use record_codec::{
    RECORD_HEADER_BYTES, attached_files, decode_record, encode_body, encode_record, record_time_ms, set_record_header,
};
pub(crate) use segment::{LogFile, SEGMENT_HEADER_BYTES, may_go_on, read_segment_header, segment_header, whole_frames};
pub(crate) use spare::{SPARE_NAME, Spare};

use crate::StoreError;

/// A place in the commit log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LogPosition(pub(crate) u64);

/// Handed a record and its position by [`FoundLog::read_from`].
pub(crate) type RecordVisitor<'a> = &'a mut dyn FnMut(LogPosition, &[u8]) -> Result<(), StoreError>;

/// The commit log.
pub(crate) trait Log: Send {
    /// Adds records at the end, with one call of the operating system: as many as fit, at least the first. They are durable after the next
    /// [`Log::barrier`]. Tells the positions of those that were added.
    ///
    /// Errors: `DiskFull` or `TooManyFiles` if none was added and the log is as it was; anything else leaves it unknown which were added, and
    /// the caller must stop appending.
    fn append_group(&mut self, records: &[&[u8]]) -> Result<Vec<LogPosition>, StoreError>;

    /// [`Log::append_group`] with one record.
    fn append(&mut self, record: &[u8]) -> Result<LogPosition, StoreError> {
        let positions = self.append_group(&[record])?;
        Ok(*positions.first().expect("a record that was added has a position"))
    }

    /// Makes all that was appended durable. After an error nothing is known about what was appended since the last
    /// barrier, and the caller must stop appending.
    fn barrier(&mut self) -> Result<(), StoreError>;

    /// Bytes that were taken from the disk already, for records to come.
    fn ready_bytes(&self) -> u64;

    /// The position that the next record gets, at least.
    fn tail(&self) -> LogPosition;

    /// Forgets records before `position`, as far as convenient. The caller has a verified checkpoint of them. Returns the files that had them,
    /// oldest first, for the caller to remove in this order when nobody waits.
    fn trim(&mut self, position: LogPosition) -> Vec<String>;

    /// Gives back what was made ready for records to come, since there are none.
    fn close(&mut self) -> Result<(), StoreError>;
}
