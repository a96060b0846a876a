//! Forks: arms that live as long as their parent region and see all of its input, as the options of `union()` do.
//!
//! An arm is created by its first message. Without a barrier inside, each input (or batch of inputs) runs through its arms
//! before the next is taken, so output keeps the order of input; with one, all input is spread first and the arms run at
//! EOS, one after another. There is no scope here: an early end inside an arm ends that arm for all input.

use std::sync::Arc;

use crate::plan::Region;
use crate::region::{RegionFlow, RegionInstance};
use crate::{Cx, Domain, Flow, Operator, Queue, Remains};

struct Arm<D: Domain> {
    /// Kept over resets for reuse.
    instance: Option<RegionInstance<D>>,
    /// Whether a message came since the last reset: an arm without is as if it were not there.
    entered: bool,
}

/// Where a fork's logic sends messages.
pub struct Arms<'a, D: Domain> {
    arms: &'a mut Vec<Arm<D>>,
    regions: &'a [Arc<Region<D>>],
    sent: usize,
    size: usize,
}

impl<D: Domain> Arms<'_, D> {
    /// How many arms there are.
    pub fn count(&self) -> usize {
        self.regions.len()
    }

    /// Sends `message` into an arm, creating it if this is its first. Dropped if the arm has ended early.
    pub fn send(&mut self, arm: usize, message: D::Message) {
        let target = &mut self.arms[arm];
        target.entered = true;
        let instance = target.instance.get_or_insert_with(|| RegionInstance::new(self.regions[arm].clone()));
        if !instance.is_completed() {
            self.size += D::size(&message);
            instance.push(message);
            self.sent += 1;
        }
    }
}

/// Decides which arms a message enters.
pub trait ForkLogic<D: Domain>: Send {
    /// Sends `message`, or copies of it, into arms.
    fn route(&mut self, message: D::Message, arms: &mut Arms<'_, D>, cx: &mut Cx<'_, D>) -> Result<(), D::Error>;

    /// As [`Operator::reset`].
    fn reset(&mut self) {}
}

/// The running fork.
pub struct Fork<D: Domain, L: ForkLogic<D>> {
    logic: L,
    regions: Arc<[Arc<Region<D>>]>,
    arms: Vec<Arm<D>>,
    /// Whether an arm holds a barrier, so that all input has to be there before any arm runs.
    has_barrier: bool,
    /// Inputs routed before the arms run; 1 keeps their order.
    inputs_at_once: usize,
    retained: usize,
}

impl<D: Domain, L: ForkLogic<D>> Fork<D, L> {
    /// A fork with no arm created yet.
    pub fn new(logic: L, regions: Arc<[Arc<Region<D>>]>, has_barrier: bool, inputs_at_once: usize) -> Self {
        let arms = regions.iter().map(|_| Arm { instance: None, entered: false }).collect();
        Fork { logic, regions, arms, has_barrier, inputs_at_once: inputs_at_once.max(1), retained: 0 }
    }

    /// Sends a message into arms; says how much they got.
    fn route(&mut self, message: D::Message, cx: &mut Cx<'_, D>) -> Result<usize, D::Error> {
        let mut arms = Arms { arms: &mut self.arms, regions: &self.regions, sent: 0, size: 0 };
        self.logic.route(message, &mut arms, cx)?;
        let Arms { sent, size, .. } = arms;
        cx.charge(1 + sent);
        Ok(size)
    }

    /// Runs the arms in order until all are idle; `false` if one has more to do.
    fn run_arms(&mut self, out: &mut Queue<D::Message>, cx: &mut Cx<'_, D>) -> Result<bool, D::Error> {
        for arm in entered(&mut self.arms) {
            if arm.has_work() && arm.run(out, cx)? == RegionFlow::More {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether every arm has ended early, so that no input can yield anything any more.
    fn is_completed(&self) -> bool {
        !self.arms.is_empty()
            && self
                .arms
                .iter()
                .all(|arm| arm.entered && arm.instance.as_ref().is_some_and(RegionInstance::is_completed))
    }
}

fn entered<D: Domain>(arms: &mut [Arm<D>]) -> impl Iterator<Item = &mut RegionInstance<D>> {
    arms.iter_mut().filter(|arm| arm.entered).filter_map(|arm| arm.instance.as_mut())
}

impl<D: Domain, L: ForkLogic<D>> Operator<D> for Fork<D, L> {
    fn process(
        &mut self,
        input: &mut Queue<D::Message>,
        out: &mut Queue<D::Message>,
        cx: &mut Cx<'_, D>,
    ) -> Result<Flow, D::Error> {
        if self.has_barrier {
            while let Some(message) = input.pop_front() {
                let size = self.route(message, cx)?;
                self.retained += size;
                D::retain(cx.context, size as isize)?;
                if cx.exhausted() {
                    return Ok(Flow::More);
                }
            }
            return Ok(Flow::Ready);
        }
        loop {
            if !self.run_arms(out, cx)? {
                return Ok(Flow::More);
            }
            if self.is_completed() {
                return Ok(Flow::Complete);
            }
            if input.is_empty() {
                return Ok(Flow::Ready);
            }
            if cx.should_yield(out) {
                return Ok(Flow::More);
            }
            for _ in 0..self.inputs_at_once {
                let Some(message) = input.pop_front() else { break };
                self.route(message, cx)?;
            }
        }
    }

    fn finish(&mut self, out: &mut Queue<D::Message>, cx: &mut Cx<'_, D>) -> Result<Flow, D::Error> {
        for arm in entered(&mut self.arms) {
            arm.close();
            if arm.has_work() && arm.run(out, cx)? == RegionFlow::More {
                return Ok(Flow::More);
            }
        }
        cx.give_back(std::mem::take(&mut self.retained));
        Ok(Flow::Ready)
    }

    fn reopen(&mut self) {
        for arm in entered(&mut self.arms) {
            arm.reopen();
        }
    }

    fn release(&mut self, cx: &mut Cx<'_, D>) {
        for arm in entered(&mut self.arms) {
            arm.release(cx);
        }
        cx.give_back(std::mem::take(&mut self.retained));
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        for arm in entered(&mut self.arms) {
            arm.surrender(remains);
        }
    }

    fn cancel(&mut self) {
        for arm in entered(&mut self.arms) {
            arm.cancel();
        }
    }

    fn reset(&mut self) {
        for arm in entered(&mut self.arms) {
            arm.reset();
        }
        for arm in &mut self.arms {
            arm.entered = false;
        }
        self.logic.reset();
    }
}
