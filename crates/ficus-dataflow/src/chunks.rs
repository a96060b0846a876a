//! A queue in pieces: it grows without copying what it holds, and is freed a piece at a time.
//!
//! One piece of memory that doubles is copied whenever it is full. With a hundred mebibytes in it, that takes tens of milliseconds in which nobody
//! looks at anything, the old and the new memory are both there, and what is left behind is too small for the next one. Chunks have one size, so that
//! what one query frees fits the next.
//!
//! Invariant: all chunks but the first and the last are full.

use std::collections::VecDeque;

/// Bytes of a chunk: much more than its place in the list of chunks, and a size of which the allocator's pages of half a mebibyte hold as many as fit
/// (18, where of 32 KiB it would be 15, because each page has a head).
const CHUNK_BYTES: usize = 28 << 10;

/// A double-ended queue in chunks. Cost: as a [`VecDeque`], a division more where an index is looked up.
#[derive(Debug)]
pub struct Chunks<T> {
    chunks: VecDeque<VecDeque<T>>,
    /// A chunk that became empty, for who goes to and fro over a border.
    spare: Option<VecDeque<T>>,
    len: usize,
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Chunks::new()
    }
}

impl<T> Chunks<T> {
    /// How many are in a full chunk.
    pub const CHUNK: usize = {
        let size = if size_of::<T>() == 0 { 1 } else { size_of::<T>() };
        if CHUNK_BYTES / size < 16 { 16 } else { CHUNK_BYTES / size }
    };

    /// With nothing in it; allocates nothing.
    pub const fn new() -> Chunks<T> {
        Chunks { chunks: VecDeque::new(), spare: None, len: 0 }
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A new chunk. The only one grows as it fills; where there are several, one more is worth its memory.
    fn chunk(&mut self) -> VecDeque<T> {
        let room = if self.chunks.is_empty() { 0 } else { Self::CHUNK };
        self.spare.take().unwrap_or_else(|| VecDeque::with_capacity(room))
    }

    /// Adds one behind all.
    #[inline]
    pub fn push_back(&mut self, value: T) {
        self.len += 1;
        match self.chunks.back_mut() {
            Some(last) if last.len() < Self::CHUNK => last.push_back(value),
            _ => {
                let mut chunk = self.chunk();
                chunk.push_back(value);
                self.chunks.push_back(chunk);
            }
        }
    }

    /// Adds one before all.
    #[inline]
    pub fn push_front(&mut self, value: T) {
        self.len += 1;
        match self.chunks.front_mut() {
            Some(first) if first.len() < Self::CHUNK => first.push_front(value),
            _ => {
                let mut chunk = self.chunk();
                chunk.push_front(value);
                self.chunks.push_front(chunk);
            }
        }
    }

    /// Takes the first.
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        let first = self.chunks.front_mut()?;
        let value = first.pop_front();
        let is_empty = first.is_empty();
        self.len -= usize::from(value.is_some());
        if is_empty {
            self.spare = self.chunks.pop_front();
        }
        value
    }

    /// Takes the last.
    pub fn pop_back(&mut self) -> Option<T> {
        let last = self.chunks.back_mut()?;
        let value = last.pop_back();
        let is_empty = last.is_empty();
        self.len -= usize::from(value.is_some());
        if is_empty {
            self.spare = self.chunks.pop_back();
        }
        value
    }

    /// Takes the last `count`, or all if there are fewer, in their order.
    pub fn split_last(&mut self, count: usize) -> Vec<T> {
        let mut last: Vec<T> = std::iter::from_fn(|| self.pop_back()).take(count).collect();
        last.reverse();
        last
    }

    /// For how many more the next one that is added behind all takes memory: 0 if there is room.
    #[inline]
    pub fn grows_by(&self) -> usize {
        match self.chunks.back() {
            Some(last) if last.len() < last.capacity().min(Self::CHUNK) => 0,
            // The only one doubles.
            Some(only) if only.len() < Self::CHUNK => only.capacity(),
            Some(_) => Self::CHUNK,
            None => self.spare.as_ref().map_or(4, |_| 0),
        }
    }

    /// The first.
    pub fn front(&self) -> Option<&T> {
        self.chunks.front()?.front()
    }

    /// The first, to change it.
    pub fn front_mut(&mut self) -> Option<&mut T> {
        self.chunks.front_mut()?.front_mut()
    }

    /// Where the one at an index is: chunk, and place in it.
    #[inline]
    fn place(&self, index: usize) -> (usize, usize) {
        let first = self.chunks.front().map_or(0, VecDeque::len);
        match index.checked_sub(first) {
            None => (0, index),
            Some(behind) => (1 + behind / Self::CHUNK, behind % Self::CHUNK),
        }
    }

    /// The one at an index.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        let (chunk, place) = self.place(index);
        self.chunks.get(chunk)?.get(place)
    }

    /// The one at an index, to change it.
    #[inline]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let (chunk, place) = self.place(index);
        self.chunks.get_mut(chunk)?.get_mut(place)
    }

    /// Exchanges two; both indices are below the length.
    pub fn swap(&mut self, a: usize, b: usize) {
        let ((a, in_a), (b, in_b)) = (self.place(a.min(b)), self.place(a.max(b)));
        if a == b {
            self.chunks[a].swap(in_a, in_b);
            return;
        }
        let mut between = self.chunks.range_mut(a..=b);
        if let (Some(first), Some(second)) = (between.next(), between.next_back()) {
            std::mem::swap(&mut first[in_a], &mut second[in_b]);
        }
    }

    /// All, from the first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }

    /// All, from the first, to change them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.chunks.iter_mut().flatten()
    }

    /// Takes all, from the first; memory goes as they do.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        std::iter::from_fn(|| self.pop_front())
    }

    /// Drops all in one go; the room of one chunk is kept.
    pub fn clear(&mut self) {
        let first = self.chunks.pop_front();
        self.chunks = VecDeque::new();
        self.len = 0;
        if let Some(mut first) = first {
            first.clear();
            self.spare = Some(first);
        }
    }

    /// All as one piece; without a copy if they are so few that they are one.
    pub fn into_vec(mut self) -> Vec<T> {
        match self.chunks.len() {
            0 => Vec::new(),
            1 => self.chunks.pop_front().map(Vec::from).unwrap_or_default(),
            _ => {
                let mut all = Vec::with_capacity(self.len);
                self.chunks.drain(..).for_each(|chunk| all.extend(chunk));
                all
            }
        }
    }
}

impl<T> Extend<T> for Chunks<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.push_back(value));
    }
}

impl<T> FromIterator<T> for Chunks<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut chunks = Chunks::new();
        chunks.extend(values);
        chunks
    }
}

/// Something large that can be freed in pieces.
pub trait Remains: Send {
    /// Frees about `pieces` of it, such as rows, or all if it is less. Says how many pieces of the budget are left: 0 if something of it may be, to
    /// be asked again.
    fn free_some(&mut self, pieces: usize) -> usize;

    /// About how many pieces there are.
    fn pieces(&self) -> usize;
}

impl<T: Send> Remains for VecDeque<T> {
    fn free_some(&mut self, pieces: usize) -> usize {
        if self.len() >= pieces {
            self.truncate(self.len() - pieces);
            return 0;
        }
        let left = pieces - self.len();
        *self = VecDeque::new();
        left
    }

    fn pieces(&self) -> usize {
        self.len()
    }
}

impl<T: Send> Remains for Chunks<T> {
    fn free_some(&mut self, mut pieces: usize) -> usize {
        self.spare = None;
        while pieces > 0
            && let Some(last) = self.chunks.back_mut()
        {
            let before = last.len();
            pieces = last.free_some(pieces);
            self.len -= before - last.len();
            if last.is_empty() {
                self.chunks.pop_back();
            }
        }
        if self.is_empty() { pieces } else { 0 }
    }

    fn pieces(&self) -> usize {
        self.len
    }
}

/// Moves a queue to what is freed in pieces, if there is anything in it.
pub(crate) fn hand_over<T: Send + 'static>(queue: &mut VecDeque<T>, remains: &mut Vec<Box<dyn Remains>>) {
    if !queue.is_empty() {
        remains.push(Box::new(std::mem::take(queue)));
    }
}

#[cfg(test)]
mod tests;
