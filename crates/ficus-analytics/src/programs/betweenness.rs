//! Betweenness: the share of shortest paths that lead through a vertex.

use std::sync::atomic::{AtomicU64, Ordering};

use ficus_model::Direction;
use rayon::prelude::*;

use super::simple::{Kept, SimpleAdjacency};
use crate::control::check;
use crate::{AnalyticsError, Control, Place, Projection};

/// How paths are counted.
#[derive(Clone, Debug)]
pub struct BetweennessOptions {
    /// Which way paths go along edges; for `Both` a pair counts once, not once in each order.
    pub direction: Direction,
    /// If given, only paths from these are looked at, and counted as many times more as there are other vertices: an estimate. All for the exact
    /// numbers.
    pub sources: Option<Vec<Place>>,
    /// Whether to divide by the number of pairs of other vertices.
    pub normalised: bool,
}

impl Default for BetweennessOptions {
    /// Exact, along out edges, normalised.
    fn default() -> Self {
        BetweennessOptions { direction: Direction::Out, sources: None, normalised: true }
    }
}

/// Vertices between two looks at the control.
const VERTICES_PER_CHECK: usize = 1 << 12;

/// The betweenness of every vertex, by place. Parallel edges count once, ends of a path are not between.
///
/// How: one search in breadth from each source, then back from the farthest (Brandes, "A Faster Algorithm for Betweenness Centrality", 2001), sources
/// side by side. Sums depend on the number of threads in their last digits.
///
/// Cost: two visits of each edge for each source; per thread 36 bytes a vertex, and 8 bytes an edge for `Both`.
/// Errors: `Stopped`; `Invalid` for a source that is no place.
pub fn betweenness(
    projection: &Projection,
    options: &BetweennessOptions,
    control: &dyn Control,
) -> Result<Vec<f64>, AnalyticsError> {
    let vertices = projection.vertex_count();
    let simple = match options.direction {
        Direction::Both => Some(SimpleAdjacency::new(projection, Kept::All, control)?),
        _ => None,
    };
    let neighbours = |vertex: Place| match (&simple, options.direction) {
        (Some(simple), _) => simple.of(vertex),
        (None, Direction::In) => projection.into().of(vertex),
        (None, _) => projection.out().of(vertex),
    };
    let all: Vec<Place>;
    let sources: &[Place] = match &options.sources {
        Some(sources) => sources,
        None => {
            all = (0..vertices as Place).collect();
            &all
        }
    };
    if let Some(source) = sources.iter().find(|source| **source as usize >= vertices) {
        let reason = format!("place {source} of {vertices}");
        return Err(AnalyticsError::Invalid { parameter: "sources", reason });
    }
    let threads = rayon::current_num_threads();
    let done = AtomicU64::new(0);
    let sums: Vec<Vec<f64>> = (0..threads)
        .into_par_iter()
        .map(|thread| {
            let mut search = Search::new(vertices);
            for source in sources.iter().skip(thread).step_by(threads) {
                search.run(*source, &neighbours, control)?;
                let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                control.progress(done as f64 / sources.len() as f64);
            }
            Ok(search.between)
        })
        .collect::<Result<_, AnalyticsError>>()?;
    let scale = scale(vertices as f64, sources.len() as f64, options);
    let of = |vertex: usize| sums.iter().map(|sum| sum[vertex]).sum::<f64>() * scale;
    Ok((0..vertices).into_par_iter().map(of).collect())
}

fn scale(vertices: f64, sources: f64, options: &BetweennessOptions) -> f64 {
    let estimate = if sources > 0.0 { vertices / sources } else { 0.0 };
    match (options.normalised, options.direction) {
        (true, _) if vertices > 2.0 => estimate / ((vertices - 1.0) * (vertices - 2.0)),
        (_, Direction::Both) => estimate / 2.0,
        _ => estimate,
    }
}

/// The state of one thread; all but the sums is empty between searches.
struct Search {
    between: Vec<f64>,
    distances: Vec<u32>,
    paths: Vec<f64>,
    shares: Vec<f64>,
    found: Vec<Place>,
}

const FAR: u32 = u32::MAX;

impl Search {
    fn new(vertices: usize) -> Search {
        let zeros = || vec![0.0; vertices];
        let distances = vec![FAR; vertices];
        Search { between: zeros(), distances, paths: zeros(), shares: zeros(), found: Vec::new() }
    }

    fn run<'a>(
        &mut self,
        source: Place,
        neighbours: &impl Fn(Place) -> &'a [Place],
        control: &dyn Control,
    ) -> Result<(), AnalyticsError> {
        // Parallel edges stand side by side.
        let each = |vertex: Place| {
            let all = neighbours(vertex);
            let is_new = move |(index, neighbour): &(usize, &Place)| *index == 0 || all[index - 1] != **neighbour;
            all.iter().enumerate().filter(is_new).map(|(_, neighbour)| *neighbour as usize)
        };
        self.distances[source as usize] = 0;
        self.paths[source as usize] = 1.0;
        self.found.push(source);
        let mut next = 0;
        while next < self.found.len() {
            if next % VERTICES_PER_CHECK == 0 {
                check(control)?;
            }
            let vertex = self.found[next];
            next += 1;
            let (there, paths) = (self.distances[vertex as usize] + 1, self.paths[vertex as usize]);
            for neighbour in each(vertex) {
                if self.distances[neighbour] == FAR {
                    self.distances[neighbour] = there;
                    self.found.push(neighbour as Place);
                }
                if self.distances[neighbour] == there {
                    self.paths[neighbour] += paths;
                }
            }
        }
        for (number, vertex) in self.found.iter().rev().enumerate() {
            if number % VERTICES_PER_CHECK == 0 {
                check(control)?;
            }
            let at = *vertex as usize;
            let there = self.distances[at] + 1;
            let mut share = 0.0;
            for neighbour in each(*vertex).filter(|neighbour| self.distances[*neighbour] == there) {
                share += self.paths[at] / self.paths[neighbour] * (1.0 + self.shares[neighbour]);
            }
            self.shares[at] = share;
            if *vertex != source {
                self.between[at] += share;
            }
        }
        for vertex in self.found.drain(..) {
            let at = vertex as usize;
            (self.distances[at], self.paths[at], self.shares[at]) = (FAR, 0.0, 0.0);
        }
        Ok(())
    }
}
