//! Executors: one thread each, running the tasks they were given in turns.
//!
//! The tree of quotas begins here: an executor divides its time between tenants (by weight, least served first), a tenant
//! between its queries, a query (in `region.rs` and the scopes) between its instances. Within a tenant queries are ranked by
//! the work they have had so far in powers of two, so that a small query that arrives beside large ones runs next; one turn
//! in eight goes to the other end of the ranking, so that large queries finish too.
//!
//! A task stays on the executor it was given to. Waiting (for a full sink) is a state, not a blocked thread.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::task::{Task, TaskHandle, TaskState};
use crate::{Domain, Interrupt};

/// How executors run.
#[derive(Clone, Debug)]
pub struct ExecutorOptions {
    /// Threads; one per core is the intent.
    pub executors: usize,
    /// Work units of one turn: long enough to amortise the switch, short enough (about 100 µs) to stop soon.
    pub turn_quota: i64,
}

impl Default for ExecutorOptions {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        ExecutorOptions { executors: cores, turn_quota: 4096 }
    }
}

/// Levels of work a query may have had, in powers of two of a turn.
const LEVELS: usize = 24;

struct Inbox<D: Domain> {
    new: VecDeque<(u64, u64, Task<D>)>,
    woken: Vec<u64>,
    stop: bool,
}

struct Shared<D: Domain> {
    /// Protects what other threads hand over; held for a push or a swap only, never while a task runs.
    inbox: Mutex<Inbox<D>>,
    arrived: Condvar,
    /// Tasks here, for placement.
    load: AtomicUsize,
}

impl<D: Domain> Shared<D> {
    fn lock(&self) -> MutexGuard<'_, Inbox<D>> {
        // A panic while holding it cannot leave the inbox half-changed: all critical sections are single pushes or swaps.
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes one waiting task.
pub struct Waker<D: Domain> {
    target: Option<(Arc<Shared<D>>, u64)>,
}

impl<D: Domain> Clone for Waker<D> {
    fn clone(&self) -> Self {
        Waker { target: self.target.clone() }
    }
}

impl<D: Domain> Waker<D> {
    /// A waker for a task that runs on its caller's thread: does nothing.
    pub fn detached() -> Waker<D> {
        Waker { target: None }
    }

    /// Makes the task runnable again. Harmless if it is not waiting.
    pub fn wake(&self) {
        if let Some((shared, task)) = &self.target {
            shared.lock().woken.push(*task);
            shared.arrived.notify_one();
        }
    }
}

/// A set of executor threads.
pub struct Executors<D: Domain> {
    shared: Vec<Arc<Shared<D>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    next_task: AtomicUsize,
}

impl<D: Domain> Executors<D> {
    /// Starts the threads.
    ///
    /// Errors: those of the operating system when it refuses a thread.
    pub fn start(options: &ExecutorOptions) -> std::io::Result<Executors<D>> {
        let mut shared = Vec::new();
        let mut threads = Vec::new();
        for number in 0..options.executors.max(1) {
            let inbox = Inbox { new: VecDeque::new(), woken: Vec::new(), stop: false };
            let one = Arc::new(Shared { inbox: Mutex::new(inbox), arrived: Condvar::new(), load: AtomicUsize::new(0) });
            shared.push(one.clone());
            let turn_quota = options.turn_quota.max(1);
            threads.push(
                std::thread::Builder::new()
                    .name(format!("executor-{number}"))
                    // Scopes nest on the stack, a few frames each; plans bound their depth.
                    .stack_size(16 << 20)
                    .spawn(move || Executor::new(one, turn_quota).run())?,
            );
        }
        Ok(Executors { shared, threads: Mutex::new(threads), next_task: AtomicUsize::new(0) })
    }

    /// How many threads there are.
    pub fn count(&self) -> usize {
        self.shared.len()
    }

    /// Tasks that are running or waiting.
    pub fn load(&self) -> usize {
        self.shared.iter().map(|shared| shared.load.load(Ordering::Relaxed)).sum()
    }

    /// Gives a task of `tenant` to the least loaded executor.
    pub fn submit(&self, tenant: u64, task: Task<D>) -> TaskHandle<D> {
        let number = self.next_task.fetch_add(1, Ordering::Relaxed);
        let start = number % self.shared.len();
        let shared = (0..self.shared.len())
            .map(|offset| &self.shared[(start + offset) % self.shared.len()])
            .min_by_key(|shared| shared.load.load(Ordering::Relaxed))
            .expect("there is at least one executor");
        shared.load.fetch_add(1, Ordering::Relaxed);
        let id = number as u64;
        let handle =
            TaskHandle { cancel: task.cancel_token(), waker: Some(Waker { target: Some((shared.clone(), id)) }) };
        shared.lock().new.push_back((tenant, id, task));
        shared.arrived.notify_one();
        handle
    }
}

impl<D: Domain> Drop for Executors<D> {
    /// Cancels what still runs and waits for the threads.
    fn drop(&mut self) {
        for shared in &self.shared {
            shared.lock().stop = true;
            shared.arrived.notify_one();
        }
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // The last owner may be dropped on an executor itself (by a sink that held it).
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

struct Tenant<D: Domain> {
    /// Work its queries have had.
    served: u64,
    levels: Vec<VecDeque<(u64, Task<D>)>>,
    ready: usize,
    turns: u64,
}

impl<D: Domain> Tenant<D> {
    fn new(served: u64) -> Tenant<D> {
        Tenant { served, levels: (0..LEVELS).map(|_| VecDeque::new()).collect(), ready: 0, turns: 0 }
    }

    fn add(&mut self, id: u64, task: Task<D>, turn_quota: i64) {
        let turns = task.work_units() / turn_quota.unsigned_abs().max(1);
        let level = (u64::BITS - turns.leading_zeros()) as usize;
        self.levels[level.min(LEVELS - 1)].push_back((id, task));
        self.ready += 1;
    }

    fn take(&mut self) -> Option<(u64, Task<D>)> {
        self.turns += 1;
        let task = if self.turns % 8 == 0 {
            self.levels.iter_mut().rev().find_map(VecDeque::pop_front)
        } else {
            self.levels.iter_mut().find_map(VecDeque::pop_front)
        };
        if task.is_some() {
            self.ready -= 1;
        }
        task
    }
}

struct Executor<D: Domain> {
    shared: Arc<Shared<D>>,
    turn_quota: i64,
    tenants: BTreeMap<u64, Tenant<D>>,
    waiting: HashMap<u64, (u64, Task<D>)>,
    ready: usize,
}

impl<D: Domain> Executor<D> {
    fn new(shared: Arc<Shared<D>>, turn_quota: i64) -> Executor<D> {
        Executor { shared, turn_quota, tenants: BTreeMap::new(), waiting: HashMap::new(), ready: 0 }
    }

    fn run(mut self) {
        loop {
            if !self.receive() {
                self.stop();
                return;
            }
            if let Some(tenant) = self.least_served() {
                self.turn(tenant);
            }
        }
    }

    /// Takes what other threads handed over, waiting for it if there is nothing to do; `false` to stop.
    fn receive(&mut self) -> bool {
        let shared = self.shared.clone();
        let mut inbox = shared.lock();
        while self.ready == 0 && inbox.new.is_empty() && inbox.woken.is_empty() && !inbox.stop {
            if self.waiting.is_empty() {
                inbox = shared.arrived.wait(inbox).unwrap_or_else(PoisonError::into_inner);
            } else {
                // Deadlines of waiting tasks are looked at every few milliseconds.
                let (guard, timeout) = shared
                    .arrived
                    .wait_timeout(inbox, Duration::from_millis(5))
                    .unwrap_or_else(PoisonError::into_inner);
                inbox = guard;
                if timeout.timed_out() {
                    break;
                }
            }
        }
        if inbox.stop {
            for (tenant, id, task) in inbox.new.drain(..) {
                self.waiting.insert(id, (tenant, task));
            }
            return false;
        }
        let new = std::mem::take(&mut inbox.new);
        let woken = std::mem::take(&mut inbox.woken);
        drop(inbox);
        for (tenant, id, task) in new {
            self.make_ready(tenant, id, task);
        }
        for id in woken {
            self.wake(id);
        }
        if !self.waiting.is_empty() && self.ready == 0 {
            self.drop_interrupted();
        }
        true
    }

    fn wake(&mut self, id: u64) {
        if let Some((tenant, task)) = self.waiting.remove(&id) {
            self.make_ready(tenant, id, task);
        }
    }

    fn drop_interrupted(&mut self) {
        let shared = &self.shared;
        self.waiting.retain(|_, (_, task)| {
            let interrupted = task.fail_if_interrupted();
            if interrupted {
                shared.load.fetch_sub(1, Ordering::Relaxed);
            }
            !interrupted
        });
    }

    fn make_ready(&mut self, tenant: u64, id: u64, task: Task<D>) {
        // A tenant that comes back does not bring the time it was away.
        let floor = self.tenants.values().filter(|other| other.ready > 0).map(|other| other.served).min();
        let entry = self.tenants.entry(tenant).or_insert_with(|| Tenant::new(floor.unwrap_or(0)));
        if entry.ready == 0
            && let Some(floor) = floor
        {
            entry.served = entry.served.max(floor);
        }
        entry.add(id, task, self.turn_quota);
        self.ready += 1;
    }

    fn least_served(&self) -> Option<u64> {
        self.tenants
            .iter()
            .filter(|(_, tenant)| tenant.ready > 0)
            .min_by_key(|(_, tenant)| tenant.served)
            .map(|(id, _)| *id)
    }

    fn turn(&mut self, tenant: u64) {
        let Some(entry) = self.tenants.get_mut(&tenant) else { return };
        let Some((id, mut task)) = entry.take() else { return };
        self.ready -= 1;
        let before = task.work_units();
        let waker = Waker { target: Some((self.shared.clone(), id)) };
        let state = task.run(self.turn_quota, &waker);
        entry.served += (task.work_units() - before).max(1);
        match state {
            TaskState::Runnable => {
                entry.add(id, task, self.turn_quota);
                self.ready += 1;
            }
            // A wake that came during the turn lies in the inbox and is seen after this.
            TaskState::Waiting => {
                self.waiting.insert(id, (tenant, task));
            }
            TaskState::Done => {
                self.shared.load.fetch_sub(1, Ordering::Relaxed);
            }
        }
        if self.tenants.len() > 64 {
            self.tenants.retain(|_, tenant| tenant.ready > 0);
        }
    }

    fn stop(&mut self) {
        let mut tasks: Vec<Task<D>> = self.waiting.drain().map(|(_, (_, task))| task).collect();
        for tenant in self.tenants.values_mut() {
            while let Some((_, task)) = tenant.take() {
                tasks.push(task);
            }
        }
        for mut task in tasks {
            task.abort(Interrupt::Cancelled);
            self.shared.load.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
