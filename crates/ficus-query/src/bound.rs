//! What steps further on say to the hop or scan that brings their rows: how far an order that keeps its first rows has come, and which
//! vertices pass a filter.
//!
//! `order().by(key).limit(n)` soon knows `n` rows, and what lies behind the last of them is not wanted. It says so in a [`Bound`], and
//! the step that brings the rows looks at the column of the key and leaves out what lies behind, without ever making a row of it. A `project()`
//! in front of the order leaves a row where it is as soon as it has made the entry that is ordered by.
//! The bound only gets tighter, so whoever sees an older one leaves out less. In the same way a filter by a sub-query that has come to
//! know all vertices that pass it says so in a [`Passing`].

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use ficus_model::{Order, Value};
use ficus_storage::{NumberRange, range_number};

use crate::context::QueryContext;
use crate::elements::KeyRef;
use crate::experience::Experience;
use crate::logical::{By, LabelledNode, Node, PropertyForm};
use crate::operators::sorted_runs::RUN_ROWS;
use crate::operators::turned::{Progress, Turned, Turning};
use crate::probe::Probe;
use crate::vertex_set::VertexSet;

const UNKNOWN: u8 = 0;
const OF_NUMBERS: u8 = 1;
const OF_MOMENTS: u8 = 2;

/// The first key of the row that is wanted least.
#[derive(Debug, Default)]
pub struct Bound {
    kind: AtomicU8,
    number: AtomicI64,
}

impl Bound {
    /// Says that nothing behind this key is wanted. A key that is neither an integer nor a moment changes nothing, nor does one of
    /// another kind than those before. To be called by one order only, with keys of which none is behind an earlier one.
    pub fn tell(&self, last: &Value) {
        let Some((number, of_moments)) = range_number(last) else { return };
        let kind = if of_moments { OF_MOMENTS } else { OF_NUMBERS };
        match self.kind.load(Ordering::Relaxed) {
            UNKNOWN => {
                self.number.store(number, Ordering::Relaxed);
                self.kind.store(kind, Ordering::Release);
            }
            own if own == kind => self.number.store(number, Ordering::Relaxed),
            _ => {}
        }
    }

    /// Where keys have to be to be wanted; `None` as long as all are.
    fn range(&self, descending: bool, equal_ones: bool) -> Option<NumberRange> {
        // Numbers and moments that cannot be told exactly are not told.
        let kind = self.kind.load(Ordering::Acquire);
        let number = self.number.load(Ordering::Relaxed);
        let beside = i64::from(!equal_ones);
        let none = (i64::MAX, i64::MIN);
        let (low, high) = match descending {
            true => number.checked_add(beside).map_or(none, |low| (low, i64::MAX)),
            false => number.checked_sub(beside).map_or(none, |high| (i64::MIN, high)),
        };
        (kind != UNKNOWN).then_some(NumberRange { low, high, of_moments: kind == OF_MOMENTS })
    }
}

/// The vertices that pass a filter, once they are known.
#[derive(Debug)]
pub struct Passing {
    set: OnceLock<Arc<VertexSet>>,
    /// The hop in front of the filter from its other side; `None` within if that is too long.
    turned: OnceLock<Option<Turned>>,
    /// How the hop is turned round; `None` within if it cannot be.
    turning: OnceLock<Option<Turning>>,
    /// Somebody makes out how, or has.
    is_turning: AtomicBool,
    /// Neighbours that the hop has looked at since all that pass are known.
    looked: AtomicUsize,
    /// Whether the hop was turned round in earlier runs, and is to be as soon as it can.
    earlier: Arc<Experience>,
    turns_at_once: bool,
}

impl Drop for Passing {
    fn drop(&mut self) {
        let is_turned = self.turned().is_some();
        if !self.turns_at_once || (self.is_turning.load(Ordering::Relaxed) && !is_turned) {
            self.earlier.learn(usize::from(is_turned));
        }
    }
}

impl Passing {
    /// Of a run of a plan of which others had this experience.
    pub fn after(earlier: &Arc<Experience>) -> Passing {
        Passing {
            set: OnceLock::new(),
            turned: OnceLock::new(),
            turning: OnceLock::new(),
            is_turning: AtomicBool::new(false),
            looked: AtomicUsize::new(0),
            turns_at_once: earlier.of_next_run() > 0,
            earlier: earlier.clone(),
        }
    }

    /// Whether the hop is to be turned round as soon as all that pass are known.
    pub fn turns_at_once(&self) -> bool {
        self.turns_at_once
    }

    /// Says which vertices pass; the first to say so is believed.
    pub fn tell(&self, set: &Arc<VertexSet>) {
        self.set.get_or_init(|| set.clone());
    }

    /// The vertices that pass; `None` as long as they are not known.
    pub fn get(&self) -> Option<&VertexSet> {
        self.set.get().map(|set| &**set)
    }

    /// The hop from its other side, if it was turned round.
    pub fn turned(&self) -> Option<&Turned> {
        self.turned.get()?.as_ref()
    }

    /// Takes note of neighbours that were looked at, and says how many all executors have.
    pub fn looked(&self, more: usize) -> usize {
        self.looked.fetch_add(more, Ordering::Relaxed).saturating_add(more)
    }

    /// Does a share of what turns the hop round, unless it is done. Nobody waits for others. Returns how many vertices were asked for it.
    pub fn turn(&self, context: &QueryContext, begin: impl FnOnce() -> Option<Turning>) -> usize {
        if self.turned.get().is_some() {
            return 0;
        }
        if !self.is_turning.load(Ordering::Relaxed) && !self.is_turning.swap(true, Ordering::AcqRel) {
            let begun = begin();
            if self.turning.get_or_init(|| begun).is_none() {
                self.turned.get_or_init(|| None);
            }
        }
        let Some(Some(turning)) = self.turning.get() else { return 0 };
        let (progress, asked) = turning.go_on(context);
        if let Progress::Over(made) = progress {
            self.turned.get_or_init(|| made);
        }
        asked
    }
}

/// Which filter a hop or scan heeds.
#[derive(Clone, Copy, Debug)]
pub struct PassingRef {
    /// Its number in the query.
    pub number: usize,
    /// Those vertices do *not* pass.
    pub negated: bool,
}

/// The filters by one sub-query in a row behind a hop or scan, with nothing but filters without effects between; whether each is negated.
/// For every filter by sub-queries there is one entry, `None` for those that are not of this kind.
pub fn filters_behind(behind: &[LabelledNode]) -> Vec<Option<bool>> {
    let filters = behind.iter().map(|own| &own.node).take_while(|node| is_pure_filter(node));
    filters
        .filter_map(|node| match node {
            Node::Filter { traversal } => Some(Probe::may_know_all(traversal).then_some(false)),
            Node::Not { traversal } => Some(Probe::may_know_all(traversal).then_some(true)),
            Node::And { .. } | Node::Or { .. } => Some(None),
            _ => None,
        })
        .collect()
}

/// Which bound a hop, a scan or `project()` heeds.
#[derive(Clone, Debug)]
pub struct BoundRef {
    /// Its number in the query.
    pub number: usize,
    /// The key that is ordered by.
    pub key: KeyRef,
    /// Largest first.
    pub descending: bool,
    /// A row that comes later with the key of the last one that is wanted may be wanted too.
    pub equal_ones: bool,
}

impl BoundRef {
    /// Where keys have to be to be wanted; `None` as long as all are.
    pub fn range(&self, bounds: &[Bound]) -> Option<NumberRange> {
        bounds[self.number].range(self.descending, self.equal_ones)
    }

    /// Whether a key is behind those that are wanted; false of what cannot be told.
    #[inline]
    pub fn is_beyond(&self, key: &Value, bounds: &[Bound]) -> bool {
        let Some(range) = self.range(bounds) else { return false };
        let Some((number, of_moments)) = range_number(key) else { return false };
        of_moments == range.of_moments && !(range.low..=range.high).contains(&number)
    }
}

/// An order that rows go to.
#[derive(Clone, Debug)]
pub struct OrderBehind {
    /// Its first key.
    pub key: KeyRef,
    /// Largest first.
    pub descending: bool,
    /// As in [`BoundRef`].
    pub equal_ones: bool,
    /// It orders the values under the key, not what has them.
    pub of_values: bool,
}

/// The key and direction of the order that what a hop or scan brings goes to, if nothing but filters without effects is between them
/// and the first rows are all that is wanted; or the last ones, which are the first in the other direction. `values(key)` in front of the order makes that
/// one by the key.
pub fn order_behind(behind: &[LabelledNode]) -> Option<OrderBehind> {
    let filters = behind.iter().take_while(|own| is_pure_filter(&own.node)).count();
    let (valued, behind) = match &behind[filters..] {
        [LabelledNode { node: Node::Properties { keys, form: PropertyForm::Value }, .. }, rest @ ..] => match &keys[..]
        {
            [key] => (Some(key), rest),
            _ => return None,
        },
        rest => (None, rest),
    };
    let [order, cut, ..] = behind else { return None };
    let Node::Order { scope: ficus_model::Scope::Global, keys } = &order.node else { return None };
    let (wanted, from_end) = match &cut.node {
        Node::Range { high, .. } => (high, false),
        Node::Tail { count } => (count, true),
        _ => return None,
    };
    let wanted = usize::try_from(*wanted).ok()?;
    let is_shuffled = keys.iter().any(|key| key.order == Order::Shuffle);
    // Those at the end are all sorted if they are many.
    let tells = wanted > 0 && !(from_end && wanted > RUN_ROWS);
    if !tells || is_shuffled {
        return None;
    }
    // Without a key it is by the objects themselves, the least first.
    let (by, order) = keys.first().map_or((&By::Identity, Order::Asc), |key| (&key.by, key.order));
    let key = match (by, valued) {
        (By::Key(name), None) | (By::Identity, Some(name)) => KeyRef::new(name.clone()),
        _ => return None,
    };
    Some(OrderBehind {
        key,
        descending: (order == Order::Desc) != from_end,
        // Of equal rows the first stay in front.
        equal_ones: keys.len() > 1 || from_end,
        of_values: valued.is_some(),
    })
}

/// Whether a node only lets rows through or not, each by itself, and does nothing else that can be seen.
fn is_pure_filter(node: &Node) -> bool {
    match node {
        Node::Has { .. } | Node::HasProperty { .. } | Node::Identity | Node::WherePredicate { .. } => true,
        Node::WhereTraversal { .. } | Node::Filter { .. } | Node::Not { .. } | Node::And { .. } | Node::Or { .. } => {
            crate::logical::visit::children(node).iter().all(|child| Probe::compile(child).is_some())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_knows_its_kind() {
        let bound = Bound::default();
        assert_eq!(bound.range(true, true), None);
        bound.tell(&Value::Double(3.0));
        bound.tell(&Value::from("x"));
        assert_eq!(bound.range(true, true), None);
        bound.tell(&Value::Int(5));
        assert_eq!(bound.range(true, true), Some(NumberRange { low: 5, high: i64::MAX, of_moments: false }));
        bound.tell(&Value::Double(7.5));
        bound.tell(&Value::Long(8));
        assert_eq!(bound.range(true, true), Some(NumberRange { low: 8, high: i64::MAX, of_moments: false }));
        assert_eq!(bound.range(false, true), Some(NumberRange { low: i64::MIN, high: 8, of_moments: false }));
        let (bounds, key) = ([bound], KeyRef::new(Arc::from("key")));
        for (descending, beyond) in [(true, [7, i64::MIN]), (false, [9, i64::MAX])] {
            let own = BoundRef { number: 0, key: key.clone(), descending, equal_ones: true };
            assert!(beyond.iter().all(|key| own.is_beyond(&Value::Long(*key), &bounds)));
            // What is equal may come first by another key; what is of another kind is not compared.
            for key in [Value::Int(8), Value::Double(7.5), Value::Double(9.0), Value::from("x"), Value::Null] {
                assert!(!own.is_beyond(&key, &bounds), "{key:?}");
            }
            // By one key, of equal ones the first are wanted.
            let own = BoundRef { equal_ones: false, ..own };
            assert!(own.is_beyond(&Value::Int(8), &bounds));
            assert!(!own.is_beyond(&Value::Int(if descending { 9 } else { 7 }), &bounds));
        }
    }

    #[test]
    fn nothing_is_before_the_first_number() {
        for (last, descending) in [(i64::MAX, true), (i64::MIN, false)] {
            let bound = Bound::default();
            bound.tell(&Value::Long(last));
            assert!(bound.range(descending, false).is_some_and(|range| range.low > range.high));
            assert!(bound.range(descending, true).is_some_and(|range| (range.low..=range.high).contains(&last)));
        }
    }
}
