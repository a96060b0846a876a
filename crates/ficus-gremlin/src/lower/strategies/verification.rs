//! What strategies forbid, and what is forbidden without any.

use ficus_model::Value;
use ficus_query::logical::{LabelledNode, Name, Node, PropertyWrite, Strategy, Traversal, ValueOrTraversal, visit};

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
                    Strategy::EdgeLabelVerification { log_only: false } => edge_label(node),
                    _ => None,
                };
            }
        });
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

fn edge_label(node: &Node) -> Option<LowerError> {
    let Node::Adjacent { labels, .. } = node else { return None };
    labels.is_empty().then(|| {
        LowerError::illegal(
            "withStrategies",
            format!(
                "The provided traversal contains a vertex step without any specified edge label: {node}\nAlways specify \
                 edge labels which restrict traversal paths ensuring optimal performance."
            ),
        )
    })
}

fn reserved_keys(node: &Node, reserved: &[Name]) -> Option<LowerError> {
    let mut found: Option<Name> = None;
    let mut look = |key: &Value| {
        if let Value::String(key) = key
            && reserved.contains(key)
        {
            found.get_or_insert_with(|| key.clone());
        }
    };
    let mut look_at = |key: &ValueOrTraversal| {
        if let ValueOrTraversal::Value(key) = key {
            look(key);
        }
    };
    let mut look_into = |property: &PropertyWrite| {
        look_at(&property.key);
        property.meta.iter().for_each(|(key, _)| look_at(key));
    };
    match node {
        Node::AddVertex { properties, .. } | Node::AddEdge { properties, .. } => properties.iter().for_each(look_into),
        Node::AddProperty { property } => look_into(property),
        Node::MergeVertex { search, on_create, on_match, .. } | Node::MergeEdge { search, on_create, on_match, .. } => {
            for map in [search, on_create, on_match].into_iter().flatten() {
                if let ValueOrTraversal::Value(Value::Map(map)) = map {
                    map.keys().for_each(&mut look);
                }
            }
        }
        _ => return None,
    }
    let text = node.to_string();
    let step = text.split('(').next().unwrap_or(&text);
    found.map(|key| {
        LowerError::illegal(
            "withStrategies",
            format!(
                "The provided traversal contains a {step} that is setting a property key to a reserved word: {key}"
            ),
        )
    })
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
