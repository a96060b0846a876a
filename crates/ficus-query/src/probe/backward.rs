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
//! While one goes it the others ask forward.
//!
//! Only chains of hops between vertices are turned round, with conditions at each; at their end there has to be a text to be
//! found in a short column, or a set of vertices that the query gathered.

use std::sync::{Arc, Mutex, PoisonError};

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

/// A test from its end, as one instance of it sees that.
pub(super) struct Backward {
    test: Arc<Turnable>,
    /// The way that it shares with others of its query, once it has asked for it.
    way: Option<Arc<Way>>,
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
    state: Mutex<State>,
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
}

/// A way back that has not arrived.
struct Trip {
    /// The version of what it depends on.
    version: u64,
    /// What is still to be gone, the next one at the end.
    hops: Vec<Back>,
    /// Where the hop begins.
    level: Vec<VertexId>,
    /// There may be some more than once.
    repeats: bool,
    /// Those before this place are done, and of the one there what is before the cursor.
    place: usize,
    cursor: HalfEdgeCursor,
    /// Where it has led, without those that fail the conditions; some more than once.
    reached: Vec<VertexId>,
    held: Held,
}

/// Elements that were looked at, and may be, in one go.
struct Looks {
    made: usize,
    allowed: usize,
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
        let way = self.way.get_or_insert_with(|| context.ways.of(&self.test));
        let Ok(mut state) = way.state.try_lock() else {
            // Another executor goes it.
            self.awaits = self.looks.saturating_add(PAID_AHEAD);
            return 0;
        };
        state.forward = state.forward.saturating_add(std::mem::take(&mut self.looks));
        let looks = state.go_on(&self.test, context);
        self.set.clone_from(&state.set);
        self.awaits = match state.awaits {
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
        State { set: None, forward: credit, back: 0, credit, awaits: FIRST_LOOKS, trip: None }
    }

    /// Goes on if that is paid for. Returns the looks that took.
    fn go_on(&mut self, test: &Turnable, context: &QueryContext) -> usize {
        if self.awaits == usize::MAX {
            return 0;
        }
        let Some(version) = test.dependence.version(context) else {
            self.awaits = self.forward.saturating_mul(2).max(FIRST_LOOKS);
            return 0;
        };
        match &self.set {
            // Somebody asked before it was there, or with side effects that have changed meanwhile.
            Some((_, of)) if *of >= version => {
                self.awaits = self.forward.saturating_add(SEEN_EVERY);
                return 0;
            }
            Some(_) => {
                // It is outdated: a new one has to be worth it again.
                *self = State::with_credit(0);
                return 0;
            }
            None => {}
        }
        if self.forward < self.awaits {
            return 0;
        }
        // As long as nobody knows of what the set would be.
        self.awaits = self.forward.saturating_mul(2);
        if !context.computed.is_empty() || self.back > LOOKS_MAX {
            self.give_up();
            return 0;
        }
        let credit = (self.forward * BACK_PER_FORWARD).saturating_sub(self.back);
        let trip = match self.trip.take().filter(|trip| trip.version == version) {
            Some(trip) => Some(trip),
            None => Trip::begin(test, version, credit, context),
        };
        let mut looks = Looks { made: 0, allowed: credit.min(GO_LOOKS) };
        if let Some(trip) = trip {
            self.advance(trip, &mut looks, test, context);
        }
        self.back += looks.made;
        looks.made
    }

    /// No more trips.
    fn give_up(&mut self) {
        (self.trip, self.awaits) = (None, usize::MAX);
    }

    /// Goes on with a trip as far as there are looks left.
    fn advance(&mut self, mut trip: Trip, looks: &mut Looks, test: &Turnable, context: &QueryContext) {
        while let Some(mut hop) = trip.hops.pop() {
            if trip.repeats && trip.take_once(context).is_none() {
                return self.give_up();
            }
            let labels = hop.labels.ids(context).map(<[_]>::to_vec);
            let began = trip.place > 0 || trip.cursor != HalfEdgeCursor::default();
            if let (Some(labels), false) = (&labels, began)
                && trip.level.len() <= COUNTED_MAX
            {
                let degree = |vertex: &VertexId| context.transaction.degree(*vertex, hop.direction, labels);
                let edges = usize::try_from(trip.level.iter().map(degree).sum::<u64>()).unwrap_or(usize::MAX);
                let all = self.back.saturating_add(looks.made).saturating_add(edges);
                if all > LOOKS_MAX {
                    return self.give_up();
                }
                if all > self.forward * BACK_PER_FORWARD {
                    self.awaits = all.div_ceil(BACK_PER_FORWARD);
                    return self.rest(trip, hop);
                }
            }
            match trip.go(&mut hop, labels.as_deref(), looks, context) {
                Some(true) => {}
                Some(false) => {
                    // Until it is worth setting out again.
                    let due = self.back + looks.made + PAID_AHEAD;
                    self.awaits = self.forward.max(due.div_ceil(BACK_PER_FORWARD));
                    return self.rest(trip, hop);
                }
                None => return self.give_up(),
            }
        }
        match VertexSet::of(trip.level, &context.memory) {
            Ok(set) => {
                self.set = Some((Arc::new(set), trip.version));
                // Now, and not when the run is over: the next one may begin before all of this one is freed.
                let needed = (self.back + looks.made).div_ceil(BACK_PER_FORWARD);
                if self.credit == 0 || needed > self.credit {
                    test.earlier.learn(self.forward);
                }
            }
            Err(_) => self.give_up(),
        }
    }

    /// Keeps a trip that goes on with a hop another time.
    fn rest(&mut self, mut trip: Trip, hop: Back) {
        trip.hops.push(hop);
        self.trip = Some(trip);
    }
}

impl Trip {
    /// The end of the walk, which is the beginning of the way back; `None` if finding it takes more looks than `limit`, which are paid for.
    fn begin(test: &Turnable, version: u64, limit: usize, context: &QueryContext) -> Option<Trip> {
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
        let (cursor, reached, held) = (HalfEdgeCursor::default(), Vec::new(), Held::default());
        Some(Trip { version, hops: test.hops.clone(), level, repeats: false, place: 0, cursor, reached, held })
    }

    /// Goes on over a hop: whether it is done; `None` if that fails. Who asks forward will see how.
    fn go(
        &mut self,
        hop: &mut Back,
        labels: Option<&[LabelId]>,
        looks: &mut Looks,
        context: &QueryContext,
    ) -> Option<bool> {
        let begun = self.reached.len();
        let Some(labels) = labels else {
            // There is no such edge.
            self.level.clear();
            return Some(true);
        };
        let mut prefetched = self.place;
        while let Some(vertex) = self.level.get(self.place) {
            if looks.made >= looks.allowed {
                keep_behind(begun, &mut self.reached, hop.filter.as_mut(), context)?;
                return Some(false);
            }
            if self.place >= prefetched {
                prefetched = self.place + PREFETCHED;
                let next = self.level[self.place..].iter().take(PREFETCHED).copied();
                context.transaction.prefetch_half_edges(next, hop.direction);
            }
            let before = self.reached.len();
            self.held
                .make_room(&context.memory, before + FETCH_MAX, self.reached.capacity(), size_of::<VertexId>())
                .ok()?;
            let more = context.transaction.copy_neighbours(
                *vertex,
                hop.direction,
                labels,
                &mut self.cursor,
                FETCH_MAX,
                &mut self.reached,
            );
            looks.made += self.reached.len() - before + 1;
            if !more {
                (self.place, self.cursor) = (self.place + 1, HalfEdgeCursor::default());
            }
        }
        keep_behind(begun, &mut self.reached, hop.filter.as_mut(), context)?;
        (self.level, self.repeats) = (std::mem::take(&mut self.reached), true);
        (self.place, self.cursor) = (0, HalfEdgeCursor::default());
        Some(true)
    }

    /// Goes on from each vertex once; `None` if there is no room for that.
    fn take_once(&mut self, context: &QueryContext) -> Option<()> {
        let level = VertexSet::of(std::mem::take(&mut self.level), &context.memory).ok()?;
        self.level.reserve_exact(level.len());
        self.level.extend(level.iter());
        self.repeats = false;
        Some(())
    }
}

/// Drops vertices behind a place that fail the conditions; `None` if a condition cannot be tested.
fn keep_behind(
    place: usize,
    vertices: &mut Vec<VertexId>,
    conditions: Option<&mut Conditions>,
    context: &QueryContext,
) -> Option<()> {
    let mut behind = vertices.split_off(place);
    keep(&mut behind, conditions, context)?;
    vertices.append(&mut behind);
    Some(())
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
