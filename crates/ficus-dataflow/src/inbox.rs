//! What other threads see of an executor: where they hand tasks over, and how tasks are woken.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::executor::Executor;
use crate::pace::Paced;
use crate::peers::Peers;
use crate::task::Task;
use crate::tenant::Tenant;
use crate::undertaker::Estate;
use crate::{Domain, Interrupt, SpreadOptions};

/// How long a walk that cannot be left may last in a guest's turn: the thread is that of connections, and others may wait to be heard.
const GUEST_ALONE_NS: u64 = 1_000_000;

pub(crate) struct Inbox<D: Domain> {
    pub new: VecDeque<(Tenant, u64, Task<D>)>,
    pub woken: Vec<u64>,
    /// Tasks that are to end wherever they are.
    pub stopped: Vec<u64>,
    /// What another executor leaves it to free.
    pub remains: Vec<Estate>,
    pub stop: bool,
    /// The turns of the thread that is the executor at present.
    pub paced: Arc<Paced>,
}

impl<D: Domain> Inbox<D> {
    pub fn is_empty(&self) -> bool {
        self.new.is_empty() && self.woken.is_empty() && self.stopped.is_empty() && self.remains.is_empty() && !self.stop
    }
}

pub(crate) struct Shared<D: Domain> {
    /// Which of the executors it is.
    pub number: usize,
    /// Protects what other threads hand over; held for a push or a swap only, never while a task runs. Ranks behind `desk`.
    inbox: Mutex<Inbox<D>>,
    pub arrived: Condvar,
    /// Its tasks, for placement.
    pub load: AtomicUsize,
    /// Since when it waits for something to do, in nanoseconds of its peers' clock; 0 if it does not. Who sets it to 0 may give it a task.
    pub idle_since_ns: AtomicU64,
    /// One more than the number of the task that it has helped and has nothing more to do for, if nothing else has begun on it since; else 0. Who
    /// sets it to 0 may give it a task for that one.
    pub helped: AtomicU64,
    /// The turn of its guest, which counts in the load of the executor.
    pub guest: Arc<Paced>,
    /// The executor while a task has its turn: whoever finds it here may take it, and goes on with all its other tasks.
    desk: Mutex<Option<Box<Executor<D>>>>,
    /// The others.
    pub peers: Arc<Peers<D>>,
}

impl<D: Domain> Shared<D> {
    pub fn new(number: usize, peers: Arc<Peers<D>>) -> Shared<D> {
        let inbox = Inbox {
            new: VecDeque::new(),
            woken: Vec::new(),
            stopped: Vec::new(),
            remains: Vec::new(),
            stop: false,
            paced: Arc::default(),
        };
        Shared {
            number,
            inbox: Mutex::new(inbox),
            arrived: Condvar::new(),
            load: AtomicUsize::new(0),
            idle_since_ns: AtomicU64::new(0),
            helped: AtomicU64::new(0),
            guest: Arc::default(),
            desk: Mutex::new(None),
            peers,
        }
    }

    /// The executor while it has its turns, for [`crate::relief`].
    pub fn desk(&self) -> MutexGuard<'_, Option<Box<Executor<D>>>> {
        // What is done while holding it are single moves.
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a new task over.
    pub fn begin(&self, tenant: Tenant, id: u64, task: Task<D>) {
        self.load.fetch_add(1, Ordering::SeqCst);
        self.helped.store(0, Ordering::Relaxed);
        self.hand_over(tenant, id, task);
    }

    /// Hands over a task that counts already.
    pub fn hand_over(&self, tenant: Tenant, id: u64, mut task: Task<D>) {
        let mut inbox = self.lock();
        if inbox.stop {
            // Nobody may be there to take it any more.
            drop(inbox);
            task.abort(Interrupt::ShutDown);
            self.load.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        inbox.new.push_back((tenant, id, task));
        inbox.paced.urgent.store(true, Ordering::Relaxed);
        drop(inbox);
        self.arrived.notify_one();
    }

    /// Leaves something to it to free; given back if it is to stop.
    pub fn leave(&self, estate: Estate) -> Option<Estate> {
        let mut inbox = self.lock();
        if inbox.stop {
            return Some(estate);
        }
        inbox.remains.push(estate);
        drop(inbox);
        self.arrived.notify_one();
        None
    }

    pub fn lock(&self) -> MutexGuard<'_, Inbox<D>> {
        // A panic while holding it cannot leave the inbox half-changed: all critical sections are single pushes or swaps.
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the caller is its guest from now on, which counts as a task; not if it has any.
    pub fn receives_guest(&self) -> bool {
        let receives = self.load.compare_exchange(0, 1, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        if receives {
            self.helped.store(0, Ordering::Relaxed);
        }
        receives
    }
}

/// A task, and where it is.
pub(crate) struct Target<D: Domain> {
    pub shared: Arc<Shared<D>>,
    pub task: u64,
    pub place: Place,
}

/// From where a task is woken, or in whose turn it is asked about its executor.
#[derive(Clone)]
pub(crate) enum Place {
    /// Outside of turns.
    Outside,
    /// In a turn of the thread that is, or was when it began, the executor.
    Executor(Arc<Paced>),
    /// In the turn of its guest, which lasts since then by the clock of the peers.
    Guest { since_ns: u64 },
}

impl<D: Domain> Target<D> {
    /// Whether its turn is that of the executor's guest.
    fn is_guest(&self) -> bool {
        matches!(self.place, Place::Guest { .. })
    }

    /// What its turn is paced by, if it has one.
    fn paced(&self) -> Option<&Paced> {
        match &self.place {
            Place::Outside => None,
            Place::Executor(paced) => Some(paced),
            Place::Guest { .. } => Some(&self.shared.guest),
        }
    }
}

impl<D: Domain> Clone for Target<D> {
    fn clone(&self) -> Self {
        Target { shared: self.shared.clone(), task: self.task, place: self.place.clone() }
    }
}

/// Wakes one waiting task.
pub struct Waker<D: Domain> {
    pub(crate) target: Option<Target<D>>,
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

    /// A waker for a task of this executor.
    pub(crate) fn of(shared: &Arc<Shared<D>>, task: u64) -> Waker<D> {
        Waker { target: Some(Target { shared: shared.clone(), task, place: Place::Outside }) }
    }

    /// The waker of a task that has its turn.
    pub(crate) fn in_turn(shared: &Arc<Shared<D>>, task: u64, place: Place) -> Waker<D> {
        Waker { target: Some(Target { shared: shared.clone(), task, place }) }
    }

    /// Makes the task runnable again. Harmless if it is not waiting.
    pub fn wake(&self) {
        if let Some(Target { shared, task, .. }) = &self.target {
            let mut inbox = shared.lock();
            // A sink may call for every row it hands on; once is enough.
            if inbox.woken.last() != Some(task) {
                inbox.woken.push(*task);
            }
            drop(inbox);
            shared.arrived.notify_one();
        }
    }

    /// Has the task looked at wherever it is, because it is to stop.
    pub(crate) fn end(&self) {
        if let Some(Target { shared, task, .. }) = &self.target {
            let mut inbox = shared.lock();
            inbox.stopped.push(*task);
            inbox.paced.urgent.store(true, Ordering::Relaxed);
            drop(inbox);
            shared.arrived.notify_one();
        }
    }

    /// Ends the turn under way on the task's executor, whoever has it.
    pub(crate) fn hurry(&self) {
        if let Some(Target { shared, .. }) = &self.target {
            shared.lock().paced.urgent.store(true, Ordering::Relaxed);
        }
    }

    /// The rules by which the task may use other executors; none if there are no others or it must not.
    pub(crate) fn spreads_by(&self) -> Option<&SpreadOptions> {
        self.target.as_ref().and_then(|target| target.shared.peers.options())
    }

    /// Whether another executor has nothing to do, and could help. If so a guest's turn is over: the query goes on at the executor, which gets the
    /// help.
    pub(crate) fn has_idle_peer(&self) -> bool {
        let Some(target) = &self.target else { return false };
        let has_idle = target.shared.peers.has_idle(&target.shared, target.task);
        if target.is_guest() && has_idle {
            target.shared.guest.urgent.store(true, Ordering::Relaxed);
        }
        has_idle && !target.is_guest()
    }

    /// Whether other tasks of the executor were ready when the turn under way began.
    pub(crate) fn keeps_others_waiting(&self) -> bool {
        let paced = self.target.as_ref().and_then(Target::paced);
        paced.is_some_and(|paced| paced.others_ready.load(Ordering::Relaxed) > 0)
    }

    /// Whether nobody waits for the thread: the executor has no other task. Who waits for that of a guest cannot be seen, so one is alone for
    /// [`GUEST_ALONE_NS`] only.
    pub(crate) fn is_alone(&self) -> bool {
        self.target.as_ref().is_some_and(|target| match target.place {
            Place::Guest { since_ns } => target.shared.peers.now_ns().saturating_sub(since_ns) < GUEST_ALONE_NS,
            _ => target.shared.load.load(Ordering::Relaxed) <= 1,
        })
    }

    /// Gives a task to another executor that has nothing to do, for the tenant whose turn it is here; `false`, and nothing is made, if there is
    /// none. `make` gets the waker of the new task. Called on the executor, in a turn.
    pub(crate) fn enlist(&self, make: impl FnOnce(Waker<D>) -> Task<D>) -> bool {
        let Some(Target { shared: own, task: helped, place: Place::Executor(paced) }) = &self.target else {
            return false;
        };
        let Some(peer) = own.peers.claim_idle(own, *helped) else { return false };
        let id = own.peers.next_task();
        let task = make(Waker::of(&peer, id));
        peer.begin(paced.tenant(), id, task);
        true
    }

    /// The number of the task in whose turn it is asked.
    pub(crate) fn task(&self) -> Option<u64> {
        self.target.as_ref().map(|target| target.task)
    }

    /// Says of the executor of a task that it has nothing more to do for the task that it helped.
    pub(crate) fn has_helped(&self, task: u64) {
        if let Some(target) = &self.target {
            target.shared.helped.store(task + 1, Ordering::Relaxed);
        }
    }

    /// Whether there is an executor whose turn it is.
    pub(crate) fn is_on_executor(&self) -> bool {
        self.target.is_some()
    }

    /// Set while somebody else needs the executor.
    pub(crate) fn urgent(&self) -> &AtomicBool {
        static NEVER: AtomicBool = AtomicBool::new(false);
        self.target.as_ref().and_then(Target::paced).map_or(&NEVER, |paced| &paced.urgent)
    }
}
