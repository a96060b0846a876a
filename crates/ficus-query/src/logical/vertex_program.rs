//! Programs over the whole graph, as a plan names them.

use std::sync::Arc;

use super::{Name, Traversal};

/// A program over the whole graph: `pageRank()` and its kin.
#[derive(Clone, Debug, PartialEq)]
pub struct VertexProgram {
    /// Which.
    pub kind: VertexProgramKind,
    /// The property key under which vertices have what it computed; a shortest path is no property.
    pub property: Name,
    /// The edges it goes along: a hop to edges, and filters behind it.
    pub edges: Arc<Traversal>,
    /// Whether steps before it, other than a `V()` in front and other programs, chose where traversers stand: then their
    /// numbers are the ranks to begin with and the strengths of votes.
    pub is_behind_steps: bool,
}

/// What a [`VertexProgram`] computes.
#[derive(Clone, Debug, PartialEq)]
pub enum VertexProgramKind {
    /// `pageRank(alpha)`.
    PageRank {
        /** With which probability a walker goes on. */
        alpha: f64,
        /** Iterations at most. */
        times: u32,
    },
    /// `connectedComponent()`.
    ConnectedComponent,
    /// `peerPressure()`.
    PeerPressure {
        /** Rounds at most. */
        times: u32,
    },
    /// `shortestPath()`.
    ShortestPath {
        /** Paths end at vertices for which it yields something. */
        target: Arc<Traversal>,
        /** The length of an edge; none: 1 each. */
        distance: Option<Arc<Traversal>>,
        /** Longer paths are left out. */
        distance_limit: Option<f64>,
        /** Whether paths hold the edges too. */
        include_edges: bool,
    },
}
