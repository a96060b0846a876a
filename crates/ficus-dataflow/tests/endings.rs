//! Every way a query can end, at every turn at which it can: nothing stays on its account, its sink hears once.

mod kit;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ficus_dataflow::Waker;
use ficus_dataflow::task::TaskState;
use ficus_dataflow::{CancelToken, Control, Delivery, Interrupt, Outcome, Queue, Sink, Task};
use kit::random::PlanMaker;
use kit::reference::evaluate;
use kit::steps::{Branch, Emit, Loop, Policy, Step, build};
use kit::{Collect, Integers, Ledger, Row, Slot, TestClock, TestError, rows, task};

/// Scopes of all kinds, three deep, with barriers, accounts and more than one instance.
fn plan() -> Vec<Step> {
    let repeat = |barrier: bool| {
        let mut body = vec![Step::Expand(2), Step::Add(1)];
        if barrier {
            body.push(Step::Sort);
        }
        Step::Loop(Loop {
            id: u32::from(barrier),
            body,
            times: 3,
            until: Some((7, 0)),
            tests_first: true,
            emit: Emit::After,
            dfs: !barrier,
            inputs_at_once: 2,
            frontier_max: usize::MAX,
        })
    };
    let inner = Step::Branch {
        kind: Branch::FlatMap,
        arms: vec![vec![repeat(true), Step::Dedup { by_value: true }]],
        policy: Policy::Bfs,
        max_instances: 3,
        arm_rows_limit: 2,
    };
    let fork = Step::Fork { arms: vec![vec![inner, Step::Sort], vec![repeat(false)]], inputs_at_once: 1 };
    let outer = Step::Branch {
        kind: Branch::FlatMap,
        arms: vec![vec![Step::Expand(3), fork]],
        policy: Policy::Dfs,
        max_instances: 2,
        arm_rows_limit: 4,
    };
    vec![outer, Step::Sort]
}

fn interrupted(interrupt: Interrupt) -> Result<(), TestError> {
    Err(TestError::Interrupted(interrupt))
}

#[test]
fn cancellation_at_every_turn_settles_the_account() {
    let plan = build(&plan(), 3).plan;
    for quota in [1, 7] {
        let mut turns = 0;
        loop {
            let control = Control::unlimited();
            let cancel = control.cancel.clone();
            let (mut task, slot) = task(&plan, rows([0, 10, 20]), control);
            let mut state = TaskState::Runnable;
            for _ in 0..turns {
                state = task.run(quota, &Waker::detached());
            }
            let units = task.work_units();
            if state == TaskState::Done {
                break;
            }
            cancel.cancel();
            assert_eq!(task.run(quota, &Waker::detached()), TaskState::Done);
            assert_eq!(task.run(quota, &Waker::detached()), TaskState::Done, "nothing comes after the end");
            drop(task);
            let end = slot.only();
            assert_eq!(end.result, interrupted(Interrupt::Cancelled));
            assert_eq!(end.ledger.retained(), 0, "cancelled after {turns} turns of {quota}");
            assert_eq!(end.work_units, units, "work after cancellation");
            turns += if turns < 400 { 1 } else { 17 };
        }
        assert!(turns > 50, "{turns} turns");
    }
}

#[test]
fn a_deadline_at_every_turn_settles_the_account() {
    let plan = build(&plan(), 3).plan;
    let mut turns = 0;
    loop {
        let clock = Arc::new(TestClock::default());
        let control = Control { cancel: CancelToken::default(), deadline_ns: Some(1), clock: clock.clone() };
        let (mut task, slot) = task(&plan, rows([0, 10, 20]), control);
        let mut state = TaskState::Runnable;
        for _ in 0..turns {
            state = task.run(11, &Waker::detached());
        }
        if state == TaskState::Done {
            break;
        }
        clock.0.store(1, Ordering::SeqCst);
        assert_eq!(task.run(11, &Waker::detached()), TaskState::Done);
        let end = slot.only();
        assert_eq!(end.result, interrupted(Interrupt::DeadlineExceeded));
        assert_eq!(end.ledger.retained(), 0, "after {turns} turns");
        turns += 1;
    }
    assert!(turns > 50);
}

#[test]
fn a_task_that_is_dropped_is_cancelled() {
    let plan = build(&plan(), 3).plan;
    for turns in [0, 1, 10, 40] {
        let (mut task, slot) = task(&plan, rows([0, 10, 20]), Control::unlimited());
        for _ in 0..turns {
            task.run(7, &Waker::detached());
        }
        drop(task);
        let end = slot.only();
        assert_eq!(end.result, interrupted(Interrupt::Cancelled));
        assert_eq!(end.ledger.retained(), 0);
    }
}

#[test]
fn random_plans_can_be_stopped_anywhere() {
    for seed in 0..300 {
        let steps = PlanMaker::new(seed, seed % 2 == 0).plan();
        if evaluate(&steps, [0, 10]).is_err() {
            continue;
        }
        let plan = build(&steps, 2).plan;
        for turns in 0..30 {
            let (mut task, slot) = task(&plan, rows([0, 10]), Control::unlimited());
            let mut state = TaskState::Runnable;
            for _ in 0..turns {
                state = task.run(5, &Waker::detached());
            }
            drop(task);
            assert_eq!(slot.only().ledger.retained(), 0, "seed {seed}, {turns} turns: {steps:?}");
            if state == TaskState::Done {
                break;
            }
        }
    }
}

#[test]
fn an_early_end_gives_back_what_cancelled_loops_held() {
    // Each instance is ended by its first row, while its loop holds many.
    let repeat = Step::Loop(Loop {
        id: 0,
        body: vec![Step::Expand(4)],
        times: 6,
        until: None,
        tests_first: false,
        emit: Emit::After,
        dfs: false,
        inputs_at_once: 1,
        frontier_max: usize::MAX,
    });
    let arms = vec![vec![repeat.clone(), Step::Keep { modulus: 5, rest: 3 }]];
    let scope = Step::Branch { kind: Branch::Where, arms, policy: Policy::Fifo, max_instances: 1, arm_rows_limit: 1 };
    for steps in [vec![scope], vec![repeat, Step::Limit(9)]] {
        let mut most = Vec::new();
        for inputs in [1, 100] {
            let end = kit::run(&build(&steps, 4).plan, rows(0..inputs), 50);
            assert_eq!(end.result, Ok(()));
            assert_eq!(end.ledger.retained(), 0, "{steps:?}");
            most.push(end.ledger.retained_max());
        }
        assert!(most[1] <= most[0] + 1024, "instances that are over still count: {most:?}");
    }
}

#[test]
fn a_panic_in_an_operator_fails_its_query_with_its_words() {
    let steps = [Step::Expand(9), Step::Sort, Step::PanicAt(5), Step::Add(1)];
    let (mut task, slot) = task(&build(&steps, 2).plan, rows([0]), Control::unlimited());
    while task.run(3, &Waker::detached()) != TaskState::Done {}
    let end = slot.only();
    assert!(
        matches!(&end.result, Err(TestError::Panicked(text)) if text.contains("a planned panic")),
        "{:?}",
        end.result
    );
    assert_eq!(end.ledger.retained(), 0);
    assert!(end.rows.len() <= 5);
}

/// A sink that misbehaves.
struct Bad {
    slot: Slot,
    panics_in_deliver: bool,
    fails_in_deliver: bool,
    panics_in_complete: bool,
}

impl Sink<Integers> for Bad {
    fn deliver(&mut self, _: &mut Queue<Row>, _: &mut Ledger, _: &Waker<Integers>) -> Result<Delivery, TestError> {
        assert!(!self.panics_in_deliver, "no delivery");
        if self.fails_in_deliver { Err(TestError::TooMuchRetained) } else { Ok(Delivery::Accepted) }
    }

    fn complete(self: Box<Self>, context: Ledger, outcome: Outcome<Integers>) {
        let slot = self.slot.clone();
        let panics = self.panics_in_complete;
        let collect = Box::new(Collect { rows: Vec::new(), slot });
        collect.complete(context, outcome);
        assert!(!panics, "no completion");
    }
}

#[test]
fn a_sink_that_panics_or_fails_hears_of_the_end_once_and_harms_nobody() {
    for fault in 0..8 {
        let slot = Slot::default();
        let sink = Bad {
            slot: slot.clone(),
            panics_in_deliver: fault & 1 != 0,
            fails_in_deliver: fault & 2 != 0,
            panics_in_complete: fault & 4 != 0,
        };
        // `Accepted` without taking anything must not spin within a turn; cancel ends it.
        let control = Control::unlimited();
        let cancel = control.cancel.clone();
        let plan = build(&[Step::Expand(3)], 2).plan;
        let mut task = Task::new(plan, rows([0]), Ledger::default(), Box::new(sink), control, false);
        for _ in 0..10 {
            task.run(100, &Waker::detached());
        }
        cancel.cancel();
        task.run(100, &Waker::detached());
        drop(task);
        let result = slot.only().result;
        match fault & 3 {
            0 => assert_eq!(result, interrupted(Interrupt::Cancelled)),
            2 => assert_eq!(result, Err(TestError::TooMuchRetained)),
            _ => assert!(matches!(result, Err(TestError::Panicked(_)))),
        }
    }
}
