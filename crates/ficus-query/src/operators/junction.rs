//! `or()`, `not()`, `and()` and `where()` of nothing but conditions are conditions themselves: columns tell them of many vertices at once, where a scope
//! would ask for one row after another.

use std::sync::Arc;

use ficus_model::{Value, VertexId};
use ficus_storage::AtVertex;

use crate::context::{QueryContext, Result};
use crate::logical::{LabelledNode, Node, Traversal};
use crate::operators::has::Conditions;
use crate::probe::Rule;

/// Conditions of which all, one or none have to hold.
#[derive(Clone)]
pub struct Junction {
    rule: Rule,
    parts: Vec<Conditions>,
    /// Vertices of which no part has told yet that it holds, each with its place.
    open: Vec<(VertexId, u32)>,
    /// Those for which the part that is asked holds.
    held: Vec<(VertexId, u32)>,
    /// By place, whether a part holds.
    found: Vec<bool>,
}

/// The rule and the sub-queries of a filter by sub-queries.
fn parts_of(node: &Node) -> Option<(Rule, &[Arc<Traversal>])> {
    Some(match node {
        Node::Filter { traversal } => (Rule::All, std::slice::from_ref(traversal)),
        Node::Not { traversal } => (Rule::None, std::slice::from_ref(traversal)),
        Node::And { traversals } => (Rule::All, traversals),
        Node::Or { traversals } => (Rule::Any, traversals),
        _ => return None,
    })
}

/// Steps and conditions of which a junction is made at most: every instance of a scope has its own, and a look at a batch of rows is one piece of work.
const PARTS_MAX: usize = 64;

/// Whether a node is a filter by sub-queries that are made of conditions only, and of not too many.
pub fn is_junction(node: &Node) -> bool {
    let mut left = PARTS_MAX;
    parts_of(node).is_some() && is_of_conditions(node, &mut left)
}

/// Whether a node is a condition, or made of conditions only; of so many parts at most, from which these are taken.
fn is_of_conditions(node: &Node, left: &mut usize) -> bool {
    let own = match node {
        Node::Has { containers } => containers.len(),
        _ => 1,
    };
    let Some(rest) = left.checked_sub(own) else { return false };
    *left = rest;
    let mut is_plain = |own: &LabelledNode| own.labels.is_empty() && is_of_conditions(&own.node, left);
    match parts_of(node) {
        Some((_, parts)) => parts.iter().all(|part| part.nodes.iter().all(&mut is_plain)),
        None => matches!(node, Node::Has { .. } | Node::HasProperty { .. } | Node::Identity),
    }
}

impl Junction {
    /// That of a filter by sub-queries which [`is_junction`]; `None` for another node.
    ///
    /// Errors: those of the conditions.
    pub fn of(node: &Node) -> Result<Option<Junction>> {
        let Some((rule, parts)) = parts_of(node) else { return Ok(None) };
        let of_part = |part: &Arc<Traversal>| Conditions::of_tests(part.nodes.iter().map(|own| &own.node));
        let parts = parts.iter().map(of_part).collect::<Result<_>>()?;
        Ok(Some(Junction::new(rule, parts)))
    }

    /// That of these conditions.
    pub fn new(rule: Rule, parts: Vec<Conditions>) -> Junction {
        Junction { rule, parts, open: Vec::new(), held: Vec::new(), found: Vec::new() }
    }

    /// Those that it is made of.
    pub fn parts(&self) -> &[Conditions] {
        &self.parts
    }

    /// Drops vertices for which it does not hold, if columns can tell that of all of them: true then. Else none is dropped but for one of several that
    /// all have to hold.
    #[must_use]
    pub fn sift<V: AtVertex>(&mut self, context: &QueryContext, vertices: &mut Vec<V>) -> bool {
        let Junction { rule, parts, open, held, found } = self;
        if *rule == Rule::All {
            return parts.iter_mut().all(|part| part.sift(context, vertices));
        }
        open.clear();
        open.extend(vertices.iter().map(|vertex| vertex.vertex()).zip(0..));
        found.clear();
        found.resize(vertices.len(), false);
        for part in parts {
            held.clone_from(open);
            if !part.sift(context, held) {
                return false;
            }
            held.iter().for_each(|(_, place)| found[*place as usize] = true);
            open.retain(|(_, place)| !found[*place as usize]);
        }
        let mut verdicts = found.iter().map(|found| *found == (*rule == Rule::Any));
        vertices.retain(|_| verdicts.next() == Some(true));
        true
    }

    /// Whether it holds.
    ///
    /// Errors: those of the conditions that are asked.
    pub fn test(&mut self, value: &Value, context: &QueryContext) -> Result<bool> {
        for part in &mut self.parts {
            match (self.rule, part.test(value, context)?) {
                (Rule::All, false) | (Rule::None, true) => return Ok(false),
                (Rule::Any, true) => return Ok(true),
                _ => {}
            }
        }
        Ok(self.rule != Rule::Any)
    }
}
