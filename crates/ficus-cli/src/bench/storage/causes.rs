//! What slow commits waited for.

use std::time::{Duration, Instant};

use super::watched_disk::{Deed, Span};
use crate::bench::measure::Times;

/// What a slow commit waited for, as far as it can be seen from outside.
const CAUSES: [(&str, Option<Deed>); 6] = [
    ("making a file of the log", Some(Deed::MakeLog)),
    ("removing a file", Some(Deed::Remove)),
    ("flushing a segment or checkpoint", Some(Deed::FlushInBackground)),
    ("a slow flush of the log alone", Some(Deed::FlushLog)),
    ("making a segment or checkpoint", Some(Deed::Background)),
    ("nothing that is known", None),
];

/// A commit: when it was asked for, and how long it took.
#[derive(Clone, Copy, Debug)]
pub struct Commit {
    pub begun: Instant,
    pub time: Duration,
}

/// Of the slowest hundredth of commits, the share that each cause had: the first cause that went on for at least half of the time by which
/// the commit took longer than the median one.
pub fn shares(commits: &mut [Commit], spans: &[Span]) -> Vec<(&'static str, f64)> {
    commits.sort_unstable_by_key(|commit| commit.time);
    let Some(median) = commits.get(commits.len() / 2).map(|commit| commit.time) else { return Vec::new() };
    let slow = &commits[commits.len() - commits.len().div_ceil(100)..];
    let mut counts = [0usize; CAUSES.len()];
    for commit in slow {
        let excess = commit.time.saturating_sub(median);
        let is_cause = |deed: &Option<Deed>| deed.is_none_or(|deed| overlap(commit, spans, deed, median) * 2 >= excess);
        let cause = CAUSES.iter().position(|(_, deed)| is_cause(deed)).unwrap_or(CAUSES.len() - 1);
        counts[cause] += 1;
    }
    CAUSES.iter().zip(counts).map(|((name, _), count)| (*name, count as f64 / slow.len() as f64)).collect()
}

/// How much of a commit's time something went on. Flushes of the log belong to every commit, so only what is longer than the median commit
/// counts of each.
fn overlap(commit: &Commit, spans: &[Span], deed: Deed, median: Duration) -> Duration {
    let end = commit.begun + commit.time;
    let of_span = |span: &Span| {
        let time = span.to.min(end).saturating_duration_since(span.from.max(commit.begun));
        if deed == Deed::FlushLog { time.saturating_sub(median / 2) } else { time }
    };
    // They are in the order of their ends, and none is longer than a background work.
    let first = spans.partition_point(|span| span.to < commit.begun);
    spans[first..].iter().filter(|span| span.deed == deed && span.from < end).map(of_span).sum()
}

/// How long flushes of the log took.
pub fn log_flushes(spans: &[Span]) -> Times {
    spans.iter().filter(|span| span.deed == Deed::FlushLog).map(|span| span.to.duration_since(span.from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_commit_is_put_down_to_what_went_on_meanwhile() {
        let begun = Instant::now();
        let at = |millis: u64| begun + Duration::from_millis(millis);
        let mut commits: Vec<Commit> =
            (0..198).map(|number| Commit { begun: at(number * 10), time: Duration::from_millis(1) }).collect();
        commits.extend([500, 900].map(|start| Commit { begun: at(start), time: Duration::from_millis(9) }));
        let span = |deed, from, to| Span { deed, from: at(from), to: at(to) };
        let spans = [span(Deed::Remove, 501, 507), span(Deed::FlushLog, 901, 902), span(Deed::Background, 800, 1_000)];
        let shares: Vec<_> = shares(&mut commits, &spans).into_iter().filter(|(_, share)| *share > 0.0).collect();
        assert_eq!(shares, [("removing a file", 0.5), ("making a segment or checkpoint", 0.5)]);
        assert_eq!(log_flushes(&spans).percentile_us(0.99), 1_000.0);
    }
}
