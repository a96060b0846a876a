//! Side effects that are all that is wanted: `groupCount('m').by(key).cap('m')` is `groupCount().by(key)`.
//!
//! A side effect lets all rows through, which wait for it to be complete, and `cap()` drops them. Where nothing else knows it by its name, what is gathered
//! may be the row itself: nothing waits, and all that is done for `group()`, `groupCount()` and `tree()` without a side effect holds for it as well.

use crate::logical::visit;
use crate::logical::{LogicalPlan, Name, Node};

/// Makes rows of those of the query itself. In sub-queries a side effect gathers what comes of all of them.
pub fn as_rows(plan: &mut LogicalPlan) -> bool {
    let capped = |place: usize| {
        let (own, cap) = (plan.root.nodes.get(place)?, plan.root.nodes.get(place + 1)?);
        match &cap.node {
            Node::Cap { keys } if keys.len() == 1 && effect(&own.node) == keys.first() => keys.first().cloned(),
            _ => None,
        }
    };
    // The first is looked at: most have one.
    let Some((place, key)) = (0..plan.root.nodes.len()).find_map(|place| Some((place, capped(place)?))) else {
        return false;
    };
    if is_known_otherwise(plan, place, &key) {
        return false;
    }
    let labels = plan.root.nodes.remove(place + 1).labels;
    let own = &mut plan.root.nodes[place];
    own.labels = labels;
    if let Node::Group { side_effect, .. } | Node::GroupCount { side_effect, .. } | Node::Tree { side_effect, .. } =
        &mut own.node
    {
        *side_effect = None;
    }
    true
}

/// The key of a side effect that is as well a row.
fn effect(node: &Node) -> Option<&Name> {
    match node {
        Node::Group { side_effect, .. } | Node::GroupCount { side_effect, .. } => side_effect.as_ref(),
        // A `by()` that yields nothing is an error in a side effect.
        Node::Tree { side_effect, bys } if bys.is_empty() => side_effect.as_ref(),
        _ => None,
    }
}

/// Whether something but this node and the `cap()` behind it may have to do with a side effect.
fn is_known_otherwise(plan: &LogicalPlan, place: usize, key: &Name) -> bool {
    let is_opaque = &mut |node: &Node| matches!(node, Node::Call { .. } | Node::Io { .. } | Node::VertexProgram(_));
    if plan.source.side_effects.iter().any(|(own, ..)| own == key) || visit::any(&plan.root, is_opaque) {
        return true;
    }
    // Whoever names it shows its name.
    let names = |text: &str| text.split(|char: char| !char.is_alphanumeric() && char != '_').any(|word| word == &**key);
    if key.chars().any(|char| !char.is_alphanumeric() && char != '_') {
        return true;
    }
    let mut own = plan.root.nodes[place].node.clone();
    if let Node::Group { side_effect, .. } | Node::GroupCount { side_effect, .. } | Node::Tree { side_effect, .. } =
        &mut own
    {
        *side_effect = None;
    }
    let others = plan.root.nodes.iter().enumerate().filter(|(other, _)| *other != place && *other != place + 1);
    names(&own.to_string()) || others.into_iter().any(|(_, other)| names(&other.node.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logical::{By, LabelledNode, Traversal};

    fn counts(key: &str) -> LabelledNode {
        Node::GroupCount { side_effect: Some(key.into()), key: By::Key("name".into()) }.into()
    }

    fn cap(key: &str) -> LabelledNode {
        LabelledNode { node: Node::Cap { keys: vec![key.into()] }, labels: vec!["there".into()] }
    }

    fn plan_of(nodes: Vec<LabelledNode>) -> LogicalPlan {
        LogicalPlan { root: Traversal { nodes }, ..LogicalPlan::default() }
    }

    #[test]
    fn what_only_cap_asks_for_is_a_row() {
        let mut plan = plan_of(vec![counts("m"), cap("m"), Node::Unfold.into()]);
        assert!(as_rows(&mut plan));
        assert_eq!(plan.root.nodes.len(), 2);
        assert!(matches!(&plan.root.nodes[0].node, Node::GroupCount { side_effect: None, .. }));
        assert_eq!(plan.root.nodes[0].labels, ["there".into()]);
        assert!(!as_rows(&mut plan));
    }

    #[test]
    fn what_others_know_stays() {
        let by_tree = Node::Tree { side_effect: Some("m".into()), bys: vec![By::Key("name".into())] };
        for nodes in [
            vec![counts("m"), cap("n")],
            vec![counts("m"), counts("m"), cap("m")],
            vec![counts("m"), cap("m"), cap("m")],
            vec![counts("m"), cap("m"), counts("m")],
            vec![counts("name"), cap("name")],
            vec![counts("a key"), cap("a key")],
            vec![by_tree.into(), cap("m")],
        ] {
            assert!(!as_rows(&mut plan_of(nodes)));
        }
        let mut declared = plan_of(vec![counts("m"), cap("m")]);
        declared.source.side_effects.push(("m".into(), ficus_model::Value::Int(1), None));
        assert!(!as_rows(&mut declared));
    }

    #[test]
    fn long_lines_of_steps_are_looked_at_once() {
        let many = (0..200_000).map(|_| Node::Identity.into()).chain([counts("m"), cap("m")]).collect();
        assert!(as_rows(&mut plan_of(many)));
    }
}
