//! Reading the edges that a projection is made of.

use ficus_model::{Direction, LabelId, VertexId};
use ficus_storage::{HalfEdge, HalfEdgeCursor, Neighbours, Snapshot};
use rayon::prelude::*;

use super::{ProjectionOptions, Shared, all_vertices};
use crate::AnalyticsError;
use crate::Control;
use crate::control::check;
use crate::filter::{EdgeFilter, Test};
use ficus_model::EdgeId;

/// Half-edges fetched from the store at once.
const FETCH: usize = 256;

/// Reads the neighbours of vertices one way, along the edges that are projected.
pub(super) struct EdgeReader<'a> {
    snapshot: &'a Snapshot,
    way: Direction,
    /// One for each label, or one for all. Unused if edges are tested.
    views: Vec<Neighbours<'a>>,
    tested: Option<TestedEdges>,
}

/// Edges with a condition.
struct TestedEdges {
    /// Empty for all.
    labels: Vec<LabelId>,
    test: Test<EdgeId>,
    fetched: Vec<HalfEdge>,
}

impl<'a> EdgeReader<'a> {
    pub(super) fn new(snapshot: &'a Snapshot, way: Direction, options: &ProjectionOptions) -> EdgeReader<'a> {
        let views = match &options.edge_labels {
            None => vec![snapshot.neighbours(way, None)],
            Some(labels) => labels.iter().map(|label| snapshot.neighbours(way, Some(*label))).collect(),
        };
        let tested = options.edges.as_ref().map(|filter| TestedEdges {
            labels: options.edge_labels.clone().unwrap_or_default(),
            test: filter.on(snapshot.clone()),
            fetched: Vec::new(),
        });
        EdgeReader { snapshot, way, views, tested }
    }

    /// Hands out the neighbours of a vertex.
    ///
    /// Errors: `Untestable`.
    pub(super) fn visit(&mut self, vertex: VertexId, visit: &mut impl FnMut(VertexId)) -> Result<(), AnalyticsError> {
        let Some(tested) = &mut self.tested else {
            for view in &self.views {
                view.visit(vertex, &mut |slice| slice.for_each(&mut *visit));
            }
            return Ok(());
        };
        // Labels were given, and none of them exists.
        if self.views.is_empty() {
            return Ok(());
        }
        let mut cursor = HalfEdgeCursor::default();
        loop {
            tested.fetched.clear();
            let snapshot = self.snapshot;
            let more = snapshot.half_edges(vertex, self.way, &tested.labels, &mut cursor, FETCH, &mut tested.fetched);
            for half_edge in &tested.fetched {
                if (tested.test)(half_edge.edge).ok_or(AnalyticsError::Untestable)? {
                    visit(half_edge.neighbour);
                }
            }
            if !more {
                return Ok(());
            }
        }
    }
}

/// The ends of all edges that fulfil a condition.
pub(super) fn filtered_edges(
    snapshot: &Snapshot,
    options: &ProjectionOptions,
    filter: &EdgeFilter,
    control: &dyn Control,
) -> Result<Vec<(VertexId, VertexId)>, AnalyticsError> {
    debug_assert_eq!(options.edges.as_ref(), Some(filter));
    let vertices = all_vertices(snapshot, control)?;
    snapshot.edge_count();
    let snapshot = &Shared(std::sync::Mutex::new(snapshot.clone()));
    let parts: Vec<Vec<(VertexId, VertexId)>> = vertices
        .par_chunks(1 << 12)
        .map_init(
            || snapshot.handle(),
            |snapshot, vertices| {
                check(control)?;
                let mut reader = EdgeReader::new(snapshot, Direction::Out, options);
                let mut edges = Vec::new();
                for vertex in vertices {
                    reader.visit(*vertex, &mut |neighbour| edges.push((*vertex, neighbour)))?;
                }
                Ok(edges)
            },
        )
        .collect::<Result<_, AnalyticsError>>()?;
    Ok(parts.concat())
}
