//! What tests have found so far, by vertex.
//!
//! Whether `out('hasType').has('name', 'Country')` finds something depends on the vertex it begins at and on nothing else, and a
//! thousand messages lead to the same few tags. So a test keeps its verdicts as long as its operator lives, for the vertex it is
//! asked about and for those its walk comes through: no vertex is walked on from twice. Walks that are asked for their rows keep none.
//!
//! The idea at the scale of one query of the one-hop sub-query cache (eBay/USC), whose entries outlive queries.

use std::collections::VecDeque;

use ficus_model::{Value, VertexId};
use hashbrown::HashMap;

use super::{Probe, Step};
use crate::budget::Held;
use crate::context::QueryContext;
use crate::logical::{Name, Reach};
use crate::operators::scoped_where::right_labels;

/// Vertices of which a verdict is kept.
const KEPT_MAX: usize = 1 << 18;

/// After so many questions, and each time they have become eight times as many, verdicts that are seldom asked for again are given up.
const TRIAL: u32 = 1 << 10;

/// And tried again after so many times the questions that were in vain, for four times as many: the loop that comes to each of 30,000 persons a hundred
/// times asks for few of them twice among its first questions. Kept in vain is one verdict in nine at most, one in 33 on average.
const REST: u32 = 32;

/// An entry with its share of what is free.
const ENTRY_BYTES: usize = 2 * size_of::<(VertexId, bool)>();

/// What a test depends on beside the vertex it is asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Dependence {
    /// Keys that have to be side effects, or their meaning would depend on the traverser.
    pub(super) keys: Vec<Name>,
}

impl Dependence {
    /// The version of what the test reads, while nothing else can change its verdicts; `None` if something can.
    #[inline]
    pub(super) fn version(&self, context: &QueryContext) -> Option<u64> {
        // What a query writes it may read; and what it reads then has to be recorded each time.
        if context.transaction.may_write() {
            return None;
        }
        if self.keys.is_empty() {
            return Some(0);
        }
        self.keys.iter().all(|key| context.side_effects.contains(key)).then(|| context.side_effects.version())
    }
}

/// Verdicts of one test at one place of its walk.
pub(super) struct Verdicts {
    dependence: Dependence,
    found: HashMap<VertexId, bool>,
    version: u64,
    /// Questions since verdicts are kept, or since they are not.
    asked: u32,
    known: u32,
    trial: u32,
    /// Questions for which no verdicts are kept any more; none: they are kept.
    rest: Option<u32>,
    held: Held,
}

impl Verdicts {
    pub(super) fn new(dependence: Dependence) -> Verdicts {
        Verdicts {
            dependence,
            found: HashMap::new(),
            version: 0,
            asked: 0,
            known: 0,
            trial: TRIAL,
            rest: None,
            held: Held::default(),
        }
    }

    /// As [`Dependence::version`], of what these verdicts depend on.
    pub(super) fn version(&self, context: &QueryContext) -> Option<u64> {
        self.dependence.version(context)
    }

    /// The verdict on a vertex, if it is known.
    #[inline]
    pub(super) fn get(&mut self, vertex: VertexId, context: &QueryContext) -> Option<bool> {
        if self.is_of_now(context) { self.look(vertex) } else { None }
    }

    /// Forgets verdicts on what is no more; false if none are kept.
    #[inline]
    pub(super) fn is_of_now(&mut self, context: &QueryContext) -> bool {
        if self.rests() {
            return false;
        }
        let Some(version) = self.dependence.version(context) else { return false };
        if version != self.version {
            self.version = version;
            self.found.clear();
        }
        true
    }

    /// The verdict on a vertex, if it is known; right after [`Verdicts::is_of_now`].
    #[inline]
    pub(super) fn look(&mut self, vertex: VertexId) -> Option<bool> {
        if self.rest.is_some() {
            // Given up since, within a batch.
            return None;
        }
        self.asked += 1;
        let verdict = self.found.get(&vertex).copied();
        self.known += u32::from(verdict.is_some());
        if self.asked == self.trial {
            self.judge();
        }
        verdict
    }

    fn judge(&mut self) {
        self.trial = self.trial.saturating_mul(8);
        if self.known < self.asked / 4 {
            self.give_up(self.asked.saturating_mul(REST));
        }
    }

    /// Keeps no verdicts for so many questions.
    fn give_up(&mut self, questions: u32) {
        self.rest = Some(questions);
        self.trial = self.asked.saturating_mul(4);
        (self.asked, self.known) = (0, 0);
        self.found = HashMap::new();
        self.held.give_back();
    }

    /// Whether no verdicts are kept now. Called for each question.
    #[inline]
    fn rests(&mut self) -> bool {
        let Some(questions) = self.rest else { return false };
        self.asked = self.asked.saturating_add(1);
        // As many as a counter can hold is for ever.
        if self.asked < questions || questions == u32::MAX {
            return true;
        }
        (self.rest, self.asked) = (None, 0);
        false
    }

    /// Keeps a verdict that [`Verdicts::get`] did not know. Without memory for it the test goes on without verdicts.
    pub(super) fn put(&mut self, vertex: VertexId, verdict: bool, context: &QueryContext) {
        if self.rest.is_some() || self.found.len() >= KEPT_MAX || self.dependence.version(context) != Some(self.version)
        {
            return;
        }
        let (length, room) = (self.found.len(), self.found.capacity());
        match self.held.make_room(&context.memory, length, room, ENTRY_BYTES) {
            Ok(()) => {
                self.found.insert(vertex, verdict);
            }
            Err(_) => self.give_up(u32::MAX),
        }
    }
}

/// A clone belongs to another instance, which makes its own experience.
impl Clone for Verdicts {
    fn clone(&self) -> Verdicts {
        Verdicts::new(self.dependence.clone())
    }
}

/// What these steps depend on beside where they begin; `None` if that is more than [`Dependence`] can say.
pub(super) fn dependence<'a>(steps: impl IntoIterator<Item = &'a Step>) -> Option<Dependence> {
    let mut all = Dependence::default();
    for step in steps {
        let inner: Vec<&Probe> = match step {
            Step::Hop { .. } | Step::Ends(_) | Step::OtherEnd | Step::Has(_) | Step::HasProperty { .. } => continue,
            Step::Is(_) | Step::Values(_) | Step::Token(_) | Step::Scalar(_) | Step::Constant(_) => continue,
            Step::Column(_) | Step::Map(_) | Step::Unfold => continue,
            Step::Math(formula) if formula.reads_no_labels() => continue,
            Step::Verdict(_) => continue,
            Step::Compare(predicate) => {
                right_labels(predicate, &mut all.keys);
                continue;
            }
            // These look at the traverser, or at the rows before.
            Step::Select { .. } | Step::Math(_) | Step::Sack | Step::CompareBy(_) => return None,
            Step::Range { .. } | Step::Dedup(_) => return None,
            Step::Filter { probes, .. } | Step::Coalesce(probes) | Step::Union(probes) => probes.iter().collect(),
            Step::Loop(own) => own.probes().collect(),
            Step::Choose(own) => own.probes().collect(),
            Step::Project(own) => own.probes().collect(),
            Step::Each { probe, .. } => vec![probe],
        };
        for probe in inner {
            all.keys.extend(probe.dependence()?.keys);
        }
    }
    Some(all)
}

impl Probe {
    /// What the probe as a whole depends on beside the value it is asked about.
    pub(super) fn dependence(&self) -> Option<Dependence> {
        dependence(self.segments.iter().flat_map(|segment| &segment.steps))
    }

    /// Makes the walk of a test remember its verdicts on the vertices it comes through.
    pub(super) fn remember(&mut self) {
        // What a barrier gathers is no verdict.
        let [only] = self.segments.as_mut_slice() else { return };
        // From the end, so that what follows a step is there when it is looked at.
        let mut rest: VecDeque<Step> = VecDeque::new();
        for mut step in std::mem::take(&mut only.steps).into_iter().rev() {
            if let Step::Hop { reach: Reach::Vertex, filter, .. } = &mut step {
                // Texts are compared once for each vertex then; numbers are better looked at in columns, many at a time.
                if let Some(apart) = filter.take_if(|filter| filter.compares_texts()) {
                    rest.push_front(Step::Has(apart));
                }
            }
            // Of a hop to a known vertex only that goes on.
            let ends_at_vertex =
                matches!(step, Step::Hop { reach: Reach::Vertex, known: None, .. } | Step::Ends(_) | Step::OtherEnd);
            if ends_at_vertex
                && !rest.is_empty()
                && let Some(dependence) = dependence(&rest)
            {
                rest.push_front(Step::Verdict(Verdicts::new(dependence)));
            }
            rest.push_front(step);
        }
        only.steps = rest.into();
    }

    /// The verdict on a vertex, if it is known.
    pub(super) fn known(&mut self, vertex: VertexId, context: &QueryContext) -> Option<bool> {
        if let Some(passing) = self.backward.as_ref().and_then(|backward| backward.passing(context)) {
            return Some(passing.contains(vertex));
        }
        self.verdicts.as_mut()?.get(vertex, context)
    }

    /// Takes note of a verdict, which took so many looks at elements.
    ///
    /// Returns the looks that were made to be quicker the next time.
    pub(super) fn learn(&mut self, vertex: VertexId, found: bool, looks: usize, context: &QueryContext) -> usize {
        if let Some(verdicts) = &mut self.verdicts {
            verdicts.put(vertex, found, context);
        }
        self.backward.as_mut().map_or(0, |backward| backward.spent(looks, context))
    }
}

/// What a walk does at a place where verdicts are kept.
pub(super) enum Known {
    Found,
    NotFound,
    /// Nothing is known: walk on, and say what came of it.
    Ask(VertexId),
    /// This is no vertex.
    WalkOn,
}

impl Verdicts {
    /// What is known of a value.
    pub(super) fn of(&mut self, value: &Value, context: &QueryContext) -> Known {
        match value {
            Value::Vertex(vertex) => match self.get(*vertex, context) {
                Some(true) => Known::Found,
                Some(false) => Known::NotFound,
                None => Known::Ask(*vertex),
            },
            _ => Known::WalkOn,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks about a vertex, and keeps what is found; says whether it was known.
    fn ask(verdicts: &mut Verdicts, number: u64) -> bool {
        if verdicts.rests() {
            return false;
        }
        let vertex = VertexId(number);
        let known = verdicts.look(vertex).is_some();
        if !known && verdicts.rest.is_none() {
            verdicts.found.insert(vertex, true);
        }
        known
    }

    #[test]
    fn verdicts_that_were_given_up_are_tried_again() {
        let mut verdicts = Verdicts::new(Dependence::default());
        let people = 20_000;
        let known_in_round = |verdicts: &mut Verdicts| (0..people).filter(|&number| ask(verdicts, number)).count();
        assert_eq!(known_in_round(&mut verdicts), 0);
        assert!(verdicts.rest.is_some() && verdicts.found.is_empty(), "nobody was asked about twice");
        let rounds = (0..1000).position(|_| known_in_round(&mut verdicts) == people as usize);
        assert!(rounds.is_some_and(|rounds| rounds < 200), "{rounds:?} rounds until all are known");
    }

    #[test]
    fn verdicts_that_are_never_asked_for_again_cost_little() {
        let mut verdicts = Verdicts::new(Dependence::default());
        let questions = 4_000_000;
        let kept = (0..questions).filter(|&number| {
            ask(&mut verdicts, number);
            verdicts.rest.is_none()
        });
        let kept = kept.count();
        assert!(kept < questions as usize / 8, "{kept}");
    }
}
