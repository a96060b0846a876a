//! Plans: the immutable description from which instances are made, shared by all runs of a query.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use crate::{Domain, Operator};

/// A node's number, unique in its plan; index into profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// What a node is called in profiles, plans and errors. It is written out when somebody reads it, which nobody does of most plans.
#[derive(Clone)]
pub struct NodeName(Arc<dyn fmt::Display + Send + Sync>);

impl NodeName {
    /// A name that is written as `shown` is.
    pub fn new(shown: impl fmt::Display + Send + Sync + 'static) -> NodeName {
        NodeName(Arc::new(shown))
    }

    /// Several names in a row, with spaces between them. There may be thousands, of which none holds the others.
    pub fn of_all(names: Vec<NodeName>) -> NodeName {
        if let [only] = names.as_slice() {
            return only.clone();
        }
        NodeName::new(fmt::from_fn(move |f| {
            for (place, name) in names.iter().enumerate() {
                write!(f, "{}{name}", if place > 0 { " " } else { "" })?;
            }
            Ok(())
        }))
    }

    /// This name and more, with a space between them.
    #[must_use]
    pub fn and(self, more: impl Into<NodeName>) -> NodeName {
        NodeName::of_all(vec![self, more.into()])
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl From<&'static str> for NodeName {
    fn from(name: &'static str) -> NodeName {
        NodeName::new(name)
    }
}

impl From<String> for NodeName {
    fn from(name: String) -> NodeName {
        NodeName::new(name)
    }
}

impl From<&NodeName> for NodeName {
    fn from(name: &NodeName) -> NodeName {
        name.clone()
    }
}

/// How much a node takes of what comes to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Demand {
    /// As many rows as are wanted of its own.
    #[default]
    AsWanted,
    /// All, before anything comes of it: what stands before it may work on many rows at once, also where the first row behind it is all that is wanted.
    All,
    /// Perhaps only the first few.
    Few,
}

/// Makes one instance of a node.
pub type Factory<D> = Arc<dyn Fn() -> Box<dyn Operator<D>> + Send + Sync>;

/// One element of a region.
pub struct Node<D: Domain> {
    /// Its number.
    pub id: NodeId,
    /// Shown in profiles and plans.
    pub name: NodeName,
    /// Whether `finish` can emit although no message ever came (`count()` yields 0). Others are then never created.
    pub emits_on_empty: bool,
    /// How much of what comes to it it takes before anything comes of it.
    pub demand: Demand,
    /// Makes the operator when the first message arrives.
    pub factory: Factory<D>,
}

impl<D: Domain> Clone for Node<D> {
    fn clone(&self) -> Self {
        Node {
            id: self.id,
            name: self.name.clone(),
            emits_on_empty: self.emits_on_empty,
            demand: self.demand,
            factory: self.factory.clone(),
        }
    }
}

/// Which node of an instance goes first, of those that have something to do and room for what comes of it: the intra-instance policy. Rows keep
/// their order with each of them.
#[derive(Clone, Copy, Debug, Default)]
pub enum IntraPolicy {
    /// The last: what was begun is brought to its end before more is begun, so that an early end comes with the least work.
    #[default]
    Dfs,
    /// The first: as much of one node as there is room for, before the next has a turn.
    Bfs,
    /// First in, first out: the one that has had something to do for longest.
    Fifo,
    /// The one that this order puts first (the earlier of equals).
    Comparator(fn(NodeId, NodeId) -> Ordering),
}

/// A line of nodes, each reading what the one before emits.
pub struct Region<D: Domain> {
    /// First to last.
    pub nodes: Vec<Node<D>>,
    /// Who goes first.
    pub policy: IntraPolicy,
    /// What the next node behind each demands that does not take rows just as they are wanted of it.
    pub(crate) demands: Vec<Demand>,
}

impl<D: Domain> Region<D> {
    /// Of these nodes, the last first.
    pub fn new(nodes: Vec<Node<D>>) -> Self {
        Region::with_policy(nodes, IntraPolicy::Dfs)
    }

    /// Of these nodes.
    pub fn with_policy(nodes: Vec<Node<D>>, policy: IntraPolicy) -> Self {
        let mut demands = vec![Demand::AsWanted; nodes.len()];
        let mut behind = Demand::AsWanted;
        for (own, node) in demands.iter_mut().zip(&nodes).rev() {
            *own = behind;
            if node.demand != Demand::AsWanted {
                behind = node.demand;
            }
        }
        Region { nodes, policy, demands }
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
