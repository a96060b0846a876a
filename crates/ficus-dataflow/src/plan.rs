//! Plans: the immutable description from which instances are made, shared by all runs of a query.

use std::sync::Arc;

use crate::{Domain, Operator};

/// A node's number, unique in its plan; index into profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// Makes one instance of a node.
pub type Factory<D> = Arc<dyn Fn() -> Box<dyn Operator<D>> + Send + Sync>;

/// One element of a region.
pub struct Node<D: Domain> {
    /// Its number.
    pub id: NodeId,
    /// Shown in profiles and plans.
    pub name: Arc<str>,
    /// Whether `finish` can emit although no message ever came (`count()` yields 0). Others are then never created.
    pub emits_on_empty: bool,
    /// Makes the operator when the first message arrives.
    pub factory: Factory<D>,
}

impl<D: Domain> Clone for Node<D> {
    fn clone(&self) -> Self {
        Node {
            id: self.id,
            name: self.name.clone(),
            emits_on_empty: self.emits_on_empty,
            factory: self.factory.clone(),
        }
    }
}

/// A line of nodes, each reading what the one before emits.
pub struct Region<D: Domain> {
    /// First to last.
    pub nodes: Vec<Node<D>>,
}

impl<D: Domain> Default for Region<D> {
    fn default() -> Self {
        Region { nodes: Vec::new() }
    }
}

/// A whole query.
pub struct Plan<D: Domain> {
    /// The outermost region; its input is the query's seed messages.
    pub root: Arc<Region<D>>,
    /// One more than the largest [`NodeId`].
    pub node_count: u32,
    /// Messages a queue holds before its producer pauses; 1 makes the query strictly depth-first, row by row.
    pub batch_rows_limit: usize,
}
