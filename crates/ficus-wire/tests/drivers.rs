//! Bytecode requests as official drivers send them, in every format they speak.

mod common;

use common::{ID, bytes_of_hex};
use ficus_model::{Argument, Value};
use ficus_wire::{Format, Limits, Request, decode_request, encode_request};

type Fixture = (&'static str, &'static str, &'static str);

/// Driver with its requests: name, format and body, and under the format `text` the traversal in readable form.
fn drivers() -> Vec<(&'static str, Vec<Fixture>)> {
    let files = [
        ("python", include_str!("fixtures/python.tsv")),
        ("javascript", include_str!("fixtures/javascript.tsv")),
        ("go", include_str!("fixtures/go.tsv")),
    ];
    let fixture = |line: &'static str| {
        let mut parts = line.splitn(3, '\t');
        let mut part = || parts.next().expect("three columns");
        (part(), part(), part())
    };
    let fixtures = |file: &'static str| file.lines().filter(|line| !line.starts_with('#')).map(fixture).collect();
    files.map(|(driver, file)| (driver, fixtures(file))).into()
}

fn requests(fixtures: &[Fixture]) -> impl Iterator<Item = (&'static str, Format, Request)> {
    fixtures.iter().filter(|(_, column, _)| *column != "text").map(|&(name, column, body)| {
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
fn bytecode_of_the_drivers_is_read() {
    for (driver, fixtures) in drivers() {
        let mut checked = 0;
        for (name, format, request) in requests(&fixtures) {
            let Request { id, op, processor, .. } = &request;
            assert_eq!((id.to_string().as_str(), &**op, &**processor), (ID, "bytecode", "traversal"));
            let gremlin = request.arg("gremlin").expect("every request has a traversal");
            assert!(matches!(gremlin, Value::Bytecode(_)));
            let expected = fixtures.iter().find(|(other, column, _)| *other == name && *column == "text");
            let (_, _, expected) = expected.unwrap_or_else(|| panic!("{driver} {format:?}\n{name}\ttext\t{gremlin}"));
            assert_eq!(gremlin.to_string(), *expected, "{name} of {driver} in {format:?}");
            checked += 1;
        }
        assert!(checked > 10, "only {checked} requests of {driver}");
    }
}

#[test]
fn bytecode_survives_every_typed_format() {
    for (name, _, request) in drivers().iter().flat_map(|(_, fixtures)| requests(fixtures)) {
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
        let (_, python) = &drivers()[0];
        let (_, _, request) = requests(python).find(|(name, ..)| *name == wanted).expect("a fixture of that name");
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
