//! Hostile and random traversals: bounded, answered with a plan or an error.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use ficus_dataflow::{CancelToken, Control};
use ficus_model::{Argument, Bytecode, Instruction};
use ficus_query::planning::Planning;

use super::super::builder::{DEPTH_MAX, INSTRUCTIONS_MAX};
use super::super::{LowerErrorKind, lower, lower_in_time};
use crate::text::generate::Generator;

fn nested(name: &str, levels: usize) -> Bytecode {
    let step = |name: &str, args: Vec<Argument>| Instruction { name: name.into(), args, offset: None };
    let mut bytecode = Bytecode { source: vec![], steps: vec![step("id", vec![])] };
    for _ in 0..levels {
        bytecode = Bytecode { source: vec![], steps: vec![step(name, vec![Argument::Traversal(Arc::new(bytecode))])] };
    }
    bytecode
}

#[test]
fn nesting_is_bounded() {
    for name in ["map", "repeat", "not", "union", "choose"] {
        let plan = lower(&nested(name, DEPTH_MAX)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(plan.to_string().contains("IdStep"));
        assert_eq!(lower(&nested(name, DEPTH_MAX + 1)).unwrap_err().kind, LowerErrorKind::TooLarge, "{name}");
    }
    for name in ["where", "match"] {
        assert!(lower(&nested(name, 10 * DEPTH_MAX)).is_err(), "{name}");
    }
}

#[test]
fn length_is_bounded() {
    let steps = |count: usize| {
        let name: Arc<str> = "identity".into();
        vec![Instruction { name, args: vec![], offset: None }; count]
    };
    assert!(lower(&Bytecode { source: vec![], steps: steps(INSTRUCTIONS_MAX) }).is_ok());
    let error = lower(&Bytecode { source: vec![], steps: steps(INSTRUCTIONS_MAX + 1) }).unwrap_err();
    assert_eq!(error.kind, LowerErrorKind::TooLarge);
    assert!(error.message.contains("has 100001 steps") && error.message.contains("the 100000 that"), "{error}");
    // Steps inside others count, wherever they are.
    let inner = |count| Argument::Traversal(Arc::new(Bytecode { source: vec![], steps: steps(count) }));
    let union =
        |args| Bytecode { source: vec![], steps: vec![Instruction { name: "union".into(), args, offset: None }] };
    assert!(lower(&union(vec![inner(40_000), inner(59_999)])).is_ok());
    assert!(lower(&union(vec![inner(40_000), inner(60_000)])).unwrap_err().message.contains("has 100001 steps"));
}

#[test]
fn lowering_ends_with_its_query() {
    let cancel = CancelToken::default();
    let planning = Planning::under(Control { cancel: cancel.clone(), ..Control::unlimited() });
    let bytecode = nested("map", 3);
    assert!(lower_in_time(&bytecode, &planning).is_ok());
    cancel.cancel();
    assert_eq!(lower_in_time(&bytecode, &planning).unwrap_err().kind, LowerErrorKind::Stopped);
}

#[test]
fn labels_of_one_step_are_a_set_however_many() {
    let label = |number: usize| Instruction {
        name: "as".into(),
        args: vec![Argument::Value(format!("label {number}").into())],
        offset: None,
    };
    let steps = (0..INSTRUCTIONS_MAX).map(|number| label(number % 6_000)).collect();
    let plan = lower(&Bytecode { source: vec![], steps }).unwrap();
    assert_eq!(plan.root.nodes[0].labels.len(), 6_000);
}

#[test]
#[allow(clippy::print_stdout)] // the seed repeats a failure
fn random_traversals_get_a_plan_or_an_error() {
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_nanos() as u64);
    println!("seed {seed}");
    let mut generator = Generator::new(seed);
    let mut plans = 0;
    for _ in 0..2000 {
        if let Ok(plan) = lower(&generator.traversal(4)) {
            assert!(plan.to_string().ends_with(']'));
            plans += 1;
        }
    }
    for bytecode in generator.every_overload(2) {
        if let Ok(plan) = lower(&bytecode) {
            assert!(plan.to_string().ends_with(']'));
            plans += 1;
        }
    }
    assert!(plans > 100, "only {plans} plans with seed {seed}");
}
