//! Maps of one traverser to another: constants, selections, paths, traversals, order.

use ficus_model::{Scope, Value};
use ficus_query::logical::{By, Name, Node};

use super::arguments::{Given, Step};
use super::builder::Builder;
use super::error::Lowered;

pub(super) fn identity(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.no_arguments()?;
    builder.push(step, Node::Identity)
}

pub(super) fn constant(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(1)?;
    builder.push(step, Node::Constant { value: step.value(0)? })
}

pub(super) fn map(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(1)?;
    let traversal = builder.child(step.traversal(0)?)?;
    builder.push(step, Node::Map { traversal })
}

pub(super) fn flat_map(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(1)?;
    let traversal = builder.child(step.traversal(0)?)?;
    builder.push(step, Node::FlatMap { traversal })
}

pub(super) fn local(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(1)?;
    let traversal = builder.child(step.traversal(0)?)?;
    builder.push(step, Node::Local { traversal })
}

pub(super) fn side_effect(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(1)?;
    let traversal = builder.child(step.traversal(0)?)?;
    builder.push(step, Node::SideEffect { traversal })
}

pub(super) fn unfold(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.no_arguments()?;
    builder.push(step, Node::Unfold)
}

pub(super) fn path(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.no_arguments()?;
    builder.push(step, Node::Path { from: None, to: None, bys: Vec::new() })
}

pub(super) fn project(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let keys = step.some_names(0)?;
    if let Some(twice) = first_repeated(&keys) {
        return Err(step.wrong(format!("keys must be unique in ProjectStep, but '{twice}' is given twice")));
    }
    builder.push(step, Node::Project { keys, bys: Vec::new() })
}

fn first_repeated(keys: &[Name]) -> Option<&Name> {
    // Few keys, as a rule; many are looked up.
    if keys.len() <= 16 {
        return keys.iter().enumerate().find(|(index, key)| keys[..*index].contains(key)).map(|(_, key)| key);
    }
    let mut seen = std::collections::HashSet::with_capacity(keys.len());
    keys.iter().find(|key| !seen.insert(*key))
}

/// `select(column)`, `select([pop,] labels…)`, `select([pop,] traversal)`.
pub(super) fn select(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let (pop, at) = match step.given(0) {
        Some(Given::Value(Value::Pop(pop))) => (Some(*pop), 1),
        _ => (None, 0),
    };
    let node = match step.given(at) {
        Some(Given::Value(Value::Column(column))) if at == 0 => {
            step.at_most(1)?;
            Node::SelectColumn { column: *column }
        }
        Some(Given::Traversal(bytecode)) => {
            step.at_most(at + 1)?;
            Node::SelectTraversal { pop, traversal: builder.child(bytecode)?, by: None }
        }
        _ => Node::Select { pop, labels: step.some_names(at)?, bys: Vec::new() },
    };
    builder.push(step, node)
}

pub(super) fn loops(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(1)?;
    builder.push(step, Node::Loops { name: step.optional_name(0)? })
}

/// `sack()`, or `sack(operator)`, which changes it.
pub(super) fn sack(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(1)?;
    let node = match step.count() {
        0 => Node::Sack,
        _ => Node::SackWith { operator: step.operator(0)?, by: By::Identity },
    };
    builder.push(step, node)
}

pub(super) fn math(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(1)?;
    builder.push(step, Node::Math { expression: step.name_at(0)?, bys: Vec::new() })
}

pub(super) fn format(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(1)?;
    if matches!(step.given(0), Some(Given::Value(Value::Null))) {
        return Err(step.wrong("Format string for Format step can't be null."));
    }
    builder.push(step, Node::Format { template: step.name_at(0)?, bys: Vec::new() })
}

/// `order()`, `order(scope)`; the sort keys come with `by()`.
pub(super) fn order(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let (scope, at): (Scope, usize) = step.scope();
    step.at_most(at)?;
    builder.push(step, Node::Order { scope, keys: Vec::new() })
}
