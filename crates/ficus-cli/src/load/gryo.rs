//! Gryo: TinkerPop's binary form of a graph, see [`crate::gryo`].
//!
//! A file usually holds every edge twice, at its source and at its target; edges are taken from the side that has more of them, as
//! those of GraphSON are. What cannot be read ends the file, since nothing tells where the next vertex begins.

use std::io::BufRead;
use std::sync::Arc;

use ficus_model::{Cardinality, Shared, Value, ValueMap};

use super::graphson::EdgeSides;
use super::kryo::KryoInput;
use super::record::{EdgeRecord, Pass, PropertyRecord, ReadError, Record, Sink, VertexRecord};
use crate::gryo::{HEADER, STAR_VERSION, TERMINATOR, class};

/// A vertex with its edges.
struct Star {
    vertex: VertexRecord,
    in_edges: Vec<HalfEdge>,
    out_edges: Vec<HalfEdge>,
    /// By id of the edge.
    edge_properties: Shared<ValueMap>,
}

struct HalfEdge {
    id: Value,
    label: Arc<str>,
    other: Value,
}

/// Reads all records of `pass`.
pub fn read(input: &mut dyn BufRead, pass: Pass, sides: &EdgeSides, sink: &mut Sink<'_>) -> Result<(), ReadError> {
    let mut input = KryoInput::new(input);
    while input.next_document()? {
        sink.begin_row(b"")?;
        let Star { vertex, in_edges, out_edges, edge_properties } = star(&mut input)?;
        let number = input.document;
        if pass == Pass::Vertices {
            sides.count(out_edges.len(), in_edges.len());
            sink.record(Record::Vertex(vertex), number, 0);
            continue;
        }
        let outgoing = sides.are_at_source();
        for HalfEdge { id, label, other } in if outgoing { out_edges } else { in_edges } {
            let own = vertex.id.clone();
            let (out_id, in_id) = if outgoing { (own, other) } else { (other, own) };
            let properties = match edge_properties.get(&id) {
                None => Ok(Vec::new()),
                Some(properties) => pairs(properties),
            };
            match properties {
                Ok(properties) => {
                    let id = Some(id).filter(|id| *id != Value::Null);
                    sink.record(Record::Edge(EdgeRecord { id, label, out_id, in_id, properties }), number, 0);
                }
                Err(reason) => sink.reject(format!("edge '{label}': {reason}"), number, 0),
            }
        }
    }
    Ok(())
}

fn star(input: &mut KryoInput<'_>) -> Result<Star, ReadError> {
    input.expect(HEADER, "the mark of a Gryo file, \"gio\" and 13 zeros,")?;
    input.begin_object()?;
    if input.byte()? != STAR_VERSION {
        return input.wrong("a graph in a version of Gryo that only TinkerPop 4 reads");
    }
    let edge_properties = map(input)?;
    let meta_properties = map(input)?;
    let id = input.value()?;
    let label = input.text()?;
    let in_edges = half_edges(input)?;
    let out_edges = half_edges(input)?;
    let mut properties = Vec::new();
    if input.boolean()? {
        for _ in 0..input.count()? {
            let key = input.text()?;
            let count = input.count()?;
            let cardinality = if count > 1 { Cardinality::List } else { Cardinality::Single };
            for _ in 0..count {
                let id = input.value()?;
                let value = input.value()?;
                let meta = match meta_properties.get(&id).map(pairs) {
                    None => Vec::new(),
                    Some(Ok(meta)) => meta,
                    Some(Err(reason)) => return input.wrong(reason),
                };
                let id = Some(id).filter(|id| *id != Value::Null);
                properties.push(PropertyRecord { key: key.clone(), value, cardinality, id, meta });
            }
        }
    }
    input.expect(TERMINATOR, "the end of the vertex")?;
    let vertex = VertexRecord { id, label, properties, implied: false };
    Ok(Star { vertex, in_edges, out_edges, edge_properties })
}

fn half_edges(input: &mut KryoInput<'_>) -> Result<Vec<HalfEdge>, ReadError> {
    let mut edges = Vec::new();
    if input.boolean()? {
        for _ in 0..input.count()? {
            let label = input.text()?;
            for _ in 0..input.count()? {
                edges.push(HalfEdge { id: input.value()?, label: label.clone(), other: input.value()? });
            }
        }
    }
    Ok(edges)
}

/// A map that may be missing.
fn map(input: &mut KryoInput<'_>) -> Result<Shared<ValueMap>, ReadError> {
    match input.object(class::HASH_MAP, 0)? {
        Value::Map(map) => Ok(map),
        Value::Null => Ok(Shared::default()),
        other => input.wrong(format_args!("a {} instead of a map", other.type_name())),
    }
}

/// Keys and values of an element's properties.
fn pairs(properties: &Value) -> Result<Vec<(Arc<str>, Value)>, String> {
    let Value::Map(properties) = properties else {
        return Err(format!("its properties are a {}", properties.type_name()));
    };
    let pair = |(key, value): (&Value, &Value)| match key {
        Value::String(key) => Ok((key.clone(), value.clone())),
        other => Err(format!("the key of a property is a {}", other.type_name())),
    };
    properties.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::record::testing::collect;

    fn records(bytes: &[u8]) -> Vec<String> {
        let sides = EdgeSides::default();
        let mut found = Vec::new();
        for pass in [Pass::Vertices, Pass::Edges] {
            found.extend(collect(|sink| {
                let mut input = std::io::BufReader::with_capacity(1, bytes);
                read(&mut input, pass, &sides, sink)
            }));
        }
        found
    }

    /// A document without edges, whose only property has this value.
    fn with_value(value: &[u8]) -> Vec<u8> {
        let parts: [&[u8]; 5] = [
            &HEADER,
            // No properties of edges, no meta-properties, the id 1, the label "ab", no edges; one key "k", one value, the id null.
            &[1, STAR_VERSION, 0, 0, 2, 2, 1, b'a', b'b' | 0x80, 0, 0, 1, 2, 1, 0x82, b'k', 2, 0],
            value,
            &TERMINATOR,
            &[],
        ];
        parts.concat()
    }

    #[test]
    fn reads_what_tinkerpop_has_published() {
        let bytes =
            std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/io/tinkerpop-modern.kryo"));
        assert_eq!(
            records(&bytes.unwrap()),
            [
                r#"1:0 vertex Int(1) person name=String("marko")#Long(0) age=Int(29)#Long(1)"#,
                r#"2:0 vertex Int(2) person name=String("vadas")#Long(2) age=Int(27)#Long(3)"#,
                r#"3:0 vertex Int(3) software name=String("lop")#Long(4) lang=String("java")#Long(5)"#,
                r#"4:0 vertex Int(4) person name=String("josh")#Long(6) age=Int(32)#Long(7)"#,
                r#"5:0 vertex Int(5) software name=String("ripple")#Long(8) lang=String("java")#Long(9)"#,
                r#"6:0 vertex Int(6) person name=String("peter")#Long(10) age=Int(35)#Long(11)"#,
                "1:0 edge Int(9) created Int(1)->Int(3) weight=Double(0.4)",
                "1:0 edge Int(7) knows Int(1)->Int(2) weight=Double(0.5)",
                "1:0 edge Int(8) knows Int(1)->Int(4) weight=Double(1.0)",
                "4:0 edge Int(10) created Int(4)->Int(5) weight=Double(1.0)",
                "4:0 edge Int(11) created Int(4)->Int(3) weight=Double(0.4)",
                "6:0 edge Int(12) created Int(6)->Int(3) weight=Double(0.2)",
            ]
        );
    }

    #[test]
    fn objects_may_be_referred_to_and_not_from_within() {
        // The label is object 1, the key object 2, the list object 3.
        let label_twice = [12, 1, 2, 3, 3, 3, 3];
        let expected = r#"1:0 vertex Int(1) ab k=List([String("ab"), String("ab")])"#;
        assert_eq!(records(&with_value(&label_twice)), [expected]);
        for (wrong, reason) in [
            (vec![12, 1, 1, 12, 5], "an object that contains itself"),
            (vec![3, 9], "a reference to an object that has not come yet"),
            (vec![1], "a class that Gryo does not know by number"),
            (vec![98, 1], "class 96, which is no value"),
            ([12, 1, 1].repeat(70), "nested deeper"),
        ] {
            let found = records(&with_value(&wrong));
            assert!(found.len() == 2 && found[0].contains(reason) && found[1].contains(reason), "{found:?}");
        }
    }

    /// Lists of which each has the one before it twice: a few hundred bytes that stand for more than any memory has.
    #[test]
    fn references_do_not_make_a_vertex_longer_than_any() {
        let mut value = vec![12, 1, 60];
        value.extend([12, 1, 2, 0, 0]);
        // Object 3 is the list of lists, object 4 the first in it.
        (0..59u8).for_each(|number| value.extend([12, 1, 2, 12, number + 6, 12, number + 6]));
        let found = records(&with_value(&value));
        assert!(found[0].contains("longer than 256 MiB"), "{found:?}");
    }
}
