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
//! A fourth, the spread (spread/mod.rs), holds a region whose rows do not know of each other, so that several executors may work on them.
//!
//! Because scopes are operators to the region around them, scheduling is a tree: executor → tenant → query → scope →
//! instance → operator, with a quota handed down at every level and an early end (`Flow::Complete`) that never reaches
//! beyond the instance it was said in.
//!
//! Source: Su et al., "Banyan: A Scoped Dataflow Engine for Graph Query Service", VLDB 2022, §3 and §4; unlike there, all
//! nodes between two boundaries of a scope share one queue chain and need no mailbox.
//!
//! Which of 10, 11, 12 have a multiple of 4 among their next three numbers? A branch scope whose egress ends an instance at
//! its first row:
//!
//! ```
//! use std::sync::mpsc::{Sender, channel};
//! use std::sync::Arc;
//!
//! use ficus_dataflow::branch::BranchScope;
//! use ficus_dataflow::Waker;
//! use ficus_dataflow::*;
//!
//! struct Integers;
//!
//! #[derive(Debug)]
//! struct Failed;
//!
//! impl From<Interrupt> for Failed {
//!     fn from(_: Interrupt) -> Failed { Failed }
//! }
//!
//! impl Domain for Integers {
//!     type Message = i64;
//!     type Context = ();
//!     type Error = Failed;
//!     fn panicked(_: String) -> Failed { Failed }
//! }
//!
//! /// Emits the next three numbers.
//! struct NextThree(Option<(i64, i64)>);
//!
//! impl Operator<Integers> for NextThree {
//!     fn process(&mut self, input: &mut Queue<i64>, out: &mut Queue<i64>, cx: &mut Cx<Integers>) -> Result<Flow, Failed> {
//!         loop {
//!             if cx.should_pause(out) { return Ok(Flow::More) }
//!             self.0 = match self.0 {
//!                 Some((next, last)) => {
//!                     out.push_back(next);
//!                     (next < last).then_some((next + 1, last))
//!                 }
//!                 None => match input.pop_front() {
//!                     Some(number) => Some((number + 1, number + 3)),
//!                     None => return Ok(Flow::Ready),
//!                 },
//!             };
//!         }
//!     }
//!     fn reset(&mut self) { self.0 = None }
//! }
//!
//! struct MultiplesOfFour;
//!
//! impl Operator<Integers> for MultiplesOfFour {
//!     fn process(&mut self, input: &mut Queue<i64>, out: &mut Queue<i64>, _: &mut Cx<Integers>) -> Result<Flow, Failed> {
//!         out.extend(input.drain(..).filter(|number| number % 4 == 0));
//!         Ok(Flow::Ready)
//!     }
//!     fn reset(&mut self) {}
//! }
//!
//! /// Passes an input at the first row of its arm, and ends the instance.
//! struct Where;
//!
//! impl BranchLogic<Integers> for Where {
//!     type State = i64;
//!     fn open(&mut self, input: i64, state: &mut i64, _: &mut Queue<i64>, _: &mut Cx<Integers>) -> Result<Turn<i64>, Failed> {
//!         *state = input;
//!         Ok(Turn::Enter { arm: 0, message: input })
//!     }
//!     fn receive(&mut self, _: i64, state: &mut i64, out: &mut Queue<i64>, _: &mut Cx<Integers>) -> Result<Turn<i64>, Failed> {
//!         out.push_back(*state);
//!         Ok(Turn::Close)
//!     }
//!     fn arm_ended(&mut self, _: &mut i64, _: &mut Queue<i64>, _: &mut Cx<Integers>) -> Result<Turn<i64>, Failed> {
//!         Ok(Turn::Close)
//!     }
//! }
//!
//! /// Sends rows to the caller's thread.
//! struct Answer(Sender<i64>);
//!
//! impl Sink<Integers> for Answer {
//!     fn deliver(&mut self, rows: &mut Queue<i64>, _: &mut (), _: &Waker<Integers>) -> Result<Delivery, Failed> {
//!         rows.drain(..).for_each(|row| self.0.send(row).expect("the caller reads to the end"));
//!         Ok(Delivery::Accepted)
//!     }
//!     fn complete(self: Box<Self>, _: (), outcome: Outcome<Integers>) {
//!         outcome.result.expect("nothing stops this query");
//!     }
//! }
//!
//! fn node(id: u32, factory: plan::Factory<Integers>) -> Node<Integers> {
//!     Node { id: NodeId(id), name: "example".into(), emits_on_empty: false, demand: Demand::AsWanted, factory }
//! }
//!
//! let arm = vec![node(1, Arc::new(|| Box::new(NextThree(None)))), node(2, Arc::new(|| Box::new(MultiplesOfFour)))];
//! let arms: Arc<[_]> = [Arc::new(Region::new(arm))].into();
//! let options = BranchOptions { arm_rows_limit: 1, ..BranchOptions::default() };
//! let scope = node(0, Arc::new(move || Box::new(BranchScope::new(NodeId(0), Where, arms.clone(), options))));
//! let plan = Arc::new(Plan { root: Arc::new(Region::new(vec![scope])), node_count: 3, batch_rows_limit: 256 });
//!
//! let executors = Executors::start(&ExecutorOptions { executors: 1, ..ExecutorOptions::default() })?;
//! let (sender, answer) = channel();
//! executors.submit(Tenant::default(), Task::new(plan, [10, 11, 12], (), Box::new(Answer(sender)), Control::unlimited(), false));
//! assert_eq!(answer.iter().collect::<Vec<_>>(), [10, 11]);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! *Architecture Invariant:* knows no graph. Messages, context and errors are those of a [`domain::Domain`]; the tests use
//! integers.
#![forbid(unsafe_code)]

// The tests' integers name the crate as its users do.
#[cfg(test)]
extern crate self as ficus_dataflow;

#[cfg(test)]
#[path = "../tests/kit/mod.rs"]
mod kit;

pub mod branch;
pub mod chunks;
pub mod control;
pub mod domain;
pub mod estimate;
pub mod executor;
pub mod fork;
mod gate;
mod inbox;
pub mod loop_scope;
pub mod operator;
mod pace;
mod peers;
pub mod plan;
pub mod region;
mod relief;
mod schedule;
pub mod spread;
pub mod tag;
pub mod task;
pub mod tenant;
mod undertaker;

pub use branch::{BranchLogic, BranchOptions, InterPolicy, Turn};
pub use chunks::{ByType, Changing, Chunks, Flat, Remains};
pub use control::{CancelToken, Clock, Control, Interrupt, MonotonicClock, Progress};
pub use domain::{Domain, Queue};
pub use estimate::Estimate;
pub use executor::{ExecutorOptions, Executors, ThreadHooks};
pub use fork::{Arms, ForkLogic};
pub use gate::Gate;
pub use inbox::Waker;
pub use loop_scope::{LoopLogic, LoopOptions, LoopPolicy, Verdict};
pub use operator::{Cx, Flow, NodeProfile, Operator, RowsLimits};
pub use plan::{Demand, IntraPolicy, Node, NodeId, NodeName, Plan, Region};
pub use spread::{Spread, SpreadHistory, SpreadOptions};
pub use tag::ScopeTag;
pub use task::{Delivery, Outcome, Sink, Task, TaskHandle};
pub use tenant::{Tenant, Weight};
pub use undertaker::{Frees, Heavy};
