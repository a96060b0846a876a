//! Steps that are a function of the current value: strings, numbers, dates, collections.

use std::sync::Arc;

use ficus_dataflow::{NodeName, Queue};
use ficus_model::{Scope, Value};

use crate::context::{Cx, QueryContext, Result};
use crate::error::QueryError;
use crate::functions::collections::{Operand, OperandSource};
use crate::functions::members::watched;
use crate::functions::{TEXT_BYTES_MAX, casts, collections, local, strings};
use crate::logical::{Node, ScalarFunction, ValueOrTraversal};
use crate::modulate::{ModulatedLogic, Request};
use crate::operators::order_local;
use crate::physical::{Builder, Chain, Modulators};
use crate::random::StepRandom;
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
            | F::SumLocal
            | F::MinLocal
            | F::MaxLocal
            | F::MeanLocal
            | F::RangeLocal { .. }
            | F::TailLocal { .. }
            | F::DedupLocal
    )
}

/// The value of a function of a value alone, see [`is_of_value`]; `None` filters the traverser.
///
/// Errors: `Invalid` if the value is none for this function.
pub fn of_value(function: &ScalarFunction, value: &Value, context: &QueryContext) -> Result<Option<Value>> {
    use ScalarFunction as F;
    Ok(Some(match function {
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
        F::SumLocal => return Ok(local::sum(value)?),
        F::MinLocal => return Ok(local::min(value)?),
        F::MaxLocal => return Ok(local::max(value)?),
        F::MeanLocal => return Ok(local::mean(value)?),
        F::RangeLocal { low, high } => local::range(value, *low, *high)?,
        F::TailLocal { count } => local::tail(value, *count)?,
        F::DedupLocal => local::dedup(value),
        _ => return Err(QueryError::invalid("the function needs more than a value")),
    }))
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
            F::SampleLocal { amount } => {
                local::sample(value, usize::try_from(*amount).unwrap_or(0), self.random.get(cx.context))?
            }
            _ => return of_value(&self.function, value, cx.context),
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

/// Adds the operator of a scalar node.
pub fn build(builder: &mut Builder, node: &Node, step: &StepInfo, chain: &mut Chain) -> Result<()> {
    let (name, step) = (NodeName::from(node), step.clone());
    let mut modulators = Modulators::new();
    match node {
        Node::Order { scope: Scope::Local, keys } => order_local::build(builder, node, keys, &step, chain),
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
