//! A store on a simulated disk, for tests of what lies in two tablets.

use std::sync::Arc;

use crate::simulated_disk::SimulatedDisk;
use crate::{Environment, Graph, Random, Store, StoreOptions, SystemClock};

struct NoRandom;

impl Random for NoRandom {
    fn number(&self) -> u64 {
        7
    }
}

/// Opens the store that is on the disk, or makes one, with its graph.
pub(crate) fn open(disk: &SimulatedDisk) -> (Arc<Store>, Arc<Graph>) {
    let environment = Environment {
        clock: Arc::new(SystemClock),
        disk: Some(Arc::new(disk.clone())),
        random: Arc::new(NoRandom),
        spawn: None,
    };
    let options = StoreOptions { tablet_bits: 1, ..StoreOptions::default() };
    let store = Store::open(options, environment).unwrap();
    let graph = store.graph("g").unwrap_or_else(|| store.create_graph("g").unwrap());
    (store, graph)
}
