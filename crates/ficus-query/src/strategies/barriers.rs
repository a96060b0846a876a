//! Where TinkerPop makes one row of equal ones, for queries that draw random numbers from a seed, since how many rows come to a step that draws, and in
//! what order, follows from it; and for queries that find or create elements, since steps behind see what all rows of a barrier did. `LazyBarrierStrategy` puts barriers behind hops, `PathRetractionStrategy` behind steps that take labels away, and
//! `RepeatUnrollStrategy` between the hops that a `repeat()` of nothing else stands for; and what `order()` and `sample()` gather, they gather as a set.

use std::collections::BTreeMap;
use std::sync::Arc;

use ficus_model::Scope;

use super::lines::is_inlined;
use super::retraction::Kept;
use super::{Change, is_on};
use crate::logical::visit::{self, PathNeed};
use crate::logical::{LabelledNode, LogicalPlan, Node, Reach, Repeat, Traversal};

/// Different rows that a barrier gathers before it lets them go.
const BARRIER_SIZE: i64 = 2500;

/// From so many ids on, a look-up of them counts as a hop.
const MANY_IDS: usize = 5;

/// Steps that a `repeat()` may become.
const UNROLLED_MAX: usize = 256;

fn barrier() -> Node {
    Node::Barrier { size: Some(BARRIER_SIZE), norm_sack: false }
}

/// Leaves `identity()` out, and makes filters by filters alone steps of the line that they are in, as `IdentityRemovalStrategy` and
/// `InlineFilterStrategy` do: a barrier is behind what is last there, and `where(coin(0.5))` draws for each row that one stands for.
pub fn straighten(plan: &mut LogicalPlan) {
    let (drops, inlines) = (is_on(plan, "IdentityRemovalStrategy"), is_on(plan, "InlineFilterStrategy"));
    visit::rewrite(&mut plan.root, &mut |traversal| {
        let is_empty = traversal.nodes.is_empty();
        for mut own in std::mem::take(&mut traversal.nodes) {
            let children = visit::children(&own.node);
            if inlines && is_inlined(&own.node, &children) {
                let inner = children.into_iter().flat_map(|child| child.nodes.clone());
                traversal.nodes.extend(inner.collect::<Vec<_>>());
                if let Some(last) = traversal.nodes.last_mut() {
                    last.labels.append(&mut own.labels);
                }
            } else if !(drops && own.node == Node::Identity && own.labels.is_empty()) {
                traversal.nodes.push(own);
            }
        }
        if traversal.nodes.is_empty() && !is_empty {
            traversal.nodes.push(Node::Identity.into());
        }
    });
}

/// Replaces each `repeat(…).times(n)` of hops and conditions by what it repeats.
pub fn unroll_repeats(plan: &mut LogicalPlan) {
    if !is_on(plan, "RepeatUnrollStrategy") {
        return;
    }
    let with_barriers = is_on(plan, "LazyBarrierStrategy");
    visit::rewrite(&mut plan.root, &mut |traversal| {
        let mut nodes = std::mem::take(&mut traversal.nodes).into_iter().peekable();
        while let Some(own) = nodes.next() {
            let unrolled = match &own.node {
                Node::Repeat(repeat) => times(repeat).map(|times| (repeat.body.clone(), times)),
                _ => None,
            };
            let Some((body, times)) = unrolled else {
                traversal.nodes.push(own);
                continue;
            };
            let ends_in_barrier = matches!(body.nodes.last(), Some(LabelledNode { node: Node::Barrier { .. }, .. }));
            for left in (0..times).rev() {
                traversal.nodes.extend(body.nodes.iter().cloned());
                let is_followed = nodes.peek().is_some_and(|next| gathers(&next.node));
                if with_barriers && !ends_in_barrier && (left > 0 || !is_followed) {
                    traversal.nodes.push(barrier().into());
                }
            }
            if let Some(last) = traversal.nodes.last_mut() {
                last.labels.extend(own.labels);
            }
        }
    });
}

/// How often a `repeat()` repeats that can be replaced.
fn times(repeat: &Repeat) -> Option<usize> {
    let is_plain = |node: &Node| {
        matches!(node, Node::Adjacent { .. } | Node::EdgeVertex { .. } | Node::OtherVertex | Node::Has { .. })
            // Of a loop inside that was replaced.
            || matches!(node, Node::Barrier { .. })
    };
    let until = repeat.until.as_ref().filter(|_| repeat.emit.is_none())?;
    let [LabelledNode { node: Node::LoopsAtLeast { times }, .. }] = until.nodes.as_slice() else { return None };
    let times = usize::try_from(*times).ok().filter(|times| *times > 0)?;
    let is_short = times.saturating_mul(repeat.body.nodes.len() + 1) <= UNROLLED_MAX;
    let is_open = !repeat.body.nodes.is_empty() && repeat.body.nodes.iter().all(|own| is_plain(&own.node));
    (is_short && is_open).then_some(times)
}

/// Whether a step is a barrier in TinkerPop.
fn gathers(node: &Node) -> bool {
    visit::is_barrier(node) || matches!(node, Node::Dedup { .. } | Node::Range { .. })
}

/// Which barriers somebody can tell from none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// All.
    All,
    /// Those behind `mergeV()` and `mergeE()`, and behind steps with these inside: all rows of a barrier have found or made their element, and changed
    /// it, before the steps behind look at the first one. Hops write nothing that a step behind them could see.
    BehindMerges,
}

/// Whether a node finds or creates an element.
pub fn merges(node: &Node) -> bool {
    matches!(node, Node::MergeVertex { .. } | Node::MergeEdge { .. })
}

/// Adds the barriers of a plan to what is changed in it.
pub fn of(plan: &LogicalPlan, kept: Option<&Kept>, wanted: Wanted, changes: &mut BTreeMap<usize, Change>) {
    let is_lazy = is_on(plan, "LazyBarrierStrategy");
    let mut barriers = Barriers { kept, is_lazy, wanted, changes, number: 0 };
    barriers.of_traversal(&plan.root, false, false);
}

struct Barriers<'p> {
    kept: Option<&'p Kept>,
    is_lazy: bool,
    wanted: Wanted,
    changes: &'p mut BTreeMap<usize, Change>,
    /// Of the next node.
    number: usize,
}

impl Barriers<'_> {
    /// `has_end`: behind the last step is another one, which hands rows to what is around it.
    fn of_traversal(&mut self, traversal: &Traversal, has_end: bool, in_match: bool) {
        let no_barriers = |node: &Node| matches!(node, Node::Drop | Node::Element);
        let is_lazy = self.is_lazy
            && visit::path_need(traversal) != PathNeed::Full
            && !traversal.nodes.iter().any(|own| no_barriers(&own.node));
        let (mut has_hopped, mut is_labelled) = (false, false);
        for (position, own) in traversal.nodes.iter().enumerate() {
            let (number, next) = (self.number, traversal.nodes.get(position + 1).map(|next| &next.node));
            self.number += 1;
            let is_wanted = self.wanted == Wanted::All || merges_inside(&own.node);
            let may_follow = next.map_or(has_end, |next| !gathers(next) && !matches!(next, Node::Discard));
            if is_wanted && matches!(own.node, Node::Order { scope: Scope::Global, .. } | Node::Sample { .. }) {
                let front = Node::Barrier { size: None, norm_sack: false };
                self.changes.entry(number).or_default().front.push(front);
            }
            let takes_labels = self.kept.and_then(|kept| kept.is_nothing(number));
            if takes_labels == Some(true) {
                is_labelled = false;
            }
            if takes_labels.is_some() && self.is_lazy && may_follow && !in_match && !gathers(&own.node) {
                if is_wanted {
                    self.changes.entry(number).or_default().behind.push(barrier().into());
                }
                // The labels of the step are given in front of it.
                is_labelled |= !own.labels.is_empty();
            } else if is_lazy && is_hop(&own.node, position, next) && has_hopped && !is_labelled && may_follow {
                if is_wanted {
                    let change = self.changes.entry(number).or_default();
                    change.behind.push(LabelledNode { node: barrier(), labels: own.labels.clone() });
                    change.moves_labels = true;
                }
            } else {
                has_hopped |= is_hop(&own.node, position, next);
            }
            is_labelled |= !own.labels.is_empty();
            self.of_children(&own.node);
        }
    }

    fn of_children(&mut self, node: &Node) {
        let in_match = matches!(node, Node::Match { .. });
        let choice = match node {
            Node::Choose { choice, .. } => Some(choice),
            _ => None,
        };
        for child in visit::children(node) {
            let has_end = match node {
                Node::Repeat(repeat) => Arc::ptr_eq(child, &repeat.body),
                Node::Choose { .. } => choice.is_none_or(|choice| !Arc::ptr_eq(child, choice)),
                Node::Union { .. } | Node::Match { .. } => true,
                _ => false,
            };
            self.of_traversal(child, has_end, in_match);
        }
    }
}

/// Whether a node, or one inside it, finds or creates an element.
fn merges_inside(node: &Node) -> bool {
    merges(node) || visit::any_child(node, &mut |child| visit::any(child, &mut merges))
}

/// Whether a step makes many rows of one.
fn is_hop(node: &Node, position: usize, next: Option<&Node>) -> bool {
    match node {
        Node::Adjacent { reach, .. } => *reach == Reach::Vertex,
        Node::EdgeVertex { .. }
        | Node::Properties { .. }
        | Node::Unfold
        | Node::FlatMap { .. }
        | Node::Coalesce { .. }
        | Node::MergeVertex { .. }
        | Node::MergeEdge { .. } => true,
        Node::Vertices { ids, all } | Node::Edges { ids, all } => {
            position > 0 || ids.len() >= MANY_IDS || *all && !matches!(next, Some(Node::Has { .. }))
        }
        _ => false,
    }
}
