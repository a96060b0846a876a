//! `limit()`, `range()`, `skip()` and `tail()` in front of steps that make one row of each: what is cut off is never made, and an `order()` in front of
//! them knows how many rows are wanted.
//!
//! `values(key)` makes none of an element without the key. Behind `order()` elements that have it are asked for first; as many of these as rows are
//! wanted are enough then, since each makes one row at least.

use std::collections::HashSet;

use ficus_model::{Pop, Scope, T};

use crate::logical::visit;
use crate::logical::{By, LabelledNode, LogicalPlan, Name, Node, PropertyForm, Reach, Reduction, Traversal};
use crate::physical::Requirements;
use crate::rules::unread::{keeps_elements, leads_to_elements};

/// Has rows cut off as early as they can be.
pub fn cut_early(plan: &mut LogicalPlan) -> bool {
    if !visit::any(&plan.root, &mut cuts) {
        return false;
    }
    // Who adds to something for each row, or removes what others read, is asked as often as it is written.
    let requirements = Requirements::of(plan);
    if requirements.writes || requirements.row_by_row || visit::any(&plan.root, &mut visit::has_side_effect) {
        return false;
    }
    let mut changed = false;
    visit::rewrite(&mut plan.root, &mut |traversal| {
        if traversal.nodes.iter().any(|own| cuts(&own.node)) {
            changed |= cut_early_in(traversal);
        }
    });
    changed
}

fn cuts(node: &Node) -> bool {
    matches!(node, Node::Range { .. } | Node::Tail { .. })
}

fn cut_early_in(traversal: &mut Traversal) -> bool {
    let written = std::mem::take(&mut traversal.nodes);
    let nodes = &mut traversal.nodes;
    // The last steps, each of which makes one row of each.
    let mut makers: Vec<LabelledNode> = Vec::new();
    let mut may_fail = false;
    let mut rows = Rows::default();
    let mut changed = false;
    for own in written {
        // All rows come to `tail()`, and those that `skip()` leaves out come to it: what fails for one of them fails.
        let is_first = matches!(own.node, Node::Range { low: ..=0, .. });
        let moves = own.labels.is_empty() && (is_first || !may_fail);
        if !makers.is_empty() && cuts(&own.node) && moves {
            nodes.push(own);
            rows.order = None;
            changed = true;
        } else if rows.makes_one(&own.node) {
            may_fail |= rows.may_fail(&own.node);
            rows.bound.extend(own.labels.iter().cloned());
            rows.at = None;
            makers.push(own);
        } else {
            nodes.append(&mut makers);
            may_fail = false;
            if let Node::Range { high: high @ 1.., .. } = own.node
                && let Some(key) = rows.valued(nodes)
            {
                let values = nodes.len() - 1;
                nodes.insert(values, Node::Range { low: 0, high }.into());
                nodes.insert(values - 1, Node::HasProperty { key, negated: false }.into());
                changed = true;
            }
            rows.behind(&own, nodes.len());
            nodes.push(own);
        }
    }
    nodes.append(&mut makers);
    changed
}

/// What elements are, as far as is known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Vertex,
    Edge,
    Either,
}

/// What rows are at behind a node, if these are elements.
fn behind(node: &Node, at: Option<Kind>) -> Option<Kind> {
    match node {
        Node::Vertices { .. } | Node::Adjacent { reach: Reach::Vertex, .. } => Some(Kind::Vertex),
        Node::Edges { .. } | Node::Adjacent { reach: Reach::Edge, .. } => Some(Kind::Edge),
        Node::EdgeVertex { .. } | Node::OtherVertex => Some(Kind::Vertex),
        _ if leads_to_elements(node) => Some(Kind::Either),
        _ => at.filter(|_| keeps_elements(node)),
    }
}

/// Whether a sub-query cannot fail, whatever the elements at which it begins hold. Of others it is not known.
fn cannot_fail(traversal: &Traversal, mut at: Option<Kind>) -> bool {
    traversal.nodes.iter().all(|own| {
        let is_safe = match &own.node {
            Node::Adjacent { .. } => at == Some(Kind::Vertex),
            Node::EdgeVertex { .. } => at == Some(Kind::Edge),
            Node::Properties { .. } | Node::Id | Node::Label | Node::Has { .. } | Node::HasProperty { .. } => {
                at.is_some()
            }
            Node::Dedup { labels, by } => labels.is_empty() && by.is_none(),
            Node::Reduce { reduction } => *reduction == Reduction::Count,
            Node::Fold { seed: None } | Node::Range { .. } | Node::Tail { .. } => true,
            Node::Identity | Node::Constant { .. } => true,
            _ => false,
        };
        at = behind(&own.node, at);
        is_safe
    })
}

/// What is known of the rows at a place of a line of steps.
#[derive(Default)]
struct Rows {
    /// The elements that they are at, if they are.
    at: Option<Kind>,
    /// Labels that all of them have.
    bound: HashSet<Name>,
    /// The place of the last `order()` of elements, if nothing has cut off its rows.
    order: Option<usize>,
}

impl Rows {
    /// The key of which the last node, right behind an `order()` of elements, makes rows.
    fn valued(&self, nodes: &[LabelledNode]) -> Option<Name> {
        let order = self.order.filter(|order| order + 2 == nodes.len())?;
        let Node::Properties { keys, form: PropertyForm::Value | PropertyForm::Property } = &nodes[order + 1].node
        else {
            return None;
        };
        match keys.as_slice() {
            [key] => Some(key.clone()),
            _ => None,
        }
    }

    fn behind(&mut self, own: &LabelledNode, place: usize) {
        if matches!(own.node, Node::Order { scope: Scope::Global, .. }) {
            self.order = self.at.map(|_| place);
        }
        self.at = behind(&own.node, self.at);
        // Others make one row of all, or rows of nothing, which have come no way.
        if self.at.is_none() && !keeps_elements(&own.node) && !matches!(own.node, Node::Properties { .. }) {
            self.bound.clear();
        }
        self.bound.extend(own.labels.iter().cloned());
    }

    /// Whether a node that makes one row of each may fail for some of them: it has a sub-query that may, or needs elements that these may not be.
    fn may_fail(&self, node: &Node) -> bool {
        let fails = |by: &By| matches!(by, By::Traversal(traversal) if !cannot_fail(traversal, self.at));
        match node {
            Node::Constant { .. } => false,
            Node::Path { bys, .. } | Node::Select { bys, .. } => bys.iter().any(|by| *by != By::Identity),
            Node::Project { bys, .. } => self.at.is_none() || bys.iter().any(fails),
            _ => self.at.is_none() || !visit::is_leaf(node),
        }
    }

    /// Whether a node makes one row of each that comes here, and does nothing else.
    fn makes_one(&self, node: &Node) -> bool {
        // Others may find nothing, and let no row through.
        let finds = |by: &By| matches!(by, By::Identity | By::Token(T::Id | T::Label));
        match node {
            Node::Id | Node::Label | Node::Constant { .. } | Node::ElementMap { filter: None, .. } => true,
            Node::PropertyMap { filter: None, .. } | Node::Project { .. } => true,
            Node::Path { bys, .. } => bys.iter().all(finds),
            Node::Select { pop: None | Some(Pop::First | Pop::Last), labels, bys } => {
                labels.iter().all(|label| self.bound.contains(label)) && bys.iter().all(finds)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use ficus_model::Order;

    use super::*;
    use crate::logical::SortKey;

    /// With a look at all steps for each this takes minutes.
    const MANY: usize = 200_000;

    fn all() -> LabelledNode {
        Node::Vertices { ids: Vec::new(), all: true }.into()
    }

    fn order() -> LabelledNode {
        let key = SortKey { by: By::Key("k".into()), order: Order::Asc };
        Node::Order { scope: Scope::Global, keys: vec![key] }.into()
    }

    fn range(low: i64, high: i64) -> LabelledNode {
        Node::Range { low, high }.into()
    }

    fn values(keys: &[&str]) -> LabelledNode {
        let keys = keys.iter().map(|key| Name::from(*key)).collect();
        Node::Properties { keys, form: PropertyForm::Value }.into()
    }

    fn select(label: &str) -> LabelledNode {
        Node::Select { pop: None, labels: vec![label.into()], bys: Vec::new() }.into()
    }

    fn rewritten(nodes: Vec<LabelledNode>) -> Option<Vec<LabelledNode>> {
        let mut plan = LogicalPlan::default();
        plan.root.nodes = nodes;
        cut_early(&mut plan).then_some(plan.root.nodes)
    }

    #[test]
    fn rows_are_cut_off_before_they_are_made() {
        let id = || LabelledNode::from(Node::Id);
        let tail = || LabelledNode::from(Node::Tail { count: 2 });
        assert_eq!(rewritten(vec![all(), order(), id(), range(1, 4)]), Some(vec![all(), order(), range(1, 4), id()]));
        let constant = || LabelledNode::from(Node::Constant { value: 1.into() });
        assert_eq!(
            rewritten(vec![all(), order(), id(), constant(), range(1, 4), tail()]),
            Some(vec![all(), order(), range(1, 4), tail(), id(), constant()])
        );
        // What is no element has no id, also in front of the last rows.
        assert_eq!(rewritten(vec![all(), order(), constant(), id(), tail()]), None);
        let asking = |nodes: Vec<LabelledNode>| {
            let by = By::Traversal(std::sync::Arc::new(Traversal { nodes }));
            LabelledNode::from(Node::Project { keys: vec!["a".into()], bys: vec![by] })
        };
        let asks = || asking(vec![Node::Fold { seed: None }.into(), id()]);
        assert_eq!(rewritten(vec![all(), asks(), range(0, 1)]), Some(vec![all(), range(0, 1), asks()]));
        for others in [tail(), range(2, -1), range(1, 2)] {
            assert_eq!(rewritten(vec![all(), asks(), others.clone()]), None);
            // Nor is there one of what was injected.
            assert_eq!(rewritten(vec![constant(), id(), others.clone()]), None);
            let hop =
                || Node::Adjacent { direction: ficus_model::Direction::Out, labels: Vec::new(), reach: Reach::Vertex };
            let counts = || asking(vec![hop().into(), Node::Reduce { reduction: Reduction::Count }.into()]);
            assert_eq!(rewritten(vec![all(), counts(), others.clone()]), Some(vec![all(), others.clone(), counts()]));
            // No edge has edges.
            let edges = || LabelledNode::from(Node::Edges { ids: Vec::new(), all: true });
            assert_eq!(rewritten(vec![edges(), counts(), others]), None);
        }
        let labelled = |mut own: LabelledNode| {
            own.labels.push("a".into());
            own
        };
        assert_eq!(rewritten(vec![all(), id(), labelled(range(0, 1))]), None);
        // A label that not all rows have lets some through.
        assert_eq!(rewritten(vec![all(), select("a"), range(0, 1)]), None);
        assert_eq!(
            rewritten(vec![labelled(all()), order(), select("a"), range(0, 1)]),
            Some(vec![labelled(all()), order(), range(0, 1), select("a")])
        );
    }

    #[test]
    fn elements_that_have_a_value_are_enough() {
        let has = || LabelledNode::from(Node::HasProperty { key: "x".into(), negated: false });
        assert_eq!(
            rewritten(vec![all(), order(), values(&["x"]), range(3, 5)]),
            Some(vec![all(), has(), order(), range(0, 5), values(&["x"]), range(3, 5)])
        );
        for others in [
            vec![all(), order(), values(&["x", "y"]), range(0, 5)],
            vec![all(), order(), values(&["x"]), range(3, -1)],
            vec![all(), values(&["x"]), order(), values(&["x"]), range(0, 5)],
        ] {
            assert_eq!(rewritten(others), None);
        }
    }

    #[test]
    fn long_lines_of_steps_are_looked_at_once() {
        let ids = || std::iter::repeat_with(|| LabelledNode::from(Node::Id)).take(MANY);
        let line = ids().chain(std::iter::repeat_with(|| range(0, 1)).take(MANY)).chain(ids());
        assert!(rewritten(line.collect()).is_some_and(|nodes| nodes.len() == 3 * MANY));
    }
}
