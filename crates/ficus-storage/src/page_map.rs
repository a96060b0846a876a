//! A persistent array of pages: a radix tree from page number to a shared page.
//!
//! A clone is one counter. [`PageMap::page_mut`] copies the path to one page, as far as another version still holds it:
//! within one group of commits every page is copied at most once.

use std::sync::Arc;

/// Bits of a page number per level: 32 children, so that copying a branch touches 32 counters.
const LEVEL_BITS: u32 = 5;
const FANOUT: usize = 1 << LEVEL_BITS;

/// Pages by number, most of them present.
#[derive(Debug)]
pub(crate) struct PageMap<P> {
    root: Option<Child<P>>,
    /// Branches between the root and a page; 0 means the root is page 0.
    levels: u32,
}

#[derive(Debug)]
enum Child<P> {
    Branch(Arc<Branch<P>>),
    Page(Arc<P>),
}

/// On cache lines of its own: copying what is above changes its counter, and readers would wait for the line.
#[derive(Debug)]
#[repr(align(64))]
struct Branch<P> {
    /// At most `FANOUT`; missing ones at the end are left out.
    children: Vec<Option<Child<P>>>,
}

impl<P> Clone for Child<P> {
    fn clone(&self) -> Child<P> {
        match self {
            Child::Branch(branch) => Child::Branch(branch.clone()),
            Child::Page(page) => Child::Page(page.clone()),
        }
    }
}

impl<P> Clone for Branch<P> {
    fn clone(&self) -> Branch<P> {
        Branch { children: self.children.clone() }
    }
}

impl<P> Clone for PageMap<P> {
    fn clone(&self) -> PageMap<P> {
        PageMap { root: self.root.clone(), levels: self.levels }
    }
}

impl<P> Default for PageMap<P> {
    fn default() -> PageMap<P> {
        PageMap { root: None, levels: 0 }
    }
}

#[inline]
fn child_position(number: u64, level: u32) -> usize {
    (number >> ((level - 1) * LEVEL_BITS)) as usize & (FANOUT - 1)
}

impl<P> PageMap<P> {
    /// The page, if it is there.
    #[inline]
    pub(crate) fn page(&self, number: u64) -> Option<&P> {
        let bits = self.levels * LEVEL_BITS;
        if bits < u64::BITS && number >> bits != 0 {
            return None;
        }
        let mut child = self.root.as_ref()?;
        let mut level = self.levels;
        loop {
            match child {
                Child::Page(page) => return Some(page),
                Child::Branch(branch) => {
                    child = branch.children.get(child_position(number, level))?.as_ref()?;
                    level -= 1;
                }
            }
        }
    }

    /// The first page with at least this number.
    pub(crate) fn next_page(&self, number: u64) -> Option<(u64, &P)> {
        let bits = self.levels * LEVEL_BITS;
        if bits < u64::BITS && number >> bits != 0 {
            return None;
        }
        next_in(self.root.as_ref()?, number, self.levels)
    }

    /// Hands out all pages in order; faster than asking for one after the other.
    pub(crate) fn visit_all<'a>(&'a self, visit: &mut impl FnMut(u64, &'a P)) {
        if let Some(root) = &self.root {
            visit_below(root, 0, visit);
        }
    }

    /// All pages in order.
    #[cfg(test)]
    fn pages(&self) -> impl Iterator<Item = (u64, &P)> {
        let mut next = Some(0u64);
        std::iter::from_fn(move || {
            let (number, page) = self.next_page(next?)?;
            next = number.checked_add(1);
            Some((number, page))
        })
    }
}

/// Depth is the number of levels, at most 13. `number` is that of the first page below.
fn visit_below<'a, P>(child: &'a Child<P>, number: u64, visit: &mut impl FnMut(u64, &'a P)) {
    match child {
        Child::Page(page) => visit(number, page),
        Child::Branch(branch) => {
            for (position, child) in branch.children.iter().enumerate() {
                if let Some(child) = child {
                    visit_below(child, number << LEVEL_BITS | position as u64, visit);
                }
            }
        }
    }
}

/// Depth is `levels`, at most 13.
fn next_in<P>(child: &Child<P>, number: u64, level: u32) -> Option<(u64, &P)> {
    match child {
        Child::Page(page) => Some((number, page)),
        Child::Branch(branch) => {
            let first = child_position(number, level);
            let below = (level - 1) * LEVEL_BITS;
            for position in first..branch.children.len() {
                let Some(child) = &branch.children[position] else { continue };
                let start = if position == first {
                    number
                } else {
                    let above = number >> below >> LEVEL_BITS << LEVEL_BITS;
                    (above | position as u64) << below
                };
                if let Some(found) = next_in(child, start, level - 1) {
                    return Some(found);
                }
            }
            None
        }
    }
}

/// A child of a map that may be lower than another one: above its root there are branches in which it is the first child.
struct Below<'a, P> {
    child: Option<&'a Child<P>>,
    /// Branches between it and a page.
    levels: u32,
}

impl<'a, P> Below<'a, P> {
    /// The child in a position of a branch at this level.
    fn child(&self, position: usize, level: u32) -> Below<'a, P> {
        if level > self.levels {
            let child = if position == 0 { self.child } else { None };
            return Below { child, levels: self.levels };
        }
        let child = match self.child {
            Some(Child::Branch(branch)) => branch.children.get(position).and_then(Option::as_ref),
            _ => None,
        };
        Below { child, levels: level - 1 }
    }

    fn page(&self) -> Option<&'a P> {
        match self.child {
            Some(Child::Page(page)) => Some(page),
            _ => None,
        }
    }

    fn is_same(&self, other: &Below<'_, P>) -> bool {
        match (self.child, other.child) {
            (None, None) => true,
            (Some(Child::Branch(own)), Some(Child::Branch(other))) => Arc::ptr_eq(own, other),
            (Some(Child::Page(own)), Some(Child::Page(other))) => Arc::ptr_eq(own, other),
            _ => false,
        }
    }
}

impl<P> PageMap<P> {
    /// Hands out the pages that are not the same in an earlier version, in order: number, page then, page now. Cost: the paths to them,
    /// since what two versions share is passed over.
    pub(crate) fn visit_changed<'a>(
        &'a self,
        earlier: &'a PageMap<P>,
        visit: &mut impl FnMut(u64, Option<&'a P>, Option<&'a P>),
    ) {
        let levels = self.levels.max(earlier.levels);
        let then = Below { child: earlier.root.as_ref(), levels: earlier.levels };
        let now = Below { child: self.root.as_ref(), levels: self.levels };
        visit_changed_below(&then, &now, levels, 0, visit);
    }
}

/// Depth is the number of levels, at most 13.
fn visit_changed_below<'a, P>(
    then: &Below<'a, P>,
    now: &Below<'a, P>,
    level: u32,
    number: u64,
    visit: &mut impl FnMut(u64, Option<&'a P>, Option<&'a P>),
) {
    if then.levels == now.levels && then.is_same(now) {
        return;
    }
    if level == 0 {
        visit(number, then.page(), now.page());
        return;
    }
    for position in 0..FANOUT {
        let (then, now) = (then.child(position, level), now.child(position, level));
        if then.child.is_some() || now.child.is_some() {
            visit_changed_below(&then, &now, level - 1, number << LEVEL_BITS | position as u64, visit);
        }
    }
}

impl<P: Clone> PageMap<P> {
    /// The page, to be changed; made by `new` if it is missing.
    pub(crate) fn page_mut_or(&mut self, number: u64, new: impl FnOnce() -> P) -> &mut P {
        while self.levels * LEVEL_BITS < u64::BITS && number >> (self.levels * LEVEL_BITS) != 0 {
            if let Some(root) = self.root.take() {
                self.root = Some(Child::Branch(Arc::new(Branch { children: vec![Some(root)] })));
            }
            self.levels += 1;
        }
        let mut slot = &mut self.root;
        for level in (1..=self.levels).rev() {
            let child = slot.get_or_insert_with(|| Child::Branch(Arc::new(Branch { children: Vec::new() })));
            let Child::Branch(branch) = child else { unreachable!("pages are only at level 0") };
            let children = &mut Arc::make_mut(branch).children;
            let position = child_position(number, level);
            if children.len() <= position {
                children.resize(position + 1, None);
            }
            slot = &mut children[position];
        }
        match slot.get_or_insert_with(|| Child::Page(Arc::new(new()))) {
            Child::Page(page) => Arc::make_mut(page),
            Child::Branch(_) => unreachable!("branches are only above level 0"),
        }
    }

    /// The page, to be changed, if it is there.
    pub(crate) fn page_mut(&mut self, number: u64) -> Option<&mut P> {
        let bits = self.levels * LEVEL_BITS;
        if bits < u64::BITS && number >> bits != 0 {
            return None;
        }
        let mut child = self.root.as_mut()?;
        let mut level = self.levels;
        loop {
            match child {
                Child::Page(page) => return Some(Arc::make_mut(page)),
                Child::Branch(branch) => {
                    let position = child_position(number, level);
                    child = Arc::make_mut(branch).children.get_mut(position)?.as_mut()?;
                    level -= 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Agrees with a `BTreeMap`, in every version kept along the way.
        #[test]
        fn agrees_with_a_btree_map(
            writes in prop::collection::vec((prop_oneof![0u64..40, 0u64..5000, any::<u64>()], any::<u32>()), 0..300),
        ) {
            let mut map: PageMap<u32> = PageMap::default();
            let mut model = BTreeMap::new();
            let mut versions = Vec::new();
            for (number, content) in writes {
                *map.page_mut_or(number, || 0) = content;
                model.insert(number, content);
                versions.push((map.clone(), model.clone()));
            }
            for (map, model) in versions.iter().rev().step_by(29) {
                let pages: Vec<(u64, u32)> = map.pages().map(|(number, page)| (number, *page)).collect();
                let mut visited = Vec::new();
                map.visit_all(&mut |number, page| visited.push((number, *page)));
                prop_assert_eq!(&visited, &pages);
                prop_assert_eq!(&pages, &model.iter().map(|(number, page)| (*number, *page)).collect::<Vec<_>>());
                for (earlier, earlier_model) in versions.iter().step_by(41) {
                    let mut changed = Vec::new();
                    map.visit_changed(earlier, &mut |number, then, now| {
                        changed.push((number, then.copied(), now.copied()));
                    });
                    prop_assert!(changed.is_sorted_by_key(|change| change.0));
                    for (number, then, now) in &changed {
                        prop_assert_eq!(then.as_ref(), earlier_model.get(number));
                        prop_assert_eq!(now.as_ref(), model.get(number));
                    }
                    for number in earlier_model.keys().chain(model.keys()) {
                        let is_told = changed.binary_search_by_key(number, |change| change.0).is_ok();
                        prop_assert!(is_told || earlier_model.get(number) == model.get(number));
                    }
                }
                let mut changed = 0;
                map.visit_changed(&map.clone(), &mut |_, _, _| changed += 1);
                prop_assert_eq!(changed, 0);
                for number in model.keys() {
                    prop_assert_eq!(map.page(*number), model.get(number));
                    prop_assert_eq!(map.page(number ^ 1), model.get(&(number ^ 1)));
                    prop_assert_eq!(map.clone().page_mut(number ^ 1).copied(), model.get(&(number ^ 1)).copied());
                }
            }
        }
    }
}
