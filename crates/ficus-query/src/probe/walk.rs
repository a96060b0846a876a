//! Walking: the steps of a probe, depth first.

use std::ops::ControlFlow;

use ficus_model::{Shared, Value, VertexId};
use ficus_storage::HalfEdgeCursor;

use super::compile::ends_of;
use super::verdicts::Known;
use super::{Fetched, Halt, Probe, Rule, Step, Surroundings, Tried, batch, many};
use crate::context::{Cx, Result};
use crate::elements::FETCH_MAX;
use crate::functions::members;
use crate::logical::Reach;
use crate::modulate::column_of;
use crate::operators::adjacent::vertex_of;
use crate::operators::combine::found_under;
use crate::operators::edge_vertex::edge_of;
use crate::operators::has::has_property;
use crate::operators::known_end::{Between, LOOKS_COST};
use crate::operators::property::read_token;
use crate::operators::scalar::of_value;
use crate::operators::scoped_where;
use crate::traverser::{Traverser, work_of};

/// Half-edges fetched at first; many walks end at the first that fits.
const FIRST_FETCH: usize = 32;

/// A kibibyte of a map counts as so many elements, as a power of two: what walks gather is bounded by those.
const KIBIBYTE_ITEMS: u32 = 4;

pub(super) type Walk = std::result::Result<ControlFlow<()>, Halt>;

/// Takes a row; `Break` ends the walk.
pub(super) type Sink<'s> = dyn FnMut(Value, u64, &mut Surroundings<'_>) -> Walk + 's;

/// Where a row is, and how it came there.
pub(super) struct Row {
    pub(super) value: Value,
    pub(super) bulk: u64,
    /// The vertex before an edge.
    pub(super) origin: Option<VertexId>,
}

impl Probe {
    /// Hands `take` the rows for `value` until it says `false`, or all are out.
    pub(super) fn run(
        &mut self,
        value: &Value,
        traverser: Option<&Traverser>,
        cx: &Cx<'_>,
        take: &mut dyn FnMut(Value, u64) -> bool,
    ) -> Result<Tried<()>> {
        let mut around = Surroundings::of(traverser, self.patience, cx);
        let flow = self.rows(value.clone(), 1, &mut around, &mut |value, bulk, _| {
            Ok(if take(value, bulk) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        });
        self.tried(flow.map(|_| ()), &around)
    }

    /// The rows for one value. `Break` says that the sink wants no more; a range of the probe's own that is full does not.
    pub(super) fn rows(&mut self, value: Value, bulk: u64, around: &mut Surroundings<'_>, sink: &mut Sink<'_>) -> Walk {
        // What the walk around wants is no matter of this one.
        let wants_all = std::mem::replace(&mut around.wants_all, false);
        let flow = self.rows_of_arm(value, bulk, around, sink);
        around.wants_all = wants_all;
        flow
    }

    /// As [`Probe::rows`], all of which are wanted if those of the walk around are.
    pub(super) fn rows_of_arm(
        &mut self,
        value: Value,
        bulk: u64,
        around: &mut Surroundings<'_>,
        sink: &mut Sink<'_>,
    ) -> Walk {
        let mut flow = ControlFlow::Continue(());
        let _ = self.segment_by_segment(value, bulk, around, &mut |value, bulk, around| {
            flow = sink(value, bulk, around)?;
            Ok(flow)
        })?;
        Ok(flow)
    }

    fn segment_by_segment(
        &mut self,
        value: Value,
        bulk: u64,
        around: &mut Surroundings<'_>,
        sink: &mut Sink<'_>,
    ) -> Walk {
        let Some((last, before)) = self.segments.split_last_mut() else { return Ok(ControlFlow::Continue(())) };
        let wants_all = around.wants_all && last.wants_all;
        let buffers = &mut self.buffers;
        last.steps.iter_mut().for_each(Step::begin);
        if before.is_empty() {
            around.wants_all = wants_all;
            return walk(&mut last.steps, Row { value, bulk, origin: None }, buffers, around, sink);
        }
        let mut inputs = vec![(value, bulk)];
        for segment in before {
            let Some(gather) = &mut segment.end else { continue };
            gather.clear();
            segment.steps.iter_mut().for_each(Step::begin);
            around.wants_all = segment.wants_all;
            for (value, bulk) in inputs.drain(..) {
                let row = Row { value, bulk, origin: None };
                let flow = walk(&mut segment.steps, row, buffers, around, &mut |value, bulk, around| {
                    gather.add(value, bulk, around)?;
                    Ok(ControlFlow::Continue(()))
                })?;
                if flow.is_break() {
                    break;
                }
            }
            gather.finish(around.context, &mut inputs)?;
        }
        around.wants_all = false;
        for (value, bulk) in inputs {
            if walk(&mut last.steps, Row { value, bulk, origin: None }, buffers, around, sink)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Whether there is a row for this value; the probe is that of a test.
    pub(super) fn exists(&mut self, value: &Value, around: &mut Surroundings<'_>) -> std::result::Result<bool, Halt> {
        let vertex = match value {
            Value::Vertex(vertex) => Some(*vertex),
            _ => None,
        };
        if let Some(found) = vertex.and_then(|vertex| self.known(vertex, around.context)) {
            return Ok(found);
        }
        let before = around.looked;
        let flow = self.rows(value.clone(), 1, around, &mut |_, _, _| Ok(ControlFlow::Break(())))?;
        if let Some(vertex) = vertex {
            around.beside += self.learn(vertex, flow.is_break(), around.looked - before, around.context);
        }
        Ok(flow.is_break())
    }
}

impl Step {
    /// Forgets what it remembers of the evaluation before.
    fn begin(&mut self) {
        match self {
            Step::Range { seen, .. } => *seen = 0,
            Step::Dedup(seen) => seen.clear(),
            _ => {}
        }
    }
}

/// Takes a row through the steps. `Break` comes from the sink, or from a range that is full.
pub(super) fn walk(
    steps: &mut [Step],
    row: Row,
    buffers: &mut Vec<Fetched>,
    around: &mut Surroundings<'_>,
    sink: &mut Sink<'_>,
) -> Walk {
    let Some((step, rest)) = steps.split_first_mut() else { return sink(row.value, row.bulk, around) };
    around.pay(1)?;
    let Row { value, bulk, origin } = row;
    let passes = match step {
        Step::Hop { .. } => {
            let mut buffer = buffers.pop().unwrap_or_default();
            let flow = hop(step, rest, &value, bulk, &mut buffer, buffers, around, sink);
            buffers.push(buffer);
            return flow;
        }
        Step::Ends(direction) => {
            let edge = edge_of(around.context, &value, Some(*direction))?;
            if let Some(record) = edge.and_then(|edge| around.context.transaction.edge(edge)) {
                let (out, in_) = ends_of(*direction);
                let ends = [out.then_some(record.out), in_.then_some(record.in_)];
                for end in ends.into_iter().flatten() {
                    let row = Row { value: Value::Vertex(end), bulk, origin: None };
                    if walk(rest, row, buffers, around, sink)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
            }
            return Ok(ControlFlow::Continue(()));
        }
        Step::OtherEnd => {
            let Value::Edge(edge) = value else { return Ok(ControlFlow::Continue(())) };
            let Some(record) = around.context.transaction.edge(edge) else { return Ok(ControlFlow::Continue(())) };
            let other = if origin == Some(record.out) { record.in_ } else { record.out };
            return walk(rest, Row { value: Value::Vertex(other), bulk, origin: None }, buffers, around, sink);
        }
        Step::Values(reader) => {
            reader.read(&value, around.context)?;
            let mut found = reader.take();
            let mut flow = Ok(ControlFlow::Continue(()));
            for value in found.drain(..) {
                flow = walk(rest, Row { value, bulk, origin: None }, buffers, around, sink);
                if !matches!(flow, Ok(ControlFlow::Continue(()))) {
                    break;
                }
            }
            reader.keep_room(found);
            return flow;
        }
        Step::Token(token) => {
            let value = read_token(&value, *token, around.context)?;
            return walk(rest, Row { value, bulk, origin: None }, buffers, around, sink);
        }
        Step::Scalar(function) => {
            // What takes long has to be watched.
            if work_of(&value) > 0 {
                return Err(Halt::TooLong);
            }
            return match of_value(function, &value, around.context)? {
                Some(value) => walk(rest, Row { value, bulk, origin: None }, buffers, around, sink),
                None => Ok(ControlFlow::Continue(())),
            };
        }
        Step::Math(formula) => {
            return match formula.value(&value, around.traverser, around.context)? {
                Some(value) => walk(rest, Row { value, bulk, origin: None }, buffers, around, sink),
                None => Ok(ControlFlow::Continue(())),
            };
        }
        Step::Map(maps) => {
            let map = maps.make(&value, around.context)?;
            // A barrier may gather many.
            around.pay(map.len() + map.values().map(|value| work_of(value) << KIBIBYTE_ITEMS).sum::<usize>())?;
            let value = Value::Map(Shared::new(map));
            return walk(rest, Row { value, bulk, origin: None }, buffers, around, sink);
        }
        Step::Unfold => {
            around.pay(members::places(&value))?;
            for (value, times) in members::iterate(&value) {
                let row = Row { value, bulk: bulk.saturating_mul(times), origin: None };
                if walk(rest, row, buffers, around, sink)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            return Ok(ControlFlow::Continue(()));
        }
        Step::Sack => {
            // What comes from elsewhere has a sack of its own.
            let Some(traverser) = around.traverser else { return Err(Halt::TooLong) };
            let value = traverser.sack().cloned().unwrap_or(Value::Null);
            return walk(rest, Row { value, bulk, origin: None }, buffers, around, sink);
        }
        Step::Constant(constant) => {
            let value = constant.clone();
            return walk(rest, Row { value, bulk, origin: None }, buffers, around, sink);
        }
        Step::Column(column) => {
            let value = column_of(&value, *column, around.context)?;
            return walk(rest, Row { value, bulk, origin: None }, buffers, around, sink);
        }
        Step::Select { pop, label, by } => {
            let found = found_under(around.context, &value, around.traverser, *pop, label);
            let found = match found {
                Some(found) => by.evaluate(&found, around.context)?,
                None => None,
            };
            return match found {
                Some(value) => walk(rest, Row { value, bulk, origin: None }, buffers, around, sink),
                None => Ok(ControlFlow::Continue(())),
            };
        }
        Step::Coalesce(probes) => {
            for probe in probes {
                let mut found = false;
                let flow = probe.rows(value.clone(), 1, around, &mut |value, times, around| {
                    found = true;
                    let row = Row { value, bulk: bulk.saturating_mul(times), origin: None };
                    walk(rest, row, buffers, around, sink)
                })?;
                if flow.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                if found {
                    break;
                }
            }
            return Ok(ControlFlow::Continue(()));
        }
        Step::Union(probes) => {
            for probe in probes {
                let wants_all = around.wants_all;
                let flow = probe.rows_of_arm(value.clone(), bulk, around, &mut |value, bulk, around| {
                    walk(rest, Row { value, bulk, origin: None }, buffers, around, sink)
                });
                around.wants_all = wants_all;
                if flow?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            return Ok(ControlFlow::Continue(()));
        }
        Step::Choose(choice) => {
            let arm = choice.arm(&value, around)?;
            let Some(arm) = arm else { return walk(rest, Row { value, bulk, origin: None }, buffers, around, sink) };
            let wants_all = around.wants_all;
            let flow = arm.rows_of_arm(value, bulk, around, &mut |value, bulk, around| {
                walk(rest, Row { value, bulk, origin: None }, buffers, around, sink)
            });
            around.wants_all = wants_all;
            return flow;
        }
        Step::Project(projection) => {
            let value = projection.map(&value, around)?;
            return walk(rest, Row { value, bulk, origin: None }, buffers, around, sink);
        }
        Step::Each { probe, first_only } => {
            let mut ends = false;
            let flow = probe.rows(value, 1, around, &mut |value, times, around| {
                let times = if *first_only { 1 } else { times };
                let row = Row { value, bulk: bulk.saturating_mul(times), origin: None };
                ends = walk(rest, row, buffers, around, sink)?.is_break();
                Ok(if ends || *first_only { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            });
            let _ = flow?;
            return Ok(if ends { ControlFlow::Break(()) } else { ControlFlow::Continue(()) });
        }
        Step::Loop(own) => {
            return own.run(value, bulk, around, &mut |value, bulk, around| {
                walk(rest, Row { value, bulk, origin: None }, buffers, around, sink)
            });
        }
        Step::Range { low, high, seen } => {
            let first = *seen;
            let last = first.saturating_add(bulk);
            *seen = last;
            let is_full = last >= *high;
            let (from, to) = (first.max(*low), last.min(*high));
            let flow = match from < to {
                true => walk(rest, Row { value, bulk: to - from, origin }, buffers, around, sink)?,
                false => ControlFlow::Continue(()),
            };
            return Ok(if is_full { ControlFlow::Break(()) } else { flow });
        }
        Step::Dedup(seen) => {
            if !seen.insert(value.clone()) {
                return Ok(ControlFlow::Continue(()));
            }
            return walk(rest, Row { value, bulk: 1, origin }, buffers, around, sink);
        }
        Step::Verdict(verdicts) => match verdicts.of(&value, around.context) {
            Known::Found => return sink(value, bulk, around),
            Known::NotFound => false,
            Known::WalkOn => true,
            Known::Ask(vertex) => {
                let flow = walk(rest, Row { value, bulk, origin }, buffers, around, sink)?;
                verdicts.put(vertex, flow.is_break(), around.context);
                return Ok(flow);
            }
        },
        Step::Has(conditions) => conditions.test(&value, around.context)?,
        Step::HasProperty { key, negated } => {
            has_property(&value, key, around.context)?.is_some_and(|found| found != *negated)
        }
        Step::Is(predicate) => predicate.test(&value, around.context).map_err(crate::QueryError::from)?,
        Step::Compare(predicate) => scoped_where::holds(predicate, &value, around.traverser, around.context)?,
        Step::CompareBy(test) => test.holds(&value, around.traverser, around.context)?,
        Step::Filter { rule, probes } => filter(*rule, probes, &value, around)?,
    };
    match passes {
        true => walk(rest, Row { value, bulk, origin }, buffers, around, sink),
        false => Ok(ControlFlow::Continue(())),
    }
}

pub(super) fn filter(
    rule: Rule,
    probes: &mut [Probe],
    value: &Value,
    around: &mut Surroundings<'_>,
) -> std::result::Result<bool, Halt> {
    for probe in probes {
        match (rule, probe.exists(value, around)?) {
            (Rule::All, false) | (Rule::None, true) => return Ok(false),
            (Rule::Any, true) => return Ok(true),
            _ => {}
        }
    }
    Ok(rule != Rule::Any)
}

#[expect(clippy::too_many_arguments, reason = "the parts of one step of a recursion")]
fn hop(
    step: &mut Step,
    rest: &mut [Step],
    value: &Value,
    bulk: u64,
    fetched: &mut Fetched,
    buffers: &mut Vec<Fetched>,
    around: &mut Surroundings<'_>,
    sink: &mut Sink<'_>,
) -> Walk {
    let Step::Hop { direction, labels, reach, edges, filter, known } = step else {
        return Ok(ControlFlow::Continue(()));
    };
    let vertex = vertex_of(around.context, value, *direction, *reach)?;
    let (Some(vertex), Some(labels)) = (vertex, labels.ids(around.context)) else {
        return Ok(ControlFlow::Continue(()));
    };
    let end = known.as_deref_mut().and_then(|known| known.vertex(around.traverser, around.context));
    if let (Some(end), Some(known), Reach::Vertex, None) = (end, known.as_deref_mut(), *reach, &edges) {
        let Some(end) = end else { return Ok(ControlFlow::Continue(())) };
        let hop = (vertex, *direction, labels);
        let counted = known.edges_from(hop, end, around.context, &mut fetched.vertices);
        around.pay(counted.looked)?;
        if let Some(edges) = counted.edges {
            let value = Value::Vertex(end);
            if edges == 0
                || filter
                    .as_mut()
                    .map_or(Ok(false), |filter| filter.test(&value, around.context).map(|passes| !passes))?
            {
                return Ok(ControlFlow::Continue(()));
            }
            for _ in 0..edges {
                if walk(rest, Row { value: value.clone(), bulk, origin: Some(vertex) }, buffers, around, sink)?
                    .is_break()
                {
                    return Ok(ControlFlow::Break(()));
                }
            }
            return Ok(ControlFlow::Continue(()));
        }
    }
    let mut cursor = HalfEdgeCursor::default();
    let mut max = if around.wants_all || known.is_some() { FETCH_MAX } else { FIRST_FETCH };
    let mut between = Between::at_once(known.as_deref_mut(), around.traverser, around.context);
    let mut may_seek = known.is_some() && between.is_none();
    loop {
        let Fetched { half_edges, vertices, verdicts } = &mut *fetched;
        half_edges.clear();
        vertices.clear();
        verdicts.clear();
        let transaction = &around.context.transaction;
        let mut more = match (&mut between, *reach) {
            (Some(between), _) => between.read(transaction, vertex, *direction, labels, half_edges),
            (None, Reach::Vertex) if edges.is_none() => {
                transaction.copy_neighbours(vertex, *direction, labels, &mut cursor, max, vertices)
            }
            _ => transaction.half_edges(vertex, *direction, labels, &mut cursor, max, half_edges),
        };
        if more && std::mem::take(&mut may_seek) {
            let hop = (vertex, *direction, labels);
            between = Between::instead(known.as_deref_mut(), around.traverser, around.context, hop);
            if let Some(between) = &mut between {
                half_edges.clear();
                vertices.clear();
                more = between.read(transaction, vertex, *direction, labels, half_edges);
            }
        }
        if between.is_some() {
            around.pay(if more { LOOKS_COST } else { 1 })?;
            if *reach == Reach::Vertex && edges.is_none() {
                vertices.extend(half_edges.drain(..).map(|half_edge| half_edge.neighbour));
            }
        }
        around.pay(half_edges.len() + vertices.len())?;
        if let Some(end) = end {
            half_edges.retain(|half_edge| Some(half_edge.neighbour) == end);
            vertices.retain(|vertex| Some(*vertex) == end);
        }
        if let Some(edges) = edges {
            for half_edge in half_edges.drain(..) {
                if edges.test(&Value::Edge(half_edge.edge), around.context)? {
                    vertices.push(half_edge.neighbour);
                }
            }
        }
        let mut to_test = filter.as_mut();
        if half_edges.is_empty() {
            to_test = to_test.and_then(|filter| (!filter.prefilter(around.context, vertices)).then_some(filter));
        }
        if around.wants_all && half_edges.is_empty() && !rest.is_empty() {
            if let Some(filter) = to_test {
                many::retain(vertices, |vertex| Ok(filter.test(&Value::Vertex(vertex), around.context)?))?;
            }
            if many::walk_many(rest, vertices, bulk, buffers, around, sink)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            if !more {
                return Ok(ControlFlow::Continue(()));
            }
            max = FETCH_MAX;
            continue;
        }
        let mut rest = &mut *rest;
        if to_test.is_none() && half_edges.is_empty() && vertices.len() > 1 {
            let mut fetched = buffers.pop().unwrap_or_default();
            many::drop_without_edge(rest, vertices, &mut fetched.vertices, around)?;
            buffers.push(fetched);
        }
        if to_test.is_none()
            && half_edges.is_empty()
            && matches!(&*rest, [Step::Compare(predicate), ..] if many::compare_with_vertex(predicate, vertices, around))
        {
            rest = &mut rest[1..];
        }
        if to_test.is_none()
            && half_edges.is_empty()
            && let [Step::Filter { rule, probes }, ..] = &mut *rest
        {
            batch::filter(*rule, probes, vertices, verdicts, around)?;
        }
        if !verdicts.is_empty() {
            for (vertex, verdict) in vertices.iter().zip(&*verdicts) {
                let rest = match verdict {
                    Some(false) => continue,
                    Some(true) => &mut rest[1..],
                    None => &mut *rest,
                };
                let row = Row { value: Value::Vertex(*vertex), bulk, origin: None };
                if walk(rest, row, buffers, around, sink)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            if !more {
                return Ok(ControlFlow::Continue(()));
            }
            max = FETCH_MAX;
            continue;
        }
        let edges = half_edges.iter().map(|half_edge| Value::Edge(half_edge.edge));
        for value in edges.chain(vertices.iter().map(|vertex| Value::Vertex(*vertex))) {
            if let Some(filter) = &mut to_test
                && !filter.test(&value, around.context)?
            {
                continue;
            }
            if walk(rest, Row { value, bulk, origin: Some(vertex) }, buffers, around, sink)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        if !more {
            return Ok(ControlFlow::Continue(()));
        }
        max = FETCH_MAX;
    }
}
