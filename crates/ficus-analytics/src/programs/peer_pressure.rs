//! Clusters: every vertex joins the cluster its neighbours press it into.

use ficus_model::Direction;
use rayon::prelude::*;

use super::label_propagation::Votes;
use super::ranges::{balanced, split};
use crate::control::check;
use crate::{AnalyticsError, Control, Place, Projection};

/// How votes are counted.
#[derive(Clone, Debug)]
pub struct PeerPressureOptions<'a> {
    /// Which way votes go along edges.
    pub direction: Direction,
    /// Ends after so many rounds, or when no cluster changed.
    pub rounds_limit: u32,
    /// The strength of each vertex's vote, by place; 1 each if not given.
    pub strengths: Option<Vec<f64>>,
    /// Whether a vertex divides its strength by the number of edges it votes along.
    pub distribute: bool,
    /// Of clusters with as many votes the one whose number is smallest here is taken, by place.
    pub order: &'a [u32],
}

/// The cluster of every vertex, which is a place: each begins as its own cluster; in each round a vertex counts its own vote for its cluster and those of all edges that
/// come to it, and joins the strongest. As TinkerPop's `peerPressure()`, whose rounds are synchronous as well. Answers with the clusters and the number of rounds.
///
/// Cost: one visit of each edge per round; 16 bytes a vertex and 8 more per thread.
/// Errors: `Stopped`; `Invalid` unless `order` and `strengths` have a number for each vertex.
pub fn peer_pressure(
    projection: &Projection,
    options: &PeerPressureOptions<'_>,
    control: &dyn Control,
) -> Result<(Vec<Place>, u32), AnalyticsError> {
    let vertices = projection.vertex_count();
    let sides = projection.sides(options.direction);
    let mut strengths = options.strengths.clone().unwrap_or_else(|| vec![1.0; vertices]);
    for (parameter, length) in [("strengths", strengths.len()), ("order", options.order.len())] {
        if length != vertices {
            let reason = format!("{length} numbers for {vertices} vertices; give one for each");
            return Err(AnalyticsError::Invalid { parameter, reason });
        }
    }
    if options.distribute {
        let divide = |(vertex, strength): (usize, &mut f64)| {
            *strength /= sides.push.iter().map(|side| side.degree(vertex as Place)).sum::<u64>().max(1) as f64;
        };
        strengths.par_iter_mut().enumerate().for_each(divide);
    }
    let ranges = balanced(vertices, &sides.pull);
    let mut clusters: Vec<Place> = (0..vertices as Place).collect();
    let mut next = vec![0; vertices];
    for round in 1..=options.rounds_limit {
        let parts: Vec<_> = ranges.iter().zip(split(&mut next, &ranges)).collect();
        let clusters_now = &clusters;
        let changed: u64 = parts
            .into_par_iter()
            .map_init(
                || Votes::new(vertices),
                |votes, (range, next)| {
                    check(control)?;
                    let mut changed = 0;
                    for (vertex, next) in range.clone().zip(next) {
                        let own = clusters_now[vertex as usize];
                        votes.add(own, strengths[vertex as usize]);
                        for from in sides.pull.iter().flat_map(|side| side.of(vertex)) {
                            votes.add(clusters_now[*from as usize], strengths[*from as usize]);
                        }
                        // Where all votes have no strength, it is alone.
                        let cluster = votes.take(|cluster| options.order[cluster as usize]).unwrap_or(vertex);
                        changed += u64::from(cluster != own);
                        *next = cluster;
                    }
                    Ok(changed)
                },
            )
            .try_reduce(|| 0, |left, right| Ok::<_, AnalyticsError>(left + right))?;
        std::mem::swap(&mut clusters, &mut next);
        control.round(round, options.rounds_limit);
        if changed == 0 {
            return Ok((clusters, round));
        }
    }
    Ok((clusters, options.rounds_limit))
}
