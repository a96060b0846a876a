//! The result of counts: the map that leaves, and of very many keys only those that the steps behind it want.
//!
//! `groupCount().order(local).by(values, desc).limit(local, 10)` makes a map of all keys, of which ten are left. A key of several values is a map itself,
//! which takes a microsecond to make, so the counts are ranked before.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ficus_dataflow::{Flow, Queue};
use ficus_model::{Column, Order, Scope, Shared, Value, ValueMap};

use crate::context::{Cx, Result};
use crate::logical::{By, LabelledNode, Node, ScalarFunction, SortKey};
use crate::operators::sorted_runs::RUN_ROWS;
use crate::operators::tuples::Reader;
use crate::traverser::{StepInfo, Traverser};
use crate::tuples::Counts;

/// Counts that are ranked between two looks at whether the turn is over.
const RANKED_AT_ONCE: usize = 1 << 12;

/// Which counts come first.
#[derive(Clone, Debug)]
pub struct FirstCounts {
    wanted: usize,
    order: Order,
    /// Something else decides between equal counts: all that are equal to the last that is wanted stay.
    has_ties: bool,
    /// The best so far, the worst of them on top.
    best: BinaryHeap<Reverse<Rank>>,
    ranked: usize,
}

/// The larger the sooner: of equal counts the earlier.
type Rank = (u64, Reverse<usize>);

impl FirstCounts {
    /// What the steps behind a `groupCount()` want of it; `None` if that may be all.
    pub fn behind(behind: &[LabelledNode]) -> Option<FirstCounts> {
        let (order, range) = match behind {
            [order, range, ..] if matches!(order.node, Node::Order { scope: Scope::Local, .. }) => (order, range),
            [unfold, order, range, ..] if unfold.node == Node::Unfold && unfold.labels.is_empty() => (order, range),
            _ => return None,
        };
        let (Node::Order { scope, keys }, []) = (&order.node, order.labels.as_slice()) else { return None };
        let high = match (scope, &range.node) {
            (Scope::Local, Node::Scalar { function: ScalarFunction::RangeLocal { high, .. } }) => *high,
            (Scope::Global, Node::Range { high, .. }) => *high,
            _ => return None,
        };
        let [SortKey { by: By::Column(Column::Values), order }, others @ ..] = keys.as_slice() else { return None };
        let wanted = usize::try_from(high).ok().filter(|wanted| (1..=RUN_ROWS).contains(wanted))?;
        (*order != Order::Shuffle && others.iter().all(|key| key.order != Order::Shuffle)).then(|| FirstCounts {
            wanted,
            order: *order,
            has_ties: !others.is_empty(),
            best: BinaryHeap::new(),
            ranked: 0,
        })
    }

    fn key(&self, count: u64) -> u64 {
        if self.order == Order::Desc { count } else { !count }
    }

    /// Ranks some of the counts; `false` if that were the last.
    fn rank<const N: usize>(&mut self, counts: &Counts<N>) -> bool {
        let end = counts.len().min(self.ranked + RANKED_AT_ONCE);
        for place in self.ranked..end {
            let rank = (self.key(counts.count_at(place)), Reverse(place));
            if self.best.len() < self.wanted {
                self.best.push(Reverse(rank));
            } else if let Some(mut worst) = self.best.peek_mut()
                && rank > worst.0
            {
                *worst = Reverse(rank);
            }
        }
        self.ranked = end;
        end < counts.len()
    }

    /// Whether a count is among the first, once all are ranked.
    fn wants(&self, place: usize, count: u64) -> bool {
        let Some(Reverse(worst)) = self.best.peek() else { return false };
        let key = self.key(count);
        if self.has_ties { key >= worst.0 } else { (key, Reverse(place)) >= *worst }
    }
}

/// The result under way.
#[derive(Debug, Default)]
pub struct Leaving {
    first: Option<FirstCounts>,
    finished: ValueMap,
    /// Counts that have left, or were dropped.
    taken: usize,
}

impl Leaving {
    /// Of counts of which those may be all that are wanted.
    pub fn new(first: Option<FirstCounts>) -> Leaving {
        Leaving { first, ..Leaving::default() }
    }

    /// Begins anew.
    pub fn reset(&mut self) {
        if let Some(first) = &mut self.first {
            first.best.clear();
            first.ranked = 0;
        }
        (self.finished, self.taken) = (ValueMap::default(), 0);
    }

    /// Makes the map of the counts, as far as the turn goes: it is then a row.
    ///
    /// Errors: those of the account.
    pub(super) fn finish<const N: usize>(
        &mut self,
        reader: &mut Reader,
        counts: &mut Counts<N>,
        step: &StepInfo,
        out: &mut Queue<Traverser>,
        cx: &mut Cx<'_>,
    ) -> Result<Flow> {
        /// Hash, key, value, and place in the index.
        const ENTRY: usize = 2 * size_of::<Value>() + 24;
        if let Some(first) = self.first.as_mut().filter(|_| self.taken == 0) {
            while first.rank(counts) {
                cx.charge(RANKED_AT_ONCE / 64);
                if cx.exhausted() {
                    return Ok(Flow::More);
                }
            }
        } else if self.taken == 0 {
            let count = counts.len();
            counts.held().add(&cx.context.memory, count * ENTRY)?;
            self.finished.reserve_exact(count);
        }
        while let Some((key, count)) = counts.pop_front() {
            let place = self.taken;
            self.taken += 1;
            let mut work = 2;
            match &self.first {
                Some(first) if !first.wants(place, count) => work = usize::from(place.is_multiple_of(16)),
                first => {
                    let entry = if first.is_some() { ENTRY } else { 0 };
                    let map = reader.map(&key);
                    cx.context.memory.fits(&map)?;
                    counts.held().add(&cx.context.memory, entry + map.size_hint_bytes() - size_of::<Value>())?;
                    self.finished.insert(map, Value::Long(i64::try_from(count).unwrap_or(i64::MAX)));
                }
            }
            cx.charge(work);
            if cx.exhausted() && !counts.is_empty() {
                return Ok(Flow::More);
            }
        }
        let map = Value::Map(Shared::new(std::mem::take(&mut self.finished)));
        let map = cx.context.made_of(map, counts.held());
        out.push_back(cx.context.fresh_at(map, step));
        Ok(Flow::Ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::MemoryAccount;
    use crate::random::Random;

    fn first(wanted: usize, order: Order, has_ties: bool) -> FirstCounts {
        FirstCounts { wanted, order, has_ties, best: BinaryHeap::new(), ranked: 0 }
    }

    #[test]
    fn the_first_are_those_of_a_stable_sort() {
        let account = MemoryAccount::new(1 << 30);
        for seed in 0..30 {
            let mut random = Random::seeded(seed);
            let size = random.below(20_000);
            let mut counts = Counts::<2>::default();
            for number in 0..size as u64 {
                counts.add([number << 3, 0], 1 + random.below(50) as u64, &account).unwrap();
            }
            for (order, has_ties) in [(Order::Desc, false), (Order::Asc, false), (Order::Desc, true)] {
                let wanted = 1 + random.below(300);
                let mut first = first(wanted, order, has_ties);
                while first.rank(&counts) {}
                let mut places: Vec<usize> = (0..size).collect();
                places.sort_by_key(|place| match order {
                    Order::Desc => u64::MAX - counts.count_at(*place),
                    _ => counts.count_at(*place),
                });
                let kept: Vec<usize> = (0..size).filter(|place| first.wants(*place, counts.count_at(*place))).collect();
                let mut sure: Vec<usize> = places.iter().take(wanted).copied().collect();
                sure.sort_unstable();
                match has_ties {
                    false => assert_eq!(kept, sure, "seed {seed}"),
                    true => {
                        assert!(sure.iter().all(|place| kept.contains(place)), "seed {seed}");
                        let least = sure.iter().map(|place| counts.count_at(*place)).min();
                        assert!(kept.iter().all(|place| Some(counts.count_at(*place)) >= least), "seed {seed}");
                    }
                }
            }
        }
    }
}
