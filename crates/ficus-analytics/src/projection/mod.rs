//! The topology of one snapshot, made for passes over all of it.

mod adjacency;
mod allowed;
mod numbering;
mod patch;
mod read;

pub use adjacency::Adjacency;
pub use allowed::Allowed;

use std::sync::{Arc, Mutex, PoisonError};

use ficus_model::{Direction, LabelId, VertexId};
use ficus_storage::{CommitTs, ScanCursor, Snapshot, StateKey, StateMark};
use rayon::prelude::*;

use crate::control::check;
use crate::filter::EdgeFilter;
use crate::{AnalyticsError, Control};
use allowed::AllowedCache;
use numbering::Numbering;
use read::EdgeReader;

/// A vertex of a projection: 0 has the highest degree.
pub type Place = u32;

/// Which part of a graph is projected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProjectionOptions {
    /// Edges with one of these labels; `None` for all edges.
    pub edge_labels: Option<Vec<LabelId>>,
    /// Edges that fulfil this.
    pub edges: Option<EdgeFilter>,
}

/// Every vertex of a snapshot with its neighbours in both directions.
///
/// Size: 12 bytes a vertex for the numbering, 16 for offsets; 8 an edge. Cost of making: two visits of each half-edge and a sort of each
/// vertex's neighbours, on all threads of the pool it is called in. A later state can have a [patched](Projection::patched) version, which
/// shares what did not change.
#[derive(Debug)]
pub struct Projection {
    state: StateKey,
    numbering: Numbering,
    out: Adjacency,
    into: Adjacency,
    /// What it was made from; `None` for edges that were chosen one by one.
    origin: Option<Origin>,
    allowed: AllowedCache,
}

/// What is needed to follow the graph.
#[derive(Debug)]
struct Origin {
    options: ProjectionOptions,
    /// The state; replaced when the same state stands on another consolidation.
    mark: Mutex<StateMark>,
}

/// Work of one range of vertices while a projection is made: some hundred microseconds.
const BUILD_RANGE_WORK: u64 = 1 << 15;

impl Projection {
    /// Projects a snapshot.
    ///
    /// Errors: `Stopped`; `TooManyVertices` beyond 2^32 - 1; `Untestable` if the condition on edges fails on one of them.
    pub fn new(
        snapshot: &Snapshot,
        options: &ProjectionOptions,
        control: &dyn Control,
    ) -> Result<Projection, AnalyticsError> {
        let origin = Some(Origin { options: options.clone(), mark: Mutex::new(snapshot.mark()) });
        if let Some(filter) = &options.edges {
            let edges = read::filtered_edges(snapshot, options, filter, control)?;
            return Ok(Projection { origin, ..Projection::of_edges(snapshot, &edges, control)? });
        }
        let vertices = all_vertices(snapshot, control)?;
        // A writing transaction has now read all vertices; this makes it have read all edges.
        snapshot.edge_count();
        let snapshot = &Shared(Mutex::new(snapshot.clone()));
        let labels: Vec<LabelId> = options.edge_labels.clone().unwrap_or_default();
        let is_empty = options.edge_labels.as_ref().is_some_and(Vec::is_empty);
        let degree = |snapshot: &Snapshot, vertex: VertexId, way: Direction| match is_empty {
            true => 0,
            false => snapshot.degree(vertex, way, &labels),
        };
        // Descending degree, then ascending id, as one number each.
        let mut keys: Vec<(u64, VertexId)> = vertices
            .par_chunks(1 << 13)
            .map_init(
                || snapshot.handle(),
                |snapshot, vertices| {
                    let of = |vertex: &VertexId| (u64::MAX - degree(snapshot, *vertex, Direction::Both), *vertex);
                    vertices.iter().map(of).collect::<Vec<_>>()
                },
            )
            .flatten_iter()
            .collect();
        check(control)?;
        keys.par_sort_unstable();
        let numbering = Numbering::new(keys.into_iter().map(|(_, vertex)| vertex).collect());
        control.progress(0.2);
        let build = |way: Direction| -> Result<Adjacency, AnalyticsError> {
            let degrees: Vec<u64> = (0..numbering.len() as Place)
                .into_par_iter()
                .with_min_len(1 << 13)
                .map_init(|| snapshot.handle(), |snapshot, place| degree(snapshot, numbering.vertex(place), way))
                .collect();
            fill(snapshot, &numbering, &degrees, way, options, control)
        };
        let out = build(Direction::Out)?;
        control.progress(0.6);
        let into = build(Direction::In)?;
        let state = snapshot.handle().key();
        Ok(Projection { state, numbering, out, into, origin, allowed: AllowedCache::default() })
    }

    /// Projects all vertices of a snapshot with these edges of it, each as its ends; for edges that were chosen one by one.
    ///
    /// Errors: as [`Projection::new`]; `Invalid` for an edge whose ends are not in the snapshot.
    pub fn of_edges(
        snapshot: &Snapshot,
        edges: &[(VertexId, VertexId)],
        control: &dyn Control,
    ) -> Result<Projection, AnalyticsError> {
        let vertices = all_vertices(snapshot, control)?;
        let unsorted = Numbering::new(vertices);
        let place_in = |numbering: &Numbering, vertex: VertexId| {
            numbering.place(vertex).ok_or_else(|| AnalyticsError::Invalid {
                parameter: "edges",
                reason: format!("an edge ends at vertex {}, which is not in the snapshot", vertex.0),
            })
        };
        let mut degrees = vec![0u64; unsorted.len()];
        for (out, into) in edges {
            degrees[place_in(&unsorted, *out)? as usize] += 1;
            degrees[place_in(&unsorted, *into)? as usize] += 1;
        }
        check(control)?;
        let mut keys: Vec<(u64, VertexId)> = degrees
            .iter()
            .enumerate()
            .map(|(place, degree)| (u64::MAX - degree, unsorted.vertex(place as Place)))
            .collect();
        keys.par_sort_unstable();
        let numbering = Numbering::new(keys.into_iter().map(|(_, vertex)| vertex).collect());
        let mut pairs = Vec::with_capacity(edges.len());
        for (out, into) in edges {
            pairs.push((place_in(&numbering, *out)?, place_in(&numbering, *into)?));
        }
        check(control)?;
        let out = Adjacency::of_pairs(numbering.len(), &mut pairs);
        pairs.iter_mut().for_each(|pair| *pair = (pair.1, pair.0));
        check(control)?;
        let into = Adjacency::of_pairs(numbering.len(), &mut pairs);
        let state = snapshot.key();
        Ok(Projection { state, numbering, out, into, origin: None, allowed: AllowedCache::default() })
    }

    /// The newest commit it knows of.
    pub fn commit_ts(&self) -> CommitTs {
        self.state.commit_ts()
    }

    /// The state it is of.
    pub fn state(&self) -> &StateKey {
        &self.state
    }

    /// Number of vertices; of a patched projection, those that are gone included.
    pub fn vertex_count(&self) -> usize {
        self.numbering.len()
    }

    /// Number of edges.
    pub fn edge_count(&self) -> u64 {
        self.out.edge_count()
    }

    /// Where a vertex is; `None` if the snapshot does not have it.
    pub fn place(&self, vertex: VertexId) -> Option<Place> {
        self.numbering.place(vertex)
    }

    /// Which vertex is there. Panics beyond the last place.
    pub fn vertex(&self, place: Place) -> VertexId {
        self.numbering.vertex(place)
    }

    /// Neighbours along out edges.
    pub fn out(&self) -> &Adjacency {
        &self.out
    }

    /// Neighbours along in edges.
    pub fn into(&self) -> &Adjacency {
        &self.into
    }

    /// What a hop in this direction goes along.
    pub fn sides(&self, direction: Direction) -> Sides<'_> {
        let (push, pull): (&[_], &[_]) = match direction {
            Direction::Out => (&[&self.out], &[&self.into]),
            Direction::In => (&[&self.into], &[&self.out]),
            Direction::Both => (&[&self.out, &self.into], &[&self.into, &self.out]),
        };
        Sides { push: push.to_vec(), pull: pull.to_vec() }
    }

    /// Bytes a projection of so many vertices and edges takes, about.
    pub fn estimated_bytes(vertices: u64, edges: u64) -> u64 {
        vertices * 28 + edges * 8
    }

    /// Bytes held, those that versions share included.
    pub fn bytes(&self) -> u64 {
        self.shared_bytes() + self.own_bytes()
    }

    /// Bytes of what versions share.
    pub(crate) fn shared_bytes(&self) -> u64 {
        self.numbering.shared_bytes() + self.out.shared_bytes() + self.into.shared_bytes()
    }

    /// Bytes of this version alone.
    pub(crate) fn own_bytes(&self) -> u64 {
        self.numbering.own_bytes() + self.out.own_bytes() + self.into.own_bytes() + self.allowed.bytes()
    }

    /// True if both share what versions share.
    pub(crate) fn is_version_of(&self, other: &Projection) -> bool {
        Arc::ptr_eq(&self.out.neighbours, &other.out.neighbours)
    }
}

/// The adjacencies of a hop: from a vertex to those it reaches, and from a vertex to those that reach it.
#[derive(Clone, Debug)]
pub struct Sides<'a> {
    /// From where the hop starts.
    pub push: Vec<&'a Adjacency>,
    /// From where it ends.
    pub pull: Vec<&'a Adjacency>,
}

impl Sides<'_> {
    /// Edges along which one hop may go from a vertex.
    #[inline(always)]
    pub(crate) fn degree(&self, vertex: Place) -> u64 {
        self.push.iter().map(|side| side.degree(vertex)).sum()
    }

    /// Edges in all.
    pub(crate) fn edge_count(&self) -> u64 {
        self.push.iter().map(|side| side.edge_count()).sum()
    }
}

/// A snapshot for several threads, each of which reads through a handle of its own.
struct Shared(Mutex<Snapshot>);

impl Shared {
    fn handle(&self) -> Snapshot {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn all_vertices(snapshot: &Snapshot, control: &dyn Control) -> Result<Vec<VertexId>, AnalyticsError> {
    let mut vertices = Vec::with_capacity(snapshot.vertex_count() as usize);
    let mut cursor = ScanCursor::default();
    while snapshot.scan_vertices(&mut cursor, 1 << 16, &mut vertices) {
        check(control)?;
    }
    if vertices.len() as u64 >= u64::from(Place::MAX) {
        return Err(AnalyticsError::TooManyVertices { vertices: vertices.len() as u64 });
    }
    Ok(vertices)
}

/// Builds one direction: every range of places fills its own part of the array.
fn fill(
    snapshot: &Shared,
    numbering: &Numbering,
    degrees: &[u64],
    way: Direction,
    options: &ProjectionOptions,
    control: &dyn Control,
) -> Result<Adjacency, AnalyticsError> {
    let mut offsets = Vec::with_capacity(degrees.len() + 1);
    let mut end = 0u64;
    offsets.push(0);
    offsets.extend(degrees.iter().map(|degree| {
        end += degree;
        end
    }));
    let mut neighbours: Arc<[Place]> = std::iter::repeat_n(0, end as usize).collect();
    let ranges = Adjacency::of_arrays(offsets.clone(), Arc::new([])).balanced_ranges(BUILD_RANGE_WORK);
    let mut parts = Vec::with_capacity(ranges.len());
    let mut rest = Arc::get_mut(&mut neighbours).expect("nobody else has it yet");
    for range in ranges {
        let length = offsets[range.end as usize] - offsets[range.start as usize];
        let (part, behind) = std::mem::take(&mut rest).split_at_mut(length as usize);
        parts.push((range, part));
        rest = behind;
    }
    parts.into_par_iter().try_for_each_init(
        || snapshot.handle(),
        |snapshot, (range, part)| {
            check(control)?;
            let mut reader = EdgeReader::new(snapshot, way, options);
            let first = offsets[range.start as usize];
            for place in range {
                let start = (offsets[place as usize] - first) as usize;
                let run = &mut part[start..(offsets[place as usize + 1] - first) as usize];
                let mut filled = 0;
                reader.visit(numbering.vertex(place), &mut |vertex| {
                    run[filled] = numbering.place(vertex).expect("an edge ends at a vertex of its snapshot");
                    filled += 1;
                })?;
                assert_eq!(filled, run.len(), "a degree counts the half-edges");
                run.sort_unstable();
            }
            Ok(())
        },
    )?;
    Ok(Adjacency::of_arrays(offsets, neighbours))
}
