//! Whole graphs as TinkerPop's GraphSON files have them: one vertex per line, with its edges in both directions.
//!
//! ```text
//! {"id":1,"label":"person","outE":{"knows":[{"id":7,"inV":2,"properties":{"weight":0.5}}]},"properties":{"name":[…]}}
//! ```
//!
//! Every edge stands in two lines, its source's `outE` and its target's `inE`; a loader takes one of them. Lines can be
//! read in any order and in parallel.

use std::sync::Arc;

use ficus_model::{DetachedProperty, DetachedVertexProperty, Value};

use crate::graphson::{Reader, Style, Writer};
use crate::{DecodeError, EncodeError, Format, Limits};

/// A vertex with everything at it: one line of a GraphSON file.
#[derive(Clone, Debug)]
pub struct AdjacentVertex {
    /// The user's id.
    pub id: Value,
    /// The label.
    pub label: Arc<str>,
    /// Properties with their meta-properties.
    pub properties: Vec<DetachedVertexProperty>,
    /// Edges that leave it.
    pub out_edges: Vec<AdjacentEdge>,
    /// Edges that reach it.
    pub in_edges: Vec<AdjacentEdge>,
}

/// An edge seen from one of its ends.
#[derive(Clone, Debug)]
pub struct AdjacentEdge {
    /// The user's id.
    pub id: Value,
    /// The label.
    pub label: Arc<str>,
    /// Id of the vertex at the other end.
    pub other_id: Value,
    /// Properties.
    pub properties: Vec<DetachedProperty>,
}

/// Reads one line. `format` is a GraphSON version; what has a type in it is read by that type whatever the version.
pub fn parse_line(format: Format, line: &[u8], limits: &Limits) -> Result<AdjacentVertex, Box<DecodeError>> {
    let mut reader = Reader::new(Style::of(format), line, limits);
    let vertex = reader.adjacent_vertex().and_then(|vertex| reader.finish().map(|()| vertex));
    vertex.map_err(|mut error| {
        error.format = Some(format);
        error
    })
}

/// Appends one line without its line break; on error `out` is as it was before. Edges are grouped by label.
pub fn write_line(format: Format, vertex: &AdjacentVertex, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let start = out.len();
    Writer::new(Style::of(format), out).adjacent_vertex(vertex).inspect_err(|_| out.truncate(start))
}
