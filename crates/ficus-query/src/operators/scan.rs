//! Scans of all vertices or edges, or of those that an access path leaves, with the conditions behind them.

use std::sync::Arc;

use ficus_dataflow::{Flow, Operator};
use ficus_model::{EdgeId, Value, VertexId};
use ficus_storage::{EdgeScanCursor, ElementKind, IndexCursor, ScanCursor};
use hashbrown::HashSet;

use crate::access::{Access, Path};
use crate::budget::Held;
use crate::context::{Cx, Graphs, QueryContext, Result, Traversers};
use crate::logical::Node;
use crate::operators::has::Conditions;
use crate::physical::{Builder, Chain};
use crate::traverser::{StepInfo, Traverser};

/// Elements fetched from the store at once.
const SCAN_ROWS: usize = 256;

/// Of an element that was looked at and is no row, so much of a turn is paid.
const LOOKED_AT_PER_UNIT: usize = 8;

/// What is behind a scan and said of its elements before they are rows.
#[derive(Clone)]
pub struct ScanFilter {
    /// All conditions.
    pub conditions: Conditions,
    /// Those that are left of elements that have the label of the access path.
    pub of_label: Conditions,
    /// The steps whose work it is, as `explain()` shows them.
    pub shown: String,
}

/// The elements of a scan, part by part, along the best path that the snapshot has.
pub struct Elements {
    edges: bool,
    access: Arc<Access>,
    filter: Option<ScanFilter>,
    current: Option<Scan>,
    exhausted: bool,
    vertices: Vec<VertexId>,
    edge_ids: Vec<EdgeId>,
    /// How many of these were handed out.
    taken: usize,
    /// Whether those that are there fulfil all conditions.
    told: bool,
    held: Held,
    /// The index that serves, once it is known: the same for every input. Other paths may change with what the query itself
    /// writes.
    index_path: Option<Arc<Path>>,
}

/// A scan under way.
struct Scan {
    path: Arc<Path>,
    cursor: ScanCursor,
    of_label: EdgeScanCursor,
    /// The question to the index that is being answered, and how far.
    query: usize,
    index_cursor: IndexCursor,
    /// What earlier questions found: an element with several values may be found by each.
    seen: HashSet<u64>,
}

impl Elements {
    fn new(edges: bool, access: Arc<Access>, filter: Option<ScanFilter>) -> Elements {
        Elements {
            edges,
            access,
            filter,
            current: None,
            exhausted: false,
            vertices: Vec::new(),
            edge_ids: Vec::new(),
            taken: 0,
            told: true,
            held: Held::default(),
            index_path: None,
        }
    }

    /// Begins anew; [`Elements::fetch`] brings the first part.
    pub fn begin(&mut self, context: &QueryContext) {
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
        self.exhausted = false;
        self.current = Some(Scan {
            path,
            cursor: ScanCursor::default(),
            of_label: EdgeScanCursor::default(),
            query: 0,
            index_cursor: IndexCursor::default(),
            seen: HashSet::new(),
        });
    }

    /// Whether there are no more parts behind the one that is there.
    pub fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    /// Brings the next part.
    ///
    /// Errors: `Budget` if what is remembered of an index grows too large.
    pub fn fetch(&mut self, context: &QueryContext) -> Result<()> {
        let Some(scan) = &mut self.current else { return Ok(()) };
        self.taken = 0;
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
            Path::Label(label) if self.edges => {
                transaction.scan_edges_with_label(*label, &mut scan.of_label, SCAN_ROWS, &mut self.edge_ids)
            }
            Path::Label(label) => {
                transaction.scan_vertices_with_label(*label, &mut scan.cursor, SCAN_ROWS, &mut self.vertices)
            }
            Path::All if self.edges => transaction.scan_edges(&mut scan.cursor, SCAN_ROWS, &mut self.edge_ids),
            Path::All => transaction.scan_vertices(&mut scan.cursor, SCAN_ROWS, &mut self.vertices),
        };
        self.exhausted = !more;
        if let Some(filter) = &mut self.filter {
            let conditions = conditions_on(filter, &scan.path);
            let told = match self.edges {
                true => conditions.prefilter_edges(context, &mut self.edge_ids),
                false => conditions.prefilter(context, &mut self.vertices),
            };
            self.told = told || conditions.hold_always();
        }
        Ok(())
    }

    /// How many elements of this part are left, if all of them fulfil the conditions; they are taken then.
    pub fn take_all_told(&mut self) -> Option<usize> {
        let left = self.vertices.len().max(self.edge_ids.len()) - self.taken;
        self.told.then(|| {
            self.taken += left;
            left
        })
    }

    /// The vertices of this part, if none has been taken and all fulfil the conditions.
    pub fn vertices_all_told(&self) -> Option<&[VertexId]> {
        (self.told && !self.edges && self.taken == 0).then_some(&self.vertices)
    }

    /// The next element of this part that fulfils the conditions.
    ///
    /// Errors: those of conditions.
    #[inline]
    pub fn next_of_part(&mut self, context: &QueryContext) -> Result<Option<Value>> {
        loop {
            let next = match self.edges {
                true => self.edge_ids.get(self.taken).copied().map(Value::Edge),
                false => self.vertices.get(self.taken).copied().map(Value::Vertex),
            };
            let Some(value) = next else { return Ok(None) };
            self.taken += 1;
            let fits = match (&mut self.filter, &self.current) {
                (Some(filter), Some(scan)) if !self.told => conditions_on(filter, &scan.path).test(&value, context)?,
                _ => true,
            };
            if fits {
                return Ok(Some(value));
            }
        }
    }

    /// Pays for a part of which not all became rows.
    pub fn charge(&self, cx: &mut Cx<'_>) {
        cx.charge(if self.filter.is_some() { SCAN_ROWS / LOOKED_AT_PER_UNIT } else { 1 });
    }

    /// Ends the scan.
    pub fn end(&mut self) {
        self.current = None;
        self.held.give_back();
    }

    /// Forgets all.
    pub fn reset(&mut self) {
        self.end();
        self.vertices.clear();
        self.edge_ids.clear();
        self.taken = 0;
    }
}

/// The conditions that elements along a path have to fulfil.
fn conditions_on<'f>(filter: &'f mut ScanFilter, path: &Path) -> &'f mut Conditions {
    match path {
        Path::Label(_) => &mut filter.of_label,
        _ => &mut filter.conditions,
    }
}

/// Scans vertices or edges, once per input.
struct ScanOperator {
    elements: Elements,
    step: StepInfo,
    current: Option<Traverser>,
}

impl Operator<Graphs> for ScanOperator {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        loop {
            if self.current.is_none() {
                let Some(traverser) = input.pop_front() else { return Ok(Flow::Ready) };
                self.current = Some(traverser);
                self.elements.begin(cx.context);
                self.elements.fetch(cx.context)?;
            }
            let traverser = self.current.as_ref().expect("set above");
            while let Some(value) = self.elements.next_of_part(cx.context)? {
                out.push_back(traverser.advance(value, &self.step));
                if cx.should_pause(out) {
                    return Ok(Flow::More);
                }
            }
            if self.elements.is_exhausted() {
                self.current = None;
                self.elements.end();
            } else {
                // What the filter drops never reaches the queue that is paid for.
                self.elements.charge(cx);
                self.elements.fetch(cx.context)?;
                if cx.exhausted() {
                    return Ok(Flow::More);
                }
            }
        }
    }

    fn release(&mut self, _cx: &mut Cx<'_>) {
        self.elements.held.give_back();
    }

    fn reset(&mut self) {
        self.current = None;
        self.elements.reset();
    }
}

/// What makes the scan that the builder has gathered access path and conditions for.
pub fn elements(builder: &mut Builder, edges: bool) -> impl Fn() -> Elements + Send + Sync + 'static {
    let (access, filter) = (Arc::new(builder.take_access()), builder.take_filter());
    move || Elements::new(edges, access.clone(), filter.clone())
}

/// Adds a scan that makes a row of each element.
pub fn build(builder: &mut Builder, node: &Node, step: StepInfo, chain: &mut Chain) {
    let name = format!("{node}{}", builder.conditions_of_scan());
    let elements = elements(builder, matches!(node, Node::Edges { .. }));
    builder.operator(chain, &name, false, move || ScanOperator {
        elements: elements(),
        step: step.clone(),
        current: None,
    });
}
