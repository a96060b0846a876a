//! Branch scopes: each input opens a scope instance of its own, in which arms (sub-regions) run one after another.
//!
//! The logic is the ingress (`open`) and the egress (`receive`, `arm_ended`) of the scope. `where(…)`, for example, enters
//! its arm with the input, and at the first message that comes out emits the input and closes the instance: whatever the
//! arm still had to do is cancelled, and no other instance notices. `coalesce(…)` enters the next arm when one ended
//! without output; `order().by(…)` enters an arm per key and keeps the results until `finish`.
//!
//! ```text
//!             open ─ Enter ─▶ ┌────── arm ──────┐ ─ receive ─▶ Continue │ Enter │ Close
//!   input ──▶                 │ RegionInstance  │
//!             open ─ Close    └─────────────────┘ ─ arm_ended ─▶ Enter │ Close
//! ```
//!
//! Ended regions are reset and pooled, so a steady state allocates nothing per instance.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::chunks::hand_over;
use crate::plan::{NodeId, Region};
use crate::region::{RegionFlow, RegionInstance};
use crate::{Cx, Domain, Flow, Operator, Queue, Remains, RowsLimits};

/// What the logic wants to happen to an instance.
pub enum Turn<M> {
    /// Go on with the current arm.
    Continue,
    /// Cancel the current arm, if any, and start this one with `message` as its only input.
    Enter {
        /// Index of the arm.
        arm: usize,
        /// Its input.
        message: M,
    },
    /// End the instance.
    Close,
}

/// Ingress and egress of a branch scope.
pub trait BranchLogic<D: Domain>: Send {
    /// What one instance remembers between calls.
    type State: Default + Send;

    /// The first of these rows is opened next, if that is not put off; the others wait. For who is quicker with several at once.
    fn look_ahead(&mut self, _waiting: &Queue<D::Message>, _cx: &mut Cx<'_, D>) {}

    /// A new input. `Continue` means the same as `Close` here.
    fn open(
        &mut self,
        input: D::Message,
        state: &mut Self::State,
        out: &mut Queue<D::Message>,
        cx: &mut Cx<'_, D>,
    ) -> Result<Turn<D::Message>, D::Error>;

    /// A message left the current arm.
    fn receive(
        &mut self,
        message: D::Message,
        state: &mut Self::State,
        out: &mut Queue<D::Message>,
        cx: &mut Cx<'_, D>,
    ) -> Result<Turn<D::Message>, D::Error>;

    /// The current arm ended. `Continue` means the same as `Close` here.
    fn arm_ended(
        &mut self,
        state: &mut Self::State,
        out: &mut Queue<D::Message>,
        cx: &mut Cx<'_, D>,
    ) -> Result<Turn<D::Message>, D::Error>;

    /// No more input, and no instance is left. Called until it returns something other than [`Flow::More`].
    fn finish(&mut self, _out: &mut Queue<D::Message>, _cx: &mut Cx<'_, D>) -> Result<Flow, D::Error> {
        Ok(Flow::Ready)
    }

    /// As [`Operator::reopen`].
    fn reopen(&mut self) {}

    /// As [`Operator::release`].
    fn release(&mut self, _cx: &mut Cx<'_, D>) {}

    /// Readies the state of an ended instance for the next; `false` if a new one is to be made.
    fn recycle(_state: &mut Self::State) -> bool {
        false
    }

    /// As [`Operator::surrender`].
    fn surrender(&mut self, _remains: &mut Vec<Box<dyn Remains>>) {}

    /// An instance ends before its time, with what it remembers: gives back what `state` holds on the query's account.
    fn release_instance(&mut self, _state: &mut Self::State, _cx: &mut Cx<'_, D>) {}

    /// As [`Operator::cancel`].
    fn cancel(&mut self) {
        self.reset();
    }

    /// As [`Operator::reset`].
    fn reset(&mut self) {}
}

/// Which of several live instances runs next.
#[derive(Clone, Copy, Debug)]
pub enum InterPolicy {
    /// The oldest until it ends: output in the order of input. One instance at a time is all it ever needs.
    Fifo,
    /// All in turn.
    Bfs,
    /// The newest.
    Dfs,
    /// The one this order puts first (the older of equals); it compares instance numbers.
    Comparator(fn(u64, u64) -> Ordering),
}

/// How a branch scope runs its instances.
#[derive(Clone, Copy, Debug)]
pub struct BranchOptions {
    /// Instances alive at once, at least 1 and never more than the rows of a batch; more input waits.
    pub max_instances: usize,
    /// Who runs next.
    pub policy: InterPolicy,
    /// Work units an instance gets before the policy chooses again (only matters when several live).
    pub instance_quota: i64,
    /// Rows an arm may have ready before the egress looks at them, at least 1; 1 where the first row decides. What stands in an arm before a node that
    /// wants all rows works on as many at once as the query does.
    pub arm_rows_limit: usize,
    /// Whether what an arm still had to do is cancelled when the egress has what it wants. If not, the arm runs to its end and what it
    /// yields is thrown away: to measure what cancelling is worth.
    pub cancels_early: bool,
}

impl Default for BranchOptions {
    fn default() -> Self {
        BranchOptions {
            max_instances: 1,
            policy: InterPolicy::Fifo,
            instance_quota: 1024,
            arm_rows_limit: 1024,
            cancels_early: true,
        }
    }
}

struct Instance<D: Domain, S> {
    number: u64,
    state: S,
    arm: usize,
    region: RegionInstance<D>,
    /// What happens when the arm has run to its end, if that is decided and the arm is not cancelled.
    decided: Option<Turn<D::Message>>,
}

/// Live instances in order of admission. They stay where they are put, and their places are used again: taking one of hundreds out moves
/// numbers only.
struct Live<D: Domain, S> {
    places: Vec<Option<Instance<D, S>>>,
    free: Vec<usize>,
    order: VecDeque<usize>,
}

impl<D: Domain, S> Live<D, S> {
    fn new() -> Self {
        Live { places: Vec::new(), free: Vec::new(), order: VecDeque::new() }
    }

    fn len(&self) -> usize {
        self.order.len()
    }

    fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    fn push(&mut self, instance: Instance<D, S>) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.places[place] = Some(instance);
        self.order.push_back(place);
    }

    fn number(&self, index: usize) -> u64 {
        self.places[self.order[index]].as_ref().map_or(0, |instance| instance.number)
    }

    fn at(&mut self, index: usize) -> &mut Instance<D, S> {
        self.places[self.order[index]].as_mut().expect("what is in the order has its place")
    }

    fn remove(&mut self, index: usize) -> Option<Instance<D, S>> {
        let place = self.order.remove(index)?;
        self.free.push(place);
        self.places[place].take()
    }

    fn pop(&mut self) -> Option<Instance<D, S>> {
        self.remove(self.len().checked_sub(1)?)
    }
}

/// The running scope: an operator to the region around it.
pub struct BranchScope<D: Domain, L: BranchLogic<D>> {
    node: NodeId,
    logic: L,
    arms: Arc<[Arc<Region<D>>]>,
    options: BranchOptions,
    live: Live<D, L::State>,
    pools: Vec<Vec<RegionInstance<D>>>,
    arm_out: Queue<D::Message>,
    next_number: u64,
    next_in_turn: usize,
    /// The state of an instance that ended where it opened.
    spare: Option<L::State>,
}

impl<D: Domain, L: BranchLogic<D>> BranchScope<D, L> {
    /// A scope with no instance yet.
    pub fn new(node: NodeId, logic: L, arms: Arc<[Arc<Region<D>>]>, options: BranchOptions) -> Self {
        let pools = arms.iter().map(|_| Vec::new()).collect();
        let options = BranchOptions {
            max_instances: match options.policy {
                // `open` may emit at once, which must not overtake what older instances have yet to emit.
                InterPolicy::Fifo => 1,
                _ => options.max_instances.max(1),
            },
            // With less, no instance could ever move.
            instance_quota: options.instance_quota.max(1),
            arm_rows_limit: if options.cancels_early { options.arm_rows_limit.max(1) } else { usize::MAX },
            ..options
        };
        BranchScope {
            node,
            logic,
            arms,
            options,
            live: Live::new(),
            pools,
            arm_out: Queue::new(),
            next_number: 0,
            next_in_turn: 0,
            spare: None,
        }
    }

    fn enter(&mut self, arm: usize, message: D::Message) -> RegionInstance<D> {
        let mut region = self.pools[arm].pop().unwrap_or_else(|| RegionInstance::new(self.arms[arm].clone()));
        region.push(message);
        region.close();
        region
    }

    fn retire(&mut self, arm: usize, mut region: RegionInstance<D>, cx: &mut Cx<'_, D>) {
        region.release(cx);
        self.pool(arm, region);
    }

    fn pool(&mut self, arm: usize, mut region: RegionInstance<D>) {
        region.reset();
        // As many as can be alive at once are worth keeping.
        if self.pools[arm].len() < self.options.max_instances {
            self.pools[arm].push(region);
        }
    }

    fn admit(
        &mut self,
        input: &mut Queue<D::Message>,
        out: &mut Queue<D::Message>,
        cx: &mut Cx<'_, D>,
    ) -> Result<(), D::Error> {
        let room = self.options.max_instances.min(cx.batch_rows_limit);
        while self.live.len() < room && !cx.should_yield(out) {
            if input.is_empty() {
                break;
            }
            self.logic.look_ahead(input, cx);
            let Some(message) = input.pop_front() else { break };
            cx.charge(1);
            let mut state = self.spare.take().unwrap_or_default();
            if let Turn::Enter { arm, message } = self.logic.open(message, &mut state, out, cx)? {
                let region = self.enter(arm, message);
                cx.count_instances(self.node, 1, 0);
                self.live.push(Instance { number: self.next_number, state, arm, region, decided: None });
                self.next_number += 1;
            } else if L::recycle(&mut state) {
                self.spare = Some(state);
            }
        }
        Ok(())
    }

    fn choose(&mut self) -> usize {
        match self.options.policy {
            _ if self.live.len() == 1 => 0,
            // `live` is in order of admission.
            InterPolicy::Fifo => 0,
            InterPolicy::Dfs => self.live.len() - 1,
            InterPolicy::Bfs => {
                let index = if self.next_in_turn < self.live.len() { self.next_in_turn } else { 0 };
                self.next_in_turn = index + 1;
                index
            }
            InterPolicy::Comparator(order) => (0..self.live.len())
                .min_by(|&a, &b| order(self.live.number(a), self.live.number(b)))
                .expect("called with live instances only"),
        }
    }

    /// Gives the chosen instance a turn and acts on what comes out of it.
    fn advance(&mut self, out: &mut Queue<D::Message>, cx: &mut Cx<'_, D>) -> Result<(), D::Error> {
        let index = self.choose();
        let withheld = if self.live.len() > 1 { (cx.quota - self.options.instance_quota).max(0) } else { 0 };
        let (rows_limit, rows_limits) = (cx.batch_rows_limit, cx.rows_limits);
        let arm_limit = self.options.arm_rows_limit;
        cx.quota -= withheld;
        cx.batch_rows_limit = arm_limit.min(rows_limit);
        // What lies in the queues of all that live is to be no more than one would hold.
        let all = (rows_limits.all / self.live.len()).max(cx.batch_rows_limit);
        cx.rows_limits = RowsLimits { few: arm_limit.min(rows_limits.few), all };
        let instance = self.live.at(index);
        cx.tag.push(instance.number);
        let flow = instance.region.run(&mut self.arm_out, cx);
        cx.tag.pop();
        (cx.batch_rows_limit, cx.rows_limits) = (rows_limit, rows_limits);
        cx.quota += withheld;
        let flow = flow?;
        if instance.decided.is_some() {
            self.arm_out.clear();
        }
        while let Some(message) = self.arm_out.pop_front() {
            let turn = self.logic.receive(message, &mut instance.state, out, cx)?;
            if !matches!(turn, Turn::Continue) {
                // Messages behind it belong to a cancelled arm, or one whose rows are not wanted.
                self.arm_out.clear();
                if self.options.cancels_early || flow == RegionFlow::Finished {
                    self.turn(index, turn, flow != RegionFlow::Finished, cx);
                    return Ok(());
                }
                instance.decided = Some(turn);
            }
        }
        if flow == RegionFlow::Finished {
            let turn = match instance.decided.take() {
                Some(turn) => turn,
                None => self.logic.arm_ended(&mut instance.state, out, cx)?,
            };
            self.turn(index, turn, false, cx);
        }
        Ok(())
    }

    fn turn(&mut self, index: usize, turn: Turn<D::Message>, cancelled: bool, cx: &mut Cx<'_, D>) {
        match turn {
            Turn::Enter { arm, message } => {
                let region = self.enter(arm, message);
                let instance = self.live.at(index);
                let old_region = std::mem::replace(&mut instance.region, region);
                let old_arm = std::mem::replace(&mut instance.arm, arm);
                self.retire(old_arm, old_region, cx);
            }
            Turn::Continue | Turn::Close => {
                cx.count_instances(self.node, 0, u64::from(cancelled));
                let ended = self.live.remove(index);
                if index < self.next_in_turn {
                    // Those behind moved up. At the end the round begins anew, before newcomers get their first turn.
                    self.next_in_turn -= 1;
                    if self.next_in_turn == self.live.len() {
                        self.next_in_turn = 0;
                    }
                }
                if let Some(ended) = ended {
                    self.retire(ended.arm, ended.region, cx);
                }
            }
        }
    }

    /// Drops all instances.
    fn clear(&mut self) {
        while let Some(instance) = self.live.pop() {
            self.pool(instance.arm, instance.region);
        }
        self.arm_out.clear();
        self.next_in_turn = 0;
    }
}

impl<D: Domain, L: BranchLogic<D>> Operator<D> for BranchScope<D, L> {
    fn process(
        &mut self,
        input: &mut Queue<D::Message>,
        out: &mut Queue<D::Message>,
        cx: &mut Cx<'_, D>,
    ) -> Result<Flow, D::Error> {
        loop {
            self.admit(input, out, cx)?;
            if self.live.is_empty() && input.is_empty() {
                return Ok(Flow::Ready);
            }
            if cx.should_yield(out) {
                return Ok(Flow::More);
            }
            if !self.live.is_empty() {
                self.advance(out, cx)?;
            }
        }
    }

    fn finish(&mut self, out: &mut Queue<D::Message>, cx: &mut Cx<'_, D>) -> Result<Flow, D::Error> {
        self.logic.finish(out, cx)
    }

    fn reopen(&mut self) {
        self.logic.reopen();
    }

    fn release(&mut self, cx: &mut Cx<'_, D>) {
        cx.count_instances(self.node, 0, self.live.len() as u64);
        while let Some(mut instance) = self.live.pop() {
            self.logic.release_instance(&mut instance.state, cx);
            self.retire(instance.arm, instance.region, cx);
        }
        self.logic.release(cx);
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        self.logic.surrender(remains);
        hand_over(&mut self.arm_out, remains);
        for instance in self.live.places.iter_mut().flatten() {
            instance.region.surrender(remains);
        }
    }

    fn cancel(&mut self) {
        self.clear();
        self.logic.cancel();
    }

    fn reset(&mut self) {
        self.clear();
        self.next_number = 0;
        self.logic.reset();
    }
}
