//! Communities: every vertex takes the label most of its neighbours have.

use ficus_model::Direction;
use rayon::prelude::*;

use super::ranges::{balanced, split};
use crate::control::check;
use crate::{AnalyticsError, Control, Place, Projection};

/// How labels spread.
#[derive(Clone, Copy, Debug)]
pub struct LabelPropagationOptions {
    /// Which way labels go along edges.
    pub direction: Direction,
    /// Ends after so many rounds, or when no label changed.
    pub rounds_limit: u32,
}

impl Default for LabelPropagationOptions {
    /// Both ways, 10 rounds.
    fn default() -> Self {
        LabelPropagationOptions { direction: Direction::Both, rounds_limit: 10 }
    }
}

/// The label of every vertex, which is a place: each begins with its own; in each round all take at once the label
/// that comes along most edges, the smallest of those that come along as many. A vertex nothing comes to keeps its own. Parallel edges count each,
/// and so do two edges between the same vertices in opposite directions.
///
/// This is the community detection of LDBC Graphalytics: it gives the same labels for the same projection. Answers with the labels and the number of
/// rounds.
///
/// Cost: one visit of each edge per round; 8 bytes a vertex and 8 more per thread.
/// Errors: `Stopped`.
pub fn label_propagation(
    projection: &Projection,
    options: LabelPropagationOptions,
    control: &dyn Control,
) -> Result<(Vec<Place>, u32), AnalyticsError> {
    let vertices = projection.vertex_count();
    let pull = projection.sides(options.direction).pull;
    let ranges = balanced(vertices, &pull);
    let mut labels: Vec<Place> = (0..vertices as Place).collect();
    let mut next = vec![0; vertices];
    for round in 1..=options.rounds_limit {
        let parts: Vec<_> = ranges.iter().zip(split(&mut next, &ranges)).collect();
        let labels_now = &labels;
        let changed: u64 = parts
            .into_par_iter()
            .map_init(
                || Votes::new(vertices),
                |votes, (range, next)| {
                    check(control)?;
                    let mut changed = 0;
                    for (vertex, next) in range.clone().zip(next) {
                        for side in &pull {
                            side.of(vertex).iter().for_each(|from| votes.add(labels_now[*from as usize], 1.0));
                        }
                        let label = votes.take(|label| label).unwrap_or(labels_now[vertex as usize]);
                        changed += u64::from(label != labels_now[vertex as usize]);
                        *next = label;
                    }
                    Ok(changed)
                },
            )
            .try_reduce(|| 0, |left, right| Ok::<_, AnalyticsError>(left + right))?;
        std::mem::swap(&mut labels, &mut next);
        control.round(round, options.rounds_limit);
        if changed == 0 {
            return Ok((labels, round));
        }
    }
    Ok((labels, options.rounds_limit))
}

/// Counts votes for labels that are places; empty between two vertices.
pub(super) struct Votes {
    counts: Vec<f64>,
    voted: Vec<Place>,
}

impl Votes {
    pub(super) fn new(vertices: usize) -> Votes {
        Votes { counts: vec![0.0; vertices], voted: Vec::new() }
    }

    #[inline(always)]
    pub(super) fn add(&mut self, label: Place, strength: f64) {
        let count = &mut self.counts[label as usize];
        if *count == 0.0 {
            self.voted.push(label);
        }
        *count += strength;
    }

    /// The label with most votes, of equals the one that is first in this order; nobody keeps any votes.
    pub(super) fn take<K: Ord>(&mut self, order: impl Fn(Place) -> K) -> Option<Place> {
        let mut best: Option<(f64, Place)> = None;
        for label in self.voted.drain(..) {
            let count = std::mem::take(&mut self.counts[label as usize]);
            let is_better =
                best.is_none_or(|(most, chosen)| count > most || count == most && order(label) < order(chosen));
            if is_better && count > 0.0 {
                best = Some((count, label));
            }
        }
        best.map(|(_, label)| label)
    }
}
