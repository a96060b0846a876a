//! Loop scopes: a body whose output may enter it again.
//!
//! ```text
//!              ┌─────────────── again ────────────────┐
//!   input ─▶ entry ─▶ enter ─▶ frontier ─▶ body ─▶ turn ─▶ out
//!                       └───────────────── exit ───────┴────▲
//! ```
//!
//! `entry` holds the tests made before the first iteration and `body` ends with those made after each; they leave their
//! findings in the message, and the logic turns them into verdicts. Iterations share the operators of the body (a `dedup`
//! in it remembers across iterations, as Gremlin has it). If the body has a barrier, an iteration is a scope instance in
//! the strict sense: all its input is there before it starts, EOS or an early end ends it and nothing else, and only then
//! the next one begins; its number is the last of the scope tag. Without barrier messages of several iterations are in the
//! body at once, and an early end in it is the end of iterating: what is inside may still exit, nothing enters any more.
//!
//! What waits to go (again) through entry or body has no bound but the query's account: it is retained, in chunks, so that it grows without a copy.
//! A loop that lets messages out at its end only may be told to go deeper rather than wider once much waits ([`LoopOptions::frontier_max`]).

use std::sync::Arc;

use crate::chunks::hand_over;
use crate::domain::FlatMessages;
use crate::plan::Region;
use crate::region::{RegionFlow, RegionInstance};
use crate::{Chunks, Cx, Domain, Flow, Operator, Queue, Remains};

/// What becomes of a message at the loop's gate.
pub struct Verdict<M> {
    /// Leaves the loop with this.
    pub exit: Option<M>,
    /// Enters the body (again) with this; from `turn` by way of `entry` if the loop tests before every iteration.
    pub again: Option<M>,
}

/// The gate of a loop scope.
pub trait LoopLogic<D: Domain>: Send {
    /// For a message that comes from outside (through `entry`).
    fn enter(&mut self, message: D::Message, cx: &mut Cx<'_, D>) -> Result<Verdict<D::Message>, D::Error>;

    /// For a message that went once more through the body.
    fn turn(&mut self, message: D::Message, cx: &mut Cx<'_, D>) -> Result<Verdict<D::Message>, D::Error>;

    /// As [`Operator::reset`].
    fn reset(&mut self) {}
}

/// Which messages of the frontier go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopPolicy {
    /// Iteration by iteration.
    Bfs,
    /// The latest first: reaches an exit early and keeps the frontier small. A body with a barrier goes iteration by
    /// iteration all the same.
    Dfs,
}

/// How a loop runs.
#[derive(Clone, Copy, Debug)]
pub struct LoopOptions {
    /// Who goes first.
    pub policy: LoopPolicy,
    /// Whether the body holds a barrier, so that iterations are strictly one after another.
    pub has_barrier: bool,
    /// Whether `entry` is passed before every iteration, not only before the first.
    pub tests_every_entry: bool,
    /// Inputs worked on together; 1 finishes one before the next is taken.
    pub inputs_at_once: usize,
    /// Messages that wait, from which on the latest go first whatever the policy says: as wide as the frontier has become, so wide it stays, but for a
    /// few batches for each iteration. `usize::MAX` where the order of iterations means something. Of no use with a barrier.
    pub frontier_max: usize,
}

/// The running loop.
pub struct LoopScope<D: Domain, L: LoopLogic<D>> {
    logic: L,
    entry: RegionInstance<D>,
    body: RegionInstance<D>,
    options: LoopOptions,
    /// Went through the body and waits to be tested again before the next iteration; retained.
    returning: Chunks<D::Message, FlatMessages<D>>,
    /// Waits to enter the body; retained.
    frontier: Chunks<D::Message, FlatMessages<D>>,
    entry_out: Queue<D::Message>,
    body_out: Queue<D::Message>,
    /// An iteration of a body with a barrier is under way.
    in_iteration: bool,
    /// The iteration that is or was last under way, from 1; 0 before the first.
    iteration: u64,
    /// Messages at the front of the frontier that belong to the iteration under way.
    iteration_left: usize,
}

impl<D: Domain, L: LoopLogic<D>> LoopScope<D, L> {
    /// A loop that has seen nothing yet. An `entry` without nodes passes everything on.
    pub fn new(logic: L, entry: Arc<Region<D>>, body: Arc<Region<D>>, options: LoopOptions) -> Self {
        LoopScope {
            logic,
            entry: RegionInstance::new(entry),
            body: RegionInstance::new(body),
            options,
            returning: Chunks::new(),
            frontier: Chunks::new(),
            entry_out: Queue::new(),
            body_out: Queue::new(),
            in_iteration: false,
            iteration: 0,
            iteration_left: 0,
        }
    }

    fn apply(
        &mut self,
        verdict: Verdict<D::Message>,
        to_entry: bool,
        out: &mut Queue<D::Message>,
        cx: &mut Cx<'_, D>,
    ) -> Result<(), D::Error> {
        out.extend(verdict.exit);
        let Some(message) = verdict.again else { return Ok(()) };
        let size = D::size(&message) as isize;
        if to_entry {
            if self.entry.is_completed() {
                return Ok(());
            }
            self.returning.push_back(message);
        } else {
            // With a barrier an early end concerns its own iteration; this is about the next.
            if self.body.is_completed() && !self.options.has_barrier {
                return Ok(());
            }
            if self.depth_first() {
                self.frontier.push_front(message);
            } else {
                self.frontier.push_back(message);
            }
        }
        D::retain(cx.context, size)
    }

    fn depth_first(&self) -> bool {
        self.options.policy == LoopPolicy::Dfs && !self.options.has_barrier
    }

    /// Judges what waits at the gate; `false` if it has to pause.
    fn judge(&mut self, out: &mut Queue<D::Message>, cx: &mut Cx<'_, D>) -> Result<bool, D::Error> {
        while !cx.should_yield(out) {
            if let Some(message) = self.body_out.pop_front() {
                let verdict = self.logic.turn(message, cx)?;
                self.apply(verdict, self.options.tests_every_entry, out, cx)?;
            } else if let Some(message) = self.entry_out.pop_front() {
                let verdict = self.logic.enter(message, cx)?;
                self.apply(verdict, false, out, cx)?;
            } else {
                return Ok(true);
            }
            cx.charge(1);
        }
        Ok(false)
    }

    /// Whether so much waits that the latest go first.
    fn is_wide(&self) -> bool {
        let LoopOptions { policy, has_barrier, frontier_max, .. } = self.options;
        policy == LoopPolicy::Bfs && !has_barrier && self.frontier.len() + self.returning.len() > frontier_max
    }

    /// Moves up to `limit` messages from the frontier into the body.
    fn feed_body(&mut self, limit: usize, cx: &mut Cx<'_, D>) -> usize {
        let latest = self.is_wide();
        feed(&mut self.frontier, &mut self.body, limit, latest, cx)
    }

    /// Does what there is to do before the body: tests what came in or returned; `false` if there is nothing.
    fn run_entry(&mut self, cx: &mut Cx<'_, D>) -> Result<bool, D::Error> {
        let latest = self.is_wide();
        if !self.entry.has_work() && feed(&mut self.returning, &mut self.entry, cx.batch_rows_limit, latest, cx) == 0 {
            return Ok(false);
        }
        self.entry.run(&mut self.entry_out, cx)?;
        Ok(true)
    }

    /// Runs a loop without barrier; `Ready` when nothing is left inside.
    fn work_off(&mut self, out: &mut Queue<D::Message>, cx: &mut Cx<'_, D>) -> Result<Flow, D::Error> {
        let depth_first = self.depth_first();
        let frontier_limit = if depth_first { 1 } else { cx.batch_rows_limit };
        loop {
            if !self.judge(out, cx)? {
                return Ok(Flow::More);
            }
            if self.body.has_work() {
                self.body.run(&mut self.body_out, cx)?;
            } else if (depth_first || self.entry.has_work() || self.is_wide()) && self.run_entry(cx)? {
                // What returned goes on before what waits, and what a turn left in the entry before what came out of it: wherever turns
                // end, rows go the same way.
            } else if self.feed_body(frontier_limit, cx) == 0 && !self.run_entry(cx)? {
                return Ok(Flow::Ready);
            }
        }
    }

    /// Runs whole iterations until the frontier is empty.
    fn iterate(&mut self, out: &mut Queue<D::Message>, cx: &mut Cx<'_, D>) -> Result<Flow, D::Error> {
        loop {
            if !self.judge(out, cx)? {
                return Ok(Flow::More);
            }
            if self.in_iteration {
                self.run_iteration(cx)?;
            } else if !self.run_entry(cx)? {
                if self.frontier.is_empty() {
                    return Ok(Flow::Ready);
                }
                self.in_iteration = true;
                self.iteration += 1;
                self.iteration_left = self.frontier.len();
            }
        }
    }

    /// Gives the iteration under way a turn, and ends it if it is over.
    fn run_iteration(&mut self, cx: &mut Cx<'_, D>) -> Result<(), D::Error> {
        if self.iteration_left > 0 && !self.body.is_completed() && !self.body.has_work() {
            self.iteration_left -= self.feed_body(self.iteration_left.min(cx.batch_rows_limit), cx);
            if self.iteration_left == 0 {
                self.body.close();
            }
        }
        cx.tag.push(self.iteration);
        let flow = self.body.run(&mut self.body_out, cx);
        cx.tag.pop();
        if flow? == RegionFlow::Finished {
            // After an early end the rest of the iteration's input is not wanted.
            let unwanted = self.frontier.drain().take(std::mem::take(&mut self.iteration_left));
            cx.give_back(unwanted.map(|message| D::size(&message)).sum());
            self.in_iteration = false;
            self.body.reopen();
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.returning.clear();
        self.frontier.clear();
        self.entry_out.clear();
        self.body_out.clear();
        self.in_iteration = false;
        self.iteration = 0;
        self.iteration_left = 0;
    }
}

/// Moves up to `limit` retained messages into a region; says how many. The `latest` are the last of them, in their order, and so few of a batch that
/// what comes of them in many iterations is not much.
fn feed<D: Domain>(
    from: &mut Chunks<D::Message, FlatMessages<D>>,
    to: &mut RegionInstance<D>,
    limit: usize,
    latest: bool,
    cx: &mut Cx<'_, D>,
) -> usize {
    /// One part in so many of a batch.
    const PART: usize = 16;
    let count = if latest { limit / PART } else { limit }.max(1).min(from.len());
    let mut size = 0;
    let give = |message| {
        size += D::size(&message);
        to.push(message);
    };
    match latest {
        true => from.split_last(count).into_iter().for_each(give),
        false => from.drain().take(count).for_each(give),
    }
    cx.give_back(size);
    cx.charge(count);
    count
}

impl<D: Domain, L: LoopLogic<D>> Operator<D> for LoopScope<D, L> {
    fn process(
        &mut self,
        input: &mut Queue<D::Message>,
        out: &mut Queue<D::Message>,
        cx: &mut Cx<'_, D>,
    ) -> Result<Flow, D::Error> {
        loop {
            if self.options.has_barrier {
                // Iterations begin when all input is there.
                if !self.judge(out, cx)? {
                    return Ok(Flow::More);
                }
                if self.entry.has_work() {
                    self.entry.run(&mut self.entry_out, cx)?;
                    continue;
                }
            } else if self.work_off(out, cx)? == Flow::More {
                return Ok(Flow::More);
            }
            if input.is_empty() {
                return Ok(Flow::Ready);
            }
            if cx.should_yield(out) {
                return Ok(Flow::More);
            }
            // Depth first, what came in first is done before the next begins, however much of it is there.
            let inputs_at_once = if self.depth_first() { 1 } else { self.options.inputs_at_once.max(1) };
            for _ in 0..inputs_at_once {
                let Some(message) = input.pop_front() else { break };
                cx.charge(1);
                self.entry.push(message);
            }
        }
    }

    fn finish(&mut self, out: &mut Queue<D::Message>, cx: &mut Cx<'_, D>) -> Result<Flow, D::Error> {
        if self.options.has_barrier { self.iterate(out, cx) } else { self.work_off(out, cx) }
    }

    fn reopen(&mut self) {
        self.entry.reopen();
        self.body.reopen();
        self.iteration = 0;
    }

    fn release(&mut self, cx: &mut Cx<'_, D>) {
        self.entry.release(cx);
        self.body.release(cx);
        cx.give_back(self.frontier.drain().chain(self.returning.drain()).map(|message| D::size(&message)).sum());
        self.iteration_left = 0;
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        for queue in [&mut self.returning, &mut self.frontier].into_iter().filter(|queue| !queue.is_empty()) {
            remains.push(Box::new(std::mem::take(queue)));
        }
        hand_over(&mut self.entry_out, remains);
        hand_over(&mut self.body_out, remains);
        self.entry.surrender(remains);
        self.body.surrender(remains);
    }

    fn cancel(&mut self) {
        self.entry.cancel();
        self.body.cancel();
        self.clear();
    }

    fn reset(&mut self) {
        self.entry.reset();
        self.body.reset();
        self.clear();
        self.logic.reset();
    }
}
