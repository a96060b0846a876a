//! Triangles: three vertices, each two of which are neighbours.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::simple::{Kept, SimpleAdjacency};
use crate::control::check;
use crate::{AnalyticsError, Control, Place, Projection};

/// How many there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Triangles {
    /// In all.
    pub total: u64,
    /// Those each vertex is a corner of, by place.
    pub of_vertex: Vec<u64>,
}

/// Counts triangles without regard to the direction of edges, loops and parallel edges.
///
/// How: each vertex knows its busier neighbours only, of which there are at most √(2 edges); those of two that are neighbours are
/// compared by bits. Every triangle is found once, at its least busy corner. Source: Schank and Wagner, "Finding, Counting and Listing All
/// Triangles in Large Graphs", 2005.
///
/// Cost: edges^1.5 at most; 4 bytes an edge, 8 a vertex and 8 more per thread.
/// Errors: `Stopped`.
pub fn triangles(projection: &Projection, control: &dyn Control) -> Result<Triangles, AnalyticsError> {
    let busier = SimpleAdjacency::new(projection, Kept::Busier, control)?;
    let vertices = busier.vertex_count();
    let ranges = busier.ranges();
    let done = AtomicU64::new(0);
    // A thread counts for itself: nearly all triangles have their corners among the same few vertices.
    let counts: Vec<Mutex<Counts>> =
        (0..rayon::current_num_threads()).map(|_| Mutex::new(Counts::new(vertices))).collect();
    ranges.par_iter().try_for_each(|range| {
        let own = &counts[rayon::current_thread_index().unwrap_or(0)];
        let mut own = own.lock().unwrap_or_else(PoisonError::into_inner);
        for vertex in range.clone() {
            if vertex % 64 == 0 {
                check(control)?;
            }
            own.add(&busier, vertex);
        }
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        control.progress(done as f64 / ranges.len() as f64);
        Ok::<_, AnalyticsError>(())
    })?;
    let mut all = counts.into_iter().map(|own| own.into_inner().unwrap_or_else(PoisonError::into_inner));
    let first = all.next().map_or_else(Vec::new, |own| own.of_vertex);
    let of_vertex = all.fold(first, |mut sum, own| {
        sum.iter_mut().zip(own.of_vertex).for_each(|(sum, own)| *sum += own);
        sum
    });
    Ok(Triangles { total: of_vertex.iter().sum::<u64>() / 3, of_vertex })
}

/// What one thread has found.
struct Counts {
    /// The neighbours of the vertex that is being looked at, a bit each.
    bits: Vec<u64>,
    of_vertex: Vec<u64>,
}

impl Counts {
    fn new(vertices: usize) -> Counts {
        Counts { bits: vec![0; vertices.div_ceil(64)], of_vertex: vec![0; vertices] }
    }

    /// Counts the triangles of which a vertex is the least busy corner.
    fn add(&mut self, busier: &SimpleAdjacency, vertex: Place) {
        let neighbours = busier.of(vertex);
        if neighbours.len() < 2 {
            return;
        }
        let bits = &mut self.bits;
        neighbours.iter().for_each(|neighbour| bits[*neighbour as usize / 64] |= 1 << (neighbour % 64));
        let mut of_this = 0;
        for middle in neighbours {
            let mut of_middle = 0;
            for third in busier.of(*middle) {
                // Without a branch: which of them are neighbours nobody can foretell.
                let is_there = bits[*third as usize / 64] >> (third % 64) & 1;
                of_middle += is_there;
                self.of_vertex[*third as usize] += is_there;
            }
            self.of_vertex[*middle as usize] += of_middle;
            of_this += of_middle;
        }
        neighbours.iter().for_each(|neighbour| bits[*neighbour as usize / 64] = 0);
        self.of_vertex[vertex as usize] += of_this;
    }
}

impl Triangles {
    /// The share of pairs of a vertex's neighbours that are neighbours, given how many neighbours it has.
    pub fn clustering(&self, vertex: Place, neighbours: u64) -> f64 {
        let pairs = neighbours * neighbours.saturating_sub(1) / 2;
        if pairs == 0 { 0.0 } else { self.of_vertex[vertex as usize] as f64 / pairs as f64 }
    }
}
