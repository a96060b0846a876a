//! Rings: hops that come back to a vertex that the row was at before.
//!
//! `as('f').…out('containerOf').out('hasCreator').where(eq('f'))` walks to the creator of each post to see whether that is `f`. Those posts are
//! known from the other end: the last hop, turned round, leads from `f` to all of them. So the hop before takes over to look its ends up among the
//! neighbours of `f` ([`Node::AdjacentFrom`]), which are fetched once for all rows that have the same `f`, and makes rows of nothing else.

use ficus_model::{Comparison, Scope};

use super::match_line::{filters, labels_inside, movable_from};
use crate::logical::{LabelledNode, LogicalPlan, Name, Node, Passes, Reach, Traversal, WherePredicate};

/// Looks for the last vertices of rings of the outermost traversal instead of going the last hop.
pub fn from_both_ends(plan: &mut LogicalPlan) -> bool {
    if !plan.root.nodes.iter().any(|own| back_to(own).is_some()) || !movable_from(plan, &[]) {
        return false;
    }
    let mut changed = false;
    while let Some((behind_hop, position)) = last_hop(&plan.root) {
        let [hop, test] = [position, position + 1].map(|place| plan.root.nodes[place].clone());
        let (Node::Adjacent { direction, labels, .. }, Some(label)) = (hop.node, back_to(&test)) else { break };
        let passes = Passes::EachEdge;
        let from = Node::AdjacentFrom { label: label.clone(), direction: direction.reversed(), labels, passes };
        let back = Node::Recall { label: label.clone() };
        let back = LabelledNode { node: back, labels: [hop.labels, test.labels.clone()].concat() };
        plan.root.nodes.splice(position..position + 2, [back]);
        plan.root.nodes.insert(behind_hop, from.into());
        changed = true;
    }
    changed
}

/// The label under which a test wants the object that is there.
pub(super) fn back_to(test: &LabelledNode) -> Option<&Name> {
    match &test.node {
        Node::WherePredicate { start: None, predicate: WherePredicate::Compare(Comparison::Eq, label), bys }
            if bys.is_empty() =>
        {
            Some(label)
        }
        _ => None,
    }
}

/// Where a hop is that only has to lead back to a vertex, behind the place right behind the hop before it: only a hop can look its ends up.
fn last_hop(root: &Traversal) -> Option<(usize, usize)> {
    let labels = labels_inside(root);
    (1..root.nodes.len().saturating_sub(1)).find_map(|position| {
        let (before, rest) = root.nodes.split_at(position);
        let [hop, test, ..] = rest else { return None };
        let label = back_to(test).filter(|_| is_hop(hop))?;
        let bound = before.iter().position(|own| own.labels.contains(label))?;
        if labels.iter().filter(|own| **own == label).count() > 1 || !at_vertices(&before[..=bound], false) {
            return None;
        }
        // Between the two may be tests, and a barrier that makes one of equal rows.
        let is_between = |own: &LabelledNode| matches!(own.node, Node::Has { .. } | Node::Barrier { .. });
        let hop_before = before.iter().rposition(|own| !is_between(own)).filter(|place| is_hop(&before[*place]))?;
        let tests = before[hop_before + 1..].iter().take_while(|own| matches!(own.node, Node::Has { .. }));
        Some((hop_before + 1 + tests.count(), position))
    })
}

fn is_hop(own: &LabelledNode) -> bool {
    matches!(own.node, Node::Adjacent { reach: Reach::Vertex, .. })
}

/// Whether rows are at vertices behind these steps, beginning at vertices or not; false if that cannot be told.
pub(super) fn at_vertices(nodes: &[LabelledNode], from: bool) -> bool {
    nodes.iter().fold(from, |at_vertex, own| match &own.node {
        Node::Vertices { .. }
        | Node::Adjacent { reach: Reach::Vertex, .. }
        | Node::EdgeVertex { .. }
        | Node::OtherVertex => true,
        node if filters(node) => at_vertex,
        Node::AdjacentFrom { .. }
        | Node::Dedup { .. }
        | Node::Range { .. }
        | Node::PathFilter { .. }
        | Node::Barrier { .. }
        | Node::Identity
        | Node::Order { scope: Scope::Global, .. } => at_vertex,
        Node::Union { branches, start: false } => {
            at_vertex && branches.iter().all(|branch| at_vertices(&branch.nodes, true))
        }
        Node::Repeat(repeat) => at_vertex && at_vertices(&repeat.body.nodes, true),
        _ => false,
    })
}
