//! Which vertices hang together.
//!
//! A component is named by the smallest place in it.

use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;

use super::ranges::balanced;
use crate::control::check;
use crate::{AnalyticsError, Control, Place, Projection};

/// Neighbours each vertex is joined with first: enough to find most of the largest component.
const SAMPLE: usize = 2;

/// Components of the graph without regard to the direction of edges.
///
/// How: trees of vertices, joined by every edge from several threads at once, a larger root always under a smaller. First, each vertex is
/// joined with two neighbours; the edges of those that hang together with the busiest vertex then need no look, since an edge to any other is
/// seen from its other end. Source: Sutton, Ben-Nun and Barak, "Optimizing Parallel Graph Connectivity
/// Computation via Subgraph Sampling", IPDPS 2018.
///
/// Cost: at most two visits of each edge, mostly far fewer; 4 bytes a vertex.
/// Errors: `Stopped`.
pub fn weak_components(projection: &Projection, control: &dyn Control) -> Result<Vec<Place>, AnalyticsError> {
    let vertices = projection.vertex_count();
    let trees = Trees((0..vertices as Place).map(AtomicU32::new).collect());
    let sides = [projection.out(), projection.into()];
    let ranges = balanced(vertices, &sides);
    ranges.par_iter().try_for_each(|range| {
        check(control)?;
        for vertex in range.clone() {
            for side in sides {
                side.of(vertex).iter().take(SAMPLE).for_each(|neighbour| trees.join(vertex, *neighbour));
            }
        }
        Ok(())
    })?;
    control.progress(0.5);
    let largest = if vertices == 0 { 0 } else { trees.root(0) };
    ranges.par_iter().try_for_each(|range| {
        check(control)?;
        for vertex in range.clone() {
            if trees.root(vertex) == largest {
                continue;
            }
            for side in sides {
                side.of(vertex).iter().skip(SAMPLE).for_each(|neighbour| trees.join(vertex, *neighbour));
            }
        }
        Ok(())
    })?;
    control.progress(1.0);
    Ok((0..vertices as Place).into_par_iter().map(|vertex| trees.root(vertex)).collect())
}

/// The parent of each vertex; a root is its own. A parent is never larger than its child, so there are no circles whatever threads do.
struct Trees(Vec<AtomicU32>);

impl Trees {
    /// The root of a vertex; parents are replaced by grandparents on the way.
    fn root(&self, vertex: Place) -> Place {
        let mut vertex = vertex;
        loop {
            let parent = self.0[vertex as usize].load(Ordering::Relaxed);
            if parent == vertex {
                return vertex;
            }
            let grandparent = self.0[parent as usize].load(Ordering::Relaxed);
            if grandparent != parent {
                self.0[vertex as usize].fetch_min(grandparent, Ordering::Relaxed);
            }
            vertex = parent;
        }
    }

    fn join(&self, left: Place, right: Place) {
        let (mut left, mut right) = (left, right);
        loop {
            (left, right) = (self.root(left), self.root(right));
            if left == right {
                return;
            }
            let (low, high) = (left.min(right), left.max(right));
            let was_root = self.0[high as usize].compare_exchange(high, low, Ordering::Relaxed, Ordering::Relaxed);
            if was_root.is_ok() {
                return;
            }
        }
    }
}

/// Components in which every vertex reaches every other along out edges.
///
/// How: one search in depth with a stack of its own (Tarjan, "Depth-First Search and Linear Graph Algorithms", 1972), on one thread. Cost: one visit of
/// each edge; up to 28 bytes a vertex.
/// Errors: `Stopped`.
pub fn strong_components(projection: &Projection, control: &dyn Control) -> Result<Vec<Place>, AnalyticsError> {
    const NEVER: u32 = u32::MAX;
    let vertices = projection.vertex_count();
    let out = projection.out();
    let mut components = vec![NEVER; vertices];
    // When a vertex was found, and the earliest found one on the stack that it reaches.
    let mut found = vec![NEVER; vertices];
    let mut earliest = vec![NEVER; vertices];
    let mut stack: Vec<Place> = Vec::new();
    // Vertices on the way, each with the neighbour it looks at next.
    let mut way: Vec<(Place, u32)> = Vec::new();
    let mut clock = 0;
    for start in 0..vertices as Place {
        if found[start as usize] != NEVER {
            continue;
        }
        way.push((start, 0));
        while let Some((vertex, next)) = way.last_mut() {
            let at = *vertex as usize;
            if *next == 0 && found[at] == NEVER {
                (found[at], earliest[at]) = (clock, clock);
                clock += 1;
                stack.push(*vertex);
                if clock % (1 << 14) == 0 {
                    check(control)?;
                    control.progress(f64::from(clock) / vertices as f64);
                }
            }
            let neighbours = out.of(*vertex);
            let mut descend = None;
            while descend.is_none() && (*next as usize) < neighbours.len() {
                let neighbour = neighbours[*next as usize];
                *next += 1;
                if found[neighbour as usize] == NEVER {
                    descend = Some(neighbour);
                } else if components[neighbour as usize] == NEVER {
                    earliest[at] = earliest[at].min(found[neighbour as usize]);
                }
            }
            if let Some(neighbour) = descend {
                way.push((neighbour, 0));
                continue;
            }
            let vertex = *vertex;
            way.pop();
            if let Some((before, _)) = way.last() {
                earliest[*before as usize] = earliest[*before as usize].min(earliest[at]);
            }
            if earliest[at] == found[at] {
                let from = stack.iter().rposition(|on_stack| *on_stack == vertex).expect("it is still on the stack");
                let name = stack[from..].iter().copied().min().expect("it has itself");
                stack.drain(from..).for_each(|member| components[member as usize] = name);
            }
        }
    }
    Ok(components)
}
