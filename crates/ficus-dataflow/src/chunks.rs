//! A queue in pieces: it grows without copying what it holds, and is freed a piece at a time.
//!
//! One piece of memory that doubles is copied whenever it is full. With a hundred mebibytes in it, that takes tens of milliseconds in which nobody
//! looks at anything, the old and the new memory are both there, and what is left behind is too small for the next one. Chunks have one size, so that
//! what one query frees fits the next.
//!
//! To free millions of values one by one is mostly to look at each and to find that it holds nothing. So a chunk knows whether all that were put into it
//! are *flat* ([`Flat`]), and its memory goes in one piece then.
//!
//! Invariants: all chunks but the first and the last are full; a chunk that says so holds flat values only.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, needs_drop};
use std::ops::{Deref, DerefMut};

/// Bytes of a chunk: much more than its place in the list of chunks, and a size of which the allocator's pages of half a mebibyte hold as many as fit
/// (18, where of 32 KiB it would be 15, because each page has a head).
const CHUNK_BYTES: usize = 28 << 10;

/// Tells which values are flat: their drop does nothing, because they hold no memory, count or the like.
pub trait Flat<T> {
    /// Whether several threads free them faster than one: not if each has memory of its own, which its thread takes back two to three times as fast as
    /// any other.
    const IS_SHARED: bool = true;

    /// Whether a value is. Who says so of one that is not leaks what it holds.
    fn is_flat(value: &T) -> bool;
}

/// Flat are the values of types of which all are.
#[derive(Debug)]
pub struct ByType;

impl<T> Flat<T> for ByType {
    #[inline]
    fn is_flat(_value: &T) -> bool {
        !needs_drop::<T>()
    }
}

/// A chunk. Of what it says to be flat nothing is dropped one by one.
#[derive(Debug)]
enum Chunk<T> {
    Flat(VecDeque<ManuallyDrop<T>>),
    Any(VecDeque<T>),
}

/// The same in the same memory.
fn converted<A, B>(values: VecDeque<A>, convert: impl FnMut(A) -> B) -> VecDeque<B> {
    Vec::from(values).into_iter().map(convert).collect::<Vec<B>>().into()
}

impl<T> Chunk<T> {
    fn with_capacity(capacity: usize) -> Chunk<T> {
        Chunk::Flat(VecDeque::with_capacity(capacity))
    }

    #[inline]
    fn len(&self) -> usize {
        match self {
            Chunk::Flat(values) => values.len(),
            Chunk::Any(values) => values.len(),
        }
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn capacity(&self) -> usize {
        match self {
            Chunk::Flat(values) => values.capacity(),
            Chunk::Any(values) => values.capacity(),
        }
    }

    /// The values, from now on any.
    #[inline]
    fn any(&mut self) -> &mut VecDeque<T> {
        if let Chunk::Flat(values) = self {
            *self = Chunk::Any(converted(std::mem::take(values), ManuallyDrop::into_inner));
        }
        match self {
            Chunk::Any(values) => values,
            Chunk::Flat(_) => unreachable!("it was converted"),
        }
    }

    /// Readies an empty chunk for a value.
    fn begin(&mut self, is_flat: bool) {
        match self {
            Chunk::Any(values) if is_flat => {
                debug_assert!(values.is_empty());
                *self = Chunk::Flat(converted(std::mem::take(values), ManuallyDrop::new));
            }
            _ => {}
        }
    }

    #[inline]
    fn get(&self, place: usize) -> Option<&T> {
        match self {
            Chunk::Flat(values) => values.get(place).map(|value| &**value),
            Chunk::Any(values) => values.get(place),
        }
    }

    #[inline]
    fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        match self {
            Chunk::Flat(values) => values.get_mut(place).map(|value| &mut **value),
            Chunk::Any(values) => values.get_mut(place),
        }
    }

    fn iter(&self) -> impl Iterator<Item = &T> {
        let (flat, any) = match self {
            Chunk::Flat(values) => (Some(values), None),
            Chunk::Any(values) => (None, Some(values)),
        };
        flat.into_iter().flatten().map(|value| &**value).chain(any.into_iter().flatten())
    }

    #[inline]
    fn push_back(&mut self, value: T, is_flat: bool) {
        match self {
            Chunk::Flat(values) if is_flat => values.push_back(ManuallyDrop::new(value)),
            _ => self.any().push_back(value),
        }
    }

    #[inline]
    fn push_front(&mut self, value: T, is_flat: bool) {
        match self {
            Chunk::Flat(values) if is_flat => values.push_front(ManuallyDrop::new(value)),
            _ => self.any().push_front(value),
        }
    }

    #[inline]
    fn pop_front(&mut self) -> Option<T> {
        match self {
            Chunk::Flat(values) => values.pop_front().map(ManuallyDrop::into_inner),
            Chunk::Any(values) => values.pop_front(),
        }
    }

    #[inline]
    fn pop_back(&mut self) -> Option<T> {
        match self {
            Chunk::Flat(values) => values.pop_back().map(ManuallyDrop::into_inner),
            Chunk::Any(values) => values.pop_back(),
        }
    }

    fn clear(&mut self) {
        match self {
            Chunk::Flat(values) => values.clear(),
            Chunk::Any(values) => values.clear(),
        }
    }

    /// All, without a copy.
    fn into_vec(self) -> Vec<T> {
        match self {
            Chunk::Flat(values) => Vec::from(values).into_iter().map(ManuallyDrop::into_inner).collect(),
            Chunk::Any(values) => values.into(),
        }
    }
}

/// Flat values that go in the time in which one of the others is freed.
const FLAT_PIECES: usize = 64;

/// A value of a chunk, to be changed: what has become of it is looked at afterwards.
pub struct Changing<'a, T, F: Flat<T>> {
    chunk: &'a mut Chunk<T>,
    /// There is one.
    place: usize,
    how: PhantomData<F>,
}

/// Why the place of a value that changes holds one.
const IS_THERE: &str = "its place was looked up, and nothing is taken meanwhile";

impl<'a, T, F: Flat<T>> Changing<'a, T, F> {
    fn at(chunk: &'a mut Chunk<T>, place: usize) -> Option<Self> {
        (place < chunk.len()).then(|| Changing { chunk, place, how: PhantomData })
    }
}

impl<T, F: Flat<T>> Deref for Changing<'_, T, F> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.chunk.get(self.place).expect(IS_THERE)
    }
}

impl<T, F: Flat<T>> DerefMut for Changing<'_, T, F> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.chunk.get_mut(self.place).expect(IS_THERE)
    }
}

impl<T, F: Flat<T>> Drop for Changing<'_, T, F> {
    #[inline]
    fn drop(&mut self) {
        if matches!(self.chunk, Chunk::Flat(_)) && !F::is_flat(&**self) {
            self.chunk.any();
        }
    }
}

/// A double-ended queue in chunks. Cost: as a [`VecDeque`], a division more where an index is looked up, and a look at what comes in.
#[derive(Debug)]
pub struct Chunks<T, F = ByType> {
    chunks: VecDeque<Chunk<T>>,
    /// A chunk that became empty, for who goes to and fro over a border.
    spare: Option<Chunk<T>>,
    len: usize,
    how: PhantomData<fn() -> F>,
}

impl<T, F: Flat<T>> Default for Chunks<T, F> {
    fn default() -> Self {
        Chunks::new()
    }
}

impl<T, F: Flat<T>> Chunks<T, F> {
    /// How many are in a full chunk.
    pub const CHUNK: usize = {
        let size = if size_of::<T>() == 0 { 1 } else { size_of::<T>() };
        if CHUNK_BYTES / size < 16 { 16 } else { CHUNK_BYTES / size }
    };

    /// With nothing in it; allocates nothing.
    pub const fn new() -> Chunks<T, F> {
        Chunks { chunks: VecDeque::new(), spare: None, len: 0, how: PhantomData }
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

    /// A new chunk for such a value. The only one grows as it fills; where there are several, one more is worth its memory.
    fn chunk(&mut self, is_flat: bool) -> Chunk<T> {
        let room = if self.chunks.is_empty() { 0 } else { Self::CHUNK };
        let mut chunk = self.spare.take().unwrap_or_else(|| Chunk::with_capacity(room));
        chunk.begin(is_flat);
        chunk
    }

    /// Adds one behind all.
    #[inline]
    pub fn push_back(&mut self, value: T) {
        self.len += 1;
        let is_flat = F::is_flat(&value);
        match self.chunks.back_mut() {
            Some(last) if last.len() < Self::CHUNK => last.push_back(value, is_flat),
            _ => {
                let mut chunk = self.chunk(is_flat);
                chunk.push_back(value, is_flat);
                self.chunks.push_back(chunk);
            }
        }
    }

    /// Adds one before all.
    #[inline]
    pub fn push_front(&mut self, value: T) {
        self.len += 1;
        let is_flat = F::is_flat(&value);
        match self.chunks.front_mut() {
            Some(first) if first.len() < Self::CHUNK => first.push_front(value, is_flat),
            _ => {
                let mut chunk = self.chunk(is_flat);
                chunk.push_front(value, is_flat);
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
        self.chunks.front()?.get(0)
    }

    /// The first, to change it.
    pub fn front_mut(&mut self) -> Option<Changing<'_, T, F>> {
        Changing::at(self.chunks.front_mut()?, 0)
    }

    /// Where the one at an index is: chunk, and place in it.
    #[inline]
    fn place(&self, index: usize) -> (usize, usize) {
        let first = self.chunks.front().map_or(0, Chunk::len);
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
    pub fn get_mut(&mut self, index: usize) -> Option<Changing<'_, T, F>> {
        let (chunk, place) = self.place(index);
        Changing::at(self.chunks.get_mut(chunk)?, place)
    }

    /// As [`Chunks::get_mut`], a part of it, for as long as it is wanted.
    #[inline]
    pub fn part_mut<U>(&mut self, index: usize, part: impl FnOnce(&mut T) -> &mut U) -> Option<&mut U> {
        let (chunk, place) = self.place(index);
        let chunk = self.chunks.get_mut(chunk)?;
        // What is made of it nobody sees; of a number nothing is made that matters.
        if needs_drop::<U>() {
            chunk.any();
        }
        chunk.get_mut(place).map(part)
    }

    /// Exchanges two; both indices are below the length.
    pub fn swap(&mut self, a: usize, b: usize) {
        let ((a, in_a), (b, in_b)) = (self.place(a.min(b)), self.place(a.max(b)));
        if a == b {
            match &mut self.chunks[a] {
                Chunk::Flat(values) => values.swap(in_a, in_b),
                Chunk::Any(values) => values.swap(in_a, in_b),
            }
            return;
        }
        let mut between = self.chunks.range_mut(a..=b);
        if let (Some(first), Some(second)) = (between.next(), between.next_back()) {
            match (first, second) {
                (Chunk::Flat(first), Chunk::Flat(second)) => std::mem::swap(&mut first[in_a], &mut second[in_b]),
                (first, second) => std::mem::swap(&mut first.any()[in_a], &mut second.any()[in_b]),
            }
        }
    }

    /// All, from the first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flat_map(Chunk::iter)
    }

    /// All, from the first, to change them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.chunks.iter_mut().flat_map(|chunk| chunk.any())
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
            1 => self.chunks.pop_front().map(Chunk::into_vec).unwrap_or_default(),
            _ => {
                let mut all = Vec::with_capacity(self.len);
                self.chunks.drain(..).for_each(|chunk| all.extend(chunk.into_vec()));
                all
            }
        }
    }
}

impl<T, F: Flat<T>> Extend<T> for Chunks<T, F> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.push_back(value));
    }
}

impl<T, F: Flat<T>> FromIterator<T> for Chunks<T, F> {
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

    /// Takes about half of it off, for somebody else to free; `None` if it cannot be divided quickly.
    fn split(&mut self) -> Option<Box<dyn Remains>> {
        None
    }
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

impl<T: Send + 'static, F: Flat<T> + 'static> Remains for Chunks<T, F> {
    fn free_some(&mut self, mut pieces: usize) -> usize {
        self.spare = None;
        while pieces > 0
            && let Some(last) = self.chunks.back_mut()
        {
            let before = last.len();
            match last {
                Chunk::Flat(values) => {
                    // Its memory takes some time all the same.
                    pieces = pieces.saturating_sub(1 + before / FLAT_PIECES);
                    values.clear();
                }
                Chunk::Any(values) => pieces = values.free_some(pieces),
            }
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

    fn split(&mut self) -> Option<Box<dyn Remains>> {
        if !F::IS_SHARED || self.chunks.len() < 2 {
            return None;
        }
        let chunks = self.chunks.split_off(self.chunks.len() / 2);
        let len = chunks.iter().map(Chunk::len).sum();
        self.len -= len;
        Some(Box::new(Chunks { chunks, len, spare: None, how: PhantomData::<fn() -> F> }))
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
