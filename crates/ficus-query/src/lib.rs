//! Logical plans, optimiser, physical operators and services: what a query means and how it runs.
//!
//! ```text
//!   logical::LogicalPlan ── rules ──▶ LogicalPlan ── physical::build ──▶ dataflow plan ── engine ──▶ rows
//! ```
//!
//! *Architecture Invariant:* knows no syntax and no session. The graph is read and written through one
//! [`ficus_storage::Transaction`] per query; work is scheduled by [`ficus_dataflow`] and by nothing else.
#![forbid(unsafe_code)]

pub mod access;
pub mod bound;
pub mod budget;
pub mod caller;
pub mod computed;
pub mod context;
pub mod detach;
pub mod elements;
pub mod engine;
pub mod error;
mod experience;
mod flat;
mod freeing;
pub mod functions;
pub mod growing;
mod kinds;
pub mod large_values;
pub mod logical;
pub mod loops;
mod many_walks;
mod memberships;
pub mod merge;
pub mod modulate;
pub mod operators;
pub mod options;
pub mod parts;
pub mod physical;
pub mod planning;
mod probe;
pub mod random;
pub mod rules;
pub mod services;
pub mod side_effect;
mod strategies;
pub mod traverser;
pub mod tuples;
pub mod vertex_counts;
pub mod vertex_set;
mod walk_filter;

pub use error::{QueryError, QueryErrorKind};
