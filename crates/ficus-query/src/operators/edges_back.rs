//! How many edges lead from one vertex after another to the same one, the *end*.
//!
//! `where(out('hasCreator').both('knows').where(eq('a')))` asks that of each row, and rows with the same vertex under the label come one behind the
//! other. The neighbours of a vertex that is asked about are looked at as they are; once those of the end would have been fewer, they are gathered,
//! and a question is a look at a mark among them. An end with few neighbours is known at once.

use ficus_model::{Direction, LabelId, VertexId};
use ficus_storage::HalfEdgeCursor;

use crate::budget::Held;
use crate::context::{QueryContext, Result};
use crate::elements::FETCH_MAX;
use crate::operators::neighbour_list::NeighbourList;

/// An end with no more neighbours than this is known at once.
const FEW: u64 = 16;

/// Neighbours of a vertex that are looked at before those of the end are instead.
const FIRST: usize = 64;

/// Of an end with more neighbours than this not all are looked at for one question.
const SCAN_MAX: u64 = 1 << 10;

/// Half-edges that are looked at in the time in which one is gathered.
const LOOKS_PER_NEIGHBOUR: u64 = 4;

/// An end with more neighbours than this is not gathered: that is done in one go.
const LIST_MAX: u64 = 1 << 14;

/// What is known of the end.
#[derive(Debug)]
enum Neighbours {
    /// All of them.
    Few(Vec<VertexId>),
    /// All of them.
    List(NeighbourList),
    /// So many, which are not gathered before as many others have been looked at, if ever.
    Many { degree: u64, looked: u64 },
}

/// Counts edges to a vertex.
#[derive(Debug, Default)]
pub struct EdgesBack {
    end: Option<(VertexId, Neighbours)>,
    held: Held,
}

/// What a question came to.
pub struct Counted {
    /// Edges that lead to the end; `None` if there are too many to look at, and these have to be sought from the end that has fewer.
    pub edges: Option<u64>,
    /// Half-edges that were looked at.
    pub looked: usize,
}

impl EdgesBack {
    /// How many edges lead from `vertex` to `end` that a hop in this direction, with these labels, goes over. `fetched` is left in any state. All
    /// questions have to be for the same direction and labels.
    ///
    /// Errors: those of the account.
    pub fn count(
        &mut self,
        (vertex, direction, labels): (VertexId, Direction, &[LabelId]),
        end: VertexId,
        context: &QueryContext,
        fetched: &mut Vec<VertexId>,
    ) -> Result<Counted> {
        let mut looked = 1;
        if self.end.as_ref().is_none_or(|(known, _)| *known != end) {
            looked += self.begin(end, direction.reversed(), labels, context);
        }
        let edges = match &mut self.end {
            Some((_, Neighbours::Few(neighbours))) => neighbours.iter().filter(|own| **own == vertex).count() as u64,
            Some((_, Neighbours::List(list))) => list.count(vertex),
            Some((_, Neighbours::Many { degree, looked: others })) => {
                let transaction = &context.transaction;
                let read = |(from, direction): (VertexId, Direction), max: usize, fetched: &mut Vec<VertexId>| {
                    fetched.clear();
                    transaction.copy_neighbours(from, direction, labels, &mut HalfEdgeCursor::default(), max, fetched)
                };
                let count = |fetched: &[VertexId], other: VertexId| {
                    fetched.iter().filter(|neighbour| **neighbour == other).count() as u64
                };
                let mut more = read((vertex, direction), FIRST, fetched);
                let mut edges = count(fetched, end);
                if more && *degree <= SCAN_MAX {
                    *others += fetched.len() as u64;
                    looked += fetched.len();
                    more = read((end, direction.reversed()), SCAN_MAX as usize, fetched);
                    edges = count(fetched, vertex);
                } else if more {
                    more = read((vertex, direction), FETCH_MAX, fetched);
                    edges = count(fetched, end);
                }
                *others += fetched.len() as u64;
                looked += fetched.len();
                if *others >= LOOKS_PER_NEIGHBOUR * *degree && *degree <= LIST_MAX {
                    looked += self.gather(end, direction.reversed(), labels, context, fetched)?;
                }
                return Ok(Counted { edges: (!more).then_some(edges), looked });
            }
            None => 0,
        };
        Ok(Counted { edges: Some(edges), looked })
    }

    /// Looks at an end for the first time.
    fn begin(&mut self, end: VertexId, direction: Direction, labels: &[LabelId], context: &QueryContext) -> usize {
        self.held.give_back();
        let degree = context.transaction.degree(end, direction, labels);
        let mut neighbours = match self.end.take() {
            Some((_, Neighbours::Few(mut neighbours))) => {
                neighbours.clear();
                neighbours
            }
            _ => Vec::new(),
        };
        if degree > FEW {
            self.end = Some((end, Neighbours::Many { degree, looked: 0 }));
            return 0;
        }
        let (mut cursor, transaction) = (HalfEdgeCursor::default(), &context.transaction);
        while transaction.copy_neighbours(end, direction, labels, &mut cursor, FETCH_MAX, &mut neighbours) {}
        let looked = neighbours.len();
        self.end = Some((end, Neighbours::Few(neighbours)));
        looked
    }

    /// Gathers the neighbours of the end; how many there are.
    fn gather(
        &mut self,
        end: VertexId,
        direction: Direction,
        labels: &[LabelId],
        context: &QueryContext,
        fetched: &mut Vec<VertexId>,
    ) -> Result<usize> {
        fetched.clear();
        let (mut cursor, transaction) = (HalfEdgeCursor::default(), &context.transaction);
        while transaction.copy_neighbours(end, direction, labels, &mut cursor, FETCH_MAX, fetched) {}
        let list = NeighbourList::new(fetched);
        self.held.add(&context.memory, list.bytes())?;
        self.end = Some((end, Neighbours::List(list)));
        Ok(fetched.len())
    }
}
