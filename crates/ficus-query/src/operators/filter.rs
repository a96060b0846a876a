//! `filter`, `where(traversal)`, `not`, `and`, `or`: filters by sub-queries, each a branch scope whose egress cancels the
//! instance as soon as its answer is known.

use ficus_dataflow::{BranchLogic, BranchOptions, Turn};

use crate::context::{Cx, Graphs, Result, Traversers};
use crate::logical::{Node, Traversal};
use crate::physical::{Builder, Chain};
use crate::traverser::Traverser;

/// Which sub-queries have to yield something for the input to pass.
#[derive(Clone, Copy)]
enum Rule {
    All,
    Any,
    None,
}

/// Runs arm after arm on the same input until the rule is decided.
struct FilterScope {
    rule: Rule,
    arms: usize,
}

#[derive(Default)]
struct Undecided {
    input: Option<Traverser>,
    arm: usize,
}

impl FilterScope {
    fn decide(&self, passes: bool, state: &mut Undecided, out: &mut Traversers) -> Turn<Traverser> {
        if passes {
            out.extend(state.input.take());
        }
        Turn::Close
    }

    fn next(&self, at_the_end: bool, state: &mut Undecided, out: &mut Traversers) -> Turn<Traverser> {
        state.arm += 1;
        match &state.input {
            Some(input) if state.arm < self.arms => Turn::Enter { arm: state.arm, message: input.single() },
            _ => self.decide(at_the_end, state, out),
        }
    }
}

impl BranchLogic<Graphs> for FilterScope {
    type State = Undecided;

    fn open(
        &mut self,
        input: Traverser,
        state: &mut Undecided,
        _out: &mut Traversers,
        _cx: &mut Cx<'_>,
    ) -> Result<Turn<Traverser>> {
        let message = input.single();
        state.input = Some(input);
        Ok(Turn::Enter { arm: 0, message })
    }

    fn receive(
        &mut self,
        _message: Traverser,
        state: &mut Undecided,
        out: &mut Traversers,
        _cx: &mut Cx<'_>,
    ) -> Result<Turn<Traverser>> {
        Ok(match self.rule {
            Rule::All => self.next(true, state, out),
            Rule::Any => self.decide(true, state, out),
            Rule::None => self.decide(false, state, out),
        })
    }

    fn arm_ended(&mut self, state: &mut Undecided, out: &mut Traversers, _cx: &mut Cx<'_>) -> Result<Turn<Traverser>> {
        Ok(match self.rule {
            Rule::All => self.decide(false, state, out),
            Rule::Any => self.next(false, state, out),
            Rule::None => self.decide(true, state, out),
        })
    }
}

/// Adds the scope of a filter node.
pub fn build(builder: &mut Builder, node: &Node, chain: &mut Chain) -> Result<()> {
    let (rule, arms): (Rule, Vec<&Traversal>) = match node {
        Node::Not { traversal } => (Rule::None, vec![traversal]),
        Node::And { traversals } => (Rule::All, traversals.iter().map(AsRef::as_ref).collect()),
        Node::Or { traversals } => (Rule::Any, traversals.iter().map(AsRef::as_ref).collect()),
        Node::Filter { traversal } => (Rule::All, vec![traversal]),
        _ => return Err(crate::error::QueryError::invalid(format!("{node} is not a filter by sub-query"))),
    };
    let count = arms.len();
    // The first row decides; everything behind it would be wasted.
    let options = BranchOptions { arm_rows_limit: 1, ..BranchOptions::default() };
    builder.branch(chain, &node.to_string(), false, &arms, options, move || FilterScope { rule, arms: count })
}
