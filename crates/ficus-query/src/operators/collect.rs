//! `fold()` and `barrier()`: holding the stream together.

use std::sync::Arc;

use ficus_dataflow::{Flow, Operator};
use ficus_model::{Operator as BinaryOperator, Value, number};

use crate::budget::Held;
use crate::context::{Cx, Graphs, Result, Traversers};
use crate::error::QueryError;
use crate::logical::Node;
use crate::merge::MergingSet;
use crate::physical::{Builder, Chain};
use crate::traverser::{StepInfo, Traverser};

struct FoldOperator {
    step: StepInfo,
    list: Vec<Value>,
    held: Held,
}

impl Operator<Graphs> for FoldOperator {
    fn process(&mut self, input: &mut Traversers, _out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        while let Some(mut traverser) = input.pop_front() {
            if !add_to_list(&mut self.list, &mut self.held, &traverser.value, &mut traverser.bulk, cx)? {
                input.push_front(traverser);
                return Ok(Flow::More);
            }
        }
        Ok(Flow::Ready)
    }

    fn finish(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        let list = Value::List(Arc::new(std::mem::take(&mut self.list)));
        let list = cx.context.made_of(list, &mut self.held);
        out.push_back(cx.context.fresh_at(list, &self.step));
        Ok(Flow::Ready)
    }

    fn release(&mut self, _cx: &mut Cx<'_>) {
        self.list = Vec::new();
        self.held.give_back();
    }

    fn reset(&mut self) {
        self.list.clear();
        self.list.shrink_to(LIST_KEPT);
        self.held.give_back();
    }
}

/// Members of a list that has ended for which its room is kept for the next.
const LIST_KEPT: usize = 64;

/// Copies of a value that are added to a list between two looks at whether the turn is over.
const COPIES_AT_ONCE: u64 = 4096;

/// Adds a value to a list as often as `bulk` says; false if the turn is over before that, and `bulk` is what is left.
///
/// Errors: `Budget` or `ServerMemory`. Copies share the memory of the value, which counts once.
pub fn add_to_list(
    list: &mut Vec<Value>,
    held: &mut Held,
    value: &Value,
    bulk: &mut u64,
    cx: &mut Cx<'_>,
) -> Result<bool> {
    held.add(&cx.context.memory, value.size_hint_bytes() - size_of::<Value>())?;
    while *bulk > 0 {
        let count = (*bulk).min(COPIES_AT_ONCE);
        for _ in 0..count {
            held.make_room(&cx.context.memory, list.len(), list.capacity(), size_of::<Value>())?;
            list.push(value.clone());
        }
        *bulk -= count;
        cx.charge(count as usize / 8);
        if *bulk > 0 && cx.exhausted() {
            return Ok(false);
        }
    }
    Ok(true)
}

struct SeededFoldOperator {
    step: StepInfo,
    seed: Value,
    operator: BinaryOperator,
    value: Option<Value>,
}

impl Operator<Graphs> for SeededFoldOperator {
    fn process(&mut self, input: &mut Traversers, _out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        while let Some(traverser) = input.front_mut() {
            if traverser.bulk == 0 {
                input.pop_front();
                continue;
            }
            traverser.bulk -= 1;
            let so_far = self.value.take().unwrap_or_else(|| self.seed.clone());
            self.value = Some(cx.context.made(self.operator.apply(so_far, &traverser.value)?)?);
            cx.charge(1);
            if cx.exhausted() {
                return Ok(Flow::More);
            }
        }
        Ok(Flow::Ready)
    }

    fn finish(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        let value = self.value.take().unwrap_or_else(|| self.seed.clone());
        out.push_back(cx.context.fresh_at(value, &self.step));
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {
        self.value = None;
    }
}

/// Gathers and merges the stream, at most `size` traversers at a time.
///
/// One of bounded size that finds hardly anything to merge lets rows pass from then on: it is there to save work.
struct BarrierOperator {
    size: Option<usize>,
    norm_sack: bool,
    set: MergingSet,
    seen: usize,
    kept: usize,
}

/// Rows after which a barrier knows whether merging pays.
const TRIAL_ROWS: usize = 5_000;

impl BarrierOperator {
    /// Lets go what it has gathered; false if the turn is over before all is out.
    fn flush(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<bool> {
        let norm_sack = self.norm_sack;
        self.set.leave(out, cx, |all| if norm_sack { normalise_sacks(all) } else { Ok(()) })
    }
}

fn normalise_sacks(all: &mut [Traverser]) -> Result<()> {
    let mut sum = Value::Double(0.0);
    for traverser in all.iter() {
        let sack = traverser.sack().cloned().unwrap_or(Value::Double(0.0));
        let bulk = i64::try_from(traverser.bulk).unwrap_or(i64::MAX);
        sum = number::add(&sum, &number::times_bulk(&sack, bulk)?)?;
    }
    for traverser in all {
        if let Some(sack) = traverser.sack() {
            let bulk = i64::try_from(traverser.bulk).unwrap_or(i64::MAX);
            let normed = number::div_floating(&number::times_bulk(sack, bulk)?, &sum)?;
            traverser.set_sack(normed);
        }
    }
    Ok(())
}

impl Operator<Graphs> for BarrierOperator {
    fn process(&mut self, input: &mut Traversers, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        if self.set.is_leaving() && !self.flush(out, cx)? {
            return Ok(Flow::More);
        }
        if self.size.is_some() && self.seen >= TRIAL_ROWS && self.kept * 10 > self.seen * 9 {
            if !self.flush(out, cx)? {
                return Ok(Flow::More);
            }
            out.append(input);
            return Ok(Flow::Ready);
        }
        while let Some(traverser) = input.pop_front() {
            let before = self.set.len();
            self.set.add(traverser, cx.context)?;
            self.seen += 1;
            self.kept += self.set.len() - before;
            if self.size.is_some_and(|size| self.set.len() >= size) {
                self.flush(out, cx)?;
                return Ok(Flow::More);
            }
        }
        Ok(Flow::Ready)
    }

    fn finish(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        Ok(if self.flush(out, cx)? { Flow::Ready } else { Flow::More })
    }

    fn release(&mut self, _cx: &mut Cx<'_>) {
        self.set.clear();
    }

    fn reset(&mut self) {
        self.set.clear();
        self.seen = 0;
        self.kept = 0;
    }
}

/// Adds a barrier behind a step that leaves a side effect, so that what follows sees all of it.
pub fn barrier(builder: &mut Builder, chain: &mut Chain) {
    let id = builder.operator(chain, "side-effect barrier", false, || BarrierOperator {
        size: None,
        norm_sack: false,
        set: MergingSet::default(),
        seen: 0,
        kept: 0,
    });
    builder.auxiliary(id);
}

/// Adds the operator of a collecting node.
pub fn build(builder: &mut Builder, node: &Node, step: &StepInfo, chain: &mut Chain) -> Result<()> {
    let (name, step) = (node.to_string(), step.clone());
    match node {
        Node::Fold { seed: None } => {
            builder.operator(chain, &name, true, move || FoldOperator {
                step: step.clone(),
                list: Vec::new(),
                held: Held::default(),
            });
        }
        Node::Fold { seed: Some((seed, operator)) } => {
            let (seed, operator) = (seed.clone(), *operator);
            builder.operator(chain, &name, true, move || SeededFoldOperator {
                step: step.clone(),
                seed: seed.clone(),
                operator,
                value: None,
            });
        }
        Node::Barrier { size, norm_sack } => {
            let (size, norm_sack) = (size.and_then(|size| usize::try_from(size).ok()), *norm_sack);
            builder.operator(chain, &name, false, move || BarrierOperator {
                size,
                norm_sack,
                set: MergingSet::default(),
                seen: 0,
                kept: 0,
            });
        }
        _ => return Err(QueryError::invalid(format!("{node} does not collect the stream"))),
    }
    Ok(())
}
