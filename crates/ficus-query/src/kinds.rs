//! Kinds of queries: those that differ in their values only, such as `g.V('a').out('knows')` and `g.V('b').out('knows')`. They are likely to be about
//! as large, which the executors want to know of a query before it runs, and to find the same ways quicker, which they need not find out again.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::discriminant;
use std::sync::{Arc, Mutex, PoisonError};

use ficus_dataflow::Estimate;

use crate::experience::ExperiencesOfKind;
use crate::logical::{HasKey, LogicalPlan, Node, Traversal, visit};

/// So many kinds are known; when one more comes, it starts over.
const KINDS_MAX: usize = 4096;

/// What the queries of each kind were.
#[derive(Default)]
pub struct Kinds {
    /// Protects the map; held for one look-up or insertion.
    kinds: Mutex<HashMap<u64, Kind>>,
}

/// What the queries of one kind were.
#[derive(Clone)]
pub struct Kind {
    /// How large.
    pub estimate: Arc<Estimate>,
    /// What their runs found at places where it may pay to do something another way.
    pub experiences: Arc<ExperiencesOfKind>,
}

impl Kinds {
    /// What queries of the kind of `plan` were. Cost: a look at each of its nodes, about a microsecond.
    pub fn of(&self, plan: &LogicalPlan) -> Kind {
        let mut hasher = DefaultHasher::new();
        hash(&plan.root, &mut hasher);
        // Options say which rules are applied, and so which spreads there are.
        plan.source.options.iter().for_each(|(name, _)| name.hash(&mut hasher));
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        if kinds.len() >= KINDS_MAX {
            kinds.clear();
        }
        let new = || Kind { estimate: Arc::new(Estimate::of_kind()), experiences: Arc::default() };
        kinds.entry(hasher.finish()).or_insert_with(new).clone()
    }
}

/// What queries of one kind have in common: their nodes, where edges lead, what is tested, and how many rows or iterations are wanted.
fn hash(traversal: &Traversal, hasher: &mut DefaultHasher) {
    traversal.nodes.len().hash(hasher);
    for own in &traversal.nodes {
        discriminant(&own.node).hash(hasher);
        match &own.node {
            Node::Vertices { ids, .. } | Node::Edges { ids, .. } => ids.len().hash(hasher),
            Node::Adjacent { direction, labels, reach } => {
                (discriminant(direction), labels, discriminant(reach)).hash(hasher);
            }
            Node::Has { containers } => {
                for container in containers {
                    match &container.key {
                        HasKey::Key(key) => key.hash(hasher),
                        // Of one label there may be a thousand times as many as of another.
                        HasKey::Label => container.predicate.to_string().hash(hasher),
                        key => discriminant(key).hash(hasher),
                    }
                }
            }
            Node::Range { low, high } => (low, high).hash(hasher),
            Node::Tail { count: number }
            | Node::Sample { amount: number, .. }
            | Node::LoopsAtLeast { times: number } => {
                number.hash(hasher);
            }
            _ => (),
        }
        visit::for_each_child(&own.node, &mut |child| hash(child, hasher));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ficus_model::{Comparison, Direction, P, Value};

    use super::*;
    use crate::logical::{HasContainer, Reach};

    fn plan(id: i64, edge: &str, key: HasKey, value: &str, high: i64) -> LogicalPlan {
        let filter = Node::Has {
            containers: vec![HasContainer { key, predicate: P::Compare(Comparison::Eq, Value::String(value.into())) }],
        };
        let hop = Node::Adjacent { direction: Direction::Out, labels: vec![edge.into()], reach: Reach::Vertex };
        let test = Node::Filter { traversal: Arc::new(Traversal { nodes: vec![hop.into(), filter.into()] }) };
        let nodes = [Node::Vertices { ids: vec![Value::Long(id)], all: false }, test, Node::Range { low: 0, high }];
        let mut plan = LogicalPlan::default();
        plan.root.nodes = nodes.into_iter().map(Into::into).collect();
        plan
    }

    #[test]
    fn queries_of_one_kind_differ_in_values_only() {
        let kinds = Kinds::default();
        let name = || HasKey::Key("name".into());
        let of = |plan: LogicalPlan| Arc::as_ptr(&kinds.of(&plan).estimate);
        let kind = of(plan(1, "knows", name(), "x", 10));
        assert_eq!(kind, of(plan(2, "knows", name(), "y", 10)));
        let others = [
            plan(1, "likes", name(), "x", 10),
            plan(1, "knows", HasKey::Key("age".into()), "x", 10),
            plan(1, "knows", HasKey::Id, "x", 10),
            plan(1, "knows", name(), "x", 1_000),
            plan(1, "knows", HasKey::Label, "x", 10),
            plan(1, "knows", HasKey::Label, "y", 10),
        ];
        let mut different: Vec<_> = others.into_iter().map(of).chain([kind]).collect();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), 7);
    }

    #[test]
    fn no_more_than_a_bounded_number_of_kinds_is_kept() {
        let kinds = Kinds::default();
        for high in 0..3 * KINDS_MAX as i64 {
            kinds.of(&plan(1, "knows", HasKey::Id, "x", high));
        }
        assert!(kinds.kinds.lock().unwrap().len() <= KINDS_MAX);
    }
}
