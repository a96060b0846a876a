//! Tests made from their end: the vertices for which a sub-query finds something, all at once.
//!
//! `where(out('hasTag').has('name', 'Chile'))` asked of a million messages walks a million times to a few tags. From the tag it is one
//! walk: all that `in('hasTag')` leads to is the set of messages that pass, and asking it is one look-up. Which way is shorter nobody
//! knows, so the walk back is paid for by the walks forward: it may have looked at [`BACK_PER_FORWARD`] times the elements that they
//! have. It goes on where it stood when it has credit again, so nothing is looked at twice, and it does not set out over the edges of a few vertices
//! before their number, which is known beforehand, is covered. A walk back in the shape of a vertex with a million edges costs nothing that way, and
//! one that pays is made after a part of what it saves.
//!
//! Only chains of hops between vertices are turned round, with conditions at each; at their end there has to be a text to be
//! found in a short column, or a set of vertices that the query gathered.

use std::sync::Arc;

use ficus_model::{Direction, LabelId, Value, VertexId};
use ficus_storage::HalfEdgeCursor;

use super::verdicts::{Dependence, dependence};
use super::vertex_set::VertexSet;
use super::{Probe, Step};
use crate::budget::Held;
use crate::context::QueryContext;
use crate::elements::{FETCH_MAX, KeyRef, LabelSet, PREFETCHED};
use crate::logical::{Name, Reach, WherePredicate};
use crate::operators::has::Conditions;

/// Elements that are looked at forward before the way back is thought of.
const FIRST_LOOKS: usize = 1 << 13;

/// Looks backward for each forward: those are at runs of neighbours and columns, these at one vertex after the other.
const BACK_PER_FORWARD: usize = 2;

/// Elements that are looked at backward in one go, less than a millisecond.
const GO_LOOKS: usize = 1 << 15;

/// What has to be paid for before it goes on in the midst of a hop.
const PAID_AHEAD: usize = 1 << 12;

/// Values of a column that are looked at for a text.
const COLUMN_MAX: usize = 1 << 17;

/// Elements that are looked at backward at all.
const LOOKS_MAX: usize = 1 << 21;

/// Vertices of which all edges are counted before any is looked at.
const COUNTED_MAX: usize = 64;

/// A test from its end.
pub(super) struct Backward {
    /// From the end to the beginning.
    hops: Vec<Back>,
    /// What the vertices at the end have to fulfil.
    last: Option<Conditions>,
    end: End,
    dependence: Dependence,
    /// The set, and the version of the side effects that it was made from.
    set: Option<(Arc<VertexSet>, u64)>,
    /// Elements looked at forward, and backward, since the last set was outdated.
    forward: usize,
    back: usize,
    /// Looks forward after which the way back goes on.
    awaits: usize,
    trip: Option<Trip>,
}

/// A way back that has not arrived.
struct Trip {
    /// The version of what it depends on.
    version: u64,
    /// How many hops are done.
    hop: usize,
    /// Where the hop begins.
    level: Vec<VertexId>,
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
                Step::Hop { direction, labels, reach: Reach::Vertex, edges: None, filter } => {
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
        hops.reverse();
        let (forward, back, awaits) = (0, 0, FIRST_LOOKS);
        Some(Backward { hops, last: here, end, dependence, set: None, forward, back, awaits, trip: None })
    }

    /// The vertices that pass, if they are known and what they depend on is as it was.
    #[inline]
    pub(super) fn passing(&self, context: &QueryContext) -> Option<&VertexSet> {
        let (set, version) = self.set.as_ref()?;
        (self.dependence.version(context) == Some(*version)).then_some(&**set)
    }

    /// Whether the set depends on nothing but the snapshot.
    pub(super) fn is_of_snapshot(&self) -> bool {
        self.dependence.keys.is_empty()
    }

    /// The set, once it is known, if it depends on nothing but the snapshot.
    pub(super) fn set(&self) -> Option<&Arc<VertexSet>> {
        self.set.as_ref().filter(|_| self.is_of_snapshot()).map(|(set, _)| set)
    }

    /// Takes note of elements that were looked at forward, and goes the way back if that is paid for. Returns the looks that took.
    #[inline]
    pub(super) fn spent(&mut self, looks: usize, context: &QueryContext) -> usize {
        self.forward = self.forward.saturating_add(looks);
        if self.forward < self.awaits { 0 } else { self.go_on(context) }
    }

    #[cold]
    fn go_on(&mut self, context: &QueryContext) -> usize {
        // As long as nobody knows of what the set would be.
        self.awaits = self.forward.saturating_mul(2);
        let Some(version) = self.dependence.version(context) else { return 0 };
        match &self.set {
            // A batch asked before the set was there.
            Some((_, of)) if *of == version => return 0,
            Some(_) => {
                // It is outdated: a new one has to be worth it again.
                self.set = None;
                (self.forward, self.back, self.awaits) = (0, 0, FIRST_LOOKS);
                return 0;
            }
            None => {}
        }
        if !context.computed.is_empty() || self.back > LOOKS_MAX {
            self.give_up();
            return 0;
        }
        let credit = (self.forward * BACK_PER_FORWARD).saturating_sub(self.back);
        let trip = match self.trip.take().filter(|trip| trip.version == version) {
            Some(trip) => Some(trip),
            None => self.begin(version, credit.min(COLUMN_MAX), context),
        };
        let mut looks = Looks { made: 0, allowed: credit.min(GO_LOOKS) };
        if let Some(trip) = trip {
            self.advance(trip, &mut looks, context);
        }
        self.back += looks.made;
        looks.made
    }

    /// No more trips.
    fn give_up(&mut self) {
        (self.trip, self.awaits) = (None, usize::MAX);
    }

    /// The end of the walk, which is the beginning of the way back; `None` if finding it is not paid for yet.
    fn begin(&mut self, version: u64, limit: usize, context: &QueryContext) -> Option<Trip> {
        let mut level = match &mut self.end {
            End::Members(label) => context.side_effects.vertices(label, limit)?,
            End::Text(key, text) => match key.id(context) {
                Some(key) => context.transaction.vertices_with_text(key, text, limit)?,
                None => Vec::new(),
            },
        };
        keep(&mut level, self.last.as_mut(), context)?;
        let (cursor, reached, held) = (HalfEdgeCursor::default(), Vec::new(), Held::default());
        Some(Trip { version, hop: 0, level, place: 0, cursor, reached, held })
    }

    /// Goes on with a trip as far as there are looks left.
    fn advance(&mut self, mut trip: Trip, looks: &mut Looks, context: &QueryContext) {
        while let Some(hop) = self.hops.get_mut(trip.hop) {
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
                    self.trip = Some(trip);
                    return;
                }
            }
            match trip.go(hop, labels.as_deref(), looks, context) {
                Some(true) => {}
                Some(false) => {
                    // Until it is worth setting out again.
                    let due = self.back + looks.made + PAID_AHEAD;
                    self.awaits = self.forward.max(due.div_ceil(BACK_PER_FORWARD));
                    self.trip = Some(trip);
                    return;
                }
                None => return self.give_up(),
            }
        }
        match VertexSet::of(trip.level, &context.memory) {
            Some(set) => self.set = Some((Arc::new(set), trip.version)),
            None => self.give_up(),
        }
    }
}

/// A clone belongs to another instance, which sets out by itself.
impl Clone for Backward {
    fn clone(&self) -> Backward {
        Backward {
            hops: self.hops.clone(),
            last: self.last.clone(),
            end: self.end.clone(),
            dependence: self.dependence.clone(),
            set: self.set.clone(),
            forward: 0,
            back: 0,
            awaits: FIRST_LOOKS,
            trip: None,
        }
    }
}

impl Trip {
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
            return self.arrive(context);
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
        self.level = std::mem::take(&mut self.reached);
        self.arrive(context)
    }

    /// Goes from what was reached, each once.
    fn arrive(&mut self, context: &QueryContext) -> Option<bool> {
        let level = std::mem::take(&mut self.level);
        self.level = VertexSet::of(level, &context.memory)?.iter().collect();
        (self.hop, self.place, self.cursor) = (self.hop + 1, 0, HalfEdgeCursor::default());
        Some(true)
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
