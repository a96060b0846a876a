//! Shortest paths on their way out: one source after the other, one path after the other.

use std::sync::Arc;

use ficus_analytics::programs::{ListedEdge, ListedWays, PathsTo, UnitWays, Ways, distances, steps_back};
use ficus_analytics::{AnalyticsError, Control, Place, Projection};
use ficus_model::{Direction, EdgeId, Path, Shared, Value, VertexId};

use super::edges::Chosen;
use crate::context::{Cx, QueryContext, Result, Traversers};
use crate::services::programs::background::{Background, Part};
use crate::traverser::{StepInfo, Traverser};

/// What paths go along.
pub enum PathWays {
    /// Edges by label, each as long as any other.
    Unit,
    /// Edges that were chosen.
    Listed(ListedWays),
}

/// What is wanted of paths.
#[derive(Clone)]
pub struct PathOptions {
    /// Which way they go.
    pub direction: Direction,
    /// How long they are at most.
    pub distance_limit: f64,
    /// Edges by number, if paths hold them.
    pub edges: Option<Arc<Vec<EdgeId>>>,
    /// Vertices at which paths end; none given: all.
    pub targets: Option<Arc<Vec<VertexId>>>,
    /// For the traversers that hold paths.
    pub step: StepInfo,
}

/// Edges as they may be gone along.
pub fn listed(
    projection: &Projection,
    chosen: &[Chosen],
    direction: Direction,
    are_told_apart: bool,
) -> std::result::Result<ListedWays, AnalyticsError> {
    let mut edges = Vec::with_capacity(chosen.len() * if direction == Direction::Both { 2 } else { 1 });
    for (number, edge) in chosen.iter().enumerate() {
        let (Some(out), Some(into)) = (projection.place(edge.out), projection.place(edge.into)) else { continue };
        let number = are_told_apart.then_some(number as u32);
        if direction != Direction::In {
            edges.push(ListedEdge { from: out, to: into, edge: number, length: edge.length });
        }
        if direction != Direction::Out {
            edges.push(ListedEdge { from: into, to: out, edge: number, length: edge.length });
        }
    }
    ListedWays::new(projection.vertex_count(), edges)
}

/// Where paths begin, and the traversers that stand there.
pub type Source = (VertexId, Vec<Traverser>);

/// Where the paths of one source are.
struct FromSource {
    source: Place,
    traversers: Vec<Traverser>,
    distances: Vec<f64>,
    /// As in [`PathRows`], without those that had their paths before.
    targets: Option<Arc<[Place]>>,
    /// The next target, and the paths to the one before.
    next: usize,
    paths: Option<PathsTo>,
}

/// Paths on their way out.
pub struct PathRows {
    options: PathOptions,
    projection: Arc<Projection>,
    ways: Arc<PathWays>,
    /// In ascending order.
    targets: Option<Arc<[Place]>>,
    /// Targets to which the first source has had its paths before.
    had: Vec<VertexId>,
    sources: std::vec::IntoIter<Source>,
    waiting: Option<(Place, Vec<Traverser>, Background<Vec<f64>>)>,
    current: Option<FromSource>,
}

/// Steps back along paths between two looks at whether the turn is over.
pub const STEPS_PER_LOOK: usize = 1 << 8;

impl PathRows {
    /// Of these sources, the first of which has `had` its paths to some targets.
    pub fn new(
        options: PathOptions,
        projection: Arc<Projection>,
        ways: PathWays,
        sources: Vec<Source>,
        had: Vec<VertexId>,
    ) -> PathRows {
        let targets: Option<Arc<[Place]>> = options.targets.as_ref().map(|targets| {
            let mut places: Vec<Place> = targets.iter().filter_map(|target| projection.place(*target)).collect();
            places.sort_unstable();
            places.into()
        });
        let (sources, ways) = (sources.into_iter(), Arc::new(ways));
        PathRows { options, projection, ways, targets, had, sources, waiting: None, current: None }
    }

    /// Puts paths out until the turn is over or the next source is being looked at; true after the last path.
    pub fn emit(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<bool> {
        loop {
            if cx.should_pause(out) {
                return Ok(false);
            }
            if self.current.is_some() {
                if self.more_paths(out, cx) {
                    self.current = None;
                }
                continue;
            }
            if let Some((source, traversers, mut background)) = self.waiting.take() {
                let Some(distances) = background.outcome(cx)? else {
                    self.waiting = Some((source, traversers, background));
                    return Ok(false);
                };
                background.release(cx.context);
                let targets = self.targets_of_next();
                self.current = Some(FromSource { source, traversers, distances, targets, next: 0, paths: None });
                continue;
            }
            let Some((vertex, traversers)) = self.sources.next() else { return Ok(true) };
            // One that is gone has no place.
            let Some(source) = self.projection.place(vertex) else { continue };
            let (ways, options, targets) = (self.ways.clone(), self.options.clone(), self.targets.clone());
            let part = Part::Projected(self.projection.clone());
            let work = move |projection: Arc<Projection>, _: &ficus_storage::Snapshot, control: &dyn Control| {
                let (limit, targets) = (options.distance_limit, targets.as_deref());
                match &*ways {
                    PathWays::Unit => {
                        let ways = UnitWays::new(&projection, options.direction);
                        distances(&ways, source, limit, targets, control)
                    }
                    PathWays::Listed(listed) => distances(listed, source, limit, targets, control),
                }
            };
            self.waiting = Some((source, traversers, Background::begin("shortestPath()", part, (20, 0), cx, work)?));
        }
    }

    /// The targets of the source that is next.
    fn targets_of_next(&mut self) -> Option<Arc<[Place]>> {
        let had: Vec<Place> = self.had.drain(..).filter_map(|target| self.projection.place(target)).collect();
        match &self.targets {
            Some(targets) if !had.is_empty() => {
                Some(targets.iter().copied().filter(|target| !had.contains(target)).collect())
            }
            targets => targets.clone(),
        }
    }

    /// Goes on with the paths of the current source; true if there are no more.
    fn more_paths(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> bool {
        match &*self.ways.clone() {
            PathWays::Unit => {
                let projection = self.projection.clone();
                self.paths_along(&UnitWays::new(&projection, self.options.direction), out, cx)
            }
            PathWays::Listed(listed) => self.paths_along(listed, out, cx),
        }
    }

    fn paths_along<W: Ways>(&mut self, ways: &W, out: &mut Traversers, cx: &mut Cx<'_>) -> bool {
        let Some(current) = &mut self.current else { return true };
        loop {
            if cx.should_pause(out) {
                return false;
            }
            cx.charge(1);
            let Some(paths) = &mut current.paths else {
                let place = match &current.targets {
                    Some(targets) => targets.get(current.next).copied(),
                    None => (current.next < self.projection.vertex_count()).then_some(current.next as Place),
                };
                let Some(place) = place else { return true };
                current.next += 1;
                if current.distances[place as usize].is_finite() {
                    current.paths = Some(PathsTo::new(current.source, place));
                }
                continue;
            };
            let distances = &current.distances;
            match paths.next(&mut |to| steps_back(ways, distances, to), STEPS_PER_LOOK) {
                None => current.paths = None,
                Some(None) => cx.charge(STEPS_PER_LOOK / 8),
                Some(Some(steps)) => {
                    let edge = |number| self.options.edges.as_ref().map(|edges| edges[number as usize]);
                    let steps =
                        steps.into_iter().map(|(place, number)| (self.projection.vertex(place), number.and_then(edge)));
                    hand_on(&path(steps), &current.traversers, &self.options.step, out);
                }
            }
        }
    }

    /// Hands back what it holds of the query's memory.
    pub fn release(&mut self, context: &mut QueryContext) {
        if let Some((.., background)) = &mut self.waiting {
            background.release(context);
        }
    }
}

/// A path of vertices, each with the edge that leads to it if that is wanted.
pub fn path(steps: impl Iterator<Item = (VertexId, Option<EdgeId>)>) -> Value {
    let objects = steps.flat_map(|(vertex, edge)| edge.map(Value::Edge).into_iter().chain([Value::Vertex(vertex)]));
    Value::Path(Shared::new(Path::unlabelled(objects.collect())))
}

/// Puts a path out for each traverser at its source.
pub fn hand_on(path: &Value, traversers: &[Traverser], step: &StepInfo, out: &mut Traversers) {
    out.extend(traversers.iter().map(|traverser| traverser.advance(path.clone(), step)));
}
