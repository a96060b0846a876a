//! `order()` and `sample()` of the stream: barriers that keep every row with what it is ranked by.

use std::cmp::Ordering;
use std::hash::BuildHasher;

use ficus_dataflow::{Flow, NodeName, Queue, Remains};
use ficus_model::{Order, Scope, Shared, Value, number};
use hashbrown::DefaultHashBuilder;

use crate::budget::Held;
use crate::context::{Cx, QueryContext, Result};
use crate::error::QueryError;
use crate::flat::Chunks;
use crate::functions::local;
use crate::growing::{self, Positions};
use crate::logical::{By, Node};
use crate::modulate::{ModulatedLogic, Modulator, Request};
use crate::operators::reservoir::{DRAWN_AT_ONCE, LeftOver, Reservoir};
use crate::operators::sorted_runs::{Keyed, Keys, RUN_ROWS, SortedRuns};
use crate::physical::{Builder, Chain, Modulators};
use crate::random::{Random, StepRandom};
use crate::traverser::{Traverser, marks};

struct OrderLogic {
    orders: Vec<Order>,
    random: StepRandom,
    rows: SortedRuns<Traverser>,
    /// Rows in front that are all the query looks at, if it says so and they are not more than a run; `rows` knows of more.
    first: Option<usize>,
    /// They are those at the end.
    from_end: bool,
    /// The bound that says which rows are still wanted, to who brings them.
    bound: Option<usize>,
    /// Those of `first` rows that are the best so far, sorted, and behind them what came since. At the end the best are the last ones.
    front: Vec<Keyed<Traverser>>,
    /// How many of `front` are sorted: `first`, or none yet.
    best: usize,
    /// What `front` takes.
    held: Held,
    /// Rows come to the order itself later: of a chunk that several executors work on those that are among its first go on, with their keys; others
    /// as they are.
    of_chunks: bool,
}

/// The row with its keys: its object is a list of both ([`marks::PACKED`]).
fn with_keys((keys, mut row): Keyed<Traverser>) -> Traverser {
    let mut values = Vec::with_capacity(1 + keys.len());
    values.push(std::mem::replace(&mut row.value, Value::Null));
    values.extend(keys);
    row.value = Value::List(Shared::new(values));
    row.marks |= marks::PACKED;
    row
}

/// The keys of such a row, which is as it was before then; `None` for others.
fn keys_of(row: &mut Traverser) -> Option<Keys> {
    if row.marks & marks::PACKED == 0 {
        return None;
    }
    let Value::List(list) = &mut row.value else { return None };
    let mut values = std::mem::take(Shared::make_mut(list)).into_iter();
    row.value = values.next()?;
    row.marks &= !marks::PACKED;
    Some(values.collect())
}

/// Rows of a chunk that may go on to an order of so few.
const OF_CHUNK_MAX: usize = 256;

/// Beyond so many times the rows that are wanted, those that are not go.
const ROWS_PER_WANTED: usize = 2;

/// Rows that are gathered in any case before some are dropped.
const ROWS_FREE: usize = 64;

fn bytes_of((keys, traverser): &Keyed<Traverser>) -> usize {
    size_of::<Keys>() + keys.iter().map(Value::size_hint_bytes).sum::<usize>() + traverser.kept_bytes()
}

fn bytes_beside_keys(row: &Traverser) -> usize {
    row.kept_bytes() - size_of::<Traverser>()
}

impl OrderLogic {
    /// Adds a row to those in front; once there are many more than are wanted, only the best stay.
    fn add_to_front(&mut self, row: Keyed<Traverser>, first: usize, cx: &mut Cx<'_>) -> Result<()> {
        self.held.add(&cx.context.memory, bytes_of(&row))?;
        self.front.push(row);
        if self.front.len() < (first * ROWS_PER_WANTED).max(first + ROWS_FREE) {
            return Ok(());
        }
        // Stable: of equal rows the earlier ones stay in front.
        local::sort_by_keys(&mut self.front, &self.orders, &*cx.context);
        cx.charge(self.front.len());
        let dropped = if self.from_end { 0..self.front.len() - first } else { first..self.front.len() };
        let bytes: usize = self.front.drain(dropped).map(|row| bytes_of(&row)).sum();
        self.held.subtract(bytes);
        self.best = first;
        if let (Some(bound), Some(keys)) = (self.bound, self.worst()) {
            cx.context.bounds[bound].tell(&keys[0]);
        }
        Ok(())
    }

    /// Of as many rows as are wanted, the keys of the one that is wanted least.
    fn worst(&self) -> Option<&Keys> {
        let Some(last) = self.best.checked_sub(1) else { return self.rows.last_wanted() };
        self.front.get(if self.from_end { 0 } else { last }).map(|(keys, _)| keys)
    }

    /// Adds a row to those that are sorted as a whole.
    fn add_to_all(&mut self, row: Keyed<Traverser>, cx: &mut Cx<'_>) -> Result<()> {
        let bytes = bytes_beside_keys(&row.1);
        if self.rows.push(row, bytes, &cx.context.memory, &self.orders, &*cx.context)? {
            cx.charge(RUN_ROWS);
            if let (Some(bound), Some(last)) = (self.bound, self.rows.last_wanted()) {
                cx.context.bounds[bound].tell(&last[0]);
            }
        }
        Ok(())
    }
}

impl ModulatedLogic for OrderLogic {
    fn requests(&mut self, traverser: &Traverser, cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        if self.of_chunks && !cx.in_chunk || traverser.marks & marks::PACKED != 0 {
            return Ok(());
        }
        list.extend((0..self.orders.len()).map(Request::current));
        Ok(())
    }

    fn wants_more(&mut self, results: &[Option<Value>], cx: &Cx<'_>) -> bool {
        // A row whose first keys are behind the last one that is wanted is not wanted, whatever its other keys are.
        let Some(worst) = self.worst() else { return true };
        let (Some(Some(key)), at) = (results.last(), results.len() - 1) else { return true };
        // Keys before this one are equal, or it would have been decided by them.
        let before = results[..at].iter().zip(worst).all(|(own, worst)| own.as_ref() == Some(worst));
        let order = &self.orders[at..=at];
        let way = local::compare_keys(std::slice::from_ref(key), &worst[at..=at], order, &*cx.context);
        // Of equal rows the earlier is wanted, and at the end the later.
        let is_last = results.len() == self.orders.len() && !self.from_end;
        let is_better = way == if self.from_end { Ordering::Greater } else { Ordering::Less };
        !before || is_better || way == Ordering::Equal && !is_last
    }

    fn complete(
        &mut self,
        mut traverser: Traverser,
        results: &mut Vec<Option<Value>>,
        out: &mut Queue<Traverser>,
        cx: &mut Cx<'_>,
    ) -> Result<()> {
        if self.of_chunks && results.is_empty() {
            out.push_back(traverser);
            return Ok(());
        }
        // A key that yields nothing filters the traverser.
        if results.iter().any(Option::is_none) {
            return Ok(());
        }
        let keys = keys_of(&mut traverser).unwrap_or_else(|| {
            // As long as it is: no room is left over.
            let mut keys = Keys::with_capacity(results.len());
            keys.extend(results.drain(..).flatten());
            keys
        });
        let row = (keys, traverser);
        match self.first {
            Some(first) => self.add_to_front(row, first, cx)?,
            None => self.add_to_all(row, cx)?,
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Queue<Traverser>, cx: &mut Cx<'_>) -> Result<Flow> {
        if let (true, Some(first)) = (self.of_chunks, self.first) {
            // A few hundred rows, all at once.
            local::sort_by_keys(&mut self.front, &self.orders, &*cx.context);
            cx.charge(self.front.len());
            let dropped = self.front.len().saturating_sub(first);
            let rows = self.front.drain(..).skip(if self.from_end { dropped } else { 0 }).take(first);
            out.extend(rows.map(with_keys));
            self.held.give_back();
            self.best = 0;
            return Ok(Flow::Ready);
        }
        for row in std::mem::take(&mut self.front) {
            self.add_to_all(row, cx)?;
        }
        self.held.give_back();
        self.best = 0;
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
        self.reset();
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        self.rows.surrender(remains);
    }

    fn reset(&mut self) {
        self.rows.clear();
        self.front.clear();
        self.held.give_back();
        self.best = 0;
    }
}

/// Members of rows that a drawing looks at between two looks at whether the turn is over.
const LOOKS_PER_CHARGE: usize = 1024;

/// From so many rows on those that are wanted are drawn as rows come.
const ROWS_GATHERED: usize = 1 << 12;

/// Rows that were gathered and are offered for each that comes later.
const OFFERED_PER_ROW: usize = 4;

/// Members that a sample is drawn from by looking at each.
const MEMBERS_LOOKED_AT: u64 = 1 << 20;

/// Looks up to which a sample with a seed is the one that TinkerPop draws, by looking at each member: a fraction of a second.
const SEEDED_LOOKS_MAX: u64 = 1 << 26;

/// Draws `amount` rows without replacement, weighted.
///
/// With a seed, rows are those that TinkerPop draws, for which all have to be there, unless these are so many that it would never be through. So it is
/// with few rows, and with weights that are no shares: negative ones and what is no number. Of many rows otherwise no more are kept than are wanted.
struct SampleLogic {
    held: Held,
    amount: u64,
    random: StepRandom,
    /// What of a row with a large bulk is still to be offered to the reservoir.
    rest: Option<Traverser>,
    /// The time of the member that was drawn last of it, or of the last of the gathered rows.
    rest_time: f64,
    gathered_time: f64,
    rows: Chunks<(f64, Traverser)>,
    /// Where those are that have nothing but their object, by it.
    positions: Positions,
    hashes: DefaultHashBuilder,
    drawing: Option<Drawing>,
    /// Members that can be drawn, as long as all weights are shares.
    members: Option<u64>,
    /// What is drawn as rows come; those that were gathered before are offered to it by and by.
    reservoir: Option<Reservoir>,
    /// The sample on its way out, to which members are added in front.
    drawn: Chunks<Traverser>,
}

impl SampleLogic {
    /// Offers some of the gathered rows to the reservoir.
    fn offer_gathered(&mut self, count: usize, cx: &mut Cx<'_>) -> Result<()> {
        let Some(reservoir) = &mut self.reservoir else { return Ok(()) };
        let account = cx.context.memory.clone();
        let random = self.random.get(cx.context);
        let had_rows = !self.rows.is_empty();
        for _ in 0..count {
            let Some((weight, row)) = self.rows.pop_back() else { break };
            let before = std::mem::take(&mut self.gathered_time);
            if let Some(LeftOver { row, time }) = reservoir.offer(weight, &row, random, before, &account)? {
                self.rows.push_back((weight, row));
                self.gathered_time = time;
                return Ok(());
            }
        }
        if self.rows.is_empty() && had_rows {
            self.rows = Chunks::new();
            self.held.give_back();
        }
        Ok(())
    }

    /// Ends a sample that was drawn as rows came.
    fn finish_reservoir(&mut self, out: &mut Queue<Traverser>, cx: &mut Cx<'_>) -> Result<Flow> {
        while !self.rows.is_empty() {
            if cx.exhausted() {
                return Ok(Flow::More);
            }
            self.offer_gathered(LOOKS_PER_CHARGE, cx)?;
            cx.charge(LOOKS_PER_CHARGE / 8);
        }
        while let Some(row) = self.reservoir.as_mut().and_then(Reservoir::take_last) {
            self.held.add(&cx.context.memory, size_of::<Traverser>())?;
            self.drawn.push_front(row);
            if self.drawn.len().is_multiple_of(LOOKS_PER_CHARGE) {
                cx.charge(LOOKS_PER_CHARGE / 8);
                if cx.exhausted() {
                    return Ok(Flow::More);
                }
            }
        }
        while let Some(row) = self.drawn.pop_front() {
            out.push_back(row);
            cx.charge(1);
            if cx.exhausted() && !self.drawn.is_empty() {
                return Ok(Flow::More);
            }
        }
        self.release(cx.context);
        Ok(Flow::Ready)
    }
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
    fn new(rows: &Chunks<(f64, Traverser)>, wanted: u64) -> Drawing {
        let total = rows.iter().map(|(weight, traverser)| weight * traverser.bulk as f64).sum();
        Drawing { wanted, total, taken: vec![0; rows.len()], order: Vec::new(), position: 0, passed: 0, left: total }
    }

    /// Looks at one member of one row.
    fn look(&mut self, rows: &Chunks<(f64, Traverser)>, random: &mut Random) {
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
        if self.reservoir.is_some() {
            self.offer_gathered(OFFERED_PER_ROW, cx)?;
            let account = cx.context.memory.clone();
            let random = self.random.get(cx.context);
            // It is what was left over, if anything was.
            let before = std::mem::take(&mut self.rest_time);
            if let Some(reservoir) = &mut self.reservoir
                && let Some(LeftOver { row, time }) = reservoir.offer(weight, &traverser, random, before, &account)?
            {
                (self.rest, self.rest_time) = (Some(row), time);
            }
            return Ok(());
        }
        let members = if weight > 0.0 { traverser.bulk } else { 0 };
        let is_share = weight.is_finite() && weight >= 0.0;
        self.members = self.members.filter(|_| is_share).map(|before| before.saturating_add(members));
        // Equal rows are one with a larger bulk, which the drawing takes note of.
        let account = &cx.context.memory;
        if traverser.has_no_history() {
            let (rows, hash) = (&self.rows, self.hashes.hash_one(&traverser.value));
            let is_equal = |place: usize| rows.get(place).is_some_and(|(_, row)| row.value == traverser.value);
            let equal = self.positions.find(hash, is_equal);
            if let Some(mut equal) = equal.and_then(|place| self.rows.get_mut(place)) {
                equal.1.bulk = equal.1.bulk.saturating_add(traverser.bulk);
                return Ok(());
            }
            self.positions.insert(hash, self.rows.len(), &mut self.held, account)?;
        }
        let own = traverser.kept_bytes() - size_of::<Traverser>();
        self.held.add(account, self.rows.grows_by() * size_of::<(f64, Traverser)>() + own)?;
        self.rows.push_back((weight, traverser));
        if self.rows.len() >= ROWS_GATHERED
            && cx.context.seed.is_none()
            && self.members.is_some_and(|members| members > self.amount)
        {
            self.positions.clear();
            self.reservoir = Some(Reservoir::new(usize::try_from(self.amount).unwrap_or(usize::MAX)));
        }
        Ok(())
    }

    fn members_at_once(&self) -> u64 {
        DRAWN_AT_ONCE
    }

    fn left_over(&mut self) -> Option<Traverser> {
        self.rest.take()
    }

    fn finish(&mut self, out: &mut Queue<Traverser>, cx: &mut Cx<'_>) -> Result<Flow> {
        if self.reservoir.is_some() {
            return self.finish_reservoir(out, cx);
        }
        let total_rows = self.rows.iter().fold(0u64, |sum, (_, traverser)| sum.saturating_add(traverser.bulk));
        // Each that is drawn takes a pass.
        let is_long = match cx.context.seed {
            None => total_rows > MEMBERS_LOOKED_AT,
            Some(_) => total_rows.saturating_mul(self.amount) > SEEDED_LOOKS_MAX,
        };
        let can_be_many = is_long && self.drawing.is_none();
        if can_be_many && self.members.is_some_and(|members| members > self.amount) {
            // One by one, the members of large bulks would never be through.
            self.positions.clear();
            self.reservoir = Some(Reservoir::new(usize::try_from(self.amount).unwrap_or(usize::MAX)));
            return self.finish_reservoir(out, cx);
        }
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
                let row = self.rows.get(position).map(|(_, row)| row.clone().with_bulk(drawing.taken[position]));
                out.extend(row);
            }
        } else {
            out.extend(self.rows.drain().map(|(_, traverser)| traverser));
        }
        self.release(cx.context);
        Ok(Flow::Ready)
    }

    fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        self.reservoir.iter_mut().for_each(|reservoir| reservoir.surrender(remains));
        self.positions.clear();
        // The last is freed first: what is held, for both, goes with the first.
        growing::surrender(std::mem::take(&mut self.rows), &mut self.held, remains);
        growing::surrender(std::mem::take(&mut self.drawn), &mut Held::default(), remains);
    }

    fn release(&mut self, _context: &mut QueryContext) {
        self.rows = Chunks::new();
        self.positions.clear();
        self.drawing = None;
        self.held.give_back();
        (self.members, self.reservoir, self.drawn) = (Some(0), None, Chunks::new());
        (self.rest, self.rest_time, self.gathered_time) = (None, 0.0, 0.0);
    }

    fn reset(&mut self) {
        self.rows = Chunks::new();
        self.positions.clear();
        self.drawing = None;
        self.held.give_back();
        (self.members, self.reservoir, self.drawn) = (Some(0), None, Chunks::new());
        (self.rest, self.rest_time, self.gathered_time) = (None, 0.0, 0.0);
    }
}

/// Adds the operator of a ranking barrier.
pub fn build(builder: &mut Builder, node: &Node, chain: &mut Chain) -> Result<()> {
    let (first, last, bound) = (builder.take_first(), builder.take_last(), builder.take_order_bound());
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
            // A shuffle is drawn over all rows.
            let is_shuffled = orders.contains(&Order::Shuffle);
            let from_end = last.is_some();
            let first_of_many = first.filter(|first| *first > RUN_ROWS && !is_shuffled);
            let first = first.or(last).filter(|first| *first <= RUN_ROWS && !is_shuffled);
            let name = match first.or(first_of_many) {
                Some(last) if from_end => NodeName::from(node).and(format!("[last {last}]")),
                Some(first) => NodeName::from(node).and(format!("[first {first}]")),
                None => node.into(),
            };
            let random = builder.new_random();
            let logic = move |of_chunks: bool| OrderLogic {
                first,
                from_end,
                bound: bound.filter(|_| !of_chunks),
                front: Vec::new(),
                best: 0,
                held: Held::default(),
                orders: orders.clone(),
                random,
                rows: first_of_many
                    .map_or_else(SortedRuns::default, |first| SortedRuns::of_first(first, bytes_beside_keys)),
                of_chunks,
            };
            let takes_long = keys.iter().any(|key| matches!(key.by, By::Traversal(_)));
            let is_few = first.is_some_and(|first| first <= OF_CHUNK_MAX);
            // Rows that are first among all are so in their chunk, and equal ones stay in their order.
            if is_few && takes_long && bound.is_none() && !builder.requirements().writes && builder.may_pack_work(chain)
            {
                let (name, logic, modulators) = (name.clone().and("in chunks"), logic.clone(), modulators.clone());
                builder.modulated(chain, name, false, modulators, move || logic(true))?;
                if let Some(node) = chain.last() {
                    builder.part_of_next(node.id);
                }
            }
            builder.modulated(chain, name, false, modulators, move || logic(false))
        }
        Node::Sample { amount, by } => {
            let amount = u64::try_from(*amount).unwrap_or(0);
            let mut modulators = Modulators::new();
            match by {
                crate::logical::By::Identity => modulators.push(Modulator::Constant(Value::Double(1.0))),
                by => modulators.by(by),
            };
            let random = builder.new_random();
            builder.modulated(chain, node, false, modulators, move || SampleLogic {
                held: Held::default(),
                amount,
                random,
                rest: None,
                rest_time: 0.0,
                gathered_time: 0.0,
                rows: Chunks::new(),
                positions: Positions::default(),
                hashes: DefaultHashBuilder::default(),
                drawing: None,
                members: Some(0),
                reservoir: None,
                drawn: Chunks::new(),
            })
        }
        _ => Err(QueryError::invalid(format!("{node} is not a ranking barrier of the stream"))),
    }
}
