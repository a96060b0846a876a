//! What a hop takes over from the nodes behind it: the part of the edges that they need, tests of the ends, and rows they would drop.

use ficus_model::{Direction, LabelId, Order, Scope, VertexId};
use ficus_storage::{IndexTest, Snapshot, SortedQuery};
use hashbrown::HashSet;

use crate::access::Access;
use crate::bound::{BoundRef, PassingRef};
use crate::budget::Held;
use crate::context::{QueryContext, Result};
use crate::elements::FETCH_MAX;
use crate::logical::{By, HasContainer, LabelledNode, Name, Node, SortKey, WherePredicate};
use crate::operators::closing::Closing;
use crate::traverser::Traverser;

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

/// What is behind a hop and can be tested before there is a row.
#[derive(Default)]
pub struct HopFilters {
    /// How many nodes the hop takes over.
    pub nodes: usize,
    /// The labels of the last of them, which are those of what the hop leads to.
    pub labels: Vec<Name>,
    /// The conditions of `has` nodes among them.
    pub containers: Vec<HasContainer>,
    /// Comparisons with what was gathered or labelled.
    pub compare: Vec<WherePredicate>,
    /// Edges from labelled vertices that have to lead to the ends.
    pub closing: Vec<Closing>,
    /// What stays behind, and drops equal rows.
    pub distinct: Distinct,
    /// The order that the rows go to.
    pub bound: Option<BoundRef>,
    /// Filters that stay behind and may come to know all that passes.
    pub passing: Vec<PassingRef>,
    /// The step behind takes vertices packed, see [`super::labelled_groups`].
    pub packed: bool,
}

impl HopFilters {
    /// Whether there is nothing to be tested.
    pub fn is_empty(&self) -> bool {
        let is_told = self.bound.is_some() || !self.passing.is_empty();
        self.nodes == 0 && self.distinct == Distinct::No && !is_told && !self.packed
    }
}

/// Vertices that a hop has handed on, with the iteration of the loop where that matters. What is behind would drop them the second time;
/// forgotten when that forgets them: both belong to one instance of a scope.
pub struct HandedOn {
    of_iteration: bool,
    seen: HashSet<(u32, VertexId)>,
    held: Held,
}

impl HandedOn {
    /// For a hop with such rows behind it; none if all of them are wanted.
    pub fn new(distinct: Distinct) -> Option<HandedOn> {
        let of_iteration = distinct == Distinct::OfIteration;
        matches!(distinct, Distinct::All | Distinct::OfIteration).then(|| HandedOn {
            of_iteration,
            seen: HashSet::new(),
            held: Held::default(),
        })
    }

    /// What is remembered of a vertex that a traverser reached.
    #[inline]
    pub fn entry(&self, vertex: VertexId, traverser: &Traverser) -> (u32, VertexId) {
        (if self.of_iteration { traverser.loops(None).unwrap_or(0) } else { 0 }, vertex)
    }

    /// Whether it was handed on before.
    #[inline]
    pub fn contains(&self, entry: &(u32, VertexId)) -> bool {
        self.seen.contains(entry)
    }

    /// Remembers it.
    ///
    /// Errors: those of the account.
    pub fn add(&mut self, entry: (u32, VertexId), context: &QueryContext) -> Result<()> {
        const ENTRY_BYTES: usize = 2 * size_of::<(u32, VertexId)>();
        self.held.make_room(&context.memory, self.seen.len(), self.seen.capacity(), ENTRY_BYTES)?;
        self.seen.insert(entry);
        Ok(())
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.seen.clear();
        self.seen.shrink_to(FETCH_MAX);
        self.held.give_back();
    }
}
