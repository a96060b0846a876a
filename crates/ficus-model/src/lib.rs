//! The words of FicusDB: values, ids, predicates, tokens and traversal bytecode, with their order and equality.
//!
//! Everything that crosses a crate boundary is made of these types. Nothing here runs: no clock, no I/O, no thread.
//!
//! *Architecture Invariant:* depends on no other crate of ours and never learns how values are stored or sent.
#![deny(unsafe_code)]

pub mod bytecode;
pub mod compare;
pub mod convert;
pub mod decimal;
pub mod element;
mod equality;
pub mod error;
mod from;
pub mod ids;
mod inspect;
mod java_regex;
pub mod literal;
pub mod map;
pub mod matching;
mod membership;
pub mod number;
mod operator;
mod path;
pub mod predicate;
pub mod resolver;
pub mod shape;
pub mod shared;
mod shared_text;
mod sorting;
pub mod temporal;
pub mod text;
pub mod token;
mod tree;
pub mod value;

pub use bytecode::{Argument, Bytecode, Instruction};
pub use element::{DetachedEdge, DetachedProperty, DetachedVertex, DetachedVertexProperty, Element};
pub use error::ModelError;
pub use ids::{EdgeId, KeyId, LabelId, VertexId};
pub use inspect::allocated_bytes;
pub use map::ValueMap;
pub use matching::CompiledPredicate;
pub use membership::Membership;
pub use operator::MEMBERS_MAX;
pub use path::{Path, StepLabels};
pub use predicate::{Comparison, P, TextComparison};
pub use resolver::{EdgeEnds, ElementResolver, InternalIds};
pub use shape::MapMaker;
pub use shared::{Extent, Frees, NESTING_MAX, Shared, free_elsewhere};
pub use shared_text::shared_text;
pub use sorting::sort_in_steps;
pub use temporal::{Civil, Duration, OffsetDateTime};
pub use token::{Cardinality, Column, DateUnit, Direction, GType, Merge, Operator, Order, Pick, Pop, Scope, T};
pub use tree::{Children, Tree};
pub use value::{
    BulkSet, Explanation, Metrics, PropertyOwner, StoredProperty, StoredVertexProperty, Subgraph, TraversalMetrics,
    Value, ValueHashing, ValueSet,
};

/// Members between two looks at whether somebody still wants to know what they are gone through for.
pub const MEMBERS_BETWEEN_LOOKS: usize = 4096;
