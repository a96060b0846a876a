//! What each format can and cannot express, and what is left in the buffer when it cannot.

mod common;

use std::sync::Arc;

use common::*;
use ficus_model::{Argument, Bytecode, Explanation, P, Value, VertexId};
use ficus_wire::{
    Data, EncodeError, Format, Limits, Request, RequestId, Response, decode_response, decode_value, encode_frame,
    encode_request, encode_response, encode_value,
};

fn json(format: Format, value: &Value) -> String {
    let mut out = Vec::new();
    encode_value(format, value, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn stored_elements_are_refused_by_every_format() {
    for &format in Format::ALL {
        let mut out = b"before".to_vec();
        let error = encode_value(format, &list([Value::Vertex(VertexId(1))]), &mut out).unwrap_err();
        assert_eq!(error, EncodeError::NotDetached { kind: "vertex" });
        assert_eq!(out, b"before");
    }
}

#[test]
fn objects_need_keys_that_are_text() {
    let null_key = map([(Value::Null, Value::Int(1))]);
    for format in [Format::GraphSon1, Format::GraphSon2, Format::GraphSon3Untyped] {
        let error = encode_value(format, &null_key, &mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), format!("a map with null as a key cannot be written as {}", format.mime()));
    }
    for format in [Format::GraphSon3, Format::GraphBinary1] {
        encode_value(format, &null_key, &mut Vec::new()).unwrap();
    }
    assert_eq!(json(Format::GraphSon2Untyped, &map([(set([Value::Int(1)]), Value::Null)])), r#"{"[1]":null}"#);
}

#[test]
fn the_first_version_has_no_traversals() {
    let predicate = Value::P(Arc::new(P::eq(Value::Int(1))));
    let traversal = bytecode(Bytecode::default());
    for value in [predicate, traversal] {
        let error = encode_value(Format::GraphSon1, &value, &mut Vec::new()).unwrap_err();
        assert!(matches!(error, EncodeError::NotExpressible { .. }));
    }
}

#[test]
fn text_ids_stay_in_json() {
    let id = RequestId::Text("mine".into());
    let request = Request { id: id.clone(), op: "eval".into(), processor: "".into(), args: Default::default() };
    let response = Response::new(Some(id), 200, Data::None);
    let mut out = b"before".to_vec();
    assert!(encode_request(Format::GraphBinary1, &request, &mut out).is_err());
    assert!(encode_response(Format::GraphBinary1, &response, &mut out).is_err());
    assert!(encode_frame(Format::GraphBinary1, &request, &mut out).is_err());
    assert_eq!(out, b"before");
    let mut out = Vec::new();
    encode_response(Format::GraphSon3, &response, &mut out).unwrap();
    assert_eq!(decode_response(Format::GraphSon3, &out, &Limits::default()).unwrap(), response);
}

#[test]
fn results_without_request_are_written() {
    let response = Response::new(None, 499, Data::None);
    for format in [Format::GraphBinary1, Format::GraphSon2, Format::GraphSon3, Format::GraphSon3Untyped] {
        let mut out = Vec::new();
        encode_response(format, &response, &mut out).unwrap();
        assert_eq!(decode_response(format, &out, &Limits::default()).unwrap(), response);
    }
}

#[test]
fn bulked_results_are_written_out() {
    let bulked = Response::new(None, 200, Data::Bulked(vec![(Value::Int(7), 2), (string("a"), 1)]));
    for &format in Format::ALL {
        let mut out = Vec::new();
        encode_response(format, &bulked, &mut out).unwrap();
        let members = match decode_response(format, &out, &Limits::default()).unwrap().data {
            Data::Values(values) => values.iter().map(Value::to_string).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        assert_eq!(members, ["7", "7", "a"], "{format:?}");
    }
    let endless = Response::new(None, 200, Data::Bulked(vec![(Value::Int(7), u64::MAX)]));
    for &format in Format::ALL {
        let error = encode_response(format, &endless, &mut Vec::new()).unwrap_err();
        assert!(matches!(error, EncodeError::TooLong { .. }));
    }
}

#[test]
fn the_first_version_writes_traversers_as_their_values() {
    let response = Response::new(None, 200, Data::Traversers(vec![(Value::Int(7), 2)]));
    let mut out = Vec::new();
    encode_response(Format::GraphSon1, &response, &mut out).unwrap();
    let read = decode_response(Format::GraphSon1, &out, &Limits::default()).unwrap();
    assert_eq!(read.data, Data::Values(vec![Value::Int(7), Value::Int(7)]));
}

#[test]
fn explanations_are_maps() {
    let explanation = Explanation {
        original: "[GraphStep(vertex,[]), CountGlobalStep]".into(),
        intermediate: vec![(
            "CountFromDegrees".into(),
            "Optimization".into(),
            "DegreeStep, {InPlace, CountStep}".into(),
        )],
        final_plan: "[]".into(),
    };
    let value = Value::Explanation(Arc::new(explanation));
    let step = map([
        (string("strategy"), string("CountFromDegrees")),
        (string("category"), string("Optimization")),
        (string("traversal"), list([string("DegreeStep"), string("{InPlace, CountStep}")])),
    ]);
    let expected = map([
        (string("original"), list([string("GraphStep(vertex,[])"), string("CountGlobalStep")])),
        (string("intermediate"), list([step])),
        (string("final"), list([])),
    ]);
    for format in [Format::GraphBinary1, Format::GraphSon2, Format::GraphSon3, Format::GraphSon1] {
        let mut out = Vec::new();
        encode_value(format, &value, &mut out).unwrap();
        assert_eq!(decode_value(format, &out, &Limits::default()).unwrap(), expected, "{format:?}");
    }
}

#[test]
fn strategies_keep_names_that_are_no_types() {
    let hostile = "Bad\",\"@value\":{}}Strategy";
    let strategy = Argument::Strategy { name: hostile.into(), options: Vec::new() };
    let value = bytecode(Bytecode { source: vec![step("withStrategies", vec![strategy])], steps: Vec::new() });
    for format in [Format::GraphSon2, Format::GraphSon3, Format::GraphBinary1] {
        let mut out = Vec::new();
        encode_value(format, &value, &mut out).unwrap();
        assert_eq!(shown(&decode_value(format, &out, &Limits::default()).unwrap()), shown(&value));
    }
}

#[test]
fn maps_may_have_keys_that_look_like_types() {
    let check = |json: &str, expected: Value| {
        let read = decode_value(Format::GraphSon3, json.as_bytes(), &Limits::default());
        assert_eq!(read.unwrap_or_else(|error| panic!("{json}: {error}")), expected, "{json}");
    };
    let entry = |key: &str, value: Value| (string(key), value);
    check(r#"{"@type":"Person","name":"x"}"#, map([entry("@type", string("Person")), entry("name", string("x"))]));
    check(r#"{"@type":"Person"}"#, map([entry("@type", string("Person"))]));
    check(r#"{"@type":[1]}"#, map([entry("@type", list([Value::Int(1)]))]));
    check(r#"{"@value":1}"#, map([entry("@value", Value::Int(1))]));
    check(r#"{"@value":1,"other":2}"#, map([entry("@value", Value::Int(1)), entry("other", Value::Int(2))]));
    check(r#"{"@value":"7","@type":"g:Int64"}"#, Value::Long(7));
    check(r#"["java.lang.Long",1]"#, list([string("java.lang.Long"), Value::Int(1)]));
}
