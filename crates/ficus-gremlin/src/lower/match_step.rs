//! `match()`: patterns between labels.

use std::sync::Arc;

use ficus_model::{Bytecode, Instruction};
use ficus_query::logical::{LabelledNode, MatchPattern, Name, Node, Traversal, WherePredicate};

use super::arguments::Step;
use super::builder::Builder;
use super::error::{LowerError, Lowered};
use super::where_step::{start_label, take_end_label};

/// `match(patterns…)`.
pub(super) fn match_(builder: &mut Builder<'_>, step: Step<'_>) -> Lowered {
    let bytecodes = step.traversals(0)?;
    if bytecodes.is_empty() {
        return Err(step.wrong("match() needs at least one pattern"));
    }
    let patterns = all(builder, &bytecodes)?;
    builder.push(step, Node::Match { patterns, conjunctive: true })
}

fn all(builder: &Builder<'_>, bytecodes: &[&Arc<Bytecode>]) -> Lowered<Vec<MatchPattern>> {
    bytecodes
        .iter()
        .map(|bytecode| {
            builder.check_anonymous(bytecode)?;
            pattern(builder, &bytecode.steps)
        })
        .collect()
}

fn pattern(builder: &Builder<'_>, steps: &[Instruction]) -> Lowered<MatchPattern> {
    builder.admit_child(steps)?;
    let mut inner = builder.nested();
    if let Some((conjunctive, parts)) = inner.split_infix(steps) {
        let patterns = parts.into_iter().map(|part| pattern(&inner, part)).collect::<Lowered<Vec<_>>>()?;
        return Ok(if conjunctive { MatchPattern::And(patterns) } else { MatchPattern::Or(patterns) });
    }
    if let Some(start) = start_label(steps) {
        inner.line(&steps[1..])?;
        return path(start, inner.finish()?);
    }
    let Some((first, rest)) = steps.split_first() else { return Err(without_start(None)) };
    let step = Step::new(first);
    match (&*first.name, rest.is_empty()) {
        ("and", true) => Ok(MatchPattern::And(all(&inner, &step.traversals(0)?)?)),
        ("or", true) => Ok(MatchPattern::Or(all(&inner, &step.traversals(0)?)?)),
        ("not", true) => {
            step.at_most(1)?;
            let bytecode = step.traversal(0)?;
            builder.check_anonymous(bytecode)?;
            Ok(MatchPattern::Not(Box::new(pattern(&inner, &bytecode.steps)?)))
        }
        ("where", _) => {
            inner.line(steps)?;
            let traversal = inner.finish()?;
            // Modulators of where() are part of its node.
            if traversal.nodes.len() == 1 && traversal.nodes[0].labels.is_empty() {
                let mut labels = Vec::new();
                collect_labels(&traversal, &mut labels);
                return Ok(MatchPattern::Where(Arc::new(traversal), labels));
            }
            let mut traversal = traversal;
            match traversal.nodes.first_mut().and_then(|labelled| take_start(&mut labelled.node)) {
                Some(start) => path(start, traversal),
                None => Err(without_start(Some(first))),
            }
        }
        _ => Err(without_start(Some(first))),
    }
}

fn without_start(first: Option<&Instruction>) -> LowerError {
    let message = "All match()-traversals must have a single start label (i.e. variable): begin each with as('label')";
    match first {
        Some(first) => Step::new(first).illegal(message),
        None => LowerError::illegal("match", message),
    }
}

fn path(start: Name, mut traversal: Traversal) -> Lowered<MatchPattern> {
    let end = take_end_label(&mut traversal.nodes, "match")?;
    Ok(MatchPattern::Path { start, traversal: Arc::new(traversal), end })
}

/// Takes the label a `where()` starts from off it.
fn take_start(node: &mut Node) -> Option<Name> {
    match node {
        Node::WherePredicate { start, .. } | Node::WhereTraversal { start, .. } => start.take(),
        _ => None,
    }
}

/// The labels that a `where()` needs bound, each once.
fn collect_labels(traversal: &Traversal, labels: &mut Vec<Name>) {
    let mut add = |label: &Name| {
        if !labels.contains(label) {
            labels.push(label.clone());
        }
    };
    for LabelledNode { node, .. } in &traversal.nodes {
        match node {
            Node::WherePredicate { start, predicate, .. } => {
                start.iter().for_each(&mut add);
                predicate_labels(predicate, &mut add);
            }
            Node::WhereTraversal { start, end, .. } => {
                start.iter().for_each(&mut add);
                end.iter().for_each(&mut add);
            }
            _ => {}
        }
    }
    for LabelledNode { node, .. } in &traversal.nodes {
        match node {
            Node::And { traversals } | Node::Or { traversals } => {
                traversals.iter().for_each(|child| collect_labels(child, labels));
            }
            Node::Not { traversal } | Node::Filter { traversal } | Node::WhereTraversal { traversal, .. } => {
                collect_labels(traversal, labels);
            }
            _ => {}
        }
    }
}

fn predicate_labels(predicate: &WherePredicate, add: &mut impl FnMut(&Name)) {
    match predicate {
        WherePredicate::Compare(_, label) | WherePredicate::Text(_, label) => add(label),
        WherePredicate::Within(labels) | WherePredicate::Without(labels) => labels.iter().for_each(add),
        WherePredicate::And(parts) | WherePredicate::Or(parts) => {
            parts.iter().for_each(|part| predicate_labels(part, add));
        }
        WherePredicate::Not(inner) => predicate_labels(inner, add),
    }
}
