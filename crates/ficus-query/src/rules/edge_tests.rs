//! Tests whether two vertices that a row knows have an edge.
//!
//! `as('a').out().out().where(out().as('a'))` asks of each row for an edge back to where it began. To walk there looks at all neighbours of all the
//! vertices that rows come to, while those of the vertex under the label are the same for many rows: they are fetched and sorted once, and a row is a
//! search among them ([`Node::AdjacentFrom`]), which the hop before makes for its ends before they are rows.

use ficus_model::{Direction, Pop};

use super::closed_rings::{at_vertices, back_to};
use super::match_line::{filters, labels_inside, movable_from};
use crate::logical::{LabelledNode, LogicalPlan, Name, Node, Passes, Reach, Traversal};

/// An edge that has to be there.
struct Edge<'n> {
    /// From the vertex under this label.
    from: &'n Name,
    direction: Direction,
    labels: &'n [Name],
    /// To the vertex under this one, or where the row is.
    to: Option<&'n Name>,
}

/// Looks edges up among the neighbours of labelled vertices, in the outermost traversal.
pub fn of_neighbours(plan: &mut LogicalPlan) -> bool {
    if !plan.root.nodes.iter().any(|own| test_of(&own.node).is_some()) || !movable_from(plan, &[]) {
        return false;
    }
    let places: Vec<(usize, Node)> =
        (1..plan.root.nodes.len()).filter_map(|place| Some((place, looked_up(&plan.root, place)?))).collect();
    for (place, node) in &places {
        plan.root.nodes[*place].node = node.clone();
    }
    !places.is_empty()
}

/// What stands in place of the test at a position; `None` if it has to stay.
fn looked_up(root: &Traversal, place: usize) -> Option<Node> {
    let (before, rest) = root.nodes.split_at(place);
    let (edge, passes) = test_of(&rest.first()?.node)?;
    if !at_vertices(before, false) {
        return None;
    }
    // What the row is at has its label there, or at a test since.
    let is_here = |label: &Name| {
        let own = before.iter().rev().find(|own| own.labels.contains(label) || !filters(&own.node));
        own.is_some_and(|own| own.labels.contains(label))
    };
    let (label, direction) = match edge.to {
        None => (edge.from, edge.direction),
        Some(to) if is_here(to) && is_bound(root, before, edge.from) => (edge.from, edge.direction),
        Some(to) if is_here(edge.from) && is_bound(root, before, to) => (to, edge.direction.reversed()),
        Some(_) => return None,
    };
    let labels = edge.labels.to_vec();
    is_bound(root, before, label).then(|| Node::AdjacentFrom { label: label.clone(), direction, labels, passes })
}

/// Whether each row has a vertex under the label, and the steps give it once.
fn is_bound(root: &Traversal, before: &[LabelledNode], label: &Name) -> bool {
    let bound = before.iter().position(|own| own.labels.contains(label));
    bound.is_some_and(|bound| at_vertices(&before[..=bound], false))
        && labels_inside(root).iter().filter(|own| **own == label).count() == 1
}

/// The edge that a filter asks for, and whether it lets rows with it through, or those without.
fn test_of<'n>(node: &'n Node) -> Option<(Edge<'n>, Passes)> {
    let inside = |traversal: &'n Traversal| match edge_back(traversal) {
        Some(edge) => Some((edge, Passes::AnyEdge)),
        None => match traversal.nodes.as_slice() {
            [own] if own.labels.is_empty() => test_of(&own.node),
            _ => None,
        },
    };
    match node {
        Node::Filter { traversal } => inside(traversal),
        Node::Not { traversal } => {
            let (edge, passes) = inside(traversal)?;
            Some((edge, if passes == Passes::AnyEdge { Passes::NoEdge } else { Passes::AnyEdge }))
        }
        Node::WhereTraversal { start, traversal, end: Some(end) } => {
            let [hop] = traversal.nodes.as_slice() else { return None };
            let (direction, labels) = hop_of(hop)?;
            let edge = match start {
                Some(start) => Edge { from: start, direction, labels, to: Some(end) },
                None => Edge { from: end, direction: direction.reversed(), labels, to: None },
            };
            Some((edge, Passes::AnyEdge))
        }
        _ => None,
    }
}

/// Of `out().where(eq(label))` and `select(label).out().where(eq(other))`.
fn edge_back(traversal: &Traversal) -> Option<Edge<'_>> {
    if let [start, hop, test] = traversal.nodes.as_slice() {
        let Node::Select { pop: None | Some(Pop::Last), labels: selected, bys } = &start.node else { return None };
        let ([from], []) = (selected.as_slice(), bys.as_slice()) else { return None };
        let (direction, labels) = hop_of(hop)?;
        let to = back_to(test).filter(|_| test.labels.is_empty() && start.labels.is_empty());
        return Some(Edge { from, direction, labels, to: Some(to?) });
    }
    let [hop, test] = traversal.nodes.as_slice() else { return None };
    let (direction, labels) = hop_of(hop)?;
    let from = back_to(test).filter(|_| test.labels.is_empty())?;
    Some(Edge { from, direction: direction.reversed(), labels, to: None })
}

fn hop_of(own: &LabelledNode) -> Option<(Direction, &[Name])> {
    match &own.node {
        Node::Adjacent { direction, labels, reach: Reach::Vertex } if own.labels.is_empty() => {
            Some((*direction, labels))
        }
        _ => None,
    }
}
