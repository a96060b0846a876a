//! The engine behind the server: programs become plans, plans run, transactions live between requests.
//!
//! ```text
//!   Query ── program.rs ──▶ statements ── run.rs ──▶ Engine (executors) ──▶ rows ──▶ EventSink
//!                                          │
//!                                  transactions.rs: one of its own, or a session's
//! ```

mod archive;
mod failure;
mod partial;
mod passes;
mod past;
mod program;
mod program_cache;
mod queries;
mod query_services;
mod retry;
mod run;
mod server_source;
mod sources;
mod time_limit;
mod transactions;

use std::collections::BTreeMap;
use std::sync::Arc;

use ficus_dataflow::CancelToken;
use ficus_query::engine::Engine;
use ficus_storage::{Graph, Store};

use crate::backend::{Backend, Callback, CancelHandle, Failure, Health, Query, TransactionKey};
use crate::catalogue;
use crate::event::EventSink;
use crate::tenants::Tenants;
use crate::transfer::GraphService;

use self::program_cache::ProgramCache;
use self::server_source::ServerSource;
use self::transactions::Transactions;

pub use self::queries::Queries;
pub use self::query_services::register as register_query_services;
pub use self::server_source::SERVER_SOURCE;
pub use self::sources::Sources;

/// Texts from this size on are parsed on a thread of their own, so that a connection's thread is not held up.
const PARSE_ASIDE_BYTES: usize = 64 << 10;

/// A [`Backend`] over a store.
pub struct EngineBackend {
    shared: Arc<Shared>,
    graphs: Option<Arc<dyn GraphService>>,
}

/// What queries share.
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) store: Arc<Store>,
    /// Graphs by the name of their traversal source.
    pub(crate) sources: Arc<Sources>,
    pub(crate) server_source: ServerSource,
    pub(crate) transactions: Transactions,
    pub(crate) programs: ProgramCache,
    pub(crate) memory_limit_bytes: usize,
    pub(crate) retries: retry::RetryCounters,
    pub(crate) queries: Arc<Queries>,
}

impl EngineBackend {
    /// A backend that serves `sources`; `queries` keeps the list of what runs, for it and for the services that
    /// [`register_query_services`] has added to the engine's.
    pub fn new(
        engine: Engine,
        store: Arc<Store>,
        sources: BTreeMap<String, Arc<Graph>>,
        memory_limit_bytes: usize,
        queries: Arc<Queries>,
    ) -> EngineBackend {
        queries.set_memory(engine.memory().clone());
        let shared = Shared {
            engine,
            store,
            sources: Arc::new(Sources::new(sources)),
            server_source: ServerSource::default(),
            transactions: Transactions::default(),
            programs: ProgramCache::default(),
            memory_limit_bytes,
            retries: retry::RetryCounters::default(),
            queries,
        };
        EngineBackend { shared: Arc::new(shared), graphs: None }
    }

    /// The traversal sources, to which others may be added.
    pub fn sources(&self) -> Arc<Sources> {
        self.shared.sources.clone()
    }

    /// Has a service answer for graphs as wholes.
    #[must_use]
    pub fn with_graphs(mut self, graphs: Arc<dyn GraphService>) -> EngineBackend {
        self.graphs = Some(graphs);
        self
    }

    /// Walks of several hops are streams of walks, unless a query asks for searches by `with('ficus.khop', true)`.
    #[must_use]
    pub fn streaming_walks(mut self) -> EngineBackend {
        Arc::get_mut(&mut self.shared).expect("it serves nobody yet").programs.streams_walks = true;
        self
    }
}

impl Backend for EngineBackend {
    fn start(&self, query: Query, events: EventSink) -> CancelHandle {
        let cancel = CancelToken::default();
        let handle = run::CancelSwitch::new(cancel.clone());
        let switch = handle.clone();
        let shared = self.shared.clone();
        let is_large =
            matches!(&query.program, crate::Program::Text { gremlin, .. } if gremlin.len() >= PARSE_ASIDE_BYTES);
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) if is_large => {
                runtime.spawn_blocking(move || run::start(&shared, query, events, cancel, &switch));
            }
            _ => run::start(&shared, query, events, cancel, &switch),
        }
        CancelHandle::new(move || handle.cancel())
    }

    fn open_transaction(&self, source: &str) -> Result<TransactionKey, Failure> {
        let graph = self.shared.sources.get(source).ok_or_else(|| {
            Failure::new(&catalogue::UNKNOWN_SOURCE, format!("there is no traversal source [{source}]"))
        })?;
        Ok(self.shared.transactions.open(&graph))
    }

    fn finish_transaction(&self, key: TransactionKey, commit: bool, done: Callback) {
        let shared = self.shared.clone();
        let counted = move |outcome: Result<(), Failure>| {
            if let Err(failure) = &outcome {
                shared.retries.conflict_if(failure);
            }
            done(outcome);
        };
        self.shared.transactions.finish(key, commit, Box::new(counted));
    }

    fn sources(&self) -> Vec<String> {
        self.shared.sources.all().keys().cloned().collect()
    }

    fn has_source(&self, name: &str) -> bool {
        name == SERVER_SOURCE || self.shared.sources.has(name)
    }

    fn graphs(&self) -> Option<Arc<dyn GraphService>> {
        self.graphs.clone()
    }

    fn set_tenants(&self, tenants: &Arc<Tenants>) {
        self.shared.queries.set_tenants(tenants.clone());
    }

    fn health(&self) -> Health {
        Health { ready: true, writable: self.shared.store.writable().map_err(|error| error.to_string()) }
    }

    fn write_metrics(&self, out: &mut String) {
        use std::fmt::Write;
        let _ = writeln!(out, "# HELP ficus_queries_active Queries that are running or waiting for their client.");
        let _ = writeln!(out, "# TYPE ficus_queries_active gauge");
        let _ = writeln!(out, "ficus_queries_active {}", self.shared.engine.load());
        let help = "Times that an executor with nothing to do was given a part of a query.";
        let _ = writeln!(out, "# HELP ficus_spread_helpers_total {help}");
        let _ = writeln!(out, "# TYPE ficus_spread_helpers_total counter");
        let _ = writeln!(out, "ficus_spread_helpers_total {}", self.shared.engine.times_spread());
        let help = "Times that a step took so long that the other queries of its executor went on at another thread.";
        let _ = writeln!(out, "# HELP ficus_executor_reliefs_total {help}");
        let _ = writeln!(out, "# TYPE ficus_executor_reliefs_total counter");
        let _ = writeln!(out, "ficus_executor_reliefs_total {}", self.shared.engine.times_relieved());
        self.shared.queries.write_metrics(out);
        self.shared.retries.write(out);
        let age = self.shared.store.oldest_snapshot_age().as_secs_f64();
        let help = "Time since the oldest state that is still being read was replaced by a newer one.";
        let _ = writeln!(out, "# HELP ficus_oldest_snapshot_age_seconds {help}");
        let _ = writeln!(out, "# TYPE ficus_oldest_snapshot_age_seconds gauge");
        let _ = writeln!(out, "ficus_oldest_snapshot_age_seconds {age}");
        let store = &self.shared.store;
        let help = "1 if the last checkpoint failed; the log grows until one can be taken.";
        let _ = writeln!(out, "# HELP ficus_checkpoint_failed {help}");
        let _ = writeln!(out, "# TYPE ficus_checkpoint_failed gauge");
        let _ = writeln!(out, "ficus_checkpoint_failed {}", u8::from(store.checkpoint_failure().is_some()));
        let help = "Damaged checkpoints that the start passed over.";
        let _ = writeln!(out, "# HELP ficus_checkpoints_passed_over {help}");
        let _ = writeln!(out, "# TYPE ficus_checkpoints_passed_over gauge");
        let _ = writeln!(out, "ficus_checkpoints_passed_over {}", store.recovery().passed_over.len());
        if let Some(status) = store.archive_status() {
            archive::write(&status, out);
        }
        if let Some(analytics) = self.shared.engine.analytics() {
            passes::write(analytics, out);
        }
        if let Some(graphs) = &self.graphs {
            graphs.write_metrics(out);
        }
        let sources = self.shared.sources.all();
        let _ = writeln!(out, "# HELP ficus_graph_vertices Vertices by graph.");
        let _ = writeln!(out, "# TYPE ficus_graph_vertices gauge");
        for (name, graph) in &*sources {
            let _ = writeln!(out, "ficus_graph_vertices{{source=\"{name}\"}} {}", graph.vertex_count());
        }
        let _ = writeln!(out, "# HELP ficus_graph_edges Edges by graph.");
        let _ = writeln!(out, "# TYPE ficus_graph_edges gauge");
        for (name, graph) in &*sources {
            let _ = writeln!(out, "ficus_graph_edges{{source=\"{name}\"}} {}", graph.edge_count());
        }
        let help = "1 if a file of the graph was found damaged, so that it is neither read nor written.";
        let _ = writeln!(out, "# HELP ficus_graph_damaged {help}");
        let _ = writeln!(out, "# TYPE ficus_graph_damaged gauge");
        for (name, graph) in &*sources {
            let _ = writeln!(out, "ficus_graph_damaged{{source=\"{name}\"}} {}", u8::from(graph.damage().is_some()));
        }
    }
}
