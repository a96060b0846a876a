//! One search alone: a bit for each vertex, so that its state stays in the nearest cache.

use std::ops::Range;

use rayon::prelude::*;

use crate::control::check;
use crate::question::{Answer, Common, Question, Walk};
use crate::{AnalyticsError, Control, Place, Sides};

/// A hop is pulled if the edges of its frontier are more than this share of all.
const PULL_ABOVE: u64 = 24;

/// Edges and vertices of a range that one thread pulls at a time.
const RANGE_WORK: u64 = 1 << 18;

/// Answers one question. See [`crate::answer`].
pub fn answer(common: Common<'_>, question: &Question, control: &dyn Control) -> Result<Answer, AnalyticsError> {
    Search::new(common, question).run(control)
}

/// As [`answer`], with the vertices that were counted, in no order that means anything.
pub fn reached(
    common: Common<'_>,
    question: &Question,
    control: &dyn Control,
) -> Result<(Answer, Vec<Place>), AnalyticsError> {
    let mut search = Search::new(common, question);
    let answer = search.run(control)?;
    let reached = match (common.walk, search.listed) {
        (Walk::Within | Walk::WithinOrSource, _) => places(&search.seen),
        (Walk::Exactly, _) if answer.levels.len() as u64 <= u64::from(question.hops.0) => Vec::new(),
        (Walk::Exactly, Some(listed)) => listed,
        (Walk::Exactly, None) => places(&search.frontier),
    };
    Ok((answer, reached))
}

struct Search<'a> {
    common: Common<'a>,
    question: &'a Question,
    sides: Sides<'a>,
    /// Reached in an earlier hop; stays empty for `Exactly`.
    seen: Vec<u64>,
    /// Reached in the last hop, as bits if the last hop was pulled.
    frontier: Vec<u64>,
    next: Vec<u64>,
    /// Reached in the last hop, if it is known one by one.
    listed: Option<Vec<Place>>,
    frontier_edges: u64,
}

struct Found {
    count: u64,
    edges: u64,
}

impl<'a> Search<'a> {
    fn new(common: Common<'a>, question: &'a Question) -> Search<'a> {
        let sides = common.projection.sides(common.direction);
        let words = common.projection.vertex_count().div_ceil(64);
        let mut listed = question.sources.clone();
        listed.sort_unstable();
        listed.dedup();
        let frontier_edges = listed.iter().map(|source| sides.degree(*source)).sum();
        let listed = Some(listed);
        let empty = || vec![0; words];
        Search { common, question, sides, seen: empty(), frontier: empty(), next: empty(), listed, frontier_edges }
    }

    fn run(&mut self, control: &dyn Control) -> Result<Answer, AnalyticsError> {
        let Question { sources, hops, target } = self.question;
        let walk = self.common.walk;
        let counted = self.listed.as_ref().filter(|_| walk != Walk::Within).map_or(0, |listed| listed.len() as u64);
        let mut answer = Answer { levels: vec![counted], distance: None };
        if walk == Walk::WithinOrSource {
            sources.iter().for_each(|source| set(&mut self.seen, *source));
        }
        let counts_source = walk == Walk::WithinOrSource || walk == Walk::Exactly && hops.0 == 0;
        if counts_source && target.is_some_and(|target| sources.contains(&target)) {
            answer.distance = Some(0);
        }
        let mut hop = 0;
        while hop < hops.0 && answer.distance.is_none() {
            check(control)?;
            hop += 1;
            let is_last = hop == hops.0;
            let found = match self.frontier_edges > self.sides.edge_count() / PULL_ABOVE {
                true => self.pull(is_last, control)?,
                false => self.push(is_last, control)?,
            };
            answer.levels.push(found.count);
            self.frontier_edges = found.edges;
            let is_asked = walk != Walk::Exactly || is_last;
            if target.is_some_and(|target| is_asked && self.is_in_frontier(target)) {
                answer.distance = Some(hop);
            }
            if found.count == 0 {
                break;
            }
        }
        Ok(answer)
    }

    fn is_in_frontier(&self, place: Place) -> bool {
        match &self.listed {
            Some(listed) => listed.contains(&place),
            None => has(&self.frontier, place),
        }
    }

    /// Edges of the next frontier are not counted if there is no further hop.
    fn push(&mut self, is_last: bool, control: &dyn Control) -> Result<Found, AnalyticsError> {
        let listed = self.listed.take().unwrap_or_else(|| places(&self.frontier));
        let mut reached: Vec<Place> = Vec::new();
        let mut edges = 0;
        let is_walk = self.common.walk == Walk::Exactly;
        for part in listed.chunks(1 << 10) {
            check(control)?;
            for place in part {
                for side in &self.sides.push {
                    for neighbour in side.of(*place) {
                        // A walk of exact length enters a vertex once in each hop, a search once in all.
                        let entered = &mut self.seen[*neighbour as usize / 64];
                        let bit = 1 << (neighbour % 64);
                        if *entered & bit == 0 && is_allowed(self.common.allowed, *neighbour) {
                            *entered |= bit;
                            edges += if is_last { 0 } else { self.sides.degree(*neighbour) };
                            reached.push(*neighbour);
                        }
                    }
                }
            }
        }
        if is_walk {
            reached.iter().for_each(|place| self.seen[*place as usize / 64] = 0);
        }
        let count = reached.len() as u64;
        self.listed = Some(reached);
        Ok(Found { count, edges })
    }

    fn pull(&mut self, is_last: bool, control: &dyn Control) -> Result<Found, AnalyticsError> {
        if let Some(listed) = self.listed.take() {
            self.frontier.fill(0);
            listed.iter().for_each(|place| set(&mut self.frontier, *place));
        }
        let ranges = self.sides.pull[0].balanced_ranges(RANGE_WORK);
        let words: Vec<Range<usize>> =
            ranges.iter().map(|range| range.start as usize / 64..(range.end as usize).div_ceil(64)).collect();
        let is_walk = self.common.walk == Walk::Exactly;
        let (seen, next) = (split(&mut self.seen, &words), split(&mut self.next, &words));
        let (sides, frontier, allowed) = (&self.sides, &self.frontier, self.common.allowed);
        let parts: Vec<_> = ranges.iter().cloned().zip(seen).zip(next).collect();
        let found = parts.into_par_iter().map(|((range, seen), next)| {
            check(control)?;
            let mut found = Found { count: 0, edges: 0 };
            let all = seen.iter_mut().zip(next).zip(range.clone().step_by(64));
            for ((seen, next), first) in all {
                let there = u64::MAX >> (64 - (range.end - first).min(64));
                let word = allowed.map_or(there, |allowed| allowed[first as usize / 64] & there);
                let mut missing = word & !*seen;
                let mut gained = 0u64;
                while missing != 0 {
                    let position = missing.trailing_zeros();
                    missing &= missing - 1;
                    let place = first + position;
                    if sides.pull.iter().any(|side| side.of(place).iter().any(|from| has(frontier, *from))) {
                        gained |= 1 << position;
                        found.edges += if is_last { 0 } else { sides.degree(place) };
                    }
                }
                *next = gained;
                found.count += u64::from(gained.count_ones());
                if !is_walk {
                    *seen |= gained;
                }
            }
            Ok(found)
        });
        let found = found.try_reduce(
            || Found { count: 0, edges: 0 },
            |left, right| Ok(Found { count: left.count + right.count, edges: left.edges + right.edges }),
        )?;
        std::mem::swap(&mut self.frontier, &mut self.next);
        Ok(found)
    }
}

#[inline(always)]
fn has(bits: &[u64], place: Place) -> bool {
    bits[place as usize / 64] >> (place % 64) & 1 == 1
}

#[inline(always)]
fn set(bits: &mut [u64], place: Place) {
    bits[place as usize / 64] |= 1 << (place % 64);
}

fn is_allowed(allowed: Option<&[u64]>, place: Place) -> bool {
    allowed.is_none_or(|allowed| has(allowed, place))
}

fn places(bits: &[u64]) -> Vec<Place> {
    let mut places = Vec::new();
    for (number, word) in bits.iter().enumerate() {
        let mut word = *word;
        while word != 0 {
            places.push((number * 64) as Place + word.trailing_zeros());
            word &= word - 1;
        }
    }
    places
}

fn split<'s>(mut all: &'s mut [u64], ranges: &[Range<usize>]) -> Vec<&'s mut [u64]> {
    let cut = |range: &Range<usize>| {
        let (part, rest) = std::mem::take(&mut all).split_at_mut(range.len());
        all = rest;
        part
    };
    ranges.iter().map(cut).collect()
}
