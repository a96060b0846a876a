//! Distances from one or more vertices to all others.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use ficus_model::Direction;
use rayon::prelude::*;

use super::weights::Weights;
use crate::control::check;
use crate::{AnalyticsError, Control, Place, Projection};

/// From where and along what.
#[derive(Clone, Debug)]
pub struct ShortestPathOptions<'a> {
    /// Where paths begin: each at distance 0.
    pub sources: Vec<Place>,
    /// Which way they go along edges.
    pub direction: Direction,
    /// How long edges are; 1 each if not given.
    pub weights: Option<&'a Weights>,
    /// Vertices farther away are not looked for.
    pub distance_limit: Option<f64>,
}

/// The distance of every vertex from the nearest source, by place; infinite if it is not reached.
///
/// How: vertices wait in buckets of about the same distance; the nearest bucket is settled on all threads, again for those that
/// came nearer meanwhile. With edges of length 1 this is a search in breadth. Source: Meyer and Sanders, "Δ-stepping: A Parallelizable Shortest Path
/// Algorithm", 2003.
///
/// Cost: one visit of each edge that is reached, and one more each time its start comes nearer; 8 bytes a vertex.
/// Errors: `Stopped`; `Invalid` for a source that is no place.
pub fn shortest_distances(
    projection: &Projection,
    options: &ShortestPathOptions<'_>,
    control: &dyn Control,
) -> Result<Vec<f64>, AnalyticsError> {
    let vertices = projection.vertex_count();
    // Distances are not negative, and such numbers are in the order of their bits.
    let distances: Vec<AtomicU64> = (0..vertices).map(|_| AtomicU64::new(f64::INFINITY.to_bits())).collect();
    let width = options.weights.map_or(1.0, |weights| weights.mean().max(f64::MIN_POSITIVE));
    let bucket_of = |distance: f64| (distance / width) as u64;
    let limit = options.distance_limit.unwrap_or(f64::INFINITY);
    let mut buckets: BTreeMap<u64, Vec<Place>> = BTreeMap::new();
    for source in &options.sources {
        let Some(distance) = distances.get(*source as usize) else {
            let reason = format!("place {source} of {vertices}");
            return Err(AnalyticsError::Invalid { parameter: "sources", reason });
        };
        distance.store(0, Ordering::Relaxed);
        buckets.entry(0).or_default().push(*source);
    }
    let sides = projection.sides(options.direction).push;
    let lengths: Vec<Option<&[f64]>> = match (options.weights, options.direction) {
        (None, _) => vec![None; sides.len()],
        (Some(weights), Direction::Out) => vec![Some(weights.out())],
        (Some(weights), Direction::In) => vec![Some(weights.into())],
        (Some(weights), Direction::Both) => vec![Some(weights.out()), Some(weights.into())],
    };
    let mut settled = 0;
    while let Some((bucket, frontier)) = buckets.pop_first() {
        let nearer: Vec<Vec<(u64, Place)>> = frontier
            .par_chunks(FRONTIER_CHUNK)
            .map(|chunk| {
                check(control)?;
                let mut nearer = Vec::new();
                for vertex in chunk {
                    let distance = f64::from_bits(distances[*vertex as usize].load(Ordering::Relaxed));
                    if bucket_of(distance) != bucket {
                        // It came nearer since and was settled with those.
                        continue;
                    }
                    for (side, lengths) in sides.iter().zip(&lengths) {
                        for (neighbour, edge) in side.of(*vertex).iter().zip(side.edges_of(*vertex)) {
                            let there = distance + lengths.map_or(1.0, |lengths| lengths[edge]);
                            let known = &distances[*neighbour as usize];
                            if there <= limit
                                && there.to_bits() < known.load(Ordering::Relaxed)
                                && there.to_bits() < known.fetch_min(there.to_bits(), Ordering::Relaxed)
                            {
                                nearer.push((bucket_of(there), *neighbour));
                            }
                        }
                    }
                }
                Ok(nearer)
            })
            .collect::<Result<_, AnalyticsError>>()?;
        for (bucket, vertex) in nearer.into_iter().flatten() {
            buckets.entry(bucket).or_default().push(vertex);
        }
        settled += frontier.len();
        control.progress((settled as f64 / vertices as f64).min(1.0));
    }
    Ok(distances.into_iter().map(|distance| f64::from_bits(distance.into_inner())).collect())
}

/// Vertices of a frontier that a thread takes at a time.
const FRONTIER_CHUNK: usize = 256;
