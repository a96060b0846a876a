//! Conditions on the vertices and edges of walks, as the questions of a pass have them in common.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use ficus_model::{EdgeId, VertexId};
use ficus_storage::Snapshot;

/// Tells of an element whether it fulfils a condition; `None` if that cannot be told: the condition fails on it with an error, which is for
/// those queries that come to this element, and for no other.
pub type Test<E> = Box<dyn FnMut(E) -> Option<bool>>;

/// A condition on elements of any state. Two are equal if their texts are.
#[derive(Clone)]
pub struct Filter<E> {
    text: Arc<str>,
    on: Arc<dyn Fn(Snapshot) -> Test<E> + Send + Sync>,
}

/// A condition on vertices.
pub type VertexFilter = Filter<VertexId>;
/// A condition on edges.
pub type EdgeFilter = Filter<EdgeId>;

impl<E> Filter<E> {
    /// A condition that `text` says whole, values and their types included; `on` makes its test for a state.
    pub fn new(text: Arc<str>, on: impl Fn(Snapshot) -> Test<E> + Send + Sync + 'static) -> Filter<E> {
        Filter { text, on: Arc::new(on) }
    }

    /// Its test on the elements of a state. Reads nothing of others.
    pub fn on(&self, snapshot: Snapshot) -> Test<E> {
        (self.on)(snapshot)
    }
}

impl<E> PartialEq for Filter<E> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl<E> Eq for Filter<E> {}

impl<E> Hash for Filter<E> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl<E> fmt::Debug for Filter<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Filter").field(&self.text).finish()
    }
}
