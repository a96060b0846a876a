//! Where the server's questions meet the engine's answers.

use std::sync::Arc;

use ficus_dataflow::{ExecutorOptions, SpreadOptions};
use ficus_query::engine::{Engine, EngineOptions};
use ficus_query::services::ServiceRegistry;
use ficus_server::engine::{EngineBackend, Queries, register_query_services};
use ficus_storage::Store;

use super::files::GraphDocuments;
use super::settings::{EngineSettings, KHop};
use crate::allocator;
use crate::failure::Failure;

/// Starts the executors; a binary that asks the engine itself uses this too.
pub fn start_executors(settings: &EngineSettings) -> Result<Engine, Failure> {
    start_with(settings, ServiceRegistry::standard())
}

fn start_with(settings: &EngineSettings, services: ServiceRegistry) -> Result<Engine, Failure> {
    let spread = SpreadOptions { is_on: settings.spread, ..SpreadOptions::default() };
    let prepare_thread: fn(usize) = if settings.pinned { pin_to_core } else { |_| {} };
    let executors =
        ExecutorOptions { executors: settings.executor_count(), spread, prepare_thread, ..ExecutorOptions::default() };
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

/// Keeps the calling thread, the executor of this number, on a core of its own if the process may use so many. Otherwise the operating system wakes an
/// executor that is to help on the core of the one that asks, where it cannot.
#[cfg(target_os = "linux")]
fn pin_to_core(executor: usize) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let core = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).nth(executor);
    let Some(core) = core else { return };
    let mut own = CpuSet::new();
    own.set(core);
    // Where that is not allowed, executors go where they are put.
    let _ = sched_setaffinity(None, &own);
}

/// Other systems place threads themselves.
#[cfg(not(target_os = "linux"))]
fn pin_to_core(_executor: usize) {}

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
