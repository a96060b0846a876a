//! Real threads: slow sinks that wake from elsewhere, cancellation at any moment, shutdown with tasks in all states.

mod kit;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};

use ficus_dataflow::{
    CancelToken, Control, Cx, Delivery, Demand, ExecutorOptions, Executors, Flow, Interrupt, Node, NodeId, Operator,
    Outcome, Plan, Queue, Region, Sink, Task, TaskHandle, Tenant, Waker,
};
use kit::random::{PlanMaker, Random};
use kit::reference::evaluate;
use kit::steps::{Emit, Loop, Step, build};
use kit::{Integers, Ledger, Row, TestClock, TestError, rows};

/// What a [`Pipe`] tells the other side.
enum Event {
    Row(usize, Row),
    End(usize, Result<(), TestError>, isize),
}

/// A sink with little room, emptied by another thread.
struct Pipe {
    query: usize,
    room: Arc<Room>,
    events: Sender<Event>,
}

#[derive(Default)]
struct Room {
    held: Mutex<(Vec<Row>, Option<Waker<Integers>>)>,
}

const CAPACITY: usize = 3;

impl Sink<Integers> for Pipe {
    fn deliver(
        &mut self,
        rows: &mut Queue<Row>,
        _: &mut Ledger,
        waker: &Waker<Integers>,
    ) -> Result<Delivery, TestError> {
        let mut held = self.room.held.lock().unwrap();
        while held.0.len() < CAPACITY {
            let Some(row) = rows.pop_front() else { return Ok(Delivery::Accepted) };
            held.0.push(row);
        }
        if rows.is_empty() {
            return Ok(Delivery::Accepted);
        }
        held.1 = Some(waker.clone());
        Ok(Delivery::Full)
    }

    fn complete(self: Box<Self>, context: Ledger, outcome: Outcome<Integers>) {
        for row in self.room.held.lock().unwrap().0.drain(..) {
            self.events.send(Event::Row(self.query, row)).unwrap();
        }
        self.events.send(Event::End(self.query, outcome.result, context.retained())).unwrap();
    }
}

fn endless(emit: Emit) -> Step {
    Step::Loop(Loop {
        id: 0,
        body: vec![Step::Add(1)],
        times: u32::MAX,
        until: None,
        tests_first: false,
        emit,
        dfs: false,
        inputs_at_once: 1,
        frontier_max: usize::MAX,
    })
}

fn start(executors: usize, turn_quota: i64) -> Executors<Integers> {
    Executors::start(&ExecutorOptions { executors, turn_quota, ..ExecutorOptions::default() }).unwrap()
}

/// Receives until `ends` queries have ended.
fn ends(events: &Receiver<Event>, ends: usize) -> HashMap<usize, (Vec<Row>, Result<(), TestError>)> {
    let mut rows = HashMap::<usize, Vec<Row>>::new();
    let mut ended = HashMap::new();
    while ended.len() < ends {
        match events.recv().expect("the queries that are missing still have their senders") {
            Event::Row(query, row) => rows.entry(query).or_default().push(row),
            Event::End(query, result, retained) => {
                assert_eq!(retained, 0, "query {query}");
                let rows = rows.remove(&query).unwrap_or_default();
                assert!(ended.insert(query, (rows, result)).is_none(), "query {query} ended twice");
            }
        }
    }
    ended
}

#[test]
fn slow_sinks_and_random_cancellation_on_several_threads() {
    for threads in [1, 2, 4] {
        let executors = start(threads, 8);
        let (sender, events) = channel();
        let mut rooms = Vec::new();
        let mut handles: Vec<TaskHandle<Integers>> = Vec::new();
        let mut expected = Vec::new();
        let seed = 100 + threads as u64;
        let mut random = Random(seed);
        let mut plan_seed = 0;
        while expected.len() < 150 {
            plan_seed += 1;
            let steps = PlanMaker::new(plan_seed, true).plan();
            let Ok(rows_expected) = evaluate(&steps, [0, 10]) else { continue };
            let room = Arc::new(Room::default());
            let sink = Pipe { query: expected.len(), room: room.clone(), events: sender.clone() };
            let control = Control::unlimited();
            let task =
                Task::new(build(&steps, 4).plan, rows([0, 10]), Ledger::default(), Box::new(sink), control, false);
            let tenant = Tenant::numbered(random.below(3));
            handles.push(match random.chance(50) {
                true => executors.submit(tenant, task),
                false => executors.submit_here(tenant, task),
            });
            rooms.push(room);
            expected.push(rows_expected);
        }
        let cancelled: Vec<usize> = (0..expected.len()).filter(|_| random.chance(20)).collect();
        let done = Arc::new(AtomicUsize::new(0));
        let emptier = {
            let (rooms, done, sender) = (rooms.clone(), done.clone(), sender.clone());
            std::thread::spawn(move || {
                // Goes round and takes a random part; wakes whoever asked for it.
                while done.load(Ordering::SeqCst) == 0 {
                    for (query, room) in rooms.iter().enumerate() {
                        let mut held = room.held.lock().unwrap();
                        let take = (random.below(3) as usize).min(held.0.len());
                        for row in held.0.drain(..take) {
                            sender.send(Event::Row(query, row)).unwrap();
                        }
                        let waker = if take > 0 { held.1.take() } else { None };
                        drop(held);
                        if let Some(waker) = waker {
                            waker.wake();
                        }
                    }
                    std::thread::yield_now();
                }
            })
        };
        for query in &cancelled {
            handles[*query].cancel();
            std::thread::yield_now();
        }
        let ended = ends(&events, expected.len());
        done.store(1, Ordering::SeqCst);
        emptier.join().unwrap();
        for (query, (found, result)) in ended {
            let at = format!("{threads} threads, seed {seed}, query {query}");
            if result == Err(TestError::Interrupted(Interrupt::Cancelled)) {
                assert!(cancelled.contains(&query), "{at}");
                assert_eq!(found[..], expected[query][..found.len()], "{at}: what came before the end is right");
            } else {
                assert_eq!(result, Ok(()), "{at}");
                assert_eq!(found, expected[query], "{at}");
            }
        }
        // The last task is off the books just after its sink heard of it.
        while executors.load() > 0 {
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_cancelled_query_ends_whether_it_runs_or_waits() {
    let executors = start(2, 64);
    let (sender, events) = channel();
    let mut handles = Vec::new();
    for query in 0..20 {
        // Half of them wait for ever, half run for ever.
        let emit = if query % 2 == 0 { Emit::After } else { Emit::Never };
        let sink = Pipe { query, room: Arc::default(), events: sender.clone() };
        let plan = build(&[endless(emit)], 4).plan;
        let task = Task::new(plan, rows([0]), Ledger::default(), Box::new(sink), Control::unlimited(), false);
        handles.push(executors.submit(Tenant::default(), task));
    }
    for handle in &handles {
        handle.cancel();
        handle.cancel();
    }
    for (query, (_, result)) in ends(&events, 20) {
        assert_eq!(result, Err(TestError::Interrupted(Interrupt::Cancelled)), "query {query}");
    }
    // After the end it is harmless.
    for handle in &handles {
        handle.cancel();
    }
}

#[test]
fn deadlines_end_running_and_waiting_queries_without_anybody_calling() {
    let executors = start(2, 64);
    let clock = Arc::new(TestClock::default());
    let (sender, events) = channel();
    for query in 0..10 {
        let emit = if query % 2 == 0 { Emit::After } else { Emit::Never };
        let sink = Pipe { query, room: Arc::default(), events: sender.clone() };
        let control = Control { cancel: CancelToken::default(), deadline_ns: Some(100), clock: clock.clone() };
        let plan = build(&[endless(emit)], 4).plan;
        let task = Task::new(plan, rows([0]), Ledger::default(), Box::new(sink), control, false);
        executors.submit(Tenant::default(), task);
    }
    clock.0.store(100, Ordering::SeqCst);
    for (query, (_, result)) in ends(&events, 10) {
        assert_eq!(result, Err(TestError::Interrupted(Interrupt::DeadlineExceeded)), "query {query}");
    }
}

#[test]
fn shutdown_ends_tasks_in_all_states() {
    for threads in [1, 2, 4] {
        let executors = start(threads, 64);
        let (sender, events) = channel();
        for query in 0..30 {
            let plan = match query % 3 {
                0 => build(&[endless(Emit::After)], 4).plan,
                1 => build(&[endless(Emit::Never)], 4).plan,
                _ => build(&[Step::Expand(2)], 4).plan,
            };
            let sink = Pipe { query, room: Arc::default(), events: sender.clone() };
            let task = Task::new(plan, rows([0]), Ledger::default(), Box::new(sink), Control::unlimited(), false);
            executors.submit(Tenant::numbered(query as u64 % 4), task);
        }
        drop(executors);
        for (query, (_, result)) in ends(&events, 30) {
            let stopped = result == Err(TestError::Interrupted(Interrupt::ShutDown));
            assert!(stopped || (query % 3 == 2 && result.is_ok()), "query {query}: {result:?}");
        }
    }
}

/// A sink that is as bad as can be at the end.
struct PanicsAtTheEnd(Sender<Event>);

impl Sink<Integers> for PanicsAtTheEnd {
    fn deliver(&mut self, _: &mut Queue<Row>, _: &mut Ledger, _: &Waker<Integers>) -> Result<Delivery, TestError> {
        panic!("a planned panic in deliver");
    }

    fn complete(self: Box<Self>, _: Ledger, _: Outcome<Integers>) {
        self.0.send(Event::End(0, Ok(()), 0)).unwrap();
        panic!("a planned panic in complete");
    }
}

#[test]
fn panics_leave_the_executor_and_its_other_queries_alone() {
    let executors = start(1, 64);
    let (sender, events) = channel();
    for query in 0..10 {
        let task = if query % 2 == 0 {
            let sink = Box::new(PanicsAtTheEnd(channel_end(&sender)));
            Task::new(build(&[], 4).plan, rows([0]), Ledger::default(), sink, Control::unlimited(), false)
        } else {
            let sink = Box::new(Pipe { query, room: Arc::default(), events: sender.clone() });
            let steps = [Step::Expand(3), Step::PanicAt(if query == 5 { 2 } else { -1 })];
            Task::new(build(&steps, 4).plan, rows([0]), Ledger::default(), sink, Control::unlimited(), false)
        };
        executors.submit(Tenant::default(), task);
    }
    for (query, (_, result)) in ends(&events, 5) {
        assert_eq!(result.is_err(), query == 5, "query {query}: {result:?}");
    }
}

/// A sender nobody listens to is an error; this one is listened to by a thread that forgets.
fn channel_end(_: &Sender<Event>) -> Sender<Event> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || while receiver.recv().is_ok() {});
    sender
}

#[test]
fn a_sink_may_start_the_next_query_and_drop_the_executors() {
    /// Starts a query when one ends, and lets go of the executors on one of their own threads at last.
    struct Next {
        executors: Option<Arc<Executors<Integers>>>,
        left: usize,
        done: Arc<(Mutex<bool>, Condvar)>,
    }
    impl Sink<Integers> for Next {
        fn deliver(
            &mut self,
            rows: &mut Queue<Row>,
            _: &mut Ledger,
            _: &Waker<Integers>,
        ) -> Result<Delivery, TestError> {
            rows.clear();
            Ok(Delivery::Accepted)
        }
        fn complete(mut self: Box<Self>, _: Ledger, _: Outcome<Integers>) {
            let Some(executors) = self.executors.take() else { return };
            if self.left == 0 {
                drop(executors);
                *self.done.0.lock().unwrap() = true;
                self.done.1.notify_one();
                return;
            }
            let next = Next { executors: Some(executors.clone()), left: self.left - 1, done: self.done.clone() };
            let plan = build(&[Step::Expand(3)], 4).plan;
            let control = Control::unlimited();
            executors.submit(
                Tenant::default(),
                Task::new(plan, rows([0]), Ledger::default(), Box::new(next), control, false),
            );
        }
    }
    let executors = Arc::new(start(2, 64));
    let done = Arc::new((Mutex::new(false), Condvar::new()));
    let first = Next { executors: Some(executors.clone()), left: 50, done: done.clone() };
    let plan = build(&[], 4).plan;
    executors.submit(
        Tenant::default(),
        Task::new(plan, rows([0]), Ledger::default(), Box::new(first), Control::unlimited(), false),
    );
    drop(executors);
    let mut finished = done.0.lock().unwrap();
    while !*finished {
        finished = done.1.wait(finished).unwrap();
    }
}

#[test]
fn the_number_of_threads_is_as_asked() {
    for threads in [1, 2, 4] {
        assert_eq!(start(threads, 64).count(), threads);
    }
    assert_eq!(start(0, 0).count(), 1, "none would never answer");
}

/// A sink that says on which threads it was called.
struct Threads(Sender<(&'static str, std::thread::ThreadId)>);

impl Sink<Integers> for Threads {
    fn deliver(&mut self, rows: &mut Queue<Row>, _: &mut Ledger, _: &Waker<Integers>) -> Result<Delivery, TestError> {
        rows.clear();
        self.0.send(("row", std::thread::current().id())).unwrap();
        Ok(Delivery::Accepted)
    }

    fn complete(self: Box<Self>, _: Ledger, _: Outcome<Integers>) {
        self.0.send(("end", std::thread::current().id())).unwrap();
    }
}

fn threads_of(executors: &Executors<Integers>, steps: &[Step], seeds: i64) -> Vec<(&'static str, bool)> {
    let (sender, calls) = channel();
    let load = executors.load();
    let control = Control::unlimited();
    let plan = build(steps, 4).plan;
    let task = Task::new(plan, rows(0..seeds), Ledger::default(), Box::new(Threads(sender)), control, false);
    executors.submit_here(Tenant::default(), task);
    let mut calls: Vec<_> = calls.iter().map(|(call, thread)| (call, thread == std::thread::current().id())).collect();
    calls.dedup();
    // The sink hears of the end before the executor strikes the query off.
    while executors.load() > load {
        std::thread::yield_now();
    }
    calls
}

#[test]
fn a_small_query_ends_on_the_thread_that_asks_unless_executors_are_busy() {
    let executors = start(2, 1000);
    // The machine may take the thread away for longer than such a turn may last, but not each time.
    let mut turns = (0..1_000).map(|_| threads_of(&executors, &[Step::Add(1)], 10));
    assert!(turns.any(|calls| calls == [("row", true), ("end", true)]), "all thousand queries went on elsewhere");
    assert_eq!(executors.load(), 0, "the place is free again");
    let busy: Vec<_> = (0..2)
        .map(|_| {
            let (task, _) = kit::task(&build(&[endless(Emit::Never)], 4).plan, rows([0]), Control::unlimited());
            executors.submit(Tenant::default(), task)
        })
        .collect();
    assert_eq!(threads_of(&executors, &[Step::Add(1)], 10), [("row", false), ("end", false)]);
    busy.iter().for_each(TaskHandle::cancel);
}

#[test]
fn a_query_that_does_not_end_in_its_first_turn_goes_on_at_an_executor() {
    let executors = start(1, 1000);
    let calls = threads_of(&executors, &[Step::Add(1)], 100_000);
    assert_eq!(calls, [("row", true), ("row", false), ("end", false)]);
    let (task, slot) = kit::task(&build(&[endless(Emit::Never)], 4).plan, rows([0]), Control::unlimited());
    let handle = executors.submit_here(Tenant::default(), task);
    assert_eq!((slot.count(), executors.load()), (0, 1));
    handle.cancel();
    while executors.load() > 0 {
        std::thread::yield_now();
    }
    assert_eq!(slot.only().result, Err(TestError::Interrupted(Interrupt::Cancelled)));
}

/// A step that cannot be left: it lasts until somebody opens it, and passes its input then.
struct Stubborn(Arc<(Mutex<Door>, Condvar)>);

#[derive(Default)]
struct Door {
    is_open: bool,
    /// Turns that wait at it.
    waiting: usize,
}

impl Operator<Integers> for Stubborn {
    fn process(
        &mut self,
        input: &mut Queue<Row>,
        out: &mut Queue<Row>,
        _: &mut Cx<'_, Integers>,
    ) -> Result<Flow, TestError> {
        let mut door = self.0.0.lock().unwrap();
        door.waiting += 1;
        self.0.1.notify_all();
        while !door.is_open {
            door = self.0.1.wait(door).unwrap();
        }
        out.extend(input.drain(..));
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {}
}

/// Queries that are stuck in a step, and the door that lets them out.
struct Stuck {
    door: Arc<(Mutex<Door>, Condvar)>,
    slots: Vec<kit::Slot>,
    handles: Vec<TaskHandle<Integers>>,
}

impl Stuck {
    /// So many, one after the other: each is in its step before the next comes.
    fn new(executors: &Executors<Integers>, count: usize) -> Stuck {
        let mut stuck = Stuck { door: Arc::default(), slots: Vec::new(), handles: Vec::new() };
        let door = stuck.door.clone();
        let factory: ficus_dataflow::plan::Factory<Integers> = Arc::new(move || Box::new(Stubborn(door.clone())));
        let node =
            Node { id: NodeId(0), name: "stubborn".into(), emits_on_empty: false, demand: Demand::AsWanted, factory };
        let root = Arc::new(Region::new(vec![node]));
        let plan = Arc::new(Plan { root, node_count: 1, batch_rows_limit: 4 });
        for number in 1..=count {
            let (task, slot) = kit::task(&plan, rows([7]), Control::unlimited());
            stuck.handles.push(executors.submit(Tenant::numbered(number as u64), task));
            stuck.slots.push(slot);
            let mut door = stuck.door.0.lock().unwrap();
            while door.waiting < number {
                door = stuck.door.1.wait(door).unwrap();
            }
        }
        stuck
    }

    fn open(&self) {
        self.door.0.lock().unwrap().is_open = true;
        self.door.1.notify_all();
    }
}

#[test]
fn a_step_that_does_not_end_holds_up_nobody_else() {
    for threads in [1, 2] {
        let executors = start(threads, 64);
        // More than there are executors: each of them is relieved, and its next thread as well.
        let stuck = Stuck::new(&executors, 5);
        let (sender, events) = channel();
        for query in 0..100 {
            let sink = Pipe { query, room: Arc::default(), events: sender.clone() };
            let plan = build(&[Step::Expand(3)], 4).plan;
            let task = Task::new(plan, rows([0]), Ledger::default(), Box::new(sink), Control::unlimited(), false);
            executors.submit(Tenant::numbered(query as u64 % 3), task);
        }
        for (query, (rows, result)) in ends(&events, 100) {
            assert_eq!((rows.len(), result), (3, Ok(())), "query {query}");
        }
        assert!(stuck.slots.iter().all(|slot| slot.count() == 0), "they are still in their step");
        assert!(executors.times_relieved() >= 4, "{} times", executors.times_relieved());
        stuck.handles[1].cancel();
        stuck.open();
        while executors.load() > 0 {
            std::thread::yield_now();
        }
        for (number, slot) in stuck.slots.iter().enumerate() {
            let end = slot.only();
            match number {
                1 => assert_eq!(end.result, Err(TestError::Interrupted(Interrupt::Cancelled))),
                _ => assert_eq!((end.values(), end.result), (vec![7], Ok(()))),
            }
        }
    }
}

#[test]
fn shutdown_waits_for_steps_that_do_not_end_and_tells_their_sinks() {
    let executors = start(1, 64);
    let stuck = Stuck::new(&executors, 3);
    let (waiting, waiting_slot) = kit::task(&build(&[endless(Emit::Never)], 4).plan, rows([0]), Control::unlimited());
    executors.submit(Tenant::default(), waiting);
    while executors.times_relieved() < 3 {
        std::thread::yield_now();
    }
    let ends = std::thread::spawn(move || drop(executors));
    // The thread that is the executor now ends what runs there; the others are still in their step.
    while waiting_slot.count() == 0 {
        std::thread::yield_now();
    }
    assert_eq!(waiting_slot.only().result, Err(TestError::Interrupted(Interrupt::ShutDown)));
    assert!(stuck.slots.iter().all(|slot| slot.count() == 0));
    stuck.open();
    ends.join().unwrap();
    for slot in &stuck.slots {
        let result = slot.only().result;
        assert!(result.is_ok() || result == Err(TestError::Interrupted(Interrupt::ShutDown)), "{result:?}");
    }
}

/// Goes on as long as it may, and passes its input then.
struct Patient;

impl Operator<Integers> for Patient {
    fn process(
        &mut self,
        input: &mut Queue<Row>,
        out: &mut Queue<Row>,
        cx: &mut Cx<'_, Integers>,
    ) -> Result<Flow, TestError> {
        while cx.is_undisturbed() {
            std::hint::spin_loop();
        }
        out.extend(input.drain(..));
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {}
}

#[test]
fn a_guest_does_not_keep_the_thread_that_asks_however_alone_it_is() {
    let executors = start(1, 1000);
    let factory: ficus_dataflow::plan::Factory<Integers> = Arc::new(|| Box::new(Patient));
    let node = Node { id: NodeId(0), name: "patient".into(), emits_on_empty: false, demand: Demand::AsWanted, factory };
    let plan = Arc::new(Plan { root: Arc::new(Region::new(vec![node])), node_count: 1, batch_rows_limit: 4 });
    let (task, slot) = kit::task(&plan, rows([1]), Control::unlimited());
    // Does not return if the walk may last as long as nobody else is on the executor.
    executors.submit_here(Tenant::default(), task);
    // On a busy machine its turn is over before the query is.
    while executors.load() > 0 {
        std::thread::yield_now();
    }
    assert_eq!(slot.only().values(), [1]);
}

#[test]
fn what_a_guest_leaves_is_freed() {
    let executors = start(1, 1000);
    let last = Arc::new(());
    let ledger = Ledger { last: Some(last.clone()), ..Ledger::default() };
    let slot = kit::Slot::default();
    let sink = Box::new(kit::Collect { slot: slot.clone(), ..kit::Collect::default() });
    let task = Task::new(build(&[Step::Add(1)], 4).plan, rows([0]), ledger, sink, Control::unlimited(), false);
    executors.submit_here(Tenant::default(), task);
    assert_eq!(slot.only().values(), [1]);
    drop(executors);
    assert_eq!(Arc::strong_count(&last), 1);
}
