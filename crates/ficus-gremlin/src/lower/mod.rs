//! Traversal trees to logical plans.
//!
//! [`lower`] takes the tree that both gremlin-lang text and the bytecode of drivers become, and builds the plan that says what
//! it means: modulators are gone into the nodes they modulate, labels and infix connectives are resolved, arguments are of
//! the types the nodes want, and the strategies of the source are worked in. What TinkerPop refuses when a traversal is
//! built or verified is refused here, in its words.
//!
//! How it works: a table (`table`) leads from each step's name to its handler; the handlers stand in one module per
//! family and read their arguments through `arguments`; `builder` holds the line under construction. After that
//! `strategies` rewrites the plan and checks what verifying strategies forbid.
//!
//! What it promises: time and memory linear in the tree (infix connectives and `where()` look at their part a few times);
//! nesting and number of steps bounded; no option or argument dropped without an error. It reads no graph, and no clock but that of the query's own deadline.

mod analytics;
mod arguments;
mod branch;
mod builder;
mod error;
mod filter;
mod map;
mod match_step;
mod merge;
mod modulate;
mod mutate;
mod navigation;
mod nearest;
mod predicates;
mod reduce;
mod scalar;
mod source_options;
mod sources;
mod strategies;
mod table;
#[cfg(test)]
mod tests;
mod where_step;

use ficus_model::Bytecode;
use ficus_query::logical::LogicalPlan;
use ficus_query::planning::{self, Planning};

pub use error::{LowerError, LowerErrorKind};
pub use source_options::transaction_command;

use builder::Lowering;

/// The plan of a traversal.
///
/// ```
/// use ficus_gremlin::lower::lower;
/// use ficus_gremlin::text::{ParseOptions, parse_traversal};
///
/// let bytecode = parse_traversal("g.V(1).out('knows').as('a').count()", &ParseOptions::default()).unwrap();
/// let plan = lower(&bytecode).unwrap();
/// assert_eq!(plan.to_string(), "[GraphStep(vertex,[1]), VertexStep(OUT,[knows],vertex)@[a], CountGlobalStep]");
/// ```
pub fn lower(bytecode: &Bytecode) -> Result<LogicalPlan, LowerError> {
    lower_in_time(bytecode, &planning::UNLIMITED)
}

/// As [`lower`], as long as the query has not to stop; [`LowerErrorKind::Stopped`] else.
pub fn lower_in_time(bytecode: &Bytecode, planning: &Planning) -> Result<LogicalPlan, LowerError> {
    let lowering = Lowering::new(planning);
    let source = source_options::lower(&bytecode.source, &lowering)?;
    let root = lowering.root(&bytecode.steps)?;
    let mut plan = LogicalPlan { source, root };
    strategies::apply(&mut plan)?;
    Ok(plan)
}
