//! Scans of all vertices or edges, or of those that an access path leaves, with the conditions behind them.

use std::sync::Arc;

use ficus_dataflow::{Flow, NodeName, Operator};
use ficus_model::{EdgeId, Shared, Value, VertexId};
use ficus_storage::{EdgeScanCursor, ElementKind, IndexCursor, ScanCursor};
use hashbrown::HashSet;

use crate::access::{Access, Path};
use crate::budget::Held;
use crate::context::{Cx, Graphs, QueryContext, Result, Traversers};
use crate::logical::Node;
use crate::operators::has::Conditions;
use crate::operators::hash_order::OrderedScan;
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
    /// The way to read them, once it is known, if it is the same for every input: an index, or any for who does not write.
    known_path: Option<Arc<Path>>,
}

/// A part of a scan of vertices: those from the first id on and before the other one.
type IdRange = (u64, u64);

/// A scan under way.
struct Scan {
    path: Arc<Path>,
    cursor: ScanCursor,
    /// It ends before this vertex.
    end: u64,
    /// Elements fetched at once.
    rows: usize,
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
            known_path: None,
        }
    }

    /// Begins anew; [`Elements::fetch`] brings the first part.
    pub fn begin(&mut self, context: &QueryContext) {
        self.begin_within(None, context);
    }

    /// As [`Elements::begin`], of the vertices in a range if one is given.
    fn begin_within(&mut self, range: Option<IdRange>, context: &QueryContext) {
        let (start, end) = range.unwrap_or((0, u64::MAX));
        let elements = if self.edges { ElementKind::Edge } else { ElementKind::Vertex };
        let path = match &self.known_path {
            Some(path) => path.clone(),
            None => {
                let path = Arc::new(self.access.path(&context.transaction, elements));
                if matches!(*path, Path::Index { .. }) || !context.transaction.may_write() {
                    self.known_path = Some(path.clone());
                }
                path
            }
        };
        self.exhausted = false;
        let rows = match &self.filter {
            Some(filter) => filter.conditions.rows_at_once(SCAN_ROWS),
            None => SCAN_ROWS,
        };
        self.current = Some(Scan {
            path,
            cursor: ScanCursor::at(VertexId(start)),
            end,
            rows: rows.min(usize::try_from(end - start).unwrap_or(usize::MAX)),
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
                if !transaction.scan_index(query, &mut scan.index_cursor, scan.rows, &mut found) {
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
                transaction.scan_edges_with_label(*label, &mut scan.of_label, scan.rows, &mut self.edge_ids)
            }
            Path::All if self.edges => transaction.scan_edges(&mut scan.cursor, scan.rows, &mut self.edge_ids),
            Path::Label(_) | Path::All => {
                let more = scan_vertices(&scan.path, &mut scan.cursor, scan.rows, &mut self.vertices, context);
                let within = self.vertices.partition_point(|vertex| vertex.0 < scan.end);
                let is_over = within < self.vertices.len();
                self.vertices.truncate(within);
                more && !is_over
            }
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

/// Appends the next vertices of a label or of all, in the order of their ids; true if there may be more.
fn scan_vertices(
    path: &Path,
    cursor: &mut ScanCursor,
    max: usize,
    out: &mut Vec<VertexId>,
    context: &QueryContext,
) -> bool {
    match path {
        Path::Label(label) => context.transaction.scan_vertices_with_label(*label, cursor, max, out),
        _ => context.transaction.scan_vertices(cursor, max, out),
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
                let Some(mut traverser) = input.pop_front() else { return Ok(Flow::Ready) };
                traverser.close_path();
                self.elements.begin_within(Ranges::of_row(&traverser), cx.context);
                self.current = Some(traverser);
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

/// Vertices in the first ranges of a scan.
const RANGE_MIN: u64 = 64;

/// And in later ones.
const RANGE_MAX: u64 = 8192;

/// Ranges that are made at once.
const RANGES_AT_ONCE: u32 = 8;

/// Ranges of one size.
const RANGES_OF_SIZE: u32 = 16;

/// Divides a scan of vertices into ranges of ids, with a row for each, of which executors take some each. The first are small, since a graph may be,
/// and there may be much to do for each vertex.
struct Ranges {
    access: Arc<Access>,
    current: Option<(Traverser, Path)>,
    cursor: ScanCursor,
    made: u32,
}

impl Ranges {
    /// The range that a row stands for; `None` if that is all.
    fn of_row(row: &Traverser) -> Option<IdRange> {
        let Value::List(ends) = &row.value else { return None };
        match ends.as_slice() {
            [Value::Long(start), Value::Long(end)] => Some((*start as u64, *end as u64)),
            _ => None,
        }
    }
}

impl Operator<Graphs> for Ranges {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        let mut next = Vec::with_capacity(1);
        loop {
            let Some((traverser, path)) = &self.current else {
                let Some(traverser) = input.pop_front() else { return Ok(Flow::Ready) };
                match self.access.path(&cx.context.transaction, ElementKind::Vertex) {
                    Path::Nothing => {}
                    // What an index finds is in no such order.
                    Path::Index { .. } => out.push_back(traverser),
                    path => {
                        self.current = Some((traverser, path));
                        (self.cursor, self.made) = (ScanCursor::default(), 0);
                    }
                }
                continue;
            };
            next.clear();
            scan_vertices(path, &mut self.cursor, 1, &mut next, cx.context);
            match next.as_slice() {
                [first, ..] => {
                    let size =
                        RANGE_MIN.checked_shl(self.made / RANGES_OF_SIZE).map_or(RANGE_MAX, |size| size.min(RANGE_MAX));
                    let end = first.0.saturating_add(size);
                    let range = [first.0, end].map(|id| Value::Long(id as i64));
                    let mut row = traverser.clone();
                    row.put(Value::List(Shared::new(range.to_vec())));
                    out.push_back(row);
                    self.cursor = ScanCursor::at(VertexId(end));
                    self.made += 1;
                }
                [] => self.current = None,
            }
            // The first may be all that is wanted.
            if self.made.is_multiple_of(RANGES_AT_ONCE) || cx.should_yield(out) {
                return Ok(Flow::More);
            }
        }
    }

    fn reset(&mut self) {
        self.current = None;
    }
}

/// What makes the scan that the builder has gathered access path and conditions for.
pub fn elements(builder: &mut Builder, edges: bool) -> impl Fn() -> Elements + Send + Sync + 'static {
    let (access, filter) = (Arc::new(builder.take_access()), builder.take_filter());
    move || Elements::new(edges, access.clone(), filter.clone())
}

/// Adds a scan that makes a row of each element.
pub fn build(builder: &mut Builder, node: &Node, step: StepInfo, chain: &mut Chain) {
    let name = match builder.conditions_of_scan() {
        conditions if conditions.is_empty() => NodeName::from(node),
        conditions => NodeName::from(format!("{node}{conditions}")),
    };
    let edges = matches!(node, Node::Edges { .. });
    let (access, filter) = (Arc::new(builder.take_access()), builder.take_filter());
    if builder.requirements().in_hash_order {
        builder.operator(chain, &name, false, move || {
            OrderedScan::new(Elements::new(edges, access.clone(), filter.clone()), step.clone())
        });
        return;
    }
    if !edges && builder.may_divide_scan(chain) {
        let access = access.clone();
        let id = builder.operator(chain, &name, false, move || Ranges {
            access: access.clone(),
            current: None,
            cursor: ScanCursor::default(),
            made: 0,
        });
        builder.part_of_next(id);
    }
    builder.operator(chain, &name, false, move || ScanOperator {
        elements: Elements::new(edges, access.clone(), filter.clone()),
        step: step.clone(),
        current: None,
    });
}
