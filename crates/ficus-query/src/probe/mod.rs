//! Sub-queries evaluated in place: a walk that is likely to be short, made on the spot without a scope instance.
//!
//! `where(out('isLocatedIn').has('name', 'Chile'))` and `by(out('hasCreator').values('name'))` look at a handful of elements
//! for each traverser. An instance of a branch scope would cost more than they do: queues, operators and turns, all to be
//! made ready and wiped. A [`Probe`] walks depth first over the same steps with nothing but the machine's stack, and stops
//! as soon as its answer is known.
//!
//! What a scope gives, a probe does not: it cannot be interrupted. So it has a bound: after [`ITEMS_MAX`] elements it gives
//! up, and the scope instance answers instead, in turns, under the query's quotas, as if nothing had been tried. Nothing is
//! lost by that, since a probe only reads; what was in vain is less than what the instance will cost. While nobody else has something to do
//! on the executor, and the query need not stop, it goes on beyond that ([`PATIENCE_MAX`]).
//!
//! Only steps whose meaning depends on one traverser at a time are compiled ([`Probe::compile`] says `None` for all others):
//! no effects, no random numbers, no labels given inside. Rows and their order are those of the scope.
//!
//! Source of the idea that scopes belong where cancelling them pays, and only there: Su et al., "Banyan", VLDB 2022, §3.3.

mod backward;
mod batch;
mod choosing;
mod compile;
mod gather;
mod looping;
mod many;
mod projecting;
mod verdicts;
mod walk;

use std::sync::Arc;

use ficus_model::{Pop, T, Value, VertexId};

use crate::context::{Cx, QueryContext, Result};
use crate::elements::{KeyRef, LabelSet};
use crate::error::QueryError;
use crate::experience::Experience;
use crate::logical::{Name, Reach, ScalarFunction, WherePredicate};
use crate::modulate::Modulator;
use crate::operators::formula::Formula;
use crate::operators::has::Conditions;
use crate::operators::known_end::KnownEnd;
use crate::operators::property::PropertyReader;
use crate::operators::property_map::ElementMaps;
use crate::operators::scoped_where::LabelledTest;
use crate::traverser::Traverser;
use crate::vertex_set::VertexSet;
use backward::Backward;
pub use backward::Ways;
use gather::Gather;
use verdicts::Verdicts;

/// Elements one evaluation may look at; some hundred microseconds.
pub const ITEMS_MAX: usize = 1 << 14;

/// Elements it may look at while nobody waits for the executor; about ten milliseconds.
const PATIENCE_MAX: usize = 1 << 18;

/// Elements between two looks at whether somebody does.
const PATIENCE_STEP: usize = 1 << 12;

/// A sub-query compiled for evaluation in place. Cloning gives one with a state of its own.
#[derive(Clone)]
pub struct Probe {
    /// Each but the last ends in a barrier.
    segments: Vec<Segment>,
    buffers: Vec<Fetched>,
    /// What it found, if it is a test that depends on little else.
    verdicts: Option<Verdicts>,
    /// The test from its end, if it can be made from there.
    backward: Option<Box<Backward>>,
    /// Elements that an evaluation may look at while nobody waits: fewer after some that were in vain.
    patience: usize,
}

/// The probes of the arms of a scope, by arm. Each gets its state when its arm is first tried: there may be tens of thousands of arms, and each executor
/// that helps has its own.
pub struct ArmProbes {
    compiled: Arc<[Option<Probe>]>,
    /// Those of the first arms.
    own: Vec<Option<Probe>>,
}

impl ArmProbes {
    /// Of these, none of which has been tried.
    pub fn new(compiled: Arc<[Option<Probe>]>) -> ArmProbes {
        ArmProbes { compiled, own: Vec::new() }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.compiled.is_empty()
    }

    /// That of an arm, if there is such an arm.
    pub fn get_mut(&mut self, arm: usize) -> Option<&mut Option<Probe>> {
        while self.own.len() <= arm {
            let next = self.compiled.get(self.own.len())?.clone();
            self.own.push(next);
        }
        self.own.get_mut(arm)
    }
}

/// Arms that are tried in place for a row before the first look at whether the turn is over.
pub const ARMS_AT_ONCE: usize = 16;

/// What hops have fetched: half-edges for those that go to edges, else vertices.
#[derive(Clone, Debug, Default)]
struct Fetched {
    half_edges: Vec<ficus_storage::HalfEdge>,
    vertices: Vec<VertexId>,
    /// What the test behind says of the vertices, if it was made of all of them.
    verdicts: Vec<Option<bool>>,
}

#[derive(Clone)]
struct Segment {
    steps: Vec<Step>,
    end: Option<Gather>,
    /// Whether all rows of the steps are wanted, whatever they are; of the last one, if whoever takes them wants all.
    wants_all: bool,
}

/// One step of a walk.
#[derive(Clone)]
enum Step {
    Hop {
        direction: ficus_model::Direction,
        labels: LabelSet,
        reach: Reach,
        /// Of the edges that it goes over to vertices.
        edges: Option<Conditions>,
        filter: Option<Conditions>,
        /// The vertex that it has to lead to, if the steps behind it name one.
        known: Option<Box<KnownEnd>>,
    },
    /// `outV`, `inV`, `bothV`.
    Ends(ficus_model::Direction),
    /// `otherV`, right behind the hop to the edge.
    OtherEnd,
    Has(Conditions),
    HasProperty {
        key: KeyRef,
        negated: bool,
    },
    Is(ficus_model::matching::CompiledPredicate),
    Values(PropertyReader),
    Token(T),
    Scalar(Arc<ScalarFunction>),
    Constant(Value),
    Select {
        pop: Pop,
        label: Name,
        by: Modulator,
    },
    Column(ficus_model::Column),
    /// `math()`.
    Math(Box<Formula>),
    /// `valueMap()`, `elementMap()` and the like.
    Map(Box<ElementMaps>),
    Unfold,
    Sack,
    /// `where(P)` that compares the current object with what is under labels.
    Compare(WherePredicate),
    /// One that compares what is under a label, or what `by()` makes of both sides.
    CompareBy(Box<LabelledTest>),
    /// Passes if so many of the probes as the rule says find something.
    Filter {
        rule: Rule,
        probes: Vec<Probe>,
    },
    /// The rows of the first that has any.
    Coalesce(Vec<Probe>),
    /// The rows of all.
    Union(Vec<Probe>),
    /// The rows of the option that is chosen.
    Choose(Box<choosing::Choice>),
    /// A map of what is found from each row.
    Project(Box<projecting::Projection>),
    /// The rows of a walk of each row's own, or the first of them.
    Each {
        probe: Probe,
        first_only: bool,
    },
    Loop(Box<looping::Loop>),
    /// Rows `low..high` of those that come.
    Range {
        low: u64,
        high: u64,
        seen: u64,
    },
    Dedup(hashbrown::HashSet<Value>),
    /// What is known of the rest of the walk of a test, by where it begins.
    Verdict(Verdicts),
}

/// Which sub-queries have to yield something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Every one.
    All,
    /// At least one.
    Any,
    /// None of them.
    None,
}

/// Why a walk ended without an answer.
enum Halt {
    /// It is longer than a walk in place may be.
    TooLong,
    Failed(QueryError),
}

impl From<QueryError> for Halt {
    fn from(error: QueryError) -> Halt {
        Halt::Failed(error)
    }
}

/// What the steps of a walk share.
struct Surroundings<'a> {
    context: &'a QueryContext,
    /// Whose labels `select()` finds; none for a value that came from elsewhere.
    traverser: Option<&'a Traverser>,
    /// Elements that were looked at.
    looked: usize,
    /// Elements that may be looked at before somebody asks whether there may be more.
    granted: usize,
    /// And in all.
    patience: usize,
    /// Elements that were looked at to be quicker the next time.
    beside: usize,
    turn: &'a Cx<'a>,
    /// Whether all rows of the segment under way are wanted.
    wants_all: bool,
}

impl<'a> Surroundings<'a> {
    fn of(traverser: Option<&'a Traverser>, patience: usize, turn: &'a Cx<'a>) -> Surroundings<'a> {
        let (looked, granted, beside, wants_all) = (0, ITEMS_MAX, 0, false);
        Surroundings { context: turn.context, traverser, looked, granted, patience, beside, turn, wants_all }
    }

    /// Pays for elements that are looked at.
    #[inline]
    fn pay(&mut self, items: usize) -> std::result::Result<(), Halt> {
        self.looked += items;
        if self.looked > self.granted { self.go_on() } else { Ok(()) }
    }

    /// Asks for more than was granted.
    #[cold]
    fn go_on(&mut self) -> std::result::Result<(), Halt> {
        if self.looked > self.patience || !self.turn.is_undisturbed() {
            return Err(Halt::TooLong);
        }
        self.granted = self.looked + PATIENCE_STEP;
        Ok(())
    }

    /// What the evaluation is charged for.
    fn cost(&self) -> usize {
        self.looked + self.beside
    }
}

/// What an evaluation in place came to.
pub enum Tried<R> {
    /// The answer, and how many elements were looked at.
    Answer(R, usize),
    /// None, after so many: the scope has to answer.
    TooLong(usize),
}

impl Probe {
    /// Whether the sub-query yields anything for `traverser`. The probe has to be one of [`Probe::compile_test`].
    ///
    /// Errors: what its steps fail with.
    pub fn finds(&mut self, traverser: &Traverser, cx: &Cx<'_>) -> Result<Tried<bool>> {
        let mut around = Surroundings::of(Some(traverser), self.patience, cx);
        let found = self.exists(&traverser.value, &mut around);
        self.tried(found, &around)
    }

    /// What an evaluation came to. The next one is given less patience if this was in vain.
    fn tried<R>(&mut self, found: std::result::Result<R, Halt>, around: &Surroundings<'_>) -> Result<Tried<R>> {
        match found {
            Ok(found) => {
                if around.granted > ITEMS_MAX {
                    self.patience = PATIENCE_MAX;
                }
                Ok(Tried::Answer(found, around.cost()))
            }
            Err(Halt::TooLong) => {
                self.patience = (self.patience / 4).max(ITEMS_MAX);
                Ok(Tried::TooLong(around.cost()))
            }
            Err(Halt::Failed(error)) => Err(error),
        }
    }

    /// Forgets which vertices its hops have to lead to, so that they look for them among all.
    pub fn forget_known_ends(&mut self) {
        self.for_each(&mut |probe| {
            for step in probe.segments.iter_mut().flat_map(|segment| &mut segment.steps) {
                if let Step::Hop { known, .. } = step {
                    *known = None;
                }
            }
        });
    }

    /// What its tests from their ends have found in earlier runs, and those inside.
    pub fn experiences(&mut self) -> Vec<Arc<Experience>> {
        let mut all = Vec::new();
        self.for_each(&mut |probe| all.extend(probe.backward.iter().map(|backward| backward.experience().clone())));
        all
    }

    /// Visits it, and all inside.
    fn for_each(&mut self, visit: &mut dyn FnMut(&mut Probe)) {
        visit(self);
        for step in self.segments.iter_mut().flat_map(|segment| &mut segment.steps) {
            match step {
                Step::Filter { probes, .. } | Step::Coalesce(probes) | Step::Union(probes) => {
                    probes.iter_mut().for_each(|probe| probe.for_each(visit));
                }
                Step::Loop(own) => own.probes_mut().for_each(|probe| probe.for_each(visit)),
                Step::Choose(own) => own.probes_mut().for_each(|probe| probe.for_each(visit)),
                Step::Project(own) => own.probes_mut().for_each(|probe| probe.for_each(visit)),
                Step::Each { probe, .. } => probe.for_each(visit),
                _ => {}
            }
        }
    }

    /// The vertices for which the sub-query yields something, once they are known.
    pub fn set(&self) -> Option<&Arc<VertexSet>> {
        self.backward.as_ref()?.set()
    }

    /// The first value the sub-query yields for `value`; its `select()` finds the labels of `traverser`, if there is one.
    ///
    /// Errors: what its steps fail with.
    pub fn first(&mut self, value: &Value, traverser: Option<&Traverser>, cx: &Cx<'_>) -> Result<Tried<Option<Value>>> {
        let mut first = None;
        let tried = self.run(value, traverser, cx, &mut |value, _| {
            first = Some(value);
            false
        })?;
        Ok(tried.map(|()| first))
    }

    /// Appends all values the sub-query yields for `traverser`, each with its bulk, unless they are more than `rows_max`.
    ///
    /// Errors: what its steps fail with.
    pub fn all(
        &mut self,
        traverser: &Traverser,
        rows_max: usize,
        cx: &Cx<'_>,
        out: &mut Vec<(Value, u64)>,
    ) -> Result<Tried<()>> {
        out.clear();
        let mut fits = true;
        let tried = self.run(&traverser.value, Some(traverser), cx, &mut |value, bulk| {
            fits = out.len() < rows_max;
            out.push((value, bulk));
            fits
        })?;
        if !fits {
            out.clear();
            return Ok(Tried::TooLong(tried.items()));
        }
        Ok(tried)
    }
}

impl<R> Tried<R> {
    /// The answer, if there is one; what was looked at, also in vain, is paid for from the operator's turn.
    pub fn paid(self, cx: &mut Cx<'_>) -> Option<R> {
        cx.charge(self.items());
        match self {
            Tried::Answer(answer, _) => Some(answer),
            Tried::TooLong(_) => None,
        }
    }

    /// How many elements were looked at.
    fn items(&self) -> usize {
        match self {
            Tried::Answer(_, items) | Tried::TooLong(items) => *items,
        }
    }

    /// The answer made into another.
    pub fn map<S>(self, function: impl FnOnce(R) -> S) -> Tried<S> {
        match self {
            Tried::Answer(answer, items) => Tried::Answer(function(answer), items),
            Tried::TooLong(items) => Tried::TooLong(items),
        }
    }
}
