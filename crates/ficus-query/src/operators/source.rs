//! `V()`, `E()`, `inject()`: where traversers come from.

use std::sync::Arc;

use ficus_dataflow::{Flow, Operator};
use ficus_model::{Comparison, EdgeId, Element, P, Shared, Value, ValueSet, VertexId};
use ficus_storage::{ElementKind, IndexCursor, ScanCursor};
use hashbrown::HashSet;

use crate::access::{Access, Path};
use crate::budget::Held;
use crate::context::{Cx, Graphs, QueryContext, Result, Traversers};
use crate::error::QueryError;
use crate::logical::{HasContainer, HasKey, Node};
use crate::operators::has::Conditions;
use crate::physical::{Builder, Chain};
use crate::traverser::{StepInfo, Traverser};

/// Elements fetched from the store at once.
const SCAN_ROWS: usize = 256;

/// Scans vertices or edges, once per input, along the best path that the snapshot has.
struct ScanOperator {
    edges: bool,
    access: Arc<Access>,
    /// What is behind the scan and columns may tell.
    filter: Option<Conditions>,
    step: StepInfo,
    current: Option<(Traverser, Scan)>,
    exhausted: bool,
    vertices: Vec<VertexId>,
    edge_ids: Vec<EdgeId>,
    fetched: usize,
    held: Held,
    /// The index that serves, once it is known: the same for every input. Other paths may change with what the query itself
    /// writes.
    index_path: Option<Arc<Path>>,
}

/// A scan under way.
struct Scan {
    path: Arc<Path>,
    cursor: ScanCursor,
    /// The question to the index that is being answered, and how far.
    query: usize,
    index_cursor: IndexCursor,
    /// What earlier questions found: an element with several values may be found by each.
    seen: HashSet<u64>,
}

impl ScanOperator {
    fn begin(&mut self, context: &QueryContext) -> Scan {
        let elements = if self.edges { ElementKind::Edge } else { ElementKind::Vertex };
        let path = match &self.index_path {
            Some(path) => path.clone(),
            None => {
                let path = Arc::new(self.access.path(&context.transaction, elements));
                if matches!(*path, Path::Index { .. }) {
                    self.index_path = Some(path.clone());
                }
                path
            }
        };
        Scan {
            path,
            cursor: ScanCursor::default(),
            query: 0,
            index_cursor: IndexCursor::default(),
            seen: HashSet::new(),
        }
    }

    fn fetch(&mut self, context: &mut QueryContext) -> Result<()> {
        let Some((_, scan)) = &mut self.current else { return Ok(()) };
        self.fetched = 0;
        self.vertices.clear();
        self.edge_ids.clear();
        let transaction = &context.transaction;
        let more = match &*scan.path {
            Path::Nothing => false,
            Path::Index { queries, .. } => {
                let mut found = Vec::new();
                let Some(query) = queries.get(scan.query) else {
                    self.exhausted = true;
                    return Ok(());
                };
                if !transaction.scan_index(query, &mut scan.index_cursor, SCAN_ROWS, &mut found) {
                    scan.query += 1;
                    scan.index_cursor = IndexCursor::default();
                }
                if queries.len() > 1 {
                    let before = scan.seen.len();
                    found.retain(|element| scan.seen.insert(*element));
                    self.held.add(&context.memory, (scan.seen.len() - before) * 2 * size_of::<u64>())?;
                }
                match self.edges {
                    true => self.edge_ids.extend(found.into_iter().map(EdgeId)),
                    false => self.vertices.extend(found.into_iter().map(VertexId)),
                }
                scan.query < queries.len()
            }
            Path::Label(label) => {
                transaction.scan_vertices_with_label(*label, &mut scan.cursor, SCAN_ROWS, &mut self.vertices)
            }
            Path::All if self.edges => transaction.scan_edges(&mut scan.cursor, SCAN_ROWS, &mut self.edge_ids),
            Path::All => transaction.scan_vertices(&mut scan.cursor, SCAN_ROWS, &mut self.vertices),
        };
        self.exhausted = !more;
        if let Some(filter) = &mut self.filter {
            // The conditions stay behind the scan and are tested there.
            let _ = filter.prefilter(context, &mut self.vertices);
        }
        Ok(())
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
                self.current = Some((traverser, self.begin(cx.context)));
                self.fetch(cx.context)?;
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
                self.held.give_back();
            } else {
                // What the filter drops never reaches the queue that is paid for.
                cx.charge(if self.filter.is_some() { SCAN_ROWS / 8 } else { 1 });
                self.fetch(cx.context)?;
                if cx.exhausted() {
                    return Ok(Flow::More);
                }
            }
        }
    }

    fn release(&mut self, _cx: &mut Cx<'_>) {
        self.held.give_back();
    }

    fn reset(&mut self) {
        self.current = None;
        self.vertices.clear();
        self.edge_ids.clear();
        self.fetched = 0;
    }
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
        Node::Vertices { all: true, .. } | Node::Edges { all: true, .. } => {
            let edges = matches!(node, Node::Edges { .. });
            let access = Arc::new(builder.take_access());
            let filter = builder.take_filter().filter(|filter| !edges && filter.can_prefilter());
            builder.operator(chain, &node.to_string(), false, move || ScanOperator {
                edges,
                access: access.clone(),
                filter: filter.clone(),
                step: step.clone(),
                current: None,
                exhausted: false,
                vertices: Vec::new(),
                edge_ids: Vec::new(),
                fetched: 0,
                held: Held::default(),
                index_path: None,
            });
        }
        Node::Vertices { ids, .. } => list(builder, node, ids, ListKind::Vertices, step, chain),
        Node::Edges { ids, .. } => list(builder, node, ids, ListKind::Edges, step, chain),
        Node::Inject { values } if builder.starts_query(chain) => {
            let list = Shared::new(values.clone());
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
    let list = Shared::new(values.to_vec());
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
