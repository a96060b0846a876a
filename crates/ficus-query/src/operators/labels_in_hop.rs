//! A hop with `label()` right behind it: how often it leads to each label, and a row for each label and not for each end.
//!
//! What labels the edges of a vertex have, and how many have each, is told by the order in which they are stored, without a look at any; the labels of
//! vertices stand in a column ([`ficus_storage::Snapshot::labels_of_half_edges`], [`ficus_storage::Snapshot::labels_of_vertices`]).
//!
//! Rows come in the order of the ends, and equal ones that follow each other are one that counts as often. Where what is behind gathers them by label, all
//! of a batch are counted together.

use std::collections::VecDeque;
use std::sync::Arc;

use ficus_dataflow::{Flow, NodeName, Operator};
use ficus_model::{Direction, LabelId, Value, VertexId};
use ficus_storage::{HalfEdge, HalfEdgeCursor};

use crate::context::{Cx, Graphs, QueryContext, Result, Traversers};
use crate::elements::{FETCH_MAX, LabelSet};
use crate::logical::{HasContainer, Name, Reach};
use crate::operators::adjacent::vertex_of;
use crate::operators::has::Conditions;
use crate::operators::hop_parts::Prefetched;
use crate::physical::{Builder, Chain};
use crate::traverser::{StepInfo, Traverser};

/// Of an end that was looked at and is no row, so much of a turn is paid.
const LOOKED_AT_PER_UNIT: usize = 8;

/// Different labels that are counted together before their rows go on.
const LABELS_MAX: usize = 64;

struct LabelsInHop {
    direction: Direction,
    labels: LabelSet,
    reach: Reach,
    /// What the ends have to fulfil.
    filter: Option<Conditions>,
    step: StepInfo,
    /// What is behind takes no notice of which of several equal rows comes when.
    gathered: bool,
    current: Option<Current>,
    /// A row that those that are counted now come of, and how often it led to which label.
    of: Option<Traverser>,
    counts: Vec<(LabelId, u64)>,
    /// Inputs whose half-edges are on their way.
    prefetched: Prefetched,
    ends: Vec<VertexId>,
    edges: Vec<HalfEdge>,
    told: Vec<Option<LabelId>>,
}

/// The input that is gone over.
struct Current {
    traverser: Traverser,
    vertex: VertexId,
    cursor: HalfEdgeCursor,
    /// Labels of edges to be gone over, where these have to fulfil something.
    left: VecDeque<(Direction, LabelId)>,
    begun: bool,
}

impl LabelsInHop {
    /// Takes up the next input; false if there is none.
    fn start(&mut self, input: &mut Traversers, cx: &mut Cx<'_>) -> Result<bool> {
        self.prefetched.before(input, self.direction, cx.context);
        while let Some(traverser) = input.pop_front() {
            cx.charge(1);
            self.prefetched.took_one();
            // A vertex that is gone has no neighbours.
            if let Some(vertex) = vertex_of(cx.context, &traverser.value, self.direction, self.reach)? {
                let (cursor, left) = (HalfEdgeCursor::default(), VecDeque::new());
                self.current = Some(Current { traverser, vertex, cursor, left, begun: false });
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Counts a part of what the current input leads to; false once that was the last.
    fn count_part(&mut self, cx: &mut Cx<'_>) -> Result<bool> {
        let LabelsInHop { direction, labels, reach, filter, gathered, current, counts, .. } = self;
        let (Some(current), Some(labels)) = (current, labels.ids(cx.context)) else { return Ok(false) };
        let transaction = &cx.context.transaction;
        let mut looked = 1;
        let more = match (reach, filter) {
            (Reach::Edge, None) => {
                let first = counts.len();
                transaction.labels_of_half_edges(current.vertex, *direction, labels, counts);
                looked += counts.len() - first;
                if *gathered {
                    together(counts, first);
                }
                false
            }
            (Reach::Edge, Some(filter)) => {
                if !current.begun {
                    current.begun = true;
                    let sides: &[Direction] = match direction {
                        Direction::Both => &[Direction::Out, Direction::In],
                        Direction::Out => &[Direction::Out],
                        Direction::In => &[Direction::In],
                    };
                    for side in sides {
                        let mut own = Vec::new();
                        transaction.labels_of_half_edges(current.vertex, *side, labels, &mut own);
                        current.left.extend(own.into_iter().map(|(label, _)| (*side, label)));
                    }
                }
                if let Some((side, label)) = current.left.front().copied() {
                    let Current { vertex, cursor, left, .. } = current;
                    self.edges.clear();
                    if !transaction.half_edges(*vertex, side, &[label], cursor, FETCH_MAX, &mut self.edges) {
                        *cursor = HalfEdgeCursor::default();
                        left.pop_front();
                    }
                    looked += self.edges.len();
                    let edges = &mut self.edges;
                    if !filter.prefilter_edges(cx.context, edges) {
                        keep(edges, |edge| filter.test(&Value::Edge(edge.edge), cx.context))?;
                    }
                    add(counts, label, edges.len() as u64, *gathered);
                }
                !current.left.is_empty()
            }
            (Reach::Vertex, filter) => {
                self.ends.clear();
                self.told.clear();
                let (vertex, cursor) = (current.vertex, &mut current.cursor);
                let more = transaction.copy_neighbours(vertex, *direction, labels, cursor, FETCH_MAX, &mut self.ends);
                looked += self.ends.len();
                let ends = &mut self.ends;
                if let Some(filter) = filter
                    && !filter.prefilter(cx.context, ends)
                {
                    keep(ends, |vertex| filter.test(&Value::Vertex(*vertex), cx.context))?;
                }
                transaction.labels_of_vertices(ends, &mut self.told);
                for same in self.told.chunk_by(|one, next| one == next) {
                    if let [Some(label), ..] = same {
                        add(counts, *label, same.len() as u64, *gathered);
                    }
                }
                more
            }
        };
        cx.charge(looked.div_ceil(LOOKED_AT_PER_UNIT));
        Ok(more)
    }

    /// Whether what comes of the current input may be counted together with what is counted.
    fn joins(&self) -> bool {
        let (Some(of), Some(Current { traverser, .. })) = (&self.of, &self.current) else { return false };
        self.gathered
            && of.has_no_history()
            && traverser.has_no_history()
            && of.marks == traverser.marks
            && of.bulk == traverser.bulk
    }

    /// Makes rows of what is counted.
    fn flush(&mut self, out: &mut Traversers, context: &QueryContext) {
        let Some(of) = self.of.take() else { return };
        for (label, count) in self.counts.drain(..) {
            let mut row = of.advance(Value::String(context.transaction.label_name(label)), &self.step);
            row.bulk = row.bulk.saturating_mul(count);
            out.push_back(row);
        }
    }
}

impl Operator<Graphs> for LabelsInHop {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        loop {
            if self.current.is_none() {
                if !self.start(input, cx)? {
                    self.flush(out, cx.context);
                    return Ok(Flow::Ready);
                }
                if !self.joins() || self.counts.len() >= LABELS_MAX {
                    self.flush(out, cx.context);
                    self.of = self.current.as_ref().map(|current| current.traverser.clone());
                }
            }
            if !self.count_part(cx)? {
                self.current = None;
            } else if self.counts.len() >= LABELS_MAX {
                let of = self.of.clone();
                self.flush(out, cx.context);
                self.of = of;
            }
            if cx.should_yield(out) {
                let is_done = self.current.is_none() && input.is_empty();
                if is_done {
                    self.flush(out, cx.context);
                }
                return Ok(if is_done { Flow::Ready } else { Flow::More });
            }
        }
    }

    fn reset(&mut self) {
        (self.current, self.of, self.prefetched) = (None, None, Prefetched::default());
        self.counts.clear();
        self.ends.clear();
        self.edges.clear();
        self.told.clear();
    }
}

/// Adds to the count of a label: the last, or any if it makes no difference where it stands.
#[inline]
fn add(counts: &mut Vec<(LabelId, u64)>, label: LabelId, count: u64, anywhere: bool) {
    let known = match counts.last_mut() {
        Some(last) if last.0 == label => Some(last),
        _ if anywhere => counts.iter_mut().find(|own| own.0 == label),
        _ => None,
    };
    match known {
        Some((_, own)) => *own = own.saturating_add(count),
        None if count > 0 => counts.push((label, count)),
        None => {}
    }
}

/// Adds what stands from `first` on to what stands before.
fn together(counts: &mut Vec<(LabelId, u64)>, first: usize) {
    let mut kept = first;
    for place in first..counts.len() {
        let (label, count) = counts[place];
        match counts[..kept].iter_mut().find(|own| own.0 == label) {
            Some((_, own)) => *own = own.saturating_add(count),
            None => {
                counts[kept] = (label, count);
                kept += 1;
            }
        }
    }
    counts.truncate(kept);
}

/// Keeps those that pass.
///
/// Errors: those of the test.
fn keep<E>(elements: &mut Vec<E>, mut passes: impl FnMut(&E) -> Result<bool>) -> Result<()> {
    let mut outcome = Ok(());
    elements.retain(|element| match &outcome {
        Ok(()) => passes(element).unwrap_or_else(|error| {
            outcome = Err(error);
            false
        }),
        Err(_) => false,
    });
    outcome
}

/// A hop, and what is between it and `label()`.
pub struct LabelledHop {
    /// As the plan shows it.
    pub name: NodeName,
    /// Where it goes.
    pub direction: Direction,
    /// Along edges with these labels; none: all.
    pub labels: Vec<Name>,
    /// What it leads to.
    pub reach: Reach,
    /// Conditions on that.
    pub containers: Vec<HasContainer>,
    /// Whether rows are gathered by their value behind it.
    pub gathered: bool,
}

/// Adds the operator that carries out a hop and `label()`, whose step this is.
pub fn build(builder: &mut Builder, hop: LabelledHop, step: StepInfo, chain: &mut Chain) -> Result<()> {
    let LabelledHop { name, direction, labels, reach, containers, gathered } = hop;
    let filter = if containers.is_empty() { None } else { Some(Conditions::compile(&containers)?) };
    let labels: Arc<[Name]> = labels.into();
    builder.operator(chain, name, false, move || LabelsInHop {
        direction,
        labels: LabelSet::new(labels.clone()),
        reach,
        filter: filter.clone(),
        step: step.clone(),
        gathered,
        current: None,
        of: None,
        counts: Vec::new(),
        prefetched: Prefetched::default(),
        ends: Vec::new(),
        edges: Vec::new(),
        told: Vec::new(),
    });
    Ok(())
}
