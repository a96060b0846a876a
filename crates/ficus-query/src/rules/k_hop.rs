//! Walks of several hops whose ends are wanted once each, as one node: a search instead of a stream of walks.
//!
//! `repeat(out()).times(3).dedup()` yields each vertex at the end of a walk once, however many walks end there. That is a
//! search over sets of vertices, which costs the edges between them, and which many users' queries can share. If only one
//! vertex is asked for, `until(hasId(…))` or `hasId(…)` behind, the search ends there. Vertices that count on the way, `until(has(…))` or
//! `emit(has(…)).times(3)`, are marked ([`KHopMark`]). Friends and their friends are often written as a `union()` ([`unions`]): that is the same
//! search. So are loops that remember by themselves where they have been ([`seen`]).
//! What follows `dedup()` sees the same vertices; only their order is another, and Gremlin promises none.

mod seen;
mod sub_queries;
mod unions;

use std::sync::Arc;

use ficus_model::{Comparison, Direction, P, Value};

use super::merge_equal::want_rows_early;
use crate::logical::visit::PathNeed;
use crate::logical::{
    HasKey, KHop, KHopMark, KHopReach, LabelledNode, LogicalPlan, Name, Node, Reach, Reduction, Repeat, Traversal,
};
use crate::physical::Requirements;
use crate::walk_filter::is_condition;

/// Replaces hops and the `dedup()` behind them, and a `count()` behind that; in sub-queries as well.
pub fn of_repeats(plan: &mut LogicalPlan) -> bool {
    // `with('ficus.khop', false)`: walks are to be streamed as they are written.
    if !plan.source.is_on(crate::options::K_HOP) {
        return false;
    }
    let found = seen::replace(plan);
    // Rows that begin anew behind a search have the first sack.
    plan.source.sack.is_none() && of_walks(plan) || found
}

fn of_walks(plan: &mut LogicalPlan) -> bool {
    let mut root = plan.root.clone();
    let mut found = sub_queries::replace(&mut root.nodes);
    if let Some(nodes) = replaced(&root.nodes) {
        root.nodes = nodes;
        found = true;
    }
    if !found {
        return false;
    }
    let rewritten = LogicalPlan { source: plan.source.clone(), root };
    // What a walk itself remembered on its way (`otherV()`) is gone with it; what the rest asks for stays.
    let requirements = Requirements::of(&rewritten);
    // Properties that a program computed are the query's own: conditions look at those of the graph.
    if requirements.paths != PathNeed::None || requirements.row_by_row || requirements.computes {
        return false;
    }
    *plan = rewritten;
    true
}

/// The nodes with walks in place of what they replace, if there are any.
fn replaced(nodes: &[LabelledNode]) -> Option<Vec<LabelledNode>> {
    let want_early = want_rows_early(nodes);
    let mut made = Vec::new();
    let mut found = false;
    let mut position = 0;
    while position < nodes.len() {
        let (replacement, alike) = walk_at(&nodes[position..]);
        match replacement {
            // Of one vertex there is one row, early or not; a limit ends the search.
            Some(replacement)
                if replacement.walk.target.is_some() || replacement.walk.limit.is_some() || !want_early[position] =>
            {
                let written = nodes[position..position + replacement.replaced].to_vec();
                let written = Arc::new(Traversal { nodes: written });
                made.push(Node::KHop(KHop { written, ..replacement.walk }).into());
                made.extend(replacement.behind);
                position += replacement.replaced;
                found = true;
            }
            _ => {
                made.extend_from_slice(&nodes[position..position + alike]);
                position += alike;
            }
        }
    }
    found.then_some(made)
}

/// A walk in place of some nodes.
struct Replacement {
    walk: KHop,
    /// Nodes it replaces.
    replaced: usize,
    /// Conditions on what it yields, in place of them.
    behind: Vec<LabelledNode>,
}

/// The walk that begins these nodes, if there is one and it can be a search; and how many of the nodes begin none if these do not.
fn walk_at(nodes: &[LabelledNode]) -> (Option<Replacement>, usize) {
    match nodes.first() {
        Some(LabelledNode { node: Node::Repeat(repeat), labels }) if labels.is_empty() => {
            (of_repeat(repeat).and_then(|(walk, emitted)| search(walk, 1, emitted, nodes)), 1)
        }
        Some(LabelledNode { node: Node::Union { .. }, .. }) => (unions::within(nodes, 0), 1),
        _ => match of_hops(nodes) {
            // What ends with the last of equal hops ends as those before it do; the last may begin another walk.
            Some((walk, replaced, length)) => {
                // A single hop is no search; what it yields is merged by `dedup()` as cheaply.
                let is_walk = walk.hops != Some(1);
                let found = if is_walk { search(walk, replaced, Vec::new(), nodes) } else { None };
                (found.or_else(|| unions::within(nodes, replaced)), (replaced - length).max(1))
            }
            None => (None, 1),
        },
    }
}

/// A search in place of a walk, the first `replaced` of these nodes, if what is behind them wants each end once.
fn search(
    mut walk: KHop,
    mut replaced: usize,
    emitted: Vec<LabelledNode>,
    nodes: &[LabelledNode],
) -> Option<Replacement> {
    // Two are all that are looked at below; there may be many thousands.
    let behind: Vec<&Node> =
        nodes[replaced..].iter().take(2).take_while(|own| own.labels.is_empty()).map(|own| &own.node).collect();
    let is_within = walk.reach != KHopReach::Exactly;
    if walk.mark.is_some() {
        match behind.as_slice() {
            [first, Node::Range { high, .. }, ..] if is_dedup(first) && *high >= 0 => {
                walk.limit = u64::try_from(*high).ok();
                replaced += 1;
            }
            [first, ..] if is_dedup(first) => replaced += 1,
            // One of them, whichever it is.
            [first, ..] if is_once(first) => walk.limit = Some(1),
            _ => return None,
        }
        return Some(Replacement { walk, replaced, behind: emitted });
    }
    match behind.as_slice() {
        // Not all that is reached is emitted: that is counted behind it.
        [first, Node::Reduce { reduction: Reduction::Count }, ..] if is_dedup(first) && emitted.is_empty() => {
            walk.count = true;
            replaced += 2;
        }
        // What compares the id stays: it knows better than a look-up which ids are equal.
        [first, second, ..] if is_dedup(first) && only_id(second).is_some() => {
            walk.target = walk.target.or(only_id(second));
            replaced += 1;
        }
        // Near vertices come first. Of walks of an exact length, some come sooner if the first is gone to its end.
        [first, Node::Range { high, .. }, ..]
            if is_dedup(first) && is_within && emitted.is_empty() && *high >= 0 && walk.target.is_none() =>
        {
            walk.limit = u64::try_from(*high).ok();
            replaced += 1;
        }
        [first, ..] if is_dedup(first) => replaced += 1,
        [first, second, ..] if only_id(first).is_some() && is_once(second) => {
            walk.target = walk.target.or(only_id(first));
        }
        [first, ..] if walk.target.is_some() && is_once(first) => {}
        _ => return None,
    }
    Some(Replacement { walk, replaced, behind: emitted })
}

pub(super) fn is_dedup(node: &Node) -> bool {
    matches!(node, Node::Dedup { labels, by: None } if labels.is_empty())
}

/// Whether of equal rows one is enough for what this node yields.
fn is_once(node: &Node) -> bool {
    is_dedup(node) || matches!(node, Node::Range { low: 0, high: 1 })
}

/// The id that a condition asks for, if it is of a kind that a look-up finds.
fn only_id(node: &Node) -> Option<Value> {
    let Node::Has { containers } = node else { return None };
    containers.iter().find_map(|container| match (&container.key, &container.predicate) {
        (HasKey::Id, P::Compare(Comparison::Eq, id @ (Value::Int(_) | Value::Long(_) | Value::String(_)))) => {
            Some(id.clone())
        }
        _ => None,
    })
}

/// A hop from vertices to vertices, with what it asks of them.
#[derive(Clone, PartialEq)]
struct Hop {
    direction: Direction,
    labels: Vec<Name>,
    edges: Vec<LabelledNode>,
    vertices: Vec<LabelledNode>,
}

impl Hop {
    fn walk(self, hops: Option<u32>, reach: KHopReach) -> KHop {
        let filter = |nodes: Vec<LabelledNode>| (!nodes.is_empty()).then(|| Arc::new(Traversal { nodes }));
        let (edges, vertices) = (filter(self.edges), filter(self.vertices));
        let (direction, labels) = (self.direction, self.labels);
        KHop {
            direction,
            labels,
            hops,
            reach,
            count: false,
            target: None,
            vertices,
            edges,
            limit: None,
            mark: None,
            alone: false,
            seen: None,
            written: Arc::default(),
        }
    }
}

/// The hop that begins these nodes, and how many of them it is: `out('a')` or `outE('a').has(…).inV()`, and conditions behind.
fn hop(nodes: &[LabelledNode]) -> Option<(Hop, usize)> {
    let (mut hop, used) = bare_hop(nodes)?;
    hop.vertices = nodes[used..].iter().take_while(|own| is_condition(own)).cloned().collect();
    let length = used + hop.vertices.len();
    Some((hop, length))
}

/// Whether these nodes are one hop from vertices to vertices, with what it asks of them.
pub(super) fn is_one_hop(nodes: &[LabelledNode]) -> bool {
    hop(nodes).is_some_and(|(_, length)| length == nodes.len())
}

/// A hop without what is asked of the vertices.
fn bare_hop(nodes: &[LabelledNode]) -> Option<(Hop, usize)> {
    let first = nodes.first().filter(|own| own.labels.is_empty())?;
    let Node::Adjacent { direction, labels, reach } = &first.node else { return None };
    let conditions =
        |from: usize| nodes[from..].iter().take_while(|own| is_condition(own)).cloned().collect::<Vec<_>>();
    let mut used = 1;
    let mut edges = Vec::new();
    if *reach == Reach::Edge {
        edges = conditions(used);
        used += edges.len();
        let end = nodes.get(used).filter(|own| own.labels.is_empty())?;
        let is_other_end = matches!(
            (&end.node, direction),
            (Node::OtherVertex, _)
                | (Node::EdgeVertex { direction: Direction::In }, Direction::Out)
                | (Node::EdgeVertex { direction: Direction::Out }, Direction::In)
        );
        if !is_other_end {
            return None;
        }
        used += 1;
    }
    Some((Hop { direction: *direction, labels: labels.clone(), edges, vertices: Vec::new() }, used))
}

/// `out('a').out('a')`: a walk of two hops, and `out('a')` one of one; how many nodes they are, and how many each.
fn of_hops(nodes: &[LabelledNode]) -> Option<(KHop, usize, usize)> {
    let (first, length) = hop(nodes)?;
    let mut hops = 1;
    // Conditions behind the last of hops without any are not the walk's.
    let next_hop = if first.vertices.is_empty() { bare_hop } else { hop };
    while next_hop(&nodes[hops * length..]).is_some_and(|(next, own)| own == length && next == first) {
        hops += 1;
    }
    Some((first.walk(Some(hops as u32), KHopReach::Exactly), hops * length, length))
}

/// The walk of a loop, and conditions on what it emits.
fn of_repeat(repeat: &Repeat) -> Option<(KHop, Vec<LabelledNode>)> {
    let (hop, used) = hop(&repeat.body.nodes)?;
    if used < repeat.body.nodes.len() {
        return None;
    }
    let End { hops, target, until } = end(repeat.until.as_deref())?;
    // `times(0)` has rules of its own.
    if hops == Some(0) {
        return None;
    }
    let mark = |condition: Vec<LabelledNode>, goes_on, tests_start| {
        Some(KHopMark { condition: Arc::new(Traversal { nodes: condition }), goes_on, tests_start })
    };
    let mut emitted = Vec::new();
    let (reach, mark) = match (&repeat.emit, until, repeat.emit_first) {
        (None, Some(until), _) => {
            let reach = if hops.is_some() { KHopReach::Exactly } else { KHopReach::Within };
            (reach, mark(until, false, repeat.until_first))
        }
        (Some(_), Some(_), _) => return None,
        (None, None, _) if target.is_some() && repeat.until_first => (KHopReach::WithinOrStart, None),
        (None, None, _) if target.is_some() => (KHopReach::Within, None),
        // Without an end and without `emit()` it yields what cannot go on, which is not what a search reaches.
        (None, None, _) => (hops.map(|_| KHopReach::Exactly)?, None),
        (Some(_), None, _) if target.is_some() => return None,
        (Some(emit), None, is_first) => {
            if !emit.nodes.iter().all(is_condition) {
                return None;
            }
            if !emit.nodes.is_empty() && hops.is_some() {
                // What ends a loop of so many rounds is yielded whatever `emit()` says of it.
                (KHopReach::Exactly, mark(emit.nodes.clone(), true, is_first))
            } else {
                emitted.clone_from(&emit.nodes);
                (if is_first { KHopReach::WithinOrStart } else { KHopReach::Within }, None)
            }
        }
    };
    let mut walk = hop.walk(hops, reach);
    (walk.target, walk.mark) = (target, mark);
    Some((walk, emitted))
}

/// When a loop ends.
#[derive(Default)]
struct End {
    /// After so many rounds.
    hops: Option<u32>,
    /// At the vertex with this id.
    target: Option<Value>,
    /// At vertices that fulfil this.
    until: Option<Vec<LabelledNode>>,
}

/// What ends a loop; `None` if that is more than a search can tell.
fn end(until: Option<&Traversal>) -> Option<End> {
    let Some(until) = until else { return Some(End::default()) };
    match until.nodes.as_slice() {
        [LabelledNode { node: Node::LoopsAtLeast { times }, .. }] => {
            Some(End { hops: Some(u32::try_from(*times).ok()?), ..End::default() })
        }
        // It is the way to a vertex, and nothing else is looked at.
        [LabelledNode { node: until @ Node::Has { containers }, .. }]
            if containers.len() == 1 && only_id(until).is_some() =>
        {
            Some(End { target: only_id(until), ..End::default() })
        }
        [] => None,
        nodes if nodes.iter().all(is_condition) => Some(End { until: Some(nodes.to_vec()), ..End::default() }),
        // `until(or(has(…), loops().is(3)))`
        [LabelledNode { node: Node::Or { traversals }, labels }] if labels.is_empty() => {
            let (bounds, conditions): (Vec<_>, Vec<_>) = traversals.iter().partition(|own| rounds(own).is_some());
            let hops = bounds.into_iter().filter_map(|own| rounds(own)).min()?;
            let condition = LabelledNode::from(Node::Or { traversals: conditions.into_iter().cloned().collect() });
            is_condition(&condition).then(|| End { hops: Some(hops), target: None, until: Some(vec![condition]) })
        }
        _ => None,
    }
}

/// The number of rounds that a sub-query asks for.
pub(super) fn rounds(traversal: &Traversal) -> Option<u32> {
    let [first, second] = traversal.nodes.as_slice() else { return None };
    let is_plain = first.labels.is_empty() && second.labels.is_empty();
    let is_loops = matches!(&first.node, Node::Loops { name: None });
    match &second.node {
        Node::Is { predicate: P::Compare(Comparison::Eq | Comparison::Gte, Value::Int(times)) }
            if is_plain && is_loops =>
        {
            u32::try_from(*times).ok().filter(|times| *times > 0)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn out(label: &str) -> LabelledNode {
        Node::Adjacent { direction: Direction::Out, labels: vec![label.into()], reach: Reach::Vertex }.into()
    }

    fn dedup() -> LabelledNode {
        Node::Dedup { labels: Vec::new(), by: None }.into()
    }

    #[test]
    fn equal_hops_that_are_no_search_are_looked_at_once() {
        // Counted anew from each hop they would take minutes.
        let mut nodes = vec![out("a"); 500_000];
        assert!(replaced(&nodes).is_none());
        nodes.extend([out("b"), out("b"), dedup()]);
        let made = replaced(&nodes).expect("the last two are a search");
        assert_eq!(made.len(), 500_001);
    }

    #[test]
    fn the_last_of_equal_hops_may_begin_a_search() {
        let named = LabelledNode::from(Node::HasProperty { key: "name".into(), negated: false });
        let nodes = [out("a"), out("a"), named.clone(), out("a"), named, dedup()];
        let made = replaced(&nodes).expect("the last two hops are a search");
        assert!(matches!(&made[..], [first, second] if first == &nodes[0] && matches!(second.node, Node::KHop(_))));
    }
}
