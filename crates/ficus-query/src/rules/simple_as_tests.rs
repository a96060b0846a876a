//! `simplePath()` behind a line of hops: each hop leaves out the vertices of the way so far.
//!
//! A row that keeps its whole way is an object of its own with a link for each hop, and `simplePath()` looks at all of them behind the last. But the way of
//! `V().both().both().simplePath()` is three vertices, and it is simple if the second is not the first, and the third neither. So vertices get labels that
//! no query can have, and each hop is told which vertices it must not lead to, as by `where(neq(label))`: it finds out before there are rows, and of a way
//! that comes back nothing is walked on.
//!
//! Edges on the way need no test of their own: one that is met twice leads back to a vertex where the way has been.

use ficus_model::Comparison;

use crate::logical::visit::{self, PathNeed};
use crate::logical::{LabelledNode, LogicalPlan, Name, Node, Reach, Traversal, WherePredicate};
use crate::physical::Requirements;

/// Vertices of a way: each is compared with all before it.
const VERTICES_MAX: usize = 6;

/// Has hops leave out where a way has been.
pub fn as_tests(plan: &mut LogicalPlan) -> bool {
    if !plan.root.nodes.iter().any(is_simple) || plan.source.with_path {
        return false;
    }
    let requirements = Requirements::of(plan);
    if requirements.row_by_row || requirements.in_hash_order {
        return false;
    }
    let Some(nodes) = tested(&plan.root) else { return false };
    let rewritten = LogicalPlan { source: plan.source.clone(), root: Traversal { nodes } };
    // Who asks for the way sees its labels, and has it kept.
    if Requirements::of(&rewritten).paths == PathNeed::Full {
        return false;
    }
    *plan = rewritten;
    true
}

fn is_simple(own: &LabelledNode) -> bool {
    matches!(&own.node, Node::PathFilter { simple: true, from: None, to: None, bys } if bys.is_empty())
}

/// The steps with tests instead of `simplePath()`; `None` if the way is not one of vertices that are all known.
fn tested(root: &Traversal) -> Option<Vec<LabelledNode>> {
    let last = root.nodes.iter().rposition(is_simple)?;
    let labels = Labels::unused_in(root);
    let mut made: Vec<LabelledNode> = Vec::with_capacity(root.nodes.len() + VERTICES_MAX * VERTICES_MAX);
    // Where each vertex of the way is made, and whether an edge was made behind the last of them.
    let mut way: Vec<usize> = Vec::new();
    let mut at_edge = false;
    for (place, own) in root.nodes.iter().enumerate() {
        if place > last {
            made.push(own.clone());
            continue;
        }
        let leads_to_vertex = match &own.node {
            Node::Vertices { .. } if place == 0 => true,
            _ if place == 0 => return None,
            Node::Adjacent { reach: Reach::Vertex, .. } if !at_edge => true,
            Node::EdgeVertex { .. } | Node::OtherVertex if at_edge => true,
            Node::Adjacent { reach: Reach::Edge, .. } if !at_edge => {
                at_edge = true;
                false
            }
            _ if is_simple(own) => {
                if at_edge {
                    return None;
                }
                if !own.labels.is_empty() {
                    made.push(LabelledNode { node: Node::Identity, labels: own.labels.clone() });
                }
                continue;
            }
            node if leaves_out(node) => false,
            _ => return None,
        };
        match (&own.node, made.last_mut()) {
            // Who asks for the other end has the whole way kept.
            (Node::OtherVertex, Some(LabelledNode { node: Node::Adjacent { reach, .. }, labels }))
                if labels.is_empty() =>
            {
                *reach = Reach::Vertex;
                labels.clone_from(&own.labels);
            }
            _ => made.push(own.clone()),
        }
        if !leads_to_vertex {
            continue;
        }
        at_edge = false;
        if way.len() == VERTICES_MAX {
            return None;
        }
        let here = made.len() - 1;
        for (number, vertex) in way.iter().enumerate() {
            let label = labels.of(number);
            if !made[*vertex].labels.contains(&label) {
                made[*vertex].labels.push(label.clone());
            }
            let predicate = WherePredicate::Compare(Comparison::Neq, label);
            made.push(Node::WherePredicate { start: None, predicate, bys: Vec::new() }.into());
        }
        way.push(here);
    }
    (way.len() > 1).then_some(made)
}

/// Whether a step only leaves rows out, each by itself, and cannot fail: then it makes no difference that fewer come to it.
fn leaves_out(node: &Node) -> bool {
    match node {
        Node::Has { .. } | Node::HasProperty { .. } | Node::Identity => visit::is_leaf(node),
        Node::WherePredicate { bys, .. } => bys.is_empty(),
        _ => false,
    }
}

/// Labels, and names of anything else, that a traversal does not have.
struct Labels {
    prefix: String,
}

impl Labels {
    fn unused_in(root: &Traversal) -> Labels {
        let written = root.to_string();
        let mut prefix = "~way ".to_owned();
        while written.contains(&prefix) {
            prefix.insert(0, '~');
        }
        Labels { prefix }
    }

    fn of(&self, vertex: usize) -> Name {
        format!("{}{vertex}", self.prefix).into()
    }
}

#[cfg(test)]
mod tests {
    use ficus_model::Direction;

    use super::*;

    fn all() -> LabelledNode {
        Node::Vertices { ids: vec![], all: true }.into()
    }

    fn hop(reach: Reach) -> LabelledNode {
        Node::Adjacent { direction: Direction::Both, labels: vec![], reach }.into()
    }

    fn simple() -> LabelledNode {
        Node::PathFilter { simple: true, from: None, to: None, bys: vec![] }.into()
    }

    fn plan_of(nodes: Vec<LabelledNode>) -> LogicalPlan {
        LogicalPlan { root: Traversal { nodes }, ..LogicalPlan::default() }
    }

    /// How many tests come of it, if any.
    fn tests_of(nodes: Vec<LabelledNode>) -> Option<usize> {
        let mut plan = plan_of(nodes);
        as_tests(&mut plan).then(|| {
            assert!(!plan.root.nodes.iter().any(is_simple));
            assert_ne!(Requirements::of(&plan).paths, PathNeed::Full);
            plan.root.nodes.iter().filter(|own| matches!(own.node, Node::WherePredicate { .. })).count()
        })
    }

    #[test]
    fn each_vertex_is_compared_with_all_before_it() {
        let line = |hops: usize| {
            let mut nodes = vec![all()];
            nodes.extend((0..hops).map(|_| hop(Reach::Vertex)));
            nodes.push(simple());
            nodes
        };
        assert_eq!(tests_of(line(0)), None);
        assert_eq!(tests_of(line(1)), Some(1));
        assert_eq!(tests_of(line(2)), Some(3));
        assert_eq!(tests_of(line(5)), Some(15));
        assert_eq!(tests_of(line(6)), None, "too many");
        // After each hop it is the same.
        let each = vec![all(), hop(Reach::Vertex), simple(), hop(Reach::Vertex), simple(), simple()];
        assert_eq!(tests_of(each), Some(3));
    }

    #[test]
    fn edges_need_no_tests_unless_the_way_ends_there() {
        let other: LabelledNode = Node::OtherVertex.into();
        let end: LabelledNode = Node::EdgeVertex { direction: Direction::In }.into();
        for end in [&other, &end] {
            assert_eq!(tests_of(vec![all(), hop(Reach::Edge), end.clone(), simple()]), Some(1));
            assert_eq!(tests_of(vec![all(), hop(Reach::Edge), simple(), end.clone()]), None);
        }
        let has: LabelledNode = Node::HasProperty { key: "key".into(), negated: false }.into();
        assert_eq!(tests_of(vec![all(), hop(Reach::Edge), has.clone(), end, simple()]), Some(1));
        assert_eq!(tests_of(vec![all(), hop(Reach::Edge), has, other, simple()]), None, "it asks for the way");
    }

    #[test]
    fn what_counts_rows_or_asks_for_the_way_keeps_it() {
        let cut: LabelledNode = Node::Range { low: 0, high: 3 }.into();
        assert_eq!(tests_of(vec![all(), hop(Reach::Vertex), cut.clone(), hop(Reach::Vertex), simple()]), None);
        assert_eq!(tests_of(vec![all(), hop(Reach::Vertex), simple(), cut]), Some(1));
        let path: LabelledNode = Node::Path { from: None, to: None, bys: vec![] }.into();
        assert_eq!(tests_of(vec![all(), hop(Reach::Vertex), simple(), path]), None);
    }

    #[test]
    fn labels_are_those_of_no_query() {
        let mut start = all();
        start.labels.push("~way 0".into());
        let mut plan = plan_of(vec![start, hop(Reach::Vertex), simple()]);
        assert!(as_tests(&mut plan));
        let labels: Vec<&str> = plan.root.nodes[0].labels.iter().map(|label| &**label).collect();
        assert_eq!(labels, ["~way 0", "~~way 0"]);
    }
}
