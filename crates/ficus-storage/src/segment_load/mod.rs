//! Builds the base segments of a graph that has no elements yet, without the commit thread and its log.
//!
//! ```text
//! threads ─▶ VertexChunk ─▶ VertexLoad ─┬─▶ VertexDirectory ─▶ threads ─▶ EdgeChunk ─▶ EdgeLoad ─▶ sort ─▶ segments
//!                                       └────────────────────────────────────────────────▲
//! ```
//! All vertices come before the first edge. Chunks are filled by any threads and handed over in the order of the input, so
//! the graph does not depend on the number of threads: the n-th vertex gets id n, and an edge's sequence is its place in the
//! order (tablet, slot, label, input). Sequences, made user ids and property ids therefore follow the columns of the
//! segments and cost nothing there.
//!
//! Memory: 13 bytes a vertex, 8 bytes a plain edge, and encoded properties as they came, those of vertices tablet by tablet so
//! that building a tablet reads them in order and gives them back; while edges are sorted 13 to 21 bytes an edge. Two finished
//! tablets at a time are held per thread. Vertices and edges are limited to 2^32 − 2 each.

mod build;
mod chunk;
mod edge_rows;
mod edge_sort;
mod ids;
mod loader;
mod prefixes;
mod tablet_rows;
#[cfg(test)]
mod tests;

pub use chunk::{ChunkWord, EdgeChunk, LoadProperty, LoadValue, VertexChunk};
pub use ids::LoadId;
pub use loader::{EdgeLoad, RefusedRow, VertexDirectory, VertexLoad};
pub use prefixes::{IdPrefix, IdPrefixes};
