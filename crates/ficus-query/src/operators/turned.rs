//! A hop from its other side: of all that a hop leads to only a few vertices pass, and these are known; so it is shorter to ask them
//! where they are reached from, once, than to look at everything that is reached.
//!
//! `V(friends).in('hasCreator').where(out('hasTag').has('name', 'Chile'))` looks at every message of every friend. When the messages
//! with the tag are known (see [`crate::probe`]), their creators are looked up instead, and a friend's messages among them are one look-up.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

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
const ENTRY_BYTES: usize = 2 * size_of::<(VertexId, Range<u32>)>() + size_of::<FoundBack>();

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

    /// Puts together what was found.
    fn of(found: Vec<FoundBack>, held: Held) -> Turned {
        // How many there are of each start, then where they are: starts are few, and sorting all takes longer.
        let mut places: HashMap<VertexId, Range<u32>> = HashMap::new();
        found.iter().for_each(|(start, ..)| places.entry(*start).or_insert(0..0).end += 1);
        let mut begin = 0;
        for place in places.values_mut() {
            let count = place.end;
            *place = begin..begin;
            begin += count;
        }
        let mut ends = vec![(EdgeId(0), VertexId(0)); found.len()];
        for (start, edge, end) in found {
            let place = places.get_mut(&start).expect("it was counted");
            ends[place.end as usize] = (edge, end);
            place.end += 1;
        }
        places.values().for_each(|place| ends[place.start as usize..place.end as usize].sort_unstable());
        Turned { places, ends: ends.into_iter().map(|(_, end)| end).collect(), _held: held }
    }
}

/// A hop that is being turned round: every vertex that passes the filter is asked where it is reached from. All executors that come to the hop meanwhile
/// take a share of them, instead of looking at what they need not.
#[derive(Debug)]
pub struct Turning {
    back: Direction,
    label: LabelId,
    /// Those that are asked: what passes the filter and fulfils the conditions, as far as columns tell.
    asked: Vec<VertexId>,
    /// The first that nobody has taken.
    next: AtomicUsize,
    /// Half-edges that may yet be read.
    left: AtomicUsize,
    /// Held for single moves.
    answers: Mutex<Answers>,
}

/// What those have said that were asked.
#[derive(Debug, Default)]
struct Answers {
    found: Vec<FoundBack>,
    /// How many have answered.
    count: usize,
    /// Nobody waits for more: they are put together, or it was given up.
    is_over: bool,
    held: Held,
}

/// How far it is with a hop that is turned round.
pub enum Progress {
    /// Somebody has yet to answer.
    UnderWay,
    /// All have; `None` if they are reached over many edges, or if there is no room.
    Over(Option<Turned>),
}

/// Vertices that are asked by one executor while others ask others: some hundred microseconds.
const SHARE: usize = 2 << 10;

/// So many times that in one go.
const SHARES_AT_ONCE: usize = 4;

/// From where a vertex is reached, over which edge, and who it is.
type FoundBack = (VertexId, EdgeId, VertexId);

impl Turning {
    /// Makes out who is to be asked; `None` if the hop cannot be turned round, or if there is no room.
    pub fn begin(
        (direction, label): (Direction, LabelId),
        passing: &Passing,
        conditions: &mut Conditions,
        context: &QueryContext,
    ) -> Option<Turning> {
        // Both ways have an order of their own.
        if direction == Direction::Both {
            return None;
        }
        let mut held = Held::default();
        let set = passing.get()?;
        held.add(&context.memory, set.len().saturating_mul(ENTRY_BYTES)).ok()?;
        let mut asked = Vec::with_capacity(set.len());
        asked.extend(set.iter());
        // The hop looks at them again: what is left out here, it need not.
        let _ = conditions.prefilter(context, &mut asked);
        let left = AtomicUsize::new(asked.len().saturating_mul(HALF_EDGES_PER_MEMBER));
        let answers = Mutex::new(Answers { held, ..Answers::default() });
        Some(Turning { back: direction.reversed(), label, asked, next: AtomicUsize::new(0), left, answers })
    }

    /// Asks some of those that nobody has asked, and puts the answers together if these are the last. How many it asked comes with it.
    pub fn go_on(&self, context: &QueryContext) -> (Progress, usize) {
        let mut asked = 0;
        while asked < SHARES_AT_ONCE * SHARE {
            let from = self.next.fetch_add(SHARE, Ordering::Relaxed).min(self.asked.len());
            let share = &self.asked[from..self.asked.len().min(from + SHARE)];
            asked += share.len();
            match self.answer(share.len(), self.ask(share, context), context) {
                Progress::UnderWay if !share.is_empty() => {}
                progress => return (progress, asked),
            }
        }
        (Progress::UnderWay, asked)
    }

    /// Adds the answers of so many; `None`: it is to be given up.
    fn answer(&self, count: usize, found: Option<Vec<FoundBack>>, context: &QueryContext) -> Progress {
        // A panic cannot come between.
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.is_over {
            return Progress::UnderWay;
        }
        answers.count += count;
        let is_given_up = found.is_none();
        answers.found.extend(found.into_iter().flatten());
        if !is_given_up && answers.count < self.asked.len() {
            return Progress::UnderWay;
        }
        let all = std::mem::replace(&mut *answers, Answers { is_over: true, ..Answers::default() });
        drop(answers);
        self.next.store(self.asked.len(), Ordering::Relaxed);
        let Answers { found, mut held, .. } = all;
        // What is more than one edge for each vertex.
        let more = found.len().saturating_sub(self.asked.len());
        let has_room = !is_given_up && held.add(&context.memory, more * ENTRY_BYTES).is_ok();
        Progress::Over(has_room.then(|| Turned::of(found, held)))
    }

    /// What some answer; `None` if that are more edges than it may be.
    fn ask(&self, share: &[VertexId], context: &QueryContext) -> Option<Vec<FoundBack>> {
        let mut found = Vec::with_capacity(share.len());
        let mut fetched = Vec::new();
        for (place, &end) in share.iter().enumerate() {
            if place % PREFETCHED == 0 {
                context.transaction.prefetch_half_edges(share[place..].iter().take(PREFETCHED).copied(), self.back);
            }
            let mut cursor = HalfEdgeCursor::default();
            loop {
                fetched.clear();
                let more =
                    context.transaction.half_edges(end, self.back, &[self.label], &mut cursor, FETCH_MAX, &mut fetched);
                let takes = |left: usize| left.checked_sub(fetched.len());
                self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, takes).ok()?;
                found.extend(fetched.iter().map(|half_edge| (half_edge.neighbour, half_edge.edge, end)));
                if !more {
                    break;
                }
            }
        }
        Some(found)
    }
}
