//! `outV`, `inV`, `bothV`, `otherV`: from an edge to its ends.

use ficus_dataflow::{Flow, Operator};
use ficus_model::{Direction, EdgeId, Element, Value, VertexId};

use crate::context::{Cx, Graphs, QueryContext, Result, Traversers};
use crate::error::QueryError;
use crate::logical::Node;
use crate::operators::source::{resolve_edge, resolve_vertex};
use crate::physical::{Builder, Chain};
use crate::traverser::{StepInfo, Traverser};

/// The edge to leave at this end (none: at the one it was not entered by); `None` if it is gone.
///
/// Errors: `Invalid` if the value is no edge.
pub fn edge_of(context: &QueryContext, value: &Value, end: Option<Direction>) -> Result<Option<EdgeId>> {
    match value {
        Value::Edge(edge) => Ok(Some(*edge)),
        Value::Element(element) if matches!(**element, Element::Edge(_)) => Ok(resolve_edge(context, value)),
        other => {
            let step = match end {
                Some(Direction::Out) => "outV",
                Some(Direction::In) => "inV",
                Some(Direction::Both) => "bothV",
                None => "otherV",
            };
            Err(QueryError::invalid(format!("{step}() needs an edge, but the traverser holds a {}", other.type_name())))
        }
    }
}

struct EdgeVertexOperator {
    end: End,
    step: StepInfo,
}

#[derive(Clone, Copy)]
enum End {
    Fixed(Direction),
    Other,
}

impl EdgeVertexOperator {
    fn ends(&self, traverser: &Traverser, cx: &Cx<'_>) -> Result<(Option<VertexId>, Option<VertexId>)> {
        let edge = match self.end {
            End::Fixed(direction) => edge_of(cx.context, &traverser.value, Some(direction))?,
            End::Other => edge_of(cx.context, &traverser.value, None)?,
        };
        let Some(record) = edge.and_then(|edge| cx.context.transaction.edge(edge)) else { return Ok((None, None)) };
        Ok(match self.end {
            End::Fixed(Direction::Out) => (Some(record.out), None),
            End::Fixed(Direction::In) => (Some(record.in_), None),
            End::Fixed(Direction::Both) => (Some(record.out), Some(record.in_)),
            End::Other => {
                // The vertex the path visited last before this edge.
                let came_from = traverser.way().skip(1).find_map(|passed| match passed.value {
                    Value::Vertex(vertex) => Some(*vertex),
                    Value::Element(_) => resolve_vertex(cx.context, passed.value),
                    _ => None,
                });
                match came_from {
                    Some(vertex) if vertex == record.out => (Some(record.in_), None),
                    Some(vertex) if vertex == record.in_ => (Some(record.out), None),
                    _ => {
                        return Err(QueryError::invalid(
                            "The path history of the traverser does not contain the vertex of the edge it came from; \
                             otherV() can only follow outE(), inE() or bothE()",
                        ));
                    }
                }
            }
        })
    }
}

impl Operator<Graphs> for EdgeVertexOperator {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        while let Some(mut traverser) = input.pop_front() {
            let (first, second) = self.ends(&traverser, cx)?;
            traverser.close_path();
            for vertex in [first, second].into_iter().flatten() {
                out.push_back(traverser.advance(Value::Vertex(vertex), &self.step));
            }
            if cx.should_pause(out) {
                return Ok(Flow::More);
            }
        }
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {}
}

/// Adds the operator of a step from edges to vertices.
pub fn build(builder: &mut Builder, node: &Node, step: &StepInfo, chain: &mut Chain) -> Result<()> {
    let end = match node {
        Node::EdgeVertex { direction } => End::Fixed(*direction),
        Node::OtherVertex => End::Other,
        _ => return Err(QueryError::invalid(format!("{node} does not leave an edge"))),
    };
    let step = step.clone();
    builder.operator(chain, node, false, move || EdgeVertexOperator { end, step: step.clone() });
    Ok(())
}
