//! Spreads on real threads: the same rows in the same order on any number of executors, and every end settles the account.

mod kit;

use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use ficus_dataflow::Waker;
use ficus_dataflow::{
    Control, Delivery, ExecutorOptions, Executors, Interrupt, Outcome, Queue, Sink, SpreadOptions, Task, Tenant,
};
use kit::random::{PlanMaker, Random};
use kit::reference::evaluate;
use kit::steps::{Step, build};
use kit::{Integers, Ledger, Row, TestError, rows};

type End = (Vec<Row>, Result<(), TestError>);

/// Collects rows and tells the test's thread.
struct Tell {
    rows: Vec<Row>,
    ends: Sender<End>,
}

impl Sink<Integers> for Tell {
    fn deliver(&mut self, rows: &mut Queue<Row>, _: &mut Ledger, _: &Waker<Integers>) -> Result<Delivery, TestError> {
        self.rows.extend(rows.drain(..));
        Ok(Delivery::Accepted)
    }

    fn complete(self: Box<Self>, _: Ledger, outcome: Outcome<Integers>) {
        self.ends.send((self.rows, outcome.result)).unwrap();
    }
}

fn start(count: usize) -> Executors<Integers> {
    let spread = SpreadOptions {
        idle_ns: 0,
        after_ns: 0,
        again_after_ns: 0,
        chunk_ns_min: 0,
        chunk_ns_max: 20_000,
        pending_rows_max: 64,
        slot_rows_max: 8,
        ready_rows_max: 64,
        ..SpreadOptions::default()
    };
    Executors::start(&ExecutorOptions { executors: count, turn_quota: 64, spread, ..ExecutorOptions::default() })
        .unwrap()
}

type Account = Arc<(AtomicIsize, AtomicIsize)>;

fn task(steps: &[Step], batch: usize, ends: &Sender<End>) -> (Task<Integers>, Account) {
    let ledger = Ledger::default();
    let account = ledger.account.clone();
    let sink = Tell { rows: Vec::new(), ends: ends.clone() };
    let task = Task::new(build(steps, batch).plan, rows([0, 10]), ledger, Box::new(sink), Control::unlimited(), false);
    (task, account)
}

/// Waits until helpers have noticed the end. They do within a turn; only a test that fails waits long.
fn settled(executors: &Executors<Integers>, account: &Account, at: &str) {
    for _ in 0..100_000 {
        if executors.load() == 0 && account.0.load(Ordering::SeqCst) == 0 {
            return;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    panic!("{} tasks are left, {account:?} is held: {at}", executors.load());
}

#[test]
fn rows_and_their_order_are_the_same_on_any_number_of_threads() {
    let mut times_spread = 0;
    for count in [1, 2, 4] {
        let executors = start(count);
        for seed in 0..400 {
            let steps = PlanMaker::new(seed, true).spread_plan();
            let Ok(expected) = evaluate(&steps, [0, 10]) else { continue };
            let (sender, ends) = channel();
            let (task, account) = task(&steps, [1, 3, 256][seed as usize % 3], &sender);
            let at = format!("seed {seed}, {count} executors: {steps:?}");
            executors.submit(Tenant::default(), task);
            assert_eq!(ends.recv().unwrap(), (expected, Ok(())), "{at}");
            settled(&executors, &account, &at);
        }
        times_spread += executors.times_spread();
    }
    assert!(times_spread > 10, "only {times_spread} helpers");
}

/// Expands to a million rows and lets some through.
fn large() -> Vec<Step> {
    let held = vec![Step::Expand(1000), Step::Keep { modulus: 1000, rest: 7 }];
    vec![Step::Expand(500), Step::Spread(held)]
}

#[test]
fn a_large_query_that_is_cancelled_at_any_moment_gives_everything_back() {
    let executors = start(3);
    let mut random = Random(11);
    let mut cancelled = 0;
    for run in 0..300 {
        let (sender, ends) = channel();
        let (task, account) = task(&large(), 16, &sender);
        let handle = executors.submit(Tenant::default(), task);
        for _ in 0..random.below(20_000) {
            std::hint::spin_loop();
        }
        handle.cancel();
        let (_, result) = ends.recv().unwrap();
        cancelled += usize::from(result == Err(TestError::Interrupted(Interrupt::Cancelled)));
        settled(&executors, &account, &format!("run {run}"));
    }
    assert!(cancelled > 0);
    assert!(executors.times_spread() > 0);
}

#[test]
fn several_queries_spread_at_once_and_a_limit_ends_them() {
    let executors = start(4);
    let inputs = [0, 10].into_iter().flat_map(|seed| seed..seed + 500);
    let expected: Vec<i64> = inputs.flat_map(|row| (row..row + 1000).filter(|value| value % 1000 == 7)).collect();
    let mut accounts = Vec::new();
    let (sender, ends) = channel();
    for limit in 0..24 {
        let mut steps = large();
        steps.push(Step::Limit(limit * 50));
        let (task, account) = task(&steps, 64, &sender);
        accounts.push(account);
        executors.submit(Tenant::numbered(limit as u64 % 3), task);
    }
    let mut counts: Vec<usize> = (0..24)
        .map(|_| {
            let (rows, result) = ends.recv().unwrap();
            assert_eq!(result, Ok(()));
            assert!(rows.iter().map(|row| row.value).eq(expected.iter().copied().take(rows.len())));
            rows.len()
        })
        .collect();
    counts.sort_unstable();
    assert!(counts.into_iter().eq((0..24).map(|limit| (limit * 50).min(expected.len()))));
    for account in &accounts {
        settled(&executors, account, "limits");
    }
}
