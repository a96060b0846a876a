//! Many traversals of one graph at once, and programs that run where the data is.
//!
//! A [`Projection`] is the topology of one snapshot in a form made for passes over all of it: vertices renumbered by
//! descending degree, neighbours of each in both directions as plain arrays. A [pass](multi_source) answers up to 512 k-hop
//! questions together, a bit for each, and reads every edge at most once a hop for all of them; a question that is alone
//! is answered by a [search of its own](single_source) with a bit per vertex. Shortest paths between two vertices are searched for [from both ends](two_sided).
//! [Programs](programs) compute a value for every vertex.
//!
//! Source: Zhou et al., "C-Graph: A Highly Efficient Concurrent Graph Reachability Query Framework", ICPP 2018; direction
//! switching after Beamer et al., "Direction-Optimizing Breadth-First Search", SC 2012; bits of many searches in one word
//! after Then et al., "The More the Merrier: Efficient Multi-Source Graph Traversal", VLDB 2014.

#![forbid(unsafe_code)]

pub mod column_counter;
pub mod control;
pub mod error;
pub mod filter;
mod large_array;
pub mod multi_source;
pub mod own_search;
pub mod programs;
pub mod projection;
pub mod question;
pub mod service;
pub mod single_source;
pub mod two_sided;

pub use control::{Control, Unlimited};
pub use error::AnalyticsError;
pub use filter::{EdgeFilter, Filter, VertexFilter};
pub use own_search::{Advance, Entry, HopEdges, OnProjection, OnStore, OnTestedEdges, OwnSearch};
pub use projection::{Adjacency, Place, Projection, ProjectionOptions, Sides};
pub use question::{Answer, Hops, Question, Walk, answer};
pub use service::{Analytics, AnalyticsOptions, KHopReply, KHopRequest, Line};
pub use two_sided::{BothWays, TwoSidedSearch};
