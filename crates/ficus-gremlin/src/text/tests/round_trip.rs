//! Printing a tree and parsing the text gives the tree.

use ficus_model::{Argument, Bytecode, Shared};

use crate::text::generate::Generator;
use crate::text::{ParseOptions, Statement, Terminal, parse, print};

/// The tree that `text` stands for, terminal step included.
fn read(text: &str) -> Bytecode {
    let options = ParseOptions { offsets: false, ..ParseOptions::default() };
    let script = parse(text, &options).unwrap_or_else(|error| panic!("{text}\n{error}"));
    match script.statements.into_iter().next() {
        Some(Statement::Traversal { bytecode, terminal: None, .. }) => bytecode,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn every_overload_survives() {
    let seed = 0x5EED;
    let mut generator = Generator::new(seed);
    for round in 0..20 {
        for bytecode in generator.every_overload(round % 3) {
            let text = print(&bytecode);
            assert_eq!(read(&text), bytecode, "seed {seed}, round {round}\n{text}");
        }
    }
}

#[test]
fn random_traversals_survive() {
    for seed in 0..3_000 {
        let bytecode = Generator::new(seed).traversal((seed % 5) as u32);
        let text = print(&bytecode);
        let again = read(&text);
        assert_eq!(again, bytecode, "seed {seed}\n{text}");
        assert_eq!(print(&again), text, "seed {seed}");
    }
}

#[test]
fn equal_seeds_give_equal_traversals() {
    assert_eq!(Generator::new(7).traversal(3), Generator::new(7).traversal(3));
    assert_ne!(Generator::new(7).traversal(3), Generator::new(8).traversal(3));
}

#[test]
fn terminals_have_one_name_each() {
    for terminal in [
        Terminal::Next,
        Terminal::ToList,
        Terminal::ToSet,
        Terminal::ToBulkSet,
        Terminal::Iterate,
        Terminal::HasNext,
        Terminal::TryNext,
        Terminal::Explain,
    ] {
        assert_eq!(Terminal::from_name(terminal.name()), Some(terminal));
    }
}

#[test]
fn values_without_literals_are_shown_all_the_same() {
    use ficus_model::{Duration, Value, VertexId};
    use std::sync::Arc;
    let cases = [
        (Value::Char('x'), "'x'"),
        (Value::Duration(Duration { seconds: -2, nanos: 500_000_000 }), "Duration('PT-1.5S')"),
        (Value::Binary(Arc::from([0, 255])), "Binary('00ff')"),
        (Value::Vertex(VertexId(3)), "v[3]"),
        (Value::Float(f32::INFINITY), "Infinity"),
        (Value::Entry(Shared::new((Value::Int(1), Value::Null))), "[1: null]"),
    ];
    for (value, shown) in cases {
        let step = ficus_model::Instruction { name: "V".into(), args: vec![Argument::Value(value)], offset: None };
        let text = print(&Bytecode { source: Vec::new(), steps: vec![step] });
        assert_eq!(text, format!("g.V({shown})"));
    }
}
