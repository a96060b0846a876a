//! The scoped dataflow runtime of FicusDB.
//!
//! A [`plan::Region`] is a line of nodes. Running it makes a [`region::RegionInstance`]: one queue before each node, and a
//! loop that always runs the deepest node that has something to do, so that rows leave as early as possible and the memory
//! between nodes stays bounded by one batch. A node is an [`operator::Operator`] or one of three structures that hold
//! regions of their own:
//!
//! ```text
//!   branch scope   an instance of an arm per input; made, scheduled and cancelled one by one   (branch.rs)
//!   fork           arms that live as long as their parent and see all its input                (fork.rs)
//!   loop scope     a body whose output may come back as its input                              (loop_scope.rs)
//! ```
//!
//! Because scopes are operators to the region around them, scheduling is a tree: executor → tenant → query → scope →
//! instance → operator, with a quota handed down at every level and an early end (`Flow::Complete`) that never reaches
//! beyond the instance it was said in.
//!
//! Source: Su et al., "Banyan: A Scoped Dataflow Engine for Graph Query Service", VLDB 2022, §3 and §4; unlike there, all
//! nodes between two boundaries of a scope share one queue chain and need no mailbox.
//!
//! *Architecture Invariant:* knows no graph. Messages, context and errors are those of a [`domain::Domain`]; the tests use
//! integers.
#![forbid(unsafe_code)]

pub mod branch;
pub mod control;
pub mod domain;
pub mod executor;
pub mod fork;
pub mod loop_scope;
pub mod operator;
pub mod plan;
pub mod region;
pub mod tag;
pub mod task;

pub use branch::{BranchLogic, BranchOptions, InterPolicy, Turn};
pub use control::{CancelToken, Clock, Control, Interrupt, MonotonicClock};
pub use domain::{Domain, Queue};
pub use executor::{ExecutorOptions, Executors};
pub use fork::{Arms, ForkLogic};
pub use loop_scope::{LoopLogic, LoopOptions, LoopPolicy, Verdict};
pub use operator::{Cx, Flow, NodeProfile, Operator};
pub use plan::{Node, NodeId, Plan, Region};
pub use tag::ScopeTag;
pub use task::{Delivery, Outcome, Sink, Task, TaskHandle};
