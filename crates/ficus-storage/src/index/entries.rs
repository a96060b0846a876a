//! The entries of an index: those over the elements of the base in a mapped file, and what changed since in pages above it.
//!
//! ```text
//! entries = run − gone + added
//! ```
//! The *run* ([`IndexRun`]) has what follows from the base alone. A change of the overlay adds an entry, or marks one of the run as gone by its rank. So
//! no checkpoint writes entries: whoever opens a base with its runs and puts the overlay on it has the same entries again. An index without a run, of
//! a graph without a base or one that was created since, has all entries in pages.

use std::sync::Arc;

use super::{IndexShape, KeyBytes, KeyEntry, value_key};
use crate::ordered_pages::OrderedPages;
use crate::property_index::IndexEntry;
use crate::root::GraphRoot;
use crate::segment::{IndexRun, IndexRunBuilder, KeyForm, RunPlace};
use crate::value_key::index_hash;

/// What an index is made of: a key as bytes, and an element.
pub(crate) trait Entry: Clone + Ord {
    /// What its keys are.
    const FORM: KeyForm;

    /// The entry of an element.
    fn new(key: &[u8], element: u64) -> Self;

    /// Hands the key to `read`.
    fn with_key<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R;

    /// The element.
    fn element(&self) -> u64;

    /// The same key for another element.
    fn of_element(&self, element: u64) -> Self;

    /// Appends the entries of an element that is there, in no order; one may be there twice.
    fn put_entries(root: &GraphRoot, shape: &IndexShape, element: u64, out: &mut Vec<Self>);
}

impl Entry for IndexEntry {
    const FORM: KeyForm = KeyForm::Hashes;

    fn new(key: &[u8], element: u64) -> IndexEntry {
        // Of a damaged file a key may be shorter.
        let hash = key.iter().fold(0, |hash, byte| hash << 8 | u64::from(*byte));
        IndexEntry { hash, element }
    }

    fn with_key<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(&self.hash.to_be_bytes())
    }

    fn element(&self) -> u64 {
        self.element
    }

    fn of_element(&self, element: u64) -> IndexEntry {
        IndexEntry { element, ..*self }
    }

    fn put_entries(root: &GraphRoot, shape: &IndexShape, element: u64, out: &mut Vec<IndexEntry>) {
        root.visit_values(shape.elements, element, shape.keys[0], &mut |value| {
            out.extend(index_hash(value).map(|hash| IndexEntry { hash, element }));
        });
    }
}

impl Entry for KeyEntry {
    const FORM: KeyForm = KeyForm::Ordered;

    fn new(key: &[u8], element: u64) -> KeyEntry {
        KeyEntry { key: KeyBytes::new(key), element }
    }

    fn with_key<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(self.key.as_slice())
    }

    fn element(&self) -> u64 {
        self.element
    }

    fn of_element(&self, element: u64) -> KeyEntry {
        KeyEntry { key: self.key.clone(), element }
    }

    fn put_entries(root: &GraphRoot, shape: &IndexShape, element: u64, out: &mut Vec<KeyEntry>) {
        if shape.is_composite() {
            out.extend(root.composite_key_of(shape, element).map(|key| KeyEntry { key, element }));
            return;
        }
        root.visit_values(shape.elements, element, shape.keys[0], &mut |value| {
            out.push(KeyEntry { key: value_key(value), element });
        });
    }
}

/// An ordered set of entries, cheap to clone and to change a little.
#[derive(Clone, Debug)]
pub(crate) struct EntrySet<T> {
    run: Option<Arc<IndexRun>>,
    /// None of them is in the run.
    added: OrderedPages<T>,
    /// Ranks in the run.
    gone: OrderedPages<u64>,
}

impl<T> Default for EntrySet<T> {
    fn default() -> EntrySet<T> {
        EntrySet { run: None, added: OrderedPages::default(), gone: OrderedPages::default() }
    }
}

impl<T: Entry> EntrySet<T> {
    /// Entries in strictly ascending order, all in pages.
    pub(crate) fn from_ascending(entries: &[T]) -> EntrySet<T> {
        EntrySet { added: OrderedPages::from_ascending(entries), ..EntrySet::default() }
    }

    /// What a run of the base has, with what the overlay of `root` says of its elements: reads these, as they are and as `base`, which is the
    /// same graph without an overlay, has them.
    pub(crate) fn of_overlay(
        run: Arc<IndexRun>,
        root: &GraphRoot,
        base: &GraphRoot,
        shape: &IndexShape,
    ) -> EntrySet<T> {
        let (mut added, mut gone) = (Vec::new(), Vec::new());
        let entries_in = |root: &GraphRoot, element: u64, out: &mut Vec<T>| {
            out.clear();
            let label = root.label_of(shape.elements, element);
            if label.is_some_and(|label| shape.label.is_none_or(|own| own == label)) {
                T::put_entries(root, shape, element, out);
                out.sort_unstable();
                out.dedup();
            }
        };
        let (mut before, mut now) = (Vec::new(), Vec::new());
        root.visit_overlay_elements(shape.elements, &mut |element| {
            entries_in(base, element, &mut before);
            entries_in(root, element, &mut now);
            let lost = before.iter().filter(|entry| now.binary_search(entry).is_err());
            // Of a damaged run not all may be there.
            gone.extend(lost.filter_map(|entry| entry.with_key(|key| run.rank_of(key, element))));
            added.extend(now.drain(..).filter(|entry| before.binary_search(entry).is_err()));
        });
        added.sort_unstable();
        gone.sort_unstable();
        let (added, gone) = (OrderedPages::from_ascending(&added), OrderedPages::from_ascending(&gone));
        EntrySet { run: Some(run), added, gone }
    }

    /// What a run has.
    pub(crate) fn of_run(run: Arc<IndexRun>) -> EntrySet<T> {
        EntrySet { run: Some(run), ..EntrySet::default() }
    }

    /// The file under the pages.
    pub(crate) fn run(&self) -> Option<&Arc<IndexRun>> {
        self.run.as_ref()
    }

    /// Entries in pages, and marks of those that are gone.
    pub(crate) fn pages_len(&self) -> u64 {
        self.added.len() + self.gone.len()
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> u64 {
        self.run.as_ref().map_or(0, |run| run.len()) - self.gone.len() + self.added.len()
    }

    fn rank_of(&self, entry: &T) -> Option<u64> {
        let run = self.run.as_ref()?;
        entry.with_key(|key| run.rank_of(key, entry.element()))
    }

    /// True if the entry is there.
    pub(crate) fn contains(&self, entry: &T) -> bool {
        match self.rank_of(entry) {
            Some(rank) => !self.gone.contains(&rank),
            None => self.added.contains(entry),
        }
    }

    /// Adds an entry; does nothing if it is there.
    pub(crate) fn insert(&mut self, entry: T) {
        match self.rank_of(&entry) {
            Some(rank) => self.gone.remove(&rank),
            None => self.added.insert(entry),
        };
    }

    /// Removes an entry; does nothing if it is not there.
    pub(crate) fn remove(&mut self, entry: &T) {
        match self.rank_of(entry) {
            Some(rank) => self.gone.insert(rank),
            None => self.added.remove(entry),
        };
    }

    /// Hands the entries at or after `from` to `visit`, ascending, until it returns false.
    pub(crate) fn visit_from(&self, from: &T, visit: impl FnMut(&T) -> bool) {
        self.ascend(Some(from), visit);
    }

    /// Hands all entries to `visit`, ascending, until it returns false.
    pub(crate) fn visit_all(&self, visit: impl FnMut(&T) -> bool) {
        self.ascend(None, visit);
    }

    fn ascend(&self, from: Option<&T>, mut visit: impl FnMut(&T) -> bool) {
        let mut open = true;
        let mut stored = self.run.as_ref().map(|run| RunWalk::new(run, &self.gone, place(run, from)));
        let mut next = stored.as_mut().and_then(RunWalk::next);
        let mut take = |entries: &[T]| {
            for entry in entries {
                while let Some(before) = next.as_ref().filter(|before| *before < entry) {
                    open = visit(before);
                    if !open {
                        return false;
                    }
                    next = stored.as_mut().and_then(RunWalk::next);
                }
                open = visit(entry);
                if !open {
                    return false;
                }
            }
            true
        };
        match from {
            Some(from) => self.added.visit_from(from, &mut take),
            None => self.added.visit_all(&mut take),
        }
        while open && let Some(entry) = next {
            open = visit(&entry);
            next = stored.as_mut().and_then(RunWalk::next);
        }
    }

    /// Hands the entries before `before`, or all, to `visit`, descending, until it returns false.
    pub(crate) fn visit_before(&self, before: Option<&T>, mut visit: impl FnMut(&T) -> bool) {
        let mut open = true;
        let end = |run: &IndexRun| before.map_or_else(|| run.end(), |before| place(run, Some(before)));
        let mut stored = self.run.as_ref().map(|run| RunWalk::new(run, &self.gone, end(run)));
        let mut next = stored.as_mut().and_then(RunWalk::previous);
        self.added.visit_before(before, |entries| {
            for entry in entries.iter().rev() {
                while let Some(behind) = next.as_ref().filter(|behind| *behind > entry) {
                    open = visit(behind);
                    if !open {
                        return false;
                    }
                    next = stored.as_mut().and_then(RunWalk::previous);
                }
                open = visit(entry);
                if !open {
                    return false;
                }
            }
            true
        });
        while open && let Some(entry) = next {
            open = visit(&entry);
            next = stored.as_mut().and_then(RunWalk::previous);
        }
    }

    /// The entries as the content of a file, in linear time.
    pub(crate) fn to_run(&self) -> IndexRunBuilder {
        let mut builder = IndexRunBuilder::default();
        self.visit_all(|entry| {
            entry.with_key(|key| builder.add(key, entry.element()));
            true
        });
        builder
    }

    /// The same entries above another run, in linear time.
    pub(crate) fn on_run(&self, run: Arc<IndexRun>) -> EntrySet<T> {
        let (mut added, mut gone) = (Vec::new(), Vec::new());
        let nothing_gone = OrderedPages::default();
        let mut walk = RunWalk::new(&run, &nothing_gone, RunPlace { key: 0, rank: 0 });
        let mut next = walk.next_ranked();
        self.visit_all(|entry: &T| {
            while let Some((_, rank)) = next.take_if(|(stored, _): &mut (T, u64)| &*stored < entry) {
                gone.push(rank);
                next = walk.next_ranked();
            }
            match &next {
                Some((stored, _)) if stored == entry => next = walk.next_ranked(),
                _ => added.push(entry.clone()),
            }
            true
        });
        while let Some((_, rank)) = next {
            gone.push(rank);
            next = walk.next_ranked();
        }
        let (added, gone) = (OrderedPages::from_ascending(&added), OrderedPages::from_ascending(&gone));
        EntrySet { run: Some(run), added, gone }
    }

    /// Checks order and counts, and that an entry is in one place only.
    pub(crate) fn check_invariants(&self) -> Result<(), String> {
        self.added.check_invariants()?;
        self.gone.check_invariants()?;
        let Some(run) = &self.run else {
            return if self.gone.len() == 0 {
                Ok(())
            } else {
                Err("entries are gone of a run that is not there".into())
            };
        };
        let mut is_sound = true;
        self.gone.visit_all(|ranks| {
            is_sound &= ranks.iter().all(|rank| *rank < run.len());
            is_sound
        });
        self.added.visit_all(|entries| {
            is_sound &= entries.iter().all(|entry| self.rank_of(entry).is_none());
            is_sound
        });
        if is_sound { Ok(()) } else { Err("the pages of an index contradict the file under them".to_string()) }
    }
}

/// Where a walk over a run begins.
fn place<T: Entry>(run: &IndexRun, from: Option<&T>) -> RunPlace {
    from.map_or(RunPlace { key: 0, rank: 0 }, |from| from.with_key(|key| run.lower_bound(key, from.element())))
}

/// A walk over the entries of a run that are not gone.
struct RunWalk<'a, T> {
    run: &'a IndexRun,
    gone: Option<&'a OrderedPages<u64>>,
    place: RunPlace,
    /// The last entry and the number of its key, if others may have that: long keys are shared.
    last: Option<(u64, T)>,
}

impl<'a, T: Entry> RunWalk<'a, T> {
    fn new(run: &'a IndexRun, gone: &'a OrderedPages<u64>, place: RunPlace) -> RunWalk<'a, T> {
        RunWalk { run, gone: Some(gone).filter(|gone| gone.len() > 0), place, last: None }
    }

    fn is_gone(&self, rank: u64) -> bool {
        self.gone.is_some_and(|gone| gone.contains(&rank))
    }

    fn entry(&mut self, place: RunPlace) -> T {
        let element = self.run.element(place.rank);
        let entry = match &self.last {
            Some((key, last)) if *key == place.key => last.of_element(element),
            _ => T::new(self.run.key(place.key), element),
        };
        self.last = self.run.has_several(place.key).then(|| (place.key, entry.clone()));
        entry
    }

    fn next_ranked(&mut self) -> Option<(T, u64)> {
        while self.place.rank < self.run.len() {
            let place = self.place;
            self.place = self.run.next(place);
            if !self.is_gone(place.rank) {
                return Some((self.entry(place), place.rank));
            }
        }
        None
    }

    fn next(&mut self) -> Option<T> {
        self.next_ranked().map(|(entry, _)| entry)
    }

    fn previous(&mut self) -> Option<T> {
        loop {
            self.place = self.run.previous(self.place)?;
            if !self.is_gone(self.place.rank) {
                return Some(self.entry(self.place));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::segment::SegmentOrigin;

    fn some_entry() -> impl Strategy<Value = KeyEntry> {
        // Also keys that are shared and not inside.
        let key = prop_oneof![prop::collection::vec(0u8..3, 0..4), prop::collection::vec(0u8..2, 23..25)];
        (key, 0u64..6).prop_map(|(key, element)| KeyEntry { key: KeyBytes::new(&key), element })
    }

    fn run_of<T: Entry>(entries: &BTreeSet<T>) -> Arc<IndexRun> {
        let mut builder = IndexRunBuilder::default();
        entries.iter().for_each(|entry| entry.with_key(|key| builder.add(key, entry.element())));
        let bytes = builder.finish(SegmentOrigin::default(), 0, T::FORM).into_bytes();
        Arc::new(IndexRun::open(bytes, "run", false, T::FORM).unwrap().unwrap())
    }

    fn contents<T: Entry>(set: &EntrySet<T>) -> Vec<T> {
        let mut all = Vec::new();
        set.visit_all(|entry| {
            all.push(entry.clone());
            true
        });
        all
    }

    /// Every read of a set is that of its model.
    fn check<T: Entry + std::fmt::Debug>(set: &EntrySet<T>, model: &BTreeSet<T>, asked: &[T]) {
        assert_eq!(set.check_invariants(), Ok(()));
        assert_eq!(set.len(), model.len() as u64);
        assert_eq!(contents(set), model.iter().cloned().collect::<Vec<T>>());
        for from in asked {
            assert_eq!(set.contains(from), model.contains(from));
            for limit in [1, 3, usize::MAX] {
                let mut tail = Vec::new();
                set.visit_from(from, |entry| {
                    tail.push(entry.clone());
                    tail.len() < limit
                });
                assert_eq!(tail, model.range(from..).take(limit).cloned().collect::<Vec<T>>());
                for before in [Some(from), None] {
                    let mut head = Vec::new();
                    set.visit_before(before, |entry| {
                        head.push(entry.clone());
                        head.len() < limit
                    });
                    let expected = model.iter().rev().filter(|entry| before.is_none_or(|before| *entry < before));
                    assert_eq!(head, expected.take(limit).cloned().collect::<Vec<T>>());
                }
            }
        }
    }

    fn agrees_with_a_btree_set<T: Entry + std::fmt::Debug>(stored: Vec<T>, changes: Vec<(bool, T)>, other: Vec<T>) {
        let mut model: BTreeSet<T> = stored.into_iter().collect();
        let mut set = EntrySet::of_run(run_of(&model));
        let asked: Vec<T> = changes.iter().map(|(_, entry)| entry.clone()).chain(other.clone()).take(8).collect();
        let mut versions = vec![(set.clone(), model.clone())];
        for (step, (insert, entry)) in changes.into_iter().enumerate() {
            if insert {
                set.insert(entry.clone());
                model.insert(entry);
            } else {
                set.remove(&entry);
                model.remove(&entry);
            }
            if step % 7 == 0 {
                versions.push((set.clone(), model.clone()));
            }
        }
        versions.push((set, model));
        let other = run_of(&other.into_iter().collect());
        for (set, model) in versions {
            check(&set, &model, &asked);
            check(&set.on_run(other.clone()), &model, &asked);
            let image = set.to_run().finish(SegmentOrigin::default(), 0, T::FORM).into_bytes();
            let run = Arc::new(IndexRun::open(image, "run", false, T::FORM).unwrap().unwrap());
            run.verify().unwrap();
            let moved = set.on_run(run);
            assert_eq!(moved.pages_len(), 0);
            check(&moved, &model, &asked);
        }
    }

    proptest! {
        #[test]
        fn ordered_entries_over_a_run_agree_with_a_btree_set(
            stored in prop::collection::vec(some_entry(), 0..40),
            changes in prop::collection::vec((any::<bool>(), some_entry()), 0..60),
            other in prop::collection::vec(some_entry(), 0..40),
        ) {
            agrees_with_a_btree_set(stored, changes, other);
        }

        #[test]
        fn hashed_entries_over_a_run_agree_with_a_btree_set(
            stored in prop::collection::vec((0u64..12, 0u64..4), 0..40),
            changes in prop::collection::vec((any::<bool>(), (0u64..12, 0u64..4)), 0..60),
            other in prop::collection::vec((0u64..12, 0u64..4), 0..40),
        ) {
            let entry = |(hash, element)| IndexEntry { hash: u64::wrapping_mul(hash, 0x2000_0000_0000_0003), element };
            agrees_with_a_btree_set(
                stored.into_iter().map(entry).collect(),
                changes.into_iter().map(|(insert, change)| (insert, entry(change))).collect(),
                other.into_iter().map(entry).collect(),
            );
        }
    }
}
