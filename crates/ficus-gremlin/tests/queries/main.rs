//! Queries from text to rows, over the small graph of TinkerPop's documentation.
//!
//! `golden` compares rows with literal ones; `differential` compares each query with itself: other batch sizes, rules off.

mod ahead;
mod caps;
mod damaged;
mod differential;
mod edges_between;
mod everyday;
mod golden;
mod graph_programs;
mod hostile;
mod in_place;
mod indexed;
mod k_hop;
mod k_hop_conditions;
mod k_hop_seen;
mod loops;
mod match_line;
mod modern;
mod phrases;
mod programs;
mod rings;
mod runner;
mod samples;
mod scans;
mod scopes;
mod sorted;
mod spread;
