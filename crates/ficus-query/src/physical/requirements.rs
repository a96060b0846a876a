//! What a plan needs at run time: paths, row-by-row execution.

use std::collections::HashMap;

use ficus_model::{Order, Value};

use crate::logical::visit::{self, PathNeed};
use crate::logical::{By, LogicalPlan, Name, Node, ScalarFunction, Strategy, Traversal};

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
    /// Rows go back to what they have under labels, so that the object before an edge on their way need not be where they found it.
    pub goes_back: bool,
    /// Side effects to which several `group()` add in the same way: their groups go on from one to the next and are ended by who reads them.
    pub shared_groups: Vec<Name>,
    /// The query has a seed, and steps inside sub-queries draw random numbers. All instances draw from one sequence, so they do so in TinkerPop's order.
    pub draws_in_order: bool,
    /// The query has a seed and draws random numbers: elements come in the order in which TinkerGraph hands them out.
    pub in_hash_order: bool,
    /// The first turn may be that of any thread: with so few steps it needs little stack however they nest, and none asks anybody else, who may
    /// make it wait.
    pub begins_anywhere: bool,
}

/// Steps at any depth with which a query may begin on any thread. They may all be nested: some kilobytes of stack each.
const STEPS_ANYWHERE_MAX: usize = 64;

impl Requirements {
    /// Those of a plan.
    pub fn of(plan: &LogicalPlan) -> Requirements {
        let read_only = plan.source.strategies.contains(&Strategy::ReadOnly);
        let mut requirements = Requirements { read_only, ..Requirements::default() };
        let (mut steps, mut asks_others, mut adds_groups) = (0, false, false);
        visit::walk(&plan.root, &mut |node| {
            steps += 1;
            asks_others |= matches!(node, Node::Call { .. } | Node::Io { .. } | Node::VertexProgram(_));
            adds_groups |= matches!(node, Node::Group { side_effect: Some(_), .. });
            requirements.paths = requirements.paths.max(visit::path_need_of(node));
            requirements.writes |= is_write(node);
            requirements.computes |= matches!(node, Node::VertexProgram(_));
            requirements.goes_back |= matches!(node, Node::Match { .. } | Node::Recall { .. });
            requirements.profiled |= matches!(node, Node::Profile { .. });
        });
        requirements.paths = match requirements.paths {
            _ if plan.source.with_path => PathNeed::Full,
            // Who asks for labels where there are none finds side effects and entries of maps only.
            PathNeed::Labels if !visit::has_labels(&plan.root) => PathNeed::None,
            need => need,
        };
        if adds_groups {
            requirements.shared_groups = shared_groups(&plan.root);
        }
        requirements.begins_anywhere = steps <= STEPS_ANYWHERE_MAX && !asks_others;
        requirements.in_hash_order = draws_from_seed(plan);
        requirements.draws_in_order = requirements.in_hash_order && draws_inside_any(&plan.root);
        requirements.row_by_row = requirements.writes || requirements.draws_in_order || has_effects_of_rows(&plan.root);
        requirements
    }
}

fn shared_groups(root: &Traversal) -> Vec<Name> {
    // How many steps add to each, and what they make of a group if all make the same of it.
    let mut groups: HashMap<Name, (usize, Option<By>)> = HashMap::new();
    visit::walk(root, &mut |node| {
        if let Node::Group { side_effect: Some(key), value, .. } = node {
            let (steps, made) = groups.entry(key.clone()).or_insert_with(|| (0, Some(value.clone())));
            *steps += 1;
            if made.as_ref() != Some(value) {
                *made = None;
            }
        }
    });
    groups.into_iter().filter(|(_, (steps, made))| *steps > 1 && made.is_some()).map(|(key, _)| key).collect()
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

/// Whether an effect of one row could be seen by steps behind it before the next row has its own. Effects at barriers are
/// complete whatever the batch; so is that of the only row there can be, such as `sideEffect()` right behind `V(id)`.
fn has_effects_of_rows(root: &Traversal) -> bool {
    let mut is_single = false;
    for (position, own) in root.nodes.iter().enumerate() {
        let node = &own.node;
        is_single = match node {
            Node::Vertices { ids, all: false } | Node::Edges { ids, all: false } if position == 0 => is_one(ids),
            Node::Inject { values } if position == 0 => values.len() == 1,
            // At the end of a barrier over all rows its effect is complete.
            Node::Aggregate { .. } => is_single,
            _ if is_single => {
                if !stays_single(node) && has_effects_inside(node) {
                    return true;
                }
                stays_single(node)
            }
            _ => {
                if has_effects_inside(node) {
                    return true;
                }
                visit::is_reducing(node)
            }
        };
    }
    false
}

/// As [`has_effects_of_rows`], for a node that many rows come to. A barrier in the body of a loop or the arm of a union gathers
/// all rows of an iteration, or of the union.
fn has_effects_inside(node: &Node) -> bool {
    let of_nodes = |traversal: &Traversal| {
        let mut nodes = traversal.nodes.iter().map(|own| &own.node);
        nodes.any(|node| !matches!(node, Node::Aggregate { .. }) && has_effects_inside(node))
    };
    match node {
        Node::Repeat(repeat) => {
            let tests = [&repeat.until, &repeat.emit].into_iter().flatten();
            of_nodes(&repeat.body) || tests.flat_map(|test| &test.nodes).any(|own| has_effect(&own.node))
        }
        Node::Union { branches, .. } => branches.iter().any(|branch| of_nodes(branch)),
        _ => has_effect(node),
    }
}

/// Whether a node of the traversal draws random numbers in a sub-query that each row has for itself.
fn draws_inside_any(traversal: &Traversal) -> bool {
    traversal.nodes.iter().any(|own| draws_inside(&own.node))
}

/// As [`draws_inside_any`], for one node. What rows have in common, the body of a loop and the arms of a union, draws for all of them.
fn draws_inside(node: &Node) -> bool {
    match node {
        Node::Repeat(repeat) => {
            let tests = [&repeat.until, &repeat.emit].into_iter().flatten();
            draws_inside_any(&repeat.body) || tests.into_iter().any(|test| draws(test))
        }
        Node::Union { branches, .. } => branches.iter().any(|branch| draws_inside_any(branch)),
        _ => visit::any_child(node, &mut draws),
    }
}

/// Whether the answer depends on the order of elements, since random numbers are drawn from a seed meanwhile.
pub fn draws_from_seed(plan: &LogicalPlan) -> bool {
    plan.source.strategies.iter().any(|strategy| matches!(strategy, Strategy::Seed(_))) && draws(&plan.root)
}

/// Whether steps draw random numbers, at any depth.
pub fn draws(traversal: &Traversal) -> bool {
    visit::any(traversal, &mut |node| match node {
        Node::Coin { .. } | Node::Sample { .. } => true,
        Node::Order { keys, .. } => keys.iter().any(|key| key.order == Order::Shuffle),
        Node::Scalar { function } => matches!(function, ScalarFunction::SampleLocal { .. }),
        _ => false,
    })
}

/// Whether ids name one element at most.
pub(super) fn is_one(ids: &[Value]) -> bool {
    matches!(ids, [id] if !matches!(id, Value::List(_) | Value::Set(_) | Value::BulkSet(_)))
}

/// Whether one row in is one row out at most, and all inside happens for it alone.
fn stays_single(node: &Node) -> bool {
    matches!(
        node,
        Node::SideEffect { .. } | Node::Has { .. } | Node::HasProperty { .. } | Node::Identity | Node::Constant { .. }
    )
}

/// Whether a node, or a step inside it, has an effect for each row by itself.
fn has_effect(node: &Node) -> bool {
    let own =
        matches!(node, Node::SideEffect { .. } | Node::Aggregate { .. } | Node::Fail { .. } | Node::TimeLimit { .. });
    own || visit::any_child(node, &mut |child| child.nodes.iter().any(|inner| has_effect(&inner.node)))
}

/// Whether a traversal holds a barrier at any depth that TinkerPop treats as one when it decides to spread all input first.
pub fn has_barrier(traversal: &Traversal) -> bool {
    visit::any(traversal, &mut |node| {
        visit::is_barrier(node) || matches!(node, Node::Dedup { .. } | Node::Range { .. })
    })
}
