//! Walking plans: the traversals a node holds, every node at any depth, and rewriting from the inside out.
//!
//! One macro names the children of each node; reading and writing walks are made of it, so they cannot drift apart.

use std::sync::Arc;

use super::{
    By, Endpoint, MatchPattern, Node, PickToken, PropertyWrite, ScalarFunction, Traversal, ValueOrTraversal,
    VertexProgramKind,
};
use crate::functions::math::Expression;

macro_rules! visitor {
    ($node_fn:ident, $by:ident, $value:ident, $endpoint:ident, $properties:ident, $pattern:ident, $scalar:ident, $iter:ident
     $(, $mutable:tt)?) => {
        /// Hands every traversal that `node` holds directly to `visit`, in the order of the step's arguments.
        pub fn $node_fn<'plan>(
            node: &'plan $($mutable)? Node,
            visit: &mut dyn FnMut(&'plan $($mutable)? Arc<Traversal>),
        ) {
            match node {
                Node::Vertices { .. }
                | Node::Edges { .. }
                | Node::Inject { .. }
                | Node::Adjacent { .. }
                | Node::AdjacentFrom { .. }
                | Node::KeepLabels { .. }
                | Node::Recall { .. }
                | Node::EdgeVertex { .. }
                | Node::OtherVertex
                | Node::Properties { .. }
                | Node::Id
                | Node::Label
                | Node::Key
                | Node::ValueOf
                | Node::Element
                | Node::Has { .. }
                | Node::HasProperty { .. }
                | Node::Is { .. }
                | Node::Collection { .. }
                | Node::Coin { .. }
                | Node::Range { .. }
                | Node::Tail { .. }
                | Node::TimeLimit { .. }
                | Node::Discard
                | Node::LoopsAtLeast { .. }
                | Node::Identity
                | Node::Constant { .. }
                | Node::Unfold
                | Node::SelectColumn { .. }
                | Node::Sack
                | Node::Loops { .. }
                | Node::Reduce { .. }
                | Node::Fold { .. }
                | Node::Barrier { .. }
                | Node::Profile { .. }
                | Node::Cap { .. }
                | Node::Subgraph { .. }
                | Node::Fail { .. }
                | Node::KHop(_)
                | Node::Drop => {}
                Node::Call { parameters, parameter_traversal, settings, .. } => {
                    for (_, value) in parameters.$iter() {
                        $value(value, visit);
                    }
                    if let Some(traversal) = parameter_traversal {
                        visit(traversal);
                    }
                    for (_, value) in settings.$iter() {
                        $value(value, visit);
                    }
                }
                Node::VertexProgram(program) => {
                    visit(& $($mutable)? program.edges);
                    match & $($mutable)? program.kind {
                        VertexProgramKind::ShortestPath { target, distance, .. } => {
                            visit(target);
                            if let Some(distance) = distance {
                                visit(distance);
                            }
                        }
                        VertexProgramKind::PageRank { .. }
                        | VertexProgramKind::ConnectedComponent
                        | VertexProgramKind::PeerPressure { .. } => {}
                    }
                }
                Node::Io { options, .. } => {
                    for (_, value) in options.$iter() {
                        $value(value, visit);
                    }
                }
                Node::PropertyMap { by, filter, .. } => {
                    if let Some(by) = by {
                        $by(by, visit);
                    }
                    if let Some(filter) = filter {
                        visit(filter);
                    }
                }
                Node::ElementMap { filter, .. } => {
                    if let Some(filter) = filter {
                        visit(filter);
                    }
                }
                Node::WherePredicate { bys, .. }
                | Node::PathFilter { bys, .. }
                | Node::Format { bys, .. }
                | Node::Math { bys, .. }
                | Node::Path { bys, .. }
                | Node::Project { bys, .. }
                | Node::Select { bys, .. }
                | Node::Tree { bys, .. } => {
                    for by in bys.$iter() {
                        $by(by, visit);
                    }
                }
                Node::WhereTraversal { traversal, .. }
                | Node::Filter { traversal }
                | Node::Not { traversal }
                | Node::Map { traversal }
                | Node::FlatMap { traversal }
                | Node::Local { traversal }
                | Node::SideEffect { traversal }
                | Node::Optional { traversal } => visit(traversal),
                Node::And { traversals } | Node::Or { traversals } => {
                    for traversal in traversals.$iter() {
                        visit(traversal);
                    }
                }
                Node::Union { branches, .. } | Node::Coalesce { branches } => {
                    for branch in branches.$iter() {
                        visit(branch);
                    }
                }
                Node::Sample { by, .. } | Node::SackWith { by, .. } | Node::Aggregate { by, .. } => $by(by, visit),
                Node::GroupCount { key, .. } => $by(key, visit),
                Node::Dedup { by, .. } => {
                    if let Some(by) = by {
                        $by(by, visit);
                    }
                }
                Node::Scalar { function } => $scalar(function, visit),
                Node::SelectTraversal { traversal, by, .. } => {
                    visit(traversal);
                    if let Some(by) = by {
                        $by(by, visit);
                    }
                }
                Node::Match { patterns, .. } => {
                    for pattern in patterns.$iter() {
                        $pattern(pattern, visit);
                    }
                }
                Node::Order { keys, .. } => {
                    for key in keys.$iter() {
                        $by(& $($mutable)? key.by, visit);
                    }
                }
                Node::Group { key, value, .. } => {
                    $by(key, visit);
                    $by(value, visit);
                }
                Node::Choose { choice, options, .. } => {
                    visit(choice);
                    for (token, option) in options.$iter() {
                        if let PickToken::Traversal(traversal) = token {
                            visit(traversal);
                        }
                        visit(option);
                    }
                }
                Node::Repeat(repeat) => {
                    visit(& $($mutable)? repeat.body);
                    if let Some(until) = & $($mutable)? repeat.until {
                        visit(until);
                    }
                    if let Some(emit) = & $($mutable)? repeat.emit {
                        visit(emit);
                    }
                }
                Node::AddVertex { label, properties, .. } => {
                    if let Some(label) = label {
                        $value(label, visit);
                    }
                    for property in properties.$iter() {
                        $properties(property, visit);
                    }
                }
                Node::AddEdge { label, from, to, properties, .. } => {
                    $value(label, visit);
                    if let Some(from) = from {
                        $endpoint(from, visit);
                    }
                    if let Some(to) = to {
                        $endpoint(to, visit);
                    }
                    for property in properties.$iter() {
                        $properties(property, visit);
                    }
                }
                Node::AddProperty { property } => $properties(property, visit),
                Node::MergeVertex { search, on_create, on_match, .. } => {
                    for map in [search, on_create, on_match].into_iter().flatten() {
                        $value(map, visit);
                    }
                }
                Node::MergeEdge { search, on_create, on_match, out_vertex, in_vertex, .. } => {
                    for map in [search, on_create, on_match, out_vertex, in_vertex].into_iter().flatten() {
                        $value(map, visit);
                    }
                }
            }
        }

        fn $by<'plan>(by: &'plan $($mutable)? By, visit: &mut dyn FnMut(&'plan $($mutable)? Arc<Traversal>)) {
            if let By::Traversal(traversal) = by {
                visit(traversal);
            }
        }

        fn $value<'plan>(
            value: &'plan $($mutable)? ValueOrTraversal,
            visit: &mut dyn FnMut(&'plan $($mutable)? Arc<Traversal>),
        ) {
            if let ValueOrTraversal::Traversal(traversal) = value {
                visit(traversal);
            }
        }

        fn $endpoint<'plan>(
            endpoint: &'plan $($mutable)? Endpoint,
            visit: &mut dyn FnMut(&'plan $($mutable)? Arc<Traversal>),
        ) {
            if let Endpoint::Traversal(traversal) = endpoint {
                visit(traversal);
            }
        }

        fn $properties<'plan>(
            property: &'plan $($mutable)? PropertyWrite,
            visit: &mut dyn FnMut(&'plan $($mutable)? Arc<Traversal>),
        ) {
            $value(& $($mutable)? property.key, visit);
            $value(& $($mutable)? property.value, visit);
            for (key, value) in property.meta.$iter() {
                $value(key, visit);
                $value(value, visit);
            }
        }

        fn $pattern<'plan>(
            pattern: &'plan $($mutable)? MatchPattern,
            visit: &mut dyn FnMut(&'plan $($mutable)? Arc<Traversal>),
        ) {
            match pattern {
                MatchPattern::Path { traversal, .. } | MatchPattern::Where(traversal, _) => visit(traversal),
                MatchPattern::Not(inner) => $pattern(inner, visit),
                MatchPattern::And(inner) | MatchPattern::Or(inner) => {
                    for pattern in inner.$iter() {
                        $pattern(pattern, visit);
                    }
                }
            }
        }

        fn $scalar<'plan>(
            function: &'plan $($mutable)? ScalarFunction,
            visit: &mut dyn FnMut(&'plan $($mutable)? Arc<Traversal>),
        ) {
            match function {
                ScalarFunction::DateDiff { other }
                | ScalarFunction::Combine { other }
                | ScalarFunction::Difference { other }
                | ScalarFunction::Disjunct { other }
                | ScalarFunction::Intersect { other }
                | ScalarFunction::Merge { other }
                | ScalarFunction::Product { other } => $value(other, visit),
                ScalarFunction::Concat { parts } => {
                    for part in parts.$iter() {
                        $value(part, visit);
                    }
                }
                _ => {}
            }
        }
    };
}

visitor!(
    for_each_child,
    child_of_by,
    child_of_value,
    child_of_endpoint,
    child_of_property,
    child_of_pattern,
    child_of_scalar,
    iter
);
visitor!(
    for_each_child_mut,
    child_of_by_mut,
    child_of_value_mut,
    child_of_endpoint_mut,
    child_of_property_mut,
    child_of_pattern_mut,
    child_of_scalar_mut,
    iter_mut,
    mut
);

/// The traversals that `node` holds directly.
pub fn children(node: &Node) -> Vec<&Arc<Traversal>> {
    let mut found = Vec::new();
    for_each_child(node, &mut |child| found.push(child));
    found
}

/// Whether `matches` holds for a traversal that `node` holds directly.
pub fn any_child(node: &Node, matches: &mut dyn FnMut(&Traversal) -> bool) -> bool {
    let mut found = false;
    for_each_child(node, &mut |child| found = found || matches(child));
    found
}

/// Whether `node` holds no traversals.
pub fn is_leaf(node: &Node) -> bool {
    !any_child(node, &mut |_| true)
}

/// The traversals that `node` holds directly, to be changed; a shared one is copied by [`Arc::make_mut`].
pub fn children_mut(node: &mut Node) -> Vec<&mut Arc<Traversal>> {
    let mut found = Vec::new();
    for_each_child_mut(node, &mut |child| found.push(child));
    found
}

/// Shows `visit` every node of `traversal` at any depth, each before the nodes of its children.
pub fn walk(traversal: &Traversal, visit: &mut dyn FnMut(&Node)) {
    for labelled in &traversal.nodes {
        visit(&labelled.node);
        for_each_child(&labelled.node, &mut |child| walk(child, visit));
    }
}

/// Shows `visit` `traversal` and every traversal inside it, the inner ones first.
pub fn walk_traversals(traversal: &Traversal, visit: &mut dyn FnMut(&Traversal)) {
    for labelled in &traversal.nodes {
        for_each_child(&labelled.node, &mut |child| walk_traversals(child, visit));
    }
    visit(traversal);
}

/// Lets `change` change every traversal inside `traversal`, the inner ones first, and then `traversal` itself.
pub fn rewrite(traversal: &mut Traversal, change: &mut dyn FnMut(&mut Traversal)) {
    for labelled in &mut traversal.nodes {
        for_each_child_mut(&mut labelled.node, &mut |child| rewrite(Arc::make_mut(child), change));
    }
    change(traversal);
}

/// Whether `matches` holds for a node of `traversal` at any depth.
pub fn any(traversal: &Traversal, matches: &mut dyn FnMut(&Node) -> bool) -> bool {
    traversal.nodes.iter().any(|labelled| {
        if matches(&labelled.node) {
            return true;
        }
        let mut found = false;
        for_each_child(&labelled.node, &mut |child| found = found || any(child, matches));
        found
    })
}

/// How much of its way a traverser must remember.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathNeed {
    /// Nothing.
    #[default]
    None,
    /// The objects under step labels.
    Labels,
    /// Every object.
    Full,
}

/// Whether any step, at any depth, has a label.
pub fn has_labels(traversal: &Traversal) -> bool {
    let mut found = false;
    walk_traversals(traversal, &mut |own| found |= own.nodes.iter().any(|node| !node.labels.is_empty()));
    found
}

/// What `traversal` needs to know of a traverser's way. Whoever runs `otherV()` needs the edge's origin besides.
pub fn path_need(traversal: &Traversal) -> PathNeed {
    let mut need = PathNeed::None;
    walk(traversal, &mut |node| need = need.max(path_need_of(node)));
    need
}

/// What the node itself needs, its children aside.
pub fn path_need_of(node: &Node) -> PathNeed {
    match node {
        Node::Path { .. } | Node::PathFilter { .. } | Node::Tree { .. } | Node::OtherVertex => PathNeed::Full,
        Node::Select { .. }
        | Node::SelectTraversal { .. }
        | Node::WherePredicate { .. }
        | Node::WhereTraversal { .. }
        | Node::Match { .. }
        | Node::AdjacentFrom { .. }
        | Node::Recall { .. }
        | Node::Format { .. } => PathNeed::Labels,
        Node::Math { expression, .. } if reads_variables(expression) => PathNeed::Labels,
        Node::Dedup { labels, .. } if !labels.is_empty() => PathNeed::Labels,
        Node::AddEdge { from: Some(Endpoint::Label(_)), .. } | Node::AddEdge { to: Some(Endpoint::Label(_)), .. } => {
            PathNeed::Labels
        }
        _ => PathNeed::None,
    }
}

/// Whether an expression of `math()` has variables beside `_`, the current object. One that cannot be read has.
fn reads_variables(expression: &str) -> bool {
    Expression::parse(expression).map_or(true, |parsed| parsed.variables().iter().any(|variable| &**variable != "_"))
}

/// Whether the node waits for all its input before it yields anything.
pub fn is_barrier(node: &Node) -> bool {
    match node {
        Node::Reduce { .. }
        | Node::Fold { .. }
        | Node::Group { .. }
        | Node::GroupCount { .. }
        | Node::Tree { .. }
        | Node::Barrier { .. }
        | Node::VertexProgram(_)
        | Node::Aggregate { .. }
        | Node::Cap { .. }
        | Node::Tail { .. }
        | Node::Sample { .. } => true,
        Node::Order { scope, .. } => *scope == ficus_model::Scope::Global,
        _ => false,
    }
}

/// Whether the node answers once for all its input, an empty input included (save `min`, `max`, `mean` and `sum`).
pub fn is_reducing(node: &Node) -> bool {
    match node {
        Node::Reduce { .. } | Node::Fold { .. } => true,
        Node::Group { side_effect, .. } | Node::GroupCount { side_effect, .. } | Node::Tree { side_effect, .. } => {
            side_effect.is_none()
        }
        _ => false,
    }
}

/// Whether the node writes to the graph by itself.
pub fn is_mutation(node: &Node) -> bool {
    matches!(
        node,
        Node::AddVertex { .. }
            | Node::AddEdge { .. }
            | Node::AddProperty { .. }
            | Node::MergeVertex { .. }
            | Node::MergeEdge { .. }
            | Node::Drop
            | Node::Io { write: false, .. }
    )
}

/// Whether the node puts something under a side-effect key.
pub fn has_side_effect(node: &Node) -> bool {
    match node {
        Node::Aggregate { .. } | Node::Subgraph { .. } => true,
        Node::Group { side_effect, .. }
        | Node::GroupCount { side_effect, .. }
        | Node::Tree { side_effect, .. }
        | Node::Profile { side_effect } => side_effect.is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logical::{LabelledNode, Reduction};

    fn line(nodes: impl IntoIterator<Item = Node>) -> Arc<Traversal> {
        Arc::new(Traversal { nodes: nodes.into_iter().map(LabelledNode::from).collect() })
    }

    fn sample() -> Traversal {
        let inner = line([Node::Filter { traversal: line([Node::Drop]) }, Node::OtherVertex]);
        let traversals = vec![inner, line([Node::Reduce { reduction: Reduction::Count }])];
        Arc::unwrap_or_clone(line([Node::Id, Node::And { traversals }]))
    }

    #[test]
    fn walking_reaches_every_depth_in_order() {
        let mut names = Vec::new();
        walk(&sample(), &mut |node| names.push(node.to_string()));
        let expected =
            ["IdStep", "AndStep", "TraversalFilterStep", "DropStep", "EdgeOtherVertexStep", "CountGlobalStep"];
        assert_eq!(names.len(), expected.len());
        for (name, start) in names.iter().zip(expected) {
            assert!(name.starts_with(start), "{name} should start with {start}");
        }
    }

    #[test]
    fn rewriting_changes_inner_traversals_first_and_copies_shared_ones() {
        let original = sample();
        let mut changed = original.clone();
        let mut lengths = Vec::new();
        rewrite(&mut changed, &mut |traversal| {
            lengths.push(traversal.nodes.len());
            traversal.nodes.push(Node::Identity.into());
        });
        assert_eq!(lengths, [1, 2, 1, 2]);
        assert_eq!(original, sample());
        let mut identities = 0;
        walk(&changed, &mut |node| identities += usize::from(*node == Node::Identity));
        assert_eq!(identities, 4);
    }

    #[test]
    fn classes_of_nodes_are_found_at_any_depth() {
        let plan = sample();
        assert!(any(&plan, &mut is_mutation));
        assert!(any(&plan, &mut is_barrier));
        assert!(any(&plan, &mut is_reducing));
        assert!(!any(&plan, &mut has_side_effect));
        assert_eq!(path_need(&plan), PathNeed::Full);
        assert_eq!(path_need(&line([Node::Id])), PathNeed::None);
    }

    #[test]
    fn children_come_in_the_order_of_the_arguments() {
        let mut node = Node::Choose {
            choice: line([Node::Id]),
            boolean: false,
            options: vec![(PickToken::Traversal(line([Node::Label])), line([Node::Key]))],
            pass_unmatched: true,
        };
        let expected = vec![line([Node::Id]), line([Node::Label]), line([Node::Key])];
        assert_eq!(children(&node).into_iter().cloned().collect::<Vec<_>>(), expected);
        assert_eq!(children_mut(&mut node).len(), 3);
    }
}
