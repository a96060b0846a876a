//! What happens to the rows of large queries when they end: who frees them, and when the last of the query is gone.

use super::*;
use crate::kit::steps::{Branch, Emit, Loop, Policy, Step, build};
use crate::kit::{Collect, Integers, Ledger, Slot, rows, task};
use crate::task::LARGE_UNITS;
use crate::{Control, Queue, Sink};

const ROWS: i64 = 10_000;

/// An executor driven by hand, with a thread that frees.
fn executor() -> (Executor<Integers>, std::thread::JoinHandle<()>) {
    let (mut executors, thread) = executors(1);
    (executors.remove(0), thread)
}

/// Several that know each other.
fn executors(count: usize) -> (Vec<Executor<Integers>>, std::thread::JoinHandle<()>) {
    let (undertaker, thread) = Undertaker::start().expect("a thread");
    let peers = Arc::new(Peers::new(crate::SpreadOptions::default()));
    let all: Vec<_> = (0..count).map(|number| Arc::new(Shared::new(number, peers.clone()))).collect();
    peers.introduce(&all);
    (all.into_iter().map(|shared| Executor::new(shared, 4096, Some(undertaker.clone()))).collect(), thread)
}

fn submit(executor: &Executor<Integers>, id: u64, task: Task<Integers>) -> TaskHandle<Integers> {
    let waker = Waker::of(&executor.shared, id);
    let handle = TaskHandle { cancel: task.cancel_token(), waker: Some(waker) };
    executor.shared.begin(Tenant::default(), id, task);
    handle
}

/// A loop without an end.
fn forever(body: Vec<Step>) -> Step {
    let (times, inputs_at_once) = (u32::MAX, usize::MAX);
    Step::Loop(Loop {
        id: 0,
        body,
        times,
        until: None,
        tests_first: false,
        emit: Emit::Never,
        dfs: false,
        inputs_at_once,
        frontier_max: usize::MAX,
    })
}

/// A query that takes long to free, and whether something of it is left.
fn large(steps: &[Step]) -> (Task<Integers>, Slot, std::sync::Weak<()>) {
    large_of(ROWS, steps)
}

fn large_of(count: i64, steps: &[Step]) -> (Task<Integers>, Slot, std::sync::Weak<()>) {
    let (slot, last) = (Slot::default(), Arc::new(()));
    let left = Arc::downgrade(&last);
    let ledger = Ledger { last: Some(last), ..Ledger::default() };
    let sink = Box::new(Collect { rows: Vec::new(), slot: slot.clone() });
    (Task::new(build(steps, 64).plan, rows(0..count), ledger, sink, Control::unlimited(), false), slot, left)
}

/// Runs a large query for some turns and cancels it; its executor has its rows then.
fn cancelled(executor: &mut Executor<Integers>, steps: &[Step]) -> std::sync::Weak<()> {
    cancelled_after(3, executor, large(steps))
}

fn cancelled_after(
    turns: usize,
    executor: &mut Executor<Integers>,
    (task, slot, left): (Task<Integers>, Slot, std::sync::Weak<()>),
) -> std::sync::Weak<()> {
    let handle = submit(executor, 0, task);
    for _ in 0..turns {
        assert!(executor.receive());
        executor.turn();
    }
    handle.cancel();
    assert!(executor.receive());
    assert_eq!(slot.only().result, Err(crate::kit::TestError::Interrupted(Interrupt::Cancelled)), "told at once");
    left
}

#[test]
fn an_executor_with_nothing_to_do_frees_rows_slice_by_slice() {
    let (mut executor, thread) = executor();
    let left = cancelled(&mut executor, &[forever(vec![Step::Add(1)])]);
    let mut count = executor.remains.count();
    assert_eq!(count as i64, ROWS);
    assert!(left.upgrade().is_some());
    while !executor.remains.is_empty() {
        assert!(executor.receive());
        assert!(count - executor.remains.count() <= 4096, "a look at the inbox in between");
        count = executor.remains.count();
    }
    drop(executor);
    thread.join().expect("it ends with its executors");
    assert!(left.upgrade().is_none());
}

#[test]
fn of_much_an_idle_executor_frees_a_part() {
    let (mut all, thread) = executors(2);
    let [mut one, mut other] = [all.remove(0), all.remove(0)];
    let left = cancelled_after(60, &mut one, large_of(1, &[forever(vec![Step::Expand(2)])]));
    let count = one.remains.count();
    assert!(count > 50_000, "{count} rows");
    // Nobody is idle.
    assert!(one.receive());
    assert!(other.shared.lock().remains.is_empty() && one.remains.count() < count);
    other.shared.idle_since_ns.store(1, Ordering::Relaxed);
    let count = one.remains.count();
    assert!(one.receive());
    assert_eq!(other.shared.idle_since_ns.load(Ordering::Relaxed), 0, "it was asked once");
    assert!(other.receive());
    let counts = [one.remains.count(), other.remains.count()];
    assert!(counts.iter().all(|own| (count / 3..count * 2 / 3).contains(own)), "{counts:?} of {count}");
    while !one.remains.is_empty() {
        assert!(one.receive());
    }
    assert!(left.upgrade().is_some(), "the other one has something yet");
    while !other.remains.is_empty() {
        assert!(other.receive());
    }
    drop((one, other));
    thread.join().expect("it ends with its executors");
    assert!(left.upgrade().is_none());
}

#[test]
fn an_executor_that_is_to_stop_is_left_nothing() {
    let (mut all, thread) = executors(2);
    let [mut one, other] = [all.remove(0), all.remove(0)];
    let left = cancelled_after(60, &mut one, large_of(1, &[forever(vec![Step::Expand(2)])]));
    other.shared.idle_since_ns.store(1, Ordering::Relaxed);
    other.shared.lock().stop = true;
    while !one.remains.is_empty() {
        assert!(one.receive());
    }
    assert!(other.shared.lock().remains.is_empty());
    drop((one, other));
    thread.join().expect("it ends with its executors");
    assert!(left.upgrade().is_none());
}

#[test]
fn rows_are_left_to_the_thread_when_somebody_comes() {
    let (mut executor, thread) = executor();
    let left = cancelled(&mut executor, &[forever(vec![Step::Add(1)])]);
    let (small, slot) = task(&build(&[], 2).plan, rows([7]), Control::unlimited());
    submit(&executor, 1, small);
    assert!(executor.receive());
    assert_eq!(executor.remains.count() as i64, ROWS, "the query comes first");
    executor.turn();
    assert_eq!(slot.only().values(), [7]);
    assert!(executor.remains.is_empty());
    drop(executor);
    thread.join().expect("it ends with its executors");
    assert!(left.upgrade().is_none());
}

#[test]
fn rows_are_found_wherever_they_are() {
    let inner = || forever(vec![Step::Add(1)]);
    let cases = [
        ("a loop", vec![inner()]),
        ("a loop in the arm of a scope", vec![branch(vec![vec![Step::Expand(500), inner()]])]),
        ("a loop in an arm of a fork", vec![Step::Fork { arms: vec![vec![inner()], vec![]], inputs_at_once: 1 << 20 }]),
        ("a spread", vec![Step::Spread(vec![inner()])]),
    ];
    for (name, steps) in cases {
        let (task, _, _) = large(&steps);
        let (mut executor, thread) = executor();
        let handle = submit(&executor, 0, task);
        for _ in 0..3 {
            assert!(executor.receive());
            executor.turn();
        }
        handle.cancel();
        assert!(executor.receive());
        // Nothing ends in these plans: what went in is there, or more.
        let found = executor.remains.count() as i64;
        assert!(found >= ROWS * 9 / 10, "{name}: {found} rows");
        drop(executor);
        thread.join().expect("it ends with its executors");
    }
}

fn branch(arms: Vec<Vec<Step>>) -> Step {
    Step::Branch { kind: Branch::FlatMap, arms, policy: Policy::Dfs, max_instances: 8, arm_rows_limit: 64 }
}

#[test]
fn an_executor_that_stops_leaves_nothing() {
    let (mut executor, thread) = executor();
    let left = cancelled(&mut executor, &[forever(vec![Step::Add(1)])]);
    executor.stop();
    drop(executor);
    thread.join().expect("it ends with its executors");
    assert!(left.upgrade().is_none());
}

#[test]
fn what_has_done_much_or_has_many_operators_is_not_freed_by_who_tells_the_end() {
    let many = (0..300).map(|_| Step::Add(1)).collect::<Vec<_>>();
    let cases = [
        ("a row through a few steps", vec![Step::Add(1)], 1, false),
        ("a row through hundreds of steps", many, 1, true),
        ("many rows", vec![Step::Add(1), Step::Add(1)], LARGE_UNITS as i64, true),
    ];
    for (name, steps, count, is_large) in cases {
        let (task, slot) = task(&build(&steps, 64).plan, rows(0..count), Control::unlimited());
        let (mut executor, thread) = executor();
        submit(&executor, 0, task);
        while slot.count() == 0 {
            assert!(executor.receive());
            executor.turn();
        }
        assert_eq!(slot.only().ledger.was_large, Some(is_large), "{name}");
        drop(executor);
        thread.join().expect("it ends with its executors");
    }
}

/// A sink that does not want something large of the context, and keeps what frees it.
struct GivesBack {
    large: std::collections::VecDeque<i64>,
    frees: Arc<std::sync::Mutex<Option<crate::Frees>>>,
}

impl Sink<Integers> for GivesBack {
    fn deliver(
        &mut self,
        rows: &mut Queue<crate::kit::Row>,
        _ledger: &mut Ledger,
        _waker: &Waker<Integers>,
    ) -> Result<crate::Delivery, crate::kit::TestError> {
        rows.clear();
        Ok(crate::Delivery::Accepted)
    }

    fn complete(self: Box<Self>, _context: Ledger, outcome: crate::Outcome<Integers>) {
        outcome.frees.free_in_pieces(Box::new(self.large));
        *self.frees.lock().unwrap() = Some(outcome.frees);
    }
}

#[test]
fn what_a_sink_gives_back_is_freed_with_the_rows_and_later_by_the_thread() {
    for is_large in [true, false] {
        let (mut executor, thread) = executor();
        let (last, frees) = (Arc::new(()), Arc::default());
        let left = Arc::downgrade(&last);
        let ledger = Ledger { last: is_large.then(|| last.clone() as _), ..Ledger::default() };
        drop(last);
        let sink = Box::new(GivesBack { large: (0..ROWS).collect(), frees: Arc::clone(&frees) });
        let plan = build(&[forever(vec![Step::Add(1)])], 64).plan;
        let handle = submit(&executor, 0, Task::new(plan, rows(0..ROWS), ledger, sink, Control::unlimited(), false));
        assert!(executor.receive());
        executor.turn();
        handle.cancel();
        assert!(executor.receive());
        assert_eq!(executor.remains.count() as i64, if is_large { 2 * ROWS } else { 0 });
        assert_eq!(left.upgrade().is_some(), is_large);
        while !executor.remains.is_empty() {
            assert!(executor.receive());
        }
        let frees = frees.lock().unwrap().take().expect("the end was told");
        let late = Arc::new(());
        let weak = Arc::downgrade(&late);
        frees.free_in_pieces(Box::new(std::collections::VecDeque::from([late])));
        assert!(executor.remains.is_empty(), "its end is told");
        drop((executor, frees));
        thread.join().expect("it ends with its executors");
        assert!(weak.upgrade().is_none() && left.upgrade().is_none());
    }
}
