//! `match()` as a line of steps.
//!
//! Patterns in whose steps every row stands alone need no instance for each binding: in the order in which the scope of `match()` would
//! take them they are hops, tests and comparisons one behind the other, with a label where a pattern binds one. A pattern that is one hop
//! between two bound labels closes a cycle: it becomes [`Node::AdjacentFrom`], which the hop to the last of them takes over, so that
//! vertices which close nothing never become rows.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use ficus_model::{Direction, Pop};

use crate::logical::visit::{self, PathNeed};
use crate::logical::{
    LabelledNode, LogicalPlan, MatchPattern, Name, Node, Passes, Reach, Reduction, Traversal, WherePredicate,
};
use crate::options::scope_settings;
use crate::physical::{Requirements, rows_stand_alone};
use crate::rules::merge_equal::between_hops;
use crate::rules::unread::gives_labels_again;
use crate::rules::ways_as_tests::labels_read;
use crate::rules::{Rule, RuleSet};

/// Puts the steps of a `match()` of the outermost traversal in its place.
pub fn in_line(plan: &mut LogicalPlan) -> bool {
    let Some(position) = movable(plan) else { return false };
    let Some(line) = line_of(&plan.root, position) else { return false };
    let (behind, at) = (position + line.nodes.len(), line.at);
    plan.root.nodes.splice(position..=position, line.nodes);
    // Rows are where the last pattern has left them.
    if let (Some(own), Some(at)) = (plan.root.nodes.get_mut(behind), at)
        && matches!(&own.node, Node::Select { pop: None | Some(Pop::Last), labels, bys } if bys.is_empty() && labels[..] == [at.clone()])
    {
        own.node = Node::Identity;
    }
    forget_unread(plan, position..behind);
    true
}

/// Drops labels of some nodes that nobody reads. If none is left rows at the same vertex are equal.
fn forget_unread(plan: &mut LogicalPlan, nodes: Range<usize>) {
    let Some(read) = labels_read(&plan.root).filter(|_| !gives_labels_again(&plan.root)) else { return };
    for own in &mut plan.root.nodes[nodes] {
        own.labels.retain(|label| read.contains(label));
    }
    let may_merge = RuleSet::of_plan(plan).has(Rule::MergeEqualBetweenHops);
    if may_merge && Requirements::of(plan).paths == PathNeed::None {
        between_hops(plan);
    }
}

/// Where the `match()` of the outermost traversal is, if nobody can tell in which order and by which steps it finds its rows.
pub(super) fn movable(plan: &LogicalPlan) -> Option<usize> {
    let position = plan.root.nodes.iter().position(|own| matches!(own.node, Node::Match { .. }))?;
    movable_from(plan, &plan.root.nodes[position].labels).then_some(position)
}

/// Whether nobody can tell by which steps rows are found; `addressed` are labels by which a scope among these may be meant.
pub(super) fn movable_from(plan: &LogicalPlan, addressed: &[Name]) -> bool {
    let requirements = Requirements::of(plan);
    let source = &plan.source;
    let counts_rows = source.sack.is_some() || source.without_bulk || !source.side_effects.is_empty();
    let has_side_effects = visit::any(&plan.root, &mut visit::has_side_effect);
    let is_addressed = scope_settings(source).iter().any(|setting| addressed.contains(&setting.label));
    let is_told = requirements.paths == PathNeed::Full
        || requirements.row_by_row
        || counts_rows
        || has_side_effects
        || is_addressed
        || !source.is_on("ficus.scopes");
    !is_told
}

/// What stands in place of the `match()` at a position; `None` if it has to stay.
fn line_of(root: &Traversal, position: usize) -> Option<Line> {
    let Node::Match { patterns, conjunctive: true } = &root.nodes[position].node else { return None };
    let mut line = Line::default();
    let mut all = Vec::new();
    gather(patterns, &mut all)?;
    let mut starts: Vec<&Name> = Vec::new();
    let mut ends: Vec<&Name> = Vec::new();
    for pattern in &all {
        if let MatchPattern::Path { start, end, .. } = pattern {
            starts.push(start);
            ends.extend(end);
        }
    }
    let known: HashSet<&Name> = starts.iter().chain(&ends).copied().collect();
    if labels_inside(root).iter().any(|label| known.contains(label)) {
        return None;
    }
    let is_end: HashSet<&Name> = ends.iter().copied().collect();
    let first = starts.iter().find(|start| !is_end.contains(*start)).or(starts.first())?;
    line.push(Node::Identity);
    line.bind((*first).clone());
    line.add_all(&all)?;
    let own = &root.nodes[position].labels;
    if !own.is_empty() || !reads_labels_only(&root.nodes[position + 1..], &known) {
        // Labels in the order of the result.
        let mut told = HashSet::new();
        let labels: Vec<Name> =
            starts.iter().chain(&ends).filter(|label| told.insert(**label)).copied().cloned().collect();
        // One label would give its object, and not a map.
        if labels.len() == 1 {
            return None;
        }
        line.nodes.push(LabelledNode {
            node: Node::Select { pop: Some(Pop::Last), labels, bys: Vec::new() },
            labels: own.clone(),
        });
        line.at = None;
    }
    Some(line)
}

/// The patterns that all have to hold; `None` if there are alternatives, or steps in which rows do not stand alone.
fn gather<'p>(patterns: &'p [MatchPattern], all: &mut Vec<&'p MatchPattern>) -> Option<()> {
    for pattern in patterns {
        match pattern {
            MatchPattern::And(patterns) => gather(patterns, all)?,
            MatchPattern::Or(_) => return None,
            MatchPattern::Path { traversal, .. } => {
                rows_stand_alone(traversal).then_some(())?;
                all.push(pattern);
            }
            MatchPattern::Not(inner) => {
                let MatchPattern::Path { traversal, .. } = &**inner else { return None };
                rows_stand_alone(traversal).then_some(())?;
                all.push(pattern);
            }
            MatchPattern::Where(traversal, _) => {
                match traversal.nodes.as_slice() {
                    [own] if rows_stand_alone(traversal) => match &own.node {
                        Node::WherePredicate { start: Some(_), .. } | Node::WhereTraversal { start: Some(_), .. } => {}
                        _ => return None,
                    },
                    _ => return None,
                }
                all.push(pattern);
            }
        }
    }
    Some(())
}

/// The labels of all steps. Those that patterns begin and end with are the patterns' own.
pub(super) fn labels_inside(root: &Traversal) -> Vec<&Name> {
    fn collect<'p>(traversal: &'p Traversal, found: &mut Vec<&'p Name>) {
        for own in &traversal.nodes {
            found.extend(&own.labels);
            for child in visit::children(&own.node) {
                collect(child, found);
            }
        }
    }
    let mut found = Vec::new();
    collect(root, &mut found);
    found
}

/// How soon a pattern goes, checks first; `None` while what it starts from is not bound.
fn rank(pattern: &MatchPattern, bound: &HashSet<Name>) -> Option<u8> {
    match pattern {
        MatchPattern::Where(_, labels) => labels.iter().all(|label| bound.contains(label)).then_some(0),
        MatchPattern::Not(inner) => match &**inner {
            MatchPattern::Path { start, end, .. } => {
                (bound.contains(start) && end.as_ref().is_none_or(|end| bound.contains(end))).then_some(0)
            }
            _ => None,
        },
        MatchPattern::Path { start, .. } if !bound.contains(start) => None,
        MatchPattern::Path { end: None, .. } => Some(1),
        MatchPattern::Path { end: Some(end), .. } => Some(if bound.contains(end) { 2 } else { 3 }),
        MatchPattern::And(_) | MatchPattern::Or(_) => None,
    }
}

/// The labels on which the rank of a pattern depends.
fn labels_of(pattern: &MatchPattern) -> Vec<&Name> {
    match pattern {
        MatchPattern::Where(_, labels) => labels.iter().collect(),
        MatchPattern::Not(inner) => labels_of(inner),
        MatchPattern::Path { start, end, .. } => std::iter::once(start).chain(end).collect(),
        MatchPattern::And(_) | MatchPattern::Or(_) => Vec::new(),
    }
}

/// Whether the nodes behind look at single labels only, so that nobody misses the map of all.
pub(super) fn reads_labels_only(behind: &[LabelledNode], labels: &HashSet<&Name>) -> bool {
    for own in behind {
        match &own.node {
            Node::WherePredicate { start: Some(_), .. } if own.labels.is_empty() => {}
            Node::Dedup { labels: named, .. } if !named.is_empty() && own.labels.is_empty() => {}
            Node::Select { pop: None | Some(Pop::Last), labels: named, .. } => {
                return named.iter().all(|label| labels.contains(label));
            }
            Node::Reduce { reduction: Reduction::Count } => return true,
            _ => return false,
        }
    }
    false
}

/// Whether a node only lets objects pass or not.
pub(super) fn filters(node: &Node) -> bool {
    matches!(
        node,
        Node::Has { .. }
            | Node::HasProperty { .. }
            | Node::Is { .. }
            | Node::Filter { .. }
            | Node::Not { .. }
            | Node::And { .. }
            | Node::Or { .. }
            | Node::WherePredicate { .. }
            | Node::WhereTraversal { .. }
    )
}

/// The steps as far as they are found.
#[derive(Default)]
struct Line {
    nodes: Vec<LabelledNode>,
    bound: HashSet<Name>,
    /// The label whose object the rows are at.
    at: Option<Name>,
}

impl Line {
    fn push(&mut self, node: Node) {
        self.nodes.push(node.into());
    }

    /// Labels what the rows are at.
    fn bind(&mut self, label: Name) {
        let bound = self.nodes.iter_mut().rev().find(|own| !filters(&own.node));
        bound.into_iter().for_each(|own| own.labels.push(label.clone()));
        self.bound.insert(label.clone());
        self.at = Some(label);
    }

    /// Adds patterns, always the first of those that go soonest; `None` if they cannot all be parts of a line.
    fn add_all(&mut self, patterns: &[&MatchPattern]) -> Option<()> {
        let mut concerned: HashMap<&Name, Vec<usize>> = HashMap::new();
        for (index, pattern) in patterns.iter().enumerate() {
            labels_of(pattern).into_iter().for_each(|label| concerned.entry(label).or_default().push(index));
        }
        let mut ranks: Vec<Option<u8>> = patterns.iter().map(|pattern| rank(pattern, &self.bound)).collect();
        let rated = |(index, rank): (usize, &Option<u8>)| Some(((*rank)?, index));
        let mut ready: BTreeSet<(u8, usize)> = ranks.iter().enumerate().filter_map(rated).collect();
        let mut is_added = vec![false; patterns.len()];
        for _ in patterns {
            let (_, index) = ready.pop_first()?;
            is_added[index] = true;
            self.add(patterns[index])?;
            // Who binds a label is at it then.
            let bound = self.at.as_ref().and_then(|label| concerned.remove(label)).unwrap_or_default();
            for index in bound.into_iter().filter(|index| !is_added[*index]) {
                if let Some(before) = ranks[index] {
                    ready.remove(&(before, index));
                }
                ranks[index] = rank(patterns[index], &self.bound);
                ready.extend(ranks[index].map(|rank| (rank, index)));
            }
        }
        Some(())
    }

    /// Goes to what is under a label.
    fn go_to(&mut self, label: &Name) {
        if self.at.as_ref() != Some(label) {
            self.push(Node::Recall { label: label.clone() });
            self.at = Some(label.clone());
        }
    }

    fn steps(&mut self, traversal: &Traversal) {
        if !traversal.nodes.iter().all(|own| filters(&own.node)) {
            self.at = None;
        }
        self.nodes.extend(traversal.nodes.iter().cloned());
    }

    /// Adds a test of the edges from what is under one label to what is under another, counted from either end.
    fn edges_between(&mut self, start: &Name, end: &Name, (direction, labels): Hop<'_>, passes: Passes) {
        let (label, direction) = match self.at.as_ref() == Some(start) {
            true => (end, direction.reversed()),
            false => (start, direction),
        };
        if self.at.as_ref() != Some(start) {
            self.go_to(end);
        }
        self.push(Node::AdjacentFrom { label: label.clone(), direction, labels: labels.to_vec(), passes });
    }

    /// Adds a pattern whose start is bound; `None` if it cannot be a part of a line.
    fn add(&mut self, pattern: &MatchPattern) -> Option<()> {
        match pattern {
            MatchPattern::Where(traversal, _) => self.steps(traversal),
            MatchPattern::Not(inner) => {
                let MatchPattern::Path { start, traversal, end } = &**inner else { return None };
                if let (Some(end), Some(hop)) = (end, only_hop(traversal)) {
                    self.edges_between(start, end, hop, Passes::NoEdge);
                    return Some(());
                }
                self.go_to(start);
                let mut traversal = (**traversal).clone();
                if let Some(end) = end {
                    traversal.nodes.push(reaches(&traversal, end)?.into());
                }
                self.push(Node::Not { traversal: Arc::new(traversal) });
            }
            MatchPattern::Path { start, traversal, end: None } => {
                self.go_to(start);
                self.steps(traversal);
            }
            MatchPattern::Path { start, traversal, end: Some(end) } if self.bound.contains(end) => {
                if let Some(hop) = only_hop(traversal) {
                    self.edges_between(start, end, hop, Passes::EachEdge);
                    return Some(());
                }
                self.go_to(start);
                let comparison = reaches(traversal, end)?;
                self.steps(traversal);
                self.push(comparison);
                self.at = Some(end.clone());
            }
            MatchPattern::Path { start, traversal, end: Some(end) } => {
                self.go_to(start);
                // What only tests its start gives another name to it.
                if traversal.nodes.iter().all(|own| filters(&own.node)) {
                    self.push(Node::Identity);
                }
                self.steps(traversal);
                self.bind(end.clone());
            }
            MatchPattern::And(_) | MatchPattern::Or(_) => return None,
        }
        Some(())
    }
}

/// Direction and labels of a hop.
type Hop<'p> = (Direction, &'p [Name]);

/// The hop to vertices that is all that a pattern does.
fn only_hop(traversal: &Traversal) -> Option<Hop<'_>> {
    match traversal.nodes.as_slice() {
        [LabelledNode { node: Node::Adjacent { direction, labels, reach: Reach::Vertex }, labels: own }]
            if own.is_empty() =>
        {
            Some((*direction, labels))
        }
        _ => None,
    }
}

/// The comparison of what a pattern comes to with the object under a label. Only of elements: other objects are compared in more than one
/// way, and a map would be taken for a place to look in.
fn reaches(traversal: &Traversal, end: &Name) -> Option<Node> {
    let moving = traversal.nodes.iter().rev().find(|own| !filters(&own.node))?;
    matches!(moving.node, Node::Adjacent { .. } | Node::EdgeVertex { .. }).then(|| Node::WherePredicate {
        start: None,
        predicate: WherePredicate::Compare(ficus_model::Comparison::Eq, end.clone()),
        bys: Vec::new(),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use ficus_model::Direction;

    use super::*;

    /// The label behind so many hops.
    pub fn name(number: usize) -> Name {
        Name::from(format!("v{number}"))
    }

    /// So many patterns of one hop each, one behind the other; the last is the first that can go.
    pub fn hops(count: usize) -> Vec<MatchPattern> {
        let out = Node::Adjacent { direction: Direction::Out, labels: Vec::new(), reach: Reach::Vertex };
        let hop = Arc::new(Traversal { nodes: vec![out.into()] });
        let path = |number: usize| MatchPattern::Path {
            start: name(number),
            traversal: hop.clone(),
            end: Some(name(number + 1)),
        };
        (0..count).rev().map(path).collect()
    }

    #[test]
    fn many_patterns_are_put_in_line_at_once() {
        // Ranked anew for each that is added they would take minutes.
        const PATTERNS: usize = 50_000;
        let patterns = hops(PATTERNS);
        let mut plan = LogicalPlan::default();
        // Its rows are maps of all labels.
        plan.root.nodes.push(Node::Match { patterns, conjunctive: true }.into());
        assert!(in_line(&mut plan));
        let hops: Vec<&LabelledNode> =
            plan.root.nodes.iter().filter(|own| matches!(own.node, Node::Adjacent { .. })).collect();
        assert_eq!(hops.len(), PATTERNS);
        assert!(hops.iter().enumerate().all(|(number, hop)| hop.labels == [name(number + 1)]));
    }
}
