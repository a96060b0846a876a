//! Triangles: three vertices, each two of which are neighbours.

use std::sync::atomic::{AtomicU64, Ordering};

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
/// Cost: edges^1.5 at most; 4 bytes an edge, 16 a vertex and an eighth per thread.
/// Errors: `Stopped`.
pub fn triangles(projection: &Projection, control: &dyn Control) -> Result<Triangles, AnalyticsError> {
    let busier = SimpleAdjacency::new(projection, Kept::Busier, control)?;
    let vertices = busier.vertex_count();
    let of_vertex: Vec<AtomicU64> = (0..vertices).map(|_| AtomicU64::new(0)).collect();
    let ranges = busier.ranges();
    let done = AtomicU64::new(0);
    let total = ranges
        .par_iter()
        .map_init(
            || vec![0u64; vertices.div_ceil(64)],
            |bits, range| {
                let mut total = 0;
                for vertex in range.clone() {
                    let neighbours = busier.of(vertex);
                    if neighbours.len() < 2 {
                        continue;
                    }
                    if vertex % 64 == 0 {
                        check(control)?;
                    }
                    neighbours.iter().for_each(|neighbour| bits[*neighbour as usize / 64] |= 1 << (neighbour % 64));
                    let mut of_this = 0;
                    for middle in neighbours {
                        let mut of_middle = 0;
                        for third in busier.of(*middle) {
                            if bits[*third as usize / 64] >> (third % 64) & 1 == 1 {
                                of_middle += 1;
                                of_vertex[*third as usize].fetch_add(1, Ordering::Relaxed);
                            }
                        }
                        if of_middle > 0 {
                            of_vertex[*middle as usize].fetch_add(of_middle, Ordering::Relaxed);
                            of_this += of_middle;
                        }
                    }
                    neighbours.iter().for_each(|neighbour| bits[*neighbour as usize / 64] = 0);
                    of_vertex[vertex as usize].fetch_add(of_this, Ordering::Relaxed);
                    total += of_this;
                }
                let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                control.progress(done as f64 / ranges.len() as f64);
                Ok(total)
            },
        )
        .try_reduce(|| 0, |left, right| Ok::<_, AnalyticsError>(left + right))?;
    Ok(Triangles { total, of_vertex: of_vertex.into_iter().map(AtomicU64::into_inner).collect() })
}

impl Triangles {
    /// The share of pairs of a vertex's neighbours that are neighbours, given how many neighbours it has.
    pub fn clustering(&self, vertex: Place, neighbours: u64) -> f64 {
        let pairs = neighbours * neighbours.saturating_sub(1) / 2;
        if pairs == 0 { 0.0 } else { self.of_vertex[vertex as usize] as f64 / pairs as f64 }
    }
}
