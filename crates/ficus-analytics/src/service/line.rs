//! Questions that are answered together.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use ficus_model::Direction;
use ficus_storage::Snapshot;
use rayon::prelude::*;

use super::{KHopReply, KHopRequest};
use crate::filter::VertexFilter;
use crate::question::Common;
use crate::{
    AnalyticsError, Answer, Control, Place, Projection, ProjectionOptions, Question, Walk, answer, single_source,
};

/// What questions of one pass have in common, besides the state they are about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Line {
    /// The part of the graph.
    pub projection: ProjectionOptions,
    /// Which way every hop goes.
    pub direction: Direction,
    /// What counts as reached.
    pub walk: Walk,
    /// Which vertices may be entered; `None` for all.
    pub vertices: Option<VertexFilter>,
}

/// A question in a line.
pub(super) struct Waiting {
    pub(super) request: KHopRequest,
    pub(super) since: Instant,
}

impl Waiting {
    fn is_with(&self, other: &Waiting) -> bool {
        self.request.line == other.request.line && self.request.snapshot.is_state(&other.request.snapshot.key())
    }
}

/// Takes the line of the first question, up to a limit; the order of the others stays.
pub(super) fn take(waiting: &mut VecDeque<Waiting>, limit: usize) -> Vec<Waiting> {
    let Some(first) = waiting.pop_front() else { return Vec::new() };
    let mut taken = vec![first];
    let mut rest = VecDeque::with_capacity(waiting.len());
    for next in waiting.drain(..) {
        if taken.len() < limit && next.is_with(&taken[0]) {
            taken.push(next);
        } else {
            rest.push_back(next);
        }
    }
    *waiting = rest;
    taken
}

/// Stops a pass when nobody wants any of its answers. Holds the controls alone, since deliveries cannot be shared between threads.
struct Controls(Vec<Arc<dyn Control + Send>>);

impl Control for Controls {
    fn is_stopped(&self) -> bool {
        self.0.iter().all(|control| control.is_stopped())
    }
}

/// Gives the projection of a state.
type Project<'a> = &'a dyn Fn(&Snapshot, &ProjectionOptions, &dyn Control) -> Result<Arc<Projection>, AnalyticsError>;

/// Answers a line and delivers every answer.
pub(super) fn answer_line(taken: Vec<Waiting>, pool: &rayon::ThreadPool, project: Project<'_>) {
    let (gone, wanted): (Vec<_>, Vec<_>) = taken.into_iter().partition(|waiting| waiting.request.control.is_stopped());
    gone.into_iter().for_each(|waiting| waiting.request.deliver.tell(Err(AnalyticsError::Stopped)));
    let Some(first) = wanted.first() else { return };
    let control = Controls(wanted.iter().map(|waiting| waiting.request.control.clone()).collect());
    let line = first.request.line.clone();
    let waited: Vec<u64> = wanted.iter().map(|waiting| waiting.since.elapsed().as_nanos() as u64).collect();
    let projection = match project(&first.request.snapshot, &line.projection, &control) {
        Ok(projection) => projection,
        Err(error) => {
            wanted.into_iter().for_each(|waiting| waiting.request.deliver.tell(Err(error.clone())));
            return;
        }
    };
    let allowed = line.vertices.as_ref().map(|filter| {
        let (snapshot, projection, control) = (first.request.snapshot.clone(), &projection, &control);
        pool.install(move || projection.allowed(&snapshot, filter, control))
    });
    let allowed = match allowed.transpose() {
        Ok(allowed) => allowed,
        Err(error) => {
            wanted.into_iter().for_each(|waiting| waiting.request.deliver.tell(Err(error.clone())));
            return;
        }
    };
    let (direction, walk) = (line.direction, line.walk);
    let common = Common { projection: &projection, direction, walk, allowed: allowed.as_deref() };
    let questions: Vec<(Question, bool)> = wanted.iter().map(|waiting| of_request(&projection, waiting)).collect();
    let outcomes = pool.install(|| outcomes(common, &questions, &control));
    let width = wanted.len();
    for ((waiting, outcome), waited_ns) in wanted.into_iter().zip(outcomes).zip(waited) {
        let reply = outcome.map(|(answer, places)| KHopReply {
            answer,
            vertices: places.into_iter().map(|place| projection.vertex(place)).collect(),
            width,
            waited_ns,
        });
        waiting.request.deliver.tell(reply);
    }
}

fn of_request(projection: &Projection, waiting: &Waiting) -> (Question, bool) {
    let request = &waiting.request;
    let question = Question {
        sources: request.sources.iter().filter_map(|source| projection.place(*source)).collect(),
        hops: request.hops,
        target: request.target.and_then(|target| projection.place(target)),
    };
    (question, request.wants_vertices)
}

type Outcome = Result<(Answer, Vec<Place>), AnalyticsError>;

/// Small questions, and those that want vertices, are answered each by a search of its own, side by side; the others in passes.
fn outcomes(common: Common<'_>, questions: &[(Question, bool)], control: &dyn Control) -> Vec<Outcome> {
    let is_alone: Vec<bool> = questions.iter().map(|(question, wants)| *wants || is_small(common, question)).collect();
    let mut outcomes: Vec<Option<Outcome>> = questions
        .par_iter()
        .zip(&is_alone)
        .map(|((question, wants), is_alone)| match (is_alone, wants) {
            (true, true) => Some(single_source::reached(common, question, control)),
            (true, false) => Some(single_source::answer(common, question, control).map(|answer| (answer, Vec::new()))),
            (false, _) => None,
        })
        .collect();
    let together: Vec<Question> = questions
        .iter()
        .zip(&is_alone)
        .filter(|(_, alone)| !**alone)
        .map(|((question, _), _)| question.clone())
        .collect();
    let mut answers = match answer(common, &together, control) {
        Ok(answers) => answers.into_iter().map(|answer| Ok((answer, Vec::new()))).collect::<Vec<Outcome>>(),
        Err(error) => together.iter().map(|_| Err(error.clone())).collect(),
    }
    .into_iter();
    for outcome in outcomes.iter_mut().filter(|outcome| outcome.is_none()) {
        *outcome = answers.next();
    }
    outcomes.into_iter().map(|outcome| outcome.unwrap_or(Err(AnalyticsError::Stopped))).collect()
}

/// Whether a search of its own costs less than its share of a pass: at most two hops, from few edges. In a pass it
/// would pay for the edges of all others.
fn is_small(common: Common<'_>, question: &Question) -> bool {
    if question.hops.0 > 2 {
        return false;
    }
    let sides = common.projection.sides(common.direction);
    let first: u64 = question.sources.iter().map(|source| sides.degree(*source)).sum();
    let bound = sides.edge_count() / SMALL_SHARE;
    if question.hops.0 < 2 || first > bound {
        return first <= bound;
    }
    let neighbours = question.sources.iter().flat_map(|source| {
        let of_side = |side: &&crate::Adjacency| side.of(*source).to_vec();
        sides.push.iter().flat_map(of_side).collect::<Vec<_>>()
    });
    neighbours.map(|neighbour| sides.degree(neighbour)).sum::<u64>() <= bound
}

/// A question is small if it looks at no more than this share of all edges: a pass of a hundred looks at most of them for two
/// or three hops.
const SMALL_SHARE: u64 = 8;
