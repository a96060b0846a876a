//! Writes a checkpoint, block by block, from a view that nobody changes any more.

use std::sync::Arc;

use ficus_model::{KeyId, Value};

use super::block::{BLOCK_FRAME_BYTES, HEADER_BYTES, finish_block, header, kind};
use super::{CheckpointView, UNFINISHED_SUFFIX, check_checkpoint, file_name};
use crate::StoreError;
use crate::base::Base;
use crate::environment::{Disk, DiskFile};
use crate::mutation::Fact;
use crate::property_row::PropertyRow;
use crate::root::GraphRoot;
use crate::schema::{Schema, put_schema};
use crate::value_codec::{put_bytes, put_number, put_value};

/// A block is finished when it has this many bytes.
const BLOCK_BYTES: usize = 1 << 20;

/// Writes a checkpoint, flushes it, reads it back and gives it its name. Returns its length in bytes.
pub(crate) fn write_checkpoint(view: &CheckpointView, disk: &Arc<dyn Disk>) -> Result<u64, StoreError> {
    let name = file_name(view.position);
    let unfinished = format!("{name}{UNFINISHED_SUFFIX}");
    let length = write_file(view, disk.as_ref(), &unfinished).inspect_err(|_| {
        // The first error matters more; the next start removes what stays.
        let _ = disk.remove(&unfinished);
    })?;
    check_checkpoint(disk.as_ref(), &unfinished)?;
    disk.rename(&unfinished, &name).map_err(|error| StoreError::io(format!("renaming {unfinished}"), error))?;
    disk.sync_directory().map_err(|error| StoreError::io("syncing the data directory", error))?;
    Ok(length)
}

fn write_file(view: &CheckpointView, disk: &dyn Disk, name: &str) -> Result<u64, StoreError> {
    let io = |error| StoreError::io(format!("writing {name}"), error);
    if disk.list().map_err(io)?.iter().any(|existing| existing == name) {
        disk.remove(name).map_err(io)?;
    }
    let file = disk.create(name).map_err(io)?;
    file.write_all_at(&header(view.store, view.position.0), 0).map_err(io)?;
    let mut writer = BlockWriter { file, name, offset: HEADER_BYTES, block: Vec::new(), blocks: 0 };
    put_store(view, &mut writer)?;
    let (mut vertices, mut edges) = (0, 0);
    for ((number, name, root), facts) in view.graphs.iter().zip(&view.facts) {
        put_graph(*number, name, root, &mut writer)?;
        put_facts(facts, &mut writer)?;
        if let Some(base) = root.base() {
            put_base(base, &mut writer)?;
            put_indexes(root, &mut writer)?;
        }
        put_vertices(root, &mut writer)?;
        put_edges(root, &mut writer)?;
        put_changed_vertices(root, &mut writer)?;
        vertices += root.vertex_count;
        edges += root.edge_count;
    }
    let out = writer.begin(kind::END);
    put_number(vertices, out);
    put_number(edges, out);
    let blocks = writer.blocks;
    put_number(blocks, &mut writer.block);
    writer.finish()?;
    writer.file.sync().map_err(io)?;
    Ok(writer.offset)
}

struct BlockWriter<'a> {
    file: Box<dyn DiskFile>,
    name: &'a str,
    offset: u64,
    block: Vec<u8>,
    blocks: u64,
}

impl BlockWriter<'_> {
    fn begin(&mut self, kind: u8) -> &mut Vec<u8> {
        self.block.clear();
        self.block.resize(BLOCK_FRAME_BYTES, 0);
        self.block.push(kind);
        &mut self.block
    }

    fn is_full(&self) -> bool {
        self.block.len() >= BLOCK_BYTES
    }

    fn finish(&mut self) -> Result<(), StoreError> {
        finish_block(&mut self.block);
        let write = self.file.write_all_at(&self.block, self.offset);
        write.map_err(|error| StoreError::io(format!("writing {}", self.name), error))?;
        self.offset += self.block.len() as u64;
        self.blocks += 1;
        Ok(())
    }
}

fn put_store(view: &CheckpointView, writer: &mut BlockWriter<'_>) -> Result<(), StoreError> {
    let out = writer.begin(kind::STORE);
    put_number(u64::from(view.next_graph), out);
    put_number(view.epoch, out);
    put_number(view.resolver.horizon.0, out);
    put_number(view.writers.len() as u64, out);
    for (writer, sequence) in &view.writers {
        out.extend_from_slice(&writer.to_le_bytes());
        put_number(*sequence, out);
    }
    writer.finish()?;
    for part in view.resolver.order.parts() {
        let out = writer.begin(kind::RESOLVER);
        put_number(part.len() as u64, out);
        for (fingerprint, ts) in part {
            out.extend_from_slice(&fingerprint.to_le_bytes());
            put_number(ts.0, out);
        }
        writer.finish()?;
    }
    Ok(())
}

fn put_graph(number: u32, name: &str, root: &GraphRoot, writer: &mut BlockWriter<'_>) -> Result<(), StoreError> {
    let out = writer.begin(kind::GRAPH);
    put_number(u64::from(number), out);
    put_bytes(name.as_bytes(), out);
    out.push(root.layout.tablet_bits);
    let next = root.next_ids;
    for number in [root.commit_ts.0, next.vertex, next.edge_sequence, next.property, next.user_id] {
        put_number(number, out);
    }
    for words in [&root.words.labels, &root.words.keys] {
        put_number(words.names().len() as u64, out);
        words.names().iter().for_each(|word| put_bytes(word.as_bytes(), out));
    }
    // Where version 1 had its indexes.
    put_number(0, out);
    writer.finish()?;
    if *root.schema == Schema::default() {
        return Ok(());
    }
    put_schema(&root.schema, root.indexes(), writer.begin(kind::SCHEMA));
    writer.finish()
}

fn put_facts(facts: &[Fact], writer: &mut BlockWriter<'_>) -> Result<(), StoreError> {
    if facts.is_empty() {
        return Ok(());
    }
    let out = writer.begin(kind::FACTS);
    put_number(facts.len() as u64, out);
    for (name, content) in facts {
        put_bytes(name.as_bytes(), out);
        put_bytes(content, out);
    }
    writer.finish()
}

fn put_properties(properties: &[(KeyId, Value)], out: &mut Vec<u8>) {
    put_number(properties.len() as u64, out);
    for (key, value) in properties {
        put_number(u64::from(key.0), out);
        put_value(value, out);
    }
}

/// The files of the base.
fn put_base(base: &Base, writer: &mut BlockWriter<'_>) -> Result<(), StoreError> {
    let out = writer.begin(kind::BASE);
    put_number(base.files.names.len() as u64, out);
    base.files.names.iter().for_each(|name| put_bytes(name.as_bytes(), out));
    writer.finish()
}

/// The files of indexes.
fn put_indexes(root: &GraphRoot, writer: &mut BlockWriter<'_>) -> Result<(), StoreError> {
    let stored = root.indexes().iter().filter_map(|index| Some((index.shape.number, index.run()?.stored_name()?)));
    let stored: Vec<(u32, &Arc<str>)> = stored.collect();
    if stored.is_empty() {
        return Ok(());
    }
    let out = writer.begin(kind::INDEXES);
    put_number(stored.len() as u64, out);
    for (number, name) in stored {
        put_number(u64::from(number), out);
        put_bytes(name.as_bytes(), out);
    }
    writer.finish()
}

/// Writes rows into blocks of one kind; each block begins anew with ids, which are told as distances.
struct Rows<'a, 'b> {
    kind: u8,
    previous: Option<u64>,
    writer: &'a mut BlockWriter<'b>,
}

impl<'a, 'b> Rows<'a, 'b> {
    fn new(kind: u8, writer: &'a mut BlockWriter<'b>) -> Rows<'a, 'b> {
        Rows { kind, previous: None, writer }
    }

    fn put(&mut self, id: u64, content: impl FnOnce(&mut Vec<u8>)) -> Result<(), StoreError> {
        if self.previous.is_none() {
            self.writer.begin(self.kind);
        }
        put_number(id - self.previous.unwrap_or(0), &mut self.writer.block);
        self.previous = Some(id);
        content(&mut self.writer.block);
        if self.writer.is_full() {
            self.finish()?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), StoreError> {
        if self.previous.take().is_some() { self.writer.finish() } else { Ok(()) }
    }
}

fn put_vertex_properties(row: &PropertyRow, out: &mut Vec<u8>) {
    put_number(row.entries().len() as u64, out);
    for entry in row.entries() {
        put_number(entry.id(), out);
        put_number(u64::from(entry.key().0), out);
        put_value(&entry.value, out);
        put_properties(row.metas(entry.id()), out);
    }
}

/// The vertices of the overlay, tablet by tablet: new ones, then, apart, what changed in the base.
fn put_vertices(root: &GraphRoot, writer: &mut BlockWriter<'_>) -> Result<(), StoreError> {
    for (number, tablet) in root.tablets().iter().enumerate() {
        let mut rows = Rows::new(kind::VERTICES, writer);
        let mut outcome = Ok(());
        tablet.visit_overlay(&mut |slot, row| {
            let Some(row) = row.filter(|row| !row.in_base && outcome.is_ok()) else { return };
            outcome = rows.put(root.layout.vertex_id(slot, number).0, |out| {
                put_number(u64::from(row.label.0), out);
                put_value(&row.id, out);
                put_vertex_properties(&row.properties, out);
            });
        });
        outcome?;
        rows.finish()?;
    }
    Ok(())
}

/// The edges of the overlay: new ones, then, apart, what changed in the base. Needs the new vertices to stand before it.
fn put_edges(root: &GraphRoot, writer: &mut BlockWriter<'_>) -> Result<(), StoreError> {
    for (number, tablet) in root.tablets().iter().enumerate() {
        let mut found = Vec::new();
        tablet.visit_edge_overlay(root.layout, &mut |sequence, is_row| found.push((sequence, is_row)));
        let edge = |sequence: u64| root.layout.edge_in_tablet(sequence, number);
        let is_new = |sequence: u64| !tablet.base_has_edge(sequence);
        let mut rows = Rows::new(kind::EDGES, writer);
        for (sequence, _) in found.iter().filter(|(sequence, is_row)| *is_row && is_new(*sequence)) {
            let edge = edge(*sequence);
            let record = root.edge(edge).expect("a visited edge has a row");
            let id = root.edge_user_id(edge).expect("an edge has an id");
            rows.put(edge.0, |out| {
                put_number(u64::from(record.label.0), out);
                put_number(record.out.0, out);
                put_number(record.in_.0, out);
                put_value(&id, out);
                put_properties(&root.edge_properties(edge), out);
            })?;
        }
        rows.finish()?;
        let mut rows = Rows::new(kind::CHANGED_EDGES, writer);
        for (sequence, _) in found.iter().filter(|(sequence, is_row)| *is_row && !is_new(*sequence)) {
            let edge = edge(*sequence);
            rows.put(edge.0, |out| put_properties(&root.edge_properties(edge), out))?;
        }
        rows.finish()?;
        let mut rows = Rows::new(kind::REMOVED_EDGES, writer);
        for (sequence, _) in found.iter().filter(|(_, is_row)| !is_row) {
            rows.put(edge(*sequence).0, |_| ())?;
        }
        rows.finish()?;
    }
    Ok(())
}

/// Vertices of the base that changed or are gone. Stands behind all edges, since a vertex goes after its edges.
fn put_changed_vertices(root: &GraphRoot, writer: &mut BlockWriter<'_>) -> Result<(), StoreError> {
    for (number, tablet) in root.tablets().iter().enumerate() {
        let mut changed = Vec::new();
        let mut removed = Vec::new();
        tablet.visit_overlay(&mut |slot, row| {
            let vertex = root.layout.vertex_id(slot, number).0;
            match row {
                None => removed.push(vertex),
                Some(row) if row.in_base => changed.push((vertex, row.properties.clone())),
                Some(_) => {}
            }
        });
        let mut rows = Rows::new(kind::CHANGED_VERTICES, writer);
        for (vertex, properties) in &changed {
            rows.put(*vertex, |out| put_vertex_properties(properties, out))?;
        }
        rows.finish()?;
        let mut rows = Rows::new(kind::REMOVED_VERTICES, writer);
        removed.iter().try_for_each(|vertex| rows.put(*vertex, |_| ()))?;
        rows.finish()?;
    }
    Ok(())
}
