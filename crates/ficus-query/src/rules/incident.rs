//! Edges that are only on the way to vertices: `outE().inV()` is `out()`, and what all edges lead to are the neighbours of all vertices.

use ficus_model::Direction;

use crate::logical::visit::{self, PathNeed};
use crate::logical::{LabelledNode, LogicalPlan, Node, Reach};
use crate::physical::Requirements;
use crate::rules::shows_steps;

/// Makes one hop to vertices of a hop to edges and the step to their other ends.
pub fn to_adjacent(plan: &mut LogicalPlan) -> bool {
    let is_one = &mut |node: &Node| matches!(node, Node::EdgeVertex { .. } | Node::OtherVertex);
    if !visit::any(&plan.root, is_one) {
        return false;
    }
    let requirements = Requirements::of(plan);
    if requirements.paths == PathNeed::Full || shows_steps(plan) {
        return false;
    }
    let mut changed = false;
    visit::rewrite(&mut plan.root, &mut |traversal| {
        let mut kept: Vec<LabelledNode> = Vec::with_capacity(traversal.nodes.len());
        for own in traversal.nodes.drain(..) {
            match kept.last_mut() {
                Some(hop) if hop.labels.is_empty() && is_other_end(&hop.node, &own.node, requirements.goes_back) => {
                    changed = true;
                    if let Node::Adjacent { reach, .. } = &mut hop.node {
                        *reach = Reach::Vertex;
                    }
                    hop.labels = own.labels;
                }
                _ => kept.push(own),
            }
        }
        traversal.nodes = kept;
    });
    changed
}

/// Whether a step leads to the ends of edges at which the hop before it did not begin.
fn is_other_end(hop: &Node, end: &Node, goes_back: bool) -> bool {
    let Node::Adjacent { direction, reach: Reach::Edge, .. } = hop else { return false };
    match end {
        Node::OtherVertex => !goes_back,
        Node::EdgeVertex { direction: end } => {
            matches!((direction, end), (Direction::Out, Direction::In) | (Direction::In, Direction::Out))
        }
        _ => false,
    }
}

/// Makes `V().out()` of `E().inV()`: edges lie at the vertices that they leave, and none has to be looked for. What they leave comes from all edges in a
/// better order, that of vertices, than from the vertices that they lead to.
pub fn ends_of_all(plan: &mut LogicalPlan) -> bool {
    let [edges, end, ..] = plan.root.nodes.as_slice() else { return false };
    let is_all = matches!(edges.node, Node::Edges { all: true, .. });
    let is_end = matches!(end.node, Node::EdgeVertex { direction: Direction::In });
    if !is_all || !is_end || !edges.labels.is_empty() {
        return false;
    }
    let requirements = Requirements::of(plan);
    if requirements.paths == PathNeed::Full || requirements.row_by_row {
        return false;
    }
    let hop = Node::Adjacent { direction: Direction::Out, labels: Vec::new(), reach: Reach::Vertex };
    let hop = LabelledNode { node: hop, labels: plan.root.nodes[1].labels.clone() };
    plan.root.nodes.splice(..2, [Node::Vertices { ids: Vec::new(), all: true }.into(), hop]);
    true
}
