//! Functions of the current value: text, numbers, dates, lists.

use ficus_model::{GType, Scope, Value};
use ficus_query::logical::{Node, ScalarFunction, ValueOrTraversal};

use super::arguments::{Given, Step};
use super::builder::Builder;
use super::error::Lowered;
use super::sources::value_or_traversal;

fn push(builder: &mut Builder<'_>, step: Step<'_>, function: ScalarFunction) -> Lowered {
    builder.push(step, Node::Scalar { function })
}

/// A function that takes at most a scope.
fn scoped(builder: &mut Builder<'_>, step: Step<'_>, function: impl FnOnce(Scope) -> ScalarFunction) -> Lowered {
    let (scope, at) = step.scope();
    if step.count() > at {
        return Err(step.misused(&format!("{}() takes at most a Scope", step.name())));
    }
    push(builder, step, function(scope))
}

pub(super) fn as_string(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    scoped(builder, step, |scope| ScalarFunction::AsString { scope })
}

pub(super) fn to_lower(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    scoped(builder, step, |scope| ScalarFunction::ToLower { scope })
}

pub(super) fn to_upper(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    scoped(builder, step, |scope| ScalarFunction::ToUpper { scope })
}

pub(super) fn trim(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    scoped(builder, step, |scope| ScalarFunction::Trim { scope })
}

pub(super) fn trim_left(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    scoped(builder, step, |scope| ScalarFunction::LTrim { scope })
}

pub(super) fn trim_right(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    scoped(builder, step, |scope| ScalarFunction::RTrim { scope })
}

pub(super) fn length(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    scoped(builder, step, |scope| ScalarFunction::Length { scope })
}

pub(super) fn reverse(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.no_arguments()?;
    push(builder, step, ScalarFunction::Reverse)
}

/// A string or null.
fn text_or_null(step: Step<'_>, index: usize) -> Lowered<Value> {
    match step.given(index) {
        Some(Given::Value(value @ (Value::String(_) | Value::Null))) => Ok(value.clone()),
        _ => Err(step.expected(index, "a string")),
    }
}

pub(super) fn replace(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let (scope, at) = step.scope();
    step.at_most(at + 2)?;
    let (from, to) = (text_or_null(step, at)?, text_or_null(step, at + 1)?);
    push(builder, step, ScalarFunction::Replace { scope, from, to })
}

pub(super) fn split(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let (scope, at) = step.scope();
    step.at_most(at + 1)?;
    push(builder, step, ScalarFunction::Split { scope, separator: text_or_null(step, at)? })
}

pub(super) fn substring(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let (scope, at) = step.scope();
    step.at_most(at + 2)?;
    let start = step.integer32(at)?;
    let end = if step.count() > at + 1 { Some(step.integer32(at + 1)?) } else { None };
    push(builder, step, ScalarFunction::Substring { scope, start, end })
}

/// `concat(strings…)` or `concat(traversals…)`.
pub(super) fn concat(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let mut parts = Vec::with_capacity(step.count());
    for (index, argument) in step.arguments().iter().enumerate() {
        match step.given(index) {
            Some(Given::Value(Value::String(_) | Value::Null) | Given::Traversal(_)) => {
                parts.push(value_or_traversal(builder, step, argument, index)?);
            }
            Some(Given::Value(Value::List(members)))
                if members.iter().all(|member| matches!(member, Value::String(_) | Value::Null)) =>
            {
                parts.extend(members.iter().cloned().map(ValueOrTraversal::Value));
            }
            _ => return Err(step.expected(index, "a string or a traversal")),
        }
    }
    push(builder, step, ScalarFunction::Concat { parts })
}

pub(super) fn conjoin(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(1)?;
    let delimiter = text_or_null(step, 0)?;
    if matches!(delimiter, Value::Null) {
        return Err(step.wrong("Input delimiter to conjoin step can't be null."));
    }
    push(builder, step, ScalarFunction::Conjoin { delimiter })
}

/// The list (or what computes it) that a list function works with. Whether it is a list is for the running step to say.
fn other(builder: &Builder<'_>, step: Step<'_>) -> Lowered<ValueOrTraversal> {
    step.at_most(1)?;
    let argument = step.arguments().first().ok_or_else(|| step.expected(0, "a list or a traversal"))?;
    value_or_traversal(builder, step, argument, 0)
}

pub(super) fn combine(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let other = other(builder, step)?;
    push(builder, step, ScalarFunction::Combine { other })
}

pub(super) fn difference(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let other = other(builder, step)?;
    push(builder, step, ScalarFunction::Difference { other })
}

pub(super) fn disjunct(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let other = other(builder, step)?;
    push(builder, step, ScalarFunction::Disjunct { other })
}

pub(super) fn intersect(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let other = other(builder, step)?;
    push(builder, step, ScalarFunction::Intersect { other })
}

pub(super) fn merge(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let other = other(builder, step)?;
    push(builder, step, ScalarFunction::Merge { other })
}

pub(super) fn product(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let other = other(builder, step)?;
    push(builder, step, ScalarFunction::Product { other })
}

pub(super) fn index(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.no_arguments()?;
    push(builder, step, ScalarFunction::Index { as_map: false })
}

pub(super) fn as_bool(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.no_arguments()?;
    push(builder, step, ScalarFunction::AsBool)
}

pub(super) fn as_date(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.no_arguments()?;
    push(builder, step, ScalarFunction::AsDate)
}

pub(super) fn as_number(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(1)?;
    let gtype = match step.given(0) {
        None => None,
        Some(Given::Value(Value::GType(gtype))) if is_number_type(*gtype) => Some(*gtype),
        Some(Given::Value(Value::GType(gtype))) => {
            return Err(step.wrong(format!("asNumber() requires a numeric type token, got {gtype}")));
        }
        Some(_) => return Err(step.expected(0, "a GType")),
    };
    push(builder, step, ScalarFunction::AsNumber { gtype })
}

fn is_number_type(gtype: GType) -> bool {
    matches!(
        gtype,
        GType::Byte
            | GType::Short
            | GType::Int
            | GType::Long
            | GType::BigInt
            | GType::Float
            | GType::Double
            | GType::BigDecimal
            | GType::Number
    )
}

pub(super) fn date_add(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(2)?;
    let unit = match step.given(0) {
        Some(Given::Value(Value::DateUnit(unit))) => *unit,
        _ => return Err(step.expected(0, "a DT unit")),
    };
    push(builder, step, ScalarFunction::DateAdd { unit, amount: step.integer(1)? })
}

/// `dateDiff(date)`, `dateDiff(traversal)`.
pub(super) fn date_diff(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(1)?;
    let other = match step.given(0) {
        Some(Given::Value(date @ (Value::DateTime(_) | Value::Null))) => ValueOrTraversal::Value(date.clone()),
        Some(Given::Traversal(bytecode)) => ValueOrTraversal::Traversal(builder.child(bytecode)?),
        _ => return Err(step.expected(0, "a date or a traversal")),
    };
    push(builder, step, ScalarFunction::DateDiff { other })
}
