//! What a `union()` counts and adds up of all elements, it does in scans: `V().union(count(), values(key).max())` is the union of `V().count()` and
//! `V().values(key).max()`, each of which looks at a column, or at a counter, where a row would have to be made of each element for all of them.

use std::sync::Arc;

use crate::logical::visit::PathNeed;
use crate::logical::{LabelledNode, LogicalPlan, Node, Traversal};
use crate::options::scope_settings;
use crate::physical::{Requirements, fold_behind};

/// Arms of which each has a scan for itself: with more, rows are made sooner.
const ARMS_MAX: usize = 16;

/// Has each arm of a union behind a scan scan for itself.
pub fn of_unions(plan: &mut LogicalPlan) -> bool {
    let nodes = &plan.root.nodes;
    let Some((Node::Vertices { all: true, .. } | Node::Edges { all: true, .. }, rest)) =
        nodes.split_first().map(|(scan, rest)| (&scan.node, rest))
    else {
        return false;
    };
    let is_condition = |own: &&LabelledNode| matches!(own.node, Node::Has { .. } | Node::HasProperty { .. });
    let place = 1 + rest.iter().take_while(is_condition).count();
    let is_labelled = nodes[..place].iter().any(|own| !own.labels.is_empty());
    let Some(Node::Union { branches, start: false }) = nodes.get(place).map(|own| &own.node) else { return false };
    let folds = |branch: &Arc<Traversal>| fold_behind(&branch.nodes, PathNeed::None).is_some();
    if is_labelled || branches.len() > ARMS_MAX || !branches.iter().all(folds) {
        return false;
    }
    let requirements = Requirements::of(plan);
    if requirements.writes
        || requirements.row_by_row
        || requirements.paths != PathNeed::None
        || !scope_settings(&plan.source).is_empty()
    {
        return false;
    }
    let scan = &nodes[..place];
    let arm = |branch: &Arc<Traversal>| Arc::new(Traversal { nodes: [scan, &branch.nodes].concat() });
    let branches = branches.iter().map(arm).collect();
    plan.root.nodes[place].node = Node::Union { branches, start: true };
    plan.root.nodes.drain(..place);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logical::{PropertyForm, Reduction};

    fn reduce(reduction: Reduction) -> LabelledNode {
        Node::Reduce { reduction }.into()
    }

    fn all() -> LabelledNode {
        Node::Vertices { ids: Vec::new(), all: true }.into()
    }

    fn has() -> LabelledNode {
        Node::HasProperty { key: "x".into(), negated: false }.into()
    }

    fn values() -> LabelledNode {
        Node::Properties { keys: vec!["x".into()], form: PropertyForm::Value }.into()
    }

    fn union(start: bool, arms: Vec<Vec<LabelledNode>>) -> LabelledNode {
        let branches = arms.into_iter().map(|nodes| Arc::new(Traversal { nodes })).collect();
        Node::Union { branches, start }.into()
    }

    fn rewritten(nodes: Vec<LabelledNode>) -> Option<Vec<LabelledNode>> {
        let mut plan = LogicalPlan::default();
        plan.root.nodes = nodes;
        of_unions(&mut plan).then_some(plan.root.nodes)
    }

    #[test]
    fn each_arm_scans_for_itself() {
        let (count, max) = (|| reduce(Reduction::Count), || reduce(Reduction::Max));
        let fold = || LabelledNode::from(Node::Fold { seed: None });
        assert_eq!(
            rewritten(vec![all(), has(), union(false, vec![vec![count()], vec![values(), max()]]), fold()]),
            Some(vec![union(true, vec![vec![all(), has(), count()], vec![all(), has(), values(), max()]]), fold()])
        );
        // One arm that wants all elements has rows made of them anyway.
        assert_eq!(rewritten(vec![all(), union(false, vec![vec![count()], vec![values()]])]), None);
        assert_eq!(rewritten(vec![all(), Node::Id.into(), union(false, vec![vec![count()]])]), None);
    }
}
