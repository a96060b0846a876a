//! One executor driven by hand: its inbox, its turns and the moments at which another thread may come in between.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use super::*;
use crate::kit::choices::Choices;
use crate::kit::steps::{Loop, Step, build};
use crate::kit::{Integers, Ledger, Row, Slot, TestClock, TestError, rows, task};
use crate::{CancelToken, Clock, Control, Delivery, Estimate, Outcome, Queue, Sink, Weight};

const QUOTA: i64 = 16;

fn executor() -> Executor<Integers> {
    Executor::new(Arc::new(Shared::new(0, Arc::new(Peers::new(SpreadOptions::default())))), QUOTA, None)
}

fn poll(executor: &mut Executor<Integers>) -> bool {
    let shared = executor.shared.clone();
    let inbox = shared.lock();
    executor.take(inbox)
}

fn submit(executor: &Executor<Integers>, tenant: u64, id: u64, task: Task<Integers>) -> TaskHandle<Integers> {
    submit_for(executor, Tenant::numbered(tenant), id, task)
}

fn submit_for(executor: &Executor<Integers>, tenant: Tenant, id: u64, task: Task<Integers>) -> TaskHandle<Integers> {
    let waker = Waker::of(&executor.shared, id);
    let handle = TaskHandle { cancel: task.cancel_token(), waker: Some(waker) };
    executor.shared.load.fetch_add(1, Ordering::Relaxed);
    executor.shared.lock().new.push_back((tenant, id, task));
    handle
}

/// A plan that never ends and emits nothing.
fn endless() -> Arc<crate::Plan<Integers>> {
    let forever = Loop {
        id: 0,
        body: vec![Step::Add(1)],
        times: u32::MAX,
        until: None,
        tests_first: false,
        emit: crate::kit::steps::Emit::Never,
        dfs: false,
        inputs_at_once: 1,
        frontier_max: usize::MAX,
    };
    build(&[Step::Loop(forever)], 16).plan
}

/// A sink with room for few rows, which another thread takes away.
struct Room {
    capacity: usize,
    held: usize,
    taken: usize,
    waker: Option<Waker<Integers>>,
}

impl Room {
    /// What the other thread does: takes one row, and wakes the query if it asked for that.
    fn take_one(room: &Mutex<Room>) {
        let mut guard = room.lock().unwrap();
        guard.held -= 1;
        guard.taken += 1;
        let waker = guard.waker.take();
        drop(guard);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

struct RoomSink {
    room: Arc<Mutex<Room>>,
    slot: Slot,
    /// Called where the other thread may come in between.
    gap: Box<dyn FnMut() + Send>,
}

impl Sink<Integers> for RoomSink {
    fn deliver(
        &mut self,
        rows: &mut Queue<Row>,
        _: &mut Ledger,
        waker: &Waker<Integers>,
    ) -> Result<Delivery, TestError> {
        (self.gap)();
        let delivery = {
            let mut room = self.room.lock().unwrap();
            let fits = (room.capacity - room.held).min(rows.len());
            rows.drain(..fits);
            room.held += fits;
            if rows.is_empty() {
                Delivery::Accepted
            } else {
                room.waker = Some(waker.clone());
                Delivery::Full
            }
        };
        (self.gap)();
        Ok(delivery)
    }

    fn complete(self: Box<Self>, context: Ledger, outcome: Outcome<Integers>) {
        let end = crate::kit::End {
            rows: Vec::new(),
            result: outcome.result,
            ledger: context,
            profile: None,
            work_units: outcome.work_units,
        };
        self.slot.0.lock().unwrap().push(end);
    }
}

/// One run: at every gap the decisions say whether the other thread takes a row, or cancels.
fn handshake(choices: &Arc<Mutex<Choices>>, count: i64, capacity: usize, may_cancel: bool) {
    let room = Arc::new(Mutex::new(Room { capacity, held: 0, taken: 0, waker: None }));
    let slot = Slot::default();
    let cancel = CancelToken::default();
    let gap = {
        let (choices, room, cancel) = (choices.clone(), room.clone(), cancel.clone());
        let mut left = 10;
        move |handle: Option<&TaskHandle<Integers>>| {
            while left > 0 && room.lock().unwrap().held > 0 && choices.lock().unwrap().below(2) == 1 {
                left -= 1;
                Room::take_one(&room);
            }
            if let Some(handle) = handle
                && may_cancel
                && !cancel.is_cancelled()
                && left > 0
                && choices.lock().unwrap().below(2) == 1
            {
                handle.cancel();
            }
        }
    };
    let mut in_deliver = gap.clone();
    let sink = RoomSink { room: room.clone(), slot: slot.clone(), gap: Box::new(move || in_deliver(None)) };
    let control = Control { cancel: cancel.clone(), ..Control::unlimited() };
    let plan = build(&[Step::Expand(count)], 2).plan;
    let mut executor = executor();
    let task = Task::new(plan, rows([0]), Ledger::default(), Box::new(sink), control, false);
    let handle = submit(&executor, 0, 0, task);
    let mut outside = gap;
    for _ in 0..6 {
        outside(Some(&handle));
        poll(&mut executor);
        outside(Some(&handle));
        executor.turn();
    }
    // From here on the other thread takes all it can, and the executor does all it is told to.
    let mut rounds = 0;
    while slot.count() == 0 {
        let available = room.lock().unwrap().held;
        for _ in 0..available {
            Room::take_one(&room);
        }
        poll(&mut executor);
        let idle = executor.ready.ready() == 0;
        executor.turn();
        let drained = room.lock().unwrap().held == 0;
        assert!(!(idle && drained && slot.count() == 0), "a wake was lost: {}", choices.lock().unwrap().text());
        rounds += 1;
        assert!(rounds < 100, "no end: {}", choices.lock().unwrap().text());
    }
    let end = slot.only();
    if cancel.is_cancelled() {
        assert!(end.result.is_ok() || end.result == Err(TestError::Interrupted(Interrupt::Cancelled)));
    } else {
        assert_eq!(end.result, Ok(()));
        let room = room.lock().unwrap();
        assert_eq!(room.taken + room.held, count as usize);
    }
    assert_eq!(executor.shared.load.load(Ordering::Relaxed), 0);
    assert!(executor.waiting.is_empty());
}

#[test]
fn no_interleaving_of_a_full_sink_loses_a_wake() {
    for (count, capacity) in [(3, 1), (5, 1), (5, 2)] {
        let choices = Arc::new(Mutex::new(Choices::default()));
        let mut runs = 0;
        loop {
            handshake(&choices, count, capacity, false);
            runs += 1;
            if !choices.lock().unwrap().next_run() {
                break;
            }
        }
        assert!(runs > 50, "{runs} interleavings");
    }
}

#[test]
fn no_interleaving_of_a_cancellation_is_lost_or_ends_a_query_twice() {
    let choices = Arc::new(Mutex::new(Choices::default()));
    let mut runs = 0;
    loop {
        handshake(&choices, 4, 1, true);
        runs += 1;
        if !choices.lock().unwrap().next_run() {
            break;
        }
    }
    assert!(runs > 100, "{runs} interleavings");
}

/// A task that waits for a sink nobody empties.
fn stuck(control: Control) -> (Task<Integers>, Slot) {
    let slot = Slot::default();
    let room = Arc::new(Mutex::new(Room { capacity: 1, held: 1, taken: 0, waker: None }));
    let sink = RoomSink { room, slot: slot.clone(), gap: Box::new(|| ()) };
    let plan = build(&[], 2).plan;
    (Task::new(plan, rows([0]), Ledger::default(), Box::new(sink), control, false), slot)
}

#[test]
fn a_waiting_task_is_cancelled_at_the_next_turn() {
    let mut executor = executor();
    let (task, slot) = stuck(Control::unlimited());
    let handle = submit(&executor, 0, 0, task);
    poll(&mut executor);
    executor.turn();
    assert_eq!(executor.waiting.len(), 1);
    handle.cancel();
    poll(&mut executor);
    executor.turn();
    assert_eq!(slot.only().result, Err(TestError::Interrupted(Interrupt::Cancelled)));
}

#[test]
fn waiting_tasks_are_looked_at_although_the_executor_is_busy() {
    for by_deadline in [false, true] {
        let mut executor = executor();
        let clock = Arc::new(TestClock::default());
        let cancel = CancelToken::default();
        let deadline_ns = by_deadline.then_some(10);
        let (task_that_waits, slot) = stuck(Control { cancel: cancel.clone(), deadline_ns, clock: clock.clone() });
        submit(&executor, 0, 0, task_that_waits);
        let (busy, busy_slot) = task(&endless(), rows([0]), Control::unlimited());
        submit(&executor, 1, 1, busy);
        poll(&mut executor);
        executor.turn();
        executor.turn();
        assert_eq!(executor.waiting.len(), 1);
        // The switch alone, without the handle's wake; or time alone.
        if by_deadline {
            clock.0.store(10, Ordering::SeqCst);
        } else {
            cancel.cancel();
        }
        for _ in 0..=BUSY_LOOK_TURNS {
            poll(&mut executor);
            executor.turn();
        }
        let expected = if by_deadline { Interrupt::DeadlineExceeded } else { Interrupt::Cancelled };
        assert_eq!(slot.only().result, Err(TestError::Interrupted(expected)));
        assert_eq!(executor.shared.load.load(Ordering::Relaxed), 1);
        executor.stop();
        assert_eq!(busy_slot.only().result, Err(TestError::Interrupted(Interrupt::ShutDown)));
        assert_eq!(executor.shared.load.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn a_large_task_waits_at_its_gate_and_a_small_one_is_through_before() {
    let mut executor = executor();
    let gate = crate::Gate::new(100);
    let (small, small_slot) = task(&build(&[Step::Add(1)], 16).plan, rows([1]), Control::unlimited());
    submit(&executor, 0, 0, small.behind(Some(gate.clone())));
    poll(&mut executor);
    executor.turn();
    assert_eq!(small_slot.only().values(), [2]);
    let (large, slot) = task(&endless(), rows([0]), Control::unlimited());
    let handle = submit(&executor, 0, 1, large.behind(Some(gate.clone())));
    poll(&mut executor);
    assert!(!gate.has_held());
    while !gate.has_held() {
        assert!(executor.waiting.is_empty());
        executor.turn();
    }
    assert_eq!((executor.waiting.len(), executor.ready.ready()), (1, 0));
    // What wakes it otherwise does not let it through.
    Waker::of(&executor.shared, 1).wake();
    poll(&mut executor);
    executor.turn();
    assert_eq!(executor.waiting.len(), 1);
    gate.open();
    poll(&mut executor);
    assert_eq!((executor.waiting.len(), executor.ready.ready()), (0, 1));
    executor.turn();
    assert_eq!(executor.ready.ready(), 1);
    handle.cancel();
    poll(&mut executor);
    executor.turn();
    let ended = slot.only();
    assert_eq!(ended.result, Err(TestError::Interrupted(Interrupt::Cancelled)));
}

#[test]
fn a_task_at_its_gate_obeys_its_deadline() {
    let mut executor = executor();
    let clock = Arc::new(TestClock::default());
    let control = Control { cancel: CancelToken::default(), deadline_ns: Some(10), clock: clock.clone() };
    let (large, slot) = task(&endless(), rows([0]), control);
    let gate = crate::Gate::new(0);
    submit(&executor, 0, 0, large.behind(Some(gate.clone())));
    poll(&mut executor);
    executor.turn();
    assert!(gate.has_held() && executor.waiting.len() == 1);
    clock.0.store(10, Ordering::SeqCst);
    poll(&mut executor);
    assert_eq!(slot.only().result, Err(TestError::Interrupted(Interrupt::DeadlineExceeded)));
    gate.open();
}

#[test]
fn stopping_ends_tasks_in_all_places() {
    let mut executor = executor();
    let slots: Vec<Slot> = (0..3)
        .map(|place| {
            let (task, slot) = if place == 0 {
                stuck(Control::unlimited())
            } else {
                task(&endless(), rows([0]), Control::unlimited())
            };
            submit(&executor, 0, place, task);
            if place < 2 {
                poll(&mut executor);
                executor.turn();
            }
            slot
        })
        .collect();
    assert_eq!((executor.waiting.len(), executor.ready.ready()), (1, 1));
    executor.shared.lock().stop = true;
    assert!(!poll(&mut executor));
    executor.stop();
    for slot in slots {
        assert_eq!(slot.only().result, Err(TestError::Interrupted(Interrupt::ShutDown)));
    }
    assert_eq!(executor.shared.load.load(Ordering::Relaxed), 0);
}

#[test]
fn tenants_get_equal_work_units_whatever_their_number_of_queries() {
    let mut executor = executor();
    let mut handles = Vec::new();
    for id in 0..9 {
        // Eight queries of one tenant beside one of another.
        let (task, _) = task(&endless(), rows([0]), Control::unlimited());
        handles.push(submit(&executor, u64::from(id == 8), id, task));
    }
    let mut units_before = [0_u64; 2];
    for turn in 0..400 {
        poll(&mut executor);
        let (tenant, (id, mut task)) = executor.ready.next().unwrap();
        let before = task.work_units();
        task.run(QUOTA, &Waker::detached());
        let units = task.work_units() - before;
        // A turn may pass its quota by what its last step moved.
        assert!(units <= 3 * QUOTA as u64, "a turn of {units}");
        units_before[tenant.number as usize] += units;
        executor.ready.served(tenant, units, 0);
        executor.make_ready(tenant, id, task);
        if turn >= 1 {
            assert!(units_before[0].abs_diff(units_before[1]) <= 3 * QUOTA as u64, "{units_before:?}");
        }
    }
}

#[test]
fn a_flood_of_large_queries_leaves_others_their_share() {
    // A tenant keeps sixty-four endless queries going; another sends one small query after the other. Whatever each weighs, the other gets
    // its share of the work as long as it has any, and each small query begins at once.
    for (flood, other) in [(100, 100), (100, 300), (300, 100), (10_000, 100)] {
        let mut executor = executor();
        let flooding = Tenant { number: 0, weight: Weight::new(flood).unwrap() };
        let others = Tenant { number: 1, weight: Weight::new(other).unwrap() };
        for id in 0..64 {
            let (large, _) = task(&endless(), rows([0]), Control::unlimited());
            submit_for(&executor, flooding, id, large);
        }
        for _ in 0..500 {
            poll(&mut executor);
            executor.turn();
        }
        let plan = build(&[Step::Expand(100)], 16).plan;
        let (mut units, mut ended) = ([0_u64; 2], 0);
        let mut slot: Option<Slot> = None;
        for turn in 0..20_000 {
            if slot.as_ref().is_none_or(|slot| slot.count() > 0) {
                ended += u64::from(slot.is_some());
                let (small, next) = task(&plan, rows([0]), Control::unlimited());
                submit_for(&executor, others, 64 + turn, small);
                slot = Some(next);
            }
            poll(&mut executor);
            let (tenant, work) = executor.turn().expect("there is always something to do");
            units[tenant.number as usize] += work;
        }
        let share = units[1] as f64 / (units[0] + units[1]) as f64;
        let due = f64::from(other) / f64::from(flood + other);
        assert!((share / due - 1.0).abs() < 0.05, "{flood} and {other}: {units:?}, a share of {share}, {due} is due");
        assert!(ended >= units[1] / 250, "{flood} and {other}: {ended} small queries of {} units", units[1]);
        executor.stop();
    }
}

#[test]
fn small_queries_beside_a_large_one_end_within_few_turns() {
    let mut executor = executor();
    let (large, large_slot) = task(&endless(), rows([0]), Control::unlimited());
    submit(&executor, 0, 0, large);
    for _ in 0..100 {
        poll(&mut executor);
        executor.turn();
    }
    let plan = build(&[Step::Add(1)], 16).plan;
    let slots: Vec<Slot> = (1..=10)
        .map(|id| {
            let (small, slot) = task(&plan, rows([1]), Control::unlimited());
            submit(&executor, 0, id, small);
            slot
        })
        .collect();
    for _ in 0..12 {
        poll(&mut executor);
        executor.turn();
    }
    for slot in slots {
        assert_eq!(slot.only().values(), [2]);
    }
    assert_eq!(large_slot.count(), 0);
    executor.stop();
}

#[test]
fn queries_known_to_be_large_run_one_after_the_other_and_behind_small_ones() {
    let plan = build(&[Step::Expand(4_000)], 16).plan;
    let estimate = Arc::new(Estimate::of_query(Arc::new(Estimate::of_kind())));
    let mut executor = executor();
    let submit_large = |executor: &Executor<Integers>, id: u64| {
        let (large, slot) = task(&plan, rows([0]), Control::unlimited());
        submit(executor, 0, id, large.estimated(estimate.clone()));
        slot
    };
    let begins = |executor: &mut Executor<Integers>| {
        poll(executor);
        let mut turn = executor.begin_turn()?;
        let (id, state) = (turn.id, turn.run(&executor.shared.clone(), &executor.paced.clone()));
        executor.end_turn(turn, state);
        Some(id)
    };
    // The first says how large they are.
    let first = submit_large(&executor, 0);
    while begins(&mut executor).is_some() {}
    assert_eq!(first.only().values().len(), 4_000);
    let large: Vec<Slot> = (1..=12).map(|id| submit_large(&executor, id)).collect();
    let (mut order, mut small) = (Vec::new(), None);
    while let Some(id) = begins(&mut executor) {
        if order.last() != Some(&id) {
            order.push(id);
        }
        if large[2].count() > 0 && small.is_none() {
            // Nobody knows this one: it goes before all that are known to be large, also before one that has begun.
            let (unknown, slot) = task(&build(&[Step::Add(1)], 16).plan, rows([1]), Control::unlimited());
            begins(&mut executor);
            submit(&executor, 0, 100, unknown);
            small = Some(slot);
        }
    }
    // Four are not many, and take turns.
    assert_eq!(order[..4], [1, 2, 3, 4]);
    assert_eq!(order[4..], [1, 2, 3, 100, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    assert_eq!(small.map(|slot| slot.only().values()), Some(vec![2]));
    assert!(large.iter().all(|slot| slot.only().values().len() == 4_000));
}

#[test]
fn wakes_of_one_task_do_not_pile_up() {
    let executor = executor();
    let waker = Waker::of(&executor.shared, 7);
    for _ in 0..1000 {
        waker.wake();
    }
    assert_eq!(executor.shared.lock().woken.len(), 1);
}

#[test]
fn a_turn_of_a_task_reads_the_clock_once() {
    struct Counting(AtomicU64);
    impl Clock for Counting {
        fn now_ns(&self) -> u64 {
            self.0.fetch_add(1, Ordering::SeqCst)
        }
    }
    let clock = Arc::new(Counting(AtomicU64::new(0)));
    let control = Control { cancel: CancelToken::default(), deadline_ns: Some(u64::MAX), clock: clock.clone() };
    let slot = Slot::default();
    let sink = crate::kit::Collect { rows: Vec::new(), slot: slot.clone() };
    let plan = build(&[Step::Expand(1000)], 2).plan;
    let mut task = Task::new(plan, rows([0]), Ledger::default(), Box::new(sink), control, false);
    while task.run(1_000_000, &Waker::detached()) != TaskState::Done {}
    assert!(clock.0.load(Ordering::SeqCst) <= 2);
    assert_eq!(slot.only().rows.len(), 1000);
}

#[test]
fn a_turn_that_nobody_ends_ends_itself() {
    struct Slow(AtomicU64);
    impl Clock for Slow {
        fn now_ns(&self) -> u64 {
            self.0.fetch_add(3_000_000, Ordering::SeqCst)
        }
    }
    // Nobody looks after the turns of this executor, and the quota would last for a long time.
    let mut executor =
        Executor::new(Arc::new(Shared::new(0, Arc::new(Peers::new(SpreadOptions::default())))), 1 << 40, None);
    let control = Control { clock: Arc::new(Slow(AtomicU64::new(0))), ..Control::unlimited() };
    let (task, slot) = task(&endless(), rows([1]), control);
    let handle = submit(&executor, 0, 0, task);
    assert!(poll(&mut executor));
    let (_, units) = executor.turn().expect("it is ready");
    assert!(units < 1000, "{units} units in one turn");
    handle.cancel();
    assert!(poll(&mut executor));
    executor.turn();
    assert_eq!(slot.only().result, Err(TestError::Interrupted(Interrupt::Cancelled)));
}
