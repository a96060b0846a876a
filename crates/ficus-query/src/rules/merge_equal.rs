//! Merging equal traversers while they are on their way, so that the work of a traversal grows with the vertices it reaches
//! and not with the walks that reach them.
//!
//! Two traversers are equal if they are at the same object; that is of use only where the plan keeps no paths, has no
//! effects that count rows one by one, and can merge sacks. A barrier does it. Where the query wants few rows early (a
//! `limit` before the next barrier), rows are let through instead.

use std::sync::Arc;

use crate::logical::visit::{self, PathNeed};
use crate::logical::{LabelledNode, LogicalPlan, Node};
use crate::options::{ScopePolicy, scope_settings};
use crate::physical::Requirements;

/// Different traversers that a barrier between hops gathers before it lets them go, some megabytes. With fewer, as the 2,500 of TinkerPop, a walk that
/// comes to ten thousand vertices again and again meets hardly any of them twice before they go.
const BETWEEN_HOPS: i64 = 1 << 15;

/// Whether of equal rows one may go on that counts as often, wherever that is.
pub fn may_merge(plan: &LogicalPlan) -> bool {
    let requirements = Requirements::of(plan);
    let sacks_merge = plan.source.sack.as_ref().is_none_or(|sack| sack.merge.is_some());
    // With sack merging the place of a barrier is part of the meaning.
    let sacks = plan.source.sack.is_some();
    requirements.paths != PathNeed::Full
        && !requirements.row_by_row
        && sacks_merge
        && !sacks
        && !plan.source.without_bulk
        && !loses_bulk(plan)
}

/// Whether a sub-query that takes a bulk as one keeps one of equal rows: what comes of merged rows is less then.
fn loses_bulk(plan: &LogicalPlan) -> bool {
    let keeps_one = &mut |node: &Node| matches!(node, Node::Dedup { .. });
    visit::any(&plan.root, &mut |node| {
        matches!(node, Node::Optional { .. } | Node::Match { .. })
            && visit::children(node).iter().any(|child| visit::any(child, keeps_one))
    })
}

/// For each node, whether the rows after it are cut off before something gathers them all.
pub(super) fn want_rows_early(nodes: &[LabelledNode]) -> Vec<bool> {
    let mut want = vec![false; nodes.len()];
    let mut wanted = false;
    for (own, want) in nodes.iter().zip(&mut want).rev() {
        *want = wanted;
        wanted = match own.node {
            Node::Range { .. } => true,
            _ => wanted && !visit::is_barrier(&own.node),
        };
    }
    want
}

fn expands(node: &Node) -> bool {
    matches!(node, Node::Adjacent { .. } | Node::EdgeVertex { .. })
}

fn filters(node: &Node) -> bool {
    matches!(
        node,
        Node::Has { .. } | Node::HasProperty { .. } | Node::Is { .. } | Node::Filter { .. } | Node::Not { .. }
    )
}

/// Ends the body of each outermost `repeat` with a barrier, except where the query wants it to go to the ends of its walks first.
pub fn in_loops(plan: &mut LogicalPlan) -> bool {
    if !may_merge(plan) {
        return false;
    }
    let mut changed = false;
    let settings = scope_settings(&plan.source);
    let want_early = want_rows_early(&plan.root.nodes);
    for (own, want_early) in plan.root.nodes.iter_mut().zip(want_early) {
        let labels = &own.labels;
        let goes_deep =
            settings.iter().any(|setting| setting.policy == Some(ScopePolicy::Dfs) && labels.contains(&setting.label));
        if let Node::Repeat(repeat) = &mut own.node
            && !want_early
            && !goes_deep
            && !repeat.distinct
            && repeat.body.nodes.iter().any(|own| expands(&own.node))
            && !repeat.body.nodes.iter().any(|own| visit::is_barrier(&own.node))
        {
            let barrier = Node::Barrier { size: None, norm_sack: false };
            Arc::make_mut(&mut repeat.body).nodes.push(barrier.into());
            changed = true;
        }
    }
    changed
}

/// Puts a barrier before each hop that follows another.
pub fn between_hops(plan: &mut LogicalPlan) -> bool {
    if !may_merge(plan) {
        return false;
    }
    let want_early = want_rows_early(&plan.root.nodes);
    let written = std::mem::take(&mut plan.root.nodes);
    let count = written.len();
    let mut hopped = false;
    // A hop is no barrier and cuts nothing off, so what is wanted before it is what is wanted behind it.
    for (own, want_early) in written.into_iter().zip(want_early) {
        if expands(&own.node) {
            let leaves_edge = matches!(own.node, Node::EdgeVertex { .. });
            if hopped && !leaves_edge && !want_early {
                let barrier = Node::Barrier { size: Some(BETWEEN_HOPS), norm_sack: false };
                plan.root.nodes.push(barrier.into());
            }
            hopped = true;
        } else if !filters(&own.node) {
            hopped = false;
        }
        plan.root.nodes.push(own);
    }
    plan.root.nodes.len() > count
}

#[cfg(test)]
mod tests {
    use ficus_model::Direction;

    use super::*;
    use crate::logical::{Reach, Reduction};

    /// With this many steps, a look at all of them for each takes minutes.
    const MANY: usize = 500_000;

    fn plan_of(nodes: impl Iterator<Item = Node>) -> LogicalPlan {
        let mut plan = LogicalPlan::default();
        plan.root.nodes = nodes.map(LabelledNode::from).collect();
        plan
    }

    fn out() -> Node {
        Node::Adjacent { direction: Direction::Out, labels: Vec::new(), reach: Reach::Vertex }
    }

    #[test]
    fn what_is_wanted_early_is_known_for_all_nodes() {
        let range = || Node::Range { low: 0, high: 1 };
        let count = || Node::Reduce { reduction: Reduction::Count };
        let plan = plan_of([out(), range(), out(), count(), out(), range(), out()].into_iter());
        assert_eq!(want_rows_early(&plan.root.nodes), [true, false, false, true, true, false, false]);
    }

    #[test]
    fn long_lines_of_steps_are_looked_at_once() {
        let mut plan = plan_of(std::iter::repeat_with(|| Node::Identity).take(MANY));
        assert!(!in_loops(&mut plan) && !between_hops(&mut plan));
        let mut plan = plan_of(std::iter::repeat_with(out).take(MANY));
        assert!(between_hops(&mut plan));
        assert_eq!(plan.root.nodes.len(), 2 * MANY - 1);
    }
}
