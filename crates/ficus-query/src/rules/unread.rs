//! What nobody reads is not made: ends of `where()` that are no labels of rows, paths that are only counted, and labels that no step asks for.

use std::collections::HashSet;
use std::sync::Arc;

use ficus_model::{Comparison, Pop, Scope, T};

use crate::logical::visit::{self, PathNeed};
use crate::logical::{
    By, LabelledNode, LogicalPlan, Name, Node, PropertyForm, Reach, Reduction, Traversal, WherePredicate,
};
use crate::options::scope_settings;
use crate::physical::{Requirements, keeps_object};
use crate::rules::match_line::filters;
use crate::rules::shows_steps;
use crate::rules::ways_as_tests::labels_read;
use crate::walk_filter::is_condition;

/// Makes tests of vertices out of `where(as(label) … as(other))`: whether what is come to from the one label is the vertex under the other.
pub fn ends_as_tests(plan: &mut LogicalPlan) -> bool {
    if !visit::any(&plan.root, &mut |node| matches!(node, Node::WhereTraversal { .. })) {
        return false;
    }
    spell_out_in(&mut plan.root, None)
}

/// In a traversal whose rows have the labels that are known outside.
fn spell_out_in(traversal: &mut Traversal, outside: Option<&Known<'_>>) -> bool {
    let mut known = Known { outside, ..Known::default() };
    let mut changed = false;
    for own in &mut traversal.nodes {
        changed |= known.spell_out(&mut own.node);
        let inside = hands_on_its_rows(&own.node).then_some(&known);
        visit::for_each_child_mut(&mut own.node, &mut |child| changed |= spell_out_in(Arc::make_mut(child), inside));
        if !filters(&own.node) {
            known.here.clear();
        }
        if !keeps_labels(&own.node) {
            known.bound.clear();
            known.outside = None;
        }
        known.here.extend(own.labels.iter().cloned());
        known.bound.extend(own.labels.iter().cloned());
    }
    changed
}

/// Whether the sub-queries of a node begin with the rows that come to it, which have their labels there.
fn hands_on_its_rows(node: &Node) -> bool {
    filters(node)
        || matches!(
            node,
            Node::Map { .. }
                | Node::FlatMap { .. }
                | Node::Local { .. }
                | Node::SideEffect { .. }
                | Node::Optional { .. }
                | Node::Union { start: false, .. }
                | Node::Coalesce { .. }
                | Node::Choose { .. }
                | Node::Repeat(_)
                | Node::Project { .. }
        )
}

/// Whether all rows that come of a node have the labels of those before it: what is made of many has none.
fn keeps_labels(node: &Node) -> bool {
    let mut loses = |node: &Node| {
        visit::is_reducing(node)
            || matches!(node, Node::Cap { .. } | Node::Inject { .. } | Node::Call { .. } | Node::VertexProgram(_))
    };
    // What these ask their traversals for makes no rows.
    let asks = matches!(
        node,
        Node::Order { .. } | Node::Project { .. } | Node::Select { .. } | Node::Dedup { .. } | Node::SideEffect { .. }
    );
    filters(node) || asks || !loses(node) && !visit::any_child(node, &mut |child| visit::any(child, &mut loses))
}

/// The labels that all rows have.
#[derive(Default)]
struct Known<'outside> {
    bound: HashSet<Name>,
    /// Of what they are at.
    here: HashSet<Name>,
    /// Where the rows come from.
    outside: Option<&'outside Known<'outside>>,
}

impl Known<'_> {
    fn binds(&self, label: &Name) -> bool {
        self.bound.contains(label) || self.outside.is_some_and(|outside| outside.binds(label))
    }

    /// Writes tests with labels as steps, also those that are parts of other tests.
    fn spell_out(&self, node: &mut Node) -> bool {
        if let Some(nodes) = self.spelled(node) {
            *node = Node::Filter { traversal: Arc::new(Traversal { nodes }) };
            return true;
        }
        if !matches!(node, Node::Filter { .. } | Node::Not { .. } | Node::And { .. } | Node::Or { .. }) {
            return false;
        }
        let mut changed = false;
        for part in visit::children_mut(node) {
            if let [own] = part.nodes.as_slice()
                && matches!(
                    own.node,
                    Node::WhereTraversal { .. } | Node::Not { .. } | Node::And { .. } | Node::Or { .. }
                )
            {
                changed |= self.spell_out(&mut Arc::make_mut(part).nodes[0].node);
            }
        }
        changed
    }

    /// The steps of a test with labels, which have to be those of the row that asks: a label that is missing is an error.
    fn spelled(&self, node: &Node) -> Option<Vec<LabelledNode>> {
        let Node::WhereTraversal { start, traversal: asked, end } = node else { return None };
        let is_known = |label: &Name| self.binds(label) && !labels(asked, label);
        let fits = start.iter().chain(end).all(is_known) && (end.is_none() || ends_at_elements(asked));
        // A step that looks at the way would see one that begins elsewhere.
        if !fits || visit::path_need(asked) == PathNeed::Full {
            return None;
        }
        let mut nodes: Vec<LabelledNode> = Vec::with_capacity(asked.nodes.len() + 2);
        if let Some(start) = start.as_ref().filter(|start| !self.here.contains(*start)) {
            nodes.push(Node::Select { pop: None, labels: vec![start.clone()], bys: Vec::new() }.into());
        }
        nodes.extend(asked.nodes.iter().cloned());
        if let Some(end) = end {
            let predicate = WherePredicate::Compare(Comparison::Eq, end.clone());
            nodes.push(Node::WherePredicate { start: None, predicate, bys: Vec::new() }.into());
        }
        (!nodes.is_empty()).then_some(nodes)
    }
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

/// Whether a step that keeps its object gives a label that others give too, or itself in a loop. It adds the label to that of the last labelled object if
/// rows are at an equal one, as in TinkerPop: how often a label is given hangs on which steps have labels.
pub(super) fn gives_labels_again(root: &Traversal) -> bool {
    fn collect(traversal: &Traversal, in_loop: bool, given: &mut HashSet<Name>, passed: &mut HashSet<Name>) -> bool {
        traversal.nodes.iter().any(|own| {
            let keeps = keeps_object(&own.node);
            let again = own.labels.iter().any(|label| {
                let is_first = given.insert(label.clone());
                let is_passed = passed.contains(label);
                if keeps {
                    passed.insert(label.clone());
                }
                is_passed || keeps && (in_loop || !is_first)
            });
            let in_loop = in_loop || matches!(own.node, Node::Repeat(_));
            again || visit::any_child(&own.node, &mut |child| collect(child, in_loop, given, passed))
        })
    }
    collect(root, false, &mut HashSet::new(), &mut HashSet::new())
}

/// Drops labels that no step reads: rows need not carry what was under them.
pub fn unread_labels(plan: &mut LogicalPlan) -> bool {
    let is_told = Requirements::of(plan).paths != PathNeed::Labels
        || !scope_settings(&plan.source).is_empty()
        || gives_labels_again(&plan.root);
    let Some(read) = labels_read(&plan.root).filter(|_| !is_told) else { return false };
    let mut changed = false;
    visit::rewrite(&mut plan.root, &mut |traversal| {
        for own in &mut traversal.nodes {
            let before = own.labels.len();
            own.labels.retain(|label| read.contains(label));
            changed |= own.labels.len() < before;
        }
    });
    changed
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

/// Leaves out what makes one value of each element, or of each row that has labels, where these are only counted.
pub fn counted_values(plan: &mut LogicalPlan) -> bool {
    // What the query has removed has no label.
    if Requirements::of(plan).writes || shows_steps(plan) {
        return false;
    }
    let mut changed = counted_labels(&mut plan.root.nodes);
    visit::rewrite(&mut plan.root, &mut |traversal| {
        let nodes = &mut traversal.nodes;
        // Of properties there are as many as values.
        for place in 1..nodes.len() {
            if let [own, next] = &mut nodes[place - 1..=place]
                && let Node::Properties { form: form @ PropertyForm::Property, .. } = &mut own.node
                && counts(next)
            {
                *form = PropertyForm::Value;
                changed = true;
            }
        }
        if !nodes.iter().zip(nodes.iter().skip(1)).any(|(own, next)| counts(next) && is_value(own)) {
            return;
        }
        // Whether the row that comes to a node has an element.
        let mut of_elements = false;
        let made_of_elements: Vec<bool> = nodes
            .iter()
            .map(|own| {
                let before = of_elements;
                of_elements = leads_to_elements(&own.node) || before && keeps_elements(&own.node);
                before && is_value(own)
            })
            .collect();
        let mut is_counted = false;
        let mut kept = Vec::with_capacity(nodes.len());
        for (own, made_of_elements) in nodes.drain(..).zip(made_of_elements).rev() {
            if is_counted && made_of_elements {
                changed = true;
                is_counted = false;
                continue;
            }
            is_counted = counts(&own);
            kept.push(own);
        }
        kept.reverse();
        *nodes = kept;
    });
    changed
}

fn counts(own: &LabelledNode) -> bool {
    matches!(own.node, Node::Reduce { reduction: Reduction::Count })
}

/// Leaves out `select(labels…)` in front of `count()` where all rows have these labels.
fn counted_labels(nodes: &mut Vec<LabelledNode>) -> bool {
    let mut bound: HashSet<Name> = HashSet::new();
    let mut unread = HashSet::new();
    for (place, own) in nodes.iter().enumerate() {
        if let Node::Select { pop: None | Some(Pop::First | Pop::Last), labels, bys } = &own.node
            && bys.is_empty()
            && own.labels.is_empty()
            && labels.iter().all(|label| bound.contains(label))
            && nodes.get(place + 1).is_some_and(counts)
        {
            unread.insert(place);
        }
        // Other steps make one row of all, or rows of nothing, which have come no way.
        if !leads_to_elements(&own.node) && !keeps_elements(&own.node) && !matches!(own.node, Node::Properties { .. }) {
            bound.clear();
        }
        bound.extend(own.labels.iter().cloned());
    }
    let mut place = 0;
    nodes.retain(|_| {
        place += 1;
        !unread.contains(&(place - 1))
    });
    !unread.is_empty()
}

/// Whether a node makes one value of each element, whatever it has, and does nothing else.
fn is_value(own: &LabelledNode) -> bool {
    let is_plain = |by: &By| matches!(by, By::Identity | By::Key(_) | By::Token(T::Id | T::Label));
    own.labels.is_empty()
        && match &own.node {
            Node::Label | Node::Id | Node::ElementMap { filter: None, .. } => true,
            Node::PropertyMap { by: None, filter: None, .. } => true,
            Node::Project { bys, .. } => bys.iter().all(is_plain),
            _ => false,
        }
}

/// Whether all that comes of a node are vertices or edges, which it has gone to.
pub(super) fn leads_to_elements(node: &Node) -> bool {
    matches!(
        node,
        Node::Vertices { .. }
            | Node::Edges { .. }
            | Node::Adjacent { .. }
            | Node::EdgeVertex { .. }
            | Node::OtherVertex
    )
}

pub(super) fn keeps_elements(node: &Node) -> bool {
    matches!(
        node,
        Node::Has { .. }
            | Node::HasProperty { .. }
            | Node::Filter { .. }
            | Node::Not { .. }
            | Node::And { .. }
            | Node::Or { .. }
            | Node::WherePredicate { .. }
            | Node::WhereTraversal { .. }
            | Node::Dedup { .. }
            | Node::Range { .. }
            | Node::Tail { .. }
            | Node::Order { scope: Scope::Global, .. }
            | Node::Identity
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_are_given_again_are_known() {
        let out =
            || Node::Adjacent { direction: ficus_model::Direction::Out, labels: Vec::new(), reach: Reach::Vertex };
        let hop = |label: &str| LabelledNode { node: out(), labels: vec![label.into()] };
        let test = |label: &str| LabelledNode {
            node: Node::Is { predicate: ficus_model::P::Compare(Comparison::Neq, 1.into()) },
            labels: vec![label.into()],
        };
        let again = |nodes: Vec<LabelledNode>| gives_labels_again(&Traversal { nodes });
        assert!(!again(vec![hop("a"), hop("a"), test("b")]));
        assert!(again(vec![hop("a"), out().into(), test("a")]));
        assert!(again(vec![test("a"), hop("a")]));
        let union = Node::Union { branches: vec![Arc::new(Traversal { nodes: vec![hop("a")] })], start: false };
        assert!(again(vec![union.into(), test("a")]));
    }

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
