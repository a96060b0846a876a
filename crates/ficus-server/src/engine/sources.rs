//! The traversal sources of a server: graphs by name, to which others may be added while it runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use ficus_storage::Graph;

/// Graphs by the name of their traversal source. Reading waits for nobody.
#[derive(Default)]
pub struct Sources(ArcSwap<BTreeMap<String, Arc<Graph>>>);

impl Sources {
    /// Those of a server that starts.
    pub fn new(graphs: BTreeMap<String, Arc<Graph>>) -> Sources {
        Sources(ArcSwap::from_pointee(graphs))
    }

    /// The graph behind a name.
    pub fn get(&self, name: &str) -> Option<Arc<Graph>> {
        self.0.load().get(name).cloned()
    }

    /// Whether there is one of this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.load().contains_key(name)
    }

    /// All of now, in the order of their names.
    pub fn all(&self) -> Arc<BTreeMap<String, Arc<Graph>>> {
        self.0.load_full()
    }

    /// Makes a graph a source of its own name, for requests from now on.
    pub fn add(&self, graph: &Arc<Graph>) {
        self.0.rcu(|sources| {
            let mut sources = BTreeMap::clone(sources);
            sources.insert(graph.name().to_owned(), graph.clone());
            sources
        });
    }

    /// Takes a name away from requests to come; those that run keep their graph.
    pub fn remove(&self, name: &str) {
        self.0.rcu(|sources| {
            let mut sources = BTreeMap::clone(sources);
            sources.remove(name);
            sources
        });
    }
}
