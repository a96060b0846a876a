//! Random histories are strictly serialisable, and the checkers would notice if they were not. A failure prints the seed;
//! `cargo run --release -p ficus-proof --bin ficus-history` runs a million transactions.

use ficus_proof::order;
use ficus_proof::run::{Plan, run};
use ficus_proof::search::{Verdict, search};

#[test]
fn random_histories_are_strictly_serialisable() {
    let mut total = order::Summary::default();
    for seed in 0..12 {
        let plan = Plan::of_seed(seed, 600);
        total += order::check(&run(&plan)).unwrap_or_else(|anomaly| panic!("{plan:?}\n{anomaly}"));
    }
    // A run in which nothing happens proves nothing.
    assert!(total.committed > 1000 && total.read_only > 500 && total.aborted > 100, "{total:?}");
}

/// Few transactions of few clients, so that all orders can be tried.
fn small(seed: u64) -> Plan {
    let mut plan = Plan { clients: 4, ..Plan::of_seed(seed, 60) };
    plan.habits.vertex_ids = 6;
    plan
}

#[test]
fn small_histories_have_an_explanation_that_needs_no_timestamps() {
    let mut explained = 0;
    for seed in 0..40 {
        let plan = small(seed);
        match search(&run(&plan)) {
            Verdict::Explained => explained += 1,
            Verdict::Impossible => panic!("no order explains {plan:?}"),
            Verdict::Unknown => {}
        }
    }
    assert!(explained >= 36, "most searches must end: {explained} of 40");
}

#[test]
fn a_store_that_forgets_reads_is_caught() {
    // Odd seeds have no threads: what happens does not depend on how busy the machine is.
    let caught = (0..8).filter(|seed| {
        let mut plan = Plan::of_seed(seed * 2 + 1, 600);
        plan.is_weakened = true;
        order::check(&run(&plan)).is_err()
    });
    assert_eq!(caught.count(), 8);
    let impossible = (0..20).filter(|seed| {
        let mut plan = small(seed * 2 + 1);
        plan.is_weakened = true;
        search(&run(&plan)) == Verdict::Impossible
    });
    assert!(impossible.count() >= 5);
}
