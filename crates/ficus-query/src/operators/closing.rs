//! Edges that close a cycle: how many lead from the vertex under a label to the vertex a row is at.
//!
//! Rows that differ in what was bound last come one behind the other, so the vertex under the label is the same for many of them: its
//! neighbours are fetched once and sorted, and each row is a search among them. The lists of the vertices met last are kept, since an inner
//! loop comes by the same ones again. Of a vertex with too many neighbours no list is made: there the edges are counted from the other end.

use std::sync::Arc;

use ficus_model::{Direction, Value, VertexId};
use ficus_storage::HalfEdgeCursor;
use hashbrown::HashMap;

use crate::budget::Held;
use crate::context::{Cx, QueryContext, Result};
use crate::elements::{FETCH_MAX, LabelSet};
use crate::error::QueryError;
use crate::logical::{Name, Node, Reach};
use crate::operators::adjacent::vertex_of;
use crate::operators::per_row::PerRow;
use crate::operators::source::resolve_vertex;
use crate::physical::{Builder, Chain};
use crate::traverser::{StepInfo, Traverser};

/// Neighbours of a vertex that a list may hold.
const LIST_MAX: usize = 1 << 16;

/// Neighbours in all lists that are kept; with more, all are forgotten and made anew as they are met.
const KEPT_MAX: usize = 1 << 20;

/// Bytes of an entry of the table of lists.
const ENTRY_BYTES: usize = 2 * size_of::<(VertexId, Option<Arc<[VertexId]>>)>();

/// Counts the edges from the vertex under a label.
pub struct Closing {
    label: Name,
    direction: Direction,
    labels: LabelSet,
    /// The vertex that rows come from now, if any does, and its neighbours in order; no list if they are too many.
    current: Option<(VertexId, Option<Arc<[VertexId]>>)>,
    lists: HashMap<VertexId, Option<Arc<[VertexId]>>>,
    kept: usize,
    held: Held,
    fetched: Vec<VertexId>,
}

impl Clone for Closing {
    /// Lists are each one's own.
    fn clone(&self) -> Closing {
        Closing::new(self.label.clone(), self.direction, self.labels.clone())
    }
}

impl Closing {
    /// Of edges with these labels that lead in `direction` from the vertex under `label`.
    pub fn new(label: Name, direction: Direction, labels: LabelSet) -> Closing {
        Closing {
            label,
            direction,
            labels,
            current: None,
            lists: HashMap::new(),
            kept: 0,
            held: Held::default(),
            fetched: Vec::new(),
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
        match (vertex, &self.current) {
            (Some(vertex), Some((current, _))) if *current == vertex => {}
            (Some(vertex), _) => {
                let list = match self.lists.get(&vertex) {
                    Some(list) => list.clone(),
                    None => self.fetch(vertex, cx)?,
                };
                self.current = Some((vertex, list));
            }
            (None, _) => self.current = None,
        }
        Ok(())
    }

    fn fetch(&mut self, vertex: VertexId, cx: &mut Cx<'_>) -> Result<Option<Arc<[VertexId]>>> {
        self.fetched.clear();
        let mut more = true;
        if let Some(labels) = self.labels.ids(cx.context) {
            let mut cursor = HalfEdgeCursor::default();
            let (fetched, transaction) = (&mut self.fetched, &cx.context.transaction);
            while more && fetched.len() <= LIST_MAX {
                more = transaction.copy_neighbours(vertex, self.direction, labels, &mut cursor, FETCH_MAX, fetched);
            }
        }
        cx.charge(self.fetched.len());
        let is_small = self.fetched.len() <= LIST_MAX;
        self.fetched.sort_unstable();
        let list: Option<Arc<[VertexId]>> = is_small.then(|| self.fetched.as_slice().into());
        let length = list.as_ref().map_or(0, |list| list.len());
        if self.kept + length > KEPT_MAX {
            self.forget();
        }
        self.held.make_room(&cx.context.memory, self.lists.len(), self.lists.capacity(), ENTRY_BYTES)?;
        self.held.add(&cx.context.memory, length * size_of::<VertexId>())?;
        self.kept += length;
        self.lists.insert(vertex, list.clone());
        Ok(list)
    }

    /// Drops vertices that no edge leads to, where that can be told in place.
    pub fn prefilter(&self, vertices: &mut Vec<VertexId>) {
        match &self.current {
            Some((_, Some(list))) => vertices.retain(|vertex| list.binary_search(vertex).is_ok()),
            Some((_, None)) => {}
            None => vertices.clear(),
        }
    }

    /// How many edges lead to a vertex.
    ///
    /// Errors: those that end the query.
    pub fn edges_to(&mut self, vertex: VertexId, cx: &mut Cx<'_>) -> Result<u64> {
        match &self.current {
            Some((_, Some(list))) => {
                let first = list.partition_point(|own| *own < vertex);
                Ok(list[first..].iter().take_while(|own| **own == vertex).count() as u64)
            }
            Some((from, None)) => self.count_back(*from, vertex, cx),
            None => Ok(0),
        }
    }

    fn count_back(&mut self, from: VertexId, to: VertexId, cx: &mut Cx<'_>) -> Result<u64> {
        let Some(labels) = self.labels.ids(cx.context) else { return Ok(0) };
        let (mut cursor, mut more, mut count) = (HalfEdgeCursor::default(), true, 0);
        let back = self.direction.reversed();
        while more {
            cx.check()?;
            self.fetched.clear();
            let transaction = &cx.context.transaction;
            more = transaction.copy_neighbours(to, back, labels, &mut cursor, LIST_MAX, &mut self.fetched);
            count += self.fetched.iter().filter(|own| **own == from).count() as u64;
            cx.charge(self.fetched.len());
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

/// The row once for each edge, if there is any.
fn close(mut row: Traverser, closing: &mut Closing, cx: &mut Cx<'_>) -> Result<Option<Traverser>> {
    closing.start(&row, cx)?;
    let Some(vertex) = vertex_at(cx.context, &row.value) else { return Ok(None) };
    let count = closing.edges_to(vertex, cx)?;
    row.bulk = row.bulk.saturating_mul(count);
    Ok((count > 0).then_some(row))
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
        Node::AdjacentFrom { label, direction, labels } => {
            let closing = Closing::new(label.clone(), *direction, LabelSet::new(labels.clone().into()));
            builder.operator(chain, &node.to_string(), false, move || {
                let mut closing = closing.clone();
                PerRow { function: move |row: Traverser, cx: &mut Cx<'_>| close(row, &mut closing, cx) }
            });
        }
        Node::Recall { label } => {
            let (label, step) = (label.clone(), step.clone());
            builder.operator(chain, &node.to_string(), false, move || {
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
