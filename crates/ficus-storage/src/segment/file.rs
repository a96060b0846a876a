//! The frame of segment files: header, sections, directory.
//!
//! ```text
//! header      magic | version u32 | crc u32 | store u64 | graph u32 | tablet u32 | tablet bits u32 | entries u32
//!             | length u64 | slots u64 | zero u64                                                          64 bytes
//! sections    each begins at a multiple of 64; zeros between them
//! directory   entries, 64 bytes each, ascending by (owner, key, part); the last bytes of the file
//! ```
//! The checksum in the header covers header and directory, and the directory has the checksum of every section: so it
//! stands for the whole file. A file is built in memory section by section and read in place.

use std::ops::Range;
use std::sync::Arc;

use bytemuck::{AnyBitPattern, NoUninit};

use super::SegmentOrigin;
use crate::StoreError;
use crate::environment::Disk;
use crate::mapping::{Section, SegmentBytes};

/// Sections begin at multiples of a cache line.
const ALIGNMENT: usize = 64;
const HEADER_BYTES: usize = 64;
const ENTRY_BYTES: usize = 64;
const VERSION: u32 = 1;

/// Bytes handed to the disk at once: a multiple of the largest page that the system keeps of a file.
const WRITE_BYTES: usize = 4 << 20;

/// What a file is, as its first bytes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    /// The base of a tablet.
    Segment,
    /// A table of user ids.
    IdTable,
    /// The entries of a value index.
    Index,
}

impl FileKind {
    const ALL: [FileKind; 3] = [FileKind::Segment, FileKind::IdTable, FileKind::Index];

    fn magic(self) -> &'static [u8; 8] {
        match self {
            FileKind::Segment => b"FICUSSEG",
            FileKind::IdTable => b"FICUSIDS",
            FileKind::Index => b"FICUSIDX",
        }
    }
}

/// What the header says beside lengths and checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) origin: SegmentOrigin,
    pub(super) tablet: u32,
    pub(super) tablet_bits: u32,
    pub(super) slots: u64,
}

/// What a group of sections is about. Numbers are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u16)]
pub(super) enum Owner {
    /// Which slots have a vertex.
    Vertices = 1,
    /// Labels by slot.
    VertexLabels = 2,
    /// Slots of the label that the key is.
    SlotsOfLabel = 3,
    /// Property keys of vertices of the label that the key is.
    KeysOfLabel = 4,
    /// User ids of vertices.
    VertexIds = 5,
    /// Half-edges at their source.
    Out = 6,
    /// Half-edges at their target.
    In = 7,
    /// Which sequences the edges have, and the position of each.
    Sequences = 8,
    /// Number of edges of the label that the key is.
    EdgesOfLabel = 9,
    /// User ids of edges.
    EdgeIds = 10,
    /// First values under a key of vertices.
    VertexProperty = 11,
    /// Further properties of vertices, and meta-properties.
    VertexExtras = 12,
    /// Values under a key of edges.
    EdgeProperty = 13,
    /// Lists of keys of edges, and which edge has which.
    EdgeShapes = 14,
    /// Entries of a table of user ids.
    IdEntries = 15,
    /// Sort keys of the edge label that the key is.
    SortKeys = 16,
    /// Half-edges at their source by sort keys.
    SortedOut = 17,
    /// Half-edges at their target by sort keys.
    SortedIn = 18,
    /// Keys and elements of a value index.
    IndexEntries = 19,
}

/// Parts of a group. Numbers are never reused.
pub(super) mod part {
    pub(in crate::segment) const RANGE_STARTS: u8 = 1;
    pub(in crate::segment) const RANGE_RANKS: u8 = 2;
    pub(in crate::segment) const BITMAP: u8 = 3;
    pub(in crate::segment) const BITMAP_RANKS: u8 = 4;
    pub(in crate::segment) const NUMBERS: u8 = 5;
    pub(in crate::segment) const BYTES: u8 = 6;
    pub(in crate::segment) const DICTIONARY: u8 = 7;
    pub(in crate::segment) const RUN_STARTS: u8 = 8;
    pub(in crate::segment) const RUN_VALUES: u8 = 9;
    pub(in crate::segment) const RUN_STRIDES: u8 = 10;
    pub(in crate::segment) const PROPERTY_IDS: u8 = 11;
    pub(in crate::segment) const OFFSETS: u8 = 12;
    pub(in crate::segment) const NEIGHBOURS: u8 = 13;
    pub(in crate::segment) const SEQUENCES: u8 = 14;
    pub(in crate::segment) const LABELS: u8 = 15;
    pub(in crate::segment) const POSITIONS: u8 = 16;
    pub(in crate::segment) const TAGS: u8 = 17;
}

/// The name of a section in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SectionName {
    pub(super) owner: Owner,
    pub(super) key: u32,
    pub(super) part: u8,
}

impl Owner {
    /// A part of what exists once in a file.
    pub(super) fn part(self, part: u8) -> SectionName {
        self.key_part(0, part)
    }

    /// A part of what exists once for each label or key.
    pub(super) fn key_part(self, key: u32, part: u8) -> SectionName {
        SectionName { owner: self, key, part }
    }

    fn from_number(number: u16) -> Option<Owner> {
        use Owner::*;
        [
            Vertices,
            VertexLabels,
            SlotsOfLabel,
            KeysOfLabel,
            VertexIds,
            Out,
            In,
            Sequences,
            EdgesOfLabel,
            EdgeIds,
            VertexProperty,
            VertexExtras,
            EdgeProperty,
            EdgeShapes,
            IdEntries,
            SortKeys,
            SortedOut,
            SortedIn,
            IndexEntries,
        ]
        .into_iter()
        .find(|owner| *owner as u16 == number)
    }
}

/// How the content of a section is to be read. What the fields mean is up to the kind of column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Encoding {
    /// Bits of an entry; 0 for none.
    pub(super) width: u8,
    /// The kind of values, or flags.
    pub(super) tag: u32,
    /// Number of entries.
    pub(super) count: u64,
    /// What is added to every entry.
    pub(super) first: u64,
    /// What is added per index.
    pub(super) stride: u64,
}

/// A line of the directory.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: SectionName,
    pub(super) encoding: Encoding,
    range: Range<usize>,
    crc: u32,
}

impl Entry {
    fn put(&self, out: &mut [u8]) {
        let mut at = 0;
        let mut field = |bytes: &[u8]| {
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        field(&(self.name.owner as u16).to_le_bytes());
        field(&[self.name.part, self.encoding.width]);
        field(&self.name.key.to_le_bytes());
        field(&self.encoding.count.to_le_bytes());
        field(&self.encoding.first.to_le_bytes());
        field(&self.encoding.stride.to_le_bytes());
        field(&(self.range.start as u64).to_le_bytes());
        field(&(self.range.len() as u64).to_le_bytes());
        field(&self.crc.to_le_bytes());
        field(&self.encoding.tag.to_le_bytes());
    }

    fn read(bytes: &[u8], limit: usize) -> Result<Entry, &'static str> {
        let owner = u16::from_le_bytes([bytes[0], bytes[1]]);
        let owner = Owner::from_number(owner).ok_or("the directory names an unknown section")?;
        let name = SectionName { owner, part: bytes[2], key: number_u32(bytes, 4) };
        let encoding = Encoding {
            width: bytes[3],
            tag: number_u32(bytes, 52),
            count: number_u64(bytes, 8),
            first: number_u64(bytes, 16),
            stride: number_u64(bytes, 24),
        };
        let place = |number: u64| usize::try_from(number).ok();
        let start = place(number_u64(bytes, 32)).filter(|start| start % ALIGNMENT == 0 && *start >= HEADER_BYTES);
        let start = start.ok_or("a section begins at a place where none can")?;
        let end = place(number_u64(bytes, 40)).and_then(|length| start.checked_add(length));
        let end = end.filter(|end| *end <= limit).ok_or("a section ends behind the end of the file")?;
        Ok(Entry { name, encoding, range: start..end, crc: number_u32(bytes, 48) })
    }
}

fn number_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn number_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Builds a file in memory.
#[derive(Debug)]
pub(super) struct FileBuilder {
    words: Vec<u64>,
    entries: Vec<Entry>,
}

impl FileBuilder {
    pub(super) fn new() -> FileBuilder {
        FileBuilder { words: vec![0; HEADER_BYTES / 8], entries: Vec::new() }
    }

    /// Appends a section of `length` entries, which `fill` sets; they are zero before.
    pub(super) fn put<T: AnyBitPattern + NoUninit>(
        &mut self,
        name: SectionName,
        encoding: Encoding,
        length: usize,
        fill: impl FnOnce(&mut [T]),
    ) {
        let bytes = length * size_of::<T>();
        let start = (self.words.len() * 8).next_multiple_of(ALIGNMENT);
        self.words.resize((start + bytes).div_ceil(8), 0);
        let section = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut self.words)[start..start + bytes];
        fill(bytemuck::cast_slice_mut(section));
        let crc = crc32c::crc32c(section);
        self.entries.push(Entry { name, encoding, range: start..start + bytes, crc });
    }

    /// Appends a section of bytes.
    pub(super) fn put_bytes(&mut self, name: SectionName, bytes: &[u8]) {
        let encoding = Encoding { width: 8, count: bytes.len() as u64, ..Encoding::default() };
        self.put(name, encoding, bytes.len(), |section: &mut [u8]| section.copy_from_slice(bytes));
    }

    /// Writes directory and header.
    pub(super) fn finish(mut self, kind: FileKind, header: Header) -> SegmentImage {
        self.entries.sort_unstable_by_key(|entry| entry.name);
        let start = (self.words.len() * 8).next_multiple_of(ALIGNMENT);
        let length = start + self.entries.len() * ENTRY_BYTES;
        self.words.resize(length / 8, 0);
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.words);
        for (entry, out) in self.entries.iter().zip(bytes[start..].chunks_exact_mut(ENTRY_BYTES)) {
            entry.put(out);
        }
        bytes[..8].copy_from_slice(kind.magic());
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..24].copy_from_slice(&header.origin.store.to_le_bytes());
        bytes[24..28].copy_from_slice(&header.origin.graph.to_le_bytes());
        bytes[28..32].copy_from_slice(&header.tablet.to_le_bytes());
        bytes[32..36].copy_from_slice(&header.tablet_bits.to_le_bytes());
        bytes[36..40].copy_from_slice(&(self.entries.len() as u32).to_le_bytes());
        bytes[40..48].copy_from_slice(&(length as u64).to_le_bytes());
        bytes[48..56].copy_from_slice(&header.slots.to_le_bytes());
        let checksum = checksum(bytes, start);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        SegmentImage { words: self.words, checksum }
    }
}

/// Of all bytes of header and directory but the checksum itself.
fn checksum(bytes: &[u8], directory: usize) -> u32 {
    let mut crc = crc32c::crc32c(&bytes[..12]);
    crc = crc32c::crc32c_append(crc, &bytes[16..HEADER_BYTES]);
    crc32c::crc32c_append(crc, &bytes[directory..])
}

/// The bytes of a file that is not written yet.
#[derive(Debug)]
pub(crate) struct SegmentImage {
    words: Vec<u64>,
    checksum: u32,
}

impl SegmentImage {
    /// The checksum in the header, which stands for the whole file.
    pub(crate) fn checksum(&self) -> u32 {
        self.checksum
    }

    /// Length of the file.
    pub(crate) fn length(&self) -> usize {
        self.words.len() * 8
    }

    /// Creates a file with these bytes and makes its content durable; its name is durable once the directory is synced.
    pub(crate) fn write(&self, disk: &dyn Disk, name: &str) -> Result<(), StoreError> {
        let io = |error| StoreError::io(format!("writing {name}"), error);
        let file = disk.create(name).map_err(io)?;
        let bytes: &[u8] = bytemuck::cast_slice(&self.words);
        for (number, chunk) in bytes.chunks(WRITE_BYTES).enumerate() {
            file.write_all_at(chunk, (number * WRITE_BYTES) as u64).map_err(io)?;
        }
        file.sync().map_err(io)
    }

    /// The bytes in memory, to be opened.
    pub(crate) fn into_bytes(mut self) -> Arc<SegmentBytes> {
        self.words.shrink_to_fit();
        let length = self.length();
        Arc::new(SegmentBytes::from_words(self.words, length))
    }
}

/// Bytes before the first section.
pub(crate) const SEGMENT_FILE_HEADER_BYTES: usize = HEADER_BYTES;

/// Checks header, directory and every checksum of a file of a base, whatever it is about.
pub(crate) fn verify_file(bytes: Arc<SegmentBytes>, name: &str) -> Result<(), StoreError> {
    let is_of = |kind: &FileKind| bytes.bytes().starts_with(kind.magic());
    let kind = FileKind::ALL.into_iter().find(is_of);
    let kind = kind.ok_or_else(|| StoreError::corrupt(name, 0, "it does not begin like a file of a base"))?;
    SegmentFile::open(bytes, name, kind)?.verify()
}

/// The header of a file that [`verify_file`] accepts, as the file of another store.
pub(crate) fn renumbered_header(bytes: &[u8], store: u64) -> [u8; HEADER_BYTES] {
    let mut header: [u8; HEADER_BYTES] = bytes[..HEADER_BYTES].try_into().expect("a header has its length");
    header[16..24].copy_from_slice(&store.to_le_bytes());
    let directory = bytes.len() - number_u32(&header, 36) as usize * ENTRY_BYTES;
    let mut crc = crc32c::crc32c(&header[..12]);
    crc = crc32c::crc32c_append(crc, &header[16..]);
    crc = crc32c::crc32c_append(crc, &bytes[directory..]);
    header[12..16].copy_from_slice(&crc.to_le_bytes());
    header
}

/// A file whose header and directory were read and checked.
#[derive(Clone, Debug)]
pub(super) struct SegmentFile {
    pub(super) bytes: Arc<SegmentBytes>,
    pub(super) name: Arc<str>,
    pub(super) header: Header,
    pub(super) checksum: u32,
    /// Ascending by name.
    entries: Vec<Entry>,
}

impl SegmentFile {
    pub(super) fn open(bytes: Arc<SegmentBytes>, name: &str, kind: FileKind) -> Result<SegmentFile, StoreError> {
        let corrupt = |what: &str| StoreError::corrupt(name, 0, what);
        let content = bytes.bytes();
        if content.len() < HEADER_BYTES {
            return Err(corrupt("the file is shorter than a header"));
        }
        if &content[..8] != kind.magic() {
            return Err(corrupt("it does not begin like a segment of this kind"));
        }
        if number_u32(content, 8) != VERSION {
            return Err(corrupt("it is of another format version; use the release that wrote it"));
        }
        if number_u64(content, 40) != content.len() as u64 {
            return Err(corrupt("it is shorter or longer than its header says"));
        }
        let directory = (number_u32(content, 36) as usize)
            .checked_mul(ENTRY_BYTES)
            .and_then(|length| content.len().checked_sub(length))
            .filter(|start| *start >= HEADER_BYTES && start % ALIGNMENT == 0)
            .ok_or_else(|| corrupt("the directory is longer than the file"))?;
        let found = number_u32(content, 12);
        if found != checksum(content, directory) {
            return Err(corrupt("the checksum of header and directory is wrong"));
        }
        let mut entries: Vec<Entry> = Vec::with_capacity((content.len() - directory) / ENTRY_BYTES);
        for (index, line) in content[directory..].chunks_exact(ENTRY_BYTES).enumerate() {
            let corrupt = |what| StoreError::corrupt(name, (directory + index * ENTRY_BYTES) as u64, what);
            let entry = Entry::read(line, directory).map_err(corrupt)?;
            if entries.last().is_some_and(|last| last.name >= entry.name) {
                return Err(corrupt("the directory is out of order"));
            }
            entries.push(entry);
        }
        let header = Header {
            origin: SegmentOrigin { store: number_u64(content, 16), graph: number_u32(content, 24) },
            tablet: number_u32(content, 28),
            tablet_bits: number_u32(content, 32),
            slots: number_u64(content, 48),
        };
        Ok(SegmentFile { name: name.into(), header, checksum: found, entries, bytes })
    }

    /// The line of a section, if the file has it.
    pub(super) fn find(&self, name: SectionName) -> Option<&Entry> {
        let index = self.entries.binary_search_by_key(&name, |entry| entry.name).ok()?;
        Some(&self.entries[index])
    }

    /// The line of a section that the file must have.
    pub(super) fn entry(&self, name: SectionName) -> Result<&Entry, StoreError> {
        self.find(name).ok_or_else(|| {
            let SectionName { owner, key, part } = name;
            StoreError::corrupt(&*self.name, 0, format!("the section {owner:?} {key}.{part} is missing"))
        })
    }

    /// Keys for which an owner has a section, ascending.
    pub(super) fn keys_of(&self, owner: Owner, part: u8) -> impl Iterator<Item = u32> {
        let named = self.entries.iter().map(|entry| entry.name);
        named.filter(move |name| name.owner == owner && name.part == part).map(|name| name.key)
    }

    /// The content of a section that has to have `length` entries.
    pub(super) fn section<T: AnyBitPattern>(&self, entry: &Entry, length: u64) -> Result<Section<T>, StoreError> {
        Section::new(&self.bytes, entry.range.clone())
            .filter(|section: &Section<T>| section.len() as u64 == length)
            .ok_or_else(|| self.corrupt(entry, "a section has another length than its entries need"))
    }

    /// Bytes on the heap; mapped bytes are not among them.
    pub(super) fn heap_bytes(&self) -> usize {
        self.bytes.heap_bytes() + self.entries.capacity() * size_of::<Entry>()
    }

    /// Names a section whose content or description is wrong.
    pub(super) fn corrupt(&self, entry: &Entry, what: impl Into<String>) -> StoreError {
        StoreError::corrupt(&*self.name, entry.range.start as u64, what)
    }

    /// Reads everything: checksums, and zeros in between.
    pub(super) fn verify(&self) -> Result<(), StoreError> {
        let content = self.bytes.bytes();
        let mut by_place: Vec<&Entry> = self.entries.iter().collect();
        by_place.sort_unstable_by_key(|entry| (entry.range.start, entry.range.end));
        let directory = content.len() - self.entries.len() * ENTRY_BYTES;
        let mut end = HEADER_BYTES;
        for entry in by_place {
            if entry.range.start < end {
                return Err(self.corrupt(entry, "two sections overlap"));
            }
            self.verify_zeros(end..entry.range.start)?;
            if crc32c::crc32c(&content[entry.range.clone()]) != entry.crc {
                return Err(self.corrupt(entry, "the checksum of a section is wrong"));
            }
            end = entry.range.end;
        }
        self.verify_zeros(end..directory)
    }

    fn verify_zeros(&self, range: Range<usize>) -> Result<(), StoreError> {
        match self.bytes.bytes()[range.clone()].iter().position(|byte| *byte != 0) {
            None => Ok(()),
            Some(at) => {
                let what = "there are bytes between two sections";
                Err(StoreError::corrupt(&*self.name, (range.start + at) as u64, what))
            }
        }
    }
}
