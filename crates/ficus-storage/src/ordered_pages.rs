//! A persistent ordered set of small entries: the one structure under indexes and long adjacency runs.
//!
//! It is a B+-tree whose nodes are shared between versions. A clone is one counter; a change copies only the nodes on its
//! path, and only those that another version still holds. Leaves are plain arrays, so reading a run hands out slices.
//! A leaf that overflows at its end is cut there and not in the middle: entries that arrive in order fill leaves.
//!
//! Depth is at most 13 for 2^64 entries, so recursion is bounded.

use std::sync::Arc;

/// Entries of a branch; more makes point updates copy more, fewer makes trees deeper.
const BRANCH_LIMIT: usize = 32;

/// An ordered set of `T`, cheap to clone and to change a little.
#[derive(Debug)]
pub(crate) struct OrderedPages<T> {
    root: Option<Arc<Node<T>>>,
    length: u64,
}

impl<T> Clone for OrderedPages<T> {
    fn clone(&self) -> OrderedPages<T> {
        OrderedPages { root: self.root.clone(), length: self.length }
    }
}

impl<T> Default for OrderedPages<T> {
    fn default() -> OrderedPages<T> {
        OrderedPages { root: None, length: 0 }
    }
}

#[derive(Clone, Debug)]
enum Node<T> {
    Leaf(Vec<T>),
    /// `firsts[i]` is a lower bound of what is in `children[i]` and an upper bound of what is in `children[i - 1]`.
    Branch {
        firsts: Vec<T>,
        children: Vec<Arc<Node<T>>>,
    },
}

enum Inserted<T> {
    Present,
    Done,
    Split(T, Arc<Node<T>>),
}

impl<T: Clone + Ord> OrderedPages<T> {
    /// Entries of a leaf: about a kilobyte.
    const LEAF_LIMIT: usize = {
        let fit = 1024 / size_of::<T>();
        if fit < 8 { 8 } else { fit }
    };

    /// Number of entries.
    pub(crate) fn len(&self) -> u64 {
        self.length
    }

    /// Adds an entry; false if it was there.
    pub(crate) fn insert(&mut self, entry: T) -> bool {
        let Some(root) = &mut self.root else {
            self.root = Some(Arc::new(Node::Leaf(vec![entry])));
            self.length = 1;
            return true;
        };
        match root.insert(entry, Self::LEAF_LIMIT) {
            Inserted::Present => return false,
            Inserted::Done => {}
            Inserted::Split(first, right) => {
                let left = root.clone();
                *root = Arc::new(Node::Branch { firsts: vec![left.first(), first], children: vec![left, right] });
            }
        }
        self.length += 1;
        true
    }

    /// Removes an entry; false if it was not there.
    pub(crate) fn remove(&mut self, entry: &T) -> bool {
        if !self.contains(entry) {
            return false;
        }
        let Some(root) = &mut self.root else { return false };
        root.remove(entry, Self::LEAF_LIMIT);
        self.length -= 1;
        // A root with one child gives way to it; an empty leaf to nothing.
        loop {
            let only_child = match self.root.as_deref() {
                Some(Node::Branch { children, .. }) if children.len() == 1 => Some(children[0].clone()),
                Some(Node::Leaf(entries)) if entries.is_empty() => None,
                _ => return true,
            };
            let done = only_child.is_none();
            self.root = only_child;
            if done {
                return true;
            }
        }
    }

    /// True if the entry is there.
    pub(crate) fn contains(&self, entry: &T) -> bool {
        let mut node = match &self.root {
            Some(node) => node.as_ref(),
            None => return false,
        };
        loop {
            match node {
                Node::Leaf(entries) => return entries.binary_search(entry).is_ok(),
                Node::Branch { firsts, children } => node = &children[child_of(firsts, entry)],
            }
        }
    }

    /// Hands the entries at or after `from` to `visit`, in order, in slices, until it returns false.
    pub(crate) fn visit_from(&self, from: &T, mut visit: impl FnMut(&[T]) -> bool) {
        if let Some(root) = &self.root {
            root.visit_from(Some(from), &mut visit);
        }
    }

    /// Hands the entries before `before`, or all, to `visit`, from the end to the beginning, in ascending slices, until it
    /// returns false.
    pub(crate) fn visit_before(&self, before: Option<&T>, mut visit: impl FnMut(&[T]) -> bool) {
        if let Some(root) = &self.root {
            root.visit_before(before, &mut visit);
        }
    }

    /// Hands all entries to `visit`, in order, in slices, until it returns false.
    pub(crate) fn visit_all(&self, mut visit: impl FnMut(&[T]) -> bool) {
        if let Some(root) = &self.root {
            root.visit_from(None, &mut visit);
        }
    }

    /// Builds a set from entries in strictly ascending order, in linear time and with full leaves.
    pub(crate) fn from_ascending(entries: &[T]) -> OrderedPages<T> {
        debug_assert!(entries.is_sorted_by(|a, b| a < b), "entries must ascend");
        let mut level: Vec<Arc<Node<T>>> =
            entries.chunks(Self::LEAF_LIMIT).map(|chunk| Arc::new(Node::Leaf(chunk.to_vec()))).collect();
        while level.len() > 1 {
            level = level
                .chunks(BRANCH_LIMIT)
                .map(|children| {
                    let firsts = children.iter().map(|child| child.first()).collect();
                    Arc::new(Node::Branch { firsts, children: children.to_vec() })
                })
                .collect();
        }
        OrderedPages { root: level.pop(), length: entries.len() as u64 }
    }

    /// Checks order, bounds and the count; for tests and `check_invariants`.
    pub(crate) fn check_invariants(&self) -> Result<(), String> {
        let mut previous: Option<T> = None;
        let mut count = 0u64;
        let mut ordered = true;
        self.visit_all(|entries| {
            for entry in entries {
                ordered &= previous.as_ref().is_none_or(|before| before < entry);
                previous = Some(entry.clone());
                count += 1;
            }
            true
        });
        if !ordered {
            return Err("entries out of order".to_string());
        }
        if count != self.length {
            return Err(format!("length says {} but there are {count} entries", self.length));
        }
        Ok(())
    }
}

/// The child that holds `entry`, if any does.
fn child_of<T: Ord>(firsts: &[T], entry: &T) -> usize {
    firsts.partition_point(|first| first <= entry).saturating_sub(1)
}

impl<T: Clone + Ord> Node<T> {
    fn first(&self) -> T {
        match self {
            Node::Leaf(entries) => entries[0].clone(),
            Node::Branch { firsts, .. } => firsts[0].clone(),
        }
    }

    fn size(&self) -> usize {
        match self {
            Node::Leaf(entries) => entries.len(),
            Node::Branch { children, .. } => children.len(),
        }
    }

    fn insert(self: &mut Arc<Self>, entry: T, leaf_limit: usize) -> Inserted<T> {
        match Arc::make_mut(self) {
            Node::Leaf(entries) => {
                // Most entries arrive in order.
                let position = match entries.last() {
                    Some(last) if *last < entry => entries.len(),
                    _ => match entries.binary_search(&entry) {
                        Ok(_) => return Inserted::Present,
                        Err(position) => position,
                    },
                };
                if entries.len() < leaf_limit {
                    entries.insert(position, entry);
                    return Inserted::Done;
                }
                let cut = if position == entries.len() { position } else { entries.len() / 2 };
                let mut right = entries.split_off(cut);
                entries.shrink_to_fit();
                if position >= cut && (position > cut || right.is_empty()) {
                    right.insert(position - cut, entry);
                } else {
                    entries.insert(position, entry);
                }
                Inserted::Split(right[0].clone(), Arc::new(Node::Leaf(right)))
            }
            Node::Branch { firsts, children } => {
                let position = child_of(firsts, &entry);
                // A lower bound stays one: the leftmost child takes everything smaller.
                if entry < firsts[position] {
                    firsts[position] = entry.clone();
                }
                match children[position].insert(entry, leaf_limit) {
                    Inserted::Present => return Inserted::Present,
                    Inserted::Done => {}
                    Inserted::Split(first, right) => {
                        firsts.insert(position + 1, first);
                        children.insert(position + 1, right);
                    }
                }
                if children.len() <= BRANCH_LIMIT {
                    return Inserted::Done;
                }
                let cut = if position + 2 == children.len() { children.len() - 1 } else { children.len() / 2 };
                let right = Node::Branch { firsts: firsts.split_off(cut), children: children.split_off(cut) };
                Inserted::Split(right.first(), Arc::new(right))
            }
        }
    }

    /// Removes an entry that is known to be there. Small neighbours are joined, so that a set that shrinks gives its
    /// memory back.
    fn remove(self: &mut Arc<Self>, entry: &T, leaf_limit: usize) {
        match Arc::make_mut(self) {
            Node::Leaf(entries) => {
                if let Ok(position) = entries.binary_search(entry) {
                    entries.remove(position);
                }
            }
            Node::Branch { firsts, children } => {
                let position = child_of(firsts, entry);
                children[position].remove(entry, leaf_limit);
                if children[position].size() == 0 {
                    firsts.remove(position);
                    children.remove(position);
                    return;
                }
                let left = if position + 1 < children.len() { position } else { position.saturating_sub(1) };
                if left + 1 < children.len() && joinable(&children[left], &children[left + 1], leaf_limit) {
                    firsts.remove(left + 1);
                    let right = children.remove(left + 1);
                    join(Arc::make_mut(&mut children[left]), &right);
                }
            }
        }
    }

    fn visit_from(&self, from: Option<&T>, visit: &mut impl FnMut(&[T]) -> bool) -> bool {
        match self {
            Node::Leaf(entries) => {
                let start = from.map_or(0, |from| entries.partition_point(|entry| entry < from));
                start == entries.len() || visit(&entries[start..])
            }
            Node::Branch { firsts, children } => {
                let start = from.map_or(0, |from| child_of(firsts, from));
                children[start].visit_from(from, visit)
                    && children[start + 1..].iter().all(|child| child.visit_from(None, visit))
            }
        }
    }

    fn visit_before(&self, before: Option<&T>, visit: &mut impl FnMut(&[T]) -> bool) -> bool {
        match self {
            Node::Leaf(entries) => {
                let end = before.map_or(entries.len(), |before| entries.partition_point(|entry| entry < before));
                end == 0 || visit(&entries[..end])
            }
            Node::Branch { firsts, children } => {
                let last = before.map_or(children.len() - 1, |before| child_of(firsts, before));
                children[last].visit_before(before, visit)
                    && children[..last].iter().rev().all(|child| child.visit_before(None, visit))
            }
        }
    }
}

/// Two neighbours that together fill at most half a node become one.
fn joinable<T: Clone + Ord>(left: &Node<T>, right: &Node<T>, leaf_limit: usize) -> bool {
    let limit = match (left, right) {
        (Node::Leaf(_), Node::Leaf(_)) => leaf_limit,
        (Node::Branch { .. }, Node::Branch { .. }) => BRANCH_LIMIT,
        _ => return false,
    };
    left.size() + right.size() <= limit / 2
}

fn join<T: Clone + Ord>(left: &mut Node<T>, right: &Node<T>) {
    match (left, right) {
        (Node::Leaf(entries), Node::Leaf(more)) => entries.extend_from_slice(more),
        (Node::Branch { firsts, children }, Node::Branch { firsts: more_firsts, children: more_children }) => {
            firsts.extend_from_slice(more_firsts);
            children.extend(more_children.iter().cloned());
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn contents(set: &OrderedPages<u64>) -> Vec<u64> {
        let mut all = Vec::new();
        set.visit_all(|entries| {
            all.extend_from_slice(entries);
            true
        });
        all
    }

    proptest! {
        /// Random inserts and removes agree with a `BTreeSet`, in every version kept along the way.
        #[test]
        fn agrees_with_a_btree_set(
            operations in prop::collection::vec((any::<bool>(), 0u64..600), 0..2500),
            from in 0u64..600,
        ) {
            let mut set = OrderedPages::default();
            let mut model = BTreeSet::new();
            let mut versions = Vec::new();
            for (step, (insert, entry)) in operations.into_iter().enumerate() {
                if insert || step < 800 {
                    prop_assert_eq!(set.insert(entry), model.insert(entry));
                } else {
                    prop_assert_eq!(set.remove(&entry), model.remove(&entry));
                }
                if step % 97 == 0 {
                    versions.push((set.clone(), model.clone()));
                }
            }
            versions.push((set, model));
            for (set, model) in versions {
                prop_assert_eq!(set.check_invariants(), Ok(()));
                prop_assert_eq!(contents(&set), model.iter().copied().collect::<Vec<_>>());
                let mut tail = Vec::new();
                set.visit_from(&from, |entries| { tail.extend_from_slice(entries); true });
                prop_assert_eq!(tail, model.range(from..).copied().collect::<Vec<_>>());
                let mut head: Vec<u64> = Vec::new();
                set.visit_before(Some(&from), |entries| { head.extend(entries.iter().rev()); true });
                prop_assert_eq!(head, model.range(..from).rev().copied().collect::<Vec<_>>());
                prop_assert_eq!(set.contains(&from), model.contains(&from));
                let rebuilt = OrderedPages::from_ascending(&model.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(rebuilt.check_invariants(), Ok(()));
                prop_assert_eq!(contents(&rebuilt), contents(&set));
            }
        }
    }

    #[test]
    fn entries_in_order_fill_leaves() {
        let mut set = OrderedPages::default();
        (0..10_000u64).for_each(|entry| assert!(set.insert(entry)));
        let mut leaves = 0;
        set.visit_all(|_| {
            leaves += 1;
            true
        });
        assert_eq!(leaves, 10_000usize.div_ceil(OrderedPages::<u64>::LEAF_LIMIT));
    }
}
