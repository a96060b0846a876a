//! What the owner of a spread region and its helpers share: rows that wait, and chunks under way.
//!
//! ```text
//!            pending            slots: chunks in the order in which they were taken
//!   input ─▶ r r r r ──take──▶ [owner] [helper] [helper] ...
//!                                 │ first: its rows go on          others: their rows wait in the slot
//!                                 ▼
//!                              output
//! ```
//!
//! Everything is behind one lock, which is held for moving some rows and never while an operator runs: it is taken a few times per chunk, and a
//! chunk is some 50 microseconds of work or more. The lock ranks before those of inboxes; wakers are called without it.
//!
//! Who waits is woken when there is work for a while, not for every row: waking another core takes as long as some ten rows, and more if it sleeps. A
//! helper whose rows have no room goes on when half of it is free, and the owner hears of the rows of the first chunk when there are some hundred, when
//! the chunk is done, or after [`TOLD_AFTER_NS`].
//!
//! Nobody waits for ever: the chunk at the front can always be worked on, because its rows go out or its slot is emptied by the owner, and with
//! none under way the next can always be taken.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::SpreadOptions;
use crate::inbox::Waker;
use crate::{Cx, Domain, NodeProfile, Queue};

/// Rows of the first chunk for which the owner is woken at once.
const TOLD_ROWS: usize = 512;

/// And after which time for fewer, since it was last told: the first rows of slow ones are not to wait.
const TOLD_AFTER_NS: u64 = 100_000;

/// Everybody takes one of so many parts of what waits for him.
const PARTS: usize = 2;

/// And of so many where not more rows than these wait: if they take long, one may take as long as many others.
const PARTS_OF_FEW: usize = 8;
const FEW_ROWS: usize = 64;

/// A chunk under way, or done and not handed on yet.
struct Slot<D: Domain> {
    /// Who works on it.
    holder: Holder,
    rows: Queue<D::Message>,
    done: bool,
    error: Option<D::Error>,
}

/// Who works on a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    Owner,
    Helper(u32),
}

struct State<D: Domain> {
    pending: Queue<D::Message>,
    /// No more input comes.
    closed: bool,
    slots: VecDeque<Slot<D>>,
    /// The number of the first of `slots`.
    first: u64,
    /// Rows in slots.
    ready_rows: usize,
    /// What `pending` and `slots` hold on the query's account.
    size: usize,
    /// About what a row takes.
    row_ns: u64,
    /// Rows of chunks that are done, and what they took.
    done_rows: usize,
    done_ns: u64,
    /// The owner, if it has nothing to do until a helper has.
    owner_waits: Option<Waker<D>>,
    /// When it was last told of rows.
    owner_told_ns: u64,
    /// Helpers that wait for a chunk.
    wait_for_chunks: Vec<Waker<D>>,
    /// Helpers that wait for room in the slot of this number.
    wait_for_room: Vec<(u64, Waker<D>)>,
    /// Helpers that have not left.
    helpers: Vec<(u32, Waker<D>)>,
    /// Helpers that there were.
    enlisted: u32,
    /// What helpers counted and the owner has not added yet, by node; empty unless the query is profiled.
    profile: Vec<NodeProfile>,
}

/// What somebody who asks for a chunk gets.
pub(super) enum Take<M> {
    /// Rows to work on, under this number.
    Chunk(u64, Queue<M>),
    /// There may be some later.
    Later,
    /// There will be none.
    Never,
}

/// Rows that wait, chunks under way.
pub(super) struct Exchange<D: Domain> {
    /// The owner.
    task: Option<u64>,
    state: Mutex<State<D>>,
    /// Nobody wants the rest.
    over: AtomicBool,
    options: SpreadOptions,
}

impl<D: Domain> Exchange<D> {
    /// One in which the owner works on chunk 0; so far a row took `row_ns`.
    pub fn new(task: Option<u64>, options: SpreadOptions, row_ns: u64) -> Exchange<D> {
        let own = Slot { holder: Holder::Owner, rows: Queue::new(), done: false, error: None };
        let state = State {
            pending: Queue::new(),
            closed: false,
            slots: VecDeque::from([own]),
            first: 0,
            ready_rows: 0,
            size: 0,
            row_ns,
            done_rows: 0,
            done_ns: 0,
            owner_waits: None,
            owner_told_ns: 0,
            wait_for_chunks: Vec::new(),
            wait_for_room: Vec::new(),
            helpers: Vec::new(),
            enlisted: 0,
            profile: Vec::new(),
        };
        Exchange { task, state: Mutex::new(state), over: AtomicBool::new(false), options }
    }

    fn lock(&self) -> MutexGuard<'_, State<D>> {
        // What is done while holding it moves rows and does not call operators.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nobody wants the rest.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// For the owner: takes `input` in as far as there is room, and moves what is ready to `out`.
    ///
    /// Errors: that of the chunk whose rows would be next, once those before its end have gone out; of the account.
    pub fn advance(
        &self,
        input: &mut Queue<D::Message>,
        closed: bool,
        out: &mut Queue<D::Message>,
        cx: &mut Cx<'_, D>,
    ) -> Result<Advance, D::Error> {
        let mut state = self.lock();
        if let Some(profile) = cx.profile.as_deref_mut() {
            profile.iter_mut().zip(state.profile.drain(..)).for_each(|(own, more)| own.add(&more));
        }
        let (mut taken, mut given) = (0, 0);
        let room = self.options.pending_rows_max.saturating_sub(state.pending.len());
        let count = room.min(input.len());
        for row in input.drain(..count) {
            taken += D::size(&row);
            state.pending.push_back(row);
        }
        state.closed = closed;
        let before = out.len();
        let (mut fails, mut failed) = (false, None);
        while out.len() < cx.batch_rows_limit {
            let Some(slot) = state.slots.front_mut() else { break };
            if let Some(row) = slot.rows.pop_front() {
                given += D::size(&row);
                out.push_back(row);
                continue;
            }
            if !slot.done {
                break;
            }
            if slot.error.is_some() {
                // Rows before it have to be looked at first: they may be enough.
                fails = true;
                failed = if out.is_empty() { slot.error.take() } else { None };
                break;
            }
            state.slots.pop_front();
            state.first += 1;
        }
        let moved = out.len() - before;
        state.ready_rows -= moved;
        state.size = (state.size + taken).saturating_sub(given);
        state.owner_waits = None;
        let woken = self.helpers_to_wake(&mut state);
        let advance = Advance {
            first: state.first,
            pending: state.pending.len(),
            under_way: state.slots.len(),
            helpers: state.helpers.len(),
            fails,
        };
        // Before anybody can give it back.
        let retained = D::retain(cx.context, taken as isize);
        drop(state);
        woken.iter().for_each(Waker::wake);
        cx.charge(count + moved);
        cx.give_back(given);
        retained?;
        failed.map_or(Ok(advance), Err)
    }

    /// Those who have waited for what is there now.
    fn helpers_to_wake(&self, state: &mut State<D>) -> Vec<Waker<D>> {
        let mut woken = Vec::new();
        if state.wait_for_chunks.is_empty() && state.wait_for_room.is_empty() {
            return woken;
        }
        let is_half_free = state.ready_rows <= self.options.ready_rows_max / 2;
        let has_chunks = !state.pending.is_empty() && (is_half_free || state.slots.is_empty());
        if has_chunks || state.closed && state.pending.is_empty() {
            woken.append(&mut state.wait_for_chunks);
        }
        let State { slots, first, wait_for_room, .. } = state;
        let has_room = |number: u64| {
            let Some(index) = number.checked_sub(*first) else { return true };
            let held = slots.get(index as usize).map_or(0, |slot| slot.rows.len());
            held <= self.options.slot_rows_max / 2 && (index == 0 || held == 0 || is_half_free)
        };
        woken.extend(wait_for_room.extract_if(.., |(number, _)| has_room(*number)).map(|(_, waker)| waker));
        woken
    }

    /// The next rows to work on. A helper gives its waker, which is called when there may be some.
    pub fn take(&self, holder: Holder, waker: Option<&Waker<D>>, cx: &mut Cx<'_, D>) -> Take<D::Message> {
        let mut state = self.lock();
        if self.is_over() || (state.closed && state.pending.is_empty()) {
            return Take::Never;
        }
        let is_full = state.ready_rows >= self.options.ready_rows_max && !state.slots.is_empty();
        if state.pending.is_empty() || is_full {
            state.wait_for_chunks.extend(waker.cloned());
            return Take::Later;
        }
        let count = self.chunk_rows(&state);
        let rows: Queue<D::Message> = state.pending.drain(..count).collect();
        let size = rows.iter().map(D::size).sum();
        state.size = state.size.saturating_sub(size);
        let number = state.first + state.slots.len() as u64;
        state.slots.push_back(Slot { holder, rows: Queue::new(), done: false, error: None });
        drop(state);
        cx.give_back(size);
        Take::Chunk(number, rows)
    }

    /// Guided self-scheduling: everybody takes a part of what is left, so that all end at about the same time; not so little that taking costs
    /// more than working, nor so much that others wait long for somebody who was interrupted.
    fn chunk_rows(&self, state: &State<D>) -> usize {
        let row_ns = state.row_ns.max(1);
        let rows = |ns: u64| usize::try_from(ns / row_ns).unwrap_or(usize::MAX).max(1);
        let (least, most) = (rows(self.options.chunk_ns_min), rows(self.options.chunk_ns_max));
        let parts = if state.pending.len() <= FEW_ROWS { PARTS_OF_FEW } else { PARTS };
        let share = state.pending.len() / (parts * (state.helpers.len() + 1));
        share.clamp(least, most.max(least)).min(state.pending.len())
    }

    /// Whether the holder of a chunk should go on: there is room for what it yields. Else `waker` is called when there is.
    pub fn has_room(&self, number: u64, waker: Option<&Waker<D>>) -> bool {
        let mut state = self.lock();
        if self.is_over() {
            return true;
        }
        let Some(index) = number.checked_sub(state.first) else { return true };
        let held = state.slots.get(index as usize).map_or(0, |slot| slot.rows.len());
        let is_full = held >= self.options.slot_rows_max
            || (index > 0 && held > 0 && state.ready_rows >= self.options.ready_rows_max);
        if is_full {
            state.wait_for_room.extend(waker.map(|waker| (number, waker.clone())));
        }
        !is_full
    }

    /// For a helper: hands over what it has counted, before what that yielded, so that the owner knows both or neither.
    pub fn report(&self, cx: &mut Cx<'_, D>) {
        let Some(counted) = cx.profile.as_deref_mut() else { return };
        let mut state = self.lock();
        state.profile.resize(counted.len(), NodeProfile::default());
        for (sum, own) in state.profile.iter_mut().zip(counted) {
            sum.add(&std::mem::take(own));
        }
    }

    /// Adds what the holder of a chunk has yielded, which may be nothing; to be called after each of its turns, so that the owner hears of rows before.
    /// Dropped if nobody wants it.
    ///
    /// Errors: of the account.
    pub fn put(&self, number: u64, rows: &mut Queue<D::Message>, cx: &mut Cx<'_, D>) -> Result<(), D::Error> {
        let size: usize = rows.iter().map(D::size).sum();
        let count = rows.len();
        let mut state = self.lock();
        let index = number.checked_sub(state.first);
        let slot = index.filter(|_| !self.is_over()).and_then(|index| state.slots.get_mut(index as usize));
        let Some(slot) = slot else {
            drop(state);
            rows.clear();
            return Ok(());
        };
        slot.rows.append(rows);
        let held = slot.rows.len();
        state.ready_rows += count;
        state.size += size;
        let now_ns = cx.control.clock.now_ns();
        // Before its holder would wait for room.
        let enough = TOLD_ROWS.min(self.options.slot_rows_max);
        let is_told = index == Some(0)
            && held > 0
            && (held >= enough || now_ns.saturating_sub(state.owner_told_ns) >= TOLD_AFTER_NS);
        let woken = if is_told { state.owner_waits.take() } else { None };
        if woken.is_some() {
            state.owner_told_ns = now_ns;
        }
        // Before anybody can give it back.
        let retained = D::retain(cx.context, size as isize);
        drop(state);
        woken.iter().for_each(Waker::wake);
        retained
    }

    /// A chunk is done: `rows` of it took `duration_ns`.
    pub fn done(&self, number: u64, rows: usize, duration_ns: u64) {
        let mut state = self.lock();
        (state.done_rows, state.done_ns) = (state.done_rows + rows, state.done_ns + duration_ns);
        if rows > 0 {
            state.row_ns = (state.row_ns + duration_ns / rows as u64) / 2;
        }
        let woken = self.end_slot(&mut state, number, None);
        drop(state);
        woken.iter().for_each(Waker::wake);
    }

    /// For the owner, when all is done: who helped is free to do so again. Says how many rows chunks had, and what these took.
    pub fn all_done(&self) -> (usize, u64) {
        let state = self.lock();
        if let Some(task) = self.task {
            state.helpers.iter().for_each(|(_, waker)| waker.has_helped(task));
        }
        (state.done_rows, state.done_ns)
    }

    /// The owner's chunk ends with an error, to be told when all rows before it have gone out.
    pub fn failed(&self, number: u64, error: D::Error) {
        let mut state = self.lock();
        self.end_slot(&mut state, number, Some(error));
    }

    fn end_slot(&self, state: &mut State<D>, number: u64, error: Option<D::Error>) -> Option<Waker<D>> {
        let index = number.checked_sub(state.first)?;
        let slot = state.slots.get_mut(index as usize)?;
        slot.done = true;
        slot.error = error;
        if index == 0 { state.owner_waits.take() } else { None }
    }

    /// For the owner, when it has nothing to do: has it woken when a helper has yielded what would be next. `false` if there is some already.
    pub fn owner_waits(&self, waker: &Waker<D>) -> bool {
        let mut state = self.lock();
        let is_ready = state.slots.front().is_none_or(|slot| slot.done || !slot.rows.is_empty());
        if !is_ready {
            state.owner_waits = Some(waker.clone());
        }
        !is_ready
    }

    /// A helper comes: its number.
    pub fn enlist(&self, waker: Waker<D>) -> u32 {
        let mut state = self.lock();
        state.enlisted += 1;
        let number = state.enlisted;
        state.helpers.push((number, waker));
        number
    }

    /// A helper has left, for this reason if it was one.
    pub fn left(&self, helper: u32, result: Result<(), D::Error>) {
        let mut state = self.lock();
        if let Some(own) = state.helpers.iter().position(|(number, _)| *number == helper) {
            let (_, waker) = state.helpers.remove(own);
            // Else it has made way for others.
            if state.closed && state.pending.is_empty() {
                self.task.iter().for_each(|task| waker.has_helped(*task));
            }
        }
        let open = state.slots.iter().position(|slot| slot.holder == Holder::Helper(helper) && !slot.done);
        let first = state.first;
        // What stopped it between two chunks stops the owner as well, or concerns nobody.
        let woken = open.and_then(|index| {
            let error = result.err().unwrap_or_else(|| D::panicked("a helper left its chunk".to_owned()));
            self.end_slot(&mut state, first + index as u64, Some(error))
        });
        drop(state);
        woken.iter().for_each(Waker::wake);
    }

    /// Nobody wants the rest: helpers leave as soon as they notice. Says what was held on the query's account.
    pub fn end(&self) -> usize {
        let mut state = self.lock();
        self.over.store(true, Ordering::Relaxed);
        let rows = (std::mem::take(&mut state.pending), std::mem::take(&mut state.slots));
        let size = std::mem::take(&mut state.size);
        state.ready_rows = 0;
        state.owner_waits = None;
        let (chunks, room) = (std::mem::take(&mut state.wait_for_chunks), std::mem::take(&mut state.wait_for_room));
        let waiting = chunks.into_iter().chain(room.into_iter().map(|(_, waker)| waker));
        let working: Vec<Waker<D>> = state.helpers.iter().map(|(_, waker)| waker.clone()).collect();
        drop(state);
        working.iter().for_each(Waker::hurry);
        waiting.for_each(|waker| waker.wake());
        drop(rows);
        size
    }
}

/// How things stand.
pub(super) struct Advance {
    /// The number of the chunk whose rows go out.
    pub first: u64,
    /// Rows that nobody has taken.
    pub pending: usize,
    /// Chunks under way.
    pub under_way: usize,
    /// Helpers that there are.
    pub helpers: usize,
    /// What comes behind the rows that have gone out is an error.
    pub fails: bool,
}
