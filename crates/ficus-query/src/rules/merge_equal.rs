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

/// Traversers a barrier between hops gathers before it lets them go.
const BETWEEN_HOPS: i64 = 2500;

fn may_merge(plan: &LogicalPlan) -> bool {
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

/// Whether the rows after `position` are cut off before something gathers them all.
pub(super) fn wants_rows_early(nodes: &[LabelledNode], position: usize) -> bool {
    nodes[position + 1..]
        .iter()
        .find_map(|own| match own.node {
            Node::Range { .. } => Some(true),
            _ if visit::is_barrier(&own.node) => Some(false),
            _ => None,
        })
        .unwrap_or(false)
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
    for position in 0..plan.root.nodes.len() {
        let labels = &plan.root.nodes[position].labels;
        let goes_deep =
            settings.iter().any(|setting| setting.policy == Some(ScopePolicy::Dfs) && labels.contains(&setting.label));
        let early = wants_rows_early(&plan.root.nodes, position) || goes_deep;
        if let Node::Repeat(repeat) = &mut plan.root.nodes[position].node
            && !early
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
    let mut changed = false;
    let mut position = 0;
    let mut hopped = false;
    while position < plan.root.nodes.len() {
        let node = &plan.root.nodes[position].node;
        if expands(node) {
            let leaves_edge = matches!(node, Node::EdgeVertex { .. });
            if hopped && !leaves_edge && !wants_rows_early(&plan.root.nodes, position - 1) {
                let barrier = Node::Barrier { size: Some(BETWEEN_HOPS), norm_sack: false };
                plan.root.nodes.insert(position, barrier.into());
                position += 1;
                changed = true;
            }
            hopped = true;
        } else if !filters(node) {
            hopped = false;
        }
        position += 1;
    }
    changed
}
