//! Cores: the largest parts of a graph in which every vertex has at least k neighbours.

use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;

use super::simple::{Kept, SimpleAdjacency};
use crate::control::check;
use crate::{AnalyticsError, Control, Place, Projection};

/// Vertices a thread takes at a time.
const CHUNK: usize = 1 << 12;

/// The core number of every vertex, by place: the largest k for which it is in the k-core, without regard to the direction of edges, loops
/// and parallel edges.
///
/// How: vertices with fewest neighbours are taken away, all at once on all threads, until what is left has more. Source: Dasari,
/// Desh and Zubair, "ParK: An Efficient Algorithm for k-Core Decomposition on Multicore Processors", 2014.
///
/// Cost: one visit of each half-edge, and of each vertex once for each core it is in; 8 bytes an edge, 16 a vertex.
/// Errors: `Stopped`.
pub fn core_numbers(projection: &Projection, control: &dyn Control) -> Result<Vec<u32>, AnalyticsError> {
    let simple = SimpleAdjacency::new(projection, Kept::All, control)?;
    let vertices = simple.vertex_count();
    // Neighbours that are left; those that are gone stay at their core number.
    let left: Vec<AtomicU32> =
        (0..vertices as Place).map(|vertex| AtomicU32::new(simple.of(vertex).len() as u32)).collect();
    let degree = |vertex: &Place| left[*vertex as usize].load(Ordering::Relaxed);
    let mut remaining: Vec<Place> = (0..vertices as Place).collect();
    while let Some(core) = remaining.par_iter().map(degree).min() {
        let mut frontier: Vec<Place> = remaining.par_iter().copied().filter(|vertex| degree(vertex) <= core).collect();
        while !frontier.is_empty() {
            let next: Vec<Vec<Place>> = frontier
                .par_chunks(CHUNK)
                .map(|chunk| {
                    check(control)?;
                    let mut next = Vec::new();
                    for neighbour in chunk.iter().flat_map(|vertex| simple.of(*vertex)) {
                        // Whoever takes it down to the core takes it away; nobody takes it lower.
                        let taken =
                            left[*neighbour as usize].fetch_update(Ordering::Relaxed, Ordering::Relaxed, |degree| {
                                (degree > core).then(|| degree - 1)
                            });
                        if taken == Ok(core + 1) {
                            next.push(*neighbour);
                        }
                    }
                    Ok(next)
                })
                .collect::<Result<_, AnalyticsError>>()?;
            frontier = next.into_iter().flatten().collect();
        }
        remaining = remaining.into_par_iter().filter(|vertex| degree(vertex) > core).collect();
        control.progress(1.0 - remaining.len() as f64 / vertices as f64);
    }
    Ok(left.into_iter().map(AtomicU32::into_inner).collect())
}
