//! Walks in sub-queries that are asked for each row anew: `where()`, `local()`, `project().by()`.
//!
//! A sub-query that turns out to be short is still walked in place as it was written ([`crate::probe`]); where that gives up, a search takes
//! over. Bodies of loops and arms of unions stay as they are, since a `dedup()` there remembers the rows before.

use std::sync::Arc;

use super::replaced;
use crate::logical::{By, LabelledNode, Node, Reduction, Traversal};

/// What is wanted of a sub-query.
#[derive(Clone, Copy, PartialEq)]
enum Wanted {
    /// Whether it yields anything.
    Anything,
    /// What comes first.
    First,
    /// All rows.
    All,
}

/// Replaces walks in the sub-queries of these nodes, at any depth.
pub(super) fn replace(nodes: &mut [LabelledNode]) -> bool {
    let mut found = false;
    for own in nodes {
        for (traversal, wanted) in of_node(&mut own.node) {
            let mut nodes = traversal.nodes.clone();
            let mut is_found = replace(&mut nodes);
            if let Some(made) = walks(&nodes, wanted) {
                nodes = made;
                is_found = true;
            }
            if is_found {
                *traversal = Arc::new(Traversal { nodes });
                found = true;
            }
        }
    }
    found
}

/// The sub-queries of a node that begin anew with each row.
fn of_node(node: &mut Node) -> Vec<(&mut Arc<Traversal>, Wanted)> {
    let of_by = |by| match by {
        &mut By::Traversal(ref mut traversal) => Some((traversal, Wanted::First)),
        _ => None,
    };
    match node {
        Node::Filter { traversal } | Node::Not { traversal } => vec![(traversal, Wanted::Anything)],
        Node::And { traversals } | Node::Or { traversals } => {
            traversals.iter_mut().map(|traversal| (traversal, Wanted::Anything)).collect()
        }
        Node::Map { traversal } => vec![(traversal, Wanted::First)],
        Node::FlatMap { traversal } | Node::Local { traversal } => vec![(traversal, Wanted::All)],
        Node::Project { bys, .. } => bys.iter_mut().filter_map(of_by).collect(),
        Node::Order { keys, .. } => keys.iter_mut().filter_map(|key| of_by(&mut key.by)).collect(),
        _ => Vec::new(),
    }
}

/// The nodes with walks in place of what they replace.
fn walks(nodes: &[LabelledNode], wanted: Wanted) -> Option<Vec<LabelledNode>> {
    let mut made = match wanted {
        Wanted::All => replaced(nodes)?,
        // Which row is first, a search and a stream of walks do not agree on. A number is one row.
        Wanted::First => {
            let counts = nodes.iter().any(|own| matches!(own.node, Node::Reduce { reduction: Reduction::Count }));
            let cuts = nodes.iter().any(|own| matches!(own.node, Node::Range { .. }));
            if !counts || cuts {
                return None;
            }
            replaced(nodes)?
        }
        Wanted::Anything => {
            let mut nodes = nodes.to_vec();
            nodes.push(Node::Range { low: 0, high: 1 }.into());
            let mut made = replaced(&nodes)?;
            made.pop();
            made
        }
    };
    for own in &mut made {
        if let Node::KHop(walk) = &mut own.node {
            walk.alone = true;
        }
    }
    Some(made)
}
