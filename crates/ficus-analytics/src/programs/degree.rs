//! How many edges each vertex has.

use ficus_model::Direction;

use crate::{Place, Projection};

/// Edges of every vertex in a direction, by place. Parallel edges count each, a loop twice for `Both`. Divided by the number of other vertices it is
/// the degree centrality.
pub fn degrees(projection: &Projection, direction: Direction) -> Vec<u64> {
    let sides = projection.sides(direction);
    (0..projection.vertex_count() as Place).map(|vertex| sides.degree(vertex)).collect()
}
