//! `SubgraphStrategy`: only elements that pass the criteria are there.
//!
//! A filter follows every node that reaches a vertex or an edge. With a criterion for edges, a hop to neighbours becomes a
//! hop to edges and one to their ends, so that the edge is looked at on the way. Labels move behind the filters.

use std::sync::Arc;

use ficus_model::Direction;
use ficus_query::logical::{LabelledNode, Node, PropertyForm, Reach, Traversal, visit};

use super::{Kind, for_each_by, is_no_vertex_property, line, restrict_key};

/// The criteria.
pub(super) struct Subgraph<'a> {
    pub(super) vertices: Option<&'a Arc<Traversal>>,
    pub(super) edges: Option<&'a Arc<Traversal>>,
    pub(super) vertex_properties: Option<&'a Arc<Traversal>>,
    pub(super) check_adjacent_vertices: bool,
}

fn filter(criterion: &Arc<Traversal>) -> Node {
    Node::Filter { traversal: criterion.clone() }
}

impl Subgraph<'_> {
    pub(super) fn apply(&self, root: &mut Traversal) {
        visit::rewrite(root, &mut |traversal| self.restrict(traversal));
    }

    fn restrict(&self, traversal: &mut Traversal) {
        let mut restricted = Vec::with_capacity(2 * traversal.nodes.len());
        let mut kind = Kind::Unknown;
        for labelled in std::mem::take(&mut traversal.nodes) {
            let before = kind;
            kind = kind.after(&labelled.node);
            self.restrict_node(labelled, before, &mut restricted);
        }
        traversal.nodes = restricted;
    }

    /// Writes the node, with what must follow it, behind `nodes`.
    fn restrict_node(&self, mut labelled: LabelledNode, before: Kind, nodes: &mut Vec<LabelledNode>) {
        let labels = std::mem::take(&mut labelled.labels);
        let mut node = labelled.node;
        if self.vertex_properties.is_some() {
            for_each_by(&mut node, &mut |by, of_group_values| {
                restrict_key(by, of_group_values, self.property_filter(Kind::Unknown));
            });
        }
        let mut line: Vec<Node> = match node {
            Node::Adjacent { direction, labels, reach: Reach::Vertex } if self.edges.is_some() => {
                let mut line = vec![Node::Adjacent { direction, labels, reach: Reach::Edge }];
                line.extend(self.edges.map(filter));
                line.push(match direction {
                    Direction::Out => Node::EdgeVertex { direction: Direction::In },
                    Direction::In => Node::EdgeVertex { direction: Direction::Out },
                    Direction::Both => Node::OtherVertex,
                });
                line.extend(self.vertices.map(filter));
                line
            }
            Node::Vertices { .. }
            | Node::EdgeVertex { .. }
            | Node::OtherVertex
            | Node::AddVertex { .. }
            | Node::Adjacent { reach: Reach::Vertex, .. } => {
                let mut line = vec![node];
                line.extend(self.vertices.map(filter));
                line
            }
            Node::Edges { .. } | Node::AddEdge { .. } | Node::Adjacent { reach: Reach::Edge, .. } => {
                let filters = self.edge_filters(&node);
                let mut line = vec![node];
                line.extend(filters);
                line
            }
            Node::Properties { keys, form } if self.vertex_properties.is_some() && before != Kind::Other => {
                let mut line = vec![Node::Properties { keys, form: PropertyForm::Property }];
                line.extend(self.property_filter(before));
                if form == PropertyForm::Value {
                    line.push(Node::ValueOf);
                }
                line
            }
            Node::HasProperty { key, negated } if self.vertex_properties.is_some() && before != Kind::Other => {
                let mut properties = vec![Node::Properties { keys: vec![key], form: PropertyForm::Property }];
                properties.extend(self.property_filter(before));
                let traversal = super::line(properties);
                vec![if negated { Node::Not { traversal } } else { Node::Filter { traversal } }]
            }
            mut node => {
                if let Node::PropertyMap { filter, .. } | Node::ElementMap { filter, .. } = &mut node
                    && self.vertex_properties.is_some()
                    && before != Kind::Other
                {
                    *filter = Some(super::line(self.property_filter(before)));
                }
                vec![node]
            }
        };
        let last = line.pop();
        nodes.extend(line.into_iter().map(LabelledNode::from));
        nodes.extend(last.map(|node| LabelledNode { node, labels }));
    }

    /// What a vertex property must pass; anything else passes if it may come along.
    fn property_filter(&self, before: Kind) -> Vec<Node> {
        let Some(criterion) = self.vertex_properties else { return Vec::new() };
        match before {
            Kind::Vertex => vec![filter(criterion)],
            _ => vec![Node::Or { traversals: vec![is_no_vertex_property(), criterion.clone()] }],
        }
    }

    /// What an edge must pass: its own criterion, and that of the vertices it leads to.
    fn edge_filters(&self, node: &Node) -> Vec<Node> {
        let mut filters: Vec<Node> = self.edges.map(filter).into_iter().collect();
        if let (true, Some(vertices)) = (self.check_adjacent_vertices, self.vertices) {
            let end = |end: Node| line(vec![end, filter(vertices)]);
            let end_at = |direction| end(Node::EdgeVertex { direction });
            match node {
                Node::Adjacent { direction: Direction::Out, .. } => {
                    filters.push(Node::Filter { traversal: end_at(Direction::In) });
                }
                Node::Adjacent { direction: Direction::In, .. } => {
                    filters.push(Node::Filter { traversal: end_at(Direction::Out) });
                }
                Node::Adjacent { direction: Direction::Both, .. } => {
                    filters.push(Node::Filter { traversal: end(Node::OtherVertex) });
                }
                Node::Edges { .. } => {
                    filters.push(Node::And { traversals: vec![end_at(Direction::In), end_at(Direction::Out)] });
                }
                _ => {}
            }
        }
        filters
    }
}
