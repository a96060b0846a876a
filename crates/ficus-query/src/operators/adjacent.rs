//! `out`, `in`, `both`, their edge forms, `outV`, `inV`, `bothV`, `otherV`: moving along the graph.

use std::sync::Arc;

use ficus_dataflow::{Flow, Operator};
use ficus_model::{Direction, Element, Value, VertexId};
use ficus_storage::{HalfEdge, HalfEdgeCursor};

use crate::context::{Cx, Graphs, QueryContext, Result, Traversers};
use crate::elements::LabelSet;
use crate::error::QueryError;
use crate::logical::{Name, Node, Reach};
use crate::operators::source::{resolve_edge, resolve_vertex};
use crate::physical::{Builder, Chain};
use crate::traverser::{StepInfo, Traverser};

/// Half-edges fetched from the store at once.
const FETCH_ROWS: usize = 256;

struct AdjacentOperator {
    direction: Direction,
    labels: LabelSet,
    reach: Reach,
    step: StepInfo,
    current: Option<Current>,
    fetched: Vec<HalfEdge>,
}

struct Current {
    traverser: Traverser,
    vertex: VertexId,
    cursor: HalfEdgeCursor,
    more: bool,
    position: usize,
}

impl AdjacentOperator {
    /// Starts on the next input; `false` when there is none.
    fn start(&mut self, input: &mut Traversers, cx: &mut Cx<'_>) -> Result<bool> {
        let Some(traverser) = input.pop_front() else { return Ok(false) };
        let vertex = vertex_of(cx.context, &traverser.value, self.direction, self.reach)?;
        self.fetched.clear();
        // A vertex that is gone has no neighbours.
        let more = vertex.is_some();
        let vertex = vertex.unwrap_or(VertexId(0));
        self.current = Some(Current { traverser, vertex, cursor: HalfEdgeCursor::default(), more, position: 0 });
        Ok(true)
    }
}

impl Operator<Graphs> for AdjacentOperator {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        loop {
            if self.current.is_none() && !self.start(input, cx)? {
                return Ok(Flow::Ready);
            }
            let current = self.current.as_mut().expect("set above");
            while let Some(half_edge) = self.fetched.get(current.position) {
                current.position += 1;
                let value = match self.reach {
                    Reach::Vertex => Value::Vertex(half_edge.neighbour),
                    Reach::Edge => Value::Edge(half_edge.edge),
                };
                out.push_back(current.traverser.advance(value, &self.step));
                if cx.should_pause(out) {
                    return Ok(Flow::More);
                }
            }
            let labels = if current.more { self.labels.ids(cx.context) } else { None };
            match labels {
                None => self.current = None,
                Some(labels) => {
                    self.fetched.clear();
                    current.position = 0;
                    current.more = cx.context.transaction.half_edges(
                        current.vertex,
                        self.direction,
                        labels,
                        &mut current.cursor,
                        FETCH_ROWS,
                        &mut self.fetched,
                    );
                    cx.charge(1);
                    if self.fetched.is_empty() && !current.more {
                        self.current = None;
                        if cx.exhausted() {
                            return Ok(Flow::More);
                        }
                    }
                }
            }
        }
    }

    fn reset(&mut self) {
        self.current = None;
        self.fetched.clear();
    }
}

/// The vertex to navigate from; `None` if it is gone.
pub fn vertex_of(
    context: &QueryContext,
    value: &Value,
    direction: Direction,
    reach: Reach,
) -> Result<Option<VertexId>> {
    match value {
        Value::Vertex(vertex) => Ok(Some(*vertex)),
        Value::Element(element) if matches!(**element, Element::Vertex(_)) => Ok(resolve_vertex(context, value)),
        _ => Err(QueryError::invalid(format!(
            "{}{}() needs a vertex, but the traverser holds a {}",
            direction.name().to_lowercase(),
            if reach == Reach::Edge { "E" } else { "" },
            value.type_name()
        ))),
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
        let edge = match &traverser.value {
            Value::Edge(edge) => Some(*edge),
            Value::Element(element) if matches!(**element, Element::Edge(_)) => {
                resolve_edge(cx.context, &traverser.value)
            }
            other => {
                let step = match self.end {
                    End::Fixed(Direction::Out) => "outV",
                    End::Fixed(Direction::In) => "inV",
                    End::Fixed(Direction::Both) => "bothV",
                    End::Other => "otherV",
                };
                return Err(QueryError::invalid(format!(
                    "{step}() needs an edge, but the traverser holds a {}",
                    other.type_name()
                )));
            }
        };
        let Some(record) = edge.and_then(|edge| cx.context.transaction.edge(edge)) else { return Ok((None, None)) };
        Ok(match self.end {
            End::Fixed(Direction::Out) => (Some(record.out), None),
            End::Fixed(Direction::In) => (Some(record.in_), None),
            End::Fixed(Direction::Both) => (Some(record.out), Some(record.in_)),
            End::Other => {
                // The vertex the path visited last before this edge.
                let came_from = traverser.path_links().skip(1).find_map(|link| match &link.value {
                    Value::Vertex(vertex) => Some(*vertex),
                    Value::Element(_) => resolve_vertex(cx.context, &link.value),
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
        while let Some(traverser) = input.pop_front() {
            let (first, second) = self.ends(&traverser, cx)?;
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

/// Adds the operator of a navigation node.
pub fn build(builder: &mut Builder, node: &Node, step: &StepInfo, chain: &mut Chain) -> Result<()> {
    let step = step.clone();
    match node {
        Node::Adjacent { direction, labels, reach } => {
            let names: Arc<[Name]> = labels.clone().into();
            let (direction, reach) = (*direction, *reach);
            builder.operator(chain, &node.to_string(), false, move || AdjacentOperator {
                direction,
                labels: LabelSet::new(names.clone()),
                reach,
                step: step.clone(),
                current: None,
                fetched: Vec::new(),
            });
        }
        Node::EdgeVertex { direction } => {
            let end = End::Fixed(*direction);
            builder.operator(chain, &node.to_string(), false, move || EdgeVertexOperator { end, step: step.clone() });
        }
        _ => {
            builder.operator(chain, &node.to_string(), false, move || EdgeVertexOperator {
                end: End::Other,
                step: step.clone(),
            });
        }
    }
    Ok(())
}
