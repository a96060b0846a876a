//! Which programs there are, what they are asked with, and how they are run.

use std::sync::Arc;

use ficus_analytics::programs::{
    BetweennessOptions, LabelPropagationOptions, PageRankOptions, PeerPressureOptions, ShortestPathOptions, Weights,
    betweenness, core_numbers, degrees, label_propagation, page_rank, peer_pressure, shortest_distances,
    strong_components, triangles, weak_components,
};
use ficus_analytics::{AnalyticsError, Control, Place, Projection, ProjectionOptions};
use ficus_model::{Direction, Value, VertexId};
use ficus_storage::Snapshot;

use super::id_order::order_of_texts;
use crate::context::{QueryContext, Result};
use crate::random::Random;
use crate::services::parameters::Parameters;

/// A program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Ranks.
    PageRank,
    /// Which vertices hang together.
    Components,
    /// Distances from sources.
    Sssp,
    /// Communities.
    LabelPropagation,
    /// Clusters by votes.
    PeerPressure,
    /// Triangles at each vertex.
    Triangles,
    /// Core numbers.
    KCore,
    /// Numbers of edges.
    Degree,
    /// Shares of shortest paths.
    Betweenness,
}

/// Runs with what it was asked with, on threads of analytics.
pub type Program =
    Box<dyn FnOnce(&Projection, &Snapshot, &dyn Control) -> std::result::Result<Values, AnalyticsError> + Send>;

/// What is to be run.
pub struct Request {
    /// Edges it goes along.
    pub options: ProjectionOptions,
    /// The program.
    pub program: Program,
    /// Bytes it holds for each vertex and for each edge while it runs, its result included.
    pub bytes: (usize, usize),
    /// The vertex property the values are written to, if any.
    pub write: Option<Arc<str>>,
}

/// A value for each vertex, by place.
pub enum Values {
    /// Numbers; those that are not finite stand for no value.
    Doubles(Vec<f64>),
    /// Whole numbers.
    Longs(Vec<u64>),
    /// Vertices: the user sees their ids.
    Places(Vec<Place>),
}

pub(super) const EDGES: (&str, &str) =
    ("edges", "A label, or a list of labels, of the edges to go along (default = all).");
pub(super) const DIRECTION_OUT: (&str, &str) =
    ("direction", "Which way to go along edges: OUT, IN or BOTH (default = OUT).");
const DIRECTION_BOTH: (&str, &str) = ("direction", "Which way to go along edges: OUT, IN or BOTH (default = BOTH).");
const WRITE: (&str, &str) =
    ("write", "A property key under which every vertex gets its value, in the query's transaction (default = none).");

impl Algorithm {
    /// All of them.
    pub const ALL: [Algorithm; 9] = [
        Algorithm::PageRank,
        Algorithm::Components,
        Algorithm::Sssp,
        Algorithm::LabelPropagation,
        Algorithm::PeerPressure,
        Algorithm::Triangles,
        Algorithm::KCore,
        Algorithm::Degree,
        Algorithm::Betweenness,
    ];

    /// As `call()` names it.
    pub fn service_name(self) -> &'static str {
        match self {
            Algorithm::PageRank => "ficus.pagerank",
            Algorithm::Components => "ficus.components",
            Algorithm::Sssp => "ficus.sssp",
            Algorithm::LabelPropagation => "ficus.labelPropagation",
            Algorithm::PeerPressure => "ficus.peerPressure",
            Algorithm::Triangles => "ficus.triangles",
            Algorithm::KCore => "ficus.kcore",
            Algorithm::Degree => "ficus.degree",
            Algorithm::Betweenness => "ficus.betweenness",
        }
    }

    /// The key of a vertex's value in what is yielded.
    pub fn value_name(self) -> &'static str {
        match self {
            Algorithm::PageRank => "rank",
            Algorithm::Components => "component",
            Algorithm::Sssp => "distance",
            Algorithm::LabelPropagation => "label",
            Algorithm::PeerPressure => "cluster",
            Algorithm::Triangles => "triangles",
            Algorithm::KCore => "core",
            Algorithm::Degree => "degree",
            Algorithm::Betweenness => "betweenness",
        }
    }

    /// Its parameters and their meaning.
    pub fn parameters(self) -> Vec<(&'static str, &'static str)> {
        let mut parameters = match self {
            Algorithm::PageRank => vec![
                DIRECTION_OUT,
                ("damping", "With which probability a walker goes on along an edge (default = 0.85)."),
                ("tolerance", "Ends when all ranks together moved by less in one iteration (default = 1e-9)."),
                ("iterations", "Ends after so many iterations (default = 100)."),
                ("sources", "A vertex or an id, or a list of them: where walkers start (default = anywhere)."),
            ],
            Algorithm::Components => {
                vec![("kind", "weak takes no notice of the direction of edges, strong does (default = weak).")]
            }
            Algorithm::Sssp => vec![
                DIRECTION_OUT,
                ("sources", "A vertex or an id, or a list of them: where paths begin."),
                ("weight", "The edge property that says how long an edge is (default = 1 each)."),
                ("defaultWeight", "The length of edges without this property (default = none: an error)."),
                ("maxDistance", "Vertices farther away are not looked for (default = no limit)."),
            ],
            Algorithm::LabelPropagation => {
                vec![DIRECTION_BOTH, ("iterations", "Ends after so many rounds (default = 10).")]
            }
            Algorithm::PeerPressure => vec![
                DIRECTION_OUT,
                ("iterations", "Ends after so many rounds (default = 30)."),
                ("distribute", "Whether a vertex divides its vote by the edges it votes along (default = false)."),
            ],
            Algorithm::Triangles | Algorithm::KCore => vec![],
            Algorithm::Degree => vec![DIRECTION_BOTH],
            Algorithm::Betweenness => vec![
                DIRECTION_OUT,
                ("samples", "Look at paths from so many vertices only and estimate the rest (default = all)."),
                ("seed", "A number that chooses the samples (default = 0)."),
                ("normalised", "Whether to divide by the number of pairs of other vertices (default = true)."),
            ],
        };
        parameters.extend([EDGES, WRITE]);
        parameters
    }

    /// What a call asks for.
    ///
    /// Errors: `Invalid` for a parameter that is not what it may be.
    pub fn request(self, given: &Parameters<'_>, context: &QueryContext) -> Result<Request> {
        let is_weighted = self == Algorithm::Sssp && given.optional_text("weight")?.is_some();
        let write = given.optional_text("write")?;
        if is_weighted && write.is_some() {
            // Their properties would have to be found unchanged at commit, and there is no way yet to ask that of all edges at once.
            return Err(given.invalid(
                "[write] cannot be combined with [weight]; take the distances and write them with property()",
            ));
        }
        Ok(Request {
            options: options(given, context)?,
            program: self.program(given, context)?,
            bytes: self.bytes(is_weighted),
            write,
        })
    }

    fn bytes(self, is_weighted: bool) -> (usize, usize) {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        match self {
            Algorithm::PageRank => (32, 0),
            Algorithm::Components => (28, 0),
            Algorithm::Sssp => (24, if is_weighted { 16 } else { 0 }),
            Algorithm::LabelPropagation => (8 + 8 * threads, 0),
            Algorithm::PeerPressure => (128 + 8 * threads, 0),
            Algorithm::Triangles => (24 + 8 * threads, 4),
            Algorithm::KCore => (32, 8),
            Algorithm::Degree => (8, 0),
            Algorithm::Betweenness => (8 + 36 * threads, 8),
        }
    }

    fn program(self, given: &Parameters<'_>, context: &QueryContext) -> Result<Program> {
        Ok(match self {
            Algorithm::PageRank => {
                let defaults = PageRankOptions::default();
                let sources = sources(given, context)?;
                let mut options = PageRankOptions {
                    direction: given.direction(Direction::Out)?,
                    damping: given.double("damping")?.unwrap_or(defaults.damping),
                    tolerance: given.double("tolerance")?.unwrap_or(defaults.tolerance),
                    iterations_limit: given.count("iterations", defaults.iterations_limit)?,
                    ..defaults
                };
                Box::new(move |projection, _, control| {
                    let share = |place| (place, 1.0);
                    options.restart = sources.map(|them| places(projection, &them).into_iter().map(share).collect());
                    Ok(Values::Doubles(page_rank(projection, &options, control)?.ranks))
                })
            }
            Algorithm::Components => {
                let is_strong = match given.optional_text("kind")?.as_deref() {
                    None | Some("weak") => false,
                    Some("strong") => true,
                    Some(other) => return Err(given.invalid(format!("[kind] is weak or strong, not {other}"))),
                };
                Box::new(move |projection, _, control| {
                    let components = if is_strong { strong_components } else { weak_components };
                    Ok(Values::Places(components(projection, control)?))
                })
            }
            Algorithm::Sssp => {
                let sources = sources(given, context)?
                    .ok_or_else(|| given.invalid("it needs the parameter [sources], a vertex or its id, or a list"))?;
                let direction = given.direction(Direction::Out)?;
                let weight = given.optional_text("weight")?;
                let default = given.double("defaultWeight")?;
                if default.is_some_and(|length| !length.is_finite() || length < 0.0) {
                    return Err(given.invalid("[defaultWeight] is a finite number of 0 or more"));
                }
                let distance_limit = given.double("maxDistance")?;
                let options = self::options(given, context)?;
                Box::new(move |projection, snapshot, control| {
                    let read = |key: Arc<str>| Weights::new(snapshot, projection, &options, &key, default, control);
                    let weights = weight.map(read).transpose()?;
                    let sources = places(projection, &sources);
                    let weights = weights.as_ref();
                    let options = ShortestPathOptions { sources, direction, weights, distance_limit };
                    Ok(Values::Doubles(shortest_distances(projection, &options, control)?))
                })
            }
            Algorithm::LabelPropagation => {
                let direction = given.direction(Direction::Both)?;
                let rounds_limit = given.count("iterations", LabelPropagationOptions::default().rounds_limit)?;
                let options = LabelPropagationOptions { direction, rounds_limit };
                Box::new(move |projection, _, control| {
                    Ok(Values::Places(label_propagation(projection, options, control)?.0))
                })
            }
            Algorithm::PeerPressure => {
                let direction = given.direction(Direction::Out)?;
                let rounds_limit = given.count("iterations", 30)?;
                let distribute = given.flag("distribute", false)?;
                Box::new(move |projection, snapshot, control| {
                    let order = order_of_texts(projection, snapshot);
                    let options =
                        PeerPressureOptions { direction, rounds_limit, strengths: None, distribute, order: &order };
                    Ok(Values::Places(peer_pressure(projection, &options, control)?.0))
                })
            }
            Algorithm::Triangles => {
                Box::new(|projection, _, control| Ok(Values::Longs(triangles(projection, control)?.of_vertex)))
            }
            Algorithm::KCore => Box::new(|projection, _, control| {
                Ok(Values::Longs(core_numbers(projection, control)?.into_iter().map(u64::from).collect()))
            }),
            Algorithm::Degree => {
                let direction = given.direction(Direction::Both)?;
                Box::new(move |projection, _, _| Ok(Values::Longs(degrees(projection, direction))))
            }
            Algorithm::Betweenness => {
                let direction = given.direction(Direction::Out)?;
                let normalised = given.flag("normalised", true)?;
                let samples = match given.count("samples", u32::MAX)? {
                    0 => return Err(given.invalid("[samples] is at least 1")),
                    samples => samples as usize,
                };
                let seed = u64::from(given.count("seed", 0)?);
                Box::new(move |projection, _, control| {
                    let sources = sample(projection.vertex_count(), samples, seed);
                    let options = BetweennessOptions { direction, sources, normalised };
                    Ok(Values::Doubles(betweenness(projection, &options, control)?))
                })
            }
        })
    }
}

/// Edges by label; a label that does not exist has no edges.
pub(super) fn options(given: &Parameters<'_>, context: &QueryContext) -> Result<ProjectionOptions> {
    let names = given.texts("edges")?;
    if names.is_empty() {
        return Ok(ProjectionOptions::default());
    }
    let mut labels: Vec<_> = names.iter().filter_map(|name| context.transaction.label_id(name)).collect();
    labels.sort_unstable();
    labels.dedup();
    Ok(ProjectionOptions { edge_labels: Some(labels), edges: None })
}

/// Vertices of the parameter `sources`.
fn sources(given: &Parameters<'_>, context: &QueryContext) -> Result<Option<Vec<VertexId>>> {
    vertices(given, "sources", context)
}

/// Vertices, given as such or by their ids.
pub(super) fn vertices(given: &Parameters<'_>, name: &str, context: &QueryContext) -> Result<Option<Vec<VertexId>>> {
    let one = |value: &Value| {
        let vertex = match context.attached(value) {
            Value::Vertex(vertex) => context.transaction.vertex_exists(vertex).then_some(vertex),
            id => context.transaction.find_vertex(&id),
        };
        vertex.ok_or_else(|| given.invalid(format!("[{name}]: there is no vertex {value}")))
    };
    let found: Vec<VertexId> = match given.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::List(list)) => list.iter().map(one).collect::<Result<_>>()?,
        Some(Value::Set(set)) => set.iter().map(one).collect::<Result<_>>()?,
        Some(value) => vec![one(value)?],
    };
    if found.is_empty() {
        return Err(given.invalid(format!("[{name}] is empty; give at least one vertex")));
    }
    Ok(Some(found))
}

fn places(projection: &Projection, vertices: &[VertexId]) -> Vec<Place> {
    vertices.iter().filter_map(|vertex| projection.place(*vertex)).collect()
}

/// So many different places; `None` for all.
fn sample(vertices: usize, samples: usize, seed: u64) -> Option<Vec<Place>> {
    if samples >= vertices {
        return None;
    }
    let mut random = Random::seeded(seed);
    let mut places: Vec<Place> = (0..vertices as Place).collect();
    for index in 0..samples {
        let other = index + random.below(vertices - index);
        places.swap(index, other);
    }
    places.truncate(samples);
    Some(places)
}
