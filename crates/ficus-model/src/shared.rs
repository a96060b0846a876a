//! Values that hold others: shared like an [`Arc`], and safe however deep they are nested.
//!
//! Two things are dangerous in a value that holds itself, grown by a loop: to free a million levels one inside the other takes a million
//! stack frames, and of a value that holds the one before it *twice*, forty levels are a trillion members to whoever walks them.
//! What holds very many others takes tens of milliseconds to free, wherever its last owner happens to be; whoever has threads says who does that instead
//! ([`free_elsewhere`]).
//!
//! So a [`Shared`] is freed without recursion beyond a few levels, and knows its [`Extent`] and the hash of what it holds, which are found
//! once and kept: whoever lets values grow can ask at no cost, and a value is hashed by its members and not by theirs.
//!
//! Lists and paths of numbers and vertices, and maps of such with shared keys, know as well that their members are *flat* ([`Value::is_flat`]): it is seen
//! when they are made, while they are at hand, and they are freed without a look at members that were left long ago.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use crate::Tree;
use crate::{BulkSet, Path, Value, ValueMap, ValueSet};

/// Levels of nesting that values may have: as many as comparisons look at and encoders write.
pub const NESTING_MAX: usize = 256;

/// How deep a value is nested, and how many values it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Levels; 0 of a value that holds none.
    pub depth: u32,
    /// Itself and all values in it, each as often as a walk meets it; no more than [`Extent::COUNT_MAX`] is told.
    pub count: u64,
}

impl Extent {
    /// The largest count.
    pub const COUNT_MAX: u64 = (1 << 48) - 1;
    /// The largest depth: of what is deeper than anybody looks.
    pub const DEPTH_MAX: u32 = (1 << 15) - 1;

    const LEAF: Extent = Extent { depth: 0, count: 1 };
    const TOO_DEEP: Extent = Extent { depth: Extent::DEPTH_MAX, count: Extent::COUNT_MAX };

    /// Of a value, looked for so many levels deep.
    pub(crate) fn within(value: &Value, levels: usize) -> Extent {
        match value {
            Value::List(list) => list.extent(levels),
            Value::Set(set) => set.extent(levels),
            Value::Map(map) => map.extent(levels),
            Value::Entry(entry) => entry.extent(levels),
            Value::BulkSet(set) => set.extent(levels),
            Value::Path(path) => path.extent(levels),
            Value::Tree(tree) => tree.extent(levels),
            _ => Extent::LEAF,
        }
    }

    /// Of what holds so many leaves.
    fn of_leaves(members: usize) -> Extent {
        Extent { depth: 1, count: (members as u64).saturating_add(1).min(Extent::COUNT_MAX) }
    }

    /// Of what holds this as well; none if it is too deep.
    fn holding(self, member: Extent) -> Option<Extent> {
        (member.depth < Extent::DEPTH_MAX).then(|| Extent {
            depth: self.depth.max(member.depth + 1),
            count: (self.count + member.count).min(Extent::COUNT_MAX),
        })
    }

    const fn packed(self) -> u64 {
        (self.depth as u64) << 48 | self.count
    }

    const fn unpacked(bits: u64) -> Extent {
        Extent { depth: (bits >> 48) as u32 & Extent::DEPTH_MAX, count: bits & Extent::COUNT_MAX }
    }
}

/// What holds values.
pub trait Holder: Send + Sync + 'static {
    /// Its extent, looked for so many levels deep in its members.
    fn measured(&self, levels: usize) -> Extent;

    /// About how many members have to be freed one by one; 0 if its memory goes in a few pieces. Cost: O(1).
    fn pieces(&self) -> usize;

    /// How many members there are, if all are flat and can be forgotten. Cost: a look at those in front of the first that is not.
    fn flat_members(&self) -> Option<usize> {
        None
    }

    /// Lets go of its members without freeing them, if they can be forgotten: to be called of flat ones.
    fn forget_members(&mut self) {}
}

fn flat_count(members: &[Value]) -> Option<usize> {
    members.iter().all(Value::is_flat).then_some(members.len())
}

/// Empties a list of flat members: its memory stays, and they hold none.
fn forget_all(members: &mut Vec<Value>) {
    std::mem::forget(members.drain(..));
}

/// How many of these have to be freed one by one, by the first of them.
fn pieces_of<'v>(count: usize, mut members: impl Iterator<Item = &'v Value>) -> usize {
    /// Members that are looked at; others are taken to be alike.
    const LOOKED_AT: usize = 16;
    if count >= MANY && members.by_ref().take(LOOKED_AT).any(|member| !member.is_flat()) { count } else { 0 }
}

/// Ends at the first member that is too deep: what is too deep is not remembered, so the others would be walked each time anew.
fn of_members<'v>(mut members: impl Iterator<Item = &'v Value>, levels: usize) -> Extent {
    let own = Extent { depth: 1, count: 1 };
    let all = members.try_fold(own, |own, member| own.holding(Extent::within(member, levels)));
    all.unwrap_or(Extent::TOO_DEEP)
}

impl Holder for Vec<Value> {
    fn measured(&self, levels: usize) -> Extent {
        of_members(self.iter(), levels)
    }

    fn pieces(&self) -> usize {
        pieces_of(self.len(), self.iter())
    }

    fn flat_members(&self) -> Option<usize> {
        flat_count(self)
    }

    fn forget_members(&mut self) {
        forget_all(self);
    }
}

impl Holder for ValueSet {
    fn measured(&self, levels: usize) -> Extent {
        of_members(self.iter(), levels)
    }

    fn pieces(&self) -> usize {
        pieces_of(self.len(), self.iter())
    }
}

impl Holder for ValueMap {
    fn measured(&self, levels: usize) -> Extent {
        of_members(self.iter().flat_map(|(key, value)| [key, value]), levels)
    }

    fn pieces(&self) -> usize {
        pieces_of(self.len(), self.iter().flat_map(|(key, value)| [key, value]))
    }

    /// Of one that shares its keys with others: these hold no values, and go when the last of them does.
    fn flat_members(&self) -> Option<usize> {
        let values = self.shares_keys().then(|| self.values())?;
        let count = 2 * values.len();
        values.into_iter().all(Value::is_flat).then_some(count)
    }

    fn forget_members(&mut self) {
        if let Some(values) = self.values_alone() {
            forget_all(values);
        }
    }
}

impl Holder for (Value, Value) {
    fn measured(&self, levels: usize) -> Extent {
        of_members([&self.0, &self.1].into_iter(), levels)
    }

    fn pieces(&self) -> usize {
        0
    }
}

impl Holder for BulkSet {
    fn measured(&self, levels: usize) -> Extent {
        of_members(self.counts.keys(), levels)
    }

    fn pieces(&self) -> usize {
        pieces_of(self.counts.len(), self.counts.keys())
    }
}

impl Holder for Path {
    fn measured(&self, levels: usize) -> Extent {
        of_members(self.objects.iter(), levels)
    }

    fn pieces(&self) -> usize {
        pieces_of(self.objects.len(), self.objects.iter())
    }

    fn flat_members(&self) -> Option<usize> {
        flat_count(&self.objects)
    }

    fn forget_members(&mut self) {
        forget_all(&mut self.objects);
    }
}

impl Holder for Tree {
    fn measured(&self, levels: usize) -> Extent {
        let Some(below) = levels.checked_sub(1) else { return Extent::TOO_DEEP };
        let own = Extent { depth: 1, count: 1 };
        let all = self.children.iter().try_fold(own, |own, (value, tree)| {
            own.holding(Extent::within(value, below))?.holding(tree.measured(below))
        });
        all.unwrap_or(Extent::TOO_DEEP)
    }

    fn pieces(&self) -> usize {
        // Each of them is a map.
        if self.children.len() >= MANY / 8 { self.children.len() } else { 0 }
    }
}

/// Beside a packed extent: all members are flat.
const IS_FLAT: u64 = 1 << 63;

struct Inner<T> {
    /// Packed, with [`IS_FLAT`]; 0 if it is not known.
    extent: AtomicU64,
    /// 0 if it is not known.
    hash: AtomicU64,
    value: T,
}

impl<T: Holder> Inner<T> {
    fn new(value: T) -> Inner<T> {
        // What is flat is a leaf.
        let extent = value.flat_members().map_or(0, |members| IS_FLAT | Extent::of_leaves(members).packed());
        Inner { extent: AtomicU64::new(extent), hash: AtomicU64::new(0), value }
    }
}

impl<T> Inner<T> {
    /// Whether all members are known to be flat.
    fn is_flat(&self) -> bool {
        self.extent.load(Ordering::Relaxed) & IS_FLAT != 0
    }
}

impl<T: Holder + Clone> Clone for Inner<T> {
    fn clone(&self) -> Inner<T> {
        Inner::new(self.value.clone())
    }
}

/// A value that holds others, shared: an [`Arc`] with the two differences that the module tells of.
pub struct Shared<T: Holder>(
    /// There until it is dropped.
    Option<Arc<Inner<T>>>,
);

impl Shared<Vec<Value>> {
    /// Adds members behind those that there are, and changes nothing else: what is flat stays so. Copied first if others have it as well.
    ///
    /// Errors: those of `add`; it has what was added before then.
    pub fn append<E>(this: &mut Self, add: impl FnOnce(&mut Vec<Value>) -> Result<(), E>) -> Result<(), E> {
        let (was_flat, from) = (this.inner().is_flat(), this.len());
        let list = Self::make_mut(this);
        let added = add(list);
        if was_flat && let Some(more) = flat_count(&list[from..]) {
            this.inner().extent.store(IS_FLAT | Extent::of_leaves(from + more).packed(), Ordering::Relaxed);
        }
        added
    }
}

impl<T: Holder> Shared<T> {
    /// Shares a value.
    pub fn new(value: T) -> Shared<T> {
        Shared(Some(Arc::new(Inner::new(value))))
    }

    /// Shares a value of `members` that are known to hold no others, so that nobody need look at them to measure it.
    pub fn of_leaves(value: T, members: usize) -> Shared<T> {
        let mut inner = Inner::new(value);
        if *inner.extent.get_mut() == 0 {
            *inner.extent.get_mut() = Extent::of_leaves(members).packed();
        }
        debug_assert_eq!(inner.value.measured(NESTING_MAX), Extent::of_leaves(members));
        Shared(Some(Arc::new(inner)))
    }

    fn inner(&self) -> &Arc<Inner<T>> {
        self.0.as_ref().expect("taken only when it is dropped")
    }

    /// To be changed; copied first if others have it as well.
    pub fn make_mut(this: &mut Shared<T>) -> &mut T
    where
        T: Clone,
    {
        let inner = Arc::make_mut(this.0.as_mut().expect("taken only when it is dropped"));
        *inner.extent.get_mut() = 0;
        *inner.hash.get_mut() = 0;
        &mut inner.value
    }

    /// Changes it, copied first if others have it as well; whether it is flat is seen anew.
    pub fn change<R>(this: &mut Shared<T>, change: impl FnOnce(&mut T) -> R) -> R
    where
        T: Clone,
    {
        let result = change(Self::make_mut(this));
        if let Some(members) = this.flat_members() {
            this.inner().extent.store(IS_FLAT | Extent::of_leaves(members).packed(), Ordering::Relaxed);
        }
        result
    }

    /// The value itself; a copy if others have it as well.
    pub fn unwrap_or_clone(mut this: Shared<T>) -> T
    where
        T: Clone,
    {
        let arc = this.0.take().expect("taken only when it is dropped");
        match Arc::try_unwrap(arc) {
            Ok(inner) => inner.value,
            Err(arc) => arc.value.clone(),
        }
    }

    /// The value itself, if nobody else has it.
    ///
    /// Errors: it is given back as it was.
    pub fn try_unwrap(mut this: Shared<T>) -> Result<T, Shared<T>> {
        let arc = this.0.take().expect("taken only when it is dropped");
        Arc::try_unwrap(arc).map(|inner| inner.value).map_err(|arc| Shared(Some(arc)))
    }

    /// Refers to it without keeping it.
    pub fn downgrade(this: &Shared<T>) -> Weak<dyn Send + Sync> {
        let weak: Weak<Inner<T>> = Arc::downgrade(this.inner());
        weak
    }

    /// Where it lies, for as long as it is there and not changed.
    pub fn place(this: &Shared<T>) -> usize {
        Arc::as_ptr(this.inner()) as usize
    }

    /// Hashes what it holds: by `hash` the first time, then by what that made of it.
    pub(crate) fn hash_once<H: Hasher>(&self, state: &mut H, hash: impl FnOnce(&T, &mut DefaultHasher)) {
        let inner = self.inner();
        let mut known = inner.hash.load(Ordering::Relaxed);
        if known == 0 {
            // Fixed keys, so that equal values hash equally within and across processes. Whoever hashes it finds the same.
            let mut hasher = DefaultHasher::new();
            hash(&inner.value, &mut hasher);
            known = hasher.finish().max(1);
            inner.hash.store(known, Ordering::Relaxed);
        }
        state.write_u64(known);
    }

    /// Whether their hashes, where both are known, say that they differ; or that they are the same one.
    fn known_equal(&self, other: &Shared<T>) -> Option<bool> {
        let (own, other) = (self.inner(), other.inner());
        if Arc::ptr_eq(own, other) {
            return Some(true);
        }
        let hashes = (own.hash.load(Ordering::Relaxed), other.hash.load(Ordering::Relaxed));
        (hashes.0 != 0 && hashes.1 != 0 && hashes.0 != hashes.1).then_some(false)
    }

    /// Its extent. Cost: its members the first time, then nothing.
    fn extent(&self, levels: usize) -> Extent {
        let inner = self.inner();
        // Whoever measures it finds the same.
        match inner.extent.load(Ordering::Relaxed) {
            0 => {}
            known => return Extent::unpacked(known),
        }
        let Some(below) = levels.checked_sub(1) else { return Extent::TOO_DEEP };
        let extent = inner.value.measured(below);
        // What was too deep from further out may be less from here.
        if extent.depth < Extent::DEPTH_MAX {
            inner.extent.store(extent.packed(), Ordering::Relaxed);
        }
        extent
    }
}

/// Members from which on freeing them is left to somebody else: it takes about a millisecond.
const MANY: usize = 1 << 14;

/// Who frees what has many members.
static FREES: OnceLock<Frees> = OnceLock::new();

/// Drops what it is handed when it will, or hands it back.
pub type Frees = fn(Box<dyn Send>) -> Option<Box<dyn Send>>;

/// Has values of very many members freed by somebody else than their last owner, who does so only with those that are handed back. Until they are freed,
/// whoever refers to them without keeping them ([`Shared::downgrade`]) sees them as if they had an owner. The first who says so is the one.
pub fn free_elsewhere(by: Frees) {
    let _ = FREES.set(by);
}

/// Levels that are freed one inside the other.
const FREED_INSIDE: u32 = 64;

thread_local! {
    /// Levels being freed on this thread.
    static FREEING: Cell<u32> = const { Cell::new(0) };
    /// What lies deeper, for the outermost of them.
    static DEEPER: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

impl<T: Holder> Drop for Shared<T> {
    #[inline]
    fn drop(&mut self) {
        let Some(arc) = self.0.take() else { return };
        // Others have it: nothing is freed. If they leave at this moment, one level goes without being counted.
        if Arc::strong_count(&arc) == 1 {
            free(arc);
        }
    }
}

fn free<T: Holder>(arc: Arc<Inner<T>>) {
    if arc.is_flat() {
        // Unless somebody has got it meanwhile.
        if let Some(mut inner) = Arc::into_inner(arc) {
            inner.value.forget_members();
        }
        return;
    }
    let level = FREEING.get();
    if let Some(by) = FREES.get()
        && arc.value.pieces() > 0
    {
        drop(by(Box::new(arc)));
        return;
    }
    if level == FREED_INSIDE {
        // At the end of a thread there may be no list any more; then it is freed here after all.
        let _ = DEEPER.try_with(|deeper| deeper.borrow_mut().push(Box::new(arc)));
        return;
    }
    FREEING.set(level + 1);
    drop(arc);
    if level == 0 {
        while let Some(next) = DEEPER.with_borrow_mut(Vec::pop) {
            drop(next);
        }
    }
    FREEING.set(level);
}

impl<T: Holder> Clone for Shared<T> {
    #[inline]
    fn clone(&self) -> Shared<T> {
        Shared(self.0.clone())
    }
}

impl<T: Holder> Deref for Shared<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner().value
    }
}

impl<T: Holder> From<T> for Shared<T> {
    fn from(value: T) -> Shared<T> {
        Shared::new(value)
    }
}

impl<T: Holder + Default> Default for Shared<T> {
    fn default() -> Shared<T> {
        Shared::new(T::default())
    }
}

impl<T: Holder + PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Shared<T>) -> bool {
        self.known_equal(other).unwrap_or_else(|| **self == **other)
    }
}

impl<T: Holder + Eq> Eq for Shared<T> {}

impl<T: Holder + Hash> Hash for Shared<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash_once(state, |value, state| value.hash(state));
    }
}

impl<T: Holder + fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(members: Vec<Value>) -> Value {
        Value::List(members.into())
    }

    #[test]
    fn what_is_flat_is_known_and_a_change_is_seen() {
        let is_flat = |value: &Shared<Vec<Value>>| value.inner().is_flat();
        let counted: Arc<str> = Arc::from("counted");
        let numbers = || vec![Value::Int(1), Value::Double(0.5), Value::Vertex(crate::VertexId(7))];
        let mut list = Shared::new(numbers());
        assert!(is_flat(&list) && is_flat(&Shared::of_leaves(numbers(), 3)));
        assert_eq!(list.extent(NESTING_MAX), Extent { depth: 1, count: 4 });
        let copy = list.clone();
        let append = |list: &mut Shared<Vec<Value>>, value: Value| {
            Shared::append(list, |list| {
                list.push(value);
                Ok::<_, ()>(())
            })
        };
        append(&mut list, Value::Null).unwrap();
        assert!(is_flat(&list) && list.extent(NESTING_MAX) == Extent { depth: 1, count: 5 });
        assert_eq!((copy.len(), Shared::make_mut(&mut list).pop()), (3, Some(Value::Null)));
        append(&mut list, Value::String(counted.clone())).unwrap();
        assert!(!is_flat(&list) && is_flat(&copy) && copy.len() == 3);
        assert_eq!((Arc::strong_count(&counted), Shared::unwrap_or_clone(copy)), (2, numbers()));
        let changed = Shared::new(Shared::unwrap_or_clone(list));
        assert!(!is_flat(&changed) && changed.len() == 4);
        drop(changed);
        assert_eq!(Arc::strong_count(&counted), 1, "what is not flat is freed");
        let path = Shared::new(Path::labelled(numbers(), vec![None, None, Some(Arc::from([counted.clone()]))]));
        assert!(path.inner().is_flat());
        drop(path);
        assert_eq!(Arc::strong_count(&counted), 1, "labels are no members");
    }

    #[test]
    fn what_holds_leaves_only_is_measured_without_a_look() {
        for members in [vec![], vec![Value::Int(1), Value::from("x"), Value::Null]] {
            let count = members.len();
            let shared = Shared::of_leaves(members.clone(), count);
            assert_eq!(shared.extent(NESTING_MAX), Shared::new(members).extent(NESTING_MAX));
            assert_eq!(Value::List(shared).extent(), Extent { depth: 1, count: count as u64 + 1 });
        }
        // A change is seen.
        let mut shared = Shared::of_leaves(vec![Value::Int(1)], 1);
        Shared::make_mut(&mut shared).push(list(vec![]));
        assert_eq!(shared.extent(NESTING_MAX), Extent { depth: 2, count: 3 });
    }

    #[test]
    fn a_million_levels_are_freed() {
        let mut value = Value::Int(1);
        for level in 0..1_000_000 {
            value = match level % 3 {
                0 => list(vec![value]),
                1 => Value::Entry((Value::Int(0), value).into()),
                _ => Value::Path(Path::unlabelled(vec![value]).into()),
            };
        }
        let copy = value.clone();
        drop(value);
        assert_eq!(copy.extent().depth, Extent::DEPTH_MAX, "nobody looks so deep");
        let on_a_small_stack = std::thread::Builder::new().stack_size(256 << 10).spawn(move || drop(copy)).unwrap();
        on_a_small_stack.join().unwrap();
        assert_eq!((FREEING.get(), DEEPER.with_borrow(Vec::len)), (0, 0));
    }

    #[test]
    fn what_has_very_many_members_is_handed_over() {
        use std::sync::Mutex;
        static HANDED_OVER: Mutex<Vec<Box<dyn Send>>> = Mutex::new(Vec::new());
        free_elsewhere(|value| {
            HANDED_OVER.lock().unwrap().push(value);
            None
        });
        let texts = |count: usize| list((0..count).map(|number| Value::from(number.to_string())).collect());
        // Others that free values meanwhile have none that large.
        let is_handed_over = |value: Value| {
            let Value::List(members) = &value else { unreachable!() };
            let weak = Shared::downgrade(members);
            drop(value);
            let is_there = weak.strong_count() > 0;
            HANDED_OVER.lock().unwrap().clear();
            assert_eq!(weak.strong_count(), 0);
            is_there
        };
        assert!(is_handed_over(texts(MANY)));
        assert!(!is_handed_over(texts(MANY - 1)));
        let numbers = (0..MANY as i64).map(Value::Long).collect();
        assert!(!is_handed_over(list(numbers)), "its memory is one piece");
        let large = texts(MANY);
        assert!(!is_handed_over(list(vec![large.clone()])) && large.extent().count > MANY as u64);
    }

    #[test]
    fn extents_are_found_once_and_anew_after_a_change() {
        assert_eq!(Value::Int(1).extent(), Extent { depth: 0, count: 1 });
        let inner = list(vec![Value::Int(1), Value::Int(2)]);
        assert_eq!(inner.extent(), Extent { depth: 1, count: 3 });
        let outer = list(vec![inner.clone(), inner.clone(), Value::Int(3)]);
        assert_eq!(outer.extent(), Extent { depth: 2, count: 8 });
        let Value::List(mut members) = outer else { unreachable!() };
        Shared::make_mut(&mut members).push(Value::Int(4));
        assert_eq!(Value::List(members).extent(), Extent { depth: 2, count: 9 });
        assert_eq!(inner.extent(), Extent { depth: 1, count: 3 });
    }

    #[test]
    fn what_doubles_again_and_again_is_counted_and_not_walked() {
        let mut value = Value::Int(1);
        for level in 1..=200 {
            value = list(vec![value.clone(), value]);
            assert_eq!(value.extent().depth, level);
        }
        assert_eq!(value.extent().count, Extent::COUNT_MAX);
        // Nor if nobody asked while it grew.
        for _ in 0..2000 {
            value = list(vec![value.clone(), value]);
        }
        assert_eq!(value.extent().depth, Extent::DEPTH_MAX);
    }

    #[test]
    fn what_doubles_is_hashed_once_and_anew_after_a_change() {
        let hash = |value: &Value| {
            let mut hasher = DefaultHasher::new();
            std::hash::Hash::hash(value, &mut hasher);
            hasher.finish()
        };
        let doubled = || {
            let mut value = Value::Int(1);
            for level in 0..200 {
                value = match level % 4 {
                    0 => list(vec![value.clone(), value]),
                    1 => Value::Entry((value.clone(), value).into()),
                    2 => Value::Set([Value::Int(level), value].into_iter().collect::<ValueSet>().into()),
                    _ => Value::Path(Path::unlabelled(vec![value.clone(), value]).into()),
                };
                hash(&value);
            }
            value
        };
        let (value, other) = (doubled(), doubled());
        assert_eq!(hash(&value), hash(&other));
        let Value::Path(mut changed) = value.clone() else { unreachable!() };
        Shared::make_mut(&mut changed).objects[0] = Value::Int(7);
        let changed = Value::Path(changed);
        assert_ne!(hash(&changed), hash(&value));
        assert!(changed != value && value == value.clone());
        let small = |last| list(vec![Value::Int(1), list(vec![Value::Int(last)])]);
        assert!(small(2) == small(2) && small(2) != small(3));
        let (hashed, not_hashed) = (small(2), small(2));
        assert_ne!(hash(&hashed), hash(&small(3)));
        assert_eq!(hashed, not_hashed, "one hash says nothing");
    }

    #[test]
    fn levels_beyond_the_limit_are_told_from_those_within() {
        let mut value = Value::Int(1);
        for _ in 0..=NESTING_MAX {
            value = list(vec![value]);
        }
        assert!(value.extent().depth > NESTING_MAX as u32);
        let Value::List(members) = &value else { unreachable!() };
        assert_eq!(members[0].extent().depth, NESTING_MAX as u32);
    }

    #[test]
    fn trees_have_a_level_for_each_level() {
        let leaf = Tree::default();
        let inner = Tree { children: [(Value::Int(1), leaf)].into_iter().collect() };
        let outer = Tree { children: [(Value::Int(2), inner)].into_iter().collect() };
        assert_eq!(Value::Tree(outer.into()).extent(), Extent { depth: 3, count: 5 });
    }
}
