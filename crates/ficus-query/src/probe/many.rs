//! Rows of many vertices at once.
//!
//! A walk whose rows are all wanted, since it counts or gathers them, need not go depth first. What a hop has fetched goes through the next
//! steps together: one loop fetches the neighbours of all, so that the processor waits for the memory of many at once, and a comparison
//! looks up what is under its label once. Rows and their order are those of the walk one by one.

use std::ops::ControlFlow;

use ficus_model::{Comparison, Direction, LabelId, Pop, Value, VertexId};
use ficus_storage::HalfEdgeCursor;
use hashbrown::HashSet;

use super::walk::{Row, Sink, Walk, filter, walk};
use super::{Fetched, Halt, Step, Surroundings, batch};
use crate::context::QueryContext;
use crate::elements::{FETCH_MAX, PREFETCHED};
use crate::logical::{Name, Reach, WherePredicate};
use crate::operators::combine::found_under;
use crate::operators::has::members;
use crate::operators::known_end::{Between, LOOKS_COST};
use crate::operators::scoped_where;

/// Vertices that a hop gathers before they go on, give or take what one fetch brings.
const TOGETHER: usize = 1024;

/// More comparisons than this, and the members of a collection are looked up by hash.
const COMPARISONS_MAX: usize = 64;

/// Takes vertices through the steps, each as a row of this bulk. `vertices` is left in any state.
pub(super) fn walk_many(
    steps: &mut [Step],
    vertices: &mut Vec<VertexId>,
    bulk: u64,
    buffers: &mut Vec<Fetched>,
    around: &mut Surroundings<'_>,
    sink: &mut Sink<'_>,
) -> Walk {
    if vertices.is_empty() {
        return Ok(ControlFlow::Continue(()));
    }
    match steps {
        [Step::Hop { reach: Reach::Vertex, edges: None, .. }, ..] => {
            let mut buffer = buffers.pop().unwrap_or_default();
            let flow = hop_from_all(steps, vertices, bulk, &mut buffer.vertices, buffers, around, sink);
            buffers.push(buffer);
            flow
        }
        [Step::Has(conditions), rest @ ..] => {
            if !conditions.prefilter(around.context, vertices) {
                retain(vertices, |vertex| Ok(conditions.test(&Value::Vertex(vertex), around.context)?))?;
            }
            walk_many(rest, vertices, bulk, buffers, around, sink)
        }
        [Step::Compare(predicate), rest @ ..] => {
            compare(predicate, vertices, around)?;
            walk_many(rest, vertices, bulk, buffers, around, sink)
        }
        [Step::Filter { rule, probes }, rest @ ..] => {
            let mut verdicts = buffers.pop().unwrap_or_default();
            verdicts.verdicts.clear();
            batch::filter(*rule, probes, vertices, &mut verdicts.verdicts, around)?;
            let mut known = verdicts.verdicts.iter();
            retain(vertices, |vertex| match known.next().copied().flatten() {
                Some(verdict) => Ok(verdict),
                None => filter(*rule, probes, &Value::Vertex(vertex), around),
            })?;
            buffers.push(verdicts);
            walk_many(rest, vertices, bulk, buffers, around, sink)
        }
        [Step::Constant(constant), rest @ ..] if adds_exactly(constant) => {
            let value = constant.clone();
            around.pay(1)?;
            walk(
                rest,
                Row { value, bulk: bulk.saturating_mul(vertices.len() as u64), origin: None },
                buffers,
                around,
                sink,
            )
        }
        _ => {
            for vertex in vertices.iter() {
                let row = Row { value: Value::Vertex(*vertex), bulk, origin: None };
                if walk(steps, row, buffers, around, sink)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(()))
        }
    }
}

/// Whether the sum of equal values is their number times one of them, whoever adds them up.
fn adds_exactly(value: &Value) -> bool {
    !matches!(value, Value::Float(_) | Value::Double(_))
}

/// The first step, a hop to vertices, from all of these, and what is behind it.
fn hop_from_all(
    steps: &mut [Step],
    vertices: &[VertexId],
    bulk: u64,
    reached: &mut Vec<VertexId>,
    buffers: &mut Vec<Fetched>,
    around: &mut Surroundings<'_>,
    sink: &mut Sink<'_>,
) -> Walk {
    let [Step::Hop { direction, labels, filter, known, .. }, rest @ ..] = steps else {
        return Ok(ControlFlow::Continue(()));
    };
    let Some(labels) = labels.ids(around.context) else { return Ok(ControlFlow::Continue(())) };
    reached.clear();
    let mut go_on = |reached: &mut Vec<VertexId>, around: &mut Surroundings<'_>| {
        if let Some(filter) = filter.as_mut()
            && !filter.prefilter(around.context, reached)
        {
            retain(reached, |vertex| Ok(filter.test(&Value::Vertex(vertex), around.context)?))?;
        }
        let flow = walk_many(rest, reached, bulk, buffers, around, sink)?;
        reached.clear();
        Ok::<_, Halt>(flow)
    };
    let Some(known) = known else {
        let mut place = 0;
        loop {
            let before = (place, reached.len());
            place += fetch_all(&vertices[place..], *direction, labels, reached, around.context);
            around.pay(place - before.0 + reached.len() - before.1)?;
            // The rest of one with very many.
            if let Some(vertex) = vertices.get(place).filter(|_| reached.len() < TOGETHER) {
                let (mut cursor, mut more) = (HalfEdgeCursor::default(), true);
                while more {
                    let transaction = &around.context.transaction;
                    let before = reached.len();
                    more = transaction.copy_neighbours(*vertex, *direction, labels, &mut cursor, FETCH_MAX, reached);
                    around.pay(1 + reached.len() - before)?;
                    if more && go_on(reached, around)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                place += 1;
            }
            let is_end = place == vertices.len();
            if (is_end || reached.len() >= TOGETHER) && go_on(reached, around)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            if is_end {
                return Ok(ControlFlow::Continue(()));
            }
        }
    };
    let (mut found, mut fetched) = (Vec::new(), Vec::new());
    let end = known.vertex(around.traverser, around.context);
    if end == Some(None) {
        return Ok(ControlFlow::Continue(()));
    }
    for (index, vertex) in vertices.iter().enumerate() {
        if index % PREFETCHED == 0 {
            let next = vertices[index..].iter().take(PREFETCHED).copied();
            around.context.transaction.prefetch_half_edges(next, *direction);
        }
        let mut cursor = HalfEdgeCursor::default();
        let mut between = Between::at_once(Some(&mut *known), around.traverser, around.context);
        let mut may_seek = between.is_none();
        let mut counted = None;
        if let Some(Some(end)) = end {
            let hop = (*vertex, *direction, labels);
            let count = known.edges_from(hop, end, around.context, &mut fetched);
            around.pay(count.looked)?;
            counted = count.edges.map(|edges| (edges, end));
        }
        loop {
            let before = reached.len();
            let transaction = &around.context.transaction;
            let mut more = match (&mut between, counted) {
                (_, Some((edges, end))) => {
                    reached.extend((0..edges).map(|_| end));
                    false
                }
                (Some(_), None) => true,
                (None, None) => {
                    transaction.copy_neighbours(*vertex, *direction, labels, &mut cursor, FETCH_MAX, reached)
                }
            };
            if more && std::mem::take(&mut may_seek) {
                let hop = (*vertex, *direction, labels);
                between = Between::instead(Some(&mut *known), around.traverser, around.context, hop);
                if between.is_some() {
                    reached.truncate(before);
                }
            }
            if let Some(between) = &mut between {
                more = between.read(transaction, *vertex, *direction, labels, &mut found);
                reached.extend(found.drain(..).map(|half_edge| half_edge.neighbour));
                around.pay(if more { LOOKS_COST } else { 1 })?;
            }
            around.pay(1 + reached.len() - before)?;
            let is_last = index + 1 == vertices.len() && !more;
            if (reached.len() >= TOGETHER || is_last) && go_on(reached, around)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            if !more {
                break;
            }
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Appends the neighbours of these vertices, one after the other, until there are enough or one has more than a fetch brings; gives the number
/// of vertices of which all are there.
fn fetch_all(
    vertices: &[VertexId],
    direction: Direction,
    labels: &[LabelId],
    reached: &mut Vec<VertexId>,
    context: &QueryContext,
) -> usize {
    let transaction = &context.transaction;
    transaction.visit_hops(vertices, direction, labels, |place, ends| {
        let start = reached.len();
        if start >= TOGETHER {
            return ControlFlow::Break(());
        }
        let has_all = match ends {
            Some(ends) if ends.iter().all(|own| own.len() <= FETCH_MAX) => {
                ends.into_iter().for_each(|own| own.for_each(|neighbour| reached.push(neighbour)));
                true
            }
            Some(_) => false,
            None => {
                let (vertex, mut cursor) = (vertices[place], HalfEdgeCursor::default());
                !transaction.copy_neighbours(vertex, direction, labels, &mut cursor, FETCH_MAX, reached)
            }
        };
        if has_all {
            return ControlFlow::Continue(());
        }
        reached.truncate(start);
        ControlFlow::Break(())
    })
}

/// Keeps the vertices that pass, up to the first for which that cannot be told.
pub(super) fn retain(
    vertices: &mut Vec<VertexId>,
    mut passes: impl FnMut(VertexId) -> Result<bool, Halt>,
) -> Result<(), Halt> {
    let mut halt = None;
    vertices.retain(|vertex| {
        halt.is_none()
            && passes(*vertex).unwrap_or_else(|error| {
                halt = Some(error);
                false
            })
    });
    halt.map_or(Ok(()), Err)
}

/// Keeps the vertices for which a comparison with what is under labels holds.
fn compare(
    predicate: &WherePredicate,
    vertices: &mut Vec<VertexId>,
    around: &mut Surroundings<'_>,
) -> Result<(), Halt> {
    let (label, is_within) = match predicate {
        WherePredicate::Within(labels) => (labels.as_slice(), true),
        WherePredicate::Without(labels) => (labels.as_slice(), false),
        _ => ([].as_slice(), true),
    };
    if compare_with_vertex(predicate, vertices, around) {
        return Ok(());
    }
    if let [label] = label
        && let Some(others) = vertices_under(label, around)
    {
        if others.len().saturating_mul(vertices.len()) > COMPARISONS_MAX {
            let others: HashSet<VertexId> = others.into_iter().collect();
            vertices.retain(|vertex| others.contains(vertex) == is_within);
        } else {
            vertices.retain(|vertex| others.contains(vertex) == is_within);
        }
        return Ok(());
    }
    let (traverser, context) = (around.traverser, around.context);
    retain(vertices, |vertex| Ok(scoped_where::holds(predicate, &Value::Vertex(vertex), traverser, context)?))
}

/// Drops vertices from which the next step, a hop to a known vertex, finds nothing. `fetched` is left in any state.
pub(super) fn drop_without_edge(
    steps: &mut [Step],
    vertices: &mut Vec<VertexId>,
    fetched: &mut Vec<VertexId>,
    around: &mut Surroundings<'_>,
) -> Result<(), Halt> {
    let steps = match steps {
        [Step::Verdict(_), steps @ ..] => steps,
        steps => steps,
    };
    let [Step::Hop { direction, labels, reach: Reach::Vertex, edges: None, known: Some(known), .. }, ..] = steps else {
        return Ok(());
    };
    let (Some(labels), Some(Some(end))) = (labels.ids(around.context), known.vertex(around.traverser, around.context))
    else {
        return Ok(());
    };
    retain(vertices, |vertex| {
        let counted = known.edges_from((vertex, *direction, labels), end, around.context, fetched);
        around.pay(counted.looked)?;
        Ok(counted.edges != Some(0))
    })
}

/// As [`compare`], where that is whether they are the stored vertex under a label; false if it is not.
pub(super) fn compare_with_vertex(
    predicate: &WherePredicate,
    vertices: &mut Vec<VertexId>,
    around: &Surroundings<'_>,
) -> bool {
    let (is_equal, label) = match predicate {
        WherePredicate::Compare(Comparison::Eq, label) => (true, label),
        WherePredicate::Compare(Comparison::Neq, label) => (false, label),
        _ => return false,
    };
    if around.context.side_effects.contains(label) {
        return false;
    }
    match found_under(around.context, &Value::Null, around.traverser, Pop::Last, label) {
        Some(Value::Vertex(other)) => {
            vertices.retain(|vertex| (*vertex == other) == is_equal);
            true
        }
        _ => false,
    }
}

/// The members of the collection of stored vertices that the walk has under a label; `None` if it is something else, or a side effect, which
/// knows its members better.
fn vertices_under(label: &Name, around: &Surroundings<'_>) -> Option<Vec<VertexId>> {
    if around.context.side_effects.contains(label) {
        return None;
    }
    // A vertex has no entries of its own, so any other value that has none stands for it.
    let found = found_under(around.context, &Value::Null, around.traverser, Pop::Last, label)?;
    let vertex = |value: &Value| match value {
        Value::Vertex(vertex) => Some(*vertex),
        _ => None,
    };
    members(&found)?.map(vertex).collect()
}
