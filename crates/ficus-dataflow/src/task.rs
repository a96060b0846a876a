//! A query in execution: its root region, its context and the sink its rows go to.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::estimate::Estimate;
use crate::gate::Gate;
use crate::inbox::Waker;
use crate::operator::OwnPace;
use crate::region::{RegionFlow, RegionInstance};
use crate::undertaker::{Estate, Frees, Undertaker};
use crate::{CancelToken, Control, Cx, Domain, Interrupt, NodeProfile, Plan, Queue, RowsLimits, ScopeTag};

/// What a sink says to rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Took them all.
    Accepted,
    /// Took some or none; it will call the waker when it can take more. The query waits meanwhile and costs nothing.
    Full,
}

/// How a query ended.
pub struct Outcome<D: Domain> {
    /// The error that ended it, if one did.
    pub result: Result<(), D::Error>,
    /// Counters by node, if it was profiled.
    pub profile: Option<Vec<NodeProfile>>,
    /// Work units it used, on all executors.
    pub work_units: u64,
    /// For what the sink does not want of the context, so that nobody waits until it is free.
    pub frees: Frees,
}

/// Where the rows of a query go.
pub trait Sink<D: Domain>: Send {
    /// Takes rows from the front. Never blocks.
    fn deliver(
        &mut self,
        rows: &mut Queue<D::Message>,
        context: &mut D::Context,
        waker: &Waker<D>,
    ) -> Result<Delivery, D::Error>;

    /// Whether it holds rows that it has taken but not handed on, so that the query cannot end yet.
    fn pending(&self) -> bool {
        false
    }

    /// The query is over; gets the context back (to commit, or to drop). Called exactly once, whatever happened.
    fn complete(self: Box<Self>, context: D::Context, outcome: Outcome<D>);
}

/// What a task says after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// Wants another turn.
    Runnable,
    /// Waits for its sink, or an operator in it for something outside.
    Waiting,
    /// Is over; `complete` was called.
    Done,
}

/// Stops a running query.
#[derive(Clone)]
pub struct TaskHandle<D: Domain> {
    pub(crate) cancel: CancelToken,
    pub(crate) waker: Option<Waker<D>>,
}

impl<D: Domain> TaskHandle<D> {
    /// Cancels the query: it fails with [`crate::Interrupt::Cancelled`] at its next check, or at once if it waits.
    pub fn cancel(&self) {
        self.stop(Interrupt::Cancelled);
    }

    /// As [`TaskHandle::cancel`], for this reason.
    pub fn stop(&self, why: Interrupt) {
        self.cancel.stop(why);
        if let Some(waker) = &self.waker {
            waker.end();
        }
    }
}

/// What has used so many work units, ten milliseconds or more, may have made scope instances and buffers in their thousands, which are on no account.
pub(crate) const LARGE_UNITS: u64 = 131_072;

/// A plan of so many nodes is large by its operators and their queues.
const LARGE_NODES: u32 = 256;

/// A query in execution.
pub struct Task<D: Domain> {
    plan: Arc<Plan<D>>,
    /// Dropped when the task completes.
    root: Option<RegionInstance<D>>,
    /// Taken when the task completes.
    context: Option<D::Context>,
    sink: Option<Box<dyn Sink<D>>>,
    control: Control,
    out: Queue<D::Message>,
    tag: ScopeTag,
    profile: Option<Vec<NodeProfile>>,
    work_units: u64,
    /// What it had of its executor, in work units.
    served_units: u64,
    /// What it is likely to have.
    estimate: Option<Arc<Estimate>>,
    /// It ended by itself, with a result.
    succeeded: bool,
    finished: bool,
    /// Frees what takes long to free.
    undertaker: Option<Undertaker>,
    /// What the executor is to free after the end.
    remains: Option<Estate>,
    /// Where it waits when it is larger than others may be for whom there is no place.
    gate: Option<Arc<Gate<D>>>,
}

impl<D: Domain> Task<D> {
    /// A task that will send `seeds` through the plan.
    pub fn new(
        plan: Arc<Plan<D>>,
        seeds: impl IntoIterator<Item = D::Message>,
        context: D::Context,
        sink: Box<dyn Sink<D>>,
        control: Control,
        profiled: bool,
    ) -> Task<D> {
        let mut root = RegionInstance::new(plan.root.clone());
        for seed in seeds {
            root.push(seed);
        }
        root.close();
        let profile = profiled.then(|| vec![NodeProfile::default(); plan.node_count as usize]);
        Task {
            plan,
            root: Some(root),
            context: Some(context),
            sink: Some(sink),
            control,
            out: Queue::new(),
            tag: ScopeTag::root(),
            profile,
            work_units: 0,
            served_units: 0,
            estimate: None,
            succeeded: false,
            finished: false,
            undertaker: None,
            remains: None,
            gate: None,
        }
    }

    /// The same behind a gate.
    pub fn behind(mut self, gate: Option<Arc<Gate<D>>>) -> Task<D> {
        self.gate = gate;
        self
    }

    /// The same, served as one of this size, which learns from it.
    pub fn estimated(mut self, estimate: Arc<Estimate>) -> Task<D> {
        self.estimate = Some(estimate);
        self
    }

    /// Leaves what takes long to free to another thread.
    pub(crate) fn set_undertaker(&mut self, undertaker: Undertaker) {
        self.undertaker = Some(undertaker);
    }

    /// What it held when it ended, if that takes long to free.
    pub(crate) fn take_remains(&mut self) -> Option<Estate> {
        self.remains.take()
    }

    /// The task is served as if it had had `work_units` before.
    pub(crate) fn after(mut self, work_units: u64) -> Task<D> {
        self.work_units = work_units;
        self
    }

    /// The switch that stops it.
    pub fn cancel_token(&self) -> CancelToken {
        self.control.cancel.clone()
    }

    /// Counts what it had of its executor in a turn.
    pub(crate) fn was_served(&mut self, units: u64) {
        self.served_units += units;
    }

    /// What it has had of executors so far, in work units.
    pub(crate) fn served_units(&self) -> u64 {
        // Turns of guests are not counted.
        self.served_units.max(self.work_units)
    }

    /// How large it is for those who share the executor with it, in work units: what it has had, or what it is likely to have.
    pub(crate) fn size_units(&self) -> u64 {
        let served = self.served_units();
        self.estimate.as_ref().map_or(served, |estimate| estimate.size(served))
    }

    /// It is over: others of its kind are likely to be as large.
    pub(crate) fn tell_size(&self) {
        let Some(estimate) = &self.estimate else { return };
        let units = self.served_units() + self.control.cancel.units_elsewhere();
        match self.succeeded {
            true => estimate.learn(units),
            false => estimate.learn_at_least(units),
        }
    }

    /// Work units used so far.
    pub fn work_units(&self) -> u64 {
        self.work_units
    }

    /// Gives the task one turn of about `quota` work units.
    pub fn run(&mut self, quota: i64, waker: &Waker<D>) -> TaskState {
        match catch_unwind(AssertUnwindSafe(|| self.turn(quota, waker, waker.urgent()))) {
            Ok(Ok(state)) => state,
            Ok(Err(error)) => self.complete(Err(error)),
            Err(panic) => self.complete(Err(panicked::<D>(&*panic))),
        }
    }

    /// Runs to the end on the calling thread. For sinks that are never full.
    pub fn run_to_end(mut self) {
        let waker = Waker::detached();
        loop {
            match self.run(i64::from(u16::MAX), &waker) {
                TaskState::Done => return,
                TaskState::Runnable => {}
                // Nobody will call; whoever empties the sink is another thread.
                TaskState::Waiting => std::thread::yield_now(),
            }
        }
    }

    fn turn(&mut self, quota: i64, waker: &Waker<D>, urgent: &AtomicBool) -> Result<TaskState, D::Error> {
        let (Some(root), Some(context), Some(sink)) = (self.root.as_mut(), self.context.as_mut(), self.sink.as_mut())
        else {
            return Ok(TaskState::Done);
        };
        self.control.check().map_err(D::Error::from)?;
        if self.gate.as_ref().is_some_and(|gate| gate.holds(waker)) {
            return Ok(TaskState::Waiting);
        }
        // With less, nothing could ever move.
        let rows_max = self.plan.batch_rows_limit.max(1);
        let mut quota_left = quota;
        let mut parked = false;
        loop {
            if !self.finished {
                let mut cx = Cx {
                    context,
                    control: &self.control,
                    tag: &mut self.tag,
                    batch_rows_limit: rows_max,
                    rows_limits: RowsLimits { few: rows_max, all: rows_max },
                    few_wanted: false,
                    profile: self.profile.as_mut(),
                    quota: quota_left,
                    waker,
                    parked: false,
                    rows_left_outside: false,
                    in_chunk: false,
                    urgent,
                    notes: Vec::new(),
                    own_pace: OwnPace::default(),
                };
                let flow = root.run(&mut self.out, &mut cx);
                parked = cx.parked;
                let units = u64::try_from(quota_left - cx.quota).unwrap_or(0);
                self.work_units += units;
                if let Some(gate) = &self.gate {
                    gate.count(units);
                }
                quota_left = cx.quota;
                self.finished = flow? == RegionFlow::Finished;
            }
            if (!self.out.is_empty() || sink.pending())
                && sink.deliver(&mut self.out, context, waker)? == Delivery::Full
            {
                return Ok(TaskState::Waiting);
            }
            if self.finished && self.out.is_empty() {
                return Ok(self.complete(Ok(())));
            }
            if parked {
                return Ok(TaskState::Waiting);
            }
            if quota_left <= 0 || !self.out.is_empty() || urgent.load(Ordering::Relaxed) {
                return Ok(TaskState::Runnable);
            }
        }
    }

    /// Fails the task if it must stop; for tasks that wait.
    pub(crate) fn fail_if_interrupted(&mut self) -> bool {
        match self.control.check() {
            Ok(()) => false,
            Err(interrupt) => {
                self.complete(Err(interrupt.into()));
                true
            }
        }
    }

    /// Ends the task with `interrupt` whatever it was doing.
    pub(crate) fn abort(&mut self, interrupt: Interrupt) {
        self.complete(Err(interrupt.into()));
    }

    /// Ends the task: releases what its operators hold, then hands context and outcome to the sink, once. A panic in either
    /// stays here, so that it cannot take the executor and its other queries along.
    fn complete(&mut self, mut result: Result<(), D::Error>) -> TaskState {
        let (Some(mut context), Some(sink)) = (self.context.take(), self.sink.take()) else {
            return TaskState::Done;
        };
        let is_large = self.work_units >= LARGE_UNITS || self.plan.node_count >= LARGE_NODES;
        let mut frees = Frees::default();
        if let Some(undertaker) = self.undertaker.take()
            && let Some(heavy) = D::take_heavy(&mut context, is_large)
            && let Some(root) = self.root.take()
        {
            // Nobody waits for millions of rows to be freed one by one: not the client, nor whoever is behind this query on the executor.
            self.remains = Some(undertaker.bury_operators(root, std::mem::take(&mut self.out), heavy));
            frees = Frees::by(undertaker);
        }
        if let Some(mut root) = self.root.take() {
            let released = catch_unwind(AssertUnwindSafe(|| {
                let mut cx = Cx {
                    context: &mut context,
                    control: &self.control,
                    tag: &mut self.tag,
                    batch_rows_limit: 1,
                    rows_limits: RowsLimits { few: 1, all: 1 },
                    few_wanted: false,
                    profile: self.profile.as_mut(),
                    quota: 0,
                    waker: &Waker::detached(),
                    parked: false,
                    rows_left_outside: false,
                    in_chunk: false,
                    urgent: &AtomicBool::new(false),
                    notes: Vec::new(),
                    own_pace: OwnPace::default(),
                };
                root.release(&mut cx);
                // Operators go before the context they may refer to.
                drop(root);
            }));
            if let Err(panic) = released
                && result.is_ok()
            {
                result = Err(panicked::<D>(&*panic));
            }
        }
        let work_units = self.work_units + self.control.cancel.units_elsewhere();
        self.succeeded = result.is_ok();
        let outcome = Outcome { result, profile: self.profile.take(), work_units, frees: frees.clone() };
        // What the sink did not do it cannot be asked again; the panic hook has reported it.
        let _ = catch_unwind(AssertUnwindSafe(|| sink.complete(context, outcome)));
        if let Some(remains) = &mut self.remains {
            remains.add(frees.end_here());
        }
        TaskState::Done
    }
}

impl<D: Domain> Drop for Task<D> {
    /// A task that is dropped before its end is cancelled: its sink hears of every end.
    fn drop(&mut self) {
        self.abort(Interrupt::Cancelled);
    }
}

fn panicked<D: Domain>(panic: &(dyn Any + Send)) -> D::Error {
    let message = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "unknown panic".to_owned());
    D::panicked(message)
}
