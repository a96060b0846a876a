//! How many edges lead from one vertex after another to the same one, the *end*.
//!
//! `where(out('hasCreator').both('knows').where(eq('a')))` asks that of each row, and rows with the same vertex under the label come one behind the
//! other. The neighbours of a vertex that is asked about are looked at as they are; once they were four times as many as the end has, those of the end
//! are gathered, and a question is a look at a mark among them.

use ficus_model::{Direction, LabelId, VertexId};
use ficus_storage::HalfEdgeCursor;

use crate::budget::Held;
use crate::context::QueryContext;
use crate::elements::FETCH_MAX;
use crate::operators::neighbour_list::NeighbourList;

/// An end with no more neighbours than this is gathered as soon as they are counted.
const FEW: u64 = 16;

/// Neighbours of others that are looked at before those of an end are counted: it may be another end with the next question.
const UNCOUNTED_MAX: u64 = 16;

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
    /// Nothing, but how many neighbours of others have been looked at.
    Uncounted { looked: u64 },
    /// So many, which are not gathered before as many others have been looked at, if ever.
    Many { degree: u64, looked: u64 },
    /// All of them, which lie beside it.
    Few,
    /// All of them.
    List(NeighbourList),
}

/// Counts edges to a vertex.
#[derive(Debug, Default)]
pub struct EdgesBack {
    end: Option<(VertexId, Neighbours)>,
    /// The neighbours of an end with few; kept from one end to the next for its room.
    few: Vec<VertexId>,
    held: Held,
}

/// What a question came to.
pub struct Counted {
    /// Edges that lead to the end; `None` if there are too many to look at, and these have to be sought from the end that has fewer.
    pub edges: Option<u64>,
    /// Half-edges that were looked at.
    pub looked: usize,
}

impl Counted {
    fn of(edges: u64, looked: usize) -> Counted {
        Counted { edges: Some(edges), looked }
    }
}

/// How often a vertex is among neighbours.
fn count(neighbours: &[VertexId], vertex: VertexId) -> u64 {
    neighbours.iter().filter(|neighbour| **neighbour == vertex).count() as u64
}

impl EdgesBack {
    /// How many edges lead from `vertex` to `end` that a hop in this direction, with these labels, goes over. `fetched` is left in any state. All
    /// questions have to be for the same direction and labels.
    pub fn count(
        &mut self,
        (vertex, direction, labels): (VertexId, Direction, &[LabelId]),
        end: VertexId,
        context: &QueryContext,
        fetched: &mut Vec<VertexId>,
    ) -> Counted {
        if self.end.as_ref().is_none_or(|(known, _)| *known != end) {
            self.held.give_back();
            self.end = Some((end, Neighbours::Uncounted { looked: 0 }));
        }
        let (degree, others) = match &self.end {
            Some((_, Neighbours::Few)) => return Counted::of(count(&self.few, vertex), 1),
            Some((_, Neighbours::List(list))) => return Counted::of(list.count(vertex), 1),
            Some((_, Neighbours::Many { degree, looked })) => (Some(*degree), *looked),
            Some((_, Neighbours::Uncounted { looked })) => (None, *looked),
            None => (None, 0),
        };
        let transaction = &context.transaction;
        let back = direction.reversed();
        let read = |(from, direction): (VertexId, Direction), max: usize, fetched: &mut Vec<VertexId>| {
            fetched.clear();
            transaction.copy_neighbours(from, direction, labels, &mut HalfEdgeCursor::default(), max, fetched)
        };
        let mut more = read((vertex, direction), FIRST, fetched);
        let (mut edges, mut looked) = (count(fetched, end), 1 + fetched.len());
        let is_uncounted = !more && others + looked as u64 <= UNCOUNTED_MAX;
        if degree.is_none() && is_uncounted {
            self.end = Some((end, Neighbours::Uncounted { looked: others + looked as u64 }));
            return Counted::of(edges, looked);
        }
        let degree = degree.unwrap_or_else(|| transaction.degree(end, back, labels));
        if more && degree <= SCAN_MAX {
            more = read((end, back), SCAN_MAX as usize, fetched);
            (edges, looked) = (count(fetched, vertex), looked + fetched.len());
        } else if more {
            more = read((vertex, direction), FETCH_MAX, fetched);
            (edges, looked) = (count(fetched, end), looked + fetched.len());
        }
        let others = others + looked as u64;
        if degree <= FEW {
            read((end, back), FETCH_MAX, &mut self.few);
            self.end = Some((end, Neighbours::Few));
        } else if degree <= LIST_MAX && others >= LOOKS_PER_NEIGHBOUR * degree {
            looked += self.gather(end, back, labels, context, fetched);
        } else {
            self.end = Some((end, Neighbours::Many { degree, looked: others }));
        }
        Counted { edges: (!more).then_some(edges), looked }
    }

    /// Forgets the end and gives back what its neighbours take.
    pub fn forget(&mut self) {
        self.end = None;
        self.held.give_back();
    }

    /// Gathers the neighbours of the end, if the query has memory for them; how many there are.
    fn gather(
        &mut self,
        end: VertexId,
        direction: Direction,
        labels: &[LabelId],
        context: &QueryContext,
        fetched: &mut Vec<VertexId>,
    ) -> usize {
        fetched.clear();
        let (mut cursor, transaction) = (HalfEdgeCursor::default(), &context.transaction);
        while transaction.copy_neighbours(end, direction, labels, &mut cursor, FETCH_MAX, fetched) {}
        let list = NeighbourList::new(fetched);
        let neighbours = match self.held.add(&context.memory, list.bytes()) {
            Ok(()) => Neighbours::List(list),
            Err(_) => {
                self.held.give_back();
                Neighbours::Many { degree: u64::MAX, looked: 0 }
            }
        };
        self.end = Some((end, neighbours));
        fetched.len()
    }
}
