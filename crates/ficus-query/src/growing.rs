//! Hash tables that grow a part at a time, for what may become very large.
//!
//! A table that is full moves to one of twice the size. With millions of entries that takes tens of milliseconds in which nobody looks whether the
//! query must stop, and both are there meanwhile. Here a table that has become large is divided into shards, of which each grows by itself. Shares
//! of entries differ on purpose, from 1 to 2, so that the shards do not all grow at the same time: then one grows whenever the whole has grown by
//! about a hundredth, and what the whole takes for an entry is always the same.
//!
//! Room is counted before it is taken, and as long as old and new are both there both count.

use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, needs_drop};
use std::sync::{Arc, LazyLock};

use ficus_dataflow::{ByType, Chunks, Flat, Remains};
use ficus_model::{Value, ValueHashing, ValueMap};
use hashbrown::{DefaultHashBuilder, HashTable};
use indexmap::IndexMap;

use crate::budget::{Held, MemoryAccount};
use crate::context::{Cx, Result};
use crate::flat::{Asked, ByKey, Piece};

/// Shards of a large table.
const SHARDS: usize = 64;

/// Entries for which a table is in one piece: dividing them takes some hundred microseconds.
const WHOLE: usize = 7 << 10;

/// Which shard it is by ten bits of a hash: shard `i` has a share of `2^(i/64)`.
static SHARD_OF: LazyLock<[u8; 1024]> =
    LazyLock::new(|| std::array::from_fn(|bits| (SHARDS as f64 * (1.0 + bits as f64 / 1024.0).log2()) as u8));

/// The shard of a hash, by bits of all of it: hashes of numbers in a row may have patterns in any ten bits, by which some shards would get nothing
/// and others several times their share.
#[inline]
fn shard_of(hash: u64) -> usize {
    SHARD_OF[(hash.wrapping_mul(SPREADING) >> 54) as usize] as usize
}

/// An odd number whose multiples spread over all 64 bits: the golden ratio's.
const SPREADING: u64 = 0x9E37_79B9_7F4A_7C15;

/// A hash table without opinions on what an entry is. Cost: as that of [`HashTable`].
///
/// It knows whether all its entries are flat ([`Flat`]): then they go with its memory.
#[derive(Debug)]
pub struct Table<T, F = ByType> {
    /// All entries while they are few.
    whole: HashTable<ManuallyDrop<T>>,
    shards: Vec<HashTable<ManuallyDrop<T>>>,
    len: usize,
    /// Whether all entries are flat.
    is_flat: bool,
    /// The shard that is being freed.
    leaving: Option<hashbrown::hash_table::IntoIter<ManuallyDrop<T>>>,
    how: PhantomData<fn() -> F>,
}

impl<T, F: Flat<T>> Default for Table<T, F> {
    fn default() -> Self {
        let (whole, shards) = (HashTable::new(), Vec::new());
        Table { whole, shards, len: 0, is_flat: true, leaving: None, how: PhantomData }
    }
}

impl<T, F> Drop for Table<T, F> {
    fn drop(&mut self) {
        self.drop_all();
    }
}

impl<T, F> Table<T, F> {
    /// Drops the entries; their memory stays as it is.
    fn drop_all(&mut self) {
        if !self.is_flat {
            let left = self.leaving.take().into_iter().flatten();
            let parts = std::iter::once(&mut self.whole).chain(&mut self.shards);
            left.chain(parts.flat_map(|part| part.drain())).for_each(|entry| drop(ManuallyDrop::into_inner(entry)));
        }
    }
}

impl<T, F: Flat<T>> Table<T, F> {
    /// The entry under a hash for which `is_it` holds.
    #[inline]
    pub fn find(&self, hash: u64, mut is_it: impl FnMut(&T) -> bool) -> Option<&T> {
        let part = if self.shards.is_empty() { &self.whole } else { &self.shards[shard_of(hash)] };
        part.find(hash, |entry| is_it(entry)).map(|entry| &**entry)
    }

    /// As [`Table::find`], to change a part that does not belong to its hash.
    #[inline]
    pub fn find_part_mut<U>(
        &mut self,
        hash: u64,
        mut is_it: impl FnMut(&T) -> bool,
        part_of: impl FnOnce(&mut T) -> &mut U,
    ) -> Option<&mut U> {
        let part = if self.shards.is_empty() { &mut self.whole } else { &mut self.shards[shard_of(hash)] };
        let entry = part.find_mut(hash, |entry| is_it(entry))?;
        self.is_flat &= !needs_drop::<U>();
        Some(part_of(entry))
    }

    /// All entries.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.whole.iter().chain(self.shards.iter().flatten()).map(|entry| &**entry)
    }

    /// Adds an entry that is not there. `hasher` tells the hashes of entries, should they have to move.
    ///
    /// Errors: `Budget` or `ServerMemory`; it is not added then.
    #[inline]
    pub fn insert(
        &mut self,
        hash: u64,
        entry: T,
        hasher: impl Fn(&T) -> u64,
        held: &mut Held,
        account: &MemoryAccount,
    ) -> Result<()> {
        if self.len == WHOLE && self.shards.is_empty() {
            self.divide(&hasher, held, account)?;
        }
        let part = if self.shards.is_empty() { &mut self.whole } else { &mut self.shards[shard_of(hash)] };
        if part.len() == part.capacity() {
            grow(part, part.len() + 1, &hasher, held, account)?;
        }
        self.is_flat &= F::is_flat(&entry);
        part.insert_unique(hash, ManuallyDrop::new(entry), |entry| hasher(entry));
        self.len += 1;
        Ok(())
    }

    #[cold]
    fn divide(&mut self, hasher: &impl Fn(&T) -> u64, held: &mut Held, account: &MemoryAccount) -> Result<()> {
        let mut shards: Vec<HashTable<ManuallyDrop<T>>> = Vec::new();
        shards.resize_with(SHARDS, HashTable::new);
        let mut entries = [0; SHARDS];
        for entry in &self.whole {
            entries[shard_of(hasher(entry))] += 1;
        }
        // The largest share is less than twice the mean, unless hashes are bad; so none of them grows now, and what is counted is what they take.
        for (shard, entries) in shards.iter_mut().zip(entries) {
            grow(shard, entries.max(2 * WHOLE / SHARDS), hasher, held, account)?;
        }
        let bytes = self.whole.allocation_size();
        for entry in std::mem::take(&mut self.whole) {
            let hash = hasher(&entry);
            shards[shard_of(hash)].insert_unique(hash, entry, |entry| hasher(entry));
        }
        held.subtract(bytes);
        self.shards = shards;
        Ok(())
    }

    /// Forgets all, and gives the memory back unless it is little.
    pub fn clear(&mut self) {
        /// Entries for which room is kept for the next scope instance.
        const KEPT: usize = 64;
        self.drop_all();
        self.whole.clear();
        (self.is_flat, self.leaving) = (true, None);
        if self.whole.capacity() > KEPT {
            self.whole = HashTable::new();
        }
        self.shards = Vec::new();
        self.len = 0;
    }
}

/// Makes room in a part for `entries` in all.
#[cold]
fn grow<T>(
    part: &mut HashTable<ManuallyDrop<T>>,
    entries: usize,
    hasher: &impl Fn(&T) -> u64,
    held: &mut Held,
    account: &MemoryAccount,
) -> Result<()> {
    // As many buckets as the table will have, a power of two that leaves one in eight free.
    let buckets = (entries.max(part.capacity() + 1).max(3) * 8 / 7 + 1).next_power_of_two();
    let expected = buckets * (size_of::<T>() + 1) + 32;
    held.add(account, expected)?;
    let before = part.allocation_size();
    part.reserve(entries - part.len(), |entry| hasher(entry));
    held.subtract((before + expected).saturating_sub(part.allocation_size()));
    Ok(())
}

impl<T: Send, F: Flat<T>> Remains for Table<T, F> {
    fn free_some(&mut self, mut pieces: usize) -> usize {
        if self.len > 0 {
            self.shards.push(std::mem::take(&mut self.whole));
        }
        loop {
            if let Some(leaving) = &mut self.leaving {
                // What is flat goes with its memory.
                let count = if self.is_flat { 0 } else { leaving.len() };
                leaving.by_ref().take(count.min(pieces)).for_each(|entry| drop(ManuallyDrop::into_inner(entry)));
                pieces -= count.min(pieces);
                if pieces == 0 {
                    return 0;
                }
            }
            self.leaving = self.shards.pop().map(HashTable::into_iter);
            match &self.leaving {
                None => {
                    self.len = 0;
                    return pieces;
                }
                // Its memory takes some time as well.
                Some(shard) => pieces = pieces.saturating_sub(1 + shard.len() / 64),
            }
            if pieces == 0 {
                return 0;
            }
        }
    }

    fn pieces(&self) -> usize {
        self.len
    }
}

/// What was seen already.
#[derive(Debug)]
pub struct Seen<T: Piece> {
    table: Table<T, Asked>,
    hashes: DefaultHashBuilder,
    held: Held,
}

impl<T: Piece> Default for Seen<T> {
    fn default() -> Self {
        Seen { table: Table::default(), hashes: DefaultHashBuilder::default(), held: Held::default() }
    }
}

impl<T: Piece + Hash + Eq + Send + 'static> Seen<T> {
    /// All, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.table.iter()
    }

    /// Whether a value was added.
    #[inline]
    pub fn contains(&self, value: &T) -> bool {
        self.table.find(self.hashes.hash_one(value), |known| known == value).is_some()
    }

    /// Adds a value, for which `bytes` are held beside itself; whether it is new.
    ///
    /// Errors: `Budget` or `ServerMemory`; it is not added then.
    #[inline]
    pub fn insert(&mut self, value: T, bytes: impl FnOnce(&T) -> usize, account: &MemoryAccount) -> Result<bool> {
        let hash = self.hashes.hash_one(&value);
        if self.table.find(hash, |known| *known == value).is_some() {
            return Ok(false);
        }
        match bytes(&value) {
            0 => {}
            bytes => self.held.add(account, bytes)?,
        }
        self.table.insert(hash, value, |known| self.hashes.hash_one(known), &mut self.held, account)?;
        Ok(true)
    }

    /// Forgets all and hands back what it took.
    pub fn clear(&mut self) {
        self.table.clear();
        self.held.give_back();
    }

    /// Hands all over to be freed in pieces.
    pub fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        surrender(std::mem::take(&mut self.table), &mut self.held, remains);
    }
}

/// A map that keeps the order in which keys come: what [`Keyed`] entries are moved to.
pub trait Ordered<W> {
    /// Whether it has no entries, nor room for so many.
    fn lacks_room(&self, entries: usize) -> bool;

    /// Makes room for exactly so many.
    fn make_room(&mut self, entries: usize);

    /// Puts a value under a key.
    fn put(&mut self, key: Value, value: W);
}

impl Ordered<Value> for ValueMap {
    fn lacks_room(&self, entries: usize) -> bool {
        self.is_empty() && self.capacity() < entries
    }

    fn make_room(&mut self, entries: usize) {
        self.reserve_exact(entries);
    }

    #[inline]
    fn put(&mut self, key: Value, value: Value) {
        self.insert(key, value);
    }
}

impl<W> Ordered<W> for IndexMap<Value, W, ValueHashing> {
    fn lacks_room(&self, entries: usize) -> bool {
        self.is_empty() && self.capacity() < entries
    }

    fn make_room(&mut self, entries: usize) {
        self.reserve_exact(entries);
    }

    #[inline]
    fn put(&mut self, key: Value, value: W) {
        self.insert(key, value);
    }
}

/// Values under keys, in the order in which the keys came first.
#[derive(Debug)]
pub struct Keyed<V> {
    entries: Chunks<(Value, V), ByKey>,
    index: Positions,
    hashes: DefaultHashBuilder,
    held: Held,
}

impl<V> Default for Keyed<V> {
    fn default() -> Self {
        let hashes = DefaultHashBuilder::default();
        Keyed { entries: Chunks::new(), index: Positions::default(), hashes, held: Held::default() }
    }
}

impl<V: Send + 'static> Keyed<V> {
    /// What its entries hold.
    pub fn held(&mut self) -> &mut Held {
        &mut self.held
    }

    /// All, in order.
    pub fn iter(&self) -> impl Iterator<Item = &(Value, V)> {
        self.entries.iter()
    }

    /// What is under a key, with the account of what it holds; made if there is nothing. `bytes` are what a new one holds beside key and value.
    ///
    /// Errors: `Budget` or `ServerMemory`, or as [`MemoryAccount::fits`]; it is not added then.
    #[inline]
    pub fn entry(
        &mut self,
        key: Value,
        bytes: usize,
        account: &MemoryAccount,
        make: impl FnOnce() -> V,
    ) -> Result<(&mut V, &mut Held)> {
        let hash = self.hashes.hash_one(&key);
        let position = match self.position(hash, &key) {
            Some(position) => position,
            None => self.push(hash, key, bytes, account, make)?,
        };
        let own = self.entries.part_mut(position, |entry| &mut entry.1).expect("the index knows what there is");
        Ok((own, &mut self.held))
    }

    #[inline]
    fn position(&self, hash: u64, key: &Value) -> Option<usize> {
        let entries = &self.entries;
        self.index.find(hash, |position| entries.get(position).is_some_and(|own| own.0 == *key))
    }

    fn push(
        &mut self,
        hash: u64,
        key: Value,
        bytes: usize,
        account: &MemoryAccount,
        make: impl FnOnce() -> V,
    ) -> Result<usize> {
        account.fits(&key)?;
        let own = size_of::<(Value, V)>() + key.size_hint_bytes() - size_of::<Value>();
        self.held.add(account, own + bytes)?;
        self.index.insert(hash, self.entries.len(), &mut self.held, account)?;
        self.entries.push_back((key, make()));
        Ok(self.entries.len() - 1)
    }

    /// The number of a key in the order in which they came first; added if it is not there.
    ///
    /// Errors: as [`Keyed::entry`].
    #[inline]
    pub fn number(&mut self, key: &Value, account: &MemoryAccount) -> Result<usize>
    where
        V: Default,
    {
        let hash = self.hashes.hash_one(key);
        match self.position(hash, key) {
            Some(position) => Ok(position),
            None => self.push(hash, key.clone(), 0, account, V::default),
        }
    }

    /// As [`Keyed::number`], with what `make` makes and the bytes that it says, if the key is not there.
    ///
    /// Errors: as [`Keyed::entry`].
    pub fn number_or(&mut self, key: Value, account: &MemoryAccount, make: impl Fn() -> (V, usize)) -> Result<usize> {
        let hash = self.hashes.hash_one(&key);
        match self.position(hash, &key) {
            Some(position) => Ok(position),
            None => {
                let (value, bytes) = make();
                self.push(hash, key, bytes, account, || value)
            }
        }
    }

    /// What is under the key of a number, with the account of what it holds.
    #[inline]
    pub fn at_mut(&mut self, number: usize) -> Option<(&mut V, &mut Held)> {
        let value = self.entries.part_mut(number, |entry| &mut entry.1)?;
        Some((value, &mut self.held))
    }

    /// How many keys there are.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// The key of a number.
    pub fn key(&self, number: usize) -> Option<&Value> {
        self.entries.get(number).map(|(key, _)| key)
    }

    /// As [`Keyed::entry`] for all of these, of which somebody else counts what they hold.
    pub fn of(values: impl IntoIterator<Item = (Value, V)>) -> Keyed<V> {
        let (mut keyed, account) = (Keyed::default(), MemoryAccount::new(usize::MAX));
        for (key, value) in values {
            keyed.entry(key, 0, &account, || value).expect("the account has no bound");
        }
        keyed.held = Held::default();
        keyed
    }

    /// Moves entries to a map, in order, until the turn is over; true when all are there. Nothing is added meanwhile.
    ///
    /// Errors: `Budget` or `ServerMemory` if there is no room for the map.
    pub fn move_to<W>(&mut self, map: &mut impl Ordered<W>, cx: &mut Cx<'_>, convert: impl Fn(V) -> W) -> Result<bool> {
        self.begin_moving(map, cx)?;
        while let Some((key, value)) = self.entries.pop_front() {
            map.put(key, convert(value));
            cx.charge(1);
            if cx.exhausted() && !self.entries.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes room for all entries in a map that has none yet; memory is touched as it fills, and that of entries goes as they do.
    pub fn begin_moving<W>(&mut self, map: &mut impl Ordered<W>, cx: &Cx<'_>) -> Result<()> {
        if map.lacks_room(self.entries.len()) {
            self.index.clear();
            /// What an entry of a map takes beyond what it took here: hash, token of the value, and place in the index.
            const MORE: usize = 32;
            self.held.add(&cx.context.memory, self.entries.len() * MORE)?;
            map.make_room(self.entries.len());
        }
        Ok(())
    }

    /// Sorts them by a number, as far as all have one. Nothing is looked up any more after this. All at once, for few entries.
    ///
    /// Errors: as [`Held::add`].
    pub fn reorder(&mut self, cx: &Cx<'_>, number: impl Fn(&Value, &Cx<'_>) -> Option<u32>) -> Result<()> {
        cx.context.memory.check_room(self.entries.len() * size_of::<(u32, (Value, V))>())?;
        let Some(numbers) = self.entries.iter().map(|(key, _)| number(key, cx)).collect::<Option<Vec<u32>>>() else {
            return Ok(());
        };
        self.index.clear();
        let mut sorted = Vec::with_capacity(numbers.len());
        for number in numbers {
            sorted.extend(self.entries.pop_front().map(|entry| (number, entry)));
        }
        sorted.sort_by_key(|(number, _)| *number);
        sorted.into_iter().for_each(|(_, entry)| self.entries.push_back(entry));
        Ok(())
    }

    /// Takes the first; memory goes as they do. Nothing is looked up any more after this.
    pub fn pop_front(&mut self) -> Option<(Value, V)> {
        self.index.clear();
        self.entries.pop_front()
    }

    /// Forgets all and hands back what it took.
    pub fn clear(&mut self) {
        *self = Keyed::default();
    }

    /// Hands all over to be freed in pieces.
    pub fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        self.index.clear();
        surrender(std::mem::take(&mut self.entries), &mut self.held, remains);
    }
}

/// Where something lies that is kept in a line: positions by hashes. Twelve bytes for each, more or less.
#[derive(Debug, Default)]
pub struct Positions(Table<(u32, u32)>);

/// The hash of an index, of which half is remembered, so that growing looks at nothing else.
fn remembered(hash: u64) -> (u32, u64) {
    let half = (hash >> 32) as u32 ^ hash as u32;
    (half, u64::from(half).wrapping_mul(SPREADING))
}

impl Positions {
    /// The position under a hash for which `is_it` holds.
    #[inline]
    pub fn find(&self, hash: u64, is_it: impl Fn(usize) -> bool) -> Option<usize> {
        let (half, hash) = remembered(hash);
        self.0.find(hash, |&(own, at)| own == half && is_it(at as usize)).map(|&(_, at)| at as usize)
    }

    /// Adds a position.
    ///
    /// Errors: as [`Table::insert`].
    #[inline]
    pub fn insert(&mut self, hash: u64, position: usize, held: &mut Held, account: &MemoryAccount) -> Result<()> {
        let position = u32::try_from(position).expect("the memory budget is smaller");
        let (half, hash) = remembered(hash);
        let rehash = |&(half, _): &(u32, u32)| u64::from(half).wrapping_mul(SPREADING);
        self.0.insert(hash, (half, position), rehash, held, account)
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Something that is freed in pieces, and what it holds on the query's account, which goes last.
struct Kept {
    what: Box<dyn Remains>,
    /// Of all parts of it.
    held: Arc<Held>,
}

impl Remains for Kept {
    fn free_some(&mut self, pieces: usize) -> usize {
        self.what.free_some(pieces)
    }

    fn pieces(&self) -> usize {
        self.what.pieces()
    }

    fn split(&mut self) -> Option<Box<dyn Remains>> {
        Some(Box::new(Kept { what: self.what.split()?, held: self.held.clone() }))
    }
}

/// Hands something over to be freed in pieces, with what it holds.
pub fn surrender(what: impl Remains + 'static, held: &mut Held, remains: &mut Vec<Box<dyn Remains>>) {
    remains.push(kept(Box::new(what), Arc::new(std::mem::take(held))));
}

/// Something that is freed in pieces before what it holds, maybe with others, is given back.
pub fn kept(what: Box<dyn Remains>, held: Arc<Held>) -> Box<dyn Remains> {
    Box::new(Kept { what, held })
}

#[cfg(test)]
mod tests;
