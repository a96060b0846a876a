//! `order(local)`: the members of a collection, or the entries of a map, ranked by what the modulators make of them.
//!
//! What is ranked stays where it is: places are sorted, by keys that lie in one row or by the members themselves, in steps between which it is looked
//! whether the query must stop; members are copied once, into the result.

use std::cmp::Ordering;
use std::sync::Arc;

use ficus_dataflow::{NodeName, Queue};
use ficus_model::{Column, Order, Value, sort_in_steps};

use crate::budget::Held;
use crate::context::{Cx, QueryContext, Result};
use crate::functions::members::{self, list_of, map_of_entries, refs, spell_out, until_stopped, watched};
use crate::functions::{FunctionResult, local};
use crate::logical::{By, Node, SortKey};
use crate::modulate::{ModulatedLogic, Modulator, Request, Subject};
use crate::physical::{Builder, Chain, Modulators};
use crate::random::StepRandom;
use crate::traverser::{StepInfo, Traverser, work_of};

/// By what members are ranked.
#[derive(Clone)]
enum RankedBy {
    /// Themselves.
    Themselves,
    /// If they are entries of a map, by nothing but their keys and values; else as it says there.
    Columns(Arc<[Column]>),
    /// What is asked about each.
    Asked,
}

struct OrderLocalLogic {
    orders: Vec<Order>,
    by: RankedBy,
    /// Members in front that are all that is looked at, if the step behind says so.
    first: Option<usize>,
    random: StepRandom,
    step: StepInfo,
    /// What was asked about the members of the value that is being sorted, and their places.
    held: Held,
}

/// What is ranked, where it is.
enum Ranked<'v> {
    Members(Vec<&'v Value>),
    Entries(&'v ficus_model::ValueMap),
}

impl<'v> Ranked<'v> {
    /// Of a value that is sorted, and is no tree; none of one that stays as it is.
    fn of(value: &'v Value) -> FunctionResult<Option<Ranked<'v>>> {
        match (value, refs(value)) {
            (Value::Map(map), _) => Ok(Some(Ranked::Entries(map))),
            (Value::List(_) | Value::Set(_) | Value::BulkSet(_), Some(members)) => {
                spell_out(members).map(|members| Some(Ranked::Members(members)))
            }
            _ => Ok(None),
        }
    }

    fn len(&self) -> usize {
        match self {
            Ranked::Members(members) => members.len(),
            Ranked::Entries(map) => map.len(),
        }
    }

    /// What one of them is in a column, or as a whole if that is asked.
    fn part(&self, place: u32, column: Option<Column>) -> &'v Value {
        match (self, column) {
            (Ranked::Members(members), _) => members[place as usize],
            (Ranked::Entries(map), column) => {
                let (key, value) = map.get_index(place as usize).expect("places are below the length");
                if column == Some(Column::Values) { value } else { key }
            }
        }
    }

    /// Compares two by themselves.
    fn compare(&self, a: u32, b: u32, order: Order, context: &QueryContext) -> Ordering {
        let by_key = in_order(self.part(a, None), self.part(b, None), order, context);
        match self {
            Ranked::Members(_) => by_key,
            Ranked::Entries(_) => by_key.then_with(|| {
                in_order(self.part(a, Some(Column::Values)), self.part(b, Some(Column::Values)), order, context)
            }),
        }
    }

    /// Those at these places, as the value that is sorted.
    fn rebuilt(&self, places: Vec<u32>) -> Value {
        let room = places.len();
        match self {
            Ranked::Members(_) => list_of(places.into_iter().map(|place| self.part(place, None).clone()), room),
            Ranked::Entries(_) => {
                let entry = |place| (self.part(place, None).clone(), self.part(place, Some(Column::Values)).clone());
                map_of_entries(places.into_iter().map(entry), room)
            }
        }
    }
}

fn in_order(a: &Value, b: &Value, order: Order, context: &QueryContext) -> Ordering {
    local::compare_keys(std::slice::from_ref(a), std::slice::from_ref(b), &[order], context)
}

impl OrderLocalLogic {
    /// Whether something has to be asked about the members of a value.
    fn asks_about(&self, value: &Value) -> bool {
        match self.by {
            RankedBy::Themselves => false,
            RankedBy::Columns(_) => !matches!(value, Value::Map(_)),
            RankedBy::Asked => true,
        }
    }

    /// The value sorted; none if it stays as it is. To be looked at only after it was looked whether the query must stop.
    fn sorted(&mut self, value: &Value, keys: &[Option<Value>], cx: &mut Cx<'_>) -> Result<Option<Value>> {
        let Some(ranked) = Ranked::of(value)? else { return Ok(None) };
        let count = ranked.len();
        // Places, as many again to merge them, and where members are.
        let bytes = 2 * size_of::<u32>() + size_of::<&Value>();
        self.held.add(&cx.context.memory, count.saturating_mul(bytes))?;
        let asked = self.asks_about(value);
        let width = self.orders.len();
        let keys_of = |place: u32| &keys[place as usize * width..][..width];
        let count = u32::try_from(count).expect("the memory budget is smaller");
        // A member for which a by() yields nothing goes.
        let is_ranked = |place: &u32| !asked || keys_of(*place).iter().all(Option::is_some);
        let mut places = Vec::with_capacity(count as usize);
        places.extend(until_stopped(0..count).filter(is_ranked));
        if self.orders.last() == Some(&Order::Shuffle) {
            let random = self.random.get(cx.context);
            // Fisher and Yates, from the end.
            for last in until_stopped((1..places.len()).rev()) {
                places.swap(last, random.below(last + 1));
            }
            return Ok(Some(ranked.rebuilt(places)));
        }
        let (context, orders, by) = (&*cx.context, &*self.orders, &self.by);
        let compare = |a: &u32, b: &u32| {
            let by_one = |place: usize, order: Order| match by {
                RankedBy::Columns(columns) if !asked => {
                    let column = Some(columns[place]);
                    in_order(ranked.part(*a, column), ranked.part(*b, column), order, context)
                }
                _ if asked => match (&keys_of(*a)[place], &keys_of(*b)[place]) {
                    (Some(a), Some(b)) => in_order(a, b, order, context),
                    _ => Ordering::Equal,
                },
                _ => ranked.compare(*a, *b, order, context),
            };
            let mut ways = orders.iter().enumerate().map(|(place, order)| by_one(place, *order));
            ways.find(|way| way.is_ne()).unwrap_or(Ordering::Equal)
        };
        let places = match self.first {
            Some(first) => first_of(places, first, compare, context),
            None => sort_in_steps(&mut places, compare, || context.check().is_ok()).then_some(places),
        };
        Ok(Some(ranked.rebuilt(places.unwrap_or_default())))
    }
}

/// The first places in order, of equal ones those that come first; none if the query must stop.
fn first_of(
    places: Vec<u32>,
    first: usize,
    compare: impl Fn(&u32, &u32) -> Ordering,
    context: &QueryContext,
) -> Option<Vec<u32>> {
    /// So many times the members that are wanted are gathered before the others go.
    const GATHERED_PER_WANTED: usize = 8;
    let mut front: Vec<u32> = Vec::new();
    // Where the last one is that was wanted when they were sorted; behind it is what came since.
    let mut last: Option<usize> = None;
    let sort = |front: &mut Vec<u32>| {
        let is_sorted = sort_in_steps(front, &compare, || context.check().is_ok());
        front.truncate(first);
        is_sorted
    };
    for place in until_stopped(places.into_iter()) {
        if first == 0 || last.is_some_and(|last| compare(&place, &front[last]) != Ordering::Less) {
            continue;
        }
        front.push(place);
        if front.len() >= first.saturating_mul(GATHERED_PER_WANTED) {
            if !sort(&mut front) {
                return None;
            }
            last = Some(first - 1);
        }
    }
    sort(&mut front).then_some(front)
}

impl ModulatedLogic for OrderLocalLogic {
    fn requests(&mut self, traverser: &Traverser, cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        if !self.asks_about(&traverser.value) {
            return Ok(());
        }
        let members = usize::try_from(local::count_members(&traverser.value)).unwrap_or(usize::MAX);
        let asked = self.orders.len() * size_of::<(Request, Option<Value>)>() + size_of::<Value>();
        self.held.add(&cx.context.memory, members.saturating_mul(asked))?;
        let sortable = watched(cx.control, || local::sortable(&traverser.value))?.unwrap_or_default();
        list.reserve_exact(sortable.len() * self.orders.len());
        for member in sortable {
            list.extend(
                (0..self.orders.len()).map(|modulator| Request { modulator, subject: Subject::Value(member.clone()) }),
            );
        }
        cx.check()?;
        cx.charge(list.len());
        Ok(())
    }

    fn complete(
        &mut self,
        traverser: Traverser,
        results: &mut Vec<Option<Value>>,
        out: &mut Queue<Traverser>,
        cx: &mut Cx<'_>,
    ) -> Result<()> {
        let tree = match &traverser.value {
            Value::Tree(tree) => Some(watched(cx.control, || members::map_of(tree))),
            _ => None,
        };
        cx.check()?;
        let value = tree.as_ref().unwrap_or(&traverser.value);
        let control = cx.control.clone();
        let sorted = watched(&control, || self.sorted(value, results, cx));
        self.held.give_back();
        // What was stopped on its way is not what was asked for.
        if let Err(error) = cx.check() {
            if let Ok(Some(part)) = sorted {
                cx.context.discard(part);
            }
            return Err(error);
        }
        let value = match sorted? {
            Some(sorted) => cx.context.made(sorted)?,
            None => traverser.value.clone(),
        };
        cx.charge(work_of(&value));
        out.push_back(traverser.move_to(value, &self.step));
        Ok(())
    }

    fn release(&mut self, _context: &mut QueryContext) {
        self.held.give_back();
    }

    fn reset(&mut self) {
        self.held.give_back();
    }
}

/// Adds the operator of `order(local)`.
pub fn build(builder: &mut Builder, node: &Node, keys: &[SortKey], step: &StepInfo, chain: &mut Chain) -> Result<()> {
    let (name, step) = (NodeName::from(node), step.clone());
    let mut modulators = Modulators::new();
    for key in keys {
        modulators.by(&key.by);
    }
    let mut orders: Vec<Order> = keys.iter().map(|key| key.order).collect();
    if orders.is_empty() {
        modulators.push(Modulator::Identity);
        orders.push(Order::Asc);
    }
    // Who shuffles looks at all.
    let first = builder.take_first().filter(|_| !orders.contains(&Order::Shuffle));
    let columns = keys.iter().map(|key| match key.by {
        By::Column(column) if key.order != Order::Shuffle => Some(column),
        _ => None,
    });
    let by = match columns.collect::<Option<Vec<_>>>() {
        _ if keys.iter().all(|key| matches!(key.by, By::Identity)) => RankedBy::Themselves,
        Some(columns) => RankedBy::Columns(columns.into()),
        None => RankedBy::Asked,
    };
    let random = builder.new_random();
    builder.modulated(chain, &name, false, modulators, move || OrderLocalLogic {
        orders: orders.clone(),
        by: by.clone(),
        first,
        random,
        step: step.clone(),
        held: Held::default(),
    })
}
