//! All shortest paths from a vertex, one after the other.
//!
//! [`distances`] finds how far every vertex is; a path is shortest if each of its edges brings it exactly as far as it is long. [`PathsTo`] walks back
//! along such edges and yields the paths to one vertex without ever holding more than one of them. Between two vertices, where all edges are as long,
//! a [search from both ends](crate::two_sided) needs to know of fewer.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use ficus_model::Direction;

use crate::control::check;
use crate::{AnalyticsError, Control, Place, Projection, Sides};

/// One step of a path backwards: where it came from, and the number of the edge where edges are told apart.
pub type StepBack<V = Place> = (V, Option<u32>);

/// What paths go along.
pub trait Ways {
    /// Number of vertices.
    fn vertex_count(&self) -> usize;

    /// Visits where a step from a vertex leads, and how long it is: 0 or more.
    fn forward(&self, from: Place, visit: &mut impl FnMut(Place, f64));

    /// Visits from where a step leads to a vertex, and how long it is.
    fn backward(&self, to: Place, visit: &mut impl FnMut(StepBack, f64));

    /// Whether all steps have length 1.
    fn is_unit(&self) -> bool;
}

/// The edges of a projection, each of length 1. Parallel ones are one.
pub struct UnitWays<'a>(Sides<'a>, usize);

impl<'a> UnitWays<'a> {
    /// Those in a direction.
    pub fn new(projection: &'a Projection, direction: Direction) -> UnitWays<'a> {
        UnitWays(projection.sides(direction), projection.vertex_count())
    }
}

impl Ways for UnitWays<'_> {
    fn vertex_count(&self) -> usize {
        self.1
    }

    fn forward(&self, from: Place, visit: &mut impl FnMut(Place, f64)) {
        self.0.push.iter().flat_map(|side| side.of(from)).for_each(|to| visit(*to, 1.0));
    }

    fn backward(&self, to: Place, visit: &mut impl FnMut(StepBack, f64)) {
        self.0.pull.iter().flat_map(|side| side.of(to)).for_each(|from| visit((*from, None), 1.0));
    }

    fn is_unit(&self) -> bool {
        true
    }
}

/// An edge that was chosen, as it may be gone along.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ListedEdge {
    /// Where a step begins.
    pub from: Place,
    /// Where it ends.
    pub to: Place,
    /// Number of the edge, if parallel edges make different paths.
    pub edge: Option<u32>,
    /// 0 or more.
    pub length: f64,
}

/// Edges with lengths. 24 bytes an edge, twice.
pub struct ListedWays {
    forward: Vec<ListedEdge>,
    backward: Vec<ListedEdge>,
    /// Where the edges of each vertex begin.
    forward_offsets: Vec<usize>,
    backward_offsets: Vec<usize>,
}

impl ListedWays {
    /// Sorts the edges of so many vertices.
    ///
    /// Errors: `Invalid` for a length that is negative or no number.
    pub fn new(vertices: usize, edges: Vec<ListedEdge>) -> Result<ListedWays, AnalyticsError> {
        if let Some(wrong) = edges.iter().find(|edge| edge.length.is_nan() || edge.length < 0.0) {
            let reason = format!("{} is no length of an edge; it must be a number of 0 or more", wrong.length);
            return Err(AnalyticsError::Invalid { parameter: "distance", reason });
        }
        let (mut forward, mut backward) = (edges.clone(), edges);
        forward.sort_unstable_by_key(|edge| edge.from);
        backward.sort_unstable_by_key(|edge| edge.to);
        let forward_offsets = offsets(vertices, forward.iter().map(|edge| edge.from));
        let backward_offsets = offsets(vertices, backward.iter().map(|edge| edge.to));
        Ok(ListedWays { forward, backward, forward_offsets, backward_offsets })
    }
}

fn offsets(vertices: usize, sorted: impl Iterator<Item = Place>) -> Vec<usize> {
    let mut offsets = vec![0; vertices + 1];
    sorted.for_each(|place| offsets[place as usize + 1] += 1);
    for vertex in 0..vertices {
        offsets[vertex + 1] += offsets[vertex];
    }
    offsets
}

impl Ways for ListedWays {
    fn vertex_count(&self) -> usize {
        self.forward_offsets.len() - 1
    }

    fn forward(&self, from: Place, visit: &mut impl FnMut(Place, f64)) {
        let range = self.forward_offsets[from as usize]..self.forward_offsets[from as usize + 1];
        self.forward[range].iter().for_each(|edge| visit(edge.to, edge.length));
    }

    fn backward(&self, to: Place, visit: &mut impl FnMut(StepBack, f64)) {
        let range = self.backward_offsets[to as usize]..self.backward_offsets[to as usize + 1];
        self.backward[range].iter().for_each(|edge| visit((edge.from, edge.edge), edge.length));
    }

    fn is_unit(&self) -> bool {
        false
    }
}

/// A vertex that is so far away, nearest first in a heap.
struct Ahead(f64, Place);

impl PartialEq for Ahead {
    fn eq(&self, other: &Ahead) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ahead {}

impl PartialOrd for Ahead {
    fn partial_cmp(&self, other: &Ahead) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ahead {
    fn cmp(&self, other: &Ahead) -> Ordering {
        other.0.total_cmp(&self.0).then(other.1.cmp(&self.1))
    }
}

/// Vertices between two looks at the control.
const VERTICES_PER_LOOK: usize = 1 << 10;

/// How far each vertex is from a source, by place: infinitely, if there is no way or it is longer than the limit. With `targets`, in ascending order, only
/// they and what is on shortest paths to them need to be told: the search ends when it has come past the last of them.
///
/// Cost: one visit of each edge that is within the limit; a heap beside that unless all steps have length 1. 12 bytes a vertex.
/// Errors: `Stopped`.
pub fn distances<W: Ways>(
    ways: &W,
    source: Place,
    limit: f64,
    targets: Option<&[Place]>,
    control: &dyn Control,
) -> Result<Vec<f64>, AnalyticsError> {
    let mut distances = vec![f64::INFINITY; ways.vertex_count()];
    distances[source as usize] = 0.0;
    let is_target = |place: Place| targets.is_some_and(|targets| targets.binary_search(&place).is_ok());
    // Targets that were not reached yet; of all vertices there is always one more.
    let mut missing = targets.map_or(usize::MAX, <[Place]>::len) - usize::from(is_target(source));
    let mut looked = 0;
    let mut look = || {
        looked += 1;
        if looked % VERTICES_PER_LOOK == 0 { check(control) } else { Ok(()) }
    };
    check(control)?;
    if ways.is_unit() {
        let (mut frontier, mut next, mut distance) = (vec![source], Vec::new(), 1.0);
        while !frontier.is_empty() && distance <= limit && missing > 0 {
            for place in frontier.drain(..) {
                look()?;
                ways.forward(place, &mut |to, _| {
                    if distances[to as usize].is_infinite() {
                        distances[to as usize] = distance;
                        missing -= usize::from(is_target(to));
                        next.push(to);
                    }
                });
            }
            std::mem::swap(&mut frontier, &mut next);
            distance += 1.0;
        }
        return Ok(distances);
    }
    let mut ahead = BinaryHeap::from([Ahead(0.0, source)]);
    // Where the last target is, once all are reached: what is as far may be on a path to it.
    let mut farthest = if missing == 0 { 0.0 } else { f64::INFINITY };
    while let Some(Ahead(distance, place)) = ahead.pop() {
        look()?;
        if distance > farthest {
            break;
        }
        if distance > distances[place as usize] {
            continue;
        }
        if place != source && is_target(place) {
            missing -= 1;
            if missing == 0 {
                farthest = distance;
            }
        }
        ways.forward(place, &mut |to, length| {
            let further = distance + length;
            if further < distances[to as usize] && further <= limit {
                distances[to as usize] = further;
                ahead.push(Ahead(further, to));
            }
        });
    }
    Ok(distances)
}

/// The steps by which a shortest path comes to a place, by how far each is from the source; each once.
pub fn steps_back<W: Ways>(ways: &W, distances: &[f64], to: Place) -> Vec<StepBack> {
    let mut back = Vec::new();
    ways.backward(to, &mut |step, length| {
        if step.0 != to && distances[step.0 as usize] + length == distances[to as usize] {
            back.push(step);
        }
    });
    back.sort_unstable();
    back.dedup();
    back
}

/// The shortest paths from a source to one vertex that it reaches.
pub struct PathsTo<V = Place> {
    source: V,
    /// The path so far, from its end: a place, the steps back from it, and the one that was taken.
    stack: Vec<(V, Vec<StepBack<V>>, usize)>,
    is_begun: bool,
}

impl<V: Copy + Eq> PathsTo<V> {
    /// Those to a vertex whose distance is finite.
    pub fn new(source: V, to: V) -> PathsTo<V> {
        PathsTo { source, stack: vec![(to, Vec::new(), 0)], is_begun: false }
    }

    /// Goes on to the next path, from its source to its end, each place with the edge that leads to it; `None` after the last. Looks at no more than about `steps` places
    /// before it says `Some(None)`: there may be more. `steps_back` tells by which steps shortest paths come to a place.
    pub fn next(
        &mut self,
        steps_back: &mut impl FnMut(V) -> Vec<StepBack<V>>,
        mut steps: usize,
    ) -> Option<Option<Vec<StepBack<V>>>> {
        if !self.is_begun {
            self.is_begun = true;
            if self.stack[0].0 == self.source {
                let path = vec![(self.source, None)];
                self.stack.clear();
                return Some(Some(path));
            }
            self.stack[0].1 = steps_back(self.stack[0].0);
        }
        while let Some((_, back, taken)) = self.stack.last_mut() {
            if steps == 0 {
                return Some(None);
            }
            steps -= 1;
            let Some((from, _)) = back.get(*taken).copied() else {
                self.stack.pop();
                continue;
            };
            *taken += 1;
            if from == self.source {
                return Some(Some(self.path()));
            }
            // Edges of length 0 may lead in circles.
            if self.stack.iter().any(|(place, ..)| *place == from) {
                continue;
            }
            self.stack.push((from, steps_back(from), 0));
        }
        None
    }

    fn path(&self) -> Vec<StepBack<V>> {
        let mut path = vec![(self.source, None)];
        let taken = self.stack.iter().rev().map(|(place, back, taken)| (*place, back[*taken - 1].1));
        path.extend(taken);
        path
    }
}
