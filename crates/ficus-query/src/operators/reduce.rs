//! `count`, `sum`, `min`, `max`, `mean` of the stream.

use std::sync::Arc;

use ficus_dataflow::{Flow, Operator};
use ficus_model::{Direction, Value, number};

use crate::context::{Cx, Graphs, Result, Traversers};
use crate::elements::LabelSet;
use crate::error::QueryError;
use crate::logical::{Name, Node, Reach, Reduction};
use crate::operators::adjacent::vertex_of;
use crate::operators::hop_parts::Prefetched;
use crate::operators::packed_numbers;
use crate::physical::{Builder, Chain};
use crate::traverser::StepInfo;

struct CountOperator {
    step: StepInfo,
    count: u64,
}

impl Operator<Graphs> for CountOperator {
    fn process(&mut self, input: &mut Traversers, _out: &mut Traversers, _cx: &mut Cx<'_>) -> Result<Flow> {
        for traverser in input.drain(..) {
            self.count = self.count.saturating_add(traverser.bulk);
        }
        Ok(Flow::Ready)
    }

    fn finish(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        let count = i64::try_from(std::mem::take(&mut self.count)).unwrap_or(i64::MAX);
        out.push_back(cx.context.fresh_at(Value::Long(count), &self.step));
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {
        self.count = 0;
    }
}

/// Counts neighbours by degrees, without visiting them.
struct DegreeCountOperator {
    direction: Direction,
    labels: LabelSet,
    step: StepInfo,
    count: u64,
    prefetched: Prefetched,
}

impl Operator<Graphs> for DegreeCountOperator {
    fn process(&mut self, input: &mut Traversers, _out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        // A barrier hands on tens of thousands of rows at once, and each of them may wait for memory.
        loop {
            self.prefetched.before(input, self.direction, cx.context);
            let Some(traverser) = input.pop_front() else { return Ok(Flow::Ready) };
            self.prefetched.took_one();
            cx.charge(1);
            let vertex = vertex_of(cx.context, &traverser.value, self.direction, Reach::Vertex)?;
            if let (Some(vertex), Some(labels)) = (vertex, self.labels.ids(cx.context)) {
                let degree = cx.context.transaction.degree(vertex, self.direction, labels);
                self.count = self.count.saturating_add(degree.saturating_mul(traverser.bulk));
            }
            if cx.exhausted() {
                return Ok(if input.is_empty() { Flow::Ready } else { Flow::More });
            }
        }
    }

    fn finish(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        let count = i64::try_from(std::mem::take(&mut self.count)).unwrap_or(i64::MAX);
        out.push_back(cx.context.fresh_at(Value::Long(count), &self.step));
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {
        (self.count, self.prefetched) = (0, Prefetched::default());
    }
}

/// Adds the operator that counts by degrees in place of a hop and `count()`.
pub fn build_degree_count(
    builder: &mut Builder,
    direction: Direction,
    labels: &[Name],
    step: &StepInfo,
    chain: &mut Chain,
) {
    let (names, step): (Arc<[Name]>, _) = (labels.into(), step.clone());
    let name = format!("DegreeCount({}{})", direction.name(), if labels.is_empty() { "" } else { ",labels" });
    builder.operator(chain, name, true, move || DegreeCountOperator {
        direction,
        labels: LabelSet::new(names.clone()),
        step: step.clone(),
        count: 0,
        prefetched: Prefetched::default(),
    });
}

/// A reduction that yields nothing of nothing: all but `count`.
#[derive(Clone)]
pub struct Reducer {
    reduction: Reduction,
    value: Option<Value>,
    /// In a place of its own: of most reductions, of which there may be one for each of many groups, it is none.
    mean: Option<Box<number::Mean>>,
}

impl Reducer {
    /// Of nothing yet.
    pub fn new(reduction: Reduction) -> Reducer {
        Reducer { reduction, value: None, mean: None }
    }

    /// Takes so many equal values in.
    ///
    /// Errors: where values cannot be added or compared.
    pub fn add(&mut self, value: &Value, bulk: u64) -> Result<()> {
        let bulk = i64::try_from(bulk).unwrap_or(i64::MAX);
        if self.reduction == Reduction::Mean {
            match &mut self.mean {
                None => {
                    self.mean = number::Mean::of(value, bulk)?.map(Box::new);
                    // The mean of nothing but nulls is null.
                    self.value = self.mean.is_none().then_some(Value::Null);
                }
                Some(mean) => mean.add(value, bulk)?,
            }
            return Ok(());
        }
        let added = match self.reduction {
            Reduction::Sum => number::times_bulk(value, bulk)?,
            _ => value.clone(),
        };
        self.value = Some(match self.value.take() {
            None => added,
            // A null is no summand.
            Some(Value::Null) if self.reduction == Reduction::Sum => added,
            Some(so_far) if self.reduction == Reduction::Sum && matches!(added, Value::Null) => so_far,
            Some(so_far) => match self.reduction {
                Reduction::Min => number::min(&so_far, &added)?,
                Reduction::Max => number::max(&so_far, &added)?,
                _ => number::add(&so_far, &added)?,
            },
        });
        Ok(())
    }

    /// Takes integers in, each so many times: all `Long`, or all `Int`.
    ///
    /// Errors: as [`Reducer::add`].
    pub fn add_integers(&mut self, numbers: &[i64], are_long: bool, bulk: u64) -> Result<()> {
        let value = |number: i64| if are_long { Value::Long(number) } else { Value::Int(number as i32) };
        let of_all = match self.reduction {
            Reduction::Min => numbers.iter().min(),
            Reduction::Max => numbers.iter().max(),
            _ => None,
        };
        if let Some(number) = of_all {
            return self.add(&value(*number), bulk);
        }
        let mut taken = if bulk == 1 { self.add_ahead(numbers, are_long) } else { 0 };
        while let Some(number) = numbers.get(taken) {
            // What the first one makes of the result, and one that is too large for it, are told by the rules of numbers.
            self.add(&value(*number), bulk)?;
            taken += 1;
            if bulk == 1 {
                taken += self.add_ahead(&numbers[taken..], are_long);
            }
        }
        Ok(())
    }

    /// Takes integers in as long as the result stays of its kind; says how many.
    fn add_ahead(&mut self, numbers: &[i64], are_long: bool) -> usize {
        match (self.reduction, &mut self.mean, &mut self.value) {
            (Reduction::Mean, Some(mean), _) => mean.add_integers(numbers),
            (Reduction::Sum, _, Some(Value::Long(sum))) => number::sum_ahead(sum, numbers),
            (Reduction::Sum, _, Some(Value::Int(sum))) if !are_long => {
                for (taken, number) in numbers.iter().enumerate() {
                    let Some(next) = sum.checked_add(*number as i32) else { return taken };
                    *sum = next;
                }
                numbers.len()
            }
            _ => 0,
        }
    }

    /// The result; starts anew.
    ///
    /// Errors: where the result is no number.
    pub fn finish(&mut self) -> Result<Option<Value>> {
        match self.mean.take() {
            Some(mean) => {
                self.value = None;
                Ok(Some(mean.finish()?))
            }
            None => Ok(self.value.take()),
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.value = None;
        self.mean = None;
    }
}

/// Any reduction, of one group.
pub enum Tally {
    /// How many there are.
    Count(u64),
    /// All others.
    Reduced(Reducer),
}

impl Tally {
    /// Of nothing yet.
    pub fn new(reduction: Reduction) -> Tally {
        match reduction {
            Reduction::Count => Tally::Count(0),
            reduction => Tally::Reduced(Reducer::new(reduction)),
        }
    }

    /// Takes so many equal values in.
    ///
    /// Errors: as [`Reducer::add`].
    #[inline]
    pub fn add(&mut self, value: &Value, bulk: u64) -> Result<()> {
        match self {
            Tally::Count(count) => {
                *count = count.saturating_add(bulk);
                Ok(())
            }
            Tally::Reduced(reducer) => reducer.add(value, bulk),
        }
    }

    /// Takes integers in, each so many times, which are `Long` or else `Int`.
    ///
    /// Errors: as [`Reducer::add`].
    pub fn add_integers(&mut self, numbers: &[i64], are_long: bool, bulk: u64) -> Result<()> {
        match self {
            Tally::Count(count) => {
                *count = count.saturating_add(bulk.saturating_mul(numbers.len() as u64));
                Ok(())
            }
            Tally::Reduced(reducer) => reducer.add_integers(numbers, are_long, bulk),
        }
    }

    /// The result; starts anew.
    ///
    /// Errors: as [`Reducer::finish`].
    pub fn finish(&mut self) -> Result<Option<Value>> {
        match self {
            Tally::Count(count) => Ok(Some(counted(std::mem::take(count)))),
            Tally::Reduced(reducer) => reducer.finish(),
        }
    }
}

fn counted(count: u64) -> Value {
    Value::Long(i64::try_from(count).unwrap_or(i64::MAX))
}

struct ReduceOperator {
    reducer: Reducer,
    step: StepInfo,
}

impl Operator<Graphs> for ReduceOperator {
    fn process(&mut self, input: &mut Traversers, _out: &mut Traversers, _cx: &mut Cx<'_>) -> Result<Flow> {
        for traverser in input.drain(..) {
            packed_numbers::reduce(&traverser, &mut self.reducer)?;
        }
        Ok(Flow::Ready)
    }

    fn finish(&mut self, out: &mut Traversers, cx: &mut Cx<'_>) -> Result<Flow> {
        if let Some(value) = self.reducer.finish()? {
            out.push_back(cx.context.fresh_at(value, &self.step));
        }
        Ok(Flow::Ready)
    }

    fn reset(&mut self) {
        self.reducer.clear();
    }
}

/// Adds the operator of a reduction.
pub fn build(builder: &mut Builder, node: &Node, step: &StepInfo, chain: &mut Chain) -> Result<()> {
    let Node::Reduce { reduction } = node else {
        return Err(QueryError::invalid(format!("{node} is not a reduction")));
    };
    let (reduction, step) = (*reduction, step.clone());
    if builder.may_pack(chain) {
        packed_numbers::build(builder, reduction, chain);
    }
    if reduction == Reduction::Count {
        builder.operator(chain, node, true, move || CountOperator { step: step.clone(), count: 0 });
    } else {
        builder.operator(chain, node, false, move || ReduceOperator {
            reducer: Reducer::new(reduction),
            step: step.clone(),
        });
    }
    Ok(())
}
