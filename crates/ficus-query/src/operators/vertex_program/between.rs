//! Shortest paths from few vertices to few others along edges by label: searched for in the store, from both ends.
//!
//! As small k-hop questions, these need no projection: most pairs are few hops apart, and what lies between them is a small part of the graph. A
//! search that becomes large ends this; the paths that are left are those of [`PathRows`](super::paths::PathRows).

use ficus_analytics::programs::PathsTo;
use ficus_analytics::{Advance, BothWays, TwoSidedSearch};
use ficus_model::{LabelId, VertexId};
use ficus_storage::Protect;

use super::paths::{PathOptions, STEPS_PER_LOOK, Source, hand_on, path};
use crate::budget::Held;
use crate::context::{Cx, QueryContext, Result, Traversers};

/// More pairs of sources and targets are better off with a search from each source for all targets.
const PAIRS_MAX: usize = 64;

/// Edges looked at between two looks at whether the turn is over.
const EDGES_PER_LOOK: u64 = 1 << 12;

/// Paths between pairs on their way out.
pub struct PairRows {
    options: PathOptions,
    /// Labels of edges; `None` for all.
    labels: Option<Vec<LabelId>>,
    sources: Vec<Source>,
    /// In ascending order.
    targets: Vec<VertexId>,
    /// The current source, and the target of its that is next.
    source: usize,
    next: usize,
    current: Option<Pair>,
    /// Edges that were gone along for all pairs before.
    edges: u64,
    held: Held,
}

struct Pair {
    target: VertexId,
    search: TwoSidedSearch,
    /// The bytes that are accounted for.
    held_bytes: usize,
    /// Set once the search has ended.
    paths: Option<PathsTo<VertexId>>,
}

/// What became of pairs.
pub enum Outcome {
    /// All paths are out.
    Ended,
    /// The turn is over.
    Paused,
    /// There is too much between a pair: these sources are left, the first of which has had its paths to some targets.
    Large(Vec<Source>, Vec<VertexId>),
}

impl PairRows {
    /// Of few pairs; the sources, if they are many or paths may end anywhere.
    pub fn new(
        options: &PathOptions,
        labels: Option<Vec<LabelId>>,
        sources: Vec<Source>,
    ) -> std::result::Result<PairRows, Vec<Source>> {
        let Some(targets) = &options.targets else { return Err(sources) };
        if sources.len().saturating_mul(targets.len()) > PAIRS_MAX {
            return Err(sources);
        }
        let mut targets = (**targets).clone();
        targets.sort_unstable();
        targets.dedup();
        let (options, held) = (options.clone(), Held::default());
        Ok(PairRows { options, labels, sources, targets, source: 0, next: 0, current: None, edges: 0, held })
    }

    /// Puts paths out until the turn is over or a search becomes large.
    pub fn emit(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Outcome> {
        // What comes out depends on all of this.
        cx.context.transaction.protect(Protect::AllVertices);
        cx.context.transaction.protect(Protect::AllEdges);
        loop {
            if cx.should_yield(out) {
                return Ok(Outcome::Paused);
            }
            let Some(pair) = &mut self.current else {
                if !self.begin_next(cx) {
                    return Ok(Outcome::Ended);
                }
                continue;
            };
            let snapshot = &*cx.context.transaction;
            let mut ways = BothWays::new(snapshot, self.options.direction, self.labels.as_deref());
            let (source, traversers) = &self.sources[self.source];
            let Some(paths) = &mut pair.paths else {
                let limit = cx.context.analytics.as_ref().map_or(u64::MAX, |own| own.alone_edges(snapshot));
                let before = pair.search.edges();
                let advance = pair.search.advance(&mut ways, EDGES_PER_LOOK, limit.saturating_sub(self.edges));
                cx.charge((pair.search.edges() - before) as usize / 8 + 1);
                let bytes = pair.search.bytes();
                self.held.add(&cx.context.memory, bytes.saturating_sub(pair.held_bytes))?;
                pair.held_bytes = pair.held_bytes.max(bytes);
                match advance {
                    Advance::Paused => {}
                    Advance::Large => {
                        self.end_pair(cx);
                        // The one that began it has not had its paths.
                        let had = self.targets[..self.next - 1].to_vec();
                        return Ok(Outcome::Large(self.sources.split_off(self.source), had));
                    }
                    Advance::Ended if pair.search.length().is_none() => self.end_pair(cx),
                    Advance::Ended => pair.paths = Some(PathsTo::new(*source, pair.target)),
                }
                continue;
            };
            let search = &pair.search;
            match paths.next(&mut |to| search.steps_back(&mut ways, to), STEPS_PER_LOOK) {
                None => self.end_pair(cx),
                Some(None) => cx.charge(STEPS_PER_LOOK / 8),
                Some(Some(steps)) => {
                    cx.charge(1);
                    let path = path(steps.into_iter().map(|(vertex, _)| (vertex, None)));
                    hand_on(&path, traversers, &self.options.step, out);
                }
            }
        }
    }

    /// Begins on the next pair whose ends are there; false behind the last.
    fn begin_next(&mut self, cx: &mut Cx<'_>) -> bool {
        let exists = |vertex| cx.context.transaction.vertex_exists(vertex);
        // Lengths are whole numbers.
        let hops_limit = self.options.distance_limit.max(0.0) as u32;
        while let Some((source, _)) = self.sources.get(self.source) {
            let Some(target) = self.targets.get(self.next).copied().filter(|_| exists(*source)) else {
                (self.source, self.next) = (self.source + 1, 0);
                continue;
            };
            self.next += 1;
            if exists(target) {
                let search = TwoSidedSearch::new(*source, target, hops_limit);
                self.current = Some(Pair { target, search, held_bytes: 0, paths: None });
                return true;
            }
        }
        false
    }

    fn end_pair(&mut self, cx: &mut Cx<'_>) {
        if let Some(pair) = self.current.take() {
            self.edges += pair.search.edges();
            cx.note("edgesSearched", i64::try_from(pair.search.edges()).unwrap_or(i64::MAX));
        }
        self.held.give_back();
    }

    /// Hands back what it holds of the query's memory.
    pub fn release(&mut self, _context: &mut QueryContext) {
        self.held.give_back();
    }
}
