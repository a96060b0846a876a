//! The simple undirected graph behind a projection: no direction, no loops, no parallel edges.

use std::ops::Range;

use rayon::prelude::*;

use super::ranges::balanced;
use crate::control::check;
use crate::{AnalyticsError, Control, Place, Projection};

/// Neighbours of all vertices, ascending, each once. 4 bytes for each and 8 a vertex.
#[derive(Debug)]
pub struct SimpleAdjacency {
    offsets: Vec<usize>,
    neighbours: Vec<Place>,
}

/// Which neighbours are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// All: every edge at both of its ends.
    All,
    /// Those of a smaller place, which have at least as many edges: every edge once.
    Busier,
}

impl SimpleAdjacency {
    /// Makes it. Cost: two visits of each half-edge, on all threads of the pool.
    ///
    /// Errors: `Stopped`.
    pub fn new(projection: &Projection, kept: Kept, control: &dyn Control) -> Result<SimpleAdjacency, AnalyticsError> {
        let vertices = projection.vertex_count();
        let ranges = balanced(vertices, &[projection.out(), projection.into()]);
        let count = |range: &Range<Place>| {
            check(control)?;
            Ok(range.clone().map(|vertex| merged(projection, vertex, kept).count()).collect::<Vec<_>>())
        };
        let counts: Vec<Vec<usize>> = ranges.par_iter().map(count).collect::<Result<_, AnalyticsError>>()?;
        let mut offsets = Vec::with_capacity(vertices + 1);
        let mut end = 0;
        offsets.push(0);
        offsets.extend(counts.iter().flatten().map(|count| {
            end += count;
            end
        }));
        let mut neighbours = vec![0; end];
        let mut parts = Vec::with_capacity(ranges.len());
        let mut rest = neighbours.as_mut_slice();
        for (range, counts) in ranges.iter().zip(&counts) {
            let (part, behind) = std::mem::take(&mut rest).split_at_mut(counts.iter().sum());
            parts.push((range, part));
            rest = behind;
        }
        parts.into_par_iter().try_for_each(|(range, part)| {
            check(control)?;
            let all = range.clone().flat_map(|vertex| merged(projection, vertex, kept));
            part.iter_mut().zip(all).for_each(|(kept, neighbour)| *kept = neighbour);
            Ok(())
        })?;
        Ok(SimpleAdjacency { offsets, neighbours })
    }

    /// The neighbours of a vertex.
    #[inline(always)]
    pub fn of(&self, vertex: Place) -> &[Place] {
        &self.neighbours[self.offsets[vertex as usize]..self.offsets[vertex as usize + 1]]
    }

    /// Number of vertices.
    pub fn vertex_count(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Ranges of about the same work.
    pub(super) fn ranges(&self) -> Vec<Range<Place>> {
        let vertices = self.vertex_count();
        let work = super::ranges::RANGE_WORK as usize;
        let mut ranges = Vec::new();
        let mut start = 0;
        while start < vertices {
            let goal = self.offsets[start] + start + work;
            let length = (start + 1..=vertices).take_while(|end| self.offsets[*end] + end < goal).count();
            let end = (start + length.max(1)).min(vertices);
            ranges.push(start as Place..end as Place);
            start = end;
        }
        ranges
    }
}

/// Out and in neighbours of a vertex, each once, without itself.
fn merged(projection: &Projection, vertex: Place, kept: Kept) -> impl Iterator<Item = Place> {
    let (mut out, mut into) = (projection.out().of(vertex), projection.into().of(vertex));
    if kept == Kept::Busier {
        out = &out[..out.partition_point(|neighbour| *neighbour < vertex)];
        into = &into[..into.partition_point(|neighbour| *neighbour < vertex)];
    }
    let mut last = vertex;
    std::iter::from_fn(move || {
        loop {
            let next = match (out.first(), into.first()) {
                (Some(left), Some(right)) => *left.min(right),
                (Some(one), None) | (None, Some(one)) => *one,
                (None, None) => return None,
            };
            if out.first() == Some(&next) {
                out = &out[1..];
            }
            if into.first() == Some(&next) {
                into = &into[1..];
            }
            // The same again is skipped, and so is the vertex itself, before and behind which come smaller and larger ones.
            if next != vertex && (next != last || last == vertex) {
                last = next;
                return Some(next);
            }
        }
    })
}
