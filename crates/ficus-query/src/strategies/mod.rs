//! What strategies of TinkerPop do to answers, beside making them faster. Where rows lose labels, and with a seed where equal rows are made one, is for
//! most queries nobody's business, and so is where rows wait for each other unless they find and change elements; for those that can tell, the plan is
//! changed before any rule looks at it.

mod barriers;
mod lines;
mod retraction;

use std::collections::BTreeMap;
use std::sync::Arc;

use barriers::Wanted;

use crate::logical::{LabelledNode, LogicalPlan, Node, Strategy, Traversal, visit};
use crate::physical::requirements::draws_from_seed;

/// What is put around a node.
#[derive(Default)]
struct Change {
    front: Vec<Node>,
    behind: Vec<LabelledNode>,
    /// The labels of the node are given behind it.
    moves_labels: bool,
}

/// Works them into a plan.
pub fn apply(plan: &mut LogicalPlan) {
    let (draws, merges) = (draws_from_seed(plan), visit::any(&plan.root, &mut barriers::merges));
    if !draws && !merges && !retraction::may_matter(plan) {
        return;
    }
    if draws {
        barriers::straighten(plan);
        barriers::unroll_repeats(plan);
    }
    let kept = retraction::labels_kept(plan);
    let mut changes: BTreeMap<usize, Change> = BTreeMap::new();
    for (number, loss) in kept.iter().flat_map(|kept| kept.losses(&retraction::given(&plan.root))) {
        changes.entry(number).or_default().behind.push(loss.into());
    }
    if draws || merges {
        let wanted = if draws { Wanted::All } else { Wanted::BehindMerges };
        barriers::of(plan, kept.as_ref(), wanted, &mut changes);
    }
    if !changes.is_empty() {
        change(&mut plan.root, &mut changes, &mut 0);
    }
}

/// Whether a query leaves a strategy of TinkerPop on.
fn is_on(plan: &LogicalPlan, name: &str) -> bool {
    !plan.source.strategies.iter().any(|strategy| matches!(strategy, Strategy::Without(own) if &**own == name))
}

/// Makes the changes to nodes, which are numbered as [`visit::walk`] shows them.
fn change(traversal: &mut Traversal, changes: &mut BTreeMap<usize, Change>, number: &mut usize) {
    for mut own in std::mem::take(&mut traversal.nodes) {
        let Change { front, behind, moves_labels } = changes.remove(number).unwrap_or_default();
        *number += 1;
        visit::for_each_child_mut(&mut own.node, &mut |child| change(Arc::make_mut(child), changes, number));
        traversal.nodes.extend(front.into_iter().map(LabelledNode::from));
        let given = own.labels.clone();
        if moves_labels {
            own.labels.clear();
        }
        traversal.nodes.push(own);
        for mut new in behind {
            // What it labels itself a step never loses.
            if matches!(new.node, Node::KeepLabels { .. }) {
                new.labels.clone_from(&given);
            }
            traversal.nodes.push(new);
        }
    }
}
