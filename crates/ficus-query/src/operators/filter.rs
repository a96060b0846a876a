//! `filter`, `where(traversal)`, `not`, `and`, `or`: filters by sub-queries, each a branch scope whose egress cancels the
//! instance as soon as its answer is known.

use std::sync::Arc;

use ficus_dataflow::{BranchLogic, BranchOptions, Turn};
use ficus_model::Value;

use crate::context::{Cx, Graphs, Result, Traversers};
use crate::logical::{Node, Traversal};
use crate::operators::test_ahead::TestAhead;
use crate::operators::{has, shared_test};
use crate::physical::{Builder, Chain};
use crate::probe::{ARMS_AT_ONCE, ArmProbes, Probe, Rule};
use crate::traverser::{Traverser, marks};

/// Runs arm after arm on the same input until the rule is decided: in place where that is short, else in an instance.
struct FilterScope {
    rule: Rule,
    /// By arm.
    probes: ArmProbes,
    /// Where other instances, and the hop before it, look up which vertices pass.
    passing: Option<usize>,
    has_told: bool,
    /// The test of rows that wait, if it can be made of several at once.
    ahead: Option<TestAhead>,
    /// How many rows have come.
    place: usize,
    /// What it found of the one that is opened next, as [`TestAhead::look`] says it.
    next: Option<Option<u64>>,
}

#[derive(Default)]
struct Undecided {
    input: Option<Traverser>,
    arm: usize,
}

impl FilterScope {
    /// Whether the input passes, if an arm that found something, or nothing, decides it.
    fn decided(&self, found: bool) -> Option<bool> {
        match (self.rule, found) {
            (Rule::All, false) | (Rule::None, true) => Some(false),
            (Rule::Any, true) => Some(true),
            _ => None,
        }
    }

    fn decide(passes: bool, state: &mut Undecided, out: &mut Traversers) -> Turn<Traverser> {
        if passes {
            out.extend(state.input.take());
        }
        Turn::Close
    }

    /// Takes note of what the current arm found, and goes on with the next.
    fn after(
        &mut self,
        found: bool,
        state: &mut Undecided,
        out: &mut Traversers,
        cx: &mut Cx<'_>,
    ) -> Result<Turn<Traverser>> {
        if let Some(passes) = self.decided(found) {
            return Ok(Self::decide(passes, state, out));
        }
        state.arm += 1;
        self.go_on(state, out, cx)
    }

    fn go_on(&mut self, state: &mut Undecided, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Turn<Traverser>> {
        let Some(input) = &state.input else { return Ok(Turn::Close) };
        let first = state.arm;
        while let Some(probe) = self.probes.get_mut(state.arm) {
            // Of thousands of arms, the next goes in an instance when the turn is over: that can be left.
            let is_late = state.arm - first >= ARMS_AT_ONCE && {
                cx.charge(1);
                cx.exhausted()
            };
            let told = self.passing.and_then(|number| cx.context.passing[number].get());
            let found = match (probe.as_mut(), told, &input.value) {
                (_, Some(set), Value::Vertex(vertex)) => Some(set.contains(*vertex)),
                (Some(probe), ..) if !is_late => probe.finds(input, cx)?.paid(cx),
                _ => None,
            };
            if let (Some(passing), Some(set), false) =
                (self.passing, probe.as_ref().and_then(Probe::set), self.has_told)
            {
                cx.context.passing[passing].tell(set);
                self.has_told = true;
            }
            let Some(found) = found else {
                return Ok(Turn::Enter { arm: state.arm, message: input.single() });
            };
            if let Some(passes) = self.decided(found) {
                return Ok(Self::decide(passes, state, out));
            }
            state.arm += 1;
        }
        Ok(Self::decide(self.rule != Rule::Any, state, out))
    }
}

impl BranchLogic<Graphs> for FilterScope {
    type State = Undecided;

    fn look_ahead(&mut self, waiting: &Traversers, cx: &mut Cx<'_>) {
        let Some(ahead) = &mut self.ahead else { return };
        let place = self.place;
        let vertex_at = |position: usize| match waiting.get(position - place)? {
            Traverser { value: Value::Vertex(vertex), marks, .. } if marks & marks::PASSED == 0 => Some(*vertex),
            _ => None,
        };
        self.next = vertex_at(place).map(|_| ahead.look(place, vertex_at, cx));
    }

    fn open(
        &mut self,
        mut input: Traverser,
        state: &mut Undecided,
        out: &mut Traversers,
        cx: &mut Cx<'_>,
    ) -> Result<Turn<Traverser>> {
        self.place += 1;
        let passes = match self.next.take() {
            _ if input.marks & marks::PASSED != 0 => Some(true),
            Some(Some(0)) | None => None,
            Some(found) => Some(found.is_some()),
        };
        if let Some(passes) = passes {
            input.marks &= !marks::PASSED;
            out.extend(passes.then_some(input));
            return Ok(Turn::Close);
        }
        state.input = Some(input);
        self.go_on(state, out, cx)
    }

    fn receive(
        &mut self,
        _message: Traverser,
        state: &mut Undecided,
        out: &mut Traversers,
        cx: &mut Cx<'_>,
    ) -> Result<Turn<Traverser>> {
        self.after(true, state, out, cx)
    }

    fn arm_ended(&mut self, state: &mut Undecided, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Turn<Traverser>> {
        self.after(false, state, out, cx)
    }

    fn reset(&mut self) {
        (self.place, self.next) = (0, None);
        self.ahead.iter_mut().for_each(TestAhead::forget);
    }
}

/// Adds the scope of a filter node.
pub fn build(builder: &mut Builder, node: &Node, chain: &mut Chain) -> Result<()> {
    let (rule, arms): (Rule, Vec<&Traversal>) = match node {
        Node::Not { traversal } => (Rule::None, vec![traversal]),
        Node::And { traversals } => (Rule::All, traversals.iter().map(AsRef::as_ref).collect()),
        Node::Or { traversals } => (Rule::Any, traversals.iter().map(AsRef::as_ref).collect()),
        Node::Filter { traversal } => (Rule::All, vec![traversal]),
        _ => return Err(crate::error::QueryError::invalid(format!("{node} is not a filter by sub-query"))),
    };
    if builder.is_condition(node) && !builder.is_addressed(&arms) {
        builder.take_passing();
        builder.note(crate::rules::Rule::TestsAsConditions, node);
        return has::build(builder, node, chain);
    }
    let passing = match arms.as_slice() {
        [only] => builder.take_passing().or_else(|| Probe::may_know_all(only).then(|| builder.new_passing())),
        _ => builder.take_passing(),
    };
    if builder.shares(&arms) {
        return shared_test::build(builder, &node.into(), shared_test::Outcome::Filter(rule), &arms, chain);
    }
    let probes = builder.tests(&arms);
    let may_look_ahead = builder.may(crate::rules::Rule::TestsOfMany) && !builder.requirements().row_by_row;
    let ahead = match (probes.as_slice(), rule) {
        ([Some(probe)], Rule::All | Rule::None) if may_look_ahead => TestAhead::of(rule, probe.clone(), passing),
        _ => None,
    };
    if ahead.is_some() {
        builder.note(crate::rules::Rule::TestsOfMany, node);
    }
    // The first row decides; everything behind it would be wasted.
    let options = BranchOptions { arm_rows_limit: 1, ..BranchOptions::default() };
    let probes: Arc<[_]> = probes.into();
    builder.branch(chain, node, false, &arms, options, move || FilterScope {
        rule,
        probes: ArmProbes::new(probes.clone()),
        passing,
        has_told: false,
        ahead: ahead.clone(),
        place: 0,
        next: None,
    })
}
