//! Conditions on ids and labels go before the `dedup()` in front of them, and from there into the arms of a `union()`.
//!
//! What such a condition says of one of several equal elements it says of all, so that it makes no difference whether the others are dropped
//! before or after. Before, it stands behind a hop, which tests it without making rows; and it costs less than looking a row up.

use std::sync::Arc;

use crate::logical::{HasKey, LabelledNode, LogicalPlan, Node, Traversal, visit};
use crate::physical::Requirements;

/// Moves them, wherever they are.
pub fn before_dedup(plan: &mut LogicalPlan) -> bool {
    if Requirements::of(plan).row_by_row {
        return false;
    }
    let mut changed = false;
    visit::rewrite(&mut plan.root, &mut |traversal| changed |= in_traversal(traversal));
    changed
}

fn in_traversal(traversal: &mut Traversal) -> bool {
    let (nodes, mut changed, mut position) = (&mut traversal.nodes, false, 0);
    while position + 1 < nodes.len() {
        if !is_plain_dedup(&nodes[position].node) || !is_cheap(&nodes[position + 1].node) {
            position += 1;
            continue;
        }
        let LabelledNode { node, mut labels } = nodes.remove(position + 1);
        // What is labelled is the same element.
        nodes[position].labels.append(&mut labels);
        match position.checked_sub(1).map(|before| &mut nodes[before].node) {
            Some(Node::Union { branches, .. }) => {
                for branch in branches {
                    Arc::make_mut(branch).nodes.push(node.clone().into());
                }
            }
            _ => {
                nodes.insert(position, node.into());
                position += 1;
            }
        }
        changed = true;
    }
    changed
}

fn is_plain_dedup(node: &Node) -> bool {
    matches!(node, Node::Dedup { labels, by: None } if labels.is_empty())
}

/// Whether it looks at nothing but ids and labels.
fn is_cheap(node: &Node) -> bool {
    match node {
        Node::Has { containers } => containers.iter().all(|own| matches!(own.key, HasKey::Id | HasKey::Label)),
        _ => false,
    }
}
