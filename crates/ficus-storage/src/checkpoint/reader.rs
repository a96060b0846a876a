//! Reads a checkpoint back into a state, or only verifies it.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ficus_model::{EdgeId, KeyId, LabelId, Value, VertexId};

use super::block::{BlockReader, kind};
use super::{LogPosition, file_name};
use crate::adjacency::ID_BITS;
use crate::base::{Base, BaseFiles};
use crate::committer::{CommittedGraph, State};
use crate::damage_mark::{examine, or_damage};
use crate::environment::Disk;
use crate::graph::Published;
use crate::index::Index;
use crate::property_row::PROPERTY_ID_BITS;
use crate::resolver::{Resolver, ResolverState};
use crate::root::{GraphRoot, NextIds, RootProperty, property_row};
use crate::schema::{Schema, read_schema};
use crate::segment::IndexRun;
use crate::string_pool::StringPool;
use crate::tablet::IdLayout;
use crate::value_codec::{ByteReader, DecodeResult};
use crate::{CommitTs, EdgeRecord, StoreError};

/// What a checkpoint says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CheckpointReport {
    /// The store it belongs to.
    pub(crate) store: u64,
    /// The log position it stands for.
    pub(crate) position: u64,
    /// Length of the file.
    pub(crate) bytes: u64,
    /// Number of blocks.
    pub(crate) blocks: u64,
    /// Number of graphs.
    pub(crate) graphs: u64,
    /// Number of vertices in all graphs.
    pub(crate) vertices: u64,
    /// Number of edges in all graphs.
    pub(crate) edges: u64,
}

/// Reads every byte of a checkpoint and verifies checksums and completeness.
pub(crate) fn check_checkpoint(disk: &dyn Disk, name: &str) -> Result<CheckpointReport, StoreError> {
    read_blocks(disk, name, &mut |_| Ok(()))
}

/// Verifies a checkpoint as [`check_checkpoint`] does, and tells the files that it names.
pub(crate) fn checkpoint_files(disk: &dyn Disk, name: &str) -> Result<(CheckpointReport, Vec<Arc<str>>), StoreError> {
    let mut files = Vec::new();
    let report = read_blocks(disk, name, &mut |block| {
        let mut reader = ByteReader::new(&block[1..]);
        if matches!(block[0], kind::BASE | kind::INDEXES) {
            for _ in 0..reader.count()? {
                if block[0] == kind::INDEXES {
                    reader.number()?;
                }
                files.push(Arc::from(reader.text()?));
            }
        }
        Ok(())
    })?;
    Ok((report, files))
}

/// Reads a checkpoint into a state.
///
/// Errors: `Corrupt` if it is damaged, or a file that it names.
pub(crate) fn load_checkpoint(disk: &dyn Disk, position: LogPosition) -> Result<(State, CheckpointReport), StoreError> {
    load(disk, position, false)
}

/// As [`load_checkpoint`]; graphs of which files are damaged are lost, see [`CommittedGraph::unrestored`], and the others are there.
pub(crate) fn load_what_is_sound(
    disk: &dyn Disk,
    position: LogPosition,
) -> Result<(State, CheckpointReport), StoreError> {
    load(disk, position, true)
}

fn load(disk: &dyn Disk, position: LogPosition, may_lose: bool) -> Result<(State, CheckpointReport), StoreError> {
    let name = file_name(position);
    let mut loading = Loading { disk: Some(disk), may_lose, ..Loading::default() };
    let report = read_blocks(disk, &name, &mut |block| loading.take(block));
    let report = loading.failure.take().map_or(report, Err)?;
    if report.position != position.0 {
        return Err(StoreError::corrupt(name, 24, "its name does not agree with its content; was it renamed?"));
    }
    let (vertices, edges) = loading.counts();
    let is_whole = loading.graphs.iter().all(|graph| graph.unrestored.is_none());
    if is_whole && (vertices, edges) != (report.vertices, report.edges) {
        let what =
            format!("it has {vertices} vertices and {edges} edges instead of {} and {}", report.vertices, report.edges);
        return Err(StoreError::corrupt(name, report.bytes, what));
    }
    Ok((loading.finish(position)?, report))
}

/// Hands the content of every block but the last to `take`; checks frame, order and completeness.
fn read_blocks(
    disk: &dyn Disk,
    name: &str,
    take: &mut dyn FnMut(&[u8]) -> DecodeResult<()>,
) -> Result<CheckpointReport, StoreError> {
    let file = disk.open(name).map_err(|error| StoreError::io(format!("opening {name}"), error))?;
    let (mut blocks, store, position) = BlockReader::open(file.as_ref(), name)?;
    let mut report = CheckpointReport { store, position, ..CheckpointReport::default() };
    let mut ended = false;
    loop {
        let offset = blocks.offset;
        let corrupt = |what: &str| StoreError::corrupt(name, offset, what);
        let Some(content) = blocks.next_block()? else { break };
        if ended {
            return Err(corrupt("there is a block behind the last one"));
        }
        match content[0] {
            kind::END => {
                let mut reader = ByteReader::new(&content[1..]);
                let mut counts = || Ok([reader.number()?, reader.number()?, reader.number()?]);
                let [vertices, edges, count] = counts().map_err(corrupt)?;
                if count != report.blocks {
                    return Err(corrupt("a block is missing"));
                }
                (report.vertices, report.edges) = (vertices, edges);
                ended = true;
            }
            block_kind => {
                report.graphs += u64::from(block_kind == kind::GRAPH);
                take(content).map_err(corrupt)?;
                report.blocks += 1;
            }
        }
    }
    report.bytes = blocks.offset;
    if !ended {
        return Err(StoreError::corrupt(name, blocks.offset, "the file ends before the last block"));
    }
    Ok(report)
}

#[derive(Default)]
struct Loading<'a> {
    disk: Option<&'a dyn Disk>,
    /// Whether graphs with damaged files are left behind.
    may_lose: bool,
    /// Why a base could not be opened.
    failure: Option<StoreError>,
    next_graph: u32,
    epoch: u64,
    writers: Vec<(u64, u64)>,
    resolver: ResolverState,
    graphs: Vec<LoadingGraph>,
    strings: StringPool,
    /// Files that it names and that are of no use any more.
    retired_files: Vec<Arc<str>>,
}

struct LoadingGraph {
    number: u32,
    name: Arc<str>,
    root: GraphRoot,
    next_ids: NextIds,
    /// Indexes of a checkpoint of version 1.
    indexes: Vec<(Option<LabelId>, KeyId)>,
    schema: Schema,
    schema_indexes: Vec<Index>,
    /// The files of these, by their position.
    runs: BTreeMap<usize, Arc<IndexRun>>,
    facts: BTreeMap<Arc<str>, Arc<[u8]>>,
    /// The damage to its files because of which the rest of it is not read.
    unrestored: Option<StoreError>,
}

impl Loading<'_> {
    fn counts(&self) -> (u64, u64) {
        let vertices = self.graphs.iter().map(|graph| graph.root.vertex_count).sum();
        (vertices, self.graphs.iter().map(|graph| graph.root.edge_count).sum())
    }

    fn take(&mut self, block: &[u8]) -> DecodeResult<()> {
        let is_of_graph = !matches!(block[0], kind::STORE | kind::RESOLVER | kind::GRAPH);
        if is_of_graph && self.graphs.last().is_some_and(|graph| graph.unrestored.is_some()) {
            return Ok(());
        }
        let taken = catch_unwind(AssertUnwindSafe(|| self.take_block(block)));
        if let Ok(Ok(())) = taken {
            return Ok(());
        }
        // What contradicts itself may do so because of a column that is damaged.
        let found = self.failure.take().or_else(|| {
            let graph = self.graphs.last().filter(|_| is_of_graph)?;
            examine(&graph.root, &AtomicBool::new(false)).err()
        });
        match (found, taken) {
            (Some(error @ StoreError::Corrupt { .. }), _) if self.may_lose => {
                self.graphs.last_mut().ok_or("a base before a graph")?.unrestored = Some(error);
                Ok(())
            }
            (Some(error), _) => {
                self.failure = Some(error);
                Err("the files of a graph cannot be read")
            }
            (None, Ok(outcome)) => outcome,
            (None, Err(panic)) => resume_unwind(panic),
        }
    }

    fn take_block(&mut self, block: &[u8]) -> DecodeResult<()> {
        let mut reader = ByteReader::new(&block[1..]);
        match block[0] {
            kind::STORE => self.take_store(&mut reader)?,
            kind::RESOLVER => {
                for _ in 0..reader.count()? {
                    self.resolver.order.push(reader.fixed()?, CommitTs(reader.number()?));
                }
            }
            kind::GRAPH => self.take_graph(&mut reader)?,
            kind::SCHEMA => {
                let graph = self.graphs.last_mut().ok_or("a schema before a graph")?;
                (graph.schema, graph.schema_indexes) = read_schema(&mut reader, &graph.root.words)?;
            }
            kind::FACTS => {
                let graph = self.graphs.last_mut().ok_or("facts before a graph")?;
                for _ in 0..reader.count()? {
                    graph.facts.insert(reader.text()?.into(), reader.bytes()?.into());
                }
            }
            kind::VERTICES => {
                let graph = self.graphs.last_mut().ok_or("vertices before a graph")?;
                graph.take_vertices(&mut reader, &mut self.strings)?;
            }
            kind::EDGES => {
                let graph = self.graphs.last_mut().ok_or("edges before a graph")?;
                graph.take_edges(&mut reader, &mut self.strings)?;
            }
            kind::BASE => self.take_base(&mut reader)?,
            kind::INDEXES => self.take_indexes(&mut reader)?,
            kind::REMOVED_EDGES | kind::REMOVED_VERTICES | kind::CHANGED_VERTICES | kind::CHANGED_EDGES => {
                let graph = self.graphs.last_mut().ok_or("changes before a graph")?;
                graph.take_changes(block[0], &mut reader, &mut self.strings)?;
            }
            _ => return Err("a block of an unknown kind"),
        }
        reader.finish()
    }

    fn take_store(&mut self, reader: &mut ByteReader<'_>) -> DecodeResult<()> {
        self.next_graph = reader.narrow()?;
        self.epoch = reader.number()?;
        self.resolver.horizon = CommitTs(reader.number()?);
        for _ in 0..reader.count()? {
            self.writers.push((reader.fixed()?, reader.number()?));
        }
        Ok(())
    }

    fn take_graph(&mut self, reader: &mut ByteReader<'_>) -> DecodeResult<()> {
        let number = reader.narrow()?;
        let name = reader.text()?.into();
        let tablet_bits = reader.byte()?;
        if tablet_bits > 10 {
            return Err("a graph has too many tablets");
        }
        let mut root = GraphRoot::empty(IdLayout { tablet_bits });
        root.commit_ts = CommitTs(reader.number()?);
        let next_ids = NextIds {
            vertex: reader.number()?,
            edge_sequence: reader.number()?,
            property: reader.number()?,
            user_id: reader.number()?,
        };
        if next_ids.vertex > 1 << ID_BITS
            || next_ids.edge_sequence > 1 << (ID_BITS - u32::from(tablet_bits))
            || next_ids.property > 1 << PROPERTY_ID_BITS
        {
            return Err("a counter is beyond its limit");
        }
        for _ in 0..reader.count()? {
            root.words.intern_label(&reader.text()?.into());
        }
        for _ in 0..reader.count()? {
            root.words.intern_key(&reader.text()?.into());
        }
        let mut indexes = Vec::new();
        for _ in 0..reader.count()? {
            let label = reader.narrow::<u32>()?.checked_sub(1).map(LabelId);
            if label.is_some_and(|label| label.0 as usize >= root.words.labels.names().len()) {
                return Err("an index names a label that its graph does not have");
            }
            indexes.push((label, read_key(reader, &root)?));
        }
        let (schema, schema_indexes, runs, facts) = Default::default();
        let unrestored = None;
        self.graphs.push(LoadingGraph {
            number,
            name,
            root,
            next_ids,
            indexes,
            schema,
            schema_indexes,
            runs,
            facts,
            unrestored,
        });
        Ok(())
    }

    fn take_base(&mut self, reader: &mut ByteReader<'_>) -> DecodeResult<()> {
        let graph = self.graphs.last_mut().ok_or("a base before a graph")?;
        let disk = self.disk.ok_or("a base without a disk")?;
        let mut names = Vec::new();
        for _ in 0..reader.count()? {
            names.push(Arc::from(reader.text()?));
        }
        if graph.root.base().is_some() || graph.root.vertex_count > 0 {
            return Err("a graph has two bases, or vertices before its base");
        }
        match Base::open(disk, graph.root.layout, BaseFiles { names }) {
            Ok(base) => graph.root.attach(Arc::new(base)),
            Err(error) => {
                self.failure = Some(error);
                return Err("its base cannot be opened");
            }
        }
        Ok(())
    }

    /// Opens the files of indexes; the indexes are put on them when the overlay is there.
    fn take_indexes(&mut self, reader: &mut ByteReader<'_>) -> DecodeResult<()> {
        let graph = self.graphs.last_mut().ok_or("files of indexes before a graph")?;
        let disk = self.disk.ok_or("files of indexes without a disk")?;
        let base = graph.root.base().ok_or("files of indexes without a base")?.clone();
        for _ in 0..reader.count()? {
            let (number, name): (u32, Arc<str>) = (reader.narrow()?, Arc::from(reader.text()?));
            let position = graph.schema_indexes.iter().position(|index| index.shape.number == number);
            let position = position.ok_or("a file of an index that its graph does not have")?;
            match graph.schema_indexes[position].open_run(disk, &base, &name) {
                Ok(Some(run)) => graph.runs.insert(position, run).map_or(Ok(()), |_| Err("an index has two files"))?,
                Ok(None) => self.retired_files.push(name),
                Err(error) => {
                    self.failure = Some(error);
                    return Err("the file of an index cannot be opened");
                }
            }
        }
        Ok(())
    }

    fn finish(self, position: LogPosition) -> Result<State, StoreError> {
        let may_lose = self.may_lose;
        let graphs = self.graphs.into_iter().map(|graph| graph.finish(may_lose));
        let graphs = graphs.collect::<Result<BTreeMap<_, _>, _>>()?;
        Ok(State {
            last_ts: CommitTs(position.0),
            graphs,
            next_graph: self.next_graph,
            epoch: self.epoch,
            writers: self.writers.into_iter().collect(),
            resolver: Resolver::from_state(self.resolver),
            retired_files: self.retired_files,
            ..State::default()
        })
    }
}

fn read_label(reader: &mut ByteReader<'_>, root: &GraphRoot) -> DecodeResult<LabelId> {
    let label: u32 = reader.narrow()?;
    root.words.labels.name(label).ok_or("a row names a label that its graph does not have")?;
    Ok(LabelId(label))
}

fn read_key(reader: &mut ByteReader<'_>, root: &GraphRoot) -> DecodeResult<KeyId> {
    let key: u32 = reader.narrow()?;
    root.words.keys.name(key).ok_or("a row names a key that its graph does not have")?;
    Ok(KeyId(key))
}

fn read_properties(
    reader: &mut ByteReader<'_>,
    root: &GraphRoot,
    strings: &mut StringPool,
) -> DecodeResult<Vec<(KeyId, Value)>> {
    (0..reader.count()?).map(|_| Ok((read_key(reader, root)?, strings.share(reader.value()?)))).collect()
}

impl LoadingGraph {
    /// Puts schema and indexes on what was read.
    fn finish(self, may_lose: bool) -> Result<(u32, CommittedGraph), StoreError> {
        let LoadingGraph { number, name, mut root, next_ids, indexes, schema, schema_indexes, mut runs, facts, .. } =
            self;
        root.next_ids = next_ids;
        root.schema = Arc::new(schema);
        let mut unrestored = self.unrestored;
        if unrestored.is_none() {
            root.indexes = Arc::new(schema_indexes);
            let mut fill = || {
                root.refresh_sorted();
                for position in 0..root.indexes.len() {
                    match runs.remove(&position) {
                        Some(run) => root.put_index_on(position, run),
                        // From all elements.
                        None => root.fill_index(position),
                    }
                }
                for (label, key) in &indexes {
                    root.create_index(*label, *key);
                }
                Ok(())
            };
            let filled = catch_unwind(AssertUnwindSafe(&mut fill));
            match or_damage(filled, &root) {
                Err(error) if may_lose => unrestored = Some(error),
                filled => filled?,
            }
        }
        let root = Arc::new(root);
        let published = Arc::new(Published::new(root.clone()));
        if let Some(error) = &unrestored {
            published.damage.note(error);
        }
        Ok((number, CommittedGraph { name, root, published, unpublished: 0, kept: None, facts, unrestored }))
    }

    fn take_vertices(&mut self, reader: &mut ByteReader<'_>, strings: &mut StringPool) -> DecodeResult<()> {
        let mut vertex = 0u64;
        while !reader.is_empty() {
            vertex = vertex.checked_add(reader.number()?).ok_or("a vertex number is too large")?;
            if vertex >= self.next_ids.vertex {
                return Err("a vertex number was never given");
            }
            let label = read_label(reader, &self.root)?;
            let id = reader.value()?;
            let properties = self.read_vertex_properties(reader, strings)?;
            if self.root.vertex(VertexId(vertex)).is_some() {
                return Err("a vertex is there twice");
            }
            self.root.insert_vertex(VertexId(vertex), label, id, properties);
        }
        Ok(())
    }

    fn read_vertex_properties(
        &self,
        reader: &mut ByteReader<'_>,
        strings: &mut StringPool,
    ) -> DecodeResult<Vec<RootProperty>> {
        let mut properties = Vec::new();
        for _ in 0..reader.count()? {
            let id = reader.number()?;
            let key = read_key(reader, &self.root)?;
            if id >= self.next_ids.property {
                return Err("a property number was never given");
            }
            let value = strings.share(reader.value()?);
            properties.push(RootProperty { id, key, value, meta: read_properties(reader, &self.root, strings)? });
        }
        Ok(properties)
    }

    /// What changed of elements of the base.
    fn take_changes(&mut self, block: u8, reader: &mut ByteReader<'_>, strings: &mut StringPool) -> DecodeResult<()> {
        let mut id = 0u64;
        while !reader.is_empty() {
            id = id.checked_add(reader.number()?).ok_or("an element number is too large")?;
            let (vertex, edge) = (VertexId(id), EdgeId(id));
            let is_edge = matches!(block, kind::REMOVED_EDGES | kind::CHANGED_EDGES);
            let exists = if is_edge { self.root.edge(edge).is_some() } else { self.root.vertex(vertex).is_some() };
            if !exists {
                return Err("something changed that the base does not have");
            }
            match block {
                kind::REMOVED_EDGES => drop(self.root.remove_edge(edge)),
                kind::REMOVED_VERTICES if !self.root.edges_of(vertex).is_empty() => {
                    return Err("a vertex is gone whose edges are not");
                }
                kind::REMOVED_VERTICES => self.root.remove_vertex(vertex),
                kind::CHANGED_VERTICES => {
                    let properties = self.read_vertex_properties(reader, strings)?;
                    self.root.replace_properties(vertex, property_row(properties));
                }
                _ => {
                    let properties = read_properties(reader, &self.root, strings)?;
                    self.root.replace_edge_properties(edge, properties);
                }
            }
        }
        Ok(())
    }

    fn take_edges(&mut self, reader: &mut ByteReader<'_>, strings: &mut StringPool) -> DecodeResult<()> {
        let mut edge = 0u64;
        while !reader.is_empty() {
            edge = edge.checked_add(reader.number()?).ok_or("an edge number is too large")?;
            let id = EdgeId(edge);
            let label = read_label(reader, &self.root)?;
            let (out, in_) = (VertexId(reader.number()?), VertexId(reader.number()?));
            let user_id = reader.value()?;
            let properties = read_properties(reader, &self.root, strings)?;
            if self.root.vertex(out).is_none() || self.root.vertex(in_).is_none() {
                return Err("an edge has no source or no target");
            }
            if self.root.layout.edge_sequence(id) >= self.next_ids.edge_sequence || self.root.edge(id).is_some() {
                return Err("an edge number was never given, or is there twice");
            }
            let properties = (!properties.is_empty()).then(|| properties.into());
            self.root.insert_edge(id, EdgeRecord { label, out, in_ }, user_id, properties);
        }
        Ok(())
    }
}
