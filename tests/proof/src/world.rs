//! Stores to prove: where they live and how they are opened.

use std::sync::{Arc, Mutex, PoisonError};

use ficus_storage::simulated_disk::{Seeded, SimulatedDisk};
use ficus_storage::{Disk, Environment, Random, Spawn, Store, StoreError, StoreOptions, SystemClock, SystemThreads};

/// Random numbers of the store, from a seed.
struct FixedRandom(Mutex<Seeded>);

impl Random for FixedRandom {
    fn number(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).number()
    }
}

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct World {
    /// Where it is kept; `None` is memory.
    pub disk: Option<SimulatedDisk>,
    /// With threads of its own, or repeatable from the seed.
    pub has_threads: bool,
    /// Its options.
    pub options: StoreOptions,
}

impl World {
    /// Opens the store. `seed` decides its random numbers.
    pub fn open(&self, seed: u64) -> Result<Arc<Store>, StoreError> {
        let disk = self.disk.clone().map(|disk| Arc::new(disk) as Arc<dyn Disk>);
        let environment = Environment {
            clock: Arc::new(SystemClock),
            disk,
            random: Arc::new(FixedRandom(Mutex::new(Seeded::new(seed)))),
            spawn: self.has_threads.then(|| Arc::new(SystemThreads) as Arc<dyn Spawn>),
        };
        Store::open(self.options.clone(), environment)
    }
}
