//! Runs that make histories: many clients interleaved on one thread, or each on a thread of its own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ficus_storage::simulated_disk::{Seeded, SimulatedDisk};
use ficus_storage::{Graph, Store, StoreOptions};

use crate::history::Record;
use crate::query::{key_name, vertex_label};
use crate::workload::{Client, Habits, Moments};
use crate::world::World;

/// How to run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Decides everything that is not decided by threads.
    pub seed: u64,
    /// Clients at the same time.
    pub clients: usize,
    /// Transactions of all clients together.
    pub transactions: u64,
    /// Each client has a thread, and so has the store; else they take turns on one, and the run repeats from the seed.
    pub has_threads: bool,
    /// On a simulated disk; without threads it also crashes now and then.
    pub has_disk: bool,
    /// The store ignores what transactions read, so that the history must be found wrong.
    pub is_weakened: bool,
    /// What the clients do.
    pub habits: Habits,
}

impl Plan {
    /// Something else for every seed: 8 to 64 clients, few or many elements, with and without threads and disk.
    pub fn of_seed(seed: u64, transactions: u64) -> Plan {
        let mut random = Seeded::new(seed);
        Plan {
            seed,
            clients: [8, 16, 32, 64][random.below(4) as usize],
            transactions,
            has_threads: seed.is_multiple_of(2),
            has_disk: random.below(2) == 0,
            is_weakened: false,
            habits: Habits { vertex_ids: [8, 24, 80][random.below(3) as usize] },
        }
    }

    fn world(&self) -> World {
        let mut options = StoreOptions::default();
        options.tablet_bits = (self.seed % 4) as u8;
        options.checkpoint_log_bytes = 100_000;
        options.log_segment_bytes = 30_000;
        options.weaken_resolver = self.is_weakened;
        let disk = self.has_disk.then(SimulatedDisk::new);
        World { disk, has_threads: self.has_threads, options }
    }

    fn clients(&self) -> Vec<Client> {
        (0..self.clients).map(|number| Client::new(number, self.seed, self.habits)).collect()
    }
}

/// Runs a plan.
pub fn run(plan: &Plan) -> Vec<Record> {
    let world = plan.world();
    let store = world.open(plan.seed).expect("an empty store opens");
    let graph = store.create_graph("g").expect("a new graph");
    let moments = Moments::default();
    let mut history = Vec::new();
    // The last client looks after the graph: it fills it in every other run, and reads all of it in the end.
    let mut keeper = Client::new(plan.clients, plan.seed, plan.habits);
    if plan.seed % 4 < 2 {
        history.push(keeper.fill(&graph, &moments));
    }
    let graph = match plan.has_threads {
        true => {
            run_threads(plan, &store, &graph, &moments, &mut history);
            graph
        }
        false => run_in_turns(plan, world, store, graph, &moments, &mut history),
    };
    history.push(keeper.read_all(&graph, &moments));
    graph.snapshot().check_invariants().expect("a sound graph");
    history
}

fn run_in_turns(
    plan: &Plan,
    mut world: World,
    mut store: Arc<Store>,
    mut graph: Arc<Graph>,
    moments: &Moments,
    history: &mut Vec<Record>,
) -> Arc<Graph> {
    let mut random = Seeded::new(plan.seed ^ 0x5eed);
    let mut clients = plan.clients();
    let end = history.len() as u64 + plan.transactions;
    while (history.len() as u64) < end {
        match random.below(10_000) {
            0..3 => index(&graph, &mut random),
            3..6 => store.checkpoint().expect("a checkpoint on a sound disk"),
            6..9 => store.consolidate().expect("a consolidation on a sound disk"),
            9..12 if world.disk.is_some() => {
                history.extend(clients.iter_mut().filter_map(|client| client.cut_off(moments)));
                if random.below(2) == 0 {
                    store.close().expect("closing on a sound disk");
                }
                world.disk = world.disk.map(|disk| disk.crash(random.number()));
                store = world.open(random.number()).expect("a store that opens after a crash");
                graph = store.graph("g").expect("the graph after a crash");
            }
            _ => {
                let client = random.below(clients.len() as u64) as usize;
                history.extend(clients[client].step(&graph, moments));
            }
        }
    }
    history.extend(clients.iter_mut().filter_map(|client| client.cut_off(moments)));
    graph
}

fn run_threads(plan: &Plan, store: &Store, graph: &Arc<Graph>, moments: &Moments, history: &mut Vec<Record>) {
    let ended = AtomicU64::new(0);
    let records = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for mut client in plan.clients() {
            let (ended, records) = (&ended, &records);
            scope.spawn(move || {
                let mut random = Seeded::new(plan.seed ^ 0x7ead);
                let mut own = Vec::new();
                while ended.load(Ordering::Relaxed) < plan.transactions {
                    if let Some(record) = client.step(graph, moments) {
                        ended.fetch_add(1, Ordering::Relaxed);
                        own.push(record);
                    }
                    // Clients are more than cores: without this, most transactions would run undisturbed.
                    if random.below(3) == 0 {
                        std::thread::yield_now();
                    }
                }
                own.extend(client.cut_off(moments));
                records.lock().unwrap_or_else(PoisonError::into_inner).extend(own);
            });
        }
        let mut random = Seeded::new(plan.seed ^ 0x1dec);
        for _ in 0..4 {
            index(graph, &mut random);
            store.checkpoint().expect("a checkpoint on a sound disk");
            store.consolidate().expect("a consolidation on a sound disk");
        }
    });
    history.extend(records.into_inner().unwrap_or_else(PoisonError::into_inner));
}

/// Indexes key 1, for all vertices or for one label.
fn index(graph: &Graph, random: &mut Seeded) {
    let label = match random.below(3) {
        2 => None,
        label => Some(vertex_label(label as u8)),
    };
    graph.create_index(label.as_deref(), &key_name(1)).expect("a new index");
}
