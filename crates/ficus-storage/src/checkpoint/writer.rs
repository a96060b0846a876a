//! Writes a checkpoint, block by block, from a view that nobody changes any more.

use std::sync::Arc;

use ficus_model::{EdgeId, KeyId, Value};

use super::block::{BLOCK_FRAME_BYTES, HEADER_BYTES, finish_block, header, kind};
use super::{CheckpointView, UNFINISHED_SUFFIX, check_checkpoint, file_name};
use crate::StoreError;
use crate::environment::{Disk, DiskFile};
use crate::root::GraphRoot;
use crate::value_codec::{put_bytes, put_number, put_value};
use crate::{ScanCursor, Snapshot};

/// A block is finished when it has this many bytes.
const BLOCK_BYTES: usize = 1 << 20;

/// Edges that are looked up at a time.
const EDGE_BATCH: usize = 4096;

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
    for (number, name, root) in &view.graphs {
        put_graph(*number, name, root, &mut writer)?;
        put_vertices(root, &mut writer)?;
        put_edges(root, &mut writer)?;
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
    for part in view.resolver.recent.chunks(BLOCK_BYTES / 16) {
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
    put_number(root.indexes().len() as u64, out);
    for index in root.indexes() {
        put_number(index.label.map_or(0, |label| u64::from(label.0) + 1), out);
        put_number(u64::from(index.key.0), out);
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

/// Rows of vertices, tablet by tablet: each block begins with its tablet, and ids are told as distances.
fn put_vertices(root: &GraphRoot, writer: &mut BlockWriter<'_>) -> Result<(), StoreError> {
    for number in 0..root.layout.tablets() {
        let tablet = root.tablet(number);
        let mut slot = 0;
        let mut previous = None;
        while let Some((first, page)) = tablet.vertex_page_from(slot) {
            for (position, row) in page.iter().enumerate() {
                let Some(row) = row else { continue };
                let vertex = root.layout.vertex_id(first + position as u64, number);
                if previous.is_none() {
                    writer.begin(kind::VERTICES);
                }
                let out = &mut writer.block;
                put_number(vertex.0 - previous.unwrap_or(0), out);
                previous = Some(vertex.0);
                put_number(u64::from(row.label.0), out);
                put_value(&row.id, out);
                put_number(row.properties.entries().len() as u64, out);
                for entry in row.properties.entries() {
                    put_number(entry.id(), out);
                    put_number(u64::from(entry.key().0), out);
                    put_value(&entry.value, out);
                    put_properties(row.properties.metas(entry.id()), out);
                }
                if writer.is_full() {
                    writer.finish()?;
                    previous = None;
                }
            }
            slot = first + page.len() as u64;
        }
        if previous.is_some() {
            writer.finish()?;
        }
    }
    Ok(())
}

/// Rows of edges in insertion order; ids are told as distances.
fn put_edges(root: &Arc<GraphRoot>, writer: &mut BlockWriter<'_>) -> Result<(), StoreError> {
    let snapshot = Snapshot::new(root.clone());
    let mut cursor = ScanCursor::default();
    let mut edges: Vec<EdgeId> = Vec::new();
    let mut previous = None;
    let mut more = true;
    while more {
        edges.clear();
        more = snapshot.scan_edges(&mut cursor, EDGE_BATCH, &mut edges);
        for &edge in &edges {
            let record = root.edge(edge).expect("a scanned edge has a row");
            let id = root.edge_user_id(edge).expect("an edge has an id");
            if previous.is_none() {
                writer.begin(kind::EDGES);
            }
            let out = &mut writer.block;
            put_number(edge.0 - previous.unwrap_or(0), out);
            previous = Some(edge.0);
            put_number(u64::from(record.label.0), out);
            put_number(record.out.0, out);
            put_number(record.in_.0, out);
            put_value(&id, out);
            put_properties(root.edge_properties(edge), out);
            if writer.is_full() {
                writer.finish()?;
                previous = None;
            }
        }
    }
    if previous.is_some() {
        writer.finish()?;
    }
    Ok(())
}
