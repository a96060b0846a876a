//! Side effects: values under keys that steps of one query add to and `cap()` reads.

use ficus_model::{Operator, Value};
use indexmap::IndexMap;

use crate::logical::Name;

/// The side effects of a query, in the order they were first registered.
#[derive(Debug, Default)]
pub struct SideEffects {
    entries: IndexMap<Name, SideEffect>,
}

/// One side effect.
#[derive(Debug)]
pub struct SideEffect {
    /// What it holds now. Collections are changed in place while nothing else refers to them.
    pub value: Value,
    /// From `withSideEffect(key, value, reducer)`.
    pub reducer: Option<Operator>,
}

impl SideEffects {
    /// Registers a side effect with its first value, unless it is there.
    pub fn register(&mut self, key: &Name, value: impl FnOnce() -> Value, reducer: Option<Operator>) {
        if !self.entries.contains_key(key) {
            self.entries.insert(key.clone(), SideEffect { value: value(), reducer });
        }
    }

    /// The value under a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.entries.get(key).map(|entry| &entry.value)
    }

    /// The entry under a key.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut SideEffect> {
        self.entries.get_mut(key)
    }

    /// All keys.
    pub fn keys(&self) -> impl Iterator<Item = &Name> {
        self.entries.keys()
    }
}
