//! Tests made from their end: the vertices for which a sub-query finds something, all at once.
//!
//! `where(out('hasTag').has('name', 'Chile'))` asked of a million messages walks a million times to a few tags. From the tag it is one
//! walk: all that `in('hasTag')` leads to is the set of messages that pass, and asking it is one look-up. Which way is shorter nobody
//! knows, so the walk back is paid for by the walks forward: it may have looked at [`BACK_PER_FORWARD`] times the elements that they
//! have. It goes on where it stood when it has credit again, so nothing is looked at twice, and it does not set out over the edges of a few vertices
//! before their number, which is known beforehand, is covered. A walk back in the shape of a vertex with a million edges costs nothing that way, and
//! one that pays is made after a part of what it saves.
//!
//! A run begins with as much credit as the way back had when it arrived in one before, of the same plan or in each of the last of its kind (see
//! [`Experience`]): so it sets out at once.
//!
//! All instances of a test share one way, those on other executors too: what one of them has looked at pays for it, and none goes it twice.
//! Whoever comes to it while another one is on it takes a part; only while there is none left do they ask forward.
//!
//! Only chains of hops between vertices are turned round, with conditions at each; at their end there has to be a text to be
//! found in a short column, or a set of vertices that the query gathered.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ficus_model::{Direction, LabelId, Value, VertexId};
use ficus_storage::HalfEdgeCursor;

use super::verdicts::{Dependence, dependence};
use super::{Probe, Step};
use crate::budget::Held;
use crate::context::QueryContext;
use crate::elements::{FETCH_MAX, KeyRef, LabelSet, PREFETCHED};
use crate::experience::Experience;
use crate::logical::{Name, Reach, WherePredicate};
use crate::operators::has::Conditions;
use crate::vertex_set::VertexSet;

/// Elements that are looked at forward before the way back is thought of: about 200 microseconds.
const FIRST_LOOKS: usize = 1 << 11;

/// Looks backward for each forward: those are at runs of neighbours and columns, these at one vertex after the other.
const BACK_PER_FORWARD: usize = 2;

/// Elements that are looked at backward in one go, less than a millisecond.
const GO_LOOKS: usize = 1 << 15;

/// And in one part.
const PART_LOOKS: usize = 1 << 11;

/// Vertices whose edges one part goes over, at most.
const PART_STARTS: usize = 1 << 8;

/// What has to be paid for before it goes on in the midst of a hop.
const PAID_AHEAD: usize = 1 << 12;

/// Values of a column that are looked at for a text.
const COLUMN_MAX: usize = 1 << 17;

/// Values of a column that take as long as one look: those lie in a row, elements lie anywhere.
const VALUES_PER_LOOK: usize = 8;

/// Elements that are looked at backward at all.
const LOOKS_MAX: usize = 1 << 21;

/// Vertices of which all edges are counted before any is looked at.
const COUNTED_MAX: usize = 64;

/// Looks after which an instance sees what others have come to know.
const SEEN_EVERY: usize = FIRST_LOOKS;

/// And after which it does while others are about to arrive.
const SEEN_EVERY_ON_THE_WAY: usize = 1 << 7;

/// A test from its end, as one instance of it sees that.
pub(super) struct Backward {
    test: Arc<Turnable>,
    /// The way that it shares with others of its query, once it has asked for it, and its hops.
    way: Option<(Arc<Way>, Vec<Back>)>,
    /// The set, and the version of the side effects that it was made from.
    set: Option<(Arc<VertexSet>, u64)>,
    /// Elements looked at forward that the way does not know of.
    looks: usize,
    /// With how many of them it looks at the way again.
    awaits: usize,
}

/// A test that can be made from its end.
struct Turnable {
    /// In the order of the walk, each reversed; the way back takes the last one first.
    hops: Vec<Back>,
    /// What the vertices at the end have to fulfil.
    last: Option<Conditions>,
    end: End,
    dependence: Dependence,
    /// With how many looks forward the way back has arrived.
    earlier: Arc<Experience>,
}

/// The ways back of a query, by the tests that they are of.
#[derive(Default)]
pub struct Ways(Mutex<Vec<Arc<Way>>>);

impl Ways {
    /// The way of a test.
    fn of(&self, test: &Arc<Turnable>) -> Arc<Way> {
        // A panic cannot come between.
        let mut ways = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = ways.iter().find(|way| Arc::ptr_eq(&way.test, test)) {
            return known.clone();
        }
        let state = Mutex::new(State::with_credit(test.earlier.of_next_run()));
        let way = Arc::new(Way { test: test.clone(), state });
        ways.push(way.clone());
        way
    }
}

/// The way back of a test.
struct Way {
    test: Arc<Turnable>,
    /// Held for single moves: what takes time is done without it.
    state: Mutex<State>,
}

impl Way {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Parts of somebody who panicked are never brought back; the others go on forward.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Way {
    /// The run is over.
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if state.set.is_none() {
            self.test.earlier.learn(0);
        }
    }
}

/// How far it has come.
struct State {
    set: Option<(Arc<VertexSet>, u64)>,
    /// Elements looked at forward, and backward, since the last set was outdated.
    forward: usize,
    back: usize,
    /// Of those forward, how many nobody has made.
    credit: usize,
    /// Looks forward after which the way back goes on; as many as can be if never.
    awaits: usize,
    trip: Option<Trip>,
    /// How many have set out.
    trips: u64,
}

/// A way back that has not arrived. Executors that come to it take parts of it.
struct Trip {
    /// Which of those of its way.
    number: u64,
    /// The version of what it depends on.
    version: u64,
    /// How many are still to be gone, with the one under way, which is the last of them in the order of the walk.
    hops: usize,
    /// Where that begins, each vertex once.
    level: Arc<Vec<VertexId>>,
    /// Whether the edges that it goes over are paid for, or too many to be counted.
    is_counted: bool,
    /// What of the level nobody has walked: places, and where the edges of the first of them go on.
    open: Vec<(Range<usize>, HalfEdgeCursor)>,
    /// Parts that somebody has taken, and not brought back.
    under_way: usize,
    /// Where it has led, without those that fail the conditions; some more than once.
    reached: Vec<VertexId>,
    held: Held,
}

/// What one executor does of a trip.
struct Part {
    trip: u64,
    /// Whose place in the order of the walk is this.
    hop: usize,
    work: Work,
}

enum Work {
    /// To go over the edges of some vertices of a level, and to see what of that fulfils the conditions.
    Walk { level: Arc<Vec<VertexId>>, share: Range<usize>, cursor: HalfEdgeCursor },
    /// Only that.
    Keep(Walk),
    /// To take each vertex once, when a hop is done.
    Gather { reached: Vec<VertexId>, is_last: bool },
}

/// Where edges have led, and how many looks that took.
#[derive(Default)]
struct Walk {
    reached: Vec<VertexId>,
    looks: usize,
}

/// What came of a part.
struct Done {
    trip: u64,
    looks: usize,
    /// None if there is no room, or if a condition cannot be tested. Who asks forward will see how.
    result: Option<Found>,
}

enum Found {
    /// Vertices of the next level, and what of the share is left.
    Reached {
        reached: Vec<VertexId>,
        rest: Option<(Range<usize>, HalfEdgeCursor)>,
    },
    Level(Vec<VertexId>),
    Set(VertexSet),
}

/// A hop backward, and what the vertices have to fulfil that it leads to.
#[derive(Clone)]
struct Back {
    direction: Direction,
    labels: LabelSet,
    filter: Option<Conditions>,
}

#[derive(Clone)]
enum End {
    /// Vertices with a text under a key.
    Text(KeyRef, Name),
    /// Vertices that a side effect holds.
    Members(Name),
}

impl Backward {
    /// The test from its end, if it can be made from there. To be called before the probe is made to remember.
    pub(super) fn of(probe: &Probe) -> Option<Backward> {
        let [only] = probe.segments.as_slice() else { return None };
        let dependence = dependence(&only.steps)?;
        let mut hops: Vec<Back> = Vec::new();
        // Conditions on the vertices where the walk is.
        let mut here: Option<Conditions> = None;
        let mut members = None;
        for step in &only.steps {
            match step {
                // Nothing follows a test against a side effect.
                _ if members.is_some() => return None,
                Step::Hop { direction, labels, reach: Reach::Vertex, edges: None, filter, .. } => {
                    hops.push(Back { direction: direction.reversed(), labels: labels.clone(), filter: here.take() });
                    here = filter.clone();
                }
                Step::Has(conditions) if here.is_none() => here = Some(conditions.clone()),
                Step::Compare(WherePredicate::Within(labels)) => match labels.as_slice() {
                    [label] => members = Some(label.clone()),
                    _ => return None,
                },
                _ => return None,
            }
        }
        if hops.is_empty() {
            return None;
        }
        let end = match members {
            Some(label) => End::Members(label),
            None => {
                let (key, text) = here.as_ref()?.text_of_all()?;
                End::Text(key.clone(), text.clone())
            }
        };
        let test = Arc::new(Turnable { hops, last: here, end, dependence, earlier: Arc::default() });
        Some(Backward { test, way: None, set: None, looks: 0, awaits: 0 })
    }

    /// With how many looks forward the way back has arrived in earlier runs.
    pub(super) fn experience(&self) -> &Arc<Experience> {
        &self.test.earlier
    }

    /// The vertices that pass, if they are known and what they depend on is as it was.
    #[inline]
    pub(super) fn passing(&self, context: &QueryContext) -> Option<&VertexSet> {
        let (set, version) = self.set.as_ref()?;
        (self.test.dependence.version(context) == Some(*version)).then_some(&**set)
    }

    /// Whether the set depends on nothing but the snapshot.
    pub(super) fn is_of_snapshot(&self) -> bool {
        self.test.dependence.keys.is_empty()
    }

    /// The set, once it is known, if it depends on nothing but the snapshot.
    pub(super) fn set(&self) -> Option<&Arc<VertexSet>> {
        self.set.as_ref().filter(|_| self.is_of_snapshot()).map(|(set, _)| set)
    }

    /// Takes note of elements that were looked at forward, and goes the way back if that is paid for. Returns the looks that took.
    #[inline]
    pub(super) fn spent(&mut self, looks: usize, context: &QueryContext) -> usize {
        self.looks = self.looks.saturating_add(looks);
        if self.looks < self.awaits { 0 } else { self.go_on(context) }
    }

    #[cold]
    fn go_on(&mut self, context: &QueryContext) -> usize {
        let (way, hops) = self.way.get_or_insert_with(|| (context.ways.of(&self.test), self.test.hops.clone()));
        let mut looks = 0;
        let mut state = way.lock();
        state.forward = state.forward.saturating_add(std::mem::take(&mut self.looks));
        state.arrive(&self.test, context);
        while let Some(part) = state.next(hops, GO_LOOKS.saturating_sub(looks), context) {
            drop(state);
            let done = part.work(hops, context);
            looks += done.looks;
            state = way.lock();
            state.take(done, &self.test, context);
        }
        self.set.clone_from(&state.set);
        self.awaits = match state.awaits {
            _ if state.trip.as_ref().is_some_and(|trip| trip.under_way > 0) => SEEN_EVERY_ON_THE_WAY,
            usize::MAX => usize::MAX,
            awaits => awaits.saturating_sub(state.forward).clamp(1, SEEN_EVERY),
        };
        looks
    }
}

/// A clone belongs to another instance, which goes the same way.
impl Clone for Backward {
    fn clone(&self) -> Backward {
        Backward { test: self.test.clone(), way: None, set: None, looks: 0, awaits: 0 }
    }
}

impl State {
    fn with_credit(credit: usize) -> State {
        State { set: None, forward: credit, back: 0, credit, awaits: FIRST_LOOKS, trip: None, trips: 0 }
    }

    /// Sets out if that is paid for, unless somebody has.
    fn arrive(&mut self, test: &Turnable, context: &QueryContext) {
        if self.awaits == usize::MAX {
            return;
        }
        let Some(version) = test.dependence.version(context) else {
            self.trip = None;
            self.awaits = self.forward.saturating_mul(2).max(FIRST_LOOKS);
            return;
        };
        match &self.set {
            // Somebody asked before it was there, or with side effects that have changed meanwhile.
            Some((_, of)) if *of >= version => {
                self.awaits = self.forward.saturating_add(SEEN_EVERY);
                return;
            }
            Some(_) => {
                // It is outdated: a new one has to be worth it again.
                *self = State { trips: self.trips, ..State::with_credit(0) };
                return;
            }
            None => {}
        }
        self.trip.take_if(|trip| trip.version != version);
        if self.trip.is_some() || self.forward < self.awaits {
            return;
        }
        if !context.computed.is_empty() {
            return self.give_up();
        }
        // As long as nobody knows of what the set would be.
        self.awaits = self.forward.saturating_mul(2);
        self.trips += 1;
        self.trip = Trip::begin(self.trips, test, version, self.paid(), context);
    }

    /// Looks backward that are paid for.
    fn paid(&self) -> usize {
        (self.forward * BACK_PER_FORWARD).saturating_sub(self.back)
    }

    /// No more trips.
    fn give_up(&mut self) {
        (self.trip, self.awaits) = (None, usize::MAX);
    }

    /// A part of the trip for whoever asks, if there is one that nobody has and that is paid for: of no more than so many looks, as far as that can be told.
    fn next(&mut self, hops: &mut [Back], allowed: usize, context: &QueryContext) -> Option<Part> {
        let paid = self.paid();
        let (forward, back) = (self.forward, self.back);
        let trip = self.trip.as_mut()?;
        if back > LOOKS_MAX {
            self.give_up();
            return None;
        }
        let hop = &mut hops[trip.hops - 1];
        let labels = hop.labels.ids(context);
        if labels.is_none() {
            // There is no such edge.
            trip.open.clear();
        }
        if trip.is_done() {
            let reached = std::mem::take(&mut trip.reached);
            return Some(trip.part(Work::Gather { reached, is_last: trip.hops == 1 }));
        }
        let labels = labels?;
        if !trip.is_counted && trip.level.len() <= COUNTED_MAX {
            let degree = |vertex: &VertexId| context.transaction.degree(*vertex, hop.direction, labels);
            let edges = usize::try_from(trip.level.iter().map(degree).sum::<u64>()).unwrap_or(usize::MAX);
            let all = back.saturating_add(edges);
            if all > LOOKS_MAX {
                self.give_up();
                return None;
            }
            if all > forward * BACK_PER_FORWARD {
                self.awaits = all.div_ceil(BACK_PER_FORWARD);
                return None;
            }
        }
        trip.is_counted = true;
        let looks = allowed.min(paid);
        // Until it is worth setting out again.
        self.awaits = forward.max((back + PAID_AHEAD).div_ceil(BACK_PER_FORWARD));
        if looks == 0 {
            return None;
        }
        let (range, mut cursor) = trip.open.pop()?;
        let walk = if trip.level.len() <= COUNTED_MAX {
            // Whoever comes meanwhile waits for what is behind, which is there at once.
            let mut walk = Walk::default();
            let rest = walk.over(&trip.level, range, &mut cursor, (hop.direction, labels), context);
            trip.open.extend(rest.map(|rest| (rest, cursor)));
            Work::Keep(walk)
        } else {
            let share = range.start..range.end.min(range.start + PART_STARTS);
            if share.end < range.end {
                trip.open.push((share.end..range.end, HalfEdgeCursor::default()));
            }
            Work::Walk { level: trip.level.clone(), share, cursor }
        };
        Some(trip.part(walk))
    }

    /// Takes what came of a part.
    fn take(&mut self, done: Done, test: &Turnable, context: &QueryContext) {
        self.back += done.looks;
        // It may have been given up meanwhile, or be another.
        let Some(trip) = self.trip.as_mut().filter(|trip| trip.number == done.trip) else { return };
        trip.under_way -= 1;
        match done.result {
            Some(Found::Reached { reached, rest }) => {
                trip.open.extend(rest);
                if trip.add(reached, context).is_none() {
                    self.give_up();
                }
            }
            Some(Found::Level(level)) => trip.go_to(level),
            Some(Found::Set(set)) => {
                self.set = Some((Arc::new(set), trip.version));
                self.trip = None;
                // Now, and not when the run is over: the next one may begin before all of this one is freed.
                let needed = self.back.div_ceil(BACK_PER_FORWARD);
                if self.credit == 0 || needed > self.credit {
                    test.earlier.learn(self.forward);
                }
            }
            None => self.give_up(),
        }
    }
}

impl Trip {
    /// The end of the walk, which is the beginning of the way back; `None` if finding it takes more looks than `limit`, which are paid for.
    fn begin(number: u64, test: &Turnable, version: u64, limit: usize, context: &QueryContext) -> Option<Trip> {
        let mut level = match test.end.clone() {
            End::Members(label) => context.side_effects.vertices(&label, limit.min(COLUMN_MAX))?,
            End::Text(mut key, text) => match key.id(context) {
                Some(key) => {
                    let values = limit.saturating_mul(VALUES_PER_LOOK).min(COLUMN_MAX);
                    context.transaction.vertices_with_text(key, &text, values)?
                }
                None => Vec::new(),
            },
        };
        keep(&mut level, test.last.clone().as_mut(), context)?;
        let mut trip = Trip {
            number,
            version,
            hops: test.hops.len() + 1,
            level: Arc::default(),
            is_counted: false,
            open: Vec::new(),
            under_way: 0,
            reached: Vec::new(),
            held: Held::default(),
        };
        trip.go_to(level);
        Some(trip)
    }

    /// Goes on with the next hop, from these.
    fn go_to(&mut self, level: Vec<VertexId>) {
        (self.hops, self.is_counted) = (self.hops - 1, false);
        self.open.push((0..level.len(), HalfEdgeCursor::default()));
        self.level = Arc::new(level);
    }

    /// Whether all has been walked that the hop begins with, and nobody has yet to say where that led.
    fn is_done(&self) -> bool {
        self.open.is_empty() && self.under_way == 0
    }

    /// A part, which is under way from now on.
    fn part(&mut self, work: Work) -> Part {
        self.under_way += 1;
        Part { trip: self.number, hop: self.hops - 1, work }
    }

    /// Adds where a part has led; `None` if there is no room.
    fn add(&mut self, reached: Vec<VertexId>, context: &QueryContext) -> Option<()> {
        let count = self.reached.len() + reached.len();
        self.held.make_room(&context.memory, count, self.reached.capacity(), size_of::<VertexId>()).ok()?;
        self.reached.extend(reached);
        Some(())
    }
}

impl Part {
    /// Does it. Nobody is kept from the other parts meanwhile.
    fn work(self, hops: &mut [Back], context: &QueryContext) -> Done {
        let Part { trip, hop, work } = self;
        let hop = &mut hops[hop];
        let mut rest = None;
        let walk = match work {
            Work::Keep(walk) => walk,
            Work::Walk { level, share, mut cursor } => {
                let mut walk = Walk::default();
                if let Some(labels) = hop.labels.ids(context) {
                    let left = walk.over(&level, share, &mut cursor, (hop.direction, labels), context);
                    rest = left.map(|left| (left, cursor));
                }
                walk
            }
            Work::Gather { reached, is_last } => {
                let found = VertexSet::of(reached, &context.memory).ok().map(|set| match is_last {
                    true => Found::Set(set),
                    false => Found::Level(set.iter().collect()),
                });
                return Done { trip, looks: 0, result: found };
            }
        };
        let Walk { mut reached, looks } = walk;
        let kept = keep(&mut reached, hop.filter.as_mut(), context);
        Done { trip, looks, result: kept.map(|()| Found::Reached { reached, rest }) }
    }
}

impl Walk {
    /// Goes over the edges of some vertices, until it has looked at as many as a part may. Returns those that are left; of the first of them what is before the
    /// cursor is done.
    fn over(
        &mut self,
        level: &[VertexId],
        mut share: Range<usize>,
        cursor: &mut HalfEdgeCursor,
        (direction, labels): (Direction, &[LabelId]),
        context: &QueryContext,
    ) -> Option<Range<usize>> {
        let mut prefetched = share.start;
        while share.start < share.end {
            if self.looks >= PART_LOOKS {
                return Some(share);
            }
            if share.start >= prefetched {
                prefetched = share.start + PREFETCHED;
                let next = level[share.clone()].iter().take(PREFETCHED).copied();
                context.transaction.prefetch_half_edges(next, direction);
            }
            let (before, vertex) = (self.reached.len(), level[share.start]);
            let more =
                context.transaction.copy_neighbours(vertex, direction, labels, cursor, FETCH_MAX, &mut self.reached);
            self.looks += self.reached.len() - before + 1;
            if !more {
                (share.start, *cursor) = (share.start + 1, HalfEdgeCursor::default());
            }
        }
        None
    }
}

/// Drops vertices that fail the conditions; `None` if a condition cannot be tested.
fn keep(vertices: &mut Vec<VertexId>, conditions: Option<&mut Conditions>, context: &QueryContext) -> Option<()> {
    let Some(conditions) = conditions else { return Some(()) };
    if conditions.prefilter(context, vertices) {
        return Some(());
    }
    let mut is_sound = true;
    vertices.retain(|vertex| {
        let passes = conditions.test(&Value::Vertex(*vertex), context);
        is_sound &= passes.is_ok();
        passes.unwrap_or(false)
    });
    is_sound.then_some(())
}
