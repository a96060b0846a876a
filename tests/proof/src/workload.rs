//! Clients that run random transactions and write down what happened.
//!
//! A client goes step by step - begin, one read or write, …, commit - so that a caller can interleave many of them on one
//! thread, or give each a thread. Elements are few and hot: transactions meet often. Values under key 0 are never written
//! twice, so that it is known who wrote what was read; keys 1 and 2 have few values, so that predicates change their results.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ficus_model::{Cardinality, Direction, EdgeId, Value, VertexId};
use ficus_storage::simulated_disk::Seeded;
use ficus_storage::{ErrorKind, Graph, StoreError, Transaction};

use crate::history::{Event, Outcome, Record};
use crate::naive::Write;
use crate::query::{Hop, Query, ask, edge_label, first_property, key_name, vertex_label};

/// Labels of vertices, and of edges.
const LABELS: u64 = 2;
/// Values under keys 1 and 2.
const VALUES: u64 = 4;
/// Elements a client remembers having met, to use them in later transactions.
const KNOWN_MAX: usize = 24;

/// One clock for all clients: a later moment is a greater number.
#[derive(Debug, Default)]
pub struct Moments(AtomicU64);

impl Moments {
    /// This moment, later than all before.
    pub fn now(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

/// What clients do.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// User ids of vertices are below this.
    pub vertex_ids: u64,
}

/// What a client does next.
#[derive(Clone, Copy, Debug)]
enum Move {
    Look,
    Change,
    UpsertVertex,
    UpsertEdge,
}

/// One client.
#[derive(Debug)]
pub struct Client {
    number: usize,
    random: Seeded,
    habits: Habits,
    vertices: Vec<i64>,
    edges: Vec<i64>,
    values_written: i64,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    transaction: Transaction,
    record: Record,
    moves: Vec<Move>,
    writes: bool,
}

impl Client {
    /// A client; `seed` decides all it does.
    pub fn new(number: usize, seed: u64, habits: Habits) -> Client {
        let random = Seeded::new(seed ^ (number as u64).wrapping_mul(0xd134_2543_de82_ef95));
        Client { number, random, habits, vertices: Vec::new(), edges: Vec::new(), values_written: 0, running: None }
    }

    /// Goes one step; gives the record of a transaction that ended with it.
    pub fn step(&mut self, graph: &Arc<Graph>, moments: &Moments) -> Option<Record> {
        let Some(mut running) = self.running.take() else {
            self.running = Some(self.begin(graph, moments));
            return None;
        };
        match running.moves.pop() {
            Some(next) => {
                self.act(&mut running, next);
                self.running = Some(running);
                None
            }
            None => Some(self.finish(running, moments)),
        }
    }

    /// Cuts off what runs, as a crash does. Internal numbers of what was never committed may be given again after it, so the
    /// client forgets them all.
    pub fn cut_off(&mut self, moments: &Moments) -> Option<Record> {
        self.vertices.clear();
        self.edges.clear();
        let Running { transaction, mut record, .. } = self.running.take()?;
        transaction.rollback();
        record.end = moments.now();
        record.outcome = Outcome::Aborted;
        Some(record)
    }

    /// Fills the graph with some vertices and edges, in one transaction.
    pub fn fill(&mut self, graph: &Arc<Graph>, moments: &Moments) -> Record {
        let mut running = self.begin(graph, moments);
        running.writes = true;
        for _ in 0..self.habits.vertex_ids {
            self.act(&mut running, Move::UpsertVertex);
            self.act(&mut running, Move::UpsertEdge);
        }
        self.finish(running, moments)
    }

    /// Reads everything, in one transaction.
    pub fn read_all(&mut self, graph: &Arc<Graph>, moments: &Moments) -> Record {
        let mut running = self.begin(graph, moments);
        running.writes = false;
        self.read(&mut running, Query::VertexCount);
        self.read(&mut running, Query::EdgeCount);
        for vertex in self.read(&mut running, Query::AllVertices) {
            self.read(&mut running, Query::VertexLabel(vertex));
            (0..3).for_each(|key| drop(self.read(&mut running, Query::VertexValues { vertex, key })));
            let hop = Hop { direction: Direction::Both, label: None };
            self.read(&mut running, Query::HalfEdges { vertex, hop });
        }
        for edge in self.read(&mut running, Query::AllEdges) {
            self.read(&mut running, Query::EdgeEnds(edge));
            (0..3).for_each(|key| drop(self.read(&mut running, Query::EdgeValue { edge, key })));
        }
        self.finish(running, moments)
    }

    fn begin(&mut self, graph: &Arc<Graph>, moments: &Moments) -> Running {
        let begin = moments.now();
        let transaction = graph.begin();
        let snapshot = transaction.commit_ts().0;
        // The last of a list comes first.
        let mut moves = match self.random.below(10) {
            0..=3 => vec![Move::Look, Move::Look],
            4 => vec![Move::UpsertVertex],
            5 => vec![Move::UpsertEdge],
            6 => vec![Move::Change, Move::UpsertVertex],
            7 => vec![Move::Change, Move::UpsertEdge],
            8 => vec![Move::Look, Move::Change, Move::Look, Move::Change],
            _ => vec![Move::Change, Move::Look],
        };
        moves.extend((0..self.random.below(4)).map(|_| Move::Look));
        let writes = moves.iter().any(|next| !matches!(next, Move::Look));
        let (client, outcome) = (self.number, Outcome::Aborted);
        let record = Record { client, begin, end: 0, snapshot, outcome, events: Vec::new() };
        Running { transaction, record, moves, writes }
    }

    fn finish(&mut self, running: Running, moments: &Moments) -> Record {
        let Running { transaction, mut record, .. } = running;
        let wrote = !transaction.is_read_only();
        record.outcome = match self.random.below(16) {
            0 => {
                transaction.rollback();
                if wrote { Outcome::Aborted } else { Outcome::ReadOnly }
            }
            _ => match transaction.commit() {
                Ok(ts) if wrote => Outcome::Committed(ts.0),
                Ok(_) => Outcome::ReadOnly,
                Err(error) if error.kind() == ErrorKind::Conflict => Outcome::Aborted,
                Err(StoreError::DiskFull { .. } | StoreError::Poisoned { .. } | StoreError::Closed) => Outcome::Aborted,
                Err(error) if error.kind() == ErrorKind::World => Outcome::Unknown,
                Err(error) => panic!("a commit fails for no reason: {error}"),
            },
        };
        record.end = moments.now();
        record
    }

    fn act(&mut self, running: &mut Running, next: Move) {
        match next {
            Move::Look => {
                let query = self.any_query();
                self.read(running, query);
            }
            Move::Change => self.change(running),
            Move::UpsertVertex => self.upsert_vertex(running),
            Move::UpsertEdge => self.upsert_edge(running),
        }
    }

    fn read(&mut self, running: &mut Running, query: Query) -> Vec<i64> {
        let Running { transaction, record, .. } = running;
        let answer = ask(transaction, &query);
        match query {
            Query::VertexWithId(_) | Query::WithValue { .. } | Query::TwoHops { .. } => {
                answer.iter().take(3).for_each(|vertex| remember(&mut self.vertices, *vertex));
            }
            Query::HalfEdges { .. } => {
                answer.chunks(2).take(3).for_each(|pair| remember(&mut self.edges, pair[0]));
            }
            Query::EdgeWithId(_) | Query::EdgeBetween { .. } => {
                answer.iter().for_each(|edge| remember(&mut self.edges, *edge));
            }
            _ => {}
        }
        record.events.push(Event::Read(query, answer.clone()));
        answer
    }

    /// Notes a write that was accepted. A refusal is an answer of the transaction's own view, and the view is checked by
    /// reads: a write is only tried where a read in the same transaction says that it must work.
    fn note<T>(running: &mut Running, outcome: Result<T, StoreError>, write: impl FnOnce(T) -> Write) {
        match outcome {
            Ok(made) => running.record.events.push(Event::Write(write(made))),
            Err(error) => panic!("a write that must work is refused: {error}; {:?}", running.record),
        }
    }

    fn any_id(&mut self) -> i64 {
        self.random.below(self.habits.vertex_ids) as i64
    }

    fn any_edge_id(&mut self) -> i64 {
        1_000_000 + self.random.below(self.habits.vertex_ids) as i64
    }

    fn any_vertex(&mut self) -> i64 {
        self.vertices[self.random.below(self.vertices.len() as u64) as usize]
    }

    fn any_edge(&mut self) -> i64 {
        self.edges[self.random.below(self.edges.len() as u64) as usize]
    }

    fn any_label(&mut self) -> u8 {
        self.random.below(LABELS) as u8
    }

    fn maybe_label(&mut self) -> Option<u8> {
        let label = self.any_label();
        (self.random.below(2) == 0).then_some(label)
    }

    fn any_hop(&mut self) -> Hop {
        let direction = [Direction::Out, Direction::In, Direction::Both][self.random.below(3) as usize];
        Hop { direction, label: self.maybe_label() }
    }

    fn any_value(&mut self) -> i64 {
        self.random.below(VALUES) as i64
    }

    /// Names elements by their internal numbers only if the client has met them: nobody can know the others.
    fn any_query(&mut self) -> Query {
        if self.vertices.is_empty() {
            return Query::VertexWithId(self.any_id());
        }
        match self.random.below(if self.edges.is_empty() { 57 } else { 64 }) {
            0 => Query::AllVertices,
            1 => Query::AllEdges,
            2 => Query::VertexCount,
            3 => Query::EdgeCount,
            4 => Query::VertexCountWithLabel(self.any_label()),
            5 => Query::EdgeCountWithLabel(self.any_label()),
            6 => Query::WithLabel(self.any_label()),
            7 | 8 => Query::LabelledWithValue { label: self.any_label(), key: 2, value: self.any_value() },
            9 | 10 => Query::WithValue { label: self.maybe_label(), key: 2, value: self.any_value() },
            11..=17 => Query::WithValue { label: self.maybe_label(), key: 1, value: self.any_value() },
            18..=25 => Query::VertexWithId(self.any_id()),
            26..=33 => Query::VertexValues { vertex: self.any_vertex(), key: self.random.below(3) as u8 },
            34 | 35 => Query::VertexLabel(self.any_vertex()),
            36..=42 => Query::HalfEdges { vertex: self.any_vertex(), hop: self.any_hop() },
            43..=46 => Query::TwoHops { vertex: self.any_vertex(), hop: self.any_hop() },
            47..=50 => Query::Degree { vertex: self.any_vertex(), hop: self.any_hop() },
            51..=54 => Query::EdgeBetween { out: self.any_vertex(), in_: self.any_vertex(), label: self.any_label() },
            55 | 56 => Query::EdgeWithId(self.any_edge_id()),
            57..=58 => Query::EdgeEnds(self.any_edge()),
            _ => Query::EdgeValue { edge: self.any_edge(), key: self.random.below(3) as u8 },
        }
    }

    /// A key with a value: unique under key 0.
    fn any_property(&mut self) -> (u8, i64) {
        let key = self.random.below(3) as u8;
        if key > 0 {
            return (key, self.any_value());
        }
        self.values_written += 1;
        (key, (self.number as i64 + 1) << 40 | self.values_written)
    }

    fn change(&mut self, running: &mut Running) {
        if self.vertices.is_empty() || self.edges.is_empty() {
            return self.upsert_edge(running);
        }
        match self.random.below(16) {
            0..=7 => {
                let vertex = self.any_vertex();
                if running.transaction.vertex_exists(VertexId(vertex as u64)) {
                    self.set_vertex_value(running, vertex);
                }
            }
            8 => {
                let (vertex, key) = (self.any_vertex(), self.random.below(3) as u8);
                // What is there has to be read as well: the record only says which property goes.
                self.read(running, Query::VertexValues { vertex, key });
                if let Some(property) = first_property(&running.transaction, vertex, key) {
                    let removed = running.transaction.remove_vertex_property(VertexId(vertex as u64), property);
                    let property = property as i64;
                    Client::note(running, removed, |()| Write::RemoveVertexProperty { vertex, property });
                }
            }
            9 => {
                let vertex = self.any_vertex();
                if running.transaction.vertex_exists(VertexId(vertex as u64)) {
                    let removed = running.transaction.remove_vertex(VertexId(vertex as u64));
                    Client::note(running, removed, |()| Write::RemoveVertex(vertex));
                }
            }
            10..=12 => {
                let edge = self.any_edge();
                if running.transaction.edge_exists(EdgeId(edge as u64)) {
                    self.set_edge_value(running, edge);
                }
            }
            13 => {
                let (edge, key) = (self.any_edge(), self.random.below(3) as u8);
                let number = running.transaction.key_id(&key_name(key));
                if let (true, Some(number)) = (running.transaction.edge_exists(EdgeId(edge as u64)), number) {
                    let removed = running.transaction.remove_edge_property(EdgeId(edge as u64), number);
                    Client::note(running, removed, |()| Write::RemoveEdgeValue { edge, key });
                }
            }
            _ => {
                let edge = self.any_edge();
                if running.transaction.edge_exists(EdgeId(edge as u64)) {
                    let removed = running.transaction.remove_edge(EdgeId(edge as u64));
                    Client::note(running, removed, |()| Write::RemoveEdge(edge));
                }
            }
        }
    }

    fn set_vertex_value(&mut self, running: &mut Running, vertex: i64) {
        let (key, value) = self.any_property();
        let alone = self.random.below(4) > 0;
        let cardinality = if alone { Cardinality::Single } else { Cardinality::List };
        let at = VertexId(vertex as u64);
        let set = running.transaction.set_vertex_property(at, &key_name(key), Value::Long(value), cardinality, None);
        Client::note(running, set, |property| Write::SetVertexValue {
            vertex,
            property: property as i64,
            key,
            value,
            alone,
        });
    }

    fn set_edge_value(&mut self, running: &mut Running, edge: i64) {
        let (key, value) = self.any_property();
        let set = running.transaction.set_edge_property(EdgeId(edge as u64), &key_name(key), Value::Long(value));
        Client::note(running, set, |()| Write::SetEdgeValue { edge, key, value });
    }

    fn upsert_vertex(&mut self, running: &mut Running) {
        let id = self.any_id();
        let found = self.read(running, Query::VertexWithId(id));
        if let [vertex] = found[..] {
            return self.set_vertex_value(running, vertex);
        }
        let (label, makes_id) = (self.any_label(), self.random.below(8) == 0);
        let id = (!makes_id).then_some(Value::Long(id));
        let added = running.transaction.add_vertex(&vertex_label(label), id);
        let id = |running: &Running, vertex: VertexId| match running.transaction.vertex_id(vertex) {
            Some(Value::Long(id)) => id,
            other => panic!("a new vertex has the id {other:?}"),
        };
        let (id, vertex) = match &added {
            Ok(vertex) => (id(running, *vertex), vertex.0 as i64),
            Err(_) => (0, 0),
        };
        Client::note(running, added, |_| Write::AddVertex { vertex, id, label });
        remember(&mut self.vertices, vertex);
        self.set_vertex_value(running, vertex);
    }

    fn upsert_edge(&mut self, running: &mut Running) {
        let ids = [self.any_id(), self.any_id()];
        let [from, to] = ids.map(|id| self.read(running, Query::VertexWithId(id)));
        let (&[out], &[in_]) = (&from[..], &to[..]) else { return };
        let (label, by_id) = (self.any_label(), self.random.below(3) == 0);
        let id = self.any_edge_id();
        let query = if by_id { Query::EdgeWithId(id) } else { Query::EdgeBetween { out, in_, label } };
        let found = self.read(running, query);
        if let [edge] = found[..] {
            return self.set_edge_value(running, edge);
        }
        let id = by_id.then_some(Value::Long(id));
        let (source, target) = (VertexId(out as u64), VertexId(in_ as u64));
        let added = running.transaction.add_edge(&edge_label(label), source, target, id);
        let (id, edge) = match &added {
            Ok(edge) => match running.transaction.edge_id(*edge) {
                Some(Value::Long(id)) => (id, edge.0 as i64),
                other => panic!("a new edge has the id {other:?}"),
            },
            Err(_) => (0, 0),
        };
        Client::note(running, added, |_| Write::AddEdge { edge, id, label, out, in_ });
        remember(&mut self.edges, edge);
        self.set_edge_value(running, edge);
    }
}

/// Keeps the newest few.
fn remember(known: &mut Vec<i64>, element: i64) {
    if !known.contains(&element) {
        if known.len() == KNOWN_MAX {
            known.remove(0);
        }
        known.push(element);
    }
}
