//! Bytes of a segment, and slices of numbers in them: mapped from a file, or copied into memory.
//!
//! The only module with unsafe code, for three reasons. A graph may be larger than memory and a restart must not read it all,
//! so segments are mapped; and a map is unsafe because another process could change the file. And a read of a column must
//! cost a load, so a [`Section`] keeps the address of its numbers beside the owner that keeps them in place, which
//! borrowing cannot express. And to begin a load before it is needed is an order to the processor. Everything that leaves is safe.
//!
//! Who upholds what a map needs: files of segments are written and synced before they are mapped, and never changed
//! afterwards; removing a file keeps its maps intact; the data directory is locked against other processes of ours. A
//! foreign process that cuts such a file makes reads of it end the process, as damage to memory would.
#![allow(unsafe_code)]

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::AnyBitPattern;
use memmap2::Mmap;

// Sections are read in place, and the format is little-endian.
const _: () = assert!(cfg!(target_endian = "little"));

/// The bytes of a segment; they begin at an address that 8 divides, and never move or change.
pub struct SegmentBytes {
    content: Content,
}

enum Content {
    Mapped { map: Mmap, _counted: CountedMap },
    Memory { words: Vec<u64>, length: usize },
}

/// How much of the files of a data directory is mapped.
#[derive(Debug)]
pub struct MappedFiles {
    bytes: AtomicU64,
    memory_bytes: u64,
}

impl MappedFiles {
    /// None so far, on a machine with so much memory.
    pub fn new(memory_bytes: u64) -> Arc<MappedFiles> {
        Arc::new(MappedFiles { bytes: AtomicU64::new(0), memory_bytes })
    }

    /// Whether half of the memory holds all that is mapped; the other half is for what queries and changes need.
    fn fit_in_memory(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) <= self.memory_bytes / 2
    }
}

/// Counts a map as long as it exists.
struct CountedMap {
    among: Arc<MappedFiles>,
    bytes: u64,
}

impl CountedMap {
    fn new(among: &Arc<MappedFiles>, bytes: u64) -> CountedMap {
        among.bytes.fetch_add(bytes, Ordering::Relaxed);
        CountedMap { among: among.clone(), bytes }
    }
}

impl Drop for CountedMap {
    fn drop(&mut self) {
        self.among.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl SegmentBytes {
    /// Maps a whole file, which nobody may change or cut from now on; see the module's documentation. What it is among is the maps it is counted with.
    pub fn map(file: &File, among: &Arc<MappedFiles>) -> io::Result<SegmentBytes> {
        let length = file.metadata()?.len();
        if length == 0 {
            // Not every system maps nothing.
            return Ok(SegmentBytes::copy(&[]));
        }
        // SAFETY: files of segments are never changed after they were written (see above).
        let map = unsafe { Mmap::map(file)? };
        let counted = CountedMap::new(among, length);
        // A wish: with small pages, finding the page of a vertex costs as much as reading it. Not where memory cannot hold all
        // files: what is read at a random place would push out as much as a large page holds.
        #[cfg(target_os = "linux")]
        if among.fit_in_memory() {
            let _ = map.advise(memmap2::Advice::HugePage);
        }
        Ok(SegmentBytes { content: Content::Mapped { map, _counted: counted } })
    }

    /// Copies bytes into memory.
    pub fn copy(bytes: &[u8]) -> SegmentBytes {
        let mut words = vec![0; bytes.len().div_ceil(8)];
        bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
        SegmentBytes { content: Content::Memory { words, length: bytes.len() } }
    }

    /// Takes over words; the bytes are the first `length` of them.
    pub(crate) fn from_words(words: Vec<u64>, length: usize) -> SegmentBytes {
        assert!(length <= words.len() * 8, "there are as many bytes as said");
        SegmentBytes { content: Content::Memory { words, length } }
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        match &self.content {
            Content::Mapped { map, .. } => map,
            Content::Memory { words, length } => &bytemuck::cast_slice(words)[..*length],
        }
    }

    #[allow(dead_code, reason = "part of what a segment tells of its memory")]
    /// Bytes of the heap; none for a map, whose pages belong to the system.
    pub(crate) fn heap_bytes(&self) -> usize {
        match &self.content {
            Content::Mapped { .. } => 0,
            Content::Memory { words, .. } => words.capacity() * 8,
        }
    }
}

impl fmt::Debug for SegmentBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.content {
            Content::Mapped { .. } => "mapped",
            Content::Memory { .. } => "memory",
        };
        write!(f, "SegmentBytes({kind}, {} bytes)", self.bytes().len())
    }
}

/// A slice of numbers inside the bytes of a segment, which it keeps alive.
pub(crate) struct Section<T> {
    start: NonNull<T>,
    length: usize,
    bytes: Option<Arc<SegmentBytes>>,
}

impl<T> Section<T> {
    /// A section without numbers.
    pub(crate) const EMPTY: Section<T> = Section { start: NonNull::dangling(), length: 0, bytes: None };
}

impl<T: AnyBitPattern> Section<T> {
    /// The numbers in a range of bytes; `None` if it is outside, not aligned, or no whole number of them.
    pub(crate) fn new(bytes: &Arc<SegmentBytes>, range: Range<usize>) -> Option<Section<T>> {
        let numbers: &[T] = bytemuck::try_cast_slice(bytes.bytes().get(range)?).ok()?;
        Some(Section { start: NonNull::from(numbers).cast(), length: numbers.len(), bytes: Some(bytes.clone()) })
    }
}

impl<T> Section<T> {
    /// Begins to load the number at an index, for a read that follows soon: the processor waits for the memory of many such at once. Nothing where
    /// there is none, or where the processor has no such order.
    #[inline(always)]
    pub(crate) fn prefetch(&self, index: usize) {
        #[cfg(target_arch = "x86_64")]
        if index < self.length {
            // SAFETY: it reads and writes nothing that the program could see, whatever the address; this one lies in the section.
            unsafe {
                use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
                _mm_prefetch::<_MM_HINT_T0>(self.start.as_ptr().add(index).cast());
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = index;
    }
}

impl<T> Deref for Section<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `new` got address and length from a slice of `T` inside `self.bytes`, whose bytes neither move nor change
        // as long as that is alive (`EMPTY` has none and needs none): a `SegmentBytes` hands out no mutable access, and moving it moves neither map nor heap.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl<T> Clone for Section<T> {
    fn clone(&self) -> Section<T> {
        Section { start: self.start, length: self.length, bytes: self.bytes.clone() }
    }
}

// SAFETY: a section is a shared slice of plain numbers and the counted reference that keeps it alive.
unsafe impl<T: Sync> Send for Section<T> {}
// SAFETY: as above; there is no mutable access.
unsafe impl<T: Sync> Sync for Section<T> {}

impl<T> fmt::Debug for Section<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Section({} entries)", self.length)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn sections_outlive_what_they_came_from_and_are_checked() {
        let content: Vec<u8> = (0..64).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&content).unwrap();
        let among = MappedFiles::new(1 << 20);
        for bytes in [SegmentBytes::map(&file, &among).unwrap(), SegmentBytes::copy(&content)] {
            let bytes = Arc::new(bytes);
            let section: Section<u32> = Section::new(&bytes, 8..24).unwrap();
            assert!(Section::<u32>::new(&bytes, 2..6).is_none(), "not aligned");
            assert!(Section::<u64>::new(&bytes, 8..20).is_none(), "no whole number");
            assert!(Section::<u8>::new(&bytes, 60..65).is_none(), "behind the end");
            let clone = section.clone();
            drop((bytes, section));
            let numbers = std::thread::spawn(move || clone.to_vec()).join().unwrap();
            assert_eq!(numbers, [0x0b0a_0908, 0x0f0e_0d0c, 0x1312_1110, 0x1716_1514]);
        }
        assert_eq!(SegmentBytes::copy(&content[..13]).bytes(), &content[..13]);
        assert!(SegmentBytes::map(&tempfile::tempfile().unwrap(), &among).unwrap().bytes().is_empty());
    }

    #[test]
    fn maps_are_counted_while_they_exist() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 600]).unwrap();
        let among = MappedFiles::new(2000);
        let one = SegmentBytes::map(&file, &among).unwrap();
        assert!(among.fit_in_memory(), "600 of 1000");
        let other = SegmentBytes::map(&file, &among).unwrap();
        assert!(!among.fit_in_memory(), "1200 of 1000");
        assert_eq!(one.bytes(), other.bytes());
        drop(one);
        assert!(among.fit_in_memory());
    }
}
