//! Ways that are only tests: `V().as('x').out().has(…).select('x').dedup()` asks whether there is such a neighbour, not how many.
//!
//! Rows go back to what they have under labels, and of equal ones one stays: what lies between the last label and `select()` only decides whether a row
//! is among them. It becomes a `where()`, which stops at the first that it finds, has no rows to make, and can be looked at from its end.
//! Rows stay in their order, since the first of equal ones has the same labels as before.

use std::collections::HashSet;
use std::sync::Arc;

use ficus_model::{P, Pop};

use crate::logical::visit::{self, PathNeed};
use crate::logical::{By, HasContainer, LabelledNode, LogicalPlan, Name, Node, Reduction, Traversal, WherePredicate};
use crate::operators::scoped_where::right_labels;
use crate::options::scope_settings;
use crate::physical::Requirements;
use crate::probe::Probe;

/// Makes a `where()` of each such way.
pub fn ways_as_tests(plan: &mut LogicalPlan) -> bool {
    let is_candidate = |own: &LabelledNode| matches!(own.node, Node::Dedup { .. });
    if !plan.root.nodes.iter().any(is_candidate) || !fits(plan) {
        return false;
    }
    let Some(read) = labels_read(&plan.root) else { return false };
    let mut nodes = std::mem::take(&mut plan.root.nodes);
    let mut kept: Vec<LabelledNode> = Vec::with_capacity(nodes.len());
    // Whether equal rows are dropped behind steps that make of each row what it says by itself.
    let (mut dropped, mut changed) = (false, false);
    while let Some(own) = nodes.pop() {
        dropped = match &own.node {
            Node::Dedup { labels, by: None } if labels.is_empty() => true,
            node => dropped && makes_of_one(node),
        };
        let goes_back = match &own.node {
            Node::Select { .. } => dropped,
            Node::Dedup { labels, by } if !labels.is_empty() && is_simple(by.as_slice()) => {
                // What rows are at does not matter to what follows.
                let next = kept.last().map(|own| &own.node);
                matches!(next, Some(Node::Select { .. } | Node::Reduce { reduction: Reduction::Count }))
            }
            _ => false,
        };
        let test =
            (if goes_back { way_before(&nodes, &read) } else { None }).and_then(|start| as_test(&nodes[start..]));
        let Some((steps, test)) = test else {
            kept.push(own);
            continue;
        };
        nodes.truncate(nodes.len() - steps);
        if !is_here(&nodes, &own) {
            kept.push(own);
        }
        kept.push(test);
        changed = true;
    }
    kept.reverse();
    plan.root.nodes = kept;
    if changed && let Some(read) = labels_read(&plan.root) {
        for own in &mut plan.root.nodes {
            own.labels.retain(|label| read.contains(label));
        }
    }
    changed
}

/// How many steps a way has, and the test that it is; `None` if that would not be walked in place: then it is walked sooner as it is written.
fn as_test(way: &[LabelledNode]) -> Option<(usize, LabelledNode)> {
    let nodes = way.iter().map(|own| LabelledNode::from(own.node.clone())).collect();
    let traversal = Traversal { nodes };
    Probe::compile(&traversal)?;
    Some((way.len(), Node::Filter { traversal: Arc::new(traversal) }.into()))
}

/// Whether rows are told apart by their objects and labels only, and labels name nothing but objects on the way.
fn fits(plan: &LogicalPlan) -> bool {
    let (source, requirements) = (&plan.source, Requirements::of(plan));
    requirements.paths == PathNeed::Labels
        && !requirements.row_by_row
        && !requirements.computes
        && source.sack.is_none()
        && source.side_effects.is_empty()
        && scope_settings(source).is_empty()
        && !visit::any(&plan.root, &mut visit::has_side_effect)
}

/// The labels that steps at any depth read; `None` if that cannot be told.
pub(super) fn labels_read(root: &Traversal) -> Option<HashSet<Name>> {
    let (mut read, mut known) = (HashSet::new(), true);
    visit::walk(root, &mut |node| match node {
        Node::Select { labels, .. } | Node::Dedup { labels, .. } => read.extend(labels.iter().cloned()),
        Node::WherePredicate { start, predicate, .. } => {
            let mut right = Vec::new();
            right_labels(predicate, &mut right);
            read.extend(start.iter().cloned().chain(right));
        }
        Node::WhereTraversal { start, end, .. } => read.extend(start.iter().chain(end).cloned()),
        Node::AdjacentFrom { label, .. } | Node::Recall { label } => _ = read.insert(label.clone()),
        node => known &= visit::path_need_of(node) == PathNeed::None,
    });
    known.then_some(read)
}

/// Whether a step makes of each row by itself what its object, or what it has under labels, says.
fn makes_of_one(node: &Node) -> bool {
    match node {
        Node::Select { bys, .. } => is_simple(bys),
        Node::Id | Node::Label | Node::Properties { .. } => true,
        node => leads_on(node),
    }
}

fn is_simple(bys: &[By]) -> bool {
    !bys.iter().any(|by| matches!(by, By::Traversal(_)))
}

/// Where the last steps begin that only lead away, with a hop first and without labels that anybody reads.
fn way_before(nodes: &[LabelledNode], read: &HashSet<Name>) -> Option<usize> {
    let is_read = |own: &LabelledNode| own.labels.iter().any(|label| read.contains(label));
    let steps = nodes.iter().rev().take_while(|own| leads_on(&own.node) && !is_read(own)).count();
    // There has to be something that it begins at.
    let start = (nodes.len() - steps).max(1);
    (start..nodes.len()).find(|step| is_hop(&nodes[*step].node))
}

fn is_hop(node: &Node) -> bool {
    matches!(node, Node::Adjacent { .. } | Node::EdgeVertex { .. })
}

/// Whether a step goes from elements to elements, row by row, and fails for all rows or for none.
fn leads_on(node: &Node) -> bool {
    is_hop(node) || is_test(node)
}

/// Whether a step lets rows through or not, whatever other rows there are, and does not fail.
fn is_test(node: &Node) -> bool {
    let asks = |traversal: &Arc<Traversal>| traversal.nodes.iter().all(|own| is_asked(&own.node));
    match node {
        Node::Has { containers } => containers.iter().all(|HasContainer { predicate, .. }| never_fails(predicate)),
        Node::HasProperty { .. } | Node::Identity => true,
        Node::WherePredicate { start: None, predicate, bys } => bys.is_empty() && compares_objects(predicate),
        Node::Filter { traversal } | Node::Not { traversal } => asks(traversal),
        Node::And { traversals } | Node::Or { traversals } => traversals.iter().all(asks),
        _ => false,
    }
}

/// As [`is_test`], of the steps of a question.
fn is_asked(node: &Node) -> bool {
    match node {
        Node::Properties { .. } | Node::Id | Node::Label | Node::Reduce { reduction: Reduction::Count } => true,
        Node::Is { predicate } => never_fails(predicate),
        node => leads_on(node),
    }
}

/// Text predicates fail on what is no text.
fn never_fails(predicate: &P) -> bool {
    match predicate {
        P::Text(..) => false,
        P::And(parts) | P::Or(parts) => parts.iter().all(never_fails),
        P::Not(part) => never_fails(part),
        P::Compare(..) | P::Within(_) | P::Without(_) | P::TypeOf(_) => true,
    }
}

pub(super) fn compares_objects(predicate: &WherePredicate) -> bool {
    match predicate {
        WherePredicate::Text(..) => false,
        WherePredicate::And(parts) | WherePredicate::Or(parts) => parts.iter().all(compares_objects),
        WherePredicate::Not(part) => compares_objects(part),
        WherePredicate::Compare(..) | WherePredicate::Within(_) | WherePredicate::Without(_) => true,
    }
}

/// Whether `select(label)` would only say again what rows are at behind these nodes.
fn is_here(nodes: &[LabelledNode], select: &LabelledNode) -> bool {
    let Node::Select { pop: None | Some(Pop::Last), labels, bys } = &select.node else { return false };
    let ([label], [], []) = (labels.as_slice(), bys.as_slice(), select.labels.as_slice()) else { return false };
    let tests = nodes.iter().rev().take_while(|own| is_test(&own.node) && !own.labels.contains(label)).count();
    let last = nodes[..nodes.len() - tests].last();
    last.is_some_and(|own| own.labels.contains(label))
}

#[cfg(test)]
mod tests {
    use ficus_model::Direction;

    use super::*;
    use crate::logical::Reach;

    fn out() -> Node {
        Node::Adjacent { direction: Direction::Out, labels: Vec::new(), reach: Reach::Vertex }
    }

    fn labelled(node: Node, label: &str) -> LabelledNode {
        LabelledNode { node, labels: vec![Name::from(label)] }
    }

    fn select(label: &str) -> LabelledNode {
        Node::Select { pop: None, labels: vec![Name::from(label)], bys: Vec::new() }.into()
    }

    fn dedup() -> LabelledNode {
        Node::Dedup { labels: Vec::new(), by: None }.into()
    }

    fn start() -> Node {
        Node::Vertices { ids: Vec::new(), all: true }
    }

    fn plan(nodes: impl IntoIterator<Item = LabelledNode>) -> LogicalPlan {
        LogicalPlan { root: Traversal { nodes: nodes.into_iter().collect() }, ..LogicalPlan::default() }
    }

    #[test]
    fn what_only_leads_away_is_asked() {
        let mut own = plan([labelled(start(), "x"), out().into(), labelled(out(), "y"), select("x"), dedup()]);
        assert!(ways_as_tests(&mut own));
        let test = Node::Filter { traversal: Arc::new(Traversal { nodes: vec![out().into(), out().into()] }) };
        assert_eq!(own, plan([start().into(), test.clone().into(), dedup()]), "nobody reads the labels");
        // A label that is read stays, and the step to it.
        let both = Node::Select { pop: None, labels: vec!["x".into(), "y".into()], bys: Vec::new() };
        let mut own = plan([
            labelled(start(), "x"),
            labelled(out(), "y"),
            out().into(),
            out().into(),
            both.clone().into(),
            dedup(),
        ]);
        assert!(ways_as_tests(&mut own));
        let expected = [labelled(start(), "x"), labelled(out(), "y"), test.into(), both.into(), dedup()];
        assert_eq!(own, plan(expected));
    }

    #[test]
    fn what_counts_ways_or_may_fail_stays() {
        let text = P::Text(ficus_model::TextComparison::StartingWith, "a".into());
        let has = Node::Has {
            containers: vec![HasContainer { key: crate::logical::HasKey::Key("name".into()), predicate: text }],
        };
        let count = || LabelledNode::from(Node::Reduce { reduction: Reduction::Count });
        for nodes in [
            vec![labelled(start(), "x"), out().into(), select("x"), count()],
            vec![labelled(start(), "x"), out().into(), select("x")],
            vec![labelled(start(), "x"), out().into(), has.into(), select("x"), dedup()],
            vec![labelled(start(), "x"), out().into(), Node::Range { low: 0, high: 3 }.into(), select("x"), dedup()],
            vec![labelled(start(), "x"), labelled(out(), "y"), select("x"), dedup(), select("y")],
        ] {
            let mut own = plan(nodes.clone());
            assert!(!ways_as_tests(&mut own), "{own}");
            assert_eq!(own, plan(nodes));
        }
    }

    #[test]
    fn long_lines_of_steps_are_looked_at_once() {
        // With a look at all steps for each of them this takes minutes.
        const MANY: usize = 50_000;
        let one = || [labelled(out(), "x"), out().into(), select("x"), dedup()];
        let mut own = plan(std::iter::once(start().into()).chain((0..MANY).flat_map(|_| one())));
        assert!(ways_as_tests(&mut own));
        assert_eq!(own.root.nodes.len(), 1 + 3 * MANY);
        let hops = std::iter::repeat_with(|| LabelledNode::from(out())).take(MANY);
        let selects = std::iter::repeat_with(|| select("x")).take(MANY);
        let mut own = plan([labelled(start(), "x")].into_iter().chain(hops).chain(selects).chain([dedup()]));
        assert!(!ways_as_tests(&mut own));
    }
}
