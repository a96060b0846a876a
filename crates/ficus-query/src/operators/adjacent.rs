//! `out`, `in`, `both` and their edge forms: from a vertex along its edges.

use std::sync::Arc;

use ficus_dataflow::{Flow, NodeName, Operator, Remains};
use ficus_model::{Direction, Element, LabelId, Value, VertexId};
use ficus_storage::{HalfEdge, HalfEdgeCursor, SortedCursor, SortedQuery};

use crate::bound::Passing;
use crate::context::{Cx, Graphs, QueryContext, Result, Traversers};
use crate::elements::{FETCH_MAX, LabelSet};
use crate::error::QueryError;
use crate::logical::{HasContainer, Name, Node, Reach, WherePredicate};
use crate::operators::closing::Closing;
use crate::operators::ends_by_label::EndsByLabel;
use crate::operators::has::Conditions;
use crate::operators::hash_order;
use crate::operators::hop_block::HopBlock;
use crate::operators::hop_parts::{Distinct, HandedOn, HopFilters, LastHop, Prefetched, SortedPart};
use crate::operators::known_end::{Between, KnownEnd, LOOKS_COST};
use crate::operators::labelled_groups;
use crate::operators::scoped_where;
use crate::operators::source::resolve_vertex;
use crate::operators::test_ahead::TestAhead;
use crate::operators::turned::{Looks, Turning};
use crate::physical::{Builder, Chain};
use crate::traverser::{StepInfo, Traverser};

/// Vertices that go out at once where the step behind takes them packed.
const PACK: usize = 128;

/// Fewer than this of many rows go out as rows, which are no allocation.
const PACK_FROM: usize = 4;

struct AdjacentOperator {
    direction: Direction,
    labels: LabelSet,
    reach: Reach,
    step: StepInfo,
    /// What of the edges is needed, if that is known.
    part: Option<Arc<SortedPart>>,
    /// What the edges have to fulfil over which it goes to vertices.
    edges: Option<Conditions>,
    /// The step of those edges, if they are on the way of the rows.
    edge_step: Option<StepInfo>,
    /// What the ends have to fulfil; tested before a traverser is made.
    filter: Option<Conditions>,
    /// What they are compared with.
    compare: Arc<[WherePredicate]>,
    /// The vertices that the first of these say they have to be, or (`false`) must not be, for the current input.
    wanted: Vec<(VertexId, bool)>,
    /// Of how many of them what was fetched is known to hold.
    compared: usize,
    /// The vertex that they have to be for the steps behind, if these name one.
    known: Option<KnownEnd>,
    /// The same, for rows in the last iteration of the loop around it.
    last: Option<LastHop>,
    /// Edges that have to lead to them.
    closing: Vec<Closing>,
    handed_on: Option<HandedOn>,
    /// The filter right behind.
    ahead: Option<TestAhead>,
    /// Those that were handed on from the vertex under a label.
    ends: Option<EndsByLabel>,
    current: Option<Current>,
    /// What was fetched and not handed on: edges, or vertices where these are enough.
    fetched: Vec<HalfEdge>,
    neighbours: Vec<VertexId>,
    /// All of what was fetched is known to fulfil the filter, and the conditions on edges.
    filtered: bool,
    edges_told: bool,
    /// Inputs whose half-edges are on their way.
    prefetched: Prefetched,
    /// Vertices found go out many at once.
    packed: bool,
    /// Those of many rows together, of which only the number matters beside them.
    packs_many: bool,
    pack: Vec<Value>,
    /// The row that those in the pack come of, if they may go out with those of the next rows.
    pack_of: Option<Traverser>,
    /// Neighbours that were looked at since all that pass a filter are known.
    looks: Looks,
    /// Only how many rows there are matters.
    counted: bool,
    /// Several rows together, where nothing has to be known of each but where it leads to.
    block: Option<HopBlock>,
}

struct Current {
    traverser: Traverser,
    vertex: VertexId,
    cursor: HalfEdgeCursor,
    /// Set if the edges are read in the order of their sort key.
    sorted: Option<(SortedQuery, SortedCursor)>,
    /// The edges to the end that is known, if these are read instead of all.
    between: Option<Between>,
    /// Whether that is decided.
    has_asked: bool,
    /// Edges still needed.
    left: usize,
    /// Some of its neighbours were fetched one after the other, so that the rest has to be.
    begun: bool,
    more: bool,
    position: usize,
}

impl AdjacentOperator {
    /// Packs what was fetched of the current input, if all that is left to do is to leave out what was handed on before. False if the turn is over.
    ///
    /// Errors: those of the account.
    fn pack_fetched(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<bool> {
        let is_told = self.filtered || self.filter.is_none();
        let (Some(current), true) = (&mut self.current, self.packed && is_told && self.fetched.is_empty()) else {
            return Ok(true);
        };
        if self.compared < self.compare.len() || self.ahead.is_some() || self.ends.is_some() || !self.closing.is_empty()
        {
            return Ok(true);
        }
        while let Some(neighbour) = self.neighbours.get(current.position) {
            current.position += 1;
            if let Some(handed_on) = &mut self.handed_on
                && !handed_on.add(*neighbour, cx.context)?
            {
                continue;
            }
            self.pack.push(Value::Vertex(*neighbour));
            if self.pack.len() == PACK {
                out.push_back(labelled_groups::pack(&current.traverser, std::mem::take(&mut self.pack)));
                if cx.should_pause(out) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Sends the pack on.
    fn flush_pack(&mut self, out: &mut Traversers) {
        if let Some(row) = self.pack_of.take() {
            send_pack(&row, &mut self.pack, self.packs_many, out);
        }
    }

    fn forget_fetched(&mut self) {
        self.fetched.clear();
        self.neighbours.clear();
        self.ahead.iter_mut().for_each(TestAhead::forget);
    }

    /// Hands on what many of the next rows lead to, as long as they can be taken together. False if the turn is over before that.
    ///
    /// Errors: those of conditions.
    fn take_blocks(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<bool> {
        loop {
            let Some(block) = self.block.as_mut() else { return Ok(true) };
            if block.is_under_way() {
                let is_done = match self.packed {
                    true => self.pack_block(out, cx)?,
                    false => self.hand_on_block(out, cx)?,
                };
                if !is_done {
                    return Ok(false);
                }
                continue;
            }
            // Of what all passes a filter behind, the hop may be turned round, row by row.
            if self.filter.as_ref().is_some_and(|filter| filter.passing(cx.context).is_some()) {
                return Ok(true);
            }
            let Some(labels) = self.labels.ids(cx.context) else { return Ok(true) };
            let hop = (self.direction, labels);
            // Packs of rows with a history are those of one row each.
            let is_any = !self.packed || self.packs_many;
            let takes = |row: &Traverser| is_any || row.has_no_history();
            if !block.fill(hop, self.handed_on.as_ref(), self.filter.as_mut(), takes, input, cx) {
                return Ok(true);
            }
            if cx.exhausted() {
                return Ok(false);
            }
        }
    }

    /// Makes rows of the ends of a block; false if the turn is over before the last one.
    fn hand_on_block(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<bool> {
        let Some(block) = &mut self.block else { return Ok(true) };
        while let Some((end, of)) = block.next(self.filter.as_mut(), cx)? {
            if let Some(handed_on) = &mut self.handed_on
                && !handed_on.add(end, cx.context)?
            {
                continue;
            }
            of.close_path();
            let mut row = of.advance(Value::Vertex(end), &self.step);
            if self.counted {
                row.bulk = row.bulk.saturating_mul(1 + block.take_others());
            }
            out.push_back(row);
            if cx.should_pause(out) {
                return Ok(false);
            }
        }
        Ok(!block.is_under_way())
    }

    /// Packs the ends of a block; false if the turn is over before the last one.
    fn pack_block(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<bool> {
        let Some(block) = &mut self.block else { return Ok(true) };
        while let Some((end, of)) = block.next(self.filter.as_mut(), cx)? {
            if let Some(handed_on) = &mut self.handed_on
                && !handed_on.add(end, cx.context)?
            {
                continue;
            }
            let is_full = self.pack.len() >= PACK;
            let fits = |own: &Traverser| match self.packs_many {
                true => own.bulk == of.bulk,
                // Behind it is `dedup()`, to which it makes no difference which of them an end comes of.
                false => own.differs_in_value_only(of),
            };
            if let Some(row) = self.pack_of.take_if(|own| is_full || !fits(own)) {
                send_pack(&row, &mut self.pack, self.packs_many, out);
            }
            if self.pack_of.is_none() {
                of.close_path();
                self.pack_of = Some(match self.packs_many {
                    true => Traverser::new(Value::Null).with_bulk(of.bulk),
                    false => of.clone(),
                });
            }
            self.pack.push(Value::Vertex(end));
            if cx.should_pause(out) {
                return Ok(false);
            }
        }
        Ok(!block.is_under_way())
    }

    /// Starts on the next input; `false` when there is none.
    fn start(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<bool> {
        self.prefetched.before(input, self.direction, cx.context);
        let Some(mut traverser) = input.pop_front() else { return Ok(false) };
        self.prefetched.took_one();
        let vertex = vertex_of(cx.context, &traverser.value, self.direction, self.reach)?;
        self.forget_fetched();
        let fits = |own: &Traverser| match self.packs_many {
            true => own.bulk == traverser.bulk,
            false => own.differs_in_value_only(&traverser),
        };
        if self.pack_of.as_ref().is_some_and(|own| !fits(own)) {
            self.flush_pack(out);
        }
        // A vertex that is gone has no neighbours.
        let more = vertex.is_some();
        let vertex = vertex.unwrap_or(VertexId(0));
        let cursor = HalfEdgeCursor::default();
        let (sorted, left) = match (&self.part, self.labels.ids(cx.context)) {
            (Some(part), Some([label])) => {
                match part.query(&cx.context.transaction, self.direction, *label) {
                    Some(query) => (Some((query, SortedCursor::default())), part.first),
                    // In another order all may be wanted.
                    None => (None, usize::MAX),
                }
            }
            _ => (None, usize::MAX),
        };
        self.wanted.clear();
        let wanted = |predicate| scoped_where::wanted_vertex(predicate, &traverser, cx.context);
        self.wanted.extend(self.compare.iter().map_while(wanted));
        for closing in &mut self.closing {
            closing.start(&traverser, cx)?;
        }
        if let Some(handed_on) = &mut self.handed_on {
            handed_on.start(&traverser);
        }
        if let Some(ends) = &mut self.ends {
            ends.start(&traverser);
        }
        // Those that are read in the order of a sort key are to come in that order.
        let has_asked = sorted.is_some() || self.known.is_none();
        let between = None;
        traverser.close_path();
        self.current = Some(Current {
            traverser,
            vertex,
            cursor,
            sorted,
            between,
            has_asked,
            left,
            begun: false,
            more,
            position: 0,
        });
        Ok(true)
    }
}

impl Operator<Graphs> for AdjacentOperator {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        loop {
            if self.current.is_none() && !self.take_blocks(input, out, cx)? {
                return Ok(Flow::More);
            }
            if self.current.is_none() && !self.start(input, out, cx)? {
                self.flush_pack(out);
                return Ok(Flow::Ready);
            }
            if !self.pack_fetched(out, cx)? {
                return Ok(Flow::More);
            }
            let current = self.current.as_mut().expect("set above");
            loop {
                let value = match (self.fetched.get(current.position), self.neighbours.get(current.position)) {
                    (Some(half_edge), _) if self.reach == Reach::Edge => Value::Edge(half_edge.edge),
                    (Some(half_edge), _) => {
                        if let Some(edges) = &mut self.edges
                            && !self.edges_told
                            && !edges.test(&Value::Edge(half_edge.edge), cx.context)?
                        {
                            current.position += 1;
                            continue;
                        }
                        Value::Vertex(half_edge.neighbour)
                    }
                    (None, Some(neighbour)) => Value::Vertex(*neighbour),
                    (None, None) => break,
                };
                current.position += 1;
                if let Some(filter) = &mut self.filter
                    && !self.filtered
                    && !filter.test(&value, cx.context)?
                {
                    continue;
                }
                // Ends that were fetched without their edges have been compared.
                let compared = if self.fetched.is_empty() { self.compared } else { 0 };
                let mut compare = self.compare[compared..].iter();
                let fits = |predicate| scoped_where::holds(predicate, &value, Some(&current.traverser), cx.context);
                if !compare.try_fold(true, |all, predicate| Ok::<_, QueryError>(all && fits(predicate)?))? {
                    continue;
                }
                let mut times = 1;
                if let Value::Vertex(vertex) = value {
                    for closing in &mut self.closing {
                        times *= closing.times(vertex, cx)?;
                    }
                }
                if times == 0 {
                    continue;
                }
                if let (Some(handed_on), Value::Vertex(vertex)) = (&mut self.handed_on, &value)
                    && !handed_on.add(*vertex, cx.context)?
                {
                    continue;
                }
                if let (Some(ends), Value::Vertex(vertex)) = (&mut self.ends, &value)
                    && !ends.add(*vertex, &cx.context.memory)?
                {
                    continue;
                }
                let mut mark = 0;
                if let Some(ahead) = &mut self.ahead {
                    // Of those that may yet be dropped for something cheaper, one at a time.
                    let is_all_told = (self.filtered || self.filter.is_none())
                        && (self.edges_told || self.edges.is_none())
                        && compared == self.compare.len()
                        && self.closing.is_empty();
                    let here = current.position - 1;
                    let (fetched, neighbours) = (&self.fetched, &self.neighbours);
                    let vertex_at = |position: usize| match fetched.get(position) {
                        _ if position > here && !is_all_told => None,
                        Some(half_edge) => Some(half_edge.neighbour),
                        None => neighbours.get(position).copied(),
                    };
                    match ahead.look(here, vertex_at, cx) {
                        Some(found) => mark = found,
                        None if cx.exhausted() => return Ok(Flow::More),
                        None => continue,
                    }
                }
                if self.packed {
                    self.pack.push(value);
                    if self.pack.len() < PACK {
                        continue;
                    }
                    out.push_back(labelled_groups::pack(&current.traverser, std::mem::take(&mut self.pack)));
                    if cx.should_pause(out) {
                        return Ok(Flow::More);
                    }
                    continue;
                }
                let edge = self.fetched.get(current.position - 1).map(|half_edge| Value::Edge(half_edge.edge));
                let mut row = match (&self.edge_step, edge) {
                    (Some(step), Some(edge)) => current.traverser.advance(edge, step).move_to(value, &self.step),
                    _ => current.traverser.advance(value, &self.step),
                };
                let all_pass = self.filtered && self.fetched.is_empty() && compared == self.compare.len();
                if self.counted && all_pass && self.closing.iter().all(Closing::knows_all) {
                    // One row stands for all of them.
                    let others = &self.neighbours[current.position..];
                    times += match self.closing.as_mut_slice() {
                        [] => others.len() as u64,
                        closing => times_of_all(closing, others, cx)?,
                    };
                    current.position = self.neighbours.len();
                }
                row.bulk = row.bulk.saturating_mul(times);
                row.marks |= mark;
                out.push_back(row);
                if cx.should_pause(out) {
                    return Ok(Flow::More);
                }
            }
            if !self.pack.is_empty() {
                // Behind it is `dedup()`, to which it makes no difference which of them an end comes of, or what counts ends.
                let joins = self.handed_on.is_some() && current.traverser.has_no_history();
                match joins || self.packs_many {
                    true if self.pack_of.is_some() => {}
                    true if joins => self.pack_of = Some(current.traverser.clone()),
                    true => self.pack_of = Some(Traverser::new(Value::Null).with_bulk(current.traverser.bulk)),
                    false => {
                        out.push_back(labelled_groups::pack(&current.traverser, std::mem::take(&mut self.pack)));
                    }
                }
            }
            let labels = if current.more { self.labels.ids(cx.context) } else { None };
            match labels {
                None => self.current = None,
                Some(labels) => {
                    self.fetched.clear();
                    self.neighbours.clear();
                    self.ahead.iter_mut().for_each(TestAhead::forget);
                    current.position = 0;
                    let transaction = &cx.context.transaction;
                    let Current { traverser, vertex, cursor, sorted, between, has_asked, left, begun, .. } = current;
                    let (vertex, direction) = (*vertex, self.direction);
                    let conditions = [&self.filter, &self.edges].into_iter().flatten();
                    let at_once = conditions.fold(FETCH_MAX, |rows, own| own.rows_at_once(rows));
                    let max = at_once.min(*left);
                    let (fetched, neighbours) = (&mut self.fetched, &mut self.neighbours);
                    let is_begun = *begun;
                    if !*has_asked {
                        *between = Between::at_once(self.known.as_mut(), Some(traverser), cx.context);
                        *has_asked = between.is_some();
                    }
                    let is_last = |last: &&mut LastHop| traverser.innermost.count() == Some(last.before);
                    let known = match self.last.as_mut().filter(is_last) {
                        Some(last) => Some(&mut last.known),
                        None => self.known.as_mut(),
                    };
                    let is_plain = self.reach == Reach::Vertex && self.edges.is_none() && self.edge_step.is_none();
                    let hop = (is_plain && sorted.is_none() && !*begun).then_some((vertex, direction, labels));
                    let toward = Toward::of(known, hop, traverser, neighbours, cx.context);
                    let mut more = match (sorted, between.as_mut(), self.reach) {
                        _ if toward.edges.is_some() => {
                            let edges = toward.end.flatten().into_iter().zip(toward.edges);
                            neighbours.extend(edges.flat_map(|(end, edges)| (0..edges).map(move |_| end)));
                            *has_asked = true;
                            false
                        }
                        (Some((query, cursor)), ..) => {
                            transaction.half_edges_by_sort_key(vertex, query, cursor, max, fetched)
                        }
                        (None, Some(between), _) => between.read(transaction, vertex, direction, labels, fetched),
                        (None, None, Reach::Vertex) if self.edges.is_none() && self.edge_step.is_none() => {
                            let filter = self.filter.as_ref().filter(|_| !*begun);
                            let passing = filter.and_then(|filter| filter.passing(cx.context));
                            *begun = true;
                            match passing.and_then(Passing::turned) {
                                Some(turned) => {
                                    turned.ends_of(vertex, neighbours);
                                    false
                                }
                                None => transaction.copy_neighbours(vertex, direction, labels, cursor, max, neighbours),
                            }
                        }
                        _ => transaction.half_edges(vertex, direction, labels, cursor, max, fetched),
                    };
                    if more && !*has_asked {
                        *has_asked = true;
                        let hop = (vertex, direction, labels);
                        *between = Between::instead(self.known.as_mut(), Some(traverser), cx.context, hop);
                        if let Some(between) = between {
                            fetched.clear();
                            neighbours.clear();
                            more = between.read(transaction, vertex, direction, labels, fetched);
                        }
                    }
                    let is_seeking = between.is_some();
                    let count = fetched.len() + neighbours.len() + toward.looked;
                    if let Some(end) = toward.end {
                        // Before conditions are looked at: of few edges are there any.
                        fetched.retain(|half_edge| Some(half_edge.neighbour) == end);
                        neighbours.retain(|neighbour| Some(*neighbour) == end);
                    }
                    if let (Some(handed_on), Reach::Vertex) = (&self.handed_on, self.reach) {
                        handed_on.drop_from(fetched);
                        handed_on.drop_from(neighbours);
                    }
                    if let (Some(ends), Reach::Vertex) = (&self.ends, self.reach) {
                        ends.drop_from(fetched);
                        ends.drop_from(neighbours);
                    }
                    self.edges_told = match &mut self.edges {
                        Some(edges) => edges.prefilter_edges(cx.context, fetched),
                        None => true,
                    };
                    if self.reach == Reach::Vertex && self.edges_told && self.edge_step.is_none() {
                        neighbours.extend(fetched.drain(..).map(|half_edge| half_edge.neighbour));
                    }
                    let fetched = count;
                    for (vertex, is_it) in &self.wanted {
                        self.neighbours.retain(|own| (own == vertex) == *is_it);
                    }
                    let others = self.compare[self.wanted.len()..].iter();
                    let told = others.take_while(|own| compare_all(own, &mut self.neighbours, cx.context)).count();
                    self.compared = self.wanted.len() + told;
                    self.closing.iter().for_each(|closing| closing.prefilter(&mut self.neighbours));
                    *left = left.saturating_sub(fetched);
                    current.more = more && current.left > 0;
                    let mut asked = 0;
                    if let Some(filter) = &mut self.filter {
                        if let (Some(passing), [label]) = (filter.passing(cx.context), labels)
                            && self.looks.are_worth(fetched, is_begun, input.len(), passing)
                        {
                            let begin = || Turning::begin((direction, *label), passing, filter, cx.context);
                            asked = passing.turn(cx.context, begin);
                        }
                        self.filtered = match self.reach {
                            Reach::Edge => filter.prefilter_edges(cx.context, &mut self.fetched),
                            Reach::Vertex if self.fetched.is_empty() => {
                                filter.prefilter(cx.context, &mut self.neighbours)
                            }
                            Reach::Vertex => filter.prefilter(cx.context, &mut self.fetched),
                        };
                    }
                    // What the filter drops never reaches the queue that is paid for.
                    let is_filtered =
                        self.filter.is_some() || self.edges.is_some() || is_seeking || toward.end.is_some();
                    let looks = if is_seeking && current.more { LOOKS_COST } else { 1 };
                    cx.charge(asked);
                    cx.charge(match is_filtered {
                        // Where fewer are taken at once, they are as much work.
                        true => fetched.saturating_mul(FETCH_MAX / at_once).max(looks),
                        false => 1,
                    });
                    if cx.exhausted() && is_filtered {
                        return Ok(Flow::More);
                    }
                    if self.fetched.is_empty() && self.neighbours.is_empty() && !current.more {
                        self.current = None;
                        if cx.exhausted() {
                            return Ok(Flow::More);
                        }
                    }
                }
            }
        }
    }

    fn release(&mut self, _cx: &mut Cx<'_>) {
        self.closing.iter_mut().for_each(Closing::forget);
        self.known.iter_mut().for_each(KnownEnd::forget_neighbours);
        self.last.iter_mut().for_each(|last| last.known.forget_neighbours());
        self.handed_on.iter_mut().for_each(HandedOn::clear);
        self.ends.iter_mut().for_each(EndsByLabel::clear);
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        self.handed_on.iter_mut().for_each(|handed_on| handed_on.surrender(remains));
    }

    fn next_chunk(&mut self) {
        self.current = None;
        self.block.iter_mut().for_each(HopBlock::forget);
        self.pack.clear();
        self.pack_of = None;
        self.prefetched = Prefetched::default();
        self.forget_fetched();
        self.closing.iter_mut().for_each(Closing::forget);
        // What was handed on stands before what comes.
        self.handed_on.iter_mut().for_each(HandedOn::forget_iterations);
        self.ends.iter_mut().for_each(EndsByLabel::clear);
    }

    fn reset(&mut self) {
        self.next_chunk();
        self.known.iter_mut().for_each(KnownEnd::forget_neighbours);
        self.last.iter_mut().for_each(|last| last.known.forget_neighbours());
        self.handed_on.iter_mut().for_each(HandedOn::clear);
    }
}

/// Sends the vertices on that were found from a row, or from many, to which only their number matters.
fn send_pack(row: &Traverser, pack: &mut Vec<Value>, of_many: bool, out: &mut Traversers) {
    match pack.len() {
        0 => {}
        1..PACK_FROM if of_many => {
            out.extend(pack.drain(..).map(|vertex| Traverser::new(vertex).with_bulk(row.bulk)));
        }
        _ => out.push_back(labelled_groups::pack(row, std::mem::take(pack))),
    }
}

/// Where a row has to come to, and how it gets there.
#[derive(Default)]
struct Toward {
    /// The vertex, or nobody, if it is known.
    end: Option<Option<VertexId>>,
    /// The edges there, if they were counted instead of read.
    edges: Option<u64>,
    /// Half-edges that were looked at for that.
    looked: usize,
}

impl Toward {
    /// For a row, to what is known of its end. Edges that a hop goes over are counted if there are few to look at; `fetched` is empty before and after.
    fn of(
        known: Option<&mut KnownEnd>,
        hop: Option<(VertexId, Direction, &[LabelId])>,
        row: &Traverser,
        fetched: &mut Vec<VertexId>,
        context: &QueryContext,
    ) -> Toward {
        let Some(known) = known else { return Toward::default() };
        let end = known.vertex(Some(row), context);
        let (Some(Some(vertex)), Some(hop)) = (end, hop) else {
            return Toward { end, edges: (end == Some(None)).then_some(0), looked: 0 };
        };
        let counted = known.edges_from(hop, vertex, context, fetched);
        fetched.clear();
        Toward { end, edges: counted.edges, looked: counted.looked }
    }
}

/// How often rows at all of the vertices pass together.
fn times_of_all(closing: &mut [Closing], vertices: &[VertexId], cx: &mut Cx<'_>) -> Result<u64> {
    let mut all = 0u64;
    for vertex in vertices {
        let mut times = 1u64;
        for closing in &mut *closing {
            times *= closing.times(*vertex, cx)?;
        }
        all += times;
    }
    Ok(all)
}

/// Keeps the vertices that are among those that were gathered under a label, or (`without`) are not; `false`, and nothing is done, if the
/// predicate says something else or the label stands for something else.
fn compare_all(predicate: &WherePredicate, vertices: &mut Vec<VertexId>, context: &QueryContext) -> bool {
    let (labels, is_within) = match predicate {
        WherePredicate::Within(labels) => (labels, true),
        WherePredicate::Without(labels) => (labels, false),
        _ => return false,
    };
    let [label] = labels.as_slice() else { return false };
    let Some(gathered) = context.side_effects.vertex_set(label, &context.memory) else { return false };
    gathered.drop_from(vertices, !is_within);
    true
}

/// The vertex to navigate from; `None` if it is gone.
pub fn vertex_of(
    context: &QueryContext,
    value: &Value,
    direction: Direction,
    reach: Reach,
) -> Result<Option<VertexId>> {
    match value {
        Value::Vertex(vertex) => Ok(Some(*vertex)),
        Value::Element(element) if matches!(**element, Element::Vertex(_)) => Ok(resolve_vertex(context, value)),
        _ => Err(QueryError::invalid(format!(
            "{}{}() needs a vertex, but the traverser holds a {}",
            direction.name().to_lowercase(),
            if reach == Reach::Edge { "E" } else { "" },
            value.type_name()
        ))),
    }
}

/// Adds a hop together with the filters behind it.
pub fn build_filtered(
    builder: &mut Builder,
    node: &Node,
    step: &StepInfo,
    filters: HopFilters,
    chain: &mut Chain,
) -> Result<()> {
    build_over_edges(builder, node, step, HopOver::named(node.into()), filters, chain)
}

/// A way over edges.
pub struct HopOver {
    /// As the plan shows it.
    pub name: NodeName,
    /// Conditions on the edges.
    pub containers: Vec<HasContainer>,
    /// Their step, if they are on the way of the rows.
    pub step: Option<StepInfo>,
    /// What of the edges is needed, if that is known.
    pub part: Option<SortedPart>,
}

impl HopOver {
    /// One of which nothing else is known.
    pub fn named(name: NodeName) -> HopOver {
        HopOver { name, containers: Vec::new(), step: None, part: None }
    }
}

/// Adds a hop over edges to their other ends, together with the filters behind it.
pub fn build_over_edges(
    builder: &mut Builder,
    node: &Node,
    step: &StepInfo,
    over: HopOver,
    filters: HopFilters,
    chain: &mut Chain,
) -> Result<()> {
    let Node::Adjacent { direction, labels, reach } = node else {
        return Err(QueryError::invalid(format!("{node} is no hop")));
    };
    let mut names = vec![over.name];
    if !over.containers.is_empty() {
        names.push(NodeName::new(Node::Has { containers: over.containers.clone() }));
    }
    let edges = match over.containers.is_empty() {
        true => None,
        false => Some(Conditions::compile(&over.containers)?),
    };
    if !filters.containers.is_empty() {
        names.push(NodeName::new(Node::Has { containers: filters.containers.clone() }));
    }
    names.extend(filters.junctions.iter().map(NodeName::from));
    for predicate in &filters.compare {
        names.push(NodeName::new(Node::WherePredicate { start: None, predicate: predicate.clone(), bys: Vec::new() }));
    }
    if let Some(bound) = &filters.bound {
        names.push(format!("[within the first by {}]", bound.key.name).into());
    }
    let mut tests = filters.junctions;
    if !filters.containers.is_empty() {
        tests.push(Node::Has { containers: filters.containers });
    }
    let conditions = Conditions::of_tests(&tests)?.within(filters.bound, filters.passing);
    let hop = (*direction, labels.clone().into(), *reach);
    for closing in &filters.closing {
        names.push(closing.to_string().into());
    }
    let tests = Tests {
        edges,
        edge_step: over.step,
        packed: filters.packed,
        packs_many: filters.packed_of_many,
        ends: Some(conditions),
        compare: filters.compare.into(),
        known: filters.known,
        last: filters.last,
        closing: filters.closing,
        distinct: filters.distinct,
        distinct_by: filters.distinct_by,
        ahead: filters.ahead,
    };
    build_hop(builder, &NodeName::of_all(names), hop, step.clone(), over.part, tests, chain);
    Ok(())
}

/// What a hop tests before there is a row.
#[derive(Default)]
struct Tests {
    /// Of the edges that it goes over, and their step if that is wanted.
    edges: Option<Conditions>,
    edge_step: Option<StepInfo>,
    /// Of what it leads to.
    ends: Option<Conditions>,
    compare: Arc<[WherePredicate]>,
    known: Option<KnownEnd>,
    last: Option<LastHop>,
    closing: Vec<Closing>,
    distinct: Distinct,
    distinct_by: Option<Name>,
    ahead: Option<TestAhead>,
    packed: bool,
    packs_many: bool,
}

impl Tests {
    /// Whether there are none but conditions on the ends, each by itself.
    fn asks_ends_only(&self) -> bool {
        let of_edges = self.edges.is_some() || self.edge_step.is_some() || !self.closing.is_empty();
        let of_way = !self.compare.is_empty() || self.known.is_some() || self.last.is_some() || self.ahead.is_some();
        let of_iteration = self.distinct == Distinct::OfIteration || self.distinct_by.is_some();
        // Packs of one row each come of rows that lead to many.
        let packs_of_rows = self.packed && !self.packs_many && self.distinct != Distinct::All;
        !of_edges && !of_way && !of_iteration && !packs_of_rows
    }
}

fn build_hop(
    builder: &mut Builder,
    name: &NodeName,
    (direction, labels, reach): (Direction, Arc<[Name]>, Reach),
    step: StepInfo,
    part: Option<SortedPart>,
    tests: Tests,
    chain: &mut Chain,
) {
    let part = part.map(Arc::new);
    let requirements = builder.requirements();
    let is_plain = reach == Reach::Vertex && part.is_none() && tests.asks_ends_only();
    let takes_many = is_plain && !requirements.row_by_row && !requirements.writes;
    builder.operator(chain, name, false, move || AdjacentOperator {
        block: takes_many.then(HopBlock::default),
        edges: tests.edges.clone(),
        edge_step: tests.edge_step.clone(),
        edges_told: false,
        prefetched: Prefetched::default(),
        packed: tests.packed,
        packs_many: tests.packs_many,
        pack: Vec::new(),
        pack_of: None,
        filter: tests.ends.clone(),
        compare: tests.compare.clone(),
        known: tests.known.clone(),
        last: tests.last.clone(),
        closing: tests.closing.clone(),
        wanted: Vec::new(),
        compared: 0,
        handed_on: HandedOn::new(tests.distinct),
        ahead: tests.ahead.clone(),
        ends: tests.distinct_by.clone().map(EndsByLabel::new),
        counted: tests.distinct == Distinct::Counted,
        direction,
        labels: LabelSet::new(labels.clone()),
        reach,
        step: step.clone(),
        part: part.clone(),
        current: None,
        fetched: Vec::new(),
        neighbours: Vec::new(),
        filtered: false,
        looks: Looks::default(),
    });
}

/// Adds a hop of which nothing is known but its node.
pub fn build(builder: &mut Builder, node: &Node, step: &StepInfo, chain: &mut Chain) -> Result<()> {
    let Node::Adjacent { direction, labels, reach } = node else {
        return Err(QueryError::invalid(format!("{node} is no hop")));
    };
    if builder.requirements().in_hash_order {
        hash_order::build_hop(builder, node, (*direction, labels.clone(), *reach), step, chain);
        return Ok(());
    }
    let hop = (*direction, labels.clone().into(), *reach);
    build_hop(builder, &node.into(), hop, step.clone(), None, Tests::default(), chain);
    Ok(())
}
