//! What nobody reads is not made: ends of `where()` that are no labels of rows, and paths that are only counted.

use std::sync::Arc;

use ficus_model::Comparison;

use crate::logical::visit;
use crate::logical::{LabelledNode, LogicalPlan, Name, Node, Reach, Reduction, Traversal, WherePredicate};
use crate::walk_filter::is_condition;

/// Makes a test of vertices out of `where(… .as(label))`: whether what it comes to is the vertex under the label.
pub fn ends_as_tests(plan: &mut LogicalPlan) -> bool {
    let mut changed = false;
    visit::rewrite(&mut plan.root, &mut |traversal| {
        for position in 0..traversal.nodes.len() {
            let (before, rest) = traversal.nodes.split_at_mut(position);
            let Node::WhereTraversal { start: None, traversal: asked, end: Some(end) } = &rest[0].node else {
                continue;
            };
            // Where the label may be missing, rows are left out; and the label is that of the row that asks.
            if !before.iter().any(|own| own.labels.contains(end)) || labels(asked, end) || !ends_at_elements(asked) {
                continue;
            }
            let predicate = WherePredicate::Compare(Comparison::Eq, end.clone());
            let mut nodes = asked.nodes.clone();
            nodes.push(Node::WherePredicate { start: None, predicate, bys: Vec::new() }.into());
            rest[0].node = Node::Filter { traversal: Arc::new(Traversal { nodes }) };
            changed = true;
        }
    });
    changed
}

/// Whether a step inside has this label.
fn labels(traversal: &Traversal, label: &Name) -> bool {
    let mut found = false;
    visit::walk_traversals(traversal, &mut |own| found |= own.nodes.iter().any(|node| node.labels.contains(label)));
    found
}

/// Whether all that comes of it are vertices, or edges.
fn ends_at_elements(traversal: &Traversal) -> bool {
    let end = traversal.nodes.iter().rev().find(|own| !is_condition(own));
    end.is_some_and(|own| {
        let is_hop = matches!(
            own.node,
            Node::Adjacent { reach: Reach::Vertex | Reach::Edge, .. } | Node::EdgeVertex { .. } | Node::OtherVertex
        );
        is_hop && own.labels.is_empty()
    })
}

/// Leaves out paths that are counted.
pub fn counted_paths(plan: &mut LogicalPlan) -> bool {
    if plan.source.with_path {
        return false;
    }
    let mut changed = false;
    visit::rewrite(&mut plan.root, &mut |traversal| {
        let is_path = |own: &LabelledNode| match &own.node {
            Node::Path { from: None, to: None, bys } => own.labels.is_empty() && bys.is_empty(),
            _ => false,
        };
        let mut position = 0;
        while position + 1 < traversal.nodes.len() {
            let is_counted = matches!(traversal.nodes[position + 1].node, Node::Reduce { reduction: Reduction::Count });
            if is_counted && is_path(&traversal.nodes[position]) {
                traversal.nodes.remove(position);
                changed = true;
                // Two in a row are two of one row each.
                position = position.saturating_sub(1);
            } else {
                position += 1;
            }
        }
    });
    changed
}
