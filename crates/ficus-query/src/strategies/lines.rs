//! A plan as TinkerPop's strategies see it: lines of steps, each with the line and step that it is a child of. What filters by filters alone is part of
//! the line around it (`InlineFilterStrategy`).

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::functions::format::Template;
use crate::functions::math::Expression;
use crate::logical::{Endpoint, MatchPattern, Name, Node, Traversal, visit};
use crate::operators::scoped_where::right_labels;

/// Labels.
pub type Labels = BTreeSet<Name>;

/// What a step does with the labels on the way of its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Nothing.
    Plain,
    /// Behind it, rows keep some.
    Keeps,
    /// As `Keeps`, and what it keeps grows with what steps before it need.
    KeepsMore,
}

/// A step.
#[derive(Debug)]
pub struct Step {
    /// Which node of the plan it is, or is part of: nodes are numbered as [`visit::walk`] shows them.
    pub number: usize,
    /// The labels that it names.
    pub named: Labels,
    pub role: Role,
    pub is_repeat: bool,
    /// Whether rows go on as they come out of its children.
    pub hands_on: bool,
    /// The labels of the patterns, if it is `match()`.
    pub patterns: Option<Labels>,
    /// Its child traversals.
    pub children: Vec<usize>,
    /// How many they are, with those that are no traversal here.
    pub child_count: usize,
}

/// A traversal.
#[derive(Debug)]
pub struct Line {
    pub steps: Vec<Step>,
    /// The line and step that it is a child of.
    pub parent: Option<(usize, usize)>,
}

/// The lines of a plan, each behind the one that it is part of.
#[derive(Debug, Default)]
pub struct Lines {
    pub lines: Vec<Line>,
    /// Nodes so far.
    nodes: usize,
}

impl Lines {
    /// Those of a traversal and all inside it.
    pub fn of(root: &Traversal) -> Lines {
        let mut lines = Lines::default();
        lines.add(root, None);
        lines
    }

    fn add(&mut self, traversal: &Traversal, parent: Option<(usize, usize)>) -> usize {
        let line = self.lines.len();
        self.lines.push(Line { steps: Vec::new(), parent });
        self.add_steps(traversal, line, None);
        line
    }

    /// Adds the steps of a traversal to a line; `part_of`: the node that all of them are part of.
    fn add_steps(&mut self, traversal: &Traversal, line: usize, part_of: Option<usize>) {
        for own in &traversal.nodes {
            let number = part_of.unwrap_or(self.nodes);
            self.nodes += 1;
            let children = visit::children(&own.node);
            if is_inlined(&own.node, &children) {
                children.iter().for_each(|child| self.add_steps(child, line, Some(number)));
                continue;
            }
            let step = self.lines[line].steps.len();
            self.lines[line].steps.push(Step {
                number,
                named: named(&own.node),
                role: role(&own.node),
                is_repeat: matches!(own.node, Node::Repeat(_)),
                hands_on: hands_on(&own.node),
                patterns: match &own.node {
                    Node::Match { patterns, .. } => Some(labels_of_patterns(patterns)),
                    _ => None,
                },
                children: Vec::new(),
                child_count: child_count(&own.node, children.len()),
            });
            for child in children {
                let child = self.add(child, Some((line, step)));
                self.lines[line].steps[step].children.push(child);
            }
        }
    }

    /// Shows `visit` the lines inside a step, at any depth.
    pub fn inside(&self, line: usize, step: usize, visit: &mut dyn FnMut(usize)) {
        for child in &self.lines[line].steps[step].children {
            visit(*child);
            (0..self.lines[*child].steps.len()).for_each(|step| self.inside(*child, step, visit));
        }
    }
}

/// Whether the steps inside a filter are steps of the line that it is in.
pub fn is_inlined(node: &Node, children: &[&Arc<Traversal>]) -> bool {
    matches!(node, Node::Filter { .. } | Node::And { .. })
        && children.iter().all(|child| !child.nodes.is_empty() && child.nodes.iter().all(|own| is_filter(&own.node)))
}

fn is_filter(node: &Node) -> bool {
    matches!(
        node,
        Node::Has { .. }
            | Node::HasProperty { .. }
            | Node::Is { .. }
            | Node::WherePredicate { .. }
            | Node::WhereTraversal { .. }
            | Node::Filter { .. }
            | Node::Not { .. }
            | Node::And { .. }
            | Node::Or { .. }
            | Node::Collection { .. }
            | Node::Coin { .. }
            | Node::PathFilter { .. }
            | Node::TimeLimit { .. }
            | Node::Discard
    )
}

fn role(node: &Node) -> Role {
    match node {
        Node::Select { .. }
        | Node::SelectTraversal { .. }
        | Node::WherePredicate { .. }
        | Node::WhereTraversal { .. }
        | Node::Dedup { .. } => Role::Keeps,
        Node::Math { .. } | Node::Format { .. } => Role::KeepsMore,
        _ => Role::Plain,
    }
}

/// Whether rows go on from the ends of a step's children, with the way that they have come there.
fn hands_on(node: &Node) -> bool {
    matches!(
        node,
        Node::Repeat(_)
            | Node::Union { .. }
            | Node::Choose { .. }
            | Node::Coalesce { .. }
            | Node::Optional { .. }
            | Node::Local { .. }
            | Node::FlatMap { .. }
            | Node::Map { .. }
            | Node::Match { .. }
    )
}

fn named(node: &Node) -> Labels {
    let mut labels = Vec::new();
    match node {
        Node::Select { labels: own, .. } | Node::Dedup { labels: own, .. } => labels.clone_from(own),
        Node::WherePredicate { start, predicate, .. } => {
            labels.extend(start.clone());
            right_labels(predicate, &mut labels);
        }
        Node::WhereTraversal { start, end, .. } => labels.extend(start.iter().chain(end).cloned()),
        Node::Math { expression, .. } => {
            let expression = Expression::parse(expression);
            labels.extend(expression.iter().flat_map(|own| own.variables()).filter(|own| &***own != "_").cloned());
        }
        Node::Format { template, .. } => {
            labels.extend(Template::parse(template).variables().into_iter().filter(|own| &**own != "_"));
        }
        Node::AddEdge { from, to, .. } => {
            labels.extend([from, to].into_iter().flatten().filter_map(|end| match end {
                Endpoint::Label(label) => Some(label.clone()),
                _ => None,
            }));
        }
        _ => {}
    }
    labels.into_iter().collect()
}

fn labels_of_patterns(patterns: &[MatchPattern]) -> Labels {
    let mut labels = Labels::new();
    for pattern in patterns {
        match pattern {
            MatchPattern::Path { start, end, .. } => labels.extend(std::iter::once(start).chain(end).cloned()),
            MatchPattern::Where(_, own) => labels.extend(own.iter().cloned()),
            MatchPattern::Not(inner) => labels.extend(labels_of_patterns(std::slice::from_ref(inner))),
            MatchPattern::And(inner) | MatchPattern::Or(inner) => labels.extend(labels_of_patterns(inner)),
        }
    }
    labels
}

/// Children of a step in TinkerPop, where keys and tokens are traversals too.
fn child_count(node: &Node, traversals: usize) -> usize {
    match node {
        Node::Project { bys, .. }
        | Node::Select { bys, .. }
        | Node::WherePredicate { bys, .. }
        | Node::Format { bys, .. }
        | Node::Math { bys, .. } => bys.len(),
        Node::Group { .. } => 2,
        Node::Order { keys, .. } => keys.len(),
        _ => traversals,
    }
}
