//! From chunks and sorted edges to finished segments, several tablets at a time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ficus_model::{KeyId, LabelId, Value, VertexId};

use super::chunk::flag;
use super::edge_sort::{Places, SortedEdges};
use super::loader::{EdgeLoad, EdgePart, VertexLoad, VertexPart};
use crate::base::BaseBuilder;
use crate::property_row::{PROPERTY_ID_BITS, PropertyEntry, set};
use crate::root::NextIds;
use crate::segment::{Segment, SegmentBuilder, SegmentImage};
use crate::tablet::IdLayout;
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
    pub fn finish(mut self, threads: usize) -> Result<BulkReport, StoreError> {
        let report = BulkReport { vertices: self.vertex_count(), edges: self.len() };
        let numbers = self.numbers()?;
        let vertices = self.directory.ids.len() as u32;
        let mut parts = std::mem::take(&mut self.parts);
        let with_origins = parts.iter().any(|part| part.first_id.is_some() || !part.rows.is_empty());
        let places = Places::new(self.vertices.layout, vertices);
        let edges = SortedEdges::new(places, &mut parts, with_origins);
        let base = self.vertices.graph.base_builder();
        let segments =
            Work { load: &self, parts: &parts, edges: &edges, numbers: &numbers, base: &base }.build_all(threads)?;
        let next_ids = NextIds {
            vertex: u64::from(vertices),
            edge_sequence: report.edges,
            property: numbers.next_property,
            user_id: numbers.next_user_id,
        };
        drop((parts, edges));
        let EdgeLoad { vertices: VertexLoad { graph, words, .. }, .. } = self;
        let base = base.finish(segments)?;
        graph.attach(base, words.labels.names().to_vec(), words.keys.names().to_vec(), next_ids)?;
        Ok(report)
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
    parts: &'a [EdgePart],
    edges: &'a SortedEdges,
    numbers: &'a Numbers,
    base: &'a BaseBuilder,
}

impl Work<'_> {
    fn build_all(&self, threads: usize) -> Result<Vec<Arc<Segment>>, StoreError> {
        let count = self.load.vertices.layout.tablets();
        let next = AtomicUsize::new(0);
        // Each place is written once, by the thread that built the tablet; locked for that moment only.
        let done = Mutex::new(vec![None; count]);
        std::thread::scope(|scope| {
            for _ in 0..threads.clamp(1, count) {
                scope.spawn(|| {
                    loop {
                        let tablet = next.fetch_add(1, Ordering::Relaxed);
                        if tablet >= count {
                            return;
                        }
                        let kept = self.base.keep_segment(tablet, self.tablet(tablet));
                        if kept.is_err() {
                            next.store(count, Ordering::Relaxed);
                        }
                        done.lock().unwrap_or_else(PoisonError::into_inner)[tablet] = Some(kept);
                    }
                });
            }
        });
        let mut kept = Vec::with_capacity(count);
        let mut failure = None;
        for outcome in done.into_inner().unwrap_or_else(PoisonError::into_inner) {
            match outcome {
                Some(Ok(tablet)) => kept.push(tablet),
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

    /// Builds one segment.
    fn tablet(&self, tablet: usize) -> SegmentImage {
        let vertices = &self.load.vertices;
        let layout = vertices.layout;
        let mut builder = self.base.segment_builder(tablet);
        let slots = self.edges.places.slots(tablet);
        let first_place = self.edges.places.first(tablet);
        let mut part = 0;
        let mut property = self.numbers.property_first[tablet];
        let mut scratch = Scratch::default();
        for slot in 0..slots {
            let vertex = layout.vertex_id(u64::from(slot), tablet);
            while vertices.parts.get(part + 1).is_some_and(|next| u64::from(next.first) <= vertex.0) {
                part += 1;
            }
            if vertices.refused.binary_search(&(vertex.0 as u32)).is_ok() {
                continue;
            }
            self.vertex(&mut builder, &vertices.parts[part], vertex, u64::from(slot), &mut property, &mut scratch);
            self.half_edges(&mut builder, layout, vertex, first_place + slot as usize, &mut scratch);
        }
        builder.cover_slots(u64::from(slots));
        builder.finish()
    }

    fn vertex(
        &self,
        builder: &mut SegmentBuilder,
        part: &VertexPart,
        vertex: VertexId,
        slot: u64,
        next_property: &mut u64,
        scratch: &mut Scratch,
    ) {
        let row = (vertex.0 - u64::from(part.first)) as usize;
        let id = self.load.directory.ids.get(vertex.0 as usize);
        let id = id.unwrap_or(Value::Long((self.numbers.made_first + vertex.0) as i64));
        builder.begin_vertex(slot, part.label_ids[part.labels.get(row) as usize], &id);
        let bytes = part.rows.row(row);
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
        layout: IdLayout,
        vertex: VertexId,
        place: usize,
        scratch: &mut Scratch,
    ) {
        let made_first = self.numbers.made_first + self.load.directory.ids.len() as u64;
        for sequence in self.edges.out(place) {
            let mut id = Value::Long((made_first + sequence as u64) as i64);
            scratch.edge_properties.clear();
            if self.with_origins() {
                let origin = self.edges.origin(sequence);
                let part = &self.parts[self.parts.partition_point(|part| part.first <= origin) - 1];
                let row = (origin - part.first) as usize;
                if let Some(own) = self.load.edge_id(part, row) {
                    id = own;
                }
                edge_properties(part.rows.row(row), &part.key_ids, &mut scratch.edge_properties)
                    .expect("properties are read as they were written");
            }
            let edge = layout.edge_id(sequence as u64, vertex);
            let label = self.edges.label(sequence);
            builder.out_half_edge(label, edge, self.edges.target(sequence), &id, &scratch.edge_properties);
        }
        let in_ = self.edges.in_(place);
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
        scratch.in_edges.extend(in_.iter().map(|half_edge| (self.edges.label(half_edge[0] as usize), *half_edge)));
        if !scratch.in_edges.is_sorted_by_key(|(label, _)| *label) {
            // Stable: edges of one label stay in the order of their sequences.
            scratch.in_edges.sort_by_key(|(label, _)| *label);
        }
        for (label, half_edge) in &scratch.in_edges {
            let (edge, source) = edge(*half_edge);
            builder.in_half_edge(*label, edge, source);
        }
    }

    fn with_origins(&self) -> bool {
        self.edges.has_origins()
    }
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

fn edge_properties(bytes: &[u8], keys: &[KeyId], properties: &mut Vec<(KeyId, Value)>) -> DecodeResult<()> {
    let mut reader = ByteReader::new(bytes);
    while !reader.is_empty() {
        let key = keys[reader.number()? as usize];
        set(properties, key, reader.value()?);
    }
    Ok(())
}
