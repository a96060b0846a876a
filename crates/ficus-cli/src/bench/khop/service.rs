//! A hundred questions asked at the same moment: when each is answered.

use std::sync::{Arc, mpsc};
use std::time::Instant;

use ficus_analytics::service::Delivery;
use ficus_analytics::{Analytics, AnalyticsOptions, Hops, KHopRequest, Line, ProjectionOptions, Unlimited, Walk};
use ficus_model::Direction as Way;

use super::{Bench, Print, Times, at_most, ms};
use crate::Outcome;
use crate::failure::Failure;

/// Shares of the users by which the distribution of their times is told.
const SHARES: [(&str, f64); 11] = [
    ("p10", 0.1),
    ("p20", 0.2),
    ("p30", 0.3),
    ("p40", 0.4),
    ("p50", 0.5),
    ("p60", 0.6),
    ("p70", 0.7),
    ("p80", 0.8),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p100", 1.0),
];

/// Users who ask.
const USERS: usize = 100;

pub fn run(bench: &Bench, print: Print<'_>) -> Outcome {
    let analytics = Analytics::start(AnalyticsOptions::default())?;
    let options = ProjectionOptions::default();
    analytics.projection(&bench.snapshot, &options, &Unlimited).map_err(Failure::failed)?;
    let (sender, receiver) = mpsc::channel();
    let started = Instant::now();
    for source in &bench.sources[..USERS] {
        let sender = sender.clone();
        analytics.ask(KHopRequest {
            snapshot: bench.snapshot.clone(),
            line: Line { projection: options.clone(), direction: Way::Out, walk: Walk::WithinOrSource, vertices: None },
            sources: vec![bench.projection.vertex(*source)],
            hops: Hops(3),
            target: None,
            wants_vertices: false,
            control: Arc::new(Unlimited),
            deliver: Delivery::new(move |reply| {
                sender.send((Instant::now(), reply.is_ok())).expect("who listens is here until all are answered");
            }),
        });
    }
    drop(sender);
    let mut times = Times::default();
    for (answered, is_ok) in receiver {
        if !is_ok {
            return Err(Failure::failed("a question of the suite was not answered"));
        }
        times.add(answered - started);
    }
    let total = ms(started.elapsed());
    let case = "100 users ask 3 hops at once";
    for (metric, share) in SHARES {
        print(at_most(bench.scale, case, metric, times.percentile_us(share) / 1e3, "ms", None))?;
    }
    print(at_most(bench.scale, case, "total", total, "ms", None))?;
    let p99 = times.percentile_us(0.99) / 1e3;
    print(at_most(bench.scale, case, "p99 / total", p99 / total, "ratio", Some(1.0)))?;
    Ok(())
}
