//! What nobody reads is not made: ends of `where()` that are no labels of rows, and paths that are only counted.

use std::collections::HashSet;
use std::sync::Arc;

use ficus_model::Comparison;

use crate::logical::visit;
use crate::logical::{LabelledNode, LogicalPlan, Name, Node, Reach, Reduction, Traversal, WherePredicate};
use crate::walk_filter::is_condition;

/// Makes a test of vertices out of `where(… .as(label))`: whether what it comes to is the vertex under the label.
pub fn ends_as_tests(plan: &mut LogicalPlan) -> bool {
    let is_end = &mut |node: &Node| matches!(node, Node::WhereTraversal { start: None, end: Some(_), .. });
    if !visit::any(&plan.root, is_end) {
        return false;
    }
    let mut changed = false;
    visit::rewrite(&mut plan.root, &mut |traversal| {
        let mut before: HashSet<Name> = HashSet::new();
        for own in &mut traversal.nodes {
            if let Node::WhereTraversal { start: None, traversal: asked, end: Some(end) } = &own.node
                // Where the label may be missing, rows are left out; and the label is that of the row that asks.
                && before.contains(end)
                && !labels(asked, end)
                && ends_at_elements(asked)
            {
                let predicate = WherePredicate::Compare(Comparison::Eq, end.clone());
                let mut nodes = asked.nodes.clone();
                nodes.push(Node::WherePredicate { start: None, predicate, bys: Vec::new() }.into());
                own.node = Node::Filter { traversal: Arc::new(Traversal { nodes }) };
                changed = true;
            }
            before.extend(own.labels.iter().cloned());
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
    if plan.source.with_path || !visit::any(&plan.root, &mut |node| matches!(node, Node::Path { .. })) {
        return false;
    }
    let is_path = |own: &LabelledNode| match &own.node {
        Node::Path { from: None, to: None, bys } => own.labels.is_empty() && bys.is_empty(),
        _ => false,
    };
    let mut changed = false;
    visit::rewrite(&mut plan.root, &mut |traversal| {
        let mut is_counted = false;
        let mut kept = Vec::with_capacity(traversal.nodes.len());
        for own in traversal.nodes.drain(..).rev() {
            if is_counted && is_path(&own) {
                // What is in front of it is counted in its place.
                changed = true;
                continue;
            }
            is_counted = matches!(own.node, Node::Reduce { reduction: Reduction::Count });
            kept.push(own);
        }
        kept.reverse();
        traversal.nodes = kept;
    });
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_left_out_wherever_they_are_counted() {
        // With a move of all steps for each path this takes minutes.
        const PAIRS: usize = 50_000;
        let path = || LabelledNode::from(Node::Path { from: None, to: None, bys: Vec::new() });
        let count = || LabelledNode::from(Node::Reduce { reduction: Reduction::Count });
        let mut plan = LogicalPlan::default();
        plan.root.nodes = (0..PAIRS).flat_map(|_| [path(), path(), count()]).chain([path()]).collect();
        assert!(counted_paths(&mut plan));
        assert_eq!(plan.root.nodes.len(), PAIRS + 1);
        assert_eq!(plan.root.nodes.last(), Some(&path()));
        assert!(!counted_paths(&mut plan));
    }
}
