//! What a walk of several hops asks of the vertices and edges it comes to.

use ficus_analytics::Entry;
use ficus_model::VertexId;
use ficus_storage::Snapshot;

use crate::context::Result;
use crate::error::QueryError;
use crate::walk_filter::{Element, StateFilter, WalkFilter};

/// What vertices and edges have to fulfil.
#[derive(Clone)]
pub(super) struct Filters {
    pub(super) vertices: Option<WalkFilter>,
    pub(super) edges: Option<WalkFilter>,
    /// Vertices that count on the way.
    pub(super) mark: Option<Mark>,
    /// Set when a condition turned out to fail on elements elsewhere in the graph: a pass is not for this query.
    pub(super) is_own: bool,
}

impl Filters {
    pub(super) fn are_there(&self) -> bool {
        self.vertices.is_some() || self.edges.is_some() || self.mark.is_some()
    }
}

/// As [`KHopMark`](crate::logical::KHopMark).
#[derive(Clone)]
pub(super) struct Mark {
    pub(super) condition: WalkFilter,
    pub(super) goes_on: bool,
    pub(super) tests_start: bool,
}

impl Mark {
    /// What becomes of a vertex, which fulfils the condition or does not.
    pub(super) fn entry(&self, is_marked: bool) -> Entry {
        match (is_marked, self.goes_on) {
            (false, _) => Entry::Through,
            (true, true) => Entry::Reported,
            (true, false) => Entry::End,
        }
    }
}

/// Tests vertices that a search comes to.
pub(super) struct Entering<'a> {
    vertices: Testing<'a>,
    mark: Option<(&'a Mark, Testing<'a>)>,
}

impl<'a> Entering<'a> {
    pub(super) fn new(snapshot: &'a Snapshot, filters: &'a Filters) -> Entering<'a> {
        let mark = filters.mark.as_ref().map(|mark| (mark, Testing::new(snapshot, Some(&mark.condition))));
        Entering { vertices: Testing::new(snapshot, filters.vertices.as_ref()), mark }
    }

    #[inline(always)]
    pub(super) fn entry(&mut self, vertex: VertexId) -> Entry {
        if !self.vertices.passes(vertex) {
            return Entry::Refused;
        }
        match &mut self.mark {
            None => Entry::Through,
            Some((mark, testing)) => mark.entry(testing.passes(vertex)),
        }
    }

    pub(super) fn end(self) -> Result<()> {
        self.vertices.end()?;
        self.mark.map_or(Ok(()), |(_, testing)| testing.end())
    }
}

/// Tests elements; the first error ends the search.
pub(super) struct Testing<'a> {
    snapshot: &'a Snapshot,
    filter: Option<StateFilter>,
    failed: Option<QueryError>,
}

impl<'a> Testing<'a> {
    pub(super) fn new(snapshot: &'a Snapshot, filter: Option<&WalkFilter>) -> Testing<'a> {
        Testing { snapshot, filter: filter.map(|filter| filter.on(snapshot)), failed: None }
    }

    #[inline(always)]
    pub(super) fn passes<E: Element>(&mut self, element: E) -> bool {
        let Some(filter) = &mut self.filter else { return true };
        match filter.test(self.snapshot, element) {
            Ok(passes) => passes && self.failed.is_none(),
            Err(error) => {
                self.failed.get_or_insert(error.into());
                false
            }
        }
    }

    pub(super) fn end(self) -> Result<()> {
        self.failed.map_or(Ok(()), Err)
    }
}
