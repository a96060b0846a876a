//! Walks of several hops at once: in a pass with other users' queries, or by a search on the store.
//!
//! The operator begins with a search of its own, turn by turn: most neighbourhoods are small, and nothing is faster for them. If there is a
//! projection of the snapshot, the search goes along it, and knows before each hop how many edges lie ahead: are they many, the question
//! joins the next pass instead and the query waits for it. Without one the search goes along the store; enough large searches make a
//! projection in the background. A transaction that writes always searches the store by itself: others must not see what it wrote, and what
//! it reads is recorded.

mod entering;
mod hop_by_hop;

use std::sync::{Arc, Mutex, PoisonError};

use ficus_analytics::own_search::Numbered;
use ficus_analytics::service::Delivery;
use ficus_analytics::{
    Advance, Analytics, AnalyticsError, Answer, Control as PassControl, Entry, HopEdges, Hops, KHopReply, KHopRequest,
    Line, OnProjection, OnStore, OnTestedEdges, OwnSearch, Place, Projection, ProjectionOptions, Walk,
};
use ficus_dataflow::{Control, Flow, NodeName, Operator};
use ficus_model::{Value, VertexId};

use crate::budget::Held;
use crate::context::{Cx, Graphs, Result, Traversers};
use crate::elements::LabelSet;
use crate::error::{QueryError, QueryErrorKind};
use crate::logical::{KHop, KHopMark, KHopReach, Node, Reach, Traversal};
use crate::operators::adjacent::vertex_of;
use crate::physical::{Builder, Chain};
use crate::traverser::StepInfo;
use crate::walk_filter::WalkFilter;
use entering::{Entering, Filters, Mark, Testing};
use hop_by_hop::HopByHop;

/// Edges a search along a projection looks at before it looks whether others want their turn: less than a millisecond.
const EDGES_PER_LOOK: u64 = 1 << 14;

/// The same of edges in the store, where each may be a miss of the caches, or where each vertex or edge has to be tested.
const SLOW_EDGES_PER_LOOK: u64 = 1 << 12;

/// Where the answer of a pass is put.
type Slot = Arc<Mutex<Option<std::result::Result<KHopReply, AnalyticsError>>>>;

struct KHopOperator {
    walk: Arc<KHop>,
    labels: LabelSet,
    filters: Filters,
    step: StepInfo,
    sources: Vec<VertexId>,
    /// The vertex that is wanted; set when the sources are there.
    target: Option<VertexId>,
    state: State,
    held: Held,
    held_bytes: usize,
}

enum State {
    /// Sources are coming in.
    Gathering,
    /// Its question is in a line.
    Asked(Slot),
    /// It searches by itself, on the store.
    OnStore(Box<OwnSearch<VertexId>>),
    /// It searches by itself, on a projection.
    OnProjection(Arc<Projection>, Box<OwnSearch<Place>>),
    /// The vertices are on their way out.
    Emitting(std::vec::IntoIter<VertexId>),
    /// They are, with what rows of each hop carry.
    EmittingHops(HopByHop),
    /// All was emitted.
    Done,
}

impl KHopOperator {
    fn walk_kind(&self) -> Walk {
        match self.walk.reach {
            KHopReach::Exactly => Walk::Exactly,
            // The search is to know where it starts as well.
            KHopReach::Within if self.walk.seen.as_ref().is_some_and(|seen| seen.with_start) => Walk::WithinOrSource,
            KHopReach::Within => Walk::Within,
            KHopReach::WithinOrStart => Walk::WithinOrSource,
        }
    }

    fn hops(&self) -> Hops {
        self.walk.hops.map_or(Hops::ALL, Hops)
    }

    /// The edges a walk may take, by label; none if no such label exists.
    fn options(&mut self, cx: &mut Cx<'_>) -> ProjectionOptions {
        let is_all = self.walk.labels.is_empty();
        let mut labels = self.labels.ids(cx.context).map(<[_]>::to_vec).unwrap_or_default();
        labels.sort_unstable();
        labels.dedup();
        let edges = self.filters.edges.as_ref().map(WalkFilter::of_edges);
        ProjectionOptions { edge_labels: (!is_all).then_some(labels), edges }
    }

    /// Whether others' passes may be joined: not by a transaction that writes.
    fn analytics<'a>(cx: &'a Cx<'_>) -> Option<&'a Arc<Analytics>> {
        let may_ask = |analytics: &&Arc<Analytics>| analytics.is_batching() && !cx.context.transaction.may_write();
        cx.context.analytics.as_ref().filter(may_ask)
    }

    /// The projection of the query's state, if there is one and others' passes may be joined.
    fn projection(&mut self, cx: &mut Cx<'_>) -> Option<Arc<Projection>> {
        let options = self.options(cx);
        KHopOperator::analytics(cx)?.ready(&cx.context.transaction, &options)
    }

    /// Begins a search: along a projection if there is one.
    fn begin(&mut self, cx: &mut Cx<'_>) -> Result<State> {
        if let Some(id) = &self.walk.target {
            self.target = cx.context.transaction.find_vertex(id);
            if self.target.is_none() {
                // What is not there is not reached.
                return Ok(State::Done);
            }
        }
        if let Some(state) = self.on_projection(cx)? {
            return Ok(state);
        }
        let search = OwnSearch::new(self.walk_kind(), self.hops(), self.sources.clone(), self.target);
        Ok(State::OnStore(Box::new(self.prepared(search, |vertex| vertex, cx)?)))
    }

    /// A search as this walk wants it.
    fn prepared<V: Numbered>(
        &self,
        search: OwnSearch<V>,
        vertex: impl Fn(V) -> VertexId,
        cx: &Cx<'_>,
    ) -> Result<OwnSearch<V>> {
        let search = search.ending_with(self.enough());
        let Some(mark) = &self.filters.mark else {
            return Ok(if self.walk.count { search.counting_only() } else { search });
        };
        let mut testing = Testing::new(&cx.context.transaction, Some(&mark.condition));
        let search = search.reporting(|source| match mark.tests_start {
            true => mark.entry(testing.passes(vertex(source))),
            false => Entry::Through,
        });
        testing.end()?;
        Ok(search)
    }

    fn enough(&self) -> usize {
        self.walk.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
    }

    /// A search along a projection, if there is one.
    fn on_projection(&mut self, cx: &mut Cx<'_>) -> Result<Option<State>> {
        let Some(projection) = self.projection(cx) else { return Ok(None) };
        let sources = self.sources.iter().filter_map(|source| projection.place(*source)).collect();
        let target = match self.target {
            None => None,
            // It has a place: the projection is of the query's own state.
            Some(target) => match projection.place(target) {
                Some(target) => Some(target),
                None => return Ok(None),
            },
        };
        let search = OwnSearch::new(self.walk_kind(), self.hops(), sources, target);
        let search = Box::new(self.prepared(search, |place| projection.vertex(place), cx)?);
        Ok(Some(State::OnProjection(projection, search)))
    }

    /// Whether its question can be one of a pass.
    fn may_ask(&self) -> bool {
        let walk = &self.walk;
        // A pass does not tell after how many hops it has come to a vertex.
        !self.filters.is_own && !walk.alone && walk.limit.is_none() && walk.mark.is_none() && walk.seen.is_none()
    }

    /// Puts the question in a line.
    fn ask(&mut self, cx: &mut Cx<'_>) -> Option<State> {
        if !self.may_ask() {
            return None;
        }
        let options = self.options(cx);
        let vertices = self.filters.vertices.as_ref().map(WalkFilter::of_vertices);
        let analytics = KHopOperator::analytics(cx)?;
        let slot = Slot::default();
        let (filled, waker) = (slot.clone(), cx.waker.clone());
        analytics.ask(KHopRequest {
            snapshot: (*cx.context.transaction).clone(),
            line: Line { projection: options, direction: self.walk.direction, walk: self.walk_kind(), vertices },
            // Kept, in case it has to search by itself after all.
            sources: self.sources.clone(),
            hops: self.hops(),
            target: self.target,
            wants_vertices: !self.walk.count && self.target.is_none(),
            control: Arc::new(QueryControl(cx.control.clone())),
            deliver: Delivery::new(move |reply| {
                *filled.lock().unwrap_or_else(PoisonError::into_inner) = Some(reply);
                waker.wake();
            }),
        });
        Some(State::Asked(slot))
    }

    /// Goes on with a search on the store.
    fn search_store(
        &mut self,
        mut search: Box<OwnSearch<VertexId>>,
        out: &mut Traversers,
        cx: &mut Cx<'_>,
    ) -> Result<State> {
        let options = self.options(cx);
        let before = search.edges();
        let snapshot = &*cx.context.transaction;
        let alone = KHopOperator::analytics(cx).map_or(u64::MAX, |analytics| analytics.alone_edges(snapshot));
        let edges_per_look = SLOW_EDGES_PER_LOOK.min(alone.saturating_add(1));
        let (direction, labels) = (self.walk.direction, options.edge_labels.as_deref());
        let advance = if !self.filters.are_there() {
            let mut way = OnStore::new(snapshot, direction, labels);
            search.advance(&mut way, &mut |_| Entry::Through, edges_per_look, HopEdges::ALL)
        } else {
            let mut entering = Entering::new(snapshot, &self.filters);
            let enter = &mut |vertex: VertexId| entering.entry(vertex);
            let advance = if self.filters.edges.is_none() {
                search.advance(&mut OnStore::new(snapshot, direction, labels), enter, edges_per_look, HopEdges::ALL)
            } else {
                let mut edges = Testing::new(snapshot, self.filters.edges.as_ref());
                let mut way = OnTestedEdges::new(snapshot, direction, labels, |edge| edges.passes(edge));
                let advance = search.advance(&mut way, enter, edges_per_look, HopEdges::ALL);
                edges.end()?;
                advance
            };
            entering.end()?;
            advance
        };
        let edges = search.edges() - before;
        let is_large = search.edges() > alone;
        if let Some(analytics) = KHopOperator::analytics(cx).filter(|_| is_large && !self.filters.is_own) {
            analytics.note_live_work(snapshot, &options, edges);
        }
        self.searched(search.bytes(), edges, cx)?;
        if advance == Advance::Ended {
            return Ok(self.ended(search, OwnSearch::into_vertices, out, cx));
        }
        let other = if is_large { self.on_projection(cx)? } else { None };
        Ok(other.unwrap_or(State::OnStore(search)))
    }

    /// Goes on with a search on a projection, or asks.
    fn search_projection(
        &mut self,
        projection: Arc<Projection>,
        mut search: Box<OwnSearch<Place>>,
        out: &mut Traversers,
        cx: &mut Cx<'_>,
    ) -> Result<State> {
        let before = search.edges();
        let limit = match KHopOperator::analytics(cx).filter(|_| self.may_ask()) {
            Some(analytics) => analytics.hop_edges(&cx.context.transaction),
            None => HopEdges::ALL,
        };
        let mut way = OnProjection::new(&projection, self.walk.direction);
        let known = self.filters.vertices.as_ref().and_then(|filter| projection.known_allowed(&filter.of_vertices()));
        let advance = match (&self.filters, known) {
            (Filters { vertices: None, mark: None, .. }, _) => {
                search.advance(&mut way, &mut |_| Entry::Through, EDGES_PER_LOOK, limit)
            }
            (Filters { mark: None, .. }, Some(allowed)) => {
                let is_allowed = |place: Place| allowed[place as usize / 64] >> (place % 64) & 1 == 1;
                search.advance(&mut way, &mut |place| Entry::if_allowed(is_allowed(place)), EDGES_PER_LOOK, limit)
            }
            (filters, _) => {
                let mut entering = Entering::new(&cx.context.transaction, filters);
                let enter = &mut |place: Place| entering.entry(projection.vertex(place));
                let advance = search.advance(&mut way, enter, SLOW_EDGES_PER_LOOK, limit);
                entering.end()?;
                advance
            }
        };
        self.searched(search.bytes(), search.edges() - before, cx)?;
        Ok(match advance {
            Advance::Ended => {
                let vertices = |search: OwnSearch<Place>| {
                    search.into_vertices().into_iter().map(|place| projection.vertex(place)).collect()
                };
                self.ended(search, vertices, out, cx)
            }
            Advance::Large => self.ask(cx).unwrap_or(State::OnProjection(projection, search)),
            Advance::Paused => State::OnProjection(projection, search),
        })
    }

    /// Pays for a part of a search.
    fn searched(&mut self, bytes: usize, edges: u64, cx: &mut Cx<'_>) -> Result<()> {
        self.hold(bytes, cx)?;
        // An edge costs a fraction of a row.
        cx.charge(edges as usize / 8 + 1);
        Ok(())
    }

    fn ended<V: Numbered>(
        &mut self,
        search: Box<OwnSearch<V>>,
        vertices: impl FnOnce(OwnSearch<V>) -> Vec<VertexId>,
        out: &mut Traversers,
        cx: &mut Cx<'_>,
    ) -> State {
        cx.note("edgesSearched", i64::try_from(search.edges()).unwrap_or(i64::MAX));
        let answer = search.answer().clone();
        self.answered(&answer, || vertices(*search), out, cx)
    }

    fn hold(&mut self, bytes: usize, cx: &mut Cx<'_>) -> Result<()> {
        if bytes > self.held_bytes {
            self.held.add(&cx.context.memory, bytes - self.held_bytes)?;
            self.held_bytes = bytes;
        }
        Ok(())
    }

    /// What to do with the answer: a number goes out at once.
    fn answered(
        &self,
        answer: &Answer,
        vertices: impl FnOnce() -> Vec<VertexId>,
        out: &mut Traversers,
        cx: &Cx<'_>,
    ) -> State {
        if let Some(target) = self.target {
            let reached = answer.distance.map(|_| target);
            return State::Emitting(reached.into_iter().collect::<Vec<_>>().into_iter());
        }
        if let Some(seen) = &self.walk.seen {
            let first = cx.context.fresh_at(Value::Null, &self.step);
            return State::EmittingHops(HopByHop::new(seen, self.walk.hops, &answer.levels, vertices(), first));
        }
        if !self.walk.count {
            return State::Emitting(vertices().into_iter());
        }
        let count = answer.count(self.walk_kind(), self.hops());
        out.push_back(cx.context.fresh_at(Value::Long(i64::try_from(count).unwrap_or(i64::MAX)), &self.step));
        State::Done
    }

    fn clear(&mut self) {
        self.sources.clear();
        self.target = None;
        self.state = State::Gathering;
        self.filters.is_own = false;
        self.held_bytes = 0;
    }
}

impl Operator<Graphs> for KHopOperator {
    fn process(&mut self, input: &mut Traversers, _out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        let before = self.sources.capacity();
        while let Some(traverser) = input.pop_front() {
            let vertex = vertex_of(cx.context, &traverser.value, self.walk.direction, Reach::Vertex)?;
            self.sources.extend(vertex);
        }
        let grown = self.sources.capacity() - before;
        if grown > 0 {
            self.held.add(&cx.context.memory, grown * size_of::<VertexId>())?;
        }
        Ok(Flow::Ready)
    }

    fn finish(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        loop {
            let is_searching = matches!(self.state, State::OnStore(_) | State::OnProjection(..));
            if is_searching && cx.exhausted() {
                return Ok(Flow::More);
            }
            match std::mem::replace(&mut self.state, State::Done) {
                State::Gathering => self.state = self.begin(cx)?,
                State::Asked(slot) => {
                    let reply = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
                    let Some(reply) = reply else {
                        self.state = State::Asked(slot);
                        cx.park();
                        return Ok(Flow::More);
                    };
                    if matches!(reply, Err(AnalyticsError::Untestable)) {
                        self.filters.is_own = true;
                        self.state = self.begin(cx)?;
                        continue;
                    }
                    let reply = reply.map_err(|error| of_pass(error, cx))?;
                    cx.note("passWidth", i64::try_from(reply.width).unwrap_or(i64::MAX));
                    cx.note("passWaitNs", i64::try_from(reply.waited_ns).unwrap_or(i64::MAX));
                    self.hold(reply.vertices.len() * size_of::<VertexId>(), cx)?;
                    self.state = self.answered(&reply.answer, || reply.vertices, out, cx);
                }
                State::OnStore(search) => self.state = self.search_store(search, out, cx)?,
                State::OnProjection(projection, search) => {
                    self.state = self.search_projection(projection, search, out, cx)?;
                }
                State::Emitting(mut vertices) => {
                    while !cx.should_pause(out) {
                        let Some(vertex) = vertices.next() else {
                            self.held.give_back();
                            return Ok(Flow::Ready);
                        };
                        out.push_back(cx.context.fresh_at(Value::Vertex(vertex), &self.step));
                    }
                    self.state = State::Emitting(vertices);
                    return Ok(Flow::More);
                }
                State::EmittingHops(mut rows) => {
                    while !cx.should_pause(out) {
                        let Some(row) = rows.next()? else {
                            self.held.give_back();
                            return Ok(Flow::Ready);
                        };
                        out.push_back(row);
                    }
                    self.state = State::EmittingHops(rows);
                    return Ok(Flow::More);
                }
                State::Done => {
                    self.held.give_back();
                    return Ok(Flow::Ready);
                }
            }
        }
    }

    fn release(&mut self, _cx: &mut Cx<'_>) {
        self.held.give_back();
    }

    fn reset(&mut self) {
        self.clear();
    }
}

/// A pass ends early when none of its questions is wanted any more.
struct QueryControl(Control);

impl PassControl for QueryControl {
    fn is_stopped(&self) -> bool {
        self.0.check().is_err()
    }
}

/// What a query fails with when its pass failed.
fn of_pass(error: AnalyticsError, cx: &Cx<'_>) -> QueryError {
    match (&error, cx.control.check()) {
        (AnalyticsError::Stopped, Err(interrupt)) => interrupt.into(),
        (AnalyticsError::Memory { .. }, _) => QueryError::new(QueryErrorKind::Budget, error.to_string()),
        _ => QueryError::new(QueryErrorKind::Internal, format!("the pass of a k-hop query failed: {error}")),
    }
}

/// Adds the operator.
///
/// Errors: `Internal` for a condition that the rule should not have taken.
pub fn build(builder: &mut Builder, walk: &KHop, step: &StepInfo, chain: &mut Chain) -> Result<()> {
    let name = NodeName::new(Node::KHop(walk.clone()));
    let filter = |nodes: &Option<Arc<Traversal>>| {
        nodes.as_ref().map(|nodes| WalkFilter::of(nodes).ok_or_else(|| not_a_condition(nodes))).transpose()
    };
    let mark = |mark: &KHopMark| {
        let condition = WalkFilter::of(&mark.condition).ok_or_else(|| not_a_condition(&mark.condition))?;
        Ok::<Mark, QueryError>(Mark { condition, goes_on: mark.goes_on, tests_start: mark.tests_start })
    };
    let (vertices, edges) = (filter(&walk.vertices)?, filter(&walk.edges)?);
    let filters = Filters { vertices, edges, mark: walk.mark.as_ref().map(mark).transpose()?, is_own: false };
    let (walk, step) = (Arc::new(walk.clone()), step.clone());
    builder.operator(chain, &name, walk.count, move || KHopOperator {
        walk: walk.clone(),
        labels: LabelSet::new(walk.labels.clone().into()),
        filters: filters.clone(),
        step: step.clone(),
        sources: Vec::new(),
        target: None,
        state: State::Gathering,
        held: Held::default(),
        held_bytes: 0,
    });
    Ok(())
}

fn not_a_condition(nodes: &Traversal) -> QueryError {
    QueryError::new(
        QueryErrorKind::Internal,
        format!("{nodes} is no condition on one element; please report the query"),
    )
}
