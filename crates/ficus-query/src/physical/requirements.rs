//! What a plan needs at run time: paths, row-by-row execution.

use crate::logical::visit::{self, PathNeed};
use crate::logical::{LogicalPlan, Node, Strategy, Traversal};

/// What a plan needs at run time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    /// How much of their way traversers must remember.
    pub paths: PathNeed,
    /// Effects (writes, side effects read on the way) must happen for one row before the next is looked at, as in a pull
    /// engine: rows move one by one, depth first.
    pub row_by_row: bool,
    /// The query writes to the graph.
    pub writes: bool,
    /// Programs compute properties that only the query sees.
    pub computes: bool,
    /// The query must not write, whatever the services that it calls are told to do.
    pub read_only: bool,
    /// The query reports its counters.
    pub profiled: bool,
}

impl Requirements {
    /// Those of a plan.
    pub fn of(plan: &LogicalPlan) -> Requirements {
        let paths = if plan.source.with_path { PathNeed::Full } else { visit::path_need(&plan.root) };
        let read_only = plan.source.strategies.contains(&Strategy::ReadOnly);
        let mut requirements = Requirements { paths, read_only, ..Requirements::default() };
        let mut has_effects = false;
        visit::walk(&plan.root, &mut |node| {
            requirements.writes |= is_write(node);
            requirements.computes |= matches!(node, Node::VertexProgram(_));
            has_effects |= has_effect(node);
            requirements.profiled |= matches!(node, Node::Profile { .. });
        });
        requirements.row_by_row = has_effects || requirements.writes;
        requirements
    }
}

fn is_write(node: &Node) -> bool {
    matches!(
        node,
        Node::AddVertex { .. }
            | Node::AddEdge { .. }
            | Node::AddProperty { .. }
            | Node::MergeVertex { .. }
            | Node::MergeEdge { .. }
            | Node::Drop
            | Node::Call { .. }
            | Node::Io { .. }
    )
}

/// Effects of single rows. Those of `group('x')` and the like are complete at their barrier, whatever the batch.
fn has_effect(node: &Node) -> bool {
    matches!(node, Node::SideEffect { .. } | Node::Aggregate { .. } | Node::Fail { .. } | Node::TimeLimit { .. })
}

/// Whether a traversal holds a barrier at any depth that TinkerPop treats as one when it decides to spread all input first.
pub fn has_barrier(traversal: &Traversal) -> bool {
    visit::any(traversal, &mut |node| {
        visit::is_barrier(node) || matches!(node, Node::Dedup { .. } | Node::Range { .. })
    })
}
