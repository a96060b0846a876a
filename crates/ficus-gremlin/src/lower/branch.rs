//! Branches and loops: `union`, `coalesce`, `optional`, `choose`, `branch`, `repeat` with its modulators.

use std::sync::Arc;

use ficus_model::{Pick, T, Value};
use ficus_query::logical::{LabelledNode, Node, OfEqual, PickToken, Repeat, Traversal};

use super::arguments::{Given, Step};
use super::builder::{Builder, Incomplete};
use super::error::Lowered;

pub(super) fn union(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let start = builder.is_start();
    let branches = builder.children(&step.traversals(0)?)?;
    builder.push(step, Node::Union { branches, start })
}

pub(super) fn coalesce(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let branches = builder.children(&step.traversals(0)?)?;
    builder.push(step, Node::Coalesce { branches })
}

pub(super) fn optional(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(1)?;
    let traversal = builder.child(step.traversal(0)?)?;
    builder.push(step, Node::Optional { traversal })
}

/// A traversal of a single node.
pub(super) fn single(node: Node) -> Arc<Traversal> {
    Arc::new(Traversal { nodes: vec![LabelledNode::from(node)] })
}

/// The traversal that reads what a token names.
fn token_traversal(token: T) -> Arc<Traversal> {
    single(match token {
        T::Id => Node::Id,
        T::Label => Node::Label,
        T::Key => Node::Key,
        T::Value => Node::ValueOf,
    })
}

/// `choose(T)`, `choose(traversal)` with options, `choose(P or traversal, then[, else])`.
pub(super) fn choose(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(3)?;
    let choice = match step.given(0) {
        Some(Given::Value(Value::T(token))) => token_traversal(*token),
        Some(Given::Predicate(predicate)) if step.count() > 1 => single(Node::Is { predicate: predicate.clone() }),
        Some(Given::Traversal(bytecode)) => builder.child(bytecode)?,
        _ => return Err(step.misused("choose() takes (T), (traversal) or (predicate or traversal, then[, else])")),
    };
    let boolean = step.count() > 1;
    let mut options = Vec::new();
    if boolean {
        let then = builder.child(step.traversal(1)?)?;
        let otherwise = if step.count() > 2 { builder.child(step.traversal(2)?)? } else { Arc::default() };
        options.push((PickToken::Value(Value::Bool(true)), then));
        options.push((PickToken::Value(Value::Bool(false)), otherwise));
    }
    builder.push(step, Node::Choose { choice, boolean, options, pass_unmatched: true })
}

/// `branch(traversal)`, `branch(T)`.
pub(super) fn branch(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(1)?;
    let choice = match step.given(0) {
        Some(Given::Value(Value::T(token))) => token_traversal(*token),
        _ => builder.child(step.traversal(0)?)?,
    };
    builder.push(step, Node::Choose { choice, boolean: false, options: Vec::new(), pass_unmatched: false })
}

/// Adds an option to the `choose()` or `branch()` that is the last node.
pub(super) fn add_option(
    step: Step<'_>,
    is_choose: bool,
    options: &mut Vec<(PickToken, Arc<Traversal>)>,
    token: PickToken,
    traversal: Arc<Traversal>,
) -> Lowered {
    if is_choose {
        match &token {
            PickToken::Pick(Pick::Any) => {
                return Err(
                    step.illegal("Choose step can not have an any-option as only one option per traverser is allowed")
                );
            }
            PickToken::Traversal(_) => {
                return Err(step.illegal("Traversal is not allowed as a Pick token for choose().option()"));
            }
            // The first one counts.
            PickToken::Pick(_) if options.iter().any(|(other, _)| *other == token) => return Ok(()),
            _ => {}
        }
    }
    // Where several options have rows, those of picks come first.
    let place = match &token {
        PickToken::Pick(_) => options.iter().take_while(|(other, _)| matches!(other, PickToken::Pick(_))).count(),
        _ => options.len(),
    };
    options.insert(place, (token, traversal));
    Ok(())
}

// ---- loops -----------------------------------------------------------------------------------------------------

/// `repeat(traversal)`, `repeat(name, traversal)`.
pub(super) fn repeat(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let (name, at) = match step.given(0) {
        Some(Given::Value(Value::String(name))) => (Some(name.clone()), 1),
        _ => (None, 0),
    };
    step.at_most(at + 1)?;
    let body = builder.repeated_child(step.traversal(at)?, true)?;
    if builder.incomplete() == Some(Incomplete::RepeatBody)
        && let Some(Node::Repeat(repeat)) = builder.last()
    {
        repeat.body = body;
        repeat.name = name;
        builder.completed();
        return Ok(());
    }
    builder.push(step, Node::Repeat(Repeat { body, name, ..empty_repeat() }))
}

fn empty_repeat() -> Repeat {
    Repeat {
        body: Arc::default(),
        until: None,
        until_first: false,
        emit: None,
        emit_first: false,
        name: None,
        distinct: OfEqual::All,
    }
}

/// `until(traversal)`, `until(P)`.
pub(super) fn until(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(1)?;
    let condition = condition(builder, step)?;
    set_until(builder, step, condition)
}

/// `times(n)`: until the loop counter reached `n`.
pub(super) fn times(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(1)?;
    let condition = single(Node::LoopsAtLeast { times: step.integer(0)? });
    set_until(builder, step, condition)
}

/// `emit()`, `emit(traversal)`, `emit(P)`.
pub(super) fn emit(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(1)?;
    let condition = if step.count() == 0 { Arc::default() } else { condition(builder, step)? };
    let before = builder.incomplete() == Some(Incomplete::RepeatBody);
    if let Some(Node::Repeat(repeat)) = builder.last()
        && repeat.emit.is_none()
    {
        repeat.emit = Some(condition);
        repeat.emit_first = before;
        return Ok(());
    }
    let repeat = Repeat { emit: Some(condition), emit_first: true, ..empty_repeat() };
    builder.push_incomplete(step, Node::Repeat(repeat), Incomplete::RepeatBody)
}

fn set_until(builder: &mut Builder<'_>, step: Step<'_>, condition: Arc<Traversal>) -> Lowered {
    let before = builder.incomplete() == Some(Incomplete::RepeatBody);
    if let Some(Node::Repeat(repeat)) = builder.last()
        && repeat.until.is_none()
    {
        repeat.until = Some(condition);
        repeat.until_first = before;
        return Ok(());
    }
    let repeat = Repeat { until: Some(condition), until_first: true, ..empty_repeat() };
    builder.push_incomplete(step, Node::Repeat(repeat), Incomplete::RepeatBody)
}

fn condition(builder: &Builder<'_>, step: Step<'_>) -> Lowered<Arc<Traversal>> {
    match step.given(0) {
        Some(Given::Predicate(predicate)) => Ok(single(Node::Is { predicate: predicate.clone() })),
        _ => builder.repeated_child(step.traversal(0)?, false),
    }
}
