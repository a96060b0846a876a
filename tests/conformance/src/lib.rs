//! Tests of a running server from outside: TinkerPop's feature suite over the wire, `kill -9` under load, and clients
//! that mean harm.
//!
//! ```text
//! feature files ──► gherkin ──► scenario (steps) ──► world ──► client ──► server
//!                                  │ notation: d[1].i, v[marko] …   │
//!                                  └────────── matching ◄───────────┘ results
//! ```
//!
//! *Architecture Invariant:* a client like any other. It knows the protocol and nothing of the engine, so the same runner
//! judges any Gremlin server.
#![forbid(unsafe_code)]

pub mod client;
mod date_text;
pub mod features;
pub mod gherkin;
pub mod kill9;
mod loose_json;
pub mod matching;
pub mod notation;
pub mod report;
pub mod server_process;
pub mod skips;
pub mod world;
