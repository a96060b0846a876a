//! Reads and writes values exactly as the serializers of TinkerPop 3.8.1 do.

mod common;

use std::collections::HashMap;
use std::sync::Arc;

use common::*;
use ficus_model::{Value, ValueMap};
use ficus_wire::{
    Data, DecodeErrorKind, Format, Limits, Request, RequestId, Response, decode_frame, decode_request, decode_response,
    decode_value, encode_request, encode_response, encode_value,
};

fn format_of(column: &str) -> Option<Format> {
    Some(match column {
        "1" => Format::GraphSon1,
        "1u" => Format::GraphSon1Untyped,
        "2" => Format::GraphSon2,
        "2u" => Format::GraphSon2Untyped,
        "3" => Format::GraphSon3,
        "3u" => Format::GraphSon3Untyped,
        "b" => Format::GraphBinary1,
        _ => return None,
    })
}

fn bytes_of(format: Format, text: &str) -> Vec<u8> {
    if format.is_json() { text.as_bytes().to_vec() } else { bytes_of_hex(text) }
}

/// The reference names private Java classes here that no reader can make anything of.
fn is_written_differently(name: &str, column: &str) -> bool {
    matches!((name, column), ("path" | "traversal-metrics", "1"))
}

/// Bytes as the fixtures hold them.
fn comparable(format: Format, bytes: &[u8]) -> String {
    if format.is_json() { String::from_utf8(bytes.to_vec()).unwrap() } else { hex(bytes) }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn values_are_written_as_the_reference_writes_them() {
    let values: HashMap<_, _> = named_values().into_iter().collect();
    let mut checked = 0;
    for (name, column, text) in fixtures() {
        let (Some(format), Some(value)) = (format_of(column), values.get(name)) else { continue };
        if is_written_differently(name, column) {
            continue;
        }
        let mut out = Vec::new();
        encode_value(format, value, &mut out).unwrap_or_else(|error| panic!("{name} as {column}: {error}"));
        assert_eq!(comparable(format, &out), text, "{name} as {column}");
        if column == "2u" && !fixtures().any(|(other, column, _)| other == name && column == "3u") {
            let mut third = Vec::new();
            encode_value(Format::GraphSon3Untyped, value, &mut third).unwrap();
            assert_eq!(third, out, "{name} untyped in both versions");
        }
        checked += 1;
    }
    assert!(checked > 550, "only {checked} fixtures were compared");
}

#[test]
fn values_of_the_reference_are_read() {
    let values: HashMap<_, _> = named_values().into_iter().chain(read_only_values()).collect();
    let mut checked = 0;
    for (name, column, text) in fixtures() {
        let (Some(format), Some(value)) = (format_of(column), values.get(name)) else { continue };
        let expected = match (column, name) {
            ("3" | "b", "entry") => map([(string("k"), Value::Int(1))]),
            ("3" | "b", _) => value.clone(),
            _ => continue,
        };
        let read = decode_value(format, &bytes_of(format, text), &Limits::default());
        let read = read.unwrap_or_else(|error| panic!("{name} as {column}: {error}"));
        assert_eq!(shown(&read), shown(&expected), "{name} as {column}");
        checked += 1;
    }
    assert!(checked > 200, "only {checked} fixtures were compared");
}

/// What GraphSON 1.0 and 2.0 cannot tell apart: sets are lists, keys of maps are text.
#[test]
fn values_of_earlier_versions_are_read() {
    let values: HashMap<_, _> = named_values().into_iter().chain(read_only_values()).collect();
    let mut checked = 0;
    for (name, column, text) in fixtures() {
        let ("1" | "2", Some(value)) = (column, values.get(name)) else { continue };
        let keys_are_text = name.starts_with("map-") && !matches!(name, "map-empty");
        let first_version_has_no = matches!(value, Value::Element(_) | Value::Path(_) | Value::Tree(_))
            || matches!(value, Value::Graph(_) | Value::Metrics(_) | Value::BulkSet(_));
        if keys_are_text || (column == "1" && first_version_has_no) || name == "bytecode-card" {
            continue;
        }
        let expected = match (name, value) {
            ("entry", _) => map([(string("k"), Value::Int(1))]),
            ("set", Value::Set(members)) if column == "2" => list(members.iter().cloned()),
            ("bulkset", _) => list(["marko", "josh", "josh", "josh"].map(string)),
            _ => value.clone(),
        };
        let expected =
            shown(&expected).replace("Set({String(\"a\"), String(\"b\")})", "List([String(\"a\"), String(\"b\")])");
        let format = format_of(column).unwrap();
        let read = decode_value(format, text.as_bytes(), &Limits::default());
        let read = read.unwrap_or_else(|error| panic!("{name} as {column}: {error}"));
        assert_eq!(shown(&read), expected, "{name} as {column}");
        checked += 1;
    }
    assert!(checked > 150, "only {checked} fixtures were compared");
}

#[test]
fn text_is_that_of_the_java_classes() {
    let values: HashMap<_, _> = named_values().into_iter().collect();
    let mut checked = 0;
    for (name, column, text) in fixtures() {
        let ("text", Some(value)) = (column, values.get(name)) else { continue };
        // Shown in words of our own; the text of a regular expression is doubled by the reference.
        if name.starts_with("bytecode") || matches!(name, "binary" | "graph" | "textp-regex" | "p-not-text") {
            continue;
        }
        assert_eq!(value.to_string(), text, "{name}");
        checked += 1;
    }
    assert!(checked > 80, "only {checked} fixtures were compared");
}

#[test]
fn untyped_values_are_read_as_plain_json() {
    for (name, column, text) in fixtures() {
        if matches!(column, "1u" | "2u" | "3u") && !matches!(name, "req" | "breq" | "res" | "nores") {
            let read = decode_value(format_of(column).unwrap(), text.as_bytes(), &Limits::default());
            read.unwrap_or_else(|error| panic!("{name} as {column}: {error}"));
        }
    }
}

#[test]
fn lambdas_are_refused_with_advice() {
    for (name, column, text) in fixtures() {
        let ("lambda", Some(format)) = (name, format_of(column)) else { continue };
        if matches!(column, "2u" | "3u") {
            continue;
        }
        let error = decode_value(format, &bytes_of(format, text), &Limits::default()).unwrap_err();
        assert_eq!(error.kind, DecodeErrorKind::Unsupported);
        assert!(error.to_string().contains("a lambda; write an anonymous traversal"), "{error}");
    }
}

fn sample_request(is_bytecode: bool) -> Request {
    let id = RequestId::from_text(ID);
    let entry = |name: &str, value: Value| (Arc::from(name), value);
    if is_bytecode {
        let count = bytecode(steps(vec![step("V", vec![]), step("count", vec![])]));
        let aliases = map([(string("g"), string("gmodern"))]);
        let args = [entry("gremlin", count), entry("aliases", aliases)].into_iter().collect();
        return Request { id, op: "bytecode".into(), processor: "traversal".into(), args };
    }
    let args = [
        entry("gremlin", string("g.V(x)")),
        entry("bindings", map([(string("x"), Value::Int(1))])),
        entry("language", string("gremlin-lang")),
        entry("batchSize", Value::Int(64)),
    ];
    Request { id, op: "eval".into(), processor: "session".into(), args: args.into_iter().collect() }
}

#[test]
fn requests_are_those_of_the_reference() {
    let mut checked = 0;
    for (name, column, text) in fixtures() {
        let ("req" | "breq", Some(format)) = (name, format_of(column)) else { continue };
        let request = sample_request(name == "breq");
        let body = bytes_of(format, text);
        let mut out = Vec::new();
        encode_request(format, &request, &mut out).unwrap();
        assert_eq!(comparable(format, &out), text, "{name} as {column}");
        // Without types, bytecode is but a map.
        if !(name == "breq" && column.ends_with('u')) {
            assert_eq!(decode_request(format, &body, &Limits::default()).unwrap(), request, "{name} as {column}");
            let mime = format.mime();
            let frame = [&[mime.len() as u8], mime.as_bytes(), &body].concat();
            assert_eq!(decode_frame(&frame, &Limits::default()).unwrap(), (format, request), "{name} as {column}");
        }
        checked += 1;
    }
    assert_eq!(checked, 10);
}

#[test]
fn responses_are_those_of_the_reference() {
    let mut partial =
        Response::new(Some(RequestId::from_text(ID)), 206, Data::Values(vec![Value::Int(1), string("a")]));
    partial.message = "hi".into();
    partial.attributes = [(string("host"), string("/127.0.0.1:1234"))].into_iter().collect();
    let empty = Response::new(Some(RequestId::from_text(ID)), 204, Data::None);
    let mut checked = 0;
    for (name, column, text) in fixtures() {
        let response = match name {
            "res" => &partial,
            "nores" => &empty,
            _ => continue,
        };
        let Some(format) = format_of(column) else { continue };
        let read = decode_response(format, &bytes_of(format, text), &Limits::default()).unwrap();
        let with_class = |mut read: Response| {
            // Only Java's readers know `@class` here; it is no attribute.
            read.attributes.retain(|key, _| *key != string("@class"));
            read
        };
        assert_eq!(with_class(read), *response, "{name} as {column}");
        let mut out = Vec::new();
        encode_response(format, response, &mut out).unwrap();
        let expected = text.replace("java.util.Collections$EmptyMap", "java.util.LinkedHashMap");
        let written = comparable(format, &out).replace("java.util.LinkedHashMap", "java.util.HashMap");
        assert_eq!(written, expected.replace("java.util.LinkedHashMap", "java.util.HashMap"), "{name} as {column}");
        checked += 1;
    }
    assert_eq!(checked, 12);
}

#[test]
fn traversers_are_those_of_the_reference() {
    let values: HashMap<_, _> = named_values().into_iter().collect();
    let traversers = vec![(values["vertex"].clone(), 1), (Value::Null, 3)];
    for (name, column, text) in fixtures() {
        let ("traverser-list", Some(format)) = (name, format_of(column)) else { continue };
        let response = Response::new(Some(RequestId::from_text(ID)), 200, Data::Traversers(traversers.clone()));
        let mut out = Vec::new();
        encode_response(format, &response, &mut out).unwrap();
        assert!(comparable(format, &out).contains(text), "{column}: {}", comparable(format, &out));
        if !column.ends_with('u') {
            let read = decode_response(format, &out, &Limits::default()).unwrap();
            assert_eq!(read, response, "{column}");
            assert_eq!(read.attributes, ValueMap::default());
        }
    }
}

#[test]
fn stringd_responses_hold_text() {
    let values: HashMap<_, _> = named_values().into_iter().collect();
    let data = Data::Traversers(vec![(values["vertex"].clone(), 2), (Value::Double(1.0), 1)]);
    let check = |data: Data, expected: Data| {
        let mut out = Vec::new();
        encode_response(Format::GraphBinary1Stringd, &Response::new(None, 200, data), &mut out).unwrap();
        let read = decode_response(Format::GraphBinary1Stringd, &out, &Limits::default()).unwrap();
        assert_eq!(read.data, expected);
    };
    check(data, Data::Values(vec![string("v[1]"), string("v[1]"), string("1.0")]));
    check(Data::None, Data::Values(vec![string("null")]));
}
