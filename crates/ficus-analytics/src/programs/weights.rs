//! A number for every edge of a projection, beside its neighbours.

use std::sync::{Mutex, PoisonError};

use ficus_model::{Direction, Value, number};
use ficus_storage::{HalfEdge, HalfEdgeCursor, Snapshot};
use rayon::prelude::*;

use super::ranges::{balanced, split};
use crate::control::check;
use crate::{Adjacency, AnalyticsError, Control, Projection, ProjectionOptions};

/// Lengths of edges, in the order of both adjacencies of a projection. 16 bytes an edge. Of parallel edges, the shorter comes first.
#[derive(Debug)]
pub struct Weights {
    out: Vec<f64>,
    into: Vec<f64>,
    mean: f64,
}

/// Half-edges read at a time.
const HALF_EDGES_PER_CALL: usize = 1 << 12;

impl Weights {
    /// Reads a property of all edges of a projection, which must have been made of this snapshot with these options; `default` stands for
    /// edges without it.
    ///
    /// Cost: a visit of each half-edge with a look at its property, and a sort of each vertex's edges, on all threads of the pool.
    /// Errors: `Stopped`; `Invalid` for an edge without the property and no default, and for a value that is not a
    /// number of 0 or more.
    pub fn new(
        snapshot: &Snapshot,
        projection: &Projection,
        options: &ProjectionOptions,
        key: &str,
        default: Option<f64>,
        control: &dyn Control,
    ) -> Result<Weights, AnalyticsError> {
        let shared = Mutex::new(snapshot.clone());
        let read = |way: Direction, adjacency: &Adjacency| {
            read(&shared, projection, options, way, adjacency, (key, default), control)
        };
        let out = read(Direction::Out, projection.out())?;
        let into = read(Direction::In, projection.into())?;
        let mean = if out.is_empty() { 0.0 } else { out.iter().sum::<f64>() / out.len() as f64 };
        Ok(Weights { out, into, mean })
    }

    /// Those of out edges, see [`Adjacency::edges_of`].
    pub fn out(&self) -> &[f64] {
        &self.out
    }

    /// Those of in edges.
    pub fn into(&self) -> &[f64] {
        &self.into
    }

    /// Their mean; 0 without edges.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Bytes held for so many edges.
    pub fn estimated_bytes(edges: u64) -> u64 {
        edges * 16
    }
}

fn read(
    shared: &Mutex<Snapshot>,
    projection: &Projection,
    options: &ProjectionOptions,
    way: Direction,
    adjacency: &Adjacency,
    (key, default): (&str, Option<f64>),
    control: &dyn Control,
) -> Result<Vec<f64>, AnalyticsError> {
    let mut weights = vec![0.0; adjacency.edge_count() as usize];
    let ranges = balanced(projection.vertex_count(), &[adjacency]);
    let edges: Vec<_> = ranges
        .iter()
        .map(|range| match range.end > range.start {
            true => 0..(adjacency.edges_of(range.end - 1).end - adjacency.edges_of(range.start).start) as u32,
            false => 0..0,
        })
        .collect();
    let parts: Vec<_> = ranges.iter().zip(split(&mut weights, &edges)).collect();
    let labels = options.edge_labels.clone().unwrap_or_default();
    parts.into_par_iter().try_for_each_init(
        || shared.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        |snapshot, (range, part)| {
            check(control)?;
            let key_id = snapshot.key_id(key);
            let mut half_edges: Vec<HalfEdge> = Vec::new();
            let mut run = Vec::new();
            let mut filled = 0;
            for place in range.clone() {
                if adjacency.degree(place) == 0 {
                    continue;
                }
                half_edges.clear();
                let (vertex, mut cursor) = (projection.vertex(place), HalfEdgeCursor::default());
                while snapshot.half_edges(vertex, way, &labels, &mut cursor, HALF_EDGES_PER_CALL, &mut half_edges) {}
                run.clear();
                for half_edge in &half_edges {
                    let value = key_id.and_then(|key| snapshot.edge_value(half_edge.edge, key));
                    let neighbour = projection.place(half_edge.neighbour).expect("an edge ends at a vertex");
                    run.push((neighbour, length(snapshot, half_edge, key, value, default)?));
                }
                run.sort_unstable_by(|left, right| left.0.cmp(&right.0).then(left.1.total_cmp(&right.1)));
                assert_eq!(run.len() as u64, adjacency.degree(place), "the projection is of this snapshot");
                for (weight, (_, length)) in part[filled..].iter_mut().zip(&run) {
                    *weight = *length;
                }
                filled += run.len();
            }
            Ok(())
        },
    )?;
    Ok(weights)
}

fn length(
    snapshot: &Snapshot,
    half_edge: &HalfEdge,
    key: &str,
    value: Option<Value>,
    default: Option<f64>,
) -> Result<f64, AnalyticsError> {
    let edge = || snapshot.edge_id(half_edge.edge).map_or_else(String::new, |id| format!("{id:?}"));
    let invalid = |reason: String| Err(AnalyticsError::Invalid { parameter: "weight", reason });
    let Some(value) = value else {
        let missing = || format!("edge {} has no property '{key}'; give it one, or a default for all", edge());
        return default.map_or_else(|| invalid(missing()), Ok);
    };
    let length = if number::is_number(&value) { number::to_double(&value) } else { f64::NAN };
    if length >= 0.0 && length.is_finite() {
        return Ok(length);
    }
    invalid(format!("property '{key}' of edge {} is {value:?}; lengths are finite numbers of 0 or more", edge()))
}
