//! A hop from its other side: of all that a hop leads to only a few vertices pass, and these are known; so it is shorter to ask them
//! where they are reached from, once, than to look at everything that is reached.
//!
//! `V(friends).in('hasCreator').where(out('hasTag').has('name', 'Chile'))` looks at every message of every friend. When the messages
//! with the tag are known (see [`crate::probe`]), their creators are looked up instead, and a friend's messages among them are one look-up.

use std::ops::Range;

use ficus_model::{Direction, EdgeId, LabelId, VertexId};
use ficus_storage::HalfEdgeCursor;
use hashbrown::HashMap;

use crate::bound::Passing;
use crate::budget::Held;
use crate::context::QueryContext;
use crate::elements::{FETCH_MAX, PREFETCHED};
use crate::operators::has::Conditions;

/// Neighbours that are looked at, for each vertex of the set, before the hop is turned round. To ask one where it is reached from costs
/// about as much as looking at this many.
const LOOKS_PER_MEMBER: usize = 16;

/// Half-edges of a vertex of the set that are read at most, on average.
const HALF_EDGES_PER_MEMBER: usize = 4;

/// Bytes of one vertex and of one start, with a share of what is free.
const ENTRY_BYTES: usize = 2 * size_of::<(VertexId, Range<u32>)>() + size_of::<(VertexId, EdgeId, VertexId)>();

/// Neighbours after which a hop tells the others how many it has looked at.
const TOLD_EVERY: usize = 1 << 10;

/// What a hop looks at that it need not look at once it is turned round. All executors that are at the same hop add theirs.
#[derive(Debug, Default)]
pub struct Looks {
    /// Neighbours, and the inputs that they are of, of which the others do not know.
    untold: usize,
    looked: usize,
    inputs: usize,
}

impl Looks {
    /// Takes note of neighbours that were fetched of one input more, or again of the same one. Whether to turn the hop round now: what was looked at,
    /// and what is to be expected of the inputs that wait, is worth it, or was in a run before.
    #[inline]
    pub fn are_worth(&mut self, fetched: usize, is_same: bool, waiting: usize, passing: &Passing) -> bool {
        if passing.turns_at_once() {
            return passing.get().is_some();
        }
        self.untold += fetched;
        self.looked += fetched;
        self.inputs += usize::from(!is_same);
        if self.untold < TOLD_EVERY {
            return false;
        }
        let all = passing.looked(std::mem::take(&mut self.untold));
        let to_come = self.looked / self.inputs.max(1) * waiting;
        Turned::is_worth(all.saturating_add(to_come), passing)
    }
}

/// A hop to vertices that pass a filter, by where it begins.
#[derive(Debug)]
pub struct Turned {
    /// Where the ends of a start are.
    places: HashMap<VertexId, Range<u32>>,
    /// Ends, those of one start in the order of their edges.
    ends: Vec<VertexId>,
    _held: Held,
}

impl Turned {
    /// Appends what the hop leads to from a vertex, in the order of the edges.
    #[inline]
    pub fn ends_of(&self, start: VertexId, out: &mut Vec<VertexId>) {
        if let Some(place) = self.places.get(&start) {
            out.extend_from_slice(&self.ends[place.start as usize..place.end as usize]);
        }
    }

    /// Whether it is time to turn the hop round, if so many neighbours were looked at, or will be, though only those of a set pass.
    #[inline]
    fn is_worth(looks: usize, passing: &Passing) -> bool {
        passing.get().is_some_and(|set| looks >= set.len().max(FETCH_MAX).saturating_mul(LOOKS_PER_MEMBER))
    }

    /// The hop from its other side: asks every vertex that passes the filter and fulfils the conditions, as far as columns tell. `None`
    /// if these are reached over many edges, or if there is no room.
    pub fn of(
        (direction, label): (Direction, LabelId),
        passing: &Passing,
        conditions: &mut Conditions,
        context: &QueryContext,
    ) -> Option<Turned> {
        // Both ways have an order of their own.
        if direction == Direction::Both {
            return None;
        }
        let back = direction.reversed();
        let mut held = Held::default();
        let set = passing.get()?;
        held.add(&context.memory, set.len().saturating_mul(ENTRY_BYTES)).ok()?;
        let mut ends: Vec<VertexId> = set.iter().collect();
        // The hop looks at them again: what is left out here, it need not.
        let _ = conditions.prefilter(context, &mut ends);
        let mut found: Vec<(VertexId, EdgeId, VertexId)> = Vec::with_capacity(ends.len());
        let mut left = ends.len().saturating_mul(HALF_EDGES_PER_MEMBER);
        let mut fetched = Vec::new();
        for (place, &end) in ends.iter().enumerate() {
            if place % PREFETCHED == 0 {
                context.transaction.prefetch_half_edges(ends[place..].iter().take(PREFETCHED).copied(), back);
            }
            let mut cursor = HalfEdgeCursor::default();
            loop {
                fetched.clear();
                let more = context.transaction.half_edges(end, back, &[label], &mut cursor, FETCH_MAX, &mut fetched);
                left = left.checked_sub(fetched.len())?;
                found.extend(fetched.iter().map(|half_edge| (half_edge.neighbour, half_edge.edge, end)));
                if !more {
                    break;
                }
            }
        }
        // What is more than one edge for each vertex.
        held.add(&context.memory, found.len().saturating_sub(set.len()) * ENTRY_BYTES).ok()?;
        found.sort_unstable();
        let mut places = HashMap::new();
        let mut start = 0;
        for same in found.chunk_by(|a, b| a.0 == b.0) {
            let end = start + same.len() as u32;
            places.insert(same[0].0, start..end);
            start = end;
        }
        Some(Turned { places, ends: found.into_iter().map(|(_, _, end)| end).collect(), _held: held })
    }
}
