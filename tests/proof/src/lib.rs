//! Proof that the store keeps its promises.
//!
//! * [`workload`] runs random transactions of many clients and writes down what each saw, did and was told: a history.
//! * [`order`] checks a history against the order that the store claims, by replaying it on a [`naive`] graph.
//! * [`search`] checks a small history without believing any claim: it looks for any order that explains it.
//! * [`crash`] runs a store on a simulated disk that fails and loses power, and holds what comes up against what was promised.
//!
//! Everything goes through the public interface of the store, and repeats from a seed where no threads are involved.
#![forbid(unsafe_code)]

pub mod crash;
pub mod history;
pub mod naive;
pub mod order;
pub mod query;
pub mod run;
pub mod search;
pub mod workload;
pub mod world;
