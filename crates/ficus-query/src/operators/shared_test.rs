//! Tests by sub-query without scopes: all inputs of a batch go through one pipeline, and their rows are told apart by a number.
//!
//! This is what engines with a fixed topology do. An input passes when the first row that came of it leaves the pipeline, but what else is under way for it goes
//! on to the end: nothing inside knows whose row is still wanted. It is there to be compared with scopes (`with('ficus.scopes', false)`).
//! As everything runs on one executor, a pipeline that has nothing left to do has ended for the whole batch, so that no EOS per input is needed.

use std::sync::Arc;

use ficus_dataflow::region::{RegionFlow, RegionInstance};
use ficus_dataflow::{Flow, NodeName, Operator, Region};

use crate::context::{Cx, Graphs, Result, Traversers};
use crate::logical::Traversal;
use crate::physical::{Builder, Chain};
use crate::probe::Rule;
use crate::traverser::{Traverser, marks};

/// Inputs in the pipeline at once: as many as there are numbers.
const INPUTS_MAX: usize = 1 << (u64::BITS - marks::INPUT_SHIFT);

/// What becomes of inputs that are tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Those that fulfil the rule go on.
    Filter(Rule),
    /// All go on; those for which something was found have this mark.
    Mark(u64),
}

struct SharedTest {
    outcome: Outcome,
    arms: Vec<RegionInstance<Graphs>>,
    /// The inputs under way that are undecided, by number.
    inputs: Vec<Option<Traverser>>,
    /// For which of them the current arm has found something.
    found: Vec<bool>,
    /// The arm that runs, if inputs are under way.
    current: Option<usize>,
    arm_out: Traversers,
}

impl SharedTest {
    fn new(outcome: Outcome, regions: &[Arc<Region<Graphs>>]) -> SharedTest {
        let arms = regions.iter().map(|region| RegionInstance::new(region.clone())).collect();
        SharedTest { outcome, arms, inputs: Vec::new(), found: Vec::new(), current: None, arm_out: Traversers::new() }
    }

    /// Whether an input goes on, if what an arm found, or that it found nothing, decides it.
    fn decided(&self, found: bool) -> Option<bool> {
        match (self.outcome, found) {
            (Outcome::Filter(Rule::All), false) | (Outcome::Filter(Rule::None), true) => Some(false),
            (Outcome::Filter(Rule::Any), true) | (Outcome::Mark(_), true) => Some(true),
            // The last arm decides what is left.
            (Outcome::Filter(Rule::All), true) if self.is_last() => Some(true),
            (Outcome::Filter(Rule::None), false) if self.is_last() => Some(true),
            (Outcome::Filter(Rule::Any), false) if self.is_last() => Some(false),
            (Outcome::Mark(_), false) => Some(true),
            _ => None,
        }
    }

    fn is_last(&self) -> bool {
        self.current.is_none_or(|arm| arm + 1 >= self.arms.len())
    }

    fn decide(&mut self, number: usize, found: bool, out: &mut Traversers) {
        if let Some(passes) = self.decided(found)
            && let Some(mut input) = self.inputs[number].take()
            && passes
        {
            if let (Outcome::Mark(mark), true) = (self.outcome, found) {
                input.marks |= mark;
            }
            out.push_back(input);
        }
    }

    /// Sends the undecided inputs into an arm.
    fn enter(&mut self, arm: usize) {
        for (number, input) in self.inputs.iter().enumerate() {
            if let Some(input) = input {
                let mut message = input.single();
                message.marks |= (number as u64) << marks::INPUT_SHIFT;
                self.arms[arm].push(message);
            }
        }
        self.found.clear();
        self.found.resize(self.inputs.len(), false);
        self.current = Some(arm);
    }

    /// Gives the current arm a turn.
    fn advance(&mut self, arm: usize, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<()> {
        let flow = self.arms[arm].run(&mut self.arm_out, cx)?;
        while let Some(row) = self.arm_out.pop_front() {
            let number = (row.marks >> marks::INPUT_SHIFT) as usize;
            if !std::mem::replace(&mut self.found[number], true) {
                self.decide(number, true, out);
            }
        }
        if flow == RegionFlow::More {
            return Ok(());
        }
        for number in 0..self.inputs.len() {
            if !self.found[number] {
                self.decide(number, false, out);
            }
        }
        // What loops inside remember belongs to these inputs; the next have the same numbers.
        self.arms[arm].reset();
        if self.is_last() || self.inputs.iter().all(Option::is_none) {
            self.inputs.clear();
            self.current = None;
        } else {
            self.enter(arm + 1);
        }
        Ok(())
    }
}

impl Operator<Graphs> for SharedTest {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        loop {
            if cx.should_yield(out) {
                let is_done = self.current.is_none() && input.is_empty();
                return Ok(if is_done { Flow::Ready } else { Flow::More });
            }
            match self.current {
                Some(arm) => self.advance(arm, out, cx)?,
                None if input.is_empty() => return Ok(Flow::Ready),
                None => {
                    let count = input.len().min(cx.batch_rows_limit.max(1)).min(INPUTS_MAX);
                    self.inputs.extend(input.drain(..count).map(Some));
                    cx.charge(count);
                    self.enter(0);
                }
            }
        }
    }

    fn release(&mut self, cx: &mut Cx<'_>) {
        self.arms.iter_mut().for_each(|arm| arm.release(cx));
    }

    fn reset(&mut self) {
        self.arms.iter_mut().for_each(RegionInstance::reset);
        self.inputs.clear();
        self.found.clear();
        self.arm_out.clear();
        self.current = None;
    }
}

/// Adds the test.
pub fn build(
    builder: &mut Builder,
    name: &NodeName,
    outcome: Outcome,
    arms: &[&Traversal],
    chain: &mut Chain,
) -> Result<()> {
    builder.note_shared(name);
    builder.shared(chain, name, arms, move |regions| SharedTest::new(outcome, &regions))
}
