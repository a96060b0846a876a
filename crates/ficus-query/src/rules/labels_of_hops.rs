//! Labels of what a hop leads to: a condition on those of edges is one of the hop, and counting elements by label is counting labels.

use ficus_model::T;

use crate::logical::visit;
use crate::logical::{By, HasKey, LabelledNode, LogicalPlan, Name, Node, Reach, Traversal};
use crate::physical::labels_of;
use crate::rules::shows_steps;

/// Makes `outE('x')` of `outE().hasLabel('x')`, so that no edge with another label is looked at.
pub fn of_edges(plan: &mut LogicalPlan) -> bool {
    if shows_steps(plan) {
        return false;
    }
    let mut changed = false;
    visit::rewrite(&mut plan.root, &mut |traversal| {
        let mut kept: Vec<LabelledNode> = Vec::with_capacity(traversal.nodes.len());
        for own in traversal.nodes.drain(..) {
            match kept.last().and_then(|hop| narrowed(hop, &own)) {
                Some((hop, rest)) => {
                    changed = true;
                    kept.pop();
                    kept.push(hop);
                    kept.extend(rest);
                }
                None => kept.push(own),
            }
        }
        traversal.nodes = kept;
    });
    changed
}

/// What stands for a hop to edges and a condition right behind it that names labels: the hop along these, and what else is to be fulfilled.
fn narrowed(hop: &LabelledNode, condition: &LabelledNode) -> Option<(LabelledNode, Option<LabelledNode>)> {
    let (Node::Adjacent { direction, labels, reach: Reach::Edge }, Node::Has { containers }) =
        (&hop.node, &condition.node)
    else {
        return None;
    };
    let place = containers.iter().position(|own| matches!(own.key, HasKey::Label) && labels_of(own).is_some())?;
    let named = labels_of(&containers[place])?;
    let wanted: Vec<Name> = match labels.as_slice() {
        [] => named,
        // Who is asked for twice comes once.
        own => own.iter().filter(|label| named.contains(label)).cloned().collect(),
    };
    // No labels are all labels.
    if wanted.is_empty() {
        return None;
    }
    let mut containers = containers.clone();
    containers.remove(place);
    let node = Node::Adjacent { direction: *direction, labels: wanted, reach: Reach::Edge };
    if containers.is_empty() {
        let mut labels = hop.labels.clone();
        labels.extend(condition.labels.iter().filter(|label| !hop.labels.contains(label)).cloned());
        return Some((LabelledNode { node, labels }, None));
    }
    let rest = LabelledNode { node: Node::Has { containers }, labels: condition.labels.clone() };
    Some((LabelledNode { node, labels: hop.labels.clone() }, Some(rest)))
}

/// Makes `label().groupCount()` of `groupCount().by(label)` behind a hop and conditions: how many ends have a label can be told without the ends.
pub fn grouped(plan: &mut LogicalPlan) -> bool {
    if shows_steps(plan) {
        return false;
    }
    let counts = |key: By| Node::GroupCount { side_effect: None, key };
    let mut changed = false;
    visit::rewrite(&mut plan.root, &mut |traversal: &mut Traversal| {
        let mut behind_hop = false;
        let mut kept: Vec<LabelledNode> = Vec::with_capacity(traversal.nodes.len());
        for mut own in traversal.nodes.drain(..) {
            if behind_hop && own.node == counts(By::Token(T::Label)) {
                changed = true;
                own.node = counts(By::Identity);
                kept.push(Node::Label.into());
            }
            behind_hop = own.labels.is_empty()
                && match own.node {
                    Node::Adjacent { .. } => true,
                    Node::Has { .. } => behind_hop,
                    _ => false,
                };
            kept.push(own);
        }
        traversal.nodes = kept;
    });
    changed
}
