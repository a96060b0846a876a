//! Steps that are a function of the current value: strings, numbers, dates, collections.

use std::cmp::Ordering;
use std::sync::Arc;

use ficus_dataflow::Queue;
use ficus_model::{Column, Order, Scope, Value, ValueMap};

use crate::budget::Held;
use crate::context::{Cx, QueryContext, Result};
use crate::error::QueryError;
use crate::functions::collections::{Operand, OperandSource};
use crate::functions::members::watched;
use crate::functions::{TEXT_BYTES_MAX, casts, collections, local, strings};
use crate::logical::{By, Node, ScalarFunction, ValueOrTraversal};
use crate::modulate::{ModulatedLogic, Request, Subject};
use crate::operators::sorted_runs::{Keyed, RUN_ROWS, SortedRuns};
use crate::physical::{Builder, Chain, Modulators};
use crate::random::{Random, StepRandom};
use crate::traverser::{StepInfo, Traverser, work_of};

struct ScalarLogic {
    function: Arc<ScalarFunction>,
    arguments: usize,
    source: OperandSource,
    random: StepRandom,
    step: StepInfo,
}

fn text_or_null(value: &Value, what: &str) -> Result<Option<Arc<str>>> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        other => Err(QueryError::invalid(format!("{what} needs a string, not a {}", other.type_name()))),
    }
}

/// Whether [`of_value`] knows the function: it needs nothing but a value, and makes nothing much larger of it.
pub fn is_of_value(function: &ScalarFunction) -> bool {
    use ScalarFunction as F;
    matches!(
        function,
        F::AsString { .. }
            | F::AsNumber { .. }
            | F::AsBool
            | F::AsDate
            | F::DateAdd { .. }
            | F::ToLower { .. }
            | F::ToUpper { .. }
            | F::Trim { .. }
            | F::LTrim { .. }
            | F::RTrim { .. }
            | F::Length { .. }
            | F::Reverse
            | F::Substring { .. }
            | F::CountLocal
    )
}

/// The value of a function of a value alone; see [`is_of_value`].
///
/// Errors: `Invalid` if the value is none for this function.
pub fn of_value(function: &ScalarFunction, value: &Value, context: &QueryContext) -> Result<Value> {
    use ScalarFunction as F;
    Ok(match function {
        F::AsString { scope } => strings::as_string(value, *scope, context)?,
        F::AsNumber { gtype } => casts::as_number(value, *gtype)?,
        F::AsBool => casts::as_bool(value)?,
        F::AsDate => casts::as_date(value)?,
        F::DateAdd { unit, amount } => casts::date_add(value, *unit, *amount)?,
        F::ToLower { scope } => strings::to_lower(value, *scope)?,
        F::ToUpper { scope } => strings::to_upper(value, *scope)?,
        F::Trim { scope } => strings::trim(value, *scope)?,
        F::LTrim { scope } => strings::trim_left(value, *scope)?,
        F::RTrim { scope } => strings::trim_right(value, *scope)?,
        F::Length { scope } => strings::length(value, *scope)?,
        F::Reverse => strings::reverse(value)?,
        F::Substring { scope, start, end } => strings::substring(value, i64::from(*start), end.map(i64::from), *scope)?,
        F::CountLocal => local::count(value),
        _ => return Err(QueryError::invalid("the function needs more than a value")),
    })
}

impl ScalarLogic {
    /// The function's value; `None` filters the traverser.
    fn apply(&mut self, value: &Value, arguments: Vec<Value>, cx: &mut Cx<'_>) -> Result<Option<Value>> {
        use ScalarFunction as F;
        let null = Value::Null;
        let operand = Operand { value: arguments.first().unwrap_or(&null), source: self.source };
        let result = match &*self.function {
            F::DateDiff { .. } => casts::date_diff(value, operand.value)?,
            F::Replace { scope, from, to } => {
                let (from, to) = (text_or_null(from, "replace()")?, text_or_null(to, "replace()")?);
                strings::replace(value, from.as_deref(), to.as_deref(), *scope)?
            }
            F::Split { scope, separator } => {
                let separator = text_or_null(separator, "split()")?;
                strings::split(value, separator.as_deref(), *scope)?
            }
            F::Concat { .. } => strings::concat(value, &arguments)?,
            F::Conjoin { delimiter } => match text_or_null(delimiter, "conjoin()")? {
                Some(delimiter) => collections::conjoin(value, &delimiter, &*cx.context)?,
                None => return Err(QueryError::invalid("Input delimiter to conjoin step can't be null.")),
            },
            F::Combine { .. } => collections::combine(value, operand)?,
            F::Difference { .. } => collections::difference(value, operand)?,
            F::Disjunct { .. } => collections::disjunct(value, operand)?,
            F::Intersect { .. } => collections::intersect(value, operand)?,
            F::Merge { .. } => collections::merge(value, operand)?,
            F::Product { .. } => collections::product(value, operand)?,
            F::Index { as_map } => {
                local::index(value, if *as_map { local::Indexer::Map } else { local::Indexer::List })?
            }
            F::SumLocal => return Ok(local::sum(value)?),
            F::MinLocal => return Ok(local::min(value)?),
            F::MaxLocal => return Ok(local::max(value)?),
            F::MeanLocal => return Ok(local::mean(value)?),
            F::RangeLocal { low, high } => local::range(value, *low, *high)?,
            F::TailLocal { count } => local::tail(value, *count)?,
            F::SampleLocal { amount } => {
                local::sample(value, usize::try_from(*amount).unwrap_or(0), self.random.get(cx.context))?
            }
            F::DedupLocal => local::dedup(value),
            _ => return of_value(&self.function, value, cx.context).map(Some),
        };
        Ok(Some(result))
    }
}

impl ModulatedLogic for ScalarLogic {
    fn requests(&mut self, _traverser: &Traverser, _cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        list.extend((0..self.arguments).map(Request::current));
        Ok(())
    }

    fn complete(
        &mut self,
        traverser: Traverser,
        results: &mut Vec<Option<Value>>,
        out: &mut Queue<Traverser>,
        cx: &mut Cx<'_>,
    ) -> Result<()> {
        let arguments = results
            .drain(..)
            .map(|result| {
                result.ok_or_else(|| {
                    QueryError::invalid(
                        "The provided traverser does not map to a value: the step's traversal yielded nothing",
                    )
                })
            })
            .collect::<Result<Vec<Value>>>()?;
        cx.context.memory.check_room(room_for(&self.function, &traverser.value, &arguments))?;
        let is_long = work_of(&traverser.value) > 0 || arguments.iter().any(|argument| work_of(argument) > 0);
        let applied = if is_long {
            let applied = watched(cx.control, || self.apply(&traverser.value, arguments, cx));
            // What was stopped on its way is not what was asked for; it may be long to free.
            if let Err(error) = cx.check() {
                if let Ok(Some(part)) = applied {
                    cx.context.discard(part);
                }
                return Err(error);
            }
            applied
        } else {
            self.apply(&traverser.value, arguments, cx)
        };
        if let Some(value) = applied? {
            let value = cx.context.made(value)?;
            cx.charge(work_of(&value));
            out.push_back(traverser.move_to(value, &self.step));
        }
        Ok(())
    }
}

/// Bytes that the function takes at most while it makes its value; texts are bounded by [`TEXT_BYTES_MAX`].
fn room_for(function: &ScalarFunction, value: &Value, arguments: &[Value]) -> usize {
    use ScalarFunction as F;
    /// A member spelled out, and its entry in a set or map.
    const MEMBER: usize = 4 * size_of::<Value>();
    /// A list of two, with its place in a list.
    const PAIR: usize = 6 * size_of::<Value>();
    let members = |value: &Value| match value {
        Value::List(_) | Value::Set(_) | Value::BulkSet(_) | Value::Path(_) | Value::Map(_) | Value::Tree(_) => {
            usize::try_from(local::count_members(value)).unwrap_or(usize::MAX)
        }
        _ => 0,
    };
    match (function, value) {
        (F::Split { .. }, Value::String(text)) => text.len().saturating_mul(2 * size_of::<Value>()),
        (F::Replace { to: Value::String(to), .. }, Value::String(text)) => {
            text.len().saturating_mul(to.len().max(1)).min(2 * TEXT_BYTES_MAX)
        }
        (_, Value::String(text)) => text.len().saturating_mul(2),
        (F::Product { .. }, _) => {
            members(value).saturating_mul(arguments.first().map_or(0, members)).saturating_mul(PAIR)
        }
        (F::CountLocal, _) => 0,
        (F::Index { .. }, _) => members(value).saturating_mul(PAIR),
        _ => arguments.iter().map(members).fold(members(value), usize::saturating_add).saturating_mul(MEMBER),
    }
}

/// `order(local)`: the members ranked by what the modulators make of them.
struct OrderLocalLogic {
    orders: Vec<Order>,
    /// What entries of maps are ranked by, if it is nothing but their keys and values.
    columns: Option<Arc<[Column]>>,
    /// Members in front that are all that is looked at, if the step behind says so.
    first: Option<usize>,
    random: StepRandom,
    step: StepInfo,
    /// The members of the value that is being sorted, and what was asked about them.
    held: Held,
}

impl OrderLocalLogic {
    /// The map to be sorted and the columns it is sorted by, if its entries need not be asked one by one.
    fn map_by_columns<'v>(&self, value: &'v Value) -> Option<(&'v ValueMap, Arc<[Column]>)> {
        match (value, &self.columns) {
            // Sorting many in one go would hold up others.
            (Value::Map(map), Some(columns)) if self.first.is_some() || map.len() <= RUN_ROWS => {
                Some((map, columns.clone()))
            }
            _ => None,
        }
    }
}

impl ModulatedLogic for OrderLocalLogic {
    fn requests(&mut self, traverser: &Traverser, cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        if self.map_by_columns(&traverser.value).is_some() {
            return Ok(());
        }
        let members = usize::try_from(local::count_members(&traverser.value)).unwrap_or(usize::MAX);
        let asked = self.orders.len() * size_of::<(Request, Option<Value>)>() + 2 * size_of::<Value>();
        self.held.add(&cx.context.memory, members.saturating_mul(asked))?;
        let sortable = watched(cx.control, || local::sortable(&traverser.value))?;
        for member in sortable.unwrap_or_default() {
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
        if let Some((map, columns)) = self.map_by_columns(&traverser.value) {
            let sorted = entries_by(map, &columns, self.first, &self.orders, cx.context)?;
            let value = cx.context.made(sorted)?;
            cx.charge(map.len() / 8);
            out.push_back(traverser.move_to(value, &self.step));
            return Ok(());
        }
        let Some(members) = watched(cx.control, || local::sortable(&traverser.value))? else {
            let value = traverser.value.clone();
            out.push_back(traverser.move_to(value, &self.step));
            return Ok(());
        };
        // A member for which a by() yields nothing goes.
        let keyed = members.into_iter().zip(results.chunks_exact(self.orders.len()));
        let keyed =
            keyed.filter_map(|(member, keys)| Some((keys.iter().cloned().collect::<Option<Vec<_>>>()?, member)));
        let sorted = match self.first {
            Some(first) => first_of(keyed, first, &self.orders, cx)?,
            None => all_of(keyed, &self.orders, self.random.get(cx.context).clone(), cx).map(|(sorted, random)| {
                *self.random.get(cx.context) = random;
                sorted
            })?,
        };
        let value = local::rebuild_sorted(&traverser.value, sorted);
        self.held.give_back();
        let value = cx.context.made(value)?;
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

/// A map's entries in the order of these columns, or the first of them; nothing is copied but those that are wanted.
fn entries_by(
    map: &ValueMap,
    columns: &[Column],
    first: Option<usize>,
    orders: &[Order],
    context: &QueryContext,
) -> Result<Value> {
    type Entry<'m> = (&'m Value, &'m Value);
    let compare = |a: &Entry<'_>, b: &Entry<'_>| {
        let mut in_turn = columns.iter().zip(orders).map(|(column, order)| {
            let (a, b) = match column {
                Column::Keys => (a.0, b.0),
                Column::Values => (a.1, b.1),
            };
            local::compare_keys(std::slice::from_ref(a), std::slice::from_ref(b), &[*order], context)
        });
        in_turn.find(|way| way.is_ne()).unwrap_or(Ordering::Equal)
    };
    let first = first.unwrap_or(map.len());
    let mut front: Vec<Entry<'_>> = Vec::with_capacity(map.len().min(first.saturating_mul(GATHERED_PER_WANTED)));
    let mut is_cut = false;
    for (place, entry) in map.iter().enumerate() {
        if place % RUN_ROWS == 0 {
            context.check()?;
        }
        // Of equal entries the earlier one is wanted.
        if is_cut && compare(&entry, &front[first - 1]) != Ordering::Less {
            continue;
        }
        front.push(entry);
        if front.len() >= first.saturating_mul(GATHERED_PER_WANTED) {
            front.sort_by(compare);
            front.truncate(first);
            is_cut = true;
        }
    }
    front.sort_by(compare);
    front.truncate(first);
    let sorted: ValueMap = front.into_iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    Ok(Value::from(sorted))
}

/// So many times the members that are wanted are gathered before the others go.
const GATHERED_PER_WANTED: usize = 8;

/// The first members in order, of equal ones those that come first.
fn first_of(
    members: impl Iterator<Item = Keyed<Value>>,
    first: usize,
    orders: &[Order],
    cx: &mut Cx<'_>,
) -> Result<Vec<Value>> {
    let mut front: Vec<Keyed<Value>> = Vec::new();
    // Where the last one is that was wanted when they were sorted; behind it is what came since.
    let mut last: Option<usize> = None;
    for (place, member) in members.enumerate() {
        if place % RUN_ROWS == 0 {
            cx.check()?;
        }
        let compared = |last: usize| local::compare_keys(&member.0, &front[last].0, orders, &*cx.context);
        if last.is_some_and(|last| compared(last) != Ordering::Less) {
            continue;
        }
        front.push(member);
        if front.len() >= first * GATHERED_PER_WANTED {
            front.sort_by(|(a, _), (b, _)| local::compare_keys(a, b, orders, &*cx.context));
            front.truncate(first);
            last = Some(first - 1);
        }
    }
    front.sort_by(|(a, _), (b, _)| local::compare_keys(a, b, orders, &*cx.context));
    front.truncate(first);
    Ok(front.into_iter().map(|(_, member)| member).collect())
}

/// All members in order, and the random numbers as they are then.
fn all_of(
    members: impl Iterator<Item = Keyed<Value>>,
    orders: &[Order],
    mut random: Random,
    cx: &mut Cx<'_>,
) -> Result<(Vec<Value>, Random)> {
    let mut runs = SortedRuns::default();
    for member in members {
        if runs.push(member, 0, &cx.context.memory, orders, &*cx.context)? {
            cx.check()?;
        }
    }
    while !runs.prepare(orders, &*cx.context, &mut random) {
        cx.check()?;
    }
    let mut sorted = Vec::new();
    while let Some(member) = runs.next(orders, &*cx.context) {
        sorted.push(member);
        if sorted.len().is_multiple_of(RUN_ROWS) {
            cx.check()?;
        }
    }
    Ok((sorted, random))
}

/// Adds the operator of a scalar node.
pub fn build(builder: &mut Builder, node: &Node, step: &StepInfo, chain: &mut Chain) -> Result<()> {
    let (name, step) = (node.to_string(), step.clone());
    let mut modulators = Modulators::new();
    match node {
        Node::Order { scope: Scope::Local, keys } => {
            for key in keys {
                modulators.by(&key.by);
            }
            let mut orders: Vec<Order> = keys.iter().map(|key| key.order).collect();
            if orders.is_empty() {
                modulators.push(crate::modulate::Modulator::Identity);
                orders.push(Order::Asc);
            }
            // Who shuffles looks at all.
            let first = builder.take_first().filter(|_| !orders.contains(&Order::Shuffle));
            let columns = keys.iter().map(|key| match key.by {
                By::Column(column) if key.order != Order::Shuffle => Some(column),
                _ => None,
            });
            let columns: Option<Arc<[Column]>> =
                columns.collect::<Option<Vec<_>>>().filter(|list| !list.is_empty()).map(Arc::from);
            let random = builder.new_random();
            builder.modulated(chain, &name, false, modulators, move || OrderLocalLogic {
                orders: orders.clone(),
                columns: columns.clone(),
                first,
                random,
                step: step.clone(),
                held: Held::default(),
            })
        }
        Node::Scalar { function } => {
            use ScalarFunction as F;
            let arguments: &[ValueOrTraversal] = match function {
                F::Concat { parts } => parts,
                F::DateDiff { other }
                | F::Combine { other }
                | F::Difference { other }
                | F::Disjunct { other }
                | F::Intersect { other }
                | F::Merge { other }
                | F::Product { other } => std::slice::from_ref(other),
                _ => &[],
            };
            for argument in arguments {
                modulators.value(argument);
            }
            let source = match arguments {
                [ValueOrTraversal::Traversal(_)] => OperandSource::Traversal,
                _ => OperandSource::Argument,
            };
            let (count, function) = (modulators.len(), Arc::new(function.clone()));
            let random = builder.new_random();
            builder.modulated(chain, &name, false, modulators, move || ScalarLogic {
                function: function.clone(),
                arguments: count,
                source,
                random,
                step: step.clone(),
            })
        }
        _ => Err(QueryError::invalid(format!("{node} is not a function of a value"))),
    }
}
