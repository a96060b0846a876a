//! `union()`: every branch sees every traverser.

use ficus_dataflow::{Arms, ForkLogic};

use crate::context::{Cx, Graphs, Result};
use crate::error::QueryError;
use crate::logical::{Node, Traversal};
use crate::physical::{Builder, Chain};
use crate::traverser::Traverser;

struct ToAll;

impl ForkLogic<Graphs> for ToAll {
    fn route(&mut self, message: Traverser, arms: &mut Arms<'_, Graphs>, _cx: &mut Cx<'_>) -> Result<()> {
        for arm in 1..arms.count() {
            arms.send(arm, message.clone());
        }
        if arms.count() > 0 {
            arms.send(0, message);
        }
        Ok(())
    }
}

/// Adds the fork.
pub fn build(builder: &mut Builder, node: &Node, chain: &mut Chain) -> Result<()> {
    let Node::Union { branches, start } = node else {
        return Err(QueryError::invalid(format!("{node} is not union()")));
    };
    let arms: Vec<&Traversal> = branches.iter().map(AsRef::as_ref).collect();
    builder.fork(chain, node, &arms, *start, || ToAll)
}
