//! `where()`: a predicate between labels, or a traversal whose ends may be labels bound outside.
//!
//! `as('a')` at the beginning of such a traversal names where it starts, a label at its end what it must arrive at. Both may
//! also stand in the traversals of an `and()`, `or()` or `not()` that begins it, infix forms included.

use std::sync::Arc;

use ficus_model::{Instruction, Value};
use ficus_query::logical::{LabelledNode, Name, Node, Traversal};

use super::arguments::{Given, Step};
use super::builder::{Builder, join_infix};
use super::error::Lowered;
use super::predicates;

/// `where(P)`, `where(label, P)`, `where(traversal)`.
pub(super) fn where_(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    step.at_most(2)?;
    let node = match (step.count(), step.given(0)) {
        (1, Some(Given::Predicate(predicate))) => Node::WherePredicate {
            start: None,
            predicate: predicates::where_predicate(step, predicate)?,
            bys: Vec::new(),
        },
        (1, Some(Given::Traversal(bytecode))) => {
            builder.check_anonymous(bytecode)?;
            filter(scoped(builder, &bytecode.steps)?)
        }
        (2, Some(Given::Value(Value::String(_) | Value::Null))) => {
            let Some(Given::Predicate(predicate)) = step.given(1) else {
                return Err(step.expected(1, "a predicate"));
            };
            let start = match step.given(0) {
                Some(Given::Value(Value::String(label))) => Some(label.clone()),
                _ => None,
            };
            Node::WherePredicate { start, predicate: predicates::where_predicate(step, predicate)?, bys: Vec::new() }
        }
        _ => return Err(step.misused("where() takes (predicate), (label, predicate) or (traversal)")),
    };
    builder.push(step, node)
}

/// The node that filters by a traversal.
fn filter(mut traversal: Traversal) -> Node {
    match traversal.nodes.as_slice() {
        [LabelledNode { node: Node::WhereTraversal { .. }, labels }] if labels.is_empty() => {
            traversal.nodes.remove(0).node
        }
        _ => Node::Filter { traversal: Arc::new(traversal) },
    }
}

/// The label with which `steps` begin: `as()` with one label and no further `as()` behind it.
pub(super) fn start_label(steps: &[Instruction]) -> Option<Name> {
    let (first, rest) = steps.split_first()?;
    let again = rest.first().is_some_and(|next| &*next.name == "as");
    if &*first.name != "as" || again {
        return None;
    }
    let names = Step::new(first).names(0).ok()?;
    match names.as_slice() {
        [name] => Some(name.clone()),
        _ => None,
    }
}

/// Takes the label off the last node; several are an error.
pub(super) fn take_end_label(nodes: &mut [LabelledNode], step: &str) -> Lowered<Option<Name>> {
    let Some(last) = nodes.last_mut() else { return Ok(None) };
    match last.labels.len() {
        0 | 1 => Ok(last.labels.pop()),
        _ => Err(super::LowerError::illegal(
            step,
            format!("The end step of a {step}()-traversal can only have one label: {last}"),
        )),
    }
}

/// The traversal of a `where()`, with its labels made part of nodes.
fn scoped(builder: &Builder<'_>, steps: &[Instruction]) -> Lowered<Traversal> {
    builder.admit_child(steps)?;
    let mut inner = builder.nested();
    let children = |inner: &Builder<'_>, parts: Vec<&[Instruction]>| {
        parts.into_iter().map(|part| scoped(inner, part).map(Arc::new)).collect::<Lowered<Vec<_>>>()
    };
    if let Some((conjunctive, parts)) = inner.split_infix(steps) {
        let node = join_infix(conjunctive, parts, |part| scoped(&inner, part).map(Arc::new))?;
        return Ok(Traversal { nodes: vec![node.into()] });
    }
    let start = start_label(steps);
    let mut rest = if start.is_some() { &steps[1..] } else { steps };
    if start.is_none()
        && let Some((first, after)) = steps.split_first()
        && matches!(&*first.name, "and" | "or" | "not")
    {
        let step = Step::new(first);
        let bytecodes = step.traversals(0)?;
        for bytecode in &bytecodes {
            builder.check_anonymous(bytecode)?;
        }
        let mut traversals = children(&inner, bytecodes.iter().map(|bytecode| bytecode.steps.as_slice()).collect())?;
        let node = match (&*first.name, traversals.len()) {
            ("and", _) => Node::And { traversals },
            ("or", _) => Node::Or { traversals },
            (_, 1) => Node::Not { traversal: traversals.remove(0) },
            _ => return Err(step.misused("not() takes one traversal")),
        };
        inner.push(step, node)?;
        rest = after;
    }
    inner.line(rest)?;
    let mut traversal = inner.finish()?;
    let end = take_end_label(&mut traversal.nodes, "where")?;
    if start.is_none() && end.is_none() {
        return Ok(traversal);
    }
    let node = Node::WhereTraversal { start, traversal: Arc::new(traversal), end };
    Ok(Traversal { nodes: vec![node.into()] })
}
