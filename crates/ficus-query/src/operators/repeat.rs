//! `repeat()` as a loop scope.
//!
//! The tests run as nodes of the loop's regions (`until` and `emit` given before `repeat` in `entry`, those given after at
//! the end of the body) and leave marks on the traverser; the gate turns marks into verdicts. `times(n)` and `emit()` need
//! no node.

use ficus_dataflow::{
    BranchLogic, BranchOptions, Flow, LoopLogic, LoopOptions, LoopPolicy, NodeName, Operator, Remains, Turn, Verdict,
};
use ficus_model::Value;

use crate::context::{Cx, Graphs, Result, Traversers};
use crate::growing::Seen;
use crate::logical::{Name, Node, OfEqual, Repeat, Traversal};
use crate::operators::hop_parts::Distinct;
use crate::operators::shared_test;
use crate::physical::{Builder, Chain, has_barrier};
use crate::probe::Probe;
use crate::traverser::{Traverser, marks};

/// Sets a mark on the traversers for which a sub-query yields something.
struct MarkScope {
    mark: u64,
    probe: Option<Probe>,
}

impl BranchLogic<Graphs> for MarkScope {
    type State = Option<Traverser>;

    fn open(
        &mut self,
        mut input: Traverser,
        state: &mut Option<Traverser>,
        out: &mut Traversers,
        cx: &mut Cx<'_>,
    ) -> Result<Turn<Traverser>> {
        if let Some(probe) = &mut self.probe
            && let Some(found) = probe.finds(&input, cx)?.paid(cx)
        {
            if found {
                input.marks |= self.mark;
            }
            out.push_back(input);
            return Ok(Turn::Close);
        }
        let message = input.single();
        *state = Some(input);
        Ok(Turn::Enter { arm: 0, message })
    }

    fn receive(
        &mut self,
        _message: Traverser,
        state: &mut Option<Traverser>,
        out: &mut Traversers,
        _cx: &mut Cx<'_>,
    ) -> Result<Turn<Traverser>> {
        if let Some(mut input) = state.take() {
            input.marks |= self.mark;
            out.push_back(input);
        }
        Ok(Turn::Close)
    }

    fn arm_ended(
        &mut self,
        state: &mut Option<Traverser>,
        out: &mut Traversers,
        _cx: &mut Cx<'_>,
    ) -> Result<Turn<Traverser>> {
        out.extend(state.take());
        Ok(Turn::Close)
    }
}

/// How a condition of a loop is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Test {
    /// There is no such condition.
    Never,
    /// `emit()`.
    Always,
    /// `times(n)`.
    Loops(i64),
    /// By a sub-query that left a mark.
    Mark,
}

impl Test {
    fn of(traversal: Option<&Traversal>) -> Test {
        match traversal {
            None => Test::Never,
            Some(traversal) => match traversal.nodes.as_slice() {
                [] => Test::Always,
                [only] => match only.node {
                    Node::LoopsAtLeast { times } => Test::Loops(times),
                    _ => Test::Mark,
                },
                _ => Test::Mark,
            },
        }
    }

    fn holds(self, traverser: &Traverser, mark: u64) -> bool {
        match self {
            Test::Never => false,
            Test::Always => true,
            Test::Loops(times) => i64::from(traverser.loops(None).unwrap_or(0)) >= times,
            Test::Mark => traverser.marks & mark != 0,
        }
    }
}

#[derive(Clone)]
struct Gate {
    scope: u32,
    name: Option<Name>,
    until: Test,
    until_first: bool,
    emit: Test,
    emit_first: bool,
}

impl Gate {
    fn judge(&self, mut traverser: Traverser, first: bool) -> Verdict<Traverser> {
        let until = self.until_first == first && self.until.holds(&traverser, marks::UNTIL);
        if until {
            return Verdict { exit: Some(leave(traverser)), again: None };
        }
        let emit = self.emit_first == first && self.emit.holds(&traverser, marks::EMIT);
        traverser.marks &= marks::KEPT;
        let exit = emit.then(|| leave(traverser.clone()));
        Verdict { exit, again: Some(traverser) }
    }
}

/// Takes the innermost loop counter away.
fn leave(mut traverser: Traverser) -> Traverser {
    traverser.marks &= marks::KEPT;
    traverser.leave_loop();
    traverser
}

impl LoopLogic<Graphs> for Gate {
    fn enter(&mut self, traverser: Traverser, _cx: &mut Cx<'_>) -> Result<Verdict<Traverser>> {
        Ok(self.judge(traverser, true))
    }

    fn turn(&mut self, mut traverser: Traverser, cx: &mut Cx<'_>) -> Result<Verdict<Traverser>> {
        // A value that grew into another one in the body does so again and again.
        cx.context.memory.fits(&traverser.value)?;
        if let Some(sack) = traverser.sack() {
            cx.context.memory.fits(sack)?;
        }
        if !self.counts_at_end() {
            traverser.innermost.advance();
        }
        Ok(self.judge(traverser, false))
    }
}

impl Gate {
    /// Whether the tests at the end of the body need the new count, so that a node before them counts.
    fn counts_at_end(&self) -> bool {
        (self.until == Test::Mark && !self.until_first) || (self.emit == Test::Mark && !self.emit_first)
    }
}

/// Passes the first of equal rows, of each iteration or of all.
struct DistinctOperator {
    of_iteration: bool,
    /// Iteration, with the number of the input in a shared pipeline, and object.
    seen: Seen<(u64, Value)>,
}

impl Operator<Graphs> for DistinctOperator {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        while let Some(mut traverser) = input.pop_front() {
            cx.charge(1);
            let iteration = if self.of_iteration { traverser.loops(None).unwrap_or(0) } else { 0 };
            let iteration = u64::from(iteration) | (traverser.marks & marks::INPUT);
            let bytes = |(_, value): &(u64, Value)| value.size_hint_bytes() - size_of::<Value>();
            if self.seen.insert((iteration, traverser.value.clone()), bytes, &cx.context.memory)? {
                traverser.bulk = 1;
                out.push_back(traverser);
            }
            if cx.should_pause(out) {
                return Ok(Flow::More);
            }
        }
        Ok(Flow::Ready)
    }

    fn release(&mut self, _cx: &mut Cx<'_>) {
        self.reset();
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        self.seen.surrender(remains);
    }

    fn reset(&mut self) {
        self.seen.clear();
    }
}

/// Rows that wait in a loop from which on it goes deeper instead of wider, if all leave it after the same number of iterations: about a mebibyte.
const FRONTIER_MAX: usize = 1 << 13;

/// Adds the loop.
pub fn build(builder: &mut Builder, repeat: &Repeat, chain: &mut Chain) -> Result<()> {
    let gate = Gate {
        scope: builder.loop_scope(),
        name: repeat.name.clone(),
        until: Test::of(repeat.until.as_deref()),
        until_first: repeat.until_first,
        emit: Test::of(repeat.emit.as_deref()),
        emit_first: repeat.emit_first,
    };
    let is_distinct = repeat.distinct != OfEqual::All;
    let leaves_at_end = gate.emit == Test::Never && matches!(gate.until, Test::Loops(_));
    let options = LoopOptions {
        // Rows that come out at the end of the walk only come soonest by going to the end first.
        policy: if is_distinct && gate.emit == Test::Never { LoopPolicy::Dfs } else { LoopPolicy::Bfs },
        has_barrier: has_barrier(&repeat.body),
        tests_every_entry: gate.until_first && gate.until != Test::Never || gate.emit_first && gate.emit != Test::Never,
        // With rows leaving in the middle, one input is finished before the next begins.
        inputs_at_once: if leaves_at_end { usize::MAX } else { 1 },
        frontier_max: if leaves_at_end && !builder.order_matters() { FRONTIER_MAX } else { usize::MAX },
    };
    let name = NodeName::new(Node::Repeat(repeat.clone()));
    builder.loop_depth += 1;
    let tests = gate.clone();
    let result = builder.loop_scope_node(
        chain,
        &name,
        options,
        |builder, entry, body| {
            enter_node(builder, &tests, entry);
            test_nodes(builder, repeat, &tests, true, entry)?;
            let behind = if is_distinct && !builder.is_shared() { Distinct::OfIteration } else { Distinct::No };
            builder.inline_before(&repeat.body, behind, body)?;
            if is_distinct {
                let of_iteration = repeat.distinct == OfEqual::OneOfIteration;
                let make = move || DistinctOperator { of_iteration, seen: Seen::default() };
                let id = builder.operator(body, "loop distinct", false, make);
                builder.auxiliary(id);
            }
            if tests.counts_at_end() {
                count_node(builder, body);
            }
            test_nodes(builder, repeat, &tests, false, body)
        },
        move || gate.clone(),
    );
    builder.loop_depth -= 1;
    result
}

/// Gives traversers that come from outside a counter; those that come again have theirs.
fn enter_node(builder: &mut Builder, gate: &Gate, chain: &mut Chain) {
    let (scope, name) = (gate.scope, gate.name.clone());
    let id = builder.operator(chain, "loop entry", false, move || {
        let name = name.clone();
        crate::operators::per_row::PerRow {
            function: move |mut traverser: Traverser, _: &mut Cx<'_>| {
                if !traverser.innermost.is(scope) {
                    traverser.enter_loop(scope, name.as_ref());
                }
                Ok(Some(traverser))
            },
        }
    });
    builder.auxiliary(id);
}

fn count_node(builder: &mut Builder, chain: &mut Chain) {
    let id = builder.operator(chain, "loop count", false, move || crate::operators::per_row::PerRow {
        function: move |mut traverser: Traverser, _: &mut Cx<'_>| {
            traverser.innermost.advance();
            Ok(Some(traverser))
        },
    });
    builder.auxiliary(id);
}

fn mark_node(builder: &mut Builder, name: &NodeName, test: &Traversal, mark: u64, chain: &mut Chain) -> Result<()> {
    if builder.shares(&[test]) {
        return shared_test::build(builder, name, shared_test::Outcome::Mark(mark), &[test], chain);
    }
    let options = BranchOptions { arm_rows_limit: 1, ..BranchOptions::default() };
    let probe = builder.tests(&[test]).pop().flatten();
    builder.branch(chain, name, false, &[test], options, move || MarkScope { mark, probe: probe.clone() })
}

fn test_nodes(builder: &mut Builder, repeat: &Repeat, gate: &Gate, first: bool, chain: &mut Chain) -> Result<()> {
    if let Some(until) = &repeat.until
        && gate.until == Test::Mark
        && gate.until_first == first
    {
        mark_node(builder, &"until".into(), until, marks::UNTIL, chain)?;
    }
    if let Some(emit) = &repeat.emit
        && gate.emit == Test::Mark
        && gate.emit_first == first
    {
        mark_node(builder, &"emit".into(), emit, marks::EMIT, chain)?;
    }
    Ok(())
}
