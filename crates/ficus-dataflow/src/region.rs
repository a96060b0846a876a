//! A running region: the queue chain and the loop that schedules its nodes.
//!
//! Invariants: `queues[i]` feeds `slots[i]`; a slot is `Done` only if all slots before it are; at most one batch waits in
//! any queue, because a producer pauses when its consumer has that much to read, and has no turn before that is less (the deepest slot
//! with work, which goes first unless the region says otherwise, has nothing before it); what is pushed in from outside beyond one batch
//! lies in the backlog, so that no turn is longer than a batch.
//! Messages keep their order through the whole region.

use std::sync::Arc;

use crate::chunks::hand_over;
use crate::plan::{Demand, IntraPolicy, Region};
use crate::{Cx, Domain, Flow, Operator, Queue, Remains};

/// What a region says when it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionFlow {
    /// All input is worked off; more may come.
    Idle,
    /// Its output is full or its quota used up; run it again.
    More,
    /// It has ended: input closed and everything emitted, or completed early.
    Finished,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Waits for input.
    Idle,
    /// Has more to emit from what it consumed.
    More,
    /// Is emitting its last rows.
    Finishing,
    /// Has ended.
    Done,
}

struct Slot<D: Domain> {
    operator: Option<Box<dyn Operator<D>>>,
    state: State,
    /// Had a turn in this iteration.
    used: bool,
    /// Had a turn since the last reset.
    dirty: bool,
    /// The place in the order in which slots came to have work; 0 without work. Of regions that are not depth first.
    ready: u64,
    /// Work units of its next turn at most, if few of its rows may be enough.
    few_quota: i64,
}

/// Work units of a node whose first few rows may be enough, before those go on; twice as many each time, up to a limit. So what is done in vain is no more than what
/// was needed, and a turn is long against what it costs.
const FEW_QUOTA_FIRST: i64 = 256;
const FEW_QUOTA_MAX: i64 = 4096;

/// One execution of a [`Region`].
pub struct RegionInstance<D: Domain> {
    region: Arc<Region<D>>,
    slots: Vec<Slot<D>>,
    queues: Vec<Queue<D::Message>>,
    /// Input behind what is in the first queue; empty if that is.
    backlog: Queue<D::Message>,
    /// Slots before this one are `Done`.
    first_open: usize,
    /// No slot after this one has work: the scan for the deepest starts here.
    deepest: usize,
    /// How often a slot came to have work.
    times_ready: u64,
    closed: bool,
    /// Whether some operator ended the region early, so that input is no longer wanted.
    completed: bool,
    /// Whether this is a later iteration of a loop.
    reopened: bool,
}

impl<D: Domain> RegionInstance<D> {
    /// Whether it is an execution of this region, so that it may be one again once it is reset.
    pub fn is_of(&self, region: &Arc<Region<D>>) -> bool {
        Arc::ptr_eq(&self.region, region)
    }

    /// An instance with no operator created yet.
    pub fn new(region: Arc<Region<D>>) -> RegionInstance<D> {
        let count = region.nodes.len();
        RegionInstance {
            slots: (0..count)
                .map(|_| Slot {
                    operator: None,
                    state: State::Idle,
                    used: false,
                    dirty: false,
                    ready: 0,
                    few_quota: FEW_QUOTA_FIRST,
                })
                .collect(),
            // A region without nodes still has its input queue.
            queues: (0..count.max(1)).map(|_| Queue::new()).collect(),
            backlog: Queue::new(),
            region,
            first_open: 0,
            deepest: 0,
            times_ready: 0,
            closed: false,
            completed: false,
            reopened: false,
        }
    }

    /// Where messages enter.
    pub fn input(&mut self) -> &mut Queue<D::Message> {
        if self.backlog.is_empty() { &mut self.queues[0] } else { &mut self.backlog }
    }

    /// Adds one message. Dropped if the region ended early: it is late.
    pub fn push(&mut self, message: D::Message) {
        if !self.completed {
            self.input().push_back(message);
        }
    }

    /// Says that no more input comes (EOS).
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Whether an operator ended the region early.
    pub fn is_completed(&self) -> bool {
        self.completed
    }

    /// Whether `run` would do anything: messages wait inside, an operator has more to emit, or EOS is on its way.
    pub fn has_work(&self) -> bool {
        (self.closed && self.first_open < self.slots.len())
            || self.queues.iter().any(|queue| !queue.is_empty())
            || self.slots.iter().any(|slot| slot.state == State::More)
    }

    /// Runs until the region is idle or finished, its output is full, or the quota is used up.
    pub fn run(&mut self, out: &mut Queue<D::Message>, cx: &mut Cx<'_, D>) -> Result<RegionFlow, D::Error> {
        if self.slots.is_empty() {
            return Ok(self.pass_through(out, cx));
        }
        loop {
            if cx.should_yield(out) {
                return Ok(RegionFlow::More);
            }
            match self.next_with_work(cx) {
                Some(index) => self.process(index, out, cx)?,
                None if self.first_open == self.slots.len() => return Ok(RegionFlow::Finished),
                None if !self.closed => return Ok(RegionFlow::Idle),
                None => self.finish_first_open(out, cx)?,
            }
        }
    }

    fn pass_through(&mut self, out: &mut Queue<D::Message>, cx: &mut Cx<'_, D>) -> RegionFlow {
        while !cx.should_yield(out) {
            match self.queues[0].pop_front() {
                Some(message) => {
                    cx.charge(1);
                    out.push_back(message);
                }
                None if self.closed => return RegionFlow::Finished,
                None => return RegionFlow::Idle,
            }
        }
        RegionFlow::More
    }

    /// Messages that may wait behind a slot before it pauses.
    #[inline]
    fn rows_limit(&self, index: usize, cx: &Cx<'_, D>) -> usize {
        match self.region.demands[index] {
            Demand::AsWanted => cx.batch_rows_limit,
            Demand::All => cx.rows_limits.all,
            Demand::Few => cx.rows_limits.few.min(cx.batch_rows_limit),
        }
    }

    /// Who has the next turn; `None` if nobody has work.
    fn next_with_work(&mut self, cx: &Cx<'_, D>) -> Option<usize> {
        let policy = self.region.policy;
        if matches!(policy, IntraPolicy::Dfs) {
            return self.deepest_with_work();
        }
        let mut next: Option<usize> = None;
        for index in self.first_open..self.slots.len() {
            if !self.slot_has_work(index) {
                self.slots[index].ready = 0;
                continue;
            }
            if self.slots[index].ready == 0 {
                self.times_ready += 1;
                self.slots[index].ready = self.times_ready;
            }
            // The deepest with work always has room: nothing waits behind it.
            let room = self.rows_limit(index, cx).max(1);
            if self.queues.get(index + 1).is_some_and(|queue| queue.len() >= room) {
                continue;
            }
            let goes_first = next.is_none_or(|other| match policy {
                IntraPolicy::Dfs => true,
                IntraPolicy::Bfs => false,
                IntraPolicy::Fifo => self.slots[index].ready < self.slots[other].ready,
                IntraPolicy::Comparator(order) => {
                    order(self.region.nodes[index].id, self.region.nodes[other].id).is_lt()
                }
            });
            next = if goes_first { Some(index) } else { next };
        }
        next
    }

    fn slot_has_work(&self, index: usize) -> bool {
        let slot = &self.slots[index];
        slot.state == State::More || (slot.state != State::Done && !self.queues[index].is_empty())
    }

    fn deepest_with_work(&mut self) -> Option<usize> {
        let mut index = self.deepest.min(self.slots.len() - 1);
        loop {
            if self.slot_has_work(index) {
                self.deepest = index;
                return Some(index);
            }
            if index <= self.first_open {
                self.deepest = self.first_open;
                return None;
            }
            index -= 1;
        }
    }

    fn process(&mut self, index: usize, out: &mut Queue<D::Message>, cx: &mut Cx<'_, D>) -> Result<(), D::Error> {
        let own_limit = self.rows_limit(index, cx);
        if index == 0 && self.queues[0].len() > own_limit && self.backlog.is_empty() {
            std::mem::swap(&mut self.queues[0], &mut self.backlog);
            self.refill(own_limit);
        }
        let withheld = self.withheld(index, cx);
        cx.quota -= withheld;
        let flow = self.turn(index, out, cx, |operator, input, output, cx| operator.process(input, output, cx));
        cx.quota += withheld;
        let flow = flow?;
        match flow {
            Flow::Ready => self.slots[index].state = State::Idle,
            Flow::More => self.slots[index].state = State::More,
            Flow::Complete => self.complete_up_to(index, cx),
        }
        if index == 0 && self.queues[0].is_empty() && !self.backlog.is_empty() {
            self.refill(own_limit);
        }
        // What it emitted lies one deeper.
        self.deepest = (index + 1).min(self.slots.len() - 1);
        Ok(())
    }

    /// What of the quota a node does not get in one turn: of one whose first few rows may be enough these are to go on soon.
    fn withheld(&mut self, index: usize, cx: &Cx<'_, D>) -> i64 {
        if self.region.demands[index] != Demand::Few {
            return 0;
        }
        let slot = &mut self.slots[index];
        let own = slot.few_quota;
        slot.few_quota = (2 * own).min(FEW_QUOTA_MAX);
        (cx.quota - own).max(0)
    }

    /// Takes the next batch out of the backlog.
    fn refill(&mut self, batch_rows_limit: usize) {
        let count = batch_rows_limit.max(1).min(self.backlog.len());
        self.queues[0].extend(self.backlog.drain(..count));
    }

    fn finish_first_open(&mut self, out: &mut Queue<D::Message>, cx: &mut Cx<'_, D>) -> Result<(), D::Error> {
        let index = self.first_open;
        if !self.slots[index].used && (self.reopened || !self.region.nodes[index].emits_on_empty) {
            // Saw only EOS: never created, passes EOS on. A later iteration yields nothing from nothing.
            self.end_slot(index);
            return Ok(());
        }
        self.slots[index].state = State::Finishing;
        let flow = self.turn(index, out, cx, |operator, _, output, cx| operator.finish(output, cx))?;
        if flow != Flow::More {
            self.end_slot(index);
        }
        self.deepest = (index + 1).min(self.slots.len() - 1);
        Ok(())
    }

    fn end_slot(&mut self, index: usize) {
        self.slots[index].state = State::Done;
        self.first_open = index + 1;
    }

    /// Gives slot `index` one turn and keeps the books.
    fn turn(
        &mut self,
        index: usize,
        out: &mut Queue<D::Message>,
        cx: &mut Cx<'_, D>,
        call: impl FnOnce(
            &mut dyn Operator<D>,
            &mut Queue<D::Message>,
            &mut Queue<D::Message>,
            &mut Cx<'_, D>,
        ) -> Result<Flow, D::Error>,
    ) -> Result<Flow, D::Error> {
        let own_limit = self.rows_limit(index, cx);
        let few_wanted = self.region.demands[index] == Demand::Few;
        let node = &self.region.nodes[index];
        let slot = &mut self.slots[index];
        slot.used = true;
        slot.dirty = true;
        // Whatever is left to do stands behind what others have to do by now.
        slot.ready = 0;
        cx.control.cancel.set_node_at_work(node.id);
        let operator = slot.operator.get_or_insert_with(|| (node.factory)());
        let (before, after) = self.queues.split_at_mut(index + 1);
        let input = &mut before[index];
        let output = after.first_mut().unwrap_or(out);
        let (waiting_before, output_before) = (input.len(), output.len());
        let started_ns = cx.profile.is_some().then(|| cx.control.clock.now_ns());
        let around = (cx.batch_rows_limit, cx.few_wanted);
        (cx.batch_rows_limit, cx.few_wanted) = (own_limit, few_wanted);
        let flow = call(operator.as_mut(), input, output, cx).map_err(|error| D::at_node(error, &node.name));
        (cx.batch_rows_limit, cx.few_wanted) = around;
        let flow = flow?;
        let moved = waiting_before.saturating_sub(input.len()) + output.len().saturating_sub(output_before);
        // At least one unit, so that a node that only says "more" cannot hold the executor.
        cx.charge(moved.max(1));
        cx.operator_had_turn();
        if let (Some(started_ns), Some(profile)) = (started_ns, cx.profile.as_deref_mut())
            && let Some(entry) = profile.get_mut(node.id.0 as usize)
        {
            entry.turns += 1;
            entry.duration_ns += cx.control.clock.now_ns().saturating_sub(started_ns);
            entry.messages += output.len().saturating_sub(output_before) as u64;
            entry.rows += output.iter().skip(output_before).map(D::weight).sum::<u64>();
            cx.notes.drain(..).for_each(|(name, value)| entry.note(name, value));
        }
        Ok(flow)
    }

    /// Ends everything before `index`; the slot itself still finishes.
    fn complete_up_to(&mut self, index: usize, cx: &mut Cx<'_, D>) {
        self.completed = true;
        self.closed = true;
        self.backlog.clear();
        // Those before are done, and there may be many thousands.
        for earlier in self.first_open..index {
            let slot = &mut self.slots[earlier];
            if slot.state != State::Done
                && slot.used
                && let Some(operator) = slot.operator.as_mut()
            {
                operator.release(cx);
                operator.cancel();
            }
            slot.state = State::Done;
            self.queues[earlier].clear();
        }
        self.queues[index].clear();
        self.slots[index].state = State::Idle;
        self.first_open = self.first_open.max(index);
    }

    /// Opens a finished region for the next iteration of a loop; operators keep what iterations share.
    pub fn reopen(&mut self) {
        for slot in &mut self.slots {
            if let Some(operator) = slot.operator.as_mut() {
                operator.reopen();
            }
            slot.state = State::Idle;
            slot.used = false;
            slot.ready = 0;
        }
        self.reopened = true;
        self.first_open = 0;
        self.deepest = 0;
        self.closed = false;
        // An iteration is an instance: an early end does not reach into the next.
        self.completed = false;
    }

    /// Ends everything inside early, as [`Operator::release`]; `reset` or `cancel` has to follow.
    pub fn release(&mut self, cx: &mut Cx<'_, D>) {
        for slot in &mut self.slots {
            if slot.dirty
                && let Some(operator) = slot.operator.as_mut()
            {
                operator.release(cx);
            }
        }
    }

    /// Drops what is inside, as [`Operator::cancel`]; `reopen` or `reset` has to follow.
    pub fn cancel(&mut self) {
        for slot in &mut self.slots {
            if slot.dirty
                && let Some(operator) = slot.operator.as_mut()
            {
                operator.cancel();
            }
        }
        self.clear_queues();
    }

    /// Hands over what is inside, as [`Operator::surrender`].
    pub(crate) fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        let queues = self.queues.iter_mut().chain([&mut self.backlog]);
        queues.for_each(|queue| hand_over(queue, remains));
        for operator in self.slots.iter_mut().filter_map(|slot| slot.operator.as_mut()) {
            operator.surrender(remains);
        }
    }

    fn clear_queues(&mut self) {
        for queue in &mut self.queues {
            queue.clear();
        }
        self.backlog.clear();
    }

    /// Back to an instance that never ran; operators are kept for reuse.
    pub fn reset(&mut self) {
        for slot in &mut self.slots {
            if slot.dirty
                && let Some(operator) = slot.operator.as_mut()
            {
                operator.reset();
            }
            slot.dirty = false;
        }
        self.begin_anew();
    }

    /// Readies it for the next chunk of the same rows, as [`Operator::next_chunk`].
    pub(crate) fn next_chunk(&mut self) {
        // They stay dirty: what they remember is for `reset` to forget.
        let dirty = self.slots.iter_mut().filter(|slot| slot.dirty);
        dirty.filter_map(|slot| slot.operator.as_mut()).for_each(|operator| operator.next_chunk());
        self.begin_anew();
    }

    fn begin_anew(&mut self) {
        for slot in &mut self.slots {
            slot.state = State::Idle;
            slot.used = false;
            slot.ready = 0;
            slot.few_quota = FEW_QUOTA_FIRST;
        }
        self.clear_queues();
        self.reopened = false;
        self.first_open = 0;
        self.deepest = 0;
        self.closed = false;
        self.completed = false;
    }
}
