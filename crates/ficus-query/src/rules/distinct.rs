//! Loops whose rows are wanted once each: of equal rows in an iteration one goes on.
//!
//! Behind `repeat(…)` a `dedup()`, or the question of a `where(…)` whether there is a row at all, makes no difference between
//! one walk to a vertex and a thousand. If equal rows are told apart by nothing else (no paths, sacks or effects), all but the
//! first of an iteration can go: the work grows with the vertices that are reached and not with the walks that reach them. If no test counts iterations
//! either, all but the first of the whole loop: a loop that goes in circles ends.
//! Unlike a search for sets of vertices ([`super::k_hop`]) the loop may hold any steps that look at one row at a time.

use std::sync::Arc;

use crate::logical::visit::{self, PathNeed};
use crate::logical::{LabelledNode, LogicalPlan, Node, OfEqual, Repeat, Traversal};
use crate::physical::Requirements;

/// How many of equal rows somebody wants.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    All,
    /// One of each.
    Distinct,
    /// Any row at all.
    Any,
}

/// Marks such loops, wherever they are.
pub fn in_loops(plan: &mut LogicalPlan) -> bool {
    let requirements = Requirements::of(plan);
    if requirements.paths != PathNeed::None || requirements.row_by_row || plan.source.sack.is_some() {
        return false;
    }
    let mut changed = false;
    visit::rewrite(&mut plan.root, &mut |traversal| {
        changed |= mark(traversal, Wanted::All);
        for own in &mut traversal.nodes {
            for question in questions(&mut own.node) {
                changed |= mark(Arc::make_mut(question), Wanted::Any);
            }
        }
    });
    changed
}

/// The sub-queries of a node of which only matters whether they yield anything.
fn questions(node: &mut Node) -> Vec<&mut Arc<Traversal>> {
    match node {
        Node::Filter { traversal } | Node::Not { traversal } => vec![traversal],
        Node::And { traversals } | Node::Or { traversals } => traversals.iter_mut().collect(),
        Node::Repeat(repeat) => [&mut repeat.until, &mut repeat.emit].into_iter().flatten().collect(),
        Node::Choose { choice, boolean: true, .. } => vec![choice],
        _ => Vec::new(),
    }
}

/// Marks the loops of a traversal, and of the sub-queries in it whose rows are its rows.
fn mark(traversal: &mut Traversal, wanted: Wanted) -> bool {
    let mut changed = false;
    for position in 0..traversal.nodes.len() {
        let (front, behind) = traversal.nodes.split_at_mut(position + 1);
        let node = &mut front[position].node;
        if !matches!(node, Node::Repeat(_)) && rows_of(node).is_empty() {
            continue;
        }
        let wanted = match behind.iter().find(|own| !looks_at_one_row(&own.node)).map(|own| &own.node) {
            Some(Node::Dedup { labels, by: None }) if labels.is_empty() => Wanted::Distinct,
            Some(Node::Range { low: 0, high }) if *high != 0 && wanted == Wanted::Any => Wanted::Any,
            Some(_) => Wanted::All,
            None => wanted,
        };
        if wanted == Wanted::All {
            continue;
        }
        if let Node::Repeat(repeat) = node {
            if repeat.distinct == OfEqual::All && fits(repeat) {
                repeat.distinct = if counts(repeat) { OfEqual::OneOfIteration } else { OfEqual::One };
                changed = true;
            }
            continue;
        }
        for rows in rows_of(node) {
            // Most have none, and are not copied.
            if visit::any(rows, &mut |node| matches!(node, Node::Repeat(_))) {
                changed |= mark(Arc::make_mut(rows), wanted);
            }
        }
    }
    changed
}

/// The sub-queries of a node whose rows are its rows.
fn rows_of(node: &mut Node) -> Vec<&mut Arc<Traversal>> {
    match node {
        Node::FlatMap { traversal } | Node::Local { traversal } | Node::Optional { traversal } => vec![traversal],
        Node::Coalesce { branches } | Node::Union { branches, .. } => branches.iter_mut().collect(),
        _ => Vec::new(),
    }
}

/// Whether rows of an iteration are told apart by their object only.
fn fits(repeat: &Repeat) -> bool {
    let is_pure = |own: &LabelledNode| match &own.node {
        Node::Dedup { labels, by: None } => labels.is_empty(),
        node => makes_rows_of_one(node),
    };
    repeat.body.nodes.iter().all(is_pure)
}

/// Whether what becomes of a row at the gate may depend on how often it went round, or on anything but its object.
fn counts(repeat: &Repeat) -> bool {
    let mut tests = [&repeat.until, &repeat.emit].into_iter().flatten();
    let counts = &mut |node: &Node| matches!(node, Node::LoopsAtLeast { .. } | Node::Loops { .. });
    tests.any(|test| !is_pure(test) || visit::any(test, counts))
}

/// As [`looks_at_one_row`], also where several lines of steps make rows of it.
fn makes_rows_of_one(node: &Node) -> bool {
    match node {
        Node::Union { branches, start: false } => {
            branches.iter().all(|branch| branch.nodes.iter().all(|own| makes_rows_of_one(&own.node)))
        }
        Node::FlatMap { traversal } | Node::Local { traversal } | Node::Optional { traversal } => is_pure(traversal),
        Node::Coalesce { branches } => branches.iter().all(|branch| is_pure(branch)),
        node => looks_at_one_row(node),
    }
}

/// Whether what a node makes of a row depends on the object of that row alone.
pub(super) fn looks_at_one_row(node: &Node) -> bool {
    match node {
        Node::Adjacent { .. }
        | Node::EdgeVertex { .. }
        | Node::Has { .. }
        | Node::HasProperty { .. }
        | Node::Is { .. }
        | Node::WherePredicate { .. }
        | Node::Properties { .. }
        | Node::Id
        | Node::Label
        | Node::Key
        | Node::ValueOf
        | Node::Constant { .. }
        | Node::Identity => true,
        Node::Filter { traversal } | Node::Not { traversal } => is_pure(traversal),
        Node::And { traversals } | Node::Or { traversals } => traversals.iter().all(|traversal| is_pure(traversal)),
        _ => false,
    }
}

/// Whether a sub-query has no effects, no randomness, and does not ask for loops.
fn is_pure(traversal: &Traversal) -> bool {
    let once = |node: &Node| match node {
        Node::Reduce { .. }
        | Node::Fold { .. }
        | Node::Range { .. }
        | Node::Dedup { .. }
        | Node::LoopsAtLeast { .. } => true,
        // Its own loops; those around it have names there.
        Node::Repeat(_) => !visit::any_child(node, &mut |part| visit::any(part, &mut names_a_loop)),
        node => looks_at_one_row(node),
    };
    traversal.nodes.iter().all(|own| once(&own.node))
}

/// Whether what a sub-query gives depends on the object that it begins with alone: as [`is_pure`], and neither on labels nor on the loop that it is in.
pub(crate) fn tells_of_one_object(traversal: &Traversal) -> bool {
    let asks_for_more = &mut |node: &Node| match node {
        Node::WherePredicate { .. } | Node::LoopsAtLeast { .. } => true,
        Node::Dedup { labels, .. } => !labels.is_empty(),
        _ => false,
    };
    is_pure(traversal) && !visit::any(traversal, asks_for_more)
}

fn names_a_loop(node: &Node) -> bool {
    matches!(node, Node::Loops { name: Some(_) })
}
