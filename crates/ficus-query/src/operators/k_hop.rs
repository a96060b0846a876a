//! Walks of several hops at once: in a pass with other users' queries, or by a search on the store.
//!
//! The operator begins with a search of its own, turn by turn: most neighbourhoods are small, and nothing is faster for them. If it turns
//! out large, and a projection of the snapshot is there, the question joins the next pass and the query waits for it. Enough
//! large searches make a projection in the background. A transaction that writes always searches by itself: others must not
//! see what it wrote, and what it reads is recorded.

use std::sync::{Arc, Mutex, PoisonError};

use ficus_analytics::service::Delivery;
use ficus_analytics::{
    Analytics, AnalyticsError, Answer, Control as PassControl, Hops, KHopReply, KHopRequest, Line, LiveSearch,
    ProjectionOptions, Walk,
};
use ficus_dataflow::{Control, Flow, Operator};
use ficus_model::{Value, VertexId};

use crate::budget::Held;
use crate::context::{Cx, Graphs, Result, Traversers};
use crate::elements::LabelSet;
use crate::error::{QueryError, QueryErrorKind};
use crate::logical::{KHop, KHopReach, Node, Reach};
use crate::operators::adjacent::vertex_of;
use crate::physical::{Builder, Chain};
use crate::traverser::StepInfo;

/// Edges a search looks at before it lets others have their turn: about as long as a batch of rows takes.
const EDGES_PER_TURN: u64 = 1 << 15;

/// Where the answer of a pass is put.
type Slot = Arc<Mutex<Option<std::result::Result<KHopReply, AnalyticsError>>>>;

struct KHopOperator {
    walk: Arc<KHop>,
    labels: LabelSet,
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
    /// It searches by itself.
    Searching(Box<LiveSearch>),
    /// The vertices are on their way out.
    Emitting(std::vec::IntoIter<VertexId>),
    /// All was emitted.
    Done,
}

impl KHopOperator {
    fn walk_kind(&self) -> Walk {
        match self.walk.reach {
            KHopReach::Exactly => Walk::Exactly,
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
        ProjectionOptions { edge_labels: (!is_all).then_some(labels) }
    }

    /// Whether others' passes may be joined: not by a transaction that writes.
    fn analytics<'a>(cx: &'a Cx<'_>) -> Option<&'a Arc<Analytics>> {
        let may_ask = |analytics: &&Arc<Analytics>| analytics.is_batching() && !cx.context.transaction.may_write();
        cx.context.analytics.as_ref().filter(may_ask)
    }

    /// Puts the question in a line, if it has turned out large and there is a projection to answer it from.
    fn ask(&mut self, edges: u64, cx: &mut Cx<'_>) -> Option<Slot> {
        let options = self.options(cx);
        let analytics =
            KHopOperator::analytics(cx).filter(|analytics| edges > analytics.alone_edges(&cx.context.transaction))?;
        let snapshot = &*cx.context.transaction;
        analytics.ready(snapshot, &options)?;
        let slot = Slot::default();
        let (filled, waker) = (slot.clone(), cx.waker.clone());
        analytics.ask(KHopRequest {
            snapshot: snapshot.clone(),
            line: Line { projection: options, direction: self.walk.direction, walk: self.walk_kind() },
            sources: std::mem::take(&mut self.sources),
            hops: self.hops(),
            target: self.target,
            wants_vertices: !self.walk.count && self.target.is_none(),
            control: Arc::new(QueryControl(cx.control.clone())),
            deliver: Delivery::new(move |reply| {
                *filled.lock().unwrap_or_else(PoisonError::into_inner) = Some(reply);
                waker.wake();
            }),
        });
        Some(slot)
    }

    /// Goes on with a search; true if it has ended.
    fn search(&mut self, search: &mut LiveSearch, cx: &mut Cx<'_>) -> Result<bool> {
        let options = self.options(cx);
        let before = search.edges();
        let snapshot = &cx.context.transaction;
        let alone = KHopOperator::analytics(cx).map_or(u64::MAX, |analytics| analytics.alone_edges(snapshot));
        let edges_per_turn = EDGES_PER_TURN.min(alone.saturating_add(1));
        let has_ended = search.advance(snapshot, self.walk.direction, options.edge_labels.as_deref(), edges_per_turn);
        let edges = search.edges() - before;
        if let Some(analytics) = KHopOperator::analytics(cx)
            && search.edges() > alone
        {
            analytics.note_live_work(snapshot, &options, edges);
        }
        self.hold(search.bytes(), cx)?;
        // An edge costs a fraction of a row.
        cx.charge(edges as usize / 8 + 1);
        Ok(has_ended)
    }

    fn hold(&mut self, bytes: usize, cx: &mut Cx<'_>) -> Result<()> {
        if bytes > self.held_bytes {
            self.held.add(&mut cx.context.memory, bytes - self.held_bytes)?;
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
            self.held.add(&mut cx.context.memory, grown * size_of::<VertexId>())?;
        }
        Ok(Flow::Ready)
    }

    fn finish(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        loop {
            match std::mem::replace(&mut self.state, State::Done) {
                State::Gathering => {
                    if let Some(id) = &self.walk.target {
                        self.target = cx.context.transaction.find_vertex(id);
                        if self.target.is_none() {
                            // What is not there is not reached.
                            self.state = State::Done;
                            continue;
                        }
                    }
                    let search = LiveSearch::new(self.walk_kind(), self.hops(), self.sources.clone(), self.target);
                    self.state = State::Searching(Box::new(search));
                }
                State::Asked(slot) => {
                    let reply = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
                    let Some(reply) = reply else {
                        self.state = State::Asked(slot);
                        cx.park();
                        return Ok(Flow::More);
                    };
                    let reply = reply.map_err(|error| of_pass(error, cx))?;
                    cx.note("passWidth", i64::try_from(reply.width).unwrap_or(i64::MAX));
                    cx.note("passWaitNs", i64::try_from(reply.waited_ns).unwrap_or(i64::MAX));
                    self.hold(reply.vertices.len() * size_of::<VertexId>(), cx)?;
                    self.state = self.answered(&reply.answer, || reply.vertices, out, cx);
                }
                State::Searching(mut search) => {
                    if !self.search(&mut search, cx)? {
                        self.state = match self.ask(search.edges(), cx) {
                            Some(slot) => State::Asked(slot),
                            None => State::Searching(search),
                        };
                        if cx.exhausted() {
                            return Ok(Flow::More);
                        }
                        continue;
                    }
                    cx.note("edgesSearched", i64::try_from(search.edges()).unwrap_or(i64::MAX));
                    let answer = search.answer().clone();
                    self.state = self.answered(&answer, || search.into_vertices(), out, cx);
                }
                State::Emitting(mut vertices) => {
                    while !cx.should_pause(out) {
                        let Some(vertex) = vertices.next() else {
                            self.held.give_back(&mut cx.context.memory);
                            return Ok(Flow::Ready);
                        };
                        out.push_back(cx.context.fresh_at(Value::Vertex(vertex), &self.step));
                    }
                    self.state = State::Emitting(vertices);
                    return Ok(Flow::More);
                }
                State::Done => {
                    self.held.give_back(&mut cx.context.memory);
                    return Ok(Flow::Ready);
                }
            }
        }
    }

    fn release(&mut self, cx: &mut Cx<'_>) {
        self.held.give_back(&mut cx.context.memory);
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
pub fn build(builder: &mut Builder, walk: &KHop, step: &StepInfo, chain: &mut Chain) {
    let name = Node::KHop(walk.clone()).to_string();
    let (walk, step) = (Arc::new(walk.clone()), step.clone());
    builder.operator(chain, &name, walk.count, move || KHopOperator {
        walk: walk.clone(),
        labels: LabelSet::new(walk.labels.clone().into()),
        step: step.clone(),
        sources: Vec::new(),
        target: None,
        state: State::Gathering,
        held: Held::default(),
        held_bytes: 0,
    });
}
