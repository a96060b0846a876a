//! The logical plan: what a traversal means, free of any front end's syntax and of how it will run.
//!
//! A [`Traversal`] is a line of [`Node`]s; nodes hold the traversals they nest. Front ends build it, the rules in
//! [`crate::rules`] rewrite it, [`crate::physical`] turns it into a dataflow plan. Its `Display` is the text `explain()` and
//! golden tests show.

mod display;
mod k_hop;
mod node;
mod source;
mod vertex_program;
pub mod visit;

pub use k_hop::{KHop, KHopMark, KHopReach, KHopSeen};
pub use node::*;
pub use source::{SackOptions, SourceOptions, Strategy};
pub use vertex_program::{VertexProgram, VertexProgramKind};
