//! One pass over the graph for up to 512 questions: a bit for each in the state of every vertex.
//!
//! A hop goes in one of two directions. *Pushed*, the vertices that were reached last hand their bits to their neighbours: cost is the
//! edges of the frontier. *Pulled*, every vertex that some question still misses collects the bits of its neighbours and stops when
//! none is missing: neighbours of high degree come first, so that a few are often enough. Pushing is for small
//! frontiers and uses one thread; pulling uses all.

use std::ops::Range;

use pulp::Arch;
use rayon::prelude::*;

use crate::column_counter::{ColumnCounter, Lanes};
use crate::control::check;
use crate::large_array::LargeArray;
use crate::question::{Answer, Common, Question, Walk};
use crate::{AnalyticsError, Control, Place, Sides};

/// A hop is pulled if the edges of its frontier are more than this share of all: pulling looks at most edges once, but in order and on
/// all threads.
const PULL_ABOVE: u64 = 24;

/// A frontier is thin below this share of all vertices.
const THIN_BELOW: u64 = 8;

/// Edges and vertices of a range that one thread pulls at a time.
const RANGE_WORK: u64 = 1 << 16;

/// Answers up to [`PASS_LIMIT`](crate::question::PASS_LIMIT) questions. See [`crate::answer`].
pub fn answer(
    common: Common<'_>,
    questions: &[Question],
    control: &dyn Control,
) -> Result<Vec<Answer>, AnalyticsError> {
    match questions.len() {
        0..=64 => Pass::<1>::new(common, questions)?.run(control),
        65..=128 => Pass::<2>::new(common, questions)?.run(control),
        129..=256 => Pass::<4>::new(common, questions)?.run(control),
        257..=512 => Pass::<8>::new(common, questions)?.run(control),
        more => Err(AnalyticsError::Invalid {
            parameter: "questions",
            reason: format!("{more} in one pass; at most {}", crate::question::PASS_LIMIT),
        }),
    }
}

/// The state of a pass.
struct Pass<'a, const W: usize> {
    common: Common<'a>,
    questions: &'a [Question],
    sides: Sides<'a>,
    /// Of every vertex, the questions that reached it in an earlier hop; empty for `Exactly`.
    seen: LargeArray<Lanes<W>>,
    /// The questions that reached it in the last hop.
    frontier: LargeArray<Lanes<W>>,
    /// Those that reach it in this hop. All zero between hops if the frontier is listed.
    next: LargeArray<Lanes<W>>,
    /// The vertices of the frontier, if there are few.
    listed: Option<Vec<Place>>,
    /// Edges of the frontier.
    frontier_edges: u64,
    /// Vertices of the frontier.
    frontier_vertices: u64,
    /// Questions that go on.
    open: Lanes<W>,
    answers: Vec<Answer>,
}

/// What a hop found in one range.
struct Found {
    counts: Vec<u64>,
    vertices: u64,
    edges: u64,
}

impl<'a, const W: usize> Pass<'a, W> {
    fn new(common: Common<'a>, questions: &'a [Question]) -> Result<Pass<'a, W>, AnalyticsError> {
        let vertices = common.projection.vertex_count();
        let is_bfs = common.walk != Walk::Exactly;
        let mut pass = Pass {
            common,
            questions,
            sides: common.projection.sides(common.direction),
            seen: LargeArray::zeroed(if is_bfs { vertices } else { 0 })?,
            frontier: LargeArray::zeroed(vertices)?,
            next: LargeArray::zeroed(vertices)?,
            listed: None,
            frontier_edges: 0,
            frontier_vertices: 0,
            open: [0; W],
            answers: vec![Answer::default(); questions.len()],
        };
        let mut listed = Vec::with_capacity(questions.len());
        let counts_sources = common.walk != Walk::Within;
        for (lane, question) in questions.iter().enumerate() {
            let (word, bit) = (lane / 64, 1u64 << (lane % 64));
            pass.open[word] |= bit;
            let mut different = 0;
            for source in &question.sources {
                let lanes = &mut pass.frontier[*source as usize];
                if is_empty(*lanes) {
                    listed.push(*source);
                    pass.frontier_edges += pass.sides.degree(*source);
                }
                different += u64::from(lanes[word] & bit == 0);
                lanes[word] |= bit;
                if common.walk == Walk::WithinOrSource {
                    pass.seen[*source as usize][word] |= bit;
                }
            }
            pass.answers[lane].levels.push(if counts_sources { different } else { 0 });
            let is_source = question.target.is_some_and(|target| question.sources.contains(&target));
            if counts_sources && is_source && (is_bfs || question.hops.0 == 0) {
                pass.answers[lane].distance = Some(0);
            }
        }
        pass.frontier_vertices = listed.len() as u64;
        pass.listed = Some(listed);
        pass.close(0);
        Ok(pass)
    }

    fn run(mut self, control: &dyn Control) -> Result<Vec<Answer>, AnalyticsError> {
        let mut hop = 0;
        while !is_empty(self.open) && self.listed.as_ref().is_none_or(|listed| !listed.is_empty()) {
            check(control)?;
            hop += 1;
            let pull = self.frontier_edges > self.sides.edge_count() / PULL_ABOVE;
            let found = match self.listed.take() {
                Some(listed) if !pull => self.push(listed, control)?,
                listed => self.pull(listed, control)?,
            };
            for (lane, answer) in self.answers.iter_mut().enumerate() {
                if self.open[lane / 64] >> (lane % 64) & 1 == 1 {
                    answer.levels.push(found.counts[lane]);
                }
            }
            std::mem::swap(&mut self.frontier, &mut self.next);
            (self.frontier_edges, self.frontier_vertices) = (found.edges, found.vertices);
            self.close(hop);
            self.choose_form();
        }
        Ok(self.answers)
    }

    /// Ends the questions that have gone far enough or know their answer after this hop.
    fn close(&mut self, hop: u32) {
        for (lane, question) in self.questions.iter().enumerate() {
            let (word, bit) = (lane / 64, 1u64 << (lane % 64));
            if self.open[word] & bit == 0 {
                continue;
            }
            let answer = &mut self.answers[lane];
            let is_last = hop >= question.hops.0;
            if let Some(target) = question.target.filter(|_| hop > 0)
                && self.frontier[target as usize][word] & bit != 0
                && (self.common.walk != Walk::Exactly || is_last)
            {
                answer.distance = Some(hop);
            }
            // Nothing reached means nothing to go on from.
            let is_stuck = hop > 0 && answer.levels.last() == Some(&0);
            if is_last || answer.distance.is_some() || is_stuck {
                self.open[word] &= !bit;
            }
        }
    }

    /// After a pull the frontier is not listed. If the next hop is going to be pushed, list it.
    fn choose_form(&mut self) {
        let is_small = self.frontier_edges <= self.sides.edge_count() / PULL_ABOVE;
        if self.listed.is_some() || !is_small || is_empty(self.open) {
            return;
        }
        let listed = self.frontier.iter().enumerate().filter(|(_, lanes)| !is_empty(**lanes));
        self.listed = Some(listed.map(|(place, _)| place as Place).collect());
        self.next.fill([0; W]);
    }

    fn push(&mut self, listed: Vec<Place>, control: &dyn Control) -> Result<Found, AnalyticsError> {
        let mut touched: Vec<Place> = Vec::new();
        for part in listed.chunks(1 << 10) {
            check(control)?;
            for place in part {
                let lanes = and(std::mem::replace(&mut self.frontier[*place as usize], [0; W]), self.open);
                if is_empty(lanes) {
                    continue;
                }
                for side in &self.sides.push {
                    for neighbour in side.of(*place) {
                        let next = &mut self.next[*neighbour as usize];
                        if is_empty(*next) {
                            touched.push(*neighbour);
                        }
                        *next = or(*next, lanes);
                    }
                }
            }
        }
        let mut counter = ColumnCounter::<W>::default();
        let mut edges = 0;
        touched.retain(|place| {
            let next = &mut self.next[*place as usize];
            if let Some(seen) = self.seen.get_mut(*place as usize) {
                *next = and_not(*next, *seen);
                *seen = or(*seen, *next);
            }
            if !is_allowed(self.common.allowed, *place) {
                *next = [0; W];
            }
            if is_empty(*next) {
                return false;
            }
            counter.add(*next);
            edges += self.sides.degree(*place);
            true
        });
        let vertices = touched.len() as u64;
        self.listed = Some(touched);
        Ok(Found { counts: counter.finish(), vertices, edges })
    }

    fn pull(&mut self, listed: Option<Vec<Place>>, control: &dyn Control) -> Result<Found, AnalyticsError> {
        // Most neighbours are not in a thin frontier. A bit tells so from a nearer cache than the lanes are in.
        let is_thin = self.frontier_vertices < self.frontier.len() as u64 / THIN_BELOW;
        let active = is_thin.then(|| self.active_bits(listed));
        let ranges = self.sides.pull[0].balanced_ranges(RANGE_WORK);
        let seen = split(&mut self.seen, &ranges);
        let next = split(&mut self.next, &ranges);
        let (sides, frontier, open, allowed) = (&self.sides, &self.frontier, self.open, self.common.allowed);
        let parts: Vec<_> = ranges.iter().cloned().zip(seen).zip(next).collect();
        let found = parts.into_par_iter().map(|((range, seen), next)| {
            check(control)?;
            let hop = PullHop { sides, frontier, active: active.as_deref(), open, allowed };
            Ok(Arch::new().dispatch(|| match hop.active {
                Some(_) => hop.of_range::<true>(range, seen, next),
                None => hop.of_range::<false>(range, seen, next),
            }))
        });
        let nothing = || Found { counts: vec![0; 64 * W], vertices: 0, edges: 0 };
        found.try_reduce(nothing, |mut left, right| {
            left.counts.iter_mut().zip(&right.counts).for_each(|(sum, count)| *sum += count);
            left.vertices += right.vertices;
            left.edges += right.edges;
            Ok(left)
        })
    }

    /// A bit for each vertex of the frontier.
    fn active_bits(&self, listed: Option<Vec<Place>>) -> Vec<u64> {
        let mut bits = vec![0u64; self.frontier.len().div_ceil(64)];
        match listed {
            Some(listed) => listed.iter().for_each(|place| bits[*place as usize / 64] |= 1 << (place % 64)),
            None => bits.par_iter_mut().zip(self.frontier.par_chunks(64)).for_each(|(bits, lanes)| {
                let set = lanes.iter().enumerate().filter(|(_, lanes)| !is_empty(**lanes));
                *bits = set.fold(0, |bits, (position, _)| bits | 1 << position);
            }),
        }
        bits
    }
}

/// What a pulled hop reads.
struct PullHop<'a, const W: usize> {
    sides: &'a Sides<'a>,
    frontier: &'a [Lanes<W>],
    /// The vertices that have any lane in the frontier, if they are few.
    active: Option<&'a [u64]>,
    open: Lanes<W>,
    allowed: Option<&'a [u64]>,
}

impl<const W: usize> PullHop<'_, W> {
    #[inline(always)]
    fn of_range<const THIN: bool>(&self, range: Range<Place>, seen: &mut [Lanes<W>], next: &mut [Lanes<W>]) -> Found {
        let mut counter = ColumnCounter::<W>::default();
        let (mut vertices, mut edges) = (0, 0);
        for (position, place) in range.enumerate() {
            let known = seen.get(position).copied().unwrap_or([0; W]);
            let missing = and_not(self.open, known);
            let mut gained = [0; W];
            if !is_empty(missing) && is_allowed(self.allowed, place) {
                gained = self.gain::<THIN>(place, missing);
            }
            next[position] = gained;
            if !is_empty(gained) {
                if let Some(seen) = seen.get_mut(position) {
                    *seen = or(known, gained);
                }
                counter.add(gained);
                vertices += 1;
                edges += self.sides.degree(place);
            }
        }
        Found { counts: counter.finish(), vertices, edges }
    }

    /// Those of the missing lanes that a neighbour has.
    #[inline(always)]
    fn gain<const THIN: bool>(&self, place: Place, missing: Lanes<W>) -> Lanes<W> {
        let mut gained = [0; W];
        let active = self.active.unwrap_or(&[]);
        for side in &self.sides.pull {
            for neighbour in side.of(place) {
                if THIN && active[*neighbour as usize / 64] >> (neighbour % 64) & 1 == 0 {
                    continue;
                }
                gained = or(gained, self.frontier[*neighbour as usize]);
                if is_empty(and_not(missing, gained)) {
                    return missing;
                }
            }
        }
        and(gained, missing)
    }
}

#[inline(always)]
fn is_allowed(allowed: Option<&[u64]>, place: Place) -> bool {
    allowed.is_none_or(|allowed| allowed[place as usize / 64] >> (place % 64) & 1 == 1)
}

/// One slice for each range; empty ones if there is nothing to split.
fn split<'s, T>(mut all: &'s mut [T], ranges: &[Range<Place>]) -> Vec<&'s mut [T]> {
    let cut = |range: &Range<Place>| {
        let length = range.len().min(all.len());
        let (part, rest) = std::mem::take(&mut all).split_at_mut(length);
        all = rest;
        part
    };
    ranges.iter().map(cut).collect()
}

#[inline(always)]
fn or<const W: usize>(mut left: Lanes<W>, right: Lanes<W>) -> Lanes<W> {
    for word in 0..W {
        left[word] |= right[word];
    }
    left
}

#[inline(always)]
fn and<const W: usize>(mut left: Lanes<W>, right: Lanes<W>) -> Lanes<W> {
    for word in 0..W {
        left[word] &= right[word];
    }
    left
}

#[inline(always)]
fn and_not<const W: usize>(mut left: Lanes<W>, right: Lanes<W>) -> Lanes<W> {
    for word in 0..W {
        left[word] &= !right[word];
    }
    left
}

/// True if no lane is set. Comparing arrays with `==` would be a call.
#[inline(always)]
fn is_empty<const W: usize>(lanes: Lanes<W>) -> bool {
    let mut any = 0;
    for word in lanes {
        any |= word;
    }
    any == 0
}
