//! Crashes from some hundred seeds; `cargo run --release -p ficus-proof --bin ficus-crash` takes ten thousand.

use ficus_proof::crash::{Tally, survive};

#[test]
fn what_was_acknowledged_survives_whole_and_nothing_else_does() {
    let mut total = Tally::default();
    for seed in 0..300 {
        total += survive(seed).unwrap_or_else(|what| {
            panic!("{what}\nrepeat with cargo run -p ficus-proof --bin ficus-crash -- --first-seed {seed} --seeds 1")
        });
    }
    // Runs in which nothing goes wrong prove nothing.
    assert!(total.acknowledged > 3000 && total.unknown > 100 && total.unknown_happened > 10, "{total:?}");
}
