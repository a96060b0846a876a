//! What comes once anyway needs nobody to remember it, and elements are known apart by what they are as well as by their ids.
//!
//! A scan yields each element once, and so does `outE()` or `inE()` of vertices that come once, since an edge has one vertex that it leaves and one that it
//! comes to. Filters, orders and limits let through some of what they are given. `dedup()` behind these would keep all elements in memory to find that
//! none of them comes again. No two vertices have the same id, nor have two edges: `id()` comes as often as its element does, and `dedup().by(id)` is
//! `dedup()`, which hops know and which reads no ids.

use ficus_model::{Direction, Scope, T};

use crate::logical::{By, LogicalPlan, Node, Reach};

/// Leaves out `dedup()` of elements of which each comes once, and of their ids.
pub fn left_out(plan: &mut LogicalPlan) -> bool {
    let nodes = std::mem::take(&mut plan.root.nodes);
    let mut come = nodes.first().map_or(Come::Unknown, |first| Come::from_start(&first.node));
    let mut changed = false;
    for (place, mut own) in nodes.into_iter().enumerate() {
        if let Node::Dedup { labels, by } = &mut own.node
            && labels.is_empty()
            && come.is_element()
            && by.as_ref().is_some_and(is_id)
        {
            *by = None;
            changed = true;
        }
        let is_dedup = matches!(&own.node, Node::Dedup { labels, by: None } if labels.is_empty());
        if is_dedup && matches!(come, Come::Once | Come::IdOnce) {
            changed = true;
            if own.labels.is_empty() {
                continue;
            }
            // It gives a label.
            own.node = Node::Identity;
        }
        if place > 0 {
            come = if is_dedup { come.once() } else { come.behind(&own.node) };
        }
        plan.root.nodes.push(own);
    }
    changed
}

/// Whether a modulator asks for the id of its object.
fn is_id(by: &By) -> bool {
    match by {
        By::Token(token) => *token == T::Id,
        By::Traversal(traversal) => {
            matches!(traversal.nodes.as_slice(), [own] if own.node == Node::Id && own.labels.is_empty())
        }
        By::Identity | By::Key(_) | By::Column(_) => false,
    }
}

/// How often an element comes at a place of the traversal, or its id.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Come {
    /// Once at most, as one row that stands for one.
    Once,
    /// As often as may be.
    Often,
    /// As an id, once.
    IdOnce,
    /// As an id, as often as may be.
    IdOften,
    /// Nothing is known of what comes.
    Unknown,
}

impl Come {
    fn from_start(node: &Node) -> Come {
        match node {
            Node::Vertices { all: true, .. } | Node::Edges { all: true, .. } => Come::Once,
            Node::Vertices { .. } | Node::Edges { .. } => Come::Often,
            _ => Come::Unknown,
        }
    }

    fn is_element(self) -> bool {
        matches!(self, Come::Once | Come::Often)
    }

    /// Behind `dedup()`.
    fn once(self) -> Come {
        match self {
            Come::Once | Come::Often => Come::Once,
            Come::IdOnce | Come::IdOften => Come::IdOnce,
            Come::Unknown => Come::Unknown,
        }
    }

    /// Behind another node.
    fn behind(self, node: &Node) -> Come {
        match node {
            Node::Has { .. }
            | Node::HasProperty { .. }
            | Node::Is { .. }
            | Node::WherePredicate { .. }
            | Node::WhereTraversal { .. }
            | Node::Filter { .. }
            | Node::Not { .. }
            | Node::And { .. }
            | Node::Or { .. }
            | Node::Range { .. }
            | Node::Tail { .. }
            | Node::Identity
            | Node::SideEffect { .. }
            | Node::Aggregate { .. }
            | Node::Order { scope: Scope::Global, .. }
            | Node::Dedup { .. } => self,
            Node::Id => match self {
                Come::Once => Come::IdOnce,
                Come::Often => Come::IdOften,
                Come::IdOnce | Come::IdOften | Come::Unknown => Come::Unknown,
            },
            Node::Adjacent { direction, labels, reach } if self.is_element() => {
                let is_each_once = |(place, label): (usize, _)| !labels[..place].contains(label);
                let is_once = self == Come::Once
                    && *reach == Reach::Edge
                    && *direction != Direction::Both
                    && labels.iter().enumerate().all(is_each_once);
                if is_once { Come::Once } else { Come::Often }
            }
            _ => Come::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logical::{LabelledNode, Name, Traversal};

    /// Which nodes are left of these, by their texts; none if nothing was changed.
    fn left(nodes: Vec<LabelledNode>) -> Option<Vec<String>> {
        let mut plan = LogicalPlan::default();
        plan.root.nodes = nodes;
        let texts = |plan: &LogicalPlan| plan.root.nodes.iter().map(|own| own.node.to_string()).collect::<Vec<_>>();
        let before = texts(&plan);
        let changed = left_out(&mut plan);
        assert!(changed || before == texts(&plan));
        changed.then(|| texts(&plan))
    }

    fn dedup() -> LabelledNode {
        Node::Dedup { labels: Vec::new(), by: None }.into()
    }

    fn vertices() -> LabelledNode {
        Node::Vertices { ids: Vec::new(), all: true }.into()
    }

    fn hop(direction: Direction, labels: &[&str], reach: Reach) -> LabelledNode {
        let labels = labels.iter().map(|label| Name::from(*label)).collect();
        Node::Adjacent { direction, labels, reach }.into()
    }

    #[test]
    fn only_what_comes_once_loses_its_dedup() {
        let (out, both) = (Direction::Out, Direction::Both);
        let some = || LabelledNode::from(Node::Range { low: 1, high: 7 });
        let count = |nodes: Option<Vec<String>>| nodes.map(|nodes| nodes.len());
        assert_eq!(count(left(vec![vertices(), dedup()])), Some(1));
        assert_eq!(
            count(left(vec![vertices(), some(), dedup(), hop(out, &[], Reach::Edge), some(), dedup()])),
            Some(4)
        );
        assert_eq!(count(left(vec![vertices(), hop(out, &["a", "b"], Reach::Edge), dedup()])), Some(2));
        // Each is a way to meet an element again.
        assert_eq!(left(vec![vertices(), hop(out, &[], Reach::Vertex), dedup()]), None);
        assert_eq!(left(vec![vertices(), hop(both, &[], Reach::Edge), dedup()]), None);
        assert_eq!(left(vec![vertices(), hop(out, &["a", "a"], Reach::Edge), dedup()]), None);
        let two = Node::Vertices { ids: vec![ficus_model::Value::Int(1), ficus_model::Value::Int(1)], all: false };
        assert_eq!(left(vec![two.into(), dedup()]), None);
        assert_eq!(left(vec![vertices(), Node::Label.into(), dedup()]), None);
        let by_label = Node::Dedup { labels: Vec::new(), by: Some(By::Token(ficus_model::T::Label)) };
        assert_eq!(left(vec![vertices(), by_label.into()]), None);
        assert_eq!(count(left(vec![vertices(), Node::Id.into(), dedup()])), Some(2));
        assert_eq!(left(vec![vertices(), hop(out, &[], Reach::Vertex), Node::Id.into(), dedup()]), None);
        let id = Traversal { nodes: vec![Node::Id.into()] };
        for by in [By::Token(T::Id), By::Traversal(id.into())] {
            let by_id = || LabelledNode::from(Node::Dedup { labels: Vec::new(), by: Some(by.clone()) });
            assert_eq!(count(left(vec![vertices(), by_id()])), Some(1));
            let behind_hop = left(vec![vertices(), hop(out, &[], Reach::Vertex), by_id()]);
            assert_eq!(behind_hop.as_ref().and_then(|nodes| nodes.last()), Some(&dedup().node.to_string()));
            assert_eq!(left(vec![Node::Inject { values: Vec::new() }.into(), by_id()]), None);
        }
        // The second has nothing left to do.
        let again = vec![vertices(), hop(out, &[], Reach::Vertex), dedup(), some(), dedup()];
        assert_eq!(count(left(again)), Some(4));
    }

    #[test]
    fn a_label_of_what_is_left_out_stays() {
        let labelled = LabelledNode { labels: vec![Name::from("x")], ..dedup() };
        let mut plan = LogicalPlan::default();
        plan.root.nodes = vec![vertices(), labelled];
        assert!(left_out(&mut plan));
        let [_, own] = plan.root.nodes.as_slice() else { panic!("{plan}") };
        assert_eq!((&own.node, own.labels.as_slice()), (&Node::Identity, [Name::from("x")].as_slice()));
    }
}
