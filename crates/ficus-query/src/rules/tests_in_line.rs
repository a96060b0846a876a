//! Tests inside tests, written one behind the other: `and(has(…), has(…))` and `where(has(…))` as the steps in them, and `or()` of conditions on one key
//! as one condition. Scans, indexes and hops look at conditions that stand right behind them.

use std::sync::Arc;

use ficus_model::{Comparison, P, Shared, Value};

use crate::logical::visit;
use crate::logical::{HasContainer, HasKey, LabelledNode, LogicalPlan, Node, Traversal, WherePredicate};
use crate::operators::has::compares_text;
use crate::rules::match_line::filters;
use crate::rules::shows_steps;

/// Takes tests out of those that they are all of.
pub fn inlined(plan: &mut LogicalPlan) -> bool {
    if !visit::any(&plan.root, &mut is_of_tests) || shows_steps(plan) {
        return false;
    }
    let mut changed = false;
    visit::rewrite(&mut plan.root, &mut |traversal| {
        if !traversal.nodes.iter().any(|own| tests_of(&own.node).is_some()) {
            return;
        }
        changed = true;
        for own in std::mem::take(&mut traversal.nodes) {
            match tests_of(&own.node) {
                Some(mut tests) => {
                    if let Some(last) = tests.last_mut() {
                        last.labels = own.labels;
                    }
                    traversal.nodes.append(&mut tests);
                }
                None => traversal.nodes.push(own),
            }
        }
    });
    changed
}

fn is_of_tests(node: &Node) -> bool {
    matches!(node, Node::Filter { .. } | Node::And { .. } | Node::Or { .. } | Node::WherePredicate { .. })
}

/// The tests that a node is made of, at least one, if it is made of nothing else.
fn tests_of(node: &Node) -> Option<Vec<LabelledNode>> {
    let tests: Vec<LabelledNode> = match node {
        Node::Filter { traversal } => only_tests(traversal)?.to_vec(),
        Node::And { traversals } => {
            let parts = traversals.iter().map(|part| only_tests(part)).collect::<Option<Vec<_>>>()?;
            parts.into_iter().flatten().cloned().collect()
        }
        Node::Or { traversals } => vec![Node::Has { containers: vec![any_of(traversals)?] }.into()],
        // One `by()` is that of all.
        Node::WherePredicate { start, predicate: WherePredicate::And(parts), bys } if bys.len() <= 1 => {
            let test = |predicate| Node::WherePredicate { start: start.clone(), predicate, bys: bys.clone() };
            conjuncts(parts).map(|part| test(part.clone()).into()).collect()
        }
        _ => return None,
    };
    (!tests.is_empty()).then_some(tests)
}

/// Predicates that all have to hold, those inside others too.
fn conjuncts(parts: &[WherePredicate]) -> Box<dyn Iterator<Item = &WherePredicate> + '_> {
    Box::new(parts.iter().flat_map(|part| match part {
        WherePredicate::And(inner) => conjuncts(inner),
        part => Box::new(std::iter::once(part)),
    }))
}

fn only_tests(traversal: &Traversal) -> Option<&[LabelledNode]> {
    let is_test = |own: &LabelledNode| own.labels.is_empty() && filters(&own.node);
    traversal.nodes.iter().all(is_test).then_some(&traversal.nodes)
}

/// The condition that holds where one of those on the same key does.
fn any_of(traversals: &[Arc<Traversal>]) -> Option<HasContainer> {
    let condition = |traversal: &Arc<Traversal>| match traversal.nodes.as_slice() {
        [LabelledNode { node: Node::Has { containers }, labels }] if labels.is_empty() => match containers.as_slice() {
            [only] => Some(only.clone()),
            _ => None,
        },
        _ => None,
    };
    let conditions = traversals.iter().map(condition).collect::<Option<Vec<HasContainer>>>()?;
    let key = conditions.first()?.key.clone();
    // An id is compared as text with texts.
    let is_one_kind = |own: &HasContainer| compares_text(&own.predicate) == compares_text(&conditions[0].predicate);
    if !conditions.iter().all(|own| own.key == key) || key == HasKey::Id && !conditions.iter().all(is_one_kind) {
        return None;
    }
    let values = conditions.iter().map(|own| match &own.predicate {
        P::Compare(Comparison::Eq, value) => Some(vec![value.clone()]),
        P::Within(values) => Some(values.to_vec()),
        _ => None,
    });
    let predicate = match values.collect::<Option<Vec<Vec<Value>>>>() {
        Some(values) => P::Within(Shared::new(values.concat())),
        None => P::Or(conditions.into_iter().map(|own| own.predicate).collect()),
    };
    Some(HasContainer { key, predicate })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logical::By;

    fn condition(key: &str, predicate: P) -> LabelledNode {
        let key = match key {
            "id" => HasKey::Id,
            "label" => HasKey::Label,
            key => HasKey::Key(key.into()),
        };
        Node::Has { containers: vec![HasContainer { key, predicate }] }.into()
    }

    fn line(nodes: Vec<LabelledNode>) -> Arc<Traversal> {
        Arc::new(Traversal { nodes })
    }

    fn rewritten(node: Node) -> Option<Vec<LabelledNode>> {
        let mut plan = LogicalPlan::default();
        plan.root.nodes = vec![LabelledNode { node, labels: vec!["a".into()] }];
        inlined(&mut plan).then_some(plan.root.nodes)
    }

    fn labelled(mut own: LabelledNode) -> LabelledNode {
        own.labels.push("a".into());
        own
    }

    #[test]
    fn what_all_have_to_pass_stands_in_a_line() {
        let [x, y] = ["x", "y"].map(|key| condition(key, P::eq(1.into())));
        let both = Node::And { traversals: vec![line(vec![x.clone()]), line(vec![y.clone()])] };
        assert_eq!(rewritten(both.clone()), Some(vec![x.clone(), labelled(y.clone())]));
        let inside = Node::Filter { traversal: line(vec![both.into(), x.clone()]) };
        assert_eq!(rewritten(inside), Some(vec![x.clone(), y, labelled(x.clone())]));
        assert_eq!(rewritten(Node::Filter { traversal: line(vec![x, Node::Id.into()]) }), None);
    }

    #[test]
    fn comparisons_with_labels_stand_in_a_line() {
        let compared = |label: &str| WherePredicate::Compare(Comparison::Neq, label.into());
        let node = |predicate, bys| Node::WherePredicate { start: Some("s".into()), predicate, bys };
        let inner = WherePredicate::And(vec![compared("y"), compared("z")]);
        let both = WherePredicate::And(vec![compared("x"), inner]);
        let apart = ["x", "y", "z"].map(|label| LabelledNode::from(node(compared(label), vec![])));
        let [x, y, z] = apart;
        assert_eq!(rewritten(node(both.clone(), vec![])), Some(vec![x, y, labelled(z)]));
        let two = vec![By::Identity, By::Identity];
        assert_eq!(rewritten(node(both, two)), None, "they take turns");
    }

    #[test]
    fn one_of_several_on_a_key_is_one_condition() {
        let any = |parts: Vec<LabelledNode>| {
            rewritten(Node::Or { traversals: parts.into_iter().map(|part| line(vec![part])).collect() })
        };
        let within = |key, values: Vec<Value>| Some(vec![labelled(condition(key, P::Within(Shared::new(values))))]);
        let one = |key, value: Value| condition(key, P::eq(value));
        assert_eq!(
            any(vec![one("label", "b".into()), one("label", "c".into())]),
            within("label", vec!["b".into(), "c".into()])
        );
        assert_eq!(any(vec![one("x", 1.into()), one("y", 1.into())]), None);
        assert_eq!(any(vec![one("id", 1.into()), one("id", "1".into())]), None);
        let range = P::Compare(Comparison::Gt, 5.into());
        assert_eq!(
            any(vec![one("x", 1.into()), condition("x", range.clone())]),
            Some(vec![labelled(condition("x", P::Or(vec![P::eq(1.into()), range])))])
        );
    }
}
