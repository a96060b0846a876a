//! Which of the things that queries keep are flat: they hold no memory or count, so that nothing has to be done for each when they are freed.
//!
//! Most of what a query keeps by the million are numbers and vertices. To find so of each of them again, in memory that was left long ago, was most of
//! the time that freeing them took.

use ficus_dataflow::Flat;
use ficus_model::{Value, VertexId};

use crate::operators::sorted_runs::Keys;
use crate::traverser::Traverser;

/// Something that is kept in chunks.
pub trait Piece {
    /// See [`Flat::IS_SHARED`].
    const IS_SHARED: bool = true;

    /// Whether its drop does nothing. Cost: O(1), without a look at other memory.
    fn is_flat(&self) -> bool;
}

/// Asks the pieces themselves.
#[derive(Debug)]
pub struct Asked;

impl<T: Piece> Flat<T> for Asked {
    const IS_SHARED: bool = T::IS_SHARED;

    #[inline]
    fn is_flat(value: &T) -> bool {
        value.is_flat()
    }
}

/// Chunks that know whether what they hold is flat.
pub type Chunks<T> = ficus_dataflow::Chunks<T, Asked>;

/// As [`Asked`], for what lies under keys, whatever it is: of its type must be known that all are flat.
#[derive(Debug)]
pub struct ByKey;

impl<V> Flat<(Value, V)> for ByKey {
    #[inline]
    fn is_flat((key, _): &(Value, V)) -> bool {
        !std::mem::needs_drop::<V>() && key.is_flat()
    }
}

impl Piece for Value {
    /// Those that are not flat are maps, lists and paths.
    const IS_SHARED: bool = false;

    #[inline]
    fn is_flat(&self) -> bool {
        Value::is_flat(self)
    }
}

impl Piece for Traverser {
    #[inline]
    fn is_flat(&self) -> bool {
        self.is_bare() && self.value.is_flat()
    }
}

impl<T: Piece> Piece for Option<T> {
    const IS_SHARED: bool = T::IS_SHARED;

    #[inline]
    fn is_flat(&self) -> bool {
        self.as_ref().is_none_or(Piece::is_flat)
    }
}

impl<A: Piece, B: Piece> Piece for (A, B) {
    const IS_SHARED: bool = A::IS_SHARED && B::IS_SHARED;

    #[inline]
    fn is_flat(&self) -> bool {
        self.0.is_flat() && self.1.is_flat()
    }
}

impl Piece for Keys {
    #[inline]
    fn is_flat(&self) -> bool {
        !self.spilled() && self.iter().all(Value::is_flat)
    }
}

impl Piece for Box<[Value]> {
    const IS_SHARED: bool = false;

    #[inline]
    fn is_flat(&self) -> bool {
        false
    }
}

impl Piece for f64 {
    #[inline]
    fn is_flat(&self) -> bool {
        true
    }
}

impl Piece for u64 {
    #[inline]
    fn is_flat(&self) -> bool {
        true
    }
}

impl Piece for VertexId {
    #[inline]
    fn is_flat(&self) -> bool {
        true
    }
}
