//! Traversals and the plans they become, family by family; and what is refused.

mod errors;
mod plans;
mod robust;
mod strategies;
mod wire;

use ficus_model::{Bytecode, Value};

use super::lower;
use crate::text::{ParseOptions, parse_traversal};

/// The traversal that `text` spells.
fn read(text: &str) -> Bytecode {
    parse_traversal(text, &ParseOptions::default()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The plan of `text`, as `explain()` shows it.
fn plan(text: &str) -> String {
    match lower(&read(text)) {
        Ok(plan) => plan.to_string(),
        Err(error) => panic!("{text}: {error}"),
    }
}

/// Compares plans with texts, all of them before it fails.
fn check(cases: &[(&str, &str)]) {
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|(text, expected)| {
            let found = plan(text);
            (found != *expected).then(|| format!("{text}\n   expected {expected}\n   found    {found}"))
        })
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn text(value: &str) -> Value {
    Value::String(value.into())
}
