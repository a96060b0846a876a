//! Edges that are reached from all vertices are all edges: each has one vertex that it leaves and one that it comes to.

use ficus_model::{Comparison, Direction, P, Shared, T, Value};

use crate::logical::visit::PathNeed;
use crate::logical::{By, HasContainer, HasKey, LabelledNode, LogicalPlan, Name, Node, Reach, Reduction};
use crate::physical::Requirements;

/// Makes `E().hasLabel(labels)` of `V().outE(labels)` and `V().inE(labels)` where only numbers of edges are wanted, which the store keeps, and
/// `groupCount().by(label)` of `label().groupCount()` there.
pub fn of_all_vertices(plan: &mut LogicalPlan) -> bool {
    let nodes = &plan.root.nodes;
    let Some(edges) = edges_of_all(nodes) else { return false };
    let counted = match &nodes[2..] {
        [own, ..] if is_counting(&own.node) => 2..2,
        [label, own, ..]
            if label.labels.is_empty() && label.node == Node::Label && own.node == counts_of(By::Identity) =>
        {
            2..4
        }
        _ => return false,
    };
    let requirements = Requirements::of(plan);
    if requirements.paths == PathNeed::Full || requirements.row_by_row {
        return false;
    }
    if !counted.is_empty() {
        let labels = plan.root.nodes[3].labels.clone();
        let node = counts_of(By::Token(T::Label));
        plan.root.nodes.splice(counted, [LabelledNode { node, labels }]);
    }
    plan.root.nodes.splice(..2, edges);
    true
}

fn counts_of(key: By) -> Node {
    Node::GroupCount { side_effect: None, key }
}

fn is_counting(node: &Node) -> bool {
    matches!(node, Node::Reduce { reduction: Reduction::Count }) || *node == counts_of(By::Token(T::Label))
}

/// What stands for the first two nodes, if these are all vertices and their edges of one direction.
fn edges_of_all(nodes: &[LabelledNode]) -> Option<Vec<LabelledNode>> {
    let [vertices, hop, ..] = nodes else { return None };
    let Node::Adjacent { direction: Direction::Out | Direction::In, labels, reach: Reach::Edge } = &hop.node else {
        return None;
    };
    let is_all = matches!(vertices.node, Node::Vertices { all: true, .. });
    if !is_all || !vertices.labels.is_empty() || !hop.labels.is_empty() {
        return None;
    }
    let mut edges = vec![Node::Edges { ids: Vec::new(), all: true }.into()];
    // Who is asked for twice comes twice.
    if labels.iter().enumerate().any(|(place, label)| labels[..place].contains(label)) {
        return None;
    }
    let text = |label: &Name| Value::String(label.clone());
    let predicate = match labels.as_slice() {
        [] => return Some(edges),
        [label] => P::Compare(Comparison::Eq, text(label)),
        several => P::Within(Shared::new(several.iter().map(text).collect())),
    };
    edges.push(Node::Has { containers: vec![HasContainer { key: HasKey::Label, predicate }] }.into());
    Some(edges)
}
