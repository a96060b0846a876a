//! A domain of integers, a small language of plans over it, and the pieces that run them.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod choices;
pub mod operators;
pub mod random;
pub mod reference;
pub mod scopes;
pub mod steps;

use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ficus_dataflow::Waker;
use ficus_dataflow::task::TaskState;
use ficus_dataflow::{Clock, Control, Delivery, Domain, Heavy, Interrupt, Outcome, Plan, Queue, Sink, Task};

/// One row: a number, the counters of the loops it is in, and what the last test found.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row {
    pub value: i64,
    /// (loop, iterations), innermost last.
    pub loops: Vec<(u32, u32)>,
    pub mark: bool,
}

impl Row {
    pub fn new(value: i64) -> Row {
        Row { value, ..Row::default() }
    }
}

pub fn rows(values: impl IntoIterator<Item = i64>) -> Vec<Row> {
    values.into_iter().map(Row::new).collect()
}

/// What the operators of a test query share.
#[derive(Default)]
pub struct Ledger {
    /// Messages the runtime says it holds, and the most it held; shared by the parts of a query.
    pub account: Arc<(AtomicIsize, AtomicIsize)>,
    /// Refuse to retain more than this.
    pub retained_limit: Option<isize>,
    /// Dropped when nothing is left of a query that takes long to free; none: it does not.
    pub last: Option<Arc<dyn Send + Sync>>,
    /// What operators noted, with the scope tag they were in.
    pub trace: Vec<(i64, Vec<u64>)>,
    /// Whether its query was large when it ended, once it was asked what takes long to free.
    pub was_large: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TestError {
    Interrupted(Interrupt),
    Panicked(String),
    TooMuchRetained,
    Planned,
}

impl From<Interrupt> for TestError {
    fn from(interrupt: Interrupt) -> TestError {
        TestError::Interrupted(interrupt)
    }
}

impl Ledger {
    pub fn retained(&self) -> isize {
        self.account.0.load(Ordering::SeqCst)
    }

    pub fn retained_max(&self) -> isize {
        self.account.1.load(Ordering::SeqCst)
    }

    /// Takes so many messages more, or gives them back.
    pub fn count(&self, messages: isize) -> isize {
        let retained = self.account.0.fetch_add(messages, Ordering::SeqCst) + messages;
        self.account.1.fetch_max(retained, Ordering::SeqCst);
        assert!(retained >= 0, "more given back than taken");
        retained
    }
}

pub struct Integers;

impl Domain for Integers {
    type Message = Row;
    type Context = Ledger;
    type Error = TestError;

    fn retain(context: &mut Ledger, messages: isize) -> Result<(), TestError> {
        let retained = context.count(messages);
        match context.retained_limit {
            Some(limit) if messages > 0 && retained > limit => Err(TestError::TooMuchRetained),
            _ => Ok(()),
        }
    }

    fn take_heavy(context: &mut Ledger, is_large: bool) -> Option<Heavy> {
        context.was_large = Some(is_large);
        context.last.take().map(|last| Heavy { parts: Vec::new(), values: Box::new(()), last })
    }

    fn share(context: &Ledger) -> Option<Ledger> {
        let (account, retained_limit) = (context.account.clone(), context.retained_limit);
        Some(Ledger { account, retained_limit, last: None, was_large: None, trace: Vec::new() })
    }

    fn panicked(message: String) -> TestError {
        TestError::Panicked(message)
    }
}

/// How a test query ended.
pub struct End {
    pub rows: Vec<Row>,
    pub result: Result<(), TestError>,
    pub ledger: Ledger,
    pub profile: Option<Vec<ficus_dataflow::NodeProfile>>,
    pub work_units: u64,
}

impl End {
    pub fn values(&self) -> Vec<i64> {
        self.rows.iter().map(|row| row.value).collect()
    }
}

/// Where a [`Collect`] sink leaves the end of its query.
#[derive(Clone, Default)]
pub struct Slot(pub Arc<Mutex<Vec<End>>>);

impl Slot {
    /// The only end that came.
    pub fn only(&self) -> End {
        let mut ends = self.0.lock().unwrap();
        assert_eq!(ends.len(), 1, "a query completes exactly once");
        ends.pop().unwrap()
    }

    pub fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// A sink that is never full.
#[derive(Default)]
pub struct Collect {
    pub rows: Vec<Row>,
    pub slot: Slot,
}

impl Sink<Integers> for Collect {
    fn deliver(
        &mut self,
        rows: &mut Queue<Row>,
        _ledger: &mut Ledger,
        _waker: &Waker<Integers>,
    ) -> Result<Delivery, TestError> {
        self.rows.extend(rows.drain(..));
        Ok(Delivery::Accepted)
    }

    fn complete(self: Box<Self>, context: Ledger, outcome: Outcome<Integers>) {
        let end = End {
            rows: self.rows,
            result: outcome.result,
            ledger: context,
            profile: outcome.profile,
            work_units: outcome.work_units,
        };
        self.slot.0.lock().unwrap().push(end);
    }
}

/// A clock that tests move.
#[derive(Debug, Default)]
pub struct TestClock(pub AtomicUsize);

impl Clock for TestClock {
    fn now_ns(&self) -> u64 {
        self.0.load(Ordering::SeqCst) as u64
    }
}

/// A task with a collecting sink and a ledger.
pub fn task(plan: &Arc<Plan<Integers>>, seeds: Vec<Row>, control: Control) -> (Task<Integers>, Slot) {
    let slot = Slot::default();
    let sink = Collect { rows: Vec::new(), slot: slot.clone() };
    (Task::new(plan.clone(), seeds, Ledger::default(), Box::new(sink), control, true), slot)
}

/// Runs a plan in turns of `quota` on the calling thread.
pub fn run(plan: &Arc<Plan<Integers>>, seeds: Vec<Row>, quota: i64) -> End {
    let (mut task, slot) = task(plan, seeds, Control::unlimited());
    let mut turns = 0_u64;
    while task.run(quota, &Waker::detached()) != TaskState::Done {
        turns += 1;
        assert!(turns < 5_000_000, "the query makes no progress");
    }
    slot.only()
}
