//! Gremlin over WebSocket and HTTP: sessions, limits, authentication.
//!
//! ```text
//! TCP ─► (TLS) ─► HTTP/1.1 ─┬─► GET, POST /gremlin ─► http_request ─┐
//!                           ├─► /health/…, /metrics                 ├─► operation ─► running ─► Backend
//!                           └─► WebSocket ─► conversation ──────────┘
//!                                                Backend ─► event ─► rows ─► answer ─► bytes
//! ```
//!
//! What the protocol allows and how it is answered is described in `docs/protocol.md`, every error in `docs/errors.md`.
//!
//! *Architecture Invariant:* this crate knows sockets, sessions and limits. It never parses Gremlin; what a query means is
//! asked of the [`Backend`]. Nothing here blocks a network thread.
#![forbid(unsafe_code)]

mod answer;
mod authentication;
pub mod backend;
pub mod catalogue;
mod config;
mod conversation;
pub mod engine;
pub mod event;
mod frames;
mod http;
mod http_body;
mod http_graphs;
mod http_request;
mod inflow;
mod metrics;
mod negotiation;
mod operation;
mod origin;
mod patience;
mod plain_json;
mod rows;
mod running;
mod server;
mod session;
mod shared;
mod strangers;
mod tenants;
mod text_plain;
mod tls;
pub mod transfer;
mod transport;
mod web_socket;

pub use authentication::hash_password;
pub use backend::{Backend, Callback, CancelHandle, Failure, Health, Materialize, Program, Query, TransactionKey};
pub use config::{LimitsConfig, ServerConfig, TenantConfig, TimeoutsConfig, TlsConfig, UserConfig};
pub use event::{Batch, Completion, Event, EventSink, Push};
pub use http_graphs::no_such_graph;
pub use server::{BoundServer, ServeError, TakenAddress, bind, serve, take_address};
pub use tenants::{Asker, Tenant, Tenants};
