//! How often a traverser has been through the loops around it.
//!
//! Most traversers in a loop are in one, and there are as many of them as a frontier holds: the counter of the innermost loop lies in place, and
//! only those of loops around it are on the heap.

use crate::logical::Name;

/// The counters of the loops a traverser is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loops {
    /// The innermost loop, as the plan counts its loops from 1; 0: the traverser is in no loop.
    scope: u32,
    /// Its finished iterations.
    count: u32,
    /// Its name, if it has one.
    name: Option<Name>,
    /// Those around it.
    outer: Option<Box<Loops>>,
}

impl Loops {
    /// Whether the traverser is in no loop.
    pub fn is_empty(&self) -> bool {
        self.scope == 0
    }

    /// Whether the innermost loop is this one.
    pub fn is_in(&self, scope: u32) -> bool {
        self.scope == scope && scope != 0
    }

    /// The traverser enters a loop.
    ///
    /// # Panics
    /// If `scope` is 0, which is no loop.
    pub fn enter(&mut self, scope: u32, name: Option<Name>) {
        assert!(scope != 0, "loops are counted from 1");
        let outer = std::mem::replace(self, Loops { scope, count: 0, name, outer: None });
        self.outer = (!outer.is_empty()).then(|| Box::new(outer));
    }

    /// It leaves the innermost loop.
    pub fn leave(&mut self) {
        *self = self.outer.take().map_or_else(Loops::default, |outer| *outer);
    }

    /// It has been through the innermost loop once more.
    pub fn advance(&mut self) {
        if !self.is_empty() {
            self.count += 1;
        }
    }

    /// Finished iterations, innermost loop first.
    pub fn counts(&self) -> impl Iterator<Item = u32> {
        self.all().map(|own| own.count)
    }

    /// Finished iterations of the innermost loop, or of the innermost one of this name.
    pub fn count(&self, name: Option<&str>) -> Option<u32> {
        match name {
            None => (!self.is_empty()).then_some(self.count),
            Some(name) => self.all().find(|own| own.name.as_deref() == Some(name)).map(|own| own.count),
        }
    }

    /// What is on the heap, in bytes.
    pub fn heap_bytes(&self) -> usize {
        self.all().skip(1).count() * size_of::<Loops>()
    }

    fn all(&self) -> impl Iterator<Item = &Loops> {
        std::iter::successors((!self.is_empty()).then_some(self), |own| own.outer.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_nest_and_are_counted_one_by_one() {
        let mut loops = Loops::default();
        assert_eq!((loops.count(None), loops.heap_bytes()), (None, 0));
        loops.advance();
        assert_eq!(loops, Loops::default(), "there is nothing to count");
        loops.enter(1, Some(Name::from("a")));
        loops.advance();
        loops.advance();
        loops.enter(2, None);
        loops.advance();
        assert!(loops.is_in(2) && !loops.is_in(1) && !loops.is_in(0));
        assert_eq!(loops.counts().collect::<Vec<_>>(), [1, 2]);
        assert_eq!((loops.count(None), loops.count(Some("a")), loops.count(Some("b"))), (Some(1), Some(2), None));
        assert_eq!(loops.heap_bytes(), size_of::<Loops>());
        loops.leave();
        assert_eq!(loops.count(None), Some(2));
        loops.leave();
        assert!(loops.is_empty());
        loops.leave();
        assert_eq!(loops, Loops::default());
    }
}
