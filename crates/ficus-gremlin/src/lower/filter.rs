//! Filters that are no predicates on elements: connectives, ranges, samples, paths.

use ficus_model::{P, Scope, Value};
use ficus_query::logical::{By, Node, Quantifier, ScalarFunction};

use super::arguments::{Given, Step};
use super::builder::Builder;
use super::error::Lowered;

/// `filter(traversal)` or `filter(P)`.
pub(super) fn filter(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(1)?;
    let node = match step.given(0) {
        Some(Given::Predicate(predicate)) => Node::Is { predicate: predicate.clone() },
        _ => Node::Filter { traversal: builder.child(step.traversal(0)?)? },
    };
    builder.push(step, node)
}

pub(super) fn not(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(1)?;
    let traversal = builder.child(step.traversal(0)?)?;
    builder.push(step, Node::Not { traversal })
}

/// `and(traversals…)`; without arguments it joins its neighbours, which the builder sees to.
pub(super) fn and(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let traversals = builder.children(&step.traversals(0)?)?;
    builder.push(step, Node::And { traversals })
}

pub(super) fn or(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let traversals = builder.children(&step.traversals(0)?)?;
    builder.push(step, Node::Or { traversals })
}

pub(super) fn all(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    collection(builder, step, Quantifier::All)
}

pub(super) fn any(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    collection(builder, step, Quantifier::Any)
}

/// `none(P)`; without arguments it is what `discard()` was called before 3.8.
pub(super) fn none(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    if step.count() == 0 { discard(builder, step) } else { collection(builder, step, Quantifier::None) }
}

fn collection(builder: &mut Builder<'_>, step: Step<'_>, quantifier: Quantifier) -> Lowered {
    step.at_most(1)?;
    if matches!(step.given(0), Some(Given::Value(Value::Null))) {
        return Err(step.wrong(format!("Input predicate to {} step can't be null.", step.name())));
    }
    let predicate: P = step.predicate(0)?;
    builder.push(step, Node::Collection { quantifier, predicate })
}

pub(super) fn discard(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.no_arguments()?;
    builder.push(step, Node::Discard)
}

pub(super) fn coin(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(1)?;
    let probability = match step.given(0) {
        Some(Given::Value(Value::Double(value))) => *value,
        Some(Given::Value(Value::Float(value))) => f64::from(*value),
        Some(Given::Value(Value::BigDecimal(value))) => {
            value.to_string().parse().map_err(|_| step.expected(0, "a number"))?
        }
        _ => step.integer(0).map_err(|_| step.expected(0, "a number"))? as f64,
    };
    builder.push(step, Node::Coin { probability })
}

pub(super) fn sample(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let (scope, at) = step.scope();
    step.at_most(at + 1)?;
    let amount = step.integer(at)?;
    builder.push(
        step,
        match scope {
            Scope::Global => Node::Sample { amount, by: By::Identity },
            Scope::Local => Node::Scalar { function: ScalarFunction::SampleLocal { amount } },
        },
    )
}

/// `dedup()`, `dedup(labels…)`, `dedup(local)`.
pub(super) fn dedup(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let (scope, at) = step.scope();
    let labels = step.names(at)?;
    builder.push(
        step,
        match scope {
            Scope::Global => Node::Dedup { labels, by: None },
            Scope::Local => Node::Scalar { function: ScalarFunction::DedupLocal },
        },
    )
}

pub(super) fn range(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let (scope, at) = step.scope();
    step.at_most(at + 2)?;
    push_range(builder, step, scope, step.integer(at)?, step.integer(at + 1)?)
}

pub(super) fn limit(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let (scope, at) = step.scope();
    step.at_most(at + 1)?;
    push_range(builder, step, scope, 0, step.integer(at)?)
}

pub(super) fn skip(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let (scope, at) = step.scope();
    step.at_most(at + 1)?;
    push_range(builder, step, scope, step.integer(at)?, -1)
}

fn push_range(builder: &mut Builder<'_>, step: Step<'_>, scope: Scope, low: i64, high: i64) -> Lowered {
    if low != -1 && high != -1 && low > high {
        return Err(step.wrong(format!("Not a legal range: [{low}, {high}]")));
    }
    builder.push(
        step,
        match scope {
            Scope::Global => Node::Range { low, high },
            Scope::Local => Node::Scalar { function: ScalarFunction::RangeLocal { low, high } },
        },
    )
}

/// `next()`, with which gremlin-lang ends a query that is an argument of another: its first result.
pub(super) fn next(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.no_arguments()?;
    builder.push(step, Node::Range { low: 0, high: 1 })
}

/// `tail()`, `tail(n)`, each with a scope before it.
pub(super) fn tail(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let (scope, at) = step.scope();
    step.at_most(at + 1)?;
    let count = if step.count() > at { step.integer(at)? } else { 1 };
    builder.push(
        step,
        match scope {
            Scope::Global => Node::Tail { count },
            Scope::Local => Node::Scalar { function: ScalarFunction::TailLocal { count } },
        },
    )
}

pub(super) fn simple_path(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    path_filter(builder, step, true)
}

pub(super) fn cyclic_path(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    path_filter(builder, step, false)
}

fn path_filter(builder: &mut Builder<'_>, step: Step<'_>, simple: bool) -> Lowered {
    step.no_arguments()?;
    builder.push(step, Node::PathFilter { simple, from: None, to: None, bys: Vec::new() })
}

pub(super) fn time_limit(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(1)?;
    builder.push(step, Node::TimeLimit { milliseconds: step.integer(0)? })
}
