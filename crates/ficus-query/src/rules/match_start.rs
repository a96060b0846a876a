//! Where `match()` begins.
//!
//! Its patterns lead from the label that no other binds. Where that may be any vertex while another is found by a value, as in
//! `V().match(as('a').out('x').as('b'), as('b').has('name', 'v'))`, the hops between them are turned round: `b` is looked up, and `a` found
//! from there. What is tested of the first label stands in front of `match()`, where a scan or an index takes it over.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use ficus_model::{Comparison, P, Pop, Value};

use super::match_line::{labels_inside, movable, reads_labels_only};
use crate::logical::{HasContainer, HasKey, LabelledNode, LogicalPlan, MatchPattern, Name, Node, Reach, Traversal};

/// Lets the `match()` of the outermost traversal begin where a value says what to look up.
pub fn from_test(plan: &mut LogicalPlan) -> bool {
    let Some(position) = movable(plan) else { return false };
    let Some(nodes) = begun_at_test(&plan.root, position) else { return false };
    plan.root.nodes = nodes;
    true
}

/// A pattern that is one hop and tests of its end.
struct Hop<'p> {
    start: &'p Name,
    hop: &'p Node,
    tests: &'p [LabelledNode],
    end: &'p Name,
}

impl<'p> Hop<'p> {
    fn of(pattern: &'p MatchPattern) -> Option<Hop<'p>> {
        let MatchPattern::Path { start, traversal, end: Some(end) } = pattern else { return None };
        let (own, tests) = traversal.nodes.split_first()?;
        let is_hop = own.labels.is_empty() && matches!(own.node, Node::Adjacent { reach: Reach::Vertex, .. });
        (is_hop && start != end && tests.iter().all(is_safe_test)).then_some(Hop { start, hop: &own.node, tests, end })
    }

    fn turned(&self) -> Option<MatchPattern> {
        let Node::Adjacent { direction, labels, reach } = self.hop else { return None };
        let hop = Node::Adjacent { direction: direction.reversed(), labels: labels.clone(), reach: *reach };
        Some(path(self.end, vec![hop.into()], Some(self.start)))
    }
}

fn path(start: &Name, nodes: Vec<LabelledNode>, end: Option<&Name>) -> MatchPattern {
    MatchPattern::Path { start: start.clone(), traversal: Arc::new(Traversal { nodes }), end: end.cloned() }
}

/// All nodes of the traversal; `None` if `match()` begins well where it does.
fn begun_at_test(root: &Traversal, position: usize) -> Option<Vec<LabelledNode>> {
    let (source, conditions) = root.nodes[..position].split_first()?;
    let is_open = matches!(source.node, Node::Vertices { all: true, .. }) && source.labels.is_empty();
    let says_little = conditions.iter().all(|own| is_safe_test(own) && !singles_out(own));
    let Node::Match { patterns, conjunctive: true } = &root.nodes[position].node else { return None };
    if !is_open || !says_little {
        return None;
    }
    let (first, labels) = solved(patterns)?;
    if labels_inside(root).iter().any(|label| labels.contains(label)) {
        return None;
    }
    // By the label that they are about, since there may be many thousands.
    let mut hops: HashMap<&Name, Vec<(usize, Hop<'_>)>> = HashMap::new();
    let mut found: HashSet<&Name> = HashSet::new();
    for (index, pattern) in patterns.iter().enumerate() {
        if let Some((label, tests)) = tests_at(pattern)
            && tests.iter().any(singles_out)
        {
            found.insert(label);
        }
        if let Some(hop) = Hop::of(pattern) {
            if hop.tests.iter().any(singles_out) {
                found.insert(hop.end);
            }
            hops.entry(hop.start).or_default().push((index, hop));
        }
    }
    // The nearest of those that are found by a value, and the hops to it, the last first.
    let (mut way, mut reached, mut queue) = (HashMap::new(), HashSet::from([first]), VecDeque::from([first]));
    let start = loop {
        let label = queue.pop_front()?;
        if found.contains(label) {
            break label;
        }
        for (index, hop) in hops.get(label).into_iter().flatten() {
            if reached.insert(hop.end) {
                way.insert(hop.end, *index);
                queue.push_back(hop.end);
            }
        }
    };
    let (mut turned, mut tests, mut at) = (Vec::new(), Vec::new(), start);
    let mut is_used = vec![false; patterns.len()];
    while let Some(index) = way.get(at) {
        let hop = Hop::of(&patterns[*index])?;
        is_used[*index] = true;
        turned.push(hop.turned()?);
        match hop.end == start {
            true => tests.extend_from_slice(hop.tests),
            false if hop.tests.is_empty() => {}
            false => turned.push(path(hop.end, hop.tests.to_vec(), None)),
        }
        at = hop.start;
    }
    for (index, pattern) in patterns.iter().enumerate() {
        if let Some(own) = tests_of(pattern, start) {
            tests.extend_from_slice(own);
            is_used[index] = true;
        }
    }
    let tests_of_first = patterns.iter().filter_map(|pattern| tests_of(pattern, first)).flatten();
    let is_narrower = conditions.iter().chain(tests_of_first).any(says_which) && !tests.iter().any(says_which);
    if !tests.iter().any(singles_out) || (start != first && is_narrower) {
        return None;
    }
    if start != first && !conditions.is_empty() {
        turned.push(path(first, conditions.to_vec(), None));
    }
    let kept = patterns.iter().zip(is_used).filter(|(_, is_used)| !is_used).map(|(pattern, _)| pattern.clone());
    turned.extend(kept);
    if !turned.iter().any(|pattern| matches!(pattern, MatchPattern::Path { start: own, .. } if own == start)) {
        return None;
    }
    let mut nodes = vec![source.clone()];
    if start == first {
        nodes.extend_from_slice(conditions);
    }
    nodes.extend(tests);
    nodes.push(Node::Match { patterns: turned, conjunctive: true }.into());
    let (own, behind) = (&root.nodes[position].labels, &root.nodes[position + 1..]);
    if !own.is_empty() || !reads_labels_only(behind, &labels.iter().collect()) {
        // The map names them in the order in which they were written.
        let select = Node::Select { pop: Some(Pop::Last), labels, bys: Vec::new() };
        nodes.push(LabelledNode { node: select, labels: own.clone() });
    }
    nodes.extend_from_slice(behind);
    Some(nodes)
}

/// The label that `match()` begins at and all labels in the order of its result; `None` if the patterns cannot be solved from there, or if
/// there are alternatives.
fn solved(patterns: &[MatchPattern]) -> Option<(&Name, Vec<Name>)> {
    let (mut starts, mut ends, mut asked) = (Vec::new(), Vec::new(), Vec::new());
    for pattern in patterns {
        match pattern {
            MatchPattern::Path { start, end, .. } => {
                starts.push(start);
                ends.extend(end);
            }
            MatchPattern::Not(inner) => match &**inner {
                MatchPattern::Path { start, end, .. } => asked.extend(std::iter::once(start).chain(end)),
                _ => return None,
            },
            MatchPattern::Where(_, labels) => asked.extend(labels),
            MatchPattern::And(_) | MatchPattern::Or(_) => return None,
        }
    }
    let is_end: HashSet<&Name> = ends.iter().copied().collect();
    let first = *starts.iter().find(|start| !is_end.contains(*start)).or(starts.first())?;
    let mut next: HashMap<&Name, Vec<&Name>> = HashMap::new();
    for pattern in patterns {
        if let MatchPattern::Path { start, end: Some(end), .. } = pattern {
            next.entry(start).or_default().push(end);
        }
    }
    let (mut bound, mut queue) = (HashSet::from([first]), vec![first]);
    while let Some(label) = queue.pop() {
        queue.extend(next.remove(label).into_iter().flatten().filter(|end| bound.insert(*end)));
    }
    if !starts.iter().chain(&asked).all(|label| bound.contains(label)) {
        return None;
    }
    let mut told = HashSet::new();
    let labels: Vec<Name> = starts.into_iter().chain(ends).filter(|label| told.insert(*label)).cloned().collect();
    // One label would give its object, and not a map.
    (labels.len() > 1).then_some((first, labels))
}

/// The tests of the vertex under a label that a pattern consists of.
fn tests_of<'p>(pattern: &'p MatchPattern, label: &Name) -> Option<&'p [LabelledNode]> {
    tests_at(pattern).filter(|(start, _)| *start == label).map(|(_, tests)| tests)
}

/// The label under which a vertex is that a pattern does nothing but test, and the tests.
fn tests_at(pattern: &MatchPattern) -> Option<(&Name, &[LabelledNode])> {
    match pattern {
        MatchPattern::Path { start, traversal, end: None } => {
            traversal.nodes.iter().all(is_safe_test).then_some((start, traversal.nodes.as_slice()))
        }
        _ => None,
    }
}

/// Whether a node is a test that fails on no vertex, so that it may be asked of others as well.
fn is_safe_test(own: &LabelledNode) -> bool {
    let is_safe = |container: &HasContainer| {
        matches!(container.key, HasKey::Key(_) | HasKey::Id | HasKey::Label) && never_fails(&container.predicate)
    };
    own.labels.is_empty()
        && match &own.node {
            Node::Has { containers } => containers.iter().all(is_safe),
            Node::HasProperty { .. } => true,
            _ => false,
        }
}

fn never_fails(predicate: &P) -> bool {
    match predicate {
        P::Compare(..) | P::Within(_) | P::Without(_) => true,
        P::Text(..) | P::TypeOf(_) => false,
        P::And(all) | P::Or(all) => all.iter().all(never_fails),
        P::Not(inner) => never_fails(inner),
    }
}

/// Whether a test names labels or ids, so that not all vertices are looked at.
fn says_which(own: &LabelledNode) -> bool {
    let names = |container: &HasContainer| matches!(container.key, HasKey::Label | HasKey::Id);
    matches!(&own.node, Node::Has { containers } if containers.iter().any(names))
}

/// Whether few vertices are likely to pass: those with a given value, of which there are more than two.
fn singles_out(own: &LabelledNode) -> bool {
    let is_one = |value: &Value| !matches!(value, Value::Null | Value::Bool(_));
    let singles_out = |container: &HasContainer| {
        matches!(container.key, HasKey::Key(_) | HasKey::Id)
            && matches!(&container.predicate, P::Compare(Comparison::Eq, value) if is_one(value))
    };
    matches!(&own.node, Node::Has { containers } if containers.iter().any(singles_out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::match_line::tests::{hops, name};

    #[test]
    fn of_many_patterns_each_is_looked_at_a_few_times() {
        // Looked through anew for each label they would take minutes.
        const PATTERNS: usize = 50_000;
        let patterns = hops(PATTERNS);
        let plan = |patterns| {
            let mut plan = LogicalPlan::default();
            plan.root.nodes.push(Node::Vertices { ids: Vec::new(), all: true }.into());
            plan.root.nodes.push(Node::Match { patterns, conjunctive: true }.into());
            plan
        };
        assert!(!from_test(&mut plan(patterns.clone())));
        let test = HasContainer {
            key: HasKey::Key("name".into()),
            predicate: P::Compare(Comparison::Eq, Value::from("a".to_owned())),
        };
        let tests = Arc::new(Traversal { nodes: vec![Node::Has { containers: vec![test] }.into()] });
        let mut tested = patterns;
        tested.push(MatchPattern::Path { start: name(PATTERNS), traversal: tests, end: None });
        assert!(from_test(&mut plan(tested)));
    }
}
