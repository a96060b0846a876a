//! `range`, `limit`, `skip`, `tail`, `coin`, `timeLimit`, `discard`: filters by position, chance and time.

use std::collections::HashMap;

use ficus_dataflow::{Flow, NodeName, Operator, Remains};

use crate::budget::Held;
use crate::context::{Cx, Graphs, Result, Traversers};
use crate::error::QueryError;
use crate::flat::Chunks;
use crate::growing;
use crate::logical::Node;
use crate::operators::per_row::PerRow;
use crate::physical::{Builder, Chain};
use crate::random::StepRandom;
use crate::traverser::Traverser;

/// Rows of the stream from `low` up to `high`. Inside loops each iteration has its own count, and the end of the range
/// only filters, because other iterations may still pass.
struct RangeOperator {
    low: u64,
    high: Option<u64>,
    in_loop: bool,
    seen: u64,
    seen_by_iteration: HashMap<Vec<u32>, u64>,
}

impl Operator<Graphs> for RangeOperator {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        if self.high == Some(0) && !self.in_loop {
            return Ok(Flow::Complete);
        }
        while let Some(mut traverser) = input.pop_front() {
            let seen = if self.in_loop {
                self.seen_by_iteration.entry(traverser.all_loops()).or_insert(0)
            } else {
                &mut self.seen
            };
            let first = *seen;
            let last = first.saturating_add(traverser.bulk);
            *seen = last;
            let from = first.max(self.low);
            let to = self.high.map_or(last, |high| last.min(high));
            if from < to {
                traverser.bulk = to - from;
                out.push_back(traverser);
            }
            if !self.in_loop && self.high.is_some_and(|high| last >= high) {
                return Ok(Flow::Complete);
            }
            if cx.should_pause(out) {
                return Ok(Flow::More);
            }
        }
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {
        self.seen = 0;
        self.seen_by_iteration.clear();
    }
}

/// The last rows of the stream.
struct TailOperator {
    count: u64,
    kept: Chunks<Traverser>,
    kept_bulk: u64,
    held: Held,
    is_leaving: bool,
}

impl Operator<Graphs> for TailOperator {
    fn process(&mut self, input: &mut Traversers, _out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        while let Some(traverser) = input.pop_front() {
            self.held.add(&cx.context.memory, traverser.kept_bytes())?;
            self.kept_bulk = self.kept_bulk.saturating_add(traverser.bulk);
            self.kept.push_back(traverser);
            while let Some(oldest) = self.kept.front() {
                if self.kept_bulk - oldest.bulk < self.count {
                    break;
                }
                self.kept_bulk -= oldest.bulk;
                self.held.subtract(oldest.kept_bytes());
                self.kept.pop_front();
            }
        }
        Ok(Flow::Ready)
    }

    fn finish(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        if !self.is_leaving {
            self.is_leaving = true;
            if self.count == 0 {
                self.kept.clear();
            } else if let Some(mut oldest) = self.kept.front_mut() {
                oldest.bulk -= self.kept_bulk.saturating_sub(self.count);
            }
        }
        while !cx.should_pause(out) {
            match self.kept.pop_front() {
                Some(traverser) => out.push_back(traverser),
                None => {
                    self.reset();
                    return Ok(Flow::Ready);
                }
            }
        }
        Ok(Flow::More)
    }

    fn release(&mut self, _cx: &mut Cx<'_>) {
        self.reset();
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        growing::surrender(std::mem::take(&mut self.kept), &mut self.held, remains);
    }

    fn reset(&mut self) {
        self.kept = Chunks::new();
        self.kept_bulk = 0;
        self.is_leaving = false;
        self.held.give_back();
    }
}

/// Passes each of the rows that a traverser stands for with a chance of its own.
struct CoinOperator {
    probability: f64,
    random: StepRandom,
    /// How many of the rows of the first traverser have passed so far.
    passed: u64,
}

/// Coins flipped between two looks at whether the turn is over.
const COINS_AT_ONCE: u64 = 1024;

/// With a seed, of a row that stands for so many or more passes the share that is likely, and nothing is drawn, as in TinkerPop.
const SEEDED_SHARE_MIN: u64 = 100;

impl Operator<Graphs> for CoinOperator {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        while let Some(traverser) = input.front_mut() {
            if cx.context.seed.is_some() && self.passed == 0 && traverser.bulk >= SEEDED_SHARE_MIN {
                self.passed = (self.probability * traverser.bulk as f64 + 0.5).floor() as u64;
                traverser.bulk = 0;
            }
            let coins = traverser.bulk.min(COINS_AT_ONCE);
            let random = self.random.get(cx.context);
            for _ in 0..coins {
                self.passed += u64::from(self.probability >= random.next_f64());
            }
            traverser.bulk -= coins;
            cx.charge(coins as usize / 8);
            if traverser.bulk == 0
                && let Some(mut traverser) = input.pop_front()
            {
                traverser.bulk = std::mem::take(&mut self.passed);
                if traverser.bulk > 0 {
                    out.push_back(traverser);
                }
            }
            if cx.should_pause(out) {
                return Ok(if input.is_empty() { Flow::Ready } else { Flow::More });
            }
        }
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {
        self.passed = 0;
    }
}

/// Passes rows until the time is over.
struct TimeLimitOperator {
    limit_ns: u64,
    end_ns: Option<u64>,
}

impl Operator<Graphs> for TimeLimitOperator {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        let now_ns = cx.control.clock.now_ns();
        let end_ns = *self.end_ns.get_or_insert(now_ns.saturating_add(self.limit_ns));
        if now_ns >= end_ns {
            return Ok(Flow::Complete);
        }
        out.append(input);
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {
        self.end_ns = None;
    }
}

/// Adds the operator of a positional filter.
pub fn build(builder: &mut Builder, node: &Node, chain: &mut Chain) -> Result<()> {
    let name = NodeName::from(node);
    match node {
        Node::Range { low, high } => {
            let low = u64::try_from(*low).unwrap_or(0);
            // Only -1 leaves the end open; others below zero are reached before the first row.
            let high = (*high != -1).then(|| u64::try_from(*high).unwrap_or(0));
            let in_loop = builder.loop_depth > 0;
            builder.operator(chain, &name, false, move || RangeOperator {
                low,
                high,
                in_loop,
                seen: 0,
                seen_by_iteration: HashMap::new(),
            });
        }
        Node::Tail { count } => {
            let count = u64::try_from(*count).unwrap_or(0);
            builder.operator(chain, &name, false, move || TailOperator {
                count,
                kept: Chunks::new(),
                kept_bulk: 0,
                held: Held::default(),
                is_leaving: false,
            });
        }
        Node::Coin { probability } => {
            let (probability, random) = (*probability, builder.new_random());
            builder.operator(chain, &name, false, move || CoinOperator { probability, random, passed: 0 });
        }
        Node::TimeLimit { milliseconds } => {
            let limit_ns = u64::try_from(*milliseconds).unwrap_or(0).saturating_mul(1_000_000);
            builder.operator(chain, &name, false, move || TimeLimitOperator { limit_ns, end_ns: None });
        }
        Node::Discard => {
            builder.operator(chain, &name, false, move || PerRow {
                function: move |_: Traverser, _: &mut Cx<'_>| Ok(None),
            });
        }
        _ => return Err(QueryError::invalid(format!("{node} is not a positional filter"))),
    }
    Ok(())
}
