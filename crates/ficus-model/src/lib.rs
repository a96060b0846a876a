//! The words of FicusDB: values, ids, predicates, tokens and traversal bytecode, with their order and equality.
//!
//! Everything that crosses a crate boundary is made of these types. Nothing here runs: no clock, no I/O, no thread.
//!
//! *Architecture Invariant:* depends on no other crate of ours and never learns how values are stored or sent.
#![forbid(unsafe_code)]

pub mod bytecode;
pub mod element;
mod equality;
pub mod ids;
pub mod predicate;
pub mod temporal;
pub mod token;
pub mod value;

pub use bytecode::{Argument, Bytecode, Instruction};
pub use element::{DetachedEdge, DetachedProperty, DetachedVertex, DetachedVertexProperty, Element};
pub use ids::{EdgeId, KeyId, LabelId, VertexId};
pub use predicate::{Comparison, P, TextComparison};
pub use temporal::{Duration, OffsetDateTime};
pub use token::{Cardinality, Column, DateUnit, Direction, GType, Merge, Operator, Order, Pick, Pop, Scope, T};
pub use value::{
    BulkSet, Explanation, Metrics, Path, PropertyOwner, StoredProperty, StoredVertexProperty, Subgraph, TraversalMetrics,
    Tree, Value, ValueMap, ValueSet,
};
