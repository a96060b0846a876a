//! What transactions read and write, as 64-bit numbers that the resolver compares.
//!
//! A fingerprint is part of log records, so its function is fixed for ever: XXH3 over a kind, the graph, and a canonical
//! form of what is meant. Two different things with one fingerprint make a needless conflict, nothing worse.
//!
//! Most kinds stand for one thing. Some stand for a whole graph: what is scanned or counted as a whole, and what a
//! [read set](crate::read_set) falls back on when it has grown too large.

use ficus_model::{EdgeId, Value, VertexId};
use xxhash_rust::xxh3::xxh3_64;

use crate::value_codec::put_value;
use crate::value_key::{canonical_index_key, id_integer};

/// Makes the fingerprints of one graph.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fingerprints {
    /// The graph's number.
    pub(crate) graph: u32,
}

impl Fingerprints {
    fn of(self, kind: u8, content: &[u8]) -> u64 {
        let mut bytes = Vec::with_capacity(5 + content.len());
        bytes.push(kind);
        bytes.extend_from_slice(&self.graph.to_le_bytes());
        bytes.extend_from_slice(content);
        xxh3_64(&bytes)
    }

    fn of_number(self, kind: u8, number: u64) -> u64 {
        let mut bytes = [0; 13];
        bytes[0] = kind;
        bytes[1..5].copy_from_slice(&self.graph.to_le_bytes());
        bytes[5..].copy_from_slice(&number.to_le_bytes());
        xxh3_64(&bytes)
    }

    fn of_id(self, kind: u8, id: &Value) -> u64 {
        if let Some(integer) = id_integer(id) {
            return self.of_number(kind, integer as u64);
        }
        let mut content = Vec::with_capacity(24);
        put_value(id, &mut content);
        self.of(kind, &content)
    }

    /// Label and properties of a vertex, and that it exists.
    pub(crate) fn vertex(self, vertex: VertexId) -> u64 {
        self.of_number(1, vertex.0)
    }

    /// The half-edges of a vertex, both directions. Only in records of format 1.
    pub(crate) fn adjacency(self, vertex: VertexId) -> u64 {
        self.of_number(2, vertex.0)
    }

    /// Properties of an edge, and that it exists.
    pub(crate) fn edge(self, edge: EdgeId) -> u64 {
        self.of_number(3, edge.0)
    }

    /// Which vertex has a user id.
    pub(crate) fn vertex_id(self, id: &Value) -> u64 {
        self.of_id(4, id)
    }

    /// Which edge has a user id.
    pub(crate) fn edge_id(self, id: &Value) -> u64 {
        self.of_id(5, id)
    }

    /// Which vertices have a label.
    pub(crate) fn label(self, label: &str) -> u64 {
        self.of(6, label.as_bytes())
    }

    /// Which vertices have which values under a key.
    pub(crate) fn key(self, key: &str) -> u64 {
        self.of(7, key.as_bytes())
    }

    /// Which vertices have this value under a key.
    pub(crate) fn key_value(self, key: &str, value: &Value) -> u64 {
        let mut content = Vec::with_capacity(key.len() + 16);
        content.extend_from_slice(key.as_bytes());
        content.push(0);
        canonical_index_key(value, &mut content);
        self.of(8, &content)
    }

    /// Which vertices there are.
    pub(crate) fn all_vertices(self) -> u64 {
        self.of(9, &[])
    }

    /// The out half-edges of a vertex.
    pub(crate) fn out_half_edges(self, vertex: VertexId) -> u64 {
        self.of_number(10, vertex.0)
    }

    /// The in half-edges of a vertex.
    pub(crate) fn in_half_edges(self, vertex: VertexId) -> u64 {
        self.of_number(11, vertex.0)
    }

    /// Which edges go from one vertex to another.
    pub(crate) fn edges_between(self, out: VertexId, in_: VertexId) -> u64 {
        let mut content = [0; 16];
        content[..8].copy_from_slice(&out.0.to_le_bytes());
        content[8..].copy_from_slice(&in_.0.to_le_bytes());
        self.of(12, &content)
    }

    /// That a vertex exists; its user id and label never change.
    pub(crate) fn vertex_existence(self, vertex: VertexId) -> u64 {
        self.of_number(13, vertex.0)
    }

    /// That an edge exists; its user id, label and ends never change.
    pub(crate) fn edge_existence(self, edge: EdgeId) -> u64 {
        self.of_number(14, edge.0)
    }

    /// Which edges there are.
    pub(crate) fn all_edges(self) -> u64 {
        self.of(15, &[])
    }

    /// Which edges have a label.
    pub(crate) fn edge_label(self, label: &str) -> u64 {
        self.of(16, label.as_bytes())
    }

    /// That no element ever had a label.
    pub(crate) fn absent_label(self, label: &str) -> u64 {
        self.of(17, label.as_bytes())
    }

    /// That no element ever had a key.
    pub(crate) fn absent_key(self, key: &str) -> u64 {
        self.of(18, key.as_bytes())
    }

    /// Properties of vertices, whichever.
    pub(crate) fn any_vertex(self) -> u64 {
        self.of(19, &[])
    }

    /// Properties of edges, whichever.
    pub(crate) fn any_edge(self) -> u64 {
        self.of(20, &[])
    }

    /// That vertices exist, whichever.
    pub(crate) fn any_vertex_existence(self) -> u64 {
        self.of(21, &[])
    }

    /// That edges exist, whichever.
    pub(crate) fn any_edge_existence(self) -> u64 {
        self.of(22, &[])
    }

    /// Which labels and keys there are.
    pub(crate) fn all_words(self) -> u64 {
        self.of(23, &[])
    }

    /// Which user ids the edges of bulk batches have; these are not remembered one by one.
    pub(crate) fn loaded_edge_ids(self) -> u64 {
        self.of(24, &[])
    }

    /// The properties of the edges of a vertex, whichever: what reading them in the order of a property tells.
    pub(crate) fn edge_properties_at(self, vertex: VertexId) -> u64 {
        self.of_number(25, vertex.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers are in log files: they must never change.
    #[test]
    fn fingerprints_are_fixed_for_ever() {
        let of = Fingerprints { graph: 3 };
        let made = [
            of.vertex(VertexId(5)),
            of.adjacency(VertexId(5)),
            of.edge(EdgeId(5)),
            of.vertex_id(&Value::Int(5)),
            of.edge_id(&Value::String("x".into())),
            of.label("person"),
            of.key("name"),
            of.key_value("age", &Value::Double(29.0)),
            of.all_vertices(),
            of.out_half_edges(VertexId(5)),
            of.in_half_edges(VertexId(5)),
            of.edges_between(VertexId(5), VertexId(6)),
            of.vertex_existence(VertexId(5)),
            of.edge_existence(EdgeId(5)),
            of.all_edges(),
            of.edge_label("knows"),
            of.absent_label("person"),
            of.absent_key("name"),
            of.any_vertex(),
            of.any_edge(),
            of.any_vertex_existence(),
            of.any_edge_existence(),
            of.all_words(),
            of.loaded_edge_ids(),
            of.edge_properties_at(VertexId(5)),
        ];
        assert_eq!(made, EXPECTED);
        assert_eq!(of.vertex_id(&Value::Int(5)), of.vertex_id(&Value::Long(5)));
        assert_eq!(of.key_value("age", &Value::Int(29)), of.key_value("age", &Value::Double(29.0)));
        assert_ne!(of.vertex_id(&Value::Int(5)), Fingerprints { graph: 4 }.vertex_id(&Value::Int(5)));
    }

    const EXPECTED: [u64; 25] = [
        5828606057410574178,
        16514522415307435164,
        6889884125830678447,
        7999840892532653833,
        7619057010847367154,
        17181671146867410818,
        6940695332262321548,
        18331046262194087087,
        5747329355607179682,
        5052144725957117243,
        10997713982763701857,
        17393214198308812657,
        11660311791957590366,
        14503627347405444054,
        15169845183467102234,
        12343354967217652383,
        18361655617326129408,
        828826431075283854,
        4493819218389520248,
        12549503394330687669,
        16330816935127574716,
        1381667003574424784,
        5094864100477297089,
        17636439297289796327,
        15269324691761285252,
    ];
}
