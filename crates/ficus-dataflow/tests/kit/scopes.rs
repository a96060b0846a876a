//! Ingress and egress of the scopes of test plans.

use ficus_dataflow::{Arms, BranchLogic, Cx, Flow, ForkLogic, LoopLogic, Queue, Turn, Verdict};

use super::operators::EnterLoop;
use super::steps::{Branch, Emit};
use super::{Integers, Row, TestError};

type Result<T> = std::result::Result<T, TestError>;
type Context<'a> = Cx<'a, Integers>;

/// All kinds of [`Branch`].
pub struct BranchTest {
    kind: Branch,
    arms: usize,
    sums: Vec<i64>,
    finishing: bool,
}

impl BranchTest {
    pub fn new(kind: Branch, arms: usize) -> BranchTest {
        BranchTest { kind, arms, sums: Vec::new(), finishing: false }
    }
}

#[derive(Default)]
pub struct Instance {
    input: Row,
    arm: usize,
    rows: usize,
    sum: i64,
}

impl BranchLogic<Integers> for BranchTest {
    type State = Instance;

    fn open(
        &mut self,
        input: Row,
        state: &mut Instance,
        out: &mut Queue<Row>,
        _: &mut Context<'_>,
    ) -> Result<Turn<Row>> {
        // Some inputs need no instance at all.
        if self.kind == Branch::Optional && input.value % 7 == 3 {
            out.push_back(input);
            return Ok(Turn::Close);
        }
        state.input = input.clone();
        Ok(Turn::Enter { arm: 0, message: input })
    }

    fn receive(
        &mut self,
        mut message: Row,
        state: &mut Instance,
        out: &mut Queue<Row>,
        _: &mut Context<'_>,
    ) -> Result<Turn<Row>> {
        state.rows += 1;
        // A sum of nothing has lost its counters.
        message.loops.clone_from(&state.input.loops);
        Ok(match self.kind {
            Branch::Where => {
                out.push_back(std::mem::take(&mut state.input));
                Turn::Close
            }
            Branch::Not => Turn::Close,
            Branch::Coalesce | Branch::FlatMap | Branch::Optional => {
                out.push_back(message);
                Turn::Continue
            }
            Branch::GatherSum => {
                state.sum = state.sum.wrapping_add(message.value);
                Turn::Continue
            }
            Branch::First => {
                out.push_back(message);
                Turn::Close
            }
            Branch::Relay => {
                state.arm += 1;
                if state.arm < self.arms {
                    Turn::Enter { arm: state.arm, message }
                } else {
                    out.push_back(message);
                    Turn::Close
                }
            }
        })
    }

    fn arm_ended(&mut self, state: &mut Instance, out: &mut Queue<Row>, _: &mut Context<'_>) -> Result<Turn<Row>> {
        match self.kind {
            Branch::Not => out.push_back(state.input.clone()),
            Branch::Optional if state.rows == 0 => out.push_back(state.input.clone()),
            Branch::GatherSum => self.sums.push(state.sum),
            Branch::Coalesce if state.rows == 0 && state.arm + 1 < self.arms => {
                state.arm += 1;
                return Ok(Turn::Enter { arm: state.arm, message: state.input.clone() });
            }
            _ => {}
        }
        Ok(Turn::Close)
    }

    fn finish(&mut self, out: &mut Queue<Row>, cx: &mut Context<'_>) -> Result<Flow> {
        if !self.finishing {
            self.sums.sort_by(|a, b| b.cmp(a));
            self.finishing = true;
        }
        while !cx.should_pause(out) {
            match self.sums.pop() {
                Some(sum) => out.push_back(Row::new(sum)),
                None => {
                    self.finishing = false;
                    return Ok(Flow::Ready);
                }
            }
        }
        Ok(Flow::More)
    }

    fn reset(&mut self) {
        self.sums.clear();
        self.finishing = false;
    }
}

/// Every arm sees every row.
pub struct ToAll;

impl ForkLogic<Integers> for ToAll {
    fn route(&mut self, message: Row, arms: &mut Arms<'_, Integers>, _: &mut Context<'_>) -> Result<()> {
        for arm in 0..arms.count() {
            arms.send(arm, message.clone());
        }
        Ok(())
    }
}

/// The gate of a test loop.
#[derive(Clone)]
pub struct Gate {
    pub id: u32,
    pub times: u32,
    pub tests_first: bool,
    pub emit: Emit,
}

impl Gate {
    fn judge(&self, mut row: Row, before_body: bool) -> Verdict<Row> {
        let count = row.loops.last().map_or(0, |(_, count)| *count);
        let marked = std::mem::take(&mut row.mark);
        if self.tests_first == before_body && (marked || count >= self.times) {
            return Verdict { exit: Some(leave(row)), again: None };
        }
        let emits = match self.emit {
            Emit::Never => false,
            Emit::First => before_body,
            Emit::After => !before_body,
        };
        Verdict { exit: emits.then(|| leave(row.clone())), again: Some(row) }
    }

    pub fn before_body(&self, row: Row) -> Verdict<Row> {
        self.judge(row, true)
    }

    pub fn after_body(&self, row: Row) -> Verdict<Row> {
        // A sum of nothing has lost its counters.
        let mut row = EnterLoop::enter(self.id, row);
        if let Some((_, count)) = row.loops.last_mut() {
            *count += 1;
        }
        self.judge(row, false)
    }
}

fn leave(mut row: Row) -> Row {
    row.loops.pop();
    row
}

impl LoopLogic<Integers> for Gate {
    fn enter(&mut self, message: Row, _: &mut Context<'_>) -> Result<Verdict<Row>> {
        Ok(self.before_body(message))
    }

    fn turn(&mut self, message: Row, _: &mut Context<'_>) -> Result<Verdict<Row>> {
        Ok(self.after_body(message))
    }
}
