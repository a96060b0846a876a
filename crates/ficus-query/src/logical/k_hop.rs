//! Walks of several hops whose ends are wanted once each, as one node; [a rule](crate::rules) makes it.

use std::sync::Arc;

use ficus_model::{Direction, Operator, Value};

use super::{Name, Traversal};

/// What a walk of several hops reaches. Made by a rule out of `repeat()`; no step of Gremlin is this.
#[derive(Clone, Debug, PartialEq)]
pub struct KHop {
    /// Which way every hop goes.
    pub direction: Direction,
    /// Edge labels; empty: all.
    pub labels: Vec<Name>,
    /// Hops at most; `None`: until nothing new is reached.
    pub hops: Option<u32>,
    /// Which vertices count.
    pub reach: KHopReach,
    /// Whether their number is wanted, not they.
    pub count: bool,
    /// The id of the only vertex that is wanted, if it is reached.
    pub target: Option<Value>,
    /// What every vertex that is entered has to fulfil; where the walk starts is not asked.
    pub vertices: Option<Arc<Traversal>>,
    /// What every edge has to fulfil.
    pub edges: Option<Arc<Traversal>>,
    /// So many of them are enough.
    pub limit: Option<u64>,
    /// Vertices that count on the way.
    pub mark: Option<KHopMark>,
    /// Whether it is part of a sub-query, which others' passes are not for.
    pub alone: bool,
    /// Whether it is a loop that remembers where it has been, and hands on hop by hop what it comes to.
    pub seen: Option<KHopSeen>,
    /// The nodes that it stands for.
    pub written: Arc<Traversal>,
}

/// Of a walk of several hops, vertices that count wherever it comes to them. Besides them count those after its last hop, if it has one.
#[derive(Clone, Debug, PartialEq)]
pub struct KHopMark {
    /// What they fulfil.
    pub condition: Arc<Traversal>,
    /// Whether the walk goes on from them (`emit()`) or ends there (`until()`).
    pub goes_on: bool,
    /// Whether where the walk starts may be one.
    pub tests_start: bool,
}

/// Of a loop that comes to no vertex twice.
#[derive(Clone, Debug, PartialEq)]
pub struct KHopSeen {
    /// It does not come back to where it starts either.
    pub with_start: bool,
    /// Only what it comes to in the last hop counts.
    pub last_only: bool,
    /// What is done to the sack of its rows in each hop: by what value. All begin with that of the query.
    pub sack: Option<(Operator, Value)>,
}

/// Which vertices of a walk count, each once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KHopReach {
    /// Those after exactly so many hops.
    Exactly,
    /// Those after one hop or more.
    Within,
    /// As `Within`, and where the walk starts.
    WithinOrStart,
}
