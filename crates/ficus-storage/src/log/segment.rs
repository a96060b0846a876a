//! One file of the log: a header and records.
//!
//! ```text
//! header   "FICUSLOG" | version u32 | crc u32 | store u64 | start u64                      32 bytes
//! record   length u32 | crc u32 | position u64 | durable u64 | payload                     24 + length bytes
//! ```
//! All numbers are little-endian. The position of a record is the segment's start plus its offset in the file, and is
//! stored, so that old bytes in a wrong place are never taken for a record. `durable` is the position up to which the log
//! was known to be flushed when the record was written. That tells a torn tail from damage: behind a record that was torn
//! by a crash there may be whole ones (disks reorder), but none that knows the torn one to be durable.

use crate::StoreError;
use crate::environment::{Disk, DiskFile};
use crate::log::{LogPosition, file_name};

/// Bytes before the first record of a file.
pub(crate) const SEGMENT_HEADER_BYTES: u64 = 32;
pub(super) const FRAME_BYTES: usize = 24;

const MAGIC: &[u8; 8] = b"FICUSLOG";
const VERSION: u32 = 1;

/// The first bytes of a segment.
pub(crate) fn segment_header(store: u64, start: u64) -> [u8; SEGMENT_HEADER_BYTES as usize] {
    let mut header = [0; SEGMENT_HEADER_BYTES as usize];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[16..24].copy_from_slice(&store.to_le_bytes());
    header[24..].copy_from_slice(&start.to_le_bytes());
    let crc = header_crc(&header);
    header[12..16].copy_from_slice(&crc.to_le_bytes());
    header
}

fn header_crc(header: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&header[..12]), &header[16..])
}

/// Store and start of a segment whose first bytes are `header`, or what is wrong with them.
pub(crate) fn read_segment_header(header: &[u8]) -> Result<(u64, u64), &'static str> {
    if header.len() < SEGMENT_HEADER_BYTES as usize {
        return Err("the file is shorter than a header");
    }
    if &header[..8] != MAGIC {
        return Err("it does not begin like a log file");
    }
    if number_u32(header, 8) != VERSION {
        return Err("it is of another format version; use the release that wrote it");
    }
    if number_u32(header, 12) != header_crc(&header[..SEGMENT_HEADER_BYTES as usize]) {
        return Err("the checksum of the header is wrong");
    }
    Ok((number_u64(header, 16), number_u64(header, 24)))
}

/// Appends a record with its frame to `out`.
pub(super) fn put_frame(payload: &[u8], position: u64, durable: u64, out: &mut Vec<u8>) {
    let start = out.len();
    let length = u32::try_from(payload.len()).expect("records are below 1 GiB");
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&position.to_le_bytes());
    out.extend_from_slice(&durable.to_le_bytes());
    out.extend_from_slice(payload);
    let crc = frame_crc(&out[start..]);
    out[start + 4..start + 8].copy_from_slice(&crc.to_le_bytes());
}

fn frame_crc(frame: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&frame[..4]), &frame[8..])
}

fn number_u32(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("four bytes"))
}

fn number_u64(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(bytes[offset..offset + 8].try_into().expect("eight bytes"))
}

/// What is wrong with a record of which only the beginning was looked at.
const CUT_HEADER: &str = "the file ends inside a record's header";
const CUT_RECORD: &str = "the file ends inside a record";

/// True if more bytes of the file may have more records than [`whole_frames`] found in some, which ended with this.
pub(crate) fn may_go_on(wrong: Option<&str>) -> bool {
    matches!(wrong, None | Some(CUT_HEADER | CUT_RECORD))
}

/// A whole record in a segment.
pub(super) struct Frame<'a> {
    pub(super) position: LogPosition,
    /// Position up to which the log was flushed when this was written.
    pub(super) durable: u64,
    pub(super) payload: &'a [u8],
}

/// The record at `offset` of a segment, or what is wrong there.
fn frame_at(bytes: &[u8], start: u64, offset: usize) -> Result<Frame<'_>, &'static str> {
    let rest = &bytes[offset..];
    if rest.len() < FRAME_BYTES {
        return Err(CUT_HEADER);
    }
    let position = start + offset as u64;
    if number_u64(rest, 8) != position {
        return Err("there is no record");
    }
    let end = FRAME_BYTES + number_u32(rest, 0) as usize;
    if rest.len() < end {
        return Err(CUT_RECORD);
    }
    if number_u32(rest, 4) != frame_crc(&rest[..end]) {
        return Err("the checksum of a record is wrong");
    }
    let payload = &rest[FRAME_BYTES..end];
    Ok(Frame { position: LogPosition(position), durable: number_u64(rest, 16), payload })
}

/// Hands position and payload of the whole records in `bytes`, which begin at log position `start`, to `visit`; returns where
/// they end, and what is wrong there unless it is the end.
pub(crate) fn whole_frames<'a>(
    bytes: &'a [u8],
    start: u64,
    mut visit: impl FnMut(LogPosition, &'a [u8]) -> Result<(), StoreError>,
) -> Result<(usize, Option<&'static str>), StoreError> {
    let mut offset = 0;
    while offset < bytes.len() {
        match frame_at(bytes, start, offset) {
            Ok(frame) => {
                offset += FRAME_BYTES + frame.payload.len();
                visit(frame.position, frame.payload)?;
            }
            Err(what) => return Ok((offset, Some(what))),
        }
    }
    Ok((offset, None))
}

/// A segment in memory.
pub(crate) struct LogFile {
    pub(crate) name: String,
    pub(super) start: u64,
    pub(crate) bytes: Vec<u8>,
}

impl LogFile {
    /// Reads a whole file. Its header is not looked at.
    pub(super) fn read(file: &dyn DiskFile, name: &str, start: u64) -> Result<LogFile, StoreError> {
        let io = |error| StoreError::io(format!("reading {name}"), error);
        let length = file.length().map_err(io)?;
        let mut bytes = vec![
            0;
            usize::try_from(length).map_err(|_| {
                StoreError::corrupt(name, 0, "the file is larger than this machine can address")
            })?
        ];
        file.read_exact_at(&mut bytes, 0).map_err(io)?;
        Ok(LogFile { name: name.to_string(), start, bytes })
    }

    /// Reads the file that starts at a position.
    pub(crate) fn open(disk: &dyn Disk, start: u64) -> Result<LogFile, StoreError> {
        let name = file_name(start);
        let file = disk.open(&name).map_err(|error| StoreError::io(format!("opening {name}"), error))?;
        LogFile::read(file.as_ref(), &name, start)
    }

    /// Hands position, payload and end of the whole records to `visit`; returns what [`LogFile::frames`] does.
    pub(crate) fn visit(
        &self,
        mut visit: impl FnMut(LogPosition, &[u8], u64) -> Result<(), StoreError>,
    ) -> Result<(u64, Option<&'static str>), StoreError> {
        self.frames(|frame| {
            let end = frame.position.0 + (FRAME_BYTES + frame.payload.len()) as u64;
            visit(frame.position, frame.payload, end)
        })
    }

    /// Hands over the whole records from the first on; returns where they end and, unless that is the end of the file,
    /// what is wrong there.
    pub(super) fn frames<'a>(
        &'a self,
        mut visit: impl FnMut(Frame<'a>) -> Result<(), StoreError>,
    ) -> Result<(u64, Option<&'static str>), StoreError> {
        let mut offset = SEGMENT_HEADER_BYTES as usize;
        while offset < self.bytes.len() {
            match frame_at(&self.bytes, self.start, offset) {
                Ok(frame) => {
                    offset += FRAME_BYTES + frame.payload.len();
                    visit(frame)?;
                }
                Err(what) => return Ok((offset as u64, Some(what))),
            }
        }
        Ok((offset as u64, None))
    }

    /// The offset of a whole record behind `offset` that was written when the log was known to be durable beyond `offset`:
    /// the proof that what is at `offset` was whole once.
    pub(crate) fn proof_of_damage(&self, offset: u64) -> Option<u64> {
        let broken = self.start + offset;
        let first = offset as usize + 1;
        (first..self.bytes.len().saturating_sub(FRAME_BYTES - 1))
            .filter(|candidate| number_u64(&self.bytes, candidate + 8) == self.start + *candidate as u64)
            .find(|candidate| frame_at(&self.bytes, self.start, *candidate).is_ok_and(|frame| frame.durable > broken))
            .map(|candidate| candidate as u64)
    }
}
