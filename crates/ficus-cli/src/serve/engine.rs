//! Where the server's questions meet the engine's answers.

use std::sync::Arc;

use ficus_dataflow::{ExecutorOptions, SpreadOptions, ThreadHooks};
use ficus_query::engine::{Engine, EngineOptions};
use ficus_query::services::ServiceRegistry;
use ficus_server::engine::{EngineBackend, Queries, register_query_services};
use ficus_storage::Store;

use super::files::GraphDocuments;
use super::settings::{EngineSettings, KHop};
use super::threads;
use crate::allocator;
use crate::failure::Failure;

/// Starts the executors; a binary that asks the engine itself uses this too.
pub fn start_executors(settings: &EngineSettings) -> Result<Engine, Failure> {
    start_with(settings, ServiceRegistry::standard())
}

fn start_with(settings: &EngineSettings, services: ServiceRegistry) -> Result<Engine, Failure> {
    let spread = SpreadOptions { is_on: settings.spread, ..SpreadOptions::default() };
    let begins = if settings.pinned { threads::begin_pinned } else { threads::begin };
    let threads = ThreadHooks { begins, is_relieved: threads::step_back };
    let executors =
        ExecutorOptions { executors: settings.executor_count(), spread, threads, ..ExecutorOptions::default() };
    // Where unseeded random numbers begin is nobody's business; queries that want to repeat give a seed.
    let random_seed = uuid::Uuid::new_v4().as_u64_pair().1;
    let options = EngineOptions {
        executors,
        services,
        analytics: Some(settings.analytics()),
        io_root: settings.io_dir.clone(),
        files: Some(Arc::new(GraphDocuments)),
        random_seed,
        queries_memory_bytes: settings.queries_memory(),
        memory_freed: Some(allocator::query_freed),
    };
    Engine::start(options).map_err(|error| Failure::failed(format!("the executors cannot be started: {error}")))
}

/// Starts the engine over a store; the server asks it everything through [`ficus_server::Backend`]. Every graph of the store is a
/// traversal source of its own name.
pub fn start_engine(store: &Arc<Store>, settings: &EngineSettings) -> Result<EngineBackend, Failure> {
    let names = store.graph_names().into_iter();
    let sources = names.filter_map(|name| store.graph(&name).map(|graph| (name, graph))).collect();
    let queries = Arc::new(Queries::new(settings.queries_limit()));
    let mut services = ServiceRegistry::standard();
    register_query_services(&mut services, &queries);
    let engine = start_with(settings, services)?;
    let backend = EngineBackend::new(engine, store.clone(), sources, settings.memory_limit_bytes, queries);
    Ok(if settings.khop == KHop::Off { backend.streaming_walks() } else { backend })
}
