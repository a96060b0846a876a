//! Reductions, barriers and side effects.

use ficus_model::{Scope, Value};
use ficus_query::logical::{By, Name, Node, Reduction, ScalarFunction};

use super::arguments::{Given, Step};
use super::builder::Builder;
use super::error::Lowered;

fn reduce(builder: &mut Builder<'_>, step: Step<'_>, reduction: Reduction, local: ScalarFunction) -> Lowered {
    let (scope, at) = step.scope();
    if step.count() > at {
        return Err(step.misused(&format!("{}() takes at most a Scope", step.name())));
    }
    builder.push(
        step,
        match scope {
            Scope::Global => Node::Reduce { reduction },
            Scope::Local => Node::Scalar { function: local },
        },
    )
}

pub(super) fn count(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    reduce(builder, step, Reduction::Count, ScalarFunction::CountLocal)
}

pub(super) fn sum(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    reduce(builder, step, Reduction::Sum, ScalarFunction::SumLocal)
}

pub(super) fn min(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    reduce(builder, step, Reduction::Min, ScalarFunction::MinLocal)
}

pub(super) fn max(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    reduce(builder, step, Reduction::Max, ScalarFunction::MaxLocal)
}

pub(super) fn mean(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    reduce(builder, step, Reduction::Mean, ScalarFunction::MeanLocal)
}

/// `fold()`, `fold(seed, operator)`.
pub(super) fn fold(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(2)?;
    let seed = if step.count() == 0 { None } else { Some((step.value(0)?, step.operator(1)?)) };
    builder.push(step, Node::Fold { seed })
}

/// The side-effect key that a step may be given.
fn side_effect(step: Step<'_>) -> Lowered<Option<Name>> {
    step.at_most(1)?;
    step.optional_name(0)
}

pub(super) fn group(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let side_effect = side_effect(step)?;
    builder.push(step, Node::Group { side_effect, key: By::Identity, value: By::Identity })
}

pub(super) fn group_count(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let side_effect = side_effect(step)?;
    builder.push(step, Node::GroupCount { side_effect, key: By::Identity })
}

pub(super) fn tree(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let side_effect = side_effect(step)?;
    builder.push(step, Node::Tree { side_effect, bys: Vec::new() })
}

/// `barrier()`, `barrier(size)`, `barrier(normSack)`; the token travels as a string.
pub(super) fn barrier(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(1)?;
    let (size, norm_sack) = match step.given(0) {
        None => (None, false),
        Some(Given::Value(Value::String(token))) if matches!(&**token, "normSack" | "norm_sack") => (None, true),
        Some(_) => (Some(step.integer(0).map_err(|_| step.expected(0, "an integer or Barrier.normSack"))?), false),
    };
    if let Some(size) = size.filter(|size| *size < 1) {
        return Err(step.wrong(format!("barrier({size}) would let no row through; its size is at least 1")));
    }
    builder.push(step, Node::Barrier { size, norm_sack })
}

pub(super) fn profile(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let side_effect = side_effect(step)?;
    builder.push(step, Node::Profile { side_effect })
}

/// `aggregate(key)`. The scope it took before 3.8 is gone: `local(aggregate(key))` is what `aggregate(local, key)` was.
pub(super) fn aggregate(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    if let Some(Given::Value(Value::Scope(scope))) = step.given(0) {
        let instead = match scope {
            Scope::Global => "aggregate(key)",
            Scope::Local => "local(aggregate(key))",
        };
        return Err(step.wrong(format!("aggregate() takes no Scope any more: write {instead} instead")));
    }
    step.at_most(1)?;
    builder.push(step, Node::Aggregate { key: step.name_at(0)?, by: By::Identity })
}

pub(super) fn cap(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    builder.push(step, Node::Cap { keys: step.some_names(0)? })
}

pub(super) fn subgraph(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(1)?;
    builder.push(step, Node::Subgraph { key: step.name_at(0)? })
}

pub(super) fn fail(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(1)?;
    let message = match step.given(0) {
        Some(Given::Value(Value::Null)) => None,
        _ => step.optional_name(0)?,
    };
    builder.push(step, Node::Fail { message })
}
