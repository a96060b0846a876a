//! `V()`, `E()`, `inject()`: where traversers come from.

use std::sync::Arc;

use ficus_dataflow::{Flow, Operator};
use ficus_model::{Comparison, EdgeId, Element, P, Value, ValueSet, VertexId};
use ficus_storage::ScanCursor;

use crate::context::{Cx, Graphs, QueryContext, Result, Traversers};
use crate::error::QueryError;
use crate::logical::{HasContainer, HasKey, Name, Node};
use crate::physical::{Builder, Chain};
use crate::traverser::{StepInfo, Traverser};

/// Elements fetched from the store at once.
const SCAN_ROWS: usize = 256;

/// Where a scan of vertices begins: what the filter behind it allows to leave out. The filter still runs.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Only vertices of this label.
    pub label: Option<Name>,
    /// Only vertices with this value under this key, if an index covers them.
    pub key: Option<(Name, Value)>,
}

/// Scans all vertices or edges, once per input.
struct ScanOperator {
    edges: bool,
    access: Arc<Access>,
    step: StepInfo,
    current: Option<(Traverser, ScanCursor)>,
    exhausted: bool,
    vertices: Vec<VertexId>,
    edge_ids: Vec<EdgeId>,
    fetched: usize,
}

impl ScanOperator {
    fn fetch(&mut self, context: &QueryContext) {
        let Some((_, cursor)) = &mut self.current else { return };
        self.fetched = 0;
        self.vertices.clear();
        self.edge_ids.clear();
        let transaction = &context.transaction;
        let label = match &self.access.label {
            None => None,
            Some(name) => match transaction.label_id(name) {
                Some(label) => Some(label),
                None => {
                    // No vertex has such a label.
                    self.exhausted = true;
                    return;
                }
            },
        };
        if let Some((key, value)) = &self.access.key {
            let Some(key) = transaction.key_id(key) else {
                self.exhausted = true;
                return;
            };
            if transaction.vertices_by_index(label, key, value, &mut self.vertices) {
                self.exhausted = true;
                return;
            }
        }
        let more = if let Some(label) = label {
            transaction.scan_vertices_with_label(label, cursor, SCAN_ROWS, &mut self.vertices)
        } else if self.edges {
            transaction.scan_edges(cursor, SCAN_ROWS, &mut self.edge_ids)
        } else {
            transaction.scan_vertices(cursor, SCAN_ROWS, &mut self.vertices)
        };
        self.exhausted = !more;
    }

    fn fetched_value(&self, position: usize) -> Option<Value> {
        if self.edges {
            self.edge_ids.get(position).copied().map(Value::Edge)
        } else {
            self.vertices.get(position).copied().map(Value::Vertex)
        }
    }
}

impl Operator<Graphs> for ScanOperator {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        loop {
            if self.current.is_none() {
                let Some(traverser) = input.pop_front() else { return Ok(Flow::Ready) };
                self.current = Some((traverser, ScanCursor::default()));
                self.fetch(cx.context);
            }
            let (traverser, _) = self.current.as_ref().expect("set above");
            while let Some(value) = self.fetched_value(self.fetched) {
                self.fetched += 1;
                out.push_back(traverser.advance(value, &self.step));
                if cx.should_pause(out) {
                    return Ok(Flow::More);
                }
            }
            if self.exhausted {
                self.current = None;
            } else {
                cx.charge(1);
                self.fetch(cx.context);
                if cx.exhausted() {
                    return Ok(Flow::More);
                }
            }
        }
    }

    fn reset(&mut self) {
        self.current = None;
        self.vertices.clear();
        self.edge_ids.clear();
        self.fetched = 0;
    }
}

/// What conditions right behind `V()` allow to leave out.
pub fn access_of(containers: &[HasContainer]) -> Access {
    let mut access = Access::default();
    for container in containers {
        let P::Compare(Comparison::Eq, value) = &container.predicate else { continue };
        match (&container.key, value) {
            (HasKey::Label, Value::String(label)) if access.label.is_none() => access.label = Some(label.clone()),
            (HasKey::Key(key), value) if access.key.is_none() && !matches!(value, Value::Null) => {
                access.key = Some((key.clone(), value.clone()));
            }
            _ => {}
        }
    }
    access
}

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
    list: Arc<Vec<Value>>,
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
            self.injected = true;
            if self.input_first {
                out.extend(input.pop_front());
            }
            for value in self.list.iter() {
                out.push_back(cx.context.fresh_at(value.clone(), &self.step));
            }
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
            let mut nothing = Traversers::new();
            self.process(&mut nothing, out, cx)?;
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
    list: Arc<Vec<Value>>,
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
        Node::Vertices { all: true, .. } | Node::Edges { all: true, .. } => {
            let edges = matches!(node, Node::Edges { .. });
            let access = Arc::new(builder.take_access());
            builder.operator(chain, &node.to_string(), false, move || ScanOperator {
                edges,
                access: access.clone(),
                step: step.clone(),
                current: None,
                exhausted: false,
                vertices: Vec::new(),
                edge_ids: Vec::new(),
                fetched: 0,
            });
        }
        Node::Vertices { ids, .. } => list(builder, node, ids, ListKind::Vertices, step, chain),
        Node::Edges { ids, .. } => list(builder, node, ids, ListKind::Edges, step, chain),
        Node::Inject { values } if builder.starts_query(chain) => {
            let list = Arc::new(values.clone());
            builder.operator(chain, &node.to_string(), false, move || StartInjectOperator {
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
    let list = Arc::new(values.to_vec());
    let input_first = chain.is_empty();
    builder.operator(chain, &node.to_string(), kind == ListKind::Inject, move || ListOperator {
        list: list.clone(),
        kind,
        step: step.clone(),
        current: None,
        position: 0,
        injected: false,
        input_first,
    });
}
