//! The graph as plain maps: slow, obvious, and with nothing in common with the store.
//!
//! Everything is a number: `i64` for user ids and values, the store's internal number for elements, small numbers for labels
//! and keys.

use std::collections::BTreeMap;

use crate::query::{Hop, Query};

/// A change of the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// A new vertex.
    AddVertex {
        /// Its number.
        vertex: i64,
        /// Its user id.
        id: i64,
        /// Its label.
        label: u8,
    },
    /// A new edge.
    AddEdge {
        /// Its number.
        edge: i64,
        /// Its user id.
        id: i64,
        /// Its label.
        label: u8,
        /// The source.
        out: i64,
        /// The target.
        in_: i64,
    },
    /// A value of a vertex.
    SetVertexValue {
        /// The vertex.
        vertex: i64,
        /// The id of the property.
        property: i64,
        /// The key.
        key: u8,
        /// The value.
        value: i64,
        /// Replaces what is under the key; otherwise added to it.
        alone: bool,
    },
    /// A value of an edge; replaces the one under the key.
    SetEdgeValue {
        /// The edge.
        edge: i64,
        /// The key.
        key: u8,
        /// The value.
        value: i64,
    },
    /// One property of a vertex goes.
    RemoveVertexProperty {
        /// The vertex.
        vertex: i64,
        /// The id of the property.
        property: i64,
    },
    /// The value of an edge under a key goes.
    RemoveEdgeValue {
        /// The edge.
        edge: i64,
        /// The key.
        key: u8,
    },
    /// A vertex goes, with its edges.
    RemoveVertex(i64),
    /// An edge goes.
    RemoveEdge(i64),
}

/// A property graph in maps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NaiveGraph {
    vertices: BTreeMap<i64, NaiveVertex>,
    edges: BTreeMap<i64, NaiveEdge>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct NaiveVertex {
    id: i64,
    label: u8,
    /// Property, key and value, in the order in which they were set.
    properties: Vec<(i64, u8, i64)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct NaiveEdge {
    id: i64,
    label: u8,
    out: i64,
    in_: i64,
    values: BTreeMap<u8, i64>,
}

impl NaiveVertex {
    fn has(&self, key: u8, value: i64) -> bool {
        self.properties.iter().any(|property| property.1 == key && property.2 == value)
    }
}

impl NaiveGraph {
    /// Changes the graph. Errors: the change is impossible in this state, which no serial order can explain.
    pub fn apply(&mut self, write: &Write) -> Result<(), String> {
        let missing = |what: &str, number: i64| format!("there is no {what} {number}");
        match *write {
            Write::AddVertex { vertex, id, label } => {
                if self.vertices.values().any(|other| other.id == id) {
                    return Err(format!("the vertex id {id} is taken"));
                }
                let added = NaiveVertex { id, label, properties: Vec::new() };
                if self.vertices.insert(vertex, added).is_some() {
                    return Err(format!("the vertex number {vertex} is given twice"));
                }
            }
            Write::AddEdge { edge, id, label, out, in_ } => {
                for end in [out, in_] {
                    if !self.vertices.contains_key(&end) {
                        return Err(missing("vertex", end));
                    }
                }
                if self.edges.values().any(|other| other.id == id) {
                    return Err(format!("the edge id {id} is taken"));
                }
                let added = NaiveEdge { id, label, out, in_, values: BTreeMap::new() };
                if self.edges.insert(edge, added).is_some() {
                    return Err(format!("the edge number {edge} is given twice"));
                }
            }
            Write::SetVertexValue { vertex, property, key, value, alone } => {
                let row = self.vertices.get_mut(&vertex).ok_or_else(|| missing("vertex", vertex))?;
                row.properties.retain(|existing| !(alone && existing.1 == key));
                row.properties.push((property, key, value));
            }
            Write::SetEdgeValue { edge, key, value } => {
                let row = self.edges.get_mut(&edge).ok_or_else(|| missing("edge", edge))?;
                row.values.insert(key, value);
            }
            Write::RemoveVertexProperty { vertex, property } => {
                let row = self.vertices.get_mut(&vertex).ok_or_else(|| missing("vertex", vertex))?;
                row.properties.retain(|existing| existing.0 != property);
            }
            Write::RemoveEdgeValue { edge, key } => {
                let row = self.edges.get_mut(&edge).ok_or_else(|| missing("edge", edge))?;
                row.values.remove(&key);
            }
            Write::RemoveVertex(vertex) => {
                self.vertices.remove(&vertex).ok_or_else(|| missing("vertex", vertex))?;
                self.edges.retain(|_, edge| edge.out != vertex && edge.in_ != vertex);
            }
            Write::RemoveEdge(edge) => {
                self.edges.remove(&edge).ok_or_else(|| missing("edge", edge))?;
            }
        }
        Ok(())
    }

    /// True if the graphs differ in nothing but the ids of properties.
    pub fn has_same_content(&self, other: &NaiveGraph) -> bool {
        let same = |((a, left), (b, right)): ((&i64, &NaiveVertex), (&i64, &NaiveVertex))| {
            let values = |row: &NaiveVertex| row.properties.iter().map(|entry| (entry.1, entry.2)).collect::<Vec<_>>();
            (a, left.id, left.label) == (b, right.id, right.label) && values(left) == values(right)
        };
        self.edges == other.edges
            && self.vertices.len() == other.vertices.len()
            && self.vertices.iter().zip(&other.vertices).all(same)
    }

    /// The answer to a question, in the form that [`crate::query::ask`] gives.
    pub fn answer(&self, query: &Query) -> Vec<i64> {
        let mut answer = match *query {
            Query::VertexWithId(id) => self.vertices_that(|vertex| vertex.id == id),
            Query::EdgeWithId(id) => self.edges_that(|_, edge| edge.id == id),
            Query::VertexLabel(vertex) => self.vertices.get(&vertex).map(|row| row.label.into()).into_iter().collect(),
            Query::VertexValues { vertex, key } => {
                let Some(row) = self.vertices.get(&vertex) else { return Vec::new() };
                let under_key = row.properties.iter().filter(|property| property.1 == key);
                // The order of properties is an answer too.
                return under_key.map(|property| property.2).collect();
            }
            Query::WithValue { label, key, value } => {
                self.vertices_that(|vertex| label.is_none_or(|label| label == vertex.label) && vertex.has(key, value))
            }
            Query::LabelledWithValue { label, key, value } => {
                self.vertices_that(|vertex| label == vertex.label && vertex.has(key, value))
            }
            Query::WithLabel(label) => self.vertices_that(|vertex| vertex.label == label),
            Query::AllVertices => self.vertices_that(|_| true),
            Query::AllEdges => self.edges_that(|_, _| true),
            Query::HalfEdges { vertex, hop } => {
                return flat(&mut self.half_edges(vertex, hop));
            }
            Query::TwoHops { vertex, hop } => {
                let first = self.half_edges(vertex, hop);
                first.into_iter().flat_map(|(_, next)| self.half_edges(next, hop)).map(|(_, end)| end).collect()
            }
            Query::Degree { vertex, hop } => vec![self.half_edges(vertex, hop).len() as i64],
            Query::EdgeBetween { out, in_, label } => {
                let between = |edge: &NaiveEdge| edge.out == out && edge.in_ == in_ && edge.label == label;
                let mut edges = self.edges_that(|_, edge| between(edge));
                edges.truncate(1);
                edges
            }
            Query::EdgeEnds(edge) => {
                let row = self.edges.get(&edge);
                return row.map(|edge| vec![edge.label.into(), edge.out, edge.in_]).unwrap_or_default();
            }
            Query::EdgeValue { edge, key } => {
                let value = self.edges.get(&edge).and_then(|edge| edge.values.get(&key));
                value.copied().into_iter().collect()
            }
            Query::VertexCount => vec![self.vertices.len() as i64],
            Query::VertexCountWithLabel(label) => {
                vec![self.vertices_that(|vertex| vertex.label == label).len() as i64]
            }
            Query::EdgeCount => vec![self.edges.len() as i64],
            Query::EdgeCountWithLabel(label) => vec![self.edges_that(|_, edge| edge.label == label).len() as i64],
        };
        answer.sort_unstable();
        answer
    }

    fn vertices_that(&self, keep: impl Fn(&NaiveVertex) -> bool) -> Vec<i64> {
        self.vertices.iter().filter(|(_, vertex)| keep(vertex)).map(|(number, _)| *number).collect()
    }

    fn edges_that(&self, keep: impl Fn(i64, &NaiveEdge) -> bool) -> Vec<i64> {
        self.edges.iter().filter(|(number, edge)| keep(**number, edge)).map(|(number, _)| *number).collect()
    }

    /// Edge and neighbour of every half-edge; a loop has two.
    fn half_edges(&self, vertex: i64, hop: Hop) -> Vec<(i64, i64)> {
        let mut found = Vec::new();
        for (number, edge) in &self.edges {
            if hop.label.is_some_and(|label| label != edge.label) {
                continue;
            }
            if hop.follows_out() && edge.out == vertex {
                found.push((*number, edge.in_));
            }
            if hop.follows_in() && edge.in_ == vertex {
                found.push((*number, edge.out));
            }
        }
        found
    }
}

/// Pairs in ascending order, one number after the other.
pub(crate) fn flat(pairs: &mut [(i64, i64)]) -> Vec<i64> {
    pairs.sort_unstable();
    pairs.iter().flat_map(|(edge, neighbour)| [*edge, *neighbour]).collect()
}
