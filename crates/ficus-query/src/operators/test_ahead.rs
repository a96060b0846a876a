//! A filter by a sub-query, made ahead of its rows: of those that wait at the filter, or by the hop in front of it, as in
//! `outE('workAt').as('w').inV().as('c').where(out('isLocatedIn').has('name', 'Chile'))`.
//!
//! Tested one by one, each row waits for the memory that its test looks at; of many at once the processor waits for all together. And a row of a hop is
//! a traverser with its path, which is made for nothing if the filter drops it. So the filter asks a probe about several of the rows that wait, and the
//! hop right in front asks one of its own before it makes rows, and marks those that pass ([`marks::PASSED`]), which the filter lets through unseen. What
//! a probe does not decide, because it takes long, fails, or depends on more than the vertex, the filter does as if nobody had been asked.
//!
//! Cost: what the filter would have spent. Who has rows that are not wanted (a `limit()` behind the filter) has looked ahead of them by one vertex at
//! first, and by as many at last as take [`AHEAD_LOOKS`] elements: of walks of several hops it makes one at a time.

use ficus_model::VertexId;

use crate::context::Cx;
use crate::probe::{Probe, Rule};
use crate::traverser::marks;

/// Vertices that are tested at once behind the first, if that was quick: as few as are worth it.
const AHEAD_MIN: usize = 8;

/// And at last.
const AHEAD_MAX: usize = 128;

/// Elements that are looked at ahead of the rows that are wanted: some microseconds.
const AHEAD_LOOKS: usize = 512;

/// The test, and what it found of the vertices that a hop has fetched, or that wait.
pub struct TestAhead {
    rule: Rule,
    probe: Probe,
    /// Where the filter, and others like this, look up which vertices pass.
    passing: Option<usize>,
    has_told: bool,
    /// Verdicts on the vertices from this position on; none of those that the filter is to decide.
    verdicts: Vec<Option<bool>>,
    position: usize,
    vertices: Vec<VertexId>,
    /// How many are tested at once the next time.
    ahead: usize,
    /// A test was too long, or failed: the filter knows how to go on.
    is_over: bool,
}

/// Of an operator that works for itself: with experience of its own.
impl Clone for TestAhead {
    fn clone(&self) -> TestAhead {
        TestAhead::new(self.rule, self.probe.clone(), self.passing)
    }
}

impl TestAhead {
    /// For a filter that lets through what this probe finds something for, or nothing. `None` if that depends on more than the vertex.
    pub fn of(rule: Rule, probe: Probe, passing: Option<usize>) -> Option<TestAhead> {
        probe.keeps_verdicts().then(|| TestAhead::new(rule, probe, passing))
    }

    fn new(rule: Rule, probe: Probe, passing: Option<usize>) -> TestAhead {
        TestAhead {
            rule,
            probe,
            passing,
            has_told: false,
            verdicts: Vec::new(),
            position: 0,
            vertices: Vec::new(),
            ahead: 1,
            is_over: false,
        }
    }

    /// Forgets what was found: other vertices come.
    pub fn forget(&mut self) {
        self.verdicts.clear();
        self.position = 0;
    }

    /// The mark of a row of the vertex at `position`, and whether there is to be a row at all. `vertex_at` says which vertex is at a position, up to
    /// the last one that is there.
    #[inline]
    pub fn look(
        &mut self,
        position: usize,
        vertex_at: impl Fn(usize) -> Option<VertexId>,
        cx: &mut Cx<'_>,
    ) -> Option<u64> {
        if position >= self.position + self.verdicts.len() {
            self.go_ahead(position, vertex_at, cx);
        }
        match self.verdicts.get(position.wrapping_sub(self.position)).copied().flatten() {
            Some(true) => Some(marks::PASSED),
            Some(false) => None,
            None => Some(0),
        }
    }

    /// Tests some from a position on.
    fn go_ahead(&mut self, position: usize, vertex_at: impl Fn(usize) -> Option<VertexId>, cx: &mut Cx<'_>) {
        self.position = position;
        self.verdicts.clear();
        if self.is_over {
            return;
        }
        self.vertices.clear();
        self.vertices.extend((position..position + self.ahead).map_while(vertex_at));
        let looked = self.probe.find_ahead(self.rule, &self.vertices, &mut self.verdicts, AHEAD_LOOKS, cx);
        cx.charge(looked.items);
        let each = looked.forward / self.verdicts.len().max(1);
        self.ahead = (2 * self.ahead).clamp(AHEAD_MIN, AHEAD_MAX).min(AHEAD_LOOKS / each.max(1)).max(1);
        self.is_over = looked.in_vain;
        if let (Some(passing), Some(set), false) = (self.passing, self.probe.set(), self.has_told) {
            cx.context.passing[passing].tell(set);
            self.has_told = true;
        }
    }
}
