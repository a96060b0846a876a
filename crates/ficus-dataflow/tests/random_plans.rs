//! Random trees of regions, scopes, forks and loops against their naive meaning, for odd batches and quotas.

mod kit;

use kit::random::PlanMaker;
use kit::reference::evaluate;
use kit::steps::{Overrides, Policy, Step, build, build_with};
use kit::{Row, rows, run};

const BATCHES: [usize; 4] = [1, 2, 3, 256];
const QUOTAS: [i64; 4] = [1, 2, 7, 1_000_000];

/// Plans per test; more with `FICUS_RANDOM_PLANS`.
fn plan_count() -> u64 {
    std::env::var("FICUS_RANDOM_PLANS").ok().and_then(|text| text.parse().ok()).unwrap_or(400)
}

/// The plans of seeds 0, 1, … whose results are small enough, with these.
fn plans(ordered: bool) -> impl Iterator<Item = (u64, Vec<Step>, Vec<Row>)> {
    (0..plan_count()).filter_map(move |seed| {
        let steps = PlanMaker::new(seed, ordered).plan();
        evaluate(&steps, [0, 10]).ok().map(|expected| (seed, steps, expected))
    })
}

#[test]
fn ordered_plans_yield_their_rows_in_order() {
    let mut compared = 0;
    for (seed, steps, expected) in plans(true) {
        for batch in BATCHES {
            for quota in QUOTAS {
                let end = run(&build(&steps, batch).plan, rows([0, 10]), quota);
                assert_eq!(end.result, Ok(()), "seed {seed}, batch {batch}, quota {quota}: {steps:?}");
                assert_eq!(end.rows, expected, "seed {seed}, batch {batch}, quota {quota}: {steps:?}");
                assert_eq!(end.ledger.retained(), 0, "seed {seed}, batch {batch}, quota {quota}: {steps:?}");
                compared += usize::from(!expected.is_empty());
            }
        }
    }
    assert!(compared > 1000, "only {compared} runs had rows to compare");
}

#[test]
fn every_policy_and_number_of_instances_yields_the_same_rows() {
    for (seed, steps, mut expected) in plans(false) {
        expected.sort();
        for (batch, quota) in BATCHES.into_iter().zip([7, 1_000_000, 1, 2]) {
            for policy in [Policy::Fifo, Policy::Bfs, Policy::Dfs, Policy::EvenFirst] {
                for max_instances in [1, 2, 5] {
                    let runs_to_end = max_instances == 2;
                    let (policy, max_instances) = (Some(policy), Some(max_instances));
                    let overrides = Overrides { policy, max_instances, runs_to_end, ..Overrides::default() };
                    let end = run(&build_with(&steps, batch, overrides).plan, rows([0, 10]), quota);
                    let mut found = end.rows;
                    found.sort();
                    let at = format!("seed {seed}, batch {batch}, quota {quota}, {overrides:?}: {steps:?}");
                    assert_eq!(end.result, Ok(()), "{at}");
                    assert_eq!(found, expected, "{at}");
                    assert_eq!(end.ledger.retained(), 0, "{at}");
                }
            }
        }
    }
}

#[test]
fn inside_an_instance_every_policy_keeps_the_order_of_rows() {
    for (seed, steps, expected) in plans(true) {
        for (batch, quota) in BATCHES.into_iter().zip([7, 1_000_000, 1, 2]) {
            for policy in [Policy::Fifo, Policy::Bfs, Policy::EvenFirst] {
                let overrides = Overrides { intra: Some(policy), ..Overrides::default() };
                let end = run(&build_with(&steps, batch, overrides).plan, rows([0, 10]), quota);
                let at = format!("seed {seed}, batch {batch}, quota {quota}, {policy:?} inside: {steps:?}");
                assert_eq!(end.result, Ok(()), "{at}");
                assert_eq!(end.rows, expected, "{at}");
                assert_eq!(end.ledger.retained(), 0, "{at}");
            }
        }
    }
}

#[test]
fn first_in_first_out_keeps_the_order_with_any_number_of_instances() {
    for (seed, steps, expected) in plans(true) {
        for max_instances in [2, 5] {
            let overrides =
                Overrides { policy: Some(Policy::Fifo), max_instances: Some(max_instances), ..Overrides::default() };
            let end = run(&build_with(&steps, 3, overrides).plan, rows([0, 10]), 7);
            assert_eq!(end.rows, expected, "seed {seed}, {max_instances} instances: {steps:?}");
        }
    }
}
