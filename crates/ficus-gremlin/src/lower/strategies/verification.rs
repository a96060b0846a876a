//! What strategies forbid, and what is forbidden without any.

use ficus_model::{Comparison, P, Value};
use ficus_query::logical::{
    HasContainer, HasKey, LabelledNode, Name, Node, PropertyWrite, Reach, Strategy, Traversal, ValueOrTraversal, visit,
};

use super::super::error::{LowerError, Lowered};

/// Checks the finished plan against the verifying strategies.
pub(super) fn verify(root: &Traversal, strategies: &[Strategy]) -> Lowered {
    let mut failed = None;
    for strategy in strategies {
        visit::walk(root, &mut |node| {
            if failed.is_none() {
                failed = match strategy {
                    Strategy::ReadOnly => read_only(node),
                    Strategy::ReservedKeys { keys, log_only: false } => reserved_keys(node, keys),
                    _ => None,
                };
            }
        });
        if matches!(strategy, Strategy::EdgeLabelVerification { log_only: false }) && failed.is_none() {
            visit::walk_traversals(root, &mut |traversal| {
                let mut rest = traversal.nodes.as_slice();
                while let ([first, behind @ ..], None) = (rest, &failed) {
                    failed = edge_label(&first.node, behind);
                    rest = behind;
                }
            });
        }
    }
    failed.map_or(Ok(()), Err)
}

fn read_only(node: &Node) -> Option<LowerError> {
    visit::is_mutation(node).then(|| {
        LowerError::illegal(
            "withStrategies",
            format!("The provided traversal has a mutating step and thus is not read only: {node}"),
        )
    })
}

/// A step to edges may have its labels from `hasLabel()` among the conditions behind it.
fn edge_label(node: &Node, behind: &[LabelledNode]) -> Option<LowerError> {
    let Node::Adjacent { labels, reach, .. } = node else { return None };
    let conditions = behind.iter().map_while(|labelled| match &labelled.node {
        Node::Has { containers } => Some(containers),
        _ => None,
    });
    let is_named = !labels.is_empty() || *reach == Reach::Edge && conditions.flatten().any(names_labels);
    (!is_named).then(|| {
        LowerError::illegal(
            "withStrategies",
            format!(
                "The provided traversal contains a vertex step without any specified edge label: {node}\nAlways specify \
                 edge labels which restrict traversal paths ensuring optimal performance."
            ),
        )
    })
}

/// Whether a condition says which labels there may be.
fn names_labels(container: &HasContainer) -> bool {
    let is_name = |predicate: &P| matches!(predicate, P::Compare(Comparison::Eq, Value::String(_)));
    container.key == HasKey::Label
        && match &container.predicate {
            P::Within(labels) => !labels.is_empty() && labels.iter().all(|label| matches!(label, Value::String(_))),
            P::Or(parts) => parts.iter().all(is_name),
            other => is_name(other),
        }
}

/// Looks where TinkerPop looks: at what `addV()` and `addE()` take in themselves, and at meta-properties. A `property()` by itself, one with a
/// cardinality behind `addV()`, and the maps of `mergeV()` and `mergeE()` may set what they like.
fn reserved_keys(node: &Node, reserved: &[Name]) -> Option<LowerError> {
    let is_reserved = |key: &ValueOrTraversal| match key {
        ValueOrTraversal::Value(Value::String(key)) => reserved.contains(key).then(|| key.clone()),
        _ => None,
    };
    let in_meta = |property: &PropertyWrite| property.meta.iter().find_map(|(key, _)| is_reserved(key));
    let (found, step) = match node {
        Node::AddVertex { properties, .. } => {
            let own = properties.iter().filter(|property| is_taken_in(property));
            let found = own.into_iter().find_map(|property| is_reserved(&property.key));
            match found {
                Some(key) => (Some(key), None),
                None => (properties.iter().find_map(in_meta), Some("AddPropertyStep")),
            }
        }
        Node::AddEdge { properties, .. } => (properties.iter().find_map(|property| is_reserved(&property.key)), None),
        Node::AddProperty { property } => (in_meta(property), None),
        _ => return None,
    };
    let text = node.to_string();
    let step = step.unwrap_or_else(|| text.split('(').next().unwrap_or(&text));
    found.map(|key| {
        LowerError::illegal(
            "withStrategies",
            format!(
                "The provided traversal contains a {step} that is setting a property key to a reserved word: {key}"
            ),
        )
    })
}

/// Whether `addV()` sets a property itself: one with a cardinality or meta-properties is a step of its own in TinkerPop.
fn is_taken_in(property: &PropertyWrite) -> bool {
    let has_own_cardinality = matches!(property.value, ValueOrTraversal::Value(Value::Entry(_)));
    property.cardinality.is_none() && property.meta.is_empty() && !has_own_cardinality
}

/// The rules that hold for every traversal: `profile()` ends it.
pub(super) fn standard(root: &Traversal, strategies: &[Strategy]) -> Lowered {
    let switched_off =
        |strategy: &Strategy| matches!(strategy, Strategy::Without(name) if &**name == "StandardVerificationStrategy");
    if strategies.iter().any(switched_off) || !root.nodes.iter().any(is_profile) {
        return Ok(());
    }
    if root.nodes.iter().filter(|labelled| is_profile(labelled)).count() > 1 {
        return Err(LowerError::illegal("profile", "The profile()-Step cannot be specified multiple times."));
    }
    let mut end = root.nodes.as_slice();
    if let [rest @ .., LabelledNode { node: Node::Discard, .. }] = end {
        end = rest;
    }
    if let [rest @ .., LabelledNode { node: Node::Cap { .. }, .. }] = end {
        end = rest;
    }
    match end {
        [.., LabelledNode { node: Node::Profile { .. }, .. }] => Ok(()),
        _ => Err(LowerError::illegal(
            "profile",
            "When specified, the profile()-Step must be the last step or followed only by the cap()-step.",
        )),
    }
}

fn is_profile(labelled: &LabelledNode) -> bool {
    matches!(labelled.node, Node::Profile { .. })
}
