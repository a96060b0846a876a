//! Keys that take long to make are made in front of the step that counts them.
//!
//! `groupCount()` is one operator on one executor. What `groupCount().by(values('creationDate').asString().substring(0, 7))` makes of each row needs
//! nothing but that row, so a `map()` makes it, which is spread over the executors that have nothing else to do. Keys that are walks of a few hops stay:
//! those are made for many rows together (`WalksOfMany`).

use crate::logical::{By, LogicalPlan, Node, Traversal};
use crate::many_walks::ManyWalks;
use crate::options::{self, scope_settings};
use crate::probe::Probe;

/// Makes `map(key).groupCount()` of `groupCount().by(key)`, in the outermost traversal.
pub fn before_counts(plan: &mut LogicalPlan) -> bool {
    let takes_long = |node: &Node| matches!(node, Node::GroupCount { side_effect: None, key: By::Traversal(key) } if takes_long(key));
    let Some(place) = plan.root.nodes.iter().skip(1).position(|own| takes_long(&own.node)) else { return false };
    // Without help from other executors there is nothing to be won, and a scope that is addressed by the step's label is that of its key.
    if !plan.source.is_on(options::SPREAD)
        || !plan.source.is_on(options::IN_PLACE)
        || !scope_settings(&plan.source).is_empty()
    {
        return false;
    }
    let own = &mut plan.root.nodes[place + 1];
    if let Node::GroupCount { key, .. } = &mut own.node
        && let By::Traversal(traversal) = std::mem::replace(key, By::Identity)
    {
        plan.root.nodes.insert(place + 1, Node::Map { traversal }.into());
    }
    true
}

/// Whether a key is worth a row of its own: more than a look at a value, and not better made with others.
fn takes_long(key: &Traversal) -> bool {
    let begins_elsewhere = matches!(key.nodes.first().map(|own| &own.node), None | Some(Node::Select { .. }));
    key.nodes.len() > 1 && !begins_elsewhere && ManyWalks::of(key).is_none() && Probe::compile(key).is_some()
}
