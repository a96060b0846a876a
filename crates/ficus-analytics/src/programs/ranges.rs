//! Ranges of vertices that cost about the same.

use std::ops::Range;

use crate::{Adjacency, Place};

/// Edges and vertices of a range that one thread works on between two looks at the control.
pub(super) const RANGE_WORK: u64 = 1 << 16;

/// Cuts vertices into ranges of about [`RANGE_WORK`] edges and vertices each, counting the edges of all these adjacencies.
pub(super) fn balanced(vertices: usize, sides: &[&Adjacency]) -> Vec<Range<Place>> {
    let mut ranges = Vec::new();
    let (mut start, mut work) = (0, 0);
    for vertex in 0..vertices as Place {
        work += 1 + sides.iter().map(|side| side.degree(vertex)).sum::<u64>();
        if work >= RANGE_WORK {
            ranges.push(start..vertex + 1);
            (start, work) = (vertex + 1, 0);
        }
    }
    if (start as usize) < vertices {
        ranges.push(start..vertices as Place);
    }
    ranges
}

/// The part of an array that belongs to each range.
pub(super) fn split<'s, T>(mut all: &'s mut [T], ranges: &[Range<Place>]) -> Vec<&'s mut [T]> {
    let cut = |range: &Range<Place>| {
        let (part, rest) = std::mem::take(&mut all).split_at_mut(range.len());
        all = rest;
        part
    };
    ranges.iter().map(cut).collect()
}
