//! Hops and scans in the order in which TinkerGraph hands out elements, for queries that draw random numbers from a seed: which rows are drawn depends on
//! the order in which they come.
//!
//! There the edges of a vertex are hash sets, one for each label in a map, and those that go out are before those that come in; all elements are in a map
//! by their ids. So the order follows from ids and labels, and where buckets are the same from that of insertion, which is the store's. What is asked for
//! by id, or over edges of several labels that are named, comes in the order in which it is named.

use std::collections::{HashMap, VecDeque};

use ficus_dataflow::{Flow, Operator};
use ficus_model::{Direction, EdgeId, LabelId, Value, VertexId};
use ficus_storage::{HalfEdge, HalfEdgeCursor, ScanCursor};

use crate::budget::Held;
use crate::context::{Cx, Graphs, QueryContext, Result, Traversers};
use crate::elements::{FETCH_MAX, LabelSet};
use crate::logical::{Name, Node, Reach};
use crate::operators::adjacent::vertex_of;
use crate::operators::java_hash;
use crate::operators::scan::Elements;
use crate::physical::{Builder, Chain};
use crate::traverser::{StepInfo, Traverser};

/// More elements of a scan, or edges of a vertex, are left in the order of the store: to bring them into another would take longer than a query may
/// go on after its end.
const ORDERED_MAX: usize = 1 << 16;

/// What an input leads to, in order, and not handed on yet.
struct Waiting {
    of: Option<Traverser>,
    values: VecDeque<Value>,
    held: Held,
}

impl Waiting {
    fn new() -> Waiting {
        Waiting { of: None, values: VecDeque::new(), held: Held::default() }
    }

    /// Hands on what is there; false if the turn is over before.
    fn hand_on(&mut self, step: &StepInfo, out: &mut Traversers, cx: &Cx<'_>) -> bool {
        let Some(of) = &self.of else { return true };
        while let Some(value) = self.values.pop_front() {
            out.push_back(of.advance(value, step));
            if cx.should_pause(out) {
                return false;
            }
        }
        self.held.give_back();
        true
    }

    fn clear(&mut self) {
        self.of = None;
        self.values.clear();
        self.held.give_back();
    }
}

/// A hop, to edges or over them.
struct OrderedHop {
    direction: Direction,
    labels: LabelSet,
    reach: Reach,
    step: StepInfo,
    waiting: Waiting,
}

impl OrderedHop {
    /// What the edges of one direction lead to.
    fn fetch(&mut self, from: &Traverser, direction: Direction, cx: &mut Cx<'_>) -> Result<()> {
        let context = &*cx.context;
        let Some(vertex) = vertex_of(context, &from.value, self.direction, self.reach)? else { return Ok(()) };
        let Some(labels) = self.labels.ids(context) else { return Ok(()) };
        let (all, named): ([&[LabelId]; 1], Vec<&[LabelId]>) = ([&[]], labels.chunks(1).collect());
        let mut fetched: Vec<HalfEdge> = Vec::new();
        for labels in if named.is_empty() { all.as_slice() } else { &named } {
            let (begin, mut cursor) = (fetched.len(), HalfEdgeCursor::default());
            loop {
                let before = fetched.len();
                let more =
                    context.transaction.half_edges(vertex, direction, labels, &mut cursor, FETCH_MAX, &mut fetched);
                let bytes = (fetched.len() - before) * (size_of::<HalfEdge>() + size_of::<Value>());
                self.waiting.held.add(&context.memory, bytes)?;
                context.check()?;
                if !more {
                    break;
                }
            }
            if fetched.len() - begin <= ORDERED_MAX {
                sort_edges(&mut fetched[begin..], context);
            }
        }
        self.waiting.values.extend(fetched.iter().map(|half_edge| match self.reach {
            Reach::Edge => Value::Edge(half_edge.edge),
            Reach::Vertex => Value::Vertex(half_edge.neighbour),
        }));
        cx.charge(fetched.len().max(1));
        Ok(())
    }
}

/// Brings edges of one vertex and direction into order, which are there label by label. Cost: a look-up of each edge, and a sort.
fn sort_edges(edges: &mut [HalfEdge], context: &QueryContext) {
    let label_of = |half_edge: &HalfEdge| context.transaction.edge(half_edge.edge).map(|record| record.label);
    let count_labels = edges.chunk_by(|a, b| label_of(a) == label_of(b)).count();
    // The label's bucket, the oldest edge of it, and the edge's bucket.
    let mut places: Vec<(u32, u64, u32)> = Vec::with_capacity(edges.len());
    for of_label in edges.chunk_by(|a, b| label_of(a) == label_of(b)) {
        let name =
            label_of(&of_label[0]).map_or(Value::Null, |label| Value::String(context.transaction.label_name(label)));
        let place = java_hash::place(&name, count_labels, context).unwrap_or_default();
        let hash = |half_edge: &HalfEdge| java_hash::hash(&Value::Edge(half_edge.edge), context);
        let hashes: Option<Vec<i32>> = of_label.iter().map(hash).collect();
        let buckets = hashes.as_ref().map_or(1, |hashes| java_hash::buckets_of(hashes.iter().copied()));
        let hashes = hashes.unwrap_or_else(|| vec![0; of_label.len()]);
        let oldest = of_label[0].edge.0;
        places.extend(hashes.into_iter().map(|hash| (place, oldest, java_hash::bucket(hash, buckets))));
    }
    let mut order: Vec<usize> = (0..edges.len()).collect();
    order.sort_by_key(|position| places[*position]);
    let sorted: Vec<HalfEdge> = order.into_iter().map(|position| edges[position]).collect();
    edges.copy_from_slice(&sorted);
}

impl Operator<Graphs> for OrderedHop {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        loop {
            if !self.waiting.hand_on(&self.step, out, cx) {
                return Ok(Flow::More);
            }
            let Some(from) = input.pop_front() else { return Ok(Flow::Ready) };
            for direction in [Direction::Out, Direction::In] {
                if self.direction == direction || self.direction == Direction::Both {
                    self.fetch(&from, direction, cx)?;
                }
            }
            self.waiting.of = Some(from);
        }
    }

    fn release(&mut self, _cx: &mut Cx<'_>) {
        self.waiting.clear();
    }

    fn reset(&mut self) {
        self.waiting.clear();
    }
}

/// A scan, which gathers what it finds before it hands it on.
pub struct OrderedScan {
    elements: Elements,
    is_begun: bool,
    /// It has found more than are brought into order.
    is_too_large: bool,
    step: StepInfo,
    waiting: Waiting,
}

impl OrderedScan {
    /// A scan of these elements.
    pub fn new(elements: Elements, step: StepInfo) -> OrderedScan {
        OrderedScan { elements, is_begun: false, is_too_large: false, step, waiting: Waiting::new() }
    }

    /// Brings what was found into order.
    ///
    /// Errors: those of the account.
    fn sort(&mut self, context: &QueryContext) -> Result<()> {
        let is_edges = matches!(self.waiting.values.front(), Some(Value::Edge(_)));
        let all = if is_edges { context.transaction.edge_count() } else { context.transaction.vertex_count() };
        let all = usize::try_from(all).unwrap_or(usize::MAX);
        let place = |value: &Value| java_hash::place_concurrent(value, all, context);
        let places: Option<Vec<u32>> = self.waiting.values.iter().map(place).collect();
        let Some(mut places) = places else { return Ok(()) };
        let mut seen: Vec<u32> = places.clone();
        seen.sort_unstable();
        if seen.windows(2).any(|two| two[0] == two[1]) && all <= ORDERED_MAX {
            // Whatever else is in the same bucket, or was before that was divided, decides who comes first there.
            self.waiting.held.add(&context.memory, all * 4 * size_of::<u64>())?;
            if let Some(known) = places_of_all(is_edges, context)? {
                let number = |value: &Value| match value {
                    Value::Vertex(vertex) => vertex.0,
                    Value::Edge(edge) => edge.0,
                    _ => u64::MAX,
                };
                places = self.waiting.values.iter().filter_map(|value| known.get(&number(value)).copied()).collect();
            }
        }
        let mut placed: Vec<(u32, Value)> = places.into_iter().zip(self.waiting.values.drain(..)).collect();
        placed.sort_by_key(|(place, _)| *place);
        self.waiting.values.extend(placed.into_iter().map(|(_, value)| value));
        Ok(())
    }
}

/// The places of all vertices or edges in TinkerGraph's map of them; `None` if the hash of an id is not known.
///
/// Errors: if the query must stop.
fn places_of_all(is_edges: bool, context: &QueryContext) -> Result<Option<HashMap<u64, u32>>> {
    let (mut numbers, mut cursor) = (Vec::new(), ScanCursor::default());
    let mut more = true;
    while more {
        context.check()?;
        if is_edges {
            let mut found = Vec::new();
            more = context.transaction.scan_edges(&mut cursor, FETCH_MAX, &mut found);
            numbers.extend(found.into_iter().map(|edge: EdgeId| edge.0));
        } else {
            let mut found = Vec::new();
            more = context.transaction.scan_vertices(&mut cursor, FETCH_MAX, &mut found);
            numbers.extend(found.into_iter().map(|vertex: VertexId| vertex.0));
        }
    }
    let value = |number: &u64| if is_edges { Value::Edge(EdgeId(*number)) } else { Value::Vertex(VertexId(*number)) };
    let hashes: Option<Vec<i32>> = numbers.iter().map(|number| java_hash::hash(&value(number), context)).collect();
    let Some(hashes) = hashes else { return Ok(None) };
    Ok(Some(numbers.into_iter().zip(java_hash::places_in_concurrent(&hashes)).collect()))
}

impl Operator<Graphs> for OrderedScan {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        loop {
            if (!self.is_begun || self.is_too_large) && !self.waiting.hand_on(&self.step, out, cx) {
                return Ok(Flow::More);
            }
            if !self.is_begun {
                let Some(from) = input.pop_front() else { return Ok(Flow::Ready) };
                self.elements.begin(cx.context);
                self.waiting.of = Some(from);
                (self.is_begun, self.is_too_large) = (true, false);
            }
            self.elements.fetch(cx.context)?;
            while let Some(value) = self.elements.next_of_part(cx.context)? {
                self.waiting.held.add(&cx.context.memory, 2 * size_of::<(u32, Value)>())?;
                self.waiting.values.push_back(value);
            }
            self.elements.charge(cx);
            self.is_too_large |= self.waiting.values.len() > ORDERED_MAX;
            if self.elements.is_exhausted() {
                self.elements.end();
                self.is_begun = false;
                if !self.is_too_large {
                    self.sort(cx.context)?;
                }
            } else if cx.exhausted() {
                return Ok(Flow::More);
            }
        }
    }

    fn release(&mut self, _cx: &mut Cx<'_>) {
        self.elements.end();
        self.waiting.clear();
    }

    fn reset(&mut self) {
        self.is_begun = false;
        self.elements.reset();
        self.waiting.clear();
    }
}

/// Adds a hop.
pub fn build_hop(
    builder: &mut Builder,
    node: &Node,
    (direction, labels, reach): (Direction, Vec<Name>, Reach),
    step: &StepInfo,
    chain: &mut Chain,
) {
    let step = step.clone();
    builder.operator(chain, node, false, move || OrderedHop {
        direction,
        labels: LabelSet::new(labels.clone().into()),
        reach,
        step: step.clone(),
        waiting: Waiting::new(),
    });
}
