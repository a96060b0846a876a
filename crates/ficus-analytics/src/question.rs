//! What a k-hop question asks, and how it is answered.

use ficus_model::Direction;

use crate::{AnalyticsError, Control, Place, Projection, multi_source, single_source};

/// What counts as reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Walk {
    /// Vertices at the end of a walk of one to k hops: `repeat(out()).emit().times(k).dedup()`. The source only if a walk leads back to it.
    Within,
    /// As `Within`, and the source itself with no hop: `emit().repeat(out()).times(k).dedup()`, a breadth-first search.
    WithinOrSource,
    /// Vertices at the end of a walk of exactly k hops: `repeat(out()).times(k).dedup()`.
    Exactly,
}

/// How far a question goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hops(pub u32);

impl Hops {
    /// Until nothing new is reached.
    pub const ALL: Hops = Hops(u32::MAX);
}

/// One question: what is reached from a vertex, or from any of several?
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Where it starts. Given twice is given once.
    pub sources: Vec<Place>,
    /// How many hops it takes at most.
    pub hops: Hops,
    /// If given, the question is only whether this vertex is reached, and it ends when it is.
    pub target: Option<Place>,
}

/// The answer to one question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Vertices by the hop that first reached them (`Within`), the sources at 0 if they count; for `Exactly` how many the hop reached.
    pub levels: Vec<u64>,
    /// The hop that reached the target first.
    pub distance: Option<u32>,
}

impl Answer {
    /// Number of vertices the question asks for; see [`Walk`].
    pub fn count(&self, walk: Walk, hops: Hops) -> u64 {
        match walk {
            Walk::Within | Walk::WithinOrSource => self.levels.iter().sum(),
            Walk::Exactly => self.levels.get(hops.0 as usize).copied().unwrap_or(0),
        }
    }
}

impl Question {
    /// What is reached from one vertex.
    pub fn from(source: Place, hops: Hops) -> Question {
        Question { sources: vec![source], hops, target: None }
    }
}

/// What all questions of a pass have in common.
#[derive(Clone, Copy)]
pub struct Common<'a> {
    /// The graph.
    pub projection: &'a Projection,
    /// Which way every hop goes.
    pub direction: Direction,
    /// What counts.
    pub walk: Walk,
    /// Vertices that may be entered, a bit each by place; `None` for all. Sources are not asked.
    pub allowed: Option<&'a [u64]>,
}

/// The most questions one pass can answer.
pub const PASS_LIMIT: usize = 512;

/// Bytes that the state of a pass may take: of a very large graph, passes are narrower.
const STATE_BYTES_LIMIT: usize = 1 << 30;

/// Questions of one pass over so many vertices.
fn width_limit(vertices: usize) -> usize {
    let fits = |width: &usize| vertices.saturating_mul(3 * width / 8) <= STATE_BYTES_LIMIT;
    [PASS_LIMIT, 256, 128].into_iter().find(fits).unwrap_or(64)
}

/// Answers questions, in passes of up to [`PASS_LIMIT`]; one that is alone by a search of its own.
///
/// Memory of a pass: three bits a vertex and question (two for `Exactly`), rounded up to 64, 128, 256 or 512 questions.
/// Cost: each hop reads every edge at most once for all questions of a pass; a hop from few vertices reads only their edges.
///
/// Errors: `Stopped`.
pub fn answer(
    common: Common<'_>,
    questions: &[Question],
    control: &dyn Control,
) -> Result<Vec<Answer>, AnalyticsError> {
    let mut answers = Vec::with_capacity(questions.len());
    for group in questions.chunks(width_limit(common.projection.vertex_count())) {
        match group {
            [alone] => answers.push(single_source::answer(common, alone, control)?),
            many => answers.extend(multi_source::answer(common, many, control)?),
        }
    }
    Ok(answers)
}
