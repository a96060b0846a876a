//! What a transaction has read, so that its commit can be refused if any of it has changed.
//!
//! Every read function of a [`Snapshot`](crate::Snapshot) says here what it looked at, absent things included. Elements
//! are kept as numbers and become fingerprints at the commit; what is looked up by text is a fingerprint at once. A kind of
//! read that has grown beyond a bound is replaced by a coarser one, "the properties of all vertices" instead of those of
//! each: a large transaction conflicts sooner, but nothing it read is ever dropped.

use std::cell::RefCell;
use std::collections::HashSet;

use ficus_model::{Direction, EdgeId, Value, VertexId};

use crate::fingerprint::Fingerprints;
use crate::resolver::FingerprintHashing;
use crate::value_key::{check_id, spelled_integer};

/// Reads of one kind that are kept apart: 13 kinds of 8 bytes each are at most 1.7 MiB of a log record.
const READS_PER_KIND_LIMIT: usize = 1 << 14;

/// A kind of read that is kept one by one. The first seven hold internal ids, the others fingerprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Vertex,
    VertexExistence,
    OutHalfEdges,
    InHalfEdges,
    EdgePropertiesAt,
    Edge,
    EdgeExistence,
    EdgesBetween,
    VertexId,
    EdgeId,
    KeyValue,
    /// Vertices by label or key, edges by label.
    Members,
    AbsentWord,
}

const KINDS: [Kind; 13] = [
    Kind::Vertex,
    Kind::VertexExistence,
    Kind::OutHalfEdges,
    Kind::InHalfEdges,
    Kind::EdgePropertiesAt,
    Kind::Edge,
    Kind::EdgeExistence,
    Kind::EdgesBetween,
    Kind::VertexId,
    Kind::EdgeId,
    Kind::KeyValue,
    Kind::Members,
    Kind::AbsentWord,
];

/// The reads of one kind.
#[derive(Debug)]
struct Reads {
    entries: HashSet<u64, FingerprintHashing>,
    /// The newest entry, since what is read is often read again at once.
    last: Option<u64>,
    /// True if a coarser fingerprint stands for all of them.
    is_coarse: bool,
}

/// What one transaction has read of one graph.
#[derive(Debug)]
pub(crate) struct ReadSet {
    of: Fingerprints,
    kinds: [Reads; KINDS.len()],
    all_vertices: bool,
    all_edges: bool,
    any_edge: bool,
    loaded_edge_ids: bool,
    limit: usize,
}

/// Where a snapshot records what is read through it, if anybody wants to know. Copies of a snapshot record nothing.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    recording: Option<Box<RefCell<ReadSet>>>,
    /// Where the read set is during a pause.
    paused: Option<Box<RefCell<ReadSet>>>,
}

impl Clone for Recorder {
    fn clone(&self) -> Recorder {
        Recorder::default()
    }
}

impl Recorder {
    /// A recorder of reads of a graph.
    pub(crate) fn recording(graph: u32) -> Recorder {
        let reads = ReadSet::new(graph, READS_PER_KIND_LIMIT);
        Recorder { recording: Some(Box::new(RefCell::new(reads))), paused: None }
    }

    /// True if somebody wants to know what is read.
    pub(crate) fn is_recording(&self) -> bool {
        self.recording.is_some()
    }

    /// Records, if anybody wants to know. `read` must not read through the snapshot.
    #[inline(always)]
    pub(crate) fn record(&self, read: impl FnOnce(&mut ReadSet)) {
        if let Some(reads) = &self.recording {
            read(&mut reads.borrow_mut());
        }
    }

    /// As [`Recorder::record`], even during a pause.
    pub(crate) fn protect(&self, read: impl FnOnce(&mut ReadSet)) {
        if let Some(reads) = self.recording.as_ref().or(self.paused.as_ref()) {
            read(&mut reads.borrow_mut());
        }
    }

    /// Records nothing until [`Recorder::resume`].
    pub(crate) fn pause(&mut self) {
        if self.recording.is_some() {
            self.paused = self.recording.take();
        }
    }

    /// Goes on after a pause.
    pub(crate) fn resume(&mut self) {
        if self.paused.is_some() {
            self.recording = self.paused.take();
        }
    }

    /// Takes what was recorded; nothing is recorded any more.
    pub(crate) fn take(&mut self) -> Option<ReadSet> {
        self.resume();
        self.recording.take().map(|reads| reads.into_inner())
    }
}

impl ReadSet {
    fn new(graph: u32, limit: usize) -> ReadSet {
        let hashing = FingerprintHashing::default();
        let reads = |_| Reads { entries: HashSet::with_hasher(hashing.clone()), last: None, is_coarse: false };
        ReadSet {
            of: Fingerprints { graph },
            kinds: KINDS.map(reads),
            all_vertices: false,
            all_edges: false,
            any_edge: false,
            loaded_edge_ids: false,
            limit,
        }
    }

    fn add(&mut self, kind: Kind, entry: u64) {
        let reads = &mut self.kinds[kind as usize];
        if reads.last == Some(entry) || reads.is_coarse {
            return;
        }
        reads.last = Some(entry);
        reads.entries.insert(entry);
        if reads.entries.len() > self.limit {
            reads.entries = HashSet::with_hasher(reads.entries.hasher().clone());
            reads.is_coarse = true;
        }
    }

    /// Properties of a vertex, and that it exists.
    pub(crate) fn vertex(&mut self, vertex: VertexId) {
        self.add(Kind::Vertex, vertex.0);
    }

    /// That a vertex exists, with user id and label.
    pub(crate) fn vertex_existence(&mut self, vertex: VertexId) {
        self.add(Kind::VertexExistence, vertex.0);
    }

    /// The half-edges of a vertex.
    pub(crate) fn half_edges(&mut self, vertex: VertexId, direction: Direction) {
        if matches!(direction, Direction::Out | Direction::Both) {
            self.add(Kind::OutHalfEdges, vertex.0);
        }
        if matches!(direction, Direction::In | Direction::Both) {
            self.add(Kind::InHalfEdges, vertex.0);
        }
    }

    /// Properties of the edges of a vertex, whichever.
    pub(crate) fn edge_properties_at(&mut self, vertex: VertexId) {
        self.add(Kind::EdgePropertiesAt, vertex.0);
    }

    /// Which edges go from one vertex to another.
    pub(crate) fn edges_between(&mut self, out: VertexId, in_: VertexId) {
        self.add(Kind::EdgesBetween, self.of.edges_between(out, in_));
    }

    /// Properties of an edge, and that it exists.
    pub(crate) fn edge(&mut self, edge: EdgeId) {
        self.add(Kind::Edge, edge.0);
    }

    /// That an edge exists, with user id, label and ends.
    pub(crate) fn edge_existence(&mut self, edge: EdgeId) {
        self.add(Kind::EdgeExistence, edge.0);
    }

    /// Which vertex a user id finds.
    pub(crate) fn vertex_with_id(&mut self, id: &Value) {
        let of = self.of;
        self.add_id(Kind::VertexId, id, |id| of.vertex_id(id));
    }

    /// Which edge a user id finds.
    pub(crate) fn edge_with_id(&mut self, id: &Value) {
        let of = self.of;
        self.loaded_edge_ids = true;
        self.add_id(Kind::EdgeId, id, |id| of.edge_id(id));
    }

    fn add_id(&mut self, kind: Kind, id: &Value, fingerprint: impl Fn(&Value) -> u64) {
        // Nothing can ever have an id that no element may have, so there is nothing that could change.
        if check_id(id, "read").is_ok() {
            self.add(kind, fingerprint(id));
            if let Some(integer) = spelled_integer(id) {
                self.add(kind, fingerprint(&integer));
            }
        }
    }

    /// Which vertices have a label.
    pub(crate) fn vertices_with_label(&mut self, label: &str) {
        self.add(Kind::Members, self.of.label(label));
    }

    /// Which edges have a label.
    pub(crate) fn edges_with_label(&mut self, label: &str) {
        self.add(Kind::Members, self.of.edge_label(label));
    }

    /// Which vertices have which values under a key: whatever an index tells beyond single values.
    pub(crate) fn key(&mut self, key: &str) {
        self.add(Kind::Members, self.of.key(key));
    }

    /// Which vertices have a value under a key that an index covers.
    pub(crate) fn key_value(&mut self, key: &str, value: &Value) {
        self.add(Kind::KeyValue, self.of.key_value(key, value));
    }

    /// That no element ever had a label.
    pub(crate) fn absent_label(&mut self, label: &str) {
        self.add(Kind::AbsentWord, self.of.absent_label(label));
    }

    /// That no element ever had a key.
    pub(crate) fn absent_key(&mut self, key: &str) {
        self.add(Kind::AbsentWord, self.of.absent_key(key));
    }

    /// Which vertices there are.
    pub(crate) fn all_vertices(&mut self) {
        self.all_vertices = true;
    }

    /// Which edges there are.
    pub(crate) fn all_edges(&mut self) {
        self.all_edges = true;
    }

    /// Properties of edges, whichever: what an index of edges tells.
    pub(crate) fn any_edge(&mut self) {
        self.any_edge = true;
    }

    /// All as fingerprints.
    pub(crate) fn into_fingerprints(mut self, standing: impl Fn(Element) -> Standing) -> Vec<u64> {
        let of = self.of;
        let mut made = Vec::with_capacity(self.kinds.iter().map(|reads| reads.entries.len()).sum());
        for (kind, reads) in KINDS.into_iter().zip(&self.kinds) {
            if reads.is_coarse {
                made.extend(coarse(kind, of));
            }
            let entries = reads.entries.iter().copied();
            let (mut all_vertices, mut all_edges) = (false, false);
            let vertices = entries.clone().map(VertexId).filter(|vertex| {
                let standing = standing(Element::Vertex(*vertex));
                all_vertices |= standing == Standing::Absent;
                standing == Standing::There
            });
            let edges = entries.clone().map(EdgeId).filter(|edge| {
                let standing = standing(Element::Edge(*edge));
                all_edges |= standing == Standing::Absent;
                standing == Standing::There
            });
            match kind {
                Kind::Vertex => made.extend(vertices.map(|vertex| of.vertex(vertex))),
                Kind::VertexExistence => made.extend(vertices.map(|vertex| of.vertex_existence(vertex))),
                Kind::OutHalfEdges => made.extend(vertices.map(|vertex| of.out_half_edges(vertex))),
                Kind::InHalfEdges => made.extend(vertices.map(|vertex| of.in_half_edges(vertex))),
                Kind::EdgePropertiesAt => made.extend(vertices.map(|vertex| of.edge_properties_at(vertex))),
                Kind::Edge => made.extend(edges.map(|edge| of.edge(edge))),
                Kind::EdgeExistence => made.extend(edges.map(|edge| of.edge_existence(edge))),
                Kind::EdgesBetween
                | Kind::VertexId
                | Kind::EdgeId
                | Kind::KeyValue
                | Kind::Members
                | Kind::AbsentWord => made.extend(entries),
            }
            self.all_vertices |= all_vertices;
            self.all_edges |= all_edges;
        }
        made.extend(self.all_vertices.then(|| of.all_vertices()));
        made.extend(self.all_edges.then(|| of.all_edges()));
        made.extend(self.any_edge.then(|| of.any_edge()));
        made.extend(self.loaded_edge_ids.then(|| of.loaded_edge_ids()));
        made.sort_unstable();
        made.dedup();
        made
    }
}

/// A vertex or an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    Vertex(VertexId),
    Edge(EdgeId),
}

/// What a transaction knows at its commit of an element it has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It was there; it has to be unchanged.
    There,
    /// The transaction adds it itself, so nobody else knows it.
    Added,
    /// It was not there: somebody asked by an internal number that was never given out, or is given out only now.
    Absent,
}

/// What stands for all reads of a kind: every write that changes one of them changes one of these.
fn coarse(kind: Kind, of: Fingerprints) -> Vec<u64> {
    match kind {
        Kind::Vertex => vec![of.any_vertex(), of.any_vertex_existence()],
        Kind::VertexExistence => vec![of.any_vertex_existence()],
        Kind::EdgePropertiesAt => vec![of.any_edge()],
        Kind::Edge => vec![of.any_edge(), of.any_edge_existence()],
        Kind::EdgeExistence => vec![of.any_edge_existence()],
        Kind::OutHalfEdges | Kind::InHalfEdges | Kind::EdgesBetween | Kind::EdgeId => vec![of.all_edges()],
        Kind::VertexId => vec![of.all_vertices()],
        Kind::KeyValue => vec![of.all_vertices(), of.any_vertex()],
        Kind::Members => vec![of.all_vertices(), of.all_edges(), of.any_vertex()],
        Kind::AbsentWord => vec![of.all_words()],
    }
}
