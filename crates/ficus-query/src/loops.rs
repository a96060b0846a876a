//! How often a traverser has been through the loops around it.
//!
//! Most traversers in a loop are in one that has no name, and there are as many of them as a frontier holds: the counter of the innermost loop lies in
//! the traverser, and only its name and the counters of loops around it are on the heap.

use crate::logical::Name;

/// The counter of a loop, or of none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loop {
    /// The loop, as the plan counts its loops from 1; 0: there is none.
    scope: u32,
    /// Its finished iterations.
    count: u32,
}

impl Loop {
    /// No loop.
    pub const NONE: Loop = Loop { scope: 0, count: 0 };

    /// A loop that is entered.
    ///
    /// # Panics
    /// If `scope` is 0, which is no loop.
    pub fn begin(scope: u32) -> Loop {
        assert!(scope != 0, "loops are counted from 1");
        Loop { scope, count: 0 }
    }

    /// Whether it is none.
    pub fn is_none(self) -> bool {
        self.scope == 0
    }

    /// Whether it is this loop.
    pub fn is(self, scope: u32) -> bool {
        self.scope == scope && scope != 0
    }

    /// Finished iterations, if there is a loop.
    pub fn count(self) -> Option<u32> {
        (!self.is_none()).then_some(self.count)
    }

    /// One iteration more, if there is a loop.
    pub fn advance(&mut self) {
        self.count += u32::from(!self.is_none());
    }
}

/// What few traversers have beside the counter of their innermost loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Around {
    /// The name of the innermost loop, if it has one.
    name: Option<Name>,
    /// The loop around it, and what is around that.
    outer: Option<Box<(Loop, Around)>>,
}

impl Around {
    /// Whether the innermost loop has no name, and nothing around it.
    pub fn is_empty(&self) -> bool {
        self.name.is_none() && self.outer.is_none()
    }

    /// A loop is entered from within `from`, or from no loop.
    pub fn enter(&mut self, from: Loop, name: Option<Name>) {
        let around = std::mem::take(self);
        self.outer = (!from.is_none()).then(|| Box::new((from, around)));
        self.name = name;
    }

    /// The innermost loop is left. Returns the one around it, or none.
    pub fn leave(&mut self) -> Loop {
        let (outer, around) = self.outer.take().map_or_else(Default::default, |outer| *outer);
        *self = around;
        outer
    }

    /// The counter of the innermost loop of this name, if `innermost` is the one that this is around.
    pub fn named(&self, innermost: Loop, name: &str) -> Option<Loop> {
        self.all(innermost).find(|(_, own)| own.is_some_and(|own| &**own == name)).map(|(own, _)| own)
    }

    /// Finished iterations, of the innermost loop first.
    pub fn counts(&self, innermost: Loop) -> impl Iterator<Item = u32> {
        self.all(innermost).filter_map(|(own, _)| own.count())
    }

    /// What is on the heap, in bytes.
    pub fn heap_bytes(&self) -> usize {
        self.all(Loop::NONE).skip(1).count() * size_of::<(Loop, Around)>()
    }

    fn all(&self, innermost: Loop) -> impl Iterator<Item = (Loop, Option<&Name>)> {
        let levels = std::iter::successors(Some((innermost, self)), |(_, around)| {
            around.outer.as_deref().map(|(outer, around)| (*outer, around))
        });
        levels.map(|(own, around)| (own, around.name.as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_nest_and_are_counted_one_by_one() {
        let (mut own, mut around) = (Loop::NONE, Around::default());
        own.advance();
        assert_eq!((own, own.count(), around.heap_bytes()), (Loop::NONE, None, 0), "there is nothing to count");
        around.enter(std::mem::replace(&mut own, Loop::begin(1)), Some(Name::from("a")));
        own.advance();
        own.advance();
        around.enter(std::mem::replace(&mut own, Loop::begin(2)), None);
        own.advance();
        assert!(own.is(2) && !own.is(1) && !own.is(0));
        assert_eq!(around.counts(own).collect::<Vec<_>>(), [1, 2]);
        let named = |name| around.named(own, name).and_then(Loop::count);
        assert_eq!((own.count(), named("a"), named("b")), (Some(1), Some(2), None));
        assert_eq!(around.heap_bytes(), size_of::<(Loop, Around)>());
        own = around.leave();
        assert_eq!((own.count(), around.named(own, "a")), (Some(2), Some(own)));
        own = around.leave();
        assert!(own.is_none() && around.is_empty());
        assert_eq!((around.leave(), around), (Loop::NONE, Around::default()));
    }
}
