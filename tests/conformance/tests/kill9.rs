//! `kill -9` under concurrent writes: the short loop of every test run; `ficus-kill9 --rounds 1000` is the long one.

use ficus_conformance::kill9::{self, Plan};

#[test]
fn no_acknowledged_write_is_lost_and_no_transaction_torn() {
    let seed = rand::random();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let plan = Plan { rounds: 25, writers: 4, seed, kill_after_ms_max: 300 };
    let tally = kill9::run(&plan, &folder.path().join("data"), |_| {}).unwrap_or_else(|error| panic!("{error}"));
    assert!(tally.acknowledged > 0, "nothing was written with seed {seed}: {tally:?}");
}
