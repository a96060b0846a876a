//! Groups of which only the sizes are wanted are counted.

use crate::logical::visit;
use crate::logical::{By, LogicalPlan, Node, Reduction, Traversal};

/// Makes `groupCount().by(key)` of `group().by(key).by(count())`.
pub fn groups_as_counts(plan: &mut LogicalPlan) -> bool {
    if !visit::any(&plan.root, &mut is_counted) {
        return false;
    }
    visit::rewrite(&mut plan.root, &mut |traversal| {
        for own in traversal.nodes.iter_mut().filter(|own| is_counted(&own.node)) {
            if let Node::Group { key, .. } = &own.node {
                own.node = Node::GroupCount { side_effect: None, key: key.clone() };
            }
        }
    });
    true
}

fn is_counted(node: &Node) -> bool {
    matches!(node, Node::Group { side_effect: None, value: By::Traversal(value), .. } if counts(value))
}

fn counts(value: &Traversal) -> bool {
    match value.nodes.as_slice() {
        [own] => own.labels.is_empty() && matches!(own.node, Node::Reduce { reduction: Reduction::Count }),
        _ => false,
    }
}
