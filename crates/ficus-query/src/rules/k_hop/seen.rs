//! Loops that remember in a side effect where they have been, and go on from what is new:
//! `aggregate('x').repeat(both().where(without('x')).dedup().aggregate('x')).emit().times(3)`, with a sack that counts the hops, maybe.
//!
//! In every iteration rows are at the vertices that the search comes to with as many hops, each once, and what they carry is the same for all of them. Of an
//! `aggregate()` that is no barrier, in `local()`, that would not hold.

use std::sync::Arc;

use ficus_model::number::is_number;
use ficus_model::{Operator, Value};

use super::{End, Hop, bare_hop, end, is_dedup};
use crate::logical::visit::{self, PathNeed};
use crate::logical::{
    By, KHop, KHopReach, KHopSeen, LabelledNode, LogicalPlan, Name, Node, Repeat, SackOptions, Traversal,
    WherePredicate,
};
use crate::physical::Requirements;
use crate::rules::merge_equal::want_rows_early;
use crate::rules::ways_as_tests::labels_read;
use crate::walk_filter::is_condition;

/// Puts a search in place of such a loop of the query's own steps. There is one at most: of two, each would gather what the other might ask for.
pub(super) fn replace(plan: &mut LogicalPlan) -> bool {
    replaced(plan).map(|rewritten| *plan = rewritten).is_some()
}

fn replaced(plan: &LogicalPlan) -> Option<LogicalPlan> {
    let nodes = &plan.root.nodes;
    let sack = plan.source.sack.as_ref();
    // Of several none can be replaced, and there may be thousands: the first is all that is looked at further.
    let first = (0..nodes.len()).find_map(|at| Some((at, walk_at(nodes, at, sack)?)));
    let (at, (key, walk, replaced)) = first?;
    if want_rows_early(nodes)[at + replaced - 1]
        || sack.is_some() && nodes[..at].iter().any(|own| may_set_sack(&own.node))
    {
        return None;
    }
    let mut root = plan.root.clone();
    let written = root.nodes.splice(at..at + replaced, [LabelledNode::from(Node::KHop(walk))]).collect();
    if let Some(LabelledNode { node: Node::KHop(walk), .. }) = root.nodes.get_mut(at) {
        walk.written = Arc::new(Traversal { nodes: written });
    }
    let rewritten = LogicalPlan { source: plan.source.clone(), root };
    is_unread(&key, &rewritten).then_some(rewritten)
}

/// Whether nobody asks for what the loop has gathered, nor for the way of its rows.
fn is_unread(key: &Name, rest: &LogicalPlan) -> bool {
    let requirements = Requirements::of(rest);
    let is_plain = requirements.paths == PathNeed::None && !requirements.row_by_row && !requirements.computes;
    let is_given = rest.source.side_effects.iter().any(|(own, ..)| own == key);
    let gathers = |node: &Node| visit::has_side_effect(node) || matches!(node, Node::Cap { .. });
    is_plain
        && !is_given
        && !visit::any(&rest.root, &mut |node| gathers(node))
        && labels_read(&rest.root).is_some_and(|read| !read.contains(key))
}

/// The search that these nodes are from `at` on, the side effect in which they remember where they have been, and how many nodes they are.
fn walk_at(nodes: &[LabelledNode], at: usize, sack: Option<&SackOptions>) -> Option<(Name, KHop, usize)> {
    let (first, next) = (nodes.get(at)?, nodes.get(at + 1));
    let (start_key, repeat, replaced) = match (&first.node, next.map(|own| &own.node)) {
        (Node::Aggregate { key, by: By::Identity }, Some(Node::Repeat(repeat))) => (Some(key), repeat, 2),
        (Node::Repeat(repeat), _) => (None, repeat, 1),
        _ => return None,
    };
    if nodes[at..at + replaced].iter().any(|own| !own.labels.is_empty()) {
        return None;
    }
    let Body { hop, key, sack: change } = Body::of(repeat)?;
    if start_key.is_some_and(|own| *own != key) {
        return None;
    }
    let sack = match (change, sack) {
        (None, None) => None,
        // All rows begin with the same, and nobody makes another of it when rows part or meet.
        (change, Some(SackOptions { initial, split: None, merge: None })) => match change {
            Some(_) if !is_number(initial) => return None,
            change => change,
        },
        _ => return None,
    };
    let (hops, last_only) = match (repeat, end(repeat.until.as_deref())?) {
        (
            Repeat { until_first: false, emit_first: false, emit, name: None, .. },
            End { hops, target: None, until: None },
        ) => match emit {
            Some(emit) if emit.nodes.is_empty() => (hops, false),
            Some(_) => return None,
            None => (Some(hops?), true),
        },
        _ => return None,
    };
    if hops == Some(0) {
        return None;
    }
    let seen = KHopSeen { with_start: start_key.is_some(), last_only, sack };
    let walk = KHop { seen: Some(seen), ..hop.walk(hops, KHopReach::Within) };
    Some((key, walk, replaced))
}

/// Whether rows may have another sack behind a node than in front of it.
fn may_set_sack(node: &Node) -> bool {
    matches!(node, Node::SackWith { .. })
        || visit::children(node)
            .iter()
            .any(|child| visit::any(child, &mut |inner| matches!(inner, Node::SackWith { .. })))
}

/// What such a loop does in each iteration.
struct Body {
    hop: Hop,
    key: Name,
    sack: Option<(Operator, Value)>,
}

impl Body {
    fn of(repeat: &Repeat) -> Option<Body> {
        let nodes = &repeat.body.nodes;
        if nodes.iter().any(|own| !own.labels.is_empty()) {
            return None;
        }
        let (mut hop, hop_length) = bare_hop(nodes)?;
        // What is not entered, in any order: what fails a condition, was seen in an iteration before, or in this one.
        let (mut without, mut is_distinct) = (None, false);
        let mut rest = nodes[hop_length..].iter();
        let key = loop {
            match rest.next()? {
                own if is_condition(own) => hop.vertices.push(own.clone()),
                LabelledNode { node: Node::WherePredicate { start: None, predicate, bys }, .. } if bys.is_empty() => {
                    match predicate {
                        WherePredicate::Without(keys) if keys.len() == 1 && without.is_none() => without = keys.first(),
                        _ => return None,
                    }
                }
                LabelledNode { node, .. } if is_dedup(node) => is_distinct = true,
                LabelledNode { node: Node::Aggregate { key, by: By::Identity }, .. } => break key,
                _ => return None,
            }
        };
        if !is_distinct || without != Some(key) {
            return None;
        }
        let sack = match rest.next().map(|own| &own.node) {
            None => None,
            Some(Node::SackWith { operator, by: By::Traversal(by) }) => Some((*operator, change(*operator, by)?)),
            Some(_) => return None,
        };
        rest.next().is_none().then(|| Body { hop, key: key.clone(), sack })
    }
}

/// What a sack is changed by in every hop, if that cannot fail.
fn change(operator: Operator, by: &Traversal) -> Option<Value> {
    let never_fails =
        matches!(operator, Operator::Sum | Operator::Minus | Operator::Mult | Operator::Min | Operator::Max);
    match by.nodes.as_slice() {
        [LabelledNode { node: Node::Constant { value }, labels }] if labels.is_empty() => {
            (never_fails && is_number(value)).then(|| value.clone())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use ficus_model::Direction;

    use super::*;
    use crate::logical::{OfEqual, Reach, SourceOptions};

    fn plan(loops: usize) -> LogicalPlan {
        let gathers = || LabelledNode::from(Node::Aggregate { key: "x".into(), by: By::Identity });
        let without = WherePredicate::Without(vec!["x".into()]);
        let body = vec![
            Node::Adjacent { direction: Direction::Both, labels: Vec::new(), reach: Reach::Vertex }.into(),
            Node::WherePredicate { start: None, predicate: without, bys: Vec::new() }.into(),
            Node::Dedup { labels: Vec::new(), by: None }.into(),
            gathers(),
        ];
        let own = Node::Repeat(Repeat {
            body: Arc::new(Traversal { nodes: body }),
            until: None,
            until_first: false,
            emit: Some(Arc::default()),
            emit_first: false,
            name: None,
            distinct: OfEqual::All,
        });
        let nodes = (0..loops).flat_map(|_| [gathers(), own.clone().into()]).collect();
        LogicalPlan { source: SourceOptions::default(), root: Traversal { nodes } }
    }

    #[test]
    fn of_several_loops_one_is_looked_at() {
        assert!(replace(&mut plan(1)));
        // With a copy of the plan for each it would take minutes.
        assert!(!replace(&mut plan(50_000)));
    }
}
