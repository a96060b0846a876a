//! Merging equal traversers while they are on their way, so that the work of a traversal grows with the vertices it reaches
//! and not with the walks that reach them.
//!
//! Two traversers are equal if they are at the same object; that is of use only where the plan keeps no paths, has no
//! effects that count rows one by one, and can merge sacks. A barrier does it. Where the query wants few rows early (a
//! `limit` before the next barrier), rows are let through instead.

use std::sync::Arc;

use crate::logical::visit::{self, PathNeed};
use crate::logical::{LabelledNode, LogicalPlan, Node, OfEqual, Traversal};
use crate::options::{ScopePolicy, ScopeSetting, scope_settings};
use crate::physical::Requirements;
use crate::rules::match_line::filters;

/// Different traversers that a barrier between hops gathers before it lets them go, some megabytes. With fewer, as the 2,500 of TinkerPop, a walk that
/// comes to ten thousand vertices again and again meets hardly any of them twice before they go.
const BETWEEN_HOPS: i64 = 1 << 15;

/// Rows that a limit lets through at most if it counts as one: whoever asks for more waits for many walks, and has them sooner if those to one vertex are
/// one.
const FEW: i64 = 1 << 16;

/// Whether of equal rows of a plan with these requirements one may go on that counts as often, wherever that is.
pub fn may_merge(plan: &LogicalPlan, requirements: &Requirements) -> bool {
    let sacks_merge = plan.source.sack.as_ref().is_none_or(|sack| sack.merge.is_some());
    // With sack merging the place of a barrier is part of the meaning.
    let sacks = plan.source.sack.is_some();
    requirements.paths != PathNeed::Full
        && !requirements.row_by_row
        && sacks_merge
        && !sacks
        && !plan.source.without_bulk
        && !loses_bulk(plan)
}

/// Whether a sub-query that takes a bulk as one keeps one of equal rows: what comes of merged rows is less then.
fn loses_bulk(plan: &LogicalPlan) -> bool {
    let keeps_one = &mut |node: &Node| matches!(node, Node::Dedup { .. });
    visit::any(&plan.root, &mut |node| {
        matches!(node, Node::Optional { .. } | Node::Match { .. })
            && visit::any_child(node, &mut |child| visit::any(child, keeps_one))
    })
}

/// For each node, whether the rows after it are cut off before something gathers them all.
pub(super) fn want_rows_early(nodes: &[LabelledNode]) -> Vec<bool> {
    want_early_before(nodes, false)
}

/// As [`want_rows_early`]; `wanted`: whether those that come out at the end are.
fn want_early_before(nodes: &[LabelledNode], mut wanted: bool) -> Vec<bool> {
    let mut want = vec![false; nodes.len()];
    for (own, want) in nodes.iter().zip(&mut want).rev() {
        *want = wanted;
        wanted = match own.node {
            Node::Range { high, .. } => (0..=FEW).contains(&high),
            _ => wanted && !visit::is_barrier(&own.node),
        };
    }
    want
}

fn expands(node: &Node) -> bool {
    matches!(node, Node::Adjacent { .. } | Node::EdgeVertex { .. })
}

/// Whether a node yields several rows for one that are at other objects.
fn spreads(node: &Node) -> bool {
    match node {
        Node::Union { branches, start: false } => {
            branches.iter().any(|branch| branch.nodes.iter().any(|own| spreads(&own.node)))
        }
        node => expands(node),
    }
}

/// Ends the body of each outermost `repeat` with a barrier, of the query and of sub-queries that have their rows for themselves, except where the
/// query wants it to go to the ends of its walks first.
pub fn in_loops(plan: &mut LogicalPlan) -> bool {
    if !may_merge(plan, &Requirements::of(plan)) {
        return false;
    }
    let settings = scope_settings(&plan.source);
    in_loops_of(&mut plan.root.nodes, false, &settings)
}

/// In those of a line of steps; `wanted`: whether the rows at its end are cut off before something gathers them.
fn in_loops_of(nodes: &mut [LabelledNode], wanted: bool, settings: &[ScopeSetting]) -> bool {
    let mut changed = false;
    let want_early = want_early_before(nodes, wanted);
    for (own, want_early) in nodes.iter_mut().zip(want_early) {
        let labels = &own.labels;
        let goes_deep =
            settings.iter().any(|setting| setting.policy == Some(ScopePolicy::Dfs) && labels.contains(&setting.label));
        match &mut own.node {
            Node::Repeat(repeat)
                if !want_early
                    && !goes_deep
                    && repeat.distinct == OfEqual::All
                    && repeat.body.nodes.iter().any(|own| spreads(&own.node))
                    && !repeat.body.nodes.iter().any(|own| visit::is_barrier(&own.node)) =>
            {
                let barrier = Node::Barrier { size: None, norm_sack: false };
                Arc::make_mut(&mut repeat.body).nodes.push(barrier.into());
                changed = true;
            }
            // Not those in bodies of loops and arms of unions: what gathers rows in these decides in which order they come.
            Node::FlatMap { traversal } | Node::Local { traversal } | Node::Optional { traversal } => {
                changed |= in_sub_query(traversal, want_early, settings);
            }
            Node::Coalesce { branches } => {
                for branch in branches {
                    changed |= in_sub_query(branch, want_early, settings);
                }
            }
            _ => {}
        }
    }
    changed
}

fn in_sub_query(traversal: &mut Arc<Traversal>, wanted: bool, settings: &[ScopeSetting]) -> bool {
    // Most have none, and are not copied.
    visit::any(traversal, &mut |node| matches!(node, Node::Repeat(_)))
        && in_loops_of(&mut Arc::make_mut(traversal).nodes, wanted, settings)
}

/// Puts a barrier before each hop that follows another.
pub fn between_hops(plan: &mut LogicalPlan) -> bool {
    let requirements = Requirements::of(plan);
    if !may_merge(plan, &requirements) {
        return false;
    }
    let want_early = want_rows_early(&plan.root.nodes);
    let keeps_labels = requirements.paths == PathNeed::Labels;
    let written = std::mem::take(&mut plan.root.nodes);
    let count = written.len();
    let mut hopped = false;
    let mut differ = Differ::default();
    // A hop is no barrier and cuts nothing off, so what is wanted before it is what is wanted behind it.
    for (own, want_early) in written.into_iter().zip(want_early) {
        if expands(&own.node) {
            let leaves_edge = matches!(own.node, Node::EdgeVertex { .. });
            if hopped && !leaves_edge && !want_early && !differ.all {
                let barrier = Node::Barrier { size: Some(BETWEEN_HOPS), norm_sack: false };
                plan.root.nodes.push(barrier.into());
                differ.all = true;
            }
            hopped = true;
        } else if !filters(&own.node) && !matches!(own.node, Node::Aggregate { .. }) {
            hopped = false;
        }
        differ.behind(&own, keeps_labels);
        plan.root.nodes.push(own);
    }
    plan.root.nodes.len() > count
}

/// Whether no two rows are at the same vertex with the same vertices under their labels, but for several edges between two vertices.
#[derive(Default)]
struct Differ {
    all: bool,
    /// The vertex that rows are at is under a label.
    is_labelled: bool,
    is_begun: bool,
}

impl Differ {
    fn behind(&mut self, own: &LabelledNode, keeps_labels: bool) {
        let stays = match &own.node {
            Node::Vertices { all: true, .. } => {
                self.all = !self.is_begun;
                false
            }
            // Rows that come of different rows differ by where these were, if that is known.
            Node::Adjacent { .. } => {
                self.all &= self.is_labelled;
                false
            }
            Node::Barrier { .. } => {
                self.all = true;
                true
            }
            Node::Identity | Node::AdjacentFrom { .. } | Node::Dedup { .. } | Node::Aggregate { .. } => true,
            node if filters(node) => true,
            _ => {
                self.all = false;
                false
            }
        };
        self.is_begun = true;
        self.is_labelled = self.is_labelled && stays || keeps_labels && !own.labels.is_empty();
    }
}

#[cfg(test)]
mod tests {
    use ficus_model::Direction;

    use super::*;
    use crate::logical::{Reach, Reduction};

    /// With this many steps, a look at all of them for each takes minutes.
    const MANY: usize = 500_000;

    fn plan_of(nodes: impl Iterator<Item = Node>) -> LogicalPlan {
        let mut plan = LogicalPlan::default();
        plan.root.nodes = nodes.map(LabelledNode::from).collect();
        plan
    }

    fn out() -> Node {
        Node::Adjacent { direction: Direction::Out, labels: Vec::new(), reach: Reach::Vertex }
    }

    #[test]
    fn what_is_wanted_early_is_known_for_all_nodes() {
        let range = || Node::Range { low: 0, high: 1 };
        let count = || Node::Reduce { reduction: Reduction::Count };
        let plan = plan_of([out(), range(), out(), count(), out(), range(), out()].into_iter());
        assert_eq!(want_rows_early(&plan.root.nodes), [true, false, false, true, true, false, false]);
    }

    #[test]
    fn rows_that_differ_are_not_merged() {
        let labelled = |node: Node, label: &str| LabelledNode { node, labels: vec![label.into()] };
        let all = || Node::Vertices { ids: Vec::new(), all: true };
        let select = || LabelledNode::from(Node::Select { pop: None, labels: vec!["a".into()], bys: Vec::new() });
        let barriers = |nodes: Vec<LabelledNode>| {
            let mut plan = LogicalPlan::default();
            plan.root.nodes = nodes;
            between_hops(&mut plan);
            let is_barrier = |own: &LabelledNode| matches!(own.node, Node::Barrier { .. });
            plan.root
                .nodes
                .iter()
                .enumerate()
                .filter(|(_, own)| is_barrier(own))
                .map(|(place, _)| place)
                .collect::<Vec<_>>()
        };
        // From a there is one row to each neighbour; where that was is forgotten behind the next hop.
        assert_eq!(barriers(vec![labelled(all(), "a"), out().into(), out().into(), out().into(), select()]), [3]);
        let told = |hops: usize| {
            let hops = (0..hops).map(|_| out().into());
            [labelled(all(), "a"), labelled(out(), "b")].into_iter().chain(hops).chain([select()]).collect()
        };
        assert!(barriers(told(2)).is_empty());
        assert_eq!(barriers(told(3)), [4]);
        // Nobody reads the label.
        assert_eq!(barriers(vec![labelled(all(), "a"), out().into(), out().into()]), [2]);
        assert_eq!(barriers(vec![all().into(), out().into(), out().into()]), [2]);
        // All ways to a are there as rows of their own.
        assert_eq!(barriers(vec![all().into(), labelled(out(), "a"), out().into(), out().into(), select()]), [2]);
    }

    #[test]
    fn long_lines_of_steps_are_looked_at_once() {
        let mut plan = plan_of(std::iter::repeat_with(|| Node::Identity).take(MANY));
        assert!(!in_loops(&mut plan) && !between_hops(&mut plan));
        let mut plan = plan_of(std::iter::repeat_with(out).take(MANY));
        assert!(between_hops(&mut plan));
        assert_eq!(plan.root.nodes.len(), 2 * MANY - 1);
    }
}
