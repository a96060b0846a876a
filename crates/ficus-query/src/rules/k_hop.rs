//! Walks of several hops whose ends are wanted once each, as one node: a search instead of a stream of walks.
//!
//! `repeat(out()).times(3).dedup()` yields each vertex at the end of a walk once, however many walks end there. That is a
//! search over sets of vertices, which costs the edges between them, and which many users' queries can share. If only one
//! vertex is asked for, `until(hasId(…))` or `hasId(…)` behind, the search ends there.
//! What follows `dedup()` sees the same vertices; only their order is another, and Gremlin promises none.

use ficus_model::{Comparison, Direction, P, Value};

use super::merge_equal::wants_rows_early;
use crate::logical::visit::PathNeed;
use crate::logical::{HasKey, KHop, KHopReach, LabelledNode, LogicalPlan, Name, Node, Reach, Reduction, Repeat};
use crate::physical::Requirements;

/// Replaces hops and the `dedup()` behind them, and a `count()` behind that.
pub fn of_repeats(plan: &mut LogicalPlan) -> bool {
    let requirements = Requirements::of(plan);
    // `with('ficus.khop', false)`: walks are to be streamed as they are written.
    if !plan.source.is_on("ficus.khop")
        || requirements.paths != PathNeed::None
        || requirements.row_by_row
        || plan.source.sack.is_some()
    {
        return false;
    }
    let nodes = &mut plan.root.nodes;
    let mut changed = false;
    let mut position = 0;
    while position < nodes.len() {
        if let Some((walk, replaced)) = walk_at(&nodes[position..])
            // Of one vertex there is one row, early or not.
            && (walk.target.is_some() || !wants_rows_early(nodes, position))
        {
            nodes.splice(position..position + replaced, [Node::KHop(walk).into()]);
            changed = true;
        }
        position += 1;
    }
    changed
}

/// The walk that begins these nodes, and how many of them it is.
fn walk_at(nodes: &[LabelledNode]) -> Option<(KHop, usize)> {
    let (mut walk, mut replaced) = match &nodes.first().filter(|own| own.labels.is_empty())?.node {
        Node::Repeat(repeat) => (of_repeat(repeat)?, 1),
        _ => of_hops(nodes)?,
    };
    let behind: Vec<&Node> =
        nodes[replaced..].iter().take_while(|own| own.labels.is_empty()).map(|own| &own.node).collect();
    match behind.as_slice() {
        [first, Node::Reduce { reduction: Reduction::Count }, ..] if is_dedup(first) => {
            walk.count = true;
            replaced += 2;
        }
        // What compares the id stays: it knows better than a look-up which ids are equal.
        [first, second, ..] if is_dedup(first) && only_id(second).is_some() => {
            walk.target = walk.target.or(only_id(second));
            replaced += 1;
        }
        [first, ..] if is_dedup(first) => replaced += 1,
        [first, second, ..] if only_id(first).is_some() && is_once(second) => {
            walk.target = walk.target.or(only_id(first));
        }
        [first, ..] if walk.target.is_some() && is_once(first) => {}
        _ => return None,
    }
    Some((walk, replaced))
}

fn is_dedup(node: &Node) -> bool {
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

/// A hop to vertices.
fn hop(own: &LabelledNode) -> Option<(Direction, &Vec<Name>)> {
    match &own.node {
        Node::Adjacent { direction, labels, reach: Reach::Vertex } if own.labels.is_empty() => {
            Some((*direction, labels))
        }
        _ => None,
    }
}

/// `out('a').out('a')`: a walk of two hops.
fn of_hops(nodes: &[LabelledNode]) -> Option<(KHop, usize)> {
    let first = hop(nodes.first()?)?;
    let hops = nodes.iter().take_while(|own| hop(own) == Some(first)).count();
    let (direction, labels) = (first.0, first.1.clone());
    // A single hop is no search; what it yields is merged by `dedup()` as cheaply.
    (hops > 1).then(|| {
        let times = Some(hops as u32);
        (KHop { direction, labels, hops: times, reach: KHopReach::Exactly, count: false, target: None }, hops)
    })
}

fn of_repeat(repeat: &Repeat) -> Option<KHop> {
    let [only] = repeat.body.nodes.as_slice() else { return None };
    let (direction, labels) = hop(only)?;
    let (mut hops, mut target) = (None, None);
    match repeat.until.as_ref().map(|until| until.nodes.as_slice()) {
        None => {}
        Some([LabelledNode { node: Node::LoopsAtLeast { times }, .. }]) => hops = Some(u32::try_from(*times).ok()?),
        // It is the way to a vertex, and nothing else is looked at.
        Some([LabelledNode { node: until @ Node::Has { containers }, .. }]) if containers.len() == 1 => {
            target = Some(only_id(until)?);
        }
        Some(_) => return None,
    }
    let reach = match (&repeat.emit, repeat.emit_first) {
        (None, _) if target.is_some() && repeat.until_first => KHopReach::WithinOrStart,
        (None, _) if target.is_some() => KHopReach::Within,
        // Without an end and without `emit()` it yields what cannot go on, which is not what a search reaches.
        (None, _) => hops.map(|_| KHopReach::Exactly)?,
        (Some(_), _) if target.is_some() => return None,
        (Some(emit), _) if !emit.nodes.is_empty() => return None,
        (Some(_), true) => KHopReach::WithinOrStart,
        (Some(_), false) => KHopReach::Within,
    };
    // `times(0)` has rules of its own.
    if hops == Some(0) {
        return None;
    }
    Some(KHop { direction, labels: labels.clone(), hops, reach, count: false, target })
}
