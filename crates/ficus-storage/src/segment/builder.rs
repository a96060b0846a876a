//! Makes a segment from vertices in the order of their slots.

use std::sync::Arc;

use ficus_model::{EdgeId, KeyId, LabelId, Value, VertexId};

use super::SegmentOrigin;
use crate::StoreError;
use crate::environment::Disk;
use crate::mapping::SegmentBytes;
use crate::property_row::PropertyEntry;
use crate::tablet::IdLayout;

/// A segment being built: vertices in ascending slots, after each its properties and half-edges.
#[derive(Debug)]
pub(crate) struct SegmentBuilder {
    layout: IdLayout,
    tablet: usize,
}

impl SegmentBuilder {
    /// A segment without elements.
    pub(crate) fn new(_origin: SegmentOrigin, layout: IdLayout, tablet: usize) -> SegmentBuilder {
        SegmentBuilder { layout, tablet }
    }

    /// The next vertex. Slots that are left out have no vertex.
    pub(crate) fn begin_vertex(&mut self, _slot: u64, _label: LabelId, _id: &Value) {}

    /// The next property of this vertex, in insertion order, and its meta-properties.
    pub(crate) fn property(&mut self, _property: &PropertyEntry, _metas: &[(KeyId, Value)]) {}

    /// The next out half-edge of this vertex, in the order (label, edge), with what belongs to the edge.
    pub(crate) fn out_half_edge(
        &mut self,
        _label: LabelId,
        _edge: EdgeId,
        _target: VertexId,
        _id: &Value,
        _properties: &[(KeyId, Value)],
    ) {
    }

    /// The next in half-edge of this vertex, in the order (label, edge).
    pub(crate) fn in_half_edge(&mut self, _label: LabelId, _edge: EdgeId, _source: VertexId) {}

    /// Covers slots up to `slots` even if the last of them have no vertex.
    pub(crate) fn cover_slots(&mut self, _slots: u64) {}

    /// Encodes the columns.
    pub(crate) fn finish(self) -> SegmentImage {
        SegmentImage { words: Vec::new(), length: 0, checksum: 0 }
    }
}

/// The bytes of a file that is not written yet.
#[derive(Debug)]
pub(crate) struct SegmentImage {
    words: Vec<u64>,
    length: usize,
    checksum: u32,
}

impl SegmentImage {
    /// The checksum in the header, which covers the whole file.
    pub(crate) fn checksum(&self) -> u32 {
        self.checksum
    }

    /// Length of the file.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Creates a file with these bytes and makes its content durable; its name is durable once the directory is synced.
    pub(crate) fn write(&self, disk: &dyn Disk, name: &str) -> Result<(), StoreError> {
        let io = |error| StoreError::io(format!("writing {name}"), error);
        let file = disk.create(name).map_err(io)?;
        file.write_all_at(&bytemuck::cast_slice(&self.words)[..self.length], 0).map_err(io)?;
        file.sync().map_err(io)
    }

    /// The bytes in memory, to be opened.
    pub(crate) fn into_bytes(self) -> Arc<SegmentBytes> {
        Arc::new(SegmentBytes::from_words(self.words, self.length))
    }
}
