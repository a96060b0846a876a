//! Programs that compute a value for every vertex of a projection.
//!
//! Two ways to write one: as a [vertex program](vertex_program), which says what a vertex tells its neighbours and what it makes of
//! what it hears, and as a [partition program](partition_program), which sees a whole range of vertices at a time and sends messages to
//! others. The algorithms here take whichever way costs least: PageRank is a vertex program, those whose
//! work moves from place to place (components, shortest paths, cores) are loops of their own.
//!
//! All run on the threads of the pool they are called in, ask their [`Control`](crate::Control) between ranges of some hundred microseconds
//! of work, and tell it their progress. Results are indexed by [`Place`](crate::Place). They depend on the
//! projection only, not on the number of threads, unless a program says otherwise.
//!
//! Source of the two interfaces: Zhou et al., "C-Graph", ICPP 2018, listings 1 to 3.

pub mod betweenness;
pub mod components;
pub mod cores;
pub mod degree;
pub mod label_propagation;
pub mod least_reaching;
pub mod page_rank;
pub mod partition_program;
pub mod path_search;
pub mod peer_pressure;
mod ranges;
pub mod shortest_paths;
pub mod simple;
pub mod triangles;
pub mod vertex_program;
pub mod weights;

pub use betweenness::{BetweennessOptions, betweenness};
pub use components::{strong_components, weak_components};
pub use cores::core_numbers;
pub use degree::degrees;
pub use label_propagation::{LabelPropagationOptions, label_propagation};
pub use least_reaching::least_reaching;
pub use page_rank::{PageRank, PageRankOptions, page_rank};
pub use partition_program::{Partition, PartitionProgram, run_partitions};
pub use path_search::{ListedEdge, ListedWays, PathsTo, StepBack, UnitWays, Ways, distances, steps_back};
pub use peer_pressure::{PeerPressureOptions, peer_pressure};
pub use shortest_paths::{ShortestPathOptions, shortest_distances};
pub use simple::SimpleAdjacency;
pub use triangles::{Triangles, triangles};
pub use vertex_program::{EdgeAt, Outcome, Shareable, VertexProgram, run_asynchronous, run_synchronous};
pub use weights::Weights;
