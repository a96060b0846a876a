//! Checks a history against the order that the store claims.
//!
//! Commits are ordered by their timestamps, and every transaction says which snapshot it had. Three things must hold:
//! 1. *Serialisable*: replayed alone, at the place of its commit, every committed transaction reads what it read.
//! 2. *Opaque*: replayed on its snapshot, every transaction - also one that only reads, and one that aborted - reads what it
//!    read.
//! 3. *Strict*: what was acknowledged before a transaction began is in its snapshot; and snapshots never go back.

use crate::history::{Event, Outcome, Record};
use crate::naive::NaiveGraph;

/// What a sound history contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Transactions that wrote and committed.
    pub committed: u64,
    /// Transactions that only read.
    pub read_only: u64,
    /// Transactions that wrote and were refused, rolled back or cut off.
    pub aborted: u64,
    /// Answers that were checked.
    pub reads: u64,
}

impl std::ops::AddAssign for Summary {
    fn add_assign(&mut self, other: Summary) {
        self.committed += other.committed;
        self.read_only += other.read_only;
        self.aborted += other.aborted;
        self.reads += other.reads;
    }
}

/// Checks a history that starts with an empty graph. Errors: the first anomaly, in words.
pub fn check(history: &[Record]) -> Result<Summary, String> {
    check_real_time(history)?;
    let mut commits: Vec<(u64, &Record)> = Vec::new();
    for record in history {
        if record.outcome == Outcome::Unknown {
            return Err(format!("its outcome is unknown, on a disk without faults: {record:#?}"));
        }
        if let Outcome::Committed(ts) = record.outcome {
            if ts <= record.snapshot {
                return Err(format!("it commits at {ts}, not after its snapshot: {record:#?}"));
            }
            commits.push((ts, record));
        }
    }
    commits.sort_by_key(|(ts, _)| *ts);
    if let Some(pair) = commits.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(format!("two commits have the timestamp {}: {:#?}", pair[0].0, pair));
    }
    let mut by_snapshot: Vec<&Record> = history.iter().collect();
    by_snapshot.sort_by_key(|record| record.snapshot);
    let mut by_snapshot = by_snapshot.into_iter().peekable();
    let mut graph = NaiveGraph::default();
    let mut summary = Summary::default();
    for (ts, record) in commits.iter().copied() {
        while let Some(reader) = by_snapshot.next_if(|reader| reader.snapshot < ts) {
            check_at_snapshot(reader, &graph, &mut summary)?;
        }
        replay(record, &mut graph).map_err(|what| {
            format!("not serialisable at its commit {ts}: {what}\n{record:#?}\n{}", between(record, ts, &commits))
        })?;
    }
    for reader in by_snapshot {
        check_at_snapshot(reader, &graph, &mut summary)?;
    }
    Ok(summary)
}

/// What was committed between the snapshot of a record and its own commit: one of these should have refused it.
fn between(record: &Record, ts: u64, commits: &[(u64, &Record)]) -> String {
    let mut told = String::from("committed since its snapshot:");
    for (other, by) in commits.iter().filter(|(other, _)| (record.snapshot + 1..ts).contains(other)) {
        let writes = by.events.iter().filter_map(|event| match event {
            Event::Write(write) => Some(write),
            Event::Read(..) => None,
        });
        let writes: Vec<_> = writes.collect();
        told += &format!("\n  at {other} by client {}, from snapshot {}: {writes:?}", by.client, by.snapshot);
    }
    told
}

fn check_at_snapshot(record: &Record, graph: &NaiveGraph, summary: &mut Summary) -> Result<(), String> {
    let checked = if record.has_writes() { replay(record, &mut graph.clone()) } else { replay_reads(record, graph) };
    checked.map_err(|what| format!("not what its snapshot {} holds: {what}\n{record:#?}", record.snapshot))?;
    match record.outcome {
        Outcome::Committed(_) => summary.committed += 1,
        Outcome::ReadOnly => summary.read_only += 1,
        Outcome::Aborted | Outcome::Unknown => summary.aborted += 1,
    }
    summary.reads += record.events.iter().filter(|event| matches!(event, Event::Read(..))).count() as u64;
    Ok(())
}

/// Runs a transaction again on a graph. Errors: a read has another answer there, or a write is impossible.
pub(crate) fn replay(record: &Record, graph: &mut NaiveGraph) -> Result<(), String> {
    for event in &record.events {
        match event {
            Event::Read(query, seen) => {
                let expected = graph.answer(query);
                if expected != *seen {
                    return Err(format!("{query:?} was answered {seen:?}, not {expected:?}"));
                }
            }
            Event::Write(write) => graph.apply(write).map_err(|why| format!("{write:?}: {why}"))?,
        }
    }
    Ok(())
}

fn replay_reads(record: &Record, graph: &NaiveGraph) -> Result<(), String> {
    for event in &record.events {
        if let Event::Read(query, seen) = event {
            let expected = graph.answer(query);
            if expected != *seen {
                return Err(format!("{query:?} was answered {seen:?}, not {expected:?}"));
            }
        }
    }
    Ok(())
}

/// Nothing that begins after an end is ordered before it.
fn check_real_time(history: &[Record]) -> Result<(), String> {
    let mut begins: Vec<&Record> = history.iter().collect();
    begins.sort_by_key(|record| record.begin);
    let mut ends: Vec<&Record> = history.iter().collect();
    ends.sort_by_key(|record| record.end);
    let mut ends = ends.into_iter().peekable();
    // The newest state that somebody had been told of, and by whom.
    let mut known: (u64, Option<&Record>) = (0, None);
    for record in begins {
        while let Some(ended) = ends.next_if(|ended| ended.end < record.begin) {
            let seen = match ended.outcome {
                Outcome::Committed(ts) => ts,
                Outcome::ReadOnly | Outcome::Aborted | Outcome::Unknown => ended.snapshot,
            };
            if seen > known.0 {
                known = (seen, Some(ended));
            }
        }
        if record.snapshot < known.0 {
            return Err(format!(
                "its snapshot is older than what had been told before it began: {record:#?}, {known:#?}"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naive::Write;
    use crate::query::Query;

    fn record(times: (u64, u64), snapshot: u64, outcome: Outcome, events: Vec<Event>) -> Record {
        Record { client: 0, begin: times.0, end: times.1, snapshot, outcome, events }
    }

    fn add(vertex: i64) -> Event {
        Event::Write(Write::AddVertex { vertex, id: vertex, label: 0 })
    }

    fn count(seen: i64) -> Event {
        Event::Read(Query::VertexCount, vec![seen])
    }

    #[test]
    fn anomalies_are_seen() {
        use Outcome::{Aborted, Committed, ReadOnly};
        let sound = vec![
            record((0, 3), 0, Committed(5), vec![count(0), add(1), count(1)]),
            record((1, 2), 0, Aborted, vec![add(2), count(1)]),
            record((4, 5), 5, ReadOnly, vec![count(1)]),
        ];
        let summary = check(&sound).unwrap();
        assert_eq!(summary, Summary { committed: 1, read_only: 1, aborted: 1, reads: 4 });
        let fails = |change: &dyn Fn(&mut Vec<Record>), why: &str| {
            let mut history = sound.clone();
            change(&mut history);
            let anomaly = check(&history).unwrap_err();
            assert!(anomaly.contains(why), "{anomaly}");
        };
        // A write skew: both counted nothing, both added.
        let skew = record((1, 9), 0, Committed(6), vec![count(0), add(3)]);
        fails(&|history| history.push(skew.clone()), "not serialisable");
        fails(&|history| history.push(skew.clone()), "\n  at 5 by client 0, from snapshot 0: [AddVertex");
        // Reads what never committed.
        fails(&|history| history[2].events = vec![count(2)], "not what its snapshot");
        // Even a transaction that aborts must not.
        fails(&|history| history[1].events = vec![count(1)], "not what its snapshot");
        // Does not see what had been acknowledged.
        fails(&|history| history[2] = record((4, 5), 0, ReadOnly, vec![count(0)]), "had been told");
        // Goes back behind what another reader saw.
        let early = record((6, 7), 0, ReadOnly, vec![count(0)]);
        fails(&|history| history.push(early.clone()), "had been told");
        // Two at one place, or before its own snapshot.
        let twin = record((1, 9), 0, Committed(5), vec![add(9)]);
        fails(&|history| history.push(twin.clone()), "two commits");
        fails(&|history| history[0].snapshot = 5, "not after its snapshot");
    }
}
