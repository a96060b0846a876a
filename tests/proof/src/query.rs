//! The questions that clients ask, and how the store is asked them.
//!
//! An answer is a list of numbers, in ascending order unless the order says something. What is not there gives an empty
//! list.

use ficus_model::{Direction, EdgeId, KeyId, LabelId, Value, VertexId};
use ficus_storage::{HalfEdge, HalfEdgeCursor, ScanCursor, Transaction};

use crate::naive::{NaiveGraph, Write, flat};

/// Rows of one read of a scan: few, so that cursors are used.
const ROWS_MAX: usize = 3;

/// Which half-edges of a vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Their direction.
    pub direction: Direction,
    /// Their label, or all.
    pub label: Option<u8>,
}

impl Hop {
    /// True if out half-edges are meant.
    pub fn follows_out(self) -> bool {
        matches!(self.direction, Direction::Out | Direction::Both)
    }

    /// True if in half-edges are meant.
    pub fn follows_in(self) -> bool {
        matches!(self.direction, Direction::In | Direction::Both)
    }
}

/// One question. Elements are named by the store's internal numbers, except where a user id is looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// The vertex with a user id.
    VertexWithId(i64),
    /// The edge with a user id.
    EdgeWithId(i64),
    /// The label of a vertex, if it is there.
    VertexLabel(i64),
    /// The values of a vertex under a key, in their order.
    VertexValues {
        /// The vertex.
        vertex: i64,
        /// The key.
        key: u8,
    },
    /// The vertices with a value under a key, by an index if there is one, by a scan otherwise.
    WithValue {
        /// Only of this label.
        label: Option<u8>,
        /// The key.
        key: u8,
        /// The value.
        value: i64,
    },
    /// The vertices of a label with a value under a key, by a scan of the label.
    LabelledWithValue {
        /// The label.
        label: u8,
        /// The key.
        key: u8,
        /// The value.
        value: i64,
    },
    /// The vertices of a label.
    WithLabel(u8),
    /// All vertices.
    AllVertices,
    /// All edges.
    AllEdges,
    /// Edge and neighbour of each half-edge.
    HalfEdges {
        /// The vertex.
        vertex: i64,
        /// Which ones.
        hop: Hop,
    },
    /// The ends of all paths of two hops.
    TwoHops {
        /// The vertex.
        vertex: i64,
        /// Which half-edges, in both hops.
        hop: Hop,
    },
    /// The number of half-edges.
    Degree {
        /// The vertex.
        vertex: i64,
        /// Which ones.
        hop: Hop,
    },
    /// The first edge of a label from one vertex to another.
    EdgeBetween {
        /// The source.
        out: i64,
        /// The target.
        in_: i64,
        /// The label.
        label: u8,
    },
    /// Label, source and target of an edge.
    EdgeEnds(i64),
    /// The value of an edge under a key.
    EdgeValue {
        /// The edge.
        edge: i64,
        /// The key.
        key: u8,
    },
    /// The number of vertices.
    VertexCount,
    /// The number of vertices with a label.
    VertexCountWithLabel(u8),
    /// The number of edges.
    EdgeCount,
    /// The number of edges with a label.
    EdgeCountWithLabel(u8),
}

/// The name of a vertex label.
pub fn vertex_label(label: u8) -> String {
    format!("v{label}")
}

/// The name of an edge label.
pub fn edge_label(label: u8) -> String {
    format!("e{label}")
}

/// The name of a property key.
pub fn key_name(key: u8) -> String {
    format!("k{key}")
}

/// Asks the store.
pub fn ask(view: &Transaction, query: &Query) -> Vec<i64> {
    let vertex_label = |label: u8| view.label_id(&vertex_label(label));
    let edge_label = |label: u8| view.label_id(&edge_label(label));
    let key_id = |key: u8| view.key_id(&key_name(key));
    let mut answer = match *query {
        Query::VertexWithId(id) => view.find_vertex(&Value::Long(id)).map(|found| found.0 as i64).into_iter().collect(),
        Query::EdgeWithId(id) => view.find_edge(&Value::Long(id)).map(|found| found.0 as i64).into_iter().collect(),
        Query::VertexLabel(vertex) => {
            let label = view.vertex_label(VertexId(vertex as u64));
            label.map(|label| number_in(&view.label_name(label))).into_iter().collect()
        }
        Query::VertexValues { vertex, key } => {
            let Some(key) = key_id(key) else { return Vec::new() };
            return vertex_values(view, VertexId(vertex as u64), key);
        }
        Query::WithValue { label, key, value } => with_value(view, label, key, value),
        Query::LabelledWithValue { label, key, value } => {
            let Some(label) = vertex_label(label) else { return Vec::new() };
            let mut found = labelled(view, label);
            match key_id(key) {
                Some(key) => found.retain(|vertex| vertex_values(view, *vertex, key).contains(&value)),
                None => found.clear(),
            }
            numbers(&found)
        }
        Query::WithLabel(label) => vertex_label(label).map(|label| numbers(&labelled(view, label))).unwrap_or_default(),
        Query::AllVertices => numbers(&all_vertices(view)),
        Query::AllEdges => {
            let (mut cursor, mut found) = (ScanCursor::default(), Vec::new());
            while view.scan_edges(&mut cursor, ROWS_MAX, &mut found) {}
            found.into_iter().map(|edge| edge.0 as i64).collect()
        }
        Query::HalfEdges { vertex, hop } => {
            let found = half_edges(view, VertexId(vertex as u64), hop);
            let mut pairs: Vec<_> = found.iter().map(|found| (found.edge.0 as i64, found.neighbour.0 as i64)).collect();
            return flat(&mut pairs);
        }
        Query::TwoHops { vertex, hop } => {
            let first = half_edges(view, VertexId(vertex as u64), hop);
            let second = first.into_iter().flat_map(|half_edge| half_edges(view, half_edge.neighbour, hop));
            second.map(|half_edge| half_edge.neighbour.0 as i64).collect()
        }
        Query::Degree { vertex, hop } => {
            let vertex = VertexId(vertex as u64);
            let degree = match hop.label.map(edge_label) {
                None => view.degree(vertex, hop.direction, &[]),
                Some(Some(label)) => view.degree(vertex, hop.direction, &[label]),
                Some(None) => 0,
            };
            vec![degree as i64]
        }
        Query::EdgeBetween { out, in_, label } => {
            let Some(label) = edge_label(label) else { return Vec::new() };
            let found = view.edge_between(VertexId(out as u64), VertexId(in_ as u64), Some(label));
            found.map(|edge| edge.0 as i64).into_iter().collect()
        }
        Query::EdgeEnds(edge) => {
            let Some(record) = view.edge(EdgeId(edge as u64)) else { return Vec::new() };
            return vec![number_in(&view.label_name(record.label)), record.out.0 as i64, record.in_.0 as i64];
        }
        Query::EdgeValue { edge, key } => {
            let value = key_id(key).and_then(|key| view.edge_value(EdgeId(edge as u64), key));
            value.map(|value| integer(&value)).into_iter().collect()
        }
        Query::VertexCount => vec![view.vertex_count() as i64],
        Query::VertexCountWithLabel(label) => {
            vec![vertex_label(label).map_or(0, |label| view.vertex_count_with_label(label) as i64)]
        }
        Query::EdgeCount => vec![view.edge_count() as i64],
        Query::EdgeCountWithLabel(label) => {
            vec![edge_label(label).map_or(0, |label| view.edge_count_with_label(label) as i64)]
        }
    };
    answer.sort_unstable();
    answer
}

/// Reads everything. Errors: what no client writes.
pub fn read_graph(view: &Transaction) -> Result<NaiveGraph, String> {
    let mut graph = NaiveGraph::default();
    let id_of = |id: Option<Value>| match id {
        Some(Value::Long(id)) => Ok(id),
        other => Err(format!("an element has the id {other:?}")),
    };
    for vertex in all_vertices(view) {
        let number = vertex.0 as i64;
        let label = view.vertex_label(vertex).map_or(-1, |label| number_in(&view.label_name(label))) as u8;
        graph.apply(&Write::AddVertex { vertex: number, id: id_of(view.vertex_id(vertex))?, label })?;
        let mut properties = Vec::new();
        view.vertex_properties(vertex, None, &mut properties);
        for property in properties {
            let key = number_in(&view.key_name(property.key)) as u8;
            let (property, value) = (property.id as i64, integer(&property.value));
            graph.apply(&Write::SetVertexValue { vertex: number, property, key, value, alone: false })?;
        }
    }
    let (mut cursor, mut edges) = (ScanCursor::default(), Vec::new());
    while view.scan_edges(&mut cursor, ROWS_MAX, &mut edges) {}
    for edge in edges {
        let number = edge.0 as i64;
        let record = view.edge(edge).ok_or("a scanned edge is not there")?;
        let label = number_in(&view.label_name(record.label)) as u8;
        let (out, in_) = (record.out.0 as i64, record.in_.0 as i64);
        graph.apply(&Write::AddEdge { edge: number, id: id_of(view.edge_id(edge))?, label, out, in_ })?;
        let mut properties = Vec::new();
        view.edge_properties(edge, &mut properties);
        for (key, value) in properties {
            let key = number_in(&view.key_name(key)) as u8;
            graph.apply(&Write::SetEdgeValue { edge: number, key, value: integer(&value) })?;
        }
    }
    Ok(graph)
}

/// The property of a vertex to remove, if it has one under the key.
pub(crate) fn first_property(view: &Transaction, vertex: i64, key: u8) -> Option<u64> {
    let mut found = Vec::new();
    view.vertex_properties(VertexId(vertex as u64), Some(view.key_id(&key_name(key))?), &mut found);
    found.first().map(|property| property.id)
}

fn with_value(view: &Transaction, label: Option<u8>, key: u8, value: i64) -> Vec<i64> {
    let Some(key) = view.key_id(&key_name(key)) else { return Vec::new() };
    let label = match label.map(|label| view.label_id(&vertex_label(label))) {
        None => None,
        Some(Some(label)) => Some(label),
        Some(None) => return Vec::new(),
    };
    let mut found = Vec::new();
    if !view.vertices_by_index(label, key, &Value::Long(value), &mut found) {
        found = all_vertices(view);
        found.retain(|vertex| {
            let has_label = label.is_none() || view.vertex_label(*vertex) == label;
            has_label && vertex_values(view, *vertex, key).contains(&value)
        });
    }
    numbers(&found)
}

fn vertex_values(view: &Transaction, vertex: VertexId, key: KeyId) -> Vec<i64> {
    let mut found = Vec::new();
    view.vertex_properties(vertex, Some(key), &mut found);
    found.iter().map(|property| integer(&property.value)).collect()
}

fn all_vertices(view: &Transaction) -> Vec<VertexId> {
    let (mut cursor, mut found) = (ScanCursor::default(), Vec::new());
    while view.scan_vertices(&mut cursor, ROWS_MAX, &mut found) {}
    found
}

fn labelled(view: &Transaction, label: LabelId) -> Vec<VertexId> {
    let (mut cursor, mut found) = (ScanCursor::default(), Vec::new());
    while view.scan_vertices_with_label(label, &mut cursor, ROWS_MAX, &mut found) {}
    found
}

fn half_edges(view: &Transaction, vertex: VertexId, hop: Hop) -> Vec<HalfEdge> {
    let labels = match hop.label.map(|label| view.label_id(&edge_label(label))) {
        None => Vec::new(),
        Some(Some(label)) => vec![label],
        Some(None) => return Vec::new(),
    };
    let (mut cursor, mut found) = (HalfEdgeCursor::default(), Vec::new());
    while view.half_edges(vertex, hop.direction, &labels, &mut cursor, ROWS_MAX, &mut found) {}
    found
}

fn numbers(vertices: &[VertexId]) -> Vec<i64> {
    vertices.iter().map(|vertex| vertex.0 as i64).collect()
}

/// The number at the end of `v1`.
fn number_in(name: &str) -> i64 {
    name.get(1..).and_then(|digits| digits.parse().ok()).unwrap_or(-1)
}

fn integer(value: &Value) -> i64 {
    match value {
        Value::Long(number) => *number,
        // Nothing else is ever written; it differs from every answer of the model.
        _ => i64::MIN,
    }
}
