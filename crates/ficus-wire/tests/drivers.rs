//! Bytecode requests as the official Python driver sends them, in every format it speaks.

mod common;

use common::{ID, bytes_of_hex};
use ficus_model::{Argument, Value};
use ficus_wire::{Format, Limits, Request, decode_request, encode_request};

/// Name, format and body, and under the format `text` the traversal in readable form.
fn fixtures() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    include_str!("fixtures/python.tsv").lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut parts = line.splitn(3, '\t');
        let mut part = || parts.next().expect("three columns");
        (part(), part(), part())
    })
}

fn requests() -> impl Iterator<Item = (&'static str, Format, Request)> {
    fixtures().filter(|(_, column, _)| *column != "text").map(|(name, column, body)| {
        let (format, body) = match column {
            "2" => (Format::GraphSon2, body.as_bytes().to_vec()),
            "3" => (Format::GraphSon3, body.as_bytes().to_vec()),
            _ => (Format::GraphBinary1, bytes_of_hex(body)),
        };
        let request = decode_request(format, &body, &Limits::default());
        (name, format, request.unwrap_or_else(|error| panic!("{name} in {format:?}: {error}")))
    })
}

#[test]
fn bytecode_of_the_driver_is_read() {
    let mut checked = 0;
    for (name, format, request) in requests() {
        assert_eq!((request.id.to_string().as_str(), &*request.op, &*request.processor), (ID, "bytecode", "traversal"));
        let gremlin = request.arg("gremlin").expect("every request has a traversal");
        assert!(matches!(gremlin, Value::Bytecode(_)));
        let expected = fixtures().find(|(other, column, _)| *other == name && *column == "text");
        let (_, _, expected) = expected.unwrap_or_else(|| panic!("{name}\ttext\t{gremlin}"));
        assert_eq!(gremlin.to_string(), expected, "{name} in {format:?}");
        checked += 1;
    }
    assert!(checked > 40, "only {checked} requests");
}

#[test]
fn bytecode_survives_every_typed_format() {
    for (name, _, request) in requests() {
        for format in [Format::GraphBinary1, Format::GraphSon3] {
            let mut body = Vec::new();
            encode_request(format, &request, &mut body).unwrap();
            let read = decode_request(format, &body, &Limits::default()).unwrap();
            assert_eq!(format!("{read:?}"), format!("{request:?}"), "{name} in {format:?}");
        }
    }
}

#[test]
fn arguments_are_of_their_own_kinds() {
    let kinds = |wanted: &str| -> Vec<&'static str> {
        let (_, _, request) = requests().find(|(name, ..)| *name == wanted).expect("a fixture of that name");
        let Some(Value::Bytecode(bytecode)) = request.arg("gremlin") else { panic!("no bytecode") };
        let instructions = bytecode.source.iter().chain(&bytecode.steps);
        let kind = |argument: &Argument| match argument {
            Argument::Value(_) => "value",
            Argument::Predicate(_) => "predicate",
            Argument::Traversal(_) => "traversal",
            Argument::Strategy { .. } => "strategy",
            Argument::List(_) => "list",
            Argument::Map(_) => "map",
            Argument::CardinalityValue(..) => "cardinality value",
        };
        instructions.flat_map(|instruction| &instruction.args).map(kind).collect()
    };
    assert_eq!(kinds("has"), ["value", "value", "predicate", "value"]);
    assert_eq!(kinds("strategies"), ["strategy"; 5]);
    assert_eq!(kinds("merge"), ["value", "value", "map", "value", "traversal"]);
    assert_eq!(kinds("choose"), ["traversal", "value", "traversal", "predicate", "traversal", "value", "traversal"]);
    assert_eq!(kinds("binding"), ["value"]);
}
