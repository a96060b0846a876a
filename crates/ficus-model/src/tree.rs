//! Trees of paths as values.

use std::ops::{Deref, DerefMut};
use std::sync::LazyLock;

use indexmap::IndexMap;

use crate::{Value, ValueHashing};

/// Values with the trees below them, in insertion order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    /// Children by value.
    pub children: Children,
}

type Index = IndexMap<Value, Tree, ValueHashing>;

/// The trees below a value, by theirs. Most nodes of a tree are leaves: one takes a pointer, and nothing else.
#[derive(Clone, Debug, Default)]
pub struct Children(Option<Box<Index>>);

static NONE: LazyLock<Index> = LazyLock::new(Index::default);

impl Children {
    /// What the first child takes, beside itself and its place.
    pub const FIRST_BYTES: usize = size_of::<Index>();
}

impl Deref for Children {
    type Target = Index;

    #[inline]
    fn deref(&self) -> &Index {
        self.0.as_deref().unwrap_or_else(|| &NONE)
    }
}

impl DerefMut for Children {
    /// For who adds one.
    #[inline]
    fn deref_mut(&mut self) -> &mut Index {
        self.0.get_or_insert_default()
    }
}

impl PartialEq for Children {
    fn eq(&self, other: &Children) -> bool {
        **self == **other
    }
}

impl FromIterator<(Value, Tree)> for Children {
    fn from_iter<I: IntoIterator<Item = (Value, Tree)>>(children: I) -> Children {
        let index = Index::from_iter(children);
        Children((!index.is_empty()).then(|| Box::new(index)))
    }
}

impl<'c> IntoIterator for &'c Children {
    type Item = (&'c Value, &'c Tree);
    type IntoIter = indexmap::map::Iter<'c, Value, Tree>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl IntoIterator for Children {
    type Item = (Value, Tree);
    type IntoIter = indexmap::map::IntoIter<Value, Tree>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.map(|index| *index).unwrap_or_default().into_iter()
    }
}

// A leaf costs its value, and this.
const _: () = assert!(size_of::<Tree>() == size_of::<usize>());
