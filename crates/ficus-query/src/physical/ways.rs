//! Where rows forget the way that they came.
//!
//! A query remembers paths, or what is under labels, because one of its steps looks at them; all rows behind the last such step carry them on for
//! nothing, and barriers keep them: `….as('f')….select('f').by(id).as('x')….order().by('date')` holds a link or more for each row, which have to be made and freed one by one. So the builder
//! puts an operator there that takes them away, and tracks nothing behind it.
//!
//! Rows that differ in nothing but their way become equal by that. So it is not done in front of steps that make one row of equal ones, which are seen by
//! their order and number; but for barriers behind which nobody can see it: what counts rows, or wants each object once, has the same of both.

use super::{Builder, Chain};
use crate::context::Cx;
use crate::logical::visit::{self, PathNeed};
use crate::logical::{By, LabelledNode, Node, Reduction, Traversal};
use crate::operators::per_row::PerRow;
use crate::rules::Rule;
use crate::traverser::Traverser;

/// How many nodes of a query have rows that have to know their way; `None` if it makes no difference to those behind them, or one that could be seen.
/// `order_matters`: of the order of rows depends more than their order.
pub(super) fn forgotten_behind(root: &Traversal, order_matters: bool) -> Option<usize> {
    let reads = |node: &Node| visit::path_need_of(node) != PathNeed::None;
    let inside = |node: &Node| visit::any_child(node, &mut |child| visit::any(child, &mut |node| reads(node)));
    let last = root.nodes.iter().rposition(|own| reads(&own.node) || inside(&own.node))?;
    let behind = &root.nodes[last + 1..];
    let gains = behind.iter().any(|own| keeps_rows(&own.node));
    (gains && !shows_merged(behind, order_matters)).then_some(last + 1)
}

/// Whether somebody may see that rows were merged behind these nodes, or behind some of them.
fn shows_merged(nodes: &[LabelledNode], order_matters: bool) -> bool {
    let mut is_merged = false;
    for own in nodes {
        match &own.node {
            Node::Barrier { norm_sack: false, .. } | Node::Sample { by: By::Identity, .. } if !order_matters => {
                is_merged = true;
            }
            // The first of equal objects comes where it did, and is counted as often.
            Node::Reduce { reduction: Reduction::Count | Reduction::Min | Reduction::Max }
            | Node::Dedup { by: None | Some(By::Identity), .. }
            | Node::GroupCount { side_effect: None, key: By::Identity } => is_merged = false,
            node => {
                if is_merged
                    || may_merge(node)
                    || visit::any_child(node, &mut |child| visit::any(child, &mut may_merge))
                {
                    return true;
                }
            }
        }
    }
    // Which rows a sample yields, and in what order, is chance.
    is_merged && !matches!(nodes.last(), Some(LabelledNode { node: Node::Sample { .. }, .. }))
}

/// Whether a step has many rows at a time, or makes many of one.
fn keeps_rows(node: &Node) -> bool {
    matches!(
        node,
        Node::Order { .. }
            | Node::Barrier { .. }
            | Node::Sample { .. }
            | Node::Group { .. }
            | Node::GroupCount { .. }
            | Node::Dedup { .. }
            | Node::Tail { .. }
            | Node::Adjacent { .. }
    )
}

/// Whether a step may make one row of equal ones, or is one of which that cannot be told.
fn may_merge(node: &Node) -> bool {
    match node {
        Node::Reduce { .. } | Node::Fold { .. } | Node::Order { .. } | Node::Tail { .. } => false,
        Node::Group { side_effect, .. } | Node::GroupCount { side_effect, .. } => side_effect.is_some(),
        Node::Repeat(_) | Node::KHop(_) | Node::Local { .. } | Node::SideEffect { .. } | Node::TimeLimit { .. } => true,
        node => visit::is_barrier(node),
    }
}

impl Builder {
    /// Adds the operator that takes ways away, and tracks none from here on. To be called at the end of the chain of the query itself.
    pub(super) fn forget_ways(&mut self, behind: &Node, chain: &mut Chain) {
        self.note(Rule::ForgottenWays, behind);
        self.requirements.paths = PathNeed::None;
        let id = self.operator(chain, "forget the way", false, || PerRow {
            function: |mut traverser: Traverser, _: &mut Cx<'_>| {
                traverser.forget_path();
                Ok(Some(traverser))
            },
        });
        self.auxiliary(id);
    }
}
