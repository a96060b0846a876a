//! `V()`, `E()` with ids, `inject()`: where traversers come from.

use ficus_dataflow::{Flow, Operator};
use ficus_model::{Comparison, EdgeId, Element, P, Shared, Value, ValueSet, VertexId};

use crate::context::{Cx, Graphs, QueryContext, Result, Traversers};
use crate::error::QueryError;
use crate::logical::{HasContainer, HasKey, Node};
use crate::operators::scan;
use crate::physical::{Builder, Chain};
use crate::traverser::{StepInfo, Traverser};

/// The ids that conditions right behind `V()` or `E()` name.
pub fn ids_of(containers: &[HasContainer]) -> Option<Vec<Value>> {
    containers.iter().find_map(|container| match (&container.key, &container.predicate) {
        (HasKey::Id, P::Compare(Comparison::Eq, value)) => Some(vec![value.clone()]),
        (HasKey::Id, P::Within(values)) => {
            // Each once, however often it is named.
            let distinct: ValueSet = values.iter().cloned().collect();
            Some(distinct.into_iter().collect())
        }
        _ => None,
    })
}

/// Emits a fixed list per input: looked-up elements or injected values.
struct ListOperator {
    list: Shared<Vec<Value>>,
    kind: ListKind,
    step: StepInfo,
    current: Option<Traverser>,
    position: usize,
    injected: bool,
    /// Whether the first input goes before the injected values, as at the start of a child traversal.
    input_first: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ListKind {
    Vertices,
    Edges,
    Inject,
}

/// The vertex a query argument names: by id, or as an element.
pub fn resolve_vertex(context: &QueryContext, argument: &Value) -> Option<VertexId> {
    match argument {
        Value::Vertex(vertex) => context.transaction.vertex_exists(*vertex).then_some(*vertex),
        Value::Element(element) => match &**element {
            Element::Vertex(vertex) => context.transaction.find_vertex(&vertex.id),
            _ => None,
        },
        id => context.transaction.find_vertex(id),
    }
}

/// The edge a query argument names: by id, or as an element.
pub fn resolve_edge(context: &QueryContext, argument: &Value) -> Option<EdgeId> {
    match argument {
        Value::Edge(edge) => context.transaction.edge_exists(*edge).then_some(*edge),
        Value::Element(element) => match &**element {
            Element::Edge(edge) => context.transaction.find_edge(&edge.id),
            _ => None,
        },
        id => context.transaction.find_edge(id),
    }
}

impl Operator<Graphs> for ListOperator {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        if self.kind == ListKind::Inject && !self.injected {
            // Once, ahead of everything else (but the start of a child traversal).
            if self.position == 0 && self.input_first {
                out.extend(input.pop_front());
            }
            while let Some(value) = self.list.get(self.position) {
                self.position += 1;
                out.push_back(cx.context.fresh_at(value.clone(), &self.step));
                if cx.should_pause(out) {
                    return Ok(Flow::More);
                }
            }
            self.injected = true;
        }
        if self.kind == ListKind::Inject {
            out.append(input);
            return Ok(Flow::Ready);
        }
        loop {
            if self.current.is_none() {
                let Some(traverser) = input.pop_front() else { return Ok(Flow::Ready) };
                self.current = Some(traverser);
                self.position = 0;
            }
            let traverser = self.current.as_ref().expect("set above");
            while let Some(argument) = self.list.get(self.position) {
                self.position += 1;
                let found = match self.kind {
                    ListKind::Vertices => resolve_vertex(cx.context, argument).map(Value::Vertex),
                    ListKind::Edges => resolve_edge(cx.context, argument).map(Value::Edge),
                    ListKind::Inject => None,
                };
                if let Some(value) = found {
                    out.push_back(traverser.advance(value, &self.step));
                }
                cx.charge(1);
                if cx.should_pause(out) {
                    return Ok(Flow::More);
                }
            }
            self.current = None;
        }
    }

    fn finish(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        if self.kind == ListKind::Inject && !self.injected {
            return self.process(&mut Traversers::new(), out, cx);
        }
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {
        self.current = None;
        self.position = 0;
        self.injected = false;
    }
}

/// Emits the values in place of the seed of the query.
struct StartInjectOperator {
    list: Shared<Vec<Value>>,
    step: StepInfo,
    position: usize,
}

impl Operator<Graphs> for StartInjectOperator {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        while !input.is_empty() {
            while let Some(value) = self.list.get(self.position) {
                self.position += 1;
                out.push_back(cx.context.fresh_at(value.clone(), &self.step));
                if cx.should_pause(out) {
                    return Ok(Flow::More);
                }
            }
            self.position = 0;
            input.pop_front();
        }
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {
        self.position = 0;
    }
}

/// Adds the operator of a source node.
pub fn build(builder: &mut Builder, node: &Node, step: &StepInfo, chain: &mut Chain) -> Result<()> {
    let step = step.clone();
    match node {
        Node::Vertices { all: true, .. } | Node::Edges { all: true, .. } => scan::build(builder, node, step, chain),
        Node::Vertices { ids, .. } => list(builder, node, ids, ListKind::Vertices, step, chain),
        Node::Edges { ids, .. } => list(builder, node, ids, ListKind::Edges, step, chain),
        Node::Inject { values } if builder.starts_query(chain) => {
            let list = Shared::new(values.clone());
            builder.operator(chain, node, false, move || StartInjectOperator {
                list: list.clone(),
                step: step.clone(),
                position: 0,
            });
        }
        Node::Inject { values } => list(builder, node, values, ListKind::Inject, step, chain),
        _ => return Err(QueryError::invalid(format!("{node} is not a source"))),
    }
    Ok(())
}

fn list(builder: &mut Builder, node: &Node, values: &[Value], kind: ListKind, step: StepInfo, chain: &mut Chain) {
    let list = Shared::new(values.to_vec());
    let input_first = chain.is_empty();
    builder.operator(chain, node, kind == ListKind::Inject, move || ListOperator {
        list: list.clone(),
        kind,
        step: step.clone(),
        current: None,
        position: 0,
        injected: false,
        input_first,
    });
}
