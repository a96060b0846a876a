//! Steps that are a function of the current value: strings, numbers, dates, collections.

use std::sync::Arc;

use ficus_dataflow::Queue;
use ficus_model::{Order, Scope, Value};

use crate::context::{Cx, Result};
use crate::error::QueryError;
use crate::functions::collections::{Operand, OperandSource};
use crate::functions::{casts, collections, local, strings};
use crate::logical::{Node, ScalarFunction, ValueOrTraversal};
use crate::modulate::{ModulatedLogic, Request, Subject};
use crate::physical::{Builder, Chain, Modulators};
use crate::random::StepRandom;
use crate::traverser::{StepInfo, Traverser};

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

impl ScalarLogic {
    /// The function's value; `None` filters the traverser.
    fn apply(&mut self, value: &Value, arguments: Vec<Value>, cx: &mut Cx<'_>) -> Result<Option<Value>> {
        use ScalarFunction as F;
        let null = Value::Null;
        let operand = Operand { value: arguments.first().unwrap_or(&null), source: self.source };
        let result = match &*self.function {
            F::AsString { scope } => strings::as_string(value, *scope, &*cx.context)?,
            F::AsNumber { gtype } => casts::as_number(value, *gtype)?,
            F::AsBool => casts::as_bool(value)?,
            F::AsDate => casts::as_date(value)?,
            F::DateAdd { unit, amount } => casts::date_add(value, *unit, *amount)?,
            F::DateDiff { .. } => casts::date_diff(value, operand.value)?,
            F::ToLower { scope } => strings::to_lower(value, *scope)?,
            F::ToUpper { scope } => strings::to_upper(value, *scope)?,
            F::Trim { scope } => strings::trim(value, *scope)?,
            F::LTrim { scope } => strings::trim_left(value, *scope)?,
            F::RTrim { scope } => strings::trim_right(value, *scope)?,
            F::Length { scope } => strings::length(value, *scope)?,
            F::Reverse => strings::reverse(value)?,
            F::Replace { scope, from, to } => {
                let (from, to) = (text_or_null(from, "replace()")?, text_or_null(to, "replace()")?);
                strings::replace(value, from.as_deref(), to.as_deref(), *scope)?
            }
            F::Split { scope, separator } => {
                let separator = text_or_null(separator, "split()")?;
                strings::split(value, separator.as_deref(), *scope)?
            }
            F::Substring { scope, start, end } => {
                strings::substring(value, i64::from(*start), end.map(i64::from), *scope)?
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
            F::CountLocal => local::count(value),
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
        if let Some(value) = self.apply(&traverser.value, arguments, cx)? {
            out.push_back(traverser.move_to(value, &self.step));
        }
        Ok(())
    }
}

/// `order(local)`: the members ranked by what the modulators make of them.
struct OrderLocalLogic {
    orders: Vec<Order>,
    random: StepRandom,
    step: StepInfo,
}

impl ModulatedLogic for OrderLocalLogic {
    fn requests(&mut self, traverser: &Traverser, cx: &mut Cx<'_>, list: &mut Vec<Request>) -> Result<()> {
        for member in local::sortable(&traverser.value)?.unwrap_or_default() {
            list.extend(
                (0..self.orders.len()).map(|modulator| Request { modulator, subject: Subject::Value(member.clone()) }),
            );
        }
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
        let Some(members) = local::sortable(&traverser.value)? else {
            let value = traverser.value.clone();
            out.push_back(traverser.move_to(value, &self.step));
            return Ok(());
        };
        let mut keyed: Vec<(Vec<Value>, Value)> = members
            .into_iter()
            .zip(results.chunks_exact(self.orders.len()))
            // A member for which a by() yields nothing goes.
            .filter_map(|(member, keys)| Some((keys.iter().cloned().collect::<Option<Vec<Value>>>()?, member)))
            .collect();
        let mut random = self.random.get(cx.context).clone();
        local::sort_keyed(&mut keyed, &self.orders, &*cx.context, &mut random);
        *self.random.get(cx.context) = random;
        let sorted = keyed.into_iter().map(|(_, member)| member).collect();
        let value = local::rebuild_sorted(&traverser.value, sorted);
        out.push_back(traverser.move_to(value, &self.step));
        Ok(())
    }
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
            builder.modulated(chain, &name, false, modulators, move || OrderLocalLogic {
                orders: orders.clone(),
                random: StepRandom::default(),
                step: step.clone(),
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
            builder.modulated(chain, &name, false, modulators, move || ScalarLogic {
                function: function.clone(),
                arguments: count,
                source,
                random: StepRandom::default(),
                step: step.clone(),
            })
        }
        _ => Err(QueryError::invalid(format!("{node} is not a function of a value"))),
    }
}
