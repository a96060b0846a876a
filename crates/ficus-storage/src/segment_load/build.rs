//! From chunks and sorted edges to finished segments, several tablets at a time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ficus_model::{KeyId, LabelId, Value, VertexId};

use super::chunk::flag;
use super::edge_sort::{Along, InEdges, Places, SortedEdges};
use super::ids::IdIndex;
use super::loader::{EdgeLoad, VertexLoad, VertexPart};
use super::tablet_rows::TabletRows;
use crate::base::{BaseBuilder, WrittenSegment};
use crate::property_row::{PROPERTY_ID_BITS, PropertyEntry, set};
use crate::root::NextIds;
use crate::segment::{SegmentBuilder, SegmentImage};
use crate::value_codec::{ByteReader, DecodeResult};
use crate::{BulkReport, StoreError};

/// A property of a vertex with its meta-properties.
struct BuiltProperty {
    entry: PropertyEntry,
    metas: Vec<(KeyId, Value)>,
}

impl EdgeLoad {
    /// Builds the segments of all tablets on `threads` threads and fills the graph with them, all at once. It is durable and
    /// visible when this returns; if it fails the graph is as it was.
    pub fn finish(self, threads: usize) -> Result<BulkReport, StoreError> {
        self.finish_noting(threads, None)
    }

    /// As [`EdgeLoad::finish`]; `note`, a name and what it stands for, becomes durable with the graph, as
    /// [`BulkLoader::send_noting`](crate::BulkLoader::send_noting) says.
    pub fn finish_noting(mut self, threads: usize, note: Option<(&str, &[u8])>) -> Result<BulkReport, StoreError> {
        let report = BulkReport { vertices: self.vertex_count(), edges: self.len() };
        let numbers = self.numbers()?;
        let vertices = self.directory.ids.len() as u32;
        let mut parts = std::mem::take(&mut self.parts);
        let along = Along {
            ids: parts.iter().any(|part| part.first_id.is_some()),
            rows: !self.rows.is_empty(),
            rows_are_near: self.rows.are_near(),
        };
        let places = Places::new(self.vertices.layout, vertices);
        let edges = SortedEdges::new(places, &mut parts, along);
        drop(parts);
        if let Some(directory) = Arc::get_mut(&mut self.directory) {
            // Nobody looks for vertices any more.
            directory.index = IdIndex::default();
        }
        let base = self.vertices.graph.base_builder();
        let rows = Mutex::new(std::mem::take(&mut self.vertices.rows));
        let segments = Work { load: &self, rows, edges: &edges, numbers: &numbers, base: &base }.build_all(threads)?;
        let next_ids = NextIds {
            vertex: u64::from(vertices),
            edge_sequence: report.edges,
            property: numbers.next_property,
            user_id: numbers.next_user_id,
        };
        drop(edges);
        // What is needed no more ends before the new files are looked at.
        let EdgeLoad { vertices, directory, rows, ids, index, .. } = self;
        drop((directory, rows, ids, index));
        let VertexLoad { graph, words, .. } = vertices;
        let base = base.finish(segments)?;
        let note = note.map(|(name, content)| (name.into(), content.into()));
        let files = base.files.names.clone();
        let attached = graph.attach(base, words.labels.names().to_vec(), words.keys.names().to_vec(), next_ids, note);
        if attached.as_ref().is_err_and(StoreError::is_shortage) {
            // No record names them. One that was refused later does, and an archive wants what it names.
            graph.queue.remove_files(&files);
        }
        attached.map(|_| report)
    }

    /// Decides which numbers are given to what came without one.
    fn numbers(&self) -> Result<Numbers, StoreError> {
        let mut next_property = self.vertices.next_property;
        let mut property_first = Vec::with_capacity(self.vertices.properties.len());
        for count in &self.vertices.properties {
            property_first.push(next_property);
            next_property += count;
        }
        if next_property >> PROPERTY_ID_BITS != 0 {
            let what = "vertex properties in the life of one graph".to_string();
            return Err(StoreError::LimitReached { what, limit: 1 << PROPERTY_ID_BITS });
        }
        let made = self.directory.ids.len() as u64 + u64::from(self.count);
        let columns = [&self.directory.ids, &self.ids];
        let is_made = |column: &super::ids::IdColumn| column.has_made();
        let edges_without = self.parts.iter().any(|part| part.first_id.is_none() && !part.sources.is_empty());
        if !edges_without && !columns.into_iter().any(is_made) {
            return Ok(Numbers { property_first, next_property, made_first: 0, next_user_id: 0 });
        }
        let mut taken: Vec<i64> = Vec::new();
        let largest = columns.into_iter().filter_map(super::ids::IdColumn::largest_integer).max();
        let made_first = match largest {
            None => 0,
            Some(largest) if largest < 0 => 0,
            Some(largest) if i64::MAX as u64 - largest as u64 > made => largest as u64 + 1,
            Some(_) => {
                columns.into_iter().for_each(|column| column.collect_integers(&mut taken));
                gap(&mut taken, made)
            }
        };
        Ok(Numbers { property_first, next_property, made_first, next_user_id: made_first + made })
    }
}

/// The first number from 0 on with `count` free numbers behind it.
fn gap(taken: &mut Vec<i64>, count: u64) -> u64 {
    taken.retain(|number| *number >= 0);
    taken.sort_unstable();
    let mut first = 0;
    for number in taken.iter().map(|number| *number as u64) {
        if number - first >= count {
            break;
        }
        first = number + 1;
    }
    first
}

/// Numbers for what came without.
struct Numbers {
    /// The first property id of each tablet.
    property_first: Vec<u64>,
    next_property: u64,
    /// A vertex n without id gets this plus n; an edge this plus the number of vertices plus its sequence.
    made_first: u64,
    next_user_id: u64,
}

struct Work<'a> {
    load: &'a EdgeLoad,
    /// Properties of vertices by tablet. Locked while a thread takes those of its tablet; they end with it.
    rows: Mutex<Vec<TabletRows>>,
    edges: &'a SortedEdges,
    numbers: &'a Numbers,
    base: &'a BaseBuilder,
}

impl Work<'_> {
    fn build_all(&self, threads: usize) -> Result<Vec<WrittenSegment>, StoreError> {
        let groups = self.edges.places.groups();
        let next = AtomicUsize::new(0);
        // Each place is written once, by the thread that built the group; locked for that moment only.
        let done = Mutex::new((0..groups.len()).map(|_| None).collect::<Vec<_>>());
        std::thread::scope(|scope| {
            for _ in 0..threads.clamp(1, groups.len()) {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        let Some(tablets) = groups.get(number) else { return };
                        let kept = self.group(tablets.clone());
                        if kept.is_err() {
                            next.store(groups.len(), Ordering::Relaxed);
                        }
                        done.lock().unwrap_or_else(PoisonError::into_inner)[number] = Some(kept);
                    }
                });
            }
        });
        let count = self.load.vertices.layout.tablets();
        let mut kept = Vec::with_capacity(count);
        let mut failure = None;
        for outcome in done.into_inner().unwrap_or_else(PoisonError::into_inner) {
            match outcome {
                Some(Ok(tablets)) => kept.extend(tablets),
                Some(Err(error)) => failure = failure.or(Some(error)),
                None => {}
            }
        }
        match failure {
            Some(error) => Err(error),
            None => {
                assert_eq!(kept.len(), count, "every tablet is built unless one fails");
                Ok(kept)
            }
        }
    }

    /// Builds the segments of neighbouring tablets.
    fn group(&self, tablets: std::ops::Range<usize>) -> Result<Vec<WrittenSegment>, StoreError> {
        let in_edges = self.edges.by_target(tablets.clone());
        tablets.map(|tablet| self.base.write_segment(tablet, self.tablet(tablet, &in_edges))).collect()
    }

    /// Builds one segment.
    fn tablet(&self, tablet: usize, in_edges: &InEdges) -> SegmentImage {
        let vertices = &self.load.vertices;
        let layout = vertices.layout;
        let mut builder = self.base.segment_builder(tablet);
        let slots = self.edges.places.slots(tablet);
        let first_place = self.edges.places.first(tablet);
        let mut part = 0;
        let mut property = self.numbers.property_first[tablet];
        let mut scratch = Scratch::default();
        let rows = std::mem::take(&mut self.rows.lock().unwrap_or_else(PoisonError::into_inner)[tablet]);
        let mut rows = rows.reader();
        for slot in 0..slots {
            let vertex = layout.vertex_id(u64::from(slot), tablet);
            while vertices.parts.get(part + 1).is_some_and(|next| u64::from(next.first) <= vertex.0) {
                part += 1;
            }
            if vertices.refused.binary_search(&(vertex.0 as u32)).is_ok() {
                continue;
            }
            let row = Row { slot, bytes: rows.row(slot) };
            self.vertex(&mut builder, &vertices.parts[part], vertex, row, &mut property, &mut scratch);
            self.half_edges(&mut builder, in_edges, vertex, first_place + slot as usize, &mut scratch);
        }
        builder.cover_slots(u64::from(slots));
        builder.finish()
    }

    fn vertex(
        &self,
        builder: &mut SegmentBuilder,
        part: &VertexPart,
        vertex: VertexId,
        Row { slot, bytes }: Row<'_>,
        next_property: &mut u64,
        scratch: &mut Scratch,
    ) {
        let row = (vertex.0 - u64::from(part.first)) as usize;
        let id = self.load.directory.ids.get(vertex.0 as usize);
        let id = id.unwrap_or(Value::Long((self.numbers.made_first + vertex.0) as i64));
        builder.begin_vertex(u64::from(slot), part.label_ids[part.labels.get(row) as usize], &id);
        if bytes.is_empty() {
            return;
        }
        vertex_properties(bytes, &part.key_ids, next_property, &mut scratch.properties)
            .expect("properties are read as they were written");
        for property in &scratch.properties {
            builder.property(&property.entry, &property.metas);
        }
    }

    fn half_edges(
        &self,
        builder: &mut SegmentBuilder,
        in_edges: &InEdges,
        vertex: VertexId,
        place: usize,
        scratch: &mut Scratch,
    ) {
        let layout = self.load.vertices.layout;
        let made_first = self.numbers.made_first + self.load.directory.ids.len() as u64;
        for sequence in self.edges.out(place) {
            let own_id = self.edges.id(sequence).and_then(|position| self.load.ids.get(position));
            let id = own_id.unwrap_or(Value::Long((made_first + sequence as u64) as i64));
            scratch.edge_properties.clear();
            if let Some(address) = self.edges.row(sequence) {
                let (bytes, keys) = self.load.rows.at(address);
                edge_properties(bytes, keys, &mut scratch.edge_properties)
                    .expect("properties are read as they were written");
            }
            let edge = layout.edge_id(sequence as u64, vertex);
            let label = self.edges.label(sequence);
            builder.out_half_edge(label, edge, self.edges.target(sequence), &id, &scratch.edge_properties);
        }
        let in_ = in_edges.of(place);
        let edge = |[sequence, source]: [u32; 2]| {
            let source = VertexId(u64::from(source));
            (layout.edge_id(u64::from(sequence), source), source)
        };
        if !self.edges.has_several_labels() {
            let label = self.edges.label(0);
            for half_edge in in_ {
                let (edge, source) = edge(*half_edge);
                builder.in_half_edge(label, edge, source);
            }
            return;
        }
        scratch.in_edges.clear();
        scratch.in_edges.extend(in_edges.labels(place).zip(in_.iter().copied()));
        if !scratch.in_edges.is_sorted_by_key(|(label, _)| *label) {
            // Stable: edges of one label stay in the order of their sequences.
            scratch.in_edges.sort_by_key(|(label, _)| *label);
        }
        for (label, half_edge) in &scratch.in_edges {
            let (edge, source) = edge(*half_edge);
            builder.in_half_edge(*label, edge, source);
        }
    }
}

/// What is known of a vertex besides its number.
struct Row<'a> {
    slot: u32,
    /// Its encoded properties.
    bytes: &'a [u8],
}

/// Reused by all vertices of a tablet.
#[derive(Default)]
struct Scratch {
    properties: Vec<BuiltProperty>,
    edge_properties: Vec<(KeyId, Value)>,
    in_edges: Vec<(LabelId, [u32; 2])>,
}

/// Reads the properties of a vertex and applies their cardinalities in the order of the input.
fn vertex_properties(
    bytes: &[u8],
    keys: &[KeyId],
    next_id: &mut u64,
    properties: &mut Vec<BuiltProperty>,
) -> DecodeResult<()> {
    properties.clear();
    let mut reader = ByteReader::new(bytes);
    while !reader.is_empty() {
        let key = keys[reader.number()? as usize];
        let flags = reader.byte()?;
        let value = reader.value()?;
        let own_id = if flags & flag::ID != 0 { Some(reader.number()?) } else { None };
        let mut metas = Vec::new();
        if flags & flag::META != 0 {
            for _ in 0..reader.number()? {
                let key = keys[reader.number()? as usize];
                set(&mut metas, key, reader.value()?);
            }
        }
        if flags & flag::SET != 0 {
            let same = |property: &&mut BuiltProperty| property.entry.key() == key && property.entry.value == value;
            if let Some(existing) = properties.iter_mut().find(same) {
                metas.into_iter().for_each(|(key, value)| set(&mut existing.metas, key, value));
                continue;
            }
        } else if flags & flag::LIST == 0 && properties.iter().any(|property| property.entry.key() == key) {
            properties.retain(|property| property.entry.key() != key);
        }
        let id = own_id.unwrap_or_else(|| {
            *next_id += 1;
            *next_id - 1
        });
        properties.push(BuiltProperty { entry: PropertyEntry::new(id, key, value), metas });
    }
    Ok(())
}

/// Reads properties until their end; what lies behind is of other edges.
fn edge_properties(bytes: &[u8], keys: &[KeyId], properties: &mut Vec<(KeyId, Value)>) -> DecodeResult<()> {
    let mut reader = ByteReader::new(bytes);
    loop {
        // Keys are counted from 1; 0 is the end.
        let Some(key) = reader.number()?.checked_sub(1) else { return Ok(()) };
        set(properties, keys[key as usize], reader.value()?);
    }
}
