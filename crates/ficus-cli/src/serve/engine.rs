//! Where the server's questions meet the engine's answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use ficus_dataflow::ExecutorOptions;
use ficus_query::engine::{Engine, EngineOptions};
use ficus_query::services::ServiceRegistry;
use ficus_server::Backend;
use ficus_server::engine::EngineBackend;
use ficus_storage::{Graph, Store};

use super::settings::Settings;
use crate::failure::Failure;

/// Starts the engine over a store; the server asks it everything through [`Backend`]. Every graph is a traversal source
/// under its own name.
pub fn start_engine(store: &Arc<Store>, settings: &Settings) -> Result<Arc<dyn Backend>, Failure> {
    let engine = Engine::start(EngineOptions {
        executors: ExecutorOptions { executors: settings.engine.executor_count(), ..ExecutorOptions::default() },
        services: ServiceRegistry::default(),
        io_root: settings.engine.io_dir.clone(),
        random_seed: random_seed(),
    })
    .map_err(|error| Failure::failed(format!("the executors cannot be started: {error}")))?;
    let sources: BTreeMap<String, Arc<Graph>> =
        store.graph_names().into_iter().filter_map(|name| Some((name.clone(), store.graph(&name)?))).collect();
    Ok(Arc::new(EngineBackend::new(engine, store.clone(), sources, settings.engine.memory_limit_bytes)))
}

/// A seed that differs from start to start; random steps promise no more.
fn random_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one("ficus")
}
