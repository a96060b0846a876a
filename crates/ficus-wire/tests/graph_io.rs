//! Lines of GraphSON files, as TinkerPop 3.8.1 writes them.

mod common;

use common::{string, vertex_property};
use ficus_model::Value;
use ficus_wire::graph_io::{parse_line, write_line};
use ficus_wire::{Format, Limits};

fn fixtures() -> impl Iterator<Item = (&'static str, Format, &'static str)> {
    include_str!("fixtures/adjacency.tsv").lines().filter(|line| !line.starts_with('#')).map(|line| {
        let parts: Vec<_> = line.split('\t').collect();
        let format = match parts[1] {
            "1" => Format::GraphSon1,
            "1u" => Format::GraphSon1Untyped,
            "2" => Format::GraphSon2,
            "3" => Format::GraphSon3,
            other => panic!("format {other}"),
        };
        (parts[0], format, parts[2])
    })
}

#[test]
fn lines_of_the_reference_round_trip() {
    let mut checked = 0;
    for (graph, format, line) in fixtures() {
        let vertex = parse_line(format, line.as_bytes(), &Limits::default()).unwrap();
        let mut out = Vec::new();
        write_line(format, &vertex, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), line, "{graph} in {format:?}");
        checked += 1;
    }
    assert_eq!(checked, 8);
}

#[test]
fn a_line_holds_properties_and_both_kinds_of_edges() {
    for (graph, format, line) in fixtures() {
        let vertex = parse_line(format, line.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(&*vertex.label, "person");
        if graph == "crew" {
            assert_eq!(vertex.properties.len(), 5);
            assert_eq!(vertex.properties[1].properties.len(), 2);
            assert_eq!(vertex.out_edges.len(), 3);
            continue;
        }
        assert_eq!(vertex.id, Value::Int(4));
        let ends = |edges: &[ficus_wire::graph_io::AdjacentEdge]| -> Vec<_> {
            edges.iter().map(|edge| (edge.id.clone(), edge.other_id.clone(), edge.label.to_string())).collect()
        };
        let end = |id, other, label: &str| (Value::Int(id), Value::Int(other), label.to_owned());
        assert_eq!(ends(&vertex.in_edges), [end(8, 1, "knows")]);
        assert_eq!(ends(&vertex.out_edges), [end(10, 5, "created"), end(11, 3, "created")]);
        assert_eq!(vertex.out_edges[1].properties[0].value, Value::Double(0.4));
    }
}

#[test]
fn a_vertex_with_many_properties_keeps_their_order_by_key() {
    let line = br#"{"id":1,"label":"person"}"#;
    let mut vertex = parse_line(Format::GraphSon3, line, &Limits::default()).unwrap();
    for index in 0..20 {
        vertex.properties.push(vertex_property(index, if index % 2 == 0 { "even" } else { "odd" }, string("x"), &[]));
    }
    let mut out = Vec::new();
    write_line(Format::GraphSon3, &vertex, &mut out).unwrap();
    let read = parse_line(Format::GraphSon3, &out, &Limits::default()).unwrap();
    let ids: Vec<_> = read.properties.iter().map(|property| property.id.clone()).collect();
    let expected: Vec<_> = (0..20).step_by(2).chain((1..20).step_by(2)).map(Value::Long).collect();
    assert_eq!(ids, expected);
}

#[test]
fn wrong_lines_are_refused_with_their_place() {
    let check = |line: &str, expected: &str| {
        let error = parse_line(Format::GraphSon3, line.as_bytes(), &Limits::default()).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    check(r#"{"label":"person"}"#, "incomplete message at byte 18: a vertex's id is missing");
    check("[", "malformed message at byte 0: expected an object, found \"[\"");
    check("", "malformed message at byte 0: expected an object, found the end");
    check(r#"{"id":1} {"id":2}"#, "malformed message at byte 9: expected the end, found \"{\\\"id\\\":2}\"");
    let missing_end = r#"{"id":1,"outE":{"knows":[{"id":2}]}}"#;
    check(missing_end, "incomplete message at byte 33: the vertex at the other end of an edge is missing");
}
