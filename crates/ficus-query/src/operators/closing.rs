//! Edges that close a cycle: how many lead from the vertex under a label to the vertex a row is at, or whether any does.
//!
//! Rows that differ in what was bound last come one behind the other, so the vertex under the label is the same for many of them: its
//! neighbours are fetched once, marked and sorted. Most rows find no mark, and the others are a search among them. The lists of the vertices met last are kept, since an inner
//! loop comes by the same ones again. Of a vertex with many neighbours no list is made before it has been asked for so often that this pays, and never of
//! one with too many: there the edges between the two vertices are looked up, which is done from the end that has fewer. Where reads are recorded, that
//! is so for all: what the query depends on are those edges, and not all that the vertex has.

use std::sync::Arc;

use ficus_model::{Direction, Value, VertexId};
use ficus_storage::{HalfEdge, HalfEdgeCursor};
use hashbrown::HashMap;

use crate::budget::Held;
use crate::context::{Cx, QueryContext, Result};
use crate::elements::{FETCH_MAX, LabelSet};
use crate::error::QueryError;
use crate::logical::{Name, Node, Passes, Reach};
use crate::operators::adjacent::vertex_of;
use crate::operators::known_end::{Between, LOOKS_COST};
use crate::operators::neighbour_list::NeighbourList;
use crate::operators::per_row::PerRow;
use crate::operators::source::resolve_vertex;
use crate::physical::{Builder, Chain};
use crate::traverser::{StepInfo, Traverser};

/// Neighbours of a vertex that a list may hold.
const LIST_MAX: u64 = 1 << 16;

/// Neighbours that are read and sorted in the time of one question for the edges to a vertex.
const NEIGHBOURS_PER_QUESTION: u64 = 32;

/// Neighbours in all lists that are kept; with more, all are forgotten and made anew as they are met.
const KEPT_MAX: usize = 1 << 20;

/// Bytes of an entry of the table of lists.
const ENTRY_BYTES: usize = 2 * size_of::<(VertexId, Neighbours)>();

/// What is known of the neighbours of a vertex.
#[derive(Clone)]
enum Neighbours {
    /// All of them.
    List(Arc<NeighbourList>),
    /// They are many, and a list of them is made after so many more questions, if ever.
    Many { questions: u64 },
}

/// Counts the edges from the vertex under a label.
pub struct Closing {
    label: Name,
    direction: Direction,
    labels: LabelSet,
    passes: Passes,
    /// The vertex that rows come from now, if any does, and its neighbours.
    current: Option<(VertexId, Neighbours)>,
    lists: HashMap<VertexId, Neighbours>,
    kept: usize,
    held: Held,
    fetched: Vec<VertexId>,
    between: Vec<HalfEdge>,
}

impl Clone for Closing {
    /// Lists are each one's own.
    fn clone(&self) -> Closing {
        Closing::new(self.label.clone(), self.direction, self.labels.clone(), self.passes)
    }
}

impl Closing {
    /// Of edges with these labels that lead in `direction` from the vertex under `label`.
    pub fn new(label: Name, direction: Direction, labels: LabelSet, passes: Passes) -> Closing {
        Closing {
            label,
            direction,
            labels,
            passes,
            current: None,
            lists: HashMap::new(),
            kept: 0,
            held: Held::default(),
            fetched: Vec::new(),
            between: Vec::new(),
        }
    }

    /// Makes ready for what comes of a row.
    ///
    /// Errors: `Invalid` if there is no vertex under the label, those of the account, and those that end the query.
    pub fn start(&mut self, row: &Traverser, cx: &mut Cx<'_>) -> Result<()> {
        let value = row.labelled(&self.label).ok_or_else(|| {
            QueryError::invalid(format!("match() comes to a pattern from '{}' before that is bound", self.label))
        })?;
        let vertex = vertex_of(cx.context, value, self.direction, Reach::Vertex)?;
        if vertex.is_some() && vertex == self.current.as_ref().map(|(current, _)| *current) {
            return Ok(());
        }
        if let Some((before, neighbours @ Neighbours::Many { .. })) = self.current.take()
            && let Some(kept) = self.lists.get_mut(&before)
        {
            *kept = neighbours;
        }
        if let Some(vertex) = vertex {
            let neighbours = match self.lists.get(&vertex) {
                Some(neighbours) => neighbours.clone(),
                None => self.fetch(vertex, cx)?,
            };
            self.current = Some((vertex, neighbours));
        }
        Ok(())
    }

    /// Looks at a vertex that was not met before, or is no longer known.
    fn fetch(&mut self, vertex: VertexId, cx: &mut Cx<'_>) -> Result<Neighbours> {
        let mut cursor = HalfEdgeCursor::default();
        self.fetched.clear();
        let mut neighbours = None;
        if let Some(labels) = self.labels.ids(cx.context) {
            let (fetched, transaction) = (&mut self.fetched, &cx.context.transaction);
            if transaction.may_write() {
                neighbours = Some(Neighbours::Many { questions: u64::MAX });
            } else if transaction.copy_neighbours(vertex, self.direction, labels, &mut cursor, FETCH_MAX, fetched) {
                let degree = transaction.degree(vertex, self.direction, labels);
                let questions = if degree > LIST_MAX { u64::MAX } else { degree / NEIGHBOURS_PER_QUESTION };
                neighbours = Some(Neighbours::Many { questions });
            }
        }
        cx.charge(self.fetched.len());
        let neighbours = neighbours.unwrap_or_else(|| self.list());
        self.keep(vertex, &neighbours, cx.context)?;
        Ok(neighbours)
    }

    /// Makes the list of a vertex that has been asked for often.
    fn fetch_all(&mut self, vertex: VertexId, cx: &mut Cx<'_>) -> Result<Neighbours> {
        let (mut cursor, mut more) = (HalfEdgeCursor::default(), true);
        self.fetched.clear();
        while more && let Some(labels) = self.labels.ids(cx.context) {
            let (fetched, transaction) = (&mut self.fetched, &cx.context.transaction);
            more = transaction.copy_neighbours(vertex, self.direction, labels, &mut cursor, FETCH_MAX, fetched);
        }
        cx.charge(self.fetched.len());
        let list = self.list();
        self.keep(vertex, &list, cx.context)?;
        Ok(list)
    }

    /// What was fetched.
    fn list(&mut self) -> Neighbours {
        Neighbours::List(Arc::new(NeighbourList::new(&mut self.fetched)))
    }

    fn keep(&mut self, vertex: VertexId, neighbours: &Neighbours, context: &QueryContext) -> Result<()> {
        let (length, bytes) = match neighbours {
            Neighbours::List(list) => (list.size(), list.bytes()),
            Neighbours::Many { .. } => (0, 0),
        };
        if self.kept + length > KEPT_MAX {
            self.forget();
        }
        self.held.make_room(&context.memory, self.lists.len(), self.lists.capacity(), ENTRY_BYTES)?;
        self.held.add(&context.memory, bytes)?;
        self.kept += length;
        self.lists.insert(vertex, neighbours.clone());
        Ok(())
    }

    /// Whether what passes does so once.
    pub fn passes_once(&self) -> bool {
        self.passes != Passes::EachEdge
    }

    /// Drops vertices that do not pass, where that can be told in place.
    pub fn prefilter(&self, vertices: &mut Vec<VertexId>) {
        let passes_without = self.passes == Passes::NoEdge;
        match &self.current {
            Some((_, Neighbours::List(list))) => {
                vertices.retain(|vertex| list.contains(*vertex) != passes_without);
            }
            None if !passes_without => vertices.clear(),
            Some((_, Neighbours::Many { .. })) | None => {}
        }
    }

    /// Whether [`Closing::times`] is told without a look at the graph.
    pub fn knows_all(&self) -> bool {
        !matches!(self.current, Some((_, Neighbours::Many { .. })))
    }

    /// How often a row at a vertex passes.
    ///
    /// Errors: those of the account, and those that end the query.
    pub fn times(&mut self, vertex: VertexId, cx: &mut Cx<'_>) -> Result<u64> {
        Ok(self.passes.times(self.edges_to(vertex, cx)?))
    }

    /// How many edges lead to a vertex.
    fn edges_to(&mut self, vertex: VertexId, cx: &mut Cx<'_>) -> Result<u64> {
        let from = match &mut self.current {
            Some((_, Neighbours::List(list))) => return Ok(list.count(vertex)),
            Some((from, Neighbours::Many { questions: 0 })) => {
                let from = *from;
                let list = self.fetch_all(from, cx)?;
                self.current = Some((from, list));
                return self.edges_to(vertex, cx);
            }
            Some((from, Neighbours::Many { questions })) => {
                *questions -= u64::from(*questions < u64::MAX);
                *from
            }
            None => return Ok(0),
        };
        self.count_between(from, vertex, cx)
    }

    fn count_between(&mut self, from: VertexId, to: VertexId, cx: &mut Cx<'_>) -> Result<u64> {
        let Some(labels) = self.labels.ids(cx.context) else { return Ok(0) };
        let (mut between, mut more, mut count) = (Between::to(to), true, 0);
        while more {
            cx.check()?;
            self.between.clear();
            more = between.read(&cx.context.transaction, from, self.direction, labels, &mut self.between);
            count += self.between.len() as u64;
            cx.charge(if more { LOOKS_COST } else { 1 });
        }
        Ok(count)
    }

    /// Forgets all lists and gives their memory back.
    pub fn forget(&mut self) {
        self.current = None;
        self.lists = HashMap::new();
        self.kept = 0;
        self.held.give_back();
    }
}

impl std::fmt::Display for Closing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[closing {} from {}]", self.direction, self.label)
    }
}

/// The row as often as it passes, if it does.
fn close(mut row: Traverser, closing: &mut Closing, cx: &mut Cx<'_>) -> Result<Option<Traverser>> {
    closing.start(&row, cx)?;
    let times = match vertex_at(cx.context, &row.value) {
        Some(vertex) => closing.times(vertex, cx)?,
        None => closing.passes.times(0),
    };
    row.bulk = row.bulk.saturating_mul(times);
    Ok((times > 0).then_some(row))
}

/// The vertex that a row is at; no edge leads to anything else.
fn vertex_at(context: &QueryContext, value: &Value) -> Option<VertexId> {
    match value {
        Value::Vertex(vertex) => Some(*vertex),
        Value::Element(_) => resolve_vertex(context, value),
        _ => None,
    }
}

/// Adds the operator of a closing edge that no hop took over, or of the way back to what is under a label.
pub fn build(builder: &mut Builder, node: &Node, step: &StepInfo, chain: &mut Chain) -> Result<()> {
    match node {
        Node::AdjacentFrom { label, direction, labels, passes } => {
            let closing = Closing::new(label.clone(), *direction, LabelSet::new(labels.clone().into()), *passes);
            builder.operator(chain, node, false, move || {
                let mut closing = closing.clone();
                PerRow { function: move |row: Traverser, cx: &mut Cx<'_>| close(row, &mut closing, cx) }
            });
        }
        Node::Recall { label } => {
            let (label, step) = (label.clone(), step.clone());
            builder.operator(chain, node, false, move || {
                let (label, step) = (label.clone(), step.clone());
                PerRow {
                    function: move |row: Traverser, _: &mut Cx<'_>| {
                        let value = row.labelled(&label).cloned();
                        Ok(value.map(|value| row.move_to(value, &step)))
                    },
                }
            });
        }
        _ => return Err(QueryError::invalid(format!("{node} is no part of match()"))),
    }
    Ok(())
}
