//! What a hop takes over from the nodes behind it: the part of the edges that they need, tests of the ends, and rows they would drop.

use ficus_dataflow::Remains;
use ficus_model::{Comparison, Direction, LabelId, Order, P, Scope, Value, VertexId};
use ficus_storage::{AtVertex, IndexTest, Snapshot, SortedQuery};

use crate::access::Access;
use crate::bound::{BoundRef, PassingRef};
use crate::context::{QueryContext, Result, Traversers};
use crate::elements::PREFETCHED;
use crate::logical::{By, HasContainer, LabelledNode, Name, Node, Repeat, SortKey, Traversal, WherePredicate, visit};
use crate::operators::closing::Closing;
use crate::operators::known_end::KnownEnd;
use crate::operators::test_ahead::TestAhead;
use crate::traverser::Traverser;
use crate::vertex_set::VertexSet;

/// What follows a hop to edges and needs only some of them: those in a range of a sort key, or the first in its order.
#[derive(Clone, Debug)]
pub struct SortedPart {
    /// The sort key.
    key: Name,
    /// Largest first.
    descending: bool,
    /// A condition on it; what is read may hold more.
    test: IndexTest,
    /// Edges of one vertex that are enough.
    pub first: usize,
}

impl SortedPart {
    /// What the nodes behind the hop need: `order().by(key).limit(n)`, or `has(key, …)`. They stay in the plan, since another vertex may have
    /// the better edges and a range may be wider than its condition.
    pub fn of(behind: &[LabelledNode]) -> Option<SortedPart> {
        let mut nodes = behind.iter().map(|own| &own.node);
        match (nodes.next()?, nodes.next()) {
            (Node::Order { scope: Scope::Global, keys }, Some(Node::Range { high, .. })) => match keys.as_slice() {
                [SortKey { by: By::Key(key), order: order @ (Order::Asc | Order::Desc) }] if *high > 0 => {
                    Some(SortedPart {
                        key: key.clone(),
                        descending: *order == Order::Desc,
                        test: IndexTest::Any,
                        first: usize::try_from(*high).ok()?,
                    })
                }
                _ => None,
            },
            (Node::Has { containers }, _) => {
                let tests = Access::of(containers).tests;
                let one = |(key, tests): &(Name, Vec<IndexTest>)| match tests.as_slice() {
                    // A prefix test fails on what is no text, which a part might not hold.
                    [IndexTest::StartingWith(_)] => None,
                    [test] => Some((key.clone(), test.clone())),
                    _ => None,
                };
                let (key, test) = tests.iter().find_map(one)?;
                Some(SortedPart { key, descending: false, test, first: usize::MAX })
            }
            _ => None,
        }
    }

    /// How to read it, if edges with this label have this order and no other: ties are to stay in the order of insertion.
    pub fn query(&self, snapshot: &Snapshot, direction: Direction, label: LabelId) -> Option<SortedQuery> {
        match snapshot.sort_keys_hint(label).as_slice() {
            [only] if *only.key == *self.key => {
                let backward = only.descending != self.descending;
                Some(SortedQuery { direction, label, test: self.test.clone(), backward })
            }
            _ => None,
        }
    }
}

impl std::fmt::Display for SortedPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.first {
            usize::MAX => write!(f, "range of {}", self.key),
            first => write!(f, "first {first} by {}", self.key),
        }
    }
}

/// What the step behind a hop makes of equal rows: it drops those of which it has seen an equal one, or only counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distinct {
    /// None.
    #[default]
    No,
    /// All but the first, as `dedup()`.
    All,
    /// All but the first of every iteration of the loop around.
    OfIteration,
    /// Only their number matters, as for `count()`.
    Counted,
}

/// Inputs of a hop whose half-edges are on their way from memory.
#[derive(Debug, Default)]
pub struct Prefetched(usize);

impl Prefetched {
    /// Tells the processor to load the half-edges of the next inputs, the first of which is taken now, unless they are on their way.
    #[inline]
    pub fn before(&mut self, input: &Traversers, direction: Direction, context: &QueryContext) {
        if self.0 == 0 && input.len() > 1 {
            let vertices = input.iter().take(PREFETCHED).filter_map(|row| match row.value {
                Value::Vertex(vertex) => Some(vertex),
                _ => None,
            });
            context.transaction.prefetch_half_edges(vertices, direction);
            self.0 = PREFETCHED.min(input.len());
        }
    }

    /// One of them was taken.
    #[inline]
    pub fn took_one(&mut self) {
        self.0 = self.0.saturating_sub(1);
    }
}

/// What is behind a hop and can be tested before there is a row.
#[derive(Default)]
pub struct HopFilters {
    /// How many nodes the hop takes over.
    pub nodes: usize,
    /// The labels of the last of them, which are those of what the hop leads to.
    pub labels: Vec<Name>,
    /// The conditions of `has` nodes among them.
    pub containers: Vec<HasContainer>,
    /// Those that are other conditions, or made of some.
    pub junctions: Vec<Node>,
    /// Comparisons with what was gathered or labelled.
    pub compare: Vec<WherePredicate>,
    /// Edges from labelled vertices that have to lead to the ends.
    pub closing: Vec<Closing>,
    /// What stays behind, and drops equal rows.
    pub distinct: Distinct,
    /// It drops those that have equal ends and equal objects under this label.
    pub distinct_by: Option<Name>,
    /// The order that the rows go to.
    pub bound: Option<BoundRef>,
    /// Filters that stay behind and may come to know all that passes.
    pub passing: Vec<PassingRef>,
    /// The step behind takes vertices packed, see [`super::labelled_groups`].
    pub packed: bool,
    /// Those of many rows together, which need not know where they come from.
    pub packed_of_many: bool,
    /// The filter right behind, which the hop makes as far as it can.
    pub ahead: Option<TestAhead>,
    /// The vertex that nodes behind the hop want at the other end, if they name one.
    pub known: Option<KnownEnd>,
    /// The vertex that nodes behind the loop that the hop ends want, in its last iteration.
    pub last: Option<LastHop>,
}

/// Where the last hop of a loop has to lead to, in the last iteration: `repeat(both().simplePath()).times(3).hasId(id)`. All that comes from that
/// iteration leaves the loop, and what has ended elsewhere is dropped behind it.
#[derive(Clone)]
pub struct LastHop {
    /// Iterations before the last.
    pub before: u32,
    /// The vertex.
    pub known: KnownEnd,
}

impl LastHop {
    /// That of a loop with these labels and these nodes behind it; `None` if it ends otherwise, or nothing is named.
    pub fn of(repeat: &Repeat, labels: &[Name], behind: &[LabelledNode]) -> Option<LastHop> {
        let times = repeat.until.as_deref().filter(|_| !repeat.until_first).and_then(iterations)?;
        let known = KnownEnd::behind_loop(labels, behind)?;
        let mut gives_label = false;
        visit::walk_traversals(&repeat.body, &mut |traversal| {
            gives_label |=
                traversal.nodes.iter().any(|own| known.label().is_some_and(|label| own.labels.contains(label)));
        });
        let parts = [Some(&repeat.body), repeat.until.as_ref(), repeat.emit.as_ref()];
        let has_effect = parts.into_iter().flatten().any(|part| visit::any(part, &mut visit::has_side_effect));
        if gives_label || has_effect {
            return None;
        }
        Some(LastHop { before: times.checked_sub(1)?, known })
    }

    /// Whether what a hop leads to only passes tests of its own before it comes to the end of the body.
    pub fn is_behind(nodes: &[LabelledNode]) -> bool {
        nodes.iter().all(|own| {
            matches!(
                own.node,
                Node::PathFilter { .. }
                    | Node::Has { .. }
                    | Node::HasProperty { .. }
                    | Node::Barrier { norm_sack: false, .. }
                    | Node::Identity
            )
        })
    }
}

/// After how many iterations a row has left the loop for certain.
fn iterations(until: &Traversal) -> Option<u32> {
    match until.nodes.as_slice() {
        [LabelledNode { node: Node::LoopsAtLeast { times }, .. }] => u32::try_from(*times).ok(),
        [LabelledNode { node: Node::Loops { name: None }, .. }, own] => match &own.node {
            Node::Is { predicate: P::Compare(Comparison::Eq | Comparison::Gte, Value::Int(times)) } => {
                u32::try_from(*times).ok()
            }
            Node::Is { predicate: P::Compare(Comparison::Eq | Comparison::Gte, Value::Long(times)) } => {
                u32::try_from(*times).ok()
            }
            _ => None,
        },
        [LabelledNode { node: Node::Or { traversals }, .. }] => {
            traversals.iter().find_map(|traversal| iterations(traversal))
        }
        _ => None,
    }
}

impl HopFilters {
    /// Whether there is nothing to be tested.
    pub fn is_empty(&self) -> bool {
        let is_told = self.bound.is_some() || !self.passing.is_empty();
        let is_distinct = self.distinct != Distinct::No || self.distinct_by.is_some();
        let is_seen = self.known.is_some() || self.last.is_some() || self.ahead.is_some();
        self.nodes == 0 && !is_distinct && !is_told && !self.packed && !is_seen
    }
}

/// Vertices that a hop has handed on, by iteration of the loop where that matters. What is behind would drop them the second time;
/// forgotten when that forgets them: both belong to one instance of a scope.
///
/// Of a few iterations they are known, those that were met last: a vertex that is handed on again changes nothing.
pub struct HandedOn {
    of_iteration: bool,
    sets: Vec<(u32, VertexSet)>,
    /// Which of them is that of the current input.
    current: usize,
    /// Which is forgotten next.
    oldest: usize,
}

impl HandedOn {
    /// Rows of so many iterations are on their way at the same time at most, as a rule.
    const ITERATIONS: usize = 8;

    /// For a hop with such rows behind it; none if all of them are wanted.
    pub fn new(distinct: Distinct) -> Option<HandedOn> {
        let of_iteration = distinct == Distinct::OfIteration;
        matches!(distinct, Distinct::All | Distinct::OfIteration).then(|| HandedOn {
            of_iteration,
            sets: vec![(0, VertexSet::default())],
            current: 0,
            oldest: 0,
        })
    }

    /// Makes ready for what comes of a row.
    pub fn start(&mut self, row: &Traverser) {
        if !self.of_iteration {
            return;
        }
        let iteration = row.loops(None).unwrap_or(0);
        if self.sets[self.current].0 == iteration {
            return;
        }
        self.current = match self.sets.iter().position(|(own, _)| *own == iteration) {
            Some(place) => place,
            None if self.sets.len() < Self::ITERATIONS => {
                self.sets.push((iteration, VertexSet::default()));
                self.sets.len() - 1
            }
            None => {
                let place = self.oldest;
                self.oldest = (place + 1) % Self::ITERATIONS;
                self.sets[place].0 = iteration;
                self.sets[place].1.clear();
                place
            }
        };
    }

    /// Drops those that were handed on before.
    #[inline]
    pub fn drop_from<V: AtVertex>(&self, vertices: &mut Vec<V>) {
        let known = &self.sets[self.current].1;
        if !known.is_empty() {
            known.drop_from(vertices, true);
        }
    }

    /// Remembers one; whether it was not handed on before.
    ///
    /// Errors: those of the account.
    #[inline]
    pub fn add(&mut self, vertex: VertexId, context: &QueryContext) -> Result<bool> {
        self.sets[self.current].1.insert(vertex, &context.memory)
    }

    /// Forgets what belongs to iterations.
    pub fn forget_iterations(&mut self) {
        if self.of_iteration {
            self.clear();
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.sets.truncate(1);
        self.sets[0].1.clear();
        (self.sets[0].0, self.current, self.oldest) = (0, 0, 0);
    }

    /// Hands all over to be freed in pieces.
    pub fn surrender(&mut self, remains: &mut Vec<Box<dyn Remains>>) {
        self.sets.iter_mut().for_each(|(_, set)| set.surrender(remains));
    }
}
