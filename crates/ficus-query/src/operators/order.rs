//! `order()` and `sample()` of the stream: barriers that keep every row with what it is ranked by.

use std::collections::HashMap;

use ficus_dataflow::{Flow, Queue};
use ficus_model::{Order, Scope, Value, number};

use crate::budget::Held;
use crate::context::{Cx, QueryContext, Result};
use crate::error::QueryError;
use crate::functions::local;
use crate::logical::Node;
use crate::modulate::{ModulatedLogic, Modulator, Request};
use crate::physical::{Builder, Chain, Modulators};
use crate::random::StepRandom;
use crate::traverser::Traverser;

struct OrderLogic {
    held: Held,
    orders: Vec<Order>,
    random: StepRandom,
    rows: Vec<(Vec<Value>, Traverser)>,
    sorted: Option<std::vec::IntoIter<(Vec<Value>, Traverser)>>,
}

impl ModulatedLogic for OrderLogic {
    fn requests(&mut self, _traverser: &Traverser, _cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        list.extend((0..self.orders.len()).map(Request::current));
        Ok(())
    }

    fn complete(
        &mut self,
        traverser: Traverser,
        results: &mut Vec<Option<Value>>,
        _out: &mut Queue<Traverser>,
        cx: &mut Cx<'_>,
    ) -> Result<()> {
        // A key that yields nothing filters the traverser.
        let Some(keys) = results.drain(..).collect::<Option<Vec<Value>>>() else { return Ok(()) };
        let bytes = size_of::<(Vec<Value>, Traverser)>() + keys.iter().map(Value::size_hint_bytes).sum::<usize>();
        self.held.add(&mut cx.context.memory, bytes)?;
        self.rows.push((keys, traverser));
        Ok(())
    }

    fn finish(&mut self, out: &mut Queue<Traverser>, cx: &mut Cx<'_>) -> Result<Flow> {
        if self.sorted.is_none() {
            let mut rows = std::mem::take(&mut self.rows);
            cx.charge(rows.len());
            let mut random = self.random.get(cx.context).clone();
            local::sort_keyed(&mut rows, &self.orders, cx.context, &mut random);
            *self.random.get(cx.context) = random;
            self.sorted = Some(rows.into_iter());
        }
        let sorted = self.sorted.as_mut().expect("set above");
        while !cx.should_pause(out) {
            let Some((_, traverser)) = sorted.next() else {
                self.sorted = None;
                self.held.give_back(&mut cx.context.memory);
                return Ok(Flow::Ready);
            };
            out.push_back(traverser);
        }
        Ok(Flow::More)
    }

    fn release(&mut self, context: &mut QueryContext) {
        self.held.give_back(&mut context.memory);
    }

    fn reset(&mut self) {
        self.rows.clear();
        self.sorted = None;
        self.random.reset();
    }
}

/// Draws `amount` rows without replacement, weighted.
struct SampleLogic {
    held: Held,
    amount: u64,
    random: StepRandom,
    rows: Vec<(f64, Traverser)>,
    positions: HashMap<Value, usize>,
}

impl ModulatedLogic for SampleLogic {
    fn requests(&mut self, _traverser: &Traverser, _cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        list.push(Request::current(0));
        Ok(())
    }

    fn complete(
        &mut self,
        traverser: Traverser,
        results: &mut Vec<Option<Value>>,
        _out: &mut Queue<Traverser>,
        cx: &mut Cx<'_>,
    ) -> Result<()> {
        let Some(Some(weight)) = results.pop() else { return Ok(()) };
        if !number::is_number(&weight) {
            return Err(QueryError::invalid(format!(
                "sample().by() needs a number, but it yielded a {}",
                weight.type_name()
            )));
        }
        let weight = number::to_double(&weight);
        // Equal rows are one with a larger bulk, which the drawing takes note of.
        if traverser.extra.is_none() {
            if let Some(&position) = self.positions.get(&traverser.value) {
                self.rows[position].1.bulk += traverser.bulk;
                return Ok(());
            }
            self.positions.insert(traverser.value.clone(), self.rows.len());
        }
        self.held.add(&mut cx.context.memory, size_of::<(f64, Traverser)>())?;
        self.rows.push((weight, traverser));
        Ok(())
    }

    fn finish(&mut self, out: &mut Queue<Traverser>, cx: &mut Cx<'_>) -> Result<Flow> {
        let rows = std::mem::take(&mut self.rows);
        self.held.give_back(&mut cx.context.memory);
        self.positions.clear();
        let mut wanted = self.amount;
        let total_rows: u64 = rows.iter().map(|(_, traverser)| traverser.bulk).sum();
        if total_rows <= wanted {
            out.extend(rows.into_iter().map(|(_, traverser)| traverser));
            return Ok(Flow::Ready);
        }
        let total: f64 = rows.iter().map(|(weight, traverser)| weight * traverser.bulk as f64).sum();
        let mut taken = vec![0u64; rows.len()];
        let mut order = Vec::new();
        while wanted > 0 {
            // One pass draws one row: each is taken with its share of the weight that is left in the pass.
            let mut left = total;
            'pass: for (position, (weight, traverser)) in rows.iter().enumerate() {
                for _ in taken[position]..traverser.bulk {
                    if self.random.get(cx.context).next_f64() <= weight / left {
                        if taken[position] == 0 {
                            order.push(position);
                        }
                        taken[position] += 1;
                        wanted -= 1;
                        break 'pass;
                    }
                    left -= weight;
                }
            }
            cx.charge(rows.len());
            cx.check()?;
        }
        for position in order {
            let mut traverser = rows[position].1.clone();
            traverser.bulk = taken[position];
            out.push_back(traverser);
        }
        Ok(Flow::Ready)
    }

    fn release(&mut self, context: &mut QueryContext) {
        self.held.give_back(&mut context.memory);
    }

    fn reset(&mut self) {
        self.rows.clear();
        self.positions.clear();
        self.random.reset();
    }
}

/// Adds the operator of a ranking barrier.
pub fn build(builder: &mut Builder, node: &Node, chain: &mut Chain) -> Result<()> {
    match node {
        Node::Order { scope: Scope::Global, keys } => {
            let mut modulators = Modulators::new();
            for key in keys {
                modulators.by(&key.by);
            }
            let mut orders: Vec<Order> = keys.iter().map(|key| key.order).collect();
            if orders.is_empty() {
                modulators.push(Modulator::Identity);
                orders.push(Order::Asc);
            }
            builder.modulated(chain, &node.to_string(), false, modulators, move || OrderLogic {
                held: Held::default(),
                orders: orders.clone(),
                random: StepRandom::default(),
                rows: Vec::new(),
                sorted: None,
            })
        }
        Node::Sample { amount, by } => {
            let amount = u64::try_from(*amount).unwrap_or(0);
            let mut modulators = Modulators::new();
            match by {
                crate::logical::By::Identity => modulators.push(Modulator::Constant(Value::Double(1.0))),
                by => modulators.by(by),
            };
            builder.modulated(chain, &node.to_string(), false, modulators, move || SampleLogic {
                held: Held::default(),
                amount,
                random: StepRandom::default(),
                rows: Vec::new(),
                positions: HashMap::new(),
            })
        }
        _ => Err(QueryError::invalid(format!("{node} is not a ranking barrier of the stream"))),
    }
}
