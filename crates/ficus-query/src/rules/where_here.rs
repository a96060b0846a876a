//! Comparisons of what rows are at, written with its label: `as('b').where('a', neq('b'))` is `as('b').where(neq('a'))`.
//!
//! Comparisons of labels go to where the last of them is given, if only hops and tests lie between: what they drop goes nowhere then.
//!
//! Without a label that it begins at, a hop compares its ends before they become rows, and knows which vertex it looks for. Only where rows are at
//! elements: of a map the entries would be looked at first. And not beside side effects, which may have the name of a label.

use std::collections::HashMap;

use ficus_model::Comparison;

use crate::logical::{LogicalPlan, Name, Node, WherePredicate, visit};
use crate::operators::scoped_where::right_labels;
use crate::rules::match_line::{filters, labels_inside, movable_from};
use crate::rules::unread::leads_to_elements;
use crate::rules::ways_as_tests::compares_objects;

/// Leaves out the label that comparisons begin at where rows are at it, or at what it is compared with.
pub fn compared_here(plan: &mut LogicalPlan) -> bool {
    let compares = |node: &Node| matches!(node, Node::WherePredicate { start: Some(_), .. });
    let candidates = plan.root.nodes.iter().any(|own| compares(&own.node));
    if !candidates || !plan.source.side_effects.is_empty() || visit::any(&plan.root, &mut visit::has_side_effect) {
        return false;
    }
    let (mut changed, mut at_elements) = (to_their_labels(plan), false);
    // Labels of the elements that rows are at, and those that all rows have.
    let (mut here, mut bound): (Vec<Name>, Vec<Name>) = (Vec::new(), Vec::new());
    for own in &mut plan.root.nodes {
        if let Node::WherePredicate { start, predicate, bys } = &mut own.node
            && bys.is_empty()
            && let Some(from) = start.clone()
        {
            if here.contains(&from) {
                *start = None;
                changed = true;
            } else if let WherePredicate::Compare(Comparison::Eq | Comparison::Neq, other) = predicate
                && here.contains(other)
                && bound.contains(&from)
            {
                *other = from;
                *start = None;
                changed = true;
            }
        }
        if !stays(&own.node) {
            here.clear();
            at_elements = leads_to_elements(&own.node);
        }
        if at_elements {
            here.extend(own.labels.iter().cloned());
        }
        bound.extend(own.labels.iter().cloned());
    }
    changed
}

/// Moves comparisons of labels to the last of these.
fn to_their_labels(plan: &mut LogicalPlan) -> bool {
    if !movable_from(plan, &[]) {
        return false;
    }
    let mut given: HashMap<Name, usize> = HashMap::new();
    labels_inside(&plan.root).into_iter().for_each(|label| *given.entry(label.clone()).or_default() += 1);
    let nodes = &mut plan.root.nodes;
    let mut changed = false;
    for place in 1..nodes.len() {
        let own = &nodes[place];
        let Node::WherePredicate { start: Some(start), predicate, bys } = &own.node else { continue };
        let mut labels = vec![start.clone()];
        right_labels(predicate, &mut labels);
        // Text predicates fail on what is no text, which may be of rows that never come there.
        if !compares_objects(predicate) {
            continue;
        }
        if !bys.is_empty() || !own.labels.is_empty() || labels.iter().any(|label| given.get(label) != Some(&1)) {
            continue;
        }
        // Up to the first step that gives one of them, or has to see all that it is given.
        let passed = nodes[..place]
            .iter()
            .rev()
            .take_while(|own| {
                let gives = own.labels.iter().any(|label| labels.contains(label));
                !gives && (leads_to_elements(&own.node) || filters(&own.node) || is_beside(&own.node))
            })
            .count();
        let first = place - passed;
        // Tests of what is there are cheaper, or no dearer.
        let first = first + nodes[first..place].iter().take_while(|own| filters(&own.node)).count();
        if first < place {
            nodes[first..=place].rotate_right(1);
            changed = true;
        }
    }
    changed
}

fn is_beside(node: &Node) -> bool {
    matches!(node, Node::Identity | Node::AdjacentFrom { .. } | Node::Recall { .. } | Node::Barrier { .. })
}

/// Whether rows are behind a step where they were before it.
fn stays(node: &Node) -> bool {
    filters(node)
        || matches!(node, Node::Identity | Node::AdjacentFrom { .. } | Node::Dedup { .. } | Node::Barrier { .. })
}

#[cfg(test)]
mod tests {
    use ficus_model::{Direction, P};

    use super::*;
    use crate::logical::{LabelledNode, Reach};

    fn out(label: &str) -> LabelledNode {
        let node = Node::Adjacent { direction: Direction::Out, labels: Vec::new(), reach: Reach::Vertex };
        LabelledNode { node, labels: vec![label.into()] }
    }

    fn compare(start: Option<&str>, comparison: Comparison, label: &str) -> LabelledNode {
        let predicate = WherePredicate::Compare(comparison, label.into());
        Node::WherePredicate { start: start.map(Name::from), predicate, bys: Vec::new() }.into()
    }

    fn plan(nodes: Vec<LabelledNode>) -> LogicalPlan {
        let mut plan = LogicalPlan::default();
        plan.root.nodes = nodes;
        plan
    }

    #[test]
    fn either_end_may_be_here() {
        let test = || LabelledNode::from(Node::Is { predicate: P::Compare(Comparison::Neq, 1.into()) });
        for (start, label) in [("a", "b"), ("b", "a")] {
            let mut own = plan(vec![out("a"), out("b"), test(), compare(Some(start), Comparison::Neq, label)]);
            assert!(compared_here(&mut own));
            assert_eq!(own.root.nodes[3], compare(None, Comparison::Neq, "a"), "{start}, {label}");
        }
    }

    #[test]
    fn comparisons_go_to_the_last_of_their_labels() {
        let test = || LabelledNode::from(Node::Is { predicate: P::Compare(Comparison::Neq, 1.into()) });
        let mut own = plan(vec![
            out("a"),
            out("b"),
            test(),
            out("c"),
            test(),
            compare(Some("a"), Comparison::Neq, "b"),
            out("d"),
        ]);
        assert!(compared_here(&mut own));
        let moved = vec![out("a"), out("b"), test(), compare(None, Comparison::Neq, "a"), out("c"), test(), out("d")];
        assert_eq!(own.root.nodes, moved);
    }

    #[test]
    fn what_is_elsewhere_or_has_an_order_stays() {
        let range = || LabelledNode::from(Node::Range { low: 0, high: 3 });
        for nodes in [
            // Other rows would be the first.
            vec![out("a"), out("b"), out("c"), range(), compare(Some("a"), Comparison::Neq, "b")],
            vec![out("a"), out("b"), compare(Some("a"), Comparison::Lt, "b")],
            // Nothing may be under the label.
            vec![out("b"), compare(Some("a"), Comparison::Neq, "b")],
            vec![out("a"), out("b"), compare(None, Comparison::Neq, "a")],
            // A map has entries of its own.
            vec![
                out("a"),
                LabelledNode { node: Node::Label, labels: vec!["b".into()] },
                compare(Some("a"), Comparison::Neq, "b"),
            ],
        ] {
            let mut own = plan(nodes.clone());
            assert!(!compared_here(&mut own));
            assert_eq!(own.root.nodes, nodes);
        }
    }
}
