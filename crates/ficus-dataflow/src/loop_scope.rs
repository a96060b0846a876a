//! Loop scopes: a body whose output may enter it again.
//!
//! ```text
//!              ┌─────────── again ───────────┐
//!   input ─▶ entry ─▶ enter ─▶ frontier ─▶ body ─▶ turn ─▶ out
//!                       └──────────── exit ──────────┴─────▲
//! ```
//!
//! `entry` holds the tests made before the first iteration and `body` ends with those made after each; they leave their
//! findings in the message, and the logic turns them into verdicts. Iterations share the operators of the body (a `dedup`
//! in it remembers across iterations, as Gremlin has it). If the body has a barrier, an iteration is a scope instance in
//! the strict sense: all its input is there before it starts, EOS ends it, and only then the next one begins.

use std::sync::Arc;

use crate::plan::Region;
use crate::region::{RegionFlow, RegionInstance};
use crate::{Cx, Domain, Flow, Operator, Queue};

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
    /// The latest first: reaches an exit early and keeps the frontier small.
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
}

/// The running loop.
pub struct LoopScope<D: Domain, L: LoopLogic<D>> {
    logic: L,
    entry: RegionInstance<D>,
    body: RegionInstance<D>,
    options: LoopOptions,
    frontier: Queue<D::Message>,
    entry_out: Queue<D::Message>,
    body_out: Queue<D::Message>,
    /// An iteration of a body with a barrier is under way.
    in_iteration: bool,
}

impl<D: Domain, L: LoopLogic<D>> LoopScope<D, L> {
    /// A loop that has seen nothing yet. An `entry` without nodes passes everything on.
    pub fn new(logic: L, entry: Arc<Region<D>>, body: Arc<Region<D>>, options: LoopOptions) -> Self {
        LoopScope {
            logic,
            entry: RegionInstance::new(entry),
            body: RegionInstance::new(body),
            options,
            frontier: Queue::new(),
            entry_out: Queue::new(),
            body_out: Queue::new(),
            in_iteration: false,
        }
    }

    fn apply(
        &mut self,
        verdict: Verdict<D::Message>,
        to_entry: bool,
        out: &mut Queue<D::Message>,
        cx: &mut Cx<'_, D>,
    ) -> Result<(), D::Error> {
        if let Some(message) = verdict.exit {
            out.push_back(message);
        }
        if let Some(message) = verdict.again
            && !self.body.is_completed()
        {
            if to_entry {
                self.entry.push(message);
                return Ok(());
            }
            D::retain(cx.context, 1)?;
            match self.options.policy {
                LoopPolicy::Bfs => self.frontier.push_back(message),
                LoopPolicy::Dfs => self.frontier.push_front(message),
            }
        }
        Ok(())
    }

    /// Judges what waits at the gate; `false` if it has to pause.
    fn judge(&mut self, out: &mut Queue<D::Message>, cx: &mut Cx<'_, D>) -> Result<bool, D::Error> {
        while !cx.should_pause(out) {
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

    fn feed_body(&mut self, limit: usize, cx: &mut Cx<'_, D>) -> Result<(), D::Error> {
        let count = limit.min(self.frontier.len());
        D::retain(cx.context, -(count as isize))?;
        for message in self.frontier.drain(..count) {
            self.body.push(message);
        }
        Ok(())
    }

    /// One step of a loop without barrier; `None` when nothing is left inside.
    fn step(&mut self, out: &mut Queue<D::Message>, cx: &mut Cx<'_, D>) -> Result<Option<Flow>, D::Error> {
        if !self.judge(out, cx)? {
            return Ok(Some(Flow::More));
        }
        if self.body.has_work() {
            self.body.run(&mut self.body_out, cx)?;
            return Ok(cx.exhausted().then_some(Flow::More).or(Some(Flow::Ready)));
        }
        if !self.frontier.is_empty() {
            let limit = match self.options.policy {
                LoopPolicy::Bfs => cx.batch_rows_limit,
                LoopPolicy::Dfs => 1,
            };
            self.feed_body(limit, cx)?;
            return Ok(Some(Flow::Ready));
        }
        if self.entry.has_work() {
            self.entry.run(&mut self.entry_out, cx)?;
            return Ok(cx.exhausted().then_some(Flow::More).or(Some(Flow::Ready)));
        }
        Ok(None)
    }

    /// Runs what is inside; `Ready` when nothing is left.
    fn work_off(&mut self, out: &mut Queue<D::Message>, cx: &mut Cx<'_, D>) -> Result<Flow, D::Error> {
        loop {
            match self.step(out, cx)? {
                None => return Ok(Flow::Ready),
                Some(Flow::More) => return Ok(Flow::More),
                Some(_) => {}
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
                match self.body.run(&mut self.body_out, cx)? {
                    RegionFlow::More if cx.exhausted() => return Ok(Flow::More),
                    RegionFlow::More => {}
                    RegionFlow::Idle | RegionFlow::Finished => {
                        self.in_iteration = false;
                        self.body.reopen();
                    }
                }
            } else if self.entry.has_work() {
                self.entry.run(&mut self.entry_out, cx)?;
            } else {
                if self.frontier.is_empty() {
                    return Ok(Flow::Ready);
                }
                self.feed_body(self.frontier.len(), cx)?;
                self.body.close();
                self.in_iteration = true;
            }
        }
    }
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
            if cx.should_pause(out) {
                return Ok(Flow::More);
            }
            for _ in 0..self.options.inputs_at_once.max(1) {
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
    }

    fn reset(&mut self) {
        self.entry.reset();
        self.body.reset();
        self.frontier.clear();
        self.entry_out.clear();
        self.body_out.clear();
        self.in_iteration = false;
        self.logic.reset();
    }
}
