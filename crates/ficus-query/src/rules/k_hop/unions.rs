//! `out('a').union(identity(), out('a'))`, `union(out('a'), out('a').out('a'))`: walks of one hop or two, written side by side.

use std::collections::BTreeSet;

use super::{Hop, Replacement, hop, search};
use crate::logical::{KHopReach, LabelledNode, Node};
use crate::walk_filter::is_condition;

/// A search in place of hops, `at` of these nodes, and of a union behind them, if all ways through it are walks along the same hop, of
/// all lengths up to the longest.
pub(super) fn within(nodes: &[LabelledNode], at: usize) -> Option<Replacement> {
    nodes.get(at).filter(|own| matches!(own.node, Node::Union { start: false, .. }))?;
    let (mut along, mut lengths) = (None, BTreeSet::new());
    walk_lengths(&nodes[..=at], 0, &mut along, &mut lengths)?;
    let longest = *lengths.last()?;
    let reach = match (*lengths.first()?, lengths.len()) {
        (0, count) if count == longest as usize + 1 => KHopReach::WithinOrStart,
        (1, count) if count == longest as usize => KHopReach::Within,
        _ => return None,
    };
    if longest < 2 {
        return None;
    }
    let walk = along?.walk(Some(longest), reach);
    // What is asked of all that is reached is asked as well behind `dedup()`.
    let conditions: Vec<LabelledNode> = nodes[at + 1..].iter().take_while(|own| is_condition(own)).cloned().collect();
    search(walk, at + 1 + conditions.len(), conditions, nodes)
}

/// Adds the lengths of all walks that these nodes are, behind one of `before` hops; `None` if they are something else as well, or not along
/// one hop.
fn walk_lengths(
    nodes: &[LabelledNode],
    before: u32,
    along: &mut Option<Hop>,
    lengths: &mut BTreeSet<u32>,
) -> Option<()> {
    let (mut at, mut length) = (0, before);
    while let Some(own) = nodes.get(at) {
        match &own.node {
            _ if !own.labels.is_empty() => return None,
            Node::Identity => at += 1,
            Node::Union { branches, start: false } => {
                // What follows follows each of the branches.
                let rest = &nodes[at + 1..];
                if !rest.is_empty() {
                    return None;
                }
                return branches.iter().try_for_each(|branch| walk_lengths(&branch.nodes, length, along, lengths));
            }
            _ => {
                let (next, used) = hop(&nodes[at..])?;
                if *along.get_or_insert_with(|| next.clone()) != next {
                    return None;
                }
                (at, length) = (at + used, length.checked_add(1)?);
            }
        }
    }
    lengths.insert(length);
    Some(())
}
