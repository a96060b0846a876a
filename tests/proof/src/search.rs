//! Checks a small history without believing the store: is there any order that explains it?
//!
//! The order must keep real time: a transaction that ended before another began comes first. Transactions that committed
//! take effect; those that aborted read, and take none. Timestamps are not looked at, so a wrong one can hide nothing.
//! Source: Wing and Gong, "Testing and verifying concurrent objects", 1993, with whole transactions for operations.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::history::{Outcome, Record};
use crate::naive::NaiveGraph;
use crate::order::replay;

/// States the search may look at before it gives up.
const STATES_MAX: usize = 200_000;

/// What a search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is such an order.
    Explained,
    /// There is none: an anomaly.
    Impossible,
    /// The search was given up.
    Unknown,
}

/// Looks for an order of a history that starts with an empty graph.
pub fn search(history: &[Record]) -> Verdict {
    let mut records: Vec<&Record> = history.iter().collect();
    records.sort_by_key(|record| record.begin);
    let mut seen = HashSet::new();
    let start = State { graph: NaiveGraph::default(), done: vec![false; records.len()], left: records.len() };
    let mut open = vec![start];
    while let Some(mut state) = open.pop() {
        state.take_what_changes_nothing(&records);
        if state.left == 0 {
            return Verdict::Explained;
        }
        if !seen.insert(state.hash()) {
            continue;
        }
        if seen.len() > STATES_MAX {
            return Verdict::Unknown;
        }
        for position in state.candidates(&records) {
            let mut graph = state.graph.clone();
            if replay(records[position], &mut graph).is_ok() {
                let mut done = state.done.clone();
                done[position] = true;
                open.push(State { graph, done, left: state.left - 1 });
            }
        }
    }
    Verdict::Impossible
}

/// Some transactions done, in an order that explains them.
struct State {
    graph: NaiveGraph,
    done: Vec<bool>,
    left: usize,
}

impl State {
    /// Those that may come next: none of the others ended before they began. `records` are in the order of their begins.
    fn candidates(&self, records: &[&Record]) -> Vec<usize> {
        let mut candidates = Vec::new();
        let mut first_end = u64::MAX;
        for (position, record) in records.iter().enumerate() {
            if self.done[position] {
                continue;
            }
            if record.begin > first_end {
                break;
            }
            first_end = first_end.min(record.end);
            candidates.push(position);
        }
        candidates.retain(|position| records[*position].begin < first_end);
        candidates
    }

    /// Takes every candidate that fits here and leaves the graph as it is: whatever order there is, with it moved here it is
    /// one as well.
    fn take_what_changes_nothing(&mut self, records: &[&Record]) {
        loop {
            let idle = |position: &usize| !matches!(records[*position].outcome, Outcome::Committed(_));
            let fits = |position: &usize| replay(records[*position], &mut self.graph.clone()).is_ok();
            let taken: Vec<usize> = self.candidates(records).into_iter().filter(idle).filter(fits).collect();
            if taken.is_empty() {
                return;
            }
            self.left -= taken.len();
            taken.into_iter().for_each(|position| self.done[position] = true);
        }
    }

    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.graph, &self.done).hash(&mut hasher);
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Event;
    use crate::naive::Write;
    use crate::query::Query;

    fn record(begin: u64, end: u64, adds: Option<i64>, seen: i64) -> Record {
        let outcome = if adds.is_some() { Outcome::Committed(0) } else { Outcome::ReadOnly };
        let mut events = vec![Event::Read(Query::VertexCount, vec![seen])];
        events.extend(adds.map(|vertex| Event::Write(Write::AddVertex { vertex, id: vertex, label: 0 })));
        Record { client: 0, begin, end, snapshot: 0, outcome, events }
    }

    #[test]
    fn finds_an_order_or_that_there_is_none() {
        // Concurrent: either order explains it.
        assert_eq!(search(&[record(0, 9, Some(1), 1), record(1, 8, Some(2), 0)]), Verdict::Explained);
        // A write skew.
        assert_eq!(search(&[record(0, 9, Some(1), 0), record(1, 8, Some(2), 0)]), Verdict::Impossible);
        // One after the other, seen the other way round.
        assert_eq!(search(&[record(0, 1, Some(1), 1), record(2, 3, Some(2), 0)]), Verdict::Impossible);
        // A reader beside a writer sees it or not, but two readers after each other do not go back.
        let writer = record(0, 9, Some(1), 0);
        assert_eq!(search(&[writer.clone(), record(1, 2, None, 0), record(3, 4, None, 1)]), Verdict::Explained);
        assert_eq!(search(&[writer.clone(), record(1, 2, None, 1), record(3, 4, None, 0)]), Verdict::Impossible);
        // What aborted has seen something possible, and is seen by nobody.
        let mut aborted = record(1, 2, Some(7), 1);
        aborted.outcome = Outcome::Aborted;
        assert_eq!(search(&[writer.clone(), aborted.clone(), record(3, 4, None, 1)]), Verdict::Explained);
        assert_eq!(search(&[writer, aborted, record(3, 4, None, 2)]), Verdict::Impossible);
    }
}
