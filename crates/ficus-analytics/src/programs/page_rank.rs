//! PageRank: the share of time a walker spends at each vertex.

use ficus_model::Direction;

use super::vertex_program::{VertexProgram, run_synchronous};
use crate::{AnalyticsError, Control, Place, Projection};

/// How ranks are computed.
#[derive(Clone, Debug)]
pub struct PageRankOptions {
    /// Which way the walker goes along edges. Parallel edges count each.
    pub direction: Direction,
    /// With which probability the walker goes on along an edge rather than starting again; from 0 to 1.
    pub damping: f64,
    /// Ends when all ranks together moved by less than this in one iteration.
    pub tolerance: f64,
    /// Ends after so many iterations.
    pub iterations_limit: u32,
    /// Ranks to begin with, by place; the same for all, with sum 1, if not given. Their sum is kept.
    pub start: Option<Vec<f64>>,
    /// Where a walker starts again, in proportion to these numbers, which is also where it goes from a vertex without edges; anywhere if
    /// not given. This makes it a personalised PageRank.
    pub restart: Option<Vec<(Place, f64)>>,
}

impl Default for PageRankOptions {
    /// Out edges, 0.85, 1e-9, 100 iterations.
    fn default() -> Self {
        PageRankOptions {
            direction: Direction::Out,
            damping: 0.85,
            tolerance: 1e-9,
            iterations_limit: 100,
            start: None,
            restart: None,
        }
    }
}

/// What came out.
#[derive(Clone, Debug, PartialEq)]
pub struct PageRank {
    /// By place.
    pub ranks: Vec<f64>,
    /// Iterations that were run.
    pub iterations: u32,
    /// Whether the tolerance was met.
    pub is_converged: bool,
    /// How far all ranks together moved in the last iteration.
    pub change: f64,
}

/// Computes ranks: `rank(v) = damping × (Σ rank(u) / edges(u) over edges u→v) + restart(v) × (what is left)`, where what is left is `1 - damping` of all ranks and
/// `damping` of those of vertices without edges.
///
/// Cost: one visit of each edge per iteration; 16 bytes a vertex beside the result. Sums are taken in an order that depends on
/// the projection only.
/// Errors: `Stopped`; `Invalid` for a number that is out of its range.
pub fn page_rank(
    projection: &Projection,
    options: &PageRankOptions,
    control: &dyn Control,
) -> Result<PageRank, AnalyticsError> {
    let vertices = projection.vertex_count();
    let invalid = |parameter: &'static str, reason: String| Err(AnalyticsError::Invalid { parameter, reason });
    if !(0.0..=1.0).contains(&options.damping) {
        return invalid("damping", format!("{} is not between 0 and 1", options.damping));
    }
    if options.tolerance.is_nan() || options.tolerance < 0.0 {
        return invalid("tolerance", format!("{} is not a positive number or 0", options.tolerance));
    }
    let restart = match &options.restart {
        None => None,
        Some(given) => Some(normalised(given, vertices)?),
    };
    let initial = options.start.clone().unwrap_or_else(|| vec![1.0 / vertices as f64; vertices]);
    if initial.iter().any(|rank| !rank.is_finite() || *rank < 0.0) {
        return invalid("start", "ranks to begin with are finite and not negative".to_owned());
    }
    let limit = options.iterations_limit;
    // Dispatched here, so that the loop knows which it is.
    let outcome = match restart {
        None => {
            let anywhere = 1.0 / vertices as f64;
            let program = Walker { damping: options.damping, tolerance: options.tolerance, restart: |_| anywhere };
            run_synchronous(projection, options.direction, &program, initial, limit, control)?
        }
        Some(shares) => {
            let restart = |vertex: Place| shares[vertex as usize];
            let program = Walker { damping: options.damping, tolerance: options.tolerance, restart };
            run_synchronous(projection, options.direction, &program, initial, limit, control)?
        }
    };
    let (iterations, is_converged, change) = (outcome.rounds, outcome.is_converged, outcome.change);
    Ok(PageRank { ranks: outcome.values, iterations, is_converged, change })
}

/// Shares by place, with sum 1.
fn normalised(given: &[(Place, f64)], vertices: usize) -> Result<Vec<f64>, AnalyticsError> {
    let mut shares = vec![0.0; vertices];
    let invalid = |reason: String| Err(AnalyticsError::Invalid { parameter: "restart", reason });
    for (place, share) in given {
        if *place as usize >= vertices || !share.is_finite() || *share < 0.0 {
            return invalid(format!(
                "share {share} at place {place} of {vertices}; shares are finite and not negative"
            ));
        }
        shares[*place as usize] += share;
    }
    let sum: f64 = shares.iter().sum();
    if sum <= 0.0 {
        return invalid("all shares are zero; give at least one vertex a share".to_owned());
    }
    shares.iter_mut().for_each(|share| *share /= sum);
    Ok(shares)
}

struct Walker<R> {
    damping: f64,
    tolerance: f64,
    restart: R,
}

impl<R: Fn(Place) -> f64 + Sync> VertexProgram for Walker<R> {
    type Value = f64;
    type Message = f64;

    #[inline(always)]
    fn nothing(&self) -> f64 {
        0.0
    }

    #[inline(always)]
    fn scatter(&self, _vertex: Place, rank: &f64, degree: u64) -> f64 {
        // Without edges nobody hears it.
        rank / degree as f64
    }

    #[inline(always)]
    fn combine(&self, left: f64, right: f64) -> f64 {
        left + right
    }

    #[inline(always)]
    fn contribution(&self, _vertex: Place, rank: &f64, degree: u64) -> f64 {
        if degree == 0 { *rank } else { (1.0 - self.damping) * rank }
    }

    #[inline(always)]
    fn apply(&self, vertex: Place, _rank: &f64, gathered: f64, left: f64) -> f64 {
        self.damping * gathered + left * (self.restart)(vertex)
    }

    #[inline(always)]
    fn change(&self, before: &f64, after: &f64) -> f64 {
        (after - before).abs()
    }

    fn is_converged(&self, change: f64) -> bool {
        change < self.tolerance
    }
}
