//! Crashes: a store on a simulated disk lives, fails, loses power and starts again, several times over.
//!
//! Beside the store, the harness keeps the *expected* states: plain graphs, one for each way in which what is unknown may
//! have ended. An acknowledged operation happened in all of them; one that failed because of the disk happened in some,
//! whole. After every start the store must be in one of these states, must stay in it through another crash and start, and must
//! keep every rule of `check_invariants`. The harness knows no file names, so it covers whatever files the store writes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ficus_model::{Value, VertexId};
use ficus_storage::simulated_disk::{Faults, Seeded, SimulatedDisk};
use ficus_storage::{BulkProperty, Disk, ErrorKind, Graph, Store, StoreError, StoreOptions};

use crate::history::{Event, Outcome};
use crate::naive::{NaiveGraph, Write};
use crate::query::{edge_label, key_name, read_graph, vertex_label};
use crate::workload::{Client, Habits, Moments};
use crate::world::World;

/// Starts of one store, each after a crash.
const LIVES: u64 = 4;
/// Graphs that come and go.
const NAMES: [&str; 2] = ["g", "h"];
/// Clients that take turns on each graph.
const CLIENTS: usize = 3;

/// What one graph is expected to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ExpectedGraph {
    content: NaiveGraph,
    indexes: BTreeSet<(Option<String>, String)>,
}

/// All graphs by name.
type Expected = BTreeMap<String, ExpectedGraph>;

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Well,
    /// Nothing of it may be there.
    Refused,
    /// All of it may be there, or nothing.
    Unknown,
}

impl Ended {
    fn of<T>(outcome: &Result<T, StoreError>) -> Result<Ended, String> {
        match outcome {
            Ok(_) => Ok(Ended::Well),
            Err(StoreError::DiskFull { .. } | StoreError::Poisoned { .. } | StoreError::Closed) => Ok(Ended::Refused),
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(Ended::Refused),
            Err(error) if error.kind() == ErrorKind::World => Ok(Ended::Unknown),
            Err(error) => Err(format!("an operation fails for no reason: {error}")),
        }
    }
}

/// What a run has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Starts after a crash.
    pub starts: u64,
    /// Operations that were acknowledged.
    pub acknowledged: u64,
    /// Operations of which only a start could tell.
    pub unknown: u64,
    /// Of these, those that turned out to have happened.
    pub unknown_happened: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.starts += other.starts;
        self.acknowledged += other.acknowledged;
        self.unknown += other.unknown;
        self.unknown_happened += other.unknown_happened;
    }
}

/// Lives of one store from one seed. Errors: what was lost, torn or broken.
pub fn survive(seed: u64) -> Result<Tally, String> {
    let mut options = StoreOptions::default();
    options.tablet_bits = (seed % 3) as u8;
    options.log_segment_bytes = [400, 3000, 1 << 20][(seed / 3 % 3) as usize];
    let mut harness = Harness {
        random: Seeded::new(seed),
        world: World { disk: Some(SimulatedDisk::new()), has_threads: false, options },
        states: vec![Expected::new()],
        tally: Tally::default(),
        next_id: 2_000_000,
        trail: Vec::new(),
    };
    for life in 0..LIVES {
        harness.trail.clear();
        let outcome = harness.live(life).and_then(|()| harness.start_again());
        outcome.map_err(|what| format!("life {life}:\n{}\n{what}", harness.trail.join("\n")))?;
    }
    Ok(harness.tally)
}

struct Harness {
    random: Seeded,
    world: World,
    /// The states the store may be in; the first is the one its readers see while it runs.
    states: Vec<Expected>,
    tally: Tally,
    next_id: i64,
    /// What happened since the last start, for the report of a failure.
    trail: Vec<String>,
}

/// An open graph with those who write to it.
struct Opened {
    graph: Arc<Graph>,
    clients: Vec<Client>,
}

impl Harness {
    fn disk(&self) -> &SimulatedDisk {
        self.world.disk.as_ref().expect("the harness always has a disk")
    }

    /// Works on the store until the disk fails, or some time longer.
    fn live(&mut self, life: u64) -> Result<(), String> {
        let faults = self.any_faults();
        self.disk().set_faults(faults);
        self.trail.push(format!("{faults:?}"));
        let store = match self.world.open(self.random.number()) {
            Ok(store) => store,
            Err(error) if error.kind() == ErrorKind::World => return self.lose_power(None),
            Err(error) => return Err(format!("life {life} with {faults:?} does not start: {error}")),
        };
        let mut opened = BTreeMap::new();
        for name in store.graph_names() {
            self.attach(&store, &name, &mut opened);
        }
        let moments = Moments::default();
        for _ in 0..self.random.below(150) {
            self.operate(&store, &mut opened, &moments)?;
            if self.random.below(40) == 0 {
                self.compare(&store, "while it runs")?;
            }
        }
        self.compare(&store, "at the end of its life")?;
        if self.random.below(4) == 0 {
            // What fails here was acknowledged before.
            self.trail.push(format!("close: {:?}", store.close()));
        }
        self.lose_power(Some(store))
    }

    /// Something goes wrong in most lives, and sometimes two things.
    fn any_faults(&mut self) -> Faults {
        let (operations, flushes) = (self.disk().operations(), self.disk().flushes());
        let mut faults = Faults::default();
        for _ in 0..2 {
            match self.random.below(6) {
                0 | 1 => faults.crash_at_operation = Some(operations + 1 + self.random.below(250)),
                2 => faults.fail_flush = Some(flushes + 1 + self.random.below(60)),
                3 => faults.fail_operation = Some(operations + 1 + self.random.below(200)),
                4 => faults.capacity_bytes = Some(self.disk().used_bytes() + self.random.below(20_000)),
                _ => {}
            }
        }
        faults
    }

    /// The power goes: what was not flushed is there, or not, or torn.
    fn lose_power(&mut self, store: Option<Arc<Store>>) -> Result<(), String> {
        let seed = self.random.number();
        self.trail.push(format!("power cut {seed}, files {:?}", self.disk().list()));
        self.world.disk = Some(self.disk().crash(seed));
        // Only now: closing would write to the disk.
        drop(store);
        Ok(())
    }

    /// Starts after a crash; now and then the power goes again during the start. Then once more: a start must not change what
    /// the one before has found.
    fn start_again(&mut self) -> Result<(), String> {
        while self.random.below(3) == 0 {
            let crash = self.disk().operations() + 1 + self.random.below(30);
            self.disk().set_faults(Faults { crash_at_operation: Some(crash), ..Faults::default() });
            let started = self.world.open(self.random.number());
            if let Err(error) = &started
                && error.kind() != ErrorKind::World
            {
                return Err(format!("it does not start again: {error}"));
            }
            self.lose_power(started.ok())?;
        }
        for _ in 0..2 {
            self.disk().set_faults(Faults::default());
            let store = self.world.open(self.random.number()).map_err(|error| format!("it does not start: {error}"))?;
            self.tally.starts += 1;
            let found = read_store(&store)?;
            let Some(state) = self.states.iter().position(|state| is_same(state, &found)) else {
                return Err(format!("it comes up with {found:?}\nwhich is none of {:?}", self.states));
            };
            self.tally.unknown_happened += u64::from(state > 0);
            self.states = vec![found];
            self.lose_power(Some(store))?;
        }
        Ok(())
    }

    /// What readers see is the state without anything unknown.
    fn compare(&self, store: &Store, when: &str) -> Result<(), String> {
        let found = read_store(store)?;
        if is_same(&found, &self.states[0]) {
            return Ok(());
        }
        Err(format!("{when}, readers see {found:?}\nnot {:?}", self.states[0]))
    }

    fn attach(&mut self, store: &Store, name: &str, opened: &mut BTreeMap<String, Opened>) {
        let graph = store.graph(name).expect("a graph that is listed");
        let seed = self.random.number();

        let clients = (0..CLIENTS).map(|number| Client::new(number, seed, HABITS)).collect();
        opened.insert(name.to_string(), Opened { graph, clients });
    }

    /// One thing more happens.
    fn operate(
        &mut self,
        store: &Store,
        opened: &mut BTreeMap<String, Opened>,
        moments: &Moments,
    ) -> Result<(), String> {
        let name = NAMES[self.random.below(5) as usize / 4];
        if !opened.contains_key(name) {
            let outcome = store.create_graph(name);
            self.trail.push(format!("create {name}: {outcome:?}"));
            self.ended(&outcome, |state| drop(state.insert(name.to_string(), ExpectedGraph::default())))?;
            if outcome.is_ok() {
                self.attach(store, name, opened);
            }
            return Ok(());
        }
        let place = opened.get_mut(name).expect("it is there");
        match self.random.below(80) {
            // Both may fail without harm to anything that was acknowledged.
            0 | 1 => self.trail.push(format!("checkpoint: {:?}", store.checkpoint())),
            2 | 3 => self.trail.push(format!("consolidate: {:?}", store.consolidate())),
            4 => {
                let outcome = place.graph.clear();
                self.trail.push(format!("clear {name}: {outcome:?}"));
                self.ended(&outcome, |state| content(state, name).content = NaiveGraph::default())?;
            }
            5 if name == "h" => {
                opened.remove(name);
                let outcome = store.drop_graph(name);
                self.trail.push(format!("drop {name}: {outcome:?}"));
                self.ended(&outcome, |state| drop(state.remove(name)))?;
                if outcome.is_err() && store.graph(name).is_some() {
                    self.attach(store, name, opened);
                }
            }
            6 => {
                let (label, key) = ((self.random.below(2) == 0).then(|| vertex_label(0)), key_name(1));
                let outcome = place.graph.create_index(label.as_deref(), &key);
                self.trail.push(format!("index {label:?} {key} of {name}: {outcome:?}"));
                self.ended(&outcome, |state| {
                    content(state, name).indexes.insert((label.clone(), key.clone()));
                })?;
            }
            7 | 8 => self.load(&place.graph, name)?,
            _ => {
                let client = self.random.below(CLIENTS as u64) as usize;
                let Some(record) = place.clients[client].step(&place.graph, moments) else { return Ok(()) };
                if record.has_writes() {
                    self.trail.push(format!("{name}: {record:?}"));
                }
                let ended = match record.outcome {
                    Outcome::Committed(_) => Ended::Well,
                    Outcome::ReadOnly | Outcome::Aborted => Ended::Refused,
                    Outcome::Unknown => Ended::Unknown,
                };
                let writes: Vec<&Write> = record
                    .events
                    .iter()
                    .filter_map(|event| match event {
                        Event::Write(write) => Some(write),
                        Event::Read(..) => None,
                    })
                    .collect();
                self.note(ended, |state| {
                    for write in &writes {
                        content(state, name).content.apply(write)?;
                    }
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    /// A small bulk load: one batch, so it is there whole or not at all.
    fn load(&mut self, graph: &Arc<Graph>, name: &str) -> Result<(), String> {
        let mut loader = graph.bulk();
        let mut writes = Vec::new();
        let mut previous = None;
        for _ in 0..1 + self.random.below(12) {
            self.next_id += 2;
            let (id, value) = (self.next_id, self.random.below(4) as i64);
            let property = BulkProperty::single("k1", Value::Long(value));
            let added = loader.add_vertex(&vertex_label(1), Some(Value::Long(id)), vec![property]);
            let vertex = added.map_err(|error| format!("a new vertex is refused: {error}"))?;
            let number = vertex.0 as i64;
            writes.push(Write::AddVertex { vertex: number, id, label: 1 });
            writes.push(Write::SetVertexValue { vertex: number, property: 0, key: 1, value, alone: true });
            if let Some(previous) = previous.replace(vertex) {
                let added = loader.add_edge(&edge_label(0), previous, vertex, Some(Value::Long(id + 1)), Vec::new());
                let edge = added.map_err(|error| format!("a new edge is refused: {error}"))?.0 as i64;
                writes.push(Write::AddEdge { edge, id: id + 1, label: 0, out: previous.0 as i64, in_: number });
            }
        }
        if self.random.below(5) == 0 {
            // Given up: nothing was sent yet.
            drop(loader);
            return Ok(());
        }
        let outcome = loader.finish();
        self.trail.push(format!("load into {name}: {outcome:?} {writes:?}"));
        if outcome.is_ok() {
            // Only the store knows the ids that it gave to the properties.
            let snapshot = graph.snapshot();
            for write in &mut writes {
                if let Write::SetVertexValue { vertex, property, .. } = write {
                    let mut found = Vec::new();
                    snapshot.vertex_properties(VertexId(*vertex as u64), None, &mut found);
                    *property = found.first().map_or(0, |found| found.id as i64);
                }
            }
        }
        let apply =
            |state: &mut Expected| writes.iter().try_for_each(|write| content(state, name).content.apply(write));
        self.note(Ended::of(&outcome)?, apply)
    }

    fn ended<T>(&mut self, outcome: &Result<T, StoreError>, happens: impl Fn(&mut Expected)) -> Result<(), String> {
        self.note(Ended::of(outcome)?, |state| {
            happens(state);
            Ok(())
        })
    }

    /// Notes what an operation makes of the states the store may be in.
    fn note(&mut self, ended: Ended, happens: impl Fn(&mut Expected) -> Result<(), String>) -> Result<(), String> {
        match ended {
            Ended::Well => {
                self.tally.acknowledged += 1;
                self.states.iter_mut().try_for_each(happens)
            }
            Ended::Refused => Ok(()),
            Ended::Unknown => {
                self.tally.unknown += 1;
                let mut with = self.states[0].clone();
                // What is impossible by now would have been refused as a conflict.
                if happens(&mut with).is_ok() {
                    self.states.push(with);
                }
                Ok(())
            }
        }
    }
}

const HABITS: Habits = Habits { vertex_ids: 10 };

fn content<'a>(state: &'a mut Expected, name: &str) -> &'a mut ExpectedGraph {
    state.get_mut(name).expect("an operation on a graph that is there")
}

/// The ids of properties are known to the store alone where a bulk load made them.
fn is_same(a: &Expected, b: &Expected) -> bool {
    let same =
        |(a, b): (&ExpectedGraph, &ExpectedGraph)| a.indexes == b.indexes && a.content.has_same_content(&b.content);
    a.keys().eq(b.keys()) && a.values().zip(b.values()).all(same)
}

fn read_store(store: &Store) -> Result<Expected, String> {
    let mut found = Expected::new();
    for name in store.graph_names() {
        let graph = store.graph(&name).ok_or("a graph that is listed is not there")?;
        graph.snapshot().check_invariants().map_err(|rule| format!("graph {name}: {rule}"))?;
        let indexes = graph.indexes().into_iter();
        let indexes = indexes.map(|index| {
            let definition = index.definition;
            (definition.label.map(|label| label.to_string()), definition.keys.join("."))
        });
        found.insert(name, ExpectedGraph { content: read_graph(&graph.begin())?, indexes: indexes.collect() });
    }
    Ok(found)
}
