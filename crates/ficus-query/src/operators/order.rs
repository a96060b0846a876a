//! `order()` and `sample()` of the stream: barriers that keep every row with what it is ranked by.

use std::collections::HashMap;

use ficus_dataflow::{Flow, Queue};
use ficus_model::{Order, Scope, Value, number};

use crate::budget::Held;
use crate::context::{Cx, QueryContext, Result};
use crate::error::QueryError;
use crate::logical::Node;
use crate::modulate::{ModulatedLogic, Modulator, Request};
use crate::operators::sorted_runs::{RUN_ROWS, SortedRuns};
use crate::physical::{Builder, Chain, Modulators};
use crate::random::{Random, StepRandom};
use crate::traverser::Traverser;

struct OrderLogic {
    orders: Vec<Order>,
    random: StepRandom,
    rows: SortedRuns<Traverser>,
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
        let bytes = traverser.kept_bytes() - size_of::<Traverser>();
        if self.rows.push((keys, traverser), bytes, &cx.context.memory, &self.orders, &*cx.context)? {
            cx.charge(RUN_ROWS);
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Queue<Traverser>, cx: &mut Cx<'_>) -> Result<Flow> {
        let mut random = self.random.get(cx.context).clone();
        let mut flow = Flow::More;
        while !cx.should_yield(out) {
            if !self.rows.prepare(&self.orders, &*cx.context, &mut random) {
                cx.charge(RUN_ROWS);
                continue;
            }
            match self.rows.next(&self.orders, &*cx.context) {
                Some(traverser) => out.push_back(traverser),
                None => {
                    flow = Flow::Ready;
                    break;
                }
            }
        }
        *self.random.get(cx.context) = random;
        Ok(flow)
    }

    fn release(&mut self, _context: &mut QueryContext) {
        self.rows = SortedRuns::default();
    }

    fn reset(&mut self) {
        self.rows = SortedRuns::default();
        self.random.reset();
    }
}

/// Members of rows that a drawing looks at between two looks at whether the turn is over.
const LOOKS_PER_CHARGE: usize = 1024;

/// Draws `amount` rows without replacement, weighted.
struct SampleLogic {
    held: Held,
    amount: u64,
    random: StepRandom,
    rows: Vec<(f64, Traverser)>,
    positions: HashMap<Value, usize>,
    drawing: Option<Drawing>,
}

/// A drawing under way. One pass over the rows draws one: each is taken with its share of the weight that is left in the pass.
struct Drawing {
    /// Rows still to be drawn.
    wanted: u64,
    total: f64,
    /// How often each row was drawn.
    taken: Vec<u64>,
    /// Rows in the order of their first draw.
    order: Vec<usize>,
    /// Where the pass is: row, how many of its bulk were passed over, and the weight that is left.
    position: usize,
    passed: u64,
    left: f64,
}

impl Drawing {
    fn new(rows: &[(f64, Traverser)], wanted: u64) -> Drawing {
        let total = rows.iter().map(|(weight, traverser)| weight * traverser.bulk as f64).sum();
        Drawing { wanted, total, taken: vec![0; rows.len()], order: Vec::new(), position: 0, passed: 0, left: total }
    }

    /// Looks at one member of one row.
    fn look(&mut self, rows: &[(f64, Traverser)], random: &mut Random) {
        let Some((weight, traverser)) = rows.get(self.position) else {
            // The shares of a pass may leave out its last row by a rounding: the next pass tries again.
            (self.position, self.passed, self.left) = (0, 0, self.total);
            return;
        };
        if self.taken[self.position] + self.passed >= traverser.bulk {
            (self.position, self.passed) = (self.position + 1, 0);
        } else if random.next_f64() <= weight / self.left {
            if self.taken[self.position] == 0 {
                self.order.push(self.position);
            }
            self.taken[self.position] += 1;
            self.wanted -= 1;
            (self.position, self.passed, self.left) = (0, 0, self.total);
        } else {
            self.passed += 1;
            self.left -= weight;
        }
    }
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
        self.held.make_room(
            &cx.context.memory,
            self.rows.len(),
            self.rows.capacity(),
            size_of::<(f64, Traverser)>(),
        )?;
        let own = traverser.kept_bytes() - size_of::<Traverser>();
        // In the index of equal rows the value is kept once more.
        self.held.add(&cx.context.memory, 2 * own + 4 * size_of::<(Value, usize)>())?;
        self.rows.push((weight, traverser));
        Ok(())
    }

    fn finish(&mut self, out: &mut Queue<Traverser>, cx: &mut Cx<'_>) -> Result<Flow> {
        let total_rows = self.rows.iter().fold(0u64, |sum, (_, traverser)| sum.saturating_add(traverser.bulk));
        if total_rows > self.amount {
            if self.drawing.is_none() {
                self.held.add(&cx.context.memory, self.rows.len() * size_of::<u64>())?;
                self.drawing = Some(Drawing::new(&self.rows, self.amount));
            }
            let drawing = self.drawing.as_mut().expect("set above");
            while drawing.wanted > 0 {
                if cx.exhausted() {
                    return Ok(Flow::More);
                }
                for _ in 0..LOOKS_PER_CHARGE {
                    if drawing.wanted == 0 {
                        break;
                    }
                    drawing.look(&self.rows, self.random.get(cx.context));
                }
                cx.charge(LOOKS_PER_CHARGE / 8);
            }
            for &position in &drawing.order {
                let mut traverser = self.rows[position].1.clone();
                traverser.bulk = drawing.taken[position];
                out.push_back(traverser);
            }
        } else {
            out.extend(self.rows.drain(..).map(|(_, traverser)| traverser));
        }
        self.release(cx.context);
        Ok(Flow::Ready)
    }

    fn release(&mut self, _context: &mut QueryContext) {
        self.rows = Vec::new();
        self.positions = HashMap::new();
        self.drawing = None;
        self.held.give_back();
    }

    fn reset(&mut self) {
        self.rows = Vec::new();
        self.positions = HashMap::new();
        self.drawing = None;
        self.held.give_back();
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
                orders: orders.clone(),
                random: StepRandom::default(),
                rows: SortedRuns::default(),
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
                drawing: None,
            })
        }
        _ => Err(QueryError::invalid(format!("{node} is not a ranking barrier of the stream"))),
    }
}
