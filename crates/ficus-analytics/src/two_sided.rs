//! All shortest paths from one vertex to another along edges that are all as long: a search on the store from both ends, a part at a time.
//!
//! Both halves go a hop at a time, each time the one with fewer vertices to go on from, until a hop of one comes to what the other has come to. Every
//! shortest path then leads through one of the vertices where they have met. From these the search goes on towards the target, over what its half has
//! come to, and so knows of all vertices on shortest paths how far they are from the source.
//!
//! Cost: about as many edges as lie within half the distance of either end, and memory for the vertices they lead to.
//! Source: Pohl, "Bi-directional Search", Machine Intelligence 6, 1971.

use hashbrown::HashMap;

use ficus_model::{Direction, LabelId, VertexId};
use ficus_storage::Snapshot;

use crate::own_search::{Advance, OnStore, Topology};
use crate::programs::StepBack;

/// Vertices whose edges are counted before the search goes along them.
const VERTICES_AT_ONCE: usize = 64;

/// Edges of a state of the store, along and against the way of the paths.
pub struct BothWays<'a> {
    along: OnStore<'a>,
    against: OnStore<'a>,
}

impl<'a> BothWays<'a> {
    /// Those with one of these labels (`None` for all), of which paths go along in a direction.
    pub fn new(snapshot: &'a Snapshot, direction: Direction, labels: Option<&'a [LabelId]>) -> BothWays<'a> {
        let on = |direction| OnStore::new(snapshot, direction, labels);
        BothWays { along: on(direction), against: on(direction.reversed()) }
    }

    fn of(&mut self, end: End) -> &mut OnStore<'a> {
        match end {
            End::Source => &mut self.along,
            End::Target => &mut self.against,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Source,
    Target,
}

/// What was come to from one end.
#[derive(Debug)]
struct Half {
    /// How far each vertex is.
    distances: HashMap<VertexId, u32>,
    /// The farthest of them.
    frontier: Vec<VertexId>,
    depth: u32,
}

impl Half {
    fn of(end: VertexId) -> Half {
        Half { distances: HashMap::from([(end, 0)]), frontier: vec![end], depth: 0 }
    }

    fn bytes(&self) -> usize {
        self.distances.capacity() * (size_of::<(VertexId, u32)>() + 1)
            + self.frontier.capacity() * size_of::<VertexId>()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The next hop is to be chosen.
    Between,
    /// A hop from the frontier of one end.
    Spreading(End),
    /// From where the halves have met, towards the target.
    Joining,
    Ended,
}

/// A search that can be interrupted.
#[derive(Debug)]
pub struct TwoSidedSearch {
    from_source: Half,
    from_target: Half,
    /// Longer paths are not wanted.
    hops_limit: u32,
    stage: Stage,
    /// How much of the frontier is done.
    position: usize,
    next: Vec<VertexId>,
    has_met: bool,
    /// The length of the paths, once it is known.
    length: Option<u32>,
    edges: u64,
}

impl TwoSidedSearch {
    /// A search that has not gone anywhere, for paths of at most so many hops.
    pub fn new(source: VertexId, target: VertexId, hops_limit: u32) -> TwoSidedSearch {
        let is_there = source == target;
        TwoSidedSearch {
            from_source: Half::of(source),
            from_target: Half::of(target),
            hops_limit,
            stage: if is_there { Stage::Ended } else { Stage::Between },
            position: 0,
            next: Vec::new(),
            has_met: false,
            length: is_there.then_some(0),
            edges: 0,
        }
    }

    /// Goes on until about `edges` more were looked at, and never along more than `edges_limit` in all.
    pub fn advance(&mut self, ways: &mut BothWays<'_>, edges: u64, edges_limit: u64) -> Advance {
        let until = self.edges.saturating_add(edges);
        loop {
            match self.stage {
                Stage::Ended => return Advance::Ended,
                Stage::Between => self.choose(),
                Stage::Spreading(end) if self.position == self.half(end).frontier.len() => self.end_hop(end),
                Stage::Joining if self.position == self.from_target.frontier.len() => self.end_join(),
                Stage::Spreading(_) | Stage::Joining if self.edges >= until => return Advance::Paused,
                Stage::Spreading(_) | Stage::Joining => {
                    if !self.go_on(ways, until, edges_limit) {
                        return Advance::Large;
                    }
                }
            }
        }
    }

    /// Begins the hop that has fewer vertices to go on from.
    fn choose(&mut self) {
        let (source, target) = (&self.from_source, &self.from_target);
        let is_over = source.frontier.is_empty() || target.frontier.is_empty();
        if is_over || source.depth + target.depth >= self.hops_limit {
            self.stage = Stage::Ended;
            return;
        }
        let end = if source.frontier.len() <= target.frontier.len() { End::Source } else { End::Target };
        self.stage = Stage::Spreading(end);
    }

    fn half(&self, end: End) -> &Half {
        match end {
            End::Source => &self.from_source,
            End::Target => &self.from_target,
        }
    }

    /// Goes along the edges of some more vertices; false if there are too many.
    fn go_on(&mut self, ways: &mut BothWays<'_>, until: u64, edges_limit: u64) -> bool {
        let (end, length) = match self.stage {
            Stage::Spreading(end) => (end, 0),
            // Towards the target, along the way of the paths.
            _ => (End::Source, self.length.unwrap_or(0)),
        };
        let topology = ways.of(end);
        let (own, other) = match (self.stage, end) {
            (Stage::Spreading(End::Source), _) => (&mut self.from_source, &mut self.from_target),
            (Stage::Spreading(End::Target), _) => (&mut self.from_target, &mut self.from_source),
            _ => (&mut self.from_target, &mut self.from_source),
        };
        let frontier = &own.frontier[self.position..];
        let vertices = &frontier[..frontier.len().min(VERTICES_AT_ONCE)];
        let ahead: u64 = vertices.iter().map(|vertex| topology.degree(*vertex)).sum();
        if self.edges.saturating_add(ahead) > edges_limit {
            return false;
        }
        let steps_max = until - self.edges;
        let depth = own.depth;
        let (visited, edges) = match self.stage {
            Stage::Spreading(_) => topology.visit_some(vertices, steps_max, &mut |neighbour| {
                own.distances.entry(neighbour).or_insert_with(|| {
                    self.has_met |= other.distances.contains_key(&neighbour);
                    self.next.push(neighbour);
                    depth + 1
                });
            }),
            _ => topology.visit_some(vertices, steps_max, &mut |neighbour| {
                // `own` is the half of the target, `depth` how far from it the frontier is.
                if own.distances.get(&neighbour) == Some(&(depth - 1)) {
                    other.distances.entry(neighbour).or_insert_with(|| {
                        self.next.push(neighbour);
                        length - (depth - 1)
                    });
                }
            }),
        };
        self.position += visited;
        // A vertex without edges is work as well.
        self.edges += visited as u64 + edges;
        true
    }

    fn end_hop(&mut self, end: End) {
        let half = match end {
            End::Source => &mut self.from_source,
            End::Target => &mut self.from_target,
        };
        half.depth += 1;
        std::mem::swap(&mut half.frontier, &mut self.next);
        self.next.clear();
        self.position = 0;
        self.stage = Stage::Between;
        if !self.has_met {
            return;
        }
        // Where they have met lies on the frontier of both.
        self.length = Some(self.from_source.depth + self.from_target.depth);
        let at_target = &self.from_target.distances;
        let mut met = std::mem::take(&mut self.from_source.frontier);
        met.retain(|vertex| at_target.get(vertex) == Some(&self.from_target.depth));
        self.from_target.frontier = met;
        self.stage = if self.from_target.depth == 0 { Stage::Ended } else { Stage::Joining };
    }

    fn end_join(&mut self) {
        let half = &mut self.from_target;
        std::mem::swap(&mut half.frontier, &mut self.next);
        self.next.clear();
        self.position = 0;
        half.depth -= 1;
        if half.depth == 0 {
            self.stage = Stage::Ended;
        }
    }

    /// How long the shortest paths are, once the search has ended; `None` if there are none.
    pub fn length(&self) -> Option<u32> {
        self.length
    }

    /// Edges looked at so far.
    pub fn edges(&self) -> u64 {
        self.edges
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.from_source.bytes() + self.from_target.bytes() + self.next.capacity() * size_of::<VertexId>()
    }

    /// The vertices from which a shortest path comes to one that lies on such a path, once the search has ended; each once.
    pub fn steps_back(&self, ways: &mut BothWays<'_>, to: VertexId) -> Vec<StepBack<VertexId>> {
        let mut back = Vec::new();
        let distances = &self.from_source.distances;
        if let Some(before) = distances.get(&to).and_then(|distance| distance.checked_sub(1)) {
            ways.against.visit(to, &mut |from| {
                if distances.get(&from) == Some(&before) {
                    back.push((from, None));
                }
            });
        }
        back.sort_unstable();
        back.dedup();
        back
    }
}
