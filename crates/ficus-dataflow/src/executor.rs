//! Executors: one thread each, running the tasks they were given in turns.
//!
//! The tree of quotas begins here: an executor divides its time between tenants, a tenant between its queries (both in
//! `schedule.rs`), a query between its nodes and their scope instances (`region.rs`, `branch.rs`).
//!
//! A task stays on the executor it was given to, where it is in one of three places: ready, running, or waiting for a full
//! sink, which is a state and not a blocked thread. Other threads reach it through the inbox only:
//!
//! ```text
//!   submit ─▶ inbox.new ─────▶ ready ──turn──▶ running ──▶ done
//!                                ▲ ▲              │ Runnable │ Full
//!   wake ──▶ inbox.woken ──┐     │ └──────────────┘          ▼
//!                          └─────┴─────────────────────── waiting
//! ```
//!
//! No wake is lost: the inbox is read between turns only, and a task that was told `Full` is waiting before it is read again,
//! so a wake from any moment after the sink's answer finds it there. A wake of a task that is not waiting is dropped.
//!
//! A thread that asks may run the first turn itself, as the *guest* of an executor that has nothing to do ([`Executors::submit_here`]). Most queries
//! of an online service end in it, and nobody has to be woken up for them. What does not end comes into the inbox as any other task; as it is
//! ready then, whatever it had been told meanwhile, wakes from before that are not missed.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::inbox::{Inbox, Place, Shared, Waker};
use crate::pace::{Pace, Paced};
use crate::peers::Peers;
use crate::relief::Reliefs;
use crate::schedule::{FAIR_SHARE, Schedule};
use crate::task::{Task, TaskHandle, TaskState};
use crate::tenant::Tenant;
use crate::undertaker::{Estates, Undertaker};
use crate::{Domain, Interrupt, SpreadOptions};

/// How executors run.
#[derive(Clone, Debug)]
pub struct ExecutorOptions {
    /// Threads; one per core is the intent.
    pub executors: usize,
    /// Work units of one turn: long enough to amortise the switch, short enough (about 100 µs) to stop soon.
    pub turn_quota: i64,
    /// When a query may use more than one of them.
    pub spread: SpreadOptions,
    /// What the operating system should know of the threads.
    pub threads: ThreadHooks,
}

/// Called for what the operating system should know of the threads of executors.
#[derive(Clone, Copy, Debug)]
pub struct ThreadHooks {
    /// On each thread before it is the executor of this number; says by what the system knows the thread.
    pub begins: fn(usize) -> u64,
    /// Of a thread that is no executor any more and ends with its turn, which lasts: see [`crate::executor`].
    pub is_relieved: fn(u64),
}

impl Default for ThreadHooks {
    /// Nothing.
    fn default() -> Self {
        ThreadHooks { begins: |_| 0, is_relieved: |_| () }
    }
}

impl Default for ExecutorOptions {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = ThreadHooks::default();
        ExecutorOptions { executors: cores, turn_quota: 4096, spread: SpreadOptions::default(), threads }
    }
}

/// Among the queries of a tenant a turn counts as many work units as it took of these, nanoseconds, if it used fewer: rows of some steps take ten
/// times as long as those of others.
const UNIT_NS: u64 = 25;

/// Work units of a guest before it looks at the clock for the first time; twice as many each time after.
const GUEST_UNITS_FIRST: i64 = 16;

/// A guest's turn that has lasted longer is looked after by the thread that ends long turns.
const GUEST_UNPACED_NS: u64 = 50_000;

/// How often an idle executor looks whether tasks were cancelled or are past their deadline.
const IDLE_LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// Turns that a large query may get in one go: as many as half of those that it, and the smallest that waits, have had, and no more than these (some
/// two milliseconds).
const TURNS_AT_ONCE: u64 = 16;

/// A busy executor looks after this many turns of the shortest kind, or more if there are so many that looking takes long.
const BUSY_LOOK_TURNS: usize = 4;

/// Tasks looked at per turn, on average at most.
const LOOKS_PER_TURN: usize = 64;

/// A set of executor threads.
pub struct Executors<D: Domain> {
    shared: Vec<Arc<Shared<D>>>,
    peers: Arc<Peers<D>>,
    reliefs: Arc<Reliefs<D>>,
    turn_quota: i64,
    /// For tasks of guests; dropped so that the thread can end.
    undertaker: Option<Undertaker>,
    /// The thread that frees what queries held; it ends after the executors.
    frees: Option<JoinHandle<()>>,
    pace: Option<Pace>,
}

impl<D: Domain> Executors<D> {
    /// Starts the threads.
    ///
    /// Errors: those of the operating system when it refuses a thread.
    pub fn start(options: &ExecutorOptions) -> std::io::Result<Executors<D>> {
        let (undertaker, thread) = Undertaker::start()?;
        let mut executors = Executors {
            shared: Vec::new(),
            peers: Arc::new(Peers::new(options.spread.clone())),
            reliefs: Arc::new(Reliefs::new(options.threads)),
            turn_quota: options.turn_quota.max(1),
            undertaker: Some(undertaker.clone()),
            frees: Some(thread),
            pace: None,
        };
        for number in 0..options.executors.max(1) {
            let one = Arc::new(Shared::new(number, executors.peers.clone()));
            executors.shared.push(one.clone());
            let executor = Executor::new(one, executors.turn_quota, Some(undertaker.clone()));
            // If this fails, dropping `executors` stops those that have started.
            executors.reliefs.start(Box::new(executor)).map_err(|(error, _)| error)?;
        }
        executors.peers.introduce(&executors.shared);
        executors.pace = Some(Pace::start(executors.shared.clone(), executors.reliefs.clone())?);
        Ok(executors)
    }

    /// How many threads there are.
    pub fn count(&self) -> usize {
        self.shared.len()
    }

    /// How often a query was given help of another executor.
    pub fn times_spread(&self) -> u64 {
        self.peers.times_spread()
    }

    /// How often an executor was relieved of a turn that did not end.
    pub fn times_relieved(&self) -> u64 {
        self.reliefs.times()
    }

    /// Tasks that are running or waiting, those that help others included.
    pub fn load(&self) -> usize {
        self.shared.iter().map(|shared| shared.load.load(Ordering::SeqCst)).sum()
    }

    /// Gives a task of `tenant` to the least loaded executor.
    pub fn submit(&self, tenant: Tenant, task: Task<D>) -> TaskHandle<D> {
        let id = self.peers.next_task();
        let shared = self.from(id).min_by_key(|shared| shared.load.load(Ordering::Relaxed));
        let shared = shared.expect("there is at least one executor");
        let handle = TaskHandle { cancel: task.cancel_token(), waker: Some(Waker::of(shared, id)) };
        shared.begin(tenant, id, task);
        self.wake_pace();
        handle
    }

    /// As [`Executors::submit`], but the calling thread runs the first turn of the task if an executor has nothing to do: about 100 us, or up to
    /// its next row after 2 to 4 ms. If it ends in it, its sink has been told when this returns. Saves two wakes, of the executor and of whoever
    /// waits for the answer, which is most of what a small query takes.
    ///
    /// Not to be called with locks held that a sink may take, nor by sinks: they would nest.
    pub fn submit_here(&self, tenant: Tenant, mut task: Task<D>) -> TaskHandle<D> {
        let id = self.peers.next_task();
        let Some(host) = self.from(id).find(|shared| shared.receives_guest()) else { return self.submit(tenant, task) };
        let handle = TaskHandle { cancel: task.cancel_token(), waker: Some(Waker::of(host, id)) };
        if let Some(undertaker) = &self.undertaker {
            task.set_undertaker(undertaker.clone());
        }
        let guest = &host.guest;
        guest.urgent.store(false, Ordering::Relaxed);
        guest.turn.fetch_add(1, Ordering::Relaxed);
        let started_ns = self.peers.now_ns();
        let waker = Waker::in_turn(host, id, Place::Guest { since_ns: started_ns });
        let state = self.guest_turn(&mut task, &waker, started_ns);
        guest.turn.fetch_add(1, Ordering::Relaxed);
        match state {
            TaskState::Runnable | TaskState::Waiting => {
                host.hand_over(tenant, id, task);
                self.wake_pace();
            }
            TaskState::Done => {
                host.load.fetch_sub(1, Ordering::Relaxed);
                task.tell_size();
                if let (Some(remains), Some(undertaker)) = (task.take_remains(), &self.undertaker) {
                    undertaker.bury(remains);
                }
            }
        }
        handle
    }

    /// Runs a guest's turn in pieces that grow. If it is a short one and nobody else has a task, it is not worth waking the thread that looks after
    /// turns: that one would get the core first.
    fn guest_turn(&self, task: &mut Task<D>, waker: &Waker<D>, started_ns: u64) -> TaskState {
        // Of two guests that come at once one sees the other, since each counts as a task by now.
        let mut is_paced = self.load() > 1;
        if is_paced {
            self.wake_pace();
        }
        let mut units_left = self.turn_quota;
        let mut piece = GUEST_UNITS_FIRST;
        loop {
            let units = piece.min(units_left);
            let state = task.run(units, waker);
            units_left -= units;
            piece *= 2;
            if state != TaskState::Runnable || units_left == 0 || waker.urgent().load(Ordering::Relaxed) {
                return state;
            }
            if !is_paced && self.peers.now_ns().saturating_sub(started_ns) >= GUEST_UNPACED_NS {
                is_paced = true;
                self.wake_pace();
            }
        }
    }

    /// All executors, another one first for each task.
    fn from(&self, task: u64) -> impl Iterator<Item = &Arc<Shared<D>>> {
        let first = task as usize % self.shared.len();
        self.shared[first..].iter().chain(&self.shared[..first])
    }

    fn wake_pace(&self) {
        if let Some(pace) = &self.pace {
            pace.wake();
        }
    }
}

impl<D: Domain> Drop for Executors<D> {
    /// Cancels what still runs and waits for the threads.
    fn drop(&mut self) {
        // From here on no thread is added.
        self.pace = None;
        for shared in &self.shared {
            let mut inbox = shared.lock();
            inbox.stop = true;
            inbox.paced.urgent.store(true, Ordering::Relaxed);
            drop(inbox);
            shared.arrived.notify_one();
        }
        let mut is_outside = true;
        for thread in self.reliefs.take_threads() {
            // The last owner may be dropped on an executor itself (by a sink that held it).
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            } else {
                is_outside = false;
            }
        }
        self.undertaker = None;
        if let Some(frees) =
            self.frees.take().filter(|frees| is_outside && frees.thread().id() != std::thread::current().id())
        {
            let _ = frees.join();
        }
    }
}

/// What an executor is, whichever thread is it.
pub(crate) struct Executor<D: Domain> {
    pub(crate) shared: Arc<Shared<D>>,
    turn_quota: i64,
    ready: Schedule<(u64, Task<D>)>,
    waiting: HashMap<u64, (Tenant, Task<D>)>,
    turns_since_look: usize,
    undertaker: Option<Undertaker>,
    /// What ended queries held, freed while there is nothing else to do.
    remains: Estates,
    /// The turns of the thread that it is.
    paced: Arc<Paced>,
}

/// A task that has its turn.
struct Turn<D: Domain> {
    tenant: Tenant,
    id: u64,
    task: Task<D>,
    quota: i64,
    /// Work units it had used before.
    units_before: u64,
    /// How long it took, where that counts.
    duration_ns: u64,
}

impl<D: Domain> Turn<D> {
    fn run(&mut self, shared: &Arc<Shared<D>>, paced: &Arc<Paced>) -> TaskState {
        let waker = Waker::in_turn(shared, self.id, Place::Executor(paced.clone()));
        paced.turn.fetch_add(1, Ordering::Relaxed);
        let state = self.task.run(self.quota, &waker);
        paced.turn.fetch_add(1, Ordering::Relaxed);
        state
    }

    /// The turn ends on a thread that is no executor any more.
    fn end_elsewhere(mut self, state: TaskState, shared: &Shared<D>, undertaker: Option<&Undertaker>) {
        match state {
            // What it waited for may have come meanwhile, and nobody knew it as one that waits. So it looks by itself.
            TaskState::Runnable | TaskState::Waiting => shared.hand_over(self.tenant, self.id, self.task),
            TaskState::Done => {
                if let (Some(remains), Some(undertaker)) = (self.task.take_remains(), undertaker) {
                    undertaker.bury(remains);
                }
                shared.load.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}

impl<D: Domain> Executor<D> {
    pub(crate) fn new(shared: Arc<Shared<D>>, turn_quota: i64, undertaker: Option<Undertaker>) -> Executor<D> {
        let (ready, waiting) = (Schedule::default(), HashMap::new());
        let paced = shared.lock().paced.clone();
        Executor {
            shared,
            turn_quota,
            ready,
            waiting,
            turns_since_look: 0,
            undertaker,
            remains: Estates::default(),
            paced,
        }
    }

    /// What its turns are paced by.
    pub(crate) fn paced(&self) -> &Arc<Paced> {
        &self.paced
    }

    /// Runs it on the calling thread until it is to stop, or until another thread is it.
    pub(crate) fn run(self: Box<Self>, thread: u64) {
        let mut executor = self;
        executor.paced.thread.store(thread, Ordering::Relaxed);
        let undertaker = executor.undertaker.clone();
        let (shared, paced) = (executor.shared.clone(), executor.paced.clone());
        loop {
            if !executor.receive() {
                executor.stop();
                return;
            }
            let Some(mut turn) = executor.begin_turn() else { continue };
            *shared.desk() = Some(executor);
            let began_ns = shared.peers.now_ns();
            let state = turn.run(&shared, &paced);
            turn.duration_ns = shared.peers.now_ns().saturating_sub(began_ns);
            let Some(own) = shared.desk().take_if(|executor| Arc::ptr_eq(&executor.paced, &paced)) else {
                turn.end_elsewhere(state, &shared, undertaker.as_ref());
                return;
            };
            executor = own;
            executor.end_turn(turn, state);
        }
    }

    /// The turn under way goes on without the executor, which another thread is from now on; it books the turn as if it had used its quota.
    pub(crate) fn leave_turn(&mut self) {
        let quota = self.turn_quota.unsigned_abs();
        self.turns_since_look += 1;
        self.ready.served(self.paced.tenant(), quota.max(1), 0);
        self.set_paced(Arc::default());
    }

    /// Its turns are those of another thread from now on.
    pub(crate) fn set_paced(&mut self, paced: Arc<Paced>) {
        self.shared.lock().paced = paced.clone();
        self.paced = paced;
    }

    /// Takes what other threads handed over, waiting for it if there is nothing to do, not even something to free; `false` to stop.
    fn receive(&mut self) -> bool {
        let shared = self.shared.clone();
        let mut inbox = shared.lock();
        if self.ready.ready() == 0 && inbox.is_empty() && !self.remains.is_empty() {
            drop(inbox);
            self.share_remains();
            self.remains.free_slice();
            // Whoever came is seen now, and the deadlines of those that wait are looked at.
            return self.take(shared.lock());
        }
        if self.ready.ready() == 0 && inbox.is_empty() {
            shared.idle_since_ns.store(shared.peers.now_ns(), Ordering::Relaxed);
        }
        while self.ready.ready() == 0 && inbox.is_empty() {
            if self.waiting.is_empty() {
                inbox = shared.arrived.wait(inbox).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let (guard, timeout) =
                shared.arrived.wait_timeout(inbox, IDLE_LOOK_INTERVAL).unwrap_or_else(PoisonError::into_inner);
            inbox = guard;
            if timeout.timed_out() {
                break;
            }
        }
        shared.idle_since_ns.store(0, Ordering::Relaxed);
        self.take(inbox)
    }

    /// Leaves a part of what is to be freed to an executor that has nothing to do, if it is much.
    fn share_remains(&mut self) {
        let peers = &self.shared.peers;
        if self.remains.has_much()
            && peers.has_waiting(&self.shared)
            && let Some(part) = self.remains.split()
        {
            let left = match peers.claim_waiting(&self.shared) {
                Some(idle) => idle.leave(part),
                None => Some(part),
            };
            self.remains.add(left);
        }
    }

    /// Takes what lies in the inbox; `false` to stop.
    fn take(&mut self, mut inbox: MutexGuard<'_, Inbox<D>>) -> bool {
        let stop = inbox.stop;
        let new = std::mem::take(&mut inbox.new);
        let woken = std::mem::take(&mut inbox.woken);
        let stopped = std::mem::take(&mut inbox.stopped);
        inbox.remains.drain(..).for_each(|estate| self.remains.add(Some(estate)));
        inbox.paced.urgent.store(false, Ordering::Relaxed);
        drop(inbox);
        for (tenant, id, mut task) in new {
            if let Some(undertaker) = &self.undertaker {
                task.set_undertaker(undertaker.clone());
            }
            self.make_ready(tenant, id, task);
        }
        for id in woken {
            if let Some((tenant, task)) = self.waiting.remove(&id) {
                self.make_ready(tenant, id, task);
            }
        }
        if !stopped.is_empty() {
            self.end_interrupted(|id| stopped.contains(&id));
        }
        let look_turns = BUSY_LOOK_TURNS.max((self.waiting.len() + self.ready.ready()) / LOOKS_PER_TURN);
        if self.ready.ready() == 0 || self.turns_since_look >= look_turns {
            self.turns_since_look = 0;
            self.end_interrupted(|_| true);
        }
        !stop
    }

    /// Ends tasks, among those that `looks_at` names, that were cancelled or are past their deadline, wherever they are.
    fn end_interrupted(&mut self, looks_at: impl Fn(u64) -> bool) {
        let (shared, remains) = (&self.shared, &mut self.remains);
        let mut ends = |id: u64, task: &mut Task<D>| {
            let interrupted = looks_at(id) && task.fail_if_interrupted();
            if interrupted {
                task.tell_size();
                remains.add(task.take_remains());
                shared.load.fetch_sub(1, Ordering::Relaxed);
            }
            interrupted
        };
        self.waiting.retain(|id, (_, task)| !ends(*id, task));
        self.ready.remove_if(|(id, task)| ends(*id, task));
    }

    fn make_ready(&mut self, tenant: Tenant, id: u64, task: Task<D>) {
        let turns = self.turns_of(&task);
        self.ready.add(tenant, turns, id, (id, task));
    }

    /// How large a task is in turns of the shortest kind.
    fn turns_of(&self, task: &Task<D>) -> u64 {
        task.size_units() / self.turn_quota.unsigned_abs()
    }

    /// Gives the next task, if there is one, its turn; says whose it was, and the work units of it.
    #[cfg(test)]
    fn turn(&mut self) -> Option<(Tenant, u64)> {
        let mut turn = self.begin_turn()?;
        let state = turn.run(&self.shared, &self.paced);
        Some(self.end_turn(turn, state))
    }

    /// Takes the next task, if there is one; `end_turn` or `leave_turn` must follow.
    fn begin_turn(&mut self) -> Option<Turn<D>> {
        let (tenant, (id, task)) = self.ready.next()?;
        if let Some(undertaker) = &self.undertaker {
            self.remains.leave_to(undertaker);
        }
        self.paced.others_ready.store(self.ready.ready(), Ordering::Relaxed);
        self.paced.set_tenant(tenant);
        // A large query gets several turns in one go, but no more than the smallest that waits would get: each change of the task costs it its
        // caches. Whoever needs the executor ends them.
        let (own, smallest) = (self.turns_of(&task), self.ready.turns_of_smallest().unwrap_or(u64::MAX));
        let turns_at_once = match smallest.saturating_mul(2) <= own {
            // One that is smaller waits for it: not for much of its own size.
            true => smallest / FAIR_SHARE.unsigned_abs(),
            false => smallest.min(own) / 2,
        };
        let turns_at_once = turns_at_once.clamp(1, TURNS_AT_ONCE);
        let quota = self.turn_quota.saturating_mul(turns_at_once.cast_signed());
        Some(Turn { tenant, id, quota, units_before: task.work_units(), duration_ns: 0, task })
    }

    fn end_turn(&mut self, turn: Turn<D>, state: TaskState) -> (Tenant, u64) {
        let Turn { tenant, id, mut task, units_before, duration_ns, .. } = turn;
        let units = (task.work_units() - units_before).max(1);
        let time = duration_ns / UNIT_NS;
        task.was_served(units.max(time));
        self.turns_since_look += units.div_ceil(self.turn_quota.unsigned_abs()) as usize;
        self.ready.served(tenant, units, time);
        match state {
            TaskState::Runnable => self.make_ready(tenant, id, task),
            // A wake that came during the turn lies in the inbox and is seen after this.
            TaskState::Waiting => {
                self.waiting.insert(id, (tenant, task));
            }
            TaskState::Done => {
                task.tell_size();
                self.remains.add(task.take_remains());
                self.shared.load.fetch_sub(1, Ordering::Relaxed);
            }
        }
        (tenant, units)
    }

    /// Cancels every task that is left.
    fn stop(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        let tasks = self.ready.drain().into_iter().chain(waiting.into_iter().map(|(id, (_, task))| (id, task)));
        for (_, mut task) in tasks {
            task.abort(Interrupt::ShutDown);
            self.shared.load.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod remains_tests;
#[cfg(test)]
mod spread_tests;
#[cfg(test)]
mod tests;
