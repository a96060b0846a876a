//! Which of the vertices that reach a vertex comes first.

use ficus_model::Direction;

use crate::control::check;
use crate::{AnalyticsError, Control, Place, Projection};

/// Of each vertex the one that comes first in `order` (a number for each vertex, by place, all different) among itself and those that reach it along edges in a direction. As
/// TinkerPop's `connectedComponent()`: in both directions it is the first of each component.
///
/// Cost: one visit of each edge, on one thread, and sorting the vertices with edges; 8 bytes a vertex.
/// Errors: `Stopped`; `Invalid` unless `order` has a number for each vertex.
pub fn least_reaching(
    projection: &Projection,
    direction: Direction,
    order: &[u32],
    control: &dyn Control,
) -> Result<Vec<Place>, AnalyticsError> {
    let vertices = projection.vertex_count();
    if order.len() != vertices {
        let reason = format!("{} numbers for {vertices} vertices; give one for each", order.len());
        return Err(AnalyticsError::Invalid { parameter: "order", reason });
    }
    let sides = projection.sides(direction);
    let mut names: Vec<Place> = (0..vertices as Place).collect();
    // Who reaches nobody gives its name to nobody.
    let mut in_order: Vec<Place> = names.iter().copied().filter(|place| sides.degree(*place) > 0).collect();
    in_order.sort_unstable_by_key(|place| order[*place as usize]);
    let mut frontier = Vec::new();
    let mut work = 0;
    // In this order a vertex is entered at most once: whatever comes later is no better.
    for first in in_order {
        if names[first as usize] != first {
            continue;
        }
        let own = order[first as usize];
        frontier.push(first);
        while let Some(place) = frontier.pop() {
            for neighbour in sides.push.iter().flat_map(|side| side.of(place)) {
                let name = &mut names[*neighbour as usize];
                if order[*name as usize] > own {
                    *name = first;
                    frontier.push(*neighbour);
                }
            }
            work += 1 + sides.degree(place);
            if work > super::ranges::RANGE_WORK {
                check(control)?;
                work = 0;
            }
        }
    }
    Ok(names)
}
