//! Traversals that begin at one vertex, which is known before they run: what its label and its paths are asked for is then asked of ids and sets.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ficus_model::{Comparison, P, Value};

use super::distinct::looks_at_one_row;
use super::k_hop::{is_dedup, is_one_hop};
use crate::logical::visit::{self, PathNeed};
use crate::logical::{
    HasContainer, HasKey, LabelledNode, LogicalPlan, Name, Node, Reach, Repeat, Traversal, WherePredicate,
};
use crate::physical::Requirements;
use crate::walk_filter::is_condition;

/// Where a traversal begins.
struct Start {
    /// The id of the only vertex.
    id: Value,
    /// Nodes that find it, or ask something of it alone.
    nodes: usize,
}

impl Start {
    /// The one vertex that a traversal begins at, if there is but one and its id says which.
    fn of(root: &Traversal) -> Option<Start> {
        let rest = root.nodes.get(1..)?;
        let id = match &root.nodes.first()?.node {
            Node::Vertices { ids, all: false } => match ids.as_slice() {
                [id @ (Value::Int(_) | Value::Long(_))] => id.clone(),
                // A text may name the vertex with the integer that it spells, which is not equal to it.
                [Value::String(id)] if id.parse::<i64>().is_err() => Value::String(id.clone()),
                _ => return None,
            },
            Node::Vertices { all: true, .. } => match &rest.first()?.node {
                Node::Has { containers } => containers.iter().find_map(|container| match container {
                    HasContainer { key: HasKey::Id, predicate: P::Compare(Comparison::Eq, id) } => Some(id.clone()),
                    _ => None,
                })?,
                _ => return None,
            },
            _ => return None,
        };
        let asked = rest.iter().take_while(|own| is_condition(&LabelledNode::from(own.node.clone()))).count();
        Some(Start { id, nodes: 1 + asked })
    }

    /// What says whether a vertex is the one, or another.
    fn test(&self, comparison: Comparison) -> Node {
        let container = HasContainer { key: HasKey::Id, predicate: P::Compare(comparison, self.id.clone()) };
        Node::Has { containers: vec![container] }
    }
}

/// Compares ids where vertices are compared with what is under the label of the only start.
pub fn labels_as_ids(plan: &mut LogicalPlan) -> bool {
    let Some(start) = Start::of(&plan.root) else { return false };
    if visit::any(&plan.root, &mut |node| matches!(node, Node::Match { .. })) {
        return false;
    }
    let labels = labels_of_start(plan, &start);
    !labels.is_empty() && replace(&mut plan.root.nodes[start.nodes..], At::Vertex, &labels, &start)
}

/// The labels of the start that something is compared with, and that nothing else has: no other step, and no side effect.
fn labels_of_start(plan: &LogicalPlan, start: &Start) -> HashSet<Name> {
    let mut compared: HashSet<Name> = HashSet::new();
    visit::walk(&plan.root, &mut |node| {
        if let Node::WherePredicate { predicate: WherePredicate::Compare(_, label), .. } = node {
            compared.insert(label.clone());
        }
    });
    if compared.is_empty() {
        return HashSet::new();
    }
    let (mut at_start, mut all) = (HashMap::new(), HashMap::new());
    for label in plan.root.nodes[..start.nodes].iter().flat_map(|own| &own.labels) {
        *at_start.entry(label.clone()).or_insert(0) += 1;
    }
    let mut add = |key: &Name| *all.entry(key.clone()).or_insert(0) += 1;
    visit::walk_traversals(&plan.root, &mut |traversal| {
        for own in &traversal.nodes {
            own.labels.iter().for_each(&mut add);
            match &own.node {
                Node::Aggregate { key, .. } | Node::Subgraph { key, .. } => add(key),
                Node::Group { side_effect, .. }
                | Node::GroupCount { side_effect, .. }
                | Node::Tree { side_effect, .. }
                | Node::Profile { side_effect } => side_effect.iter().for_each(&mut add),
                _ => {}
            }
        }
    });
    plan.source.side_effects.iter().for_each(|(key, ..)| add(key));
    at_start.retain(|label, count| compared.contains(label) && all.get(label) == Some(count));
    at_start.into_keys().collect()
}

/// What a row is at, and whether it knows its way.
#[derive(Clone, Copy, PartialEq)]
enum At {
    Vertex,
    Other,
    /// At something that does not know where it came from.
    Lost,
}

impl At {
    /// Behind a node.
    fn behind(self, node: &Node) -> At {
        match node {
            _ if self == At::Lost => At::Lost,
            Node::Adjacent { reach: Reach::Vertex, .. } | Node::EdgeVertex { .. } | Node::OtherVertex => At::Vertex,
            Node::Adjacent { .. } | Node::Properties { .. } | Node::Id | Node::Label | Node::Constant { .. } => {
                At::Other
            }
            Node::Has { .. }
            | Node::HasProperty { .. }
            | Node::Is { .. }
            | Node::Filter { .. }
            | Node::Not { .. }
            | Node::And { .. }
            | Node::Or { .. }
            | Node::WherePredicate { .. }
            | Node::WhereTraversal { .. }
            | Node::PathFilter { .. }
            | Node::Dedup { .. }
            | Node::Range { .. }
            | Node::Barrier { .. }
            | Node::Order { .. }
            | Node::SideEffect { .. }
            | Node::Aggregate { .. }
            | Node::Identity => self,
            Node::Repeat(repeat) => self.behind_loop(repeat),
            Node::Union { branches, start: false } => {
                let arms = branches.iter().map(|branch| self.behind_all(branch));
                arms.reduce(|one, other| if one == other { one } else { At::Lost }).unwrap_or(At::Lost)
            }
            _ => At::Lost,
        }
    }

    fn behind_all(self, traversal: &Traversal) -> At {
        traversal.nodes.iter().fold(self, |at, own| at.behind(&own.node))
    }

    /// Behind a loop, and wherever an iteration begins: the same if iterations lead to what they began with.
    fn behind_loop(self, repeat: &Repeat) -> At {
        if self.behind_all(&repeat.body) == self { self } else { At::Lost }
    }

    /// Where the sub-queries of a node begin.
    fn inside(self, node: &Node) -> At {
        match node {
            Node::Filter { .. }
            | Node::Not { .. }
            | Node::And { .. }
            | Node::Or { .. }
            | Node::SideEffect { .. }
            | Node::Map { .. }
            | Node::FlatMap { .. }
            | Node::Local { .. }
            | Node::Project { .. }
            | Node::Union { start: false, .. } => self,
            Node::Repeat(repeat) => self.behind_loop(repeat),
            _ => At::Lost,
        }
    }
}

fn replace(nodes: &mut [LabelledNode], mut at: At, labels: &HashSet<Name>, start: &Start) -> bool {
    let mut changed = false;
    for own in nodes {
        match &mut own.node {
            Node::WherePredicate {
                start: None,
                predicate: WherePredicate::Compare(comparison @ (Comparison::Eq | Comparison::Neq), compared),
                bys,
            } if at == At::Vertex && bys.is_empty() && labels.contains(compared) => {
                own.node = start.test(*comparison);
                changed = true;
            }
            node => {
                let inside = at.inside(node);
                if inside != At::Lost {
                    for child in visit::children_mut(node) {
                        changed |= replace(&mut Arc::make_mut(child).nodes, inside, labels, start);
                    }
                }
            }
        }
        at = at.behind(&own.node);
    }
    changed
}

/// Where simple paths from one vertex are walked for their ends alone, or for the first that comes to a vertex, has a loop go on from each vertex once.
///
/// A shortest walk to a vertex is a simple path, and no simple path comes back to where it begins. So `repeat(hop.simplePath()).emit().times(n)` with `dedup()`
/// behind yields the vertices within n hops without the start, and the first row of `repeat(hop.simplePath()).until(…)` has come by the first way to each
/// vertex on it.
pub fn simple_paths_as_sets(plan: &mut LogicalPlan) -> bool {
    let Some(start) = Start::of(&plan.root) else { return false };
    if plan.source.sack.is_some() || plan.source.with_path || plan.source.without_bulk {
        return false;
    }
    let Some((nodes, keeps_paths)) = without_simple_paths(&plan.root.nodes, &start) else { return false };
    let rewritten = LogicalPlan { source: plan.source.clone(), root: Traversal { nodes } };
    let requirements = Requirements::of(&rewritten);
    if requirements.row_by_row || !keeps_paths && requirements.paths != PathNeed::None {
        return false;
    }
    *plan = rewritten;
    true
}

/// The nodes with another loop, and whether their paths are asked for; `None` where the simple paths matter.
fn without_simple_paths(nodes: &[LabelledNode], start: &Start) -> Option<(Vec<LabelledNode>, bool)> {
    let own = nodes.get(start.nodes).filter(|own| own.labels.is_empty())?;
    let Node::Repeat(repeat) = &own.node else { return None };
    let is_simple = |own: &&LabelledNode| match &own.node {
        Node::PathFilter { simple: true, from: None, to: None, bys } => own.labels.is_empty() && bys.is_empty(),
        _ => false,
    };
    let hop: Vec<LabelledNode> = repeat.body.nodes.iter().filter(|own| !is_simple(own)).cloned().collect();
    if hop.len() + 1 != repeat.body.nodes.len() || !is_one_hop(&hop) {
        return None;
    }
    let behind = &nodes[start.nodes + 1..];
    let once = || LabelledNode::from(Node::Dedup { labels: Vec::new(), by: None });
    let another = || LabelledNode::from(start.test(Comparison::Neq));
    let mut made = nodes[..start.nodes].to_vec();
    let mut body = hop;
    let keeps_paths = is_first_of_found(repeat, behind);
    if keeps_paths {
        body.extend([another(), once()]);
    } else {
        is_set_of_ends(repeat, behind).then_some(())?;
        if repeat.until.is_none() {
            // Nothing else would end it.
            body.push(once());
        }
    }
    let repeat = Repeat { body: Arc::new(Traversal { nodes: body }), ..repeat.clone() };
    let yields_start = keeps_paths || repeat.emit_first;
    made.push(Node::Repeat(repeat).into());
    let mut behind = behind.to_vec();
    if !yields_start {
        // Behind what keeps one of each, if that is next: a search takes both.
        let place = behind.first().is_some_and(|own| own.labels.is_empty() && is_dedup(&own.node));
        behind.insert(usize::from(place), another());
    }
    made.extend(behind);
    Some((made, keeps_paths))
}

/// Whether all ends of a loop are wanted, each once, however they are reached.
fn is_set_of_ends(repeat: &Repeat, behind: &[LabelledNode]) -> bool {
    let Some(emit) = &repeat.emit else { return false };
    let ends = match repeat.until.as_deref().map(|until| until.nodes.as_slice()) {
        None => true,
        // What ends it is yielded whatever `emit()` says of it, and is at the end of a path of that length.
        Some([LabelledNode { node: Node::LoopsAtLeast { times }, .. }]) => *times > 0 && emit.nodes.is_empty(),
        Some(_) => false,
    };
    let decides = behind.iter().find(|own| !looks_at_one_row(&own.node));
    ends && emit.nodes.iter().all(is_condition) && decides.is_some_and(|own| is_dedup(&own.node))
}

/// Whether a loop goes on until it finds something, and the first way to it is all that is wanted.
fn is_first_of_found(repeat: &Repeat, behind: &[LabelledNode]) -> bool {
    let Some(until) = repeat.until.as_deref().filter(|_| repeat.emit.is_none() && !repeat.until_first) else {
        return false;
    };
    let is_found = match until.nodes.as_slice() {
        [] => false,
        nodes if nodes.iter().all(is_condition) => true,
        // What the bound on the rounds lets out is left out behind.
        [LabelledNode { node: Node::Or { traversals }, labels }] if labels.is_empty() => {
            let (bounds, found): (Vec<_>, Vec<_>) =
                traversals.iter().partition(|own| super::k_hop::rounds(own).is_some());
            match found.as_slice() {
                [found] if !bounds.is_empty() && found.nodes.iter().all(is_condition) => {
                    !found.nodes.is_empty() && behind.starts_with(&found.nodes)
                }
                _ => false,
            }
        }
        _ => false,
    };
    let is_plain_path = |node: &Node| matches!(node, Node::Path { from: None, to: None, bys } if bys.is_empty());
    let rest = behind.iter().position(|own| !is_condition(own)).map_or(&[][..], |position| &behind[position..]);
    let rest = if rest.first().is_some_and(|own| is_plain_path(&own.node)) { &rest[1..] } else { rest };
    is_found && rest.first().is_some_and(|own| matches!(own.node, Node::Range { low: 0, high: 1 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_labels_and_comparisons_are_looked_at_once_each() {
        // With a look at all steps for each label this takes minutes.
        const LABELS: usize = 50_000;
        let label = |number: usize| Name::from(format!("label {number}"));
        let mut plan = LogicalPlan::default();
        let ids = vec![Value::Int(1)];
        let labels = (0..LABELS).map(label).collect();
        plan.root.nodes.push(LabelledNode { node: Node::Vertices { ids, all: false }, labels });
        let predicate = |number| WherePredicate::Compare(Comparison::Neq, label(number));
        let compared = |number| Node::WherePredicate { start: None, predicate: predicate(number), bys: Vec::new() };
        plan.root.nodes.extend((0..LABELS).map(|number| LabelledNode::from(compared(number))));
        assert!(labels_as_ids(&mut plan));
        assert!(plan.root.nodes[1..].iter().all(|own| matches!(own.node, Node::Has { .. })));
    }
}
