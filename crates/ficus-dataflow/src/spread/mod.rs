//! Spreads: a region whose rows do not know of each other, worked on by several executors once there is enough to do.
//!
//! A query begins on one executor, and a small one ends there. A spread runs its region like any other at first. When the region has taken
//! [`SpreadOptions::after_ns`], or less if the query was helped before, or is known to take much longer, and there is input left while another executor
//! has nothing to do, input is cut into *chunks*, runs of rows,
//! and a helper (helper.rs) on that executor works on chunks as the owner does: each with an instance of the region of its own, which gets EOS
//! at the end of every chunk. What chunks yield goes out in the order in which they were cut (exchange.rs), so the output is that of one executor, row
//! by row, and so is the error in the region that ends it. (A panic ends the query at once: it is a bug of ours. And what stands before the spread runs
//! ahead of it, by more than a batch.)
//!
//! Whoever works on chunks takes them in their order, so what an operator remembers to leave out rows that something behind would drop may stay from one to
//! the next (`Operator::next_chunk`).
//!
//! The region must be one for which cutting makes no difference: what a row yields depends on that row only, or what is made of the rows of
//! a chunk may be made of any chunks. Spreads nest: what stands behind a hop is worth a spread of its own if all rows come from one vertex.
//!
//! If the query is profiled, helpers count as the owner does, and hand over what they have counted with what they have yielded.
//!
//! Helpers leave when there are no chunks, when their executor is wanted by others, and when the query ends, whatever way; they then hand
//! back what they hold, within a turn. A helper is a task like any other and is scheduled as one.

mod exchange;
mod helper;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use self::exchange::{Advance, Exchange, Holder, Take};
use self::helper::Chunk;
use crate::chunks::hand_over;
use crate::plan::{NodeId, Region};
use crate::region::{RegionFlow, RegionInstance};
use crate::{Cx, Domain, Flow, Operator, Queue, Remains};

/// When and how queries use more than one executor.
#[derive(Clone, Debug)]
pub struct SpreadOptions {
    /// Whether they do at all.
    pub is_on: bool,
    /// For how long another executor must have had nothing to do, unless the last was to help the same query: one that rests between two small
    /// queries is theirs.
    pub idle_ns: u64,
    /// What a region has to have taken before: less is done before another core has woken up.
    pub after_ns: u64,
    /// As `after_ns`, once the query has been helped: it is no small one.
    pub again_after_ns: u64,
    /// Chunks take at least about as much, so that cutting costs nothing beside it.
    pub chunk_ns_min: u64,
    /// And at most: an interrupted helper holds up the query no longer than that.
    pub chunk_ns_max: u64,
    /// Rows of input that may wait to be cut.
    pub pending_rows_max: usize,
    /// Rows of output of one chunk that may wait.
    pub slot_rows_max: usize,
    /// Rows of output of all chunks that may wait (beyond one batch of each).
    pub ready_rows_max: usize,
}

impl Default for SpreadOptions {
    fn default() -> SpreadOptions {
        SpreadOptions {
            is_on: true,
            idle_ns: 200_000,
            after_ns: 100_000,
            again_after_ns: 40_000,
            chunk_ns_min: 50_000,
            chunk_ns_max: 2_000_000,
            pending_rows_max: 4096,
            slot_rows_max: 8192,
            ready_rows_max: 32_768,
        }
    }
}

/// Rows that a region is given at first, while nobody knows how long they take: of a few that take a millisecond each others shall have their share.
const FEED_ROWS_FIRST: usize = 1;

/// A region is given more rows at a time while those it was given last took less.
const FEED_NS: u64 = 100_000;

/// A spread that took this many times as long as one has to have taken before others help is given help at once.
const KNOWN_LARGE: u64 = 4;

/// A spread whose first few rows may be enough has to have taken this many times as long: others would work on what nobody may want, and those few wait for
/// them where they come in order.
const FEW_AFTER: u64 = 32;

/// The owner looks for more input before it works on chunks if fewer batches wait.
const PENDING_BATCHES_MIN: usize = 2;

/// What a spread took the last time: shared by all that are made for one place of a plan. So of a few rows the first, which may take as long as all
/// others, is not worked on alone until it is seen that it takes long.
#[derive(Debug, Default)]
pub struct SpreadHistory {
    row_ns: AtomicU64,
    /// Of all rows.
    total_ns: AtomicU64,
}

impl SpreadHistory {
    /// Runs that end at once do not have to see each other.
    fn learn(&self, rows: usize, total_ns: u64) {
        if rows > 0 {
            self.row_ns.store(total_ns / rows as u64, Ordering::Relaxed);
            self.total_ns.store(total_ns, Ordering::Relaxed);
        }
    }

    /// Whether so many rows are known to be worth the help of others.
    fn is_large(&self, rows: usize, after_ns: u64) -> bool {
        let expected_ns = self.row_ns.load(Ordering::Relaxed).saturating_mul(rows as u64);
        rows > 1 && expected_ns.min(self.total_ns.load(Ordering::Relaxed)) >= after_ns.saturating_mul(KNOWN_LARGE)
    }
}

/// The running spread: an operator to the region around it.
pub struct Spread<D: Domain> {
    node: NodeId,
    region: Arc<Region<D>>,
    own: RegionInstance<D>,
    /// Rows given to the region at a time.
    feed_rows: usize,
    /// What the region took so far, and for how many rows.
    spent_ns: u64,
    spent_rows: usize,
    /// Once others help.
    shared: Option<Shared<D>>,
    history: Arc<SpreadHistory>,
}

/// What the owner has when others help.
struct Shared<D: Domain> {
    exchange: Arc<Exchange<D>>,
    /// What the owner works on.
    chunk: Option<Chunk>,
    /// What it has yielded while others were before it.
    out: Queue<D::Message>,
}

impl<D: Domain> Spread<D> {
    /// A spread of `region`, shown as `node` where helpers are at work. `history` is that of the same place in earlier runs.
    pub fn new(node: NodeId, region: Arc<Region<D>>, history: Arc<SpreadHistory>) -> Spread<D> {
        let own = RegionInstance::new(region.clone());
        Spread { node, region, own, feed_rows: FEED_ROWS_FIRST, spent_ns: 0, spent_rows: 0, shared: None, history }
    }

    /// Runs the region as if there were no other executor, looking now and then whether there is.
    fn alone(
        &mut self,
        input: &mut Queue<D::Message>,
        out: &mut Queue<D::Message>,
        cx: &mut Cx<'_, D>,
    ) -> Result<Flow, D::Error> {
        let Some(options) = cx.waker.spreads_by() else {
            self.own.input().append(input);
            return Ok(match self.own.run(out, cx)? {
                RegionFlow::More => Flow::More,
                RegionFlow::Idle => Flow::Ready,
                RegionFlow::Finished => Flow::Complete,
            });
        };
        loop {
            // Before rows are given to the region, and between its turns.
            let was_helped = cx.control.cancel.was_helped();
            let after_ns = if was_helped { options.again_after_ns } else { options.after_ns };
            let times = if cx.few_wanted { FEW_AFTER } else { 1 };
            let after_ns = after_ns.saturating_mul(times);
            let is_enough = match self.spent_rows {
                0 => self.history.is_large(input.len(), options.after_ns.saturating_mul(times)),
                _ => self.spent_ns >= after_ns && !input.is_empty(),
            };
            // The larger pieces are those of a spread around this one.
            if is_enough && !cx.rows_left_outside && cx.waker.has_idle_peer() {
                self.share(options, input.len(), cx);
                if self.shared.is_some() {
                    return self.together(input, false, out, cx);
                }
            }
            if !self.own.has_work() {
                if input.is_empty() {
                    return Ok(Flow::Ready);
                }
                let count = self.feed_rows.min(input.len());
                self.spent_rows += count;
                self.own.input().extend(input.drain(..count));
            }
            let started_ns = cx.control.clock.now_ns();
            let outside = cx.rows_left_outside;
            cx.rows_left_outside |= !input.is_empty();
            let flow = self.own.run(out, cx);
            cx.rows_left_outside = outside;
            let flow = flow?;
            let took_ns = cx.control.clock.now_ns().saturating_sub(started_ns);
            self.spent_ns += took_ns;
            match flow {
                RegionFlow::More => return Ok(Flow::More),
                RegionFlow::Finished => return Ok(Flow::Complete),
                RegionFlow::Idle if took_ns < FEED_NS => {
                    self.feed_rows = (2 * self.feed_rows).min(cx.batch_rows_limit.max(FEED_ROWS_FIRST));
                }
                RegionFlow::Idle => {}
            }
            if cx.should_yield(out) {
                return Ok(Flow::More);
            }
        }
    }

    /// Begins to work on `rows_left` with others, if there is one. What the region has been given so far is chunk 0.
    fn share(&mut self, options: &SpreadOptions, rows_left: usize, cx: &mut Cx<'_, D>) {
        let row_ns = match self.spent_rows {
            0 => self.history.row_ns.load(Ordering::Relaxed),
            rows => self.spent_ns / rows as u64,
        };
        let exchange = Arc::new(Exchange::new(cx.waker.task(), options.clone(), row_ns));
        let mut helpers = 0;
        while helpers < rows_left && cx.waker.has_idle_peer() && enlist(&exchange, self.node, &self.region, cx) {
            helpers += 1;
        }
        if helpers > 0 {
            self.own.close();
            let chunk = Chunk { number: 0, rows: 0, duration_ns: 0 };
            self.shared = Some(Shared { exchange, chunk: Some(chunk), out: Queue::new() });
        }
    }

    /// Hands input on, takes output, and works on chunks in between.
    fn together(
        &mut self,
        input: &mut Queue<D::Message>,
        closed: bool,
        out: &mut Queue<D::Message>,
        cx: &mut Cx<'_, D>,
    ) -> Result<Flow, D::Error> {
        let Some(Shared { exchange, chunk, out: own_out }) = &mut self.shared else { return Ok(Flow::Ready) };
        let emitted = out.len();
        loop {
            let advance = exchange.advance(input, closed, out, cx)?;
            if advance.fails || cx.should_yield(out) {
                return Ok(Flow::More);
            }
            if closed && advance.pending == 0 && advance.under_way == 0 {
                let (rows, took_ns) = exchange.all_done();
                self.history.learn(self.spent_rows + rows, self.spent_ns + took_ns);
                // Helpers find out by themselves.
                self.shared = None;
                return Ok(Flow::Ready);
            }
            if let Some(own) = chunk {
                let is_first = own.number == advance.first;
                if is_first || exchange.has_room(own.number, None) {
                    let started_ns = cx.control.clock.now_ns();
                    let outside = std::mem::replace(&mut cx.in_chunk, true);
                    let flow = self.own.run(if is_first { &mut *out } else { &mut *own_out }, cx);
                    cx.in_chunk = outside;
                    own.duration_ns += cx.control.clock.now_ns().saturating_sub(started_ns);
                    exchange.put(own.number, own_out, cx)?;
                    match flow {
                        Ok(RegionFlow::Finished) => {
                            exchange.done(own.number, own.rows, own.duration_ns);
                            self.own.next_chunk();
                        }
                        Ok(_) => continue,
                        // With one executor, rows before this one would have come out first, and could have been enough.
                        Err(error) => {
                            exchange.failed(own.number, error);
                            self.own.release(cx);
                            self.own.reset();
                        }
                    }
                    *chunk = None;
                    continue;
                }
            } else {
                let wants_input = advance.pending < PENDING_BATCHES_MIN * cx.batch_rows_limit;
                if !closed && wants_input && input.is_empty() {
                    return Ok(Flow::Ready);
                }
                if needs_help(&advance) && cx.waker.has_idle_peer() {
                    enlist(exchange, self.node, &self.region, cx);
                }
                if let Take::Chunk(number, mut rows) = exchange.take(Holder::Owner, None, cx) {
                    *chunk = Some(Chunk { number, rows: rows.len(), duration_ns: 0 });
                    self.own.input().append(&mut rows);
                    self.own.close();
                    continue;
                }
            }
            // Nothing can be done here before the helper that has the first chunk has yielded something.
            if out.len() > emitted {
                return Ok(Flow::More);
            }
            if exchange.owner_waits(cx.waker) {
                cx.park();
                return Ok(Flow::More);
            }
        }
    }

    /// Ends the work of others; says what was held.
    fn end(&mut self) -> usize {
        self.shared.take().map_or(0, |shared| shared.exchange.end())
    }

    fn begin_again(&mut self) {
        self.end();
        (self.feed_rows, self.spent_ns, self.spent_rows) = (FEED_ROWS_FIRST, 0, 0);
    }
}

/// Whether one more helper would find a chunk: there is more than those there are will take at once.
fn needs_help(advance: &Advance) -> bool {
    advance.pending > 2 * (advance.helpers + 1)
}

/// Gets a helper from an executor that has nothing to do.
fn enlist<D: Domain>(exchange: &Arc<Exchange<D>>, node: NodeId, region: &Arc<Region<D>>, cx: &mut Cx<'_, D>) -> bool {
    let Some(context) = D::share(cx.context) else { return false };
    let (control, batch_rows_limit) = (cx.control.clone(), cx.batch_rows_limit);
    let profiled_nodes = cx.profile.as_deref().map(|profile| profile.len() as u32);
    let helps = cx.waker.enlist(|waker| {
        helper::task(exchange, node, region, batch_rows_limit, profiled_nodes, context, control, waker)
    });
    if helps {
        cx.control.cancel.count_help();
    }
    helps
}

impl<D: Domain> Operator<D> for Spread<D> {
    fn process(
        &mut self,
        input: &mut Queue<D::Message>,
        out: &mut Queue<D::Message>,
        cx: &mut Cx<'_, D>,
    ) -> Result<Flow, D::Error> {
        match self.shared {
            None => self.alone(input, out, cx),
            Some(_) => self.together(input, false, out, cx),
        }
    }

    fn finish(&mut self, out: &mut Queue<D::Message>, cx: &mut Cx<'_, D>) -> Result<Flow, D::Error> {
        if self.shared.is_some() {
            return self.together(&mut Queue::new(), true, out, cx);
        }
        self.own.close();
        let is_over = self.own.run(out, cx)? != RegionFlow::More;
        if is_over {
            self.history.learn(self.spent_rows, self.spent_ns);
        }
        Ok(if is_over { Flow::Ready } else { Flow::More })
    }

    fn reopen(&mut self) {
        self.begin_again();
        self.own.reopen();
    }

    fn release(&mut self, cx: &mut Cx<'_, D>) {
        let size = self.end();
        cx.give_back(size);
        self.own.release(cx);
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        if let Some(shared) = &mut self.shared {
            hand_over(&mut shared.out, remains);
        }
        self.own.surrender(remains);
    }

    fn cancel(&mut self) {
        self.begin_again();
        self.own.cancel();
    }

    fn next_chunk(&mut self) {
        self.begin_again();
        self.own.next_chunk();
    }

    fn reset(&mut self) {
        self.begin_again();
        self.own.reset();
    }
}

impl<D: Domain> Drop for Spread<D> {
    fn drop(&mut self) {
        self.end();
    }
}
