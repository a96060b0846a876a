//! Spreads on several executors driven by hand, a turn here and a turn there as a seed says: the same rows in the same order, every end, and
//! nothing left behind.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64};

use super::*;
use crate::kit::random::{PlanMaker, Random};
use crate::kit::reference::evaluate;
use crate::kit::steps::{Step, build};
use crate::kit::{Collect, Integers, Ledger, Row, Slot, TestError, rows};
use crate::task::{Delivery, Outcome, Sink};
use crate::{CancelToken, Clock, Control, Plan, Queue, Weight};

/// A clock that goes on by a microsecond at every look.
#[derive(Default)]
struct Ticking(AtomicU64);

impl Clock for Ticking {
    fn now_ns(&self) -> u64 {
        self.0.fetch_add(1000, Ordering::SeqCst)
    }
}

/// For whom all of it is done.
const TENANT: Tenant = Tenant { number: 7, weight: Weight::MAX };

/// Executors without threads.
struct Machine {
    executors: Vec<Executor<Integers>>,
    peers: Arc<Peers<Integers>>,
    /// Says which turns do not end in time, if any.
    reliefs: Option<Random>,
    away: Vec<Away>,
}

/// A turn of which its executor was relieved.
struct Away {
    shared: Arc<Shared<Integers>>,
    paced: Arc<Paced>,
    turn: Turn<Integers>,
}

impl Machine {
    fn new(count: usize, turn_quota: i64, spread: SpreadOptions) -> Machine {
        let peers = Arc::new(Peers::new(spread));
        let shared: Vec<_> = (0..count).map(|number| Arc::new(Shared::new(number, peers.clone()))).collect();
        peers.introduce(&shared);
        let executors = shared.into_iter().map(|shared| Executor::new(shared, turn_quota, None)).collect();
        Machine { executors, peers, reliefs: None, away: Vec::new() }
    }

    fn submit(&self, executor: usize, task: Task<Integers>) -> TaskHandle<Integers> {
        let shared = &self.executors[executor].shared;
        let id = self.peers.next_task();
        let waker = Some(Waker::of(shared, id));
        let handle = TaskHandle { cancel: task.cancel_token(), waker };
        shared.begin(TENANT, id, task);
        handle
    }

    /// A turn of one executor.
    fn step(&mut self, executor: usize) {
        let one = &mut self.executors[executor];
        let shared = one.shared.clone();
        let inbox = shared.lock();
        one.take(inbox);
        if self.reliefs.as_mut().is_some_and(|random| random.chance(30)) {
            let paced = one.paced.clone();
            if let Some(turn) = one.begin_turn() {
                one.leave_turn();
                self.away.push(Away { shared: one.shared.clone(), paced, turn });
            }
        } else {
            one.turn();
        }
        let idle = one.ready.ready() == 0 && one.shared.lock().is_empty();
        one.shared.idle_since_ns.store(u64::from(idle), Ordering::Relaxed);
        if let Some(random) = &mut self.reliefs
            && !self.away.is_empty()
            && random.chance(40)
        {
            let place = random.below(self.away.len() as u64) as usize;
            let Away { shared, paced, mut turn } = self.away.swap_remove(place);
            let state = turn.run(&shared, &paced);
            turn.end_elsewhere(state, &shared, None);
        }
    }

    fn load(&self) -> usize {
        self.executors.iter().map(|one| one.shared.load.load(Ordering::SeqCst)).sum()
    }

    /// Whether no executor has anything to do.
    fn rests(&self) -> bool {
        self.away.is_empty() && self.executors.iter().all(|one| one.ready.ready() == 0 && one.shared.lock().is_empty())
    }

    /// Gives turns as `random` says until nobody has anything to do.
    fn settle(&mut self, random: &mut Random, at: &str) {
        let count = self.executors.len() as u64;
        let mut steps = 0;
        while !self.rests() {
            self.step(random.below(count) as usize);
            steps += 1;
            assert!(steps < 2_000_000, "no end: {at}");
        }
    }
}

fn eager(random: &mut Random) -> SpreadOptions {
    SpreadOptions {
        is_on: true,
        idle_ns: 0,
        after_ns: random.below(3) * 1000,
        again_after_ns: random.below(2) * 1000,
        chunk_ns_min: random.below(4000),
        chunk_ns_max: 1 + random.below(20_000),
        pending_rows_max: 1 + random.below(20) as usize,
        slot_rows_max: 1 + random.below(6) as usize,
        ready_rows_max: 1 + random.below(20) as usize,
    }
}

struct Query {
    slot: Slot,
    account: Arc<(std::sync::atomic::AtomicIsize, std::sync::atomic::AtomicIsize)>,
    handle: TaskHandle<Integers>,
}

fn start(machine: &Machine, plan: &Arc<Plan<Integers>>, seeds: Vec<Row>, retained_limit: Option<isize>) -> Query {
    start_profiled(machine, plan, seeds, retained_limit, false)
}

fn start_profiled(
    machine: &Machine,
    plan: &Arc<Plan<Integers>>,
    seeds: Vec<Row>,
    retained_limit: Option<isize>,
    profiled: bool,
) -> Query {
    let slot = Slot::default();
    let ledger = Ledger { retained_limit, ..Ledger::default() };
    let account = ledger.account.clone();
    let sink = Collect { rows: Vec::new(), slot: slot.clone() };
    let control = Control { cancel: CancelToken::default(), deadline_ns: None, clock: Arc::new(Ticking::default()) };
    let task = Task::new(plan.clone(), seeds, ledger, Box::new(sink), control, profiled);
    Query { slot, account, handle: machine.submit(0, task) }
}

impl Query {
    /// To be called when the machine rests.
    fn check_released(&self, machine: &Machine, at: &str) {
        assert_eq!(self.account.0.load(Ordering::SeqCst), 0, "held: {at}");
        assert_eq!(machine.load(), 0, "tasks are left: {at}");
        assert_eq!(Arc::strong_count(&self.account), 1 + self.slot.count(), "a context is left: {at}");
    }
}

/// Seeds per test; more with `FICUS_RANDOM_PLANS`.
fn seeds() -> std::ops::Range<u64> {
    0..std::env::var("FICUS_RANDOM_PLANS").ok().and_then(|text| text.parse().ok()).unwrap_or(1500)
}

/// Plans with what they yield, and the decisions of their run.
fn plans() -> impl Iterator<Item = (u64, Vec<Step>, Vec<Row>, Random)> {
    seeds().filter_map(|seed| {
        let mut maker = PlanMaker::new(seed, true);
        let steps = maker.spread_plan();
        let expected = evaluate(&steps, [0, 10]).ok()?;
        Some((seed, steps, expected, maker.random))
    })
}

#[test]
fn rows_and_their_order_are_those_of_one_executor() {
    let mut times_spread = 0;
    for (seed, steps, expected, mut random) in plans() {
        for count in [1, 2, 4] {
            let quota = [1, 3, 16, 4096][random.below(4) as usize];
            let batch = [1, 2, 5, 256][random.below(4) as usize];
            let at = format!("seed {seed}, {count} executors, batch {batch}, quota {quota}: {steps:?}");
            let mut machine = Machine::new(count, quota, eager(&mut random));
            (0..count).for_each(|executor| machine.step(executor));
            let plan = build(&steps, batch).plan;
            // The second time spreads know what they took the first time.
            for time in ["first", "second"] {
                let query = start(&machine, &plan, rows([0, 10]), None);
                machine.settle(&mut random, &at);
                query.check_released(&machine, &at);
                let end = query.slot.only();
                assert_eq!(end.result, Ok(()), "{at}, {time}");
                assert_eq!(end.rows, expected, "{at}, {time}");
            }
            assert!(count > 1 || machine.peers.times_spread() == 0, "{at}");
            times_spread += machine.peers.times_spread();
        }
    }
    assert!(times_spread > 1000, "only {times_spread} helpers");
}

#[test]
fn relief_of_turns_that_do_not_end_changes_nothing() {
    let mut cancelled = 0;
    for (seed, steps, expected, mut random) in plans() {
        let count = 1 + random.below(3) as usize;
        let quota = [1, 3, 16, 4096][random.below(4) as usize];
        let batch = [1, 2, 5, 256][random.below(4) as usize];
        let at = format!("seed {seed}, {count} executors, batch {batch}, quota {quota}: {steps:?}");
        let mut machine = Machine::new(count, quota, eager(&mut random));
        (0..count).for_each(|executor| machine.step(executor));
        machine.reliefs = Some(Random(seed));
        // One beside it, so that there is somebody to wait for it.
        let plan = build(&steps, batch).plan;
        let (query, beside) =
            (start(&machine, &plan, rows([0, 10]), None), start(&machine, &plan, rows([0, 10]), None));
        let cancels = random.chance(30);
        if cancels {
            for _ in 0..random.below(100) {
                machine.step(random.below(count as u64) as usize);
            }
            query.handle.cancel();
        }
        machine.settle(&mut random, &at);
        for (query, may_fail) in [(query, cancels), (beside, false)] {
            query.check_released(&machine, &at);
            let end = query.slot.only();
            match end.result {
                Ok(()) => assert_eq!(end.rows, expected, "{at}"),
                Err(error) => {
                    assert!(may_fail && error == TestError::Interrupted(Interrupt::Cancelled), "{error:?}: {at}");
                    cancelled += 1;
                }
            }
        }
    }
    assert!(cancelled > 50, "only {cancelled} were cancelled before their end");
}

#[test]
fn a_query_that_is_cancelled_leaves_nothing_behind() {
    let mut cancelled = 0;
    for (seed, steps, _, mut random) in plans() {
        let quota = [1, 3, 16][random.below(3) as usize];
        let batch = [1, 2, 5][random.below(3) as usize];
        let at = format!("seed {seed}, batch {batch}, quota {quota}: {steps:?}");
        let mut machine = Machine::new(3, quota, eager(&mut random));
        (0..3).for_each(|executor| machine.step(executor));
        let query = start(&machine, &build(&steps, batch).plan, rows([0, 10]), None);
        for _ in 0..random.below(300) {
            machine.step(random.below(3) as usize);
        }
        query.handle.cancel();
        machine.settle(&mut random, &at);
        query.check_released(&machine, &at);
        cancelled += usize::from(query.slot.only().result.is_err());
    }
    assert!(cancelled > 100, "only {cancelled} were cancelled before their end");
}

/// Runs a plan on some executors to its end, a row at a time.
fn run(count: usize, steps: &[Step], random: &mut Random, at: &str) -> crate::kit::End {
    let mut machine = Machine::new(count, 5, eager(random));
    (0..count).for_each(|executor| machine.step(executor));
    let query = start(&machine, &build(steps, 1).plan, rows([0, 10]), None);
    machine.settle(random, at);
    query.check_released(&machine, at);
    query.slot.only()
}

/// Puts a step somewhere into the spread of a plan.
fn insert(steps: &mut [Step], step: Step, random: &mut Random) {
    let held = steps.iter_mut().find_map(|step| match step {
        Step::Spread(held) => Some(held),
        _ => None,
    });
    let held = held.expect("every plan has a spread");
    held.insert(random.below(held.len() as u64 + 1) as usize, step);
}

#[test]
fn an_error_ends_the_query_where_it_would_with_one_executor() {
    let mut failed = 0;
    for (seed, mut steps, _, mut random) in plans() {
        let value = random.below(30) as i64;
        insert(&mut steps, Step::FailAt(value), &mut random);
        // What comes before a spread runs ahead of it, so an error before an inner one may come sooner.
        for step in &mut steps {
            if let Step::Spread(held) = step {
                held.retain(|step| !matches!(step, Step::Spread(_)));
            }
        }
        if evaluate(&steps, [0, 10]).is_err() {
            continue;
        }
        let at = format!("seed {seed}: {steps:?}");
        let (alone, spread) = (run(1, &steps, &mut random, &at), run(3, &steps, &mut random, &at));
        assert_eq!((spread.result, spread.rows), (alone.result.clone(), alone.rows), "{at}");
        failed += usize::from(alone.result.is_err());
    }
    assert!(failed > 50, "only {failed} failed");
}

#[test]
fn a_panic_fails_its_query_and_nothing_else() {
    let mut failed = 0;
    for (seed, mut steps, _, mut random) in plans().take(200) {
        let value = random.below(30) as i64;
        insert(&mut steps, Step::PanicAt(value), &mut random);
        // Nothing behind the spread ends it before the panic.
        steps.retain(|step| matches!(step, Step::Expand(_) | Step::Spread(_)));
        let at = format!("seed {seed}: {steps:?}");
        let (alone, spread) = (run(1, &steps, &mut random, &at), run(3, &steps, &mut random, &at));
        assert_eq!(spread.result, alone.result, "{at}");
        failed += usize::from(spread.result.is_err());
    }
    assert!(failed > 20, "only {failed} failed");
}

#[test]
fn a_query_that_may_not_hold_its_rows_fails_and_gives_back_what_it_held() {
    let mut failed = 0;
    for (seed, steps, expected, mut random) in plans() {
        let at = format!("seed {seed}: {steps:?}");
        let mut machine = Machine::new(3, 7, eager(&mut random));
        (0..3).for_each(|executor| machine.step(executor));
        let limit = Some(random.below(8) as isize);
        let query = start(&machine, &build(&steps, 4).plan, rows([0, 10]), limit);
        machine.settle(&mut random, &at);
        query.check_released(&machine, &at);
        let end = query.slot.only();
        match end.result {
            Ok(()) => assert_eq!(end.rows, expected, "{at}"),
            Err(error) => {
                assert_eq!(error, TestError::TooMuchRetained, "{at}");
                failed += 1;
            }
        }
    }
    assert!(failed > 50, "only {failed} failed");
}

#[test]
fn executors_that_stop_end_helpers_with_their_queries() {
    for (seed, steps, _, mut random) in plans().take(300) {
        let at = format!("seed {seed}: {steps:?}");
        let mut machine = Machine::new(3, 2, eager(&mut random));
        (0..3).for_each(|executor| machine.step(executor));
        let query = start(&machine, &build(&steps, 2).plan, rows([0, 10]), None);
        for _ in 0..random.below(200) {
            machine.step(random.below(3) as usize);
        }
        for executor in &mut machine.executors {
            executor.shared.lock().stop = true;
        }
        while let Some(mut executor) = machine.executors.pop() {
            let shared = executor.shared.clone();
            assert!(!executor.take(shared.lock()));
            executor.stop();
        }
        query.check_released(&machine, &at);
        query.slot.only();
    }
}

/// What a slow client has, and what it wakes.
type Taken = Arc<Mutex<(Vec<Row>, Option<Waker<Integers>>)>>;

/// A sink that another thread empties when it likes.
struct Slow {
    rows: Taken,
    room: Arc<AtomicI64>,
    inner: Collect,
}

impl Sink<Integers> for Slow {
    fn deliver(
        &mut self,
        rows: &mut Queue<Row>,
        _: &mut Ledger,
        waker: &Waker<Integers>,
    ) -> Result<Delivery, TestError> {
        let mut held = self.rows.lock().unwrap();
        while self.room.load(Ordering::SeqCst) > 0
            && let Some(row) = rows.pop_front()
        {
            self.room.fetch_sub(1, Ordering::SeqCst);
            held.0.push(row);
        }
        held.1 = Some(waker.clone());
        Ok(if rows.is_empty() { Delivery::Accepted } else { Delivery::Full })
    }

    fn complete(self: Box<Self>, context: Ledger, outcome: Outcome<Integers>) {
        Box::new(self.inner).complete(context, outcome);
    }
}

#[test]
fn a_slow_client_holds_up_helpers_and_rows_in_between_are_bounded() {
    const ROWS: i64 = 3000;
    let options = SpreadOptions {
        idle_ns: 0,
        after_ns: 0,
        again_after_ns: 0,
        pending_rows_max: 30,
        slot_rows_max: 10,
        ready_rows_max: 40,
        ..SpreadOptions::default()
    };
    let mut random = Random(5);
    let mut machine = Machine::new(3, 64, options);
    (0..3).for_each(|executor| machine.step(executor));
    let plan =
        build(&[Step::Expand(ROWS), Step::Spread(vec![Step::Expand(20), Step::Keep { modulus: 2, rest: 0 }])], 8);
    let (slot, rows, room) = (Slot::default(), Arc::new(Mutex::new((Vec::new(), None))), Arc::new(AtomicI64::new(100)));
    let inner = Collect { rows: Vec::new(), slot: slot.clone() };
    let sink = Slow { rows: rows.clone(), room: room.clone(), inner };
    let control = Control { clock: Arc::new(Ticking::default()), ..Control::unlimited() };
    let ledger = Ledger::default();
    let account = ledger.account.clone();
    let task = Task::new(plan.plan, crate::kit::rows([0]), ledger, Box::new(sink), control, false);
    machine.submit(0, task);
    machine.settle(&mut random, "the client takes little");
    assert!(machine.peers.times_spread() > 0);
    assert_eq!(slot.count(), 0);
    assert!(account.1.load(Ordering::SeqCst) < 30 + 40 + 3 * (10 + 8), "{account:?}");
    while slot.count() == 0 {
        room.store(1 + random.below(500) as i64, Ordering::SeqCst);
        let waker: Option<Waker<Integers>> = rows.lock().unwrap().1.take();
        waker.expect("the sink was asked").wake();
        machine.settle(&mut random, "the client takes some");
        assert!(account.1.load(Ordering::SeqCst) < 30 + 40 + 3 * (10 + 8), "{account:?}");
    }
    slot.only().result.unwrap();
    let rows = &rows.lock().unwrap().0;
    let expected = (0..ROWS).flat_map(|row| (row..row + 20).filter(|value| value % 2 == 0));
    assert!(rows.iter().map(|row| row.value).eq(expected));
    assert_eq!(machine.load(), 0);
}

#[test]
fn helpers_leave_an_executor_that_others_want_and_come_back() {
    let options = SpreadOptions { idle_ns: 0, after_ns: 0, again_after_ns: 0, ..SpreadOptions::default() };
    let mut machine = Machine::new(2, 16, options);
    (0..2).for_each(|executor| machine.step(executor));
    let large = build(&[Step::Expand(4000), Step::Spread(vec![Step::Expand(40)])], 256).plan;
    let query = start(&machine, &large, rows([0]), None);
    let mut random = Random(1);
    let load = |machine: &Machine, executor: usize| machine.executors[executor].shared.load.load(Ordering::SeqCst);
    while load(&machine, 1) == 0 {
        machine.step(0);
    }
    let small = build(&[Step::Expand(2000)], 16).plan;
    let slot = Slot::default();
    let sink = Collect { rows: Vec::new(), slot: slot.clone() };
    let task = Task::new(small, rows([0]), Ledger::default(), Box::new(sink), Control::unlimited(), false);
    machine.submit(1, task);
    let mut alone = false;
    while slot.count() == 0 {
        machine.step(1);
        alone |= load(&machine, 1) == 1;
        machine.step(0);
    }
    assert!(alone, "the helper stayed beside the query that came by itself");
    let before = machine.peers.times_spread();
    machine.settle(&mut random, "the rest");
    assert!(machine.peers.times_spread() > before, "no helper came back");
    query.check_released(&machine, "at the end");
    assert_eq!(query.slot.only().rows.len(), 160_000);
}

#[test]
fn an_executor_that_rests_between_two_queries_is_not_asked() {
    let options = SpreadOptions { idle_ns: u64::MAX / 2, after_ns: 0, again_after_ns: 0, ..SpreadOptions::default() };
    let mut machine = Machine::new(2, 16, options);
    (0..2).for_each(|executor| machine.step(executor));
    let plan = build(&[Step::Expand(400), Step::Spread(vec![Step::Expand(40)])], 256).plan;
    let query = start(&machine, &plan, rows([0]), None);
    machine.settle(&mut Random(1), "alone");
    assert_eq!(machine.peers.times_spread(), 0);
    assert_eq!(query.slot.only().rows.len(), 16_000);
}

#[test]
fn a_spread_that_was_large_is_given_help_before_its_first_row() {
    let options = SpreadOptions { idle_ns: 0, after_ns: 10_000, again_after_ns: 10_000, ..SpreadOptions::default() };
    let mut machine = Machine::new(2, 16, options);
    (0..2).for_each(|executor| machine.step(executor));
    // By this clock a turn takes a microsecond or two, and a row of the spread many turns.
    let plan = build(&[Step::Expand(8), Step::Spread(vec![Step::Expand(2_000)])], 256).plan;
    let mut turns_alone = Vec::new();
    for _ in 0..2 {
        let query = start(&machine, &plan, rows([0]), None);
        let before = machine.peers.times_spread();
        let mut turns = 0;
        while machine.peers.times_spread() == before && machine.executors[0].shared.load.load(Ordering::SeqCst) > 0 {
            machine.step(0);
            turns += 1;
        }
        turns_alone.push(turns);
        machine.settle(&mut Random(1), "the rest");
        assert_eq!(query.slot.only().result, Ok(()));
    }
    assert!(turns_alone[1] < turns_alone[0], "turns until somebody helped: {turns_alone:?}");
}

#[test]
fn who_has_helped_a_query_may_help_it_again_at_once() {
    let options = SpreadOptions { idle_ns: u64::MAX / 2, ..SpreadOptions::default() };
    let machine = Machine::new(2, 16, options);
    let [own, other] = [0, 1].map(|executor| machine.executors[executor].shared.clone());
    let peers = &machine.peers;
    other.idle_since_ns.store(1, Ordering::Relaxed);
    assert!(!peers.has_idle(&own, 5));
    Waker::of(&other, 9).has_helped(5);
    assert!(peers.has_idle(&own, 5) && !peers.has_idle(&own, 6));
    // It may still be leaving, but has nothing else to do.
    other.idle_since_ns.store(0, Ordering::Relaxed);
    other.load.store(1, Ordering::Relaxed);
    assert!(peers.has_idle(&own, 5));
    other.load.store(2, Ordering::Relaxed);
    assert!(!peers.has_idle(&own, 5));
    other.load.store(0, Ordering::Relaxed);
    assert!(peers.claim_idle(&own, 5).is_some() && peers.claim_idle(&own, 5).is_none());
    // Whatever else begins there ends that.
    Waker::of(&other, 9).has_helped(5);
    let (task, _) = crate::kit::task(&build(&[Step::Add(1)], 16).plan, rows([0]), Control::unlimited());
    other.begin(TENANT, 10, task);
    assert!(!peers.has_idle(&own, 5));
}

#[test]
fn helpers_work_for_the_tenant_that_they_help_at_its_weight() {
    let options = SpreadOptions { idle_ns: 0, after_ns: 0, again_after_ns: 0, ..SpreadOptions::default() };
    let mut machine = Machine::new(2, 16, options);
    (0..2).for_each(|executor| machine.step(executor));
    let plan = build(&[Step::Expand(400), Step::Spread(vec![Step::Expand(40)])], 256).plan;
    let query = start(&machine, &plan, rows([0]), None);
    while machine.executors[1].shared.lock().new.is_empty() {
        machine.step(0);
    }
    assert_eq!(machine.executors[1].shared.lock().new[0].0, TENANT);
    machine.settle(&mut Random(1), "the rest");
    query.check_released(&machine, "at the end");
}

#[test]
fn a_profile_counts_what_helpers_do() {
    let (mut times_spread, mut times_told) = (0, 0);
    for seed in 0..300 {
        let mut random = Random(seed);
        let inner = Step::Spread(vec![Step::Expand(5), Step::Keep { modulus: 3, rest: 0 }]);
        let steps = [Step::Expand(60), Step::Spread(vec![Step::Expand(8), Step::Keep { modulus: 2, rest: 0 }, inner])];
        let plan = build(&steps, [1, 5, 256][random.below(3) as usize]).plan;
        let mut counted = Vec::new();
        for count in [1, 3] {
            let mut machine = Machine::new(count, [3, 16, 4096][random.below(3) as usize], eager(&mut random));
            (0..count).for_each(|executor| machine.step(executor));
            let query = start_profiled(&machine, &plan, rows([0, 10]), None, true);
            machine.settle(&mut random, &format!("seed {seed}"));
            query.check_released(&machine, &format!("seed {seed}"));
            let end = query.slot.only();
            assert_eq!(end.result, Ok(()), "seed {seed}");
            let profile = end.profile.expect("it was asked for");
            counted.push(profile.iter().map(|node| (node.messages, node.rows)).collect::<Vec<_>>());
            times_spread += machine.peers.times_spread();
            times_told += u64::from(query.handle.cancel.times_helped());
        }
        assert_eq!(counted[0], counted[1], "seed {seed}");
    }
    assert!(times_spread > 100, "only {times_spread} helpers");
    assert_eq!(times_told, times_spread);
}
