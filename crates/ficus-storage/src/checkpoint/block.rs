//! The frame of a checkpoint's header and blocks.

use crate::StoreError;
use crate::environment::DiskFile;
use crate::log::LogPosition;

pub(super) const HEADER_BYTES: u64 = 32;
pub(super) const BLOCK_FRAME_BYTES: usize = 8;

const MAGIC: &[u8; 8] = b"FICUSCKP";
/// Version 1 has no bases, version 2 no files of indexes: they are a version 3 without blocks of the kinds that came since.
const VERSION: u32 = 3;
const OLDEST_VERSION: u32 = 1;

/// Kinds of blocks. Numbers are never reused.
pub(super) mod kind {
    /// Counters and writers; the first block.
    pub(in crate::checkpoint) const STORE: u8 = 1;
    /// A part of the resolver's window.
    pub(in crate::checkpoint) const RESOLVER: u8 = 2;
    /// A graph: name, labels, keys, indexes. Its vertices and edges follow.
    pub(in crate::checkpoint) const GRAPH: u8 = 3;
    /// Rows of vertices of the last graph, of one tablet.
    pub(in crate::checkpoint) const VERTICES: u8 = 4;
    /// Rows of edges of the last graph, of one tablet.
    pub(in crate::checkpoint) const EDGES: u8 = 5;
    /// Types, indexes and tasks of the last graph; only if it has any.
    pub(in crate::checkpoint) const SCHEMA: u8 = 12;
    /// Facts that committed with writes to the last graph; only if there are any.
    pub(in crate::checkpoint) const FACTS: u8 = 13;
    /// Counts of what came before; the last block.
    pub(in crate::checkpoint) const END: u8 = 6;
    /// Names of the files of the last graph's base. What follows is its overlay.
    pub(in crate::checkpoint) const BASE: u8 = 7;
    /// Files of the last graph's indexes, behind its base: number of the index, name. Of an index without one the entries are made anew.
    pub(in crate::checkpoint) const INDEXES: u8 = 14;
    /// Edges of the base that are gone.
    pub(in crate::checkpoint) const REMOVED_EDGES: u8 = 8;
    /// Vertices of the base that are gone.
    pub(in crate::checkpoint) const REMOVED_VERTICES: u8 = 9;
    /// Properties of vertices of the base that have other ones now.
    pub(in crate::checkpoint) const CHANGED_VERTICES: u8 = 10;
    /// Properties of edges of the base that have other ones now.
    pub(in crate::checkpoint) const CHANGED_EDGES: u8 = 11;
}

/// The first bytes of the checkpoint of a store at a position.
pub(crate) fn checkpoint_header(store: u64, position: LogPosition) -> [u8; HEADER_BYTES as usize] {
    header(store, position.0)
}

pub(super) fn header(store: u64, position: u64) -> [u8; HEADER_BYTES as usize] {
    let mut header = [0; HEADER_BYTES as usize];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[16..24].copy_from_slice(&store.to_le_bytes());
    header[24..].copy_from_slice(&position.to_le_bytes());
    let crc = header_crc(&header);
    header[12..16].copy_from_slice(&crc.to_le_bytes());
    header
}

fn header_crc(header: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&header[..12]), &header[16..])
}

fn number_u64(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(bytes[offset..offset + 8].try_into().expect("eight bytes"))
}

fn number_u32(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("four bytes"))
}

/// Store and position in a header, or what is wrong with it.
pub(super) fn read_header(header: &[u8; HEADER_BYTES as usize]) -> Result<(u64, u64), &'static str> {
    if &header[..8] != MAGIC {
        return Err("it does not begin like a checkpoint");
    }
    if !(OLDEST_VERSION..=VERSION).contains(&number_u32(header, 8)) {
        return Err("it is of another format version; use the release that wrote it");
    }
    if number_u32(header, 12) != header_crc(header) {
        return Err("the checksum of the header is wrong");
    }
    Ok((number_u64(header, 16), number_u64(header, 24)))
}

/// Completes a block whose content, kind first, begins at `BLOCK_FRAME_BYTES`.
pub(super) fn finish_block(block: &mut [u8]) {
    let length = u32::try_from(block.len() - BLOCK_FRAME_BYTES).expect("blocks are below 4 GiB");
    block[..4].copy_from_slice(&length.to_le_bytes());
    let crc = block_crc(block);
    block[4..8].copy_from_slice(&crc.to_le_bytes());
}

fn block_crc(block: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&block[..4]), &block[BLOCK_FRAME_BYTES..])
}

/// Reads the blocks of a checkpoint one after the other.
pub(super) struct BlockReader<'a> {
    pub(super) name: &'a str,
    file: &'a dyn DiskFile,
    length: u64,
    pub(super) offset: u64,
    block: Vec<u8>,
}

impl<'a> BlockReader<'a> {
    /// Checks the header; returns store and position.
    pub(super) fn open(file: &'a dyn DiskFile, name: &'a str) -> Result<(BlockReader<'a>, u64, u64), StoreError> {
        let io = |error| StoreError::io(format!("reading {name}"), error);
        let length = file.length().map_err(io)?;
        let corrupt = |what: &str| StoreError::corrupt(name, 0, what);
        if length < HEADER_BYTES {
            return Err(corrupt("the file is shorter than a header"));
        }
        let mut bytes = [0; HEADER_BYTES as usize];
        file.read_exact_at(&mut bytes, 0).map_err(io)?;
        let (store, position) = read_header(&bytes).map_err(corrupt)?;
        Ok((BlockReader { name, file, length, offset: HEADER_BYTES, block: Vec::new() }, store, position))
    }

    /// The content of the next block, kind first; `None` at the end of the file.
    pub(super) fn next_block(&mut self) -> Result<Option<&[u8]>, StoreError> {
        if self.offset == self.length {
            return Ok(None);
        }
        let corrupt = |what: &str| StoreError::corrupt(self.name, self.offset, what);
        let io = |error| StoreError::io(format!("reading {}", self.name), error);
        let left = self.length - self.offset;
        if left < BLOCK_FRAME_BYTES as u64 {
            return Err(corrupt("the file ends inside the frame of a block"));
        }
        self.block.resize(BLOCK_FRAME_BYTES, 0);
        self.file.read_exact_at(&mut self.block, self.offset).map_err(io)?;
        let length = u64::from(number_u32(&self.block, 0));
        if length > left - BLOCK_FRAME_BYTES as u64 {
            return Err(corrupt("the file ends inside a block"));
        }
        self.block.resize(BLOCK_FRAME_BYTES + length as usize, 0);
        let content = &mut self.block[BLOCK_FRAME_BYTES..];
        self.file.read_exact_at(content, self.offset + BLOCK_FRAME_BYTES as u64).map_err(io)?;
        if number_u32(&self.block, 4) != block_crc(&self.block) {
            return Err(corrupt("the checksum of a block is wrong"));
        }
        if length == 0 {
            return Err(corrupt("a block is empty"));
        }
        self.offset += BLOCK_FRAME_BYTES as u64 + length;
        Ok(Some(&self.block[BLOCK_FRAME_BYTES..]))
    }
}
