//! Tests made from their end: the vertices for which a sub-query finds something, all at once.
//!
//! `where(out('hasTag').has('name', 'Chile'))` asked of a million messages walks a million times to a few tags. From the tag it is one
//! walk: all that `in('hasTag')` leads to is the set of messages that pass, and asking it is one look-up. Which way is shorter shows
//! while the test runs: when walking forward has looked at [`FIRST_TRIAL`] elements, the way back is tried and may look at as many; if
//! it is longer than that, it is tried once more when eight times as much has been spent. So what is in vain is a part of what the
//! query does anyway.
//!
//! Only chains of hops between vertices are turned round, with conditions at each; at their end there has to be a text to be
//! found in a short column, or a set of vertices that the query gathered.

use std::sync::Arc;

use ficus_model::{Direction, Value, VertexId};
use ficus_storage::HalfEdgeCursor;
use hashbrown::HashSet;

use super::verdicts::{Dependence, dependence};
use super::vertex_set::VertexSet;
use super::{Probe, Step};
use crate::context::QueryContext;
use crate::elements::{FETCH_MAX, KeyRef, LabelSet};
use crate::logical::{Name, Reach, WherePredicate};
use crate::operators::has::Conditions;

/// Elements that are looked at forward before the way back is tried.
const FIRST_TRIAL: usize = 1 << 13;

/// Elements that the last trial may look at; some milliseconds.
const LAST_TRIAL: usize = 1 << 17;

/// How much more the next trial may look at.
const TRIAL_FACTOR: usize = 4;

/// A test from its end.
#[derive(Clone)]
pub(super) struct Backward {
    /// From the end to the beginning.
    hops: Vec<Back>,
    /// What the vertices at the end have to fulfil.
    last: Option<Conditions>,
    end: End,
    dependence: Dependence,
    /// The set, and the version of the side effects that it was made from.
    set: Option<(Arc<VertexSet>, u64)>,
    /// Elements looked at since the last trial.
    spent: usize,
    /// When the next trial is; none: no more.
    trial: Option<usize>,
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
        Some(Backward { hops, last: here, end, dependence, set: None, spent: 0, trial: Some(FIRST_TRIAL) })
    }

    /// The verdict on a vertex, if the set is known and what it depends on is as it was.
    #[inline]
    pub(super) fn verdict(&self, vertex: VertexId, context: &QueryContext) -> Option<bool> {
        let (set, version) = self.set.as_ref()?;
        (self.dependence.version(context) == Some(*version)).then(|| set.contains(vertex))
    }

    /// Whether the set depends on nothing but the snapshot.
    pub(super) fn is_of_snapshot(&self) -> bool {
        self.dependence.keys.is_empty()
    }

    /// The set, once it is known, if it depends on nothing but the snapshot.
    pub(super) fn set(&self) -> Option<&Arc<VertexSet>> {
        self.set.as_ref().filter(|_| self.is_of_snapshot()).map(|(set, _)| set)
    }

    /// Takes note of elements that were looked at forward, and goes the way back if it is time. Returns the looks that took.
    pub(super) fn spent(&mut self, looks: usize, context: &QueryContext) -> usize {
        self.spent += looks;
        let Some(trial) = self.trial.filter(|trial| self.spent >= *trial) else { return 0 };
        self.spent = 0;
        let Some(version) = self.dependence.version(context) else { return 0 };
        if !context.computed.is_empty() {
            self.trial = None;
            return 0;
        }
        let mut left = trial;
        self.set = self.gather(&mut left, context).map(|set| (Arc::new(set), version));
        self.trial = match self.set {
            // Should it become outdated, it is made anew when as much has been spent again.
            Some(_) => Some(trial),
            None => Some(trial * TRIAL_FACTOR).filter(|next| *next <= LAST_TRIAL),
        };
        trial - left
    }

    /// Goes the way back; `None` if that is too long, or fails: who asks forward will see how.
    fn gather(&mut self, left: &mut usize, context: &QueryContext) -> Option<VertexSet> {
        let mut level = match &mut self.end {
            End::Members(label) => context.side_effects.vertices(label, *left)?,
            End::Text(key, text) => match key.id(context) {
                Some(key) => context.transaction.vertices_with_text(key, text, *left)?,
                None => Vec::new(),
            },
        };
        *left = left.checked_sub(level.len())?;
        keep(&mut level, self.last.as_mut(), context)?;
        let mut reached: HashSet<VertexId> = HashSet::new();
        for hop in &mut self.hops {
            reached.clear();
            let labels = hop.labels.ids(context).map(<[_]>::to_vec);
            for vertex in level.drain(..) {
                let Some(labels) = &labels else { break };
                expand(vertex, hop.direction, labels, left, context, &mut reached)?;
            }
            level.extend(reached.iter().copied());
            keep(&mut level, hop.filter.as_mut(), context)?;
        }
        VertexSet::of(level, &context.memory)
    }
}

/// Adds the neighbours of a vertex to those that are reached; `None` if that takes more than is left.
fn expand(
    vertex: VertexId,
    direction: Direction,
    labels: &[ficus_model::LabelId],
    left: &mut usize,
    context: &QueryContext,
    reached: &mut HashSet<VertexId>,
) -> Option<()> {
    let mut cursor = HalfEdgeCursor::default();
    let mut fetched = Vec::new();
    loop {
        fetched.clear();
        let more = context.transaction.copy_neighbours(vertex, direction, labels, &mut cursor, FETCH_MAX, &mut fetched);
        *left = left.checked_sub(fetched.len() + 1)?;
        reached.extend(fetched.iter().copied());
        if !more {
            return Some(());
        }
    }
}

/// Drops vertices that fail the conditions; `None` if a condition cannot be tested.
fn keep(vertices: &mut Vec<VertexId>, conditions: Option<&mut Conditions>, context: &QueryContext) -> Option<()> {
    let Some(conditions) = conditions else { return Some(()) };
    let mut is_sound = true;
    vertices.retain(|vertex| {
        let passes = conditions.test(&Value::Vertex(*vertex), context);
        is_sound &= passes.is_ok();
        passes.unwrap_or(false)
    });
    is_sound.then_some(())
}
