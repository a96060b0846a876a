//! The labels that there are, and how often: questions by which people look at a graph for the first time.
//!
//! `V().label().groupCount()` is `V().groupCount().by(label)`, and `V().label().dedup()` its keys. Those are counters of the store, which need no look at
//! any element ([`crate::physical`], `KeptCounts`).

use ficus_model::{Column, T};

use crate::logical::visit::PathNeed;
use crate::logical::{By, HasKey, LabelledNode, LogicalPlan, Node, Reduction};
use crate::physical::Requirements;

/// Counts elements by label where their labels are counted, or wanted once each.
pub fn counted(plan: &mut LogicalPlan) -> bool {
    let nodes = &plan.root.nodes;
    let Some(place) = nodes.iter().position(|own| own.node == Node::Label) else { return false };
    let (before, rest) = nodes.split_at(place);
    let [label, own, behind @ ..] = rest else { return false };
    let Some((start, conditions)) = before.split_first() else { return false };
    let is_all = matches!(start.node, Node::Vertices { all: true, .. } | Node::Edges { all: true, .. });
    if !is_all || !start.labels.is_empty() || !label.labels.is_empty() || !conditions.iter().all(is_of_labels) {
        return false;
    }
    let requirements = Requirements::of(plan);
    if requirements.paths == PathNeed::Full || requirements.row_by_row || plan.source.sack.is_some() {
        return false;
    }
    let counts = Node::GroupCount { side_effect: None, key: By::Token(T::Label) };
    let counted: Vec<LabelledNode> = match &own.node {
        Node::GroupCount { side_effect: None, key: By::Identity } => {
            vec![LabelledNode { node: counts, labels: own.labels.clone() }]
        }
        // Counters come in an order of their own.
        Node::Dedup { labels, by: None } if labels.is_empty() && own.labels.is_empty() && is_without_order(behind) => {
            vec![counts.into(), Node::SelectColumn { column: Column::Keys }.into(), Node::Unfold.into()]
        }
        _ => return false,
    };
    plan.root.nodes.splice(place..place + 2, counted);
    true
}

/// Whether a node is a condition on labels that labels nothing.
fn is_of_labels(own: &LabelledNode) -> bool {
    own.labels.is_empty()
        && match &own.node {
            Node::Has { containers } => containers.iter().all(|container| matches!(container.key, HasKey::Label)),
            _ => false,
        }
}

/// Whether it makes no difference to these steps in which order rows come.
fn is_without_order(behind: &[LabelledNode]) -> bool {
    match behind {
        [] => true,
        [own] => matches!(own.node, Node::Reduce { reduction: Reduction::Count }),
        _ => false,
    }
}
