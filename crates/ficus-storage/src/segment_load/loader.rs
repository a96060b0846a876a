//! Takes chunks in the order of the input: numbers vertices, refuses ids that are taken, gives labels and keys their numbers.

use std::sync::Arc;

use ficus_model::{KeyId, LabelId, Value, VertexId};

use super::chunk::{ChunkWords, EdgeChunk, LabelColumn, NO_VERTEX, VertexChunk};
use super::edge_rows::{EdgeRows, RowAddresses};
use super::ids::{IdColumn, IdIndex, LoadId};
use super::prefixes::IdPrefixes;
use super::tablet_rows::TabletRows;
use crate::root::NextIds;
use crate::tablet::IdLayout;
use crate::words::{WORD_LIMIT, WordList, Words};
use crate::{Graph, StoreError};

/// Vertices, and edges, of one load: positions have 32 bits, and one of them means "none".
pub(super) const ELEMENTS_LIMIT: u64 = u32::MAX as u64 - 1;

/// Vertices of one chunk after they were numbered.
#[derive(Debug)]
pub(super) struct VertexPart {
    /// The first vertex.
    pub(super) first: u32,
    /// Graph's labels by the chunk's.
    pub(super) label_ids: Vec<LabelId>,
    /// Graph's keys by the chunk's.
    pub(super) key_ids: Vec<KeyId>,
    pub(super) labels: LabelColumn,
}

/// Edges of one chunk.
#[derive(Debug)]
pub(super) struct EdgePart {
    pub(super) label_ids: Vec<LabelId>,
    pub(super) labels: LabelColumn,
    pub(super) sources: Vec<u32>,
    pub(super) targets: Vec<u32>,
    /// Where the ids of this part begin in the column of ids; `None` if it has none.
    pub(super) first_id: Option<u32>,
    /// Where the properties of each edge are.
    pub(super) rows: RowAddresses,
}

/// An element that was left out because its id is taken.
#[derive(Clone, Debug, PartialEq)]
pub struct RefusedRow {
    /// Its row in the chunk.
    pub row: u32,
    /// The id.
    pub id: Value,
}

/// The first half of a load: vertices.
#[derive(Debug)]
pub struct VertexLoad {
    pub(super) graph: Arc<Graph>,
    pub(super) layout: IdLayout,
    pub(super) words: Words,
    pub(super) parts: Vec<VertexPart>,
    /// Encoded properties by tablet.
    pub(super) rows: Vec<TabletRows>,
    ids: IdColumn,
    index: IdIndex,
    /// Vertices that were refused, ascending: their numbers stay unused.
    pub(super) refused: Vec<u32>,
    /// Properties in each tablet, at most.
    pub(super) properties: Vec<u64>,
    /// Above all property ids that came with the input.
    pub(super) next_property: u64,
}

/// Finds the vertices of a load by their user ids; shared by the threads that read edges.
#[derive(Debug)]
pub struct VertexDirectory {
    pub(super) ids: IdColumn,
    pub(super) index: IdIndex,
}

impl VertexDirectory {
    /// The prefixes that the load expects of ids.
    pub fn prefixes(&self) -> &Arc<IdPrefixes> {
        self.ids.prefixes()
    }

    /// The vertex a user means by this id: a text also finds the integer it spells.
    pub fn find(&self, id: LoadId<'_>) -> Option<VertexId> {
        self.index.find(&self.ids, id).map(|position| VertexId(u64::from(position)))
    }
}

impl VertexLoad {
    /// A load into a graph, if it has never had any element and none of its rules have to be held against what comes.
    pub(crate) fn new(graph: Arc<Graph>) -> Option<VertexLoad> {
        let root = graph.published.versions.newest();
        if root.next_ids != NextIds::default() || root.vertex_count > 0 || root.edge_count > 0 || root.restricts_loads()
        {
            return None;
        }
        let layout = root.layout;
        Some(VertexLoad {
            graph,
            layout,
            words: Words::clone(&root.words),
            parts: Vec::new(),
            rows: vec![TabletRows::default(); layout.tablets()],
            ids: IdColumn::default(),
            index: IdIndex::default(),
            refused: Vec::new(),
            properties: vec![0; layout.tablets()],
            next_property: 0,
        })
    }

    /// Says which prefixes ids will have; none of that is a must, and nothing but speed and memory depends on it. Called before
    /// the first chunk is added.
    pub fn expect_prefixes(&mut self, prefixes: IdPrefixes) {
        assert!(self.ids.len() == 0, "the form of ids is settled before there are any");
        self.ids = IdColumn::with_prefixes(Arc::new(prefixes));
    }

    /// The prefixes that were expected, for chunks.
    pub fn prefixes(&self) -> Arc<IdPrefixes> {
        self.ids.prefixes().clone()
    }

    /// The number of the next vertex: the first of the chunk that is added next.
    pub fn next_vertex(&self) -> VertexId {
        VertexId(self.ids.len() as u64)
    }

    /// Adds vertices. Gives the rows whose id is taken, ascending; those vertices are left out.
    ///
    /// Errors: a limit was reached; the load cannot go on.
    pub fn add(&mut self, mut chunk: VertexChunk) -> Result<Vec<RefusedRow>, StoreError> {
        chunk.shrink();
        let (first, count) = (self.ids.len() as u64, chunk.len());
        check_count("vertices", first + count as u64)?;
        let first = first as u32;
        let has_same_form = Arc::ptr_eq(self.ids.prefixes(), chunk.ids.prefixes());
        self.ids.append(chunk.ids);
        let mut refused = Vec::new();
        for (row, hash) in chunk.hashes.iter().enumerate() {
            let vertex = first + row as u32;
            let hash = if has_same_form { *hash } else { self.ids.hash(vertex as usize) };
            if !self.index.insert(&self.ids, vertex, hash) {
                let id = self.ids.get(vertex as usize).expect("an id to be made is not refused");
                refused.push(RefusedRow { row: row as u32, id });
                self.refused.push(vertex);
            }
            let tablet = self.layout.vertex_tablet(VertexId(u64::from(vertex)));
            self.properties[tablet] += u64::from(chunk.property_counts[row]);
        }
        self.next_property = self.next_property.max(chunk.largest_property_id + 1);
        let label_ids = intern(&mut self.words.labels, "vertex label", &chunk.label_words)?;
        let key_ids = intern(&mut self.words.keys, "property key", &chunk.key_words)?;
        self.parts.push(VertexPart {
            first,
            label_ids: label_ids.into_iter().map(LabelId).collect(),
            key_ids: key_ids.into_iter().map(KeyId).collect(),
            labels: chunk.labels,
        });
        for (tablet, rows) in self.rows.iter_mut().enumerate() {
            rows.add(&chunk.rows, first, chunk.property_counts.len(), tablet, self.layout);
        }
        Ok(refused)
    }

    /// Adds those vertices of a chunk without properties whose ids find nothing yet; gives their number.
    pub fn add_missing(&mut self, chunk: &VertexChunk) -> Result<u64, StoreError> {
        let first = self.ids.len();
        let mut labels = LabelColumn::default();
        for row in 0..chunk.len() {
            if self.index.find(&self.ids, chunk.ids.load_id(row)).is_some() {
                continue;
            }
            let vertex = self.ids.len();
            check_count("vertices", vertex as u64 + 1)?;
            self.ids.push_of(&chunk.ids, row);
            let hash = self.ids.hash(vertex);
            let is_new = self.index.insert(&self.ids, vertex as u32, hash);
            assert!(is_new, "an id that finds nothing is free");
            labels.push(chunk.labels.get(row));
        }
        let count = self.ids.len() - first;
        if count > 0 {
            let label_ids = intern(&mut self.words.labels, "vertex label", &chunk.label_words)?;
            self.parts.push(VertexPart {
                first: first as u32,
                label_ids: label_ids.into_iter().map(LabelId).collect(),
                key_ids: Vec::new(),
                labels,
            });
        }
        Ok(count as u64)
    }

    /// Number of vertices.
    pub fn len(&self) -> u64 {
        (self.ids.len() - self.refused.len()) as u64
    }

    /// True if there is no vertex.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Goes on to the edges: no vertex can be added any more.
    pub fn into_edges(mut self) -> EdgeLoad {
        let ids = std::mem::take(&mut self.ids);
        let mut index = std::mem::take(&mut self.index);
        index.settle(&ids);
        let directory = Arc::new(VertexDirectory { ids, index });
        EdgeLoad {
            vertices: self,
            directory,
            parts: Vec::new(),
            rows: EdgeRows::default(),
            count: 0,
            refused: 0,
            ids: IdColumn::default(),
            index: IdIndex::default(),
        }
    }
}

/// The second half of a load: edges.
#[derive(Debug)]
pub struct EdgeLoad {
    pub(super) vertices: VertexLoad,
    pub(super) directory: Arc<VertexDirectory>,
    pub(super) parts: Vec<EdgePart>,
    /// Encoded properties of edges.
    pub(super) rows: EdgeRows,
    /// Edges taken, those that were refused among them.
    pub(super) count: u32,
    refused: u64,
    /// Ids of edges that came with any.
    pub(super) ids: IdColumn,
    pub(super) index: IdIndex,
}

impl EdgeLoad {
    /// Finds vertices, for those who fill chunks of edges.
    pub fn directory(&self) -> Arc<VertexDirectory> {
        self.directory.clone()
    }

    /// Adds edges. Gives the rows whose id is taken, ascending; those edges are left out.
    ///
    /// Errors: a limit was reached; the load cannot go on.
    pub fn add(&mut self, mut chunk: EdgeChunk) -> Result<Vec<RefusedRow>, StoreError> {
        chunk.shrink();
        let count = chunk.len();
        check_count("edges", u64::from(self.count) + count as u64)?;
        let mut refused = Vec::new();
        let mut first_id = None;
        if chunk.ids.len() > 0 {
            let first = self.ids.len();
            check_count("edges", (first + count) as u64)?;
            first_id = Some(first as u32);
            self.ids.append(std::mem::take(&mut chunk.ids));
            for row in 0..count {
                let hash = self.ids.hash(first + row);
                if !self.index.insert(&self.ids, (first + row) as u32, hash) {
                    let id = self.ids.get(first + row).expect("an id to be made is not refused");
                    refused.push(RefusedRow { row: row as u32, id });
                    chunk.sources[row] = NO_VERTEX;
                }
            }
        }
        let words = &mut self.vertices.words;
        let label_ids = intern(&mut words.labels, "edge label", &chunk.label_words)?;
        let key_ids = intern(&mut words.keys, "property key", &chunk.key_words)?;
        let key_ids = key_ids.into_iter().map(KeyId).collect();
        self.parts.push(EdgePart {
            label_ids: label_ids.into_iter().map(LabelId).collect(),
            labels: chunk.labels,
            sources: chunk.sources,
            targets: chunk.targets,
            first_id,
            rows: self.rows.add(chunk.rows, count, key_ids),
        });
        self.count += count as u32;
        self.refused += refused.len() as u64;
        Ok(refused)
    }

    /// Number of edges.
    pub fn len(&self) -> u64 {
        u64::from(self.count) - self.refused
    }

    /// True if there is no edge.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of vertices.
    pub fn vertex_count(&self) -> u64 {
        (self.directory.ids.len() - self.vertices.refused.len()) as u64
    }
}

fn check_count(what: &str, count: u64) -> Result<(), StoreError> {
    if count > ELEMENTS_LIMIT {
        return Err(StoreError::LimitReached {
            what: format!("{what} in one load of an empty graph"),
            limit: ELEMENTS_LIMIT,
        });
    }
    Ok(())
}

/// Numbers of the graph for the words of a chunk.
fn intern(list: &mut WordList, what: &'static str, words: &ChunkWords) -> Result<Vec<u32>, StoreError> {
    let mut numbers = Vec::with_capacity(words.names.len());
    for word in &words.names {
        numbers.push(match list.number(word) {
            Some(number) => number,
            None if list.names().len() < WORD_LIMIT => list.push(word.clone()),
            None => {
                return Err(StoreError::LimitReached { what: format!("different {what}s"), limit: WORD_LIMIT as u64 });
            }
        });
    }
    Ok(numbers)
}
