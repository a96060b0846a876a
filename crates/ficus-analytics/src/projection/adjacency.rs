//! Neighbours of every vertex in one direction, as two arrays.

use std::ops::Range;

use rayon::slice::ParallelSliceMut;

use super::Place;

/// Neighbours of all vertices in one direction: `neighbours[offsets[v]..offsets[v + 1]]` are those of `v`, ascending, which
/// means that those of the highest degree come first. Parallel edges are kept.
#[derive(Debug, Default)]
pub struct Adjacency {
    pub(super) offsets: Vec<u64>,
    pub(super) neighbours: Vec<Place>,
}

impl Adjacency {
    /// From pairs of a vertex and its neighbour, which it sorts.
    pub(super) fn of_pairs(vertices: usize, pairs: &mut [(Place, Place)]) -> Adjacency {
        pairs.par_sort_unstable();
        let mut offsets = vec![0; vertices + 1];
        pairs.iter().for_each(|pair| offsets[pair.0 as usize + 1] += 1);
        for vertex in 0..vertices {
            offsets[vertex + 1] += offsets[vertex];
        }
        Adjacency { offsets, neighbours: pairs.iter().map(|pair| pair.1).collect() }
    }

    /// The neighbours of a vertex.
    #[inline(always)]
    pub fn of(&self, vertex: Place) -> &[Place] {
        &self.neighbours[self.offsets[vertex as usize] as usize..self.offsets[vertex as usize + 1] as usize]
    }

    /// How many there are.
    #[inline(always)]
    pub fn degree(&self, vertex: Place) -> u64 {
        self.offsets[vertex as usize + 1] - self.offsets[vertex as usize]
    }

    /// Where the neighbours of a vertex are among all edges, for values kept beside the edges.
    #[inline(always)]
    pub fn edges_of(&self, vertex: Place) -> Range<usize> {
        self.offsets[vertex as usize] as usize..self.offsets[vertex as usize + 1] as usize
    }

    /// Number of edges.
    pub fn edge_count(&self) -> u64 {
        self.neighbours.len() as u64
    }

    /// Cuts the vertices into ranges of about `work` edges and vertices each, so that ranges cost about the same. All bounds
    /// but the last are multiples of 64.
    pub fn balanced_ranges(&self, work: u64) -> Vec<Range<Place>> {
        let vertices = self.offsets.len().saturating_sub(1);
        let mut ranges = Vec::new();
        let mut start = 0;
        while start < vertices {
            let goal = self.offsets[start] + start as u64 + work.max(1);
            // The first vertex at which so much lies behind; cost grows by at least one a vertex.
            let tail = &self.offsets[start + 1..];
            let (mut low, mut high) = (0, tail.len());
            while low < high {
                let middle = (low + high) / 2;
                let is_before = tail[middle] + ((start + 1 + middle) as u64) < goal;
                (low, high) = if is_before { (middle + 1, high) } else { (low, middle) };
            }
            let end = ((start + low + 1).next_multiple_of(64)).min(vertices);
            ranges.push(start as Place..end as Place);
            start = end;
        }
        ranges
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        (self.offsets.capacity() * size_of::<u64>() + self.neighbours.capacity() * size_of::<Place>()) as u64
    }
}
