//! The traversal source of the server itself, of which its queries can be asked whatever graphs there are: none, damaged ones, or others than one knows.
//!
//! It is not listed among the sources, since it has no graph that anybody could read or write: only calls of the services that look after queries
//! are let through.

use std::sync::{Arc, OnceLock};

use ficus_storage::{Environment, Graph, Store, StoreOptions};

use crate::backend::Failure;
use crate::catalogue;

/// Its name, which no graph can have.
pub const SERVER_SOURCE: &str = "ficus:server";

/// What stands behind it.
#[derive(Default)]
pub(crate) struct ServerSource(OnceLock<Option<(Arc<Store>, Arc<Graph>)>>);

impl ServerSource {
    /// An empty graph in memory, made when it is asked for the first time: a query reads some graph, even if it does not look at it.
    pub fn graph(&self) -> Result<Arc<Graph>, Failure> {
        let made = self.0.get_or_init(|| {
            let made = Store::open(StoreOptions::default(), Environment::in_memory())
                .and_then(|store| store.create_graph("server").map(|graph| (store, graph)));
            made.inspect_err(|error| tracing::error!(%error, "there is no graph for the server's own queries")).ok()
        });
        let graph = made.as_ref().map(|(_, graph)| graph.clone());
        graph.ok_or_else(|| {
            Failure::new(&catalogue::INTERNAL, format!("[{SERVER_SOURCE}] cannot be asked; the log tells why"))
        })
    }

    /// The failure of whoever asks for anything else there.
    pub fn refusal() -> Failure {
        let message = format!(
            "[{SERVER_SOURCE}] has no graph; it answers call('ficus.queries'), call('ficus.tenants') and call('ficus.kill') only"
        );
        Failure::new(&catalogue::UNKNOWN_SOURCE, message)
    }
}
