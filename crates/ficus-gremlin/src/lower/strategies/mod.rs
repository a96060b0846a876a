//! The strategies of a source, worked into the plan.
//!
//! Decorating strategies add nodes to every traversal of the plan, the inner ones included; what they add is not itself
//! rewritten by the same strategy. Verifying strategies look at the result. Order: `SubgraphStrategy`, `PartitionStrategy`
//! (so that the criteria of a subgraph see their partition only), `ElementIdStrategy`, `ProductiveByStrategy`, verification.

mod element_id;
mod partition;
mod productive_by;
mod subgraph;
mod verification;

use std::sync::Arc;

use ficus_model::{GType, P, Scope};
use ficus_query::logical::{
    By, LabelledNode, LogicalPlan, Name, Node, PickToken, PropertyForm, Reach, Strategy, Traversal,
};

use super::error::Lowered;

/// Rewrites and checks `plan` as its strategies say.
pub(super) fn apply(plan: &mut LogicalPlan) -> Lowered {
    if !plan.source.strategies.is_empty() {
        let strategies = std::mem::take(&mut plan.source.strategies);
        let applied =
            decorate(&mut plan.root, &strategies).and_then(|()| verification::verify(&plan.root, &strategies));
        plan.source.strategies = strategies;
        applied?;
    }
    verification::standard(&plan.root, &plan.source.strategies)
}

fn decorate(root: &mut Traversal, strategies: &[Strategy]) -> Lowered {
    for strategy in strategies {
        if let Strategy::Subgraph { vertices, edges, vertex_properties, check_adjacent_vertices } = strategy {
            subgraph::Subgraph {
                vertices: vertices.as_ref(),
                edges: edges.as_ref(),
                vertex_properties: vertex_properties.as_ref(),
                check_adjacent_vertices: *check_adjacent_vertices,
            }
            .apply(root);
        }
    }
    for strategy in strategies {
        if let Strategy::Partition { partition_key, write_partition, read_partitions, include_meta_properties } =
            strategy
        {
            partition::Partition {
                key: partition_key,
                write: write_partition.as_ref(),
                read: read_partitions,
                include_meta_properties: *include_meta_properties,
            }
            .apply(root)?;
        }
    }
    for strategy in strategies {
        if let Strategy::ElementId { id_key } = strategy {
            element_id::apply(root, id_key);
        }
    }
    for strategy in strategies {
        if let Strategy::ProductiveBy { keys } = strategy {
            productive_by::apply(root, keys);
        }
    }
    Ok(())
}

// ---- parts that several strategies are made of -----------------------------------------------------------------

/// A traversal of these nodes.
fn line(nodes: Vec<Node>) -> Arc<Traversal> {
    Arc::new(Traversal { nodes: nodes.into_iter().map(LabelledNode::from).collect() })
}

/// Lets everything pass but vertex properties.
fn is_no_vertex_property() -> Arc<Traversal> {
    let is_vertex_property = line(vec![Node::Is { predicate: P::TypeOf(GType::VProperty) }]);
    line(vec![Node::Not { traversal: is_vertex_property }])
}

/// What `by(key)` reads, as a traversal: the value of a map, else the properties that pass `restrict`.
fn key_traversal(key: &Name, restrict: Vec<Node>) -> Arc<Traversal> {
    let mut properties = if restrict.is_empty() {
        vec![Node::Properties { keys: vec![key.clone()], form: PropertyForm::Value }]
    } else {
        vec![Node::Properties { keys: vec![key.clone()], form: PropertyForm::Property }]
    };
    if !restrict.is_empty() {
        properties.extend(restrict);
        properties.push(Node::ValueOf);
    }
    let is_map = line(vec![Node::Is { predicate: P::TypeOf(GType::Map) }]);
    let of_map = line(vec![Node::Select { pop: None, labels: vec![key.clone()], bys: Vec::new() }]);
    let value = |taken| PickToken::Value(ficus_model::Value::Bool(taken));
    line(vec![Node::Choose {
        choice: is_map,
        boolean: true,
        options: vec![(value(true), of_map), (value(false), line(properties))],
        pass_unmatched: true,
    }])
}

/// Makes a `by(key)` read properties that pass `restrict` alone; a `group()` has all values of each group then as before.
fn restrict_key(by: &mut By, of_group_values: bool, restrict: Vec<Node>) {
    let By::Key(key) = by else { return };
    let mut traversal = key_traversal(key, restrict);
    if of_group_values {
        Arc::make_mut(&mut traversal).nodes.push(Node::Fold { seed: None }.into());
    }
    *by = By::Traversal(traversal);
}

/// Hands every `by()` of `node` to `change`; for `group()`, whether it is the one of the values is told along.
fn for_each_by(node: &mut Node, change: &mut dyn FnMut(&mut By, bool)) {
    match node {
        Node::PropertyMap { by: Some(by), .. }
        | Node::Sample { by, .. }
        | Node::Dedup { by: Some(by), .. }
        | Node::SackWith { by, .. }
        | Node::Aggregate { by, .. }
        | Node::GroupCount { key: by, .. }
        | Node::SelectTraversal { by: Some(by), .. } => change(by, false),
        Node::Group { key, value, .. } => {
            change(key, false);
            change(value, true);
        }
        Node::Order { keys, .. } => keys.iter_mut().for_each(|key| change(&mut key.by, false)),
        Node::WherePredicate { bys, .. }
        | Node::PathFilter { bys, .. }
        | Node::Path { bys, .. }
        | Node::Project { bys, .. }
        | Node::Select { bys, .. }
        | Node::Tree { bys, .. }
        | Node::Math { bys, .. }
        | Node::Format { bys, .. } => bys.iter_mut().for_each(|by| change(by, false)),
        _ => {}
    }
}

/// What a step hands on, as far as its node tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Vertices.
    Vertex,
    /// Edges, or properties: nothing that has vertex properties.
    Other,
    /// Not known.
    Unknown,
}

impl Kind {
    /// What `node` hands on when it gets `self`.
    fn after(self, node: &Node) -> Kind {
        match node {
            Node::Vertices { .. } | Node::EdgeVertex { .. } | Node::Adjacent { reach: Reach::Vertex, .. } => {
                Kind::Vertex
            }
            Node::Adjacent { reach: Reach::Edge, .. } | Node::Properties { .. } | Node::PropertyMap { .. } => {
                Kind::Other
            }
            Node::Has { .. }
            | Node::HasProperty { .. }
            | Node::Is { .. }
            | Node::WherePredicate { .. }
            | Node::WhereTraversal { .. }
            | Node::Filter { .. }
            | Node::Not { .. }
            | Node::And { .. }
            | Node::Or { .. }
            | Node::Coin { .. }
            | Node::Sample { .. }
            | Node::Dedup { .. }
            | Node::Range { .. }
            | Node::Tail { .. }
            | Node::PathFilter { .. }
            | Node::TimeLimit { .. }
            | Node::Identity
            | Node::SideEffect { .. }
            | Node::Aggregate { .. }
            | Node::Barrier { .. }
            | Node::Order { scope: Scope::Global, .. }
            | Node::AddProperty { .. } => self,
            _ => Kind::Unknown,
        }
    }
}
